"""The calibration map is monotone, exact where it must be, and improves with pairs."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from wmrl_embodied.estimators import calibration

_CELLS = 256


def _pushed(
    predicted: Tensor, measured: Tensor, *, half_life: float = 1e9
) -> calibration.CalibrationState:
    state = calibration.start((), cells=_CELLS, dtype=torch.float64)
    observed = torch.ones_like(predicted, dtype=torch.bool)
    return calibration.push(state, predicted, measured, observed, half_life=half_life)


def test_is_the_identity_before_any_pair() -> None:
    state = calibration.start((), cells=_CELLS, dtype=torch.float64)
    scores = torch.tensor([[0.0, 0.3, 0.77, 1.0]], dtype=torch.float64)

    torch.testing.assert_close(calibration.apply(state.table, scores), scores)


def test_interpolates_between_edges() -> None:
    table = torch.tensor([0.0, 0.5, 0.6])

    mapped = calibration.apply(table, torch.tensor([[0.25, 0.75, 1.0]]))

    # halfway from 0 to 0.5, halfway from 0.5 to 0.6, and the last edge
    torch.testing.assert_close(mapped, torch.tensor([[0.25, 0.55, 0.6]]))


def test_past_pairs_fade_by_half_every_half_life() -> None:
    predicted = torch.full((1, 4), 0.1, dtype=torch.float64)
    state = _pushed(predicted, torch.zeros_like(predicted), half_life=4.0)

    observed = torch.ones(1, 4, dtype=torch.bool)
    later = predicted + 0.8
    state = calibration.push(state, later, later, observed, half_life=4.0)

    held = state.weight[state.weight > 0]
    torch.testing.assert_close(held, torch.tensor([2.0, 4.0], dtype=torch.float64))  # 4 / 2, 4


def test_unobserved_pairs_leave_no_trace() -> None:
    state = calibration.start((), cells=_CELLS, dtype=torch.float64)
    predicted = torch.full((1, 2), 0.4, dtype=torch.float64)
    measured = torch.tensor([[torch.nan, torch.nan]], dtype=torch.float64)

    pushed = calibration.push(
        state, predicted, measured, torch.zeros(1, 2, dtype=torch.bool), half_life=10.0
    )

    assert pushed.weight.sum() == 0
    assert pushed.measured.sum() == 0


def test_refit_waits_for_enough_fresh_pairs() -> None:
    predicted = torch.rand(1, 63, dtype=torch.float64)
    state = _pushed(predicted, torch.zeros_like(predicted))

    waiting = calibration.refit(state, every=64.0, line_pairs=50.0)

    torch.testing.assert_close(waiting.table, state.table)
    assert calibration.refit(state, every=63.0, line_pairs=50.0).fresh == 0


def test_agrees_with_scikit_learn_where_every_pair_has_its_own_cell() -> None:
    generator = torch.Generator().manual_seed(0)
    predicted = ((torch.arange(_CELLS) + 0.5) / _CELLS).double().view(1, -1)
    measured = (predicted + 0.4 * torch.randn(1, _CELLS, generator=generator)).clamp(0, 1)

    state = calibration.refit(_pushed(predicted, measured), every=1.0, line_pairs=0.0)

    expected = IsotonicRegression(out_of_bounds="clip").fit(predicted[0], measured[0])
    edges = np.linspace(0, 1, _CELLS + 1)
    np.testing.assert_allclose(state.table.numpy(), expected.predict(edges), atol=1e-9)


def test_map_never_decreases() -> None:
    generator = torch.Generator().manual_seed(1)
    predicted = torch.rand(1, 400, generator=generator).double()
    measured = (torch.rand(1, 400, generator=generator) < 0.5).double()

    state = calibration.refit(_pushed(predicted, measured), every=1.0, line_pairs=50.0)

    assert state.table.diff().min() >= 0


def test_few_pairs_of_a_reversed_score_do_not_reverse_the_map() -> None:
    predicted = torch.tensor([[0.1, 0.2, 0.8, 0.9]], dtype=torch.float64)

    state = calibration.refit(_pushed(predicted, 1.0 - predicted), every=1.0, line_pairs=50.0)

    assert state.table.diff().min() >= 0
    assert state.table[-1] - state.table[0] < 0.6  # flatter than the identity


@pytest.mark.parametrize("bend", [lambda s: s**3, lambda s: 0.2 + 0.3 * s, lambda s: s**0.3])
def test_repairs_a_monotone_distortion(bend: Callable[[Tensor], Tensor]) -> None:
    generator = torch.Generator().manual_seed(2)
    truth = torch.rand(1, 4_000, generator=generator).double()
    predicted = bend(truth)

    state = calibration.refit(_pushed(predicted, truth), every=1.0, line_pairs=50.0)

    after = (calibration.apply(state.table, predicted) - truth).square().mean().sqrt()
    before = (predicted - truth).square().mean().sqrt()
    assert after < 0.02 < before


def test_error_falls_with_pairs_as_isotonic_regression_should() -> None:
    generator = torch.Generator().manual_seed(3)
    counts = [200, 800, 3_200, 12_800]
    grid = torch.linspace(0.02, 0.98, 500).double().view(1, -1)
    errors = []
    for count in counts:
        squares = []
        for _ in range(30):
            predicted = torch.rand(1, count, generator=generator).double()
            measured = (torch.rand(1, count, generator=generator) < predicted**2).double()
            state = calibration.refit(_pushed(predicted, measured), every=1.0, line_pairs=0.0)
            squares.append((calibration.apply(state.table, grid) - grid**2).square().mean())
        errors.append(torch.stack(squares).mean().sqrt())

    x = torch.tensor(counts).double().log()
    y = torch.stack(errors).log()
    slope = ((x - x.mean()) @ (y - y.mean())) / (x - x.mean()).square().sum()
    assert -0.45 < slope < -0.25  # theory: -1/3
