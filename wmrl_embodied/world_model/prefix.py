"""Prefix world model: P(success | the first chunks of a real episode), for noise a step.

Notation:
    k      chunk at which an episode is scored; the first k chunks have really run
    z_k    features of the observation at the start of chunk k, with proprioception
    L_j    chunks rollout j ran
    group  rollouts from one start

Where exploration noise is drawn at every step the outcome is not known before the episode, and a
score needs the state the noise has led to. The trap is the label leak: episodes end at success, so
whatever is read off a rollout's own length holds the answer. A group is therefore scored at a chunk
that *all* of its rollouts reached.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from wmrl_embodied.world_model.fidelity import (
    Fidelity,
    FloatArray,
    fidelity,
    held_out_predictions,
)
from wmrl_envs.errors import InvalidInputError

IntArray = NDArray[np.integer]


@dataclass(frozen=True, kw_only=True, slots=True)
class Traces:
    """What episodes showed at the start of each chunk."""

    features: FloatArray
    """z and proprioception, shape (rollouts, chunks, features); anything beyond L_j."""

    lengths: IntArray
    """L_j, shape (rollouts,), at least 1."""

    success: FloatArray
    """Real score, shape (rollouts,)."""

    groups: IntArray
    """Group number, shape (rollouts,)."""

    def __post_init__(self) -> None:
        """Reject traces that disagree in length."""
        counts = {len(self.features), len(self.lengths), len(self.success), len(self.groups)}
        if len(counts) != 1 or np.any(self.lengths < 1):
            raise InvalidInputError(
                "traces must have one row a rollout and at least one chunk each, got "
                f"{sorted(counts)} rows and a shortest length of {self.lengths.min(initial=1)}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixConfig:
    """How the prefix model scores."""

    chunks: int = 11
    """Chunks that really run before an episode is scored."""

    components: int = 16
    """Principal components of the features that the regression sees."""

    inverse_penalty: float = 0.1
    """Inverse regularisation strength of the logistic regression."""

    def __post_init__(self) -> None:
        """Reject prefixes of no length."""
        if self.chunks < 1 or self.components < 1 or self.inverse_penalty <= 0.0:
            raise InvalidInputError(
                "chunks and components must be at least 1 and inverse_penalty above 0, got "
                f"{self.chunks}, {self.components} and {self.inverse_penalty}"
            )


def common_prefix(lengths: IntArray, groups: IntArray, chunks: int) -> NDArray[np.int64]:
    """Return, for each rollout, the chunk its group is scored at: reached by all of the group.

    Args:
        lengths: L_j, shape (rollouts,).
        groups: Group number, shape (rollouts,).
        chunks: Chunk wished for.

    Returns:
        Chunk numbers, shape (rollouts,), equal within a group.
    """
    reached = np.empty(len(lengths), dtype=np.int64)
    for group in np.unique(groups):
        inside = groups == group
        reached[inside] = min(chunks, int(lengths[inside].min()) - 1)
    return reached


class PrefixModel:
    """Logistic regression on the features at a chunk that the whole group reached."""

    def __init__(self, config: PrefixConfig) -> None:
        self.config = config
        self._pipeline: Pipeline | None = None

    def fit(self, traces: Traces) -> None:
        """Fit on completed episodes.

        Raises:
            InvalidInputError: If all of them ended alike.
        """
        self._pipeline = self._fitted(self._design(traces), traces.success)

    def predict(self, traces: Traces) -> FloatArray:
        """Return P(success), shape (rollouts,); only the prefixes are read.

        Raises:
            InvalidInputError: If the model has not been fitted.
        """
        if self._pipeline is None:
            raise InvalidInputError("model must be fitted before it predicts; call fit() first")
        return self._pipeline.predict_proba(self._design(traces))[:, 1]

    def held_out_fidelity(self, traces: Traces) -> Fidelity:
        """Return fidelity by cross-validation over groups."""

        def fit_predict(train: FloatArray, known: FloatArray, new: FloatArray) -> FloatArray:
            return self._fitted(train, known).predict_proba(new)[:, 1]

        design = self._design(traces)
        predicted = held_out_predictions(fit_predict, design, traces.success, traces.groups)
        return fidelity(predicted, traces.success, traces.groups)

    def price(self, traces: Traces) -> float:
        """Return the share of an episode's real chunks that a score needs."""
        prefix = common_prefix(traces.lengths, traces.groups, self.config.chunks)
        return float(prefix.mean() / traces.lengths.mean())

    def _design(self, traces: Traces) -> FloatArray:
        prefix = common_prefix(traces.lengths, traces.groups, self.config.chunks)
        seen = traces.features[np.arange(len(prefix)), prefix]
        return np.column_stack([seen, prefix.astype(np.float64)])

    def _fitted(self, design: FloatArray, success: FloatArray) -> Pipeline:
        if len(np.unique(success > 0.5)) < 2:
            raise InvalidInputError(
                f"success must hold both outcomes, got only {success[0]:.0f}; collect more rollouts"
            )
        components = min(self.config.components, *design.shape)
        pipeline = make_pipeline(
            StandardScaler(),
            PCA(components),
            LogisticRegression(C=self.config.inverse_penalty, max_iter=1000),
        )
        return pipeline.fit(design, success > 0.5)
