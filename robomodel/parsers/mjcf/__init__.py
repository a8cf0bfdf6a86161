"""MJCF: robots as MuJoCo compiles them.

``docs/mjcf.md`` lists every element.
"""

from robomodel.parsers.mjcf.robot import read_mjcf

__all__ = ["read_mjcf"]
