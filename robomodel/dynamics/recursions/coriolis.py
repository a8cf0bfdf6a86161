"""The Coriolis matrix over clusters, by recursion.

With w_j the velocities of the robot's mass points per unit of v_j, M_ij = ∫ w_i · w_j dm and

    C_ij = ∫ w_i · ẇ_j dm,

ẇ_j along the motion, armatures as points of their own. Then C v + gravity = bias, Ṁ = C + Cᵀ, and C
is linear in v. It is Gᵀ(C_tree G + M_tree Ġ), and the one C that is free of torsion: C(v) u -
C(u) v = M [v, u], with the bracket of the velocities' fields. Where velocities are rates of
coordinates brackets are zero, and it is the C of the Christoffel symbols, loops included.

The recursion carries Echeandia and Wensing's (Numerical methods to compute the Coriolis matrix and
Christoffel symbols for rigid-body systems, J. Comput. Nonlinear Dyn. 2021) over to clusters, on
points instead of spatial vectors: a composite body adds N = ∫ ṙ rᵀ dm and ∫ ṙ dm, with ṙ relative
to the body that carries it (:class:`.recursions.derivatives.MomentumMoments`), to its inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robomodel.dynamics.kinematics.state import (
    Matrix,
    State,
    moving,
)
from robomodel.dynamics.recursions.crba import towards_base
from robomodel.dynamics.recursions.derivatives import MomentumMoments
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.trace import Traced
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar
from robomodel.spatial import (
    NO_WRENCH,
    ZERO,
    Motion,
    Transform,
    Vec,
    Wrench,
    combine,
    cross,
    inner,
    matmul,
    plus,
    skew,
)


@dataclass(frozen=True, slots=True)
class _Column:
    """The effect of a unit velocity of a cluster on a body that carries it.

    ``force``: its momentum I s; ``rate``: ∫ ẇ dm as a wrench; ``turn``: for the unit velocity s of
    a carrier, with rate s' and velocities o, ∫ ȯ · w dm is ``force`` · s' + ``turn`` · s_ω.
    """

    force: Wrench = NO_WRENCH
    rate: Wrench = NO_WRENCH
    turn: Vec = ZERO

    def __add__(self, other: _Column) -> _Column:
        turn = plus(self.turn, other.turn)
        return _Column(self.force + other.force, self.rate + other.rate, turn)

    def in_parent(self, x: Transform, drift: Vec) -> _Column:
        """The column on the parent, from whose origin the body's moves away with ``drift``."""
        force = x.to_parent(self.force)
        turn = plus(x.rotate(self.turn), cross(drift, force.force))
        return _Column(force, x.to_parent(self.rate), turn)

    def after(self, motion: Motion, rate: Motion) -> Scalar:
        """∫ ȯ · w dm for a carrier's unit velocity ``motion`` with this rate."""
        return self.force.dot(rate) + inner(self.turn, motion.angular)


def coriolis(model: Model, q: Sequence[Traced], v: Sequence[Traced]) -> Matrix:
    """C (nv by nv) at traced q and v in O(n · depth); the loops are those of ``crba``."""
    state = State(model, q, (), v)
    inertia = list(state.inertia)
    streams = [
        MomentumMoments(matmul(skew(w), each.second_moments), cross(w, each.h))
        for w, each in zip(state.omega, inertia, strict=True)
    ]
    rates = rows_rates(state, q)
    motions = [state.subspace(body) for body in range(len(model.nodes))]
    turning = [changes(state, rates, body, motions[body]) for body in range(len(model.nodes))]
    matrix: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in reversed(model.clusters):
        first, count = cluster.v.start, cluster.nv
        block = state.armature(cluster, list(zip(*rates[cluster.spanning_v], strict=True)))
        carried: dict[int, list[_Column]] = {}
        for body in reversed(cluster.bodies):
            s, ds = motions[body], turning[body]
            below = carried.pop(body, [_Column()] * count)
            total = [
                _Column(
                    inertia[body] * motion,
                    inertia[body] * change + streams[body].wrench(motion.angular),
                    streams[body].transposed(motion),
                )
                + column
                for motion, change, column in zip(s, ds, below, strict=True)
            ]
            for i in range(count):
                for j in range(count):
                    entry = total[j].rate.dot(s[i]) + below[i].after(s[j], ds[j])
                    block[i][j] = block[i][j] + entry
            _carry(state, body, total, carried)
            parent, x = model.nodes[body].parent, state.transforms[body]
            if parent != WORLD:
                moved = inertia[body].in_parent(x)
                inertia[parent] += moved
                streams[parent] += streams[body].in_parent(x, origin_rate(state, body), moved)
        for i in range(count):
            matrix[first + i][first : first + count] = block[i]
        for start, body, columns in towards_base(model, cluster, carried):
            pairs = zip(motions[body], turning[body], strict=True)
            for i, (s_i, ds_i) in enumerate(pairs, start):
                for j, column in enumerate(columns, first):
                    matrix[i][j] = matrix[i][j] + column.rate.dot(s_i)
                    matrix[j][i] = matrix[j][i] + column.after(s_i, ds_i)
            _carry(state, body, columns, carried)
    return matrix


def rows_rates(state: State, q: Sequence[Traced]) -> Matrix:
    """Ġ by rows: zero for linear couplings, for others G differentiated along the motion."""
    rates: Matrix = []
    for cluster in state.model.clusters:
        rows = state.rows[cluster.spanning_v]
        change: list[Scalar] = [0.0] * (len(rows) * cluster.nv)
        if cluster.varies:
            along = moving(state.model, cluster, q, state.velocities)
            change = [*differentiate(q[0].trace, [x for row in rows for x in row], [along])[0]]
        rates += [change[i * cluster.nv : (i + 1) * cluster.nv] for i in range(len(rows))]
    return rates


def changes(state: State, rates: Matrix, body: int, motions: Sequence[Motion]) -> list[Motion]:
    """Rates of a body's vectors S G in the world, in its axes: S Ġ + ω x S G."""
    node, omega = state.model.nodes[body], state.omega[body]
    rows = [rates[r] for r in node.freedoms]
    return [
        combine(column, node.joint.subspace)
        + Motion(cross(omega, motion.angular), cross(omega, motion.linear))
        for motion, column in zip(motions, zip(*rows, strict=True), strict=True)
    ]


def origin_rate(state: State, body: int) -> Vec:
    """Velocity of the body's origin relative to its parent's, in the parent's axes."""
    x, parent = state.transforms[body], state.model.nodes[body].parent
    slide = x.rotate(state.relative[body].linear)
    return plus(cross(state.omega[parent], x.offset), slide)


def _carry(
    state: State, body: int, columns: Sequence[_Column], carried: dict[int, list[_Column]]
) -> None:
    """Add a body's columns to its parent's."""
    parent, x = state.model.nodes[body].parent, state.transforms[body]
    if parent == WORLD:
        return
    drift = origin_rate(state, body)
    before = carried.get(parent, [_Column()] * len(columns))
    moved = [column.in_parent(x, drift) for column in columns]
    carried[parent] = [a + b for a, b in zip(before, moved, strict=True)]
