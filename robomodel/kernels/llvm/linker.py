"""A linker in memory for LLVM's object code, so that code from the cache needs no LLVM.

The objects of :mod:`robomodel.kernels.llvm.machine` are position-independent code with constants:
a few sections that nothing writes to, addresses relative to the next instruction, and calls of a
handful of C functions (System V ABI, AMD64 supplement, 4.4). What is not of this kind, or is for
another processor, is left to LLVM's own linker.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

HEADER = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
RELOCATABLE, AMD64 = 1, 62
PROGRAM, SYMBOLS, RELOCATIONS, UNWINDING = 1, 2, 4, 0x70000001  # kinds of sections
WRITTEN, IN_MEMORY = 1, 2  # their flags
RELATIVE = (2, 4)  # R_X86_64_PC32 and R_X86_64_PLT32: symbol + addend - place, in 32 bits
JUMP = b"\xff\x25\0\0\0\0"  # jmp [rip]: to the address that follows


class _OtherKindError(Exception):
    """An object that this linker is not made for."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: int
    kind: int
    flags: int
    at: int
    size: int
    link: int
    info: int
    align: int


@dataclass
class _Image:
    """Code and constants from the beginning of a page, and where symbols are in it."""

    content: bytearray = field(default_factory=bytearray)
    symbols: dict[str, int] = field(default_factory=dict)

    def place(self, content: bytes, align: int) -> int:
        """Append content; returns where it is."""
        self.content += bytes(-len(self.content) % max(1, align))
        at = len(self.content)
        self.content += content
        return at

    def symbol(self, name: str) -> int:
        """Where a symbol is; of a C function, where a jump to it is."""
        if name not in self.symbols:
            try:
                function = getattr(ctypes.CDLL(None), name)
            except AttributeError:
                raise _OtherKindError(f"no symbol {name}") from None
            address = ctypes.cast(function, ctypes.c_void_p).value or 0
            self.symbols[name] = self.place(JUMP + struct.pack("<Q", address), 16)
        return self.symbols[name]


def link(codes: Sequence[bytes], entry: str) -> tuple[object, int] | None:
    """Objects in executable memory: what owns it, and the entry's address.

    None if an object is of another kind, or where memory cannot be made executable.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    image, pending = _Image(), list[tuple[int, int, int | str]]()
    try:
        for code in codes:
            pending += _placed(image, code)
        for at, addend, where in pending:
            target = where if isinstance(where, int) else image.symbol(where)
            struct.pack_into("<i", image.content, at, target + addend - at)
        start = image.symbols[entry]
    except (_OtherKindError, KeyError, struct.error):
        return None
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, len(image.content), flags=private, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    memory[:] = bytes(image.content)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(address, len(image.content), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return None
    return memory, address + start


def _placed(image: _Image, code: bytes) -> Iterator[tuple[int, int, int | str]]:
    """Place an object's sections; its relocations: where, the addend, and to where or to whom."""
    if not code.startswith(HEADER) or struct.unpack_from("<HH", code, 16) != (RELOCATABLE, AMD64):
        raise _OtherKindError("no object code of this machine")
    (first,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [
        _Section(name, kind, flags, at, length, link_, info, align)
        for name, kind, flags, _, at, length, link_, info, align, _ in (
            struct.unpack_from("<IIQQQQIIQQ", code, first + size * k) for k in range(count)
        )
    ]
    places: dict[int, int] = {}
    for k, section in enumerate(sections):
        if section.flags & IN_MEMORY and section.kind != UNWINDING:
            if section.kind != PROGRAM or section.flags & WRITTEN:
                raise _OtherKindError("data that the code writes to")
            content = code[section.at : section.at + section.size]
            places[k] = image.place(content, section.align)
    symbols = _symbols(image, code, sections, places)
    for section in sections:
        if section.kind == RELOCATIONS and section.info in places:
            for offset, info, addend in struct.iter_unpack(
                "<QQq", code[section.at : section.at + section.size]
            ):
                if info & 0xFFFFFFFF not in RELATIVE:
                    raise _OtherKindError(f"relocation {info & 0xFFFFFFFF}")
                yield places[section.info] + offset, addend, symbols[info >> 32]


def _symbols(
    image: _Image, code: bytes, sections: Sequence[_Section], places: dict[int, int]
) -> list[int | str]:
    """Where an object's symbols are, or the names of those that are elsewhere."""
    result: list[int | str] = []
    table = next(section for section in sections if section.kind == SYMBOLS)
    texts = sections[table.link].at
    for at, info, _, section, value, _ in struct.iter_unpack(
        "<IBBHQQ", code[table.at : table.at + table.size]
    ):
        name = code[texts + at : code.index(b"\0", texts + at)].decode()
        if section in places:
            result.append(places[section] + value)
            if info >> 4:  # not local
                image.symbols[name] = places[section] + value
        else:
            result.append(name)
    return result
