"""Checks of ``wmrl_embodied.training.checkpoint``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wmrl_embodied.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.loop import start
from wmrl_embodied.training.step import improve, warm_up
from wmrl_envs.errors import InvalidInputError

CONFIG = TrainConfig(groups=2, group_size=4, steps=5, warmup=16)


@pytest.fixture
def saved(double_domain: Callable[..., Any], tmp_path: Path) -> tuple[Any, Path]:
    state = start(CONFIG, double_domain(), tmp_path)
    warm_up(state, CONFIG)
    for _ in range(3):
        improve(state, CONFIG)
        save_checkpoint(state, tmp_path, keep=2)
    return state, tmp_path


def test_keeps_the_newest(saved: tuple[Any, Path]) -> None:
    _, folder = saved
    assert [path.name for path in checkpoints(folder)] == ["step-000002", "step-000003"]


def test_a_restored_state_makes_the_same_next_step(
    saved: tuple[Any, Path], double_domain: Callable[..., Any]
) -> None:
    state, folder = saved
    restored = start(CONFIG, double_domain(), folder)
    assert restored.step == 3
    assert restored.ledger == state.ledger
    one, other = improve(state, CONFIG), improve(restored, CONFIG)
    assert one.metrics["update/loss"] == other.metrics["update/loss"]
    assert one.metrics["update/grad_norm"] == other.metrics["update/grad_norm"]


def test_a_half_written_checkpoint_is_no_checkpoint(saved: tuple[Any, Path]) -> None:
    _, folder = saved
    (folder / ".partial-000009").mkdir()
    assert checkpoints(folder)[-1].name == "step-000003"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / "tensors.safetensors").write_bytes(b"x"), "wrong checksum"),
        (lambda path: (path / "state.json").write_text("{"), "got Expecting"),
        (lambda path: (path / "state.json").write_text("{}"), "got format None"),
        (lambda path: (path / "tensors.safetensors").unlink(), "No such file"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_the_previous_one_offered(
    saved: tuple[Any, Path],
    double_domain: Callable[..., Any],
    damage: Callable[[Path], object],
    reason: str,
) -> None:
    state, folder = saved
    damage(folder / "step-000003")
    with pytest.raises(InvalidInputError, match=reason) as error:
        load_checkpoint(state, folder / "step-000003")
    assert "step-000002" in str(error.value)
