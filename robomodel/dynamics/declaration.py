"""How an algorithm is declared: its recursion, its results, and the function that users call.

``@algorithm(recursion, results)`` stands on the function's signature and docstring, which have no
body: the arguments of the algorithm are the function's, its options those of :class:`Options` or of
its kinds. From this one declaration come the entry in the table of algorithms, the call
with its checks, the signature that ``help`` and editors show, and the options' documentation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, ParamSpec, TypedDict, TypeVar, cast

from robomodel.dynamics.calling import Backend, Wrenches, run
from robomodel.dynamics.kinematics.frames import frame_key
from robomodel.dynamics.table import TABLE, Algorithm, Name

P = ParamSpec("P")
R = TypeVar("R")


class Options(TypedDict, total=False):
    """What functions of the dynamics take by keyword.

    Attributes:
        backend: "compiled", a kernel made at the first call, or "numpy".
        check: Refuse what is no state, as :meth:`Model.check` does.
    """

    backend: Backend
    check: bool


class WrenchOptions(Options, total=False):
    """The same of functions that wrenches are part of.

    Attributes:
        f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
            axes.
    """

    f_ext: Wrenches | None


class ForceOptions(WrenchOptions, total=False):
    """The same of functions that springs and damping are part of, too.

    Attributes:
        passive: Count the file's springs and damping (:func:`passive_force`) among the forces.
    """

    passive: bool


DEFAULTS: Mapping[str, object] = {
    "f_ext": None, "passive": False, "method": "cluster", "backend": "compiled", "check": False,
}  # fmt: skip
"""Options with their defaults, in the order in which they are documented."""

RAISES = """Raises:
    ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
"""
UNKNOWN = "    UnknownNameError: A link that is not known.\n"


def algorithm(
    recursion: Callable[..., Any], /, **declared: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare the decorated function as the algorithm of its name.

    Args:
        recursion: What computes it on scalars of any kind: called with the model, the function's
            arguments, the wrenches by body where it takes any, and the frame's place.
        **declared: Results by name with the axes of each; and, as of
            :class:`~robomodel.dynamics.table.Algorithm`, ``methods``, ``passive``, ``by_trace``.

    Returns:
        declare: The decorator.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        name = cast(Name, function.__name__)
        shown = _expanded(function)
        every = shown.parameters.values()
        positional = [p.name for p in every if p.kind is p.POSITIONAL_OR_KEYWORD]
        arguments = tuple(x for x in positional[1:] if x != "frame")
        how = {x: declared.pop(x) for x in ("methods", "passive", "by_trace") if x in declared}
        TABLE[name] = Algorithm(
            arguments, declared, recursion, takes_forces="f_ext" in shown.parameters,
            takes_frame="frame" in positional, takes_reference="reference" in shown.parameters,
            **how,
        )  # fmt: skip
        count, framed = len(arguments), "frame" in positional
        keywords = {p.name for p in every if p.kind is p.KEYWORD_ONLY}

        asked: Callable[..., object] = function

        def call(*given: Any, **options: Any) -> Any:
            if not (options or framed) and len(given) == 1 + count:
                try:  # a kernel that is there goes first; what it refuses is looked at closely
                    return given[0].derived[name](*given[1:])
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
            if len(given) != 1 + count + framed or not options.keys() <= keywords:
                asked(*given, **options)  # raises what Python does of arguments that do not fit
                for option in options.keys() - shown.parameters.keys():
                    raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
                bound = shown.bind(*given, **options)
                given, options = bound.args, bound.kwargs
            if framed:
                options["frames"] = (frame_key(given[-1]),)
            return run(given[0], name, dict(zip(arguments, given[1:], strict=False)), **options)

        update_wrapper(call, function)
        call.__doc__ = documented(function.__doc__ or "", shown)
        vars(call).pop("__wrapped__")  # what is shown is of the call, not of the declaration
        vars(call)["__signature__"] = shown
        return cast(Callable[P, R], call)

    return declare


def _expanded(function: Callable[..., object]) -> inspect.Signature:
    """The signature with each of the options that ``**options`` stands for."""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    several = re.fullmatch(r"Unpack\[(\w+)\]", str(function.__annotations__.get("options")))
    if several is not None:
        kinds = TAKEN[several[1]].__annotations__
        parameters += [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[option],
                              annotation=kind.__forward_arg__)
            for option, kind in kinds.items()
        ]  # fmt: skip
    order = [*DEFAULTS]
    parameters.sort(key=lambda p: order.index(p.name) if p.name in order else -1)
    return signature.replace(parameters=parameters)


def documented(text: str, signature: inspect.Signature) -> str:
    """A docstring with what it leaves out: options, and the errors that all functions raise."""
    text = inspect.cleandoc(text)
    head, _, rest = text.partition("Args:\n")
    body, _, tail = rest.partition("\n\n")
    known = {**OPTIONS, **_entries(body)}
    entries = "\n".join(known[name] for name in signature.parameters)
    text = f"{head}Args:\n{entries}\n\n{tail}\n"
    if "Raises:" not in tail:
        links = {"f_ext", "frame"} & signature.parameters.keys()
        text += f"\n{RAISES}{UNKNOWN if links else ''}"
    return text


def _entries(body: str) -> dict[str, str]:
    """The entries of a section, by the names that they are about."""
    parts = re.split(r"^(?=    \w+: )", body, flags=re.MULTILINE)
    return {part.strip().partition(":")[0]: part.rstrip("\n") for part in parts if part.strip()}


TAKEN: Mapping[str, type] = {
    "Options": Options, "WrenchOptions": WrenchOptions, "ForceOptions": ForceOptions
}  # fmt: skip
OPTIONS = {
    name: entry
    for kind in TAKEN.values()
    for name, entry in _entries((inspect.getdoc(kind) or "").partition("Attributes:\n")[2]).items()
}
"""The documentation of each option."""
