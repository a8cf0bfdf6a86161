"""Loops that leave translations free, for which MuJoCo has no constraint.

A body that hangs on one of the two links by a joint of the loop's type is welded to the other link.
It moves like a part of that link, which lends it half of its inertia, so nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

from robomodel.description import Anchor, Description, Joint, Link, Loop
from robomodel.masses import scaled
from robomodel.parsers.shared.inertias import heavy
from robomodel.poses import initial_positions, link_poses, placed, relative, unit
from robomodel.spatial import inner


def with_sliders(description: Description) -> Description:
    """The description with a body, a joint and a fixed loop for each prismatic and planar loop."""
    links = {link.name: link for link in description.links}
    joints = list(description.joints)
    poses = link_poses(description, initial_positions(joints))
    taken = {joint.name for joint in joints}
    loops = []
    for loop in description.loops:
        if loop.type not in ("prismatic", "planar"):
            loops.append(loop)
            continue
        carrier, lender = loop.predecessor, loop.successor
        if not heavy(links[lender.link].inertial):
            carrier, lender = lender, carrier
        name = loop.name
        while name in links or name in taken:
            name += ".slider"
        links[name] = Link(name, None, loop.source)
        taken.add(name)
        if (said := links[lender.link].inertial) is not None and heavy(said):
            half = scaled(said, 0.5)
            links[lender.link] = replace(links[lender.link], inertial=half)
            inside = relative(lender.origin, said.origin)
            links[name] = replace(links[name], inertial=replace(half, origin=inside))
        initial, rest = None, loop.reference if carrier is loop.predecessor else -loop.reference
        if loop.type == "prismatic":
            between = relative(placed(carrier, poses), placed(lender, poses))
            initial = float(inner(between.xyz, unit(loop.axis)))
        joints.append(
            Joint(
                name,
                "prismatic" if loop.type == "prismatic" else "planar",
                carrier.link,
                name,
                carrier.origin,
                loop.axis,
                independent=False,
                damping=loop.damping,
                friction=loop.friction,
                initial=initial,
                source=loop.source,
                stiffness=loop.stiffness,
                reference=rest,
            )
        )
        loops.append(Loop(loop.name, "fixed", Anchor(name), lender, source=loop.source))
    return replace(
        description, links=tuple(links.values()), joints=tuple(joints), loops=tuple(loops)
    )
