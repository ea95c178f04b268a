"""The hacking alarm rings for growth of optimism, not for its level."""

import torch

from wmrl_embodied.estimators import alarm

_LIMITS = alarm.AlarmLimits(reference_pairs=200.0, decay=0.9, threshold=0.1, sigmas=4.0)


def _after(gaps: list[float], *, noise: float = 0.1) -> alarm.AlarmState:
    generator = torch.Generator().manual_seed(0)
    state = alarm.start((), dtype=torch.float32)
    everything = torch.ones(10, 8, dtype=torch.bool)
    for gap in gaps:
        measured = torch.full((10, 8), 0.3)
        predicted = measured + gap + noise * torch.randn(10, 8, generator=generator)
        state = alarm.update(
            state, predicted, measured, everything, torch.full((10, 8), 0.1), limits=_LIMITS
        )
    return state


def test_constant_optimism_is_harmless() -> None:
    assert not bool(_after([0.5] * 40).on)


def test_growing_optimism_rings() -> None:
    state = _after([0.1] * 10 + [0.3] * 20)

    assert bool(state.on)
    assert abs(alarm.growth(state) - 0.2) < 0.03  # 0.3 - 0.1


def test_falling_optimism_does_not_ring() -> None:
    assert not bool(_after([0.3] * 10 + [0.0] * 20).on)


def test_noise_alone_does_not_ring() -> None:
    assert not bool(_after([0.0] * 60, noise=0.6).on)


def test_is_cleared_when_the_world_model_is_repaired() -> None:
    assert not bool(_after([0.1] * 10 + [0.3] * 20 + [0.1] * 40).on)


def test_stays_on_until_growth_has_halved() -> None:
    ringing = _after([0.1] * 10 + [0.3] * 20)
    still = _after([0.1] * 10 + [0.3] * 20 + [0.17] * 40)

    assert bool(ringing.on)
    assert bool(still.on)  # 0.07 is below the threshold of 0.1 and above half of it


def test_says_nothing_before_the_reference_is_complete() -> None:
    state = _after([0.0, 0.9])  # 160 of 200 pairs

    assert not bool(state.on)


def test_steps_without_executions_leave_it_as_it_is() -> None:
    before = _after([0.1] * 5)
    after = alarm.update(
        before,
        torch.ones(2, 2),
        torch.full((2, 2), torch.nan),
        torch.zeros(2, 2, dtype=torch.bool),
        torch.full((2, 2), 0.1),
        limits=_LIMITS,
    )

    torch.testing.assert_close(alarm.growth(after), alarm.growth(before))
