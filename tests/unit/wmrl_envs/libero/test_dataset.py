"""Checks of ``wmrl_envs.libero.dataset``."""

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.dataset import (
    Demonstration,
    TaskInfo,
    merge_demonstrations,
    read_demonstrations,
    read_origins,
    read_task,
    write_demonstrations,
)

SIM_SIZE = 20

TASK = TaskInfo(
    env_name="Libero_Study_Tabletop_Manipulation",
    env_args=json.dumps({"type": 1}),
    problem_info=json.dumps({"language_instruction": "put the cup down"}),
    bddl_file_name="libero/libero/bddl_files/libero_10/a.bddl",
    bddl_file_content="(define (problem a))",
)


def make_demonstration(*, steps: int = 6, images_every: int = 1, seed: int = 0) -> Demonstration:
    rng = np.random.default_rng(seed)
    sim_states = rng.normal(size=(steps, SIM_SIZE))
    kept = np.arange(0, steps, images_every)
    return Demonstration(
        language="put the cup down",
        actions=rng.uniform(-1, 1, (steps, 7)),
        intended=rng.uniform(-1, 1, (steps, 7)),
        state=rng.normal(size=(steps, 8)).astype(np.float32),
        images=rng.integers(0, 255, (len(kept), 2, 4, 4, 3), dtype=np.uint8),
        image_steps=kept,
        sim_states=sim_states,
        joint_states=sim_states[:, 1:8].copy(),
        robot_states=rng.normal(size=(steps, 9)),
        is_success=True,
        model_file="<mujoco/>",
        origin={"episode": f"init{seed:02d}_repeat0", "jitter": 0.5, "is_success": True},
    )


def write(path: Path, *demonstrations: Demonstration) -> Path:
    write_demonstrations(path, TASK, demonstrations)
    return path


def assert_same(found: Demonstration, expected: Demonstration) -> None:
    assert (found.language, found.is_success) == (expected.language, expected.is_success)
    assert dict(found.origin) == dict(expected.origin)
    for name in ("actions", "intended", "state", "images", "image_steps", "sim_states"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("joint_states", "robot_states"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    demonstrations = [make_demonstration(seed=seed) for seed in range(2)]

    path = write(tmp_path / "a_demo.hdf5", *demonstrations)

    for found, expected in zip(read_demonstrations(path), demonstrations, strict=True):
        assert_same(found, expected)
    assert read_task(path) == TASK


def test_the_official_names_shapes_and_types_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())

    expected = {
        "actions": ((6, 7), "float64"),
        "states": ((6, SIM_SIZE), "float64"),
        "robot_states": ((6, 9), "float64"),
        "rewards": ((6,), "uint8"),
        "dones": ((6,), "uint8"),
        "obs/agentview_rgb": ((6, 4, 4, 3), "uint8"),
        "obs/eye_in_hand_rgb": ((6, 4, 4, 3), "uint8"),
        "obs/ee_states": ((6, 6), "float64"),
        "obs/ee_pos": ((6, 3), "float64"),
        "obs/ee_ori": ((6, 3), "float64"),
        "obs/gripper_states": ((6, 2), "float64"),
        "obs/joint_states": ((6, 7), "float64"),
    }
    with h5py.File(path) as file:
        data, demo = file["data"], file["data/demo_0"]
        assert {name: (demo[name].shape, str(demo[name].dtype)) for name in expected} == expected
        assert demo["rewards"][()].tolist() == demo["dones"][()].tolist() == [0, 0, 0, 0, 0, 1]
        assert (data.attrs["num_demos"], data.attrs["total"]) == (1, 6)
        assert {"env_name", "env_args", "problem_info", "bddl_file_name"} <= set(data.attrs)
        assert demo.attrs["num_samples"] == 6
        assert "image_steps" not in demo


def test_images_are_stored_as_opengl_renders_them(tmp_path: Path) -> None:
    demonstration = make_demonstration()

    path = write(tmp_path / "a_demo.hdf5", demonstration)

    with h5py.File(path) as file:
        wrist = file["data/demo_0/obs/eye_in_hand_rgb"][()]
    np.testing.assert_array_equal(wrist, demonstration.images[:, 1, ::-1, ::-1])


def test_sparse_images_know_their_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration(steps=10, images_every=4))

    (found,) = read_demonstrations(path)

    assert found.image_steps.tolist() == [0, 4, 8]
    assert len(found.images) == 3
    assert len(found.actions) == 10


def test_official_observations_are_moved_to_before_their_action(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())
    with h5py.File(path, "r+") as file:
        demo = file["data/demo_0"]
        del demo["expert_actions"]
        states = demo["states"][()]
        seen_after = np.concatenate([states[1:, 1:8], states[-1:, 1:8]])
        demo["obs/joint_states"][...] = seen_after
        actions, images = demo["actions"][()], demo["obs/agentview_rgb"][()]

    (found,) = read_demonstrations(path)

    np.testing.assert_array_equal(found.actions, actions[1:])
    np.testing.assert_array_equal(found.intended, actions[1:])
    np.testing.assert_array_equal(found.images[:, 0], images[:-1, ::-1, ::-1])
    np.testing.assert_array_equal(found.joint_states, found.sim_states[:, 1:8])


def test_demonstrations_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    demonstrations = [make_demonstration(steps=2, seed=seed) for seed in range(12)]

    path = write(tmp_path / "a_demo.hdf5", *demonstrations)

    # HDF5 itself sorts by text: demo_0, demo_1, demo_10, demo_11, demo_2 ...
    episodes = [str(origin["episode"]) for origin in read_origins(path)]
    assert episodes == [f"init{number:02d}_repeat0" for number in range(12)]


def test_merging_appends_to_the_file_itself(tmp_path: Path) -> None:
    first, second = (make_demonstration(seed=seed) for seed in (1, 2))
    target = write(tmp_path / "a_demo.hdf5", first)
    part = write(tmp_path / "part.hdf5", second)

    merge_demonstrations(target, [target, part])

    for found, expected in zip(read_demonstrations(target), (first, second), strict=True):
        assert_same(found, expected)
    with h5py.File(target) as file:
        assert (file["data"].attrs["num_demos"], file["data"].attrs["total"]) == (2, 12)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    good = make_demonstration()
    path = write(tmp_path / "a_demo.hdf5", good)
    before = path.read_bytes()
    bad = replace(good, origin={"episode": object()})

    with pytest.raises(TypeError):
        write(path, good, bad)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")

    with pytest.raises(InvalidInputError, match="must be writable"):
        write(tmp_path / "taken" / "a_demo.hdf5", make_demonstration())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must be a file, got '.*absent.hdf5'"):
        list(read_demonstrations(tmp_path / "absent.hdf5"))


def test_a_truncated_file_is_named_with_a_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())
    path.write_bytes(path.read_bytes()[:2000])

    with pytest.raises(InvalidInputError, match=r"a_demo.hdf5.*broken one.*wmrl collect"):
        list(read_demonstrations(path))


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("actions", None, "has no data set 'actions'"),
        ("obs/ee_states", np.zeros((5, 6)), "has 5 entries instead of 6"),
        ("actions", np.full((6, 7), np.nan), "holds a NaN"),
        ("obs/agentview_rgb", np.zeros((2, 4, 4, 3), np.uint8), "has 2 entries instead of 6"),
    ],
)
def test_a_broken_part_is_named(
    tmp_path: Path, name: str, value: np.ndarray | None, complaint: str
) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())
    with h5py.File(path, "r+") as file:
        del file[f"data/demo_0/{name}"]
        if value is not None:
            file[f"data/demo_0/{name}"] = value

    with pytest.raises(InvalidInputError, match=complaint):
        list(read_demonstrations(path))


def test_an_instruction_stored_as_characters_is_read_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())
    with h5py.File(path, "r+") as file:
        file["data"].attrs["problem_info"] = json.dumps({"language_instruction": list("go on")})

    (found,) = read_demonstrations(path)

    assert found.language == "go on"


def test_images_may_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a_demo.hdf5", make_demonstration())

    (found,) = read_demonstrations(path, images=False)

    assert (len(found.images), len(found.image_steps), len(found.actions)) == (0, 0, 6)
