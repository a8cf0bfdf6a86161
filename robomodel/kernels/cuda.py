"""Programs on NVIDIA's cards: PTX launched through the driver.

The driver's library (libcuda) is called by ctypes when a kernel first is; it makes machine code of
PTX for the card it finds, and keeps it. Arrays stay whose they are: nothing is copied.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robomodel.kernels import ptx
from robomodel.kernels.precision import PRECISIONS, Dtype

CARDS = (2, 13)  # DLPack's numbers of CUDA's memory, and of such that processors share
STANDARD = 1  # the stream that waits for others, by its explicit handle


class NoCardError(RuntimeError):
    """Kernels for NVIDIA's cards cannot run here: there is no driver, or it fails."""


# ---- the driver ----------------------------------------------------------------------------------


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


# ---- arrays --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """Where an array on a card lies; ``strides`` in numbers. ``owner`` keeps what it must."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    writable: bool
    stream: int | None
    owner: object

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte and the one behind the last."""
        if 0 in self.shape:
            return self.address, self.address
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        size = PRECISIONS[self.dtype].bytes
        last = self.address + size * (1 + sum(x for x in reach if x > 0))
        return self.address + size * sum(x for x in reach if x < 0), last


class _Tensor(ctypes.Structure):
    """DLPack's."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def view(x: Any, name: str, stream: int) -> View:
    """Of an array with ``__cuda_array_interface__``, or else by DLPack; TypeError of others."""
    told = getattr(x, "__cuda_array_interface__", None)
    if told is not None:
        return _interface(x, told)
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in CARDS:
        return tensor(x.__dlpack__(stream=stream))
    raise TypeError(
        f"{name} must be an array on the card, with __cuda_array_interface__ or DLPack (CuPy's, "
        f"PyTorch's, JAX's …), got {type(x).__module__}.{type(x).__qualname__}"
    )


def _interface(x: Any, told: Mapping[str, Any]) -> View:
    kinds = {"<f4": "float32", "<f8": "float64"}
    dtype = kinds.get(told["typestr"], told["typestr"])
    shape, strides = tuple(told["shape"]), told.get("strides")
    size = int(told["typestr"][2:])
    steps = _rows(shape) if strides is None else tuple(s // size for s in strides)
    address, locked = told["data"]
    return View(address or 0, shape, steps, dtype, not locked, told.get("stream"), x)


def tensor(capsule: Any) -> View:
    """Of what ``__dlpack__`` gives, which stays the capsule's."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found = _Tensor.from_address(pointer(capsule, b"dltensor"))
    axes = range(found.ndim)
    shape = tuple(found.shape[i] for i in axes)
    strides = tuple(found.strides[i] for i in axes) if found.strides else _rows(shape)
    kinds = {(2, 32, 1): "float32", (2, 64, 1): "float64"}
    kind = (found.code, found.bits, found.lanes)
    dtype = kinds.get(kind, f"DLPack's {kind}")
    return View((found.data or 0) + found.offset, shape, strides, dtype, True, None, capsule)


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of rows one behind the other."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def step(name: str, x: View, batch: tuple[int, ...]) -> int:
    """How many numbers one row of a batch stands behind the one before."""
    missing = len(batch) - (len(x.shape) - 1)
    strides = [0] * missing + [
        0 if n == 1 else s for n, s in zip(x.shape[:-1], x.strides, strict=False)
    ]
    axes = [(n, s) for n, s in zip(batch, strides, strict=True) if n != 1]
    even = all(s == n * t for (_, s), (n, t) in itertools.pairwise(axes))
    if not even or (x.shape[-1] > 1 and x.strides[-1] != 1):
        raise ValueError(f"rows of {name} do not stand evenly in memory; make it contiguous")
    return axes[-1][1] if axes else 0


def empty(x: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the same kind, of the same type and on the same card."""
    if hasattr(x, "new_empty"):  # PyTorch's
        return x.new_empty(shape)
    if _library(x) == "cupy":
        return sys.modules["cupy"].empty(shape, x.dtype)
    raise TypeError(
        f"new arrays of {type(x).__module__}.{type(x).__qualname__} are not known how to be made; "
        "give out="
    )


def stream_of(stream: Any, arguments: Sequence[Any]) -> int:
    """The handle of a stream (an int, or CuPy's, PyTorch's …); None: the arrays' library's own."""
    if stream is None:
        for x in arguments:
            if _library(x) == "torch" and x.is_cuda:
                return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream) or 1
            if _library(x) == "cupy":
                return int(sys.modules["cupy"].cuda.get_current_stream().ptr) or 1
        return STANDARD
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1]) or STANDARD
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    if not isinstance(stream, int):
        raise TypeError(f"stream must be a stream or its handle, got {type(stream).__name__}")
    return stream or STANDARD


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


# ---- kernels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """PTX with its entry; ``sizes`` of the arguments' rows by name, and of the result's."""

    ptx: str
    entry: str
    sizes: Mapping[str, int]
    size: int
    dtype: Dtype
    _functions: dict[int, ctypes.c_void_p] = field(default_factory=dict, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def __call__(
        self, arguments: Sequence[Any], shape: tuple[int, ...], out: Any = None, stream: Any = None
    ) -> Any:
        """Enqueue a launch; the array that gets the results, of this shape after the batch's."""
        card = driver()
        handle = stream_of(stream, arguments)
        views = [view(x, n, handle) for x, n in zip(arguments, self.sizes, strict=True)]
        batch = self._checked(views)
        result = empty(arguments[0], (*batch, *shape)) if out is None else out
        place = view(result, "out", handle)
        self._fits(place, (*batch, *shape), views)
        steps = [step(n, x, batch) for n, x in zip(self.sizes, views, strict=True)]
        count = math.prod(batch)
        if count:
            self._launch(card, [*views, place], steps, count, handle)
        return result

    def _checked(self, views: Sequence[View]) -> tuple[int, ...]:
        """The batch of arguments of the right types and lengths."""
        batch: tuple[int, ...] = ()
        for (name, size), x in zip(self.sizes.items(), views, strict=True):
            if x.dtype != self.dtype:
                raise TypeError(f"{name} must be of {self.dtype} as the kernel is, got {x.dtype}")
            if not x.shape or x.shape[-1] != size:
                raise ValueError(f"{name} must have the shape (..., {size}), got {x.shape}")
            batch = _broadcast(name, batch, x.shape[:-1])
        return batch

    def _fits(self, out: View, shape: tuple[int, ...], views: Sequence[View]) -> None:
        if out.dtype != self.dtype or not out.writable:
            got = out.dtype if out.writable else "one that is read-only"
            raise TypeError(f"out must be a writable array of {self.dtype}, got {got}")
        if out.shape != shape:
            raise ValueError(f"out must have the shape {shape}, got {out.shape}")
        rows = zip(shape, out.strides, _rows(shape), strict=True)
        if any(s != t for n, s, t in rows if n > 1) and 0 not in shape:
            raise ValueError("out must be contiguous")
        first, last = out.extent
        for name, x in zip(self.sizes, views, strict=True):
            begin, end = x.extent
            if begin < last and first < end:
                raise ValueError(f"out must not share memory with {name}")

    def _launch(
        self, card: Driver, views: Sequence[View], steps: Sequence[int], count: int, stream: int
    ) -> None:
        numbers = {card.card(x.address) for x in views if x.address}
        if len(numbers) > 1:
            raise ValueError(f"arrays are on different cards: {sorted(numbers)}")
        (number,) = numbers
        values = [
            *(ctypes.c_void_p(x.address) for x in views),
            *(ctypes.c_int64(x) for x in (*steps, count)),
        ]
        given = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        blocks = [ctypes.c_uint(n) for n in (-(-count // ptx.THREADS), 1, 1, ptx.THREADS, 1, 1, 0)]
        card.enter(number)
        try:
            for other in {x.stream for x in views} - {None, stream}:
                card.call("cuStreamSynchronize", ctypes.c_void_p(other))
            function = self._function(card, number)
            card.call("cuLaunchKernel", function, *blocks, ctypes.c_void_p(stream), given, None)
        finally:
            card.leave()

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
