"""Control: robosuite's operational-space controller, bit for bit, without its overhead.

robosuite's class looks every quantity up by name, evaluates four Jacobians where one call gives
two, and runs the forward dynamics twice for each torque. Here the indices are resolved once and
the caller owns the dynamics. The arithmetic, its order and the memory layout of every matrix are
robosuite's, because BLAS and LAPACK round differently for another layout.

Notation: p, R position and orientation of the hand; J Jacobian ``(6, 7)``; M mass matrix of the
arm ``(7, 7)``; Λ = (J M⁻¹ Jᵀ)⁻¹; F desired wrench; τ = Jᵀ Λ F + gravity + null-space torque.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self._qpos = list(self._controller.qpos_index)
        self._qvel = list(self._controller.qvel_index)
        self._gains = self._controller.kp[:3], self._controller.kp[3:6]
        self._dampings = self._controller.kd[:3], self._controller.kd[3:6]
        self._torque_low, self._torque_high = robot.torque_limits
        self._arm_actuators = list(robot._ref_joint_actuator_indexes)
        self._finger_actuators = [self._model.actuator(name).id for name in robot.gripper.actuators]
        limits = self._model.actuator_ctrlrange[self._finger_actuators]
        self._finger_bias = 0.5 * (limits[:, 1] + limits[:, 0])
        self._finger_weight = 0.5 * (limits[:, 1] - limits[:, 0])
        self._finger_speed = _GRIPPER_SIGNS * robot.gripper.speed
        self._allocate()
        self._initial_joints = self._controller.initial_joint.copy()
        self._first = _Measured.of(self._controller)
        self._measured = self._first
        self.state = self.initial_state()
        self.is_stale = True

    def _allocate(self) -> None:
        nv = self._model.nv
        self._jacp, self._jacr = np.zeros((3, nv)), np.zeros((3, nv))
        self._site_xpos = self._data.site_xpos[self._site]
        self._site_xmat = self._data.site_xmat[self._site].reshape(3, 3)
        self._mass_all = np.zeros((nv, nv))
        self._mass_rows = np.ix_(self._qvel, self._qvel)

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
        model, data, mujoco = self._model, self._data, self._mujoco
        mujoco.mj_jacSite(model, data, self._jacp, self._jacr, self._site)
        mujoco.mj_fullM(model, self._mass_all, data.qM)
        qvel = data.qvel
        jacobian = np.empty((6, len(self._qvel)), order="F")
        j_pos = self._jacp[:, self._qvel]
        j_ori = self._jacr[:, self._qvel]
        jacobian[:3], jacobian[3:] = j_pos, j_ori
        self._measured = _Measured(
            position=self._site_xpos.copy(),
            orientation=self._site_xmat.copy(),
            velocity=np.dot(self._jacp, qvel),
            spin=np.dot(self._jacr, qvel),
            joints=data.qpos[self._qpos],
            joint_speeds=qvel[self._qvel],
            j_pos=j_pos,
            j_ori=j_ori,
            jacobian=jacobian,
            mass=self._mass_all[self._qvel, :][:, self._qvel],
        )
        self.is_stale = False

    def aim(self, action: Array) -> None:
        """Set the goals from an action ``(7,)``; the rotation goal stays if no turn is asked."""
        delta = self._controller.scale_action(action[:6])
        if delta[3:].any():
            self.state.goal_orientation = self._functions.set_goal_orientation(
                delta[3:], self._measured.orientation, orientation_limit=None
            )
        self.state.goal_position = self._measured.position + delta[:3]

    def drive(self, gripper: Array) -> None:
        """Write torques and finger commands to the simulator.

        Args:
            gripper: Gripper action ``(1,)``; its sign opens (-) or closes (+).
        """
        arm, state = self._measured, self.state
        turn = self._functions.orientation_error(state.goal_orientation, arm.orientation)
        force = (state.goal_position - arm.position) * self._gains[0] + (
            -arm.velocity * self._dampings[0]
        )
        torque = turn * self._gains[1] + (-arm.spin * self._dampings[1])
        _, lambda_pos, lambda_ori, null_space = self._functions.opspace_matrices(
            arm.mass, arm.jacobian, arm.j_pos, arm.j_ori
        )
        wrench = np.concatenate([np.dot(lambda_pos, force), np.dot(lambda_ori, torque)])
        torques = np.dot(arm.jacobian.T, wrench) + self._data.qfrc_bias[self._qvel]
        torques += self._functions.nullspace_torques(
            arm.mass, null_space, self._initial_joints, arm.joints, arm.joint_speeds
        )
        fingers = np.clip(state.gripper + self._finger_speed * np.sign(gripper), -1.0, 1.0)
        state.gripper = fingers
        ctrl = self._data.ctrl
        ctrl[self._finger_actuators] = self._finger_bias + self._finger_weight * fingers
        ctrl[self._arm_actuators] = np.clip(torques, self._torque_low, self._torque_high)


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
