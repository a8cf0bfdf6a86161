"""Methods of :class:`~robomodel.model.model.Model` whose functions need its module.

Modules of this room register their functions when they are imported, which they are when a method
first asks for one; those of rooms above are called by name: :mod:`robomodel.showing`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_HOMES = (
    "configurations.functions",
    "configurations.moving",
    "configurations.states",
    "parametric",
)


class _Methods(dict[str, Callable[..., Any]]):
    """Functions by names of methods, whose modules are imported when one is not there."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        for home in _HOMES:
            import_module(f"robomodel.model.{home}")
        if name not in self:
            raise KeyError(name)
        return self[name]


METHODS = _Methods()
"""The functions, by the names of the methods; each takes the model first."""


def method(function: Function) -> Function:
    """Register a function as what the model's method of this name calls."""
    METHODS[function.__name__] = function
    return function


def method_named(name: str) -> Callable[[Function], Function]:
    """Register a function under the name of a method that is not its own."""

    def register(function: Function) -> Function:
        METHODS[name] = function
        return function

    return register
