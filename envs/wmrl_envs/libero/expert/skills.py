"""Pick-and-place skills: grasp an object from above or by its rim, try again if it slips, put it.

Directions are in the world frame. The fingers close along the unit vector
``(-sin yaw, cos yaw)``, so at yaw 0 they close along y.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wmrl_envs.libero.expert.motion import CLOSED, HOVERING, LOWERING, OPEN, TOUCHING, Arm, Motion
from wmrl_envs.libero.expert.scene import Points

YAW_COST_M_PER_RAD = 0.006
"""Extra width that is accepted to turn the wrist by one radian less."""

RIM_BAND_M = 0.015
"""Vertices this close below the highest one belong to the rim."""

RIM_SLICE_M = 0.012
"""Half width of the slice through a vessel's centre in which its rim is looked for."""

WALL_INSET_M = 0.004
"""How far inside the rim's outer edge the fingers are centred."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """The narrowest way to take hold of a set of points from above."""

    yaw_rad: float
    width_m: float
    centre: Points
    """Point ``(2,)`` between the fingers."""


def narrowest_fit(points: Points) -> Fit:
    """Return the yaw at which the fingers straddle ``points`` ``(n, 3)`` most easily.

    Yaws are tried every 5 degrees; among nearly equal widths the smaller turn wins, so that the
    wrist does not flip between two almost symmetric choices.
    """
    flat = points[:, :2]
    yaws = np.deg2rad(np.arange(-90, 91, 5))
    axes = np.stack([-np.sin(yaws), np.cos(yaws)])
    along = flat @ axes
    low, high = along.min(axis=0), along.max(axis=0)
    best = int(np.argmin(high - low + YAW_COST_M_PER_RAD * np.abs(yaws)))
    centre = (flat.min(axis=0) + flat.max(axis=0)) / 2
    axis = axes[:, best]
    centre = centre + axis * ((low[best] + high[best]) / 2 - centre @ axis)
    return Fit(yaw_rad=float(yaws[best]), width_m=float(high[best] - low[best]), centre=centre)


def grasp_top(arm: Arm, name: str, *, depth_m: float = 0.03, hover_m: float = 0.09) -> Motion:
    """Straddle an object's narrow side from above and close the fingers.

    Args:
        arm: The arm.
        name: Object to grasp.
        depth_m: How far below the object's top the finger tips go.
        hover_m: Height above its top at which the hand is aligned first.
    """
    points = arm.scene.vertices(name)
    low, high = points.min(axis=0), points.max(axis=0)
    fit = narrowest_fit(points)
    arm.grip, arm.yaw_rad = OPEN, fit.yaw_rad
    yield from arm.roam([*fit.centre, high[2] + hover_m], HOVERING)
    yield from arm.descend([*fit.centre, max(high[2] - depth_m, low[2] + 0.012)], TOUCHING)
    yield from arm.set_grip(CLOSED)


def rim_point(arm: Arm, name: str, *, along_x: bool, side: float) -> Points:
    """Point ``(3,)`` on a vessel's upper rim, on the positive or negative side of its centre."""
    points = arm.scene.vertices(name, visual=True)
    centre = arm.scene.position(name)[:2]
    top = points[:, 2].max()
    axis, other = (0, 1) if along_x else (1, 0)
    rim = points[
        (points[:, 2] > top - RIM_BAND_M) & (np.abs(points[:, other] - centre[other]) < RIM_SLICE_M)
    ]
    edge = rim[:, axis].max() if side > 0 else rim[:, axis].min()
    point = np.array([*centre, top])
    point[axis] = edge - side * WALL_INSET_M
    return point


def away_from_handle(arm: Arm, name: str) -> float:
    """Side (±1 along y) of a mug that its handle, its farthest part, is not on."""
    flat = arm.scene.vertices(name, visual=True)[:, :2] - arm.scene.position(name)[:2]
    farthest = flat[np.argmax(np.linalg.norm(flat, axis=1))]
    return -1.0 if farthest[1] > 0 else 1.0


def grasp_rim(
    arm: Arm,
    name: str,
    *,
    side: float,
    along_x: bool = False,
    depth_m: float = 0.025,
    hover_m: float = 0.08,
) -> Motion:
    """Take a vessel by the wall: one finger inside, one outside.

    Args:
        arm: The arm.
        name: Object to grasp.
        side: Which of the two opposite walls, +1 or -1 along the axis.
        along_x: Use the walls along x (the wrist turns by 90 degrees) instead of along y.
        depth_m: How far below the rim the finger tips go.
        hover_m: Height above the rim at which the hand is aligned first.
    """
    x, y, top = rim_point(arm, name, along_x=along_x, side=side)
    arm.grip, arm.yaw_rad = OPEN, math.pi / 2 if along_x else 0.0
    yield from arm.roam([x, y, top + hover_m], HOVERING)
    yield from arm.descend([x, y, top - depth_m], TOUCHING)
    yield from arm.set_grip(CLOSED)


def pick(
    arm: Arm,
    name: str,
    grasp: Callable[[], Motion],
    *,
    lift_m: float = 0.11,
    attempts: int = 3,
) -> Motion:
    """Grasp and lift; when the object stays behind, open and grasp again where it is now.

    Args:
        arm: The arm.
        name: Object to pick up.
        grasp: Makes a fresh grasping motion, from poses read when it starts.
        lift_m: How far the hand rises.
        attempts: Grasps in all; after the last one the motion goes on, held or not.
    """
    for attempt in range(attempts):
        start = arm.scene.position(name)[2]
        yield from grasp()
        yield from arm.rise(arm.position[2] + lift_m)
        if arm.scene.position(name)[2] > start + lift_m / 4:
            return
        if attempt + 1 < attempts:
            yield from arm.set_grip(OPEN)


def place(
    arm: Arm,
    name: str,
    target: ArrayLike,
    *,
    over_m: float | None = None,
    retreat_m: float = 0.1,
) -> Motion:
    """Carry the held object so that its origin comes to ``target`` ``(3,)``, and let it go.

    How the object sits in the hand is measured again above the target, since it may have slipped
    or swung on the way.

    Args:
        arm: The arm, holding the object.
        name: The held object.
        target: Where the object's origin is released.
        over_m: Height of the hand while carrying; as it is now when left out.
        retreat_m: How far the empty hand rises afterwards.
    """
    goal = np.asarray(target, dtype=float)
    height = arm.position[2] if over_m is None else over_m
    if height > arm.position[2] + 0.03:
        yield from arm.rise(height)
    yield from arm.roam([*(goal + _grip_offset(arm, name))[:2], height], HOVERING)
    offset = _grip_offset(arm, name)
    yield from arm.move([*(goal + offset)[:2], height], HOVERING)
    yield from arm.descend(goal + offset, LOWERING)
    yield from arm.set_grip(OPEN, steps=6)
    yield from arm.rise(arm.position[2] + retreat_m)


def _grip_offset(arm: Arm, name: str) -> Points:
    """Vector ``(3,)`` from the object's origin to the hand."""
    return arm.position - arm.scene.position(name)
