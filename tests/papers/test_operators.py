"""Spatial operators: every identity of 004 on trees of all kinds, and the core's recursions."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import few
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from test_armature import armed

import robomodel as rm
from robomodel.model import build
from robomodel.papers.spatial_operators import (
    ROOT,
    SKO,
    Adjacency,
    BackwardLyapunov,
    BlockDiagonal,
    ForwardLyapunov,
    Operator,
    PickOff,
    Propagator,
    Space,
    Tree,
    Underactuated,
    draw_sparsity,
    draw_tree,
    identity,
    robot_operators,
)

pytestmark = pytest.mark.slow  # the papers' own

Array = NDArray[np.float64]
TIGHT = 1e-12


def near(found: Operator | Array, expected: Operator | Array, scale: float = 0.0) -> None:
    """Equal to 1e-12 of the largest entry, or of ``scale`` where terms larger than that cancel."""
    a, b = (x.dense() if isinstance(x, Operator) else np.asarray(x) for x in (found, expected))
    assert 0 in (a.ndim, b.ndim) or a.shape[-1] == b.shape[-1]
    size = max(np.max(np.abs(b), initial=0.0), scale)
    assert np.max(np.abs(a - b), initial=0.0) <= TIGHT * max(size, 1e-3)


def t(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


# ---- trees of a user's own, with odd weights -----------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Forests of 1 to 9 nodes, numbered in any order."""
    n = draw(st.integers(1, 9))
    above = [draw(st.integers(ROOT, k - 1)) for k in range(n)]
    number = draw(st.permutations(range(n)))
    parents = [ROOT] * n
    for k, parent in enumerate(above):
        parents[number[k]] = ROOT if parent == ROOT else number[parent]
    return Tree(tuple(f"n{k}" for k in range(n)), tuple(parents))


def odd_weights(tree: Tree, rows: Space, rng: np.random.Generator) -> Adjacency:
    """Full, singular and zero weights, some with a batch of two."""

    def weight(k: int) -> Array:
        m = 0 if tree.parents[k] == ROOT else rows.sizes[tree.parents[k]]
        batch = () if rng.random() < 0.5 else (2,)
        full = rng.uniform(-1, 1, (*batch, m, rows.sizes[k])) / np.sqrt(max(rows.sizes[k], 1))
        kind = rng.integers(4)
        if kind == 0 and m > 1:
            full[..., 0, :] = full[..., 1, :]
        return 0 * full if kind == 1 else full

    return Adjacency(rows, rows, tuple(weight(k) for k in range(len(tree))))


def symmetric(space: Space, rng: np.random.Generator) -> BlockDiagonal:
    def block(m: int) -> Array:
        a = rng.standard_normal((m, m))
        return a @ a.T + 0.3 * np.eye(m)

    return BlockDiagonal(space, space, tuple(block(m) for m in space.sizes))


def odd_model(tree: Tree, seed: int) -> SKO:
    """Nodes of 1 to 5 velocities with 0 to 3 coordinates each."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 6, len(tree))
    n = [int(rng.integers(0, min(size, 3) + 1)) for size in m]
    nodes, rates = Space(tree, tuple(m.tolist())), Space(tree, tuple(n))
    maps = tuple(
        np.linalg.qr(rng.standard_normal((rows, rows)))[0][:, :cols].T
        for rows, cols in zip(nodes.sizes, rates.sizes, strict=True)
    )
    return SKO(
        weights=odd_weights(tree, nodes, rng),
        H=BlockDiagonal(rates, nodes, maps),
        M=symmetric(nodes, rng),
        a=rng.standard_normal(nodes.size),
        b=rng.standard_normal((2, nodes.size)),
    )


ODD = {"tree": trees(), "seed": st.integers(0, 2**32 - 1)}


def assembled(of: Adjacency) -> Array:
    """𝓔 put together block by block."""
    batch = np.broadcast_shapes(*(w.shape[:-2] for w in of.weights))
    result = np.zeros((*batch, of.rows.size, of.cols.size))
    for k, parent in enumerate(of.tree.parents):
        if parent != ROOT:
            result[..., of.rows.slices[parent], of.cols.slices[k]] = of.weights[k]
    return result


def put_together(block: Callable[[int, int], Array], rows: Space, cols: Space) -> Array:
    """A matrix from what ``block`` says of each pair of nodes."""
    blocks = {(i, j): block(i, j) for i in range(len(rows.sizes)) for j in range(len(cols.sizes))}
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in blocks.values()))
    result = np.zeros((*batch, rows.size, cols.size))
    for (i, j), x in blocks.items():
        result[..., rows.slices[i], cols.slices[j]] = x
    return result


# ---- the identities ------------------------------------------------------------------------------


def check_propagator(adjacency: Adjacency, seed: int = 0) -> None:
    """Lemmas 1 and 2, (4)-(9): 𝔸 = (1 - 𝓔)⁻¹, nilpotency, gather, scatter, 𝔸̃, blocks of paths."""
    e, a = assembled(adjacency), Propagator(adjacency)
    one = np.eye(a.rows.size)
    near(adjacency, e)
    near(np.linalg.matrix_power(e, len(a.tree)), 0 * e, scale=1.0)
    dense = np.linalg.inv(one - e)
    near(a, dense)
    near(a.T, t(dense))
    near(a.strict, dense - one)
    near(a.inverse, one - e)
    near(a.inverse @ a, identity(a.rows), scale=float(np.max(np.abs(dense))))
    x = np.random.default_rng(seed).standard_normal((3, 1, a.rows.size))
    near(a @ x, (dense @ x[..., None])[..., 0])
    near(a.T @ x, (t(dense) @ x[..., None])[..., 0])
    near(a.strict.T @ x, (t(dense - one) @ x[..., None])[..., 0])
    near(put_together(a.block, a.rows, a.rows), dense)


def check_forward(a: Propagator, x: BlockDiagonal, b: Propagator) -> None:
    """Lemma 3, (11)-(16)."""
    solution = ForwardLyapunov(a, x, b)
    y = solution.Y
    near(y - a.adjacency.around(y, b.adjacency), x, scale=float(np.max(np.abs(y.dense()))))
    near(
        a.adjacency.around(y, b.adjacency).dense(),
        a.adjacency.dense() @ y.dense() @ t(b.adjacency.dense()),
    )
    z = a.dense() @ x.dense() @ t(b.dense())
    near(solution.operator, z)
    near(sum(part.dense() for part in solution.parts), z)
    near(put_together(solution.block, a.rows, b.rows), z)


def check_backward(a: Propagator, x: BlockDiagonal, b: Propagator) -> None:
    """(21)-(30): solution, disjoint parts, blocks from the closest common ancestor."""
    solution = BackwardLyapunov(a, x, b)
    tree, y = a.tree, solution.Y
    inner = t(a.adjacency.dense()) @ y.dense() @ b.adjacency.dense()
    z = t(a.dense()) @ x.dense() @ b.dense()
    size = float(np.max(np.abs(z)))
    near(solution.operator, z)
    near(put_together(solution.block, a.rows, b.rows), z)

    def home(i: int, j: int) -> int:
        top = tree.common_ancestor(i, j)
        return 0 if i == j else 1 if top == i else 2 if top == j else 3

    def where(n: int) -> Array:
        """Ones in the blocks whose part is the n-th."""
        sizes = a.rows.sizes, b.rows.sizes
        return put_together(
            lambda i, j: np.full((sizes[0][i], sizes[1][j]), float(home(i, j) == n)), a.rows, b.rows
        )

    for n, part in enumerate(solution.parts):
        near(part, where(n) * z, scale=size)
    near(y.dense() - where(0) * inner, x, scale=size)


def check_riccati(model: SKO) -> None:
    """Lemmas 7 to 11 and corollary 6.1, (31)-(53)."""
    tree, riccati = model.tree, model.articulated
    a, psi = model.A.dense(), riccati.psi.dense()
    h, m, e = model.H.dense(), model.M.dense(), model.weights.dense()
    p, d, g = riccati.P.dense(), riccati.D.dense(), riccati.G.dense()
    k, e_psi = riccati.K.dense(), riccati.weights.dense()
    one, unit = np.eye(model.nodes.size), np.eye(model.rates.size)
    size = float(np.max(np.abs(p)))
    near(d, h @ p @ t(h))
    near(riccati.D_inverse.dense() @ d, unit)
    near(g @ d, p @ t(h))
    near(k, e @ g)
    near(riccati.remainder, one - g @ h)
    near(e_psi, e - k @ h)
    near(m, p - e @ (p - p @ t(h) @ riccati.D_inverse.dense() @ h @ p) @ t(e), scale=size)
    near(m, p - e_psi @ p @ t(e_psi), scale=size)  # equation 36, first half
    near(m, p - e_psi @ p @ t(e), scale=size)  # and second
    check_propagator(riccati.weights)
    for node in range(len(tree)):  # M ≤ P ≤ composite; the weights that remain are singular
        of = (model.M, riccati.P, model.composites.Y)
        blocks = [x.blocks[node] for x in of]
        for less, more in pairwise(blocks):
            assert np.all(np.linalg.eigvalsh(more - less) >= -TIGHT * np.max(np.abs(blocks[-1])))
        lost = riccati.weights.weights[node] @ riccati.G.blocks[node]
        near(lost, np.zeros(lost.shape), scale=1.0)

    tilde = psi - one
    big = max(float(np.max(np.abs(x))) for x in (a @ m @ t(a), a @ p, psi, a, k))
    near(np.linalg.inv(psi), np.linalg.inv(a) + k @ h, scale=big)  # (38)
    near(np.linalg.solve(psi, a), one + k @ h @ a, scale=big)
    near(np.linalg.solve(a, psi), one - k @ h @ psi, scale=big)
    near(a @ np.linalg.inv(psi), one + a @ k @ h, scale=big)
    near(psi @ np.linalg.inv(a), one - psi @ k @ h, scale=big)
    near(psi @ m @ t(psi), p + tilde @ p + p @ t(tilde), scale=big)  # (41)
    near(a @ m @ t(psi), a @ p + p @ t(tilde), scale=big)
    near((unit - h @ psi @ k) @ h @ a, h @ psi, scale=big)
    near((unit + h @ a @ k) @ h @ psi, h @ a, scale=big)
    near(a @ k, psi @ k @ (unit + h @ a @ k), scale=big)
    near(psi @ k, a @ k @ (unit - h @ psi @ k), scale=big)
    near(h @ psi @ m @ t(psi) @ t(h), d, scale=big)  # (46): block-diagonal
    near(psi @ p @ t(h), p @ t(h), scale=big)

    mass = h @ a @ m @ t(a) @ t(h)
    factor = unit + h @ a @ k
    top = float(np.max(np.abs(mass), initial=0.0))
    near(riccati.factor, factor)
    near(factor @ d @ t(factor), mass, scale=top)  # (49)
    near(riccati.mass_operator, mass)
    near(riccati.factor_inverse.dense() @ factor, unit, scale=float(np.max(np.abs(factor))))  # (50)
    near(riccati.mass_inverse.dense() @ mass, unit, scale=1 + top * spread(riccati.mass_inverse))
    sign, log_det = np.linalg.slogdet(mass)
    assert np.all(sign > 0)
    near(riccati.log_det, log_det, scale=1.0 + model.rates.size)  # (53)
    near(np.linalg.slogdet(factor)[1], 0 * log_det, scale=1.0 + model.rates.size)  # (52)
    order = [i for node in tree.canonical for i in range(*model.rates.slices[node].indices(10**6))]
    lower = factor[..., order, :][..., :, order]
    near(np.triu(lower, 1), 0 * lower, scale=1.0)  # canonical trees: unit lower triangular
    near(np.diagonal(lower, axis1=-2, axis2=-1), np.ones(len(order)))


def spread(operator: Operator) -> float:
    return float(np.max(np.abs(operator.dense()), initial=0.0))


def check_dynamics(model: SKO, seed: int = 0) -> None:
    """Algorithm 3.1, the mass matrix in all its forms, (54)-(58) with the explicit expression."""
    rng = np.random.default_rng(seed)
    a, h, m, e = (x.dense() for x in (model.A, model.H, model.M, model.weights))
    qd = rng.standard_normal(model.rates.size)
    mass = h @ a @ m @ t(a) @ t(h)
    near(model.velocities(qd), t(a) @ t(h) @ qd)
    near(model.mass_matrix(), mass)
    near(model.mass_operator, mass)
    near(sum(part.dense() for part in model.mass_parts), mass)
    drift = (t(a) @ model.a[..., None])[..., 0]
    near(model.accelerations(qd), t(a) @ t(h) @ qd + drift)
    inner = (m @ drift[..., None])[..., 0] + model.b
    bias = ((h @ a) @ inner[..., None])[..., 0]
    near(model.bias, bias)
    tau = (mass @ qd) + bias
    near(model.inverse_dynamics(qd), tau, scale=float(np.max(np.abs(bias), initial=0.0)))

    riccati = model.articulated
    k, psi, p = riccati.K.dense(), riccati.psi.dense(), riccati.P.dense()
    inverse = spread(riccati.mass_inverse)
    big = inverse * max(float(np.max(np.abs(x), initial=0.0)) for x in (tau, bias, mass))
    found = model.forward_dynamics(tau)
    near(found, np.broadcast_to(qd, found.shape), scale=big)
    left = np.eye(model.rates.size) - h @ psi @ k
    z = psi @ ((k @ tau[..., None]) + p @ model.a[..., None] + model.b[..., None])
    z0 = tau[..., None] - h @ z
    explicit = t(left) @ (riccati.D_inverse.dense() @ z0) - t(k) @ t(psi) @ model.a[..., None]
    near(found, explicit[..., 0], scale=big)  # (54), with ε = T - H z = (1 - HψK) T - Hψ(P a + b)
    direct = left @ tau[..., None] - h @ psi @ (p @ model.a[..., None] + model.b[..., None])
    near(z0, direct, scale=float(np.max(np.abs(z), initial=0.0)))
    assert e.shape[-1] == model.nodes.size


def check_compliance(model: SKO, picked: PickOff) -> None:
    """(59), (60): H*ℳ⁻¹H carried by 𝔸 is Ω; Λ⁻¹ = 𝓑* Ω 𝓑 = J ℳ⁻¹ J*."""
    riccati = model.articulated
    a, h = model.A.dense(), model.H.dense()
    inner = t(h) @ np.linalg.solve(model.mass_matrix(), h @ a)
    omega = t(a) @ inner
    size = float(np.max(np.abs(omega), initial=0.0))
    size *= max(1.0, float(np.max(np.linalg.cond(model.mass_matrix()))) * 1e-3)
    near(riccati.compliance.operator, omega, scale=size)
    b = picked.dense()
    found = riccati.inverse_operational_inertia(picked)
    near(found, t(b) @ riccati.compliance.operator.dense() @ b, scale=size)
    near(found, t(b) @ omega @ b, scale=size)
    force = np.ones(picked.cols.size)
    near((picked.T @ riccati.compliance.operator @ picked) @ force, found @ force, scale=size)


def some_points(model: SKO, rng: np.random.Generator) -> PickOff:
    """Two points on some nodes, one on the ground, one on a node that has one already."""
    on = [*rng.integers(0, len(model.tree), 3).tolist(), ROOT]
    on.append(on[0])
    sizes = [0 if k == ROOT else model.nodes.sizes[k] for k in on]
    return PickOff(
        model.nodes, tuple(on), tuple(rng.standard_normal((m, rng.integers(1, 4))) for m in sizes)
    )


def check_all(model: SKO, picked: PickOff, seed: int = 0) -> None:
    check_propagator(model.weights)
    check_forward(model.A, model.M, model.A)
    check_backward(model.A, model.M, model.A)
    if model.rates.size:
        check_riccati(model)
        check_dynamics(model, seed)
        check_compliance(model, picked)


@settings(max_examples=15)
@given(**ODD)
def test_all_identities_on_odd_trees(tree: Tree, seed: int) -> None:
    model = odd_model(tree, seed)
    check_all(model, some_points(model, np.random.default_rng(seed)), seed)


@settings(max_examples=15)
@given(**ODD)
def test_lyapunov_equations_of_two_propagators(tree: Tree, seed: int) -> None:
    """Two different weights, of different sizes, on one tree, and X between them."""
    rng = np.random.default_rng(seed)
    spaces = [Space(tree, tuple(rng.integers(1, 5, len(tree)).tolist())) for _ in range(2)]
    a, b = (Propagator(odd_weights(tree, space, rng)) for space in spaces)
    x = BlockDiagonal(
        *spaces,
        tuple(rng.standard_normal(s) for s in zip(*(s.sizes for s in spaces), strict=True)),
    )
    check_forward(a, x, b)
    check_backward(a, x, b)


# ---- robots --------------------------------------------------------------------------------------


def state(model: rm.Model, seed: int, count: int = 2) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a = rng.standard_normal((2, count, model.nv))
    return q, v, a


def check_robot(model: rm.Model, seed: int, identities: bool = True) -> None:
    """Both kinds of nodes: identities, and what the core computes."""
    q, v, a = state(model, seed)
    rng = np.random.default_rng(seed)
    names = [model.frames[i].name for i in rng.integers(0, len(model.frames), 3)]
    frames = [*names, (names[0], (0.1, -0.2, 0.3))]
    link = model.bodies[-1].name
    f_ext = {link: rng.standard_normal((2, 6)), names[0]: rng.standard_normal(6)}

    found = robot_operators(model, q, v, f_ext=f_ext)
    picked = found.pick_off(frames)
    mass = rm.crba(model, q, backend="numpy")
    condition = max(1.0, 1e-3 * float(np.max(np.linalg.cond(mass))))
    tau = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    near(found.inverse_dynamics(a), tau, scale=float(np.max(np.abs(mass))))
    near(found.bias, rm.bias_force(model, q, v, f_ext=f_ext, backend="numpy"))
    near(found.mass_matrix(), mass)
    expected = rm.aba(model, q, v, tau, f_ext=f_ext, backend="numpy")
    pushed = np.abs(np.linalg.inv(mass)) @ np.abs(tau)[..., None]  # M⁻¹ tau and M⁻¹ c cancel
    largest = max(float(np.max(pushed)), condition * float(np.max(np.abs(expected))))
    near(found.forward_dynamics(tau), expected, scale=largest)
    near(found.articulated.log_det, np.linalg.slogdet(mass)[1], scale=float(model.nv))
    efpa = rm.efpa(model, q, frames, backend="numpy")
    lambda_inverse = found.articulated.inverse_operational_inertia(picked)
    near(lambda_inverse, efpa, scale=condition * float(np.max(np.abs(efpa))))
    velocities = [rm.frame_velocity(model, q, v, at, backend="numpy") for at in frames]
    near(picked.T @ found.velocities(v), np.concatenate(velocities, axis=-1))
    jacobian = (picked.T @ found.A.T @ found.H.T).dense()
    per_frame = [rm.jacobian(model, q, at, backend="numpy") for at in frames]
    near(jacobian, np.concatenate(per_frame, axis=-2))
    if identities:
        check_all(found, picked, seed)

    bodies = robot_operators(model, q, v, nodes="bodies", f_ext=f_ext)
    assert len(bodies.tree) == len(model.bodies)
    big_g, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    near(t(big_g) @ bodies.mass_matrix() @ big_g, mass)
    qdd = (big_g @ a[..., None])[..., 0] + g
    forces = bodies.inverse_dynamics(qdd)
    near((t(big_g) @ forces[..., None])[..., 0], tau, scale=float(np.max(np.abs(forces))))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mini_cheetah", marks=pytest.mark.slow),
        "tello",
        "four_bar",
        "puma560",
        "planar_leg_linkage",
        pytest.param("jvrc1", marks=pytest.mark.slow),
        pytest.param("mit_humanoid", marks=pytest.mark.slow),
    ],
)
def test_robots(name: str) -> None:
    check_robot(rm.robots.load(name), 3, identities=name not in ("tello", "jvrc1", "mit_humanoid"))


@pytest.mark.slow
def test_identities_on_tello() -> None:
    check_robot(rm.robots.load("tello"), 3)


def loaded(kind: str, seed: int, n_joints: int = 5) -> rm.Model | None:
    made = random_mechanism(np.random.default_rng([seed, len(kind)]), [kind], n_joints=n_joints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        try:
            model = rm.load(made.text, floating_base=made.floating_base or None)
        except rm.DescriptionError as error:
            if "mobility 0" not in str(error):
                raise
            return None
    return model if model.nv else None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", few(KINDS, "gear", "coupling", "rod_four_bar", "rod", "spatial_loop")
)
def test_random_mechanisms(kind: str) -> None:
    models = [model for seed in range(2) if (model := loaded(kind, seed)) is not None]
    assert models
    for seed, model in enumerate(models):
        check_robot(model, seed, identities=seed == 0)


@pytest.mark.slow
def test_clusters_that_hang_on_several_bodies_of_their_parent() -> None:
    seen = 0
    for seed in range(12):
        model = loaded("two_outputs", seed, n_joints=9)
        if model is not None and any(len(c.outputs) > 1 for c in model.clusters):
            seen += 1
            check_robot(model, seed, identities=False)
        if seen == 3:
            return
    raise AssertionError(f"only {seen} such mechanisms")


@pytest.mark.parametrize("name", ["planar_leg_linkage", "belt_leg"])
def test_an_armature_is_a_velocity_more(name: str) -> None:
    """Blocks then differ in size, and the weight from such a node has rows of zeros."""
    plain = rm.robots.load(name)
    model = build(armed(plain.description))
    found, without = (robot_operators(m, m.neutral()).nodes.size for m in (model, plain))
    assert found == without + sum(joint.armature > 0 for joint in model.joints) > without
    check_robot(model, 5)


def test_a_singular_state_spoils_itself_alone() -> None:
    """A four-bar at its dead point, in a batch."""
    model = rm.robots.load("four_bar")
    q = np.array([model.neutral(), np.full(model.nq, np.nan), model.neutral()])
    a = robot_operators(model, q).forward_dynamics(np.ones(model.nv))
    assert np.isnan(a[1]).all()
    np.testing.assert_array_equal(a[0], a[2])
    assert np.isfinite(a[0]).all()


# ---- digraphs, compatibility, refusals -----------------------------------------------------------


def test_digraphs_that_are_no_trees_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="cycle: 'b' → 'c' → 'd' → 'b'"):
        Tree.from_edges([("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")])
    with pytest.raises(ValueError, match="cycle: 'x' → 'x'"):
        Tree.from_edges([("x", "x")])
    with pytest.raises(ValueError, match=r"node 'foot' has several parents \('left', 'right'\)"):
        Tree.from_edges([("hip", "left"), ("hip", "right"), ("left", "foot"), ("right", "foot")])
    with pytest.raises(ValueError, match="is there twice"):
        Tree(("a", "a"), (ROOT, 0))
    with pytest.raises(ValueError, match="cycle: 'a' → 'b' → 'a'"):
        Tree(("a", "b"), (1, 0))
    with pytest.raises(ValueError, match="the parent of node 'a' is no node: 5"):
        Tree(("a",), (5,))
    with pytest.raises(ValueError, match="1 nodes have 2 parents"):
        Tree(("a",), (ROOT, ROOT))
    with pytest.raises(KeyError, match="no node 'z'"):
        Tree(("a",), (ROOT,)).index("z")


def pair(**changes: dict) -> dict[str, dict]:
    blocks: dict[str, dict] = {
        "weights": {("arm", "hand"): np.ones((3, 2))},
        "H": {"arm": np.eye(3)[:1], "hand": np.eye(2)},
        "M": {"arm": np.eye(3), "hand": np.eye(2)},
    }
    return blocks | changes


def test_a_users_tree() -> None:
    model = SKO.from_blocks(**pair(), a={"hand": [1.0, 2.0]}, b={"arm": [0.1, 0.2, 0.3]})
    assert model.tree.names == ("arm", "hand")
    assert model.nodes.sizes == (3, 2)
    np.testing.assert_array_equal(model.a, [0, 0, 0, 1, 2])
    np.testing.assert_array_equal(model.b, [0.1, 0.2, 0.3, 0, 0])
    # arm: x; hand: x + θ₁, x + θ₂ (all weights 1), so T = ½ x² + ½ Σ (x + θ)²
    np.testing.assert_allclose(model.mass_matrix(), [[3, 1, 1], [1, 1, 0], [1, 0, 1]])
    check_all(model, some_points(model, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": {("arm", "hand"): np.ones((2, 3))}}, "weight of node 'hand' has the shape"),
        ({"H": {"arm": np.eye(2), "hand": np.eye(2)}}, "H of node 'arm' has the shape"),
        ({"H": {"arm": np.eye(3)}}, "node 'hand' needs both H and M"),
        ({"M": {"arm": np.eye(3)}}, "node 'hand' needs both H and M"),
        ({"H": {"arm": np.eye(3), "hand": np.eye(2), "foot": np.eye(2)}}, "no node 'foot' in M"),
        ({"H": {"arm": np.ones((4, 3)), "hand": np.eye(2)}}, "node 'arm' has 4 rows for 3"),
        ({"M": {"arm": np.triu(np.ones((3, 3))), "hand": np.eye(2)}}, "'arm' is not symmetric"),
        ({"M": {"arm": np.ones(3), "hand": np.eye(2)}}, "a block is a matrix"),
        ({"weights": {("arm", "hand"): 0, ("hand", "arm"): 0}}, "cycle: 'arm' → 'hand' → 'arm'"),
        ({"a": {"arm": np.ones(2)}}, "has 5 numbers"),
    ],
)  # fmt: skip
def test_blocks_that_do_not_fit_are_refused_by_name(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SKO.from_blocks(**pair(**changes))


def test_a_joint_without_inertia_is_named() -> None:
    dependent = SKO.from_blocks(**pair(H={"arm": np.eye(3)[[0, 0]], "hand": np.eye(2)}))
    with pytest.raises(ValueError, match="node 'arm' can move without inertia"):
        dependent.forward_dynamics(np.zeros(4))
    massless = SKO.from_blocks(**pair(M={"arm": np.eye(3), "hand": np.diag([1.0, 0.0])}))
    with pytest.raises(ValueError, match="node 'hand' can move without inertia"):
        _ = massless.articulated


def test_operators_of_different_models_do_not_mix() -> None:
    rng = np.random.default_rng(1)
    chain, fork = Tree(("a", "b", "c"), (ROOT, 0, 1)), Tree(("a", "b", "c"), (ROOT, 0, 0))
    spaces = [Space(tree, (2, 2, 2)) for tree in (chain, fork)]
    first, second = (Propagator(odd_weights(s.tree, s, rng)) for s in spaces if s.tree)
    with pytest.raises(
        ValueError, match=r"factors of a product are not compatible.*different trees"
    ):
        _ = first @ second
    with pytest.raises(ValueError, match="terms of a sum are not compatible"):
        _ = first + second
    with pytest.raises(ValueError, match="𝔸 and X are not compatible"):
        ForwardLyapunov(first, symmetric(spaces[1], rng), first)
    with pytest.raises(ValueError, match="𝔹 and X are not compatible"):
        BackwardLyapunov(first, symmetric(spaces[0], rng), second)
    smaller = identity(Space(chain, (2, 2, 1)))
    with pytest.raises(ValueError, match=r"6 numbers on 3 nodes .* against 5 numbers"):
        _ = first @ smaller
    with pytest.raises(ValueError, match="has 6 numbers on its last axis"):
        _ = first @ np.ones(5)
    with pytest.raises(ValueError, match="pick-off from a node of size 2"):
        PickOff(spaces[0], (0,), (np.ones((3, 1)),))
    model = rm.robots.load("four_bar")
    unknown: Any = "links"
    with pytest.raises(ValueError, match="nodes 'links' are not known"):
        robot_operators(model, model.neutral(), nodes=unknown)


def test_products_keep_their_structure() -> None:
    """Block-diagonal and adjacency operators stay what they are, whatever else is a product."""
    model = odd_model(Tree(("a", "b", "c"), (ROOT, 0, 0)), 4)
    h, m, e = model.H, model.M, model.weights
    assert isinstance(h @ m @ h.T, BlockDiagonal)
    assert isinstance(m - m, BlockDiagonal)
    assert isinstance(e @ m, Adjacency)
    assert isinstance(m @ e, Adjacency)
    for found, expected in (
        (m @ e, m.dense() @ e.dense()),
        (e @ m, e.dense() @ m.dense()),
        (m + e, m.dense() + e.dense()),
        ((e + m).T, t(e.dense() + m.dense())),
        (e.T.T, e.dense()),
        ((h @ model.A).T, t(h.dense() @ model.A.dense())),
    ):
        near(found, expected)
    assert type(e @ e) is not Adjacency


# ---- order of the cost, serial branches, pictures ------------------------------------------------


def test_long_chains_are_actions_not_matrices() -> None:
    """A chain of 1500 nodes: no recursion of Python's, and nothing of the size of a matrix."""
    n = 1500
    tree = Tree(tuple(range(n)), tuple(range(-1, n - 1)))
    nodes, rates = Space(tree, (2,) * n), Space(tree, (1,) * n)
    weight = np.array([[0.9, 0.0], [0.1, 0.5]])
    model = SKO(
        weights=Adjacency(nodes, nodes, (np.zeros((0, 2)), *(weight for _ in range(n - 1)))),
        H=BlockDiagonal(rates, nodes, (np.array([[1.0, 0.2]]),) * n),
        M=BlockDiagonal(nodes, nodes, (np.diag([1.0, 0.3]),) * n),
    )
    qdd = np.sin(np.arange(n))
    tau = model.inverse_dynamics(qdd)
    near(model.forward_dynamics(tau), qdd)
    near(model.mass_operator @ qdd, tau)
    near(model.articulated.mass_inverse @ tau, qdd)
    near(model.articulated.mass_operator @ qdd, tau)
    assert tree.branches == (tuple(range(n)),)


# base 0 forks to the serial branches 1-2 and 3; 2 forks to 4 and 5-6 (as figure 3 does)
FIVE = Tree(tuple("abcdefg"), (ROOT, 0, 1, 0, 2, 2, 5))


def test_serial_branches() -> None:
    assert FIVE.branches == ((0,), (1, 2), (3,), (4,), (5, 6))
    assert FIVE.branch_tree.parents == (ROOT, 0, 0, 1, 1)
    assert FIVE.canonical == (6, 5, 4, 3, 2, 1, 0)
    assert FIVE.common_ancestor(6, 4) == 2
    assert FIVE.common_ancestor(6, 3) == 0
    assert FIVE.common_ancestor(2, 6) == 2
    two = Tree(("a", "b"), (ROOT, ROOT))
    assert two.common_ancestor(0, 1) == ROOT
    assert two.branch_tree.parents == (ROOT, ROOT)


@settings(max_examples=15)
@given(**ODD)
def test_patterns_are_those_of_the_operators(tree: Tree, seed: int) -> None:
    """With full weights a block is zero exactly where the pattern says so; by branches, too."""
    rng = np.random.default_rng(seed)
    space = Space(tree, (2,) * len(tree))
    weights = tuple(rng.uniform(0.5, 1.0, (0 if p == ROOT else 2, 2)) for p in tree.parents)
    model = SKO(
        weights=Adjacency(space, space, weights),
        H=identity(space),
        M=identity(space),
    )
    for name, operator in (
        ("adjacency", model.weights),
        ("propagator", model.A),
        ("mass matrix", model.mass_operator),
    ):
        blocks = operator.dense().reshape(len(tree), 2, len(tree), 2)
        nonzero = np.any(blocks != 0, axis=(1, 3))
        np.testing.assert_array_equal(tree.pattern(name), nonzero)
        canonical = np.ix_(tree.canonical, tree.canonical)
        if name != "mass matrix":
            assert not np.triu(nonzero[canonical], 1).any()
    coarse = tree.branch_tree.pattern("mass matrix")
    fine = tree.pattern("mass matrix")
    for i, rows in enumerate(tree.branches):  # blocks of branches are dense or empty
        for j, cols in enumerate(tree.branches):
            assert np.all(fine[np.ix_(rows, cols)] == coarse[i, j])
    assert sorted(k for chain in tree.branches for k in chain) == list(range(len(tree)))
    unknown: Any = "phi"
    with pytest.raises(ValueError, match="pattern 'phi' is not known"):
        tree.pattern(unknown)


@pytest.mark.slow
def test_pictures() -> None:
    """Drawn blocks are the pattern's, in canonical order, those within branches darkest."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    order = np.ix_(FIVE.canonical, FIVE.canonical)
    for of in ("adjacency", "propagator", "mass matrix"):
        axes = draw_sparsity(FIVE, of)
        (image,) = axes.get_images()
        shades = np.asarray(image.get_array())
        np.testing.assert_array_equal(shades > 0, FIVE.pattern(of)[order])
        assert [label.get_text() for label in axes.get_xticklabels()] == list("54321")
        pyplot.close(axes.figure)
    axes = draw_tree(FIVE)
    assert [text.get_text() for text in axes.texts] == list("12345")
    assert len(axes.lines) == 6  # an edge for every node but the root
    assert draw_sparsity(FIVE, axes=axes) is axes
    pyplot.close(axes.figure)


def test_matplotlib_is_not_imported_before_something_is_drawn() -> None:
    code = "import sys, robomodel.papers.spatial_operators; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_documentation_runs() -> None:
    text = (Path(__file__).parents[2] / "docs/papers/spatial-operators.md").read_text()
    names: dict[str, object] = {}
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "operators.md", "exec"), names)


# ---- some accelerations given, other forces ------------------------------------------------------


@pytest.mark.parametrize("name", few(["tello", "mini_cheetah", "five_bar"], "mini_cheetah"))
def test_underactuated_operators(name: str) -> None:
    """Against :func:`rm.hybrid` and dense Schur complements."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(6)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    active = tuple(range(1, model.nv, 3))
    split = Underactuated(robot_operators(model, q, v), active)
    passive = split.passive
    given_, push = rng.normal(size=len(active)), rng.normal(size=len(passive))
    tau, a = split.hybrid(given_, push)
    expected = rm.hybrid(
        model, q, v,
        tau={model.dof_names[i]: x for i, x in zip(passive, push, strict=True)},
        a={model.dof_names[i]: x for i, x in zip(active, given_, strict=True)},
    )  # fmt: skip
    for found, wanted in zip((tau, a), expected, strict=True):
        assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()
    mass = rm.crba(model, q)
    pp, pa = mass[np.ix_(passive, passive)], mass[np.ix_(passive, active)]
    near(split.S_pp, np.linalg.inv(pp))
    near(split.S_pa, -np.linalg.solve(pp, pa))
    schur = mass[np.ix_(active, active)] - pa.T @ np.linalg.solve(pp, pa)
    near(split.S_aa, schur, np.abs(mass).max())
    many = split.hybrid(np.stack([given_, 0 * given_]), push)
    near(many[0][0], tau)


def test_active_coordinates_are_checked() -> None:
    model = rm.robots.load("five_bar")
    operators = robot_operators(model, model.neutral())
    for active in ((1, 0), (0, 0), (5,), (-1,)):
        with pytest.raises(ValueError, match="ascending indices"):
            Underactuated(operators, active)
    with pytest.raises(ValueError, match="passive"):
        Underactuated(operators, (0,)).hybrid([1.0], [1.0, 2.0, 3.0])
