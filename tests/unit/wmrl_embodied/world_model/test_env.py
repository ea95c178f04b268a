"""Checks of ``wmrl_embodied.world_model.env``."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

import wmrl_embodied  # noqa: F401  (registers the id)
from wmrl_embodied.policies.contract import Starts
from wmrl_embodied.policies.plan import PlanPolicy, PlanPolicyConfig
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig, PlanLatentModel
from wmrl_envs.errors import InvalidInputError


@pytest.fixture(scope="module")
def model() -> PlanLatentModel:
    generator = torch.Generator().manual_seed(0)
    starts = Starts(
        tasks=torch.arange(12) % 2,
        init_states=torch.arange(12),
        context=torch.randn(12, 3, generator=generator),
    )
    proposals = PlanPolicy(PlanPolicyConfig(dims=2, tasks=2)).propose(
        starts, 8, generator=generator
    )
    scores = (proposals.plans.square().sum(-1) < 1.4).float()
    fitted = PlanLatentModel(PlanLatentConfig(), num_tasks=2)
    fitted.observe(proposals, scores, torch.ones(12, 8, dtype=torch.bool))
    fitted.fit()
    return fitted


def test_keeps_the_gymnasium_contract(model: PlanLatentModel) -> None:
    with warnings.catch_warnings():
        # Plans are unbounded latents: the checker recommends boxes of [-1, 1].
        warnings.simplefilter("ignore", UserWarning)
        check_env(gym.make("WMRL-WorldModel", model=model).unwrapped, skip_render_check=True)


def test_a_thousand_episodes_are_scored_at_once(model: PlanLatentModel) -> None:
    env = gym.make_vec("WMRL-WorldModel", num_envs=1000, model=model)
    observation, _ = env.reset(seed=0)
    assert observation["context"].shape == (1000, 3)
    _, reward, terminated, truncated, info = env.step(np.zeros((1000, 2), dtype=np.float32))
    assert reward.shape == info["score_std"].shape == (1000,)
    assert terminated.all()
    assert not truncated.any()
    assert reward.min() > 0.5  # the middle of the plan space succeeds


def test_one_and_many_agree(model: PlanLatentModel) -> None:
    one, many = (
        gym.make("WMRL-WorldModel", model=model),
        gym.make_vec("WMRL-WorldModel", num_envs=1, model=model),
    )
    one.reset(seed=3)
    many.reset(seed=3)
    plan = np.array([0.3, -1.1], dtype=np.float32)
    assert one.step(plan)[1] == many.step(plan[None])[1][0]


def test_refuses_a_plan_that_is_not_finite(model: PlanLatentModel) -> None:
    env = gym.make_vec("WMRL-WorldModel", num_envs=2, model=model)
    env.reset(seed=0)
    with pytest.raises(InvalidInputError, match=r"must be finite .* with 1 non-finite entries"):
        env.step(np.array([[0.0, np.nan], [0.0, 0.0]], dtype=np.float32))


def test_refuses_a_step_before_reset(model: PlanLatentModel) -> None:
    env = gym.make_vec("WMRL-WorldModel", num_envs=2, model=model)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros((2, 2), dtype=np.float32))


def test_refuses_a_model_that_has_seen_nothing() -> None:
    with pytest.raises(InvalidInputError, match="must have observed at least one start"):
        gym.make_vec(
            "WMRL-WorldModel", num_envs=2, model=PlanLatentModel(PlanLatentConfig(), num_tasks=1)
        )
