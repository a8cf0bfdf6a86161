"""What no real body has is warned of, once a kind; what is only rounded or idealised is not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from texts import coupling, joint, link, robot

import robomodel as rm
from robomodel.parsers import read

UPRIGHT = np.eye(3)


def inertial(moments, mass=1.0, turn=UPRIGHT, xyz="0 0 0"):
    """An inertial with these principal moments, in axes turned."""
    m = turn @ np.diag(moments) @ turn.T
    entries = {"ixx": m[0, 0], "ixy": m[0, 1], "ixz": m[0, 2]}
    entries |= {"iyy": m[1, 1], "iyz": m[1, 2], "izz": m[2, 2]}
    said = " ".join(f'{name}="{float(value)!r}"' for name, value in entries.items())
    return f'<inertial><origin xyz="{xyz}"/><mass value="{mass}"/><inertia {said}/></inertial>'


def arm(*inner, kind="continuous", more=()):
    """A base and links, each in a line of its own from 3, that turn on it."""
    links = [link(f"l{i}", each) for i, each in enumerate(inner)]
    joints = [joint(f"j{i}", "base", f"l{i}", kind=kind) for i in range(len(inner))]
    return robot(*links, *joints, *more)


def told(text):
    """The warnings of reading a text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(text)
    return [str(warning.message) for warning in caught]


TURNS = [UPRIGHT] + [np.linalg.qr(np.random.default_rng(i).normal(size=(3, 3)))[0] for i in (1, 2)]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("size", [1e-7, 1.0, 1e4])
@pytest.mark.parametrize(
    "moments",
    [
        (1.0, 1.0, 1.0),
        (2.0, 3.0, 4.0),
        (1.0, 1.0, 2.0),  # a thin plate
        (0.0, 1.0, 1.0),  # a thin rod
        (0.33, 0.33, 0.67),  # a plate whose moments are rounded
        (2.0, 2.0, 5.0),  # as some robots' published parameters have it
        (0.0, 0.0, 1.0),  # what only turns about one axis
        (0.0, 0.0, 0.0),
    ],
)
def test_inertias_that_pass(moments, size, turn) -> None:
    assert told(arm(inertial(size * np.array(moments), turn=turn, xyz="0.1 0 0"))) == []


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("size", [1e-7, 1.0, 1e4])
@pytest.mark.parametrize(
    ("moments", "words"),
    [
        ((1.0, 1.0, 3.0), "are those of no body: each is at most the others' sum"),
        ((0.0, 1.0, 2.0), "are those of no body"),
        ((-0.01, 1.0, 1.0), "are not all positive"),
        ((-1.0, -1.0, -1.0), "are not all positive"),
        ((0.0, 0.0, -1.0), "are not all positive"),
    ],
)
def test_inertias_of_no_body(moments, words, size, turn) -> None:
    (message,) = told(arm(inertial(size * np.array(moments), turn=turn)))
    a, b, c = sorted(size * np.array(moments))
    assert message.startswith("<text>:3: link 'l0': the principal moments of inertia, ")
    assert words in message
    numbers = message.partition("inertia, ")[2].partition(" kg m²")[0].replace(" and", ",")
    np.testing.assert_allclose(
        [float(x) for x in numbers.split(", ")], [a, b, c], rtol=6e-3, atol=1e-9 * size
    )


@pytest.mark.parametrize("moments", [(3.0, 1.0, 1.0), (1.0, 3.0, 1.0), (1.0, 1.0, 3.0)])
def test_the_largest_moment_may_be_about_any_axis(moments) -> None:
    """Also where products turn it out of the axes a little."""
    for turn in (np.eye(3), np.linalg.qr(np.eye(3) + 0.1 * TURNS[1])[0]):
        (message,) = told(arm(inertial(np.array(moments), turn=turn)))
        assert "1, 1 and 3 kg m², are those of no body" in message


def test_rounding_left_of_a_point_passes() -> None:
    assert told(arm(inertial((-2e-35, 0.0, 2e-35), xyz="0.1 0 0"))) == []


def test_many_are_told_at_once_and_kinds_apart() -> None:
    flat, wrong = inertial((1.0, 1.0, 9.0)), inertial((-1.0, 1.0, 1.0))
    messages = told(arm(flat, wrong, *[flat] * 6, wrong))
    assert len(messages) == 2
    assert messages[0].startswith("<text>:3: link 'l0': ")
    assert messages[0].endswith(
        "; likewise link 'l2' (line 5), link 'l3' (line 6), link 'l4' (line 7), "
        "link 'l5' (line 8) and 2 more"
    )
    assert messages[1].endswith("; likewise link 'l8' (line 11)")
    with pytest.raises(rm.DescriptionError, match="link 'l0': the principal moments"):
        read(arm(flat, flat), strict=True)


def test_moments_without_a_mass() -> None:
    (message,) = told(arm(inertial((1.0, 2.0, 2.0), mass=0.0)))
    assert message == "<text>:3: link 'l0': has moments of inertia but no mass; give it its mass"


@pytest.mark.slow_cases("sdf", "xml")
@pytest.mark.parametrize("ending", ["urdf", "sdf", "usda", "xml"])
def test_links_of_linkages_without_a_mass(ending: str, tmp_path: Path) -> None:
    """Named in each format; of SDF and MJCF, which demand a mass, 1e-12 kg is written."""
    text = rm.robots.path("four_bar").read_text(encoding="utf-8")
    light = text.replace('mass value="3.3"', 'mass value="0"', 1)
    assert light != text
    with pytest.warns(rm.DescriptionWarning, match="link 'link.': has moments of inertia but no"):
        model = rm.load(light)
    path = tmp_path / f"light.{ending}"
    writers = {
        "urdf": rm.write_urdf, "sdf": rm.write_sdf, "usda": rm.write_usd, "xml": rm.write_mjcf
    }  # fmt: skip
    writers[ending](model, path)
    if ending in ("sdf", "xml"):
        checks = {f.check for f in rm.validate(path).findings if "link1" in f.source.element}
        assert "inertia-size" in checks
    else:
        with pytest.warns(rm.DescriptionWarning, match="has moments of inertia but no mass"):
            rm.load(path)


def test_a_rotor_may_have_no_mass() -> None:
    rotor = inertial((1.0, 2.0, 2.0), mass=0.0)
    gear = coupling("gear", {"j0": 1.0, "j1": -9.0})
    belt = (
        '<coupling name="g"><predecessor link="l1"/><successor link="l0"/>'
        '<ratio value="9"/></coupling>'
    )
    for tie in (gear, belt):
        assert told(arm(rotor, inertial((2, 2, 3)), more=(tie,))) == []
    assert told(arm(inertial((0.0, 0.0, 1.0), mass=0.0))) == []


@pytest.mark.parametrize(
    ("kind", "xyz", "odd"),
    [
        ("continuous", "0 0 0", True),
        ("continuous", "0 0 0.7", True),
        ("continuous", "0.1 0 0.7", False),
        ("spherical", "0.1 0 0", True),
        ("floating", "0 0 0", True),
        ("fixed", "0 0 0", False),
    ],
)
def test_a_point_mass_that_nothing_resists(kind, xyz, odd) -> None:
    messages = told(arm(inertial((0, 0, 0), xyz=xyz), kind=kind))
    assert [("is a point mass on the axis" in message) for message in messages] == [True] * odd


def test_a_point_mass_that_carries_something_passes() -> None:
    point = inertial((0, 0, 0))
    assert told(arm(point, more=(link("hand"), joint("wrist", "l0", "hand")))) == []
    armature = '<joint name="j0"><armature value="0.1"/></joint>'
    read(arm(point), extend=f"<robot name='x'>{armature}</robot>", strict=True)


@pytest.mark.parametrize(
    ("kind", "lower", "odd"),
    [("revolute", 0, True), ("prismatic", 0, True), ("revolute", -1, False), ("fixed", 0, False)],
)
def test_limits_that_would_lock(kind, lower, odd) -> None:
    limit = f'<limit lower="{lower}" upper="0" effort="1" velocity="1"/>'
    messages = told(robot(link("a"), joint("j", "base", "a", kind=kind, more=limit)))
    assert [m.startswith("<text>:4: joint 'j': both limits are 0") for m in messages] == [
        True
    ] * odd


@pytest.mark.parametrize("name", rm.robots.names())
def test_shipped_robots_give_no_cause_for_doubt(name) -> None:
    read(rm.robots.path(name), strict=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [('mass value="2"', 'mass value="1e200"'), ('xyz="0 0 1"', 'xyz="0 -1e200 1"'),
     ('ixx="1"', 'ixx="1e51"')],
)  # fmt: skip
def test_numbers_whose_squares_are_infinite_are_refused(old: str, new: str) -> None:
    text = """<robot name="huge"><link name="base"/><link name="a"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0 0 1"/>
    <axis xyz="0 1 0"/><limit lower="-1e308" upper="1.7e308" effort="1e308" velocity="1e308"/>
    </joint></robot>"""
    rm.load(text)  # limits may be as large as they like
    assert old in text
    with pytest.raises(rm.DescriptionError, match="more than any robot has"):
        rm.load(text.replace(old, new))
