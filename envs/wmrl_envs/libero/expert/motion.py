"""Motion primitives: generators that turn targets into ``OSC_POSE`` actions, one per control step.

Each primitive is feedback on the live scene (a proportional law towards a target), so its action
depends on the present pose alone; disturbances are corrected and a policy that sees the pose can
imitate it. An action is ``(7,)``: displacement of the hand (±1 = 0.05 m a step), rotation vector
in the world frame (±1 = 0.5 rad a step), gripper (-1 opens, +1 closes).
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from wmrl_envs.libero.expert.scene import Points, Scene

Action = NDArray[np.float64]
Motion = Generator[Action, None, None]

OPEN, CLOSED = -1.0, 1.0

MAX_STEP_M = 0.05
MAX_STEP_RAD = 0.5
MAX_TURN = 0.6
"""Largest share of ``MAX_STEP_RAD`` that is asked for; faster turns shake the object."""

FUNNEL_RADIUS_M = 0.006
"""Sideways error at which a descent still goes straight for its target."""

FUNNEL_SLOPE = 5.0
"""Height kept per sideways error beyond that."""

FUNNEL_HEIGHT_M = 0.09
"""Most height kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """When a move counts as finished, and how hard it pushes."""

    position_m: float = 0.012
    """Remaining distance at which a move ends."""

    angle_rad: float = 0.12
    """Remaining rotation at which a move ends."""

    max_steps: int = 80
    """Steps after which a move ends wherever it is, so that a blocked arm goes on."""

    speed: float = 1.0
    """Largest component of the displacement, in (0, 1]."""

    gain: float = 2.0
    """Displacement asked for per displacement missing; above 1 because the arm lags."""


PASSING = Reach(position_m=0.03, angle_rad=0.3)
"""A way-point on the way to somewhere else."""

HOVERING = Reach(position_m=0.015)
"""Above the thing to be grasped, or the place to put it."""

TOUCHING = Reach(position_m=0.007, max_steps=40)
"""At the grasp."""

LOWERING = Reach(position_m=0.012, max_steps=50, speed=0.5)
"""With an object, down to where it is released."""


class Arm:
    """The hand's wanted orientation and grip, and the primitives that move it."""

    def __init__(self, scene: Scene, *, rng: np.random.Generator, waypoint_std_m: float) -> None:
        """Take the hand's present orientation as the upright one.

        Args:
            scene: Live view of the scene, already at the start of the episode.
            rng: Source of the way-point noise.
            waypoint_std_m: Standard deviation of the noise on free-space way-points; 0 for none.
        """
        self.scene = scene
        self.yaw_rad = 0.0
        self.tilt_rad = 0.0
        self.grip = OPEN
        self._upright = scene.hand_rotation
        self._rng = rng
        self._waypoint_std_m = waypoint_std_m

    @property
    def position(self) -> Points:
        """Present position of the hand ``(3,)``."""
        return self.scene.hand_position

    def move(self, target: ArrayLike, reach: Reach) -> Motion:
        """Go straight to ``target`` ``(3,)`` and to the wanted orientation."""
        goal = np.asarray(target, dtype=float)
        for _ in range(reach.max_steps):
            near = np.linalg.norm(goal - self.position) < reach.position_m
            if near and np.linalg.norm(self._turn_missing()) < reach.angle_rad:
                return
            yield self.action_towards(goal, reach)

    def descend(self, target: ArrayLike, reach: Reach) -> Motion:
        """Go down to ``target`` ``(3,)`` inside a steep funnel: sideways first, then down.

        Aiming higher the farther the hand is off to the side keeps the fingers, or what they hold,
        away from neighbours and walls, however the descent was disturbed.
        """
        goal = np.asarray(target, dtype=float)
        for _ in range(reach.max_steps):
            missing = goal - self.position
            near = np.linalg.norm(missing) < reach.position_m
            if near and np.linalg.norm(self._turn_missing()) < reach.angle_rad:
                return
            aside = max(0.0, float(np.linalg.norm(missing[:2])) - FUNNEL_RADIUS_M)
            above = np.array([0.0, 0.0, min(FUNNEL_SLOPE * aside, FUNNEL_HEIGHT_M)])
            yield self.action_towards(goal + above, reach)

    def roam(self, target: ArrayLike, reach: Reach = PASSING) -> Motion:
        """Go to ``target`` ``(3,)`` through free space, off by a little way-point noise."""
        noise = self._rng.normal(0.0, self._waypoint_std_m, 3) * np.array([1.0, 1.0, 0.7])
        return self.move(np.asarray(target, dtype=float) + noise, reach)

    def rise(self, height_m: float, reach: Reach = PASSING) -> Motion:
        """Go straight up (or down) to ``height_m``."""
        x, y, _ = self.position
        return self.move([x, y, height_m], reach)

    def set_grip(self, grip: float, *, steps: int = 8) -> Motion:
        """Open or close the fingers while holding still."""
        self.grip = grip
        here = self.position
        for _ in range(steps):
            yield self.action_towards(here, Reach(gain=1.0))

    def action_towards(self, goal: Points, reach: Reach) -> Action:
        """One action ``(7,)`` of the proportional law; the direction of a long move is kept."""
        shift = (goal - self.position) / MAX_STEP_M * reach.gain
        largest = np.abs(shift).max()
        if largest > reach.speed:
            shift *= reach.speed / largest
        turn = np.clip(self._turn_missing() / MAX_STEP_RAD, -MAX_TURN, MAX_TURN)
        return np.concatenate([shift, turn, [self.grip]])

    def _turn_missing(self) -> Points:
        """Rotation vector ``(3,)`` from the present to the wanted orientation."""
        wanted = Rotation.from_euler("zx", [self.yaw_rad, self.tilt_rad]) * self._upright
        return (wanted * self.scene.hand_rotation.inv()).as_rotvec()
