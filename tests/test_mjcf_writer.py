"""MJCF that is written: MuJoCo loads it, and it reads back as the same robot."""

import io
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import assume, given, settings
from mechanisms import KINDS, mechanisms, random_mechanism
from mujoco_side import (
    MujocoSide,
    assert_forward_dynamics,
    assert_same_dynamics,
    assert_smooth_dynamics,
    in_world,
    motions,
    spanning,
)

import robomodel as rm
from robomodel.model.approximate import approximate
from robomodel.model.build import build
from robomodel.writers.mjcf import to_mjcf

QUICK = [
    pytest.param(name, marks=pytest.mark.slow) if name == "tello_with_arms" else name
    for name in rm.robots.names()
]
UNSAYABLE = {"jvrc1": "rotor", "tello": "crank", "tello_with_arms": "crank"}
"""What MuJoCo takes no body for: rotors such as no body is, and massless cranks."""


def same_coordinates(text, model):
    """The model of a text with the independent coordinates of another one."""
    chosen = [
        name
        for cluster in model.clusters
        if cluster.kind != "joint"
        for name in cluster.independent
    ]
    known = set(rm.load(text).dof_names)
    return rm.load(text, independent=chosen if chosen and known.issuperset(chosen) else None)


def written(model):
    text, lost = to_mjcf(model.description)
    assert lost == []
    mujoco.MjModel.from_xml_string(text)
    return text


def spanning_tree(model):
    """The model without loops and couplings, as MuJoCo's smooth dynamics is."""
    said = model.description
    joints = tuple(replace(joint, mimic=None) for joint in said.joints)
    return build(replace(said, loops=(), couplings=(), joints=joints))


@pytest.mark.parametrize("name", sorted(set(rm.robots.names()) - set(UNSAYABLE)))
def test_shipped_robots(name):
    """They read back as they are; MuJoCo has their spanning trees, and ties them as we do."""
    model = rm.robots.load(name)
    text = written(model)
    assert_same_dynamics(model, same_coordinates(text, model))
    side = MujocoSide.of(text)
    assert_smooth_dynamics(spanning_tree(model), side, states=2, tolerance=1e-11)
    assert_same_constraints(model, side)


def assert_same_constraints(model, side):
    """MuJoCo sees no gap where ours are closed, and forbids all motions but ours."""
    rng = np.random.default_rng(4)
    for _ in range(2):
        q = model.random_configuration(rng)
        zero = np.zeros(model.nv)
        gaps, rows = side.equalities(in_world(model, spanning(model, q, zero, zero)))
        T = motions(model, side, q)
        assert np.max(np.abs(gaps), initial=0.0) < 1e-10
        assert np.max(np.abs(rows @ T), initial=0.0) < 1e-9 * np.max(np.abs(T))
        assert np.linalg.matrix_rank(rows, tol=1e-7) == side.model.nv - model.nv


KNOWS_VELOCITY_PRODUCTS = int(mujoco.__version__.split(".")[0]) >= 4  # of constraints
YIELDING = {  # how far MuJoCo's accelerations are from the exact ones, at most; relative
    "belt_leg": 3e-4,
    "crank_rocker": 1e-4,
    "five_bar": 1e-4,
    "four_bar": 5e-4,
    "mini_cheetah": 3e-4,
    "mit_humanoid": 5e-4,
    "mit_humanoid_leg": 1e-3,
    "six_bar": 1e-4,
    "teleop_arm": 2e-2,
}


@pytest.mark.parametrize("name", YIELDING)
def test_constraints_yield_little(name):
    model = rm.robots.load(name)
    text = written(model)
    assert "yield" in text
    side = MujocoSide.of(text)
    side.model.opt.iterations, side.model.opt.tolerance = 500, 1e-15
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = model.random_configuration(rng)
        v, tau = rng.normal(size=(2, model.nv))
        v = v if KNOWS_VELOCITY_PRODUCTS else 0.0 * v
        T = motions(model, side, q)
        state = spanning(model, q, v, rm.aba(model, q, v, tau, backend="numpy"))
        side.place(in_world(model, state))
        exact = side.data.qacc.copy()
        side.data.qfrc_applied[:] = np.linalg.lstsq(T.T, tau, rcond=None)[0]
        mujoco.mj_forward(side.model, side.data)
        assert np.max(np.abs(side.data.qacc - exact)) < YIELDING[name] * np.max(np.abs(exact))


@pytest.mark.parametrize("name", sorted(UNSAYABLE))
def test_what_mujoco_takes_no_body_for_is_told_and_loads(name, tmp_path):
    model = rm.robots.load(name)
    with pytest.raises(rm.DescriptionError, match=UNSAYABLE[name]):
        rm.write_mjcf(model, tmp_path / "robot.xml")
    lost = rm.write_mjcf(model, tmp_path / "robot.xml", drop=True)
    assert all(UNSAYABLE[name] in each for each in lost)
    text = (tmp_path / "robot.xml").read_text()
    other, side = same_coordinates(text, model), MujocoSide.of(text)
    assert other.nv == model.nv
    assert_same_constraints(model, side)
    if "tello" in name:  # massless cranks: a picogram changes nothing that is seen
        assert_same_dynamics(model, other, states=1)


@pytest.mark.parametrize("name", QUICK)
def test_approximate_files_are_the_approximate_method_in_mujoco(name):
    model = rm.robots.load(name)
    stream = io.StringIO()
    assert rm.write_mjcf(model, stream, approximate=True) == ()
    side = MujocoSide.of(stream.getvalue())
    assert side.model.neq == 0
    assert side.model.nv == model.nv
    assert_smooth_dynamics(model, side, method="approximate", states=2, tolerance=1e-11)
    assert_forward_dynamics(model, side, method="approximate", states=2, tolerance=1e-11)


CASSIE = (
    Path(next(iter(find_spec("cmeel").submodule_search_locations)) if find_spec("cmeel") else "")
    / "../cmeel.prefix/share/example-robot-data/robots/cassie_description/robots"
)


@pytest.mark.slow
@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("file", ["cassie.sdf", "cassie_v2.sdf", "cassie_wo_gearbox_spring.sdf"])
def test_cassie(file):
    """All but its meshes, which are named by model."""
    model = rm.load(CASSIE / file)
    text, lost = to_mjcf(model.description)
    assert all("the mesh 'model://" in each for each in lost)
    mujoco.MjModel.from_xml_string(text)
    assert same_coordinates(text, model).nv == model.nv
    if file != "cassie.sdf":
        assert_same_dynamics(model, same_coordinates(text, model), states=2)
    side = MujocoSide.of(to_mjcf(approximate(model))[0])
    assert_smooth_dynamics(model, side, method="approximate", states=1, tolerance=1e-11)
    assert_forward_dynamics(model, side, method="approximate", states=1, tolerance=1e-10)


LOOPS = {"universal": ["universal"], "prismatic": ["fixed"], "planar": ["fixed"]}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_loops_that_mujoco_has_no_constraint_for(kind):
    """A universal loop reads back as one; a slider takes half of a link for a body of its own."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0.1 0 0.05"/><mass value="2"/><inertia '
        'ixx="0.03" iyy="0.04" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in "abc"
    )
    joints = "".join(
        f'<joint name="j{child}" type="{type_}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0.1 0" rpy="0.2 0.1 0"/></joint>'
        for parent, child, type_ in (
            ("w", "a", "floating"),
            ("a", "b", "spherical"),
            ("a", "c", "floating"),
        )
    )
    model = rm.load(
        f'<robot name="r"><link name="w"/>{links}{joints}<loop name="l" type="{kind}"><predecessor '
        'link="b"><origin xyz="0.2 0 0.1" rpy="0 0.3 0"/></predecessor><successor link="c"/><axis '
        'xyz="1 2 0"/></loop></robot>'
    )
    text = written(model)
    other = same_coordinates(text, model)
    assert [loop.type for loop in other.description.loops] == LOOPS[kind]
    assert math.isclose(other.mass, 6.0)
    if kind == "universal":
        assert_same_dynamics(model, other)


ODD = """<robot name="odd"><link name="base"/>
<link name="body"><inertial><mass value="3"/>
<inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0.002" ixz="0" iyz="0.001"/></inertial></link>
<joint name="free" type="floating"><parent link="base"/><child link="body"/></joint>
<link name="arm"><inertial><origin xyz="0.1 0.2 0"/><mass value="1"/>
<inertia ixx="0.002" iyy="0.003" izz="0.0004" ixy="{ixy}" ixz="0" iyz="0.0002"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="body"/><child link="arm"/>
<origin xyz="0.1 0 0" rpy="0.3 0.4 0.5"/><axis xyz="{axis}"/></joint>
<link name="rotor"><inertial><mass value="0.1"/>
<inertia ixx="0.0001" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="arm"/><child link="rotor"/>
<origin xyz="0 0.1 0.2"/></joint></robot>"""


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_what_lies_along_a_hinge_is_lent():
    """An arm such as no body is can be written where its hinge's axis is the right one."""
    model = rm.load(ODD.format(ixy="-0.0005", axis="0 1 0"))
    text = written(model)
    assert_same_dynamics(model, rm.load(text))
    assert_smooth_dynamics(model, MujocoSide.of(text), tolerance=1e-12)
    _, lost = to_mjcf(rm.load(ODD.format(ixy="-0.0005", axis="0 0 1")).description)
    assert len(lost) == 1
    assert "principal moments" in lost[0]
    assert "'arm'" in lost[0]


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_random_mechanisms(kind):
    check_mechanism(random_mechanism(np.random.default_rng(0), [kind]), 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@settings(deadline=None, max_examples=150)
@given(mechanisms())
def test_more_mechanisms(mechanism):
    assume(mechanism.mobility)
    check_mechanism(mechanism, 0)


def check_mechanism(mechanism, seed):
    model = rm.load(mechanism.text)
    if not model.nv:  # it moves with its base only
        return
    text, lost = to_mjcf(model.description)
    mujoco.MjModel.from_xml_string(text)
    assert all("without a mass" in each for each in lost)
    if lost:
        return
    assert_same_dynamics(model, same_coordinates(text, model), tolerance=2e-11, seed=seed)
    if all(joint.type not in ("planar", "screw", "floating") for joint in model.joints):
        check_approximate(model)


def check_approximate(model):
    try:
        text, lost = to_mjcf(approximate(model))
    except ValueError:  # the cluster moves in single freedoms of its joints
        return
    assert lost == []
    assert_smooth_dynamics(model, MujocoSide.of(text), method="approximate", states=1)
