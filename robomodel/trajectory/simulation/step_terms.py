"""What a time step needs of a state: M̂, momentum, and the rows of contacts, stops and friction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import elements
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.errors import UnknownNameError, as_names, did_you_mean
from robomodel.kernels.function import split
from robomodel.model.joints import Array, Floating, Planar
from robomodel.model.model import Model
from robomodel.motion.ground import Placed
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Scalar, Vector, add, dot, moved, mul, neg, sub, subtracted
from robomodel.spatial import ZERO, Mat, Vec, Wrench, cross
from robomodel.trajectory.simulation import implicit
from robomodel.trajectory.simulation.integrators import chart_of

Row = list[Scalar]


@dataclass(frozen=True)
class Forces:
    """What acts in a step besides tau: springs and dampers, dry friction, stops of some joints."""

    passive: bool = True
    friction: bool = True
    stops: frozenset[str] = frozenset()

    def rubbing(self, model: Model) -> list[float]:
        """The friction of each coordinate that has some, in the order of the rows."""
        if not self.friction:
            return []
        found = [node.friction for node in model.nodes for _ in node.freedoms if node.friction]
        return found + [spring.friction for spring in model.springs if spring.friction]

    def bounds(self, model: Model) -> list[tuple[int, float, float]]:
        """The limits that stop joints: which of the stopped joints, the side, the bound."""
        return [
            (n, side, bound)
            for n, body in enumerate(self.stopped(model))
            for side, bound in ((1.0, model.joints[body].lower), (-1.0, model.joints[body].upper))
            if math.isfinite(bound)
        ]

    def stopped(self, model: Model) -> list[int]:
        """The bodies whose joints have position limits that stop them."""
        return [
            body
            for body, joint in enumerate(model.joints)
            if joint.name in self.stops
            and joint.nv == 1
            and joint.type != "continuous"
            and (math.isfinite(joint.lower) or math.isfinite(joint.upper))
        ]


def named(model: Model, wanted: bool | Iterable[str]) -> frozenset[str]:
    """Names of joints: all of them, none, or those given; UnknownNameError for unknown ones."""
    known = [joint.name for joint in model.joints]
    if isinstance(wanted, bool):
        return frozenset(known if wanted else ())
    names = set(as_names(wanted, "a joint"))
    for name in sorted(names - set(known)):
        raise UnknownNameError(f"no joint '{name}' in '{model.name}'{did_you_mean(name, known)}")
    return frozenset(names)


def needs_impulses(model: Model, ground: object, contacts: object, forces: Forces) -> str | None:
    """What asks for steps in velocities and impulses; None where nothing does."""
    if ground is not None:
        return "a ground"
    if contacts is not None:
        return "contacts"
    if forces.stops:
        return "joint stops"
    if forces.friction:
        rubbing = [each.name for each in model.joints if each.friction]
        rubbing += [each.name for each in model.springs if each.friction]
        if rubbing:
            return f"the dry friction of '{rubbing[0]}' (which friction=False leaves out)"
    return None


def steps_by_impulses(
    model: Model, ground: object, contacts: object, forces: Forces, method: str | None
) -> bool:
    """Whether a motion is stepped so; ValueError where it must be and another method is wanted."""
    why = needs_impulses(model, ground, contacts, forces)
    if why is not None and method not in (None, "time_stepping"):
        raise ValueError(f"{why} needs method='time_stepping', not '{method}'")
    return why is not None or method == "time_stepping"


@dataclass(frozen=True, slots=True)
class Touching:
    """A contact point at a state: its frame's axes and origin, and its rows in world axes.

    Of spheres also the rows of their turning.
    """

    rotation: Mat
    origin: Vec
    linear: list[Row]
    turning: list[Row]


@dataclass(frozen=True)
class Assembly:
    """The terms of a step of length h, over scalars of any kind.

    ``matrix`` is M̂, ``right`` what M̂ v_f is without impulses; then contact points, the rows of dry
    friction, and positions and rows of the joints that have stops.
    """

    matrix: list[Row]
    right: Row
    touching: list[Touching]
    rubbing: list[Row]
    positions: Row
    stops: list[Row]


def assemble(
    model: Model,
    state: Sequence[Vector],
    h: Scalar,
    points: Sequence[Placed],
    forces: Forces,
) -> Assembly:
    """The terms at ``state`` = (q, v, w, tau): the bias is taken at the velocity w."""
    q, v, w, tau = state
    places = [frames.place(model, (at.link, at.offset)) for at in points]
    at_q = Configuration(model, q, {at.body for at in places})
    mass = crba(model, q)
    matrix = [list(row) for row in mass]
    force = subtracted(tau, bias_force(model, q, w))
    rubbing: list[Row] = []
    for element in elements(at_q):
        row = element.row
        if forces.passive and (element.stiffness or element.damping):
            weight = mul(h, add(element.damping, mul(h, element.stiffness)))
            pull = mul(element.stiffness, sub(element.x, element.reference))
            implicit.press(matrix, force, row, weight, neg(pull))
        if forces.friction and element.friction:
            rubbing.append([row.get(i, 0.0) for i in range(model.nv)])
    start = moved(v, h, turning(model, w))
    right = [add(dot(row, start), mul(h, f)) for row, f in zip(mass, force, strict=True)]
    touching = []
    for at, point in zip(places, points, strict=True):
        rotation, origin = frames.pose(model, q, at)
        linear, turned = (
            [
                frames.joint_forces(model, at_q, at.body, at.pose.to_parent(wrench))
                for wrench in wrenches
            ]
            for wrenches in (  # along and about the world's axes, in the frame's
                [Wrench(ZERO, axis) for axis in rotation],
                [Wrench(axis, ZERO) for axis in rotation if point.radius > 0.0],
            )
        )
        touching.append(Touching(rotation, origin, linear, turned))
    positions, stops = [], []
    for body in forces.stopped(model):
        node = model.nodes[body]
        row = dict(enumerate(at_q.rows[node.v], model.clusters[node.cluster].v.start))
        positions.append(at_q.positions[node.q])
        stops.append([row.get(i, 0.0) for i in range(model.nv)])
    return Assembly(matrix, right, touching, rubbing, positions, stops)


def turning(model: Model, v: Vector) -> list[Scalar]:
    """ω x v of free and planar joints: what their axes' turning adds to their velocities' rates."""
    rates: list[Scalar] = [0.0] * model.nv
    for joint, _, own in groups(model):
        part = v[own]
        if isinstance(joint, Floating):
            turn, speed = (part[0], part[1], part[2]), (part[3], part[4], part[5])
            rates[own.start + 3 : own.stop] = cross(turn, speed)
        elif isinstance(joint, Planar):
            rates[own.start : own.stop] = neg(mul(part[2], part[1])), mul(part[2], part[0]), 0.0
    return rates


def groups(model: Model) -> Sequence[Any]:
    """Joints whose positions are no vectors, where all their velocities are independent."""
    try:
        return chart_of(model).groups
    except ValueError:
        return ()


# ---- compiled, for one state ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """M̂, the free momentum, points with their Jacobians in world axes, friction's rows, stops'."""

    matrix: Array
    right: Array
    places: Array
    linear: Array
    turning: Array
    rubbing: Array
    stops: Array
    rows: Array


@dataclass(frozen=True)
class Terms:
    """What a step needs of a state, in one compiled function of (q, v, w, tau, h).

    ``w`` is the velocity at which the bias is taken.
    """

    function: Function
    nv: int
    points: int
    spheres: tuple[int, ...]
    rubbing: tuple[float, ...]  # friction of each element that has some
    stops: tuple[int, ...]  # bodies whose joints have limits

    def __call__(self, q: Array, v: Array, w: Array, tau: Array, h: float) -> State:
        """Split into parts."""
        k, nv, spheres, stops = self.points, self.nv, len(self.spheres), len(self.stops)
        shapes = [(nv, nv), (nv,), (k, 3), (k, 3, nv), (spheres, 3, nv)]
        shapes += [(len(self.rubbing), nv), (stops,), (stops, nv)]
        return State(*split(self.function(q, v, w, tau, np.array([h])), shapes))


def terms(model: Model, points: Sequence[Placed], forces: Forces) -> Terms:
    """The terms of a model with these points; made once for each set of them."""
    spheres = tuple(i for i, point in enumerate(points) if point.radius > 0.0)
    rubbing, limited = tuple(forces.rubbing(model)), tuple(forces.stopped(model))
    nv = model.nv

    def build(q: Vector, v: Vector, w: Vector, tau: Vector, step: Vector) -> list[Scalar]:
        found = assemble(model, (q, v, w, tau), step[0], points, forces)
        rows = [
            *found.matrix,
            found.right,
            *(at.origin for at in found.touching),
            *(row for at in found.touching for row in at.linear),
            *(row for at in found.touching for row in at.turning),
            *found.rubbing,
            found.positions,
            *found.stops,
        ]
        return [x for row in rows for x in row]

    size = nv * nv + nv + len(points) * (3 + 3 * nv) + len(spheres) * 3 * nv
    size += len(rubbing) * nv + len(limited) * (1 + nv)
    said = [(at.link, at.offset, at.radius > 0.0) for at in points]
    name = f"stepping {said!r} {forces.passive} {forces.friction} {limited!r}"
    made = function(model, name, (model.nq, nv, nv, nv, 1, size), build)
    return Terms(made, nv, len(points), spheres, rubbing, limited)
