"""Training spends its budget, reproduces itself and learns."""

import pytest
import torch

from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.config import preset
from wmrl_embodied.simulate import engine
from wmrl_embodied.simulate.world_models import Cell

_CELLS = (
    Cell(bias="none", noise=0.1, binary=True),
    Cell(bias="adversarial", noise=0.1, binary=True),
)


def _train(name: str, *, kind: str = "sgd", rate: float = 9.0, steps: float = 3.0) -> engine.Curves:
    return engine.train(
        preset(name),
        engine.OptimizerConfig(kind=kind, learning_rate=rate, epochs=1 if kind == "sgd" else 4),
        seeds=[0, 1],
        cells=_CELLS,
        budget=steps * engine.REAL_STEP_COST,
        points=6,
    )


@pytest.mark.parametrize(
    ("name", "executed", "fallback", "cost"),
    [
        ("real", 160, False, 168.0),  # 160 * (1 + 0.05)
        ("anchors_only", 16, False, 16.8),  # 16 * (1 + 0.05): nothing else is generated
        ("auto", 16, False, 25.6),  # 16 + 160 * (0.05 + 0.01)
        ("world_model_only", 0, False, 9.6),  # 160 * (0.05 + 0.01)
        ("auto_groups", 32, True, 33.92),  # 32 * (1 + 0.05 + 0.01)
    ],
)
def test_a_steps_cost_worked_by_hand(name: str, executed: int, fallback: bool, cost: float) -> None:
    execute = (torch.arange(160) < executed).view(20, 8)
    draw = Draw(execute=execute, probability=torch.full((20, 8), 0.5))

    spent = engine.step_cost(draw, preset(name), torch.tensor(fallback))

    assert float(spent) == pytest.approx(cost)


def test_real_execution_never_exceeds_the_budget_by_more_than_a_step() -> None:
    curves = _train("real")

    torch.testing.assert_close(curves.executed, torch.full((2, 2), 3 * 160.0))


def test_real_training_improves_the_policy_in_every_cell() -> None:
    curves = _train("real")

    assert float(curves.values[..., 0].abs().max()) < 1e-5
    assert float(curves.values[..., -1].min()) > 0.1


def test_the_world_model_alone_follows_an_adversary_down() -> None:
    values = _train("world_model_only").values[..., -1].mean(0)

    assert float(values[0]) > 0.3
    assert float(values[1]) < 0.0


def test_adam_with_clipping_learns_too() -> None:
    assert float(_train("auto", kind="adam", rate=0.1).values[..., -1].min()) > 0.05


def test_the_same_seeds_give_the_same_curves() -> None:
    assert torch.equal(_train("auto").values, _train("auto").values)


def test_actions_are_drawn_from_the_policy() -> None:
    logp = torch.tensor([0.5, 0.3, 0.2]).log().expand(1, 1, 40_000, 3)

    actions = engine.sample(logp, torch.Generator().manual_seed(0))

    shares = torch.bincount(actions.flatten(), minlength=3) / actions.numel()
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.005, rtol=0)
