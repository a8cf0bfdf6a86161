"""Contact: what points of a robot feel and do when they touch something rigid."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration, Matrix
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.efpa import mobility, mobility_factors
from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import ZERO, Wrench


class Touch(NamedTuple):
    """Points in contact as arrays: J M⁻¹ Jᵀ (..., 3k, 3k), J (..., 3k, nv) and M (..., nv, nv)."""

    inverse: Array
    jacobian: Array
    mass: Array

    @property
    def points(self) -> int:
        """Their number k."""
        return int(self.jacobian.shape[-2] // 3)


def contact(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Matrix, Matrix, Matrix]:
    """Λ⁻¹ (3k by 3k) and J (3k by nv) of k points' velocities in world axes, and M (nv by nv).

    Scalars of any kind.
    """
    state, forces, jacobian = _touched(model, q, places)
    return mobility(model, state, forces), jacobian, crba(model, q)


def contact_factors(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Matrix, list[Scalar], Matrix, Matrix]:
    """R and p with Λ⁻¹ = R diag(p) Rᵀ, J and M, as of :func:`contact`."""
    state, forces, jacobian = _touched(model, q, places)
    return *mobility_factors(model, state, forces), jacobian, crba(model, q)


def _touched(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> tuple[Configuration, list[tuple[int, Wrench]], Matrix]:
    """Unit forces along the world's axes at each point, and what they do to the freedoms."""
    state = Configuration(model, q, {at.body for at in places})
    forces = point_forces(model, q, places)
    return state, forces, [frames.joint_forces(model, state, body, x) for body, x in forces]


def point_forces(
    model: Model, q: Vector, places: Sequence[frames.Place]
) -> list[tuple[int, Wrench]]:
    """Unit forces along the world's axes at each point, on its body."""
    return [
        (at.body, at.pose.to_parent(Wrench(ZERO, axis)))
        for at in places
        for axis in frames.pose(model, q, at)[0]
    ]


def collide(
    touch: Touch,
    v: Array,
    restitution: ArrayLike,
    normals: ArrayLike,
    sticking: bool,
    tolerance: float,
) -> tuple[Array, Array]:
    """(v⁺, impulses (..., k, 3)) from what :func:`contact` gives; the rest as in ``rm.impulse``.

    Newton's law for the points' velocities c = J v: c⁺ = -e c⁻ along the normals, zero across.
    """
    (inverse, jacobian, mass), points = touch, touch.points
    normal, bounce = checked(normals, restitution, points)
    before = np.einsum("...ij,...j->...i", jacobian, v)
    before = before.reshape(*before.shape[:-1], points, 3)
    approach = np.sum(normal * before, axis=-1)
    if sticking:
        change = -before - (bounce * approach)[..., None] * normal
        impulse = least(inverse, change.reshape(*change.shape[:-2], 3 * points), tolerance)
        impulse = impulse.reshape(*impulse.shape[:-1], points, 3)
    else:
        across = np.eye(points)[:, :, None] * normal[..., None, :]  # (..., k, k, 3)
        across = across.reshape(*across.shape[:-2], 3 * points)
        along = across @ inverse @ np.swapaxes(across, -1, -2)
        impulse = least(along, -(1.0 + bounce) * approach, tolerance)[..., None] * normal
    flat = impulse.reshape(*impulse.shape[:-2], 3 * points)
    forces = np.einsum("...ij,...i->...j", jacobian, flat)
    return v + solved(mass, forces[..., None])[..., 0], impulse


def checked(normals: ArrayLike, restitution: ArrayLike, points: int) -> tuple[Array, Array]:
    """Unit normals (..., k, 3) and restitutions (..., k)."""
    normal = as_numbers(normals, "normals")
    if normal.shape[-1:] != (3,) or (normal.ndim > 1 and normal.shape[-2] not in (1, points)):
        raise ValueError(f"normals need shape (3,) or (..., {points}, 3), got {normal.shape}")
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    if not np.all((length > 0.0) & np.isfinite(length)):
        raise ValueError("normals need a direction; one is zero, or not a finite number")
    bounce = as_numbers(restitution, "restitution")
    if not np.all((bounce >= 0.0) & (bounce <= 1.0)):
        raise ValueError("restitution is from 0 (no rebound) to 1 (no loss)")
    if bounce.ndim and bounce.shape[-1] not in (1, points):
        raise ValueError(f"restitution needs shape () or (..., {points}), got {bounce.shape}")
    return np.broadcast_to(normal / length, (*normal.shape[:-2], points, 3)), np.broadcast_to(
        bounce, (*bounce.shape[:-1], points)
    )


def least(matrix: Array, right: Array, tolerance: float) -> Array:
    """The shortest least-squares solution for a symmetric positive semidefinite matrix.

    Eigenvalues up to ``tolerance`` of the largest are zero. Not-a-number where the matrix is.
    """
    if not (isinstance(tolerance, Real) and 0.0 <= tolerance < 1.0):
        raise ValueError(f"tolerance must be a number from 0 to below 1, got {tolerance!r}")
    regular = np.asarray(np.isfinite(matrix).all(axis=(-1, -2), keepdims=True))
    values, vectors = np.linalg.eigh(np.where(regular, matrix, 0.0))
    kept = values > tolerance * values[..., -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    inverse = np.where(regular[..., 0], inverse, np.nan)
    along = inverse * np.einsum("...ij,...i->...j", vectors, right)
    return np.asarray(np.einsum("...ij,...j->...i", vectors, along))


def solved(mass: Array, right: Array) -> Array:
    """M⁻¹ (..., n, m) right; not-a-number where M is singular or no number, as of aba."""
    unit = np.eye(mass.shape[-1])
    regular = np.asarray(np.isfinite(mass).all(axis=(-1, -2), keepdims=True))
    try:
        found = np.linalg.solve(np.where(regular, mass, unit), right)
    except np.linalg.LinAlgError:  # of the whole batch, where one matrix is singular
        regular &= np.linalg.slogdet(np.where(regular, mass, 0.0))[0][..., None, None] != 0.0
        found = np.linalg.solve(np.where(regular, mass, unit), right)
    return np.where(regular, found, np.nan)
