"""Demonstrator: runs a scripted expert in ``WMRL-LIBERO`` and records what it saw and did."""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.libero.dataset import Demonstration, Origin, TaskInfo
from wmrl_envs.libero.env import LiberoEnv
from wmrl_envs.libero.expert import Scene, make_expert
from wmrl_envs.libero.rendering import choose_gl
from wmrl_envs.libero.upstream import import_libero

SUITE = "libero_10"
CAMERAS = ("agentview", "wrist")

RECORDED_PACKAGES = ("mujoco", "robosuite", "numpy")
"""Packages whose version decides what a trajectory looks like."""

_ROBOMIMIC_ROBOSUITE = 1
"""Type of environment in ``env_args``, by the numbering of the official files."""


class Demonstrator:
    """One task with its expert; holds a simulator until it is closed.

    Use it as a context manager, in a process of its own when several run at once.
    """

    def __init__(
        self, task: int, *, image_size: int = 128, images_every: int = 1, multisample: bool = False
    ) -> None:
        """Prepare the environment.

        Args:
            task: Number of the task in ``libero_10``.
            image_size: Side of the images in pixels.
            images_every: Draw images for every n-th step only.
            multisample: Draw with anti-aliasing.
        """
        self._task = task
        self._images_every = images_every
        self._env = LiberoEnv(
            suite=SUITE, task=task, image_size=image_size, multisample=multisample
        )
        self._image_size = image_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._env.close()

    def run(
        self,
        init_state: int,
        *,
        noise_key: Sequence[int] = (0,),
        jitter: float = 0.0,
        origin: Origin | None = None,
    ) -> Demonstration:
        """Return one episode, from an official initial state to success, horizon or plan's end.

        Args:
            init_state: Number of the initial state.
            noise_key: Entropy of the expert's noise; equal keys give equal episodes.
            jitter: Scale of the expert's noise.
            origin: Further attributes to store with the episode.
        """
        began = time.process_time()
        env, record = self._env, _Record()
        env.cameras = CAMERAS
        observation, _ = env.reset(options={"init_state": init_state})
        rng = np.random.default_rng(list(noise_key))
        expert = make_expert(self._task, Scene(env.model, env.data), rng=rng, jitter=jitter)
        is_success = is_over = False
        for action in expert:
            record.see(env, observation)
            record.actions.append(action)
            record.intended.append(expert.intended)
            # The next observation belongs to step ``len(actions)``; without cameras none is drawn.
            env.cameras = CAMERAS if len(record.actions) % self._images_every == 0 else ()
            observation, _, is_success, is_over, _ = env.step(action)
            if is_success or is_over:
                break
        return record.finish(
            language=env.language,
            is_success=is_success,
            model_file=self._model_xml(),
            origin={
                **(origin or {}),
                "suite": SUITE,
                "task": env.task.name,
                "init_state_index": init_state,
                "jitter": jitter,
                "steps": len(record.actions),
                "is_success": is_success,
                "cpu_s": time.process_time() - began,
                "renderer": choose_gl().name,
                **{f"{name}_version": version(name) for name in RECORDED_PACKAGES},
            },
        )

    def task_info(self) -> TaskInfo:
        """Return what the file of this task says about it, in the terms of the official files."""
        task = self._env.task
        problem = import_libero("libero.libero.envs.bddl_utils").get_problem_info(
            str(task.bddl_file)
        )
        # Official files name a path inside LIBERO's repository; readers put their own before it.
        bddl_name = f"libero/libero/bddl_files/{task.suite}/{task.bddl_file.name}"
        arguments = {
            "type": _ROBOMIMIC_ROBOSUITE,
            "env_name": problem["problem_name"],
            "problem_name": problem["problem_name"],
            "bddl_file": bddl_name,
            "env_kwargs": self._env_kwargs(bddl_name),
        }
        return TaskInfo(
            env_name=problem["problem_name"],
            env_args=json.dumps(arguments),
            problem_info=json.dumps(problem),
            bddl_file_name=bddl_name,
            bddl_file_content=task.bddl_file.read_text(encoding="utf-8"),
        )

    def _env_kwargs(self, bddl_name: str) -> dict[str, Any]:
        controllers = import_libero("robosuite.controllers")
        return {
            "robots": ["Panda"],
            "controller_configs": controllers.load_controller_config(default_controller="OSC_POSE"),
            "bddl_file_name": bddl_name,
            "has_renderer": False,
            "has_offscreen_renderer": True,
            "ignore_done": True,
            "use_camera_obs": True,
            "camera_names": ["robot0_eye_in_hand", "agentview"],
            "camera_heights": self._image_size,
            "camera_widths": self._image_size,
            "camera_depths": False,
            "reward_shaping": True,
            "control_freq": 20,
        }

    def _model_xml(self) -> str:
        import mujoco

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            mujoco.mj_saveLastXML(str(path), self._env.model)
            return path.read_text(encoding="utf-8")


@dataclass(kw_only=True, slots=True)
class _Record:
    """What has been seen and done in an episode so far."""

    actions: list[NDArray[np.float64]] = field(default_factory=list)
    intended: list[NDArray[np.float64]] = field(default_factory=list)
    state: list[NDArray[np.float32]] = field(default_factory=list)
    images: list[NDArray[np.uint8]] = field(default_factory=list)
    image_steps: list[int] = field(default_factory=list)
    sim_states: list[NDArray[np.float64]] = field(default_factory=list)
    joint_states: list[NDArray[np.float64]] = field(default_factory=list)
    robot_states: list[NDArray[np.float64]] = field(default_factory=list)

    def see(self, env: LiberoEnv, observation: dict[str, Any]) -> None:
        """Add what is seen before the next action."""
        raw, data = env.raw_observation, env.data
        if "images" in observation:
            self.images.append(np.stack([observation["images"][name] for name in CAMERAS]))
            self.image_steps.append(len(self.actions))
        self.state.append(observation["state"])
        self.sim_states.append(np.concatenate([[data.time], data.qpos, data.qvel]))
        self.joint_states.append(raw["robot0_joint_pos"])
        robot = ("robot0_gripper_qpos", "robot0_eef_pos", "robot0_eef_quat")
        self.robot_states.append(np.concatenate([raw[name] for name in robot]))

    def finish(
        self, *, language: str, is_success: bool, model_file: str, origin: Origin
    ) -> Demonstration:
        """Return the episode."""
        return Demonstration(
            language=language,
            actions=np.stack(self.actions),
            intended=np.stack(self.intended),
            state=np.stack(self.state),
            images=np.stack(self.images),
            image_steps=np.array(self.image_steps, dtype=np.int64),
            sim_states=np.stack(self.sim_states),
            joint_states=np.stack(self.joint_states),
            robot_states=np.stack(self.robot_states),
            is_success=is_success,
            model_file=model_file,
            origin=origin,
        )
