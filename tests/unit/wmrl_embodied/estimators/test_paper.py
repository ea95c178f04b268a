"""The published rule, by its own numbers."""

import numpy as np
import torch
from torch import Tensor

from wmrl_embodied.estimators import paper


def _everything(scores: Tensor) -> Tensor:
    return torch.ones_like(scores, dtype=torch.bool)


def _pairs(groups: int, *, seed: int = 0, noise: float = 0.2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    measured = (torch.rand(groups, 8, generator=generator) < 0.5).float()
    predicted = (measured + noise * torch.randn(groups, 8, generator=generator)).clamp(0, 1)
    return predicted, measured


def _pushed(groups: int, *, steps: int = 1, noise: float = 0.2) -> paper.PaperState:
    state = paper.start((), capacity=paper.CAPACITY, dtype=torch.float32)
    for step in range(steps):
        predicted, measured = _pairs(groups, seed=step, noise=noise)
        state = paper.push(state, predicted, measured, _everything(measured))
    return state


def test_the_map_is_the_identity_until_200_pairs() -> None:
    early, later = _pushed(24), _pushed(25)  # 192 and 200 pairs

    torch.testing.assert_close(early.table, torch.linspace(0, 1, 21))
    assert not torch.allclose(later.table, torch.linspace(0, 1, 21))


def test_the_map_is_refitted_every_64_pairs() -> None:
    state = _pushed(25)
    predicted, measured = _pairs(7, seed=9)
    waiting = paper.push(state, predicted, measured, _everything(measured))  # 56 more
    predicted, measured = _pairs(1, seed=10)
    due = paper.push(waiting, predicted, measured, _everything(measured))  # 64 more

    torch.testing.assert_close(waiting.table, state.table)
    assert int(due.fitted) == 264


def test_the_map_interpolates_pooled_bin_means_and_clamps_the_ends() -> None:
    predicted = torch.tensor([0.15, 0.35, 0.85]).repeat_interleave(72).view(27, 8)
    measured = torch.tensor([0.4, 0.2, 0.9]).repeat_interleave(72).view(27, 8)
    state = paper.push(
        paper.start((), capacity=paper.CAPACITY, dtype=torch.float32),
        predicted,
        measured,
        _everything(measured),
    )

    # bins 1 and 3 violate the order and pool to 0.3; centres 0.15, 0.35, 0.85
    expected = np.interp(np.linspace(0, 1, 21), [0.15, 0.35, 0.85], [0.3, 0.3, 0.9])
    np.testing.assert_allclose(state.table.numpy(), expected, atol=1e-6)


def test_the_oldest_pairs_leave_when_5000_are_held() -> None:
    state = paper.start((), capacity=paper.CAPACITY, dtype=torch.float32)
    zeros, ones = torch.zeros(625, 8), torch.ones(625, 8)  # 5,000 each
    state = paper.push(state, torch.full_like(zeros, 0.5), zeros, _everything(zeros))
    state = paper.push(state, torch.full_like(ones, 0.5), ones, _everything(ones))

    assert int(state.pairs) == 10_000
    torch.testing.assert_close(state.table, torch.ones(21))


def test_anchor_weight_starts_at_one_becomes_two_after_32_groups_and_is_frozen_in_scale() -> None:
    before, after = _pushed(31), _pushed(32)

    assert float(paper.anchor_weight(before)) == 1.0
    torch.testing.assert_close(paper.anchor_weight(after), torch.tensor(2.0))
    predicted, measured = _pairs(64, seed=5, noise=0.6)  # the world model becomes worse
    worse = paper.push(after, predicted, measured, _everything(measured))
    torch.testing.assert_close(worse.factor, after.factor)
    assert paper.anchor_weight(worse) > 2.0


def test_anchor_weight_never_exceeds_four() -> None:
    state = _pushed(32)
    predicted, measured = _pairs(400, seed=5)
    worse = paper.push(state, 1.0 - predicted, measured, _everything(measured))

    assert float(paper.anchor_weight(worse)) == 4.0


def test_groups_without_spread_do_not_move_the_weight() -> None:
    state = _pushed(40)
    flat = torch.ones(3, 8)

    moved = paper.push(state, torch.rand(3, 8), flat, _everything(flat))

    torch.testing.assert_close(moved.error, state.error)
    torch.testing.assert_close(moved.groups, state.groups)


def test_advantages_worked_by_hand() -> None:
    state = paper.start((), capacity=paper.CAPACITY, dtype=torch.float32)
    predicted = torch.tensor([[0.9, 0.1], [0.8, 0.4]])
    measured = torch.tensor([[0.0, 1.0], [torch.nan, torch.nan]])
    observed = ~measured.isnan()

    advantage = paper.advantage(state, predicted, measured, observed, observed)

    # executed: (0 - 0.5) / (0.7071 + 1e-4), predicted: (0.8 - 0.6) / (0.2828 + 1e-4)
    expected = torch.tensor([[-0.70701, 0.70701], [0.70686, -0.70686]])
    torch.testing.assert_close(advantage, expected, atol=2e-5, rtol=0)


def test_a_missing_execution_is_left_out_not_scored() -> None:
    state = paper.start((), capacity=paper.CAPACITY, dtype=torch.float32)
    predicted = torch.tensor([[0.9, 0.1, 0.5]])
    measured = torch.tensor([[0.0, 1.0, torch.nan]])
    execute = torch.ones(1, 3, dtype=torch.bool)

    advantage = paper.advantage(state, predicted, measured, execute, ~measured.isnan())

    assert float(advantage[0, 2]) == 0.0
    torch.testing.assert_close(advantage[0, 0], -advantage[0, 1])
