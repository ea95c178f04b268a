"""Checks of ``wmrl_envs.autoresearch.metrics``."""

import math

import numpy as np
import pytest

from wmrl_envs.autoresearch.metrics import METRICS, metric_named
from wmrl_envs.errors import InvalidInputError


@pytest.mark.parametrize(
    ("name", "truth", "prediction", "value"),
    [
        ("accuracy", ["a", "b", "b", "a"], ["a", "b", "a", "a"], 0.75),
        # Class a: precision 2/3, recall 1, F1 0.8; class b: precision 1, recall 1/2, F1 2/3.
        ("macro_f1", ["a", "b", "b", "a"], ["a", "b", "a", "a"], (0.8 + 2 / 3) / 2),
        # Of the four pairs (1 over 0), three are in order.
        ("auc", [0.0, 0.0, 1.0, 1.0], [0.1, 0.4, 0.35, 0.8], 0.75),
        ("quadratic_kappa", [1.0, 2.0, 3.0], [1.2, 1.9, 7.0], 1.0),
        ("rmse", [0.0, 0.0], [3.0, 4.0], math.sqrt(12.5)),
        ("mae", [0.0, 0.0], [3.0, -4.0], 3.5),
        ("rmsle", [math.e - 1], [0.0], 1.0),
        # 2 (3 ln(3/1) - 3 + 1) and 2 (0 - 0 + 1), halved.
        ("poisson_deviance", [3.0, 0.0], [1.0, 1.0], 3 * math.log(3) - 2 + 1),
    ],
)
def test_matches_a_value_worked_by_hand(
    name: str, truth: list, prediction: list, value: float
) -> None:
    measured = METRICS[name].evaluate(np.array(truth), np.array(prediction))
    assert measured == pytest.approx(value)


def test_an_unknown_metric_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match="accuracy, macro_f1"):
        metric_named("bleu")
