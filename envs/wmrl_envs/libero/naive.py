"""Naive: the loop that users of LIBERO write, by its own ``OffScreenRenderEnv``.

The reference for parity and for speed: a full rebuild at each reset, both images at each step.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.libero.simulation import FIXTURE_SEED, SETTLING_ACTION, SETTLING_STEPS
from wmrl_envs.libero.suite import LiberoTask, load_init_states
from wmrl_envs.libero.upstream import import_libero, quiet

RAW_IMAGES = {"agentview": "agentview_image", "wrist": "robot0_eye_in_hand_image"}
"""Names of the images in robosuite's observation, by the names of :class:`LiberoEnv`."""


class NaiveLibero:
    """LIBERO as it is, but for one line: its GL context is made current before each call."""

    def __init__(self, task: LiberoTask, *, image_size: int, images: bool = True) -> None:
        """Build the package's environment with its default arguments.

        Args:
            task: The task.
            image_size: Side of the images in pixels.
            images: Draw both images at each step, which is the package's default.
        """
        wrapper = import_libero("libero.libero.envs.env_wrapper")
        self._task = task
        with quiet():
            self._env = wrapper.OffScreenRenderEnv(
                bddl_file_name=str(task.bddl_file),
                camera_heights=image_size,
                camera_widths=image_size,
                use_camera_obs=images,
            )
            self._env.seed(FIXTURE_SEED)

    @property
    def data(self) -> Any:
        """The simulator's state, a ``mujoco.MjData``."""
        return self._env.sim.data._data

    def reset(self, init_state: int) -> dict[str, Any]:
        """Rebuild the scene, load an official initial state and settle."""
        self._make_current()  # the old context is freed here, and would free another's images
        with quiet():
            self._env.reset()
        observation = self._env.set_init_state(load_init_states(self._task)[init_state])
        for _ in range(SETTLING_STEPS):
            observation, _ = self.step(SETTLING_ACTION)
        return observation

    def step(self, action: NDArray[np.float64]) -> tuple[dict[str, Any], bool]:
        """Return robosuite's observation and whether the goal is reached."""
        self._make_current()
        observation, _, is_success, _ = self._env.step(action)
        return observation, bool(is_success)

    def close(self) -> None:
        """Free the GL context before the interpreter does it in the wrong order."""
        self._make_current()
        context = self._env.sim._render_context_offscreen
        context.con.free()
        context.gl_ctx.free()
        with quiet():
            self._env.close()

    def _make_current(self) -> None:
        self._env.sim._render_context_offscreen.gl_ctx.make_current()
