"""Motors of linkages: they move no neutral configuration, and open trees have them."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import mujoco
import numpy as np
import pytest
import texts
from numpy.typing import NDArray
from scipy.optimize import linprog
from texts import INERTIAL, coupling, link, loop, robot

import robomodel as rm

Floats: TypeAlias = NDArray[np.float64] | list[Any]
RATIO = -50.0


def foot(motor: str = "", independent: str = "", far: float = 0.0) -> str:
    """A foot that a crank moves by a rod, drawn open; ``motor``: of the foot or the crank.

    Limits leave out where it is drawn but for one end.
    """
    limit = '<limit lower="-2.4" upper="-0.6" effort="9" velocity="9"/><initial position="-0.6"/>'
    parts = [
        link("crank"), link("rod"), link("foot"),
        texts.joint("crank", "base", "crank", kind="revolute", axis="0 1 0", more=limit,
                    mark=None if not independent else independent == "crank"),
        texts.joint("rod", "crank", "rod", "0 0 0.3", axis="0 1 0",
                    mark=False if independent else None),
        texts.joint("foot", "base", "foot", "0.5 0 0", kind="revolute", axis="0 1 0", more=limit,
                    mark=None if not independent else independent == "foot"),
        loop("eye", "revolute", "rod", "foot", "0.5 0 0", f"{far} 0 0.32",
             more='<axis xyz="0 1 0"/>'),
    ]  # fmt: skip
    if motor:
        parts += [
            link("rotor", INERTIAL.replace("0.1 0.02 0", "0 0 0")),
            texts.joint("rotor", "base", "rotor", axis="0 1 0",
                        mark=None if not independent else independent == "rotor"),
            coupling("gear", {"rotor": 1.0, motor: -RATIO}, 0.3),
        ]  # fmt: skip
    return robot(*parts)


@pytest.mark.parametrize("far", [0.0, 0.02, -0.03])
@pytest.mark.parametrize("motor", ["foot", "crank"])
def test_a_motor_does_not_move_its_linkage(motor: str, far: float) -> None:
    """Whichever joints are independent, or nothing says which: within limits, and closed."""
    alone = rm.load(foot(far=far))
    known = alone.joint_positions(alone.neutral())
    assert all(-2.4 <= known[name] <= -0.6 for name in ("crank", "foot"))
    assert np.max(np.abs(alone.residual(alone.neutral()))) < 1e-9
    for independent in ("", "crank", "foot", "rotor"):
        model = rm.load(foot(motor, independent, far))
        found = model.joint_positions(model.neutral())
        for name, x in known.items():
            assert found[name] == pytest.approx(x, abs=1e-9), (independent, name)
        assert found["rotor"] == pytest.approx(0.3 + RATIO * float(found[motor]))


@pytest.mark.parametrize("independent", ["", "crank", "foot", "rotor"])
def test_a_motor_says_where_its_linkage_starts(independent: str) -> None:
    """If the file has a position of it alone: as one of the joint that it turns would."""
    begin = '<initial position="-0.6"/>'
    at = RATIO * -0.9 + 0.3
    text = foot("crank", independent).replace(begin, "")
    turned, moved = (
        text.replace(f'<child link="{name}"/>', f'<child link="{name}"/><initial position="{x}"/>')
        for name, x in (("rotor", at), ("crank", -0.9))
    )
    one, other = (each.joint_positions(each.neutral()) for each in map(rm.load, (turned, moved)))
    for name, x in other.items():
        assert one[name] == pytest.approx(x, abs=1e-9), name


def transmission(name: str, joint: str, reduction: float, motor: str = "") -> str:
    """A motor on a joint behind a reduction."""
    return (
        f'<transmission name="{name}"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="{joint}"/><actuator name="{name}"><mechanicalReduction>{reduction}'
        f"</mechanicalReduction>{motor}</actuator></transmission>"
    )


def limited(effort: float) -> str:
    return f'<limit lower="-1" upper="1" effort="{effort}" velocity="9"/>'


def written(model: rm.Model, write: Callable[..., object]) -> rm.Model:
    """What a writer makes of its open tree, read back."""
    stream = io.StringIO()
    write(model, stream, approximate=True)
    return rm.load(stream.getvalue())


WRITERS = [rm.write_urdf, rm.write_sdf, rm.write_usd, rm.write_mjcf]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("effort", "motors", "ends"),
    [
        (30.0, (), (-4.0, 4.0)),  # the follower's alone: -2 times its 2 N m
        # and the 5 N m of what it follows
        (30.0, (transmission("drive", "a", 2.0, '<motor effort="2.5"/>'),), (-9.0, 9.0)),
        (5.0, (transmission("drive", "a", 2.0),), (-9.0, 9.0)),  # its limit is that of its motor
    ],
)
def test_motors_of_followers_stay_in_open_trees(
    write: Callable[..., object],
    effort: float,
    motors: tuple[str, ...],
    ends: tuple[float, float],
) -> None:
    """A finger that turns by -2 times another one, behind a reduction of 3; by virtual work."""
    follows = limited(2.0) + '<mimic joint="a" multiplier="-2"/>'
    model = rm.load(robot(
        link("one"), link("two"),
        texts.joint("a", "base", "one", kind="revolute", more=limited(effort)),
        texts.joint("b", "one", "two", kind="revolute", more=follows),
        *motors, transmission("finger", "b", 3.0),
    ))  # fmt: skip
    tree = written(model, write)
    assert [each.name for each in tree.actuators] == [each.name for each in model.actuators]
    assert dict(tree.actuators[-1].terms) == {"a": -6.0}
    (row,) = rm.actuation(model).joints
    assert row.limits.effort == pytest.approx(ends[1])
    told = "bounds motors of its own alone; with those of joints that follow it gets 9 N m"
    assert (told in str(rm.actuation(model))) == (effort == 5.0)
    for robot_ in (model, tree):
        np.testing.assert_allclose(np.ravel(rm.torque_limits(robot_, robot_.neutral())), ends)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("write", WRITERS)
def test_motors_of_locked_joints_stay_beside_others(write: Callable[..., object]) -> None:
    """A hip has a motor of its own, a four-bar the rocker's, while its crank moves in the tree."""
    model = rm.load(robot(
        link("hip"), link("crank"), link("coupler"), link("rocker"),
        texts.joint("hip", "base", "hip", kind="revolute", more=limited(7.0)),
        texts.joint("crank", "hip", "crank", kind="revolute", more=limited(3.0)),
        texts.joint("coupler", "crank", "coupler", "0.5 0 0"),
        texts.joint("rocker", "hip", "rocker", "1.1 0 0", kind="revolute", more=limited(3.0)),
        texts.CLOSING, transmission("upper", "hip", 2.0), transmission("lower", "rocker", 5.0),
    ))  # fmt: skip
    assert rm.limb_joints(model) == ("hip", "crank")
    tree = written(model, write)
    assert [each.terms[0][0] for each in tree.actuators] == ["hip", "crank"]
    if write is not rm.write_mjcf:  # one motor with what its joint has everywhere
        crank = next(x.limits for x in rm.actuation(model).joints if x.joint == "crank")
        assert tree.actuators[1].effort_limit == pytest.approx(crank.effort)


FINGER = '<mimic joint="a" multiplier="-0.5"/>'


def test_the_limit_of_a_follower_bounds_its_motor() -> None:
    """As MuJoCo clamps it: 8 N m of the first joint, and half of 6 N m of what follows it."""
    strong = '<motor effort="20"/>'
    model = rm.load(robot(
        link("one"), link("two"),
        texts.joint("a", "base", "one", kind="revolute", axis="0 1 0", more=limited(8.0)),
        texts.joint("b", "one", "two", kind="revolute", axis="0 1 0", more=limited(6.0) + FINGER),
        transmission("m", "a", 1.0, strong), transmission("n", "b", 1.0, strong),
    ))  # fmt: skip
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    simulated = mujoco.MjModel.from_xml_string(stream.getvalue())
    data = mujoco.MjData(simulated)
    data.ctrl[:] = [20.0, -20.0]
    mujoco.mj_forward(simulated, data)
    most = float(data.qfrc_actuator @ [1.0, -0.5])
    assert most == pytest.approx(11.0)
    (row,) = rm.actuation(model).joints
    assert row.limits.effort == pytest.approx(most)


def test_the_limit_of_a_joint_bounds_the_motor_of_its_rotor() -> None:
    """A rotor with a joint of its own, whose motor would give 30 N m."""
    model = rm.load(robot(
        link("one"), link("rotor", INERTIAL.replace("0.1 0.02 0", "0 0 0")),
        texts.joint("a", "base", "one", kind="revolute", more=limited(8.0)),
        texts.joint("spin", "base", "rotor"), coupling("gear", {"a": 10.0, "spin": -1.0}),
        transmission("m", "spin", 1.0, '<motor effort="3"/>'),
    ))  # fmt: skip
    (row,) = rm.actuation(model, ["a"]).joints
    assert (row.effort, row.limits.effort) == pytest.approx((30.0, 8.0))


@pytest.mark.parametrize(
    ("write", "kind"),
    # URDF's trees have a motor on each joint of a differential
    [(x, "simple") for x in WRITERS] + [(x, "differential") for x in WRITERS[1:]],
)
def test_ratios_of_rotors_stand_for_reductions_in_open_trees(
    write: Callable[..., object], kind: str
) -> None:
    """A rotor's ratio is its motor's reduction where the transmission has none."""
    ends = ["a"] if kind == "simple" else ["a", "b"]
    motors = "".join(
        f'<actuator name="m_{name}"><rotor inertia="1e-4" ratio="10"/><motor effort="3"/>'
        "</actuator>" for name in ends
    )  # fmt: skip
    model = rm.load(robot(
        link("one"), link("two"),
        texts.joint("a", "base", "one", kind="revolute", axis="0 1 0", more=limited(50.0)),
        texts.joint("b", "one", "two", kind="revolute", axis="1 0 0", more=limited(50.0)),
        f'<transmission name="t"><type>transmission_interface/{kind.title()}Transmission</type>',
        *(f'<joint name="{name}"/>' for name in ends), motors, "</transmission>",
    ))  # fmt: skip
    q = model.neutral()
    tree = written(model, write)
    np.testing.assert_allclose(rm.actuator_map(tree, q), rm.actuator_map(model, q))
    np.testing.assert_allclose(rm.torque_limits(tree, q), rm.torque_limits(model, q))


def clamped(text: str, model: rm.Model, q: Floats, controls: Floats) -> Floats:
    """What MuJoCo's actuators give the independent coordinates (n, nv) at controls (n, nu)."""
    simulated = mujoco.MjModel.from_xml_string(text)
    data, rows = mujoco.MjData(simulated), []
    at = [simulated.joint(name) for name in model.joint_names]
    for joint, position in zip(at, model.joint_positions(q).values(), strict=True):
        data.qpos[joint.qposadr[0]] = position
    for control in controls:
        data.ctrl[:] = control
        mujoco.mj_forward(simulated, data)
        rows.append(data.qfrc_actuator[[joint.dofadr[0] for joint in at]])
    return np.array(rows) @ model.constraint_jacobian(q)


ON_FIVE_BAR = (  # joint, gear, effort of its motors
    [("J1", 5.0, 4.0), ("J2", 1.0, 9.0)],
    [("J1", -5.0, 4.0), ("J4", 3.0, 6.0)],
    [("J1", 5.0, 4.0), ("J1", -1.0, 3.0), ("J3", 2.0, 9.0)],
    [("J1", 5.0, 4.0), ("J2", 1.0, 9.0), ("J4", -1.0, 5.0), ("J4", 2.0, 5.0)],
)
EFFORTS = {"J1": 10.0, "J2": 20.0, "J3": 7.0, "J4": 8.0}


@pytest.mark.slow
@pytest.mark.parametrize("motors", ON_FIVE_BAR)
def test_joints_of_linkages_limit_their_motors(motors: list[tuple[str, float, float]]) -> None:
    """At ratios that vary, in all formats: linear programmes, and MuJoCo."""
    text = rm.robots.path("five_bar").read_text()
    for name, effort in EFFORTS.items():
        begin = text.index(f'<joint name="{name}"')
        end = text.index("<axis", begin)
        text = f'{text[:end]}<limit effort="{effort}" velocity="9"/>{text[end:]}'
    parts = [
        transmission(f"m{n}", at, gear, f'<motor effort="{effort}" velocity="9"/>')
        for n, (at, gear, effort) in enumerate(motors)
    ]
    model = rm.load(text.replace("</robot>", "".join(parts) + "</robot>"))
    stream, rng = io.StringIO(), np.random.default_rng(0)
    rm.write_mjcf(model, stream)
    written, q = stream.getvalue(), model.random_configuration(rng)
    b = rm.actuator_map(model, q)
    low = np.array([effort for *_, effort in motors])
    held = [[gear * (name == at) for at, gear, _ in motors] for name in EFFORTS]
    matrix, ends = np.concatenate([held, np.negative(held)]), [*EFFORTS.values()] * 2
    box = np.column_stack([-low, low])

    def most(way: Floats, rows: Floats, right: Floats) -> float:
        found = linprog(-way, matrix, ends, rows, right, bounds=box)
        return float(-found.fun)

    alone = [[sign * most(sign * b[i], b[[1 - i]], [0.0]) for i in (0, 1)] for sign in (-1, 1)]
    for options in ({}, {"backend": "numpy"}):
        np.testing.assert_allclose(rm.torque_limits(model, q, **options), alone, atol=1e-9)
    for write in (rm.write_mjcf, rm.write_urdf, rm.write_sdf, rm.write_usd):
        stream = io.StringIO()
        write(model, stream)
        again = rm.load(stream.getvalue())
        there = again.configuration(model.joint_positions(q))
        np.testing.assert_allclose(rm.torque_limits(again, there), alone, atol=1e-6)
    corners = rm.torque_polytope(model, q, ["J1", "J2"])
    signs = np.array(list(product((-1.0, 1.0), repeat=len(motors))))
    simulated = clamped(written, model, q, 99.0 * signs)
    for way in rng.normal(size=(20, 2)):
        expected = np.max(simulated @ way)
        assert np.max(corners @ way) == pytest.approx(expected, rel=1e-9)
        assert most(way @ b, np.zeros((1, len(motors))), [0.0]) == pytest.approx(expected)
    required = 99.0 * rng.normal(size=(5, 2))
    for backend in ("numpy", "compiled"):
        given, u, lost = rm.dynamics.saturate(model, q, np.zeros(2), required, backend=backend)
        expected = required - (u + lost) @ b.T + clamped(written, model, q, u)
        np.testing.assert_allclose(given, expected, atol=1e-6)


@pytest.mark.parametrize("rocker", [False, True])
def test_motors_of_rods_of_four_bars_are_limited_by_their_joints(rocker: bool) -> None:
    """Rows of ``actuation``, rotors, and what MuJoCo's motor at the rotor gives."""
    rotor = '<limit effort="10" velocity="9"/><rotor inertia="1e-4" ratio="5"/><motor effort="4"/>'
    text = texts.four_bar(marks=(not rocker, False, rocker))
    at = text.index('<joint name="j_crank"')
    at = text.index("</joint>", at)
    model = rm.load(text[:at] + rotor + text[at:])
    stream, q = io.StringIO(), model.random_configuration(1)
    rm.write_mjcf(model, stream)
    (row,) = (x for x in rm.actuation(model).joints if x.joint == "j_crank")
    assert row.limits.effort == pytest.approx(10.0)
    assert row.span(row.torque) == pytest.approx((10.0, 10.0))
    ratio = abs(float(rm.actuator_map(model, q)[0, 0])) / 5.0
    assert rm.torque_limits(model, q)[1] == pytest.approx(10.0 * ratio)
    assert clamped(stream.getvalue(), model, q, np.array([[99.0]])) == pytest.approx(10.0 * ratio)
    again = rm.load(stream.getvalue())
    there = again.configuration(model.joint_positions(q))
    assert rm.torque_limits(again, there)[1] == pytest.approx(10.0 * ratio)


def geared(ratio: float) -> rm.Model:
    """Joints of 10 N m: of a motor's rotor, and of one without, whose follower has a motor."""
    limit = '<limit lower="-9" upper="9" effort="{}" velocity="9"/>'
    motor = '<motor effort="4" velocity="99"/>'
    return rm.load(robot(
        *map(link, "abc"),
        texts.joint("j", "base", "a", kind="revolute", mark=True,
                    more=limit.format(10) + f'<rotor inertia="1e-4" ratio="{ratio}"/>' + motor),
        texts.joint("k", "a", "b", "0.3 0 0", kind="revolute", mark=True, more=limit.format(10)),
        texts.joint("f", "b", "c", "0.3 0 0", kind="revolute", mark=False,
                    more=limit.format(0) + motor),
        coupling("gear", {"f": 1.0, "k": -ratio}),
    ))  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"backend": "numpy"}])
def test_limits_of_joints_bind_at_ratios_that_are_arguments(options: dict[str, Any]) -> None:
    """At which they bind, and no others: a motor of 4 N m, and limits of 10 N m."""
    for own, other in ((2.0, 5.0), (5.0, 2.0), (-2.0, 5.0)):
        model, numbers = geared(own), rm.parameters(geared(other), geometry=True)
        names = ("j_rotor.j", "gear.k")
        changed = {name: numbers[name] for name in names}
        most = min(10.0, 4.0 * other)
        q, more = model.neutral(), {**options, "parameters": changed}
        np.testing.assert_allclose(rm.torque_limits(model, q, **more), [[-most] * 2, [most] * 2])
        corners = rm.torque_polytope(model, q, ["j", "k"], **more)
        np.testing.assert_allclose(np.sort(corners, axis=0).T, [[-most, -most, most, most]] * 2)
        given, *_ = rm.dynamics.saturate(model, q, np.zeros(2), [99.0, -99.0], **more)
        np.testing.assert_allclose(given, [most, -most])
        rows = {name: np.array([own, other]) * np.sign(x) for name, x in changed.items()}
        batch = rm.torque_limits(model, q, **options, parameters=rows)[1]
        np.testing.assert_allclose(batch, [[min(10.0, 4.0 * abs(own))] * 2, [most] * 2])


@pytest.mark.parametrize("effort", ["", 'effort="4"'])
def test_limits_in_single_precision(effort: str) -> None:
    """A joint with a limit, and one whose motor may have none."""
    motor = f'<motor {effort} torque_constant="0.1" velocity="99"/>'
    model = rm.load(robot(
        link("a"), link("b"),
        texts.joint("hip", "base", "a", kind="revolute", more=limited(10)),
        texts.joint("knee", "a", "b", "0.3 0 0", more='<rotor inertia="1e-4" ratio="5"/>' + motor),
    ))  # fmt: skip
    most = [10.0, 20.0 if effort else np.inf]
    for dtype in ("float32", "float64"):
        kernel = rm.compile(model, "torque_limits", dtype=dtype)
        least, greatest, doubt = kernel(*np.zeros((2, 2), dtype))
        assert greatest.dtype == dtype
        np.testing.assert_array_equal([least, greatest], [np.negative(most), most])
        assert doubt == 0.0


def test_armature_makes_no_motor_of_a_joint_without_one() -> None:
    """URDF's open trees have it in actuators, which Drake reads; other files have none."""
    more = '<armature value="0.02"/>'
    model = rm.load(robot(
        link("a"), link("b"), link("c"),
        texts.joint("hip", "base", "a", kind="revolute", more=limited(10)),
        texts.joint("knee", "a", "b", "0.3 0 0", kind="revolute", more=limited(5) + more),
        texts.joint("ankle", "b", "c", "0.3 0 0", kind="revolute", more=limited(0) + more),
        transmission("t", "hip", 5),
    ))  # fmt: skip
    q = model.random_configuration(0)
    for write in (rm.write_urdf, rm.write_sdf, rm.write_mjcf, rm.write_usd):
        tree = written(model, write)
        for each in (tree, written(tree, write)):
            assert [x.terms for x in each.actuators] == [x.terms for x in model.actuators]
            np.testing.assert_allclose(rm.crba(each, q), rm.crba(model, q), atol=1e-12)
            assert [x.effort_limit for x in each.joints] == [10.0, 5.0, 0.0]
    stream = io.StringIO()
    rm.write_urdf(model, stream, approximate=True)
    text = stream.getvalue()
    assert text.count("drake:rotor_inertia") == 2
    with pytest.raises(rm.DescriptionError, match="effort is 0, and so no motor"):
        rm.load(text.replace("<drake:rotor_inertia", "<drake:other"))
