"""Tables: submissions and answers as data frames, for graders that come with other projects."""

import io
from typing import TYPE_CHECKING

from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.errors import DependencyNotInstalledError

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_BYTES = 1 << 30


def read_table(data: bytes) -> "DataFrame | Invalid":
    """Return the data frame in a CSV file's bytes, or why there is none.

    Raises:
        DependencyNotInstalledError: If pandas is missing.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise DependencyNotInstalledError(
            "pandas must be installed; pip install 'wmrl-embodied[autoresearch]'"
        ) from error
    if len(data) > _MOST_BYTES:
        return Invalid(reason=f"submission must be at most {_MOST_BYTES} bytes, got {len(data)}")
    try:
        return pd.read_csv(io.BytesIO(data), compression=None)
    except ValueError as error:  # what pandas' parser and the decoder raise derives from it
        return Invalid(reason=f"submission must be a CSV file in UTF-8: {str(error)[:200]}")


def hole(given: "DataFrame", truth: "DataFrame") -> str | None:
    """Return which column lacks values that the answers have, None if none does.

    Means of pandas skip rows without a value: an agent could answer only the easy ones.
    """
    whole = [name for name in truth.columns if not truth[name].isna().any()]
    hollow = [name for name in whole if name in given.columns and given[name].isna().any()]
    return f"column {hollow[0]!r} must have no empty cells, got some (NaN)" if hollow else None
