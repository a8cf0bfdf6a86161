"""The algorithms by name: what each takes and gives, and how it is run on scalars of any kind.

One table serves every way of running them: NumPy batches, compiled kernels, CasADi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from robomodel.dynamics import frames, momentum
from robomodel.dynamics.aba import aba
from robomodel.dynamics.crba import crba
from robomodel.dynamics.derivatives import aba_derivatives, rnea_derivatives
from robomodel.dynamics.rnea import bias_force, rnea
from robomodel.model.joints import Array
from robomodel.model.model import WORLD, Model
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import Wrench

Arguments = Mapping[str, Vector]
Forces = dict[int, Wrench]


@dataclass(frozen=True, slots=True)
class _Algorithm:
    """Arguments, the shape of each result, and the algorithm itself, its result flat."""

    arguments: tuple[str, ...]
    results: Callable[[Model], Mapping[str, tuple[int, ...]]]
    run: Callable[[Model, Arguments, Forces, frames.Place | None], Sequence[Scalar]]
    takes_forces: bool = False
    takes_frame: bool = False
    by_trace: bool = False  # differentiates its own trace, so it runs on traced scalars only


def _flat(rows: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    return [x for row in rows for x in row]


def _pose(model: Model, q: Vector, at: frames.Place) -> list[Scalar]:
    rotation, origin = frames.pose(model, q, at)
    top = [x for row, o in zip(rotation, origin, strict=True) for x in (*row, o)]
    return [*top, 0.0, 0.0, 0.0, 1.0]


def _placed(at: frames.Place | None) -> frames.Place:
    assert at is not None
    return at


TABLE: Mapping[str, _Algorithm] = {
    "rnea": _Algorithm(
        ("q", "v", "a"),
        lambda m: {"tau": (m.nv,)},
        lambda m, x, f, _: rnea(m, x["q"], x["v"], x["a"], f),
        takes_forces=True,
    ),
    "aba": _Algorithm(
        ("q", "v", "tau"),
        lambda m: {"a": (m.nv,)},
        lambda m, x, f, _: aba(m, x["q"], x["v"], x["tau"], f),
        takes_forces=True,
    ),
    "crba": _Algorithm(
        ("q",),
        lambda m: {"M": (m.nv, m.nv)},
        lambda m, x, _f, _: _flat(crba(m, x["q"])),
    ),
    "bias_force": _Algorithm(
        ("q", "v"),
        lambda m: {"tau": (m.nv,)},
        lambda m, x, f, _: bias_force(m, x["q"], x["v"], f),
        takes_forces=True,
    ),
    "jacobian": _Algorithm(
        ("q",),
        lambda m: {"J": (6, m.nv)},
        lambda m, x, _f, at: _flat(frames.jacobian(m, x["q"], _placed(at))),
        takes_frame=True,
    ),
    "frame_pose": _Algorithm(
        ("q",),
        lambda m: {"pose": (4, 4)},
        lambda m, x, _f, at: _pose(m, x["q"], _placed(at)),
        takes_frame=True,
    ),
    "frame_velocity": _Algorithm(
        ("q", "v"),
        lambda m: {"velocity": (6,)},
        lambda m, x, _f, at: frames.velocity(m, x["q"], x["v"], _placed(at)),
        takes_frame=True,
    ),
    "energy": _Algorithm(
        ("q", "v"),
        lambda m: {"kinetic": (), "potential": ()},
        lambda m, x, _f, _: momentum.energy(m, x["q"], x["v"]),
    ),
    "center_of_mass": _Algorithm(
        ("q",),
        lambda m: {"com": (3,)},
        lambda m, x, _f, _: momentum.center_of_mass(m, x["q"]),
    ),
    "centroidal_momentum": _Algorithm(
        ("q", "v"),
        lambda m: {"h": (6,)},
        lambda m, x, _f, _: momentum.centroidal_momentum(m, x["q"], x["v"]),
    ),
    "rnea_derivatives": _Algorithm(
        ("q", "v", "a"),
        lambda m: dict.fromkeys(("dtau_dq", "dtau_dv", "M"), (m.nv, m.nv)),
        lambda m, x, f, _: _flat(
            [_flat(rows) for rows in rnea_derivatives(m, x["q"], x["v"], x["a"], f)]
        ),
        takes_forces=True,
        by_trace=True,
    ),
    "aba_derivatives": _Algorithm(
        ("q", "v", "tau"),
        lambda m: dict.fromkeys(("da_dq", "da_dv", "Minv"), (m.nv, m.nv)),
        lambda m, x, f, _: _flat(
            [_flat(rows) for rows in aba_derivatives(m, x["q"], x["v"], x["tau"], f)]
        ),
        takes_forces=True,
        by_trace=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Task:
    """An algorithm with its options: the frame it is about, the links that external forces act on.

    Its arguments are the algorithm's, then six numbers for each of ``f_ext``.
    """

    name: str
    frame: str | tuple[str, tuple[float, float, float]] | None = None
    f_ext: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in TABLE:
            known = ", ".join(f"'{name}'" for name in TABLE)
            raise ValueError(f"algorithm '{self.name}' is not known; known are {known}")
        entry = TABLE[self.name]
        if self.f_ext and not entry.takes_forces:
            raise ValueError(f"'{self.name}' takes no external forces")
        if entry.takes_frame != (self.frame is not None):
            raise ValueError(f"'{self.name}' needs {'a' if entry.takes_frame else 'no'} frame")

    def sizes(self, model: Model) -> dict[str, int]:
        """The arguments' names and lengths."""
        own = {n: model.nq if n == "q" else model.nv for n in TABLE[self.name].arguments}
        return own | {f"f_ext['{link}']": 6 for link in self.f_ext}

    def results(self, model: Model) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes."""
        return TABLE[self.name].results(model)

    @property
    def by_trace(self) -> bool:
        """Whether it runs on traced scalars only."""
        return TABLE[self.name].by_trace

    def split(self, model: Model, flat: Array) -> Array | tuple[Array, ...]:
        """The results from an array (..., all numbers): one array, or a tuple of several."""
        parts, at = [], 0
        for shape in self.results(model).values():
            size = math.prod(shape)
            parts.append(flat[..., at : at + size].reshape((*flat.shape[:-1], *shape)))
            at += size
        return parts[0] if len(parts) == 1 else tuple(parts)

    def run(self, model: Model, arguments: Arguments) -> Sequence[Scalar]:
        """Run on scalars; the results one after the other, matrices by rows."""
        at = None if self.frame is None else frames.place(model, self.frame)
        forces: Forces = {}
        for link in self.f_ext:
            frame = model.frame(link)
            if frame.body == WORLD:
                continue  # on the fixed base: the world takes it
            x = arguments[f"f_ext['{link}']"]
            wrench = frame.pose.to_parent(Wrench((x[0], x[1], x[2]), (x[3], x[4], x[5])))
            known = forces.get(frame.body)
            forces[frame.body] = wrench if known is None else known + wrench
        return TABLE[self.name].run(model, arguments, forces, at)
