"""Monitor: is the world model biased? Measured without noise bias, and turned into η.

The residual gradient h_t = Σ e z / (N G) has mean ∇J - ∇J_{f'}: exactly the bias of the world
model's update. One step's h_t is mostly noise, so its squared norm says nothing; cross products
of *different* steps, Σ_{s≠t} ⟨h_s, h_t⟩, have the squared norm of the mean as expectation, and a
window of W steps holds W² of them. The trust with the least mean squared error is
η = b² / (b² + V/H); the lower confidence bound b² - k sd0 stands in for b².

Notation:
    h, g     residual and prediction gradient of a step, or sketches of them
    β        1 - 1/window;  a step's weight in every sum starts at (1 - β) ω and fades by β
    ω        information of a step: executed rollouts over the ordinary number
    b²       estimate of ‖E h‖²;  sd0: its standard deviation without bias;  V: noise of one h
    H        horizon, steps over which the optimiser averages noise
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_embodied.estimators import state_records

_PAIR_DECAY = 0.95
_PAIR_STEPS = 30.0
_PAIR_DIMENSIONS = 40.0
_LEAST_INFORMATION = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """Decayed sums over past steps; ``weights`` are (1 - β) ω times the fading of each step."""

    mean: Float[Tensor, "*runs dims"]
    """h̄: Σ weight h."""

    squares: Float[Tensor, "*runs"]
    """Q: Σ weight² ‖h‖², the terms of ‖h̄‖² that pair a step with itself."""

    weight: Float[Tensor, "*runs"]
    """W1: Σ weight."""

    weight_square: Float[Tensor, "*runs"]
    """W2: Σ weight²."""

    weight_fourth: Float[Tensor, "*runs"]
    """Q4: Σ weight⁴."""

    noise: Float[Tensor, "*runs"]
    """Vh: Σ weight ‖h‖²."""

    mass: Float[Tensor, "*runs"]
    """Vn: the same sum with ω = 1 and ‖h‖² = 1."""

    pair: Float[Tensor, "*runs"]
    """T: running mean of ω ω' ⟨h, h'⟩² over neighbouring steps, tr(Σ²) of the noise."""

    previous: Float[Tensor, "*runs dims"]
    """h of the last step."""

    previous_information: Float[Tensor, "*runs"]
    """ω of the last step; 0 before the first."""

    model_mean: Float[Tensor, "*runs dims"]
    """ḡ: Σ weight g, with ω the share of groups in use."""

    model_squares: Float[Tensor, "*runs"]
    """Q_g: Σ weight² ‖g‖²."""

    model_weight: Float[Tensor, "*runs"]
    """Σ weight of g."""

    model_weight_square: Float[Tensor, "*runs"]
    """Σ weight² of g."""

    steps: Float[Tensor, "*runs"]
    """Steps seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about the bias before a step."""

    bias: Float[Tensor, "*runs"]
    """b²: unbiased for ‖E h‖², so it may be negative; 0 before two steps."""

    deviation: Float[Tensor, "*runs"]
    """sd0; infinite before two steps."""

    noise: Float[Tensor, "*runs"]
    """V: expected ‖h - E h‖² of one step."""


def start(runs: tuple[int, ...], *, dims: int, dtype: torch.dtype) -> MonitorState:
    """Return a state without evidence.

    Args:
        runs: Leading shape.
        dims: Length of z, or of its sketch.
        dtype: Of every sum.
    """
    vectors = {"mean", "previous", "model_mean"}
    return MonitorState(
        **{
            field.name: torch.zeros((*runs, dims) if field.name in vectors else runs, dtype=dtype)
            for field in fields(MonitorState)
        }
    )


def update(
    state: MonitorState,
    residual: Float[Tensor, "*runs dims"],
    *,
    information: Float[Tensor, "*runs"],
    window: float,
) -> MonitorState:
    """Add one step; runs whose ``information`` is 0 (nothing came back) stay as they are.

    Args:
        state: Sums over past steps.
        residual: h.
        information: ω.
        window: Steps over which evidence is held, above 1.
    """
    beta = 1.0 - 1.0 / window
    omega = information.clamp_min(_LEAST_INFORMATION)
    weight, size = (1.0 - beta) * omega, residual.square().sum(-1)
    product = (residual * state.previous).sum(-1).square()
    pair = omega * state.previous_information * product
    pairs_before = (state.steps - 1.0).clamp_min(0.0)
    keep = _PAIR_DECAY * (pairs_before > 0).to(pair.dtype)  # the first pair stands for itself
    added = replace(
        state,
        mean=beta * state.mean + weight[..., None] * residual,
        squares=beta**2 * state.squares + weight**2 * size,
        weight=beta * state.weight + weight,
        weight_square=beta**2 * state.weight_square + weight**2,
        weight_fourth=beta**4 * state.weight_fourth + weight**4,
        noise=beta * state.noise + weight * size,
        mass=beta * state.mass + (1.0 - beta),
        pair=torch.lerp(pair, state.pair, keep),
        previous=residual,
        previous_information=omega,
        steps=state.steps + 1.0,
    )
    seen = information > 0
    return added if bool(seen.all()) else state_records.select(seen, added, state)


def update_signal(
    state: MonitorState,
    model: Float[Tensor, "*runs dims"],
    *,
    information: Float[Tensor, "*runs"],
    window: float,
) -> MonitorState:
    """Add one step's prediction gradient, which only the fallback asks about.

    Args:
        state: Sums over past steps.
        model: g.
        information: ω of g, the share of the ordinary groups in use.
        window: Steps over which evidence is held, above 1.
    """
    beta = 1.0 - 1.0 / window
    weight = (1.0 - beta) * information
    return replace(
        state,
        model_mean=beta * state.model_mean + weight[..., None] * model,
        model_squares=beta**2 * state.model_squares + weight**2 * model.square().sum(-1),
        model_weight=beta * state.model_weight + weight,
        model_weight_square=beta**2 * state.model_weight_square + weight**2,
    )


def signal(state: MonitorState) -> Float[Tensor, "*runs"]:
    """Return g²: an estimate of ‖E g‖² free of noise bias, held at 0 from below."""
    cross = state.model_weight**2 - state.model_weight_square
    known = cross > torch.finfo(cross.dtype).eps
    found = (state.model_mean.square().sum(-1) - state.model_squares) / torch.where(
        known, cross, 1.0
    )
    return torch.where(known, found, 0.0).clamp_min(0.0)


def evidence(state: MonitorState) -> Evidence:
    """Return the bias estimate and its uncertainty from past steps alone."""
    cross = state.weight**2 - state.weight_square
    known = state.steps >= 2
    divisor = torch.where(known, cross, 1.0)
    bias = torch.where(known, (state.mean.square().sum(-1) - state.squares) / divisor, 0.0)
    mass = state.mass.clamp_min(1e-12)
    noise = ((state.noise - bias.clamp_min(0.0) * state.weight) / mass).clamp_min(0.0)
    share = (state.steps / _PAIR_STEPS).clamp_max(1.0)
    pair = torch.lerp(noise**2 / _PAIR_DIMENSIONS, state.pair, share)
    spread = (state.weight_square**2 - state.weight_fourth).clamp_min(0.0)
    deviation = (2.0 * pair * spread).sqrt() / divisor
    return Evidence(
        bias=bias,
        deviation=torch.where(known, deviation, torch.inf),
        noise=noise,
    )


def lower_bound(found: Evidence, *, confidence: float) -> Float[Tensor, "*runs"]:
    """Return ``max(0, b² - k sd0)``."""
    return torch.where(
        found.deviation.isfinite(), found.bias - confidence * found.deviation, 0.0
    ).clamp_min(0.0)


def trust(
    found: Evidence, *, confidence: float, horizon: float, least: float
) -> Float[Tensor, "*runs"]:
    """Return ``η = L / (L + V/H)``, at least ``least``; L is the lower bound of the bias.

    Args:
        found: Evidence from past steps.
        confidence: k, standard deviations below the estimate.
        horizon: H.
        least: η when no bias is seen.
    """
    bound = lower_bound(found, confidence=confidence)
    noise = found.noise / horizon
    return torch.where(bound > 0, bound / (bound + noise).clamp_min(1e-30), 0.0).clamp(least, 1.0)


def fallback(
    found: Evidence,
    direction: Float[Tensor, "*runs"],
    *,
    active: Bool[Tensor, "*runs"],
    steps: Float[Tensor, "*runs"],
    confidence: float,
) -> Bool[Tensor, "*runs"]:
    """Return whether to stop using predictions at all and train on executed groups alone.

    A useless world model costs generation and scoring without giving direction. It is left when
    its bias dominates its signal, and used again when the bias has clearly fallen below it.

    Args:
        found: Evidence from past steps.
        direction: g², from :func:`signal`.
        active: Whether the fallback is on now.
        steps: Steps seen.
        confidence: k, standard deviations below the estimate.
    """
    bound = lower_bound(found, confidence=confidence)
    share = bound / (bound + direction).clamp_min(1e-30)
    enter = (share > 0.5) & (steps >= 5)
    leave = (share < 0.2) & (found.bias + 0.5 * found.deviation < direction)
    return torch.where(active, ~leave, enter)
