"""A description as it is written for a simulator: what its reader would pass over, in its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from robomodel.description import (
    CouplingElement,
    Description,
    Inertial,
    JointCoupling,
    JointSpring,
    Mimic,
    PolynomialCoupling,
)
from robomodel.mechanism.graph import root_link
from robomodel.simulators.behaviours import Format, Simulator
from robomodel.simulators.readings import pair_of, plain_name
from robomodel.vocabulary.inertias import heavy, physical_inertias

_FRAME = Inertial(1e-9, (1e-12, 0.0, 0.0, 1e-12, 0.0, 1e-12))
"""For links without ``<inertial>``: little beside any robot, and enough for readers to take it."""


def written_for(description: Description, simulator: Simulator, form: Format) -> Description:
    """The description with the words of a simulator's reader, the same robot."""
    for change in _CHANGES.get((simulator, form), ()):
        description = change(description)
    return physical_inertias(description) if form == "urdf" else description


# --- ratios as mimics ----------------------------------------------------------------------------


def with_mimics(description: Description) -> Description:
    """Couplings of two joints as mimics, and chains of mimics each to the first joint.

    A coupling stays where its follower follows another joint already, or leads in a circle.
    """
    follows = {joint.name: joint.mimic for joint in description.joints if joint.mimic}
    couplings = []
    for each in description.couplings:
        pair = pair_of(each, description)
        if pair is None or pair[0] in follows or pair[0] in _leaders(pair[1].joint, follows):
            couplings.append(each)
        else:
            follows[pair[0]] = pair[1]
    mimics = {name: _flat(mimic, follows) for name, mimic in follows.items()}
    return replace(
        description,
        joints=tuple(
            replace(joint, mimic=mimics[joint.name], independent=None)
            if joint.name in mimics
            else replace(joint, independent=None)
            for joint in description.joints
        ),
        couplings=tuple(couplings),
    )


def _leaders(name: str, follows: Mapping[str, Mimic]) -> set[str]:
    """The joints that a joint follows, itself among them."""
    found = {name}
    while name in follows and follows[name].joint not in found:
        name = follows[name].joint
        found.add(name)
    return found


def _flat(mimic: Mimic, follows: Mapping[str, Mimic]) -> Mimic:
    """The same relation to the joint that follows none."""
    while (above := follows.get(mimic.joint)) is not None:
        mimic = Mimic(
            above.joint,
            mimic.multiplier * above.multiplier,
            mimic.multiplier * above.offset + mimic.offset,
        )
    return mimic


# --- links ---------------------------------------------------------------------------------------


def with_masses(description: Description) -> Description:
    """A billionth of a kilogram for each link without ``<inertial>`` but MJCF's world.

    Also for those of which the writers make a part of their carrier.
    """
    description = physical_inertias(description)
    return replace(
        description,
        links=tuple(
            replace(link, inertial=_FRAME)
            if link.inertial is None and link.name != "world"
            else link
            for link in description.links
        ),
    )


def without_frame_below_base(description: Description) -> Description:
    """The root link left out where it is a frame without mass on which a floating joint stands.

    Readers let the root of a file float; a joint of that type they refuse, fix, or add to it.
    """
    root = root_link(description)
    below = [joint for joint in description.joints if joint.parent == root.name]
    if heavy(root.inertial) or [joint.type for joint in below] != ["floating"]:
        return description
    return replace(
        description,
        links=tuple(link for link in description.links if link.name != root.name),
        joints=tuple(joint for joint in description.joints if joint.name != below[0].name),
    )


def with_plain_names(description: Description) -> Description:
    """Joints' names of letters, digits and underscores, where they stay different."""
    names = {joint.name: plain_name(joint.name) for joint in description.joints}
    if len(set(names.values())) < len(names):
        return description

    def terms(each: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        return tuple((names.get(name, name), factor) for name, factor in each)

    couplings = list[CouplingElement]()
    for each in description.couplings:
        if isinstance(each, JointCoupling):
            couplings.append(replace(each, terms=terms(each.terms)))
        elif isinstance(each, PolynomialCoupling):
            couplings.append(replace(each, joint=names[each.joint], of=names[each.of]))
        else:
            couplings.append(each)
    return replace(
        description,
        joints=tuple(
            replace(
                joint,
                name=names[joint.name],
                mimic=joint.mimic and replace(joint.mimic, joint=names[joint.mimic.joint]),
            )
            for joint in description.joints
        ),
        couplings=tuple(couplings),
        springs=tuple(
            replace(each, terms=terms(each.terms)) if isinstance(each, JointSpring) else each
            for each in description.springs
        ),
        transmissions=tuple(
            replace(
                each,
                joints=tuple(
                    replace(end, name=names.get(end.name, end.name)) for end in each.joints
                ),
            )
            for each in description.transmissions
        ),
    )


_Change = Callable[[Description], Description]
_CHANGES: Mapping[tuple[Simulator, Format], tuple[_Change, ...]] = {
    ("mujoco", "urdf"): (with_mimics,),
    ("genesis", "urdf"): (with_mimics,),
    ("drake", "urdf"): (with_mimics, without_frame_below_base),
    ("drake", "sdf"): (with_mimics,),
    ("drake", "mjcf"): (with_masses,),
    ("newton", "mjcf"): (with_plain_names,),
    ("newton", "urdf"): (with_mimics, without_frame_below_base),
    ("newton", "usd"): (with_mimics,),
    ("isaaclab", "urdf"): (with_mimics, without_frame_below_base),
    ("isaaclab", "usd"): (with_mimics,),
    ("gazebo", "sdf"): (with_mimics,),
    ("pybullet", "urdf"): (without_frame_below_base, with_masses),
    ("pinocchio", "urdf"): (without_frame_below_base,),
    ("pinocchio", "mjcf"): (with_masses,),
}
"""Changes for a simulator's reader of a format."""
