"""An interpreter of PTX, for the instructions that kernels use: threads as rows of NumPy arrays.

Threads that wait for nobody run apart: the even ones of all blocks first, each as far as the next
barrier, then the odd ones, so that a barrier that is missing shows. A block's memory and a thread's
own begin as not-a-number, and so do registers. Instructions that are not known, addresses outside
of the arrays, and barriers at which threads of a block are missing raise errors.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
FLOATS = {32: np.float32, 64: np.float64}
SHARED, LOCAL = 1 << 20, 1 << 21  # where a block's memory and a thread's own begin


def kind(name: str) -> Any:
    """The type that a suffix means."""
    return {"f": FLOATS, "s": SIGNED}.get(name[0], UNSIGNED)[int(name[1:])]


def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once: by Dekker's exact product and Knuth's exact sum."""
    if a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64)
        return (wide + c.astype(np.float64)).astype(np.float32)
    (x, first), (y, second) = np.frexp(a), np.frexp(b)
    scale = first + second
    z = np.ldexp(c, -scale)
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    product = x * y
    rest = ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)
    exact = np.ldexp(total + (error + rest), scale)
    plain = a * b + c
    return np.where(np.isfinite(exact) & (product != 0.0), exact, plain)


def _halves(x: Any) -> tuple[Any, Any]:
    """Two numbers of 26 digits each."""
    large = 134217729.0 * x
    high = large - (large - x)
    return high, x - high


def wide(a: Any, b: Any) -> list[int]:
    """Exact products of integers."""
    return [int(x) * int(y) for x, y in zip(a, b, strict=True)]


def high(a: Any, b: Any) -> Any:
    """The upper half of the product."""
    bits = 8 * a.dtype.itemsize
    return np.array([x >> bits for x in wide(a, b)], a.dtype)


def shifted(a: Any, b: Any, left: bool) -> Any:
    """Beyond all digits there is nothing."""
    bits, count = 8 * a.dtype.itemsize, b.astype(np.uint64)
    by = np.minimum(count, np.uint64(bits - 1)).astype(a.dtype)
    moved = a << by if left else a >> by
    return np.where(count < bits, moved, a.dtype.type(0))


def divided(a: Any, b: Any) -> Any:
    """Integers, here those without a sign, are rounded down."""
    return a // b if a.dtype.kind == "u" else a / b


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "neg": lambda a: -a, "abs": np.abs,
    "mul": lambda a, b: a * b, "mul.lo": lambda a, b: a * b, "mul.hi": high, "fma": fma,
    "mad.lo": lambda a, b, c: a * b + c, "div": divided, "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1.0) / a, "min": np.minimum, "max": np.maximum,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "not": np.invert, "mov": lambda a: a, "shl": lambda a, b: shifted(a, b, True),
    "shr": lambda a, b: shifted(a, b, False),
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "neu": lambda a, b: ~(a == b), "ltu": lambda a, b: ~(a >= b), "gtu": lambda a, b: ~(a <= b),
}  # fmt: skip
"""Those that end in u are true of what is no number, too."""


@dataclass
class Function:
    """Instructions: (predicate, opcode's parts, operands); labels are numbers of instructions."""

    parameters: list[str]
    results: list[str]
    code: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)


class Module:
    """PTX, read."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, Function] = {}
        self.tables: dict[str, np.ndarray] = {}
        self.places: dict[str, int] = {}  # of variables in a block's memory, or a thread's own
        self.shared, self.local = 0, 0
        text = re.sub(r"//[^\n]*", "", text)
        for bits, name, count, numbers in re.findall(
            r"\.(?:global|const) (?:\.align \d+ )?\.[bu](\d+) (\w+)\[(\d+)\] = \{(.*?)\};", text
        ):
            entries = [int(x) for x in numbers.split(",")]  # zeros at the end are left out
            self.tables[name] = np.zeros(int(count), UNSIGNED[int(bits)])
            self.tables[name][: len(entries)] = entries
        for head, body in re.findall(
            r"((?:\.visible )?\.(?:entry|func)[^;{]*?\)\s*(?:\.\w+ [\d, ]+\s*)*)\{\n(.*?)\n\}",
            text,
            re.S,
        ):
            results, name, parameters = re.fullmatch(
                r"(?:\.visible )?\.(?:entry|func)\s*(\(.*?\))?\s*(\w+)\((.*?)\)[^()]*", head, re.S
            ).groups()
            self.functions[name] = self._function(results or "", parameters, body)

    def _function(self, results: str, parameters: str, body: str) -> Function:
        made = Function(*(re.findall(r"(\w+)(?:\[\d+\])?\s*(?=[,)]|$)", x.strip())
                          for x in (parameters, results)))  # fmt: skip
        body = re.sub(r"([,(]|targets|call\.uni)\s*\n\s*|\s*\n\s*(?=\))", r"\1 ", body)
        for line in re.split(r"[;\n]", body):
            text = line.strip()
            if text in ("", "{", "}") or text.startswith((".reg", ".param")):
                continue
            if text.startswith((".shared", ".local")):
                space, align, name, size = re.fullmatch(
                    r"\.(\w+) \.align (\d+) \.b8\s+(\w+)\[(\d+)\]", text
                ).groups()
                first = -(-getattr(self, space) // int(align)) * int(align)
                self.places[name] = first + {"shared": SHARED, "local": LOCAL}[space]
                setattr(self, space, first + int(size))
            elif branches := re.fullmatch(r"(\$\w+): \.branchtargets\s+(.*)", text):
                made.targets[branches[1]] = re.split(r",\s*", branches[2])
            elif label := re.fullmatch(r"(\$\w+):", text):
                made.labels[label[1]] = len(made.code)
            else:
                predicate, opcode, operands = re.fullmatch(
                    r"(?:@(!?%\w+)\s+)?([\w.]+)\s*(.*)", text
                ).groups()
                operands = re.findall(r"\{[^}]*\}|\([^)]*\)|\[[^]]*\]|[^,\s]+", operands)
                made.code.append((predicate or "", opcode.split("."), operands))
        made.code.append(("", ["ret"], []))
        return made


class Launch:
    """Blocks of threads that run an entry on these parameters, as their bits."""

    def __init__(
        self, text: str, entry: str, parameters: Sequence[int], blocks: int, size: int,
        arrays: Sequence[np.ndarray] = (),
    ) -> None:  # fmt: skip
        """``arrays``: all that may be read or written, if any are given."""
        self.module = Module(text)
        self.arrays = [*arrays, *self.module.tables.values()] if arrays else []
        self.shared = np.full((blocks, self.module.shared), 255, np.uint8)
        waiting = []
        for first in (0, 1):
            thread = np.arange(first, size, 2)
            block, lane = (x.ravel() for x in np.meshgrid(np.arange(blocks), thread))
            part = Part(self, block, lane)
            names = self.module.functions[entry].parameters
            given = dict(zip([f"{name}+0" for name in names], parameters, strict=True))
            bits = {name: np.full(block.size, x, np.uint64) for name, x in given.items()}
            waiting.append((part, part.run(entry, bits)))
        with np.errstate(all="ignore"):
            while waiting:
                at = {}
                for part, steps in list(waiting):
                    places = next(steps, None)  # of each thread: at which barrier, -1: ended
                    if places is None:
                        waiting.remove((part, steps))
                        places = np.full(part.block.size, -1)
                    for block in range(blocks):
                        at.setdefault(block, set()).update(places[part.block == block].tolist())
                assert all(len(x) == 1 for x in at.values()), "threads are missing at a barrier"


class Part:
    """Some of the threads, with their registers."""

    def __init__(self, launch: Launch, block: np.ndarray, lane: np.ndarray) -> None:
        self.launch, self.module = launch, launch.module
        self.block, self.lane = block, lane
        self.own = np.full((block.size, self.module.local), 255, np.uint8)
        self.carry = np.zeros(block.size, np.uint64)

    def run(self, name: str, values: dict[str, np.ndarray]) -> Generator[np.ndarray, None, None]:
        """A function of the entry's kind: stops at barriers."""
        everyone = np.arange(self.block.size)
        yield from self._run(self.module.functions[name], values, everyone)

    def _run(
        self, f: Function, registers: dict[str, np.ndarray], everyone: np.ndarray
    ) -> Generator[np.ndarray, None, None]:
        at = np.full(self.block.size, len(f.code))
        at[everyone] = 0
        paused = np.full(self.block.size, -1)
        while True:
            now = int(at.min())
            if now == len(f.code):
                if not (paused >= 0).any():
                    return
                yield paused.copy()
                at[paused >= 0] = paused[paused >= 0] + 1
                paused[:] = -1
                continue
            mine = np.flatnonzero(at == now)
            predicate, opcode, operands = f.code[now]
            at[mine] = now + 1
            if predicate:
                truth = registers[predicate.lstrip("!")][mine] != predicate.startswith("!")
                mine = mine[truth.astype(bool)]
            match opcode[0]:
                case "bra":
                    at[mine] = f.labels[operands[0]]
                case "brx":
                    places = np.array([f.labels[x] for x in f.targets[operands[1]]])
                    at[mine] = places[registers[operands[0]][mine]]
                case "ret":
                    at[mine] = len(f.code)
                case "bar":
                    paused[mine], at[mine] = now, len(f.code)
                case "call":
                    self._call(operands, registers, mine)
                case _:
                    self._compute(opcode, operands, registers, mine)

    def _call(self, operands: list[str], registers: dict[str, np.ndarray], mine: Any) -> None:
        lists = [re.findall(r"\w+", x) for x in operands if x.startswith("(")]
        (name,) = (x for x in operands if not x.startswith("("))
        f = self.module.functions[name]
        outputs, inputs = ([[], *lists] if len(lists) < 2 else lists)[-2:]
        values: dict[str, np.ndarray] = {}
        for own, theirs in zip(inputs, f.parameters, strict=True):
            values |= {theirs + x.removeprefix(own): registers[x] for x in registers
                       if x.partition("+")[0] == own}  # fmt: skip
        for _ in self._run(f, values, mine):
            raise AssertionError("a barrier in a function")
        for own, theirs in zip(outputs, f.results, strict=True):
            for x in values:
                if x.partition("+")[0] == theirs:
                    self._put(registers, own + x.removeprefix(theirs), values[x][mine], mine)

    def _put(self, registers: dict[str, np.ndarray], name: str, x: Any, mine: Any) -> None:
        if x.dtype != bool:
            x = np.ascontiguousarray(x).view(UNSIGNED[8 * x.dtype.itemsize])
            if name.startswith("%"):
                x = x.astype(
                    np.uint32 if name.startswith("%r") and name[2].isdigit() else np.uint64
                )
        if name not in registers or registers[name].dtype != x.dtype:
            registers[name] = np.full(self.block.size, -1).astype(x.dtype)
        registers[name][mine] = x

    def _get(self, name: str, type_: Any, registers: dict[str, np.ndarray], mine: Any) -> Any:
        bits = 8 * np.dtype(type_).itemsize
        unsigned = UNSIGNED[bits] if type_ is not np.bool_ else np.bool_
        if name in registers:
            x = registers[name][mine]
            return x.astype(unsigned).view(type_)
        special = {"%tid.x": self.lane, "%ctaid.x": self.block}
        if name in special:
            return special[name][mine].astype(type_)
        if name in self.module.tables:
            number = self.module.tables[name].ctypes.data
        elif name in self.module.places:
            number = self.module.places[name]
        elif name[:2] in ("0d", "0f"):
            number = int(name[2:], 16)
        else:
            number = int(name, 0)
        return np.full(mine.size, number & (2**bits - 1), np.uint64).astype(unsigned).view(type_)

    def _compute(
        self, opcode: list[str], operands: list[str], registers: dict[str, np.ndarray], mine: Any
    ) -> None:
        head, last = opcode[0], opcode[-1]
        if head in ("ld", "st"):
            self._move(opcode, operands, registers, mine)
            return
        goal, *names = operands
        if head == "setp":
            a, b = (self._get(x, kind(last), registers, mine) for x in names)
            self._put(registers, goal, COMPARISONS[opcode[1]](a, b), mine)
            return
        if head == "selp":
            truth = self._get(names[2], np.bool_, registers, mine)
            a, b = (self._get(x, kind(last), registers, mine) for x in names[:2])
            self._put(registers, goal, np.where(truth, a, b), mine)
            return
        if head == "cvt":
            x = self._get(names[0], kind(last), registers, mine)
            self._put(registers, goal, x.astype(kind(opcode[-2])), mine)
            return
        if head == "cvta":  # addresses are told apart by themselves
            self._put(registers, goal, self._get(names[0], np.uint64, registers, mine), mine)
            return
        given = [self._get(x, kind(last), registers, mine) for x in names]
        if head in ("shl", "shr"):
            given[1] = self._get(names[1], np.uint32, registers, mine)
        if "wide" in opcode:
            double = {np.uint32: np.uint64, np.int32: np.int64}[kind(last)]
            result = given[0].astype(double) * given[1].astype(double)
            if head == "mad":
                result += self._get(names[2], double, registers, mine)
        elif head == "addc" or "cc" in opcode:
            result = self._carried(head, opcode, given, mine)
        else:
            name = ".".join(opcode[:2]) if len(opcode) > 1 and opcode[1] in ("lo", "hi") else head
            result = OPERATIONS[name](*given)
        self._put(registers, goal, result, mine)

    def _carried(self, head: str, opcode: list[str], given: list[Any], mine: Any) -> Any:
        """A sum of parts of longer integers, with the carry of the part before."""
        a, b = (x.view(UNSIGNED[8 * x.dtype.itemsize]) for x in given)
        before = self.carry[mine].astype(a.dtype) if head == "addc" else np.zeros_like(a)
        result = a + b + before
        if "cc" in opcode:
            self.carry[mine] = (a + b < a) | (result < before)
        return result

    def _move(
        self, opcode: list[str], operands: list[str], registers: dict[str, np.ndarray], mine: Any
    ) -> None:
        """Between registers and memory."""
        head, space, type_ = opcode[0], opcode[1], kind(opcode[-1])
        place, names = operands if head == "st" else operands[::-1]
        base, offset = re.fullmatch(r"\[([^+\]]+)\+?(-?\d+)?\]", place).groups()
        size = np.dtype(type_).itemsize
        for i, name in enumerate(re.findall(r"[^{},\s]+", names)):
            further = int(offset or 0) + i * size
            if space == "param":
                at = f"{base}+{further}"
                source, goal = (at, name) if head == "ld" else (name, at)
                self._put(registers, goal, self._get(source, type_, registers, mine), mine)
                continue
            address = self._get(base, np.uint64, registers, mine).astype(np.int64) + further
            memory, index = self._memory(space, address, size, mine)
            if head == "ld":
                self._put(registers, name, memory[index].view(type_)[:, 0], mine)
            else:
                x = self._get(name, type_, registers, mine)
                memory[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1, size)

    def _memory(self, space: str, address: Any, size: int, mine: Any) -> tuple[Any, Any]:
        """Bytes, and which of them each thread means."""
        each = np.arange(size)
        if space in ("shared", "local"):
            memory = self.launch.shared if space == "shared" else self.own
            first = address - (SHARED if space == "shared" else LOCAL)
            assert ((first >= 0) & (first + size <= memory.shape[1])).all()
            row = self.block[mine] if space == "shared" else mine
            return memory, (row[:, None], first[:, None] + each)
        low = int(address.min(initial=1 << 62))
        inside = np.zeros(address.size, bool)
        for array in self.launch.arrays:
            begin = array.ctypes.data
            inside |= (address >= begin) & (address + size <= begin + array.nbytes)
        assert inside.all() or not self.launch.arrays, "an address beyond the arrays"
        if not address.size:
            return np.zeros(0, np.uint8), np.zeros((0, size), int)
        count = int(address.max()) - low + size
        memory = np.frombuffer((ctypes.c_uint8 * count).from_address(low), np.uint8)
        return memory, (address - low)[:, None] + each
