"""Checks of ``wmrl_embodied.world_model.predictors``."""

import numpy as np
import pytest

from wmrl_embodied.world_model.predictors import (
    constant,
    gaussian_process,
    logistic,
    reducer,
    tune_process,
)


def _bowl(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    # Success inside a disc of the first two inputs; the third does not matter.
    inputs = np.random.default_rng(seed).normal(size=(count, 3))
    return inputs, (np.sum(inputs[:, :2] ** 2, axis=1) < 1.4).astype(float)


def test_equal_outcomes_do_not_make_the_next_one_certain() -> None:
    mean, std = constant(np.ones(8))(np.zeros((2, 3)))
    # Laplace: (8 + 1)/(8 + 2) = 0.9, deviation √(0.9·0.1/11).
    np.testing.assert_allclose(mean, 0.9)
    np.testing.assert_allclose(std, np.sqrt(0.09 / 11))


def test_logistic_learns_success_that_peaks_in_the_middle() -> None:
    inputs, scores = _bowl(200, 0)
    mean, _ = logistic(inputs, scores, inverse_penalty=1.0, ensemble=4)(
        np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])
    )
    assert mean[0] > 0.9
    assert mean[1:].max() < 0.1


def test_process_learns_which_inputs_do_not_matter() -> None:
    inputs, scores = _bowl(150, 0)
    length_scales = np.exp(tune_process(inputs, scores)[1:4])
    assert length_scales[2] > 3 * length_scales[:2].max()


def test_process_is_less_sure_far_from_its_data() -> None:
    inputs, scores = _bowl(150, 0)
    predictor = gaussian_process(inputs, scores, tune_process(inputs, scores))
    _, std = predictor(np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 0.0]]))
    assert std[1] > 3 * std[0]


def test_deviations_cover_what_more_data_reveals() -> None:
    inputs, scores = _bowl(60, 0)
    far = _bowl(4000, 1)
    truth = logistic(*far, inverse_penalty=1.0, ensemble=2)(inputs)[0]
    mean, std = logistic(inputs, scores, inverse_penalty=1.0, ensemble=20)(inputs)
    assert np.mean(np.abs(truth - mean) < 3 * std + 0.1) > 0.9


def test_components_have_unit_variance_over_distinct_starts() -> None:
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(30, 6)) @ rng.normal(size=(6, 6))
    reduced = reducer(np.repeat(starts, 5, axis=0), 3)(starts)
    assert reduced.shape == (30, 3)
    np.testing.assert_allclose(reduced.std(axis=0, ddof=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_starts_give_few_components(count: int) -> None:
    starts = np.random.default_rng(0).normal(size=(count, 6))
    assert reducer(starts, 4)(starts).shape == (count, count - 1)
