"""Preparation of a task's data from packages, once, into a cache folder."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError

if TYPE_CHECKING:
    from pandas import DataFrame

_INSTALL = "pip install 'wmrl-embodied[autoresearch]'"


def cache_folder() -> Path:
    """Return where prepared data are kept: ``WMRL_CACHE``, else ``~/.cache/wmrl``."""
    return Path(os.environ.get("WMRL_CACHE") or Path.home() / ".cache" / "wmrl")


def prepared_folder(folder: Path, about: Mapping[str, Any]) -> Path:
    """Return a folder with ``public`` and ``private``, made from the task's ``prepare.py``.

    The rows are shuffled with a fixed seed, or kept in order for a forecast; the first
    ``train_rows`` are for training, the next ``test_rows`` are hidden.

    Raises:
        InvalidInputError: If the folder has no ``prepare.py``, or the data differ from those the
            leaderboard was made with.
        DependencyNotInstalledError: If a package is missing.
    """
    script = folder / "prepare.py"
    if not script.is_file():
        raise InvalidInputError(
            f"prepare.py or public/ must be in the task folder, got neither in {folder}"
        )
    for key in ("train_rows", "test_rows"):
        if not isinstance(about.get(key), int) or about[key] < 1:
            raise InvalidInputError(f"task.toml must set {key} to a number of rows, in {folder}")
    source = (folder / "task.toml").read_bytes() + script.read_bytes()
    digest = hashlib.sha256(source).hexdigest()[:12]
    made = cache_folder() / "tasks" / f"{folder.resolve().name}-{digest}"
    if not made.is_dir():
        _make(_load_table(script), about, made)
    _check_same(made, about)
    return made


def data_digest(made: Path) -> str:
    """Return a digest of the data files of a prepared folder."""
    total = hashlib.sha256()
    for name in ("public/train.csv", "public/test.csv", "private/answers.csv"):
        total.update((made / name).read_bytes())
    return total.hexdigest()[:16]


def _check_same(made: Path, about: Mapping[str, Any]) -> None:
    expected, found = about.get("data_digest"), data_digest(made)
    if expected and expected != found:
        raise InvalidInputError(
            f"data of {made.name} must have digest {expected}, got {found}: a package holds other "
            f"data than the leaderboard was made with; {_INSTALL}"
        )


def _load_table(script: Path) -> "DataFrame":
    spec = importlib.util.spec_from_file_location(f"wmrl_task_{script.parent.name}", script)
    if spec is None or spec.loader is None:
        raise InvalidInputError(f"prepare.py must be a Python file, got {script}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return module.table()
    except ImportError as error:
        raise DependencyNotInstalledError(
            f"{error.name} must be installed for task {script.parent.name}; {_INSTALL}"
        ) from error
    except AttributeError as error:
        raise InvalidInputError(f"prepare.py must work and define table(): {error}") from error


def _make(table: "DataFrame", about: Mapping[str, Any], made: Path) -> None:
    train_rows, test_rows, target = about["train_rows"], about["test_rows"], about["target"]
    if target not in table.columns:
        raise InvalidInputError(f"table() must have the target {target!r}, got {list(table)}")
    if len(table) < train_rows + test_rows:
        raise InvalidInputError(
            f"table() must have {train_rows + test_rows} rows, got {len(table)}"
        )
    if about["kind"] != "forecast":
        table = table.sample(frac=1.0, random_state=int(about.get("seed", 0)))
    table = table.head(train_rows + test_rows).reset_index(drop=True)
    table.insert(0, "id", table.index)
    train, test = table.head(train_rows), table.tail(test_rows)
    made.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=made.parent, prefix=".making-"))
    building.chmod(0o755)
    for name in ("public", "private"):
        (building / name).mkdir(mode=0o755)
    train.to_csv(building / "public" / "train.csv", index=False)
    test.drop(columns=target).to_csv(building / "public" / "test.csv", index=False)
    sample = test[["id"]].assign(**{target: train[target].iloc[0]})
    sample.to_csv(building / "public" / "sample_submission.csv", index=False)
    test[["id", target]].to_csv(building / "private" / "answers.csv", index=False)
    for file in building.rglob("*.csv"):
        file.chmod(0o644)
    try:
        building.rename(made)
    except OSError:  # another process made it first
        shutil.rmtree(building)
        if not made.is_dir():
            raise
