"""Plan-latent world model: P(success | task, start, plan), scored before any simulation.

Notation:
    w      plan latent, in units of its prior
    x      context of the start, reduced to its leading principal components
    r, p   real and predicted score, in [0, 1]

Simulator and mean policy are deterministic, so an episode's outcome is a function of its start and
its plan: w is an artifact, known before anything is run. One small predictor a task learns it, in
the form that orders held-out rollouts best: logistic regression on (w, w²), a Gaussian process on
w, or one on (w, x). Which form wins depends on the task and on how much was seen, so it is chosen
again each time the data has grown by half.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from wmrl_embodied.policies.contract import Proposals, Starts
from wmrl_embodied.world_model.contract import Prediction
from wmrl_embodied.world_model.fidelity import (
    Fidelity,
    FloatArray,
    fidelity,
    held_out_predictions,
)
from wmrl_embodied.world_model.predictors import (
    Predictor,
    constant,
    gaussian_process,
    logistic,
    reducer,
    tune_process,
)
from wmrl_envs.errors import InvalidInputError

Form = Literal["logistic", "process", "process+start", "start"]
FORMS: tuple[Form, ...] = ("logistic", "process", "process+start")
"""Forms the model chooses from; ``"start"``, blind to the plan, is the trivial baseline."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanLatentConfig:
    """How the plan-latent model learns."""

    choose_from: int = 40
    """Rollouts of a task from which its form is chosen; below, logistic regression."""

    growth: float = 1.5
    """Factor by which the data must grow before the form is chosen again."""

    limit: int = 800
    """Most recent rollouts of a task that are fitted: a Gaussian process is cubic in them."""

    context_components: int = 4
    """Principal components of the start's context offered as inputs; 0 leaves the start out."""

    ensemble: int = 8
    """Bootstrap refits of the logistic regression that give its standard deviation."""

    inverse_penalty: float = 0.3
    """Inverse regularisation strength of the logistic regression."""

    def __post_init__(self) -> None:
        """Reject settings under which nothing could be fitted."""
        if not 10 <= self.choose_from <= self.limit or self.growth <= 1.0:
            raise InvalidInputError(
                "10 <= choose_from <= limit and growth > 1 must hold, got "
                f"choose_from={self.choose_from}, limit={self.limit}, growth={self.growth}"
            )
        if self.ensemble < 2 or self.inverse_penalty <= 0.0 or self.context_components < 0:
            raise InvalidInputError(
                "ensemble >= 2, inverse_penalty > 0 and context_components >= 0 must hold, got "
                f"{self.ensemble}, {self.inverse_penalty} and {self.context_components}"
            )


class PlanLatentModel:
    """One predictor a task over (start, plan); its state is the data seen and the forms chosen."""

    def __init__(self, config: PlanLatentConfig, *, num_tasks: int) -> None:
        self.config = config
        self.num_tasks = num_tasks
        self._tasks = np.zeros(0, dtype=np.int64)
        self._init_states = np.zeros(0, dtype=np.int64)
        self._inputs: FloatArray = np.zeros((0, 0))
        self._scores: FloatArray = np.zeros(0)
        self._plan_dims = 0
        self._fitted = 0
        self._forms: list[Form] = ["logistic"] * num_tasks
        self._chosen_at = np.zeros(num_tasks, dtype=np.int64)
        self._thetas: list[FloatArray] = [np.zeros(0)] * num_tasks
        self._predictors: dict[int, Predictor] = {}

    def __len__(self) -> int:
        """Return the number of rollouts observed."""
        return len(self._scores)

    @property
    def plan_dims(self) -> int:
        """Length of w, 0 before anything was observed."""
        return self._plan_dims

    @property
    def forms(self) -> tuple[Form, ...]:
        """The form in use for each task."""
        return tuple(self._forms)

    def observed_starts(self) -> Starts:
        """Return every start that was observed, once each."""
        keys = np.stack([self._tasks, self._init_states], axis=1)
        _, rows = np.unique(keys, axis=0, return_index=True)
        context = self._inputs[rows, self._plan_dims :]
        return Starts(
            tasks=torch.from_numpy(self._tasks[rows]),
            init_states=torch.from_numpy(self._init_states[rows]),
            context=torch.from_numpy(context).float(),
        )

    def predict(self, proposals: Proposals) -> Prediction:
        """Return scores and their standard deviations; 0.5 ± 0.5 for a task never observed."""
        inputs = _inputs(proposals)
        tasks = np.repeat(proposals.starts.tasks.numpy(), proposals.logp.shape[1])
        mean, std = np.full(len(inputs), 0.5), np.full(len(inputs), 0.5)
        for task, predictor in self._predictors.items():
            rows = tasks == task
            if rows.any():
                mean[rows], std[rows] = predictor(inputs[rows])
        return Prediction(
            score=torch.from_numpy(mean.clip(0.0, 1.0)).float().view(proposals.logp.shape),
            std=torch.from_numpy(std).float().view(proposals.logp.shape),
        )

    def observe(
        self,
        proposals: Proposals,
        scores: Float[Tensor, "groups group"],
        executed: Bool[Tensor, "groups group"],
    ) -> None:
        """Remember the real scores of executed proposals."""
        rows, starts = executed.flatten().numpy(), proposals.starts
        group, inputs = proposals.logp.shape[1], _inputs(proposals)
        if len(self) == 0:
            self._plan_dims = proposals.plans.shape[-1]
            self._inputs = inputs[:0]
        self._inputs = np.concatenate([self._inputs, inputs[rows]])
        self._scores = np.concatenate([self._scores, scores.flatten().double().numpy()[rows]])
        self._tasks = np.concatenate([self._tasks, starts.tasks.numpy().repeat(group)[rows]])
        states = starts.init_states.numpy().repeat(group)[rows]
        self._init_states = np.concatenate([self._init_states, states])

    def fit(self) -> None:
        """Refit every task's predictor on all it has seen, choosing its form when data grew."""
        self._fitted = len(self)
        for task in range(self.num_tasks):
            rows = self._rows(task)
            needed = max(self.config.choose_from, self.config.growth * self._chosen_at[task])
            if len(rows) >= needed:
                self._choose_form(task, rows)
        self._refit()

    def held_out_fidelity(self, task: int, form: Form) -> Fidelity:
        """Return a form's fidelity by cross-validation over the task's initial states.

        Hyperparameters are tuned inside each fold: nothing of a held-out start is ever seen.

        Raises:
            InvalidInputError: If fewer than two initial states of the task were observed.
        """
        return self._held_out(form, np.flatnonzero(self._tasks == task))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the data seen and the forms chosen: a refit of these predicts the same."""
        arrays: dict[str, NDArray] = {
            "tasks": self._tasks,
            "init_states": self._init_states,
            "inputs": self._inputs,
            "scores": self._scores,
            "plan_dims": np.array(self._plan_dims),
            "fitted": np.array(self._fitted),
            "forms": np.array([FORMS.index(form) for form in self._forms]),
            "chosen_at": self._chosen_at,
            **{f"theta.{task}": theta for task, theta in enumerate(self._thetas)},
        }
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` returned and refit what was fitted then."""
        arrays = {name: tensor.numpy().copy() for name, tensor in state.items()}
        self._tasks, self._init_states = arrays["tasks"], arrays["init_states"]
        self._inputs, self._scores = arrays["inputs"], arrays["scores"]
        self._plan_dims, self._fitted = int(arrays["plan_dims"]), int(arrays["fitted"])
        self._forms = [FORMS[number] for number in arrays["forms"]]
        self._chosen_at = arrays["chosen_at"]
        self._thetas = [arrays[f"theta.{task}"] for task in range(self.num_tasks)]
        self._refit()

    def _rows(self, task: int) -> NDArray[np.integer]:
        return np.flatnonzero(self._tasks[: self._fitted] == task)[-self.config.limit :]

    def _refit(self) -> None:
        self._predictors = {}
        for task in range(self.num_tasks):
            rows = self._rows(task)
            if len(rows):
                self._predictors[task] = self._fit_form(
                    self._forms[task], self._inputs[rows], self._scores[rows], self._thetas[task]
                )

    def _choose_form(self, task: int, rows: NDArray[np.integer]) -> None:
        if len(np.unique(self._init_states[rows])) < 2 or np.ptp(self._scores[rows]) == 0.0:
            return
        offered = FORMS if self.config.context_components else FORMS[:2]
        r2 = {form: self._held_out(form, rows).within_group_r2 for form in offered}
        best = max(offered, key=r2.__getitem__)
        self._forms[task], self._chosen_at[task] = best, len(rows)
        self._thetas[task] = self._tune(best, self._inputs[rows], self._scores[rows])

    def _held_out(self, form: Form, rows: NDArray[np.integer]) -> Fidelity:
        inputs, scores, groups = self._inputs[rows], self._scores[rows], self._init_states[rows]

        def fit_predict(train: FloatArray, known: FloatArray, new: FloatArray) -> FloatArray:
            return self._fit_form(form, train, known, self._tune(form, train, known))(new)[0]

        return fidelity(held_out_predictions(fit_predict, inputs, scores, groups), scores, groups)

    def _design(self, form: Form, inputs: FloatArray, fitted_on: FloatArray) -> FloatArray:
        # The columns a form looks at; the reduction of the context is that of the training starts.
        plan, context = inputs[:, : self._plan_dims], inputs[:, self._plan_dims :]
        if form in ("logistic", "process"):
            return plan
        reduce = reducer(fitted_on[:, self._plan_dims :], self.config.context_components)
        return reduce(context) if form == "start" else np.hstack([plan, reduce(context)])

    def _tune(self, form: Form, inputs: FloatArray, scores: FloatArray) -> FloatArray:
        if form not in ("process", "process+start") or np.ptp(scores) == 0.0:
            return np.zeros(0)
        return tune_process(self._design(form, inputs, inputs), scores)

    def _fit_form(
        self, form: Form, inputs: FloatArray, scores: FloatArray, theta: FloatArray
    ) -> Predictor:
        design = self._design(form, inputs, inputs)
        if np.ptp(scores) == 0.0 or len(np.unique(scores > 0.5)) < 2:
            return constant(scores)
        if form in ("process", "process+start"):
            fitted = gaussian_process(design, scores, theta)
        else:
            fitted = logistic(
                design,
                scores,
                inverse_penalty=self.config.inverse_penalty,
                ensemble=self.config.ensemble,
            )
        return lambda new: fitted(self._design(form, new, inputs))


def _inputs(proposals: Proposals) -> FloatArray:
    # One row a rollout: the plan, then the start's context.
    groups, group, _ = proposals.plans.shape
    context = proposals.starts.context[:, None].expand(groups, group, -1)
    return torch.cat([proposals.plans, context], dim=-1).flatten(0, 1).double().numpy()
