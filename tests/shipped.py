"""The shipped robots as parameters of tests: those that take seconds are for the slow run."""

import pytest

from robomodel import robots

LARGE = ("jvrc1", "mit_humanoid", "teleop_arm", "tello", "tello_with_arms")
ROBOTS = [
    pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in robots.names()
]
