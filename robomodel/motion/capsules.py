"""Contact between spheres and capsules in closed form, over scalars of any kind, without branches.

A sphere is the points within a radius of a point, a capsule those within a radius of a segment.
Nearest points of segments: Ericson, *Real-time collision detection*, 5.1.9, with the middle of the
common part where segments are parallel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from robomodel.scalars import Scalar, add, div, maximum, minimum, mul, neg, select, sqrt, sub
from robomodel.spatial import Mat, Vec, apply, cross, inner, minus, plus, scale

PARALLEL = 1e-10  # squared sine below which segments count as parallel
MEETING = 1e-24  # m²: squared distance of segments that meet

Proximity: TypeAlias = tuple[Scalar, Vec, Vec]
"""Gap, normal (a unit vector that pushes the first shape) and point, in world axes."""


@dataclass(frozen=True, slots=True)
class Round:
    """A sphere or a capsule on a link.

    Attributes:
        link: The link's name.
        ends: The centre, or the ends of the segment, in the link's axes [m].
        radius: [m].
    """

    link: str
    ends: tuple[tuple[float, float, float], ...]
    radius: float


@dataclass(frozen=True, slots=True)
class RoundPair:
    """Two spheres or capsules that may touch.

    Attributes:
        first: Is pushed along the normal.
        second: Is pushed the opposite way.
        friction: Coulomb's coefficient between them.
        restitution: Newton's between them.
    """

    first: Round
    second: Round
    friction: float
    restitution: float

    @property
    def links(self) -> tuple[str, str]:
        """Both links."""
        return self.first.link, self.second.link

    @property
    def count(self) -> int:
        """Number of contacts that :func:`round_contacts` gives."""
        return 3 if len(self.first.ends) == len(self.second.ends) == 2 else 1


def round_contacts(
    first: Round, second: Round, pose: tuple[Mat, Vec], other_pose: tuple[Mat, Vec]
) -> list[Proximity]:
    """Gaps, normals and points of contact between two spheres or capsules.

    Args:
        first: Is pushed along the normals.
        second: Is pushed the opposite way.
        pose: Rotation (rows) and origin of the first one's link in the world.
        other_pose: The same of the second one's.

    Returns:
        contacts: The nearest points; between two capsules further two, where the ends of the part
            that lies beside the other are, so that parallel capsules do not tip over. Each is a
            condition of its own: none of the gaps may close. A point is midway between the
            surfaces. Where the centres meet there is no direction: the normal is perpendicular to
            both segments, or upwards for spheres.
    """
    a, b = _ends(first, pose), _ends(second, other_pose)
    pairs = [nearest_points(a, b)]
    if len(a) == len(b) == 2:
        pairs += [(x := _on_segment(end, a), _on_segment(x, b)) for end in b]
    away = _perpendicular(a, b)
    return [_between(x, y, first.radius, second.radius, away) for x, y in pairs]


def nearest_points(a: tuple[Vec, ...], b: tuple[Vec, ...]) -> tuple[Vec, Vec]:
    """The nearest points of two segments, or points where they have one end."""
    if len(a) == 1:
        return a[0], _on_segment(a[0], b)
    if len(b) == 1:
        return _on_segment(b[0], a), b[0]
    along, across, apart = minus(a[1], a[0]), minus(b[1], b[0]), minus(a[0], b[0])
    aa, bb, ab = inner(along, along), inner(across, across), inner(along, across)
    ar, br = inner(along, apart), inner(across, apart)
    # the middle of the part of a that lies beside b
    from_ends = div(neg(ar), aa), div(sub(ab, ar), aa)
    low, high = (
        maximum(minimum(*from_ends), 0.0),
        minimum(maximum(*from_ends), 1.0),
    )
    middle = mul(0.5, add(low, high))
    square = sub(mul(aa, bb), mul(ab, ab))
    parallel = sub(square, mul(PARALLEL, mul(aa, bb)))  # negative where they are
    crossing = div(sub(mul(ab, br), mul(ar, bb)), select(parallel, mul(aa, bb), square))
    s = _share(select(parallel, middle, crossing))
    t = _share(div(add(mul(ab, s), br), bb))
    s = select(parallel, s, _share(div(sub(mul(ab, t), ar), aa)))
    return plus(a[0], scale(s, along)), plus(b[0], scale(t, across))


def _ends(shape: Round, pose: tuple[Mat, Vec]) -> tuple[Vec, ...]:
    rotation, origin = pose
    return tuple(plus(apply(rotation, end), origin) for end in shape.ends)


def _on_segment(x: Vec, ends: tuple[Vec, ...]) -> Vec:
    """The point of a segment that is nearest to x."""
    if len(ends) == 1:
        return ends[0]
    along = minus(ends[1], ends[0])
    t = _share(div(inner(minus(x, ends[0]), along), inner(along, along)))
    return plus(ends[0], scale(t, along))


def _share(x: Scalar) -> Scalar:
    """x, from 0 to 1."""
    return minimum(maximum(x, 0.0), 1.0)


def _between(x: Vec, y: Vec, radius: float, other: float, away: Vec) -> Proximity:
    """The contact of two spheres about x and y; ``away`` is the normal where these meet."""
    apart = minus(x, y)
    square = inner(apart, apart)
    meets = sub(square, MEETING)  # negative where they do
    distance = sqrt(maximum(square, MEETING))
    n: Vec = (
        select(meets, away[0], div(apart[0], distance)),
        select(meets, away[1], div(apart[1], distance)),
        select(meets, away[2], div(apart[2], distance)),
    )
    gap = sub(select(meets, 0.0, distance), radius + other)
    return gap, n, minus(x, scale(add(radius, mul(0.5, gap)), n))


def _perpendicular(a: tuple[Vec, ...], b: tuple[Vec, ...]) -> Vec:
    """A unit vector that is perpendicular to both segments."""
    sides = [minus(ends[1], ends[0]) for ends in (a, b) if len(ends) == 2]
    if not sides:
        return 0.0, 0.0, 1.0
    x, y, z = sides[0]
    thin = sub(mul(x, x), mul(z, z))  # negative: the z axis is the better one to leave
    one: Vec = (select(thin, 0.0, neg(y)), select(thin, neg(z), x), select(thin, y, 0.0))
    if len(sides) == 2:
        both = cross(sides[0], sides[1])
        size = mul(inner(sides[0], sides[0]), inner(sides[1], sides[1]))
        flat = sub(inner(both, both), mul(PARALLEL, size))
        one = (
            select(flat, one[0], both[0]),
            select(flat, one[1], both[1]),
            select(flat, one[2], both[2]),
        )
    return scale(div(1.0, sqrt(inner(one, one))), one)
