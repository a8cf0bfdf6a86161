"""``robomodel dynamics``, ``benchmark``: inverse and forward dynamics at a state; their speed."""

from __future__ import annotations

import json
import math
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from robomodel import dynamics as compute
from robomodel.arrays import Array
from robomodel.cli.common import Result, UserError, blaming
from robomodel.cli.robot import Robot
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.dynamics.recursions.hybrid import freedoms
from robomodel.errors import DescriptionError, DescriptionWarning, did_you_mean
from robomodel.files import named
from robomodel.kernels import obstacle
from robomodel.mechanism.springs import Spring
from robomodel.model import Model
from robomodel.model.configurations import states
from robomodel.model.configurations.singular import singularities
from robomodel.model.elements import Joint
from robomodel.reports.document import Cell, Document, Section, Table, count
from robomodel.running import track
from robomodel.tolerances import CLOSED, NOTHING, SAME

ROUND_TRIP = 1e-6  # relative; at regular states forward dynamics returns a far more exactly


def dynamics(
    robot: Robot,
    state: Path | None = None,
    q: str | None = None,
    v: str | None = None,
    a: str | None = None,
    tau: str | None = None,
    position: list[str] | None = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Draw at random what is not given. [default: 0]"),
    ] = None,
    passive: bool = False,
) -> Result:
    """Compute inverse and forward dynamics at a state.

    NUMBERS are one word, 0.1,-2 or '0.1 -2'; 'robomodel info' gives their order. Inverse dynamics
    gives tau from q, v, a; forward dynamics gives a' from --tau, or from that tau as a check.
    Without q and positions the state is random and closed; with them, v and a are zero unless they
    or --seed are given.

    A q that is no state is closed. That, joints beyond their limits, and independent joints that
    positions of other joints move, are findings: exit status 1.

    Keys of the JSON document: robot, file, dof_names, q, v, a, tau (inverse dynamics), round_trip
    (largest difference of a from the forward dynamics of tau), forward (tau: as given, else the
    above; a: its forward dynamics), joint_positions, joint_velocities, joint_accelerations,
    base_pose (null, or x y z qx qy qz qw), kinetic_energy, potential_energy, residual (of loops and
    couplings), notes, passive (whether springs and damping are counted), finding (null, or why the
    exit status is 1), warnings. SI units, radians; null is not a number.

    Examples:
        robomodel dynamics four_bar
        robomodel dynamics four_bar --position joint1=0.4 --v 2
        robomodel dynamics puma560 --seed 1 --json

    Options:
        --state FILE.json: Read the state from a JSON object with any of the keys q, v, a, tau,
            positions (joint: position). What --json prints can be read again. Options overrule it.
        --q NUMBERS: Positions, nq of them; closed if they are not.
        --v NUMBERS: Velocities, nv of them.
        --a NUMBERS: Accelerations, nv of them.
        --tau NUMBERS: Forces for forward dynamics, nv of them.
        --position JOINT=VALUE: A joint's position, once for each joint; loops are solved for the
            rest.
        --passive: Include the springs and the viscous damping of the file.
    """
    options = {"q": q, "v": v, "a": a, "tau": tau}
    request = Request.of(state, options, position or [])
    model = robot.load()
    at = completed_state(model, request, seed)
    data = _computed(model, at, passive=passive)
    return Result(
        document=Document(
            model.name, "SI units and radians", list(_sections(model, at, data)), data
        ),
        status=1 if data["finding"] else 0,
        complaint=f"{robot.file}: {data['finding']}" if data["finding"] else "",
    )


# ---- data ----------------------------------------------------------------------------------------


def _computed(model: Model, state: StateInput, *, passive: bool) -> dict[str, Any]:
    """The results at a state, by the keys of the JSON document."""
    with np.errstate(all="ignore"):  # the finding says it
        return _at(model, state, passive=passive)


def _at(model: Model, state: StateInput, *, passive: bool) -> dict[str, Any]:
    q, v, a = state.q, state.v, state.a
    # one state is not worth compiling for
    tau = compute.rnea(model, q, v, a, passive=passive, backend="numpy")
    back = compute.aba(model, q, v, tau, passive=passive, backend="numpy")
    forward = {"tau": tau, "a": back}
    if state.tau is not None:
        pushed = compute.aba(model, q, v, state.tau, passive=passive, backend="numpy")
        forward = {"tau": state.tau, "a": pushed}
    round_trip = float(np.max(np.abs(back - a), initial=0.0))
    kinetic, potential = compute.energy(model, q, v, backend="numpy")
    unusable = _finding(model, state, tau, round_trip, forward["a"])
    return {
        "robot": model.name,
        "dof_names": model.dof_names,
        "q": q,
        "v": v,
        "a": a,
        "tau": tau,
        "round_trip": round_trip,
        "forward": forward,
        "joint_positions": model.joint_positions(q),
        "joint_velocities": model.joint_velocities(q, v),
        "joint_accelerations": model.joint_accelerations(q, v, a),
        "base_pose": None if model.floating_base is None else q[:7],
        "kinetic_energy": float(kinetic),
        "potential_energy": float(potential),
        "residual": float(np.max(np.abs(model.residual(q)), initial=0.0)),
        "notes": [*state.notes, *_left_out(model, passive=passive)],
        "passive": passive,
        "finding": "; ".join([*state.findings, *([unusable] if unusable else [])]) or None,
    }


def _left_out(model: Model, *, passive: bool) -> Iterator[str]:
    """Notes on passive forces of the file that are not in tau."""
    sprung: list[Joint | Spring] = [*model.joints, *model.springs]
    if not passive and any(
        each.damping or each.stiffness or (isinstance(each, Joint) and each.law.steady)
        for each in sprung
    ):
        yield "springs and damping of the file are left out; --passive counts them"
    if any(each.friction or (isinstance(each, Joint) and each.law.dry) for each in sprung):
        yield "dry friction of the file is left out"


def _finding(
    model: Model, state: StateInput, tau: Array, round_trip: float, forward: Array
) -> str | None:
    """Why these results cannot be used, or None."""
    if not np.all(np.isfinite(tau)):
        if singular := "; ".join(str(x) for x in singularities(model, state.q, NOTHING)):
            return f"singular state: {singular}"
        return "inverse dynamics is not a number: these velocities or accelerations overflow"
    if not (math.isfinite(round_trip) and np.all(np.isfinite(forward))):
        return "forward dynamics is not a number: the mass matrix is singular at this state"
    if round_trip > ROUND_TRIP * max(1.0, float(np.max(np.abs(state.a), initial=0.0))):
        return f"nearly singular state: forward dynamics misses a by {round_trip:.1g}"
    return None


# ---- text ----------------------------------------------------------------------------------------


def _sections(model: Model, state: StateInput, data: Mapping[str, Any]) -> Iterator[Section]:
    notes = list(data["notes"])
    if data["base_pose"] is not None:
        pose = [f"{x:.6g}" for x in data["base_pose"]]
        notes.append(f"base: position {' '.join(pose[:3])}, quaternion {' '.join(pose[3:])}")
    gap = f"{data['round_trip']:.1e}"
    forward = (
        f"a': forward dynamics of tau; max |a' - a| = {gap}"
        if state.tau is None
        else f"a': forward dynamics of --tau (of tau it differs from a by {gap})"
    )
    columns = {"v": state.v, "a": state.a, "tau": data["tau"]}
    if state.tau is not None:
        columns["--tau"] = state.tau
    columns["a'"] = data["forward"]["a"]
    at = data["joint_positions"]
    rows: list[list[Cell]] = [
        [name, float(at[name]) if name in at else None, *map(float, row)]
        for name, row in zip(model.dof_names, zip(*columns.values(), strict=True), strict=True)
    ]
    table = Table(["dof", "q", *columns], rows)
    yield Section("", [*notes, "", table, "", "tau: inverse dynamics of a", forward])
    motion = [data[f"joint_{what}"] for what in ("positions", "velocities", "accelerations")]
    dependent: list[list[Cell]] = [
        [joint.name, *(float(values[joint.name]) for values in motion)]
        for joint in model.joints
        if not joint.independent and joint.nv == 1
    ]
    yield Section("Dependent joints", [Table(["joint", "q", "v", "a"], dependent)])
    energies = (
        f"kinetic energy {data['kinetic_energy']:.6g} J, "
        f"potential energy {data['potential_energy']:.6g} J"
    )
    tied = bool(model.loops or model.couplings)
    residual = [f"residual of the constraints {data['residual']:.1e}"] if tied else []
    yield Section("", ["", energies, *residual])


# ---- states: read from options and a state file, and completed -----------------------------------


ROUNDED_INPUT = 1e-3  # largest change of a number that was only rounded when typed
MAX_BYTES = 2**26  # larger state files are refused

_VECTORS = ("q", "v", "a", "tau")
_KEYS = (*_VECTORS, "positions")


@dataclass(frozen=True)
class UserNumbers:
    """Numbers from the user, and their place, for messages."""

    where: str
    numbers: list[float]

    @classmethod
    def typed(cls, where: str, text: str) -> UserNumbers:
        """Numbers separated by commas or spaces, with or without brackets."""
        words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
        return cls(where, [_finite(word, f"'{word}'", where) for word in words])

    @classmethod
    def listed(cls, where: str, value: object) -> UserNumbers:
        """Numbers in a list, from JSON."""
        if not isinstance(value, list):
            raise UserError(f"{where}: a list of numbers is needed")
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float):
                raise UserError(f"{where}: {json.dumps(item)} is not a number")
        return cls(where, [_finite(item, str(item), where) for item in value])

    def sized(self, size: int, name: str) -> Array:
        """An array; raises UserError for another number of numbers than ``size``."""
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
    """Numbers of a state: any of q, v, a, tau, or joint positions in place of q."""

    vectors: Mapping[str, UserNumbers]
    positions: Mapping[str, UserNumbers]

    @classmethod
    def of(
        cls,
        file: Path | None,
        options: Mapping[str, str | None],
        positions: Sequence[str],
    ) -> Request:
        """The state file, overruled by the options."""
        vectors, places = ({}, {}) if file is None else _read(file)
        if options["q"] is not None:
            places = {}
        if positions:
            vectors.pop("q", None)
        for name, text in options.items():
            if text is not None:
                vectors[name] = UserNumbers.typed(f"--{name}", text)
        for text in positions:
            joint, equals, value = text.rpartition("=")
            if not equals:
                raise UserError(f"--position: '{text}' is not of the form JOINT=VALUE")
            places[joint] = UserNumbers.typed(f"--position {joint}", value)
        if "q" in vectors and places:
            raise UserError(
                f"{vectors['q'].where}: q says all positions; leave out {_places(places.values())}"
            )
        return cls(vectors, places)


def _places(options: Collection[UserNumbers]) -> str:
    return ", ".join(numbers.where for numbers in options)


def _read(file: Path) -> tuple[dict[str, UserNumbers], dict[str, UserNumbers]]:
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
                f"{file}: {key}: no such key{did_you_mean(key, _KEYS)}; keys are {', '.join(_KEYS)}"
            )
    vectors = {
        key: UserNumbers.listed(f"{file}: {key}", content[key])
        for key in _VECTORS
        if content.get(key) is not None
    }
    positions = content.get("positions") or {}
    if not isinstance(positions, dict):
        raise UserError(f"{file}: positions: an object is needed, joint: position")
    places = {
        joint: UserNumbers.listed(
            f"{file}: positions: {joint}", value if isinstance(value, list) else [value]
        )
        for joint, value in positions.items()
    }
    return vectors, places


# ---- the state -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateInput:
    """A state, the forces of ``--tau`` or None, and notes on numbers drawn, zero or closed.

    ``findings``: how it differs from the requested one, or why the robot cannot be in it.
    """

    q: Array
    v: Array
    a: Array
    tau: Array | None
    notes: list[str]
    findings: list[str]


def completed_state(model: Model, request: Request, seed: int | None) -> StateInput:
    """The requested state, completed by random numbers or zeros."""
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
    missing = [name for name in ("v", "a") if name not in request.vectors]
    if not chosen:
        notes.append(f"{', '.join(['q', *missing])}: random, closed, seed {seed or 0}")
    elif missing and drawn:
        notes.append(f"{', '.join(missing)}: random, seed {seed}")
    elif missing:
        notes.append(f"{', '.join(missing)}: zero (--seed draws at random)")
    typed = {"position": chosen, "velocity": "v" in request.vectors}
    # numbers are typed to some digits only
    beyond = model.check(q, vectors["v"], tolerance=ROUNDED_INPUT)
    typed["sine"] = chosen
    # singular positions are left out: the results' own finding says what comes of them
    at = {str(x) for x in singularities(model, q, NOTHING)}
    findings += [str(x) for x in beyond if typed[x.quantity] and str(x) not in at]
    return StateInput(q, vectors["v"], vectors["a"], vectors.get("tau"), notes, findings)


def _configuration(model: Model, request: Request) -> tuple[Array, list[str], list[str]]:
    """The requested configuration, closed; notes and findings on how far it moved."""
    if "q" not in request.vectors:
        q = _from_positions(model, request.positions)
        return q, [], _moved_along(model, request.positions, q)
    numbers = request.vectors["q"]
    typed = numbers.sized(model.nq, "nq")
    with blaming(numbers.where):
        q = model.close(typed)
    way = float(np.max(np.abs(q - typed), initial=0.0))
    if way <= SAME:
        return typed, [], []
    note = f"q: moved by up to {way:.2g} to close the loops and to normalise quaternions"
    faults = [*states.unit_faults(model, typed, CLOSED), *states.loop_faults(model, typed, CLOSED)]
    message = "; ".join(fault.message for fault in faults)
    if way <= ROUNDED_INPUT:
        closed = DescriptionWarning(f"{numbers.where}: {message}; moved by up to {way:.2g}")
        warnings.warn(closed, stacklevel=2)
        return q, [note], []
    return (
        q,
        [note],
        [f"{numbers.where} is no state: {message}; moved by up to {way:.2g} to be one"],
    )


def _moved_along(model: Model, positions: Mapping[str, UserNumbers], q: Array) -> list[str]:
    """Findings on independent joints that move though the request does not name them."""
    way = model.difference(model.neutral(), q)
    at = model.joint_positions(q)
    findings = []
    for name, places in freedoms(model).items():
        if name not in model.joint_names or name in positions or name == model.floating_base:
            continue
        if np.max(np.abs(way[list(places)])) > SAME:
            now = ", ".join(f"{x:.6g}" for x in np.atleast_1d(at[name]))
            findings.append(
                f"{_places(positions.values())}: independent joint '{name}' is not where it "
                f"starts, but at {now}, as the loops or couplings ask"
            )
    return findings


def _from_positions(model: Model, positions: Mapping[str, UserNumbers]) -> Array:
    for joint, numbers in positions.items():
        if joint not in model.joint_names:
            raise UserError(
                f"{numbers.where}: no such joint in '{model.name}'"
                f"{did_you_mean(joint, model.joint_names)}"
            )
    numbers_of: dict[str, Any] = {joint: each.numbers for joint, each in positions.items()}
    with blaming(_places(positions.values())):
        return model.configuration(numbers_of)


# ---- benchmark -----------------------------------------------------------------------------------


ALGORITHMS = ("rnea", "aba", "crba", "bias_force", "rnea_derivatives", "aba_derivatives")
USUAL = ALGORITHMS[:4]
ROUNDS, SLICE = 15, 5e-3  # rounds of timing, and their length [s]


def benchmark(
    robot: Robot,
    algorithm: list[str] | None = None,
    states: Annotated[int, typer.Option(help="States in a batch.", min=1)] = 2048,
    threads: Annotated[int, typer.Option(help="Threads for the batch.", min=1)] = 1,
) -> Document:
    """Time the dynamics of a robot: a batch, a single call, and making the kernel.

    Medians. Keys of the JSON document: robot, file, machine, states, threads, algorithms (a list:
    name, ns_per_state, ns_per_call, flops, seconds_to_make, which is little where it was in the
    cache), warnings.

    Examples:
        robomodel benchmark four_bar --algorithm aba
        robomodel benchmark mini_cheetah --states 512 --threads 2

    Options:
        --algorithm: One of rnea, aba, crba, bias_force, rnea_derivatives, aba_derivatives; may be
            repeated. [default: rnea, aba, crba, bias_force]
    """
    for each in algorithm or ():
        if each not in ALGORITHMS:
            raise UserError(
                f"no algorithm '{each}' to time; there are {', '.join(ALGORITHMS)}"
                f"{did_you_mean(each, ALGORITHMS)}"
            )
    if (why := obstacle()) is not None:
        raise UserError(f"kernels cannot be compiled here ({why})", status=1)
    model = robot.load()
    if not model.nv:
        raise UserError(f"{robot.file}: '{model.name}' has nothing that moves; nothing to time")
    names = algorithm or USUAL
    rows = [
        _measure(model, each, states, threads) for each in track("benchmark", names, len(names))
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    data = {
        "robot": model.name,
        "machine": machine,
        "states": states,
        "threads": threads,
        "algorithms": rows,
    }
    summary = (
        f"{count(model.nv, 'freedom')}; batches of {count(states, 'state')}, "
        f"{count(threads, 'thread')}; {machine}"
    )
    shown = [
        [row["name"], f"{row['ns_per_state']:.1f}", f"{row['ns_per_call']:.0f}", row["flops"],
         f"{row['seconds_to_make']:.3f}"]
        for row in rows
    ]  # fmt: skip
    columns = ["algorithm", "ns a state", "ns a call", "flops", "s to make"]
    return Document(model.name, summary, [Section("", [Table(columns, shown)])], data)


def _measure(model: Model, algorithm: str, states: int, threads: int) -> dict[str, Any]:
    start = time.perf_counter()
    kernel = traced_algorithm(model, AlgorithmSpec(algorithm)).kernel()
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    some = np.array([model.random_configuration(rng) for _ in range(min(states, 16))])
    every = {
        name: np.resize(some, (states, size)) if name == "q" else rng.normal(size=(states, size))
        for name, size in kernel.sizes.items()
    }
    out = np.empty((states, kernel.size))
    batch, one = list(every.values()), [x[0] for x in every.values()]
    flat = out.reshape(states, *kernel.shapes[0]) if len(kernel.shapes) == 1 else out
    return {
        "name": algorithm,
        "ns_per_state": 1e9 / states * _median(lambda: kernel(*batch, out=flat, threads=threads)),
        "ns_per_call": 1e9 * _median(lambda: kernel(*one)),
        "flops": kernel.program.flops,
        "seconds_to_make": seconds,
    }


def _median(action: Callable[[], object]) -> float:
    """Median time [s] of a call."""
    action()
    start = time.perf_counter()
    action()
    repeats = max(1, int(SLICE / max(time.perf_counter() - start, 1e-9)))
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _turn in range(repeats):
            action()
        times.append((time.perf_counter() - start) / repeats)
    return statistics.median(times)
