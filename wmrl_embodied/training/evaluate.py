"""Evaluation: real success on training and on held-out initial states, which never mix."""

from dataclasses import asdict, dataclass

import numpy as np
import torch

from wmrl_embodied.execution.contract import Outcomes
from wmrl_embodied.policies.contract import Proposals
from wmrl_embodied.seeding import torch_generator
from wmrl_embodied.training.config import EvaluationConfig
from wmrl_embodied.training.domain import Domain
from wmrl_embodied.training.statistics import Interval, paired_p_value, wilson

SPLITS = ("train", "held_out")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One evaluation episode."""

    task: str
    split: str
    init_state: int
    draw: int
    """Number of the plan drawn for this start; −1 is the mean plan."""

    success: bool | None
    """None when the episode is missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Trials of one policy; missing ones are counted and left out of every rate."""

    trials: tuple[Trial, ...]

    def rate(self, split: str, *, task: str | None = None, of_mean: bool = True) -> Interval | None:
        """Return the success rate with its Wilson interval, or None without trials.

        Args:
            split: ``"train"`` or ``"held_out"``.
            task: Name of one task; None pools all.
            of_mean: Trials of the mean plan, or of drawn plans.
        """
        known = [
            trial.success
            for trial in self.trials
            if trial.split == split
            and (task is None or trial.task == task)
            and (trial.draw < 0) == of_mean
            and trial.success is not None
        ]
        return wilson(sum(known), len(known)) if known else None

    @property
    def missing(self) -> int:
        """Trials without an outcome."""
        return sum(trial.success is None for trial in self.trials)

    def to_json(self) -> list[dict]:
        """Return the trials as plain records."""
        return [asdict(trial) for trial in self.trials]

    @classmethod
    def from_json(cls, saved: list[dict]) -> "Evaluation":
        """Return what :meth:`to_json` was called on."""
        return cls(trials=tuple(Trial(**record) for record in saved))


def evaluate(
    domain: Domain, config: EvaluationConfig, *, seed: int, splits: tuple[str, ...] = SPLITS
) -> Evaluation:
    """Return real outcomes of the policy's mean plan, and of drawn plans where asked for."""
    trials: list[Trial] = []
    for split in splits:
        keys = [
            (task, state)
            for task in range(len(domain.task_names))
            for state in domain.init_states(task, split)[: config.init_states]
        ]
        starts = domain.starts(*torch.tensor(keys).unbind(1))
        batches = [(-1, domain.policy.mean_plans(starts))]
        if config.draws:
            generator = torch_generator(seed, "evaluation", split)
            drawn = domain.policy.propose(starts, config.draws, generator=generator)
            batches.append((0, drawn))
        for first, proposals in batches:
            outcomes = domain.evaluator.execute(
                proposals, torch.ones(proposals.logp.shape, dtype=torch.bool)
            )
            trials += _trials(domain, split, first, proposals, outcomes)
    domain.start_cost()  # observing starts for an evaluation is no cost of training
    return Evaluation(trials=tuple(trials))


def change(before: Evaluation, after: Evaluation, split: str) -> tuple[int, float]:
    """Return paired starts and the p-value that the mean plan's success did not change."""
    outcomes = [
        {
            (trial.task, trial.init_state): trial.success
            for trial in evaluation.trials
            if trial.split == split and trial.draw < 0 and trial.success is not None
        }
        for evaluation in (before, after)
    ]
    keys = sorted(outcomes[0].keys() & outcomes[1].keys())
    paired = [np.array([known[key] for key in keys], dtype=bool) for known in outcomes]
    return len(keys), paired_p_value(*paired)


def _trials(
    domain: Domain, split: str, first: int, proposals: Proposals, outcomes: Outcomes
) -> list[Trial]:
    return [
        Trial(
            task=domain.task_names[int(proposals.starts.tasks[group])],
            split=split,
            init_state=int(proposals.starts.init_states[group]),
            draw=first + member if first >= 0 else -1,
            success=bool(outcomes.scores[group, member] > 0.5)
            if outcomes.executed[group, member]
            else None,
        )
        for group in range(proposals.logp.shape[0])
        for member in range(proposals.logp.shape[1])
    ]
