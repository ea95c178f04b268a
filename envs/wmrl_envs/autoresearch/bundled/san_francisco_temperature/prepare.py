"""Rows of san_francisco_temperature, from vega_datasets sf-temps."""

import pandas as pd
from vega_datasets import local_data

_AHEAD_H = 6


def table() -> pd.DataFrame:
    """Return one row every fourth hour, with the past as columns."""
    data = local_data.sf_temps().sort_values("date").reset_index(drop=True)
    past = {
        f"hours_ago_{back}": data["temp"].shift(_AHEAD_H + back) for back in (0, 1, 2, 6, 12, 18)
    }
    when = data["date"].dt
    made = pd.DataFrame(
        {"month": when.month, "hour": when.hour, **past, "temperature": data["temp"]}
    )
    return made.dropna().iloc[::4]
