"""Checks of ``wmrl_embodied.world_model.plan_latent`` on outcomes with a known rule."""

from pathlib import Path
from typing import Any

import pytest
import torch

from wmrl_embodied.policies.contract import Proposals, Starts
from wmrl_embodied.policies.plan import PlanPolicy, PlanPolicyConfig
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig, PlanLatentModel
from wmrl_embodied.world_model.store import load_world_model, save_world_model
from wmrl_envs.errors import InvalidInputError


def _proposals(groups: int, seed: int, *, tasks: int = 1) -> Proposals:
    generator = torch.Generator().manual_seed(seed)
    starts = Starts(
        tasks=torch.arange(groups) % tasks,
        init_states=torch.arange(groups),
        context=torch.randn(groups, 5, generator=generator),
    )
    policy = PlanPolicy(PlanPolicyConfig(dims=4, tasks=tasks))
    return policy.propose(starts, 8, generator=generator)


def _success(proposals: Proposals) -> torch.Tensor:
    return (proposals.plans[..., :2].square().sum(-1) < 1.4).float()


def _success_by_start(proposals: Proposals) -> torch.Tensor:
    side = proposals.starts.context[:, :1].sign()
    return (proposals.plans[..., 0] * side > 0.0).float()


def _fitted(proposals: Proposals, scores: torch.Tensor, **config: Any) -> PlanLatentModel:
    model = PlanLatentModel(
        PlanLatentConfig(**config), num_tasks=int(proposals.starts.tasks.max()) + 1
    )
    model.observe(proposals, scores, torch.ones_like(scores, dtype=torch.bool))
    model.fit()
    return model


def test_knows_nothing_before_it_has_seen_anything() -> None:
    prediction = PlanLatentModel(PlanLatentConfig(), num_tasks=1).predict(_proposals(2, 0))
    assert (prediction.score == 0.5).all()
    assert (prediction.std == 0.5).all()


def test_orders_unseen_plans_within_a_group() -> None:
    model = _fitted(_proposals(16, 0), _success(_proposals(16, 0)))
    new = _proposals(50, 1)
    score, real = model.predict(new).score, _success(new)
    centred = [values - values.mean(1, keepdim=True) for values in (score, real)]
    correlation = torch.corrcoef(torch.stack([values.flatten() for values in centred]))[0, 1]
    assert correlation**2 > 0.4
    assert ((score >= 0) & (score <= 1)).all()


def test_what_was_not_executed_is_not_learned_from() -> None:
    proposals = _proposals(8, 0)
    scores = _success(proposals)
    executed = torch.zeros_like(scores, dtype=torch.bool)
    executed[:4] = True
    model = PlanLatentModel(PlanLatentConfig(), num_tasks=1)
    model.observe(proposals, torch.where(executed, scores, torch.nan), executed)
    model.fit()
    assert len(model) == 32
    assert model.predict(proposals).score.isfinite().all()


def test_the_start_joins_when_which_plan_works_depends_on_it() -> None:
    proposals = _proposals(30, 0)
    by_start = _fitted(proposals, _success_by_start(proposals), context_components=5)
    by_plan = _fitted(proposals, _success(proposals), context_components=5)
    assert by_start.forms == ("process+start",)
    assert by_plan.forms != ("process+start",)


def test_the_start_alone_orders_nothing_within_a_group() -> None:
    proposals = _proposals(20, 0)
    shown = _fitted(proposals, _success(proposals)).held_out_fidelity(0, "start")
    assert shown.within_group_r2 == pytest.approx(0.0, abs=1e-6)


def test_tasks_are_told_apart() -> None:
    proposals = _proposals(24, 0, tasks=2)
    scores = _success(proposals)
    scores[1::2] = 1.0 - scores[1::2]
    model = _fitted(proposals, scores)
    middle = Proposals(
        starts=Starts(
            tasks=torch.tensor([0, 1]),
            init_states=torch.zeros(2, dtype=torch.long),
            context=torch.zeros(2, 5),
        ),
        plans=torch.zeros(2, 1, 4),
        logp=torch.zeros(2, 1),
    )
    score = model.predict(middle).score[:, 0]
    assert score[0] > 0.7
    assert score[1] < 0.3


def test_a_loaded_model_predicts_exactly_as_the_saved_one(tmp_path: Path) -> None:
    proposals = _proposals(16, 0)
    model = _fitted(proposals, _success_by_start(proposals))
    # Data that has not been fitted yet must not leak into the loaded model's predictions.
    late = _proposals(2, 5)
    model.observe(late, _success(late), torch.ones(2, 8, dtype=torch.bool))
    save_world_model(model, tmp_path / "wm.safetensors")
    loaded = load_world_model(tmp_path / "wm.safetensors")
    new = _proposals(6, 1)
    assert torch.equal(loaded.predict(new).score, model.predict(new).score)
    assert torch.equal(loaded.predict(new).std, model.predict(new).std)
    assert len(loaded) == len(model)


def test_observed_starts_come_once_each() -> None:
    proposals = _proposals(6, 0)
    model = _fitted(proposals, _success(proposals))
    model.observe(proposals, _success(proposals), torch.ones(6, 8, dtype=torch.bool))
    starts = model.observed_starts()
    assert starts.init_states.tolist() == list(range(6))
    torch.testing.assert_close(starts.context, proposals.starts.context)


def test_refuses_a_form_chosen_from_too_few_rollouts() -> None:
    with pytest.raises(InvalidInputError, match="10 <= choose_from <= limit"):
        PlanLatentConfig(choose_from=3)
