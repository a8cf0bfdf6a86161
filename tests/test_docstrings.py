"""Docstrings of public functions: what the reference shows as tables is there, and complete."""

import inspect
import re

import pytest

import robomodel as rm
from robomodel import loading, symbolic, writers
from robomodel.dynamics import compiled
from robomodel.dynamics.baselines import spanning
from robomodel.dynamics.functions import actuators, contact, derivatives, motion, quantities
from robomodel.trajectory.rollouts import card, rollout
from robomodel.trajectory.simulation import simulate
from robomodel.writers import c

ROOMS = (
    *(actuators, contact, derivatives, motion, quantities, spanning),
    *(c, card, compiled, loading, rollout, simulate, symbolic, writers),
)
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
    given = re.findall(r"^    \**(\w+): \S", sections["Args"], re.MULTILINE)
    assert given == list(inspect.signature(function).parameters)
    results = re.findall(r"^    (\w+): \S", sections["Returns"], re.MULTILINE)
    returned = str(function.__annotations__["return"])
    several = re.fullmatch(r"tuple\[(.*)(?<!\.{3})\]", returned)
    if returned != "tuple[Array, ...]":  # as many as options ask for
        assert len(results) == (len(several[1].split(",")) if several else 1)
    assert not RAW.search(text)
