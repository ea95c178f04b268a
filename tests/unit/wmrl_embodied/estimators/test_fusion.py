"""Inverse-variance fusion has known answers."""

import pytest
import torch

from wmrl_embodied.estimators import fusion
from wmrl_envs.errors import InvalidInputError


def test_fused_variance_is_below_both() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 1_000, generator=generator).double() + 1e-3

    assert (fusion.fused_variance(a, b) < torch.minimum(a, b)).all()


def test_weights_worked_by_hand() -> None:
    anchor, model = fusion.inverse_variance_weights(torch.tensor(4.0), torch.tensor(1.0))

    torch.testing.assert_close(anchor, torch.tensor(0.2))  # (1/4) / (1/4 + 1)
    torch.testing.assert_close(model, torch.tensor(0.8))


def test_fusing_measures_the_promised_variance() -> None:
    generator = torch.Generator().manual_seed(1)
    anchors = 2.0 * torch.randn(100_000, 1, generator=generator).double()
    model = torch.randn(100_000, 1, generator=generator).double()
    weight, _ = fusion.inverse_variance_weights(torch.tensor(4.0), torch.tensor(1.0))

    fused = fusion.fuse(anchors, model, anchor_weight=weight.double().expand(100_000))

    assert abs(fused.var() - 0.8) < 0.02  # 4 * 1 / (4 + 1)


def test_one_pass_equals_two_passes() -> None:
    generator = torch.Generator().manual_seed(2)
    z = torch.randn(24, 5, generator=generator).double()
    advantage = torch.randn(24, generator=generator).double()
    is_anchor = torch.arange(24) < 8
    weight = torch.tensor(0.3).double()

    two = fusion.fuse(
        (advantage * is_anchor) @ z / 8, (advantage * ~is_anchor) @ z / 16, anchor_weight=weight
    )
    per_rollout = torch.where(is_anchor, weight / 8, (1 - weight) / 16)
    one = (advantage * per_rollout) @ z

    assert (one - two).norm() / two.norm() < 5e-15


@pytest.mark.parametrize("variance", [0.0, -1.0])
def test_refuses_variances_that_are_not_positive(variance: float) -> None:
    with pytest.raises(InvalidInputError, match="model_variance must be above 0"):
        fusion.inverse_variance_weights(torch.tensor(1.0), torch.tensor(variance))
