"""``WMRL-MLEDojo``: competitions in MLE-Dojo's layout, with its five actions."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

from wmrl_envs.autoresearch.reward import truncate
from wmrl_envs.autoresearch.sandbox import Execution, Limits, Program, Sandbox, SandboxConfig
from wmrl_envs.autoresearch.submission import Invalid
from wmrl_envs.autoresearch.text import UnicodeText, code_in
from wmrl_envs.errors import InvalidInputError
from wmrl_envs.mledojo.layout import Competition, load_competition

ACTIONS = ("request_info", "validate_code", "execute_code", "get_history", "reset")
INFO = ("overview", "sample_submission", "data_structure", "data_path", "output_path")
_HISTORY_SHOWN = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class MLEDojoConfig:
    """What one environment asks of an agent."""

    turns: int = 15
    """Actions an episode may take, of any kind."""

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


class MLEDojoEnv(gym.Env[str, str]):
    """Work on a competition through five actions.

    Observation: text. Action: text, a JSON object ``{"action": NAME, ...}`` with NAME one of
    ``request_info`` (``info_type``), ``validate_code`` (``code``), ``execute_code`` (``code``),
    ``get_history`` and ``reset``; text that is no such object is code to execute.
    Reward: what the action adds to the best HumanRank so far, so that the return is the best.
    Terminated at the top of every board; truncated after the last turn.
    ``info``: ``competition``, ``turn``, ``action``, ``human_rank``, ``best_human_rank``, ``score``,
    ``is_valid``, ``problem``, ``status``, ``seconds``, ``cpu_seconds``, ``level``.
    ``reset`` as an action forgets the history and the best; rewards already paid are not paid twice.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}

    def __init__(
        self,
        competition: str,
        data_root: str | Path,
        *,
        metric_file: Path | None = None,
        sandbox: Sandbox | None = None,
        sandbox_config: SandboxConfig | None = None,
        config: MLEDojoConfig | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Read the competition; the sandbox starts with the first execution."""
        self.config = config or MLEDojoConfig()
        self.competition: Competition = load_competition(
            Path(data_root), competition, metric_file=metric_file
        )
        self.render_mode = render_mode
        self.observation_space = UnicodeText(self.config.longest_observation)
        self.action_space = UnicodeText(self.config.longest_action)
        self._shared, self._sandbox_config = sandbox, sandbox_config
        self._own: Sandbox | None = None
        self._actions: dict[str, Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]] = {
            "request_info": self._request_info,
            "validate_code": self._validate,
            "execute_code": self._execute,
            "get_history": self._get_history,
            "reset": self._start_over,
        }
        self._history: list[str] = []
        self._turn, self._best, self._paid, self._seed = 0, 0.0, 0.0, 0
        self._over = True
        self._shown = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Describe the competition and the actions."""
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(1 << 31))
        self._history = []
        self._turn, self._best, self._paid = 0, 0.0, 0.0
        self._over = False
        self._shown = self._cut(f"{self.competition.description}\n\n{_HELP}")
        return self._shown, {"competition": self.competition.name, "turn": 0}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one of the five actions.

        Raises:
            InfrastructureError: If the sandbox failed; the turn is not used up.
            InvalidInputError: If the episode is over.
        """
        if self._over:
            raise InvalidInputError("episode must be running, got a step after its end; call reset")
        name, arguments = parse_action(action[: self.config.longest_action])
        if name not in self._actions:
            text, found = f"action must be one of {', '.join(ACTIONS)}, got {name!r}", {}
        else:
            text, found = self._actions[name](arguments)
        self._turn += 1
        reward = max(0.0, self._best - self._paid)
        self._paid = max(self._paid, self._best)
        terminated = found.get("human_rank", 0.0) >= 1.0
        truncated = not terminated and self._turn >= self.config.turns
        self._over = terminated or truncated
        self._shown = self._cut(text)
        return self._shown, reward, terminated, truncated, self._info(name, found)

    def _request_info(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        kind = arguments.get("info_type", "overview")
        public = self.competition.public
        if kind == "overview":
            return self.competition.description, {}
        if kind == "sample_submission":
            with (public / "sample_submission.csv").open(encoding="utf-8") as file:
                return "".join(next(file, "") for _ in range(6)), {}
        if kind == "data_structure":
            files = sorted(path for path in public.rglob("*") if path.is_file())[:200]
            return "\n".join(f"input/{file.relative_to(public)}" for file in files), {}
        if kind in ("data_path", "output_path"):
            return ("input/" if kind == "data_path" else "submission.csv"), {}
        return f"info_type must be one of {', '.join(INFO)}, got {kind!r}", {}

    def _validate(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Run the code without grading what it writes."""
        run = self._run(arguments)
        if isinstance(run, str):
            return run, {}
        text = f"Code {'runs' if run.status == 'ok' else 'fails'}. {_output(run)}"
        self._history.append(f"validate_code: {run.status}")
        return text, _of(run)

    def _execute(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        run = self._run(arguments)
        if isinstance(run, str):
            return run, {}
        found = _of(run)
        if run.status != "ok" or run.collected is None:
            reason = run.collect_problem or "must be written, found none"
            problem = f"submission.csv {reason}" if run.status == "ok" else run.status
            graded: Any = Invalid(reason=problem)
        else:
            graded = self.competition.grade(run.collected)
        if isinstance(graded, Invalid):
            self._history.append(f"execute_code: no score ({graded.reason})")
            return f"No score. {graded.reason}\n{_output(run)}", found | {"problem": graded.reason}
        self._best = max(self._best, graded.position)
        text = f"Score {graded.score:.6g}, HumanRank {graded.position:.4f}, best {self._best:.4f}."
        self._history.append(f"execute_code: {text}")
        found |= {"human_rank": graded.position, "score": graded.score, "is_valid": True}
        return f"{text}\n{_output(run)}", found

    def _get_history(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        shown = self._history[-_HISTORY_SHOWN:]
        return "\n".join(shown) or "No action so far.", {}

    def _start_over(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._history, self._best = [], 0.0
        return "History and best score are forgotten.", {}

    def _run(self, arguments: dict[str, Any]) -> Execution | str:
        code = arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            return "code must be a Python program, got none"
        program = Program(
            code=code,
            public=self.competition.public,
            seed=self._seed,
            limits=self.config.limits,
        )
        return self._sandbox().run(program)

    def _sandbox(self) -> Sandbox:
        if self._shared is not None:
            return self._shared
        if self._own is None:
            self._own = Sandbox(self._sandbox_config, publics=[self.competition.public])
        return self._own

    def _cut(self, text: str) -> str:
        return truncate(text, self.config.longest_observation)

    def _info(self, action: str, found: dict[str, Any]) -> dict[str, Any]:
        return {
            "competition": self.competition.name,
            "turn": self._turn,
            "action": action,
            "human_rank": 0.0,
            "best_human_rank": self._best,
            "score": None,
            "is_valid": False,
            "problem": None,
            "status": "not run",
            "seconds": 0.0,
            "cpu_seconds": 0.0,
            "level": None,
        } | found

    def render(self) -> str | None:
        """Return the last observation."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the environment's own sandbox."""
        if self._own is not None:
            self._own.close()
            self._own = None


def parse_action(text: str) -> tuple[str, dict[str, Any]]:
    """Return an action's name and arguments; text that is no JSON object is code to execute."""
    try:
        parsed = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return "execute_code", {"code": code_in(text)}
    if not isinstance(parsed, dict) or not isinstance(parsed.get("action"), str):
        return "execute_code", {"code": code_in(text)}
    return parsed["action"], {key: value for key, value in parsed.items() if key != "action"}


def _of(run: Execution) -> dict[str, Any]:
    return {
        "status": run.status,
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
        "level": run.level,
    }


def _output(run: Execution) -> str:
    parts = [f"Run: {run.status}, {run.seconds:.1f} s."]
    parts += [f"Output:\n{run.stdout.strip()}"] if run.stdout.strip() else []
    parts += [f"Errors:\n{run.stderr.strip()}"] if run.stderr.strip() else []
    return "\n".join(parts)


_HELP = (
    'Answer with one JSON object: {"action": "request_info", "info_type": one of '
    + ", ".join(INFO)
    + '}, {"action": "validate_code", "code": ...}, {"action": "execute_code", "code": ...}, '
    '{"action": "get_history"} or {"action": "reset"}. Code reads the data from input/ and writes '
    "submission.csv."
)
