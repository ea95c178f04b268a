"""Baseline, residual noise, scale and task lines, each worked by hand."""

import torch

from wmrl_embodied.estimators import baseline, residual_noise, scale, task_lines


def test_the_baseline_weighs_rollouts_by_the_inverse_of_their_probability() -> None:
    state = baseline.update(
        baseline.start((), dtype=torch.float32),
        torch.full((1, 2), 0.5),
        torch.tensor([[1.0, 0.0]]),
        torch.ones(1, 2, dtype=torch.bool),
        torch.tensor([[0.5, 0.25]]),
        decay=0.9,
        slope_half_life=40.0,
    )

    # sums 1 / 0.5 = 2 of 2 + 4 = 6, each over 2 rollouts; the start counts 0.05 at 0.5
    torch.testing.assert_close(
        baseline.mean_score(state), torch.tensor((1.0 + 0.025) / (3.0 + 0.05))
    )


def test_the_baseline_starts_neutral() -> None:
    state = baseline.start((), dtype=torch.float32)

    value = baseline.baseline(state, torch.tensor([[0.9, 0.7], [0.1, 0.1]]))

    torch.testing.assert_close(value, torch.full((2, 1), 0.5))


def test_the_baseline_learns_to_follow_the_group_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    state = baseline.start((), dtype=torch.float32)
    for _ in range(100):
        level = torch.rand(20, 1, generator=generator)
        measured = (torch.rand(20, 8, generator=generator) < level).float()
        state = baseline.update(
            state,
            level.expand(20, 8),
            measured,
            torch.ones(20, 8, dtype=torch.bool),
            torch.ones(20, 8),
            decay=0.9,
            slope_half_life=40.0,
        )

    value = baseline.baseline(state, torch.tensor([[0.9, 0.9], [0.1, 0.1]]))

    torch.testing.assert_close(value, torch.tensor([[0.9], [0.1]]), atol=0.08, rtol=0)


def test_residual_noise_is_learned_per_score() -> None:
    predicted = torch.tensor([[0.05] * 50, [0.95] * 50])
    gap = torch.tensor([[0.1] * 50, [0.5] * 50])
    state = residual_noise.update(
        residual_noise.start((), dtype=torch.float32),
        predicted,
        gap,
        torch.ones(2, 50, dtype=torch.bool),
        half_life=1e9,
    )

    low, high = residual_noise.deviation(state, torch.tensor([[0.05, 0.95]]))[0]

    # cells: (0.5 + 10 v) / 60 and (12.5 + 10 v) / 60 with level v = (13 + 1) / 110
    level = 14.0 / 110.0
    torch.testing.assert_close(low, torch.tensor(((0.5 + 10 * level) / 60) ** 0.5))
    torch.testing.assert_close(high, torch.tensor(((12.5 + 10 * level) / 60) ** 0.5))


def test_unexplored_scores_borrow_the_mean_noise() -> None:
    state = residual_noise.start((), dtype=torch.float32)

    value = residual_noise.deviation(state, torch.tensor([[0.5, 0.1]]))

    torch.testing.assert_close(value, torch.full((1, 2), 0.1**0.5))


def test_scale_is_the_root_of_the_running_mean_square() -> None:
    state = scale.start((), dtype=torch.float32)
    assert float(scale.root_mean_square(state.mixed, state.mixed_mass)) == 1.0
    for square in (4.0, 1.0):
        state = scale.update(state, torch.tensor(square), torch.tensor(0.0), decay=0.5)

    # (0.5 * 4 + 1) / (0.5 * 1 + 1) = 2
    torch.testing.assert_close(
        scale.root_mean_square(state.mixed, state.mixed_mass), torch.tensor(2.0**0.5)
    )


def test_steps_without_differences_do_not_shrink_the_scale() -> None:
    state = scale.start((), dtype=torch.float32)
    for square in (4.0, 0.0, 0.0):
        state = scale.update(state, torch.tensor(square), torch.tensor(0.0), decay=0.5)

    torch.testing.assert_close(
        scale.root_mean_square(state.mixed, state.mixed_mass), torch.tensor(2.0)
    )


def _task_state(pairs: int) -> task_lines.TaskState:
    generator = torch.Generator().manual_seed(0)
    calibrated = torch.rand(2, pairs, generator=generator)
    measured = torch.stack([calibrated[0], 0.5 * calibrated[1]])  # task 1: half as steep
    return task_lines.update(
        task_lines.start((), num_tasks=3, dtype=torch.float32),
        calibrated,
        measured,
        torch.ones(2, pairs, dtype=torch.bool),
        torch.tensor([0, 1]),
        half_life=1e9,
    )


def _span(state: task_lines.TaskState, task: int) -> float:
    scores = torch.tensor([[0.2, 0.8]])
    mapped = task_lines.apply(state, scores, torch.tensor([task]), task_pairs=50.0)
    return float(mapped[0, 1] - mapped[0, 0])


def test_a_task_with_many_pairs_follows_its_own_line() -> None:
    state = _task_state(5_000)

    assert abs(_span(state, 0) - 0.6) < 0.01
    assert abs(_span(state, 1) - 0.3) < 0.01


def test_a_task_with_few_pairs_follows_the_pooled_map() -> None:
    assert _span(_task_state(3), 1) > 0.5


def test_a_task_without_pairs_is_left_alone() -> None:
    torch.testing.assert_close(torch.tensor(_span(_task_state(10), 2)), torch.tensor(0.6))
