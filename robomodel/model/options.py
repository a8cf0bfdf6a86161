"""Options of :func:`robomodel.load`, applied to the description.

A model's description then describes the model: written and read back it is the same robot. Loops
that leave no motion become one body on request, as in simulators.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from robomodel.description import (
    FREEDOMS,
    MAX_TOLERANCE,
    Description,
    Joint,
    JointSpring,
    Link,
    Spring,
    Vec3,
)
from robomodel.description.poses import standing
from robomodel.errors import DescriptionError, as_names, as_real, did_you_mean, warn_at
from robomodel.mechanism import graph
from robomodel.mechanism.tree_constraints import find_tree_constraints
from robomodel.mobility import RigidError

LABELS = {  # what tells a joint's velocities apart, by their number
    6: (".wx", ".wy", ".wz", ".vx", ".vy", ".vz"),
    3: (".0", ".1", ".2"),
    1: ("",),
}


def labels(joint: Joint) -> tuple[str, ...]:
    """Labels of the velocities of a joint that moves."""
    return tuple(joint.name + suffix for suffix in LABELS[FREEDOMS[joint.type]])


def with_options(
    description: Description,
    *,
    floating_base: bool | None = None,
    independent: str | Iterable[str] | None = None,
    gravity: Sequence[float] | None = None,
    tolerance: float | None = None,
) -> Description:
    """The description of the robot with these options; all None leaves it as it is."""
    if floating_base is not None:
        description = _freed(description) if floating_base else _held(description)
    if independent is not None:
        description = _marked(description, as_names(independent, "independent"))
    if gravity is not None:
        description = replace(description, gravity=_vector(gravity))
    if tolerance is not None:
        if not 0.0 <= (tolerance := as_real(tolerance, "tolerance")) <= MAX_TOLERANCE:
            raise ValueError(
                f"tolerance must be between 0 and {MAX_TOLERANCE:g} m (rad), got {tolerance!r}"
            )
        loops = (replace(loop, tolerance=tolerance) for loop in description.loops)
        description = replace(description, loops=tuple(loops))
    return description


def _vector(gravity: Sequence[float]) -> Vec3:
    try:
        values = tuple(float(x) for x in gravity)
    except (TypeError, ValueError):
        values = ()
    if len(values) != 3 or not all(math.isfinite(x) for x in values):
        raise ValueError(f"gravity needs three finite numbers, got {gravity!r}")
    return values[0], values[1], values[2]


def _freed(description: Description) -> Description:
    """The description with a floating joint between a new massless root link and the old root.

    Unchanged if the root is massless and carries nothing but one floating joint already.
    """
    root = graph.root_link(description)
    on_root = [joint.type for joint in description.joints if joint.parent == root.name]
    if root.inertial is None and on_root == ["floating"]:
        return description
    world = _unused("world", (link.name for link in description.links))
    name = _unused("floating_base", (joint.name for joint in description.joints))
    return replace(
        description,
        links=(Link(world, source=root.source), *description.links),
        joints=(
            Joint(name, "floating", world, root.name, source=root.source),
            *description.joints,
        ),
    )


def _unused(name: str, names: Iterable[str]) -> str:
    used = set(names)
    numbered = (f"{name}_{i}" for i in range(len(used) + 1))
    return next(each for each in (name, *numbered) if each not in used)


def _held(description: Description) -> Description:
    """The description with a root without mass held: its floating joints fixed."""
    link = graph.root_link(description)
    if link.inertial is not None and link.inertial.mass > 0.0:
        return description
    root = link.name
    return replace(
        description,
        joints=tuple(
            replace(joint, type="fixed", armature=0.0)
            if joint.parent == root and joint.type == "floating"
            else joint
            for joint in description.joints
        ),
    )


def _marked(description: Description, chosen: Sequence[str]) -> Description:
    """The description with these joints, or single freedoms of them, marked independent.

    In a constrained cluster that has one of them they replace the file's marks. Other clusters keep
    theirs.
    """
    tree = graph.spanning_tree(description)
    moving = {joint.name for joint in tree.joints}
    moving |= {label for joint in tree.joints for label in labels(joint)}
    for name in chosen:
        if name not in moving:
            raise DescriptionError(
                f"independent: there is no moving joint '{name}'{did_you_mean(name, moving)}",
                description.source,
            )
    ties = [each.bodies for each in find_tree_constraints(description, tree)]
    tied = {body for tie in ties for body in tie}
    marks: dict[str, bool | tuple[bool, ...]] = {}
    for group in graph.clusters(tree, ties):
        joints = [tree.joints[body] for body in group]
        names = {name for joint in joints for name in (joint.name, *labels(joint))}
        if tied.isdisjoint(group) or names.isdisjoint(chosen):
            continue
        for joint in joints:
            each = tuple(joint.name in chosen or label in chosen for label in labels(joint))
            marks[joint.name] = each if len(set(each)) > 1 else each[0]
    return replace(
        description,
        joints=tuple(
            replace(joint, independent=marks[joint.name]) if joint.name in marks else joint
            for joint in description.joints
        ),
    )


# ---- rigid assemblies ---------------------------------------------------------------------------


def welded(description: Description, error: RigidError, *, strict: bool) -> Description:
    """The description with the joints of a rigid cluster fixed where its loops close.

    The cluster's loops and couplings are removed, with a warning, which ``strict`` makes an error;
    springs over its joints keep their other joints. Raises ``error`` itself if couplings alone
    leave no motion.
    """
    positions = error.positions
    if positions is None:
        raise error
    what = error.message.partition(";")[0]
    warn_at(
        f"{what}; read as a rigid assembly, its joints fixed where the loops close",
        error.source,
        strict=strict,
    )
    gone = error.conditions
    held = replace(
        description,
        joints=tuple(
            fixed(joint, positions[joint.name]) if joint.name in positions else joint
            for joint in description.joints
        ),
        loops=tuple(loop for loop in description.loops if loop.name not in gone),
        couplings=tuple(each for each in description.couplings if each.name not in gone),
    )
    places = graph.spanning_tree(held).places
    springs = (_of_moving(spring, positions, places) for spring in held.springs)
    return replace(held, springs=tuple(spring for spring in springs if spring is not None))


def _of_moving(
    spring: Spring | JointSpring,
    positions: Mapping[str, Sequence[float]],
    places: Mapping[str, graph.Place],
) -> Spring | JointSpring | None:
    """The spring without the joints that stand at ``positions``; None if its ends are one body."""
    if isinstance(spring, Spring):
        ends = (places[end.link].body for end in (spring.predecessor, spring.successor))
        return spring if len(set(ends)) > 1 else None
    moving = tuple((name, ratio) for name, ratio in spring.terms if name not in positions)
    still = sum(ratio * positions[name][0] for name, ratio in spring.terms if name in positions)
    reference = spring.reference - still
    return replace(spring, terms=moving, reference=reference) if moving else None


def fixed(joint: Joint, position: Sequence[float]) -> Joint:
    """A joint locked at a position."""
    at = standing(joint, {joint.name: position})
    return Joint(joint.name, "fixed", joint.parent, joint.child, at, source=joint.source)
