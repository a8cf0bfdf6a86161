"""Docstrings of public functions: what the reference shows as tables is there, and complete."""

import doctest
import inspect
import re

import numpy as np
import pytest

import robomodel as rm
from robomodel import control
from robomodel.estimation import Goal, Plan, Stance, plan
from robomodel.identification import BaseParameters, Excitation, Identified, Log, Parameters
from robomodel.motion import Rollout, Stop

FUNCTIONS = {
    **{name: getattr(rm, name) for name in rm.__all__ if inspect.isfunction(getattr(rm, name))},
    "trajectory.plan": plan,
    **{
        f"Model.{name}": method
        for name, method in inspect.getmembers(rm.Model, inspect.isfunction)
        if re.search("^ *Args:$", method.__doc__ or "", re.MULTILINE)
    },
}
TYPES = {
    **{name: getattr(rm, name) for name in rm.__all__ if inspect.isclass(getattr(rm, name))},
    **{kind.__name__: kind for kind in (Goal, Plan, Rollout, Stance, Stop)},
    **{
        kind.__name__: kind
        for kind in vars(control).values()
        if inspect.isclass(kind) and hasattr(kind, "__dataclass_fields__")
    },
    **{kind.__name__: kind for kind in (BaseParameters, Excitation, Identified, Log, Parameters)},
}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:    .*\n?)+)", re.MULTILINE)
RAW = re.compile(r":(?:param|type|rtype|returns?|raises|ref|doc|math)\b.*?:|^\.\. ", re.MULTILINE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections(name: str) -> None:
    function = inspect.unwrap(FUNCTIONS[name])
    text = inspect.getdoc(function) or ""
    sections = dict(SECTION.findall(text))
    given = re.findall(r"^    \**(\w+): \S", sections["Args"], re.MULTILINE)
    assert given == [name for name in inspect.signature(function).parameters if name != "self"]
    results = re.findall(r"^    (\w+): \S", sections["Returns"], re.MULTILINE)
    returned = str(function.__annotations__["return"])
    several = re.fullmatch(r"tuple\[(.*)(?<!\.{3})\]", returned)
    assert len(results) == (len(several[1].split(",")) if several else 1)
    assert not RAW.search(text)


@pytest.mark.parametrize("name", TYPES)
def test_attributes(name: str) -> None:
    """Every public field has a line of its own, and no other name has one."""
    kind = TYPES[name]
    text = inspect.getdoc(kind) or ""
    given = re.findall(r"^    (\w+): \S", dict(SECTION.findall(text))["Attributes"], re.MULTILINE)
    fields = [field for field in getattr(kind, "__annotations__", {}) if field[0] != "_"]
    classes = [base for base in kind.__mro__ if base.__module__.startswith("robomodel")]
    set_later = re.findall(r"self\.(\w+)", "".join(map(inspect.getsource, classes)))
    assert given == fields or (not fields and {*given} <= {*dir(kind), *set_later})
    assert not RAW.search(text)


@pytest.mark.slow_cases("contact_aba", "actuation", "validate", "calibrate", "excitation")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_run(name: str) -> None:
    """Every public function shows itself, and prints what it says."""
    text = inspect.getdoc(inspect.unwrap(FUNCTIONS[name])) or ""
    assert "Examples:\n    >>> " in text
    example = doctest.DocTestParser().get_doctest(text, {"rm": rm, "np": np}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example).failed == 0
