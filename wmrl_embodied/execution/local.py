"""Local pool: jobs on spawned worker processes, where a dead or hung worker costs one attempt.

Pebble's process pool does the supervision: a job past its time limit has its process killed and
replaced, a process that dies fails its own job alone. What is added here is the bounded retry and
the verdict: a job that never got an answer is *missing*, which is not a score of 0.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as JobTimeoutError
from dataclasses import dataclass
from typing import Generic, TypeVar

from pebble import ProcessExpired, ProcessPool

from wmrl_envs.errors import InfrastructureError, InvalidInputError

Job = TypeVar("Job")
Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolConfig:
    """Size and patience of a pool."""

    workers: int = 2
    """Worker processes."""

    timeout_s: float = 180.0
    """Wall-clock seconds a job may take, a worker's start included."""

    attempts: int = 3
    """Times a job is tried before it counts as missing."""

    recycle_after: int = 0
    """Jobs after which a worker is replaced, against leaks of native libraries; 0 is never."""

    def __post_init__(self) -> None:
        """Reject pools that could run nothing."""
        if self.workers < 1 or self.attempts < 1 or self.timeout_s <= 0.0 or self.recycle_after < 0:
            raise InvalidInputError(
                "workers and attempts must be at least 1, timeout_s above 0 and recycle_after at "
                f"least 0, got workers={self.workers}, attempts={self.attempts}, "
                f"timeout_s={self.timeout_s}, recycle_after={self.recycle_after}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempted(Generic[Answer]):
    """A job's answer, or None and the last failure when it is missing."""

    answer: Answer | None
    attempts: int
    failure: str | None = None


class LocalPool(Generic[Job, Answer]):
    """Runs ``function(job)`` on spawned processes; use as a context manager.

    Processes are spawned, never forked: an OpenGL context does not survive a fork.
    """

    def __init__(
        self,
        function: Callable[[Job], Answer],
        config: PoolConfig,
        *,
        initializer: Callable[..., None] | None = None,
        arguments: tuple[object, ...] = (),
    ) -> None:
        self._function = function
        self._config = config
        self._pool = ProcessPool(
            max_workers=config.workers,
            max_tasks=config.recycle_after,
            initializer=initializer,
            initargs=list(arguments),
            context=multiprocessing.get_context("spawn"),
        )

    def __enter__(self) -> "LocalPool[Job, Answer]":
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the workers."""
        self.close()

    def map(self, jobs: Sequence[Job]) -> list[Attempted[Answer]]:
        """Return one record a job, in order, after retries."""
        results = dict(self.stream(jobs))
        return [results[index] for index in range(len(jobs))]

    def stream(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Attempted[Answer]]]:
        """Yield ``(index, record)`` for every job as it ends; failures are retried in a next round."""
        waiting, failed = list(range(len(jobs))), list[tuple[int, str]]()
        for attempt in range(1, self._config.attempts + 1):
            futures = {
                index: self._pool.schedule(
                    self._function, args=[jobs[index]], timeout=self._config.timeout_s
                )
                for index in waiting
            }
            failed = []
            for index, future in futures.items():
                try:
                    yield index, Attempted(answer=future.result(), attempts=attempt)
                except (JobTimeoutError, ProcessExpired, InfrastructureError) as failure:
                    _LOG.warning("job %d, attempt %d: %r", index, attempt, failure)
                    failed.append((index, repr(failure)))
            waiting = [index for index, _ in failed]
        for index, failure in failed:
            yield index, Attempted(answer=None, attempts=self._config.attempts, failure=failure)

    def close(self) -> None:
        """Stop the workers without waiting for what they do."""
        self._pool.stop()
        self._pool.join()
