"""Checks of ``wmrl_embodied.training.loop``: learning, and resuming exactly."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from wmrl_embodied.reporting.sinks import JsonLinesSink, read_metrics
from wmrl_embodied.training.config import EvaluationConfig, TrainConfig
from wmrl_embodied.training.loop import RunResult, train
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_envs.errors import InvalidInputError

CONFIG = TrainConfig(groups=8, group_size=8, steps=30, warmup=64, checkpoint_every=4)


def _run(config: TrainConfig, domain: Any, path: Path, *, stop_after: int | None = None) -> Any:
    folder = RunFolder.create(path, config)
    real_write = JsonLinesSink.write

    class Sink(JsonLinesSink):
        def write(self, step: int, metrics: dict[str, float]) -> None:
            real_write(self, step, metrics)
            if step == stop_after:
                raise KeyboardInterrupt

    return train(config, domain, folder, sinks=lambda step: [Sink(folder.metrics, resume_at=step)])


@pytest.mark.parametrize("estimator", ["auto", "real", "fast"])
def test_real_success_rises_from_nothing(
    estimator: str, double_domain: Callable[..., Any], tmp_path: Path
) -> None:
    config = replace(CONFIG, estimator=estimator)
    result: RunResult = _run(config, double_domain(), tmp_path)
    before, after = result.before.rate("held_out"), result.after.rate("held_out")
    assert before is not None
    assert after is not None
    assert before.value == 0.0  # the prior's mean plan fails everywhere
    assert after.low > 0.5


def test_a_world_model_saves_real_executions(
    double_domain: Callable[..., Any], tmp_path: Path
) -> None:
    results = {
        name: _run(replace(CONFIG, estimator=name), double_domain(), tmp_path / name)
        for name in ("real", "auto")
    }
    assert results["auto"].ledger.executions < results["real"].ledger.executions / 3


def test_an_interrupted_run_goes_on_exactly_where_it_stopped(
    double_domain: Callable[..., Any], tmp_path: Path
) -> None:
    config = replace(CONFIG, steps=10)
    whole, parts = double_domain(), double_domain()
    _run(config, whole, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        _run(config, parts, tmp_path / "parts", stop_after=6)
    resumed = double_domain()
    _run(config, resumed, tmp_path / "parts")
    for name, tensor in whole.policy.state_dict().items():
        assert torch.equal(resumed.policy.state_dict()[name], tensor), name
    logs = [read_metrics(tmp_path / part / "metrics.jsonl") for part in ("whole", "parts")]
    assert [step["step"] for step in logs[1]] == list(range(1, 11))
    for one, other in zip(*logs, strict=True):
        for name, value in one.items():
            if not name.startswith("cost/") or name in ("cost/executions", "cost/proposed"):
                assert other[name] == value, name


def test_a_finished_run_is_not_run_again(double_domain: Callable[..., Any], tmp_path: Path) -> None:
    config = replace(CONFIG, steps=4)
    _run(config, double_domain(), tmp_path)
    again = double_domain()
    result = _run(config, again, tmp_path)
    assert again.executor.count == 0
    assert result.ledger.executions > 0


def test_the_learning_curve_is_logged_where_asked_for(
    double_domain: Callable[..., Any], tmp_path: Path
) -> None:
    config = replace(CONFIG, steps=6, evaluation=EvaluationConfig(every=3))
    _run(config, double_domain(), tmp_path)
    known = [step["step"] for step in read_metrics(tmp_path / "metrics.jsonl")
             if "evaluation/held_out" in step]  # fmt: skip
    assert known == [3, 6]


def test_refuses_the_folder_of_another_run(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, CONFIG)
    with pytest.raises(InvalidInputError, match="another configuration; choose another --folder"):
        RunFolder.create(tmp_path, replace(CONFIG, seed=1))


def test_names_what_is_wrong_with_a_configuration(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, CONFIG)
    saved = json.loads((tmp_path / "config.json").read_text())
    saved["group_size"] = 1
    (tmp_path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(InvalidInputError, match="group_size must be at least 2"):
        folder.config()
