"""C-RNEA, C-ABA and C-EFPA assembled from the clusters' operators (002, VI-VIII).

They equal :func:`robomodel.rnea`, :func:`robomodel.aba` and :func:`robomodel.efpa`, which should be
used in computations: here every matrix is dense. Gauss's principle of least constraint (VII-B),
from which the paper derives the articulated inertia, and the approximations with which it compares
the algorithms (II) follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import baselines
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys, place
from robomodel.dynamics.recursions.efpa import mobility, touched
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.papers.clusters.cluster_operators import ClusterOperators, operators
from robomodel.papers.matrices import frame_motion, pseudoinverse, solved, times, transposed
from robomodel.scalars import Scalar, Vector, stack, unstack
from robomodel.tolerances import ROUNDING


def base_acceleration(model: Model) -> Array:
    """The acceleration of the fixed base: opposite to gravity, which then needs no term (VI-A)."""
    return np.concatenate([np.zeros(3), -np.asarray(model.gravity, dtype=float)])


def cluster_accelerations(
    model: Model, objects: Sequence[ClusterOperators], a: Array
) -> list[Array]:
    """Spatial accelerations (..., 6n) of clusters at independent accelerations (..., nv), (33)."""
    accelerations: list[Array] = []
    for o in objects:
        above = base_acceleration(model) if o.parent < 0 else accelerations[o.parent]
        accelerations.append(times(o.X, above) + times(o.S, a[..., list(o.dofs)]) + o.c)
    return accelerations


def rnea(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Generalized forces (..., nv) by C-RNEA: (33) outwards, (31), (34) and (35) inwards."""
    ydd = as_array(a, model.nv, "a", "nv")
    objects = operators(model, q, v)
    accelerations = cluster_accelerations(model, objects, ydd)
    forces = [
        times(o.inertia, acceleration) + o.bias
        for o, acceleration in zip(objects, accelerations, strict=True)
    ]
    tau = np.zeros(np.broadcast_shapes(ydd.shape, (*forces[0].shape[:-1], model.nv)))
    for k in reversed(range(len(objects))):
        o = objects[k]
        inertia, bias = o.reflected
        reflected = times(inertia, ydd[..., list(o.dofs)]) + bias
        tau[..., list(o.dofs)] = times(transposed(o.S), forces[k]) + reflected
        if o.parent >= 0:
            forces[o.parent] = forces[o.parent] + times(transposed(o.X), forces[k])
    return tau


def aba(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Independent accelerations (..., nv) by C-ABA: (52) and (33), algorithm 1."""
    objects = operators(model, q, v, tau)
    accelerations: list[Array] = []
    parts: list[Array] = []
    for o in objects:
        above = base_acceleration(model) if o.parent < 0 else accelerations[o.parent]
        carried = times(o.X, above) + o.c
        rates = solved(o.D, (o.u - times(transposed(o.U), carried))[..., None])[..., 0]
        accelerations.append(carried + times(o.S, rates))
        parts.append(rates)
    batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    result = np.zeros((*batch, model.nv))
    for o, part in zip(objects, parts, strict=True):
        result[..., list(o.dofs)] = part
    return result


def efpa(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """The inverse operational-space inertia (..., 6k, 6k) of k frames by C-EFPA.

    Force propagators are computed inwards, (57), (62); the accelerations due to unit forces at the
    frames outwards, (65)-(67), from the greatest common ancestor on.
    """
    zero = np.zeros(model.nv)
    objects = operators(model, q, zero, zero)
    ends = [_end_effector(model, key) for key in frame_keys(frames)]
    batch = objects[0].X.shape[:-2]
    propagators: list[dict[int, Array]] = [{} for _ in ends]  # χ by cluster, (57)
    for chi, (cluster, initial) in zip(propagators, ends, strict=True):
        at = cluster
        if at >= 0:
            chi[at] = np.broadcast_to(initial, (*batch, *initial.shape))
        while at >= 0 and objects[at].parent >= 0:
            o = objects[at]
            gain = solved(o.D, transposed(o.S) @ chi[at])
            chi[o.parent] = transposed(o.X) @ (chi[at] - o.U @ gain)  # (62)
            at = o.parent
    result = np.zeros((*batch, 6 * len(ends), 6 * len(ends)))
    for i, pushed in enumerate(propagators):
        moved: dict[int, Array] = {}  # Λ of (63): accelerations by unit forces at end-effector i
        for k in sorted(set().union(*propagators)):
            o = objects[k]
            above = moved.get(o.parent, np.zeros((*batch, o.X.shape[-1], 6)))
            free = o.X @ above
            push = transposed(o.S) @ pushed[k] if k in pushed else 0.0
            moved[k] = free + o.S @ solved(o.D, push - transposed(o.U) @ free)  # (67)
        for j, (cluster, initial) in enumerate(ends):
            if cluster >= 0:
                at_j = transposed(initial) @ moved[cluster]
                result[..., 6 * j : 6 * j + 6, 6 * i : 6 * i + 6] = at_j
    return result


def _end_effector(model: Model, key: FrameKey) -> tuple[int, Array]:
    """A frame's cluster, and its forces on that cluster's bodies (6n, 6), (57), (58)."""
    at = place(model, key)
    if at.body == WORLD:
        return WORLD, np.zeros((0, 6))
    cluster = model.clusters[model.nodes[at.body].cluster]
    result = np.zeros((6 * len(cluster.bodies), 6))
    first = 6 * cluster.bodies.index(at.body)
    result[first : first + 6] = transposed(frame_motion(model, at))
    return cluster.index, result


# ---- Gauss's principle of least constraint over clusters, and its cost to go (VII-B) -------------
# A body without inertia in some direction has no unconstrained acceleration there. Its cost keeps
# the terms that depend on accelerations, and omits the constant, which is infinite.


@dataclass(frozen=True, eq=False)
class CostToGo:
    """A quadratic Gauss cost of a cluster's acceleration a (..., 6n).

    ½ (a - ã)ᵀ I (a - ã) + constant. ã is the ``unconstrained`` acceleration: of the bodies without
    joints, (40), or, for the optimal cost to go of a subtree, without the cluster joint only,
    (41), (43), (44). ``loose``: forces in directions without inertia; zero if there are none.
    """

    inertia: Array = field(repr=False)
    unconstrained: Array = field(repr=False)
    loose: Array = field(repr=False)
    constant: Array

    @classmethod
    def of(cls, inertia: Array, force: Array, constant: Array) -> CostToGo:
        """The cost with the derivative -``force`` at zero acceleration."""
        free = times(pseudoinverse(inertia, ROUNDING), force)
        return cls(inertia, free, force - times(inertia, free), constant)

    def __call__(self, acceleration: ArrayLike) -> Array:
        """The cost at a spatial acceleration (..., 6n) of the cluster, gravity as the base's.

        Raises ValueError for a wrong number of rows.
        """
        size = self.inertia.shape[-1]
        a = as_array(acceleration, size, "acceleration", "six times the cluster's bodies")
        off = a - self.unconstrained
        square = 0.5 * np.einsum("...i,...ij,...j->...", off, self.inertia, off)
        cost: Array = square - np.sum(self.loose * a, axis=-1) + self.constant
        return cost


@dataclass(frozen=True, eq=False)
class GaussPrinciple:
    """Gauss's principle of least constraint of a robot at a state, (39).

    Attributes:
        costs: Gauss cost of each cluster alone, without joints: a term of (39), with (40).
        cost_to_go: Gauss cost of each cluster's subtree, (43).
    """

    model: Model
    objects: tuple[ClusterOperators, ...] = field(repr=False)
    costs: tuple[CostToGo, ...] = field(repr=False)
    cost_to_go: tuple[CostToGo, ...] = field(repr=False)

    def accelerations(self, a: ArrayLike) -> tuple[Array, ...]:
        """The clusters' spatial accelerations at independent accelerations (..., nv), (33).

        They are the arguments of ``cost_to_go``. The fixed base accelerates against gravity.
        """
        ydd = as_array(a, self.model.nv, "a", "nv")
        return tuple(cluster_accelerations(self.model, self.objects, ydd))

    def cost(self, a: ArrayLike) -> Array:
        """The Gauss cost (...) at independent accelerations (..., nv), (39).

        Includes ½ Σ armature q̈² for joints with armature.
        """
        total = np.zeros(())
        each = zip(self.objects, self.accelerations(a), self.costs, strict=True)
        for o, acceleration, cost in each:
            total = total + cost(acceleration)
            joints = times(o.G, np.asarray(a, dtype=float)[..., list(o.dofs)]) + o.g
            total = total + 0.5 * np.sum(o.armature * joints * joints, axis=-1)
        return total

    @cached_property
    def minimum(self) -> Array:
        """The least cost (...), of the robot's motion under tau, (42) at the fixed base."""
        total = np.zeros(())
        for o, cost in zip(self.objects, self.cost_to_go, strict=True):
            if o.parent < 0:
                total = total + best_child(o, cost, times(o.X, base_acceleration(self.model)))
        return total


def gauss(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> GaussPrinciple:
    """Gauss's principle at q (..., nq), v (..., nv) and forces tau (..., nv), (39)-(54).

    Raises ValueError for arrays of wrong sizes.
    """
    objects = operators(model, q, v, tau)
    forces = [times(o.T_active, o.articulated()[2]) - o.bias for o in objects]
    for o in objects:
        if o.parent >= 0:  # reactions of the children's forces, (40)
            reaction = times(transposed(o.X), times(o.T_active, o.articulated()[2]))
            forces[o.parent] = forces[o.parent] - reaction
    zero = np.zeros(())
    costs = tuple(CostToGo.of(o.inertia, f, zero) for o, f in zip(objects, forces, strict=True))
    return GaussPrinciple(model, objects, costs, _costs_to_go(objects, costs))


def _costs_to_go(
    objects: Sequence[ClusterOperators], costs: Sequence[CostToGo]
) -> tuple[CostToGo, ...]:
    """From the tips inwards: a cluster's cost plus the optimal costs of its children, (42)."""
    at_rest = [cost(np.zeros(cost.inertia.shape[-1])) for cost in costs]
    costs_to_go: list[CostToGo] = []
    for k in reversed(range(len(objects))):
        o = objects[k]
        inertia, bias, tau = o.articulated()
        cost = CostToGo.of(inertia, times(o.T_active, tau) - bias, np.zeros(()))  # (44)
        cost = replace(cost, constant=at_rest[k] - cost(np.zeros(inertia.shape[-1])))
        costs_to_go.append(cost)
        if o.parent >= 0:
            best = best_child(o, cost, np.zeros(o.X.shape[-2]))
            at_rest[o.parent] = at_rest[o.parent] + best
    return tuple(costs_to_go[::-1])


def best_child(o: ClusterOperators, cost: CostToGo, carried: Array) -> Array:
    """The optimal cost of a cluster's subtree, given the acceleration of its output bodies, (45).

    ``carried``: X times that acceleration. The optimal joint acceleration is (51), (52).
    """
    free = carried + o.c
    a = solved(o.D, (o.u - times(transposed(o.U), free))[..., None])[..., 0]
    joints = times(o.G, a) + o.g
    rotors: Array = 0.5 * np.sum(o.armature * joints * joints, axis=-1)
    return cost(free + times(o.S, a)) + rotors


# ---- what the cluster algorithms are compared with (II), and PV-OSIMr ----------------------------
# The approximate algorithms act on the independent tree, without the mass of rotors and of other
# bodies whose joints depend on others, with H = H_y + H_c, where H_c is the diagonal of reflected
# inertias N² I_rot. ``method="approximate"`` of ``robomodel.rnea`` and related functions keeps that
# mass on the bodies that carry it.

INDEPENDENT = "independent"  # name of the paper's tree among the approximations

Propagation = Literal["efpa", "pv-osim"]
FREEDOMS: dict[Propagation, float] = {"efpa": np.inf, "pv-osim": 0}


def approximate_rnea(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Generalized forces (..., nv) of the paper's approximate RNEA, τ = RNEA_y(q, v, a) + H_c a.

    Raises ValueError if a cluster has freedoms that are not those of whole joints.
    """
    return _evaluated(partial(baselines.rnea, INDEPENDENT, model), model, q, v, a)


def approximate_aba(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Accelerations (..., nv) of the paper's approximate ABA, (H_y + H_c) a = tau - C_y.

    Raises the errors of :func:`approximate_rnea`.
    """
    return _evaluated(partial(baselines.aba, INDEPENDENT, model), model, q, v, tau)


def _evaluated(
    function: Callable[..., list[Scalar]],
    model: Model,
    q: ArrayLike,
    *others: ArrayLike,
) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    arrays = [at, *(as_array(x, model.nv, "an argument", "nv") for x in others)]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    with np.errstate(all="ignore"):
        return stack(function(*map(unstack, arrays)), batch)


def approximate_efpa(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """Λ⁻¹ (..., 6k, 6k) of the paper's approximate EFPA, J_y (H_y + H_c)⁻¹ J_yᵀ.

    Raises the errors of :func:`approximate_rnea`, also for frames on bodies outside the tree.
    """
    places = [place(model, key) for key in frame_keys(frames)]
    at = as_array(q, model.nq, "q", "nq")
    with np.errstate(all="ignore"):
        rows = baselines.efpa(INDEPENDENT, model, unstack(at), places)
        entries = stack([x for row in rows for x in row], at.shape[:-1])
    return entries.reshape(*at.shape[:-1], len(rows), len(rows))


def pv_osim(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """Λ⁻¹ (..., 6k, 6k) of k frames by PV-OSIMr over clusters, [18] of the paper, its future work.

    Sathya, Bruyninckx and Decré propagate six unit forces from every body at which branches with
    end-effectors meet, and compose their propagators, so that k end-effectors cost O(n + k²)
    instead of the EFPA's O(n + k depth + k²). :func:`robomodel.efpa` does this if it saves
    operations.
    """
    at = as_array(q, model.nq, "q", "nq")
    with np.errstate(all="ignore"):
        entries = stack(_entries(model, "pv-osim", unstack(at), frames), at.shape[:-1])
    size = round(entries.shape[-1] ** 0.5)
    return entries.reshape(*at.shape[:-1], size, size)


def propagation(
    model: Model, frames: FrameLike | Sequence[FrameLike], method: Propagation = "pv-osim"
) -> Program:
    """The straight-line program q → Λ⁻¹ of C-EFPA or PV-OSIMr, to count operations or compile.

    ``method``: "efpa", with every end-effector's propagators to the base, (62), or "pv-osim".
    Raises ValueError for others.
    """
    if method not in FREEDOMS:
        methods = " and ".join(map(repr, FREEDOMS))
        raise ValueError(f"method {method!r} is not known; {methods} are")
    trace = Trace()
    return trace.program(_entries(model, method, trace.inputs(model.nq), frames))


def _entries(
    model: Model, method: Propagation, q: Vector, frames: FrameLike | Sequence[FrameLike]
) -> list[Scalar]:
    places = [place(model, key) for key in frame_keys(frames)]
    rows = mobility(*touched(model, q, places), freedoms=FREEDOMS[method])
    return [x for row in rows for x in row]
