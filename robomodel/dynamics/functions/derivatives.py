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
