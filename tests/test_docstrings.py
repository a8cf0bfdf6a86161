"""Docstrings of public functions: what the reference shows as tables is there, and complete."""

import inspect
import re

import pytest

import robomodel as rm
from robomodel import loading, studies, symbolic, writers
from robomodel.dynamics import compiled
from robomodel.dynamics.actuators import maps
from robomodel.dynamics.baselines import spanning
from robomodel.dynamics.functions import actuators, contact, derivatives, motion, quantities
from robomodel.identification import regressors
from robomodel.model import parameters
from robomodel.trajectory.rollouts import card, rollout
from robomodel.trajectory.simulation import ground, simulate
from robomodel.writers import c

ROOMS = (
    *(actuators, contact, derivatives, maps, motion, quantities, spanning),
    *(parameters, regressors, card, ground, rollout, simulate),
    *(c, compiled, loading, studies, symbolic, writers),
)
NAMES = [
    name
    for name in rm.__all__
    if inspect.isfunction(getattr(rm, name))
    and any(getattr(room, name, None) is inspect.unwrap(getattr(rm, name)) for room in ROOMS)
]
TYPES = [name for name in rm.__all__ if inspect.isclass(getattr(rm, name)) and name != "Model"]
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:    .*\n?)+)", re.MULTILINE)
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


@pytest.mark.parametrize("name", TYPES)
def test_attributes(name: str) -> None:
    """Every public field has a line of its own, and no other name has one."""
    kind = getattr(rm, name)
    text = inspect.getdoc(kind) or ""
    given = re.findall(r"^    (\w+): \S", dict(SECTION.findall(text))["Attributes"], re.MULTILINE)
    fields = [field for field in getattr(kind, "__annotations__", {}) if field[0] != "_"]
    assert given == fields or (not fields and len(given) == len(set(given)))
    assert not RAW.search(text)
