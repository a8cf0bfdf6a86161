"""Kernels of algorithms for those who ask for one: for this machine or a card, in any order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack, get_args, overload

from numpy.typing import DTypeLike

from robomodel.dynamics.algorithm import AlgorithmOptions, as_spec, kernel, traced_algorithm
from robomodel.dynamics.declaration import documented
from robomodel.kernels.function import CudaKernel, Kernel, as_dtype
from robomodel.model.model import Model

if TYPE_CHECKING:
    from robomodel.estimation.compiled import OrderLike

Target: TypeAlias = Literal["cpu", "cuda"]
TARGETS: tuple[Target, ...] = get_args(Target)


@overload
def compile(
    model: Model,
    algorithm: str,
    *,
    order: OrderLike | None = None,
    dtype: DTypeLike = "float64",
    target: Literal["cpu"] = "cpu",
    **options: Unpack[AlgorithmOptions],
) -> Kernel: ...
@overload
def compile(
    model: Model,
    algorithm: str,
    *,
    order: OrderLike | None = None,
    dtype: DTypeLike = "float64",
    target: Literal["cuda"],
    **options: Unpack[AlgorithmOptions],
) -> CudaKernel: ...
@documented
def compile(
    model: Model,
    algorithm: str,
    *,
    order: OrderLike | None = None,
    dtype: DTypeLike = "float64",
    target: Target = "cpu",
    **options: Unpack[AlgorithmOptions],
) -> Kernel | CudaKernel:
    """A kernel of an algorithm: "rnea", "aba", "crba", "bias_force", "jacobian" and so on.

    The same as the function of that name, without the checks of arguments: ``kernel(q, v, tau)``.

    Args:
        algorithm: The function's name.
        frame: The link, or (link, offset), of those that are about one.
        frames: Those of "efpa".
        f_ext: The links on which wrenches act, which are then further arguments (..., 6) in this
            order.
        method: As of :func:`robomodel.rnea` and :func:`robomodel.aba`.
        known: Of "hybrid", the joints, or freedoms of ``model.dof_names``, whose accelerations are
            given; ``kernel(q, v, given)`` takes nv numbers, accelerations of these and forces of
            the others, and returns (tau, a).
        passive: With the file's springs and damping among the forces.
        reference: As of :func:`robomodel.jacobian`.
        order: Of "aba", an elimination order, by name ("crba", "nested dissection", "searched" …),
            as a list of all variables, or an
            :class:`~robomodel.estimation.compiled.Order`. Pivots stay where the order has
            them; the kernel's ``backward_error`` says what that cost at random states.
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
    spec = as_spec(model, algorithm, **options)
    error: float | None = None
    if order is not None:
        from robomodel.estimation.compiled import as_order, order_error

        chosen = as_order(model, order)
        spec = replace(spec, order=chosen)
        error = order_error(model, chosen, kernel(model, spec))
    function = traced_algorithm(model, spec)
    made: Kernel | CudaKernel
    made = function.kernel(number) if target == "cpu" else function.cuda(number)
    made.backward_error = error
    return made
