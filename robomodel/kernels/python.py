"""Machine code as functions of NumPy and Python, by their C interfaces and without a C compiler."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

CONTEXT = ("ndarray", "new", "call", "forget", "keep", "own", "tuple", "put", "items")
"""What machine code is told the addresses of; of a tuple's items, how far they are within it."""
LENGTH = 16  # byte within a tuple
TYPE, DATA, AXES, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64  # bytes within an array
ORDER, KIND = 26, 28  # bytes within its dtype

_FASTCALL = 0x80  # METH_FASTCALL: arguments as a vector and their number
_NUMPY = {"ndarray": 2, "new": 93, "own": 282}  # entries of NumPy's table: its stable ABI
_PYTHON = {
    "call": "PyObject_Vectorcall",
    "forget": "Py_DecRef",
    "keep": "Py_IncRef",
    "tuple": "PyTuple_New",
    "put": "PyTuple_SetItem",
}


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _table(name: str) -> Any:
    """The addresses that NumPy's C interface of this name holds."""
    capsule = getattr(np._core._multiarray_umath, name)  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))


def ufunc(
    address: int, inputs: int, signature: str, dtype: str = "float64"
) -> tuple[np.ufunc, tuple[object, ...]]:
    """PyUFunc_FromFuncAndDataAndSignature on a loop in memory, and what must live as long."""
    text, number = ctypes.c_char_p, ctypes.c_int
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, text, number, number, number, number,
        text, text, number, text,
    )(_table("_UFUNC_API")[31])  # fmt: skip
    loops, data = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(None)
    types = ctypes.create_string_buffer(bytes([np.dtype(dtype).num] * (inputs + 1)))
    name, doc, signs = b"kernel", b"A compiled kernel.", signature.encode()
    made = make(
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.cast(types, text), 1, inputs, 1, -1,
        name, doc, 0, signs,
    )  # fmt: skip
    return made, (loops, data, types, name, doc, signs)


class Otherwise:
    """What is called where machine code has no answer; it keeps that code alive.

    It must not refer to who calls the code, nor to who keeps that: Python frees what refers to
    each other in no order, and code shall not go before the functions that are made of it.
    """

    def __init__(self, answer: Callable[..., Any], *alive: object) -> None:
        self._answer = answer
        self.alive = [*alive]

    def __call__(self, *arguments: Any) -> Any:
        """The answer to these arguments."""
        return self._answer(*arguments)


def connect(context: int) -> None:
    """Tell machine code where NumPy and Python are."""
    numpy = _table("_ARRAY_API")
    for i, name in enumerate(CONTEXT):
        if name == "items":
            address = _items()
        elif name in _NUMPY:
            address = numpy[_NUMPY[name]]
        else:
            called = getattr(ctypes.pythonapi, _PYTHON[name])
            address = ctypes.cast(called, ctypes.c_void_p).value
        ctypes.c_void_p.from_address(context + 8 * i).value = address


def function(address: int, otherwise: Otherwise) -> Callable[..., Any]:
    """A function of Python's fast calls, of code by :mod:`robomodel.kernels.single`."""
    method = _Method(b"kernel", address, _FASTCALL, None)
    otherwise.alive.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = make(ctypes.addressof(method), otherwise, None)
    return made


def _items() -> int | None:
    """Where a tuple's items begin, which differs between releases of Python."""
    some = (object(), object())
    for offset in range(LENGTH + 8, sys.getsizeof(some), 8):
        found = [ctypes.c_void_p.from_address(id(some) + offset + 8 * i).value for i in (0, 1)]
        if found == [id(x) for x in some]:
            return offset
    return None


@functools.cache
def usual() -> bool:
    """Whether arrays look as :mod:`robomodel.kernels.single` takes them to.

    They do in all releases of NumPy, under CPython as it is usually built.
    """
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False

    def read(of: int, offset: int, kind: Any) -> Any:
        return kind.from_address(of + offset).value

    pointer, number = ctypes.c_void_p, ctypes.c_int
    for array in (np.zeros((2, 3)), np.zeros(3, ">f4")[::2]):
        at, dtype = id(array), id(array.dtype)
        if read(at, TYPE, pointer) != id(np.ndarray):
            return False
        found = (
            read(at, DATA, pointer),
            read(at, AXES, number),
            read(at, DTYPE, pointer),
            read(at, FLAGS, number),
        )
        if found != (array.ctypes.data, array.ndim, dtype, array.flags.num):
            return False
        axes = read(at, SHAPE, pointer)
        if [read(axes, 8 * i, ctypes.c_int64) for i in range(array.ndim)] != [*array.shape]:
            return False
        order, kind = read(dtype, ORDER, ctypes.c_char), read(dtype, KIND, number)
        if (order.decode(), kind) != (array.dtype.byteorder, array.dtype.num):
            return False
    return ctypes.c_int64.from_address(id((1, 2)) + LENGTH).value == 2 and _items() is not None
