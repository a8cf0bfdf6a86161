"""Universal joints of the tree: two axes in one element, as in SDF."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm

INERTIAL = """<inertial><pose>0 0.1 0.2 0 0 0</pose><mass>{m}</mass>
  <inertia><ixx>0.3</ixx><iyy>0.2</iyy><izz>0.15</izz></inertia></inertial>"""
URDF = """<robot name="shaft"><link name="world"/>
<link name="crossed"><inertial><origin xyz="0 0.1 0.2"/><mass value="1.5"/>
  <inertia ixx="0.3" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="u" type="universal"{more}>
  <parent link="world"/><child link="crossed"/><origin xyz="0.1 0 0.5" rpy="0.2 0 0.3"/>
  <axis xyz="1 0 0"/>{first}
  {second}
</joint></robot>"""
AXIS2 = """<axis2 xyz="0 0.6 0.8"><limit lower="-0.5" upper="0.7" effort="3"/>
  <dynamics damping="0.2"/></axis2>"""
SDF = f"""<sdf version="1.9"><model name="shaft"><link name="crossed">
  <pose>0.1 0 0.5 0.2 0 0.3</pose>{INERTIAL.format(m=1.5)}</link>
<joint name="u" type="universal"><parent>world</parent><child>crossed</child>
  <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 0.6 0.8</xyz>
    <limit><lower>-0.5</lower><upper>0.7</upper><effort>3</effort></limit>
    <dynamics><damping>0.2</damping></dynamics></axis2></joint></model></sdf>"""


def text(first: str = "", second: str = AXIS2, more: str = "") -> str:
    return URDF.format(first=first, second=second, more=more)


def answers(model: rm.Model) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    q = model.random_configuration(rng)
    q = np.array([0.4, -0.3]) if model.nq == 2 else q
    v, tau = rng.normal(size=(2, model.nv))
    pose = rm.frame_pose(model, q, "crossed", backend="numpy")
    return rm.aba(model, q, v, tau, backend="numpy"), rm.crba(model, q, backend="numpy"), pose


def test_it_is_what_sdf_reads(tmp_path: Path) -> None:
    model = rm.load(text())
    assert model.joint_names == ("u", "u::2")
    (tmp_path / "shaft.sdf").write_text(SDF)
    other = rm.load(tmp_path / "shaft.sdf")
    assert other.joint_names == model.joint_names
    for x, y in zip(answers(model), answers(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())


def test_the_pose_is_two_turns() -> None:
    model = rm.load(text())
    *_, pose = answers(model)

    def turn(axis, angle):
        k = np.cross(np.eye(3), axis)
        return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k

    start = turn([0, 0, 1], 0.3) @ turn([1, 0, 0], 0.2)
    expected = start @ turn([1, 0, 0], 0.4) @ turn([0, 0.6, 0.8], -0.3)
    np.testing.assert_allclose(pose[:3, :3], expected, atol=1e-14)
    np.testing.assert_allclose(pose[:3, 3], [0.1, 0.0, 0.5], atol=1e-15)


def test_each_axis_has_its_own_words() -> None:
    first, second = rm.load(text('<limit lower="-1" upper="1"/><rotor inertia="1e-4" ratio="5"/>')
                            ).description.joints[:2]  # fmt: skip
    assert (first.type, second.type) == ("revolute", "revolute")
    assert (first.limits.lower, second.limits.upper, second.limits.effort) == (-1.0, 0.7, 3.0)
    assert (first.damping, second.damping) == (0.0, 0.2)
    free = rm.load(text(second='<axis2 xyz="0 1 0"/>')).description.joints
    assert [joint.limits.upper for joint in free] == [np.inf, np.inf]
    marked = rm.load(text(more=' independent="true false"')).description.joints
    assert [joint.independent for joint in marked] == [True, False]


@pytest.mark.parametrize("format_", ["urdf", "sdf", "mjcf"])
def test_motors_of_both_axes_are_written(tmp_path: Path, format_: str) -> None:
    second = '<axis2 xyz="0 0.6 0.8"><motor effort="2" velocity="7"/></axis2>'
    model = rm.load(text('<motor effort="3"/>', second))
    path = tmp_path / f"shaft.{format_}"
    {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "mjcf": rm.write_mjcf}[format_](model, path)
    again = rm.load(path)
    for each in (model, again):
        found = {x.name: (x.effort_limit, x.velocity_limit) for x in each.actuators}
        assert found == {"u": (3.0, np.inf), "u::2": (2.0, 7.0)}


@pytest.mark.parametrize("format_", ["urdf", "sdf"])
def test_written_and_read_back(tmp_path: Path, format_: str) -> None:
    model = rm.load(text())
    path = tmp_path / f"shaft.{format_}"
    (rm.write_urdf if format_ == "urdf" else rm.write_sdf)(model, path)
    assert ('type="universal"' in path.read_text()) == (format_ == "sdf")
    again = rm.load(path)
    assert again.joint_names == model.joint_names
    for x, y in zip(answers(again), answers(model), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())


@pytest.mark.parametrize(
    ("second", "more", "words"),
    [
        ("", "", ":4: joint 'u': a universal joint needs <axis2>"),
        ('<axis2 xyz="-2 0 0"/>', "", ":4: joint 'u': <axis2> is parallel to <axis>"),
        ('<axis2 xyz="0 0 0"/>', "", "zero"),
        (
            '<axis2 xyz="0 1 0"><origin/></axis2>',
            "",
            ":7: joint 'u': <origin> has no place",
        ),
        (AXIS2, ' independent="true false true"', "one word, or two"),
        (AXIS2, ' independent="maybe"', "independent"),
    ],
)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_what_cannot_be_is_refused(second: str, more: str, words: str) -> None:
    with pytest.raises(rm.DescriptionError) as caught:
        rm.load(text(second=second, more=more))
    assert re.search(words, str(caught.value)), str(caught.value)
