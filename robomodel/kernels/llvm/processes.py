"""LLVM's work, from assembly to object code; several modules at once by several processes.

LLVM may be used by one thread of a process at a time (llvmlite's rule), so threads do not help. The
other processes run this file as a script, which needs llvmlite and nothing of this package: they
read modules from standard input and write object code to standard output, each after a line of
JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

PATIENCE = 2.0  # seconds to wait for them without a result; a module takes a fifth of one


# ---- one module ----------------------------------------------------------------------------------


def initialized() -> Any:
    """LLVM's bindings, initialised for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def target(llvm: Any, settings: Mapping[str, Any]) -> Any:
    """The target machine; ``settings`` are its triple and llvmlite's options."""
    options = {name: value for name, value in settings.items() if name != "triple"}
    return llvm.Target.from_triple(settings["triple"]).create_target_machine(**options)


def object_code(llvm: Any, settings: Mapping[str, Any], text: str) -> bytes:
    """A module's object code."""
    machine = target(llvm, settings)
    code: bytes = machine.emit_object(_module(llvm, machine, text))
    return code


def assembly(llvm: Any, settings: Mapping[str, Any], text: str) -> str:
    """A module's assembly."""
    machine = target(llvm, settings)
    code: str = machine.emit_assembly(_module(llvm, machine, text))
    return code


def _module(llvm: Any, machine: Any, text: str) -> Any:
    """A module for this machine, in a context of its own."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


# ---- helper processes ----------------------------------------------------------------------------


def send(stream: IO[bytes], content: bytes, **header: Any) -> None:
    """Write a message: its header, with the size of its content, and the content."""
    stream.write(json.dumps({"size": len(content), **header}).encode() + b"\n" + content)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, dict[str, Any]]:
    """The next message; raises EOFError if there is none, or only a part."""
    line = stream.readline()
    if not line:
        raise EOFError("no message")
    header = json.loads(line)
    content = stream.read(size := int(header.pop("size")))
    if len(content) < size:
        raise EOFError("half a message")
    return content, header


def serve(texts: IO[bytes], codes: IO[bytes]) -> None:
    """Compile modules until there are no more."""
    llvm = initialized()
    with suppress(EOFError):
        while True:
            text, header = receive(texts)
            send(codes, object_code(llvm, header["settings"], text.decode()))


class _Helper(threading.Thread):
    """A process that compiles modules, and the thread that waits for it."""

    def __init__(
        self,
        texts: Sequence[str],
        numbers: itertools.count[int],
        codes: dict[int, bytes],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(daemon=True)
        self._work = texts, numbers, codes, settings
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def run(self) -> None:
        """Take modules until there are no more, or something fails."""
        texts, numbers, codes, settings = self._work
        try:
            llvmlite = find_spec("llvmlite")
            assert llvmlite is not None
            assert llvmlite.origin is not None
            path = Path(llvmlite.origin).parent.parent
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # interrupts are for the process that waits
            )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            while (n := next(numbers)) < len(texts):
                send(self._process.stdin, texts[n].encode(), settings=settings)
                codes[n], _ = receive(self._process.stdout)
        except (OSError, EOFError, ValueError, TypeError, KeyError):
            return  # the caller compiles what is missing

    def stop(self) -> None:
        """End the process."""
        process = self._process
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        process.wait()


# ---- several modules -----------------------------------------------------------------------------


def compiled(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    here: Callable[[str], bytes],
    progress: Callable[[float], None],
) -> list[bytes]:
    """The object code of each module. ``here`` compiles one in this process.

    It compiles the modules that other processes fail on, or take very long for. ``progress`` is
    called with the share that is done.
    """
    codes: dict[int, bytes] = {}
    numbers, total = itertools.count(), sum(map(len, texts))

    def report() -> None:
        progress(sum(len(texts[n]) for n in tuple(codes)) / total)

    helpers = [_Helper(texts, numbers, codes, settings) for _ in range(_helpers(len(texts)))]
    try:
        while (n := next(numbers)) < len(texts):
            codes[n] = here(texts[n])
            report()
        last = time.monotonic(), len(codes)
        while any(x.is_alive() for x in helpers) and time.monotonic() < last[0] + PATIENCE:
            for helper in helpers:
                helper.join(0.02)  # seconds between checks for results of the other processes
            if len(codes) > last[1]:
                last = time.monotonic(), len(codes)
                report()
        for n in range(len(texts)):
            if n not in codes:
                codes[n] = here(texts[n])
                report()
    finally:
        for helper in helpers:
            helper.stop()
    return [codes[n] for n in range(len(texts))]


def _helpers(modules: int) -> int:
    """The number of processes for so many modules; 0 if Python cannot be started as a program."""
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")):
        return 0
    usable = getattr(os, "sched_getaffinity", None)
    processors = len(usable(0)) if usable else os.cpu_count() or 1
    return max(0, min(processors - 1, modules - 1, 8))  # processes besides this one


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])  # where llvmlite is
    serve(sys.stdin.buffer, sys.stdout.buffer)
