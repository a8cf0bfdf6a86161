"""A program as LLVM IR: a NumPy inner loop with SIMD lanes across the batch.

The :mod:`~robomodel.kernels.llvm.loop` takes as many states at a time as vectors have lanes. Their
rows are transposed into a tile (one vector a number), the straight-line program runs on vectors,
and its distinct results become rows again (:mod:`~robomodel.kernels.llvm.tiles`). Long programs are
cut into functions of a few hundred steps; what crosses a cut goes through a workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robomodel.kernels.llvm import loop, tiles
from robomodel.kernels.llvm.assembly import Function, Instructions, Vectors, flushing
from robomodel.kernels.plan import Iteration, Memory, Plan, ordered, write
from robomodel.kernels.precision import Dtype
from robomodel.kernels.program import Program, Reference

TILES: Mapping[Memory, str] = {"input": "%in", "result": "%out", "work": "%work"}


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
    plan = Plan(ordered(program), tuple(sizes), dtype, iteration)
    vectors = Vectors(plan.precision, lanes)
    text = [*vectors.declarations(), tiles.stage(vectors), *tiles.settle(vectors, sizes[-1])]
    text += _angle_reduction(plan, vectors)
    if dtype == "float32":
        text += flushing(vectors)
    for n in range(len(plan.pieces)):
        text += _piece(plan, vectors, n)
    fetch = iteration is None
    for k, numbers in enumerate(plan.arguments()):
        used = [i - numbers.start for i in numbers if i in plan.used]
        text += tiles.pack(vectors, f"pack{k}", len(numbers), used, fetch=fetch)
    text += tiles.unpack(vectors, plan.index[: sizes[-1]])
    if iteration is not None:
        text += _advance(plan, vectors)
        if iteration.table:
            text += _stage_constants(plan, vectors)
    text += loop.loop(plan, vectors)
    return "\n".join(text) + "\n"


# ---- the program ---------------------------------------------------------------------------------


def _piece(plan: Plan, vectors: Vectors, number: int) -> list[str]:
    """One piece as a function of the input tile, the output tile and the workspace.

    While it computes it also writes the rows of the tile before, a part at a time: memory takes
    lines at its own pace, and a processor waits as soon as a hundred of them are under way.
    """
    f, writing = Function(vectors), _writing(plan, vectors)

    def rows(step: int) -> None:
        f.lines += [f"call void @unpack{part}(ptr %context)" for part in writing.get(step, ())]

    write(plan, number, _Tiles(f, plan), rows)
    arguments = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %work, ptr %context"
    # aligned: a vector spilled across two cache lines costs a quarter of the speed
    return f.text(f"void @piece{number}({arguments}) noinline alignstack(64)")


class _Tiles(Instructions):
    """Vectors of tiles."""

    def __init__(self, f: Function, plan: Plan) -> None:
        super().__init__(f)
        self._angles = plan.angles

    def load(self, memory: Memory, at: int) -> str:
        return self.f.load(TILES[memory], at)

    def store(self, x: str, memory: Memory, at: int) -> None:
        self.f.store(x, TILES[memory], at)

    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Of inputs that are angles alone, the size is tested before."""
        return self.f.sincos(x) if angle in self._angles else self.f.guarded_sincos(x)


def _writing(plan: Plan, vectors: Vectors) -> dict[int, list[int]]:
    """Before which steps of a piece parts of the rows of the tile before are written.

    That is where pieces begin, and nothing is kept in registers; evenly, if there is but one.
    """
    parts, pieces = tiles.parts(vectors, plan.sizes[-1]), len(plan.pieces)
    before: dict[int, list[int]] = {}
    for part in parts if plan.iteration is None else ():
        if pieces == 1:
            at = part * len(plan.program.steps) // len(parts)
        else:
            at = plan.pieces[part * pieces // len(parts)].start
        before.setdefault(at, []).append(part)
    return before


def _angle_reduction(plan: Plan, vectors: Vectors) -> list[str]:
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

    some = f.any_large([f.load("%in", i) for i in angles])
    f.lines += [f"br i1 {some}, label %large, label %small", "small:", "ret void", "large:"]
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
        *f.text("void @reduce_angles(ptr %in) noinline"),
        *g.text(f"{pair} @sincos_large({g.type} %x) noinline cold", f"ret {pair} {result}"),
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
