"""Each check of the validation finds its fault, with number and place."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from texts import INERTIAL, coupling, joint, link, loop, robot
from validation_texts import DOG, ROTOR, gravest, kinds, only

import robomodel as rm
from robomodel.description.shapes import _solid_of
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.study import Report

# ---- three faulty files, and more ----------------------------------------------------------------

LIMIT = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'


def test_millimetres_degrees_and_grams() -> None:
    heavy = INERTIAL.replace('mass value="1"', 'mass value="5000"')
    text = robot(
        link("a"),
        joint("j1", "base", "a", "0 0 120", kind="revolute", more=LIMIT.format(-90, 90)),
        link("b", heavy),
        joint("j2", "a", "b", "0.3 0 0", rpy="0 90 0"),
        link("c"),
        joint("j3", "b", "c", "0.3 0 0", kind="prismatic", more=LIMIT.format(0, 250)),
    )
    report = rm.validate(text)
    assert gravest(report) == [
        ("warning", "degrees", "joint 'j1'"),
        ("warning", "degrees", "joint 'j2'"),
        ("warning", "grams", "link 'b'"),
        ("warning", "millimetres", "joint 'j1'"),
        ("warning", "millimetres", "joint 'j3'"),
    ]
    assert len(report.findings) == 5
    numbers = {(each.check, each.source.element): each.value for each in report.findings}
    assert numbers["degrees", "joint 'j1'"] == -90
    assert numbers["degrees", "joint 'j2'"] == 90
    assert numbers["millimetres", "joint 'j1'"] == 120
    assert "grams" not in {each.check for each in rm.validate(text.replace("0.3", "3")).findings}
    first = text[: text.index('<joint name="j1"')].count("\n") + 1
    assert [
        each.source.line for each in report.findings if each.source.element == "joint 'j1'"
    ] == [
        first,
        first,
    ]


def geared(
    ratio: float, *, mass: float = 0.1, axial: float = 1e-4, axis: str = "0 0 1", name: str = "r"
) -> str:
    """A rotor on the joint j of the link a."""
    inertial = ROTOR.format(mass=mass, t=0.6 * axial, axial=axial)
    return (
        link(name, inertial)
        + joint(f"j_{name}", "base", name, axis=axis, mark=False)
        + coupling(f"gear_{name}", {f"j_{name}": 1.0, "j": -ratio})
    )


ARM = link("a") + joint("j", "base", "a")


def test_a_sound_gear_is_sound() -> None:
    assert rm.validate(robot(ARM, geared(6.0))).findings == ()


@pytest.mark.parametrize(
    ("text", "check", "element", "value"),
    [
        (robot(ARM, geared(1 / 6.0)), "ratio", "link 'r'", 1 / 6.0),
        (
            robot(ARM, geared(6.0, axis=f"0 {math.sin(0.02)} {math.cos(0.02)}")),
            "ratio",
            "link 'r'",
            math.degrees(0.02),
        ),
        (
            robot(ARM, geared(6.0), '<transmission name="t"><type>SimpleTransmission</type><joint '
                  'name="j"><mechanicalReduction>9</mechanicalReduction></joint><actuator '
                  'name="m"/></transmission>'),
            "ratio", "transmission 't'", 9.0,
        ),
        (robot(ARM, geared(6.0, axial=36e-4 * 6)), "rotor-inertia", "link 'r'",
         math.sqrt(0.216)),
        (robot(ARM, geared(6.0), geared(6.0, name="s")), "rotor-twice", "link 's'", 36e-4),
        (
            robot(ARM.replace("</joint>", '<armature value="0.0036"/></joint>'), geared(6.0)),
            "rotor-twice", "joint 'j'", 0.0036,
        ),
    ],
)  # fmt: skip
def test_a_faulty_gear(text: str, check: str, element: str, value: float) -> None:
    (found,) = rm.validate(text).findings
    assert (found.severity, found.check, found.source.element) == ("warning", check, element)
    assert found.value == pytest.approx(value, rel=1e-9)


def test_planets_are_no_rotor_that_counts_twice() -> None:
    """Three that their carrier carries about its axis are as built; two in one place are not."""

    def planets(*angles: float) -> str:
        inertial = ROTOR.format(mass=0.1, t=6e-5, axial=1e-4)
        parts = [ARM]
        for n, angle in enumerate(angles):
            at = f"{0.2 * math.cos(angle)!r} {0.2 * math.sin(angle)!r} 0"
            parts += [link(f"p{n}", inertial), joint(f"j_p{n}", "a", f"p{n}", at, mark=False),
                      coupling(f"mesh{n}", {f"j_p{n}": 1.0, "j": 3.0})]  # fmt: skip
        return robot(*parts)

    third = 2.0 * math.pi / 3.0
    assert rm.validate(planets(0.0, third, 2.0 * third)).findings == ()
    (found,) = rm.validate(planets(0.0, third, third)).findings
    assert (found.check, found.source.element) == ("rotor-twice", "link 'p2'")


@pytest.mark.parametrize(
    ("armature", "severity"),
    [(1e-9, "warning"), (1e-6, "note"), (0.01, None), (1.0, None), (300, "note"), (1e6, "warning")],
)
def test_an_armature_beside_what_its_joint_carries(armature: float, severity: str | None) -> None:
    """As URDF and as MJCF: one of ratio² times 1e-5 to 1e-3 kg m² is sound."""
    inertial = (
        '<inertial><origin xyz="0.3 0 0"/><mass value="2"/><inertia ixx="0.01" iyy="0.02" '
        'izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    hinge = joint("j", "base", "a").replace("</joint>", f'<armature value="{armature}"/></joint>')
    urdf = robot(link("a", inertial), hinge)
    mjcf = (
        f'<mujoco><worldbody><body name="a"><joint name="j" armature="{armature}"/><inertial '
        'pos="0.3 0 0" mass="2" diaginertia="0.01 0.02 0.02"/></body></worldbody></mujoco>'
    )
    for text in (urdf, mjcf):
        found = [each for each in rm.validate(text).findings if each.check == "armature"]
        assert [each.severity for each in found] == ([severity] if severity else []), text
        if found:
            assert found[0].value == armature
            assert "'j'" in found[0].source.element
            assert "carries at" in found[0].message


def test_a_rotor_heavier_than_what_carries_it() -> None:
    text = robot(
        ARM,
        link("f"),
        joint("k", "a", "f", "0 0.2 0"),
        link("r", ROTOR.format(mass=1.5, t=6e-4, axial=1e-3)),
        joint("j_r", "a", "r", mark=False),
        coupling("gear", {"j_r": 1.0, "k": -6.0}),
    )
    (found,) = rm.validate(text).findings
    assert (found.check, found.source.element, found.value) == ("rotor-mass", "link 'r'", 1.5)


def test_one_rotor_against_all_others() -> None:
    parts = [
        link(f"a{n}") + joint(f"k{n}", "base", f"a{n}") + link(f"r{n}", ROTOR.format(
            mass=0.1, t=6e-5, axial=1e-4)) + joint(f"j{n}", "base", f"r{n}", mark=False)
        + coupling(f"g{n}", {f"j{n}": 1.0, f"k{n}": 6.0 if n == 3 else -6.0})
        for n in range(6)
    ]  # fmt: skip
    (found,) = rm.validate(robot(*parts)).findings
    assert (found.severity, found.check, found.source.element) == ("note", "ratio", "link 'r3'")


def fixed(child: str, parent: str, xyz: str = "0 0 0") -> str:
    return joint(f"to_{child}", parent, child, xyz, kind="fixed")


def with_rotors(inertia: float, more: str = "") -> Report:
    """The report on a dog of 12 kg with twelve rotors behind a ratio of 9."""
    rotors = "".join(
        f'<joint name="{leg}_{part}_joint"><rotor inertia="{inertia}" ratio="9" {more}/></joint>\n'
        for leg in ("FR", "FL", "RR", "RL")
        for part in ("hip", "thigh", "calf")
    )
    model = rm.load(robot(DOG), extend=f'<robot name="dog">{rotors}</robot>')
    assert model.mass == pytest.approx(12.3)
    return rm.validate(model)


@pytest.mark.parametrize("inertia", [1e-5, 1.1e-4, 1e-3])
def test_rotors_in_proportion(inertia: float) -> None:
    assert with_rotors(inertia).findings == ()


@pytest.mark.parametrize(
    ("inertia", "hint"),
    [
        (1.1, "write 0.00011 if it is in kg cm²"),
        (1100.0, "write 0.00011 if it is in g cm²"),
        (0.02, "write 0.0002469 if it is reflected through the gear already"),
        (1e-9, "1 g cm² is 1e-7"),
    ],
)
def test_rotors_out_of_proportion(inertia: float, hint: str) -> None:
    report = with_rotors(inertia)
    assert {each[:2] for each in kinds(report)} == {("warning", "rotor-inertia")}
    assert len(report.findings) == 12
    (group,) = report.alike
    assert hint in group.first.remedy
    for each in (group.first, *group.others):
        assert "g cm²" in each.remedy
        assert "kg cm²" in each.remedy
        assert (each.value, each.unit) == (pytest.approx(81 * inertia), "kg m²")
    assert str(report).count("\n") == 4  # one finding, told once
    assert "and 3 more" in str(report)


def test_what_a_joint_carries_is_what_resists_it() -> None:
    """Beside the mass matrix of the robot without rotors, at poses of the joints."""
    model = rm.load(robot(DOG))
    context = CheckContext(model)
    for body, each in enumerate(model.joints):
        if each.nv == 1:
            at = model.dof_names.index(each.name)
            low, high = context.carried(body)
            for q in [model.neutral(), *(model.random_configuration(seed) for seed in range(20))]:
                inertia = rm.crba(model, q)[at, at]
                assert 0.7 * low <= inertia <= 1.5 * high
            assert low <= rm.crba(model, model.neutral())[at, at] * (1 + 1e-12)
            assert high >= rm.crba(model, model.neutral())[at, at] * (1 - 1e-12)
    for body in range(len(model.bodies)):
        mass, inertia = context.placements.together(context.beyond[body])
        if body == 0:
            assert mass == pytest.approx(model.mass)
        assert np.linalg.eigvalsh(inertia)[0] > 0.0


def test_placeholders_of_transmissions_are_passed_over() -> None:
    """ROS writes a reduction of 1 where nobody asks."""
    transmissions = "".join(
        f'<transmission name="t{i}"><type>transmission_interface/SimpleTransmission</type><joint '
        f'name="j"/><actuator name="m"><mechanicalReduction>{reduction}</mechanicalReduction>'
        "</actuator></transmission>"
        for i, reduction in enumerate((1, "1.0", -1))
    )
    assert rm.validate(robot(ARM, geared(6.0), transmissions)).findings == ()


def test_fingers_that_mimic_are_no_rotors() -> None:
    finger = link("f{0}", ROTOR.format(mass=0.05, t=1e-6, axial=2e-6)) + joint(
        "k{0}", "a", "f{0}", "0.1 0.0{0} 0", kind="revolute",
        more=LIMIT.format(-1, 1) + '<mimic joint="j" multiplier="-0.5"/>', mark=False
    )  # fmt: skip
    fingers = rm.load(robot(ARM, finger.format(1), finger.format(2)))
    assert CheckContext(fingers).rotors == []
    assert rm.validate(fingers).findings == ()
    gear = finger.format(1).replace("-0.5", "-5")
    assert [each.ratios for each in CheckContext(rm.load(robot(ARM, gear))).rotors] == [{"j": -5.0}]


DUMMY = ROTOR.format(mass=1e-6, t=1e-6, axial=1e-6)


def test_dummies_and_what_does_not_move_are_left_alone() -> None:
    """A mass that a program wants to see, or in a link that is fixed to the world."""
    heavy = ROTOR.format(mass=1, t=50, axial=50)
    text = robot(
        link("floor", heavy) + fixed("floor", "base"),
        ARM + link("camera", DUMMY) + fixed("camera", "a", "0.3 0 0"),
        link("wrist", DUMMY) + joint("k", "a", "wrist", "0.3 0 0", axis="0 1 0"),
        link("b") + joint("l", "wrist", "b"),
        link("tool", DUMMY) + joint("m", "b", "tool", "0.3 0 0"),
    )
    assert rm.validate(text).findings == ()
    felt = text.replace('mass value="1e-06"', 'mass value="1e-1"').replace("1e-06", "1e-1")
    assert rm.validate(text.replace(DUMMY, heavy, 1)).findings != ()
    assert felt != text


def test_moments_of_what_only_slides_have_no_say() -> None:
    wide = ROTOR.format(mass=1, t=50, axial=50)
    on_rails = [
        link("x", wide) + joint("jx", "base", "x", kind="prismatic"),
        link("y", ROTOR.format(mass=1, t=1e-9, axial=1e-9))
        + joint("jy", "x", "y", "0.3 0 0", kind="prismatic", axis="0 1 0"),
    ]
    assert rm.validate(robot(*on_rails)).findings == ()
    report = rm.validate(robot(*on_rails), floating_base=True)
    assert [each.source.element for each in report.findings] == ["link 'x'", "link 'y'"]


@pytest.mark.slow
def test_a_cluster_led_by_parts_of_joints_is_validated() -> None:
    """Two parts of a ball joint whose third a rod holds: no open tree stands for that."""
    text = robot(
        link("a"),
        joint("ball", "base", "a", kind="spherical"),
        loop("rod", "rod", "a", "base", "0.3 0 0", "0.3 0.4 0", more="", attributes='length="0.4"'),
        link("b"),
        joint("j", "a", "b", "0.1 0 0"),
        geared(6.0).replace('parent link="base"', 'parent link="a"'),
    )
    model = rm.load(text)
    assert model.nv == 3
    with pytest.raises(ValueError, match="no open tree"):
        rm.armature(model)
    assert [each.ratios for each in CheckContext(model).rotors] == [{"j": 6.0}]
    report = rm.validate(model)
    (linkage,) = report.linkages
    assert linkage.mobility == 2
    assert linkage.groups == (("ball",),)
    (dead,) = (each for each in report.findings if each.check == "singularity")
    assert dead.remedy.startswith("limit 'ball.2' to ")


def test_a_leaf_whose_extent_is_not_known() -> None:
    """A tibia without a foot: its mass may be where the links before it are long."""

    def leg(z: float) -> Report:
        tibia = ROTOR.format(mass=0.2, t=3e-3, axial=5e-5).replace(
            "<inertial>", f'<inertial><origin xyz="0 0 {z}"/>'
        )
        return rm.validate(robot(
            ARM, link("b") + joint("k", "a", "b", "0 0 -0.1", axis="0 1 0"),
            link("tibia", tibia) + joint("l", "b", "tibia", "0 0 -0.1", axis="0 1 0"),
        ))  # fmt: skip

    assert leg(-0.2).findings == ()
    assert only(leg(-2.0), "centre-of-mass").source.element == "link 'tibia'"


@pytest.mark.slow
def test_a_shank_hangs_below_its_knee() -> None:
    """Its only points are the knee and a rod's pin 3 cm beside it; its thigh is 0.2 m long."""

    def leg(z: float) -> Report:
        def part(name: str, at: float) -> str:
            inertial = ROTOR.format(mass=1, t=2e-3, axial=1e-3)
            return link(name, inertial.replace("<inertial>", f'<inertial><origin xyz="0 0 {at}"/>'))

        return rm.validate(robot(
            part("thigh", -0.06), part("crank", -0.01), part("rod", -0.1), part("shank", z),
            joint("hip", "base", "thigh", axis="0 1 0"),
            joint("crank", "thigh", "crank", axis="0 1 0"),
            joint("rod", "crank", "rod", "0.03 0 0", axis="0 1 0"),
            joint("knee", "thigh", "shank", "0 0 -0.2", axis="0 1 0"),
            loop("pin", "revolute", "rod", "shank", "0 0 -0.2", "0.03 0 0",
                 '<axis xyz="0 1 0"/>'),
        ))  # fmt: skip

    assert "centre-of-mass" not in {each.check for each in leg(-0.12).findings}
    found = [each for each in leg(-120.0).findings if each.check == "centre-of-mass"]
    assert [each.source.element for each in found] == ["link 'shank'"]


def test_a_body_is_judged_with_what_is_fixed_to_it() -> None:
    """Masses without moments that together have some, and a part that weighs next to nothing."""
    point = ROTOR.format(mass=1, t=0, axial=0)
    parts = [
        link(f"p{i}", point) + fixed(f"p{i}", "a", f"{x} {y} 0")
        for i, (x, y) in enumerate([(0.3, 0), (0.3, 0.2)])
    ]
    assert rm.validate(robot(ARM, *parts)).findings == ()
    dense = ROTOR.format(mass=1, t=1e-6, axial=1e-6)
    found = only(rm.validate(robot(ARM, link("b", dense) + joint("k", "a", "b", "0.3 0 0"))),
                 "inertia-size")  # fmt: skip
    assert (found.source.element, found.value) == ("link 'b'", pytest.approx(1e-3))
    assert "densest metal" in found.message


@pytest.mark.parametrize(
    ("limits", "check"),
    [((-90, 90), "degrees"), ((-720, 720), "degrees"), ((-1e16, 1e16), ""), ((-99999, 99999), "")],
)
def test_limits_that_are_written_for_none(limits: tuple[float, float], check: str) -> None:
    text = robot(link("a"), joint("j", "base", "a", kind="revolute", more=LIMIT.format(*limits)))
    assert [each.check for each in rm.validate(text).findings] == ([check] if check else [])
    slide = text.replace("revolute", "prismatic")
    assert [each.check for each in rm.validate(slide).findings] == (
        ["millimetres"] if check else []
    )


@pytest.mark.parametrize(("other", "severity"), [(1.5, "note"), (20, "note"), (90, "warning")])
def test_round_limits_are_written_for_none_or_in_degrees(other: float, severity: str) -> None:
    """20 either way is no range in a file of radians, and one in a file of degrees."""
    text = robot(
        link("a"), joint("j", "base", "a", kind="revolute", more=LIMIT.format(-20, 20)),
        link("b"), joint("k", "a", "b", "0.3 0 0", kind="revolute",
                         more=LIMIT.format(-other, other)),
    )  # fmt: skip
    found = [x for x in rm.validate(text).findings if x.check == "degrees"]
    assert {x.severity for x in found} == {severity}
    assert [x.source.element for x in found] == ["joint 'j'", "joint 'k'"][: 1 + (other >= 20)]


def test_alike_findings_are_told_once_with_their_numbers() -> None:
    parts = [
        link(f"b{i}", ROTOR.format(mass=1, t=10 + i, axial=10 + i))
        + joint(f"k{i}", "base", f"b{i}", "0.3 0 0")
        for i in range(12)
    ]
    report = rm.validate(robot(*parts))
    assert len(report.findings) == 12
    first, _, where, what, others = str(report).splitlines()
    assert first.endswith("12 warnings")
    assert "link 'b0'" in where
    assert "radius of gyration is 3.16 m" in what
    assert "link 'b1' (line 5): 3.32 m" in others
    assert others.endswith("and 3 more")
    assert "and 3 more" in report.html()
    assert len(report.as_dict()["findings"]) == 12


@pytest.mark.parametrize(
    ("inertial", "check", "severity"),
    [
        (ROTOR.format(mass=1, t=0.01, axial=0.0203), "triangle", "warning"),
        (ROTOR.format(mass=1, t=0.01, axial=0.0201), "triangle", "note"),
        (ROTOR.format(mass=1, t=12000, axial=9000), "inertia-size", "warning"),
        (ROTOR.format(mass=1, t=1e-13, axial=1e-13), "inertia-size", "warning"),
        ('<inertial><origin xyz="0 3 0"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" '
         'ixy="0" ixz="0" iyz="0"/></inertial>', "centre-of-mass", "warning"),
        ('<inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0" iyy="0" izz="0" '
         'ixy="0" ixz="0" iyz="0"/></inertial>', "point-mass", "note"),
        (ROTOR.format(mass=1, t=0.01, axial=0.04), "file", "warning"),  # told when it is read
    ],
)  # fmt: skip
def test_a_faulty_inertia(inertial: str, check: str, severity: str) -> None:
    text = robot(
        link("a"),
        joint("j", "base", "a"),
        link("b", inertial),
        joint("k", "a", "b", "0.3 0 0"),
    )
    (found,) = rm.validate(text).findings
    assert (found.severity, found.check, found.source.element) == (severity, check, "link 'b'")
    assert found.source.line is not None


def test_a_shape_says_where_a_centre_of_mass_may_be() -> None:
    box = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>'
    near = link("a").replace("</link>", box)
    assert rm.validate(robot(near, joint("j", "base", "a"))).findings == ()
    far = near.replace('xyz="0.1 0.02 0"', 'xyz="0.6 0 0"')
    found = only(rm.validate(robot(far, joint("j", "base", "a"))), "centre-of-mass")
    assert found.value == pytest.approx(0.5)


@pytest.mark.slow
def test_offsets_of_belts_leave_loops_closed() -> None:
    """A five-bar that is closed at zero: not a belt to a rotor opens it, but one within."""
    parts = [
        link("a") + joint("a", "base", "a"),
        link("b") + joint("b", "base", "b", "0.5 0 0"),
        link("c") + joint("c", "a", "c", "0 0.3 0"),
        link("d") + joint("d", "b", "d", "0 0.3 0"),
        loop("pin", "revolute", "c", "d", "0.25 0.2 0", "-0.25 0.2 0"),
    ]
    rotor = [
        link("pulley") + joint("p", "base", "pulley", "0 0 0.1"),
        link("rotor") + joint("m", "base", "rotor", "0 0.1 0.1"),
        coupling("belt", {"a": 3.0, "p": 1.0}, 0.1),
        coupling("gear", {"p": 6.0, "m": 1.0}, 0.2),
    ]
    assert "start" not in [each.check for each in rm.validate(robot(*parts, *rotor)).findings]
    found = only(rm.validate(robot(*parts, coupling("belt", {"a": 1.0, "b": 1.0}, 0.1))), "start")
    assert (found.severity, found.source.element, found.value) == ("note", "coupling 'belt'", 0.1)


def test_limits_of_joints_that_move_together() -> None:
    def text(low: float, high: float) -> str:
        return robot(
            link("a"),
            joint("j", "base", "a", kind="revolute", more=LIMIT.format(-1, 1)),
            link("b"),
            joint("k", "base", "b", kind="revolute", more=LIMIT.format(low, high)
                  + '<mimic joint="j" multiplier="2"/>'),
        )  # fmt: skip

    assert rm.validate(text(-2, 2)).findings == ()
    found = only(rm.validate(text(-2, 1)), "limits")
    assert (found.severity, found.source.element, found.value) == ("note", "joint 'j'", 0.5)
    assert "its upper limit 1 is never reached: 'k'" in found.message
    with_gap = rm.validate(text(3, 4))
    found = only(with_gap, "limits")
    assert (found.severity, found.value) == ("warning", pytest.approx(0.5))


@pytest.mark.parametrize("ratio", [-1.0, -2.5, 1.0])
def test_limits_that_leave_one_position(ratio: float) -> None:
    """Jaws from 0 to 0.03 m, of which one follows the other: the wrong way they cannot move.

    A jaw that its own limits lock is no such mistake.
    """

    def text(*limits: tuple[float, float]) -> str:
        jaws = [link("a"), link("b")]
        for name, child, ends in zip("jk", "ab", limits, strict=True):
            more = LIMIT.format(*ends)
            more += f'<mimic joint="j" multiplier="{ratio}"/>' if name == "k" else ""
            jaws.append(joint(name, "base", child, kind="prismatic", axis="1 0 0", more=more))
        return robot(*jaws)

    model = rm.load(text((0, 0.03), (0, 0.03)))
    ranges = {name: rm.joint_range(model, name) for name in "jk"}
    tree = rm.approximate_tree(model)
    (spot,) = {joint.upper for joint in tree.joints if joint.name == "j"}
    drawn = model.random_configuration(0)
    if ratio > 0.0:
        assert rm.validate(model).findings == ()
        assert ranges["j"].upper == spot == 0.03
        return
    found = only(rm.validate(model), "limits")
    assert found.severity == "warning"
    assert "leave 'j' no motion: both are met at 0 alone" in found.message
    assert [(x.lower, x.upper) for x in ranges.values()] == [(0.0, 0.0)] * 2
    assert ranges["j"].upper_by == "k"
    assert spot == 0.0
    assert np.array_equal(drawn, model.neutral())
    assert not any("no motion" in x.message for x in rm.validate(text((0, 0), (0, 0.03))).findings)


@pytest.mark.parametrize("floating", [False, True])
def test_belts_over_a_ball(floating: bool) -> None:
    """A coupling of two hinges with a ball between them, one of which is a rotor's."""
    text = robot(
        link("a"), link("b"), link("c"), link("d"),
        joint("first", "base", "a"), joint("ball", "a", "b", "0.2 0 0", kind="spherical"),
        joint("second", "b", "c", "0.2 0 0"), joint("rotor", "b", "d"),
        coupling("belt", {"first": 1.0, "second": -1.0, "rotor": 0.2}),
    )  # fmt: skip
    model = rm.load(text, floating_base=floating)
    assert model.nv == 5 + 6 * floating
    assert not [x for x in rm.validate(model).findings if x.severity == "error"]


def limits_told(report: Report) -> dict[str, str]:
    """The notes on limits, by joints, without what may be done about them."""
    found = [each for each in report.findings if each.check == "limits"]
    assert {each.severity for each in found} <= {"note"}
    return {each.source.element: each.message for each in found}


def stops(by: str, at: float) -> str:
    return f"is never reached: '{by}', which moves with it, stops it at {at:.4g}"


@pytest.mark.parametrize("marked", ["p", "s", "t"])
def test_limits_that_are_never_reached_are_named_whatever_is_independent(marked: str) -> None:
    """s + t = 0.015 by the pinion, and both are between limits."""
    slides = [
        link(f"l{name}")
        + joint(name, "base", f"l{name}", f"0 {y} 0", kind="prismatic", axis="1 0 0",
                more=LIMIT.format(*limits))
        for name, y, limits in (("s", 0.02, (-0.03, 0.05)), ("t", -0.02, (-0.02, 0.1)))
    ]  # fmt: skip
    racks = coupling("r", {"s": 1, "p": -0.02}, 0.01) + coupling("q", {"t": 1, "p": 0.02}, 0.005)
    text = robot(link("pinion") + joint("p", "base", "pinion"), *slides, racks)
    assert limits_told(rm.validate(text, independent=[marked])) == {
        "joint 's'": f"its upper limit 0.05 {stops('t', 0.015 + 0.02)}",
        "joint 't'": f"its upper limit 0.1 {stops('s', 0.015 + 0.03)}",
    }


@pytest.mark.parametrize("marked", ["c", "k", "r"])
def test_limits_in_a_loop_that_are_never_reached_are_named(marked: str) -> None:
    """A parallelogram: its rocker turns as its crank does, its coupler as much the other way."""
    tip, side = "0.108060461174 0.168294196962 0", "0.3 0 0"

    def told(*limits: tuple[float, float]) -> dict[str, str]:
        c, k, r = (LIMIT.format(*each) for each in limits)
        text = robot(
            link("crank") + joint("c", "base", "crank", kind="revolute", more=c),
            link("rod") + joint("k", "crank", "rod", tip, kind="revolute", more=k),
            link("rocker") + joint("r", "base", "rocker", side, kind="revolute", more=r),
            loop("pin", "revolute", "rod", "rocker", side, tip),
        )
        return limits_told(rm.validate(text, independent=[marked]))

    assert told((-0.9, 1.9), (-0.5, 0.4), (-0.3, 5.0)) == {
        "joint 'c'": f"its lower limit -0.9 {stops('r', -0.3)}; nor is its upper limit 1.9: "
        "'k' stops it at 0.5",
        "joint 'k'": f"its upper limit 0.4 {stops('r', 0.3)}",
        "joint 'r'": f"its upper limit 5 {stops('k', 0.5)}",
    }
    assert told((-0.4, 0.5), (-0.5, 0.4), (-4.0, 4.0)) == {}  # all, and what leaves a full turn


def test_many_limits_that_are_never_reached_are_told_together() -> None:
    fingers = [
        link(f"f{n}")
        + joint(f"k{n}", "base", f"f{n}", f"{n} 0 0", kind="revolute",
                more=LIMIT.format(-2 - 0.1 * n, 2) + '<mimic joint="j" multiplier="1"/>')
        for n in range(12)
    ]  # fmt: skip
    leader = link("a") + joint("j", "base", "a", kind="revolute", more=LIMIT.format(-1, 1))
    report = rm.validate(robot(leader, *fingers))
    assert len(limits_told(report)) == 12
    assert str(report).count("[limits]") == 1
    few = rm.validate(robot(leader, *fingers[:3]))
    assert str(few).count("[limits]") == 3


def test_meshes_that_are_pointers_of_git_lfs_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_text("version https://git-lfs.github.com/spec/v1\nsize 12\n")
    shape = '<collision><geometry><mesh filename="a.stl"/></geometry></collision>'
    file = tmp_path / "robot.urdf"
    file.write_text(robot(link("a", INERTIAL + shape), joint("j", "base", "a")))
    (found,) = rm.validate(file).findings
    assert (found.severity, found.check) == ("note", "inertia-shape")
    assert "1 mesh not compared" in found.message
    assert "git lfs pull" in found.remedy


def test_solids_of_meshes_are_kept_while_the_files_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimesh = pytest.importorskip("trimesh")
    monkeypatch.setenv("ROBOMODEL_CACHE", str(tmp_path / "cache"))

    def write(third: float) -> None:
        for n, length in enumerate((0.3, 0.35, third, 0.45, 0.25)):
            mesh = trimesh.creation.box(extents=(length, 0.04, 0.04))
            mesh.apply_translation((length / 2, 0.0, 0.0))
            mesh.export(tmp_path / f"{n}.stl")
            os.utime(tmp_path / f"{n}.stl", (1e9 + third, 1e9 + third))  # long ago

    def bar(n: int, length: float) -> str:
        across = 2.0 * (length**2 + 0.04**2) / 12.0
        return (
            f'<inertial><origin xyz="{length / 2} 0 0"/><mass value="2"/><inertia ixx="0.00053" '
            f'iyy="{across}" izz="{across}" ixy="0" ixz="0" iyz="0"/></inertial><visual>'
            f'<geometry><mesh filename="{n}.stl"/></geometry></visual>'
        )

    lengths = (0.3, 0.35, 0.5, 0.45, 0.25)
    file = tmp_path / "robot.urdf"
    file.write_text(robot(*(
        link(f"b{n}", bar(n, length))
        + joint(f"j{n}", f"b{n - 1}" if n else "base", f"b{n}",
                f"{lengths[n - 1] if n else 0} 0 0", axis="0 1 0")
        for n, length in enumerate(lengths)
    )))  # fmt: skip

    def found() -> list[str]:
        _solid_of.cache_clear()
        return [x.source.element for x in rm.validate(file).findings if x.check == "inertia-shape"]

    write(5.0)
    assert found() == ["link 'b2'"]
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "trimesh", None)  # nothing is read again
        assert found() == ["link 'b2'"]
        write(0.5)
        assert found() == []  # not compared, and not kept
    assert found() == []
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_limits_of_this_package_are_notes() -> None:
    """The file is right: what is not kept of it is worth knowing, and nothing to mend."""
    pytest.importorskip("mujoco")
    text = """<mujoco><option density="1.2"/><worldbody><body gravcomp="1"><joint/>
        <geom size="0.1"/></body></worldbody></mujoco>"""
    found = [each for each in rm.validate(text).findings if each.check == "file"]
    assert {each.severity for each in found} == {"note"}
    assert sorted(each.message.partition(" ")[0] for each in found) == ["its", "the"]


def test_a_loop_whose_conditions_all_hold_anyway_is_named() -> None:
    """A planar loop between two links of a plane, in which nothing becomes singular."""
    text = robot(
        *map(link, ("a", "b", "c")),
        joint("one", "base", "a"),
        joint("two", "a", "b", "0.2 0 0"),
        joint("other", "base", "c", "0.5 0 0"),
        loop("plane", "planar", "b", "c"),
    )
    with pytest.warns(rm.DescriptionWarning, match="adds nothing"):
        model = rm.load(text)
    assert model.nv == 3
    findings = [x for x in rm.validate(model).findings if x.check == "cluster-size"]
    assert any("repeats what others say" in x.message for x in findings)
