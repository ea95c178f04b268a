"""Task lines: each task's own line on the calibrated score, shrunk towards the identity.

A map pooled over tasks can be right on average and wrong on each. A task's line is fitted by
ridge regression whose prior, the identity, is worth ``task_pairs`` pairs: with few pairs of its
own a task follows the pooled map.

Notation:
    f, r      calibrated and real score of one executed rollout
    moments   decayed (n, Σ f, Σ r, Σ f², Σ f r) of each task
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """Moments of every task's executed rollouts."""

    moments: Float[Tensor, "*runs tasks 5"]
    """(n, Σ f, Σ r, Σ f², Σ f r)."""


def start(runs: tuple[int, ...], *, num_tasks: int, dtype: torch.dtype) -> TaskState:
    """Return a state without pairs."""
    return TaskState(moments=torch.zeros(*runs, num_tasks, 5, dtype=dtype))


def apply(
    state: TaskState,
    calibrated: Float[Tensor, "*runs groups group"],
    tasks: Int[Tensor, "*runs groups"],
    *,
    task_pairs: float,
) -> Float[Tensor, "*runs groups group"]:
    """Return each group's scores on its task's line, within [0, 1].

    Args:
        state: Past pairs.
        calibrated: f.
        tasks: Task of each group.
        task_pairs: Strength of the identity, in pairs.
    """
    moments = state.moments.gather(-2, tasks.unsqueeze(-1).expand(*tasks.shape, 5))
    count, sum_f, sum_r, sum_ff, sum_fr = moments.unsqueeze(-2).unbind(-1)
    mean_f, mean_r = sum_f / count.clamp_min(1.0), sum_r / count.clamp_min(1.0)
    variance = sum_ff - count * mean_f.square()
    covariance = sum_fr - count * mean_f * mean_r
    ridge = task_pairs * calibrated.var((-2, -1), keepdim=True, unbiased=False) + 1e-6
    slope = ((covariance + ridge) / (variance + ridge)).clamp_min(0.0)
    level = (count * mean_r + task_pairs * mean_f) / (count + task_pairs)
    return torch.where(count > 0, level + slope * (calibrated - mean_f), calibrated).clamp(0.0, 1.0)


def update(
    state: TaskState,
    calibrated: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
    tasks: Int[Tensor, "*runs groups"],
    *,
    half_life: float,
) -> TaskState:
    """Add one step's pairs; a task's older pairs fade by half for every ``half_life`` new ones.

    Args:
        state: Past pairs.
        calibrated: f, on the pooled map.
        measured: r; read only where ``observed``.
        observed: True where a real score exists.
        tasks: Task of each group.
        half_life: Pairs of the task.
    """
    f = torch.where(observed, calibrated, 0.0)
    r = torch.where(observed, measured, 0.0)
    added = torch.stack([observed.to(f.dtype), f, r, f * f, f * r], dim=-1).sum(-2)
    index = tasks.unsqueeze(-1).expand(*tasks.shape, 5)
    fresh = torch.zeros_like(state.moments).scatter_add(-2, index, added)
    fade = torch.exp2(-fresh[..., :1] / half_life)
    return TaskState(moments=state.moments * fade + fresh)
