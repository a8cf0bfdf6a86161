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
    Pose,
)
from robomodel.description.inertias import inertial_of, placed, scaled
from robomodel.description.poses import compose
from robomodel.mechanism.graph import root_link
from robomodel.simulators.behaviours import Format, Simulator
from robomodel.simulators.readings import pair_of, plain_name, raised
from robomodel.tolerances import WRITTEN
from robomodel.vocabulary.inertias import carriers, heavy, physical_inertias, principal

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


def with_beads(description: Description) -> Description:
    """Inertias that Newton leaves alone: in single precision those of bodies, none nearly zero.

    Links without ``<inertial>``, and fixed ones with moments that Newton raises, become a part of
    their carrier but for a bead; moments that are the sum of the others get some slack.
    """
    description = physical_inertias(description)
    above = {joint.child: joint for joint in description.joints}
    inertials = {link.name: link.inertial for link in description.links}
    held = carriers(description)
    for link in description.links:
        if link.inertial and not raised(link.inertial):
            continue
        carrier, pose = link.name, Pose()
        while (joint := above.get(carrier)) is not None and joint.type == "fixed":
            carrier, pose = joint.parent, compose(joint.origin, pose)
        whole = inertials[carrier]
        if joint is None or (carrier == link.name and (whole or link.name not in held)):
            continue
        inertials[link.name] = _BEAD
        if carrier != link.name and whole:
            rest = placed(whole, Pose()) + placed(scaled(_BEAD, -1.0), pose)
            if link.inertial:
                rest = rest + placed(link.inertial, pose)
            inertials[carrier] = inertial_of(rest, whole.source)
    return replace(
        description,
        links=tuple(
            replace(link, inertial=each and _with_slack(each))
            for link in description.links
            for each in (inertials[link.name],)
        ),
    )


_BEAD = Inertial(1e-9, (2e-10, 0.0, 0.0, 2e-10, 0.0, 2e-10))
"""Little beside any robot; Newton raises moments below 1e-10."""


def _with_slack(inertial: Inertial) -> Inertial:
    """A body's inertia with its largest moment below the others' sum in single precision, too."""
    (a, b, c), axes = principal(inertial)
    lack = c - (a + b) * (1.0 - WRITTEN)
    if lack <= 0.0 or c > (a + b) * (1.0 + WRITTEN) or raised(inertial):
        return inertial
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = (
        (axes * (a + lack / 2.0, b + lack / 2.0, c)) @ axes.T
    ).tolist()
    return replace(inertial, inertia=(xx, xy, xz, yy, yz, zz))


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
    ("newton", "mjcf"): (with_beads, with_plain_names),
    ("newton", "urdf"): (with_mimics, without_frame_below_base, with_beads),
    ("newton", "usd"): (with_mimics, with_beads),
    ("isaaclab", "urdf"): (with_mimics, without_frame_below_base),
    ("isaaclab", "usd"): (with_mimics,),
    ("gazebo", "sdf"): (with_mimics,),
    ("pybullet", "urdf"): (without_frame_below_base, with_masses),
    ("pinocchio", "urdf"): (without_frame_below_base,),
    ("pinocchio", "mjcf"): (with_masses,),
}
"""Changes for a simulator's reader of a format."""
