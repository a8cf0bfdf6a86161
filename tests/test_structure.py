"""How the package stands: a module imports what is below it, and no imports go round in circles.

Read from the imports themselves, those within functions too; of what is imported for type checkers
alone, and of names that a package's ``__init__`` hands on, nothing is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import robomodel

ROOT = Path(robomodel.__file__).parent

LAYERS = (
    ("aliases", "errors", "locks", "progress", "scalars"),
    ("spatial", "files", "kernels"),
    ("description",),
    ("motors", "poses", "resources", "text", "transmissions"),
    ("masses", "meshes"),
    ("shapes",),
    ("model",),
    ("parsers", "dynamics"),
    ("loading", "identification", "trajectory"),
    ("robots", "routines"),
    ("writers", "curvatures"),
    ("differentiable",),
    ("external", "jax", "torch", "studies"),
    ("symbolic",),
    ("views",),
    ("robomodel",),  # the package itself: the names that users import
    ("cli",),
    ("__main__",),
)
"""From the ground up. What stands beside each other may not import each other."""

UPWARD = {
    ("studies.sketch", "views.poses"),  # pictures of a page draw what the viewer shows
    ("trajectory.simulation.trajectory", "views.animation"),  # a method that plays a motion
}
"""Imports that run upwards or sideways all the same, (importer, imported); they may only go."""


@cache
def modules() -> dict[str, Path]:
    """Every module's file, by its name without the package's."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name or "robomodel"] = path
    return found


@cache
def imports(name: str) -> frozenset[str]:
    """The modules of the package that a module imports."""
    found = set()
    for node in _statements(ast.parse(modules()[name].read_text(encoding="utf-8"))):
        for full in _imported(node):
            at = full.removeprefix("robomodel").removeprefix(".") or "robomodel"
            while at not in modules():
                at = at.rpartition(".")[0] or "robomodel"
            found.add(at)
    return frozenset(found - {name})


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


def room(name: str) -> str:
    return name.partition(".")[0]


def test_every_room_has_its_layer() -> None:
    assert {room(name) for name in modules()} == {each for layer in LAYERS for each in layer}


def test_imports_lead_down() -> None:
    height = {each: n for n, layer in enumerate(LAYERS) for each in layer}
    found = {
        (name, other)
        for name in modules()
        for other in imports(name)
        if room(name) != room(other) and height[room(name)] <= height[room(other)]
    }
    assert not found - UPWARD, "imports that run upwards or sideways"


def test_descriptions_and_kernels_know_no_mechanics() -> None:
    """The arrows of the four floors: kernels stand aside and know nothing but scalars."""
    for name in modules():
        rooms = {room(other) for other in imports(name)} - {room(name)}
        if room(name) == "kernels":
            assert rooms <= {"errors", "locks", "progress", "scalars"}, name
        if room(name) == "model":
            assert not rooms & {"dynamics", "kernels", "parsers", "writers", "trajectory"}, name
        if room(name) == "parsers":
            assert not rooms & {"model", "dynamics", "kernels", "writers"}, name


def test_no_imports_go_round_in_circles() -> None:
    assert not circles(), "modules that import each other all round"


def circles() -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(imports(name)):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for name in modules():
        if name not in number:
            visit(name)
    return found


def test_files_hold_one_subject() -> None:
    """More than 500 lines are two subjects."""
    for name, path in modules().items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, name
