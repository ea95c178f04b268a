"""Rows of tumours, from sklearn.datasets.load_breast_cancer."""

import pandas as pd
from sklearn.datasets import load_breast_cancer


def table() -> pd.DataFrame:
    """Return one row a tumour."""
    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    return pd.DataFrame(data.data, columns=pd.Index(names)).assign(benign=data.target)
