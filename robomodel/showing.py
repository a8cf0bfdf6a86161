"""Functions of rooms above that objects call by name: how they show themselves, where they get to.

A room of mechanics has no picture of its own, a model no reach; the package says at import which
module has what, and it is imported when it is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES: dict[str, str] = {}


def register(module: str, *names: str) -> None:
    """Say in which module these functions are; it is imported when one is called.

    Args:
        module: Its full name.
        names: Names of its functions.
    """
    _MODULES.update(dict.fromkeys(names, module))


def call(name: str, /, *arguments: Any, **options: Any) -> Any:
    """Call a registered function.

    Args:
        name: Its name.
        arguments: Its arguments.
        options: Its options.

    Raises:
        LookupError: Nothing is registered by this name.
    """
    if name not in _MODULES:
        raise LookupError(f"no module has '{name}': none was registered")
    return getattr(import_module(_MODULES[name]), name)(*arguments, **options)
