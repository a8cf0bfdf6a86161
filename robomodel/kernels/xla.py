"""A kernel as a target of XLA's foreign function interface, without a C compiler.

XLA calls a handler with a frame, in the layout of its C API's major version 0. The handler finds
the arguments' and the result's memory there, and runs the kernel's loop over all rows. Numbers lie
without gaps, (..., size), and leading axes are the same of all; whoever makes the call sees to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.kernels.compile import Compiled
from robomodel.kernels.llvm import machine
from robomodel.kernels.precision import PRECISIONS, Dtype

VERSION, STAGE, ARGUMENTS, RESULTS = 16, 32, 72, 112  # bytes within the frame, but for VERSION's
API, EXTENSION, EXECUTE = 16, 8, 3
DATA, RANK, DIMENSIONS = 24, 32, 40  # bytes within a buffer


def handler(kernel: Compiled, sizes: Sequence[int], dtype: Dtype) -> tuple[int, tuple[object, ...]]:
    """The handler's address, and what must live as long; ``sizes`` as of the kernel's program."""
    codes = machine.object_codes([_text(kernel.loop, sizes, PRECISIONS[dtype].bytes)], _silent)
    alive, address = machine.load(codes, "handler")
    return address, (alive, kernel)


def _silent(_: float) -> None:
    """Nobody waits so long."""


def _answer() -> list[str]:
    """What XLA gets when it asks who the handler is: of the version that it has itself."""
    return [
        "extended:",
        "%kind.at = getelementptr i8, ptr %extension, i64 8",
        "%kind = load i32, ptr %kind.at",
        "%asked = icmp eq i32 %kind, 1",
        "br i1 %asked, label %answer, label %run",
        "answer:",
        "%metadata.at = getelementptr i8, ptr %extension, i64 24",
        "%metadata = load ptr, ptr %metadata.at",
        f"%api.at = getelementptr i8, ptr %frame, i64 {API}",
        "%api = load ptr, ptr %api.at",
        "%silent = icmp eq ptr %api, null",  # older JAX, of version 0.1
        f"%newer.at = getelementptr i8, ptr %api, i64 {VERSION + 16}",
        "%version.at = select i1 %silent, ptr %old, ptr %newer.at",
        "%version = load i64, ptr %version.at",
        "%told.at = getelementptr i8, ptr %metadata, i64 24",
        "store i64 %version, ptr %told.at, align 4",
        "%traits.at = getelementptr i8, ptr %metadata, i64 32",
        "store i32 0, ptr %traits.at",
        "ret ptr null",
    ]


def _text(loop: int, sizes: Sequence[int], width: int) -> str:
    """IR of ``XLA_FFI_Error *handler(XLA_FFI_CallFrame *)``; null says that all is well."""
    count = len(sizes)
    lines = [
        "define ptr @handler(ptr %frame) {",
        "entry:",
        f"%args = alloca [{count} x ptr]",
        "%dims = alloca [1 x i64]",
        "%old = alloca i64",
        f"store i64 {1 << 32}, ptr %old",
        f"%steps = alloca [{2 * count} x i64]",
        f"%extension.at = getelementptr i8, ptr %frame, i64 {EXTENSION}",
        "%extension = load ptr, ptr %extension.at",
        "%plain = icmp eq ptr %extension, null",
        "br i1 %plain, label %run, label %extended",
        *_answer(),
        "run:",
        f"%stage.at = getelementptr i8, ptr %frame, i64 {STAGE}",
        "%stage = load i32, ptr %stage.at",
        f"%now = icmp eq i32 %stage, {EXECUTE}",
        "br i1 %now, label %rows.before, label %done",
        "rows.before:",
        f"%given.at = getelementptr i8, ptr %frame, i64 {ARGUMENTS}",
        "%given = load ptr, ptr %given.at",
        f"%taken.at = getelementptr i8, ptr %frame, i64 {RESULTS}",
        "%taken = load ptr, ptr %taken.at",
    ]
    for k, size in enumerate(sizes):
        of, i = ("given", k) if k < count - 1 else ("taken", 0)
        lines += [
            f"%buffer.at{k} = getelementptr ptr, ptr %{of}, i64 {i}",
            f"%buffer{k} = load ptr, ptr %buffer.at{k}",
            f"%data.at{k} = getelementptr i8, ptr %buffer{k}, i64 {DATA}",
            f"%data{k} = load ptr, ptr %data.at{k}",
            f"%arg{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"store ptr %data{k}, ptr %arg{k}",
            f"%outer{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"store i64 {size * width}, ptr %outer{k}",
            f"%inner{k} = getelementptr i64, ptr %steps, i64 {count + k}",
            f"store i64 {width}, ptr %inner{k}",
        ]
    result = count - 1
    return "\n".join([
        *lines,
        f"%rank.at = getelementptr i8, ptr %buffer{result}, i64 {RANK}",
        "%rank = load i64, ptr %rank.at",
        f"%shape.at = getelementptr i8, ptr %buffer{result}, i64 {DIMENSIONS}",
        "%shape = load ptr, ptr %shape.at",
        "%leading = sub i64 %rank, 1",
        "br label %rows",
        "rows:",
        "%axis = phi i64 [0, %rows.before], [%axis.next, %row]",
        "%n = phi i64 [1, %rows.before], [%n.next, %row]",
        "%more = icmp slt i64 %axis, %leading",
        "br i1 %more, label %row, label %call",
        "row:",
        "%length.at = getelementptr i64, ptr %shape, i64 %axis",
        "%length = load i64, ptr %length.at",
        "%n.next = mul i64 %n, %length",
        "%axis.next = add i64 %axis, 1",
        "br label %rows",
        "call:",
        "store i64 %n, ptr %dims",
        f"%loop = inttoptr i64 {loop} to ptr",
        "call void %loop(ptr %args, ptr %dims, ptr %steps, ptr null)",
        "br label %done",
        "done:",
        "ret ptr null",
        "}",
        "",
    ])  # fmt: skip
