"""SDF, versions 1.2 to 1.12: robots as Gazebo and Drake write them.

Every word is described in ``docs/sdf.md``.
"""

from robomodel.parsers.sdf.robot import read_sdf

__all__ = ["read_sdf"]
