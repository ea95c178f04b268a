"""Checks of ``wmrl_envs.libero.expert.skills`` that need no simulator."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmrl_envs.libero.expert.scene import Points
from wmrl_envs.libero.expert.skills import narrowest_fit


def box(x_m: float, y_m: float, *, yaw_rad: float = 0.0) -> Points:
    corners = np.array([[i * x_m, j * y_m, 0.0] for i in (-0.5, 0.5) for j in (-0.5, 0.5)])
    return Rotation.from_euler("z", yaw_rad).apply(corners)


def test_a_box_is_taken_across_its_narrow_side() -> None:
    fit = narrowest_fit(box(0.10, 0.04))

    assert fit.yaw_rad == pytest.approx(0.0)  # at yaw 0 the fingers close along y
    assert fit.width_m == pytest.approx(0.04)


def test_a_box_along_y_needs_a_quarter_turn() -> None:
    fit = narrowest_fit(box(0.04, 0.10))

    assert abs(fit.yaw_rad) == pytest.approx(math.pi / 2)
    assert fit.width_m == pytest.approx(0.04)


def test_a_turned_box_is_followed() -> None:
    fit = narrowest_fit(box(0.12, 0.04, yaw_rad=math.radians(30)))

    assert math.degrees(fit.yaw_rad) == pytest.approx(30)


def test_a_nearly_square_box_is_not_worth_a_turn() -> None:
    assert narrowest_fit(box(0.049, 0.050)).yaw_rad == pytest.approx(0.0)


def test_the_fingers_are_centred_on_the_box() -> None:
    fit = narrowest_fit(box(0.10, 0.04) + np.array([0.3, -0.2, 0.9]))

    np.testing.assert_allclose(fit.centre, [0.3, -0.2])
