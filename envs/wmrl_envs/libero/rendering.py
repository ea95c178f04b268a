"""Rendering: images of a simulation, off screen, with one GL context for each renderer.

Images follow one of three conventions (``raw`` is what OpenGL returns, bottom row first):

=============  =======================  ===================================================
``raw``        as read                  upside down
``upright``    ``raw[::-1]``            as a person sees the scene
``vla``        ``raw[::-1, ::-1]``      upright, mirrored left to right: what published
                                        vision-language-action checkpoints were trained on
=============  =======================  ===================================================
"""

import atexit
import ctypes
import functools
import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmrl_envs.errors import DependencyNotInstalledError, InvalidInputError
from wmrl_envs.libero.culling import Culler
from wmrl_envs.libero.meshes import simplified

if TYPE_CHECKING:
    import mujoco

Image = NDArray[np.uint8]

CAMERAS = {"agentview": "agentview", "wrist": "robot0_eye_in_hand"}
"""Camera in the simulator, by the name used in observations."""

CONVENTIONS = ("vla", "upright", "raw")

APT_COMMAND = (
    "apt-get install -y --no-install-recommends libosmesa6 libegl1 libgl1 libglx-mesa0 "
    "libegl-mesa0 libgles2 libgl1-mesa-dri libglib2.0-0"
)

MAX_GEOMS = 1000
"""Room for geometries in a scene: robosuite's value, which decides what is drawn."""

_EGL_LIBRARY = "libEGL.so.1"
_OSMESA_LIBRARIES = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")
# Collision shapes and visual meshes, as robosuite shows them, and a group no model of it uses.
_HIDDEN_GROUP, _SEEN_GROUP, _CULLED_GROUP = 0, 1, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class GlChoice:
    """Which GL back end renders, and why."""

    name: str
    """Value of ``MUJOCO_GL``: ``egl`` or ``osmesa``, unless the user set another."""

    reason: str


@functools.cache
def choose_gl() -> GlChoice:
    """Return the back end this process renders with; EGL if it finds a device, else OSMesa.

    Raises:
        DependencyNotInstalledError: If neither library can be loaded.
    """
    asked = os.environ.get("MUJOCO_GL", "").strip().lower()
    if asked:
        return GlChoice(name=asked, reason=f"MUJOCO_GL={asked} is set")
    devices = _count_egl_devices()
    if devices:
        return GlChoice(name="egl", reason=f"{_EGL_LIBRARY} finds {devices} device(s)")
    for library in _OSMESA_LIBRARIES:
        if _load(library) is not None:
            return GlChoice(name="osmesa", reason=f"EGL finds no device; {library} is there")
    raise DependencyNotInstalledError(
        f"a GL library must be installed to use LIBERO, got neither EGL nor OSMesa; "
        f"run: {APT_COMMAND}"
    )


def orient(image: Image, convention: str) -> Image:
    """Return a raw image in a convention, as a contiguous copy."""
    flips = {"vla": np.s_[::-1, ::-1], "upright": np.s_[::-1], "raw": np.s_[:]}
    return np.ascontiguousarray(image[flips[convention]])


class Renderer:
    """Off-screen images of one model.

    Every GL context of a process is current for all of it until another is made so; drawing or
    freeing under a foreign context silently gives wrong images, so each call sets its own first.
    """

    def __init__(
        self, model: "mujoco.MjModel", *, size: int, multisample: bool, simplify: bool
    ) -> None:
        """Create a GL context and upload the model's meshes and textures.

        Args:
            model: Model to draw; its visual quality settings are overwritten.
            size: Side of the square images in pixels.
            multisample: Draw with the model's anti-aliasing; without it edges are jagged, images
                are cheaper and not comparable with those of the official pipeline.
            simplify: Draw without mirrors and details below about 8 mm: cheaper by two to five
                times, and not comparable either.

        Raises:
            DependencyNotInstalledError: If no GL context can be created.
        """
        import mujoco

        self._mujoco = mujoco
        self._model = model
        self._size = size
        self._gl = _create_context(size)
        self._gl.make_current()
        model.vis.global_.offwidth = size
        model.vis.global_.offheight = size
        if not multisample:
            model.vis.quality.offsamples = 0
        drawn = simplified(model) if simplify else model
        self._context = mujoco.MjrContext(drawn, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=MAX_GEOMS)
        if simplify:
            self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._options = mujoco.MjvOption()
        self._options.geomgroup[_HIDDEN_GROUP] = 0
        self._options.geomgroup[_SEEN_GROUP] = 1
        self._options.geomgroup[_CULLED_GROUP] = 0
        self._culler = Culler(model, seen_groups=np.flatnonzero(self._options.geomgroup))
        self._perturbation = mujoco.MjvPerturb()
        self._viewport = mujoco.MjrRect(0, 0, size, size)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        # Registered after the display's own exit handler, hence run before it.
        atexit.register(self.close)

    def render(self, data: "mujoco.MjData", camera: str) -> Image:
        """Return the raw image ``(size, size, 3)`` of a camera of :data:`CAMERAS`, or of the model.

        Args:
            data: State to draw; its kinematics must be up to date.
            camera: Name of the camera.
        """
        mujoco = self._mujoco
        name = CAMERAS.get(camera, camera)
        camera_id = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_CAMERA, name)
        if camera_id < 0:
            raise InvalidInputError(f"camera must exist in the model, got {camera!r}")
        self._camera.fixedcamid = camera_id
        image = np.empty((self._size, self._size, 3), dtype=np.uint8)
        groups = self._model.geom_group.copy()
        self._model.geom_group[self._culler.unseen(data, camera_id)] = _CULLED_GROUP
        mujoco.mjv_updateScene(
            self._model, data, self._options, self._perturbation, self._camera,
            mujoco.mjtCatBit.mjCAT_ALL, self._scene,
        )  # fmt: skip
        self._model.geom_group[:] = groups
        self._gl.make_current()
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        mujoco.mjr_readPixels(image, None, self._viewport, self._context)
        return image

    def close(self) -> None:
        """Free the GL context; further calls do nothing."""
        if self._context is None:
            return
        atexit.unregister(self.close)
        self._gl.make_current()
        self._context.free()
        self._gl.free()
        self._context = None


def _create_context(size: int) -> Any:
    choice = choose_gl()
    back_end = choice.name if choice.name in {"egl", "osmesa"} else "glfw"
    try:
        return importlib.import_module(f"mujoco.{back_end}").GLContext(size, size)
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise DependencyNotInstalledError(
            f"a GL context must be available to render, got {error} from {choice.name} "
            f"({choice.reason}); run: {APT_COMMAND} -- or set MUJOCO_GL=osmesa"
        ) from error


def _count_egl_devices() -> int:
    library = _load(_EGL_LIBRARY)
    if library is None:
        return 0
    library.eglGetProcAddress.restype = ctypes.c_void_p
    address = library.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return 0
    query = ctypes.CFUNCTYPE(
        ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
    )(address)
    count = ctypes.c_int(0)
    return count.value if query(0, None, ctypes.byref(count)) else 0


def _load(library: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(library)
    except OSError:
        return None
