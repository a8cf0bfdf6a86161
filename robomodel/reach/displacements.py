"""Errors of position of a cluster's links where some of its joints move alone, as in an open tree.

Squares of distances are weighted by mass: they are those of bodies' pseudo-inertias, with what
hangs on each.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.graph import WORLD
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.rotors import body_pseudo_inertia, rotors
from robomodel.scalars import stack, unstack, value_of
from robomodel.tolerances import SAME

PAYLOAD = 0.1  # of the cluster's mass: a massless link that closes no loop, as a foot or tool
NO_MASS = 1e-4  # of the robot's mass


@dataclass(frozen=True, eq=False)
class Displacements:
    """Errors of position of a cluster's links, and of what hangs on it, in an open tree.

    ``inertias`` (bodies, 4, 4) are pseudo-inertias of the cluster's bodies with what they carry, in
    internal axes.
    """

    model: Model
    cluster: Cluster
    start: Array
    rotors: Mapping[int, float]
    inertias: Array

    @classmethod
    def of(cls, model: Model, cluster: Cluster, start: Array) -> Displacements:
        """The choice in a cluster; ``start`` are its spanning positions at neutral."""
        spanning = [value_of(x) for x in model.spanning_positions(model.neutral().tolist())]
        carried = [body_pseudo_inertia(model, body) for body in range(len(model.nodes))]
        for body, tools in _payloads(model).items():
            carried[body] = carried[body] + tools
        inside = set(cluster.bodies)
        for body in reversed(range(cluster.bodies[0], len(model.nodes))):
            node = model.nodes[body]
            if body not in inside and node.parent != WORLD:
                x = node.transform(spanning)
                pose = np.eye(4)
                pose[:3, :3], pose[:3, 3] = np.array(x.matrix()), np.array(x.offset)
                carried[node.parent] = carried[node.parent] + pose @ carried[body] @ pose.T
        inertias = np.array([carried[body] for body in cluster.bodies])
        return cls(model, cluster, start, rotors(model, cluster), inertias)

    def locked(self, positions: Array, bodies: Sequence[int]) -> Array:
        """The positions with all joints of the cluster but these bodies' at neutral."""
        result = np.tile(self.start, (len(positions), 1))
        for body, link in zip(self.cluster.bodies, self.cluster.geometry.links, strict=True):
            if body in bodies or body in self.rotors:
                result[:, link.positions] = positions[:, link.positions]
        return result

    def squares(self, at: Array, there: Array, some: Sequence[int] | None = None) -> Array:
        """The mean of Σ m d² of each body (bodies,), or of ``some``, between their poses."""
        count, n = at.shape[:2]
        error = (there - at).reshape(count, 3 * n, 4)
        moments = np.swapaxes(error, 1, 2) @ error / n
        inertias = self.inertias if some is None else self.inertias[some]
        return np.asarray(np.einsum("bij,bij->b", inertias, moments))

    def size(self, squares: Array) -> float:
        """The root mean square by mass [m] of squares of all bodies; 0 without mass."""
        mass = float(np.sum(self.inertias[:, 3, 3]))
        return math.sqrt(max(float(np.sum(squares)), 0.0) / mass) if mass else 0.0

    def of_heavy(self, squares: Array) -> float:
        """The same by squares of masses [m]: where rods are locked to is for the file to say."""
        mass = self.inertias[:, 3, 3]
        total = float(mass @ mass)
        return math.sqrt(max(float(mass @ squares), 0.0) / total) if total else 0.0

    def of_links(self, positions: Array, moved: Array) -> tuple[float, tuple[str, float, float]]:
        """The root mean square; the body with the largest error, that, and its largest turn."""
        mass, (here, gone) = self.inertias[:, 3, 3], (poses(self.cluster, x) for x in
                                                      (positions, moved))  # fmt: skip
        error = gone - here
        squares = np.einsum("bnij,bnij->bn", error @ self.inertias[:, None], error)
        worst = np.sqrt(
            np.maximum(np.max(squares, axis=1), 0.0) / np.where(mass > 0.0, mass, np.inf)
        )
        body = int(np.argmax(worst >= (1.0 - SAME) * np.max(worst)))  # the first of equals
        name = self.model.nodes[self.cluster.bodies[body]].name
        at, there = (x[body, :, :, :3] for x in (here, gone))
        cosine = (np.einsum("nij,nij->n", at, there) - 1.0) / 2.0
        turn = float(np.max(np.arccos(np.clip(cosine, -1.0, 1.0))))
        return self.size(self.squares(here, gone)), (name, float(worst[body]), turn)


@dataclass(frozen=True, eq=False)
class States:
    """Configurations of a cluster, the first at the start, and what sets of joints are ranked by.

    ``positions`` (n, nq) are spanning positions. ``at`` (bodies, n, 3, 4): the bodies' poses, and
    ``still`` with all joints locked at the start but rotors'. ``apart``: squares between, as of
    :meth:`Displacements.squares`. ``moving`` and ``resting``: each body's pose in the one
    before it, as it is and at the start.
    """

    displacements: Displacements
    positions: Array
    at: Array
    still: Array
    apart: Array
    moving: Sequence[Array]
    resting: Sequence[Array]

    @classmethod
    def of(cls, displacements: Displacements, positions: Array) -> States:
        """The states at spanning positions (n, nq)."""
        cluster, every = displacements.cluster, range(len(displacements.cluster.bodies))
        moving = list(steps(cluster, positions, every))
        resting = list(steps(cluster, displacements.start[None], every))
        turned = [
            move if body in displacements.rotors else rest
            for body, move, rest in zip(cluster.bodies, moving, resting, strict=True)
        ]
        at = np.empty((len(every), len(positions), 3, 4))
        at = placed(cluster, dict(enumerate(moving)), at)
        still = placed(cluster, dict(enumerate(turned)), at)
        apart = displacements.squares(at, still)
        return cls(displacements, positions, at, still, apart, moving, resting)

    def _share(self, squares: Array) -> float:
        """The square of such a distance, of that where all are locked."""
        locked = self.displacements.of_heavy(self.apart) or 1.0  # links without mass
        return (self.displacements.of_heavy(squares) / locked) ** 2

    def displaced(self, bodies: Collection[int]) -> tuple[float, float]:
        """How far links are from ``at``, and from ``still``, where these bodies' joints move alone.

        As squares, of that where all are locked.
        """
        cluster, rotors = self.displacements.cluster, self.displacements.rotors
        anew = {n: (self.moving if cluster.bodies[n] in {*bodies, *rotors} else self.resting)[n]
                for n in places_carried(cluster, bodies)}  # fmt: skip
        there, some = poses_anew(cluster, anew, self.still), list(anew)
        far, carried = self.apart.copy(), np.zeros_like(self.apart)  # others are still
        for squares, before in ((far, self.at), (carried, self.still)):
            squares[some] = self.displacements.squares(before[some], there, some)
        return self._share(far), self._share(carried)

    def led(self, bodies: Sequence[int]) -> float:
        """How far links are from ``at`` where other joints are quadratic functions of these.

        As squares, of that where all are locked.
        """
        cluster, columns = self.displacements.cluster, dict[int, int]()
        for body, link in zip(cluster.bodies, cluster.geometry.links, strict=True):
            if link.joint.nq == 1:
                columns[body] = link.q
        others = [c for body, c in columns.items() if body not in bodies]
        if not {*bodies} <= columns.keys():
            return self.displaced(bodies)[0]
        moved = self.displacements.locked(self.positions, bodies)
        x = moved[:, [columns[b] for b in bodies]] - moved[0, [columns[b] for b in bodies]]
        pairs = combinations_with_replacement(x.T, 2)
        of = np.column_stack([x, *(one * other for one, other in pairs)])
        away = self.positions[:, others] - self.positions[0, others]
        moved[:, others] = self.positions[0, others] + of @ np.linalg.lstsq(of, away)[0]
        there = poses(cluster, moved)
        return self._share(self.displacements.squares(self.at, there))


def poses(
    cluster: Cluster, positions: Array, known: Array | None = None, moved: Collection[int] = ()
) -> Array:
    """Poses (bodies, n, 3, 4) of a cluster's bodies in what carries it, at spanning positions.

    ``known``: those at positions from which the joints of ``moved`` bodies alone differ.
    """
    every = range(len(cluster.bodies))
    anew = every if known is None else places_carried(cluster, moved)
    if known is None:
        known = np.empty((len(cluster.bodies), len(positions), 3, 4))
    return placed(cluster, dict(zip(anew, steps(cluster, positions, anew), strict=True)), known)


def places_carried(cluster: Cluster, moved: Collection[int]) -> list[int]:
    """The places in a cluster of moved bodies, and of those that they carry."""
    found = list[int]()
    for n, (body, link) in enumerate(zip(cluster.bodies, cluster.geometry.links, strict=True)):
        if body in moved or link.parent in found:
            found.append(n)
    return found


def steps(cluster: Cluster, positions: Array, some: Iterable[int]) -> Iterator[Array]:
    """Poses (n, 4, 4) of some bodies of a cluster in the bodies before them."""
    at = unstack(positions)
    for link in (cluster.geometry.links[n] for n in some):
        x, pose = link.transform(at), np.zeros((len(positions), 4, 4))
        entries = [entry for row in x.matrix() for entry in row]
        pose[:, :3, :3] = stack(entries, (len(positions),)).reshape(-1, 3, 3)
        pose[:, :3, 3] = stack(x.offset, (len(positions),))
        pose[:, 3, 3] = 1.0
        yield pose


def placed(cluster: Cluster, anew: Mapping[int, Array], known: Array) -> Array:
    """Poses (bodies, n, 3, 4) of all bodies, some of them ``anew``, as of :func:`poses_anew`."""
    result = known.copy()
    result[list(anew)] = poses_anew(cluster, anew, known)
    return result


def poses_anew(cluster: Cluster, anew: Mapping[int, Array], known: Array) -> Array:
    """Poses (len(anew), n, 3, 4) of bodies, from those before them, of which others are known.

    ``anew`` are as of :func:`steps`, or one (1, 4, 4) for all n; first those before others.
    """
    result, places = np.empty((len(anew), *known.shape[1:])), {n: k for k, n in enumerate(anew)}
    for k, (n, step) in enumerate(anew.items()):
        above = cluster.geometry.links[n].parent
        before = result[places[above]] if above in places else known[above]
        if above < 0:
            result[k] = step[:, :3]
        elif len(step) == 1:  # one product for all
            result[k] = (before.reshape(-1, 4) @ step[0]).reshape(before.shape)
        else:
            np.matmul(before, step, out=result[k])
    return result


def _payloads(model: Model) -> Mapping[int, Array]:
    """Pseudo-inertias that stand for massless links that close no loop (foot, tool), by body."""
    described = model.description
    ends = {end.link for loop in described.loops for end in (loop.predecessor, loop.successor)}
    names = {body.name for body in model.bodies}
    result: dict[int, Array] = {}
    for link in described.links:
        light = link.inertial is None or link.inertial.mass < NO_MASS * model.mass
        if not light or link.name in ends or link.name in names:
            continue
        frame = model.frame(link.name)
        if frame.body != WORLD and model.bodies[frame.body].mass > 0.0:
            place = np.array([*map(value_of, frame.pose.offset), 1.0])
            more = PAYLOAD * model.mass * np.outer(place, place)
            result[frame.body] = result.get(frame.body, np.zeros((4, 4))) + more
    return result
