"""Rows of marriage, from statsmodels.datasets.fair."""

import pandas as pd
from statsmodels.datasets import fair


def table() -> pd.DataFrame:
    """Return one row a woman."""
    data = fair.load_pandas().data.rename(columns={"rate_marriage": "rating"})
    return data.astype({"rating": int})
