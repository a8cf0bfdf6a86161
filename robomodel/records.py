"""Dataclasses that take little time to import: their methods are made when they are first used.

:func:`dataclasses.dataclass` compiles the text of up to six methods as soon as a class is defined,
which takes 0.6 ms: a third of the time in which this package is imported, for classes of which most
are never used. Here ``__init__`` is compiled at its first use, and the other methods are closures.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


class _Factory:
    """The default that stands for a new one."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """As :func:`dataclasses.dataclass`, with these of its options."""

    def made(cls: type) -> type:
        own = frozenset(vars(cls))
        plain = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )
        cls = plain(cls)
        methods: dict[str, object] = {"__init__": _Init(cls, frozen), "__repr__": _repr}
        if eq:
            methods["__eq__"] = _eq
            # Python sets the hash of a class that defines __eq__ to None
            if vars(cls).get("__hash__") is None:
                setattr(cls, "__hash__", _hash if frozen else None)  # noqa: B010
        if frozen:
            methods |= _refusing(cls)
        if frozen and slots:
            methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
        for name, method in methods.items():
            if name not in own:
                setattr(cls, name, method)
        return cls

    return made if cls is None else made(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


class _Init:
    """``__init__`` of a class, until it is looked up."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self.cls, self.frozen = cls, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., None]:
        init = _compiled(self.cls, self.frozen)
        setattr(self.cls, "__init__", init)  # noqa: B010
        bound: Callable[..., None] = init.__get__(instance, owner)
        return bound


def _compiled(cls: type, frozen: bool) -> Any:
    """``__init__`` of a class: sets its fields, with the names of defaults in a function around."""
    every = dataclasses.fields(cls)
    given = sorted((each for each in every if each.init), key=lambda each: bool(each.kw_only))
    parameters, body, of = ["self"], list[str](), "__dataclass_"
    for each in given:
        if each.kw_only and "*" not in parameters:
            parameters.append("*")
        needed = each.default is each.default_factory  # both are missing
        parameters.append(each.name if needed else f"{each.name}={of}{each.name}")
    values = dict[str, object]()
    for each in every:
        new = each.default_factory is not dataclasses.MISSING
        values[of + each.name] = _FACTORY if new else each.default
        values[f"{of}new_{each.name}"] = each.default_factory
        if not each.init and each.default is each.default_factory:
            continue  # for __post_init__
        value = each.name if each.init else of + each.name
        if new:
            value = f"{of}new_{each.name}() if {value} is {of}factory else {value}"
        text = "{}set(self, {!r}, {})" if frozen else "self.{1} = {2}"
        body.append(text.format(of, each.name, value))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    values |= {f"{of}set": object.__setattr__, f"{of}factory": _FACTORY}
    text = f"def make({', '.join(values)}):\n def __init__({', '.join(parameters)}):\n  "
    text += "\n  ".join(body or ["pass"]) + "\n return __init__"
    names = dict[str, Any]()
    exec(text, vars(sys.modules[cls.__module__]), names)
    init = names["make"](**values)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in given} | {"return": None}
    return init


@cache
def _compared(cls: type) -> Callable[[object], tuple[object, ...]]:
    """The values of the fields that are compared."""
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _eq(self: object, other: object) -> Any:
    cls: type = type(self)
    values = _compared(cls)
    return values(self) == values(other) if type(other) is cls else NotImplemented


def _hash(self: object) -> int:
    cls: type = type(self)
    return hash(_compared(cls)(self))


@recursive_repr()
def _repr(self: Any) -> str:
    names = [each.name for each in dataclasses.fields(self) if each.repr]
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{self.__class__.__qualname__}({shown})"


def _refusing(cls: Any) -> dict[str, object]:
    """Methods of frozen instances, which refuse what would change them."""

    def refuse(self: object, name: str, change: str) -> None:
        if type(self) is cls or name in vars(cls)["__dataclass_fields__"]:
            raise dataclasses.FrozenInstanceError(f"cannot {change} field {name!r}")

    def assign(self: object, name: str, value: object) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _getstate(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
