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
from robomodel.dynamics.baselines import lagrange, projection
from robomodel.dynamics.baselines import open_tree as independent
from robomodel.dynamics.contact.points import touch_derivatives, touching
from robomodel.dynamics.kinematics import frames, momentum, sensors
from robomodel.dynamics.kinematics.state import Forces, Matrix
from robomodel.dynamics.order import Order
from robomodel.dynamics.passive import (
    Arguments,
    Inner,
    aba_derivatives_passive,
    aba_passive,
    gravity_less_passive,
    hybrid_passive,
    less_passive,
    rnea_derivatives_passive,
)
from robomodel.dynamics.recursions import orthonormal
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.coriolis import christoffel, coriolis
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.derivatives import aba_derivatives, rnea_derivatives
from robomodel.dynamics.recursions.efpa import efpa, efpa_factors
from robomodel.dynamics.recursions.hessian import rnea_hessian_product
from robomodel.dynamics.recursions.impulse import contact, contact_factors
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.regressor import (
    energy_regressor,
    momentum_regressor,
    reference_regressor,
    regressor,
)
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.model.approximate import reflected
from robomodel.model.model import Model
from robomodel.model.parameters import count
from robomodel.scalars import Factorization, Scalar, Vector

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
class _Algorithm:
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


def _on_open_trees(run: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {method: partial(run, method) for method in OPEN_TREES}


def _mass_inverse(model: Model, q: Vector) -> Matrix:
    return Factorization(crba(model, q)).inverse()


def _gravity_force(model: Model, q: Vector, f_ext: Forces) -> list[Scalar]:
    return bias_force(model, q, [0.0] * model.nv, f_ext)


def _frame_bias(model: Model, q: Vector, v: Vector, at: frames.Place) -> tuple[Scalar, ...]:
    return frames.acceleration(model, q, v, [0.0] * model.nv, at)


def _pose(model: Model, q: Vector, at: frames.Place) -> list[Scalar]:
    rotation, origin = frames.pose(model, q, at)
    top = [x for row, o in zip(rotation, origin, strict=True) for x in (*row, o)]
    return [*top, 0.0, 0.0, 0.0, 1.0]


def _hybrid(
    model: Model, q: Vector, v: Vector, given: Vector, f_ext: Forces, known: Sequence[str]
) -> tuple[list[Scalar], list[Scalar]]:
    from robomodel.dynamics.recursions.hybrid_dynamics import hybrid, prescribed

    return hybrid(model, q, v, given, prescribed(model, known), f_ext)


def run_ordered(model: Model, arguments: Arguments, order: Order) -> list[Scalar]:
    """Forward dynamics by elimination in an order."""
    from robomodel.dynamics.elimination.programs import forward

    return forward(model, arguments["q"], arguments["v"], arguments["tau"], order)


Q, QV, QVA = ("q",), ("q", "v"), ("q", "v", "a")
SQUARE = ("nv", "nv")

TABLE: Mapping[Name, _Algorithm] = {
    "rnea": _Algorithm(
        QVA,
        {"tau": ("nv",)},
        rnea,
        takes_forces=True,
        passive=less_passive,
        methods={"projection": projection.rnea, **_on_open_trees(independent.rnea)},
    ),
    "aba": _Algorithm(
        ("q", "v", "tau"),
        {"a": ("nv",)},
        aba,
        takes_forces=True,
        passive=aba_passive,
        methods={
            "orthonormal": orthonormal.aba,
            "projection": projection.aba,
            "lagrange": lagrange.aba,
            **_on_open_trees(independent.aba),
        },
    ),
    "crba": _Algorithm(Q, {"M": SQUARE}, crba),
    "bias_force": _Algorithm(
        QV, {"tau": ("nv",)}, bias_force, takes_forces=True, passive=less_passive
    ),
    "gravity_force": _Algorithm(
        Q, {"tau": ("nv",)}, _gravity_force, takes_forces=True, passive=gravity_less_passive
    ),
    "coriolis": _Algorithm(
        QV, {"C": SQUARE}, coriolis, methods={"christoffel": christoffel}, by_trace=True
    ),
    "mass_inverse": _Algorithm(Q, {"Minv": SQUARE}, _mass_inverse),
    "jacobian": _Algorithm(
        Q, {"J": (6, "nv")}, frames.jacobian, takes_frame=True, takes_reference=True
    ),
    "frame_acceleration": _Algorithm(
        QVA, {"acceleration": (6,)}, frames.acceleration, takes_frame=True, takes_reference=True
    ),
    "frame_bias": _Algorithm(
        QV, {"acceleration": (6,)}, _frame_bias, takes_frame=True, takes_reference=True
    ),
    "frame_pose": _Algorithm(Q, {"pose": (4, 4)}, _pose, takes_frame=True),
    "frame_velocity": _Algorithm(
        QV, {"velocity": (6,)}, frames.velocity, takes_frame=True, takes_reference=True
    ),
    "gyroscope_derivatives": _Algorithm(
        QV,
        {"omega": (3,), "domega_dq": (3, "nv"), "domega_dv": (3, "nv")},
        sensors.gyroscope_derivatives,
        takes_frame=True,
        by_trace=True,
    ),
    "accelerometer_derivatives": _Algorithm(
        QVA,
        {"force": (3,), **dict.fromkeys(("df_dq", "df_dv", "df_da"), (3, "nv"))},
        sensors.accelerometer_derivatives,
        takes_frame=True,
        by_trace=True,
    ),
    "efpa": _Algorithm(
        Q,
        {"inverse_inertia": ("6k", "6k")},
        efpa,
        takes_frames=True,
        methods={"projection": projection.efpa, **_on_open_trees(independent.efpa)},
    ),
    "contact": _Algorithm(
        Q,
        {"inverse_inertia": ("3k", "3k"), "J": ("3k", "nv"), "M": SQUARE},
        contact,
        takes_frames=True,
        methods=_on_open_trees(independent.contact),
    ),
    "touching": _Algorithm(
        QVA, {"rates": ("3k",), "accelerations": ("3k",)}, touching, takes_frames=True
    ),
    "contact_derivatives": _Algorithm(
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
    "efpa_factors": _Algorithm(  # of many frames: what the inverse inertia is a product of
        Q, {"R": ("6k", "nv"), "p": ("nv",)}, efpa_factors, takes_frames=True
    ),
    "contact_factors": _Algorithm(
        Q,
        {"R": ("3k", "nv"), "p": ("nv",), "J": ("3k", "nv"), "M": SQUARE},
        contact_factors,
        takes_frames=True,
    ),
    "armature": _Algorithm(Q, {"A": SQUARE}, reflected),
    "hybrid": _Algorithm(
        ("q", "v", "given"),
        {"tau": ("nv",), "a": ("nv",)},
        _hybrid,
        takes_forces=True,
        passive=hybrid_passive,
        takes_known=True,
    ),
    "actuator_map": _Algorithm(Q, {"B": ("nv", "nu")}, actuator_map),
    "reflected": _Algorithm(
        Q, dict.fromkeys(("inertia", "damping", "friction"), ("nv", "nu")), actuator_shares
    ),
    "passive_force": _Algorithm(QV, {"tau": ("nv",)}, passive_force),
    "saturate": _Algorithm(
        ("q", "v", "tau"), {"tau": ("nv",), "u": ("nu",), "lost": ("nu",)}, saturated
    ),
    "energy": _Algorithm(QV, {"kinetic": (), "potential": ()}, momentum.energy),
    "regressor": _Algorithm(QVA, {"Y": ("nv", "p")}, regressor),
    "reference_regressor": _Algorithm(
        (*QVA, "reference"), {"Y": ("nv", "p")}, reference_regressor, by_trace=True
    ),
    "momentum_regressor": _Algorithm(
        QV, {"P": ("nv", "p"), "R": ("nv", "p")}, momentum_regressor, by_trace=True
    ),
    "energy_regressor": _Algorithm(QV, {"kinetic": ("p",), "potential": ("p",)}, energy_regressor),
    "center_of_mass": _Algorithm(Q, {"com": (3,)}, momentum.center_of_mass),
    "center_of_mass_velocity": _Algorithm(QV, {"velocity": (3,)}, momentum.center_of_mass_velocity),
    "center_of_mass_acceleration": _Algorithm(
        QVA, {"acceleration": (3,)}, momentum.center_of_mass_acceleration
    ),
    "center_of_mass_jacobian": _Algorithm(Q, {"J": (3, "nv")}, momentum.center_of_mass_jacobian),
    "centroidal_map": _Algorithm(Q, {"A": (6, "nv")}, momentum.centroidal_map),
    "centroidal_momentum": _Algorithm(QV, {"h": (6,)}, momentum.centroidal_momentum),
    "rnea_derivatives": _Algorithm(
        QVA,
        dict.fromkeys(("dtau_dq", "dtau_dv", "M"), SQUARE),
        rnea_derivatives,
        takes_forces=True,
        passive=rnea_derivatives_passive,
        by_trace=True,
    ),
    "rnea_hessian_product": _Algorithm(
        (*QVA, "w"),
        dict.fromkeys(("dqdq", "dvdv", "dqdv", "dadq"), SQUARE),
        rnea_hessian_product,
        takes_forces=True,
        by_trace=True,
    ),
    "aba_derivatives": _Algorithm(
        ("q", "v", "tau"),
        dict.fromkeys(("da_dq", "da_dv", "Minv"), SQUARE),
        aba_derivatives,
        takes_forces=True,
        passive=aba_derivatives_passive,
        by_trace=True,
    ),
}
