"""The other methods: exact ones agree with the clusters, approximate ones with their open tree."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from baseline_texts import EXAMPLES, OPEN, TIGHT, Array, states
from cases import few
from hypothesis import assume, given, settings
from mechanisms import KINDS, Mechanism, mechanisms, random_mechanism
from random_models import load
from shipped_robots import ROBOTS
from test_dynamics import relative
from texts import joint, link, robot

import robomodel as rm
from robomodel.dynamics.baselines import open_tree, spanning_tree, weights

EXACT = ("projection", "lagrange", "orthonormal")

# ---- projection and multipliers ------------------------------------------------------------------


def methods_agree(
    model: rm.Model, q: Array, v: Array, x: Array, f_ext: dict | None = None, backend="numpy"
) -> None:
    """All exact methods at these states: accelerations, and the forces they leave unbalanced."""
    options = {"f_ext": f_ext, "backend": backend}
    tau = rm.rnea(model, q, v, x, **options)
    projected = rm.rnea(model, q, v, x, method="projection", **options)
    mass = rm.crba(model, q, backend=backend)
    assert relative(projected, tau, np.max(mass)) < 1e-12
    a = rm.aba(model, q, v, x, **options)
    for method in EXACT:
        found = rm.aba(model, q, v, x, method=method, **options)
        # up to what the mass matrix does to rounding; nothing excuses unbalanced forces
        condition = float(np.max(np.linalg.cond(mass)))
        assert relative(found, a) < max(1e-11, 1e-15 * condition)
        left = np.einsum("...ij,...j->...i", mass, found - a)
        assert relative(left, 0 * left, mass * np.abs(a)[..., None, :]) < TIGHT


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_exact_methods_agree_on_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    methods_agree(model, *states(model, 50))
    rng = np.random.default_rng(1)
    f_ext = {frame.name: rng.standard_normal((3, 6)) for frame in model.frames}
    methods_agree(model, *states(model, 3, 1), f_ext)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", few(["mini_cheetah", "planar_leg_linkage", "belt_leg"], "belt_leg")
)
def test_kernels_of_every_method(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 20, 2)
    methods_agree(model, q, v, x, backend="compiled")
    for method in (*EXACT, *OPEN):
        kernel = rm.compile(model, "aba", method=method)
        assert f"<Kernel aba:{method} of '{name}'" in repr(kernel)
        expected = rm.aba(model, q, v, x, method=method, backend="numpy")
        assert relative(kernel(q, v, x), expected) < TIGHT
        assert relative(rm.aba(model, q, v, x, method=method), expected) < TIGHT
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(q, v, x), kernel(q, v, x))
    for method in ("projection", *OPEN):
        expected = rm.rnea(model, q, v, x, method=method, backend="numpy")
        assert relative(rm.rnea(model, q, v, x, method=method), expected) < TIGHT


def agree_on(mechanism: Mechanism) -> None:
    loaded = load(mechanism)
    assume(loaded is not None)
    model, q = loaded
    rng = np.random.default_rng(3)
    v, x = rng.standard_normal((2, model.nv))
    methods_agree(model, q, v, x, mechanism.f_ext)


@pytest.mark.tables
@settings(max_examples=20, deadline=None)
@given(mechanisms())
def test_exact_methods_agree_on_random_mechanisms(mechanism: Mechanism) -> None:
    agree_on(mechanism)


@pytest.mark.slow_cases("tether")
@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "mimic", "rod", "tether"))
def test_exact_methods_agree_on_every_kind(kind: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng([seed, 7])
        loaded = load(random_mechanism(rng, [kind], n_joints=3))
        if loaded is not None:
            model, q = loaded
            v, x = rng.standard_normal((2, model.nv))
            methods_agree(model, q, v, x)
            return
    pytest.fail("no mechanism of this kind moves")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linkage_on_the_base", "tello"])
def test_multipliers_with_massless_links(name: str) -> None:
    """There the spanning tree's own mass matrix is singular; the robot's is not."""
    model = rm.load(EXAMPLES[name]) if name in EXAMPLES else rm.robots.load(name)
    tree = spanning_tree(model)
    q, v, x = states(model, 5, 4)
    positions = [float(y) for y in model.spanning_positions([float(y) for y in q[0]])]
    singular = np.linalg.svd(rm.crba(tree, positions, backend="numpy"), compute_uv=False)
    assert singular[-1] < 1e-12 * singular[0]
    assert any(weights(model))
    methods_agree(model, q, v, x)


def test_multipliers_leave_a_regular_mass_matrix_as_it_is() -> None:
    for name in ("mini_cheetah", "four_bar", "six_bar", "belt_leg"):
        assert not any(weights(rm.robots.load(name)))


def spherical_linkage() -> str:
    """Four axes through one point: three of the loop's five rows are redundant, in turns."""

    def end(angle: float) -> str:
        xyz = f"0 {-0.5 * math.sin(angle)!r} {0.5 * math.cos(angle)!r}"
        return f'<origin xyz="{xyz}" rpy="{angle!r} 0 0"/>'

    return robot(
        *(link(n) for n in "abc"),
        joint("ja", "base", "a"),
        joint("jb", "a", "b", rpy="0.7 0 0"),
        joint("jc", "base", "c", rpy="1.1 0.4 0"),
        f'<loop name="l" type="revolute"><predecessor link="b">{end(0.9)}</predecessor>'
        f'<successor link="c">{end(0.8)}</successor><axis xyz="0 0 1"/></loop>',
    )


def test_multipliers_with_rows_that_are_redundant_otherwise_elsewhere() -> None:
    model = rm.load(spherical_linkage())
    constraint = model.clusters[0].constraint
    assert len(constraint.keep) == 5  # for two velocities
    methods_agree(model, *states(model, 20, 5))


def test_the_spanning_tree_is_an_open_tree() -> None:
    model = rm.robots.load("planar_leg_linkage")
    tree = spanning_tree(model)
    assert tree is spanning_tree(model)
    assert (tree.nq, tree.nv) == (model.n_joint_positions, model.n_joint_velocities)
    assert tree.dof_names == model.joint_names
    assert not tree.loops
    assert {c.kind for c in tree.clusters} == {"joint"}
    q = model.random_configuration(0)
    g = model.constraint_jacobian(q)
    spanning = np.array(model.spanning_positions(list(q)))
    assert relative(g.T @ rm.crba(tree, spanning) @ g, rm.crba(model, q)) < 1e-13


@pytest.mark.slow
def test_efpa_of_every_method() -> None:
    model = rm.robots.load("planar_leg_linkage")
    q, _, _ = states(model, 4, 5)
    frames = [("shank_support", (0.1, 0.0, 0.02)), "thigh"]
    exact = rm.efpa(model, q, frames)
    assert relative(rm.efpa(model, q, frames, method="projection"), exact) < 1e-12
    for method in OPEN:
        tree = open_tree(model, method).model
        at = np.array([model.spanning_positions(list(x)) for x in q])[:, [0, 3]]  # thigh, shank
        j = np.concatenate([rm.jacobian(tree, at, frame) for frame in frames], axis=1)
        expected = j @ np.linalg.solve(rm.crba(tree, at), np.swapaxes(j, 1, 2))
        assert relative(rm.efpa(model, q, frames, method=method), expected) < 1e-12
    with pytest.raises(ValueError, match="'approximate' leaves out the body 'shank_driver'"):
        rm.efpa(model, q, "shank_driver", method="approximate")
