"""Validation: what is there is found, with its number and place, and nothing else is."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from cases import few
from texts import coupling, four_bar, joint, link, loop, robot
from validation_texts import gravest, kinds, only, rocker_driven

import robomodel as rm

NOTES = {("note", "branches"), ("note", "redundancy")}  # of every planar linkage here

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


@pytest.mark.parametrize("name", few(TRIANGLE, "mini_cheetah", "puma560"))
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


@pytest.mark.slow
def test_a_crank_that_goes_round_has_no_singularity() -> None:
    report = rm.validate(rm.robots.load("crank_rocker"))
    assert {each[:2] for each in kinds(report)} == NOTES
    (linkage,) = report.linkages
    assert (linkage.velocities, linkage.rank, linkage.mobility, linkage.branches) == (3, 2, 1, 2)
    assert linkage.gap < 1e-10


@pytest.mark.slow_cases("planar_leg_linkage", "four_bar")
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", pytest.param("six_bar", marks=pytest.mark.slow)])
def test_dead_points_of_several_freedoms_are_singular(name: str) -> None:
    model = rm.robots.load(name)
    report = rm.validate(model)
    assert {each[:2] for each in kinds(report)} == NOTES | {("warning", "singularity")}
    (cluster,) = (c for c in model.clusters if c.kind == "loops")
    (linkage,) = report.linkages
    (of,) = linkage.coordinates
    assert of.nearest is not None
    met = [each for sweep in linkage.sweeps for each in sweep.singularities if each.reached]
    for each in (of.nearest, *met):
        q = np.array(each.joints)
        assert np.max(np.abs(cluster.geometry.evaluate(q)[0])) < 1e-10  # closed,
        dependent = [c for c in range(len(q)) if c not in cluster.columns]
        k = cluster.geometry.evaluate(q)[1][:, dependent]
        assert np.linalg.svd(k, compute_uv=False)[-1] < 1e-6  # and G is infinite


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tello", "tello_with_arms"])
def test_tello_has_dead_points_in_its_differentials(name: str) -> None:
    report = rm.validate(rm.robots.load(name))
    found = gravest(report)
    assert {each[:2] for each in found} == {("warning", "singularity")}
    joints = [each[2] for each in found]
    for side in ("left", "right"):
        assert any(f"'{side}-hip-clamp-to-hip-rotor" in joint for joint in joints)
        assert any(f"'{side}-thigh-to-knee-ankle-rotor" in joint for joint in joints)
    # no note of signs of ratios: of 14 gears with arms, 4 reverse, on clamps and on second cranks
    notes = [each[1] for each in kinds(report) if each[0] == "note"]
    assert sorted(notes) == ["branches"] * 4


@pytest.mark.slow
def test_other_ways_to_close_are_told_apart() -> None:
    """Those that the robot gets to, through dead points of its independent joint, and those not."""
    path = rm.robots.path("crank_rocker")
    for independent, words in (
        (
            "crank_joint",
            "Another assembly mode, with 'coupler_joint' 4.71, 'rocker_joint' 3.73, is",
        ),
        ("rocker_joint", "the robot gets to the nearest others"),
    ):
        report = rm.validate(rm.load(path, independent=independent))
        (text,) = (each.message for each in report.findings if each.check == "branches")
        assert words in text


@pytest.mark.parametrize(("crank", "modes"), [(0.08, 2), (0.3, 1), (0.45, 1)])
def test_assembly_modes_of_two_freedoms_are_counted(crank: float, modes: int) -> None:
    """A five-bar's elbow changes sides where its equal rods are in line, as the cranks say.

    Their ends are then 1 m apart, or meet: with a ground of 0.2 these of 0.08 do neither.
    """
    report = rm.validate(
        rm.load(
            robot(
                *(link(name) for name in ("left", "left_rod", "right", "right_rod")),
                joint("left", "base", "left", mark=True, more='<initial position="1.6"/>'),
                joint("left_rod", "left", "left_rod", f"{crank} 0 0", mark=False),
                joint("right", "base", "right", "0.2 0 0", mark=True,
                      more='<initial position="1.5"/>'),
                joint("right_rod", "right", "right_rod", f"{crank} 0 0", mark=False),
                loop("pin", "revolute", "left_rod", "right_rod", "0.5 0 0", "0.5 0 0"),
            )
        )
    )  # fmt: skip
    assert [study.modes for study in report.linkages] == [modes]
    (text,) = (each.message for each in report.findings if each.check == "branches")
    assert ("2 assembly modes were found within limits; there may be more" in text) == (modes == 2)


@pytest.mark.parametrize("freedoms", [2, 3])
def test_reports_say_where_assembly_modes_were_not_counted(freedoms: int) -> None:
    """Polygons of five and six links, of which one is the ground."""
    names = [f"l{n}" for n in range(2 + freedoms)]
    pairs = zip(["base", *names], names, strict=False)
    turns = [1.0, *(len(names) - 1) * [-2.0 * math.pi / (1 + len(names))]]
    chain = [
        joint(child, parent, child, "0.3 0 0" if parent != "base" else "0 0 0",
              mark=n < freedoms, more=f'<initial position="{turns[n]}"/>')
        for n, (parent, child) in enumerate(pairs)
    ]  # fmt: skip
    end = loop("pin", "revolute", "base", names[-1], "0.3 0 0", "0.3 0 0")
    report = rm.validate(rm.load(robot(*map(link, names), *chain, end)))
    assert [study.mobility for study in report.linkages] == [freedoms]
    assert [study.modes == 0 for study in report.linkages] == [freedoms == 3]
    told = "Assembly modes within limits were not counted" in str(report)
    assert told == (freedoms == 3)
    assert "has no singular positions" not in str(report)  # paths of one joint do not tell that


@pytest.mark.slow
def test_reports_are_the_same_every_time() -> None:
    one, other = (rm.validate(rm.robots.load("crank_rocker")) for _ in range(2))
    assert one.as_dict() == other.as_dict()
    assert one.html() == other.html()


@pytest.mark.slow
def test_sweeps_and_reports_can_be_compared() -> None:
    """Curves of one joint from one position differ in arrays alone, as on a Stewart platform."""
    one, other = (rm.validate(rm.robots.load("crank_rocker")) for _ in range(2))
    (sweep,) = one.linkages[0].sweeps
    assert sweep in one.linkages[0].sweeps
    assert dataclasses.replace(sweep) not in one.linkages[0].sweeps
    assert one == one.__class__(one.robot, one.file, one.findings, one.linkages)
    assert one != other


# ---- linkages ------------------------------------------------------------------------------------


def dead_points() -> tuple[float, float]:
    """Crank and coupler in line: the rocker's end is 1 + 0.5 or 1 - 0.5 from the crank's pivot."""
    stretched, folded = (math.acos((d * d - 1.1**2 - 0.7**2) / (2 * 1.1 * 0.7)) for d in (1.5, 0.5))
    return stretched, folded


@pytest.mark.slow
def test_a_rocker_in_the_lead_has_dead_points_where_crank_and_coupler_align() -> None:
    report = rm.validate(rocker_driven())
    (sweep,) = report.linkages[0].sweeps
    positions = sorted(abs(each.position) for each in sweep.singularities)
    assert positions == pytest.approx(sorted(dead_points()), abs=1e-7)
    assert all(each.kind == "dead point" and each.reached for each in sweep.singularities)
    found = only(report, "singularity")
    assert found.severity == "warning"
    assert found.source.element == "joint 'j_rocker'"
    assert "mark 'j_crank' independent instead of 'j_rocker'" in found.remedy
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
    assert "within the limits of its joints" in found.message


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_geared_motors_of_a_linkage_start_and_lead_as_it_does() -> None:
    """Their ratio makes no better coordinates, and hides no dead points."""
    path = rm.robots.path("five_bar")
    rotors = dict.fromkeys(("J1", "J2"), rm.Rotor(2e-5, 50.0))
    plain, geared = (rm.validate(rm.load(path, rotors=each)) for each in (None, rotors))
    assert only(geared, "singularity").source.element in ("joint 'J1'", "joint 'J2'")
    one, other = plain.linkages[0], geared.linkages[0]
    assert other.start_gap == pytest.approx(one.start_gap, abs=1e-12)
    assert other.median == pytest.approx(one.median, rel=0.2)
    (of,) = other.coordinates
    assert set(of.best.joints) <= {"J1", "J2", "J3", "J4"}


@pytest.mark.slow
def test_a_file_that_is_open_at_its_start_is_told() -> None:
    report = rm.validate(four_bar(marks=(True, False, False)))
    found = only(report, "start")
    assert found.severity == "note"
    # at zero all links lie along x: 0.5 + 1 against 1.1 + 0.7
    assert found.value == pytest.approx(0.3, abs=1e-12)


def test_a_continuum_of_ways_to_close_is_not_counted() -> None:
    """A rhombus folded over its crank puts the tip of its arm on the hinge of a rocker beside it.

    The rod between both is as long as the rocker, and turns freely there. Where the rhombus is
    open, rod and rocker close on either side.
    """
    c, s = math.cos(0.7), math.sin(0.7)
    far = 0.5 * math.hypot(1.0 + c, s)  # half of the line from the hinge to the arm's tip
    side = math.sqrt(1.2**2 - far**2)
    way = np.array([1.0 + c, s]) / (2.0 * far)
    end = far * way + side * np.array([-way[1], way[0]])
    tip, rod = f"{c!r} {s!r} 0", end - 2.0 * far * way
    text = robot(
        *(link(name) for name in ("crank", "bar", "arm", "rod", "rocker")),
        joint("a", "base", "crank", mark=True),
        joint("b", "crank", "bar", tip, mark=False),
        joint("c", "base", "arm", "1 0 0", mark=False),
        joint("d", "arm", "rod", tip, mark=False),
        joint("e", "base", "rocker", mark=False),
        loop("one", "revolute", "bar", "arm", "1 0 0", tip),
        loop("two", "revolute", "rod", "rocker", f"{float(rod[0])!r} {float(rod[1])!r} 0",
                   f"{float(end[0])!r} {float(end[1])!r} 0"),
    )  # fmt: skip
    (found,) = (x for x in rm.validate(rm.load(text)).findings if x.check == "branches")
    assert "closes in 2 ways that were found and infinitely many others with" in found.message
    assert found.value == 2
