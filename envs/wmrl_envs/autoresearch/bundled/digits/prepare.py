"""Rows of digits, from sklearn.datasets.load_digits."""

import pandas as pd
from sklearn.datasets import load_digits


def table() -> pd.DataFrame:
    """Return one row an image."""
    data = load_digits()
    names = [f"p{row}{column}" for row in range(8) for column in range(8)]
    return pd.DataFrame(data.data.astype(int), columns=pd.Index(names)).assign(digit=data.target)
