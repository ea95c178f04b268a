"""Rows of senators, from lifelines.datasets.load_canadian_senators."""

import pandas as pd
from lifelines.datasets import load_canadian_senators


def table() -> pd.DataFrame:
    """Return one row a senator."""
    data = load_canadian_senators()
    return pd.DataFrame(
        {
            "affiliation": data["Political Affiliation at Appointment"],
            "province": data["Province / Territory"],
            "appointed_by": data["Appointed on the advice of"],
            "appointed_in": pd.to_datetime(data["start_date"]).dt.year,
            "years": (data["diff_days"] / 365.25).round(2),
        }
    )
