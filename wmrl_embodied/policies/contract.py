"""What the toolkit asks of a vision-language-action policy.

Notation:
    plan      w    latent drawn once an episode, in units of the policy's own prior
    features  z    the frozen vision encoder's summary of one observation
    memory         what the policy carries from chunk to chunk within one episode

A *plan policy* proposes w from the start of an episode and is what reinforcement learning trains;
an *action policy* turns observations and w into action chunks. A flow or diffusion policy joins by
taking w as its initial noise, held through the episode; an action policy with noise a step reports
the log-probability of that noise beside the chunk.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

Observation = dict[str, Any]
"""One observation of ``WMRL-LIBERO``: images, ``state`` and ``task`` text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanMemory:
    """What is carried between the chunks of one episode."""

    gripper: float = -1.0
    """Last commanded gripper action: −1 open, +1 closed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionChunk:
    """Actions for the next ``chunk`` control steps."""

    actions: NDArray[np.float32]
    """Shape (chunk, 7), each in [−1, 1]: ready for the environment."""

    sampled: Float[Tensor, "chunk action"]
    """The chunk as drawn, before clipping and plan offsets: what ``chunk_logp`` is the density of."""

    chunk_logp: float
    """Log-probability of the noise drawn at this chunk; 0 when the policy acts by its mean."""

    features: Float[Tensor, " features"]
    """z of the observation the chunk was computed from."""

    memory: PlanMemory
    """Memory after the chunk."""


@runtime_checkable
class ActionPolicy(Protocol):
    """Turns observations and a plan into action chunks."""

    @property
    def chunk(self) -> int:
        """Control steps an action chunk lasts."""
        ...

    @property
    def plan_dims(self) -> int:
        """Length of w."""
        ...

    def encode(self, observation: Observation) -> Float[Tensor, " features"]:
        """Return z of one observation."""
        ...

    def act(
        self,
        observation: Observation,
        plan: Float[Tensor, " dims"],
        memory: PlanMemory,
        *,
        generator: torch.Generator | None = None,
    ) -> ActionChunk:
        """Return the next chunk: the mean without ``generator``, a draw with it."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Starts:
    """Where groups of episodes begin: one row a group."""

    tasks: Int[Tensor, " groups"]
    """Index of the task within the run's task list."""

    init_states: Int[Tensor, " groups"]
    """Index of the official initial state within the task."""

    context: Float[Tensor, "groups context"]
    """What is known before the episode: features of the first observation and the instruction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposals:
    """Episodes proposed but not run: each is a start and a plan."""

    starts: Starts
    plans: Float[Tensor, "groups group dims"]
    """w of each rollout."""

    logp: Float[Tensor, "groups group"]
    """Log-density of each plan under the policy that drew it; no gradient."""


@runtime_checkable
class ProposalPolicy(Protocol):
    """Draws what reinforcement learning reinforces: one artifact a rollout.

    For a robot the artifact is a plan latent, for a language agent it is the text it wrote. A
    ``torch.nn.Module`` gives the last three methods.
    """

    def propose(self, starts: Starts, group_size: int, *, generator: torch.Generator) -> Proposals:
        """Draw ``group_size`` rollouts for each start."""
        ...

    def mean_plans(self, starts: Starts) -> Proposals:
        """Return the most typical artifact of each start, as groups of one."""
        ...

    def log_prob(self, proposals: Proposals) -> Float[Tensor, "groups group"]:
        """Return the log-density of each rollout under the current parameters, with gradient."""
        ...

    def score_vectors(self, proposals: Proposals) -> Float[Tensor, "groups group sketch"]:
        """Return ∇ log π of each rollout, or a sketch that keeps inner products."""
        ...

    def optimizer(self, learning_rate: float) -> torch.optim.Optimizer:
        """Return the optimiser that suits the parameters."""
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Return the trainable parameters."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return the parameters by name."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object:
        """Restore what :meth:`state_dict` returned."""
        ...
