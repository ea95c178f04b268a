"""Rows of party, from statsmodels.datasets.anes96."""

import pandas as pd
from statsmodels.datasets import anes96


def table() -> pd.DataFrame:
    """Return one row a respondent; the vote itself is left out."""
    data = anes96.load_pandas().data.drop(columns=["vote", "logpopul"])
    return data.rename(columns={"PID": "party"}).astype({"party": int})
