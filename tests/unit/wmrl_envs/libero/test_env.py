"""Checks of ``wmrl_envs.libero.env`` without images: arguments, stepping, exact resets, snapshots."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from wmrl_envs.errors import InfrastructureError, InvalidInputError
from wmrl_envs.libero.env import LiberoEnv
from wmrl_envs.libero.snapshot import LiberoSnapshot
from wmrl_envs.libero.suite import find_task, load_init_states

pytestmark = pytest.mark.libero

STUDY = 5  # the scene that is built fastest


@pytest.fixture(scope="module")
def env() -> Iterator[LiberoEnv]:
    made = LiberoEnv(task=STUDY, cameras=(), horizon=20)
    yield made
    made.close()


def actions(count: int, seed: int = 0) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).uniform(-1, 1, (count, 7)).astype(np.float32)
    drawn[::3, 3:6] = 0.0  # without a turn, the controller keeps its last rotation goal
    return drawn


def states(env: LiberoEnv, todo: NDArray[np.float32]) -> NDArray[np.float64]:
    seen = []
    for action in todo:
        env.step(action)
        seen.append(np.concatenate([env.data.qpos, env.data.qvel, env.data.qacc_warmstart]))
    return np.array(seen)


def test_a_soft_reset_is_bit_exact(env: LiberoEnv) -> None:
    first, _ = env.reset(options={"init_state": 3})
    path = states(env, actions(8))
    env.reset(options={"init_state": 4})
    states(env, actions(5, seed=1))

    again, _ = env.reset(options={"init_state": 3})

    np.testing.assert_array_equal(first["state"], again["state"])
    np.testing.assert_array_equal(states(env, actions(8)), path)


def test_another_environment_gives_the_same_path(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 3})
    path = states(env, actions(5))
    other = LiberoEnv(task=STUDY, cameras=())
    other.reset(options={"init_state": 8})
    other.reset(options={"init_state": 3})
    np.testing.assert_array_equal(states(other, actions(5)), path)
    other.close()


def test_a_chunk_equals_its_actions_one_by_one(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 0})
    one_by_one = states(env, actions(6))[-1]
    observation = env.snapshot().qpos
    chunked = LiberoEnv(task=STUDY, cameras=(), chunk=6)
    chunked.reset(options={"init_state": 0})
    _, _, _, _, info = chunked.step(actions(6))
    np.testing.assert_array_equal(
        np.concatenate([chunked.data.qpos, chunked.data.qvel, chunked.data.qacc_warmstart]),
        one_by_one,
    )
    assert (info["steps"], info["elapsed_steps"]) == (6, 6)
    np.testing.assert_array_equal(chunked.snapshot().qpos, observation)
    chunked.close()


def test_a_snapshot_goes_on_bit_exactly(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 2})
    states(env, actions(5))
    snapshot = env.snapshot()
    here, *_ = env.restore(snapshot)
    path = states(env, actions(6, seed=1))

    env.reset(options={"init_state": 9})
    states(env, actions(3, seed=2))
    observation, info = env.restore(snapshot)

    assert (info["init_state"], info["elapsed_steps"]) == (2, 5)
    np.testing.assert_array_equal(observation["state"], here["state"])
    np.testing.assert_array_equal(states(env, actions(6, seed=1)), path)


def test_a_snapshot_goes_on_bit_exactly_in_another_process(env: LiberoEnv, tmp_path: Path) -> None:
    env.reset(options={"init_state": 2})
    states(env, actions(5))
    env.snapshot().save(tmp_path / "moment.npz")
    np.save(tmp_path / "actions.npy", actions(4, seed=1))
    path = states(env, actions(4, seed=1))
    code = f"""
import numpy as np
from pathlib import Path
from wmrl_envs.libero.env import LiberoEnv
from wmrl_envs.libero.snapshot import LiberoSnapshot
folder = Path({str(tmp_path)!r})
env = LiberoEnv(task={STUDY}, cameras=())
env.restore(LiberoSnapshot.load(folder / "moment.npz"))
for action in np.load(folder / "actions.npy"):
    env.step(action)
np.save(folder / "end.npy", np.concatenate([env.data.qpos, env.data.qvel, env.data.qacc_warmstart]))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "end.npy"), path[-1])


def test_a_plain_simulator_state_is_not_enough(env: LiberoEnv) -> None:
    # What upstream calls a state: without the controller and the solver's warm start.
    env.reset(options={"init_state": 2})
    states(env, actions(5))
    snapshot = env.snapshot()
    path = states(env, actions(3, seed=1))
    env.reset(options={"init_state": 2})
    env.data.time = snapshot.integration[0]
    env.data.qpos[:], env.data.qvel[:] = snapshot.integration[1 : 1 + env.model.nq], 0.0
    assert not np.array_equal(states(env, actions(3, seed=1)), path)


def test_refuses_a_snapshot_of_another_task(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 0})
    snapshot = env.snapshot()
    with pytest.raises(InvalidInputError, match="snapshot must be of task libero_10/KITCHEN"):
        LiberoEnv(task=2, cameras=()).restore(snapshot)


def test_refuses_a_file_that_is_no_snapshot(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(InvalidInputError, match=r"written by LiberoSnapshot\.save"):
        LiberoSnapshot.load(tmp_path / "other.npz")
    (tmp_path / "broken.npz").write_bytes(b"no zip")
    with pytest.raises(InvalidInputError, match="snapshot must be a readable file"):
        LiberoSnapshot.load(tmp_path / "broken.npz")


def test_is_truncated_at_the_horizon_and_needs_a_reset_then(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 0})
    ends = [env.step(np.zeros(7))[2:4] for _ in range(20)]
    assert ends[-2:] == [(False, False), (False, True)]
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(7))


def test_a_chunk_stops_at_the_horizon() -> None:
    env = LiberoEnv(task=STUDY, cameras=(), chunk=8, horizon=11)
    env.reset(options={"init_state": 0})
    env.step(np.zeros((8, 7)))
    _, _, terminated, truncated, info = env.step(np.zeros((8, 7)))
    assert (terminated, truncated, info["steps"]) == (False, True, 3)  # 11 - 8
    env.close()


def test_equal_seeds_draw_equal_starts_within_the_split() -> None:
    drawn = []
    for _ in range(2):
        env = LiberoEnv(task=STUDY, cameras=(), split="held_out")
        drawn.append([])
        env.reset(seed=4)
        drawn[-1] += [env.reset()[1]["init_state"] for _ in range(4)]
        env.close()
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) <= set(range(30, 50))


def test_refuses_an_initial_state_outside_the_split() -> None:
    env = LiberoEnv(task=STUDY, cameras=(), split="train")
    with pytest.raises(InvalidInputError, match=r"init_state must be in 0\.\.29 .*'train', got 45"):
        env.reset(options={"init_state": 45})


def test_leaves_the_global_random_stream_alone() -> None:
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    env = LiberoEnv(task=STUDY, cameras=())
    env.reset(seed=0)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002
    env.close()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(6), r"action must have shape \(7,\), got \(6,\)"),
        (np.full(7, np.nan), "action must be finite"),
        (np.full(7, 1.5), r"action must be in \[-1, 1\], got values from 1\.5"),
    ],
)
def test_refuses_bad_actions(env: LiberoEnv, action: NDArray[Any], message: str) -> None:
    env.reset(options={"init_state": 0})
    with pytest.raises(InvalidInputError, match=message):
        env.step(action)


def test_blames_the_simulator_for_nan_in_its_state(env: LiberoEnv) -> None:
    env.reset(options={"init_state": 0})
    env.data.qvel[0] = np.nan
    with pytest.raises(InfrastructureError, match="the simulator diverged"):
        env.step(np.zeros(7))
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(7))
    env.reset(options={"init_state": 0})
    env.step(np.zeros(7))


def test_needs_a_reset_before_step_and_privileged_access() -> None:
    env = LiberoEnv(task=STUDY, cameras=())
    for use in (lambda: env.step(np.zeros(7)), lambda: env.model, env.snapshot):
        with pytest.raises(ResetNeeded):
            use()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"cameras": ("wrst",)}, "cameras must be among agentview, wrist, got 'wrst'"),
        ({"image_convention": "flip"}, "image_convention must be among vla, upright, raw"),
        ({"chunk": 0}, "chunk must be a whole number from 1, got 0"),
        ({"horizon": -1}, "horizon must be a whole number from 1, got -1"),
        ({"split": "test"}, "split must be among all, train, held_out, got 'test'"),
        ({"render_mode": "human"}, "render_mode must be among rgb_array, got 'human'"),
    ],
)
def test_refuses_bad_arguments(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LiberoEnv(**kwargs)


def test_making_an_environment_loads_no_simulator_and_prints_nothing() -> None:
    code = (
        "import sys\n"
        "from wmrl_envs.libero.env import LiberoEnv\n"
        "env = LiberoEnv()\n"
        "sys.exit('mujoco' in sys.modules and env._simulation is not None)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_describes_the_task() -> None:
    env = LiberoEnv(task=STUDY, cameras=())
    assert env.language == find_task("libero_10", STUDY).language
    assert env.num_init_states == len(load_init_states(env.task)) == 50
    assert env.horizon == 520
