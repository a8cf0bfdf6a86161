"""Poses of frames, axes and directions, and poses of links at given joint positions.

For descriptions; :mod:`robomodel.spatial` has the algebra of motions and forces. Plain floats,
except that poses may contain scalars of any kind where they are composed. Lengths in metres,
angles in radians, rotations as rows of a matrix.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    ONE_DOF,
    Anchor,
    Description,
    Joint,
    Loop,
    Pose,
    Rows3,
    Vec3,
)
from robomodel.scalars import Scalar, as_number, is_number
from robomodel.spatial import apply, cross, matmul, minus, plus, transpose
from robomodel.tolerances import ROUNDING

Positions = Mapping[str, Sequence[float]]
"""Joint positions by name; missing ones are zero."""

ORIGIN: Vec3 = (0.0, 0.0, 0.0)


def vec(values: Iterable[Scalar]) -> Vec3:
    """Three numbers, or traced scalars in their place, without signs of zeros."""
    x, y, z = (as_number(value) + 0.0 for value in values)
    return x, y, z


def rows3(rows: Iterable[Iterable[Scalar]]) -> Rows3:
    """The rows of a rotation, without signs of zeros."""
    a, b, c = map(vec, rows)
    return a, b, c


# --- poses ----------------------------------------------------------------------------------------


def compose(outer: Pose, inner: Pose) -> Pose:
    """The pose ``inner`` in a frame with the pose ``outer``, expressed in the outermost frame."""
    if outer is AT_ORIGIN or outer == AT_ORIGIN:
        return inner
    return Pose(
        plus(apply(outer.rotation, inner.xyz), outer.xyz), matmul(outer.rotation, inner.rotation)
    )


def inverse(pose: Pose) -> Pose:
    """The pose of the outer frame in the inner one."""
    back = transpose(pose.rotation)
    x, y, z = apply(back, pose.xyz)
    return Pose((-x, -y, -z), back)


def relative(one: Pose, other: Pose) -> Pose:
    """The pose of ``other`` in ``one``, from their poses in a third frame."""
    return compose(inverse(one), other)


def scaled(axis: Vec3, by: float) -> Vec3:
    """A vector times a number."""
    x, y, z = axis
    return by * x, by * y, by * z


def along(pose: Pose, axis: Vec3, distance: float) -> Pose:
    """The pose moved by a distance along an axis of its frame."""
    return Pose(plus(pose.xyz, apply(pose.rotation, scaled(axis, distance))))


def tidy(pose: Pose) -> Pose:
    """The pose with entries that are 0 or ±1 up to rounding set to these values.

    Computed poses have rounding errors anyway; exact zeros and ones give sparser programs.
    """
    x, y, z = pose.xyz
    small = ROUNDING * max(1.0, abs(x), abs(y), abs(z))
    rotation = rows3(map(snapped, row) for row in pose.rotation)
    xyz = vec(snapped(each, small) for each in pose.xyz)
    return Pose(xyz, IDENTITY if rotation == IDENTITY else rotation)


def snapped(value: float, small: float = ROUNDING) -> float:
    """The number, or -1, 0 or 1 if it is within ``small`` of one of these."""
    if not is_number(value):
        return value
    if abs(value) <= small:
        return 0.0
    nearest = 1.0 if value > 0.0 else -1.0
    return nearest if abs(value - nearest) <= small else value


# --- axes -----------------------------------------------------------------------------------------


def unit(axis: Vec3) -> Vec3:
    """The axis with length 1."""
    size = math.hypot(*axis)
    x, y, z = axis
    return x / size, y / size, z / size


def turned(rotation: Rows3, axis: Vec3) -> Vec3:
    """The axis in the coordinates that the rotation leads to; written zeros stay zeros."""
    return axis if rotation == IDENTITY else vec(apply(rotation, axis))


def off_axis(point: Vec3, axis: Vec3) -> float:
    """Distance [m] of a point from the axis through the origin."""
    return math.hypot(*cross(point, axis)) / math.hypot(*axis)


def cosine(one: Vec3, other: Vec3) -> float:
    """The cosine of the angle between two directions."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))


def sine(one: Vec3, other: Vec3) -> float:
    """The magnitude of the sine of the angle between two directions."""
    return off_axis(one, other) / math.hypot(*one)


# --- rotations ------------------------------------------------------------------------------------


def rotation_of_quaternion(x: float, y: float, z: float, w: float) -> Rows3:
    """The rotation of a quaternion, which need not be of norm 1."""
    norm = math.hypot(x, y, z, w)
    x, y, z, w = (c / norm for c in (x, y, z, w))
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )


def quaternion_of_rotation(rotation: Rows3) -> tuple[float, float, float, float]:
    """The quaternion w, x, y, z of a rotation, from its largest component."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    w2, x2, y2, z2 = 1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz
    largest = max(w2, x2, y2, z2)
    if largest == w2:
        quaternion = (w2, zy - yz, xz - zx, yx - xy)
    elif largest == x2:
        quaternion = (zy - yz, x2, xy + yx, xz + zx)
    elif largest == y2:
        quaternion = (xz - zx, xy + yx, y2, yz + zy)
    else:
        quaternion = (yx - xy, xz + zx, yz + zy, z2)
    size = math.hypot(*quaternion)
    w, x, y, z = (component / size + 0.0 for component in quaternion)
    return w, x, y, z


def about(axis: Vec3, angle: float) -> Rows3:
    """The rotation by an angle about an axis of length 1; exact zeros and ones stay exact."""
    x, y, z = axis
    s, c = math.sin(angle), math.cos(angle)
    v = 2.0 * math.sin(angle / 2.0) ** 2
    return (
        (x * x + c * (1.0 - x * x), v * x * y - s * z, v * x * z + s * y),
        (v * x * y + s * z, y * y + c * (1.0 - y * y), v * y * z - s * x),
        (v * x * z - s * y, v * y * z + s * x, z * z + c * (1.0 - z * z)),
    )


def align(axis: Vec3) -> tuple[int, Rows3]:
    """The coordinate axis k nearest to a unit axis, and the rotation A with A e_k = axis.

    A is the identity for a positive coordinate axis, a half turn for a negative one, else the
    smallest rotation from there: so what is aligned in a file stays aligned.
    """
    k = max(range(3), key=lambda n: (abs(axis[n]), -n))
    i, j = (k + 1) % 3, (k + 2) % 3
    negative = axis[k] < 0.0
    flip = [1.0, 1.0, 1.0]
    if negative:
        flip[j] = flip[k] = -1.0
    if axis[i] == axis[j] == 0.0:
        if not negative:
            return k, IDENTITY
        return k, rows3([flip[r] if r == c else 0.0 for c in range(3)] for r in range(3))
    w = cross(vec(flip[k] if n == k else 0.0 for n in range(3)), axis)
    near = abs(axis[k])
    # R = c 1 + [w]x + w wᵀ/(1 + c), c the cosine
    rotation = [[w[r] * w[c] / (1.0 + near) for c in range(3)] for r in range(3)]
    for r in range(3):
        a, b = (r + 1) % 3, (r + 2) % 3
        rotation[r][r] += near
        rotation[b][a] += w[r]
        rotation[a][b] -= w[r]
    return k, rows3([rotation[r][c] * flip[c] for c in range(3)] for r in range(3))


# --- where joints take links ----------------------------------------------------------------------


def displacement(kind: str, axis: Vec3, position: Sequence[float], pitch: float = 0.0) -> Pose:
    """The displacement of a joint; ball joints by x, y, z, w, planar ones by x, y and an angle.

    x and y are along the axes after the coordinate axis that is nearest to a planar joint's.
    """
    if kind == "floating":
        x, y, z = position[:3]
        return Pose((x, y, z), displacement("spherical", axis, position[3:]).rotation)
    if kind == "spherical":
        x, y, z, w = position
        return Pose(rotation=rotation_of_quaternion(x, y, z, w))
    if kind == "planar":
        x, y, angle = position
        k, aligned = align(unit(axis))
        columns = transpose(aligned)
        way = plus(scaled(columns[(k + 1) % 3], x), scaled(columns[(k + 2) % 3], y))
        return Pose(way, about(columns[k], angle))
    (by,), axis = position, unit(axis)
    if kind == "prismatic":
        return Pose(scaled(axis, by))
    return Pose(scaled(axis, pitch * by) if pitch else ORIGIN, about(axis, by))


def standing(joint: Joint, positions: Positions) -> Pose:
    """The pose of the child in the parent."""
    if joint.name not in positions:
        return joint.origin
    moved = displacement(joint.type, joint.axis, positions[joint.name], joint.pitch)
    return compose(joint.origin, moved)


def line(above: Mapping[str, Joint], link: str) -> list[Joint]:
    """The joints from the root down to a link; ``above`` has joints by the links they move."""
    joints = []
    while (joint := above.get(link)) is not None:
        joints.append(joint)
        link = joint.parent
    return joints[::-1]


def branches(above: Mapping[str, Joint], one: str, other: str) -> tuple[list[Joint], list[Joint]]:
    """The joints from the common ancestor of two links down to each, as of :func:`line`."""
    lines = line(above, one), line(above, other)
    pairs = zip(*lines, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
    return lines[0][shared:], lines[1][shared:]


def second_axis(loop: Loop) -> Vec3:
    """A direction of the second axis of a universal loop, in the successor's constraint frame.

    By default that is the coordinate axis after the first's largest component, made perpendicular
    to the first; one of the file stays as it is, since the two frames may be turned at closure.
    """
    if loop.axis2 is not None:
        return loop.axis2
    first = unit(loop.axis)
    k = max(range(3), key=lambda n: (abs(first[n]), -n))
    along_first = scaled(first, first[(k + 1) % 3])
    return minus(IDENTITY[(k + 1) % 3], along_first)


def placed(anchor: Anchor, poses: Mapping[str, Pose]) -> Pose:
    """The pose of an anchor, from the poses of links."""
    return compose(poses[anchor.link], anchor.origin)


def distance(one: Anchor, other: Anchor, poses: Mapping[str, Pose]) -> float:
    """Distance of two anchors [m]."""
    return math.dist(placed(one, poses).xyz, placed(other, poses).xyz)


def initial_positions(joints: Sequence[Joint]) -> Positions:
    """The initial positions of joints of one freedom, and of floating ones, that have one."""
    hinges = {j.name: (j.initial,) for j in joints if j.initial and j.type in ONE_DOF}
    free = {j.name: floating_position(j.initial_pose) for j in joints
            if j.initial_pose != AT_ORIGIN}  # fmt: skip
    return hinges | free


def floating_position(pose: Pose) -> tuple[float, ...]:
    """The position of a floating joint at a pose: x, y, z, and the quaternion x, y, z, w."""
    w, x, y, z = quaternion_of_rotation(pose.rotation)
    return (*pose.xyz, x, y, z, w)


def link_poses(description: Description, positions: Positions | None = None) -> dict[str, Pose]:
    """The pose of every link in the root link, which is the one that no joint moves."""
    below: dict[str, list[Joint]] = defaultdict(list)
    for joint in description.joints:
        below[joint.parent].append(joint)
    moved = {joint.child for joint in description.joints}
    stack = [link.name for link in description.links if link.name not in moved]
    poses = dict.fromkeys(stack, AT_ORIGIN)
    while stack:
        for joint in below[name := stack.pop()]:
            if joint.child not in poses:  # two joints to one link are refused elsewhere
                poses[joint.child] = compose(poses[name], standing(joint, positions or {}))
                stack.append(joint.child)
    return poses
