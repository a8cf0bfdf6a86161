"""Exciting motions within a robot's limits, from which its parameters are identified well."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Mask
from robomodel.dynamics import passive_force
from robomodel.errors import UnknownNameError, argument, as_names, as_real, did_you_mean, few
from robomodel.identification.base import split
from robomodel.identification.best_joints import SameRobot, in_best_joints
from robomodel.identification.coordinates import Coordinates, motor_rates
from robomodel.identification.fit import kept_none
from robomodel.identification.gears import Losses, given_by_motors
from robomodel.identification.motion_limits import (
    FREE_REACH,
    LimitUse,
    Most,
    MotionLimits,
    driven,
)
from robomodel.identification.regressors import regressor
from robomodel.model.arguments import as_array
from robomodel.model.elements import position_names
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.running import Progress
from robomodel.tolerances import DIFFERENCE, SAME, TINY

REACHED = 0.95  # fraction of the usable part of a limit from which on it counts as reached


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic exciting motion that begins and ends at rest in the same configuration.

    Attributes:
        model: The robot.
        t: Times (T,) [s].
        q: Configurations (T, nq).
        v: Velocities (T, nv).
        a: Accelerations (T, nv).
        tau: Forces (T, nv) predicted with the model's parameters, losses included.
        rank: Number of identifiable combinations: singular values that are not always zero.
        condition: Ratio of the largest and smallest singular value of the motion's scaled
            regressor.
        information: Geometric mean of these singular values.
        limits: The used fraction of each limit, the largest first.
        margin: The fraction of each limit that may be used.
        notes: Remarks on the motion, as text.
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
    limits: tuple[LimitUse, ...]
    margin: float
    notes: tuple[str, ...]

    @property
    def reached(self) -> tuple[LimitUse, ...]:
        """The limits of which it uses nearly the whole allowed fraction."""
        return tuple(each for each in self.limits if each.share >= REACHED * self.margin)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a CSV file with a header and one sample a line, as ``robomodel identify`` reads it.

        Columns are ``time``, and ``q.``, ``v.``, ``a.`` and ``tau.`` of each coordinate. The
        forces are predicted by the model: replace them by measured ones.

        Args:
            path: Path of the file.
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
    reach: float | None = None,
    velocity: Most = None,
    acceleration: Most = None,
    torque: Most = None,
    margin: float = 0.95,
    losses: bool | str | Iterable[str] = False,
    criterion: Criterion = "condition",
    tries: int = 2,
    steps: int = 100,
    seed: int | np.random.Generator | None = 0,
    progress: bool = True,
) -> Excitation:
    """A periodic motion within all limits that makes :func:`identify` as precise as possible.

    Joints move by Fourier series of multiples of 1/``period``, at rest at both ends of a period
    (after Swevers et al. 1997, with the ends as conditions on the coefficients, so that it stays a
    Fourier series). In linkages, gear trains and differentials these are the best conditioned
    joints, no rotors, whichever are independent: the motion is the same for all choices that leave
    the motors the same. The regressor's rows are scaled by the forces of each coordinate, its
    columns by their effect in random motions within the same limits. The best of random motions is
    improved to a local minimum by a descent with difference quotients; the result is the same for
    the same ``seed``.

    Limits hold at every sample for the positions of all joints with one freedom, including
    dependent joints and rotors, their velocities and accelerations, the actuators' forces and
    rates, including torque-speed curves, and forces on coordinates. Loops are closed at each
    sample, on the branch of the middle, and stay away from dead points of the joints that lead and
    of motors that are as many as a linkage's freedoms. Dead points of other independent joints may
    be passed, near which the forces on these coordinates grow without bounds.

    Args:
        model: The robot.
        period: Duration of a period [s].
        harmonics: Number of multiples of 1/``period``.
        step: Time between samples [s].
        joints: The independent joints that move, by default all; the others are held. It is for the
            file's independent joints, as are ``velocity``, ``acceleration`` and ``torque``.
        start: The configuration (nq,) at the start; by default chosen near ``model.neutral()``.
        reach: Joints that lead and have no position limits stay within this distance of the middle
            (radians, or lengths of the longest link). By default 1, and half a turn where a
            linkage lets its joint turn fully: dry friction of its other joints has its kinks there.
        velocity: Limits in addition to the file's: a number for all moved joints, or by joints'
            names.
        acceleration: Limits, in the same form.
        torque: Limits on coordinates, in the same form, in addition to the file's effort limits of
            coordinates that no actuator drives.
        margin: The fraction of each limit that may be used, or where a joint stands beyond it.
        losses: Gears whose efficiencies are to be told, too, while motors drive and while they are
            driven (True, or names of actuators), as of :func:`identify`. A note names those that
            the motion leaves without one of both.
        criterion: "condition", the smallest condition number of the base regressor, or
            "information", the largest geometric mean of its singular values (its log det).
        tries: Number of random motions that are improved.
        steps: Largest number of steps of each improvement.
        seed: Seed of the random motions.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        excitation: The motion, with its limits and its condition.

    Raises:
        ValueError: The robot has a floating base, whose motion cannot be prescribed; a joint to
            move has several freedoms; or the limits allow no motion.
        UnknownNameError: A name is unknown.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> motion = rm.excitation(model, period=2.0, tries=1, steps=1, progress=False)
        >>> motion.q.shape, motion.tau.shape
        ((201, 3), (201, 3))
    """
    _check_options(period, step, reach, margin, harmonics, tries, steps, criterion)
    moved = _moved(model, joints)
    about = model.neutral() if start is None else as_array(start, model.nq, "start", "nq")
    if about.shape != (model.nq,):
        raise ValueError(f"start must be one configuration ({model.nq},), got {about.shape}")
    model.check(about)
    names = [model.dof_names[i] for i in moved]
    held = tuple(name for name in model.dof_names if name not in names)
    best = in_best_joints(model, held)
    places = tuple(i for i, name in enumerate(best.dof_names) if name not in held)
    there, back = SameRobot(model, best), SameRobot(best, model)
    middle = there.configurations(about)
    limits = MotionLimits.of(back, middle, places, names, reach, velocity, acceleration, torque)
    search = ExcitationSearch.of(
        limits,
        middle,
        places,
        start is not None,
        period,
        harmonics,
        margin,
        criterion,
        Losses.of(best, losses),
    )
    motion, scale = search.best(tries, steps, step, seed, progress)
    q, v, a = back.motion(motion.q, motion.v, motion.a)
    singular = scale.singular(motion.q[None], motion.rows[None])[0]
    used = sorted(limits.used(motion.shares.max(axis=0)), key=lambda u: -u.share)
    return Excitation(
        model=model,
        t=search.times(step),
        q=q,
        v=v,
        a=a,
        tau=back.forces(motion.q)(motion.tau),
        rank=len(singular),
        condition=float(singular[-1] / singular[0]),
        information=float(np.exp(np.mean(np.log(singular)))),
        limits=tuple(
            u for u in used if u.quantity != "transmission" and max(-u.lower, u.upper) < math.inf
        ),
        margin=margin,
        notes=(
            *_notes(model, moved, driven(model, about), free=torque is None),
            *_notes_on_dead_points(back, motion.q),
            *search.family.losses.notes(motion.q, motion.v, motion.a),
        ),
    )


def _check_options(
    period: float, step: float, reach: float | None, margin: float, harmonics: int, tries: int,
    steps: int, criterion: Criterion,
) -> None:  # fmt: skip
    """Raise ValueError for impossible options."""
    far = FREE_REACH if reach is None else reach
    for name, value in (("period", period), ("step", step), ("reach", far), ("margin", margin)):
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
        choices = " and ".join(f"'{each}'" for each in get_args(Criterion))
        raise ValueError(f"criterion '{criterion}' is not known; {choices} are")


def _moved(model: Model, joints: str | Iterable[str] | None) -> tuple[int, ...]:
    """Indices of the coordinates to move."""
    if model.floating_base is not None:
        raise ValueError(
            f"'{model.name}' floats on '{model.floating_base}', which nothing drives: how it moves "
            "follows from the joints' motion, and cannot be given with it. Hold the base "
            f"({argument('floating_base', False, of='robomodel.load')}), as on a stand, or record "
            "motions of a controller for robomodel.identify"
        )
    independent = {joint.name: joint for joint in model.joints if joint.independent}
    chosen = tuple(independent) if joints is None else as_names(joints, "joints")
    for name in chosen:
        if name not in independent:
            hint = did_you_mean(name, independent)
            dependent = name in model.joint_names
            why = "it follows from others" if dependent else "there is none of that name"
            raise UnknownNameError(f"no independent joint '{name}' ({why}){hint}")
    several = [name for name in chosen if independent[name].nv != 1]
    if several:
        raise ValueError(
            f"excitation moves joints with one freedom; {few(several)} have more: list the "
            "others as the joints to move, and those are held still"
        )
    if not chosen:
        raise ValueError("no joint to move")
    return tuple(i for i, name in enumerate(model.dof_names) if name in chosen)


def _notes(model: Model, moved: tuple[int, ...], driven: Array, free: bool) -> tuple[str, ...]:
    """Notes for the user; ``free``: no limits of forces were requested."""
    held = [name for i, name in enumerate(model.dof_names) if i not in moved]
    loose = [name for name, is_driven in zip(model.dof_names, driven, strict=True) if not is_driven]
    notes = []
    if held:
        notes.append(f"are held still: {few(held)}")
    if model.actuators and loose:
        notes.append(f"no actuator drives, though they are to move or to hold so: {few(loose)}")
    efforts = [x for each in model.joints for x in (each.effort_limit, -each.least_effort)]
    efforts += [x for each in model.actuators for x in (each.effort_limit, -each.least_effort)]
    if free and not min(efforts) < math.inf:
        limits = argument("torque")
        notes.append(f"the file limits no forces, and none were asked for: {limits} does")
    return tuple(notes)


def _notes_on_dead_points(robot: SameRobot, q: Array) -> Iterator[str]:
    """Notes on independent joints of linkages without motors whose dead points a motion passes."""
    for cluster in robot.crossed(q):
        if motor_rates(robot.other, cluster) is None:
            yield (
                f"passes dead points of {few(cluster.independent)}, where no force on them drives "
                f"the linkage: motors of it, or {argument('torque')}, keep away from these"
            )


# ---- motions -------------------------------------------------------------------------------------


class FourierMotion(NamedTuple):
    """States (..., T, n) of a motion, its forces and regressor, and used fractions of limits.

    ``x``: displacement of the moved joints from ``about`` of the family.
    """

    x: Array
    q: Array
    v: Array
    a: Array
    rows: Array
    tau: Array
    shares: Array


@dataclass(frozen=True)
class FourierFamily:
    """Motions of independent joints with one freedom, parametrised by numbers (..., size).

    The numbers are the initial displacements from ``about``, then the amplitudes of the modes, in
    units of ``reach`` (moved,); with ``fixed``, all start at ``about``, and only amplitudes remain.
    """

    limits: MotionLimits
    about: Array
    moved: tuple[int, ...]
    reach: Array
    fixed: bool
    period: float
    harmonics: int
    losses: Losses

    @property
    def model(self) -> Model:
        """The robot."""
        return self.limits.model

    @property
    def modes(self) -> int:
        """Number of modes of each joint."""
        return 2 * self.harmonics - 2

    @property
    def size(self) -> int:
        """Number of parameters of a motion."""
        return (self.modes + (not self.fixed)) * len(self.moved)

    def split(self, numbers: Array) -> tuple[Array, Array]:
        """Initial displacements (..., moved) and amplitudes of the modes (..., moved, modes)."""
        count = len(self.moved)
        sizes = numbers[..., -count * self.modes :].reshape(*numbers.shape[:-1], count, self.modes)
        begins = np.zeros(sizes.shape[:-1]) if self.fixed else numbers[..., :count]
        return begins, sizes

    def centred(self, middle: Array, sizes: Array) -> Array:
        """The numbers of motions with these means; a fixed start keeps its place."""
        flat = sizes.reshape(*sizes.shape[:-2], -1)
        return flat if self.fixed else np.concatenate([middle - self._means(sizes), flat], axis=-1)

    def shrunk(self, numbers: Array, share: float) -> Array:
        """The motion scaled by ``share`` about its mean, or about its fixed start."""
        begins, sizes = self.split(numbers)
        return self.centred(begins + self._means(sizes), share * sizes)

    def _means(self, sizes: Array) -> Array:
        time = np.linspace(0.0, self.period, 4 * self.harmonics, endpoint=False)
        return np.asarray(sizes @ self.shapes(time, 0).mean(0))

    def shapes(self, time: Array, order: int) -> Array:
        """Modes (T, 2 harmonics - 2), or their first or second derivatives (``order``).

        Sines and cosines of multiples of the frequency, combined so that each is zero, with zero
        velocity and acceleration, at both ends of a period.
        """
        k = np.arange(1.0, self.harmonics + 1.0)
        rate = 2.0 * math.pi / self.period * k
        phase = np.outer(time, rate) + 0.5 * math.pi * order
        sines, cosines = np.sin(phase) * rate**order, np.cos(phase) * rate**order
        if order == 0:
            cosines = cosines - 1.0
        held, level = self._bases
        return np.concatenate([sines @ held, cosines @ level], axis=1)

    @property
    def _bases(self) -> tuple[Array, Array]:
        """Orthonormal combinations of sines without velocity, of cosines without acceleration."""
        k = np.arange(1.0, self.harmonics + 1.0)
        held, level = (np.linalg.svd(row[None])[2][1:].T for row in (k, k**2))
        return held, level

    @property
    def hump(self) -> Array:
        """Amplitudes (modes,) of (1 - cos)², which moves to one side of the start only."""
        _, level = self._bases
        cosines = np.zeros(self.harmonics)
        cosines[:2] = -1.0, 0.25
        return np.concatenate([np.zeros(self.harmonics - 1), cosines @ level])

    def along(
        self, time: Array, numbers: Array, near: FourierMotion | None = None
    ) -> FourierMotion:
        """The motions (..., T, …) at these times; nan where a loop cannot be closed.

        ``near``: a nearby motion at the same times, on whose branch loops stay.
        """
        begins, sizes = self.split(numbers)
        x, rate, pull = (
            self.reach * np.einsum("...jk,tk->...tj", sizes, self.shapes(time, order))
            for order in range(3)
        )
        x = x + self.reach * begins[..., None, :]
        far = x if near is None else x - near.x
        q = integrated(self.model, self.about if near is None else near.q, self._whole(far))
        v, a = self._whole(rate), self._whole(pull)
        with np.errstate(invalid="ignore"):
            rows = regressor(self.model, q, v, a)
            tau = rows @ parameters(self.model).values
            tau = tau - passive_force(self.model, q, np.zeros_like(v))
            tau, motors = given_by_motors(self.model, self.limits.driven, q, v, a, tau)
            rows = self.losses.beside(rows, q, v, a)
            shares = self.limits.shares(q, v, a, tau, motors)
            return FourierMotion(x, q, v, a, rows, tau, shares)

    def _whole(self, x: Array) -> Array:
        result = np.zeros((*x.shape[:-1], self.model.nv))
        result[..., self.moved] = x
        return result


def integrated(model: Model, q: Array, far: Array) -> Array:
    """Configurations q moved by ``far``; nan where a loop cannot be closed, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return model.integrate(q, far)


# ---- the search ----------------------------------------------------------------------------------


Criterion: TypeAlias = Literal["condition", "information"]
Cost: TypeAlias = Callable[[Array], Array]

DRAWN_MOTIONS = 12  # number of random motions
SHARES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)  # their sizes; the largest within the limits is used
PENALTIES = (1e2, 1e4)  # successive weights of squared violations of limits
TRIED = 0.5 ** np.arange(-1.0, 9.0)  # fractions of a full step in the line search
IDLE_GAIN = 1e-4  # relative gain below which a step is idle


@dataclass(frozen=True)
class RegressorScale:
    """Scales of a regressor's rows and columns: ``levels`` (nv,) of forces, ``basis`` (p, rank).

    Forces are in the ``coordinates`` in which a fit compares them. Rows @ basis is the regressor of
    base parameters that are orthonormal combinations of all parameters, in units in which their
    effects are equal.
    """

    coordinates: Coordinates
    levels: Array
    basis: Array

    @classmethod
    def of(cls, model: Model, motion: FourierMotion) -> RegressorScale:
        """Root mean squares of forces and columns over motions (m, T)."""
        nv, count = motion.rows.shape[-2:]
        coordinates = Coordinates.of(model, motion.q)
        change = coordinates.at(motion.q)
        levels = np.sqrt(np.mean(change(motion.tau) ** 2, axis=(0, 1)))
        levels = np.maximum(levels, 1e-9 * max(float(levels.max(initial=0.0)), 1e-9))
        rows = (change(motion.rows, -2) / levels[:, None]).reshape(-1, count)
        lacking = kept_none(model)
        rows[:, : len(lacking)][:, lacking] = 0.0
        space, _, sizes, _ = split(rows)
        return cls(coordinates, levels, (space / sizes).T * np.sqrt(len(rows) / nv))

    def singular(self, q: Array, rows: Array) -> Array:
        """Singular values (m, rank) of regressors (m, T, nv, p) over √T, ascending."""
        scaled = self.coordinates.at(q)(rows @ self.basis, -2) / self.levels[:, None]
        flat = scaled.reshape(len(rows), -1, self.basis.shape[1])
        gram = np.swapaxes(flat, 1, 2) @ flat / rows.shape[1]
        return np.sqrt(np.maximum(np.linalg.eigvalsh(gram), TINY))


@dataclass(frozen=True)
class ExcitationSearch:
    """The search in a family of motions; ``allowed`` (limits,): usable fraction of each limit.

    ``middle`` (moved,): the middles of the positions' ranges, relative to ``about`` of the family.
    """

    family: FourierFamily
    allowed: Array
    middle: Array
    criterion: Criterion

    @classmethod
    def of(
        cls, limits: MotionLimits, about: Array, moved: tuple[int, ...], fixed: bool, period: float,
        harmonics: int, margin: float, criterion: Criterion, losses: Losses,
    ) -> ExcitationSearch:  # fmt: skip
        """The search among motions of joints about a configuration; ``fixed``: all start there."""
        names = [limits.model.dof_names[i] for i in moved]
        is_position = [b.quantity in ("position", "reach") for b in limits.all]
        places = {b.name: b for b in limits.bounds if b.quantity in ("position", "reach")}
        low, high = np.array([(places[name].lower, places[name].upper) for name in names]).T
        where = np.array([limits.model.joint_positions(about)[name] for name in names])
        half = 0.5 * (high - low)
        family = FourierFamily(limits, about, moved, half, fixed, period, harmonics, losses)
        standing = family.along(np.zeros(1), np.zeros(family.size)).shares[0]
        allowed = np.where(
            is_position, np.clip(standing, margin, 1.0), margin
        )  # the start is allowed
        return cls(family, allowed, (0.5 * (high + low) - where) / half, criterion)

    def best(
        self, tries: int, steps: int, step: float, seed: int | np.random.Generator | None,
        progress: bool,
    ) -> tuple[FourierMotion, RegressorScale]:  # fmt: skip
        """The best motion within limits, and its regressor's scale; ValueError if there is none."""
        family, model = self.family, self.family.model
        # the motions that scale regressors are always the same, those of this seed
        scaling, candidates = self.drawn(20061004), self.drawn(seed)
        motions: list[FourierMotion] = []
        if len(scaling) and len(candidates):
            scale = RegressorScale.of(model, family.along(self.time, scaling))
            order = np.argsort(self.cost(scale, candidates, 0.0, None))[:tries]
            time = self.times(step)
            with Progress(f"excitation of '{model.name}'", len(order), progress) as bar:
                for n, numbers in enumerate(candidates[order]):
                    better = self.descended(scale, numbers, steps, bar, n)
                    within = (self.within(each, time) for each in (numbers, better))
                    motions += filter(None, within)
        if not motions:
            standing = family.along(np.zeros(1), np.zeros(family.size)).shares[0]
            worst = family.limits.used(standing)[int(np.argmax(standing / self.allowed))]
            raise ValueError(f"no motion within the limits was found; at rest already: {worst}")
        best = min(motions, key=lambda m: float(self.scores(scale, m.q[None], m.rows[None])[0]))
        return best, scale

    def times(self, step: float) -> Array:
        """Times from the start of a period to its end."""
        period = self.family.period
        return np.linspace(0.0, period, 1 + max(1, round(period / step)))

    @property
    def time(self) -> Array:
        """Times within a period at which motions are evaluated."""
        family = self.family
        # 12 states per period of the highest harmonic
        return np.linspace(0.0, family.period, 12 * family.harmonics, endpoint=False)

    def drawn(self, seed: int | np.random.Generator | None) -> Array:
        """Random motions (n, size) within limits; empty if there are none."""
        rng = np.random.default_rng(seed)
        family, count = self.family, len(self.middle)
        sizes = rng.normal(size=(DRAWN_MOTIONS, count, family.modes))
        if family.fixed:  # some joints can leave to one side only, as at a limit
            side = np.where(self.middle < 0.0, -1.0, 1.0)
            sizes[: DRAWN_MOTIONS // 3] = side[:, None] * family.hump
        x = np.einsum("...jk,tk->...jt", sizes, family.shapes(self.time, 0))
        sizes /= 0.5 * np.ptp(x, axis=-1)[..., None]
        sizes *= rng.uniform(0.3, 1.0, (DRAWN_MOTIONS, count, 1))
        middle = rng.uniform(0.0, 1.0, (DRAWN_MOTIONS, 1)) * self.middle
        middle = middle + rng.uniform(-0.3, 0.3, (DRAWN_MOTIONS, count))
        result, worst = np.empty((DRAWN_MOTIONS, family.size)), np.full(DRAWN_MOTIONS, np.inf)
        for share in SHARES:
            beyond = worst > 1.0
            if not beyond.any():
                break
            result[beyond] = family.centred(middle, share * sizes)[beyond]
            worst[beyond] = self.worst(family.along(self.time, result[beyond]))
        return result[worst <= 1.0]

    def worst(self, motion: FourierMotion) -> Array:
        """The largest used fraction of any limit (m,) over ``allowed``; infinite for open loops."""
        most: Array = np.max(motion.shares / self.allowed, axis=(-2, -1))
        return np.where(np.isnan(most), np.inf, most)

    def scores(self, scale: RegressorScale, q: Array, rows: Array) -> Array:
        """The objective (m,) of regressors (m, T, nv, p)."""
        singular = scale.singular(q, rows)
        if self.criterion == "condition":
            return np.asarray(np.log(singular[:, -1] / singular[:, 0]))
        return np.asarray(-np.mean(np.log(singular), axis=1))

    def cost(
        self, scale: RegressorScale, numbers: Array, penalty: float, near: FourierMotion | None
    ) -> Array:
        """Objective plus penalty on violated limits (m,); infinite if a loop opens."""
        result = np.full(len(numbers), np.inf)
        states = len(self.time) * len(scale.levels) * len(scale.basis)
        each = max(1, 2_000_000 // states)  # numbers of the regressors at a time: 16 MB
        for first in range(0, len(numbers), each):
            at = slice(first, first + each)
            motion = self.family.along(self.time, numbers[at], near)
            fine: Mask = np.isfinite(self.worst(motion))
            if not fine.any():
                continue
            over = np.maximum(motion.shares[fine] / self.allowed - 1.0, 0.0)
            added = penalty * np.sum(np.mean(over**2, axis=1), axis=1)
            result[at][fine] = self.scores(scale, motion.q[fine], motion.rows[fine]) + added
        return result

    def descended(
        self, scale: RegressorScale, numbers: Array, steps: int, bar: Progress, first: int
    ) -> Array:
        """A local minimum near a motion; may violate limits slightly.

        Advances the progress bar from ``first`` to ``first`` + 1.
        """
        near = self.family.along(self.time, numbers)
        done = 0

        def moved(x: Array) -> None:
            nonlocal near, done
            near, done = self.family.along(self.time, x, near), done + 1
            bar.at(first + done / (len(PENALTIES) * steps))

        def penalized(penalty: float) -> Cost:
            return lambda x: self.cost(scale, x, penalty, near)

        for penalty in PENALTIES:
            numbers = descend(penalized(penalty), numbers, steps, moved)
        return numbers

    def within(self, numbers: Array, time: Array) -> FourierMotion | None:
        """The motion at these times, reduced until it is within limits; None if that fails."""
        best, low, high = None, 0.0, 1.0
        for n in range(12):  # bisections of a motion's size
            share = high if n == 0 else 0.5 * (low + high)
            motion = self.family.along(time, self.family.shrunk(numbers, share))
            if self.worst(motion) <= 1.0 and self._joined(motion):
                best, low = motion, share
                if n == 0:
                    break
            else:
                high = share
        return best

    def _joined(self, motion: FourierMotion) -> bool:
        """True if consecutive states are on the same branch."""
        model = self.family.model
        far = model.difference(motion.q[:-1], motion.q[1:])
        reached = integrated(model, motion.q[:-1], far)
        return bool(np.all(np.abs(reached - motion.q[1:]) <= SAME))


def descend(cost: Cost, x: Array, steps: int, notify: Callable[[Array], None]) -> Array:
    """A local minimum from x (n,) by quasi-Newton steps (BFGS) with difference quotients.

    ``cost`` maps rows (m, n) to (m,); it may be infinite, but not at x. All differences, and all
    steps of a line search, are evaluated in one call. ``notify`` is called with each x.
    """
    n = len(x)
    unit = np.eye(n)
    inverse, fresh, idle = unit, True, 0

    def slope(x: Array) -> tuple[float, Array]:
        result = cost(x + np.concatenate([np.zeros((1, n)), DIFFERENCE * unit]))
        change = (result[1:] - result[0]) / DIFFERENCE
        return float(result[0]), np.where(np.isfinite(change), change, 0.0)

    value, gradient = slope(x)
    for _ in range(steps):
        way = -inverse @ gradient
        if not gradient @ way < 0.0:
            inverse, fresh, way = unit, True, -gradient
        longest = float(np.abs(way).max(initial=0.0))
        if longest == 0.0:
            break
        way *= min(1.0, 0.3 / longest)  # at most this share of a joint's range
        trials = x + TRIED[:, None] * way
        costs = cost(trials)
        best = int(np.argmin(costs))
        if not costs[best] < value:
            if fresh:
                break
            inverse, fresh = unit, True
            continue
        idle = idle + 1 if value - costs[best] < IDLE_GAIN else 0
        step, before = trials[best] - x, gradient
        x = trials[best]
        notify(x)
        if idle >= 3:
            break
        value, gradient = slope(x)
        change = gradient - before
        along = float(step @ change)
        if along > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            if fresh:
                inverse, fresh = unit * (along / float(change @ change)), False
            projection = unit - np.outer(step, change) / along
            inverse = projection @ inverse @ projection.T + np.outer(step, step) / along
    return x
