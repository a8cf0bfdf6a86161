"""Records against dataclasses of the standard library: one class body under both decorators."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from importlib import import_module
from typing import Any, ClassVar

import pytest

from benchmarks.shared.imports import modules
from robomodel import records

OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False},
    {"slots": True},
    {"frozen": True, "kw_only": True},
]


def classes(decorator: Callable[..., Any], options: dict[str, bool]) -> tuple[Any, Any, Any]:
    """A class, one that inherits from it, and one with a hash of its own."""

    @decorator(**options)
    class Base:
        """A class."""

        kind: ClassVar[str] = "base"
        a: int
        b: list[int] = field(default_factory=list)
        c: float = field(default=2.0, repr=False, compare=False)

        @property
        def double(self) -> int:
            """Twice a."""
            return 2 * self.a

    @decorator(**options)
    class Other(Base):
        """Another."""

        d: str = "d"
        e: int = field(default=0, init=False)
        f: tuple[int, ...] = field(default=(), kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.a + 1)

    @decorator(**options)
    class Hashed:
        """One without fields to compare."""

        a: int = field(default=0, compare=False)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "hashed"

    return Base, Other, Hashed


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_records_are_as_dataclasses(options: dict[str, bool]) -> None:
    ours, theirs = (classes(each, options)
                    for each in (records.dataclass, dataclasses.dataclass))  # fmt: skip
    positional = {} if "kw_only" in options else {"x": (1, [2], 3.0)}
    for mine, other in zip(ours, theirs, strict=True):
        assert str(inspect.signature(mine)) == str(inspect.signature(other))
        assert [each.name for each in dataclasses.fields(mine)] == [
            each.name for each in dataclasses.fields(other)
        ]
        assert (mine.__hash__ is None) == (other.__hash__ is None)
        assert mine.__match_args__ == other.__match_args__
    for n, given in enumerate(({"a": 1}, {"a": 1, "f": (3,)}, {"a": 5}, {})):
        mine, other = (each[(0, 1, 0, 2)[n]](**given) for each in (ours, theirs))
        assert repr(mine) == repr(other)
        changed = [dataclasses.replace(each, a=9) for each in (mine, other)]
        assert repr(changed[0]) == repr(changed[1])
        for x, y in ((mine, copy.copy(mine)), (mine, changed[0])):
            u, v = (other, copy.copy(other)) if y is not changed[0] else (other, changed[1])
            assert (x == y) == (u == v)
        assert mine != other
        if "frozen" in options:
            assert n == 1 or "eq" in options or _hash(mine) == _hash(other)
            for act in (lambda x: setattr(x, "a", 2), lambda x: delattr(x, "a")):
                with pytest.raises(dataclasses.FrozenInstanceError) as error:
                    act(mine)
                with pytest.raises(dataclasses.FrozenInstanceError) as expected:
                    act(other)
                assert str(error.value) == str(expected.value)
        else:
            mine.a = 8
            assert mine.a == 8
    for values in positional.values():
        assert repr(ours[0](*values)) == repr(theirs[0](*values))
        assert ours[0](*values).c == 3.0
    assert ours[0](a=1).b is not ours[0](a=1).b, "each has a list of its own"
    for wrong in ({}, {"a": 1, "z": 2}):
        with pytest.raises(TypeError, match="__init__"):
            ours[0](**wrong)


def _hash(x: Any) -> Any:
    try:
        return hash(x)
    except TypeError as error:  # of a list
        return str(error)


@records.dataclass(frozen=True, slots=True)
class Pickled:
    """One that is found by name."""

    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list)


def test_frozen_records_with_slots_are_pickled_and_copied() -> None:
    first = Pickled(1, (2,), [3])
    for again in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first), copy.copy(first)):
        assert again == first
        assert again is not first


def test_all_records_of_the_package_take_what_dataclasses_take() -> None:
    """Signatures of all records, against those that the standard library makes of their fields."""
    found = 0
    for name in modules():
        try:
            module = import_module(f"robomodel.{name}")
        except ImportError:  # of libraries that need not be installed
            continue
        for cls in vars(module).values():
            if not (
                isinstance(cls, type)
                and cls.__module__ == module.__name__
                and "__init__" in vars(cls)
            ):
                continue
            if not dataclasses.is_dataclass(cls) or vars(cls)["__dataclass_params__"].init:
                continue
            fields = [(each.name, each.type, copy.copy(each)) for each in dataclasses.fields(cls)]
            theirs = dataclasses.make_dataclass(cls.__name__, fields)
            assert str(inspect.signature(cls)) == str(inspect.signature(theirs)), cls
            found += 1
    assert found > 300
