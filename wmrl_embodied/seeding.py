"""Random streams: every draw of a run is derived from one root seed and a name.

Streams are stateless: the generator of step 17's anchors depends on ``(root, "anchors", 17)``
alone, so that a resumed run draws what the uninterrupted run would have drawn without any
generator state in the checkpoint.
"""

import zlib

import numpy as np
import torch


def _sequence(root: int, path: tuple[str | int, ...]) -> np.random.SeedSequence:
    keys = [zlib.crc32(part.encode()) if isinstance(part, str) else int(part) for part in path]
    return np.random.SeedSequence(entropy=root, spawn_key=tuple(keys))


def seed_of(root: int, *path: str | int) -> int:
    """Return a 63-bit seed for the stream ``path`` under ``root``.

    Args:
        root: The run's seed, at least 0.
        path: Names and counters that identify the stream, such as ``("anchors", step)``.
    """
    return int(_sequence(root, path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def torch_generator(root: int, *path: str | int) -> torch.Generator:
    """Return a fresh CPU generator for the stream ``path`` under ``root``."""
    return torch.Generator().manual_seed(seed_of(root, *path))


def numpy_generator(root: int, *path: str | int) -> np.random.Generator:
    """Return a fresh NumPy generator for the stream ``path`` under ``root``."""
    return np.random.default_rng(_sequence(root, path))
