"""Programs on NVIDIA's cards: PTX launched through the driver.

The driver makes machine code of PTX for the card it finds, and keeps it. Arrays stay whose they
are: nothing is copied.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robomodel.kernels.cuda_arrays import (
    Driver,
    NoCardError,
    View,
    driver,
    empty,
    handed,
    merged,
    rows,
    step,
    stream_of,
    view,
)
from robomodel.kernels.precision import Dtype
from robomodel.kernels.ptx import emit

__all__ = ["Compiled", "Driver", "NoCardError", "driver"]


@dataclass(frozen=True)
class Compiled:
    """PTX with its entry; ``sizes`` of the arguments' rows by name.

    The argument that is ``timed``, if any, has a row for each instant.
    """

    ptx: str
    entry: str
    sizes: Mapping[str, int]
    dtype: Dtype
    timed: str | None = None
    _functions: dict[int, ctypes.c_void_p] = field(default_factory=dict, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def __call__(
        self, arguments: Sequence[Any], shape: tuple[int, ...], out: Any = None,
        stream: Any = None, numbers: Sequence[float] = (),
    ) -> Any:  # fmt: skip
        """Enqueue a launch; the array that gets the results, of this shape after the batch's.

        Over time they have a row more than there are instants, before the last axis; ``numbers``
        are the entry's last parameters.
        """
        card = driver()
        handle = stream_of(stream, arguments)
        views = {n: view(x, n, handle) for x, n in zip(arguments, self.sizes, strict=True)}
        batch, last = self._checked(views), list[Any]()
        if self.timed is not None:
            x = views[self.timed]
            times = x.shape[-2]
            views[self.timed] = merged(self.timed, x)
            shape = (times + 1, *shape)
            kind = ctypes.c_float if self.dtype == "float32" else ctypes.c_double
            last = [ctypes.c_int64(times), *map(kind, numbers)]
        result = out
        if out is None:
            number = next((card.card(x.address) for x in views.values() if x.address), 0)
            at = (card, number, handle)
            result = empty(arguments[0], (*batch, *shape), self.dtype, at)
        place = view(result, "out", handle)
        self._fits(place, (*batch, *shape), views)
        steps = [ctypes.c_int64(step(n, x, batch)) for n, x in views.items()]
        count = math.prod(batch)
        if count and math.prod(shape):  # else there is nothing to compute
            self._launch(card, [*views.values(), place], [*steps, ctypes.c_int64(count), *last],
                         count, handle)  # fmt: skip
        return handed(arguments[0], result)

    def _checked(self, views: Mapping[str, View]) -> tuple[int, ...]:
        """The batch of arguments of the right types and lengths."""
        batch: tuple[int, ...] = ()
        for name, x in views.items():
            size, axes = self.sizes[name], 2 if name == self.timed else 1
            if x.dtype != self.dtype:
                raise TypeError(f"{name} must be of {self.dtype} as the kernel is, got {x.dtype}")
            if len(x.shape) < axes or x.shape[-1] != size:
                wanted = f"(..., T, {size})" if axes == 2 else f"(..., {size})"
                raise ValueError(f"{name} must have the shape {wanted}, got {x.shape}")
            batch = _broadcast(name, batch, x.shape[:-axes])
        return batch

    def _fits(self, out: View, shape: tuple[int, ...], views: Mapping[str, View]) -> None:
        if out.dtype != self.dtype or not out.writable:
            got = out.dtype if out.writable else "one that is read-only"
            raise TypeError(f"out must be a writable array of {self.dtype}, got {got}")
        if out.shape != shape:
            raise ValueError(f"out must have the shape {shape}, got {out.shape}")
        even = zip(shape, out.strides, rows(shape), strict=True)
        if any(s != t for n, s, t in even if n > 1) and 0 not in shape:
            raise ValueError("out must be contiguous")
        first, last = out.extent
        for name, x in views.items():
            begin, end = x.extent
            if begin < last and first < end:
                raise ValueError(f"out must not share memory with {name}")

    def _launch(
        self, card: Driver, views: Sequence[View], others: Sequence[Any], count: int, stream: int
    ) -> None:
        numbers = {card.card(x.address) for x in views if x.address}
        if len(numbers) > 1:
            raise ValueError(f"arrays are on different cards: {sorted(numbers)}")
        (number,) = numbers
        values = [*(ctypes.c_void_p(x.address) for x in views), *others]
        given = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        grid = (emit.blocks(self.ptx, count), 1, 1, emit.THREADS, 1, 1, 0)
        blocks = [ctypes.c_uint(n) for n in grid]
        with card.on(number):
            for other in {x.stream for x in views} - {None, stream}:
                card.call("cuStreamSynchronize", ctypes.c_void_p(other))
            function = self._function(card, number)
            card.call("cuLaunchKernel", function, *blocks, ctypes.c_void_p(stream), given, None)

    def _function(self, card: Driver, number: int) -> ctypes.c_void_p:
        """The entry in the current context, which is this card's."""
        with self._lock:
            if number not in self._functions:
                module, function = ctypes.c_void_p(), ctypes.c_void_p()
                card.call("cuModuleLoadData", ctypes.byref(module), self.ptx.encode() + b"\0")
                name = self.entry.encode()
                card.call("cuModuleGetFunction", ctypes.byref(function), module, name)
                self._functions[number] = function
            return self._functions[number]


def _broadcast(name: str, batch: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(batch, other)
    except ValueError:
        raise ValueError(f"{name} has the batch {other}, others have {batch}") from None
