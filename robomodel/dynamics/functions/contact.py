"""Contacts at an instant: operational-space inertia, impacts, contact forces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import baselines
from robomodel.dynamics.algorithm import (
    ForceOptions,
    Method,
    Options,
    check_arguments,
    declare,
    documented,
    on_open_trees,
    run,
    run_one,
)
from robomodel.dynamics.contact.least import check_tolerance
from robomodel.dynamics.contact.points import (
    UP,
    Touch,
    as_friction,
    collide,
    held,
    pushed,
    slopes,
    solved,
    strike,
    touch_derivatives,
)
from robomodel.dynamics.functions.motion import aba, aba_derivatives
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys
from robomodel.dynamics.recursions import efpa as recursion
from robomodel.dynamics.recursions.efpa import (
    contact,
    contact_factors,
    free_motion,
    product,
    response,
    touching,
)
from robomodel.dynamics.recursions.passive import aba_passive
from robomodel.errors import as_flag
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.tolerances import ROUNDING

__all__ = ["contact_aba", "contact_aba_derivatives", "efpa", "impulse"]

MANY_FRAMES = 8  # frames; beyond, programs without the k² entries of their matrix compile sooner

declare(
    "efpa",
    recursion.efpa,
    inverse_inertia=("6k", "6k"),
    methods={"projection": baselines.projection_efpa, **on_open_trees(baselines.efpa)},
)
declare("efpa_factors", recursion.efpa_factors, R=("6k", "nv"), p=("nv",))
declare(
    "contact",
    contact,
    inverse_inertia=("3k", "3k"),
    J=("3k", "nv"),
    M=("nv", "nv"),
    methods=on_open_trees(baselines.contact),
)
declare("contact_factors", contact_factors, R=("3k", "nv"), p=("nv",), J=("3k", "nv"),
        M=("nv", "nv"))  # fmt: skip
declare("contact_response", response, inverse_inertia=("3k", "3k"), J=("3k", "nv"),
        columns=("nv", "3k"))  # fmt: skip
declare(
    "contact_free",
    free_motion,
    passive=aba_passive,
    a=("nv",),
    inverse_inertia=("3k", "3k"),
    columns=("nv", "3k"),
    rates=("3k",),
    accelerations=("3k",),
)
declare("touching", touching, rates=("3k",), accelerations=("3k",))
declare(
    "contact_derivatives",
    touch_derivatives,
    left_q=("nv", "nv"),
    left_v=("nv", "nv"),
    right_q=("3k", "nv"),
    right_v=("3k", "nv"),
    J=("3k", "nv"),
    M=("nv", "nv"),
    by_trace=True,
)


@documented
def efpa(
    model: Model,
    q: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    method: Method = "cluster",
    **options: Unpack[Options],
) -> Array:
    """Inverse operational-space inertia Λ⁻¹ = J M⁻¹ Jᵀ of k frames.

    It maps wrenches at the frames to the accelerations that they cause, frame after frame, angular
    first, each in its own axes, as in :func:`jacobian`. C-EFPA (Chignoli et al., section VIII): no
    mass matrix is formed, and the cost is linear in the depth of the tree. For more than eight
    frames kernels return factors of the matrix, which NumPy multiplies.

    Args:
        frames: Links' names, or (link, offset); a single one is k = 1. They may be on any bodies,
            rotors and linkages included, and several on one; on links fixed to the world they give
            zeros.
        method: "cluster", or another method of "efpa" in :func:`compile`.

    Returns:
        inverse: Λ⁻¹ (..., 6k, 6k).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.efpa(model, q, ["link2"]).shape
        (6, 6)
    """
    keys = frame_keys(frames)
    if not keys:
        return np.zeros((*as_array(q, model.nq, "q", "nq").shape[:-1], 0, 0))
    if method == "cluster" and len(keys) > MANY_FRAMES:
        return product(*run(model, "efpa_factors", {"q": q}, frames=keys, **options))
    return run_one(model, "efpa", {"q": q}, frames=keys, method=method, **options)


@documented
def impulse(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    restitution: ArrayLike = 0.0,
    normals: ArrayLike = UP,
    sticking: bool = True,
    unilateral: bool = False,
    friction: ArrayLike = 1.0,
    tolerance: float = 1e-10,
    method: Method = "cluster",
    **options: Unpack[Options],
) -> tuple[Array, Array]:
    """Velocities after an impact, and the impulses on the robot.

    Each point leaves with -restitution times its velocity along its normal. Positions do not
    change. v⁺ = v + M⁻¹ Jᵀ λ, with λ from the points' J M⁻¹ Jᵀ (C-EFPA). Redundant contacts (a
    rigid foot's fourth corner) share the impulse of least norm; contradictory ones are met in the
    least-squares sense. An impulse that pulls is of a contact that does not hold: leave it out.
    Energy is not gained with restitution 0, nor without friction with one restitution for all;
    sticking points that rebound can gain some (Kane's paradox of Newton's law).

    With ``unilateral`` contacts push and never pull, and stick or slip by Coulomb's law: Newton's
    law holds along the normals of points that approach, others may stay or leave. Energy is never
    gained: where friction between rebounding points would add some, they rebound less. Solved to
    1e-10 of the velocities, with a RuntimeWarning where not.

    Args:
        frames: The k points that touch something rigid at this instant: links, or (link, offset).
        restitution: Newton's coefficient () or (..., k), from 0 to 1.
        normals: Directions (3,) or (..., k, 3), in world axes.
        sticking: Points stop across the normal; without it they are free there, without friction.
        unilateral: Contacts push and never pull.
        friction: Coulomb's coefficient () or (..., k) of unilateral contacts, which must be finite
            (sticking without pulling has no solution, or several).
        method: "cluster", or one of the open trees of :func:`rnea`, "approximate" and
            "unconstrained".

    Returns:
        v: Velocities after the impact (..., nv).
        impulses: (..., k, 3) [N s] on the robot, in world axes.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> after, impulse = rm.impulse(model, q, [1.0], "link2", normals=(1.0, 0.0, 0.0))
        >>> after.shape
        (1,)
    """
    keys = frame_keys(frames)
    friction = as_friction(friction)
    check_tolerance(tolerance)
    unilateral, sticking = as_flag(unilateral, "unilateral"), as_flag(sticking, "sticking")
    before = as_array(v, model.nv, "v", "nv")
    if not keys:
        batch = as_array(q, model.nq, "q", "nq").shape[:-1]
        batch = np.broadcast_shapes(batch, before.shape[:-1])
        return np.broadcast_to(before, (*batch, model.nv)).copy(), np.zeros((*batch, 0, 3))
    if options.pop("check", False):
        check_arguments(model, {"q": q, "v": v}, parameters=options.get("parameters"))
    touch, j = _response(model, q, keys, method, **options)
    rates = np.matmul(j, before[..., None])[..., 0]
    if unilateral:
        law = (restitution, friction if sticking else 0.0, normals)
        return strike(touch, before, rates, *law)
    quick = options.get("backend", "compiled") == "compiled"
    return collide(touch, before, rates, restitution, normals, sticking, tolerance, quick)


@documented
def contact_aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    friction: ArrayLike = 1.0,
    normals: ArrayLike = UP,
    unilateral: bool = True,
    tolerance: float = 1e-10,
    **options: Unpack[ForceOptions],
) -> tuple[Array, Array]:
    """Forward dynamics with contacts: accelerations, and the forces on the points.

    Unilateral contacts obey Signorini's law on accelerations. Those at rest stick, or begin to
    slip, and those that slide are braked, by Coulomb's law. Forces on points that move away are
    zero. Where points approach what they touch (call :func:`impulse` first), and where no finite
    forces obey the laws (Painlevé), the result is not-a-number with a RuntimeWarning. Of several
    solutions it is the one of least forces, also with a warning.

    Args:
        frames: The k points that touch something rigid at rest: links, or (link, offset).
        friction: Coulomb's coefficient () or (..., k), finite for unilateral contacts.
        normals: Directions (3,) or (..., k, 3), in world axes, out of what is touched.
        unilateral: Contacts push and never pull. Without it contacts hold whatever it takes
            (``friction=inf`` says so too): the points do not accelerate, J a + J̇ v = 0, and
            redundant ones share the forces of least norm.
        tolerance: Of contacts that hold: eigenvalues of J M⁻¹ Jᵀ up to this share of the largest
            count as zero.

    Returns:
        a: Accelerations (..., nv) of the independent coordinates.
        forces: Forces (..., k, 3) [N] on the points, in world axes.

    Examples:
        >>> model = rm.robots.load("mini_cheetah")
        >>> q = model.neutral()
        >>> a, force = rm.contact_aba(model, q, np.zeros(18), np.zeros(18), ["FR_foot_contact"])
        >>> a.shape, force.shape
        ((18,), (1, 3))
    """
    keys = frame_keys(frames)
    friction = as_friction(friction)
    check_tolerance(tolerance)
    unilateral = as_flag(unilateral, "unilateral")
    if not keys:
        free = aba(model, q, v, tau, **options)
        return free, np.zeros((*free.shape[:-1], 0, 3))
    touch, free, rates, accelerations = _free_motion(model, q, v, tau, keys, **options)
    quick = options.get("backend", "compiled") == "compiled"
    if not unilateral:
        a, forces = held(touch, free, accelerations, tolerance, quick)
        return a, forces.reshape(*forces.shape[:-1], len(keys), 3)
    return pushed(touch, free, rates, accelerations, friction, normals, quick)


@documented
def contact_aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    frames: FrameLike | Sequence[FrameLike],
    *,
    tolerance: float = 1e-10,
    **options: Unpack[Options],
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Derivatives of :func:`contact_aba` with bilateral contacts (``unilateral=False``).

    q varies in the tangent space. From M ∂a = Jᵀ ∂f - ∂(rnea - Jᵀ f) and J ∂a = -∂(J a + J̇ v).
    With redundant contacts the derivatives of f are those of the least-norm forces at fixed J M⁻¹
    Jᵀ; those of a are exact. Where contacts contradict each other, and :func:`contact_aba` warns,
    derivatives mean nothing.

    Args:
        frames: The k points in contact: links, or (link, offset).

    Returns:
        a_q: ∂a/∂q (..., nv, nv).
        a_v: ∂a/∂v (..., nv, nv).
        a_tau: ∂a/∂tau (..., nv, nv).
        f_q: ∂f/∂q (..., 3k, nv), forces point after point.
        f_v: ∂f/∂v (..., 3k, nv).
        f_tau: ∂f/∂tau (..., 3k, nv).

    Examples:
        >>> inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        >>> link = f'<link name="ball"><inertial><mass value="1"/>{inertia}</inertial></link>'
        >>> ball = rm.load(f'<robot name="ball">{link}</robot>', floating_base=True)
        >>> q, zero = ball.neutral(), np.zeros(6)
        >>> under = ("ball", (0.0, 0.0, -0.1))
        >>> [x.shape for x in rm.dynamics.contact_aba_derivatives(ball, q, zero, zero, [under])]
        [(6, 6), (6, 6), (6, 6), (3, 6), (3, 6), (3, 6)]
    """
    keys = frame_keys(frames)
    if not keys or not model.nv:
        slopes_free = aba_derivatives(model, q, v, tau, **options)
        none = np.zeros((*slopes_free[0].shape[:-2], 3 * len(keys), model.nv))
        return (*slopes_free, none, none.copy(), none.copy())
    a, forces = contact_aba(
        model, q, v, tau, keys, unilateral=False, tolerance=tolerance, **options
    )
    flat = forces.reshape(*forces.shape[:-2], 3 * len(keys))
    arguments = {"q": q, "v": v, "a": a, "forces": flat}
    options.pop("check", None)
    parts = run(model, "contact_derivatives", arguments, frames=keys, **options)
    return slopes(parts, tolerance)


def _free_motion(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    keys: tuple[FrameKey, ...],
    **options: Unpack[ForceOptions],
) -> tuple[Touch, Array, Array, Array]:
    """The points; a without contact; the points' velocities and accelerations then."""
    arguments = {"q": q, "v": v, "tau": tau}
    if len(keys) <= MANY_FRAMES:
        free, inverse, columns, *motion = run(
            model, "contact_free", arguments, frames=keys, **options
        )
        return Touch(inverse, columns), free, *motion
    free = aba(model, q, v, tau, **options)
    still: Options = {"backend": options.get("backend", "compiled")}
    still["parameters"] = options.get("parameters")
    touch, j = _response(model, q, keys, "cluster", **still)
    rates, accelerations = (
        np.where(np.any(j != 0.0, axis=-1), x, 0.0)
        for x in run(model, "touching", {"q": q, "v": v, "a": free}, frames=keys, **still)
    )
    return touch, free, rates, accelerations


def _response(
    model: Model,
    q: ArrayLike,
    keys: tuple[FrameKey, ...],
    method: Method,
    **options: Unpack[Options],
) -> tuple[Touch, Array]:
    """The points and their J; if they are many, by the factors of J M⁻¹ Jᵀ.

    Rows of points that no motion moves are zero: what rounding leaves there would be divided by.
    """
    if method == "cluster" and len(keys) <= MANY_FRAMES:
        inverse, j, columns = run(model, "contact_response", {"q": q}, frames=keys, **options)
        return Touch(inverse, columns), j
    if method == "cluster":
        rows, p, j, mass = run(model, "contact_factors", {"q": q}, frames=keys, **options)
        inverse = product(rows, p)
    else:
        inverse, j, mass = run(model, "contact", {"q": q}, frames=keys, method=method, **options)
    points = np.max(np.abs(j.reshape(*j.shape[:-2], -1, 3 * j.shape[-1])), axis=-1, initial=0.0)
    moves = np.where(np.repeat(points <= ROUNDING, 3, axis=-1), 0.0, 1.0)
    inverse = moves[..., None] * inverse * moves[..., None, :]
    j = moves[..., None] * j
    return Touch(inverse, solved(mass, np.swapaxes(j, -1, -2))), j
