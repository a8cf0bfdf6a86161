"""Numbers of limbs against those of their mirror images and copies: what differs is told, once."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import joint, link, loop, robot

import robomodel as rm
from robomodel.reports.comparison.match import assigned
from robomodel.reports.document import Finding
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.twin_checks import check_twins, find_symmetries

DATA = Path(__file__).parent / "data" / "twins"


def text(name: str, *changes: tuple[str, str]) -> str:
    """A file of sound twins with changes, each of which is at one place."""
    result = (DATA / name).read_text(encoding="utf-8")
    for old, new in changes:
        assert result.count(old) == 1, old
        result = result.replace(old, new)
    return result


def told(file: str) -> list[Finding]:
    """Warnings that compare limbs."""
    findings = check_twins(CheckContext(rm.load(file)))
    return [each for each in findings if each.severity != "note"]


def elements(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(each.check, each.source.element) for each in findings}


@pytest.mark.parametrize(
    "name",
    ["gripper_turned.urdf", "gripper_mirrored.urdf", "hand.urdf", "biped.urdf", "walker.xml"],
)
def test_sound_twins_have_no_findings(name: str) -> None:
    assert told(text(name)) == []


def test_maps_between_limbs() -> None:
    """A mirror image, a half turn, and turns by 120° about the axis of a hand."""
    maps = {}
    for name in ("biped", "gripper_turned", "hand"):
        twins, _ = find_symmetries(CheckContext(rm.load(text(f"{name}.urdf"))))
        assert all(each.placed and each.share > 0.99 for each in twins)
        maps[name] = [each.map for each in twins]
    assert np.allclose(maps["biped"], [np.diag([1.0, -1.0, 1.0])])
    assert np.allclose(maps["gripper_turned"], [np.diag([-1.0, -1.0, 1.0])] * 2)
    turns = [round(math.degrees(math.atan2(by[1, 0], by[0, 0]))) for by in maps["hand"]]
    assert sorted(turns) == [-120, 120, 120]


TARSUS = (
    '<origin xyz="0.02 0.003 -0.18"/><mass value="0.95"/><inertia ixx="0.012" iyy="0.0125" '
    'izz="0.0006"'
)
KNEE = '<child link="rightknee"/><origin xyz="0.01 0 -0.24"/>'


@pytest.mark.parametrize(
    ("old", "new", "check", "element", "value"),
    [
        (TARSUS, '<origin xyz="0.02 0.003 -0.18"/><mass value="950"/><inertia ixx="12" iyy="12.5" '
                 'izz="0.6"', "unit", "link 'lefttarsus'", 1000.0),
        (TARSUS, TARSUS.replace("-0.18", "0.02"), "asymmetry", "link 'lefttarsus'", 0.2),
        (TARSUS, TARSUS.replace("0.0125", "0.0095"), "asymmetry", "link 'lefttarsus'", None),
        (KNEE, KNEE.replace("0.01 ", "0.07 "), "anchor", "joint 'right_knee'", 0.06),
        ('"left_knee_motor"><mechanicalReduction>16', '"left_knee_motor"><mechanicalReduction>160',
         "ratio", "transmission 'left_knee_drive'", 160.0),
        ('"left_foot_motor"><mechanicalReduction>50', '"left_foot_motor"><mechanicalReduction>-50',
         "ratio", "transmission 'left_foot_drive'", -50.0),
        ('<limit lower="-0.3" upper="0.5"', '<limit lower="-0.5" upper="0.3"',
         "axis", "joint 'left_hip_roll'", None),
    ],
)  # fmt: skip
def test_one_fault_of_a_biped(
    old: str, new: str, check: str, element: str, value: float | None
) -> None:
    """It is told at its element; all other numbers agree."""
    findings = told(text("biped.urdf", (old, new)))
    assert (check, element) in elements(findings)
    assert len({each.check for each in findings}) == 1
    other = element.replace("left", "\0").replace("right", "left").replace("\0", "right")
    assert {each.source.element for each in findings} <= {element, other}
    if value is not None:
        assert value in (pytest.approx(each.value) for each in findings)


def test_a_missing_inertial() -> None:
    wrong = re.sub(r'(<link name="lefttarsus">).*?(</link>)', r"\1\2", text("biped.urdf"))
    assert elements(told(wrong)) == {("override", "link 'lefttarsus'")}


def test_two_faults_of_one_link_and_a_wrong_limb() -> None:
    """Faults neither hide each other nor the pair."""
    wrong = text("biped.urdf", (TARSUS, TARSUS.replace("0.95", "2.9").replace("-0.18", "-0.4")))
    assert {each.source.element for each in told(wrong)} >= {"link 'lefttarsus'"}
    assert {each.message.split()[0] for each in told(wrong)} == {"its", "weighs"}
    three = text("hand.urdf").replace(
        '<link name="finger2_proximal"><inertial><origin xyz="0 0 0.025"/><mass value="0.04"/>',
        '<link name="finger2_proximal"><inertial><origin xyz="0 0 0.02"/><mass value="0.09"/>',
    )
    assert {each.source.element for each in told(three)} == {"link 'finger2_proximal'"}


@pytest.mark.parametrize("frames", ["turned", "mirrored"])
@pytest.mark.parametrize(("joint_name", "factor"), [("knuckle", -1.0), ("finger", 10.0)])
def test_ratios_by_the_motions_that_they_give(frames: str, joint_name: str, factor: float) -> None:
    """One finding, at the joint whose motion is not the image; its leader's side is right."""
    sound = text(f"gripper_{frames}.urdf")
    pattern = rf'(name="right_inner_{joint_name}_joint".*?multiplier=")(-?\d+)'
    wrong = re.sub(pattern, lambda m: f"{m[1]}{factor * float(m[2]):g}", sound, count=1)
    (finding,) = told(wrong)
    assert finding.check == "ratio"
    assert finding.source.element == f"joint 'right_inner_{joint_name}_joint'"
    # independently: the poses of the two halves at one position
    model, by = (
        rm.load(wrong),
        np.diag([-1.0, -1.0, 1.0] if frames == "turned" else [1.0, -1.0, 1.0]),
    )
    q = model.configuration({"finger_joint": 0.5})
    off = {
        part: float(np.abs(by @ rm.frame_pose(model, q, f"left_{part}")[:3, :3]
                           @ by - rm.frame_pose(model, q, f"right_{part}")[:3, :3]).max())
        for part in ("outer_knuckle", "inner_knuckle", "inner_finger")
        if frames == "mirrored"
    }  # fmt: skip
    assert [part for part, x in off.items() if x > 1e-6] == [f"inner_{joint_name}"] * bool(off)


def test_motors_and_ends_of_loops_in_mjcf() -> None:
    """A gear of ten times; a rod's end 5 mm off, where drawings differ by 4 mm in other numbers."""
    ten = text("walker.xml", ('joint="left_hip" gear="9"', 'joint="left_hip" gear="90"'))
    assert ("ratio", "motor 'left_hip_motor'") in elements(told(ten))
    drawn = text("walker.xml").replace('pos="0 0.005 -0.11" mass="1.4"',
                                       'pos="0.004 0.005 -0.11" mass="1.412"')  # fmt: skip
    drawn = drawn.replace('pos="-0.045000 0 0" mass="0.09"', 'pos="-0.041 0 0" mass="0.0908"', 1)
    assert told(drawn) == []
    (end,) = told(drawn.replace('name="left_rod_end" pos="0.01', 'name="left_rod_end" pos="0.015'))
    assert (end.check, end.source.element) == ("anchor", "connect 'left_pin'")
    assert "0.015 0 -0.188" in end.message


def limb(side: str, y: float, more: str = "", *, slid: float = 0.0, turn: float = 0.0) -> str:
    """A hip about y, a shank and a wheel; frames of the shank's joint may be elsewhere on its axis.

    ``turn``: the limb at zero is turned about its hip by this.
    """
    m = math.copysign(1.0, y)
    inertial = (
        '<inertial><origin xyz="{} {} {}"/><mass value="{}"/><inertia ixx="0.01" iyy="0.011" '
        'izz="0.003" ixy="0" ixz="0.0004" iyz="0"/></inertial>'
    )
    return (
        link(f"{side}_thigh", inertial.format(0.01, 0.02 * m, -0.1, 2.0))
        + link(f"{side}_shank", inertial.format(0.02, 0.01 * m - slid, -0.12, 1.0))
        + link(f"{side}_wheel", inertial.format(0.0, 0.005 * m, 0.0, 0.5))
        + joint(f"{side}_hip", "base", f"{side}_thigh", f"0 {y} 0", axis="0 1 0",
                rpy=f"0 {turn} 0")
        + joint(f"{side}_knee", f"{side}_thigh", f"{side}_shank", f"0 {0.03 * m + slid} -0.25",
                axis="0 1 0")
        + joint(f"{side}_axle", f"{side}_shank", f"{side}_wheel", f"0.01 {0.02 * m - slid} -0.3",
                axis="0 1 0")
        + more
    )  # fmt: skip


def test_frames_and_zeros_of_files_are_free() -> None:
    """A joint's frame may be anywhere on its axis, and its zero position another one."""
    for changes in ({}, {"slid": 0.04}, {"turn": math.pi}):
        assert told(robot(limb("left", 0.1), limb("right", -0.1, **changes))) == []
    wrong = robot(limb("left", 0.1), limb("right", -0.1)).replace("0 -0.03 -0.25", "0 -0.07 -0.25")
    assert ("anchor", "joint 'right_knee'") in elements(told(wrong))


def test_wheels_turn_forward_by_equal_signs() -> None:
    """Legs that are half turns of each other, and wheels that are not: no fault."""
    legs = [limb(f"{end}_{side}", y).replace('"0 0.1 0"', f'"{x} 0.1 0"')
            .replace('"0 -0.1 0"', f'"{x} -0.1 0"')
            for end, x in (("front", 0.3), ("hind", -0.3))
            for side, y in (("left", 0.1), ("right", -0.1))]  # fmt: skip
    assert told(robot(*legs)) == []
    knee = re.sub(r'(name="front_left_knee".*?<axis xyz="0 )1', r"\g<1>-1", robot(*legs), count=1)
    assert "axis" in {each.check for each in told(knee)}


def test_another_part_is_a_note() -> None:
    """A shank that differs in mass, centre, inertia and the place of its wheel is another one."""
    other = limb("right", -0.1).replace('-0.12"/><mass value="1.0"/>', '-0.2"/><mass value="2.5"/>')
    other = other.replace("0.01 -0.02 -0.3", "0.01 -0.02 -0.4")
    findings = list(check_twins(CheckContext(rm.load(robot(limb("left", 0.1), other)))))
    assert {(each.severity, each.check) for each in findings} == {("note", "asymmetry")}
    assert {each.source.element for each in findings} == {"link 'left_shank'", "link 'right_shank'"}


@pytest.mark.parametrize("base", [False, True])
def test_a_floating_base_a_ball_and_a_loop(base: bool) -> None:
    """Ball joints have no axis; a spherical loop between the legs belongs to both."""
    level = (
        '<inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.002" iyy="0.004" '
        'izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    legs = [
        limb(side, y, link(f"{side}_arm", level) + joint(
            f"{side}_ball", "base", f"{side}_arm", f"0 {2 * y} 0.2", kind="spherical"))
        for side, y in (("left", 0.1), ("right", -0.1))
    ]  # fmt: skip
    tie = loop("tie", "spherical", "left_shank", "right_shank", "0 -0.13 0", "0 0.13 0")
    for more in ("", tie):
        model = rm.load(robot(*legs, more), floating_base=base)
        findings = check_twins(CheckContext(model))
        assert [each for each in findings if each.severity != "note"] == []


# ---- what other programs stumble over ------------------------------------------------------------


def test_meshes_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "there.stl").write_bytes(b"solid there\nendsolid there\n")
    shape = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    file = tmp_path / "robot.urdf"
    file.write_text(
        robot(
            link("a", shape.format("there.stl") + shape.format("gone.stl")),
            link("b", shape.format("package://nowhere/gone.stl")),
            joint("j", "base", "a"),
            joint("k", "a", "b"),
        )
    )
    found = [x for x in rm.validate(file).findings if x.check == "mesh-missing"]
    assert {each.source.element for each in found} == {"link 'a'", "link 'b'"}
    assert {each.severity for each in found} == {"warning"}
    assert not any("there.stl" in each.message for each in found)
    assert not [x for x in rm.validate(file.read_text()).findings if x.check == "mesh-missing"]


def test_limits_of_zero() -> None:
    limit = '<limit lower="-1" upper="1" effort="{}" velocity="{}"/>'
    for effort, velocity, severity in ((0, 0, "warning"), (0, 5, "note"), (5, 5, None)):
        more = limit.format(effort, velocity)
        report = rm.validate(robot(link("a"), joint("j", "base", "a", kind="revolute", more=more)))
        found = [each.severity for each in report.findings if each.check == "zero-limit"]
        assert found == ([severity] if severity else [])


SERVO = """<mujoco><option timestep="0.002" integrator="{integrator}" gravity="0 0 0"/><worldbody>
<body><joint name="a" axis="0 1 0"/><inertial pos="0 0 -0.1" mass="1" diaginertia="{i} {i} {i}"/>
</body></worldbody><actuator><position name="s" joint="a" kp="{kp}" kv="{kv}" gear="2"/></actuator>
</mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "kp", "kv", "severity"),
    [
        ("Euler", 10.0, 7.0, "warning"),
        ("Euler", 10.0, 0.5, None),
        ("implicitfast", 10.0, 7.0, "note"),
        ("Euler", 6.4e3, 0.0, "warning"),
        ("Euler", 4.8e3, 0.0, None),
    ],
)
def test_gains_that_a_step_does_not_hold(
    integrator: str,
    kp: float,
    kv: float,
    severity: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As MuJoCo's own steps show, from a small velocity."""
    mujoco = pytest.importorskip("mujoco")
    inertia = 0.0129  # 0.0229 about the joint
    file = SERVO.format(integrator=integrator, kp=kp, kv=kv, i=inertia)
    found = [x for x in rm.validate(file).findings if x.check == "gain"]
    assert [each.severity for each in found] == ([severity] if severity else [])
    monkeypatch.chdir(tmp_path)  # MuJoCo logs there
    model = mujoco.MjModel.from_xml_string(file)
    data = mujoco.MjData(model)
    data.qvel[0] = 1e-6
    for _ in range(300):
        mujoco.mj_step(model, data)
    grown = bool(abs(data.qpos[0]) > 1e-6 or data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)
    assert grown == (severity == "warning")


LEFT = (
    '<link name="lefttarsus"><inertial><origin xyz="0.02 0.003 -0.18"/><mass value="0.95"/>'
    '<inertia ixx="0.012" iyy="0.0125" izz="0.0006" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
RIGHT = LEFT.replace("left", "right").replace(" 0.003", " -0.003")


def drawn(mesh: str, moments: str = 'iyz="0.002"', at: str = "0.04") -> str:
    """The inertial and drawing of a tarsus that is not its own mirror image."""
    shape = f'<geometry><mesh filename="{mesh}"/></geometry>'
    return (
        f'<inertial><origin xyz="0.02 {at} -0.18"/><mass value="0.95"/><inertia ixx="0.012" '
        f'iyy="0.0125" izz="0.0006" ixy="0" ixz="0" {moments}/></inertial>'
        f'<visual>{shape}</visual><collision><origin xyz="0 0.3 0"/>{shape}</collision></link>'
    )


@pytest.mark.parametrize(
    ("right", "checks"),
    [
        (drawn("tarsus.stl"), set()),  # the same part on both sides
        (drawn("other.stl"), {"mirrored"}),
        (drawn("tarsus.stl", 'iyz="-0.002"', "-0.04"), set()),  # one drawing for mirror images
        (drawn("tarsus.stl", at="0.09"), {"asymmetry"}),  # its centre of mass is at another place
    ],
)
def test_links_with_the_same_drawing(right: str, checks: set[str]) -> None:
    left = drawn("tarsus.stl")
    file = text(
        "biped.urdf",
        (LEFT, '<link name="lefttarsus">' + left),
        (RIGHT, '<link name="righttarsus">' + right),
    )
    found = told(file)
    assert {each.check for each in found} == checks
    assert all("tarsus" in each.source.element for each in found)


def test_small_products_of_inertia_of_the_other_sign_are_notes() -> None:
    """A hundredth of the inertia has no effect that could be measured."""
    little = 'izz="0.0006" ixy="0" ixz="0" iyz="0.00009"'
    file = text(
        "biped.urdf",
        (LEFT, LEFT.replace('izz="0.0006" ixy="0" ixz="0" iyz="0"', little)),
        (RIGHT, RIGHT.replace('izz="0.0006" ixy="0" ixz="0" iyz="0"', little)),
    )
    found = [x for x in check_twins(CheckContext(rm.load(file))) if x.check == "mirrored"]
    assert {each.severity for each in found} == {"note"}
    assert told(file) == []


def test_assignments_cost_as_little_as_can_be() -> None:
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(3)
    for shape in ((1, 1), (1, 4), (4, 1), (3, 3), (5, 8), (8, 5)):
        for _ in range(20):
            costs = rng.random(shape)
            pairs = assigned(costs)
            assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == min(shape)
            assert sorted(pairs) == pairs
            least = costs[linear_sum_assignment(costs)].sum()
            assert sum(costs[pair] for pair in pairs) == pytest.approx(least, rel=1e-12)


def test_rods_of_a_parallelogram_are_copies() -> None:
    """Two equal rods on the ends of a crank: a half turn takes one pin to the other, not the rods.

    One whose mass is another is told, and one that points the other way is the half turn's image.
    """
    rod = (
        '<inertial><origin xyz="{} 0 0"/><mass value="{}"/><inertia ixx="2e-7" iyy="4e-6" '
        'izz="4e-6" ixy="0" ixz="0" iyz="0"/></inertial>'
    )

    def crank(at: float, mass: float = 0.01) -> str:
        return robot(
            link("crank"), joint("hinge", "base", "crank", axis="0 0 1"),
            link("front", rod.format(0.02, 0.01)), link("back", rod.format(at, mass)),
            joint("f", "crank", "front", "0.014 -0.006 0", axis="0 0 1"),
            joint("b", "crank", "back", "-0.014 0.006 0", axis="0 0 1"),
        )  # fmt: skip

    assert told(crank(0.02)) == []
    assert told(crank(-0.02)) == []
    found = told(crank(-0.02, 0.014))
    assert {each.source.element for each in found} == {"link 'front'", "link 'back'"}


def sprung(side: str, y: float, *, stiffness: float = 400.0, length: float | None = 0.1,
           end: float = -0.15) -> str:  # fmt: skip
    """An arm with a spring to the base."""
    free = "" if length is None else f'length="{length}" '
    return (
        link(side) + joint(side[0], "base", side, f"0 {y} 0", axis="0 1 0")
        + link(f"{side}_hand")
        + joint(f"{side[0]}w", side, f"{side}_hand", "0 0 -0.4", axis="0 1 0")
        + f'<spring name="{side}_spring" stiffness="{stiffness}" {free}damping="2">'
        f'<predecessor link="base"><origin xyz="0 {y} 0.1"/></predecessor>'
        f'<successor link="{side}"><origin xyz="0.05 0 {end}"/></successor></spring>'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "check", "told_of"),
    [
        ({}, None, ""),
        ({"stiffness": 900.0}, "asymmetry", "stiffness is 900"),
        ({"length": 0.2}, "asymmetry", "length is 0.2"),
        ({"length": None}, "asymmetry", "length is 0.254951"),
        ({"end": -0.2}, "anchor", "an end of it is 0.05 m"),
    ],
)
def test_springs_between_points(change: dict[str, Any], check: str | None, told_of: str) -> None:
    """Two mirrored arms with springs to the base, of which the right one's is another."""
    found = told(robot(sprung("left", 0.2), sprung("right", -0.2, **change)))
    assert {(each.check, each.source.element) for each in found} == (
        {(check, "spring 'left_spring'"), (check, "spring 'right_spring'")} if check else set()
    )
    assert not check or any(told_of in each.message for each in found)


def test_a_spring_without_a_length_has_that_at_zero() -> None:
    at_zero = math.hypot(0.05, 0.25)
    assert not told(robot(sprung("left", 0.2, length=None), sprung("right", -0.2, length=at_zero)))


def test_last_bodies_may_be_drawn_at_another_angle() -> None:
    """A rod of each leg is drawn elsewhere about its hinge, as where loops are not closed at zero.

    One whose centre of mass is farther from the hinge is another part.
    """

    def leg(
        side: str, y: float, com: tuple[float, float], moments: tuple[float, float, float]
    ) -> str:
        xx, xz, zz = moments
        rod = (
            f'<inertial><origin xyz="{com[0]} 0 {com[1]}"/><mass value="0.1"/><inertia ixx="{xx}" '
            f'iyy="1e-3" izz="{zz}" ixy="0" ixz="{xz}" iyz="0"/></inertial>'
        )
        return (
            link(f"{side}_shank")
            + joint(side, "base", f"{side}_shank", f"0 {y} 0", axis="0 1 0")
            + link(f"{side}_foot")
            + joint(f"{side}_ankle", f"{side}_shank", f"{side}_foot", "0 0 -0.4", axis="0 1 0")
            + link(f"{side}_rod", rod)
            + joint(f"{side}_pin", f"{side}_shank", f"{side}_rod", "0.05 0 -0.1", axis="0 1 0")
        )

    left = leg("left", 0.1, (0.1, 0.0), (1e-5, 0.0, 1e-3))
    turned = leg("right", -0.1, (0.0, -0.1), (1e-3, 0.0, 1e-5))
    longer = leg("right", -0.1, (0.0, -0.15), (1e-3, 0.0, 1e-5))
    assert told(robot(left, turned)) == []
    assert {each.source.element for each in told(robot(left, longer))} == {
        "link 'left_rod'", "link 'right_rod'",
    }  # fmt: skip


def test_collision_shapes_on_one_side_alone() -> None:
    """The side that has none is told."""
    seen = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    left, right = '<link name="lefttarsus">', '<link name="righttarsus">'
    shape = seen.replace("visual", "collision")
    file = text("biped.urdf", (left, left + seen + shape), (right, right + seen))
    assert [(x.source.element, x.message.partition(",")[0]) for x in told(file)] == [
        ("link 'righttarsus'", "has no collision shape")
    ]
