"""Configurations refuse nonsense, and presets mean what they say."""

from dataclasses import replace
from typing import Any

import pytest

from wmrl_embodied.estimators.config import PRESETS, EstimatorConfig, preset
from wmrl_envs.errors import InvalidInputError


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("eta", 1.5, r"eta must be in \[0.0, 1.0\], got 1.5"),
        ("anchor_fraction", -0.1, r"anchor_fraction must be in \[0.0, 1.0\], got -0.1"),
        ("anchor_fraction", 0.0, "anchor_fraction must be above 0 unless eta is 0"),
        ("audit_steps", -1, "audit_steps must be at least 0, got -1"),
        ("calibration_half_life", 0.0, "calibration_half_life must be above 0, got 0.0"),
        ("monitor_window", 1.0, "monitor_window must be at least 2, got 1.0"),
        ("task_pairs", 0.0, "task_pairs must be above 0 or None, got 0.0"),
        ("active_floor", 0.0, r"active_floor must be in \[0.01, 1.0\], got 0.0"),
    ],
)
def test_refuses_values_outside_their_range(field: str, value: Any, rule: str) -> None:
    with pytest.raises(InvalidInputError, match=rule):
        replace(EstimatorConfig(), **{field: value})


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"one of real, anchors_only, .*, got 'best'"):
        preset("best")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid(name: str) -> None:
    assert isinstance(preset(name), EstimatorConfig)


def test_presets_mean_what_they_say() -> None:
    assert preset("fast").eta == preset("fast").anchor_fraction
    assert preset("balanced").eta == 0.3
    assert preset("unbiased").eta == 1.0
    assert preset("auto").eta == "auto"
    assert preset("auto").unit == "active"
    assert preset("auto_random").unit == "rollout"
    assert preset("auto_groups").unit == "group"
    assert preset("real").anchor_fraction == 1.0
    assert not preset("anchors_only").use_world_model
    assert preset("world_model_only").anchor_fraction == 0.0
