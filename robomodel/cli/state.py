"""The state at which to compute dynamics: read from options and a state file, and completed."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robomodel.cli.common import UserError, blaming
from robomodel.dynamics.recursions.hybrid_dynamics import freedoms
from robomodel.errors import DescriptionError, DescriptionWarning, did_you_mean
from robomodel.files import named
from robomodel.model import Model
from robomodel.model.closure import CLOSED
from robomodel.model.configurations import states
from robomodel.model.joints import Array

AS_TYPED = 1e-9  # a q that closing moves by less than this is taken as it was typed
ROUNDED = 1e-3  # by less than this: one that was rounded when it was typed
STAYS = 1e-9  # an independent joint that moves by less than this does not
MAX_BYTES = 2**26  # of a state file

_VECTORS = ("q", "v", "a", "tau")
_KEYS = (*_VECTORS, "positions")


@dataclass(frozen=True)
class Numbers:
    """Numbers of the user, and where they stand, for messages."""

    where: str
    numbers: list[float]

    @classmethod
    def typed(cls, where: str, text: str) -> Numbers:
        """Numbers separated by commas or spaces, in brackets or not."""
        words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
        return cls(where, [_finite(word, f"'{word}'", where) for word in words])

    @classmethod
    def listed(cls, where: str, value: object) -> Numbers:
        """Numbers in a list, as JSON has them."""
        if not isinstance(value, list):
            raise UserError(f"{where}: a list of numbers is needed")
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float):
                raise UserError(f"{where}: {json.dumps(item)} is not a number")
        return cls(where, [_finite(item, str(item), where) for item in value])

    def sized(self, size: int, name: str) -> Array:
        """An array, if there are as many numbers as there shall be."""
        if len(self.numbers) != size:
            raise UserError(f"{self.where}: needs {name} = {size} numbers, got {len(self.numbers)}")
        return np.array(self.numbers, dtype=float)


def _finite(value: str | float, shown: str, where: str) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise UserError(f"{where}: {shown} is not a number") from None
    if not math.isfinite(number):
        raise UserError(f"{where}: {shown} is not finite")
    return number


# ---- the request ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What is asked for of the state: any of q, v, a, tau, or joint positions in place of q."""

    vectors: Mapping[str, Numbers]
    positions: Mapping[str, Numbers]

    @classmethod
    def of(
        cls,
        file: Path | None,
        options: Mapping[str, str | None],
        positions: Sequence[str],
    ) -> Request:
        """What the state file has, overruled by the options."""
        vectors, places = ({}, {}) if file is None else _read(file)
        if options["q"] is not None:
            places = {}
        if positions:
            vectors.pop("q", None)
        for name, text in options.items():
            if text is not None:
                vectors[name] = Numbers.typed(f"--{name}", text)
        for text in positions:
            joint, equals, value = text.rpartition("=")
            if not equals:
                raise UserError(f"--position: '{text}' is not of the form JOINT=VALUE")
            places[joint] = Numbers.typed(f"--position {joint}", value)
        if "q" in vectors and places:
            raise UserError(
                f"{vectors['q'].where}: q says all positions; leave out {_places(places.values())}"
            )
        return cls(vectors, places)


def _places(all_given: Collection[Numbers]) -> str:
    return ", ".join(numbers.where for numbers in all_given)


def _read(file: Path) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Vectors and positions of a state file, which may be what the command printed."""
    try:
        content = json.loads(named(str(file), MAX_BYTES)[:MAX_BYTES].decode("utf-8-sig"))
    except DescriptionError:
        raise
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}: this is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{file}: this is not JSON") from None
    if not isinstance(content, dict):
        raise UserError(f"{file}: a state is a JSON object with any of {', '.join(_KEYS)}")
    for key in content:
        if key not in _KEYS and "dof_names" not in content:
            raise UserError(
                f"{file}: {key}: no such key{did_you_mean(key, _KEYS)}; known are "
                f"{', '.join(_KEYS)}"
            )
    vectors = {
        key: Numbers.listed(f"{file}: {key}", content[key])
        for key in _VECTORS
        if content.get(key) is not None
    }
    positions = content.get("positions") or {}
    if not isinstance(positions, dict):
        raise UserError(f"{file}: positions: an object is needed, joint: position")
    places = {
        joint: Numbers.listed(
            f"{file}: positions: {joint}", value if isinstance(value, list) else [value]
        )
        for joint, value in positions.items()
    }
    return vectors, places


# ---- the state -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A state, the forces to apply where some were given, and how it came about.

    ``findings``: how it is not what was asked for, or not what the robot may be in.
    """

    q: Array
    v: Array
    a: Array
    tau: Array | None
    notes: list[str]
    findings: list[str]


def complete(model: Model, request: Request, seed: int | None) -> State:
    """The state that was asked for, with the rest drawn at random or zero."""
    rng = np.random.default_rng(seed or 0)
    chosen = bool("q" in request.vectors or request.positions)
    drawn = seed is not None or not chosen
    if chosen:
        q, notes, findings = _configuration(model, request)
    else:
        q, notes, findings = model.random_configuration(rng), [], []
    vectors = {
        name: rng.standard_normal(model.nv) if drawn else np.zeros(model.nv) for name in ("v", "a")
    }
    for name, numbers in request.vectors.items():
        if name != "q":
            vectors[name] = numbers.sized(model.nv, "nv")
    rest = [name for name in ("v", "a") if name not in request.vectors]
    if not chosen:
        notes.append(f"{', '.join(['q', *rest])}: random, closed, seed {seed or 0}")
    elif rest and drawn:
        notes.append(f"{', '.join(rest)}: random, seed {seed}")
    elif rest:
        notes.append(f"{', '.join(rest)}: zero, as not given (--seed draws at random)")
    typed = {"position": chosen, "velocity": "v" in request.vectors}
    beyond = model.check(q, vectors["v"], tolerance=ROUNDED)  # what is typed holds to its digits
    findings += [str(x) for x in beyond if typed[x.quantity]]
    return State(q, vectors["v"], vectors["a"], vectors.get("tau"), notes, findings)


def _configuration(model: Model, request: Request) -> tuple[Array, list[str], list[str]]:
    """The configuration that was asked for, closed; notes, and findings, on what that took."""
    if "q" not in request.vectors:
        q = _from_positions(model, request.positions)
        return q, [], _moved_along(model, request.positions, q)
    numbers = request.vectors["q"]
    typed = numbers.sized(model.nq, "nq")
    with blaming(numbers.where):
        q = model.close(typed)
    way = float(np.max(np.abs(q - typed), initial=0.0))
    if way <= AS_TYPED:
        return typed, [], []
    note = f"q: moved by up to {way:.2g} to close the loops and to normalise quaternions"
    faults = [*states.unit_faults(model, typed, CLOSED), *states.loop_faults(model, typed, CLOSED)]
    message = "; ".join(fault.message for fault in faults)
    if way <= ROUNDED:
        closed = DescriptionWarning(f"{numbers.where}: {message}; moved by up to {way:.2g}")
        warnings.warn(closed, stacklevel=2)
        return q, [note], []
    return (
        q,
        [note],
        [f"{numbers.where} is no state: {message}; moved by up to {way:.2g} to be one"],
    )


def _moved_along(model: Model, positions: Mapping[str, Numbers], q: Array) -> list[str]:
    """Independent joints that were not asked to move and do, for those that were."""
    way = model.difference(model.neutral(), q)
    at = model.joint_positions(q)
    findings = []
    for name, places in freedoms(model).items():
        if name not in model.joint_names or name in positions or name == model.floating_base:
            continue
        if np.max(np.abs(way[list(places)])) > STAYS:
            now = ", ".join(f"{x:.6g}" for x in np.atleast_1d(at[name]))
            findings.append(
                f"{_places(positions.values())}: independent joint '{name}' is not where it "
                f"starts, but at {now}, as the loops or couplings ask"
            )
    return findings


def _from_positions(model: Model, positions: Mapping[str, Numbers]) -> Array:
    for joint, numbers in positions.items():
        if joint not in model.joint_names:
            raise UserError(
                f"{numbers.where}: no such joint in '{model.name}'"
                f"{did_you_mean(joint, model.joint_names)}"
            )
    wanted: dict[str, Any] = {joint: each.numbers for joint, each in positions.items()}
    with blaming(_places(positions.values())):
        return model.configuration(wanted)
