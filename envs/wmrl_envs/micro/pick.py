"""MicroPick: reach for the block an instruction names and grasp it, without a simulator.

A plane with a gripper and one block of each colour. Small, but with what makes a manipulation task:
continuous actions, an instruction that changes what is right, numbered initial states, an outcome
known only at the end.
"""

import string
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from wmrl_envs.errors import InvalidInputError

Observation = dict[str, Any]

COLOURS = ("red", "green", "blue")
MAX_STEP_M = 0.1
GRASP_RADIUS_M = 0.05
HORIZON = 40
NUM_INIT_STATES = 64
INSTRUCTION = "pick up the {} block"

ACTION_SIZE = 3


class MicroPickEnv(gym.Env[Observation, NDArray[np.float32]]):
    """Move over the named block, then close the gripper.

    **Action** ``(3,)`` in [-1, 1]: displacement in x and y (±1 = 0.1 m), close if above 0.

    **Observation**: ``state`` float32 ``(8,)``, in m: gripper, then red, green and blue block;
    ``task``: the instruction.

    **Reward** 1 on the step that grasps the named block, else 0. ``terminated`` when the gripper
    closes, ``truncated`` after 40 steps, ``info["is_success"]`` whether it holds the right block.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self) -> None:
        """Make the spaces; there is no state before :meth:`reset`."""
        self.observation_space = gym.spaces.Dict(
            {
                "state": gym.spaces.Box(-1.0, 1.0, (2 + 2 * len(COLOURS),), np.float32),
                "task": gym.spaces.Text(64, charset=string.ascii_lowercase + " "),
            }
        )
        self.action_space = gym.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)
        self._positions = np.zeros((1 + len(COLOURS), 2))
        self._target = 0
        self._init_state = -1
        self._elapsed_steps = 0
        self._is_running = False

    @property
    def language(self) -> str:
        """The instruction of the current episode."""
        return INSTRUCTION.format(COLOURS[self._target])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Place the blocks and choose the one to pick, both given by the initial state's number.

        Args:
            seed: Seed of the draw of initial states.
            options: ``{"init_state": i}`` chooses the state.

        Raises:
            InvalidInputError: If there is no such initial state.
        """
        super().reset(seed=seed)
        number = (options or {}).get("init_state", self.np_random.integers(NUM_INIT_STATES))
        if not 0 <= number < NUM_INIT_STATES:
            raise InvalidInputError(f"init_state must be in 0..{NUM_INIT_STATES - 1}, got {number}")
        self._init_state = int(number)
        layout = np.random.default_rng(self._init_state)
        self._positions[0] = 0.0
        self._positions[1:] = layout.uniform(-0.9, 0.9, (len(COLOURS), 2))
        self._target = int(layout.integers(len(COLOURS)))
        self._elapsed_steps = 0
        self._is_running = True
        return self._observe(), self._info(is_success=False)

    def step(
        self, action: ArrayLike
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Move, then close the gripper if asked.

        Raises:
            InvalidInputError: If the action is not finite and of shape ``(3,)``.
            gymnasium.error.ResetNeeded: If no episode is running.
        """
        move = np.asarray(action, dtype=np.float64)
        if move.shape != (ACTION_SIZE,) or not np.isfinite(move).all():
            raise InvalidInputError(
                f"action must be {ACTION_SIZE} finite numbers, got {move.tolist()}"
            )
        if not self._is_running:
            raise ResetNeeded("call reset() before step(): no episode is running")
        gripper = self._positions[0]
        gripper[:] = np.clip(gripper + MAX_STEP_M * np.clip(move[:2], -1.0, 1.0), -1.0, 1.0)
        self._elapsed_steps += 1
        is_closed = bool(move[2] > 0.0)
        distance = float(np.linalg.norm(gripper - self._positions[1 + self._target]))
        is_success = is_closed and distance < GRASP_RADIUS_M
        is_truncated = not is_closed and self._elapsed_steps >= HORIZON
        self._is_running = not (is_closed or is_truncated)
        info = self._info(is_success=is_success)
        return self._observe(), float(is_success), is_closed, is_truncated, info

    def _observe(self) -> Observation:
        return {"state": self._positions.ravel().astype(np.float32), "task": self.language}

    def _info(self, *, is_success: bool) -> dict[str, Any]:
        return {
            "is_success": is_success,
            "elapsed_steps": self._elapsed_steps,
            "init_state": self._init_state,
        }
