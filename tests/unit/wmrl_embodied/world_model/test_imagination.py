"""Checks of ``wmrl_embodied.world_model.imagination`` on a closed loop with a known rule."""

import numpy as np
import pytest

from wmrl_embodied.world_model.fidelity import fidelity
from wmrl_embodied.world_model.imagination import ImaginationConfig, ImaginationModel
from wmrl_embodied.world_model.prefix import Traces
from wmrl_envs.errors import InvalidInputError

CHUNKS = 12


def _episodes(count: int, seed: int) -> tuple[Traces, np.ndarray]:
    """A point driven by its plan towards a goal it reaches, or passes by."""
    rng = np.random.default_rng(seed)
    plans = rng.normal(size=(count, 2))
    place = 0.2 * rng.normal(size=(count, 2))
    features, lengths = np.zeros((count, CHUNKS, 2)), np.full(count, CHUNKS)
    success = np.zeros(count)
    for chunk in range(CHUNKS):
        features[:, chunk] = place
        place = place + 0.15 * np.stack([np.ones(count), 0.8 * plans[:, 0]], axis=1)
        hit = (np.linalg.norm(place - [1.3, 0.0], axis=1) < 0.45) & (success == 0)
        success[hit], lengths[hit] = 1.0, chunk + 1
    traces = Traces(
        features=features, lengths=lengths, success=success, groups=np.arange(count) // 8
    )
    return traces, plans


@pytest.fixture(scope="module")
def fitted() -> ImaginationModel:
    model = ImaginationModel(ImaginationConfig(components=2, steps=500))
    model.fit(*_episodes(160, 0))
    return model


def test_imagined_episodes_order_real_outcomes_of_new_starts(fitted: ImaginationModel) -> None:
    new, plans = _episodes(400, 1)
    imagined = fitted.imagine(new.features[:, 0], plans)
    shown = fidelity(imagined.success.double().numpy(), new.success, new.groups)
    assert shown.within_group_r2 > 0.6
    assert imagined.states.shape == (400, CHUNKS, 2)


def test_the_imagined_path_follows_the_real_one(fitted: ImaginationModel) -> None:
    new, plans = _episodes(100, 2)
    imagined = fitted.imagine(new.features[:, 0], plans)
    still, states = new.lengths > 6, imagined.states.numpy()
    start, middle = states[still, 0], states[still, 6]
    moved = np.linalg.norm(middle - start, axis=1)
    real = np.linalg.norm(new.features[still, 6] - new.features[still, 0], axis=1)
    assert np.corrcoef(moved, real)[0, 1] > 0.8


def test_only_what_really_ran_is_learned_from() -> None:
    traces, plans = _episodes(80, 0)
    spoilt = traces.features.copy()
    spoilt[np.arange(CHUNKS) >= traces.lengths[:, None]] = 99.0
    config, models = ImaginationConfig(components=2, steps=50), []
    for features in (traces.features, spoilt):
        model = ImaginationModel(config)
        model.fit(
            Traces(
                features=features,
                lengths=traces.lengths,
                success=traces.success,
                groups=traces.groups,
            ),
            plans,
        )
        models.append(model.imagine(traces.features[:, 0], plans).success)
    np.testing.assert_allclose(models[0].numpy(), models[1].numpy(), rtol=1e-4)


def test_refuses_to_imagine_before_it_was_fitted() -> None:
    with pytest.raises(InvalidInputError, match="must be fitted before it imagines"):
        ImaginationModel(ImaginationConfig()).imagine(np.zeros((1, 2)), np.zeros((1, 2)))
