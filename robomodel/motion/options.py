"""Options that all motions share: what acts besides tau, what touches, the method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, TypeAlias, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from robomodel.arrays import Array
from robomodel.errors import as_flag, as_real
from robomodel.kernels.function import as_dtype
from robomodel.kernels.program import Dtype
from robomodel.mechanism.graph import WORLD
from robomodel.messages import unknown_keyword
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
from robomodel.motion.contact_programs import SWEEPS
from robomodel.motion.contact_rows import Setting
from robomodel.motion.ground import (
    Contacts,
    Ground,
    GroundPoint,
    Point,
    as_grounds,
    touching_points,
)
from robomodel.motion.limits import ADAPTIVE, Acting, method_of, named
from robomodel.motion.plant import PLANT_CLOSINGS, Plant
from robomodel.motion.servo import Servo
from robomodel.motion.steps import FixedStep

NONE = np.zeros(0)

Method: TypeAlias = Literal["rk4", "dop853", "radau", "semi_implicit_euler", "time_stepping"]
KERNELS = ("rk4", "semi_implicit_euler", "time_stepping")
"""The methods of fixed steps, which are compiled."""

METHODS = (*ADAPTIVE, *KERNELS)


class MotionOptions(TypedDict, total=False):
    """Options of :func:`robomodel.simulate`, :func:`robomodel.rollout` and robots side by side.

    They mean the same in all three. The methods are

    * "time_stepping": on velocities and impulses (:mod:`robomodel.motion.time_stepping`), so that
      contacts, stops and dry friction stick and slip exactly. Second order between collisions,
      first order in them. Springs act by the trapezoidal rule, which keeps their energy, and
      dampers are implicit, so no stiffness is too large for the step. The default with dry
      friction and losses in gears, contact or stops; the latter two need it;
    * "rk4": fourth order. The default of rollouts and simulations of many robots, unless springs or
      dampers at the start are too stiff for it with their step: then "semi_implicit_euler" is;
    * "semi_implicit_euler": first order; v, then q with the new v, implicit in the file's springs
      and dampers, however stiff;
    * "dop853", in :func:`robomodel.simulate` only, its default: Dormand and Prince's method of
      eighth order, with steps adapted to ``rtol`` and ``atol``. Where dry friction or losses
      change their way it locates the event;
    * "radau", in :func:`robomodel.simulate` only: fifth order, implicit, with steps adapted in the
      same way: they are as long as the motion is smooth, however stiff dampers are. Its default if
      dampers of the file would make "dop853" take more than some ten thousand steps.

    Attributes:
        method: One of those above; None: the default said there.
        passive: The file's springs and damping act (default True).
        friction: The dry friction of the file's joints acts (default True).
        ground: The ground that ``contacts`` stand on and push against; several as a list. Unless it
            is one horizontal plane, the loop over time of many motions is in Python, each step of
            all of them in the program.
        contacts: Points of the robot: links, (link, offset), or (link, offset, radius) for spheres;
            default :func:`robomodel.contact_points`. In :func:`robomodel.simulate` also a function
            of q and v that returns a list of :class:`robomodel.motion.Contact`.
        collisions: Links whose convex collision shapes touch each other: True, or pairs of links.
            Links that a joint connects do not collide unless they are named. Shapes other than
            spheres and capsules need the extra ``collision``, and :func:`robomodel.simulate`.
            Friction and restitution are the ground's, 0.8 and 0 without one.
        stops: Joints (True: all) that do not leave their position limits, dependent ones too.
        stop_restitution: Coefficient of restitution at stops, from 0 to 1 (default 0).
        saturate: Motors give all forces within their effort limits, torque-speed curves and
            velocity limits at each instant, through gears and linkages
            (:func:`robomodel.dynamics.saturate`). Without it forces are not limited.
        parameters: Other values of some of the robot's parameters, by the names of
            :func:`robomodel.parameters`: a number, or in motions of many robots an array that
            broadcasts with them, so that each has its own robot. With a parameter of friction, dry
            friction takes part. For parameters of geometry q must be closed
            (:meth:`robomodel.Model.close`).
        closing: Newton steps that close the loops after each fixed step (default 2).
        sweeps: Sweeps over the contact equations with which each step of "time_stepping" begins,
            from the impulses of the last step (default 4); with few contacts two steps of Newton's
            method follow.
    """

    method: Method | None
    passive: bool
    friction: bool
    ground: Ground | Sequence[Ground] | None
    contacts: Sequence[Point] | Contacts | None
    collisions: Collisions
    stops: bool | Iterable[str]
    stop_restitution: float
    saturate: bool
    parameters: ParametersLike
    closing: int
    sweeps: int


class BatchOptions(MotionOptions, total=False):
    """Options of many motions at once: those of :class:`MotionOptions`, and these.

    Attributes:
        threads: Number of threads that share the motions (0: one for each processor); results do
            not depend on it (default 1).
        backend: "compiled", a kernel made at the first call, or "numpy".
        dtype: Precision of results and of all arithmetic, "float64" or "float32"; in "float32"
            vectors hold twice as many motions, and loops close to 1e-6 or so.
    """

    threads: int
    backend: Literal["numpy", "compiled"]
    dtype: DTypeLike


DEFAULTS: Mapping[str, Any] = {
    "method": None, "passive": True, "friction": True, "ground": None, "contacts": None,
    "collisions": False, "stops": False, "stop_restitution": 0.0, "saturate": False,
    "parameters": None, "closing": PLANT_CLOSINGS, "sweeps": SWEEPS,
}  # fmt: skip
BATCH_DEFAULTS: Mapping[str, Any] = {"threads": 1, "backend": "compiled", "dtype": "float64"}


def completed(
    name: str, options: Mapping[str, Any], defaults: Mapping[str, Any], own: Iterable[str]
) -> dict[str, Any]:
    """Options with defaults for those not given; a TypeError for one that ``name`` does not have.

    ``own``: further keywords of the function, for the hint.
    """
    for option in options:
        if option not in defaults:
            raise unknown_keyword(name, option, [*own, *defaults])
    return {**defaults, **options}


@dataclass(frozen=True)
class MotionSetup:
    """The :class:`MotionOptions` for one robot.

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
    saturate: bool = False
    closing: int = PLANT_CLOSINGS
    sweeps: int = SWEEPS

    @staticmethod
    def of(
        model: Model,
        methods: Sequence[str],
        options: Mapping[str, Any],
        *,
        compiled: bool = True,
        parameters: tuple[str, ...] = (),
    ) -> MotionSetup:
        """From all options; raises ValueError, TypeError or UnknownNameError if they do not fit.

        ``compiled``: contacts are points, spheres and capsules only.
        """
        passive, friction = (as_flag(options[name], name) for name in ("passive", "friction"))
        ground, contacts, collisions = (
            options[name] for name in ("ground", "contacts", "collisions")
        )
        acting = Acting(passive, friction, named(model, options["stops"]))
        chosen = method_of(
            counted(model, parameters), acting, ground, contacts, collisions, options["method"],
            methods,
        )  # fmt: skip
        grounds = as_grounds(ground)
        rebound = as_real(options["stop_restitution"], "stop_restitution")
        if not 0.0 <= rebound <= 1.0:
            raise ValueError(
                f"stop_restitution is from 0 to 1, got {options['stop_restitution']!r}"
            )
        if compiled and callable(contacts):
            raise ValueError("rollouts take points as contacts; simulate takes a function, too")
        closing, sweeps = options["closing"], options["sweeps"]
        if not isinstance(sweeps, int | np.integer) or sweeps < 1:
            raise ValueError(f"sweeps must be one or more, a whole number, got {sweeps!r}")
        if not isinstance(closing, int | np.integer) or closing < 1:
            raise ValueError(f"closing must be at least one step of Newton's, got {closing!r}")
        saturate = as_flag(options["saturate"], "saturate")
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
        return MotionSetup(
            model, chosen, acting, grounds, tuple(points), rounds, touching, bodies, rebound,
            parameters, saturate, int(closing), int(sweeps),
        )  # fmt: skip

    @property
    def impulses(self) -> bool:
        """True if the method is time stepping."""
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

    def fixed_step(
        self, method: str, *, saturate: bool = False, servo: Servo | None = None,
        dtype: Dtype = "float64", backend: str = "compiled",
    ) -> FixedStep:  # fmt: skip
        """A step of a method of :data:`KERNELS`."""
        setting, passive = None, self.acting.passive
        if method == "time_stepping":
            setting = Setting.on(
                self.acting, self.grounds, self.points, self.rounds, self.bodies,
                self.stop_restitution,
            )  # fmt: skip
        plant = Plant(
            self.model, passive=passive, saturate=saturate, servo=servo, closing=self.closing
        )
        return FixedStep(
            plant, method, setting, self.grounds if setting else (), self.sweeps, self.parameters,
            dtype, backend,
        )  # fmt: skip


@dataclass(frozen=True)
class BatchSetup:
    """The :class:`BatchOptions` beside :class:`MotionOptions`, for one robot."""

    threads: int
    backend: str
    dtype: Dtype

    @staticmethod
    def of(options: Mapping[str, Any]) -> BatchSetup:
        """From all options; raises ValueError if they do not fit."""
        threads, backend = options["threads"], options["backend"]
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 0:
            raise ValueError(f"threads must be a whole number from 0 on, got {threads!r}")
        if backend not in ("numpy", "compiled"):
            raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
        return BatchSetup(int(threads), backend, as_dtype(options["dtype"]))


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
    return as_values(model, by_name(parameters, "parameters"))


def check_step(step: SupportsFloat, method: str | None = None) -> float:
    """A length of steps [s] as a number; ValueError where a method cannot take it."""
    length = as_real(step, "step")
    if not np.isfinite(length):
        raise ValueError(f"step must be a number of seconds, got {length!r}")
    if method == "time_stepping" and length <= 0.0:
        raise ValueError(f"time stepping goes forward: step must be positive, got {length!r}")
    return length
