"""Modules compiled side by side: here, and by processes of their own, one for each processor.

LLVM is used by one thread of a process at a time (llvmlite's rule), so that threads do not serve.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robomodel.kernels.llvm import worker

MOST = 8  # processes besides this one
TICK = 0.02  # seconds after which it is looked how far others are
PATIENCE = 2.0  # seconds without a result of theirs, of which each takes a fifth


def compiled(
    texts: Sequence[str],
    settings: Mapping[str, Any],
    here: Callable[[str], bytes],
    progress: Callable[[float], None],
) -> list[bytes]:
    """The object code of each module. ``here`` compiles one in this process.

    What another process fails to compile, or takes very long for, is compiled here. ``progress`` is
    told the share that is done.
    """
    codes: dict[int, bytes] = {}
    numbers, total = itertools.count(), sum(map(len, texts))

    def told() -> None:
        progress(sum(len(texts[n]) for n in tuple(codes)) / total)

    crew = [_Helper(texts, numbers, codes, settings) for _ in range(_helpers(len(texts)))]
    try:
        while (n := next(numbers)) < len(texts):
            codes[n] = here(texts[n])
            told()
        last = time.monotonic(), len(codes)
        while any(helper.is_alive() for helper in crew) and time.monotonic() < last[0] + PATIENCE:
            for helper in crew:
                helper.join(TICK)
            if len(codes) > last[1]:
                last = time.monotonic(), len(codes)
                told()
        for n in range(len(texts)):
            if n not in codes:
                codes[n] = here(texts[n])
                told()
    finally:
        for helper in crew:
            helper.stop()
    return [codes[n] for n in range(len(texts))]


def _helpers(modules: int) -> int:
    """How many processes shall help with so many modules; none where Python is not a program."""
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")):
        return 0
    usable = getattr(os, "sched_getaffinity", None)
    processors = len(usable(0)) if usable else os.cpu_count() or 1
    return max(0, min(processors - 1, modules - 1, MOST))


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
            found = find_spec("llvmlite")
            assert found is not None
            assert found.origin is not None
            place = Path(found.origin).parent.parent
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", worker.__file__, str(place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # interrupts are for the process that waits
            )
            given, made = self._process.stdin, self._process.stdout
            assert given is not None
            assert made is not None
            while (n := next(numbers)) < len(texts):
                worker.send(given, texts[n].encode(), settings=settings)
                code, _ = worker.receive(made)
                codes[n] = code
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
            try:
                stream.close()
            except OSError:
                continue
        process.wait()
