"""Modules of the package and what each imports, read from the source files.

Imports within functions count; those for type checkers alone, and names that a package's
``__init__`` hands on, do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import robomodel

ROOT = Path(robomodel.__file__).parent


@cache
def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module's file, by its name without the package's."""
    paths = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        paths[name or "robomodel"] = path
    return paths


def imports(name: str, root: Path = ROOT) -> frozenset[str]:
    """The modules of the package that a module imports."""
    return _imports(name, root)  # cached for both ways to call it


@cache
def _imports(name: str, root: Path) -> frozenset[str]:
    imported = set()
    for node in _statements(ast.parse(modules(root)[name].read_text(encoding="utf-8"))):
        for full in _imported(node):
            at = full.removeprefix("robomodel").removeprefix(".") or "robomodel"
            while at not in modules(root):
                at = at.rpartition(".")[0] or "robomodel"
            imported.add(at)
    return frozenset(imported - {name})


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements of a module, but for those under TYPE_CHECKING."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
                continue
            yield child
            yield from _statements(child)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names if each.name.split(".")[0] == "robomodel")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "robomodel":
        yield from (f"{node.module}.{each.name}" for each in node.names)


def top(name: str) -> str:
    """The subpackage, or the module, directly under the package that a module belongs to."""
    return name.partition(".")[0]


def upward(layers: tuple[tuple[str, ...], ...], root: Path = ROOT) -> set[tuple[str, str]]:
    """Imports, (importer, imported), that lead to the same layer or to one above it."""
    height = {each: n for n, layer in enumerate(layers) for each in layer}
    return {
        (name, other)
        for name in modules(root)
        for other in imports(name, root)
        if top(name) != top(other) and height[top(name)] <= height[top(other)]
    }


def circles(root: Path = ROOT) -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(imports(name, root)):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                result.append(set(stack[at:]))
            del stack[at:]

    for name in modules(root):
        if name not in number:
            visit(name)
    return result
