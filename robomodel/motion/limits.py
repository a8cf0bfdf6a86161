"""Passive forces and stops of a motion, starts of motions, and position limits that end them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.contact.dry_friction import DryFriction
from robomodel.errors import UnknownNameError, as_names, did_you_mean, warn
from robomodel.mechanism.roots import root
from robomodel.model.configurations.closing import left_open
from robomodel.model.configurations.states import refuse, unit_faults
from robomodel.model.model import Model
from robomodel.model.parameters import parameterized
from robomodel.motion.integrator_functions import openness
from robomodel.motion.trajectory import Stop
from robomodel.scalars import stack, unstack
from robomodel.tolerances import CLOSED, WITHIN

ADAPTIVE = ("dop853", "radau")
"""Methods that choose their steps."""


@dataclass(frozen=True)
class Acting:
    """Forces of a step besides tau: springs and dampers, dry friction, stops of named joints."""

    passive: bool = True
    friction: bool = True
    stops: frozenset[str] = frozenset()

    def rubbing(self, model: Model) -> list[DryFriction]:
        """The dry friction of each coordinate that has some, in the order of the rows.

        That of rotors with lossy gears is in the rows of their meshes.
        """
        if not self.friction:
            return []
        meshed = rotors_of_meshes(model)
        rubbing = [
            DryFriction(j.friction, j.law)
            for j in model.joints
            if j.name not in meshed
            for _ in range(j.nv)
        ]
        rubbing += [DryFriction(spring.friction) for spring in model.springs]
        return [each for each in rubbing if each]

    def lossy(self, model: Model) -> list[int]:
        """The actuators whose gears lose power, in the order of the rows of their meshes."""
        if not self.friction:
            return []
        return [n for n, each in enumerate(model.actuators) if each.lossy]

    def bounds(self, model: Model) -> list[tuple[int, float, float]]:
        """The limits that stop joints: index of the stopped joint, side, bound."""
        return [
            (n, side, bound)
            for n, body in enumerate(self.stopped(model))
            for side, bound in ((1.0, model.joints[body].lower), (-1.0, model.joints[body].upper))
            if math.isfinite(bound)
        ]

    def stopped(self, model: Model) -> list[int]:
        """The bodies whose joints stop at position limits."""
        return [
            body
            for body, joint in enumerate(model.joints)
            if joint.name in self.stops
            and joint.nv == 1
            and joint.type != "continuous"
            and (math.isfinite(joint.lower) or math.isfinite(joint.upper))
        ]


def rotors_of_meshes(model: Model) -> frozenset[str]:
    """The joints of rotors with lossy gears."""
    return frozenset(each.joint for each in model.actuators if each.lossy and each.turns_rotor)


def named(model: Model, wanted: bool | Iterable[str]) -> frozenset[str]:
    """Names of joints: all, none, or those given; raises UnknownNameError for unknown ones."""
    joints = [joint.name for joint in model.joints]
    if isinstance(wanted, bool):
        return frozenset(joints if wanted else ())
    names = set(as_names(wanted, "a joint"))
    for name in sorted(names - set(joints)):
        raise UnknownNameError(f"no joint '{name}' in '{model.name}'{did_you_mean(name, joints)}")
    return frozenset(names)


def method_of(
    model: Model, acting: Acting, ground: object, contacts: object, collisions: object,
    wanted: str | None, methods: Sequence[str],
) -> str | None:  # fmt: skip
    """The method to use: ``wanted``, or "time_stepping" if something needs impulses.

    Raises ValueError if that is not the wanted one, and for unknown methods.
    """
    if wanted not in (None, *methods):
        names = ", ".join(f"'{name}'" for name in methods)
        raise ValueError(f"method '{wanted}' is not known; known are {names}")
    rubbing = [each.name for each in model.joints if each.friction or each.law.dry]
    rubbing += [each.name for each in model.springs if each.friction]
    first = f"the dry friction of '{next(iter(rubbing), '')}' (which friction=False leaves out)"
    gears = next((each.name for each in model.actuators if each.lossy), "")
    lossy = f"the losses in the gear of '{gears}' (which friction=False leaves out)"
    collide = {
        "a ground": ground is not None,
        "contact": contacts is not None or collisions is not False,
        "a joint stop": bool(acting.stops),
    }
    rub = {first: acting.friction and bool(rubbing), lossy: bool(acting.lossy(model))}
    why = next((what for what, there in collide.items() if there), None)
    if why is not None and wanted not in (None, "time_stepping"):
        raise ValueError(f"{why} needs method='time_stepping', not '{wanted}': it acts by impulses")
    why = why or next((what for what, there in rub.items() if there), None)
    if why is not None and wanted not in (None, "time_stepping", *ADAPTIVE):
        located = " or one that locates events ('dop853', 'radau')" * ("dop853" in methods)
        raise ValueError(f"{why} needs method='time_stepping'{located}, not '{wanted}'")
    return wanted if why is None or wanted is not None else "time_stepping"


# ---- position limits -----------------------------------------------------------------------------

SINGLE_GAP = 1e-4  # gap up to which single precision may leave loops open


@dataclass(frozen=True)
class LimitMargins:
    """Position limits to be watched; a margin is the distance of a joint inside of its limit."""

    model: Model
    joints: tuple[str, ...] = ()
    places: tuple[int, ...] = ()  # in the spanning positions
    bounds: tuple[float, ...] = ()
    signs: tuple[float, ...] = ()

    @staticmethod
    def of(model: Model, wanted: bool | Iterable[str], start: Array) -> LimitMargins:
        """The limits of the wanted joints; raises ValueError for a start beyond one."""
        if wanted is False:
            return LimitMargins(model)
        limits = LimitMargins.all_of(model, named(model, wanted))
        beyond = limits.margins(start) < -WITHIN
        if np.any(beyond):
            n = int(np.argmax(beyond))
            raise ValueError(
                f"joint '{limits.joints[n]}' is beyond its {limits.side(n)} limit "
                f"{limits.bounds[n]:g} at the start"
            )
        return limits

    @staticmethod
    def all_of(model: Model, names: frozenset[str]) -> LimitMargins:
        """The limits of these joints."""
        acting = Acting(stops=names)
        bodies = acting.stopped(model)
        rows = [
            (model.joints[bodies[n]].name, model.nodes[bodies[n]].q, bound, side)
            for n, side, bound in acting.bounds(model)
        ]
        return LimitMargins(model, *(tuple(column) for column in zip(*rows, strict=True)))

    def side(self, n: int) -> str:
        """The side of a limit: "lower" or "upper"."""
        return "lower" if self.signs[n] > 0.0 else "upper"

    def margins(self, x: Array) -> Array:
        """Margins of states (..., nq or more) to each limit."""
        positions = self.model.spanning_positions(unstack(x[..., : self.model.nq]))
        at = stack([positions[i] for i in self.places], x.shape[:-1])
        inside: Array = np.array(self.signs) * (at - np.array(self.bounds))
        return inside

    def first(
        self, t: float, h: float, x: Array, after: Array, at: Callable[[float], Array]
    ) -> tuple[float, Array, Stop] | None:
        """The first limit met between x at t and ``after`` at t + h: share of h, state, stop."""
        if not self.places:
            return None
        before, now = self.margins(x), self.margins(after)
        met: tuple[float, int] | None = None
        for n in np.flatnonzero(now < 0.0).tolist():
            share = 0.0
            if before[n] > 0.0:

                def margin(share: float, n: int = n) -> float:
                    return float(self.margins(at(share))[n])

                share = root(margin, (0.0, 1.0), (float(before[n]), float(now[n])), 1e-14)
            if met is None or share < met[0]:
                met = share, n
        if met is None:
            return None
        share, n = met
        state = x if share == 0.0 else at(share)
        stop = Stop(t + share * h, self.joints[n], self.side(n), self.bounds[n])
        return share, state, stop


def warn_of_starts_beyond(model: Model, stops: frozenset[str], q: Array) -> None:
    """Warn (RuntimeWarning) of a start beyond a stop, to which the first step moves the robot.

    For batches (..., nq) the largest distance beyond each stop is named.
    """
    watched = LimitMargins.all_of(model, stops)
    if not watched.places or not q.size:
        return
    starts = []
    margins = watched.margins(q).reshape(-1, len(watched.places))
    for n, margin in enumerate(np.fmin.reduce(margins)):  # fmin ignores not-a-number
        if margin < -WITHIN:
            limit = f"{watched.side(n)} limit {watched.bounds[n]:g}"
            starts.append(f"'{watched.joints[n]}' by {-margin:.3g} ({limit})")
    if starts:
        warn(
            RuntimeWarning(
                f"'{model.name}' starts beyond stops, to which the first step moves it: "
                + ", ".join(starts)
            )
        )


def in_single_precision(q: ArrayLike) -> bool:
    """True if q is an array of single (or half) precision, whose loops are open by rounding."""
    kind = getattr(q, "dtype", np.dtype(float))
    return bool(np.issubdtype(kind, np.floating) and np.finfo(kind).eps > np.finfo(float).eps)


def closed_start(
    model: Model,
    q: Array,
    single: bool,
    backend: str = "compiled",
    parameters: Mapping[str, Array] = MappingProxyType({}),
) -> Array:
    """q at the start of motions; raises ValueError if loops are open or quaternions not unit.

    Configurations in single precision, as at the end of a rollout in it, are open by rounding: they
    are closed. Configurations that are not finite pass: their rows stay not-a-number.
    ``parameters``: values (...) of those of geometry, for which loops are closed.
    """
    try:
        _check_closed(model, q, CLOSED, backend, parameters)
    except ValueError:
        if not single:
            raise
        _check_closed(model, q, SINGLE_GAP, backend, parameters)
        return model.close(q, parameters=parameters or None)
    return q


def _check_closed(
    model: Model, q: Array, tolerance: float, backend: str, parameters: Mapping[str, Array]
) -> None:
    refuse(model, list(unit_faults(model, q, tolerance)))
    if not any(cluster.implicit for cluster in model.clusters):
        return
    if parameters:
        with np.errstate(all="ignore"):
            square = np.asarray(left_open(parameterized(model, parameters), unstack(q)))
    else:
        square = openness(model, backend)(q)
    gap = math.sqrt(float(np.max(square, where=~np.isnan(square), initial=0.0)))
    if gap > tolerance:
        raise ValueError(
            f"the loops of '{model.name}' are open at q: residual {gap:.3g}; "
            "start from model.close(q) or model.configuration(...)"
        )
