"""Checks of ``wmrl_embodied.policies.plan``."""

import pytest
import torch

from wmrl_embodied.policies.contract import Starts
from wmrl_embodied.policies.plan import PlanPolicy, PlanPolicyConfig
from wmrl_envs.errors import InvalidInputError


def _starts(groups: int, context: int = 0) -> Starts:
    generator = torch.Generator().manual_seed(1)
    return Starts(
        tasks=torch.arange(groups) % 2,
        init_states=torch.arange(groups),
        context=torch.randn(groups, context, generator=generator),
    )


def _policy(context: int = 0) -> PlanPolicy:
    policy = PlanPolicy(PlanPolicyConfig(dims=3, tasks=2, context=context))
    with torch.no_grad():
        policy.mean[0] = torch.tensor([0.5, -1.0, 2.0])
        policy.log_std[1] = torch.tensor([-0.5, 0.0, 0.3])
        policy.context_gain.normal_(generator=torch.Generator().manual_seed(2))
    return policy


def test_starts_around_the_mean_action_whatever_the_start() -> None:
    policy = PlanPolicy(PlanPolicyConfig(dims=2, tasks=1, context=4, start_std=0.5))
    mean, log_std = policy.moments(
        Starts(
            tasks=torch.zeros(3, dtype=torch.long),
            init_states=torch.arange(3),
            context=torch.randn(3, 4),
        )
    )
    assert torch.equal(mean, torch.zeros(3, 2))
    torch.testing.assert_close(log_std.exp(), torch.full((3, 2), 0.5))


def test_log_prob_is_the_density_of_torchs_normal() -> None:
    policy, starts = _policy(context=4), _starts(5, context=4)
    proposals = policy.propose(starts, 6, generator=torch.Generator().manual_seed(0))
    mean, log_std = policy.moments(starts)
    normal = torch.distributions.Normal(mean[:, None], log_std.exp()[:, None])
    expected = normal.log_prob(proposals.plans).sum(-1)
    torch.testing.assert_close(policy.log_prob(proposals), expected)
    torch.testing.assert_close(proposals.logp, expected)


def test_score_vectors_are_the_gradient_of_log_prob() -> None:
    policy, starts = _policy(), _starts(2)
    proposals = policy.propose(starts, 1, generator=torch.Generator().manual_seed(0))
    sketch = policy.score_vectors(proposals)
    logp = policy.log_prob(proposals)
    for group in range(2):
        parameters = (policy.mean, policy.log_std)
        mean, log_std = torch.autograd.grad(logp[group, 0], parameters, retain_graph=True)
        std = policy.log_std[group].detach().exp()
        # d log π/d m = ε/σ, so σ times it is ε; d log π/d log σ = ε² − 1.
        torch.testing.assert_close(sketch[group, 0, :3], mean[group] * std)
        torch.testing.assert_close(sketch[group, 0, 3:], log_std[group])


def test_score_vectors_have_mean_zero_under_the_policy() -> None:
    policy, starts = _policy(), _starts(2)
    proposals = policy.propose(starts, 20_000, generator=torch.Generator().manual_seed(0))
    sketch = policy.score_vectors(proposals)
    standard_error = sketch.std(1) / 20_000**0.5
    assert (sketch.mean(1).abs() < 4 * standard_error).all()


def test_exploration_stays_within_its_bounds() -> None:
    policy = PlanPolicy(PlanPolicyConfig(dims=1, tasks=1, min_std=0.2, max_std=1.5))
    with torch.no_grad():
        policy.log_std.fill_(-9.0)
    _, log_std = policy.moments(_starts(1))
    assert log_std.exp().item() == pytest.approx(0.2)


def test_refuses_exploration_that_starts_outside_its_bounds() -> None:
    with pytest.raises(InvalidInputError, match="min_std <= start_std <= max_std must hold"):
        PlanPolicyConfig(start_std=0.1)
