"""Rows of airports, from vega_datasets airports."""

import pandas as pd
from vega_datasets import local_data


def table() -> pd.DataFrame:
    """Return one row an airport."""
    data = local_data.airports()
    large = data["state"].value_counts().head(12).index
    return data.loc[data["state"].isin(large), ["latitude", "longitude", "state"]]
