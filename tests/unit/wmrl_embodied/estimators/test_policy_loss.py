"""The clipped loss equals the field's formulas, worked by hand and against TRL where installed."""

import math
from typing import Any

import pytest
import torch

from wmrl_embodied.estimators.policy_loss import (
    PolicyLossConfig,
    TokenBatch,
    kl_to_reference,
    policy_loss,
    truncated_importance_weight,
)
from wmrl_envs.errors import InvalidInputError

_OLD = torch.zeros(2, 3)
_RATIO = torch.tensor([[1.0, 1.5, 0.5], [1.0, 0.5, 9.0]])
_MASK = torch.tensor([[True, True, True], [True, True, False]])
_ADVANTAGE = torch.tensor([1.0, -2.0])
# clipped to [0.8, 1.2]: rollout 1 has min(1, 1) + min(1.5, 1.2) + min(0.5, 0.8) = 1 + 1.2 + 0.5,
# rollout 2 has min(-2, -2) + min(-1, -1.6) = -2 - 1.6; the loss is the negative of each
_FIRST, _SECOND = -2.7, 3.6


def _loss(**options: Any) -> float:
    config = PolicyLossConfig(**options)
    loss, _ = policy_loss(
        _RATIO.log(), _OLD, _ADVANTAGE, config=config, batch=TokenBatch(mask=_MASK)
    )
    return float(loss)


def test_grpo_averages_each_rollout_then_all() -> None:
    assert _loss(loss_type="grpo") == pytest.approx((_FIRST / 3 + _SECOND / 2) / 2)


def test_bnpo_averages_over_all_tokens() -> None:
    assert _loss(loss_type="bnpo") == pytest.approx((_FIRST + _SECOND) / 5)


def test_dr_grpo_divides_by_the_longest_possible_completion() -> None:
    assert _loss(loss_type="dr_grpo", max_tokens=10) == pytest.approx((_FIRST + _SECOND) / 20)


def test_dapo_divides_by_the_tokens_of_the_whole_update() -> None:
    loss, _ = policy_loss(
        _RATIO.log(),
        _OLD,
        _ADVANTAGE,
        config=PolicyLossConfig(loss_type="dapo"),
        batch=TokenBatch(mask=_MASK, tokens_in_update=50.0),
    )

    assert float(loss) == pytest.approx((_FIRST + _SECOND) / 50)
    assert _loss(loss_type="dapo") == pytest.approx((_FIRST + _SECOND) / 5)


def test_the_upper_clip_can_be_higher() -> None:
    # rollout 1 becomes 1 + min(1.5, 1.4) + 0.5
    assert _loss(epsilon_high=0.4) == pytest.approx((-2.9 / 3 + _SECOND / 2) / 2)


def test_sequence_ratios_are_geometric_means() -> None:
    # rollout 1: (1 * 1.5 * 0.5)^(1/3) = 0.9086; rollout 2: 0.5^(1/2) = 0.7071, clipped to 0.8
    first, second = 0.75 ** (1 / 3), 0.8
    expected = (-first * 1.0 + second * 2.0) / 2

    assert _loss(importance_sampling_level="sequence") == pytest.approx(expected)


def test_one_log_probability_per_rollout_is_one_token() -> None:
    logp, old = torch.tensor([[0.1, -0.2]]), torch.zeros(1, 2)
    advantage = torch.tensor([[1.0, -1.0]])

    per_rollout, _ = policy_loss(logp, old, advantage, config=PolicyLossConfig())
    per_token, _ = policy_loss(
        logp.unsqueeze(-1), old.unsqueeze(-1), advantage, config=PolicyLossConfig()
    )

    torch.testing.assert_close(per_rollout, per_token)
    # neither e^0.1 = 1.105 nor e^-0.2 = 0.819 is clipped
    assert float(per_rollout) == pytest.approx(-(math.exp(0.1) - math.exp(-0.2)) / 2)


def test_the_gradient_of_the_first_epoch_is_the_policy_gradient() -> None:
    logp = torch.zeros(2, 2, requires_grad=True)
    advantage = torch.tensor([[1.0, -1.0], [0.5, 0.0]])

    loss, _ = policy_loss(logp, logp.detach(), advantage, config=PolicyLossConfig())
    loss.backward()

    torch.testing.assert_close(logp.grad, -advantage / 4)


def test_clipped_tokens_have_no_gradient() -> None:
    logp = torch.tensor([0.5, -0.5]).requires_grad_()  # ratios 1.65 and 0.61

    loss, shown = policy_loss(
        logp, torch.zeros(2), torch.tensor([1.0, -1.0]), config=PolicyLossConfig()
    )
    loss.backward()

    torch.testing.assert_close(logp.grad, torch.zeros(2))
    assert shown["update/clip_fraction"] == 1.0


def test_kl_worked_by_hand() -> None:
    # d = 0.3 - 0 = 0.3: e^0.3 - 0.3 - 1
    value = kl_to_reference(torch.tensor([0.0]), torch.tensor([0.3]))

    torch.testing.assert_close(value, torch.tensor([math.exp(0.3) - 1.3]))


def test_kl_estimates_the_divergence_without_ever_being_negative() -> None:
    generator = torch.Generator().manual_seed(0)
    policy, reference = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.2, 0.3, 0.5])
    draws = torch.multinomial(policy, 200_000, replacement=True, generator=generator)

    estimates = kl_to_reference(policy.log()[draws], reference.log()[draws])

    truth = (policy * (policy / reference).log()).sum()
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / 200_000**0.5
    assert estimates.min() >= 0


def test_the_penalty_is_added_per_token() -> None:
    zeros = torch.zeros(1, 2)
    loss, shown = policy_loss(
        zeros,
        zeros,
        torch.zeros(1),
        config=PolicyLossConfig(beta=0.5),
        batch=TokenBatch(reference_logp=torch.tensor([[0.3, 0.0]])),
    )

    expected = (math.exp(0.3) - 1.3) / 2
    assert float(loss) == pytest.approx(0.5 * expected)
    assert shown["update/kl"] == pytest.approx(expected)


def test_importance_weights_are_truncated() -> None:
    weight = truncated_importance_weight(
        torch.tensor([0.0, 2.0]), torch.tensor([0.5, 0.0]), cap=2.0
    )

    torch.testing.assert_close(weight, torch.tensor([math.exp(-0.5), 2.0]))


def test_a_generator_that_disagrees_weighs_each_token() -> None:
    zeros = torch.zeros(1, 2)
    loss, shown = policy_loss(
        zeros,
        zeros,
        torch.ones(1),
        config=PolicyLossConfig(),
        batch=TokenBatch(generation_logp=torch.tensor([[0.5, -5.0]])),
    )

    assert float(loss) == pytest.approx(-(math.exp(-0.5) + 2.0) / 2)
    assert shown["update/mismatch"] == pytest.approx(2.75)  # (0.5 + 5) / 2


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"epsilon": 0.0}, r"epsilon must be in \(0, 1\), got 0.0"),
        ({"epsilon_high": -0.1}, "epsilon_high must be above 0, got -0.1"),
        ({"beta": -1.0}, "beta must be at least 0, got -1.0"),
        ({"loss_type": "dr_grpo"}, "max_tokens must be given"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"importance_weight_cap": 0.5}, "importance_weight_cap must be at least 1, got 0.5"),
    ],
)
def test_refuses_surrogates_without_meaning(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInputError, match=rule):
        PolicyLossConfig(**options)


def test_refuses_shapes_that_do_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="logp and old_logp must have shape"):
        policy_loss(torch.zeros(2, 3), torch.zeros(2, 2), torch.zeros(2), config=PolicyLossConfig())


def test_refuses_a_penalty_without_reference() -> None:
    with pytest.raises(InvalidInputError, match="reference_logp must be given"):
        policy_loss(
            torch.zeros(2), torch.zeros(2), torch.zeros(2), config=PolicyLossConfig(beta=0.1)
        )
