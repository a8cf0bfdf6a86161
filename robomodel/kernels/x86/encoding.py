"""AVX-512 instructions as bytes, and functions of them as an object file for linkers.

Each instruction is the prefix EVEX, an opcode and its operands (Intel's manual, volume 2, 2.7). An
operand in memory is a base register and an offset, which takes one byte if it is a small multiple
of the operand's size; constants are read relative to the next instruction, and copied to all lanes
as they are read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R13, R14, R15 = 13, 14, 15
REGISTERS = range(32)  # of vectors
# the number of an operation in a register's place, and the mask register of comparisons
SHIFT_LEFT, MASK = 6, 1


class Memory(NamedTuple):
    """A place in memory: a base register, and an offset in bytes."""

    base: int
    offset: int


class Pooled(NamedTuple):
    """A constant by its number, the same in all lanes."""

    number: int


Operand: TypeAlias = "int | Memory | Pooled"
"""A vector register, a place in memory or a constant."""


class Code(NamedTuple):
    """An instruction: map and number of its opcode, its prefix, the operand's width in 64 bits."""

    map: int
    opcode: int
    prefix: int
    wide: int


@dataclass
class Assembler:
    """Instructions on vectors of 512 bits; functions one after the other, then constants."""

    bits: int
    content: bytearray = field(default_factory=bytearray)
    starts: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[int, str]] = field(default_factory=list)
    constants: dict[bytes, int] = field(default_factory=dict)
    _read: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._number = struct.Struct("<d" if self.bits == 64 else "<f")

    def constant(self, x: float) -> Pooled:
        """A number, by its bits."""
        return self._pooled(self._number.pack(x))

    def integer(self, x: int) -> Pooled:
        """A positive integer of the numbers' size."""
        return self._pooled(x.to_bytes(self.bits // 8, "little"))

    def _pooled(self, content: bytes) -> Pooled:
        return Pooled(self.constants.setdefault(content, len(self.constants)))

    def begin(self, name: str) -> None:
        """Begin a function."""
        self.content += b"\xcc" * (-len(self.content) % 64)
        self.starts[name] = len(self.content)

    def call(self, name: str) -> None:
        """Call a function, here or elsewhere."""
        self.content += b"\xe8\0\0\0\0"
        self.calls.append((len(self.content) - 4, name))

    def vector(
        self, code: Code, reg: int, second: int, third: Operand, mask: int = 0, after: bytes = b""
    ) -> None:
        """An instruction on registers ``reg`` and ``second`` and any third operand."""
        map_, opcode, prefix, wide = code
        head = 0x60 | map_ | ~reg << 4 & 0x80 | ~reg & 0x10
        middle = wide << 7 | (~second & 15) << 3 | 4 | prefix
        last = 0x40 | (~second & 16) >> 1 | mask
        low = (reg & 7) << 3
        if type(third) is int:
            head = (head & 0x9F) | (~third & 16) << 2 | (~third & 8) << 2
            tail = bytes((0x62, head, middle, last, opcode, 0xC0 | low | third & 7))
            self.content += tail + after
            return
        if type(third) is Pooled:
            scalar = opcode in (0x18, 0x19) and map_ == 2  # it reads one number by itself
            last |= 0 if scalar else 0x10
            self.content += bytes((0x62, head | 0x60, middle, last, opcode, low | 5))
            self._read.append((len(self.content), third.number))
            self.content += struct.pack("<i", -4 - len(after)) + after
            return
        assert isinstance(third, Memory)
        base, offset = third
        head = (head & 0x9F) | 0x40 | (~base & 8) << 2
        start = bytes((0x62, head, middle, last, opcode))
        near = -8192 <= offset < 8192
        low |= (0x40 if near else 0x80) | base & 7
        place = struct.pack("<b", offset >> 6) if near else struct.pack("<i", offset)
        between = bytes((low, 0x24)) if base & 7 == RSP else bytes((low,))
        self.content += start + between + place + after

    def finished(self) -> bytes:
        """The object file; the constants come last."""
        self.content += bytes(-len(self.content) % 64)
        first, size = len(self.content), self.bits // 8
        for at, number in self._read:
            (beyond,) = struct.unpack_from("<i", self.content, at)
            struct.pack_into("<i", self.content, at, first + number * size - at + beyond)
        self.content += b"".join(self.constants)
        return elf(bytes(self.content), self.starts, self.calls)


# ---- object files --------------------------------------------------------------------------------

_SECTIONS = ("", ".text", ".rela.text", ".symtab", ".strtab", ".shstrtab", ".note.GNU-stack")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SECTION = struct.Struct("<IIQQQQIIQQ")
HIDDEN, FUNCTION, GLOBAL = 2, 2, 1 << 4
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")


def elf(text: bytes, starts: dict[str, int], calls: Sequence[tuple[int, str]]) -> bytes:
    """A relocatable object (System V ABI, AMD64) with functions, and calls of others by name."""
    names = dict.fromkeys((*starts, *(name for _, name in calls)))
    number = {name: k for k, name in enumerate(names, 1)}
    texts, symbols = bytearray(b"\0"), bytearray(_SYMBOL.size)
    for name in names:
        kind = (GLOBAL | FUNCTION, HIDDEN, 1) if name in starts else (GLOBAL, 0, 0)
        symbols += _SYMBOL.pack(len(texts), *kind, starts.get(name, 0), 0)
        texts += name.encode() + b"\0"
    relocations = [_RELOCATION.pack(at, number[name] << 32 | 4, -4) for at, name in calls]  # PLT32
    sections = (  # name, content, kind, flags, two numbers of other sections, alignment, entry
        ("", b"", 0, 0, 0, 0, 0, 0),
        (".text", text, 1, 6, 0, 0, 64, 0),
        (".rela.text", b"".join(relocations), 4, 0x40, 3, 1, 8, _RELOCATION.size),
        (".symtab", symbols, 2, 0, 4, 1, 8, _SYMBOL.size),
        (".strtab", texts, 3, 0, 0, 0, 1, 0),
        (".shstrtab", b"\0".join(map(str.encode, _SECTIONS)) + b"\0", 3, 0, 0, 0, 1, 0),
        (".note.GNU-stack", b"", 1, 0, 0, 0, 1, 0),
    )
    table, body, title = bytearray(), bytearray(_HEADER.size), 0
    for name, content, section, flags, link, info, align, entry in sections:
        body += bytes(-len(body) % max(1, align))
        place = len(body) if section else 0
        size = len(content)
        table += _SECTION.pack(title, section, flags, 0, place, size, link, info, align, entry)
        body += content
        title += len(name) + 1
    body += bytes(-len(body) % 8)
    _HEADER.pack_into(
        body, 0, b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, len(body), 0, _HEADER.size,
        0, 0, _SECTION.size, len(sections), 5,
    )  # fmt: skip
    return bytes(body + table)
