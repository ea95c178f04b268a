"""Checks of ``wmrl_envs.libero.expert.scene`` on a scene of two boxes."""

import numpy as np
import pytest

from wmrl_envs.errors import InvalidInputError
from wmrl_envs.libero.expert.scene import Scene

mujoco = pytest.importorskip("mujoco", reason="needs the libero extra")
pytestmark = pytest.mark.libero

XML = """
<mujoco>
  <worldbody>
    <body name="mug_1_main" pos="1 2 3" euler="0 0 90">
      <freejoint/>
      <geom type="box" size="0.1 0.2 0.3" group="0"/>
      <body name="mug_1_lid" pos="0 0 0.5">
        <joint name="lid" type="slide" axis="0 0 1"/>
        <geom type="sphere" size="0.05" group="1"/>
      </body>
    </body>
    <body name="rack_1_main" pos="5 0 0"><geom type="box" size="1 1 1"/></body>
    <body name="hand">
      <site name="gripper0_grip_site" pos="0 0 0.7"/>
      <body><joint name="gripper0_finger_joint1" type="slide"/><geom size="0.01"/></body>
      <body><joint name="gripper0_finger_joint2" type="slide"/><geom size="0.01"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def scene() -> Scene:
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    data.joint("lid").qpos[0] = 0.1
    data.joint("gripper0_finger_joint1").qpos[0] = 0.04
    data.joint("gripper0_finger_joint2").qpos[0] = -0.03
    return Scene(model, data)


def test_poses_are_those_of_the_present_joints(scene: Scene) -> None:
    # No step was taken: the scene itself computed 3 + 0.5 + 0.1.
    np.testing.assert_allclose(scene.position("mug_1_lid"), [1.0, 2.0, 3.6])
    np.testing.assert_allclose(scene.hand_position, [0.0, 0.0, 0.7])


def test_an_object_is_found_without_its_suffix(scene: Scene) -> None:
    np.testing.assert_allclose(scene.position("mug_1"), [1.0, 2.0, 3.0])


def test_bounds_hold_the_turned_box_and_what_is_attached(scene: Scene) -> None:
    low, high = scene.bounds("mug_1")

    # Turned by 90 degrees: half widths 0.2 along x, 0.1 along y; the lid ends at 3.6 + 0.05.
    np.testing.assert_allclose(low, [0.8, 1.9, 2.7], atol=1e-9)
    np.testing.assert_allclose(high, [1.2, 2.1, 3.65], atol=1e-9)


def test_visual_vertices_leave_collision_shapes_out(scene: Scene) -> None:
    points = scene.vertices("mug_1", visual=True)

    np.testing.assert_allclose(points.min(axis=0), [0.95, 1.95, 3.55], atol=1e-9)


def test_clearance_is_from_the_lowest_point_to_the_origin(scene: Scene) -> None:
    assert scene.clearance("mug_1") == pytest.approx(0.3)


def test_the_finger_gap_is_the_sum_of_both_openings(scene: Scene) -> None:
    assert scene.finger_gap_m == pytest.approx(0.07)


def test_an_unknown_object_is_answered_with_those_there_are(scene: Scene) -> None:
    with pytest.raises(InvalidInputError, match=r"got 'cup_1'; choose one of mug_1, rack_1"):
        scene.position("cup_1")
