"""The stove: turn its knob and put moka pots on it; tasks 2 and 8."""

import numpy as np

from wmrl_envs.libero.expert.motion import CLOSED, HOVERING, OPEN, TOUCHING, Arm, Motion, Reach
from wmrl_envs.libero.expert.skills import grasp_top, narrowest_fit, pick, place

KNOB = "flat_stove_1_button"
KNOB_JOINT = "flat_stove_1_button"
BURNER = "flat_stove_1_burner"
ON_RAD = 0.5
"""Knob angle from which LIBERO counts the stove as on."""

TWIST_RAD = 0.08
"""Wrist turn asked for per step; faster turns let the fingers slide over the blade."""

POT_DEPTH_M = 0.035
"""How far below a pot's top the finger tips go: past its lid's button, onto the body."""


def turn_on(arm: Arm, *, attempts: int = 3) -> Motion:
    """Straddle the knob's blade, twist it past :data:`ON_RAD` and let go."""
    x, y, _ = arm.scene.position(KNOB)
    for _ in range(attempts):
        points = arm.scene.vertices(KNOB)
        top = points[:, 2].max()
        fit = narrowest_fit(points[points[:, 2] > top - 0.02])
        arm.grip, arm.yaw_rad = OPEN, fit.yaw_rad
        yield from arm.roam([x, y, top + 0.08], HOVERING)
        yield from arm.descend([x, y, top - 0.012], TOUCHING)
        yield from arm.set_grip(CLOSED)
        yield from _twist(arm, np.array([x, y, top - 0.012]))
        yield from arm.set_grip(OPEN, steps=6)
        yield from arm.rise(top + 0.1)
        if arm.scene.joint(KNOB_JOINT) > ON_RAD:
            break
    arm.yaw_rad = 0.0


def turn_on_and_heat(arm: Arm) -> Motion:
    """Turn the stove on, then put the moka pot on its burner."""
    yield from turn_on(arm)
    yield from pot_onto_burner(arm, "moka_pot_1", shift_m=0.0)


def heat_two_pots(arm: Arm) -> Motion:
    """Put both moka pots on the burner, side by side."""
    yield from pot_onto_burner(arm, "moka_pot_2", shift_m=0.043)
    yield from pot_onto_burner(arm, "moka_pot_1", shift_m=-0.043)


def pot_onto_burner(arm: Arm, pot: str, *, shift_m: float) -> Motion:
    """Stand a pot on the burner, ``shift_m`` along x from its centre."""
    yield from pick(arm, pot, lambda: grasp_top(arm, pot, depth_m=POT_DEPTH_M))
    target = arm.scene.site(BURNER) + np.array([shift_m, 0.0, arm.scene.clearance(pot) + 0.01])
    yield from place(arm, pot, target, retreat_m=0.15)


def _twist(arm: Arm, centre: np.ndarray) -> Motion:
    start = arm.yaw_rad
    for step in range(30):
        arm.yaw_rad = min(start + TWIST_RAD * (step + 1), start + 1.1)
        yield arm.action_towards(centre, Reach(gain=1.0))
        if arm.scene.joint(KNOB_JOINT) > ON_RAD + 0.1:
            return
