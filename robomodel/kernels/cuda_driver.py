"""NVIDIA's driver (libcuda), called by ctypes when it first is needed."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class NoCardError(RuntimeError):
    """Kernels for NVIDIA's cards cannot run here: there is no driver, or it fails."""


@dataclass(frozen=True)
class Driver:
    """NVIDIA's driver, and the contexts of cards, which are kept: code lives in them."""

    library: Any
    contexts: dict[int, ctypes.c_void_p] = field(default_factory=dict)

    def call(self, name: str, *arguments: Any) -> None:
        """One of its functions; NoCardError if it reports a failure."""
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            said = (text.value or b"unknown error").decode(errors="replace")
            raise NoCardError(f"NVIDIA's driver: {name}: {said} ({code})")

    def card(self, address: int) -> int:
        """The number of the card whose memory this is."""
        found = ctypes.c_int()
        ordinal = ctypes.c_int(9)  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        self.call("cuPointerGetAttribute", ctypes.byref(found), ordinal, ctypes.c_uint64(address))
        return found.value

    def enter(self, card: int) -> None:
        """Make a card's primary context, which others use as well, the thread's current one."""
        if card not in self.contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(card))
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.contexts[card] = context
        self.call("cuCtxPushCurrent_v2", self.contexts[card])

    def leave(self) -> None:
        """Back to the context before."""
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    @contextmanager
    def on(self, card: int) -> Iterator[None]:
        """In a card's context."""
        self.enter(card)
        try:
            yield
        finally:
            self.leave()


@functools.cache
def driver() -> Driver:
    """The driver, ready; NoCardError where there is none, or no card."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise NoCardError(
            f"kernels of target 'cuda' run on NVIDIA's cards, and their driver ({name}) is not "
            "installed here; 'ptx' is there without it"
        ) from None
    found = Driver(library)
    found.call("cuInit", ctypes.c_uint(0))
    return found
