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
from robomodel.dynamics.equations.assembly import equations
from robomodel.dynamics.equations.segments import pieces
from robomodel.dynamics.kinematics.state import NO_FORCES, Forces
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import did_you_mean
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector


def freedoms(model: Model) -> dict[str, tuple[int, ...]]:
    """The places in v by name: of independent joints, and of each of their ``dof_names``."""
    found = {name: (i,) for i, name in enumerate(model.dof_names)}
    joints: dict[str, tuple[int, ...]] = {}
    for piece in pieces(model):
        if piece.dofs:
            joint = model.joints[piece.body].name
            joints[joint] = (*joints.get(joint, ()), *piece.dofs)
    return found | joints


def prescribed(model: Model, names: Iterable[str]) -> tuple[str, ...]:
    """The degrees of freedom, in order, of independent joints, or of parts of these by dof name.

    ValueError where there is none of a name.
    """
    known = freedoms(model)
    found: set[int] = set()
    for name in names:
        if name not in known:
            why = (
                "it depends on others; give theirs"
                if _dependent(model, name, known)
                else f"there is none{did_you_mean(name, known)}"
            )
            raise ValueError(f"'{name}' is no independent joint: {why}")
        found |= set(known[name])
    return tuple(model.dof_names[i] for i in sorted(found))


def _dependent(model: Model, name: str, known: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether it names a joint that is not independent, or a part of one that is so in part."""
    if name in model.joint_names:
        return True
    whole = name.rpartition(".")[0]
    return any(j.name == whole and 1 < j.nv > len(known.get(whole, ())) for j in model.joints)


def hybrid(
    model: Model,
    q: Vector,
    v: Vector,
    given: Vector,
    prescribed: Sequence[str],
    f_ext: Forces = NO_FORCES,
) -> tuple[list[Scalar], list[Scalar]]:
    """(tau, a), each (nv), scalars of any kind.

    ``given``: nv numbers, the acceleration of each degree of freedom that ``prescribed`` names (as
    in ``model.dof_names``), the force of all others.
    """
    known = [name in prescribed for name in model.dof_names]
    a = _accelerations(model, q, v, given, known, f_ext)
    inverse = rnea(model, q, v, a, f_ext) if any(known) else list(given)
    tau = [t if k else x for t, x, k in zip(inverse, given, known, strict=True)]
    return tau, a


def _accelerations(
    model: Model, q: Vector, v: Vector, given: Vector, known: Sequence[bool], f_ext: Forces
) -> list[Scalar]:
    if all(known):
        return list(given)
    system = equations(model, q, v, view="cluster", split="joint", turned=f_ext)
    values: dict[str, Sequence[Scalar]] = {
        f"fx[{node.name}]": f_ext[body].entries() if body in f_ext else [0.0] * 6
        for body, node in enumerate(model.nodes)
    }
    parts: dict[str, dict[int, Scalar]] = {}
    for piece in pieces(model):
        if piece.dofs:
            own = [given[i] for i in piece.dofs]
            held = {n: x for n, (i, x) in enumerate(zip(piece.dofs, own, strict=True)) if known[i]}
            whole = len(held) == len(own)
            values[f"{'qdd' if whole else 'tau'}[{piece.name}]"] = own
            if held and not whole:  # the held ones' torque rows go, whatever stands there
                parts[f"qdd[{piece.name}]"] = held
    system = system.given(values)
    if parts:
        system = system.given_parts(parts)
    order = classical(FactorGraph.of(system), model, "aba")
    found = solve(system, order)
    a = list(given)
    for piece in pieces(model):
        name = f"qdd[{piece.name}]"
        if piece.dofs and name in found:
            free = [i for i in piece.dofs if not known[i]]
            for i, x in zip(free, found[name], strict=True):
                a[i] = x
    return a
