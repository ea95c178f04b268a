"""Rows of doctor_visits, from statsmodels.datasets.randhie."""

import pandas as pd
from statsmodels.datasets import randhie


def table() -> pd.DataFrame:
    """Return one row a person and year."""
    data = randhie.load_pandas().data.rename(columns={"mdvis": "visits"})
    return data.astype({"visits": int})
