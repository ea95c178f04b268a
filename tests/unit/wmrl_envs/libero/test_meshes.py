"""Checks of ``wmrl_envs.libero.meshes``."""

import numpy as np
import pytest

from wmrl_envs.libero.meshes import MAX_CELL_M, simplified

pytestmark = pytest.mark.libero


def test_a_fine_grid_keeps_its_shape_with_fewer_faces() -> None:
    import mujoco

    side = 100  # 99 x 99 squares of 2 mm: cells of 198 mm / 48 = 4.1 mm join two rows
    x, y = np.meshgrid(np.arange(side) * 0.002, np.arange(side) * 0.002, indexing="ij")
    vertices = np.stack([x.ravel(), y.ravel(), 0.01 * np.sin(20 * x).ravel()], axis=1)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    one = np.stack([corner, corner + side, corner + 1], axis=1)
    two = np.stack([corner + 1, corner + side, corner + side + 1], axis=1)
    spec = mujoco.MjSpec()
    spec.add_mesh(
        name="grid",
        uservert=vertices.ravel(),
        userface=np.concatenate([one, two]).ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="grid")
    model = spec.compile()

    light = simplified(model)

    assert light.mesh_facenum[0] < model.mesh_facenum[0] / 2
    used = light.mesh_vert[light.mesh_face[: light.mesh_facenum[0]].ravel()]
    np.testing.assert_allclose(
        np.ptp(used, axis=0), np.ptp(model.mesh_vert, axis=0), atol=MAX_CELL_M
    )
    assert light.mesh_face.max() < light.mesh_vertnum[0]
    assert model.mesh_facenum[0] == 2 * 99 * 99  # the original is untouched
