"""What controllers ask: Coriolis matrices, gravity, frames in three references, centres of mass."""

from __future__ import annotations

from collections.abc import Callable

import christoffel
import numpy as np
import pinocchio as pin
import pytest
from agreement import close
from cases import few
from hypothesis import assume, given, settings
from mechanisms import KINDS, Mechanism, mechanisms
from numpy.typing import NDArray
from oracle import Oracle
from random_models import load
from shipped_robots import ROBOTS

import robomodel as rm

Array = NDArray[np.float64]
REFERENCES = ("local", "world", "local_world_aligned")
NAMED = dict(zip(REFERENCES, ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED"), strict=True))
BODY = (
    '<inertial><origin xyz="0.1 0.02 0.03"/><mass value="1.2"/>'
    '<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.025"/></inertial>'
)


def link(name: str) -> str:
    return f'<link name="{name}">{BODY}</link>'


SPATIAL = f"""<robot name="spatial">{"".join(map(link, ("base", "crank", "rod", "rocker", "hand")))}
<joint name="j1" type="continuous" independent="true"><parent link="base"/><child link="crank"/>
  <axis xyz="0 0 1"/><dynamics damping="0.1"/></joint>
<joint name="ball" type="spherical"><parent link="crank"/><child link="rod"/>
  <origin xyz="0.2 0 0"/></joint>
<joint name="j2" type="continuous"><parent link="base"/><child link="rocker"/>
  <origin xyz="0.6 0 0.1"/><axis xyz="0 1 0"/></joint>
<joint name="wrist" type="spherical"><parent link="rocker"/><child link="hand"/>
  <origin xyz="0.1 0.1 0"/></joint>
<loop name="end" type="spherical"><predecessor link="rod"><origin xyz="0.4 0 0.4"/></predecessor>
  <successor link="rocker"><origin xyz="0 0 0.3"/></successor></loop></robot>"""


def spatial() -> rm.Model:
    """A floating spatial four-bar with a ball joint in its loop, and one on its rocker."""
    return rm.load(SPATIAL, floating_base=True)


def states(model: rm.Model, count: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a = rng.normal(size=(2, count, model.nv))
    return q, v, a


def rate(
    value: Callable[[Array], Array], model: rm.Model, q: Array, v: Array, h: float = 1e-3
) -> Array:
    """Derivative along v by differences of the sixth order."""

    def at(n: int) -> Array:
        return value(model.integrate(q, n * h * v))

    odd = [at(n) - at(-n) for n in (1, 2, 3)]
    return (45 * odd[0] - 9 * odd[1] + odd[2]) / (60 * h)


def check_coriolis(model: rm.Model, q: Array, v: Array, *, differences: float = 1e-9) -> None:
    numpy = {"backend": "numpy"}
    mass = rm.crba(model, q, **numpy)
    size = float(np.abs(mass).max())
    c = rm.coriolis(model, q, v, **numpy)
    gravity = rm.gravity_force(model, q, **numpy)
    bias = rm.bias_force(model, q, v, **numpy)
    close(np.einsum("...ij,...j->...i", c, v) + gravity, bias, 1e-12, least=size)
    close(christoffel.coriolis(model)(q, v), c, 1e-12, least=size)
    other = np.roll(v, 1, axis=-1)
    both = rm.coriolis(model, q, v + 2 * other, **numpy)
    close(both, c + 2 * rm.coriolis(model, q, other, **numpy), 1e-12, least=size)
    change = rate(lambda x: rm.crba(model, x, **numpy), model, q, v)
    close(c + np.swapaxes(c, -1, -2), change, differences, least=size)


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", ROBOTS)
def test_coriolis_of_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    q, v, _ = states(model, 2)
    check_coriolis(model, q, 0.3 * v, differences=1e-8)


@pytest.mark.slow
def test_coriolis_with_balls_in_a_loop_on_a_floating_base() -> None:
    model = spatial()
    q, v, _ = states(model)
    check_coriolis(model, q, v, differences=1e-8)


@pytest.mark.tables
@given(mechanism=mechanisms(KINDS, max_joints=12))
@settings(max_examples=15)
def test_coriolis_of_many_mechanisms(mechanism: Mechanism) -> None:
    loaded = load(mechanism)
    assume(loaded is not None)
    assert loaded is not None
    model, q = loaded
    check_coriolis(model, q, 0.1 * np.random.default_rng(0).normal(size=model.nv), differences=1e-6)


@pytest.mark.slow
def test_torsion_is_the_bracket_of_body_velocities() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, u = states(model, 1)
    (q,), (v,), (u,) = q, v, u
    turned = rm.coriolis(model, q, v) @ u - rm.coriolis(model, q, u) @ v
    bracket = np.zeros(model.nv)
    bracket[:3] = np.cross(v[:3], u[:3])
    bracket[3:6] = np.cross(v[:3], u[3:6]) + np.cross(v[3:6], u[:3])
    close(turned, rm.crba(model, q) @ bracket, 1e-12)


def test_coriolis_of_a_tree_by_pinocchio() -> None:
    name = "puma560"
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text(), names=list(model.joint_names))
    q, v, _ = states(model, 1)
    at = oracle.state(model.joint_positions(q[0]))
    theirs = pin.computeCoriolisMatrix(oracle.model, oracle.model.createData(), at,
                                       oracle._theirs(v[0]))  # fmt: skip
    theirs = theirs[np.ix_(oracle._order, oracle._order)]
    close(rm.coriolis(model, q, v)[0] @ v[0], theirs @ v[0], 1e-11)


def projected(name: str) -> tuple[rm.Model, Oracle, Array, Array, Array, Array, Array]:
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text(), names=list(model.joint_names))
    q, v, a = (x[0] for x in states(model, 1))
    positions = dict(model.joint_positions(q))
    if model.floating_base is not None:
        positions[model.floating_base] = q[:7]
    at = oracle.state(positions)
    big = model.constraint_jacobian(q)
    return model, oracle, q, v, a, at, big


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", few(["mini_cheetah", "six_bar", "belt_leg", "four_bar"], "belt_leg")
)
def test_projections_of_pinocchio(name: str) -> None:
    model, oracle, q, v, a, at, big = projected(name)
    data = oracle.model.createData()
    static = oracle.inverse(at, np.zeros(oracle.nv), np.zeros(oracle.nv))
    close(rm.gravity_force(model, q), big.T @ static, 1e-11)
    close(
        rm.mass_inverse(model, q) @ (big.T @ oracle.mass_matrix(at) @ big), np.eye(model.nv), 1e-9
    )
    # the oracle's root link counts for its centre of mass on a fixed base, not for the momentum
    momentum = oracle.centroidal_momentum(at, big @ v, with_root=model.floating_base is not None)
    close(rm.centroidal_map(model, q) @ v, momentum, 1e-11)
    spanning = big @ a + model.constraint_bias(q, v)
    theirs, accelerations = oracle._theirs(big @ v), oracle._theirs(spanning)
    frame = model.bodies[-1].name
    index = oracle._link_frame(frame)
    pin.forwardKinematics(oracle.model, data, at, theirs, accelerations)
    pin.computeJointJacobians(oracle.model, data)
    pin.updateFramePlacements(oracle.model, data)
    swap = [3, 4, 5, 0, 1, 2]
    for reference in REFERENCES:
        kind = getattr(pin.ReferenceFrame, NAMED[reference])
        theirs_j = pin.getFrameJacobian(oracle.model, data, index, kind)[:, oracle._order][swap]
        close(rm.jacobian(model, q, frame, reference=reference), theirs_j @ big, 1e-11, least=1.0)
        moved = pin.getFrameVelocity(oracle.model, data, index, kind).vector[swap]
        close(rm.frame_velocity(model, q, v, frame, reference=reference), moved, 1e-11, least=1.0)
        moved = pin.getFrameClassicalAcceleration(oracle.model, data, index, kind).vector[swap]
        close(
            rm.frame_acceleration(model, q, v, a, frame, reference=reference),
            moved,
            1e-11,
            least=1.0,
        )
    total = pin.centerOfMass(oracle.model, data, at, theirs, accelerations)
    share = sum(each.mass for each in oracle.model.inertias[1:]) / model.mass
    assert abs(share - 1.0) < 1e-12
    close(rm.center_of_mass(model, q), total, 1e-11, least=1.0)
    close(rm.dynamics.center_of_mass_velocity(model, q, v), data.vcom[0], 1e-11, least=1.0)
    close(rm.center_of_mass_jacobian(model, q) @ v, data.vcom[0], 1e-11, least=1.0)
    close(rm.dynamics.center_of_mass_acceleration(model, q, v, a), data.acom[0], 1e-11, least=1.0)


FUNCTIONS = {
    "gravity_force": "q", "mass_inverse": "q", "coriolis": "qv", "center_of_mass_jacobian": "q",
    "centroidal_map": "q", "center_of_mass_velocity": "qv", "center_of_mass_acceleration": "qva",
    "jacobian": "q", "frame_velocity": "qv", "frame_acceleration": "qva", "frame_bias": "qv",
}  # fmt: skip


@pytest.mark.slow_cases(
    "five_bar-frame_bias", "five_bar-frame_velocity", "five_bar-center_of_mass_velocity",
    "five_bar-gravity_force", "five_bar-center_of_mass_jacobian",
    "five_bar-center_of_mass_acceleration",
)  # fmt: skip
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", few(["mini_cheetah", "five_bar", "spatial"], "five_bar"))
def test_compiled_and_numpy_agree_in_batches(name: str, function: str) -> None:
    model = spatial() if name == "spatial" else rm.robots.load(name)
    given = dict(zip("qva", states(model, 4), strict=True))
    arguments = [given[x].reshape(2, 2, -1) for x in FUNCTIONS[function]]
    call, framed = getattr(rm.dynamics, function), "frame" in function or function == "jacobian"
    link = (model.bodies[-1].name, (0.1, -0.2, 0.3))
    for reference in REFERENCES if framed else (None,):
        frame = (link,) if framed else ()
        options = {"reference": reference} if framed else {}
        found = call(model, *arguments, *frame, **options)
        again = call(model, *arguments, *frame, **options)  # by the kernel that is there
        plain = call(model, *arguments, *frame, **options, backend="numpy")
        close(found, plain, 1e-12, least=1.0)
        np.testing.assert_array_equal(found, again)
        kernel = rm.compile(model, function, frame=link if framed else None, **options)
        close(kernel(*arguments), plain, 1e-12, least=1.0)
        one = call(model, *(x[1, 0] for x in arguments), *frame, **options)
        close(one, plain[1, 0], 1e-12, least=1.0)


@pytest.mark.slow
def test_frames_accelerate_as_differences_say() -> None:
    model = spatial()
    (q,), (v,), (a,) = states(model, 1)
    point, h = ("rod", (0.1, 0.2, 0.3)), 1e-3
    reference = "local_world_aligned"
    bias = rm.dynamics.frame_bias(model, q, v, point, reference=reference)
    j = rm.jacobian(model, q, point, reference=reference)
    whole = rm.frame_acceleration(model, q, v, a, point, reference=reference)
    close(j @ a + bias, whole, 1e-12)
    change = rate(lambda x: rm.frame_velocity(model, x, v, point, reference=reference),
                  model, q, v, h)  # fmt: skip
    close(bias, change, 1e-8)
    com = rate(lambda x: rm.dynamics.center_of_mass_velocity(model, x, v), model, q, v, h)
    close(rm.dynamics.center_of_mass_acceleration(model, q, v, 0 * a), com, 1e-8)
    still = rm.frame_acceleration(model, q, v, a, "rod")
    pose = rm.frame_pose(model, q, "rod")
    aligned = rm.frame_acceleration(model, q, v, a, "rod", reference="local_world_aligned")
    close(pose[:3, :3] @ still[3:], aligned[3:], 1e-12)


@pytest.mark.slow
def test_gravity_with_wrenches_and_springs() -> None:
    model = rm.load(
        rm.robots.path("four_bar"),
        extend='<robot name="x"><joint name="joint1">'
        '<dynamics damping="3" spring_stiffness="2"/></joint></robot>',
    )
    q, v = model.random_configuration(0), np.zeros(model.nv)
    wrench = {"link2": np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0])}
    for passive in (False, True):
        found = rm.gravity_force(model, q, f_ext=wrench, passive=passive)
        close(found, rm.rnea(model, q, v, v, f_ext=wrench, passive=passive), 1e-12)
    assert not np.allclose(rm.gravity_force(model, q), rm.gravity_force(model, q, passive=True))


def test_limits_are_arrays() -> None:
    model = rm.robots.load("mini_cheetah")
    for name in ("lower", "upper", "velocity_limit", "effort_limit"):
        values = getattr(model, name)
        assert values.shape == (model.nv,)
        joints = {joint.name: joint for joint in model.joints}
        for label, value in zip(model.dof_names, values, strict=True):
            if label in joints and joints[label].nv == 1:
                assert value == getattr(joints[label], name)
            else:
                assert value == (-np.inf if name == "lower" else np.inf)
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0


def test_links_fixed_to_the_world_do_not_move() -> None:
    model = rm.robots.load("four_bar")
    (q,), (v,), (a,) = states(model, 1)
    fixed = next(frame.name for frame in model.frames if frame.body < 0)
    for reference in REFERENCES:
        assert not rm.frame_acceleration(model, q, v, a, fixed, reference=reference).any()
        assert not rm.jacobian(model, q, fixed, reference=reference).any()
