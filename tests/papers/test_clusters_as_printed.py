"""Clusters in the paper's words (002): operators, recursions, Gauss's principle, comparisons.

Oracles: Pinocchio's spanning tree with constraints of its own (:mod:`oracle`), dense matrices over
all bodies, and differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from agreement import relative
from cases import few
from numpy.typing import NDArray
from oracle import Oracle
from test_dynamics import named
from test_efpa import loaded

import robomodel as rm
from robomodel.dynamics.lumped import approximate
from robomodel.model.build import build
from robomodel.papers import clusters
from robomodel.papers.clusters import ClusterOperators, operators

pytestmark = pytest.mark.slow  # the papers' own

Array = NDArray[np.float64]
TIGHT = 1e-10
TORSO = """<body name="torso" pos="0 0 1"><freejoint name="base"/>
  <inertial pos="0.1 0.1 0" mass="3" diaginertia="0.2 0.2 0.3"/>"""
BALL = """<mujoco><worldbody>{0}
<body name="arm"><joint name="hinge" type="hinge" axis="0 1 0" armature="0.3"/>
  <inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.2 0.3"/>
  <body name="hand" pos="0.4 0 0"><joint name="wrist" type="ball" armature="0.02"/>
    <inertial pos="0 0.1 0.2" mass="2" diaginertia="0.2 0.2 0.1"/>
    <body name="finger" pos="0 0.1 0.3"><joint name="slide" type="slide" axis="0 0 1"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="0.01 0.02 0.02"/></body></body></body>
<body name="rod" pos="0.3 0.2 0"><joint name="rod" type="ball"/>
  <inertial pos="0 0 0.2" mass="0.4" diaginertia="0.1 0.1 0.01"/></body>
{1}</worldbody>
<equality><connect body1="rod" body2="finger" anchor="0 0 0.4"/></equality></mujoco>"""
ROBOTS = ("tello", "mini_cheetah", "planar_leg_linkage", "crank_rocker", "jvrc1")


def states(model: rm.Model, seed: int = 0, count: int = 4) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    return q, *rng.normal(size=(count - 1, model.nv))


def ball(*, floating: bool = False) -> rm.Model:
    """Ball joints with armature in a loop, on the ground or on a floating torso."""
    return rm.load(BALL.format(*((TORSO, "</body>") if floating else ("", ""))))


@pytest.fixture(params=few(["tello", "mini_cheetah", "four_bar", "balls"], "four_bar", "balls"))
def model(request: pytest.FixtureRequest) -> rm.Model:
    """A humanoid with differentials, a floating base, a loop, and ball joints with armature."""
    return ball() if request.param == "balls" else rm.robots.load(request.param)


# ---- operators -----------------------------------------------------------------------------------


def test_velocities_are_those_of_links(model: rm.Model) -> None:
    """(33), in the frames of links."""
    q, v, *_ = states(model)
    for o in operators(model, q, v):
        for n, body in enumerate(o.bodies):
            expected = rm.frame_velocity(model, q, v, body)
            assert np.abs(o.velocity[6 * n : 6 * n + 6] - expected).max() < TIGHT


def test_transforms_have_one_block_a_row_at_the_output_body(model: rm.Model) -> None:
    """(16)-(18), (20), (23): X X' = 1 of each block's rotation, unit lower triangular remap."""
    q, v, *_ = states(model)
    objects = operators(model, q, v)
    parents = {body.name: body.parent for body in model.bodies}
    cluster = {body: k for k, o in enumerate(objects) for body in o.bodies}
    for k, o in enumerate(objects):
        above = ("world",) if o.parent < 0 else objects[o.parent].bodies
        for n, (body, output) in enumerate(zip(o.bodies, o.output_bodies, strict=True)):
            at = body
            while cluster.get(at) == k:
                at = parents[at]
            assert at == output
            rows = o.X[6 * n : 6 * n + 6]
            filled = [m for m in range(len(above)) if rows[:, 6 * m : 6 * m + 6].any()]
            assert filled == [above.index(output)]
            if output != "world":
                assert body in objects[o.parent].output_children[above.index(output)]
            assert np.array_equal(o.remap[6 * n : 6 * n + 6, 6 * n : 6 * n + 6], np.eye(6))
            assert not o.remap[6 * n : 6 * n + 6, 6 * n + 6 :].any()
            inverse = o.remap_inverse[:, 6 * n : 6 * n + 6]
            children = [m for m, b in enumerate(o.bodies) if parents[b] == body]
            filled = [m for m in range(len(o.bodies)) if
                      np.abs(inverse[6 * m : 6 * m + 6]).max() > 1e-12]  # fmt: skip
            assert filled == [n, *children]


def test_remapped_forces_are_statically_equivalent() -> None:
    """(22): on every body of the cluster, and on its output bodies."""
    model = rm.robots.load("tello")
    q, v, *_ = states(model)
    rng = np.random.default_rng(3)
    o = max(operators(model, q, v), key=lambda o: len(o.bodies))
    parents = {body.name: body.parent for body in model.bodies}
    between = rng.normal(size=6 * len(o.bodies))  # of the tree joints, on body and parent
    across = np.linalg.solve(o.remap.T, between)  # of the cluster joint, on body and output body
    net = between.copy()
    steps = np.eye(len(net)) - o.remap_inverse  # X of a body from its parent in the cluster
    for n, body in enumerate(o.bodies):
        if parents[body] in o.bodies:
            m = o.bodies.index(parents[body])
            x = steps[6 * n : 6 * n + 6, 6 * m : 6 * m + 6]
            net[6 * m : 6 * m + 6] -= x.T @ between[6 * n : 6 * n + 6]
    assert np.abs(net - across).max() < TIGHT


def test_subspaces_and_their_duals(model: rm.Model) -> None:
    """(8)-(10), (24), (29)-(31)."""
    q, v, *_ = states(model)
    for o in operators(model, q, v):
        n, m = o.S.shape
        assert np.abs(o.S - o.remap @ o.S_spanning @ o.G).max() < TIGHT
        for active, constraint, motion in (
            (o.T_active_spanning, o.T_constraint_spanning, o.S_spanning),
            (o.T_active, o.T_constraint, o.S),
        ):
            assert np.abs(active.T @ motion - np.eye(motion.shape[1])).max() < TIGHT
            assert constraint.shape == (n, n - motion.shape[1])
            assert np.abs(constraint.T @ motion).max(initial=0.0) < TIGHT
            assert np.linalg.matrix_rank(np.hstack([active, constraint])) == n
        assert m == len(o.dofs)


def test_the_ring_derivative_is_the_components_rate(model: rm.Model) -> None:
    """(25), (26): against differences along the motion."""
    q, v, *_ = states(model)
    h = 2e-3
    stencil = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    for k, o in enumerate(operators(model, q, v)):
        rate = sum(
            sign * weight / h * operators(model, model.integrate(q, sign * n * h * v), v)[k].S
            for n, weight in stencil.items()
            for sign in (1, -1)
        )
        assert relative(o.S_dot + o.S, rate + o.S) < 1e-9


# ---- recursions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(ROBOTS, "tello", "planar_leg_linkage"))
def test_recursions_against_the_oracle(name: str) -> None:
    """C-RNEA, C-ABA, C-EFPA, PV-OSIMr: Pinocchio's tree, projected by constraints of its own."""
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text())
    oracle.names = list(model.joint_names)
    q, v, a, tau = states(model)
    at, g_matrix = oracle.state(named(model, q)), model.constraint_jacobian(q)
    g, rates = model.constraint_bias(q, v), g_matrix @ v
    inertia, bias = oracle.mass_matrix(at), oracle.bias(at, rates)
    expected = g_matrix.T @ (inertia @ (g_matrix @ a + g) + bias)
    assert relative(clusters.rnea(model, q, v, a), expected) < TIGHT
    forward = oracle.forward(at, rates, np.linalg.pinv(g_matrix.T) @ tau)
    assert relative(g_matrix @ clusters.aba(model, q, v, tau) + g, forward) < TIGHT
    frames = [(body.name, (0.1, 0.2, -0.3)) for body in model.bodies[::2]]
    osim = oracle.inverse_osim(at, g_matrix, frames)
    assert relative(clusters.efpa(model, q, frames), osim) < TIGHT
    assert relative(clusters.pv_osim(model, q, frames), osim) < TIGHT


@pytest.mark.parametrize("kind", few(["two_outputs", "loop_on_loop", "rssr", "ankle"], "rssr"))
def test_recursions_equal_the_fast_ones(kind: str) -> None:
    """Clusters on several bodies, loops on loops, balls; batches."""
    model = next(m for seed in range(9) if (m := loaded(kind, seed, 5)) is not None)
    check_fast(model)


@pytest.mark.parametrize("floating", few([False, True], True))
def test_recursions_with_balls_and_armature(floating: bool) -> None:
    check_fast(ball(floating=floating))


def check_fast(model: rm.Model) -> None:
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, a, tau = rng.normal(size=(3, 3, model.nv))
    assert relative(clusters.rnea(model, q, v, a), rm.rnea(model, q, v, a)) < TIGHT
    assert relative(clusters.aba(model, q, v, tau), rm.aba(model, q, v, tau)) < TIGHT
    frames = [body.name for body in model.bodies] + [model.frames[0].name]
    expected = rm.efpa(model, q, frames)
    assert relative(clusters.efpa(model, q, frames), expected) < TIGHT
    assert relative(clusters.pv_osim(model, q, frames), expected) < TIGHT
    alone = operators(model, q[1], v[1], tau[1])
    for one, batch in zip(alone, operators(model, q, v, tau), strict=True):
        for name in ("S", "S_dot", "T_active", "articulated_inertia", "articulated_bias"):
            assert np.abs(getattr(batch, name)[1] - getattr(one, name)).max() < 1e-8


# ---- articulated inertia and Gauss's principle ---------------------------------------------------


def subtree(objects: tuple[ClusterOperators, ...], root: int) -> tuple[list[int], dict[int, Array]]:
    """The clusters of a subtree, and the Jacobians of their accelerations by the root's (6n).

    Columns: the root's acceleration, then the independent accelerations of those below it.
    """
    inside = [root]
    for k in range(root + 1, len(objects)):
        if objects[k].parent in inside:
            inside.append(k)
    first = objects[root].X.shape[0]
    width = first + sum(objects[k].S.shape[1] for k in inside[1:])
    found = {root: np.eye(first, width)}
    for k in inside[1:]:
        o = objects[k]
        found[k] = o.X @ found[o.parent]
        found[k][:, first : first + o.S.shape[1]] += o.S
        first += o.S.shape[1]
    return inside, found


def test_articulated_inertia_is_what_the_subtree_resists_with(model: rm.Model) -> None:
    """(38): the Schur complement of the subtree's mass matrix with the cluster joint removed."""
    q, v, tau, _ = states(model)
    objects = operators(model, q, v, tau)
    for k in range(len(objects)):
        inside, jacobians = subtree(objects, k)
        mass = sum(jacobians[i].T @ objects[i].inertia @ jacobians[i] for i in inside)
        n = len(objects[k].X)
        at = n
        for i in inside[1:]:
            size = objects[i].S.shape[1]
            mass[at : at + size, at : at + size] += objects[i].reflected[0]
            at += size
        rest = mass[:n, :n] - mass[:n, n:] @ np.linalg.solve(mass[n:, n:], mass[n:, :n])
        assert relative(objects[k].articulated_inertia, rest) < TIGHT


def test_the_motion_is_gausss_least_cost(model: rm.Model) -> None:
    """(39): of all accelerations, those of forward dynamics; costs to go add up (42)."""
    q, v, tau, other = states(model)
    g = clusters.gauss(model, q, v, tau)
    best = rm.aba(model, q, v, tau)
    least = float(g.cost(best))
    assert g.minimum == pytest.approx(least, rel=TIGHT)
    step = other / np.sqrt(other @ rm.crba(model, q) @ other) * np.sqrt(least)
    assert float(g.cost(best + step)) == pytest.approx(1.5 * least, rel=1e-9)
    accelerations = g.accelerations(best)
    roots = [k for k, o in enumerate(g.objects) if o.parent < 0]
    rotors = sum(
        0.5 * o.armature @ (o.G @ best[list(o.dofs)] + o.g) ** 2
        for o in (g.objects[k] for k in roots)
    )
    total = sum(float(g.cost_to_go[k](accelerations[k])) for k in roots) + rotors
    assert total == pytest.approx(least, rel=TIGHT)


@pytest.mark.parametrize("name", ["mini_cheetah", "four_bar"])
def test_costs_to_go_are_least_squares(name: str) -> None:
    """(41): at any acceleration of a cluster, the least over all joints below it."""
    model = rm.robots.load(name)
    q, v, tau, _ = states(model)
    g = clusters.gauss(model, q, v, tau)
    rng = np.random.default_rng(8)
    for k, cost in enumerate(g.cost_to_go):
        inside, jacobians = subtree(g.objects, k)
        n = len(g.objects[k].X)
        wanted = rng.normal(size=n)
        rows, right, drift = [], [], {k: np.zeros(n)}
        for i in inside:
            o = g.objects[i]
            if i != k:
                drift[i] = o.X @ drift[o.parent] + o.c
            root = np.linalg.cholesky(o.inertia).T  # I = rootᵀ root
            rows.append(root @ jacobians[i][:, n:])
            free = g.costs[i].unconstrained
            right.append(root @ (free - drift[i] - jacobians[i][:, :n] @ wanted))
        a, b = np.vstack(rows), np.concatenate(right)
        if a.shape[1]:
            b = b - a @ np.linalg.lstsq(a, b, rcond=None)[0]
        assert float(cost(wanted)) == pytest.approx(0.5 * b @ b, rel=1e-9)


# ---- approximations ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(["mini_cheetah", "jvrc1"], "mini_cheetah"))
def test_approximations_drop_the_rotors_mass(name: str) -> None:
    """H_y + H_c on the independent tree, H_c diagonal, with N² I of each rotor (section II-C)."""
    model = rm.robots.load(name)
    q, v, a, tau = states(model)
    tree = build(approximate(model, lump=False))
    assert tree.mass < model.mass
    own = [body.name for body in tree.bodies]
    assert not any("rotor" in name for name in own)
    order = [tree.dof_names.index(label) for label in model.dof_names]
    armature = np.zeros(model.nv)
    for joint in tree.joints:
        if joint.nv == 1:
            armature[model.dof_names.index(joint.name)] = joint.armature
    h_y = rm.crba(tree, q)[np.ix_(order, order)] - np.diag(armature)
    rotors = np.zeros(model.nv)  # N² I about the rotors' axes
    g = model.constraint_jacobian(q)
    for joint, body in zip(model.joints, model.bodies, strict=True):
        if not joint.independent:
            row = model.joint_names.index(joint.name)
            row += 5 if model.floating_base else 0
            axis = np.array(joint.axis)
            rotors += g[row] ** 2 * (axis @ np.array(body.inertia) @ axis)
    assert np.abs(armature - rotors).max() < 1e-12
    bias = rm.bias_force(tree, q, v)[order]
    expected = (h_y + np.diag(rotors)) @ a + bias
    assert relative(clusters.approximate_rnea(model, q, v, a), expected) < TIGHT
    forward = np.linalg.solve(h_y + np.diag(rotors), tau - bias)
    assert relative(clusters.approximate_aba(model, q, v, tau), forward) < TIGHT
    frames = [tree.bodies[-1].name, tree.bodies[0].name]
    j = np.vstack([rm.jacobian(tree, q, frame) for frame in frames])[:, order]
    osim = j @ np.linalg.solve(h_y + np.diag(rotors), j.T)
    assert relative(clusters.approximate_efpa(model, q, frames), osim) < TIGHT


@pytest.mark.slow
def test_propagation_counts_fewer_operations_where_branches_meet() -> None:
    """Feet and hips of Mini Cheetah: branches meet at each hip and at the base."""
    model = rm.robots.load("mini_cheetah")
    legs = ("FR", "FL", "HR", "HL")
    frames = [f"{leg}_{link}" for leg in legs for link in ("foot_contact", "hip_link")]
    q = model.random_configuration(0)
    expected = rm.efpa(model, q, frames)
    count = {}
    for method in ("efpa", "pv-osim"):
        program = clusters.propagation(model, frames, method)
        found = np.array(program(list(q)), dtype=float).reshape(48, 48)
        assert relative(found, expected) < TIGHT
        count[method] = program.flops
    assert count["pv-osim"] < 0.8 * count["efpa"]
    with pytest.raises(ValueError, match="'efpa' and 'pv-osim' are"):
        clusters.propagation(model, frames, "aba")


def test_without_forces_nothing_is_articulated() -> None:
    model = rm.robots.load("four_bar")
    (o,) = operators(model, *states(model)[:2])
    assert o.articulated_inertia is None
