"""From an SDF file's joints, which connect links in any order, to a tree of joints and its loops.

A link may be the child of several joints, or of none. :func:`span` chooses the joints of the tree;
the others close loops. A joint that the tree passes from child to parent is reversed: its links
change places and its axis its sign, so that its position stays what the file means.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from robomodel.description import Joint, Pose
from robomodel.parsers.sdf.axes import AxisMimic
from robomodel.parsers.sdf.frames import Frame
from robomodel.poses import displacement

_NOTHING = 9  # rank of what a link carries that carries nothing
RANKS = {"fixed": 0, "universal": 2, "revolute2": 2, "ball": 3}  # others have 1


@dataclass(frozen=True, slots=True)
class Step:
    """One of the simple joints that a joint of the file is made of.

    ``joint`` has no links and no place yet; its axis is in the frame of the file's joint.
    ``position`` is where it stands in the file's poses: 0 and no turn unless the file says
    otherwise, as files written from models do whose loops are not closed at zero.
    """

    joint: Joint
    mimic: AxisMimic | None = None
    position: tuple[float, ...] | None = None

    def backward(self) -> Step:
        """The step from the child to the parent."""
        x, y, z = self.joint.axis
        return replace(self, joint=replace(self.joint, axis=(0.0 - x, 0.0 - y, 0.0 - z)))

    @property
    def standing(self) -> float:
        """Where a joint of one freedom stands in the file's poses."""
        return self.position[0] if self.position else 0.0

    def undone(self) -> Pose:
        """What takes the joint from its position in the file's poses to position zero."""
        if self.position is None:
            return Pose()
        back = (*(-p for p in self.position[:3]), *self.position[3:])
        return displacement(self.joint.type, self.joint.axis, back, self.joint.pitch)


@dataclass(frozen=True, eq=False, slots=True)
class Connection:
    """A joint of the file: what it connects, where it stands, and the steps that it is made of."""

    name: str
    kind: str
    parent: Frame
    child: Frame
    frame: Frame
    steps: tuple[Step, ...]
    cut: bool

    @property
    def rank(self) -> int:
        """The lower, the rather it is a joint of the tree."""
        return RANKS.get(self.kind, 1)


@dataclass(frozen=True, slots=True)
class Span:
    """A spanning tree: its connections (and whether reversed), free links, and what is left."""

    tree: tuple[tuple[Connection, bool], ...]
    free: tuple[Frame, ...]
    loops: tuple[Connection, ...]


def span(
    world: Frame, links: Sequence[Frame], held: Collection[Frame], connections: Sequence[Connection]
) -> Span:
    """A tree over all links that grows from the world and what is ``held`` there, then free links.

    The tree takes fixed joints first, then those of one, two and three freedoms; of joints alike
    those that lead from parent to child, and then the first in the file. Joints that are ``cut``
    are loops even where nothing else holds a link, which is then free.
    """
    touching: dict[Frame, list[tuple[int, bool]]] = defaultdict(list)
    for index, each in enumerate(connections):
        if each.cut:
            continue
        touching[each.parent].append((index, False))
        touching[each.child].append((index, True))
    reached: set[Frame] = set()
    tree: dict[int, bool] = {}
    ready: list[tuple[int, bool, int]] = []

    def reach(frame: Frame) -> None:
        reached.add(frame)
        for index, reverse in touching[frame]:
            heapq.heappush(ready, (connections[index].rank, reverse, index))

    def grow() -> None:
        while ready:
            _, reverse, index = heapq.heappop(ready)
            each = connections[index]
            new = each.parent if reverse else each.child
            if new not in reached:
                tree[index] = reverse
                reach(new)

    reach(world)
    for link in held:
        reach(link)
    grow()
    free = []
    for root in _roots(links, connections):
        if root not in reached:
            free.append(root)
            reach(root)
            grow()
    return Span(
        tuple((connections[index], tree[index]) for index in sorted(tree)),
        tuple(free),
        tuple(each for index, each in enumerate(connections) if index not in tree),
    )


def _roots(links: Sequence[Frame], connections: Sequence[Connection]) -> list[Frame]:
    """The links in the order in which they may be roots: first those that are no joint's child.

    Of these a link that carries others by fixed joints or joints of one freedom comes before rods
    and the like, which only hang between balls.
    """
    carries: dict[Frame, int] = {}
    connections = [each for each in connections if not each.cut]
    for each in connections:
        carries[each.parent] = min(carries.get(each.parent, _NOTHING), max(each.rank, 1))
    children = {each.child for each in connections}
    return sorted(links, key=lambda link: (link in children, carries.get(link, _NOTHING)))
