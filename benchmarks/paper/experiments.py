"""The paper's experiments: speed on robots and on chains, errors of what is approximate.

All methods are kernels made by :func:`robomodel.compile`: the same tracing, the same compiler, the
same lanes, so that algorithms are compared and not their implementations. Those of one system take
turns in one race. States, machine and time are the same for all; only the operations differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

import robomodel as rm
from benchmarks.shared.chains import chain
from benchmarks.shared.race import PROCESSES, Array, Race, in_fresh_processes
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.kinematics.frames import frame_keys
from robomodel.dynamics.lumped import approximate
from robomodel.dynamics.recursions.crba import crba
from robomodel.model import build

METHODS: Mapping[str, tuple[str, ...]] = {
    "rnea": ("unconstrained", "approximate", "cluster", "projection"),
    "aba": ("unconstrained", "approximate", "cluster", "projection", "lagrange"),
    "efpa": ("unconstrained", "approximate", "cluster", "projection"),
}
EXACT = ("cluster", "projection", "lagrange")
CHAINS = {"geared": "GT", "belt": "PBT", "plain": "plain", "four_bar": "four-bars"}
COMPARED = ("geared", "belt")  # chains on which all methods run, by the paper's names above
SEED = 1  # of the chains' parameters and of all states
Say = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One method on one system.

    ``ns``: nanoseconds a state on one core, the least of all rounds of all processes, and the least
    ``median`` of a process; None where the program is only counted. ``difference``: of an exact
    method's results from those of the cluster algorithm, the largest of any state, relative to the
    state's largest number.
    """

    system: str
    links: int
    algorithm: str
    method: str
    flops: int
    steps: int
    ns: float | None = None
    median: float | None = None
    difference: float | None = None


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    states: int = 1024  # in a batch
    rounds: int = 25
    processes: int = PROCESSES  # whose least times count; 0: this one alone
    links: tuple[int, ...] = (2, 4, 6, 8, 12, 16, 20, 24, 40, 80, 200)
    compiled: int = 40  # links up to which projection and multipliers are timed
    counted: int = 80  # links up to which their operations are counted
    poses: int = 64  # of each robot whose speed is taken
    configurations: int = 100  # of each robot whose errors are taken, with ten velocities each


QUICK = Effort(
    states=64,
    rounds=3,
    processes=0,
    links=(2, 4, 8),
    compiled=4,
    counted=8,
    poses=4,
    configurations=5,
)  # a smoke run


def random_states(model: rm.Model, count: int, configurations: int) -> tuple[Array, Array, Array]:
    """Positions, velocities and a third vector; so many configurations take turns."""
    rng = np.random.default_rng(SEED)
    some = np.array([model.random_configuration(rng) for _ in range(min(count, configurations))])
    v, x = rng.normal(size=(2, count, model.nv))
    return np.resize(some, (count, model.nq)), v, x


# ---- speed ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """A robot, where it touches the world, and which methods of which algorithms it runs."""

    name: str
    links: int  # of a chain; zero for robots
    model: rm.Model
    frame: str
    timed: tuple[tuple[str, str], ...]
    counted: tuple[tuple[str, str], ...] = ()

    def frames(self, algorithm: str) -> tuple[str, ...]:
        """Of those that take any: one end effector, as in the paper."""
        return (self.frame,) if algorithm == "efpa" else ()


def speed(system: System, effort: Effort) -> list[Row]:
    """All its methods, timed in turns, and those counted that are too large to compile."""
    model = system.model
    q, v, x = random_states(model, effort.states, 4 if system.links else effort.poses)
    race, results, rows = Race(effort.rounds), {}, []
    for algorithm, method in system.timed:
        kernel = rm.compile(model, algorithm, frames=system.frames(algorithm), method=method)
        arguments = (q,) if algorithm == "efpa" else (q, v, x)
        out = results[algorithm, method] = kernel(*arguments)
        race.add(
            f"{algorithm} {method}",
            lambda kernel=kernel, arguments=arguments, out=out: kernel(*arguments, out=out),
            effort.states,
        )
        rows.append((algorithm, method, kernel.program.flops, len(kernel.program.steps)))
    times = race.run()
    found = []
    for algorithm, method, flops, steps in rows:
        time = times[f"{algorithm} {method}"]
        difference = None
        if method in EXACT:
            difference = largest_difference(
                results[algorithm, method], results[algorithm, "cluster"]
            )
        found.append(
            Row(
                system.name, system.links, algorithm, method, flops, steps,
                time.minimum, time.median, difference,
            )
        )  # fmt: skip
    for algorithm, method in system.counted:
        task = AlgorithmSpec(algorithm, frame_keys(system.frames(algorithm)), method=method)
        program = traced_algorithm(model, task).program
        found.append(
            Row(system.name, system.links, algorithm, method, program.flops, len(program.steps))
        )
    return found


def least_times(system: System, effort: Effort) -> list[Row]:
    """The least times of :func:`speed` in each of several fresh processes."""
    runs = in_fresh_processes(effort.processes, speed, system, effort)
    rows = []
    for several in zip(*runs, strict=True):
        times = [row.ns for row in several if row.ns is not None]
        medians = [row.median for row in several if row.median is not None]
        rows.append(
            replace(several[0], ns=min(times, default=None), median=min(medians, default=None))
        )
    return rows


def equal_programs(system: System, effort: Effort) -> tuple[float, float]:
    """Nanoseconds a state of one program, C-ABA, built and loaded twice."""
    arguments = random_states(system.model, effort.states, effort.poses)
    race = Race(effort.rounds)
    for name in ("first", "second"):
        kernel = rm.compile(build(system.model.description), "aba")
        out = kernel(*arguments)
        race.add(name, lambda k=kernel, out=out: k(*arguments, out=out), effort.states)
    times = race.run()
    return times["first"].minimum, times["second"].minimum


def control(system: System, effort: Effort) -> dict[str, object]:
    """By how much, in percent, the least times of equal programs differ: what times can tell."""
    runs = in_fresh_processes(effort.processes, equal_programs, system, effort)
    first, second = (min(times) for times in zip(*runs, strict=True))
    return {"system": system.name, "percent": 100.0 * abs(first / second - 1.0)}


def largest_difference(found: Array, expected: Array) -> float:
    """The largest difference of any state, relative to the state's largest number."""
    a, b = (x.reshape(len(x), -1) for x in (found, expected))
    return float((np.abs(a - b).max(axis=1) / np.abs(b).max(axis=1)).max())


def patterns(model: rm.Model) -> tuple[Array, Array, Array]:
    """Which entries are not zero: of H of all joints, of the conditions K on them, and of Gᵀ H G.

    At a random configuration, where none is zero by chance.
    """
    rng = np.random.default_rng(SEED)
    q = model.random_configuration(rng)
    positions = model.spanning_positions(q)
    joints = np.array(crba(spanning_tree(model), positions), dtype=float)
    rows: list[Array] = []
    for cluster in model.clusters:
        own = positions[cluster.spanning_q]
        still = [0.0] * (cluster.spanning_v.stop - cluster.spanning_v.start)
        for condition in cluster.constraint.conditions(own, still)[0]:
            rows.append(np.zeros(len(joints)))
            rows[-1][cluster.spanning_v] = condition
    conditions = np.array(rows).reshape(-1, len(joints))
    return tuple(
        (np.abs(x) > 1e-12 * np.abs(x).max(initial=1.0)).astype(float)
        for x in (joints, conditions, rm.crba(model, q))
    )


def robots() -> Iterator[System]:
    """The paper's six systems, with the end effectors of its authors' benchmark."""
    every = tuple((a, m) for a, methods in METHODS.items() for m in methods)
    for kind in COMPARED:
        model = chain(kind, 12, rng=np.random.default_rng(SEED))
        yield System(CHAINS[kind], 0, model, "tip", every)
    for name, robot, frame in (
        ("Mini Cheetah", "mini_cheetah", "FR_foot_contact"),
        ("MIT Humanoid", "mit_humanoid", "right_toe_contact"),
        ("Tello", "tello_with_arms", "left-toe_contact"),
        ("JVRC-1", "jvrc1", "left_toe_contact"),
    ):
        yield System(name, 0, rm.robots.load(robot), frame, every)


def chains(effort: Effort) -> Iterator[System]:
    """Geared and belted chains by all methods; plain ones and four-bars for C-EFPA's growth."""
    compared = tuple((a, m) for a in ("aba", "efpa") for m in METHODS[a] if m != "unconstrained")
    for kind in CHAINS:
        tasks = compared if kind in COMPARED else (("efpa", "cluster"),)
        for links in effort.links:
            if kind not in COMPARED and links < 12 < effort.links[-1]:
                continue  # the growth of long ones is wanted
            model = chain(kind, links, rng=np.random.default_rng(SEED))
            slow = tuple(task for task in tasks if task[1] in ("projection", "lagrange"))
            timed = tuple(t for t in tasks if links <= effort.compiled or t not in slow)
            counted = slow if effort.compiled < links <= effort.counted else ()
            yield System(kind, links, model, "tip", timed, counted)


def growth(
    rows: Sequence[Row], quantity: str, at_least: int, at_most: int = 10**9
) -> tuple[float, int, int] | None:
    """Exponent of ``ns`` or ``flops`` in the links by least squares, and from where to where.

    None of fewer than two lengths.
    """
    points = [
        (row.links, getattr(row, quantity))
        for row in rows
        if at_least <= row.links <= at_most and getattr(row, quantity) is not None
    ]
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, dtype=float)).T
    links = sorted(n for n, _ in points)
    return float(np.polyfit(x, y, 1)[0]), links[0], links[-1]


# ---- errors --------------------------------------------------------------------------------------

AMPLITUDE, FREQUENCY, DURATION, STEP = 0.5, 1.5, 5.0, 5e-4  # rad, Hz, s, s: all joints in phase
LEG = "mit_humanoid_leg"
LEG_METHODS = ("unconstrained", "approximate", "as the paper")


def leg_torques() -> tuple[Array, dict[str, Array], tuple[str, ...]]:
    """Figure 14: times (n,), torques (n, 5) by method, and the joints' names.

    "as the paper" is the approximation of the paper, which drops the rotors' mass; ours keeps it.
    """
    model = rm.robots.load(LEG)
    time = np.arange(0.0, DURATION + STEP / 2, STEP)
    rate = 2.0 * np.pi * FREQUENCY
    q = np.outer(AMPLITUDE * np.sin(rate * time), np.ones(model.nv))
    v = np.outer(AMPLITUDE * rate * np.cos(rate * time), np.ones(model.nv))
    a = -(rate**2) * q
    methods = ("cluster", "unconstrained", "approximate")
    tau = {m: rm.compile(model, "rnea", method=m)(q, v, a) for m in methods}
    light = build(approximate(model, lump=False))
    assert light.dof_names == model.dof_names
    tau["as the paper"] = rm.compile(light, "rnea")(q, v, a)
    return time, tau, model.dof_names


def leg_table(tau: Mapping[str, Array], names: Sequence[str]) -> list[dict[str, object]]:
    """Joint by joint: the largest torque of the exact, and the others' errors' root mean square."""
    exact = tau["cluster"]
    return [
        {"joint": name, "peak": float(np.abs(exact[:, n]).max())}
        | {m: float(np.sqrt(np.mean((tau[m] - exact)[:, n] ** 2))) for m in LEG_METHODS}
        for n, name in enumerate(names)
    ]


def errors(name: str, model: rm.Model, configurations: int) -> dict[str, object]:
    """Of the open trees: joint torques, and joint accelerations under the exact torques.

    ‖error‖ / ‖exact‖ at every state, in percent, median and largest. A floating base's wrench and
    acceleration are left out, because their units are not the joints'.
    """
    q, v, a = random_states(model, 10 * configurations, configurations)
    base = 0 if model.floating_base is None else 6
    tau = rm.compile(model, "rnea")(q, v, a)
    row: dict[str, object] = {"system": name, "states": len(q)}
    for method in ("unconstrained", "approximate"):
        for algorithm, given, exact in (("rnea", a, tau), ("aba", tau, a)):
            with np.errstate(all="ignore"):  # at dead points, where they come
                computed = rm.compile(model, algorithm, method=method)(q, v, given)
                sizes = np.linalg.norm(exact[:, base:], axis=1)
                error = 100.0 * np.linalg.norm((computed - exact)[:, base:], axis=1) / sizes
            row[f"{algorithm} {method}"] = [float(np.median(error)), float(np.max(error))]
    return row


def approximated() -> Iterator[tuple[str, rm.Model]]:
    """Systems whose errors are taken: first those where the approximation has to be exact."""
    yield "one link, symmetric rotor on the base", chain("geared", 1)
    yield "puma560", rm.robots.load("puma560")
    for kind in COMPARED:
        model = chain(kind, 12, rng=np.random.default_rng(SEED))
        yield f"{CHAINS[kind]}, 12 links", model
    for name in (
        "mini_cheetah", "mit_humanoid", "mit_humanoid_leg", "tello_with_arms", "jvrc1",
        "teleop_arm", "belt_leg", "four_bar", "crank_rocker", "five_bar", "six_bar",
        "planar_leg_linkage",
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)
            yield name, rm.robots.load(name)
