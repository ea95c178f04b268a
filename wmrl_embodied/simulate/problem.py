"""Problem: a contextual bandit whose policy is small enough to run hundreds side by side.

Each seed has its own tasks, features and rewards; the cells of a seed share them, so that
estimators are compared on the same problems.

Notation:
    seeds, cells   independent problems, and world models tried on each
    tasks          X; actions A; dims D: length of the feature vector and of the policy's θ
    policy         π(a|x) ∝ exp(θ · φ(x, a))
    reward         μ(x, a), expected real score
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wmrl_embodied.seeding import torch_generator

TASKS = 64
ACTIONS = 32
DIMS = 96
_FEATURE_NORM = 3.0
_REWARD_SCALE = 1.5
_UNMODELLED_SCALE = 0.3
_DIFFICULTY = (-2.0, 0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Problems of several seeds."""

    features: Float[Tensor, "seeds tasks actions dims"]
    """φ."""

    reward: Float[Tensor, "seeds tasks actions"]
    """μ."""


def make(seeds: list[int]) -> Problem:
    """Return the problems of the given seeds; a seed's problem does not depend on the others."""
    problems = [_make_one(seed) for seed in seeds]
    return Problem(
        features=torch.stack([features for features, _ in problems]),
        reward=torch.stack([reward for _, reward in problems]),
    )


def _make_one(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch_generator(seed, "problem")
    features = torch.randn(TASKS, ACTIONS, DIMS, generator=generator)
    direction = torch.randn(DIMS, generator=generator)
    direction = direction / direction.norm()
    unmodelled = torch.randn(TASKS, ACTIONS, generator=generator)
    mean, spread = _DIFFICULTY
    difficulty = mean + spread * torch.randn(TASKS, 1, generator=generator)
    logit = _REWARD_SCALE * (features @ direction) + _UNMODELLED_SCALE * unmodelled + difficulty
    return features * (_FEATURE_NORM / DIMS**0.5), logit.sigmoid()


def task_features(
    problem: Problem, tasks: Int[Tensor, "seeds groups"]
) -> Float[Tensor, "seeds groups actions dims"]:
    """Return φ of the drawn tasks."""
    index = torch.arange(tasks.shape[0])[:, None]
    return problem.features[index, tasks]


def log_policy(
    theta: Float[Tensor, "seeds cells dims"], features: Float[Tensor, "seeds groups actions dims"]
) -> Float[Tensor, "seeds cells groups actions"]:
    """Return log π(·|x) of every run on its seed's tasks."""
    seeds, groups, actions, dims = features.shape
    logits = theta @ features.reshape(seeds, groups * actions, dims).mT
    return logits.view(seeds, -1, groups, actions).log_softmax(-1)


def score_vectors(
    features: Float[Tensor, "seeds groups actions dims"],
    logp: Float[Tensor, "seeds cells groups actions"],
    actions: Int[Tensor, "seeds cells groups group"],
) -> Float[Tensor, "seeds cells groups group dims"]:
    """Return z_j = φ(x, a_j) - E_π φ(x), the gradient of log π(a_j|x)."""
    seeds, groups, count, dims = features.shape
    expected = (logp.exp().transpose(1, 2) @ features).transpose(1, 2)
    first = torch.arange(seeds * groups).view(seeds, 1, groups, 1) * count
    chosen = features.reshape(-1, dims).index_select(0, (first + actions).flatten())
    return chosen.view(*actions.shape, dims).sub_(expected.unsqueeze(-2))


def value(
    problem: Problem, theta: Float[Tensor, "seeds cells dims"]
) -> Float[Tensor, "seeds cells"]:
    """Return each run's normalised expected real score: 0 for the uniform policy, 1 at the best."""
    logp = log_policy(theta, problem.features)
    reached = (logp.exp() * problem.reward.unsqueeze(1)).sum(-1).mean(-1)
    uniform = problem.reward.mean((-2, -1)).unsqueeze(1)
    best = problem.reward.amax(-1).mean(-1).unsqueeze(1)
    return (reached - uniform) / (best - uniform)
