"""Checks of ``wmrl_envs.libero.sensing``."""

import numpy as np
import pytest

from wmrl_envs.libero.sensing import SampleClock, axis_angle


def test_the_clock_samples_the_24th_physics_step_of_each_control_step() -> None:
    # After a reset the clock stands at 2 x 2 ms, so its 50 ms are over after 23 steps more.
    clock = SampleClock()
    due = [step for step in range(100) if clock.tick()]
    assert due == [23, 48, 73, 98]


@pytest.mark.parametrize(
    ("quat", "expected"),
    [
        ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)], [0.0, 0.0, np.pi / 2]),  # 2 acos(1/sqrt 2)
        ([1.0, 0.0, 0.0, 0.0], [np.pi, 0.0, 0.0]),
    ],
)
def test_axis_angle_of_known_turns(quat: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(axis_angle(np.array(quat)), expected, atol=1e-12)
