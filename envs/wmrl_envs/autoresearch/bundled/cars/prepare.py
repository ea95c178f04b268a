"""Rows of cars, from vega_datasets cars."""

import pandas as pd
from vega_datasets import local_data


def table() -> pd.DataFrame:
    """Return one row a car."""
    data = local_data.cars().dropna(subset=["Miles_per_Gallon"])
    made = data.drop(columns="Name").rename(columns=str.lower)
    return made.assign(year=pd.to_datetime(made["year"]).dt.year)
