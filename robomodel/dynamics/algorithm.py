"""Algorithms by name: their arguments and results, and how users call them on NumPy arrays.

:func:`declare` makes the entry of a recursion; its arguments are read from the recursion's
signature. One entry serves every way of running it: NumPy batches, compiled kernels, C, CasADi, JAX
and PyTorch. An :class:`AlgorithmSpec` is an algorithm with its options, and
:func:`traced_algorithm` its traced function on a robot.

``@algorithm(recursion, result=axes)`` decorates a signature and a docstring without a body. From
this one declaration come the entry, the call with its checks, the signature that ``help`` and
editors show, and the documentation of common arguments, options and errors. ``@documented`` gives
the last two to functions with a body.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.baselines import corrected_tree, reduced_tree
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import (
    FrameKey,
    FrameLike,
    Reference,
    frame_key,
    frame_keys,
)
from robomodel.dynamics.recursions.hybrid import prescribed
from robomodel.dynamics.recursions.passive import Arguments, Inner
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.errors import (
    ClosureError,
    DescriptionError,
    DescriptionWarning,
    as_flag,
    as_names,
    check_positional,
    did_you_mean,
    no_model,
    warn,
)
from robomodel.kernels import NoCompilerError
from robomodel.kernels.function import Kernel, TracedFunction
from robomodel.messages import unknown_keyword
from robomodel.model.arguments import as_array, as_numbers, by_name, common_batch
from robomodel.model.configurations import singular
from robomodel.model.configurations.states import (
    REMEDY,
    check_finite,
    loop_faults,
    unit_faults,
)
from robomodel.model.derived import traced
from robomodel.model.model import Model
from robomodel.model.parameters import (
    PARAMETERS,
    ParametersLike,
    as_parameters,
    as_values,
    batch_with,
    count,
    losses_among,
    parameterized,
    warn_of_rows,
    with_parameters,
)
from robomodel.scalars import Scalar, Vector
from robomodel.tolerances import OPEN

P = ParamSpec("P")
R = TypeVar("R")
Wrenches: TypeAlias = Mapping[str, ArrayLike]
Backend: TypeAlias = Literal["numpy", "compiled"]
Method: TypeAlias = Literal[
    "cluster",
    "orthonormal",
    "projection",
    "lagrange",
    "approximate",
    "tendons",
    "unconstrained",
]
Passive: TypeAlias = Callable[[Model, Arguments, Sequence[str], Inner], Sequence[Scalar]]

"""An algorithm with springs and damping: of a model, arguments by name, known joints, and the
algorithm without them.
"""

OPEN_TREES = ("approximate", "tendons", "unconstrained")

AXES: Mapping[str, Callable[[Model, int], int]] = {
    "nq": lambda model, _: model.nq,
    "nv": lambda model, _: model.nv,
    "nu": lambda model, _: len(model.actuators),
    "nt": lambda model, _: corrected_tree(model).model.nv,
    "p": lambda model, _: count(model),
    "3k": lambda _, k: 3 * k,
    "6k": lambda _, k: 6 * k,
}
"""Lengths of axes by name, from the model and the number k of frames."""

ARGUMENT_AXES = {"q": "nq", "forces": "3k", "kp": "nu", "kd": "nu"}
"""The axes of arguments that are not of length nv."""


# ---- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm: its arguments, the axes of its results, and what computes them.

    ``run`` and ``methods`` are called with the model and the arguments in this order, and with
    those of these keywords that it ``takes``: ``f_ext`` (wrenches by body), ``at`` (a frame),
    ``places`` (one or more frames), ``known`` (joints whose acceleration is an argument instead of
    their force). If "reference" is among them, motions of the frame are in the axes of this option.
    """

    arguments: tuple[str, ...]
    axes: Mapping[str, tuple[str | int, ...]]
    run: Callable[..., Any]
    takes: frozenset[str] = frozenset()
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)  # besides "cluster"
    by_trace: bool = False  # differentiates its own trace, so it runs on traced scalars only
    passive: Passive | None = None  # the algorithm with springs and damping
    fixed: bool = False  # branches on numbers of the file, so parameters cannot be arguments
    losses: bool = False  # of gears and dry friction are counted

    @property
    def counts_passive(self) -> bool:
        """True if it may count springs and damping."""
        return self.passive is not None or "passive" in self.takes


def _flat(numbers: Sequence[Any]) -> list[Scalar]:
    """The scalars of nested lists and tuples."""
    return [
        x for part in numbers for x in (_flat(part) if isinstance(part, list | tuple) else (part,))
    ]


class Algorithms(Mapping[str, Algorithm]):
    """Every algorithm by its name, as modules of :mod:`robomodel.dynamics.functions` declare them.

    These are imported when one is asked for that has not been declared, or all are.
    """

    def __init__(self) -> None:
        self._declared: dict[str, Algorithm] = {}

    def declare(self, name: str, entry: Algorithm) -> None:
        """Add an algorithm."""
        self._declared[name] = entry

    def __getitem__(self, name: str) -> Algorithm:
        if name not in self._declared:
            self._import()
        return self._declared[name]

    def __iter__(self) -> Iterator[str]:
        self._import()
        return iter(self._declared)

    def __len__(self) -> int:
        self._import()
        return len(self._declared)

    def _import(self) -> None:
        package = import_module("robomodel.dynamics.functions")
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)


ALGORITHMS = Algorithms()
ALL = "all"  # algorithms of a model, of which a warning was given

NOT_NUMBERS = frozenset({"f_ext", "at", "places", "known", "passive"})


def declare(
    name: str,
    recursion: Callable[..., Any],
    /,
    *,
    methods: Mapping[str, Callable[..., Any]] | None = None,
    passive: Passive | None = None,
    by_trace: bool = False,
    takes_reference: bool = False,
    fixed: bool = False,
    losses: bool = False,
    **axes: tuple[str | int, ...],
) -> Algorithm:
    """Register an algorithm: its recursion, and the names and axes of its results.

    The recursion's parameters after the model are the algorithm's arguments; ``f_ext`` (wrenches by
    body), ``at`` (a frame), ``places`` (frames) and ``known`` (joints) follow them.
    """
    every = inspect.signature(recursion).parameters.values()
    _, *parameters = (each.name for each in every if each.kind is not each.KEYWORD_ONLY)
    arguments = tuple(each for each in parameters if each not in NOT_NUMBERS)
    takes = NOT_NUMBERS.intersection(parameters) | ({"reference"} if takes_reference else set())
    entry = Algorithm(
        arguments, axes, recursion, takes, methods or {}, by_trace, passive, fixed, losses
    )
    ALGORITHMS.declare(name, entry)
    return entry


def on_open_trees(run: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The methods of an algorithm on open trees, by name."""
    return {method: partial(run, method) for method in OPEN_TREES}


# ---- an algorithm with its options ---------------------------------------------------------------


class AlgorithmOptions(TypedDict, total=False):
    """Options of an algorithm, besides its name; see :func:`compile`."""

    frame: FrameLike | None
    frames: FrameLike | Sequence[FrameLike]
    f_ext: str | Iterable[str] | None
    method: Method
    known: str | Iterable[str]
    passive: bool
    reference: Reference
    parameters: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class AlgorithmSpec:
    """An algorithm with its options: its frames, and the links on which external forces act.

    ``method`` is "cluster", or another that its entry has. ``known``: of "hybrid", the joints whose
    acceleration is an argument.
    ``passive``: with springs and damping. ``reference``: the axes in which motions of the frame are
    expressed. ``parameters``: the names of those that are an argument. Its arguments are the
    algorithm's, then six numbers for each of ``f_ext``, then "p", the parameters.
    """

    name: str
    frames: tuple[FrameKey, ...] = ()
    f_ext: tuple[str, ...] = ()
    method: Method = "cluster"
    known: tuple[str, ...] = ()
    passive: bool = False
    reference: Reference = "local"
    parameters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name, entry = self.name, ALGORITHMS.get(self.name)
        if entry is None:
            raise ValueError(
                f"algorithm '{name}' is not known{did_you_mean(name, ALGORITHMS)}; "
                f"known are {_quoted(ALGORITHMS)}"
            )
        methods = ("cluster", *entry.methods)
        if self.method not in methods:
            raise ValueError(
                f"method '{self.method}' is not known of '{name}'; known are {_quoted(methods)}"
            )
        if self.parameters and self.method in OPEN_TREES:
            raise ValueError(
                f"programs of method '{self.method}' take no parameters; use rm.with_parameters"
            )
        if self.reference not in frames.REFERENCES:
            raise ValueError(
                f"reference '{self.reference}' is not known; {_quoted(frames.REFERENCES)} are"
            )
        for what, present, allowed in (
            ("known joints", self.known, "known" in entry.takes),
            ("reference", self.reference != "local", "reference" in entry.takes),
            ("parameters", bool(self.parameters), not entry.fixed),
            ("passive forces", as_flag(self.passive, "passive"), entry.counts_passive),
            ("external forces", self.f_ext, "f_ext" in entry.takes),
        ):
            if present and not allowed:
                raise ValueError(f"'{name}' takes no {what}")
        if "places" in entry.takes:
            if not self.frames:
                raise ValueError(f"'{name}' needs one or more frames")
        elif len(self.frames) != ("at" in entry.takes):
            raise ValueError(f"'{name}' needs {'one' if 'at' in entry.takes else 'no'} frame")

    @property
    def algorithm(self) -> Algorithm:
        """The entry of its name in :data:`ALGORITHMS`."""
        return ALGORITHMS[self.name]

    def sizes(self, model: Model) -> dict[str, int]:
        """The arguments' names and lengths."""
        sizes = {
            name: AXES[ARGUMENT_AXES.get(name, "nv")](model, len(self.frames))
            for name in self.algorithm.arguments
        }
        sizes |= {f"f_ext['{link}']": 6 for link in self.f_ext}
        return sizes | ({PARAMETERS: len(self.parameters)} if self.parameters else {})

    def results(self, model: Model) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes."""
        return {
            name: tuple(n if isinstance(n, int) else AXES[n](model, len(self.frames)) for n in axes)
            for name, axes in self.algorithm.axes.items()
        }

    def tree(self, model: Model, p: Vector = ()) -> Model:
        """The equivalent model on which the algorithm takes the fewest operations.

        ``p`` are the values of the parameters. Call it with traced scalars.
        """
        if self.method in OPEN_TREES:
            return reduced_tree(model, self.method, self.name)
        if self.parameters:
            model = parameterized(model, dict(zip(self.parameters, p, strict=True)))
        if "known" in self.algorithm.takes:
            inverse = len(prescribed(model, self.known)) == model.nv
            return reduced(model, "rnea" if inverse else "aba")
        return reduced(model, self.name)

    def run(self, model: Model, arguments: Arguments) -> Sequence[Scalar]:
        """Run the algorithm on scalars: the results one after the other, matrices by rows."""
        entry = self.algorithm
        places = [frames.place(model, frame, self.reference) for frame in self.frames]
        by_link = {link: arguments[f"f_ext['{link}']"] for link in self.f_ext}
        options: dict[str, object] = {"places": places, "known": self.known}
        options["f_ext"] = frames.body_wrenches(model, by_link)
        options |= {"at": places[0] if places else None, "passive": self.passive}

        options = {name: x for name, x in options.items() if name in entry.takes}
        recursion = entry.run if self.method == "cluster" else entry.methods[self.method]

        def run(x: Arguments) -> Sequence[Scalar]:
            return _flat([recursion(model, *(x[name] for name in entry.arguments), **options)])

        if not self.passive or entry.passive is None:
            return run(arguments)
        return entry.passive(model, arguments, self.known, run)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def as_spec(
    model: Model,
    algorithm: str,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] | None = None,
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    passive: bool = False,
    reference: Reference = "local",
    parameters: str | Iterable[str] = (),
) -> AlgorithmSpec:
    """An algorithm with the options of :class:`AlgorithmOptions`."""
    keys, names = frame_keys(frames if frame is None else frame), as_names(known, "known")
    if names and algorithm in ALGORITHMS and "known" in ALGORITHMS[algorithm].takes:
        names = prescribed(model, names)
    links = () if f_ext is None else as_names(f_ext, "f_ext")
    chosen = as_parameters(model, parameters)
    _refuse_losses(model, algorithm, chosen)
    return AlgorithmSpec(algorithm, keys, links, method, names, passive, reference, chosen)


def _refuse_losses(model: Model, algorithm: str, names: Iterable[str]) -> None:
    """Raises ValueError for efficiencies of gears in an algorithm without losses."""
    for name in losses_among(model, names):
        if algorithm in ALGORITHMS and not ALGORITHMS[algorithm].losses:
            raise ValueError(
                f"'{name}' does not enter '{algorithm}', which is without losses: forward dynamics "
                "with them is not smooth, since power and rates turn round. 'motor_forces' has "
                "them, which is smooth at given directions, and so have rm.rollout, rm.Simulation"
            )


@traced
def traced_algorithm(model: Model, spec: AlgorithmSpec) -> TracedFunction:
    """An algorithm with its options, traced on the tree that takes the fewest operations."""
    sizes = spec.sizes(model)

    def build(*arguments: Vector) -> Sequence[Scalar]:
        named = dict(zip(sizes, arguments, strict=True))
        return spec.run(spec.tree(model, named.pop(PARAMETERS, ())), named)

    label = spec.name if spec.method == "cluster" else f"{spec.name}:{spec.method}"
    return TracedFunction(
        spec.name, sizes, spec.results(model), build, shared=(PARAMETERS,), label=label,
        explain=singular.explanation(model, sizes),
    )  # fmt: skip


# ---- options and their documentation -------------------------------------------------------------


class Options(TypedDict, total=False):
    """Keyword options of functions of the dynamics, documented in :data:`ARGUMENTS`."""

    backend: Backend
    check: bool
    parameters: ParametersLike


class PassiveOptions(Options, total=False):
    """Options of functions that may count springs and damping."""

    passive: bool


class WrenchOptions(Options, total=False):
    """Options of functions that take wrenches."""

    f_ext: Wrenches | None


class ForceOptions(WrenchOptions, total=False):
    """Options of functions that take wrenches and may count springs and damping."""

    passive: bool


class SensitivityOptions(TypedDict, total=False):
    """Options of sensitivities."""

    frame: FrameLike | None
    frames: FrameLike | Sequence[FrameLike]
    passive: bool
    method: Method
    known: str | Iterable[str]
    reference: Reference


DEFAULTS: Mapping[str, object] = {
    "frame": None, "frames": (), "f_ext": None, "passive": False, "tolerance": 1e-10,
    "method": "cluster", "known": (), "reference": "local", "parameters": None,
    "backend": "compiled", "check": False,
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
        "local_world_aligned", at the frame's origin in world axes, as the rate of its position is;
        "world", at the point of the body that is at the world's origin, in world axes.
    frames: Links' names, or (link, offset) each.
    method: As in :func:`rnea` and :func:`aba`.
    known: For "hybrid", the joints whose accelerations are given.
    f_ext: Link name → wrench (..., 6) on that link, moment about its origin first, in its own
        axes.
    passive: Count the file's springs and damping (:func:`passive_force`) among the forces.
    parameters: Other values of some of the robot's parameters, by the names of
        :func:`parameters` (with those of geometry): a number, or an array (...) that broadcasts
        with the batch. q must be closed for them (:meth:`Model.close`). Rows without a result are
        not-a-number, with a RuntimeWarning. Methods on open trees build a tree for each set of
        values.
    tolerance: Eigenvalues of J M⁻¹ Jᵀ up to this share of the largest count as zero.
    backend: "compiled", a kernel made at the first call, or "numpy".
    check: Raise an error for invalid states, as :meth:`Model.check` does; joint limits are not
        among it. Without it, an open loop in an algorithm's first call gives a RuntimeWarning.
"""
"""The documentation of arguments and options that mean the same in all functions."""

RAISES = """Raises:
    ValueError: Arrays that do not fit, unknown options; with ``check``, invalid states.
"""
UNKNOWN = "    UnknownNameError: A link that is not known.\n"


@dataclass(frozen=True, slots=True)
class CommonDocumentation:
    """The documentation that functions with the same options share: defaults, sections.

    ``returns`` and ``raises`` stand where a docstring has no such section of its own.
    """

    defaults: Mapping[str, object]
    arguments: str
    returns: str = ""
    raises: str = ""


_DYNAMICS = CommonDocumentation(DEFAULTS, ARGUMENTS, raises=RAISES)


def documented(function: Callable[P, R], common: CommonDocumentation = _DYNAMICS) -> Callable[P, R]:
    """Expand ``**options`` of a function of a model into the options, with their documentation.

    Called with something that is no model, the function raises a TypeError that says what to do.
    """
    signature = _expanded(function, common)
    names = signature.parameters.keys()
    run: Callable[..., R] = function

    def call(*arguments: Any, **options: Any) -> R:
        model = arguments[0] if arguments else options.get("model")
        if not isinstance(model, Model) and (arguments or "model" in options):
            raise no_model(model)
        for option in options.keys() - names:
            raise unknown_keyword(function.__name__, option, names)
        check_positional(function.__name__, signature, arguments)
        return run(*arguments, **options)

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
        framed = "at" in entry.takes
        count = 1 + len(entry.arguments)
        body: Callable[..., object] = function

        def call(*arguments: Any, **options: Any) -> Any:
            if not options and len(arguments) == count + framed:
                try:  # a compiled kernel is tried first; ``run`` reports errors
                    key = (name, arguments[-1]) if framed else name
                    return arguments[0]._derived[key](*arguments[1:count])
                except (AttributeError, KeyError, TypeError, ValueError):
                    pass
            if len(arguments) != count + framed or not options.keys() <= keywords:
                check_positional(name, signature, arguments)
                body(*arguments, **options)  # raises as Python does for arguments that do not fit
                for option in options.keys() - signature.parameters.keys():
                    raise unknown_keyword(name, option, signature.parameters)
                bound = signature.bind(*arguments, **options)
                arguments, options = bound.args, bound.kwargs
            if framed:
                options["frames"] = (frame_key(arguments[-1]),)
            numbers = dict(zip(entry.arguments, arguments[1:], strict=False))
            return run(arguments[0], name, numbers, **options)

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
    call.__doc__ = completed(function.__doc__ or "", signature, common)
    vars(call).pop("__wrapped__")  # the signature is that of the call, not of the declaration
    vars(call)["__signature__"] = signature
    return cast("Callable[P, R]", call)


def _expanded(
    function: Callable[..., object], common: CommonDocumentation = _DYNAMICS
) -> inspect.Signature:
    """The signature with each of the options that ``**options: Unpack[…]`` stands for."""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(function.__annotations__.get("options")))
    if unpacked is not None:
        kind = function.__globals__[unpacked[1]]
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


def completed(text: str, signature: inspect.Signature, common: CommonDocumentation) -> str:
    """The docstring, completed by common arguments, options and errors."""
    text, _, examples = inspect.cleandoc(text).partition("Examples:\n")
    head, *sections = re.split(r"^(?=Returns:\n|Raises:\n)", text, flags=re.MULTILINE)
    head, _, body = head.partition("Args:\n")
    tail = "".join(sections)
    entries = _entries(common.arguments) | _entries(body)
    arguments = "\n".join(entries[name] for name in signature.parameters)
    if "Returns:" not in tail:
        tail = common.returns + tail
    text = f"{head.rstrip()}\n\nArgs:\n{arguments}\n\n{tail}".rstrip() + "\n"
    if "Raises:" not in tail:
        links = {"f_ext", "frame", "frames"} & signature.parameters.keys()
        text += f"\n{common.raises}{UNKNOWN if links else ''}"
    return f"{text.rstrip()}\n\nExamples:\n{examples}" if examples else text


def _entries(body: str) -> dict[str, str]:
    """The entries of a section, by name."""
    parts = re.split(r"^(?=    \w+: )", body, flags=re.MULTILINE)
    return {part.strip().partition(":")[0]: part.rstrip() for part in parts if part.strip()}


# ---- calls ---------------------------------------------------------------------------------------

WRENCH = ("the moment's x", "the moment's y", "the moment's z", "the force's x", "the force's y",
          "the force's z")  # fmt: skip


def check_arguments(
    model: Model,
    arguments: Mapping[str, ArrayLike],
    forces: Wrenches | None = None,
    parameters: ParametersLike = None,
) -> None:
    """Raises ValueError for invalid states, and for other numbers that are not finite."""
    if not isinstance(model, Model):
        raise no_model(model)
    if parameters:
        names, p = as_values(model, by_name(parameters, "parameters"))
        arrays = {name: np.asarray(x, dtype=float) for name, x in arguments.items()}
        batch = batch_with(names, p, **arrays)
        rows = {name: np.broadcast_to(x, (*batch, x.shape[-1])) for name, x in arrays.items()}
        p = np.broadcast_to(p, (*batch, len(names)))
        for n in np.ndindex(batch):
            at = parameterized(model, dict(zip(names, p[n].tolist(), strict=True)))
            check_arguments(at, {name: x[n] for name, x in rows.items()}, forces)
        return
    model.check(arguments["q"], arguments.get("v"))
    for name in arguments.keys() - {"q", "v"}:
        labels = model.dof_names
        if ARGUMENT_AXES.get(name) == "nu":
            labels = tuple(each.name for each in model.actuators)
        array = as_array(arguments[name], len(labels), name, ARGUMENT_AXES.get(name, "nv"))
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
    parameters: ParametersLike = None,
    check: bool = False,
) -> Any:
    """Check the arguments and run the algorithm once over the whole batch.

    A compiled kernel is tried first; arguments are checked only if it refuses them.
    """
    forces = {} if f_ext is None else by_name(f_ext, "f_ext")
    if parameters is not None:
        return _run_by_parameters(
            model, algorithm, arguments, backend, by_name(parameters, "parameters"),
            check=check, frames=frames, f_ext=forces, method=method, known=known, passive=passive,
            reference=reference,
        )  # fmt: skip
    if check:
        check_arguments(model, arguments, forces)
    key: object = (algorithm, *frames) if frames else algorithm
    if method != "cluster" or known or passive or reference != "local":
        key = (algorithm, frames, method, known, passive, reference)
    if backend == "compiled" and not forces:
        try:
            return model._derived[key](*arguments.values())
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
    if not isinstance(model, Model):
        raise no_model(model)
    spec = AlgorithmSpec(algorithm, frames, tuple(forces), method, known, passive, reference)
    for link in spec.f_ext:
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
    arrays = {
        name: as_array(
            value, size, name, ARGUMENT_AXES.get(name, "6" if name.startswith("f_ext") else "nv")
        )
        for (name, size), value in zip(
            spec.sizes(model).items(), (*arguments.values(), *forces.values()), strict=True
        )
    }
    common_batch(**arrays)
    if not check:
        _warn_of_no_configuration(model, algorithm, arrays["q"])
    function = traced_algorithm(model, spec)
    kernel = kernel_of(function, backend, len(arrays))
    if kernel is None:
        results = function.on_arrays(*arrays.values())
        function.tell([*arrays.values()], results)
        return results
    if not forces:
        model._derived[key] = kernel.fast
    return kernel(*arrays.values())


def kernel_of(function: TracedFunction, backend: str, count: int) -> Kernel | None:
    """The kernel of a function of ``count`` arguments; None where NumPy serves instead."""
    if backend not in ("numpy", "compiled"):
        raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
    # a NumPy ufunc has fewer than 64 operands, results included
    if backend == "compiled" and function.compiles and all(function.sizes) and count < 64:
        try:
            return function.kernel()
        except NoCompilerError as error:  # shown once, as warnings are
            text = f"{error}; NumPy serves instead, more slowly"
            warn(RuntimeWarning(text))
    return None


def _run_by_parameters(
    model: Model,
    algorithm: str,
    arguments: Mapping[str, ArrayLike],
    backend: str,
    parameters: Mapping[str, ArrayLike],
    *,
    check: bool,
    **options: Any,
) -> Any:
    """Run with other values of parameters; one kernel serves their names in any order."""
    if not isinstance(model, Model):
        raise no_model(model)
    names, p = as_values(model, parameters)
    if not names:
        return run(model, algorithm, arguments, backend, check=check, **options)
    _refuse_losses(model, algorithm, names)
    forces: Mapping[str, ArrayLike] = options.pop("f_ext")
    if ALGORITHMS[algorithm].fixed or options["method"] in OPEN_TREES:
        if check:
            check_arguments(model, arguments, forces, parameters)
        links = tuple(forces)
        shapes = AlgorithmSpec(algorithm, f_ext=links, **options).results(model).values()

        def of_one(at: Model, rows: Sequence[Array]) -> Any:
            numbers = dict(zip(arguments, rows, strict=False))
            wrenches = dict(zip(links, rows[len(arguments) :], strict=True))
            return run(at, algorithm, numbers, "numpy", f_ext=wrenches, **options)

        given = (*arguments.values(), *forces.values())
        return robot_by_robot(model, names, p, given, [*shapes], of_one)
    key = (algorithm, tuple(forces), names, *options.values())
    spec = AlgorithmSpec(algorithm, f_ext=tuple(forces), parameters=names, **options)
    for link in spec.f_ext:
        model.frame(link)
    given = (*arguments.values(), *forces.values(), p)
    arrays = {
        name: as_array(value, size, name, ARGUMENT_AXES.get(name, str(size)))
        for (name, size), value in zip(spec.sizes(model).items(), given, strict=True)
    }
    batch_with(names, arrays["p"], **{name: x for name, x in arrays.items() if name != "p"})
    q = arrays["q"].reshape(-1, model.nq)
    if check:
        check_arguments(model, arguments, forces, parameters)
    elif q.size and p.size:
        first = dict(zip(names, p.reshape(-1, len(names))[0].tolist(), strict=True))
        _warn_of_no_configuration(model, algorithm, q, first)
    function = traced_algorithm(model, spec)
    kernel = model._derived.get(key) or kernel_of(function, backend, len(arrays))
    if kernel is None:
        results = function.on_arrays(*arrays.values())
    else:
        model._derived[key] = kernel
        with np.errstate(all="ignore"):
            results = kernel(*arrays.values())
    warn_of_rows(results, [*arrays.values()])
    return results


def robot_by_robot(
    model: Model,
    names: Sequence[str],
    p: Array,
    arguments: Sequence[ArrayLike],
    shapes: Sequence[tuple[int, ...]],
    call: Callable[[Model, Sequence[Array]], Any],
) -> Any:
    """Results of a function that branches on a robot's numbers, one call for each distinct robot.

    ``p`` (..., p) are the values of the parameters ``names``. ``call`` takes a robot and its rows
    of the arguments. Rows of robots that cannot be built are not-a-number, with a RuntimeWarning.
    """
    arrays = [as_numbers(x, "arguments") for x in arguments]
    batch = batch_with(names, p, **{str(n): x for n, x in enumerate(arrays)})
    count = math.prod(batch)
    flat = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, -1) for x in (*arrays, p)]
    results = [np.full((count, *shape), np.nan) for shape in shapes]
    kinds, which = np.unique(flat.pop(), axis=0, return_inverse=True)
    lost = ""
    for n, values in enumerate(kinds.tolist()):
        rows = np.flatnonzero(np.reshape(which, -1) == n)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DescriptionWarning)
                at = with_parameters(model, dict(zip(names, values, strict=True)))
                at = replace(at, _nominal=model)  # decides which joints move
        except (ClosureError, DescriptionError, ValueError) as error:
            lost = str(error)
            continue
        numbers = call(at, [x[rows] for x in flat])
        for whole, part in zip(results, numbers if len(shapes) > 1 else [numbers], strict=True):
            whole[rows] = part
    if lost:
        warn(RuntimeWarning(f"there is no robot by some of these parameters: {lost}"))
    shaped = tuple(x.reshape(*batch, *shape) for x, shape in zip(results, shapes, strict=True))
    return shaped if len(shapes) > 1 else shaped[0]


def _warn_of_no_configuration(
    model: Model, algorithm: str, q: Array, parameters: Mapping[str, float] | None = None
) -> None:
    """Warn once of a model if an algorithm's first state has open loops, or no rotations."""
    seen = model._derived.setdefault((_warn_of_no_configuration, *(parameters or ())), set())
    if not seen.isdisjoint((algorithm, ALL)) or not q.size:
        return
    first = q.reshape(-1, q.shape[-1])[0]
    if not np.isfinite(first).all():
        return
    seen.add(algorithm)
    at = parameterized(model, parameters) if parameters else model
    for fault in unit_faults(at, first, OPEN):
        seen.add(ALL)
        text = (
            f"{fault.message}: at this q results are those of no rotation; give it length 1 "
            "(0 0 0 1 turns nothing), check=True refuses such states"
        )
        warn(RuntimeWarning(text))
        return
    for fault in loop_faults(at, first, OPEN):
        seen.add(ALL)
        text = (
            f"{fault.message}: at this q results are not those of '{model.name}', whose loops are "
            f"closed; {REMEDY}, check=True refuses such states"
        )
        warn(RuntimeWarning(text))
        return


def _of_one_result(call: Callable[P, Any]) -> Callable[P, Array]:
    return call


run_one = _of_one_result(run)
""":func:`run` for algorithms with one result, which type checkers then take for an array."""
