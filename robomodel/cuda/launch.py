"""Programs on NVIDIA GPUs: PTX launched through the driver (libcuda).

The driver compiles PTX for its GPU and caches the code. Arrays are passed without copies, by
``__cuda_array_interface__`` or DLPack.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robomodel.cuda.ptx import THREADS, grid_blocks
from robomodel.kernels.program import PRECISIONS, Dtype

CARDS = (2, 13)  # DLPack's device types of CUDA memory, and of CUDA managed memory
STANDARD = 1  # explicit handle of the legacy default stream


# ---- the driver ----------------------------------------------------------------------------------


class NoCardError(RuntimeError):
    """Kernels for NVIDIA's cards cannot run here: there is no driver, or it fails."""


@dataclass(frozen=True)
class Driver:
    """NVIDIA's driver, and the primary contexts of GPUs, which are kept: code is loaded in them."""

    library: Any
    contexts: dict[int, ctypes.c_void_p] = field(default_factory=dict)

    def call(self, name: str, *arguments: Any) -> None:
        """Call one of its functions; raises NoCardError if it reports a failure."""
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            message = (text.value or b"unknown error").decode(errors="replace")
            raise NoCardError(f"NVIDIA's driver: {name}: {message} ({code})")

    def card(self, address: int) -> int:
        """The number of the GPU that holds this memory."""
        card = ctypes.c_int()
        ordinal = ctypes.c_int(9)  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        self.call("cuPointerGetAttribute", ctypes.byref(card), ordinal, ctypes.c_uint64(address))
        return card.value

    def enter(self, card: int) -> None:
        """Make a GPU's primary context, shared with other libraries, current in this thread."""
        if card not in self.contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(card))
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.contexts[card] = context
        self.call("cuCtxPushCurrent_v2", self.contexts[card])

    def leave(self) -> None:
        """Restore the previous context."""
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    @contextmanager
    def on(self, card: int) -> Iterator[None]:
        """A context manager in which a GPU's context is current."""
        self.enter(card)
        try:
            yield
        finally:
            self.leave()


@functools.cache
def driver() -> Driver:
    """The initialised driver; raises NoCardError without a driver or a GPU."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise NoCardError(
            f"kernels of target 'cuda' run on NVIDIA's cards, and their driver ({name}) is not "
            "installed here; 'ptx' is there without it"
        ) from None
    result = Driver(library)
    result.call("cuInit", ctypes.c_uint(0))
    return result


# ---- arrays --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """The memory of an array on a GPU; ``strides`` in numbers. ``owner`` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    writable: bool
    stream: int | None
    owner: object

    @property
    def extent(self) -> tuple[int, int]:
        """Addresses of the first byte and after the last."""
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
    """The view of an array with ``__cuda_array_interface__`` or DLPack; else raises TypeError."""
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _interface(x, interface)
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in CARDS:
        return tensor(x.__dlpack__(stream=stream))
    raise TypeError(
        f"{name} must be an array on the card, with __cuda_array_interface__ or DLPack (CuPy's, "
        f"PyTorch's, JAX's …), got {type(x).__module__}.{type(x).__qualname__}"
    )


def _interface(x: Any, interface: Mapping[str, Any]) -> View:
    kinds = {"<f4": "float32", "<f8": "float64"}
    dtype = kinds.get(interface["typestr"], interface["typestr"])
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    size = int(interface["typestr"][2:])
    steps = rows(shape) if strides is None else tuple(s // size for s in strides)
    address, locked = interface["data"]
    return View(address or 0, shape, steps, dtype, not locked, interface.get("stream"), x)


def tensor(capsule: Any) -> View:
    """The view of a capsule of ``__dlpack__``, which remains the owner."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    fields = _Tensor.from_address(pointer(capsule, b"dltensor"))
    axes = range(fields.ndim)
    shape = tuple(fields.shape[i] for i in axes)
    strides = tuple(fields.strides[i] for i in axes) if fields.strides else rows(shape)
    kinds = {(2, 32, 1): "float32", (2, 64, 1): "float64"}
    kind = (fields.code, fields.bits, fields.lanes)
    dtype = kinds.get(kind, f"DLPack's {kind}")
    return View((fields.data or 0) + fields.offset, shape, strides, dtype, True, None, capsule)


@functools.lru_cache(512)
def rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of contiguous rows."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def step(name: str, x: View, batch: tuple[int, ...]) -> int:
    """The stride from one row of a batch to the next, in numbers."""
    found = _step(x.shape, x.strides, batch)
    if found is None:
        raise ValueError(f"rows of {name} do not stand evenly in memory; make it contiguous")
    return found


@functools.lru_cache(512)
def _step(shape: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...]) -> int | None:
    missing = len(batch) - (len(shape) - 1)
    steps = [0] * missing + [0 if n == 1 else s for n, s in zip(shape[:-1], strides, strict=False)]
    axes = [(n, s) for n, s in zip(batch, steps, strict=True) if n != 1]
    even = all(s == n * t for (_, s), (n, t) in itertools.pairwise(axes))
    if not even or (shape[-1] > 1 and strides[-1] != 1):
        return None
    return axes[-1][1] if axes else 0


def merged(name: str, x: View) -> View:
    """An array with its last two axes merged, whose rows must be contiguous."""
    times, size = x.shape[-2:]
    if (times > 1 and x.strides[-2] != size) or (size > 1 and x.strides[-1] != 1):
        raise ValueError(f"rows of {name} do not stand evenly in memory; make it contiguous")
    return replace(x, shape=(*x.shape[:-2], times * size), strides=(*x.strides[:-2], 1))


# ---- new arrays ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CardArray:
    """An array on a GPU that belongs to no library, for others by DLPack or its interface.

    It is computed on ``stream``, for which users must wait. Its memory is freed with the last array
    that refers to it; slices share it.
    """

    memory: CardMemory
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int = 0

    @property
    def dtype(self) -> str:
        """The precision of its numbers."""
        return self.memory.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = PRECISIONS[self.dtype].bytes
        address = self.memory.address + size * self.first
        strides = tuple(size * s for s in self.strides)
        return {"shape": self.shape, "typestr": f"<f{size}", "data": (address, False),
                "strides": strides, "version": 3, "stream": self.memory.stream}  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return CARDS[0], self.memory.card

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A capsule of version 0, which all libraries accept; ``stream``: it waits (-1: none)."""
        if stream not in (-1, self.memory.stream):
            self.memory.wait()
        return _capsule(self)

    def __getitem__(self, where: Any) -> CardArray:
        """A slice of the last axis: ``x[..., a:b]``."""
        start, stop, _ = where[-1].indices(self.shape[-1])
        return replace(self, shape=(*self.shape[:-1], stop - start), first=self.first + start)

    def reshape(self, shape: tuple[int, ...]) -> CardArray:
        """The array with its last axis split into several."""
        axes = shape[len(self.shape) - 1 :]
        return replace(self, shape=shape, strides=(*self.strides[:-1], *rows(axes)))


@dataclass
class CardMemory:
    """Memory on a GPU that is freed with this object."""

    driver: Driver
    card: int
    count: int
    dtype: Dtype
    stream: int
    address: int = 0

    def __post_init__(self) -> None:
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(max(1, self.count) * PRECISIONS[self.dtype].bytes)
        with self.driver.on(self.card):
            self.driver.call("cuMemAlloc_v2", ctypes.byref(address), size)
        self.address = address.value

    def wait(self) -> None:
        """Wait until the stream has finished."""
        with self.driver.on(self.card):
            self.driver.call("cuStreamSynchronize", ctypes.c_void_p(self.stream))

    def __del__(self) -> None:
        if self.address:
            with self.driver.on(self.card):  # waits for all work that uses it
                self.driver.call("cuMemFree_v2", ctypes.c_uint64(self.address))


def empty(x: Any, shape: tuple[int, ...], dtype: Dtype, place: tuple[Driver, int, int]) -> Any:
    """A new array on the same GPU, of the library of ``x`` if that can create one.

    ``place``: the driver, the GPU, the stream. Otherwise a :class:`CardArray`.
    """
    if hasattr(x, "new_empty"):  # PyTorch's
        return x.new_empty(shape)
    if _library(x) == "cupy":
        return sys.modules["cupy"].empty(shape, x.dtype)
    driver, card, stream = place
    memory = CardMemory(driver, card, math.prod(shape), dtype, stream)
    return CardArray(memory, shape, rows(shape))


def handed(x: Any, result: Any) -> Any:
    """A result as an array of the library of ``x``: JAX takes it by DLPack."""
    if isinstance(result, CardArray) and _library(x) in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.from_dlpack(result)
    return result


# ---- export by DLPack ----------------------------------------------------------------------------


class _Managed(ctypes.Structure):
    """DLPack's tensor with its deleter."""

    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


_exported: dict[int, tuple[object, ...]] = {}  # kept alive until their users release them


def _forget(address: int) -> None:
    _exported.pop(address, None)


def _drop(capsule: int) -> None:
    """Destroy a capsule, and its array unless another library has taken ownership."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
    if valid(capsule, NAME):
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        _forget(pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, NAME))


NAME = b"dltensor"
_done, _unused = (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(f) for f in (_forget, _drop))


def _capsule(x: CardArray) -> Any:
    axes = ctypes.c_int64 * len(x.shape)
    shape, strides = axes(*x.shape), axes(*x.strides)
    size = PRECISIONS[x.dtype].bytes
    tensor = _Tensor(
        x.memory.address + size * x.first, (CARDS[0], x.memory.card), len(x.shape),
        2, 8 * size, 1, shape, strides, 0,
    )  # fmt: skip
    managed = _Managed(tensor, None, _done)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, strides, x)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, NAME, ctypes.cast(_unused, ctypes.c_void_p))


# ---- streams -------------------------------------------------------------------------------------


def stream_of(stream: Any, arguments: Sequence[Any]) -> int:
    """The handle of a stream (an int, or CuPy's, PyTorch's …); None: the library's current one."""
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


__all__ = ["CompiledPtx", "Driver", "NoCardError", "driver"]


@dataclass(frozen=True)
class CompiledPtx:
    """PTX with its entry; ``sizes``: row lengths of the arguments by name.

    The argument ``timed``, if any, has a row for each time.
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
        """Enqueue a launch; returns the array of results, with ``shape`` after the batch axes.

        With a ``timed`` argument, results have one more row than there are times, before the last
        axis; ``numbers`` are the entry's last parameters.
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
        if out is not None:
            self._fits(place, (*batch, *shape), views)
        steps = [ctypes.c_int64(step(n, x, batch)) for n, x in views.items()]
        count = math.prod(batch)
        if count and math.prod(shape):  # otherwise there is nothing to compute
            self._launch(card, [*views.values(), place], [*steps, ctypes.c_int64(count), *last],
                         count, handle)  # fmt: skip
        return handed(arguments[0], result)

    def _checked(self, views: Mapping[str, View]) -> tuple[int, ...]:
        """The batch shape of the arguments; raises for wrong types or shapes."""
        batch: tuple[int, ...] = ()
        for name, x in views.items():
            size, axes = self.sizes[name], 2 if name == self.timed else 1
            if x.dtype != self.dtype:
                raise TypeError(f"{name} must be of {self.dtype} as the kernel is, got {x.dtype}")
            if len(x.shape) < axes or x.shape[-1] != size:
                expected = f"(..., T, {size})" if axes == 2 else f"(..., {size})"
                raise ValueError(f"{name} must have the shape {expected}, got {x.shape}")
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
        values_at = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        grid = (grid_blocks(self.ptx, count), 1, 1, THREADS, 1, 1, 0)
        dimensions = [ctypes.c_uint(n) for n in grid]
        with card.on(number):
            for other in {x.stream for x in views} - {None, stream}:
                card.call("cuStreamSynchronize", ctypes.c_void_p(other))
            function = self._function(card, number)
            card.call(
                "cuLaunchKernel", function, *dimensions, ctypes.c_void_p(stream), values_at, None
            )

    def _function(self, card: Driver, number: int) -> ctypes.c_void_p:
        """The entry in the current context, which must be this GPU's."""
        with self._lock:
            if number not in self._functions:
                module, function = ctypes.c_void_p(), ctypes.c_void_p()
                card.call("cuModuleLoadData", ctypes.byref(module), self.ptx.encode() + b"\0")
                name = self.entry.encode()
                card.call("cuModuleGetFunction", ctypes.byref(function), module, name)
                self._functions[number] = function
            return self._functions[number]


def _broadcast(name: str, batch: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    if batch == other:
        return batch
    try:
        return np.broadcast_shapes(batch, other)
    except ValueError:
        raise ValueError(f"{name} has the batch {other}, others have {batch}") from None
