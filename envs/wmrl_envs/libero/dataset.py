"""Demonstrations: the HDF5 layout of LIBERO's official files, written and read.

One file a task, ``<task>_demo.hdf5``. T steps, N stored images, S numbers of simulator state::

    data                        attributes: env_name env_args problem_info bddl_file_name
                                bddl_file_content macros_image_convention num_demos total
      demo_<i>                  attributes: num_samples model_file init_state
        actions (T, 7)          states (T, S)       robot_states (T, 9)
        rewards (T,) uint8      dones (T,) uint8
        obs
          agentview_rgb (N, H, W, 3) uint8          eye_in_hand_rgb (N, H, W, 3) uint8
          ee_states (T, 6)      ee_pos (T, 3)       ee_ori (T, 3)
          gripper_states (T, 2) joint_states (T, 7)

Images are stored as OpenGL renders them, upside down, as the official files do; the reader turns
them by half a turn into the convention that vision-language-action models are trained on.

This package's own files add what the official ones lack, beside the official names, so that other
readers are not disturbed: per demonstration ``expert_actions`` (T, 7), the expert's action before
noise was added, and attributes on its origin (initial state, seed, jitter, versions). Where images
are kept for some steps only, N < T and ``image_steps`` (N,) holds the steps they belong to.

Official files store at index t what was seen *after* action t, this package's what was seen
*before* it. The reader finds out which by comparing joint angles with simulator states, and always
returns what was seen before each action.
"""

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InvalidInputError

Origin = dict[str, str | int | float | bool]

CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")
OFFICIAL_ATTRIBUTES = frozenset({"num_samples", "model_file", "init_state"})
"""Attributes of a demonstration in official files; all others tell its origin."""

JOINTS = slice(1, 8)
"""Where the arm's joint angles lie in a simulator state: after the time, before everything else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskInfo:
    """What all demonstrations of a file have in common; texts as in the official attributes."""

    env_name: str
    env_args: str
    problem_info: str
    """JSON with ``problem_name``, ``domain_name`` and ``language_instruction``."""

    bddl_file_name: str
    bddl_file_content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Demonstration:
    """One episode of a demonstrator; everything indexed by step was seen before its action."""

    language: str
    """The instruction."""

    actions: NDArray[np.float64]
    """Executed actions ``(T, 7)``."""

    intended: NDArray[np.float64]
    """Actions before noise ``(T, 7)``: the labels to clone; ``actions`` in official files."""

    state: NDArray[np.float32]
    """Proprioception ``(T, 8)``, as in ``WMRL-LIBERO``: position, axis-angle, fingers."""

    images: NDArray[np.uint8]
    """Agent view and wrist view ``(N, 2, H, W, 3)``, turned for vision-language-action models."""

    image_steps: NDArray[np.int64]
    """Steps ``(N,)`` the images belong to."""

    sim_states: NDArray[np.float64]
    """Flattened simulator states ``(T, S)``."""

    joint_states: NDArray[np.float64]
    """Joint angles of the arm ``(T, 7)``."""

    robot_states: NDArray[np.float64]
    """Fingers (2), hand position (3) and quaternion (4): ``(T, 9)``."""

    is_success: bool
    """Whether the last step reached the goal."""

    model_file: str
    """The simulator's model as XML, fixture poses included."""

    origin: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Where it comes from: further attributes, empty for official files."""


def write_demonstrations(
    path: Path, task: TaskInfo, demonstrations: Sequence[Demonstration]
) -> None:
    """Write a task's demonstrations as one file, whole or not at all.

    Args:
        path: File to write; its folder is made and an older file replaced.
        task: Attributes of the file.
        demonstrations: Episodes, stored as ``demo_0``, ``demo_1`` and so on.

    Raises:
        InvalidInputError: If the file cannot be written.
    """
    with _atomic_file(path) as file:
        data = _start(file, task)
        for number, demonstration in enumerate(demonstrations):
            _write_one(data.create_group(f"demo_{number}"), demonstration)
        _finish(data)


def merge_demonstrations(path: Path, sources: Sequence[Path]) -> None:
    """Write the demonstrations of several files of one task into one, whole or not at all.

    ``path`` itself may be among the sources. Groups are copied as they are, without decoding.

    Raises:
        InvalidInputError: If there is no source, one is broken, or the file cannot be written.
    """
    if not sources:
        raise InvalidInputError("sources must name at least one file, got none; collect first")
    tasks = [read_task(source) for source in sources]
    with _atomic_file(path) as file:
        data = _start(file, tasks[0])
        for source in sources:
            with _opened(source) as part:
                group = _group(part, "data")
                for name in _names(group):
                    group.copy(name, data, name=f"demo_{len(data)}")
        _finish(data)


def read_task(path: Path) -> TaskInfo:
    """Return what all demonstrations of a file have in common.

    Raises:
        InvalidInputError: If the file is missing or broken.
    """
    with _opened(path) as file:
        attributes = _group(file, "data").attrs
        return TaskInfo(
            env_name=_text(attributes, "env_name"),
            env_args=_text(attributes, "env_args"),
            problem_info=_text(attributes, "problem_info"),
            bddl_file_name=_text(attributes, "bddl_file_name"),
            bddl_file_content=_text(attributes, "bddl_file_content"),
        )


def read_origins(path: Path) -> list[Origin]:
    """Return the origin of each demonstration of a file, in order, without reading its arrays.

    Raises:
        InvalidInputError: If the file is missing or broken.
    """
    with _opened(path) as file:
        data = _group(file, "data")
        return [_origin(_group(data, name)) for name in _names(data)]


def read_demonstrations(
    path: Path, *, images: bool = True, limit: int | None = None
) -> Iterator[Demonstration]:
    """Yield the demonstrations of an official file or one of ours, one in memory at a time.

    Args:
        path: File of one task.
        images: Whether to read the images; without them N is 0.
        limit: Most demonstrations to read; all of them when left out.

    Raises:
        InvalidInputError: If the file is missing or broken; the message names the part.
    """
    with _opened(path) as file:
        data = _group(file, "data")
        language = _instruction(data)
        for name in _names(data)[:limit]:
            yield _read_one(_group(data, name), language, images=images)


@contextmanager
def _opened(path: Path) -> Generator[h5py.File]:
    """Open a file for reading; whatever is wrong with its content becomes one clear line."""
    remedy = "run `wmrl collect` for it again, or download the official file again"
    if not path.is_file():
        raise InvalidInputError(f"demonstrations must be a file, got {str(path)!r}; {remedy}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{str(path)!r} must be a demonstration file in LIBERO's HDF5 layout, got a broken one "
            f"({error.args[0]}); {remedy}"
        ) from error


@contextmanager
def _atomic_file(path: Path) -> Generator[h5py.File]:
    """Write to a hidden file beside ``path`` and rename it into place at the end."""
    # The process's number keeps writers apart; a plain file, so that the umask decides its mode.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with h5py.File(temporary, "w") as file:
                yield file
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"{str(path)!r} must be writable, got {error}; choose another folder or free its disk"
        ) from error


def _start(file: h5py.File, task: TaskInfo) -> h5py.Group:
    data = file.create_group("data")
    for name, value in asdict(task).items():
        data.attrs[name] = value
    data.attrs["macros_image_convention"] = "opengl"
    return data


def _finish(data: h5py.Group) -> None:
    data.attrs["num_demos"] = len(data)
    data.attrs["total"] = sum(int(data[name].attrs["num_samples"]) for name in data)


def _write_one(group: h5py.Group, demonstration: Demonstration) -> None:
    steps = len(demonstration.actions)
    last = np.zeros(steps, dtype=np.uint8)
    last[-1:] = 1
    state = demonstration.state.astype(np.float64)
    arrays = {
        "actions": demonstration.actions,
        "expert_actions": demonstration.intended,
        "states": demonstration.sim_states,
        "robot_states": demonstration.robot_states,
        "rewards": last * np.uint8(demonstration.is_success),
        "dones": last,
        "obs/ee_states": state[:, :6],
        "obs/ee_pos": state[:, :3],
        "obs/ee_ori": state[:, 3:6],
        "obs/gripper_states": state[:, 6:],
        "obs/joint_states": demonstration.joint_states,
    }
    if len(demonstration.image_steps) < steps:
        arrays["image_steps"] = demonstration.image_steps
    for name, array in arrays.items():
        group.create_dataset(name, data=array)
    for camera, name in enumerate(CAMERAS):
        stored = _half_turn(demonstration.images[:, camera])
        chunks = (1, *stored.shape[1:]) if stored.size else None
        group.create_dataset(f"obs/{name}", data=stored, chunks=chunks, compression=_gzip(stored))
    group.attrs["num_samples"] = steps
    group.attrs["model_file"] = demonstration.model_file
    group.attrs["init_state"] = demonstration.sim_states[0]
    for name, value in demonstration.origin.items():
        group.attrs[name] = value


def _read_one(group: h5py.Group, language: str, *, images: bool) -> Demonstration:
    actions = _array(group, "actions")
    steps = len(actions)
    hand, fingers, joints = (
        _array(group, f"obs/{name}", steps)
        for name in ("ee_states", "gripper_states", "joint_states")
    )
    sim_states = _array(group, "states", steps)
    intended = _array(group, "expert_actions", steps) if "expert_actions" in group else actions
    image_steps = np.arange(steps)
    if "image_steps" in group:
        image_steps = _array(group, "image_steps").astype(np.int64)
    pixels = _images(group, len(image_steps)) if images else np.empty((0, 2, 0, 0, 3), np.uint8)
    seen = sees_result(joints, sim_states)
    before, after = slice(None, steps - seen), slice(seen, None)
    return Demonstration(
        language=language,
        actions=actions[after].astype(np.float64),
        intended=intended[after].astype(np.float64),
        state=np.concatenate([hand, fingers], axis=1)[before].astype(np.float32),
        images=pixels[: len(pixels) - seen] if images else pixels,
        image_steps=image_steps[: len(image_steps) - seen] if images else image_steps[:0],
        sim_states=sim_states[after],
        joint_states=joints[before],
        robot_states=_array(group, "robot_states", steps)[before],
        is_success=bool(_array(group, "rewards", steps)[-1]),
        model_file=_text(group.attrs, "model_file"),
        origin=_origin(group),
    )


def sees_result(joints: NDArray[np.float64], sim_states: NDArray[np.float64]) -> bool:
    """Return whether observations were stored after their action instead of before it.

    Args:
        joints: Stored joint angles ``(T, 7)``.
        sim_states: Simulator states ``(T, S)`` from before each action.
    """
    same = np.abs(joints[:-1] - sim_states[:-1, JOINTS]).sum()
    next_ = np.abs(joints[:-1] - sim_states[1:, JOINTS]).sum()
    return bool(next_ < same)


def _images(group: h5py.Group, count: int) -> NDArray[np.uint8]:
    views = [_half_turn(_array(group, f"obs/{name}", count)) for name in CAMERAS]
    return np.stack(views, axis=1)


def _half_turn(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn images ``(N, H, W, 3)`` by 180 degrees: from the stored convention or back to it."""
    return images[:, ::-1, ::-1]


def _gzip(stored: NDArray[np.uint8]) -> str | None:
    return "gzip" if stored.size else None


def _array(group: h5py.Group, name: str, length: int | None = None) -> NDArray:
    """Return a data set as an array, checked for its length and for values that are no numbers."""
    item = group.get(name)
    if not isinstance(item, h5py.Dataset):
        raise KeyError(f"{group.name} has no data set {name!r}")
    array = item[()]
    if length is not None and len(array) != length:
        raise ValueError(f"{group.name}/{name} has {len(array)} entries instead of {length}")
    if not len(array) or not np.isfinite(array).all():
        raise ValueError(f"{group.name}/{name} is empty or holds a NaN")
    return array


def _group(parent: h5py.Group, name: str) -> h5py.Group:
    item = parent.get(name)
    if not isinstance(item, h5py.Group):
        raise KeyError(f"{parent.name} has no group {name!r}")
    return item


def _text(attributes: h5py.AttributeManager, name: str) -> str:
    if name not in attributes:
        raise KeyError(f"attribute {name!r} is missing")
    return str(attributes[name])


def _names(data: h5py.Group) -> list[str]:
    """Names of the demonstrations in the order of their numbers, which HDF5 does not keep."""
    names = [name for name in data if name.startswith("demo_")]
    if not names:
        raise KeyError("it holds no demonstration")
    return sorted(names, key=lambda name: int(name.removeprefix("demo_")))


def _instruction(data: h5py.Group) -> str:
    problem = json.loads(_text(data.attrs, "problem_info"))
    words = problem["language_instruction"]
    # Some official files hold the instruction as a list of characters.
    return "".join(words).strip().strip('"')


def _origin(group: h5py.Group) -> Origin:
    return {
        name: value.item() if isinstance(value, np.generic) else str(value)
        for name, value in group.attrs.items()
        if name not in OFFICIAL_ATTRIBUTES
    }
