"""Kernels for cards run on the processor, and a stand-in for the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from targets import threads

from robomodel.kernels import (
    ptx,
)
from robomodel.kernels.function import CudaKernel
from robomodel.kernels.slices import sliced


def arguments_of(kernel: CudaKernel, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    q = np.array([kernel.model.random_configuration(rng) for _ in range(count)])
    found = [q if name == "q" else rng.normal(size=(count, n)) for name, n in kernel.sizes.items()]
    return [x.astype(kernel.dtype) for x in found]


class Card:
    """Stands for the driver's library: what is launched runs here, at once."""

    def __init__(
        self, kernel: CudaKernel | None, run: Any = None, numbers: Sequence[int] = (),
        pointers: int = 4,
    ) -> None:  # fmt: skip
        """``run``: a function of which these arguments are numbers, not pointers or integers."""
        self.numbers, self.pointers, self.run, self.slices = numbers, pointers, run, 1
        if kernel is not None:
            sizes = [*kernel.sizes.values(), kernel.size]
            slices = sliced(kernel.program, kernel.dtype, ptx.gathered(kernel.dtype))
            text = ptx.emit(kernel.program, "f", sizes, kernel.dtype, ptx.ON_HOST, slices)
            self.slices, self.pointers = len(slices), len(sizes)
            self.run = threads(text, len(sizes), len(sizes), slices=self.slices)
        self.log: list[str] = []
        self.memory: dict[int, np.ndarray] = {}
        self.fails: dict[str, int] = {}
        self.streams: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        assert name.startswith("cu")

        def function(*arguments: Any) -> int:
            self.log.append(name)
            code = self.fails.get(name, 0)
            if name == "cuLaunchKernel" and not code:
                _, *grid, shared, stream, given, extra = arguments
                assert (shared.value, extra) == (0, None)
                blocks, *others, size = [x.value for x in grid][0:4]
                assert others == [1, 1]
                kinds = dict.fromkeys(self.numbers, ctypes.c_double)
                values = [kinds.get(i, ctypes.c_int64).from_address(x).value
                          for i, x in enumerate(given)]  # fmt: skip
                count = values[2 * self.pointers - 1]
                assert blocks % self.slices == 0
                assert (blocks // self.slices - 1) * size < count <= blocks // self.slices * size
                self.streams.append(stream.value)
                self.run(*values, count=count)
            if name == "cuMemAlloc_v2":
                made = np.full(64, 7.0)
                assert arguments[1].value <= made.nbytes
                self.memory[made.ctypes.data] = made
                ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64))[0] = made.ctypes.data
            if name == "cuMemFree_v2":
                del self.memory[arguments[0].value]
            if name == "cuGetErrorString":
                ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_char_p))[0] = b"out of memory"
            return code

        return function


class OnCard:
    """Stands for an array on a card, as PyTorch's are."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = self.array.__array_interface__
        keys = ("shape", "typestr", "data", "strides")
        return {**{key: told[key] for key in keys}, "version": 3, "stream": self.stream}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def new_empty(self, shape: tuple[int, ...]) -> OnCard:
        return OnCard(np.full(shape, 7.0, self.array.dtype))

    def __getitem__(self, where: Any) -> OnCard:
        return OnCard(self.array[where])

    def reshape(self, shape: tuple[int, ...]) -> OnCard:
        return OnCard(self.array.reshape(shape))
