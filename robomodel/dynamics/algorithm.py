"""Algorithms by name: what each takes and gives, and how it runs on scalars of any kind.

:func:`declare` makes the entry of a recursion; what it takes is read from the recursion's
signature. One entry serves every way of running it: NumPy batches, compiled kernels, C, CasADi, JAX
and PyTorch. An :class:`AlgorithmSpec` is an algorithm with its options, and
:func:`traced_algorithm` its traced function on a robot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict

from robomodel.dynamics.baselines import reduced_tree
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, Reference, frame_keys
from robomodel.dynamics.recursions.hybrid_dynamics import prescribed
from robomodel.dynamics.recursions.passive import Arguments, Inner
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.errors import as_names, did_you_mean
from robomodel.kernels.function import Kernel, TracedFunction
from robomodel.kernels.program import Dtype
from robomodel.model.derived import traced
from robomodel.model.model import Model
from robomodel.model.parameters import count
from robomodel.scalars import Scalar, Vector

Method: TypeAlias = Literal[
    "cluster",
    "orthonormal",
    "projection",
    "lagrange",
    "approximate",
    "tendons",
    "unconstrained",
    "christoffel",
]
Passive: TypeAlias = Callable[[Model, Arguments, Sequence[str], Inner], Sequence[Scalar]]

ForwardDynamics: TypeAlias = Callable[[Model, Vector, Vector, Vector], Sequence[Scalar]]
"""Accelerations (nv) from a model, q, v and tau; scalars of any kind."""

OPEN_TREES = ("approximate", "tendons", "unconstrained")

AXES: Mapping[str, Callable[[Model, int], int]] = {
    "nv": lambda model, _: model.nv,
    "nu": lambda model, _: len(model.actuators),
    "p": lambda model, _: count(model),
    "3k": lambda _, k: 3 * k,
    "6k": lambda _, k: 6 * k,
}
"""Axes of results by name: of the model and the number k of frames."""


# ---- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm: its arguments, the axes of its results, and what computes them.

    ``run`` and ``methods`` are called with the model, the arguments in this order, and by name what
    it ``takes`` of ``f_ext`` (wrenches by body), ``at`` (a frame), ``places`` (one or more frames)
    and ``known`` (joints of which the acceleration is given, the force of all others). One that
    takes "reference" expresses motions of the frame in axes that are asked for.
    """

    arguments: tuple[str, ...]
    axes: Mapping[str, tuple[str | int, ...]]
    run: Callable[..., Any]
    takes: frozenset[str] = frozenset()
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)  # not by clusters
    by_trace: bool = False  # differentiates its own trace, so it runs on traced scalars only
    passive: Passive | None = None  # the same with springs and damping

    def results(self, model: Model, k: int) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes with k frames."""
        return {
            name: tuple(n if isinstance(n, int) else AXES[n](model, k) for n in axes)
            for name, axes in self.axes.items()
        }

    def compute(
        self, method: str, model: Model, arguments: Arguments, options: Mapping[str, object]
    ) -> list[Scalar]:
        """The numbers of all results, one result after the other, matrices by rows."""
        run = self.run if method == "cluster" else self.methods[method]
        taken = {name: x for name, x in options.items() if name in self.takes}
        return _flat([run(model, *(arguments[name] for name in self.arguments), **taken)])


def _flat(numbers: Sequence[Any]) -> list[Scalar]:
    """The scalars of nested lists and tuples."""
    return [
        x for part in numbers for x in (_flat(part) if isinstance(part, list | tuple) else (part,))
    ]


ALGORITHMS: dict[str, Algorithm] = {}
"""Every algorithm by its name."""

NOT_NUMBERS = frozenset({"f_ext", "at", "places", "known"})


def declare(
    name: str,
    recursion: Callable[..., Any],
    /,
    *,
    methods: Mapping[str, Callable[..., Any]] | None = None,
    passive: Passive | None = None,
    by_trace: bool = False,
    takes_reference: bool = False,
    **axes: tuple[str | int, ...],
) -> Algorithm:
    """Enter an algorithm: its recursion, and its results by name with the axes of each.

    The recursion's parameters after the model are the algorithm's arguments; ``f_ext`` (wrenches by
    body), ``at`` (a frame), ``places`` (frames) and ``known`` (joints) come behind them.
    """
    _, *taken = inspect.signature(recursion).parameters
    arguments = tuple(each for each in taken if each not in NOT_NUMBERS)
    takes = NOT_NUMBERS.intersection(taken) | ({"reference"} if takes_reference else set())
    entry = Algorithm(arguments, axes, recursion, takes, methods or {}, by_trace, passive)
    ALGORITHMS[name] = entry
    return entry


def on_open_trees(run: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Methods by which an algorithm runs on open trees."""
    return {method: partial(run, method) for method in OPEN_TREES}


# ---- an algorithm with its options ---------------------------------------------------------------


class AlgorithmOptions(TypedDict, total=False):
    """What users say of the algorithm that they want, besides its name; see :func:`compile`."""

    frame: FrameLike | None
    frames: FrameLike | Sequence[FrameLike]
    f_ext: str | Iterable[str] | None
    method: Method
    known: str | Iterable[str]
    passive: bool
    reference: Reference


@dataclass(frozen=True, slots=True)
class AlgorithmSpec:
    """An algorithm with its options: the frames it is about, the links that external forces act on.

    ``method`` is "cluster", or another that its entry has. ``known``: of "hybrid", the joints whose
    acceleration is given. ``order``: of "aba", another way to compute it, hashable. ``passive``:
    with springs and damping. ``reference``: the axes in which motions of the frame are expressed.
    Its arguments are the algorithm's, then six numbers for each of ``f_ext``.
    """

    name: str
    frames: tuple[FrameKey, ...] = ()
    f_ext: tuple[str, ...] = ()
    method: Method = "cluster"
    known: tuple[str, ...] = ()
    order: ForwardDynamics | None = None
    passive: bool = False
    reference: Reference = "local"

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
        if self.order is not None and (name, self.method, self.f_ext) != ("aba", "cluster", ()):
            raise ValueError("an order is for 'aba' by its own method, without external forces")
        if self.reference not in frames.REFERENCES:
            raise ValueError(
                f"reference '{self.reference}' is not known; {_quoted(frames.REFERENCES)} are"
            )
        for what, asked, taken in (
            ("known joints", self.known, "known" in entry.takes),
            ("reference", self.reference != "local", "reference" in entry.takes),
            ("passive forces", self.passive, entry.passive is not None),
            ("external forces", self.f_ext, "f_ext" in entry.takes),
        ):
            if asked and not taken:
                raise ValueError(f"'{name}' takes no {what}")
        if "places" in entry.takes:
            if not self.frames:
                raise ValueError(f"'{name}' needs one or more frames")
        elif len(self.frames) != ("at" in entry.takes):
            raise ValueError(f"'{name}' needs {'one' if 'at' in entry.takes else 'no'} frame")

    @property
    def algorithm(self) -> Algorithm:
        """Its entry."""
        return ALGORITHMS[self.name]

    def sizes(self, model: Model) -> dict[str, int]:
        """The arguments' names and lengths."""
        nu = len(model.actuators)
        special = {"q": model.nq, "forces": 3 * len(self.frames), "kp": nu, "kd": nu}
        sizes = {n: special.get(n, model.nv) for n in self.algorithm.arguments}
        return sizes | {f"f_ext['{link}']": 6 for link in self.f_ext}

    def results(self, model: Model) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes."""
        return self.algorithm.results(model, len(self.frames))

    def tree(self, model: Model) -> Model:
        """The model with the same equations of motion on which it takes the fewest operations.

        To be run on traced scalars; pivots of elimination orders need the inertias as they are.
        """
        if self.method in OPEN_TREES:
            return reduced_tree(model, self.method, self.name)
        if "known" in self.algorithm.takes:
            inverse = len(prescribed(model, self.known)) == model.nv
            return reduced(model, "rnea" if inverse else "aba")
        return model if self.order is not None else reduced(model, self.name)

    def run(self, model: Model, arguments: Arguments) -> Sequence[Scalar]:
        """Run on scalars; the results one after the other, matrices by rows."""
        entry = self.algorithm
        places = [frames.place(model, frame, self.reference) for frame in self.frames]
        by_link = {link: arguments[f"f_ext['{link}']"] for link in self.f_ext}
        options: dict[str, object] = {"places": places, "known": self.known}
        options["f_ext"] = frames.body_wrenches(model, by_link)
        options["at"] = places[0] if places else None

        def run(x: Arguments) -> Sequence[Scalar]:
            if self.order is not None:
                return self.order(model, x["q"], x["v"], x["tau"])
            return entry.compute(self.method, model, x, options)

        if not self.passive:
            return run(arguments)
        assert entry.passive is not None
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
) -> AlgorithmSpec:
    """An algorithm with options as users give them: those of :class:`AlgorithmOptions`."""
    keys, names = frame_keys(frames if frame is None else frame), as_names(known, "known")
    if names and algorithm in ALGORITHMS and "known" in ALGORITHMS[algorithm].takes:
        names = prescribed(model, names)
    links = () if f_ext is None else as_names(f_ext, "f_ext")
    return AlgorithmSpec(algorithm, keys, links, method, names, None, passive, reference)


@traced
def traced_algorithm(model: Model, spec: AlgorithmSpec) -> TracedFunction:
    """An algorithm with its options, traced on the tree that takes the fewest operations."""
    sizes = spec.sizes(model)

    def build(*arguments: Vector) -> Sequence[Scalar]:
        return spec.run(spec.tree(model), dict(zip(sizes, arguments, strict=True)))

    label = spec.name if spec.method == "cluster" else f"{spec.name}:{spec.method}"
    return TracedFunction(spec.name, sizes, spec.results(model), build, label=label)


def kernel(model: Model, spec: AlgorithmSpec, dtype: Dtype = "float64") -> Kernel:
    """The kernel of an algorithm with its options, compiled once a model."""
    return traced_algorithm(model, spec).kernel(dtype)
