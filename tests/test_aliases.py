"""Former names of modules."""

from __future__ import annotations

from importlib import import_module

import pytest

from robomodel import trajectory
from robomodel.aliases import ModuleAlias
from robomodel.estimation import factors
from robomodel.estimation.instant import Problem


def test_a_former_name_has_the_same_objects() -> None:
    old = import_module("robomodel.trajectory.factors")
    assert old.Gyroscope is factors.Gyroscope
    assert vars(trajectory)["factors"] is old
    assert "Gyroscope" in dir(old)
    public: dict[str, object] = {}
    exec("from robomodel.trajectory.factors import *", public)
    assert public["Gyroscope"] is factors.Gyroscope


def test_every_former_name_of_graphs_has_a_module() -> None:
    former = [each for each in vars(trajectory).values() if isinstance(each, ModuleAlias)]
    assert len(former) == 12
    for each in former:
        name = each.__name__.rpartition(".")[2].replace("graphs", "")
        assert dir(each) == dir(import_module(f"robomodel.estimation.{name}".rstrip(".")))
        assert import_module(f"robomodel.trajectory.graphs.{name}".rstrip("."))


def test_problems_are_found_under_their_former_name() -> None:
    for name in ("robomodel.dynamics.problem", "robomodel.dynamics.problem.problem"):
        assert import_module(name).Problem is Problem


def test_an_unknown_name_is_told() -> None:
    old = import_module("robomodel.trajectory.factors")
    with pytest.raises(AttributeError, match="Gyroskope"):
        _ = old.Gyroskope
    with pytest.raises(AttributeError, match="__file__"):
        _ = old.__file__
