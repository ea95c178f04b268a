"""Fidelity: how well predicted scores order and measure real ones, beside trivial baselines.

Notation:
    r_j   real score of rollout j, in [0, 1]
    p_j   predicted score, held out: the model never saw the rollout's initial state
    group rollouts of one task and initial state

What training can use is order *within* a group; a number pooled over groups mixes in how hard the
starts are. So the deciding figure is the within-group R², the squared correlation of p and r after
each group's mean is taken out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from wmrl_envs.errors import InvalidInputError

FloatArray = NDArray[np.float64]
FitPredict = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""(training inputs, training scores, held-out inputs) → held-out predictions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fidelity:
    """Held-out fidelity of a predictor."""

    rollouts: int
    """Rollouts scored."""

    auc: float
    """Area under the ROC curve, pooled; 0.5 is chance, NaN without both outcomes."""

    within_group_r2: float
    """Signed squared correlation of p and r inside groups; 0 is useless, 1 is perfect."""

    within_group_slope: float
    """Slope of r on p inside groups; 1 is calibrated, below 1 is over-confident."""

    kendall_tau: float
    """Mean rank correlation over groups that have both outcomes; NaN without any."""

    calibration_error: float
    """Mean |mean p − mean r| over ten equal-count bins, weighted by count."""


def fidelity(predicted: FloatArray, real: FloatArray, groups: NDArray[np.integer]) -> Fidelity:
    """Return the fidelity of held-out predictions.

    Args:
        predicted: p, shape (rollouts,).
        real: r, shape (rollouts,).
        groups: Group number of each rollout, shape (rollouts,).

    Raises:
        InvalidInputError: If the shapes differ or nothing is given.
    """
    if not len(predicted) == len(real) == len(groups) or len(real) == 0:
        raise InvalidInputError(
            "predicted, real and groups must have one entry a rollout and at least one, got "
            f"{len(predicted)}, {len(real)} and {len(groups)}"
        )
    p_centred, r_centred, taus = predicted.astype(float), real.astype(float), []
    for group in np.unique(groups):
        inside = groups == group
        p_centred[inside] -= predicted[inside].mean()
        r_centred[inside] -= real[inside].mean()
        if np.ptp(real[inside]) > 0.0:
            is_flat = np.ptp(predicted[inside]) < 1e-9
            taus.append(0.0 if is_flat else kendalltau(predicted[inside], real[inside]).statistic)
    product, p_square = p_centred @ r_centred, p_centred @ p_centred
    correlation = product / np.sqrt(p_square * (r_centred @ r_centred) + 1e-12)
    has_both = len(np.unique(real > 0.5)) == 2
    return Fidelity(
        rollouts=len(real),
        auc=float(roc_auc_score(real > 0.5, predicted)) if has_both else float("nan"),
        within_group_r2=float(np.sign(correlation) * correlation**2),
        within_group_slope=float(product / (p_square + 1e-12)),
        kendall_tau=float(np.mean(taus)) if taus else float("nan"),
        calibration_error=_calibration_error(predicted, real),
    )


def held_out_predictions(
    fit_predict: FitPredict,
    inputs: FloatArray,
    real: FloatArray,
    groups: NDArray[np.integer],
    *,
    folds: int = 5,
) -> FloatArray:
    """Return predictions for every rollout by a model that saw none of its group.

    Args:
        fit_predict: Fits on the first two arguments and predicts for the third.
        inputs: Shape (rollouts, features).
        real: Shape (rollouts,).
        groups: Group number of each rollout; whole groups are held out.
        folds: Parts of the cross-validation, at most the number of groups.

    Raises:
        InvalidInputError: If there are fewer than two groups.
    """
    distinct = len(np.unique(groups))
    if distinct < 2:
        raise InvalidInputError(
            f"groups must hold at least 2 different starts, got {distinct}; collect more rollouts"
        )
    predicted = np.empty(len(real))
    for train, held_out in GroupKFold(min(folds, distinct)).split(inputs, real, groups):
        predicted[held_out] = fit_predict(inputs[train], real[train], inputs[held_out])
    return predicted


def _calibration_error(predicted: FloatArray, real: FloatArray, bins: int = 10) -> float:
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    gaps = [abs(predicted[part].mean() - real[part].mean()) * len(part) for part in parts]
    return float(np.sum(gaps) / len(real))
