"""The theorems' floors are there without the correction, and gone with it."""

import pytest

from wmrl_embodied.simulate.theory import Floors, TheoryConfig, theory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def floors() -> Floors:
    return theory(TheoryConfig(seeds=4))


def test_the_bias_floor_grows_with_the_square_of_the_bias(floors: Floors) -> None:
    assert 1.6 < floors.summary()["bias_slope"] < 2.2


def test_the_noise_floor_grows_linearly_in_the_noise_variance(floors: Floors) -> None:
    assert floors.summary()["noise_r2"] > 0.99


def test_the_correction_removes_the_bias_floor(floors: Floors) -> None:
    assert abs(floors.summary()["bias_left"]) < 0.1


def test_the_correction_levels_the_noise_floor(floors: Floors) -> None:
    assert abs(floors.summary()["noise_left"]) < 0.15
