"""Griffe's view of declared algorithms: with the options that their decorator documents."""

from __future__ import annotations

import inspect
from typing import Any

import griffe

import robomodel.dynamics


class DeclaredAlgorithms(griffe.Extension):
    """Functions under ``@algorithm`` have the signatures and docstrings of the imported ones."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace the declaration's by what ``help`` shows."""
        if not any(str(each.value).startswith("algorithm(") for each in func.decorators):
            return
        declared = getattr(robomodel.dynamics, func.name)
        func.docstring = griffe.Docstring(inspect.getdoc(declared) or "", parent=func)
        func.parameters = griffe.Parameters(*(
            griffe.Parameter(
                p.name,
                annotation=str(p.annotation),
                kind=griffe.ParameterKind[p.kind.name.lower()],
                default=None if p.default is p.empty else repr(p.default),
            )
            for p in inspect.signature(declared).parameters.values()
        ))  # fmt: skip
