"""Theory: error floors against the size of a world model's bias and noise, with known slopes.

Plain gradient steps of constant size on J(θ) - κ‖θ‖²/2 settle near a point where the *predicted*
gradient vanishes; what is left of the *true* gradient G there is the floor. Averaging G over the
settled steps removes noise and leaves the bias floor ‖E G‖²; the variance of G around that
average is the noise floor.

Theory says: from the world model alone, the bias floor grows as B² and the noise floor linearly in
σ². With the correction on, the bias floor does not grow, and the noise floor saturates at the noise
of the real executions, because the slope λ lets go of a noisy world model.

Notation:
    B       size of a bias along a direction of the features
    σ       standard deviation of zero-mean noise of the score
    growth  floor minus the floor at B = 0 or σ = 0
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import plotly.graph_objects as go
import torch
from jaxtyping import Float
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table
from torch import Tensor

from wmrl_embodied.estimators.config import EstimatorConfig, preset
from wmrl_embodied.estimators.estimator import Estimator
from wmrl_embodied.estimators.policy_loss import PolicyLossConfig, policy_loss
from wmrl_embodied.seeding import torch_generator
from wmrl_embodied.simulate import problem as bandit
from wmrl_embodied.simulate.engine import sample
from wmrl_envs.errors import InvalidInputError

_SQUEEZE = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class TheoryConfig:
    """How the floors are measured."""

    seeds: int = 8
    """Problems."""

    first_seed: int = 0
    """Number of the first problem."""

    biases: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15, 0.2)
    """B, sizes of the bias; the first is 0."""

    noises: tuple[float, ...] = (0.0, 0.4, 0.8, 1.2, 1.6)
    """σ, standard deviations of the noise; the first is 0."""

    steps: int = 800
    """Gradient steps; the second half is averaged."""

    groups: int = 20
    """Groups a step."""

    learning_rate: float = 6.0
    """Step size."""

    decay: float = 0.01
    """κ, which keeps the best policy away from the corners."""

    def __post_init__(self) -> None:
        """Reject measurements without a zero to compare with."""
        if min(self.seeds, self.steps, self.groups) < 2:
            raise InvalidInputError(
                "seeds, steps and groups must be at least 2, got "
                f"{self.seeds}, {self.steps} and {self.groups}"
            )
        for name, levels in (("biases", self.biases), ("noises", self.noises)):
            if len(levels) < 3 or levels[0] != 0.0:
                raise InvalidInputError(
                    f"{name} must hold at least 3 levels, the first 0, got {levels}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Floors by level, averaged over problems."""

    config: TheoryConfig
    bias_model: tuple[float, ...]
    """‖E G‖² from the world model alone, for each B."""

    bias_corrected: tuple[float, ...]
    """The same with the correction on."""

    noise_model: tuple[float, ...]
    """Variance of G from the world model alone, for each σ."""

    noise_corrected: tuple[float, ...]
    """The same with the correction on."""

    def summary(self) -> dict[str, float]:
        """Return slopes and remaining growth.

        ``bias_slope`` is the slope of log growth on log B (theory: 2), ``noise_r2`` the R² of a
        straight line of the floor on σ² (theory: 1). ``bias_left`` is the growth with the
        correction over the growth without it, at the largest B; ``noise_left`` the same for the
        growth from the middle σ to the largest, where the corrected floor is level (theory: 0).
        """
        levels = torch.tensor(self.config.biases[1:], dtype=torch.float64)
        growth = torch.tensor(self.bias_model, dtype=torch.float64)
        slope, _ = _line(levels.log(), (growth[1:] - growth[0]).clamp_min(1e-300).log())
        squares = torch.tensor(self.config.noises, dtype=torch.float64).square()
        _, r2 = _line(squares, torch.tensor(self.noise_model, dtype=torch.float64))
        return {
            "bias_slope": slope,
            "noise_r2": r2,
            "bias_left": _left(self.bias_corrected, self.bias_model, since=0),
            "noise_left": _left(
                self.noise_corrected, self.noise_model, since=len(self.noise_model) // 2
            ),
        }


def theory(config: TheoryConfig) -> Floors:
    """Measure all floors.

    Args:
        config: How.
    """
    alone = replace(preset("world_model_only"), slope_prior=1.0 / _SQUEEZE)
    corrected = replace(preset("unbiased"), alarm=False, unit="rollout", slope_max=10.0)
    zeros_b, zeros_n = (0.0,) * len(config.biases), (0.0,) * len(config.noises)
    means_alone, _ = _settle(config, alone, biases=config.biases, noises=zeros_b)
    means_corrected, _ = _settle(config, corrected, biases=config.biases, noises=zeros_b)
    _, spread_alone = _settle(config, alone, biases=zeros_n, noises=config.noises)
    _, spread_corrected = _settle(config, corrected, biases=zeros_n, noises=config.noises)
    return Floors(
        config=config,
        bias_model=means_alone,
        bias_corrected=means_corrected,
        noise_model=spread_alone,
        noise_corrected=spread_corrected,
    )


def write(floors: Floors, folder: Path) -> None:
    """Write ``theory.json`` and the figure ``theory.html`` into ``folder``, making it if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**asdict(floors), "summary": floors.summary()}, indent=1)
    (folder / "theory.json").write_text(text + "\n", encoding="utf-8")
    plot = make_subplots(rows=1, cols=2, subplot_titles=("bias floor", "noise floor"))
    panels = (
        (floors.config.biases, floors.bias_model, floors.bias_corrected, "B²"),
        (floors.config.noises, floors.noise_model, floors.noise_corrected, "σ²"),
    )
    for column, (levels, model, fixed, label) in enumerate(panels, start=1):
        squares = [level**2 for level in levels]
        for values, name in ((model, "world model only"), (fixed, "corrected")):
            trace = go.Scatter(x=squares, y=list(values), name=name, showlegend=column == 1)
            plot.add_trace(trace, row=1, col=column)
        plot.update_xaxes(title_text=label, row=1, col=column)
    plot.update_layout(template="plotly_white")
    plot.write_html(folder / "theory.html", include_plotlyjs=True)


def show(floors: Floors, console: Console) -> None:
    """Print floors and summary.

    Args:
        floors: What was measured.
        console: Where to print.
    """
    table = Table(title="floors of the true gradient")
    for title in ("level", "world model only", "corrected"):
        table.add_column(title, justify="right")
    for letter, levels, model, fixed in (
        ("B", floors.config.biases, floors.bias_model, floors.bias_corrected),
        ("σ", floors.config.noises, floors.noise_model, floors.noise_corrected),
    ):
        for level, value, other in zip(levels, model, fixed, strict=True):
            table.add_row(f"{letter} = {level}", f"{value:.3e}", f"{other:.3e}")
    console.print(table)
    for name, value in floors.summary().items():
        console.print(f"{name} {value:.3f}")


def _settle(
    config: TheoryConfig,
    estimator_config: EstimatorConfig,
    *,
    biases: tuple[float, ...],
    noises: tuple[float, ...],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    seeds = list(range(config.first_seed, config.first_seed + config.seeds))
    problem = bandit.make(seeds)
    shift = _shift(problem, seeds)
    theta = torch.zeros(len(seeds), len(biases), bandit.DIMS, requires_grad=True)
    estimator = Estimator(estimator_config, num_tasks=bandit.TASKS, runs=tuple(theta.shape[:-1]))
    generator = torch_generator(config.first_seed, "theory")
    bias = torch.tensor(biases)[:, None, None]
    noise = torch.tensor(noises)[:, None, None]
    total, square = torch.zeros_like(theta.detach()), torch.zeros(theta.shape[:-1])
    kept = 0
    for step in range(config.steps):
        tasks = torch.randint(0, bandit.TASKS, (len(seeds), config.groups), generator=generator)
        features = bandit.task_features(problem, tasks)
        logp = bandit.log_policy(theta, features)
        actions = sample(logp.detach(), generator)
        chosen = logp.gather(-1, actions)
        real = _rows(problem.reward, tasks, actions)
        error = bias * _rows(shift, tasks, actions) + noise * torch.randn(
            real.shape, generator=generator
        )
        predicted = (0.5 + _SQUEEZE * (real + error - 0.5)).clamp(0.0, 1.0)
        all_tasks = tasks.unsqueeze(1).expand(-1, len(biases), -1)
        draw = estimator.draw(predicted, tasks=all_tasks, sensitivity=None, generator=generator)
        measured = torch.where(draw.execute, real, torch.nan)
        advantage, seen = estimator.advantage(predicted, measured, draw, tasks=all_tasks)
        coefficient = advantage * seen.scale[..., None, None]
        loss, _ = policy_loss(
            chosen, chosen.detach(), coefficient, config=PolicyLossConfig(beta=0.0)
        )
        (gradient,) = torch.autograd.grad(loss * seen.scale.numel(), theta)
        estimator.observe(predicted, measured, draw, tasks=all_tasks, sketch=None)
        with torch.no_grad():
            if step >= config.steps // 2:
                true = _true_gradient(problem, theta) - config.decay * theta
                total, square, kept = total + true, square + true.square().sum(-1), kept + 1
            theta -= config.learning_rate * (gradient + config.decay * theta)
    mean = (total / kept).square().sum(-1)
    spread = square / kept - mean
    return tuple(mean.mean(0).tolist()), tuple(spread.mean(0).tolist())


def _shift(problem: bandit.Problem, seeds: list[int]) -> Float[Tensor, "seeds tasks actions"]:
    directions = torch.stack(
        [torch.randn(bandit.DIMS, generator=torch_generator(seed, "bias")) for seed in seeds]
    )
    along = (problem.features @ directions[:, None, :, None]).squeeze(-1)
    return (along - along.mean(-1, keepdim=True)) / along.std(-1, keepdim=True)


def _rows(table: Tensor, tasks: Tensor, actions: Tensor) -> Tensor:
    rows = table[torch.arange(tasks.shape[0])[:, None], tasks].unsqueeze(1)
    return rows.expand(-1, actions.shape[1], -1, -1).gather(-1, actions)


def _true_gradient(problem: bandit.Problem, theta: Tensor) -> Tensor:
    policy = bandit.log_policy(theta, problem.features).exp()
    reward = problem.reward.unsqueeze(1)
    excess = policy * (reward - (policy * reward).sum(-1, keepdim=True))
    seeds, _, actions, dims = problem.features.shape
    flat = problem.features.view(seeds, bandit.TASKS * actions, dims)
    return excess.flatten(-2) @ flat / bandit.TASKS


def _line(x: Tensor, y: Tensor) -> tuple[float, float]:
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx @ dy) / (dx @ dx)
    return float(slope), float((dx @ dy).square() / ((dx @ dx) * (dy @ dy)))


def _left(corrected: tuple[float, ...], model: tuple[float, ...], *, since: int) -> float:
    return (corrected[-1] - corrected[since]) / (model[-1] - model[since])
