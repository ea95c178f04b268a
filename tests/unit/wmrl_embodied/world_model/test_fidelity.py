"""Checks of ``wmrl_embodied.world_model.fidelity``."""

import numpy as np
import pytest

from wmrl_embodied.world_model.fidelity import fidelity, held_out_predictions
from wmrl_envs.errors import InvalidInputError


def test_matches_two_groups_worked_by_hand() -> None:
    predicted = np.array([0.2, 0.8, 0.6, 0.4])
    real = np.array([0.0, 1.0, 0.0, 1.0])
    groups = np.array([0, 0, 1, 1])
    shown = fidelity(predicted, real, groups)
    # Centred: p = ∓.3, ±.1; r = ∓.5, ∓.5. Σpr = .15+.15−.05−.05 = .2, Σp² = .2, Σr² = 1.
    assert shown.within_group_r2 == pytest.approx(0.2**2 / 0.2)
    assert shown.within_group_slope == pytest.approx(1.0)
    assert shown.kendall_tau == pytest.approx(0.0)  # one group in order, one reversed
    assert shown.auc == pytest.approx(0.75)  # 3 of the 4 pairs of unequal outcome are in order


def test_knowing_only_which_start_is_easy_is_worth_nothing_within_groups() -> None:
    groups = np.repeat(np.arange(20), 8)
    rng = np.random.default_rng(0)
    ease = rng.uniform(0.1, 0.9, 20)[groups]
    real = (rng.random(160) < ease).astype(float)
    shown = fidelity(ease, real, groups)
    assert shown.auc > 0.7
    assert shown.within_group_r2 == pytest.approx(0.0)


def test_a_reversed_predictor_has_negative_r2() -> None:
    real = np.array([0.0, 1.0, 1.0, 0.0])
    assert fidelity(1.0 - real, real, np.zeros(4, dtype=int)).within_group_r2 < -0.99


def test_held_out_predictions_never_see_their_own_group() -> None:
    groups = np.repeat(np.arange(6), 4)
    inputs = groups[:, None].astype(float)

    def spy(train: np.ndarray, _: np.ndarray, held_out: np.ndarray) -> np.ndarray:
        assert not set(train[:, 0]) & set(held_out[:, 0])
        return held_out[:, 0]

    predicted = held_out_predictions(spy, inputs, np.zeros(24), groups)
    assert np.array_equal(predicted, inputs[:, 0])


def test_refuses_a_single_start() -> None:
    with pytest.raises(InvalidInputError, match="at least 2 different starts, got 1"):
        held_out_predictions(
            lambda *_: np.zeros(1), np.zeros((3, 1)), np.zeros(3), np.zeros(3, dtype=int)
        )
