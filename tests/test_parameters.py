"""Parameters: their regressors, models and files with others."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from agreement import close
from cases import few
from hypothesis import assume, given, settings
from mechanisms import Mechanism, mechanisms
from numpy.typing import NDArray
from random_models import load
from shipped_robots import ROBOTS
from test_quantities import spatial, states

import robomodel as rm
from robomodel.identification import Parameters

Array = NDArray[np.float64]


def without(p: Parameters, *kinds: str) -> Array:
    """Values with those of these kinds zero."""
    keep = [not name.endswith(kinds) for name in p.names]
    return np.where(keep, p.values, 0.0)


def resisted(model: rm.Model, seed: int = 0) -> rm.Model:
    """The model with random armature, damping and dry friction at all joints with one freedom."""
    rng = np.random.default_rng(seed)
    names = rm.parameters(model).names
    changed = {n: rng.uniform(0.01, 0.1) for n in names if n.endswith(("armature", "damping"))}
    changed |= {n: rng.uniform(0.1, 0.5) for n in names if n.endswith("friction")}
    return rm.with_parameters(model, changed)


def check(model: rm.Model, q: Array, v: Array, a: Array, *, compiled: bool = True) -> None:
    """Every regressor against the dynamics, as they are and compiled."""
    p = rm.parameters(model)
    spanning = model.constraint_jacobian(q)
    rates = np.einsum("...ij,...j->...i", spanning, v)
    weights = {kind: np.zeros(spanning.shape[-2]) for kind in ("damping", "friction")}
    for joint, node in zip(model.joints, model.nodes, strict=True):
        for kind, weight in weights.items():
            weight[node.v : node.v + joint.nv] = getattr(joint, kind)
    force = weights["damping"] * rates + weights["friction"] * np.sign(rates)
    lost = np.einsum("...ji,...j->...i", spanning, force)
    numpy = {"backend": "numpy"}
    y = rm.regressor(model, q, v, a, **numpy)
    expected = rm.rnea(model, q, v, a, **numpy) + lost
    close(y @ p.values, expected, 1e-12)
    momentum, rest = rm.identification.momentum_regressor(model, q, v, **numpy)
    mass = rm.crba(model, q, **numpy)
    close(momentum @ p.values, np.einsum("...ij,...j->...i", mass, v), 1e-12)
    c = rm.coriolis(model, q, v, **numpy)
    right = rm.gravity_force(model, q, **numpy) + lost - np.einsum("...ji,...j->...i", c, v)
    size = float(np.abs(c).max())
    close(rest @ p.values, right, 1e-12, least=size)
    if not compiled:
        return
    close(rm.regressor(model, q, v, a), y, 1e-12)
    for found, known in zip(
        rm.identification.momentum_regressor(model, q, v),
        (momentum, rest),
        strict=True,
    ):
        close(found, known, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_regressors_of_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    p = rm.parameters(model)
    ones = sum(joint.nv == 1 for joint in model.joints)
    assert len(p.names) == len(p.values) == 10 * len(model.bodies) + 3 * ones
    check(resisted(model), *states(model, 2), compiled=model.nv < 5)


@pytest.mark.slow
def test_regressors_with_balls_loops_and_a_floating_base() -> None:
    model = resisted(spatial())
    check(model, *states(model))
    check(model, *(x.reshape(2, 2, -1) for x in states(model, 4)))
    check(model, *(x[0] for x in states(model, 1)))


def with_reference(model: rm.Model, q: Array, v: Array, a: Array) -> None:
    """The regressor with a reference's velocities u against M a + C u and gravity; of all columns,
    by another robot's parameters.
    """
    p, u = rm.parameters(model), np.roll(v, 1, axis=-1) - 0.3
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # bodies need not exist
        other = rm.with_parameters(model, p.values + rng.uniform(0.01, 0.1, len(p.values)))
    values = rm.parameters(other).values
    damping = np.where([n.endswith("damping") for n in p.names], values, 0.0)
    friction = np.where([n.endswith("friction") for n in p.names], values, 0.0)
    lost = rm.regressor(model, q, u, a) @ damping + rm.regressor(model, q, v, a) @ friction
    c, mass = rm.coriolis(other, q, v), rm.crba(other, q)
    expected = np.einsum("...ij,...j->...i", mass, a) + np.einsum("...ij,...j->...i", c, u)
    y = rm.regressor(model, q, v, a, reference=u)
    close(y @ values, expected + rm.gravity_force(other, q) + lost, 1e-12)
    plain = rm.regressor(model, q, v, a)
    close(rm.regressor(model, q, v, a, reference=v), plain, 1e-12)


def test_a_reference_of_the_velocities_that_are() -> None:
    model = rm.robots.load("four_bar")
    q, v, a = states(model, 1)
    y = rm.regressor(model, q, v, a, reference=v, backend="numpy")
    close(y, rm.regressor(model, q, v, a, backend="numpy"), 1e-12)
    with pytest.raises(ValueError, match="reference"):
        rm.regressor(model, q, v, a, reference=np.zeros(3))


@pytest.mark.slow
def test_a_reference_with_balls_loops_and_a_floating_base() -> None:
    model = resisted(spatial())
    with_reference(model, *states(model))
    q, v, a = states(model, 1)
    numpy = rm.regressor(model, q[0], v[0], a[0], reference=a[0], backend="numpy")
    close(rm.compile(model, "reference_regressor")(q, v, a, a)[0], numpy, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crank_rocker", "belt_leg", "six_bar", "puma560", "mini_cheetah"])
def test_a_reference_on_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    with_reference(resisted(model), *states(model, 2))


@pytest.mark.slow
@given(mechanism=mechanisms(max_joints=8))
@settings(max_examples=2)
def test_regressors_of_random_mechanisms(mechanism: Mechanism) -> None:
    loaded = load(mechanism)
    assume(loaded is not None)
    assert loaded is not None
    model, q = loaded
    rng = np.random.default_rng(0)
    check(resisted(model), q, *rng.normal(size=(2, model.nv)), compiled=False)


BALL = """<robot name="ball"><link name="base"/><link name="bob"><inertial>
<origin xyz="0 0.1 -0.3"/><mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0"
izz="0.1"/></inertial></link><joint name="ball" type="spherical"><parent link="base"/>
<child link="bob"/><dynamics damping="0.3" friction="0.2"/></joint></robot>"""


def test_balls_have_columns_of_what_they_are_given() -> None:
    model = rm.load(BALL)
    assert rm.parameters(model).names[10:] == ("ball.damping", "ball.friction")
    (q,), (v,), (a,) = states(model, 1)
    tau = rm.rnea(model, q, v, a) + 0.3 * v + 0.2 * np.sign(v)
    close(rm.regressor(model, q, v, a) @ rm.parameters(model).values, tau, 1e-12)


@pytest.mark.slow
def test_rotors_that_are_round_are_turned_for_the_columns_of_others() -> None:
    model = rm.robots.load("mini_cheetah")
    rotor = next(b.name for n, b in zip(model.nodes, model.bodies, strict=True) if n.axisymmetric)
    uneven = rm.with_parameters(
        model, {f"{rotor}.my": 1e-4, f"{rotor}.Iyz": 1e-6, f"{rotor}.Iyy": 4e-5}
    )
    (q,), (v,), (a,) = states(model, 1)
    expected = rm.rnea(uneven, q, v, a)
    found = rm.regressor(model, q, v, a) @ rm.parameters(uneven).values
    close(found, expected, 1e-12)
    assert np.abs(expected - rm.rnea(model, q, v, a)).max() > 1e-6


@pytest.mark.slow
def test_friction_has_no_sign_at_rest() -> None:
    model = rm.load(
        rm.robots.path("mini_cheetah"), floating_base=False
    )  # gears: rotors' velocities are combinations
    q, v = model.neutral(), np.zeros(model.nv)
    names = rm.parameters(model).names
    columns = [n.endswith("friction") for n in names]
    assert not rm.regressor(model, q, v, v)[:, columns].any()
    differential = """<robot name="d"><link name="base"/><link name="a"/><link name="b"/>
    <link name="c"/>
    <joint name="ja" type="continuous"><parent link="base"/><child link="a"/></joint>
    <joint name="jb" type="continuous"><parent link="base"/><child link="b"/></joint>
    <joint name="jc" type="continuous"><parent link="base"/><child link="c"/></joint>
    <coupling name="sum"><joint name="ja" ratio="0.3"/><joint name="jb" ratio="0.1"/>
    <joint name="jc" ratio="-1"/></coupling></robot>"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # no masses
        model = rm.load(differential, independent=["ja", "jb"])
    at = rm.parameters(model).names.index("jc.friction")
    for first, sign in ((0.1, 0), (0.1 + 1e-6, 1), (0.1 - 1e-6, -1)):
        v = np.array([first / 3, -0.1]) * 3.7
        for backend in ("numpy", "compiled"):
            y = rm.regressor(model, model.neutral(), v, 0 * v, backend=backend)[:, at]
            assert np.allclose(y, np.array([0.3, 0.1]) * sign)


def motion(model: rm.Model, count: int, step: float) -> tuple[Array, Array, Array]:
    """A motion by prescribed independent positions; tau by inverse dynamics with losses."""
    rng = np.random.default_rng(3)
    u, t = 0.3 * rng.normal(size=model.nv), step * np.arange(count)
    shape = (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t))
    start = model.random_configuration(rng)
    v, a = (s[:, None] * u for s in shape[1:])
    q = [start]
    for n in range(1, count):
        q.append(model.integrate(q[-1], (shape[0][n] - shape[0][n - 1]) * u))
    configurations = np.array(q)
    tau = rm.regressor(model, configurations, v, a) @ rm.parameters(model).values
    return configurations, v, tau


@pytest.mark.slow_cases("puma560")
@pytest.mark.parametrize("name", few(["five_bar", "puma560"], "puma560"))
def test_without_accelerations(name: str) -> None:
    model = resisted(rm.robots.load(name))
    p = rm.parameters(model)
    model = rm.with_parameters(model, without(p, "friction"))  # what jumps is integrated worse
    p = rm.parameters(model)
    step = 2.5e-3
    q, v, tau = motion(model, 401, step)
    y, torque = rm.identification.filtered_regressor(model, q, v, tau, step, cutoff=5.0)
    assert y.shape == (13, model.nv, len(p.names))  # an interval of 25 samples, four to a window
    close(y @ p.values, torque, 1e-6)
    with pytest.raises(ValueError, match="401 samples is shorter than a window of 519"):
        rm.identification.filtered_regressor(model, q, v, tau, step, cutoff=0.98)
    phi = np.sin(np.pi * np.arange(401) / 400) ** 4
    rate = 4 * np.pi * np.sin(np.pi * np.arange(401) / 400) ** 3
    rate *= np.cos(np.pi * np.arange(401) / 400)
    momentum, rest = rm.identification.momentum_regressor(model, q, v)
    left = np.einsum("t,ti->i", phi, tau)
    right = np.einsum("t,tip,p->i", phi, rest, p.values)
    right -= np.einsum("t,tip,p->i", rate, momentum, p.values)
    close(right, left, 1e-9)


def disturbed(model: rm.Model, seed: int = 0) -> Array:
    """Values of bodies that can exist: other masses, centres and moments, and losses."""
    rng = np.random.default_rng(seed)
    p = rm.parameters(model)
    values = p.values.copy()
    for i in range(len(model.bodies)):
        values[10 * i : 10 * i + 10] *= 1.0 + 0.1 * rng.uniform()
    more = values[10 * len(model.bodies) :]
    more += rng.uniform(0.01, 0.02, size=more.shape)
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", few(["mini_cheetah", "five_bar", "spatial"], "mini_cheetah", "five_bar")
)
def test_models_with_parameters_and_files_of_them(name: str, tmp_path: Path) -> None:
    model = spatial() if name == "spatial" else rm.robots.load(name)
    values = disturbed(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # some of the file's cannot exist
        other = rm.with_parameters(model, values)
    assert rm.parameters(other).names == rm.parameters(model).names
    close(rm.parameters(other).values, values, 1e-14)
    assert other.dof_names == model.dof_names
    np.testing.assert_array_equal(other.neutral(), model.neutral())
    q, v, a = states(model)
    mechanical = without(rm.parameters(other), "damping", "friction")
    tau = rm.rnea(other, q, v, a)
    close(rm.regressor(model, q, v, a) @ mechanical, tau, 1e-11)
    written = tmp_path / "robot.urdf"
    rm.write_urdf(other, written, meshes="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # what the first file has as well
        again = rm.load(written, floating_base=None)
    close(rm.parameters(again).values, values, 1e-9)
    close(rm.rnea(again, q, v, a), tau, 1e-9)
    copy = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(rm.parameters(copy).values, rm.parameters(other).values)
    assert rm.parameters(rm.with_parameters(model, rm.parameters(model).values)).values.sum() == (
        rm.parameters(model).values.sum()
    )


def test_bodies_that_cannot_be_are_told_with_their_line() -> None:
    model = rm.robots.load("four_bar")
    names = rm.parameters(model).names
    for changed, told in (
        ({"link1.mass": -1.0}, r"four_bar.urdf:\d+: link 'link1': cannot exist.*mass is -1 kg"),
        ({"link1.mass": 0.0, "link1.mx": 0.3}, "no mass, but a first moment"),
        ({"link1.Izz": -0.5}, "pseudo-inertia has the eigenvalue -"),
        ({"joint1.damping": -0.5}, r"joint 'joint1': has a negative damping \(-0.5\)"),
    ):
        assert changed.keys() <= set(names)
        with pytest.warns(rm.DescriptionWarning, match=told):
            other = rm.with_parameters(model, changed)
        p = rm.parameters(other)
        assert all(p[name] == value for name, value in changed.items())
        (q,), (v,), (a,) = states(model, 1)
        mechanical = without(p, "damping", "friction")
        close(rm.regressor(model, q, v, a) @ mechanical, rm.rnea(other, q, v, a), 1e-11)


def test_a_robot_without_joints_has_none() -> None:
    model = rm.load('<robot name="still"><link name="base"/></robot>')
    none = np.zeros(0)
    assert repr(rm.parameters(model)) == "<Parameters: none>"
    assert rm.regressor(model, none, none, none).shape == (0, 0)
    assert rm.coriolis(model, none, none).shape == (0, 0)
    for name in ("center_of_mass", "crba"):
        with pytest.raises(ValueError, match="of 'still' has no"):
            rm.compile(model, name)
