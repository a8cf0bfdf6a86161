"""Motions from which a robot's parameters can be told well, within its limits."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import actuator_map
from robomodel.errors import UnknownNameError, as_names, as_real, did_you_mean, few
from robomodel.identification.motions import Bound, Family, FourierMotion, Limits, Quantity
from robomodel.identification.search import Criterion, Scale, Search
from robomodel.model.arguments import as_array
from robomodel.model.configurations.coordinates import position_names
from robomodel.model.elements import Joint
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.running import Progress

Most: TypeAlias = float | Mapping[str, float] | None

SEED = 20061004  # of the motions by which regressors are scaled: always the same
AWAY = 4.0  # times the size of G in the middle: how near to dead points loops come
REACHED = 0.95  # of what may be used of a limit


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a limit a motion uses.

    Attributes:
        name: Of the joint, coordinate, cluster or actuator.
        quantity: "position", "velocity", "acceleration", "torque"; "reach", a position that nothing
            else limits; "transmission", the size of a cluster's G.
        lower: The lower limit.
        upper: The upper limit.
        share: At 1 it is reached.
    """

    name: str
    quantity: Quantity
    lower: float
    upper: float
    share: float

    def __str__(self) -> str:
        same = self.lower == -self.upper
        limits = f"±{self.upper:.4g}" if same else f"{self.lower:.4g} to {self.upper:.4g}"
        return f"{self.quantity} of '{self.name}': {100.0 * self.share:.0f} % of {limits}"


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion that tells of parameters; it begins and ends at rest, in one place.

    Attributes:
        model: The robot.
        t: Times (T,) [s].
        q: Configurations (T, nq).
        v: Velocities (T, nv).
        a: Accelerations (T, nv).
        tau: Forces (T, nv) by the model's own parameters, losses included.
        rank: How many singular values of the motion's scaled regressor are not always zero.
        condition: The largest of them by the least.
        information: Their geometric mean.
        limits: How much of each limit it uses, the most used first.
        margin: The share of each limit that it may use.
        notes: What to know, in words.
    """

    model: Model
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    rank: int
    condition: float
    information: float
    limits: tuple[Used, ...]
    margin: float
    notes: tuple[str, ...]

    @property
    def reached(self) -> tuple[Used, ...]:
        """The limits of which it uses nearly all that ``margin`` allows."""
        return tuple(each for each in self.limits if each.share >= REACHED * self.margin)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a CSV file: a header, then a sample a line, as ``robomodel identify`` reads it.

        Columns are ``time``, ``q.``, ``v.``, ``a.`` and ``tau.`` of each coordinate, the forces as
        the model predicts them: measured ones go in their place.

        Args:
            path: Where to write.
        """
        names = self.model.dof_names
        labels = [("q", position_names(self.model)), ("v", names), ("a", names), ("tau", names)]
        header = ["time", *(f"{kind}.{name}" for kind, each in labels for name in each)]
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            table = np.concatenate([self.t[:, None], self.q, self.v, self.a, self.tau], axis=1)
            writer.writerows(table.tolist())

    def __repr__(self) -> str:
        return (
            f"<Excitation: {self.model.name}, {self.t[-1]:g} s, condition {self.condition:.3g} of "
            f"{self.rank} parameters>"
        )


def excitation(
    model: Model,
    *,
    period: float = 5.0,
    harmonics: int = 5,
    step: float = 0.01,
    joints: str | Iterable[str] | None = None,
    start: ArrayLike | None = None,
    reach: float = 1.0,
    velocity: Most = None,
    acceleration: Most = None,
    torque: Most = None,
    margin: float = 0.95,
    criterion: Criterion = "condition",
    tries: int = 2,
    steps: int = 100,
    seed: int | np.random.Generator | None = 0,
    progress: bool = True,
) -> Excitation:
    """A periodic motion within all limits, from which :func:`identify` tells parameters well.

    Independent joints move by Fourier series of multiples of 1/``period``, whose sum is at rest
    where a period begins and ends (after Swevers et al. 1997, with the ends as conditions on the
    coefficients, so that it stays a Fourier series). Rows count by the forces of each coordinate,
    columns by what they do in a set of random motions within the same limits. Local minima by
    differences from the best of random motions: the same for the same ``seed``.

    Within limits stay, at every sample: positions of all joints with one freedom, dependent ones
    and rotors included; their velocities; accelerations; the actuators' forces and rates,
    torque-speed curves included; forces on coordinates. Loops are closed at each sample, on the
    branch of the middle, and keep away from dead points.

    Args:
        model: The robot.
        period: How long it takes [s].
        harmonics: How many multiples of 1/``period``.
        step: Time between samples [s].
        joints: The independent joints that move, by default all; the others are held.
        start: The configuration (nq,) in which it begins, else one is found, about
            ``model.neutral()``.
        reach: Joints without position limits that are moved stay within so much (radians, or
            lengths of the longest link) about the middle.
        velocity: Limits besides the file's: a number for all joints that are moved, or by joints'
            names.
        acceleration: Limits, in the same way.
        torque: Limits on coordinates, in the same way, besides the file's effort limit where no
            actuator drives one.
        margin: The share of each limit that may be used.
        criterion: "condition", the smallest condition number of the base regressor, or
            "information", the largest geometric mean of its singular values, so of log det.
        tries: How many of the random motions are improved.
        steps: By how many steps at most.
        seed: Of the random motions.
        progress: Show a bar on a terminal.

    Returns:
        excitation: The motion, with its limits and what it tells.

    Raises:
        ValueError: Floating bases, which no motion of the joints alone leaves where it says; joints
            with several freedoms among those that shall move; limits that leave no motion.
        UnknownNameError: Unknown names.
    """
    _check_options(period, step, reach, margin, harmonics, tries, steps, criterion)
    moved = _moved(model, joints)
    about = model.neutral() if start is None else as_array(start, model.nq, "start", "nq")
    if about.shape != (model.nq,):
        raise ValueError(f"start must be one configuration ({model.nq},), got {about.shape}")
    model.check(about)
    driven = np.any(actuator_map(model, about) != 0.0, axis=-1)
    limits = Limits(
        model,
        (
            *_positions(model, about, moved, reach),
            *_rates(model, moved, "velocity", velocity),
            *_rates(model, moved, "acceleration", acceleration),
            *_torques(model, moved, driven, torque),
            *_transmissions(model, about),
        ),
        driven,
    )
    names = [model.dof_names[i] for i in moved]
    places = {b.name: b for b in limits.bounds if b.quantity in ("position", "reach")}
    low, high = np.array([(places[name].lower, places[name].upper) for name in names]).T
    where = np.array([model.joint_positions(about)[name] for name in names])
    half = 0.5 * (high - low)
    family = Family(limits, about, moved, half, start is not None, period, harmonics)
    rest = family.along(np.zeros(1), np.zeros(family.size)).shares[0]
    kept = [b.quantity in ("position", "reach") for b in limits.all]
    allowed = np.where(kept, np.clip(rest, margin, 1.0), margin)  # where it stands, it may stand
    search = Search(family, allowed, (0.5 * (high + low) - where) / half, criterion)
    scaling = search.drawn(SEED)
    candidates = search.drawn(seed)
    found: list[FourierMotion] = []
    if len(scaling) and len(candidates):
        scale = Scale.of(family.along(search.time, scaling))
        order = np.argsort(search.cost(scale, candidates, 0.0, None))[:tries]
        time = np.linspace(0.0, period, 1 + max(1, round(period / step)))
        with Progress(f"excitation of '{model.name}'", len(order), progress) as bar:
            for n, numbers in enumerate(candidates[order]):
                better = search.descended(scale, numbers, steps, partial(_tell, bar, n))
                found += filter(None, (search.within(each, time) for each in (numbers, better)))
    if not found:
        worst = int(np.argmax(rest / allowed))
        text = _used(limits, rest)[worst]
        raise ValueError(f"no motion within the limits was found; at rest already: {text}")
    best = min(found, key=lambda motion: float(search.scores(scale, motion.rows[None])[0]))
    singular = scale.singular(best.rows[None])[0]
    used = _used(limits, best.shares.max(axis=0))
    told = [u for u in used if u.quantity != "transmission" and max(-u.lower, u.upper) < math.inf]
    return Excitation(
        model,
        time,
        best.q,
        best.v,
        best.a,
        best.tau,
        len(singular),
        float(singular[-1] / singular[0]),
        float(np.exp(np.mean(np.log(singular)))),
        tuple(sorted(told, key=lambda u: -u.share)),
        margin,
        _notes(model, moved, driven, free=torque is None),
    )


def _tell(bar: Progress, done: int, share: float) -> None:
    bar.at(done + share)


def _check_options(
    period: float, step: float, reach: float, margin: float, harmonics: int, tries: int, steps: int,
    criterion: Criterion,
) -> None:  # fmt: skip
    """ValueError, in words, for numbers that cannot be."""
    for name, value in (("period", period), ("step", step), ("reach", reach), ("margin", margin)):
        if not 0.0 < as_real(value, name) < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
    if margin > 1.0:
        raise ValueError(f"margin is the share of limits that may be used, at most 1; got {margin}")
    counts = (("harmonics", harmonics, 2), ("tries", tries, 1), ("steps", steps, 1))
    for name, whole, least in counts:
        if not isinstance(whole, int | np.integer) or whole < least:
            raise ValueError(f"{name} must be a whole number from {least} on, got {whole!r}")
    if step > 0.5 * period / harmonics:
        raise ValueError(f"step {step} leaves too few samples of {harmonics} harmonics")
    if criterion not in get_args(Criterion):
        known = " and ".join(f"'{each}'" for each in get_args(Criterion))
        raise ValueError(f"criterion '{criterion}' is not known; {known} are")


def _moved(model: Model, joints: str | Iterable[str] | None) -> tuple[int, ...]:
    """Coordinates of the joints that shall move."""
    if model.floating_base is not None:
        raise ValueError(
            f"'{model.name}' floats on '{model.floating_base}', which nothing drives: how it moves "
            "follows from the joints' motion, and cannot be given with it. Hold the base "
            "(robomodel.load with floating_base=False), as on a stand, or record motions of a "
            "controller for robomodel.identify"
        )
    own = {joint.name: joint for joint in model.joints if joint.independent}
    wanted = tuple(own) if joints is None else as_names(joints, "joints")
    for name in wanted:
        if name not in own:
            hint = did_you_mean(name, own)
            dependent = name in model.joint_names
            why = "it follows from others" if dependent else "there is none of that name"
            raise UnknownNameError(f"no independent joint '{name}' ({why}){hint}")
    several = [name for name in wanted if own[name].nv != 1]
    if several:
        raise ValueError(
            f"excitation moves joints with one freedom; {few(several)} have more: name the others "
            "in joints=, and those are held still"
        )
    if not wanted:
        raise ValueError("no joint to move")
    return tuple(i for i, name in enumerate(model.dof_names) if name in wanted)


# ---- limits --------------------------------------------------------------------------------------


def _single(model: Model) -> Iterator[Joint]:
    """Joints with one freedom."""
    return (joint for joint in model.joints if joint.nv == 1)


def _positions(model: Model, about: Array, moved: tuple[int, ...], reach: float) -> Iterator[Bound]:
    """The file's, of all joints; of moved ones without, about where they are."""
    at = model.joint_positions(about)
    names = {model.dof_names[i] for i in moved}
    length = max((math.hypot(*map(float, node.offset)) for node in model.nodes), default=0.0) or 1.0
    for joint in _single(model):
        low, high = joint.lower, joint.upper
        if joint.type == "continuous":
            low, high = -math.inf, math.inf
        if joint.name not in names:
            if math.isfinite(low) or math.isfinite(high):
                yield Bound(joint.name, "position", low, high)
            continue
        far = reach * (length if joint.type == "prismatic" else 1.0)
        place = float(at[joint.name])
        if math.isfinite(low) and math.isfinite(high):
            yield Bound(joint.name, "position", low, high)
        elif math.isfinite(low):
            yield Bound(joint.name, "position", low, max(low, place - far) + 2.0 * far)
        elif math.isfinite(high):
            yield Bound(joint.name, "position", min(high, place + far) - 2.0 * far, high)
        else:
            yield Bound(joint.name, "reach", place - far, place + far)


def _asked(most: Most, what: str, all_of: Iterable[str], known: Iterable[str]) -> dict[str, float]:
    """Limits by name, of a number for all of some, or as they are given."""
    if most is None:
        return {}
    found = dict(most) if isinstance(most, Mapping) else dict.fromkeys(all_of, most)
    names = list(known)
    for name, value in found.items():
        if name not in names:
            raise UnknownNameError(
                f"{what}: no '{name}' with one freedom{did_you_mean(name, names)}"
            )
        if not as_real(value, what) > 0.0:
            raise ValueError(f"{what} of '{name}' must be positive, got {value!r}")
    return found


def _rates(model: Model, moved: tuple[int, ...], quantity: Quantity, most: Most) -> Iterator[Bound]:
    """Of velocities, the file's and those asked for; of accelerations the latter."""
    joints = {joint.name: joint for joint in _single(model)}
    asked = _asked(most, quantity, [model.dof_names[i] for i in moved], joints)
    for name, joint in joints.items():
        own = joint.velocity_limit if quantity == "velocity" else math.inf
        if (limit := min(own, asked.get(name, math.inf))) < math.inf:
            yield Bound(name, quantity, -limit, limit)


def _torques(model: Model, moved: tuple[int, ...], driven: Array, most: Most) -> Iterator[Bound]:
    """Those asked for, and the file's of coordinates that no actuator drives."""
    names = model.dof_names
    asked = _asked(most, "torque", [names[i] for i in moved], names)
    for name, own, known in zip(names, model.effort_limit.tolist(), driven, strict=True):
        limit = min(math.inf if known else own, asked.get(name, math.inf))
        if limit < math.inf:
            yield Bound(name, "torque", -limit, limit)


def _transmissions(model: Model, about: Array) -> Iterator[Bound]:
    """How far loops' joints may move with the independent ones: not as much as at a dead point."""
    jacobian = model.constraint_jacobian(about)
    for cluster in model.clusters:
        if cluster.implicit:
            most = AWAY * float(np.linalg.norm(jacobian[cluster.spanning_v]))
            yield Bound(cluster.name, "transmission", -most, most)


def _used(limits: Limits, shares: Array) -> list[Used]:
    return [
        Used(b.name, b.quantity, b.lower, b.upper, float(share))
        for b, share in zip(limits.all, shares, strict=True)
    ]


def _notes(model: Model, moved: tuple[int, ...], driven: Array, free: bool) -> tuple[str, ...]:
    """What to know of it; ``free``: no limits of forces were asked for."""
    held = [name for i, name in enumerate(model.dof_names) if i not in moved]
    loose = [name for name, known in zip(model.dof_names, driven, strict=True) if not known]
    notes = []
    if held:
        notes.append(f"are held still: {few(held)}")
    if model.actuators and loose:
        notes.append(f"no actuator drives, though they are to move or to hold so: {few(loose)}")
    efforts = [each.effort_limit for each in model.joints]
    efforts += [each.effort_limit for each in model.actuators]
    if free and not min(efforts) < math.inf:
        notes.append("the file limits no forces, and none were asked for: torque= does")
    return tuple(notes)
