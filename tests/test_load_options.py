"""What the caller chooses at load is said in the model's description."""

from __future__ import annotations

import math

import numpy as np
import pytest
from texts import coupling, fan, four_bar, joint, link, robot

import robomodel as rm
from robomodel.description import Description
from robomodel.errors import DescriptionError
from robomodel.model import build
from robomodel.model.options import with_options
from robomodel.parsers import read


def marks(description: Description) -> dict[str, object]:
    return {joint.name: joint.independent for joint in description.joints}


def test_nothing_chosen_changes_nothing() -> None:
    description = read(four_bar())
    assert with_options(description) is description


def test_a_freed_root_hangs_on_a_massless_link_of_its_own() -> None:
    given = read(robot(link("arm"), joint("hinge", "base", "arm")).replace("base", "world"))
    freed = with_options(given, floating_base=True)
    assert [each.name for each in freed.links] == ["world_0", "world", "arm"]
    free = freed.joints[0]
    assert (free.name, free.type, free.parent, free.child) == (
        "floating_base",
        "floating",
        "world_0",
        "world",
    )
    assert (freed.links[1:], freed.joints[1:]) == (given.links, given.joints)
    assert free.source == given.links[0].source
    assert with_options(freed, floating_base=True) is freed
    assert (
        "'floating_base' was added to free the root link 'world'"
        in build(given, floating_base=True).notes[0]
    )
    assert build(freed, floating_base=True).notes == ()


def test_a_held_root_is_fixed_and_stays_where_it_was() -> None:
    cheetah = read(rm.robots.path("mini_cheetah"))
    held = with_options(cheetah, floating_base=False)
    changed = [
        (one, two) for one, two in zip(cheetah.joints, held.joints, strict=True) if one != two
    ]
    assert [(one.type, two.type) for one, two in changed] == [("floating", "fixed")]
    assert changed[0][0].source == changed[0][1].source
    assert build(held).nv == 12
    arm = read(fan())
    assert with_options(arm, floating_base=False) == arm
    plate = robot(link("a"), joint("j", "base", "a", kind="floating"))
    plate = read(plate.replace('<link name="base"/>', link("base")))  # a root with mass is held
    assert with_options(plate, floating_base=False) == plate


def test_independent_joints_replace_the_marks_of_their_cluster_only() -> None:
    two = robot(
        *(link(f"link_{n}") for n in "abcd"),
        *(joint(n, "base", f"link_{n}") for n in "ab"),
        *(joint(n, "base", f"link_{n}", mark=n == "d") for n in "cd"),
        coupling("one", {"a": 1.0, "b": 2.0}),
        coupling("two", {"c": 1.0, "d": 2.0}),
    )
    given = read(two)
    assert marks(with_options(given, independent=["b"])) == {
        "a": False,
        "b": True,
        "c": False,
        "d": True,
    }
    assert marks(with_options(given, independent=["c"])) == {
        "a": None,
        "b": None,
        "c": True,
        "d": False,
    }
    assert build(given, independent=["b", "c"]).dof_names == ("b", "c")
    with pytest.raises(DescriptionError, match="there is no moving joint 'bb'"):
        with_options(given, independent=["bb"])


def test_a_joint_that_no_condition_ties_keeps_its_mark() -> None:
    given = read(fan())
    assert with_options(given, independent=["b"]) == given


PLANAR = robot(
    link("puck"),
    link("rod"),
    joint("ice", "base", "puck", kind="planar", axis="0 0 1"),
    joint("hinge", "puck", "rod", "0.3 0 0"),
    '<loop name="pin" type="revolute"><predecessor link="base"><origin xyz="1 0 0"/></predecessor>'
    '<successor link="rod"><origin xyz="0.7 0 0"/></successor><axis xyz="0 0 1"/></loop>',
)


def test_single_freedoms_can_be_independent() -> None:
    given = read(PLANAR)
    chosen = with_options(given, independent=["ice.0", "ice.2"])
    assert marks(chosen) == {"ice": (True, False, True), "hinge": False}


def test_the_file_can_mark_single_freedoms() -> None:
    text = PLANAR.replace('name="ice"', 'name="ice" independent="false true false"')
    assert marks(read(text)) == {"ice": (False, True, False), "hinge": None}
    assert rm.load(text).dof_names == ("ice.1", "hinge")
    for wrong in ("true false", "true false yes", "true false 1"):
        with pytest.raises(DescriptionError, match="or 3 of these words"):
            read(text.replace("false true false", wrong))
    with pytest.raises(DescriptionError, match="must be 'true' or 'false', got 'true true'"):
        read(PLANAR.replace('name="hinge"', 'name="hinge" independent="true true"'))


def test_gravity_of_the_file_and_of_the_caller() -> None:
    text = fan().replace("<link", '<gravity xyz="0 0 -1.62"/><link', 1)
    assert read(text).gravity == (0.0, 0.0, -1.62)
    moon = rm.load(text)
    assert moon.gravity == (0.0, 0.0, -1.62)
    other = rm.load(text, gravity=(0, 3.7, 0))
    assert other.gravity == other.description.gravity == (0.0, 3.7, 0.0)
    assert rm.load(fan()).gravity == (0.0, 0.0, -9.81)
    assert rm.load(fan()).description.gravity is None
    assert rm.load(text, extend='<robot><gravity xyz="1 0 0"/></robot>').gravity == (1.0, 0.0, 0.0)
    with pytest.raises(DescriptionError, match="gravity"):
        read(text.replace("0 0 -1.62", "0 -1.62"))


def test_limits_of_1e308_are_none() -> None:
    limit = '<limit lower="-1e308" upper="1e308" effort="1e308" velocity="2"/>'
    text = robot(link("a"), joint("j", "base", "a", kind="revolute", more=limit))
    limits = read(text).joints[0].limits
    assert (limits.lower, limits.upper, limits.effort) == (-math.inf, math.inf, math.inf)
    assert limits.velocity == 2.0


def test_building_what_was_built_is_the_same_robot() -> None:
    free = rm.load(four_bar(), floating_base=True, independent=["j_rocker"], gravity=(0, 1, -9))
    again = build(free.description)
    assert again.dof_names == free.dof_names
    assert again.gravity == free.gravity
    q = free.random_configuration(0)
    np.testing.assert_array_equal(rm.crba(again, q), rm.crba(free, q))


def test_one_independent_joint_is_one_name() -> None:
    """A name is not taken for a list of letters; nor is what is no name."""
    for chosen in ("j_rocker", ["j_rocker"], (name for name in ["j_rocker"])):
        assert rm.load(four_bar(), independent=chosen).dof_names == ("j_rocker",)
    with pytest.raises(DescriptionError, match="no moving joint 'j_rockr'; did you mean 'j_rock"):
        rm.load(four_bar(), independent="j_rockr")
    for wrong in (3, [3], [["j_rocker"]]):
        with pytest.raises(TypeError, match="independent is a name, or several, not"):
            rm.load(four_bar(), independent=wrong)
