"""The command prints what it promises and writes what a user can read again."""

import csv
import json
from pathlib import Path

import pytest

from wmrl_embodied.simulate.cli import SimulateCommand, main
from wmrl_embodied.simulate.suite import SimulateConfig

_SMALL = SimulateConfig(
    presets=("auto",),
    seeds=2,
    biases=("none", "adversarial"),
    noises=(0.1,),
    scores=("binary",),
    real_steps=1.0,
    points=2,
)


def test_json_prints_the_summary_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(SimulateCommand(suite=_SMALL, json=True))

    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    assert set(printed) == {"presets"}
    assert set(printed["presets"]["auto"]) >= {"mean", "worst", "speedup"}


def test_json_alone_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    main(SimulateCommand(suite=_SMALL, json=True))

    capsys.readouterr()
    assert list(tmp_path.iterdir()) == []


def test_writes_json_csv_and_one_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(SimulateCommand(suite=_SMALL, output=tmp_path))

    assert "auto" in capsys.readouterr().out
    document = json.loads((tmp_path / "suite.json").read_text())
    with (tmp_path / "suite.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 2  # real, anchors_only, auto in two cells
    finals = [float(row["final"]) for row in rows if row["preset"] == "auto"]
    assert document["presets"]["auto"]["mean"] == pytest.approx(sum(finals) / 2)
    assert (tmp_path / "suite.html").stat().st_size > 100_000
