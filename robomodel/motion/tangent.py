"""Tangent coordinates: velocities of linkages that stay regular through dead points.

The independent joints of a linkage come to rest at dead points while the linkage moves on, so their
velocities do not determine the motion there. Within one time step a linkage is described instead
by z = N₀ᵀ y, with y its joint velocities and N₀ an orthonormal basis of its motions at the
beginning of the step. With K the Jacobian of the loops and k their velocity products,

    y = G z,  ẏ = G ż + g,   G = [K; N₀ᵀ]⁻¹ [0; 1],  g = [K; N₀ᵀ]⁻¹ [k; 0],

and the recursions over clusters run with this G and g as with those of independent joints. ‖G‖
remains close to 1 within a step. N₀ is data: one compiled program serves all positions. G is
singular only at change points, where K loses rank and branches of a linkage's motion cross. On its
branch a motion passes such a point smoothly (a parallelogram that lies flat), but G has errors of
about rounding / σ², with σ the least singular value of K as a share of its greatest. So steps are
placed such that no stage comes too near: shortening them would do the opposite. Near a change
point each stage is closed before it is evaluated, because the truncation error in its loops would
be divided by σ too; it stays on the branch of the step's own prediction, that is, of the momentum.

Here y are the velocities that the couplings of a cluster leave, in units that make metres and
radians comparable; joint velocities are ``expand`` y. All velocities of a robot in tangent
coordinates are its v with z in place of the independent velocities of linkages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.mechanism import closure as newton
from robomodel.mechanism.constraints import (
    Conditions,
    LoopConstraint,
    Perpendicular,
    evaluate_loops,
)
from robomodel.mechanism.joints import Floating, JointModel, Planar, Spherical
from robomodel.model.configurations.closing import (
    INDEPENDENT,
    Loops,
    Step,
    normalized,
    settled,
)
from robomodel.model.derived import cached_on_model, nominal
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    advanced,
    div,
    dot,
    is_number,
    is_zero,
    maximum,
    minimum,
    orthonormal,
    sincos,
    solve,
    sqrt,
    stack,
    subtracted,
    transposed,
    unstack,
    value_of,
)
from robomodel.spatial import Rotation, Vec, from_quaternion, inner
from robomodel.tolerances import ROUNDING, TINY

Table: TypeAlias = tuple[tuple[Scalar, ...], ...]

# share of a linkage's motion below which v does not determine it at the start
UNDETERMINED_MOTION = 1e-9


@dataclass(frozen=True, slots=True)
class Linkage:
    """A cluster with loops that can move: ``size`` velocities y, of which ``mobility`` are free.

    ``expand`` gives joint velocities from y, ``reduce`` y from joint velocities. ``weights`` make
    the rows of the loops comparable. ``first``: index of its basis among the numbers of all bases.
    """

    index: int
    loop: LoopConstraint
    expand: Table
    reduce: Table
    weights: tuple[float, ...]
    mobility: int
    first: int

    @property
    def size(self) -> int:
        """Number of velocities y."""
        return len(self.reduce)

    @property
    def numbers(self) -> slice:
        """Slice of its basis, by rows, among the numbers of all bases."""
        return slice(self.first, self.first + self.size * self.mobility)

    def rows(self, positions: Vector) -> tuple[list[list[Scalar]], list[Scalar]]:
        """K over y, and the values of the loops' conditions."""
        loop = self.loop
        at = evaluate_loops(loop.links, loop.loops, positions, keep=loop.keep)
        columns = list(zip(*self.expand, strict=True))
        rows = [
            [weight * dot(row, column) for column in columns]
            for row, weight in zip(at.jacobian, self.weights, strict=True)
        ]
        return rows, [w * x for w, x in zip(self.weights, at.values, strict=True)]

    def products(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """k: the velocity products of the rows."""
        loop = self.loop
        at = evaluate_loops(loop.links, loop.loops, positions, velocities, keep=loop.keep)
        return [-(w * x) for w, x in zip(self.weights, at.bias, strict=True)]

    def spanning(self, y: Vector) -> list[Scalar]:
        """Joint velocities from y."""
        return [dot(row, y) for row in self.expand]


@cached_on_model
def linkages(model: Model) -> tuple[Linkage, ...]:
    """The clusters with loops that can move."""
    result: list[Linkage] = []
    first = 0
    for cluster in model.clusters:
        loop = cluster.constraint
        if not (isinstance(loop, LoopConstraint) and cluster.nv):
            continue
        usual = nominal(model)  # sizes that make numbers comparable, whatever the parameters
        before = usual.clusters[cluster.index]
        scale, unit = before.geometry.scale, before.geometry.unit.tolist()
        columns = zip(*loop.expand, strict=True)
        units = [next(u for u, x in zip(unit, c, strict=True) if not is_zero(x)) for c in columns]
        expand = [[x * u for x, u in zip(row, units, strict=True)] for row in loop.expand]
        weights = [
            1.0 if isinstance(row, Perpendicular) else 1.0 / scale
            for n, joint in enumerate(loop.loops)
            for r, row in enumerate(joint.rows)
            if (n, r) in loop.keep
        ]
        linkage = Linkage(
            cluster.index, loop, _table(expand), _table(_inverse(expand)), tuple(weights),
            cluster.nv, first,
        )  # fmt: skip
        result.append(linkage)
        first = linkage.numbers.stop
    return tuple(result)


def _table(matrix: Sequence[Vector]) -> Table:
    return tuple(tuple(row) for row in matrix)


def _inverse(matrix: list[list[Scalar]]) -> list[list[Scalar]]:
    """(EᵀE)⁻¹ Eᵀ for independent columns, scalars of any kind."""
    if all(is_number(x) for row in matrix for x in row):
        inverse = np.linalg.pinv(np.array(matrix, dtype=float))
        inverse[np.abs(inverse) <= ROUNDING * np.abs(inverse).max()] = 0.0
        result: list[list[Scalar]] = inverse.tolist()
        return result
    columns = transposed(matrix)
    return solve([[dot(a, b) for b in columns] for a in columns], columns)


def numbers(model: Model) -> int:
    """Number of numbers in the bases of all linkages."""
    every = linkages(model)
    return every[-1].numbers.stop if every else 0


@dataclass(frozen=True, slots=True)
class _Loops:
    """The rows K of a linkage's loops and a basis N₀, by columns, with factors that solve for y.

    The factors are of K Kᵀ, which is as sparse as loops share joints; with redundant rows of
    KᵀK + N₀N₀ᵀ, by least squares. They lose digits as the square of K's condition, which is little
    for small results, as those that close loops; with ``refined`` the residual is solved again.
    """

    rows: list[list[Scalar]]
    basis: Sequence[Vector]
    square: list[list[Scalar]]
    factors: Factorization
    redundant: bool
    refined: bool

    @staticmethod
    def of(rows: list[list[Scalar]], basis: Sequence[Vector], refined: bool) -> _Loops:
        """The equations of the rows of K and of N₀."""
        redundant = len(rows) + len(basis) > len(basis[0])
        vectors = list(zip(*rows, *basis, strict=True)) if redundant else rows
        square: list[list[Scalar]] = [[0.0] * len(vectors) for _ in vectors]
        for i, row in enumerate(vectors):
            for j in range(i + 1):
                square[i][j] = square[j][i] = dot(row, vectors[j])
        return _Loops(rows, basis, square, Factorization(square), redundant, refined)

    def motions(self) -> list[list[Scalar]]:
        """G over y, by columns: N (NᵀN)⁻¹, N the part of N₀ that is orthogonal to the rows."""
        if self.redundant:
            return [self.factors.solve(column) for column in self.basis]
        kernel: list[Vector] = list(self.basis)
        for _ in range(1 + self.refined):
            kernel = [subtracted(column, self._least(self._times(column))) for column in kernel]
        return solve([[dot(a, b) for b in kernel] for a in kernel], kernel)

    def held(self, right: Vector) -> list[Scalar]:
        """y with K y = right and z = 0."""
        y = self._least(right)
        if self.refined:
            y = added(y, self._least(subtracted(right, self._times(y))))
        z = [dot(column, y) for column in self.basis]
        for column, share in zip(self.motions(), z, strict=True):
            y = advanced(y, -share, column)
        return y

    def regularity(self) -> Scalar:
        """The least pivot as a share of the greatest square: 0 where K loses rank."""
        pivots = [div(1.0, inverse) for inverse in self.factors.inverse_pivots]
        squares = [row[i] for i, row in enumerate(self.square)]
        return div(reduce(minimum, pivots), reduce(maximum, squares)) if pivots else 1.0

    def _least(self, right: Vector) -> list[Scalar]:
        """y with K y = right: the least one, or the one with z = 0."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.basis[0]))]
        if self.redundant:
            return self.factors.solve([dot(column, right) for column in columns])
        weights = self.factors.solve(right)
        return [dot(column, weights) for column in columns]

    def _times(self, y: Vector) -> list[Scalar]:
        """K y."""
        return [dot(row, y) for row in self.rows]


@dataclass(frozen=True)
class TangentConstraint:
    """The constraint of a linkage in tangent coordinates, over scalars of any kind.

    ``basis``: N₀ by columns. ``refined``: more digits of G and g near change points.
    """

    linkage: Linkage
    basis: Sequence[Vector]
    refined: bool = False

    def positions(self, q: Vector) -> list[Scalar]:
        """The positions, unchanged."""
        return list(q)

    def jacobian(self, positions: Vector) -> list[list[Scalar]]:
        """G: joint velocities by z."""
        columns = self.loops(positions).motions()
        return transposed([self.linkage.spanning(column) for column in columns])

    def bias(self, positions: Vector, velocities: Vector) -> list[Scalar]:
        """g."""
        products = self.linkage.products(positions, velocities)
        return self.linkage.spanning(self.loops(positions).held(products))

    def conditions(self, positions: Vector, velocities: Vector) -> Conditions:
        """The conditions of the constraint in independent joints."""
        return self.linkage.loop.conditions(positions, velocities)

    def loops(self, positions: Vector) -> _Loops:
        """K and N₀ at these positions, to be solved for y."""
        return _Loops.of(self.linkage.rows(positions)[0], self.basis, self.refined)

    def closing(
        self, positions: Vector, loops: _Loops | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """A Newton step that closes loops at z = 0, as joint motion in unit time; and the gaps.

        ``loops``: K and N₀ at another position, whose factors are used instead.
        """
        values = self.linkage.rows(positions)[1]
        y = (loops or self.loops(positions)).held([-x for x in values])
        return self.linkage.spanning(y), values


class Simplified:
    """Closing at constant z: one Newton step, then steps with the factors of the first.

    A gap ε becomes of order ε² after the first, ε³ after the second.
    """

    def __init__(self) -> None:
        self._loops: dict[int, _Loops] = {}

    def steps(self, model: Model, q: Vector, n: int) -> dict[int, Step]:
        """The n-th steps of all clusters with loops."""
        result: dict[int, Step] = {}
        for cluster in model.clusters:
            constraint, at = cluster.constraint, q[cluster.q]
            if isinstance(constraint, TangentConstraint):
                if n == 0:
                    self._loops[cluster.index] = constraint.loops(at)
                step = constraint.closing(at, self._loops[cluster.index])
                result[cluster.index] = Step(*step)
            elif isinstance(constraint, Loops):
                result[cluster.index] = Step(*constraint.closing(at))
        return result


def closed(model: Model, q: Vector, times: int, *, careful: bool = False) -> list[Scalar]:
    """q with loops closed by ``times`` steps at z = 0; ``careful``: Newton steps only."""
    return settled(model, q, times, INDEPENDENT if careful else Simplified())[0]


def in_tangents(model: Model, bases: Vector, *, refined: bool = False) -> Model:
    """The model with tangent coordinates in v; ``bases``: N₀ of all linkages, as numbers.

    ``refined``: see :class:`TangentConstraint`.
    """
    clusters = list(model.clusters)
    for each in linkages(model):
        rows = list(bases[each.numbers])
        d = each.mobility
        columns = [rows[j::d] for j in range(d)]
        constraint = TangentConstraint(each, columns, refined)
        clusters[each.index] = replace(clusters[each.index], constraint=constraint)
    return replace(model, clusters=tuple(clusters))


def constraint_of(model: Model, each: Linkage) -> TangentConstraint:
    """The constraint of a linkage of a model in tangent coordinates."""
    constraint = model.clusters[each.index].constraint
    assert isinstance(constraint, TangentConstraint)
    return constraint


def flat(bases: Iterable[Sequence[Vector]]) -> list[Scalar]:
    """Bases, given by columns, as numbers."""
    return [x for columns in bases for row in zip(*columns, strict=True) for x in row]


def independent_velocities(model: Model, q: Vector, z: Vector, bases: Vector) -> list[Scalar]:
    """v (nv) of the model's independent joints at a position where y = N₀ z."""
    v = list(z)
    for each in linkages(model):
        cluster = model.clusters[each.index]
        d, rows = each.mobility, bases[each.numbers]
        y = [dot(rows[i * d : (i + 1) * d], z[cluster.v]) for i in range(each.size)]
        speeds = each.spanning(y)
        v[cluster.v] = [speeds[c] for c in cluster.columns]
    return v


def tangent_forces(model: Model, state: Configuration, tau: Vector) -> list[Scalar]:
    """Forces in tangent coordinates that are equivalent to ``tau`` on the independent joints.

    ``state``: of the model in tangent coordinates.
    """
    result = list(tau)
    for each in linkages(model):
        cluster = model.clusters[each.index]
        rows = state.rows[cluster.spanning_v]
        jacobian = [rows[c] for c in cluster.columns]
        result[cluster.v] = [dot(column, tau[cluster.v]) for column in zip(*jacobian, strict=True)]
    return result


def regularity(model: Model, here: Model, q: Vector) -> Scalar:
    """The distance of the linkages from change points at q: 0 where K loses rank."""
    least: Scalar = 1.0
    for each in linkages(model):
        constraint = constraint_of(here, each)
        least = minimum(constraint.loops(q[model.clusters[each.index].q]).regularity(), least)
    return least


def renewed(
    model: Model, here: Model, q: Vector, z: Vector
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Bases at closed positions q; the velocities z of the bases of ``here`` in them; checks.

    With linkages the checks are Σ of the squared gaps of loops, the greatest ‖G‖² (Frobenius) of a
    linkage divided by its mobility, and the least :func:`regularity`.
    """
    bases: list[Sequence[Vector]] = []
    after, gaps = list(z), list[Scalar]()
    growth: Scalar = 1.0
    for each in linkages(model):
        cluster = model.clusters[each.index]
        columns = constraint_of(here, each).loops(q[cluster.q]).motions()
        basis = orthonormal(columns)
        y = [dot(row, z[cluster.v]) for row in zip(*columns, strict=True)]
        after[cluster.v] = [dot(column, y) for column in basis]
        bases.append(basis)
        gaps += each.rows(q[cluster.q])[1]
        square = dot([dot(c, c) for c in columns], [1.0] * each.mobility)
        growth = maximum(1.0 / each.mobility * square, growth)
    checks = [dot(gaps, gaps), growth, regularity(model, here, q)] if bases else []
    return flat(bases), after, checks


@dataclass(frozen=True, slots=True)
class Start:
    """Starts of motions in tangent coordinates.

    Attributes:
        z: Velocities (..., nv).
        bases: N₀ of all linkages (..., numbers).
        determined: The least singular value (...) of v by z: below :data:`UNDETERMINED_MOTION` v
            does not determine the motion.
        regularity: The least singular value (...) of K as a share of the largest: 0 at change
            points; 1 without linkages.
    """

    z: Array
    bases: Array
    determined: Array
    regularity: Array


def kernel(each: Linkage, q: Array) -> tuple[Array, Array]:
    """An orthonormal basis (..., size, mobility) of a linkage's motions at its positions q.

    Second, the least singular value (...) of K there as a share of the largest.
    """
    batch = q.shape[:-1]
    rows = each.rows(unstack(q.astype(float)))[0]
    matrix = stack([x for row in rows for x in row], batch)
    matrix = np.nan_to_num(matrix.reshape(*batch, len(rows), each.size))
    _, singular, right = np.linalg.svd(matrix)
    rank = each.size - each.mobility
    share = np.ones(batch)
    if rank:
        share = singular[..., rank - 1] / np.maximum(singular[..., 0], TINY)
    return np.swapaxes(right[..., rank:, :], -1, -2), share


def start(model: Model, q: Array, v: Array) -> Start:
    """Starts at states (..., nq), (..., nv)."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = np.broadcast_to(q, (*batch, model.nq)), np.broadcast_to(v, (*batch, model.nv))
    z, bases = v.astype(float), np.zeros((*batch, numbers(model)))
    determined, regularity = np.ones(batch), np.ones(batch)
    for each in linkages(model):
        cluster: Cluster = model.clusters[each.index]
        basis, share = kernel(each, q[..., cluster.q])
        regularity = np.minimum(regularity, share)
        bases[..., each.numbers] = basis.reshape(*batch, each.size * each.mobility)
        rows = [each.expand[c] for c in cluster.columns]
        wide = stack([x for row in rows for x in row], batch).reshape(*batch, len(rows), each.size)
        out = wide @ basis
        least = np.linalg.svd(out, compute_uv=False)[..., -1]
        determined = np.minimum(determined, least)
        inverse = np.linalg.pinv(out)
        z[..., cluster.v] = np.einsum("...ij,...j->...i", inverse, v[..., cluster.v])
    return Start(z, bases, determined, regularity)


# ---- positions along steps -----------------------------------------------------------------------


def displaced(model: Model, q: Vector, displacement: Vector) -> list[Scalar]:
    """q moved by the velocities ``displacement`` of a model in tangent coordinates in unit time.

    Linkages move along their bases, which leaves their loops open to second order. Linear
    velocities of free and planar joints are in their axes at the start. Quaternions are turned by
    the exponential to seventh order and not normalised.
    """
    result = list(q)
    for cluster in model.clusters:
        speeds = _joint_speeds(cluster, displacement[cluster.v])
        part, at = list(q[cluster.q]), 0
        for body, place, _ in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            motion = speeds[at : at + joint.nv]
            at += joint.nv
            part[place] = added(part[place], joint.rates(part[place], _exponential(joint, motion)))
        result[cluster.q] = part
    return result


def _joint_speeds(cluster: Cluster, z: Vector) -> list[Scalar]:
    """Velocities of the joints whose positions are in q; linkages move along their bases."""
    constraint = cluster.constraint
    if isinstance(constraint, TangentConstraint):
        y = [dot(row, z) for row in zip(*constraint.basis, strict=True)]
        return constraint.linkage.spanning(y)
    if cluster.implicit:
        return [0.0] * (cluster.spanning_v.stop - cluster.spanning_v.start)
    return list(z)


def _exponential(joint: JointModel, motion: Vector) -> Vector:
    """The rotation whose q̇, added to a quaternion, gives the exponential's end once normalised."""
    if not isinstance(joint, Spherical | Floating):
        return motion
    square = dot(motion[:3], motion[:3])
    # tan(θ/2) / (θ/2) = 1 + θ²/12 + θ⁴/120 + 17 θ⁶/20160
    factor = 1.0 + square * (1 / 12 + square * (1 / 120 + 17 / 20160 * square))
    return [*(factor * x for x in motion[:3]), *motion[3:]]


def free_joints(model: Model) -> list[tuple[JointModel, slice]]:
    """Free and planar joints that are clusters of their own, with their slices of v."""
    return [
        (model.nodes[cluster.bodies[0]].joint, cluster.v)
        for cluster in model.clusters
        if cluster.kind == "joint"
        and isinstance(model.nodes[cluster.bodies[0]].joint, Floating | Planar)
    ]


def in_turned_axes(
    model: Model, v: Vector, displacement: Vector, *, back: bool = False
) -> list[Scalar]:
    """Velocities in the axes of free and planar joints after a displacement.

    ``back``: from the axes after it to those before.
    """
    result = list(v)
    for joint, at in free_joints(model):
        part, turn = v[at], displacement[at]
        if isinstance(joint, Floating):
            rotation = _turn(turn[:3])
            linear: Vec = (part[3], part[4], part[5])
            turned = rotation.rotate(linear) if back else rotation.unrotate(linear)
            result[at.start + 3 : at.stop] = turned
        else:
            s, c = sincos(-turn[2] if back else turn[2])
            x, y = part[0], part[1]
            result[at.start : at.start + 2] = [
                c * x + s * y,
                c * y - s * x,
            ]
    return result


def _turn(rotation_vector: Sequence[Scalar]) -> Rotation:
    """The rotation by which :func:`displaced` turns a quaternion."""
    x, y, z = (0.5 * each for each in _exponential(Spherical(), rotation_vector))
    inverse = div(1.0, sqrt(1.0 + inner((x, y, z), (x, y, z))))
    return from_quaternion(inverse * x, inverse * y, inverse * z, inverse)


def axes_rates(model: Model, v: Vector) -> list[Scalar]:
    """ω x v of free and planar joints: the rates of v in axes that do not turn, less those in
    moving axes.
    """
    rates: list[Scalar] = [0.0] * model.nv
    for joint, at in free_joints(model):
        part = v[at]
        if isinstance(joint, Floating):
            (a, b, c), (x, y, z) = part[:3], part[3:]
            rates[at.start + 3 : at.stop] = [
                b * z - c * y,
                c * x - a * z,
                a * y - b * x,
            ]
        else:
            rates[at.start : at.start + 2] = -(part[2] * part[1]), part[2] * part[0]
    return rates


# ---- change points -------------------------------------------------------------------------------


class StepError(Exception):
    """A step that fails, with the reason."""


START_CONDITION = 1e6  # condition of loops above which a start counts as singular
NEARLY = 30.0  # condition of loops above which they may be why a step fails
VANISHES = 1e-7  # share below which singular values of K count as zero


def condition(model: Model, q: Array) -> tuple[float, Cluster | None]:
    """The worst condition of a cluster's K at q (nq,), and the cluster."""
    worst, where = 1.0, None
    for each in linkages(model):
        cluster = model.clusters[each.index]
        if not np.all(np.isfinite(q[cluster.q])):
            return math.inf, cluster
        share = float(kernel(each, q[cluster.q])[1])
        here = 1.0 / share if share > 0.0 else math.inf
        if here > worst or where is None:
            worst, where = here, cluster
    return worst, where


def closed_by_least_squares(model: Model, q: Array, tolerance: float) -> Array:
    """q with closed loops where K has lost rank; lost directions are left as they are.

    :class:`StepError` where a gap is larger than the tolerance.
    """
    q = q.copy()
    for cluster in model.clusters:
        q[cluster.q] = [value_of(x) for x in normalized(model, cluster, q[cluster.q].tolist())]
        if cluster.implicit:
            closed, gap = newton.close(
                cluster.geometry, q[cluster.q], rows=cluster.closing_rows, iterations=8, rank=1e-3
            )
            if not gap <= tolerance:
                raise StepError(f"loops stay open by {float(gap):.3g} at a change point")
            q[cluster.q] = closed
    return q


def advice(cluster: Cluster, q: Array) -> str:
    """Advice on a motion that cannot continue from q (nq,), near a change point."""
    at, ways = q[cluster.q], ""
    geometry = cluster.geometry
    singular = np.linalg.svd(geometry.evaluate(at)[1][list(cluster.closing_rows)])[1]
    rank = geometry.nv - cluster.nv
    if singular[rank - 1] < VANISHES * singular[0] and cluster.nv == 1:
        tangents = branches(cluster, at)
        each = " or ".join(str(tuple(np.round(way, 3).tolist())) for way in tangents)
        ways = f" ({', '.join(cluster.joints)} as {each})" if len(tangents) else ""
    return (
        "near a change point, where they may go on in more than one way, whichever joints are "
        f"independent{ways}: start a little further on, on the branch that is wanted"
    )


def branches(cluster: Cluster, q: Array) -> Array:
    """Tangents (n, cluster's joint velocities) of the branches that cross at a change point.

    For a cluster with one freedom elsewhere. A direction N y of the larger kernel is a tangent if
    it satisfies, to second order, the rows that K has lost: yᵀ Q y = 0 for each left null vector z
    of K, Q = Nᵀ (z · ∂²φ) N. Each is scaled to a largest component of 1.
    """
    geometry = cluster.geometry
    rows = list(cluster.closing_rows)
    jacobian = geometry.evaluate(q)[1][rows]
    left, singular, right = np.linalg.svd(jacobian)
    rank = int(np.sum(singular > VANISHES * singular[0]))
    null_space, lost = right[rank:].T, left[:, rank:]

    def second(y: Array) -> Array:
        value: Array = -lost.T @ geometry.evaluate(q, null_space @ y)[2][rows]
        return value

    size = null_space.shape[1]
    unit = np.eye(size)
    forms = (
        np.array([[second(a + b) - second(a) - second(b) for b in unit] for a in unit]).transpose(
            2, 0, 1
        )
        / 2.0
    )
    rng = np.random.default_rng(20240610)
    tangents: list[Array] = []
    for start in rng.standard_normal((60, size)):
        y = start / np.linalg.norm(start)
        for _ in range(40):
            y = y - np.linalg.pinv(2.0 * forms @ y, rcond=1e-8) @ (forms @ y @ y)
            y = y / np.linalg.norm(y)
        if np.max(np.abs(forms @ y @ y), initial=0.0) > 1e-9:
            continue
        way = null_space @ y
        way = way / way[np.argmax(np.abs(way))]
        if all(np.max(np.abs(way - other)) > 1e-5 for other in tangents):
            tangents.append(way)
    tangents.sort(key=lambda way: np.round(way, 6).tolist())
    return np.array(tangents).reshape(-1, geometry.nv)
