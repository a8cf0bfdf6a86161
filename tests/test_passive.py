"""Springs and damping: against formulas on other quantities, energy, differences; in every way."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.recursions.passive import angle, rotation_vector

Array = NDArray[np.float64]

SPRUNG = '<dynamics damping="{d}" spring_stiffness="{k}" spring_reference="{r}"/>'


def sprung(d: float = 0.0, k: float = 0.0, r: float = 0.0) -> str:
    return SPRUNG.format(d=d, k=k, r=r)


def spring(name: str, at: tuple[str, str], to: tuple[str, str], attributes: str) -> str:
    return (
        f'<spring name="{name}" {attributes}>'
        f'<predecessor link="{at[0]}"><origin xyz="{at[1]}"/></predecessor>'
        f'<successor link="{to[0]}"><origin xyz="{to[1]}"/></successor></spring>\n'
    )


ROTOR = '<rotor inertia="1e-4" ratio="9" damping="0.002"/>'
BETWEEN = spring(
    "strut", ("base", "0.2 -0.3 0.1"), ("rocker", "0.3 0.1 0"), 'stiffness="40" length="0.4" '
    'damping="3"',
)  # fmt: skip
ROBOTS = {
    "gears": robot(
        link("a"), link("b"), link("c"),
        joint("j1", "base", "a", more=sprung(0.3, 5.0, 0.2) + ROTOR),
        joint("j2", "a", "b", "0.3 0 0", axis="0 0.6 0.8", more=sprung(0.2)),
        joint("j3", "b", "c", "0 0.2 0.1", kind="prismatic", axis="1 0 0", more=sprung(4.0, 90.0)),
        coupling("belt", {"j1": 2.0, "j2": 1.0}, 0.3),
        spring("strut", ("base", "0.2 -0.3 0.1"), ("c", "0.3 0.1 0"), 'stiffness="40" damping="3"'),
        '<spring name="cable" stiffness="7" reference="0.1" damping="0.4"><joint name="j2" '
        'ratio="0.5"/><joint name="j3" ratio="-2"/></spring>',
    ),
    "linkage": four_bar(BETWEEN).replace(
        '<joint name="j_rocker" type="continuous">',
        '<joint name="j_rocker" type="continuous">' + sprung(0.6, 8.0, -0.4),
    ),
    "floating ball": robot(
        link("trunk"), link("head"), link("arm"),
        joint("free", "base", "trunk", kind="floating"),
        joint("neck", "trunk", "head", "0.1 0 0.3", kind="spherical", more=sprung(0.5, 11.0)),
        joint("shoulder", "head", "arm", "0 0.2 0", more=sprung(0.1, 2.0, 0.3) + ROTOR),
        spring("cord", ("trunk", "0.2 0 0.1"), ("arm", "0.3 0.1 0"), 'stiffness="30" length="0.2"'),
        spring("anchor", ("base", "1 0 0"), ("head", "0 0.1 0"), 'stiffness="20" damping="2"'),
    ),
}  # fmt: skip


@pytest.fixture(params=list(ROBOTS))
def model(request: pytest.FixtureRequest) -> rm.Model:
    return rm.load(ROBOTS[request.param])


def states(model: rm.Model, count: int = 7, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, rng.standard_normal((count, model.nv))


def expected(model: rm.Model, q: Array, v: Array) -> Array:
    """The forces by G, and by the Jacobians of the springs' ends."""
    g = model.constraint_jacobian(q)
    rates = g @ v
    tau = np.zeros(model.nv)
    at = 0
    positions = model.joint_positions(q)
    for each in model.joints:
        rows = slice(at, at + each.nv)
        at += each.nv
        force = -each.damping * rates[rows]
        if each.stiffness:
            turned = (
                Rotation.from_quat(positions[each.name]).as_rotvec()
                if each.type == "spherical"
                else positions[each.name] - each.reference
            )
            force = force - each.stiffness * turned
        tau += g[rows].T @ np.atleast_1d(force)
    for each in model.description.springs:
        if isinstance(each, rm.description.JointSpring):
            names = [j.name for j in model.joints]
            row = sum(r * g[names.index(j)] for j, r in each.terms)
            x = sum(r * positions[j] for j, r in each.terms)
            force = -each.stiffness * (x - each.reference) - each.damping * row @ v
        else:
            ends, rows = [], []
            for end in (each.predecessor, each.successor):
                frame = (end.link, end.origin.xyz)
                pose = rm.frame_pose(model, q, frame)
                ends.append(pose[:3, 3])
                rows.append(pose[:3, :3] @ rm.jacobian(model, q, frame)[3:])
            apart = ends[1] - ends[0]
            distance = np.linalg.norm(apart)
            row = apart / distance @ (rows[1] - rows[0])
            length = each.length
            if length is None:
                length = rest_length(model, each)
            force = -each.stiffness * (distance - length) - each.damping * row @ v
        tau += row * force
    return tau


def rest_length(model: rm.Model, each: rm.description.Spring) -> float:
    return {"strut": math.dist((0.2, -0.3, 0.1), (0.6, 0.3, 0.1)), "anchor": math.hypot(0.9, 0.1,
            0.3)}[each.name]  # fmt: skip


@pytest.mark.slow_cases("floating ball", "linkage")
def test_against_jacobians(model: rm.Model) -> None:
    q, v = states(model)
    tau = rm.passive_force(model, q, v)
    for i in range(len(q)):
        np.testing.assert_allclose(tau[i], expected(model, q[i], v[i]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        rm.passive_force(model, q, v, backend="numpy"), tau, rtol=1e-13, atol=1e-13
    )


@pytest.mark.slow_cases("floating ball", "linkage", "gears")
def test_in_every_algorithm(model: rm.Model) -> None:
    q, v = states(model)
    a = np.random.default_rng(1).standard_normal(v.shape)
    p = rm.passive_force(model, q, v)
    tau = rm.rnea(model, q, v, a, passive=True)
    np.testing.assert_allclose(tau, rm.rnea(model, q, v, a) - p, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        rm.bias_force(model, q, v, passive=True), rm.bias_force(model, q, v) - p, atol=1e-11
    )
    for method in ("cluster", "projection", "lagrange"):
        back = rm.aba(model, q, v, tau, passive=True, method=method)
        np.testing.assert_allclose(back, a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        rm.compile(model, "aba", passive=True)(q, v, tau), a, rtol=1e-9, atol=1e-9
    )
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(rm.rnea(loaded, q, v, a, passive=True), tau)


def test_hybrid() -> None:
    model = rm.load(ROBOTS["gears"])
    q, v = states(model)
    a = np.random.default_rng(1).standard_normal(v.shape)
    tau = rm.rnea(model, q, v, a, passive=True)
    one, two = model.dof_names
    got, rates = rm.hybrid(
        model, q, v, tau={one: tau[:, 0]}, a={two: a[:, 1]}, passive=True
    )  # fmt: skip
    np.testing.assert_allclose(got, tau, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rates, a, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(got[:, 0], tau[:, 0])


def test_energy_falls_by_damping_alone(model: rm.Model) -> None:
    """The rate of the energy under no motor force is what the dampers take."""
    q, v = states(model)
    h = 1e-5
    slope = [
        sum(rm.energy(model, model.integrate(q, s * h * v), v)[1])
        - sum(rm.energy(model, model.integrate(q, -s * h * v), v)[1])
        for s in (1.0,)
    ]
    springs = rm.passive_force(model, q, np.zeros_like(v))
    weight = -rm.bias_force(model, q, np.zeros_like(v))
    power = np.sum((springs + weight) * v, axis=-1)
    np.testing.assert_allclose(np.sum(power), -slope[0] / (2 * h), rtol=1e-7)
    drag = rm.passive_force(model, q, v) - springs
    assert np.all(np.sum(drag * v, axis=-1) <= 1e-14)


@pytest.mark.slow
def test_derivatives(model: rm.Model) -> None:
    q, v = (x[0] for x in states(model, 1))
    a = np.random.default_rng(1).standard_normal(model.nv)
    tau = rm.rnea(model, q, v, a, passive=True)
    h = 1e-6
    for algorithm, derivatives, x in (
        (rm.rnea, rm.rnea_derivatives, a),
        (rm.aba, rm.aba_derivatives, tau),
    ):
        dq, dv, _ = derivatives(model, q, v, x, passive=True)
        for j, e in enumerate(np.eye(model.nv)):
            ahead, behind = (model.integrate(q, s * h * e) for s in (1, -1))
            slope = algorithm(model, ahead, v, x, passive=True)
            slope = (slope - algorithm(model, behind, v, x, passive=True)) / (2 * h)
            np.testing.assert_allclose(dq[:, j], slope, rtol=2e-6, atol=2e-6 * np.abs(dq).max())
            slope = algorithm(model, q, v + h * e, x, passive=True)
            slope = (slope - algorithm(model, q, v - h * e, x, passive=True)) / (2 * h)
            np.testing.assert_allclose(dv[:, j], slope, rtol=2e-6, atol=2e-6 * np.abs(dv).max())


@pytest.mark.slow
def test_at_the_joint_that_closes_a_loop() -> None:
    """A four-bar's coupler and rocker meet at the angle q_rocker - q_crank - q_coupler."""
    closing = loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0",
                   '<axis xyz="0 0 1"/>' + sprung(0.7, 6.0, 0.25))  # fmt: skip
    model = rm.load(four_bar(closing=closing))
    q, v = states(model)
    x = model.joint_positions(q)
    turn = x["j_rocker"] - x["j_crank"] - x["j_coupler"]
    turn = np.angle(np.exp(1j * turn))
    names = model.joint_names
    g = model.constraint_jacobian(q)
    row = g[:, names.index("j_rocker")] - g[:, names.index("j_crank")]
    row = row - g[:, names.index("j_coupler")]
    rate = np.sum(row * v, axis=-1)
    force = -6.0 * (turn - 0.25) - 0.7 * rate
    np.testing.assert_allclose(
        rm.passive_force(model, q, v), row * force[:, None], rtol=1e-11, atol=1e-11
    )
    _, potential = rm.energy(model, q, v)
    _, weight = rm.energy(rm.load(four_bar()), q, v)
    np.testing.assert_allclose(potential - weight, 3.0 * (turn - 0.25) ** 2, rtol=1e-11)


def test_at_a_slider_that_closes_a_loop() -> None:
    """A slider-crank cut at its slider: x is the slider's place, crank cos + rod cos."""
    text = robot(
        link("crank"), link("rod"),
        joint("j_crank", "base", "crank"), joint("j_rod", "crank", "rod", "0.3 0 0"),
        joint("j_piston", "rod", "piston", "0.8 0 0"), link("piston"),
        loop("slide", "prismatic", "base", "piston", more='<axis xyz="1 0 0"/>' + sprung(2.0, 30.0,
             0.9)),
    )  # fmt: skip
    model = rm.load(text)
    q, v = states(model)
    x = model.joint_positions(q)
    place = 0.3 * np.cos(x["j_crank"]) + 0.8 * np.cos(x["j_crank"] + x["j_rod"])
    rates = model.joint_velocities(q, v)
    speed = -0.3 * np.sin(x["j_crank"]) * rates["j_crank"] - 0.8 * np.sin(
        x["j_crank"] + x["j_rod"]
    ) * (rates["j_crank"] + rates["j_rod"])
    force = -30.0 * (place - 0.9) - 2.0 * speed
    np.testing.assert_allclose(
        rm.passive_force(model, q, v)[:, 0] * v[:, 0], force * speed, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("method", ["approximate", "unconstrained"])
def test_open_trees_have_the_mechanisms_forces(model: rm.Model, method: str) -> None:
    q, v = states(model)
    lost = rm.rnea(model, q, v, v, method=method) - rm.rnea(
        model, q, v, v, method=method, passive=True
    )
    np.testing.assert_allclose(lost, rm.passive_force(model, q, v), rtol=1e-11, atol=1e-11)


def test_rotors_damping_is_reflected() -> None:
    model = rm.load(robot(link("a"), joint("j", "base", "a", more=ROTOR)))
    np.testing.assert_allclose(rm.passive_force(model, [0.3], [2.0]), [-81 * 0.002 * 2.0])


@pytest.mark.slow
def test_without_any_there_is_none() -> None:
    model = rm.robots.load("tello")
    q, v = states(model, 2)
    assert not rm.passive_force(model, q, v).any()
    assert model.springs == ()


def test_a_spring_does_not_stop_what_it_pulls_from_turning() -> None:
    """A wheel on which a spring hangs is turned, though its inertia alone would not need it."""
    wheel = ('<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.02" ixy="0" ixz="0" '
             'iyz="0"/></inertial>')  # fmt: skip
    model = rm.load(
        robot(
            link("wheel", wheel),
            joint("j", "base", "wheel"),
            spring("s", ("base", "1 0 0"), ("wheel", "0.2 0 0"), 'stiffness="10" length="0.5"'),
        )
    )
    x = 0.7
    end = np.array([0.2 * math.cos(x) - 1.0, 0.2 * math.sin(x)])
    away = np.array([-0.2 * math.sin(x), 0.2 * math.cos(x)])
    distance = np.linalg.norm(end)
    torque = -10.0 * (distance - 0.5) * end @ away / distance
    np.testing.assert_allclose(rm.passive_force(model, [x], [0.0]), [torque], rtol=1e-13)


def test_angles() -> None:
    turns = np.r_[np.linspace(-3.1, 3.1, 1001), np.pi - np.logspace(-16, -1, 16), -np.pi]
    np.testing.assert_allclose(angle(np.sin(turns), np.cos(turns)), turns, rtol=0, atol=1e-15)
    assert angle(0.0, -1.0) == math.pi
    for turned in (Rotation.random(50, random_state=0), Rotation.from_rotvec([[0, 0, 0], [1e-9, 0,
                   0]])):  # fmt: skip
        for sign in (1.0, -1.0):
            got = rotation_vector(list(sign * turned.as_quat().T))
            np.testing.assert_allclose(np.stack(got, -1), turned.as_rotvec(), atol=1e-14)


def test_a_ball_half_a_turn_away_is_pulled() -> None:
    """Where the quaternion's w is zero too, with all of the spring's energy."""
    dynamics = '<dynamics spring_stiffness="2"/>'
    model = rm.load(robot(link("a"), joint("b", "base", "a", kind="spherical", more=dynamics)))
    at = [0.6, 0.0, 0.8, 0.0]
    wanted = -2.0 * math.pi * np.array(at[:3])
    for backend in ("compiled", "numpy"):
        force = rm.passive_force(model, at, np.zeros(3), backend=backend)
        np.testing.assert_allclose(force, wanted, rtol=1e-14)
        stored = rm.energy(model, at, np.zeros(3), backend=backend)[1]
        loose = rm.rnea(model, at, np.zeros(3), np.zeros(3), backend=backend)
        assert np.all(np.isfinite(loose))
        near = rm.energy(model, [0.6, 0.0, 0.8, 1e-9], np.zeros(3), backend=backend)[1]
        assert stored == pytest.approx(near, abs=1e-7)
    da_dq, _, _ = rm.aba_derivatives(model, at, np.zeros(3), np.zeros(3), passive=True)
    assert np.all(np.isfinite(da_dq))


BAD = {
    "stiffness of <spring> is -1": spring("s", ("base", "0 0 0"), ("a", "1 0 0"), 'stiffness="-1"'),
    "damping of <spring> is -2": spring("s", ("base", "0 0 0"), ("a", "1 0 0"), 'damping="-2"'),
    "length of <spring> is -1": spring(
        "s", ("base", "0 0 0"), ("a", "1 0 0"), 'stiffness="1" length="-1"'
    ),
    "same link": spring("s", ("a", "0 0 0"), ("a", "1 0 0"), 'stiffness="1"'),
    "no moving joint": spring("s", ("base", "0 0 0"), ("fixed", "1 0 0"), 'stiffness="1"'),
    "coincide": spring("s", ("base", "0 0 0"), ("a", "0 0 0"), 'stiffness="1" length="0"'),
    "needs stiffness": spring("s", ("base", "0 0 0"), ("a", "1 0 0"), ""),
    "'length' belongs": '<spring name="s" stiffness="1" length="1"><joint name="j"/></spring>',
    "not in the robot": '<spring name="s" stiffness="1"><joint name="jj"/></spring>',
    "is spherical": '<spring name="s" stiffness="1"><joint name="ball"/></spring>',
    "every ratio is zero": '<spring name="s" stiffness="1"><joint name="j" ratio="0"/></spring>',
    "another spring": '<spring name="s" stiffness="1"><joint name="j"/></spring>' * 2,
    "successor link": '<spring name="s" stiffness="1"><predecessor link="a"/></spring>',
}


@pytest.mark.parametrize("why", BAD)
def test_bad_springs(why: str) -> None:
    text = robot(
        link("a"), link("b"), link("fixed"), joint("j", "base", "a"),
        joint("ball", "a", "b", kind="spherical"),
        joint("weld", "base", "fixed", kind="fixed"),
    ).replace("</robot>", f"\n{BAD[why]}</robot>")  # fmt: skip
    with pytest.raises(rm.DescriptionError, match=why) as error:
        rm.load(text)
    assert error.value.line is not None
    assert "spring" in str(error.value.element)


@pytest.mark.parametrize(
    ("dynamics", "kind", "why"),
    [
        ('damping="-1"', "continuous", "damping of <dynamics> is -1"),
        ('friction="-1"', "continuous", "friction of <dynamics> is -1"),
        ('spring_stiffness="-3"', "continuous", "spring_stiffness of <dynamics> is -3"),
        ('spring_stiffness="nan"', "continuous", "finite"),
        ('spring_stiffness="3"', "floating", "cannot have a spring"),
        ('spring_stiffness="3" spring_reference="1"', "spherical", "no rotation"),
        ('sprung="3"', "continuous", "sprung"),
    ],
)
def test_bad_joints(dynamics: str, kind: str, why: str) -> None:
    text = robot(link("a"), joint("j", "base", "a", kind=kind, more=f"<dynamics {dynamics}/>"))
    with pytest.raises(rm.DescriptionError, match=why):
        rm.load(text, strict=True)


def test_bad_loops() -> None:
    closing = loop("closing", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", sprung(0.1))
    with pytest.raises(rm.DescriptionError, match="no single coordinate"):
        rm.load(four_bar(closing=closing))


@pytest.mark.parametrize("name", list(ROBOTS))
def test_written_and_read_back(name: str, tmp_path) -> None:
    model = rm.load(ROBOTS[name])
    rm.write_urdf(model, tmp_path / "out.urdf")
    again = rm.load(tmp_path / "out.urdf")
    q, v = states(model)
    np.testing.assert_allclose(
        rm.passive_force(again, q, v), rm.passive_force(model, q, v), rtol=1e-12, atol=1e-12
    )
