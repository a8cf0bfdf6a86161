"""Pieces of a program as AVX-512 code: each step an instruction, values in 32 registers.

A compiler works for eighty microseconds on an instruction of a straight line, which needs no more
than a register for each value. Steps stay in their order. Numbers of tiles and constants are
operands in memory where an instruction can have one, and are loaded if they are used again soon.
If registers run out, the value goes that is used last (Belady); it is stored only if it is nowhere
in memory. Operations are those of LLVM's code, one by one, so results are the same to the bit.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from robomodel.kernels.plan import KernelPlan, Target, write
from robomodel.kernels.plan import Memory as Tile
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
    Operation,
    Reference,
)
from robomodel.kernels.x86 import encoding as x86
from robomodel.kernels.x86.encoding import Assembler, Code, Memory, Operand, Pooled

VECTOR = 512 // 8  # bytes of a vector
SOON = 40  # operations within which a number in memory that is used again is loaded
TURN = "turn"  # a function of angles in zmm0 that leaves sines in zmm0, cosines in zmm1

XOR, WHOLE, SHIFT, FLIP, ODD = "xor", "whole", "shift", "flip", "odd"
"""Operations on bits: WHOLE adds integers, SHIFT moves the second lowest bit to the sign, FLIP a k
changes a's sign if k has one, and ODD k a b is a where the lowest bit of k is set, else b."""
STORE, CALL, TURNED = "store", "call", "turned"
"""Copies a value to memory, calls a function on the context, calls :data:`TURN`."""

SIGN_OF_FIRST = b"\x6c"  # of bits a, b, c: a & c ^ b
LOAD, BROADCAST, BLEND = "load", "broadcast", "blend"
PRODUCTS = frozenset((FMA, FMS, FNMA))
COMMUTING = frozenset((ADD, MUL, XOR, WHOLE))

_CALLS = {x86.RDI: x86.RBX, x86.RSI: x86.R13, x86.RDX: x86.R14}  # what calls leave as it is
_ENTER = bytes.fromhex("55 4889e5")  # push rbp; mov rbp, rsp
_KEEP = bytes.fromhex("53 4155 4156 4157 4889fb 4989f5 4989d6 4989cf")  # the tiles in _CALLS
_ALIGN = bytes.fromhex("4883e4c0 4881ec")  # and rsp, -64; sub rsp, ...
_CONTEXT = bytes.fromhex("4c89ff")  # mov rdi, r15
_NUMBER = bytes.fromhex("be")  # mov esi, ...
_CLEAN = bytes.fromhex("c5f877")  # vzeroupper, for code that follows
_RESTORE = bytes.fromhex("488d65e0 415f 415e 415d 5b")
_BACK = bytes.fromhex("4889ec")
_LEAVE = bytes.fromhex("5d c3")


def assembled(
    plan: KernelPlan, calls: Mapping[int, Sequence[tuple[str, int]]], numbers: Sequence[int]
) -> bytes:
    """An object file with the plan's pieces of these numbers, as functions ``piece0`` and so on.

    Their arguments are the input tile, the output tile, the workspace and the context; ``calls``
    are functions that pieces call before a step, with the context and an integer.
    """
    assembler = Assembler(plan.precision.bits)
    for number in numbers:
        steps = _Steps(plan, assembler, calls)
        write(plan, number, steps, steps.before)
        _Piece(assembler, steps).write(f"piece{number}")
    return assembler.finished()


class _Steps(Target):
    """Operations on numbered values, some of which are in memory from the beginning."""

    def __init__(
        self, plan: KernelPlan, assembler: Assembler, calls: Mapping[int, Sequence[tuple[str, int]]]
    ) -> None:
        self.operations: list[tuple[str, int, tuple[int, ...], Any]] = []
        self.homes: list[Memory | Pooled | None] = []
        self._angles = plan.angles
        self._precision = plan.precision
        self._assembler = assembler
        self._calls = calls
        self._constants: dict[Pooled, str] = {}
        self._turns: dict[Reference, tuple[str, str]] = {}

    def _value(self, home: Memory | Pooled | None) -> int:
        self.homes.append(home)
        return len(self.homes) - 1

    def _record(self, operation: str, *names: str) -> str:
        value = self._value(None)
        self.operations.append((operation, value, tuple(map(int, names)), None))
        return str(value)

    def before(self, number: int) -> None:
        """Call what is called before a step, with the context and an integer."""
        self.operations += [(CALL, -1, (), each) for each in self._calls.get(number, ())]

    def constant(self, x: float) -> str:
        place = self._assembler.constant(x)
        if place not in self._constants:
            self._constants[place] = str(self._value(place))
        return self._constants[place]

    def _integer(self, x: int) -> str:
        return str(self._value(self._assembler.integer(x)))

    def load(self, memory: Tile, at: int) -> str:
        return str(self._value(_place(memory, at)))

    def store(self, x: str, memory: Tile, at: int) -> None:
        self.operations.append((STORE, -1, (int(x),), _place(memory, at)))

    def compute(self, number: int, step: Operation, names: list[str]) -> str:
        operation = step.operation
        if operation in (SIN, COS):
            (angle,) = step.operands
            return self._turn(angle, *names)[operation == COS]
        if operation == NEG:
            return self._record(XOR, *names, self._integer(1 << self._precision.bits - 1))
        return self._record(operation, *names)

    def _turn(self, angle: Reference, x: str) -> tuple[str, str]:
        """Names of an angle's sine and cosine; inputs are in the first turns."""
        if angle not in self._turns:
            if angle in self._angles:
                self._turns[angle] = self._sine_and_cosine(x)
            else:
                sine, cosine = self._value(None), self._value(None)
                self.operations.append((TURNED, sine, (int(x),), cosine))
                self._turns[angle] = str(sine), str(cosine)
        return self._turns[angle]

    def _sine_and_cosine(self, x: str) -> tuple[str, str]:
        """The operations of :meth:`robomodel.kernels.llvm.assembly.Function.sincos`."""
        p, two, constant = self._precision, self._record, self.constant
        rounder = constant(p.rounder)
        quadrant = two(FMA, x, constant(0.6366197723675814), rounder)
        k, r = two(SUB, quadrant, rounder), x
        for part in p.half_pi:
            r = two(FMA, k, constant(-part), r)
        z = two(MUL, r, r)
        s = two(FMA, two(MUL, r, z), self._polynomial(p.sine, z), r)
        flat = two(FMA, z, constant(-0.5), constant(1.0))
        c = two(FMA, two(MUL, z, z), self._polynomial(p.cosine, z), flat)
        after = two(WHOLE, quadrant, self._integer(1))
        sine, cosine = two(ODD, quadrant, c, s), two(ODD, quadrant, s, c)
        return self._signed(sine, quadrant), self._signed(cosine, after)

    def _polynomial(self, coefficients: Sequence[float], z: str) -> str:
        result = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self._record(FMA, result, z, self.constant(c))
        return result

    def _signed(self, x: str, quadrant: str) -> str:
        """The value with its sign flipped where bit 1 of the quadrant is set."""
        return self._record(FLIP, x, self._record(SHIFT, quadrant))


def _place(memory: Tile, at: int) -> Memory:
    base = {"input": x86.RDI, "result": x86.RSI, "work": x86.RDX}[memory]
    return Memory(base, at * VECTOR)


class _Piece:
    """Writes the operations of a piece as a function, with a register for each value."""

    def __init__(self, assembler: Assembler, steps: _Steps) -> None:
        self._to = assembler
        self._operations, self._homes = steps.operations, steps.homes
        self._calls = any(operation in (CALL, TURNED) for operation, *_ in self._operations)
        if self._calls:
            self._homes = [
                _kept(home) if isinstance(home, Memory) else home for home in self._homes
            ]
        self._free = list(x86.REGISTERS)
        self._registers: dict[int, int] = {}  # of values that are in one
        self._uses: list[list[int]] = [[] for _ in self._homes]  # the next one is the last
        for i in reversed(range(len(self._operations))):
            for x in self._operations[i][2]:
                self._uses[x].append(i)
        self._spilled = 0
        self._zero = assembler.constant(0.0)
        self._one = assembler.integer(1)
        self._codes, self._forms = _codes(assembler.bits), _forms(assembler.bits)
        self._top = assembler.integer(1 << assembler.bits - 1)
        self._masked = -1  # the value whose lowest bits are in the mask
        self._at = 0

    def write(self, name: str) -> None:
        """Write the function."""
        to = self._to
        to.begin(name)
        to.content += _ENTER + (_KEEP if self._calls else b"") + _ALIGN
        frame = len(to.content)
        to.content += bytes(4)
        for at, (operation, result, operands, more) in enumerate(self._operations):
            self._at = at
            for x in operands:
                self._uses[x].pop()
            if operation in PRODUCTS:
                self._product(operation, result, operands)
            elif operation == STORE:
                self._copy(operands[0], more)
            elif operation == CALL:
                self._call(*more)
            elif operation == TURNED:
                self._turned(operands[0], result, more)
            elif operation == FLIP:
                self._flip(result, *operands)
            elif operation in (SELECT, ODD):
                self._choice(operation, result, operands)
            else:
                self._simple(operation, result, operands)
        struct.pack_into("<i", to.content, frame, self._spilled * VECTOR)
        to.content += _CLEAN + (_RESTORE if self._calls else _BACK) + _LEAVE

    # ---- registers

    def _register(self, x: int, operands: Sequence[int]) -> int:
        """The register of a value, which is loaded if it is in none."""
        register = self._registers.get(x)
        if register is None:
            register = self._load(x, self._taken(operands))
            self._registers[x] = register
        return register

    def _load(self, x: int, register: int) -> int:
        """Load a value from memory into a register."""
        home = self._homes[x]
        assert home is not None
        self._move(register, home)
        return register

    def _move(self, register: int, source: Operand) -> None:
        code = self._codes[BROADCAST if type(source) is Pooled else LOAD]
        self._to.vector(code, register, 0, source)

    def _taken(self, operands: Sequence[int]) -> int:
        """A register that is free, or becomes free of a value that is none of these operands."""
        if self._free:
            return self._free.pop()
        uses, last, victim = self._uses, -1, -1
        for x in self._registers:
            if x not in operands and uses[x][-1] > last:
                last, victim = uses[x][-1], x
        return self._out(victim)

    def _out(self, x: int) -> int:
        """Take a value's register; it is stored if it is nowhere else."""
        register = self._registers.pop(x)
        if self._homes[x] is None:
            home = self._homes[x] = Memory(x86.RSP, self._spilled * VECTOR)
            self._spilled += 1
            self._to.vector(self._codes[STORE], register, 0, home)
        return register

    def _anywhere(self, x: int, operands: Sequence[int]) -> Operand:
        """A value in its register or in memory; it is loaded if it is used again soon."""
        if x not in self._registers:
            home = self._homes[x]
            assert home is not None
            if not self._uses[x] or self._uses[x][-1] > self._at + SOON:
                return home
        return self._register(x, operands)

    def _release(self, operands: Sequence[int]) -> None:
        """Free the registers of operands that are used no more."""
        for x in operands:
            if not self._uses[x] and x in self._registers:
                self._free.append(self._registers.pop(x))

    def _result(self, x: int, operands: Sequence[int]) -> int:
        """A register for a result; those of operands that are used no more are free for it."""
        self._release(operands)
        register = self._taken(operands)
        self._keep(x, register)
        return register

    def _keep(self, x: int, register: int) -> None:
        """A value is in this register, if it is used."""
        if self._uses[x]:
            self._registers[x] = register
        else:
            self._free.append(register)

    # ---- operations

    def _simple(self, operation: str, result: int, operands: tuple[int, ...]) -> None:
        """One or two operands, of which the last may be in memory."""
        code, registers = self._codes[operation], self._registers
        if len(operands) == 1:
            third = self._anywhere(operands[0], operands)
            register = self._result(result, operands)
            if operation == SHIFT:
                up = bytes((self._to.bits - 2,))
                self._to.vector(code, x86.SHIFT_LEFT, register, third, after=up)
            else:
                self._to.vector(code, register, 0, third)
            return
        a, b = operands
        turned = b in registers or type(self._homes[a]) is Pooled
        if turned and operation in COMMUTING and a not in registers:
            a, b = b, a
        second = self._register(a, operands)
        third = self._anywhere(b, operands)
        self._to.vector(code, self._result(result, operands), second, third)

    def _product(self, operation: str, result: int, operands: tuple[int, ...]) -> None:
        """a b ± c, which replaces one of the three in its register."""
        registers, uses = self._registers, self._uses
        places = {x: self._anywhere(x, operands) for x in operands}
        if len(places) < len(operands):  # what is there twice, in a register
            places = {
                x: self._register(x, operands) if operands.count(x) > 1 else places[x]
                for x in places
            }
        outside = [x for x, place in places.items() if type(place) is not int]
        target = next((x for x in operands if x in registers and not uses[x]), -1)
        if target >= 0:
            register = registers.pop(target)
        else:  # a copy, from memory if there is one
            target = outside.pop() if outside else operands[2]
            register = self._taken(operands)
            self._move(register, places[target])
        for x in outside[1:]:  # one may stay in memory
            places[x] = self._register(x, operands)
        if target not in registers:
            places[target] = register
        a, b, c = operands
        forms = self._forms[operation]
        if target == c and c not in (a, b):
            second, third, form = places[a], places[b], 2
            if type(second) is not int:
                second, third = third, second
        else:
            other = places[b if target == a else a]
            addend = places[c]
            second, third, form = addend, other, 0
            if type(addend) is not int:
                second, third, form = other, addend, 1
        assert type(second) is int
        self._to.vector(forms[form], register, second, third)
        self._release(operands)
        self._keep(result, register)

    def _choice(self, operation: str, result: int, operands: tuple[int, ...]) -> None:
        """One of two values, by the sign of another one or its lowest bit."""
        condition, a, b = operands
        first = self._register(condition, operands)
        if operation == SELECT:
            self._to.vector(self._codes[SELECT], x86.MASK, first, self._zero, after=b"\1")
            self._masked = -1
        elif self._masked != condition:
            self._to.vector(self._codes[ODD], x86.MASK, first, self._one)
            self._masked = condition
        second = self._register(b, operands)
        third = self._anywhere(a, operands)
        register = self._result(result, operands)
        self._to.vector(self._codes[BLEND], register, second, third, x86.MASK)

    def _flip(self, result: int, x: int, sign: int) -> None:
        """A number with its sign changed if another one, which is not used again, has one."""
        second = self._register(x, (x, sign))
        register = self._register(sign, (x, sign))
        self._to.vector(self._codes[FLIP], register, second, self._top, after=SIGN_OF_FIRST)
        del self._registers[sign]
        self._release((x,))
        self._keep(result, register)

    def _copy(self, x: int, place: Memory) -> None:
        """Store a value."""
        place = _kept(place) if self._calls else place
        self._to.vector(self._codes[STORE], self._register(x, (x,)), 0, place)
        if self._homes[x] is None:
            self._homes[x] = place
        self._release((x,))

    def _call(self, name: str, number: int) -> None:
        """Call a function, which may change all registers, with the context and a number."""
        self._forget()
        self._to.content += _CONTEXT + _NUMBER + struct.pack("<i", number)
        self._to.call(name)

    def _turned(self, x: int, sine: int, cosine: int) -> None:
        """Sine and cosine by a call."""
        register = self._register(x, (x,))
        self._release((x,))
        self._forget()
        self._to.vector(self._codes[LOAD], 0, 0, register)
        self._to.call(TURN)
        self._free = [r for r in self._free if r > 1]
        self._keep(sine, 0)
        self._keep(cosine, 1)

    def _forget(self) -> None:
        """Leave no value in registers."""
        self._masked = -1
        for x in list(self._registers):
            self._free.append(self._out(x))


def _kept(home: Memory) -> Memory:
    """A place, by a register that calls leave as it is."""
    return Memory(_CALLS.get(home.base, home.base), home.offset)


def _codes(bits: int) -> dict[str, Code]:
    """The instructions of operations other than products."""
    floating = {ADD: 0x58, SUB: 0x5C, MUL: 0x59, DIV: 0x5E, SQRT: 0x51, SELECT: 0xC2,
                LOAD: 0x28, STORE: 0x29}  # fmt: skip
    wide = bits == 64
    whole = {XOR: 0xEF, WHOLE: 0xD4 if wide else 0xFE, SHIFT: 0x73 if wide else 0x72}
    second = {BROADCAST: 0x19 if wide else 0x18, BLEND: 0x65, ODD: 0x27}
    return {
        **{name: Code(1, opcode, int(wide), int(wide)) for name, opcode in floating.items()},
        **{name: Code(1, opcode, 1, int(wide)) for name, opcode in whole.items()},
        **{name: Code(2, opcode, 1, int(wide)) for name, opcode in second.items()},
        FLIP: Code(3, 0x25, 1, int(wide)),
    }


def _forms(bits: int) -> dict[str, tuple[Code, Code, Code]]:
    """Products as t z + y, y t + z and y z + t for a target t and further operands y, z."""

    def code(opcode: int) -> Code:
        return Code(2, opcode, 1, int(bits == 64))

    return {
        name: (code(0x98 + kind), code(0xA8 + kind), code(0xB8 + kind))
        for name, kind in ((FMA, 0), (FMS, 2), (FNMA, 4))
    }
