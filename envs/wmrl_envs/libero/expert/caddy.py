"""The book into the caddy's back compartment: task 5."""

import math

import numpy as np

from wmrl_envs.libero.expert.motion import OPEN, Arm, Motion, Reach
from wmrl_envs.libero.expert.scene import Points
from wmrl_envs.libero.expert.skills import grasp_top, pick

BOOK = "black_book_1"
COMPARTMENT = "desk_caddy_1_back_contain_region"
CARRY_M = 1.3
"""Height of the hand at which the book clears the caddy."""

FLOOR_M = 0.9
"""Height at which the book's lower edge is released."""


def shelve_book(arm: Arm) -> Motion:
    """Lift the standing book, turn it along the compartment and lower it in."""
    yield from pick(arm, BOOK, lambda: grasp_top(arm, BOOK, depth_m=0.035))
    yield from arm.rise(CARRY_M)
    arm.yaw_rad = math.copysign(math.pi / 2, arm.yaw_rad)
    slot = arm.scene.site(COMPARTMENT)[:2]
    yield from arm.move([*(slot + _centre_offset(arm)[:2]), CARRY_M], Reach(angle_rad=0.06))
    over = [*(slot + _centre_offset(arm)[:2]), CARRY_M]
    yield from arm.move(over, Reach(position_m=0.006, angle_rad=0.05, max_steps=30))
    lower = arm.position[2] - arm.scene.bounds(BOOK)[0][2]
    target = np.array([*(slot + _centre_offset(arm)[:2]), FLOOR_M + lower])
    yield from arm.descend(target, Reach(max_steps=60, speed=0.5))
    yield from arm.set_grip(OPEN)
    yield from arm.rise(CARRY_M)


def _centre_offset(arm: Arm) -> Points:
    """Vector ``(3,)`` from the middle of the book's box to the hand."""
    low, high = arm.scene.bounds(BOOK)
    return arm.position - (low + high) / 2
