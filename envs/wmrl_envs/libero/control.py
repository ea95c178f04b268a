"""Control: robosuite's operational-space controller, bit for bit, without its overhead.

robosuite's class looks every quantity up by name, evaluates four Jacobians where one call gives
two, and runs the forward dynamics twice for each torque. Here the indices are resolved once and
the caller owns the dynamics. The arithmetic, its order and the memory layout of every matrix are
robosuite's, because BLAS and LAPACK round differently for another layout.

Notation: p, R position and orientation of the hand; J Jacobian ``(6, 7)``; M mass matrix of the
arm ``(7, 7)``; Λ = (J M⁻¹ Jᵀ)⁻¹; F desired wrench; τ = Jᵀ Λ F + gravity + null-space torque.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InfrastructureError
from wmrl_envs.libero.upstream import import_libero

Array = NDArray[np.float64]

_GRIPPER_SIGNS = np.array([-1.0, 1.0])


@dataclass(kw_only=True, slots=True)
class ControlState:
    """What the controller remembers from one control step to the next."""

    goal_position: Array
    """p the hand is driven to, ``(3,)`` m."""

    goal_orientation: Array
    """R the hand is driven to, ``(3, 3)``."""

    gripper: Array
    """Opening speed commands of the two fingers, ``(2,)`` in [-1, 1]."""

    def copy(self) -> "ControlState":
        """Return an independent copy."""
        return ControlState(
            goal_position=self.goal_position.copy(),
            goal_orientation=self.goal_orientation.copy(),
            gripper=self.gripper.copy(),
        )


class ArmController:
    """Torques of the arm and commands of the gripper for one robosuite environment."""

    def __init__(self, robosuite_env: Any) -> None:
        """Resolve every index; ``robosuite_env`` must have been reset just before."""
        import mujoco

        self._mujoco = mujoco
        robot = robosuite_env.robots[0]
        self._controller = robot.controller
        self._functions = import_libero("robosuite.utils.control_utils")
        self._model: mujoco.MjModel = robosuite_env.sim.model._model
        self._data: mujoco.MjData = robosuite_env.sim.data._data
        self._site = robot.eef_site_id
        self._arm_dofs = _as_slice(self._controller.qvel_index)
        self._arm_actuators = _as_slice(robot._ref_joint_actuator_indexes)
        fingers = [self._model.actuator(name).id for name in robot.gripper.actuators]
        self._finger_actuators = _as_slice(fingers)
        self._gains = self._controller.kp[:3], self._controller.kp[3:6]
        self._dampings = self._controller.kd[:3], self._controller.kd[3:6]
        self._torque_low, self._torque_high = robot.torque_limits
        limits = self._model.actuator_ctrlrange[fingers]
        self._finger_bias = 0.5 * (limits[:, 1] + limits[:, 0])
        self._finger_weight = 0.5 * (limits[:, 1] - limits[:, 0])
        self._finger_speed = _GRIPPER_SIGNS * robot.gripper.speed
        self._view_simulator()
        self._initial_joints = self._controller.initial_joint.copy()
        self._first = _Measured.of(self._controller)
        self._buffer = _Measured.of(self._controller)
        self._measured = self._first
        self.state = self.initial_state()
        self.is_stale = True

    def _view_simulator(self) -> None:
        # Views of MuJoCo's own memory, which neither moves nor is replaced.
        data, nv = self._data, self._model.nv
        self._jacp, self._jacr = np.zeros((3, nv)), np.zeros((3, nv))
        self._mass_all = np.zeros((nv, nv))
        self._qvel, self._inertia, self._ctrl = data.qvel, data.qM, data.ctrl
        self._site_xpos = data.site_xpos[self._site]
        self._site_xmat = data.site_xmat[self._site].reshape(3, 3)
        self._arm_qpos = data.qpos[_as_slice(self._controller.qpos_index)]
        self._arm_qvel = data.qvel[self._arm_dofs]
        self._arm_gravity = data.qfrc_bias[self._arm_dofs]
        self._arm_ctrl = data.ctrl[self._arm_actuators]
        self._finger_ctrl = data.ctrl[self._finger_actuators]

    def initial_state(self) -> ControlState:
        """Return the state after a reset of robosuite: hold the initial pose, gripper at rest."""
        return ControlState(
            goal_position=np.array(self._controller.initial_ee_pos),
            goal_orientation=np.array(self._controller.initial_ee_ori_mat),
            gripper=np.zeros(2),
        )

    def begin(self) -> None:
        """Forget the episode.

        robosuite measures the arm when its reset ends, *before* an initial state is loaded, and
        drives the first 2 ms by that measurement; :attr:`is_stale` tells that it does.
        """
        self.state = self.initial_state()
        self._measured = self._first
        self.is_stale = True

    def measure(self) -> None:
        """Read the arm from the simulator, whose velocity-dependent terms must be up to date."""
        model, arm, dofs = self._model, self._buffer, self._arm_dofs
        self._mujoco.mj_jacSite(model, self._data, self._jacp, self._jacr, self._site)
        self._mujoco.mj_fullM(model, self._mass_all, self._inertia)
        arm.position[:] = self._site_xpos
        arm.orientation[:] = self._site_xmat
        np.dot(self._jacp, self._qvel, out=arm.velocity)
        np.dot(self._jacr, self._qvel, out=arm.spin)
        arm.joints[:] = self._arm_qpos
        arm.joint_speeds[:] = self._arm_qvel
        arm.j_pos[:] = self._jacp[:, dofs]
        arm.j_ori[:] = self._jacr[:, dofs]
        arm.jacobian[:3] = arm.j_pos
        arm.jacobian[3:] = arm.j_ori
        arm.mass[:] = self._mass_all[dofs, dofs]
        self._measured = arm
        self.is_stale = False

    def aim(self, action: Array) -> None:
        """Set the goals from an action ``(7,)``; the rotation goal stays if no turn is asked."""
        delta = self._controller.scale_action(action[:6])
        if delta[3:].any():
            self.state.goal_orientation = self._functions.set_goal_orientation(
                delta[3:], self._measured.orientation, orientation_limit=None
            )
        self.state.goal_position = self._measured.position + delta[:3]

    def drive(self, gripper_sign: float) -> None:
        """Write torques and finger commands to the simulator.

        Args:
            gripper_sign: Sign of the gripper's action: -1 opens, +1 closes, 0 holds.
        """
        arm, state, functions = self._measured, self.state, self._functions
        turn = functions.orientation_error(state.goal_orientation, arm.orientation)
        force = (state.goal_position - arm.position) * self._gains[0]
        force -= arm.velocity * self._dampings[0]
        torque = turn * self._gains[1]
        torque -= arm.spin * self._dampings[1]
        _, lambda_pos, lambda_ori, null_space = functions.opspace_matrices(
            arm.mass, arm.jacobian, arm.j_pos, arm.j_ori
        )
        wrench = np.empty(6)
        np.dot(lambda_pos, force, out=wrench[:3])
        np.dot(lambda_ori, torque, out=wrench[3:])
        torques = np.dot(arm.jacobian.T, wrench)
        torques += self._arm_gravity
        torques += functions.nullspace_torques(
            arm.mass, null_space, self._initial_joints, arm.joints, arm.joint_speeds
        )
        np.maximum(torques, self._torque_low, out=torques)
        np.minimum(torques, self._torque_high, out=self._arm_ctrl)
        fingers = state.gripper + self._finger_speed * gripper_sign
        state.gripper = np.minimum(np.maximum(fingers, -1.0), 1.0)
        np.add(self._finger_bias, self._finger_weight * state.gripper, out=self._finger_ctrl)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measured:
    """The arm at one instant."""

    position: Array
    orientation: Array
    velocity: Array
    spin: Array
    joints: Array
    joint_speeds: Array
    j_pos: Array
    j_ori: Array
    jacobian: Array
    mass: Array

    @classmethod
    def of(cls, controller: Any) -> "_Measured":
        return cls(
            position=controller.ee_pos.copy(order="K"),
            orientation=controller.ee_ori_mat.copy(order="K"),
            velocity=controller.ee_pos_vel.copy(order="K"),
            spin=controller.ee_ori_vel.copy(order="K"),
            joints=controller.joint_pos.copy(order="K"),
            joint_speeds=controller.joint_vel.copy(order="K"),
            j_pos=controller.J_pos.copy(order="K"),
            j_ori=controller.J_ori.copy(order="K"),
            jacobian=controller.J_full.copy(order="K"),
            mass=controller.mass_matrix.copy(order="K"),
        )


def _as_slice(indices: Sequence[int]) -> slice:
    first, last = int(indices[0]), int(indices[-1])
    if list(indices) != list(range(first, last + 1)):
        raise InfrastructureError(
            f"the arm's joints must be numbered in a row, got {list(indices)}; "
            "install robosuite==1.4.0"
        )
    return slice(first, last + 1)
