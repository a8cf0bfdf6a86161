"""Tree constraints: which joints a description's loops, couplings and mimics relate, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robomodel import description as said
from robomodel.description import Description, LinkCoupling
from robomodel.errors import DescriptionError, Source, did_you_mean
from robomodel.model.graph import Tree


@dataclass(frozen=True, slots=True)
class TreeConstraint:
    """A constraint on the tree: the bodies whose joints it relates, and what it says of them.

    Couplings and mimics say Σ coefficient · q(body's joint) = offset in ``terms``; ``follower`` is
    the body whose joint they would rather determine.
    """

    name: str
    source: Source
    bodies: tuple[int, ...]
    kind: Literal["loop", "coupling", "mimic"]
    loop: said.Loop | None = None
    terms: tuple[tuple[int, float], ...] = ()
    offset: float = 0.0
    follower: int | None = None


def find_tree_constraints(description: Description, tree: Tree) -> list[TreeConstraint]:
    """Loops, couplings and mimics, in this order, each in the file's order."""
    constraints = [_loop_constraint(loop, tree) for loop in description.loops]
    moved_by = {joint.name: body for body, joint in enumerate(tree.joints)}

    def find(name: str, source: Source) -> int:
        if name not in moved_by:
            raise DescriptionError(
                f"there is no moving joint '{name}'{did_you_mean(name, moved_by)}", source
            )
        return _one_dof(tree, moved_by[name], source)

    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            constraints.append(_link_coupling(coupling, tree))
            continue
        terms = tuple((find(name, coupling.source), k) for name, k in coupling.terms)
        terms = tuple((body, k) for body, k in terms if k)
        if not terms:
            raise DescriptionError("relates no joint; give it joints and ratios", coupling.source)
        bodies = tuple(body for body, _ in terms)
        constraints.append(
            TreeConstraint(
                coupling.name,
                coupling.source,
                bodies,
                kind="coupling",
                terms=terms,
                offset=coupling.offset,
            )
        )
    for body, joint in enumerate(tree.joints):
        if joint.mimic is None:
            continue
        _one_dof(tree, body, joint.source)
        leader = find(joint.mimic.joint, joint.source)
        terms = ((body, 1.0), (leader, -joint.mimic.multiplier))
        constraints.append(
            TreeConstraint(
                joint.name,
                joint.source,
                (body, leader),
                kind="mimic",
                terms=terms,
                offset=joint.mimic.offset,
                follower=body,
            )
        )
    return constraints


def _loop_constraint(loop: said.Loop, tree: Tree) -> TreeConstraint:
    ends = [tree.places[loop.predecessor.link].body, tree.places[loop.successor.link].body]
    ancestor = tree.common_ancestor(ends)
    bodies = (*tree.path(ends[0], ancestor), *tree.path(ends[1], ancestor))
    if not bodies:
        raise DescriptionError(
            f"joins '{loop.predecessor.link}' and '{loop.successor.link}', which no moving joint "
            "separates; remove it, or free a joint between them",
            loop.source,
        )
    return TreeConstraint(loop.name, loop.source, bodies, kind="loop", loop=loop)


def _one_dof(tree: Tree, body: int, source: Source) -> int:
    """The body, if its joint has one degree of freedom; an error if not."""
    joint = tree.joints[body]
    if joint.type not in said.ONE_DOF:
        raise DescriptionError(
            f"cannot relate joint '{joint.name}', which is {joint.type}; couplings are between "
            "revolute, continuous, prismatic and screw joints",
            source,
        )
    return body


def _link_coupling(coupling: LinkCoupling, tree: Tree) -> TreeConstraint:
    ends = [tree.places[coupling.predecessor].body, tree.places[coupling.successor].body]
    ancestor = tree.common_ancestor(ends)
    paths = [tree.path(end, ancestor) for end in ends]
    for path, link in zip(paths, (coupling.predecessor, coupling.successor), strict=True):
        for body in path:
            _one_dof(tree, body, coupling.source)
        if not path:
            raise DescriptionError(
                f"no moving joint stands between '{link}' and the common ancestor of "
                f"'{coupling.predecessor}' and '{coupling.successor}', so there is nothing to "
                "couple; name links on two branches",
                coupling.source,
            )
    terms = (
        *((body, 1.0) for body in paths[1]),
        *((body, -coupling.ratio) for body in paths[0]),
    )
    return TreeConstraint(
        coupling.name,
        coupling.source,
        (*paths[0], *paths[1]),
        kind="coupling",
        terms=terms,
        offset=coupling.offset,
        follower=paths[1][-1],
    )
