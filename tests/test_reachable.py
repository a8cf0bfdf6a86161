"""Where robots can be: draws, sheets and membership against signs of elbows and closed forms."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linkage_family import instance
from texts import coupling, four_bar, joint, link, loop, robot, wrist

import robomodel as rm
from robomodel.mechanism.continuation import Ends
from robomodel.mechanism.sheets import Places, Sheet
from robomodel.mechanism.walks import WALK_STRIDE, lead, wander
from robomodel.opentree.errors import Error
from robomodel.reach import targets
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.reachable import from_configuration, reachable
from robomodel.reach.targets import Explored

Array = np.ndarray


def limited(lower: float, upper: float) -> str:
    return f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>'


def elbow(model: rm.Model, q: Array) -> Array:
    """The side of the rocker on which the coupler is: a crank-rocker keeps it."""
    x = model.joint_positions(q)
    return np.sign(np.sin(x["j_crank"] + x["j_coupler"] - x["j_rocker"]))


def five_bar(lower: float = 0.2, upper: float = 2.9) -> str:
    """Two cranks of 0.3 on a ground of 0.2, rods of 0.5 that meet: both elbows are in reach."""
    more = limited(lower, upper)
    return robot(
        *(link(name) for name in ("a", "b", "c", "d")),
        joint("left", "base", "a", kind="revolute", mark=True, more=more),
        joint("left_knee", "a", "b", "0.3 0 0", mark=False),
        joint("right", "base", "c", "0.2 0 0", kind="revolute", mark=True, more=more),
        joint("right_knee", "c", "d", "0.3 0 0", mark=False),
        loop("tip", "revolute", "b", "d", "0.5 0 0", "0.5 0 0"),
    )


def beside(one: Array, reach: float, other: Array, length: float, side: float) -> Array:
    """Complex points so far from two others, on one side of the line between them."""
    away = other - one
    size = np.abs(away)
    along = (reach**2 - length**2 + size**2) / (2.0 * size)
    return np.asarray(one + (along + 1j * side * np.emath.sqrt(reach**2 - along**2)) * away / size)


def parallelograms() -> str:
    """Two in series, which a lever carries: a hand stays level; limits keep change points off."""

    def side(name: str, parent: str, x: float, z: float) -> str:
        return joint(name, parent, f"l_{name}", f"{x} {z} 0", mark=None)

    return robot(
        *(link(f"l_{name}") for name in ("lift", "rod", "plate", "fore", "fore_rod", "hand")),
        joint("lift", "base", "l_lift", kind="revolute", mark=True, more=limited(0.4, 2.6)),
        side("rod", "base", 0.1, 0.0),
        side("plate", "l_lift", 0.5, 0.0),
        loop("top", "revolute", "l_rod", "l_plate", "0.5 0 0", "0.1 0 0"),
        joint("fore", "l_plate", "l_fore", kind="revolute", mark=True, more=limited(-1.2, 1.2)),
        side("fore_rod", "l_plate", 0.0, 0.1),
        side("hand", "l_fore", 0.4, 0.0),
        loop("end", "revolute", "l_fore_rod", "l_hand", "0.4 0 0", "0 0.1 0"),
    )


# ---- draws ---------------------------------------------------------------------------------------


def test_draws_stay_on_the_circuit_of_the_start() -> None:
    """A crank-rocker has two circuits; each start draws from its own, all the way round."""
    model = rm.load(four_bar(marks=(True, False, False)))
    rng = np.random.default_rng(0)
    for sign in (1.0, -1.0):
        x = model.neutral() if sign == elbow(model, model.neutral()) else crossed(model)
        reach = from_configuration(model, x)
        q = reach.draw(rng, 500)
        assert np.max(np.abs(model.residual(q))) < 1e-13
        assert set(elbow(model, q)) == {sign}
        assert np.max(np.diff(np.sort(q[:, 0]))) < 0.2  # the crank, all round
        assert reach.contains(q[:20]).all()
        assert reach.contains(q[:20] + 2 * math.pi * np.array([1, -1, 0])).all()


def crossed(model: rm.Model) -> Array:
    """The other circuit: the image of the neutral configuration in the ground link."""
    x = model.joint_positions(model.neutral())
    q = np.array([-x["j_crank"], -x["j_coupler"], -x["j_rocker"]])
    model.check(q)
    return q


def test_members_are_those_of_the_circuit() -> None:
    model = rm.load(four_bar(marks=(True, False, False)))
    mine, other = reachable(model), from_configuration(model, crossed(model))
    rng = np.random.default_rng(1)
    assert not mine.contains(other.draw(rng, 50)).any()
    q = mine.draw(rng, 50)
    assert not other.contains(q).any()
    assert not mine.contains(q + 1e-3).any()  # open


@pytest.mark.slow
@pytest.mark.parametrize("longer", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("two", [True, False])
def test_members_beside_a_near_miss_of_branches(longer: float, two: bool) -> None:
    """Nearly a parallelogram: with a longer rocker two circuits, with a longer ground link one.

    The circuits miss each other next to where all links are in line; closed forms tell them apart.
    """
    ground, out = (1.0, 0.6 + longer) if two else (1.0 + longer, 0.6)
    model = rm.load(
        robot(
            *(link(name) for name in ("crank", "coupler", "rocker")),
            joint("j_crank", "base", "crank", more='<initial position="1.2"/>'),
            joint("j_coupler", "crank", "coupler", "0.6 0 0", more='<initial position="-1.2"/>'),
            joint("j_rocker", "base", "rocker", f"{ground!r} 0 0",
                  more='<initial position="1.2"/>'),
            loop("closing", "revolute", "coupler", "rocker", "1 0 0", f"{out!r} 0 0"),
        )
    )  # fmt: skip
    crank = np.linspace(-math.pi, math.pi, 401)
    pin = 0.6 * np.exp(1j * crank)
    found = []
    for side in (1.0, -1.0):
        end = beside(pin, 1.0, np.full_like(pin, ground), out, side)
        close = np.abs(np.abs(end - pin) - 1.0) < 1e-12
        turns = {
            "j_crank": crank,
            "j_coupler": np.angle((end - pin) / pin),
            "j_rocker": np.angle(end - ground),
        }
        q = np.stack([turns[name] for name in model.joint_names], axis=1)[close]
        found.append(model.is_reachable(q))
    assert min(map(len, found)) > 380
    assert found[0].all()
    assert not found[1].any() if two else found[1].all()


@pytest.mark.slow
def test_members_of_two_freedoms_are_on_one_side() -> None:
    """Pins of cranks are 0.2 … 0.8 apart, so that rods of 0.5 and 0.38 never align."""
    text = robot(
        *(link(name) for name in ("a", "b", "c", "d")),
        joint("left", "base", "a", kind="revolute", mark=True, more=limited(1.6, 2.9)),
        joint("left_knee", "a", "b", "0.3 0 0", mark=False),
        joint("right", "base", "c", "0.2 0 0", kind="revolute", mark=True, more=limited(0.2, 1.5)),
        joint("right_knee", "c", "d", "0.3 0 0", mark=False),
        loop("tip", "revolute", "b", "d", "0.5 0 0", "0.38 0 0"),
    )
    model = rm.load(text)

    def side(q: Array) -> Array:
        x = model.joint_positions(q)
        return np.sign(np.sin(x["right"] + x["right_knee"] - x["left"] - x["left_knee"]))

    q = np.array([model.random_configuration(k, branch="any") for k in range(24)])
    mine = side(q) == side(model.neutral())
    assert 4 < mine.sum() < 20
    np.testing.assert_array_equal(model.is_reachable(q), mine)


@pytest.mark.slow
def test_members_behind_narrow_doors() -> None:
    """Where walks of a spherical platform end, which has limits at half turns, is in reach.

    Straight ways to known points do not tell that of all.
    """
    text = instance("spherical platform", 1, 0.0)[0].replace("continuous", "revolute")
    model = rm.load(text.replace("</joint>", limited(-math.pi, math.pi) + "</joint>"))
    (group,) = reachable(model).linkages[0].groups
    start = group.origin[np.zeros(120, dtype=np.intp)]
    ends = wander(group.along, start, np.random.default_rng(5), 300)[0].q
    straight = group.contains(ends, quick=True)
    assert group.freedoms == 3
    assert not straight.all()
    assert model.is_reachable(ends).all()
    some = np.append(np.flatnonzero(~straight)[:1], 0)  # the same alone as among others
    assert [model.is_reachable(q) for q in ends[some]] == [True, True]


@pytest.mark.parametrize("name", ["tello", "parallel_ankle", "five_bar"])
def test_strides_move_joints_no_farther_than_is_said(name: str) -> None:
    """So no way leads to what is farther beyond limits, for which none is sought."""
    rng = np.random.default_rng(5)
    for linkage in reachable(rm.robots.load(name)).linkages:
        for group in linkage.groups:
            along, limits = group.along, group.along.limits
            p = group.pool[rng.integers(len(group.pool.q), size=400)]
            d = rng.standard_normal((400, group.freedoms))
            d *= WALK_STRIDE / np.linalg.norm(d, axis=1, keepdims=True)
            there, ends = along.stride(p, d)
            fine = ends == Ends.FINE
            moved = np.abs(there.q - p.q)[fine][:, limits.places]
            assert fine.sum() > 100
            assert np.all(moved <= limits.farthest(WALK_STRIDE))


def test_a_limit_ends_it() -> None:
    """A crank within 0.3 … 2.2 by arc length, up to both ends; the rocker follows."""
    text = four_bar(marks=(True, False, False)).replace(
        '<joint name="j_crank" type="continuous"', '<joint name="j_crank" type="revolute"'
    ).replace('<child link="crank"/>', '<child link="crank"/>' + limited(0.3, 2.2))  # fmt: skip
    model = rm.load(text)
    q = reachable(model).draw(np.random.default_rng(2), 2000)
    assert 0.3 <= q[:, 0].min() < 0.31
    assert 2.19 < q[:, 0].max() <= 2.2
    assert len(set(elbow(model, q))) == 1
    beyond = model.configuration({"j_crank": 2.3})
    assert not reachable(model).contains(beyond[None]).any()


def test_parallelograms_stay_parallelograms() -> None:
    """Straight on at the change points of one that turns fully, and of two in series."""
    model = rm.robots.load("four_bar")
    x = model.joint_positions(reachable(model).draw(np.random.default_rng(3), 300))
    for a, b in ((x["joint2"], -x["joint1"]), (x["joint3"], x["joint1"])):
        assert np.max(np.abs(np.sin(0.5 * (a - b)))) < 1e-12
    assert np.ptp(x["joint1"]) > 6.2
    model = rm.load(parallelograms())
    x = model.joint_positions(reachable(model).draw(np.random.default_rng(4), 300))
    for a, b in ((x["rod"], x["lift"]), (x["plate"], -x["lift"]), (x["fore_rod"], x["fore"]),
                 (x["hand"], -x["fore"])):  # fmt: skip
        assert np.max(np.abs(np.sin(0.5 * (a - b)))) < 1e-12


@pytest.mark.slow
def test_the_same_seed_draws_the_same() -> None:
    """Whatever was drawn before, of this model or one that was loaded again."""
    text = five_bar()
    first, again = reachable(rm.load(text)), reachable(rm.load(text))
    first.draw(np.random.default_rng(7), 5)
    q = first.draw(np.random.default_rng(8), 3)
    np.testing.assert_array_equal(q, again.draw(np.random.default_rng(8), 3))


def test_gear_trains_are_drawn_within_the_limits_of_followers() -> None:
    """A differential's outputs have limits: a polygon of inputs, drawn uniformly."""
    model = rm.load(
        robot(
            *(link(name) for name in ("a", "b", "c", "d")),
            *(joint(f"j_{n}", "base", n, kind="revolute", more=limited(-2, 2)) for n in ("a", "b")),
            *(joint(f"j_{n}", "base", n, kind="revolute", more=limited(-1, 1)) for n in ("c", "d")),
            coupling("sum", {"j_c": 1.0, "j_a": -0.5, "j_b": -0.5}),
            coupling("difference", {"j_d": 1.0, "j_a": -0.5, "j_b": 0.5}),
        ),
        independent=["j_a", "j_b"],
    )
    q = reachable(model).draw(np.random.default_rng(5), 8000)
    x = model.joint_positions(q)
    assert max(np.abs(x["j_c"]).max(), np.abs(x["j_d"]).max()) <= 1.0 + 1e-12
    cells = np.histogram2d(x["j_c"], x["j_d"], bins=4, range=[(-1, 1)] * 2)[0]
    assert np.max(np.abs(cells / 500.0 - 1.0)) < 0.25  # four deviations of 500 draws are 0.18
    outside = np.array([[1.9, 1.9], [0.5, 0.0]])
    assert reachable(model).contains(outside).tolist() == [False, True]


def test_what_only_couplings_tie_to_a_loop_is_drawn_too() -> None:
    """A differential of a linkage's crank and of a motor beside it moves an arm within limits."""
    more = limited(-0.4, 0.7)
    model = rm.load(
        four_bar(
            link("motor"), link("arm"),
            joint("m", "base", "motor", "0 0 1", mark=True),
            joint("arm", "base", "arm", "0 0 2", kind="revolute", more=more),
            coupling("sum", {"arm": 1.0, "j_crank": -0.1, "m": -0.2}),
        )
    )  # fmt: skip
    assert model.nv == 2
    q = reachable(model).draw(np.random.default_rng(0), 300)
    assert np.max(np.abs(model.residual(q))) < 1e-10
    at = model.joint_positions(q)
    assert -0.4 - 1e-9 <= np.min(at["arm"]) < -0.35
    assert 0.65 < np.max(at["arm"]) <= 0.7 + 1e-9
    assert np.all(np.isfinite(at["m"]))
    assert abs(np.corrcoef(at["arm"], at["j_crank"])[0, 1]) < 0.2


def test_balls_and_bases() -> None:
    """A ball turns any way; a floating base stays where it starts, or is where it shall be."""
    text = robot(link("a"), joint("ball", "base", "a", kind="spherical"))
    model = rm.load(text.replace('<link name="base"/>', link("base")), floating_base=True)
    q = reachable(model).draw(np.random.default_rng(0), 400)
    np.testing.assert_array_equal(q[:, :7], np.tile([0, 0, 0, 0, 0, 0, 1], (400, 1)))
    np.testing.assert_allclose(np.linalg.norm(q[:, 7:], axis=1), 1.0, atol=1e-14)
    assert np.max(np.abs(q[:, 7:].mean(axis=0))) < 0.1  # four deviations
    pose = np.array([1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8])
    again = reachable(model).draw(np.random.default_rng(0), 400, base_pose=pose)
    np.testing.assert_array_equal(again[:, :7], np.tile(pose, (400, 1)))
    np.testing.assert_array_equal(again[:, 7:], q[:, 7:])


def test_a_robot_without_joints_is_where_it_is() -> None:
    model = rm.load('<robot name="still"><link name="base"/></robot>')
    assert model.is_reachable(model.neutral()) is True
    np.testing.assert_array_equal(model.is_reachable(np.zeros((3, 2, 0))), np.ones((3, 2)))
    pose = np.broadcast_to(np.eye(4), (3, 4, 4))
    assert rm.inverse_kinematics(model, {"base": pose}).shape == (3, 0)


SAMPLERS = {
    "cli/identification.py", "cli/states.py", "control/inverse_kinematics.py",
    "dynamics/actuators/maps.py", "estimation/planning.py", "identification/base.py",
    "opentree/tree_joints.py", "reports/actuation/study.py",
    "instants/compiled.py",
    "instants/equations.py", "interop/crocoddyl.py", "papers/elimination_orders/forward.py",
    "reports/approximation.py", "reports/comparison/study.py", "reports/validation/context.py",
    "reports/validation/linkage.py", "simulators/beside.py", "views/extension.py",
    "views/viewer.py",
}  # fmt: skip
CLOSED_ANYWHERE = {"mobility/exploration.py", "reach/drawing.py"}


def test_samplers_draw_what_is_reachable() -> None:
    """Where the package draws configurations they are reachable; mobility is decided before."""
    package = Path(rm.__file__).parent
    text = {
        str(path.relative_to(package)): path.read_text("utf-8") for path in package.rglob("*.py")
    }
    draws = (
        r"[\w)]\.random_configuration\(|\b(reachable|from_configuration)\(model"
        r"|\bdrawn\((problem\.)?model"
    )
    own = r"^(?!.*def ).*(random_positions\(|branch=.any)"
    found = {name for name, lines in text.items() if re.search(draws, lines)}
    found = {name for name in found if not name.startswith("reach/")} - {"model/model.py"}
    assert found == SAMPLERS
    elsewhere = {name for name, lines in text.items() if re.search(own, lines, re.MULTILINE)}
    assert elsewhere == CLOSED_ANYWHERE


# ---- sheets --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_sheet_of_the_motors_is_one_elbow() -> None:
    """Of a five-bar both elbows are in reach, past dead points; on the sheet it is the start's."""
    model = rm.load(five_bar())

    def up(q: Array) -> Array:
        x = model.joint_positions(q)
        return np.sin(x["left"] + x["left_knee"] - x["right"] - x["right_knee"]) > 0.0

    reach, rng = reachable(model), np.random.default_rng(0)
    share = np.mean(up(reach.draw(rng, 2000)))
    assert 0.3 < share < 0.7
    sheet = reach.on_sheet(["left", "right"])
    q = sheet.draw(rng, 2000)
    assert set(up(q)) == set(up(model.neutral()[None]))
    cells = np.histogram2d(q[:, 0], q[:, 2], bins=3, range=[(0.2, 2.9)] * 2)[0]
    assert np.max(np.abs(cells * 9 / 2000 - 1.0)) < 0.3  # four deviations of 222 draws
    other = reach.draw(rng, 60)
    other = other[up(other) != up(q)[0]]
    assert len(other) > 10
    assert reach.contains(other).all()
    assert not sheet.contains(other).any()


def test_the_sheet_of_a_rocker_ends_at_its_dead_points() -> None:
    """The crank turns half of the way round; ends by the cosine law of straight cranks."""
    model = rm.load(four_bar(marks=(True, False, False)))
    q = reachable(model).on_sheet(["j_rocker"]).draw(np.random.default_rng(0), 4000)
    rocker = model.joint_positions(q)["j_rocker"]
    ends = [math.acos((1.1**2 + 0.7**2 - r**2) / (2 * 1.1 * 0.7)) for r in (0.5, 1.5)]
    sign = np.sign(math.remainder(float(rocker[0]), 2 * math.pi))
    low, high = sorted(sign * (math.pi - x) for x in ends)
    x = np.array([math.remainder(float(each), 2 * math.pi) for each in rocker])
    assert low <= x.min() < low + 0.01
    assert high - 0.01 < x.max() <= high
    cells = np.histogram(x, bins=5, range=(low, high))[0]
    assert np.max(np.abs(cells / 800.0 - 1.0)) < 0.15  # uniform in the rocker, four deviations
    slope = np.sign(model.constraint_jacobian(q)[:, 2, 0])
    assert len(set(slope)) == 1  # one way of the crank


@pytest.mark.slow
def test_frames_turn_with_strides() -> None:
    """Those of a stride's end are orthonormal, and the motions there the nearest to those before.

    With all conditions, and with repeated ones; K keeps its sign in them, or a stride is refused.
    """
    for text in (five_bar(), ankle(0.05, 0.08, 0.25, 0.6)[0]):
        model = rm.load(text, spins="locked")
        (group,) = reachable(model).linkages[0].groups
        along, rng = group.along, np.random.default_rng(0)
        p = group.pool[rng.integers(len(group.pool.q), size=20)]
        there, ends = along.stride(p, 0.1 * rng.standard_normal((20, group.freedoms)))
        fine = np.flatnonzero(ends == 0)
        assert len(fine) > 10
        there, p, again = there[fine], p[fine], along.at(there.q[fine])
        frame = np.concatenate([there.v, there.n], axis=2)
        every = np.tile(np.eye(along.columns), (len(fine), 1, 1))
        np.testing.assert_allclose(np.swapaxes(frame, 1, 2) @ frame, every, atol=1e-13)
        left, _, right = np.linalg.svd(np.swapaxes(again.n, 1, 2) @ p.n)
        np.testing.assert_allclose(there.n, again.n @ (left @ right), atol=1e-12)
        k = along.mechanism.step(there.q, np.zeros((len(fine), along.columns)))[2]
        assert (np.linalg.det(there.c @ k @ there.v) > 0.0).all()


def ankle(out: float, crank: float, rod_up: float, reach: float) -> tuple[str, Array]:
    """A foot on pitch and roll that two rods with balls hold, whose cranks turn about pitch.

    Also the least motions of both cranks at a grid of pitch and roll, by the law of cosines.
    """
    balls = "".join(
        f'<body name="rod{k}" pos="{-out} {y} 0"><joint name="ball{k}" type="ball"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 {rod_up}" size=".005"/></body>'
        for k, y in enumerate((0.04, -0.04))
    )
    cranks = "".join(
        f'<body name="c{k}" pos="0 {y} {rod_up}"><joint name="crank{k}" axis="0 1 0" '
        f'range="{-reach} {reach}"/><geom type="capsule" fromto="0 0 0 {-crank} 0 0" size=".005"/>'
        "</body>"
        for k, y in enumerate((0.04, -0.04))
    )
    loops = "".join(
        f'<connect body1="c{k}" body2="rod{k}" anchor="{-crank} 0 0"/>' for k in range(2)
    )
    text = (
        '<mujoco><compiler angle="radian"/><worldbody><body name="cross">'
        '<joint name="pitch" axis="0 1 0" range="-1.1 1.1"/><geom size=".01"/><body name="foot">'
        '<joint name="roll" axis="1 0 0" range="-.8 .8"/><geom size=".03"/>'
        f"{balls}</body></body>{cranks}</worldbody><equality>{loops}</equality></mujoco>"
    )
    p, r = np.meshgrid(np.linspace(-1.1, 1.1, 89), np.linspace(-0.8, 0.8, 81), indexing="ij")
    turns = []
    for y in (0.04, -0.04):
        x, across, up = -out * np.cos(p) + np.sin(p) * y * np.sin(r), y * np.cos(r), y * np.sin(r)
        z = out * np.sin(p) + np.cos(p) * up - rod_up
        gap = x * x + (across - y) ** 2 + z * z + crank**2 - (crank - out) ** 2 - rod_up**2
        far, lean = 2.0 * crank * np.hypot(x, z), np.arctan2(z, -x)
        with np.errstate(invalid="ignore"):
            bend = np.arccos(gap / far)
        ways = [np.angle(np.exp(1j * (lean + side * bend))) for side in (1.0, -1.0)]
        turns.append(np.where(abs(ways[0][44, 40]) < abs(ways[1][44, 40]), *ways))
    return text, np.array(turns)


@dataclass(frozen=True)
class Repeated:
    """A mechanism with its conditions, and their sums and differences."""

    of: Any

    def step(self, q: Array, d: Array, case: Array | None = None) -> tuple[Array, ...]:
        there, values, k = self.of.step(q, d, case)
        all_of = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
        return there, values @ all_of.T, all_of @ k

    def away(self, q0: Array, q1: Array, case: Array | None = None) -> Array:
        return self.of.away(q0, q1, case)


def check_ways(
    model: rm.Model, joints: list[str], low: float, high: float, *, repeated: bool = False
) -> np.ndarray:
    """Ways on a sheet end where those in the motions of each point end; positions they lead to.

    Goals are in a box of the joints. Rates G are those of the motion: K G = 0, Y G = 1.
    """
    linkage = reachable(model).on_sheet(joints).linkages[0]
    (group,) = linkage.groups
    telling, along = group.telling, group.along
    if repeated:
        along = replace(along, mechanism=Repeated(along.mechanism))
    sheet = Sheet(along, telling.rows, np.full(len(joints), high - low))
    assert (sheet.at(group.origin.q).c is not None) == repeated
    goals = np.random.default_rng(0).uniform(low, high, (300, len(joints)))
    rows = np.zeros(len(goals), dtype=int)
    ways = goals - group.origin.q[:, telling.places]
    found, arrived, until = sheet.lead(sheet.at(group.origin.q)[rows], ways)
    points, why, _ = lead(group.along, group.origin[rows], telling, goals)
    assert 30 < np.count_nonzero(arrived) < 270
    assert np.mean(arrived != (why == Ends.FINE)) < 0.01  # at most next to the sheet's end
    both = arrived & (why == Ends.FINE)
    np.testing.assert_allclose(found.q[both], points.q[both], atol=1e-9)
    np.testing.assert_allclose(found.q[arrived][:, telling.places], goals[arrived], atol=1e-10)
    went = found.q[:, telling.places] - group.origin.q[:, telling.places]
    times = np.sum(went * ways, axis=1) / np.sum(ways**2, axis=1)
    np.testing.assert_allclose(went, times[:, None] * ways, atol=1e-10)  # straight on
    assert np.all(times[~arrived] <= until[~arrived] + 1e-12)
    assert np.all(until <= 1.0)
    _, gap, k = along.mechanism.step(found.q, np.zeros((len(goals), along.columns)))
    assert np.max(np.abs(gap[arrived])) < 1e-12
    assert np.max(np.abs(gap)) < 1e-7
    assert np.max(np.abs(k @ found.rates)) < 1e-9 * np.max(np.abs(found.rates))
    np.testing.assert_allclose(telling.rows @ found.rates - np.eye(len(joints)), 0.0, atol=1e-12)
    check_further(sheet, group.origin.q, ways[:100], ways[100:200])
    return goals[arrived]


def check_further(sheet: Sheet, start: np.ndarray, ways: np.ndarray, others: np.ndarray) -> None:
    """Rows that go on as soon as they have come to an end, by half of a way, as all in turn do."""
    begin = sheet.at(start)[np.zeros(len(ways), dtype=int)]
    first, arrived, _ = sheet.lead(begin, ways)
    at = begin[np.arange(len(ways))]
    at.move(np.flatnonzero(arrived), first[np.flatnonzero(arrived)])
    expected, there, until = sheet.lead(at, 0.5 * others)
    seen = list[int]()

    def further(
        rows: np.ndarray, places: Places, arrived: np.ndarray, until: np.ndarray
    ) -> tuple[np.ndarray, Places, np.ndarray]:
        new = np.array([row not in seen for row in rows])
        seen.extend(rows[new].tolist())
        return rows[new], at[rows[new]], 0.5 * others[rows[new]]

    found, came, last = sheet.lead(begin, ways, further)
    assert sorted(seen) == list(range(len(ways)))
    np.testing.assert_array_equal(came, there)
    np.testing.assert_allclose(found.q[came], expected.q[there], atol=1e-9)
    np.testing.assert_allclose(last, until, atol=1e-6)


@pytest.mark.parametrize("repeated", [False, True])
def test_ways_on_the_sheet_of_two_motors(repeated: bool) -> None:
    """Tips further apart than both rods are not reached; conditions that repeat others."""
    text = five_bar(0.2, 2.9).replace("0.5 0 0", "0.3 0 0")
    at = check_ways(rm.load(text), ["left", "right"], 0.2, 2.9, repeated=repeated)
    tips = [0.3 * np.exp(1j * at[:, 0]), 0.2 + 0.3 * np.exp(1j * at[:, 1])]
    assert np.max(np.abs(tips[1] - tips[0])) < 0.6


def test_ways_on_the_sheet_of_an_ankle() -> None:
    """Its motors have limits."""
    text, _ = ankle(0.05, 0.08, 0.25, 0.6)
    check_ways(rm.load(text, spins="locked"), ["pitch", "roll"], -0.8, 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("on_chords", [False, True])
def test_draws_on_a_large_sheet_are_uniform(
    on_chords: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that two rods let a foot reach has its share, the corners too: closed form."""
    if on_chords:
        monkeypatch.setattr(targets, "OFTEN", 2.0)
    text, turns = ankle(0.05, 0.08, 0.25, 0.6)
    model = rm.load(text, spins="locked")
    inside = np.all(np.abs(np.nan_to_num(turns, nan=9.0)) <= 0.6, axis=0)
    q = reachable(model).on_sheet(["pitch", "roll"]).draw(np.random.default_rng(0), 3000)
    at = model.joint_positions(q)
    row = np.rint((np.asarray(at["pitch"]) + 1.1) / 0.025).astype(int)
    column = np.rint((np.asarray(at["roll"]) + 0.8) / 0.02).astype(int)
    assert np.mean(inside[row, column]) > 0.97  # the others are in cells that an end cuts
    drawn = np.zeros(inside.shape)
    np.add.at(drawn, (row, column), 1.0 / len(q))
    for cells in (np.s_[:30], np.s_[30:60], np.s_[60:], np.s_[:, :20], np.s_[:, 60:]):
        share = np.mean(inside[cells]) * inside[cells].size / np.sum(inside)
        assert abs(drawn[cells].sum() - share) < 4.0 * np.sqrt(share / len(q)) + 0.01


@pytest.mark.slow
def test_intervals_of_draws_on_chords_hold_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of draws, and of the places that are known: by as many as there are walks. Closed form."""
    text, turns = ankle(0.05, 0.08, 0.25, 0.6)
    model = rm.load(text, spins="locked")
    inside = np.all(np.abs(np.nan_to_num(turns, nan=9.0)) <= 0.6, axis=0)
    at = [np.argwhere(inside)[:, n] * width - least for n, width, least in
          ((0, 0.025, 1.1), (1, 0.02, 0.8))]  # fmt: skip
    reach = reachable(model).on_sheet(["pitch", "roll"])
    (group,) = (g for each in reach.linkages for g in each.groups if g.freedoms)
    first = group.explored
    assert first is not None
    assert first.independent(400) == 400  # led to, one by one
    monkeypatch.setattr(targets, "OFTEN", 2.0)
    made, hits = np.random.default_rng, list[bool]()
    for seed in range(150):
        monkeypatch.setattr(targets.np.random, "default_rng", lambda _, seed=seed: made(seed))
        explored = Explored.of(group.along, group.origin, group.telling.rows, first.box)
        size = len(explored.found.q)
        q = explored.draw(made(1000 + seed), 400).q[:, group.telling.places]
        known = explored.known(made(2000 + seed), size).q[:, group.telling.places]
        assert {*known[:, 0]} == {*explored.found.q[:, group.telling.places[0]]}
        for n in range(2):
            for some in (q, known):
                low, high = Error(some[:, n], independent=targets.WALKS).interval
                hits.append(low <= np.median(at[n]) <= high)
    assert explored.independent(400) == targets.WALKS < 400
    assert np.mean(hits) > 0.93


def test_copies_have_images_of_what_is_explored() -> None:
    """Two ankles, one beside the other; both reach nearly all that the closed form says."""
    text, turns = ankle(0.05, 0.08, 0.25, 0.6)
    inside = np.all(np.abs(np.nan_to_num(turns, nan=9.0)) <= 0.6, axis=0)
    cells = np.argwhere(inside) * (0.025, 0.02) - (1.1, 0.8)
    inner = text[text.index("<worldbody>") + 11 : text.index("</worldbody>")]
    ties = text[text.index("<equality>") + 10 : text.index("</equality>")]
    names = re.compile(r"(name|body1|body2)=\"(\w+)\"")

    def other(some: str) -> str:
        return names.sub(r'\1="\2_b"', some)

    beside = f'<body pos="0 0.5 0">{other(inner)}</body>'
    text = text.replace("</worldbody>", f"{beside}</worldbody>")
    text = text.replace("</equality>", f"{other(ties)}</equality>")
    model = rm.load(text, spins="locked")
    reach = reachable(model).on_sheet(["pitch", "roll", "pitch_b", "roll_b"])
    one, two = (group for linkage in reach.linkages for group in linkage.groups if group.freedoms)
    assert two.original is not None
    assert one.explored is not None
    assert two.explored is not None
    images = two.original[1].positions(one.explored.found.q)
    np.testing.assert_allclose(two.explored.found.q, images, atol=1e-9)
    at = one.explored.found.q[:, one.telling.places]
    low, high = np.min(at, axis=0), np.max(at, axis=0)
    beyond = np.any((cells < low) | (cells > high), axis=1)
    assert np.mean(beyond) < 3.0 * 4 / len(at)  # 1 / n beyond each of four ends, on average
    assert np.all((low > np.min(cells, axis=0) - 0.03) & (high < np.max(cells, axis=0) + 0.03))


def test_joints_that_tell_nothing_have_no_sheet() -> None:
    reach = reachable(rm.load(five_bar()))
    with pytest.raises(ValueError, match=r"'left' cannot tell where .* 2 joints must"):
        reach.on_sheet(["left"])
    with pytest.raises(rm.errors.UnknownNameError, match=r"no joint 'lefd' .* did you mean 'left'"):
        reach.on_sheet(["lefd"])


@pytest.mark.slow
def test_draws_are_uniform_by_volume() -> None:
    """Against rejection: motors uniform, both elbows in closed form, weighted by 1 / |det N_y|."""
    model = rm.load(five_bar())
    q = reachable(model).draw(np.random.default_rng(0), 20000, regular=False)
    rng = np.random.default_rng(1)
    y = rng.uniform(0.2, 2.9, (60000, 2))
    a = 0.3 * np.stack([np.cos(y[:, 0]), np.sin(y[:, 0])], axis=1)
    b = 0.3 * np.stack([np.cos(y[:, 1]), np.sin(y[:, 1])], axis=1) + [0.2, 0.0]
    v = b - a
    r = np.linalg.norm(v, axis=1)
    weights = np.zeros(len(y))
    for sign in (1.0, -1.0):
        across = np.stack([-v[:, 1], v[:, 0]], axis=1) / r[:, None]
        c = a + 0.5 * v + sign * np.sqrt(0.25 - 0.25 * r * r)[:, None] * across
        knees = [np.arctan2(*(c - p).T[::-1]) - t for p, t in zip((a, b), y.T, strict=True)]
        x = np.stack([y[:, 0], knees[0], y[:, 1], knees[1]], axis=1)
        k = model.constraint_matrix(x)
        weights += [1.0 / abs(np.linalg.det(np.linalg.svd(m)[2][2:, [0, 2]])) for m in k]
    grid = {"bins": 4, "range": [(0.2, 2.9)] * 2}
    want = np.histogram2d(*y.T, weights=weights, **grid)[0]
    got = np.histogram2d(q[:, 0], q[:, 2], **grid)[0]
    off = got / got.sum() / (want / want.sum()) - 1.0
    assert np.sqrt(np.mean(off**2)) < 0.08


# ---- inverse kinematics --------------------------------------------------------------------------


@pytest.mark.slow
def test_inverse_kinematics_stays_on_the_assembly_mode_of_its_guess() -> None:
    """Points of a crank-rocker's circuits, from either: reached, or the nearest, which is told."""
    model = rm.load(four_bar(marks=(True, False, False)))
    tip, rng = ("coupler", (0.5, 0.3, 0.0)), np.random.default_rng(3)
    guesses = np.array([model.neutral(), crossed(model)])
    reaches = [from_configuration(model, guess) for guess in guesses]
    dense = [rm.frame_pose(model, each.draw(rng, 1000), tip)[:, :3, 3] for each in reaches]
    for mine, guess in enumerate(guesses):
        for theirs, reach in enumerate(reaches):
            for goal in rm.frame_pose(model, reach.draw(rng, 2), tip)[:, :3, 3]:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    q = rm.inverse_kinematics(model, {tip: goal}, guess=guess)
                assert elbow(model, q) == elbow(model, guess)
                off = float(np.linalg.norm(rm.frame_pose(model, q, tip)[:3, 3] - goal))
                nearest = float(np.min(np.linalg.norm(dense[mine] - goal, axis=1)))
                assert off <= nearest + 1e-6
                if mine == theirs:
                    assert off < 1e-9
                elif nearest > 0.05:
                    assert "another assembly mode of 'crank'" in str(caught[0].message)


def from_the_other_end() -> str:
    """The crank-rocker of :func:`texts.four_bar` from the rocker on, cut at the crank's pin.

    The coupler's axes are the same, with their origin at the other pin.
    """
    return robot(
        link("crank"),
        link("coupler"),
        link("rocker"),
        joint("j_rocker", "base", "rocker", "1.1 0 0"),
        joint("j_pin", "rocker", "coupler", "0.7 0 0"),
        joint("j_crank", "base", "crank"),
        loop("closing", "revolute", "crank", "coupler", "0.5 0 0", "-1 0 0"),
    )


def circuit(crank: Array, side: float) -> tuple[Array, Array]:
    """Turns of that crank-rocker's coupler and rocker, by where two circles meet (closed form)."""
    pin = 0.5 * np.stack([np.cos(crank), np.sin(crank)])
    away = np.array([[1.1], [0.0]]) - pin
    size = np.hypot(*away)
    along = (1.0 - 0.7**2 + size**2) / (2.0 * size)
    up = side * np.sqrt(1.0 - along**2) * np.stack([-away[1], away[0]])
    end = pin + (along * away + up) / size
    return np.arctan2(*(end - pin)[::-1]), np.arctan2(end[1], end[0] - 1.1)


@pytest.mark.parametrize("independent", ["j_crank", "j_coupler", "j_rocker", "j_pin"])
def test_another_circuit_is_named_whatever_is_independent(independent: str) -> None:
    """Points that only the other circuit reaches: the nearest of the guess's, and the words."""
    text = from_the_other_end() if independent == "j_pin" else four_bar()
    model = rm.load(text, independent=[independent])
    tip = "coupler", (-0.5, 0.3, 0.0) if independent == "j_pin" else (0.5, 0.3, 0.0)

    def points(crank: Array, side: float) -> Array:
        turn = np.exp(1j * circuit(crank, side)[0])
        at = 0.5 * np.exp(1j * crank) + (0.5 + 0.3j) * turn
        return np.stack([at.real, at.imag], axis=1)

    dense, at = points(np.linspace(0.0, math.tau, 4000), 1.0), np.array([0.8])
    coupler, rocker = circuit(at, 1.0)
    turns = {
        "j_crank": at,
        "j_coupler": coupler - at,
        "j_rocker": rocker,
        "j_pin": coupler - rocker,
    }
    guess = np.concatenate([turns[name] for name in model.joint_names])
    np.testing.assert_allclose(rm.frame_pose(model, guess, tip)[:2, 3], points(at, 1.0)[0])
    for crank in (0.3, 2.8, 5.5):
        goal = np.append(points(np.array([crank]), -1.0)[0], 0.0)
        with pytest.warns(RuntimeWarning, match="another assembly mode of '.*' reaches it"):
            q = rm.inverse_kinematics(model, {tip: goal}, guess=guess)
        found = rm.frame_pose(model, q, tip)[:2, 3]
        nearest = float(np.min(np.linalg.norm(dense - goal[:2], axis=1)))
        assert nearest > 0.01
        assert abs(float(np.linalg.norm(found - goal[:2])) - nearest) < 1e-6


WATT_JOINTS = ["j_crank", "j_coupler", "j_rocker", "j_upper", "j_last"]


def watt() -> str:
    """A Watt six-bar as drawn: a four-bar whose coupler and rocker hold two more links."""
    return robot(
        *(link(name) for name in ("crank", "coupler", "rocker", "upper", "last")),
        joint("j_crank", "base", "crank", mark=True),
        joint("j_coupler", "crank", "coupler", "0.3 0.6 0"),
        joint("j_rocker", "base", "rocker", "1.4 0 0"),
        loop("first", "revolute", "coupler", "rocker", "1.2 0.6 0", "0.1 1.2 0"),
        joint("j_upper", "coupler", "upper", "1 1.4 0"),
        joint("j_last", "rocker", "last", "0.7 0.7 0"),
        loop("second", "revolute", "upper", "last", "1.3 -0.3 0", "0.5 1 0"),
    )


def watt_positions(crank: Array, sides: tuple[float, float]) -> Array:
    """Its joints' positions (n, 5), in the order of the text, by where circles meet (closed form).

    Only those that close.
    """
    crank_end, pin, ground = 0.3 + 0.6j, 1.2 + 0.6j, 1.4
    top, end = 0.1 + 1.2j, 0.7 + 0.7j
    a = crank_end * np.exp(1j * crank)
    b = beside(a, abs(pin), np.full_like(a, ground), abs(top), sides[0])
    coupler, rocker = (b - a) / pin, (b - ground) / top
    c, d = a + (1.0 + 1.4j) * coupler, ground + end * rocker
    e = beside(c, abs(1.3 - 0.3j), d, abs(0.5 + 1.0j), sides[1])
    upper, last = (e - c) / (1.3 - 0.3j), (e - d) / (0.5 + 1.0j)
    close = np.all(np.abs(np.abs([coupler, rocker, upper, last]) - 1.0) < 1e-9, axis=0)
    first = np.exp(1j * crank)
    turns = coupler / first, rocker, upper / coupler, last / rocker
    return np.stack([crank, *np.angle(turns)], axis=1)[close]


@pytest.mark.parametrize("crank", [1.95, 2.1, 2.25])
def test_the_one_other_circuit_that_reaches_a_pose_is_found(crank: float) -> None:
    """A Watt six-bar has four circuits; the six starts nearest to these poses are of others."""
    model = rm.load(watt())
    order = [WATT_JOINTS.index(name) for name in model.joint_names]
    turn = np.linspace(-math.pi, math.pi, 361)
    mine = watt_positions(turn, (1.0, 1.0))[:, order]
    assert len(mine) == len(turn)
    assert model.is_reachable(mine).all()
    goal = watt_positions(np.array([crank]), (-1.0, 1.0))[:, order][0]
    pose, poses = rm.frame_pose(model, goal, "last"), rm.frame_pose(model, mine, "last")
    assert np.min(np.max(np.abs(poses - pose), axis=(1, 2))) > 0.1
    with pytest.warns(RuntimeWarning, match="another assembly mode of '.*' reaches it"):
        q = rm.inverse_kinematics(model, {"last": pose})
    assert model.is_reachable(q)


@pytest.mark.parametrize("limits", [(-1000.0, 1000.0), (-0.7, 1000.0), (-1e-1, 0.1)])
def test_slides_with_wide_limits_close_in_all_modes(limits: tuple[float, float]) -> None:
    """A slider-crank has its piston on either side; limits of 1000 m leave both, of 0.1 m none."""
    side = 0.5 + 0.1  # the drawn position, crank of 0.1 along the slide
    more = f'<limit lower="{limits[0]}" upper="{limits[1]}"/><initial position="{side}"/>'
    if limits[1] < 1.0:
        more = f'<limit lower="{side - 0.2}" upper="{side}"/><initial position="{side - 0.1}"/>'
    model = rm.load(
        robot(
            *(link(name) for name in ("crank", "rod", "piston")),
            joint("turn", "base", "crank", mark=True),
            joint("pin", "crank", "rod", "0.1 0 0"),
            joint("slide", "base", "piston", kind="prismatic", axis="1 0 0", more=more),
            loop("end", "revolute", "rod", "piston", "0.5 0 0"),
        )
    )
    rng = np.random.default_rng(0)
    draws = [model.random_configuration(rng, branch="any") for _ in range(40)]
    far = np.array([model.joint_positions(q)["slide"] for q in draws])
    assert (far > 0.0).any()
    assert (far < 0.0).any() == (limits[1] > 1.0)
    words = "another assembly mode of" if limits[1] > 1.0 else "misses 'slide' by"
    with pytest.warns(RuntimeWarning, match=words):
        q = rm.inverse_kinematics(model, {"slide": -0.5})
    assert model.joint_positions(q)["slide"] > 0.0


# ---- parameters ----------------------------------------------------------------------------------


def slider_crank_with_friction(limits: str = "") -> rm.Model:
    friction = '<dynamics friction="0.1"/>'
    kind = "revolute" if limits else "continuous"
    return rm.load(
        robot(
            *(link(name) for name in ("crank", "rod", "piston")),
            joint("main", "base", "crank", kind=kind, mark=True, more=friction + limits),
            joint("big", "crank", "rod", "0.2 0 0", mark=False, more=friction),
            joint("small", "rod", "piston", "0.6 0 0", mark=False, more=friction),
            loop("slide", "prismatic", "base", "piston", more='<axis xyz="1 0 0"/>'),
        )
    )


def test_friction_of_a_slider_crank_is_identified_over_its_whole_turn() -> None:
    """The small end's rate turns back at the dead points: f₁ + f₂ |φ' - 1| + f₃ |φ'| tells it."""
    model = slider_crank_with_friction()
    base = rm.base_parameters(model)
    names = [f"{name}.friction" for name in ("main", "big", "small")]
    columns = [base.parameters.index(name) for name in names]
    q, v = model.random_configuration(0), np.array([1.0])
    seen = []
    for seed in range(20):
        q = model.random_configuration(seed)
        slope = model.constraint_jacobian(q)[:, 0]
        row = rm.regressor(model, q, v, 0.0 * v)[0, columns]
        np.testing.assert_allclose(row, np.abs(slope[:3]), atol=1e-12)
        seen.append(row)
    assert np.linalg.matrix_rank(np.array(seen), tol=1e-6) == 3
    assert np.linalg.matrix_rank(base.matrix[:, columns], tol=1e-9) == 3


@pytest.mark.parametrize(("beyond", "rank"), [(-0.01, 2), (0.01, 3)])
def test_friction_beside_a_dead_point_at_the_end_of_a_range(beyond: float, rank: int) -> None:
    """The small end turns back at a right angle of the crank: 0.5 % of the range tells it."""
    model = slider_crank_with_friction(
        f'<limit lower="-0.5" upper="{0.5 * np.pi + beyond}" effort="1" velocity="1"/>'
    )
    crank = np.linspace(-0.5, 0.5 * np.pi + beyond, 400)
    rod = np.cos(crank) / np.sqrt(9.0 - np.sin(crank) ** 2)  # rate of the rod, turning back
    rows = np.abs([np.ones(400), 1.0 + rod, rod]).T
    assert np.linalg.matrix_rank(rows, tol=1e-6) == rank
    base = rm.base_parameters(model)
    names = [f"{name}.friction" for name in ("main", "big", "small")]
    columns = [base.parameters.index(name) for name in names]
    assert np.linalg.matrix_rank(base.matrix[:, columns], tol=1e-9) == rank


def test_samples_are_spread_as_draws_are() -> None:
    """They are reachable, each once, and as uniform: means and spreads of the joints agree."""
    model = rm.load(five_bar())
    reach, rng = reachable(model), np.random.default_rng(0)
    (cluster,) = (each for each in model.clusters if each.kind == "loops")
    q = np.tile(model.neutral(), (600, 1))
    q[:, cluster.q] = reach.known(rng, 600, cluster)
    assert len(np.unique(q, axis=0)) == 600
    assert reach.contains(q).all()
    for at, wanted in zip(q.T, reach.draw(rng, 2000, regular=False).T, strict=True):
        assert abs(np.mean(at) - np.mean(wanted)) < 0.1 * np.std(wanted)
        assert np.std(at) == pytest.approx(np.std(wanted), rel=0.1)


def test_motions_beside_change_points() -> None:
    """By singular vectors: a parallelogram, of links 0.5 and 1.1, is flat at 0 and at half a turn.

    There the motions are two, and K's least singular value is 0; beside it goes with the sine.
    """
    text = four_bar(closing=loop("close", "revolute", "coupler", "rocker", "1.1 0 0",
                                 "0.5 0 0"))  # fmt: skip
    with pytest.warns(rm.DescriptionWarning, match="at a change point"):
        model = rm.load(text)
    (cluster,) = model.clusters
    motion = ClusterMotion.of(model, cluster)
    angles = np.array([0.0, 1e-8, 1e-3, 0.4, 1.5, np.pi - 1e-8, np.pi])
    q = np.column_stack([angles, -angles, angles])
    assert np.max(np.abs(motion.matrix(q) @ np.array([1.0, -1.0, 1.0]))) < 1e-15
    null, lost = motion.with_dependent(q, 1e-6)
    np.testing.assert_array_equal(lost, np.abs(np.sin(angles)) < 1e-7)
    along = null[~lost, :, 0]
    np.testing.assert_allclose(np.abs(along), 1.0 / np.sqrt(3.0), atol=1e-12)
    np.testing.assert_allclose(along[:, 1], -along[:, 0], atol=1e-12)


def test_a_yoke_goes_as_far_as_its_crank_takes_it() -> None:
    """Twice the length of the crank, and more than that from where it is drawn."""
    r, start = 0.1, 0.7
    at = f"{r * math.cos(start)!r} {r * math.sin(start)!r} 0"
    model = rm.load(
        robot(
            link("crank"), link("yoke"), link("block"),
            joint("turn", "base", "crank"),
            joint("slide", "base", "yoke", f"{r * math.cos(start)!r} 0 0", kind="prismatic",
                  axis="1 0 0"),
            joint("up", "yoke", "block", f"0 {r * math.sin(start)!r} 0", kind="prismatic",
                  axis="0 1 0"),
            loop("pin", "revolute", "crank", "block", at, "0 0 0"),
        )
    )  # fmt: skip
    turned = np.linspace(-3.1, 3.1, 21)
    q = np.array([[x, r * math.cos(x + start) - r * math.cos(start),
                   r * math.sin(x + start) - r * math.sin(start)] for x in turned])  # fmt: skip
    assert np.max(np.abs(model.residual(q))) < 1e-12
    assert all(model.is_reachable(each) for each in q)
    drawn = np.array([model.random_configuration(n) for n in range(60)])
    assert np.ptp(drawn[:, 1]) > 1.9 * r
    assert "branches" not in {each.check for each in rm.validate(model).findings}


def test_slides_without_limits_go_as_far_as_rods_let_them() -> None:
    """A plate on cross slides, which two arms of 0.15 m move by rods, goes 0.39 m both ways."""
    plate = [
        joint("x", "base", "slide", kind="prismatic", axis="1 0 0"),
        joint("y", "slide", "plate", kind="prismatic", axis="0 1 0",
              more='<initial position="0.3"/>'),
    ]  # fmt: skip
    for n, x in enumerate((-0.1, 0.1)):
        more = f'{limited(0.3, 2.84)}<initial position="1.57"/>'
        plate += [
            link(f"arm{n}"),
            joint(f"m{n}", "base", f"arm{n}", f"{x} 0 0", kind="revolute", more=more),
            loop(f"rod{n}", "rod", f"arm{n}", "plate", "0.15 0 0", more="",
                 attributes='length="0.35"'),
        ]  # fmt: skip
    model = rm.load(robot(link("slide"), link("plate"), *plate))
    drawn = np.array([model.random_configuration(n) for n in range(200)])
    x = model.joint_positions(drawn)["x"]
    reach = rm.joint_range(model, "x")
    assert reach.lower < np.min(x) < 0.9 * reach.lower
    assert reach.upper > np.max(x) > 0.9 * reach.upper


def test_slides_that_no_loop_bounds_go_over_the_size_of_their_linkage() -> None:
    """Two telescopes that meet at their tips may be drawn out for ever."""
    model = rm.load(
        robot(
            *(link(name) for name in "abcd"),
            joint("left", "base", "a"),
            joint("out", "a", "b", kind="prismatic", axis="1 0 0",
                  more='<initial position="0.3"/>'),
            joint("right", "base", "c", "0.4 0 0"),
            joint("in", "c", "d", kind="prismatic", axis="-1 0 0",
                  more='<initial position="0.3"/>'),
            loop("tip", "revolute", "b", "d", "0.1 0 0", "-0.1 0 0"),
        )
    )  # fmt: skip
    drawn = np.array([model.random_configuration(n) for n in range(200)])
    x, start = model.joint_positions(drawn), model.joint_positions(model.neutral())
    for name in ("out", "in"):  # 0.1 m is the largest offset in the linkage
        assert np.max(np.abs(x[name] - start[name])) <= 0.4 + 1e-9


# ---- whichever joints are independent ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("pitch", [0.0003, 0.003])
def test_screws_without_limits_go_as_far_as_slides(pitch: float) -> None:
    """A cylinder with a thread turns one arm of a five-bar: as far as the slide of a plain one."""
    thread = f'<pitch value="{pitch!r}"/>'
    arms = (
        joint("arm1", "base", "arm1"), joint("elbow1", "arm1", "rod1", "0.25 0 0"),
        joint("arm2", "base", "arm2", "0.3 0 0"), joint("elbow2", "arm2", "rod2", "0.25 0 0"),
        loop("tip", "revolute", "rod1", "rod2", "0.35 0 0", "0.35 0 0"),
        joint("pivot", "base", "barrel", "-0.2 0 0"),
        joint("screw", "barrel", "piston", "0.2 0 0", kind="screw", axis="1 0 0", more=thread),
        joint("bearing", "piston", "eye", axis="1 0 0"),
        loop("pin", "revolute", "eye", "arm1", to="0 0.12 0"),
    )  # fmt: skip
    names = ("arm1", "rod1", "arm2", "rod2", "barrel", "piston", "eye")
    model = rm.load(robot(*map(link, names), *arms))
    start = model.neutral()
    here = model.joint_positions(start)
    for turn in (-2.0, -1.0, 0.5, 1.5):
        wanted = {"arm1": float(here["arm1"]) + turn, "arm2": float(here["arm2"])}
        assert model.is_reachable(model.configuration(wanted, guess=start)), turn
    rng = np.random.default_rng(0)
    strokes = [pitch * float(model.joint_positions(model.random_configuration(rng))["screw"])
               for _ in range(60)]  # fmt: skip
    assert -0.12 - 1e-9 <= min(strokes) < -0.1 < 0.1 < max(strokes) <= 0.12 + 1e-9


@pytest.mark.parametrize("tie", ["", coupling("gear", {"screw": 1.0, "wheel": -3.0})])
def test_screws_alone_are_drawn_as_slides(tie: str) -> None:
    """As far as a metre: their turns come not round, nor do those of wheels geared to them."""
    model = rm.load(robot(
        link("nut"), link("wheel"), joint("wheel", "base", "wheel"),
        joint("screw", "base", "nut", kind="screw", more='<pitch value="0.01"/>'), tie,
    ))  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [model.joint_positions(model.random_configuration(rng)) for _ in range(100)]
    turns = [float(each["screw"]) for each in drawn]
    assert -100.0 <= min(turns) < -80.0 < 80.0 < max(turns) <= 100.0
    wheels = [abs(float(each["wheel"])) for each in drawn]
    assert (
        max(wheels) == pytest.approx(max(map(abs, turns)) / 3.0) if tie else max(wheels) < math.pi
    )


def test_joints_without_ends_are_reached_at_any_turn() -> None:
    """Draws stay within a turn; what is reached does not."""
    text = robot(
        link("wheel"), link("wrist"), link("slide"),
        joint("spin", "base", "wheel"),
        joint("turn", "base", "wrist", kind="revolute", more=limited(-6.3, 6.3)),
        joint("half", "base", "slide", kind="prismatic", more='<limit lower="-0.1"/>'),
    )  # fmt: skip
    model = rm.load(text.replace('lower="-0.1"', 'lower="-0.1" upper="inf"'))
    at = {"spin": 40.0, "turn": -6.2, "half": 12.0}
    assert model.is_reachable(model.configuration(at))
    for off in ({"turn": -6.4}, {"half": -0.2}):
        assert not model.is_reachable(model.configuration(at | off))
    start = model.configuration({"spin": 40.0, "half": 12.0})
    near = [model.random_configuration(k, near=start)[0] for k in range(20)]
    assert min(near) < 40.0 < max(near)


def test_a_joint_beyond_its_limit_beside_a_linkage() -> None:
    more = joint("arm", "base", "arm_link", kind="revolute", more=limited(-1.0, 1.0))
    model = rm.load(four_bar(link("arm_link"), more))
    q = np.array([model.configuration({"arm": x}) for x in (0.5, 3.0)])
    assert [model.is_reachable(each) for each in q] == [True, False]
    assert not model.is_reachable(q[1:]).any()


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(0.0, 0.0), (-1.0, 2.0)])
def test_gear_trains_are_drawn_alike_whichever_joints_are_independent(
    ends: tuple[float, float],
) -> None:
    """The limb's joints turn all the way round, however far that turns the motors."""
    seen = []
    ended = ends[0] < ends[1]
    text = wrist("revolute", limited(*ends)) if ended else wrist("continuous")
    for leading in (("pitch", "roll"), ("left", "right"), ("pitch", "left")):
        model = rm.load(text, independent=leading)
        q = [model.random_configuration(k) for k in range(400)]
        x = [model.joint_positions(each) for each in q]
        seen.append({name: np.array([each[name] for each in x]) for name in ("pitch", "roll")})
        for each in (*x, {"left": 60.0, "right": 60.0 - 6.0 * x[0]["pitch"]}):
            at = {name: float(each[name]) for name in ("left", "right")}
            inside = not ended or ends[0] <= (at["left"] + at["right"]) / 6.0 <= ends[1]
            assert model.is_reachable(model.configuration(at)) == inside
    low, high = ends if ended else (-math.pi, math.pi)
    for each in seen:
        for name, (a, b) in {"pitch": (low, high), "roll": (-math.pi, math.pi)}.items():
            share = np.sort((each[name] - a) / (b - a))
            off = np.max(np.abs(share - (np.arange(400) + 0.5) / 400))
            assert share[0] >= 0.0
            assert share[-1] <= 1.0
            assert off < 0.082, name  # Kolmogorov: 1.63/√400, passed by one in a hundred


@pytest.mark.parametrize("more", ["", limited(-1.0, 2.0)])
def test_a_wheel_is_drawn_alike_behind_its_rotor(more: str) -> None:
    kind = "revolute" if more else "continuous"
    rotor = '<rotor inertia="1e-5" ratio="6"/>'
    text = robot(link("wheel"), joint("spin", "base", "wheel", kind=kind, more=more + rotor))
    one, other = (rm.load(text, independent=[name]) for name in ("spin", "spin_rotor"))
    for seed in range(5):
        at = [m.joint_positions(m.random_configuration(seed))["spin"] for m in (one, other)]
        assert at[1] == pytest.approx(at[0], abs=1e-12)
        assert other.is_reachable(other.configuration({"spin": float(at[0])}))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("prismatic", -3, 3), ("prismatic", -7, 1), ("prismatic", 2, 9), ("revolute", -20, 10)],
)
def test_draws_are_of_all_of_wide_limits(kind: str, low: float, high: float, tied: bool) -> None:
    """A gantry of several metres, and a hinge of several turns, alone and with a follower."""
    more = f'<limit lower="{low}" upper="{high}"/>'
    parts = [link("a"), joint("x", "base", "a", kind=kind, axis="1 0 0", more=more)]
    if tied:
        parts += [link("b"), joint("y", "base", "b", kind=kind, axis="1 0 0",
                                   more='<mimic joint="x" multiplier="0.5"/>')]  # fmt: skip
    model = rm.load(robot(*parts))
    x = np.array([model.joint_positions(model.random_configuration(s))["x"] for s in range(100)])
    counts = np.histogram(x, 4, (low, high))[0]
    assert sum(counts) == 100
    assert np.all(counts >= 12)  # of 25; less has a probability of 1e-3
