"""The inner loop of a NumPy ufunc around a program: its memory, its tiles, its arguments' rows.

Fewer states than lanes have the last of them in all lanes that are over; rows whose numbers do not
follow each other are staged. Rows of results are written while the next tile is computed. A program
may also be iterated over time, on inputs of each instant; each tile then has all its instants,
written one by one, before the next tile.
"""

from __future__ import annotations

from collections.abc import Iterator

from robomodel.kernels import tiles
from robomodel.kernels.llvm import Vectors
from robomodel.kernels.plan import Iteration, Plan

LARGE = 1 << 21  # bytes from which on caches cannot be expected to hold arguments or results
STACK = 1 << 16  # bytes of a kernel's own memory on the stack, which some threads have little of


def loop(plan: Plan, vectors: Vectors) -> list[str]:
    """``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)`` over tiles."""
    places, total = _places(plan, vectors)
    taken, given_back = _memory(total, vectors.bytes)
    over_time, untimed = plan.iteration, {*range(len(plan.sizes) - 1)} - _timed(plan)
    return [
        "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {",
        "entry:",
        "%n = load i64, ptr %dims",
        # the axis of time is the second name in the signature: argument 0 has none
        "%dim.time = getelementptr i64, ptr %dims, i64 2",
        "%instants = load i64, ptr %dim.time" if over_time else "%instants = add i64 1, 0",
        *_arguments(plan),
        "%states = icmp sgt i64 %n, 0",
        "%times = icmp sgt i64 %instants, 0",
        "%any = and i1 %states, %times",
        "br i1 %any, label %start, label %exit",
        "start:",
        *taken,
        "begin:",
        *(f"%place{x} = getelementptr i8, ptr %memory, i64 {at}" for x, at in places.items()),
        *_constants(plan, vectors),
        *_context(plan, vectors),
        *(["%flushed = call i32 @flush()"] if plan.dtype == "float32" else []),
        "br label %tile",
        "tile:",
        "%i = phi i64 [0, %begin], [%next, %done]",
        "%results = phi ptr [%place.results, %begin], [%others, %done]",
        "%others = phi ptr [%place.others, %begin], [%results, %done]",
        "%left = sub i64 %n, %i",
        f"%count = call i64 @llvm.smin.i64(i64 %left, i64 {vectors.lanes})",
        "%last = sub i64 %count, 1",
        *(
            line
            for k in range(len(plan.sizes))
            for line in (
                f"%offset{k} = mul i64 %i, %step{k}",
                f"%first{k} = getelementptr i8, ptr %arg{k}, i64 %offset{k}",
            )
        ),
        *(line for k in sorted(untimed) for line in _read(plan, k)),
        *(_iterated(plan, vectors, over_time) if over_time else _once(plan)),
        "done:",
        f"%next = add i64 %i, {vectors.lanes}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %tile, label %free",
        "free:",
        *([] if over_time else _write(plan, vectors)),
        *(["call void @keep(i32 %flushed)"] if plan.dtype == "float32" else []),
        *given_back,
        "br label %exit",
        "exit:",
        "ret void",
        "}",
    ]


# ---- memory --------------------------------------------------------------------------------------


def _memory(size: int, alignment: int) -> tuple[list[str], list[str]]:
    """Lines that take memory by what every C library has, and that give it back."""
    if size <= STACK:
        return [f"%memory = alloca [{size} x i8], align {alignment}", "br label %begin"], []
    return [
        f"%taken = call ptr @malloc(i64 {size + alignment - 1})",
        "%none = icmp eq ptr %taken, null",
        "br i1 %none, label %nowhere, label %somewhere",
        "nowhere:",  # a loop cannot raise, and silence would pass for a result
        "call void @abort()",
        "unreachable",
        "somewhere:",
        f"%beyond = getelementptr i8, ptr %taken, i64 {alignment - 1}",
        f"%memory = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 {-alignment})",
        "br label %begin",
    ], ["call void @free(ptr %taken)"]


def _places(plan: Plan, vectors: Vectors) -> tuple[dict[str, int], int]:
    """Where the tiles stand in a kernel's memory, and its size in bytes.

    Tiles of results take turns: one is written while the other one is computed.
    """
    iteration, results = plan.iteration, len(plan.columns) + len(plan.constants)
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    places, total = {}, 0
    for name, count in (
        *((str(k), size) for k, size in enumerate(plan.sizes[:-1])),
        (".carried", carried),
        (".constants", columns),
        (".results", results),
        (".others", 0 if iteration else results),
        (".work", plan.workspace),
        (".stage", max(plan.sizes[:-1])),
        (".staged", plan.sizes[-1]),
        (".context", -(-8 * len(tiles.CONTEXT) // vectors.bytes)),
    ):
        places[name] = total
        total += count * vectors.bytes
    return places, total


def _constants(plan: Plan, vectors: Vectors) -> Iterator[str]:
    """Constant results, which stay where they are."""
    for tile in ("results",) if plan.iteration else ("results", "others"):
        for i, x in enumerate(plan.constants, len(plan.columns)):
            at = f"%constant.{tile}{i}"
            yield f"{at} = getelementptr i8, ptr %place.{tile}, i64 {i * vectors.bytes}"
            yield f"store {vectors.type} {vectors.constant(x)}, ptr {at}, align {vectors.bytes}"


# ---- rows ----------------------------------------------------------------------------------------


def _timed(plan: Plan) -> frozenset[int]:
    """The arguments, and the result, that have one row for each instant."""
    iteration, result = plan.iteration, len(plan.sizes) - 1
    return frozenset((*iteration.timed, result)) if iteration else frozenset()


def _arguments(plan: Plan) -> Iterator[str]:
    """Where the arguments and the result are, and the steps of their axes."""
    inner, size = len(plan.sizes), plan.precision.bytes
    for k in range(len(plan.sizes)):
        yield f"%arg.at{k} = getelementptr ptr, ptr %args, i64 {k}"
        yield f"%arg{k} = load ptr, ptr %arg.at{k}"
        yield f"%step.at{k} = getelementptr i64, ptr %steps, i64 {k}"
        yield f"%step{k} = load i64, ptr %step.at{k}"
        if k in _timed(plan):
            yield f"%later.at{k} = getelementptr i64, ptr %steps, i64 {inner}"
            yield f"%later{k} = load i64, ptr %later.at{k}"
            inner += 1
        yield f"%inner.at{k} = getelementptr i64, ptr %steps, i64 {inner}"
        yield f"%inner{k} = load i64, ptr %inner.at{k}"
        yield f"%gaps{k} = icmp ne i64 %inner{k}, {size}"
        yield f"%stride{k} = select i1 %gaps{k}, i64 {plan.sizes[k] * size}, i64 %step{k}"
        inner += 1


def _from(plan: Plan, k: int) -> Iterator[str]:
    """Where the rows of an argument, or of the result, are for this tile at this instant."""
    elapsed = f"%elapsed{k}" if k in _timed(plan) else "0"
    if k in _timed(plan):
        yield f"%elapsed{k} = mul i64 %t, %later{k}"
    yield f"%from{k} = getelementptr i8, ptr %first{k}, i64 {elapsed}"


def _read(plan: Plan, k: int) -> Iterator[str]:
    """An argument's rows into its tile."""
    yield from _from(plan, k)
    yield f"%rows{k} = select i1 %gaps{k}, ptr %place.stage, ptr %from{k}"
    yield f"br i1 %gaps{k}, label %stage{k}, label %moved{k}"
    yield f"stage{k}:"
    rows = f"ptr %from{k}, i64 %step{k}, i64 %inner{k}, i64 {plan.sizes[k]}, i64 %count"
    yield f"call void @gather({rows}, ptr %place.stage)"
    yield f"br label %moved{k}"
    yield f"moved{k}:"
    rows = f"ptr %rows{k}, i64 %stride{k}, i64 %last"
    yield f"call void @pack{k}({rows}, ptr %place{k}, i1 %many)"


def _context(plan: Plan, vectors: Vectors) -> Iterator[str]:
    """What those who write results know from the beginning."""
    result = len(plan.sizes) - 1
    for i, name in enumerate(tiles.CONTEXT):
        yield f"%context.{name} = getelementptr i8, ptr %place.context, i64 {8 * i}"
    of_all, of_results = sum(plan.sizes), plan.sizes[-1]
    for name, count in (("many", of_all), ("many.results", of_results)):
        yield f"%bytes.{name} = mul i64 %n, {count * plan.precision.bytes}"
        yield f"%{name} = icmp sgt i64 %bytes.{name}, {LARGE}"
    yield f"%next.rows = mul i64 %step{result}, {vectors.lanes}"
    yield "%ahead = select i1 %many.results, i64 %next.rows, i64 0"
    yield "store i64 %ahead, ptr %context.ahead"
    for name in ("stride", "step", "inner"):
        yield f"store i64 %{name}{result}, ptr %context.{name}"
    for name in ("rows", "from"):
        yield f"store ptr null, ptr %context.{name}"


def _to_write(plan: Plan, tile: str) -> Iterator[str]:
    """The results of this tile are what is to be written next."""
    k = len(plan.sizes) - 1
    yield from _from(plan, k)
    yield f"%rows{k} = select i1 %gaps{k}, ptr %place.staged, ptr %from{k}"
    yield f"%staged{k} = select i1 %gaps{k}, ptr %from{k}, ptr null"
    for name, value in (
        ("rows", f"ptr %rows{k}"),
        ("from", f"ptr %staged{k}"),
        ("last", "i64 %last"),
        ("tile", f"ptr {tile}"),
    ):
        yield f"store {value}, ptr %context.{name}"


def _write(plan: Plan, vectors: Vectors) -> Iterator[str]:
    """Write what is to be written."""
    for part in tiles.parts(vectors, plan.sizes[-1]):
        yield f"call void @unpack{part}(ptr %place.context)"
    yield "call void @settle(ptr %place.context)"


# ---- the program ---------------------------------------------------------------------------------


def _computed(plan: Plan, results: str) -> Iterator[str]:
    """The program on the tile; it may write the results of the tile before meanwhile."""
    if plan.angles:
        yield "call void @tame(ptr %place0)"
    for n in range(len(plan.pieces)):
        tiles_of = f"ptr %place0, ptr {results}, ptr %place.work, ptr %place.context"
        yield f"call void @piece{n}({tiles_of})"


def _once(plan: Plan) -> Iterator[str]:
    yield from _computed(plan, "%results")
    yield "call void @settle(ptr %place.context)"
    yield from _to_write(plan, "%results")
    yield "br label %done"


def _iterated(plan: Plan, vectors: Vectors, iteration: Iteration) -> Iterator[str]:
    carried = iteration.carried * vectors.bytes
    yield f"call void @llvm.memset.p0.i64(ptr %place.carried, i8 0, i64 {carried}, i1 false)"
    yield "br label %instant.before"
    yield "instant.before:"
    yield "br label %instant"
    yield "instant:"
    yield "%t = phi i64 [0, %instant.before], [%t.next, %stage.after]"
    for k in iteration.timed:
        yield from _read(plan, k)
    yield "br label %stage.before"
    yield "stage.before:"
    yield "br label %stage"
    yield "stage:"
    yield "%s = phi i64 [0, %stage.before], [%s.next, %stage]"
    if iteration.columns:
        yield "call void @constants(i64 %s, ptr %place.constants)"
    yield from _computed(plan, "%place.results")
    yield "call void @advance(ptr %place0, ptr %place.results)"
    yield "%s.next = add i64 %s, 1"
    yield f"%s.more = icmp slt i64 %s.next, {max(1, len(iteration.table))}"
    yield "br i1 %s.more, label %stage, label %stage.after"
    yield "stage.after:"
    yield from _to_write(plan, "%place.results")
    yield from _write(plan, vectors)
    yield "%t.next = add i64 %t, 1"
    yield "%t.more = icmp slt i64 %t.next, %instants"
    yield "br i1 %t.more, label %instant, label %done"
