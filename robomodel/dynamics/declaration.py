"""Functions that users call on NumPy arrays: their signatures, documentation, checks and calls.

``@algorithm(recursion, result=axes)`` stands on a signature and a docstring without a body: from
this one declaration come the entry of :mod:`robomodel.dynamics.algorithm`, the call with its
checks, the signature that ``help`` and editors show, and the documentation of common arguments,
options and errors. ``@documented`` does the same for functions with a body of their own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.algorithm import AlgorithmSpec, Method, declare, traced_algorithm
from robomodel.dynamics.kinematics.frames import FrameKey, Reference, frame_key
from robomodel.errors import no_model, warn
from robomodel.kernels import NoCompilerError
from robomodel.kernels.function import split
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.configurations.states import check_finite
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import stack, unstack

P = ParamSpec("P")
R = TypeVar("R")
Wrenches: TypeAlias = Mapping[str, ArrayLike]
Backend: TypeAlias = Literal["numpy", "compiled"]


# ---- options and their documentation -------------------------------------------------------------


class Options(TypedDict, total=False):
    """What functions of the dynamics take by keyword; :data:`ARGUMENTS` says what each is."""

    backend: Backend
    check: bool


class PassiveOptions(Options, total=False):
    """The same of functions that springs and damping are part of."""

    passive: bool


class WrenchOptions(Options, total=False):
    """The same of functions that wrenches are part of."""

    f_ext: Wrenches | None


class ForceOptions(WrenchOptions, total=False):
    """The same of functions that springs and damping are part of, too."""

    passive: bool


DEFAULTS: Mapping[str, object] = {
    "frame": None, "frames": (), "f_ext": None, "passive": False, "tolerance": 1e-10,
    "method": "cluster", "known": (), "reference": "local", "backend": "compiled", "check": False,
}  # fmt: skip
"""Options with their defaults, in the order in which they are documented."""

ARGUMENTS = """
    model: The robot.
    q: Configuration (..., nq).
    v: Velocities (..., nv) of the independent coordinates.
    a: Accelerations (..., nv) of the independent coordinates.
    tau: Forces (..., nv) on the independent coordinates.
    frame: A link's name, or (link, offset) for a point of it with the link's axes.
    reference: As in Pinocchio: "local", at the frame's origin in its own axes;
        "local_world_aligned", at its origin in the world's axes; "world", of the point of its
        body that is at the world's origin, in the world's axes.
    f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
        axes.
    passive: Count the file's springs and damping (:func:`passive_force`) among the forces.
    tolerance: Eigenvalues of J M⁻¹ Jᵀ up to this share of the largest count as zero.
    backend: "compiled", a kernel made at the first call, or "numpy".
    check: Refuse what is no state, as :meth:`Model.check` does.
"""
"""The documentation of arguments and options that mean the same wherever they stand."""

RAISES = """Raises:
    ValueError: Arrays that do not fit, unknown options; with ``check``, what is no state.
"""
UNKNOWN = "    UnknownNameError: A link that is not known.\n"


@dataclass(frozen=True, slots=True)
class CommonDocumentation:
    """What functions with the same options share: defaults, and the sections of docstrings.

    ``returns`` and ``raises`` stand where a docstring has no such section of its own.
    """

    defaults: Mapping[str, object]
    arguments: str
    returns: str = ""
    raises: str = ""


_DYNAMICS = CommonDocumentation(DEFAULTS, ARGUMENTS, raises=RAISES)


def documented(function: Callable[P, R], common: CommonDocumentation = _DYNAMICS) -> Callable[P, R]:
    """Give a function of a model the options of its ``**options``, and their documentation.

    A TypeError says what to do where it is called with something else than a model.
    """
    signature = _expanded(function, common)
    names = signature.parameters.keys()
    run: Callable[..., R] = function

    def call(*given: Any, **options: Any) -> R:
        model = given[0] if given else options.get("model")
        if not isinstance(model, Model) and (given or "model" in options):
            raise no_model(model)
        for option in options.keys() - names:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{option}'")
        return run(*given, **options)

    return _shown(call, function, signature, common)


def algorithm(
    recursion: Callable[..., Any], /, **declared: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare the decorated function, which has no body, as the algorithm of its name.

    Args:
        recursion: What computes it on scalars of any kind.
        **declared: Results and options, as :func:`~robomodel.dynamics.algorithm.declare` takes
            them.

    Returns:
        decorator: The decorator.
    """

    def decorator(function: Callable[P, R]) -> Callable[P, R]:
        name, signature = function.__name__, _expanded(function)
        every = signature.parameters.values()
        keywords = {p.name for p in every if p.kind is p.KEYWORD_ONLY}
        entry = declare(name, recursion, takes_reference="reference" in keywords, **declared)
        arguments, framed = entry.arguments, "at" in entry.takes
        count = len(arguments)
        body: Callable[..., object] = function

        def call(*given: Any, **options: Any) -> Any:
            if not (options or framed) and len(given) == 1 + count:
                try:  # a kernel that is there goes first; what it refuses is looked at closely
                    return given[0].derived[name](*given[1:])
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
            if len(given) != 1 + count + framed or not options.keys() <= keywords:
                body(*given, **options)  # raises what Python does of arguments that do not fit
                for option in options.keys() - signature.parameters.keys():
                    raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
                bound = signature.bind(*given, **options)
                given, options = bound.args, bound.kwargs
            if framed:
                options["frames"] = (frame_key(given[-1]),)
            return run(given[0], name, dict(zip(arguments, given[1:], strict=False)), **options)

        return _shown(call, function, signature)

    return decorator


def _shown(
    call: Callable[..., Any],
    function: Callable[P, R],
    signature: inspect.Signature,
    common: CommonDocumentation = _DYNAMICS,
) -> Callable[P, R]:
    """The call under the function's name, with the whole signature and documentation."""
    update_wrapper(call, function)
    call.__doc__ = _completed(function.__doc__ or "", signature, common)
    vars(call).pop("__wrapped__")  # what is shown is of the call, not of the declaration
    vars(call)["__signature__"] = signature
    return cast("Callable[P, R]", call)


def _expanded(
    function: Callable[..., object], common: CommonDocumentation = _DYNAMICS
) -> inspect.Signature:
    """The signature with each of the options that ``**options: Unpack[…]`` stands for."""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    several = re.fullmatch(r"Unpack\[(\w+)\]", str(function.__annotations__.get("options")))
    if several is not None:
        kind = function.__globals__[several[1]]
        parameters += [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=common.defaults[option],
                annotation=annotation.__forward_arg__,
            )
            for option, annotation in kind.__annotations__.items()
        ]
    order = [*common.defaults]
    parameters.sort(
        key=lambda p: order.index(p.name) if p.kind is p.KEYWORD_ONLY and p.name in order else -1
    )
    return signature.replace(parameters=parameters)


def _completed(text: str, signature: inspect.Signature, common: CommonDocumentation) -> str:
    """A docstring with what it leaves out: common arguments, options, and common errors."""
    head, *sections = re.split(r"^(?=Returns:\n|Raises:\n)", inspect.cleandoc(text), flags=re.M)
    head, _, body = head.partition("Args:\n")
    tail = "".join(sections)
    entries = _entries(common.arguments) | _entries(body)
    arguments = "\n".join(entries[name] for name in signature.parameters)
    if "Returns:" not in tail:
        tail = common.returns + tail
    text = f"{head.rstrip()}\n\nArgs:\n{arguments}\n\n{tail.rstrip()}\n"
    if "Raises:" not in tail:
        links = {"f_ext", "frame", "frames"} & signature.parameters.keys()
        text += f"\n{common.raises}{UNKNOWN if links else ''}"
    return text


def _entries(body: str) -> dict[str, str]:
    """The entries of a section, by the names that they are about."""
    parts = re.split(r"^(?=    \w+: )", body, flags=re.MULTILINE)
    return {part.strip().partition(":")[0]: part.rstrip() for part in parts if part.strip()}


# ---- calls ---------------------------------------------------------------------------------------

SIZES = {"q": "nq", "forces": "3k", "kp": "nu", "kd": "nu"}
WRENCH = ("the moment's x", "the moment's y", "the moment's z", "the force's x", "the force's y",
          "the force's z")  # fmt: skip
OPERANDS = 64  # of a NumPy ufunc, its result included


def by_name(given: Mapping[str, ArrayLike] | None, what: str) -> Mapping[str, ArrayLike]:
    """A mapping of names to numbers; TypeError for what is none."""
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
        labels = model.dof_names
        if SIZES.get(name) == "nu":
            labels = tuple(each.name for each in model.actuators)
        array = as_array(arguments[name], len(labels), name, SIZES.get(name, "nv"))
        check_finite(array, name, labels)
    for link, wrench in (forces or {}).items():
        name = f"f_ext['{link}']"
        check_finite(as_array(wrench, 6, name, "6"), name, WRENCH)


def run(
    model: Model,
    algorithm: str,
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
    usual = method == "cluster" and not (frames or known or passive)  # its name alone is the key
    key = algorithm if usual else (algorithm, frames, method, known, passive, reference)
    if backend == "compiled" and not forces:
        try:
            ready = model.derived.get(key)
        except TypeError:  # an option without a hash, which AlgorithmSpec refuses in words
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
    spec = AlgorithmSpec(
        algorithm, frames, tuple(forces), method, known, None, bool(passive), reference
    )
    for link in spec.f_ext:
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
    arrays = {
        name: as_array(
            value, size, name, SIZES.get(name, "6" if name.startswith("f_ext") else "nv")
        )
        for (name, size), value in zip(
            spec.sizes(model).items(), (*arguments.values(), *forces.values()), strict=True
        )
    }
    batch = common_batch(**arrays)
    if backend not in ("numpy", "compiled"):
        raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
    function = traced_algorithm(model, spec)
    if backend == "compiled" and function.compiles and len(arrays) < OPERANDS:
        try:
            kernel = function.kernel()
        except NoCompilerError as error:  # shown once, as warnings are
            text = f"{error}; NumPy serves instead, more slowly"
            warn(RuntimeWarning(text))
        else:
            if not forces:
                model.derived[key] = kernel.fast
            return kernel(*arrays.values())
    if spec.algorithm.by_trace:
        return function.on_arrays(*arrays.values())
    with np.errstate(all="ignore"):
        scalars = {name: unstack(x) for name, x in arrays.items()}
        return split(stack(spec.run(model, scalars), batch), function.shapes)


def _of_one_result(call: Callable[P, Any]) -> Callable[P, Array]:
    return call


run_one = _of_one_result(run)
"""The same for algorithms with one result, which type checkers know to be an array then."""
