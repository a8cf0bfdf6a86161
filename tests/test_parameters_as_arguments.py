"""Parameters as arguments: the same as robots of changed descriptions, for every kind and function.

The changed description is made here, number by number, and built anew: nothing is shared with the
package's way from parameters to a model.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from agreement import close
from cases import few
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from test_polynomials import KNEE, LOOPED

import robomodel as rm
from robomodel.description import (
    Description,
    Inertial,
    JointCoupling,
    LinkCoupling,
    PolynomialCoupling,
    Pose,
)
from robomodel.model.build import build

Values = Mapping[str, float]
TURNS = ("rx", "ry", "rz")

SPATIAL = """<robot name="spatial">
  <link name="hull"><inertial><origin xyz="0.01 0.02 0.03"/><mass value="4"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.3"/></inertial></link>
  <link name="crank"><inertial><origin xyz="0 0 0.05"/><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/></inertial></link>
  <link name="coupler"><inertial><origin xyz="0.1 0 0"/><mass value="0.4"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <link name="foot"><inertial><origin xyz="0 0.02 -0.1"/><mass value="0.3"/>
    <inertia ixx="0.003" ixy="0.0005" ixz="0" iyy="0.004" iyz="0" izz="0.001"/></inertial></link>
  <joint name="turn" type="revolute"><parent link="hull"/><child link="crank"/>
    <origin xyz="0.1 0 0.2" rpy="0.3 0.2 0.1"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="10" velocity="10"/></joint>
  <joint name="ball" type="spherical"><parent link="crank"/><child link="coupler"/>
    <origin xyz="0 0 0.1"/></joint>
  <joint name="swing" type="revolute" independent="false"><parent link="hull"/><child link="foot"/>
    <origin xyz="0.4 0 0.1"/><axis xyz="0 0.8 0.6"/>
    <limit lower="-2" upper="2" effort="10" velocity="10"/></joint>
  <loop name="rod" type="rod" length="0.2">
    <predecessor link="coupler"><origin xyz="0.2 0 0.02"/></predecessor>
    <successor link="foot"><origin xyz="0 0.01 0.1"/></successor></loop>
</robot>"""


def changed(d: Description, values: Values) -> Description:
    """The description with these parameters, each put where the file has it."""
    turns: dict[str, list[float]] = {}
    for name, value in values.items():
        owner, _, key = name.rpartition(".")
        if key in TURNS:
            turns.setdefault(owner, [0.0] * 3)[TURNS.index(key)] = value
        else:
            d = _with(d, owner, key, value)
    joints = []
    for joint in d.joints:
        turn = Rotation.from_rotvec(turns.get(joint.name, [0.0] * 3)).as_matrix()
        rows = (np.array(joint.origin.rotation) @ turn).tolist()
        pose = Pose(joint.origin.xyz, tuple(map(tuple, rows)))
        joints.append(replace(joint, origin=pose) if joint.name in turns else joint)
    return replace(d, joints=tuple(joints))


def _with(d: Description, owner: str, key: str, value: float) -> Description:
    if owner == "gravity":
        gravity = list(d.gravity or (0.0, 0.0, -9.81))
        gravity["xyz".index(key)] = value
        return replace(d, gravity=tuple(gravity))
    for n, joint in enumerate(d.joints):
        if joint.name != owner:
            continue
        if key in ("armature", "damping", "friction"):
            new = replace(joint, **{key: value})
        elif key in ("x", "y", "z"):
            xyz = list(joint.origin.xyz)
            xyz["xyz".index(key)] = value
            new = replace(joint, origin=Pose(tuple(xyz), joint.origin.rotation))
        elif joint.mimic is not None:
            assert key == joint.mimic.joint
            new = replace(joint, mimic=replace(joint.mimic, multiplier=-value))
        else:
            continue
        return replace(d, joints=(*d.joints[:n], new, *d.joints[n + 1 :]))
    loop, _, end = owner.rpartition(".")
    for n, each in enumerate(d.loops):
        if owner == each.name and key == "length":
            new = replace(each, length=value)
        elif loop == each.name:
            anchor = getattr(each, end)
            xyz = list(anchor.origin.xyz)
            xyz["xyz".index(key)] = value
            pose = Pose(tuple(xyz), anchor.origin.rotation)
            new = replace(each, **{end: replace(anchor, origin=pose)})
        else:
            continue
        return replace(d, loops=(*d.loops[:n], new, *d.loops[n + 1 :]))
    for n, coupling in enumerate(d.couplings):
        if coupling.name != owner:
            continue
        if isinstance(coupling, LinkCoupling):
            new = replace(coupling, ratio=-value)
        elif isinstance(coupling, PolynomialCoupling):
            powers = list(coupling.coefficients)
            powers[int(key[1:])] = value
            new = replace(coupling, coefficients=tuple(powers))
        else:
            assert isinstance(coupling, JointCoupling)
            terms = tuple((j, value if j == key else k) for j, k in coupling.terms)
            new = replace(coupling, terms=terms)
        return replace(d, couplings=(*d.couplings[:n], new, *d.couplings[n + 1 :]))
    for n, link in enumerate(d.links):
        if link.name == owner and link.inertial is not None:
            new = replace(link, inertial=_inertial(link.inertial, key, value))
            return replace(d, links=(*d.links[:n], new, *d.links[n + 1 :]))
    raise AssertionError(f"{owner}.{key}")


def _inertial(old: Inertial, key: str, value: float) -> Inertial:
    """An inertial with one of the ten about the link's origin changed, by its pseudo-inertia."""
    xx, xy, xz, yy, yz, zz = old.inertia
    turn, c = np.array(old.origin.rotation), np.array(old.origin.xyz)
    about = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    about = about + old.mass * (c @ c * np.eye(3) - np.outer(c, c))
    mass, h = old.mass, old.mass * c
    if key == "mass":
        mass = value
    elif key in ("mx", "my", "mz"):
        h[("mx", "my", "mz").index(key)] = value
    else:
        i, j = ("xyz".index(x) for x in key[1:])
        about[i, j] = about[j, i] = value
    c = h / mass
    about = about - mass * (c @ c * np.eye(3) - np.outer(c, c))
    entries = [float(about[i, j]) for i in range(3) for j in range(i, 3)]
    return Inertial(mass, tuple(entries), Pose(tuple(c.tolist())))


def model_of(robot: str) -> rm.Model:
    if robot == "spatial":
        return rm.load(SPATIAL, floating_base=True)
    if robot == "knee":
        return rm.load(KNEE, floating_base=True)
    return rm.robots.load(robot)


INERTIAL = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def inertial(model: rm.Model, link: str) -> Values:
    p = rm.parameters(model)
    names = [f"{link}.{each}" for each in INERTIAL]
    return {n: 1.2 * p[n] + (0.01 if ".I" not in n else 0.002) for n in names}


def moved(model: rm.Model, *names: str, by: float = 0.01) -> Values:
    p = rm.parameters(model, geometry=True)
    return {name: p[name] + by * (1 + 0.3 * n) for n, name in enumerate(names)}


def _cases() -> Iterator[tuple[str, str, Callable[[rm.Model], Values]]]:
    yield "spatial", "inertial", lambda m: inertial(m, "coupler") | inertial(m, "hull")
    yield "spatial", "passive", lambda m: {"turn.armature": 0.3, "swing.damping": 0.4}
    yield "spatial", "gravity", lambda m: {"gravity.x": 0.7, "gravity.z": -1.62}
    yield (
        "spatial",
        "origins",
        lambda m: moved(
            m,
            *(f"swing.{k}" for k in ("x", "y", "z", "rx", "ry", "rz")),
            "turn.y",
            "ball.z",
            "turn.ry",
        ),
    )
    yield (
        "spatial",
        "rod",
        lambda m: moved(m, "rod.length", "rod.predecessor.x", "rod.successor.y", "rod.successor.z"),
    )
    yield "four_bar", "inertial", lambda m: inertial(m, "link2")
    yield (
        "four_bar",
        "loop",
        lambda m: moved(m, "joint2.x", "joint3.y", "joint1.x", f"{m.loops[0].name}.successor.x"),
    )
    yield "tello", "inertial", lambda m: inertial(m, m.bodies[5].name)
    yield (
        "tello",
        "loops",
        lambda m: {
            k: x
            for loop in m.loops[:3]
            for k, x in moved(m, *_of_rod(m, loop.name), by=1e-3).items()
        },
    )
    yield "tello", "origin", lambda m: moved(m, *(f"{m.joint_names[1]}.{k}" for k in ("x", "rz")))
    yield (
        "parallel_ankle",
        "loops",
        lambda m: {
            k: x for loop in m.loops for k, x in moved(m, *_of_rod(m, loop.name), by=1e-3).items()
        },
    )
    yield "mini_cheetah", "inertial", lambda m: inertial(m, m.bodies[7].name)
    yield (
        "mini_cheetah",
        "coupling",
        lambda m: {f"{c.name}.{c.terms[-1][0]}": 1.3 * c.terms[-1][1] for c in m.couplings[:5]},
    )
    yield (
        "mini_cheetah",
        "origin",
        lambda m: moved(m, *(f"{m.joint_names[5]}.{k}" for k in ("x", "y", "z", "rx", "ry", "rz"))),
    )
    yield (
        "knee",
        "polynomials",
        lambda m: {"condyle.c2": 0.03, "tilting.c0": 0.15, "slide.c3": 0.0, "gear.tilt": -8.0},
    )
    yield (
        "planar_leg_linkage",
        "passive",
        lambda m: {
            f"{j.name}.{k}": 0.1 for j in m.joints[:4] for k in ("armature", "damping") if j.nv == 1
        },
    )


def _of_rod(model: rm.Model, loop: str) -> list[str]:
    return (
        [f"{loop}.length"] if f"{loop}.length" in rm.parameters(model, geometry=True).names else []
    )


QUICK = ("spatial-rod", "four_bar-loop", "parallel_ankle-loops", "knee-polynomials")


@pytest.fixture(params=few([f"{robot}-{kind}" for robot, kind, _ in _cases()], *QUICK))
def case(request: pytest.FixtureRequest) -> tuple[rm.Model, Values, rm.Model]:
    """A model, values, and the model of the changed description."""
    for robot, kind, values in _cases():
        if f"{robot}-{kind}" == request.param:
            model = model_of(robot)
            given = values(model)
            assert given
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rm.DescriptionWarning)
                other = build(changed(model.description, given), independent=model.dof_names)
            assert other.dof_names == model.dof_names
            return model, given, other
    raise AssertionError


@pytest.mark.slow_cases("spatial-rod", "knee-polynomials", "parallel_ankle-loops", "four_bar-loop")
@pytest.mark.filterwarnings("ignore:contacts contradict")  # points of robots of few freedoms
def test_functions_are_those_of_the_changed_robot(
    case: tuple[rm.Model, Values, rm.Model],
) -> None:
    model, given, other = case
    rng = np.random.default_rng(0)
    q = np.array([other.random_configuration(rng) for _ in range(3)])
    v, x = rng.normal(size=(2, 3, model.nv))
    link = model.bodies[-1].name
    frame = (link, (0.1, -0.2, 0.3))
    wrench = {link: rng.normal(size=6)}
    calls: list[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]] = [
        (rm.rnea, (q, v, x), {"f_ext": wrench}),
        (rm.aba, (q, v, x), {"passive": True}),
        (rm.aba, (q, v, x), {"method": "projection"}),
        (rm.aba, (q, v, x), {"method": "lagrange"}),
        (rm.crba, (q,), {}),
        (rm.bias_force, (q, v), {}),
        (rm.energy, (q, v), {}),
        (rm.frame_pose, (q, frame), {}),
        (rm.jacobian, (q, frame), {"reference": "world"}),
        (rm.center_of_mass, (q,), {}),
        (rm.passive_force, (q, v), {}),
        (rm.actuator_map, (q,), {}),
        (rm.efpa, (q, frame), {}),
        (rm.contact_aba, (q, v, x, frame), {"unilateral": False}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        neutral = rm.with_parameters(model, given).neutral()
    # limbs are those of the model's own numbers, other joints are locked at neutral, closed anew
    alike = np.allclose(neutral, other.neutral(), rtol=0.0, atol=1e-12)
    if alike and rm.limb_joints(model) == rm.limb_joints(other):
        calls += [
            (rm.armature, (q,), {}),
            (rm.aba, (q, v, x), {"method": "unconstrained"}),
        ]
    for function, arguments, options in calls:
        ours = function(model, *arguments, parameters=given, backend="numpy", **options)
        theirs = function(other, *arguments, backend="numpy", **options)
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        for one, two in pairs:
            close(one, two, 1e-10, least=1e-5)  # some are zero, as a parallelogram's armature


@pytest.mark.slow_cases("spatial-rod", "knee-polynomials", "parallel_ankle-loops")
def test_models_are_the_same_too(case: tuple[rm.Model, Values, rm.Model]) -> None:
    model, given, other = case
    with warnings.catch_warnings():  # bodies may be impossible
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        same = rm.with_parameters(model, given)
    p = rm.parameters(same, geometry=True)
    for name, value in given.items():
        if not name.endswith((".rx", ".ry", ".rz")):
            assert p[name] == pytest.approx(value, rel=1e-12)
    rng = np.random.default_rng(1)
    q = np.array([same.random_configuration(rng) for _ in range(2)])
    assert np.max(np.abs(other.residual(q)), initial=0.0) < 1e-9
    assert np.max(np.abs(same.residual(same.neutral())), initial=0.0) < 1e-9
    v, x = rng.normal(size=(2, 2, model.nv))
    close(rm.aba(same, q, v, x, backend="numpy"), rm.aba(other, q, v, x, backend="numpy"), 1e-10)


SENSITIVE = ("rnea", "aba", "crba", "energy", "jacobian", "actuator_map", "close")
STEP = 0.003
STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of eighth order


@pytest.mark.slow_cases("spatial-rod", "knee-polynomials")
def test_sensitivities_are_differences_through_closure(
    case: tuple[rm.Model, Values, rm.Model],
) -> None:
    model, given, other = case
    rng = np.random.default_rng(3)
    near = other.neutral()  # far from dead points
    q = np.array([other.random_configuration(rng, near=near) for _ in range(2)])
    v, x = rng.normal(size=(2, 2, model.nv))
    frame = (model.bodies[-1].name, (0.1, -0.2, 0.3))
    names = list(given)[:2]
    p = rm.parameters(model, geometry=True)

    def moved(name: str, n: int) -> tuple[NDArray[np.float64], dict[str, float]]:
        size = STEP * max(abs(p[name]), 0.1)
        at = {**given, name: given[name] + n * size}
        return model.close(q, parameters=at), at

    for function in SENSITIVE:
        arguments = (q, v, x)[
            : 3 if function in ("rnea", "aba") else 2 if function == "energy" else 1
        ]
        options = {"frame": frame} if function == "jacobian" else {}
        found = rm.sensitivity(
            model, function, arguments, names, parameters=given, backend="numpy", **options
        )
        for i, name in enumerate(names):
            size = STEP * max(abs(p[name]), 0.1)
            expected = 0.0
            for n, factor in enumerate(STENCIL, 1):
                for sign in (1, -1):
                    at, values = moved(name, sign * n)
                    expected = expected + sign * factor / size * value(
                        model, function, (at, *arguments[1:]), values, frame
                    )
            both = found if isinstance(found, tuple) else (found,)
            flat = np.concatenate([each[..., i].reshape(len(q), -1) for each in both], axis=-1)
            close(flat, expected, 1e-7, least=1e-3)


def value(
    model: rm.Model,
    function: str,
    arguments: tuple[NDArray[np.float64], ...],
    values: Values,
    frame: object,
) -> NDArray[np.float64]:
    """A function's numbers (states, n)."""
    if function == "close":
        return arguments[0]
    call = getattr(rm, function)
    more = (frame,) if function == "jacobian" else ()
    result = call(model, *arguments, *more, parameters=values, backend="numpy")
    both = result if isinstance(result, tuple) else (result,)
    return np.concatenate([x.reshape(len(arguments[0]), -1) for x in both], axis=-1)


# ---- batches, kernels ----------------------------------------------------------------------------


def test_parameters_broadcast_with_states() -> None:
    model = rm.robots.load("four_bar")
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(4)])
    v, tau = rng.normal(size=(2, 4, model.nv))
    masses = np.array([[1.0], [2.0]])
    given = {"link2.mass": masses, "joint1.damping": rng.uniform(size=4), "gravity.z": -3.0}
    found = rm.aba(model, q, v, tau, parameters=given, passive=True)
    assert found.shape == (2, 4, model.nv)
    for i in range(2):
        for n in range(4):
            one = {
                "link2.mass": masses[i, 0],
                "joint1.damping": given["joint1.damping"][n],
                "gravity.z": -3.0,
            }
            expected = rm.aba(model, q[n], v[n], tau[n], parameters=one, passive=True)
            close(found[i, n], expected, 1e-12)
    names = ["link2.mass", "gravity.z", "link3.mx"]
    kernel = rm.compile(model, "aba", parameters=names)
    p = np.array([2.0, -3.0, rm.parameters(model)["link3.mx"]])
    close(
        kernel(q, v, tau, p),
        rm.aba(model, q, v, tau, parameters={"link2.mass": 2.0, "gravity.z": -3.0}),
        1e-12,
    )
    single = rm.compile(model, "aba", parameters=names, dtype="float32")
    numbers = [x.astype(np.float32) for x in (q, v, tau, p)]
    close(single(*numbers), kernel(q, v, tau, p), 1e-3)
    same = pickle.loads(pickle.dumps(kernel))
    close(same(q, v, tau, p), kernel(q, v, tau, p), 1e-15)


@pytest.mark.slow
def test_what_cannot_be_closed_is_not_a_number() -> None:
    model = rm.robots.load("four_bar")
    q = model.configuration({"joint1": 0.8})
    with pytest.warns(RuntimeWarning, match="1 of 3 configurations"):
        closed = model.close(
            np.tile(q, (3, 1)), parameters={"joint2.x": np.array([0.5, 0.52, 9.0])}
        )
    close(closed[0], q, 1e-9)
    assert np.isfinite(closed[1]).all()
    assert closed[1][0] == q[0]
    assert np.isnan(closed[2]).all()
    with pytest.warns(RuntimeWarning, match="cannot be closed"):  # redundant conditions open
        assert np.isnan(model.close(q, parameters={"joint2.z": 0.1})).all()
    with pytest.raises(rm.errors.ClosureError, match="does not close by these parameters"):
        rm.with_parameters(model, {"joint2.z": 0.1})
    rod = rm.robots.load("tello")
    at = rod.neutral()
    with pytest.warns(RuntimeWarning, match="cannot be closed"):
        assert np.isnan(rod.close(at, parameters={"left-hip-rod-1.length": -0.155})).all()
    belt = rm.robots.load("mini_cheetah")
    coupling = belt.couplings[0]
    own = f"{coupling.name}.{coupling.terms[0][0]}"
    with pytest.raises(rm.DescriptionError, match="no longer determine"):
        rm.with_parameters(belt, {own: 0.0})
    v = np.zeros(belt.nv)
    with pytest.warns(RuntimeWarning, match="no result by these parameters"):
        a = rm.aba(belt, belt.neutral(), v, v, parameters={own: np.array([1.0, 0.0])})
    assert np.isfinite(a[0]).all()
    assert np.isnan(a[1]).any()
    with pytest.raises(rm.DescriptionError, match="length"):
        rm.with_parameters(rod, {"left-hip-rod-1.length": -0.155})


@pytest.mark.slow
def test_coefficients_of_polynomials_that_loops_are_solved_with() -> None:
    model = rm.load(LOOPED, independent=["flexion", "push"])
    given = {"condyle.c1": -0.012, "tilting.c2": 0.6, "slide.c3": 0.0}
    other = build(changed(model.description, given), independent=model.dof_names)
    rng = np.random.default_rng(0)
    q = np.array([other.random_configuration(rng) for _ in range(3)])
    v, x = rng.normal(size=(2, 3, model.nv))
    for function, arguments in ((rm.rnea, (q, v, x)), (rm.aba, (q, v, x)), (rm.crba, (q,))):
        found = function(model, *arguments, parameters=given)
        close(found, function(other, *arguments), 1e-10)
        close(function(rm.with_parameters(model, given), *arguments), found, 1e-10)


SPRUNG = """<robot name="springs">
  <joint name="ball"><dynamics damping="0.1" spring_stiffness="{}"/></joint>
  <joint name="swing"><dynamics damping="0.1" spring_stiffness="{}" spring_reference="{}"/></joint>
  <spring name="s" stiffness="{}" length="{}" damping="{}"><predecessor link="hull"/>
    <successor link="foot"><origin xyz="0 0 0.05"/></successor></spring>
  <spring name="turn" stiffness="{}" reference="{}" damping="{}" friction="{}">
    <joint name="turn"/><joint name="swing" ratio="-2"/></spring></robot>"""
OF_SPRINGS = (
    "ball.stiffness", "swing.stiffness", "swing.reference", "s.stiffness", "s.length", "s.damping",
    "turn.spring.stiffness", "turn.spring.reference", "turn.spring.damping", "turn.spring.friction",
)  # fmt: skip


@pytest.mark.slow
def test_springs_of_joints_points_and_cables() -> None:
    before = (2.0, 3.0, 0.1, 80.0, 0.3, 1.0, 4.0, 0.2, 0.0, 0.1)
    after = (5.0, 1.0, -0.1, 70.0, 0.35, 2.0, 2.0, -0.2, 0.5, 0.3)
    model, right = (
        rm.load(SPATIAL, extend=SPRUNG.format(*x), floating_base=True) for x in (before, after)
    )
    listed = rm.parameters(model, geometry=True)
    assert [listed[name] for name in OF_SPRINGS] == list(before)
    values = dict(zip(OF_SPRINGS, after, strict=True))
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, model.nv))
    steps = np.repeat(tau[:, None], 5, axis=1)
    given = rm.with_parameters(model, values)
    for function in (
        lambda m, **p: rm.passive_force(m, q, v, **p),
        lambda m, **p: rm.aba(m, q, v, tau, passive=True, **p),
        lambda m, **p: np.stack(rm.energy(m, q, v, **p)),
        lambda m, **p: rm.rollout(m, q, v, steps, 1e-3, **p).v,
    ):
        close(function(model, parameters=values), function(right), 1e-10)
        close(function(given), function(right), 1e-10)
    names = ["s.stiffness", "swing.reference"]
    slopes = rm.sensitivity(model, "passive_force", (q, v), names)
    for n, name in enumerate(names):  # linear in both
        one, two = (
            rm.passive_force(model, q, v, parameters={name: listed[name] + d}) for d in (1.0, -1.0)
        )
        close(np.asarray(slopes)[..., n], (one - two) / 2.0, 1e-9)
    with pytest.raises(rm.DescriptionError, match="stiffness is -1"):
        rm.with_parameters(model, {"s.stiffness": -1.0})


def test_the_spring_of_a_loops_joint() -> None:
    (loop,) = rm.robots.load("four_bar").description.loops
    text = """<robot name="x"><loop name="{}" type="revolute"><predecessor link="{}">
      <origin xyz="{} {} {}"/></predecessor>
      <successor link="{}"><origin xyz="{} {} {}"/></successor>
      <axis xyz="{} {} {}"/><dynamics damping="{}" spring_stiffness="{}"/></loop></robot>"""
    one, two = loop.predecessor, loop.successor
    place = (loop.name, one.link, *one.origin.xyz, two.link, *two.origin.xyz, *loop.axis)
    model, right = (
        rm.load(rm.robots.path("four_bar"), extend=text.format(*place, *x))
        for x in ((0.1, 3.0), (0.4, 5.0))
    )
    values = {f"{loop.name}.damping": 0.4, f"{loop.name}.stiffness": 5.0}
    q, v = model.configuration({"joint1": 0.4}), [0.7]
    found = rm.passive_force(model, q, v, parameters=values)
    close(found, rm.passive_force(right, q, v), 1e-10)
    close(rm.passive_force(rm.with_parameters(model, values), q, v), found, 1e-10)


def test_parameters_that_open_a_loop_are_told() -> None:
    model = rm.robots.load("four_bar")
    with pytest.warns(RuntimeWarning, match="open"):
        rm.crba(model, model.neutral(), parameters={"joint2.x": 0.7})


@pytest.mark.slow
def test_what_decides_by_numbers_is_made_of_each_robot() -> None:
    """Open trees and all else that is not one program; contacts and motors, batches of robots."""
    model = rm.robots.load("parallel_ankle")
    rods = [f"{loop.name}.length" for loop in model.loops]
    lengths = [rm.parameters(model, geometry=True)[name] for name in rods]
    given = {
        rods[0]: lengths[0] + np.array([1e-3, 0.0, 50.0]),
        rods[1]: lengths[1] - 1e-3,
        f"{model.bodies[-1].name}.mass": np.array([1.0, 2.0, 1.0]),
        f"{model.couplings[0].name}.{model.couplings[0].terms[-1][0]}": -8.5,
    }
    robots = [
        rm.with_parameters(model, {k: np.broadcast_to(x, 3)[i] for k, x in given.items()})
        for i in range(2)
    ]
    rng = np.random.default_rng(1)
    with pytest.warns(RuntimeWarning, match="1 of 3"):
        q = model.close(np.tile(model.neutral(), (3, 1)), parameters=given)
    v, tau = 0.1 * rng.normal(size=(2, 3, model.nv))
    frames = [(model.bodies[-1].name, (x, 0.0, -0.05)) for x in (-0.1, 0.1)]
    g = np.array([r.constraint_jacobian(at) for r, at in zip(robots, q, strict=False)] * 2)[:3]
    speeds = np.einsum("nij,nj->ni", g, v)
    push = rng.normal(size=speeds.shape)
    calls: list[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]] = [
        (rm.aba, (q, v, tau), {"method": "approximate", "f_ext": {frames[0][0]: np.ones(6)}}),
        (rm.accelerations, (q, speeds, push), {}),
        (rm.impulse, (q, v, frames), {"unilateral": True}),
        (rm.contact_aba, (q, 0.0 * v, tau, frames), {"friction": 0.4}),
        (rm.torque_limits, (q, v), {}),
        (rm.actuator_forces, (q, tau), {}),
        (rm.torque_polytope, (q, list(model.dof_names)), {}),
    ]
    for function, arguments, options in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = function(model, *arguments, parameters=given, **options)
        for n, robot in enumerate(robots):
            one = (x[n] if isinstance(x, np.ndarray) else x for x in arguments)
            expected = function(robot, *one, backend="numpy", **options)
            polygon = function is rm.torque_polytope
            ours = (
                (found[n],)
                if polygon
                else tuple(x[n] for x in (found if isinstance(found, tuple) else (found,)))
            )
            theirs = expected if isinstance(expected, tuple) else (expected,)
            tolerance = 1e-9
            if function in (rm.impulse, rm.contact_aba):
                # redundant points: shares are soft, motions as exact as the iteration's residual
                ours, theirs, tolerance = ours[:1], theirs[:1], 1e-7
            for a, b in zip(ours, theirs, strict=True):
                close(np.asarray(a, float), np.asarray(b, float), tolerance, least=1e-4)
        if not polygon:
            last = found[0] if isinstance(found, tuple) else found
            assert np.isnan(last[2]).all()
    with pytest.warns(RuntimeWarning, match="no robot by some of these parameters"):
        rm.aba(model, q, v, tau, method="unconstrained", parameters={rods[0]: 50.0})
    at_neutral = rm.armature(model, parameters={rods[1]: lengths[1] - 1e-3})
    other = rm.with_parameters(model, {rods[1]: lengths[1] - 1e-3})
    close(at_neutral, rm.armature(other), 1e-9)


@pytest.mark.slow
def test_a_corrected_tree_of_each_robot() -> None:
    model = rm.robots.load("four_bar")
    q = model.random_configuration(0)
    v, tau = np.ones(model.nv), np.array([0.3])
    given = {"link2.mass": np.array([0.5, 0.8])}
    tree = rm.approximate_tree(model)
    for options in ({}, {"tree": tree}):
        found = rm.correction_force(model, q, v, tau, parameters=given, **options)
        for n, mass in enumerate(given["link2.mass"].tolist()):
            one = rm.with_parameters(model, {"link2.mass": mass})
            close(found[n], rm.correction_force(one, q, v, tau, **options), 1e-10, least=1.0)


@pytest.mark.slow
def test_motors_follow_the_ratios_of_their_gears() -> None:
    """Limits that a file gives at joints are those of motors, carried over by the ratio."""
    for robot in ("belt_leg", "tello"):
        model = rm.robots.load(robot)
        ratios = {f"{c.name}.{n}": 1.1 * k for c in model.couplings for n, k in c.terms[-1:]}
        changed = rm.with_parameters(model, ratios)
        for one, two in zip(changed.actuators, build(changed.description).actuators, strict=True):
            assert dict(one.terms) == pytest.approx(dict(two.terms), rel=1e-12)
            assert one.effort_limit == pytest.approx(two.effort_limit, rel=1e-12)
            assert one.velocity_limit == pytest.approx(two.velocity_limit, rel=1e-12)
    near = model.neutral()
    q, v = model.random_configuration(0, near=near), np.zeros(model.nv)
    name = next(iter(ratios))
    found = rm.sensitivity(model, "torque_limits", (q, v), name)[1]
    both = [
        rm.torque_limits(rm.with_parameters(model, {name: ratios[name] / 1.1 * (1 + s)}), q)[1]
        for s in (1e-5, -1e-5)
    ]
    some = np.isfinite(both[0])
    expected = (both[0][some] - both[1][some]) / (2e-5 * ratios[name] / 1.1)
    close(found[some, 0], expected, 1e-6, least=1.0)


def test_values_that_do_not_fit_are_named() -> None:
    """Shapes beside those of states, and numbers that are not finite."""
    model = rm.robots.load("four_bar")
    q, zero, tau = np.tile(model.neutral(), (4, 1)), np.zeros((4, 1)), np.zeros((3, 1))
    calls = {
        "crba": lambda given: rm.crba(model, q, parameters=given),
        "checked": lambda given: rm.crba(model, q, parameters=given, check=True),
        "close": lambda given: model.close(q, parameters=given),
        "rollout": lambda given: rm.rollout(model, q, zero, tau, 1e-3, parameters=given),
        "many": lambda given: rm.Simulation(model, 4, parameters=given),
        "simulate": lambda given: rm.simulate(model, q[0], duration=0.01, parameters=given),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=r"'link2\.mass'.*\(3,\)|\(3,\) of 'link2\.mass'"):
            call({"link2.mass": np.ones(3)})
        for wrong in (np.nan, np.inf):
            with pytest.raises(ValueError, match=r"'link2\.mass' is (nan|inf), which"):
                call({"link2.mass": wrong})
        with pytest.raises(ValueError, match=r"not finite|one number"):
            call({"link2.mass": [1.0, np.nan, 1.0, 1.0]})
