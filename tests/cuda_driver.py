"""A stand-in for the driver, which runs PTX by an interpreter."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from ptx_interpreter import Launch

from robomodel.cuda import ptx
from robomodel.kernels.function import CudaKernel


def arguments_of(kernel: CudaKernel, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    q = np.array([kernel.model.random_configuration(rng) for _ in range(count)])
    found = [q if name == "q" else rng.normal(size=(count, n)) for name, n in kernel.sizes.items()]
    return [x.astype(kernel.dtype) for x in found]


class Card:
    """Stands for the driver's library: what is launched runs here, at once."""

    def __init__(self, text: str | None = None, pointers: int = 4) -> None:
        """``pointers``: how many parameters are addresses; they come first."""
        self.text, self.pointers = text, pointers
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
                values = [ctypes.c_uint64.from_address(x).value for x in given]
                assert blocks == ptx.grid_blocks(self.text, values[2 * self.pointers - 1])
                self.streams.append(stream.value)
                (entry,) = re.findall(r"\.entry (\w+)", self.text)
                Launch(self.text, entry, values, blocks, size)
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
