"""Checks of ``wmrl_envs.libero.expert.motion`` on a hand that goes where it is told."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmrl_envs.libero.expert.motion import CLOSED, MAX_STEP_M, MAX_STEP_RAD, Arm, Reach
from wmrl_envs.libero.expert.scene import Points, Scene


class ObedientScene(Scene):
    """A hand alone, which executes every action exactly."""

    def __init__(self) -> None:
        self.point = np.zeros(3)
        self.turn = Rotation.from_euler("x", math.pi)

    @property
    def hand_position(self) -> Points:
        """Where the hand is."""
        return self.point.copy()

    @property
    def hand_rotation(self) -> Rotation:
        """How the hand is turned."""
        return self.turn

    def obey(self, action: Points) -> None:
        """Move and turn as the action says."""
        self.point = self.point + MAX_STEP_M * action[:3]
        self.turn = Rotation.from_rotvec(MAX_STEP_RAD * action[3:6]) * self.turn


def make_arm(scene: Scene, *, waypoint_std_m: float = 0.0, seed: int = 0) -> Arm:
    return Arm(scene, rng=np.random.default_rng(seed), waypoint_std_m=waypoint_std_m)


def test_an_action_is_the_missing_way_in_units_of_the_largest_step() -> None:
    arm = make_arm(ObedientScene())

    action = arm.action_towards(np.array([0.01, 0.0, -0.02]), Reach(gain=2.0))

    # 2 · 0.01 / 0.05 = 0.4 and 2 · -0.02 / 0.05 = -0.8; the fingers stay open.
    np.testing.assert_allclose(action, [0.4, 0.0, -0.8, 0.0, 0.0, 0.0, -1.0], atol=1e-12)


def test_a_long_way_keeps_its_direction() -> None:
    arm = make_arm(ObedientScene())

    action = arm.action_towards(np.array([1.0, 0.5, 0.0]), Reach(speed=0.6))

    np.testing.assert_allclose(action[:3], [0.6, 0.3, 0.0])


def test_the_wrist_turns_about_the_vertical_first_and_tilts_about_x_then() -> None:
    scene = ObedientScene()
    arm = make_arm(scene)
    upright = scene.turn
    arm.yaw_rad, arm.tilt_rad = 0.5, 0.3

    for action in arm.move(np.zeros(3), Reach(angle_rad=1e-3)):
        scene.obey(action)

    wanted = Rotation.from_euler("x", 0.3) * Rotation.from_euler("z", 0.5) * upright
    assert (wanted * scene.turn.inv()).magnitude() < 1e-3


def test_a_move_ends_at_its_target() -> None:
    scene = ObedientScene()

    for action in make_arm(scene).move([0.3, -0.2, 0.1], Reach(position_m=0.005)):
        scene.obey(action)

    assert np.linalg.norm(scene.point - [0.3, -0.2, 0.1]) < 0.005


def test_a_blocked_move_gives_up() -> None:
    actions = list(make_arm(ObedientScene()).move([1.0, 0.0, 0.0], Reach(max_steps=7)))

    assert len(actions) == 7


def test_a_disturbed_hand_is_brought_back_while_it_grips() -> None:
    scene = ObedientScene()
    arm = make_arm(scene)
    motion = arm.set_grip(CLOSED)
    next(motion)
    scene.point = np.array([0.01, 0.0, 0.0])

    action = next(motion)

    assert action[0] == pytest.approx(-0.2)  # -0.01 / 0.05
    assert action[6] == CLOSED


def test_only_free_motion_is_jittered() -> None:
    def first(seed: int, *, is_free: bool) -> Points:
        arm = make_arm(ObedientScene(), waypoint_std_m=0.01, seed=seed)
        goal, reach = np.array([0.0, 0.0, 0.02]), Reach(gain=1.0)
        return next(arm.roam(goal, reach) if is_free else arm.move(goal, reach))

    assert np.abs(first(0, is_free=True) - first(1, is_free=True)).max() > 0.05
    np.testing.assert_array_equal(first(0, is_free=False), first(1, is_free=False))
