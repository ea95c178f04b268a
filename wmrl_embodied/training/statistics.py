"""Statistics of success: intervals and paired tests for what an evaluation claims.

Notation:
    k of n   successes of trials
    z        normal quantile of the two-sided level, 1.96 at 95 %
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, norm

from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A point estimate with its confidence bounds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return ``value [low, high]`` with two decimals."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def wilson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Return the Wilson score interval of a success rate; right down to 0 and up to 1.

    Args:
        successes: k, from 0 to ``trials``.
        trials: n, at least 1.
        level: Coverage.

    Raises:
        InvalidInputError: If there are no trials or more successes than trials.

    Source:
        Wilson (1927), *Probable inference, the law of succession, and statistical inference*.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise InvalidInputError(
            f"successes must be from 0 to trials >= 1, got {successes} of {trials}"
        )
    z = float(norm.ppf(0.5 + level / 2.0))
    rate, weight = successes / trials, 1.0 + z**2 / trials
    # centre = (p + z²/2n) / (1 + z²/n), half = z √(p(1−p)/n + z²/4n²) / (1 + z²/n)
    centre = (rate + z**2 / (2 * trials)) / weight
    half = z * np.sqrt(rate * (1.0 - rate) / trials + z**2 / (4.0 * trials**2)) / weight
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(value=rate, low=float(low), high=float(high))


def bootstrap_mean(
    values: NDArray[np.floating], *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean of independent values with its percentile bootstrap interval.

    Args:
        values: Shape (values,), one entry an independent unit (a run, an initial state).
        level: Coverage.
        draws: Resamples.
        seed: Seed of the resampling.

    Raises:
        InvalidInputError: If there is no value.
    """
    if len(values) == 0:
        raise InvalidInputError("values must hold at least one entry, got none")
    rng = np.random.default_rng(seed)
    means = np.asarray(values)[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1)
    tail = 100.0 * (1.0 - level) / 2.0
    low, high = np.percentile(means, [tail, 100.0 - tail])
    return Interval(value=float(np.mean(values)), low=float(low), high=float(high))


def paired_p_value(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """Return the two-sided p-value that success did not change, over the same starts.

    McNemar's exact test: only starts whose outcome changed count, and under no change each is as
    likely to be a gain as a loss.

    Args:
        before: Success of each start, shape (starts,).
        after: Success of the same starts in the same order.

    Raises:
        InvalidInputError: If the shapes differ.

    Source:
        McNemar (1947), *Note on the sampling error of the difference between correlated proportions*.
    """
    if len(before) != len(after):
        raise InvalidInputError(
            f"before and after must hold the same starts, got {len(before)} and {len(after)}"
        )
    gains, losses = int(np.sum(after & ~before)), int(np.sum(before & ~after))
    if gains + losses == 0:
        return 1.0
    return float(binomtest(gains, gains + losses, 0.5).pvalue)
