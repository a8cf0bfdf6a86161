"""Options that all motions share: what acts besides tau, and the method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import as_flag, as_real
from robomodel.mechanism.graph import WORLD
from robomodel.model.arguments import by_name
from robomodel.model.model import Model
from robomodel.model.parameters import ParametersLike, as_values, counted
from robomodel.motion import implicit
from robomodel.motion.collision import (
    Collider,
    Collisions,
    RoundPair,
    between_links,
    round_pairs,
)
from robomodel.motion.ground import (
    Contacts,
    Ground,
    GroundPoint,
    Point,
    as_grounds,
    touching_points,
)
from robomodel.motion.limits import Acting, method_of, named
from robomodel.motion.steps import FixedStep, on_ground

NONE = np.zeros(0)

KERNELS = ("rk4", "semi_implicit_euler", "time_stepping")
"""The methods of fixed steps, which are compiled."""


@dataclass(frozen=True)
class MotionOptions:
    """The options of :func:`robomodel.simulate`, :func:`robomodel.rollout` and simulations.

    ``method``: the wanted one, or the one that contacts, stops or dry friction need; None: any.
    ``touching``: contacts from a function, and those of shapes that programs cannot hold, on at
    least the ``bodies``. ``parameters``: names of those that each motion has its own values of.
    """

    model: Model
    method: str | None
    acting: Acting
    grounds: tuple[Ground, ...]
    points: tuple[GroundPoint, ...]
    rounds: tuple[RoundPair, ...]
    touching: Contacts | None = None
    bodies: tuple[int, ...] | None = None
    stop_restitution: float = 0.0
    parameters: tuple[str, ...] = ()

    @staticmethod
    def of(
        model: Model,
        methods: Sequence[str],
        *,
        method: str | None,
        passive: bool,
        friction: bool,
        ground: Ground | Sequence[Ground] | None,
        contacts: Sequence[Point] | Contacts | None,
        collisions: Collisions,
        stops: bool | Iterable[str],
        stop_restitution: float = 0.0,
        compiled: bool = True,
        parameters: tuple[str, ...] = (),
    ) -> MotionOptions:
        """From users' options; raises ValueError, TypeError or UnknownNameError if they do not fit.

        ``compiled``: contacts are points, spheres and capsules only.
        """
        passive, friction = as_flag(passive, "passive"), as_flag(friction, "friction")
        acting = Acting(passive, friction, named(model, stops))
        chosen = method_of(
            counted(model, parameters), acting, ground, contacts, collisions, method, methods
        )
        grounds = as_grounds(ground)
        if not 0.0 <= as_real(stop_restitution, "stop_restitution") <= 1.0:
            raise ValueError(f"stop_restitution is from 0 to 1, got {stop_restitution!r}")
        if compiled and callable(contacts):
            raise ValueError("rollouts take points as contacts; simulate takes a function, too")
        plane = grounds[0] if grounds else Ground()
        touching = contacts if callable(contacts) else None
        collider: Collider | None = None
        if compiled:
            rounds = round_pairs(
                model, collisions, friction=plane.friction, restitution=plane.restitution
            )
        else:
            rounds, collider = between_links(
                model, collisions, plane.friction, plane.restitution, data=callable(contacts)
            )
            touching = _both(collider, touching) if collider and touching else collider or touching
        points: Sequence[GroundPoint] = ()
        if not callable(contacts) and (grounds or contacts is not None):
            points = touching_points(model, grounds, contacts)
        bodies = _bodies(model, points, (collider, contacts)) if touching else None
        return MotionOptions(
            model, chosen, acting, grounds, tuple(points), rounds, touching, bodies,
            float(stop_restitution), parameters,
        )  # fmt: skip

    @property
    def impulses(self) -> bool:
        """Whether the method is time stepping."""
        return self.method == "time_stepping"

    def compiled_method(self, q: Array, step: float, p: Array = NONE) -> str:
        """The method of fixed steps from q (..., nq) on, by parameters p (..., their number).

        Warns where springs or dampers are too stiff for what is wanted.
        """
        method = self.method
        if method == "time_stepping" or not self.acting.passive:
            return method or "rk4"
        rates = implicit.some_rates(self.model, q, self.parameters, p)
        if method is None:
            method = "semi_implicit_euler" if implicit.too_stiff(rates, step) else "rk4"
        if method == "rk4":
            implicit.warn_of_instability(self.model, rates, step)
        return method

    def fixed_step(self, method: str, **options: Any) -> FixedStep:
        """A step of a method of :data:`KERNELS`."""
        setting = None
        if method == "time_stepping":
            setting = on_ground(
                self.acting, self.grounds, self.points, rounds=self.rounds,
                bodies=self.bodies, stop_restitution=self.stop_restitution,
            )  # fmt: skip
        return FixedStep(
            self.model, method, setting=setting, grounds=self.grounds if setting else (),
            passive=self.acting.passive, parameters=self.parameters, **options,
        )  # fmt: skip


def _bodies(
    model: Model, points: Sequence[GroundPoint], touching: Sequence[object]
) -> tuple[int, ...]:
    """The bodies that contacts are known to be on, beside those that a function names later."""
    links = {point.link for point in points}
    for each in touching:
        if isinstance(each, Collider):
            links |= {link for pair in each.pairs for link in pair}
    return tuple(sorted({model.frame(link).body for link in links} - {WORLD}))


def _both(first: Contacts, second: Contacts) -> Contacts:
    return lambda q, v: [*first(q, v), *second(q, v)]


def as_dynamics(model: Model, parameters: ParametersLike) -> tuple[tuple[str, ...], Array]:
    """Names and finite values (..., p) of parameters that each motion may have of its own."""
    names, p = as_values(model, by_name(parameters, "parameters"))
    if not np.all(np.isfinite(p)):
        raise ValueError(f"parameters must be finite: {', '.join(names)}")
    return names, p


def check_step(step: SupportsFloat, method: str | None = None) -> float:
    """A length of steps [s] as a number; ValueError where a method cannot take it."""
    length = as_real(step, "step")
    if not np.isfinite(length):
        raise ValueError(f"step must be a number of seconds, got {length!r}")
    if method == "time_stepping" and length <= 0.0:
        raise ValueError(f"time stepping goes forward: step must be positive, got {length!r}")
    return length
