"""LLVM (llvmlite): object code for this machine, and its loader.

LLVM's state belongs to the process: only one thread may use it at a time, and a process may fork
only between its calls, so that a child finds it intact. llvmlite is imported where it is first
needed.
"""

from __future__ import annotations

import functools
import itertools
import os
import platform
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from robomodel.kernels.llvm import linker, processes
from robomodel.kernels.program import PRECISIONS, Dtype


class _Lock:
    """A lock for threads that call LLVM and for forks; it takes llvmlite's lock as well."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._others: list[Any] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before, after_in_parent=self._after, after_in_child=self._after
            )

    def _before(self) -> None:
        self._lock.acquire()
        library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
        other: Any = getattr(library, "_lock", None)
        if other is not None:  # other packages in this process may use llvmlite
            other.__enter__()
            self._others.append(other)

    def _after(self) -> None:
        while self._others:
            self._others.pop().__exit__(None, None, None)
        self._lock.release()

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        with self._lock:
            import llvmlite.binding as llvm

            yield llvm


_using = _Lock()

JIT_LINK = sys.platform != "win32"
"""True if LLVM's linker is its JITLink; on Windows it is the older RuntimeDyld."""


LINKED = sys.platform == "linux" and platform.machine() == "x86_64"
"""True if objects are of the kind that the linker here reads, and :mod:`robomodel.kernels.x86`
writes."""


@functools.cache
def features() -> tuple[str, int]:
    """The machine's instruction sets, as LLVM writes them, and the doubles that a vector holds."""
    with _using():
        available = processes.initialized().get_host_cpu_features()
    if available.get("avx512f"):
        available["prefer-256-bit"] = False
    width = 8 if available.get("avx512f") else 4 if available.get("avx2") else 2
    return available.flatten(), width


@functools.cache
def obstacle() -> str | None:
    """Why nothing can be compiled here, or None."""
    try:
        features()
    except (ImportError, OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def lanes(dtype: Dtype = "float64") -> int:
    """Number of states that a kernel works on at a time on this machine."""
    return features()[1] * 64 // PRECISIONS[dtype].bits


@functools.cache
def direct() -> bool:
    """True if :mod:`robomodel.kernels.x86` can write code for this machine: AVX-512, on Linux."""
    if not LINKED:
        return False
    text = _described()
    return features()[1] == 8 if text is None else "avx512f" in text


def processor() -> tuple[str, ...]:
    """Everything that object code depends on, besides the program and the compiler."""
    text = _described()
    if text is not None:
        return (text,)
    with _using() as llvm:
        return llvm.get_default_triple(), llvm.get_host_cpu_name(), features()[0]


@functools.cache
def _described() -> str | None:
    """The processor as Linux describes it, which takes less time than LLVM; None elsewhere."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, UnicodeDecodeError), open("/proc/cpuinfo", encoding="utf-8") as file:
        first = file.read(1 << 14).split("\n\n")[0].splitlines()  # all processors are alike
        lines = [line for line in first if line.lower().startswith(CPU_FIELDS)]
        if any(line.startswith(("flags", "Features")) for line in lines):
            return "\n".join([os.uname().machine, *lines])
    return None


CPU_FIELDS = ("vendor_id", "flags", "cpu implementer", "cpu architecture", "cpu part", "features")
"""The fields of a processor on which code depends: its instruction sets. Models with
the same ones share a cache; LLVM schedules for the one that compiles."""


@functools.cache
def _settings() -> dict[str, Any]:
    """LLVM's settings for this machine.

    JITLink puts the code and constants of an object next to each other, within short addresses; by
    long ones vectors of constants cost an instruction each, 3 to 13 % of the time.
    """
    instructions = features()[0]
    near = {"reloc": "pic", "codemodel": "small"} if JIT_LINK else {}
    with _using() as llvm:
        return {"triple": llvm.get_default_triple(), "cpu": llvm.get_host_cpu_name(),
                "features": instructions, "opt": 1, "jit": True, **near}  # fmt: skip


def object_codes(texts: Sequence[str], progress: Callable[[float], None]) -> list[bytes]:
    """Object code of modules in LLVM's assembly; several are compiled side by side."""
    settings = _settings()

    def here(text: str) -> bytes:
        with _using() as llvm:
            return processes.object_code(llvm, settings, text)

    if len(texts) == 1:
        return [here(texts[0])]
    return processes.compiled(texts, settings, here, progress)


def assembly(text: str, **settings: Any) -> str:
    """A module as another machine's assembly; ``settings`` as in :func:`processes.target`."""
    with _using() as llvm:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return processes.assembly(llvm, settings, text)


def load(codes: Sequence[bytes], entry: str) -> tuple[object, int]:
    """Link object code in memory; returns what owns it, and the entry's address."""
    linked = linker.link(codes, entry)
    if linked is not None:
        return linked
    engine = _engine()
    with _using() as llvm:
        builder = llvm.JITLibraryBuilder().add_current_process().export_symbol(entry)
        for code in codes:
            builder.add_object_img(code)
        library = builder.link(engine, f"robomodel {next(_LIBRARIES)}")
        return library, library[entry]


@functools.cache
def _engine() -> Any:
    """LLVM's just-in-time linker; libraries keep it alive."""
    settings = _settings()
    with _using() as llvm:
        return llvm.create_lljit_compiler(processes.target(llvm, settings), use_jit_link=JIT_LINK)


_LIBRARIES = itertools.count()


# ---- long programs in several modules ------------------------------------------------------------

LENGTH = 800_000  # most characters of a module: a fifth of a second's work
_NAME = re.compile(r"@([\w.]+)")


def cut(text: str) -> list[str]:
    """The module; if it is long, the program's pieces in further modules.

    Functions that are called across modules are hidden from others. The first module calls.
    """
    others, blocks = _blocks(text)
    groups: list[list[str]] = [[]]
    for name in blocks:
        if name.startswith("piece"):
            if sum(len(blocks[each]) for each in groups[-1]) > LENGTH:
                groups.append([])
            groups[-1].append(name)
    if len(groups) < 2:
        return [text]
    first = [name for name in blocks if not name.startswith("piece")]
    called = set(_NAME.findall("".join(blocks[name] for group in groups for name in group)))
    across = called.union(*groups)
    for name in across & blocks.keys():
        blocks[name] = blocks[name].replace("define internal ", "define hidden ", 1)

    def module(names: list[str], head: str) -> str:
        used = set(_NAME.findall("".join(blocks[name] for name in names))) - {*names}
        elsewhere = (_declared(block) for name, block in blocks.items() if name in used)
        return "\n".join([head, *elsewhere, *(blocks[name] for name in names)])

    declarations = (line for line in others.splitlines() if line.startswith("declare "))
    intrinsics = "\n".join(declarations)
    return [module(first, others), *(module(group, intrinsics) for group in groups)]


def _blocks(text: str) -> tuple[str, dict[str, str]]:
    """Functions by name, and the text between them."""
    others, blocks = [], {}
    *parts, end = text.split("\n}\n")
    for part in parts:
        at = part.rindex("\ndefine ") + 1 if not part.startswith("define ") else 0
        others.append(part[:at])
        name = _NAME.search(part, at)
        assert name is not None
        blocks[name[1]] = part[at:] + "\n}\n"
    return "".join([*others, end]), blocks


def _declared(block: str) -> str:
    """A function's head, for modules that call it."""
    head = block[: block.index("\n")]
    return head.replace("define ", "declare ", 1).rstrip(" {")
