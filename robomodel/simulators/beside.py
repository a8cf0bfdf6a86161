"""A robot in a simulator beside the exact model, in numbers: relative errors by quantity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from robomodel import dynamics
from robomodel.arrays import Array
from robomodel.errors import DescriptionWarning, few
from robomodel.model import Model
from robomodel.model.build import build
from robomodel.simulators.behaviours import Quantity
from robomodel.simulators.loaded import Loaded, Numbers, Place, State, turned
from robomodel.simulators.ours import OurModel
from robomodel.simulators.readings import Reading, plain_name
from robomodel.tolerances import MOVES, NOTHING, TINY, WRITTEN

SAMPLES = 10  # states


@dataclass(frozen=True, slots=True)
class SimulatorDifference:
    """A quantity that a simulator has otherwise than the exact model.

    Attributes:
        quantity: "file" (it refused it), "freedoms", "couplings", "mass matrix", "gravity",
            "accelerations", "limits".
        error: Median over the states of the relative error; a number of freedoms; for limits the
            largest difference. NaN where there is none.
        worst: The largest.
        detail: Names, or the simulator's own words.
    """

    quantity: Quantity
    error: float
    worst: float
    detail: str


@dataclass(frozen=True, eq=False)
class _Exact:
    """A state with its exact numbers; ``rows``: G of all joints, in the independent ones' columns.

    ``names``: the model's name of each of the simulator's joints.
    """

    places: Mapping[str, Place]
    names: Mapping[str, str]
    state: State
    numbers: Numbers
    rows: Array

    def for_them(self, loaded: Loaded) -> State:
        """The state by the simulator's names, velocities and forces of balls in its axes."""
        at, there = (
            self.state,
            [each for each in loaded.places if self.names[each.name] in self.places],
        )
        named = {each.name: self.names[each.name] for each in there}

        def by(values: Mapping[str, Array]) -> dict[str, Array]:
            return {
                each.name: turned(replace(each, name=named[each.name]), at.positions,
                                  values[named[each.name]])
                for each in there
            }  # fmt: skip

        positions = {theirs: at.positions[ours] for theirs, ours in named.items()}
        return State(positions, by(at.velocities), by(at.forces))

    def velocities(self, loaded: Loaded) -> Array:
        """The simulator's velocities (nv, n) of each independent one of ours."""
        result = np.zeros((loaded.nv, self.rows.shape[1]))
        for place in loaded.places:
            each = self.places.get(self.names[place.name])
            if place.kind != "base" and each is not None and each.nv == place.nv:
                part, named = self.rows[each.v : each.v + each.nv], replace(place, name=each.name)
                result[place.v : place.v + place.nv] = turned(named, self.state.positions, part)
        return result

    def errors(self, loaded: Loaded, got: Numbers) -> dict[Quantity, float]:
        """Relative errors of the simulator's numbers."""
        parts, rows = self.velocities(loaded), self.rows
        mass = parts.T @ got.mass @ parts
        want = rows.T @ self.numbers.mass @ rows
        size = np.sqrt(np.diag(want))
        weight = rows.T @ np.abs(self.numbers.gravity)
        held = rows.T @ self.numbers.gravity
        errors: dict[Quantity, float] = {
            "mass matrix": float(np.max(np.abs(mass - want) / np.outer(size, size), initial=0.0)),
            "gravity": _relative(parts.T @ got.gravity - held, weight),
        }
        if len(got.rows):
            lengths = np.linalg.norm(got.rows, axis=1)[:, None] * np.linalg.norm(parts, axis=0)
            slip = np.abs(got.rows @ parts) / np.maximum(lengths, TINY)
            errors["couplings"] = float(np.max(slip, initial=0.0))
        pairs = [
            (self.places[self.names[each.name]].v, each.v)
            for each in loaded.places
            if each.kind == "joint" and self.names[each.name] in self.places
        ]
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        a = self.numbers.acceleration[ours]
        errors["accelerations"] = _relative(got.acceleration[theirs] - a, a)
        return errors


def _relative(difference: Array, of: Array) -> float:
    """A difference's norm by that of what it is a part of; infinite where it is not finite."""
    error, size = float(np.linalg.norm(difference)), float(np.linalg.norm(of))
    if not math.isfinite(error):
        return math.inf
    return error / size if size > NOTHING else error


def _exact_state(exact: OurModel, names: Mapping[str, str], rng: np.random.Generator) -> _Exact:
    """A random state of the joints, with the base at rest and forces as large as gravity's."""
    model = exact.model
    q = model.random_configuration(rng)
    v, tau = rng.standard_normal((2, model.nv))
    zero = np.zeros(model.nv)
    gravity = dynamics.rnea(model, q, zero, zero, backend="numpy")
    tau *= 1.0 + np.linalg.norm(gravity) / math.sqrt(max(model.nv, 1))
    base = exact.base_columns()
    v[base] = tau[base] = 0.0
    state = exact.state(q, v, tau)
    columns = [i for i in range(model.nv) if i not in base]
    rows = model.constraint_jacobian(exact.at(state))[:, columns]
    places = {each.name: each for each in exact.places if each.kind != "base"}
    return _Exact(places, names, state, exact.numbers(state), rows)


def differences(
    model: Model, loaded: Loaded, samples: int = SAMPLES, seed: int = 0
) -> list[SimulatorDifference]:
    """The quantities that a simulator has otherwise, the joints first."""
    exact = OurModel(model)
    plain = {plain_name(each.name): each.name for each in exact.places}
    names = {each.name: _ours(each.name, plain) for each in loaded.places}
    theirs = {names[each.name] for each in loaded.places if each.kind != "base"}
    ours = {each.name for each in exact.places if each.kind != "base"}
    found = list[SimulatorDifference]()
    rng = np.random.default_rng(seed)
    errors: dict[Quantity, list[float]] = {}
    free = 0
    for _ in range(samples):
        at = _exact_state(exact, names, rng)
        got = loaded.numbers(at.for_them(loaded))
        for quantity, error in at.errors(loaded, got).items():
            errors.setdefault(quantity, []).append(error)
        free = _freedoms(loaded, got)
    moving = model.nv - len(exact.base_columns())
    if free != moving or theirs != ours:
        words = [f"{free} instead of {moving}"] if free != moving else []
        words += [f"no joint {few(sorted(ours - theirs))}"] if ours - theirs else []
        words += [f"another joint {few(sorted(theirs - ours))}"] if theirs - ours else []
        number = float(free - moving)
        found.append(SimulatorDifference("freedoms", number, number, "; ".join(words)))
    for quantity, values in errors.items():
        if not (median := float(np.median(values))) <= loaded.precision:
            found.append(SimulatorDifference(quantity, median, float(np.max(values)), ""))
    return found + _limits(exact, loaded, names)


def _ours(name: str, plain: Mapping[str, str]) -> str:
    """Our name of a simulator's joint; in SDF joints that share a link's name end on _joint."""
    word = plain_name(name)
    return plain.get(word, plain.get(word.removesuffix("_joint"), name))


def _freedoms(loaded: Loaded, got: Numbers) -> int:
    """Freedoms of the simulator's joints within its constraints, the base aside."""
    joints = [i for each in loaded.places if each.kind != "base"
              for i in range(each.v, each.v + each.nv)]  # fmt: skip
    rows = got.rows[:, joints]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1), TINY)[:, None]
    return len(joints) - int(np.linalg.matrix_rank(rows, MOVES)) if len(rows) else len(joints)


def _limits(exact: OurModel, loaded: Loaded, names: Mapping[str, str]) -> list[SimulatorDifference]:
    """The joints whose limits are others."""
    off = dict[str, float]()
    for name, theirs in loaded.limits.items():
        if (ours := exact.limits.get(names[name])) is None:
            continue
        gaps = [0.0 if a == b else abs(a - b) for a, b in zip(ours, theirs, strict=True)]
        if max(gaps) > max(loaded.precision, WRITTEN):
            off[names[name]] = max(gaps)
    if not off:
        return []
    worst = max(off.values())
    return [SimulatorDifference("limits", worst, worst, few(list(off)))]


def percent(x: float) -> str:
    """A relative error in words."""
    if not math.isfinite(x):
        return "without bound"
    if x >= 0.1:
        return f"{100.0 * x:.0f} %" if x < 10.0 else f"{x:.0f} times themselves"
    return f"{100.0 * x:.2g} %" if x >= 1e-5 else f"{x:.1g}"


def loss(model: Model, read: Reading) -> str:
    """The error of accelerations of a robot that is read so, in words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            other = build(read(model.description))
        found = differences(model, OurModel(other))
    except (ValueError, np.linalg.LinAlgError):
        return "it has no accelerations then"
    errors = [each.error for each in found if each.quantity == "accelerations"]
    return f"its accelerations are {percent(errors[0]) if errors else '0'} off"
