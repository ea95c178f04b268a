"""Checks of ``wmrl_embodied.reporting.sinks``."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from wmrl_embodied.reporting.sinks import JsonLinesSink, TensorBoardSink, read_metrics


def test_what_is_not_a_number_becomes_null(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path / "m.jsonl")
    sink.write(1, {"score/real": float("nan"), "cost/steps": 3.0})
    sink.close()
    assert read_metrics(tmp_path / "m.jsonl") == [
        {"step": 1, "score/real": None, "cost/steps": 3.0}
    ]


def test_a_resumed_run_drops_what_its_checkpoint_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    sink = JsonLinesSink(path)
    for step in range(1, 6):
        sink.write(step, {"value": float(step)})
    sink.close()
    with path.open("a") as file:
        file.write('{"step": 6, "val')  # killed while writing
    resumed = JsonLinesSink(path, resume_at=3)
    resumed.write(4, {"value": 40.0})
    resumed.close()
    assert [step["value"] for step in read_metrics(path)] == [1.0, 2.0, 3.0, 40.0]


def test_a_half_written_line_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"step": 1, "value": 2.0}\n{"step": 2, "va')
    assert read_metrics(tmp_path / "m.jsonl") == [{"step": 1, "value": 2.0}]


def test_tensorboard_gets_every_metric(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path)
    sink.write(7, {"score/real": 0.5})
    sink.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    (event,) = events.Scalars("score/real")
    assert (event.step, event.value) == (7, 0.5)
