"""URDF and URDF+: robots as ROS writes them, with loops, gears, belts and rods.

One small function reads each element and raises errors of that element.
:mod:`robomodel.vocabulary.checks` then checks the whole description: unknown names, links outside
the tree. No mechanics here: the model determines whether loops close.

``docs/format.md`` lists every element, ``docs/formats/`` describes them.
"""

from robomodel.parsers.urdf.dialects import with_closing_frames
from robomodel.parsers.urdf.joints import JOINT_TYPES, LOOP_TYPES
from robomodel.parsers.urdf.robot import read_urdf, to_open_urdf, to_urdf

__all__ = [
    "JOINT_TYPES",
    "LOOP_TYPES",
    "read_urdf",
    "to_open_urdf",
    "to_urdf",
    "with_closing_frames",
]
