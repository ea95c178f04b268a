"""The bias monitor sees bias, does not see noise, and turns it into trust."""

import pytest
import torch
from torch import Tensor

from wmrl_embodied.estimators import monitor

_RUNS = 4_000
_DIMS = 20


def _watched(
    mean: float, *, noise: float = 1.0, steps: int = 60, sketch: Tensor | None = None
) -> monitor.MonitorState:
    """Return monitors of residual gradients with squared mean norm ``mean`` and unit noise."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.zeros(_DIMS, dtype=torch.float64)
    direction[0] = mean**0.5
    dims = _DIMS if sketch is None else sketch.shape[1]
    state = monitor.start((_RUNS,), dims=dims, dtype=torch.float64)
    one = torch.ones(_RUNS, dtype=torch.float64)
    for _ in range(steps):
        draw = torch.randn(_RUNS, _DIMS, generator=generator, dtype=torch.float64)
        h = direction + noise * draw / _DIMS**0.5
        h = h if sketch is None else h @ sketch
        state = monitor.update(state, h, information=one, window=60.0)
    return state


@pytest.mark.parametrize("true", [0.0, 0.05, 0.2])
def test_the_bias_estimate_is_free_of_noise_bias(true: float) -> None:
    state = _watched(true)
    found = monitor.evidence(state)

    standard_error = found.bias.std() / _RUNS**0.5
    assert abs(found.bias.mean() - true) < 4 * standard_error
    naive = state.mean.square().sum(-1) / state.weight**2
    assert naive.mean() - true > 20 * standard_error  # the squared average is biased by noise


def test_the_deviation_is_that_of_the_estimate_without_bias() -> None:
    found = monitor.evidence(_watched(0.0))

    assert 0.75 < found.deviation.mean() / found.bias.std() < 1.35
    assert 0.08 < (found.bias > found.deviation).double().mean() < 0.24


def test_the_noise_estimate_is_one_steps_variance() -> None:
    assert abs(monitor.evidence(_watched(0.0, noise=2.0)).noise.mean() - 4.0) < 0.1


def test_a_random_sign_sketch_keeps_the_estimate() -> None:
    generator = torch.Generator().manual_seed(1)
    signs = torch.randint(0, 2, (_DIMS, 144), generator=generator).double() * 2.0 - 1.0

    found = monitor.evidence(_watched(0.2, sketch=signs / 144**0.5))

    assert abs(found.bias.mean() / 0.2 - 1.0) < 0.25
    inner = (signs @ signs.T / 144).diagonal()
    torch.testing.assert_close(inner, torch.ones(_DIMS).double())


def test_without_bias_trust_stays_at_its_least() -> None:
    quiet = monitor.trust(
        monitor.evidence(_watched(0.0, noise=0.0)), confidence=1.0, horizon=200.0, least=0.1
    )

    torch.testing.assert_close(quiet, torch.full((_RUNS,), 0.1).double())


def test_a_bias_far_above_the_noise_earns_full_trust_in_the_residual() -> None:
    loud = monitor.trust(
        monitor.evidence(_watched(4.0, noise=0.1)), confidence=1.0, horizon=200.0, least=0.1
    )

    assert loud.min() > 0.99


def test_trust_worked_by_hand() -> None:
    found = monitor.Evidence(
        bias=torch.tensor(0.5),
        deviation=torch.tensor(0.2),
        noise=torch.tensor(20.0),
    )

    eta = monitor.trust(found, confidence=1.0, horizon=200.0, least=0.1)

    torch.testing.assert_close(eta, torch.tensor(0.75))  # L = 0.3, V/H = 0.1: 0.3 / 0.4


def test_one_step_is_no_evidence() -> None:
    found = monitor.evidence(_watched(4.0, steps=1))

    assert found.bias.abs().max() == 0
    assert monitor.trust(found, confidence=1.0, horizon=200.0, least=0.1).max() <= 0.1 + 1e-12


def test_two_steps_give_their_inner_product() -> None:
    one = torch.tensor(1.0)
    state = monitor.start((), dims=2, dtype=torch.float32)
    for h in ([1.0, 2.0], [3.0, -0.5]):
        vector = torch.tensor(h)
        state = monitor.update(state, vector, information=one, window=60.0)

    # 1 * 3 + 2 * (-0.5) = 2: fading weighs both products alike
    torch.testing.assert_close(monitor.evidence(state).bias, torch.tensor(2.0), rtol=1e-3, atol=0)


def test_a_step_without_executions_changes_nothing() -> None:
    before = _watched(0.2, steps=5)
    vector = torch.ones(_RUNS, _DIMS, dtype=torch.float64)
    zero = torch.zeros(_RUNS).double()

    after = monitor.update(before, vector, information=zero, window=60.0)

    torch.testing.assert_close(after.mean, before.mean)
    torch.testing.assert_close(after.steps, before.steps)


def test_the_signal_estimate_is_free_of_noise_bias_too() -> None:
    generator = torch.Generator().manual_seed(0)
    state = monitor.start((_RUNS,), dims=_DIMS, dtype=torch.float64)
    one = torch.ones(_RUNS, dtype=torch.float64)
    for _ in range(60):
        g = 0.1 + torch.randn(_RUNS, _DIMS, generator=generator, dtype=torch.float64) / 4.0
        state = monitor.update_signal(state, g, information=one, window=60.0)

    assert abs(monitor.signal(state).mean() - 20 * 0.01) < 0.005  # 20 numbers of 0.1²


def test_there_is_no_signal_before_two_steps() -> None:
    state = monitor.start((), dims=2, dtype=torch.float32)
    one = torch.tensor(1.0)
    state = monitor.update_signal(state, torch.ones(2), information=one, window=60.0)

    assert float(monitor.signal(state)) == 0.0


def _evidence(bias: float) -> monitor.Evidence:
    return monitor.Evidence(
        bias=torch.tensor(bias),
        deviation=torch.tensor(0.01),
        noise=torch.tensor(1.0),
    )


@pytest.mark.parametrize(
    ("bias", "signal", "active", "expected"),
    [
        (0.5, 0.1, False, True),  # bias dominates: enter
        (0.1, 0.5, False, False),  # signal dominates: stay out
        (0.5, 0.1, True, True),  # still bad: stay
        (0.0, 0.5, True, False),  # repaired: leave
        (0.2, 0.3, True, True),  # between the two thresholds: no flutter
    ],
)
def test_fallback_enters_on_a_useless_world_model_and_leaves_when_it_is_repaired(
    bias: float, signal: float, active: bool, expected: bool
) -> None:
    entered = monitor.fallback(
        _evidence(bias),
        torch.tensor(signal),
        active=torch.tensor(active),
        steps=torch.tensor(10.0),
        confidence=1.0,
    )

    assert bool(entered) is expected


def test_fallback_needs_a_few_steps() -> None:
    entered = monitor.fallback(
        _evidence(0.5),
        torch.tensor(0.1),
        active=torch.tensor(False),
        steps=torch.tensor(4.0),
        confidence=1.0,
    )

    assert not bool(entered)
