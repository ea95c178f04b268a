"""Rows of penguins, from palmerpenguins.load_penguins."""

import pandas as pd
from palmerpenguins import load_penguins


def table() -> pd.DataFrame:
    """Return one row a penguin."""
    data = load_penguins().dropna(subset=["body_mass_g", "sex"])
    return data.rename(columns={"body_mass_g": "mass_g"})
