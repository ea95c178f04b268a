"""Loop: a run from its configuration to its result, resumable at every checkpoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from wmrl_embodied.estimators.estimator import Estimator, preset
from wmrl_embodied.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.domain import Domain
from wmrl_embodied.training.evaluate import Evaluation, evaluate
from wmrl_embodied.training.ledger import Ledger
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_embodied.training.state import TrainState
from wmrl_embodied.training.step import improve, warm_up


@runtime_checkable
class Sink(Protocol):
    """Takes one flat dict of metrics a step."""

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Record the metrics of ``step``."""
        ...

    def close(self) -> None:
        """Flush and release files."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """What a finished run amounts to."""

    before: Evaluation
    after: Evaluation
    ledger: Ledger


def train(
    config: TrainConfig,
    domain: Domain,
    folder: RunFolder,
    *,
    sinks: Callable[[int], Sequence[Sink]],
) -> RunResult:
    """Run ``config`` to its end, going on from the newest checkpoint in ``folder``.

    Args:
        config: The run.
        domain: Policy, world model and executor; mutated.
        folder: Where configuration, metrics, checkpoints and evaluations are kept.
        sinks: Makes the metric sinks, given the step the run goes on from.
    """
    state = start(config, domain, folder.checkpoints)
    before = folder.evaluation("before", lambda: evaluate_run(config, domain))
    outputs = sinks(state.step)
    try:
        if not state.is_warm and state.estimator.config.use_world_model:
            warm_up(state, config)
        while state.step < config.steps:
            record = improve(state, config)
            metrics = {**record.metrics, **_progress(state, config)}
            for sink in outputs:
                sink.write(state.step, metrics)
            if state.step % config.checkpoint_every == 0 or state.step == config.steps:
                save_checkpoint(state, folder.checkpoints, keep=config.keep_checkpoints)
    finally:
        for sink in outputs:
            sink.close()
    after = folder.evaluation("after", lambda: evaluate_run(config, domain))
    return RunResult(before=before, after=after, ledger=state.ledger)


def start(config: TrainConfig, domain: Domain, checkpoint_folder: Path) -> TrainState:
    """Return a fresh state, or the newest checkpoint's."""
    estimator_config = preset(config.estimator)
    if config.anchor_fraction is not None:
        estimator_config = replace(estimator_config, anchor_fraction=config.anchor_fraction)
    state = TrainState(
        domain=domain,
        optimizer=domain.policy.optimizer(config.update.learning_rate),
        estimator=Estimator(estimator_config, num_tasks=len(domain.task_names)),
        ledger=Ledger(),
    )
    saved = checkpoints(checkpoint_folder)
    if saved:
        load_checkpoint(state, saved[-1])
    return state


def _progress(state: TrainState, config: TrainConfig) -> dict[str, float]:
    # The learning curve: real success of the mean plan where it was never trained.
    every = config.evaluation.every
    if every == 0 or state.step % every:
        return {}
    shown = evaluate(state.domain, config.evaluation, seed=config.seed, splits=("held_out",))
    rate = shown.rate("held_out")
    return {"evaluation/held_out": rate.value if rate else float("nan")}


def evaluate_run(config: TrainConfig, domain: Domain) -> Evaluation:
    """Return real success of the domain's policy on both splits."""
    return evaluate(domain, config.evaluation, seed=config.seed)
