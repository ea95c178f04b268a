"""Collection: scripted demonstrations of LIBERO-Long tasks, in parallel and resumable.

Every finished episode is a small file in ``<output>/parts/<task>/`` (a demonstration, or a JSON
note of a failure), written whole by the worker that ran it. A second run counts these and the
demonstrations already merged into ``<output>/<task>_demo.hdf5``, and runs only what is missing.
"""

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError
from wmrl_envs.libero.dataset import Origin
from wmrl_envs.libero.expert import EXPERTS, expert_name
from wmrl_envs.libero.parts import Episode, Parts, TaskReport, write_json

OFFICIAL_STARTS = 50
"""Official initial states of a task."""

BATCH = 10
"""Episodes a worker runs in one simulator before it takes another task."""

ROUNDS = 2
"""Times an episode is tried when its worker dies or hangs; then it is reported missing."""

START_UP_S = 120.0
"""Time a worker may take to start and load its simulator."""

POLL_S = 0.5
"""Seconds between two looks at what has been finished."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectConfig:
    """One collection of demonstrations."""

    output: Path = Path("demonstrations")
    """Folder of the files, one a task."""

    tasks: tuple[str, ...] = tuple(EXPERTS)
    """Tasks of ``libero_10``, by number or name."""

    init_states: tuple[int, ...] = tuple(range(50))
    """Official initial states to start from."""

    repeats: int = 1
    """Episodes from each initial state, each with its own noise."""

    jitter: float = 1.0
    """Scale of the experts' noise; 0 is deterministic."""

    seed: int = 0
    """Root of all noise; an episode's own stream depends on its task, start and repeat only."""

    image_size: int = 128
    """Side of the images in pixels; the official files have 128."""

    images_every: int = 1
    """Store images for every n-th step, which saves most of the time; 1 is the official layout."""

    multisample: bool = False
    """Draw with anti-aliasing, as the official files are; must agree with how a policy is run."""

    keep_failures: bool = False
    """Store failed episodes as well."""

    workers: int = 2
    """Processes, each with one simulator."""

    timeout_s: float = 300.0
    """Longest time one episode may take before its worker is replaced."""

    def __post_init__(self) -> None:
        """Refuse collections that could not run, and write tasks by their full names."""
        counts = {
            "repeats": self.repeats,
            "image_size": self.image_size,
            "images_every": self.images_every,
            "workers": self.workers,
        }
        for name, count in counts.items():
            if count < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {count}; use 1 or more")
        for index in self.init_states:
            if not 0 <= index < OFFICIAL_STARTS:
                raise InvalidInputError(
                    f"init_states must be numbers of official initial states, got {index}; "
                    f"choose from 0 to {OFFICIAL_STARTS - 1}"
                )

    @property
    def task_names(self) -> tuple[str, ...]:
        """Full names of the tasks.

        Raises:
            InvalidInputError: If a task has no expert.
        """
        return tuple(expert_name(int(t) if t.isdecimal() else t) for t in self.tasks)


_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeRemainingColumn(),
)


def collect(config: CollectConfig, *, show_progress: bool = True) -> list[TaskReport]:
    """Make the demonstrations that ``config.output`` still lacks and return what it then holds.

    Args:
        config: The collection.
        show_progress: Draw a progress bar on the terminal.

    Raises:
        InvalidInputError: If the folder holds demonstrations of other settings, or is not writable.
        DependencyNotInstalledError: If the simulator or the process pool is not installed.
    """
    _check_settings(config)
    wanted = [
        Episode(task=task, init_state=init_state, repeat=repeat)
        for task in config.task_names
        for repeat in range(config.repeats)
        for init_state in config.init_states
    ]
    parts = Parts(config.output)
    with Progress(*_COLUMNS, disable=not show_progress) as progress:
        bar = progress.add_task("demonstrations", total=len(wanted))
        for _ in range(ROUNDS):
            missing = parts.missing(wanted)
            progress.update(bar, completed=len(wanted) - len(missing))
            if not missing:
                break
            for _ in _run_in_pool(config, missing):
                progress.update(bar, completed=len(wanted) - len(parts.missing(wanted)))
    for task in config.task_names:
        parts.merge(task)
    return [parts.report(task, wanted) for task in config.task_names]


def run_batch(config: CollectConfig, episodes: Sequence[Episode]) -> None:
    """Make some demonstrations of one task in this process, one file each.

    This is what a worker runs. Episodes that have been finished meanwhile are left alone.
    """
    from wmrl_envs.libero.demonstrate import Demonstrator

    parts, number = Parts(config.output), list(EXPERTS).index(episodes[0].task)
    with Demonstrator(
        number,
        image_size=config.image_size,
        images_every=config.images_every,
        multisample=config.multisample,
    ) as demonstrator:
        for episode in parts.missing(episodes):
            demonstration = demonstrator.run(
                episode.init_state,
                noise_key=(config.seed, number, episode.init_state, episode.repeat),
                jitter=config.jitter,
                origin={"episode": episode.stem, "repeat": episode.repeat, "seed": config.seed},
            )
            if demonstration.is_success or config.keep_failures:
                parts.add(episode, demonstrator.task_info(), demonstration)
            else:
                parts.note_failure(episode, dict(demonstration.origin))


def _run_in_pool(config: CollectConfig, episodes: Sequence[Episode]) -> Iterator[None]:
    """Run episodes in worker processes; yield now and then until all have ended or been lost."""
    try:
        from pebble import ProcessExpired, ProcessPool
    except ImportError as error:
        raise DependencyNotInstalledError(
            "collecting needs the process pool of pebble; pip install 'wmrl-embodied[libero]'"
        ) from error

    batches = _batches(episodes, config.workers)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPool(max_workers=min(config.workers, len(batches)), context=spawn) as pool:
        pending: set[Future[None]] = {
            pool.schedule(
                run_batch, args=[config, batch], timeout=START_UP_S + config.timeout_s * len(batch)
            )
            for batch in batches
        }
        try:
            while pending:
                done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    error = future.exception()
                    # A lost worker leaves its episodes missing; any other error would repeat.
                    if error is not None and not isinstance(error, TimeoutError | ProcessExpired):
                        raise error
                yield
        finally:
            if pending:
                pool.stop()


def _batches(episodes: Sequence[Episode], workers: int) -> list[list[Episode]]:
    """Group episodes by task, in batches small enough to occupy all workers."""
    size = max(1, min(BATCH, -(-len(episodes) // workers)))
    batches = []
    for task in dict.fromkeys(episode.task for episode in episodes):
        mine = [episode for episode in episodes if episode.task == task]
        batches += [mine[start : start + size] for start in range(0, len(mine), size)]
    return batches


def _check_settings(config: CollectConfig) -> None:
    """Refuse to mix demonstrations of different settings in one folder."""
    path = config.output / "collect.json"
    settings: Origin = {
        "jitter": config.jitter,
        "seed": config.seed,
        "image_size": config.image_size,
        "images_every": config.images_every,
        "multisample": config.multisample,
        "keep_failures": config.keep_failures,
    }
    if not path.exists():
        write_json(path, settings)
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    for name, value in settings.items():
        if found.get(name) != value:
            raise InvalidInputError(
                f"{name} must be {found.get(name)}, as in the demonstrations that "
                f"{str(config.output)!r} already holds, got {value}; choose another folder"
            )
