"""The algorithms as CasADi functions: the very same source, run on SX scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robomodel.dynamics import momentum
from robomodel.dynamics.aba import aba
from robomodel.dynamics.crba import crba
from robomodel.dynamics.rnea import bias_force, rnea
from robomodel.model import Model
from robomodel.scalars import Scalar

if TYPE_CHECKING:
    import casadi

Outputs = Mapping[str, Sequence[Sequence[Scalar]]]
Algorithm = tuple[tuple[str, ...], Callable[..., Outputs]]


def _column(values: Sequence[Scalar]) -> list[list[Scalar]]:
    return [[value] for value in values]


ALGORITHMS: Mapping[str, Algorithm] = {
    "rnea": (("q", "v", "a"), lambda m, q, v, a: {"tau": _column(rnea(m, q, v, a))}),
    "aba": (("q", "v", "tau"), lambda m, q, v, tau: {"a": _column(aba(m, q, v, tau))}),
    "crba": (("q",), lambda m, q: {"M": crba(m, q)}),
    "bias_force": (("q", "v"), lambda m, q, v: {"tau": _column(bias_force(m, q, v))}),
    "energy": (
        ("q", "v"),
        lambda m, q, v: {
            name: [[value]]
            for name, value in zip(("kinetic", "potential"), momentum.energy(m, q, v), strict=True)
        },
    ),
    "center_of_mass": (("q",), lambda m, q: {"com": _column(momentum.center_of_mass(m, q))}),
    "centroidal_momentum": (
        ("q", "v"),
        lambda m, q, v: {"h": _column(momentum.centroidal_momentum(m, q, v))},
    ),
}


def to_casadi(model: Model, algorithm: str) -> casadi.Function:
    """A ``casadi.Function`` of an algorithm, for differentiation, optimisation or C code.

    ``algorithm``: "rnea", "aba", "crba", "bias_force", "energy", "center_of_mass" or
    "centroidal_momentum". Inputs and outputs are columns with the names of the function's own
    arguments (q, v, a or tau). Needs the extra ``robomodel[casadi]``.
    """
    try:
        import casadi
    except ImportError as error:
        raise ImportError("to_casadi needs CasADi: pip install 'robomodel[casadi]'") from error
    if algorithm not in ALGORITHMS:
        known = ", ".join(f"'{name}'" for name in ALGORITHMS)
        raise ValueError(f"algorithm '{algorithm}' is not known; known are {known}")
    names, run = ALGORITHMS[algorithm]
    sizes = {"q": model.nq}
    inputs = [casadi.SX.sym(name, sizes.get(name, model.nv)) for name in names]
    outputs = run(model, *([x[i] for i in range(x.numel())] for x in inputs))
    results: list[Any] = []
    for rows in outputs.values():
        matrix = casadi.SX(len(rows), len(rows[0]))
        for i, row in enumerate(rows):
            for j, entry in enumerate(row):
                matrix[i, j] = entry
        results.append(matrix)
    return casadi.Function(algorithm, inputs, results, list(names), list(outputs))
