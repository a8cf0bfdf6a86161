"""URDF and URDF+: the inverse of :mod:`robomodel.parsers.urdf`."""

from robomodel.writers.urdf.robot import to_open_urdf, to_urdf

__all__ = ["to_open_urdf", "to_urdf"]
