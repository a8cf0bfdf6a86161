"""Spatial vector algebra over scalars of any kind, with structure instead of 6x6 matrices.

Conventions: spatial vectors are angular first. A :class:`Transform` places a child frame in its
parent: x_parent = R x_child + p. R is a sequence of elementary rotations, so that a single-axis
rotation costs four multiplications on a vector and eight on a symmetric matrix.

Accelerations are *conventional*: the linear part is the acceleration of the body-fixed origin, not
Featherstone's spatial acceleration (they differ by ω x v). Linear velocities of bodies then never
enter the dynamics: the motion of a rigid body's points is a + U r with U = [α]x + [ω]x², and its
Newton–Euler equations need only a and U.
"""

from robomodel.spatial.inertias import NO_INERTIA, ArticulatedInertia, RigidInertia
from robomodel.spatial.rotations import (
    AxisRotation,
    MatrixRotation,
    Rotation,
    SignedPermutation,
    about_axis,
    factor,
    from_quaternion,
)
from robomodel.spatial.transforms import (
    NO_MOTION,
    NO_WRENCH,
    UNIT_MOTIONS,
    UNIT_WRENCHES,
    Motion,
    Transform,
    Wrench,
    combine,
)
from robomodel.spatial.vectors import (
    UNIT,
    ZERO,
    Mat,
    Vec,
    apply,
    cross,
    inner,
    matmul,
    minus,
    plus,
    scale,
    skew,
    skew_squared,
    sum_matrices,
    sum_symmetric,
    symmetric,
    transpose,
)

__all__ = [
    "NO_INERTIA",
    "NO_MOTION",
    "NO_WRENCH",
    "UNIT",
    "UNIT_MOTIONS",
    "UNIT_WRENCHES",
    "ZERO",
    "ArticulatedInertia",
    "AxisRotation",
    "Mat",
    "MatrixRotation",
    "Motion",
    "RigidInertia",
    "Rotation",
    "SignedPermutation",
    "Transform",
    "Vec",
    "Wrench",
    "about_axis",
    "apply",
    "combine",
    "cross",
    "factor",
    "from_quaternion",
    "inner",
    "matmul",
    "minus",
    "plus",
    "scale",
    "skew",
    "skew_squared",
    "sum_matrices",
    "sum_symmetric",
    "symmetric",
    "transpose",
]
