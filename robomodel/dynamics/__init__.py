"""Exact dynamics of a model: the functions users call, on NumPy arrays with batch axes.

Each algorithm stands once, on scalars of any kind, in a module of its own; here its arguments are
checked and handed to a compiled kernel, or to the NumPy path, which runs the same source on arrays.
Conventions: q (..., nq), v, a and tau (..., nv); SI units; spatial vectors angular first; leading
axes broadcast. ``backend``: "compiled" (kernels are made at the first call on a model and kept on
disk; robots of more than 200 bodies, and machines without LLVM, are served by NumPy), or
"numpy". ``check``: refuse what is no state, as :meth:`robomodel.Model.check` does (open loops,
quaternions that are not of unit length, numbers that are not finite), instead of computing with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import actuation
from robomodel.dynamics.actuation import Reflected, copper_loss
from robomodel.dynamics.algorithms import Method
from robomodel.dynamics.calling import Backend, Wrenches, by_name, check_arguments
from robomodel.dynamics.calling import run as _run
from robomodel.dynamics.efpa import product
from robomodel.dynamics.frames import FrameKey, FrameLike, frame_keys
from robomodel.dynamics.impulse import collide
from robomodel.dynamics.quantities import (
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_jacobian,
    center_of_mass_velocity,
    centroidal_map,
    centroidal_momentum,
    coriolis,
    energy,
    frame_acceleration,
    frame_bias,
    frame_pose,
    frame_velocity,
    gravity_force,
    jacobian,
    mass_inverse,
)
from robomodel.dynamics.touch import held, pushed, slopes, strike
from robomodel.model.joints import Array
from robomodel.model.model import Model, as_array, as_numbers, common_batch

MANY = 8  # frames; beyond, programs without the k² entries of their matrix are made sooner


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


def actuator_map(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Array:
    """B (..., nv, nu): tau = B u for the forces u of ``model.actuators``; Bᵀ v are their rates."""
    if not model.actuators:
        if check:
            model.check(q)
        return np.zeros((*as_array(q, model.nq, "q", "nq").shape[:-1], model.nv, 0))
    result: Array = _run(model, "actuator_map", {"q": q}, backend, check=check)
    return result


def actuator_forces(
    model: Model,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """The motor forces u (..., nu) of least norm that give tau (..., nv): B u = tau.

    Not-a-number where none do: a floating base that is pushed, a joint without a motor.
    """
    if check:
        check_arguments(model, {"q": q, "tau": tau})
    torque = as_array(tau, model.nv, "tau", "nv")
    common_batch(q=as_array(q, model.nq, "q", "nq"), tau=torque)
    return actuation.forces(actuator_map(model, q, backend=backend), torque)


def reflected(
    model: Model, q: ArrayLike, *, backend: Backend = "compiled", check: bool = False
) -> Reflected:
    """What each actuator's shaft puts on each independent velocity, through gears and linkages.

    (inertia, damping, friction), each (..., nv, nu): of coordinate i and actuator n I b², d b² and
    f |b| with b = B[i, n] of :func:`actuator_map` and I, d, f of its rotor (of a joint without one:
    the joint's armature, damping and friction). The inertia is that of the rotor's spin alone, what
    textbooks call reflected inertia, I N²; the mass matrix has besides what couples spins with the
    motion of the bodies that carry rotors.
    """
    if not model.actuators:
        none = actuator_map(model, q, backend=backend, check=check)
        return Reflected(none, none.copy(), none.copy())
    return Reflected(*_run(model, "reflected", {"q": q}, backend, check=check))


def saturate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array]:
    """(tau, u, lost): what the motors make of the torques (..., nv) asked of them.

    ``u`` (..., nu) are the motor forces of least norm with B u = tau, each within its effort limit
    and what its torque-speed curve or velocity limit leaves it at its rate Bᵀ v; ``lost`` (..., nu)
    what of each is beyond that: zero where a motor is not saturated. The first result is tau less B
    times what is lost, so that what no motor gives, on a floating base or a joint without an
    actuator, stays. Driving force without a curve falls to zero within the last hundredth below the
    velocity limit. ``simulate`` and ``rollout`` move under these torques with ``saturate=True``.
    """
    arguments = {"q": q, "v": v, "tau": tau}
    given, u, lost = _run(model, "saturate", arguments, backend, check=check)
    unknown = np.isnan(as_array(v, model.nv, "v", "nv")).any(axis=-1)
    if np.any(unknown):  # the least of a number and none is the number
        for result in (given, u, lost):
            result[np.broadcast_to(unknown, result.shape[:-1])] = np.nan
    return given, u, lost


def torque_limits(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """(lower, upper), each (..., nv): the tau of each coordinate while the others get nothing.

    From the actuators' effort limits (and stall torques) through gears and linkages at q; with
    ``v``, also their torque-speed curves: driving force falls linearly to zero at no-load speed,
    without a curve nothing drives beyond the velocity limit, braking stays. Zero where nothing
    pushes a coordinate alone.
    """
    if check:
        model.check(q, v)
    matrix, lower, upper = _motors(model, q, v, backend)
    return actuation.limits(matrix, lower, upper)


def torque_polytope(
    model: Model,
    q: ArrayLike,
    joints: Sequence[str] | str,
    v: ArrayLike | None = None,
    *,
    backend: Backend = "compiled",
    check: bool = False,
) -> Array | list[Array]:
    """The corners (m, len(joints)) of what these coordinates can get together at q, others nothing.

    ``joints``: names of independent coordinates (``model.dof_names``); two coordinates' corners run
    counterclockwise. Of a batch a list of such arrays, one for each state. ``v`` as in
    :func:`torque_limits`. ValueError where an actuator has no effort limit.
    """
    if check:
        model.check(q, v)
    chosen = actuation.selected(model, joints)
    matrix, lower, upper = _motors(model, q, v, backend)
    shape = np.broadcast_shapes(matrix.shape[:-2], lower.shape[:-1])
    wide = np.broadcast_to(matrix, (*shape, *matrix.shape[-2:]))
    low, high = (np.broadcast_to(x, (*shape, matrix.shape[-1])) for x in (lower, upper))
    actuation.needs_limits(model, low, high)
    found = [actuation.polytope(wide[n], chosen, low[n], high[n]) for n in np.ndindex(*shape)]
    return found if shape else found[0]


def efpa(
    model: Model,
    q: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    method: Method = "cluster",
    backend: Backend = "compiled",
    check: bool = False,
) -> Array:
    """Inverse operational-space inertia Λ⁻¹ = J M⁻¹ Jᵀ (..., 6k, 6k) of k frames.

    Unit wrenches at the frames, and the accelerations that they make there: frame after frame,
    angular first, each in its own axes, as in :func:`jacobian`. ``frames``: links' names, or (link,
    offset); a single one is k = 1. They may be on any bodies, rotors and linkages included, and
    several on one; on links fixed to the world they give zeros. C-EFPA (Chignoli et al., section
    VIII): no mass matrix is formed, and the cost is linear in the depth of the tree. Kernels write
    the matrix for up to eight frames, and what it is a product of for more.
    """
    keys = frame_keys(frames)
    if not keys:
        return np.zeros((*as_array(q, model.nq, "q", "nq").shape[:-1], 0, 0))
    if method == "cluster" and len(keys) > MANY:
        return product(*_run(model, "efpa_factors", {"q": q}, backend, frames=keys, check=check))
    result: Array = _run(model, "efpa", {"q": q}, backend, frames=keys, method=method, check=check)
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
    at its first call; see :mod:`robomodel.dynamics.hybrid_dynamics`.
    """
    from robomodel.dynamics.hybrid_dynamics import freedoms, prescribed

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


def impulse(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    restitution: ArrayLike = 0.0,
    normals: ArrayLike = (0.0, 0.0, 1.0),
    sticking: bool = True,
    unilateral: bool = False,
    friction: ArrayLike = 1.0,
    tolerance: float = 1e-10,
    method: Method = "cluster",
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """Velocities after an impact, v⁺ (..., nv), and the impulses (..., k, 3) [N s] on the robot.

    ``frames`` are the points that touch something rigid at this instant: links, or (link, offset).
    Each leaves with -restitution times its velocity along its normal. Across the normal it stops
    (``sticking``), or, without friction, is free. ``normals`` (3,) or (..., k, 3) and the impulses
    are in world axes; ``restitution`` () or (..., k) is from 0 to 1. Positions do not change.

    v⁺ = v + M⁻¹ Jᵀ λ, with λ from the points' J M⁻¹ Jᵀ (C-EFPA). Contacts that repeat each other (a
    rigid foot's fourth corner) share the impulse of least norm; contacts that contradict each
    other are met in the least-squares sense. Eigenvalues of J M⁻¹ Jᵀ up to ``tolerance`` of the
    largest count as zero. Impulses may come out pulling: a contact does not hold there, so leave
    it out. Energy is not gained with restitution 0, nor without friction with one restitution for
    all; sticking points that rebound can gain some (Kane's paradox of Newton's law). ``method``:
    "cluster", or one of the open trees of :func:`rnea`, "approximate" and "unconstrained".

    ``unilateral``: contacts push and never pull, and stick or slip by Coulomb's law with
    ``friction`` () or (..., k), which must be finite (sticking without pulling has no solution, or
    several): Newton's law holds along the normals of points that approach, others may stay or
    leave. Then no energy is gained: where friction between rebounding points would, they rebound
    less. Solved to 1e-10 of the velocities; a RuntimeWarning tells where not.
    """
    keys = frame_keys(frames)
    before = as_array(v, model.nv, "v", "nv")
    if not keys:
        batch = as_array(q, model.nq, "q", "nq").shape[:-1]
        batch = np.broadcast_shapes(batch, before.shape[:-1])
        return np.broadcast_to(before, (*batch, model.nv)).copy(), np.zeros((*batch, 0, 3))
    if check:
        model.check(q, v)
    inverse, j, mass = _contact(model, q, keys, method, backend)
    if unilateral:
        law = (restitution, friction if sticking else 0.0, normals)
        return strike(inverse, j, mass, before, *law)
    return collide(inverse, j, mass, before, restitution, normals, sticking, tolerance)


def contact_aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    friction: ArrayLike = 1.0,
    normals: ArrayLike = (0.0, 0.0, 1.0),
    unilateral: bool = True,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    tolerance: float = 1e-10,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array]:
    """Forward dynamics with contacts: (a (..., nv), forces (..., k, 3) [N] on them, world axes).

    ``frames`` are points that touch something rigid at rest: links, or (link, offset). ``normals``
    (3,) or (..., k, 3), in world axes, point out of it.

    ``unilateral``: contacts push and never pull (Signorini's law on accelerations). Those at rest
    stick, or begin to slip, and those that slide are braked, by Coulomb's law with ``friction`` ()
    or (..., k), which is finite. Points that move away feel nothing. Where points run into what
    they touch (:func:`impulse` comes first), and where no finite forces obey the laws (Painlevé),
    the result is not-a-number with a RuntimeWarning; of several solutions, also warned of, it is
    the one of the least forces.

    Without it contacts hold whatever it takes (``friction=inf`` says so too): the points do not
    accelerate, J a + J̇ v = 0, and redundant ones share the forces of least norm.
    """
    keys = frame_keys(frames)
    free = aba(model, q, v, tau, f_ext=f_ext, passive=passive, backend=backend, check=check)
    if not keys:
        return free, np.zeros((*free.shape[:-1], 0, 3))
    inverse, j, mass = _contact(model, q, keys, "cluster", backend)
    arguments = {"q": q, "v": v, "a": free}
    rates, accelerations = _run(model, "touching", arguments, backend, frames=keys)
    if not unilateral:
        a, forces = held(inverse, j, mass, free, accelerations, tolerance)
        return a, forces.reshape(*forces.shape[:-1], len(keys), 3)
    return pushed(inverse, j, mass, free, rates, accelerations, friction, normals)


def contact_aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    tolerance: float = 1e-10,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Derivatives of :func:`contact_aba` with bilateral contacts (``unilateral=False``).

    (∂a/∂q, ∂a/∂v, ∂a/∂tau), each (..., nv, nv), then (∂f/∂q, ∂f/∂v, ∂f/∂tau), each (..., 3k, nv),
    forces point after point; q in the tangent space. From M ∂a = Jᵀ ∂f - ∂(rnea - Jᵀ f) and J ∂a =
    -∂(J a + J̇ v). Where contacts are redundant those of the forces are of their least-norm solution
    at fixed J M⁻¹ Jᵀ; those of a hold as they are. Where contacts contradict each other, which
    :func:`contact_aba` tells of, there are none.
    """
    keys = frame_keys(frames)
    if not keys or not model.nv:
        slopes_free = aba_derivatives(model, q, v, tau, backend=backend, check=check)
        none = np.zeros((*slopes_free[0].shape[:-2], 3 * len(keys), model.nv))
        return (*slopes_free, none, none.copy(), none.copy())
    a, forces = contact_aba(
        model, q, v, tau, keys, unilateral=False, tolerance=tolerance, backend=backend, check=check
    )
    flat = forces.reshape(*forces.shape[:-2], 3 * len(keys))
    arguments = {"q": q, "v": v, "a": a, "forces": flat}
    parts = _run(model, "contact_derivatives", arguments, backend, frames=keys)
    return slopes(parts, tolerance)


def rnea_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array]:
    """(∂tau/∂q, ∂tau/∂v, M) of inverse dynamics, each (..., nv, nv).

    Positions vary in the tangent space: column j is the change along ``integrate(q, ε e_j)``, with
    loops closed. Wrenches stay as they are in their links' axes.
    """
    dq, dv, mass = _run(
        model,
        "rnea_derivatives",
        {"q": q, "v": v, "a": a},
        backend,
        f_ext=f_ext,
        passive=passive,
        check=check,
    )
    return dq, dv, mass


def aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    passive: bool = False,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array]:
    """(∂a/∂q, ∂a/∂v, M⁻¹) of forward dynamics, each (..., nv, nv); q as in rnea_derivatives.

    M⁻¹ is also ∂a/∂tau (Carpentier and Mansard, RSS 2018: ∂FD = -M⁻¹ ∂ID).
    """
    arguments = {"q": q, "v": v, "tau": tau}
    dq, dv, inverse = _run(
        model, "aba_derivatives", arguments, backend, f_ext=f_ext, passive=passive, check=check
    )
    return dq, dv, inverse


def rnea_hessian_product(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    backend: Backend = "compiled",
    check: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """Second derivatives of φ = w · rnea(q, v, a), as solvers with exact Hessians need them.

    (∂²φ/∂q∂q, ∂²φ/∂v∂v, ∂²φ/∂q∂v, ∂²φ/∂a∂q), each (..., nv, nv) with the first-named along the
    rows; φ is linear in a, and ∂²φ/∂a∂v is zero. ``w`` (..., nv): multipliers, or a row of the
    identity for the second derivatives of one force. By q they are those of φ at ``integrate(q,
    δ)`` by δ, with loops closed; wrenches stay as they are in their links' axes.
    """
    arguments = {"q": q, "v": v, "a": a, "w": w}
    qq, vv, qv, aq = _run(
        model, "rnea_hessian_product", arguments, backend, f_ext=f_ext, check=check
    )
    return qq, vv, qv, aq


def _motors(
    model: Model, q: ArrayLike, v: ArrayLike | None, backend: Backend
) -> tuple[Array, Array, Array]:
    """B, and the least and the greatest force of each actuator at the rates Bᵀ v."""
    matrix = actuator_map(model, q, backend=backend)
    rates = None
    if v is not None:
        speed = as_array(v, model.nv, "v", "nv")
        common_batch(q=as_array(q, model.nq, "q", "nq"), v=speed)
        rates = np.einsum("...ij,...i->...j", matrix, speed)
    return matrix, *actuation.bounds(model, rates)


def _contact(
    model: Model, q: ArrayLike, keys: tuple[FrameKey, ...], method: Method, backend: Backend
) -> tuple[Array, Array, Array]:
    """J M⁻¹ Jᵀ, J and M of points; of many of them by the factors of the first."""
    if method == "cluster" and len(keys) > MANY:
        rows, p, j, mass = _run(model, "contact_factors", {"q": q}, backend, frames=keys)
        return product(rows, p), j, mass
    inverse, j, mass = _run(model, "contact", {"q": q}, backend, frames=keys, method=method)
    return inverse, j, mass


__all__ = [
    "aba",
    "aba_derivatives",
    "actuator_forces",
    "actuator_map",
    "armature",
    "bias_force",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_map",
    "centroidal_momentum",
    "contact_aba",
    "contact_aba_derivatives",
    "copper_loss",
    "coriolis",
    "crba",
    "efpa",
    "energy",
    "frame_acceleration",
    "frame_bias",
    "frame_pose",
    "frame_velocity",
    "gravity_force",
    "hybrid",
    "impulse",
    "jacobian",
    "mass_inverse",
    "passive_force",
    "reflected",
    "rnea",
    "rnea_derivatives",
    "rnea_hessian_product",
    "saturate",
    "torque_limits",
    "torque_polytope",
]
