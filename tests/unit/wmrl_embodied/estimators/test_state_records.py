"""State records keep every bit, and refuse what is not theirs."""

import pytest
import torch

from wmrl_embodied.estimators import scale, state_records
from wmrl_envs.errors import InvalidInputError


def _record() -> scale.ScaleState:
    return scale.ScaleState(
        mixed=torch.tensor([1.0, 2.0]),
        mixed_mass=torch.tensor([3.0, 4.0]),
        spread=torch.tensor([5.0, 6.0]),
        spread_mass=torch.tensor([7.0, 8.0]),
    )


def test_select_takes_each_run_from_its_own_side() -> None:
    other = scale.start((2,), dtype=torch.float32)

    chosen = state_records.select(torch.tensor([True, False]), _record(), other)

    torch.testing.assert_close(chosen.mixed, torch.tensor([1.0, 0.0]))


def test_restores_what_was_flattened() -> None:
    stored = state_records.flatten({"scale": _record()})

    restored = state_records.restore("scale", scale.start((2,), dtype=torch.float32), stored)

    assert set(stored) == {"scale.mixed", "scale.mixed_mass", "scale.spread", "scale.spread_mass"}
    torch.testing.assert_close(restored.spread_mass, torch.tensor([7.0, 8.0]), rtol=0, atol=0)


def test_flattened_tensors_are_copies() -> None:
    record = _record()
    stored = state_records.flatten({"scale": record})

    record.mixed.zero_()

    assert stored["scale.mixed"].tolist() == [1.0, 2.0]


def test_a_missing_field_is_named() -> None:
    stored = state_records.flatten({"scale": _record()})
    del stored["scale.spread"]

    with pytest.raises(InvalidInputError, match=r"scale\.spread must be .*, got nothing"):
        state_records.restore("scale", _record(), stored)
