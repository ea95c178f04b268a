"""Training state: everything a run needs to go on exactly where it stopped.

Random streams are not here: they are derived from the seed and the step (``seeding``).
"""

from dataclasses import dataclass

import torch

from wmrl_embodied.estimators.estimator import Estimator
from wmrl_embodied.training.domain import Domain
from wmrl_embodied.training.ledger import Ledger


@dataclass(kw_only=True, slots=True)
class TrainState:
    """Policy and world model (inside the domain), optimiser, estimator, ledger and step."""

    domain: Domain
    optimizer: torch.optim.Optimizer
    estimator: Estimator
    ledger: Ledger
    step: int = 0
    """Updates made."""

    is_warm: bool = False
    """Whether the warm-up rollouts have been executed."""
