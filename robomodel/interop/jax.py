"""Robots' functions in JAX: ``jit``, ``vmap``, ``scan``, and gradients in both modes.

The compiled kernel is a target of XLA's foreign function interface, on processors; nothing is
traced into XLA, which would take minutes to compile. Derivatives are those of
:mod:`robomodel.interop.differentiable`: q counts as plain numbers, of which changes along closed
motions matter; a quaternion's length, and the dependent joints of loops, do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.errors import MissingPackageError
from robomodel.interop.differentiable import Differentiable, LibraryFunction, differentiable
from robomodel.kernels import xla
from robomodel.kernels.compile import Compiled
from robomodel.kernels.precision import Dtype
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
"""What must live as long as the process: XLA keeps the addresses of targets for good."""


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of JAX arrays: ``function(model, "aba")(q, v, tau)``.

    Arguments (..., n) broadcast; a result is (..., *shape), several are a tuple. All of them are
    float64, or float32 as JAX has it unless ``jax_enable_x64`` is set. Runs on processors only.

    It can be compiled, mapped over axes and differentiated, forward and backwards; of "rnea" and
    "aba" by their derivative algorithms. q (..., nq) is first brought to unit quaternions and, by
    one step of Newton's, to closed loops, which leaves closed configurations as they are; gradients
    by q are of that function, so their part along a quaternion, and at the dependent joints of
    loops, is zero. There are second derivatives too, but with ``passive=True``; third ones, and
    those of functions that are derivatives themselves, raise NotImplementedError.

    Args:
        model: The robot.
        name: As of :func:`robomodel.compile` ("rnea", "aba", "crba", "frame_pose" with a ``frame``
            and so on), or "integrate", "close", "joint_positions", "joint_velocities".
        **options: As of :func:`robomodel.compile`.

    Returns:
        function: The function of arrays.

    Raises:
        ValueError: What cannot be had.
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
    """Arguments of one batch → (..., *what.shape(order)), with the rule for the next order."""
    program = what.derivative(order)
    known: Callable[..., Array] | None = what.kept.get((f"jax {order}", dtype))
    if known is not None:
        return known
    target = _target(program.compiled(dtype), program.sizes, dtype, program.name)

    def call(*arguments: Array) -> Array:
        batch = rows = arguments[0].shape[:-1]
        if order == 2:  # a Hessian of each result
            rows = (*batch, what.size)
            weights = jnp.broadcast_to(jnp.eye(what.size, dtype=dtype), (*rows, what.size))
            wide = (jnp.broadcast_to(x[..., None, :], (*rows, x.shape[-1])) for x in arguments)
            arguments = (*wide, weights)
        shape = jax.ShapeDtypeStruct((*rows, program.size), dtype)
        flat = jax.ffi.ffi_call(target, shape, vmap_method="broadcast_all")(*arguments)
        result: Array = flat.reshape((*batch, *what.shape(order)))
        return result

    run: Callable[..., Array] = jax.custom_jvp(call)
    what.kept[f"jax {order}", dtype] = run

    def rule(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
        slopes = _derivative(what, order + 1, dtype)(*primals)
        change = jnp.concatenate(tangents, axis=-1)
        column = change.reshape((*change.shape[:-1], *[1] * order, what.total, 1))
        return run(*primals), (slopes @ column)[..., 0]

    run.defjvp(rule)  # type: ignore[attr-defined]
    return run


def _target(compiled: Compiled, sizes: Sequence[int], dtype: Dtype, name: str) -> str:
    """The name under which XLA knows a kernel."""
    known = _targets.get(compiled.loop)
    if known is None:
        address, alive = xla.handler(compiled, sizes, dtype)
        known = f"robomodel_{name}_{next(_numbers)}"
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(address))
        jax.ffi.register_ffi_target(known, capsule, platform="cpu")
        _alive.append(alive)
        _targets[compiled.loop] = known
    return known
