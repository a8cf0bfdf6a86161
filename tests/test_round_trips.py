"""Every word by every format: written and read back it is the same robot, or it is refused.

The table says of each feature which formats hold it; of the others, the words of the refusal. With
``drop`` these are left out, and the file is read. What is particular to a format is in its own
file of tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import pytest
from agreement import same_robot
from cases import few
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm

WRITERS: Mapping[str, Callable[..., object]] = {
    "urdf": rm.write_urdf,
    "sdf": rm.write_sdf,
    "xml": rm.write_mjcf,
    "usda": rm.write_usd,
}


def arm(kind: str, more: str = "", **options: str) -> str:
    """A hinge, and on its link a joint of another kind."""
    return robot(
        link("upper"),
        link("lower"),
        joint("shoulder", "base", "upper"),
        joint("elbow", "upper", "lower", "0.3 0.1 0", kind=kind, more=more, **options),
    )


def chain(*more: str) -> str:
    """Three links on hinges about skew axes."""
    return robot(
        link("a"),
        link("b"),
        link("c"),
        joint("first", "base", "a"),
        joint("second", "a", "b", "0.3 0 0", axis="0 0.6 0.8"),
        joint("third", "b", "c", "0 0.2 0.1", axis="1 0 0"),
        *more,
    )


SPRING = '<dynamics damping="0.3" friction="0.2" spring_stiffness="7" spring_reference="0.4"/>'
LIMITS = '<limit lower="-0.5" upper="0.8" effort="30" velocity="9"/>'
ROTOR = '<rotor inertia="2e-4" ratio="-9" mass="0.1"/>'
MOTOR = '<motor effort="2" stall_torque="3" no_load_speed="300"/>'
POLYNOMIAL = (
    '<coupling name="cam"><polynomial joint="b" of="a" coefficients="0.1 0.5 0.2"/></coupling>'
)
BAND = (
    '<spring name="band" stiffness="5" damping="0.1" length="0.2">'
    '<predecessor link="base"/><successor link="c"/></spring>'
)
CABLE = (
    '<spring name="cable" stiffness="5" reference="0.2"><joint name="first" ratio="1"/>'
    '<joint name="third" ratio="2"/></spring>'
)
SIMPLE = (
    '<transmission name="drive"><type>SimpleTransmission</type><joint name="first"/>'
    '<actuator name="motor"><mechanicalReduction>6</mechanicalReduction></actuator></transmission>'
)
FEATURES: Mapping[str, str] = {
    "continuous": arm("continuous"),
    "limits": arm("revolute", LIMITS, rpy="0.2 -0.3 1"),
    "prismatic": arm("prismatic", axis="0 0.6 0.8"),
    "spherical": arm("spherical"),
    "universal": arm("universal", '<axis2 xyz="1 0 0"/>'),
    "planar": arm("planar"),
    "floating": arm("floating"),
    "screw": arm("screw", '<pitch value="0.01"/>'),
    "fixed": arm("fixed"),
    "spring": arm("continuous", SPRING),
    "play": arm("continuous", SPRING.replace("/>", ' spring_deadband="0.1"/>')),
    "armature": arm("continuous", '<armature value="0.05"/>'),
    "rotor": arm("continuous", ROTOR),
    "motor": arm("revolute", ROTOR + MOTOR + LIMITS),
    "mimic": arm("continuous", '<mimic joint="shoulder" multiplier="-2" offset="0.3"/>'),
    "gravity": chain('<gravity xyz="0.1 0.2 -3.7"/>'),
    "coupling of two": fan(coupling("gear", {"a": 3.0, "b": -1.0}, 0.2)),
    "coupling of three": fan(coupling("sum", {"a": 1.0, "b": 2.0, "c": -1.0})),
    "polynomial": fan(POLYNOMIAL),
    "revolute loop": four_bar(),
    "ball loop": four_bar(
        closing=loop("closing", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", "")
    ),
    "rod": four_bar(
        closing=loop("rod", "rod", "coupler", "rocker", "0.5 0 0", "0.7 0 0", "", 'length="0.55"')
    ),
    "spring between points": chain(BAND),
    "spring over joints": chain(CABLE),
    "transmission": chain(SIMPLE),
}

REFUSED: Mapping[tuple[str, str], str] = {
    ("planar", "sdf"): "planar joint 'elbow'",
    ("floating", "sdf"): "floating joint 'elbow' on 'upper', which moves",
    ("play", "xml"): "play of the joint 'elbow'",
    ("coupling of three", "sdf"): "coupling 'sum' of 3 joints",
    ("polynomial", "sdf"): "coupling 'cam' by a polynomial",
    ("rod", "sdf"): "rod loop 'rod'",
    ("jvrc1", "xml"): "principal moments of inertia",
    ("parallel_ankle", "sdf"): "rod loop 'left_rod'",
    ("teleop_arm", "sdf"): "coupling 'wrist-roll-belt' of 4 joints",
    ("tello", "sdf"): "coupling 'left-knee-sum' of 3 joints",
    ("tello", "xml"): "link 'left-ankle-crank' moves",
    ("tello_with_arms", "sdf"): "coupling 'left-knee-sum' of 3 joints",
    ("tello_with_arms", "xml"): "link 'left-ankle-crank' moves",
}


def round_trip(model: rm.Model, name: str, ending: str, folder: Path) -> None:
    """Written and read it is the same robot, or what is refused is in the table."""
    path, write = folder / f"robot.{ending}", WRITERS[ending]
    if words := REFUSED.get((name, ending)):
        with pytest.raises(rm.DescriptionError, match=re.escape(words)):
            write(model, path)
        lost = write(model, path, drop=True)
        assert any(words in each for each in lost)
        rm.load(path)
        return
    assert write(model, path) == ()
    back = rm.load(path)
    same_robot(model, back, states=1)
    if ending in ("urdf", "usda"):  # the others make chains of simple joints of some
        assert rm.compare(model, back).same


def in_turns(case: tuple[int, tuple[str, str]]) -> bool:
    """Every third of the pairs, so that neither a feature nor a format is left out."""
    count, _ = case
    return (count + count // len(WRITERS)) % 3 == 0


PAIRS = list(product(FEATURES, WRITERS))


@pytest.mark.slow_cases("rod-urdf")
@pytest.mark.parametrize(
    ("feature", "ending"), few(PAIRS, *(pair for _, pair in filter(in_turns, enumerate(PAIRS))))
)
def test_features(feature: str, ending: str, tmp_path: Path) -> None:
    round_trip(rm.load(FEATURES[feature]), feature, ending, tmp_path)


@pytest.mark.slow_cases(
    "tello-usda", "tello-urdf", "mini_cheetah-usda", "mini_cheetah-xml", "mini_cheetah-sdf"
)
@pytest.mark.filterwarnings("ignore:.*moves no mass")  # without the loops that SDF cannot say
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("name", few(rm.robots.names(), "five_bar", "mini_cheetah", "tello"))
def test_shipped_robots(name: str, ending: str, tmp_path: Path) -> None:
    round_trip(rm.robots.load(name), name, ending, tmp_path)
