"""Methods of :class:`~robomodel.model.model.Model` whose functions are in rooms above it.

A room registers its functions when it is imported, as parsers do with formats.
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
