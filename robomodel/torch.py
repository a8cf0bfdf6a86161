"""Robots' functions in PyTorch: autograd in both modes, ``vmap``, ``torch.compile``.

The compiled kernel is a custom operator on processors; it reads and writes tensors' own memory.
Derivatives are those of :mod:`robomodel.differentiable`: q counts as plain numbers, of which
changes along closed motions matter; a quaternion's length, and the dependent joints of loops, do
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.differentiable import Differentiable, columns_of, differentiable
from robomodel.errors import MissingPackageError
from robomodel.kernels.precision import Dtype
from robomodel.model.model import Model

try:
    import torch
except ImportError as error:
    raise MissingPackageError("robomodel.torch needs", "torch", "torch") from error

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["function"]

_numbers = count()  # operators' names are the process's


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of tensors: ``function(model, "aba")(q, v, tau)``.

    ``name`` and ``options`` as of :func:`robomodel.compile` ("rnea", "aba", "crba", "frame_pose"
    with a ``frame`` and so on), or "integrate", "close", "joint_positions", "joint_velocities".
    Arguments (..., n) broadcast, without copies; a result is (..., *shape), several are a tuple.
    Tensors are float64 or float32, on the processor.

    Gradients, forward and backwards, are those of :func:`robomodel.jax.function`: q is first
    brought to unit quaternions and closed loops, which leaves closed configurations as they are.
    Second derivatives, and those of functions that are derivatives themselves, raise
    NotImplementedError. ValueError for what cannot be had.
    """
    return _Function(differentiable(model, name, options))


class _Function:
    """A function, which compiles what it is asked for."""

    def __init__(self, what: Differentiable) -> None:
        self._what = what
        self.__name__ = what.name
        self.__doc__ = what.routine.said

    def __repr__(self) -> str:
        return f"<PyTorch function {self._what.name} of '{self._what.model.name}'>"

    def __call__(self, *arguments: Any) -> Any:
        tensors, dtype = self._checked(arguments)
        return self._what.split(_differentiable(self._what, dtype)(*tensors))

    def _checked(self, arguments: Sequence[Any]) -> tuple[list[Tensor], Dtype]:
        """The arguments, of one type and one batch."""
        name, sizes = self._what.name, self._what.routine.arguments
        self._what.count(arguments)
        tensors = [torch.as_tensor(x) for x in arguments]
        kind = tensors[0].dtype
        for x, (argument, size) in zip(tensors, sizes.items(), strict=True):
            if x.dtype not in (torch.float32, torch.float64):
                raise TypeError(f"{argument} must be float32 or float64, got {x.dtype}")
            if x.device.type != "cpu":
                raise ValueError(f"{name} runs on the processor; {argument} is on {x.device}")
            if x.ndim == 0 or x.shape[-1] != size:
                raise ValueError(f"{argument} must have the shape (..., {size}), got "
                                 f"{tuple(x.shape)}")  # fmt: skip
            kind = torch.promote_types(kind, x.dtype)
        try:
            batch = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
        except RuntimeError:
            shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in zip(sizes, tensors, strict=True))
            raise ValueError(f"batch axes do not broadcast: {shapes}") from None
        wide = [x.to(kind).expand(*batch, x.shape[-1]) for x in tensors]
        return wide, "float32" if kind == torch.float32 else "float64"


def _differentiable(what: Differentiable, dtype: Dtype) -> Callable[..., Tensor]:
    """All results' numbers of arguments of one batch, with its rules for derivatives."""
    known: Callable[..., Tensor] | None = what.kept.get(("torch", dtype))
    if known is None:
        known = what.kept["torch", dtype] = torch.compiler.disable(_made)(what, dtype)
    return known


def _made(what: Differentiable, dtype: Dtype) -> Callable[..., Tensor]:
    total = sum(what.sizes)
    value = _operator(what, "value", dtype, (what.size,))
    columns = columns_of(what.sizes)

    def slopes(*arguments: Tensor) -> Tensor:
        if what.obstacle is not None:
            raise NotImplementedError(what.obstacle)
        if ("torch slopes", dtype) not in what.kept:
            made = torch.compiler.disable(_operator)(what, "slopes", dtype, (what.size, total))
            what.kept["torch slopes", dtype] = _constant(made, what.name)
        found: Tensor = what.kept["torch slopes", dtype](*arguments)
        return found

    def setup_context(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        matrix = slopes(*ctx.saved_tensors)
        return tuple(
            (cotangent.unsqueeze(-2) @ matrix[..., part]).squeeze(-2) if needed else None
            for part, needed in zip(columns, ctx.needs_input_grad, strict=True)
        )

    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        matrix = slopes(*ctx.saved_tensors)
        parts = [
            (matrix[..., part] @ change.unsqueeze(-1)).squeeze(-1)
            for part, change in zip(columns, tangents, strict=True)
            if change is not None
        ]
        return torch.stack(parts).sum(dim=0)

    made: Callable[..., Tensor] = _apply("Kernel", value, setup_context, backward, jvp)
    return made


def _constant(operator: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """An operator that says why it cannot be differentiated."""

    def setup_context(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
        """Nothing is kept."""

    def refuse(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(f"second derivatives of '{name}' are not available")

    made: Callable[..., Tensor] = _apply("Slopes", operator, setup_context, refuse, refuse)
    return made


def _apply(name: str, forward: Any, setup_context: Any, backward: Any, jvp: Any) -> Any:
    """What applies a function with these rules; its parts have rules for ``vmap`` themselves."""
    parts = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "jvp": staticmethod(jvp),
        "generate_vmap_rule": True,
    }
    made: Any = type(name, (torch.autograd.Function,), parts)
    return made.apply


def _operator(
    what: Differentiable, kind: str, dtype: Dtype, shape: tuple[int, ...]
) -> Callable[..., Tensor]:
    """A kernel as an operator: (..., size) of each argument → (..., *shape)."""
    compiled = what.value(dtype) if kind == "value" else what.slopes(dtype)
    size = math.prod(shape)
    places = [f"x{k}" for k in range(len(what.sizes))]

    def run(*arguments: Tensor) -> Tensor:
        result = arguments[0].new_empty((*arguments[0].shape[:-1], *shape))
        given = [x.detach().resolve_neg().numpy() for x in arguments]
        with np.errstate(all="ignore"):
            compiled.ufunc(*given, out=result.view((*result.shape[: -len(shape)], size)).numpy())
        return result

    def fake(*arguments: Tensor) -> Tensor:
        found: Tensor = arguments[0].new_empty((*arguments[0].shape[:-1], *shape))
        return found

    def batched(info: Any, dims: Sequence[int | None], *arguments: Tensor) -> tuple[Tensor, int]:
        wide = [
            x.unsqueeze(0).expand(info.batch_size, *x.shape) if at is None else x.movedim(at, 0)
            for x, at in zip(arguments, dims, strict=True)
        ]
        return operator(*wide), 0

    schema = f"({', '.join(f'Tensor {place}' for place in places)}) -> Tensor"
    operator = torch.library.custom_op(
        f"robomodel::{what.name}_{kind}_{next(_numbers)}", run, mutates_args=(), schema=schema
    )
    operator.register_fake(fake)
    operator.register_vmap(batched)
    made: Callable[..., Tensor] = operator
    return made
