"""A program over time as PTX: each thread takes one motion through all instants."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.kernels.llvm.assembly import Function
from robomodel.kernels.plan import Iteration, Memory, Plan, ordered
from robomodel.kernels.precision import Dtype
from robomodel.kernels.program import Program
from robomodel.kernels.ptx.emit import (
    GLOBAL,
    LOCAL,
    Row,
    Rows,
    Scalars,
    assembled,
    body,
    head,
    own_memory,
    threads,
)


def ptx(
    program: Program, name: str, sizes: Sequence[int], parts: Sequence[int],
    iteration: Iteration, dtype: Dtype = "float64",
) -> str:  # fmt: skip
    """PTX of a program run over and over, with an entry of this name.

    Argument 0 of ``sizes`` is the state, given in ``parts`` (what they lack begins at zero),
    argument 1 has a row for each instant, and the numbers of further ones are parameters. The
    entry's: pointers to each part's rows, argument 1's, and the result's (times + 1 rows of all
    parts, the start first); how many numbers a motion's rows stand behind those of the one before,
    of each but the result; how many motions; how many times (int64); the further numbers.
    """
    if iteration.timed != (1,):
        raise ValueError("on cards argument 1 alone has a row for each instant")
    plan = Plan(ordered(program, 0), tuple(sizes), dtype, iteration)
    numbers = Scalars(plan.precision, 1)
    return assembled(numbers, _entry(plan, numbers, name, parts))


def _entry(plan: Plan, numbers: Scalars, name: str, parts: Sequence[int]) -> list[str]:
    f, scalar, iteration = Function(numbers), numbers.scalar, plan.iteration
    assert iteration is not None
    state, _, *values = plan.arguments()
    kept, inputs, n = sum(parts), plan.program.inputs, len(parts)
    first_carried = inputs - iteration.columns - iteration.carried
    stages = max(len(iteration.table), 1)

    def own_at(i: int) -> str:
        at = f.value(f"getelementptr inbounds {scalar}, {LOCAL} {own}, i64 {i}")
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
        return f.value(f"mul i64 {rows}, {kept}")

    first, lane, _ = threads(f)
    thread = f.value(f"add i64 {first}, {lane}")
    mine = f.value(f"icmp slt i64 {thread}, %count")
    every = f.value("add i64 %times, 1")
    own = own_memory(f, inputs + len(plan.columns) + len(plan.constants) + plan.workspace)
    f.lines += [f"br i1 {mine}, label %run, label %done", "run:"]
    at, start = 0, result_row("0")
    for k, size in enumerate(parts):
        base = f.value(f"mul i64 {thread}, %step{k}")
        for i in range(size):
            x = get(row_at(GLOBAL, f"%given{k}", base, i))
            put(x, own_at(at))
            put(x, row_at(GLOBAL, "%result", start, at))
            at += 1
    for i in [*range(kept, len(state)), *range(first_carried, first_carried + iteration.carried)]:
        put(numbers.constant(0.0), own_at(i))
    parameters = [(f"%value{i}", i) for given in values for i in given]
    for x, i in parameters:
        put(x, own_at(i))
    f.lines += ["br label %begin", "begin:", "br label %time", "time:"]
    f.lines.append("%t = phi i64 [0, %begin], [%t_next, %written]")
    f.lines += [f"br i1 {f.value('icmp slt i64 %t, %times')}, label %instant, label %done"]
    f.label("instant")
    row = f.value(f"mul i64 {thread}, %step{n}")
    row = f.value(f"add i64 {row}, {f.value(f'mul i64 %t, {plan.sizes[1]}')}")
    row = f.value(f"getelementptr {scalar}, {GLOBAL} %given{n}, i64 {row}")
    f.lines += ["br label %stage", "stage:", "%s = phi i64 [0, %instant], [%s_next, %advance]"]
    constants = f.value(f"mul i64 %s, {iteration.columns}")
    for c in range(iteration.columns):
        put(
            get(row_at("ptr addrspace(4)", "@table", constants, c)),
            own_at(inputs - iteration.columns + c),
        )
    text = body(f, plan, [Row(GLOBAL, row)], own,
                lambda g, rows: _Rows(g, plan, rows[0]))  # fmt: skip
    f.label("advance")
    size = plan.sizes[-1]
    moves = [*enumerate(plan.index[: len(state)])]
    moves += [*enumerate(plan.index[size:], first_carried)]
    for i, column in moves:
        put(get(own_at(inputs + column)), own_at(i))
    f.lines.append("%s_next = add i64 %s, 1")
    f.lines.append(f"br i1 {f.value(f'icmp slt i64 %s_next, {stages}')}, "
                   "label %stage, label %written")  # fmt: skip
    f.label("written")
    f.lines.append("%t_next = add i64 %t, 1")
    start = result_row("%t_next")
    for i in range(kept):
        put(get(own_at(i)), row_at(GLOBAL, "%result", start, i))
    f.lines += ["br label %time", "done:"]
    entry = _signature(name, n + 1, [f"{scalar} {x}" for x, _ in parameters])
    return [*text, *_table(iteration, numbers), entry, *f.lines, "ret void", "}"]


def _table(iteration: Iteration, numbers: Scalars) -> list[str]:
    """The stages' constants, in the memory of constants."""
    entries = [f"{numbers.scalar} {numbers.literal(x)}" for row in iteration.table for x in row]
    kind = f"[{len(entries)} x {numbers.scalar}]"
    return (
        [f"@table = internal addrspace(4) constant {kind} [{', '.join(entries)}]"]
        if entries
        else []
    )


def _signature(name: str, arrays: int, parameters: Sequence[str]) -> str:
    return head(name, [
        *(f"{GLOBAL} noalias readonly %given{k}" for k in range(arrays)),
        f"{GLOBAL} noalias %result",
        *(f"i64 %step{k}" for k in range(arrays)),
        *("i64 %count", "i64 %times"),
        *parameters,
    ])  # fmt: skip


class _Rows(Rows):
    """Argument 1's row of an instant; all else is a thread's own: inputs, results, workspace."""

    def __init__(self, f: Function, plan: Plan, row: Row) -> None:
        super().__init__(f, plan)
        self._row, self._timed = row, plan.arguments()[1]
        results = len(plan.columns) + len(plan.constants)
        self._first = {"input": 0, "result": plan.program.inputs}
        self._first["work"] = plan.program.inputs + results

    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """One place each."""
        if memory == "input" and at in self._timed:
            return [(self._row.kind, self._row.name, at - self._timed.start)]
        return [(LOCAL, self.own, self._first[memory] + at)]
