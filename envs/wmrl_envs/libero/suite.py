"""Suite: LIBERO's task suites, their tasks by number or name, and the official initial states."""

import difflib
import functools
import io
import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.upstream import import_libero, quiet

HORIZONS = {
    "libero_10": 520,
    "libero_spatial": 220,
    "libero_object": 280,
    "libero_goal": 300,
    "libero_90": 400,
}
"""Control steps an episode may take, by suite; the 10 settling steps are not counted."""

SPLITS = ("all", "train", "held_out")

TRAIN_FRACTION = 0.6
"""Share of a task's initial states, from the first on, that is for training."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiberoTask:
    """One task of one suite."""

    suite: str
    number: int
    name: str
    language: str
    """The instruction."""

    bddl_file: Path
    """Goal and scene in LIBERO's planning language."""

    init_states_file: Path
    """Official initial states, flattened MuJoCo states: time, qpos, qvel."""


def find_task(suite: str, task: int | str) -> LiberoTask:
    """Return the task with this number or name.

    Args:
        suite: One of :data:`HORIZONS`; ``libero_10`` is LIBERO-Long.
        task: Number from 0, or name as in LIBERO's file names.

    Raises:
        InvalidInputError: If there is no such suite or task.
        DependencyNotInstalledError: If LIBERO is not installed.
    """
    tasks = tasks_of(suite)
    if isinstance(task, str):
        return _find_by_name(tasks, task)
    if isinstance(task, bool) or not isinstance(task, int | np.integer):
        raise InvalidInputError(f"task must be a number or a name, got {task!r}")
    if not 0 <= task < len(tasks):
        raise InvalidInputError(
            f"task must be in 0..{len(tasks) - 1} for suite {suite}, got {task}; "
            "`wmrl envs` lists the tasks"
        )
    return tasks[int(task)]


@functools.cache
def tasks_of(suite: str) -> tuple[LiberoTask, ...]:
    """Return all tasks of a suite, in LIBERO's default order.

    Raises:
        InvalidInputError: If there is no such suite.
    """
    if suite not in HORIZONS:
        raise InvalidInputError(
            f"suite must be one of {', '.join(HORIZONS)}, got {suite!r}{_hint(suite, HORIZONS)}"
        )
    libero = import_libero("libero.libero")
    benchmark = import_libero("libero.libero.benchmark")
    with quiet():
        upstream = benchmark.get_benchmark(suite)()
    bddl_root = Path(libero.get_libero_path("bddl_files"))
    states_root = Path(libero.get_libero_path("init_states"))
    return tuple(
        LiberoTask(
            suite=suite,
            number=number,
            name=task.name,
            language=task.language,
            bddl_file=bddl_root / task.problem_folder / task.bddl_file,
            init_states_file=states_root / task.problem_folder / task.init_states_file,
        )
        for number, task in enumerate(upstream.tasks)
    )


def init_states_of(suite: str, task: int | str, split: str = "all") -> tuple[int, ...]:
    """Return the numbers of the initial states of a task that belong to a split.

    The splits ``train`` and ``held_out`` are disjoint and together are ``all``, so that nothing
    is trained on what it is evaluated on: of 50 states the first 30 are for training, and 20 are
    enough to tell a real change of success from luck.

    Raises:
        InvalidInputError: If there is no such suite, task or split.
    """
    if split not in SPLITS:
        raise InvalidInputError(
            f"split must be one of {', '.join(SPLITS)}, got {split!r}{_hint(split, SPLITS)}"
        )
    count = len(load_init_states(find_task(suite, task)))
    first_held_out = round(TRAIN_FRACTION * count)
    begin, end = {
        "all": (0, count),
        "train": (0, first_held_out),
        "held_out": (first_held_out, count),
    }[split]
    return tuple(range(begin, end))


def load_init_states(task: LiberoTask) -> NDArray[np.float64]:
    """Return the official initial states, one a row ``(states, 1 + nq + nv)``.

    Read from an NPZ next to the official file if there is one, else from the official file itself,
    an array pickled inside a zip by torch.

    Raises:
        InvalidInputError: If the file is missing or holds anything but numbers.
    """
    return _read_states(task.init_states_file)


@functools.lru_cache(maxsize=16)
def _read_states(path: Path) -> NDArray[np.float64]:
    npz = path if path.suffix == ".npz" else Path(f"{path}.npz")
    try:
        if npz.is_file():
            with np.load(npz, allow_pickle=False) as archive:
                states = archive[archive.files[0]]
        else:
            states = _read_torch_zip(path)
    except (OSError, ValueError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise InvalidInputError(
            f"init states must be a readable NPZ or torch file, got {path}: {error}; "
            "install LIBERO again"
        ) from error
    if states.ndim != 2 or states.dtype.kind != "f" or not len(states):
        raise InvalidInputError(
            f"init states must be rows of numbers, got {states.dtype}{states.shape} in {path}"
        )
    states.setflags(write=False)
    return states


def _read_torch_zip(path: Path) -> NDArray[Any]:
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        content = archive.read(name)
    array = _ArrayUnpickler(io.BytesIO(content)).load()
    if not isinstance(array, np.ndarray):
        raise pickle.UnpicklingError(f"it holds a {type(array).__name__}, not an array")
    return array


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickle NumPy arrays and nothing else, so that a file cannot run code."""

    _ALLOWED = {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not an array")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _find_by_name(tasks: tuple[LiberoTask, ...], name: str) -> LiberoTask:
    by_name = {task.name: task for task in tasks}
    if name in by_name:
        return by_name[name]
    raise InvalidInputError(
        f"task must be a number or a task of {tasks[0].suite}, got {name!r}{_hint(name, by_name)}; "
        "`wmrl envs` lists the tasks"
    )


def _hint(name: str, valid: Any) -> str:
    close = difflib.get_close_matches(name, list(valid), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
