"""A privileged, read-only view of a LIBERO scene: where everything is right now.

Notation: positions are metres in the world frame (x forward from the robot, y left, z up);
rotations are :class:`scipy.spatial.transform.Rotation` from the body's frame to the world's.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from wmrl_envs.errors import InvalidInputError

Points = NDArray[np.float64]

GRIP_SITE = "gripper0_grip_site"
FINGER_JOINTS = ("gripper0_finger_joint1", "gripper0_finger_joint2")

VISUAL_GROUP = 1
"""Geometry group of the meshes that are seen; group 0 holds the convex parts that collide."""

# Values of ``mujoco.mjtGeom``, which must not be imported before a scene exists.
_SPHERE, _CAPSULE, _CYLINDER, _MESH = 2, 3, 5, 7

_CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)


class Scene:
    """Live poses, vertices and joint values, by the names used in LIBERO's task files.

    Nothing is copied ahead of time: every call reads the current simulator state. Make a new scene
    after each reset.
    """

    def __init__(self, model: Any, data: Any) -> None:
        """Keep references to the simulator and compute the poses of its present state.

        A simulator that has just been reset may not have computed them yet. Nothing that decides
        its future is written.

        Args:
            model: The ``mujoco.MjModel``, whose bindings carry no types.
            data: Its ``mujoco.MjData``.
        """
        import mujoco

        mujoco.mj_kinematics(model, data)
        self._model = model
        self._data = data
        self._body_ids = {model.body(i).name: i for i in range(model.nbody)}
        self._local_vertices: dict[tuple[str, bool], list[tuple[int, Points]]] = {}

    @property
    def hand_position(self) -> Points:
        """Point between the finger tips ``(3,)``."""
        return self._data.site(GRIP_SITE).xpos.copy()

    @property
    def hand_rotation(self) -> Rotation:
        """Orientation of the hand; at the official starts the fingers close along world y."""
        return Rotation.from_matrix(self._data.site(GRIP_SITE).xmat.reshape(3, 3))

    @property
    def finger_gap_m(self) -> float:
        """Distance between the finger pads; 0.08 when fully open."""
        left, right = (self.joint(name) for name in FINGER_JOINTS)
        return left - right

    def position(self, name: str) -> Points:
        """Origin of an object or fixture ``(3,)``."""
        return self._data.xpos[self._body(name)].copy()

    def rotation(self, name: str) -> Rotation:
        """Orientation of an object or fixture."""
        return Rotation.from_matrix(self._data.xmat[self._body(name)].reshape(3, 3))

    def site(self, name: str) -> Points:
        """Centre of a named region ``(3,)``."""
        return self._data.site(name).xpos.copy()

    def joint(self, name: str) -> float:
        """Value of a one-dimensional joint, in metres or radians."""
        return float(self._data.joint(name).qpos[0])

    def vertices(self, name: str, *, visual: bool = False) -> Points:
        """Vertices ``(n, 3)`` of an object with everything attached to it.

        Args:
            name: Object or fixture.
            visual: Take only what is seen, which is finer than what collides; use it where the
                true shape of a thin wall matters.
        """
        key = (name, visual)
        if key not in self._local_vertices:
            self._local_vertices[key] = self._collect_vertices(self._body(name), visual=visual)
        data = self._data
        return np.concatenate(
            [
                points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
                for geom, points in self._local_vertices[key]
            ]
        )

    def bounds(self, name: str) -> tuple[Points, Points]:
        """Lowest and highest corner ``(3,), (3,)`` of an object's axis-aligned box."""
        points = self.vertices(name)
        return points.min(axis=0), points.max(axis=0)

    def clearance(self, name: str) -> float:
        """Height of an object's origin above its lowest point, in its present pose."""
        return float(self.position(name)[2] - self.bounds(name)[0][2])

    def _body(self, name: str) -> int:
        for candidate in (f"{name}_main", f"{name}_base", name):
            if candidate in self._body_ids:
                return self._body_ids[candidate]
        known = sorted(body.removesuffix("_main") for body in self._body_ids if "main" in body)
        raise InvalidInputError(
            f"name must be an object of the scene, got {name!r}; choose one of {', '.join(known)}"
        )

    def _collect_vertices(self, root: int, *, visual: bool) -> list[tuple[int, Points]]:
        model = self._model
        collected = []
        for geom in range(model.ngeom):
            if visual and model.geom_group[geom] != VISUAL_GROUP:
                continue
            if self._is_part_of(model.geom_bodyid[geom], root):
                collected.append((geom, self._geom_vertices(geom)))
        return collected

    def _is_part_of(self, body: int, root: int) -> bool:
        while body not in (0, root):
            body = self._model.body_parentid[body]
        return body == root

    def _geom_vertices(self, geom: int) -> Points:
        model = self._model
        kind, size = model.geom_type[geom], model.geom_size[geom]
        if kind == _MESH:
            mesh = model.geom_dataid[geom]
            start = model.mesh_vertadr[mesh]
            return model.mesh_vert[start : start + model.mesh_vertnum[mesh]].astype(float)
        if kind == _SPHERE:
            return _CORNERS * size[0]
        if kind in (_CYLINDER, _CAPSULE):
            return _CORNERS * np.array([size[0], size[0], size[1]])
        return _CORNERS * size
