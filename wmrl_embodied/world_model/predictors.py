"""Predictors: small regressions from an episode's artifact to its score, with uncertainty.

Notation:
    x      inputs of one rollout: its plan, and its start's context where that helps
    r, p   real and predicted score, in [0, 1]

Each function fits and returns a predictor; none keeps state or reads a clock.
"""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel
from sklearn.linear_model import LogisticRegression

from wmrl_embodied.world_model.fidelity import FloatArray

Predictor = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Inputs (rollouts, features) → mean and standard deviation of the expected score."""


def constant(scores: FloatArray) -> Predictor:
    """Return the predictor for scores that are all equal.

    Laplace's rule of succession: n equal outcomes do not make the next one certain.
    """
    count = len(scores)
    mean = (scores.sum() + 1.0) / (count + 2.0)
    std = float(np.sqrt(mean * (1.0 - mean) / (count + 3.0)))
    return lambda new: (np.full(len(new), mean), np.full(len(new), std))


def logistic(
    inputs: FloatArray, scores: FloatArray, *, inverse_penalty: float, ensemble: int
) -> Predictor:
    """Return logistic regression on (x, x²) with a bootstrap ensemble for its deviation.

    Squares let success peak at a plan instead of growing along it. Scores count as success above
    one half; graded scores keep their order only through the Gaussian process.

    Args:
        inputs: Shape (rollouts, features), about unit scale.
        scores: Shape (rollouts,), on both sides of one half.
        inverse_penalty: Inverse regularisation strength.
        ensemble: Bootstrap refits.
    """
    design, success = _with_squares(inputs), scores > 0.5
    rng = np.random.default_rng(len(scores))
    members = [LogisticRegression(C=inverse_penalty).fit(design, success)]
    while len(members) <= ensemble:
        rows = rng.integers(len(scores), size=len(scores))
        if len(np.unique(success[rows])) == 2:
            members.append(LogisticRegression(C=inverse_penalty).fit(design[rows], success[rows]))

    def predict(new: FloatArray) -> tuple[FloatArray, FloatArray]:
        expanded = _with_squares(new)
        predicted = np.stack([member.predict_proba(expanded)[:, 1] for member in members])
        return predicted[0], predicted[1:].std(axis=0)

    return predict


def gaussian_process(inputs: FloatArray, scores: FloatArray, theta: FloatArray) -> Predictor:
    """Return Gaussian-process regression with fixed hyperparameters.

    Args:
        inputs: Shape (rollouts, features).
        scores: Shape (rollouts,).
        theta: Log hyperparameters, what :func:`tune_process` returned.
    """
    kernel = _kernel(inputs.shape[1]).clone_with_theta(theta)
    centre = float(scores.mean())
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(inputs, scores - centre)
    noise = float(np.exp(theta[-1]))

    def predict(new: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred, total = process.predict(new, return_std=True)
        # The kernel's noise is the outcome's own; what more data would remove is the rest.
        return centred + centre, np.sqrt(np.maximum(total**2 - noise, 0.0))

    return predict


def tune_process(inputs: FloatArray, scores: FloatArray) -> FloatArray:
    """Return log hyperparameters that maximise the marginal likelihood: one length scale an input."""
    process = GaussianProcessRegressor(_kernel(inputs.shape[1]), random_state=0)
    with warnings.catch_warnings():
        # A length scale at its upper bound only says that the input does not matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(inputs, scores - scores.mean())
    return process.kernel_.theta


def reducer(context: FloatArray, components: int) -> Callable[[FloatArray], FloatArray]:
    """Return a map to the leading principal components of distinct starts, at unit variance.

    n distinct starts have at most n − 1 components: a single one gives no column at all.
    """
    distinct = np.unique(context, axis=0)
    components = min(components, len(distinct) - 1, context.shape[1])
    if components < 1:
        return lambda new: np.zeros((len(new), 0))
    pca = PCA(components).fit(distinct)
    scale = np.sqrt(pca.explained_variance_) + 1e-9
    return lambda new: pca.transform(new) / scale


def _with_squares(inputs: FloatArray) -> FloatArray:
    return np.concatenate([inputs, inputs**2 - 1.0], axis=1)


def _kernel(features: int) -> Kernel:
    smooth = ConstantKernel(0.2, (1e-3, 10.0)) * RBF(np.full(features, 3.0), (0.3, 30.0))
    return smooth + WhiteKernel(0.1, (1e-3, 1.0))
