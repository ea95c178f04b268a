"""Sampler: which starts a step's groups share."""

import torch

from wmrl_embodied.policies.contract import Starts
from wmrl_embodied.training.domain import Domain


def sample_starts(domain: Domain, groups: int, *, generator: torch.Generator) -> Starts:
    """Return ``groups`` training starts: tasks in a random round robin, initial states at random.

    A round robin gives every task the same number of groups (up to one), so that no task's
    gradient waits on chance; held-out initial states are never drawn.
    """
    count = len(domain.task_names)
    rounds = -(-groups // count)
    order = [torch.randperm(count, generator=generator) for _ in range(rounds)]
    tasks = torch.cat(order)[:groups]
    states = []
    for task in tasks.tolist():
        choices = domain.init_states(task, "train")
        states.append(choices[int(torch.randint(len(choices), (), generator=generator))])
    return domain.starts(tasks, torch.tensor(states))
