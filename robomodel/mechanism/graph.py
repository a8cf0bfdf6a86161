"""Connectivity: bodies, spanning tree, and clusters as strongly connected components.

Fixed joints lump links into bodies. The bodies that a loop or a coupling relates become one
cluster, with as many others as it takes for the clusters to form a tree (002, IV-A). Functions do
not recurse, so that a chain may be thousands of links long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from robomodel.description import AT_ORIGIN, Description, Joint, Link, Pose
from robomodel.description.poses import compose

WORLD = -1


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a link: its body (``WORLD`` for the fixed base) and its pose in the body."""

    body: int
    pose: Pose


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """The spanning tree: bodies, parents before children, each moved by one joint.

    ``joints[i]`` moves body i on its parent ``parents[i]``. The body's frame is that of the link
    ``joints[i].child``. ``places`` has every link of the file.
    """

    root: str
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    places: dict[str, Place]

    def renumbered(self, order: Sequence[int]) -> SpanningTree:
        """The same tree with body ``order[i]`` called i; parents must stay before children."""
        number = {body: i for i, body in enumerate(order)}
        number[WORLD] = WORLD
        return SpanningTree(
            self.root,
            tuple(self.joints[body] for body in order),
            tuple(number[self.parents[body]] for body in order),
            {link: Place(number[place.body], place.pose) for link, place in self.places.items()},
        )

    def path(self, body: int, ancestor: int) -> tuple[int, ...]:
        """The bodies on the way from ``ancestor``, which is left out, to ``body``."""
        return tuple(reversed(path(self.parents, body, ancestor)))

    def common_ancestor(self, bodies: Iterable[int]) -> int:
        """The nearest body (or the world) that every one of the bodies is or hangs on."""
        return reduce(partial(common_ancestor, self.parents), bodies)


def path(parents: Sequence[int] | Mapping[int, int], body: int, ancestor: int = WORLD) -> list[int]:
    """The bodies on the way from ``body`` to ``ancestor``, which is left out."""
    bodies = []
    while body != ancestor:
        bodies.append(body)
        body = parents[body]
    return bodies


def common_ancestor(parents: Sequence[int], a: int, b: int) -> int:
    """The nearest body, or the world, that both are or hang on; parents have smaller numbers."""
    while a != b:
        if a > b:
            a = parents[a]
        else:
            b = parents[b]
    return a


def root_link(description: Description) -> Link:
    """The link that is no joint's child."""
    moved = {joint.child for joint in description.joints}
    return next(link for link in description.links if link.name not in moved)


def spanning_tree(description: Description) -> SpanningTree:
    """Lump fixed joints, number the moving bodies depth first in the file's order."""
    children: dict[str, list[Joint]] = defaultdict(list)
    for each in description.joints:
        children[each.parent].append(each)
    root = root_link(description).name
    joints: list[Joint] = []
    parents: list[int] = []
    places: dict[str, Place] = {}
    stack: list[tuple[str, Joint | None]] = [(root, None)]
    while stack:
        link, joint = stack.pop()
        if joint is None:
            places[link] = Place(WORLD, AT_ORIGIN)
        else:
            parent = places[joint.parent]
            standing = compose(parent.pose, joint.origin)
            if joint.type == "fixed":
                places[link] = Place(parent.body, standing)
            else:
                places[link] = Place(len(joints), AT_ORIGIN)
                joints.append(replace(joint, origin=standing))
                parents.append(parent.body)
        stack.extend((child.child, child) for child in reversed(children[link]))
    return SpanningTree(root, tuple(joints), tuple(parents), places)


def clusters(tree: SpanningTree, ties: Sequence[Sequence[int]]) -> list[list[int]]:
    """The clusters, parents before children, each a sorted list of bodies.

    Every tie is a set of bodies that one constraint relates; they are merged. Then clusters that
    hang on each other in a circle become one (strongly connected components), and a cluster that
    hangs on several others is merged with all that lies between them and their common ancestor.
    A cluster may hang on several bodies of its parent cluster.
    """
    leader = list(range(len(tree.joints)))

    def find(body: int) -> int:
        while leader[body] != body:
            leader[body] = leader[leader[body]]
            body = leader[body]
        return body

    def merge(bodies: Iterable[int]) -> None:
        first, *others = (find(body) for body in bodies)
        for other in others:
            leader[find(other)] = find(first)

    for tie in ties:
        merge(tie)
    while True:
        names = [find(body) for body in range(len(leader))]
        together = _misplaced(tree, names)
        if not together:
            return _in_order(tree, names)
        merge(together)


def _misplaced(tree: SpanningTree, names: Sequence[int]) -> list[int]:
    """Clusters that must become one for all to form a tree; empty when they do.

    Clusters are named by a body of theirs, and visited from the base, each after all that it hangs
    on.
    """
    hangs_on: dict[int, set[int]] = {name: set() for name in names}
    carries: dict[int, list[int]] = defaultdict(list)
    for body, parent in enumerate(tree.parents):
        above = WORLD if parent == WORLD else names[parent]
        if above != names[body] and above not in hangs_on[names[body]]:
            hangs_on[names[body]].add(above)
            carries[above].append(names[body])
    missing = {name: len(above) for name, above in hangs_on.items()}
    parent_of: dict[int, int] = {}
    ready = [WORLD]
    while ready:
        done = ready.pop()
        for name in carries[done]:
            missing[name] -= 1
            if missing[name]:
                continue
            if len(hangs_on[name]) > 1:
                chains = [[*path(parent_of, above), WORLD] for above in sorted(hangs_on[name])]
                common = next(c for c in chains[0] if all(c in chain for chain in chains))
                between = {c for chain in chains for c in chain[: chain.index(common)]}
                return [name, *sorted(between)]
            (parent_of[name],) = hangs_on[name]
            ready.append(name)
    # clusters that were not visited hang on a circle: walk up until it closes
    at = next((name for name in names if name not in parent_of), None)
    walk: list[int] = []
    while at is not None and at not in walk:
        walk.append(at)
        at = min(above for above in hangs_on[at] if above != WORLD and above not in parent_of)
    return [] if at is None else walk[walk.index(at) :]


def _in_order(tree: SpanningTree, leader: list[int]) -> list[list[int]]:
    """Depth-first order of the cluster tree, children by their first body."""
    members: dict[int, list[int]] = defaultdict(list)
    for body, first in enumerate(leader):
        members[first].append(body)
    children: dict[int, list[int]] = defaultdict(list)
    for first, bodies in members.items():
        above = {WORLD if tree.parents[b] == WORLD else leader[tree.parents[b]] for b in bodies} - {
            first
        }
        (parent,) = above
        children[parent].append(first)
    order = []
    stack = sorted(children[WORLD], key=lambda c: -members[c][0])
    while stack:
        first = stack.pop()
        order.append(members[first])
        stack.extend(sorted(children[first], key=lambda c: -members[c][0]))
    return order
