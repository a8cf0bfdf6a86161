"""Robots' functions in JAX: ``jit``, ``vmap``, ``scan``, and gradients in both modes.

The compiled kernel is a target of XLA's foreign function interface, on CPUs, without a C compiler.
Nothing is traced into XLA, which would take minutes to compile. For derivatives see
:mod:`robomodel.interop.differentiable`: they are with respect to the numbers of q, projected to
closed motions; a quaternion's length and the dependent joints of loops have no effect.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.errors import MissingPackageError
from robomodel.interop.differentiable import Differentiable, LibraryFunction, differentiable
from robomodel.kernels.compile import CompiledUfunc
from robomodel.kernels.llvm import machine
from robomodel.kernels.program import PRECISIONS, Dtype
from robomodel.model.model import Model

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingPackageError("robomodel.jax needs", "jax", "jax") from error

if TYPE_CHECKING:
    from jax import Array

__all__ = ["function"]

_targets: dict[int, str] = {}
_alive: list[object] = []
_numbers = count()
"""Objects that live as long as the process: XLA never releases the addresses of targets."""


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of JAX arrays: ``function(model, "aba")(q, v, tau)``.

    Arguments (..., n) broadcast; a result is (..., *shape), several are a tuple. All are float64,
    or float32 as is JAX's default unless ``jax_enable_x64`` is set. Runs on CPUs only.

    The function can be compiled, vectorised and differentiated in both modes; "rnea" and "aba" use
    their derivative algorithms. q (..., nq) is first projected to unit quaternions and, by one
    Newton step, to closed loops, which does not change closed configurations; gradients by q are of
    that function, so components along a quaternion and at dependent joints of loops are zero.
    Second derivatives exist unless ``passive=True``; third ones, and derivatives of functions that
    are derivatives themselves, raise NotImplementedError.

    Args:
        model: The robot.
        name: As for :func:`robomodel.compile` ("rnea", "aba", "crba", "frame_pose" with a ``frame``
            and so on), or "integrate", "close", "joint_positions", "joint_velocities".
        **options: As for :func:`robomodel.compile`.

    Returns:
        function: The function of arrays.

    Raises:
        ValueError: The function or an option is unknown or not available.
    """
    return _Function(differentiable(model, name, options))


class _Function(LibraryFunction):
    library = "JAX"
    broadcast_shapes = staticmethod(jnp.broadcast_shapes)
    broadcast_to = staticmethod(jnp.broadcast_to)

    def converted(self, arguments: Sequence[Any]) -> tuple[list[Array], Dtype]:
        arrays = [jnp.asarray(x) for x in arguments]
        kind = jnp.result_type(*arrays, jnp.float32)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"{self.__name__} takes float32 or float64, got {kind}")
        return [x.astype(kind) for x in arrays], "float32" if kind == np.float32 else "float64"

    def function(self, dtype: Dtype) -> Callable[..., Array]:
        return _derivative(self._what, 0, dtype)


def _derivative(what: Differentiable, order: int, dtype: Dtype) -> Callable[..., Array]:
    """A function to derivatives (..., *what.shape(order)), with the rule for the next order."""
    program = what.derivative(order)
    run: Callable[..., Array] | None = what.cache.get((f"jax {order}", dtype))
    if run is not None:
        return run
    target = _target(program.compiled(dtype), program.sizes, dtype, program.name)

    def call(*arguments: Array) -> Array:
        batch = rows = arguments[0].shape[:-1]
        if order == 2:  # one Hessian per result
            rows = (*batch, what.size)
            weights = jnp.broadcast_to(jnp.eye(what.size, dtype=dtype), (*rows, what.size))
            wide = (jnp.broadcast_to(x[..., None, :], (*rows, x.shape[-1])) for x in arguments)
            arguments = (*wide, weights)
        shape = jax.ShapeDtypeStruct((*rows, program.size), dtype)
        flat = jax.ffi.ffi_call(target, shape, vmap_method="broadcast_all")(*arguments)
        result: Array = flat.reshape((*batch, *what.shape(order)))
        return result

    with_rule: Any = jax.custom_jvp(call)
    run = what.cache[f"jax {order}", dtype] = with_rule

    def rule(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
        slopes = _derivative(what, order + 1, dtype)(*primals)
        change = jnp.concatenate(tangents, axis=-1)
        column = change.reshape((*change.shape[:-1], *[1] * order, what.total, 1))
        return with_rule(*primals), (slopes @ column)[..., 0]

    with_rule.defjvp(rule)
    return run


def _target(compiled: CompiledUfunc, sizes: Sequence[int], dtype: Dtype, name: str) -> str:
    """Register a kernel with XLA; returns the target's name."""
    target = _targets.get(compiled.loop)
    if target is None:
        address, alive = _handler(compiled, sizes, dtype)
        target = f"robomodel_{name}_{next(_numbers)}"
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(address))
        jax.ffi.register_ffi_target(target, capsule, platform="cpu")
        _alive.append(alive)
        _targets[compiled.loop] = target
    return target


# ---- XLA's foreign function interface ------------------------------------------------------------

# offsets in bytes of its C API, major version 0: in the call frame, the API's table, and a buffer
FRAME_EXTENSION, FRAME_API, FRAME_STAGE, FRAME_ARGUMENTS, FRAME_RESULTS = 8, 16, 32, 72, 112
API_VERSION = 32
BUFFER_DATA, BUFFER_RANK, BUFFER_DIMENSIONS = 24, 32, 40
EXECUTE = 3  # the stage of a call that computes results


def _handler(
    kernel: CompiledUfunc, sizes: Sequence[int], dtype: Dtype
) -> tuple[int, tuple[object, ...]]:
    """The address of a handler that runs the kernel's loop over all rows, and objects to keep
    alive.

    XLA calls it with a frame that refers to the memory of the arguments and the result. Arrays are
    contiguous (..., size) with the same leading axes, which the caller ensures. ``sizes`` are those
    of the kernel's program.
    """
    text = _handler_ir(kernel.loop, sizes, PRECISIONS[dtype].bytes)
    codes = machine.object_codes([text], lambda _: None)
    alive, address = machine.load(codes, "handler")
    return address, (alive, kernel)


def _field(name: str, record: str, offset: int, kind: str = "ptr") -> tuple[str, str]:
    """IR that loads a field of a record, ``offset`` bytes after its beginning."""
    place = f"%{name}.at = getelementptr i8, ptr %{record}, i64 {offset}"
    return place, f"%{name} = load {kind}, ptr %{name}.at"


def _metadata_ir() -> list[str]:
    """IR that answers XLA's query for the handler's metadata: the version is XLA's own."""
    return [
        "extended:",
        *_field("kind", "extension", 8, "i32"),
        "%metadata.query = icmp eq i32 %kind, 1",
        "br i1 %metadata.query, label %answer, label %run",
        "answer:",
        *_field("metadata", "extension", 24),
        *_field("api", "frame", FRAME_API),
        "%no.api = icmp eq ptr %api, null",  # older JAX, of version 0.1
        f"%newer.at = getelementptr i8, ptr %api, i64 {API_VERSION}",
        "%version.at = select i1 %no.api, ptr %old, ptr %newer.at",
        "%version = load i64, ptr %version.at",
        "%version.to = getelementptr i8, ptr %metadata, i64 24",
        "store i64 %version, ptr %version.to, align 4",
        "%traits.at = getelementptr i8, ptr %metadata, i64 32",
        "store i32 0, ptr %traits.at",
        "ret ptr null",
    ]


def _handler_ir(loop: int, sizes: Sequence[int], width: int) -> str:
    """IR of ``XLA_FFI_Error *handler(XLA_FFI_CallFrame *)``; null means success."""
    count = len(sizes)
    lines = [
        "define ptr @handler(ptr %frame) {",
        "entry:",
        f"%args = alloca [{count} x ptr]",
        "%dims = alloca [1 x i64]",
        "%old = alloca i64",
        f"store i64 {1 << 32}, ptr %old",
        f"%steps = alloca [{2 * count} x i64]",
        *_field("extension", "frame", FRAME_EXTENSION),
        "%plain = icmp eq ptr %extension, null",
        "br i1 %plain, label %run, label %extended",
        *_metadata_ir(),
        "run:",
        *_field("stage", "frame", FRAME_STAGE, "i32"),
        f"%now = icmp eq i32 %stage, {EXECUTE}",
        "br i1 %now, label %rows.before, label %done",
        "rows.before:",
        *_field("arguments", "frame", FRAME_ARGUMENTS),
        *_field("results", "frame", FRAME_RESULTS),
    ]
    for k, size in enumerate(sizes):
        of, i = ("arguments", k) if k < count - 1 else ("results", 0)
        lines += [
            f"%buffer.at{k} = getelementptr ptr, ptr %{of}, i64 {i}",
            f"%buffer{k} = load ptr, ptr %buffer.at{k}",
            *_field(f"data{k}", f"buffer{k}", BUFFER_DATA),
            f"%arg{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"store ptr %data{k}, ptr %arg{k}",
            f"%outer{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"store i64 {size * width}, ptr %outer{k}",
            f"%inner{k} = getelementptr i64, ptr %steps, i64 {count + k}",
            f"store i64 {width}, ptr %inner{k}",
        ]
    result = count - 1
    return "\n".join([
        *lines,
        *_field("rank", f"buffer{result}", BUFFER_RANK, "i64"),
        *_field("shape", f"buffer{result}", BUFFER_DIMENSIONS),
        "%leading = sub i64 %rank, 1",
        "br label %rows",
        "rows:",
        "%axis = phi i64 [0, %rows.before], [%axis.next, %row]",
        "%n = phi i64 [1, %rows.before], [%n.next, %row]",
        "%more = icmp slt i64 %axis, %leading",
        "br i1 %more, label %row, label %call",
        "row:",
        "%length.at = getelementptr i64, ptr %shape, i64 %axis",
        "%length = load i64, ptr %length.at",
        "%n.next = mul i64 %n, %length",
        "%axis.next = add i64 %axis, 1",
        "br label %rows",
        "call:",
        "store i64 %n, ptr %dims",
        f"%loop = inttoptr i64 {loop} to ptr",
        "call void %loop(ptr %args, ptr %dims, ptr %steps, ptr null)",
        "br label %done",
        "done:",
        "ret ptr null",
        "}",
        "",
    ])  # fmt: skip
