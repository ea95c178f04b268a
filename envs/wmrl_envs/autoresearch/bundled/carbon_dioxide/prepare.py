"""Rows of carbon_dioxide, from statsmodels.datasets.co2."""

import pandas as pd
from statsmodels.datasets import co2


def table() -> pd.DataFrame:
    """Return one row a week."""
    level = co2.load_pandas().data["co2"].interpolate()
    past = {f"change_{weeks}": level - level.shift(weeks) for weeks in (1, 4, 13, 26, 39, 52)}
    week = pd.Series(level.index.isocalendar().week.to_numpy(), index=level.index)
    made = pd.DataFrame({"week": week, **past, "change": level.shift(-8) - level})
    return made.dropna().round(3)
