"""Ranges of joints against closed forms, and against dense motions of the independent joints."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import few
from linkage_family import instance
from texts import coupling, joint, link, loop, robot

import robomodel as rm
from robomodel.mechanism.continuation import Continuation, Ends, Points
from robomodel.mechanism.walks import lead
from robomodel.model.elements import spanning_start
from robomodel.opentree.tree_joints import tree_joints
from robomodel.reach import groups, uphill
from robomodel.reach.curves import grid
from robomodel.reach.paths import joined, walk
from robomodel.reach.ranges import FreeRanges, halves_along, limb_ranges, path_along
from robomodel.reach.reachable import reachable
from robomodel.views.viewer import freedoms

Array = np.ndarray
Y = "0 1 0"
HINGE = f'<axis xyz="{Y}"/>'
THIGH, CRANK, ROD, HORN = 0.3, 0.04, 0.3, 0.05
CRANKS = ("crank", "knee", "rod", "motor")


def limits(lower: float, upper: float) -> str:
    return f'<limit lower="{lower!r}" upper="{upper!r}" effort="9" velocity="9"/>'


def hinge(
    name: str, parent: str, child: str, at: str, ends: tuple[float, float] | None, more: str = ""
) -> str:
    kind = "continuous" if ends is None else "revolute"
    more += "" if ends is None else limits(*ends)
    return joint(name, parent, child, at, kind=kind, axis=Y, more=more)


def belted_leg(
    crank: tuple[float, float],
    knee: tuple[float, float] | None,
    *,
    rod: float = ROD,
    motor: tuple[float, float] | None = None,
    floating_base: bool | None = None,
    motors: tuple[str, str] = ("", ""),
) -> rm.Model:
    """A motor on the base drives the knee by a belt over the hip and a four-bar: one cluster.

    ``motors``: elements of the hip's and of the belt's.
    """
    return rm.load(
        robot(
            link("thigh"), link("crank"), link("rod"), link("shank"), link("rotor"),
            hinge("hip", "base", "thigh", "0 0 0", (-1.0, 1.0), motors[0]),
            hinge("crank", "thigh", "crank", "0 0 0", crank),
            hinge("rod", "crank", "rod", f"{CRANK} 0 0", None),
            hinge("knee", "thigh", "shank", f"0 0 {-THIGH}", knee),
            hinge("motor", "base", "rotor", "0 0.1 0", motor, motors[1]),
            loop("bar", "revolute", "rod", "shank", f"0 0 {-rod}", f"{HORN} 0 0", HINGE),
            '<coupling name="belt"><predecessor link="crank"/><successor link="rotor"/>'
            '<ratio value="9"/></coupling>',
        ),
        floating_base=floating_base,
    )  # fmt: skip


def crank_of(knee: float, rod: float = ROD) -> float:
    """The crank's angle at a knee's, by the distance of the pins."""
    from scipy.optimize import brentq

    end = np.array([HORN * math.cos(knee), -THIGH - HORN * math.sin(knee)])

    def off(crank: float) -> float:
        pin = np.array([CRANK * math.cos(crank), -CRANK * math.sin(crank)])
        return float(np.linalg.norm(end - pin)) - rod

    return float(brentq(off, -1.4, 1.4, xtol=1e-14))


@pytest.mark.slow
def test_a_knee_ends_a_crank_whose_motor_sits_on_the_base() -> None:
    model = belted_leg((-0.7, 0.8), (-0.5, 2.5))
    crank, knee = (rm.joint_range(model, name) for name in ("crank", "knee"))
    assert (crank.lower_by, crank.upper_by) == ("knee", "crank")
    assert crank.lower == pytest.approx(crank_of(-0.5), abs=1e-9)
    assert crank.upper == 0.8
    assert (knee.lower, knee.lower_by, knee.upper_by) == (-0.5, "knee", "crank")
    assert crank_of(knee.upper) == pytest.approx(0.8, abs=1e-9)
    motor = rm.joint_range(model, "motor")
    assert (motor.lower, motor.upper) == pytest.approx((9 * (crank.lower - 1), 9 * 1.8), abs=1e-9)
    floating = belted_leg((-0.7, 0.8), (-0.5, 2.5), floating_base=True)
    assert rm.joint_range(floating, "crank") == crank
    for hip in (-0.8, 0.0, 0.6):  # whatever the hip does
        q = model.configuration({"hip": hip})
        held = rm.joint_range(model, "crank", q)
        assert held.held == (("hip", hip),)
        assert (held.lower, held.upper) == pytest.approx((crank.lower, crank.upper), abs=1e-11)
        assert (held.lower_by, held.upper_by) == ("knee", "crank")


def test_a_loop_that_cannot_close_ends_a_crank() -> None:
    """Rod and horn fold into a line at the dead point: by the law of cosines."""
    rod = 0.33
    model = belted_leg((-1.0, 0.8), None, rod=rod)
    sine = (THIGH**2 + CRANK**2 - (rod - HORN) ** 2) / (2.0 * THIGH * CRANK)
    crank, knee = (rm.joint_range(model, name) for name in ("crank", "knee"))
    assert (crank.lower_by, crank.upper_by) == ("crank", "bar")
    assert (crank.lower_end.kind, crank.upper_end.kind) == ("limit", "dead point")
    assert crank.upper == pytest.approx(math.asin(sine), abs=1e-9)
    # the knee goes on while the crank comes back
    assert (knee.lower_by, knee.upper_end.kind, knee.upper_by) == ("crank", "limit", "crank")
    end = np.array([HORN * math.cos(knee.upper), -THIGH - HORN * math.sin(knee.upper)])
    pin = np.array([CRANK * math.cos(1.0), CRANK * math.sin(1.0)])
    assert np.linalg.norm(end - pin) == pytest.approx(rod, abs=1e-9)
    assert knee.upper > knee.lower + 1.0
    assert crank_of(knee.lower, rod) == pytest.approx(-1.0, abs=1e-9)
    assert str(crank) == (
        "'crank' goes from -1 rad (limit of 'crank') to 0.5824 rad (dead point of 'bar')"
    )


@pytest.mark.slow
def test_limits_of_a_motor_bound_the_joints_that_it_drives_together() -> None:
    """hip + crank is within ±0.5 by the motor, the hip within ±1: what the crank cannot give."""
    model = belted_leg((-0.6, 0.8), (-3.0, 3.0), motor=(-4.5, 4.5))
    crank, hip = rm.joint_range(model, "crank"), rm.joint_range(model, "hip")
    assert (crank.lower, crank.upper) == pytest.approx((-0.6, 0.8), abs=1e-9)
    assert (hip.lower, hip.upper) == pytest.approx((-1.0, 1.0), abs=1e-9)
    q = model.configuration({"hip": 0.2})
    held = rm.joint_range(model, "crank", q)
    assert (held.lower, held.upper) == pytest.approx((-0.6, 0.3), abs=1e-9)
    assert (held.lower_by, held.upper_by) == ("crank", "motor")
    tight = belted_leg((-0.6, 0.8), (-3.0, 3.0), motor=(-18.0, 4.5))
    q = tight.configuration({"hip": 0.0})
    assert rm.joint_range(tight, "hip", q).upper == pytest.approx(
        0.5 - float(tight.joint_positions(q)["crank"]), abs=1e-9
    )


def slider_crank(turn: tuple[float, float] | None = None, start: float = 0.4) -> rm.Model:
    return rm.load(
        robot(
            link("crank"), link("rod"), link("slide"),
            joint("turn", "base", "crank", axis=Y, mark=True,
                  kind="continuous" if turn is None else "revolute",
                  more=f'<initial position="{start}"/>' + (limits(*turn) if turn else "")),
            joint("pin", "crank", "rod", "0.1 0 0", axis=Y),
            joint("way", "base", "slide", axis="1 0 0", kind="prismatic", more=limits(0.0, 1.0)),
            loop("end", "revolute", "rod", "slide", "0.3 0 0", "0 0 0", HINGE),
        )
    )  # fmt: skip


@pytest.mark.slow
def test_a_crank_turns_fully() -> None:
    model = slider_crank()
    turn, way, pin = (rm.joint_range(model, name) for name in ("turn", "way", "pin"))
    assert turn.turns_fully
    assert pin.turns_fully
    assert (turn.lower, turn.upper) == (-math.inf, math.inf)
    assert str(turn) == "'turn' turns fully"
    assert not way.turns_fully
    assert (way.lower, way.upper) == pytest.approx((0.2, 0.4), abs=1e-12)
    assert (way.lower_by, way.upper_by, way.upper_end.kind) == ("end", "end", "dead point")
    part = slider_crank((0.3, 2.5))
    way = rm.joint_range(part, "way")
    ends = [0.1 * math.cos(x) + math.sqrt(0.09 - 0.01 * math.sin(x) ** 2) for x in (2.5, 0.3)]
    assert (way.lower, way.upper) == pytest.approx(ends, abs=1e-11)
    assert (way.lower_by, way.upper_by) == ("turn", "turn")
    wide = slider_crank((-4.0, 9.0))  # more than a turn
    assert (rm.joint_range(wide, "turn").lower, rm.joint_range(wide, "turn").upper) == (-4.0, 9.0)


def test_gears_and_differentials_are_linear_programs() -> None:
    """m1 = a + b and m2 = a - b within ±1 let a reach 1, where b is 0: corners of a square."""
    model = rm.load(
        robot(
            link("a"), link("b"), link("m1"), link("m2"),
            hinge("a", "base", "a", "0 0 0", (-3.0, 0.75)),
            hinge("b", "a", "b", "0 0 1", (-0.5, 3.0)),
            hinge("m1", "base", "m1", "0 1 0", (-1.0, 1.0)),
            hinge("m2", "base", "m2", "0 2 0", (-1.0, 1.0)),
            coupling("sum", {"m1": 1.0, "a": -1.0, "b": -1.0}),
            coupling("difference", {"m2": 1.0, "a": -1.0, "b": 1.0}),
        )
    )  # fmt: skip
    a, b, m1 = (rm.joint_range(model, name) for name in ("a", "b", "m1"))
    assert (a.lower, a.upper, b.lower, b.upper) == pytest.approx((-1.0, 0.75, -0.5, 1.0), abs=1e-9)
    assert a.lower_by in ("m1", "m2")
    assert (a.upper_by, b.lower_by) == ("a", "b")
    assert (m1.lower, m1.upper, m1.upper_by) == (-1.0, 1.0, "m1")
    q = model.configuration({"a": 0.2, "b": 0.3})
    held = rm.joint_range(model, "a", q)
    assert (held.lower, held.upper) == pytest.approx((-0.7, 0.7), abs=1e-12)
    assert (held.lower_by, held.upper_by, held.held) == ("m2", "m1", (("b", 0.3),))


def test_joints_that_follow_by_polynomials_turn_back() -> None:
    """y = x² - x: least at x = 1/2, y's upper limit ends x at 2."""
    text = robot(
        link("x"), link("y"),
        joint("x", "base", "x", kind="revolute", more=limits(-0.5, 3.0)),
        joint("y", "base", "y", kind="revolute", more=limits(-1.0, 2.0)),
        '<coupling name="c"><polynomial joint="y" of="x" coefficients="0 -1 1"/></coupling>',
    )  # fmt: skip
    model = rm.load(text)
    x, y = rm.joint_range(model, "x"), rm.joint_range(model, "y")
    assert (x.lower, x.lower_by, x.upper_by) == (-0.5, "x", "y")
    assert x.upper == pytest.approx(2.0, abs=1e-9)
    assert (y.lower, y.upper) == pytest.approx((-0.25, 2.0), abs=1e-9)
    assert (y.lower_by, y.lower_end.kind, y.upper_by) == ("c", "dead point", "y")


def test_dead_points_are_those_of_loops_that_hold() -> None:
    """A leg and a swing hang on a four-bar's coupler; the crank turns back where the four-bar does.

    There coupler and rocker are in line, and the forces that hold the crank are in the four-bar's
    loop alone, however far the leg moves; the swing turns back by its own loop's. Cosine law.
    """
    crank, coupler, rocker, ground = 0.8, 0.7, 0.6, 1.3
    end = math.acos((crank**2 + ground**2 - (coupler + rocker) ** 2) / (2 * crank * ground))
    at = 0.6  # of the crank, as it is drawn
    pin = crank * np.array([math.cos(at), math.sin(at)])
    to = np.array([ground, 0.0]) - pin
    far = float(np.hypot(*to))
    bend = math.acos((coupler**2 + far**2 - rocker**2) / (2 * coupler * far))
    way = math.atan2(to[1], to[0]) + bend
    knee = pin + coupler * np.array([math.cos(way), math.sin(way)])
    hand, pivot, elbow = pin + np.array([0.2, 0.5]), np.array([1.4, 1.6]), np.array([0.2, 2.4])

    def place(x: Array) -> str:
        return f"{float(x[0])!r} {float(x[1])!r} 0"

    parts = [
        link("crank"), link("coupler"), link("rocker"),
        joint("crank", "base", "crank"),
        joint("coupler", "crank", "coupler", place(pin)),
        joint("rocker", "base", "rocker", f"{ground} 0 0"),
        loop("four_bar", "revolute", "coupler", "rocker", place(knee - pin),
             place(knee - [ground, 0.0])),
    ]  # fmt: skip
    leg = [
        link("leg"), link("swing"),
        joint("leg", "coupler", "leg", place(hand - pin)),
        joint("swing", "base", "swing", place(pivot)),
        loop("hanging", "revolute", "leg", "swing", place(elbow - hand), place(elbow - pivot)),
    ]  # fmt: skip
    for model in (rm.load(robot(*parts)), rm.load(robot(*parts, *leg))):
        found = rm.joint_range(model, "crank")
        assert (found.lower, found.upper) == pytest.approx((-end - at, end - at), abs=1e-9)
        for name in ("crank", "coupler", "rocker"):
            each = rm.joint_range(model, name)
            assert (each.lower_by, each.upper_by) == ("four_bar", "four_bar")
    swing = rm.joint_range(model, "swing")
    assert (swing.lower_by, swing.upper_by) == ("hanging", "hanging")


@pytest.mark.parametrize("off", [1e-3, 1e-5, 1e-7])
def test_a_parallelogram_that_nearly_lies_flat_does_not_turn_on(off: float) -> None:
    """Its ground link is too long by ``off``: the crank's end by the cosine law, not a full turn.

    Where it lies nearly flat the other branch is straight ahead, and does not meet its own.
    """

    def near(name: str, parent: str, xyz: str, start: float, *, mark: bool) -> str:
        return joint(name, parent, f"l_{name}", xyz, mark=mark,
                     more=f'<initial position="{start:.17g}"/>')  # fmt: skip

    ground, x, y = 0.5 + off, 0.3 * math.cos(1.2), 0.3 * math.sin(1.2)
    r = math.hypot(ground - x, y)
    along = (0.5**2 - 0.3**2 + r * r) / (2.0 * r)
    across = math.sqrt(0.25 - along * along)
    u, w = (ground - x) / r, -y / r
    tip = x + along * u - across * w, y + along * w + across * u
    knee, rocker = math.atan2(tip[1] - y, tip[0] - x), math.atan2(tip[1], tip[0] - ground)
    model = rm.load(
        robot(
            *(link(f"l_{name}") for name in ("crank", "knee", "rocker")),
            near("crank", "base", "0 0 0", 1.2, mark=True),
            near("knee", "l_crank", "0.3 0 0", knee - 1.2, mark=False),
            near("rocker", "base", f"{ground:.17g} 0 0", rocker, mark=False),
            loop("pin", "revolute", "l_knee", "l_rocker", "0.5 0 0", "0.3 0 0"),
        )
    )
    end = math.acos((0.3**2 + ground**2 - 0.8**2) / (2.0 * 0.3 * ground))
    found = rm.joint_range(model, "crank")
    assert (found.lower, found.upper) == pytest.approx((-end, end), abs=1e-9)
    assert found.upper_end.kind == "dead point"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "noise"),
    few([("planar four-bar", 0.0), ("rod between balls", 0.0), ("welded parallelogram", 1e-6),
         ("spherical four-bar", 1e-8)], ("planar four-bar", 0.0),
        tables=[("welded parallelogram", 1e-6), ("spherical four-bar", 1e-8)]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_ranges_of_random_linkages(kind: str, noise: float) -> None:
    """As far as strides of another kind lead, past dead points; rods' spins are no matter."""
    model = rm.load(instance(kind, 3, noise)[0], spins="locked")
    (name,) = model.dof_names
    free = rm.load(instance(kind, 3, noise)[0])
    assert rm.joint_range(free, name).upper == pytest.approx(rm.joint_range(model, name).upper)
    cluster = next(each for each in model.clusters if name in each.joints)
    at = model.joint_positions(reachable(model).along(cluster))
    for each in model.joints:
        if each.nv != 1:
            continue
        found, x = rm.joint_range(model, each.name), at[each.name]
        if found.turns_fully:
            assert np.ptp(x) > 2.0 * math.pi - 0.02
        else:
            assert found.lower == pytest.approx(np.min(x), abs=0.011)
            assert found.upper == pytest.approx(np.max(x), abs=0.011)
            slack = max(1e-9, noise)  # an end is known as well as the file's numbers are
            assert found.lower <= np.min(x) + slack
            assert found.upper >= np.max(x) - slack


@pytest.mark.slow
def test_ranges_of_several_freedoms() -> None:
    """A five-bar with limits on motors and passive hinges, against a grid of the motors."""
    model = rm.load(
        robot(
            link("a"), link("b"), link("c"), link("d"),
            hinge("A", "base", "a", "0 0 0", (-0.6, 0.7)),
            hinge("B", "base", "b", "0.4 0 0", (-0.5, 0.8)),
            hinge("C", "a", "c", "0 0 0.3", (-0.6, 0.4)),
            hinge("D", "b", "d", "0 0 0.32", (-0.3, 0.3)),
            loop("tip", "revolute", "c", "d", "0.2 0 0.3", "-0.2 0 0.28", HINGE),
        ),
        independent=["A", "B"],
    )  # fmt: skip
    axes = [np.linspace(-0.6, 0.7, 66), np.linspace(-0.5, 0.8, 66)]
    poses = grid(model, ["A", "B"], axes).reshape(-1, model.nq)
    at = model.joint_positions(poses[np.isfinite(poses).all(axis=1)])
    for name, x in at.items():
        found = rm.joint_range(model, name)
        assert np.min(x) - 0.045 < found.lower < np.min(x) + 1e-6
        assert np.max(x) - 1e-6 < found.upper < np.max(x) + 0.045
    assert rm.joint_range(model, "A").lower_by == "C"
    assert "rad or less (limit of 'C') to" in str(rm.joint_range(model, "A"))
    assert rm.joint_range(model, "B").upper_by == "D"


FIVE = (0.4, 0.15, 0.25, 0.15, 0.5)  # cranks A and B, the rods on them, the ground


def five_bar(independent: str) -> rm.Model:
    """A five-bar without limits, whose crank A does not turn fully."""
    a, b, c, d, ground = FIVE
    return rm.load(
        robot(
            link("a"), link("b"), link("c"), link("d"),
            hinge("A", "base", "a", "0 0 0", None),
            hinge("B", "base", "b", f"{ground} 0 0", None),
            hinge("C", "a", "c", f"0 0 {a}", None),
            hinge("D", "b", "d", f"0 0 {b}", None),
            loop("tip", "revolute", "c", "d", f"0 0 {c}", f"0 0 {d}", HINGE),
        ),
        independent=[*independent],
    )  # fmt: skip


@pytest.mark.parametrize("independent", few(["AB", "AC", "AD", "BC", "BD", "CD"], "AB", "BC"))
def test_ranges_of_a_five_bar_are_those_of_the_cosine_law(independent: str) -> None:
    """Whichever joints are independent: past their dead points, and fully round."""
    a, b, c, d, ground = FIVE
    model = five_bar(independent)
    ranges = {name: rm.joint_range(model, name) for name in "ABCD"}
    stretched = math.acos((a * a + ground**2 - (b + c + d) ** 2) / (2.0 * a * ground))
    folded = math.acos((a * a + c * c - (ground - b - d) ** 2) / (2.0 * a * c))
    turns = 2.0 * math.pi * round(float(model.joint_positions(model.neutral())["C"]) / math.tau)
    for name, middle, side in (("A", math.pi / 2.0, stretched), ("C", turns, math.pi - folded)):
        found = ranges[name]
        assert (found.lower, found.upper) == pytest.approx((middle - side, middle + side), abs=1e-9)
        assert (found.lower_end.kind, found.upper_end.kind) == ("dead point", "dead point")
    assert ranges["B"].turns_fully
    assert ranges["D"].turns_fully


@pytest.mark.slow
def test_tellos_thighs_turn_fully() -> None:
    """Strides of another kind lead from where random walks get to neutral, but for whole turns."""
    model = rm.robots.load("tello")
    name = "left-gimbal-to-thigh"
    assert rm.joint_range(model, name).turns_fully
    cluster = next(each for each in model.clusters if name in each.joints)
    linkage = next(each for each in reachable(model).linkages if each.cluster is cluster)
    place = cluster.geometry.links[cluster.joints.index(name)].q
    (group,) = (each for each in linkage.groups if place in each.joints.places)
    points, joints = group.pool, group.joints
    at = points.q[:, joints.places] - group.start[joints.places]
    goal = group.start[joints.places] + math.tau * np.round(at / math.tau)
    arrived = lead(group.along, points, joints, goal)[1] == Ends.FINE
    turned = np.round(at[:, joints.places.tolist().index(place)] / math.tau)
    assert np.any(arrived & (turned > 0))
    assert np.any(arrived & (turned < 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "chosen"),
    few([("parallel_ankle", ["left_motor", "roll"]), ("six_bar", ["joint1", "joint4", "joint5"]),
         ("crank_rocker", ["coupler_joint"]), ("five_bar", ["J3", "J4"])],
        ("crank_rocker", ["coupler_joint"]), ("five_bar", ["J3", "J4"])),
)  # fmt: skip
def test_reports_do_not_depend_on_the_independent_joints(name: str, chosen: list[str]) -> None:
    """Ranges, those at rest, dead points, inputs of rods and their angles."""
    studies = [rm.actuation(rm.load(rm.robots.path(name), independent=some))
               for some in (None, chosen)]  # fmt: skip
    one, other = studies
    for mine, its in zip(one.joints, other.joints, strict=True):
        assert (mine.joint, mine.rest) == (its.joint, its.rest)
        assert mine.at_rest == pytest.approx(its.at_rest, abs=1e-9)
        assert (mine.lower, mine.upper) == pytest.approx((its.lower, its.upper), abs=1e-9)
    for some in ("transmissions", "four_bars"):
        for mine, its in zip(getattr(one, some), getattr(other, some), strict=True):
            assert mine.input == its.input
            assert mine.least.angle == pytest.approx(its.least.angle, abs=1e-7)
            assert mine.most.angle == pytest.approx(its.most.angle, abs=1e-7)


def parallelogram(*ends: tuple[float, float]) -> rm.Model:
    """Cranks A and B turn alike, up to these limits of each."""
    first, second = ends
    return rm.load(
        robot(
            link("a"), link("b"), link("c"),
            hinge("A", "base", "a", "0 0 0", first),
            hinge("B", "base", "b", "0.4 0 0", second),
            hinge("C", "a", "c", "0 0 0.3", None),
            loop("tip", "revolute", "c", "b", "0.4 0 0", "0 0 0.3", HINGE),
        ),
        independent=["A"],
    )  # fmt: skip


def test_of_limits_that_are_met_together_a_joint_names_its_own() -> None:
    model = parallelogram((-0.4, 0.7), (-0.4, 0.7))
    for name in ("A", "B"):
        found = rm.joint_range(model, name)
        assert (found.lower, found.upper, found.lower_by, found.upper_by) == (-0.4, 0.7, name, name)
    assert "best choice" not in rm.validate(model).document.text()  # both are as good
    model = parallelogram((-0.4, 0.7), (-0.3, 0.9))
    found = rm.joint_range(model, "A")
    assert (found.lower_by, found.upper_by) == ("B", "A")
    assert found.lower == pytest.approx(-0.3, abs=1e-12)


def test_ranges_that_are_sought_together_are_those_sought_alone() -> None:
    """Joints of a five-bar, by climbs, and of a belted leg, by paths."""

    def five_bar() -> rm.Model:
        return rm.load(
            robot(
                link("a"), link("b"), link("c"), link("d"),
                hinge("A", "base", "a", "0 0 0", (-0.6, 0.7)),
                hinge("B", "base", "b", "0.4 0 0", (-0.5, 0.8)),
                hinge("C", "a", "c", "0 0 0.3", None),
                hinge("D", "b", "d", "0 0 0.32", None),
                loop("tip", "revolute", "c", "d", "0.2 0 0.3", "-0.2 0 0.28", HINGE),
            ),
            independent=["A", "B"],
        )  # fmt: skip

    for make, names in ((five_bar, "ABCD"), (lambda: belted_leg((-0.7, 0.8), None), CRANKS)):
        together = FreeRanges(make(), [*names])
        walk(together.halves)
        for name, found in zip(names, together.found(), strict=True):
            alone = rm.joint_range(make(), name)
            assert (found.lower, found.upper) == pytest.approx((alone.lower, alone.upper), abs=1e-9)
            assert str(found) == str(alone)


def test_what_several_joints_go_along_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of a four-bar's joints, each to where it turns back, are those walked alone."""
    model = rm.robots.load("crank_rocker")
    cluster = next(each for each in model.clusters if each.varies)
    start = spanning_start(cluster, model.neutral()[cluster.q])
    pairs = [halves_along(model, cluster, column, [], start) for column in range(3)]
    taken, stride = list[int](), Continuation.stride

    def counted(along: Continuation, p: Points, d: Array) -> tuple[Points, Array]:
        taken.append(len(p.q))
        return stride(along, p, d)

    monkeypatch.setattr(Continuation, "stride", counted)
    alone = []
    for column in range(3):
        path = path_along(model, cluster, column, [], start)
        assert path is not None
        alone.append((path, sum(taken)))
        taken.clear()
    walk([half for pair in pairs for half in pair])
    assert sum(taken) <= max(count for _, count in alone) < sum(count for _, count in alone) / 2
    for pair, (path, _) in zip(pairs, alone, strict=True):
        assert np.array_equal(joined(*pair).q, path.q)


def free_five_bar(apart: float, ahead: float) -> rm.Model:
    """Two cranks of 0.3 m, so far apart, with links that meet in the middle, so far ahead."""
    return rm.load(
        robot(
            link("a"), link("b"), link("c"), link("d"),
            hinge("A", "base", "a", "0 0 0", None),
            hinge("B", "base", "b", f"{apart} 0 0", None),
            hinge("C", "a", "c", "0 0 0.3", None),
            hinge("D", "b", "d", "0 0 0.3", None),
            loop("tip", "revolute", "c", "d", f"{apart / 2} 0 {ahead!r}",
                 f"{-apart / 2} 0 {ahead!r}", HINGE),
        ),
        independent=["A", "B"],
    )  # fmt: skip


def test_hinges_that_turn_fully_are_known_without_a_climb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where walks lead tells it of both cranks, whose ends are apart by less than both links."""
    model = free_five_bar(0.1, math.sqrt(0.2475))  # links of 0.5 m: both cranks turn fully
    angles = np.random.default_rng(1).uniform(0.0, math.tau, (2, 10000))
    apart = np.hypot(0.1 + 0.3 * (np.sin(angles[1]) - np.sin(angles[0])),
                     0.3 * (np.cos(angles[1]) - np.cos(angles[0])))  # fmt: skip
    assert np.max(apart) < 1.0  # both links close from everywhere

    def climbed(ways: list[object]) -> list[object]:
        assert not ways
        return []

    monkeypatch.setattr(uphill, "_tops", climbed)
    assert all(rm.joint_range(model, name).turns_fully for name in "AB")


def test_copies_of_a_leg_are_walked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Climbs of Tello's second leg begin at images of the first one's walks."""
    model, walks, wander = rm.robots.load("tello"), list[Array](), groups.wander

    def counted(along: Continuation, p: Points, *more: Any) -> tuple[Points, Array]:
        walks.append(p.q)
        return wander(along, p, *more)

    monkeypatch.setattr(groups, "wander", counted)
    names = ["left-hip-clamp-to-gimbal", "left-gimbal-to-thigh"]
    first = limb_ranges(model, names)
    done = len(walks)
    second = limb_ranges(model, [name.replace("left", "right") for name in names])
    assert len(walks) == done > 0
    for left, right in zip(first, second, strict=True):
        ends = sorted(map(abs, (left.lower, left.upper)))
        assert sorted(map(abs, (right.lower, right.upper))) == pytest.approx(ends, abs=1e-8)


def consumers(kind: str) -> rm.Model:
    if kind == "belt over a hip":
        return belted_leg((-0.7, 0.8), (-0.5, 2.5))
    if kind == "its sister that cannot close":
        return belted_leg((-1.0, 0.8), None, rod=0.33)
    return slider_crank() if kind == "slider-crank" else rm.robots.load(kind)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the tree will not do")
@pytest.mark.parametrize(
    "kind",
    few(["belt over a hip", "its sister that cannot close", "slider-crank", "crank_rocker",
         "six_bar", "parallel_ankle", "tello"],
        "belt over a hip", tables=["tello"]),
)  # fmt: skip
def test_everyone_says_the_same_of_a_range(kind: str) -> None:
    """actuation, open trees, sliders, and validate with the other independent joints held."""
    model = consumers(kind)
    ranges = {each.name: rm.joint_range(model, each.name) for each in model.joints if each.nv == 1}
    envelopes = rm.actuation(model).joints
    tree = rm.approximate_tree(model, followers=False)  # with them, where these are right
    limits = {each.name: each for each in tree.joints}
    for each in envelopes:
        (reach,), whole = limb_ranges(model, [each.joint]), ranges[each.joint]
        assert each.reach == reach
        assert whole.lower <= reach.lower + 1e-9
        assert whole.upper >= reach.upper - 1e-9
        if each.joint in limits:
            ends = limits[each.joint]
            for end, kept in ((reach.lower, ends.lower), (reach.upper, ends.upper)):
                assert kept == pytest.approx(end, abs=1e-9) or math.isinf(end)
    for slider in freedoms(model):
        if slider.joint in ranges:
            reach = ranges[slider.joint]
            assert slider.lower == reach.lower or math.isinf(reach.lower)
            assert slider.upper == reach.upper or math.isinf(reach.upper)
    for linkage in rm.validate(model).linkages:
        cluster = next(each for each in model.clusters if each.name == linkage.cluster)
        for sweep in linkage.sweeps:
            q = model.neutral()
            q[cluster.q] = sweep.joints[np.argmin(np.abs(sweep.position - sweep.start))]
            if sweep.joint in ranges and sweep.held == _held(model, cluster, q, sweep.joint):
                reach = rm.joint_range(model, sweep.joint, q)
                assert sweep.range == pytest.approx((reach.lower, reach.upper), abs=1e-9)


def _held(model: rm.Model, cluster: rm.model.Cluster, q: Array, joint: str) -> dict[str, float]:
    at = model.joint_positions(q)
    return {name: float(at[name]) for name in cluster.independent if name != joint}


@pytest.mark.slow
def test_motors_of_an_ankle_end_where_pitch_and_roll_do() -> None:
    """By the lengths of the rods, which differ: 0.20 and 0.28."""
    from scipy.optimize import brentq

    model = rm.robots.load("parallel_ankle")

    def tip(pitch: float, roll: float, side: float) -> Array:
        c, s = math.cos(pitch), math.sin(pitch)
        y, z = side * 0.04 * math.cos(roll), side * 0.04 * math.sin(roll)
        return np.array([-0.05 * c + z * s, y, 0.05 * s + z * c])

    for name, side, rod in (("left_motor", 1.0, 0.2), ("right_motor", -1.0, 0.28)):

        def gap(motor: float, end: Array, side: float = side, rod: float = rod) -> float:
            crank = [-0.05 * math.cos(motor), side * 0.04, rod + 0.05 * math.sin(motor)]
            return float(np.linalg.norm(np.array(crank) - end)) - rod

        reach = rm.joint_range(model, name)
        for end, pitch, roll in ((reach.lower, -0.7, -0.35), (reach.upper, 0.5, 0.35)):
            exact = brentq(gap, end - 0.2, end + 0.2, args=(tip(pitch, side * roll, side),),
                           xtol=1e-14)  # fmt: skip
            assert end == pytest.approx(exact, abs=1e-10)


@pytest.mark.slow
def test_mirrored_joints_have_mirrored_ranges() -> None:
    """A five-bar, symmetric about x = 0.2, without limits: of two freedoms."""
    model = free_five_bar(0.4, 0.3)
    for one, other in (("A", "B"), ("C", "D")):
        first, second = rm.joint_range(model, one), rm.joint_range(model, other)
        assert (first.lower, first.upper) == pytest.approx((-second.upper, -second.lower), abs=1e-9)


@pytest.mark.slow
def test_transmission_angles_of_a_knee_behind_a_belt() -> None:
    """Over the crank's range, which the knee's limit ends, whatever samples the study has."""
    model = belted_leg((-0.7, 0.8), (-0.5, 2.5))
    (found,) = rm.actuation(model).four_bars
    a, b, c, d = CRANK, ROD, HORN, THIGH

    def cosine(crank: float) -> float:
        """The bar from the crank's pin to the knee is from the thigh's line by this angle."""
        square = a * a + d * d - 2.0 * a * d * math.sin(crank)
        return (b * b + c * c - square) / (2.0 * b * c)

    ends = [math.acos(abs(cosine(x))) for x in (crank_of(-0.5), 0.8)]
    assert found.least.angle == pytest.approx(min(ends), abs=1e-9)
    assert found.most.angle == pytest.approx(math.pi / 2, abs=1e-9)
    assert cosine(found.most.at) == pytest.approx(0.0, abs=1e-9)


def test_a_rocker_that_is_drawn_at_its_dead_point_turns_back_there() -> None:
    """Crank and rod in line: it rests, but moves on with them, to where they are in line again.

    Its angles are of triangles of the ground link, the rocker and both, or their difference.
    """
    a, b, c, d = 0.2, 0.8, 0.5, 0.9
    inner = [math.acos((c * c + d * d - r * r) / (2.0 * c * d)) for r in (b + a, b - a)]
    turned = math.acos((d * d + (a + b) ** 2 - c * c) / (2.0 * d * (a + b)))  # of the crank
    way = np.array([math.cos(turned), math.sin(turned), 0.0])

    def at(x: Array) -> str:
        return " ".join(repr(float(each)) for each in x)

    model = rm.load(
        robot(
            link("crank"), link("rod"), link("rocker"),
            joint("turn", "base", "crank", more='<limit effort="9" velocity="9"/>'),
            joint("pin", "crank", "rod", at(a * way)),
            joint("swing", "base", "rocker", f"{d} 0 0"),
            loop("end", "revolute", "rod", "rocker", at(b * way),
                 at((a + b) * way - np.array([d, 0.0, 0.0]))),
        )
    )  # fmt: skip
    assert model.constraint_jacobian(model.neutral())[2, 0] == pytest.approx(0.0, abs=1e-12)
    for held in (None, model.neutral()):
        found = rm.joint_range(model, "swing", held)
        assert (found.lower, found.upper) == pytest.approx((0.0, inner[0] - inner[1]), abs=1e-9)
        assert (found.lower_by, found.upper_by) == ("end", "end")
        assert {found.lower_end.searched, found.upper_end.searched} == {False}
    (row,) = rm.actuation(model, rows=["swing"]).as_dict()["joints"]
    assert 0.1 < row["velocity"] < 9.0
    for each in rm.approximate_tree(model).errors.values():
        assert each.worst < 100.0


@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_gear_trains_are_intersections(seed: int) -> None:
    """Of joints with fixed ratios the one whose limit is first in their common motion ends all."""
    rng = np.random.default_rng(seed)
    ratios = rng.uniform(0.2, 5.0, 4) * rng.choice([-1.0, 1.0], 4)
    ends = np.array([rng.uniform(-1.5, -0.1, 4), rng.uniform(0.1, 1.5, 4)])
    names = ["a", "b", "c", "d"]
    parts = [link(f"l{x}") for x in names]
    parts += [hinge(x, "base", f"l{x}", f"0 {n} 0", (float(ends[0, n]), float(ends[1, n])))
              for n, x in enumerate(names)]  # fmt: skip
    # each turns by its ratio to the one before
    parts += [coupling(f"{x}{y}", {y: 1.0, x: -float(r)})
              for (x, y), r in zip(pairwise(names), ratios[1:], strict=True)]  # fmt: skip
    model = rm.load(robot(*parts))
    rates = np.cumprod([1.0, *ratios[1:]])
    own = np.sort(ends / rates, axis=0)
    low, high = np.max(own[0]), np.min(own[1])
    for n, name in enumerate(names):
        found = rm.joint_range(model, name)
        mine = sorted((rates[n] * low, rates[n] * high))
        assert np.allclose((found.lower, found.upper), mine, rtol=0.0, atol=1e-12)
        by = names[int(np.argmax(own[0]))], names[int(np.argmin(own[1]))]
        assert (found.lower_end.by, found.upper_end.by) == (by if rates[n] > 0.0 else by[::-1])


def spindle(screw: str, arm: str = "") -> rm.Model:
    """A nut of 2 mm per radian tilts an arm; ``screw`` and ``arm`` are limits."""
    pitch = '<pitch value="0.002"/>'
    return rm.load(
        robot(
            link("nut"), link("slider"), link("arm"), link("rod"),
            joint("screw", "base", "nut", kind="screw", axis="1 0 0", more=pitch + screw),
            joint("bearing", "nut", "slider", axis="1 0 0"),
            joint("arm", "base", "arm", "0.1 0 0.2", kind="revolute" if arm else "continuous",
                  axis=Y, more=arm + '<initial position="0.2"/>'),
            hinge("rod", "slider", "rod", "0.02 0 0", None),
            loop("pin", "revolute", "rod", "arm", "0.12 0 0", "0.02 0 -0.15", more=HINGE),
        )
    )  # fmt: skip


@pytest.mark.slow
def test_a_screw_of_many_turns_goes_to_its_limits() -> None:
    """Its path is 130 rad long."""
    model = spindle(limits(-30.0, 60.0))
    bearing, arm = (rm.joint_range(model, name) for name in ("bearing", "arm"))
    np.testing.assert_allclose((bearing.lower, bearing.upper), (-60.0, 30.0), atol=1e-9)
    ends = [float(model.joint_positions(model.configuration({"screw": x}))["arm"])
            for x in (60.0, -30.0)]  # fmt: skip
    np.testing.assert_allclose((arm.lower, arm.upper), ends, atol=1e-9)
    assert arm.lower_by == arm.upper_by == "screw"
    assert model.is_reachable(model.configuration({"screw": 59.0}))
    drawn = [
        float(model.joint_positions(model.random_configuration(n))["screw"]) for n in range(99)
    ]
    assert min(drawn) < -25.0
    assert max(drawn) > 55.0


@pytest.mark.slow
def test_a_screw_does_not_come_round() -> None:
    """After a turn the arm is where it was but for 0.08 rad; it stops the screw after six."""
    model = spindle("", limits(-0.5, 0.5))
    screw = rm.joint_range(model, "screw")
    assert (screw.lower_by, screw.upper_by) == ("arm", "arm")
    for end in (screw.lower, screw.upper):
        q = model.configuration({"screw": end})
        assert abs(abs(float(model.joint_positions(q)["arm"])) - 0.5) < 1e-9
        assert model.is_reachable(model.configuration({"screw": 0.99 * end}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the tree will not do:RuntimeWarning")
def test_limits_of_a_tree_are_the_robots_whose_rods_spin() -> None:
    """Locked, a rod ends ranges that it does not; but joints that turn with it need it locked."""
    ball = "".join(
        joint(f"to_{axis}", above, below, at, axis=way)
        for axis, above, below, at, way in (
            ("x", "base", "h1", "0.4 0.1 1", "1 0 0"),
            ("y", "h1", "h2", "0 0 0", "0 1 0"),
            ("z", "h2", "barrel", "0 0 0", "0 0 1"),
        )
    )
    text = robot(
        *(link(name, "") for name in ("cross", "h1", "h2")), *map(link, ("foot", "barrel", "rod")),
        joint("roll", "base", "cross", axis="1 0 0"), joint("pitch", "cross", "foot", axis="0 1 0"),
        ball, joint("push", "barrel", "rod", "0.24 0 -0.32", kind="prismatic", axis="0.6 0 -0.8",
                    more='<limit lower="-0.4" upper="0.4" effort="9" velocity="9"/>'),
        loop("eye", "spherical", "rod", "foot", "0.24 0 -0.32", "0.88 0.1 0.36"),
    )  # fmt: skip
    model = rm.load(text)
    tree = rm.approximate_tree(model)
    assert len(tree.basis.spins) == 1
    assert tree.basis.limiting is model
    turning = sorted(tree.basis.spins[0].joints & {"to_x", "to_y"})
    assert turning  # the rod is not in line with its third hinge
    leaning = rm.approximate_tree(model, joints=turning)
    assert leaning.basis.limiting is leaning.basis.robot
    for given in (tree, leaning):
        names = [name for name in given.limits if name in model.joint_names]
        for each in limb_ranges(given.basis.limiting, names):
            ends = given.limits[each.joint]
            assert (ends.lower, ends.upper) == pytest.approx((each.lower, each.upper), abs=1e-9)


def ankle(kind: str, more: str) -> rm.Model:
    """Pitch and roll of a foot by two actuators between universal joints and balls."""
    slim = (
        '<inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    parts = [link("cross", slim), link("foot"), joint("pitch", "base", "cross", axis=Y),
             joint("roll", "cross", "foot", axis="1 0 0")]  # fmt: skip
    for side, y in (("l", 0.05), ("r", -0.05)):
        u, barrel, rod = (f"{name}_{side}" for name in ("u", "barrel", "rod"))
        parts += [
            *(link(name, slim) for name in (u, barrel, rod)),
            joint(f"pitch_{side}", "base", u, f"-0.06 {y} 0.3", axis=Y),
            joint(f"roll_{side}", u, barrel, axis="1 0 0"),
            joint(side, barrel, rod, "0 0 -0.3", axis="0 0 -1", kind=kind,
                  more=more),
            loop(f"ball_{side}", "spherical", rod, "foot", "0 0 0", f"-0.06 {y} 0", more=""),
        ]  # fmt: skip
    return rm.load(robot(*parts))


@pytest.mark.slow
def test_hinges_that_turn_more_than_once_meet_the_limits_of_others() -> None:
    """A link that is tied to two others by slides along their axis turns as both do."""
    x = '<axis xyz="1 0 0"/>'
    model = rm.load(
        robot(
            *map(link, ("a", "b", "c")),
            joint("one", "base", "a", kind="revolute", axis="1 0 0", more=limits(-19.1, 6.55)),
            joint("other", "base", "b", kind="revolute", axis="1 0 0", more=limits(-8.0, 17.8)),
            joint("slide", "a", "c", kind="prismatic", axis="1 0 0", more=limits(-0.1, 0.1)),
            loop("rail", "prismatic", "b", "c", more=x),
        )
    )
    for name in ("one", "other"):
        reach = rm.joint_range(model, name)
        assert (reach.lower, reach.upper) == pytest.approx((-8.0, 6.55))
        assert (reach.lower_by, reach.upper_by) == ("other", "one")


@pytest.mark.slow
def test_hinges_that_screws_turn_more_than_once_meet_the_limits_of_slides() -> None:
    """The hinge turns as two screws together, which move the slide by 3 mm a radian."""
    pitch = '<pitch value="-0.003"/>'
    model = rm.load(
        robot(
            *map(link, ("a", "b", "c", "d")),
            joint("first", "base", "a", kind="screw", axis="1 0 0", more=pitch),
            joint("second", "a", "b", kind="screw", axis="1 0 0", more=pitch),
            joint("slide", "b", "c", kind="prismatic", axis="1 0 0", more=limits(-0.03, 0.08)),
            joint("hinge", "base", "d", kind="revolute", axis="1 0 0", more=limits(-15.0, 9.0)),
            loop("held", "fixed", "c", "d", more=""),
        )
    )
    reach = rm.joint_range(model, "hinge")
    assert (reach.lower, reach.upper) == pytest.approx((-10.0, 9.0))
    assert (reach.lower_by, reach.upper_by) == ("slide", "hinge")


@pytest.mark.slow
def test_fine_screws_move_an_ankle_as_slides_do() -> None:
    pitch = 0.002 / math.tau
    slides = ankle("prismatic", limits(-0.045, 0.045))
    ends = limits(-0.045 / pitch, 0.045 / pitch)
    screws = ankle("screw", f'{ends}<pitch value="{pitch!r}"/>')
    assert rm.limb_joints(screws) == rm.limb_joints(slides) == ("pitch", "roll")
    for name in ("pitch", "roll"):
        one, other = (rm.joint_range(model, name) for model in (slides, screws))
        assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), abs=1e-6)
        assert other.lower_by == one.lower_by
    drawn = [np.array([x.random_configuration(k) for k in range(40)]) for x in (slides, screws)]
    for name in ("pitch", "roll"):
        spread = [np.std(x.joint_positions(q)[name])
                  for x, q in zip((slides, screws), drawn, strict=True)]  # fmt: skip
        assert spread[1] == pytest.approx(spread[0], rel=0.2)
    assert all(map(screws.is_reachable, drawn[1][:8]))


@pytest.mark.slow
@pytest.mark.parametrize(("thread", "travel"), [(0.002, 0.06), (0.002, 0.3), (-0.03, 0.06)])
def test_fine_screws_move_links_as_slides_do(thread: float, travel: float) -> None:
    """A spindle in a bearing moves a nut, whose rod moves an arm: the arm is the limb.

    Its pin stands at most as high above the spindle as the rod is long, which is a dead point, and
    goes as far as the nut in closed form.
    """
    pitch = thread / math.tau
    slim = (
        '<inertial><mass value="0.3"/><inertia ixx="1e-5" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    ends = f'<limit lower="{-travel / abs(pitch)!r}" upper="{travel / abs(pitch)!r}"/>'
    model = rm.load(
        robot(
            *(link(name, slim) for name in ("spindle", "nut", "rod")), link("arm"),
            joint("spin", "base", "spindle", axis="1 0 0"),
            joint("screw", "spindle", "nut", "0.1 0 0", kind="screw", axis="1 0 0",
                  more=f'{ends}<pitch value="{pitch!r}"/>'),
            joint("pin", "nut", "rod"),
            joint("knee", "base", "arm", "0.2 0.15 0"),
            loop("eye", "revolute", "rod", "arm", "0.1 0.05 0", "0 -0.1 0"),
        )
    )  # fmt: skip
    rod = math.hypot(0.1, 0.05)
    dead = math.acos((0.15 - rod) / 0.1)

    def nut(knee: float, side: float) -> float:
        x, y = 0.2 + 0.1 * math.sin(knee), 0.15 - 0.1 * math.cos(knee)
        return x + side * math.sqrt(max(0.0, rod**2 - y**2)) - 0.1

    assert rm.limb_joints(model) == ("knee",)
    (reach,) = [rm.joint_range(model, "knee")]
    assert reach.lower == pytest.approx(-dead, abs=1e-8)
    if travel < 0.2:
        assert nut(reach.upper, -1.0) == pytest.approx(travel, abs=1e-9)
    else:
        assert reach.upper == pytest.approx(dead, abs=1e-8)
    q = np.array([model.random_configuration(k) for k in range(6)])
    at = model.joint_positions(q)
    for knee, turns in zip(at["knee"].tolist(), at["screw"].tolist(), strict=True):
        assert min(abs(nut(knee, side) - pitch * turns) for side in (1.0, -1.0)) < 1e-9
    q[:, model.joint_names.index("spin")] += math.tau * np.arange(-2, 4)  # in the same places
    assert all(map(model.is_reachable, q))
    anywhere = np.array([model.random_configuration(k, branch="any") for k in range(24)])
    assert np.ptp(pitch * model.joint_positions(anywhere)["screw"]) > 0.05  # not by the last turn
    (linkage,) = rm.validate(model).linkages
    kinds = {event.kind for sweep in linkage.sweeps for event in sweep.singularities}
    assert kinds == {"dead point"}


def slim_link(name: str) -> str:
    """A link with less mass than others, as of a screw."""
    return link(
        name,
        '<inertial><mass value="0.3"/><inertia ixx="1e-5" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" '
        'iyz="0"/></inertial>',
    )


@pytest.mark.parametrize("thread", [None, 0.02, 0.002, -0.001])
def test_the_limb_behind_a_guided_nut_is_that_behind_a_slide(thread: float | None) -> None:
    """However fine the thread is; ``thread`` in metres for a turn, none of a slide."""
    screw = [
        slim_link("spindle"), joint("spin", "base", "spindle", axis="1 0 0"),
        joint("nut", "spindle", "nut", "-0.15 0 0", kind="screw", axis="1 0 0",
              more=f'<pitch value="{(thread or 0.0) / math.tau!r}"/>'),
        loop("guide", "prismatic", "base", "nut", "-0.15 0 0", "0 0 0",
             more='<axis xyz="1 0 0"/>'),
    ]  # fmt: skip
    slide = [joint("nut", "base", "nut", "-0.15 0 0", kind="prismatic", axis="1 0 0")]
    model = rm.load(robot(
        slim_link("nut"), *(screw if thread else slide),
        slim_link("rod"), joint("pin", "nut", "rod"),
        link("arm"), joint("knee", "base", "arm", "0.15 0 0"),
        loop("eye", "revolute", "rod", "arm", "0.15 0.2 0", "-0.15 0.2 0"),
    ))  # fmt: skip
    assert rm.limb_joints(model) == ("knee",)


def test_open_trees_are_judged_as_far_as_fine_screws_go() -> None:
    """A cylinder with a thread of 2 mm, whose arm goes with it along no line."""

    def cylinder(ends: str) -> rm.Model:
        return rm.load(robot(
            *map(slim_link, ("barrel", "rod", "eye", "arm")),
            joint("pivot", "base", "barrel"),
            joint("screw", "barrel", "rod", "0.25 0 0", kind="screw", axis="1 0 0",
                  more=f'{ends}<pitch value="{0.002 / math.tau!r}"/>'),
            joint("bearing", "rod", "eye", axis="1 0 0"),
            joint("knee", "base", "arm", "0.3 0 0"),
            loop("pin", "revolute", "eye", "arm", "0 0 0", "0 0.2 0"),
        ))  # fmt: skip

    for ends, span in ((limits(-157.0, 157.0), 314.0), ("", 942.0)):
        model = cylinder(ends)
        assert rm.limb_joints(model) == ("screw",)
        (tree,), (cluster,) = tree_joints(model), model.clusters
        place = cluster.geometry.links[cluster.joints.index("screw")].q
        assert np.ptp(tree.others[:, place]) == pytest.approx(span, rel=0.05)
        assert not rm.approximate_tree(model).basis.followers
