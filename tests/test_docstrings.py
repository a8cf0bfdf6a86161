"""Docstrings of public functions: what the reference shows as tables is there, and complete."""

import inspect
import re

import pytest

import robomodel as rm
from robomodel.dynamics.functions import actuators, contact, derivatives, motion, quantities

ROOMS = (actuators, contact, derivatives, motion, quantities)
NAMES = [
    name
    for name in rm.__all__
    if inspect.isfunction(getattr(rm, name))
    and any(getattr(room, name, None) is inspect.unwrap(getattr(rm, name)) for room in ROOMS)
]
SECTION = re.compile(r"^(Args|Returns|Raises):\n((?:    .*\n?)+)", re.MULTILINE)
RAW = re.compile(r":(?:param|type|rtype|returns?|raises|ref|doc|math)\b.*?:|^\.\. ", re.MULTILINE)


def test_names_are_there() -> None:
    assert {"rnea", "aba", "hybrid", "jacobian", "impulse", "saturate"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_sections(name: str) -> None:
    function = inspect.unwrap(getattr(rm, name))
    text = inspect.getdoc(function) or ""
    sections = dict(SECTION.findall(text))
    given = re.findall(r"^    (\w+): \S", sections["Args"], re.MULTILINE)
    assert given == list(inspect.signature(function).parameters)
    results = re.findall(r"^    (\w+): \S", sections["Returns"], re.MULTILINE)
    several = re.fullmatch(r"tuple\[(.*)\]", str(function.__annotations__["return"]))
    assert len(results) == (len(several[1].split(",")) if several else 1)
    assert not RAW.search(text)
