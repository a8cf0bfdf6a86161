"""Heights on a grid, as a surface of triangles: distances of points, and normals."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.kernels.cache import digest
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import sources
from robomodel.scalars import Scalar, Vector, div, maximum, minimum, select, sqrt
from robomodel.spatial import Vec, cross, inner, minus, plus, scale

ON_EDGE = 1e-9  # share of the spacing: nearer to an edge, the face's normal counts


@dataclass(frozen=True)
class Terrain:
    """Heights (nx, ny) at x = origin[0] + i · spacing, y = origin[1] + j · spacing [m].

    Each cell is cut along the diagonal from its corner (i, j) to (i + 1, j + 1); outside the
    surface is level with its edge.
    """

    grid: Array
    spacing: float
    origin: tuple[float, float]

    @functools.cached_property
    def stretch(self) -> float:
        """The largest ratio of a vertical distance from the surface to the distance."""
        return math.hypot(1.0, _steepest(self.grid) / self.spacing)

    def heights(self, places: Array) -> Array:
        """Heights of the surface (m,) at places (m, 2)."""
        at = (places - np.asarray(self.origin)) / self.spacing
        i, j = np.floor(at).astype(int).T
        s, t = (at - np.floor(at)).T
        a, b, c, d = (self._corners(i + n, j + m) for m in (0, 1) for n in (0, 1))
        lower, upper = a + s * (b - a) + t * (d - b), a + s * (d - c) + t * (c - a)
        return np.asarray(np.where(t < s, lower, upper))

    def _corners(self, i: Array, j: Array) -> Array:
        """Heights at corners of cells; outside of the grid those of its edge."""
        nx, ny = self.grid.shape
        return np.asarray(self.grid[np.clip(i, 0, nx - 1), np.clip(j, 0, ny - 1)])

    def distances(self, x: Array, far: Array) -> tuple[Array, Array]:
        """Signed distances (m,) of points (m, 3), lower bounds beyond ``far``, and normals."""
        distances, normals = np.full(len(x), np.nan), np.tile([0.0, 0.0, 1.0], (len(x), 1))
        finite = np.flatnonzero(np.all(np.isfinite(x), axis=1))
        above = x[finite, 2] - self.heights(x[finite, :2])
        distances[finite] = above / self.stretch  # no nearer than that
        close = distances[finite] <= far[finite]
        near, rise = finite[close], above[close]
        # the nearest point is no farther than the one below, or else beyond what is asked for
        width = np.where(rise < 0.0, -rise, np.minimum(rise, far[near]))
        for part, corners in self._windows(x[near], width):
            nearest, inside, outwards, squares = _nearest_of_triangles(corners)
            best, rows = np.argmin(squares, axis=1), np.arange(len(part))
            side = np.where(rise[part] < 0.0, -1.0, 1.0)
            distance = side * np.sqrt(squares[rows, best])
            normals[near[part]] = self._normals(
                nearest[rows, best], inside[rows, best], outwards[rows, best], distance
            )
            beyond = np.where(rise[part] < 0.0, np.inf, far[near[part]])
            distances[near[part]] = np.minimum(distance, beyond)
        return distances, normals

    def add_several(self, x: Array, far: Array, distances: Array, normals: Array) -> None:
        """Add the other local minima of the distance, for points above the surface."""
        near = np.flatnonzero((distances[:, 0] >= 0.0) & (distances[:, 0] < far))
        for part, corners in self._windows(x[near], far[near]):
            nearest, inside, outwards, squares = _nearest_of_triangles(corners)
            length = np.sqrt(squares)
            valid = length <= far[near[part], None]
            rows, triangles = np.nonzero(valid & ~inside)
            valid[rows, triangles] = self._is_least(
                corners[:, 0, 0, :2], nearest, length, rows, triangles
            )
            order = np.argsort(np.where(valid, length, np.inf), axis=1, kind="stable")
            order = order[:, 1 : distances.shape[1]]  # the first is there
            rows, at, last = np.arange(len(part))[:, None], near[part], 1 + order.shape[1]
            chosen, size = valid[rows, order], length[rows, order]
            directions = self._normals(
                nearest[rows, order], inside[rows, order], outwards[rows, order], size
            )
            distances[at, 1:last] = np.where(chosen, size, np.inf)
            normals[at, 1:last] = np.where(chosen[..., None], directions, [0.0, 0.0, 1.0])

    def _is_least(
        self, first: Array, nearest: Array, length: Array, rows: Indices, triangles: Indices
    ) -> Mask:
        """True if nearest points on edges and corners are local minima of the distance.

        They are not if another triangle that shares them comes nearer; of triangles that share
        one, it belongs to the first. ``first``: the first corner (m, 2) of each window.
        """
        count = math.isqrt(nearest.shape[1] // 2)
        place, size = nearest[rows, triangles], length[rows, triangles]
        at = (place[:, :2] - first[rows]) / self.spacing
        least = np.ones(len(rows), dtype=bool)
        for shift in product((-ON_EDGE, ON_EDGE), repeat=2):
            cell = np.clip(np.floor(at + shift).astype(int), 0, count - 1)
            s, t = (at - cell).T
            touches = np.all(np.abs(at - cell - 0.5) <= 0.5 + 2 * ON_EDGE, axis=1)
            for upper, there in enumerate((t <= s + 2 * ON_EDGE, t >= s - 2 * ON_EDGE)):
                other = 2 * (cell[:, 0] * count + cell[:, 1]) + upper
                rounding = ON_EDGE * self.spacing
                nearer = length[rows, other] < size - rounding
                apart = np.linalg.norm(nearest[rows, other] - place, axis=1)
                same = (other < triangles) & (apart <= 2 * rounding)
                least &= ~(touches & there & (nearer | same))
        return least

    def _windows(self, x: Array, width: Array) -> Iterator[tuple[Indices, Array]]:
        """Triangles (m, t, 3, 3), relative to the point, of the cells within a width of points.

        In parts, with the indices (m,) of the points.
        """
        at = x[:, :2] - np.asarray(self.origin)
        first = np.floor((at - width[:, None]) / self.spacing).astype(int)
        last = np.floor((at + width[:, None]) / self.spacing).astype(int)
        cells = np.max(last - first, axis=1, initial=0) + 1
        for count in np.unique(cells).tolist():
            same = np.flatnonzero(cells == count)
            # at most 20 000 cells together, which bounds the memory
            for part in np.array_split(same, 1 + len(same) * count**2 // 20000):
                i, j = (first[part, n, None] + np.arange(count + 1) for n in (0, 1))
                corners = np.empty((len(part), count + 1, count + 1, 3))
                corners[..., 0] = (self.origin[0] + self.spacing * i)[:, :, None]
                corners[..., 1] = (self.origin[1] + self.spacing * j)[:, None, :]
                corners[..., 2] = self._corners(i[:, :, None], j[:, None, :])
                corners -= x[part, None, None]
                a, b = corners[:, :-1, :-1], corners[:, 1:, :-1]
                c, d = corners[:, :-1, 1:], corners[:, 1:, 1:]
                triangles = np.stack([np.stack([a, b, d], -2), np.stack([a, d, c], -2)], -3)
                yield part, triangles.reshape(len(part), -1, 3, 3)

    def _normals(self, nearest: Array, inside: Mask, outwards: Array, distance: Array) -> Array:
        """Normals: those of faces; beside edges and corners the directions to the points.

        On an edge the direction is rounding, and the face's normal is taken.
        """
        edge = ~inside & (np.abs(distance) > ON_EDGE * self.spacing)
        size = np.where(edge, distance, 1.0)[..., None]
        return np.asarray(np.where(edge[..., None], -nearest / size, outwards))


def _steepest(grid: Array) -> float:
    """The largest rise of a triangle over one spacing."""
    padded = np.pad(grid, 1, mode="edge")
    x, y = np.diff(padded, axis=0), np.diff(padded, axis=1)
    return float(max(np.hypot(x[:, :-1], y[1:]).max(), np.hypot(x[:, 1:], y[:-1]).max()))


def _nearest_of_triangles(corners: Array) -> tuple[Array, Mask, Array, Array]:
    """The points of triangles nearest to the origin.

    Args:
        corners: Corners (..., 3, 3) of triangles, counterclockwise as seen from outside.

    Returns:
        nearest: The nearest points (..., 3).
        inside: Whether they are inside of the face (...), rather than on an edge.
        outwards: The faces' unit normals (..., 3).
        squares: Of the distances (...).
    """
    numbers = _nearest_of_triangle()(corners.reshape(*corners.shape[:-2], 9))
    return numbers[..., :3], numbers[..., 3] > 0.0, numbers[..., 4:7], numbers[..., 7]


@functools.cache
def _nearest_of_triangle() -> TracedFunction:
    """Three corners → nearest point to the origin, 1 if it is inside, normal, squared distance."""

    def build(numbers: Vector) -> list[Scalar]:
        x = list(numbers)
        corners: list[Vec] = [(x[i], x[i + 1], x[i + 2]) for i in (0, 3, 6)]
        sides = [minus(corners[(e + 1) % 3], corners[e]) for e in range(3)]
        area = cross(sides[0], sides[1])
        outwards = scale(div(1.0, sqrt(inner(area, area))), area)
        edges = list(zip(corners, sides, strict=True))
        # positive on the inner side of all edges
        within = functools.reduce(minimum, [inner(outwards, cross(c, side)) for c, side in edges])
        places = []
        for corner, side in edges:
            along = div(-inner(corner, side), inner(side, side))
            places.append(plus(corner, scale(minimum(maximum(along, 0.0), 1.0), side)))
        nearest, least = places[0], inner(places[0], places[0])
        for place in places[1:]:
            square = inner(place, place)
            nearer = square - least
            nearest = _chosen(nearer, place, nearest)
            least = select(nearer, square, least)
        rise = inner(outwards, corners[0])
        nearest = _chosen(-within, scale(rise, outwards), nearest)
        least = select(-within, rise * rise, least)
        return [*nearest, select(-within, 1.0, 0.0), *outwards, least]

    key = digest(("nearest of a triangle", sources()))
    return TracedFunction("nearest_of_triangle", {"corners": 9}, {"y": (8,)}, build, key=key)


def _chosen(sign: Scalar, a: Vec, b: Vec) -> Vec:
    """``a`` where the sign is negative, else ``b``."""
    return select(sign, a[0], b[0]), select(sign, a[1], b[1]), select(sign, a[2], b[2])
