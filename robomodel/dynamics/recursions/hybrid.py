"""Hybrid dynamics: accelerations are prescribed at some joints, forces at the others.

One elimination: the articulated-body algorithm, in which degrees of freedom whose acceleration is
prescribed are not eliminated: they accelerate their bodies as velocities do, and the bodies keep
their composite inertia along them. With no acceleration prescribed that is forward dynamics, with
all of them inverse dynamics. Featherstone's three steps (inverse dynamics at zero acceleration,
forward dynamics, inverse dynamics) give the same (001, VI).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix, State
from robomodel.dynamics.recursions.aba import accelerations
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import did_you_mean
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added
from robomodel.spatial import NO_MOTION, Motion


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

    Raises ValueError for any other name.
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
    """True if a name is that of a dependent joint, or of a dependent freedom of a joint."""
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
