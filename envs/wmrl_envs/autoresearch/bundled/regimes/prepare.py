"""Rows of regimes, from lifelines.datasets.load_dd."""

import pandas as pd
from lifelines.datasets import load_dd


def table() -> pd.DataFrame:
    """Return one row a government."""
    names = {"un_region_name": "region", "un_continent_name": "continent"}
    kept = ["region", "continent", "democracy", "regime", "start_year", "duration"]
    return load_dd().rename(columns=names)[kept]
