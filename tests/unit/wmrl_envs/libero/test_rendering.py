"""Checks of ``wmrl_envs.libero.rendering`` on a model of three geometries."""

import subprocess
import sys

import numpy as np
import pytest

from wmrl_envs.errors import DependencyNotInstalledError
from wmrl_envs.libero import rendering
from wmrl_envs.libero.culling import Culler
from wmrl_envs.libero.rendering import choose_gl, orient

pytestmark = pytest.mark.libero

SCENE = """
<mujoco>
  <asset><material name="mirror" reflectance="0.5"/></asset>
  <worldbody>
    <camera name="eye" pos="0 0 2" fovy="60"/>
    <light pos="0 0 3" castshadow="false"/>
    <geom name="seen" type="sphere" size="0.1" group="1"/>
    <geom name="beside" type="sphere" size="0.1" pos="5 0 0" group="1"/>
    <geom name="behind" type="sphere" size="0.1" pos="0 0 4" group="1"/>
    <geom name="mirror" type="box" size="0.3 0.3 0.1" pos="0 0 -1" group="1" {material}/>
    <geom name="edge" type="sphere" size="0.1" pos="1.2 0 0" group="1"/>
  </worldbody>
</mujoco>
"""


def unseen(material: str) -> set[str]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(SCENE.format(material=material))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mask = Culler(model, seen_groups=np.array([1])).unseen(data, 0)
    return {model.geom(i).name for i in np.flatnonzero(mask)}


def test_leaves_out_what_is_beside_or_behind_the_view() -> None:
    # At z = 0 the view reaches x = 2 tan 30 deg = 1.155, so a sphere of 0.1 at 1.2 is cut.
    assert unseen(material="") == {"beside", "behind"}


def test_keeps_what_a_mirror_shows() -> None:
    # The upper face of the box is at z = -0.9; the sphere at z = 4 appears at z = -5.8 in it.
    assert unseen(material='material="mirror"') == {"beside"}


def test_conventions_flip_a_raw_image() -> None:
    raw = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    np.testing.assert_array_equal(orient(raw, "upright")[0], raw[1])
    np.testing.assert_array_equal(orient(raw, "vla")[0, 0], raw[1, 1])
    np.testing.assert_array_equal(orient(raw, "raw"), raw)


def test_the_choice_of_gl_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    choice = choose_gl.__wrapped__()
    assert (choice.name, choice.reason) == ("osmesa", "MUJOCO_GL=osmesa is set")


def test_falls_back_to_osmesa_without_an_egl_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(rendering, "_count_egl_devices", lambda: 0)
    assert choose_gl.__wrapped__().name == "osmesa"


def test_a_missing_gl_library_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(rendering, "_load", lambda _library: None)
    with pytest.raises(DependencyNotInstalledError, match=r"run: apt-get install .*libosmesa6"):
        choose_gl.__wrapped__()


def test_a_missing_extra_is_one_clear_line() -> None:
    code = (
        "import sys; sys.modules['libero'] = None\n"
        "from wmrl_envs.errors import DependencyNotInstalledError\n"
        "from wmrl_envs.libero.env import LiberoEnv\n"
        "try: LiberoEnv()\n"
        "except DependencyNotInstalledError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "run: pip install 'wmrl-embodied[libero]'" in run.stdout
