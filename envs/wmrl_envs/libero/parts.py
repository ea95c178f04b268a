"""The folder of a collection: what is finished, what is missing, and how parts become one file.

A finished episode is ``parts/<task>/<episode>.hdf5`` until it is merged into
``<task>_demo.hdf5``; a failed one stays ``parts/<task>/<episode>.json``.
"""

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.dataset import (
    Demonstration,
    Origin,
    TaskInfo,
    merge_demonstrations,
    read_origins,
    write_demonstrations,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """One demonstration to be made."""

    task: str
    init_state: int
    repeat: int

    @property
    def stem(self) -> str:
        """Name of the episode within its task."""
        return f"init{self.init_state:02d}_repeat{self.repeat}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskReport:
    """What a collection holds for one task."""

    task: str
    successes: int
    failures: int
    missing: int
    """Episodes without an outcome, because their worker died or hung."""

    mean_steps: float
    """Over successes; NaN without any."""

    mean_cpu_s: float
    """Over all episodes: simulation, control and rendering; NaN without any."""


class Parts:
    """The files of one collection; several processes may add to the same folder."""

    def __init__(self, output: Path) -> None:
        """Remember the folder; nothing is read or made yet."""
        self._output = output
        self._merged: dict[str, frozenset[str]] = {}

    def demonstration_file(self, task: str) -> Path:
        """Path of a task's demonstrations, named as the official files are."""
        return self._output / f"{task}_demo.hdf5"

    def missing(self, episodes: Iterable[Episode]) -> list[Episode]:
        """Return the episodes that have no outcome yet, in order."""
        wanted = list(episodes)
        finished = {task: self._finished(task) for task in {episode.task for episode in wanted}}
        return [episode for episode in wanted if episode.stem not in finished[episode.task]]

    def add(self, episode: Episode, info: TaskInfo, demonstration: Demonstration) -> None:
        """Store a demonstration as a part of its own."""
        path = self._folder(episode.task) / f"{episode.stem}.hdf5"
        write_demonstrations(path, info, [demonstration])

    def note_failure(self, episode: Episode, origin: Origin) -> None:
        """Store that an episode failed, without its steps."""
        write_json(self._folder(episode.task) / f"{episode.stem}.json", origin)

    def merge(self, task: str) -> None:
        """Move a task's finished parts into its file.

        A run that was stopped between the two halves of an earlier merge left parts behind that
        the file already holds: those are only removed.
        """
        self._merged.pop(task, None)
        held = self._merged_stems(task)
        parts = sorted(self._folder(task).glob("*.hdf5"))
        fresh = [part for part in parts if part.stem not in held]
        if fresh:
            target = self.demonstration_file(task)
            merge_demonstrations(target, [target, *fresh] if held else fresh)
        for part in parts:
            part.unlink()
        self._merged.pop(task, None)

    def report(self, task: str, episodes: Sequence[Episode]) -> TaskReport:
        """Return counts and means over those ``episodes`` that belong to ``task``; merge first."""
        wanted = {episode.stem for episode in episodes if episode.task == task}
        origins = [origin for origin in self._origins(task) if str(origin["episode"]) in wanted]
        good = [origin for origin in origins if origin["is_success"]]
        return TaskReport(
            task=task,
            successes=len(good),
            failures=len(origins) - len(good),
            missing=len(wanted) - len(origins),
            mean_steps=_mean([float(origin["steps"]) for origin in good]),
            mean_cpu_s=_mean([float(origin["cpu_s"]) for origin in origins]),
        )

    def _folder(self, task: str) -> Path:
        return self._output / "parts" / task

    def _finished(self, task: str) -> frozenset[str]:
        folder = self._folder(task)
        stems = {path.stem for ending in ("hdf5", "json") for path in folder.glob(f"*.{ending}")}
        return self._merged_stems(task) | stems

    def _merged_stems(self, task: str) -> frozenset[str]:
        if task not in self._merged:
            path = self.demonstration_file(task)
            origins = read_origins(path) if path.exists() else []
            self._merged[task] = frozenset(str(origin["episode"]) for origin in origins)
        return self._merged[task]

    def _origins(self, task: str) -> list[Origin]:
        path = self.demonstration_file(task)
        merged = read_origins(path) if path.exists() else []
        notes = sorted(self._folder(task).glob("*.json"))
        return merged + [json.loads(note.read_text(encoding="utf-8")) for note in notes]


def write_json(path: Path, content: Origin) -> None:
    """Write a small JSON file, whole or not at all.

    Raises:
        InvalidInputError: If the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(content, indent=2), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InvalidInputError(
            f"{str(path)!r} must be writable, got {error.strerror}; choose another folder"
        ) from error


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
