"""Rows of diabetes, from sklearn.datasets.load_diabetes."""

import pandas as pd
from sklearn.datasets import load_diabetes


def table() -> pd.DataFrame:
    """Return one row a patient."""
    data = load_diabetes(as_frame=True, scaled=False)
    return data.frame.rename(columns={"target": "progression"})
