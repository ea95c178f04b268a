"""Video: frames of an episode as an MP4 that a browser plays."""

from pathlib import Path

import imageio.v3 as iio
import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import InvalidInputError


def write_video(
    frames: NDArray[np.uint8], path: Path, *, frames_per_second: float, scale: int = 2
) -> None:
    """Write ``frames`` to ``path`` as H.264, each pixel repeated ``scale`` times.

    Args:
        frames: Shape (frames, height, width, 3).
        path: File ending in ``.mp4``.
        frames_per_second: Playing speed.
        scale: Enlargement; small simulator images are hard to see.

    Raises:
        InvalidInputError: If there is no frame.
    """
    if len(frames) == 0:
        raise InvalidInputError("frames must hold at least one image, got none")
    large = frames.repeat(scale, axis=1).repeat(scale, axis=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial-{path.name}")
    iio.imwrite(partial, large, fps=frames_per_second, codec="libx264", macro_block_size=2)
    partial.replace(path)
