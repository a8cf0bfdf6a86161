"""Derivatives of results with respect to a robot's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.algorithm import (
    ALGORITHMS,
    Backend,
    SensitivityOptions,
    as_spec,
    documented,
    kernel_of,
)
from robomodel.dynamics.sensitivities import OF_CONFIGURATIONS, of_algorithm, of_configuration
from robomodel.errors import did_you_mean
from robomodel.model.arguments import as_array, by_name
from robomodel.model.model import Model
from robomodel.model.parameters import (
    PARAMETERS,
    as_parameters,
    as_values,
    batch_with,
    warn_of_rows,
)
from robomodel.model.parameters import parameters as listed

__all__ = ["sensitivity"]


@documented
def sensitivity(
    model: Model,
    function: str,
    arguments: ArrayLike | Sequence[ArrayLike],
    names: str | Iterable[str],
    *,
    parameters: Mapping[str, ArrayLike] | None = None,
    backend: Backend = "compiled",
    **options: Unpack[SensitivityOptions],
) -> Any:
    """Exact derivatives of a function's results by parameters, through the closure of loops.

    Independent positions, velocities and forces are held; dependent positions of loops follow the
    parameters. By differentiated programs, not by differences: ten parameters cost a few times the
    function. Derivatives by parameters on which a result does not depend are zero.

    Args:
        function: "rnea", "aba", "crba", "energy", "frame_pose", "jacobian", "actuator_map",
            "reflected", "torque_limits" and others of :func:`compile`; "close" (of q itself),
            "joint_positions", "joint_velocities", "constraint_jacobian", "constraint_bias".
        arguments: Its arguments after the model, (..., n) each, q closed for the parameters.
        names: Names of parameters, with those of geometry (k).
        parameters: Values of some parameters, other than the file's, as of :func:`rnea`.
        frame: The link, or (link, offset), of functions that are about one.

    Returns:
        derivatives: (..., *shape of the result, k); a tuple of several results.

    Raises:
        ValueError: Functions that take no parameters, arrays that do not fit.
        UnknownNameError: A name that is no parameter's; a link that is not known.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.sensitivity(model, "rnea", (q, [1.0], [0.5]), ["link1.mass"]).shape
        (1, 1)
    """
    wanted = as_parameters(model, names)
    if not wanted:
        raise ValueError("names has no parameter; give one or more of rm.parameters(model)")
    given = by_name(parameters, "parameters")
    file = listed(model, geometry=True)
    used, p = as_values(model, {name: file[name] for name in wanted} | dict(given))
    places = tuple(used.index(name) for name in wanted)
    if function == "close" or function in OF_CONFIGURATIONS:
        if options:
            raise ValueError(f"'{function}' has no option '{next(iter(options))}'")
        program = of_configuration(model, function, used, places)
    elif function in ALGORITHMS:
        program = of_algorithm(model, as_spec(model, function, **options, parameters=used), places)
    else:
        known = ("close", *OF_CONFIGURATIONS, *ALGORITHMS)
        raise ValueError(f"function '{function}' is not known{did_you_mean(function, known)}")
    sizes = {name: n for name, n in program.arguments.items() if name != PARAMETERS}
    values = arguments if isinstance(arguments, tuple | list) else (arguments,)
    if len(sizes) == 1 and isinstance(arguments, list):
        values = (arguments,)
    if len(values) != len(sizes):
        raise ValueError(f"'{function}' takes {', '.join(sizes)}, got {len(values)} arguments")
    arrays: dict[str, Array] = {
        name: as_array(x, size, name, str(size))
        for (name, size), x in zip(sizes.items(), values, strict=True)
    }
    batch_with(used, p, **arrays)
    kernel = kernel_of(program, backend, len(arrays) + 1)
    run = program.on_arrays if kernel is None else kernel
    with np.errstate(all="ignore"):
        result = run(*arrays.values(), p)
    warn_of_rows(result, [*arrays.values(), p])
    return result
