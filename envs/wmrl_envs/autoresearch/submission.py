"""Submission: predictions read from bytes that an agent wrote, checked against the hidden answers."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.autoresearch.metrics import Metric

_MOST_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Invalid:
    """Why a submission has no score; the agent's failure, told to the agent."""

    reason: str


def read_predictions(
    data: bytes, *, answers: Mapping[str, str], columns: Sequence[str], metric: Metric
) -> NDArray | Invalid:
    """Return the predictions in the order of ``answers``, or why they are not valid.

    Nothing in the file is ever executed: it is text, split at commas.

    Args:
        data: The file.
        answers: True value by row id.
        columns: Names of the id and the prediction column.
        metric: Says whether predictions are numbers and how small they may be.
    """
    if len(data) > _MOST_BYTES:
        return Invalid(reason=f"submission must be at most {_MOST_BYTES} bytes, got {len(data)}")
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        rows = [row for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        return Invalid(reason=f"submission must be a CSV file in UTF-8: {error}")
    header, body = (rows[0] if rows else []), rows[1:]
    problem = _shape_problem(header, body, answers, columns)
    if problem:
        return Invalid(reason=problem)
    place = [header.index(name) for name in columns]
    given = {row[place[0]]: row[place[1]] for row in body}
    problem = _id_problem(given, body, answers)
    if problem:
        return Invalid(reason=problem)
    texts = [given[name] for name in answers]
    return _numbers(texts, columns[1], metric) if metric.numeric else np.array(texts)


def _shape_problem(
    header: list[str], body: list[list[str]], answers: Mapping[str, str], columns: Sequence[str]
) -> str | None:
    if sorted(header) != sorted(columns):
        return f"columns must be {', '.join(columns)}, got {', '.join(header)[:200] or 'none'}"
    if len(body) != len(answers):
        return f"rows must be {len(answers)} as in sample_submission.csv, got {len(body)}"
    uneven = next((row for row in body if len(row) != len(header)), None)
    if uneven is not None:
        return (
            f"rows must have {len(header)} cells, got {len(uneven)} in {','.join(uneven)[:100]!r}"
        )
    return None


def _id_problem(
    given: Mapping[str, str], body: list[list[str]], answers: Mapping[str, str]
) -> str | None:
    if len(given) != len(body):
        return "ids must each occur once, got repeated ones"
    unknown = next((name for name in given if name not in answers), None)
    if unknown is not None:
        return f"ids must be those of sample_submission.csv, got {unknown[:100]!r}"
    return None


def _numbers(texts: list[str], column: str, metric: Metric) -> NDArray | Invalid:
    values = np.empty(len(texts))
    for index, text in enumerate(texts):
        try:
            values[index] = float(text)
        except ValueError:
            return Invalid(reason=f"{column} must be numbers, got {text[:100]!r}")
        if not math.isfinite(values[index]):
            return Invalid(reason=f"{column} must be finite, got {text[:100]!r} (NaN or infinite)")
    if values.size and values.min() < metric.lowest:
        return Invalid(
            reason=f"{column} must be at least {metric.lowest:g} for {metric.name}, got "
            f"{values.min():g}"
        )
    return values
