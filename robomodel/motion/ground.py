"""The ground, and the points and spheres of a robot that may touch it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.description import Shape
from robomodel.errors import Issue, as_real, warn_of_all
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.motion.terrain import Terrain
from robomodel.spatial import apply, plus
from robomodel.tolerances import NOTHING

Point: TypeAlias = (
    tuple[str, Sequence[float]]
    | tuple[str, Sequence[float], float]
    | tuple[str, Sequence[float], float, float | None]
    | tuple[str, Sequence[float], float, float | None, float | None]
    | str
)
RIM = 8  # points on a cylinder's rim


@dataclass(frozen=True, slots=True)
class ContactLaw:
    """The law of a contact: Coulomb's coefficients, restitution, compliance.

    Attributes:
        friction: The coefficient while it slides.
        static_friction: The coefficient while it sticks, at least ``friction``.
        restitution: Newton's, from 0 to 1.
        stiffness: Stiffness of the contact [N/m]; None where it is rigid.
        damping: Damping of the contact [N s/m].
        velocity: Velocity of the surface [m/s], world axes.
    """

    friction: float
    static_friction: float
    restitution: float
    stiffness: float | None = None
    damping: float = 0.0
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def rebounds(self) -> bool:
        """True if it may rebound within a step: by restitution, or by a stiffness beyond it."""
        return self.restitution > 0.0 or self.stiffness is not None


@dataclass(frozen=True, eq=False)
class Ground:
    """A ground that robots stand on or lean against: a plane, or heights on a grid.

    Several grounds, such as a floor, a ramp and a wall, are given as a list: behind any of them is
    solid, and a point touches each with its friction, velocity and compliance.

    Heights make one surface of triangles: each cell is cut along the diagonal from its corner (i,
    j) to (i + 1, j + 1).

    Attributes:
        friction: Coulomb's coefficient of sliding, finite. Where a point has one of its own, the
            smaller counts.
        restitution: Newton's, from 0 to 1, of a rigid ground. Where a point has one of its own, the
            larger counts. A compliant ground rebounds by its stiffness and damping alone.
        height: A number [m], along ``normal``, or heights (nx, ny) at x = origin[0] + i · spacing,
            y = origin[1] + j · spacing, level with the edge outside.
        spacing: Distance of the heights [m].
        origin: Position of the first height, x and y [m].
        velocity: Velocity (3,) of its surface [m/s], as of a belt: the surface moves along itself;
            a component normal to it is left out.
        static_friction: Coulomb's coefficient of sticking, finite and at least ``friction``, which
            it is by default.
        stiffness: Compliance of each contact point [N/m]: the force along the normal is stiffness ·
            penetration + damping · its rate, and never pulls. None: rigid.
        damping: Damping of the compliance [N s/m]; None for none. With z = damping / (2 √(stiffness
            · mass)) a mass rebounds with exp(-2 z arccos(z) / √(1 - z²)) of its velocity, 0.135
            at z = 1.
        normal: Direction (3,) in which a plane faces, of any length: upwards by default, (1, 0, 1)
            of a ramp of 45 degrees that falls towards x, (1, 0, 0) of a wall. The plane is where
            the unit normal · x = height.
    """

    friction: float = 0.8
    restitution: float = 0.0
    height: float | ArrayLike = 0.0
    spacing: float = 1.0
    origin: tuple[float, float] = (0.0, 0.0)
    velocity: ArrayLike = field(default=(0.0, 0.0, 0.0), kw_only=True)
    static_friction: float | None = field(default=None, kw_only=True)
    stiffness: float | None = field(default=None, kw_only=True)
    damping: float | None = field(default=None, kw_only=True)
    normal: ArrayLike = field(default=(0.0, 0.0, 1.0), kw_only=True)
    _grid: Array = field(init=False, repr=False)
    _normal: Array = field(init=False, repr=False)
    _terrain: Terrain = field(init=False, repr=False)

    def __post_init__(self) -> None:
        optional = ("static_friction", "stiffness", "damping")
        for name in ("spacing", "friction", "restitution", *optional):
            value = getattr(self, name)
            if value is not None or name not in optional:  # a trace takes floats only
                object.__setattr__(self, name, as_real(value, name))
        check_coefficients(self.friction, self.restitution)
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
        velocity = as_numbers(self.velocity, "velocity")
        if velocity.shape != (3,) or not np.all(np.isfinite(velocity)):
            raise ValueError(f"velocity is three finite numbers [m/s], got {self.velocity!r}")
        normal = self._unit_normal(grid)
        if grid.ndim == 0 and abs(normal @ velocity) > NOTHING * np.linalg.norm(velocity):
            raise ValueError(
                f"a plane moves along itself, and its velocity has no part along its normal, got "
                f"{self.velocity!r}"
            )
        self._check_law()
        object.__setattr__(self, "_grid", grid)
        object.__setattr__(self, "_terrain", Terrain(grid, self.spacing, self.origin))
        object.__setattr__(self, "_normal", normal)

    def _unit_normal(self, grid: Array) -> Array:
        normal = as_numbers(self.normal, "normal")
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not (math.isfinite(size) and size > 0.0):
            raise ValueError(f"normal is three finite numbers, not all zero, got {self.normal!r}")
        normal = normal / size
        if grid.ndim and normal[2] != 1.0:
            raise ValueError("heights on a grid face upwards: normal is for planes")
        return np.asarray(normal)

    def _check_law(self) -> None:
        """Static friction and compliance."""
        for name in ("static_friction", "stiffness", "damping"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} needs a finite number from 0 on, or None, got {value!r}")
        if self.static_friction is not None and self.static_friction < self.friction:
            raise ValueError(
                f"static_friction is at least friction = {self.friction:g}, got "
                f"{self.static_friction!r}"
            )
        if self.stiffness is not None and self.stiffness == 0.0:
            raise ValueError("stiffness is positive [N/m], or None for a rigid ground, got 0")
        if self.stiffness is not None and self.restitution:
            raise ValueError(
                "a compliant ground rebounds by its stiffness and damping: leave out restitution = "
                f"{self.restitution:g}, or stiffness"
            )
        if self.stiffness is None and self.damping is not None:
            raise ValueError("damping needs a stiffness: a rigid ground has no rate of penetration")

    @property
    def is_level(self) -> bool:
        """True if it is a horizontal plane."""
        return self._grid.ndim == 0 and bool(self._normal[2] == 1.0)

    @property
    def planes(self) -> int:
        """The most of its planes that a point may touch at once."""
        return 2 if self._grid.ndim else 1  # most planes of heights that a point touches at once

    def law(self, point: GroundPoint) -> ContactLaw:
        """The law of the contact between a point and this ground.

        Args:
            point: The point; its own coefficients count as :class:`Ground` says.
        """
        static = self.friction if self.static_friction is None else self.static_friction
        friction = math.inf if point.friction is None else point.friction
        return ContactLaw(
            min(self.friction, friction),
            min(static, friction),
            0.0 if self.stiffness else max(self.restitution, point.restitution or 0.0),
            self.stiffness,
            self.damping or 0.0,
            tuple(np.asarray(self.velocity, dtype=float).tolist()),
        )

    def surfaces(
        self,
        centres: ArrayLike,
        radii: ArrayLike = 0.0,
        *,
        reach: ArrayLike = math.inf,
        count: int | None = None,
    ) -> tuple[Array, Array]:
        """Gaps between spheres and the nearest points of the surface, and its normals there.

        Both change continuously as a sphere rolls over the surface's convex edges. A sphere in a
        valley is near several places of the surface at once: with ``count`` these are all planes
        that hold it, the nearest first. The nearest point is centre - (gap + radius) · normal.

        Args:
            centres: Centres (..., k, 3) of the spheres in the world [m].
            radii: Their radii (k,) [m], 0 for points.
            reach: Gaps beyond it [m] are lower bounds, not below it, which saves time with heights;
                a number, or one (..., k) for each sphere.
            count: Number of places of the surface for each sphere, on an axis of their own: local
                minima of the distance. If there are fewer within ``reach`` (which must be finite),
                the remaining gaps are infinite.

        Returns:
            gaps: Distances (..., k), or (..., k, count) [m], negative where they overlap; nan where
                a centre is not finite. Of a centre below the surface it is -(depth + radius), with
                its depth below the nearest point.
            normals: Unit vectors (..., k, 3), or (..., k, count, 3), that point out of the ground:
                from the nearest point to a centre above, to the nearest point from a centre below.
        """
        x = as_numbers(centres, "centres")
        if x.ndim < 2 or x.shape[-1] != 3:
            raise ValueError(f"centres are points (..., k, 3), got shape {x.shape}")
        radius = as_numbers(radii, "radii")
        try:
            radius = np.broadcast_to(radius, x.shape[:-1])
        except ValueError:
            raise ValueError(
                f"radii are a number or one for each centre, got shape {radius.shape} for "
                f"{x.shape[:-1]} centres"
            ) from None
        if not (np.all(radius >= 0.0) and np.all(np.isfinite(radius))):
            raise ValueError("radii are finite numbers from 0 on")
        limit = np.broadcast_to(as_numbers(reach, "reach"), x.shape[:-1])
        if count is not None and (count < 1 or not np.all(np.isfinite(limit))):
            raise ValueError(
                f"several places need count from 1 on and a finite reach, got {count} and {reach!r}"
            )
        places, size = x.reshape(-1, 3), count or 1
        distances, normals = np.full((len(places), size), np.inf), np.zeros((len(places), size, 3))
        normals[..., 2] = 1.0
        if not self._grid.ndim:
            distances[:, 0] = places @ self._normal - self._grid
            normals[:] = self._normal
        else:
            far = (radius + limit).ravel()
            distances[:, 0], normals[:, 0] = self._terrain.distances(places, far)
            if size > 1:
                self._terrain.add_several(places, far, distances, normals)
        shape = radius.shape if count is None else (*radius.shape, size)
        gaps = distances.reshape(shape) - (radius if count is None else radius[..., None])
        return gaps, normals.reshape(*shape, 3)


def check_coefficients(friction: float, restitution: float) -> tuple[float, float]:
    """Both as floats.

    Raises ValueError unless friction is finite and not negative, and restitution from 0 to 1.
    """
    friction, restitution = as_real(friction, "friction"), as_real(restitution, "restitution")
    if not (math.isfinite(friction) and friction >= 0.0):
        raise ValueError(f"friction needs a finite number from 0 on, got {friction!r}")
    if not 0.0 <= restitution <= 1.0:
        raise ValueError(f"restitution is from 0 to 1, got {restitution!r}")
    return friction, restitution


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact of a pair of links: what a callable given as ``contacts=`` returns in a list.

    Attributes:
        link: The link that is pushed along ``normal`` at ``point``.
        point: Position in the world [m].
        normal: Unit vector in world axes.
        gap: The distance [m], negative if they overlap.
        other: The link that is pushed the opposite way; None is the world.
        friction: Coulomb's coefficient.
        restitution: Newton's coefficient, from 0 to 1.
        name: Identifies the contact of the step before, whose impulse the solver starts from.
    """

    link: str
    point: ArrayLike
    normal: ArrayLike
    gap: float
    other: str | None = None
    friction: float = 0.8
    restitution: float = 0.0
    name: Any = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two links that have touched, as a trajectory records a :class:`Contact` over time.

    ``name`` is the contact's, or its index among those returned together if it has none.
    """

    link: str
    other: str | None
    name: Any

    def __str__(self) -> str:
        return f"{self.link} on {'the world' if self.other is None else self.other}"


Contacts: TypeAlias = Callable[[Array, Array], Sequence[Contact]]


def contact_points(model: Model) -> list[Point]:
    """Points that may touch the ground, from the collision shapes of all links that move.

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

    Examples:
        >>> shape = '<geometry><sphere radius="0.1"/></geometry>'
        >>> inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        >>> inertial = f'<inertial><mass value="1"/>{inertia}</inertial>'
        >>> link = f'<link name="ball">{inertial}<collision>{shape}</collision></link>'
        >>> ball = rm.load(f'<robot name="ball">{link}</robot>', floating_base=True)
        >>> rm.contact_points(ball)
        [('ball', (0.0, 0.0, 0.0), 0.1)]
    """
    points: list[Point] = []
    issues: list[Issue] = []
    for link in model.description.links:
        if model.frame(link.name).body == WORLD:
            continue
        for shape in link.shapes:
            if shape.role == "collision":
                points += [(link.name, *point) for point in _points(shape, issues)]
    warn_of_all(issues, strict=False)
    return points


def _points(shape: Shape, issues: list[Issue]) -> list[tuple[Any, ...]]:
    """(offset,) or (offset, radius) for the points of a shape."""
    places: list[tuple[float, float, float]]
    radius: tuple[float | None, ...] = ()
    match shape.kind:
        case "box":
            x, y, z = (a / 2 for a in shape.size)
            places = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
        case "sphere":
            places, radius = [(0.0, 0.0, 0.0)], (shape.size[0],)
        case "capsule":
            places = [(0.0, 0.0, end * shape.size[1] / 2) for end in (-1, 1)]
            radius = (shape.size[0],)
        case "cylinder":
            r, length = shape.size
            turns = [2 * math.pi * n / RIM for n in range(RIM)]
            places = [
                (r * math.cos(t), r * math.sin(t), end * length / 2)
                for end in (-1, 1)
                for t in turns
            ]
        case "mesh":
            from robomodel.description.shapes import load_mesh

            hull = load_mesh(shape).convex_hull
            places = [(float(x), float(y), float(z)) for x, y, z in hull.vertices]
        case other:
            issues.append(Issue(f"its {other} touches nothing here", shape.source, "contact"))
            return []
    origin = shape.origin
    if shape.friction is not None or shape.restitution is not None:
        radius = (*(radius or (0.0,)), shape.friction, shape.restitution)
    return [(plus(origin.xyz, apply(origin.rotation, point)), *radius) for point in places]


@dataclass(frozen=True, slots=True)
class GroundPoint:
    """A point of a link, or a sphere about it; None: the ground's coefficient counts."""

    link: str
    offset: tuple[float, float, float]
    radius: float = 0.0
    friction: float | None = None
    restitution: float | None = None


def as_points(model: Model, points: Sequence[Point]) -> list[GroundPoint]:
    """The points with all their numbers; raises ValueError or UnknownNameError for others."""
    placed: list[GroundPoint] = []
    if isinstance(points, str) or _is_one(points):
        points = [points]
    if not isinstance(points, Iterable):
        raise TypeError(f"contacts are links or (link, offset), got {points!r}")
    for point in points:
        parts: tuple[Any, ...] = (point,) if isinstance(point, str) else tuple(point)
        if not 1 <= len(parts) <= 5 or not isinstance(parts[0], str):
            raise ValueError(
                "a contact point is a link, (link, offset) or (link, offset, radius), with "
                f"friction and restitution after them where it has its own, got {point!r}"
            )
        link = parts[0]
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
        try:
            x, y, z = (float(a) for a in (parts[1] if len(parts) > 1 else (0.0, 0.0, 0.0)))
            radius = float(parts[2]) if len(parts) > 2 else 0.0
            coefficients = [None if each is None else float(each) for each in parts[3:]]
        except (TypeError, ValueError):
            raise ValueError(
                f"a contact on '{link}' has an offset of three numbers, a radius, friction and "
                f"restitution, got {point!r}"
            ) from None
        friction, restitution = (*coefficients, None, None)[:2]
        if friction is not None and not (math.isfinite(friction) and friction >= 0.0):
            raise ValueError(f"friction needs a finite number from 0 on, got {friction!r}")
        if restitution is not None and not 0.0 <= restitution <= 1.0:
            raise ValueError(f"restitution is from 0 to 1, got {restitution!r}")
        if not all(map(math.isfinite, (x, y, z, radius))) or radius < 0.0:
            raise ValueError(f"the offset or the radius of a contact on '{link}' is off: {point!r}")
        placed.append(GroundPoint(link, (x, y, z), radius, friction, restitution))
    return placed


def _is_one(points: Any) -> TypeGuard[Point]:
    """True if it is (link, offset, …), rather than several points."""
    return (
        isinstance(points, tuple)
        and len(points) > 1
        and isinstance(points[0], str)
        and not isinstance(points[1], str)
        and all(not isinstance(x, str) for x in np.atleast_1d(np.asarray(points[1], object)))
    )


def as_grounds(ground: Ground | Sequence[Ground] | None) -> tuple[Ground, ...]:
    """The grounds as a tuple; raises TypeError for anything else."""
    if ground is None or isinstance(ground, Ground):
        return () if ground is None else (ground,)
    if not isinstance(ground, Sequence) or not all(isinstance(each, Ground) for each in ground):
        raise TypeError(
            f"ground is a robomodel.Ground, such as rm.Ground(), or a list of them, got {ground!r}"
        )
    if not ground:
        raise ValueError("a list of grounds has one at least; None is no ground")
    return tuple(ground)


def touching_points(
    model: Model, grounds: Sequence[Ground], points: Sequence[Point] | None
) -> list[GroundPoint]:
    """The points that may touch grounds: those given, else those of the collision shapes."""
    if not grounds:
        if points is not None:
            raise ValueError("contact points need a ground: give ground=rm.Ground()")
        return []
    placed = as_points(model, contact_points(model) if points is None else points)
    if not placed and points is not None:
        raise ValueError("contacts names no point that could touch the ground")
    if not placed:
        raise ValueError(
            f"'{model.name}' has no points that could touch the ground: none of its links has a "
            "collision shape; give contacts=[(link, offset), …]"
        )
    return placed
