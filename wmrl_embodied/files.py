"""Files: written whole or not at all."""

import os
import tempfile
from pathlib import Path

from wmrl_envs.errors import InvalidInputError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, never half.

    Args:
        path: File to write; its folder is made.
        content: Bytes, or text that is encoded as UTF-8.

    Raises:
        InvalidInputError: If the folder cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        raise InvalidInputError(
            f"{str(path)!r} must be writable, got {error.strerror}; choose another folder or free "
            "its disk"
        ) from error
