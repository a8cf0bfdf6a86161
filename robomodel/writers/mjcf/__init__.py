"""MJCF: a description in the words that MuJoCo has for it."""

from robomodel.writers.mjcf.robot import to_mjcf

__all__ = ["to_mjcf"]
