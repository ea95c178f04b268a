"""What the toolkit asks of a world model: a score, how sure it is, and learning from outcomes.

Three forms share this contract. A *plan-latent* model scores a proposal before anything is
simulated; a *prefix* model scores an episode from its first chunks; an *imagination* model rolls
the episode out in feature space. The rule for all: a score may use only what was fixed before the
outcome was.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from wmrl_embodied.policies.contract import Proposals


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Predicted outcomes of a batch of proposals."""

    score: Float[Tensor, "groups group"]
    """Expected score, in [0, 1]."""

    std: Float[Tensor, "groups group"]
    """Standard deviation of the *expected* score: what more data would remove."""


@runtime_checkable
class WorldModel(Protocol):
    """Predicts the outcomes of proposals and learns from those that were really executed."""

    def predict(self, proposals: Proposals) -> Prediction:
        """Return scores in [0, 1] with their standard deviations."""
        ...

    def observe(
        self,
        proposals: Proposals,
        scores: Float[Tensor, "groups group"],
        executed: Bool[Tensor, "groups group"],
    ) -> None:
        """Remember real scores; entries where ``executed`` is false are ignored."""
        ...

    def fit(self) -> None:
        """Refit on everything observed. Predict first, then fit: never the other way round."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return all state as tensors, so that a loaded model predicts exactly the same."""
        ...

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned."""
        ...
