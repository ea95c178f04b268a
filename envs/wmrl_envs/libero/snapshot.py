"""Snapshot: a moment of an episode, from which it goes on bit-exactly in any process."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.control import ControlState
from wmrl_envs.libero.sensing import Sample
from wmrl_envs.libero.simulation import SimulationState

Array = NDArray[np.float64]

_FORMAT = "wmrl-libero-snapshot-1"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LiberoSnapshot:
    """The state of one :class:`~wmrl_envs.libero.env.LiberoEnv` between two steps.

    LIBERO's own ``get_sim_state`` is not enough: the controller's goals, the gripper's ramp, the
    solver's warm start, the sensors' clock and the poses of fixtures are missing from it.
    """

    suite: str
    task: str
    init_state: int
    elapsed_steps: int

    integration: Array
    """MuJoCo's integration state."""

    body_pos: Array
    body_quat: Array
    goal_position: Array
    goal_orientation: Array
    gripper: Array

    clock: Array
    """Sensors' clock: time in the period (s), whether it has sampled."""

    pose_qpos: Array
    qpos: Array
    qvel: Array

    @classmethod
    def of(
        cls, state: SimulationState, *, suite: str, task: str, init_state: int, elapsed_steps: int
    ) -> "LiberoSnapshot":
        """Return the snapshot of a simulation's state."""
        return cls(
            suite=suite,
            task=task,
            init_state=init_state,
            elapsed_steps=elapsed_steps,
            integration=state.integration,
            body_pos=state.body_pos,
            body_quat=state.body_quat,
            goal_position=state.control.goal_position,
            goal_orientation=state.control.goal_orientation,
            gripper=state.control.gripper,
            clock=np.array(state.clock, dtype=np.float64),
            pose_qpos=state.sample.pose_qpos,
            qpos=state.sample.qpos,
            qvel=state.sample.qvel,
        )

    def simulation_state(self) -> SimulationState:
        """Return what a simulation restores."""
        return SimulationState(
            integration=self.integration,
            body_pos=self.body_pos,
            body_quat=self.body_quat,
            control=ControlState(
                goal_position=self.goal_position,
                goal_orientation=self.goal_orientation,
                gripper=self.gripper,
            ),
            clock=(float(self.clock[0]), bool(self.clock[1])),
            sample=Sample(pose_qpos=self.pose_qpos, qpos=self.qpos, qvel=self.qvel),
        )

    def save(self, path: Path) -> None:
        """Write an NPZ file without pickle; ``path`` gets exactly this name."""
        values: dict[str, Any] = {
            field.name: np.asarray(getattr(self, field.name)) for field in fields(self)
        }
        with path.open("wb") as stream:
            np.savez(stream, allow_pickle=False, format=np.asarray(_FORMAT), **values)

    @classmethod
    def load(cls, path: Path) -> "LiberoSnapshot":
        """Read a file written by :meth:`save`.

        Raises:
            InvalidInputError: If the file is no snapshot.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                values: dict[str, Any] = dict(archive)
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"snapshot must be a readable file, got {path}: {error}"
            ) from error
        names = {field.name for field in fields(cls)}
        if str(values.pop("format", "")) != _FORMAT or set(values) != names:
            raise InvalidInputError(f"snapshot must be written by LiberoSnapshot.save, got {path}")
        plain = {
            name: values.pop(name).item()
            for name in ("suite", "task", "init_state", "elapsed_steps")
        }
        return cls(**plain, **values)
