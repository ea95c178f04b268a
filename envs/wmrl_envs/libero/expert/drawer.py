"""The bowl into the bottom drawer, which is then closed: task 3.

The drawer opens along -y, under the handles of two more drawers. The bowl is taken by its far wall,
so that the wide hand lies along the drawer's front; the fist that closes the drawer is tilted
forwards, so that the fingers go under the other handles while the palm stays in front of them.
"""

import math

import numpy as np

from wmrl_envs.libero.expert.motion import CLOSED, PASSING, Arm, Motion, Reach
from wmrl_envs.libero.expert.skills import grasp_rim, pick, place

BOWL = "akita_black_bowl_1"
DRAWER = "white_cabinet_1_cabinet_bottom"
REGION = "white_cabinet_1_bottom_region"

RELEASE_M = np.array([0.0, -0.03, 0.023])
"""Where the bowl is let go, from the middle of the drawer: clear of the cabinet's face, just over
the drawer's walls."""

FIST_TILT_RAD = 0.6
FIST_HEIGHT_M = 0.94
"""Height of the finger tips when they push: that of the drawer's handle."""

APPROACH_M = 0.09
"""Distance from the drawer's handle at which the fist comes down."""


def stow_bowl(arm: Arm) -> Motion:
    """Put the bowl into the open drawer and push the drawer shut with the fist."""
    yield from pick(arm, BOWL, lambda: grasp_rim(arm, BOWL, side=1.0, along_x=True, depth_m=0.035))
    middle = arm.scene.site(REGION)
    yield from place(arm, BOWL, middle + RELEASE_M, over_m=1.12, retreat_m=0.12)
    yield from push_shut(arm, middle[0])


def push_shut(arm: Arm, x: float, *, max_steps: int = 150) -> Motion:
    """Come down in front of the drawer and push along +y until it is shut."""
    arm.yaw_rad, arm.tilt_rad, arm.grip = math.pi / 2, FIST_TILT_RAD, CLOSED
    front = arm.scene.bounds(DRAWER)[0][1] - APPROACH_M
    yield from arm.roam([x, front, 1.08], PASSING)
    yield from arm.move([x, front, FIST_HEIGHT_M], PASSING)
    for _ in range(max_steps):
        ahead = np.array([x, arm.position[1] + 0.12, FIST_HEIGHT_M])
        yield arm.action_towards(ahead, Reach(gain=1.5))
