"""The algorithms by name: what each takes and gives, and how it is run on scalars of any kind.

One table serves every way of running them: NumPy batches, compiled kernels, CasADi.
"""

from __future__ import annotations

import math
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
from robomodel.dynamics.kinematics.frames import Reference
from robomodel.dynamics.kinematics.state import Matrix
from robomodel.dynamics.order import Order
from robomodel.dynamics.recursions import orthonormal
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.coriolis import christoffel, coriolis
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.derivatives import aba_derivatives, rnea_derivatives
from robomodel.dynamics.recursions.efpa import efpa, efpa_factors
from robomodel.dynamics.recursions.hessian import rnea_hessian_product
from robomodel.dynamics.recursions.impulse import contact, contact_factors
from robomodel.dynamics.recursions.lean import lean
from robomodel.dynamics.recursions.passive import passive_derivatives, passive_force
from robomodel.dynamics.recursions.regressor import (
    energy_regressor,
    momentum_regressor,
    reference_regressor,
    regressor,
)
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.errors import did_you_mean
from robomodel.model.approximate import reflected
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.parameters import count
from robomodel.scalars import Factorization, Scalar, Vector, add, dot, sub
from robomodel.spatial import Wrench

Arguments = Mapping[str, Vector]
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

Method: TypeAlias = Literal[
    "cluster",
    "orthonormal",
    "projection",
    "lagrange",
    "approximate",
    "unconstrained",
    "christoffel",
]
_Run = Callable[[Model, Arguments, Forces, Sequence[frames.Place]], Sequence[Scalar]]
_Passive = Callable[
    [Model, Arguments, Sequence[str], Callable[[Arguments], Sequence[Scalar]]], Sequence[Scalar]
]
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


def _hybrid(m: Model, x: Arguments, f: Forces, known: Sequence[str]) -> Sequence[Scalar]:
    from robomodel.dynamics.recursions.hybrid_dynamics import hybrid, prescribed

    return _flat(hybrid(m, x["q"], x["v"], x["given"], prescribed(m, known), f))


def _ordered(m: Model, x: Arguments, order: Order) -> Sequence[Scalar]:
    from robomodel.dynamics.elimination.programs import forward

    return forward(m, x["q"], x["v"], x["tau"], order)


# ---- with springs and damping --------------------------------------------------------------------
# Their forces p on the independent velocities come beside tau, so that every way of running an
# algorithm serves: inverse dynamics gives tau - p, forward dynamics is asked with tau + p.

_Inner = Callable[[Arguments], Sequence[Scalar]]


def _gravity_less_passive(m: Model, x: Arguments, _: object, run: _Inner) -> list[Scalar]:
    return _minus(run(x), passive_force(m, x["q"], [0.0] * m.nv))


def _less_passive(m: Model, x: Arguments, _: object, run: _Inner) -> list[Scalar]:
    return _minus(run(x), passive_force(m, x["q"], x["v"]))


def _aba_passive(m: Model, x: Arguments, _: object, run: _Inner) -> Sequence[Scalar]:
    return run({**x, "tau": _plus(x["tau"], passive_force(m, x["q"], x["v"]))})


def _hybrid_passive(m: Model, x: Arguments, known: Sequence[str], run: _Inner) -> Sequence[Scalar]:
    from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

    passive = passive_force(m, x["q"], x["v"])
    names = prescribed(m, known)
    free = [0.0 if name in names else p for name, p in zip(m.dof_names, passive, strict=True)]
    out = run({**x, "given": _plus(x["given"], free)})
    tau = [
        sub(t, p) if name in names else g
        for name, t, p, g in zip(m.dof_names, out[: m.nv], passive, x["given"], strict=True)
    ]
    return [*tau, *out[m.nv :]]


def _rnea_derivatives_passive(m: Model, x: Arguments, _: object, run: _Inner) -> Sequence[Scalar]:
    out = run(x)
    changes = _flat([_flat(rows) for rows in passive_derivatives(m, x["q"], x["v"])])
    count = len(changes)
    return [*_minus(out[:count], changes), *out[count:]]


def _aba_derivatives_passive(m: Model, x: Arguments, _: object, run: _Inner) -> Sequence[Scalar]:
    """∂a = M⁻¹ (∂passive - ∂ID), at the a of tau + p."""
    out, n = _aba_passive(m, x, _, run), m.nv
    blocks = [out[i * n * n : (i + 1) * n * n] for i in range(3)]
    inverse = [blocks[2][i * n : (i + 1) * n] for i in range(n)]
    dq, dv = (
        _plus(block, [dot(row, c) for row in inverse for c in zip(*changes, strict=True)])
        for block, changes in zip(blocks[:2], passive_derivatives(m, x["q"], x["v"]), strict=True)
    )
    return [*dq, *dv, *blocks[2]]


def _plus(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [add(x, y) for x, y in zip(a, b, strict=True)]


def _minus(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [sub(x, y) for x, y in zip(a, b, strict=True)]


TABLE: Mapping[Name, _Algorithm] = {
    "rnea": _Algorithm(
        ("q", "v", "a"),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, f, _: rnea(m, x["q"], x["v"], x["a"], f),
        takes_forces=True,
        passive=_less_passive,
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
        passive=_aba_passive,
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
        passive=_less_passive,
    ),
    "gravity_force": _Algorithm(
        ("q",),
        lambda m, _: {"tau": (m.nv,)},
        lambda m, x, f, _: bias_force(m, x["q"], [0.0] * m.nv, f),
        takes_forces=True,
        passive=_gravity_less_passive,
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
        lambda m, x, f, _: _hybrid(m, x, f, ()),
        takes_forces=True,
        passive=_hybrid_passive,
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
        passive=_rnea_derivatives_passive,
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
        passive=_aba_derivatives_passive,
        by_trace=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Task:
    """An algorithm with its options: the frames it is about, the links that external forces act on.

    ``method`` is "cluster", or another that its entry in the table has. ``known``: of "hybrid", the
    joints whose acceleration is given. ``order``: of "aba", in which to eliminate. ``passive``:
    with springs and damping. ``reference``: in which motions of the frame are told. Its arguments
    are the algorithm's, then six numbers for each of ``f_ext``.
    """

    name: Name
    frames: tuple[frames.FrameKey, ...] = ()
    f_ext: tuple[str, ...] = ()
    method: Method = "cluster"
    known: tuple[str, ...] = ()
    order: Order | None = None
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
            return independent.lean_tree(model, self.method, self.name)
        if self.name == "hybrid":
            from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

            inverse = len(prescribed(model, self.known)) == model.nv
            return lean(model, "rnea" if inverse else "aba")
        return model if self.order is not None else lean(model, self.name)

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
        at = [frames.place(model, frame, self.reference) for frame in self.frames]
        forces = frames.body_wrenches(
            model, {link: arguments[f"f_ext['{link}']"] for link in self.f_ext}
        )
        entry = TABLE[self.name]

        def run(x: Arguments) -> Sequence[Scalar]:
            if entry.takes_known:
                return _hybrid(model, x, forces, self.known)
            if self.order is not None:
                return _ordered(model, x, self.order)
            way = entry.run if self.method == "cluster" else entry.methods[self.method]
            return way(model, x, forces, at)

        if not self.passive:
            return run(arguments)
        assert entry.passive is not None
        return entry.passive(model, arguments, self.known, run)
