"""Imagination: whole episodes rolled out in feature space, closed loop, under a plan.

Notation:
    s_t    latent state at chunk t: principal components of features and proprioception
    w      plan latent, held for the episode
    h_t    hazard: probability that the episode succeeds during chunk t, given that it still runs
    S      P(success) = 1 − Π_t (1 − h_t)

Simulator and mean policy are deterministic, so under a fixed plan the closed loop is a map
s_{t+1} = g(s_t, w, t): the policy needs no model of its own. g and h are learned together from the
traces of real episodes, over several chunks at a time, since errors compound when imagined states
are fed back. Whether it earns its place beside the plan-latent form is a question for held-out
within-group R².
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (torch's own convention)
from jaxtyping import Bool, Float, Int
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from wmrl_embodied.world_model.fidelity import FloatArray
from wmrl_embodied.world_model.prefix import Traces
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class ImaginationConfig:
    """Size and training of the imagination model."""

    components: int = 16
    """Length of s."""

    width: int = 96
    """Hidden width."""

    horizon: int = 4
    """Chunks imagined in a row while training."""

    steps: int = 600
    """Optimiser steps."""

    batch: int = 256
    """Segments a step."""

    learning_rate: float = 3e-3
    """Adam's step."""

    weight_decay: float = 1e-3
    """Decoupled weight decay."""

    hazard_weight: float = 0.3
    """Weight of the hazard's cross-entropy against the squared error of the state."""

    seed: int = 0
    """Seed of weights and segments."""

    def __post_init__(self) -> None:
        """Reject models that could not be trained."""
        if min(self.components, self.width, self.horizon, self.steps, self.batch) < 1:
            raise InvalidInputError(
                "components, width, horizon, steps and batch must be at least 1, got "
                f"{self.components}, {self.width}, {self.horizon}, {self.steps} and {self.batch}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ImaginedEpisodes:
    """A batch of imagined episodes."""

    states: Float[Tensor, "episodes chunks state"]
    """s_t, the real start first."""

    success: Float[Tensor, " episodes"]
    """S."""


class ClosedLoop(nn.Module):
    """g and h: the next latent state and the hazard of success, given state, plan and time."""

    def __init__(self, state: int, plan: int, width: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(state + plan + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.change = nn.Linear(width, state)
        self.hazard = nn.Linear(width, 1)
        nn.init.zeros_(self.change.weight)
        nn.init.constant_(self.hazard.bias, -3.0)  # success is rare in any one chunk

    def forward(
        self,
        state: Float[Tensor, "episodes state"],
        plan: Float[Tensor, "episodes plan"],
        time: Float[Tensor, " episodes"],
    ) -> tuple[Float[Tensor, "episodes state"], Float[Tensor, " episodes"]]:
        """Return s_{t+1} and the logit of h_t."""
        hidden = self.trunk(torch.cat([state, plan, time[:, None]], dim=1))
        return state + self.change(hidden), self.hazard(hidden)[:, 0]


class ImaginationModel:
    """Learned closed-loop dynamics of a policy in its own features."""

    def __init__(self, config: ImaginationConfig) -> None:
        self.config = config
        self._reduce = make_pipeline(StandardScaler(), PCA(config.components, whiten=True))
        self._network: ClosedLoop | None = None
        self._chunks = 0

    def fit(self, traces: Traces, plans: FloatArray) -> None:
        """Fit on completed episodes.

        Args:
            traces: Features of each chunk, shape (rollouts, chunks, features).
            plans: w of each rollout, shape (rollouts, dims).
        """
        rollouts, self._chunks, features = traces.features.shape
        real = np.arange(self._chunks) < traces.lengths[:, None]
        self._reduce.fit(traces.features[real])
        flat = self._reduce.transform(traces.features.reshape(-1, features))
        states = torch.from_numpy(flat).float().view(rollouts, self._chunks, -1)
        torch.manual_seed(self.config.seed)
        self._network = ClosedLoop(states.shape[-1], plans.shape[1], self.config.width)
        segments = _Segments(
            states=states,
            plans=torch.from_numpy(plans).float(),
            lengths=torch.from_numpy(traces.lengths),
            success=torch.from_numpy(traces.success).float(),
        )
        self._train(self._network, segments)

    @torch.no_grad()
    def imagine(self, first: FloatArray, plans: FloatArray) -> ImaginedEpisodes:
        """Roll episodes out from real starts.

        Args:
            first: Features at the start, shape (episodes, features).
            plans: w, shape (episodes, dims).

        Raises:
            InvalidInputError: If the model has not been fitted.
        """
        if self._network is None:
            raise InvalidInputError("model must be fitted before it imagines; call fit() first")
        state = torch.from_numpy(self._reduce.transform(first)).float()
        plan, survival = torch.from_numpy(plans).float(), torch.ones(len(first))
        states = [state]
        for chunk in range(self._chunks):
            time = torch.full((len(first),), chunk / self._chunks)
            state, logit = self._network(state, plan, time)
            survival = survival * torch.sigmoid(-logit)
            states.append(state)
        return ImaginedEpisodes(states=torch.stack(states[:-1], dim=1), success=1.0 - survival)

    def _train(self, network: ClosedLoop, segments: "_Segments") -> None:
        config = self.config
        optimizer = torch.optim.AdamW(
            network.parameters(), config.learning_rate, weight_decay=config.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
        generator = torch.Generator().manual_seed(config.seed)
        for _ in range(config.steps):
            rows = torch.randint(len(segments.plans), (config.batch,), generator=generator)
            begin = (torch.rand(config.batch, generator=generator) * segments.lengths[rows]).long()
            loss = self._segment_loss(network, segments, rows, begin)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    def _segment_loss(
        self,
        network: ClosedLoop,
        segments: "_Segments",
        rows: Int[Tensor, " batch"],
        begin: Int[Tensor, " batch"],
    ) -> Float[Tensor, ""]:
        state, losses = segments.states[rows, begin], []
        for ahead in range(self.config.horizon):
            chunk = begin + ahead
            runs = chunk < segments.lengths[rows]
            state, logit = network(state, segments.plans[rows], chunk / self._chunks)
            ends = (chunk == segments.lengths[rows] - 1) & (segments.success[rows] > 0.5)
            entropy = F.binary_cross_entropy_with_logits(logit, ends.float(), reduction="none")
            losses.append(self.config.hazard_weight * _mean_where(entropy, runs))
            after = (chunk + 1).clamp_max(self._chunks - 1)
            known = chunk + 1 < segments.lengths[rows]
            error = (state - segments.states[rows, after]).square().mean(1)
            losses.append(_mean_where(error, known))
        return torch.stack(losses).sum() / self.config.horizon


@dataclass(frozen=True, kw_only=True, slots=True)
class _Segments:
    states: Float[Tensor, "rollouts chunks state"]
    plans: Float[Tensor, "rollouts plan"]
    lengths: Int[Tensor, " rollouts"]
    success: Float[Tensor, " rollouts"]


def _mean_where(
    values: Float[Tensor, " batch"], where: Bool[Tensor, " batch"]
) -> Float[Tensor, ""]:
    return (values * where).sum() / where.sum().clamp_min(1)
