"""Griffe's view of declared algorithms: with the options that their decorator documents."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe


class DeclaredAlgorithms(griffe.Extension):
    """Functions under a decorator of dynamics.algorithm have the imported signatures and docs."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace the declaration's by what ``help`` shows."""
        decorators = r"algorithm\(|documented$|_writer$"
        if not any(re.match(decorators, str(each.value)) for each in func.decorators):
            return
        declared = getattr(import_module(func.module.path), func.name)
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
