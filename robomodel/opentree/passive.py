"""Springs, damping and friction of an open tree's joints (:func:`with_reflected`).

The tree locks dependent joints, rotors too. What acts there, a coordinate x with its row J at the
neutral configuration, is linear in the joints that move: damping d JᵀJ, friction at most f |J|, and
a spring about the position at which x is at rest. For gears that is exact; for linkages it is right
near neutral, as armature is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from robomodel.arrays import Array
from robomodel.description import ONE_DOF, Description, Joint, JointSpring, Spring
from robomodel.dynamics.kinematics.state import Configuration, neutral_jacobian
from robomodel.dynamics.lumped import select
from robomodel.dynamics.recursions.passive import Element, elements
from robomodel.errors import Source, warn_at
from robomodel.mechanism.graph import WORLD, path
from robomodel.model.model import Model
from robomodel.scalars import value_of
from robomodel.tolerances import NOTHING


def with_reflected(model: Model, opened: Description) -> Description:
    """The open tree of a model with the passive forces of its locked joints and cut loops.

    A coordinate that one joint moves becomes that joint's damping, friction and spring; one that
    several move, a spring over them. One that a ball, planar or floating joint moves is left out
    with a warning: no format expresses it.
    """
    moving, names, independent_rates = moving_joints(model)
    following = select(model).following
    neutral = [float(x) for x in model.neutral()]
    spanning = model.spanning_positions(neutral)
    positions = {
        model.joints[body].name: value_of(spanning[model.nodes[body].q])
        for body in moving
        if model.joints[body].type in ONE_DOF
    }
    joints = {joint.name: joint for joint in opened.joints}
    springs = {
        spring.name: spring
        for spring in opened.springs
        if _remains(model, spring, {*moving, *following})
    }
    sources = {joint.name: joint.source for joint in model.description.joints}
    sources |= {each.name: each.source for each in (*model.description.loops,
                                                    *model.description.springs)}  # fmt: skip
    kinds = {spring.name: spring for spring in model.springs}
    for element in elements(Configuration(model, neutral)):
        if element.name in springs or (element.name in names and element.name not in kinds):
            continue
        row = np.zeros(model.nv)
        row[list(element.row)] = [value_of(x) for x in element.row.values()]
        terms = rates_of(row @ independent_rates, names)
        if not terms:
            continue
        if not terms.keys() <= positions.keys():
            warn_at(
                "its spring, damping and friction are not in the open tree: they act on a joint of "
                "several freedoms, which no format can express",
                sources[element.name],
                strict=False,
            )
            continue
        sprung = joints[next(iter(terms))] if len(terms) == 1 else None
        shared = sprung is None or (sprung.stiffness and element.stiffness)
        if shared and (element.deadband or (sprung and sprung.deadband)):
            warn_at(
                "the play of its spring is not in the open tree: it acts on several joints, or "
                "beside another spring of one, which no format can express",
                sources[element.name],
                strict=False,
            )
        if sprung:
            (ratio,) = terms.values()
            joints[sprung.name] = _folded(sprung, element, positions[sprung.name], ratio)
        else:
            name = element.name
            while name in springs or name in kinds:
                name += "_"
            springs[name] = _linear(name, element, terms, positions, sources[element.name])
    return replace(opened, joints=tuple(joints.values()), springs=tuple(springs.values()))


def moving_joints(model: Model) -> tuple[list[int], list[str], Array]:
    """The bodies whose joints move in the open tree, and each velocity's joint by name.

    Third, the independent velocities (nv, nv) for unit velocities of these joints at neutral.
    """
    moving = sorted(select(model).moving)
    names = [model.joints[body].name for body in moving for _ in model.nodes[body].freedoms]
    rows = [v for body in moving for v in model.nodes[body].freedoms]
    rates = neutral_jacobian(model)[rows]
    return moving, names, np.asarray(np.linalg.inv(rates))


def rates_of(row: Array, names: Sequence[str]) -> dict[str, float]:
    """The entries of a row over the joints that move, by joint; without those that are rounding."""
    used = np.abs(row) > NOTHING * np.abs(row).max(initial=0.0)
    return {name: float(x) for name, x, on in zip(names, row, used, strict=True) if on}


def _remains(model: Model, spring: Spring | JointSpring, moving: Collection[int]) -> bool:
    """True if a spring acts in the open tree as it does in the robot."""
    if isinstance(spring, JointSpring):
        return True  # over joints that move, or it is none of the open tree's
    bodies = {link: n for n, body in enumerate(model.bodies) for link in body.links}
    ends = (bodies.get(end.link, WORLD) for end in (spring.predecessor, spring.successor))
    one, other = (set(path(model.parents, body)) for body in ends)
    return one ^ other <= set(moving)


def _folded(joint: Joint, element: Element, at: float, ratio: float) -> Joint:
    """The joint with an element added, whose coordinate moves with it by this ratio."""
    element_stiffness = element.stiffness * ratio * ratio
    stiffness = joint.stiffness + element_stiffness
    reference, play = joint.reference, joint.deadband
    if element_stiffness:
        element_reference = at - (value_of(element.x) - element.reference) / ratio
        moment = joint.stiffness * joint.reference + element_stiffness * element_reference
        reference = moment / stiffness
        play = 0.0 if joint.stiffness else element.deadband / abs(ratio)
    return replace(
        joint,
        damping=joint.damping + element.damping * ratio * ratio,
        friction=joint.friction + element.friction * abs(ratio),
        stiffness=stiffness,
        reference=reference,
        deadband=play,
    )


def _linear(
    name: str,
    element: Element,
    terms: Mapping[str, float],
    positions: Mapping[str, float],
    source: Source,
) -> JointSpring:
    """An element as a spring over several joints."""
    reference = 0.0
    if element.stiffness:
        at_neutral = sum(ratio * positions[joint] for joint, ratio in terms.items())
        reference = at_neutral - (value_of(element.x) - element.reference)
    return JointSpring(
        name, tuple(terms.items()), element.stiffness, reference, element.damping,
        element.friction, source=source,
    )  # fmt: skip
