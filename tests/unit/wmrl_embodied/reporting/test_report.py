"""Checks of ``wmrl_embodied.reporting.report``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest

from wmrl_embodied.reporting.report import saving, write_report
from wmrl_embodied.reporting.sinks import JsonLinesSink, Metrics
from wmrl_embodied.reporting.video import write_video
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.loop import train
from wmrl_embodied.training.run_folder import RunFolder
from wmrl_envs.errors import InvalidInputError

CONFIG = TrainConfig(name="double <run>", groups=4, steps=4, warmup=16)


@pytest.fixture
def page(double_domain: Callable[..., Any], tmp_path: Path) -> str:
    folder = RunFolder.create(tmp_path, CONFIG)
    train(
        CONFIG,
        double_domain(),
        folder,
        sinks=lambda step: [JsonLinesSink(folder.metrics, resume_at=step)],
    )
    frames = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    write_video(frames, folder.videos / "double_a__after.mp4", frames_per_second=5.0)
    return write_report(folder).read_text(encoding="utf-8")


def test_the_page_needs_no_network(page: str) -> None:
    loaded = re.findall(r"<(?:script|link|img|video)[^>]*(?:src|href)=['\"]?([^'\" >]+)", page)
    assert all(source.startswith("data:") for source in loaded)
    assert "cdn" not in page.split("<script", maxsplit=1)[0]


def test_the_page_says_what_was_achieved_and_what_it_cost(page: str) -> None:
    assert re.search(r"Real success on held-out initial states: <b>0\.00 \[", page)
    assert re.search(r"rollouts were really executed: <b>[\d.]+ times less</b> CPU", page)
    assert page.count("Plotly.newPlot") == 4
    assert "double_a".replace("_", " ") in page
    assert "data:video/mp4;base64," in page


def test_names_are_escaped(page: str) -> None:
    assert "<title>double &lt;run&gt;</title>" in page


def test_a_run_without_a_step_has_a_page_too(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, CONFIG)
    assert "has not finished a step" in write_report(folder).read_text(encoding="utf-8")


def test_saving_counts_everything_that_trained() -> None:
    last: Metrics = {
        "cost/executions": 10, "cost/proposed": 100, "cost/execution_s": 20.0,
        "cost/generation_s": 1.0, "cost/update_s": 4.0, "cost/total_s": 41.0,
    }  # fmt: skip
    # Everything executed: 100 · 2 s + 1 + 4 = 205; the run took 41.
    assert saving([last]) == pytest.approx(5.0)
    assert saving([]) is None


# imageio's reader of MP4 leaves pipes to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_video_plays_back_what_was_written(tmp_path: Path) -> None:
    frames = np.zeros((5, 16, 16, 3), dtype=np.uint8)
    frames[2:] = 255
    write_video(frames, tmp_path / "v.mp4", frames_per_second=5.0, scale=2)
    read = iio.imread(tmp_path / "v.mp4", plugin="FFMPEG")
    assert read.shape == (5, 32, 32, 3)
    assert read[0].mean() < 30
    assert read[4].mean() > 225


def test_refuses_a_video_without_frames(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="at least one image"):
        write_video(np.zeros((0, 4, 4, 3), np.uint8), tmp_path / "v.mp4", frames_per_second=5.0)
