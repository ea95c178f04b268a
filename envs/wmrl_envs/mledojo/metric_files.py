"""Metric files of MLE-Dojo, loaded by path without its package.

A metric file defines a class derived from ``CompetitionMetrics`` and imports that class, and its
errors, from the package. Stand-ins with the same names serve these imports while the file is
loaded; the package itself, which pins everything, is neither needed nor touched.
"""

import importlib.util
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError

_LOADING = threading.Lock()
_PREFIX = "mledojo"


class CompetitionMetrics:
    """Stand-in for the base class of metric files."""

    def __init__(self, higher_is_better: bool = True) -> None:
        self.higher_is_better = higher_is_better


class InvalidSubmissionError(Exception):
    """Stand-in for what a metric file raises on a submission it refuses."""


class LoadedMetric(Protocol):
    """What a metric file's class offers."""

    higher_is_better: bool

    def evaluate(self, y_true: Any, y_pred: Any) -> float:
        """Return the score of a data frame of predictions against one of true values."""
        ...

    def validate_submission(self, submission: Any, ground_truth: Any) -> object:
        """Return a message if the submission is valid; raise, or return ``(False, why)``, otherwise."""
        ...


class _StandIn(ModuleType):
    """A module in which every name that is asked for is found: a class of that name."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "CompetitionMetrics":
            return CompetitionMetrics
        return InvalidSubmissionError


class _Finder(MetaPathFinder, Loader):
    """Answers imports of the package and all its modules with stand-ins."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return a spec for names inside the package."""
        if name.split(".")[0] != _PREFIX:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """Return the stand-in."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


@contextmanager
def _stand_ins() -> Generator[None]:
    """Put stand-ins for the package in place, then everything back as it was."""
    finder = _Finder()
    with _LOADING:
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if _ours(name)}
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in [name for name in sys.modules if _ours(name)]:
                del sys.modules[name]
            sys.modules.update(hidden)


def _ours(name: str) -> bool:
    return name.split(".")[0] == _PREFIX


def load_metric(path: Path) -> LoadedMetric:
    """Return an instance of the metric class in a file.

    The file is the user's and runs with the user's rights: load only files you trust.

    Raises:
        InvalidInputError: If the file is missing or defines no such class, or several.
        DependencyNotInstalledError: If it imports a package that is missing.
    """
    if not path.is_file():
        raise InvalidInputError(f"metric must be a Python file, got none at {path}")
    spec = importlib.util.spec_from_file_location(f"wmrl_metric_{path.parent.name}", path)
    if spec is None or spec.loader is None:
        raise InvalidInputError(f"metric must be a Python file, got {path}")
    module = importlib.util.module_from_spec(spec)
    with _stand_ins():
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as error:
            raise DependencyNotInstalledError(
                f"{error.name} must be installed for {path}; pip install {error.name}"
            ) from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, CompetitionMetrics)
        and value is not CompetitionMetrics
    ]
    if len(found) != 1:
        names = ", ".join(value.__name__ for value in found) or "none"
        raise InvalidInputError(
            f"metric file must define one class derived from CompetitionMetrics, got {names} in {path}"
        )
    return found[0]()
