"""Right angles that a file writes with few digits, as 1.57 for π/2: found, and made exact."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from robomodel.description import Description, Pose, Rows3, rotation_from_rpy

COARSE = (5e-5, 2e-3)  # rad: 1.5707, 1.57 and 3.14 are off by 1e-4, 8e-4 and 1.6e-3


def with_right_angles(
    description: Description, links: Collection[str]
) -> tuple[Description, dict[str, str]]:
    """The description with coarse right angles exact, of joints to these links and loops at them.

    Also what stood for which: the number that is written, without its sign, and the angle meant.
    """
    meant: dict[str, str] = {}

    def exact(pose: Pose) -> Pose:
        return replace(pose, rotation=_exact(pose.rotation, meant))

    joints = tuple(
        replace(joint, origin=exact(joint.origin)) if joint.child in links else joint
        for joint in description.joints
    )
    loops = tuple(
        replace(
            loop,
            predecessor=replace(loop.predecessor, origin=exact(loop.predecessor.origin)),
            successor=replace(loop.successor, origin=exact(loop.successor.origin)),
        )
        if {loop.predecessor.link, loop.successor.link} & set(links)
        else loop
        for loop in description.loops
    )
    return replace(description, joints=joints, loops=loops), meant


def _exact(rotation: Rows3, meant: dict[str, str]) -> Rows3:
    """A rotation with its coarse right angles exact, which are noted."""
    (xx, _, _), (yx, _, _), (zx, zy, zz) = rotation
    angles = (math.atan2(zy, zz), math.atan2(-zx, math.hypot(xx, yx)), math.atan2(yx, xx))
    noted: dict[str, str] = {}
    snapped = [_snapped(angle, noted) for angle in angles]
    if not noted:
        return rotation
    meant.update(noted)
    return rotation_from_rpy(*snapped)


def _snapped(angle: float, noted: dict[str, str]) -> float:
    turns = round(angle / (0.5 * math.pi))
    near = turns * 0.5 * math.pi
    if turns and COARSE[0] <= abs(angle - near) <= COARSE[1]:
        noted[f"{abs(angle):.6g}"] = "π" if turns % 2 == 0 else "π/2"
        return near
    return angle


def in_words(meant: dict[str, str]) -> str:
    """The words for which number stood for which, and which to write."""
    pairs = sorted(meant.items())
    numbers = " and ".join(number for number, _ in pairs)
    angles = " and ".join(dict.fromkeys(angle for _, angle in pairs))
    digits = {"π/2": "1.5707963", "π": "3.1415927"}
    write = " and ".join(dict.fromkeys(digits[angle] for _, angle in pairs))
    verb = "stands" if len(pairs) == 1 else "stand"
    return f"{numbers} {verb} for {angles}; write {write}"
