"""Step: one update of world-model GRPO, from proposals to parameters.

Order matters for correctness: what is executed is drawn before any real score is read, advantages
use corrections learned from earlier steps only, and the world model is refitted last.
"""

from dataclasses import dataclass

import torch

from wmrl_embodied.estimators.policy_loss import PolicyLossConfig, policy_loss
from wmrl_embodied.execution.contract import Outcomes
from wmrl_embodied.policies.contract import ProposalPolicy, Proposals
from wmrl_embodied.seeding import torch_generator
from wmrl_embodied.training.config import TrainConfig, UpdateConfig
from wmrl_embodied.training.sampler import sample_starts
from wmrl_embodied.training.state import TrainState
from wmrl_embodied.world_model.contract import Prediction


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """What one step did, for logs and reports."""

    proposals: Proposals
    prediction: Prediction
    outcomes: Outcomes
    metrics: dict[str, float]


def improve(state: TrainState, config: TrainConfig) -> StepRecord:
    """Make one update: propose, predict, draw, execute, correct, update, learn."""
    domain, estimator, ledger = state.domain, state.estimator, state.ledger
    with ledger.measure("generation"):
        generator = torch_generator(config.seed, "proposals", state.step)
        starts = sample_starts(domain, config.groups, generator=generator)
        proposals = domain.policy.propose(starts, config.group_size, generator=generator)
        sketch = domain.policy.score_vectors(proposals)
    with ledger.measure("world_model"):
        prediction = domain.world_model.predict(proposals)
    with ledger.measure("estimation"):
        draw = estimator.draw(
            prediction.score,
            tasks=starts.tasks,
            sensitivity=sketch.norm(dim=-1),
            generator=torch_generator(config.seed, "anchors", state.step),
        )
    outcomes = domain.executor.execute(proposals, draw.execute)
    ledger.proposed += proposals.logp.numel()
    ledger.charge(outcomes.cost)
    ledger.charge(domain.start_cost())
    with ledger.measure("estimation"):
        advantage, diagnostics = estimator.advantage(
            prediction.score, outcomes.scores, draw, tasks=starts.tasks
        )
    with ledger.measure("update"):
        # While predictions are out of use the batch is small, and the step is shortened to match.
        advantage = advantage * estimator.learning_rate_factor
        losses = update(domain.policy, state.optimizer, proposals, advantage, config.update)
    with ledger.measure("estimation"):
        estimator.observe(
            prediction.score, outcomes.scores, draw, tasks=starts.tasks, sketch=sketch
        )
    if estimator.config.use_world_model:
        with ledger.measure("world_model"):
            domain.world_model.observe(proposals, outcomes.scores, outcomes.executed)
            if (state.step + 1) % config.refit_every == 0 or diagnostics.refresh_requested:
                domain.world_model.fit()
    state.step += 1
    metrics = {
        **losses,
        **diagnostics.metrics(),
        **_scores(prediction, outcomes),
        **ledger.metrics(),
    }
    return StepRecord(
        proposals=proposals, prediction=prediction, outcomes=outcomes, metrics=metrics
    )


def warm_up(state: TrainState, config: TrainConfig) -> Outcomes | None:
    """Execute ``config.warmup`` rollouts of the starting policy and fit the world model on them."""
    state.is_warm = True
    if config.warmup == 0:
        return None
    domain, ledger = state.domain, state.ledger
    with ledger.measure("generation"):
        generator = torch_generator(config.seed, "warmup")
        groups = -(-config.warmup // config.group_size)
        starts = sample_starts(domain, groups, generator=generator)
        proposals = domain.policy.propose(starts, config.group_size, generator=generator)
    asked = torch.arange(proposals.logp.numel()).view(proposals.logp.shape) < config.warmup
    outcomes = domain.executor.execute(proposals, asked)
    ledger.proposed += config.warmup
    ledger.charge(outcomes.cost)
    ledger.charge(domain.start_cost())
    with ledger.measure("world_model"):
        domain.world_model.observe(proposals, outcomes.scores, outcomes.executed)
        domain.world_model.fit()
    return outcomes


def update(
    policy: ProposalPolicy,
    optimizer: torch.optim.Optimizer,
    proposals: Proposals,
    advantage: torch.Tensor,
    config: UpdateConfig,
) -> dict[str, float]:
    """Take ``config.epochs`` clipped policy-gradient steps on one batch; return their metrics."""
    loss_config = PolicyLossConfig(epsilon=config.epsilon, epsilon_high=config.epsilon_high)
    metrics: dict[str, float] = {}
    for _ in range(config.epochs):
        loss, shown = policy_loss(
            policy.log_prob(proposals), proposals.logp, advantage, config=loss_config
        )
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(policy.parameters()), config.max_grad_norm)
        optimizer.step()
        metrics = {"update/loss": float(loss.detach()), "update/grad_norm": float(norm), **shown}
    return metrics


def _scores(prediction: Prediction, outcomes: Outcomes) -> dict[str, float]:
    real = outcomes.scores[outcomes.executed]
    return {
        "score/predicted": float(prediction.score.mean()),
        "score/predicted_on_executed": float(prediction.score[outcomes.executed].mean()),
        "score/real": float(real.mean()),
        "world_model/std": float(prediction.std.mean()),
    }
