"""Registered ids keep the contracts of Gymnasium and Stable-Baselines3."""

import subprocess
import sys

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import wmrl_envs  # noqa: F401  (registers the ids)

MICRO = ["WMRL-MicroPick", "WMRL-MicroQuiz"]


@pytest.mark.parametrize("env_id", MICRO)
def test_keeps_the_gymnasium_contract(env_id: str) -> None:
    check_env(gym.make(env_id).unwrapped, skip_render_check=True)


@pytest.mark.libero
@pytest.mark.parametrize("chunk", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_libero_keeps_the_gymnasium_contract(chunk: int) -> None:
    env = gym.make("WMRL-LIBERO", cameras=("wrist",), image_size=64, chunk=chunk).unwrapped
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.libero
@pytest.mark.slow
def test_libero_keeps_the_contract_of_stable_baselines() -> None:
    env = gym.make("WMRL-LIBERO", cameras=("wrist",), image_size=64).unwrapped
    with pytest.warns(UserWarning, match="Nested observation spaces"):
        check_env_sb3(env)  # nesting is allowed, with a remark
    env.close()


def test_importing_loads_no_simulator() -> None:
    code = (
        "import sys, wmrl_envs; "
        "sys.exit(any(name in sys.modules for name in ('mujoco', 'robosuite', 'libero', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
