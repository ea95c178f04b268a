"""Robot executor: proposals of plan latents, run as LIBERO episodes on a pool of simulators."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from wmrl_embodied.execution.contract import Cost, Outcomes
from wmrl_embodied.execution.episode import Episode, EpisodeJob, run_job
from wmrl_embodied.execution.local import Attempted, LocalPool, PoolConfig
from wmrl_embodied.policies.contract import Proposals

OnEpisode = Callable[[EpisodeJob, Episode | None], None]
RobotPool = LocalPool[EpisodeJob, Episode]


def robot_pool(config: PoolConfig) -> RobotPool:
    """Return a pool of simulator workers, which executors may share."""
    return LocalPool(run_job, config)


@dataclass(frozen=True, kw_only=True, slots=True)
class RobotSetting:
    """What all episodes of a run have in common."""

    policy: Path
    suite: str
    tasks: tuple[int, ...]
    horizon: int | None = None
    """Control steps an episode may take; None is the suite's own."""


class RobotExecutor:
    """Runs plans in ``WMRL-LIBERO``; score 1 is success within the horizon, 0 is not."""

    def __init__(
        self, setting: RobotSetting, pool: RobotPool, *, on_episode: OnEpisode | None = None
    ) -> None:
        self._setting = setting
        self._pool = pool
        self._on_episode = on_episode

    def execute(self, proposals: Proposals, asked: Bool[Tensor, "groups group"]) -> Outcomes:
        """Execute the proposals marked in ``asked``; a job that never answered is missing."""
        rows = torch.nonzero(asked).tolist()
        jobs = [self.job(proposals, group, member) for group, member in rows]
        attempted = self.run(jobs)
        scores = torch.full(asked.shape, torch.nan)
        for (group, member), record in zip(rows, attempted, strict=True):
            if record.answer is not None:
                scores[group, member] = float(record.answer.success)
        return Outcomes(scores=scores, executed=~scores.isnan(), cost=cost_of(attempted))

    def run(self, jobs: list[EpisodeJob]) -> list[Attempted[Episode]]:
        """Run jobs in the pool, in the order of their tasks so that simulators are reused."""
        order = sorted(range(len(jobs)), key=lambda index: (jobs[index].task, index))
        answers = self._pool.map([jobs[index] for index in order])
        records = dict(zip(order, answers, strict=True))
        if self._on_episode is not None:
            for index, job in enumerate(jobs):
                self._on_episode(job, records[index].answer)
        return [records[index] for index in range(len(jobs))]

    def job(
        self, proposals: Proposals, group: int, member: int, *, film: bool = False
    ) -> EpisodeJob:
        """Return the job of one proposal."""
        starts = proposals.starts
        return EpisodeJob(
            policy=self._setting.policy,
            suite=self._setting.suite,
            task=self._setting.tasks[int(starts.tasks[group])],
            init_state=int(starts.init_states[group]),
            plan=tuple(proposals.plans[group, member].tolist()),
            horizon=self._setting.horizon,
            film=film,
        )

    def start_job(self, task: int, init_state: int, plan_dims: int) -> EpisodeJob:
        """Return a job that observes a start and stops; ``task`` is an index of the run."""
        return EpisodeJob(
            policy=self._setting.policy,
            suite=self._setting.suite,
            task=self._setting.tasks[task],
            init_state=init_state,
            plan=(0.0,) * plan_dims,
            only_start=True,
        )

    def close(self) -> None:
        """Stop the simulators."""
        self._pool.close()


def cost_of(attempted: Iterable[Attempted[Episode]]) -> Cost:
    """Return what a list of attempts cost; a lost attempt's CPU time died with its worker."""
    records = list(attempted)
    answers = [record.answer for record in records if record.answer is not None]
    return Cost(
        executions=len(answers),
        steps=sum(answer.steps for answer in answers),
        cpu_seconds=sum(answer.cpu_seconds for answer in answers),
        missing=len(records) - len(answers),
        retries=sum(record.attempts - 1 for record in records),
    )
