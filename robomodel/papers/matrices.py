"""Spatial algebra as matrices with leading batch axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import FramePlacement
from robomodel.model.model import Model
from robomodel.scalars import Scalar, stack
from robomodel.spatial import UNIT_MOTIONS, Transform


def solved(matrix: Array, right: Array) -> Array:
    """Matrix⁻¹ · right, a matrix (..., n, k)."""
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def pseudoinverse(matrix: Array, rounding: float = 1e-15) -> Array:
    """The Moore-Penrose inverse; singular values below ``rounding`` (relative) are zero."""
    return np.asarray(np.linalg.pinv(matrix, rcond=rounding), dtype=np.float64)


def transposed(matrix: Array) -> Array:
    """The transpose of the last two axes."""
    return np.swapaxes(matrix, -1, -2)


def times(matrix: Array, vector: Array) -> Array:
    """Matrix · vector, both with leading batch axes."""
    product: Array = (matrix @ vector[..., None])[..., 0]
    return product


def from_rows(
    rows: Sequence[Sequence[Scalar]], shape: tuple[int, int], batch: tuple[int, ...] = ()
) -> Array:
    """Scalars by rows as an array (*batch, *shape)."""
    return stack([x for row in rows for x in row], batch).reshape(*batch, *shape)


def motion_matrix(x: Transform, batch: tuple[int, ...] = ()) -> Array:
    """X (*batch, 6, 6): motions of the parent frame to motions of the child's."""
    columns = [x.to_child(motion).entries() for motion in UNIT_MOTIONS]
    return from_rows(list(zip(*columns, strict=True)), (6, 6), batch)


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Matrices (..., r, c) along the diagonal."""
    batch = np.broadcast_shapes(*(block.shape[:-2] for block in blocks))
    result = np.zeros((*batch, *(sum(block.shape[axis] for block in blocks) for axis in (-2, -1))))
    r = c = 0
    for block in blocks:
        height, width = block.shape[-2:]
        result[..., r : r + height, c : c + width] = block
        r, c = r + height, c + width
    return result


def complement(matrix: Array) -> Array:
    """Orthonormal columns (..., n, n - m) orthogonal to those of a matrix (..., n, m), rank m."""
    left, _, _ = np.linalg.svd(matrix, full_matrices=True)
    result: Array = left[..., :, matrix.shape[-1] :]
    return result


def inverse_motion(x: Array) -> Array:
    """X⁻¹ (..., 6, 6) of a motion transform: its rotations transposed, block by block."""
    result = np.zeros_like(x)
    for rows in (slice(0, 3), slice(3, 6)):
        for columns in (slice(0, 3), slice(3, 6)):
            result[..., rows, columns] = transposed(x[..., rows, columns])
    return result


def cross_matrix(v: Array) -> Array:
    """v× (..., 6, 6) on motions (002, (5)); on forces, v×* = -(v×)ᵀ."""
    w, u = v[..., :3], v[..., 3:]
    result = np.zeros((*v.shape, 6))
    for block, vector in ((slice(0, 3), w), (slice(3, 6), w)):
        result[..., block, block] = _skew(vector)
    result[..., 3:, :3] = _skew(u)
    return result


def cross_matrices(v: Array) -> Array:
    """The cross products of stacked motions (..., 6n) on stacked motions, block diagonal."""
    count = v.shape[-1] // 6
    return block_diagonal([cross_matrix(v[..., 6 * n : 6 * n + 6]) for n in range(count)])


def frame_motion(model: Model, at: FramePlacement) -> Array:
    """X (6, 6) from the frame of a body's link to a frame that is fixed to the body."""
    link = model.frame(model.nodes[at.body].name).pose
    return motion_matrix(at.pose) @ inverse_motion(motion_matrix(link))


def _skew(u: Array) -> Array:
    result = np.zeros((*u.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        result[..., j, i], result[..., i, j] = u[..., k], -u[..., k]
    return result
