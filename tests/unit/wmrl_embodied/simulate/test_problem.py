"""The bandit is what it claims to be: a softmax policy with exact score vectors."""

import torch

from wmrl_embodied.simulate import problem as bandit


def _theta(seeds: int, cells: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return 0.5 * torch.randn(seeds, cells, bandit.DIMS, generator=generator)


def test_a_seeds_problem_does_not_depend_on_the_others() -> None:
    alone, together = bandit.make([3]), bandit.make([1, 3])

    assert torch.equal(alone.features[0], together.features[1])
    assert torch.equal(alone.reward[0], together.reward[1])


def test_rewards_are_expected_scores() -> None:
    reward = bandit.make([0]).reward

    assert 0.0 < float(reward.min()) < float(reward.max()) < 1.0


def test_the_policy_is_a_distribution() -> None:
    problem = bandit.make([0, 1])

    logp = bandit.log_policy(_theta(2, 3), problem.features)

    assert logp.shape == (2, 3, bandit.TASKS, bandit.ACTIONS)
    torch.testing.assert_close(logp.exp().sum(-1), torch.ones(2, 3, bandit.TASKS))


def test_score_vectors_are_gradients_of_the_log_probability() -> None:
    problem = bandit.make([0, 1])
    tasks = torch.tensor([[5], [9]])
    features = bandit.task_features(problem, tasks)
    theta = _theta(2, 3).requires_grad_()
    actions = torch.randint(0, bandit.ACTIONS, (2, 3, 1, 4))

    logp = bandit.log_policy(theta, features)
    scores = bandit.score_vectors(features, logp.detach(), actions)
    (gradient,) = torch.autograd.grad(logp.gather(-1, actions)[1, 2, 0, 3], theta)

    torch.testing.assert_close(scores[1, 2, 0, 3], gradient[1, 2], atol=1e-5, rtol=1e-4)


def test_the_uniform_policy_has_value_zero_and_the_best_one() -> None:
    made = bandit.make([0])
    direction = torch.randn(bandit.DIMS, generator=torch.Generator().manual_seed(0))
    problem = bandit.Problem(features=made.features, reward=(made.features @ direction).sigmoid())
    theta = torch.stack([torch.zeros_like(direction), 1e4 * direction]).unsqueeze(0)

    torch.testing.assert_close(
        bandit.value(problem, theta), torch.tensor([[0.0, 1.0]]), atol=1e-3, rtol=0
    )
