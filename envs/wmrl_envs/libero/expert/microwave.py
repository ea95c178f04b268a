"""The mug into the microwave, whose door is then closed: task 9.

The hand is too tall for the cavity, so the mug is held by its handle, which points away from the
microwave, and the hand stays outside. The door is then swept shut along its arc with the fist and
pushes the mug the rest of the way in.
"""

import math

import numpy as np

from wmrl_envs.libero.expert.motion import (
    CLOSED,
    HOVERING,
    OPEN,
    PASSING,
    TOUCHING,
    Arm,
    Motion,
    Reach,
)
from wmrl_envs.libero.expert.scene import Points
from wmrl_envs.libero.expert.skills import pick

MUG = "white_yellow_mug_1"
DOOR = "microwave_1_microdoorroot"
DOOR_JOINT = "microwave_1_microjoint"

CAVITY_X_M = -0.025
"""Where the mug goes in: between the control panel on the right and the open door on the left."""

CAVITY_FLOOR_M, CAVITY_CEILING_M = 0.944, 1.088

INSIDE_Y_M = 0.225
"""Hand at the deepest: its palm just clears the front."""

FIST_ALONG_M = 0.18
"""Where the fist pushes, from the hinge along the door: inside its handle."""

FIST_HEIGHT_M = 1.085
"""Finger tips just below the door's upper edge, so that the palm passes over it."""


def heat_mug(arm: Arm) -> Motion:
    """Stand the mug inside by its handle and close the door."""
    yield from pick(arm, MUG, lambda: grasp_handle(arm, MUG), lift_m=0.12)
    yield from arm.move([CAVITY_X_M, 0.04, _carry_height(arm)], Reach(position_m=0.02))
    yield from arm.move([CAVITY_X_M, 0.13, _carry_height(arm)], Reach(speed=0.7))
    deepest = [CAVITY_X_M, INSIDE_Y_M, _carry_height(arm)]
    yield from arm.move(deepest, Reach(speed=0.7, max_steps=30))
    lowest = arm.scene.bounds(MUG)[0][2]
    yield from arm.rise(
        arm.position[2] - (lowest - CAVITY_FLOOR_M) + 0.004, Reach(position_m=0.008, max_steps=20)
    )
    yield from arm.set_grip(OPEN)
    yield from arm.move([CAVITY_X_M, 0.16, 1.03], PASSING)
    yield from arm.rise(1.2)
    yield from close_door(arm)


def grasp_handle(arm: Arm, name: str, *, depth_m: float = 0.04, hover_m: float = 0.14) -> Motion:
    """Pinch a mug's handle from above, where the handle points along -y.

    Args:
        arm: The arm.
        name: The mug.
        depth_m: How far below the handle's top the finger tips go.
        hover_m: Height above its top at which the hand is aligned first.
    """
    points = arm.scene.vertices(name, visual=True)
    end = points[:, 1].min()
    handle = points[points[:, 1] < end + 0.02]
    x, y, top = handle[:, 0].mean(), end + 0.012, handle[:, 2].max()
    arm.grip, arm.yaw_rad = OPEN, math.pi / 2
    yield from arm.roam([x, y, top + hover_m], HOVERING)
    yield from arm.descend([x, y, top - depth_m], TOUCHING)
    yield from arm.set_grip(CLOSED)


def close_door(arm: Arm, *, max_steps: int = 150) -> Motion:
    """Come down outside the open door and sweep it along its arc until it is shut."""
    arm.grip = CLOSED
    over = _door_point(arm, ahead_rad=0.0, outside_m=0.1, height_m=1.22)
    yield from arm.roam(over, Reach(position_m=0.04))
    beside = _door_point(arm, ahead_rad=0.0, outside_m=0.08, height_m=FIST_HEIGHT_M)
    yield from arm.move(beside, PASSING)
    for _ in range(max_steps):
        goal = _door_point(arm, ahead_rad=0.6, outside_m=0.02, height_m=FIST_HEIGHT_M)
        yield arm.action_towards(goal, Reach())


def _carry_height(arm: Arm) -> float:
    """Height of the hand at which the mug passes midway between the cavity's floor and ceiling."""
    low, high = arm.scene.bounds(MUG)
    return arm.position[2] - (low[2] + high[2]) / 2 + (CAVITY_FLOOR_M + CAVITY_CEILING_M) / 2


def _door_point(arm: Arm, *, ahead_rad: float, outside_m: float, height_m: float) -> Points:
    """Point ``(3,)`` in front of the door's face once it has turned ``ahead_rad`` further.

    The joint is 0 when the door is shut, lying along +x from its hinge with its face towards -y.
    """
    angle = min(arm.scene.joint(DOOR_JOINT) + ahead_rad, 0.2)
    along = np.array([math.cos(angle), math.sin(angle)])
    outwards = np.array([math.sin(angle), -math.cos(angle)])
    hinge = arm.scene.position(DOOR)[:2]
    return np.array([*(hinge + FIST_ALONG_M * along + outside_m * outwards), height_m])
