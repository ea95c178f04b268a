"""Plan-latent world model: P(success | task, start, plan), scored before any simulation.

Notation:
    w      plan latent, in units of its prior
    x      context of the start, standardised and reduced to its leading principal components
    r, p   real and predicted score, in [0, 1]

Simulator and mean policy are deterministic, so an episode's outcome is a function of its start and
its plan: w is an artifact, known before anything is run. One small predictor a task learns it:
logistic regression on (w, w²) while rollouts are few, a Gaussian process with one length scale an
input once there are enough. The start's context joins when held-out within-group R² says so.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from wmrl_embodied.policies.contract import Proposals
from wmrl_embodied.world_model.contract import Prediction
from wmrl_embodied.world_model.fidelity import (
    Fidelity,
    FloatArray,
    fidelity,
    held_out_predictions,
)
from wmrl_envs.errors import InvalidInputError

Predictor = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Inputs (rollouts, features) → mean and standard deviation of the score, both (rollouts,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanLatentConfig:
    """How the plan-latent model learns."""

    process_from: int = 100
    """Rollouts of a task from which the Gaussian process replaces logistic regression."""

    process_limit: int = 600
    """Most recent rollouts of a task the Gaussian process is fitted on: its cost is cubic."""

    context_components: int = 4
    """Principal components of the start's context offered as inputs; 0 leaves the start out."""

    context_gain: float = 0.02
    """Held-out within-group R² the context must add before it becomes an input."""

    ensemble: int = 8
    """Bootstrap refits of the logistic regression that give its standard deviation."""

    inverse_penalty: float = 0.3
    """Inverse regularisation strength of the logistic regression."""

    def __post_init__(self) -> None:
        """Reject settings under which nothing could be fitted."""
        if self.process_from < 10 or self.process_limit < self.process_from:
            raise InvalidInputError(
                "10 <= process_from <= process_limit must hold, got "
                f"process_from={self.process_from}, process_limit={self.process_limit}"
            )
        if self.ensemble < 2 or self.inverse_penalty <= 0.0 or self.context_components < 0:
            raise InvalidInputError(
                "ensemble >= 2, inverse_penalty > 0 and context_components >= 0 must hold, got "
                f"{self.ensemble}, {self.inverse_penalty} and {self.context_components}"
            )


class PlanLatentModel:
    """One predictor a task over (start, plan); all of its state is the data it has seen."""

    def __init__(self, config: PlanLatentConfig, *, num_tasks: int) -> None:
        self.config = config
        self.num_tasks = num_tasks
        self._tasks = np.zeros(0, dtype=np.int64)
        self._groups = np.zeros(0, dtype=np.int64)
        self._inputs: FloatArray = np.zeros((0, 0))
        self._scores: FloatArray = np.zeros(0)
        self._plan_dims = 0
        self._fitted = 0
        self._uses_context = np.zeros(num_tasks, dtype=bool)
        self._chosen_at = np.zeros(num_tasks, dtype=np.int64)
        self._predictors: dict[int, Predictor] = {}

    def __len__(self) -> int:
        """Return the number of rollouts observed."""
        return len(self._scores)

    def predict(self, proposals: Proposals) -> Prediction:
        """Return scores and their standard deviations; 0.5 ± 0.5 for a task never observed."""
        groups, group = proposals.logp.shape
        inputs = _inputs(proposals)
        tasks = np.repeat(proposals.starts.tasks.numpy(), group)
        mean, std = np.full(len(inputs), 0.5), np.full(len(inputs), 0.5)
        for task, predictor in self._predictors.items():
            rows = tasks == task
            if rows.any():
                mean[rows], std[rows] = predictor(inputs[rows])
        shape = (groups, group)
        return Prediction(
            score=torch.from_numpy(mean.clip(0.0, 1.0)).float().view(shape),
            std=torch.from_numpy(std).float().view(shape),
        )

    def observe(
        self,
        proposals: Proposals,
        scores: Float[Tensor, "groups group"],
        executed: Bool[Tensor, "groups group"],
    ) -> None:
        """Remember the real scores of executed proposals."""
        rows = executed.flatten().numpy()
        group = proposals.logp.shape[1]
        inputs = _inputs(proposals)[rows]
        self._plan_dims = proposals.plans.shape[-1]
        self._inputs = inputs if len(self) == 0 else np.concatenate([self._inputs, inputs])
        self._scores = np.concatenate([self._scores, scores.flatten().double().numpy()[rows]])
        starts = proposals.starts
        self._tasks = np.concatenate([self._tasks, np.repeat(starts.tasks.numpy(), group)[rows]])
        states = np.repeat(starts.init_states.numpy(), group)[rows]
        self._groups = np.concatenate([self._groups, states])

    def fit(self) -> None:
        """Refit every task's predictor on all it has seen, choosing its inputs when data grew."""
        self._fitted = len(self)
        self._predictors = {}
        for task in range(self.num_tasks):
            rows = np.flatnonzero(self._tasks[: self._fitted] == task)
            if len(rows) < 2:
                continue
            if self.config.context_components and len(rows) >= 1.5 * self._chosen_at[task]:
                self._choose_inputs(task, rows)
            self._predictors[task] = self._fit_task(
                self._inputs[rows], self._scores[rows], with_context=bool(self._uses_context[task])
            )

    def held_out_fidelity(self, task: int, form: str = "plan") -> Fidelity:
        """Return fidelity by cross-validation over the task's initial states.

        Args:
            task: Index of the task.
            form: ``"plan"`` for w alone, ``"plan+start"`` with the start's context, ``"start"``
                for the context alone (the trivial baseline), ``"plan_linear"`` for logistic
                regression on w alone.
        """
        rows = self._tasks == task
        inputs, scores, groups = self._inputs[rows], self._scores[rows], self._groups[rows]
        predicted = held_out_predictions(self._fit_predict(form), inputs, scores, groups)
        return fidelity(predicted, scores, groups)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the data seen and the inputs chosen: a refit of these predicts the same."""
        arrays = {
            "tasks": self._tasks,
            "groups": self._groups,
            "inputs": self._inputs,
            "scores": self._scores,
            "plan_dims": np.array(self._plan_dims),
            "fitted": np.array(self._fitted),
            "uses_context": self._uses_context,
            "chosen_at": self._chosen_at,
        }
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned and refit what was fitted then."""
        arrays = {name: tensor.numpy().copy() for name, tensor in state.items()}
        self._tasks, self._groups = arrays["tasks"], arrays["groups"]
        self._inputs, self._scores = arrays["inputs"], arrays["scores"]
        self._plan_dims, self._fitted = int(arrays["plan_dims"]), int(arrays["fitted"])
        self._uses_context, self._chosen_at = arrays["uses_context"], arrays["chosen_at"]
        self._predictors = {}
        for task in range(self.num_tasks):
            rows = np.flatnonzero(self._tasks[: self._fitted] == task)
            if len(rows) >= 2:
                self._predictors[task] = self._fit_task(
                    self._inputs[rows],
                    self._scores[rows],
                    with_context=bool(self._uses_context[task]),
                )

    def _choose_inputs(self, task: int, rows: NDArray[np.integer]) -> None:
        groups = self._groups[rows]
        if len(np.unique(groups)) < 5 or len(rows) < self.config.process_from:
            return
        inputs, scores = self._inputs[rows], self._scores[rows]
        r2 = {
            form: fidelity(
                held_out_predictions(self._fit_predict(form), inputs, scores, groups),
                scores,
                groups,
            ).within_group_r2
            for form in ("plan", "plan+start")
        }
        self._uses_context[task] = r2["plan+start"] > r2["plan"] + self.config.context_gain
        self._chosen_at[task] = len(rows)

    def _fit_predict(self, form: str) -> Callable[[FloatArray, FloatArray, FloatArray], FloatArray]:
        dims = self._plan_dims

        def run(inputs: FloatArray, scores: FloatArray, held_out: FloatArray) -> FloatArray:
            if form == "start":
                reduce = _reducer(inputs[:, dims:], self.config.context_components)
                predictor = _logistic(reduce(inputs[:, dims:]), scores, self.config)
                return predictor(reduce(held_out[:, dims:]))[0]
            if form == "plan_linear":
                linear = LogisticRegression(C=1.0).fit(inputs[:, :dims], scores > 0.5)
                return linear.predict_proba(held_out[:, :dims])[:, 1]
            return self._fit_task(inputs, scores, with_context=form == "plan+start")(held_out)[0]

        return run

    def _fit_task(self, inputs: FloatArray, scores: FloatArray, *, with_context: bool) -> Predictor:
        dims, recent = self._plan_dims, slice(-self.config.process_limit, None)
        inputs, scores = inputs[recent], scores[recent]
        if np.ptp(scores) == 0.0:
            return _constant(float(scores[0]), len(scores))
        if len(scores) < self.config.process_from:
            predictor = _logistic(inputs[:, :dims], scores, self.config)
            return lambda new: predictor(new[:, :dims])
        if not with_context:
            process = _gaussian_process(inputs[:, :dims], scores)
            return lambda new: process(new[:, :dims])
        reduce = _reducer(inputs[:, dims:], self.config.context_components)

        def joined(new: FloatArray) -> FloatArray:
            return np.concatenate([new[:, :dims], reduce(new[:, dims:])], axis=1)

        process = _gaussian_process(joined(inputs), scores)
        return lambda new: process(joined(new))


def _inputs(proposals: Proposals) -> FloatArray:
    # One row a rollout: the plan, then the start's context.
    groups, group, _ = proposals.plans.shape
    context = proposals.starts.context[:, None].expand(groups, group, -1)
    return torch.cat([proposals.plans, context], dim=-1).flatten(0, 1).double().numpy()


def _reducer(context: FloatArray, components: int) -> Callable[[FloatArray], FloatArray]:
    distinct = np.unique(context, axis=0)
    components = min(components, *distinct.shape)
    pca = PCA(components).fit(distinct)
    scale = np.sqrt(pca.explained_variance_) + 1e-9
    return lambda new: pca.transform(new) / scale


def _constant(value: float, count: int) -> Predictor:
    # Laplace's rule of succession: n equal outcomes do not make the next one certain.
    mean = (value * count + 1.0) / (count + 2.0)
    std = float(np.sqrt(mean * (1.0 - mean) / (count + 3.0)))
    return lambda new: (np.full(len(new), mean), np.full(len(new), std))


def _logistic(inputs: FloatArray, scores: FloatArray, config: PlanLatentConfig) -> Predictor:
    def expand(new: FloatArray) -> FloatArray:
        return np.concatenate([new, new**2 - 1.0], axis=1)

    design, success = expand(inputs), scores > 0.5
    rng = np.random.default_rng(len(scores))
    members = [LogisticRegression(C=config.inverse_penalty).fit(design, success)]
    while len(members) <= config.ensemble:
        rows = rng.integers(len(scores), size=len(scores))
        if len(np.unique(success[rows])) < 2:
            rows = np.arange(len(scores))
        fitted = LogisticRegression(C=config.inverse_penalty).fit(design[rows], success[rows])
        members.append(fitted)

    def predict(new: FloatArray) -> tuple[FloatArray, FloatArray]:
        predicted = np.stack([member.predict_proba(expand(new))[:, 1] for member in members])
        return predicted[0], predicted[1:].std(axis=0)

    return predict


def _gaussian_process(inputs: FloatArray, scores: FloatArray) -> Predictor:
    widths = np.full(inputs.shape[1], 3.0)
    kernel = ConstantKernel(0.2, (1e-3, 10.0)) * RBF(widths, (0.3, 30.0))
    kernel = kernel + WhiteKernel(0.1, (1e-3, 1.0))
    mean = scores.mean()
    process = GaussianProcessRegressor(kernel, random_state=0)
    with warnings.catch_warnings():
        # A length scale at its upper bound only says that the input does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(inputs, scores - mean)
    noise = float(np.exp(process.kernel_.theta[-1]))

    def predict(new: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred, total = process.predict(new, return_std=True)
        return centred + mean, np.sqrt(np.maximum(total**2 - noise, 0.0))

    return predict
