"""Springs, dampers and friction of an open tree: what locked joints do to those that move.

The open tree of :mod:`robomodel.model.approximate` locks the dependent joints of every cluster,
rotors too. What acts there, a coordinate x with its row J at the neutral configuration, is linear
in the joints that move: damping d JᵀJ, friction at most f |J|, and a spring about the position at
which x is at rest. For gears that is exact; for linkages it is right near neutral, as armature is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robomodel.description import ONE_DOF, Description, Joint, JointSpring, Spring
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.recursions.passive import Element, elements
from robomodel.errors import warn_at
from robomodel.model.approximate import select
from robomodel.model.graph import WORLD, path
from robomodel.model.model import Model

NOTHING = 1e-12  # of the largest entry of a row


def with_reflected(model: Model, opened: Description) -> Description:
    """The open tree of a model with what its locked joints and cut loops have of such forces.

    A coordinate that one joint moves becomes that joint's damping, friction and spring; one that
    several move, a spring over them. What moves a ball, planar or floating joint is warned of: no
    word says it.
    """
    moving = sorted(select(model).moving)
    neutral = [float(x) for x in model.neutral()]
    positions = model.spanning_positions(neutral)
    labels: list[tuple[str, float] | None] = []  # of each velocity that moves
    for body in moving:
        node = model.nodes[body]
        simple = model.joints[body].type in ONE_DOF
        at = (model.joints[body].name, float(positions[node.q])) if simple else None
        labels += [at] * node.joint.nv
    rows = [v for body in moving for v in model.nodes[body].freedoms]
    back = np.linalg.inv(model.constraint_jacobian(model.neutral())[rows])
    joints = {joint.name: joint for joint in opened.joints}
    springs = {spring.name: spring for spring in opened.springs if _remains(model, spring, moving)}
    own = {model.joints[body].name for body in moving}
    sources = {joint.name: joint.source for joint in model.description.joints}
    sources |= {each.name: each.source for each in (*model.description.loops,
                                                    *model.description.springs)}  # fmt: skip
    kinds = {spring.name: spring for spring in model.springs}
    for element in elements(Configuration(model, neutral)):
        if element.name in springs or (element.name in own and element.name not in kinds):
            continue
        row = np.zeros(model.nv)
        row[list(element.row)] = [float(x) for x in element.row.values()]
        row = row @ back
        used = np.flatnonzero(np.abs(row) > NOTHING * np.abs(row).max(initial=0.0))
        if not len(used):
            continue
        if any(labels[i] is None for i in used):
            warn_at(
                "its spring, damping and friction are not in the open tree: they act on a joint of "
                "several freedoms, for which no word says it",
                sources[element.name],
                strict=False,
            )
            continue
        terms = {label: float(row[i]) for i in used if (label := labels[i]) is not None}
        if len(terms) == 1:
            (((moved, place), ratio),) = terms.items()
            joints[moved] = _folded(joints[moved], element, place, ratio)
        else:
            name = element.name
            while name in springs or name in kinds:
                name += "_"
            springs[name] = replace(_linear(name, element, terms), source=sources[element.name])
    kept = [joints[joint.name] for joint in opened.joints]
    return replace(opened, joints=tuple(kept), springs=tuple(springs.values()))


def _remains(model: Model, spring: Spring | JointSpring, moving: list[int]) -> bool:
    """Whether a spring is in the open tree what it is in the robot."""
    if isinstance(spring, JointSpring):
        return True  # over joints that move, or it is none of the open tree's
    bodies = {link: n for n, body in enumerate(model.bodies) for link in body.links}
    ends = (bodies.get(end.link, WORLD) for end in (spring.predecessor, spring.successor))
    one, other = (set(path(model.parents, body)) for body in ends)
    return one ^ other <= set(moving)


def _folded(joint: Joint, element: Element, at: float, ratio: float) -> Joint:
    """A joint with an element of which only it moves the coordinate."""
    added = element.stiffness * ratio * ratio
    stiffness = joint.stiffness + added
    rest = joint.reference
    if added:
        here = at - (float(element.x) - element.reference) / ratio
        rest = (joint.stiffness * joint.reference + added * here) / stiffness
    return replace(
        joint,
        damping=joint.damping + element.damping * ratio * ratio,
        friction=joint.friction + element.friction * abs(ratio),
        stiffness=stiffness,
        reference=rest,
    )


def _linear(name: str, element: Element, terms: Mapping[tuple[str, float], float]) -> JointSpring:
    """An element as one over several joints."""
    here = sum(ratio * at for (_, at), ratio in terms.items())
    rest = here - (float(element.x) - element.reference) if element.stiffness else 0.0
    ratios = tuple((joint, ratio) for (joint, _), ratio in terms.items())
    return JointSpring(name, ratios, element.stiffness, rest, element.damping, element.friction)
