"""Articulated inertias of the cluster tree: what forward dynamics and contact have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from robomodel.dynamics.kinematics.state import Configuration
from robomodel.mechanism.graph import WORLD
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Factorization, Scalar, Vector, is_zero
from robomodel.spatial import NO_WRENCH, ArticulatedInertia, Motion, Wrench


@dataclass(frozen=True, slots=True)
class ClusterElimination:
    """The equations D ÿ + Σ_o U_oᵀ a_o = u of one cluster, o running over the bodies it hangs on.

    ``unknowns`` are indices into v: the cluster's own and those of ``pending``, the child
    clusters that hang on several bodies of this one. ``supports`` is U by body, in that body's
    axes: bodies of the parent, or the cluster's own body if it has one only (``site``).
    ``inertia`` is that of each body with the clusters that hang on it; ``subspace`` is its S G.
    ``factors`` are D's, None where the cluster waits for its parent's elimination; ``reduced`` is
    U L⁻¹ there. ``exact``: the directions in which the site, once eliminated, has no inertia.
    """

    state: Configuration
    cluster: Cluster
    unknowns: list[int]
    pending: list[ClusterElimination]
    matrix: list[list[Scalar]]
    supports: dict[int, list[Wrench]]
    inertia: dict[int, ArticulatedInertia]
    subspace: dict[int, list[Motion]]
    factors: Factorization | None = None
    reduced: tuple[Wrench, ...] = ()
    exact: tuple[int, ...] = ()

    @property
    def alone(self) -> bool:
        """True if the cluster is a single body."""
        return len(self.cluster.bodies) == 1

    def project(self, wrench: dict[int, Wrench], forces: Vector) -> list[Scalar]:
        """u = forces - Sᵀ p of the bodies' bias wrenches p, which go to the parent cluster."""
        right = list(forces)
        for body in reversed(self.cluster.bodies):
            if body not in wrench:
                continue
            for i, motion in enumerate(self.subspace[body]):
                right[i] = right[i] - wrench[body].dot(motion)
            if not self.alone:
                self._carry(wrench, body)
        return right

    def release(self, wrench: dict[int, Wrench], reduced: Vector, forces: Vector) -> None:
        """Add the bias wrench p + U D⁻¹ u to the body that carries it; ``reduced``: L⁻ᵀ u."""
        assert self.factors is not None
        if self.cluster.parent == WORLD:
            return
        (site,) = self.supports
        total = wrench.get(site, NO_WRENCH)
        for u, inverse, r in zip(self.reduced, self.factors.inverse_pivots, reduced, strict=True):
            total += u.scaled(inverse * r)
        entries = list(total.entries())
        for direction, force in zip(self.exact, forces, strict=False):
            entries[direction] = force  # Sᵀ p = forces, as Sᵀ I = 0
        wrench[site] = Wrench.of(entries)
        if self.alone:
            self._carry(wrench, site)

    def _carry(self, wrench: dict[int, Wrench], body: int) -> None:
        """Move a body's wrench to its parent."""
        parent, carried = self.state.model.nodes[body].parent, wrench.pop(body)
        if parent != WORLD:
            moved = self.state.transforms[body].to_parent(carried)
            wrench[parent] = wrench.get(parent, NO_WRENCH) + moved


def articulate(model: Model, state: Configuration) -> Iterator[ClusterElimination]:
    """Eliminate the clusters' independent accelerations, from the tips inwards (002, VII-B).

    A cluster's bodies are joined to composites and its accelerations ÿ eliminated: what hangs on a
    body o then has the inertia I_o - U D⁻¹ Uᵀ. A cluster of one body is eliminated in its own axes,
    where Sᵀ I vanishes, unless the joint has an armature, and rows drop out. A cluster that hangs
    on several bodies couples them, so its unknowns wait for the parent cluster's elimination.
    """
    inertia = [inertia.articulated() for inertia in state.inertia]
    waiting: dict[int, list[ClusterElimination]] = {}
    for cluster in reversed(model.clusters):
        system = _join(model, state, cluster, inertia, waiting.pop(cluster.index, []))
        if len(cluster.outputs) > 1:
            waiting.setdefault(cluster.parent, []).append(system)
        else:
            system = _eliminate(model, system, inertia)
        yield system


def _join(
    model: Model,
    state: Configuration,
    cluster: Cluster,
    inertia: list[ArticulatedInertia],
    pending: list[ClusterElimination],
) -> ClusterElimination:
    """Join the cluster's bodies into composites on the bodies it hangs on; project on ÿ."""
    nv = cluster.nv
    armature = state.armature(cluster)
    unknowns = [*range(cluster.v.start, cluster.v.stop), *(i for p in pending for i in p.unknowns)]
    size = len(unknowns)
    matrix: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    for i in range(nv):
        matrix[i][:nv] = armature[i]
    columns: dict[int, list[Wrench]] = {}
    first = nv
    for system in pending:
        count = len(system.unknowns)
        for i in range(count):
            matrix[first + i][first : first + count] = system.matrix[i]
        for body, supports in system.supports.items():
            before = columns.setdefault(body, [NO_WRENCH] * size)
            before[first : first + count] = [
                f + g for f, g in zip(before[first : first + count], supports, strict=True)
            ]
        first += count
    subspace = {body: state.subspace(body) for body in cluster.bodies}
    carried = {body: inertia[body] for body in cluster.bodies}
    alone = len(cluster.bodies) == 1
    for body in reversed(cluster.bodies):
        s = subspace[body]
        below = columns.pop(body, [NO_WRENCH] * size)
        total = [below[i] + inertia[body] * s[i] if i < nv else below[i] for i in range(size)]
        for i in range(nv):
            for j in range(size):
                matrix[i][j] = matrix[i][j] + total[j].dot(s[i])
        for i in range(size):
            for j in range(nv):
                matrix[i][j] = matrix[i][j] + below[i].dot(s[j])
        if alone:
            columns[body] = total
            break
        parent, x = model.nodes[body].parent, state.transforms[body]
        before = columns.get(parent, [NO_WRENCH] * size)
        columns[parent] = [f + x.to_parent(g) for f, g in zip(before, total, strict=True)]
        if parent != WORLD:
            inertia[parent] += inertia[body].in_parent(x)
    return ClusterElimination(state, cluster, unknowns, pending, matrix, columns, carried, subspace)


def _eliminate(
    model: Model, system: ClusterElimination, inertia: list[ArticulatedInertia]
) -> ClusterElimination:
    """Factor D; give the body that the cluster hangs on its articulated inertia."""
    factors = Factorization(system.matrix)
    if system.cluster.parent == WORLD:
        return replace(system, factors=factors)
    ((site, supports),) = system.supports.items()
    reduced = list(supports)
    for k in reversed(range(len(reduced))):
        for i in range(k):
            reduced[i] = reduced[i] - reduced[k].scaled(factors.lower[k][i])
    for u, inverse in zip(reduced, factors.inverse_pivots, strict=True):
        inertia[site] = inertia[site].minus_outer(u, inverse)
    exact: tuple[int, ...] = ()
    if system.alone:
        node = model.nodes[site]
        directions = [_direction(motion) for motion in system.subspace[site]]
        pure = is_zero(node.armature) and None not in directions
        if pure and len(system.unknowns) == len(directions):
            exact = tuple(d for d in directions if d is not None)
            inertia[site] = inertia[site].without(exact)
        inertia[node.parent] += inertia[site].in_parent(system.state.transforms[site])
    return replace(system, factors=factors, reduced=tuple(reduced), exact=exact)


def _direction(motion: Motion) -> int | None:
    """The index of the unit motion that this is, or None."""
    entries = motion.entries()
    ones = [i for i, x in enumerate(entries) if x == 1.0]
    return ones[0] if len(ones) == 1 and sum(x != 0.0 for x in entries) == 1 else None
