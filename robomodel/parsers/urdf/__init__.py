"""URDF and URDF+: robots as ROS writes them, with loops, gears, belts and rods.

One small function reads each element. What is wrong with a single element is refused where it is
read; :mod:`robomodel.parsers.checks` then looks at the whole: names that mean nothing, links
without a place in the tree. No mechanics here: whether loops close is for the model.

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
