"""Derivatives of inverse and forward dynamics, of first and second order."""

from __future__ import annotations

from numpy.typing import ArrayLike

from robomodel.dynamics.calling import Backend, Wrenches
from robomodel.dynamics.calling import run as _run
from robomodel.model.joints import Array
from robomodel.model.model import Model


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
    """Derivatives of inverse dynamics by positions, velocities and accelerations.

    Positions vary in the tangent space: column j is the change along ``integrate(q, ε e_j)``, with
    loops closed. Wrenches stay as they are in their links' axes.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.
        f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
            axes.
        passive: Count the file's springs and damping (:func:`passive_force`) among the forces.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        dq: ∂tau/∂q (..., nv, nv).
        dv: ∂tau/∂v (..., nv, nv).
        M: ∂tau/∂a (..., nv, nv), the mass matrix.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments = {"q": q, "v": v, "a": a}
    dq, dv, mass = _run(
        model, "rnea_derivatives", arguments, backend, f_ext=f_ext, passive=passive, check=check
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
    """Derivatives of forward dynamics by positions, velocities and forces.

    q varies as in :func:`rnea_derivatives`. Carpentier and Mansard, RSS 2018: ∂FD = -M⁻¹ ∂ID.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        tau: Forces (..., nv) on the independent coordinates.
        f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
            axes.
        passive: Count the file's springs and damping (:func:`passive_force`) among the forces.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        dq: ∂a/∂q (..., nv, nv).
        dv: ∂a/∂v (..., nv, nv).
        inverse: M⁻¹ (..., nv, nv), which is also ∂a/∂tau.

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
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

    φ is linear in a, and ∂²φ/∂a∂v is zero. By q they are those of φ at ``integrate(q, δ)`` by δ,
    with loops closed; wrenches stay as they are in their links' axes.

    Args:
        model: The robot.
        q: Configuration (..., nq).
        v: Velocities (..., nv) of the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.
        w: Multipliers (..., nv), or a row of the identity for the second derivatives of one force.
        f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
            axes.
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.

    Returns:
        qq: ∂²φ/∂q∂q (..., nv, nv), the first-named along the rows.
        vv: ∂²φ/∂v∂v (..., nv, nv).
        qv: ∂²φ/∂q∂v (..., nv, nv).
        aq: ∂²φ/∂a∂q (..., nv, nv).

    Raises:
        ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
        UnknownNameError: A link that is not known.
    """
    arguments = {"q": q, "v": v, "a": a, "w": w}
    qq, vv, qv, aq = _run(
        model, "rnea_hessian_product", arguments, backend, f_ext=f_ext, check=check
    )
    return qq, vv, qv, aq
