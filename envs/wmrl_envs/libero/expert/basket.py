"""Groceries into the basket: tasks 0, 1 and 7."""

import numpy as np

from wmrl_envs.libero.expert.motion import Arm, Motion
from wmrl_envs.libero.expert.skills import grasp_top, pick, place

BASKET = "basket_1"
CLEARANCE_M = 0.03
"""Height above the basket's edge at which an object's lowest point is carried over it."""


def fill_basket(arm: Arm, names: tuple[str, str], shifts_m: tuple[float, float]) -> Motion:
    """Put two objects into the basket, side by side.

    Args:
        arm: The arm.
        names: The objects, in the order in which they are moved.
        shifts_m: Where each goes, along y from the basket's centre.
    """
    for name, shift in zip(names, shifts_m, strict=True):
        yield from pick(arm, name, lambda name=name: grasp_top(arm, name))
        edge = arm.scene.bounds(BASKET)[1][2]
        x, y, _ = arm.scene.site(f"{BASKET}_contain_region")
        hanging = arm.position[2] - arm.scene.bounds(name)[0][2]
        target = np.array([x, y + shift, edge])
        yield from place(arm, name, target, over_m=edge + CLEARANCE_M + hanging)
