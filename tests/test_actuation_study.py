"""The study of actuators: ratios, ranges and torques behind linkages, four-bars, written limits."""

from __future__ import annotations

import io
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from texts import INERTIAL, coupling, four_bar, joint, link, loop, robot
from typer.testing import CliRunner

import robomodel as rm
from robomodel.cli import app, main
from robomodel.dynamics.actuators.envelopes import JointEnvelope
from robomodel.reports.actuation.study import grashof
from robomodel.reports.simulators import for_simulator

HINGE = '<axis xyz="0 1 0"/>'
THIGH, CRANK, HORN = 0.213, 0.025, 0.03
BACK = 1.85  # the calf's angle at which its horn is level


def leg(
    motor: str = '<motor effort="23.7" velocity="30.1"/>',
    crank: str = '<limit lower="-1.2" upper="1.2"/>',
    mark: bool = True,
) -> str:
    """A calf behind a linkage: motor at the hip, crank, rod along the thigh, horn on the calf."""
    horn = f"{HORN * math.cos(BACK)} 0 {-HORN * math.sin(BACK)}"
    return robot(
        link("thigh"), link("crank"), link("rod"), link("calf"),
        joint("hip", "base", "thigh", axis="0 1 0", kind="revolute",
              more='<limit lower="-1" upper="3" effort="23.7" velocity="30.1"/>'),
        joint("crank", "thigh", "crank", axis="0 1 0", kind="revolute", more=crank + motor,
              mark=mark or None),
        joint("rod", "crank", "rod", f"{CRANK} 0 0", axis="0 1 0"),
        joint("calf", "thigh", "calf", f"0 0 {-THIGH}", axis="0 1 0", kind="revolute",
              more='<limit lower="-2.8" upper="-0.9" effort="100" velocity="50"/>',
              mark=None if mark else True),
        loop("pin", "revolute", "rod", "calf", f"0 0 {-THIGH}", horn, HINGE),
    )  # fmt: skip


@pytest.fixture(scope="module")
def legged() -> rm.Model:
    return rm.load(leg())


@pytest.fixture(scope="module")
def calfed() -> rm.Model:
    return rm.load(leg(mark=False))


def reach(model: rm.Model, name: str) -> JointEnvelope:
    (found,) = rm.actuation(model, name).joints
    return found


def calf_angle(crank: float) -> float:
    """By the law of cosines: the crank at its angle turns the horn as the rod's length wants."""
    from scipy.optimize import brentq

    tip = np.array([CRANK * math.cos(crank), -CRANK * math.sin(crank)])

    def left(calf: float) -> float:
        turn = calf + BACK
        end = np.array([HORN * math.cos(turn), -THIGH - HORN * math.sin(turn)])
        return float(np.linalg.norm(end - tip) - THIGH)

    return float(brentq(left, -BACK - 1.2, -BACK + 1.2))


@pytest.mark.slow
def test_a_calf_behind_a_linkage(legged: rm.Model) -> None:
    """Its range is the crank's, its torque 23.7 N m by the ratio, against a formula of its own."""
    calf = reach(legged, "calf")
    assert (calf.lower_by, calf.upper_by) == ("crank", "crank")
    assert calf.hidden
    ends = sorted(calf_angle(x) for x in (-1.2, 1.2))
    np.testing.assert_allclose([calf.lower, calf.upper], ends, atol=1e-9)
    crank = legged.joint_positions(calf.q)["crank"]
    np.testing.assert_allclose(calf.positions, [calf_angle(x) for x in crank], atol=1e-9)
    eps = 1e-6
    slope = np.array([(calf_angle(x + eps) - calf_angle(x - eps)) / (2 * eps) for x in crank])
    np.testing.assert_allclose(calf.ratios[:, 0], 1.0 / slope, rtol=1e-7)
    np.testing.assert_allclose(calf.torque, 23.7 / slope, rtol=1e-7)
    np.testing.assert_allclose(calf.speed, 30.1 * slope, rtol=1e-7)
    assert calf.effort == calf.torque.min()
    assert calf.velocity == calf.speed.min()
    limits = calf.limits
    assert (limits.effort, limits.velocity) == (calf.effort, calf.velocity)
    assert (limits.lower, limits.upper) == (calf.lower, calf.upper)
    passive = replace(calf, file_limits=replace(calf.file_limits, effort=0.0, velocity=0.0))
    assert passive.limits == limits  # zero, as of joints without a motor, is none
    assert not reach(legged, "hip").hidden
    assert reach(legged, "hip").effort == 23.7


@pytest.mark.slow_cases("urdf", "sdf", "mjcf")
@pytest.mark.parametrize("form", ["urdf", "sdf", "mjcf"])
def test_open_trees_carry_the_limits_of_motors(form: str, calfed: rm.Model) -> None:
    """The calf, independent, keeps moving; its limits are those behind its linkage."""
    model, own = calfed, reach(calfed, "calf")
    assert own.tree
    assert [each.joint for each in model.actuators] == ["hip", "crank"]
    out = io.StringIO()
    getattr(rm, f"write_{form}")(model, out, approximate=True)
    again = rm.load(out.getvalue())
    calf = next(each for each in again.joints if each.name == "calf")
    ends = sorted(calf_angle(x) for x in (-1.2, 1.2))
    np.testing.assert_allclose([calf.lower, calf.upper], ends, atol=1e-8)
    assert calf.effort_limit == pytest.approx(own.effort)
    assert calf.velocity_limit == pytest.approx(own.velocity)
    assert 23.7 * HORN / CRANK * 0.9 < calf.effort_limit < 100.0
    upper = rm.torque_limits(again, again.neutral())[1]
    assert upper[again.dof_names.index("calf")] == pytest.approx(own.effort)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        pasted = for_simulator(model, "isaaclab")[1]
    (mine,) = (each for each in pasted["fields"] if each.joint == "calf")
    assert (mine.effort, mine.velocity) == (own.effort, own.velocity)
    assert f'"calf": {own.effort:.12g}' in pasted["text"]


def test_motors_behind_gears_are_written_at_the_joint() -> None:
    """Effort by the ratio, a torque-speed curve too; the joint's own limits where tighter."""
    rotor = '<rotor inertia="1e-4" ratio="9"/>'
    model = rm.load(
        robot(
            link("a"), link("b"), link("c"),
            joint("one", "base", "a", kind="revolute",
                  more='<limit lower="-1" upper="2" effort="15" velocity="900"/>' + rotor
                  + '<motor effort="2" velocity="90"/>'),
            joint("two", "a", "b", mark=True,
                  more=rotor + '<motor stall_torque="3" no_load_speed="180"/>'),
            joint("three", "b", "c", kind="revolute", more='<limit lower="-4" upper="9"/>'),
            coupling("tie", {"two": 2.0, "three": 1.0}, 1.0),
        )
    )  # fmt: skip
    out = io.StringIO()
    rm.write_urdf(model, out, approximate=True)
    again = rm.load(out.getvalue())
    joints = {each.name: each for each in again.joints}
    assert (joints["one"].effort_limit, joints["one"].velocity_limit) == (15.0, 10.0)
    assert (joints["one"].lower, joints["one"].upper) == (-1.0, 2.0)
    (two,) = (each for each in again.actuators if each.joint == "two")
    assert two.stall_torque == pytest.approx(27.0)
    assert two.no_load_speed == pytest.approx(20.0)
    # 2 · two + three = 1 within the limits of three
    (reached,) = (each for each in rm.actuation(model).joints if each.joint == "two")
    assert (reached.lower, reached.upper) == pytest.approx((-4.0, 2.5))
    assert (reached.lower_by, reached.upper_by) == ("three", "three")
    assert (joints["two"].lower, joints["two"].upper) == pytest.approx((-4.0, 2.5))


@pytest.mark.parametrize(
    ("lengths", "kind"),
    [
        ((1.0, 2.0, 3.6, 4.0), "crank-rocker"),
        ((2.0, 3.6, 4.0, 1.0), "double-crank"),
        ((3.6, 1.0, 4.0, 2.0), "double-rocker"),
        ((2.0, 2.1, 2.0, 3.0), "triple-rocker"),
        ((2.0, 3.0, 2.0, 3.0), "parallelogram"),
        ((2.0, 2.0, 3.0, 3.0), "kite"),
        ((1.0, 2.0, 3.0, 2.0), "change point"),
    ],
)
def test_grashof(lengths: tuple[float, ...], kind: str) -> None:
    """With the last bar as the frame; the sign of the margin is that of Grashof's condition."""
    found, margin = grashof(lengths, 3)
    assert found == kind
    s, p, q, g = sorted(lengths)
    assert margin == pytest.approx(p + q - s - g)


@pytest.mark.slow_cases("planar_leg_linkage", "crank_rocker", "four_bar")
@pytest.mark.parametrize("name", ["crank_rocker", "four_bar", "planar_leg_linkage"])
def test_shipped_four_bars_are_found(name: str) -> None:
    (found,) = rm.actuation(rm.robots.load(name)).four_bars
    assert found.kind == ("crank-rocker" if name == "crank_rocker" else "parallelogram")
    if name != "crank_rocker":
        assert found.least.angle == pytest.approx(0.0, abs=1e-6)
        return
    a, b, c, d = found.lengths  # crank, coupler, rocker, ground
    extremes = [
        math.acos(abs((b * b + c * c - (d + sign * a) ** 2) / (2 * b * c))) for sign in (-1, 1)
    ]
    assert found.least.angle == pytest.approx(min(extremes), rel=1e-12)
    assert found.most.angle == math.pi / 2
    # the crank's whole turn, though the row is the rocker's, which has dead points on the way
    assert np.ptp(found.positions) == pytest.approx(2 * math.pi, abs=1e-9)
    law = np.abs(b * b + c * c - a * a - d * d + 2 * a * d * np.cos(found.positions)) / (2 * b * c)
    np.testing.assert_allclose(np.cos(found.angles), law, atol=1e-9)


@pytest.mark.slow
def test_four_bars_are_told_from_other_loops() -> None:
    """Whatever closes them; five bars and spatial loops are none. In MJCF as well."""
    for kind in ("spherical", "universal"):
        axis = HINGE.replace("0 1 0", "0 0 1") if kind == "universal" else ""
        closing = loop("closing", kind, "coupler", "rocker", "1 0 0", "0.7 0 0", axis)
        (found,) = rm.actuation(rm.load(four_bar(closing=closing))).four_bars
        np.testing.assert_allclose(sorted(found.lengths), [0.5, 0.7, 1.0, 1.1])
        assert found.kind == "crank-rocker"
    for name in ("five_bar", "mini_cheetah"):
        assert not rm.actuation(rm.robots.load(name)).four_bars
    out = io.StringIO()
    rm.write_mjcf(rm.load(four_bar()), out)
    (again,) = rm.actuation(rm.load(out.getvalue())).four_bars
    np.testing.assert_allclose(sorted(again.lengths), [0.5, 0.7, 1.0, 1.1], atol=1e-9)


def test_a_differential_has_a_polygon() -> None:
    motor = '<motor effort="2" velocity="40"/>'
    text = robot(
        link("a"), link("b"),
        joint("pitch", "base", "a", axis="0 1 0"), joint("roll", "a", "b", axis="1 0 0"),
        '<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>',
        *(f'<joint name="{name}"><role>joint{n}</role></joint>'
          for n, name in ((1, "pitch"), (2, "roll"))),
        *(f'<actuator name="{name}"><role>actuator{n}</role><mechanicalReduction>8'
          f'</mechanicalReduction><rotor inertia="1e-4"/>{motor}</actuator>'
          for n, name in ((1, "left"), (2, "right"))),
        "</transmission>",
    )  # fmt: skip
    model = rm.load(text, floating_base=False)
    (found,) = rm.actuation(model).polygons
    assert found.joints == ("pitch", "roll")
    assert not found.unit
    (corners,) = found.corners
    assert {tuple(np.round(c, 9)) for c in corners} == {(32, 0), (0, 32), (-32, 0), (0, -32)}


@pytest.mark.slow
def test_tellos_polygons_turn_with_the_pose() -> None:
    model = rm.robots.load("tello")
    found = rm.actuation(model)
    assert len(found.polygons) == 4
    for polygon in found.polygons:
        assert polygon.unit
        assert len(polygon.corners) > 1
    hip = next(each for each in found.drives if each.name == "left-hip-clamp-to-hip-rotor-1")
    constant = {ratio.joint: ratio.constant for ratio in hip.ratios}
    assert not constant["left-hip-clamp-to-gimbal"]
    assert not constant["left-gimbal-to-thigh"]
    behind = rm.actuation(model, "left-hip-clamp-to-hip-crank-1").drives
    (ratio,) = next(each for each in behind if each.name == hip.name).ratios
    assert ratio.constant  # behind its gear


@pytest.mark.slow
def test_workspaces_have_singular_curves() -> None:
    """Of two equal links in a plane: the disc's edge is where they are in line."""
    text = PLANAR
    model = rm.load(text, floating_base=True)
    found = rm.actuation(model, foot=("lower", (0.0, 0.0, -0.2))).workspaces[0]
    assert found.coordinates == ("hip", "knee")
    places = found.points @ found.axes + found.origin
    np.testing.assert_allclose(places[..., 1], 0.0, atol=1e-12)
    assert np.max(np.linalg.norm(places, axis=-1)) <= 0.4 + 1e-12
    assert len(found.singular)
    edge = np.linalg.norm(found.singular @ found.axes + found.origin, axis=-1)
    np.testing.assert_allclose(edge, 0.4, rtol=2e-3)  # drawn from cell to cell
    alone = rm.actuation(model, foot="lower").workspaces[0]
    assert alone.coordinates == ("hip",)
    with pytest.raises(KeyError, match="lower"):
        rm.actuation(model, foot="lowr")
    with pytest.raises(ValueError, match="knee"):
        rm.actuation(model, foot="lower", joints=["kne"])
    with pytest.raises(ValueError, match="moves 'base"):
        rm.actuation(rm.load(text), foot="base")


def test_ball_joints_and_floating_bases() -> None:
    text = robot(
        link("trunk"), link("head"), link("arm"),
        joint("free", "base", "trunk", kind="floating"),
        joint("neck", "trunk", "head", "0.1 0 0.3", kind="spherical"),
        joint("shoulder", "head", "arm", "0 0.2 0", kind="revolute",
              more='<limit lower="-1" upper="1" effort="4" velocity="3"/>'),
    )  # fmt: skip
    found = rm.actuation(rm.load(text))
    (shoulder,) = found.joints
    assert (shoulder.joint, shoulder.effort, shoulder.velocity) == ("shoulder", 4.0, 3.0)
    assert "shoulder" in str(found)


@pytest.mark.slow
def test_a_ball_that_rods_move_is_named() -> None:
    """It has no row; written as hinges it has three."""
    legs = ""
    for n in range(3):
        x, y = 0.1 * math.cos(2.0 * n), 0.1 * math.sin(2.0 * n)
        legs += link(f"crank{n}") + link(f"rod{n}") + joint(
            f"motor{n}", "base", f"crank{n}", f"{x!r} {y!r} 0", axis=f"{10 * x!r} {10 * y!r} 0",
            kind="revolute", more='<limit lower="-0.3" upper="0.3" effort="5" velocity="2"/>',
        ) + joint(f"low{n}", f"crank{n}", f"rod{n}", f"{-0.6 * y!r} {0.6 * x!r} 0",
                  kind="spherical")  # fmt: skip
        top = complex(x, y) * (1.1 + 0.3j)
        low = complex(x - 0.6 * y, y + 0.6 * x)
        legs += loop(f"high{n}", "spherical", f"rod{n}", "torso",
                     f"{(top - low).real!r} {(top - low).imag!r} 0.2",
                     f"{top.real!r} {top.imag!r} 0.1")  # fmt: skip
    ball = joint("waist", "base", "torso", "0 0 0.1", kind="spherical")
    ends = '<limit lower="-0.2" upper="0.2"/>'
    hinges = link("one", "") + link("other", "") + "".join(
        joint(name, parent, child, at, kind="revolute", axis=axis, more=ends)
        for name, parent, child, at, axis in (
            ("yaw", "base", "one", "0 0 0.1", "0 0 1"), ("pitch", "one", "other", "0 0 0", "0 1 0"),
            ("roll", "other", "torso", "0 0 0", "1 0 0"),
        )
    )  # fmt: skip
    torso = link("torso", INERTIAL.replace('mass value="1"', 'mass value="20"'))
    for waist, rows in ((ball, []), (hinges, ["yaw", "pitch", "roll"])):
        found = rm.actuation(rm.load(robot(torso, waist, legs)))
        assert [each.joint for each in found.joints] == rows
        assert found.balls == (() if rows else ("waist",))
        assert ("waist: a joint of several freedoms" in str(found)) == (not rows)
        assert found.as_dict()["balls"] == list(found.balls)


PLANAR = robot(
    link("upper"), link("lower"),
    joint("hip", "base", "upper", axis="0 1 0", kind="revolute",
          more='<limit lower="-1" upper="1" effort="5" velocity="7"/>'),
    joint("knee", "upper", "lower", "0 0 -0.2", axis="0 1 0", kind="revolute",
          more='<limit lower="-2" upper="1"/>'),
)  # fmt: skip


@pytest.mark.slow
def test_the_command(tmp_path: Path, legged: rm.Model) -> None:
    file, page, folder = tmp_path / "leg.urdf", tmp_path / "leg.html", tmp_path / "pictures"
    file.write_text(leg(), encoding="utf-8")
    run = CliRunner().invoke(
        app,
        ["actuation", str(file), "--json", "--html", str(page), "--pictures", str(folder),
         "--format", "svg"],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    said = json.loads(run.stdout)
    assert [each["name"] for each in said["actuators"]] == ["hip", "crank"]
    calf = next(each for each in said["joints"] if each["joint"] == "calf")
    assert calf["hidden"]
    assert calf["lower_by"] == "crank"
    assert calf["effort"] == pytest.approx(reach(legged, "calf").effort)
    both = {"effort": 100.0, "velocity": 50.0, "effort_lower": -100.0, "velocity_lower": -50.0}
    assert calf["file"] == {"lower": -2.8, "upper": -0.9} | both
    (bar,) = said["four_bars"]
    assert bar["input"] == "crank"
    assert "<svg" in page.read_text(encoding="utf-8")
    assert len(said["pictures"]) == len(list(folder.iterdir())) > 3
    text = str(rm.actuation(legged))
    assert "the motor gives" in text
    assert "transmission angle" in text


def test_the_command_with_a_foot(tmp_path: Path) -> None:
    file, out = tmp_path / "leg.urdf", tmp_path / "said.txt"
    file.write_text(PLANAR, encoding="utf-8")
    options = ["actuation", str(file), "--foot", "lower:0,0,-0.2"]
    run = CliRunner().invoke(app, [*options, "--json", "--html", str(tmp_path / "leg.html")])
    assert run.exit_code == 0, run.output
    (foot,) = json.loads(run.stdout)["workspaces"]
    assert (foot["foot"], foot["joints"]) == ("lower", ["hip", "knee"])
    assert foot["singular"]
    run = CliRunner().invoke(app, [*options, "--output", str(out)])
    assert run.exit_code == 0
    assert "singular curves" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options", [["--foot", "nowhere"], ["--joint", "hip"], ["--foot", "lower", "--joint", "x"]]
)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    file = tmp_path / "leg.urdf"
    file.write_text(PLANAR, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["actuation", str(file), "--json", *options])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["message"]
    assert len(err.strip().splitlines()) == 1


@pytest.mark.slow
def test_ranges_up_to_dead_points_have_no_full_turns() -> None:
    """The crank, led by the rocker, ends in line with the coupler: 1.0472 and -2.0944 rad."""
    text = rm.robots.path("crank_rocker").read_text(encoding="utf-8")
    (crank,) = rm.actuation(rm.load(text, independent=["rocker_joint"]), "crank_joint").joints
    assert crank.lower == pytest.approx(-2 * math.pi / 3, abs=1e-9)
    assert crank.upper == pytest.approx(math.pi / 3, abs=1e-9)


def test_ranges_of_linkages_that_are_nowhere_within_limits() -> None:
    """They are the file's."""
    text = four_bar(marks=(True, False, False))
    for name, low, high in (("j_crank", 1.0, 1.2), ("j_rocker", -0.2, 0.2)):
        before, found, after = text.partition(f'"{name}" type="continuous"')
        limit = f'<limit lower="{low}" upper="{high}" effort="1" velocity="1"/></joint>'
        text = (
            before + found.replace("continuous", "revolute") + after.replace("</joint>", limit, 1)
        )
    with pytest.warns(rm.DescriptionWarning, match="no closed configuration"):
        model = rm.load(text)
    crank = reach(model, "j_crank")
    assert (crank.lower, crank.upper) == (1.0, 1.2)


def slider(start: float, **limits: tuple[float, float]) -> rm.Model:
    """A slider at the end of a rod of 0.3 m on a crank of 0.1 m."""
    bounds = {
        name: f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>'
        for name, (lower, upper) in limits.items()
    }
    kinds = {name: "revolute" if name in bounds else "continuous" for name in ("turn", "pin")}
    return rm.load(
        robot(
            link("crank"), link("rod"), link("slide"),
            joint("turn", "base", "crank", axis="0 1 0", mark=True, kind=kinds["turn"],
                  more=f'<initial position="{start}"/>' + bounds.get("turn", "")),
            joint("pin", "crank", "rod", "0.1 0 0", axis="0 1 0", kind=kinds["pin"],
                  more=bounds.get("pin", "")),
            joint("way", "base", "slide", axis="1 0 0", kind="prismatic",
                  more='<limit lower="0" upper="1"/>'),
            loop("end", "revolute", "rod", "slide", "0.3 0 0", "0 0 0", HINGE),
        )
    )  # fmt: skip


@pytest.mark.slow_cases("0.4", "0.0")
@pytest.mark.parametrize("start", [0.0, 0.4])
def test_ranges_of_joints_that_turn_back(start: float) -> None:
    way = reach(slider(start), "way")
    assert (way.lower, way.upper) == pytest.approx((0.2, 0.4), abs=1e-12)
    assert (way.lower_by, way.upper_by) == ("loop", "loop")


@pytest.mark.slow_cases("-1.0-0.4-bounds1", "0.3-0.39407456415626446-bounds0")
@pytest.mark.parametrize(
    ("first", "upper", "bounds"),
    [(0.3, 0.1 * math.cos(0.3) + math.sqrt(0.09 - 0.01 * math.sin(0.3) ** 2), ("pin", "turn")),
     (-1.0, 0.4, ("pin", "loop"))],
)  # fmt: skip
def test_each_end_of_a_range_names_its_bound(
    first: float, upper: float, bounds: tuple[str, str]
) -> None:
    """The pin ends one end, the crank's lower limit or the stretched rod the other."""
    way = reach(slider(0.8, turn=(first, 2.5), pin=(-2.5, 5.0)), "way")
    assert (way.lower_by, way.upper_by) == bounds
    assert way.upper == pytest.approx(upper, abs=1e-9)


# ---- two designs ---------------------------------------------------------------------------------

BELT = robot(
    link("thigh"), link("calf"), link("toe"),
    joint("hip", "base", "thigh", axis="0 1 0", kind="revolute",
          more='<limit lower="-1" upper="3" effort="20" velocity="30"/>'),
    joint("calf", "thigh", "calf", f"0 0 {-THIGH}", axis="0 1 0", kind="revolute",
          more='<limit lower="-2.8" upper="-0.9" effort="37" velocity="20"/>'
          '<rotor inertia="1e-4" ratio="6"/>'),
    joint("toe", "calf", "toe", "0 0 -0.2", axis="0 1 0", kind="revolute",
          more='<limit lower="-0.5" upper="0.5"/>'),
).replace('name="test"', 'name="belt"')  # fmt: skip


def rows_of(text: str, joint: str) -> list[list[str]]:
    """The rows of a joint in the table of the joints, in words."""
    table = text.partition("\nJoints: ")[2].partition("\n\n")[0]
    rows = [line.split() for line in table.splitlines() if line.startswith(f"  {joint} ")]
    return [row for row in rows if row[0] == joint]


@pytest.mark.slow
def test_two_designs_stand_joint_by_joint(legged: rm.Model) -> None:
    """A linkage and a belt: joints of both, of one alone, and curves over each other."""
    rows = ("hip", "calf", "rod")
    first, second = rm.actuation(legged, rows), rm.actuation(rm.load(BELT))
    document = first.beside(second)
    text = document.text()
    linkage, belt = rows_of(text, "calf")
    assert linkage[1] == legged.name
    assert " ".join(belt[1:]) == "belt -2.8 rad -0.9 rad 37 N m 20 rad/s 0.0036 kg m²"
    assert [row[1] for row in rows_of(text, "hip")] == [legged.name, "belt"]
    assert [row[1] for row in rows_of(text, "toe")] == ["belt"]
    assert [row[1] for row in rows_of(text, "rod")] == [legged.name]
    assert f"{legged.name}: calf: its upper limit is that of 'crank'" in text
    plots = {each.name: each for each in document.plots}
    assert len(plots) == len(document.plots)
    for name in ("torque_calf", "inertia_calf"):
        linkage_line, belt_line = plots[name].lines
        assert linkage_line.label.startswith(f"{legged.name}: ")
        assert belt_line.label.startswith("belt: ")
        assert np.ptp(belt_line.y) == 0.0 < np.ptp(linkage_line.y)
    assert plots["torque_calf"].lines[1].y[0] == pytest.approx(37.0)
    assert plots["torque_calf"].y_label == "torque [N m]"
    assert f"ratio_rod_{legged.name}" in plots  # of the linkage alone
    assert f"({legged.name})" in plots[f"ratio_rod_{legged.name}"].title
    data = document.as_dict()
    assert data["other"] == second.as_dict()
    assert {key: data[key] for key in first.as_dict()} == first.as_dict()
    page = document.html()
    assert page.count("<svg") == len(plots)
    assert "belt: torque" in page


def test_designs_of_one_name_are_called_by_their_files(tmp_path: Path) -> None:
    """A hinge in one and a slide in the other have units, and plots, of their own."""
    slide = PLANAR.replace('name="hip" type="revolute"', 'name="hip" type="prismatic"')
    files = [tmp_path / "hinge.urdf", tmp_path / "slide.urdf"]
    for file, text in zip(files, (PLANAR, slide), strict=True):
        file.write_text(text, encoding="utf-8")
    first, second = (rm.actuation(rm.load(file)) for file in files)
    document = first.beside(second)
    one, other = rows_of(document.text(), "hip")
    assert " ".join(one[1:8]) == "hinge -1 rad 1 rad 5 N"
    assert " ".join(other[1:9]) == "slide -1 m 1 m 5 N 7"
    names = [each.name for each in document.plots]
    assert {"torque_speed_hip_hinge", "torque_speed_hip_slide"} <= set(names)
    assert len(set(names)) == len(names)
    assert first.beside(first).title == "first and second"


def test_the_command_with_two_designs(tmp_path: Path) -> None:
    strong = PLANAR.replace('effort="5"', 'effort="9"').replace('name="test"', 'name="strong"')
    files = [tmp_path / "leg.urdf", tmp_path / "strong.urdf"]
    for file, text in zip(files, (PLANAR, strong), strict=True):
        file.write_text(text, encoding="utf-8")
    folder, page = tmp_path / "curves", tmp_path / "both.html"
    options = ["actuation", *map(str, files), "--foot", "lower:0,0,-0.2"]
    run = CliRunner().invoke(
        app,
        [*options, "--json", "--html", str(page), "--plots", str(folder), "--format", "csv"],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    said = json.loads(run.stdout)
    assert (said["file"], said["other"]["file"]) == tuple(map(str, files))
    assert set(said) - set(said["other"]) == {"other", "pictures", "warnings"}
    assert [each["joints"][0]["effort"] for each in (said, said["other"])] == [5.0, 9.0]
    assert len(said["pictures"]) == len(list(folder.iterdir()))
    table = (folder / "torque_speed_hip.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("speed [rad/s],")
    assert [float(x) for x in table[1].split(",")] == [0.0, 5.0, 9.0]
    assert "strong: reached" in page.read_text(encoding="utf-8")
    alone = json.loads(CliRunner().invoke(app, [*options[:2], "--json"]).stdout)
    assert alone["other"] is None


@pytest.mark.parametrize(
    ("second", "options"), [(None, []), ("<robot", []), (BELT, ["--foot", "lower"])]
)
def test_wrong_second_designs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: str | None, options: list[str]
) -> None:
    """Missing, no robot, or without that foot: the error names the second file."""
    file, other = tmp_path / "leg.urdf", tmp_path / "other.urdf"
    file.write_text(PLANAR, encoding="utf-8")
    if second is not None:
        other.write_text(second, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["actuation", str(file), str(other), "--json", *options])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["message"]
    assert err.startswith(str(other))


@pytest.mark.slow
def test_at_its_greatest_speed_a_joint_gets_no_torque() -> None:
    """One motor drives it, whose limit of speed is what ends the curve, at any ratio."""
    for velocity in np.arange(20.0, 32.0):
        model = rm.load(leg(f'<motor effort="23.7" velocity="{velocity}"/>'))
        (curves,) = rm.actuation(model, ["calf"]).speed_torque
        assert len(curves.positions) == 3
        np.testing.assert_array_equal(curves.torques[:, -1], 0.0)
        assert np.all(curves.torques[:, -2] == curves.torques[:, 0])


@pytest.mark.slow
def test_tables_for_simulators_have_what_a_curve_gives_at_rest() -> None:
    """The ratio times the stall torque, where that is less than the limit of effort or alone."""
    for more, force in (("", 20.0), ('effort="30"', 20.0), ('effort="15"', 15.0)):
        motor = f'<motor stall_torque="20" no_load_speed="40" {more}/>'
        model = rm.load(leg(motor, crank='<limit lower="-0.6" upper="0.6"/>', mark=False))
        (map_,) = for_simulator(model, "isaaclab")[1]["maps"]
        (calf,) = rm.actuation(model, ["calf"]).joints
        order = np.argsort(calf.positions[calf.line])
        for position, ratio, torque in map_.rows:
            assert torque == pytest.approx(abs(ratio) * force)
            expected = np.interp(position, calf.positions[calf.line][order],
                                 calf.torque[calf.line][order])  # fmt: skip
            assert torque == pytest.approx(expected, rel=1e-3)
