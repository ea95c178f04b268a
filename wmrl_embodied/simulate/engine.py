"""Engine: one estimator trained on every seed and cell at once, until each run's money is spent.

Notation:
    cost   real execution 1, world-model score 0.01, generation 0.05 a rollout
    curve  normalised expected real score against cost, on a common grid of costs
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.config import EstimatorConfig
from wmrl_embodied.estimators.estimator import Estimator
from wmrl_embodied.estimators.policy_loss import PolicyLossConfig, policy_loss
from wmrl_embodied.seeding import torch_generator
from wmrl_embodied.simulate import problem as bandit
from wmrl_embodied.simulate import world_models
from wmrl_embodied.simulate.world_models import Cell

GROUPS = 20
GROUP = 8
REAL_COST = 1.0
MODEL_COST = 0.01
GENERATION_COST = 0.05
REAL_STEP_COST = GROUPS * GROUP * (REAL_COST + GENERATION_COST)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """How advantages move the policy."""

    kind: str
    """``sgd``: one plain step; ``adam``: four clipped epochs."""

    learning_rate: float
    """Step size."""

    epochs: int = 1
    """Passes over each batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """What one estimator reached."""

    costs: Float[Tensor, " points"]
    """Money spent."""

    values: Float[Tensor, "seeds cells points"]
    """Normalised expected real score at each cost."""

    executed: Float[Tensor, "seeds cells"]
    """Rollouts really executed in the whole run."""


@dataclass(slots=True, kw_only=True)
class _Runs:
    problem: bandit.Problem
    models: world_models.WorldModels
    estimator: Estimator
    theta: Tensor
    optimizer: torch.optim.Optimizer
    epochs: int
    budget: float
    cost: Tensor
    executed: Tensor
    generator: torch.Generator


@contextmanager
def single_thread() -> Generator[None]:
    """Run PyTorch on one thread: the tensors here are too small to share, and waiting costs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def train(
    config: EstimatorConfig,
    optimizer: OptimizerConfig,
    *,
    seeds: list[int],
    cells: tuple[Cell, ...],
    budget: float,
    points: int,
) -> Curves:
    """Train one estimator on all seeds and cells.

    Args:
        config: The estimator.
        optimizer: How advantages move the policy.
        seeds: Problems.
        cells: World models tried on each.
        budget: Money of each run, in real executions.
        points: Points of the curves after the start.
    """
    runs = _start(config, optimizer, seeds=seeds, cells=cells, budget=budget)
    costs = torch.linspace(0.0, budget, points + 1)
    values = torch.zeros(len(seeds), len(cells), points + 1)
    start = bandit.value(runs.problem, runs.theta.detach())
    before = (torch.zeros_like(runs.cost), start)
    values[..., 0] = start
    reached = torch.zeros_like(runs.cost, dtype=torch.long)
    while bool((runs.cost < budget).any()):
        _step(runs)
        if int(((runs.cost / budget * points).long() - reached).max()) > 0:
            now = (runs.cost.clone(), bandit.value(runs.problem, runs.theta.detach()))
            _fill(values, costs, before, now)
            reached = (runs.cost / budget * points).long()
            before = now
    return Curves(costs=costs, values=values, executed=runs.executed)


def _start(
    config: EstimatorConfig,
    optimizer: OptimizerConfig,
    *,
    seeds: list[int],
    cells: tuple[Cell, ...],
    budget: float,
) -> _Runs:
    problem = bandit.make(seeds)
    theta = torch.zeros(len(seeds), len(cells), bandit.DIMS, requires_grad=True)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    return _Runs(
        problem=problem,
        models=world_models.make(problem, seeds, cells),
        estimator=Estimator(config, num_tasks=bandit.TASKS, runs=(len(seeds), len(cells))),
        theta=theta,
        optimizer=kinds[optimizer.kind]([theta], lr=optimizer.learning_rate),
        epochs=optimizer.epochs,
        budget=budget,
        cost=torch.zeros(len(seeds), len(cells)),
        executed=torch.zeros(len(seeds), len(cells)),
        generator=torch_generator(seeds[0], "training", len(seeds)),
    )


def _step(runs: _Runs) -> None:
    generator, estimator = runs.generator, runs.estimator
    seeds, cells = runs.cost.shape
    tasks = torch.randint(0, bandit.TASKS, (seeds, GROUPS), generator=generator)
    features = bandit.task_features(runs.problem, tasks)
    with torch.no_grad():
        logp = bandit.log_policy(runs.theta, features)
        actions = sample(logp, generator)
        sketch = bandit.score_vectors(features, logp, actions)
        reward = runs.problem.reward[torch.arange(seeds)[:, None], tasks]
        mean = reward.unsqueeze(1).expand(-1, cells, -1, -1).gather(-1, actions)
        real = world_models.real_scores(mean, runs.models.cells, generator=generator)
        predicted = world_models.predict(
            runs.models,
            real,
            tasks,
            actions,
            progress=runs.cost / runs.budget,
            generator=generator,
        )
        every_task = tasks.unsqueeze(1).expand(-1, cells, -1)
        draw = estimator.draw(
            predicted, tasks=every_task, sensitivity=sketch.norm(dim=-1), generator=generator
        )
        measured = torch.where(draw.execute, real, torch.nan)
        rate = estimator.learning_rate_factor
        spent = step_cost(draw, estimator.config, estimator.fallback)
        advantage, _ = estimator.advantage(predicted, measured, draw, tasks=every_task)
    _update(runs, features, logp.gather(-1, actions), actions, advantage * rate[..., None, None])
    estimator.observe(predicted, measured, draw, tasks=every_task, sketch=sketch)
    alive = runs.cost < runs.budget
    runs.cost += torch.where(alive, spent, 0.0)
    runs.executed += torch.where(alive, draw.execute.sum((-2, -1)), 0.0)


def step_cost(
    draw: Draw, config: EstimatorConfig, fallback: Bool[Tensor, "*runs"]
) -> Float[Tensor, "*runs"]:
    """Return the money a step costs.

    Whoever makes no use of predictions neither generates nor scores what is not executed; in the
    fallback what is executed is still scored, so that the world model can return.
    """
    executed = draw.execute.sum((-2, -1)).to(draw.probability.dtype)
    rollouts = float(draw.execute.shape[-1] * draw.execute.shape[-2])
    if not config.use_world_model:
        return executed * (REAL_COST + GENERATION_COST)
    used = torch.where(fallback, executed, rollouts)
    return executed * REAL_COST + used * (GENERATION_COST + MODEL_COST)


def sample(
    logp: Float[Tensor, "seeds cells groups actions"], generator: torch.Generator
) -> Int[Tensor, "seeds cells groups group"]:
    """Return eight actions a group, drawn from the policy."""
    cumulated = logp.exp().cumsum(-1)
    uniform = torch.rand((*logp.shape[:-1], GROUP), generator=generator)
    chosen = torch.searchsorted(cumulated, uniform * cumulated[..., -1:])
    return chosen.clamp_max(logp.shape[-1] - 1)


def _update(
    runs: _Runs,
    features: Float[Tensor, "seeds groups actions dims"],
    old_logp: Float[Tensor, "seeds cells groups group"],
    actions: Int[Tensor, "seeds cells groups group"],
    advantage: Float[Tensor, "seeds cells groups group"],
) -> None:
    before = runs.theta.detach().clone()
    for _ in range(runs.epochs):
        logp = bandit.log_policy(runs.theta, features).gather(-1, actions)
        loss, _ = policy_loss(logp, old_logp, advantage, config=PolicyLossConfig())
        runs.optimizer.zero_grad()
        (loss * runs.cost.numel()).backward()  # the mean over runs becomes each run's own loss
        runs.optimizer.step()
    with torch.no_grad():
        runs.theta.copy_(torch.where((runs.cost < runs.budget)[..., None], runs.theta, before))


def _fill(
    values: Float[Tensor, "seeds cells points"],
    costs: Float[Tensor, " points"],
    before: tuple[Tensor, Tensor],
    now: tuple[Tensor, Tensor],
) -> None:
    (cost_before, value_before), (cost_now, value_now) = before, now
    low, high = cost_before[..., None], cost_now[..., None]
    share = ((costs - low) / (high - low).clamp_min(1e-9)).clamp(0.0, 1.0)
    line = value_before[..., None] + share * (value_now - value_before)[..., None]
    inside = (costs > low) & (costs <= high)
    values.copy_(torch.where(inside, line, values))
