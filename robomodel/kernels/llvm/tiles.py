"""Conversion between rows of arrays and tiles, which have a state in each lane, a vector a number.

The functions here move ``lanes`` rows, ``stride`` bytes apart; ``last`` is the index of the last
one, which stands for missing rows. Arguments are transposed in registers, by halves of vectors,
which are joined as they are loaded. Results are looked up: their distinct numbers are columns of
the tile, and each entry of a row is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.kernels.llvm.assembly import Function, LaneVectors

MOVED = "ptr %rows, i64 %stride, i64 %last, ptr noalias %tile"

# numbers of an argument; more are moved in a loop, so many a turn: LLVM takes long for long blocks
LONG, AT_A_TIME = 64, 32


def pack(
    vectors: LaneVectors, name: str, count: int, used: Sequence[int], *, fetch: bool
) -> list[str]:
    """A function that moves rows of ``count`` numbers into a tile, of which only those ``used``.

    If there are ``many`` it may also prefetch those of the tile after the next.
    """
    f = Function(vectors)
    if fetch:
        f.lines += ["br i1 %many, label %fetch, label %move", "fetch:"]
        _prefetch(f, count)
        f.label("move")
    if used:
        if count < vectors.halves.lanes:
            _if_dense(f, count)
            wide = f"<{vectors.lanes * count} x {vectors.scalar}>"
            alignment = vectors.precision.bytes
            numbers = f.value(f"load {wide}, ptr %rows, align {alignment}")
            for i in used:
                lanes = [f"i32 {i + r * count}" for r in range(vectors.lanes)]
                mask = f"<{vectors.lanes} x i32> <{', '.join(lanes)}>"
                column = f"shufflevector {wide} {numbers}, {wide} poison, {mask}"
                f.store(f.value(column), "%tile", i)
            f.lines += ["ret void", "apart:"]
        if len(used) > LONG:
            _pack_in_turns(f, count)
        else:
            _pack_rows(f, _rows(f), "%tile", count, used)
    return f.text(f"void @{name}({MOVED}, i1 %many) noinline")


def _pack_in_turns(f: Function, count: int) -> None:
    """Move all numbers of long rows; the last turn repeats some of the one before."""
    f.label("begin")
    rows = _rows(f)
    f.label("turn")
    turn = f.value("phi i64 [0, %begin], [%next, %turn]")
    first = f.value(f"call i64 @llvm.smin.i64(i64 {turn}, i64 {count - AT_A_TIME})")
    along = f.value(f"mul i64 {first}, {f.vectors.precision.bytes}")
    down = f.value(f"mul i64 {first}, {f.vectors.bytes}")
    tile = f.bytes_on("%tile", down)
    _pack_rows(f, [f.bytes_on(row, along) for row in rows], tile, AT_A_TIME, range(AT_A_TIME))
    f.lines += [
        f"%next = add i64 {turn}, {AT_A_TIME}",
        f"%more = icmp slt i64 %next, {count}",
        "br i1 %more, label %turn, label %moved",
        "moved:",
    ]


def _pack_rows(
    f: Function, rows: Sequence[str], tile: str, count: int, used: Sequence[int]
) -> None:
    """Move those numbers of rows at these addresses that are used."""
    half, size = f.vectors.halves, f.vectors.precision.bytes
    if count <= half.lanes // 2:
        for i in used:
            column = "poison"
            for r, row in enumerate(rows):
                at = f.bytes_on(row, i * size)
                x = f.value(f"load {half.scalar}, ptr {at}, align {size}")
                column = f.value(f"insertelement {f.type} {column}, {half.scalar} {x}, i64 {r}")
            f.store(column, tile, i)
        return
    done: set[int] = set()
    for first in _blocks(half.lanes, count, used):
        parts = []
        for row in rows:
            at = f.bytes_on(row, first * size)
            if count < half.lanes:
                mask = half.mask([i < count for i in range(half.lanes)])
                name = f"@llvm.masked.load.{half.suffix}.p0"
                parts.append(
                    f.value(
                        f"call {half.type} {name}(ptr {at}, i32 {size}, {half.truths} {mask}, "
                        f"{half.type} poison)"
                    )
                )
            else:
                parts.append(f.half(at, size))
        joined = [f.joined(*pair) for pair in zip(parts, parts[half.lanes :], strict=False)]
        columns = f.transpose(joined)
        for i in used:
            if first <= i < first + half.lanes and i not in done:
                f.store(columns[i - first], tile, i)
                done.add(i)


def _blocks(size: int, count: int, used: Sequence[int]) -> list[int]:
    """Starts of blocks of ``size`` numbers that cover those used; they may overlap."""
    firsts: list[int] = []
    for i in used:
        if not firsts or i >= firsts[-1] + size:
            firsts.append(max(0, min(i, count - size)))
    return firsts


def _rows(f: Function) -> list[str]:
    """Addresses of the rows."""
    rows = ["%rows"]
    for r in range(1, f.vectors.lanes):
        beyond = f.value(f"icmp sgt i64 {r}, %last")
        step = f.value(f"select i1 {beyond}, i64 0, i64 %stride")
        rows.append(f.bytes_on(rows[-1], step))
    return rows


def _if_dense(f: Function, count: int) -> None:
    """Continue in the next line if all rows are present and contiguous, else at "apart"."""
    size, lanes = f.vectors.precision.bytes, f.vectors.lanes
    near = f.value(f"icmp eq i64 %stride, {size * count}")
    full = f.value(f"icmp eq i64 %last, {lanes - 1}")
    dense = f.value(f"and i1 {near}, {full}")
    f.lines += [f"br i1 {dense}, label %dense, label %apart", "dense:"]


def _prefetch(f: Function, count: int) -> None:
    """Prefetch the rows of the tile after the next into the second-level cache.

    Measured on Zen 4: one tile ahead, or into the first level, gained less. If caches hold all
    arguments it costs up to 5 % (Sapphire Rapids).
    """
    step = f.value(f"mul i64 %stride, {2 * f.vectors.lanes}")
    following = f.bytes_on("%rows", step)
    lines = range(0, f.vectors.bytes * count, 64)  # exact where rows follow without a gap

    def fetch(line: int | str) -> None:
        at = f.bytes_on(following, line)
        f.lines.append(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 2, i32 1)")

    if count <= LONG:
        for line in lines:
            fetch(line)
        return
    f.label("line")
    at = f.value("phi i64 [0, %fetch], [%further, %line]")
    fetch(at)
    f.lines += [
        f"%further = add i64 {at}, {lines.step}",
        f"%ahead = icmp slt i64 %further, {lines.stop}",
        "br i1 %ahead, label %line, label %move",
    ]


# ---- results -------------------------------------------------------------------------------------

CONTEXT = ("rows", "stride", "last", "tile", "ahead", "streamed", "from", "step", "outer",
           "columns", "inner")  # fmt: skip
"""Fields of the context of writing, eight bytes each: the rows to write (null: none yet), their
stride in bytes and the index of the last one; the tile; how far ahead lines are prefetched; whether
whole lines are written past the caches; and for staged rows, whose numbers are not contiguous,
their final address, the strides of states and of a matrix's rows, its columns and their stride."""

WRITES = "ptr %context, i64 %part"

LINES = 96  # cache lines that are written at a time


def streams(vectors: LaneVectors, count: int) -> bool:
    """True if rows of this many results can be written past the caches: in whole lines."""
    return vectors.turnable and count > vectors.lanes


def parts(vectors: LaneVectors, count: int) -> range:
    """The functions that together write rows of this many results."""
    lines = vectors.bytes * count // 64
    return range(1 if count < vectors.lanes else -(-lines // LINES))


def unpack(vectors: LaneVectors, index: Sequence[int], constants: int) -> list[str]:
    """Functions that write rows of results; ``index`` is the column of each entry.

    Columns from ``constants`` on have the same number in all lanes.

    Long rows are written by loops over blocks of entries, whose columns are in a table; a block of
    one constant is not transposed. With AVX-512 a block's rows are rotated to cache lines before
    they are stored: a store across two lines costs as much as two, and fetching both took most of
    the time. Results larger than the caches are written past them: a cache reads a line from memory
    before it is written.
    """
    count = len(index)
    if count < vectors.lanes:
        f = _writer(vectors)
        if count < vectors.halves.lanes:
            _if_dense(f, count)
            _unpack_dense(f, index)
            f.lines += ["ret void", "apart:"]
        _unpack_rows(f, index)
        f.label("written")
        return f.text(f"void @unpack0({WRITES}) noinline")
    turned = streams(vectors, count)
    firsts = list(range(0, count, vectors.lanes))
    if not turned:
        firsts[-1] = count - vectors.lanes
    padded = [*index, *[index[0]] * vectors.lanes]
    offsets = [i * vectors.bytes for a in firsts for i in padded[a : a + vectors.lanes]]
    entries = ", ".join(f"i32 {x}" for x in offsets)
    text = [f"@index = internal constant [{len(offsets)} x i32] [{entries}]"]
    columns = [{*padded[a : a + vectors.lanes]} for a in firsts]
    same = [len(each) == 1 and min(each) >= constants for each in columns]
    flags = ", ".join(f"i1 {int(x)}" for x in same)
    text.append(f"@same = internal constant [{len(same)} x i1] [{flags}]")
    each = parts(vectors, count)
    for part in dict.fromkeys((0, min(1, each[-1]), each[-1])):
        text += _part(vectors, part, len(each), count, same, turned=turned)
    return text


def writer(part: int, several: int) -> str:
    """The function that writes a part of the rows; those in between have one."""
    return f"unpack{part if part in (0, several - 1) else 1}"


def _part(
    vectors: LaneVectors, part: int, several: int, count: int, same: Sequence[bool], *, turned: bool
) -> list[str]:
    """The function that writes a part of long rows; a middle part is told which one."""
    f, half, blocks = _writer(vectors), vectors.halves.lanes, len(same)
    rows = _rows(f)
    numbered: range | tuple[str, str] = range(
        part * blocks // several, (part + 1) * blocks // several
    )
    if 0 < part < several - 1:
        parts = [f.value(f"add i64 %part, {k}") for k in (0, 1)]
        products = [f.value(f"mul i64 {x}, {blocks}") for x in parts]
        first, beyond = (f.value(f"udiv i64 {product}, {several}") for product in products)
        numbered = first, beyond
    for group in (0, 1):
        of_half = rows[group * half : (group + 1) * half]
        _Expansion(f, group, of_half, count, numbered, same).write(turned=turned)
        if group == 0:
            few = f.value(f"icmp slt i64 %last, {half}")
            f.lines += [f"br i1 {few}, label %written, label %more", "more:"]
    f.label("written")
    return f.text(f"void @unpack{part}({WRITES}) noinline")


def _writer(vectors: LaneVectors) -> Function:
    """The head of a function that writes rows, if there are any."""
    f = Function(vectors)
    for name in CONTEXT[:6]:
        kind = "ptr" if name in ("rows", "tile") else "i64"
        at = f.bytes_on("%context", 8 * CONTEXT.index(name))
        f.lines.append(f"%{name} = load {kind}, ptr {at}")
    none = f.value("icmp eq ptr %rows, null")
    f.lines += [f"br i1 {none}, label %written, label %some", "some:"]
    return f


def _unpack_dense(f: Function, index: Sequence[int]) -> None:
    """Write short rows without gaps as whole vectors."""
    lanes, count, scalar = f.vectors.lanes, len(index), f.vectors.scalar
    size = lanes * count
    wide, result = f"<{size} x {scalar}>", "poison"

    def mask(places: Sequence[int]) -> str:
        return f"<{size} x i32> <" + ", ".join(
            "i32 poison" if place < 0 else f"i32 {place}" for place in places
        ) + ">"  # fmt: skip

    for n, at in enumerate(index):
        column = f.load("%tile", at)
        lane_of = [i - n * lanes if 0 <= i - n * lanes < lanes else -1 for i in range(size)]
        spread = f.value(f"shufflevector {f.type} {column}, {f.type} poison, {mask(lane_of)}")
        both = [i if lane < 0 else size + i for i, lane in enumerate(lane_of)]
        result = f.value(f"shufflevector {wide} {result}, {wide} {spread}, {mask(both)}")
    dealt = [i % count * lanes + i // count for i in range(size)]
    rows = f.value(f"shufflevector {wide} {result}, {wide} poison, {mask(dealt)}")
    f.lines.append(f"store {wide} {rows}, ptr %rows, align {f.vectors.precision.bytes}")


def _unpack_rows(f: Function, index: Sequence[int]) -> None:
    """Write rows shorter than a vector, by halves of vectors."""
    rows, half, size, count = _rows(f), f.vectors.halves, f.vectors.precision.bytes, len(index)
    if count <= half.lanes // 2:
        for i, at in enumerate(index):
            column = f.load("%tile", at)
            for r, row in enumerate(rows):
                place = f.bytes_on(row, i * size)
                x = f.value(f"extractelement {f.type} {column}, i64 {r}")
                f.lines.append(f"store {half.scalar} {x}, ptr {place}, align {size}")
        return
    for first in _blocks(half.lanes, count, range(count)):
        columns = [f.load("%tile", i) for i in index[first : first + half.lanes]]
        columns = f.transpose(columns + ["poison"] * (half.lanes - len(columns)))
        for r, row in enumerate(rows):
            part = range(r // half.lanes * half.lanes, (r // half.lanes + 1) * half.lanes)
            x = f.shuffle(columns[r % half.lanes], "poison", part)
            place = f.bytes_on(row, first * size)
            if count < half.lanes:
                mask = half.mask([i < count for i in range(half.lanes)])
                name = f"@llvm.masked.store.{half.suffix}.p0"
                where = f"ptr {place}, i32 {size}, {half.truths} {mask}"
                f.lines.append(f"call void {name}({half.type} {x}, {where})")
            else:
                f.lines.append(f"store {half.type} {x}, ptr {place}, align {size}")


class _Expansion:
    """Writes half of a tile's rows of ``count`` entries, of their blocks those ``numbered``.

    Names of two values are a range of blocks in between: it has neither the first nor the last one.
    """

    def __init__(
        self,
        f: Function,
        group: int,
        rows: Sequence[str],
        count: int,
        numbered: range | tuple[str, str],
        same: Sequence[bool],
    ) -> None:
        self.f = f
        self.group = group
        self.rows = rows
        self.count = count
        self.known = numbered if isinstance(numbered, range) else range(0)
        self.told = None if isinstance(numbered, range) else numbered
        self.same = same
        self.last = -(-count // f.vectors.lanes) - 1

    def write(self, *, turned: bool) -> None:
        """Write all blocks."""
        if turned:
            self._turned()
        else:
            self._plain()

    def _block(self, number: int | str) -> list[str]:
        """The rows of a block of entries."""
        if isinstance(number, int):
            return self._constant(number) if self.same[number] else self._transposed(number)
        if not any(self.same):
            return self._transposed(number)
        f, at = self.f, len(self.f.lines)
        same = f.value(f"load i1, ptr {f.value(f'getelementptr i1, ptr @same, i64 {number}')}")
        f.lines += [f"br i1 {same}, label %same{at}, label %differing{at}", f"same{at}:"]
        constant = self._constant(number)
        f.lines += [f"br label %either{at}", f"differing{at}:"]
        rows = self._transposed(number)
        f.label(f"either{at}")
        return [
            f.value(f"phi {f.type} [{x}, %same{at}], [{y}, %differing{at}]")
            for x, y in zip(constant, rows, strict=True)
        ]

    def _constant(self, number: int | str) -> list[str]:
        """The rows of a block of one constant: its column."""
        f = self.f
        first = f.value(f"getelementptr [{f.vectors.lanes} x i32], ptr @index, i64 {number}")
        offset = f.value(f"zext i32 {f.value(f'load i32, ptr {first}')} to i64")
        column = f.value(f"load {f.type}, ptr {f.bytes_on('%tile', offset)}")
        return [column] * f.vectors.halves.lanes

    def _transposed(self, number: int | str) -> list[str]:
        """The rows of a block from its columns."""
        f, v = self.f, self.f.vectors
        first = f.value(f"getelementptr [{v.lanes} x i32], ptr @index, i64 {number}")
        parts = []
        for i in range(v.lanes):
            at = f.value(f"getelementptr i32, ptr {first}, i64 {i}")
            offset = f.value(f"zext i32 {f.value(f'load i32, ptr {at}')} to i64")
            column = f.bytes_on("%tile", offset)
            half = f.bytes_on(column, self.group * v.halves.bytes)
            parts.append(f.half(half, v.halves.bytes))
        pairs = zip(parts, parts[v.halves.lanes :], strict=False)
        return f.transpose([f.joined(*pair) for pair in pairs])

    def _loop(
        self, blocks: range | tuple[str, str], carried: Sequence[str]
    ) -> tuple[str, list[str]]:
        """Begin a loop over blocks; returns its counter, and the carried values."""
        f, g = self.f, self.group
        start, stop = (blocks.start, blocks.stop) if isinstance(blocks, range) else blocks
        f.label(f"before{g}")
        f.label(f"block{g}")
        counter = f.value(f"phi i64 [{start}, %before{g}], [%next{g}, %end{g}]")
        names = [
            f.value(f"phi {f.type} [{x}, %before{g}], [%carried{g}.{i}, %end{g}]")
            for i, x in enumerate(carried)
        ]
        f.lines += [
            f"%next{g} = add i64 {counter}, 1",
            f"%more{g} = icmp slt i64 %next{g}, {stop}",
        ]
        return counter, names

    def _end(self) -> None:
        g = self.group
        self.f.label(f"end{g}")
        self.f.lines += [f"br i1 %more{g}, label %block{g}, label %after{g}", f"after{g}:"]

    def _plain(self) -> None:
        """Write to rows at any address; the last block may overlap the one before."""
        f, v = self.f, self.f.vectors
        whole = self.told or range(self.known.start, min(self.known.stop, self.last))

        def store(parts: Sequence[str], offset: int | str) -> None:
            for row, part in zip(self.rows, parts, strict=True):
                at = f.bytes_on(row, offset)
                f.lines.append(f"store {f.type} {part}, ptr {at}, align {v.precision.bytes}")

        if whole:
            block, _ = self._loop(whole, ())
            store(self._block(block), f.value(f"mul i64 {block}, {v.bytes}"))
            self._end()
        if self.last in self.known:
            store(self._block(self.last), (self.count - v.lanes) * v.precision.bytes)

    def _turned(self) -> None:
        """Write rows that begin ``shift`` numbers after a line; stores at both ends are partial."""
        f, v, bits = self.f, self.f.vectors, self.f.vectors.precision.bits
        lanes = f"<{v.lanes} x i{bits}> <" + ", ".join(f"i{bits} {i}" for i in range(v.lanes)) + ">"
        lines, shifts, picks = [], [], []
        for row in self.rows:
            address = f.value(f"ptrtoint ptr {row} to i64")
            number = f.value(f"lshr i64 {address}, {v.precision.bytes.bit_length() - 1}")
            shift = f.value(f"and i64 {number}, {v.lanes - 1}")
            lines.append(f.value(f"call ptr @llvm.ptrmask.p0.i64(ptr {row}, i64 {-v.bytes})"))
            shift = f.value(f"trunc i64 {shift} to i32") if bits == 32 else shift
            one = f.value(f"insertelement {v.integers} poison, i{bits} {shift}, i64 0")
            zeros = f"<{v.lanes} x i32> zeroinitializer"
            everywhere = f"shufflevector {v.integers} {one}, {v.integers} poison, {zeros}"
            shifts.append(f.value(everywhere))
            back = f.value(f"sub {lanes}, {shifts[-1]}")
            picks.append(f.value(f"add {v.integers} {back}, {v.integer(v.lanes)}"))

        def turn(before: str, pick: str, after: str) -> str:
            operands = f"{v.type} {before}, {v.integers} {pick}, {v.type} {after}"
            return f.value(f"call {v.type} {v.picking}({operands})")

        def masked(x: str, line: str, offset: int, mask: str) -> None:
            at = f.bytes_on(line, offset)
            name = f"@llvm.masked.store.{v.suffix}.p0"
            f.lines.append(f"call void {name}({v.type} {x}, ptr {at}, i32 {v.bytes}, {mask})")

        before = (
            f.value(f"sub i64 {self.told[0]}, 1") if self.told else max(0, self.known.start - 1)
        )
        begun, last = self._block(before), self.last
        if 0 in self.known:
            for line, shift, pick, x in zip(lines, shifts, picks, begun, strict=True):
                mask = f.value(f"icmp uge {lanes}, {shift}")
                masked(turn(x, pick, x), line, 0, f"{v.truths} {mask}")
        whole = self.told or range(max(1, self.known.start), min(self.known.stop, last))
        if whole:
            block, kept = self._loop(whole, begun)
            offset = f.value(f"mul i64 {block}, {v.bytes}")
            after = self._block(block)
            whole_lines = [
                (turn(x, pick, y), f.bytes_on(line, offset))
                for line, pick, x, y in zip(lines, picks, kept, after, strict=True)
            ]
            self._store(whole_lines)
            for i, y in enumerate(after):
                f.lines.append(f"%carried{self.group}.{i} = bitcast {v.type} {y} to {v.type}")
            self._end()
            begun = after
        if last not in self.known:
            return
        ended = self._block(last)
        remainder = v.integer(self.count - last * v.lanes)
        for line, shift, pick, x, y in zip(lines, shifts, picks, begun, ended, strict=True):
            end = f.value(f"add {v.integers} {shift}, {remainder}")
            mask = f.value(f"icmp ult {lanes}, {end}")
            masked(turn(x, pick, y), line, last * v.bytes, f"{v.truths} {mask}")
            over = f.value(f"sub {v.integers} {end}, {v.integer(v.lanes)}")
            mask = f.value(f"icmp slt {lanes}, {over}")
            masked(turn(y, pick, y), line, (last + 1) * v.bytes, f"{v.truths} {mask}")

    def _store(self, lines: Sequence[tuple[str, str]]) -> None:
        """Store whole lines, past the caches or with a prefetch of those that follow."""
        f, g, v = self.f, self.group, self.f.vectors
        past = f.value("icmp ne i64 %streamed, 0")
        f.lines += [f"br i1 {past}, label %past{g}, label %cached{g}", f"past{g}:"]
        for x, at in lines:
            f.lines.append(f"store {v.type} {x}, ptr {at}, align {v.bytes}, !nontemporal !0")
        f.lines += [f"br label %stored{g}", f"cached{g}:"]
        for x, at in lines:
            further = f.bytes_on(at, "%ahead")
            f.lines.append(f"call void @llvm.prefetch.p0(ptr {further}, i32 0, i32 2, i32 1)")
            f.lines.append(f"store {v.type} {x}, ptr {at}, align {v.bytes}")
        f.label(f"stored{g}")


# ---- rows that are not contiguous ----------------------------------------------------------------


def settle(vectors: LaneVectors, count: int) -> list[str]:
    """A function that copies staged rows of results to their final address."""
    f, fields = Function(vectors), []
    for name in ("from", "step", "outer", "columns", "inner", "last", "rows"):
        kind = "ptr" if name in ("from", "rows") else "i64"
        at = f.bytes_on("%context", 8 * CONTEXT.index(name))
        fields.append(f.value(f"load {kind}, ptr {at}"))
    target, step, outer, columns, inner, last, rows = fields
    none = f.value(f"icmp eq ptr {target}, null")
    several = f.value(f"add i64 {last}, 1")
    f.lines += [f"br i1 {none}, label %settled, label %staged", "staged:"]
    f.label("line")
    entry = f.value("phi i64 [0, %staged], [%following, %line]")
    line = f.value(f"phi ptr [{target}, %staged], [%beyond, %line]")
    dense = f.value(f"getelementptr {vectors.scalar}, ptr {rows}, i64 {entry}")
    size = vectors.precision.bytes
    near, far = (f"i64 {count * size}, i64 {size}", f"i64 {step}, i64 {inner}")
    f.lines += [
        f"call void @move(ptr {dense}, {near}, ptr {line}, {far}, i64 {columns}, i64 {several})",
        f"%following = add i64 {entry}, {columns}",
        f"%beyond = getelementptr i8, ptr {line}, i64 {outer}",
        f"%lines = icmp slt i64 %following, {count}",
        "br i1 %lines, label %line, label %settled",
        "settled:",
    ]
    return f.text("void @settle(ptr %context) noinline")


def stage(vectors: LaneVectors) -> str:
    """A function that copies rows of numbers with any strides, as from or to a dense buffer."""
    scalar, size = vectors.scalar, vectors.precision.bytes
    return f"""
define internal void @move(ptr %from, i64 %stride, i64 %step, ptr %to, i64 %row.size, i64 %next,
                           i64 %size, i64 %count) noinline {{
entry:
br label %row
row:
%r = phi i64 [0, %entry], [%r.next, %row.done]
%offset = mul i64 %r, %stride
%start = getelementptr i8, ptr %from, i64 %offset
%position = mul i64 %r, %row.size
%place = getelementptr i8, ptr %to, i64 %position
br label %number
number:
%i = phi i64 [0, %row], [%i.next, %number]
%along = mul i64 %i, %step
%source = getelementptr i8, ptr %start, i64 %along
%across = mul i64 %i, %next
%target = getelementptr i8, ptr %place, i64 %across
%x = load {scalar}, ptr %source, align {size}
store {scalar} %x, ptr %target, align {size}
%i.next = add i64 %i, 1
%i.more = icmp slt i64 %i.next, %size
br i1 %i.more, label %number, label %row.done
row.done:
%r.next = add i64 %r, 1
%r.more = icmp slt i64 %r.next, %count
br i1 %r.more, label %row, label %exit
exit:
ret void
}}
"""
