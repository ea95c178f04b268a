"""Films: one held-out episode a task, under the plan before training and the plan after."""

from dataclasses import replace
from pathlib import Path

import torch

from wmrl_embodied.execution.episode import EpisodeJob
from wmrl_embodied.reporting.video import write_video
from wmrl_embodied.training.libero import LiberoDomain

FRAMES_PER_SECOND = 5.0
"""One frame a chunk of 8 steps at 20 Hz is 2.5 a second; played at twice the speed of life."""


def film_before_and_after(domain: LiberoDomain, folder: Path) -> list[Path]:
    """Film each task's first held-out start twice and return the videos written.

    Before is the plan of zeros, which is the mean of the untrained plan policy. A missing episode
    leaves no video.
    """
    tasks = torch.arange(len(domain.task_names))
    states = torch.tensor([domain.init_states(int(task), "held_out")[0] for task in tasks])
    trained = domain.policy.mean_plans(domain.starts(tasks, states))
    jobs: list[tuple[str, EpisodeJob]] = []
    for task, name in enumerate(domain.task_names):
        job = domain.evaluator.job(trained, task, 0, film=True)
        untrained = replace(job, plan=(0.0,) * len(job.plan))
        jobs += [(f"{name}__before", untrained), (f"{name}__after", job)]
    written = []
    records = domain.evaluator.run([job for _, job in jobs])
    for (name, _), record in zip(jobs, records, strict=True):
        if record.answer is None or record.answer.frames is None:
            continue
        verdict = "success" if record.answer.success else "failure"
        path = folder / f"{name}_({verdict}).mp4"
        write_video(record.answer.frames, path, frames_per_second=FRAMES_PER_SECOND)
        written.append(path)
    return written
