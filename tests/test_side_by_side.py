"""Long programs compiled in modules, by several processes, and told of while they are."""

from __future__ import annotations

import io
import itertools
import os
import sys
import time

import numpy as np
import pytest
from cases import few

import robomodel as rm
from robomodel.kernels import compile as compiling
from robomodel.kernels import plan
from robomodel.kernels.llvm import machine, processes


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a few hundred steps are long here, and all of them are LLVM's."""
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    monkeypatch.setattr(machine, "LINKED", False)
    monkeypatch.setattr(plan, "CHUNK", 200)
    monkeypatch.setattr(plan, "FUNCTION_STEPS", 100)
    monkeypatch.setattr(machine, "LENGTH", 20_000)


def results(algorithm: str = "rnea_derivatives") -> list[np.ndarray]:
    model = rm.robots.load("six_bar")
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(9)])
    q[3] *= 1e10  # angles that functions in other modules bring to the first turn
    v, x = rng.standard_normal((2, 9, model.nv))
    kernel = rm.compile(model, algorithm)
    return [*kernel(q, v, x), *kernel(q[0], v[0], x[0])]


@pytest.mark.slow
def test_modules_are_one_program(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, to the last bit, in one module, in several, and with others' help."""
    cuts: list[int] = []

    def counting(text: str) -> list[str]:
        found = machine.cut(text)
        cuts.append(len(found))
        return found

    found = {}
    for helpers in (0, 1, 3):
        monkeypatch.setattr(processes, "_helpers", lambda _, n=helpers: n)
        monkeypatch.setattr(compiling, "cut", counting)
        found[helpers] = results()
    monkeypatch.setattr(compiling, "cut", lambda text: [text])
    whole = results()
    assert sum(n > 4 for n in cuts) == 3  # what closes the linkage is cut once, into fewer
    for several in found.values():
        for a, b in zip(several, whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_short_programs_stay_whole() -> None:
    text = "declare double @sin(double)\ndefine internal void @piece0() {\nret void\n}\n"
    assert machine.cut(text) == [text]


@pytest.mark.slow
def test_what_others_compiled_is_kept_on_disk(
    short: None, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOMODEL_CACHE", os.fspath(tmp_path))
    first = results()
    monkeypatch.setattr(machine, "object_codes", None)
    for a, b in zip(results(), first, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_helper_compiles_what_is_compiled_here() -> None:
    text = "define double @f(double %x) {{\nentry:\n%y = fmul double %x, {}.0\nret double %y\n}}\n"
    texts, codes = [text.format(n) for n in range(4)], {}
    helper = processes._Helper(texts, itertools.count(), codes, machine._settings())
    helper.join(60.0)
    helper.stop()
    assert [codes[n] for n in range(4)] == [
        machine.object_codes([text], lambda _: None)[0] for text in texts
    ]


def helped(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """How many modules were compiled here."""
    here: list[int] = []
    compiled = processes.object_code

    def counting(*arguments: object) -> bytes:
        here.append(1)
        return compiled(*arguments)

    monkeypatch.setattr(processes, "object_code", counting)
    monkeypatch.setattr(processes, "_helpers", lambda _: count)
    return here


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    few(["raise SystemExit(1)", "print('nonsense')", "import time; time.sleep(60)", "print('{}')",
     """print('{"size": 9}'); print('x')"""], "print('nonsense')"),
)  # fmt: skip
def test_helpers_that_fail_are_done_without(
    text: str, short: None, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end, talk nonsense, never answer: what they owe is compiled here."""
    expected = results()
    script = os.path.join(tmp_path, "script.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(text)
    monkeypatch.setattr(processes, "__file__", script)
    monkeypatch.setattr(processes, "PATIENCE", 0.5)
    here = helped(monkeypatch, 2)
    started = time.monotonic()
    for a, b in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert here
    assert time.monotonic() - started < 30.0


def test_programs_that_are_not_python_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert processes._helpers(10) == 3
    assert processes._helpers(2) == 1
    for executable in ("", "/opt/modeller/modeller.bin"):
        monkeypatch.setattr(sys, "executable", executable)
        assert processes._helpers(10) == 0
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert processes._helpers(10) == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("helpers", [0, 1])
def test_who_waits_is_told_for_what(
    helpers: int, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_helpers", lambda _: helpers)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    for terminal in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", terminal)
        results()
        said = "compiling rnea_derivatives of 'six_bar'" in terminal.getvalue()
        assert said == terminal.isatty()


def test_who_does_not_wait_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    assert compiling.PATIENCE == 2.0
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    rm.compile(rm.robots.load("four_bar"), "crba")
    assert terminal.getvalue() == ""
