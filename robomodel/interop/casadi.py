"""The algorithms as CasADi functions: the same programs evaluated on SX scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robomodel.errors import MissingPackageError
from robomodel.interop.programs import routine
from robomodel.kernels.program import COS, DIV, MEANING, SELECT, SIN, SQRT
from robomodel.model import Model

if TYPE_CHECKING:
    import casadi


def to_casadi(model: Model, algorithm: str, **options: Any) -> casadi.Function:
    """A ``casadi.Function`` of an algorithm, for differentiation, optimisation or C code.

    Inputs and outputs are columns (or matrices) named like the function's arguments and results; an
    argument's name ends in "_" if a result has the same name, since CasADi requires unique names.
    Wrenches ``f_ext`` are further inputs, in their order. CasADi's own Jacobians are with respect
    to the numbers of q, whereas "rnea_derivatives" and "aba_derivatives" are along integrate(q, ·).
    Needs the extra ``robomodel[casadi]``.

    Args:
        model: The robot.
        algorithm: A name as for :func:`robomodel.compile` ("rnea", "aba", "crba", "jacobian",
            "hybrid", "rnea_derivatives" …), or a function of the configuration: "integrate" (q,
            v_dt), "close" (q; ``steps`` of Newton's method), "joint_positions",
            "joint_velocities", "constraint_jacobian", "constraint_bias".
        **options: As for :func:`robomodel.compile`: ``frame``, ``frames``, ``f_ext``, ``method``,
            ``known``, ``passive``, ``reference``.

    Returns:
        function: The CasADi function.

    Raises:
        ImportError: CasADi is not installed.

    Examples:
        >>> aba = rm.to_casadi(rm.robots.load("four_bar"), "aba")
        >>> aba.name()
        'aba'
    """
    try:
        import casadi
    except ImportError as error:
        raise MissingPackageError("to_casadi needs", "casadi", "casadi") from error
    function = routine(model, algorithm, **options)
    names = [f"f_ext_{i}" if "[" in name else name for i, name in enumerate(function.arguments)]
    inputs = [f"{name}_" if name in function.results else name for name in names]
    symbols = {name: casadi.SX.sym(name, size) for name, size in function.arguments.items()}
    scalars = [x[i] for x in symbols.values() for i in range(x.numel())]
    meaning: dict[str, Callable[..., Any]] = {
        **MEANING,
        DIV: lambda x, y: casadi.SX(x) / y,
        SQRT: casadi.sqrt,
        SIN: casadi.sin,
        COS: casadi.cos,
        SELECT: lambda x, a, b: casadi.if_else(x < 0.0, a, b),
    }
    numbers = iter(function.program(scalars, meaning))
    results = {}
    for name, shape in function.results.items():
        rows, columns = (*shape, 1, 1)[:2]
        matrix = casadi.SX(rows, columns)
        for entry in range(math.prod(shape)):
            matrix[entry // columns, entry % columns] = next(numbers)
        results[name] = matrix
    return casadi.Function(
        algorithm, list(symbols.values()), list(results.values()), inputs, list(results)
    )
