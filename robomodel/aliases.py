"""Modules under their former names, for those who still import them so."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class ModuleAlias(ModuleType):
    """A module's former name: its attributes are the module's, which is imported when asked."""

    def __init__(self, name: str, target: str) -> None:
        super().__init__(name, f"Former name of :mod:`{target}`.")
        self._target = target

    def __getattr__(self, name: str) -> Any:
        """An attribute of the module; ``__all__`` are its public names."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        module = import_module(self._target)
        if name == "__all__" and not hasattr(module, name):
            return [each for each in vars(module) if not each.startswith("_")]
        return getattr(module, name)

    def __dir__(self) -> list[str]:
        """The names of the module."""
        return dir(import_module(self._target))


def keep_names(package: str, moved: Mapping[str, str]) -> None:
    """Let ``moved``, former names of modules in an imported package, mean other modules."""
    for old, target in moved.items():
        alias = ModuleAlias(f"{package}.{old}", target)
        sys.modules[alias.__name__] = alias
        if "." not in old:
            setattr(sys.modules[package], old, alias)
