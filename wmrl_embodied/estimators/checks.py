"""Checks at the boundary of the estimators: scores, shapes and the order of events."""

import torch
from torch import Tensor

from wmrl_embodied.estimators.anchors import Draw
from wmrl_envs.errors import InvalidInputError


def check_predicted(
    predicted: Tensor, tasks: Tensor, *, runs: tuple[int, ...], num_tasks: int
) -> None:
    """Reject predicted scores that are no scores, and shapes that do not fit.

    Raises:
        InvalidInputError: Naming the value and the rule.
    """
    if predicted.dim() != len(runs) + 2 or tuple(predicted.shape[:-2]) != runs:
        raise InvalidInputError(
            f"predicted must have shape {(*runs, 'groups', 'group')}, got {tuple(predicted.shape)}"
        )
    if predicted.shape[-1] < 2:
        raise InvalidInputError(
            f"group must hold at least 2 rollouts, got {predicted.shape[-1]}; "
            "a group compares its rollouts with each other"
        )
    if tasks.shape != predicted.shape[:-1]:
        raise InvalidInputError(
            f"tasks must have shape {tuple(predicted.shape[:-1])}, got {tuple(tasks.shape)}"
        )
    low, high = predicted.aminmax()
    if not (float(low) >= 0.0 and float(high) <= 1.0):
        raise InvalidInputError(
            f"predicted must be in [0, 1] and not NaN, got {float(low)} to {float(high)}"
        )
    first, last = tasks.aminmax()
    if int(first) < 0 or int(last) >= num_tasks:
        raise InvalidInputError(
            f"tasks must be in [0, {num_tasks - 1}], got {int(first)} to {int(last)}; "
            "pass num_tasks to the estimator"
        )


def check_sensitivity(sensitivity: Tensor, predicted: Tensor) -> None:
    """Reject gradient norms that could not weigh a draw.

    Raises:
        InvalidInputError: Naming the value and the rule.
    """
    if sensitivity.shape != predicted.shape:
        raise InvalidInputError(
            f"sensitivity must have shape {tuple(predicted.shape)}, got {tuple(sensitivity.shape)}"
        )
    low, high = sensitivity.aminmax()
    if not (float(low) >= 0.0 and float(high) < torch.inf):
        raise InvalidInputError(
            f"sensitivity must be at least 0 and finite, got {float(low)} to {float(high)}"
        )


def check_sketch(sketch: Tensor, predicted: Tensor) -> None:
    """Reject score vectors that do not belong to the rollouts.

    Raises:
        InvalidInputError: Naming the value and the rule.
    """
    if sketch.shape[:-1] != predicted.shape or sketch.shape[-1] == 0:
        raise InvalidInputError(
            f"sketch must have shape {(*predicted.shape, 'dims')}, got {tuple(sketch.shape)}"
        )


def check_measured(measured: Tensor, predicted: Tensor, draw: Draw) -> Tensor:
    """Return which rollouts were really observed: drawn, and back with a score.

    Raises:
        InvalidInputError: If a score lies outside [0, 1], a shape does not fit, or a score exists
            for a rollout that was not drawn. Such an anchor was chosen after the fact, perhaps
            because of its score, and no probability can correct for it.
    """
    for name, value in (
        ("measured", measured),
        ("draw.execute", draw.execute),
        ("draw.probability", draw.probability),
    ):
        if value.shape != predicted.shape:
            raise InvalidInputError(
                f"{name} must have shape {tuple(predicted.shape)}, got {tuple(value.shape)}"
            )
    scored = ~measured.isnan()
    if bool((scored & ~draw.execute).any()):
        count = int((scored & ~draw.execute).sum())
        raise InvalidInputError(
            f"measured must be NaN wherever draw.execute is false, got {count} scores outside the "
            "draw; choose what to execute before any score is seen"
        )
    low, high = torch.where(scored, measured, 0.5).aminmax()
    if not (float(low) >= 0.0 and float(high) <= 1.0):
        raise InvalidInputError(
            f"measured must be in [0, 1], or NaN where missing, got {float(low)} to {float(high)}"
        )
    return scored
