"""Methods of :class:`~robomodel.model.model.Model` whose functions need its module.

Modules of this room register their functions when they are imported; those of rooms above are
called by name: :mod:`robomodel.showing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

METHODS: dict[str, Callable[..., Any]] = {}
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
