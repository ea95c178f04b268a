"""Vector environment: many episodes at once in supervised worker processes.

Workers are spawned, never forked, because a process that has touched GL must not be. A worker that
dies or hangs is replaced, and its episode is *missing*: ``truncated``, reward NaN, and ``True`` in
the mask ``info["missing"]``. NaN rather than zero, so that a crash can never pass for a failure of
the policy: leave such episodes out.
"""

import functools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import (
    CloudpickleWrapper,
    batch_space,
    concatenate,
    create_empty_array,
    iterate,
)
from numpy.typing import NDArray

from wmrl_envs.errors import InfrastructureError, InvalidInputError, WmrlError

MakeEnv = Callable[[], gym.Env[Any, Any]]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STOP_GRACE_S = 5.0
"""Time a worker has to free its simulator when the environment is closed."""

_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Failure:
    """Why a worker gave no answer."""

    reason: str


class SupervisedVectorEnv(VectorEnv[Any, Any, Any]):
    """Environments in processes of their own, each watched and replaced when it fails.

    Autoreset follows Gymnasium's ``NEXT_STEP`` mode: the step after an episode's end, missing or
    not, ignores that environment's action, resets it and returns its first observation with
    reward 0. In the step that reports an episode as missing, its observation is its last one.

    **Info** holds, beside the environments' own entries, at every call: ``missing`` bool
    ``(num_envs,)``; and where it is true ``failure``, the reason as text.

    A simulator that reports :class:`~wmrl_envs.errors.InfrastructureError` is missing likewise but
    keeps its process; any other user-facing error, such as a bad action, is raised here.
    """

    def __init__(
        self,
        env_fns: Sequence[MakeEnv],
        *,
        step_timeout_s: float = 60.0,
        reset_timeout_s: float = 300.0,
        max_failures: int = 3,
    ) -> None:
        """Start the workers.

        Args:
            env_fns: One function for each environment, called in its worker; the first is also
                called here for the spaces.
            step_timeout_s: Time after which a step counts as hung.
            reset_timeout_s: The same for a reset, the start of the process included.
            max_failures: Failures of one worker in a row, after which the call raises.

        Raises:
            InvalidInputError: If there is no environment, or a limit is not positive.
        """
        for name, value in (
            ("num_envs", len(env_fns)),
            ("step_timeout_s", step_timeout_s),
            ("reset_timeout_s", reset_timeout_s),
            ("max_failures", max_failures),
        ):
            if value <= 0:
                raise InvalidInputError(f"{name} must be positive, got {value}")
        self.num_envs = len(env_fns)
        example = env_fns[0]()
        self.metadata = {**example.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = example.render_mode
        self.single_observation_space = example.observation_space
        self.single_action_space = example.action_space
        example.close()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._step_timeout_s = step_timeout_s
        self._reset_timeout_s = reset_timeout_s
        self._max_failures = max_failures
        self._seeds: list[int | None] = [None] * self.num_envs
        self._options: dict[str, Any] | None = None
        self._last: list[Any] = [None] * self.num_envs
        self._must_reset = np.ones(self.num_envs, dtype=bool)
        self._workers = [_Worker(make_env) for make_env in env_fns]

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers, in order; they change when a worker is replaced."""
        return tuple(worker.pid for worker in self._workers)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments.

        Args:
            seed: Seed of the first environment, the others count up from it; or one for each.
            options: Passed to every reset, autoresets included.

        Raises:
            InfrastructureError: If a worker fails ``max_failures`` times in a row.
        """
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InvalidInputError(
                f"seed must be one number or {self.num_envs} of them, got {len(seeds)}"
            )
        self._seeds, self._options = seeds, options
        for worker, one in zip(self._workers, seeds, strict=True):
            worker.ask("reset", {"seed": one, "options": options}, self._reset_timeout_s)
        infos: dict[str, Any] = {}
        for i, answer in enumerate(self._answers()):
            self._last[i], info = self._insist_on_reset(i, answer)
            infos = self._add_info(infos, info, i)
        infos["missing"] = np.zeros(self.num_envs, dtype=bool)
        return self._batch(), infos

    def step(self, actions: Any) -> tuple[Any, Floats, Bools, Bools, dict[str, Any]]:
        """Step all environments, those whose episode has ended excepted: they are reset.

        Raises:
            InfrastructureError: If a worker fails ``max_failures`` times in a row.
            WmrlError: Whatever an environment says about its action.
        """
        resets = self._must_reset.copy()
        for i, action in enumerate(iterate(self.action_space, actions)):
            if resets[i]:
                self._ask_reset(i)
            else:
                self._workers[i].ask("step", action, self._step_timeout_s)
        rewards = np.zeros(self.num_envs)
        terminated, truncated, missing = np.zeros((3, self.num_envs), dtype=bool)
        infos: dict[str, Any] = {}
        for i, answer in enumerate(self._answers()):
            if resets[i]:
                self._last[i], info = self._insist_on_reset(i, answer)
            elif isinstance(answer, _Failure):
                rewards[i], truncated[i], missing[i] = np.nan, True, True
                info = {"failure": answer.reason}
            else:
                self._last[i], rewards[i], terminated[i], truncated[i], info = answer
            infos = self._add_info(infos, info, i)
        self._must_reset = terminated | truncated
        infos["missing"] = missing
        return self._batch(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...]:
        """Return one image for each environment, None where a worker fails."""
        for worker in self._workers:
            worker.ask("render", None, self._step_timeout_s)
        answers = self._answers()
        for i, answer in enumerate(answers):
            self._must_reset[i] |= isinstance(answer, _Failure)
        return tuple(None if isinstance(answer, _Failure) else answer for answer in answers)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the workers, by force if they do not stop by themselves."""
        for worker in self._workers:
            worker.ask("close", None, STOP_GRACE_S)
        for worker in self._workers:
            worker.stop(grace_s=STOP_GRACE_S)

    def _insist_on_reset(self, i: int, answer: Any) -> tuple[Any, dict[str, Any]]:
        while isinstance(answer, _Failure):
            self._ask_reset(i)
            answer = self._judge(i, self._workers[i].collect())
        self._must_reset[i] = False
        return answer

    def _answers(self) -> list[Any]:
        # All pipes are emptied before anything is raised, so that later answers stay in step.
        collected = [worker.collect() for worker in self._workers]
        return [self._judge(i, answer) for i, answer in enumerate(collected)]

    def _judge(self, i: int, answer: Any) -> Any:
        worker = self._workers[i]
        if isinstance(answer, InfrastructureError):
            answer = _Failure(reason=str(answer))
        if isinstance(answer, WmrlError | gym.error.Error):
            raise answer
        if not isinstance(answer, _Failure):
            worker.failures_in_a_row = 0
            return answer
        worker.failures_in_a_row += 1
        if worker.failures_in_a_row >= self._max_failures:
            raise InfrastructureError(
                f"worker {i} failed {worker.failures_in_a_row} times in a row: {answer.reason}; "
                "see its own messages above. A script that makes workers must guard its top level "
                "with `if __name__ == '__main__':`"
            )
        return answer

    def _ask_reset(self, i: int) -> None:
        # A replaced process has lost its random stream; it gets another one, reproducibly.
        worker, seed = self._workers[i], self._seeds[i]
        if worker.has_answered or seed is None:
            seed = None
        else:
            seed = int(np.random.SeedSequence([seed, worker.restarts]).generate_state(1)[0])
        worker.ask("reset", {"seed": seed, "options": self._options}, self._reset_timeout_s)

    def _batch(self) -> Any:
        empty = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, self._last, empty)


class _Worker:
    """One environment's process and the pipe to it."""

    def __init__(self, make_env: MakeEnv) -> None:
        self._make_env = make_env
        self.failures_in_a_row = 0
        self.restarts = 0
        self.has_answered = False
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid or -1

    def ask(self, command: str, payload: Any, timeout_s: float) -> None:
        """Send a command; the clock for its answer starts now."""
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        try:
            self._connection.send((command, payload))
        except (BrokenPipeError, ConnectionResetError):
            return  # it is dead; collect() finds the same and says so

    def collect(self) -> Any:
        """Return the answer, or a failure after which a new process is starting."""
        try:
            if self._connection.poll(max(0.0, self._deadline - time.monotonic())):
                answer = self._connection.recv()
                self.has_answered = True
                return answer
            reason = f"no answer within {self._timeout_s:g} s"
        except (EOFError, ConnectionResetError):
            self._process.join(STOP_GRACE_S)
            reason = f"the worker process ended with exit code {self._process.exitcode}"
        self.stop(grace_s=0.0)
        self.restarts += 1
        self.has_answered = False
        self._start()
        return _Failure(reason=reason)

    def stop(self, *, grace_s: float) -> None:
        self._process.join(grace_s)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._process.close()
        self._connection.close()

    def _start(self) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_serve, args=(theirs, CloudpickleWrapper(self._make_env)), daemon=True
        )
        self._process.start()
        theirs.close()


def _serve(connection: Connection, make_env: MakeEnv) -> None:
    # An error nobody expects ends the process: Python prints it, the parent reports the episode.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    env = make_env()
    while True:
        try:
            command, payload = connection.recv()
        except EOFError:
            break
        if command == "close":
            break
        try:
            answer = _execute(env, command, payload)
        except (WmrlError, gym.error.Error) as error:
            answer = error
        connection.send(answer)
    env.close()


def _execute(env: gym.Env[Any, Any], command: str, payload: Any) -> Any:
    if command == "reset":
        return env.reset(**payload)
    if command == "step":
        return env.step(payload)
    return env.render()


def make_libero(
    num_envs: int, *, step_timeout_s: float = 60.0, reset_timeout_s: float = 300.0, **kwargs: Any
) -> SupervisedVectorEnv:
    """Return supervised LIBERO environments: what ``gym.make_vec("WMRL-LIBERO")`` calls.

    Args:
        num_envs: Number of worker processes.
        step_timeout_s: See :class:`SupervisedVectorEnv`.
        reset_timeout_s: See :class:`SupervisedVectorEnv`.
        **kwargs: Arguments of :class:`wmrl_envs.libero.env.LiberoEnv`.
    """
    return SupervisedVectorEnv(
        [functools.partial(_make_one_libero, **kwargs)] * num_envs,
        step_timeout_s=step_timeout_s,
        reset_timeout_s=reset_timeout_s,
    )


def _make_one_libero(**kwargs: Any) -> gym.Env[Any, Any]:
    from wmrl_envs.libero.env import LiberoEnv

    if multiprocessing.parent_process() is not None:
        # Software GL would start a thread for each core in each worker.
        os.environ.setdefault("LP_NUM_THREADS", "1")
    return LiberoEnv(**kwargs)
