"""The shipped robots as parameters of tests: those that take long are for the slow run."""

from cases import few

import robomodel as rm
from robomodel import robots

MOTOR = '<motor effort="2" velocity="40"/>'

LARGE = ("jvrc1", "mit_humanoid", "teleop_arm", "tello", "tello_with_arms")
DISTINCT = [name for name in robots.names() if name not in ("jvrc1", "tello_with_arms")]
"""Without the two largest: mechanisms of `mini_cheetah` and `tello`, more of them."""
ROBOTS = few(DISTINCT, "belt_leg", "five_bar", "four_bar", "mini_cheetah", "puma560")
SMALL = few(DISTINCT, "belt_leg", "five_bar", "four_bar")
"""Where what is done with a robot takes long: other tests of such a module have floating bases."""


def motored(name: str) -> rm.Model:
    """A shipped robot; linkages without actuators get a motor at each independent joint."""
    model = robots.load(name)
    if model.actuators:
        return model
    motors = "".join(f'<joint name="{n}">{MOTOR}</joint>' for n in model.dof_names)
    return rm.load(robots.path(name), extend=f'<robot name="motors">{motors}</robot>')
