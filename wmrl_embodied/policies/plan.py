"""Plan policy: a Gaussian over plan latents, given the start of the episode.

Notation:
    w      plan latent, in units of the prior's standard deviation
    x      context of the start: features of the first observation and of the instruction
    m, σ   mean and standard deviation of w given x
    ε      (w − m) / σ
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wmrl_embodied.policies.contract import Proposals, Starts
from wmrl_envs.errors import InvalidInputError

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanPolicyConfig:
    """Shape and exploration of the plan policy."""

    dims: int = 16
    """Length of the plan latent."""

    tasks: int = 1
    """Number of tasks; each has its own mean and standard deviation."""

    context: int = 0
    """Length of the start's context; 0 makes the plan depend on the task alone."""

    start_std: float = 1.0
    """Standard deviation at the start, in units of the prior's."""

    min_std: float = 0.2
    """Smallest standard deviation, in units of the prior's: exploration never dies."""

    max_std: float = 1.5
    """Largest standard deviation, in units of the prior's."""

    def __post_init__(self) -> None:
        """Reject shapes and bounds that no plan could have."""
        if min(self.dims, self.tasks) < 1 or self.context < 0:
            raise InvalidInputError(
                "dims and tasks must be at least 1 and context at least 0, got "
                f"dims={self.dims}, tasks={self.tasks}, context={self.context}"
            )
        if not 0.0 < self.min_std <= self.start_std <= self.max_std:
            raise InvalidInputError(
                "0 < min_std <= start_std <= max_std must hold, got "
                f"min_std={self.min_std}, start_std={self.start_std}, max_std={self.max_std}"
            )


class PlanPolicy(nn.Module):
    """π_θ(w | x) = N(m_task + A x, diag σ_task²), at the start N(0, start_std² I)."""

    def __init__(self, config: PlanPolicyConfig) -> None:
        super().__init__()
        self.config = config
        self.mean = nn.Parameter(torch.zeros(config.tasks, config.dims))
        first = math.log(config.start_std)
        self.log_std = nn.Parameter(torch.full((config.tasks, config.dims), first))
        self.context_gain = nn.Parameter(torch.zeros(config.tasks, config.context, config.dims))

    def optimizer(self, learning_rate: float) -> torch.optim.Optimizer:
        """Return plain gradient ascent, which moves far only when rollouts agree.

        An update of Adam is as long for noise as for signal; with a few dozen rollouts a step the
        plan would wander. ``learning_rate`` is in prior standard deviations: at σ = start_std and
        advantages of unit size, m moves by learning_rate · σ · mean(A ε).
        """
        scale = learning_rate * self.config.start_std**2
        return torch.optim.SGD(
            [
                {"params": [self.mean, self.context_gain], "lr": scale},
                # The spread is learned more slowly: collapsed exploration does not come back.
                {"params": [self.log_std], "lr": learning_rate / 3.0},
            ]
        )

    def moments(
        self, starts: Starts
    ) -> tuple[Float[Tensor, "groups dims"], Float[Tensor, "groups dims"]]:
        """Return mean and log standard deviation of w for each start."""
        mean = self.mean[starts.tasks]
        if self.config.context:
            gain = self.context_gain[starts.tasks]
            mean = mean + torch.einsum("gc,gcd->gd", starts.context, gain)
        bounds = math.log(self.config.min_std), math.log(self.config.max_std)
        return mean, self.log_std[starts.tasks].clamp(*bounds)

    @torch.no_grad()
    def propose(self, starts: Starts, group_size: int, *, generator: torch.Generator) -> Proposals:
        """Draw ``group_size`` plans for each start, with their log-densities."""
        mean, log_std = self.moments(starts)
        noise = torch.randn(len(starts.tasks), group_size, self.config.dims, generator=generator)
        plans = mean[:, None] + log_std.exp()[:, None] * noise
        return Proposals(starts=starts, plans=plans, logp=_gaussian_logp(noise, log_std))

    @torch.no_grad()
    def mean_plans(self, starts: Starts) -> Proposals:
        """Return each start's mean plan, as a group of one."""
        mean, log_std = self.moments(starts)
        noise = torch.zeros_like(mean)[:, None]
        return Proposals(starts=starts, plans=mean[:, None], logp=_gaussian_logp(noise, log_std))

    def log_prob(self, proposals: Proposals) -> Float[Tensor, "groups group"]:
        """Return log π_θ(w | x) of each proposed plan, with gradient to θ."""
        mean, log_std = self.moments(proposals.starts)
        noise = (proposals.plans - mean[:, None]) / log_std.exp()[:, None]
        return _gaussian_logp(noise, log_std)

    @torch.no_grad()
    def score_vectors(self, proposals: Proposals) -> Float[Tensor, "groups group sketch"]:
        """Return ∇ log π with respect to each start's own m/σ and log σ.

        These are (ε, ε² − 1): exact and of 2·dims numbers, so that no random sketch is needed.
        """
        mean, log_std = self.moments(proposals.starts)
        noise = (proposals.plans - mean[:, None]) / log_std.exp()[:, None]
        return torch.cat([noise, noise.square() - 1.0], dim=-1)


def _gaussian_logp(
    noise: Float[Tensor, "groups group dims"], log_std: Float[Tensor, "groups dims"]
) -> Float[Tensor, "groups group"]:
    # log N(w; m, σ²) = Σ_d −½ (ε_d² + log 2π) − log σ_d
    return -0.5 * (noise.square() + _LOG_2PI).sum(-1) - log_std.sum(-1, keepdim=True)
