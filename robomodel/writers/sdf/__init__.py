"""SDF: the inverse of :mod:`robomodel.parsers.sdf`, for a description from any format."""

from robomodel.writers.sdf.robot import to_sdf

__all__ = ["to_sdf"]
