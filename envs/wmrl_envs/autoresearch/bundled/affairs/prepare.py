"""Rows of affairs, from statsmodels.datasets.fair."""

import pandas as pd
from statsmodels.datasets import fair


def table() -> pd.DataFrame:
    """Return one row a woman."""
    data = fair.load_pandas().data
    return data.drop(columns="affairs").assign(affair=(data["affairs"] > 0).astype(int))
