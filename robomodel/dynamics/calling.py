"""How algorithms are called on NumPy arrays: arguments checked, then a kernel or the NumPy path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.algorithms import Method, Task, traced_algorithm
from robomodel.dynamics.kinematics.frames import FrameKey, Reference
from robomodel.dynamics.table import Name
from robomodel.errors import no_model, warn
from robomodel.kernels import NoCompilerError
from robomodel.kernels.function import split
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.configurations.states import check_finite
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import stack, unstack

Wrenches: TypeAlias = Mapping[str, ArrayLike]
Backend: TypeAlias = Literal["numpy", "compiled"]

SIZES = {"q": "nq", "forces": "3k"}
WRENCH = ("the moment's x", "the moment's y", "the moment's z", "the force's x", "the force's y",
          "the force's z")  # fmt: skip
P = ParamSpec("P")
OPERANDS = 64  # of a NumPy ufunc, its result included


def by_name(given: Mapping[str, ArrayLike] | None, what: str) -> Mapping[str, ArrayLike]:
    """A mapping of names to numbers, as it should be; TypeError in words where it is none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} maps names to numbers, not {type(given).__name__}")
    return given


def check_arguments(
    model: Model, arguments: Mapping[str, ArrayLike], forces: Wrenches | None = None
) -> None:
    """Refuse what is no state, and other arguments, wrenches too, that are not finite."""
    if not isinstance(model, Model):
        raise no_model(model)
    model.check(arguments["q"], arguments.get("v"))
    for name in arguments.keys() - {"q", "v"}:
        check_finite(as_array(arguments[name], model.nv, name, "nv"), name, model.dof_names)
    for link, wrench in (forces or {}).items():
        name = f"f_ext['{link}']"
        check_finite(as_array(wrench, 6, name, "6"), name, WRENCH)


def run(
    model: Model,
    algorithm: Name,
    arguments: Mapping[str, ArrayLike],
    backend: str = "compiled",
    *,
    frames: tuple[FrameKey, ...] = (),
    f_ext: Wrenches | None = None,
    method: Method = "cluster",
    known: tuple[str, ...] = (),
    passive: bool = False,
    reference: Reference = "local",
    check: bool = False,
) -> Any:
    """Check the arguments, run the algorithm once over the whole batch.

    A kernel that is there already goes first: what it refuses is looked at closely afterwards.
    """
    forces = {} if f_ext is None else by_name(f_ext, "f_ext")
    if check:
        check_arguments(model, arguments, forces)
    ready: Callable[..., Any] | None = None
    usual = method == "cluster" and not (frames or known or passive)  # by its name: found sooner
    key = algorithm if usual else (algorithm, frames, method, known, passive, reference)
    if backend == "compiled" and not forces:
        try:
            ready = model.derived.get(key)
        except TypeError:  # an option without a hash, which Task refuses in words
            ready = None
        except AttributeError:
            raise no_model(model) from None
    if ready is not None:
        try:
            return ready(*arguments.values())
        except (TypeError, ValueError):
            pass
    if not isinstance(model, Model):
        raise no_model(model)
    task = Task(algorithm, frames, tuple(forces), method, known, None, bool(passive), reference)
    for link in task.f_ext:
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
    arrays = {
        name: as_array(
            value, size, name, SIZES.get(name, "6" if name.startswith("f_ext") else "nv")
        )
        for (name, size), value in zip(
            task.sizes(model).items(), (*arguments.values(), *forces.values()), strict=True
        )
    }
    batch = common_batch(**arrays)
    if backend not in ("numpy", "compiled"):
        raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
    function = traced_algorithm(model, task)
    if backend == "compiled" and function.compiles and len(arrays) < OPERANDS:
        try:
            made = function.kernel()
        except NoCompilerError as error:  # shown once, as warnings are
            text = f"{error}; NumPy serves instead, more slowly"
            warn(RuntimeWarning(text))
        else:
            if not forces:
                model.derived[key] = made.fast
            return made(*arrays.values())
    if task.by_trace:
        return function.on_arrays(*arrays.values())
    with np.errstate(all="ignore"):
        scalars = {name: unstack(x) for name, x in arrays.items()}
        return split(stack(task.run(model, scalars), batch), function.shapes)


def _of_one_result(call: Callable[P, Any]) -> Callable[P, Array]:
    return call


run_one = _of_one_result(run)
"""The same for algorithms with one result, which type checkers know to be an array then."""
