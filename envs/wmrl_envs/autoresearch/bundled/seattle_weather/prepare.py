"""Rows of seattle_weather, from vega_datasets seattle-weather."""

import pandas as pd
from vega_datasets import local_data


def table() -> pd.DataFrame:
    """Return one row a day."""
    data = local_data.seattle_weather()
    when = data.pop("date").dt
    return data.assign(month=when.month, day_of_year=when.dayofyear)
