"""Checks of ``wmrl_embodied.world_model.prefix``."""

import numpy as np
import pytest

from wmrl_embodied.world_model.fidelity import fidelity
from wmrl_embodied.world_model.prefix import PrefixConfig, PrefixModel, Traces, common_prefix
from wmrl_envs.errors import InvalidInputError


def _traces(*, seed: int = 0, informative: bool) -> Traces:
    """Thirty groups of eight; successes end early; features tell the outcome, or only the time."""
    rng = np.random.default_rng(seed)
    count, chunks = 240, 20
    success = (rng.random(count) < 0.5).astype(float)
    lengths = np.where(success > 0.5, rng.integers(8, 14, count), chunks)
    features = rng.normal(size=(count, chunks, 3))
    features[:, :, 1] = np.arange(chunks)
    if informative:
        features[:, 5:, 0] += 1.5 * success[:, None]
    return Traces(
        features=features, lengths=lengths, success=success, groups=np.repeat(np.arange(30), 8)
    )


def test_a_group_is_scored_where_all_of_it_still_ran() -> None:
    lengths, groups = np.array([5, 9, 20, 20]), np.array([0, 0, 1, 1])
    # Group 0 has a rollout of 5 chunks: the last one all reached is number 4.
    assert common_prefix(lengths, groups, 11).tolist() == [4, 4, 11, 11]


def test_the_length_of_an_episode_does_not_leak_into_its_score() -> None:
    traces = _traces(informative=False)
    honest = PrefixModel(PrefixConfig(chunks=11)).held_out_fidelity(traces)
    assert abs(honest.within_group_r2) < 0.05
    # The trap, to show that this test can fail: scored at its own end, a rollout gives itself away.
    own_end = traces.features[np.arange(240), traces.lengths - 1, 1]
    leaky = fidelity(-own_end, traces.success, traces.groups)
    assert leaky.within_group_r2 > 0.8


def test_learns_what_the_prefix_shows() -> None:
    shown = PrefixModel(PrefixConfig(chunks=7)).held_out_fidelity(_traces(informative=True))
    assert shown.within_group_r2 > 0.25
    too_early = PrefixModel(PrefixConfig(chunks=3)).held_out_fidelity(_traces(informative=True))
    assert too_early.within_group_r2 < 0.05


def test_predicts_new_groups_after_fitting() -> None:
    model = PrefixModel(PrefixConfig(chunks=7))
    model.fit(_traces(informative=True))
    new = _traces(seed=1, informative=True)
    assert fidelity(model.predict(new), new.success, new.groups).auc > 0.75


def test_the_price_is_the_share_of_chunks_that_really_ran() -> None:
    traces = Traces(
        features=np.zeros((2, 20, 1)),
        lengths=np.array([20, 20]),
        success=np.array([0.0, 1.0]),
        groups=np.array([0, 0]),
    )
    assert PrefixModel(PrefixConfig(chunks=5)).price(traces) == pytest.approx(0.25)


def test_refuses_episodes_that_all_ended_alike() -> None:
    traces = Traces(
        features=np.zeros((4, 20, 1)),
        lengths=np.full(4, 20),
        success=np.ones(4),
        groups=np.arange(4),
    )
    with pytest.raises(InvalidInputError, match="must hold both outcomes, got only 1"):
        PrefixModel(PrefixConfig()).fit(traces)


def test_refuses_to_predict_before_it_was_fitted() -> None:
    with pytest.raises(InvalidInputError, match="must be fitted before it predicts"):
        PrefixModel(PrefixConfig()).predict(_traces(informative=True))
