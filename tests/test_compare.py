"""Differences between two files of one robot: each is listed once, with its values and effect."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import few
from texts import joint, link, robot

import robomodel as rm
from robomodel.cli import main
from robomodel.description import Anchor, Description, Limits, Pose, rotation_from_rpy
from robomodel.description.poses import about, compose
from robomodel.model import build
from robomodel.reports.comparison.study import COMPARED_STATES, _Torques

PENDULUM = """<robot name="pendulum">
  <link name="base"/>
  <link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial></link>
  <joint name="pivot" type="revolute"><parent link="base"/><child link="bob"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>
</robot>"""


def listed(comparison: Any) -> list[tuple[str, str]]:
    return [(each.element, each.quantity) for each in comparison.differences]


def with_joint(d: Description, name: str, **changes: Any) -> Description:
    joints = tuple(replace(each, **changes) if each.name == name else each for each in d.joints)
    return replace(d, joints=joints)


def with_inertial(d: Description, name: str, **changes: Any) -> Description:
    return replace(d, links=tuple(
        replace(each, inertial=replace(each.inertial, **changes)) if each.name == name else each
        for each in d.links
    ))  # fmt: skip


@pytest.mark.slow_cases("xml-mini_cheetah", "sdf-mini_cheetah")
@pytest.mark.parametrize("name", few(rm.robots.names(), "four_bar", "puma560", "mini_cheetah"))
@pytest.mark.parametrize("ending", ["urdf", "sdf", "xml"])
def test_written_files_are_the_same_robot(name, ending, tmp_path):
    model = rm.robots.load(name)
    path = tmp_path / f"{name}.{ending}"
    write = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "xml": rm.write_mjcf}[ending]
    try:
        write(model, path, meshes="drop")
    except rm.DescriptionError:
        pytest.skip("the format has no words for this robot")
    there, back = rm.compare(model, path), rm.compare(path, model)
    assert there.same, str(there)
    assert back.same, str(back)


HIP = "HR_hip_link_joint"
CHANGES = {
    "damping": lambda d: with_joint(d, HIP, damping=0.1),
    "friction": lambda d: with_joint(d, HIP, friction=0.1),
    "armature": lambda d: with_joint(d, HIP, armature=0.1),
    "stiffness": lambda d: with_joint(d, HIP, stiffness=0.1),
    "axis": lambda d: with_joint(d, HIP, axis=(0.0, -1.0, 0.0)),
    "mass": lambda d: with_inertial(d, "HR_hip_link", mass=0.7),
    "inertia": lambda d: with_inertial(d, "HR_hip_link", inertia=(2e-3, 0, 0, 2e-3, 0, 4e-4)),
    "com": lambda d: with_inertial(d, "HR_hip_link", origin=Pose((0.0, 0.016, -0.03))),
}


@pytest.mark.parametrize("quantity", CHANGES)
def test_one_change_is_one_difference(quantity):
    model = rm.robots.load("mini_cheetah")
    comparison = rm.compare(model, build(CHANGES[quantity](model.description)))
    assert [each.quantity for each in comparison.differences] == [quantity]
    (each,) = comparison.differences
    assert each.element in (HIP, "HR_hip_link")
    assert 0.0 < each.torque < math.inf
    assert each.quantity in str(comparison)


@pytest.mark.parametrize(
    ("quantity", "moved", "b"),
    [
        ("origin", Pose((0.01, 0.02, 0.0)), (0.01, 0.02, 0.0)),
        ("zero", Pose(rotation=about((0.0, 1.0, 0.0), 0.3)), 0.3),
        ("orientation", Pose(rotation=about((1.0, 0.0, 0.0), 0.1)), (0.1, 0.0, 0.0)),
    ],
)
def test_a_moved_joint_counts_once_and_not_for_what_hangs_on_it(quantity, moved, b):
    model = rm.robots.load("mini_cheetah")
    (hip,) = (each for each in model.description.joints if each.name == HIP)
    other = with_joint(model.description, HIP, origin=compose(hip.origin, moved))
    (each,) = rm.compare(model, build(other)).differences
    assert (each.element, each.quantity) == (HIP, quantity)
    turn = np.array(hip.origin.rotation) if quantity != "zero" else np.eye(1)
    assert np.subtract(each.b, each.a) == pytest.approx(
        (turn @ np.atleast_1d(b)).squeeze(), abs=1e-12
    )


def test_effects_are_those_of_closed_forms():
    """On a pendulum without gravity tau = (I + m l²) a: armature adds to what is in brackets."""
    model = rm.load(PENDULUM, gravity=(0, 0, 0))
    other = with_joint(model.description, "pivot", armature=0.07)
    (each,) = rm.compare(model, build(other)).differences
    assert (each.a, each.b) == (0.0, 0.07)
    assert each.torque == pytest.approx(0.07 / (0.2 + 2 * 0.5**2), rel=1e-10)


def test_limits_have_no_effect_and_come_last():
    other = PENDULUM.replace('lower="-1"', 'lower="-2"').replace('effort="5"', 'effort="6"')
    comparison = rm.compare(PENDULUM, other.replace('mass value="2"', 'mass value="3"'))
    assert listed(comparison)[0] == ("bob", "mass")
    assert set(listed(comparison)[1:]) == {("pivot", "lower"), ("pivot", "effort_limit")}
    assert [each.torque for each in comparison.differences[1:]] == [0.0, 0.0]


def test_what_a_format_has_no_word_for_is_no_difference(tmp_path):
    stock = rm.load(PENDULUM)
    rm.write_mjcf(stock, tmp_path / "pendulum.xml")
    faster = PENDULUM.replace('velocity="3"', 'velocity="4"')
    assert rm.compare(faster, tmp_path / "pendulum.xml").same
    assert listed(rm.compare(faster, stock)) == [("pivot", "velocity_limit")]


def test_joints_of_other_names_are_those_at_their_place():
    text = rm.robots.path("four_bar").read_text()
    comparison = rm.compare(text, re.sub(r'"(joint|link)(\d)"', r'"\1_\2"', text))
    assert comparison.same
    assert ("joint1", "joint_1") in comparison.joints


def test_linkages_cut_at_other_joints_are_the_same():
    """The rocker hangs on the coupler, has its frame there, and a loop ties it to the base."""
    d = rm.robots.load("four_bar").description
    joint1, joint2, joint3 = d.joints
    (loop,) = d.loops
    d = with_inertial(d, "link3", origin=Pose((-0.5, 0.0, 0.0)))
    tied = replace(
        loop, name=joint3.name, predecessor=Anchor("base", joint3.origin),
        successor=Anchor("link3", Pose((-0.5, 0.0, 0.0))),
    )  # fmt: skip
    hung = replace(joint3, name=loop.name, parent="link2", origin=loop.predecessor.origin)
    other = build(replace(d, joints=(joint1, joint2, hung), loops=(tied,)))
    assert rm.compare(rm.robots.load("four_bar"), other).same
    heavier = build(with_inertial(other.description, "link3", mass=4.0))
    assert listed(rm.compare(rm.robots.load("four_bar"), heavier)) == [("link3", "mass")]


def test_ratios_bases_and_missing_parts():
    model = rm.robots.load("belt_leg")
    (gear, *others) = model.description.couplings
    other = replace(model.description, couplings=(replace(gear, ratio=5.0), *others))
    first = rm.compare(model, build(other)).differences[0]
    assert (first.quantity, first.a, first.b) == ("ratio to hip_ry_link_joint", 6.0, 5.0)
    floating = rm.load(rm.robots.path("belt_leg"), floating_base=True)
    assert listed(rm.compare(model, floating)) == [("robot", "base")]
    rotor = "hip_ry_rotor"
    bare = replace(
        model.description,
        links=tuple(each for each in model.description.links if each.name != rotor),
        joints=tuple(each for each in model.description.joints if each.child != rotor),
        couplings=tuple(others),
    )
    comparison = rm.compare(model, build(bare))
    assert ("hip_ry_rotor_joint", "missing") in listed(comparison)
    assert comparison.differences[0].torque == math.inf


def test_ball_joints_and_free_bodies():
    text = """<robot name="r"><link name="base"><inertial><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <link name="arm"><inertial><origin xyz="0 0 1"/><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="ball" type="spherical"><parent link="base"/><child link="arm"/>
      <origin xyz="0 0 0.5"/></joint></robot>"""
    a, b = (rm.load(each, floating_base=True) for each in (text, text.replace("0.5", "0.6")))
    (each,) = rm.compare(a, b).differences
    assert (each.element, each.quantity, each.a, each.b) == (
        "ball",
        "origin",
        (0, 0, 0.5),
        (0, 0, 0.6),
    )


def scaled(text, factor):
    """The inertia times a factor."""
    for k, x in (("ixx", 0.1), ("iyy", 0.2), ("izz", 0.3)):
        text = text.replace(f'{k}="{x}"', f'{k}="{factor * x}"')
    return text


TURNED = Pose(rotation=rotation_from_rpy(0.3, 0.0, 0.2))
IN_DEGREES = Pose(rotation=rotation_from_rpy(*np.degrees((0.3, 0.0, 0.2)).tolist()))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda t: t.replace('value="2"', 'value="2000"'), "unit"),
        (lambda t: t.replace('value="2"', 'value="3"'), "override"),
        (lambda t: t.replace("0 0 -0.5", "0 0 -19.68503937"), "unit"),  # inches
        (lambda t: t.replace("0 0 -0.5", "0 0 0.5"), "mirrored"),
        (lambda t: t.replace('ixx="0.1"', 'ixx="0.6"').replace('"0.2" iyz', '"0.7" iyz'),
         "composite"),
        (lambda t: t.replace('ixx="0.1"', 'ixx="0.3"').replace('izz="0.3"', 'izz="0.1"'), "axes"),
        (lambda t: scaled(t, 2.0), "override"),
        (lambda t: scaled(t, 1.5).replace('value="2"', 'value="3"'), ""),  # denser
        (lambda t: t.replace('axis xyz="0 1 0"', 'axis xyz="0 -1 0"'), "axis"),
        (lambda t: t.replace('upper="1"', 'upper="57.29578"'), "degrees"),
        (lambda t: t.replace('velocity="3"', 'velocity="28.6479"'), "unit"),  # rpm
        (lambda t: t.replace('effort="5"', 'effort="5000"'), "unit"),
        (lambda t: t.replace('effort="5"', 'effort="6"'), ""),
    ],
)  # fmt: skip
def test_causes(change, cause):
    """Of one number, or of the numbers of one fault; a denser or stronger part is no fault."""
    differences = rm.compare(PENDULUM, change(PENDULUM)).differences
    assert differences
    assert {each.cause for each in differences} <= {cause, ""}
    assert cause in {each.cause for each in differences}
    assert differences[0].source.line
    report = rm.validate(change(PENDULUM), reference=PENDULUM)
    named = [x for x in report.findings if x.check == (cause or "difference")]
    assert {x.severity for x in named} == {"warning" if cause else "note"}
    assert "reference" in named[0].message


def test_causes_in_descriptions():
    model = rm.robots.load("mini_cheetah")
    pair = [with_joint(model.description, HIP, origin=x) for x in (TURNED, IN_DEGREES)]
    (cause,) = {x.cause for x in rm.compare(*map(build, pair)).differences} - {""}
    assert cause == "degrees"
    gear = rm.robots.load("belt_leg").description
    first, *others = gear.couplings
    other = replace(gear, couplings=(replace(first, ratio=1.0 / first.ratio), *others))
    assert rm.compare(build(gear), build(other)).differences[0].cause == "ratio"


def test_parts_that_are_fixed_together():
    """The cause is that of the link; a body of one link is the sum of its parts without arms."""
    lump = """<link name="tip"><inertial><origin xyz="0 0 0.1"/><mass value="1"/><inertia ixx="0.1"
      ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="j" type="fixed">
      <parent link="bob"/><child link="tip"/><origin xyz="0.1 0.2 0.3"/></joint></robot>"""
    right = PENDULUM.replace("</robot>", lump)
    mass, *_ = (x for x in rm.compare(right, right.replace('value="1"', 'value="1000"')).differences
                if x.quantity == "mass")  # fmt: skip
    assert (mass.cause, mass.source.element) == ("unit", "link 'tip'")
    assert "'tip'" in mass.explanation
    (body,) = rm.load(right).bodies
    x, y, z = body.com
    one = re.sub(
        r"<inertial>.*?</inertial>",
        f'<inertial><origin xyz="{x} {y} {z}"/><mass value="3"/><inertia ixx="0.2" ixy="0" '
        'ixz="0" iyy="0.3" iyz="0" izz="0.4"/></inertial>',
        PENDULUM, flags=re.DOTALL,
    )  # fmt: skip
    (each,) = (x for x in rm.compare(right, one).differences if x.quantity == "inertia")
    assert each.cause == "composite"


def test_a_file_whose_loop_makes_no_mechanism_beside_one_that_does():
    text = rm.robots.path("four_bar").read_text()
    broken = text.replace('axis xyz="0 0 1"', 'axis xyz="1 0 0"', 1)
    report = rm.validate(broken, reference=text)
    assert [x.check for x in report.findings if x.severity == "error"] == ["load"]
    assert [x.source.element for x in report.findings if x.check == "axis"] == ["joint 'joint1'"]
    with pytest.raises(rm.DescriptionError):
        rm.validate(text, reference='<robot name="r"><link/></robot>')


def test_a_renamed_link_is_listed_as_a_pair_and_is_no_difference():
    renamed = PENDULUM.replace('"bob"', '"weight"')
    comparison = rm.compare(rm.load(PENDULUM), rm.load(renamed))
    assert comparison.same
    assert comparison.links == (("bob", "weight"),)
    assert "bob = weight" in str(comparison)
    assert rm.compare(rm.load(PENDULUM), rm.load(PENDULUM)).links == ()


def test_great_effects_are_factors_and_lengths_have_units():
    heavy = PENDULUM.replace('value="2"', 'value="200"')
    text = str(rm.compare(rm.load(PENDULUM), rm.load(heavy)))
    assert " times" in text
    assert "e+" not in text
    moved = PENDULUM.replace('<axis xyz="0 1 0"/>', '<origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>')
    comparison = rm.compare(rm.load(PENDULUM), rm.load(moved))
    assert not comparison.same
    assert all(re.search(r" m\b", str(each)) for each in comparison.differences)


def test_the_command(tmp_path, capsys):
    stock, other = tmp_path / "a.urdf", tmp_path / "b.urdf"
    stock.write_text(PENDULUM)
    other.write_text(PENDULUM.replace('mass value="2"', 'mass value="2.001"'))
    for arguments, status in (([], 1), (["--tolerance", "1e-2"], 0)):
        with pytest.raises(SystemExit) as end:
            main(["compare", str(stock), str(other), "--json", *arguments])
        document = json.loads(capsys.readouterr().out)
        assert end.value.code == status
        assert document["same"] is (status == 0)
    with pytest.raises(SystemExit) as end:
        main(["compare", str(stock), str(tmp_path / "none.urdf")])
    assert end.value.code == 2
    for file, status, checks in ((other, 1, {"override"}), (stock, 0, set())):
        with pytest.raises(SystemExit) as end:
            main(["validate", str(file), "--reference", str(stock), "--json"])
        document = json.loads(capsys.readouterr().out)
        assert end.value.code == status
        assert {x["check"] for x in document["findings"]} == checks
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit):
        main(["compare", str(stock), str(other), "--html", str(page)])
    assert "mass" in page.read_text()


def test_torques_change_at_as_many_configurations_as_the_page_states() -> None:
    for model in (rm.load(PENDULUM), rm.load(rm.robots.path("four_bar"))):
        q = _Torques(model).q
        assert len(np.unique(q, axis=0)) == COMPARED_STATES == 8
        assert np.allclose(model.close(q), q, atol=1e-9)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_joint_that_the_other_fixes_is_of_another_type(swapped):
    texts = [
        robot(
            link("upper"),
            link("fore"),
            joint("shoulder", "base", "upper"),
            joint("elbow", "upper", "fore", "0.3 0 0", kind=kind),
        )
        for kind in ("continuous", "fixed")
    ]
    a, b = (rm.load(text) for text in (reversed(texts) if swapped else texts))
    found = rm.compare(a, b).differences
    types = ("fixed", "revolute") if swapped else ("revolute", "fixed")
    assert [(x.a, x.b) for x in found if (x.element, x.quantity) == ("elbow", "type")] == [types]
    assert not [x for x in found if x.quantity == "missing"]


FORMATS = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "xml": rm.write_mjcf}


def beside(model, changed, ending, folder):
    """The comparison of a robot in URDF with a changed one in another format."""
    rm.write_urdf(model, folder / "a.urdf")
    FORMATS[ending](changed, folder / f"b.{ending}")
    return rm.compare(folder / "a.urdf", folder / f"b.{ending}")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", ["base", "link4", "tool"])
def test_renamed_links_are_pairs_in_every_format(name, ending, tmp_path):
    """The root, a link that moves, and one that is fixed to another."""
    text = rm.robots.path("puma560").read_text()
    held = (
        '<link name="tool"/><joint name="holds" type="fixed"><parent link="link6"/>'
        '<child link="tool"/><origin xyz="0 0.01 0.1" rpy="0 0.2 0"/></joint></robot>'
    )
    text = text.replace("</robot>", held)
    changed = rm.load(text.replace(f'"{name}"', f'"{name}_2"'))
    comparison = beside(rm.load(text), changed, ending, tmp_path)
    assert comparison.same
    assert comparison.links == ((name, f"{name}_2"),)


@pytest.mark.slow_cases("sdf", "xml", "urdf")
@pytest.mark.parametrize("ending", FORMATS)
def test_mirrored_tensors_are_named_in_every_format(ending, tmp_path):
    """Also where the writer lends moments of other links, which no motion can tell."""
    model = rm.robots.load("mini_cheetah")
    for name in ("HR_hip_link", "HR_abad_link"):
        (link,) = (each for each in model.description.links if each.name == name)
        xx, xy, xz, yy, yz, zz = link.inertial.inertia
        mirrored = with_inertial(model.description, name, inertia=(xx, -xy, xz, yy, -yz, zz))
        comparison = beside(model, build(mirrored), ending, tmp_path)
        found = [(x.element, x.quantity, x.cause) for x in comparison.differences]
        assert found == [(name, "inertia", "mirrored")]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_missing_joint_is_one_difference_in_every_format(ending, tmp_path):
    """And not a mobility, the parents of what hangs on it, or what its bodies weigh together."""
    model = rm.robots.load("puma560")
    joints = tuple(
        replace(each, type="fixed", limits=Limits()) if each.name == "joint4" else each
        for each in model.description.joints
    )
    welded = build(replace(model.description, joints=joints))
    comparison = beside(model, welded, ending, tmp_path)
    quantity = "missing" if ending == "xml" else "type"  # MJCF has no names of fixed joints
    assert listed(comparison) == [("joint4", quantity)]
    swapped = rm.compare(welded, model).differences
    assert [(x.element, x.a, x.b) for x in swapped] == [("joint4", "fixed", "revolute")]
    heavier = build(with_inertial(welded.description, "link5", mass=0.5))
    assert set(listed(rm.compare(model, heavier))) == {("joint4", "type"), ("link5", "mass")}
    short = replace(
        model.description,
        joints=tuple(each for each in model.description.joints if each.name != "joint6"),
        links=tuple(each for each in model.description.links if each.name != "link6"),
    )
    assert set(listed(rm.compare(model, build(short)))) == {
        ("joint6", "missing"),
        ("link6", "missing"),
    }
