"""An algorithm with its options: its arguments, results, and how it runs on scalars of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from robomodel.dynamics.baselines import open_tree as independent
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import Reference
from robomodel.dynamics.passive import Arguments
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.dynamics.table import OPEN_TREES, TABLE, Name
from robomodel.errors import did_you_mean
from robomodel.kernels.function import TracedFunction
from robomodel.model.derived import traced
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector

Method: TypeAlias = Literal[
    "cluster",
    "orthonormal",
    "projection",
    "lagrange",
    "approximate",
    "unconstrained",
    "christoffel",
]

ForwardDynamics: TypeAlias = Callable[[Model, Vector, Vector, Vector], Sequence[Scalar]]
"""Accelerations (nv) from a model, q, v and tau; scalars of any kind."""


@dataclass(frozen=True, slots=True)
class Task:
    """An algorithm with its options: the frames it is about, the links that external forces act on.

    ``method`` is "cluster", or another that its entry in the table has. ``known``: of "hybrid", the
    joints whose acceleration is given. ``order``: of "aba", another way to
    compute it, hashable. ``passive``:
    with springs and damping. ``reference``: in which motions of the frame are told. Its arguments
    are the algorithm's, then six numbers for each of ``f_ext``.
    """

    name: Name
    frames: tuple[frames.FrameKey, ...] = ()
    f_ext: tuple[str, ...] = ()
    method: Method = "cluster"
    known: tuple[str, ...] = ()
    order: ForwardDynamics | None = None
    passive: bool = False
    reference: Reference = "local"

    def __post_init__(self) -> None:
        if self.name not in TABLE:
            known = ", ".join(f"'{name}'" for name in TABLE)
            raise ValueError(
                f"algorithm '{self.name}' is not known{did_you_mean(self.name, TABLE)}; "
                f"known are {known}"
            )
        entry = TABLE[self.name]
        methods = ("cluster", *entry.methods)
        if self.method not in methods:
            known = ", ".join(f"'{method}'" for method in methods)
            raise ValueError(
                f"method '{self.method}' is not known of '{self.name}'; known are {known}"
            )
        if self.known and not entry.takes_known:
            raise ValueError(f"'{self.name}' takes no known joints")
        if self.order is not None and (self.name, self.method, self.f_ext) != (
            "aba",
            "cluster",
            (),
        ):
            raise ValueError("an order is for 'aba' by its own method, without external forces")
        if self.reference not in frames.REFERENCES:
            known = ", ".join(f"'{reference}'" for reference in frames.REFERENCES)
            raise ValueError(f"reference '{self.reference}' is not known; {known} are")
        if self.reference != "local" and not entry.takes_reference:
            raise ValueError(f"'{self.name}' takes no reference")
        if self.passive and entry.passive is None:
            raise ValueError(f"'{self.name}' takes no passive forces")
        if self.f_ext and not entry.takes_forces:
            raise ValueError(f"'{self.name}' takes no external forces")
        if entry.takes_frames:
            if not self.frames:
                raise ValueError(f"'{self.name}' needs one or more frames")
        elif len(self.frames) != entry.takes_frame:
            raise ValueError(f"'{self.name}' needs {'one' if entry.takes_frame else 'no'} frame")

    def sizes(self, model: Model) -> dict[str, int]:
        """The arguments' names and lengths."""
        special = {"q": model.nq, "forces": 3 * len(self.frames)}
        own = {n: special.get(n, model.nv) for n in TABLE[self.name].arguments}
        return own | {f"f_ext['{link}']": 6 for link in self.f_ext}

    def results(self, model: Model) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes."""
        return TABLE[self.name].results(model, len(self.frames))

    @property
    def by_trace(self) -> bool:
        """Whether it runs on traced scalars only."""
        return TABLE[self.name].by_trace

    def tree(self, model: Model) -> Model:
        """The model with the same equations of motion on which it takes the fewest operations.

        To be run on traced scalars; pivots of elimination orders need the inertias as they are.
        """
        if self.method in OPEN_TREES:
            return independent.reduced_tree(model, self.method, self.name)
        if self.name == "hybrid":
            from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

            inverse = len(prescribed(model, self.known)) == model.nv
            return reduced(model, "rnea" if inverse else "aba")
        return model if self.order is not None else reduced(model, self.name)

    def run(self, model: Model, arguments: Arguments) -> Sequence[Scalar]:
        """Run on scalars; the results one after the other, matrices by rows."""
        at = [frames.place(model, frame, self.reference) for frame in self.frames]
        forces = frames.body_wrenches(
            model, {link: arguments[f"f_ext['{link}']"] for link in self.f_ext}
        )
        entry = TABLE[self.name]

        def run(x: Arguments) -> Sequence[Scalar]:
            if self.order is not None:
                return self.order(model, x["q"], x["v"], x["tau"])
            return entry.compute(self.method, model, x, forces, at, self.known)

        if not self.passive:
            return run(arguments)
        assert entry.passive is not None
        return entry.passive(model, arguments, self.known, run)


@traced
def traced_algorithm(model: Model, task: Task) -> TracedFunction:
    """An algorithm with its options, traced on the tree that takes the fewest operations."""
    sizes = task.sizes(model)

    def build(*arguments: Vector) -> Sequence[Scalar]:
        return task.run(task.tree(model), dict(zip(sizes, arguments, strict=True)))

    label = task.name if task.method == "cluster" else f"{task.name}:{task.method}"
    return TracedFunction(task.name, sizes, task.results(model), build, label=label)
