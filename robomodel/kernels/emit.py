"""A program as LLVM IR: a NumPy inner loop with SIMD lanes across the batch.

The loop takes as many states at a time as vectors have lanes. Their rows are transposed into a tile
(one vector a number), the straight-line program runs on vectors, and its distinct results become
rows again. Long programs are cut into functions of a few hundred steps; what crosses a cut goes
through a workspace whose slots are used again. A program may also be iterated over time, on inputs
of each instant, before the tile is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from robomodel.kernels import tiles
from robomodel.kernels.llvm import Function, Vectors
from robomodel.kernels.plan import Iteration, Plan
from robomodel.kernels.precision import Dtype
from robomodel.kernels.program import (
    ADD,
    COS,
    DIV,
    FMA,
    FMS,
    FNMA,
    MUL,
    NEG,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Program,
    Reference,
    Step,
)

LARGE = 1 << 20  # bytes of results from which on caches cannot be expected to hold them
STACK = 1 << 16  # bytes of a kernel's own memory on the stack, which some threads have little of
SIMPLE = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}


def emit(
    program: Program,
    sizes: Sequence[int],
    lanes: int,
    iteration: Iteration | None = None,
    dtype: Dtype = "float64",
) -> str:
    """IR of ``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``.

    A generalized ufunc's inner loop: ``sizes`` are the lengths of the arguments' last axes, the
    output's last. Any strides, any number of states. ``lanes``: numbers of a vector.
    """
    plan = Plan(program, tuple(sizes), dtype, iteration)
    vectors = Vectors(plan.precision, lanes)
    text = [*vectors.declarations(), tiles.stage(vectors), *_tame(plan, vectors)]
    for n in range(len(plan.pieces)):
        text += _piece(plan, vectors, n)
    fetch = iteration is None
    for k, numbers in enumerate(plan.arguments()):
        used = [i - numbers.start for i in numbers if i in plan.used]
        text += tiles.pack(vectors, f"pack{k}", len(numbers), used, fetch=fetch)
    text += tiles.unpack(vectors, "unpack", plan.index[: sizes[-1]])
    if iteration is not None:
        text += _advance(plan, vectors)
        if iteration.table:
            text += _stage_constants(plan, vectors)
    text += _loop(plan, vectors)
    return "\n".join(text) + "\n"


# ---- the program ---------------------------------------------------------------------------------


def _piece(plan: Plan, vectors: Vectors, number: int) -> list[str]:
    """One piece as a function of the input tile, the output tile and the workspace."""
    f, program, slots = Function(vectors), plan.program, plan.slots
    known: dict[Reference, str] = {}
    trigonometry: dict[Reference, tuple[str, str]] = {}

    def operand(x: Reference) -> str:
        if type(x) is float:
            return f.constant(x)
        if x not in known:
            assert isinstance(x, int)
            known[x] = f.load("%in", x) if x < program.inputs else f.load("%work", slots[x])
        return known[x]

    for i in plan.pieces[number]:
        step, x = program.steps[i], program.inputs + i
        if step.operation in (SIN, COS):
            (angle,) = step.operands
            if angle not in trigonometry:
                sincos = f.sincos if angle in plan.angles else f.guarded_sincos
                trigonometry[angle] = sincos(operand(angle))
            known[x] = trigonometry[angle][step.operation is COS]
        else:
            known[x] = _arithmetic(f, step, operand)
        if x in slots:
            f.store(known[x], "%work", slots[x])
        if x in plan.columns:
            f.store(known[x], "%out", plan.columns[x])
    if number == 0:  # results that are arguments
        for x in plan.program.packing.values:
            if x < program.inputs:
                f.store(operand(x), "%out", plan.columns[x])
    arguments = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %work"
    # aligned: a vector spilled across two cache lines costs a quarter of the speed
    return f.text(f"void @piece{number}({arguments}) noinline alignstack(64)")


def _arithmetic(f: Function, step: Step, operand: Callable[[Reference], str]) -> str:
    names = [operand(x) for x in step.operands]
    if step.operation in SIMPLE:
        return f.two(SIMPLE[step.operation], *names)
    if step.operation is NEG:
        return f.minus(*names)
    if step.operation is SQRT:
        return f.root(*names)
    a, b, c = names
    if step.operation is SELECT:
        return f.select(f.value(f"fcmp olt {f.type} {a}, zeroinitializer"), b, c)
    if step.operation is FMA:
        return f.fma(a, b, c)
    if step.operation is FMS:
        return f.fma(a, b, f.minus(c))
    assert step.operation is FNMA
    return f.fma(f.minus(a), b, c)


def _tame(plan: Plan, vectors: Vectors) -> list[str]:
    """Two functions for huge angles, which are left to the C library.

    Nobody asks for 1e20 radians; but if they come, their sine shall be what NumPy says. Angles that
    are inputs are tested all at once, and brought to the first turn in the tile; others in place.
    """
    f, scalar, size = Function(vectors), vectors.scalar, vectors.precision.bytes
    angles = sorted(plan.angles)

    def called(g: Function, name: str, x: str) -> str:
        return g.value(f"call double @{name}(double {x})")

    def wide(g: Function, x: str) -> str:
        return g.value(f"fpext float {x} to double") if scalar == "float" else x

    def narrow(g: Function, x: str) -> str:
        return g.value(f"fptrunc double {x} to float") if scalar == "float" else x

    some = f.any_far([f.load("%in", i) for i in angles])
    f.lines += [f"br i1 {some}, label %far, label %near", "near:", "ret void", "far:"]
    for i in angles:
        for r in range(vectors.lanes):
            place = f.bytes_on("%in", i * vectors.bytes + r * size)
            x = wide(f, f.value(f"load {scalar}, ptr {place}"))
            s, c = called(f, "sin", x), called(f, "cos", x)
            turned = narrow(f, f.value(f"call double @atan2(double {s}, double {c})"))
            f.lines.append(f"store {scalar} {turned}, ptr {place}")
    g = Function(vectors)
    pair, result = f"{{{g.type}, {g.type}}}", "poison"
    for at, name in enumerate(("sin", "cos")):
        column = "poison"
        for r in range(vectors.lanes):
            x = wide(g, g.value(f"extractelement {g.type} %x, i64 {r}"))
            y = narrow(g, called(g, name, x))
            column = g.value(f"insertelement {g.type} {column}, {scalar} {y}, i64 {r}")
        result = g.value(f"insertvalue {pair} {result}, {g.type} {column}, {at}")
    return [
        *f.text("void @tame(ptr %in) noinline"),
        *g.text(f"{pair} @far({g.type} %x) noinline cold", f"ret {pair} {result}"),
    ]


# ---- over time -----------------------------------------------------------------------------------


def _advance(plan: Plan, vectors: Vectors) -> list[str]:
    """A function that puts what a stage gives into the place of the next one's inputs."""
    f, size, arguments = Function(vectors), plan.sizes[-1], sum(plan.sizes[:-1])
    assert plan.iteration is not None
    for i in range(plan.sizes[0]):
        f.store(f.load("%out", plan.index[i]), "%in", i)
    for i in range(plan.iteration.carried):
        f.store(f.load("%out", plan.index[size + i]), "%in", arguments + i)
    return f.text("void @advance(ptr noalias %in, ptr noalias %out) noinline")


def _stage_constants(plan: Plan, vectors: Vectors) -> list[str]:
    """A function that puts the constants of a stage into their places in the tile."""
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


# ---- the loop ------------------------------------------------------------------------------------


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
    """Where the tiles stand in a kernel's memory, and its size in bytes."""
    iteration = plan.iteration
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    places, total = {}, 0
    for name, count in (
        *((str(k), size) for k, size in enumerate(plan.sizes[:-1])),
        (".carried", carried),
        (".constants", columns),
        (".results", len(plan.columns) + len(plan.constants)),
        (".work", plan.workspace),
        (".stage", max(plan.sizes)),
    ):
        places[name] = total
        total += count * vectors.bytes
    return places, total


def _loop(plan: Plan, vectors: Vectors) -> list[str]:
    """The loop over tiles. One place holds the tiles, the workspace and staged rows.

    Fewer states than lanes have the last of them in all lanes that are over; numbers that are not
    contiguous are staged. A tile is read before it is written, so that the result may take the
    place of an argument. Over time, each tile has all its instants before the next one.
    """
    iteration, sizes, result = plan.iteration, plan.sizes, len(plan.sizes) - 1
    timed = frozenset((*iteration.timed, result)) if iteration else frozenset[int]()
    places, total = _places(plan, vectors)
    taken, given_back = _memory(total, vectors.bytes)
    lines = [
        "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {",
        "entry:",
        "%n = load i64, ptr %dims",
        # the axis of time is the second name in the signature: argument 0 has none
        "%dim.time = getelementptr i64, ptr %dims, i64 2",
        "%instants = load i64, ptr %dim.time" if timed else "%instants = add i64 1, 0",
        *_arguments(plan, timed),
        "%states = icmp sgt i64 %n, 0",
        "%times = icmp sgt i64 %instants, 0",
        "%any = and i1 %states, %times",
        "br i1 %any, label %start, label %exit",
        "start:",
        *taken,
        "begin:",
        *(f"%place{x} = getelementptr i8, ptr %memory, i64 {at}" for x, at in places.items()),
        *(
            f"store {vectors.type} {vectors.constant(x)}, ptr %constant{i}, align {vectors.bytes}"
            if store
            else f"%constant{i} = getelementptr i8, ptr %place.results, i64 {i * vectors.bytes}"
            for i, x in enumerate(plan.constants, len(plan.columns))
            for store in (False, True)
        ),
        f"%written = mul i64 %n, {sizes[-1] * vectors.precision.bytes}",
        f"%many = icmp sgt i64 %written, {LARGE}",
        f"%next.rows = mul i64 %step{result}, {vectors.lanes}",
        "%ahead = select i1 %many, i64 %next.rows, i64 0",
        "br label %tile",
        "tile:",
        "%i = phi i64 [0, %begin], [%next, %done]",
        "%left = sub i64 %n, %i",
        f"%count = call i64 @llvm.smin.i64(i64 %left, i64 {vectors.lanes})",
        "%last = sub i64 %count, 1",
    ]
    for k, size in enumerate(sizes):
        lines += [
            f"%stride{k} = select i1 %gaps{k}, i64 {size * vectors.precision.bytes}, i64 %step{k}",
            f"%offset{k} = mul i64 %i, %step{k}",
            f"%first{k} = getelementptr i8, ptr %arg{k}, i64 %offset{k}",
        ]
    moves = {k: list(_move(k, size, result, timed)) for k, size in enumerate(sizes)}
    for k in range(result):
        lines += moves[k] if k not in timed else []
    pieces = ["call void @tame(ptr %place0)"] if plan.angles else []
    pieces += [
        f"call void @piece{n}(ptr %place0, ptr %place.results, ptr %place.work)"
        for n in range(len(plan.pieces))
    ]
    if iteration is None:
        lines += [*pieces, *moves[result], "br label %done"]
    else:
        lines += [
            f"call void @llvm.memset.p0.i64(ptr %place.carried, i8 0, i64 "
            f"{iteration.carried * vectors.bytes}, i1 false)",
            "br label %instant.before",
            "instant.before:",
            "br label %instant",
            "instant:",
            "%t = phi i64 [0, %instant.before], [%t.next, %instant.done]",
            *(line for k in iteration.timed for line in moves[k]),
            "br label %stage.before",
            "stage.before:",
            "br label %stage",
            "stage:",
            "%s = phi i64 [0, %stage.before], [%s.next, %stage]",
            *(["call void @constants(i64 %s, ptr %place.constants)"] if iteration.columns else []),
            *pieces,
            "call void @advance(ptr %place0, ptr %place.results)",
            "%s.next = add i64 %s, 1",
            f"%s.more = icmp slt i64 %s.next, {max(1, len(iteration.table))}",
            "br i1 %s.more, label %stage, label %staged",
            "staged:",
            *moves[result],
            "%t.next = add i64 %t, 1",
            "%t.more = icmp slt i64 %t.next, %instants",
            "br label %instant.done",
            "instant.done:",
            "br i1 %t.more, label %instant, label %done",
        ]
    return [
        *lines,
        "done:",
        f"%next = add i64 %i, {vectors.lanes}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %tile, label %free",
        "free:",
        *given_back,
        "br label %exit",
        "exit:",
        "ret void",
        "}",
    ]


def _arguments(plan: Plan, timed: frozenset[int]) -> Iterator[str]:
    """Where the arguments and the result are, and the steps of their axes."""
    inner = len(plan.sizes)
    for k in range(len(plan.sizes)):
        yield f"%arg.at{k} = getelementptr ptr, ptr %args, i64 {k}"
        yield f"%arg{k} = load ptr, ptr %arg.at{k}"
        yield f"%step.at{k} = getelementptr i64, ptr %steps, i64 {k}"
        yield f"%step{k} = load i64, ptr %step.at{k}"
        if k in timed:
            yield f"%later.at{k} = getelementptr i64, ptr %steps, i64 {inner}"
            yield f"%later{k} = load i64, ptr %later.at{k}"
            inner += 1
        yield f"%inner.at{k} = getelementptr i64, ptr %steps, i64 {inner}"
        yield f"%inner{k} = load i64, ptr %inner.at{k}"
        yield f"%gaps{k} = icmp ne i64 %inner{k}, {plan.precision.bytes}"
        inner += 1


def _move(k: int, size: int, result: int, timed: frozenset[int]) -> Iterator[str]:
    """An argument's rows into its tile, or the result's tile into its rows."""
    elapsed = f"%elapsed{k}" if k in timed else "0"
    if k in timed:
        yield f"%elapsed{k} = mul i64 %t, %later{k}"
    yield f"%from{k} = getelementptr i8, ptr %first{k}, i64 {elapsed}"
    yield f"%rows{k} = select i1 %gaps{k}, ptr %place.stage, ptr %from{k}"
    outside = f"ptr %from{k}, i64 %step{k}, i64 %inner{k}, i64 {size}, i64 %count"
    rows = f"ptr %rows{k}, i64 %stride{k}, i64 %last"
    if k == result:
        yield f"call void @unpack({rows}, ptr %place.results, i64 %ahead)"
    yield f"br i1 %gaps{k}, label %stage{k}, label %moved{k}"
    yield f"stage{k}:"
    yield f"call void @{'scatter' if k == result else 'gather'}({outside}, ptr %place.stage)"
    yield f"br label %moved{k}"
    yield f"moved{k}:"
    if k != result:
        yield f"call void @pack{k}({rows}, ptr %place{k})"
