"""Robots' functions in PyTorch: autograd in both modes, ``vmap``, ``torch.compile``.

The compiled kernel is a custom operator on processors; it reads and writes tensors' own memory.
Derivatives are those of :mod:`robomodel.interop.differentiable`: q counts as plain numbers, of
which changes along closed motions matter; a quaternion's length, and the dependent joints of loops,
do not.
"""

from __future__ import annotations

import math
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
from robomodel.kernels.function import split
from robomodel.kernels.precision import Dtype
from robomodel.model.model import Model

try:
    import torch
except ImportError as error:
    raise MissingPackageError("robomodel.torch needs", "torch", "torch") from error

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["function"]

KINDS: tuple[Dtype, ...] = ("float64", "float32")
_numbers = count()  # operators' names are the process's


def function(model: Model, name: str, **options: Any) -> Callable[..., Any]:
    """A function of tensors: ``function(model, "aba")(q, v, tau)``.

    Arguments (..., n) broadcast, without copies; a result is (..., *shape), several are a tuple.
    Tensors are float64 or float32, on the processor.

    Gradients, forward and backwards, are those of :func:`robomodel.jax.function`: q is first
    brought to unit quaternions and closed loops, which leaves closed configurations as they are.
    There are second derivatives too, but with ``passive=True``; third ones, and those of functions
    that are derivatives themselves, raise NotImplementedError. ``torch.compile`` need not break its
    graph.

    Args:
        model: The robot.
        name: As of :func:`robomodel.compile` ("rnea", "aba", "crba", "frame_pose" with a ``frame``
            and so on), or "integrate", "close", "joint_positions", "joint_velocities".
        **options: As of :func:`robomodel.compile`.

    Returns:
        function: The function of tensors.

    Raises:
        ValueError: What cannot be had.
    """
    return _Function(differentiable(model, name, options))


class _Function(LibraryFunction):
    library = "PyTorch"

    def __init__(self, what: Differentiable) -> None:
        super().__init__(what)
        self._sizes, self._shapes = dict(what.routine.arguments), what.shapes
        self._made = {dtype: _differentiable(what, dtype) for dtype in KINDS}

    def __reduce__(self) -> tuple[type[_Function], tuple[Differentiable]]:
        return type(self), (self._what,)

    def __deepcopy__(self, memo: object) -> _Function:
        return self  # as Python's own functions are, which hold no state either

    def __call__(self, *arguments: Any) -> Any:
        tensors, dtype = self._checked(arguments)
        in_both_modes, operator = self._made[dtype]
        return split((operator if torch.compiler.is_compiling() else in_both_modes)(*tensors),
                     self._shapes)  # fmt: skip

    def _checked(self, arguments: Sequence[Any]) -> tuple[list[Tensor], Dtype]:
        """The arguments, of one type and one batch."""
        self._what.count(arguments)
        tensors = [torch.as_tensor(x) for x in arguments]
        kind = tensors[0].dtype
        for x, argument in zip(tensors, self._sizes, strict=True):
            if x.dtype not in (torch.float32, torch.float64):
                raise TypeError(f"{argument} must be float32 or float64, got {x.dtype}")
            if x.device.type != "cpu":
                raise ValueError(
                    f"{self.__name__} runs on the processor; {argument} is on {x.device}"
                )
            kind = torch.promote_types(kind, x.dtype)
        batch = self._what.batch([tuple(x.shape) for x in tensors], torch.broadcast_shapes)
        wide = [x.to(kind).expand(*batch, x.shape[-1]) for x in tensors]
        return wide, "float32" if kind == torch.float32 else "float64"


def _differentiable(what: Differentiable, dtype: Dtype) -> tuple[Callable[..., Tensor], ...]:
    """All results' numbers of arguments of one batch, with rules for derivatives, in two ways.

    The first has them in both modes. The second, for ``torch.compile``, which has no forward mode,
    is an operator with a rule backwards, so that graphs need not break.
    """
    known: tuple[Callable[..., Tensor], ...] | None = what.kept.get(("torch", dtype))
    if known is None:
        total = sum(what.sizes)
        value = _operator(what, "value", dtype, (what.size,))
        slopes = _operator(what, "slopes", dtype, (what.size, total))
        curvature = _operator(what, "curvature", dtype, (total, total))
        known = _in_both_modes(what, value, slopes, curvature), value
        what.kept["torch", dtype] = known
        _register(what, value, slopes, curvature)
    return known


# ---- rules ---------------------------------------------------------------------------------------


def _first(what: Differentiable, slopes: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The Jacobian, or why there is none."""

    def call(arguments: Sequence[Tensor]) -> Tensor:
        if what.obstacle is not None:
            raise NotImplementedError(what.obstacle)
        return slopes(*arguments)

    return call


def _second(what: Differentiable, curvature: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """(..., size, all numbers, all numbers): each result's Hessian, or why there is none."""

    def call(arguments: Sequence[Tensor]) -> Tensor:
        if what.second_obstacle is not None:
            raise NotImplementedError(what.second_obstacle)
        batch = (*arguments[0].shape[:-1], what.size)
        wide = [x.unsqueeze(-2).expand(*batch, x.shape[-1]) for x in arguments]
        one = torch.eye(what.size, dtype=arguments[0].dtype).expand(*batch, what.size)
        return curvature(*wide, one)

    return call


def _save(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _save_both(ctx: Any, inputs: Sequence[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.save_for_forward(*inputs)


def _backward(what: Differentiable, matrix: Callable[..., Tensor], axes: int) -> Callable[..., Any]:
    """Backwards through a result of so many axes, which has these derivatives."""
    columns = columns_of(what.sizes)

    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        whole = (cotangent.unsqueeze(-2) @ matrix(ctx.saved_tensors)).squeeze(-2)
        whole = whole if axes == 1 else whole.sum(-2)
        return tuple(
            whole[..., part] if needed else None
            for part, needed in zip(columns, ctx.needs_input_grad, strict=True)
        )

    return backward


def _forward(what: Differentiable, matrix: Callable[..., Tensor], axes: int) -> Callable[..., Any]:
    """Forward, in the same way."""
    columns = columns_of(what.sizes)

    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        each = matrix(ctx.saved_tensors)
        parts = []
        for part, change in zip(columns, tangents, strict=True):
            if change is not None:
                x = change if axes == 1 else change.unsqueeze(-2)
                parts.append((each[..., part] @ x.unsqueeze(-1)).squeeze(-1))
        return torch.stack(parts).sum(dim=0)

    return jvp


def _refusal(what: Differentiable) -> Callable[..., Any]:
    def refuse(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(f"third derivatives of '{what.name}' are not available")

    return refuse


def _register(what: Differentiable, value: Any, slopes: Any, curvature: Any) -> None:
    """Rules backwards, on the operators themselves."""
    first, second = _first(what, slopes), _second(what, curvature)
    for operator, backward in (
        (value, _backward(what, first, 1)),
        (slopes, _backward(what, second, 2)),
        (curvature, _refusal(what)),
    ):
        operator.register_autograd(backward, setup_context=_save)


def _in_both_modes(
    what: Differentiable, value: Any, slopes: Any, curvature: Any
) -> Callable[..., Tensor]:
    """The same rules, and those of the forward mode."""
    refuse = _refusal(what)
    bent = _apply("Curvature", curvature, _save_both, refuse, refuse)
    second = _second(what, bent)
    sloping = _apply("Slopes", slopes, _save_both, _backward(what, second, 2),
                     _forward(what, second, 2))  # fmt: skip
    first = _first(what, sloping)
    made: Callable[..., Tensor] = _apply("Kernel", value, _save_both, _backward(what, first, 1),
                                         _forward(what, first, 1))  # fmt: skip
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
    size = math.prod(shape)
    places = [f"x{k}" for k in range(len(what.sizes) + (kind == "curvature"))]

    def run(*arguments: Tensor) -> Tensor:
        result = arguments[0].new_empty((*arguments[0].shape[:-1], *shape))
        given = [x.detach().resolve_neg().numpy() for x in arguments]
        make = {"value": what.value, "slopes": what.slopes, "curvature": what.curvature}[kind]
        with np.errstate(all="ignore"):
            make.compiled(dtype).ufunc(
                *given, out=result.view((*result.shape[: -len(shape)], size)).numpy()
            )
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
