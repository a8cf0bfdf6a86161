"""Line drawings of a cluster with loops in a pose, as sketches of a mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from robomodel.arrays import Array
from robomodel.description.transmissions import rotor_name
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.mechanism.graph import WORLD
from robomodel.model import Model
from robomodel.model.elements import Cluster
from robomodel.reports.palette import CURVES
from robomodel.reports.plots import opening
from robomodel.tolerances import PARALLEL

WIDTH, TALLEST, SHORTEST = 420, 360, 70
TOP, MARGIN = 22, 34
LETTER, LINE = 7.2, 13.0  # pixels: width of a letter, height of a line of names
ROWS = (0, -1, 1, -2, 2, -3, 3)  # lines below its joint in which a name may stand
OBLIQUE = np.array([0.55, -0.75, 0.37])  # direction of view of mechanisms that are not planar
CARRIER = -1

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A body, by points of it; its number in the cluster, or ``CARRIER`` for its carrier."""

    name: str
    number: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Pin:
    """A joint; ``fixed``: it is on the cluster's carrier; ``loop``: it closes a loop."""

    name: str
    at: Point
    fixed: bool = False
    loop: bool = False


@dataclass(frozen=True, slots=True)
class Sketch:
    """A pose: bodies, joints and massless rods, in metres in the drawing's plane."""

    title: str
    bars: tuple[Bar, ...]
    pins: tuple[Pin, ...]
    rods: tuple[tuple[Point, Point], ...]

    @property
    def points(self) -> list[Point]:
        """All points that are drawn."""
        corners = [point for bar in self.bars for point in bar.points]
        return corners + [pin.at for pin in self.pins] + [end for rod in self.rods for end in rod]


@dataclass(frozen=True, slots=True)
class Drawings:
    """Sketches side by side at one scale; the ghosts are drawn pale behind the first."""

    sketches: tuple[Sketch, ...]
    ghosts: tuple[Sketch, ...] = ()
    caption: str = ""


def sketch(model: Model, cluster: Cluster, positions: Sequence[float], title: str) -> Sketch:
    """The cluster at ``positions`` (its part of q), all other clusters at neutral."""
    plane = _plane(model, cluster)
    poses = _poses(model, cluster, positions)
    body_of = {frame.name: frame.body for frame in model.frames}
    numbers = {body: number for number, body in enumerate(cluster.bodies)}
    points: dict[int, list[Point]] = {body: [] for body in (*cluster.outputs, *cluster.bodies)}
    rotors = {rotor_name(joint.name) for joint in model.description.joints}
    pins: list[Pin] = []
    rods: list[tuple[Point, Point]] = []

    def seen(link: str, offset: Sequence[float] = (0.0, 0.0, 0.0)) -> Point:
        pose = poses[link]
        x, y = plane @ (pose[:3, :3] @ np.array(offset) + pose[:3, 3])
        return (float(x), float(y))

    for joint in model.description.joints:
        child, parent = body_of[joint.child], body_of[joint.parent]
        if child == parent:
            continue
        at = seen(joint.child)
        if parent in points and (child in numbers or parent in numbers):
            points[parent].append(at)
        if child in numbers:
            points[child].append(at)
            if joint.name not in rotors:
                pins.append(Pin(joint.name, at, fixed=parent not in numbers))
    for loop in model.description.loops:
        ends = [loop.predecessor, loop.successor]
        bodies = [body_of[end.link] for end in ends]
        if not numbers.keys() & set(bodies):
            continue
        first, second = (seen(end.link, end.origin.xyz) for end in ends)
        for body, at in zip(bodies, (first, second), strict=True):
            points.setdefault(body, []).append(at)
        if loop.type == "rod":
            rods.append((first, second))
        ground = not set(bodies) <= numbers.keys()
        pins.append(Pin(loop.name, first, fixed=ground and loop.type != "rod", loop=True))
    bars = [
        Bar("" if body == WORLD else model.bodies[body].name, CARRIER, tuple(points[body]))
        for body in points
        if body not in numbers
    ]
    bars += [Bar(model.bodies[body].name, n, tuple(points[body])) for body, n in numbers.items()]
    return Sketch(title, tuple(bars), tuple(pins), tuple(rods))


def _poses(model: Model, cluster: Cluster, positions: Sequence[float]) -> dict[str, Array]:
    q = model.neutral()
    q[cluster.q] = positions
    return link_poses(model, q)


def _plane(model: Model, cluster: Cluster) -> Array:
    """Two axes (2, 3) of the view: across hinges that are all parallel, with z up; else oblique."""
    poses = _poses(model, cluster, cluster.start)
    axes = [
        poses[joint.child][:3, :3] @ np.array(joint.axis)
        for joint in model.description.joints
        if joint.name in cluster.joints and joint.type in ("revolute", "continuous")
    ]
    normal = OBLIQUE
    if axes:
        first = axes[0] / np.linalg.norm(axes[0])
        if all(np.linalg.norm(np.cross(first, each)) < PARALLEL for each in axes):
            normal = first if first @ np.array([0.3, -1.0, 0.6]) > 0.0 else -first
    normal = normal / np.linalg.norm(normal)
    up = np.eye(3)[2] if abs(normal[2]) < 0.9 else np.eye(3)[1]
    up = up - (up @ normal) * normal
    up = up / np.linalg.norm(up)
    return np.array([np.cross(up, normal), up])


# ---- as SVG --------------------------------------------------------------------------------------


def svg(drawings: Drawings) -> Iterator[str]:
    """An SVG element for each sketch, centred in its box; all have one scale."""
    sketches, ghosts = drawings.sketches, drawings.ghosts
    behind = [ghosts, *((),) * (len(sketches) - 1)]
    corners = [
        np.array([point for each in (one, *pale) for point in each.points])
        for one, pale in zip(sketches, behind, strict=True)
    ]
    sizes = np.max([np.ptp(at, axis=0) for at in corners], axis=0)
    room = np.array([WIDTH - 2 * MARGIN, TALLEST - TOP - 2 * MARGIN])
    scale = float(np.min(room / np.maximum(sizes, max(1e-9, 1e-3 * float(np.max(sizes))))))
    height = TOP + 2 * MARGIN + max(float(sizes[1]) * scale, SHORTEST)
    for each, pale, at in zip(sketches, behind, corners, strict=True):
        middle = (at.min(axis=0) + at.max(axis=0)) / 2
        place = _Place(middle, scale, (WIDTH / 2, (TOP + height) / 2))
        parts = [
            opening(each.title, (WIDTH, height), 'class="sketch"'),
            f'<text x="8" y="16" class="title">{escape(each.title)}</text>',
        ]
        for ghost in pale:
            parts += ['<g class="ghost">', *_bodies(ghost, place), "</g>"]
        parts += [*_bodies(each, place), *_joints(each, place), *_names(each, pale, place, height)]
        yield "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Place:
    """A map from metres to pixels: ``middle`` becomes ``to``."""

    middle: Array
    scale: float
    to: Point

    def __call__(self, at: Point) -> Point:
        x, y = (np.array(at) - self.middle) * self.scale
        return (self.to[0] + float(x), self.to[1] - float(y))


def _bodies(each: Sketch, place: _Place) -> Iterator[str]:
    for bar in each.bars:
        corners = _distinct([place(point) for point in bar.points])
        colour = "" if bar.number == CARRIER else f' style="--c:{CURVES[bar.number % len(CURVES)]}"'
        kind = "carrier" if bar.number == CARRIER else "body"
        title = f"<title>{escape(bar.name)}</title>"
        if len(corners) == 1 and bar.number != CARRIER:
            (x, y), *_ = corners
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" class="{kind}"{colour}>{title}</circle>'
        elif len(corners) > 1:
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in _around(corners))
            shut = "Z" if len(corners) > 2 else ""
            yield f'<path d="{path}{shut}" class="{kind}"{colour}>{title}</path>'
    for rod in each.rods:
        (x1, y1), (x2, y2) = (place(end) for end in rod)
        yield f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" class="rod"/>'


def _joints(each: Sketch, place: _Place) -> Iterator[str]:
    for pin in each.pins:
        x, y = place(pin.at)
        if pin.fixed:
            yield (
                f'<path d="M{x:.1f} {y:.1f}l-8 13h16z" class="ground"/>'
                f'<path d="M{x - 11:.1f} {y + 13:.1f}h22" class="ground"/>'
            )
        outer = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" class="loop"/>' if pin.loop else ""
        yield (
            f'{outer}<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="pin">'
            f"<title>{escape(pin.name)}</title></circle>"
        )


def key(sketches: Sequence[Sketch]) -> Iterator[str]:
    """The names for the numbers in the drawings, if these have numbers."""
    for each in sketches:
        if _numbered(each):
            names = (f"<b>{n}</b> {escape(pin.name)}" for n, pin in enumerate(each.pins, 1))
            yield f'<p class="place">{" &emsp; ".join(names)}</p>'


def _numbered(each: Sketch) -> bool:
    # drawings with more than 70 letters of names have numbers and a key
    return sum(len(pin.name) for pin in each.pins) > 70


def _names(each: Sketch, pale: Sequence[Sketch], place: _Place, height: float) -> Iterator[str]:
    """Names around the joints, where they cover least of bars, joints and each other."""
    names = [str(n) if _numbered(each) else pin.name for n, pin in enumerate(each.pins, 1)]
    pins = np.array([place(pin.at) for pin in each.pins]).reshape(-1, 2)
    drawn = [
        np.array([place(point) for point in bar.points])
        for one in (each, *pale)
        for bar in one.bars
        if bar.points
    ]
    drawn += [np.array([place(end) for end in rod]) for rod in each.rods]
    steps = np.linspace(0.0, 1.0, 24)[:, None]
    along = [a + steps * (b - a) for bar in drawn for a, b in itertools.pairwise(bar)]
    covered = np.concatenate([*along, np.zeros((0, 2))])
    labels: list[tuple[float, float, float, float]] = []
    for name, (x, y) in zip(names, pins, strict=True):
        width = LETTER * len(name)
        best, least = (0.0, 0.0, 0.0, 0.0), np.inf
        sides = (10.0, -10.0 - width, -width / 2, 26.0, -26.0 - width)
        for right, down in itertools.product(sides, 4.0 + LINE * np.array(ROWS)):
            if right == -width / 2 and abs(down) < 15.0:
                continue  # on the joint itself
            box = (x + right, x + right + width, y + down - LINE + 2.0, y + down + 2.0)
            cost = 3.0 * _inside(box, pins) + _inside(box, covered) + 0.05 * abs(down - 4.0)
            cost += 2.0 * (abs(right) > 10.0 + width)
            cost += 1e3 * sum(_overlap(box, other) for other in labels)
            cost += 500.0 * (box[0] < 2.0 or box[1] > WIDTH - 2.0)
            cost += 500.0 * (box[2] < TOP - 4.0 or box[3] > height - 2.0)
            if cost < least:
                best, least = box, cost
        labels.append(best)
        yield f'<text x="{best[0]:.1f}" y="{best[3] - 2.0:.1f}">{escape(name)}</text>'


def _inside(box: tuple[float, float, float, float], points: Array) -> int:
    left, right, top, bottom = box
    x, y = points.T
    return int(np.sum((x > left - 4.0) & (x < right + 4.0) & (y > top - 3.0) & (y < bottom + 3.0)))


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    return (
        one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
    )  # fmt: skip


def _distinct(points: Sequence[Point]) -> list[Point]:
    distinct: list[Point] = []
    for x, y in points:
        # points nearer than a thousandth of the drawing are one
        if all(abs(x - a) + abs(y - b) > 1e-3 * WIDTH for a, b in distinct):
            distinct.append((x, y))
    return distinct


def _around(points: list[Point]) -> list[Point]:
    """Points ordered by direction from the middle, so that the outline does not cross itself."""
    if len(points) < 3:
        return points
    middle = np.mean(points, axis=0)
    return sorted(points, key=lambda at: float(np.arctan2(at[1] - middle[1], at[0] - middle[0])))
