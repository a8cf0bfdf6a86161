"""Object code brought into memory and linked without LLVM: x86-64 ELF on Linux.

A kernel's objects are small and of one kind: sections of code, constants and data, a handful of
relocation types, a few functions of the C library. Other systems are served by LLVM's own loader.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

SYMBOLS, RELOCATIONS, EMPTY, UNWIND = 2, 4, 8, 0x70000001  # types of sections
WRITE, ALLOCATED, EXECUTE = 1, 2, 4  # flags of sections
ABSOLUTE_64, RELATIVE_32, CALL_32, RELATIVE_64 = 1, 2, 4, 24  # relocations
WIDTHS = {ABSOLUTE_64: "<i8", RELATIVE_32: "<i4", CALL_32: "<i4", RELATIVE_64: "<i8"}

SECTION = np.dtype([("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"),
                    ("offset", "<u8"), ("size", "<u8"), ("link", "<u4"), ("info", "<u4"),
                    ("align", "<u8"), ("entry", "<u8")])  # fmt: skip
SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"),
                   ("value", "<i8"), ("size", "<u8")])  # fmt: skip
RELOCATION = np.dtype([("offset", "<i8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

LIBRARY = frozenset(
    ("sin", "cos", "atan2", "malloc", "free", "abort", "memcpy", "memset", "memmove")
)
"""The functions of the C library that kernels may call."""


def serves() -> bool:
    """Whether this loader is the one for this machine."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


class _Object:
    """A relocatable file, and where its sections are going to be."""

    def __init__(self, content: bytes) -> None:
        kind, machine = struct.unpack_from("<HH", content, 16)
        if (content[:6], kind, machine) != (b"\x7fELF\x02\x01", 1, 62):
            raise ValueError("not an x86-64 ELF object")
        (first,) = struct.unpack_from("<Q", content, 40)
        (count,) = struct.unpack_from("<H", content, 60)
        self.content = content
        self.sections: list[tuple[int, ...]] = np.frombuffer(
            content, SECTION, count, first
        ).tolist()
        self.starts = np.full(count, -1, np.int64)
        table = next(s for s in self.sections if s[1] == SYMBOLS)
        self.symbols = np.frombuffer(content, SYMBOL, table[5] // SYMBOL.itemsize, table[4])
        self._names = self.sections[table[6]][4]

    def name(self, symbol: int) -> str:
        """A symbol's name."""
        start = self._names + int(self.symbols["name"][symbol])
        return self.content[start : self.content.index(b"\0", start)].decode()

    def kept(self, protection: int) -> list[int]:
        """Sections that go to memory with this protection: EXECUTE, WRITE, or 0 for constants."""
        return [
            i
            for i, (_, kind, flags, *_rest) in enumerate(self.sections)
            if flags & ALLOCATED and kind != UNWIND and flags & (EXECUTE | WRITE) == protection
        ]

    def place(self, indices: Sequence[int], at: int) -> int:
        """Put these sections one after the other; where they end."""
        for i in indices:
            align = max(self.sections[i][8], 64)
            self.starts[i] = at = -(-at // align) * align
            at += self.sections[i][5]
        return at

    def copy(self, memory: Bytes) -> None:
        """The sections' contents into their places."""
        for i, start in enumerate(self.starts.tolist()):
            _, kind, _, _, offset, size, *_rest = self.sections[i]
            if start >= 0 and kind != EMPTY:
                memory[start : start + size] = np.frombuffer(self.content, np.uint8, size, offset)

    def addresses(self) -> NDArray[np.int64]:
        """Where symbols are, within the memory; -1 for those that are defined elsewhere."""
        at = self.symbols["section"].astype(np.int64)
        inside = (at > 0) & (at < len(self.starts))
        start = np.where(inside, self.starts[np.where(inside, at, 0)], -1)
        return np.where(start >= 0, start + self.symbols["value"], -1)

    def relocations(self) -> list[tuple[int, NDArray[np.void]]]:
        """Where each section that has relocations starts, and these."""
        return [
            (int(self.starts[s[7]]), np.frombuffer(self.content, RELOCATION, s[5] // 24, s[4]))
            for s in self.sections
            if s[1] == RELOCATIONS and self.starts[s[7]] >= 0
        ]


def load(contents: Sequence[bytes]) -> tuple[object, dict[str, int]]:
    """Objects linked in memory: what keeps them there, and the addresses of their global symbols.

    Memory is never writable and executable at once. Raises ValueError for what is no kernel.
    """
    objects = [_Object(content) for content in contents]
    ends, at = [], 0
    for protection in (EXECUTE, 0, WRITE):
        for each in objects:
            at = each.place(each.kept(protection), at)
        if protection == EXECUTE:
            stubs, at = -(-at // 16) * 16, -(-at // 16) * 16 + 16 * len(LIBRARY)
        at = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE
        ends.append(at)
    place = mmap.mmap(-1, max(at, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory = np.frombuffer(place, np.uint8)
    base = int(memory.ctypes.data)
    known: dict[str, int] = {}
    wheres = [each.addresses() for each in objects]
    for each, where in zip(objects, wheres, strict=True):
        each.copy(memory)
        for symbol in np.flatnonzero((each.symbols["info"] >> 4 != 0) & (where >= 0)).tolist():
            known[each.name(symbol)] = int(where[symbol])
    library: dict[str, int] = {}
    for each, where in zip(objects, wheres, strict=True):
        for symbol in np.flatnonzero((each.symbols["info"] >> 4 != 0) & (where < 0)).tolist():
            name = each.name(symbol)
            if name not in known and name not in library:
                library[name] = stubs + 16 * len(library)
                _stub(memory, library[name], name)
            where[symbol] = known.get(name, library.get(name, -1))
        for start, entries in each.relocations():
            _relocate(memory, base, start, entries, where)
    _protect(base, ends)
    return place, {name: base + at for name, at in known.items()}


def _stub(memory: Bytes, at: int, name: str) -> None:
    """A jump to a function of the C library, which may be further away than a call reaches."""
    if name not in LIBRARY:
        raise ValueError(f"a kernel calls '{name}', which it has no reason to")
    function = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    code = b"\x49\xbb" + struct.pack("<Q", function) + b"\x41\xff\xe3"  # r11 = function; jmp *r11
    memory[at : at + len(code)] = np.frombuffer(code, np.uint8)


def _relocate(
    memory: Bytes, base: int, start: int, entries: NDArray[np.void], where: NDArray[np.int64]
) -> None:
    """Write the addresses that one section's instructions and data lack."""
    for kind in set(entries["type"].tolist()):
        if kind not in WIDTHS:
            raise ValueError(f"relocations of type {kind} are not known")
        some = entries[entries["type"] == kind]
        target, place = where[some["symbol"]], start + some["offset"]
        if np.any(target < 0):
            raise ValueError("a symbol is nowhere")
        value = target + some["addend"] + (base if kind == ABSOLUTE_64 else -place)
        numbers = value.astype(WIDTHS[kind])
        if np.any(numbers != value):
            raise ValueError("a symbol is too far away")
        width = numbers.itemsize
        memory[place[:, None] + np.arange(width)] = numbers.view(np.uint8).reshape(-1, width)


def _protect(base: int, ends: Sequence[int]) -> None:
    """Code may be run, constants read, and data written; nothing else."""
    library = ctypes.CDLL(None, use_errno=True)
    code, constants, _ = ends
    for start, end, protection in (
        (0, code, mmap.PROT_READ | mmap.PROT_EXEC),
        (code, constants, mmap.PROT_READ),
    ):
        size = ctypes.c_size_t(end - start)
        if end > start and library.mprotect(ctypes.c_void_p(base + start), size, protection):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
