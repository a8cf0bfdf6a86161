"""URDF files as short texts; what is refused or warned of, with its line."""

import re
import warnings

import pytest

from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
)
from robomodel.parsers import read


def robot(*body, links="abc"):
    """A robot with its links in line 2, and each element of body in a line of its own from 3."""
    named = "".join(f'<link name="{link}"/>' for link in links)
    return "\n".join(['<robot name="r">', named, *body, "</robot>"])


def joint(name, parent, child, *inner, type="revolute", more=""):  # noqa: A002
    inside = "".join(inner)
    if type in ("revolute", "prismatic") and not re.search("<limit[ />]", inside):
        inside += "<limit/>"  # URDF demands it
    return (
        f'<joint name="{name}" type="{type}" {more}>'
        f'<parent link="{parent}"/><child link="{child}"/>{inside}</joint>'
    )


AB = joint("j1", "a", "b")

BC = joint("j2", "b", "c")


def loop(*inner, type="revolute", more="", name="l", ends="bc"):  # noqa: A002
    p, s = ends
    return (
        f'<loop name="{name}" type="{type}" {more}>'
        f'<predecessor link="{p}"/><successor link="{s}"/>{"".join(inner)}</loop>'
    )


def inertial(mass='<mass value="1"/>', more="", **entries):
    values = dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "0") | entries
    inertia = " ".join(f'{name}="{value}"' for name, value in values.items() if value is not None)
    return (
        f'<robot name="r">\n<link name="a"><inertial>\n{mass}\n<inertia {inertia}/>{more}'
        "</inertial></link></robot>"
    )


def first(text):
    """The first joint of a robot with nothing odd about it."""
    return read(text, strict=True).joints[0]


def refused(text, *words, line, element):
    """Assert that ``text`` is refused, there, in these words, under strict or not."""
    for strict in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DescriptionError) as caught:
                read(text, strict=strict)
        error = caught.value
        for word in words:
            assert word in error.message
        assert (error.file, error.line, error.element) == ("<text>", line, element)
        assert str(error).startswith(f"<text>:{line}: {element}: ")
        assert "\n" not in str(error)


def warned(text, *words, line, element):
    """Assert that ``text`` is warned of once, and refused under strict; what it is read as."""
    with pytest.warns(DescriptionWarning) as caught:
        description = read(text)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"<text>:{line}: {element}: ")
    for word in words:
        assert word in message
    with pytest.raises(DescriptionError) as error:
        read(text, strict=True)
    assert str(error.value) == message
    return description


SMALL = '<robot name="small">\n<link name="a"/>\n</robot>'
