"""Diagnostics: what a user sees of the estimator at each step.

Errors are taken on this step's executed rollouts, which the calibrator has not seen yet: they are
held-out errors.

Notation:
    before, after   errors of the raw and of the calibrated score: s - r and f - r
    growth          see :mod:`wmrl_embodied.estimators.alarm`
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_embodied.estimators import alarm, coefficients, slope
from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.linear import Step
from wmrl_embodied.estimators.state import EstimatorState


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """One step in numbers; NaN where the step had nothing to measure."""

    eta: Float[Tensor, "*runs"]
    """η, trust in the residual."""

    slope: Float[Tensor, "*runs"]
    """λ, within-group slope on the calibrated score."""

    slope_raw: Float[Tensor, "*runs"]
    """Within-group slope on the raw score."""

    r_squared: Float[Tensor, "*runs"]
    """Within-group R² of past executed rollouts."""

    rank_correlation: Float[Tensor, "*runs"]
    """Kendall's τ within groups between raw and real scores, this step; ties count as 0."""

    bias_before: Float[Tensor, "*runs"]
    """Mean of s - r."""

    bias_after: Float[Tensor, "*runs"]
    """Mean of f - r."""

    noise_before: Float[Tensor, "*runs"]
    """Variance of s - r."""

    noise_after: Float[Tensor, "*runs"]
    """Variance of f - r."""

    real_share: Float[Tensor, "*runs"]
    """Share of the update's weight that rests on real executions."""

    asked: Float[Tensor, "*runs"]
    """Rollouts drawn for execution."""

    realised: Float[Tensor, "*runs"]
    """Of those, rollouts that came back with a score."""

    missing: Float[Tensor, "*runs"]
    """Of those, rollouts that did not."""

    bias_square: Float[Tensor, "*runs"]
    """b², squared norm of the bias of the world model's update, free of noise bias."""

    bias_deviation: Float[Tensor, "*runs"]
    """sd0, standard deviation of b² without bias."""

    growth: Float[Tensor, "*runs"]
    """Growth of (predicted - real) since the start."""

    alarm: Bool[Tensor, "*runs"]
    """Whether the world model is being exploited; η is 1 meanwhile."""

    fallback: Bool[Tensor, "*runs"]
    """Whether predictions are out of use."""

    scale: Float[Tensor, "*runs"]
    """What advantages were divided by."""

    @property
    def refresh_requested(self) -> bool:
        """Whether the world model should be fitted anew before it is used again."""
        return bool(self.alarm.any())

    def metrics(self) -> dict[str, float]:
        """Return every number, averaged over runs, under ``estimator/`` names."""
        return {
            f"estimator/{field.name}": float(getattr(self, field.name).to(torch.float64).mean())
            for field in fields(self)
        }


def error_moments(
    scores: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> tuple[Float[Tensor, "*runs"], Float[Tensor, "*runs"]]:
    """Return mean and variance of ``scores - measured`` over ``observed``; NaN where empty."""
    count = observed.sum((-2, -1))
    error = torch.where(observed, scores - measured, 0.0)
    mean = error.sum((-2, -1)) / count
    return mean, error.square().sum((-2, -1)) / count - mean.square()


def rank_correlation(
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    observed: Bool[Tensor, "*runs groups group"],
) -> Float[Tensor, "*runs"]:
    """Return Kendall's τ over pairs of one group whose real scores differ; NaN without any."""
    real = torch.where(observed, measured, 0.0)
    usable = observed.unsqueeze(-1) & observed.unsqueeze(-2)
    order = torch.sign(real.unsqueeze(-1) - real.unsqueeze(-2)) * usable
    said = torch.sign(predicted.unsqueeze(-1) - predicted.unsqueeze(-2))
    return (order * said).sum((-3, -2, -1)) / order.abs().sum((-3, -2, -1))


def diagnose(
    state: EstimatorState,
    step: Step,
    predicted: Float[Tensor, "*runs groups group"],
    measured: Float[Tensor, "*runs groups group"],
    draw: Draw,
    observed: Bool[Tensor, "*runs groups group"],
) -> Diagnostics:
    """Return a step's diagnostics.

    Args:
        state: Past knowledge.
        step: The step in the terms of the linear rule.
        predicted: Raw world-model scores.
        measured: Real scores; read only where ``observed``.
        draw: What was drawn.
        observed: What came back.
    """
    both = torch.stack([predicted, step.calibrated])
    bias, noise = error_moments(both, measured.expand_as(both), observed.expand_as(both))
    asked, realised = draw.execute.sum((-2, -1)), observed.sum((-2, -1))
    return Diagnostics(
        eta=step.eta,
        slope=step.slopes[..., 0],
        slope_raw=step.slopes[..., 1],
        r_squared=slope.explained(state.slope, step.slopes),
        rank_correlation=rank_correlation(predicted, measured, observed),
        bias_before=bias[0],
        bias_after=bias[1],
        noise_before=noise[0],
        noise_after=noise[1],
        real_share=coefficients.real_share(step.residual, step.coefficient, step.eta),
        asked=asked.to(predicted.dtype),
        realised=realised.to(predicted.dtype),
        missing=(asked - realised).to(predicted.dtype),
        bias_square=step.evidence.bias,
        bias_deviation=step.evidence.deviation,
        growth=alarm.growth(state.alarm),
        alarm=state.alarm.on,
        fallback=state.progress.fallback,
        scale=step.root,
    )
