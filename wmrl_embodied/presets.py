"""Presets: named runs, each a function that returns a whole configuration.

Override one with flags (``wmrl train libero-quick --seed 1``), or write your own function.
"""

from collections.abc import Callable

from wmrl_embodied.training.config import EvaluationConfig, LiberoConfig, TrainConfig


def libero_quick() -> TrainConfig:
    """Minutes on two cores: one LIBERO-Long task, real anchors, the rest imagined."""
    return TrainConfig(
        name="libero-quick",
        libero=LiberoConfig(tasks=(5,), horizon=300, exploration=0.6),
        groups=4,
        steps=20,
        warmup=16,
    )


def libero_long() -> TrainConfig:
    """All ten LIBERO-Long tasks, plans that depend on the start; hours on a workstation."""
    return TrainConfig(
        name="libero-long",
        libero=LiberoConfig(tasks=tuple(range(10))),
        groups=20,
        steps=100,
        warmup=640,
        evaluation=EvaluationConfig(draws=1),
    )


PRESETS: dict[str, Callable[[], TrainConfig]] = {
    "libero-quick": libero_quick,
    "libero-long": libero_long,
}
