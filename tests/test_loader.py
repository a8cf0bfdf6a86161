"""Object code linked by hand: what LLVM writes runs, and what is no kernel is refused."""

from __future__ import annotations

import ctypes
import math
import struct

import pytest

from robomodel.kernels import loader, machine

pytestmark = pytest.mark.skipif(not loader.serves(), reason="LLVM's own loader serves here")

DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

KERNEL = """
declare double @sin(double)
declare double @far(double)
@table = internal constant [3 x double] [double 1.0, double 2.5, double 4.0]
@count = hidden global i64 0
@first = hidden global ptr @count
define double @near(double %x) {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %at = getelementptr [3 x double], ptr @table, i64 0, i64 %old
  %c = load double, ptr %at
  %s = call double @sin(double %x)
  %y = fadd double %s, %c
  %far = call double @far(double %y)
  ret double %far
}
"""
OTHER = """
define double @far(double %x) {
  %y = fmul double %x, 3.25
  ret double %y
}
"""


def code_of(text: str) -> bytes:
    (code,) = machine.object_codes([text], lambda _: None)
    return code


def test_objects_are_linked_with_each_other_and_with_the_c_library() -> None:
    alive, addresses = loader.load([code_of(text) for text in (KERNEL, OTHER)])
    near = DOUBLE(addresses["near"])
    assert [near(0.0), near(0.0), near(0.0)] == [3.25, 2.5 * 3.25, 13.0]
    count = ctypes.c_int64.from_address(addresses["count"])
    assert count.value == 3
    assert ctypes.c_void_p.from_address(addresses["first"]).value == addresses["count"]
    count.value = 0
    assert near(0.5) == (math.sin(0.5) + 1.0) * 3.25
    assert alive is not None


def test_code_cannot_be_written_nor_data_be_run() -> None:
    alive, addresses = loader.load([code_of(text) for text in (KERNEL, OTHER)])
    kinds = {}
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            ends, protection, *_ = line.split()
            start, end = (int(x, 16) for x in ends.split("-"))
            kinds.update({n: protection for n, at in addresses.items() if start <= at < end})
    assert kinds["near"] == kinds["far"] == "r-xp"
    assert kinds["count"] == "rw-p"
    assert alive is not None


def test_what_is_no_kernel_is_refused() -> None:
    code = code_of(OTHER)
    with pytest.raises(ValueError, match="calls 'system'"):
        loader.load([code_of(OTHER.replace("fmul double %x, 3.25", "call double "
            "@system(double %x)") + "declare double @system(double)")])  # fmt: skip
    with pytest.raises(ValueError, match="calls 'far'"):
        loader.load([code_of(KERNEL)])
    for content in (b"\x7fELF\x01" + code[5:], code[:18] + struct.pack("<H", 183) + code[20:]):
        with pytest.raises(ValueError, match="not an x86-64 ELF object"):
            loader.load([content])
    exported = code_of(KERNEL.replace("hidden global i64", "global i64"))
    with pytest.raises(ValueError, match="relocations of type 42"):  # by a table that is not there
        loader.load([exported, code])
