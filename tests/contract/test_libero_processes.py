"""``LiberoEnv`` among others: several in one process, in workers, at exit, over many episodes."""

import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import wmrl_envs  # noqa: F401  (registers the ids)
from wmrl_envs.libero.env import LiberoEnv
from wmrl_envs.vector import SupervisedVectorEnv

pytestmark = [pytest.mark.libero, pytest.mark.timeout(900)]


def images(env: LiberoEnv) -> np.ndarray:
    observation, *_ = env.step(np.zeros(7))
    return np.stack(list(observation["images"].values()))


def test_several_environments_in_one_process_give_the_images_of_one() -> None:
    alone = LiberoEnv(task=5, image_size=64)
    alone.reset(options={"init_state": 0})
    expected = [images(alone) for _ in range(2)]
    alone.close()

    first, second = LiberoEnv(task=5, image_size=64), LiberoEnv(task=6, image_size=64)
    first.reset(options={"init_state": 0})
    second.reset(options={"init_state": 0})
    np.testing.assert_array_equal(images(first), expected[0])
    images(second)
    second.close()
    dropped = LiberoEnv(task=5, image_size=48)
    dropped.reset(options={"init_state": 1})
    del dropped
    np.testing.assert_array_equal(images(first), expected[1])
    first.close()


def test_exit_without_close_prints_nothing() -> None:
    code = (
        "from wmrl_envs.libero.env import LiberoEnv\n"
        "envs = [LiberoEnv(task=5, image_size=64) for _ in range(2)]\n"
        "for env in envs: env.reset(seed=0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_simplified_images_resemble_the_exact_ones() -> None:
    exact = LiberoEnv(task=5, image_size=64)
    rough = LiberoEnv(task=5, image_size=64, simplify=True)
    seen = [
        env.reset(options={"init_state": 0})[0]["images"]["agentview"] for env in (exact, rough)
    ]
    difference = np.abs(seen[0].astype(float) - seen[1].astype(float))
    assert 0.0 < difference.mean() < 5.0  # of 255
    exact.close()
    rough.close()


def test_render_returns_the_upright_view_of_the_agent() -> None:
    env = LiberoEnv(task=5, image_size=64, image_convention="upright", render_mode="rgb_array")
    observation, _ = env.reset(options={"init_state": 0})
    np.testing.assert_array_equal(env.render(), observation["images"]["agentview"])
    env.close()


@pytest.mark.slow
def test_make_vec_replaces_a_killed_simulator() -> None:
    envs = gym.make_vec("WMRL-LIBERO", num_envs=2, task=5, image_size=64, chunk=2)
    assert isinstance(envs, SupervisedVectorEnv)
    observations, _ = envs.reset(seed=0)
    assert observations["images"]["agentview"].shape == (2, 64, 64, 3)
    still = np.zeros((2, 2, 7), dtype=np.float32)
    os.kill(envs.worker_pids[0], signal.SIGKILL)
    _, rewards, _, truncated, infos = envs.step(still)
    assert infos["missing"].tolist() == [True, False]
    assert np.isnan(rewards[0])
    assert truncated.tolist() == [True, False]
    _, _, _, _, infos = envs.step(still)
    assert infos["missing"].tolist() == [False, False]
    assert infos["elapsed_steps"].tolist() == [0, 4]
    envs.close()


@pytest.mark.slow
def test_memory_does_not_grow_over_episodes() -> None:
    code = """
from pathlib import Path
import numpy as np
from wmrl_envs.libero.env import LiberoEnv
def resident_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
env = LiberoEnv(task=5, image_size=64, multisample=False, simplify=True)
for i in range(100):
    env.reset(options={"init_state": i % 50})
    env.step(np.zeros(7))
    if i == 49: warm = resident_mib()
print(resident_mib() - warm)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 10
