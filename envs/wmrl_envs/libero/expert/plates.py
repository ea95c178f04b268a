"""Mugs onto plates, pudding beside one: tasks 4 and 6."""

import numpy as np

from wmrl_envs.libero.expert.motion import Arm, Motion
from wmrl_envs.libero.expert.skills import away_from_handle, grasp_rim, grasp_top, pick, place

PLATE_FLOOR_M = 0.012
"""Height above a plate's origin at which a mug's foot is released."""

RIGHT_REGION = "living_room_table_plate_right_region"
TABLE_M = 0.435
"""Height of the living room's table top."""


def mug_onto_plate(arm: Arm, mug: str, plate: str) -> Motion:
    """Take a mug by the wall opposite its handle and stand it on a plate."""

    def grasp() -> Motion:
        return grasp_rim(arm, mug, side=away_from_handle(arm, mug))

    yield from pick(arm, mug, grasp)
    target = arm.scene.position(plate)
    target[2] += arm.scene.clearance(mug) + PLATE_FLOOR_M
    yield from place(arm, mug, target)


def set_two_plates(arm: Arm) -> Motion:
    """White mug onto the left plate, yellow and white mug onto the right one."""
    yield from mug_onto_plate(arm, "porcelain_mug_1", "plate_1")
    yield from mug_onto_plate(arm, "white_yellow_mug_1", "plate_2")


def serve_mug_and_pudding(arm: Arm) -> Motion:
    """White mug onto the plate, chocolate pudding to the right of the plate."""
    pudding = "chocolate_pudding_1"
    yield from mug_onto_plate(arm, "porcelain_mug_1", "plate_1")
    yield from pick(arm, pudding, lambda: grasp_top(arm, pudding))
    x, y, _ = arm.scene.site(RIGHT_REGION)
    height = TABLE_M + arm.scene.clearance(pudding) + 0.01
    yield from place(arm, pudding, np.array([x, y, height]))
