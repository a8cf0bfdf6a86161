"""Transmission angles of rods: of slider-cranks, five- and six-bars, rods between balls.

A rod is a link held by two joints only: parallel hinges, or two balls (a ball and a universal
joint; hinges that cross in one point count as one); or a loop's rod. It transmits a force along
the line between its ends. At its driven end the transmission angle is a right angle less the angle
between this line and the velocity of the joint's centre, all other inputs at rest; for a four-bar
this is the usual angle between its bars. Sources: Chen & Angeles, "A generalized transmission
index and transmission quality for spatial linkages", Mech. Mach. Theory 42 (2007); Wang, Wu & Liu,
"Performance evaluation of parallel manipulators: motion/force transmissibility and its index",
Mech. Mach. Theory 45 (2010), whose output transmission index is its sine if the joint's centre is
the output point.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators.envelopes import OTHERS, at_ends
from robomodel.dynamics.actuators.limbs import columns_of
from robomodel.mechanism.constraints import (
    OUTSIDE,
    BodyAnchor,
    Coincident,
    LoopJoint,
    evaluate_loops,
)
from robomodel.mechanism.joints import Prismatic, Revolute, Spherical
from robomodel.model import Model
from robomodel.model.elements import Cluster, spanning_start
from robomodel.reach.limb import limb_bodies
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.paths import Path
from robomodel.reach.ranges import column_of, path_along
from robomodel.scalars import stack, unstack
from robomodel.spatial import UNIT, ZERO, plus
from robomodel.tolerances import MOVES, PARALLEL, SAME

TURNS = {"revolute": 1, "continuous": 1, "universal": 2, "spherical": 3}  # freedoms of loops
SPATIAL = 5  # freedoms of rotation at both ends of a rod that has no moment at either
RESTS = 1e-9  # of the size, at unit rate of the input: slower points count as at rest
SEEN = 9  # points of a path at which resting bodies are determined
EXACT = 1e-8  # steps of a path: accuracy of extremes
FOLDED = 1e-4  # steps of a path: distance of the points from which a fold of an angle is located


@dataclass(frozen=True, slots=True)
class Extreme:
    """An angle [rad] and the position of the input at which it is that."""

    angle: float
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class Transmission:
    """The transmission angle of a rod at its driven end, while one input moves.

    ``rod``: its link, or its loop; ``joint``: the one at the driven end; ``input``: the joint that
    moves; ``slides``: it does so in metres. ``positions`` and ``angles`` (n,): the input's
    positions, and the transmission angle, 0 to π/2, with the other inputs at neutral; ``least``
    and ``most`` of it over the input's range, in clusters of up to three inputs also with the
    others at the ends of their ranges.
    """

    cluster: str
    rod: str
    joint: str
    input: str
    slides: bool
    positions: Array
    angles: Array
    least: Extreme
    most: Extreme


# ---- rods ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pin:
    """A joint, or a loop's, between two bodies of a cluster, at a point of one of them.

    ``turns``: its freedoms of rotation about that point, 0 for joints that slide; a hinge's axis is
    the first of the point's axes. ``loaded``: a motor, a coupling or a spring acts on it.
    """

    name: str
    bodies: tuple[int, int]
    point: BodyAnchor
    turns: int
    loaded: bool

    def beyond(self, body: int) -> int:
        """The other body."""
        return self.bodies[self.bodies[0] == body]


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a rod: its joints, the one at the rod first, and the body behind them."""

    pins: tuple[_Pin, ...]
    body: int

    @property
    def turns(self) -> int:
        """Its freedoms of rotation."""
        return sum(pin.turns for pin in self.pins)


@dataclass(frozen=True, slots=True)
class Rod:
    """A link that transmits a force along the line between its ends.

    ``body``: its index in the cluster, None for a loop's rod; ``hinge``: an anchor with the axis of
    rods that move in a plane.
    """

    name: str
    body: int | None
    ends: tuple[_End, _End]
    hinge: BodyAnchor | None


@dataclass(frozen=True)
class Linkage:
    """The bodies of a cluster and their connections."""

    model: Model
    cluster: Cluster

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Types of loops by their names."""
        return {loop.name: loop.type for loop in self.model.loops}

    @cached_property
    def start(self) -> Array:
        """Spanning positions at neutral."""
        return spanning_start(self.cluster, self.model.neutral()[self.cluster.q])

    @cached_property
    def pushed(self) -> frozenset[str]:
        """Joints that motors move, directly or by gears and belts."""
        return frozenset(name for each in self.model.actuators for name, _ in each.terms)

    @cached_property
    def one(self) -> dict[int, int]:
        """For each body the representative of the bodies that are welded to it."""
        one = {body: body for body in range(OUTSIDE, len(self.cluster.geometry.links))}
        for loop in self.cluster.geometry.loop_joints:
            if self.kinds.get(loop.name) == "fixed":
                a, b = sorted(one[end.body] for end in (loop.predecessor, loop.successor))
                one = {body: a if each == b else each for body, each in one.items()}
        return one

    @cached_property
    def pins(self) -> list[_Pin]:
        """All joints between different bodies, loops' included."""
        geometry = self.cluster.geometry
        tied = {body for each in geometry.linear for body, _ in each.terms}
        tied |= {body for each in geometry.polynomials for body in (each.joint, each.of)}
        pins = []
        for n, (name, link) in enumerate(zip(self.cluster.joints, geometry.links, strict=True)):
            axes, turns = UNIT, 3 if isinstance(link.joint, Spherical) else 0
            if isinstance(link.joint, Revolute):
                k, turns = link.joint.k, 1
                axes = (UNIT[k], UNIT[(k + 1) % 3], UNIT[(k + 2) % 3])
            bodies = self.one[link.parent], self.one[n]
            sprung = self.model.joints[self.cluster.bodies[n]].stiffness != 0.0
            loaded = sprung or n in tied or name in self.inputs
            pins.append(_Pin(name, bodies, BodyAnchor(n, ZERO, axes), turns, loaded))
        for loop in geometry.loop_joints:
            kind, ends = self.kinds.get(loop.name, ""), (loop.predecessor, loop.successor)
            bodies = self.one[ends[0].body], self.one[ends[1].body]
            pins.append(_Pin(loop.name, bodies, ends[0], TURNS.get(kind, 0), False))
        return [each for each in pins if each.bodies[0] != each.bodies[1]]

    @cached_property
    def around(self) -> dict[int, dict[int, _Pin]]:
        """The neighbours of each body, and a joint to each."""
        around: dict[int, dict[int, _Pin]] = {}
        for pin in self.pins:
            for body in pin.bodies:
                around.setdefault(body, {}).setdefault(pin.beyond(body), pin)
        return around

    @cached_property
    def binary(self) -> frozenset[int]:
        """Bodies held by two joints only, but for the first links of limbs, at which loads act."""
        bodies = self.cluster.bodies
        carrying = {self.one[bodies.index(body)] for each in self.model.clusters
                    for body in each.outputs if body in bodies}  # fmt: skip
        free = {body for body, near in self.around.items()
                if len(near) == 2 and not any(pin.loaded for pin in near.values())}  # fmt: skip
        links = self.cluster.geometry.links
        carriers = map(bodies.index, limb_bodies(self.model)[self.cluster.index])
        limb = {self.one[n] for n in carriers if self.one[links[n].parent] == OUTSIDE}
        return frozenset(free - carrying - limb - {OUTSIDE})

    def branch(self, body: int) -> tuple[int, ...]:
        """The bodies from below the cluster's parent to a body."""
        way: list[int] = []
        while body != OUTSIDE:
            way.insert(0, body)
            body = self.cluster.geometry.links[body].parent
        return tuple(way)

    def points(self, at: Sequence[BodyAnchor], q: Array) -> tuple[Array, Array]:
        """Points (n, k, 3) of bodies in the axes of the cluster's parent; Jacobian (…, columns)."""
        still = BodyAnchor(OUTSIDE, ZERO, UNIT)
        rows = tuple(Coincident(k) for k in range(3))
        probes = [LoopJoint("", rows, still, each, ((), self.branch(each.body))) for each in at]
        alone = q.size == q.shape[-1]  # plain floats are ten times quicker than arrays
        place = q.ravel().tolist() if alone else unstack(q)
        found = evaluate_loops(self.cluster.geometry.links, probes, place)
        shape = (*q.shape[:-1], len(at), 3)
        jacobian = stack([x for row in found.jacobian for x in row], q.shape[:-1])
        return stack(found.values, q.shape[:-1]).reshape(shape), jacobian.reshape(*shape, -1)

    def axes(self, at: Sequence[BodyAnchor], q: Array) -> Array:
        """The first axes (n, k, 3) of anchors."""
        tips = [replace(each, point=plus(each.point, each.axes[0])) for each in at]
        ahead, behind = self.points(tips, q)[0], self.points(at, q)[0]
        return ahead - behind

    def rods(self) -> Iterator[Rod]:
        """Its rods."""
        for body in sorted(self.binary):
            one, other = (self.end_at(body, pin) for pin in self.around[body].values())
            hinges = [end.pins[0].point for end in (one, other) if end.turns == 1]
            if not hinges and one.turns + other.turns < SPATIAL:
                continue
            if min(one.turns, other.turns) == 0 or not self._parallel(hinges):
                continue
            line = np.ptp(self.points([one.pins[0].point, other.pins[0].point], self.start)[0], 0)
            if np.linalg.norm(line) > PARALLEL * self.cluster.geometry.scale:
                name = self.model.joints[self.cluster.bodies[body]].child
                yield Rod(name, body, (one, other), hinges[0] if hinges else None)
        for loop in self.cluster.geometry.loop_joints:
            if self.kinds.get(loop.name) == "rod":
                one, other = (
                    _End((_Pin(loop.name, (OUTSIDE, self.one[end.body]), end, 3, False),),
                         self.one[end.body])
                    for end in (loop.predecessor, loop.successor)
                )  # fmt: skip
                yield Rod(loop.name, None, (one, other), None)

    def end_at(self, body: int, pin: _Pin) -> _End:
        """The end with all joints about the same point, as of balls that are written as hinges."""
        pins, beyond = [pin], pin.beyond(body)
        while pins[-1].turns and beyond in self.binary:
            (following,) = (each for each in self.around[beyond].values() if each != pins[-1])
            both = [pins[-1].point, following.point]
            apart = np.linalg.norm(np.ptp(self.points(both, self.start)[0], axis=0))
            if not following.turns or apart > PARALLEL * self.cluster.geometry.scale:
                break
            if following.turns == pins[-1].turns == 1 and self._parallel(both):
                break
            pins.append(following)
            beyond = following.beyond(beyond)
        return _End(tuple(pins), beyond)

    def cylinder(self, name: str) -> Rod | None:
        """A slide as a rod between the pins of the two bodies that it joins, its carrier first."""
        if not isinstance(
            self.cluster.geometry.links[self.cluster.joints.index(name)].joint, Prismatic
        ):
            return None
        pin = next((each for each in self.pins if each.name == name), None)
        if pin is None:
            return None
        ends = []
        for body in pin.bodies:
            others = [each for each in self.around.get(body, {}).values()
                      if each is not pin and each.name not in self._beside_loops]  # fmt: skip
            if len(others) != 1 or not others[0].turns:
                return None
            ends.append(self.end_at(body, others[0]))
        hinges = [end.pins[0].point for end in ends if end.turns == 1]
        return Rod(name, None, (ends[0], ends[1]), hinges[0] if hinges else None)

    @cached_property
    def _beside_loops(self) -> frozenset[str]:
        """Joints that couplings alone move: of nuts, screws and rotors."""
        looped = self.cluster.geometry.looped_bodies
        return frozenset(x for n, x in enumerate(self.cluster.joints) if n not in looped)

    def load(self, rod: Rod, name: str, q: Array) -> float:
        """The force along a rod, times the cluster's size, where an input pushes with 1.

        Motors give nothing else, and joints of the limb hold. So Kᵀ λ + E h = -e: λ are forces in
        the loops, h those of the limb's joints, e the input's.
        """
        geometry, rows = self.cluster.geometry, list(self.cluster.closing_rows)
        jacobian = geometry.evaluate(q)[1][rows]
        limb = limb_bodies(self.model)[self.cluster.index]
        held = np.eye(geometry.nv)[columns_of(self.model, self.cluster, limb)]
        push = np.eye(geometry.nv)[column_of(self.cluster, name)]
        unit = ClusterMotion.of(self.model, self.cluster).unit
        forces = np.linalg.lstsq((np.concatenate([jacobian, held]) * unit).T, -push * unit)[0]
        multipliers = np.zeros(geometry.rows)
        multipliers[rows] = forces[: len(rows)]
        first, total = 0, np.zeros(3)
        places = self.points([end.pins[0].point for end in rod.ends], q[None])[0][0]
        line = (places[1] - places[0]) / np.linalg.norm(places[1] - places[0])
        for loop in geometry.loops:
            mine = multipliers[first : first + len(loop.rows)]
            first += len(loop.rows)
            if not isinstance(loop, LoopJoint):
                continue
            if rod.body is None:
                total += (loop.name == rod.name) * float(mine[0]) * line
                continue
            through = [self.one[n] for branch in loop.branches for n in branch]
            if rod.body in through:
                total += self._force(loop, mine, q)
        return abs(float(total @ line)) * geometry.scale

    def _force(self, loop: LoopJoint, multipliers: Array, q: Array) -> Array:
        """The force (3,) in a loop, by those of its rows."""
        geometry, h = self.cluster.geometry, 1.0
        shifted = []
        for k in range(3):
            x, y, z = (x + h * (i == k) for i, x in enumerate(loop.successor.point))
            point = (x, y, z)
            moved = replace(loop, successor=replace(loop.successor, point=point))
            shifted.append(evaluate_loops(geometry.links, [moved], q.tolist()).values)
        here = np.array(evaluate_loops(geometry.links, [loop], q.tolist()).values)
        along = (np.array(shifted) - here) / h @ multipliers  # in the body's axes
        axes = self.axes([replace(loop.successor, axes=(e, *UNIT[:2])) for e in UNIT], q[None])[0]
        return np.asarray(along @ axes)

    def _parallel(self, hinges: Sequence[BodyAnchor]) -> bool:
        """True if the axes of hinges are parallel at neutral."""
        if len(hinges) < 2:
            return True
        first, second = self.axes(hinges, self.start)
        return float(np.linalg.norm(np.cross(first, second))) <= PARALLEL

    # ---- inputs ----------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Joints of one freedom that motors move; without motors, see :func:`unpushed_inputs`."""
        single = [name for name, link in zip(self.cluster.joints, self.cluster.geometry.links,
                                             strict=True) if link.joint.nv == 1]  # fmt: skip
        looped = {self.cluster.joints[n] for n in self.cluster.geometry.looped_bodies}
        driven: dict[str, None] = {}
        for name in single:
            if name in self.pushed:
                behind = set() if name in looped else self._geared(name) & looped
                driven[behind.pop() if len(behind) == 1 else name] = None
        return tuple(driven) or unpushed_inputs(self.model, self.cluster)

    def _geared(self, name: str) -> set[str]:
        """The joint that a coupling of two joints relates to it, if there is one."""
        joints = self.cluster.joints
        related = [{joints[body] for body, _ in each.terms} for each in
                   self.cluster.geometry.linear]  # fmt: skip
        mine = [each - {name} for each in related if name in each]
        return mine[0] if len(mine) == 1 else set()

    def inputs_of(self, rod: Rod) -> tuple[str, ...]:
        """The inputs in a loop with the rod, else all."""
        near: set[str] = set()
        for loop in self.cluster.geometry.loop_joints:
            bodies = {body for branch in loop.branches for body in branch}
            if loop.name == rod.name or rod.body in {self.one[body] for body in bodies}:
                near |= {self.cluster.joints[body] for body in bodies}
        return tuple(name for name in self.inputs if name in near) or self.inputs

    def held(self, name: str) -> list[int]:
        """Columns held while an input moves: of other inputs, and of joints of the limb."""
        cluster = self.cluster
        single = [joint for joint, link in zip(cluster.joints, cluster.geometry.links, strict=True)
                  if link.joint.nv == 1]  # fmt: skip
        tree = [self.model.joints[body].name for body in limb_bodies(self.model)[cluster.index]]
        wanted = dict.fromkeys([name, *self.inputs, *tree])
        columns = [column_of(cluster, each) for each in wanted if each in single]
        motions = ClusterMotion.of(self.model, cluster).null(self.start)
        chosen: list[int] = []
        for column in columns:  # inputs that depend on others are not held
            if np.linalg.matrix_rank(motions[[*chosen, column]], tol=MOVES) > len(chosen):
                chosen.append(column)
        return chosen[1:] if chosen[:1] == columns[:1] else chosen


def unpushed_inputs(model: Model, cluster: Cluster) -> tuple[str, ...]:
    """The inputs of a linkage without motors: the joints of one freedom at which its loops begin.

    Those of limbs are inputs only where these are as many as its freedoms.
    """
    links = cluster.geometry.links
    branches = [branch for loop in cluster.geometry.loop_joints for branch in loop.branches]
    first = dict.fromkeys(branch[0] for branch in branches if branch)
    limb = {model.joints[body].name for body in limb_bodies(model)[cluster.index]}
    names = [cluster.joints[n] for n in first if links[n].joint.nv == 1]
    return tuple(name for name in names if len(names) == cluster.nv or name not in limb)


# ---- angles --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drive:
    """A rod while an input moves: ``base`` is the body that carries the input, ``end`` driven."""

    linkage: Linkage
    rod: Rod
    base: int
    end: int

    def angles(self, path: Path, q: Array) -> Array:
        """Transmission angles (n,) at spanning positions of a path; not-a-number at rest."""
        line, speeds = self.motion(path, q)
        driven = speeds[:, self.end]
        along = np.abs(np.sum(line * driven, axis=-1))
        across = np.linalg.norm(np.cross(line, driven), axis=-1)
        rests = np.linalg.norm(driven, axis=-1) <= RESTS * self.linkage.cluster.geometry.scale
        return np.where(rests, np.nan, np.arctan2(along, across))

    def motion(self, path: Path, q: Array) -> tuple[Array, Array]:
        """The line (n, 3), and its ends' velocities (n, 2, 3) relative to the base."""
        anchors = [end.pins[0].point for end in self.rod.ends]
        places, rates = self.linkage.points(anchors, q)
        motions = path.part.null(q, path.held) * path.part.unit[:, None]
        speeds = rates @ motions[:, None]
        if self.base != OUTSIDE:
            speeds -= self.carried(places, q, motions)
        if motions.shape[-1] > 1:  # beside the motion there are spins, which move neither end
            flat = speeds.reshape(len(q), 6, -1)
            first = np.linalg.svd(flat, full_matrices=False)[2][:, 0]
            speeds = np.einsum("nijk,nk->nij", speeds, first)[..., None]
        line, speeds = places[:, 1] - places[:, 0], speeds[..., 0]
        if self.rod.hinge is not None:
            axis = self.linkage.axes([self.rod.hinge], q)
            line = line - np.sum(line * axis[:, 0], axis=-1, keepdims=True) * axis[:, 0]
        return line, speeds

    def carried(self, places: Array, q: Array, motions: Array) -> Array:
        """Velocities (n, k, 3, …) of places as points of the base."""
        corners = [BodyAnchor(self.base, point, UNIT) for point in (ZERO, *UNIT)]
        at, rates = self.linkage.points(corners, q)
        speeds = rates @ motions[:, None]
        shares = (places - at[:, :1]) @ np.swapaxes(at[:, 1:] - at[:, :1], -1, -2)
        turned: Array = np.einsum("nki,nijm->nkjm", shares, speeds[:, 1:] - speeds[:, :1])
        return turned + speeds[:, :1]

    def moves(self, path: Path, q: Array) -> bool:
        """True if both ends move, and for a rod with hinges in its plane."""
        _, speeds = self.motion(path, q)
        sizes = np.linalg.norm(speeds, axis=-1)
        if np.min(np.max(sizes, axis=0)) <= RESTS * self.linkage.cluster.geometry.scale:
            return False
        if self.rod.hinge is None:
            return True
        axis = self.linkage.axes([self.rod.hinge], q)
        return bool(np.max(np.abs(np.sum(speeds * axis, axis=-1))) <= PARALLEL * np.max(sizes))


def transmissions(model: Model, cluster: Cluster) -> list[Transmission]:
    """The transmissions of a cluster's rods, by each input that moves them."""
    linkage = Linkage(model, cluster)
    found = []
    paths: dict[str, list[Path]] = {}
    for rod in linkage.rods():
        for name in linkage.inputs_of(rod):
            if name not in paths:
                paths[name] = list(_paths(linkage, name))
            drive = _drive(linkage, rod, name, paths[name][0]) if paths[name] else None
            if drive is not None and _transmits(drive, name, paths[name][0]):
                found.append(_transmission(drive, name, paths[name]))
    return found


def _transmits(drive: Drive, name: str, path: Path) -> bool:
    """True if a rod turns with an input, or is loaded where that pushes and the limb holds.

    Others only go along, as links that keep a hand level: their angles say nothing.
    """
    seen = path.q[:: max(1, len(path.q) // SEEN)]
    _, speeds = drive.motion(path, seen)
    size = drive.linkage.cluster.geometry.scale
    if np.max(np.linalg.norm(speeds[:, 1] - speeds[:, 0], axis=-1)) > RESTS * size:
        return True
    # a rod that carries less of an input's force transmits nothing
    return max(drive.linkage.load(drive.rod, name, q) for q in seen) > 1e-6


def _paths(linkage: Linkage, name: str) -> Iterator[Path]:
    """Paths of an input, with the others at neutral and at the ends of their ranges.

    They end at limits, and where the input turns back, not at dead points of other joints.
    """
    model, cluster, start = linkage.model, linkage.cluster, linkage.start
    column, held = column_of(cluster, name), linkage.held(name)
    line = path_along(model, cluster, column, held, start)
    if line is None:
        return
    yield line
    if 0 < len(held) < OTHERS:
        for other in at_ends(model, cluster, held, [column, *held], start):
            beside = path_along(model, cluster, column, held, other)
            if beside is not None:
                yield beside


def _drive(linkage: Linkage, rod: Rod, name: str, path: Path) -> Drive | None:
    """The end of a rod that an input drives; None if the rod does not move so."""
    seen = path.q[:: max(1, len(path.q) // SEEN)]
    base, moved = _frames(linkage, name, path, seen)
    drive = Drive(linkage, rod, base, 0)
    if not drive.moves(path, seen):
        return None
    away = _distances(linkage, moved, rod, _resting(drive, path, seen))
    one, other = (away.get(end.body, math.inf) for end in rod.ends)
    return replace(drive, end=0 if one > other else 1)


def _frames(linkage: Linkage, name: str, path: Path, seen: Array) -> tuple[int, int]:
    """The body that carries an input, and the one that it moves.

    What carries a cylinder is behind a pin of it, and at rest if one of both is, wherever the file
    cuts the loop; its barrel turns.
    """
    n = linkage.cluster.joints.index(name)
    carrier, moved = linkage.one[linkage.cluster.geometry.links[n].parent], linkage.one[n]
    cylinder = linkage.cylinder(name)
    if cylinder is None:
        return carrier, moved
    behind, ahead = (end.body for end in cylinder.ends)
    resting = _resting(Drive(linkage, cylinder, OUTSIDE, 0), path, seen)
    return (ahead, carrier) if ahead in resting and behind not in resting else (behind, moved)


def _resting(drive: Drive, path: Path, q: Array) -> set[int]:
    """The bodies at rest relative to the base."""
    linkage, rest = drive.linkage, {drive.base}
    motions = path.part.null(q, path.held) * path.part.unit[:, None]
    for body in {*linkage.one.values()} - rest:
        corners = [BodyAnchor(body, point, UNIT) for point in (ZERO, *UNIT)]
        places, rates = linkage.points(corners, q)
        speeds = rates @ motions[:, None]
        if drive.base != OUTSIDE:
            speeds = speeds - drive.carried(places, q, motions)
        if np.max(np.abs(speeds)) <= RESTS:
            rest.add(body)
    return rest


def _distances(linkage: Linkage, source: int, rod: Rod, out: set[int]) -> dict[int, int]:
    """Number of joints between bodies and the one that an input moves, not through the rod."""
    away, queue = {source: 0}, deque([source])
    while queue:
        body = queue.popleft()
        for other, pin in linkage.around.get(body, {}).items():
            if (
                other not in away
                and other not in out
                and rod.body != other
                and rod.name != pin.name
            ):
                away[other] = away[body] + 1
                queue.append(other)
    return away


def _transmission(drive: Drive, name: str, paths: Sequence[Path]) -> Transmission:
    """The angles of one rod, and their extremes over all paths of an input."""
    cluster, line = drive.linkage.cluster, paths[0]
    column, n = column_of(cluster, name), cluster.joints.index(name)
    return Transmission(
        cluster.name, drive.rod.name, drive.rod.ends[drive.end].pins[0].name, name,
        drive.linkage.model.joints[cluster.bodies[n]].type == "prismatic",
        np.asarray(line.q[:, line.part.place[column]]), drive.angles(line, line.q),
        extreme(drive, paths, column, 1.0), extreme(drive, paths, column, -1.0),
    )  # fmt: skip


def extreme(drive: Drive, paths: Sequence[Path], column: int, sign: float) -> Extreme:
    """The least of sign * angle on all paths of an input, at an end or between points of them."""
    turns = []
    for path in paths:
        angles = drive.angles(path, path.q)
        values = np.where(np.isfinite(angles), sign * angles, np.inf)
        around = np.r_[np.inf, values, np.inf]
        for n in np.flatnonzero((values < around[:-2]) & (values <= around[2:])).tolist():
            near = float(np.max(np.abs(np.diff(values[max(n - 1, 0) : n + 2])), initial=0.0))
            turns.append((float(values[n]), near, path, n))
    turns.sort(key=lambda each: (round(each[0], 9), abs(each[2].part.position(
        each[2].q[each[3]], column))))  # fmt: skip
    best, where = math.inf if turns else math.nan, paths[0].q[0]
    floor = 0.0 if sign > 0.0 else -math.pi / 2.0
    for value, near, path, n in turns:
        if max(value - near, floor) < best - SAME:  # another turn beside this point may lie lower
            angle, place = _turn(drive, path, sign, n)
            if angle < best - SAME:
                best, where = angle, path.at(place)
    return Extreme(sign * best, paths[0].part.position(where, column))


def _turn(drive: Drive, path: Path, sign: float, n: int) -> tuple[float, float]:
    """The least of sign * angle next to a point of a path, and its place."""
    from scipy.optimize import minimize_scalar

    low, high = max(n - 1, 0), min(n + 1, len(path.q) - 1)

    def at(place: float) -> float:
        angle = float(drive.angles(path, path.at(place)[None])[0])
        return sign * angle if math.isfinite(angle) else math.inf

    found = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": EXACT})
    place = min(max(float(found.x), low + 2.0 * FOLDED), high - 2.0 * FOLDED)
    angle, place = min((at(x), x) for x in (float(found.x), _fold(at, place)) if low <= x <= high)
    return (angle, place) if angle < at(n) - EXACT else (at(n), float(n))


def _fold(function: Callable[[float], float], x: float) -> float:
    """The intersection of the lines on both sides of a fold, where an angle is right or zero."""
    a, b, c, d = (function(x + n * FOLDED) for n in (-2.0, -1.0, 1.0, 2.0))
    bend = (d - c) - (b - a)
    return x + FOLDED * ((b - c + (b - a) + (d - c)) / bend if bend > 0.0 else 0.0)
