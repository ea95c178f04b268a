"""Estimator: predicted and measured scores in, advantages out, with everything it has learned.

A thin shell over the pure functions of this package. The order of calls in a step is its contract:
``draw`` before anything is executed, ``advantage`` from past knowledge alone, ``observe`` last.
Shapes of arguments are checked here, at the boundary, and named in the error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wmrl_embodied.estimators import (
    anchors,
    bias_watch,
    coefficients,
    linear,
    paper,
    residual_noise,
    state,
    state_records,
)
from wmrl_embodied.estimators.anchors import Draw
from wmrl_embodied.estimators.checks import (
    check_measured,
    check_predicted,
    check_sensitivity,
    check_sketch,
)
from wmrl_embodied.estimators.config import PRESETS, EstimatorConfig, preset
from wmrl_embodied.estimators.diagnostics import Diagnostics, diagnose
from wmrl_envs.errors import InvalidInputError

__all__ = ["PRESETS", "Diagnostics", "Draw", "Estimator", "EstimatorConfig", "preset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A step as :meth:`Estimator.advantage` saw it, kept for :meth:`Estimator.observe`."""

    key: tuple[Tensor, Tensor, Draw, Tensor]
    observed: Tensor
    step: linear.Step
    paper: paper.PaperState


class Estimator:
    """World-model GRPO's advantages, for one run or for several runs side by side."""

    def __init__(
        self,
        config: EstimatorConfig,
        *,
        num_tasks: int = 1,
        runs: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Start without knowledge.

        Args:
            config: What is executed, and how it is combined with predictions.
            num_tasks: Number of tasks; ``tasks`` arguments lie in [0, num_tasks).
            runs: Leading shape of every argument: independent runs advanced side by side.
            dtype: Of scores and of the state.

        Raises:
            InvalidInputError: If ``num_tasks`` is below 1.
        """
        if num_tasks < 1:
            raise InvalidInputError(f"num_tasks must be at least 1, got {num_tasks}")
        self.config = config
        self._num_tasks = num_tasks
        self._runs = runs
        self._state = state.start(config, num_tasks=num_tasks, runs=runs, dtype=dtype)
        self._seen: _Seen | None = None

    @property
    def fallback(self) -> Bool[Tensor, "*runs"]:
        """Whether predictions are out of use: the next step needs :meth:`groups_needed` only."""
        return self._state.progress.fallback

    def groups_needed(self, groups: int) -> int:
        """Return how many groups a single run's next step should generate.

        In the fallback it is a share of the ordinary number, all of which are executed. A trainer
        that generates the ordinary number all the same stays correct, and wastes generation.

        Args:
            groups: The ordinary number.
        """
        if not bool(self.fallback.all()):
            return groups
        return bias_watch.fallback_groups(self.config, groups)

    @property
    def learning_rate_factor(self) -> Float[Tensor, "*runs"]:
        """Factor for the next step's learning rate: below 1 while in the fallback."""
        return torch.where(self.fallback, self.config.fallback_rate, 1.0)

    def calibration_curve(
        self,
    ) -> tuple[Float[Tensor, "*runs edges"], Float[Tensor, "*runs cells"]]:
        """Return the map's values on equally spaced edges over [0, 1], and pairs per cell."""
        if self.config.rule == "paper":
            return paper.curve(self._state.paper)
        return self._state.calibration.table.clone(), self._state.calibration.weight.clone()

    def draw(
        self,
        predicted: Float[Tensor, "..."],
        *,
        tasks: Int[Tensor, "..."],
        sensitivity: Float[Tensor, "..."] | None,
        generator: torch.Generator | None,
    ) -> Draw:
        """Choose what to execute, before any real score is seen.

        Args:
            predicted: Raw world-model scores in [0, 1], ``(*runs, groups, group)``.
            tasks: Task of each group, ``(*runs, groups)``.
            sensitivity: Norm of each rollout's policy gradient or a proxy of it, used with
                ``unit='active'``; None draws rollouts uniformly.
            generator: Source of the draw.

        Raises:
            InvalidInputError: If scores or shapes break a rule.
        """
        check_predicted(predicted, tasks, runs=self._runs, num_tasks=self._num_tasks)
        config, shape = self.config, tuple(predicted.shape)
        audit = linear.auditing(self._state, config)
        fraction = config.audit_fraction if audit else config.anchor_fraction
        if config.unit == "group" or fraction in (0.0, 1.0):
            drawn = anchors.draw_groups(shape, fraction=fraction, generator=generator)
        elif config.unit == "rollout" or sensitivity is None:
            drawn = anchors.draw_rollouts(shape, fraction=fraction, generator=generator)
        else:
            check_sensitivity(sensitivity, predicted)
            gain = sensitivity * residual_noise.deviation(self._state.noise, predicted)
            probability = anchors.active_probability(
                gain, fraction=fraction, floor=config.active_floor
            )
            drawn = anchors.draw_active(probability, generator=generator)
        if not bool(self.fallback.any()):
            return drawn
        ordinary = max(int(self._state.progress.groups), shape[-2])
        share = min(1.0, bias_watch.fallback_groups(config, ordinary) / shape[-2])
        whole = anchors.draw_groups(shape, fraction=share, generator=generator)
        return state_records.select(self.fallback, whole, drawn)

    def advantage(
        self,
        predicted: Float[Tensor, "..."],
        measured: Float[Tensor, "..."],
        draw: Draw,
        *,
        tasks: Int[Tensor, "..."],
    ) -> tuple[Float[Tensor, "..."], Diagnostics]:
        """Return each rollout's advantage, from corrections learned in earlier steps only.

        ``rule='paper'`` alone pushes the step's pairs before it uses them, as published.

        Args:
            predicted: Raw world-model scores, as given to :meth:`draw`.
            measured: Real scores in [0, 1]; NaN where nothing was executed, or where an execution
                is missing for reasons of the infrastructure, which is no score of 0.
            draw: What :meth:`draw` returned.
            tasks: Task of each group.

        Raises:
            InvalidInputError: If scores or shapes break a rule.
        """
        seen = self._see(predicted, measured, draw, tasks)
        if self.config.rule == "paper":
            value = paper.advantage(seen.paper, predicted, measured, draw.execute, seen.observed)
        else:
            value = seen.step.coefficient / seen.step.root[..., None, None]
        shown = diagnose(self._state, seen.step, predicted, measured, draw, seen.observed)
        if self.config.rule == "paper":
            share = coefficients.real_share(value * seen.observed, value, seen.step.eta)
            shown = replace(shown, real_share=share)
        if not self.config.use_world_model:
            nothing = torch.full_like(shown.bias_after, torch.nan)
            shown = replace(shown, bias_after=nothing, noise_after=nothing)
        return value, shown

    def observe(
        self,
        predicted: Float[Tensor, "..."],
        measured: Float[Tensor, "..."],
        draw: Draw,
        *,
        tasks: Int[Tensor, "..."],
        sketch: Float[Tensor, "..."] | None,
    ) -> None:
        """Learn from a step after its advantages were used.

        Args:
            predicted: Raw world-model scores.
            measured: Real scores; NaN where there is none.
            draw: What was drawn.
            tasks: Task of each group.
            sketch: z_j, the gradient of each rollout's log-probability, or a random-sign sketch
                of it, ``(*runs, groups, group, dims)``; needed with ``eta='auto'``, otherwise it may be None.

        Raises:
            InvalidInputError: If scores or shapes break a rule.
        """
        seen = self._see(predicted, measured, draw, tasks)
        learned, config, step = self._state, self.config, seen.step
        if config.rule == "paper":
            learned = replace(learned, paper=seen.paper)
        else:
            if sketch is not None and config.use_world_model:
                check_sketch(sketch, predicted)
                learned = bias_watch.watch(learned, config, step, sketch)
            elif config.eta == "auto" or config.fallback:
                raise InvalidInputError(
                    "sketch must be given with eta='auto' or fallback=True, got None; pass the "
                    "rollouts' score vectors, or fix eta"
                )
            learned = linear.learn(learned, config, step, predicted, measured, tasks)
        self._state, self._seen = bias_watch.advance(learned, config, step), None

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything the estimator has learned; loading it resumes bit for bit."""
        return state.to_tensors(self._state)

    def load_state_dict(self, stored: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            InvalidInputError: If a tensor is missing or does not fit the configuration.
        """
        self._state, self._seen = state.from_tensors(self._state, stored), None

    def _see(self, predicted: Tensor, measured: Tensor, draw: Draw, tasks: Tensor) -> _Seen:
        # ``observe`` is asked about the step that ``advantage`` saw: no need to work it out twice.
        key = (predicted, measured, draw, tasks)
        if self._seen is not None and all(
            old is new for old, new in zip(self._seen.key, key, strict=True)
        ):
            return self._seen
        check_predicted(predicted, tasks, runs=self._runs, num_tasks=self._num_tasks)
        observed = check_measured(measured, predicted, draw)
        step = linear.see(self._state, self.config, predicted, measured, draw, observed, tasks)
        pushed = self._state.paper
        if self.config.rule == "paper":
            pushed = paper.push(pushed, predicted, measured, observed)
        self._seen = _Seen(key=key, observed=observed, step=step, paper=pushed)
        return self._seen
