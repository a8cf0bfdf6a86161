"""The inner loop of ufuncs whose programs are one piece of AVX-512 code, the same for all of them.

Loops of :mod:`~robomodel.kernels.llvm.emit` know how many numbers arguments have, and take a
compiler twenty times as long as a piece of a few hundred steps :mod:`robomodel.kernels.x86`. This
one reads the sizes from the ufunc's data, is compiled once, and moves one number at a time: for
programs that are run some thousand times.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from robomodel.kernels.llvm.assembly import Function, LaneVectors
from robomodel.kernels.plan import KernelPlan
from robomodel.kernels.x86.pieces import VECTOR

FACTS = ("arguments", "results", "stages", "columns", "first", "carried", "inputs", "distinct",
         "constants", "angles", "sizes.at", "index.at", "table.at", "constants.at",
         "angles.at")  # fmt: skip
"""The numbers of a plan, and addresses of others, in the order in which the loop reads them."""
STACK_BYTES = 1 << 16  # most of a kernel's memory on the stack, of which threads have little


@dataclass(frozen=True, eq=False)
class Facts:
    """A plan as the loop reads it: ``numbers``, in memory that ``alive`` owns."""

    numbers: ctypes.Array[ctypes.c_int64]
    alive: tuple[object, ...]

    @staticmethod
    def of(plan: KernelPlan) -> Facts:
        """A plan of one piece as the loop reads it."""
        iteration, results = plan.iteration, plan.sizes[-1]
        table = iteration.table if iteration else ((),)
        parts = (
            _integers(plan.sizes[:-1]),
            _integers(plan.index),
            _doubles([x for row in table for x in row]),
            _doubles(plan.constants),
            _integers(sorted(plan.angles)),
        )
        counts = (len(plan.sizes) - 1, results, len(table), len(table[0]), plan.sizes[0],
                  iteration.carried if iteration else 0, sum(plan.sizes[:-1]),
                  len(plan.columns), len(plan.constants), len(plan.angles))  # fmt: skip
        addresses = [ctypes.addressof(part) for part in parts]
        return Facts(_integers([*counts, *addresses]), parts)


def fits(plan: KernelPlan) -> bool:
    """True if the loop can run a plan."""
    carried = plan.iteration.carried + plan.iteration.columns if plan.iteration else 0
    numbers = sum(plan.sizes[:-1]) + carried + len(plan.columns) + len(plan.constants)
    timed = plan.iteration is not None and plan.iteration.timed
    small = numbers * VECTOR <= STACK_BYTES
    return len(plan.pieces) == 1 and small and not timed and plan.dtype == "float64"


def _integers(numbers: list[int] | tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


def _doubles(numbers: list[float] | tuple[float, ...]) -> ctypes.Array[ctypes.c_double]:
    return (ctypes.c_double * max(1, len(numbers)))(*numbers)


class _Loops(Function):
    """A function with counted loops."""

    def each(self, count: str, body: Callable[[str], None]) -> None:
        """Run ``body`` with the names of 0, 1, … below a count."""
        n = len(self.lines)
        self.lines += [
            f"br label %before{n}",
            f"before{n}:",
            f"br label %head{n}",
            f"head{n}:",
            f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %tail{n}]",
            f"%more{n} = icmp slt i64 %i{n}, {count}",
            f"br i1 %more{n}, label %body{n}, label %end{n}",
            f"body{n}:",
        ]
        body(f"%i{n}")
        self.lines += [
            f"br label %tail{n}",
            f"tail{n}:",
            f"%next{n} = add i64 %i{n}, 1",
            f"br label %head{n}",
            f"end{n}:",
        ]

    def when(self, truth: str, body: Callable[[], None]) -> None:
        """Run ``body`` if an i1 is true."""
        n = len(self.lines)
        self.lines += [f"br i1 {truth}, label %then{n}, label %after{n}", f"then{n}:"]
        body()
        self.lines += [f"br label %after{n}", f"after{n}:"]

    def whole(self, operation: str, a: str, b: str | int) -> str:
        """An operation on two integers."""
        return self.value(f"{operation} i64 {a}, {b}")

    def entry(self, kind: str, base: str, at: str | int) -> str:
        """An entry of an array."""
        place = self.value(f"getelementptr {kind}, ptr {base}, i64 {at}")
        return self.value(f"load {kind}, ptr {place}")

    def row(self, base: str, number: str) -> str:
        """The address of a vector of a tile."""
        return self.value(f"getelementptr {self.type}, ptr {base}, i64 {number}")


class _Driver(_Loops):
    """The loop over tiles: reads rows, runs the stages of a program, and writes rows."""

    def __init__(self, vectors: LaneVectors) -> None:
        super().__init__(vectors)
        self.lines += ["%status = alloca i32", "%ended = alloca i32",
                       "call void @llvm.x86.sse.stmxcsr(ptr %status)"]  # fmt: skip
        self.place = self.value("alloca i64")  # where the next argument begins in the tile
        self.states = self.entry("i64", "%dims", 0)
        plan = self.entry("ptr", "%options", 3)
        self.fact = {name: self.entry("ptr" if name.endswith(".at") else "i64", plan, k)
                     for k, name in enumerate(FACTS)}  # fmt: skip
        fact = self.fact
        self.total = self.whole("add", fact["inputs"], fact["carried"])
        sizes = (self.whole("add", self.total, fact["columns"]),
                 self.whole("add", fact["distinct"], fact["constants"]))  # fmt: skip
        self.tile, self.out = (
            self.value(f"alloca {self.type}, i64 {self.whole('add', size, 1)}, "
                       f"align {vectors.bytes}") for size in sizes
        )  # fmt: skip

    def vector(self, place: str) -> str:
        """A vector of a tile."""
        return self.value(f"load {self.type}, ptr {place}, align {self.vectors.bytes}")

    def put(self, x: str, place: str) -> None:
        """Store a vector in a tile."""
        self.lines.append(f"store {self.type} {x}, ptr {place}, align {self.vectors.bytes}")

    def spread(self, x: str, place: str) -> None:
        """Store a number in all lanes of a vector."""
        one = self.value(f"insertelement {self.type} poison, double {x}, i64 0")
        self.put(self.shuffle(one, "poison", [0] * self.vectors.lanes), place)

    def result(self, j: str) -> str:
        """The address of an output's vector."""
        return self.row(self.out, self.entry("i64", self.fact["index.at"], j))

    def write(self) -> None:
        """All of the loop."""
        fact = self.fact

        def constant(c: str) -> None:
            at = self.row(self.out, self.whole("add", fact["distinct"], c))
            self.spread(self.entry("double", fact["constants.at"], c), at)

        self.each(fact["constants"], constant)
        above = self.whole("add", self.states, self.vectors.lanes - 1)
        self.each(self.whole("sdiv", above, self.vectors.lanes), self.on_tile)

    def on_tile(self, number: str) -> None:
        """Read, run and write the states of a tile."""
        lanes = self.vectors.lanes
        begin = self.whole("mul", number, lanes)
        rest = self.whole("sub", self.states, begin)
        count = self.value(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {lanes})")
        self.lines.append(f"store i64 0, ptr {self.place}")
        self.each(self.fact["arguments"], lambda k: self.read(k, begin, count))

        def cleared(c: str) -> None:
            self.put(
                "zeroinitializer", self.row(self.tile, self.whole("add", self.fact["inputs"], c))
            )

        self.each(self.fact["carried"], cleared)
        self.each(self.fact["stages"], self.stage)
        self.written(begin, count)

    def read(self, k: str, begin: str, count: str) -> None:
        """Read an argument's rows; what is the same for all states stays in the tile.

        Argument 0 does not, as stages change it. The last row fills lanes without a state.
        """
        size, step = self.entry("i64", self.fact["sizes.at"], k), self.entry("i64", "%steps", k)
        behind = self.whole("add", self.whole("add", self.fact["arguments"], 1), k)
        inner, rows = self.entry("i64", "%steps", behind), self.entry("ptr", "%args", k)
        first = self.value(f"load i64, ptr {self.place}")
        self.lines.append(f"store i64 {self.whole('add', first, size)}, ptr {self.place}")
        last, needed = self.whole("sub", count, 1), "false"
        for truth in (f"ne i64 {step}, 0", f"eq i64 {begin}, 0", f"eq i64 {k}, 0"):
            needed = self.value(f"or i1 {needed}, {self.value(f'icmp {truth}')}")

        def on_lane(lane: str) -> None:
            mine = self.value(f"call i64 @llvm.smin.i64(i64 {lane}, i64 {last})")
            row = self.bytes_on(rows, self.whole("mul", self.whole("add", begin, mine), step))

            def number(j: str) -> None:
                at = self.bytes_on(row, self.whole("mul", j, inner))
                x = self.value(f"load double, ptr {at}")
                column = self.row(self.tile, self.whole("add", first, j))
                to = self.value(f"getelementptr double, ptr {column}, i64 {lane}")
                self.lines.append(f"store double {x}, ptr {to}")

            self.each(size, number)

        self.when(needed, lambda: self.each(str(self.vectors.lanes), on_lane))

    def stage(self, s: str) -> None:
        """Run the program; of several stages, its results are the next one's arguments."""
        fact, tile = self.fact, self.tile
        before = self.whole("mul", s, fact["columns"])

        def constant(c: str) -> None:
            x = self.entry("double", fact["table.at"], self.whole("add", before, c))
            self.spread(x, self.row(tile, self.whole("add", self.total, c)))

        def angle(a: str) -> None:
            column = self.row(tile, self.entry("i64", fact["angles.at"], a))
            x = self.vector(column)

            def reduced() -> None:
                self.put(self.value(f"call {self.type} @first_turn({self.type} {x})"), column)

            self.when(self.any_large([x]), reduced)

        self.each(fact["columns"], constant)
        self.each(fact["angles"], angle)
        self.lines.append(f"call void @piece0(ptr {tile}, ptr {self.out}, ptr null, ptr null)")

        def carried(c: str) -> None:
            at = self.result(self.whole("add", fact["results"], c))
            self.put(self.vector(at), self.row(tile, self.whole("add", fact["inputs"], c)))

        def advanced() -> None:
            self.each(
                fact["first"], lambda j: self.put(self.vector(self.result(j)), self.row(tile, j))
            )
            self.each(fact["carried"], carried)

        self.when(self.value(f"icmp sgt i64 {fact['stages']}, 1"), advanced)

    def written(self, begin: str, count: str) -> None:
        """Write the rows of results."""
        arguments = self.fact["arguments"]
        step, rows = self.entry("i64", "%steps", arguments), self.entry("ptr", "%args", arguments)
        behind = self.whole("add", self.whole("mul", arguments, 2), 1)
        inner = self.entry("i64", "%steps", behind)

        def on_lane(lane: str) -> None:
            row = self.bytes_on(rows, self.whole("mul", self.whole("add", begin, lane), step))

            def number(j: str) -> None:
                x = self.entry("double", self.result(j), lane)
                to = self.bytes_on(row, self.whole("mul", j, inner))
                self.lines.append(f"store double {x}, ptr {to}")

            self.each(self.fact["results"], number)

        self.each(count, on_lane)


def text(vectors: LaneVectors, turn: list[str], large: list[str], silence: list[str]) -> str:
    """The module; with functions of angles that pieces call, and lines that end the loop."""
    f = _Driver(vectors)
    f.write()
    quiet = f.entry("i64", "%options", 1)
    f.lines += [f"%quiet = icmp ne i64 {quiet}, 0", *silence]
    head, *loop = f.text("void @loop(ptr %args, ptr %dims, ptr %steps, ptr %options)")
    return "\n".join([
        *vectors.declarations(),
        "declare hidden void @piece0(ptr, ptr, ptr, ptr)",
        *large,
        *_first_turn(vectors),
        *(line.replace("define internal ", "define hidden ") for line in turn),
        head.replace("define internal ", "define "),
        *loop,
    ])  # fmt: skip


def _first_turn(vectors: LaneVectors) -> list[str]:
    """A function of angles that gives the same within the first turn."""
    f, result = Function(vectors), "poison"
    pair = f"{{{f.type}, {f.type}}}"
    both = f.value(f"call {pair} @sincos_large({f.type} %x)")
    s, c = (f.value(f"extractvalue {pair} {both}, {k}") for k in (0, 1))
    for lane in range(vectors.lanes):
        a, b = (f.value(f"extractelement {f.type} {x}, i64 {lane}") for x in (s, c))
        y = f.value(f"call double @atan2(double {a}, double {b})")
        result = f.value(f"insertelement {f.type} {result}, double {y}, i64 {lane}")
    return f.text(f"{f.type} @first_turn({f.type} %x) noinline cold", f"ret {f.type} {result}")
