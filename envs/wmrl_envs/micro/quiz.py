"""MicroQuiz: guess a sum in a few tries, all in text, without a sandbox.

The smallest environment with the shape of an agent's task: a question, messages that may be
malformed, feedback after each, and a graded score at the end.
"""

import re
import string
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from wmrl_envs.errors import InvalidInputError

MAX_TURNS = 3
LARGEST_TERM = 49
MAX_TEXT = 256

MALFORMED_SCORE = 0.0
VALID_SCORE = 0.5
"""Score of an answer that is a number; the other half is for how near it is."""

_NUMBER = re.compile(r"[+-]?\d{1,9}")


class MicroQuizEnv(gym.Env[str, str]):
    """Answer ``What is a + b?`` by a whole number, in at most three turns.

    **Observation**, **action**: text. **Reward** 0 until the episode ends, then its score: 0 if
    the last answer holds no number, else 0.5 + 0.5 / (1 + distance to the sum), so 1 if right.
    ``terminated`` when the answer is right or the turns are used up.
    ``info``: ``is_success``, ``turn``, ``score`` of the last answer.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self) -> None:
        """Make the spaces; there is no question before :meth:`reset`."""
        space = gym.spaces.Text(MAX_TEXT, min_length=0, charset=string.printable)
        self.observation_space = space
        self.action_space = space
        self._terms = (0, 0)
        self._turn = 0
        self._is_running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Ask a new question, drawn by the environment's generator."""
        super().reset(seed=seed)
        first, second = self.np_random.integers(1, LARGEST_TERM + 1, size=2)
        self._terms = (int(first), int(second))
        self._turn = 0
        self._is_running = True
        info = {"is_success": False, "turn": 0, "score": MALFORMED_SCORE}
        return f"What is {first} + {second}? Answer with a number.", info

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take an answer and return feedback.

        Raises:
            InvalidInputError: If the action is not text.
            gymnasium.error.ResetNeeded: If no episode is running.
        """
        if not isinstance(action, str):
            raise InvalidInputError(f"action must be text, got {type(action).__name__}")
        if not self._is_running:
            raise ResetNeeded("call reset() before step(): no episode is running")
        self._turn += 1
        distance = self._distance(action)
        is_success = distance == 0
        self._is_running = not is_success and self._turn < MAX_TURNS
        score = (
            MALFORMED_SCORE
            if distance is None
            else VALID_SCORE + (1.0 - VALID_SCORE) / (1 + abs(distance))
        )
        reward = 0.0 if self._is_running else score
        info = {"is_success": is_success, "turn": self._turn, "score": score}
        return _feedback(distance), reward, not self._is_running, False, info

    def _distance(self, answer: str) -> int | None:
        numbers = _NUMBER.findall(answer)
        return int(numbers[-1]) - sum(self._terms) if numbers else None


def _feedback(distance: int | None) -> str:
    if distance is None:
        return "No number found. Answer with a number."
    return ("Right.", "Too high.", "Too low.")[int(np.sign(distance))]
