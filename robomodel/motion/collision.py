"""Contact between links: which links may touch, and where convex collision shapes do.

Two spheres or capsules have closed forms without branches, over scalars of any kind: a sphere is
the points within a radius of a point, a capsule those within a radius of a segment (nearest points
of segments: Ericson, *Real-time collision detection*, 5.1.9, with the middle of the common part
where segments are parallel). Distance and direction of other pairs are from coal (extra
``collision``). Where their faces or edges are in contact there are several points: the parts of
both shapes nearest to each other, projected along the normal, are clipped against each other.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Shape
from robomodel.dynamics import frame_pose
from robomodel.dynamics.contact.gauss_seidel import basis
from robomodel.errors import Issue, MissingPackageError, as_real, warn_of_all
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Floating
from robomodel.model.model import Model
from robomodel.motion.ground import RIM, Contact, check_coefficients
from robomodel.scalars import Scalar, div, maximum, minimum, select, sqrt, value_of
from robomodel.spatial import Mat, Vec, apply, cross, inner, minus, plus, scale

if TYPE_CHECKING:
    import coal


LinkPair: TypeAlias = tuple[str, str]
Collisions: TypeAlias = bool | LinkPair | Iterable[LinkPair] | None

MANIFOLD = 4  # most points of contact of a pair of shapes
TOUCH = 1e-6  # m: accuracy of coal's distances
IN_KERNELS = 24  # most contacts of links in a kernel, whose size grows with their square


def collision_pairs(model: Model, collisions: Collisions) -> tuple[LinkPair, ...]:
    """The pairs of links that may touch each other.

    Args:
        model: The robot.
        collisions: True: all links with collision shapes that move against each other, except those
            that a joint ties (neighbours in the tree, apart from floating joints, and the two links
            of a loop joint). One pair of links, or several: these, tied or not. False, None: none.

    Returns:
        pairs: Names of links, each pair once.

    Raises:
        UnknownNameError: No link has such a name.
        ValueError: Something else than a pair, a link with itself or with one fixed to it, links
            without collision shapes.
    """
    if collisions is None or collisions is False:
        return ()
    solid = [link.name for link in model.description.links if _shapes(link.shapes)]
    if collisions is True:
        tied = _tied(model)
        return tuple(
            (a, b)
            for a, b in combinations(solid, 2)
            if frozenset((model.frame(a).body, model.frame(b).body)) not in tied
        )
    if not isinstance(collisions, Iterable) or isinstance(collisions, str):
        raise TypeError(f"collisions is a bool or pairs of links, got {collisions!r}")
    named: list[Any] = list(collisions)
    if len(named) == 2 and all(isinstance(each, str) for each in named):
        named = [tuple(named)]
    pairs: dict[frozenset[str], LinkPair] = {}
    for pair in named:
        a, b = _as_pair(model, pair)
        if model.frame(a).body == model.frame(b).body:
            raise ValueError(f"'{a}' and '{b}' are fixed to each other: they cannot collide")
        for link in (a, b):
            if link not in solid:
                raise ValueError(
                    f"'{link}' has no collision shape that could touch '{b if link == a else a}'"
                )
        pairs.setdefault(frozenset((a, b)), (a, b))
    return tuple(pairs.values())


def _as_pair(model: Model, pair: Any) -> LinkPair:
    """Two names of links."""
    names = () if isinstance(pair, str) or not isinstance(pair, Iterable) else tuple(pair)
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"a pair that may collide is two links' names, got {pair!r}")
    for name in names:
        model.frame(name)  # an UnknownNameError with a hint for unknown ones
    return names[0], names[1]


def _tied(model: Model) -> set[frozenset[int]]:
    """Pairs of bodies that are the same, or that a joint connects."""
    tied = {frozenset((body,)) for body in range(WORLD, len(model.nodes))}
    for body, node in enumerate(model.nodes):
        if not isinstance(node.joint, Floating):
            tied.add(frozenset((body, node.parent)))
    for loop in model.loops:
        tied.add(frozenset(model.frame(link).body for link in (loop.predecessor, loop.successor)))
    return tied


def _shapes(shapes: Iterable[Shape]) -> list[Shape]:
    """Collision shapes that are convex and bounded."""
    kinds = ("sphere", "capsule", "box", "cylinder", "mesh")
    return [each for each in shapes if each.role == "collision" and each.kind in kinds]


# ---- shapes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Convex:
    """A convex shape on a link, in the link's axes.

    A cylinder has no vertices: its points depend on the direction.

    Attributes:
        link: The link's name.
        shape: The shape as the description has it.
        centre: (3,), of the shape's frame.
        axes: Its rotation (3, 3).
        vertices: (n, 3): corners, the centre of a sphere, the ends of a capsule's segment.
        faces: Outward unit normals (f, 3); of a cylinder those of its ends.
        offsets: Offsets of the faces (f,): points inside have normal . x <= offset.
        radius: Of spheres and capsules, about their vertices [m].
        size: Largest distance from the centre [m].
    """

    link: str
    shape: Shape
    centre: Array
    axes: Array
    vertices: Array
    faces: Array
    offsets: Array
    radius: float
    size: float

    @cached_property
    def round(self) -> Round | None:
        """The sphere or capsule that it is, or None."""
        if self.shape.kind not in ("sphere", "capsule"):
            return None
        ends = tuple((float(x), float(y), float(z)) for x, y, z in self.vertices)
        return Round(self.link, ends, self.radius)

    @cached_property
    def coal(self) -> coal.ShapeBase:
        """The shape in coal, in its own axes."""
        import coal

        match self.shape.kind:
            case "box":
                return coal.Box(*self.shape.size)
            case "sphere":
                return coal.Sphere(self.radius)
            case "capsule":
                return coal.Capsule(*self.shape.size)
            case "cylinder":
                return coal.Cylinder(*self.shape.size)
        from scipy.spatial import ConvexHull

        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for vertex in (self.vertices - self.centre) @ self.axes:
            points.append(vertex)
        for corners in ConvexHull(self.vertices).simplices.tolist():
            triangles.append(coal.Triangle(*corners))
        return coal.Convex(points, triangles)

    def extent(self, directions: Array) -> Array:
        """The largest direction · x of its points, for unit vectors (..., 3)."""
        if self.shape.kind == "cylinder":
            radius, length = self.shape.size
            along = directions @ self.axes[:, 2]
            across = np.sqrt(np.maximum(0.0, 1.0 - along * along))
            return np.asarray(
                directions @ self.centre + np.abs(along) * length / 2 + radius * across
            )
        return np.asarray(np.max(directions @ self.vertices.T, axis=-1) + self.radius)

    def outermost(self, direction: Array, depth: float) -> tuple[Array, list[Hashable]]:
        """Points (n, 3) of the surface less than ``depth`` below its extent, and their names."""
        if self.shape.kind == "cylinder":
            points, names = self._rims(direction)
        else:
            points, names = self.vertices + self.radius * direction, range(len(self.vertices))
        near = points @ direction >= self.extent(direction) - depth
        return points[near], [name for name, is_near in zip(names, near, strict=True) if is_near]

    def _rims(self, direction: Array) -> tuple[Array, Sequence[Hashable]]:
        """Points on a cylinder's rims, the outermost one first."""
        radius, length = self.shape.size
        axis = self.axes[:, 2]
        out = direction - (direction @ axis) * axis
        far = float(np.linalg.norm(out))
        out = self.axes[:, 0] if far < TOUCH else out / far
        turns = 2 * math.pi * np.arange(RIM) / RIM
        rim = np.cos(turns)[:, None] * out + np.sin(turns)[:, None] * np.cross(axis, out)
        rim *= radius
        ends = [self.centre + side * length / 2 * axis + rim for side in (-1.0, 1.0)]
        return np.concatenate(ends), list(range(2 * RIM))

    def placed(self, pose: Array) -> Convex:
        """The shape in world axes, with its link at ``pose`` (4, 4)."""
        turn, origin = pose[:3, :3], pose[:3, 3]
        faces = self.faces @ turn.T
        return Convex(
            self.link, self.shape, turn @ self.centre + origin, turn @ self.axes,
            self.vertices @ turn.T + origin, faces, self.offsets + faces @ origin, self.radius,
            self.size,
        )  # fmt: skip


def convex(link: str, shape: Shape) -> Convex:
    """A collision shape of a link; a mesh's convex hull (needs trimesh)."""
    centre = np.array(shape.origin.xyz, dtype=float)
    axes = np.array(shape.origin.rotation, dtype=float)
    faces, offsets, radius = np.zeros((0, 3)), np.zeros(0), 0.0
    match shape.kind:
        case "box":
            half = np.array(shape.size) / 2
            vertices = np.array(list(product((-1.0, 1.0), repeat=3))) * half
            faces, offsets = np.concatenate([np.eye(3), -np.eye(3)]), np.tile(half, 2)
        case "sphere":
            vertices, radius = np.zeros((1, 3)), shape.size[0]
        case "capsule":
            radius, length = shape.size
            vertices = np.array([[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2]])
            vertices = vertices if length > 0.0 else vertices[:1]
        case "cylinder":
            vertices = np.zeros((0, 3))
            faces = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
            offsets = np.full(2, shape.size[1] / 2)
        case _:
            from scipy.spatial import ConvexHull

            from robomodel.description.shapes import load_mesh

            hull = ConvexHull(np.asarray(load_mesh(shape).vertices, dtype=float))
            vertices = hull.points[hull.vertices]
            equations = np.unique(hull.equations.round(9), axis=0)  # one for each flat part
            faces, offsets = equations[:, :3], -equations[:, 3]
    size = float(np.linalg.norm(vertices, axis=1).max(initial=0.0)) + radius
    if shape.kind == "cylinder":
        size = math.hypot(shape.size[0], shape.size[1] / 2)
    turned = faces @ axes.T
    return Convex(
        link, shape, centre, axes, vertices @ axes.T + centre, turned, offsets + turned @ centre,
        radius, size,
    )  # fmt: skip


# ---- contacts ------------------------------------------------------------------------------------


class Collider:
    """The contacts between links at a configuration: a function for ``contacts=``.

    ``pairs``: the links that may touch; ``slots``: the most contacts at once.
    """

    def __init__(
        self,
        model: Model,
        collisions: Collisions = True,
        *,
        margin: float = 0.01,  # m: pairs that are farther apart have no contact
        friction: float = 0.8,
        restitution: float = 0.0,
        rounds: bool = True,
    ) -> None:
        """For a model.

        Args:
            model: The robot.
            collisions: See :func:`collision_pairs`.
            margin: Largest gap of contacts [m].
            friction: Coulomb's coefficient of shapes without one; of two the smaller counts.
            restitution: Newton's coefficient of shapes without one; of two the larger counts.
            rounds: Whether spheres and capsules touch each other, too.

        Raises:
            ValueError: See :func:`collision_pairs`; coefficients out of their range.
            MissingPackageError: Other shapes than spheres and capsules need coal.
        """
        self.model, self.margin = model, as_real(margin, "margin")
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"margin is a finite number [m] from 0 on, got {margin!r}")
        self.friction, self.restitution = check_coefficients(friction, restitution)
        self.pairs = collision_pairs(model, collisions)
        _warn_of_others(model, {link for pair in self.pairs for link in pair})
        near = [
            (a, b)
            for a, b in _shape_pairs(model, self.pairs)
            if rounds or not (a.round and b.round)
        ]
        self._shapes = list({id(shape): shape for pair in near for shape in pair}.values())
        number = {id(shape): n for n, shape in enumerate(self._shapes)}
        self._tried = np.array([[number[id(x)] for x in pair] for pair in near], dtype=int)
        self._sizes = np.array([shape.size for shape in self._shapes])
        self.slots = sum(map(_slots, near))

    def __call__(self, q: Array, v: Array | None = None) -> list[Contact]:
        """The contacts at one configuration.

        Args:
            q: (nq,).
            v: Not used; simulations pass it.

        Returns:
            contacts: Those of each pair of shapes within the margin. The point is midway between
                the surfaces; the name stays the same from step to step for the same corners and
                edges.
        """
        if not len(self._tried):
            return []
        poses = {link: frame_pose(self.model, q, link) for link in {s.link for s in self._shapes}}
        placed = [shape.placed(poses[shape.link]) for shape in self._shapes]
        centres = np.array([shape.centre for shape in placed])
        i, j = self._tried.T
        apart = np.linalg.norm(centres[i] - centres[j], axis=1) - self._sizes[i] - self._sizes[j]
        contacts = []
        for n in np.flatnonzero(apart <= self.margin).tolist():
            a, b = placed[i[n]], placed[j[n]]
            law = _law(a, b, self.friction, self.restitution)
            contacts += [
                Contact(a.link, point, normal, gap, b.link, *law, (n, name))
                for gap, normal, point, name in shape_contacts(a, b, self.margin)
            ]
        return contacts


def _shape_pairs(model: Model, pairs: Sequence[LinkPair]) -> list[tuple[Convex, Convex]]:
    """All pairs of shapes of these pairs of links."""
    wanted = {link for pair in pairs for link in pair}
    shapes = {
        link.name: [convex(link.name, shape) for shape in _shapes(link.shapes)]
        for link in model.description.links
        if link.name in wanted
    }
    return [each for a, b in pairs for each in product(shapes[a], shapes[b])]


def _slots(pair: tuple[Convex, Convex]) -> int:
    """The most contacts of two shapes at once; raises MissingPackageError if coal is missing."""
    a, b = pair
    if a.round and b.round:
        return RoundPair(a.round, b.round, 0.0, 0.0).count
    if find_spec("coal") is None:
        raise MissingPackageError(
            f"contact between '{a.link}' and '{b.link}' needs", "coal", "collision"
        )
    return 1 if "sphere" in (a.shape.kind, b.shape.kind) else MANIFOLD


def _law(a: Convex, b: Convex, friction: float, restitution: float) -> tuple[float, float]:
    """Friction and restitution of two shapes; the arguments are for shapes that have none."""
    frictions = [friction if x.shape.friction is None else x.shape.friction for x in (a, b)]
    rebounds = [restitution if x.shape.restitution is None else x.shape.restitution for x in (a, b)]
    return min(frictions), max(rebounds)


Manifold: TypeAlias = list[tuple[float, Array, Array, Hashable]]
"""Contacts: gap, normal, point and name of each."""


def shape_contacts(a: Convex, b: Convex, margin: float) -> Manifold:
    """Contacts of two placed shapes whose gaps are within a margin."""
    if a.round and b.round:
        here = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0)
        pairs = round_contacts(a.round, b.round, here, here)
        return [
            (value_of(gap), np.array(normal), np.array(point), n)
            for n, (gap, normal, point) in enumerate(pairs)
            if value_of(gap) <= margin
        ]
    gap, normal, (one, other) = _separation(a, b)
    if gap > margin:
        return []
    manifold = _clipped(a, b, normal, margin + max(-gap, 0.0))
    if not manifold or min(each[0] for each in manifold) > gap + TOUCH:
        manifold.append((gap, normal, 0.5 * (one + other), "nearest"))
    return _few([each for each in manifold if each[0] <= margin])


def _separation(a: Convex, b: Convex) -> tuple[float, Array, tuple[Array, Array]]:
    """Distance (negative: least penetration), direction from b to a, and the nearest points.

    If a face of one separates them its normal is the direction, without coal's rounding.
    """
    import coal

    request, result = coal.DistanceRequest(), coal.DistanceResult()
    places = [coal.Transform3s(each.axes, each.centre) for each in (a, b)]
    gap = float(coal.distance(a.coal, places[0], b.coal, places[1], request, result))
    normal = -np.array(result.normal)
    points = np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())
    best = gap - TOUCH
    for shape, other, side in ((b, a, 1.0), (a, b, -1.0)):
        if len(shape.faces):
            apart = -other.extent(-shape.faces) - shape.offsets
            n = int(np.argmax(apart))
            if apart[n] > best:
                best = gap = float(apart[n])
                normal = side * shape.faces[n]
    return gap, normal, points


def _clipped(a: Convex, b: Convex, normal: Array, depth: float) -> Manifold:
    """Corners of the common part of both, projected along the normal, with gaps along it.

    ``depth``: how far behind the foremost points the parts that may touch end.
    """
    axes = np.array(basis(tuple(normal.tolist()))[:2]).T
    upper = _outline(*a.outermost(-normal, depth), -normal, axes)
    lower = _outline(*b.outermost(normal, depth), normal, axes)
    manifold: Manifold = []

    def add(name: Hashable, above: Array, below: Array) -> None:
        """Add a corner unless one is in the same place: for equal shapes rounding would decide."""
        gap, point = float((above - below) @ normal), 0.5 * (above + below)
        if all(np.linalg.norm(point - other) > 2.0 * TOUCH for _, _, other, _ in manifold):
            manifold.append((gap, normal, point, name))

    for place, point, name in upper.corners:
        if lower.contains(place):
            add(("a", name), point, point + normal * lower.rise(b, place, point, normal))
    for place, point, name in lower.corners:
        if upper.contains(place):
            add(("b", name), point - normal * upper.rise(a, place, point, -normal), point)
    for (p, above, m), (q, above2, m2) in upper.edges:
        for (r, below, n), (s, below2, n2) in lower.edges:
            at = _crossing(p, q, r, s)
            if at is not None:
                add(("e", m, m2, n, n2), above + at[0] * (above2 - above),
                    below + at[1] * (below2 - below))  # fmt: skip
    return manifold


Corner: TypeAlias = tuple[complex, Array, Hashable]
"""Position in the plane normal to the contact (x + i y), point (3,) and name."""


@dataclass(frozen=True)
class _Outline:
    """The convex outline of points projected along a normal, counterclockwise."""

    corners: list[Corner]

    @cached_property
    def edges(self) -> list[tuple[Corner, Corner]]:
        """Pairs of successive corners."""
        last = len(self.corners) if len(self.corners) > 2 else len(self.corners) - 1
        return [(self.corners[n], self.corners[(n + 1) % len(self.corners)]) for n in range(last)]

    def contains(self, place: complex) -> bool:
        """True if a position is inside the outline."""
        if len(self.corners) == 1:
            return abs(place - self.corners[0][0]) <= TOUCH
        if len(self.corners) > 2:
            return all(
                _turn(s - r, place - r) >= -TOUCH * abs(s - r)
                for (r, _, _), (s, _, _) in self.edges
            )
        (r, _, _), (s, _, _) = self.corners
        share = (place - r) / (s - r)
        size = abs(s - r)
        return abs(share.imag) * size <= TOUCH and -TOUCH <= share.real * size <= size + TOUCH

    def rise(self, shape: Convex, place: complex, point: Array, normal: Array) -> float:
        """Distance along the normal from a point over the outline to the shape's surface."""
        if len(self.corners) == 1:
            return float((self.corners[0][1] - point) @ normal)
        if len(self.corners) == 2:
            (r, start, _), (s, end, _) = self.corners
            t = min(max(((place - r) / (s - r)).real, 0.0), 1.0)
            return float((start + t * (end - start) - point) @ normal)
        top = float(shape.extent(normal) - point @ normal)
        facing = shape.faces @ normal
        # cosine to the normal below which a face does not touch the other shape
        flat = facing >= 0.1
        rises = (shape.offsets[flat] - shape.faces[flat] @ point) / facing[flat]
        return min(top, float(rises.min(initial=math.inf)))


def _outline(points: Array, names: list[Hashable], outwards: Array, axes: Array) -> _Outline:
    """The convex hull of projected points; the outermost of several at one position."""
    places = [complex(x, y) for x, y in (points @ axes).tolist()]
    order: list[int] = []
    for n in np.argsort(-(points @ outwards), kind="stable").tolist():
        if all(abs(places[n] - places[m]) > TOUCH for m in order):
            order.append(n)
    order.sort(key=lambda n: (places[n].real, places[n].imag))
    hull: list[int] = []
    for way in (order, order[::-1]):
        start = len(hull)
        for n in way:
            while len(hull) > start + 1 and _flat(places[hull[-2]], places[hull[-1]], places[n]):
                hull.pop()
            hull.append(n)
        if len(hull) > 1:
            hull.pop()  # the second pass begins with it
    return _Outline([(places[n], points[n], names[n]) for n in hull])


def _flat(a: complex, b: complex, c: complex) -> bool:
    """True if b is on the line from a to c, or inside of it."""
    return _turn(c - a, b - a) >= -TOUCH * abs(c - a)


def _turn(a: complex, b: complex) -> float:
    """The cross product a x b in the plane."""
    return a.real * b.imag - a.imag * b.real


def _crossing(p: complex, q: complex, r: complex, s: complex) -> tuple[float, float] | None:
    """The crossing of the lines pq and rs, as shares of both; None if there is none."""
    along, across = q - p, s - r
    square = _turn(along, across)
    if abs(square) <= TOUCH * abs(along) * abs(across):
        return None
    one, other = _turn(r - p, across) / square, _turn(r - p, along) / square
    return (one, other) if 0.0 < one < 1.0 and 0.0 < other < 1.0 else None


def _few(manifold: Manifold) -> Manifold:
    """At most four: the deepest, the one farthest from it, and those farthest to both sides."""
    if len(manifold) <= MANIFOLD:
        return manifold
    points = np.array([point for _, _, point, _ in manifold])
    normal = manifold[0][1]
    first = min(range(len(manifold)), key=lambda n: manifold[n][0])
    second = int(np.argmax(np.linalg.norm(points - points[first], axis=1)))
    sides = np.cross(points[second] - points[first], points - points[first]) @ normal
    chosen = [first, second]
    for best in (int(np.argmax(sides)), int(np.argmin(sides))):
        if best not in chosen:
            chosen.append(best)
    return [manifold[n] for n in chosen]


def _warn_of_others(model: Model, links: Iterable[str]) -> None:
    """Warn of shapes that have no contact."""
    issues = [
        Issue(f"its {shape.kind} touches no other link", shape.source, "contact")
        for link in model.description.links
        if link.name in links
        for shape in link.shapes
        if shape.role == "collision" and not _shapes([shape])
    ]
    warn_of_all(issues, strict=False)


def round_pairs(
    model: Model,
    collisions: Collisions = True,
    *,
    friction: float = 0.8,
    restitution: float = 0.0,
    only: bool = True,
) -> tuple[RoundPair, ...]:
    """Pairs of spheres and capsules that may touch, for kernels.

    Args:
        model: The robot.
        collisions: See :func:`collision_pairs`.
        friction: See :class:`Collider`.
        restitution: See :class:`Collider`.
        only: Raise errors for other shapes, and for more contacts than kernels hold. If False,
            other shapes are left out, and too many contacts give no pairs.

    Returns:
        pairs: For :func:`robomodel.motion.collision.round_contacts`.

    Raises:
        ValueError: See :func:`collision_pairs`; links with other shapes, too many contacts.
    """
    pairs = []
    for a, b in _shape_pairs(model, collision_pairs(model, collisions)):
        if a.round and b.round:
            pairs.append(RoundPair(a.round, b.round, *_law(a, b, friction, restitution)))
        elif only:
            other = b if a.round else a
            raise ValueError(
                f"rollouts have contact between spheres and capsules, not with the "
                f"{other.shape.kind} of '{other.link}'; simulate has"
            )
    count = sum(pair.count for pair in pairs)
    if count > IN_KERNELS and only:
        raise ValueError(
            f"rollouts hold {IN_KERNELS} contacts of spheres and capsules (two capsules: three), "
            f"and these are {count}: name the pairs of links that matter"
        )
    return tuple(pairs) if count <= IN_KERNELS else ()


def between_links(
    model: Model, collisions: Collisions, friction: float, restitution: float, *, data: bool
) -> tuple[tuple[RoundPair, ...], Collider | None]:
    """Spheres and capsules for a kernel, if it can hold them; else a collider.

    The collider has all shapes if some are neither, or if contacts are ``data`` anyway.
    """
    law = {"friction": friction, "restitution": restitution}
    shapes = _shape_pairs(model, collision_pairs(model, collisions))
    pairs: tuple[RoundPair, ...] = ()
    if not data and all(a.round and b.round for a, b in shapes):
        pairs = round_pairs(model, collisions, only=False, **law)
    collider = Collider(model, collisions, rounds=not pairs, **law)
    return pairs, collider if collider.slots else None


# ---- spheres and capsules in kernels -------------------------------------------------------------

SQUARED_SINE = 1e-10  # squared sine below which segments count as parallel
MEETING = 1e-24  # m²: squared distance below which segments meet

Proximity: TypeAlias = tuple[Scalar, Vec, Vec]
"""Gap, normal (unit vector on the first shape) and point, in world axes."""


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
        first: The shape that is pushed along the normal.
        second: The shape that is pushed the opposite way.
        friction: Coulomb's coefficient between them.
        restitution: Newton's coefficient between them.
    """

    first: Round
    second: Round
    friction: float
    restitution: float

    @property
    def links(self) -> tuple[str, str]:
        """The names of both links."""
        return self.first.link, self.second.link

    @property
    def count(self) -> int:
        """Number of contacts that :func:`round_contacts` returns."""
        return 3 if len(self.first.ends) == len(self.second.ends) == 2 else 1


def round_contacts(
    first: Round, second: Round, pose: tuple[Mat, Vec], other_pose: tuple[Mat, Vec]
) -> list[Proximity]:
    """Gaps, normals and points of contact between two spheres or capsules.

    Args:
        first: The shape that is pushed along the normals.
        second: The shape that is pushed the opposite way.
        pose: Rotation (rows) and origin of the first link in the world.
        other_pose: Rotation (rows) and origin of the second link in the world.

    Returns:
        contacts: The nearest points; between two capsules also two at the ends of the part that is
            next to the other, so that parallel capsules do not tip over. Each is a condition of its
            own: no gap may close. The point is midway between the surfaces. Where centres coincide
            the normal is perpendicular to both segments, or upwards for spheres.
    """
    a, b = _ends(first, pose), _ends(second, other_pose)
    pairs = [nearest_points(a, b)]
    if len(a) == len(b) == 2:
        pairs += [(x := _on_segment(end, a), _on_segment(x, b)) for end in b]
    away = _perpendicular(a, b)
    return [_between(x, y, first.radius, second.radius, away) for x, y in pairs]


def nearest_points(a: tuple[Vec, ...], b: tuple[Vec, ...]) -> tuple[Vec, Vec]:
    """The nearest points of two segments, or of a segment and a point, or of two points."""
    if len(a) == 1:
        return a[0], _on_segment(a[0], b)
    if len(b) == 1:
        return _on_segment(b[0], a), b[0]
    along, across, apart = minus(a[1], a[0]), minus(b[1], b[0]), minus(a[0], b[0])
    aa, bb, ab = inner(along, along), inner(across, across), inner(along, across)
    ar, br = inner(along, apart), inner(across, apart)
    # the middle of the part of a that is next to b
    from_ends = div(-ar, aa), div(ab - ar, aa)
    low, high = (
        maximum(minimum(*from_ends), 0.0),
        minimum(maximum(*from_ends), 1.0),
    )
    middle = 0.5 * (low + high)
    square = aa * bb - ab * ab
    parallel = square - SQUARED_SINE * (aa * bb)  # negative where they are
    crossing = div(ab * br - ar * bb, select(parallel, aa * bb, square))
    s = _share(select(parallel, middle, crossing))
    t = _share(div(ab * s + br, bb))
    s = select(parallel, s, _share(div(ab * t - ar, aa)))
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
    """``x`` clipped to [0, 1]."""
    return minimum(maximum(x, 0.0), 1.0)


def _between(x: Vec, y: Vec, radius: float, other: float, away: Vec) -> Proximity:
    """The contact of two spheres about x and y; ``away`` is the normal if x and y coincide."""
    apart = minus(x, y)
    square = inner(apart, apart)
    meets = square - MEETING  # negative where they do
    distance = sqrt(maximum(square, MEETING))
    n: Vec = (
        select(meets, away[0], div(apart[0], distance)),
        select(meets, away[1], div(apart[1], distance)),
        select(meets, away[2], div(apart[2], distance)),
    )
    gap = select(meets, 0.0, distance) - (radius + other)
    return gap, n, minus(x, scale(radius + 0.5 * gap, n))


def _perpendicular(a: tuple[Vec, ...], b: tuple[Vec, ...]) -> Vec:
    """A unit vector that is perpendicular to both segments."""
    sides = [minus(ends[1], ends[0]) for ends in (a, b) if len(ends) == 2]
    if not sides:
        return 0.0, 0.0, 1.0
    x, y, z = sides[0]
    thin = x * x - z * z  # negative: the z axis is the better one to leave
    one: Vec = (select(thin, 0.0, -y), select(thin, -z, x), select(thin, y, 0.0))
    if len(sides) == 2:
        both = cross(sides[0], sides[1])
        size = inner(sides[0], sides[0]) * inner(sides[1], sides[1])
        flat = inner(both, both) - SQUARED_SINE * size
        one = (
            select(flat, one[0], both[0]),
            select(flat, one[1], both[1]),
            select(flat, one[2], both[2]),
        )
    return scale(div(1.0, sqrt(inner(one, one))), one)
