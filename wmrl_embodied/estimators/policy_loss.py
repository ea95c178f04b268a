"""Policy loss: the clipped surrogate of GRPO, in the variants of the field.

Notation:
    ratio      exp(logp - old_logp), per token or per sequence
    advantage  one number per rollout
    loss type  how the per-token losses L_it of rollouts i with T_i tokens become one number:
        grpo     mean over rollouts of Σ_t L_it / T_i
        bnpo     Σ_it L_it / Σ_i T_i, over the batch at hand
        dr_grpo  Σ_it L_it / (rollouts · max_tokens): no length enters
        dapo     Σ_it L_it / tokens of the whole update, over all processes and accumulations

Source: GRPO (arXiv 2402.03300), Dr. GRPO (2503.20783), DAPO (2503.14476), GSPO (2507.18071) for
sequence ratios; option names as in TRL.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyLossConfig:
    """Which surrogate is minimised."""

    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "grpo"
    """How per-token losses become one number."""

    importance_sampling_level: Literal["token", "sequence"] = "token"
    """Whether ratios are per token, or the geometric mean over a sequence's tokens."""

    epsilon: float = 0.2
    """Lower clip of the ratio is 1 - epsilon."""

    epsilon_high: float | None = None
    """Upper clip of the ratio is 1 + epsilon_high; None takes ``epsilon``."""

    beta: float = 0.0
    """Weight of the divergence from the reference policy."""

    max_tokens: int | None = None
    """Longest completion that could have been generated; needed by ``dr_grpo``."""

    importance_weight_cap: float = 2.0
    """Upper bound of the weights that correct for the generator's log-probabilities."""

    def __post_init__(self) -> None:
        """Reject surrogates without a trust region or with a negative penalty."""
        if not 0.0 < self.epsilon < 1.0:
            raise InvalidInputError(f"epsilon must be in (0, 1), got {self.epsilon}")
        if self.epsilon_high is not None and not self.epsilon_high > 0.0:
            raise InvalidInputError(f"epsilon_high must be above 0, got {self.epsilon_high}")
        if not self.beta >= 0.0:
            raise InvalidInputError(f"beta must be at least 0, got {self.beta}")
        if not self.importance_weight_cap >= 1.0:
            raise InvalidInputError(
                f"importance_weight_cap must be at least 1, got {self.importance_weight_cap}"
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidInputError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if self.loss_type == "dr_grpo" and self.max_tokens is None:
            raise InvalidInputError("max_tokens must be given with loss_type='dr_grpo', got None")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenBatch:
    """What the loss needs beside log-probabilities and advantages; each part is optional."""

    mask: Bool[Tensor, "*rollouts tokens"] | None = None
    """True on the tokens that the policy generated; None: all."""

    reference_logp: Float[Tensor, "*rollouts tokens"] | None = None
    """Log-probabilities under the reference policy, for ``beta``."""

    generation_logp: Float[Tensor, "*rollouts tokens"] | None = None
    """Log-probabilities as the generation engine computed them, if that is not the trainer."""

    tokens_in_update: float | None = None
    """Tokens of the whole update, for ``dapo`` over several batches; None: this batch's."""


def policy_loss(
    logp: Float[Tensor, "..."],
    old_logp: Float[Tensor, "..."],
    advantage: Float[Tensor, "*rollouts"],
    *,
    config: PolicyLossConfig,
    batch: TokenBatch | None = None,
) -> tuple[Float[Tensor, ""], dict[str, float]]:
    """Return the loss to minimise, and what a log should show of it.

    Args:
        logp: Log-probabilities under the policy in training, ``(*rollouts, tokens)``; of the same
            shape as ``advantage`` they are taken as those of whole rollouts (one token each).
        old_logp: The same under the policy that generated the rollouts; no gradient.
        advantage: One number per rollout; no gradient.
        config: The surrogate.
        batch: Mask, reference and generator.

    Returns:
        The loss, and ``update/ratio``, ``update/clip_fraction``, ``update/kl`` (with ``beta``)
        and ``update/mismatch`` (with a generator).

    Raises:
        InvalidInputError: If shapes do not fit, or ``beta`` is set without a reference.
    """
    batch = TokenBatch() if batch is None else batch
    if logp.dim() == advantage.dim():
        logp, old_logp = logp.unsqueeze(-1), old_logp.unsqueeze(-1)
    if logp.shape != old_logp.shape or logp.shape[:-1] != advantage.shape:
        raise InvalidInputError(
            "logp and old_logp must have shape (*advantage.shape, tokens), got "
            f"{tuple(logp.shape)}, {tuple(old_logp.shape)} and advantage {tuple(advantage.shape)}"
        )
    mask = torch.ones_like(logp, dtype=torch.bool) if batch.mask is None else batch.mask
    old_logp, weight = old_logp.detach(), advantage.detach().unsqueeze(-1)
    ratio = importance_ratio(logp, old_logp, mask, level=config.importance_sampling_level)
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    clipped = ratio.clamp(1.0 - config.epsilon, 1.0 + high)
    loss = -torch.minimum(ratio * weight, clipped * weight).expand_as(logp)
    is_clipped = ((ratio < 1.0 - config.epsilon) & (weight < 0)) | (
        (ratio > 1.0 + high) & (weight > 0)
    )
    shown = {
        "update/ratio": _mean(ratio.detach().expand_as(logp), mask),
        "update/clip_fraction": _mean(is_clipped.expand_as(logp).to(logp.dtype), mask),
    }
    if batch.generation_logp is not None:
        correction = truncated_importance_weight(
            old_logp, batch.generation_logp, cap=config.importance_weight_cap
        )
        loss = loss * correction
        shown["update/mismatch"] = _mean((old_logp - batch.generation_logp).abs(), mask)
    if config.beta > 0.0:
        if batch.reference_logp is None:
            raise InvalidInputError("reference_logp must be given with beta > 0, got None")
        divergence = kl_to_reference(logp, batch.reference_logp)
        loss = loss + config.beta * divergence
        shown["update/kl"] = _mean(divergence.detach(), mask)
    return reduce_loss(loss, mask, config=config, tokens_in_update=batch.tokens_in_update), shown


def importance_ratio(
    logp: Float[Tensor, "*rollouts tokens"],
    old_logp: Float[Tensor, "*rollouts tokens"],
    mask: Bool[Tensor, "*rollouts tokens"],
    *,
    level: Literal["token", "sequence"],
) -> Float[Tensor, "*rollouts tokens_or_one"]:
    """Return exp(logp - old_logp) per token, or once per sequence from the mean over its tokens."""
    difference = torch.where(mask, logp - old_logp, 0.0)
    if level == "token":
        return difference.exp()
    return (difference.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp_min(1)).exp()


def kl_to_reference(
    logp: Float[Tensor, "*rollouts tokens"], reference_logp: Float[Tensor, "*rollouts tokens"]
) -> Float[Tensor, "*rollouts tokens"]:
    """Return ``exp(d) - d - 1`` with d = reference - logp: an estimate of KL, never negative.

    Its expectation under the policy is KL(policy ‖ reference), with less variance than -d.
    """
    difference = reference_logp.detach() - logp
    return difference.exp() - difference - 1.0


def truncated_importance_weight(
    train_logp: Float[Tensor, "*rollouts tokens"],
    generation_logp: Float[Tensor, "*rollouts tokens"],
    *,
    cap: float,
) -> Float[Tensor, "*rollouts tokens"]:
    """Return ``min(exp(train - generation), cap)``, without gradient.

    Generation engines and trainers disagree in the last digits, or by an update; the weight
    corrects for it, and the cap bounds what one token can do.

    Args:
        train_logp: Log-probabilities by the trainer, of the policy that generated.
        generation_logp: The same by the generation engine.
        cap: Upper bound, at least 1.
    """
    return (train_logp - generation_logp).detach().exp().clamp_max(cap)


def reduce_loss(
    loss: Float[Tensor, "*rollouts tokens"],
    mask: Bool[Tensor, "*rollouts tokens"],
    *,
    config: PolicyLossConfig,
    tokens_in_update: float | None = None,
) -> Float[Tensor, ""]:
    """Return one number from per-token losses by ``config.loss_type``.

    Args:
        loss: L_it.
        mask: True on generated tokens.
        config: The surrogate.
        tokens_in_update: Divisor of ``dapo``; None: tokens of this batch.
    """
    kept = torch.where(mask, loss, 0.0)
    if config.loss_type == "grpo":
        return (kept.sum(-1) / mask.sum(-1).clamp_min(1)).mean()
    if config.loss_type == "dr_grpo":
        rollouts = mask.numel() / mask.shape[-1]
        return kept.sum() / (rollouts * float(config.max_tokens or mask.shape[-1]))
    if config.loss_type == "dapo" and tokens_in_update is not None:
        return kept.sum() / tokens_in_update
    return kept.sum() / mask.sum().clamp_min(1)


def _mean(values: Tensor, mask: Tensor) -> float:
    return float(torch.where(mask, values, 0.0).sum() / mask.sum().clamp_min(1))
