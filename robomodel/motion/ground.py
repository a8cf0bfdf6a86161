"""The ground and what of a robot may touch it: points, and spheres about points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from robomodel.description import Shape
from robomodel.errors import Doubt, as_real, suspect_all
from robomodel.model.arguments import as_numbers
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.spatial import apply, plus

Point: TypeAlias = (
    tuple[str, Sequence[float]]
    | tuple[str, Sequence[float], float]
    | tuple[str, Sequence[float], float, float | None]
    | tuple[str, Sequence[float], float, float | None, float | None]
    | str
)
RIM = 8  # points on a cylinder's rim


@dataclass(frozen=True, eq=False)
class Ground:
    """What robots stand on: a level plane, or heights on a grid.

    On a grid gaps are measured to the tangent plane below the point.

    Attributes:
        friction: Coulomb's coefficient, finite. Where a point has one of its own, the smaller
            counts.
        restitution: Newton's, from 0 to 1. Where a point has one of its own, the larger counts.
        height: A number [m], or heights (nx, ny) at x = origin[0] + i · spacing, y = origin[1] + j
            · spacing, bilinear in between and level with the edge outside.
        spacing: Distance of the heights [m].
        origin: Where the first of them stands, x and y [m].
    """

    friction: float = 0.8
    restitution: float = 0.0
    height: float | ArrayLike = 0.0
    spacing: float = 1.0
    origin: tuple[float, float] = (0.0, 0.0)
    _grid: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("friction", "restitution", "spacing"):
            as_real(getattr(self, name), name)
        if not (math.isfinite(self.friction) and self.friction >= 0.0):
            raise ValueError(f"friction needs a finite number from 0 on, got {self.friction!r}")
        if not 0.0 <= self.restitution <= 1.0:
            raise ValueError(f"restitution is from 0 to 1, got {self.restitution!r}")
        grid = as_numbers(self.height, "height")
        if grid.ndim not in (0, 2) or 0 in grid.shape or not np.all(np.isfinite(grid)):
            raise ValueError(
                f"height is a number, or finite heights (nx, ny), got shape {grid.shape}"
            )
        if not (math.isfinite(self.spacing) and self.spacing > 0.0):
            raise ValueError(f"spacing needs a positive number [m], got {self.spacing!r}")
        origin = as_numbers(self.origin, "origin")
        if origin.shape != (2,) or not np.all(np.isfinite(origin)):
            raise ValueError(f"origin is two numbers, x and y [m], got {self.origin!r}")
        object.__setattr__(self, "_grid", grid)

    def against(self, point: Placed) -> tuple[float, float]:
        """Friction and restitution of a point on this ground."""
        rub = self.friction if point.friction is None else min(self.friction, point.friction)
        return rub, max(self.restitution, point.restitution or 0.0)

    def below(self, points: Array) -> tuple[Array, Array]:
        """Distances of points above the ground, and its normals there.

        Args:
            points: Places (k, 3) in the world [m].

        Returns:
            distances: Distances (k,) [m].
            normals: Normals (k, 3).
        """
        if self._grid.ndim == 0:
            normals = np.zeros((len(points), 3))
            normals[:, 2] = 1.0
            return points[:, 2] - self._grid, normals
        at = (points[:, :2] - np.asarray(self.origin)) / self.spacing
        corner, slopes = [], []
        for axis, count in enumerate(self._grid.shape):
            last = max(count - 2, 0)
            i = np.clip(np.floor(at[:, axis]), 0, last).astype(int)
            corner.append((i, np.minimum(i + 1, count - 1)))
            slopes.append(np.clip(at[:, axis] - i, 0.0, 1.0))
        (i, i1), (j, j1) = corner
        s, t = slopes
        a, b, c, d = self._grid[i, j], self._grid[i1, j], self._grid[i, j1], self._grid[i1, j1]
        height = a * (1 - s) * (1 - t) + b * s * (1 - t) + c * (1 - s) * t + d * s * t
        inside = [(at[:, n] > 0) & (at[:, n] < self._grid.shape[n] - 1) for n in (0, 1)]
        dx = np.where(inside[0], (b - a) * (1 - t) + (d - c) * t, 0.0) / self.spacing
        dy = np.where(inside[1], (c - a) * (1 - s) + (d - b) * s, 0.0) / self.spacing
        normals = np.stack([-dx, -dy, np.ones(len(points))], axis=1)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return (points[:, 2] - height) * normals[:, 2], normals


@dataclass(frozen=True, slots=True)
class Contact:
    """A pair of links that touch, or nearly: what a callable given as ``contacts=`` yields.

    Attributes:
        link: Is pushed along ``normal`` at ``point``.
        point: Place in the world [m].
        normal: World axes, unit length.
        gap: The distance [m], negative where they overlap.
        other: Is pushed the opposite way; None is the world.
        friction: Coulomb's coefficient.
        restitution: Newton's, from 0 to 1.
        name: Ties it to the contact of the step before, for the warm start.
    """

    link: str
    point: Sequence[float]
    normal: Sequence[float]
    gap: float
    other: str | None = None
    friction: float = 0.8
    restitution: float = 0.0
    name: Any = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two links that have touched: what a trajectory tells of a :class:`Contact` over time.

    ``name`` is the contact's, or its number among those given at once where it has none.
    """

    link: str
    other: str | None
    name: Any

    def __str__(self) -> str:
        return f"{self.link} on {'the world' if self.other is None else self.other}"


Contacts: TypeAlias = Callable[[Array, Array], Sequence[Contact]]


def contact_points(model: Model) -> list[Point]:
    """What may touch the ground, from the collision shapes of all links that move.

    Offsets [m] are in the link's axes. Ellipsoids and planes are left out with a
    :class:`robomodel.DescriptionWarning`. Meshes need trimesh.

    Args:
        model: The robot.

    Returns:
        points: (link, offset) for the corners of boxes, points on the rims of cylinders (eight on
            each) and the vertices of meshes' convex hulls; (link, offset, radius) for spheres and
            the ends of capsules: a sphere about the point; and (link, offset, radius, friction,
            restitution), the radius 0 for a point, where the file gives a shape one of these (None:
            it does not).
    """
    found: list[Point] = []
    doubts: list[Doubt] = []
    for link in model.description.links:
        if model.frame(link.name).body == WORLD:
            continue
        for shape in link.shapes:
            if shape.role == "collision":
                found += [(link.name, *point) for point in _points(shape, doubts)]
    suspect_all(doubts, strict=False)
    return found


def _points(shape: Shape, doubts: list[Doubt]) -> list[tuple[Any, ...]]:
    """(offset,) or (offset, radius) of a shape."""
    own: list[tuple[float, float, float]]
    radius: tuple[float | None, ...] = ()
    match shape.kind:
        case "box":
            x, y, z = (a / 2 for a in shape.size)
            own = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
        case "sphere":
            own, radius = [(0.0, 0.0, 0.0)], (shape.size[0],)
        case "capsule":
            own = [(0.0, 0.0, end * shape.size[1] / 2) for end in (-1, 1)]
            radius = (shape.size[0],)
        case "cylinder":
            r, length = shape.size
            turns = [2 * math.pi * n / RIM for n in range(RIM)]
            own = [
                (r * math.cos(t), r * math.sin(t), end * length / 2)
                for end in (-1, 1)
                for t in turns
            ]
        case "mesh":
            from robomodel.shapes import load_mesh

            hull = load_mesh(shape).convex_hull
            own = [(float(x), float(y), float(z)) for x, y, z in hull.vertices]
        case other:
            doubts.append(Doubt(f"its {other} touches nothing here", shape.source, "contact"))
            return []
    origin = shape.origin
    if shape.friction is not None or shape.restitution is not None:
        radius = (*(radius or (0.0,)), shape.friction, shape.restitution)
    return [(plus(origin.xyz, apply(origin.rotation, point)), *radius) for point in own]


@dataclass(frozen=True, slots=True)
class Placed:
    """A point of a link, or a sphere about it; None where the ground's coefficients count."""

    link: str
    offset: tuple[float, float, float]
    radius: float = 0.0
    friction: float | None = None
    restitution: float | None = None


def as_points(model: Model, points: Sequence[Point]) -> list[Placed]:
    """Points with all that they have; ValueError for what is none, KeyError for unknown links."""
    made: list[Placed] = []
    if isinstance(points, str) or _is_one(points):
        points = [points]
    for given in points:
        parts: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
        if not 1 <= len(parts) <= 5 or not isinstance(parts[0], str):
            raise ValueError(
                "a contact point is a link, (link, offset) or (link, offset, radius), with "
                f"friction and restitution after them where it has its own, got {given!r}"
            )
        link = parts[0]
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
        try:
            x, y, z = (float(a) for a in (parts[1] if len(parts) > 1 else (0.0, 0.0, 0.0)))
            radius = float(parts[2]) if len(parts) > 2 else 0.0
            own = [None if each is None else float(each) for each in parts[3:]]
        except (TypeError, ValueError):
            raise ValueError(
                f"a contact on '{link}' has an offset of three numbers, a radius, friction and "
                f"restitution, got {given!r}"
            ) from None
        friction, restitution = (*own, None, None)[:2]
        if friction is not None and not (math.isfinite(friction) and friction >= 0.0):
            raise ValueError(f"friction needs a finite number from 0 on, got {friction!r}")
        if restitution is not None and not 0.0 <= restitution <= 1.0:
            raise ValueError(f"restitution is from 0 to 1, got {restitution!r}")
        if not all(map(math.isfinite, (x, y, z, radius))) or radius < 0.0:
            raise ValueError(f"the offset or the radius of a contact on '{link}' is off: {given!r}")
        made.append(Placed(link, (x, y, z), radius, friction, restitution))
    return made


def _is_one(points: Any) -> TypeGuard[Point]:
    """Whether it is (link, offset, …), rather than several points."""
    return (
        isinstance(points, tuple)
        and len(points) > 1
        and isinstance(points[0], str)
        and not isinstance(points[1], str)
        and all(not isinstance(x, str) for x in np.atleast_1d(np.asarray(points[1], object)))
    )


def touching_points(
    model: Model, ground: Ground | None, points: Sequence[Point] | None
) -> list[Placed]:
    """The points that stand on a ground: those given, else those of the collision shapes."""
    if ground is not None and not isinstance(ground, Ground):
        raise TypeError(f"ground is a robomodel.Ground, such as rm.Ground(), got {ground!r}")
    if ground is None:
        if points is not None:
            raise ValueError("contact points need a ground: give ground=rm.Ground()")
        return []
    found = as_points(model, contact_points(model) if points is None else points)
    if not found:
        raise ValueError(
            f"'{model.name}' has no points that could touch the ground: none of its links has a "
            "collision shape; give contacts=[(link, offset), …]"
        )
    return found
