"""A program as LLVM IR: the inner loop of a NumPy ufunc, with SIMD lanes across the batch.

The loop takes as many states at a time as vectors have lanes. Their rows are transposed into a tile
(one vector a number), the straight-line program runs on vectors, and its distinct results become
rows again (:mod:`~robomodel.kernels.llvm.tiles`). Long programs are cut into functions of a few
hundred steps; values that cross a cut go through a workspace.

If states are fewer than lanes, the last one fills the remaining lanes. Rows whose numbers are not
contiguous are copied first. Rows of results are written while the next tile is computed. A program
that is cut into pieces may work on several tiles, each with its memory: a piece works on all of
them before the next piece's instructions are fetched (a tenth of the time of forward dynamics of
JVRC-1, a sixth of a chain's of 24 links). A program may also be iterated over time, on inputs of
each instant; a tile then runs through all instants before the next tile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from robomodel.kernels.llvm import driver as driving
from robomodel.kernels.llvm import tiles
from robomodel.kernels.llvm.assembly import X86, Function, Instructions, LaneVectors, flushing
from robomodel.kernels.llvm.driver import STACK_BYTES
from robomodel.kernels.plan import Iteration, KernelPlan, Memory, hoist, ordered, write
from robomodel.kernels.program import COS, PRECISIONS, SIN, Dtype, Program, Reference
from robomodel.kernels.x86 import pieces as x86

TILES: Mapping[Memory, str] = {"input": "%in", "result": "%out", "work": "%work"}

LARGE_BYTES = 1 << 21  # more bytes of arguments or results are not expected in a core's caches
STREAMED_BYTES = 1 << 24  # more bytes of results are not expected in any cache
CACHED = 1500  # steps whose code a first-level cache of 32 kB holds
STEPS_PER_RESULT = 40  # with fewer, writing results takes longer than fetching code
TILES_AT_ONCE = 2  # tiles on which each piece of a program works in turn
NEAR_BYTES = 1 << 17  # most bytes of a tile's values and results for that
NOT_FINITE = 13  # bits of the exceptions invalid, divide by zero and overflow in x86's MXCSR


def emit(
    program: Program,
    sizes: Sequence[int],
    lanes: int,
    iteration: Iteration | None = None,
    dtype: Dtype = "float64",
    shared: tuple[int, ...] = (),
) -> str:
    """IR of ``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``.

    The inner loop of a generalized ufunc: ``sizes`` are the lengths of the arguments' last axes,
    the last one the result's. Any strides, any number of states. ``lanes``: numbers in a vector.
    """
    vectors = LaneVectors(PRECISIONS[dtype], lanes)
    return written(planned(program, tuple(sizes), dtype, iteration, shared, vectors), vectors)


def written(plan: KernelPlan, vectors: LaneVectors, *, pieces: bool = True) -> str:
    """IR of a plan; without its ``pieces`` if these are :func:`assembled`."""
    iteration, sizes = plan.iteration, plan.sizes
    text = [*vectors.declarations(), tiles.stage(vectors), *tiles.settle(vectors, sizes[-1])]
    text += _angle_reduction(plan, vectors, in_place=pieces or _turns(plan))
    if plan.dtype == "float32":
        text += flushing(vectors)
    for n in range(len(plan.pieces)):
        if pieces:
            text += _piece(plan, vectors, n)
        else:
            text.append(f"declare hidden void @piece{n}(ptr, ptr, ptr, ptr)")
    if not pieces and _turns(plan):
        text += _turn(vectors)
    fetch = iteration is None
    packs = _packs(plan)
    for k, numbers in enumerate(plan.arguments()):
        if packs[k] == k:
            used = _used(plan, numbers)
            text += tiles.pack(vectors, f"pack{k}", len(numbers), used, fetch=fetch)
    text += tiles.unpack(vectors, plan.index[: sizes[-1]], len(plan.columns))
    if iteration is not None:
        text += _advance(plan, vectors)
        if iteration.table:
            text += _stage_constants(plan, vectors)
    text += _loop(plan, vectors)
    result = "\n".join(text) + "\n"
    if not pieces:  # which call these
        result = re.sub(r"define internal (.* @(?:unpack\d+|turn)\()", r"define hidden \1", result)
    return result


def _used(plan: KernelPlan, numbers: range) -> list[int]:
    """The numbers of an argument that the program uses."""
    return [i - numbers.start for i in numbers if i in plan.used]


def _packs(plan: KernelPlan) -> list[int]:
    """For each argument the first one that is read alike."""
    kinds = [(len(numbers), _used(plan, numbers)) for numbers in plan.arguments()]
    return [kinds.index(kind) for kind in kinds]


def assembled(plan: KernelPlan, vectors: LaneVectors, *, writing: bool = True) -> bytes:
    """The object code of a plan's pieces, by :mod:`robomodel.kernels.x86`.

    Without ``writing`` they write no rows, as :func:`driver` needs them.
    """
    calls = _writing(plan, vectors) if writing else {}
    return x86.assembled(plan, calls, range(len(plan.pieces)))


def driver(vectors: LaneVectors) -> str:
    """IR of the loop that runs any plan of one piece (:mod:`~robomodel.kernels.llvm.driver`)."""
    return driving.text(vectors, _turn(vectors), _large_angles(vectors), _silenced())


def _turns(plan: KernelPlan) -> bool:
    """True if there are angles besides the inputs that are angles only."""
    return any(
        step.operation in (SIN, COS) and step.operands[0] not in plan.angles
        for step in plan.program.steps
    )


def _turn(vectors: LaneVectors) -> list[str]:
    """A function of angles that gives sines and cosines."""
    f = Function(vectors)
    pair, result = f"{{{f.type}, {f.type}}}", "poison"
    for at, x in enumerate(f.guarded_sincos("%x")):
        result = f.value(f"insertvalue {pair} {result}, {f.type} {x}, {at}")
    return f.text(f"{pair} @{x86.TURN}({f.type} %x) noinline", f"ret {pair} {result}")


def planned(
    program: Program,
    sizes: tuple[int, ...],
    dtype: Dtype,
    iteration: Iteration | None,
    shared: tuple[int, ...],
    vectors: LaneVectors,
) -> KernelPlan:
    """How the program is cut.

    Code that does not fit in the first-level cache is fetched from the second, again for each tile,
    which takes longer than its arithmetic; how long depends on its pages in memory. Pieces that
    work on several tiles in turn halve that: 8 to 22 % of the time of batches, against 2 to 10 %
    more for a single state (EPYC, inverse and forward dynamics of 1979 to 4640 steps). Shorter
    programs, and those with many results, would take up to a quarter more.
    """
    results = len(program.distinct)
    if iteration is not None:  # over time every argument but these is the same
        shared = tuple({*range(1, len(sizes) - 1)}.difference(iteration.timed))
    firsts = [sum(sizes[:k]) for k in shared]
    inputs = [i for k, at in zip(shared, firsts, strict=True) for i in range(at, at + sizes[k])]
    if iteration is None and len(program.steps) > max(CACHED, STEPS_PER_RESULT * results):
        steps, hoisted = hoist(ordered(program, 0), inputs)
        plan = KernelPlan(steps, sizes, dtype, longest=CACHED, shared=shared, hoisted=hoisted)
        if _tiles_at_once(plan, vectors) > 1:
            return plan
    steps, hoisted = hoist(ordered(program), inputs)
    return KernelPlan(steps, sizes, dtype, iteration, shared=shared, hoisted=hoisted)


# ---- the program ---------------------------------------------------------------------------------


def _piece(plan: KernelPlan, vectors: LaneVectors, number: int) -> list[str]:
    """One piece as a function of the input tile, the output tile and the workspace.

    Meanwhile it writes rows of the tile before, part by part: memory takes lines at a limited rate,
    and a processor waits once a hundred of them are under way.
    """
    f, writing = Function(vectors), _writing(plan, vectors)

    def rows(step: int) -> None:
        for name, part in writing.get(step, ()):
            f.lines.append(f"call void @{name}(ptr %context, i64 {part})")

    write(plan, number, _Tiles(f, plan), rows)
    arguments = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %work, ptr %context"
    # aligned: a vector spilled across two cache lines costs a quarter of the speed
    return f.text(f"void @piece{number}({arguments}) noinline alignstack(64)")


class _Tiles(Instructions):
    """Instructions on the vectors of tiles."""

    def __init__(self, f: Function, plan: KernelPlan) -> None:
        super().__init__(f)
        self._angles = plan.angles

    def load(self, memory: Memory, at: int) -> str:
        return self.f.load(TILES[memory], at)

    def store(self, x: str, memory: Memory, at: int) -> None:
        self.f.store(x, TILES[memory], at)

    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Sine and cosine; inputs that are only used as angles have been checked before."""
        return self.f.sincos(x) if angle in self._angles else self.f.guarded_sincos(x)


def _writing(plan: KernelPlan, vectors: LaneVectors) -> dict[int, list[tuple[str, int]]]:
    """The functions that write the previous tile's rows before each step of a piece, and the parts.

    They are written where pieces begin, when registers hold nothing; evenly if there is one piece.
    """
    parts, pieces = tiles.parts(vectors, plan.sizes[-1]), plan.pieces[plan.prologue :]
    before: dict[int, list[tuple[str, int]]] = {}
    for part in parts if plan.iteration is None else ():
        if len(pieces) == 1:
            at = pieces[0].start + part * len(pieces[0]) // len(parts)
        else:
            at = pieces[part * len(pieces) // len(parts)].start
        before.setdefault(at, []).append((tiles.writer(part, len(parts)), part))
    return before


def _angle_reduction(plan: KernelPlan, vectors: LaneVectors, *, in_place: bool) -> list[str]:
    """Two functions that call the C library for huge angles, so that results are NumPy's there.

    Angles that are inputs are checked together, and reduced to the first turn in the tile; if there
    are others, these are computed ``in_place``.
    """
    f, scalar = Function(vectors), vectors.scalar
    angles = sorted(plan.angles)

    some = f.any_large([f.load("%in", i) for i in angles])
    f.lines += [f"br i1 {some}, label %large, label %small", "small:", "ret void", "large:"]
    f.label("number")
    at = f.value("phi i64 [0, %large], [%next, %number]")
    entry, lane = (f.value(f"{each} i64 {at}, {vectors.lanes}") for each in ("udiv", "urem"))
    first = f.value(f"load i32, ptr {f.value(f'getelementptr i32, ptr @angles, i64 {entry}')}")
    column = f.bytes_on("%in", f.value(f"zext i32 {first} to i64"))
    place = f.value(f"getelementptr {scalar}, ptr {column}, i64 {lane}")
    x = _wide(f, f.value(f"load {scalar}, ptr {place}"))
    s, c = (f.value(f"call double @{name}(double {x})") for name in ("sin", "cos"))
    turned = _narrow(f, f.value(f"call double @atan2(double {s}, double {c})"))
    f.lines += [
        f"store {scalar} {turned}, ptr {place}",
        f"%next = add i64 {at}, 1",
        f"%more = icmp slt i64 %next, {len(angles) * vectors.lanes}",
        "br i1 %more, label %number, label %reduced",
        "reduced:",
    ]
    offsets = ", ".join(f"i32 {i * vectors.bytes}" for i in angles)
    lines = [f"@angles = internal constant [{len(angles)} x i32] [{offsets}]"]
    lines += f.text("void @reduce_angles(ptr %in) noinline") if angles else []
    return [*lines, *_large_angles(vectors)] if in_place else lines


def _large_angles(vectors: LaneVectors) -> list[str]:
    """A function of angles that gives sines and cosines by the C library."""
    g, scalar = Function(vectors), vectors.scalar
    pair, result = f"{{{g.type}, {g.type}}}", "poison"
    for part, name in enumerate(("sin", "cos")):
        column = "poison"
        for r in range(vectors.lanes):
            x = g.value(f"extractelement {g.type} %x, i64 {r}")
            y = _narrow(g, g.value(f"call double @{name}(double {_wide(g, x)})"))
            column = g.value(f"insertelement {g.type} {column}, {scalar} {y}, i64 {r}")
        result = g.value(f"insertvalue {pair} {result}, {g.type} {column}, {part}")
    return g.text(f"{pair} @sincos_large({g.type} %x) noinline cold", f"ret {pair} {result}")


def _wide(f: Function, x: str) -> str:
    return f.value(f"fpext float {x} to double") if f.vectors.scalar == "float" else x


def _narrow(f: Function, x: str) -> str:
    return f.value(f"fptrunc double {x} to float") if f.vectors.scalar == "float" else x


# ---- over time -----------------------------------------------------------------------------------


def _advance(plan: KernelPlan, vectors: LaneVectors) -> list[str]:
    """A function that makes a stage's outputs the next one's inputs."""
    f, size, arguments = Function(vectors), plan.sizes[-1], sum(plan.sizes[:-1])
    assert plan.iteration is not None
    for i in range(plan.sizes[0]):
        f.store(f.load("%out", plan.index[i]), "%in", i)
    for i in range(plan.iteration.carried):
        f.store(f.load("%out", plan.index[size + i]), "%in", arguments + i)
    return f.text("void @advance(ptr noalias %in, ptr noalias %out) noinline")


def _stage_constants(plan: KernelPlan, vectors: LaneVectors) -> list[str]:
    """A function that writes a stage's constants into the tile."""
    f, scalar, iteration = Function(vectors), vectors.scalar, plan.iteration
    assert iteration is not None
    numbers = [x for row in iteration.table for x in row]
    entries = ", ".join(f"{scalar} {vectors.literal(x)}" for x in numbers)
    first = f.value(f"mul i64 %stage, {iteration.columns}")
    for c in range(iteration.columns):
        at = f.value(f"add i64 {first}, {c}")
        place = f.value(f"getelementptr {scalar}, ptr @table, i64 {at}")
        x = f.value(f"load {scalar}, ptr {place}")
        one = f.value(f"insertelement {f.type} poison, {scalar} {x}, i64 0")
        f.store(f.shuffle(one, "poison", [0] * vectors.lanes), "%tile", c)
    return [
        f"@table = internal constant [{len(numbers)} x {scalar}] [{entries}]",
        *f.text("void @constants(i64 %stage, ptr %tile) noinline"),
    ]


# ---- the loop over tiles -------------------------------------------------------------------------


def _loop(plan: KernelPlan, vectors: LaneVectors) -> list[str]:
    """``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)`` over tiles."""
    offsets, total = _layout(plan, vectors)
    several, over_time = _tiles_at_once(plan, vectors), plan.iteration
    allocation, release = _memory(several * total, vectors.bytes)
    return [
        "@defaults = internal constant [3 x i64] zeroinitializer",
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
        *(_remembered() if X86 else []),
        *allocation,
        "begin:",
        *_sizes(plan, vectors),
        *(
            line
            for t in range(several)
            for line in (
                *_copy(f"begin{t}", offsets, f"{t * total}"),
                *_constants(plan, vectors, f"begin{t}"),
                *_context(plan, f"begin{t}"),
            )
        ),
        *(["%flushed = call i32 @flush()"] if plan.dtype == "float32" else []),
        "br label %tile",
        "tile:",
        "%i = phi i64 [0, %begin], [%next, %done]",
        "%turn = phi i1 [false, %begin], [%turned, %done]",
        f"%turned = xor i1 %turn, {'false' if over_time else 'true'}",
        *(_iterated(plan, vectors) if over_time else _once(plan, vectors)),
        "done:",
        f"%next = add i64 %i, {several * vectors.lanes}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %tile, label %free",
        "free:",
        *(
            line
            for t in range(0 if over_time else several)
            for line in _write(plan, vectors, f"begin{t}")
        ),
        *(_fence() if tiles.streams(vectors, plan.sizes[-1]) else []),
        *(["call void @keep(i32 %flushed)"] if plan.dtype == "float32" else []),
        *release,
        *(_silenced() if X86 else []),
        "br label %exit",
        "exit:",
        "ret void",
        "}",
    ]


def _remembered() -> list[str]:
    """Keep the floating-point exceptions of before."""
    return [
        "%status = alloca i32",
        "%ended = alloca i32",
        "call void @llvm.x86.sse.stmxcsr(ptr %status)",
    ]


def _silenced() -> list[str]:
    """Reset the floating-point exceptions to those of before, where they are not asked for.

    Those that come with results that are not finite are added to the number to which the third of
    the data points.
    """
    return [
        "br i1 %quiet, label %silent, label %told",
        "silent:",
        "call void @llvm.x86.sse.stmxcsr(ptr %ended)",
        "%exceptions = load i32, ptr %ended",
        f"%raised = and i32 %exceptions, {NOT_FINITE}",
        "%raised.wide = zext i32 %raised to i64",
        "%raised.place = getelementptr i64, ptr %options, i64 2",
        "%raised.at = load ptr, ptr %raised.place",
        "%raised.before = load i64, ptr %raised.at",
        "%raised.now = or i64 %raised.before, %raised.wide",
        "store i64 %raised.now, ptr %raised.at",
        "call void @llvm.x86.sse.ldmxcsr(ptr %status)",
        "br label %told",
        "told:",
    ]


def _tiles_at_once(plan: KernelPlan, vectors: LaneVectors) -> int:
    """The number of tiles in turn: several if instructions cost more than moving numbers."""
    size = (plan.workspace + len(plan.columns)) * vectors.bytes
    single = len(plan.pieces) - plan.prologue == 1
    return 1 if plan.iteration or single or size > NEAR_BYTES else TILES_AT_ONCE


# ---- memory --------------------------------------------------------------------------------------


def _memory(size: int, alignment: int) -> tuple[list[str], list[str]]:
    """Lines that allocate memory by functions of every C library, and lines that free it."""
    if size <= STACK_BYTES:
        return [f"%memory = alloca [{size} x i8], align {alignment}", "br label %begin"], []
    return [
        f"%allocated = call ptr @malloc(i64 {size + alignment - 1})",
        "%none = icmp eq ptr %allocated, null",
        "br i1 %none, label %nowhere, label %somewhere",
        "nowhere:",  # a loop cannot raise an exception, and must not return without results
        "call void @abort()",
        "unreachable",
        "somewhere:",
        f"%beyond = getelementptr i8, ptr %allocated, i64 {alignment - 1}",
        f"%memory = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 {-alignment})",
        "br label %begin",
    ], ["call void @free(ptr %allocated)"]


def _layout(plan: KernelPlan, vectors: LaneVectors) -> tuple[dict[str, int], int]:
    """Offsets of the tiles in a kernel's memory, and its size in bytes.

    There are two tiles of results: one is written to rows while the other one is computed.
    """
    iteration, results = plan.iteration, len(plan.columns) + len(plan.constants)
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    offsets, total = {}, 0
    for name, count in (
        *((f"input{k}", size) for k, size in enumerate(plan.sizes[:-1])),
        ("carried", carried),
        ("constants", columns),
        ("results", results),
        ("others", 0 if iteration else results),
        ("work", plan.workspace),
        ("stage", max(plan.sizes[:-1])),
        ("staged", plan.sizes[-1]),
        ("context", -(-8 * len(tiles.CONTEXT) // vectors.bytes)),
    ):
        offsets[name] = total
        total += count * vectors.bytes
    return offsets, total


def _copy(where: str, offsets: dict[str, int], offset: str) -> Iterator[str]:
    """The addresses of one of the tiles in turn."""
    yield f"%{where}.memory = getelementptr i8, ptr %memory, i64 {offset}"
    for name, at in offsets.items():
        yield f"%{where}.{name} = getelementptr i8, ptr %{where}.memory, i64 {at}"


def _constants(plan: KernelPlan, vectors: LaneVectors, where: str) -> Iterator[str]:
    """Store the results that are constant, which stay in the tile."""
    for tile in ("results",) if plan.iteration else ("results", "others"):
        for i, x in enumerate(plan.constants, len(plan.columns)):
            at = f"%{where}.constant.{tile}{i}"
            yield f"{at} = getelementptr i8, ptr %{where}.{tile}, i64 {i * vectors.bytes}"
            yield f"store {vectors.type} {vectors.constant(x)}, ptr {at}, align {vectors.bytes}"


def _each(
    plan: KernelPlan, vectors: LaneVectors, where: str, body: Callable[[str], Iterator[str]]
) -> Iterator[str]:
    """Run ``body`` on each of the tiles in turn that have states."""
    offsets, total = _layout(plan, vectors)
    several = _tiles_at_once(plan, vectors) > 1
    if several:
        yield from (f"br label %{where}.before", f"{where}.before:", f"br label %{where}")
        yield f"{where}:"
        yield f"%{where}.t = phi i64 [0, %{where}.before], [%{where}.following, %{where}.end]"
    tile = f"%{where}.t" if several else "0"
    yield f"%{where}.offset = mul i64 {tile}, {total}"
    yield from _copy(where, offsets, f"%{where}.offset")
    yield f"%{where}.results.now = select i1 %turn, ptr %{where}.others, ptr %{where}.results"
    yield f"%{where}.beyond = mul i64 {tile}, {vectors.lanes}"
    yield f"%{where}.i = add i64 %i, %{where}.beyond"
    yield f"%{where}.remaining = sub i64 %n, %{where}.i"
    yield f"%{where}.count = call i64 @llvm.smin.i64(i64 %{where}.remaining, i64 {vectors.lanes})"
    yield f"%{where}.last = sub i64 %{where}.count, 1"
    yield from body(where)
    if several:
        yield from (f"br label %{where}.end", f"{where}.end:")
        yield f"%{where}.following = add i64 %{where}.t, 1"
        yield f"%{where}.begins = mul i64 %{where}.following, {vectors.lanes}"
        yield f"%{where}.further = add i64 %i, %{where}.begins"
        yield f"%{where}.exists = icmp slt i64 %{where}.further, %n"
        yield f"%{where}.in.turn = icmp slt i64 %{where}.following, {_tiles_at_once(plan, vectors)}"
        yield f"%{where}.more = and i1 %{where}.exists, %{where}.in.turn"
        yield f"br i1 %{where}.more, label %{where}, label %{where}.after"
        yield f"{where}.after:"


# ---- rows ----------------------------------------------------------------------------------------


def _timed(plan: KernelPlan) -> frozenset[int]:
    """The arguments, and the result, that have a row for each instant."""
    iteration, result = plan.iteration, len(plan.sizes) - 1
    return frozenset((*iteration.timed, result)) if iteration else frozenset()


def _arguments(plan: KernelPlan) -> Iterator[str]:
    """Addresses of the arguments and the result, and the strides of their axes."""
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
        if k == len(plan.sizes) - 1:
            yield from _matrix(plan, k)
        else:
            yield f"%inner{k} = load i64, ptr %inner.at{k}"
            dense = size if plan.sizes[k] > 1 else f"%inner{k}"  # length 1: any stride
            yield f"%gaps{k} = icmp ne i64 %inner{k}, {dense}"
        yield f"%stride{k} = select i1 %gaps{k}, i64 {plan.sizes[k] * size}, i64 %step{k}"
        inner += 1


def _matrix(plan: KernelPlan, k: int) -> Iterator[str]:
    """Strides of the result: a matrix if the ufunc's data are a number of columns, or one row.

    The data's second number is not zero if floating-point exceptions are none of the caller's, and
    then the third is the address of a number that tells of them.
    """
    size = plan.precision.bytes
    yield "%given = icmp ne ptr %data, null"
    yield "%options = select i1 %given, ptr %data, ptr @defaults"
    yield "%matrix.columns = load i64, ptr %options"
    yield "%shaped = icmp ne i64 %matrix.columns, 0"
    yield f"%columns{k} = select i1 %shaped, i64 %matrix.columns, i64 {plan.sizes[k]}"
    yield "%silent.at = getelementptr i64, ptr %options, i64 1"
    yield "%silence = load i64, ptr %silent.at"
    yield "%quiet = icmp ne i64 %silence, 0"
    yield "%axis = zext i1 %shaped to i64"
    yield f"%along.columns = getelementptr i64, ptr %inner.at{k}, i64 %axis"
    yield f"%outer{k} = load i64, ptr %inner.at{k}"
    yield f"%inner{k} = load i64, ptr %along.columns"
    yield f"%line.bytes = mul i64 %columns{k}, {size}"
    # strides of axes of length 1 mean nothing
    yield f"%lines = icmp slt i64 %columns{k}, {plan.sizes[k]}"
    yield f"%gaps.lines = icmp ne i64 %outer{k}, %line.bytes"
    yield "%split = and i1 %lines, %gaps.lines"
    yield f"%wide = icmp sgt i64 %columns{k}, 1"
    yield f"%gaps.columns = icmp ne i64 %inner{k}, {size}"
    yield "%spread = and i1 %wide, %gaps.columns"
    yield f"%gaps{k} = or i1 %split, %spread"


def _from(plan: KernelPlan, k: int, where: str) -> Iterator[str]:
    """The address of an argument's rows, or the result's, for this tile at this instant."""
    elapsed = f"%elapsed{k}" if k in _timed(plan) else "0"
    if k in _timed(plan):
        yield f"%elapsed{k} = mul i64 %t, %later{k}"
    yield f"%offset{k} = mul i64 %{where}.i, %step{k}"
    yield f"%first{k} = getelementptr i8, ptr %arg{k}, i64 %offset{k}"
    yield f"%from{k} = getelementptr i8, ptr %first{k}, i64 {elapsed}"


def _read(plan: KernelPlan, k: int, where: str) -> Iterator[str]:
    """Read an argument's rows into its tile."""
    yield from _from(plan, k, where)
    yield f"%rows{k} = select i1 %gaps{k}, ptr %{where}.stage, ptr %from{k}"
    yield f"br i1 %gaps{k}, label %stage{k}, label %moved{k}"
    yield f"stage{k}:"
    size = plan.sizes[k]
    near = f"ptr %{where}.stage, i64 {size * plan.precision.bytes}, i64 {plan.precision.bytes}"
    far = f"ptr %from{k}, i64 %step{k}, i64 %inner{k}"
    yield f"call void @move({far}, {near}, i64 {size}, i64 %{where}.count)"
    yield f"br label %moved{k}"
    yield f"moved{k}:"
    rows = f"ptr %rows{k}, i64 %stride{k}, i64 %{where}.last"
    yield f"call void @pack{_packs(plan)[k]}({rows}, ptr %{where}.input{k}, i1 %many)"


def _sizes(plan: KernelPlan, vectors: LaneVectors) -> Iterator[str]:
    """Lines that compute how large arguments and results are, and how far ahead to fetch these."""
    result = len(plan.sizes) - 1
    of_all, of_results = sum(plan.sizes), plan.sizes[-1]
    for name, count in (("many", of_all), ("many.results", of_results)):
        yield f"%bytes.{name} = mul i64 %n, {count * plan.precision.bytes}"
        yield f"%{name} = icmp sgt i64 %bytes.{name}, {LARGE_BYTES}"
    yield f"%next.rows = mul i64 %step{result}, {_tiles_at_once(plan, vectors) * vectors.lanes}"
    yield "%ahead = select i1 %many.results, i64 %next.rows, i64 0"
    yield f"%beyond.caches = icmp sgt i64 %bytes.many.results, {STREAMED_BYTES}"
    yield f"%past.caches = select i1 %gaps{result}, i1 false, i1 %beyond.caches"
    yield "%streamed = zext i1 %past.caches to i64"
    varying = "false"
    for k in plan.shared:
        yield f"%varies{k} = icmp ne i64 %step{k}, 0"
        yield f"%varying{k} = or i1 {varying}, %varies{k}"
        varying = f"%varying{k}"
    yield f"%varying = or i1 {varying}, false"


def _fence() -> list[str]:
    """Make stores past the caches visible to other threads before the loop ends."""
    return [
        "br i1 %past.caches, label %fence, label %fenced",
        "fence:",
        "call void @llvm.x86.sse.sfence()",
        "br label %fenced",
        "fenced:",
    ]


def _context_pointers(where: str) -> Iterator[str]:
    """Addresses in the context of the functions that write results."""
    for i, name in enumerate(tiles.CONTEXT):
        yield f"%{where}.to.{name} = getelementptr i8, ptr %{where}.context, i64 {8 * i}"


def _context(plan: KernelPlan, where: str) -> Iterator[str]:
    """Store the part of the context that does not change."""
    result = len(plan.sizes) - 1
    yield from _context_pointers(where)
    for name in ("ahead", "streamed"):
        yield f"store i64 %{name}, ptr %{where}.to.{name}"
    for name in ("stride", "step", "outer", "columns", "inner"):
        yield f"store i64 %{name}{result}, ptr %{where}.to.{name}"
    for name in ("rows", "from"):
        yield f"store ptr null, ptr %{where}.to.{name}"


def _to_write(plan: KernelPlan, where: str) -> Iterator[str]:
    """Make this tile's results the next to be written."""
    k = len(plan.sizes) - 1
    yield from _from(plan, k, where)
    yield f"%rows{k} = select i1 %gaps{k}, ptr %{where}.staged, ptr %from{k}"
    yield f"%staged{k} = select i1 %gaps{k}, ptr %from{k}, ptr null"
    for name, value in (
        ("rows", f"ptr %rows{k}"),
        ("from", f"ptr %staged{k}"),
        ("last", f"i64 %{where}.last"),
        ("tile", f"ptr %{where}.results.now"),
    ):
        yield f"store {value}, ptr %{where}.to.{name}"


def _write(plan: KernelPlan, vectors: LaneVectors, where: str) -> Iterator[str]:
    """Write the results that are due."""
    parts = tiles.parts(vectors, plan.sizes[-1])
    for part in parts:
        name = tiles.writer(part, len(parts))
        yield f"call void @{name}(ptr %{where}.context, i64 {part})"
    yield f"call void @settle(ptr %{where}.context)"


# ---- a turn of the loop --------------------------------------------------------------------------


def _call_piece(n: int, where: str) -> Iterator[str]:
    """Call a piece on a tile; it may write the previous tile's results as well."""
    pointers = ("input0", "results.now", "work", "context")
    yield f"call void @piece{n}({', '.join(f'ptr %{where}.{x}' for x in pointers)})"


def _in_turn(plan: KernelPlan, vectors: LaneVectors) -> Iterator[str]:
    """Call each piece on one tile after the other, as far as they have states."""
    several = _tiles_at_once(plan, vectors)
    for t in range(several):
        both = f"ptr %begin{t}.others, ptr %begin{t}.results"
        yield f"%begin{t}.results.now = select i1 %turn, {both}"
        yield f"%begin{t}.i = add i64 %i, {t * vectors.lanes}"
        yield f"%begin{t}.exists = icmp slt i64 %begin{t}.i, %n"
    for n in range(plan.prologue, len(plan.pieces)):
        yield from _call_piece(n, "begin0")
        for t in range(1, several):
            yield f"br i1 %begin{t}.exists, label %piece{n}.{t}, label %piece{n}.after"
            yield f"piece{n}.{t}:"
            yield from _call_piece(n, f"begin{t}")
        yield f"br label %piece{n}.after"
        yield f"piece{n}.after:"


def _reduced_angles(plan: KernelPlan, where: str) -> Iterator[str]:
    """Reduce angles to the first turn."""
    if plan.angles:
        yield f"call void @reduce_angles(ptr %{where}.input0)"


def _once(plan: KernelPlan, vectors: LaneVectors) -> Iterator[str]:
    def read(where: str) -> Iterator[str]:
        for k in range(len(plan.sizes) - 1):
            if k not in plan.shared:
                yield from _read(plan, k, where)
        yield from _reduced_angles(plan, where)

    def prologue(where: str) -> Iterator[str]:
        for k in plan.shared:
            yield from _read(plan, k, where)
        for n in range(plan.prologue):
            yield from _call_piece(n, where)

    def written(where: str) -> Iterator[str]:
        yield f"call void @settle(ptr %{where}.context)"
        yield from _context_pointers(where)
        yield from _to_write(plan, where)

    if plan.shared:
        yield "%first.tile = icmp eq i64 %i, 0"
        yield "%hoisting = or i1 %first.tile, %varying"
        yield "br i1 %hoisting, label %hoist, label %hoisted"
        yield "hoist:"
        yield from _each(plan, vectors, "prologue", prologue)
        yield "br label %hoisted"
        yield "hoisted:"
    yield from _each(plan, vectors, "read", read)
    yield from _in_turn(plan, vectors)
    yield from _each(plan, vectors, "written", written)
    yield "br label %done"


def _iterated(plan: KernelPlan, vectors: LaneVectors) -> Iterator[str]:
    yield from _each(plan, vectors, "instants.of", lambda where: _over_time(plan, vectors, where))
    yield "br label %done"


def _over_time(plan: KernelPlan, vectors: LaneVectors, where: str) -> Iterator[str]:
    """Run through all instants of a tile."""
    assert plan.iteration is not None
    iteration, timed = plan.iteration, _timed(plan)
    yield from _context_pointers(where)
    for k in range(len(plan.sizes) - 1):
        if k not in timed:
            yield from _read(plan, k, where)
    carried = iteration.carried * vectors.bytes
    for n in range(plan.prologue):
        yield from _call_piece(n, where)
    cleared = f"ptr %{where}.carried, i8 0, i64 {carried}, i1 false"
    yield f"call void @llvm.memset.p0.i64({cleared})"
    yield "br label %instant.before"
    yield "instant.before:"
    yield "br label %instant"
    yield "instant:"
    yield "%t = phi i64 [0, %instant.before], [%t.next, %stage.after]"
    for k in iteration.timed:
        yield from _read(plan, k, where)
    yield "br label %stage.before"
    yield "stage.before:"
    yield "br label %stage"
    yield "stage:"
    yield "%s = phi i64 [0, %stage.before], [%s.next, %stage]"
    if iteration.columns:
        yield f"call void @constants(i64 %s, ptr %{where}.constants)"
    yield from _reduced_angles(plan, where)
    for n in range(plan.prologue, len(plan.pieces)):
        yield from _call_piece(n, where)
    yield f"call void @advance(ptr %{where}.input0, ptr %{where}.results.now)"
    yield "%s.next = add i64 %s, 1"
    yield f"%s.more = icmp slt i64 %s.next, {max(1, len(iteration.table))}"
    yield "br i1 %s.more, label %stage, label %stage.after"
    yield "stage.after:"
    yield from _to_write(plan, where)
    yield from _write(plan, vectors, where)
    yield "%t.next = add i64 %t, 1"
    yield "%t.more = icmp slt i64 %t.next, %instants"
    yield "br i1 %t.more, label %instant, label %after.instants"
    yield "after.instants:"
