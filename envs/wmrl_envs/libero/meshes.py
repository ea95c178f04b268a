"""Meshes: a copy of a model whose visual meshes have fewer faces, for cheap images.

LIBERO's scenes hold 200,000 to 400,000 faces, most of them smaller than a pixel of a 128-pixel
image. Vertices are grouped by the cells of a cubic grid, each group is drawn as its vertex nearest
to the group's mean, and faces that collapse are left out. No vertex moves by more than a cell's
diagonal; normals and texture coordinates stay those of the kept faces' corners.
"""

import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

MAX_CELL_M = 0.008
"""Largest side of a cell: about one pixel of the agent's view."""

MIN_CELLS = 48
"""Fewest cells along the longest side of a mesh, so that small objects keep their shape."""

MIN_FACES = 500
"""Meshes with fewer faces stay as they are."""


def simplified(model: "mujoco.MjModel") -> "mujoco.MjModel":
    """Return a copy of ``model`` fit for drawing only; its collision shapes are wrong."""
    light = copy.copy(model)
    for mesh in np.flatnonzero(light.mesh_facenum >= MIN_FACES):
        first_vertex, first_face = light.mesh_vertadr[mesh], light.mesh_faceadr[mesh]
        vertices = light.mesh_vert[first_vertex : first_vertex + light.mesh_vertnum[mesh]]
        all_faces = slice(first_face, first_face + light.mesh_facenum[mesh])
        faces = _representatives(vertices)[light.mesh_face[all_faces]]
        a, b, c = faces.T
        kept = np.flatnonzero((a != b) & (b != c) & (c != a))
        kept_faces = slice(first_face, first_face + len(kept))
        light.mesh_face[kept_faces] = faces[kept]
        for corners in (light.mesh_facenormal, light.mesh_facetexcoord):
            corners[kept_faces] = corners[all_faces][kept]
        light.mesh_facenum[mesh] = len(kept)
    return light


def _representatives(vertices: NDArray[np.float32]) -> NDArray[np.intp]:
    # For each vertex, the one its group is drawn as.
    low, size = vertices.min(axis=0), np.ptp(vertices, axis=0)
    cell = min(float(size.max()) / MIN_CELLS, MAX_CELL_M)
    i, j, k = np.floor((vertices - low) / cell).astype(np.int64).T
    _, group = np.unique((i * (j.max() + 1) + j) * (k.max() + 1) + k, return_inverse=True)
    count = np.bincount(group)
    mean = np.stack([np.bincount(group, column) / count for column in vertices.T], axis=1)
    distance = np.square(vertices - mean[group]).sum(axis=1)
    nearest_first = np.lexsort((distance, group))
    starts = np.searchsorted(group[nearest_first], np.arange(len(count)))
    return nearest_first[starts][group]
