"""Every knob of a run, as frozen dataclasses; ``wmrl train --help`` is generated from them."""

from dataclasses import dataclass, field
from pathlib import Path

from wmrl_embodied.execution.local import PoolConfig
from wmrl_embodied.world_model.plan_latent import PlanLatentConfig
from wmrl_envs.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True, slots=True)
class LiberoConfig:
    """The robot side of a run: which tasks, which action policy, how it explores."""

    suite: str = "libero_10"
    """Task suite; libero_10 is LIBERO-Long."""

    tasks: tuple[int, ...] = (5,)
    """Numbers of the tasks trained on, within the suite."""

    policy: Path = Path("small_vla_quick.safetensors")
    """Checkpoint of the action policy: a file, or the name of one that ships with the package."""

    horizon: int | None = None
    """Control steps a training episode may take; None is the suite's own. Failures run to the end,
    so a shorter horizon makes them cheaper; evaluation keeps the suite's."""

    exploration: float = 1.0
    """Standard deviation of plans at the start, in units of the policy's prior."""

    pool: PoolConfig = field(default_factory=PoolConfig)
    """Simulator workers."""

    def __post_init__(self) -> None:
        """Reject task lists that no run could mean."""
        if not self.tasks or len(set(self.tasks)) < len(self.tasks):
            raise InvalidInputError(
                f"tasks must name at least one task, each once, got {self.tasks}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateConfig:
    """How advantages change the policy."""

    learning_rate: float = 0.5
    """Step on the plan policy, in prior standard deviations."""

    epochs: int = 1
    """Passes over a step's proposals."""

    epsilon: float = 0.2
    """Lower clip of the importance ratio, and the upper one unless ``epsilon_high`` is set."""

    epsilon_high: float | None = None
    """Upper clip of the importance ratio."""

    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm."""

    def __post_init__(self) -> None:
        """Reject updates that could not move or not be bounded."""
        if self.learning_rate <= 0.0 or self.epochs < 1 or not 0.0 < self.epsilon < 1.0:
            raise InvalidInputError(
                "learning_rate must be above 0, epochs at least 1 and epsilon in (0, 1), got "
                f"{self.learning_rate}, {self.epochs} and {self.epsilon}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationConfig:
    """How real success is measured before and after."""

    init_states: int | None = None
    """Initial states a task and split; None is all of them."""

    draws: int = 0
    """Plans drawn from the policy for each initial state, beside its mean plan."""

    every: int = 0
    """Steps between evaluations on held-out initial states; 0 evaluates before and after only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """One training run."""

    name: str = "libero-quick"
    """Name of the run's preset."""

    libero: LiberoConfig = field(default_factory=LiberoConfig)
    """Tasks and action policy."""

    estimator: str = "auto"
    """Estimator preset: auto, fast, balanced, unbiased, paper, real, anchors_only, …"""

    anchor_fraction: float | None = None
    """Share of the rollouts that is really executed; None is the preset's own."""

    groups: int = 4
    """Groups a step; each shares one start."""

    group_size: int = 8
    """Rollouts a group (``num_generations``)."""

    steps: int = 20
    """Updates."""

    warmup: int = 16
    """Real rollouts under the policy's start that fit the world model before the first step."""

    refit_every: int = 1
    """Steps between refits of the world model."""

    update: UpdateConfig = field(default_factory=UpdateConfig)
    """The policy's update."""

    world_model: PlanLatentConfig = field(default_factory=PlanLatentConfig)
    """The world model."""

    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Real success before and after."""

    seed: int = 0
    """Root seed; every stream is derived from it."""

    checkpoint_every: int = 5
    """Steps between checkpoints."""

    keep_checkpoints: int = 2
    """Newest checkpoints kept."""

    def __post_init__(self) -> None:
        """Reject runs that could not compare anything."""
        if min(self.groups, self.steps, self.refit_every, self.checkpoint_every) < 1:
            raise InvalidInputError(
                "groups, steps, refit_every and checkpoint_every must be at least 1, got "
                f"{self.groups}, {self.steps}, {self.refit_every} and {self.checkpoint_every}"
            )
        if self.group_size < 2:
            raise InvalidInputError(
                f"group_size must be at least 2 (a group compares its rollouts), got {self.group_size}"
            )
        if self.seed < 0 or self.warmup < 0:
            raise InvalidInputError(
                f"seed and warmup must be at least 0, got {self.seed} and {self.warmup}"
            )
