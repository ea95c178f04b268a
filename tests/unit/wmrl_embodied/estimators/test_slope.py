"""The within-group slope says how far predicted differences can be trusted."""

import torch
from torch import Tensor

from wmrl_embodied.estimators import slope


def _learned(
    predicted: Tensor, real: Tensor, *, steps: int, joint: bool, calibrated: Tensor | None = None
) -> tuple[slope.SlopeState, Tensor]:
    state = slope.start((), dtype=torch.float64)
    everything = torch.ones(predicted.shape[1:], dtype=torch.bool)
    for step in range(steps):
        f = predicted[step] if calibrated is None else calibrated[step]
        signal = slope.signals(f, predicted[step])
        target = real[step] - real[step].mean(-1, keepdim=True)
        state = slope.update(state, signal, target, everything, half_life=40.0)
    return state, slope.solve(state, joint=joint, prior=0.5, prior_pairs=20.0, maximum=1.5)


def _scores(steps: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(steps, 4, 8, generator=generator).double()


def test_is_the_prior_before_any_evidence() -> None:
    state = slope.start((), dtype=torch.float64)

    solved = slope.solve(state, joint=True, prior=0.5, prior_pairs=20.0, maximum=1.5)

    torch.testing.assert_close(solved, torch.tensor([0.5, 0.0], dtype=torch.float64))


def test_is_near_one_for_a_calibrated_score() -> None:
    real = _scores(60)
    _, solved = _learned(real, real, steps=60, joint=False)

    assert abs(solved[0] - 1.0) < 0.03


def test_vanishes_for_a_useless_score() -> None:
    real = _scores(200)
    useless = real.flip(0).roll(3, 1)
    _, solved = _learned(useless, real, steps=200, joint=False)

    assert abs(solved[0]) < 0.1


def test_turns_a_reversed_score_round_when_fitted_jointly() -> None:
    real = _scores(60)
    reversed_score = 1.0 - real
    flat = torch.full_like(real, 0.5)  # what isotonic regression makes of a reversed score
    _, solved = _learned(reversed_score, real, steps=60, joint=True, calibrated=flat)

    assert solved[1] < -0.95


def test_alone_never_uses_the_raw_score_or_a_negative_slope() -> None:
    real = _scores(60)
    _, solved = _learned(1.0 - real, real, steps=60, joint=False)

    torch.testing.assert_close(solved, torch.zeros(2, dtype=torch.float64))


def test_maximum_zero_switches_the_world_model_off() -> None:
    state, _ = _learned(_scores(10), _scores(10), steps=10, joint=True)

    solved = slope.solve(state, joint=True, prior=0.5, prior_pairs=20.0, maximum=0.0)

    torch.testing.assert_close(solved, torch.zeros(2, dtype=torch.float64))


def test_moments_worked_by_hand() -> None:
    signal = torch.tensor([[[0.5, 0.1], [-0.5, -0.1]]])
    target = torch.tensor([[1.0, torch.nan]])
    observed = torch.tensor([[True, False]])

    state = slope.update(
        slope.start((), dtype=torch.float32), signal, target, observed, half_life=40.0
    )

    # only the first rollout: 0.5², 0.5 * 0.1, 0.1²; 0.5 * 1, 0.1 * 1; 1²; variance over both
    torch.testing.assert_close(state.gram, torch.tensor([[0.25, 0.05], [0.05, 0.01]]))
    torch.testing.assert_close(state.cross, torch.tensor([0.5, 0.1]))
    torch.testing.assert_close(state.square, torch.tensor(1.0))
    torch.testing.assert_close(state.variance, torch.tensor([0.25, 0.01]))


def test_explained_variance_is_one_for_a_perfect_score_and_falls_with_noise() -> None:
    real = _scores(60)
    perfect, solved = _learned(real, real, steps=60, joint=False)
    generator = torch.Generator().manual_seed(1)
    noisy_score = real + real.std() * torch.randn(real.shape, generator=generator).double()
    noisy, noisy_solved = _learned(noisy_score, real, steps=60, joint=False)

    assert slope.explained(perfect, solved) > 0.99
    assert 0.35 < slope.explained(noisy, noisy_solved) < 0.65  # half of the variance is noise


def test_constant_and_per_group_shifts_leave_signals_unchanged() -> None:
    scores = _scores(1)[0]
    shift = torch.tensor([[0.3], [-0.2], [0.1], [0.0]], dtype=torch.float64)

    torch.testing.assert_close(
        slope.signals(scores + shift, scores + 0.4), slope.signals(scores, scores)
    )
