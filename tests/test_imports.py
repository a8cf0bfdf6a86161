"""What is imported when: names of the package are there at once, their modules when asked for."""

from __future__ import annotations

import ast
import functools
import inspect
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import robomodel as rm
from robomodel import cli
from robomodel.cli.common import runnable

PUMA = rm.robots.path("puma560")
CART = """<mujoco><worldbody><body name="cart"><joint name="x" type="slide"/>
    <geom size="0.1"/></body></worldbody></mujoco>"""


def imported_by(script: str) -> set[str]:
    """The modules that a process of its own has after a script."""
    script += "\nimport sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def rooms(modules: set[str]) -> set[str]:
    """Subpackages of the package, and others at their top."""
    ours = {each.split(".")[1] for each in modules if each.startswith("robomodel.")}
    return ours | {each.split(".")[0] for each in modules}


def of_type_checkers(module: ModuleType) -> dict[str, str]:
    """Names that a package's file imports for type checkers alone, with their modules."""
    names = {}
    for node in ast.parse(Path(module.__file__ or "").read_text("utf-8")).body:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for each in node.body:
                assert isinstance(each, ast.ImportFrom)
                for alias in each.names:
                    star = import_module(each.module or "").__all__ if alias.name == "*" else ()
                    names |= dict.fromkeys(star or (alias.name,), each.module)
    return names


def test_types_and_tables_of_names_agree() -> None:
    homes = {name: f"robomodel.{home}" for name, home in rm._HOMES.items()}
    assert homes | dict.fromkeys(rm.dynamics.__all__, "robomodel.dynamics") == {
        name: home for name, home in of_type_checkers(rm).items() if name != "robots"
    }
    assert {*rm._HOMES, "robots"} == {*rm.__all__}
    for package in (rm.dynamics, rm.kernels):
        assert of_type_checkers(package) == {
            name: f"{package.__name__}.{home}" for name, home in package._HOMES.items()
        }


@pytest.mark.parametrize("module", [rm, rm.dynamics, rm.kernels])
def test_every_name_is_there(module: ModuleType) -> None:
    assert {*module.__all__} <= {*dir(module)}
    for name in module.__all__:
        found = getattr(module, name)
        assert getattr(module, name) is found
        if getattr(found, "__module__", "").startswith("robomodel"):
            assert pickle.loads(pickle.dumps(found)) is found
    for name in module._ROOMS.split():
        assert getattr(module, name) is import_module(f"{module.__name__}.{name}")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    "call",
    [
        "rm.compile(model, 'aba')",
        "rm.sensitivity(model, 'energy', [q, v], ['hip_ry_link.mass'])",
        "model.configuration(model.joint_positions(q))",
        "model.random_configuration(0)",
        "model.to_order('mujoco', q=q)",
        "rm.aba(model, q, v, v, method='tendons')",
        "rm.correction_force(model, q, v, v)",
    ],
)
def test_first_calls_of_a_process_find_what_others_declare(call: str, tmp_path: Path) -> None:
    """Also of a model that comes from another process."""
    sent = tmp_path / "model"
    sent.write_bytes(pickle.dumps(rm.robots.load("belt_leg")))
    script = f"import pickle\nmodel = pickle.loads(open({str(sent)!r}, 'rb').read())\n"
    script += "import numpy as np\nimport robomodel as rm\n"
    script += "q, v = model.neutral(), np.zeros(model.nv)\n"
    imported_by(script + call)


def test_a_star_imports_all_names_in_a_new_process() -> None:
    script = "from robomodel import *; import robomodel as rm; assert {*rm.__all__} <= {*globals()}"
    script += "; assert callable(rm.dynamics.sensitivity) and callable(sensitivity)"
    assert "robomodel.dynamics.functions.sensitivity" in imported_by(script)


def test_loading_an_open_chain_imports_what_it_needs() -> None:
    assert rooms(imported_by("import robomodel")) & {"numpy", "lxml", "model"} == set()
    loaded = imported_by(f"import robomodel as rm; rm.load({str(PUMA)!r})")
    ours = """errors files arrays running scalars tolerances spatial kernels description mechanism
        vocabulary mobility model parsers loading"""
    assert rooms(loaded) >= {*ours.split(), "numpy", "lxml"}
    others = """scipy llvmlite rich typer dynamics.functions reach opentree motion control
        identification interop simulators writing reports lint views cli"""
    assert not rooms(loaded) & {*others.split()}
    assert not loaded & {"robomodel.dynamics.functions", "robomodel.kernels.compile"}


def test_loading_an_exact_linkage_leaves_masked_arrays_and_decisions_out() -> None:
    loaded = imported_by("import robomodel as rm; rm.load(rm.robots.path('planar_leg_linkage'))")
    assert not loaded & {"numpy.ma", "numpy.polynomial", "scipy", "llvmlite"}
    assert not loaded & {"robomodel.mobility.decision", "robomodel.model.violations"}


def test_assigning_few_pairs_imports_neither_scipy_nor_masked_arrays() -> None:
    assign = "import numpy as np; from robomodel.reports.comparison.match import assigned\n"
    assign += "assert assigned(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])) == [(0, 1), (1, 0)]\n"
    assign += "assert assigned(np.array([[0.0, 1.0], [0.0, 2.0]])) == [(0, 1), (1, 0)]"
    assert not imported_by(assign) & {"numpy.ma", "scipy"}


def test_reading_mjcf_leaves_windows_to_the_renderer() -> None:
    pytest.importorskip("glfw")
    pytest.importorskip("mujoco")
    load = f"import sys, robomodel as rm; rm.load({CART!r})\n"
    assert not imported_by(load) & {"glfw", "numpy.polynomial"}
    asked = "from mujoco.glfw import glfw as window; assert window.create_window\n"
    asked += "import glfw; assert glfw.create_window is window.create_window"
    assert "glfw" in imported_by(load + asked)
    assert "glfw" in imported_by("import glfw; real = glfw\n" + load + "assert glfw is real")


def test_commands_import_what_they_run() -> None:
    assert not rooms(imported_by("import robomodel.cli")) & {"numpy", "lxml", "model", "reports"}
    run = "from robomodel.cli import main\ntry:\n    main({})\nexcept SystemExit:\n    pass"
    others = {"numpy", "lxml", "model", "reports"}
    assert not rooms(imported_by(run.format(["--help"]))) & others
    others = {"scipy", "identification", "lint", "control", "motion", "estimation", "pydantic"}
    assert not rooms(imported_by(run.format(["info", str(PUMA)]))) & others
    assert not rooms(imported_by(run.format(["armature", str(PUMA)]))) & others


def test_commands_search_for_garbage_but_not_in_modules() -> None:
    script = """
import gc
from robomodel import cli
from robomodel.cli.common import runnable
from robomodel.cli import models

load = models.Robot.load
models.Robot.load = lambda self: print(gc.isenabled(), gc.get_freeze_count() > 30_000) or load(self)
try:
    cli.main(["info", "puma560"])
except SystemExit:
    print(gc.isenabled(), gc.get_freeze_count() > 30_000)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("True True", "True True")


@pytest.mark.parametrize("all_options", [False, True])
@pytest.mark.parametrize("name", cli.COMMANDS)
def test_values_that_are_taken_as_given_are_those_that_typer_converts(
    name: str, all_options: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = dict[str, tuple[type, object]]()

    def recording(function: Any) -> Any:
        @functools.wraps(runnable(function))
        def record(**arguments: Any) -> None:
            received.update((x, (type(value), value)) for x, value in arguments.items())

        return record

    def values() -> dict[str, tuple[type, object]]:
        command: Any = cli.command_of(name)
        takes = inspect.signature(command.callback).parameters
        words = []
        for each in command.params:
            kind = str(takes[each.name].annotation).partition(",")[0]
            if each.required or (all_options and re.search(r"\b(str|Path)\b", kind)):
                words += [*each.opts[:1], "1.5"] if each.opts[0][0] == "-" else ["1.5"]
        received.clear()
        command.invoke(command.make_context(name, words))
        return dict(received)

    monkeypatch.setattr(cli, "runnable", recording)
    found = values()
    assert len(found) > 1
    monkeypatch.setattr(cli.common, "take_as_given", lambda *_: None)
    assert values() == found


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_list_of_commands_says_what_each_does(name: str) -> None:
    module, summary = cli.COMMANDS[name]
    function = cli.function_of(name)
    assert function.__module__ == f"robomodel.cli.{module}"
    assert function.__name__ == name.replace("-", "_")
    sentence = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    assert sentence.removesuffix(".") == summary or (
        summary.endswith(", …") and sentence.startswith(summary.removesuffix(", …"))
    )
