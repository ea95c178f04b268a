"""World models: nine ways to be right or wrong about a real score.

A score is s = clip(r + bias + σ ξ, 0, 1), with a bias that depends on the cell:

    none         0
    constant     the same optimism everywhere
    monotone     a compressed, bent scale: order is kept
    per_task     each task shifted by its own amount
    misordered   actions shifted along a direction of their features: order within groups is partly
                 wrong, in a way that a policy can learn
    exploitable  three bad actions of each task, alike in their features, look excellent
    drifting     as misordered, growing with the budget spent
    useless      independent of the real score
    adversarial  the real score reversed
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wmrl_embodied.seeding import torch_generator
from wmrl_embodied.simulate.problem import Problem

Bias = Literal[
    "none",
    "constant",
    "monotone",
    "per_task",
    "misordered",
    "exploitable",
    "drifting",
    "useless",
    "adversarial",
]
BIASES: tuple[Bias, ...] = get_args(Bias)
ORDERED: tuple[Bias, ...] = ("none", "constant", "monotone", "per_task")
"""Biases under which the world model still orders a group's rollouts correctly."""

_CONSTANT = 0.2
_MONOTONE = (0.3, 0.3)
_PER_TASK = 0.3
_MISORDERED = 0.5
_EXPLOITABLE = 0.9
_EXPLOITABLE_ACTIONS = 3
_DRIFTING = 0.7
_USELESS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One world model and kind of real score."""

    bias: Bias
    """How the world model is wrong."""

    noise: float
    """σ of its zero-mean noise."""

    binary: bool
    """Whether real scores are 0 or 1, or lie between."""

    @property
    def name(self) -> str:
        """Return a name such as ``none/0.1/binary``."""
        return f"{self.bias}/{self.noise}/{'binary' if self.binary else 'continuous'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldModels:
    """The world models of all cells, for several seeds."""

    cells: tuple[Cell, ...]
    task_shift: Float[Tensor, "seeds tasks"]
    action_shift: Float[Tensor, "seeds tasks actions"]
    exploit: Float[Tensor, "seeds tasks actions"]


def make(problem: Problem, seeds: list[int], cells: tuple[Cell, ...]) -> WorldModels:
    """Return the cells' world models; each seed's errors are drawn from its own stream."""
    shifts, directions = [], []
    for seed in seeds:
        generator = torch_generator(seed, "world-model")
        shifts.append(
            _PER_TASK * (2.0 * torch.rand(problem.reward.shape[1], generator=generator) - 1.0)
        )
        direction = torch.randn(problem.features.shape[-1], generator=generator)
        directions.append(direction / direction.norm())
    along = (problem.features @ torch.stack(directions)[:, None, :, None]).squeeze(-1)
    action_shift = (along - along.mean(-1, keepdim=True)) / along.std(-1, keepdim=True)
    good = problem.reward > problem.reward.median(-1, keepdim=True).values
    tempting = torch.where(good, -torch.inf, along).topk(_EXPLOITABLE_ACTIONS, dim=-1).indices
    return WorldModels(
        cells=cells,
        task_shift=torch.stack(shifts),
        action_shift=action_shift,
        exploit=torch.zeros_like(problem.reward).scatter(-1, tempting, _EXPLOITABLE),
    )


def real_scores(
    reward: Float[Tensor, "seeds cells groups group"],
    cells: tuple[Cell, ...],
    *,
    generator: torch.Generator,
) -> Float[Tensor, "seeds cells groups group"]:
    """Return one real score per rollout, with mean ``reward``: 0 or 1, or within ±0.4 μ(1 - μ)."""
    uniform = torch.rand(reward.shape, generator=generator)
    binary = (uniform < reward).to(reward.dtype)
    continuous = reward + 0.8 * (uniform - 0.5) * reward * (1.0 - reward)
    is_binary = torch.tensor([cell.binary for cell in cells])[:, None, None]
    return torch.where(is_binary, binary, continuous)


def predict(
    models: WorldModels,
    real: Float[Tensor, "seeds cells groups group"],
    tasks: Int[Tensor, "seeds groups"],
    actions: Int[Tensor, "seeds cells groups group"],
    *,
    progress: Float[Tensor, "seeds cells"],
    generator: torch.Generator,
) -> Float[Tensor, "seeds cells groups group"]:
    """Return the world models' scores in [0, 1].

    Args:
        models: What each cell's world model gets wrong.
        real: Real scores of the rollouts.
        tasks: Task of each group; all cells of a seed share them.
        actions: Action of each rollout.
        progress: Share of the budget spent, for the drifting world model.
        generator: Source of the noise.
    """
    noise = torch.randn(real.shape, generator=generator)
    index = torch.arange(tasks.shape[0])[:, None]
    shift = models.task_shift[index, tasks][:, :, None]
    by_action = _gather(models.action_shift, index, tasks, actions)
    exploit = _gather(models.exploit, index, tasks, actions)
    scores = torch.empty_like(real)
    for number, cell in enumerate(models.cells):
        r, drift = real[:, number], progress[:, number, None, None]
        scores[:, number] = cell.noise * noise[:, number] + _biased(
            cell.bias,
            r,
            shift=shift,
            by_action=by_action[:, number],
            exploit=exploit[:, number],
            drift=drift,
            other=noise[:, number].roll(1, -1),
        )
    return scores.clamp_(0.0, 1.0)


def _biased(
    bias: Bias,
    real: Tensor,
    *,
    shift: Tensor,
    by_action: Tensor,
    exploit: Tensor,
    drift: Tensor,
    other: Tensor,
) -> Tensor:
    if bias == "constant":
        return real + _CONSTANT
    if bias == "monotone":
        return _MONOTONE[0] + _MONOTONE[1] * real.square()
    if bias == "adversarial":
        return 1.0 - real
    if bias == "useless":
        return 0.5 + _USELESS * other
    added = {
        "none": torch.zeros_like(real),
        "per_task": shift,
        "misordered": _MISORDERED * by_action,
        "exploitable": exploit,
        "drifting": _DRIFTING * drift * by_action,
    }
    return real + added[bias]


def _gather(table: Tensor, index: Tensor, tasks: Tensor, actions: Tensor) -> Tensor:
    rows = table[index, tasks].unsqueeze(1).expand(-1, actions.shape[1], -1, -1)
    return rows.gather(-1, actions)
