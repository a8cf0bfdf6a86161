"""Transmission angles of rods against closed forms."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.reports.actuation.transmission import Transmission, transmissions

Array = NDArray[np.float64]
Y, Z = "0 1 0", "0 0 1"
MOTOR = '<motor effort="2" velocity="9"/>'
CRANK, ROD, OFFSET = 0.3, 0.8, 0.1


def hinge(name: str, parent: str, child: str, at: str, axis: str = Z, more: str = "") -> str:
    return joint(name, parent, child, at, axis=axis, more=more)


def rods(model: rm.Model) -> list[Transmission]:
    return [each for cluster in model.clusters for each in transmissions(model, cluster)]


def angle(line: Array, velocity: Array) -> Array:
    """A right angle less that between lines (n, 3)."""
    sine = np.abs(np.sum(line * velocity, axis=-1))
    return np.arcsin(sine / np.linalg.norm(line, axis=-1) / np.linalg.norm(velocity, axis=-1))


def slider_crank(floating_base: bool | None = None) -> rm.Model:
    """A crank turns about z at the origin, a piston slides along x at y = OFFSET."""
    start = math.sqrt(ROD**2 - OFFSET**2) + CRANK
    return rm.load(
        robot(
            link("crank"), link("rod"), link("piston"),
            joint("turn", "base", "crank", more=MOTOR, mark=True),
            hinge("pin", "crank", "rod", f"{CRANK} 0 0"),
            joint("slide", "base", "piston", f"{start!r} {OFFSET} 0", kind="prismatic",
                  axis="1 0 0"),
            loop("end", "revolute", "rod", "piston", f"{ROD} 0 0"),
        ),
        floating_base=floating_base,
    )  # fmt: skip


@pytest.mark.slow_cases("True", "False")
@pytest.mark.parametrize("floating", [False, True])
def test_slider_cranks(floating: bool) -> None:
    """The rod is off the slide by asin((r sin θ - e) / l)."""
    model = slider_crank(floating)
    (found,) = rm.actuation(model).transmissions
    assert (found.rod, found.joint, found.input) == ("rod", "end", "turn")
    tilt = np.arcsin((CRANK * np.sin(found.positions) - OFFSET) / ROD)
    regular = np.isfinite(found.angles)
    assert np.sum(~regular) <= 2  # where the piston turns back
    np.testing.assert_allclose(found.angles[regular], math.pi / 2 - np.abs(tilt[regular]),
                               atol=1e-9)  # fmt: skip
    assert found.least.angle == pytest.approx(math.acos((CRANK + OFFSET) / ROD), abs=1e-9)
    assert math.sin(found.least.at) == pytest.approx(-1.0, abs=1e-9)
    assert found.most.angle == pytest.approx(math.pi / 2, abs=1e-9)
    assert math.sin(found.most.at) == pytest.approx(OFFSET / CRANK, abs=1e-9)


@pytest.mark.slow
def test_four_bars_have_that_of_the_cosine_law() -> None:
    driven = '<transmission name="m"><joint name="j_crank"/><actuator name="m"/></transmission>'
    model = rm.load(four_bar(driven))
    (found,), (bar,) = rods(model), rm.actuation(model).four_bars
    assert (found.input, found.joint) == (bar.input, bar.joints[2]) == ("j_crank", bar.joints[2])
    a, b, c, d = bar.lengths
    assert found.least.angle == pytest.approx(bar.least.angle, abs=1e-9)
    assert found.most.angle == pytest.approx(bar.most.angle, abs=1e-9)
    square = a * a + d * d - 2.0 * a * d * np.cos(found.positions)
    exact = np.arccos(np.abs(b * b + c * c - square) / (2.0 * b * c))
    np.testing.assert_allclose(found.angles, exact, atol=1e-9)
    assert not rm.actuation(model).transmissions  # the table of four-bars has it


EFFORT = '<limit effort="10" velocity="8"/>'
BALL = {
    "balls": (
        joint("near", "crank", "rod", "0 0 0.05", kind="spherical"),
        loop("far", "spherical", "rod", "rocker", "0.4 0 0", "0 0.2 0"),
    ),
    "universal": (
        joint("near::1", "crank", "cross", "0 0 0.05", axis=Y) + link("cross", "")
        + joint("near::2", "cross", "rod", axis=Z),
        loop("far", "spherical", "rod", "rocker", "0.4 0 0", "0 0.2 0"),
    ),
    "hinges": (  # the third of which does not turn about the rod
        joint("near::1", "crank", "cross", "0 0 0.05", axis="0.6 0.48 0.64", more=EFFORT)
        + link("cross", "") + joint("near::2", "cross", "cross2", axis=Y, more=EFFORT)
        + link("cross2", "") + joint("near::3", "cross2", "rod", axis=Z, more=EFFORT),
        loop("far", "spherical", "rod", "rocker", "0.4 0 0", "0 0.2 0"),
    ),
    "rod": ("", loop("rod", "rod", "crank", "rocker", "0 0 0.05", "0 0.2 0", "",
                     'length="0.4"')),
}  # fmt: skip


@pytest.mark.slow_cases("balls", "rod")
@pytest.mark.parametrize("kind", few(BALL, "balls", "rod"))
def test_rods_between_balls(kind: str) -> None:
    """A crank about y moves a rocker about x: by the places of the balls."""
    near, far = BALL[kind]
    model = rm.load(
        robot(
            link("crank"), link("rocker"), "" if kind == "rod" else link("rod"),
            joint("turn", "base", "crank", kind="revolute", axis=Y,
                  more=f'<limit lower="-0.8" upper="0.9"/>{MOTOR}'),
            joint("swing", "base", "rocker", "0.35 -0.1 0", axis="1 0 0"),
            near, far,
        )
    )  # fmt: skip
    study = rm.actuation(model)
    (found,) = study.transmissions
    assert (found.rod, found.input) == ("rod", "turn")
    assert [each.name for each in model.actuators] == ["turn"]  # none turns a rod about itself
    assert not any("near" in each.joint for each in study.joints if kind == "hinges")
    q = np.array([model.configuration({"turn": x}) for x in found.positions])
    turn, swing = found.positions, np.asarray(model.joint_positions(q)["swing"])
    zero = np.zeros_like(turn)
    tip = 0.05 * np.stack([np.sin(turn), zero, np.cos(turn)], axis=-1)
    arm = 0.2 * np.stack([zero, np.cos(swing), np.sin(swing)], axis=-1)
    line = arm + np.array([0.35, -0.1, 0.0]) - tip
    np.testing.assert_allclose(np.linalg.norm(line, axis=-1), 0.4, atol=1e-9)
    exact = angle(line, np.cross([1.0, 0.0, 0.0], arm))
    np.testing.assert_allclose(found.angles, exact, atol=1e-9)
    assert found.least.angle <= np.min(exact) + 1e-12
    assert found.least.angle == pytest.approx(np.min(exact), abs=1e-3)


@pytest.mark.slow
def test_five_bars() -> None:
    """Between the links that meet, whichever of the motors moves."""
    model = rm.robots.load("five_bar")
    found = rods(model)
    assert {(each.rod, each.input) for each in found} == {("link2", "J1"), ("link4", "J2")}
    for each in found:
        other = float(model.joint_positions(model.neutral())["J2" if each.input == "J1" else "J1"])
        for at, its in zip(each.positions[::20], each.angles[::20], strict=True):
            names = {each.input: float(at), ({"J1", "J2"} - {each.input}).pop(): other}
            try:
                q = model.configuration(names)
            except rm.errors.ClosureError:
                continue  # on the other branch
            turn = rm.frame_pose(model, q, "link2")[:3, :3].T @ rm.frame_pose(model, q, "link4")[
                :3, :3]  # fmt: skip
            assert abs(math.sin(its)) == pytest.approx(abs(turn[1, 0]), abs=1e-9)


@pytest.mark.slow
def test_six_bars() -> None:
    """Watt's: a rocker of one four-bar turns a second one."""
    model = rm.load(
        robot(
            link("crank"), link("coupler"), link("rocker"), link("rod"), link("flap"),
            joint("turn", "base", "crank", more=MOTOR),
            hinge("pin", "crank", "coupler", "0.2 0 0"),
            hinge("swing", "base", "rocker", "0.9 0 0"),
            hinge("pin2", "rocker", "rod", "0 0.4 0"),
            hinge("out", "base", "flap", "1.6 0 0"),
            loop("first", "revolute", "coupler", "rocker", "0.8 0 0", "0.1 0.5 0"),
            loop("second", "revolute", "rod", "flap", "0.7 0 0", "0 0.5 0"),
        )
    )  # fmt: skip
    found = {each.rod: each for each in rods(model)}
    assert {name: each.joint for name, each in found.items()} == {
        "coupler": "first", "rod": "second"
    }  # fmt: skip
    each = found["rod"]
    q = np.array([model.configuration({"turn": float(each.positions[40])})])
    line = rm.frame_pose(model, q, "rod")[0, :3, 0]
    arm = rm.frame_pose(model, q, "flap")[0, :3, :3] @ [0.0, 0.5, 0.0]
    exact = angle(line[None], np.cross([0.0, 0.0, 1.0], arm)[None])[0]
    assert each.angles[40] == pytest.approx(exact, abs=1e-9)


@pytest.mark.slow
def test_parallel_ankles() -> None:
    """The foot's velocity at a rod while one motor moves and the other rests."""
    model = rm.robots.load("parallel_ankle")
    found = {(each.rod, each.input): each for each in rods(model)}
    assert len(found) == 2
    for side, sign, height in (("left", 1.0, 0.2), ("right", -1.0, 0.28)):
        (each,) = (x for (_, name), x in found.items() if name == f"{side}_motor")
        n = len(each.positions) // 3
        other = {"left": "right", "right": "left"}[side]
        q = model.configuration({f"{side}_motor": each.positions[n], f"{other}_motor": 0.0})
        names = list(model.joint_names)
        g = model.constraint_jacobian(q)
        rates = g[[model.nodes[names.index(f"{x}_motor")].v for x in (side, other)]]
        v = np.linalg.solve(rates, [1.0, 0.0])
        turn = rm.frame_pose(model, q, "foot")[:3, :3]
        heel = turn @ [-0.05, sign * 0.04, 0.0]
        velocity = np.cross(turn @ rm.frame_velocity(model, q, v, "foot")[:3], heel)
        motor = each.positions[n]
        tip = [-0.05 * math.cos(motor), sign * 0.04, height + 0.05 * math.sin(motor)]
        assert np.linalg.norm(heel - tip) == pytest.approx(height, abs=1e-9)
        exact = angle((heel - tip)[None], velocity[None])[0]
        assert each.angles[n] == pytest.approx(exact, abs=1e-9)


@pytest.mark.slow
def test_reports_have_rods(capsys: pytest.CaptureFixture[str]) -> None:
    first = rm.actuation(slider_crank())
    text = str(first)
    assert "Transmission angles of other rods" in text
    assert "60.0° at" in text
    (data,) = first.as_dict()["transmissions"]
    assert data["transmission_angle"]["least"] == pytest.approx(math.pi / 3, abs=1e-9)
    both = first.beside(first)
    assert both.text().count("60.0° at") == 2


@pytest.mark.slow
def test_positions_of_a_rocker_that_turns_fully_are_of_one_turn() -> None:
    """A rod between two balls has turned about itself when its rocker is back: that is no path on.

    Where the rocker drives the crank the angle is that between rod and crank.
    """
    model = rm.load(
        robot(
            link("crank"), link("rocker"), link("rod"),
            joint("turn", "base", "crank", axis="0 0 1"),
            joint("swing", "base", "rocker", "0.5 0.3 0", axis="1 0 0"),
            joint("ball", "crank", "rod", "0.3 0 0", kind="spherical"),
            loop("end", "spherical", "rod", "rocker", "0.2 0.3 0.2", "0 0 0.2", more=""),
        )
    )  # fmt: skip
    (each,) = (x for x in rods(model) if x.input == "swing")
    assert each.joint == "ball"
    assert np.ptp(each.positions) == pytest.approx(2.0 * math.pi, abs=1e-6)
    for extreme in (each.least, each.most):
        assert abs(extreme.at) <= 2.0 * math.pi
        q = model.configuration({"swing": extreme.at})
        crank, rod = (rm.frame_pose(model, q, name) for name in ("crank", "rod"))
        line = rod[:3, :3] @ [0.2, 0.3, 0.2]
        along = abs(line @ crank[:3, 1]) / np.linalg.norm(line)
        assert extreme.angle == pytest.approx(math.asin(along), abs=1e-6)


@pytest.mark.parametrize("hung", ["base", "arm"])
def test_a_press_whose_knee_a_cylinder_pushes(hung: str) -> None:
    """The rod is off the guide by asin(x / l), x of the knee, whatever way the barrel turns.

    The cylinder's pins and its length give the arm by the cosine law; the file's loop closes at
    one of the pins or at the other.
    """
    top, pin, knee, rod = (np.array(x) for x in ((0, 0.5), (-0.35, 0.33), (0.08, 0.31), 0.22))
    foot = np.array([0.0, knee[1] - math.sqrt(rod**2 - knee[0] ** 2)])
    span, along = float(np.hypot(*(knee - pin))), (knee - pin) / np.hypot(*(knee - pin))

    def place(x: Array) -> str:
        return f"{float(x[0])!r} {float(x[1])!r} 0"

    ends = (pin, knee - top) if hung == "base" else (knee - top, pin)
    way = along if hung == "base" else -along
    model = rm.load(
        robot(
            link("arm"), link("rod"), link("ram"), link("first"), link("second"),
            joint("arm", "base", "arm", place(top), kind="revolute",
                  more='<limit lower="-1" upper="1"/>'),
            hinge("knee", "arm", "rod", place(knee - top)),
            hinge("pin", "rod", "ram", place(foot - knee)),
            loop("guide", "prismatic", "base", "ram", place(foot), more='<axis xyz="0 1 0"/>'),
            hinge("eye", hung, "first", place(ends[0])),
            joint("cylinder", "first", "second", kind="prismatic", axis=place(way), more=MOTOR),
            loop("closing", "revolute", "second", "arm" if hung == "base" else "base",
                 place(span * way), place(ends[1])),
        )
    )  # fmt: skip
    (found,) = (x for x in rm.actuation(model).transmissions if x.rod == "rod")
    assert (found.joint, found.input) == ("pin", "cylinder")
    arm, apart = float(np.hypot(*(knee - top))), float(np.hypot(*(pin - top)))
    opening = np.arccos((arm**2 + apart**2 - (span + found.positions) ** 2) / (2 * arm * apart))
    x = arm * np.cos(math.atan2(*(pin - top)[::-1]) + opening)
    moving = np.isfinite(found.angles)
    assert found.angles[moving] == pytest.approx(np.arccos(np.abs(x) / rod)[moving], abs=1e-7)
    reach = [arm * math.sin(math.atan2(*(knee - top)) - turn) for turn in (-1.0, 1.0)]
    assert found.least.angle == pytest.approx(math.acos(max(map(abs, reach)) / rod), abs=1e-6)
    assert found.most.angle == pytest.approx(math.pi / 2, abs=1e-6)


def cranks(places: list[complex]) -> rm.Model:
    """Equal cranks on the base, the first driven, and a platform on all of them."""
    parts = [link("platform")]
    for n, at in enumerate(places):
        parts += [link(f"crank{n}"),
                  hinge(f"pivot{n}", "base", f"crank{n}", f"{at.real!r} {at.imag!r} 0",
                        more=MOTOR if n == 0 else "")]  # fmt: skip
    first, *others = places
    parts.append(hinge("top0", "crank0", "platform", "0.2 0 0"))
    for n, at in enumerate(others, 1):
        away = at - first
        parts.append(loop(f"top{n}", "revolute", f"crank{n}", "platform", "0.2 0 0",
                          f"{away.real!r} {away.imag!r} 0"))  # fmt: skip
    return rm.load(robot(*parts))


@pytest.mark.parametrize("turned", [0.3, 0.7, math.pi / 2])
def test_cranks_carry_where_others_cannot(turned: float) -> None:
    """Two parallelograms of one driven crank, at an angle to each other: one of them pushes well.

    At worst both are off by half of that angle.
    """
    study = rm.actuation(cranks([0j, 0.3 + 0j, 0.3 * cmath.exp(1j * turned)]))
    first, second = study.four_bars
    for each in (first, second):
        assert each.least.angle == pytest.approx(0.0, abs=1e-6)
        assert each.carried == pytest.approx(turned / 2.0, abs=0.03)
    warned = "below 40°" in str(study)
    assert warned == (turned / 2.0 < math.radians(40.0))


@pytest.mark.slow_cases("rocker")
@pytest.mark.parametrize("pushed", ["coupler", "rocker"])
def test_four_bars_that_a_cylinder_pushes(pushed: str) -> None:
    """From the base: a rocker is then the input; a coupler has no hinge on the base that were."""
    eye = {"coupler": (0.35, 0.5), "rocker": (1.1, 0.4)}[pushed]
    base, size = (0.6, -0.4), math.hypot(eye[0] - 0.6, eye[1] + 0.4)
    axis = f"{(eye[0] - base[0]) / size!r} {(eye[1] - base[1]) / size!r} 0"
    at = {"coupler": f"{eye[0] - 0.2!r} {eye[1] - 0.5!r} 0", "rocker": "0 0.4 0"}[pushed]
    ends = '<limit lower="-0.05" upper="0.05" effort="9" velocity="1"/>'
    study = rm.actuation(rm.load(robot(
        *(link(name) for name in ("crank", "coupler", "rocker", "barrel", "piston")),
        hinge("left", "base", "crank", "0 0 0"),
        hinge("low", "crank", "coupler", "0.2 0.5 0"),
        hinge("right", "base", "rocker", "1.1 0 0"),
        loop("high", "revolute", "coupler", "rocker", "0.8 0.1 0", "-0.1 0.6 0"),
        hinge("foot", "base", "barrel", f"{base[0]} {base[1]} 0"),
        joint("cylinder", "barrel", "piston", f"{eye[0] - base[0]!r} {eye[1] - base[1]!r} 0",
              kind="prismatic", axis=axis, more=ends),
        loop("eye", "revolute", "piston", pushed, "0 0 0", at),
    )))  # fmt: skip
    (bar,) = study.four_bars
    assert bar.input == {"coupler": "", "rocker": "right"}[pushed]
    assert np.all(np.isnan(bar.angles) == (pushed == "coupler"))
    assert ("that of the cylinder" in str(study)) == (pushed == "coupler")
    data = study.as_dict()["four_bars"][0]["transmission_angle"]
    assert (data["least"] is None) == (pushed == "coupler")
    assert study.cylinders
    assert study.html()
