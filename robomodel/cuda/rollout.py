"""Rollouts on GPUs: one motion per thread, with the loop over time in the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from numpy.typing import DTypeLike

from robomodel.cuda.launch import CompiledPtx
from robomodel.errors import as_real
from robomodel.kernels import Program, Trace
from robomodel.kernels.compile import compile_ptx
from robomodel.kernels.function import as_dtype
from robomodel.model.derived import cache_key, cached_on_model
from robomodel.model.model import Model
from robomodel.motion.checks import LOST
from robomodel.motion.plant import Plant
from robomodel.motion.schemes import TORN
from robomodel.motion.steps import FixedStep
from robomodel.scalars import Scalar, Vector, select

METHODS = ("rk4", "semi_implicit_euler")


class CudaRollout:
    """Rollouts of one robot on NVIDIA GPUs, called with arrays on a GPU.

    ``kernel(q, v, tau, step)``: q (..., nq), v (..., nv) and tau (..., T, nv), whose rows act from
    one time to the next, as arrays of the kernel's ``dtype`` that
    :class:`~robomodel.kernels.function.CudaKernel` accepts; ``step`` [s] is a number. Returns q
    (..., T+1, nq) and v (..., T+1, nv), the start first, as :func:`robomodel.rollout` does; they
    are views of one array. Can be pickled.

    Attributes:
        model: The robot.
        options: Options of :func:`robomodel.cuda.rollout_kernel`.
        dtype: "float64" or "float32".
        ptx: The code as text.
    """

    def __init__(self, model: Model, **options: Any) -> None:
        self.model, self.options = model, options
        self.dtype = as_dtype(options["dtype"])
        method, flags = options["method"], (options["passive"], options["saturate"])
        passive, saturate = flags
        plant = Plant(model, passive=passive, saturate=saturate, closing=options["closing"])
        self._step = FixedStep(plant, method, dtype=self.dtype)
        n = model.nq + model.nv
        self.sizes = (n, model.nv, 1, n)
        entry = f"rollout_{self.dtype}"
        self.parts = {"q": model.nq, "v": model.nv}
        text = compile_ptx(
            lambda: self.program,
            entry,
            self.sizes,
            name=cache_key(model, f"on cards {self._step.name}"),
            dtype=self.dtype,
            label=f"compiling rollouts of '{model.name}'",
            iteration=self._step.iteration,
            parts=[*self.parts.values()],
        )
        self._compiled = CompiledPtx(text, entry, self.parts | {"tau": model.nv}, self.dtype, "tau")

    @property
    def ptx(self) -> str:
        """The PTX code, with one entry."""
        return self._compiled.ptx

    @cached_property
    def program(self) -> Program:
        """One stage of a step; nan if loops are left open, or if the branch changes."""
        step, trace, n = self._step, Trace(), self.sizes[-1]
        inputs = [trace.inputs(size) for size in self.sizes[:-1]]
        iteration = step.iteration
        if iteration.table:
            inputs += [trace.inputs(iteration.carried), trace.inputs(iteration.columns)]
        layout = step.layout
        outputs = step.build(layout.from_independent(inputs[0]), *inputs[1:])
        checks, carried = outputs[layout.size : layout.results], outputs[layout.results :]
        return trace.program([*_lost(outputs[:n], checks, LOST[self.dtype] ** 2), *carried]).fused()

    def __reduce__(self) -> tuple[Callable[..., CudaRollout], tuple[object, ...]]:
        return partial(_made, self.model, **self.options), ()

    def __repr__(self) -> str:
        return f"<CudaRollout {self.options['method']} of '{self.model.name}'>"

    def __call__(
        self, q: Any, v: Any, tau: Any, step: float, *, out: Any = None, stream: Any = None
    ) -> tuple[Any, Any]:
        """Compute motions; enqueued on ``stream`` without waiting.

        ``out``: a contiguous array (..., T+1, nq + nv). Raises the errors of
        :class:`~robomodel.kernels.function.CudaKernel` before anything runs. Loops are not checked
        at the start: a motion with open loops is nan from the first step on, without effect on
        others. Each step starts from the velocities of the independent joints, which must not be
        at a dead point.
        """
        length = as_real(step, "step")
        if not math.isfinite(length):
            raise ValueError(f"step must be a number of seconds, got {step!r}")
        n = self.model.nq
        states = self._compiled((q, v, tau), self.sizes[-1:], out, stream, [length])
        return states[..., :n], states[..., n:]


def _lost(state: Vector, checks: Vector, limit: float) -> list[Scalar]:
    """The state, or nan if its loops fail the checks."""
    if not checks:
        return list(state)
    gap, growth, _ = checks
    bad = select(limit - gap, math.nan, 0.0) + select(TORN - growth, math.nan, 0.0)
    return [x + bad for x in state]


def rollout_kernel(
    model: Model,
    method: str = "rk4",
    *,
    passive: bool = True,
    saturate: bool = False,
    closing: int = 2,
    dtype: DTypeLike = "float64",
) -> CudaRollout:
    """Rollouts for NVIDIA GPUs: ``kernel(q, v, tau, step)``, with the loop over time in the kernel.

    Without contacts, stops and dry friction.

    Args:
        model: The robot.
        method: "rk4" or "semi_implicit_euler".
        passive: As in :func:`robomodel.rollout`, like all that follow.
        saturate: Limit ``tau`` to what the motors can produce at each time.
        closing: Number of Newton steps that close the loops after each step.
        dtype: Precision of the results and of all arithmetic.

    Returns:
        kernel: A :class:`CudaRollout`.

    Raises:
        ValueError: An option is unknown or out of range.

    Examples:
        >>> rm.cuda.rollout_kernel(rm.robots.load("four_bar"))
        <CudaRollout rk4 of 'four_bar'>
    """
    if method not in METHODS:
        methods = " and ".join(map(repr, METHODS))
        raise ValueError(f"method {method!r} cannot be had on cards; {methods} can")
    if not isinstance(closing, int) or closing < 1:
        raise ValueError(f"closing must be at least one step of Newton's, got {closing!r}")
    if not model.nv:
        raise ValueError(f"'{model.name}' has nothing that moves")
    options = {"method": method, "passive": bool(passive), "saturate": bool(saturate),
               "closing": closing, "dtype": as_dtype(dtype)}  # fmt: skip
    return _made(model, **options)


@cached_on_model
def _made(model: Model, **options: Any) -> CudaRollout:
    return CudaRollout(model, **options)
