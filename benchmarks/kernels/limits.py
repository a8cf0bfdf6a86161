"""What limits a kernel: bounds from its program and the core's rates, and kernels to hold against.

A kernel takes ``width`` states, a tile, at a time. Held against it are, all in cycles a tile:

- *rows*: a kernel of the same arguments and result that only copies: what moving and transposing
  rows costs;
- *unhindered*: a kernel of the same operations on values that are ready and in registers. It moves
  rows too, but waits for nothing and keeps nothing in memory: what it needs above the rows is
  issue (decoding, ports). What the kernel itself needs above it is waiting, registers spilled,
  constants and inputs fetched;
- the *multiplier* and the *divider*: the operations that only they can do, at the rates measured;
- the *path*: the longest chain of operations that wait for each other, at the latencies measured;
  tiles that follow each other hide some of it;
- *fill*: writing as many numbers as the result has, all the same, by ``numpy.ndarray.fill``:
  stores alone, into the same memory;
- the *assembly*: vectors stored on the stack and fetched from there: there are 32 registers;
- *memory*: bytes in and out of a batch larger than the caches, at the bandwidth measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import robomodel as rm
from benchmarks.shared.race import Array
from benchmarks.shared.states import States
from robomodel.kernels import Program, compile_program
from robomodel.kernels.llvm import machine
from robomodel.kernels.llvm.emit import emit
from robomodel.kernels.program import (
    ADD,
    COS,
    DIV,
    FMA,
    FMS,
    FNMA,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    Operation,
    Reference,
)

# A sine and cosine in vector instructions (robomodel/kernels/llvm, AVX-512): reduction and two
# polynomials; then integers and choices, and the test for huge angles.
SINCOS_MULTIPLIED = 20
SINCOS = 33
SINCOS_DEPTH = 13  # of them wait for each other
STRANDS = 12
MULTIPLIED = (MUL, FMA, FMS, FNMA)


@dataclass(frozen=True)
class Work:
    """A program in vector instructions: sines and cosines spelt out, signs free."""

    multiplied: int
    divided: int
    others: int
    flops: int

    @classmethod
    def of(cls, program: Program) -> Work:
        """Sine and cosine of an angle are one piece of work."""
        n = program.counts
        angles = max(n[SIN], n[COS])
        multiplied = sum(n[x] for x in MULTIPLIED) + SINCOS_MULTIPLIED * angles
        divided = n[DIV] + n[SQRT]
        steps = len(program.steps) - n[NEG] - n[SIN] - n[COS]
        return cls(
            multiplied, divided, steps + SINCOS * angles - multiplied - divided, program.flops
        )

    @property
    def instructions(self) -> int:
        """All of them."""
        return self.multiplied + self.divided + self.others

    @property
    def ceiling(self) -> float:
        """The share of the FMA peak if every instruction took a slot, and nothing else did."""
        return self.flops / (2 * max(1, self.instructions))

    def operations(self, rates: Mapping[str, float]) -> float:
        """Instructions, a division counted as many as fused multiply-adds take its time."""
        return self.instructions + self.divided * (rates["div"] / rates["fma"] - 1.0)


def path(program: Program, rates: Mapping[str, float]) -> float:
    """Cycles of the longest chain of steps that wait for each other."""
    step = rates["fma latency"]
    latency = {NEG: 0.0, DIV: rates["div latency"], SQRT: rates["div latency"]}
    latency |= {SIN: SINCOS_DEPTH * step, COS: SINCOS_DEPTH * step}
    ready = [0.0] * program.inputs
    for s in program.steps:
        before = max((ready[x] for x in s.operands if type(x) is int), default=0.0)
        ready.append(before + latency.get(s.operation, step))
    return max(ready)


def rows(program: Program) -> Program:
    """The program of the same sizes that copies inputs to outputs."""
    return Program(
        program.inputs, (), tuple(i % program.inputs for i in range(len(program.outputs)))
    )


def unhindered(program: Program) -> Program:
    """The program of the same operations, each on results of twelve operations before or more.

    They are braided, not in separate chains: a compiler that reorders would follow one chain to its
    end. Sines and cosines come first, and enter the operation that is next. Where there are fewer
    outputs than strands, additions join those (a dozen operations too many in small programs).
    """
    trigonometry = [step for step in program.steps if step.operation in (SIN, COS)]
    angles = {x for step in trigonometry for x in step.operands}
    plain = next((i for i in range(program.inputs) if i not in angles), 0)
    ends: list[Reference] = [1.0 + k / STRANDS for k in range(STRANDS + 1)]
    steps: list[Operation] = []

    def made(operation: str, *operands: Reference) -> int:
        steps.append(Operation(operation, operands))
        return program.inputs + len(steps) - 1

    for operation in (step.operation for step in program.steps):
        if operation in (SIN, COS, NEG):
            continue
        x, y, z = ends.pop(0), ends[0], plain  # products with z alone do not grow beyond all bounds
        if trigonometry and operation != SQRT:
            turned = trigonometry.pop(0)
            (angle,) = turned.operands
            known = type(angle) is int and angle < program.inputs
            y = z = made(turned.operation, angle if known else plain)
        if operation in (FMA, FMS, FNMA):
            ends.append(made(operation, x, plain, y))
        elif operation in (ADD, SUB):
            ends.append(made(operation, x, y))
        else:
            ends.append(made(operation, x) if operation == SQRT else made(operation, x, z))
    del ends[0]  # it is part of another already
    count = len(program.outputs)
    while len(ends) > count:
        ends.append(made(ADD, ends.pop(0), ends.pop(0)))
    return Program(program.inputs, tuple(steps), tuple(ends[i % len(ends)] for i in range(count)))


def runner(
    program: Program, kernel: rm.kernels.Kernel, arguments: Sequence[Array], out: Array
) -> Callable[[], object]:
    """A program of the kernel's sizes, compiled, on these arrays."""
    compiled = compile_program(program, [*kernel.sizes.values(), kernel.size])
    return lambda: compiled.ufunc(*arguments, out=out)


@dataclass(frozen=True)
class Bounds:
    """Cycles a tile."""

    measured: float
    rows: float
    fill: float
    unhindered: float | None
    multiplier: float
    divider: float
    path: float

    @property
    def limit(self) -> str:
        """What takes most of the time, in a few words."""
        parts = {"copying rows": self.rows}
        ports = {"multiplier": self.multiplier, "divider": self.divider}
        port = max(ports, key=lambda name: ports[name])
        if self.unhindered is not None:
            parts["instruction issue"] = self.unhindered - self.rows
            parts["latency and registers"] = self.measured - self.unhindered
        else:
            parts["instruction issue, latency and registers"] = self.measured - self.rows
        limits = []
        for name, cycles in sorted(parts.items(), key=lambda part: -part[1]):
            text = f"{name} {cycles / self.measured:.0%}"
            if name.startswith("instruction issue"):
                text += f" ({port} alone {ports[port] / self.measured:.0%})"
            limits.append(text)
        return ", ".join(limits)


@dataclass(frozen=True)
class Assembly:
    """A kernel's vector instructions, and those that move vectors to the stack and from it."""

    instructions: int
    spilled: int
    fetched: int

    @classmethod
    def of(cls, kernel: rm.kernels.Kernel) -> Assembly:
        """As LLVM writes it for this machine."""
        text = emit(kernel.program, [*kernel.sizes.values(), kernel.size], machine.lanes())
        vectors = [
            line.split("#")[0].strip()
            for line in machine.assembly(text, **machine._settings()).splitlines()
            if re.search(r"%[xyz]mm", line)
        ]
        spilled = sum(line.endswith("(%rsp)") for line in vectors)
        return cls(len(vectors), spilled, sum("(%rsp)" in line for line in vectors) - spilled)


def traffic(kernel: rm.kernels.Kernel) -> int:
    """Bytes of a state, read and written."""
    return 8 * (sum(kernel.sizes.values()) + kernel.size)


def large(
    kernel: rm.kernels.Kernel, states: States, most: int
) -> tuple[int, Sequence[Array], Array]:
    """A batch far beyond the caches, ``most`` states or 256 MB: its size, arguments, result."""
    count = min(most, (1 << 28) // traffic(kernel))
    turns = -(-count // len(states.q))
    arguments = [np.tile(x, (turns, 1))[:count] for x in (states.q, states.v, states.x)]
    return count, arguments, np.zeros((count, kernel.size))
