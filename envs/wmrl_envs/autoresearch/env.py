"""``WMRL-AutoResearch``: an agent writes machine-learning code, a sandbox runs it, a board scores it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym

from wmrl_envs.autoresearch import scaffold
from wmrl_envs.autoresearch.reward import SCALES, Scale, Verdict, feedback, judge, refuse, truncate
from wmrl_envs.autoresearch.sandbox import Limits, Program, Sandbox, SandboxConfig
from wmrl_envs.autoresearch.tasks import ROWS, Rows, Task, load_task, task_names
from wmrl_envs.autoresearch.text import UnicodeText, code_in
from wmrl_envs.errors import InvalidInputError

Action = Literal["program", "scaffold"]
ACTIONS: tuple[Action, ...] = ("program", "scaffold")


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoResearchConfig:
    """What one environment asks of an agent."""

    action: Action = "program"
    """``program``: a whole Python program; ``scaffold``: one scikit-learn expression."""

    turns: int = 4
    """Actions an episode may take."""

    reward: Scale = "position"
    """``position``: leaderboard position; ``ladder``: with steps for what nearly worked."""

    per_turn: bool = False
    """True: every turn pays its own reward. False: it pays what it adds to the best so far, so
    that an episode's return is its best reward."""

    rows: Rows = "reward"
    """Hidden rows that are scored; keep ``report`` for reports."""

    longest_observation: int = 4000
    """Characters of an observation."""

    longest_action: int = 20000
    """Characters of an action that are read."""

    limits: Limits = field(default_factory=lambda: Limits(wall_s=60.0, cpu_s=20.0))
    """Bounds of one execution; CPU seconds bind first, since they do not depend on the machine's load."""

    def __post_init__(self) -> None:
        """Reject what no environment could be."""
        if self.action not in ACTIONS:
            raise InvalidInputError(
                f"action must be one of {', '.join(ACTIONS)}, got {self.action!r}"
            )
        if self.reward not in SCALES or self.rows not in ROWS:
            raise InvalidInputError(
                f"reward must be one of {', '.join(SCALES)} and rows one of {', '.join(ROWS)}, got "
                f"{self.reward!r} and {self.rows!r}"
            )
        if self.turns < 1 or self.longest_observation < 100 or self.longest_action < 1:
            raise InvalidInputError(
                "turns and longest_action must be at least 1 and longest_observation at least 100, "
                f"got {self.turns}, {self.longest_action} and {self.longest_observation}"
            )


class AutoResearchEnv(gym.Env[str, str]):
    """Improve a model over a few turns.

    Observation: text. At first the task; then what the last action led to.
    Action: text. A Python program, bare or in a code fence, or one scikit-learn expression.
    Reward: in [0, 1], see :class:`AutoResearchConfig`.
    Terminated at the top of the leaderboard; truncated after the last turn.
    ``info``: ``task``, ``turn``, ``position``, ``best_position``, ``score``, ``is_valid``,
    ``problem``, ``status``, ``seconds``, ``cpu_seconds``, ``level``.

    A failure of the sandbox itself raises ``InfrastructureError`` from ``step``: that turn's outcome
    is missing, which is not a reward of 0. The same action may then be tried again.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(
        self,
        task: str | Path | Sequence[str | Path] | None = None,
        *,
        sandbox: Sandbox | None = None,
        sandbox_config: SandboxConfig | None = None,
        config: AutoResearchConfig | None = None,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        """Load the tasks; the sandbox starts with the first step.

        Args:
            task: A bundled task's name, a task folder, or several of them, of which each reset
                draws one. None is all bundled tasks.
            sandbox: A sandbox to share; without one the environment has its own.
            sandbox_config: Of its own sandbox.
            config: Settings.
            render_mode: ``"ansi"`` or None.
            **overrides: Fields of the configuration, for use with ``gymnasium.make``.
        """
        if config is not None and overrides:
            raise InvalidInputError(
                f"config must be given alone, got it with {', '.join(overrides)}; use one of the two"
            )
        self.config = config or AutoResearchConfig(**overrides)
        wanted = task_names() if task is None else task
        several = (wanted,) if isinstance(wanted, str | Path) else tuple(wanted)
        if not several:
            raise InvalidInputError(f"task must name a task, got none; {', '.join(task_names())}")
        self.tasks = tuple(load_task(name) for name in several)
        self.render_mode = render_mode
        self.observation_space = UnicodeText(self.config.longest_observation)
        self.action_space = UnicodeText(self.config.longest_action)
        self._shared, self._sandbox_config = sandbox, sandbox_config
        self._own: Sandbox | None = None
        self.task: Task = self.tasks[0]
        self._turn, self._best_reward, self._best_position = 0, 0.0, 0.0
        self._over = True
        self._seed = 0
        self._shown = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Draw a task, or take ``options["task"]`` by name, and describe it."""
        super().reset(seed=seed)
        self.task = self._choose((options or {}).get("task"))
        self._seed = int(self.np_random.integers(1 << 31))
        self._turn, self._best_reward, self._best_position = 0, 0.0, 0.0
        self._over = False
        self._shown = truncate(
            introduction(self.task, self.config), self.config.longest_observation
        )
        return self._shown, {"task": self.task.name, "turn": 0}

    def _choose(self, wanted: str | None) -> Task:
        if wanted is None:
            return self.tasks[int(self.np_random.integers(len(self.tasks)))]
        by_name = {task.name: task for task in self.tasks}
        if wanted not in by_name:
            raise InvalidInputError(
                f"options['task'] must be one of {', '.join(by_name)}, got {wanted!r}"
            )
        return by_name[wanted]

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run the action and tell what came of it.

        Raises:
            InfrastructureError: If the sandbox failed; the turn is not used up.
            InvalidInputError: If the episode is over.
        """
        if self._over:
            raise InvalidInputError("episode must be running, got a step after its end; call reset")
        verdict = self.evaluate(action)
        self._turn += 1
        gain = max(0.0, verdict.reward - self._best_reward)
        reward = verdict.reward if self.config.per_turn else gain
        self._best_reward = max(self._best_reward, verdict.reward)
        self._best_position = max(self._best_position, verdict.position)
        terminated = verdict.is_valid and verdict.position >= 1.0
        truncated = not terminated and self._turn >= self.config.turns
        self._over = terminated or truncated
        self._shown = feedback(verdict, longest=self.config.longest_observation)
        return self._shown, reward, terminated, truncated, self._info(verdict)

    def evaluate(self, action: str) -> Verdict:
        """Return the verdict on an action for the present task, without taking a turn."""
        action = action[: self.config.longest_action]
        if self.config.action == "scaffold":
            expression = scaffold.clean(action)
            problem = scaffold.check(expression, self.task)
            if problem:
                return refuse(problem)
            code = scaffold.render(expression, self.task)
        else:
            code = code_in(action)
        program = Program(
            code=code, public=self.task.public, seed=self._seed, limits=self.config.limits
        )
        execution = self._sandbox().run(program)
        return judge(execution, self.task, scale=self.config.reward, rows=self.config.rows)

    def _sandbox(self) -> Sandbox:
        if self._shared is not None:
            return self._shared
        if self._own is None:
            publics = [task.public for task in self.tasks]
            self._own = Sandbox(self._sandbox_config, publics=publics)
        return self._own

    def _info(self, verdict: Verdict) -> dict[str, Any]:
        run = verdict.execution
        return {
            "task": self.task.name,
            "turn": self._turn,
            "position": verdict.position,
            "best_position": self._best_position,
            "score": verdict.score,
            "is_valid": verdict.is_valid,
            "problem": verdict.problem,
            "status": run.status if run else "refused",
            "seconds": run.seconds if run else 0.0,
            "cpu_seconds": run.cpu_seconds if run else 0.0,
            "level": run.level if run else None,
        }

    def render(self) -> str | None:
        """Return the last observation."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the environment's own sandbox."""
        if self._own is not None:
            self._own.close()
            self._own = None


def introduction(task: Task, config: AutoResearchConfig) -> str:
    """Return the first observation: the task, its files, what an action must be."""
    shown = "\n".join(_first_lines(task.public / name) for name in ("train.csv", "test.csv"))
    better = "higher" if task.metric.higher_is_better else "lower"
    if config.action == "scaffold":
        form = scaffold.prompt(task)
    else:
        form = (
            "Write a Python program that reads input/train.csv and input/test.csv and writes "
            f"submission.csv with the columns {', '.join(task.columns)}, one row for each row of "
            "input/test.csv. It has no network and at most "
            f"{config.limits.cpu_s:.0f} CPU seconds."
        )
    return (
        f"{task.description}\n\n{shown}\n\nMetric: {task.metric.name}, {better} is better. "
        f"You have {config.turns} turns; the best counts.\n\n{form}"
    )


def _first_lines(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        lines = [truncate(next(file, "").rstrip("\n"), 300) for _ in range(3)]
    return f"input/{path.name}:\n" + "\n".join(line for line in lines if line)
