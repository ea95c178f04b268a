"""Checks of ``wmrl_embodied.policies.small_vla`` on small random weights of the true architecture."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from wmrl_embodied.policies.contract import Observation, PlanMemory
from wmrl_embodied.policies.small_vla import (
    SmallVLA,
    SmallVLAConfig,
    chunk_log_prob,
    plan_offsets,
    proprioception,
    tokenize,
)
from wmrl_envs.errors import InvalidInputError


def _policy(**overrides: Any) -> SmallVLA:
    torch.manual_seed(0)
    return SmallVLA(SmallVLAConfig(**overrides)).eval()


def _observation(size: int = 64, task: str = "put the book in the caddy") -> Observation:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (2, size, size, 3), dtype=np.uint8)
    return {
        "images": {"agentview": image[0], "wrist": image[1]},
        "state": np.array([0.1, -0.2, 1.0, 3.1, 0.1, 0.0, 0.04, -0.04], dtype=np.float32),
        "task": task,
    }


def test_mean_action_is_deterministic_and_legal() -> None:
    policy, plan = _policy(), torch.zeros(8)
    first = policy.act(_observation(), plan, PlanMemory())
    again = policy.act(_observation(), plan, PlanMemory())
    assert np.array_equal(first.actions, again.actions)
    assert first.actions.shape == (8, 7)
    assert np.abs(first.actions).max() <= 1.0
    assert set(np.unique(first.actions[:, -1])) <= {-1.0, 1.0}


def test_the_instruction_changes_the_action() -> None:
    policy, plan = _policy(), torch.zeros(8)
    book = policy.act(_observation(), plan, PlanMemory()).actions
    mug = policy.act(_observation(task="close the drawer"), plan, PlanMemory()).actions
    assert not np.array_equal(book, mug)


def test_a_larger_image_is_averaged_down() -> None:
    policy, small = _policy(), _observation(64)
    large = dict(small)
    large["images"] = {
        name: image.repeat(2, axis=0).repeat(2, axis=1) for name, image in small["images"].items()
    }
    torch.testing.assert_close(policy.encode(large), policy.encode(small))


def test_refuses_an_image_that_cannot_be_averaged_down() -> None:
    with pytest.raises(InvalidInputError, match=r"multiple of 64, got \(72, 72\)"):
        _policy().encode(_observation(72))


def test_log_prob_of_a_drawn_chunk_is_gaussian_times_bernoulli() -> None:
    policy = _policy(noise_std=0.3)
    drawn = policy.act(
        _observation(), torch.zeros(8), PlanMemory(), generator=torch.Generator().manual_seed(1)
    )
    mean = torch.zeros(1, 8, 7)
    mean[..., -1] = 0.4
    logp = chunk_log_prob(drawn.sampled[None], mean, 0.3)
    motion = torch.distributions.Normal(0.0, 0.3).log_prob(drawn.sampled[:, :6]).sum()
    closes = (drawn.sampled[:, -1] > 0).float()
    gripper = torch.distributions.Bernoulli(logits=torch.tensor(0.4)).log_prob(closes).sum()
    torch.testing.assert_close(logp[0], motion + gripper)


def test_refuses_to_draw_without_noise() -> None:
    with pytest.raises(InvalidInputError, match="noise_std must be above 0"):
        _policy().act(_observation(), torch.zeros(8), PlanMemory(), generator=torch.Generator())


def test_the_plan_follows_the_gripper_from_the_action_after_its_switch() -> None:
    config = SmallVLAConfig(plan_scale=0.1, yaw_scale=0.5)
    plan = np.array([1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0])
    gripper = np.array([-1.0, 1.0, 1.0, -1.0])
    offsets, after = plan_offsets(plan, gripper, PlanMemory(), config)
    opened = [0.1, 0.2, 0.3, 0.0, 0.0, 0.2, 0.0]  # yaw: 4 · 0.1 · 0.5
    closed = [-0.1, -0.2, -0.3, 0.0, 0.0, -0.2, 0.0]
    np.testing.assert_allclose(offsets, [opened, opened, closed, closed], atol=1e-7)
    assert after == PlanMemory(gripper=-1.0)


def test_the_gripper_is_remembered_between_chunks() -> None:
    config, plan = SmallVLAConfig(), np.arange(8.0)
    _, memory = plan_offsets(plan, np.array([-1.0, 1.0]), PlanMemory(), config)
    offsets, _ = plan_offsets(plan, np.array([1.0, 1.0]), memory, config)
    np.testing.assert_allclose(offsets[:, 0], 4.0 * config.plan_scale, rtol=1e-6)


def test_orientation_does_not_jump_where_the_angle_passes_pi() -> None:
    state = np.zeros(8)
    below, above = state.copy(), state.copy()
    below[3:6] = [math.pi - 0.01, 0.0, 0.0]
    above[3:6] = [-(math.pi - 0.01), 0.0, 0.0]  # the same rotation but for 0.02 rad
    gap = np.abs(proprioception(below, -1.0) - proprioception(above, -1.0)).max()
    assert gap < 0.03


def test_orientation_columns_are_scipys() -> None:
    state = np.array([0, 0, 0, 0.3, -1.2, 0.7, 0, 0])
    matrix = Rotation.from_rotvec(state[3:6]).as_matrix()
    ours = proprioception(state, 1.0)
    np.testing.assert_allclose(ours[3:9], np.concatenate([matrix[:, 0], matrix[:, 1]]), atol=1e-6)


def test_refuses_an_empty_instruction() -> None:
    with pytest.raises(InvalidInputError, match="instruction must have 1 to 32 words, got 0"):
        tokenize(["…"], SmallVLAConfig())
