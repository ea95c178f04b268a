"""Checks of the ``wmrl`` command as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wmrl_embodied.__main__ import main


def _wmrl(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wmrl_embodied", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_lists_the_registered_environments(tmp_path: Path) -> None:
    shown = _wmrl("envs", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for name in ("WMRL-LIBERO", "WMRL-WorldModel", "WMRL-AutoResearch", "WMRL-MicroPick"):
        assert name in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resume", "nowhere"), ["config.json", "nowhere", "wmrl train"]),
        (("report", "nowhere"), ["config.json", "nowhere"]),
        (
            ("train", "libero-quick", "--group-size", "1"),
            ["group_size must be at least 2", "got 1"],
        ),
        (("train", "libero-quick", "--tasks", "99"), ["task must be in 0..9", "got 99"]),
        (("train", "libero-quick", "--estimator", "magic"), ["preset must be one of", "magic"]),
        (("train", "libero-quick", "--policy", "no.safetensors"), ["no.safetensors", "wmrl sft"]),
        (("compare", "nothing"), ["preset must be one of libero-quick", "nothing"]),
        (("sft", "--data", "nowhere"), ["nowhere", "wmrl collect"]),
        (("train", "libero-quick", "--folder", "/proc/none/x"), ["must be writable"]),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_code_2(
    arguments: tuple[str, ...],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["wmrl", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    flat = " ".join((shown.out + shown.err).replace("│", " ").split())
    assert stop.value.code == 2, flat
    assert "Traceback" not in flat
    for word in words:
        assert word in flat


@pytest.mark.slow
@pytest.mark.libero
def test_a_small_run_trains_evaluates_reports_and_resumes(tmp_path: Path) -> None:
    arguments = (
        "--folder", "run", "--steps", "2", "--groups", "2", "--warmup", "4", "--horizon", "16",
        "--init-states", "1", "--checkpoint-every", "1", "--workers", "1",
    )  # fmt: skip
    first = _wmrl("train", "libero-quick", *arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "really executed" in first.stdout
    folder = tmp_path / "run"
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert report.count("data:video/mp4;base64,") == 2
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [1, 2]
    again = _wmrl("resume", "run", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    shown = _wmrl("fidelity", "run", "--as-json", cwd=tmp_path)
    assert json.loads(shown.stdout)["prediction_us"] > 0.0
