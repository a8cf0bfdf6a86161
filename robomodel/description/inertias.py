"""Inertias of links about bodies' origins, and what follows from them: scalars of any kind.

Only plain floats are rounded to structural zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from robomodel.description import AT_ORIGIN, Inertial, Pose, Rows3, Vec3
from robomodel.description.poses import compose, rows3, vec
from robomodel.errors import NOWHERE, Source
from robomodel.scalars import Scalar, held, is_number, is_zero, value_of
from robomodel.spatial import NO_INERTIA, ZERO, Mat, RigidInertia, Transform, factor, symmetric
from robomodel.spatial.vectors import as_matrix
from robomodel.tolerances import ROUNDING


def placed(inertial: Inertial, pose: Pose) -> RigidInertia:
    """A link's inertia about the origin and in the axes of the body that holds it at ``pose``."""
    where = compose(pose, inertial.origin)
    about_com = RigidInertia(inertial.mass, ZERO, symmetric(*inertial.inertia))
    return about_com.in_parent(Transform(factor(where.rotation), where.xyz))


def inertial_of(inertia: RigidInertia, source: Source = NOWHERE) -> Inertial:
    """The inertial, in the body's axes, that is placed as this inertia."""
    com, ((xx, xy, xz), (_, yy, yz), (_, _, zz)) = centred(inertia)
    moments = float(xx), float(xy), float(xz), float(yy), float(yz), float(zz)
    return Inertial(value_of(inertia.mass), moments, Pose(com), source)


def scaled(inertial: Inertial, factor: float) -> Inertial:
    """The inertial of a body with ``factor`` times the density."""
    xx, xy, xz, yy, yz, zz = (factor * moment for moment in inertial.inertia)
    return replace(inertial, mass=factor * inertial.mass, inertia=(xx, xy, xz, yy, yz, zz))


def in_outer_frame(inertia: RigidInertia, pose: Pose) -> RigidInertia:
    """The inertia about the origin and in the axes of a frame in which its frame is at a pose.

    Rounding beside its largest numbers becomes zero.
    """
    if pose == AT_ORIGIN or inertia is NO_INERTIA:
        return inertia
    result = inertia.in_parent(Transform(factor(pose.rotation), pose.xyz))
    h = _rounded(result.h, inertia.h)
    before, after = ([x for row in each.inertia for x in row] for each in (inertia, result))
    entries = _rounded(after, before)
    rows = (entries[:3], entries[3:6], entries[6:])
    return RigidInertia(result.mass, vec(h), rows3(rows))


def _rounded(after: Sequence[Scalar], before: Sequence[Scalar]) -> list[Scalar]:
    """Transformed numbers, with zeros for rounding errors relative to the largest."""
    small = ROUNDING * max((abs(x) for x in (*before, *after) if is_number(x)), default=0.0)
    return [0.0 if is_number(x) and abs(x) <= small else x for x in after]


def centred(inertia: RigidInertia) -> tuple[Vec3, Rows3]:
    """Centre of mass and inertia about it."""
    if inertia.mass == 0.0:
        return (0.0, 0.0, 0.0), rows_of(inertia.inertia)
    x, y, z = (held(h / inertia.mass) for h in inertia.h)
    h, c = inertia.h, (x, y, z)
    rows = [
        [
            inertia.inertia[i][j]
            - ((sum(a * b for a, b in zip(h, c, strict=True)) if i == j else 0.0) - h[i] * c[j])
            for j in range(3)
        ]
        for i in range(3)
    ]
    return c, rows_of(as_matrix(rows))


def rows_of(matrix: Mat) -> Rows3:
    """A matrix as a description holds it: it stays what it is (:func:`robomodel.scalars.held`)."""
    return cast(Rows3, matrix)


def axisymmetric(inertia: RigidInertia, k: int) -> bool:
    """True if rotation about axis k does not change the inertia."""
    i, j = (k + 1) % 3, (k + 2) % 3
    m, h = inertia.inertia, inertia.h
    across = (m[i][j], m[i][k], m[j][k], h[i], h[j])
    if not all(map(is_number, (*across, m[i][i], m[j][j], m[k][k], inertia.mass))):
        same = m[i][i] is m[j][j] or (is_number(m[i][i]) and m[i][i] == m[j][j])
        return same and all(map(is_zero, across))
    size = abs(value_of(m[0][0])) + abs(value_of(m[1][1])) + abs(value_of(m[2][2]))
    unlike = (m[i][i] - m[j][j], m[i][j], m[i][k], m[j][k])
    off = max(abs(value_of(x)) for x in unlike)
    away = max(abs(value_of(h[i])), abs(value_of(h[j])))
    return bool(off <= ROUNDING * size and away <= ROUNDING * value_of(inertia.mass))
