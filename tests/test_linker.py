"""Object code in memory without LLVM: the same numbers; what is of another kind is left to it."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from robomodel.kernels.llvm import linker, machine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="LLVM links here"
)

MODULE = """
declare double @sin(double)
declare double @helper(double)
@table = private constant [2 x double] [double 3.0, double 4.0]
define void @loop(ptr %x) {
  %a = load double, ptr %x
  %b = call double @sin(double %a)
  %c = call double @helper(double %b)
  %p = getelementptr double, ptr @table, i64 1
  %d = load volatile double, ptr %p
  %e = fmul double %c, %d
  store double %e, ptr %x
  ret void
}
"""
HELPER = """
define double @helper(double %x) {
  %y = fadd double %x, 0.125
  ret double %y
}
"""
COUNTER = """
@count = global i64 0
define void @loop() {
  %a = load i64, ptr @count
  %b = add i64 %a, 1
  store i64 %b, ptr @count
  ret void
}
"""


def objects(*texts: str) -> list[bytes]:
    return machine.object_codes(texts, lambda _: None)


def test_calls_of_functions_constants_and_other_objects() -> None:
    import ctypes

    owner, address = linker.link(objects(MODULE, HELPER), "loop") or (None, 0)
    assert owner is not None
    x = np.array([0.5])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(x.ctypes.data)
    assert x[0] == 4.0 * (np.sin(0.5) + 0.125)


def test_other_kinds_are_left_to_llvm() -> None:
    (code,) = objects(HELPER)
    assert linker.link([code], "helper") is not None
    assert linker.link([code], "none") is None  # no such symbol
    assert linker.link([b""], "helper") is None
    assert linker.link([code[:100]], "helper") is None
    other = bytearray(code)
    struct.pack_into("<H", other, 18, 183)  # for AArch64
    assert linker.link([bytes(other)], "helper") is None
    assert linker.link(objects(COUNTER), "loop") is None  # it writes to its data
    assert linker.link(objects(MODULE.replace("@helper", "@no_function_of_c")), "loop") is None


@pytest.mark.parametrize("name", ["four_bar", pytest.param("tello", marks=pytest.mark.slow)])
def test_numbers_are_those_of_llvms_linker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load(name)
    q = np.array([model.random_configuration(seed) for seed in range(5)])
    v, tau = np.random.default_rng(0).standard_normal((2, 5, model.nv))
    ours = rm.aba(model, q, v, tau), rm.rnea_derivatives(model, q, v, tau)
    refused: list[str] = []
    monkeypatch.setattr(linker, "link", lambda codes, entry: refused.append(entry))
    model = rm.robots.load(name)
    theirs = rm.aba(model, q, v, tau), rm.rnea_derivatives(model, q, v, tau)
    assert len(refused) >= 2
    for a, b in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_code_from_the_cache_loads_no_llvm(tmp_path: Path) -> None:
    """Neither do processes that it is in when they fork."""
    script = (
        "import os, sys, numpy as np, robomodel as rm\n"
        "model = rm.robots.load('four_bar')\n"
        "q, v = model.neutral(), np.ones(1)\n"
        "a = rm.aba(model, q, v, v)\n"
        "if (child := os.fork()) == 0:\n"
        "    os._exit(not np.array_equal(rm.aba(model, q, v, v), a))\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print('llvmlite' in sys.modules)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True,
            env={**os.environ, "ROBOMODEL_CACHE": str(tmp_path)},
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert said == ["True", "False"]
