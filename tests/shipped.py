"""The shipped robots as parameters of tests: those that take long are for the slow run."""

from cases import few

from robomodel import robots

LARGE = ("jvrc1", "mit_humanoid", "teleop_arm", "tello", "tello_with_arms")
ROBOTS = few(robots.names(), "belt_leg", "five_bar", "four_bar", "mini_cheetah", "puma560")
SMALL = few(robots.names(), "belt_leg", "five_bar", "four_bar")
"""Where what is done with a robot takes long: other tests of such a module have floating bases."""
