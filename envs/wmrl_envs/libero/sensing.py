"""Sensing: what robosuite's observables report, and when.

robosuite samples its observables once a control period, by a clock of its own that is not aligned
with control steps: after a LIBERO reset it falls on the 24th of 25 physics steps. Poses are those
computed before that physics step, joint positions those after it. Keeping the joint positions of
both instants is enough to give any observation, or image, of that sample later.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.libero.upstream import import_libero

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]

PHYSICS_PERIOD_S = 0.002
CONTROL_PERIOD_S = 1.0 / 20

_HAND_BODY = "robot0_right_hand"


@dataclass(kw_only=True, slots=True)
class SampleClock:
    """robosuite's sampling clock, with its rounding."""

    elapsed_s: float = 2 * PHYSICS_PERIOD_S
    """Time in the period; a reset and the loading of an initial state each add one step."""

    has_sampled: bool = True
    """Whether this period's sample has been taken."""

    def tick(self) -> bool:
        """Advance one physics step and return whether it is the one that is sampled."""
        self.elapsed_s += PHYSICS_PERIOD_S
        is_due = not self.has_sampled and self.elapsed_s <= CONTROL_PERIOD_S
        if self.elapsed_s >= CONTROL_PERIOD_S:
            is_due = is_due or not self.has_sampled
            self.elapsed_s %= CONTROL_PERIOD_S
            self.has_sampled = False
        elif is_due:
            self.has_sampled = True
        return is_due


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Joint values of one sample."""

    pose_qpos: Array
    """Positions from which the poses were computed, ``(nq,)``."""

    qpos: Array
    """Positions after the physics step, ``(nq,)``."""

    qvel: Array
    """Velocities after the physics step, ``(nv,)``."""


class Sensors:
    """Turn samples into observations, in a simulator state of their own."""

    def __init__(self, robosuite_env: Any) -> None:
        """Resolve names; the model is shared, the state is not."""
        import mujoco

        self._mujoco = mujoco
        self._transforms = import_libero("robosuite.utils.transform_utils")
        self._model: mujoco.MjModel = robosuite_env.sim.model._model
        self._data = mujoco.MjData(self._model)
        self._shown: Sample | None = None
        robot = robosuite_env.robots[0]
        self._hand_site = robot.eef_site_id
        self._hand_body = self._model.body(_HAND_BODY).id
        self._arm_qpos = list(robot._ref_joint_pos_indexes)
        self._arm_qvel = list(robot._ref_joint_vel_indexes)
        self._finger_qpos = list(robot._ref_gripper_joint_pos_indexes)
        self._finger_qvel = list(robot._ref_gripper_joint_vel_indexes)
        self._objects = {
            item.name: robosuite_env.obj_body_id[item.name] for item in robosuite_env.objects
        }

    def show(self, sample: Sample) -> "mujoco.MjData":
        """Return a simulator state with the poses of ``sample``, fit for rendering."""
        if sample is not self._shown:
            self._data.qpos[:] = sample.pose_qpos
            self._mujoco.mj_kinematics(self._model, self._data)
            self._mujoco.mj_comPos(self._model, self._data)
            self._mujoco.mj_camlight(self._model, self._data)
            self._shown = sample
        return self._data

    def forget(self) -> None:
        """Compute poses anew at the next call; needed after the model has changed."""
        self._shown = None

    def proprioception(self, sample: Sample) -> NDArray[np.float32]:
        """Return ``state``: hand position (3, m), axis-angle (3, rad), finger positions (2, m)."""
        data = self.show(sample)
        w, x, y, z = data.xquat[self._hand_body]
        return np.concatenate(
            [
                data.site_xpos[self._hand_site],
                axis_angle(np.array([x, y, z, w])),
                sample.qpos[self._finger_qpos],
            ]
        ).astype(np.float32)

    def robosuite_observation(self, sample: Sample) -> dict[str, Array]:
        """Return robosuite's observation without images, its names and values."""
        data, transforms = self.show(sample), self._transforms
        joints = sample.qpos[self._arm_qpos]
        hand_position = data.site_xpos[self._hand_site].copy()
        hand_quat = data.xquat[self._hand_body][[1, 2, 3, 0]]
        proprio = {
            "robot0_joint_pos": joints,
            "robot0_joint_pos_cos": np.cos(joints),
            "robot0_joint_pos_sin": np.sin(joints),
            "robot0_joint_vel": sample.qvel[self._arm_qvel],
            "robot0_eef_pos": hand_position,
            "robot0_eef_quat": hand_quat,
            "robot0_gripper_qpos": sample.qpos[self._finger_qpos],
            "robot0_gripper_qvel": sample.qvel[self._finger_qvel],
        }
        world_in_hand = transforms.pose_inv(transforms.pose2mat((hand_position, hand_quat)))
        objects: dict[str, Array] = {}
        for name, body in self._objects.items():
            position, quat = data.xpos[body].copy(), data.xquat[body][[1, 2, 3, 0]]
            relative = transforms.pose_in_A_to_pose_in_B(
                transforms.pose2mat((position, quat)), world_in_hand
            )
            relative_position, relative_quat = transforms.mat2pose(relative)
            objects |= {
                f"{name}_pos": position,
                f"{name}_quat": quat,
                f"{name}_to_robot0_eef_pos": relative_position,
                f"{name}_to_robot0_eef_quat": relative_quat,
            }
        return {
            **proprio,
            **objects,
            "robot0_proprio-state": np.concatenate(list(proprio.values())),
            "object-state": np.concatenate(list(objects.values())),
        }


def axis_angle(quat: Array) -> Array:
    """Return the rotation vector ``(3,)`` in rad of a unit quaternion ``(x, y, z, w)``."""
    w = min(1.0, max(-1.0, float(quat[3])))
    sine = math.sqrt(1.0 - w * w)
    if sine == 0.0:
        return np.zeros(3)
    return quat[:3] * 2.0 * math.acos(w) / sine
