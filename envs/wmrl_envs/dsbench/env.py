"""``WMRL-DSBench``: data modelling tasks in DSBench's layout, scored by the gap they close."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

from wmrl_envs.autoresearch.reward import truncate
from wmrl_envs.autoresearch.sandbox import Execution, Limits, Program, Sandbox, SandboxConfig
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.text import UnicodeText, code_in
from wmrl_envs.dsbench.layout import ModellingTask, load_modelling_task
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class DSBenchConfig:
    """What one environment asks of an agent."""

    turns: int = 4
    """Actions an episode may take."""

    longest_observation: int = 8000
    """Characters of an observation."""

    longest_action: int = 40000
    """Characters of an action that are read."""

    limits: Limits = field(
        default_factory=lambda: Limits(
            wall_s=600.0, cpu_s=600.0, memory_bytes=8 << 30, file_bytes=1 << 30, disk_bytes=4 << 30
        )
    )
    """Bounds of one execution."""


class DSBenchEnv(gym.Env[str, str]):
    """Improve a model over a few turns.

    Observation: text. Action: text, a Python program, bare or in a code fence.
    Reward: what the turn adds to the best gap closed so far; the return is the best, and may pass 1
    where the best known score is beaten.
    Truncated after the last turn; never terminated.
    ``info``: ``task``, ``turn``, ``gap``, ``best_gap``, ``score``, ``is_valid``, ``problem``,
    ``status``, ``seconds``, ``cpu_seconds``, ``level``.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(
        self,
        task: str,
        data_root: str | Path,
        *,
        sandbox: Sandbox | None = None,
        sandbox_config: SandboxConfig | None = None,
        config: DSBenchConfig | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Read the task; the sandbox starts with the first step."""
        self.config = config or DSBenchConfig()
        self.task: ModellingTask = load_modelling_task(Path(data_root), task)
        self.render_mode = render_mode
        self.observation_space = UnicodeText(self.config.longest_observation)
        self.action_space = UnicodeText(self.config.longest_action)
        self._shared, self._sandbox_config = sandbox, sandbox_config
        self._own: Sandbox | None = None
        self._turn, self._best, self._seed = 0, 0.0, 0
        self._over = True
        self._shown = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Describe the task."""
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(1 << 31))
        self._turn, self._best, self._over = 0, 0.0, False
        self._shown = truncate(
            f"{self.task.description}\n\nWrite a Python program that reads input/train.csv and "
            "input/test.csv and writes submission.csv in the form of input/sample_submission.csv.",
            self.config.longest_observation,
        )
        return self._shown, {"task": self.task.name, "turn": 0}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run the program and tell what came of it.

        Raises:
            InfrastructureError: If the sandbox failed; the turn is not used up.
            InvalidInputError: If the episode is over.
        """
        if self._over:
            raise InvalidInputError("episode must be running, got a step after its end; call reset")
        program = Program(
            code=code_in(action[: self.config.longest_action]),
            public=self.task.public,
            seed=self._seed,
            limits=self.config.limits,
        )
        run = self._sandbox().run(program)
        score = self._score(run)
        closed = 0.0 if isinstance(score, Invalid) else self.task.gap(score)
        reward = max(0.0, closed - self._best)
        self._best = max(self._best, closed)
        self._turn += 1
        self._over = self._turn >= self.config.turns
        head = f"No score. {score.reason}" if isinstance(score, Invalid) else f"Score {score:.6g}."
        self._shown = truncate(
            f"{head}\nRun: {run.status}, {run.seconds:.1f} s.\n{run.stdout.strip()}\n"
            f"{run.stderr.strip()}",
            self.config.longest_observation,
        )
        info = {
            "task": self.task.name,
            "turn": self._turn,
            "gap": closed,
            "best_gap": self._best,
            "score": None if isinstance(score, Invalid) else score,
            "is_valid": not isinstance(score, Invalid),
            "problem": score.reason if isinstance(score, Invalid) else None,
            "status": run.status,
            "seconds": run.seconds,
            "cpu_seconds": run.cpu_seconds,
            "level": run.level,
        }
        return self._shown, reward, False, self._over, info

    def _score(self, run: Execution) -> float | Invalid:
        if run.status != "ok":
            return Invalid(reason=f"{run.error_type}: {run.message}")
        if run.collected is None:
            reason = run.collect_problem or "must be written, found none"
            return Invalid(reason=f"submission.csv {reason}")
        return self.task.score(run.collected)

    def _sandbox(self) -> Sandbox:
        if self._shared is not None:
            return self._shared
        if self._own is None:
            self._own = Sandbox(self._sandbox_config, publics=[self.task.public])
        return self._own

    def render(self) -> str | None:
        """Return the last observation."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the environment's own sandbox."""
        if self._own is not None:
            self._own.close()
            self._own = None
