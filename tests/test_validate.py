"""Validation: what is there is found, with its number and place, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from test_cli import run  # noqa: F401 - a fixture
from texts import INERTIAL, coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.studies.validation.context import CheckContext
from robomodel.studies.validation.findings import Finding
from robomodel.studies.validation.report import Report

NOTES = {("note", "branches"), ("note", "redundancy")}  # of every planar linkage here


def kinds(report: Report) -> list[tuple[str, str, str]]:
    return sorted((each.severity, each.check, each.source.element) for each in report.findings)


def gravest(report: Report) -> list[tuple[str, str, str]]:
    return [each for each in kinds(report) if each[0] != "note"]


def only(report: Report, check: str) -> Finding:
    (finding,) = [each for each in report.findings if each.check == check]
    return finding


# ---- shipped robots ------------------------------------------------------------------------------


FLAWLESS = ("belt_leg", "mit_humanoid", "mit_humanoid_leg")
TRIANGLE = {  # inertias as they were published: the robot's links, how many, and the excess
    "mini_cheetah": ("hip_link", 4, 0.0439),
    "puma560": ("link3", 1, 0.0955),
    "jvrc1": ("rotor", 32, 0.25),
}


@pytest.mark.parametrize("name", FLAWLESS)
def test_nothing_is_found_where_nothing_is(name: str) -> None:
    report = rm.validate(rm.robots.load(name))
    assert report.findings == ()
    assert report.ok
    assert report.summary == "nothing found"


@pytest.mark.parametrize("name", TRIANGLE)
def test_inertias_of_no_body_are_found_as_published(name: str) -> None:
    element, count, excess = TRIANGLE[name]
    report = rm.validate(rm.robots.load(name))
    assert len(report.findings) == count
    for each in report.findings:
        assert (each.severity, each.check) == ("warning", "triangle")
        assert each.source.element.endswith(f"{element}'")
        assert each.value == pytest.approx(excess, abs=5e-5)
        inertial = next(
            i for i in report_links(name) if i.source == each.source
        )  # independently: the excess over the triangle inequality from the file's own numbers
        xx, xy, xz, yy, yz, zz = inertial.inertia
        a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert each.value == pytest.approx(c / (a + b) - 1.0, rel=1e-12)


def test_motors_that_were_published_as_rotors_are_told() -> None:
    """The arm's rotors weigh as much as whole motors do, more than two of the links below them."""
    report = rm.validate(rm.robots.load("teleop_arm"))
    assert kinds(report) == [
        ("warning", "rotor-mass", "link 'shoulder-rx-rotor'"),
        ("warning", "rotor-mass", "link 'shoulder-ry-rotor'"),
    ]
    assert {each.value for each in report.findings} == {1.081}


def report_links(name):
    links = rm.robots.load(name).description.links
    return [link.inertial for link in links if link.inertial is not None]


def test_a_crank_that_goes_round_has_no_singularity() -> None:
    report = rm.validate(rm.robots.load("crank_rocker"))
    assert {each[:2] for each in kinds(report)} == NOTES
    (linkage,) = report.linkages
    assert (linkage.velocities, linkage.rank, linkage.mobility, linkage.branches) == (3, 2, 1, 2)
    assert linkage.gap < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_parallelograms_have_change_points_where_they_fold(name: str) -> None:
    report = rm.validate(rm.robots.load(name))
    assert {each[:2] for each in kinds(report)} == NOTES | {("warning", "singularity")}
    found = only(report, "singularity")
    assert "change point" in found.message
    assert found.value == pytest.approx(0.0, abs=1e-9)
    (sweep,) = report.linkages[0].sweeps
    assert [each.position for each in sweep.singularities] == pytest.approx(
        [0.0, math.pi], abs=1e-8
    )


@pytest.mark.parametrize("name", ["five_bar", pytest.param("six_bar", marks=pytest.mark.slow)])
def test_dead_points_of_several_freedoms_are_singular(name: str) -> None:
    model = rm.robots.load(name)
    report = rm.validate(model)
    assert {each[:2] for each in kinds(report)} == NOTES | {("warning", "singularity")}
    (cluster,) = (c for c in model.clusters if c.kind == "loops")
    found = [each for sweep in report.linkages[0].sweeps for each in sweep.singularities]
    assert len(found) >= 2
    for each in found:
        q = np.array(each.joints)
        assert np.max(np.abs(cluster.geometry.evaluate(q)[0])) < 1e-10  # closed,
        dependent = [c for c in range(len(q)) if c not in cluster.columns]
        k = cluster.geometry.evaluate(q)[1][:, dependent]
        assert np.linalg.svd(k, compute_uv=False)[-1] < 1e-6  # and G is infinite


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tello", "tello_with_arms"])
def test_tello_has_dead_points_in_the_hips_only(name: str) -> None:
    report = rm.validate(rm.robots.load(name))
    assert gravest(report) == [
        ("warning", "singularity", f"joint '{side}-hip-clamp-to-hip-rotor-1'")
        for side in ("left", "right")
    ]
    notes = [each[1] for each in kinds(report) if each[0] == "note"]
    against = ["ratio"] * 2 if name == "tello_with_arms" else []  # the hip clamps' gears reverse
    assert sorted(notes) == sorted(["branches"] * 4 + against)


def test_reports_are_the_same_every_time() -> None:
    one, other = (rm.validate(rm.robots.load("crank_rocker")) for _ in range(2))
    assert one.as_dict() == other.as_dict()
    assert one.html() == other.html()


def test_sweeps_and_reports_can_be_compared() -> None:
    """Curves of one joint from one position differ in arrays alone, as on a Stewart platform."""
    one, other = (rm.validate(rm.robots.load("crank_rocker")) for _ in range(2))
    (sweep,) = one.linkages[0].sweeps
    assert sweep in one.linkages[0].sweeps
    assert dataclasses.replace(sweep) not in one.linkages[0].sweeps
    assert one == one.__class__(one.robot, one.file, one.findings, one.linkages)
    assert one != other


# ---- linkages ------------------------------------------------------------------------------------


def rocker_driven(limits: str = "") -> str:
    """The four-bar of ``texts`` with its rocker as independent joint."""
    text = four_bar(marks=(False, False, True))
    if limits:
        text = text.replace(
            '<joint name="j_rocker" type="continuous"', '<joint name="j_rocker" type="revolute"'
        ).replace('<origin xyz="1.1 0 0" rpy="0 0 0"/>', f'<origin xyz="1.1 0 0"/>{limits}')
    return text


def dead_points() -> tuple[float, float]:
    """Crank and coupler in line: the rocker's end is 1 + 0.5 or 1 - 0.5 from the crank's pivot."""
    stretched, folded = (math.acos((d * d - 1.1**2 - 0.7**2) / (2 * 1.1 * 0.7)) for d in (1.5, 0.5))
    return stretched, folded


def test_a_rocker_in_the_lead_has_dead_points_where_crank_and_coupler_align() -> None:
    report = rm.validate(rocker_driven())
    (sweep,) = report.linkages[0].sweeps
    positions = sorted(abs(each.position) for each in sweep.singularities)
    assert positions == pytest.approx(sorted(dead_points()), abs=1e-7)
    assert all(each.kind == "dead point" and each.reached for each in sweep.singularities)
    found = only(report, "singularity")
    assert found.severity == "warning"
    assert found.source.element == "joint 'j_rocker'"
    assert "make 'j_crank' independent" in found.remedy
    assert abs(found.value) == pytest.approx(
        min(dead_points(), key=lambda x: abs(x - abs(sweep.start))), abs=1e-8
    )
    assert only(report, "coordinates").message.endswith(")")
    assert gravest(report) == [
        ("warning", "coordinates", "joint 'j_rocker'"),
        ("warning", "singularity", "joint 'j_rocker'"),
    ]


@pytest.mark.slow
def test_limits_keep_singularities_away() -> None:
    low, high = dead_points()
    far = f'<limit lower="{low + 0.3}" upper="{high - 0.3}" effort="1" velocity="1"/>'
    report = rm.validate(rocker_driven(far))
    assert "singularity" not in {each.check for each in report.findings}
    assert report.ok
    near = f'<limit lower="{low + 0.3}" upper="{high - 0.02}" effort="1" velocity="1"/>'
    found = only(rm.validate(rocker_driven(near)), "singularity")
    assert found.severity == "note"
    assert found.value == pytest.approx(0.02, abs=0.06)  # to the curve's resolution
    over = f'<limit lower="{low + 0.3}" upper="{high + 0.1}" effort="1" velocity="1"/>'
    found = only(rm.validate(rocker_driven(over)), "singularity")
    assert found.severity == "warning"
    assert found.value == pytest.approx(high, abs=1e-7)
    assert "as the limits allow it" in found.message


def test_limits_in_which_nothing_closes() -> None:
    """The crank may only be where the rocker may not."""
    text = four_bar(marks=(True, False, False))
    for name, low, high in (("j_crank", 1.0, 1.2), ("j_rocker", -0.2, 0.2)):
        text = text.replace(f'"{name}" type="continuous"', f'"{name}" type="revolute"')
        at = text.index(f'"{name}"')
        end = text.index("</joint>", at)
        limit = f'<limit lower="{low}" upper="{high}" effort="1" velocity="1"/>'
        text = text[:end] + limit + text[end:]
    found = only(rm.validate(text), "closing")
    assert found.severity == "warning"
    assert found.value > 0.1


def spherical_four_bar() -> str:
    """Four axes through the origin."""

    def rotated(name: str, parent: str, child: str, angle: float) -> str:
        return joint(name, parent, child, rpy=f"{angle} 0 0", mark=None)

    turned = loop(
        "closing", "revolute", "b", "c", "0 0 0", "0 0 0", '<axis xyz="0 0 1"/>'
    ).replace(
        '<predecessor link="b"><origin xyz="0 0 0"/>',
        '<predecessor link="b"><origin xyz="0 0 0" rpy="0.9 0 0"/>',
    ).replace(
        '<successor link="c"><origin xyz="0 0 0"/>',
        '<successor link="c"><origin xyz="0 0 0" rpy="0.8 0 0"/>',
    )  # fmt: skip
    return robot(
        *(link(n) for n in "abc"),
        rotated("j1", "base", "a", 0.0),
        rotated("j2", "a", "b", 0.5),
        rotated("j3", "base", "c", 1.1),
        turned,
    )


def test_why_conditions_repeat() -> None:
    planar = only(rm.validate(four_bar(marks=(True, False, False))), "redundancy")
    assert (planar.severity, planar.value) == ("note", 3)
    assert "planar" in planar.message
    spherical = only(rm.validate(spherical_four_bar()), "redundancy")
    assert (spherical.severity, spherical.value) == ("note", 3)
    assert "meet in one point" in spherical.message


def bennett() -> str:
    """Bennett's linkage: opposite links equal, a / sin α = b / sin β, movable by that alone."""
    alpha, a = 0.6, 1.0
    beta = math.asin(0.7 * math.sin(alpha))
    b = a * math.sin(beta) / math.sin(alpha)
    # ground (a, α) carries l1 at z and l3 at its far end; l1 (b, β), coupler (a, α), l3 (b, β)
    return robot(
        *(link(n) for n in ("l1", "l2", "l3")),
        joint("j1", "base", "l1", mark=True),
        joint("j2", "l1", "l2", f"{b!r} 0 0", rpy=f"{beta!r} 0 0"),
        joint("j3", "base", "l3", f"{a!r} 0 0", rpy=f"{alpha!r} 0 0"),
        '<loop name="closing" type="revolute"><predecessor link="l2">'
        f'<origin xyz="{a!r} 0 0" rpy="{alpha!r} 0 0"/></predecessor><successor link="l3">'
        f'<origin xyz="{b!r} 0 0" rpy="{beta!r} 0 0"/></successor><axis xyz="0 0 1"/></loop>',
    )


def test_a_loop_that_moves_by_exact_dimensions_only_is_told() -> None:
    found = only(rm.validate(bennett()), "redundancy")
    assert found.severity == "warning"
    assert found.value == 3  # five conditions on three joints leave one freedom
    assert "exact dimensions" in found.message


def test_needless_couplings_and_large_clusters_are_told() -> None:
    gears = [
        coupling("ab", {"a": 1.0, "b": -2.0}),
        coupling("cd", {"c": 1.0, "d": -3.0}),
    ]
    both = coupling("all", {"a": 1.0, "b": -2.0, "c": 1.0, "d": -3.0})
    body = [link(f"l{n}") + joint(n, "base", f"l{n}") for n in "abcd"]
    assert rm.validate(robot(*body, *gears)).findings == ()
    report = rm.validate(robot(*body, *gears, both))
    found = only(report, "cluster-size")
    assert (found.severity, found.value) == ("warning", 4)
    assert "one of 2" in found.message
    assert found.source.element == "coupling 'all'"


def test_a_file_that_is_open_at_its_start_is_told() -> None:
    report = rm.validate(four_bar(marks=(True, False, False)))
    found = only(report, "start")
    assert found.severity == "note"
    # at zero all links lie along x: 0.5 + 1 against 1.1 + 0.7
    assert found.value == pytest.approx(0.3, abs=1e-12)


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
    first = text[: text.index('<joint name="j1"')].count("\n") + 1
    assert [
        each.source.line for each in report.findings if each.source.element == "joint 'j1'"
    ] == [
        first,
        first,
    ]


ROTOR = (
    '<inertial><mass value="{mass}"/><inertia ixx="{t}" iyy="{t}" izz="{axial}" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)


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


DOG = "".join(
    link(f"{leg}_hip", ROTOR.format(mass=0.7, t=1e-3, axial=6e-4))
    + joint(f"{leg}_hip_joint", "trunk", f"{leg}_hip", f"{x} {y} 0", axis="1 0 0")
    + link(f"{leg}_thigh", ROTOR.format(mass=1.0, t=5e-3, axial=1e-3).replace(
        "<inertial>", '<inertial><origin xyz="0 0 -0.03"/>'))
    + joint(f"{leg}_thigh_joint", f"{leg}_hip", f"{leg}_thigh", "0 0.08 0", axis="0 1 0")
    + link(f"{leg}_calf", ROTOR.format(mass=0.2, t=3e-3, axial=5e-5).replace(
        "<inertial>", '<inertial><origin xyz="0 0 -0.1"/>'))
    + joint(f"{leg}_calf_joint", f"{leg}_thigh", f"{leg}_calf", "0 0 -0.2", axis="0 1 0")
    for leg, x, y in (("FR", 0.18, -0.05), ("FL", 0.18, 0.05), ("RR", -0.18, -0.05),
                      ("RL", -0.18, 0.05))
) + link("trunk", ROTOR.format(mass=4.7, t=0.04, axial=0.06)) + (
    '<joint name="free" type="floating"><parent link="base"/><child link="trunk"/></joint>'
)  # fmt: skip


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
    (group,) = report.alike  # told once
    assert hint in group[0].remedy
    for each in group:
        assert "g cm²" in each.remedy
        assert "kg cm²" in each.remedy
        assert (each.value, each.unit) == (pytest.approx(81 * inertia), "kg m²")
    assert str(report).count("\n") == 2
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
        mass, inertia = context.places.together(context.beyond[body])
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
    (linkage,) = rm.validate(model).linkages
    assert linkage.mobility == 2


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


def test_alike_findings_are_told_once_with_their_numbers() -> None:
    parts = [
        link(f"b{i}", ROTOR.format(mass=1, t=10 + i, axial=10 + i))
        + joint(f"k{i}", "base", f"b{i}", "0.3 0 0")
        for i in range(12)
    ]
    report = rm.validate(robot(*parts))
    assert len(report.findings) == 12
    first, second, third = str(report).splitlines()
    assert first.endswith("12 warnings")
    assert "link 'b0'" in second
    assert "radius of gyration is 3.16 m" in second
    assert "link 'b1' (line 5): 3.32 m" in third
    assert third.endswith("and 3 more")
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
    with_gap = rm.validate(text(3, 4))
    found = only(with_gap, "limits")
    assert (found.severity, found.value) == ("warning", pytest.approx(0.5))


# ---- loading, and forms of the report ------------------------------------------------------------


def test_what_does_not_load_is_one_error() -> None:
    text = four_bar().replace('"0.7 0 0"', '"9 0 0"')
    report = rm.validate(text)
    (found,) = report.findings
    assert (found.severity, found.check, found.source.element) == (
        "error",
        "load",
        "loop 'closing'",
    )
    assert "cannot close" in found.message
    assert not report.ok
    assert "cannot close" in report.html()


def test_warnings_of_reading_are_findings() -> None:
    text = robot(link("a"), joint("j", "base", "a", axis="0 0 2"), "<extra/>")
    report = rm.validate(text)
    assert [(each.severity, each.check) for each in report.findings] == [("warning", "file")] * 2
    assert all(each.source.line is not None for each in report.findings)
    with pytest.warns(rm.DescriptionWarning):
        model = rm.load(text)
    assert rm.validate(model).findings == ()  # a model no longer has the file's words
    with pytest.raises(TypeError, match="loaded already"):
        rm.validate(model, floating_base=True)


@pytest.mark.slow
def test_findings_of_a_model_and_of_its_file_agree() -> None:
    text = rocker_driven()
    assert rm.validate(text).as_dict() == rm.validate(rm.load(text)).as_dict()


def test_the_page_needs_nothing_besides() -> None:
    report = rm.validate(rocker_driven())
    page = report.html()
    tree = etree.HTML(page)
    pictures = tree.findall(".//svg")
    (linkage,) = report.linkages
    sketches = [picture for picture in pictures if picture.get("class") == "sketch"]
    titles = [picture.get("aria-label") for picture in sketches]
    assert titles[:2] == ["neutral configuration", "the other way to close"]
    assert len(sketches) == 2 + len(linkage.sweeps[0].singularities)
    assert len(pictures) == len(sketches) + 3  # positions, ratios, condition
    assert all(len(picture.findall("path")) >= 1 for picture in pictures)
    dashed = [path for path in tree.findall(".//svg/path") if path.get("class") == "dashed"]
    assert len(dashed) == 2 * 2  # both dependent joints on the other way to close
    dead = [mark for mark in tree.findall(".//svg/line") if mark.get("class") == "mark"]
    assert len(dead) == 3 * len(linkage.sweeps[0].singularities)
    sources = [e.get(a) for e in tree.iter() for a in ("src", "href") if e.get(a)]
    assert sources == []
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for each in report.findings:
        assert each.check in page


def test_drawings_are_in_the_plane_of_the_linkage() -> None:
    """Bars are as long in every pose; what carries the linkage has two pins."""
    sketches = rm.validate(rm.robots.load("crank_rocker")).linkages[0].sketches
    assert len(sketches) == 2

    def lengths(each):
        bars = [np.array(bar.points) for bar in each.bars if bar.number >= 0]
        return sorted(float(np.linalg.norm(np.ptp(points, axis=0))) for points in bars)

    for each in sketches:
        np.testing.assert_allclose(lengths(each), lengths(sketches[0]), rtol=1e-9)
        assert sum(pin.fixed for pin in each.pins) == 2


def test_names_are_escaped() -> None:
    text = robot(link("&lt;b&gt;"), joint("j", "base", "&lt;b&gt;", "0 0 99"))
    page = rm.validate(text).html()
    assert "<b>" not in page


def test_text_and_summary() -> None:
    report = rm.validate(rm.robots.load("mini_cheetah"))
    first, *rest = str(report).splitlines()
    assert first == "mini_cheetah: 4 warnings"
    assert len(rest) == 2  # one finding, and where else it is
    assert rest[1].startswith("  likewise link 'HL_hip_link' (line ")


# ---- command line --------------------------------------------------------------------------------


def test_exit_status(run, tmp_path: Path) -> None:  # noqa: F811
    assert run("validate", "belt_leg")[0] == 0
    assert run("validate", "crank_rocker")[0] == 0  # notes only
    code, out, err = run("validate", "puma560")
    assert (code, err) == (1, "")
    assert "link 'link3'" in out
    broken = tmp_path / "broken.urdf"
    broken.write_text(four_bar().replace('"0.7 0 0"', '"9 0 0"'))
    code, out, err = run("validate", broken)
    assert code == 2
    assert "error [load]" in out
    assert err.startswith(f"{broken}:")
    assert "cannot close" in err
    code, out, err = run("validate", tmp_path / "nothing.urdf")
    assert (code, out) == (2, "")


def test_json_and_page(run, tmp_path: Path) -> None:  # noqa: F811
    page = tmp_path / "report.html"
    code, out, _ = run("validate", "puma560", "--json", "--html", page)
    report = json.loads(out)
    assert code == 1
    assert report == rm.validate(rm.robots.path("puma560")).as_dict()
    assert report["counts"] == {"error": 0, "warning": 1, "note": 0}
    assert page.read_text(encoding="utf-8") == rm.validate(rm.robots.path("puma560")).html()


def test_validation_is_not_imported_before_it_is_used() -> None:
    code = (
        "import sys, robomodel; robomodel.validate; "
        "print([m for m in sys.modules if m.startswith('robomodel.studies.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
