"""Forward and inverse dynamics, the mass matrix, bias and passive forces, armature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.algorithms import Method
from robomodel.dynamics.calling import Backend, Wrenches, by_name
from robomodel.dynamics.calling import run as _run
from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array
from robomodel.model.model import Model


def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    method: Method = "cluster",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Inverse dynamics: the forces tau (..., nv) that produce the accelerations a.

    ``f_ext``: link name → wrench (..., 6) on that link, moment about its origin first, in its own
    axes. ``passive``: with the file's springs and damping (:func:`passive_force`) among the forces.
    C-RNEA (Chignoli et al., section V-A).

    ``method``: "cluster"; "projection", the same by Gᵀ on the spanning tree; "approximate", on an
    open tree with lumped rotors and armature; "unconstrained", on an open tree without rotors,
    couplers and other dependent bodies. Wrenches cannot act on bodies that an open tree leaves out.
    """
    arguments = {"q": q, "v": v, "a": a}
    result: Array = _run(
        model, "rnea", arguments, backend, f_ext=f_ext, passive=passive, method=method, check=check
    )
    return result


def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    method: Method = "cluster",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Forward dynamics: the accelerations a (..., nv) under the forces tau.

    ``f_ext`` and ``passive`` as in :func:`rnea`. States at which a loop is singular give
    not-a-number for themselves alone. C-ABA (Chignoli et al., section V-B).

    ``method``: those of :func:`rnea`; "lagrange": the same as "cluster" by multipliers of the
    loops and couplings on the spanning tree; "orthonormal": the same in orthonormal coordinates of
    each cluster, which loses fewer digits next to the dead points of linkages.
    """
    arguments = {"q": q, "v": v, "tau": tau}
    result: Array = _run(
        model, "aba", arguments, backend, f_ext=f_ext, passive=passive, method=method, check=check
    )
    return result


def crba(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """Joint-space inertia matrix M (..., nv, nv), gears' and loops' reflected inertias included."""
    result: Array = _run(model, "crba", {"q": q}, backend, check=check)
    return result


def bias_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The tau (..., nv) of zero acceleration: Coriolis, centrifugal, gravity, external forces."""
    result: Array = _run(
        model, "bias_force", {"q": q, "v": v}, backend, f_ext=f_ext, passive=passive, check=check
    )
    return result


def passive_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """What the file's springs and damping do to the independent velocities: tau (..., nv).

    Springs between links, at joints (dependent ones and rotors' included) and at the joints of
    loops, each with -stiffness · (x - reference) - damping · ẋ on its own coordinate x, brought to
    the independent ones by ∂ẋ/∂v. Dry friction is not in it, as at rest it is whatever holds.
    ``rnea``, ``aba``, ``bias_force``, ``hybrid`` and the derivatives count these forces among what
    acts on the robot with ``passive=True``: ``rnea(…, passive=True)`` = rnea - passive_force.
    """
    result: Array = _run(model, "passive_force", {"q": q, "v": v}, backend, check=check)
    return result


def armature(
    model: Model,
    q: ArrayLike | None = None,
    *,
    kind: Literal["diagonal", "dense"] = "diagonal",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Reflected inertia at the independent joints: (..., nv), or "dense" (..., nv, nv).

    Gᵀ (H' + diag(armature)) G, with H' the inertia that rotors, couplers and all other bodies that
    an approximating open tree locks have by their motion relative to what carries them, and the
    armature that the file gives joints. A rotor geared by N adds N² times its inertia. ``q``: one
    configuration, or a batch (default :meth:`Model.neutral`); gears and belts do not depend on it.
    """
    if kind not in ("diagonal", "dense"):
        raise ValueError(f"kind '{kind}' is not known; 'diagonal' and 'dense' are")
    at = model.neutral() if q is None else q
    dense: Array = _run(model, "armature", {"q": at}, backend, check=check)
    return np.diagonal(dense, axis1=-2, axis2=-1).copy() if kind == "diagonal" else dense


def hybrid(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: Mapping[str, ArrayLike] | None = None,
    a: Mapping[str, ArrayLike] | None = None,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """Hybrid dynamics: (tau, a), each (..., nv), from forces here and accelerations there.

    ``tau`` and ``a``: independent joint → value (...), or (..., n) for a joint with n degrees of
    freedom, or one of its ``model.dof_names`` → value (...); together they name each once. What is
    not named of a floating base is free: nothing pushes it there. ``f_ext`` as in :func:`rnea`.
    Every set of freedoms of which the accelerations are given is an algorithm of its own, compiled
    at its first call; see :mod:`robomodel.dynamics.recursions.hybrid_dynamics`.
    """
    from robomodel.dynamics.recursions.hybrid_dynamics import freedoms, prescribed

    forces, accelerations = by_name(tau, "tau"), by_name(a, "a")
    known = prescribed(model, accelerations)
    places = freedoms(model)
    prescribed(model, forces)  # a ValueError with a hint for names that are not known
    columns: dict[int, Array] = {}
    for name, value in (*forces.items(), *accelerations.items()):
        dofs = places[name]
        numbers = as_numbers(value, f"'{name}'")
        if len(dofs) == 1:
            numbers = numbers[..., None]
        if numbers.shape[-1:] != (len(dofs),):
            raise ValueError(f"'{name}' needs {len(dofs)} numbers on its last axis, got shape "
                             f"{numbers.shape}")  # fmt: skip
        for n, dof in enumerate(dofs):
            if dof in columns:
                raise ValueError(
                    f"'{model.dof_names[dof]}' is given twice; give its force or its acceleration"
                )
            columns[dof] = numbers[..., n]
    for dof in places.get(model.floating_base or "", ()):
        columns.setdefault(dof, np.zeros(()))
    missing = [name for i, name in enumerate(model.dof_names) if i not in columns]
    if missing:
        raise ValueError(
            f"neither force nor acceleration of '{missing[0]}' is given"
            + (f" (nor of {len(missing) - 1} others)" if missing[1:] else "")
        )
    try:
        batch = np.broadcast_shapes(*(x.shape for x in columns.values()))
    except ValueError:
        shapes = ", ".join(f"{model.dof_names[i]} {x.shape}" for i, x in columns.items())
        raise ValueError(f"batch axes do not broadcast: {shapes}") from None
    given = np.stack([np.broadcast_to(columns[i], batch) for i in range(model.nv)], axis=-1)
    arguments = {"q": q, "v": v, "given": given}
    forces_out, rates = _run(
        model, "hybrid", arguments, backend, f_ext=f_ext, passive=passive, known=known, check=check
    )
    return forces_out, rates
