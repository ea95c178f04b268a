"""Checks of ``wmrl_embodied.files``."""

from pathlib import Path

import pytest

from wmrl_embodied.files import write_atomically
from wmrl_envs.errors import InvalidInputError


def test_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_atomically(path, "old")
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_names_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InvalidInputError, match=r"file/below\.txt' must be writable"):
        write_atomically(tmp_path / "file" / "below.txt", "x")
