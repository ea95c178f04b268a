"""LIBERO as a Gymnasium environment: official tasks and initial states, exact and fast.

Results are comparable with LIBERO's own loop: with ``multisample`` on, states, images, success and
proprioception are equal bit for bit to those of its ``OffScreenRenderEnv``. Faster it is because
images are drawn only when they are returned, and physics is not computed twice.
"""

import copy
import string
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from wmrl_envs.errors import InfrastructureError, InvalidInputError
from wmrl_envs.libero.rendering import CAMERAS, CONVENTIONS, Image, Renderer, orient
from wmrl_envs.libero.simulation import Simulation
from wmrl_envs.libero.snapshot import LiberoSnapshot
from wmrl_envs.libero.suite import (
    HORIZONS,
    SPLITS,
    LiberoTask,
    find_task,
    init_states_of,
    load_init_states,
)

if TYPE_CHECKING:
    import mujoco

Observation = dict[str, Any]
Info = dict[str, Any]

ACTION_SIZE = 7
MAX_INSTRUCTION = 256
STATE_BOUND = np.array([3.0] * 3 + [6.3] * 3 + [0.1] * 2, dtype=np.float32)
"""Reach of the arm (m), a full turn (rad), travel of a finger (m), each with room."""

INSTRUCTION_LAYOUTS = ("flat", "nested")


class LiberoEnv(gym.Env[Observation, NDArray[np.float32]]):
    """One LIBERO task.

    **Action** ``(7,)``, or ``(chunk, 7)``, in [-1, 1]: displacement of the hand (±1 = 0.05 m),
    rotation vector (±1 = 0.5 rad), gripper (negative opens, positive closes), at 20 Hz.

    **Observation**: ``images`` by camera, uint8 ``(size, size, 3)`` (absent without cameras);
    ``state`` float32 ``(8,)``: hand position (m), axis-angle (rad), finger joints (m); ``task``:
    the instruction. As in LIBERO itself, sensors are read just before a control step ends.

    **Reward** 1 on the step that reaches the goal, else 0. ``terminated``: success.
    ``truncated``: the horizon. A chunk stops early at either.

    **Info**: ``is_success``; ``steps`` executed in this call; ``elapsed_steps`` in the episode;
    ``init_state``; ``task`` (its name).

    The simulator is created at the first :meth:`reset`, so an environment may be made, inspected
    and sent to another process at no cost. Never fork a process after that: spawn.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(  # noqa: PLR0913
        self,
        *,
        suite: str = "libero_10",
        task: int | str = 0,
        image_size: int = 128,
        cameras: Sequence[str] = ("agentview", "wrist"),
        image_convention: str = "vla",
        chunk: int = 1,
        multisample: bool = True,
        simplify: bool = False,
        horizon: int | None = None,
        split: str = "all",
        instruction: str = "flat",
        render_mode: str | None = None,
    ) -> None:
        """Check the arguments and make the spaces.

        Args:
            suite: ``libero_10`` (LIBERO-Long), ``libero_spatial``, ``libero_object``,
                ``libero_goal`` or ``libero_90``.
            task: Number or name of the task.
            image_size: Side of the images in pixels.
            cameras: Among ``agentview`` and ``wrist``; empty renders nothing and needs no GL.
            image_convention: ``vla``, ``upright`` or ``raw``; see :mod:`wmrl_envs.libero.rendering`.
            chunk: Actions in one step; images are drawn once a step.
            multisample: Draw with anti-aliasing, as LIBERO does.
            simplify: Draw without mirrors and small details, at a fraction of the cost in software.
            horizon: Control steps until truncation; None is the suite's own.
            split: Initial states drawn from and allowed: ``all``, ``train`` or ``held_out``.
            instruction: ``flat``: the observation's ``task`` is the text itself; ``nested``: it is
                ``{"instruction": text}``, for libraries that accept text only inside a dictionary.
            render_mode: ``rgb_array`` lets :meth:`render` return an upright image.

        Raises:
            InvalidInputError: If an argument breaks its rule.
            DependencyNotInstalledError: If LIBERO is not installed.
        """
        self.task: LiberoTask = find_task(suite, task)
        self.horizon = HORIZONS[suite] if horizon is None else horizon
        self.chunk = chunk
        self.cameras = tuple(cameras)
        self.split = split
        self.render_mode = render_mode
        self._image_size = image_size
        self._convention = image_convention
        self._multisample = multisample
        self._simplify = simplify
        self._instruction = instruction
        self._check_arguments()
        self._allowed = init_states_of(suite, self.task.number, split)
        shape = (ACTION_SIZE,) if chunk == 1 else (chunk, ACTION_SIZE)
        self.action_space = gym.spaces.Box(-1.0, 1.0, shape, np.float32)
        self.observation_space = self._make_observation_space()
        self._simulation: Simulation | None = None
        self._renderer: Renderer | None = None
        self._starts: dict[int, Observation] = {}
        self._init_state = -1
        self._elapsed_steps = 0
        self._is_running = False

    @property
    def language(self) -> str:
        """The instruction, such as ``put both moka pots on the stove``."""
        return self.task.language

    @property
    def num_init_states(self) -> int:
        """Number of official initial states of the task, whatever the split."""
        return len(load_init_states(self.task))

    @property
    def elapsed_steps(self) -> int:
        """Control steps since the reset."""
        return self._elapsed_steps

    @property
    def model(self) -> "mujoco.MjModel":
        """The simulator's model: privileged access, for scripted experts."""
        return self._live_simulation().model

    @property
    def data(self) -> "mujoco.MjData":
        """The simulator's live state: privileged access, to be read only."""
        return self._live_simulation().data

    @property
    def raw_observation(self) -> dict[str, NDArray[np.float64]]:
        """Everything robosuite observes but images, by its own names."""
        simulation = self._live_simulation()
        return simulation.sensors.robosuite_observation(simulation.sample)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Load an initial state and let it settle for 10 steps that are not counted.

        Args:
            seed: Seed of the draw of initial states.
            options: ``{"init_state": i}`` chooses the state; without it one is drawn.

        Raises:
            InvalidInputError: If the options name something else or a state outside the split.
            DependencyNotInstalledError: If a system library is missing.
        """
        super().reset(seed=seed)
        self._init_state = self._choose_init_state(options or {})
        if self._simulation is None:
            self._simulation = Simulation(self.task)
        self._elapsed_steps = 0
        self._simulation.reset(load_init_states(self.task)[self._init_state])
        self._is_running = True
        return self._observe_start(), self._info(steps=0, is_success=False)

    def step(self, action: ArrayLike) -> tuple[Observation, SupportsFloat, bool, bool, Info]:
        """Execute an action, or a chunk of them up to success or the horizon.

        Raises:
            InvalidInputError: If the action is not finite, in range and of the right shape.
            gymnasium.error.ResetNeeded: If no episode is running.
            InfrastructureError: If the simulation diverges; the episode is then missing.
        """
        actions = self._check_action(action)
        if self._simulation is None or not self._is_running:
            raise ResetNeeded("call reset() before step(): no episode is running")
        steps, is_success = 0, False
        try:
            for one in actions:
                is_success = self._simulation.step(one)
                steps += 1
                if is_success or self._elapsed_steps + steps >= self.horizon:
                    break
        except InfrastructureError:
            self._is_running = False
            raise
        self._elapsed_steps += steps
        is_truncated = not is_success and self._elapsed_steps >= self.horizon
        self._is_running = not (is_success or is_truncated)
        info = self._info(steps=steps, is_success=is_success)
        return self._observe(), float(is_success), is_success, is_truncated, info

    def render(self) -> Image | None:
        """Return an upright image of the agent's camera if ``render_mode`` is ``rgb_array``."""
        if self.render_mode is None:
            return None
        return orient(self._draw("agentview"), "upright")

    def snapshot(self) -> LiberoSnapshot:
        """Return the present moment of the episode; :meth:`restore` goes on from it bit-exactly."""
        return LiberoSnapshot.of(
            self._live_simulation().state(),
            suite=self.task.suite,
            task=self.task.name,
            init_state=self._init_state,
            elapsed_steps=self._elapsed_steps,
        )

    def restore(self, snapshot: LiberoSnapshot) -> tuple[Observation, Info]:
        """Go on from a snapshot of the same task, of this process or another.

        Returns:
            The observation and info at the snapshot.

        Raises:
            InvalidInputError: If the snapshot is of another task or outside the split.
        """
        if (snapshot.suite, snapshot.task) != (self.task.suite, self.task.name):
            raise InvalidInputError(
                f"snapshot must be of task {self.task.suite}/{self.task.name}, "
                f"got {snapshot.suite}/{snapshot.task}"
            )
        self._init_state = self._choose_init_state({"init_state": snapshot.init_state})
        if self._simulation is None:
            self._simulation = Simulation(self.task)
        self._simulation.restore(snapshot.simulation_state())
        self._elapsed_steps = snapshot.elapsed_steps
        is_success = self._simulation.is_success()
        self._is_running = not is_success and self._elapsed_steps < self.horizon
        return self._observe(), self._info(steps=0, is_success=is_success)

    def close(self) -> None:
        """Free the simulator and its GL context; a later reset makes new ones."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None
        self._is_running = False

    def _check_arguments(self) -> None:
        for name, value in (
            ("image_size", self._image_size), ("chunk", self.chunk), ("horizon", self.horizon)
        ):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInputError(f"{name} must be a whole number from 1, got {value!r}")
        for camera in self.cameras:
            _check_choice("cameras", camera, tuple(CAMERAS))
        _check_choice("image_convention", self._convention, CONVENTIONS)
        _check_choice("split", self.split, SPLITS)
        _check_choice("instruction", self._instruction, INSTRUCTION_LAYOUTS)
        if self.render_mode is not None:
            _check_choice("render_mode", self.render_mode, tuple(self.metadata["render_modes"]))

    def _make_observation_space(self) -> gym.spaces.Dict:
        shape = (self._image_size, self._image_size, 3)
        text = gym.spaces.Text(MAX_INSTRUCTION, charset=string.printable)
        spaces: dict[str, gym.Space[Any]] = {
            "state": gym.spaces.Box(-STATE_BOUND, STATE_BOUND, dtype=np.float32),
            "task": gym.spaces.Dict(instruction=text) if self._instruction == "nested" else text,
        }
        if self.cameras:
            spaces["images"] = gym.spaces.Dict(
                {camera: gym.spaces.Box(0, 255, shape, np.uint8) for camera in self.cameras}
            )
        return gym.spaces.Dict(spaces)

    def _choose_init_state(self, options: dict[str, Any]) -> int:
        unknown = set(options) - {"init_state"}
        if unknown:
            raise InvalidInputError(f"options must be among init_state, got {sorted(unknown)}")
        if "init_state" not in options:
            return int(self.np_random.choice(self._allowed))
        number = options["init_state"]
        if number not in self._allowed:
            raise InvalidInputError(
                f"init_state must be in {self._allowed[0]}..{self._allowed[-1]} for split "
                f"{self.split!r}, got {number!r}"
            )
        return int(number)

    def _check_action(self, action: ArrayLike) -> NDArray[np.float64]:
        array = np.asarray(action, dtype=np.float64)
        if array.shape != self.action_space.shape:
            raise InvalidInputError(
                f"action must have shape {self.action_space.shape}, got {array.shape}"
            )
        if not np.isfinite(array).all():
            raise InvalidInputError(f"action must be finite, got {array.tolist()}")
        if np.abs(array).max() > 1.0:
            raise InvalidInputError(
                f"action must be in [-1, 1], got values from {array.min():.4g} to "
                f"{array.max():.4g}; clip it"
            )
        return array.reshape(-1, ACTION_SIZE)

    def _live_simulation(self) -> Simulation:
        if self._simulation is None:
            raise ResetNeeded("call reset() first: the simulator is made by it")
        return self._simulation

    def _observe_start(self) -> Observation:
        # The first images of an initial state never change, and drawing is most of a reset.
        if self._init_state not in self._starts:
            self._starts[self._init_state] = self._observe()
        return copy.deepcopy(self._starts[self._init_state])

    def _observe(self) -> Observation:
        simulation = self._live_simulation()
        observation: Observation = {
            "state": simulation.sensors.proprioception(simulation.sample),
            "task": self.language
            if self._instruction == "flat"
            else {"instruction": self.language},
        }
        if self.cameras:
            observation["images"] = {
                camera: orient(self._draw(camera), self._convention) for camera in self.cameras
            }
        return observation

    def _draw(self, camera: str) -> Image:
        simulation = self._live_simulation()
        if self._renderer is None:
            self._renderer = Renderer(
                simulation.model,
                size=self._image_size,
                multisample=self._multisample,
                simplify=self._simplify,
            )
            # An environment that is dropped unclosed must not free its GL objects in another's
            # context, which is what garbage collection would do.
            weakref.finalize(self, self._renderer.close).atexit = False
        return self._renderer.render(simulation.sensors.show(simulation.sample), camera)

    def _info(self, *, steps: int, is_success: bool) -> Info:
        return {
            "is_success": is_success,
            "steps": steps,
            "elapsed_steps": self._elapsed_steps,
            "init_state": self._init_state,
            "task": self.task.name,
        }


def _check_choice(name: str, value: str, valid: Sequence[str]) -> None:
    if value not in valid:
        raise InvalidInputError(f"{name} must be among {', '.join(valid)}, got {value!r}")
