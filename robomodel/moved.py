"""Modules under the names that they had: each stays importable for one release and warns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

MODULES = {
    "robomodel.dynamics.problem": ("robomodel.instants",),
    "robomodel.estimation.compiled": ("robomodel.instants.compiled",),
    "robomodel.estimation.equations": ("robomodel.instants.equations",),
    "robomodel.estimation.instant": ("robomodel.instants.problem",),
    "robomodel.estimation.orders": ("robomodel.instants.orders",),
    "robomodel.estimation.sensors": ("robomodel.instants.sensors",),
    "robomodel.parsers.checks": ("robomodel.vocabulary.checks",),
    "robomodel.parsers.markup": ("robomodel.vocabulary.markup",),
    "robomodel.parsers.schema": ("robomodel.vocabulary.schema",),
    "robomodel.parsers.shared": ("robomodel.vocabulary",),
    "robomodel.parsers.shared.frames": ("robomodel.vocabulary.frames",),
    "robomodel.parsers.shared.inertias": ("robomodel.vocabulary.inertias",),
    "robomodel.parsers.shared.motors": ("robomodel.vocabulary.motors",),
    "robomodel.parsers.shared.rotors": ("robomodel.vocabulary.rotors",),
    "robomodel.parsers.shared.springs": ("robomodel.vocabulary.springs",),
    "robomodel.parsers.xml": ("robomodel.vocabulary.xml",),
    "robomodel.trajectory": ("robomodel.motion", "robomodel.estimation"),
}
"""Old names since 0.4, with the modules that have what was in them."""


class _Moved:
    """Imports an old name as a module with the names of the new ones."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        holds_others = any(other.startswith(f"{name}.") for other in MODULES)
        loader: Any = self  # importlib.abc, which has the base class, imports tempfile and more
        return spec_from_loader(name, loader, is_package=holds_others) if name in MODULES else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        homes = MODULES[module.__name__]
        warnings.warn(
            f"{module.__name__} is now {' and '.join(homes)}; the old name goes with the next "
            "release",
            DeprecationWarning,
            stacklevel=2,
        )
        for home in reversed(homes):
            names = vars(import_module(home))
            vars(module).update({name: x for name, x in names.items() if not name.startswith("__")})


def install() -> None:
    """Make the old names importable; asked last, so that modules of today go first."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
