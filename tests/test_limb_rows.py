"""Rows of actuation: motors and joints of limbs, the other joints of the limb at rest."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import pytest
import texts
from numpy.typing import NDArray
from texts import INERTIAL, link, loop, robot

import robomodel as rm
from robomodel.dynamics.actuators.envelopes import JointEnvelope
from robomodel.dynamics.actuators.limbs import condition
from robomodel.reach.box import boxes

DATA = Path(__file__).parent / "data" / "limbs"


@functools.cache
def study(name: str) -> tuple[rm.Model, rm.Actuation]:
    model = rm.load(DATA / name)
    return model, rm.actuation(model)


def row(name: str, joint: str) -> JointEnvelope:
    return next(each for each in study(name)[1].joints if each.joint == joint)


def ratio(name: str, motor: str, joint: str) -> tuple[float, float]:
    drive = next(each for each in study(name)[1].drives if each.name == motor)
    found = next(each for each in drive.ratios if each.joint == joint)
    return found.low, found.high


@pytest.mark.slow
def test_an_ankle_of_belts_and_rods() -> None:
    """Crank and heel radius are equal: both motors turn 3.6 for pitch; ±0.75 · 3.6 for roll."""
    name = "ankle_belts_two_rods.urdf"
    pitch, roll = row(name, "pitch"), row(name, "roll")
    assert (pitch.rest, roll.rest) == (("roll",), ("pitch",))
    for motor, sign in (("left_motor", 1.0), ("right_motor", -1.0)):
        np.testing.assert_allclose(ratio(name, motor, "pitch"), 3.6, rtol=1e-9)
        np.testing.assert_allclose(
            np.max(np.abs(ratio(name, motor, "roll"))), 0.75 * 3.6, rtol=1e-9
        )
        assert sign * ratio(name, motor, "roll")[0] > 0.0
    assert pitch.effort == pytest.approx(2 * 3.6 * 5)
    assert pitch.velocity == pytest.approx(110 / 3.6)
    inertia = 2 * (2e-5 + 0.06 * 0.02**2 + 5.5e-5 * 3.6**2)
    np.testing.assert_allclose(pitch.inertia[pitch.line], inertia, rtol=1e-9)
    middle = int(roll.line[np.argmin(np.abs(roll.positions[roll.line]))])
    assert roll.torque[middle] == pytest.approx(27.0, rel=1e-6)
    assert roll.speed[middle] == pytest.approx(110 / 2.7, rel=1e-6)
    assert 25.9 < roll.effort < 26.1  # at its limits, 0.4
    assert (pitch.limits.effort, pitch.limits.velocity) == (pytest.approx(36.0), 15.0)


def crank_angle(side: float, pitch: float, roll: float) -> float:
    """The motor's angle of ankle_two_rods.xml: |heel - tip|² = l² is a cos u + b sin u = c."""
    y, height = 0.031 * side, 0.26 if side > 0 else 0.18
    length = math.hypot(0.014, 0.265 if side > 0 else 0.185)
    cp, sp, cr, sr = math.cos(pitch), math.sin(pitch), math.cos(roll), math.sin(roll)
    heel = np.array([-0.052, cr * y - sr * 0.012, sr * y + cr * 0.012 - 0.017])
    x, z = cp * heel[0] + sp * heel[2], -sp * heel[0] + cp * heel[2] - height
    a, b = 2.0 * 0.038 * x, -2.0 * 0.038 * z
    c = length**2 - 0.038**2 - x * x - z * z - (heel[1] - y) ** 2
    turn = math.atan2(b, a) - math.acos(c / math.hypot(a, b))
    return side * math.remainder(turn, 2.0 * math.pi)


@pytest.mark.slow
def test_an_ankle_of_two_rods_has_the_rates_of_its_closed_form() -> None:
    """Where it reaches, the map to both motors is that of the lengths of the rods."""
    name = "ankle_two_rods.xml"
    model, result = study(name)
    h = 1e-6
    for joint, way in (("pitch_joint", (h, 0.0)), ("roll_joint", (0.0, h))):
        mine = row(name, joint)
        at = model.joint_positions(mine.q)
        for n, side in enumerate((1.0, -1.0)):
            slopes = [
                (crank_angle(side, p + way[0], r + way[1])
                 - crank_angle(side, p - way[0], r - way[1])) / (2.0 * h)
                for p, r in zip(at["pitch_joint"], at["roll_joint"], strict=True)
            ]  # fmt: skip
            np.testing.assert_allclose(mine.ratios[:, n], slopes, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        ratio(name, "left_motor", "pitch_joint"), (1.3566, 3.4957), atol=1e-4
    )
    np.testing.assert_allclose(
        ratio(name, "right_motor", "pitch_joint"), (-4.9128, -1.3545), atol=1e-4
    )
    (limb,) = result.limbs
    np.testing.assert_allclose(limb.ratios, [[1.3615, 0.8158], [-1.3585, 0.8158]], atol=1e-4)
    assert 0.85 < limb.share < 0.92
    assert [at for at, by in limb.lost if by == "loop"] == [(-0.8, -0.25), (-0.8, 0.25)]
    assert "pitch_joint -0.8, roll_joint 0.25 does not close" in str(result)
    pitch = row(name, "pitch_joint")
    middle = int(pitch.line[np.argmin(np.abs(pitch.positions[pitch.line]))])
    assert pitch.torque[middle] == pytest.approx(81.6, abs=0.05)
    with_limb = '<robot name="limb">' + "".join(
        f'<joint name="{n}" independent="true"/>' for n in ("pitch_joint", "roll_joint")
    ) + "</robot>"  # fmt: skip
    same = rm.actuation(rm.load(DATA / name, extend=with_limb))
    for one, other in zip(result.drives, same.drives, strict=True):
        for mine, its in zip(one.ratios, other.ratios, strict=True):
            np.testing.assert_allclose((mine.low, mine.high), (its.low, its.high), rtol=1e-6)


@pytest.mark.slow
def test_a_symmetric_leg_has_symmetric_rows() -> None:
    name = "five_bar_leg.urdf"
    for joint, other in (("front", "rear"), ("rear", "front")):
        mine = row(name, joint)
        assert mine.rest == (other,)
        assert (mine.effort, mine.velocity) == (pytest.approx(8 * 1.6), pytest.approx(400 / 8))
    table = str(study(name)[1]).partition("\nJoints: ")[2]
    (line,) = [x.split() for x in table.splitlines() if x.startswith("  rear ")]
    assert line[:2] == ["rear", "front"]


def test_a_rocker_that_turns_back_at_both_ends() -> None:
    """The law of cosines says its angle; at its dead points speed is 0 and torque has no end."""
    a, b, c, d = 0.12, 0.42, 0.31, 0.37

    def rocker(phi: float) -> float:
        x, y = a * math.cos(phi) - d, a * math.sin(phi)
        r = math.hypot(x, y)
        return math.atan2(y, x) - math.acos((r * r + c * c - b * b) / (2.0 * r * c))

    start = rocker(1.0)
    knee = math.atan2(c * math.sin(start) - a * math.sin(1.0),
                      d + c * math.cos(start) - a * math.cos(1.0)) - 1.0  # fmt: skip
    first = '<limit effort="20" velocity="8"/><initial position="1"/>'
    second, third = (f'<initial position="{x!r}"/>' for x in (knee, start))
    model = rm.load(
        robot(
            link("crank"), link("coupler"), link("rocker"),
            texts.joint("crank", "base", "crank", more=first),
            texts.joint("knee", "crank", "coupler", f"{a} 0 0", more=second),
            texts.joint("rocker", "base", "rocker", f"{d} 0 0", more=third),
            loop("pin", "revolute", "coupler", "rocker", f"{b} 0 0", f"{c} 0 0"),
        )
    )  # fmt: skip
    found = rm.actuation(model, rows="rocker")
    (mine,) = found.joints
    angles = [(rocker(1.0 + h) - rocker(1.0 - h)) / (2.0 * h) for h in (1e-3, 2e-3)]
    rate = (4.0 * angles[0] - angles[1]) / 3.0  # of the rocker by the crank's
    assert mine.velocity == pytest.approx(8.0 * abs(rate), rel=1e-9)
    with pytest.warns(RuntimeWarning, match="will not do"):
        tree = rm.approximate_tree(model, joints=["rocker"], fit="lumped")
    assert {each.name: each.velocity_limit for each in tree.joints}["rocker"] == mine.velocity
    ends = [math.acos((c * c + d * d - (b + s * a) ** 2) / (2.0 * c * d)) for s in (-1, 1)]
    assert [x.position for x in mine.dead_points] == pytest.approx(
        [math.pi - x for x in reversed(ends)], abs=1e-8
    )
    data = found.as_dict()
    (turning,) = data["actuators"][0]["ratios"]
    assert (turning["high"], turning["most"], turning["constant"]) == (None, None, False)
    data_row = data["joints"][0]
    assert data_row["torque"] == [pytest.approx(20.0 * turning["low"]), None]
    assert data_row["speed"][0] == 0.0
    assert data_row["reflected_inertia"][1] is None
    assert "infinite" in str(found)
    assert "N m and up" in str(found)


@pytest.mark.parametrize("independent", ["boom", "barrel", "slide"])
def test_a_boom_passes_the_dead_point_of_its_cylinder(independent: str) -> None:
    """Whichever joint is independent it reaches its limits; the lever is a cross product."""
    eye, pin, ends, start = 0.3, np.array([0.5, 0.2]), (-0.4, 2.0), 1.2

    def way(x: float) -> np.ndarray:
        return eye * np.array([math.cos(x), math.sin(x)]) - pin

    def lever(x: float) -> float:
        (a, b), d = way(x) + pin, way(x)
        return abs(a * d[1] - b * d[0]) / math.hypot(*d)

    first, length = math.atan2(*way(start)[::-1]), math.hypot(*way(start))
    heavy = INERTIAL.replace('mass value="1"', 'mass value="50"')
    model = rm.load(
        robot(
            link("boom", heavy), link("barrel"), link("rod"),
            texts.joint("boom", "base", "boom", kind="revolute",
                        more=f'<limit lower="{ends[0]}" upper="{ends[1]}"/>'
                             f'<initial position="{start}"/>'),
            texts.joint("barrel", "base", "barrel", f"{pin[0]} {pin[1]} 0",
                        more=f'<initial position="{first!r}"/>'),
            texts.joint("slide", "barrel", "rod", kind="prismatic", axis="1 0 0",
                        more='<limit lower="0.01" upper="3" effort="100" velocity="0.5"/>'
                             f'<initial position="{length!r}"/>'),
            loop("eye", "revolute", "rod", "boom", "0 0 0", f"{eye} 0 0"),
            '<transmission name="m"><joint name="slide"/><actuator name="m"/></transmission>',
        ),
        independent=[independent],
    )  # fmt: skip
    assert rm.limb_joints(model) == ("boom",)
    reach = rm.joint_range(model, "boom")
    assert (reach.lower, reach.upper) == pytest.approx(ends, abs=1e-9)
    found = rm.actuation(model)
    (mine,), (cylinder,) = found.joints, found.cylinders
    dead = math.atan2(pin[1], pin[0])
    assert [(x.position, x.kind) for x in mine.dead_points] == [
        (pytest.approx(dead, abs=1e-8), "motors rest")
    ]
    longest = max(map(lever, np.linspace(*ends, 4001)))
    assert mine.effort == pytest.approx(100.0 * lever(start), rel=1e-9)
    assert mine.velocity == pytest.approx(0.5 / longest, rel=1e-4)
    data = found.as_dict()
    assert data["joints"][0]["torque"] == [0.0, pytest.approx(100.0 * longest, rel=1e-4)]
    assert data["cylinders"][0]["lever"] == [0.0, pytest.approx(longest, rel=1e-4)]
    assert cylinder.margin == 0.0
    assert [rod.rod for rod in found.transmissions] == ["slide"]  # the boom is none, but the load


def test_a_cylinder_goes_on_where_a_leg_turns_back() -> None:
    """A landing gear: its drag brace passes its stretched pose, where the leg turns back.

    The cylinder stands on the upper brace: there its lever on the leg has no end, elsewhere it is
    the ratio of both rates, by circles.
    """
    foot, root, upper = np.array([0.0, -0.6]), np.array([0.7, 0.05]), 0.47
    lower, pin = float(np.hypot(*(root - foot))) + 0.004 - upper, np.array([0.25, 0.12])

    def placed(turn: float) -> tuple[float, float, np.ndarray]:
        """The leg's angle, the cylinder's length and the brace's knee, by the upper brace's."""
        middle = root + upper * np.array([math.cos(turn), math.sin(turn)])
        far, leg = float(np.hypot(*middle)), float(np.hypot(*foot))
        bend = math.acos((far**2 + leg**2 - lower**2) / (2.0 * far * leg))
        eye = root + 0.4 * (middle - root)
        return math.atan2(middle[1], middle[0]) - bend, float(np.hypot(*(eye - pin))), middle

    def text(x: np.ndarray) -> str:
        return f"{float(x[0])!r} {float(x[1])!r} 0"

    far = float(np.hypot(*(foot - root)))
    apart = math.acos((upper**2 + far**2 - lower**2) / (2.0 * upper * far))
    start = math.atan2(*(foot - root)[::-1]) + apart
    leg, length, middle = placed(start)
    assert leg == pytest.approx(-math.pi / 2.0, abs=1e-9)
    along = (root + 0.4 * (middle - root) - pin) / length
    ends = '<limit lower="{}" upper="{}"/>'
    model = rm.load(
        robot(
            link("leg", INERTIAL.replace("0.1 0.02", "0 -0.7").replace('"1"', '"10"')),
            *(link(name, "") for name in ("upper", "lower", "barrel", "rod")),
            texts.joint("leg", "base", "leg", kind="revolute", more=ends.format(-2, 2)),
            texts.joint("root", "base", "upper", text(root), kind="revolute",
                        more=ends.format(-0.12, 0.6)),
            texts.joint("knee", "upper", "lower", text(middle - root)),
            loop("foot", "revolute", "lower", "leg", text(foot - middle), text(foot)),
            texts.joint("pin", "base", "barrel", text(pin)),
            texts.joint("cylinder", "barrel", "rod", kind="prismatic", axis=text(along),
                        more='<limit lower="-1" upper="1" effort="500" velocity="0.1"/>'),
            loop("eye", "revolute", "rod", "upper", text(length * along),
                 text(0.4 * (middle - root))),
        )
    )  # fmt: skip
    assert rm.limb_joints(model) == ("leg",)
    (cylinder,) = rm.actuation(model).cylinders
    turns = np.linspace(start - 0.12, start + 0.6, 7201)
    legs, above, below = (np.array([placed(x + h)[:2] for x in turns]) for h in (0.0, 1e-5, -1e-5))
    top, moved = int(np.argmin(legs[:, 0])), above - below
    assert 0 < top < 7000
    assert cylinder.positions[[0, -1]] == pytest.approx(legs[[top, -1], 0] - leg, abs=1e-6)
    levers = np.abs(moved[:, 1] / moved[:, 0])[top + 50 :]
    least, most = cylinder.span(np.abs(cylinder.levers))
    assert least == pytest.approx(np.min(levers), rel=1e-8)
    assert math.isinf(most)


def test_a_motor_of_its_own_rests_with_a_rocker_at_its_dead_points() -> None:
    """A rocker between its dead points, driven at its own hinge: its ratio is 1 all along.

    Bars of 4, 1, 2 and √13 m: they are where crank and coupler are in line, by the cosine law.
    """
    text = rm.robots.path("crank_rocker").read_text()
    motor = '<transmission name="m"><joint name="rocker_joint"/><actuator name="m"/></transmission>'
    text = text.replace("</robot>", f"{motor}</robot>")
    position = '<initial position="2.5535900500422257"/>'
    text = text.replace(position, f'{position}<limit effort="3" velocity="2"/>')
    rocker = rm.actuation(rm.load(text), "rocker_joint")
    (row,), (motor_row,) = rocker.as_dict()["joints"], rocker.drives
    dead = [math.pi - math.acos((4.0**2 + 13.0 - d**2) / (8.0 * math.sqrt(13.0))) for d in (1, 3)]
    assert row["dead_points"] == pytest.approx(sorted(dead), abs=1e-8)
    assert row["dead_point_kinds"] == ["both rest", "both rest"]
    assert [(x.low, x.high) for x in motor_row.ratios] == [(pytest.approx(1.0), pytest.approx(1.0))]
    assert row["torque"] == [pytest.approx(3.0)] * 2
    assert row["speed"] == [pytest.approx(2.0)] * 2
    assert row["reflected_inertia"][1] is None  # the crank goes on


def short_five_bar() -> tuple[str, float, float]:
    """A five-bar with motors at both cranks, and the lengths of its rods."""
    text = rm.robots.path("five_bar").read_text()
    rods = {"0.38 0 0": 0.3, "0.42 0 0": 0.32}  # shorter, so that the left crank turns back
    for old, new in rods.items():
        text = text.replace(f'"{old}"', f'"{new} 0 0"')
    for crank in ("J1", "J2"):
        more = (
            f'<transmission name="m{crank}"><joint name="{crank}"/>'
            f'<actuator name="m{crank}"/></transmission>'
        )
        head, rest = text.split(f'<joint name="{crank}" type="continuous" independent="true">')
        head += f'<joint name="{crank}" type="continuous" independent="true">'
        text = (
            head + '<limit effort="3" velocity="2"/>' + rest.replace("</robot>", more + "</robot>")
        )
    return text, *rods.values()


@pytest.mark.slow
def test_an_elbow_is_powerless_where_its_crank_turns_back() -> None:
    """The right elbow of a five-bar, its right crank at rest: the left motor rests at a dead point
    of the left crank, where both rods are in line. It is there by the cosine law.
    """
    text, left, right = short_five_bar()
    model = rm.load(text)
    study = rm.actuation(model, "J4")
    (row,) = study.joints
    assert (row.rest, row.actuators) == (("J2",), ("mJ1",))
    at = float(model.joint_positions(model.neutral())["J2"])
    tip, pivot = 0.3 + 0.22 * np.exp(1j * at), 0j
    apart, bar, line = abs(tip - pivot), 0.25, left + right
    toward = (tip - pivot) / apart
    dead = []
    for side in (1.0, -1.0):  # of the crank, with the rods in line
        turn = side * math.acos((apart**2 + bar**2 - line**2) / (2.0 * apart * bar))
        crank = toward * np.exp(1j * turn)
        rods_ahead = (tip - pivot - bar * crank) / line
        dead.append(float(np.angle(-rods_ahead / np.exp(1j * at))))
    (found,) = [x for x in row.dead_points if x.kind == "motors rest"]
    assert min(abs(math.remainder(found.position - x, math.tau)) for x in dead) < 1e-8
    data = study.as_dict()["joints"][0]
    assert data["torque_whatever_others_take"] == [0.0, None]
    # where it turns back, the left arm in line, the left crank moves nothing else: both motors have
    # torque for the elbow's alone, the right one by the elbow's rate with the right crank
    turning = [x for x in row.dead_points if x.kind == "it rests"]
    assert turning
    for each in turning:
        elbow = np.exp(1j * (at + each.position))  # the right rod's direction
        end = tip + right * elbow
        assert min(abs(abs(end) - x) for x in (bar + left, left - bar)) < 1e-8
        arm = end / abs(end)
        rate = -0.22 * (np.exp(1j * at) / arm).imag / (right * (elbow / arm).imag) - 1.0
        assert each.torque == pytest.approx((3.0 / abs(rate),) * 2, rel=1e-6)
    names = list(model.joint_names)
    along = model.constraint_jacobian(row.q[row.line])[:, names.index("J4")]  # by both cranks
    most = np.max(3.0 / np.max(np.abs(along), axis=1))
    assert data["torque"] == [0.0, pytest.approx(most, rel=1e-9)]
    # short of it what the motors give at neutral, without torque on the crank at rest
    rates = model.constraint_jacobian(model.neutral())
    turns = rates[[names.index("J2"), names.index("J4")]]
    assert row.effort == pytest.approx(3.0 / np.max(np.abs(turns[1])), rel=1e-9)


@pytest.mark.slow
def test_a_motor_that_needs_a_passive_joint_to_push_gives_nothing_alone() -> None:
    """The same elbow with a hand on its rod, and a motor whose tendon passes elbow and wrist.

    Without torque on the wrist that motor gives nothing, so that the elbow alone is powerless where
    the left motor rests, though motors turn there; it is what it was without them.
    """
    text, *_ = short_five_bar()
    hand = (
        '<link name="hand"><inertial><mass value="0.1"/>'
        '<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>'
        '<joint name="wrist" type="continuous"><parent link="link4"/><child link="hand"/>'
        '<axis xyz="0 0 1"/></joint><transmission name="tendon"><joint name="J4"/>'
        '<joint name="wrist"/><actuator name="tendon"/></transmission></robot>'
    )
    (before,), (row,) = (
        rm.actuation(rm.load(each), "J4").joints for each in (text, text.replace("</robot>", hand))
    )
    assert row.actuators == ("mJ1", "tendon")
    (expected,) = [x.position for x in before.dead_points if x.kind == "motors rest"]
    (found,) = [x.position for x in row.dead_points if x.kind == "not alone"]
    assert found == pytest.approx(expected, abs=1e-8)
    assert row.span(row.torque, "alone") == pytest.approx(before.span(before.torque, "alone"))
    assert row.effort == pytest.approx(before.effort, rel=1e-9)


@pytest.mark.slow
def test_an_elbow_behind_a_crank_is_the_cranks() -> None:
    """The elbow is crank less lift; with lift at rest, the crank's motor alone moves it."""
    name = "palletizer_level_hand.urdf"
    elbow = row(name, "elbow")
    assert (elbow.rest, elbow.actuators) == (("lift",), ("crank",))
    assert elbow.effort == pytest.approx(144.0)
    assert elbow.velocity == pytest.approx(420 / 90)


@pytest.mark.slow
def test_rows_are_chosen_by_name() -> None:
    model, _ = study("ankle_belts_two_rods.urdf")
    (crank,) = rm.actuation(model, "left_crank").joints
    np.testing.assert_allclose(crank.ratios, 3.6, rtol=1e-9)
    assert crank.actuators == ("left_motor",)
    assert crank.rest == ("right_crank",)
    with pytest.raises(rm.errors.UnknownNameError, match=r"no joint 'pich'.*did you mean 'pitch'"):
        rm.actuation(model, ["pich"])
    with pytest.raises(ValueError, match="'left_motor' is a rotor's"):
        rm.actuation(model, ["left_motor"])


def test_conditions_have_no_units() -> None:
    ratios = np.array([[[1.0, 2.0], [1.0, -2.0]], [[1.0, 2.0], [1.0, 2.0]], [[3.0, 0], [0, 0.1]]])
    found = condition(ratios)
    np.testing.assert_allclose(found[[0, 2]], 1.0)
    assert found[1] > 1e15
    assert np.isinf(condition(ratios[:1, :1])).all()


@pytest.mark.slow
def test_boxes_are_reached_as_the_closed_form_says() -> None:
    """A target is reached if both rods' equations have a root there, and the way to it."""
    model, _ = study("ankle_two_rods.xml")
    (box,) = boxes(model)
    closes = []
    for pitch, roll in box.targets:
        try:
            angles = [crank_angle(side, pitch, roll) for side in (1.0, -1.0)]
        except ValueError:
            angles = [math.nan]
        closes.append(bool(np.all(np.abs(angles) <= 1.5)))
    np.testing.assert_array_equal(box.reached, closes)
    assert np.max(np.abs(model.residual(box.q))) < 1e-12


@pytest.mark.slow
def test_a_cylinder_near_its_dead_point() -> None:
    """Its lever is the distance of its line from the boom's axis: that of a cross product."""
    name = "digger_cylinder.urdf"
    _, result = study(name)
    (cylinder,) = result.cylinders
    foot, pin = np.array([0.33, -0.22]), np.array([1.05, 0.38])
    turn = np.array([[np.cos(cylinder.positions), -np.sin(cylinder.positions)],
                     [np.sin(cylinder.positions), np.cos(cylinder.positions)]])  # fmt: skip
    eye = np.einsum("ijn,j->ni", turn, pin)
    line = eye - foot
    lever = (eye[:, 1] * line[:, 0] - eye[:, 0] * line[:, 1]) / np.linalg.norm(line, axis=1)
    np.testing.assert_allclose(np.abs(cylinder.levers), np.abs(lever), rtol=1e-9)
    np.testing.assert_allclose(
        cylinder.angles, np.arcsin(np.abs(lever) / np.hypot(*pin)), rtol=1e-9
    )
    least = cylinder.transmission.least
    assert (math.degrees(least.angle), least.at) == pytest.approx((7.2077, -0.7), abs=1e-3)
    in_line = math.atan2(*foot[::-1]) - math.atan2(*pin[::-1])
    assert cylinder.dead_points[0] == pytest.approx(in_line, abs=1e-8)
    assert cylinder.margin == pytest.approx(-0.7 - in_line, abs=1e-8)
    assert np.min(np.abs(cylinder.push)) == pytest.approx(9e4 * np.min(np.abs(lever)))
    np.testing.assert_array_equal(cylinder.pull, -cylinder.push)
    assert "the range of boom ends 0.235 rad before its dead point" in str(result)
    rows = result.as_dict()["transmissions"]
    assert [(each["rod"], each["input"]) for each in rows] == [("cylinder", "boom")]


@pytest.mark.slow_cases("rotor", "nut")
@pytest.mark.parametrize("drive", ["rotor", "nut", "transmission", "slide"])
def test_a_screw_is_a_cylinder(drive: str) -> None:
    """Whatever turns it: force, speed and inertia of all four drives are equal."""
    found = rm.actuation(rm.load(texts.screw_leg(drive, 1.2)))
    (cylinder,), (row,) = found.cylinders, found.joints
    trunnion, knee, eye = (complex(*x) for x in (texts.TRUNNION, texts.KNEE, texts.EYE))

    def lever(angle: NDArray[np.float64]) -> NDArray[np.float64]:
        arm = (eye - knee) * np.exp(1j * angle)
        line = knee + arm - trunnion
        return np.abs(np.imag(np.conj(arm) * line) / np.abs(line))

    ratio, fine = math.tau / texts.LEAD, lever(np.linspace(-0.1, 1.2, 100_001))
    here = lever(cylinder.positions)
    np.testing.assert_allclose(np.abs(cylinder.levers), here, rtol=1e-9)
    np.testing.assert_allclose(np.abs(cylinder.push), 2.5 * ratio * here, rtol=1e-9)
    assert row.limits.effort == pytest.approx(2.5 * ratio * np.min(fine), rel=1e-8)
    assert row.limits.velocity == pytest.approx(400.0 / ratio / np.max(fine), rel=1e-8)
    (rod,) = found.transmissions
    assert rod.least.angle == pytest.approx(np.arcsin(np.min(fine) / abs(eye - knee)), abs=1e-6)


def test_speeds_of_a_linkage_that_is_drawn_where_its_motor_rests() -> None:
    """Crank and coupler in line: the rocker's motor is at rest, and limits the crank elsewhere."""
    crank, coupler, rocker, ground = 0.5, 1.0, 0.7, 1.1
    x = ((crank + coupler) ** 2 + ground**2 - rocker**2) / (2.0 * ground)
    y = math.sqrt((crank + coupler) ** 2 - x**2)
    start, turned = math.atan2(y, x), math.atan2(y, x - ground)
    model = rm.load(
        robot(
            link("crank"), link("coupler"), link("rocker"),
            texts.joint("crank", "base", "crank", rpy=f"0 0 {start!r}", kind="revolute",
                        more='<limit lower="-1" upper="1"/>'),
            texts.joint("coupler", "crank", "coupler", f"{crank} 0 0"),
            texts.joint("rocker", "base", "rocker", f"{ground} 0 0", rpy=f"0 0 {turned!r}",
                        more='<motor effort="2" velocity="3"/>'),
            loop("closing", "revolute", "coupler", "rocker", f"{coupler} 0 0", f"{rocker} 0 0"),
        )
    )  # fmt: skip
    (row,) = rm.actuation(model, "crank").joints
    tip = crank * np.exp(1j * (start + np.linspace(-1.0, 1.0, 20_001)))
    apart = np.abs(ground - tip)
    lean = np.arccos((apart**2 + rocker**2 - coupler**2) / (2.0 * apart * rocker))
    knee = ground + rocker * np.exp(1j * (np.pi + np.angle(ground - tip) - lean))
    rod = knee - tip
    # both ends of the coupler have the same velocity along it
    ratio = np.imag(np.conj(rod) * tip) / np.imag(np.conj(rod) * (knee - ground))
    fastest = float(np.max(np.abs(ratio)))
    assert row.limits.velocity == pytest.approx(3.0 / fastest, rel=1e-6)


@pytest.mark.slow
def test_rods_that_carry_nothing_have_no_angles() -> None:
    """Links that keep the hand level go along with lift, with angles down to zero."""
    _, result = study("palletizer_level_hand.urdf")
    assert [(each.rod, each.input) for each in result.transmissions] == [("drive_rod", "crank")]


def test_efforts_are_the_least_where_cylinders_pass_their_dead_points() -> None:
    """An elbow between two cylinders that push with 800 N and pull with 500 N: levers by hand."""
    pin, eye, elbow = 0.06, np.array([0.06, 0.05]), np.array([0.4, 0.0])
    ends = '<limit lower="-0.2" upper="0.2"/><motor effort="800" effort_lower="-500" velocity="1"/>'
    parts = [
        link("arm"),
        texts.joint("elbow", "base", "arm", "0.4 0 0", kind="revolute", axis="0 -1 0",
                    more='<limit lower="-1.2" upper="1.2"/>'),
    ]  # fmt: skip
    for name, side in (("up", 1.0), ("down", -1.0)):
        way = elbow + eye * [1.0, side] - [0.0, side * pin]
        axis = (way / np.linalg.norm(way)).tolist()
        half, at = f"{way[0] / 2} 0 {way[1] / 2}", f"0 0 {side * pin}"
        parts += [
            link(f"{name}_barrel"), link(f"{name}_rod"),
            texts.joint(f"{name}_pin", "base", f"{name}_barrel", at, axis="0 -1 0"),
            texts.joint(name, f"{name}_barrel", f"{name}_rod", half, kind="prismatic",
                        axis=f"{axis[0]!r} 0 {axis[1]!r}", more=ends),
            loop(f"{name}_eye", "revolute", f"{name}_rod", "arm", half,
                 f"{eye[0]} 0 {side * eye[1]}", '<axis xyz="0 -1 0"/>'),
        ]  # fmt: skip
    study = rm.actuation(rm.load(robot(*parts)))
    (row,) = [each for each in study.joints if each.joint == "elbow"]
    angle = np.linspace(-1.2, 1.2, 200_001)
    turned = np.stack([np.cos(angle), np.sin(angle)]), np.stack([-np.sin(angle), np.cos(angle)])
    back, ahead = np.zeros(len(angle)), np.zeros(len(angle))
    for side in (1.0, -1.0):
        tip = eye[0] * turned[0] + side * eye[1] * turned[1]
        moves = eye[0] * turned[1] - side * eye[1] * turned[0]
        rod = elbow[:, None] + tip - np.array([[0.0], [side * pin]])
        lever = np.sum(rod * moves, axis=0) / np.linalg.norm(rod, axis=0)
        back += np.maximum(500.0 * lever, -800.0 * lever)
        ahead += np.maximum(800.0 * lever, -500.0 * lever)
    assert row.effort == pytest.approx(np.min(ahead), rel=1e-4)
    assert row.effort_back == pytest.approx(np.min(back), rel=1e-4)
    assert row.effort >= np.min(ahead) * (1.0 - 1e-6)


@pytest.mark.filterwarnings("error")
def test_a_scissor_lift_passes_its_flat_position() -> None:
    """Two stages with arms of 1 m, drawn at 0.5 rad: flat, the slide that drives them rests."""
    c, s = math.cos(0.5), math.sin(0.5)
    far, back, about = f"{c!r} 0 {s!r}", f"{-c!r} 0 {s!r}", {"axis": "0 -1 0"}
    middle, middle_back = f"{c / 2!r} 0 {s / 2!r}", f"{-c / 2!r} 0 {s / 2!r}"
    more = '<axis xyz="0 -1 0"/>'
    drive = '<limit lower="-0.3" upper="0.13"/><motor effort="5000" velocity="0.2"/>'
    text = robot(
        *(link(name) for name in ("foot", "a0", "b0", "a1", "b1", "platform", "roller")),
        texts.joint("drive", "base", "foot", f"{c!r} 0 0", kind="prismatic", axis="1 0 0",
                    more=drive),
        texts.joint("ja0", "base", "a0", **about),
        texts.joint("jb0", "foot", "b0", **about),
        texts.joint("ja1", "b0", "a1", back, **about),
        texts.joint("jb1", "a0", "b1", far, **about),
        texts.joint("top", "b1", "platform", back, **about),
        texts.joint("roll", "platform", "roller", f"{c!r} 0 0", kind="prismatic", axis="1 0 0",
                    more='<limit lower="-2" upper="2"/>'),
        loop("pin0", "revolute", "a0", "b0", middle, middle_back, more),
        loop("pin1", "revolute", "a1", "b1", middle, middle_back, more),
        loop("tp", "revolute", "a1", "roller", far, "0 0 0", more),
    )  # fmt: skip
    model = rm.load(text)
    (mine,) = rm.actuation(model, rows=rm.limb_joints(model)).joints
    dead = [each for each in mine.dead_points if each.kind == "motors rest"]
    assert len(dead) == 1
    flat = {"ja0": -0.5, "jb0": 0.5, "ja1": 1.0, "jb1": 1.0, "top": -0.5}  # turned as their arms
    # loops lose ranks there, and rates are known no nearer than 2e-6 rad
    assert abs(dead[0].position) == pytest.approx(abs(flat[mine.joint]), abs=1e-5)


HEAVY = (
    '<inertial><mass value="300"/><inertia ixx="9" iyy="9" izz="9" ixy="0" ixz="0" iyz="0"/>'
    "</inertial>"
)


def test_a_cylinder_rests_where_its_joint_turns_through() -> None:
    """An arm of a scissor lift turns fully, and the slide rests where the arm lies along it."""
    c, s = math.cos(0.5), math.sin(0.5)
    about = {"axis": "0 -1 0"}
    text = robot(
        link("foot"), link("a", HEAVY), link("b"),
        texts.joint("drive", "base", "foot", f"{c!r} 0 0", kind="prismatic", axis="1 0 0",
                    more='<limit/><motor effort="500" velocity="1"/>'),
        texts.joint("ja", "base", "a", **about),
        texts.joint("jb", "foot", "b", **about),
        loop("pin", "revolute", "a", "b", f"{c / 2!r} 0 {s / 2!r}", f"{-c / 2!r} 0 {s / 2!r}",
             '<axis xyz="0 -1 0"/>'),
    )  # fmt: skip
    model = rm.load(text)
    (row,) = rm.actuation(model).as_dict()["cylinders"]
    assert rm.joint_range(model, "ja").turns_fully
    turned = [math.remainder(x + 0.5, math.pi) for x in row["dead_points"]]  # x = cos (ja + 0.5)
    assert turned == pytest.approx([0.0, 0.0], abs=1e-6)
    assert row["margin"] == 0.0
    assert row["lever"] == pytest.approx([0.0, 1.0], abs=1e-2)
    assert row["push"] == pytest.approx([-500.0, 500.0], abs=0.1)


def test_motors_rest_where_their_joint_turns_back() -> None:
    """An ear, which a cylinder turns, turns back where the bucket that it leads goes on.

    The cylinder rests with it, and its lever is finite: that of its line about the ear's hinge. It
    is the loop of the bucket that lets others move there.
    """
    hinge, tip, pin, eye = (np.array(x) for x in ((-0.3, 0.05), (-0.178, 0.302), (0.05, 0.2),
                                                  (-1.2, 0.3)))  # fmt: skip
    way = (tip - eye) / np.linalg.norm(tip - eye)

    def at(x: np.ndarray) -> str:
        return f"{float(x[0])!r} {float(x[1])!r} 0"

    text = robot(
        link("bucket"), link("ear", HEAVY), link("push"), link("barrel"),
        link("piston"),
        texts.joint("bucket_j", "base", "bucket"),
        texts.joint("ear_j", "base", "ear", at(hinge)),
        texts.joint("push_j", "ear", "push", at(tip - hinge)),
        texts.joint("barrel_j", "base", "barrel", at(eye)),
        texts.joint("cylinder", "barrel", "piston", at(tip - eye), kind="prismatic", axis=at(way),
                    more='<limit/><motor effort="20000" velocity="0.5"/>'),
        loop("front", "revolute", "push", "bucket", at(pin - tip), at(pin)),
        loop("back", "revolute", "piston", "ear", "0 0 0", at(tip - hinge)),
    )  # fmt: skip
    model = rm.load(text)
    assert rm.limb_joints(model) == ("ear_j",)
    found = rm.actuation(model)
    (row,) = found.joints
    rod, arm, gap = (float(np.linalg.norm(x)) for x in (pin - tip, pin, hinge))
    length = float(np.linalg.norm(tip - hinge))

    def spread(angle: float) -> np.ndarray:
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        return hinge + turn @ (tip - hinge)

    assert {each.kind for each in row.dead_points} == {"both rest"}
    for each in row.dead_points:  # rod and bucket are in line
        far = float(np.linalg.norm(spread(each.position)))
        assert min(abs(far - rod - arm), abs(far - abs(rod - arm))) < 1e-9
    assert gap + length > rod + arm
    angles = np.linspace(row.reach.lower, row.reach.upper, 2001)
    lines = np.array([spread(angle) - eye for angle in angles])
    arms = lines + eye - hinge
    levers = (arms[:, 0] * lines[:, 1] - arms[:, 1] * lines[:, 0]) / np.linalg.norm(lines, axis=1)
    (ratio,) = found.drives[0].ratios
    sign = 1.0 if ratio.low > 0.0 else -1.0
    ends = sorted([sign * ratio.low, sign * ratio.high])
    assert ends == pytest.approx([np.min(np.abs(levers)), np.max(np.abs(levers))], abs=1e-4)
    (cylinder,) = found.cylinders
    assert cylinder.dead_points == ()
    for held in (None, model.neutral()):
        reach = rm.joint_range(model, "cylinder", held)
        assert (reach.lower_by, reach.upper_by) == ("front", "front")
    assert "while its motors move on" not in str(found)


def test_a_limit_on_the_way_to_a_corner_is_that_of_the_joint_that_meets_it() -> None:
    """A double wishbone with a rack: the upper arm's limits end the lower arm's way on all sides.

    Edges of the box lie on the rack's own limits, which end no way along them.
    """
    arm = '<limit lower="-{0}" upper="{0}" effort="0" velocity="0"/>'
    text = robot(
        *(link(name) for name in ("lower", "upper", "upright", "rack")),
        texts.joint("lower", "base", "lower", "0 0.25 0.2", kind="revolute", axis="1 0 0",
                    more=arm.format(0.5)),
        texts.joint("upper", "base", "upper", "0 0.3 0.45", kind="revolute", axis="1 0 0",
                    more=arm.format(0.6)),
        texts.joint("ball", "lower", "upright", "0 0.4 -0.02", kind="spherical"),
        texts.joint("rack", "base", "rack", "-0.12 0.2 0.25", kind="prismatic", axis="0 1 0",
                    more=arm.format(0.08)),
        loop("top", "spherical", "upright", "upper", "-0.02 -0.05 0.29", "-0.02 0.3 0.02", more=""),
        loop("tie", "rod", "rack", "upright", to="-0.14 -0.03 0.06", more=""),
    )  # fmt: skip
    model = rm.load(text)
    ends = rm.joint_range(model, "lower")
    assert (ends.lower_by, ends.upper_by) == ("upper", "upper")
    assert -0.5 < ends.lower < -0.4
    assert 0.4 < ends.upper < 0.5
    (box,) = boxes(model)
    assert box.joints == ("lower", "rack")
    assert [cause for _, cause in box.lost_corners] == ["upper"] * 4


@pytest.mark.slow
def test_motors_that_rest_have_the_ratio_zero() -> None:
    """A spherical wrist of three legs, all angles right: pitch turns one motor, yaw another.

    Its hinges e0 and p0 turn about the axes of the motors m1 and, the other way, m2; nothing that
    is printed is rounding.
    """
    axes = ("1 0 0", "0 1 0", "0 0 1")
    parts = [link("eye")]
    for n in range(3):
        parts += [
            link(f"near{n}", ""), link(f"far{n}", ""),
            texts.joint(f"m{n}", "base", f"near{n}", kind="revolute", axis=axes[n],
                        more='<limit lower="-1" upper="1" effort="2" velocity="9"/>'),
            texts.joint(f"e{n}", f"near{n}", f"far{n}", axis=axes[(n + 1) % 3]),
        ]  # fmt: skip
        last = f'<axis xyz="{axes[(n + 2) % 3]}"/>'
        parts += (
            [loop(f"p{n}", "revolute", f"far{n}", "eye", more=last)] if n
            else [texts.joint("p0", "far0", "eye", axis=axes[2])]
        )  # fmt: skip
    model = rm.load(robot(*parts))
    assert rm.limb_joints(model) == ("m0", "e0", "p0")
    for joint, turning in (("e0", {"m1": 1.0, "m2": 0.0}), ("p0", {"m1": 0.0, "m2": 1.0})):
        (row,) = rm.actuation(model, rows=joint).joints
        for name, values in zip(row.actuators, row.ratios[row.line].T, strict=True):
            if turning[name]:
                assert values == pytest.approx(np.full(len(values), turning[name]), abs=1e-9)
            else:
                assert np.all(values == 0.0)
    assert "e-1" not in str(rm.actuation(model))
    (linkage,) = rm.validate(model).linkages
    assert {x for sweep in linkage.sweeps for x in sweep.held.values()} == {0.0}
