"""Metrics of the bundled tasks, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InvalidInputError

Values = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """How a submission is measured."""

    name: str
    higher_is_better: bool
    evaluate: Callable[[Values, Values], float]
    """Takes the true values and the predictions, both ``(rows,)``."""

    numeric: bool = True
    """Whether predictions must be numbers; otherwise they are labels."""

    lowest: float = -np.inf
    """Smallest prediction that means anything."""

    needs_scores: bool = False
    """Whether a probability is wanted rather than a class."""


def _accuracy(truth: Values, prediction: Values) -> float:
    return float(np.mean(truth == prediction))


def _macro_f1(truth: Values, prediction: Values) -> float:
    from sklearn.metrics import f1_score

    labels = np.unique(truth)
    return float(f1_score(truth, prediction, labels=labels, average="macro", zero_division=0))


def _auc(truth: Values, prediction: Values) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, prediction))


def _kappa(truth: Values, prediction: Values) -> float:
    from sklearn.metrics import cohen_kappa_score

    rounded = np.clip(np.rint(prediction), truth.min(), truth.max()).astype(int)
    labels = np.arange(int(truth.min()), int(truth.max()) + 1)
    value = cohen_kappa_score(truth.astype(int), rounded, labels=labels, weights="quadratic")
    return float(value)


def _rmse(truth: Values, prediction: Values) -> float:
    return float(np.sqrt(np.mean((truth - prediction) ** 2)))


def _mae(truth: Values, prediction: Values) -> float:
    return float(np.mean(np.abs(truth - prediction)))


def _rmsle(truth: Values, prediction: Values) -> float:
    return _rmse(np.log1p(truth), np.log1p(prediction))


def _poisson_deviance(truth: Values, prediction: Values) -> float:
    mean = np.maximum(prediction, 1e-6)
    ratio = np.where(truth > 0, truth / mean, 1.0)
    return float(2.0 * np.mean(truth * np.log(ratio) - truth + mean))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="accuracy", higher_is_better=True, evaluate=_accuracy, numeric=False),
        Metric(name="macro_f1", higher_is_better=True, evaluate=_macro_f1, numeric=False),
        Metric(name="auc", higher_is_better=True, evaluate=_auc, needs_scores=True),
        Metric(name="quadratic_kappa", higher_is_better=True, evaluate=_kappa),
        Metric(name="rmse", higher_is_better=False, evaluate=_rmse),
        Metric(name="mae", higher_is_better=False, evaluate=_mae),
        Metric(name="rmsle", higher_is_better=False, evaluate=_rmsle, lowest=0.0),
        Metric(
            name="poisson_deviance", higher_is_better=False, evaluate=_poisson_deviance, lowest=0.0
        ),
    )
}


def metric_named(name: str) -> Metric:
    """Return the metric of that name.

    Raises:
        InvalidInputError: If there is none.
    """
    if name not in METRICS:
        raise InvalidInputError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]
