"""Forward and inverse dynamics, the mass matrix, bias and passive forces, armature, derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.algorithm import Method, declare, on_open_trees
from robomodel.dynamics.baselines import lagrange, projection
from robomodel.dynamics.baselines import open_tree as independent
from robomodel.dynamics.declaration import (
    ForceOptions,
    Options,
    PassiveOptions,
    WrenchOptions,
    algorithm,
    by_name,
    documented,
    run,
    run_one,
)
from robomodel.dynamics.recursions import orthonormal
from robomodel.dynamics.recursions.aba import aba as aba_recursion
from robomodel.dynamics.recursions.crba import crba as crba_recursion
from robomodel.dynamics.recursions.derivatives import aba_derivatives as aba_slopes
from robomodel.dynamics.recursions.derivatives import rnea_derivatives as rnea_slopes
from robomodel.dynamics.recursions.derivatives import rnea_hessian_product as hessian_product
from robomodel.dynamics.recursions.hybrid_dynamics import freedoms, prescribed
from robomodel.dynamics.recursions.hybrid_dynamics import hybrid as hybrid_recursion
from robomodel.dynamics.recursions.passive import (
    aba_derivatives_passive,
    aba_passive,
    hybrid_passive,
    less_passive,
    rnea_derivatives_passive,
)
from robomodel.dynamics.recursions.passive import passive_force as passive_recursion
from robomodel.dynamics.recursions.rnea import bias_force as bias_recursion
from robomodel.dynamics.recursions.rnea import rnea as rnea_recursion
from robomodel.model.approximate import reflected
from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array
from robomodel.model.model import Model

__all__ = [
    "aba",
    "aba_derivatives",
    "armature",
    "bias_force",
    "correction_force",
    "crba",
    "hybrid",
    "passive_force",
    "rnea",
    "rnea_derivatives",
    "rnea_hessian_product",
]


@algorithm(
    rnea_recursion,
    tau=("nv",),
    passive=less_passive,
    methods={"projection": projection.rnea, **on_open_trees(independent.rnea)},
)
def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    method: Method = "cluster",
    **options: Unpack[ForceOptions],
) -> Array:
    """Inverse dynamics: the forces that produce given accelerations.

    C-RNEA (Chignoli et al., section V-A).

    Args:
        method: "cluster"; "projection", the same by Gᵀ on the spanning tree; "approximate", on an
            open tree with lumped rotors and armature; "tendons", the same with the reflected
            inertia between joints, as :func:`approximate_tree` has it; "unconstrained", on an
            open tree without rotors, couplers and other dependent bodies. Wrenches cannot act on
            bodies that an open tree leaves out.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.
    """


@algorithm(
    aba_recursion,
    a=("nv",),
    passive=aba_passive,
    methods={
        "orthonormal": orthonormal.aba,
        "projection": projection.aba,
        "lagrange": lagrange.aba,
        **on_open_trees(independent.aba),
    },
)
def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    method: Method = "cluster",
    **options: Unpack[ForceOptions],
) -> Array:
    """Forward dynamics: the accelerations under given forces.

    States at which a loop is singular give not-a-number for themselves alone. C-ABA (Chignoli et
    al., section V-B).

    Args:
        method: Those of :func:`rnea`; "lagrange": the same as "cluster" by multipliers of the loops
            and couplings on the spanning tree; "orthonormal": the same in orthonormal coordinates
            of each cluster, which loses fewer digits next to the dead points of linkages.

    Returns:
        a: Accelerations (..., nv) of the independent coordinates.
    """


@algorithm(crba_recursion, M=("nv", "nv"))
def crba(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Joint-space inertia matrix M, gears' and loops' reflected inertias included.

    Returns:
        M: The matrix (..., nv, nv).
    """


@algorithm(bias_recursion, tau=("nv",), passive=less_passive)
def bias_force(model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[ForceOptions]) -> Array:
    """The forces of zero acceleration: Coriolis, centrifugal, gravity, external forces.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.
    """


@algorithm(passive_recursion, tau=("nv",))
def passive_force(model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]) -> Array:
    """What the file's springs and damping do to the independent velocities.

    Springs between links, at joints (dependent ones and rotors' included) and at the joints of
    loops, each with -stiffness · (x - reference) - damping · ẋ on its own coordinate x, brought to
    the independent ones by ∂ẋ/∂v. Dry friction is not in it, as at rest it is whatever holds.
    ``rnea``, ``aba``, ``bias_force``, ``hybrid`` and the derivatives count these forces among what
    acts on the robot with ``passive=True``: ``rnea(…, passive=True)`` = rnea - passive_force.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.
    """


@algorithm(independent.correction_force, correction=("nv",), passive=independent.correction_passive)
def correction_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    **options: Unpack[PassiveOptions],
) -> Array:
    """What joint forces of the open tree lack for it to accelerate as the robot does.

    With the accelerations a of the robot under tau, q̇ₜ = Gₜ v and tau = Gₜᵀ tauₜ, it is
    IDₜ(qₜ, Gₜ v, Gₜ a + gₜ) - tauₜ, of the inverse dynamics IDₜ of the tree: the gyroscopic moments
    and the spin of rotors on moving carriers, and what changes with the configuration of linkages.
    A simulator of the tree that adds it to tauₜ at each step follows the robot, without contact.

    Returns:
        correction: Forces (..., nv) on the joints of :func:`approximate_tree`, in the order of its
            v; with ``passive`` that tree's springs and damping act, too.
    """


declare("armature", reflected, A=("nv", "nv"))


@documented
def armature(
    model: Model,
    q: ArrayLike | None = None,
    *,
    kind: Literal["diagonal", "dense"] = "diagonal",
    **options: Unpack[Options],
) -> Array:
    """Reflected inertia at the independent joints.

    Gᵀ (H' + diag(armature)) G, with H' the inertia that rotors, couplers and all other bodies that
    an approximating open tree locks have by their motion relative to what carries them, and the
    armature that the file gives joints. A rotor geared by N adds N² times its inertia.

    Args:
        q: One configuration, or a batch (..., nq); default :meth:`Model.neutral`. Gears and belts
            do not depend on it.
        kind: "diagonal" or "dense".

    Returns:
        inertia: The diagonal (..., nv), or with "dense" the matrix (..., nv, nv).
    """
    if kind not in ("diagonal", "dense"):
        raise ValueError(f"kind '{kind}' is not known; 'diagonal' and 'dense' are")
    at = model.neutral() if q is None else q
    dense = run_one(model, "armature", {"q": at}, **options)
    return np.diagonal(dense, axis1=-2, axis2=-1).copy() if kind == "diagonal" else dense


declare("hybrid", hybrid_recursion, passive=hybrid_passive, tau=("nv",), a=("nv",))


@documented
def hybrid(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: Mapping[str, ArrayLike] | None = None,
    a: Mapping[str, ArrayLike] | None = None,
    **options: Unpack[ForceOptions],
) -> tuple[Array, Array]:
    """Hybrid dynamics: all forces and accelerations, from forces here and accelerations there.

    Every set of freedoms of which the accelerations are given is an algorithm of its own, compiled
    at its first call; see :mod:`robomodel.dynamics.recursions.hybrid_dynamics`.

    Args:
        tau: Independent joint → force (...), or (..., n) for a joint with n degrees of freedom, or
            one of its ``model.dof_names`` → force (...). With ``a`` it names each once; what is not
            named of a floating base is free: nothing pushes it there.
        a: The same of accelerations.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.

    Raises:
        ValueError: A coordinate is named twice or not at all, a name is not known, or arrays do not
            fit.
    """
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
    torque, acceleration = run(model, "hybrid", arguments, known=known, **options)
    return torque, acceleration


@algorithm(
    rnea_slopes,
    dtau_dq=("nv", "nv"),
    dtau_dv=("nv", "nv"),
    M=("nv", "nv"),
    passive=rnea_derivatives_passive,
    by_trace=True,
)
def rnea_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[ForceOptions]
) -> tuple[Array, Array, Array]:
    """Derivatives of inverse dynamics by positions, velocities and accelerations.

    Positions vary in the tangent space: column j is the change along ``integrate(q, ε e_j)``, with
    loops closed. Wrenches stay as they are in their links' axes.

    Returns:
        dq: ∂tau/∂q (..., nv, nv).
        dv: ∂tau/∂v (..., nv, nv).
        M: ∂tau/∂a (..., nv, nv), the mass matrix.
    """


@algorithm(
    aba_slopes,
    da_dq=("nv", "nv"),
    da_dv=("nv", "nv"),
    Minv=("nv", "nv"),
    passive=aba_derivatives_passive,
    by_trace=True,
)
def aba_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, **options: Unpack[ForceOptions]
) -> tuple[Array, Array, Array]:
    """Derivatives of forward dynamics by positions, velocities and forces.

    q varies as in :func:`rnea_derivatives`. Carpentier and Mansard, RSS 2018: ∂FD = -M⁻¹ ∂ID.

    Returns:
        dq: ∂a/∂q (..., nv, nv).
        dv: ∂a/∂v (..., nv, nv).
        inverse: M⁻¹ (..., nv, nv), which is also ∂a/∂tau.
    """


@algorithm(
    hessian_product,
    dqdq=("nv", "nv"),
    dvdv=("nv", "nv"),
    dqdv=("nv", "nv"),
    dadq=("nv", "nv"),
    by_trace=True,
)
def rnea_hessian_product(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    **options: Unpack[WrenchOptions],
) -> tuple[Array, Array, Array, Array]:
    """Second derivatives of φ = w · rnea(q, v, a), as solvers with exact Hessians need them.

    φ is linear in a, and ∂²φ/∂a∂v is zero. By q they are those of φ at ``integrate(q, δ)`` by δ,
    with loops closed; wrenches stay as they are in their links' axes.

    Args:
        w: Multipliers (..., nv), or a row of the identity for the second derivatives of one force.

    Returns:
        qq: ∂²φ/∂q∂q (..., nv, nv), the first-named along the rows.
        vv: ∂²φ/∂v∂v (..., nv, nv).
        qv: ∂²φ/∂q∂v (..., nv, nv).
        aq: ∂²φ/∂a∂q (..., nv, nv).
    """
