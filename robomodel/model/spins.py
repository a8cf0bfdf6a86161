"""Spins of rods between two ball joints: freedoms that rotate one body about its own line.

A body spins if a motion of its cluster leaves all others with mass or length and motors at rest,
and rotates the body about a line that is fixed in it. Halves of a rod that a loop welds together
count as one body, and so do parts that slide in each other, as cylinder and piston of a Stewart
platform's leg. No actuator and no other body takes part in a spin. One condition locks it: an axis
of the rod stays perpendicular to an axis of the body that carries it, which makes the ball a
universal joint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.description import AT_ORIGIN, ONE_DOF, Anchor, Description, Joint, Link, Loop, Pose
from robomodel.description.poses import (
    compose,
    inverse,
    rotation_of_quaternion,
    rows3,
    second_axis,
    vec,
)
from robomodel.errors import few
from robomodel.mechanism.closure import Geometry, ToNearest, close
from robomodel.mechanism.constraints import Coincident
from robomodel.mechanism.joints import Prismatic, Revolute, Spherical
from robomodel.model.actuators import Actuator
from robomodel.model.derived import cached_on_model, neutral_positions
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import value_of
from robomodel.spatial import Motion
from robomodel.tolerances import CLOSED, MOVES, WRITTEN

SPIN_SEED = 20240610
ONE_WAY = 0.9  # of the most that motions swing a rod: so much across, and it has no axis
DUMMY = 1e-7  # share of the robot's mass [kg, kg m²] up to which a body is a dummy


@dataclass(frozen=True, slots=True)
class Spin:
    """A rod's spin: its body, and the direction and a point of its line, in internal axes.

    ``joints`` are those that turn with it: balls, or the hinges that balls are written as.
    ``others``: bodies that are welded to it by loops, or slide in it.
    """

    body: int
    line: Array
    point: Array
    joints: frozenset[str]
    others: tuple[int, ...] = ()

    def coordinate(self, joints: Iterable[str]) -> str | None:
        """The joint of these that only turns the rod while the others rest, if there is one."""
        turning = [name for name in joints if name in self.joints]
        return turning[0] if len(turning) == 1 else None


@cached_on_model
def find_spins(model: Model) -> tuple[Spin, ...]:
    """The spins of a robot's rods, in the order of its clusters."""
    spins: list[Spin] = []
    for cluster in model.clusters:
        if cluster.implicit and _has_balls(model, cluster):
            found = _of_cluster(model, cluster, 0.0) or _of_cluster(model, cluster, DUMMY)
            spins += found if len(found) < cluster.nv else []  # all that moves is no rod's spin
    return tuple(spins)


@cached_on_model
def joints_of_balls(model: Model) -> frozenset[str]:
    """The joints that turn with spins of rods, locked or not, and other hinges of the same balls.

    A ball's hinges meet in a point, and have bodies without mass between them.
    """
    names, pairs = {name for spin in find_spins(model) for name in spin.joints}, []
    names |= model._balls
    for node, joint in zip(model.nodes, model.joints, strict=True):
        if node.parent < 0 or _weighs(model, node.parent):
            continue
        carrier = model.nodes[node.parent].joint
        meet = max(abs(value_of(x)) for x in node.offset) <= WRITTEN
        if meet and isinstance(node.joint, Revolute) and isinstance(carrier, Revolute):
            pairs.append({model.joints[node.parent].name, joint.name})
    for pair in [*pairs, *reversed(pairs)]:
        names |= pair if pair & names else set()
    return frozenset(names)


def _has_balls(model: Model, cluster: Cluster) -> bool:
    """True if a cluster may have ball joints: a joint or loop with three freedoms, or hinges.

    Three hinges that form a ball have two bodies without mass between them.
    """
    geometry = cluster.geometry
    balls = any(isinstance(link.joint, Spherical) for link in geometry.links)
    balls |= sum(not _weighs(model, body) for body in cluster.bodies) > 1
    return balls or any(
        len(loop.rows) == 3 and all(isinstance(row, Coincident) for row in loop.rows)
        for loop in geometry.loop_joints
    )


def _of_cluster(model: Model, cluster: Cluster, share: float) -> list[Spin]:
    """The spins of a cluster.

    Bodies with less than this share of the robot's mass do not count, unless they have a length.
    """
    geometry = cluster.geometry
    rng = np.random.default_rng(SPIN_SEED)
    rows = list(cluster.closing_rows)
    unit = cluster.geometry.unit
    heavy = [i for i, body in enumerate(cluster.bodies) if _counts(model, body, share)]
    driven = {
        row - cluster.spanning_v.start
        for actuator in _file_actuators(model)
        for row, _ in actuator.rows
        if cluster.spanning_v.start <= row < cluster.spanning_v.stop
    }

    start = np.array(cluster.start)
    still = _Place(geometry, start, _motions(cluster, start), unit)

    @cache
    def others() -> list[_Place]:
        """Further configurations of the cluster: a line must be the same there."""
        steps = rng.standard_normal((3, cluster.nv)) @ still.motions
        steps *= 0.2 / np.linalg.norm(steps, axis=1, keepdims=True)
        moved = geometry.integrate(start, steps * unit)
        q, gap = close(geometry, moved, ToNearest(), rows=rows)
        return [_Place(geometry, x, _motions(cluster, x), unit) for x in q[gap <= CLOSED]]

    result: list[Spin] = []
    turning: set[int] = set()
    for body, *halves in [
        *_rods(model, cluster, heavy),
        *_rods(model, cluster, heavy, slides=True),
    ]:
        if turning & {body, *halves}:
            continue
        resting = [other for other in heavy if other not in (body, *halves)]
        line = still.line(body, resting, driven)
        if line is None:
            continue
        elsewhere = [place.line(body, resting, driven) for place in others()]
        if all(_same(line, other, geometry.scale) for other in elsewhere):
            rotation, origin = still.poses[body]
            axis, at = rotation @ line.direction, origin + rotation @ line.point
            ball = _ball(model, cluster, body, axis, still.poses, still.twists)
            if ball is None or np.linalg.norm(np.cross(ball.center - at, axis)) > (
                WRITTEN * geometry.scale
            ):
                continue  # no rod: a free body that turns on a hinge of what it carries
            moves = np.any([each.rates > MOVES for each in (line, *elsewhere) if each], axis=0)
            joints = frozenset(
                name for name, link in zip(cluster.joints, geometry.links, strict=True)
                if np.any(moves[list(link.freedoms)])
            )  # fmt: skip
            others_of = tuple(cluster.bodies[half] for half in halves)
            result.append(Spin(cluster.bodies[body], line.direction, line.point, joints, others_of))
            turning |= {body, *halves}
    return result


def _rods(
    model: Model, cluster: Cluster, heavy: Sequence[int], *, slides: bool = False
) -> list[list[int]]:
    """Groups of bodies with mass that loops weld together, by their indices in the cluster.

    With ``slides``, also of those that a joint or a loop lets slide in each other.
    """
    group = {body: body for body in range(len(cluster.bodies))}
    local = {body: n for n, body in enumerate(cluster.bodies)}
    pairs = []
    for loop in model.loops:
        ends = [local.get(model.frame(x).body, -1) for x in (loop.predecessor, loop.successor)]
        if loop.type == "fixed" or (slides and loop.type == "prismatic"):
            pairs.append(ends)
    if slides:
        pairs += [
            [n, link.parent]
            for n, link in enumerate(cluster.geometry.links)
            if isinstance(link.joint, Prismatic)
        ]
    for ends in pairs:
        if min(ends) >= 0:
            one, other = (group[end] for end in ends)
            group = {body: one if of == other else of for body, of in group.items()}
    groups: dict[int, list[int]] = {}
    for body in heavy:
        groups.setdefault(group[body], []).append(body)
    return list(groups.values())


class _Line(NamedTuple):
    """The line about which a body rotates, in its axes, and the rates at which joints turn then."""

    direction: Array
    point: Array
    rates: Array


def _same(one: _Line, other: _Line | None, size: float) -> bool:
    """True if two lines of a body are the same."""
    if other is None:
        return False
    apart = np.linalg.norm(np.cross(other.point - one.point, one.direction))
    tilt = np.linalg.norm(np.cross(one.direction, other.direction))
    return bool(tilt < WRITTEN and apart < WRITTEN * size)


class _Place:
    """A cluster at a configuration q: poses, twists and motions (mobility, nv), of units apart."""

    def __init__(self, geometry: Geometry, q: Array, motions: Array, unit: Array) -> None:
        self.motions, self._unit, self._scale = motions, unit, geometry.scale
        self.poses, self.twists = kinematics(geometry, q)

    def line(self, body: int, resting: Sequence[int], driven: set[int]) -> _Line | None:
        """The line about which a body alone rotates."""
        motions, scale = self.motions, self._scale
        scaled = self.twists * self._unit / np.array([1.0, 1.0, 1.0, *[scale] * 3])[:, None]
        others = [scaled[other] @ motions.T for other in resting]
        others.append(motions[:, sorted(driven)].T)
        singular, right = np.linalg.svd(np.concatenate(others), full_matrices=True)[1:]
        if len(motions) - int(np.sum(singular > MOVES)) != 1:
            return None
        motion = right[-1] @ motions
        twist = self.twists[body] @ (motion * self._unit)
        omega, velocity = twist[:3], twist[3:]
        size = float(np.linalg.norm(omega))
        if size < MOVES or abs(omega @ velocity) > WRITTEN * size**2 * scale:
            return None
        rotation, origin = self.poses[body]
        line, slide = omega / size, velocity / size
        point = np.cross(line, slide)
        point = point + line * (line @ (origin - point))  # nearest to the body's origin
        inside = rotation.T @ line
        sign = np.sign(inside[int(np.argmax(np.abs(inside)))])
        return _Line(sign * inside, rotation.T @ (point - origin), np.abs(motion))


def kinematics(geometry: Geometry, q: Array) -> tuple[list[tuple[Array, Array]], Array]:
    """Poses of a cluster's bodies in their common ancestor, and their twists by joint velocities.

    Poses are (rotation, origin). Twists (bodies, 6, nv) are angular velocities, then the linear
    velocities of the body's point at the ancestor's origin.
    """
    poses: list[tuple[Array, Array]] = []
    twists = np.zeros((len(geometry.links), 6, geometry.nv))
    at = q.tolist()
    for i, link in enumerate(geometry.links):
        step = link.transform(at)
        rotation, origin = np.array(step.matrix(), float), np.array(step.offset, float)
        if link.parent >= 0:
            above, base = poses[link.parent]
            rotation, origin = above @ rotation, base + above @ origin
            twists[i] = twists[link.parent]
        poses.append((rotation, origin))
        for n, motion in enumerate(link.joint.subspace):
            omega = rotation @ np.array(motion.angular, float)
            slide = rotation @ np.array(motion.linear, float)
            twists[i, :, link.v + n] = [*omega, *(slide + np.cross(origin, omega))]
    return poses, twists


def locked(description: Description, model: Model, spins: Sequence[Spin]) -> Description:
    """The description with one more loop for each spin: a universal joint at the rod's ball.

    The ball itself stays. The loop's condition, a cosine, changes with the spin one for one at the
    file's configuration, and less where the rod is tilted towards the carrier's axis: this is the
    one about which the rod swings most (:func:`_swung_about`). Loops with spins close from where
    they are at neutral. A joint that stands for a spin alone is no longer marked independent.
    """
    names = {loop.name for loop in description.loops}
    elements = {joint.name: joint for joint in description.joints}
    placements = {frame.name: frame.placement for frame in model.frames}
    loops = []
    for spin in spins:
        ball, axes = _universal(model, spin)
        rod = elements[model.joints[spin.body].name]
        ends = []
        for link, (turn, at) in ((ball.carrier, ball.base), (ball.link, ball.pose)):
            on_body = Pose(vec(turn.T @ (ball.center - at)), rows3(turn.T @ axes))
            ends.append(Anchor(link, compose(inverse(placements[link]), on_body)))
        name = f"spin of {rod.name}"
        while name in names:
            name += "'"
        loops.append(
            Loop(
                name, "universal", ends[0], ends[1], axis2=(0.0, 1.0, 0.0), source=rod.source,
                added=True,
            )
        )  # fmt: skip
    moving = {name for spin in spins
              for name in model.clusters[model.nodes[spin.body].cluster].joints}  # fmt: skip
    start, marked = neutral_positions(model), [x.name for x in description.joints if x.independent]
    standing = {spin.coordinate(marked) for spin in spins}
    joints = tuple(
        replace(
            each,
            initial=start[each.name],
            independent=False if each.name in standing else each.independent,
        )
        if each.name in moving and each.type in ONE_DOF
        else each
        for each in description.joints
    )
    return replace(description, joints=joints, loops=(*description.loops, *loops))


_Frame = tuple[Array, Array]  # rotation, origin


class _Ball(NamedTuple):
    """A ball between two links, at a cluster's start: poses of their bodies, and its center.

    ``turns`` (3, nv): angular velocities of the rod on what carries it.
    """

    carrier: str
    base: _Frame
    link: str
    pose: _Frame
    center: Array
    turns: Array


def _universal(model: Model, spin: Spin) -> tuple[_Ball, Array]:
    """A rod's ball as a universal joint at its cluster's start.

    Its axes are: on what carries the rod, on the rod, the rod's line.
    """
    cluster = model.clusters[model.nodes[spin.body].cluster]
    place = kinematics(cluster.geometry, np.array(cluster.start))
    local = spin.body - cluster.bodies[0]
    line = place[0][local][0] @ spin.line
    ball = _ball(model, cluster, local, line, *place)
    assert ball is not None  # spins have one
    first = _swung_about(model, cluster, line, ball.turns)
    if first is None:
        rotation = ball.base[0]
        first = np.cross(line, rotation[:, int(np.argmin(np.abs(rotation.T @ line)))])
        first /= np.linalg.norm(first)
    return ball, np.stack([first, np.cross(line, first), line], axis=1)


def _ball(
    model: Model, cluster: Cluster, local: int, line: Array, poses: list[_Frame], twists: Array
) -> _Ball | None:
    """A ball of a rod with this line: of the tree, or of a loop, as where the rod floats.

    ``local``: the rod's place in the cluster. None if there is no ball. In the tree it is
    joints that meet in the origin of one link, with bodies without mass between.
    """
    links, rod = cluster.geometry.links, cluster.bodies[local]
    elements = {joint.name: joint for joint in model.description.joints}

    def between(carrier: str, above: int, link: str, below: int, center: Array) -> _Ball:
        turns = (twists[below] - twists[above] if above >= 0 else twists[below])[:3]
        base = (np.eye(3), np.zeros(3)) if above < 0 else poses[above]
        return _Ball(carrier, base, link, poses[below], center, turns)

    def moved(body: int, center: Array) -> tuple[Array, Array]:
        """By a joint: angular velocities (3, nv), and velocities of a point of what it carries."""
        own = twists[body][:, list(links[body].freedoms)]
        return own[:3], own[3:] + np.cross(own[:3], center, axisa=0, axisc=0)

    below, size = local, cluster.geometry.scale
    while below >= 0 and (below == local or not _counts(model, cluster.bodies[below])):
        above, center, ways = below, poses[below][1], np.zeros((3, 0))
        while above >= 0 and (above == below or not _counts(model, cluster.bodies[above])):
            turning, sliding = moved(above, center)
            if np.max(np.abs(sliding), initial=0.0) > WRITTEN * size:
                break
            ways, top, above = np.hstack([ways, turning]), above, links[above].parent
        if np.linalg.norm(line - ways @ np.linalg.pinv(ways) @ line) < WRITTEN:
            joints = [elements[model.joints[cluster.bodies[body]].name] for body in (top, below)]
            return between(joints[0].parent, above, joints[1].child, below, center)
        below = links[below].parent

    frames = {frame.name: frame for frame in model.frames}
    rotation, origin = poses[local]
    balls = [loop for loop in model.description.loops if loop.type == "spherical"]
    ends = [(loop.predecessor, loop.successor) for loop in balls]
    for mine, other in [*ends, *((two, one) for one, two in ends)]:
        body = frames[other.link].body
        inside = body in cluster.bodies
        if frames[mine.link].body == rod and not (inside and not _counts(model, body)):
            at = compose(frames[mine.link].placement, mine.origin).xyz
            above = body - cluster.bodies[0] if inside else -1
            return between(other.link, above, mine.link, local, origin + rotation @ np.array(at))
    return None


def _swung_about(model: Model, cluster: Cluster, line: Array, turns: Array) -> Array | None:
    """The axis about which most of a cluster's motions at its start swing a line.

    ``turns`` (3, nv): angular velocities of its rod. None where none, or two, swing it most.
    """
    ways = turns * cluster.geometry.unit @ _motions(cluster, np.array(cluster.start)).T
    swings, sizes, _ = np.linalg.svd(np.cross(line, ways, axisb=0, axisc=0))
    if sizes[0] <= MOVES or sizes[1:2].sum() > ONE_WAY * sizes[0]:
        return None
    axis = np.cross(line, swings[:, 0])
    return np.asarray(axis / np.linalg.norm(axis))


def _motions(cluster: Cluster, q: Array) -> Array:
    """A cluster's orthonormal motions (mobility, nv) at q, in comparable units."""
    unit, rows = cluster.geometry.unit, list(cluster.closing_rows)
    right: Array = np.linalg.svd(cluster.geometry.evaluate(q)[1][rows] * unit)[2]
    return right[cluster.geometry.nv - cluster.nv :]


def hinged(model: Model) -> Description:
    """The description with two hinges in place of each rod's ball joint in the tree.

    The hinges form a universal joint, without the rod's spin: their axes are perpendicular to each
    other and, at the neutral configuration, to the rod's line. Both have the ball's damping and
    armature, which is exact, as their axes stay perpendicular. Rods on hinges, and balls with
    springs, do not change.
    """
    elements = {joint.name: joint for joint in model.description.joints}
    placements = {frame.name: frame.placement for frame in model.frames}
    start = neutral_positions(model)
    axes_of: dict[str, Array] = {}  # of the universal joint, in the rods' axes
    for spin in find_spins(model):
        rod = elements[model.joints[spin.body].name]
        found, axes = _universal(model, spin)
        axes_of[rod.name] = np.array(placements[rod.child].rotation).T @ found.pose[0].T @ axes
    locks = {}
    for loop in model.description.loops:
        for joint in elements.values():
            ends = (loop.predecessor.link, loop.successor.link)
            if loop.type == "universal" and ends == (joint.parent, joint.child):
                first, second = np.array(loop.axis), np.array(second_axis(loop))
                axes = np.stack([first, second, np.cross(first, second)], axis=1)
                axes_of[joint.name] = np.array(loop.successor.origin.rotation) @ axes
                locks[joint.name] = loop
    hinges: dict[str, tuple[Joint, Joint]] = {}
    for name, (first, second) in ((name, x.T[:2]) for name, x in axes_of.items()):
        ball = elements[name]
        if ball.type != "spherical" or ball.stiffness:
            continue
        turn = Pose(rotation=rotation_of_quaternion(*start[name]))
        plain = replace(ball, type="continuous", independent=None)
        middle, origin = f"{name}.hinge", compose(ball.origin, turn)
        hinges[name] = (
            replace(plain, name=f"{name}.x", child=middle, origin=origin, axis=vec(first)),
            replace(
                plain, name=f"{name}.y", parent=middle, origin=AT_ORIGIN,
                axis=vec(second),
            ),
        )  # fmt: skip
    joints = [each for joint in elements.values() for each in hinges.get(joint.name, (joint,))]
    between = [Link(first.child, source=first.source) for first, _ in hinges.values()]
    replaced = [loop for name, loop in locks.items() if name in hinges]
    return replace(
        model.description,
        links=(*model.description.links, *between),
        joints=tuple(joints),
        loops=tuple(loop for loop in model.description.loops if loop not in replaced),
    )


def without_spins(model: Model, spins: Sequence[Spin]) -> Model:
    """The model without the actuators that are only assumed to turn rods about themselves.

    Files without transmissions name no motors: each independent joint with an effort limit counts
    as driven. In a ball that is written as hinges one of them may be independent. Nor do limits
    make actuators in a linkage with as many motors on other joints as it has freedoms beside spins.
    """
    if model.description.transmissions:
        return model
    named = {joint.name for joint in model.description.joints if joint.motor}
    independent = [joint.name for joint in model.joints if joint.independent]
    turning = {spin.coordinate(independent) for spin in spins} - named
    for cluster in model.clusters:
        count = sum(spin.body in cluster.bodies for spin in spins)
        if count and len(named.intersection(cluster.joints)) >= cluster.nv - count:
            turning |= {
                x.joint for x in model.actuators
                if x.joint in cluster.joints and x.joint == x.terms[0][0] and x.joint not in named
            }  # fmt: skip
    return replace(model, actuators=tuple(x for x in model.actuators if x.joint not in turning))


def _file_actuators(model: Model) -> tuple[Actuator, ...]:
    """The actuators of the file's transmissions: without them, actuators are only assumed."""
    return model.actuators if model.description.transmissions else ()


def spin_note(model: Model, spins: Sequence[Spin], state: str) -> str:
    """A note on the numbers of motors and freedoms, and on the spins among these."""
    names = [model.joints[spin.body].name for spin in spins]
    count = f"{len(names)} are spins" if len(names) > 1 else "1 is the spin"
    rods = "rods" if len(names) > 1 else "a rod"
    motors = f"{len(_file_actuators(model))} motors, " if _file_actuators(model) else ""
    return (
        f"{motors}{model.nv} freedoms: {count} of {rods} between two balls "
        f"({few(names, 8)}), {state}"
    )


def without_inertia(model: Model, spins: Sequence[Spin]) -> list[Joint]:
    """The joints of rods that have no inertia about their lines: nothing resists their spins."""
    elements = {joint.name: joint for joint in model.description.joints}
    found = []
    for spin in spins:
        turn = Motion(vec(spin.line), vec(np.cross(spin.point, spin.line)))
        inertia = value_of((model.nodes[spin.body].inertia * turn).dot(turn))
        held = any(elements[name].armature or elements[name].rotor for name in spin.joints)
        if not (held or inertia or any(_weighs(model, body, 0.0) for body in spin.others)):
            found.append(elements[model.joints[spin.body].name])
    return found


def bracing_notes(model: Model, spins: Sequence[Spin]) -> list[str]:
    """Notes on linkages with motors on more joints than they have freedoms, without spins."""
    driven = {name for actuator in _file_actuators(model) for name, _ in actuator.terms}
    notes = []
    for cluster in model.clusters:
        motors = [name for name in cluster.joints if name in driven]
        turning = sum(spin.body in cluster.bodies for spin in spins)
        freedoms = cluster.nv - turning
        if cluster.implicit and len(motors) > freedoms:
            words = f"{freedoms} {'freedom' if freedoms == 1 else 'freedoms'}"
            notes.append(
                f"cluster '{cluster.name}': {len(motors)} driven joints ({few(motors, 8)}), "
                f"{words}{' beside spins' if turning else ''}: motors brace each other. Check the "
                "loops, or name the motors that there are"
            )
    return notes


def _counts(model: Model, body: int, share: float = DUMMY) -> bool:
    """True if a body has inertia or a length: parts of balls that are written as hinges do not."""
    return _weighs(model, body, share) or body in _long(model)


@cached_on_model
def _long(model: Model) -> frozenset[int]:
    """Bodies with joints, or ends of loops, away from the joint that carries them."""
    frames = {frame.name: frame for frame in model.frames}
    points = [(node.parent, tuple(map(value_of, node.offset))) for node in model.nodes]
    for loop in model.description.loops:
        for end in (loop.predecessor, loop.successor):
            frame = frames[end.link]
            points.append((frame.body, compose(frame.placement, end.origin).xyz))
    return frozenset(body for body, at in points if max(map(abs, at)) > WRITTEN)


def _weighs(model: Model, body: int, share: float = DUMMY) -> bool:
    """True if a body has inertia; exporters' dummies of 1e-9 kg between hinges have none."""
    inertia = model.nodes[body].inertia
    least = share * model.mass
    moments = [abs(value_of(x)) for row in inertia.inertia for x in row]
    return value_of(inertia.mass) > least or max(moments) > least
