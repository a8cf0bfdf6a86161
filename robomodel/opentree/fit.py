"""Bodies of open trees that move as the robot does: exact ones behind gears, fitted ones elsewhere.

An open tree's torques are linear in its parameters π: those of bodies, armatures and tendons, which
need not be the links' own. Behind gears the exact π follows from the ratios (:func:`relumped`);
elsewhere π is fitted to the exact torques, gravity's with more weight, over the range of motion and
in the norm of the robot's inertia (:func:`fitted`); docs/approximate.md has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description.transmissions import rotor_name
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.lumped import joint_inertias
from robomodel.dynamics.physical import Cone, ParameterPrior, minimise
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.regressor import regressor
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.dynamics.tree_map import TreeMap
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Revolute
from robomodel.model.elements import joint_slices
from robomodel.model.model import Model
from robomodel.model.parameters import (
    ENTRIES,
    INERTIAL,
    of_joints,
    parameters,
    pseudo_inertia,
    with_parameters,
)
from robomodel.opentree.mirror_images import symmetric
from robomodel.opentree.tree_joints import ClusterTree
from robomodel.scalars import stack, unstack
from robomodel.spatial import UNIT, Transform
from robomodel.tolerances import NOTHING, ROUNDING, SINGULAR, TINY

STATES = 400  # of a fit; as many others give its errors, which are then alike
RATE = 10.0  # rad/s: ratio of accelerations to velocities in the states
FALL = 10.0  # rad/s², m/s²: accelerations of robots on which gravity has no effect
BALANCED = 1e-3  # of these torques: gravity's on a balanced robot are less
GRAVITY = 10.0  # times as exact as other torques, because it always acts
GAMMA = 1e-6  # weight of the distance to the lumped bodies, in the relative error squared
HALVES = 20  # of a weight that starts at 1: Newton's method follows the solutions in a few steps
CENTRED, FINISHED = 0.1, 1e-6  # of a weight: the accuracy on the way, and at the end
RAISED = 1e-3  # of the largest eigenvalue of a body's Σ: smaller ones start from it
LIGHT = 1e-4  # of the tree's mass: least mass of a body at the start
ARMATURE, TENDON = 0.05, 0.02  # of the joint's inertia: armatures at the start
FITTED_DIGITS = 9  # of fitted numbers
SEED = 20260302


# ---- exact states --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactStates:
    """States (n) of a robot with its torques, in its independent velocities.

    ``balanced``: gravity acts on no joint, or is balanced.
    """

    model: Model
    q: Array
    v: Array
    a: Array
    tau: Array
    mass: Array
    gravity: Array
    balanced: bool

    def on(self, tree: TreeMap) -> TreeStates:
        """These states in an open tree's coordinates."""
        state = State(self.model, unstack(self.q), (), unstack(self.v))
        n = len(self.q)
        g = jacobian_of(state, tree.velocities, n)
        bias = stack([state.bias[r] for r in tree.velocities], (n,))
        back = np.linalg.inv(g)
        return TreeStates(
            stack([state.positions[i] for i in tree.positions], (n,)),
            np.einsum("nij,nj->ni", g, self.v),
            np.einsum("nij,nj->ni", g, self.a) + bias,
            np.einsum("nji,nj->ni", back, self.tau),
            np.linalg.cholesky(np.swapaxes(back, 1, 2) @ self.mass @ back),
            np.einsum("nji,nj->ni", back, self.gravity),
            self.balanced,
        )


@dataclass(frozen=True, eq=False)
class TreeStates:
    """Exact positions, velocities, accelerations and torques of a tree's joints (n, tree.nv).

    ``low`` (n, nv, nv): Cholesky's factor of the robot's inertia; ``gravity``: torques at rest.
    """

    t: Array
    dt: Array
    ddt: Array
    tau: Array
    low: Array
    gravity: Array
    balanced: bool


def jacobian_of(state: State, rows: Sequence[int], n: int) -> Array:
    """G's rows (n, rows, nv)."""
    model = state.model
    result = np.zeros((n, len(rows), model.nv))
    cluster_of = {r: c for c in model.clusters
                  for r in range(c.spanning_v.start, c.spanning_v.stop)}  # fmt: skip
    for i, r in enumerate(rows):
        result[:, i, cluster_of[r].v] = stack(state.rows[r], (n,))
    return result


def on_arrays(recursion: Callable[..., Any], model: Model, *arrays: Array) -> Array:
    """A recursion on a batch: vectors (n, …) or matrices (n, …, …)."""
    result = recursion(model, *map(unstack, arrays))
    n = len(arrays[0])
    if result and isinstance(result[0], list):
        return np.stack([stack(row, (n,)) for row in result], axis=1)
    return stack(result, (n,))


def exact_states(
    model: Model, tree: TreeMap, trees: Sequence[ClusterTree], *, check: bool
) -> ExactStates:
    """Random states over a tree's range: equal energies in all directions, as large as gravity's.

    Accelerations are of the size :data:`FALL` if gravity has no effect on the robot, or is
    balanced. ``check``: draw other states than for the fit.
    """
    rng = np.random.default_rng(SEED + check)
    n = STATES
    q = _configurations(model, trees, rng, check=check)
    zero = np.zeros((n, model.nv))
    mass, gravity = on_arrays(crba, model, q), on_arrays(rnea, model, q, zero, zero)
    state = State(model, unstack(q), (), unstack(zero))
    back = np.linalg.inv(jacobian_of(state, tree.velocities, n))
    low = np.linalg.cholesky(np.swapaxes(back, 1, 2) @ mass @ back)
    lean = np.linalg.solve(low, np.einsum("nji,nj->ni", back, gravity)[..., None])
    size = math.sqrt(float(np.mean(lean**2)))
    without = FALL * math.sqrt(float(np.mean(np.sum(low**2, axis=(1, 2)))) / model.nv)
    balanced = size < BALANCED * without
    if balanced:
        size = without
    up = back @ np.linalg.inv(np.swapaxes(low, 1, 2))
    draws = rng.standard_normal((2, n, model.nv)) * size
    v = np.einsum("nij,nj->ni", up, draws[0] / RATE)
    bias = State(model, unstack(q), (), unstack(v)).bias
    along = stack([bias[r] for r in tree.velocities], (n,))
    a = np.einsum("nij,nj->ni", up, draws[1]) - np.einsum("nij,nj->ni", back, along)
    return ExactStates(model, q, v, a, on_arrays(rnea, model, q, v, a), mass, gravity, balanced)


def _configurations(
    model: Model, trees: Sequence[ClusterTree], rng: np.random.Generator, *, check: bool
) -> Array:
    """Configurations (n, nq), the clusters' drawn independently of each other, neutral first."""
    q = np.tile(model.neutral(), (STATES, 1))
    for each in trees:
        cluster, positions = each.cluster, each.others if check else each.positions
        picks = np.concatenate([[0], rng.integers(len(positions), size=STATES - 1)])
        links = dict(zip(cluster.bodies, cluster.geometry.links, strict=True))
        for body, part, _ in joint_slices(model, cluster):
            first = cluster.q.start
            q[:, first + part.start : first + part.stop] = positions[picks][
                :, links[body].positions
            ]
    return q


# ---- errors --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Errors:
    """Median and worst of relative errors over a tree's range."""

    median: float
    worst: float

    @classmethod
    def of(cls, values: Array) -> Errors:
        """Summarises errors at states; not-a-number counts as infinite."""
        values = np.where(np.isfinite(values), values, np.inf)
        return cls(float(np.median(values)), float(np.max(values)))


@dataclass(frozen=True, slots=True)
class TreeErrors:
    """How far an open tree is from the robot, over its range.

    Attributes:
        acceleration: ‖â - a‖ under the exact torques, in the norm of the robot's inertia, over the
            root mean square of ‖a‖.
        gravity: ‖ĝ - g‖ of the torques that hold the robot, over the root mean square of ‖g‖, or,
            if it is balanced, of the states' torques.
        joints: Of each velocity of the tree, |â - a| over the root mean square of a.
        inertia: The largest |λ - 1| of the eigenvalues λ of M⁻¹ M̂.
        ratios: The least and largest of these eigenvalues.
    """

    acceleration: Errors
    gravity: Errors
    joints: Mapping[str, Errors]
    inertia: Errors
    ratios: tuple[float, float]


def tree_errors(tree: Model, states: TreeStates) -> TreeErrors:
    """The errors of a tree's model at exact states."""
    zero = np.zeros_like(states.dt)
    with np.errstate(all="ignore"):
        ddt = on_arrays(aba, tree, states.t, states.dt, states.tau)
        fall = on_arrays(rnea, tree, states.t, zero, zero) - states.gravity
        mass = on_arrays(crba, tree, states.t)
    up = np.swapaxes(states.low, 1, 2)
    norm = np.linalg.norm(np.einsum("nij,nj->ni", up, ddt - states.ddt), axis=1)
    size = _rms(np.linalg.norm(np.einsum("nij,nj->ni", up, states.ddt), axis=1))
    weight = _rms(np.linalg.norm(states.tau if states.balanced else states.gravity, axis=1))
    joints = {
        name: Errors.of(np.abs(ddt[:, i] - states.ddt[:, i]) / _rms(states.ddt[:, i]))
        for i, name in enumerate(tree.dof_names)
    }
    half = np.linalg.solve(states.low, mass)
    values = np.linalg.eigvalsh(np.linalg.solve(states.low, np.swapaxes(half, 1, 2)))
    return TreeErrors(
        Errors.of(norm / size),
        Errors.of(np.linalg.norm(fall, axis=1) / weight),
        joints,
        Errors.of(np.max(np.abs(values - 1.0), axis=1)),
        (float(np.min(values)), float(np.max(values))),
    )


def _rms(values: Array) -> float:
    return math.sqrt(float(np.mean(values**2))) or 1.0


# ---- behind gears --------------------------------------------------------------------------------


def relumped(model: Model, tree: Model) -> tuple[Array, bool]:
    """The tree's parameters with the spin of geared rotors in its bodies, and whether these exist.

    A rotor of inertia I about its axis, geared N times to the joint that hangs on the same body,
    parallel to it, has besides its locked inertia the energy N I s q̇ + ½ N² I q̇², s the carrier's
    rate about the axis. The child turns by s + q̇ about it, which is fixed in both bodies, so that
    this is ½ N I (s + q̇)² - ½ N I s² + ½ (N² - N) I q̇²: a disc of N I more for the child, less
    for the carrier, and the armature (N² - N) I. Discs, N I about the axis and ½ N I across it,
    have no mass; what is equal about all axes normal to the joint's does not see it. A belt over
    parallel joints, N s with q̇ the sum of theirs, is the same with the last link for the child,
    and has (1 - 1/N) I for I as the inertia that these joints share.
    """
    filed = parameters(tree)
    values, at = filed.values.copy(), {name: i for i, name in enumerate(filed.names)}
    body_of = {node.name: n for n, node in enumerate(model.nodes)}
    joint_of = {joint.name: n for n, joint in enumerate(model.joints)}
    bodies = {body.name for body in tree.bodies}
    touched: set[str] = set()
    for each in joint_inertias(model):
        for rotor, about, ratios in each.rotors:
            driven = {joint_of[each.joints[i][0]]: float(ratios[i]) for i in np.flatnonzero(ratios)}
            ratio = _ratio(model, body_of[rotor], driven)
            if not ratio:
                continue
            spin = ratio * (about - model.nodes[body_of[rotor]].armature)
            child, carrier = max(driven), model.bodies[body_of[rotor]].parent
            name = model.joints[child].name if len(driven) == 1 else rotor_name(rotor)
            less = spin if len(driven) == 1 else spin / ratio**2
            armature = at.get(f"{name}.armature", -1)
            if not {model.nodes[child].name, carrier} <= bodies:
                continue
            if armature < 0 or values[armature] < less:
                continue
            axis = Transform(model.nodes[body_of[rotor]].rotations, (0.0, 0.0, 0.0)).rotate(
                UNIT[_axis_number(model, body_of[rotor])]
            )
            _add_disc(model, values, at, carrier, axis, -spin)
            _add_disc(
                model, values, at, model.nodes[child].name, UNIT[_axis_number(model, child)], spin
            )
            values[armature] -= less
            touched |= {model.nodes[child].name, carrier}
    exist = all(_exists(values[at[f"{name}.mass"] :][: len(INERTIAL)]) for name in touched)
    return values, exist


def _ratio(model: Model, rotor: int, driven: Mapping[int, float]) -> float:
    """N of a rotor that turns N times the sum of the parallel joints of a chain on its carrier.

    In the joints' sense; 0 for any other rotor.
    """
    one = model.nodes[rotor]
    chain = set(driven)
    on_chain = all(model.nodes[body].parent in {*chain, one.parent} for body in chain)
    if not chain or one.parent == WORLD or not one.axisymmetric or not on_chain:
        return 0.0
    nodes = [one, *(model.nodes[body] for body in sorted(chain))]
    if len({node.parent for node in nodes[1:]}) < len(chain):  # two branches
        return 0.0
    if not all(isinstance(node.joint, Revolute) for node in nodes):
        return 0.0
    axis = np.array(Transform(one.rotations, (0.0, 0.0, 0.0)).rotate(
        UNIT[_axis_number(model, rotor)]), dtype=float)  # fmt: skip
    turn, ratios = np.eye(3), []
    for body, node in zip(sorted(chain), nodes[1:], strict=True):
        turn = turn @ np.array(Transform(node.rotations, (0.0, 0.0, 0.0)).matrix(), dtype=float)
        cosine = float(turn[:, _axis_number(model, body)] @ axis)
        if abs(abs(cosine) - 1.0) > SINGULAR:
            return 0.0
        ratios.append(math.copysign(1.0, cosine) * driven[body])
    same = all(abs(ratio - ratios[0]) <= SINGULAR * abs(ratios[0]) for ratio in ratios)
    return ratios[0] if same else 0.0


def _axis_number(model: Model, body: int) -> int:
    joint = model.nodes[body].joint
    assert isinstance(joint, Revolute)
    return joint.k


def _add_disc(
    model: Model, values: Array, at: Mapping[str, int], body: str, axis: Sequence[Any], size: float
) -> None:
    """Add a disc about an axis, in the body's internal axes, to its parameters."""
    a = np.array(model.frame(body).pose.unrotate((axis[0], axis[1], axis[2])), dtype=float)
    disc = 0.5 * size * (np.eye(3) + np.outer(a, a))
    first = at[f"{body}.{INERTIAL[4]}"]
    values[first : first + 6] += [disc[i, j] for i, j in ENTRIES]


def _exists(ten: Array) -> bool:
    lowest, *_, highest = np.linalg.eigvalsh(pseudo_inertia(ten.tolist()))
    return bool(lowest >= -NOTHING * highest)


# ---- the fit -------------------------------------------------------------------------------------


def fitted(tree: Model, states: TreeStates, start: Array, bodies: set[str]) -> Model:
    """The tree with the physically consistent parameters of least error of torques and gravity.

        min ½ Σ w ‖L⁻¹ (Y π - τ)‖² + ½ κ² Σ w' ‖L⁻¹ (Y⁰ π - g)‖²
            + γ [Σ D(J ‖ J⁰) + Σ (α/α⁰ - log α)]

    over states with Mₜ = L Lᵀ and weights w = 1/(‖·‖² + its median), for gravity of a balanced
    robot those of torques. D is the distance and barrier of :mod:`robomodel.dynamics.physical`
    to the bodies of ``start`` (p,). Only ``bodies`` change.
    """
    filed = parameters(tree)
    nominal, cones, scalars = _assumed(tree, states, start, bodies)
    a, b = _normal_equations(tree, states)
    free = np.zeros(len(nominal), dtype=bool)
    free[scalars] = True
    for cone in cones:
        free[cone.at] = True
    ways = np.eye(len(nominal))[:, free]
    gram, slope = ways.T @ a @ ways, ways.T @ (b - a @ nominal)
    z = np.zeros(ways.shape[1])
    for n in reversed(range(HALVES + 1)):  # each from the solution with twice the weight
        weight = GAMMA * 2.0**n
        prior = ParameterPrior(cones, scalars, nominal, ways, weight, np.full(len(scalars), weight))
        z = minimise(gram, slope, prior, ways, z, (CENTRED if n else FINISHED) * weight)
    x = symmetric(tree, nominal, nominal + ways @ z)
    values = np.where(free, [float(f"{each:.{FITTED_DIGITS}g}") for each in x], filed.values)
    return with_parameters(tree, values)


def _normal_equations(tree: Model, states: TreeStates) -> tuple[Array, Array]:
    """A (p, p) and b (p,) of the weighted least squares, gravity's share in them."""
    zero = np.zeros_like(states.dt)
    parts = [(states.tau, states.dt, states.ddt, 1.0), (states.gravity, zero, zero, GRAVITY)]
    p = len(parameters(tree).names)
    a, b = np.zeros((p, p)), np.zeros(p)
    size: Array | None = None
    for tau, dt, ddt, share in parts:
        rows = np.linalg.solve(states.low, on_arrays(regressor, tree, states.t, dt, ddt))
        forces = np.linalg.solve(states.low, tau[..., None])[..., 0]
        if size is None or not states.balanced:
            size = np.sum(forces**2, axis=1)
        weight = share**2 / (size + np.median(size)) / len(size)
        a += np.einsum("n,nip,niq->pq", weight, rows, rows, optimize=True)
        b += np.einsum("n,nip,ni->p", weight, rows, forces, optimize=True)
    return a, b


def _assumed(
    tree: Model, states: TreeStates, start: Array, bodies: set[str]
) -> tuple[Array, list[Cone], Any]:
    """Parameters to start from, the cones of bodies, and the indices of armatures."""
    nominal, size = start.copy(), len(INERTIAL)
    moving = [n for n, body in enumerate(tree.bodies) if body.name in bodies]
    tens = {n: nominal[size * n : size * (n + 1)] for n in moving}
    total = sum(float(ten[0]) for ten in tens.values()) or 1.0
    extents = [
        math.sqrt(max(float(np.trace(pseudo_inertia(ten.tolist())[:3, :3])), 0.0) / ten[0])
        for ten in tens.values()
        if ten[0] > 0.0
    ]
    length = 0.1 * float(np.median(extents)) if extents else 0.01
    cones = []
    for n, ten in tens.items():
        nominal[size * n : size * (n + 1)] = _raised(ten, LIGHT * total, length)
        cones.append(Cone.of(size * n, nominal[size * n : size * (n + 1)]))
    inertia = np.sum(states.low**2, axis=2)  # the diagonal of M
    usual = dict(zip(tree.dof_names, np.median(inertia, axis=0).tolist(), strict=True))
    least = min(usual.values())
    ratios = {name: k for each in tree.couplings for name, k in _largest(each.terms)}
    scalars = []
    for place, (n, kind) in enumerate(of_joints(tree), size * len(tree.bodies)):
        joint = tree.joints[n]
        if kind == "armature" and joint.nv == 1:
            scalars.append(place)
            nominal[place] = ARMATURE * usual.get(
                joint.name, TENDON / ARMATURE * least / ratios.get(joint.name, 1.0) ** 2
            )
        elif kind != "armature":
            nominal[place] = 0.0
    return nominal, cones, np.array(scalars, dtype=int)


def _largest(terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """A coupling's first joint, with the largest ratio of its turn to that of another joint."""
    (name, ratio), *others = terms
    return [(name, max((abs(k / ratio) for _, k in others), default=1.0) or 1.0)]


def _raised(ten: Array, least: float, length: float) -> Array:
    """Ten parameters near these, of a body with positive definite pseudo-inertia."""
    j = pseudo_inertia(ten.tolist())
    mass = max(float(ten[0]), least)
    center = j[:3, 3] / mass
    sizes, axes = np.linalg.eigh(j[:3, :3] - mass * np.outer(center, center))
    sizes = np.maximum(sizes, RAISED * max(float(sizes[-1]), mass * length**2))
    sigma = axes * sizes @ axes.T + mass * np.outer(center, center)
    inertia = np.trace(sigma) * np.eye(3) - sigma
    return np.array([mass, *j[:3, 3], *(inertia[i, k] for i, k in ENTRIES)])


def with_values(tree: Model, values: Array) -> Model:
    """The tree with these parameters; armatures that are rounding become zero."""
    filed = parameters(tree).values
    rounding = np.abs(values) < ROUNDING * np.maximum(np.abs(filed), TINY)
    return with_parameters(tree, np.where(rounding, 0.0, values))
