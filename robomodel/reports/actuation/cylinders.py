"""Cylinders: the lever of a driven slide between two pins about the joint of a limb that it moves.

Motors that drive the slide by a screw count as well as those of the slide itself. The lever is the
slide's rate for unit rate of that joint: the distance of its line from the axis of the joint, if
that is fixed. Force times lever is torque. Where the lever vanishes the cylinder is at its dead
point: it can neither hold nor move the limb.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators import efforts
from robomodel.dynamics.actuators.limbs import beside, columns_of, geared, motor_rows
from robomodel.model import Model
from robomodel.reach.charts import without_idle
from robomodel.reach.limb import limb_bodies
from robomodel.reach.parts import Part
from robomodel.reach.paths import Half, Path, joined, walk
from robomodel.reach.ranges import column_of, part_of, path_along
from robomodel.reports.actuation.transmission import Drive, Linkage, Rod, Transmission, extreme
from robomodel.tolerances import MOVES

BEYOND_LIMITS = 3.0  # rad or sizes: how far beyond its limits a dead point is looked for


@dataclass(frozen=True, slots=True, eq=False)
class Cylinder:
    """A driven slide between two pins, and the joint of a limb that it moves, others at rest.

    Attributes:
        name: The slide's joint.
        joint: The limb's joint.
        slides: That joint moves in metres.
        rest: Other joints of the limb, at neutral.
        positions: Positions (n,) of the limb's joint on its range.
        levers: Its levers there (n,) [m].
        angles: Transmission angles (n,), between its line and that from the joint to its pin.
        dead_points: Positions of the limb's joint at which the lever vanishes, within the range or
            beyond it.
        push: Torques (n,) of the limb's joint [N m] as it pushes with all its force.
        pull: The same as it pulls.
        transmission: Its row among those of rods.
    """

    name: str
    joint: str
    slides: bool
    rest: tuple[str, ...]
    positions: Array
    levers: Array
    angles: Array
    dead_points: tuple[float, ...]
    push: Array
    pull: Array
    transmission: Transmission

    @property
    def margin(self) -> float:
        """How far the range ends before the nearest dead point; 0 within, infinite without one."""
        low, high = float(np.min(self.positions)), float(np.max(self.positions))
        away = [max(low - x, x - high, 0.0) for x in self.dead_points]
        return min(away, default=math.inf)

    def span(self, values: Array) -> tuple[float, float]:
        """The least and the greatest of levers or torques; 0 is among them at its dead point.

        The greatest is infinite where the joint turns back while the cylinder moves on.
        """
        among = np.append(values, 0.0) if self.margin == 0.0 else values
        return float(np.nanmin(among)), float(np.nanmax(among))


def cylinders(model: Model) -> Iterator[Cylinder]:
    """The cylinders of a robot, each with every joint of its limb that it moves."""
    for cluster in model.clusters:
        if not cluster.geometry.loop_joints:
            continue
        linkage = Linkage(model, cluster)
        for number, actuator in enumerate(model.actuators):
            names = [name for name, _ in actuator.terms if name in cluster.joints]
            if len(names) != 1 or len(actuator.terms) != 1:
                continue
            slide = geared(cluster, names[0])
            rod = linkage.cylinder(slide)
            if rod is None:
                continue
            for body in limb_bodies(model)[cluster.index]:
                if model.nodes[body].joint.nv == 1 and model.joints[body].name != slide:
                    found = _cylinder(linkage, rod, slide, body, number)
                    if found is not None:
                        yield found


def _cylinder(linkage: Linkage, rod: Rod, name: str, body: int, number: int) -> Cylinder | None:
    model, cluster = linkage.model, linkage.cluster
    joint = model.joints[body]
    column, own = column_of(cluster, name), column_of(cluster, joint.name)
    bodies = beside(model, body)
    columns = columns_of(model, cluster, bodies)
    held = [c for c in columns if c != own]
    path = path_along(model, cluster, own, held, linkage.start)
    if path is None:
        return None
    levers = _levers(path, column, own)
    if not np.any(np.abs(levers[np.isfinite(levers)]) > MOVES * cluster.geometry.scale):
        return None
    driven = linkage.one[cluster.joints.index(joint.name)]
    side = 0 if _carried(linkage, driven, rod.ends[0].body) else 1
    drive = Drive(linkage, rod, rod.ends[1 - side].body, side)
    angles = drive.angles(path, path.q)
    at = np.asarray(path.q[:, path.part.place[own]])
    gear = _gear(path, column, motor_rows(model)[number, cluster.spanning_v])
    low, high = sorted(x[number] * gear for x in efforts.alone(model, None))
    slides = joint.type == "prismatic"
    rest = tuple(model.joints[b].name for b in bodies if b != body)
    row = Transmission(
        cluster.name, name, rod.ends[side].pins[0].name, joint.name, slides, at, angles,
        extreme(drive, [path], own, 1.0), extreme(drive, [path], own, -1.0),
    )  # fmt: skip
    return Cylinder(
        name, joint.name, slides, rest, at, levers, angles,
        tuple(_dead_points(linkage, path, own, held, column)),
        high * levers, low * levers, row,
    )  # fmt: skip


def _gear(path: Path, column: int, motor: Array) -> float:
    """The rate of a motor, by its row of the cluster's velocities, for unit rate of a slide."""
    fastest = path.tangents[np.argmax(np.abs(path.tangents[:, column]))] * path.part.unit
    return float(motor @ path.part.velocities @ fastest / fastest[column])


def _carried(linkage: Linkage, by: int, body: int) -> bool:
    """True if a body is another one or hangs on it."""
    return by in [linkage.one[each] for each in linkage.branch(body)]


def _levers(path: Path, column: int, own: int) -> Array:
    """Rates (n,) of a slide for unit rate of a joint along its path.

    Infinite at an end at which the joint turns back, not-a-number if the slide rests with it.
    """
    unit, slide, joint = path.part.unit, path.tangents[:, column], path.tangents[:, own]
    with np.errstate(all="ignore"):
        levers = np.asarray(slide * unit[column] / (joint * unit[own]))
    for end, near in ((0, 1), (-1, -2)):
        if len(levers) > 1 and abs(joint[end]) <= MOVES:
            rests = abs(slide[end]) <= MOVES
            levers[end] = math.nan if rests else math.copysign(math.inf, levers[near])
    return levers


def _dead_points(
    linkage: Linkage, within: Path, own: int, held: Sequence[int], column: int
) -> Iterator[float]:
    """Positions of a joint at which a slide rests while it moves, its limits passed."""
    part, path = within.part, within
    if not path.ring:  # it goes on beyond limits
        through = part_of(linkage.model, linkage.cluster, own, held)
        beyond = _through(through, linkage.start, [c for c in held if c in through.columns], own)
        if beyond is None:
            return
        part, path = through, beyond
    at = path.q[:, part.place[own]]
    start = float(at[path.start])
    turned = path.tangents[1:] * path.tangents[:-1] < 0.0
    # where the joint turns back, too, its slide rests with it
    for n in np.flatnonzero(turned[:, column] & ~turned[:, own]).tolist():
        step = path.step(n)
        low, high = 0.0, 1.5 * step.length
        first = float(path.tangents[n, column])
        for _ in range(40):  # bisections of a step of a path, to the dead point
            middle = 0.5 * (low + high)
            same = float(step.at(middle)[1][column]) * first > 0.0
            low, high = (middle, high) if same else (low, middle)
        place = float(step.at(low)[0][part.place[own]])
        if path.ring or abs(place - start) <= BEYOND_LIMITS:
            yield round(place, 9) + 0.0


def _through(part: Part, q: Array, held: Sequence[int], own: int) -> Path | None:
    """The path of a joint as far as loops close, through limits and dead points."""
    motions = without_idle(part.null(q, held), part.interest)
    if motions.shape[1] != 1 or abs(float(motions[own, 0])) < MOVES:
        return None
    ahead = motions[:, 0] * np.sign(motions[own, 0])
    forth, back = (
        Half(part, held, q, way, column=own, longest=BEYOND_LIMITS) for way in (ahead, -ahead)
    )
    walk([forth, back])
    return joined(back, forth)
