"""Derivatives of inverse and forward dynamics, of first and second order."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from robomodel.dynamics.declaration import ForceOptions, WrenchOptions, algorithm
from robomodel.dynamics.recursions.derivatives import aba_derivatives as aba_slopes
from robomodel.dynamics.recursions.derivatives import rnea_derivatives as rnea_slopes
from robomodel.dynamics.recursions.hessian import rnea_hessian_product as hessian_product
from robomodel.dynamics.recursions.passive import aba_derivatives_passive, rnea_derivatives_passive
from robomodel.model.joints import Array
from robomodel.model.model import Model

__all__ = ["aba_derivatives", "rnea_derivatives", "rnea_hessian_product"]


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
