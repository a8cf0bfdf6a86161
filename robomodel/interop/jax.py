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
from robomodel.interop.differentiable import (
    Differentiable,
    LibraryFunction,
    columns_of,
    differentiable,
)
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

    def __call__(self, *arguments: Any) -> Any:
        arrays, dtype = self._checked(arguments)
        return self._what.split(_differentiable(self._what, dtype)(*arrays))

    def _checked(self, arguments: Sequence[Any]) -> tuple[list[Array], Dtype]:
        """The arguments, of one type and one batch."""
        self._what.count(arguments)
        arrays = [jnp.asarray(x) for x in arguments]
        kind = jnp.result_type(*arrays, jnp.float32)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"{self._what.name} takes float32 or float64, got {kind}")
        batch = self._what.batch([x.shape for x in arrays], jnp.broadcast_shapes)
        wide = [jnp.broadcast_to(x.astype(kind), (*batch, x.shape[-1])) for x in arrays]
        return wide, "float32" if kind == np.float32 else "float64"


def _differentiable(what: Differentiable, dtype: Dtype) -> Callable[..., Array]:
    """All results' numbers of arguments of one batch, with its rule for derivatives."""
    known: Callable[..., Array] | None = what.kept.get(("jax", dtype))
    if known is not None:
        return known
    value = _call(what.value.compiled(dtype), [*what.sizes, what.size], dtype, what.name)

    def slopes_of(*arguments: Array) -> Array:
        columns = sum(what.sizes)
        sizes = [*what.sizes, what.size * columns]
        flat = _call(what.slopes.compiled(dtype), sizes, dtype, f"{what.name}_slopes")(*arguments)
        return flat.reshape((*flat.shape[:-1], what.size, columns))

    run, slopes = jax.custom_jvp(value), jax.custom_jvp(slopes_of)

    def second(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
        if what.second_obstacle is not None:
            raise NotImplementedError(what.second_obstacle)
        columns = sum(what.sizes)
        sizes = [*what.sizes, what.size, columns**2]
        curved = _call(what.curvature.compiled(dtype), sizes, dtype, f"{what.name}_curvature")
        bent = jax.custom_jvp(curved)
        bent.defjvp(third)
        batch = (*primals[0].shape[:-1], what.size)
        wide = [jnp.broadcast_to(x[..., None, :], (*batch, x.shape[-1])) for x in primals]
        weights = jnp.broadcast_to(jnp.eye(what.size, dtype=dtype), (*batch, what.size))
        each = bent(*wide, weights).reshape((*batch, columns, columns))
        change = jnp.concatenate(tangents, axis=-1)
        return slopes(*primals), jnp.einsum("...ijk,...k->...ij", each, change)

    def third(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(f"third derivatives of '{what.name}' are not available")

    def rule(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
        if what.obstacle is not None:
            raise NotImplementedError(what.obstacle)
        matrix = slopes(*primals)
        total = jnp.zeros(matrix.shape[:-1], dtype)
        for part, change in zip(columns_of(what.sizes), tangents, strict=True):
            if not isinstance(change, jax.custom_derivatives.SymbolicZero):
                total = total + jnp.einsum("...ij,...j->...i", matrix[..., part], change)
        return run(*primals), total

    run.defjvp(rule, symbolic_zeros=True)
    slopes.defjvp(second)
    known = what.kept["jax", dtype] = run
    return known


def _call(
    compiled: Compiled, sizes: Sequence[int], dtype: Dtype, name: str
) -> Callable[..., Array]:
    """A kernel as a foreign function of arrays of one batch."""
    target = _target(compiled, tuple(sizes), dtype, name)

    def call(*arguments: Array) -> Array:
        shape = jax.ShapeDtypeStruct((*arguments[0].shape[:-1], sizes[-1]), dtype)
        found: Array = jax.ffi.ffi_call(target, shape, vmap_method="broadcast_all")(*arguments)
        return found

    return call


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
