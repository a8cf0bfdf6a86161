"""Open trees as other libraries compute them: without rotors and loops, or with armature."""

from __future__ import annotations

import dataclasses
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from baseline_texts import EXAMPLES, OPEN, TIGHT, states
from cases import few
from hypothesis import assume, given, settings
from mechanisms import Mechanism, mechanisms
from mujoco_open_tree import Simulator
from random_models import load
from shipped_robots import ROBOTS
from test_dynamics import relative
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.dynamics.baselines import open_tree
from robomodel.dynamics.lumped import approximate, select, unconstrained
from robomodel.model import build


def quietly(description: rm.model.Description) -> rm.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        return build(description)


# ---- open trees ----------------------------------------------------------------------------------


def kept(model: rm.Model, tree: rm.Model) -> tuple[list[int], list[int]]:
    """The robot's spanning positions and velocities that are the tree's."""
    bodies = [model.joint_names.index(name) for name in tree.joint_names]
    nodes = [model.nodes[body] for body in bodies]
    return (
        [n.q + i for n in nodes for i in range(n.joint.nq)],
        [n.v + i for n in nodes for i in range(n.joint.nv)],
    )


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("method", OPEN)
def test_open_trees_are_mapped_by_g(name: str, method: str) -> None:
    """tau = G_kᵀ ID(q_k, G_k v, G_k a + g_k), and the same backwards."""
    model = rm.robots.load(name)
    tree = open_tree(model, method).model
    positions, velocities = kept(model, tree)
    assert tree.nv == model.nv
    for q, v, a in zip(*states(model, 3, 6), strict=True):
        at = np.array(model.spanning_positions(list(q)))[positions]
        g, bias = model.constraint_jacobian(q)[velocities], model.constraint_bias(q, v)[velocities]
        expected = g.T @ rm.rnea(tree, at, g @ v, g @ a + bias, backend="numpy")
        tau = rm.rnea(model, q, v, a, method=method, backend="numpy")
        assert relative(tau, expected) < 1e-12
        back = rm.aba(model, q, v, tau, method=method, backend="numpy")
        mass = g.T @ rm.crba(tree, at, backend="numpy") @ g
        assert relative(back, a, np.linalg.solve(mass, tau)) < max(
            TIGHT, 1e-15 * np.linalg.cond(mass)
        )


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize(
    "name", ["mini_cheetah", "mit_humanoid_leg", "tello", "four_bar", "five_bar", "belt_leg"]
)
def test_the_approximate_tree_is_the_simulators(name: str) -> None:
    """MuJoCo's smooth dynamics of the exported tree are what the method computes."""
    model = rm.robots.load(name)
    tree = quietly(approximate(model))
    assert not tree.loops
    assert not tree.couplings
    simulator = Simulator(tree)
    positions, velocities = kept(model, tree)
    for q, v, a in zip(*states(model, 5, 7), strict=True):
        at = np.array(model.spanning_positions(list(q)))[positions]
        g, bias = model.constraint_jacobian(q)[velocities], model.constraint_bias(q, v)[velocities]
        assert relative(rm.crba(tree, at, backend="numpy"), simulator.mass_matrix(at)) < 1e-12
        tau = g.T @ simulator.inverse(at, g @ v, g @ a + bias)
        assert relative(rm.rnea(model, q, v, a, method="approximate", backend="numpy"), tau) < TIGHT
        found = rm.aba(model, q, v, tau, method="approximate", backend="numpy")
        assert relative(found, a) < 1e-9


@pytest.mark.slow
def test_geared_robots_lose_only_the_coupling_of_rotors_and_carriers() -> None:
    """With lumped rotors and armature the diagonal of M is exact."""
    for name in ("mini_cheetah", "mit_humanoid_leg"):
        model = rm.robots.load(name)
        tree = open_tree(model, "approximate").model
        assert tree.dof_names == model.dof_names
        for q in states(model, 3, 8)[0]:
            exact, found = rm.crba(model, q), rm.crba(tree, q)
            assert relative(np.diag(found), np.diag(exact)) < 1e-13
            assert relative(found, exact) > 1e-6
        assert tree.mass == pytest.approx(
            sum(body.mass for body in model.bodies if not on_base(model, body.name)), rel=1e-14
        )


def on_base(model: rm.Model, name: str) -> bool:
    """Whether this is a dropped body on the fixed base."""
    body = [each.name for each in model.bodies].index(name)
    return body in select(model).dropped and model.nodes[body].parent < 0


GEAR = (
    '<coupling name="gear"><predecessor link="arm"/><successor link="rotor"/>'
    '<ratio value="-7"/></coupling>'
)

ROTOR = (
    '<inertial><origin xyz="0 0 0.03"/><mass value="0.2"/>'
    '<inertia ixx="1e-4" iyy="1e-4" izz="1.5e-4" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def geared_arm(rotor: str = ROTOR) -> str:
    return robot(
        link("arm"),
        link("rotor", rotor),
        joint("hinge", "base", "arm", axis="0 1 0"),
        joint("motor", "base", "rotor", "0.1 0 0", rpy="1.5707963267948966 0 0"),
        GEAR,
    )


def test_a_symmetric_rotor_on_the_base_is_exactly_an_armature() -> None:
    model = rm.load(geared_arm())
    q, v, x = states(model, 20, 9)
    exact, found = rm.rnea(model, q, v, x), rm.rnea(model, q, v, x, method="approximate")
    assert relative(found, exact) < 1e-14
    exact, found = rm.aba(model, q, v, x), rm.aba(model, q, v, x, method="approximate")
    assert relative(found, exact) < 1e-14
    assert rm.armature(model).tolist() == [49 * 1.5e-4]
    description = approximate(model)
    assert [(each.name, each.type, each.armature) for each in description.joints] == [
        ("hinge", "continuous", 49 * 1.5e-4),
        ("motor", "fixed", 0.0),
    ]


def without_rotors(text: str) -> str:
    """A text without the links, joints and couplings of its rotors."""
    root = ET.fromstring(text)
    for element in list(root):
        if "rotor" in element.get("name", "") or element.tag == "coupling":
            root.remove(element)
    return ET.tostring(root, encoding="unicode")


@pytest.mark.slow_cases("mit_humanoid_leg")
@pytest.mark.parametrize(
    "name", few(["mini_cheetah", "mit_humanoid_leg", "teleop_arm"], "mit_humanoid_leg")
)
def test_unconstrained_is_the_robot_without_rotors(name: str) -> None:
    model = rm.robots.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        bare = rm.load(without_rotors(rm.robots.path(name).read_text()))
    assert bare.dof_names == model.dof_names
    q, v, x = states(model, 10, 10)
    expected = rm.rnea(bare, q, v, x)
    assert relative(rm.rnea(model, q, v, x, method="unconstrained"), expected) < 1e-13
    assert relative(rm.rnea(model, q, v, x), expected) > 1e-3
    assert relative(
        rm.aba(model, q, v, x, method="unconstrained"), rm.aba(bare, q, v, x)
    ) < 1e-11  # fmt: skip
    tree = build_names(unconstrained(model))
    assert tree == {link_.name for link_ in bare.description.links}


def build_names(description: rm.model.Description) -> set[str]:
    return {each.name for each in description.links}


def test_unconstrained_of_a_linkage_by_hand() -> None:
    """Of a four-bar the crank alone is left, a pendulum."""
    model = rm.load(four_bar(marks=(True, False, False)), gravity=(0.0, -9.81, 0.0))
    q, v, x = states(model, 5, 11)
    inertia = 0.025 + 0.1**2 + 0.02**2
    weight = 9.81 * (0.1 * np.cos(q[:, 0]) - 0.02 * np.sin(q[:, 0]))
    expected = (inertia * x[:, 0] + weight)[:, None]
    assert relative(rm.rnea(model, q, v, x, method="unconstrained"), expected) < 1e-14
    assert [each.name for each in unconstrained(model).links] == ["base", "crank"]


@pytest.mark.slow
def test_the_papers_approximation_drops_the_rotors_and_keeps_their_inertia() -> None:
    """H + diag(N² I) on the tree without rotors."""
    model = rm.robots.load("mini_cheetah")
    tree = quietly(approximate(model, lump=False))
    bare = open_tree(model, "unconstrained").model
    q = model.random_configuration(3)
    expected = rm.crba(bare, q) + np.diag(rm.armature(model))
    assert relative(rm.crba(tree, q), expected) < 1e-14
    assert tree.mass == bare.mass


def test_the_armature_of_mini_cheetah_is_exact() -> None:
    """36 I of each rotor (the knee's belt makes 9.33² of it), to the last digit."""
    model = rm.robots.load("mini_cheetah")
    root = ET.fromstring(rm.robots.path("mini_cheetah").read_text())
    expected = dict.fromkeys(model.dof_names, 0.0)
    for each in root.findall("coupling"):
        driven, rotor = (each.find(e).get("link") for e in ("predecessor", "successor"))
        ratio = float(each.find("ratio").get("value"))
        inertial = root.find(f"link[@name='{rotor}']/inertial/inertia")
        (joint_,) = (j for j in root.findall("joint") if j.find("child").get("link") == driven)
        (motor,) = (j for j in root.findall("joint") if j.find("child").get("link") == rotor)
        axis = [abs(float(x)) for x in motor.find("axis").get("xyz").split()].index(1.0)
        inertia = float(inertial.get(("ixx", "iyy", "izz")[axis]))
        expected[joint_.get("name")] = ratio * ratio * inertia
    assert sum(x > 0 for x in expected.values()) == 12
    np.testing.assert_array_equal(rm.armature(model), list(expected.values()))
    assert 36 * 6.3e-5 in expected.values()
    tree = open_tree(model, "approximate").model
    assert {j.name: j.armature for j in tree.joints if j.nv == 1} == {
        name: x for name, x in expected.items() if x
    }
    dense = rm.armature(model, kind="dense")
    np.testing.assert_array_equal(dense, np.diag(rm.armature(model)))


def test_belts_reflect_on_both_joints() -> None:
    text = robot(
        *(link(n) for n in "ab"),
        link("rotor", ROTOR),
        joint("hip", "base", "a", mark=True),
        joint("knee", "a", "b", "0.3 0 0", mark=True),
        joint("motor", "base", "rotor", mark=False),
        coupling("belt", {"hip": 2.0, "knee": 3.0, "motor": -1.0}),
    )
    model = rm.load(text)
    expected = 1.5e-4 * np.array([[4.0, 6.0], [6.0, 9.0]])
    assert relative(rm.armature(model, kind="dense"), expected) < 1e-15
    assert relative(rm.armature(model), np.diag(expected)) < 1e-15


def test_reflected_inertia_follows_the_configuration() -> None:
    """The rest of a four-bar's inertia when its coupler turns with the crank, its rocker stands."""
    model = rm.load(four_bar(marks=(True, False, False)))
    q, _, _ = states(model, 6, 12)
    about_pivot = 0.025 + 0.1**2 + 0.02**2
    center = (rm.frame_pose(model, q, "coupler") @ (0.1, 0.02, 0.0, 1.0))[:, :2]
    locked = about_pivot + 0.025 + np.sum(center**2, axis=1)
    expected = rm.crba(model, q)[:, 0, 0] - locked
    for backend in ("compiled", "numpy"):
        assert relative(rm.armature(model, q, backend=backend)[:, 0], expected, locked) < 1e-13
    neutral = rm.armature(model, model.neutral())
    assert neutral.shape == (1,)
    np.testing.assert_array_equal(rm.armature(model), neutral)


def test_at_the_neutral_configuration_the_diagonal_is_exact() -> None:
    """Of a cluster's own inertia, wherever the armature that this takes is not negative."""
    model = rm.robots.load("four_bar")
    assert model.neutral()[1] == pytest.approx(-model.neutral()[0])  # a parallelogram
    tree = open_tree(model, "approximate").model
    assert relative(rm.crba(tree, model.neutral()[:1]), rm.crba(model, model.neutral())) < 1e-14
    negative = rm.load(four_bar(marks=(True, False, False)))
    assert rm.armature(negative)[0] < 0.0
    (crank, *rest) = approximate(negative).joints
    assert crank.armature == 0.0
    assert {each.type for each in rest} == {"fixed"}


def test_the_joints_that_move_are_the_limbs() -> None:
    """The rocker of a crank-rocker, though its crank is independent: armature goes by G²."""
    model = rm.robots.load("crank_rocker")
    tree = open_tree(model, "approximate").model
    assert tree.joint_names == rm.limb_joints(model) == ("rocker_joint",)
    assert model.dof_names == ("crank_joint",)
    rate = model.constraint_jacobian(model.neutral())[model.joint_names.index("rocker_joint"), 0]
    assert rm.armature(model) == pytest.approx([tree.joints[0].armature * rate**2], rel=1e-13)
    assert relative(
        rm.crba(tree, model.spanning_positions(list(model.neutral()))[2:]) * rate**2,
        rm.crba(model, model.neutral()),
    ) < 1e-13  # fmt: skip


def test_the_files_own_armature_counts() -> None:
    description = rm.load(geared_arm()).description
    joints = tuple(dataclasses.replace(each, armature=0.01) for each in description.joints)
    model = build(dataclasses.replace(description, joints=joints))
    assert rm.armature(model) == pytest.approx([0.01 + 49 * (0.01 + 1.5e-4)], rel=1e-15)
    assert approximate(model).joints[0].armature == rm.armature(model)[0]
    assert unconstrained(model).joints[0].armature == 0.01


def test_differentials_keep_the_links_that_carry_the_rest() -> None:
    """Tello's independent joints are rotors; the tree keeps its limbs."""
    model = rm.robots.load("tello")
    names = set(open_tree(model, "approximate").model.joint_names)
    for side in ("left", "right"):
        limbs = ("hip-clamp-to-gimbal", "gimbal-to-thigh", "thigh-to-shin", "shin-to-foot")
        assert {f"{side}-{limb}" for limb in limbs} <= names
    assert not any("rotor" in name or "crank" in name for name in names)
    assert rm.armature(model)[-1] == 5.1512e-05  # a rotor, not geared to its own joint


@pytest.mark.tables
@settings(max_examples=20, deadline=None)
@given(mechanisms())
def test_open_trees_of_random_mechanisms(mechanism: Mechanism) -> None:
    """At the neutral configuration all links stand where they do; and the simulator agrees."""
    loaded = load(mechanism)
    assume(loaded is not None)
    model, q = loaded
    try:
        description = approximate(model)
    except ValueError as error:
        assume("no whole joints" not in str(error))
        raise
    tree = quietly(description)
    positions, velocities = kept(model, tree)
    neutral = model.neutral()
    there = np.array(model.spanning_positions(list(neutral)))[positions]
    for frame in model.frames:
        expected = rm.frame_pose(model, neutral, frame.name, backend="numpy")
        found = rm.frame_pose(tree, there, frame.name, backend="numpy")
        assert relative(found, expected, np.ones(1)) < 1e-12
    rng = np.random.default_rng(5)
    v, a = rng.standard_normal((2, model.nv))
    g, bias = model.constraint_jacobian(q)[velocities], model.constraint_bias(q, v)[velocities]
    assume(np.linalg.cond(g) < 1e4)
    at = np.array(model.spanning_positions(list(q)))[positions]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        tau = rm.rnea(model, q, v, a, method="approximate", backend="numpy")
        back = rm.aba(model, q, v, tau, method="approximate", backend="numpy")
    if Simulator.knows(tree):
        forces = Simulator(tree).inverse(at, g @ v, g @ a + bias)
        assert relative(tau, g.T @ forces, forces) < TIGHT
    mass = g.T @ rm.crba(tree, at, backend="numpy") @ g
    condition = np.linalg.cond(mass)
    assert relative(back, a, np.linalg.solve(mass, tau)) < max(TIGHT, 1e-14 * condition)


def carried_by_a_rocker() -> str:
    return robot(
        *(link(n) for n in ("crank", "coupler", "rocker", "foot", "tail")),
        joint("j_crank", "base", "crank", mark=True, more='<initial position="1.5"/>'),
        joint("j_coupler", "crank", "coupler", "0.5 0 0", mark=False),
        joint("j_rocker", "base", "rocker", "1.1 0 0", mark=False),
        joint("j_foot", "rocker", "foot", "0.7 0 0", axis="0 1 0"),
        loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0"),
    ).replace(link("tail"), "")


@pytest.mark.slow
def test_what_a_linkage_carries_moves_with_its_carrier() -> None:
    model = rm.load(carried_by_a_rocker())
    tree = quietly(approximate(model))
    assert set(tree.joint_names) == {"j_rocker", "j_foot"}
    assert {each.name for each in unconstrained(model).links} == {"base", "rocker", "foot"}
    q, v, x = states(model, 5, 13)
    f_ext = {"foot": np.random.default_rng(0).standard_normal(6)}
    for method in OPEN:
        tau = rm.rnea(model, q, v, x, f_ext=f_ext, method=method)
        work = np.einsum("nij,i->nj", rm.jacobian(model, q, "foot"), f_ext["foot"])
        assert relative(tau, rm.rnea(model, q, v, x, method=method) - work) < 1e-12
        assert relative(rm.aba(model, q, v, tau, f_ext=f_ext, method=method), x) < TIGHT


def test_a_wheel_that_alone_moves_is_no_rod_that_spins() -> None:
    """A rod leads to a ball on the wheel's axis, and can go nowhere."""
    text = robot(
        *(link(n) for n in ("crank", "cross", "rod", "wheel")),
        joint("crank_joint", "base", "crank", axis="0 0 1"),
        joint("first", "crank", "cross", "0.3 0 0", axis="1 0 0"),
        joint("second", "cross", "rod", axis="0 1 0"),
        joint("wheel_joint", "base", "wheel", "0.1 0.6 0.2", axis="0 1 0"),
        loop("ball", "spherical", "rod", "wheel", "-0.2 0.5 0.2", "0 -0.1 0"),
    )
    model = rm.load(text)
    tree = rm.approximate_tree(model)
    assert model.dof_names == tree.dof_names == ("wheel_joint",)
    assert tree.errors["wheel_joint"].worst < 1e-12
    assert np.allclose(rm.crba(tree, tree.neutral()), rm.crba(model, model.neutral()), rtol=1e-12)


def test_a_locked_body_that_carries_others_stays() -> None:
    """Two joints in a row tied to one another: the first moves, the second is welded."""
    text = robot(
        *(link(n) for n in "abc"),
        joint("first", "base", "a", mark=True),
        joint("second", "a", "b", "0.3 0 0", axis="0 0.6 0.8", mark=False),
        joint("third", "b", "c", "0.2 0.1 0", axis="0.8 0 0.6"),
        coupling("tie", {"first": 1.0, "second": 1.0}, 0.4),
    )
    model = rm.load(text)
    for make in (approximate, unconstrained):
        description = make(model)
        assert [each.name for each in description.links] == ["base", "a", "b", "c"]
        assert [each.type for each in description.joints] == ["continuous", "fixed", "continuous"]
    tree = build(unconstrained(model))
    at = model.neutral()  # there the tree and the robot stand alike
    pose = rm.frame_pose(model, at, "c")
    assert relative(rm.frame_pose(tree, [at[0], at[1]], "c"), pose) < 1e-14
    f_ext = {"b": np.arange(6.0)}
    v = np.zeros(2)
    tau = rm.rnea(model, at, v, v, f_ext=f_ext, method="unconstrained")
    without = rm.rnea(tree, at, v, v)
    assert relative(tau, without - rm.jacobian(tree, at, "b").T @ f_ext["b"], without) < 1e-13


def test_descriptions_of_open_trees() -> None:
    model = rm.load(geared_arm(), floating_base=None, gravity=(1.0, 2.0, 3.0))
    for make in (approximate, unconstrained):
        description = make(model)
        assert description.gravity == (1.0, 2.0, 3.0)
        assert not description.loops
        assert not description.couplings
    assert [each.name for each in approximate(model).links] == ["base", "arm", "rotor"]
    assert [each.name for each in unconstrained(model).links] == ["base", "arm"]
    free = rm.load(four_bar().replace('<link name="base"/>', link("base")), floating_base=True)
    tree = quietly(approximate(free))
    assert tree.floating_base == free.floating_base
    assert tree.dof_names == free.dof_names
    assert tree.mass == free.mass


def test_wrenches_cannot_act_on_what_is_left_out() -> None:
    model = rm.load(geared_arm())
    for method in OPEN:
        for backend in ("numpy", "compiled"):
            with pytest.raises(ValueError, match=f"'{method}' leaves out the body 'rotor'"):
                rm.aba(
                    model,
                    *([0.0],) * 3,
                    f_ext={"rotor": np.ones(6)},
                    method=method,
                    backend=backend,
                )


@pytest.mark.slow
def test_freedoms_that_no_whole_joints_have() -> None:
    """A rod with a ball at either end spins about itself: a freedom of the ball, not of a joint."""
    model = rm.load(EXAMPLES["steering"])
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="that no whole joints of it have"):
        rm.rnea(model, q, v, v, method="approximate")
    with pytest.raises(ValueError, match="that no whole joints of it have"):
        approximate(model)
    tau = rm.rnea(model, q, v, v)
    np.testing.assert_allclose(rm.rnea(model, q, v, v, method="projection"), tau, atol=1e-14)


@pytest.mark.slow
def test_methods_cost_what_they_should() -> None:
    """Flops on Mini Cheetah: clusters need less than projection, that less than multipliers.

    The approximation saves nothing: its armatures keep joints from eliminating whole directions.
    """
    model = rm.robots.load("mini_cheetah")
    cost = {
        method: traced_algorithm(model, AlgorithmSpec("aba", method=method)).program.flops
        for method in ("unconstrained", "cluster", "projection", "lagrange")
    }
    assert sorted(cost, key=cost.__getitem__) == list(cost)
    assert cost["cluster"] <= 3099
    assert cost["projection"] <= 3314
    assert cost["lagrange"] <= 6314
    approximate = traced_algorithm(model, AlgorithmSpec("aba", method="approximate")).program.flops
    assert abs(approximate / cost["cluster"] - 1.0) < 0.01
