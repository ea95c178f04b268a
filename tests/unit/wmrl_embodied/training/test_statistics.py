"""Checks of ``wmrl_embodied.training.statistics``."""

import numpy as np
import pytest
from scipy.stats import binomtest

from wmrl_embodied.training.statistics import bootstrap_mean, paired_p_value, wilson
from wmrl_envs.errors import InvalidInputError


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 20), (10, 10), (45, 50)])
def test_wilson_interval_is_scipys(successes: int, trials: int) -> None:
    ours = wilson(successes, trials)
    theirs = binomtest(successes, trials).proportion_ci(method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert ours.value == successes / trials


def test_wilson_refuses_more_successes_than_trials() -> None:
    with pytest.raises(InvalidInputError, match="got 5 of 4"):
        wilson(5, 4)


def test_bootstrap_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    intervals = [bootstrap_mean(rng.normal(3.0, 1.0, 30), draws=500) for _ in range(200)]
    covered = np.mean([interval.low < 3.0 < interval.high for interval in intervals])
    assert 0.88 < covered < 0.99


def test_only_changed_starts_count_in_the_paired_test() -> None:
    before = np.array([True] * 20 + [False] * 6)
    after = np.array([True] * 20 + [True] * 6)
    # Six gains and no loss: 2 · (1/2)^6.
    assert paired_p_value(before, after) == pytest.approx(2 / 64)
    assert paired_p_value(before, before) == 1.0


def test_paired_test_refuses_other_starts() -> None:
    with pytest.raises(InvalidInputError, match="got 2 and 3"):
        paired_p_value(np.zeros(2, dtype=bool), np.zeros(3, dtype=bool))
