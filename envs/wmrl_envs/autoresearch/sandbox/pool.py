"""The sandbox: a supervised pool of walled workers with their imports already made."""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from wmrl_envs.autoresearch.sandbox.record import Execution, Level, Program
from wmrl_envs.autoresearch.sandbox.wall import build_wall, choose_level
from wmrl_envs.autoresearch.sandbox.worker import Worker, check_public
from wmrl_envs.errors import InfrastructureError, InvalidInputError

_LOG = logging.getLogger(__name__)

DATA_SCIENCE = (
    "numpy", "pandas", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model", "sklearn.svm",
    "sklearn.neighbors", "sklearn.pipeline", "sklearn.preprocessing", "sklearn.compose",
    "sklearn.impute", "sklearn.model_selection", "sklearn.metrics", "sklearn.tree",
    "sklearn.naive_bayes", "sklearn.neural_network", "sklearn.gaussian_process",
    "sklearn.discriminant_analysis", "sklearn.feature_selection", "sklearn.decomposition",
)  # fmt: skip
"""What a worker imports before its first program: most of what agents' programs import."""

PACKAGED_DATA = (
    "sklearn/datasets/data", "statsmodels/datasets", "palmerpenguins/data", "vega_datasets/_data",
    "lifelines/datasets",
)  # fmt: skip
"""Data inside packages; hidden from programs, since tasks' answers were made from them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxConfig:
    """Size and strength of a sandbox."""

    workers: int = 1
    """Programs that run at one time."""

    level: Level | None = None
    """The wall to insist on; None takes the strongest that works here."""

    unsafe: bool = False
    """Whether resource limits alone will do where nothing better works."""

    preload: tuple[str, ...] = DATA_SCIENCE
    """Modules imported once a worker, before any program."""

    hidden: tuple[str, ...] = PACKAGED_DATA
    """Paths below the package folder that appear empty to programs."""

    attempts: int = 3
    """Times a program is started before its execution counts as missing."""

    recycle_after: int = 500
    """Programs after which a worker is replaced."""

    def __post_init__(self) -> None:
        """Reject sandboxes that could run nothing."""
        if self.workers < 1 or self.attempts < 1 or self.recycle_after < 1:
            raise InvalidInputError(
                "workers, attempts and recycle_after must be at least 1, got "
                f"{self.workers}, {self.attempts} and {self.recycle_after}"
            )


class Sandbox:
    """Runs programs behind a wall; use as a context manager. Safe for use by several threads."""

    def __init__(
        self, config: SandboxConfig | None = None, *, publics: Sequence[Path] = ()
    ) -> None:
        """Choose the wall; workers start with the first program.

        Args:
            config: Size and strength.
            publics: Folders that programs will be shown. A program may name another one, which
                costs each worker a restart.
        """
        self.config = config or SandboxConfig()
        self.level = choose_level(self.config.level, unsafe=self.config.unsafe)
        self._publics = [check_public(folder) for folder in publics]
        self._idle: list[_Slot] = [_Slot() for _ in range(self.config.workers)]
        self._free = threading.Semaphore(self.config.workers)
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> "Sandbox":
        """Return the sandbox."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        self.close()

    def warm_up(self) -> None:
        """Start every worker now rather than with its first program."""
        self.run_many([Program(code="")] * self.config.workers)

    def run(self, program: Program) -> Execution:
        """Run one program, again after a failure of the sandbox.

        Raises:
            InfrastructureError: If the sandbox failed every time: the outcome is missing.
        """
        program = replace(program, public=self._admit(program.public))
        with self._free:
            with self._lock:
                if self._closed:
                    raise InvalidInputError("sandbox must be open, got a closed one")
                slot = self._idle.pop()
            try:
                return self._attempt(program, slot)
            finally:
                with self._lock:
                    self._idle.append(slot)
                    if self._closed:
                        slot.close()

    def run_many(self, programs: Sequence[Program]) -> list[Execution | None]:
        """Return one record a program, in order; None where it is missing after every attempt."""
        with ThreadPoolExecutor(max_workers=self.config.workers) as threads:
            return list(threads.map(self._run_or_none, programs))

    def _run_or_none(self, program: Program) -> Execution | None:
        try:
            return self.run(program)
        except InfrastructureError as error:
            _LOG.warning("an execution is missing: %s", error)
            return None

    def _admit(self, public: Path | None) -> Path | None:
        if public is None:
            return None
        with self._lock:
            if public in self._publics:
                return public
            real = check_public(public)
            if real not in self._publics:
                self._publics.append(real)
            return real

    def _attempt(self, program: Program, slot: "_Slot") -> Execution:
        failure = InfrastructureError("not tried")
        for attempt in range(1, self.config.attempts + 1):
            try:
                record = self._worker(slot, program.public).run(program)
            except InfrastructureError as error:
                _LOG.warning("attempt %d of %d: %s", attempt, self.config.attempts, error)
                slot.close()
                failure = error
            else:
                return replace(record, attempts=attempt)
        raise failure

    def _worker(self, slot: "_Slot", public: Path | None) -> Worker:
        """Return the slot's worker, a new one where it is worn out or lacks the folder."""
        unknown = public is not None and public not in slot.publics
        if slot.worker is not None and (unknown or slot.served >= self.config.recycle_after):
            slot.close()
        if slot.worker is None:
            with self._lock:
                slot.publics = tuple(self._publics)
            wall = build_wall(self.level, publics=slot.publics, hidden=self.config.hidden)
            slot.worker = Worker(wall, preload=self.config.preload)
            slot.served = 0
        slot.served += 1
        return slot.worker

    def close(self) -> None:
        """End the workers; a program still running ends with its worker."""
        with self._lock:
            self._closed = True
            for slot in self._idle:
                slot.close()


class _Slot:
    """A place for a worker."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.publics: tuple[Path, ...] = ()
        self.served = 0

    def close(self) -> None:
        """End the worker that is there."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None
