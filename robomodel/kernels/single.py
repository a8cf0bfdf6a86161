"""One state at a time: functions that Python calls without the machinery of a ufunc.

A ufunc spends more on finding out what it was given than a kernel on computing. Where all arguments
are arrays of one axis, of the kernel's own type and without gaps, these functions read them, run
the program, and hand out new arrays. All else, and results that are not finite (of which NumPy
warns as it was told to), they leave to ``self``, which is called with the same arguments. They run
with the interpreter's lock held, so that one tile serves all calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from robomodel.kernels import tiles
from robomodel.kernels.llvm import Function, Vectors
from robomodel.kernels.plan import Plan
from robomodel.kernels.python import (
    AXES,
    CONTEXT,
    DATA,
    DTYPE,
    FLAGS,
    KIND,
    LENGTH,
    ORDER,
    SHAPE,
    TYPE,
)

PLAIN, WRITABLE = 0x101, 0x501  # contiguous and aligned; and writable
NATIVE = 61  # "=", the order of bytes
KINDS = {"float32": 11, "float64": 12}  # NumPy's numbers of types
UNROLLED = 512  # numbers that are moved one after the other; more of them in a loop


def single(plan: Plan, vectors: Vectors, shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """IR of ``one(self, arguments, count)`` and of ``onto``, for Python's fast calls.

    ``onto`` takes a tuple of the arguments, and where the result goes. ``shapes`` are those of the
    result's parts, which follow each other: one is an array, several are a tuple of arrays.
    """
    kind = KINDS[plan.dtype]
    rows = [f"[{len(s)} x i64] [{', '.join(f'i64 {n}' for n in s)}]" for s in shapes]
    return [
        f"@context = hidden global [{len(CONTEXT)} x ptr] zeroinitializer",
        *(f"@shape{r} = internal constant {row}" for r, row in enumerate(rows)),
        f"@row = internal constant [1 x i64] [i64 {plan.sizes[-1]}]",
        *_run(plan, vectors),
        *_one(plan, shapes, kind),
        *_onto(plan, shapes, kind),
    ]


# ---- the program ---------------------------------------------------------------------------------


def _run(plan: Plan, vectors: Vectors) -> list[str]:
    """A function from the arguments' numbers to the result's: whether some of these are lost."""
    f, scalar, size = Function(vectors), vectors.scalar, vectors.precision.bytes
    inputs, results = plan.program.inputs, len(plan.columns) + len(plan.constants)
    out, work = (f.bytes_on("@scratch", n * vectors.bytes) for n in (inputs, inputs + results))
    for k, numbers in enumerate(plan.arguments()):
        for i in sorted(plan.used.intersection(numbers)):
            at = f.bytes_on(f"%x{k}", (i - numbers.start) * size)
            x = f.value(f"load {scalar}, ptr {at}, align {size}")
            first = f.value(f"insertelement {f.type} poison, {scalar} {x}, i64 0")
            f.store(f.shuffle(first, "poison", [0] * vectors.lanes), "@scratch", i)
    if plan.dtype == "float32":
        f.lines.append("%flushed = call i32 @flush()")
    if plan.angles:
        f.lines.append("call void @reduce_angles(ptr @scratch)")
    for n in range(len(plan.pieces)):
        f.lines.append(f"call void @piece{n}(ptr @scratch, ptr {out}, ptr {work}, ptr @idle)")
    if plan.dtype == "float32":
        f.lines.append("call void @keep(i32 %flushed)")
    lost = _lost(f, out, len(plan.columns))
    table = _pick(f, plan, out)
    parameters = ", ".join(f"ptr %x{k}" for k in range(len(plan.sizes) - 1))
    memory = (inputs + results + plan.workspace) * vectors.bytes
    return [
        # no rows of a tile before are to be written meanwhile
        f"@idle = internal constant [{len(tiles.CONTEXT)} x ptr] zeroinitializer",
        f"@scratch = internal global [{memory} x i8] zeroinitializer, align {vectors.bytes}",
        *f.text(f"i1 @run({parameters}, ptr %to) noinline", f"ret i1 {lost}"),
        *table,
    ]


def _lost(f: Function, out: str, count: int) -> str:
    """Whether any of so many results, in the tile, is not finite: then x - x is not a number."""
    truths, found = f.vectors.truths, "zeroinitializer"
    if count <= UNROLLED:
        for i in range(count):
            x = f.load(out, i)
            nothing = f.two("fsub", x, x)
            lost = f.value(f"fcmp uno {f.type} {nothing}, zeroinitializer")
            found = f.value(f"or {truths} {found}, {lost}")
    else:
        found = "%lost.next"
        f.lines += [
            "br label %check.before",
            "check.before:",
            "br label %check",
            "check:",
            "%checked = phi i64 [0, %check.before], [%checked.next, %check]",
            f"%lost = phi {truths} [zeroinitializer, %check.before], [%lost.next, %check]",
            f"%check.at = getelementptr i8, ptr {out}, i64 %checked",
            f"%check.x = load {f.type}, ptr %check.at, align {f.vectors.bytes}",
            f"%nothing = fsub {f.type} %check.x, %check.x",
            f"%lost.here = fcmp uno {f.type} %nothing, zeroinitializer",
            f"%lost.next = or {truths} %lost, %lost.here",
            f"%checked.next = add i64 %checked, {f.vectors.bytes}",
            f"%unchecked = icmp slt i64 %checked.next, {count * f.vectors.bytes}",
            "br i1 %unchecked, label %check, label %check.done",
            "check.done:",
        ]
    return f.value(f"extractelement {truths} {found}, i64 0")


def _pick(f: Function, plan: Plan, out: str) -> list[str]:
    """Lines that bring the result's row from one lane of the tile; the table that they look up."""
    scalar, size, count = f.vectors.scalar, f.vectors.precision.bytes, plan.sizes[-1]
    known = {i: f.vectors.literal(x) for i, x in enumerate(plan.constants, len(plan.columns))}

    def put(x: str, base: str, offset: int) -> None:
        at = f.bytes_on(base, offset)
        f.lines.append(f"store {scalar} {x}, ptr {at}, align {size}")

    if count <= UNROLLED:
        for i, column in enumerate(plan.index[:count]):
            at = f.bytes_on(out, column * f.vectors.bytes)
            x = known.get(column) or f.value(f"load {scalar}, ptr {at}, align {size}")
            put(x, "%to", i * size)
        return []
    for column, x in known.items():
        put(x, out, column * f.vectors.bytes)
    f.lines += [
        "br label %pick.before",
        "pick.before:",
        "br label %pick",
        "pick:",
        "%i = phi i64 [0, %pick.before], [%i.next, %pick]",
        "%entry = getelementptr i32, ptr @picked, i64 %i",
        "%offset = load i32, ptr %entry",
        f"%pick.at = getelementptr i8, ptr {out}, i32 %offset",
        f"%pick.x = load {scalar}, ptr %pick.at, align {size}",
        f"%pick.to = getelementptr {scalar}, ptr %to, i64 %i",
        f"store {scalar} %pick.x, ptr %pick.to, align {size}",
        "%i.next = add i64 %i, 1",
        f"%unpicked = icmp slt i64 %i.next, {count}",
        "br i1 %unpicked, label %pick, label %pick.done",
        "pick.done:",
    ]
    offsets = ", ".join(f"i32 {i * f.vectors.bytes}" for i in plan.index[:count])
    return [f"@picked = internal constant [{count} x i32] [{offsets}]"]


# ---- what Python calls ---------------------------------------------------------------------------


class _Call:
    """The lines of a function of Python's; values get fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def field(self, of: str, offset: int, kind: str = "ptr") -> str:
        """A number or pointer within an object."""
        at = self.value(f"getelementptr i8, ptr {of}, i64 {offset}")
        return self.value(f"load {kind}, ptr {at}")

    def context(self, name: str) -> str:
        """An address of NumPy's or Python's."""
        return self.field("@context", 8 * CONTEXT.index(name))

    def go_on(self, truths: Sequence[str], label: str) -> None:
        """Leave to ``self`` unless all of these hold."""
        all_ = "true"
        for truth in truths:
            all_ = self.value(f"and i1 {all_}, {truth}")
        self.lines += [f"br i1 {all_}, label %{label}, label %slow", f"{label}:"]

    def equal(self, x: str, y: int | str, kind: str = "i64") -> str:
        return self.value(f"icmp eq {kind} {x}, {y}")

    def check_arrays(
        self,
        found: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
        kind: int,
        flags: Sequence[int],
    ) -> None:
        """Check that these objects are arrays of this kind and of these shapes, without gaps."""
        ndarray = self.context("ndarray")
        self.go_on([self.equal(self.field(x, TYPE), ndarray, "ptr") for x in found], "arrays")
        truths = []
        for x, shape, wanted in zip(found, shapes, flags, strict=True):
            dtype = self.field(x, DTYPE)
            set_ = self.value(f"and i32 {self.field(x, FLAGS, 'i32')}, {wanted}")
            truths += [
                self.equal(self.field(x, AXES, "i32"), len(shape), "i32"),
                self.equal(set_, wanted, "i32"),
                self.equal(self.field(dtype, KIND, "i32"), kind, "i32"),
                self.equal(self.field(dtype, ORDER, "i8"), NATIVE, "i8"),
            ]
        self.go_on(truths, "plain")
        truths = []
        for x, shape in zip(found, shapes, strict=True):
            axes = self.field(x, SHAPE)
            truths += [self.equal(self.field(axes, 8 * i, "i64"), n) for i, n in enumerate(shape)]
        self.go_on(truths, "fitting")

    def run(self, arguments: Sequence[str], to: str) -> str:
        """Run the program into an array's data; whether something is lost."""
        data = ", ".join(f"ptr {self.field(x, DATA)}" for x in (*arguments, to))
        return self.value(f"call i1 @run({data})")

    def new(self, shape: str, axes: int, kind: int, data: str = "null") -> str:
        """A new array, or a writable one on these data."""
        flags = 0 if data == "null" else WRITABLE
        return self.value(
            f"call ptr {self.context('new')}(ptr {self.context('ndarray')}, i32 {axes}, "
            f"ptr {shape}, i32 {kind}, ptr null, ptr {data}, i32 0, i32 {flags}, ptr null)"
        )

    def unless_null(self, x: str, label: str) -> None:
        """Give up where Python has no memory left: it has raised already."""
        missing = self.equal(x, "null", "ptr")
        self.lines += [f"br i1 {missing}, label %raised, label %{label}", f"{label}:"]

    def text(self, name: str) -> list[str]:
        """The whole function."""
        return [
            f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count) {{",
            "entry:",
            *self.lines,
            "slow:",
            f"%call.slot = getelementptr i8, ptr @context, i64 {8 * CONTEXT.index('call')}",
            "%call = load ptr, ptr %call.slot",
            "%answer = call ptr %call(ptr %self, ptr %arguments, i64 %count, ptr null)",
            "ret ptr %answer",
            "raised:",
            "ret ptr null",
            "}",
        ]


def _one(plan: Plan, shapes: Sequence[tuple[int, ...]], kind: int) -> list[str]:
    """The result of the arguments, in new arrays."""
    c = _Call()
    inputs = [(n,) for n in plan.sizes[:-1]]
    c.go_on([c.equal("%count", len(inputs))], "enough")
    arguments = [c.field("%arguments", 8 * k) for k in range(len(inputs))]
    c.check_arrays(arguments, inputs, kind, [PLAIN] * len(inputs))
    several = len(shapes) > 1
    result = c.new("@row", 1, kind) if several else c.new("@shape0", len(shapes[0]), kind)
    c.unless_null(result, "made")
    lost = c.run(arguments, result)
    c.lines += [f"br i1 {lost}, label %lost, label %done", "lost:"]
    c.lines += [f"call void {c.context('forget')}(ptr {result})", "br label %slow", "done:"]
    if several:
        parts = _parts(c, plan, shapes, kind, result)
        c.lines.append(f"call void {c.context('forget')}(ptr {result})")  # its parts keep it
        result = parts
    c.lines.append(f"ret ptr {result}")
    return c.text("one")


def _onto(plan: Plan, shapes: Sequence[tuple[int, ...]], kind: int) -> list[str]:
    """The result in an array that lies across none of the arguments, which are in a tuple."""
    c, size = _Call(), plan.precision.bytes
    several = len(shapes) > 1
    given = [*((n,) for n in plan.sizes[:-1]), (plan.sizes[-1],) if several else shapes[0]]
    given_as, out = c.field("%arguments", 0), c.field("%arguments", 8)
    c.go_on([c.equal(c.field(given_as, LENGTH, "i64"), len(given) - 1)], "enough")
    first_at = c.value(f"ptrtoint ptr {c.context('items')} to i64")
    items = c.value(f"getelementptr i8, ptr {given_as}, i64 {first_at}")
    arguments = [c.field(items, 8 * k) for k in range(len(given) - 1)]
    flags = [*[PLAIN] * len(arguments), WRITABLE]
    c.check_arrays([*arguments, out], given, kind, flags)
    start = c.field(out, DATA)
    end = c.value(f"getelementptr i8, ptr {start}, i64 {plan.sizes[-1] * size}")
    apart = []
    for x, n in zip(arguments, plan.sizes[:-1], strict=True):
        first = c.field(x, DATA)
        last = c.value(f"getelementptr i8, ptr {first}, i64 {n * size}")
        before = c.value(f"icmp ule ptr {last}, {start}")
        after = c.value(f"icmp uge ptr {first}, {end}")
        apart.append(c.value(f"or i1 {before}, {after}"))
    c.go_on(apart, "apart")
    lost = c.run(arguments, out)
    c.go_on([c.equal(lost, "false", "i1")], "done")
    if several:
        c.lines.append(f"ret ptr {_parts(c, plan, shapes, kind, out)}")
    else:
        c.lines += [f"call void {c.context('keep')}(ptr {out})", f"ret ptr {out}"]
    return c.text("onto")


def _parts(c: _Call, plan: Plan, shapes: Sequence[tuple[int, ...]], kind: int, whole: str) -> str:
    """A tuple of arrays that share an array's numbers, one after the other."""
    parts, data, offset = [], c.field(whole, DATA), 0
    for r, shape in enumerate(shapes):
        at = c.value(f"getelementptr i8, ptr {data}, i64 {offset * plan.precision.bytes}")
        part = c.new(f"@shape{r}", len(shape), kind, at)
        c.unless_null(part, f"part{r}")
        c.lines.append(f"call void {c.context('keep')}(ptr {whole})")
        c.value(f"call i32 {c.context('own')}(ptr {part}, ptr {whole})")
        parts.append(part)
        offset += math.prod(shape)
    together = c.value(f"call ptr {c.context('tuple')}(i64 {len(parts)})")
    c.unless_null(together, "together")
    for r, part in enumerate(parts):
        c.value(f"call i32 {c.context('put')}(ptr {together}, i64 {r}, ptr {part})")
    return together
