"""A program as PTX, the assembly of NVIDIA GPUs, by LLVM: one state per thread.

Rows of arguments and results are contiguous, as everywhere. A block is one warp. As far as they
fit, its results, and then its arguments, are staged in shared memory, so that adjacent threads
access adjacent global memory.

A program with too many values or results is cut into :mod:`slices <robomodel.cuda.slices>` of its
results. A slice of up to :data:`LONGEST_FUNCTION` steps is one function with its values in
registers. Longer ones are cut into functions, and values that cross a cut are in the thread's local
memory. Over time (:func:`ptx_over_time`) the loop is in the kernel: each thread computes one
motion.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from robomodel.cuda.slices import LONGEST_FUNCTION, Slice, sliced
from robomodel.kernels.llvm import machine
from robomodel.kernels.llvm.assembly import Function, Instructions, LaneVectors
from robomodel.kernels.plan import Iteration, KernelPlan, Memory, ordered, write
from robomodel.kernels.program import PRECISIONS, Dtype, Program, Reference

THREADS = 32  # per block: one warp, so its shared memory is small and threads need not wait
TOGETHER, CACHED_STEPS = 8, 8192
"""Rows whose numbers a thread loads before it stores them; steps, of 16 bytes of code each, that a
multiprocessor's cache for code holds (128 kB)."""
STAGED = 24576  # bytes of shared memory per block: an H100 holds 9 such blocks, A100 6, RTX 40 4
ARCHITECTURE = "sm_75"  # the oldest that new drivers support; they compile for the actual GPU

GLOBAL, SHARED, LOCAL = (f"ptr addrspace({n})" for n in (1, 3, 5))
"""Pointers to arguments and results, to a block's memory, and to a thread's local memory."""
DIGITS_OF_TWO_BY_PI = 1168  # binary digits of 2/π after the point: a double's exponent range + 190


def ptx(program: Program, name: str, sizes: Sequence[int], dtype: Dtype = "float64") -> str:
    """PTX with an entry of this name.

    Parameters of the entry: a pointer to the rows of each argument and of the result; the stride of
    each argument's rows in numbers (int64), 0 if all states share one; the number of states
    (int64). ``sizes``: row lengths of the arguments and of the result. Blocks have :data:`THREADS`
    threads, and there are :func:`grid_blocks` of them. Raises RuntimeError if LLVM does not
    support such GPUs.
    """
    slices = sliced(program, dtype, gathered(dtype))
    return in_slices(name, sizes, dtype, slices)


def grid_blocks(text: str, count: int) -> int:
    """The number of blocks that PTX of :func:`ptx`, or of motions, needs for ``count`` states.

    Block ``b`` computes slice ``b % n`` of the ``b // n``-th 32 states, so that slices of the same
    states run at the same time and their results meet in the GPU's cache. If the code of all slices
    exceeds the cache for code, the blocks of a slice come one after the other instead: otherwise
    most of the time is spent on waiting for code.
    """
    heading = re.match(rf"// blocks for each {THREADS} states: (\d+)\n", text)
    return -(-count // THREADS) * (int(heading[1]) if heading else 1)


def gathered(dtype: Dtype) -> int:
    """The number of distinct results of each state that a block stages."""
    return (STAGED // (THREADS * PRECISIONS[dtype].bytes) - 1) | 1


def in_slices(name: str, sizes: Sequence[int], dtype: Dtype, slices: Sequence[Slice]) -> str:
    """PTX of a program in these slices."""
    numbers = Scalars(PRECISIONS[dtype], 1)
    code = assembled(numbers, _entry(slices, numbers, name, sizes, dtype))
    return f"// blocks for each {THREADS} states: {len(slices)}\n{code}"


def assembled(numbers: Scalars, entry: Sequence[str]) -> str:
    """An entry and the functions it calls, as PTX."""
    text = "\n".join([*_declarations(numbers), *_reduction(numbers), *entry]) + "\n"
    return machine.assembly(text, triple="nvptx64-nvidia-cuda", cpu=ARCHITECTURE, opt=2)


def _declarations(numbers: Scalars) -> list[str]:
    v, name = numbers.type, numbers.suffix
    lines = [
        f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
        f"declare {v} @llvm.sqrt.{name}({v})",
        f"declare {v} @llvm.fabs.{name}({v})",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ]
    if numbers.suffix != "f64":
        lines.append("declare double @llvm.fma.f64(double, double, double)")
    lines += [f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}.x()" for x in ("ctaid", "tid")]
    return [*lines, "declare void @llvm.nvvm.barrier0()"]


# ---- the entry -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread's row: a pointer of this kind to its first number."""

    kind: str
    name: str


def threads(f: Function, slices: int = 1, *, turns: bool = False) -> tuple[str, str, str]:
    """The first state of the thread's block, the thread's index in it, and the block's slice.

    ``turns``: all blocks of a slice come before those of the next.
    """
    block, lane = (
        f.value(f"zext i32 {f.value(f'call i32 @llvm.nvvm.read.ptx.sreg.{x}.x()')} to i64")
        for x in ("ctaid", "tid")
    )
    by, ways = str(slices), ("urem", "udiv")
    if turns:
        by = f.value(f"udiv i64 {f.value(f'add i64 %count, {THREADS - 1}')}, {THREADS}")
        ways = ("udiv", "urem")
    number, block = (f.value(f"{x} i64 {block}, {by}") for x in ways)
    return f.value(f"mul i64 {block}, {THREADS}"), lane, number


def head(name: str, parameters: Sequence[str]) -> str:
    """The head of an entry, with the largest number of threads of its blocks."""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"'{name}' cannot be the name of an entry")
    return "\n".join(
        [
            "!nvvm.annotations = !{!0}",  # LLVM before 21 has no attribute of the entry for this
            f'!0 = !{{ptr @{name}, !"maxntidx", i32 {THREADS}}}',
            f"define ptx_kernel void @{name}({', '.join(parameters)}) {{",
        ]
    )


def _parameters(arguments: int) -> list[str]:
    """Parameters of an entry: rows of arguments and result, strides of arguments, states."""
    return [
        *(f"{GLOBAL} noalias readonly %argument{k}" for k in range(arguments)),
        f"{GLOBAL} noalias %result",
        *(f"i64 %step{k}" for k in range(arguments)),
        "i64 %count",
    ]


def _entry(
    slices: Sequence[Slice], numbers: Scalars, name: str, sizes: Sequence[int], dtype: Dtype
) -> list[str]:
    f, count = Function(numbers), len(sizes) - 1
    steps = sum(len(each.program.steps) for each in slices)
    first, lane, number = threads(f, len(slices), turns=steps > CACHED_STEPS)
    thread = f.value(f"add i64 {first}, {lane}")
    rows_here = f.value(f"sub i64 %count, {first}")
    rows_here = f.value(f"call i64 @llvm.smin.i64(i64 {rows_here}, i64 {THREADS})")
    block = _Block(f, (*sizes,), first, lane, thread, rows_here)
    if len(slices) > 1:
        ways = " ".join(f"i64 {n}, label %slice{n}" for n in range(1, len(slices)))
        f.lines.append(f"switch i64 {number}, label %slice0 [{ways}]")
    text: list[str] = []
    most = 0
    for n, each in enumerate(slices):
        plan = KernelPlan(
            each.program, (*sizes[:-1], len(each.places)), dtype, longest=LONGEST_FUNCTION
        )
        gathering = _Gathering.of(plan, each.places, n)
        if len(slices) > 1:
            f.lines.append(f"slice{n}:")
        text += block.write(plan, gathering)
        f.lines.append("br label %end")
        most = max(most, gathering.size)
    f.lines.append("end:")
    parameters = _parameters(count)
    if most:
        kind = f"[{most} x {numbers.scalar}]"
        text.append(f"@staged = internal addrspace(3) global {kind} undef, align 16")
    return [*text, head(name, parameters), *f.lines, "ret void", "}"]


@dataclass(frozen=True)
class _Gathering:
    """Which rows of a slice are staged in shared memory.

    Rows there have odd distances, so that the threads of a warp access different banks. The first
    distinct results are staged, and written to the places of the outputs (in the result's row).
    """

    number: int  # of the slice
    rows: dict[int, tuple[int, int]]  # staged row → its length and its offset in shared memory
    outputs: tuple[tuple[int, int], ...]  # staged: (place, distinct result)
    scattered: dict[int, list[int]]  # other distinct result → its places
    size: int

    @classmethod
    def of(cls, plan: KernelPlan, places: Sequence[int], number: int) -> _Gathering:
        room = gathered(plan.dtype)
        distinct = len(plan.columns) + len(plan.constants)
        together = list(zip(places, plan.index, strict=True))
        scattered: dict[int, list[int]] = {}
        for where, column in together:
            if column >= room:
                scattered.setdefault(column, []).append(where)
        last = len(plan.sizes) - 1
        rows = {last: (min(distinct, room) | 1, 0)}
        size = THREADS * rows[last][0]
        for k, argument in enumerate(plan.arguments()):
            numbers = THREADS * (len(argument) | 1)
            if plan.used & {*argument} and (size + numbers) * plan.precision.bytes <= STAGED:
                rows[k] = len(argument) | 1, size
                size += numbers
        outputs = tuple((where, column) for where, column in together if column < room)
        return cls(number, rows, outputs, scattered, size)


@dataclass(frozen=True)
class _Block:
    """A warp on its rows: loads arguments, computes a slice, and stores results."""

    f: Function
    sizes: tuple[int, ...]
    first: str
    lane: str
    thread: str
    rows_here: str

    def write(self, plan: KernelPlan, gathering: _Gathering) -> list[str]:
        """Write a slice; returns the functions that it needs."""
        f, n, count = self.f, gathering.number, len(self.sizes) - 1
        loaded = [k for k in gathering.rows if k < count]
        for k in loaded:
            self._move(k, [(i, i) for i in range(self.sizes[k])], gathering)
        if loaded:
            f.lines.append("call void @llvm.nvvm.barrier0()")
        mine = f.value(f"icmp slt i64 {self.thread}, %count")
        f.lines += [f"br i1 {mine}, label %run{n}, label %done{n}", f"run{n}:"]
        local = local_memory(f, plan.workspace) if len(plan.pieces) > 1 else "null"
        rows = [self._row(k, gathering.rows.get(k)) for k in range(count)]
        rows += [self._row(count, gathering.rows[count]), self._row(count, None)]

        def target(g: Function, names: Sequence[ThreadRow]) -> Rows:
            return _Rows(g, plan, names, gathering.scattered)

        text = body(f, plan, rows, local, target, f"s{n}_")
        f.label(f"done{n}")
        f.lines.append("call void @llvm.nvvm.barrier0()")
        if gathering.outputs:
            text += self._move(count, gathering.outputs, gathering)
        return text

    def _base(self, k: int) -> tuple[str, str]:
        """The pointer to a row's numbers in global memory, and the stride between states."""
        if k == len(self.sizes) - 1:
            return "%result", str(self.sizes[-1])
        return f"%argument{k}", f"%step{k}"

    def _row(self, k: int, inside: tuple[int, int] | None) -> ThreadRow:
        """The thread's row, in shared or global memory."""
        f = self.f
        if inside is None:
            base, step = self._base(k)
            kind, at = GLOBAL, f.value(f"mul i64 {self.thread}, {step}")
        else:
            kind, base = SHARED, "@staged"
            at = f.value(f"add i64 {f.value(f'mul i64 {self.lane}, {inside[0]}')}, {inside[1]}")
        return ThreadRow(
            kind, f.value(f"getelementptr {f.vectors.scalar}, {kind} {base}, i64 {at}")
        )

    def _move(self, k: int, pairs: Sequence[tuple[int, int]], gathering: _Gathering) -> list[str]:
        """Move a row's numbers of the whole block, coalesced; returns tables of places, if any.

        ``pairs``: places of each number in global and in shared memory. Adjacent threads move
        adjacent numbers of a row, or of several rows of up to 16. A thread loads numbers of
        :data:`TOGETHER` rows before it stores them. Of rows that are longer than a warp all numbers
        are moved before those of the next rows, so that sectors are completed while they are in the
        cache.
        """
        f, back = self.f, k == len(self.sizes) - 1
        at, (pitch, begins) = f"m{gathering.number}_{k}", gathering.rows[k]
        width = min(THREADS, 1 << (len(pairs) - 1).bit_length())
        apart, many = THREADS // width, min(TOGETHER, width)  # rows of a thread, in one go
        base, step = self._base(k)
        origin = f.value(f"mul i64 {self.first}, {step}")
        origin = f.value(f"getelementptr {f.vectors.scalar}, {GLOBAL} {base}, i64 {origin}")
        rows = f.value(f"trunc i64 {self.rows_here} to i32")
        lane = f.value(f"trunc i64 {self.lane} to i32")
        column, row = (f.value(f"{x} i32 {lane}, {width}") for x in ("urem", "udiv"))
        most = f.value(f"sub i32 {rows}, {(many - 1) * apart}")
        ranges = [("one", 1, rows)] if many == 1 else [("some", many, most), ("one", 1, rows)]
        columns, tables = (column, str(len(pairs)), width), dict[str, str]()

        def places(i: str) -> tuple[str, str]:
            """The places of the i-th number in both memories."""
            outside, inside = (
                _place(f, f"@{at}_{side}", i, [x[side] for x in pairs], tables) for side in (0, 1)
            )
            return outside, f.value(f"add i64 {inside}, {begins}")

        def copy(at: tuple[str, str], row: str, count: int) -> None:
            outside = _rows(f, f"{GLOBAL} {origin}", at[0], row, step, apart, count)
            inside = _rows(f, f"{SHARED} @staged", at[1], row, str(pitch), apart, count)
            _copy(f, *((inside, outside) if back else (outside, inside)))

        if len(pairs) <= THREADS:
            with loop(f, f"{at}_column", *columns) as i:
                here = places(i)
                for name, count, end in ranges:
                    with loop(f, f"{at}_{name}", row, end, count * apart) as row:
                        copy(here, row, count)
        else:
            for name, count, end in ranges:
                columns_too = loop(f, f"{at}_{name}_column", *columns)
                with loop(f, f"{at}_{name}", row, end, count * apart) as row, columns_too as i:
                    copy(places(i), row, count)
        return [*tables.values()]


@contextmanager
def loop(f: Function, name: str, start: str, end: str, by: int) -> Iterator[str]:
    """A loop ``for i in range(start, end, by)``; i (i32) is there after it, too."""
    i, following = f"%{name}_i", f"%{name}_next"
    f.label(f"{name}_from")
    f.label(name)
    f.lines.append(f"{i} = phi i32 [{start}, %{name}_from], [{following}, %{name}_again]")
    more = f.value(f"icmp slt i32 {i}, {end}")
    f.lines += [f"br i1 {more}, label %{name}_do, label %{name}_end", f"{name}_do:"]
    yield i
    f.label(f"{name}_again")
    f.lines += [f"{following} = add i32 {i}, {by}", f"br label %{name}", f"{name}_end:"]


def _place(f: Function, table: str, i: str, places: Sequence[int], tables: dict[str, str]) -> str:
    """The i-th of these places (i64), read from a table unless it is i."""
    which = f.value(f"zext i32 {i} to i64")
    if list(places) == [*range(len(places))]:
        return which
    size, numbers = f"[{len(places)} x i32]", ", ".join(f"i32 {place}" for place in places)
    tables[table] = f"{table} = internal addrspace(1) constant {size} [{numbers}]"
    x = f.value(f"getelementptr i32, {GLOBAL} {table}, i64 {which}")
    return f.value(f"zext i32 {f.value(f'load i32, {GLOBAL} {x}')} to i64")


def _rows(
    f: Function, begin: str, place: str, row: str, distance: str, apart: int, count: int
) -> list[str]:
    """Pointers to a place in ``count`` rows from ``row`` on, every ``apart``-th."""
    offset = f.value(f"mul i64 {f.value(f'zext i32 {row} to i64')}, {distance}")
    offset = f.value(f"add i64 {offset}, {place}")
    stride, kind = f.value(f"mul i64 {distance}, {apart}"), begin.rpartition(" ")[0]
    found = [f"{begin}, i64 {offset}"]
    pointers: list[str] = []
    while len(pointers) < count:
        pointer = f.value(f"getelementptr {f.vectors.scalar}, {found[-1]}")
        pointers.append(f"{kind} {pointer}")
        found.append(f"{kind} {pointer}, i64 {stride}")
    return pointers


def _copy(f: Function, sources: Sequence[str], goals: Sequence[str]) -> None:
    """Load numbers, and then store them."""
    scalar, align = f.vectors.scalar, f"align {f.vectors.bytes}"
    numbers = [f.value(f"load {scalar}, {source}, {align}") for source in sources]
    f.lines += [
        f"store {scalar} {x}, {goal}, {align}" for x, goal in zip(numbers, goals, strict=True)
    ]


def local_memory(f: Function, count: int) -> str:
    """Allocate ``count`` numbers in a thread's local memory."""
    local = f.value(f"alloca [{max(count, 1)} x {f.vectors.scalar}], align 16")
    return f.value(f"addrspacecast ptr {local} to {LOCAL}")


def body(
    f: Function, plan: KernelPlan, rows: Sequence[ThreadRow], local: str,
    target: Callable[[Function, Sequence[ThreadRow]], Rows], prefix: str = "",
) -> list[str]:  # fmt: skip
    """The program on these rows and memory; returns the functions into which it is cut."""
    if len(plan.pieces) == 1:
        whole = target(f, rows)
        whole.local = local
        whole.write(0)
        return []
    text: list[str] = []
    arguments = ", ".join([*(f"{row.kind} {row.name}" for row in rows), f"{LOCAL} {local}"])
    named = [ThreadRow(row.kind, f"%row{k}") for k, row in enumerate(rows)]
    parameters = ", ".join([*(f"{row.kind} {row.name}" for row in named), f"{LOCAL} %local"])
    for n in range(len(plan.pieces)):
        piece = Function(f.vectors)
        target(piece, named).write(n)
        text += piece.text(f"void @{prefix}piece{n}({parameters}) noinline")
        f.lines.append(f"call void @{prefix}piece{n}({arguments})")
    return text


class Rows(Instructions):
    """Numbers of rows and of a thread's local memory."""

    def __init__(self, f: Function, plan: KernelPlan) -> None:
        super().__init__(f)
        self.plan, self.local = plan, "%local"

    @abstractmethod
    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """The places of a number, possibly several: pointer kind, pointer, offset."""

    def _places(self, memory: Memory, at: int) -> list[str]:
        f, scalar = self.f, self.f.vectors.scalar
        return [
            f"{kind} {f.value(f'getelementptr inbounds {scalar}, {kind} {base}, i64 {i}')}, "
            f"align {f.vectors.bytes}"
            for kind, base, i in self.at(memory, at)
        ]

    def load(self, memory: Memory, at: int) -> str:
        """Load the value from the first of its places."""
        return self.f.value(f"load {self.f.vectors.scalar}, {self._places(memory, at)[0]}")

    def store(self, x: str, memory: Memory, at: int) -> None:
        """Store the value to all places."""
        self.f.lines += [f"store {self.f.type} {x}, {p}" for p in self._places(memory, at)]

    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Sine and cosine of any angle."""
        return _sincos(self.f, x)

    def write(self, number: int) -> None:
        """Write a piece; the first one also writes constant results."""
        write(self.plan, number, self)
        if number == 0:
            for at, constant in enumerate(self.plan.constants, len(self.plan.columns)):
                self.store(self.f.constant(constant), "result", at)


class _Rows(Rows):
    """Rows of arguments, and of results: staged in shared memory, or at all their places."""

    def __init__(
        self,
        f: Function,
        plan: KernelPlan,
        rows: Sequence[ThreadRow],
        scattered: dict[int, list[int]],
    ) -> None:
        super().__init__(f, plan)
        *arguments, self._gathered, self._outside = rows
        self._scattered = scattered
        self._inputs = [
            (row.kind, row.name, i)
            for row, numbers in zip(arguments, plan.arguments(), strict=True)
            for i in range(len(numbers))
        ]

    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """The places; results may have several."""
        if memory == "work":
            return [(LOCAL, self.local, at)]
        if memory == "input":
            return [self._inputs[at]]
        if at in self._scattered:
            return [(self._outside.kind, self._outside.name, i) for i in self._scattered[at]]
        return [(self._gathered.kind, self._gathered.name, at)]


# ---- over time -----------------------------------------------------------------------------------


def ptx_over_time(
    program: Program, name: str, sizes: Sequence[int], parts: Sequence[int],
    iteration: Iteration, dtype: Dtype = "float64",
) -> str:  # fmt: skip
    """PTX with an entry that iterates a program over time.

    Argument 0 of ``sizes`` is the state, given in ``parts`` (entries beyond them start at zero);
    argument 1 has a row for each time, and the numbers of further arguments are parameters.
    Parameters of the entry: pointers to the rows of each part, of argument 1, and of the result
    (times + 1 rows of all parts, the start first); the stride between motions in numbers, of each
    but the result; the number of motions; the number of times (int64); the further numbers.
    """
    if iteration.timed != (1,):
        raise ValueError("on cards argument 1 alone has a row for each instant")
    plan = KernelPlan(ordered(program, 0), tuple(sizes), dtype, iteration)
    numbers = Scalars(plan.precision, 1)
    return assembled(numbers, _entry_over_time(plan, numbers, name, parts))


def _entry_over_time(
    plan: KernelPlan, numbers: Scalars, name: str, parts: Sequence[int]
) -> list[str]:
    f, scalar, iteration = Function(numbers), numbers.scalar, plan.iteration
    assert iteration is not None
    state, _, *values = plan.arguments()
    stored, inputs, n = sum(parts), plan.program.inputs, len(parts)
    first_carried = inputs - iteration.columns - iteration.carried
    stages = max(len(iteration.table), 1)

    def local_at(i: int) -> str:
        at = f.value(f"getelementptr inbounds {scalar}, {LOCAL} {local}, i64 {i}")
        return f"{LOCAL} {at}, align {numbers.bytes}"

    def row_at(kind: str, base: str, first: str, i: int) -> str:
        at = f.value(f"add i64 {first}, {i}")
        at = f.value(f"getelementptr {scalar}, {kind} {base}, i64 {at}")
        return f"{kind} {at}, align {numbers.bytes}"

    def put(x: str, where: str) -> None:
        f.lines.append(f"store {scalar} {x}, {where}")

    def get(where: str) -> str:
        return f.value(f"load {scalar}, {where}")

    def result_row(instant: str) -> str:
        rows = f.value(f"add i64 {f.value(f'mul i64 {thread}, {every}')}, {instant}")
        return f.value(f"mul i64 {rows}, {stored}")

    first, lane, _ = threads(f)
    thread = f.value(f"add i64 {first}, {lane}")
    mine = f.value(f"icmp slt i64 {thread}, %count")
    every = f.value("add i64 %times, 1")
    local = local_memory(f, inputs + len(plan.columns) + len(plan.constants) + plan.workspace)
    f.lines += [f"br i1 {mine}, label %run, label %done", "run:"]
    at, start = 0, result_row("0")
    for k, size in enumerate(parts):
        base = f.value(f"mul i64 {thread}, %step{k}")
        for i in range(size):
            x = get(row_at(GLOBAL, f"%argument{k}", base, i))
            put(x, local_at(at))
            put(x, row_at(GLOBAL, "%result", start, at))
            at += 1
    for i in [*range(stored, len(state)), *range(first_carried, first_carried + iteration.carried)]:
        put(numbers.constant(0.0), local_at(i))
    parameters = [(f"%value{i}", i) for argument in values for i in argument]
    for x, i in parameters:
        put(x, local_at(i))
    f.lines += ["br label %begin", "begin:", "br label %time", "time:"]
    f.lines.append("%t = phi i64 [0, %begin], [%t_next, %written]")
    f.lines += [f"br i1 {f.value('icmp slt i64 %t, %times')}, label %instant, label %done"]
    f.label("instant")
    row = f.value(f"mul i64 {thread}, %step{n}")
    row = f.value(f"add i64 {row}, {f.value(f'mul i64 %t, {plan.sizes[1]}')}")
    row = f.value(f"getelementptr {scalar}, {GLOBAL} %argument{n}, i64 {row}")
    f.lines += ["br label %stage", "stage:", "%s = phi i64 [0, %instant], [%s_next, %advance]"]
    constants = f.value(f"mul i64 %s, {iteration.columns}")
    for c in range(iteration.columns):
        put(
            get(row_at("ptr addrspace(4)", "@table", constants, c)),
            local_at(inputs - iteration.columns + c),
        )
    text = body(f, plan, [ThreadRow(GLOBAL, row)], local,
                lambda g, rows: _TimedRows(g, plan, rows[0]))  # fmt: skip
    f.label("advance")
    size = plan.sizes[-1]
    moves = [*enumerate(plan.index[: len(state)])]
    moves += [*enumerate(plan.index[size:], first_carried)]
    for i, column in moves:
        put(get(local_at(inputs + column)), local_at(i))
    f.lines.append("%s_next = add i64 %s, 1")
    f.lines.append(f"br i1 {f.value(f'icmp slt i64 %s_next, {stages}')}, "
                   "label %stage, label %written")  # fmt: skip
    f.label("written")
    f.lines.append("%t_next = add i64 %t, 1")
    start = result_row("%t_next")
    for i in range(stored):
        put(get(local_at(i)), row_at(GLOBAL, "%result", start, i))
    f.lines += ["br label %time", "done:"]
    entry = head(
        name, [*_parameters(n + 1), "i64 %times", *(f"{scalar} {x}" for x, _ in parameters)]
    )
    return [*text, *_table(iteration, numbers), entry, *f.lines, "ret void", "}"]


def _table(iteration: Iteration, numbers: Scalars) -> list[str]:
    """The stages' constants, in constant memory."""
    entries = [f"{numbers.scalar} {numbers.literal(x)}" for row in iteration.table for x in row]
    kind = f"[{len(entries)} x {numbers.scalar}]"
    return (
        [f"@table = internal addrspace(4) constant {kind} [{', '.join(entries)}]"]
        if entries
        else []
    )


class _TimedRows(Rows):
    """Argument 1's row at a time; inputs, results and workspace are in local memory."""

    def __init__(self, f: Function, plan: KernelPlan, row: ThreadRow) -> None:
        super().__init__(f, plan)
        self._row, self._timed = row, plan.arguments()[1]
        results = len(plan.columns) + len(plan.constants)
        self._first = {"input": 0, "result": plan.program.inputs}
        self._first["work"] = plan.program.inputs + results

    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """The place of a number."""
        if memory == "input" and at in self._timed:
            return [(self._row.kind, self._row.name, at - self._timed.start)]
        return [(LOCAL, self.local, self._first[memory] + at)]


# ---- numbers and angles --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scalars(LaneVectors):
    """Single numbers instead of vectors."""

    @property
    def type(self) -> str:
        """Type of a number."""
        return self.scalar

    @property
    def integers(self) -> str:
        """Type of an integer of the number's size."""
        return f"i{self.precision.bits}"

    @property
    def truths(self) -> str:
        """Type of a truth value."""
        return "i1"

    @property
    def suffix(self) -> str:
        """Suffix of the names of intrinsics."""
        return f"f{self.precision.bits}"

    def constant(self, x: float) -> str:
        """A constant number."""
        return self.literal(x)

    def integer(self, x: int) -> str:
        """A constant integer."""
        return str(x)


def _sincos(f: Function, x: str) -> tuple[str, str]:
    """Sine and cosine; large angles are reduced by a function."""
    v, whole = f.type, f.vectors.integers
    size = f.value(f"call {v} @llvm.fabs.{f.vectors.suffix}({v} {x})")
    huge = f.value(f"fcmp ogt {v} {size}, {f.constant(f.vectors.precision.cody_waite_limit)}")
    return f.turned(*f.unless(huge, f.reduced, x, "reduce_large", (v, whole)))


def _reduction(numbers: Scalars) -> list[str]:
    """A function that reduces angles beyond 1e5: remainder and number of quarter turns.

    It uses the relevant digits of 2/π (Payne and Hanek). An angle is m 2ᵉ with a 53-bit integer m.
    Digits of 2ᵉ 2/π before the last two integer ones give multiples of four quarter turns; those
    beyond 190 are negligible, since no double is closer to a multiple of π/2 than 2⁻⁶².
    """
    f, scalar, whole = Function(numbers), numbers.scalar, numbers.integers
    x = f.value(f"fpext {scalar} %x to double") if scalar == "float" else "%x"
    bits = f.value(f"bitcast double {x} to i64")
    exponent = f.value(f"and i64 {f.value(f'lshr i64 {bits}, 52')}, 2047")
    fraction = f.value(f"and i64 {bits}, {2**52 - 1}")
    m = f.value(f"zext i64 {f.value(f'or i64 {fraction}, {2**52}')} to i192")
    behind = f.value(
        f"sub i64 {DIGITS_OF_TWO_BY_PI - 190 + 1075}, {exponent}"
    )  # digits below the ones needed
    digits = f.value(f"getelementptr i8, ptr @digits, i64 {f.value(f'lshr i64 {behind}, 3')}")
    window = f.value(f"load i256, ptr {digits}, align 1")
    shift = f.value(f"zext i64 {f.value(f'and i64 {behind}, 7')} to i256")
    window = f.value(f"trunc i256 {f.value(f'lshr i256 {window}, {shift}')} to i192")
    turns = f.value(f"mul i192 {m}, {window}")
    nearest = f.value(f"lshr i192 {f.value(f'add i192 {turns}, {2**189}')}, 190")
    remainder = f.value(f"sub i192 {turns}, {f.value(f'shl i192 {nearest}, 190')}")
    high = f.value(f"trunc i192 {f.value(f'lshr i192 {remainder}, 128')} to i64")
    low = f.value(f"trunc i192 {f.value(f'lshr i192 {remainder}, 64')} to i64")
    high = f.value(f"sitofp i64 {high} to double")
    low = f.value(f"uitofp i64 {low} to double")
    wide = Scalars(PRECISIONS["float64"], 1)
    small, half_pi = wide.literal(2.0**-64), wide.literal(1.5707963267948966 * 2.0**-62)
    both = f.value(f"call double @llvm.fma.f64(double {low}, double {small}, double {high})")
    r = f.value(f"fmul double {both}, {half_pi}")
    quadrant = f.value(f"trunc i192 {nearest} to {whole}")
    below = f.value(f"fcmp olt double {x}, 0.0")
    r = f.value(f"select i1 {below}, double {f.value(f'fneg double {r}')}, double {r}")
    turned = f.value(f"sub {whole} 0, {quadrant}")
    quadrant = f.value(f"select i1 {below}, {whole} {turned}, {whole} {quadrant}")
    r = f.value(f"fadd double {r}, {f.value(f'fsub double {x}, {x}')}")  # nan for infinity
    r = f.value(f"fptrunc double {r} to float") if scalar == "float" else r
    pair = f"{{{scalar}, {whole}}}"
    result = f.value(f"insertvalue {pair} poison, {scalar} {r}, 0")
    result = f.value(f"insertvalue {pair} {result}, {whole} {quadrant}, 1")
    table = _two_over_pi(DIGITS_OF_TWO_BY_PI).to_bytes(DIGITS_OF_TWO_BY_PI // 8 + 16, "little")
    entries = ", ".join(f"i8 {byte}" for byte in table)
    return [
        f"@digits = internal constant [{len(table)} x i8] [{entries}]",
        *f.text(f"{pair} @reduce_large({scalar} %x) noinline cold", f"ret {pair} {result}"),
    ]


def _two_over_pi(digits: int) -> int:
    """The first ``digits`` binary digits of 2/π, by Machin's formula."""
    one = 1 << (digits + 64)

    def arctangents() -> Iterator[int]:
        for weight, x in ((16, 5), (-4, 239)):
            power, n = weight * one // x, 1
            while power not in (0, -1):
                yield power // n if n % 4 == 1 else -(power // n)
                power, n = power // (x * x), n + 2

    return (one << (digits + 1)) // sum(arctangents())
