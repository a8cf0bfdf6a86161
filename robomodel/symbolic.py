"""The algorithms as CasADi functions: the very same source, run on SX scalars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from robomodel.dynamics.algorithms import Name, Task
from robomodel.dynamics.frames import FrameLike, frame_keys
from robomodel.errors import MissingPackageError, as_names
from robomodel.model import Model

if TYPE_CHECKING:
    import casadi


def to_casadi(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
) -> casadi.Function:
    """A ``casadi.Function`` of an algorithm, for differentiation, optimisation or C code.

    ``algorithm``: "rnea", "aba", "crba", "bias_force", "jacobian", "frame_pose", "frame_velocity",
    "efpa", "energy", "center_of_mass" or "centroidal_momentum"; ``frame``: the link, or (link,
    offset), that it is about, where it is about one, ``frames`` those of "efpa"; ``f_ext``: links
    on which wrenches act, further inputs in this order. Inputs and outputs are columns (or
    matrices) with the names of the function's own arguments and results. Needs the extra
    ``robomodel[casadi]``.
    """
    try:
        import casadi
    except ImportError as error:
        raise MissingPackageError("to_casadi needs", "casadi", "casadi") from error
    task = Task(algorithm, frame_keys(frames if frame is None else frame), as_names(f_ext, "f_ext"))
    if task.by_trace:
        raise ValueError(f"'{algorithm}' has no symbolic form; CasADi differentiates the others")
    symbols = {name: casadi.SX.sym(name, size) for name, size in task.sizes(model).items()}
    scalars = {name: [x[i] for i in range(x.numel())] for name, x in symbols.items()}
    found = iter(task.run(task.tree(model), scalars))
    results = {}
    for name, shape in task.results(model).items():
        rows, columns = (*shape, 1, 1)[:2]
        matrix = casadi.SX(rows, columns)
        for entry in range(math.prod(shape)):
            matrix[entry // columns, entry % columns] = next(found)
        results[name] = matrix
    names = [f"f_ext_{i}" if "[" in name else name for i, name in enumerate(symbols)]
    return casadi.Function(
        algorithm, list(symbols.values()), list(results.values()), names, list(results)
    )
