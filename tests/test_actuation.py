"""Actuators: which there are, where they push, what they can do through gears and linkages."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from cases import few
from scipy.optimize import linprog
from shipped_robots import MOTOR, motored
from texts import coupling, four_bar, joint, link, robot

import robomodel as rm
from robomodel.arrays import Array
from robomodel.dynamics.actuators import inverse
from robomodel.dynamics.actuators.maps import limits
from robomodel.dynamics.actuators.simplex import greatest_alone

LIMIT = '<limit lower="-1" upper="1" effort="{effort}" velocity="{velocity}"/>'
CURVE = '<motor stall_torque="3" no_load_speed="20"/>'
ROTOR = '<rotor inertia="1e-4" ratio="10"/>'


def limited(effort: float, velocity: float = 5.0) -> str:
    return LIMIT.format(effort=effort, velocity=velocity)


def differential(motor: str = MOTOR, rotors: bool = True) -> str:
    rotor = '<rotor inertia="1e-4"/>' if rotors else ""
    return robot(
        link("a"), link("b"),
        joint("pitch", "base", "a", axis="0 1 0"), joint("roll", "a", "b", axis="1 0 0"),
        '<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>',
        *(
            f'<joint name="{name}"><role>joint{n}</role><mechanicalReduction>1'
            "</mechanicalReduction></joint>"
            for n, name in ((1, "pitch"), (2, "roll"))
        ),
        *(
            f'<actuator name="{name}"><role>actuator{n}</role><mechanicalReduction>8'
            f"</mechanicalReduction>{rotor}{motor}</actuator>"
            for n, name in ((1, "left"), (2, "right"))
        ),
        "</transmission>",
    )  # fmt: skip


def test_joints_with_rotors_or_limits_are_driven() -> None:
    text = robot(
        link("a"), link("b"), link("c"), link("d"),
        joint("geared", "base", "a", kind="revolute", more=limited(30) + ROTOR),
        joint("direct", "a", "b", kind="revolute", more=limited(7)),
        joint("free", "b", "c"),
        joint("ball", "c", "d", kind="spherical"),
    )  # fmt: skip
    model = rm.load(text, floating_base=True)
    first, second = model.actuators
    assert (first.name, first.joint) == ("geared", "geared_rotor")
    assert (first.effort_limit, first.velocity_limit) == (3.0, 50.0)
    assert (second.name, second.joint, second.effort_limit) == ("direct", "direct", 7.0)
    q, v = model.neutral(), np.ones(model.nv)
    b = rm.actuator_map(model, q)
    assert b.shape == (model.nv, 2)
    assert b[model.dof_names.index("geared"), 0] == pytest.approx(10.0)
    assert b[model.dof_names.index("direct"), 1] == 1.0
    assert np.count_nonzero(b) == 2
    rates = model.joint_velocities(q, v)
    np.testing.assert_allclose(b.T @ v, [rates["geared_rotor"], rates["direct"]])
    lower, upper = rm.torque_limits(model, q)
    at = model.dof_names.index("geared")
    assert (lower[at], upper[at]) == (-30.0, 30.0)
    assert upper[0] == 0.0
    assert pickle.loads(pickle.dumps(model)).actuators == model.actuators


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", few(rm.robots.names(), "five_bar", "mini_cheetah", "tello"))
def test_shipped_robots_power(name: str) -> None:
    """Bᵀ v are rates of the joints at which motors push, or of what they drive."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v = rng.standard_normal((3, model.nv))
    b = rm.actuator_map(model, q)
    assert b.shape == (3, model.nv, len(model.actuators))
    rates = model.joint_velocities(q, v)
    for n, actuator in enumerate(model.actuators):
        turned = np.einsum("bi,bi->b", b[:, :, n], v)
        np.testing.assert_allclose(turned, rates[actuator.joint], rtol=1e-10, atol=1e-12)
        sums = sum(k * rates[j] for j, k in actuator.terms)
        if actuator.joint not in dict(actuator.terms):
            np.testing.assert_allclose(np.abs(turned), np.abs(sums), rtol=1e-10, atol=1e-12)
    if name == "mini_cheetah":
        assert len(model.actuators) == 12
    if model.actuators:
        u = rng.standard_normal((3, len(model.actuators)))
        tau = np.einsum("bij,bj->bi", b, u)
        back = rm.actuator_forces(model, q, tau)
        np.testing.assert_allclose(np.einsum("bij,bj->bi", b, back), tau, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rm.actuator_map(model, q, backend="numpy"), b, atol=1e-12)


@pytest.mark.parametrize("rotors", [True, False])
def test_a_differential(rotors: bool) -> None:
    """Each motor turns 8 (pitch ± roll); alone either axis gets both of them."""
    model = rm.load(differential(rotors=rotors))
    assert [a.name for a in model.actuators] == ["left", "right"]
    q = model.neutral()
    np.testing.assert_allclose(rm.actuator_map(model, q), [[8, 8], [8, -8]])
    lower, upper = rm.torque_limits(model, q)
    np.testing.assert_allclose(upper, 32.0)
    np.testing.assert_allclose(lower, -32.0)
    corners = rm.torque_polytope(model, q, ["pitch", "roll"])
    assert {tuple(np.round(c, 9)) for c in corners} == {(32, 0), (0, 32), (-32, 0), (0, -32)}
    along, next_ = np.roll(corners, -1, axis=0) - corners, np.roll(corners, -2, axis=0) - corners
    assert np.all(along[:, 0] * next_[:, 1] > along[:, 1] * next_[:, 0])
    np.testing.assert_allclose(rm.torque_polytope(model, q, "roll"), [[-32.0], [32.0]])
    np.testing.assert_allclose(rm.actuator_forces(model, q, [8.0, 0.0]), [0.5, 0.5])


def test_limits_of_a_differential_without_motors_are_the_joints_behind_the_ratio() -> None:
    bounds = limited(16.0, 2.0)
    text = differential(motor="", rotors=False)
    text = text.replace("</joint>\n", f"{bounds}</joint>\n").replace('"continuous"', '"revolute"')
    model = rm.load(text)
    for actuator in model.actuators:
        assert dict(actuator.terms)["pitch"] == 8.0
        assert (actuator.effort_limit, actuator.velocity_limit) == (2.0, 16.0)


def test_where_no_motor_is_there_is_no_force() -> None:
    model = rm.load(robot(link("a"), link("b"), joint("one", "base", "a", more=MOTOR),
                          joint("two", "a", "b")))  # fmt: skip
    assert [a.name for a in model.actuators] == ["one"]
    u = rm.actuator_forces(model, model.neutral(), [[1.0, 0.0], [1.0, 0.5]])
    np.testing.assert_allclose(u, [[1.0], [math.nan]])
    bare = rm.load(four_bar())
    assert rm.actuator_map(bare, bare.neutral()).shape == (1, 0)
    np.testing.assert_array_equal(rm.torque_limits(bare, bare.neutral()), [[0.0], [0.0]])


def linear_programme(b: Array, i: int, sign: float, lower: Array, upper: Array) -> float:
    """The greatest (1) or least (-1) torque of coordinate i alone, by another solver."""
    found = linprog(
        [*np.zeros(b.shape[1]), -sign], A_eq=np.c_[b, -np.eye(len(b))[i]], b_eq=np.zeros(len(b)),
        bounds=[*zip(lower, upper, strict=True), (None, None)], method="highs",
    )  # fmt: skip
    if found.status == 3:
        return sign * math.inf
    return float(found.x[-1]) if found.status == 0 else 0.0


@pytest.mark.parametrize("least", [0.5, -0.5, -3.0])
def test_a_motor_that_must_push_lets_no_other_coordinate_alone(least: float) -> None:
    """The second motor pushes both coordinates; against linear programmes."""
    b = np.array([[1.0, 1.0], [0.0, 1.0]])
    lower, upper = np.array([-1.0, least]), np.array([1.0, least + 2.0])
    got = np.array(limits(b[None], lower[None], upper[None]))[:, 0]
    for i in range(2):
        wanted = [linear_programme(b, i, sign, lower, upper) for sign in (-1.0, 1.0)]
        np.testing.assert_allclose(got[:, i], wanted, atol=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_limits_with_more_motors_than_coordinates_are_those_of_linear_programmes(rows: int) -> None:
    """Random maps: generic, of small integers, of less rank, with equal and opposite motors, in
    unlike units; some motors without limits, some that must push, some without any force.
    """
    rng = np.random.default_rng(rows)
    for trial in range(30):
        nu = int(rng.integers(rows, rows + 4))
        b = rng.standard_normal((6, rows, nu))
        if trial % 5 == 1:
            b = np.round(b)
        elif trial % 5 == 2:
            b[:, -1] = 3.0 * b[:, 0]
        elif trial % 5 == 3:
            b[:, :, -1] = -b[:, :, 0]
        elif trial % 5 == 4:
            b *= 10.0 ** rng.integers(-3, 4, (rows, 1)) * 10.0 ** rng.integers(-2, 3, nu)
        lower, upper = -rng.choice([0.0, 0.5, 2.0], (6, nu)), rng.choice([0.0, 1.0, 3.0], (6, nu))
        if trial % 3 == 1:
            lower[rng.random((6, nu)) < 0.2], upper[rng.random((6, nu)) < 0.2] = -np.inf, np.inf
        elif trial % 3 == 2:
            lower[rng.random((6, nu)) < 0.2] = 0.1
            upper = np.maximum(lower, upper)
        place = rng.integers(0, rows, 6)
        got = greatest_alone(b, place, lower, upper)
        wanted = [
            linear_programme(*x) for x in zip(b, place, np.ones(6), lower, upper, strict=True)
        ]
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_torque_speed_curves() -> None:
    model = rm.load(robot(link("a"), joint("j", "base", "a", more=CURVE)))
    lower, upper = rm.torque_limits(
        model, np.zeros((5, 1)), [[0.0], [5.0], [20.0], [30.0], [-10.0]]
    )
    np.testing.assert_allclose(upper[:, 0], [3.0, 2.25, 0.0, 0.0, 3.0])
    np.testing.assert_allclose(lower[:, 0], [-3.0, -3.0, -3.0, -3.0, -1.5])
    geared = rm.load(robot(link("a"), joint("j", "base", "a", more=CURVE + ROTOR)))
    _, upper = rm.torque_limits(geared, [0.0], [1.0])
    assert upper[0] == pytest.approx(30.0 * 0.5)
    flat = rm.load(robot(link("a"), joint("j", "base", "a", more=MOTOR)))
    lower, upper = rm.torque_limits(flat, [0.0], [50.0])
    assert (lower[0], upper[0]) == (-2.0, 0.0)


def test_a_dc_motor() -> None:
    dc = '<motor torque_constant="0.1" resistance="0.5" voltage="24" current="20"/>'
    model = rm.load(robot(link("a"), joint("j", "base", "a", more=dc)))
    (actuator,) = model.actuators
    assert actuator.stall_torque == pytest.approx(4.8)
    assert actuator.no_load_speed == pytest.approx(240.0)
    assert actuator.effort_limit == pytest.approx(2.0)
    np.testing.assert_allclose(rm.dynamics.copper_loss(model, [[1.0], [2.0]]), [[50.0], [200.0]])
    plain = rm.load(robot(link("a"), joint("j", "base", "a", more=MOTOR)))
    assert np.isnan(rm.dynamics.copper_loss(plain, [1.0])).all()


def test_a_simple_transmission_without_a_rotor_pushes_the_joint() -> None:
    text = robot(
        link("a"), joint("j", "base", "a"),
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="j"/><actuator name="m"><mechanicalReduction>-9</mechanicalReduction>'
        f"{MOTOR}</actuator></transmission>",
    )  # fmt: skip
    model = rm.load(text)
    (actuator,) = model.actuators
    assert (actuator.name, actuator.joint, actuator.terms) == ("m", "j", (("j", -9.0),))
    assert (actuator.effort_limit, actuator.velocity_limit) == (2.0, 40.0)
    assert rm.actuator_map(model, [0.0]) == [[-9.0]]
    assert rm.torque_limits(model, [0.0], [-40.0 / 9.0 + 0.1])[1] == [18.0]


@pytest.mark.slow
def test_polytopes_against_linear_programmes() -> None:
    """Tello's knee and ankle, five bars, a redundant drive: support functions at random states."""
    motors = {
        f"{side}-{name}": effort
        for side in ("left", "right")
        for name, effort in (
            ("thigh-to-knee-ankle-rotor-1", 1.5),
            ("thigh-to-knee-ankle-rotor-2", 2.0),
            ("hip-clamp-to-hip-rotor-1", 1.0),
            ("hip-clamp-to-hip-rotor-2", 1.0),
        )
    } | {"torso-to-left-hip-clamp": 1.0, "torso-to-right-hip-clamp": 1.0}
    said = [f'<joint name="{n}"><motor effort="{e}"/></joint>' for n, e in motors.items()]
    efforts = f'<robot name="x">{"".join(said)}</robot>'
    chosen = ["left-thigh-to-shin", "left-shin-to-foot"]
    model = rm.load(rm.robots.path("tello"), extend=efforts, independent=chosen)
    rng = np.random.default_rng(0)
    at = [model.dof_names.index(name) for name in chosen]
    for _ in range(4):
        q = model.random_configuration(rng)
        b = rm.actuator_map(model, q)
        corners = rm.torque_polytope(model, q, chosen)
        most = np.array([a.effort_limit for a in model.actuators])
        for _ in range(6):
            direction = rng.standard_normal(2)
            others = [i for i in range(model.nv) if i not in at]
            found = linprog(-direction @ b[at], A_eq=b[others], b_eq=np.zeros(len(others)),
                            bounds=list(zip(-most, most, strict=True)))  # fmt: skip
            assert -found.fun == pytest.approx((corners @ direction).max(), rel=1e-7)
        lower, upper = rm.torque_limits(model, q)
        alone = linprog(np.r_[np.zeros(len(most)), -1.0],
                        A_eq=np.c_[b, -np.eye(model.nv)[:, at[0]]], b_eq=np.zeros(model.nv),
                        bounds=[*zip(-most, most, strict=True), (None, None)])  # fmt: skip
        assert upper[at[0]] == pytest.approx(-alone.fun, rel=1e-7)
        assert lower[at[0]] == pytest.approx(-upper[at[0]], rel=1e-9)


def test_redundant_motors() -> None:
    """Two motors on one joint: the second is another transmission's."""
    one = (
        '<transmission name="{n}"><type>SimpleTransmission</type><joint name="j"/><actuator '
        'name="{n}"><mechanicalReduction>1</mechanicalReduction><motor effort="{e}"/></actuator>'
        "</transmission>"
    )
    model = rm.load(robot(link("a"), joint("j", "base", "a"), one.format(n="m1", e=1),
                          one.format(n="m2", e=3)))  # fmt: skip
    np.testing.assert_allclose(rm.actuator_forces(model, [0.0], [2.0]), [1.0, 1.0])
    lower, upper = rm.torque_limits(model, [0.0])
    assert (lower[0], upper[0]) == (pytest.approx(-4.0), pytest.approx(4.0))
    np.testing.assert_allclose(rm.torque_polytope(model, [0.0], "j"), [[-4.0], [4.0]])


@pytest.mark.parametrize("beside", [0, 1])
def test_polytopes_while_another_joint_has_motors_that_push_one_way(beside: int) -> None:
    """Two of them give it nothing only where each does: a set of motors' forces that is flat."""
    one = (
        '<transmission name="{n}"><type>SimpleTransmission</type><joint name="{j}"/><actuator '
        'name="{n}"><mechanicalReduction>{r}</mechanicalReduction><motor {e}/></actuator>'
        "</transmission>"
    )
    drives = [one.format(n=f"m{r}", j="j", r=r, e='effort="4" effort_lower="0"') for r in (2, 3)]
    others = [one.format(n=f"k{n}", j="k", r=5, e='effort="2"') for n in range(1 + beside)]
    model = rm.load(robot(link("a"), link("c"), joint("j", "base", "a"), joint("k", "a", "c"),
                          *drives, *others))  # fmt: skip
    most = 10.0 * len(others)
    np.testing.assert_allclose(rm.torque_polytope(model, [0.0, 0.0], "k"), [[-most], [most]])
    np.testing.assert_allclose(
        rm.torque_polytope(model, [0.0, 0.0], "j"), [[0.0], [20.0]], atol=1e-12
    )


@pytest.mark.parametrize(
    ("motor", "why"),
    [
        ('<motor stall_torque="3"/>', "no no_load_speed"),
        ('<motor no_load_speed="3"/>', "no stall_torque"),
        ('<motor effort="-1"/>', "not negative"),
            ('<motor velocity="0"/>', "positive"),
        ('<motor voltage="24"/>', "torque_constant"),
        ('<motor current="3"/>', "torque_constant"),
        ('<motor efort="1"/>', "efort"),
        ('<motor torque_constant="1" resistance="1" voltage="9" stall_torque="3" '
         'no_load_speed="2"/>', "keep one"),
    ],
)  # fmt: skip
def test_bad_motors(motor: str, why: str) -> None:
    with pytest.raises(rm.DescriptionError, match=why) as error:
        rm.load(robot(link("a"), joint("j", "base", "a", more=motor)), strict=True)
    assert error.value.line is not None


def test_motors_without_limit_drive_without_limit() -> None:
    model = rm.load(differential(motor=""))
    assert np.isinf(rm.torque_limits(model, model.neutral())[1]).all()


def test_each_state_has_its_polytope() -> None:
    model = rm.load(differential())
    assert len(rm.torque_polytope(model, np.zeros((3, model.nq)), ["pitch"])) == 3


def test_polytopes_of_batches_of_speeds() -> None:
    """With several leading axes, of empty batches, and of states that are no numbers."""
    model = rm.load(differential(CURVE))
    rng = np.random.default_rng(0)
    q, v = rng.standard_normal((3, 2)), rng.standard_normal((2, 1, 2))
    found = rm.torque_polytope(model, q, ["pitch", "roll"], v)
    assert len(found) == 6
    for n, (i, j) in enumerate(np.ndindex(2, 3)):
        alone = rm.torque_polytope(model, q[j], ["pitch", "roll"], v[i, 0])
        np.testing.assert_allclose(found[n], alone, atol=1e-12)
    assert rm.torque_polytope(model, np.zeros((4, 0, 2)), "pitch", [1.0, 0.0]) == []
    assert rm.torque_polytope(model, np.zeros((0, 2)), "pitch") == []
    lost = [0.0, np.nan]
    assert np.isnan(rm.torque_polytope(model, [0.0, 0.0], "pitch", lost)).all()
    assert np.isnan(rm.torque_limits(model, [0.0, 0.0], lost)).all()
    single = rm.load(robot(link("a"), joint("j", "base", "a", kind="revolute", more=limited(3))))
    assert np.isnan(rm.torque_limits(single, [0.0], [np.nan])).all()
    speeds = np.array([[[np.nan], [1.0]]])
    with np.errstate(invalid="ignore"):
        results = rm.dynamics.saturate(single, [0.0], speeds, [9.0])
    for result in results:
        assert np.isnan(result).tolist() == [[[True], [False]]]


@pytest.mark.parametrize("text", [differential(), differential(CURVE, rotors=False)])
def test_written_and_read_back(text: str, tmp_path) -> None:
    model = rm.load(text)
    rm.write_urdf(model, tmp_path / "out.urdf")
    again = rm.load(tmp_path / "out.urdf")
    q = model.neutral()
    np.testing.assert_allclose(rm.torque_limits(again, q), rm.torque_limits(model, q), rtol=1e-12)


@pytest.mark.parametrize("form", ["urdf", "sdf", "xml"])
def test_a_rotor_that_is_a_link_and_not_round_is_read_back(form: str, tmp_path) -> None:
    """Its motor's limits are those of the rotor's own shaft, in a file of any format."""
    text = robot(
        link("arm"), '''<link name="spinner"><inertial><mass value="0.1"/>
          <inertia ixx="1.5e-4" iyy="1e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/>
          </inertial></link>''',
        '<joint name="held" type="fixed"><parent link="base"/><child link="spinner"/></joint>',
        joint("j", "base", "arm", axis="0 0 1",
              more='<rotor link="spinner" ratio="9"/><motor effort="2"/>'),
    )  # fmt: skip
    model = rm.load(text)
    write = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "xml": rm.write_mjcf}[form]
    write(model, tmp_path / f"out.{form}")
    for each in (model, rm.load(tmp_path / f"out.{form}")):
        np.testing.assert_allclose(rm.torque_limits(each, each.neutral())[1], [18.0])


def test_a_rotor_drives_a_wheel_that_turns_alone() -> None:
    """A bevel gear looks like a rotor; what the file calls one, by ``<rotor>``, is the motor's."""
    rotor = '<rotor inertia="4e-5" ratio="9"/><motor effort="1.5" velocity="250"/>'
    text = robot(
        link("left_gear"), link("right_gear"), link("carrier"), link("foot"),
        joint("left", "base", "left_gear", axis="0 1 0", more=rotor),
        joint("right", "base", "right_gear", axis="0 1 0", more=rotor),
        joint("pitch", "base", "carrier", axis="0 1 0", mark=True),
        joint("roll", "carrier", "foot", axis="1 0 0", mark=True),
        coupling("sum", {"left": 1.0, "right": 1.0, "pitch": -2.0}),
        coupling("difference", {"left": 1.0, "right": -1.0, "roll": -2.0}),
    )  # fmt: skip
    model = rm.load(text)
    assert [(a.joint, a.effort_limit) for a in model.actuators] == [
        ("left_rotor", 1.5), ("right_rotor", 1.5),
    ]  # fmt: skip
    np.testing.assert_allclose(rm.actuator_map(model, model.neutral()), [[9, 9], [9, -9]])


CAD = (  # as drawn: neither round nor quite on its axis
    '<link name="motor"><inertial><origin xyz="1e-6 0 0"/><mass value="0.1"/>'
    '<inertia ixx="1.5e-4" iyy="1e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
DECLARED = (CAD, joint("held", "base", "motor", kind="fixed"))
SIMPLE = (
    '<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint '
    'name="j"/><actuator name="m"><mechanicalReduction>9</mechanicalReduction></actuator>'
    "</transmission>"
)


ROUND = (
    '<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="2e-4" '
    'ixy="0" ixz="0" iyz="0"/></inertial>'
)
WHEELS = (
    (  # a rotor on a wheel that looks like one turns with the arm as the wheel does
        "wheel_rotor", 12.0,
        joint("arm", "base", "arm", mark=True), link("a", ROUND), link("b", ROUND),
        joint("wheel", "base", "a"), joint("wheel_rotor", "base", "b"),
        coupling("belt", {"wheel": 1.0, "arm": -2.0}),
        coupling("gear", {"wheel": -6.0, "wheel_rotor": 1.0}),
    ),
    (  # a wheel that is a coordinate is no rotor of the arm's motor
        "arm", 0.5,
        joint("arm", "base", "arm", more=MOTOR), link("a", ROUND),
        joint("wheel", "base", "a", mark=True), coupling("belt", {"wheel": 1.0, "arm": -2.0}),
    ),
    (  # nor is a shaft that its coupling locks, whatever that is called
        "arm", 9.0,
        joint("arm", "base", "arm", mark=True), link("a", ROUND), link("b", ROUND),
        joint("shaft", "arm", "a"), joint("hand", "a", "b", more='<limit effort="1"/>'),
        coupling("arm_rotor", {"shaft": 1.0}), coupling("tie", {"hand": 1.0, "arm": -2.0}),
        SIMPLE.replace('"j"', '"arm"'),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("at", "ratio", "parts"), [(*each[:2], each[2:]) for each in WHEELS])
def test_which_wheels_are_rotors(at: str, ratio: float, parts: tuple[str, ...]) -> None:
    model = rm.load(robot(link("arm"), *parts))
    (actuator,) = model.actuators
    assert actuator.joint == at
    np.testing.assert_allclose(rm.actuator_map(model, model.neutral()), [[ratio]])


@pytest.mark.parametrize("transmission", [(), (SIMPLE,)])
def test_a_link_declared_a_rotor_is_the_motors_however_its_mass_lies(
    transmission: tuple[str, ...], tmp_path
) -> None:
    more = '<rotor link="motor" ratio="9"/>' + MOTOR
    text = robot(link("a"), *DECLARED, joint("j", "base", "a", more=more), *transmission)
    model = rm.load(text)
    assert [(a.joint, a.effort_limit) for a in model.actuators] == [("held", 2.0)]
    np.testing.assert_allclose(rm.actuator_map(model, model.neutral()), [[9.0]])
    if transmission:
        rm.write_mjcf(model, tmp_path / "out.xml")
        assert 'ctrlrange="-2 2"' in (tmp_path / "out.xml").read_text()


ROUND = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="1e-3" iyy="1e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial>'
)
WHEEL = '<rotor inertia="1e-4" ratio="5"/>'


@pytest.mark.parametrize(
    ("at_wheel", "at_load", "joints", "map_"),
    [
        (MOTOR, "", ["wheel"], [[3.0]]),
        (WHEEL + MOTOR, "", ["wheel_rotor"], [[15.0]]),
        (WHEEL, MOTOR, ["wheel_rotor"], [[15.0]]),
        (WHEEL, limited(30), ["wheel_rotor"], [[15.0]]),
    ],
)
def test_a_motor_at_a_wheel_that_drives_a_joint(
    at_wheel: str, at_load: str, joints: list[str], map_: list[list[float]]
) -> None:
    """One motor, at the shaft of its own, and none besides for the joint behind the wheel."""
    model = rm.load(
        robot(
            link("a"), link("round", ROUND),
            joint("j", "base", "a", kind="revolute" if "limit" in at_load else "continuous",
                  more=at_load, mark=True),
            joint("wheel", "base", "round", more=at_wheel),
            coupling("gear", {"wheel": 1.0, "j": -3.0}),
        )
    )  # fmt: skip
    assert [a.joint for a in model.actuators] == joints
    np.testing.assert_allclose(rm.actuator_map(model, model.neutral()), map_)
    assert np.isfinite(rm.torque_limits(model, model.neutral(), np.zeros(1))).all()


@pytest.mark.parametrize("motor", ['<motor effort="2.5"/>', '<limit effort="2.5"/>'])
@pytest.mark.parametrize("limit", ["", limited(12)])
def test_an_idler_of_a_belt_over_two_joints_is_no_motor(motor: str, limit: str) -> None:
    """The pulley at its other end is: the knee's, whose torque its turns for the knee's give."""
    model = rm.load(
        robot(
            link("thigh"), link("shank"), link("pulley", ROUND), link("rotor", ROUND),
            joint("hip", "base", "thigh", more=ROTOR + '<motor effort="3"/>', mark=True),
            joint("knee", "thigh", "shank", kind="revolute" if limit else "continuous",
                  more=limit, mark=True),
            joint("idler", "thigh", "pulley"), joint("shaft", "base", "rotor", more=motor),
            coupling("gear", {"idler": 1.0, "knee": -1.5}),
            coupling("belt", {"shaft": 1.0, "idler": 4.0, "hip": 4.0}),
        )
    )  # fmt: skip
    assert {a.joint: a.effort_limit for a in model.actuators} == {"hip_rotor": 3.0, "shaft": 2.5}
    q = model.neutral()
    rates = rm.actuator_velocities(model, q, np.eye(2))
    shaft = [a.joint for a in model.actuators].index("shaft")
    np.testing.assert_allclose(rates[:, shaft], [-4.0, -6.0])  # by hand, of hip and knee
    np.testing.assert_allclose(rm.torque_limits(model, q, np.zeros(2))[1][1], 2.5 * 6.0)


def test_a_wheel_whose_follower_has_the_motor_has_none() -> None:
    text = robot(
        link("a", ROUND), link("b", ROUND),
        joint("j", "base", "a", mark=True), joint("k", "base", "b", more=ROTOR + MOTOR),
        coupling("belt", {"k": 1.0, "j": -2.0}),
    )  # fmt: skip
    model = rm.load(text)
    assert [a.joint for a in model.actuators] == ["k_rotor"]
    np.testing.assert_allclose(rm.torque_limits(model, model.neutral(), [0.0])[1], 40.0)


def test_a_joint_that_mimics_another_zero_times_is_no_rotor() -> None:
    mimic = '<mimic joint="a" multiplier="0" offset="0.3"/>'
    held = joint("b", "a", "b", kind="revolute", more=mimic + limited(3))
    driving = joint("a", "base", "a", kind="revolute", more=limited(7))
    model = rm.load(robot(link("a"), link("b"), driving, held))
    (actuator,) = model.actuators
    assert (actuator.joint, actuator.effort_limit) == ("a", 7.0)
    assert model.joint_positions([0.5]) == {"a": 0.5, "b": 0.3}
    study = rm.actuation(model, ["a", "b"])
    assert [(each.joint, each.limits.lower, each.limits.upper) for each in study.joints] == [
        ("a", -1.0, 1.0),
        ("b", 0.3, 0.3),
    ]
    assert [each.joint for each in rm.actuation(model).joints] == ["a"]


def test_couplings_without_rotors_are_no_rotors() -> None:
    """Fingers that mimic each other are driven once, at the one that leads."""
    text = robot(
        link("left"), link("right"),
        joint("l", "base", "left", kind="revolute", more=limited(5), mark=True),
        joint("r", "base", "right", kind="revolute", more=limited(5)),
        coupling("mirror", {"l": 1.0, "r": 1.0}),
    )  # fmt: skip
    model = rm.load(text)
    assert [(a.name, a.joint) for a in model.actuators] == [("l", "l")]


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", few(["mini_cheetah", "tello", "mit_humanoid_leg"], "mini_cheetah"))
def test_reflected_inertia_is_what_rotors_add_to_the_mass_matrix(name: str) -> None:
    """Σ over actuators of I b bᵀ: the mass matrix' change when rotors' moments grow."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    found = rm.dynamics.reflected(model, q)
    b = rm.actuator_map(model, q)
    grown = rm.load(
        rm.robots.path(name),
        extend='<robot name="more">'
        + "".join(
            f'<joint name="{each.joint}"><armature value="{(2 - n % 2) / 4}"/></joint>'
            for n, each in enumerate(model.actuators)
        )
        + "</robot>",
    )
    more = np.array([0.25 if n % 2 else 0.5 for n in range(b.shape[-1])])
    added = rm.crba(grown, q) - rm.crba(model, q)
    np.testing.assert_allclose(added, np.einsum("bin,n,bjn->bij", b, more, b), atol=1e-10)
    diagonal = np.diagonal(added, axis1=1, axis2=2)
    now = rm.dynamics.reflected(grown, q).inertia
    np.testing.assert_allclose((now - found.inertia).sum(axis=-1), diagonal, atol=1e-10)
    assert np.all(found.inertia >= 0.0)
    for one, other in zip(found, rm.dynamics.reflected(model, q, backend="numpy"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-14)


def test_reflected_friction_and_damping() -> None:
    """By the ratio, and by its square; a joint without a rotor has its own."""
    rotor = '<rotor inertia="1e-4" ratio="-10" damping="0.002" friction="0.03"/>'
    text = robot(
        link("trunk"), link("a"), link("b"), link("head"),
        joint("free", "base", "trunk", kind="floating"),
        joint("neck", "trunk", "head", "0.1 0 0.3", kind="spherical"),
        joint("geared", "trunk", "a", kind="revolute", more=limited(30) + rotor),
        joint("direct", "a", "b", kind="revolute",
              more=limited(7) + '<dynamics damping="0.4" friction="0.2"/>'),
    )  # fmt: skip
    model = rm.load(text)
    found = rm.dynamics.reflected(model, model.neutral())
    geared, direct = (model.dof_names.index(name) for name in ("geared", "direct"))
    for values, first, second in zip(found, (0.01, 0.2, 0.3), (0.0, 0.4, 0.2), strict=True):
        assert values.shape == (model.nv, 2)
        assert values[geared, 0] == pytest.approx(first)
        assert values[direct, 1] == pytest.approx(second)
        assert np.count_nonzero(values[:geared]) == 0
    with pytest.raises(ValueError, match="q"):
        rm.dynamics.reflected(model, [0.0])
    bare = rm.load(four_bar())
    assert rm.dynamics.reflected(bare, bare.neutral()).friction.shape == (1, 0)


def test_limits_of_a_batch_are_those_of_each_state() -> None:
    """Also where several motors share a joint, which takes a linear programme."""
    model = rm.load(
        robot(
            link("a"), link("b"), joint("j", "base", "a"), joint("k", "a", "b"),
            *(
                f'<transmission name="t{n}"><type>transmission_interface/SimpleTransmission</type>'
                f'<joint name="{name}"/><actuator name="m{n}"><mechanicalReduction>{k}'
                f"</mechanicalReduction>{CURVE}</actuator></transmission>"
                for n, (name, k) in enumerate((("j", 2.0), ("j", 5.0), ("k", 1.0)))
            ),
        )
    )  # fmt: skip
    rng = np.random.default_rng(2)
    q, v = np.zeros((4, 3, 2)), 3.0 * rng.standard_normal((4, 3, 2))
    lower, upper = rm.torque_limits(model, q, v)
    assert lower.shape == upper.shape == (4, 3, 2)
    for at in np.ndindex(4, 3):
        one = rm.torque_limits(model, q[at], v[at])
        np.testing.assert_allclose(one, (lower[at], upper[at]))
    rest = rm.torque_limits(model, q)[1]
    np.testing.assert_allclose(rest, np.broadcast_to([21.0, 3.0], (4, 3, 2)))


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ["mini_cheetah", "tello", "belt_leg", "four_bar"])
def test_compiled_limits_are_those_by_singular_values(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    for v in (None, 3.0 * rng.standard_normal((3, model.nv))):
        plain = rm.torque_limits(model, q, v, backend="numpy")
        for x, y in zip(rm.torque_limits(model, q, v), plain, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-9)


def test_limits_behind_a_gear_of_any_size() -> None:
    for ratio in (1e-7, 1.0, 1e7):
        least, most = limits(np.array([[ratio]]), np.array([-2.0]), np.array([3.0]))
        np.testing.assert_allclose([*least, *most], [-2.0 * ratio, 3.0 * ratio])


def test_a_rotor_may_have_its_axial_moment_alone() -> None:
    axial = (
        '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="1e-4" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    text = robot(
        link("arm"),
        link("rotor", axial),
        joint("elbow", "base", "arm"),
        joint("spin", "base", "rotor"),
        coupling("gear", {"spin": 1.0, "elbow": -9.0}),
    )
    (actuator,) = rm.load(text).actuators
    assert actuator.name == "spin"


DRIVEN = '<limit effort="8" velocity="4"/>'
BALANCED = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.01" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
)
REVERSED = robot(
    link("a"),
    link("b"),
    link("rotor_a", BALANCED),
    link("rotor_b", BALANCED),
    joint("first", "base", "a", more=DRIVEN, kind="revolute"),
    joint("second", "a", "b", "0 0 1", more=DRIVEN, kind="revolute"),
    joint("spin_a", "base", "rotor_a", mark=False),
    joint("spin_b", "base", "rotor_b", mark=False),
    coupling("gear", {"spin_a": 1.0, "first": 7.0}),
    coupling("belt", {"spin_b": -0.5, "first": 1.5, "second": -3.0}),
)


@pytest.mark.slow_cases("")
@pytest.mark.parametrize("text", ["", REVERSED])
def test_terms_say_which_way_and_how_far_motors_turn(text: str) -> None:
    """A motor's rate is the sum of its terms' coefficients times the joints' velocities."""
    models = (
        [rm.load(text)] if text else [rm.robots.load(n) for n in ("tello", "jvrc1", "belt_leg")]
    )
    for model in models:
        rng = np.random.default_rng(5)
        q, v = model.random_configuration(rng), rng.normal(size=model.nv)
        rates = rm.actuator_map(model, q).T @ v
        velocities = model.joint_velocities(q, v)
        for actuator, rate in zip(model.actuators, rates, strict=True):
            turned = sum(k * float(velocities[joint]) for joint, k in actuator.terms)
            assert turned == pytest.approx(float(rate), rel=1e-12, abs=1e-12), actuator.name
    if text:
        terms = {actuator.joint: dict(actuator.terms) for actuator in model.actuators}
        assert terms == {"spin_a": {"first": -7.0}, "spin_b": {"second": -6.0, "first": 3.0}}


# ---- positions and velocities at the motors ------------------------------------------------------


@pytest.mark.slow_cases("four_bar")
@pytest.mark.parametrize(
    "name", few(rm.robots.names(), "four_bar", "belt_leg", "mini_cheetah", "mit_humanoid_leg")
)
def test_states_from_actuators(name: str) -> None:
    """Rates are those of the positions, and both give the state again."""
    model = motored(name)
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(4)])
    near = np.array([model.random_configuration(rng, near=each) for each in q])
    v = rng.normal(size=(4, model.nv))
    if model.floating_base is not None:
        near[:, :7], v[:, :6] = q[:, :7], 0.0
    at, rates = rm.actuator_positions(model, q), rm.actuator_velocities(model, q, v)
    map_ = rm.actuator_map(model, q)
    np.testing.assert_allclose(rates, np.einsum("nij,ni->nj", map_, v), atol=1e-13)
    for backend in ("numpy", "compiled"):
        ends = [
            rm.actuator_positions(model, model.integrate(q, h * v), backend=backend)
            for h in (1e-5, -1e-5)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, rates, atol=1e-7)
    if name == "jvrc1":  # most of its joints have no motors
        with pytest.warns(RuntimeWarning, match="leave a freedom open"):
            assert np.isnan(rm.from_actuators(model, at, rates, guess=near)[0]).all()
        return
    found, speed = rm.from_actuators(model, at, rates, guess=near)
    same = np.all(np.abs(found - q) < 1e-9, axis=1)
    assert np.count_nonzero(same) >= 3
    np.testing.assert_allclose(found[same], q[same], atol=1e-12)
    np.testing.assert_allclose(speed[same], v[same], atol=1e-12)
    # beyond a dead point of the motors another state has the same positions of these
    np.testing.assert_allclose(rm.actuator_positions(model, found), at, atol=1e-12)
    found, speed = rm.from_actuators(model, at, rates, guess=model.integrate(q, 1e-3 * v))
    np.testing.assert_allclose(found, q, atol=1e-12)
    np.testing.assert_allclose(speed, v, atol=1e-12)


@pytest.mark.slow
def test_sines_of_linkages_are_computed_once() -> None:
    """Of Tello's crank, gimbals, shins: at the guess, six a leg; a guess off its couplings will do.

    Rotors are beside the loops and do not limit steps: 2.4 rad are 0.2 rad of the shin.
    """
    model = rm.robots.load("tello")
    program = inverse.from_actuators(model).program
    assert program.counts["sin"] == program.counts["cos"] == 12
    rotors = [f"left-thigh-to-knee-ankle-rotor-{n}" for n in (1, 2)]
    q = model.neutral()
    state = {name: model.joint_positions(q)[name] for name in model.dof_names[6:]}
    q = model.configuration(state | dict.fromkeys(rotors, 1.2))
    guess = model.neutral()
    (shin,) = np.flatnonzero(abs(q - guess - 0.2) < 1e-9)
    guess[shin] += 0.1
    again, _ = rm.from_actuators(model, rm.actuator_positions(model, q), guess=guess)
    np.testing.assert_allclose(again, q, atol=1e-12)


def test_actuators_of_a_differential_on_a_floating_base() -> None:
    text = differential(rotors=False)
    model = rm.load(text, floating_base=True)
    base = [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8]
    q = np.array([*base, 0.3, -0.2])
    # the transmission's law: joint = (a + b) / 2n, (a - b) / 2n, or the other way round
    np.testing.assert_allclose(np.sort(rm.actuator_positions(model, q)), [8 * 0.1, 8 * 0.5])
    state = rm.from_actuators(model, rm.actuator_positions(model, q), [1.0, 2.0],
                              guess=[*base, 0.0, 0.0])  # fmt: skip
    np.testing.assert_allclose(state[0], q, atol=1e-14)
    np.testing.assert_allclose(state[1][:6], 0.0)
    np.testing.assert_allclose(rm.actuator_velocities(model, *state), [1.0, 2.0])


def test_encoders_that_contradict_each_other_or_leave_freedoms_open() -> None:
    two = robot(link("a"), joint("j", "base", "a", kind="revolute", more=limited(1)))
    two = two.replace("</robot>", "".join(
        f'<transmission name="{n}"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="j"/><actuator name="{n}"><mechanicalReduction>{n[1]}</mechanicalReduction>'
        "</actuator></transmission>" for n in ("m2", "m3")
    ) + "</robot>")  # fmt: skip
    model = rm.load(two)
    q, v = rm.from_actuators(model, [0.4, 0.6], [2.0, 3.0])
    np.testing.assert_allclose((q, v), ([0.2], [1.0]))
    with pytest.warns(RuntimeWarning, match="contradict"):
        q, v = rm.from_actuators(model, [[0.4, 0.7], [0.4, 0.6]], [[2.0, 3.0], [2.0, 3.0]])
    assert np.isnan(q[0]).all()
    assert np.isnan(v[0]).all()
    np.testing.assert_allclose(q[1], [0.2])
    bare = rm.robots.load("four_bar")
    with pytest.warns(RuntimeWarning, match="freedom open"):
        assert np.isnan(rm.from_actuators(bare, [])[0]).all()
    assert rm.actuator_positions(bare, bare.neutral()).shape == (0,)
    assert rm.actuator_velocities(bare, [bare.neutral()] * 2, [0.0]).shape == (2, 0)
    assert rm.dynamics.actuator_gains(bare, bare.neutral(), [], [])[0].shape == (1, 1)
    ball = rm.load(robot(link("a"), joint("b", "base", "a", kind="spherical")))
    with pytest.warns(RuntimeWarning, match="freedom open"):
        rm.from_actuators(ball, [])
    for wrong in ([1.0], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ValueError, match="positions"):
            rm.from_actuators(model, wrong)


def test_gains_at_motors_are_those_of_the_coordinates() -> None:
    """Of small turns dq, motors at rest: tau = -B kp Bᵀ dq."""
    model = motored("belt_leg")
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    kp, kd = rng.uniform(1, 2, size=(2, 3, len(model.actuators)))
    stiffness, damping = rm.dynamics.actuator_gains(model, q, kp, kd, check=True)
    turn = 1e-6 * rng.normal(size=(3, model.nv))
    moved = rm.actuator_positions(model, model.integrate(q, turn)) - rm.actuator_positions(model, q)
    b = rm.actuator_map(model, q)
    np.testing.assert_allclose((b @ (kp * moved)[..., None])[..., 0],
                               (stiffness @ turn[..., None])[..., 0], rtol=1e-7)  # fmt: skip
    v = rng.normal(size=(3, model.nv))
    u = kd * rm.actuator_velocities(model, q, v)
    np.testing.assert_allclose((b @ u[..., None])[..., 0], (damping @ v[..., None])[..., 0])
    for k in (stiffness, damping):
        np.testing.assert_allclose(k, np.swapaxes(k, 1, 2))
    with pytest.raises(ValueError, match="kp"):
        rm.dynamics.actuator_gains(model, q, [1.0], kd)


@pytest.mark.parametrize("independent", ["crank", "rocker"])
def test_joints_with_limits_of_effort_that_are_no_more_than_freedoms_have_the_motors(
    independent: str,
) -> None:
    """A four-bar whose rocker alone has one is driven there, whichever joint is independent.

    Where more joints have limits of effort they say nothing of motors: the independent one counts.
    """
    for driven, expected in ((("rocker",), "rocker"), (("crank", "rocker"), independent)):
        text = four_bar(marks=(independent == "crank", False, independent == "rocker"))
        for name in driven:
            text = text.replace(f'<joint name="j_{name}"', f'<joint name="j_{name}" ').replace(
                f'<child link="{name}"/>', f'<child link="{name}"/><limit effort="7" velocity="3"/>'
            )
        model = rm.load(text)
        (actuator,) = model.actuators
        assert (actuator.joint, actuator.effort_limit) == (f"j_{expected}", 7.0)
    zero = rm.load(text.replace('effort="7"', 'effort="0"'))  # a placeholder, or no motor
    assert zero.actuators == ()
    other = {"crank": "rocker", "rocker": "crank"}[independent]
    dead = f'<child link="{independent}"/><limit effort='
    model = rm.load(text.replace(f'{dead}"7"', f'{dead}"0"'))
    assert [each.joint for each in model.actuators] == [f"j_{other}"]
