"""Hybrid dynamics: accelerations given at some joints, forces at the others; one elimination.

The equations of the cluster tree with the given accelerations known, eliminated in the order of the
articulated-body algorithm (:mod:`robomodel.dynamics.elimination.ldlt`): joints whose acceleration
is given are no unknowns, so that their bodies keep their composite inertia. With no acceleration
given that is forward dynamics, with all of them inverse dynamics. Featherstone's three steps
(inverse dynamics at zero acceleration, forward dynamics, inverse dynamics) give the same (001, VI).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from robomodel.dynamics.elimination.graph import FactorGraph
from robomodel.dynamics.elimination.ldlt import solve
from robomodel.dynamics.elimination.orders import classical
from robomodel.dynamics.equations.system import equations, pieces
from robomodel.dynamics.rnea import rnea
from robomodel.errors import did_you_mean
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import Wrench


def prescribed(model: Model, names: Iterable[str]) -> tuple[str, ...]:
    """The degrees of freedom, in order, of independent joints; ValueError where there is none."""
    whole = {piece.name: piece.dofs for piece in pieces(model) if piece.dofs}
    for joint in model.joints:
        parts = [d for name, d in whole.items() if name.rpartition(".")[0] == joint.name]
        if joint.nv > 1 and parts and joint.name not in whole:
            whole[joint.name] = tuple(i for part in parts for i in part)
    found: set[int] = set()
    for name in names:
        if name not in whole:
            dependent = name in model.joint_names
            why = (
                "it depends on others; give theirs"
                if dependent
                else f"there is none{did_you_mean(name, whole)}"
            )
            raise ValueError(f"'{name}' is no independent joint: {why}")
        found |= set(whole[name])
    return tuple(model.dof_names[i] for i in sorted(found))


def hybrid(
    model: Model,
    q: Vector,
    v: Vector,
    given: Vector,
    prescribed: Sequence[str],
    f_ext: Mapping[int, Wrench] | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """(tau, a), each (nv), scalars of any kind.

    ``given``: nv numbers, the acceleration of each degree of freedom that ``prescribed`` names (as
    in ``model.dof_names``), the force of all others.
    """
    known = [name in prescribed for name in model.dof_names]
    a = _accelerations(model, q, v, given, known, f_ext or {})
    inverse = rnea(model, q, v, a, f_ext) if any(known) else list(given)
    tau = [t if k else x for t, x, k in zip(inverse, given, known, strict=True)]
    return tau, a


def _accelerations(
    model: Model,
    q: Vector,
    v: Vector,
    given: Vector,
    known: Sequence[bool],
    f_ext: Mapping[int, Wrench],
) -> list[Scalar]:
    if all(known):
        return list(given)
    system = equations(model, q, v, view="cluster", split="joint", turned=f_ext)
    values: dict[str, Sequence[Scalar]] = {
        f"fx[{node.name}]": f_ext[body].entries() if body in f_ext else [0.0] * 6
        for body, node in enumerate(model.nodes)
    }
    for piece in pieces(model):
        if piece.dofs:
            prescribed = all(known[i] for i in piece.dofs)
            kind = "qdd" if prescribed else "tau"
            values[f"{kind}[{piece.name}]"] = [given[i] for i in piece.dofs]
    system = system.given(values)
    order = classical(FactorGraph.of(system), model, "aba")
    found = solve(system, order)
    a = list(given)
    for piece in pieces(model):
        name = f"qdd[{piece.name}]"
        if piece.dofs and name in found:
            for i, x in zip(piece.dofs, found[name], strict=True):
                a[i] = x
    return a
