"""Simulation: LIBERO's physics, tasks and predicates, bit-equal to the package's own environment.

robosuite's environment builds the model, samples the fixtures and judges success. Stepping is done
here, because robosuite evaluates the forward dynamics three times for each physics step, of which
two only warm-start the constraint solver: their position and velocity stages are equal and are
computed once. What must stay are the solver's own passes, since its result depends on where it
starts.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InfrastructureError
from wmrl_envs.libero.control import ArmController, ControlState
from wmrl_envs.libero.sensing import (
    CONTROL_PERIOD_S,
    PHYSICS_PERIOD_S,
    Sample,
    SampleClock,
    Sensors,
)
from wmrl_envs.libero.suite import LiberoTask
from wmrl_envs.libero.upstream import import_libero, quiet

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]

_LOGGER = logging.getLogger(__name__)

SETTLING_STEPS = 10
"""Control steps without motion at the start of an episode, in which objects come to rest."""

SETTLING_ACTION = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])

FIXTURE_SEED = 0
"""Seed of LIBERO's sampler of fixtures: not part of the initial states, hence the same always."""

PHYSICS_STEPS = int(CONTROL_PERIOD_S / PHYSICS_PERIOD_S)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationState:
    """Everything from which a simulation goes on bit-exactly."""

    integration: Array
    """MuJoCo's integration state, the solver's warm start included."""

    body_pos: Array
    """Body positions of the model, ``(nbody, 3)``: where the fixtures stand."""

    body_quat: Array
    """Body orientations of the model, ``(nbody, 4)``."""

    control: ControlState
    clock: tuple[float, bool]
    sample: Sample


class Simulation:
    """One task of LIBERO, stepped by actions of seven numbers."""

    def __init__(self, task: LiberoTask) -> None:
        """Build the scene; takes seconds, and needs no GL context.

        Raises:
            DependencyNotInstalledError: If LIBERO is not installed.
        """
        wrapper = import_libero("libero.libero.envs.env_wrapper")
        import mujoco

        self._mujoco = mujoco
        # MuJoCo's own handler prints and appends to a file in the working folder.
        mujoco.set_mju_user_warning(_LOGGER.warning)
        with quiet(), _numpy_seed(FIXTURE_SEED):
            self._robosuite = wrapper.ControlEnv(
                bddl_file_name=str(task.bddl_file),
                use_camera_obs=False,
                has_offscreen_renderer=False,
                hard_reset=False,
            ).env
            self._reset_like_upstream()
        self.model: mujoco.MjModel = self._robosuite.sim.model._model
        self.data: mujoco.MjData = self._robosuite.sim.data._data
        self._robosuite.check_contact = _ContactCheck(self.model, self.data)
        self._state_size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_INTEGRATION)
        self._controller = ArmController(self._robosuite)
        self.sensors = Sensors(self._robosuite)
        self._clock = SampleClock()
        self.sample = self._take_sample(self.data.qpos)
        self._after_reset = self.state()
        self._settled: dict[bytes, SimulationState] = {}

    def _reset_like_upstream(self) -> None:
        # LIBERO's default reset builds the scene anew and lists the samplers of doors and drawers
        # once more, which shifts the random numbers that place the fixtures. The double list gives
        # the scene of its first reset after ``seed``, without building anything twice.
        samplers = self._robosuite.object_property_initializers
        self._robosuite.object_property_initializers = samplers * 2
        self._robosuite.seed(FIXTURE_SEED)
        self._robosuite.reset()
        self._robosuite.object_property_initializers = samplers

    def reset(self, init_state: Array) -> None:
        """Start an episode from an official initial state ``(1 + nq + nv,)``, settled.

        Settling is deterministic, so a second start from the same state goes on from its end.
        """
        key = init_state.tobytes()
        if key not in self._settled:
            self._settle(init_state)
            self._settled[key] = self.state()
        self.restore(self._settled[key])

    def _settle(self, init_state: Array) -> None:
        model, data = self.model, self.data
        self._load(self._after_reset)
        self._controller.begin()
        self._clock = SampleClock()
        data.time = init_state[0]
        data.qpos[:] = init_state[1 : 1 + model.nq]
        data.qvel[:] = init_state[1 + model.nq :]
        self._mujoco.mj_forward(model, data)
        self.is_success()
        self._robosuite._post_process()
        for _ in range(SETTLING_STEPS):
            self.step(SETTLING_ACTION)

    def step(self, action: Array) -> bool:
        """Advance one control step of 0.05 s and return whether the goal is reached.

        Args:
            action: ``(7,)`` in [-1, 1], float64.

        Raises:
            InfrastructureError: If the simulation diverges.
        """
        gripper_sign = float(np.sign(action[6]))
        self._physics_step(action, gripper_sign)
        for _ in range(PHYSICS_STEPS - 1):
            self._physics_step(None, gripper_sign)
        self._check_finite()
        is_success = self.is_success()
        self._robosuite._post_process()
        return is_success

    def is_success(self) -> bool:
        """Return whether the task's goal holds now."""
        return bool(self._robosuite._check_success())

    def state(self) -> SimulationState:
        """Return a copy of the state."""
        integration = np.empty(self._state_size)
        self._mujoco.mj_getState(
            self.model, self.data, integration, self._mujoco.mjtState.mjSTATE_INTEGRATION
        )
        return SimulationState(
            integration=integration,
            body_pos=self.model.body_pos.copy(),
            body_quat=self.model.body_quat.copy(),
            control=self._controller.state.copy(),
            clock=(self._clock.elapsed_s, self._clock.has_sampled),
            sample=self.sample,
        )

    def restore(self, state: SimulationState) -> None:
        """Go on from ``state``, taken after a step of this task in any process."""
        self._load(state)
        self._mujoco.mj_forward(self.model, self.data)
        self._load(state)  # the forward pass has moved the solver's warm start
        self._robosuite._post_process()
        self._controller.state = state.control.copy()
        self._controller.is_stale = False
        self._clock = SampleClock(elapsed_s=state.clock[0], has_sampled=state.clock[1])
        self.sample = state.sample
        self.sensors.forget()

    def close(self) -> None:
        """Free the simulator."""
        with quiet():
            self._robosuite.close()

    def _load(self, state: SimulationState) -> None:
        self._mujoco.mj_resetData(self.model, self.data)  # forgets past warnings too
        self.model.body_pos[:] = state.body_pos
        self.model.body_quat[:] = state.body_quat
        self._mujoco.mj_setState(
            self.model, self.data, state.integration, self._mujoco.mjtState.mjSTATE_INTEGRATION
        )

    def _physics_step(self, new_action: Array | None, gripper_sign: float) -> None:
        mujoco, model, data, arm = self._mujoco, self.model, self.data, self._controller
        mujoco.mj_step1(model, data)
        mujoco.mj_fwdActuation(model, data)
        mujoco.mj_fwdAcceleration(model, data)
        mujoco.mj_fwdConstraint(model, data)
        if not arm.is_stale:
            mujoco.mj_fwdConstraint(model, data)
            arm.measure()
        if new_action is not None:
            arm.aim(new_action)
        arm.drive(gripper_sign)
        arm.is_stale = False
        is_sampled = self._clock.tick()
        pose_qpos = data.qpos.copy() if is_sampled else None
        mujoco.mj_step2(model, data)
        if pose_qpos is not None:
            self.sample = self._take_sample(pose_qpos)

    def _take_sample(self, pose_qpos: Array) -> Sample:
        return Sample(
            pose_qpos=pose_qpos.copy(), qpos=self.data.qpos.copy(), qvel=self.data.qvel.copy()
        )

    def _check_finite(self) -> None:
        warnings = self.data.warning.number
        kinds = self._mujoco.mjtWarning
        bad = [kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC]
        if any(warnings[int(kind)] for kind in bad) or not np.isfinite(self.data.qvel).all():
            raise InfrastructureError(
                "the simulator diverged: NaN or huge values in its state; "
                "the episode is missing, reset to go on"
            )


class _ContactCheck:
    """robosuite's ``check_contact`` by geometry numbers instead of names."""

    def __init__(self, model: "mujoco.MjModel", data: "mujoco.MjData") -> None:
        self._model = model
        self._data = data
        self._masks: dict[Any, NDArray[np.bool_]] = {}

    def __call__(self, geoms_1: Any, geoms_2: Any = None) -> bool:
        pairs = self._data.contact.geom
        if not len(pairs):
            return False
        first = self._mask(geoms_1)[pairs]
        if geoms_2 is None:
            return bool(first.any())
        second = self._mask(geoms_2)[pairs]
        return bool((first & second[:, ::-1]).any())

    def _mask(self, geoms: Any) -> NDArray[np.bool_]:
        key = tuple(geoms) if isinstance(geoms, list) else geoms
        if key not in self._masks:
            is_model = not isinstance(key, str | tuple)
            names = [key] if isinstance(key, str) else key.contact_geoms if is_model else key
            mask = np.zeros(self._model.ngeom, dtype=bool)
            known = {self._model.geom(i).name: i for i in range(self._model.ngeom)}
            mask[[known[name] for name in names if name in known]] = True
            self._masks[key] = mask
        return self._masks[key]


class _numpy_seed:  # noqa: N801
    """Seed NumPy's global generator inside the block and give it back as it was."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._before = np.random.get_state()  # noqa: NPY002
        np.random.seed(self._seed)  # noqa: NPY002

    def __exit__(self, *_: object) -> None:
        np.random.set_state(self._before)  # noqa: NPY002
