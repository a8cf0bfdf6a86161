"""Layers of the package: a module imports from layers below its own, and there are no cycles.

The imports are read from the source files, as benchmarks/shared/imports.py says.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import robomodel.dynamics.functions
from benchmarks.shared.imports import circles, imports, modules, top, upward

LAYERS = (
    ("arrays", "errors", "moved", "running", "scalars", "showing", "tolerances"),
    ("messages",),
    ("spatial", "files", "kernels"),
    ("description",),
    ("mechanism", "vocabulary"),
    ("mobility",),
    ("model",),
    ("reach",),
    ("parsers", "dynamics"),
    ("opentree",),
    ("motion",),
    ("estimation", "control"),
    ("instants",),
    ("loading", "identification"),
    ("robots", "interop", "simulators"),
    ("writing",),
    ("jax", "torch", "crocoddyl", "gymnasium", "reports"),
    ("views", "cuda", "lint"),
    ("robomodel",),  # the package itself: the names that users import
    ("cli",),
    ("__main__",),
    ("papers",),  # each paper in its own words; nothing imports it
)
"""The lowest layer first. Members of one layer may not import each other."""


def test_every_subpackage_has_its_layer() -> None:
    assert {top(name) for name in modules()} == {each for layer in LAYERS for each in layer}


def test_imports_lead_down() -> None:
    assert not upward(LAYERS), "imports that run upwards or sideways"


def test_descriptions_and_kernels_know_no_mechanics() -> None:
    """Parsers know neither model nor dynamics, and kernels nothing but scalars."""
    for name in modules():
        others = {top(other) for other in imports(name)} - {top(name)}
        if top(name) == "kernels":
            assert others <= {"arrays", "errors", "running", "scalars"}, name
        if top(name) in ("mechanism", "mobility", "model", "reach"):
            assert not others & {"dynamics", "parsers", "writing"}, name
        if top(name) in ("parsers", "vocabulary"):
            assert not others & {"model", "dynamics", "kernels", "writing"}, name


def test_nothing_imports_the_papers() -> None:
    """What is study only stands in robomodel.papers, and the package works without it."""
    for name in modules():
        if top(name) != "papers":
            assert "papers" not in {top(other) for other in imports(name)}, name


def test_only_the_package_itself_names_the_room_of_cards() -> None:
    """It is loaded by name when it is asked for: code for cards has not run on one."""
    for name in modules():
        if top(name) not in ("cuda", "robomodel"):
            assert "cuda" not in {top(other) for other in imports(name)}, name


def test_no_imports_go_round_in_circles() -> None:
    assert not circles(), "modules that import each other all round"


def test_files_hold_one_subject() -> None:
    """More than 900 lines are two subjects."""
    for name, path in modules().items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 900, name


def test_the_drawing_shows_every_subpackage() -> None:
    """docs/images/layout.svg; `python -m benchmarks.structure` draws it anew."""
    drawn = (Path(__file__).parent.parent / "docs/images/layout.svg").read_text(encoding="utf-8")
    shown = {text.removesuffix("/") for text in re.findall(r">([a-z_]+/?)</text>", drawn)}
    assert {each for layer in LAYERS for each in layer} == shown


def test_the_page_of_places_is_true() -> None:
    """Every module that docs/where.md names is there, and defines the name beside it."""
    page = Path(__file__).parent.parent / "docs" / "where.md"
    rows = re.findall(r"^\| .*\? .*\| `(\S+)` `(\S+)` \|$", page.read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 40
    for path, name in rows:
        text = (page.parent.parent / path).read_text("utf-8")
        defined = (
            rf"(^\s*(async )?(def|class) {name}\b)|(^{name}\b.*=)|(^from .* import .*\b{name}\b)"
        )
        assert re.search(defined, text, re.MULTILINE), (path, name)


def test_the_journeys_are_true() -> None:
    """Each step of docs/how-it-works.md names a module and what it defines."""
    page = Path(__file__).parent.parent / "docs" / "how-it-works.md"
    text = page.read_text("utf-8").partition("Four journeys")[2].partition("\n## ")[0]
    steps = re.findall(r"`(\S+\.py)` `(\w+)`", text)
    assert len(steps) > 15
    for path, name in steps:
        code = (page.parent.parent / "robomodel" / path).read_text("utf-8")
        assert re.search(rf"^\s*(def|class) {name}\b", code, re.MULTILINE), (path, name)


def test_a_constant_of_a_name_has_one_value() -> None:
    constant = re.compile(r"^(_?[A-Z][A-Z_]*) = (-?[\d._]+(?:e-?\d+)?)(?:\s+#.*)?$", re.MULTILINE)
    values: dict[str, dict[str, str]] = {}
    for path in Path(robomodel.__file__).parent.rglob("*.py"):
        for name, value in constant.findall(path.read_text("utf-8")):
            values.setdefault(name, {})[value] = path.name
    assert not {name: where for name, where in values.items() if len(where) > 1}


def test_docstrings_say_the_thing() -> None:
    """They begin with it, not with a pronoun; "True if" is said where truths are returned."""
    beginning = re.compile(r'^\s*"""(Of|That of|Those|Whether|What) .*', re.MULTILINE)
    truth = re.compile(r'-> ([^\n]*):\n\s*"""True (?:if|for) ', re.MULTILINE)
    for path in Path(robomodel.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        assert not beginning.search(text), (path, beginning.search(text))
        for returned in truth.findall(text):
            assert re.search("bool|Mask|Array|Any|TypeGuard", returned), (path, returned)


def test_names_of_the_dynamics_are_those_of_its_parts() -> None:
    folder = Path(robomodel.dynamics.functions.__file__).parent
    parts = [
        import_module(f"robomodel.dynamics.functions.{path.stem}")
        for path in folder.glob("*.py")
        if path.stem != "__init__"
    ]
    names = [name for part in parts for name in part.__all__]
    assert robomodel.dynamics.__all__ == sorted(names)
