"""Kernels: an algorithm traced on one robot and compiled for this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args, overload

from numpy.typing import DTypeLike

from robomodel.dynamics.algorithms import Method, Task, traced_algorithm
from robomodel.dynamics.kinematics.frames import FrameLike, Reference, frame_keys
from robomodel.dynamics.order import OrderLike
from robomodel.dynamics.table import Name
from robomodel.errors import as_names
from robomodel.kernels.function import CudaKernel, Kernel, as_dtype
from robomodel.kernels.precision import Dtype
from robomodel.model.model import Model

Target: TypeAlias = Literal["cpu", "cuda"]


TARGETS: tuple[Target, ...] = get_args(Target)


def kernel(model: Model, task: Task, dtype: Dtype = "float64") -> Kernel:
    """The kernel of a task, compiled once a model."""
    return traced_algorithm(model, task).kernel(dtype)


@overload
def compile(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    order: OrderLike | None = None,
    passive: bool = False,
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    target: Literal["cpu"] = "cpu",
) -> Kernel: ...
@overload
def compile(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    order: OrderLike | None = None,
    passive: bool = False,
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    target: Literal["cuda"],
) -> CudaKernel: ...
def compile(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    order: OrderLike | None = None,
    passive: bool = False,
    reference: Reference = "local",
    dtype: DTypeLike = "float64",
    target: Target = "cpu",
) -> Kernel | CudaKernel:
    """A kernel of an algorithm: "rnea", "aba", "crba", "bias_force", "jacobian" and so on.

    The same as the function of that name, without the checks of arguments: ``kernel(q, v, tau)``.

    Args:
        model: The robot.
        algorithm: The function's name.
        frame: The link, or (link, offset), of those that are about one.
        frames: Those of "efpa".
        f_ext: The links on which wrenches act, which are then further arguments (..., 6) in this
            order.
        method: As of :func:`robomodel.rnea` and :func:`robomodel.aba`.
        known: Of "hybrid", the joints, or freedoms of ``model.dof_names``, whose accelerations are
            given; ``kernel(q, v, given)`` takes nv numbers, accelerations of these and forces of
            the others, and returns (tau, a).
        order: Of "aba", an elimination order, by name ("crba", "nested dissection", "searched" …),
            as a list of all variables, or an :class:`~robomodel.dynamics.elimination.Order`. Pivots
            stay where the order has them; the kernel's ``backward_error`` says what that cost at
            random states.
        passive: With the file's springs and damping among the forces.
        reference: As of :func:`robomodel.jacobian`.
        dtype: "float64", or "float32", of which vectors hold twice as many (what it loses stands in
            docs/algorithms/kernels.md; "aba" loses less by method "orthonormal").
        target: "cpu", or "cuda" for NVIDIA's cards, see
            :class:`~robomodel.kernels.function.CudaKernel`.

    Returns:
        kernel: The compiled algorithm.

    Raises:
        ValueError: Other types and targets; an order that loses more than 1e-12.
    """
    number = as_dtype(dtype)
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not known; 'cpu' and 'cuda' are")
    task = as_task(
        model, algorithm, frame=frame, frames=frames, f_ext=f_ext, method=method, known=known,
        passive=passive, reference=reference,
    )  # fmt: skip
    error: float | None = None
    if order is not None:
        from robomodel.dynamics.elimination.programs import as_order, checked

        chosen = as_order(model, order)
        task = replace(task, order=chosen)
        error = checked(model, chosen, kernel(model, task))
    function = traced_algorithm(model, task)
    made: Kernel | CudaKernel
    made = function.kernel(number) if target == "cpu" else function.cuda(number)
    made.backward_error = error
    return made


def as_task(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    passive: bool = False,
    reference: Reference = "local",
) -> Task:
    """The task that :func:`compile` makes a kernel of, by the same options."""
    keys = frame_keys(frames if frame is None else frame)
    links, known = as_names(f_ext, "f_ext"), as_names(known, "known")
    task = Task(algorithm, keys, links, method, known, passive=passive, reference=reference)
    if task.known:
        from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

        task = replace(task, known=prescribed(model, task.known))
    return task
