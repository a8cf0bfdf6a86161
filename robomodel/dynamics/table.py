"""The algorithms by name: what each takes and gives, and how it is run on scalars of any kind.

One table serves every way of running them: NumPy batches, compiled kernels, CasADi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.actuators.maps import reflected as actuator_shares
from robomodel.dynamics.actuators.saturation import saturated
from robomodel.dynamics.baselines import lagrange, projection
from robomodel.dynamics.baselines import open_tree as independent
from robomodel.dynamics.contact.points import touch_derivatives, touching
from robomodel.dynamics.kinematics import frames, momentum, sensors
from robomodel.dynamics.kinematics.state import Matrix
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
from robomodel.spatial import Wrench

Forces = dict[int, Wrench]


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


_Run = Callable[[Model, Arguments, Forces, Sequence[frames.Place]], Sequence[Scalar]]


_Passive = Callable[[Model, Arguments, Sequence[str], Inner], Sequence[Scalar]]


OPEN_TREES = ("approximate", "unconstrained")


@dataclass(frozen=True, slots=True)
class _Algorithm:
    """Arguments, the shapes of results by the number of frames, the algorithm, its result flat."""

    arguments: tuple[str, ...]
    results: Callable[[Model, int], Mapping[str, tuple[int, ...]]]
    run: _Run
    takes_forces: bool = False
    takes_frame: bool = False
    takes_frames: bool = False  # one or more
    takes_reference: bool = False  # in which motions of the frame are told
    methods: Mapping[str, _Run] = field(default_factory=dict)  # other ways than by clusters
    by_trace: bool = False  # differentiates its own trace, so it runs on traced scalars only
    takes_known: bool = False  # joints whose acceleration is given, the force of all others
    passive: _Passive | None = None  # the same with springs and damping


def _flat(rows: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    return [x for row in rows for x in row]


def _factors(rows: Matrix, pivots: Vector, *others: Matrix) -> list[Scalar]:
    return [*_flat(rows), *pivots, *(x for matrix in others for x in _flat(matrix))]


def _pose(model: Model, q: Vector, at: frames.Place) -> list[Scalar]:
    rotation, origin = frames.pose(model, q, at)
    top = [x for row, o in zip(rotation, origin, strict=True) for x in (*row, o)]
    return [*top, 0.0, 0.0, 0.0, 1.0]


def _open_rnea(method: str, m: Model, x: Arguments, f: Forces, _: object) -> Sequence[Scalar]:
    return independent.rnea(m, method, x["q"], x["v"], x["a"], f)


def _open_aba(method: str, m: Model, x: Arguments, f: Forces, _: object) -> Sequence[Scalar]:
    return independent.aba(m, method, x["q"], x["v"], x["tau"], f)


def _open_efpa(
    method: str, m: Model, x: Arguments, _: Forces, at: Sequence[frames.Place]
) -> Sequence[Scalar]:
    return _flat(independent.efpa(m, method, x["q"], at))


def _open_contact(
    method: str, m: Model, x: Arguments, _: Forces, at: Sequence[frames.Place]
) -> Sequence[Scalar]:
    return _flat([_flat(rows) for rows in independent.contact(m, method, x["q"], at)])


def run_hybrid(m: Model, x: Arguments, f: Forces, known: Sequence[str]) -> Sequence[Scalar]:
    """Hybrid dynamics: ``known`` are the joints whose acceleration is given."""
    from robomodel.dynamics.recursions.hybrid_dynamics import hybrid, prescribed

    return _flat(hybrid(m, x["q"], x["v"], x["given"], prescribed(m, known), f))


def run_ordered(m: Model, x: Arguments, order: Order) -> Sequence[Scalar]:
    """Forward dynamics by elimination in an order."""
    from robomodel.dynamics.elimination.programs import forward

    return forward(m, x["q"], x["v"], x["tau"], order)


TABLE: Mapping[Name, _Algorithm] = {
    "rnea": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, f, _: rnea(m, x["q"], x["v"], x["a"], f),
        takes_forces=True,
        passive=less_passive,
        methods={
            "projection": lambda m, x, f, _: projection.rnea(m, x["q"], x["v"], x["a"], f),
            **{method: partial(_open_rnea, method) for method in OPEN_TREES},
        },
    ),
    "aba": _Algorithm(
        ("q", "v", "tau"),
        lambda m, _: {"a": (m.nv,)},
        lambda m, x, f, _: aba(m, x["q"], x["v"], x["tau"], f),
        takes_forces=True,
        passive=aba_passive,
        methods={
            "orthonormal": lambda m, x, f, _: orthonormal.aba(m, x["q"], x["v"], x["tau"], f),
            "projection": lambda m, x, f, _: projection.aba(m, x["q"], x["v"], x["tau"], f),
            "lagrange": lambda m, x, f, _: lagrange.aba(m, x["q"], x["v"], x["tau"], f),
            **{method: partial(_open_aba, method) for method in OPEN_TREES},
        },
    ),
    "crba": _Algorithm(
        ("q",),
        lambda m, _: {"M": (m.nv, m.nv)},
        lambda m, x, _f, _: _flat(crba(m, x["q"])),
    ),
    "bias_force": _Algorithm(
        ("q", "v"),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, f, _: bias_force(m, x["q"], x["v"], f),
        takes_forces=True,
        passive=less_passive,
    ),
    "gravity_force": _Algorithm(
        ("q",),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, f, _: bias_force(m, x["q"], [0.0] * m.nv, f),
        takes_forces=True,
        passive=gravity_less_passive,
    ),
    "coriolis": _Algorithm(
        ("q", "v"),
        lambda m, _: {"C": (m.nv, m.nv)},
        lambda m, x, _f, _: _flat(coriolis(m, x["q"], x["v"])),
        methods={"christoffel": lambda m, x, _f, _: _flat(christoffel(m, x["q"], x["v"]))},
        by_trace=True,
    ),
    "mass_inverse": _Algorithm(
        ("q",),
        lambda m, _: {"Minv": (m.nv, m.nv)},
        lambda m, x, _f, _: _flat(Factorization(crba(m, x["q"])).inverse()),
    ),
    "jacobian": _Algorithm(
        ("q",),
        lambda m, _: {"J": (6, m.nv)},
        lambda m, x, _f, at: _flat(frames.jacobian(m, x["q"], *at)),
        takes_frame=True,
        takes_reference=True,
    ),
    "frame_acceleration": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"acceleration": (6,)},
        lambda m, x, _f, at: frames.acceleration(m, x["q"], x["v"], x["a"], *at),
        takes_frame=True,
        takes_reference=True,
    ),
    "frame_bias": _Algorithm(
        ("q", "v"),
        lambda m, _: {"acceleration": (6,)},
        lambda m, x, _f, at: frames.acceleration(m, x["q"], x["v"], [0.0] * m.nv, *at),
        takes_frame=True,
        takes_reference=True,
    ),
    "frame_pose": _Algorithm(
        ("q",),
        lambda m, _: {"pose": (4, 4)},
        lambda m, x, _f, at: _pose(m, x["q"], *at),
        takes_frame=True,
    ),
    "frame_velocity": _Algorithm(
        ("q", "v"),
        lambda m, _: {"velocity": (6,)},
        lambda m, x, _f, at: frames.velocity(m, x["q"], x["v"], *at),
        takes_frame=True,
        takes_reference=True,
    ),
    "gyroscope_derivatives": _Algorithm(
        ("q", "v"),
        lambda m, _: {"omega": (3,), "domega_dq": (3, m.nv), "domega_dv": (3, m.nv)},
        lambda m, x, _f, at: _flat(sensors.gyroscope_derivatives(m, x["q"], x["v"], *at)),
        takes_frame=True,
        by_trace=True,
    ),
    "accelerometer_derivatives": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"force": (3,), **dict.fromkeys(("df_dq", "df_dv", "df_da"), (3, m.nv))},
        lambda m, x, _f, at: _flat(
            sensors.accelerometer_derivatives(m, x["q"], x["v"], x["a"], *at)
        ),
        takes_frame=True,
        by_trace=True,
    ),
    "efpa": _Algorithm(
        ("q",),
        lambda _, k: {"inverse_inertia": (6 * k, 6 * k)},
        lambda m, x, _f, at: _flat(efpa(m, x["q"], at)),
        takes_frames=True,
        methods={
            "projection": lambda m, x, _f, at: _flat(projection.efpa(m, x["q"], at)),
            **{method: partial(_open_efpa, method) for method in OPEN_TREES},
        },
    ),
    "contact": _Algorithm(
        ("q",),
        lambda m, k: {"inverse_inertia": (3 * k, 3 * k), "J": (3 * k, m.nv), "M": (m.nv, m.nv)},
        lambda m, x, _f, at: _flat([_flat(rows) for rows in contact(m, x["q"], at)]),
        takes_frames=True,
        methods={method: partial(_open_contact, method) for method in OPEN_TREES},
    ),
    "touching": _Algorithm(
        ("q", "v", "a"),
        lambda _, k: {"rates": (3 * k,), "accelerations": (3 * k,)},
        lambda m, x, _f, at: _flat(touching(m, x["q"], x["v"], x["a"], at)),
        takes_frames=True,
    ),
    "contact_derivatives": _Algorithm(
        ("q", "v", "a", "forces"),
        lambda m, k: {
            **dict.fromkeys(("left_q", "left_v"), (m.nv, m.nv)),
            **dict.fromkeys(("right_q", "right_v", "J"), (3 * k, m.nv)),
            "M": (m.nv, m.nv),
        },
        lambda m, x, _f, at: _flat(
            [_flat(rows) for rows in touch_derivatives(m, x["q"], x["v"], x["a"], x["forces"], at)]
        ),
        takes_frames=True,
        by_trace=True,
    ),
    "efpa_factors": _Algorithm(  # of many frames: what the inverse inertia is a product of
        ("q",),
        lambda m, k: {"R": (6 * k, m.nv), "p": (m.nv,)},
        lambda m, x, _f, at: _factors(*efpa_factors(m, x["q"], at)),
        takes_frames=True,
    ),
    "contact_factors": _Algorithm(
        ("q",),
        lambda m, k: {"R": (3 * k, m.nv), "p": (m.nv,), "J": (3 * k, m.nv), "M": (m.nv, m.nv)},
        lambda m, x, _f, at: _factors(*contact_factors(m, x["q"], at)),
        takes_frames=True,
    ),
    "armature": _Algorithm(
        ("q",),
        lambda m, _: {"A": (m.nv, m.nv)},
        lambda m, x, _f, _: _flat(reflected(m, x["q"])),
    ),
    "hybrid": _Algorithm(
        ("q", "v", "given"),
        lambda m, _: {"tau": (m.nv,), "a": (m.nv,)},
        lambda m, x, f, _: run_hybrid(m, x, f, ()),
        takes_forces=True,
        passive=hybrid_passive,
        takes_known=True,
    ),
    "actuator_map": _Algorithm(
        ("q",),
        lambda m, _: {"B": (m.nv, len(m.actuators))},
        lambda m, x, _f, _: _flat(actuator_map(m, x["q"])),
    ),
    "reflected": _Algorithm(
        ("q",),
        lambda m, _: {n: (m.nv, len(m.actuators)) for n in ("inertia", "damping", "friction")},
        lambda m, x, _f, _: _flat([_flat(rows) for rows in actuator_shares(m, x["q"])]),
    ),
    "passive_force": _Algorithm(
        ("q", "v"),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, _f, _: passive_force(m, x["q"], x["v"]),
    ),
    "saturate": _Algorithm(
        ("q", "v", "tau"),
        lambda m, _: {"tau": (m.nv,), **dict.fromkeys(("u", "lost"), (len(m.actuators),))},
        lambda m, x, _f, _: _flat(saturated(m, x["q"], x["v"], x["tau"])),
    ),
    "energy": _Algorithm(
        ("q", "v"),
        lambda m, _: {"kinetic": (), "potential": ()},
        lambda m, x, _f, _: momentum.energy(m, x["q"], x["v"]),
    ),
    "regressor": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"Y": (m.nv, count(m))},
        lambda m, x, _f, _: _flat(regressor(m, x["q"], x["v"], x["a"])),
    ),
    "reference_regressor": _Algorithm(
        ("q", "v", "a", "reference"),
        lambda m, _: {"Y": (m.nv, count(m))},
        lambda m, x, _f, _: _flat(reference_regressor(m, x["q"], x["v"], x["a"], x["reference"])),
        by_trace=True,
    ),
    "momentum_regressor": _Algorithm(
        ("q", "v"),
        lambda m, _: dict.fromkeys(("P", "R"), (m.nv, count(m))),
        lambda m, x, _f, _: _flat([_flat(y) for y in momentum_regressor(m, x["q"], x["v"])]),
        by_trace=True,
    ),
    "energy_regressor": _Algorithm(
        ("q", "v"),
        lambda m, _: dict.fromkeys(("kinetic", "potential"), (count(m),)),
        lambda m, x, _f, _: _flat(energy_regressor(m, x["q"], x["v"])),
    ),
    "center_of_mass": _Algorithm(
        ("q",),
        lambda m, _: {"com": (3,)},
        lambda m, x, _f, _: momentum.center_of_mass(m, x["q"]),
    ),
    "center_of_mass_velocity": _Algorithm(
        ("q", "v"),
        lambda m, _: {"velocity": (3,)},
        lambda m, x, _f, _: momentum.center_of_mass_velocity(m, x["q"], x["v"]),
    ),
    "center_of_mass_acceleration": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"acceleration": (3,)},
        lambda m, x, _f, _: momentum.center_of_mass_acceleration(m, x["q"], x["v"], x["a"]),
    ),
    "center_of_mass_jacobian": _Algorithm(
        ("q",),
        lambda m, _: {"J": (3, m.nv)},
        lambda m, x, _f, _: _flat(momentum.center_of_mass_jacobian(m, x["q"])),
    ),
    "centroidal_map": _Algorithm(
        ("q",),
        lambda m, _: {"A": (6, m.nv)},
        lambda m, x, _f, _: _flat(momentum.centroidal_map(m, x["q"])),
    ),
    "centroidal_momentum": _Algorithm(
        ("q", "v"),
        lambda m, _: {"h": (6,)},
        lambda m, x, _f, _: momentum.centroidal_momentum(m, x["q"], x["v"]),
    ),
    "rnea_derivatives": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: dict.fromkeys(("dtau_dq", "dtau_dv", "M"), (m.nv, m.nv)),
        lambda m, x, f, _: _flat(
            [_flat(rows) for rows in rnea_derivatives(m, x["q"], x["v"], x["a"], f)]
        ),
        takes_forces=True,
        passive=rnea_derivatives_passive,
        by_trace=True,
    ),
    "rnea_hessian_product": _Algorithm(
        ("q", "v", "a", "w"),
        lambda m, _: dict.fromkeys(("dqdq", "dvdv", "dqdv", "dadq"), (m.nv, m.nv)),
        lambda m, x, f, _: _flat(
            [_flat(rows) for rows in rnea_hessian_product(m, x["q"], x["v"], x["a"], x["w"], f)]
        ),
        takes_forces=True,
        by_trace=True,
    ),
    "aba_derivatives": _Algorithm(
        ("q", "v", "tau"),
        lambda m, _: dict.fromkeys(("da_dq", "da_dv", "Minv"), (m.nv, m.nv)),
        lambda m, x, f, _: _flat(
            [_flat(rows) for rows in aba_derivatives(m, x["q"], x["v"], x["tau"], f)]
        ),
        takes_forces=True,
        passive=aba_derivatives_passive,
        by_trace=True,
    ),
}
