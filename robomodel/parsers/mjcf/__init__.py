"""MJCF: robots as MuJoCo compiles them.

``docs/mjcf.md`` tells what becomes of each element.
"""

from robomodel.parsers.mjcf.robot import read_mjcf

__all__ = ["read_mjcf"]
