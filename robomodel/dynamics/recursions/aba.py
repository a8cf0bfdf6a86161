"""Forward dynamics: the articulated-body algorithm over clusters (C-ABA).

The same in orthonormal coordinates of each cluster, and hybrid dynamics: on other states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix, State
from robomodel.dynamics.recursions.articulated import ClusterElimination, articulate
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import did_you_mean
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, div, dot, sqrt, transposed
from robomodel.spatial import NO_MOTION, NO_WRENCH, ZERO, Motion, minus


def aba(model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``; scalars of any kind (002, VII).

    Inwards, with the articulated inertias of :mod:`.recursions.articulated`: what hangs on a
    body acts on it with the bias wrench p + U D⁻¹ u, wrenches taken at the clusters' bias motions
    (their accelerations at ÿ = 0 on unaccelerated supports). Outwards, D ÿ = u - Uᵀ a.
    """
    return accelerations(State(model, q, f_ext, v), tau, f_ext)


def accelerations(state: State, tau: Vector, f_ext: Forces) -> list[Scalar]:
    """Accelerations along the subspaces of a state."""
    model = state.model
    wrench = {
        body: inertia.gyroscopic(state.centripetal[body]) - f_ext.get(body, NO_WRENCH)
        for body, inertia in enumerate(state.inertia)
    }
    systems: dict[int, tuple[ClusterElimination, list[Scalar]]] = {}
    for system in articulate(model, state):
        cluster = system.cluster
        bias_motion: dict[int, Motion] = {}
        for body in cluster.bodies:
            parent_bias = bias_motion.get(model.nodes[body].parent, NO_MOTION)
            bias_motion[body] = state.transforms[body].to_child(
                parent_bias
            ) + state.bias_acceleration(body)
            wrench[body] += system.inertia[body] * bias_motion[body]
        forces = list(tau[cluster.v])
        for child in system.pending:
            right = systems.pop(child.cluster.index)[1]
            for body, supports in child.supports.items():
                right = [r - u.dot(bias_motion[body]) for r, u in zip(right, supports, strict=True)]
            forces += right
        armature_force = state.armature(cluster, [state.bias[cluster.spanning_v]])
        for i, (bias,) in enumerate(armature_force):
            forces[i] = forces[i] - bias
        right = system.project(wrench, forces)
        if system.factors is not None:
            system.release(wrench, system.factors.reduce(right), forces)
        systems[cluster.index] = system, right
    base = Motion(ZERO, minus(ZERO, model.gravity))
    acceleration: list[Motion] = []

    def carrier(body: int) -> Motion:
        return base if body == WORLD else acceleration[body]

    ydd: list[Scalar] = [0.0] * model.nv
    for cluster in model.clusters:
        if cluster.index in systems:
            system, right = systems[cluster.index]
            for body, supports in system.supports.items():
                if system.alone:  # eliminated in its own axes
                    at = state.transforms[body].to_child(carrier(model.nodes[body].parent))
                else:
                    at = carrier(body)
                right = [r - u.dot(at) for r, u in zip(right, supports, strict=True)]
            assert system.factors is not None
            for i, x in zip(system.unknowns, system.factors.solve(right), strict=True):
                ydd[i] = x
        for body in cluster.bodies:
            total = state.transforms[body].to_child(carrier(model.nodes[body].parent))
            total = total + state.bias_acceleration(body)
            for motion, y in zip(state.subspace(body), ydd[cluster.v], strict=True):
                total = total + motion.scaled(y)
            acceleration.append(total)
    return ydd


# ---- in orthonormal coordinates of each cluster --------------------------------------------------

# Next to the dead points of a cluster with several freedoms the columns of G are long and nearly
# parallel (Tello's hips: two hundred times as long, condition 4e5 of the inertia GᵀIG). Both that
# inertia and the forces Gᵀf are then differences of large numbers. With G = Q R, Q's columns
# orthonormal, the cluster's accelerations z = R y are the unknowns instead, under the forces R⁻ᵀ τ:
# QᵀIQ and Qᵀf lose nothing, and two triangular solutions carry the size of G.


def orthonormal_aba(
    model: Model, q: Vector, v: Vector, tau: Vector, f_ext: Forces = NO_FORCES
) -> list[Scalar]:
    """Independent accelerations (nv) under the forces ``tau``: :func:`aba`.

    By other accelerations z = R y of each cluster whose G has several columns and varies.
    """
    state = Orthonormal(model, q, f_ext, v)
    forces = list(tau)
    for cluster in model.clusters:
        if _varies(cluster):
            forces[cluster.v] = _solved_transposed(state.factors[cluster.index][1], tau[cluster.v])
    result = accelerations(state, forces, f_ext)
    for cluster in model.clusters:
        if _varies(cluster):
            result[cluster.v] = _solved(state.factors[cluster.index][1], result[cluster.v])
    return result


@dataclass(frozen=True)
class Orthonormal(State):
    """A state in motion whose clusters have Q for G: what is linear in accelerations is so in z."""

    @cached_property
    def factors(self) -> dict[int, tuple[Matrix, Matrix]]:
        """Q and R of clusters, by number."""
        return {
            cluster.index: _factored(self.jacobian_rows[cluster.spanning_v])
            for cluster in self.model.clusters
            if _varies(cluster)
        }

    @cached_property
    def jacobian_rows(self) -> Matrix:
        """G, row by row."""
        return self.jacobian()

    @cached_property
    def rows(self) -> Matrix:
        """Q, row by row."""
        rows = list(self.jacobian_rows)
        for cluster in self.model.clusters:
            if _varies(cluster):
                rows[cluster.spanning_v] = self.factors[cluster.index][0]
        return rows

    @cached_property
    def velocities(self) -> list[Scalar]:
        """Spanning velocities G v."""
        return [
            dot(row, self.v[cluster.v])
            for cluster in self.model.clusters
            for row in self.jacobian_rows[cluster.spanning_v]
        ]


def _varies(cluster: Cluster) -> bool:
    return cluster.varies and cluster.nv > 1


def _factored(rows: Sequence[Vector]) -> tuple[Matrix, Matrix]:
    """Q by rows and R, upper triangular, by Gram and Schmidt's modified method."""
    columns = transposed(rows)
    size = len(columns)
    triangle: Matrix = [[0.0] * size for _ in range(size)]
    for j in range(size):
        column = columns[j]
        for i, unit in enumerate(columns[:j]):
            part = triangle[i][j] = dot(unit, column)
            column = [x - part * y for x, y in zip(column, unit, strict=True)]
        length = triangle[j][j] = sqrt(dot(column, column))
        inverse = div(1.0, length)
        columns[j] = [inverse * x for x in column]
    return transposed(columns), triangle


def _solved(triangle: Matrix, right: Vector) -> list[Scalar]:
    """R⁻¹ x."""
    result = list(right)
    for i in reversed(range(len(result))):
        solved = dot(triangle[i][i + 1 :], result[i + 1 :])
        result[i] = div(result[i] - solved, triangle[i][i])
    return result


def _solved_transposed(triangle: Matrix, right: Vector) -> list[Scalar]:
    """R⁻ᵀ x."""
    result = list(right)
    for i in range(len(result)):
        solved = dot([triangle[k][i] for k in range(i)], result[:i])
        result[i] = div(result[i] - solved, triangle[i][i])
    return result


# ---- hybrid dynamics -----------------------------------------------------------------------------

# Accelerations are prescribed at some joints, forces at the others; one elimination. The
# articulated-body algorithm, in which degrees of freedom whose acceleration is prescribed are not
# eliminated: they accelerate their bodies as velocities do, and the bodies keep their composite
# inertia along them. With no acceleration prescribed that is forward dynamics, with all of them
# inverse dynamics. Featherstone's three steps (inverse dynamics at zero acceleration, forward
# dynamics, inverse dynamics) give the same (001, VI).


def freedoms(model: Model) -> dict[str, tuple[int, ...]]:
    """The places in v by name: of independent joints, and of each of their ``dof_names``."""
    places: dict[str, tuple[int, ...]] = {name: (i,) for i, name in enumerate(model.dof_names)}
    for cluster in model.clusters:
        first = cluster.spanning_v.start
        place = {first + c: cluster.v.start + i for i, c in enumerate(cluster.columns)}
        for body in cluster.bodies:
            dofs = tuple(place[r] for r in model.nodes[body].freedoms if r in place)
            if dofs:
                places[model.joints[body].name] = dofs
    return places


def prescribed(model: Model, names: Iterable[str]) -> tuple[str, ...]:
    """The degrees of freedom, in order, of independent joints, or of parts of these by dof name.

    ValueError where there is none of a name.
    """
    places = freedoms(model)
    chosen: set[int] = set()
    for name in names:
        if name not in places:
            why = (
                "it depends on others; give theirs"
                if _dependent(model, name, places)
                else f"there is none{did_you_mean(name, places)}"
            )
            raise ValueError(f"'{name}' is no independent joint: {why}")
        chosen |= set(places[name])
    return tuple(model.dof_names[i] for i in sorted(chosen))


def _dependent(model: Model, name: str, places: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether it names a joint that is not independent, or a part of one that is so in part."""
    if name in model.joint_names:
        return True
    whole = name.rpartition(".")[0]
    return any(j.name == whole and 1 < j.nv > len(places.get(whole, ())) for j in model.joints)


@dataclass(frozen=True)
class PrescribedState(State):
    """A state in which some accelerations are prescribed: they are part of the bias accelerations.

    ``prescribed``: the acceleration of each degree of freedom, None where it is not prescribed.
    Freedoms with one have no motion subspace, and the unit row of an equation 1 · 0 = 0 in the
    elimination.
    """

    prescribed: Sequence[Scalar | None] = ()

    @cached_property
    def bias(self) -> list[Scalar]:
        """Spanning accelerations of velocities and prescribed accelerations."""
        a = [0.0 if x is None else x for x in self.prescribed]
        moved = [x for c in self.model.clusters for x in self.spanning(c, a[c.v])]
        return added(super().bias, moved)

    def subspace(self, body: int) -> list[Motion]:
        """S G of a body, zero along prescribed accelerations."""
        v = self.model.clusters[self.model.nodes[body].cluster].v
        columns = zip(super().subspace(body), self.prescribed[v], strict=True)
        return [motion if x is None else NO_MOTION for motion, x in columns]

    def armature(self, cluster: Cluster, columns: Sequence[Vector] | None = None) -> Matrix:
        """Gᵀ diag(armature) X, the identity's rows and columns along prescribed accelerations."""
        matrix = super().armature(cluster, columns)
        for i, x in enumerate(self.prescribed[cluster.v]):
            if x is not None:
                matrix[i] = [0.0] * len(matrix[i])
                if columns is None:
                    for row in matrix:
                        row[i] = 0.0
                    matrix[i][i] = 1.0
        return matrix


def hybrid(
    model: Model,
    q: Vector,
    v: Vector,
    given: Vector,
    f_ext: Forces = NO_FORCES,
    known: Iterable[str] = (),
) -> tuple[list[Scalar], list[Scalar]]:
    """(tau, a), each (nv), scalars of any kind.

    ``given``: nv numbers, the acceleration of each degree of freedom that ``known`` names (or the
    joint of which), the force of all others.
    """
    names = prescribed(model, known)
    named = [name in names for name in model.dof_names]
    if all(named):
        return rnea(model, q, v, given, f_ext), list(given)
    rates = [x if is_named else None for x, is_named in zip(given, named, strict=True)]
    forces = [0.0 if is_named else x for x, is_named in zip(given, named, strict=True)]
    solved = accelerations(PrescribedState(model, q, f_ext, v, rates), forces, f_ext)
    a = [y if x is None else x for x, y in zip(rates, solved, strict=True)]
    if not any(named):
        return list(given), a
    inverse = rnea(model, q, v, a, f_ext)
    return [t if x else y for t, x, y in zip(inverse, named, given, strict=True)], a
