"""The algorithms by name: what each takes and gives, and how it is run on scalars of any kind.

One table serves every way of running them: NumPy batches, compiled kernels, CasADi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.actuators.maps import reflected as actuator_shares
from robomodel.dynamics.actuators.saturation import saturated
from robomodel.dynamics.baselines import open_tree as independent
from robomodel.dynamics.baselines import projection
from robomodel.dynamics.contact.points import touch_derivatives, touching
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Forces
from robomodel.dynamics.passive import (
    Arguments,
    Inner,
    hybrid_passive,
)
from robomodel.dynamics.recursions.coriolis import christoffel, coriolis
from robomodel.dynamics.recursions.efpa import efpa, efpa_factors
from robomodel.dynamics.recursions.impulse import contact, contact_factors
from robomodel.dynamics.recursions.regressor import (
    energy_regressor,
    momentum_regressor,
    reference_regressor,
    regressor,
)
from robomodel.model.approximate import reflected
from robomodel.model.model import Model
from robomodel.model.parameters import count
from robomodel.scalars import Scalar, Vector

Name: TypeAlias = Literal[
    "aba",
    "aba_derivatives",
    "accelerometer_derivatives",
    "actuator_map",
    "armature",
    "bias_force",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_map",
    "centroidal_momentum",
    "contact",
    "contact_derivatives",
    "contact_factors",
    "coriolis",
    "crba",
    "efpa",
    "efpa_factors",
    "energy",
    "energy_regressor",
    "frame_acceleration",
    "frame_bias",
    "frame_pose",
    "frame_velocity",
    "gravity_force",
    "gyroscope_derivatives",
    "hybrid",
    "jacobian",
    "mass_inverse",
    "momentum_regressor",
    "passive_force",
    "reference_regressor",
    "reflected",
    "regressor",
    "rnea",
    "rnea_derivatives",
    "rnea_hessian_product",
    "saturate",
    "touching",
]
"""What there is, for type checkers: the keys of the table."""


_Passive = Callable[[Model, Arguments, Sequence[str], Inner], Sequence[Scalar]]

OPEN_TREES = ("approximate", "unconstrained")

SIZES: Mapping[str, Callable[[Model, int], int]] = {
    "nv": lambda model, _: model.nv,
    "nu": lambda model, _: len(model.actuators),
    "p": lambda model, _: count(model),
    "3k": lambda _, k: 3 * k,
    "6k": lambda _, k: 6 * k,
}
"""Axes of results by name: of the model and the number k of frames."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm: its arguments, the axes of its results, and what computes them.

    ``run`` and ``methods`` are called with the model, the arguments in this order, and then, where
    it takes them, the external forces, the frame or the frames, and the known joints.
    """

    arguments: tuple[str, ...]
    axes: Mapping[str, tuple[str | int, ...]]
    run: Callable[..., Any]
    takes_forces: bool = False
    takes_frame: bool = False
    takes_frames: bool = False  # one or more
    takes_reference: bool = False  # in which motions of the frame are told
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)  # not by clusters
    by_trace: bool = False  # differentiates its own trace, so it runs on traced scalars only
    takes_known: bool = False  # joints whose acceleration is given, the force of all others
    passive: _Passive | None = None  # the same with springs and damping

    def results(self, model: Model, k: int) -> Mapping[str, tuple[int, ...]]:
        """The results' names and shapes with k frames."""
        return {
            name: tuple(n if isinstance(n, int) else SIZES[n](model, k) for n in axes)
            for name, axes in self.axes.items()
        }

    def compute(
        self,
        method: str,
        model: Model,
        arguments: Arguments,
        forces: Forces,
        places: Sequence[frames.Place],
        known: Sequence[str],
    ) -> list[Scalar]:
        """The numbers of all results, one result after the other, matrices by rows."""
        more: list[object] = [forces] if self.takes_forces else []
        if self.takes_frame or self.takes_frames:
            more += places if self.takes_frame else [places]
        if self.takes_known:
            more.append(known)
        run = self.run if method == "cluster" else self.methods[method]
        return _flat([run(model, *(arguments[name] for name in self.arguments), *more)])


def _flat(numbers: Sequence[Any]) -> list[Scalar]:
    """The scalars of nested lists and tuples."""
    return [
        x for part in numbers for x in (_flat(part) if isinstance(part, list | tuple) else (part,))
    ]


def on_open_trees(run: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Methods by which an algorithm runs on open trees."""
    return {method: partial(run, method) for method in OPEN_TREES}


def _hybrid(
    model: Model, q: Vector, v: Vector, given: Vector, f_ext: Forces, known: Sequence[str]
) -> tuple[list[Scalar], list[Scalar]]:
    from robomodel.dynamics.recursions.hybrid_dynamics import hybrid, prescribed

    return hybrid(model, q, v, given, prescribed(model, known), f_ext)


Q, QV, QVA = ("q",), ("q", "v"), ("q", "v", "a")
SQUARE = ("nv", "nv")

TABLE: dict[str, Algorithm] = {
    "coriolis": Algorithm(
        QV, {"C": SQUARE}, coriolis, methods={"christoffel": christoffel}, by_trace=True
    ),
    "gyroscope_derivatives": Algorithm(
        QV,
        {"omega": (3,), "domega_dq": (3, "nv"), "domega_dv": (3, "nv")},
        frames.gyroscope_derivatives,
        takes_frame=True,
        by_trace=True,
    ),
    "accelerometer_derivatives": Algorithm(
        QVA,
        {"force": (3,), **dict.fromkeys(("df_dq", "df_dv", "df_da"), (3, "nv"))},
        frames.accelerometer_derivatives,
        takes_frame=True,
        by_trace=True,
    ),
    "efpa": Algorithm(
        Q,
        {"inverse_inertia": ("6k", "6k")},
        efpa,
        takes_frames=True,
        methods={"projection": projection.efpa, **on_open_trees(independent.efpa)},
    ),
    "contact": Algorithm(
        Q,
        {"inverse_inertia": ("3k", "3k"), "J": ("3k", "nv"), "M": SQUARE},
        contact,
        takes_frames=True,
        methods=on_open_trees(independent.contact),
    ),
    "touching": Algorithm(
        QVA, {"rates": ("3k",), "accelerations": ("3k",)}, touching, takes_frames=True
    ),
    "contact_derivatives": Algorithm(
        ("q", "v", "a", "forces"),
        {
            **dict.fromkeys(("left_q", "left_v"), SQUARE),
            **dict.fromkeys(("right_q", "right_v", "J"), ("3k", "nv")),
            "M": SQUARE,
        },
        touch_derivatives,
        takes_frames=True,
        by_trace=True,
    ),
    "efpa_factors": Algorithm(  # of many frames: what the inverse inertia is a product of
        Q, {"R": ("6k", "nv"), "p": ("nv",)}, efpa_factors, takes_frames=True
    ),
    "contact_factors": Algorithm(
        Q,
        {"R": ("3k", "nv"), "p": ("nv",), "J": ("3k", "nv"), "M": SQUARE},
        contact_factors,
        takes_frames=True,
    ),
    "armature": Algorithm(Q, {"A": SQUARE}, reflected),
    "hybrid": Algorithm(
        ("q", "v", "given"),
        {"tau": ("nv",), "a": ("nv",)},
        _hybrid,
        takes_forces=True,
        passive=hybrid_passive,
        takes_known=True,
    ),
    "actuator_map": Algorithm(Q, {"B": ("nv", "nu")}, actuator_map),
    "reflected": Algorithm(
        Q, dict.fromkeys(("inertia", "damping", "friction"), ("nv", "nu")), actuator_shares
    ),
    "saturate": Algorithm(
        ("q", "v", "tau"), {"tau": ("nv",), "u": ("nu",), "lost": ("nu",)}, saturated
    ),
    "regressor": Algorithm(QVA, {"Y": ("nv", "p")}, regressor),
    "reference_regressor": Algorithm(
        (*QVA, "reference"), {"Y": ("nv", "p")}, reference_regressor, by_trace=True
    ),
    "momentum_regressor": Algorithm(
        QV, {"P": ("nv", "p"), "R": ("nv", "p")}, momentum_regressor, by_trace=True
    ),
    "energy_regressor": Algorithm(QV, {"kinetic": ("p",), "potential": ("p",)}, energy_regressor),
}
