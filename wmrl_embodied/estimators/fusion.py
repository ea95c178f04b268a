"""Fusion: two unbiased estimates of one gradient, weighted by their inverse variances.

Notation:
    ĝ_A, ĝ_W   gradient estimates from anchors and from the world model
    σ_A², σ_W² their variances: V_E / n_A and V_WM / n_W

Source: textbook inverse-variance weighting; World Model RL (arXiv 2608.12564). With rewards
standardised in each group both variances come out equal, so the variance to use is that of the
*error against truth on anchors*.
"""

from jaxtyping import Float
from torch import Tensor

from wmrl_envs.errors import InvalidInputError


def inverse_variance_weights(
    anchor_variance: Float[Tensor, "*runs"], model_variance: Float[Tensor, "*runs"]
) -> tuple[Float[Tensor, "*runs"], Float[Tensor, "*runs"]]:
    """Return (w_A, w_W) with w_A + w_W = 1 and w_A = σ_A⁻² / (σ_A⁻² + σ_W⁻²).

    Args:
        anchor_variance: σ_A², above 0.
        model_variance: σ_W², above 0.

    Raises:
        InvalidInputError: If a variance is not above 0.
    """
    for name, value in (("anchor_variance", anchor_variance), ("model_variance", model_variance)):
        if not bool((value > 0).all()):
            raise InvalidInputError(f"{name} must be above 0, got {float(value.min())}")
    anchor = model_variance / (anchor_variance + model_variance)
    return anchor, 1.0 - anchor


def fused_variance(
    anchor_variance: Float[Tensor, "*runs"], model_variance: Float[Tensor, "*runs"]
) -> Float[Tensor, "*runs"]:
    """Return the variance of the fused estimate, below both."""
    return anchor_variance * model_variance / (anchor_variance + model_variance)


def fuse(
    anchor: Float[Tensor, "*runs dims"],
    model: Float[Tensor, "*runs dims"],
    *,
    anchor_weight: Float[Tensor, "*runs"],
) -> Float[Tensor, "*runs dims"]:
    """Return ``w_A ĝ_A + (1 - w_A) ĝ_W``: two passes, one sum.

    Weighting each rollout's advantage instead and passing backwards once gives the same vector.
    """
    weight = anchor_weight[..., None]
    return weight * anchor + (1.0 - weight) * model
