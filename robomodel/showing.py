"""How objects show themselves: functions of rooms above theirs, registered by name.

A room of mechanics has no picture of its own; the package says at import which module draws what.
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


def call(name: str, *arguments: Any, **options: Any) -> Any:
    """Call a registered function.

    Args:
        name: Its name.
        arguments: Its arguments.
        options: Its options.

    Raises:
        LookupError: Nothing is registered by this name.
    """
    if name not in _MODULES:
        raise LookupError(f"no module draws '{name}': none was registered")
    return getattr(import_module(_MODULES[name]), name)(*arguments, **options)
