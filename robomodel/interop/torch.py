"""Robots' functions in PyTorch: autograd in both modes, ``vmap``, ``torch.compile``.

The compiled kernel is a custom operator on CPUs that reads and writes the tensors' memory. For
derivatives see :mod:`robomodel.interop.differentiable`: they are with respect to the numbers of q,
projected to closed motions; a quaternion's length and the dependent joints of loops have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.errors import MissingPackageError
from robomodel.interop.differentiable import Differentiable, LibraryFunction, differentiable
from robomodel.kernels.program import Dtype
from robomodel.model.model import Model

try:
    import torch
except ImportError as error:
    raise MissingPackageError("robomodel.torch needs", "torch", "torch") from error

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["function"]

KINDS: tuple[Dtype, ...] = ("float64", "float32")
_numbers = count()  # operator names are global


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of tensors: ``function(model, "aba")(q, v, tau)``.

    Arguments (..., n) broadcast without copies; a result is (..., *shape), several are a tuple.
    Tensors are float64 or float32, on the CPU.

    Gradients, in both modes, are those of :func:`robomodel.jax.function`: q is first projected to
    unit quaternions and closed loops, which does not change closed configurations. Second
    derivatives exist unless ``passive=True``; third ones, and derivatives of functions that are
    derivatives themselves, raise NotImplementedError. ``torch.compile`` need not break its graph.

    Args:
        model: The robot.
        name: As for :func:`robomodel.compile` ("rnea", "aba", "crba", "frame_pose" with a ``frame``
            and so on), or "integrate", "close", "joint_positions", "joint_velocities".
        **options: As for :func:`robomodel.compile`.

    Returns:
        function: The function of tensors.

    Raises:
        ValueError: The function or an option is unknown or not available.
    """
    return _Function(differentiable(model, name, options))


class _Function(LibraryFunction):
    library = "PyTorch"
    broadcast_shapes = staticmethod(torch.broadcast_shapes)
    broadcast_to = staticmethod(torch.broadcast_to)

    def __init__(self, what: Differentiable) -> None:
        super().__init__(what)
        self._functions = {dtype: _functions(what, dtype) for dtype in KINDS}

    def __deepcopy__(self, memo: object) -> _Function:
        return self  # without state, as Python's functions

    def converted(self, arguments: Sequence[Any]) -> tuple[list[Tensor], Dtype]:
        tensors = [torch.as_tensor(x) for x in arguments]
        kind = tensors[0].dtype
        for x, argument in zip(tensors, self._arguments, strict=True):
            if x.dtype not in (torch.float32, torch.float64):
                raise TypeError(f"{argument} must be float32 or float64, got {x.dtype}")
            if x.device.type != "cpu":
                raise ValueError(
                    f"{self.__name__} runs on the processor; {argument} is on {x.device}"
                )
            kind = torch.promote_types(kind, x.dtype)
        return [x.to(kind) for x in tensors], "float32" if kind == torch.float32 else "float64"

    def function(self, dtype: Dtype) -> Callable[..., Tensor]:
        in_both_modes, operator = self._functions[dtype]
        return operator if torch.compiler.is_compiling() else in_both_modes


def _functions(what: Differentiable, dtype: Dtype) -> tuple[Callable[..., Tensor], ...]:
    """Two functions from arguments of one batch to all results' numbers, with derivative rules.

    The first supports both modes. The second is for ``torch.compile``, which has no forward mode:
    an operator with a backward rule, so that graphs need not break.
    """
    operators: tuple[Callable[..., Tensor], ...] | None = what.cache.get(("torch", dtype))
    if operators is None:
        both: Callable[..., Tensor] | None = None
        operator: Callable[..., Tensor] | None = None
        for order in (2, 1, 0):
            both, operator = _derivative(what, order, dtype, both, operator)
        assert both is not None
        assert operator is not None
        operators = what.cache["torch", dtype] = both, operator
    return operators


def _derivative(
    what: Differentiable,
    order: int,
    dtype: Dtype,
    next_both: Callable[..., Tensor] | None,
    next_operator: Callable[..., Tensor] | None,
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Two functions to derivatives (..., *what.shape(order)), with those of the next order."""

    def matrix(ctx: Any, function: Callable[..., Tensor] | None) -> Tensor:
        """The derivatives (..., shape of the output, total)."""
        if function is None or what.obstacle(order + 1) is not None:
            raise NotImplementedError(what.obstacle(order + 1))
        return function(*ctx.saved_tensors)

    def backward_by(function: Callable[..., Tensor] | None) -> Callable[..., Any]:
        def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
            whole = (cotangent.unsqueeze(-2) @ matrix(ctx, function)).squeeze(-2)
            for _ in range(order):
                whole = whole.sum(-2)
            parts = whole.split(what.sizes, -1)
            return tuple(
                part if needed else None
                for part, needed in zip(parts, ctx.needs_input_grad, strict=True)
            )

        return backward

    def forward(ctx: Any, *tangents: Tensor | None) -> Tensor:
        changes = [torch.zeros_like(x) if change is None else change
                   for x, change in zip(ctx.saved_tensors, tangents, strict=True)]  # fmt: skip
        change = torch.cat(changes, -1)
        for _ in range(order):
            change = change.unsqueeze(-2)
        return (matrix(ctx, next_both) @ change.unsqueeze(-1)).squeeze(-1)

    operator = _operator(what, order, dtype)
    operator.register_autograd(backward_by(next_operator), setup_context=_save)
    parts = {
        "forward": staticmethod(operator),
        "setup_context": staticmethod(_save_both),
        "backward": staticmethod(backward_by(next_both)),
        "jvp": staticmethod(forward),
        "generate_vmap_rule": True,
    }
    both: Any = type(f"Derivative{order}", (torch.autograd.Function,), parts)
    return both.apply, operator


def _save(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _save_both(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.save_for_forward(*inputs)


def _operator(what: Differentiable, order: int, dtype: Dtype) -> Any:
    """A kernel as an operator: (..., size) of each argument → (..., *what.shape(order))."""

    def run(*arguments: Tensor) -> Tensor:
        result = fake(*arguments)
        program = what.derivative(order)
        arrays = [x.detach().resolve_neg().numpy() for x in arguments]
        rows = result.shape[: result.ndim - len(what.shape(order))]
        if order == 2:  # one Hessian per result
            rows = (*rows, what.size)
            arrays = [*(x[..., None, :] for x in arrays), np.eye(what.size, dtype=dtype)]
        with np.errstate(all="ignore"):
            program.compiled(dtype).ufunc(*arrays, out=result.view(*rows, program.size).numpy())
        return result

    def fake(*arguments: Tensor) -> Tensor:
        return arguments[0].new_empty((*arguments[0].shape[:-1], *what.shape(order)))

    def batched(info: Any, dims: Sequence[int | None], *arguments: Tensor) -> tuple[Tensor, int]:
        wide = [
            x.unsqueeze(0).expand(info.batch_size, *x.shape) if at is None else x.movedim(at, 0)
            for x, at in zip(arguments, dims, strict=True)
        ]
        return operator(*wide), 0

    tensors = ", ".join(f"Tensor x{k}" for k in range(len(what.sizes)))
    operator = torch.library.custom_op(
        f"robomodel::{what.name}_{order}_{next(_numbers)}", run, mutates_args=(),
        schema=f"({tensors}) -> Tensor",
    )  # fmt: skip
    operator.register_fake(fake)
    operator.register_vmap(batched)
    return operator
