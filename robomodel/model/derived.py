"""Results cached on a model, among them its traced functions."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial, update_wrapper, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from robomodel.kernels.cache import canonical, digest
from robomodel.kernels.function import TracedFunction
from robomodel.scalars import value_of

if TYPE_CHECKING:
    from robomodel.model.model import Model

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
LARGE_ROBOT = 200  # bodies; beyond, compiling takes many seconds, so that users shall ask for it
EDGES = ("cli", "kernels", "parsers", "reports", "robots", "views")
"""Packages that no programs come from; :mod:`robomodel.kernels` counts by itself."""


def cached_on_model(make: F) -> F:
    """Decorator: a function of a model, and of further hashable arguments, that runs once for each.

    Its results are kept in :attr:`Model._derived`, by the function and the further arguments.
    """

    @wraps(make)
    def cached(model: Model, *arguments: Any, **named: Any) -> Any:
        key = (cached, *arguments, *named.items())
        if key not in model._derived:
            model._derived[key] = make(model, *arguments, **named)
        return model._derived[key]

    return cast(F, cached)


@cached_on_model
def neutral_positions(model: Model) -> dict[str, Any]:
    """:meth:`Model.joint_positions` at neutral, for which it is not worth to compile anything."""
    at = [value_of(x) for x in model.spanning_positions(model.neutral().tolist())]
    return {
        joint.name: at[node.q] if joint.nq == 1 else at[node.positions]
        for joint, node in zip(model.joints, model.nodes, strict=True)
        if joint.name != model.floating_base
    }


def nominal(model: Model) -> Model:
    """The model with the file's numbers, on which decisions are taken (which joints move, ranks).

    It is ``model`` itself, unless numbers of ``model`` are arguments of a program.
    """
    return model if model._nominal is None else model._nominal


def traced(
    make: Callable[Concatenate[Model, P], TracedFunction],
) -> Callable[Concatenate[Model, P], TracedFunction]:
    """Decorator: a traced function of a model, which ``make`` creates once for each model.

    Further arguments must be hashable, and dataclasses, containers, numbers or text: with the name
    of ``make``, the robot and the source of this package they are the key of the kernel on disk.
    """

    def function(model: Model, /, *arguments: P.args, **named: P.kwargs) -> TracedFunction:
        key = (traced_function, *arguments, *named.items())
        result: TracedFunction | None = model._derived.get(key)
        if result is None:
            built = make(model, *arguments, **named)
            canonical_name = canonical((make.__module__, make.__qualname__, arguments, named))
            result = model._derived[key] = replace(
                built,
                compiles=built.compiles and 0 < len(model.nodes) <= LARGE_ROBOT,
                owner=model,
                key=cache_key(model, canonical_name),
                origin=(partial(traced_function, **named), (model, *arguments)),
            )
        return result

    traced_function: Callable[Concatenate[Model, P], TracedFunction] = update_wrapper(
        function, make
    )
    return traced_function


def cache_key(model: Model, what: str) -> str:
    """A digest of all that determines a program: the robot, the function, and this package.

    The robot counts as it was built, not only as it was described: which of a loop's joints are
    independent is decided by rank, and other releases of NumPy may decide otherwise.
    """
    return digest((_canonical_model(model), what, sources()))


@cached_on_model
def _canonical_model(model: Model) -> str:
    names = [each.name for each in fields(model)
             if each.name != "notes" and each.metadata.get("program", True)]  # fmt: skip
    return digest((canonical([getattr(model, name) for name in names]),))


@functools.cache
def sources() -> str:
    """A digest of the modules that take part in programs: changed source makes new kernels."""
    package, found = str(Path(__file__).parents[1]), list[str]()
    for folder, below, names in os.walk(package):
        if folder == package:
            below[:] = [each for each in below if each not in EDGES]
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    result = hashlib.sha256()
    for file in sorted(found):
        with open(file, "rb", buffering=0) as stream:
            result.update(stream.readall())
    return result.hexdigest()
