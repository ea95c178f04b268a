"""Culling: which geometries a camera cannot see, so that they need not be drawn.

MuJoCo sends every vertex of every mesh to the renderer, also those behind the camera; in software
that is most of the cost of an image. A geometry is left out only if its bounding box lies wholly
outside the camera's pyramid, and so does its mirror image in every reflective face in view: no
pixel can change.

Notation: camera frame with x right, y up, looking along -z; a point is in view if
|x| <= -z tan(fov/2) and |y| <= -z tan(fov/2) for square images.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MARGIN_M = 0.005
"""Distance by which a box must miss the view: above the renderer's single precision."""

# Values of ``mujoco.mjtGeom`` whose upper face MuJoCo draws as a mirror.
_PLANE, _BOX = 0, 6


class Culler:
    """Visibility of one model's geometries."""

    def __init__(self, model: "mujoco.MjModel", *, seen_groups: NDArray[np.int64]) -> None:
        """Collect boxes and mirrors.

        Args:
            model: Model whose geometries are drawn.
            seen_groups: Geometry groups that are drawn.
        """
        self._model = model
        self._centre = model.geom_aabb[:, :3].copy()
        self._half = model.geom_aabb[:, 3:].copy()
        is_plane = model.geom_type == _PLANE
        self._half[is_plane] = np.inf  # a plane may be drawn without end
        reflectance = np.where(
            model.geom_matid >= 0, model.mat_reflectance[model.geom_matid], 0.0
        ) if model.nmat else np.zeros(model.ngeom)  # fmt: skip
        is_mirror = (reflectance > 0) & (is_plane | (model.geom_type == _BOX))
        self._mirrors = np.flatnonzero(is_mirror & np.isin(model.geom_group, seen_groups))
        self._is_exact = not bool(model.light_castshadow.any())

    def unseen(self, data: "mujoco.MjData", camera: int) -> Mask:
        """Return which geometries ``(ngeom,)`` cannot change the image of a fixed camera.

        None are, where shadows are cast or the camera has a lens of its own: then the pyramid is
        not all there is.
        """
        model = self._model
        if not self._is_exact or model.cam_sensorsize[camera].any():
            return np.zeros(model.ngeom, dtype=bool)
        rotation = data.geom_xmat.reshape(-1, 3, 3)
        centre = data.geom_xpos + np.einsum("gij,gj->gi", rotation, self._centre)
        view = data.cam_xmat[camera].reshape(3, 3)
        normals = view @ _inward_normals(float(model.cam_fovy[camera]))
        eye = data.cam_xpos[camera]
        unseen = _outside(centre - eye, rotation, self._half, normals)
        for mirror in self._mirrors[~unseen[self._mirrors]]:
            axis = rotation[mirror, :, 2]
            height = model.geom_size[mirror, 2] if model.geom_type[mirror] == _BOX else 0.0
            point = data.geom_xpos[mirror] + height * axis
            flip = np.eye(3) - 2.0 * np.outer(axis, axis)
            mirrored = point + (centre - point) @ flip
            unseen &= _outside(mirrored - eye, flip @ rotation, self._half, normals)
        return unseen


def _inward_normals(fovy_deg: float) -> Array:
    # Columns: left, right, bottom, top and front face of the pyramid, in the camera's frame.
    half = np.deg2rad(fovy_deg) / 2
    c, s = np.cos(half), np.sin(half)
    return np.array([[c, 0, -s], [-c, 0, -s], [0, c, -s], [0, -c, -s], [0, 0, -1.0]]).T


def _outside(offset: Array, rotation: Array, half: Array, normals: Array) -> Mask:
    # A box misses the view if it lies wholly behind one of the faces.
    distance = offset @ normals
    along = np.abs(np.einsum("gij,ik->gjk", rotation, normals))
    reach = np.einsum("gj,gjk->gk", half, np.where(along > 0, along, np.finfo(float).tiny))
    return (distance + reach < -MARGIN_M).any(axis=1)
