"""Time stepping: velocities and impulses, with contact, joint stops and dry friction.

A step of length h from (q, v), with R the rows of contacts, stops and dry friction, x their
impulses (Acary and Brogliato; Moreau):

    M̂ v_f = M v + h (tau - bias - Σ Jᵀ k (x - x₀)),  M̂ = M + Σ Jᵀ (h d + h² k) J,
    v⁺ = v_f + M̂⁻¹ Rᵀ x,   q⁺ = integrate(q, h v⁺), loops closed.

Springs and dampers (J their rows) are implicit in v⁺, so that no stiffness needs a shorter step: it
is one step of Newton's on the implicit Euler method, ∂J/∂q left out. bias is taken at (v + v⁺)/2,
as the change of the last step tells it or else by another pass, so that a body that spins freely
keeps its energy to O(h³) and a robot at rest weighs what it weighs, and the velocities of free and
planar joints stand in axes that do not turn within the step, so that momentum is kept. A contact
counts where its gap would close within the step, and may close within it but no further; faster
ones rebound. What penetration is left is taken out of q by a correction that does not touch v, so
that it adds no momentum. What kinetic energy linkages win or lose as their G turns within the step
is given back (:mod:`robomodel.trajectory.simulation.linkage_energy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from robomodel.dynamics import frame_pose, jacobian
from robomodel.dynamics.contact.complementarity import Problem, solve
from robomodel.dynamics.contact.gauss_seidel import Rows
from robomodel.dynamics.contact.points import UNSOLVED, basis, without_gain
from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array, Floating, JointModel, Planar
from robomodel.model.model import Model
from robomodel.motion.ground import Contact, Contacts, Ground, Pair, Placed
from robomodel.motion.integrator_functions import position_rates
from robomodel.trajectory.simulation.charts import View
from robomodel.trajectory.simulation.integrators import Motion
from robomodel.trajectory.simulation.linkage_energy import keeping, linkage_columns
from robomodel.trajectory.simulation.passing import StepError, settle
from robomodel.trajectory.simulation.step_terms import Forces, State, groups, terms

NEAR = 0.01  # m (rad at joints): what else happens in a step may bring so near
SLOP = 1e-4  # m: positions are corrected from here on
TOUCHING = 1e-12  # m/s (rad/s): gaps it closes in a step are rounding, and count as closed
TOLERANCE = 1e-10
PASSES = 3  # for the velocity that the bias is taken at
NEGLIGIBLE = 1e-24  # J


@dataclass
class TimeStepping:
    """The method: a step of :data:`.simulation.integrators.Step`'s form, with a memory.

    ``restitution``: of joint stops. Impulses of the last step start the next one's solver.
    """

    view: View
    ground: Ground | None
    points: Sequence[Placed]
    contacts: Contacts | None
    acting: Forces
    restitution: float = 0.0
    _kept: list[Kept] = field(default_factory=list)
    _last: Kept | None = None
    _warm: dict[Any, Array] = field(default_factory=dict)
    _change: Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.model = self.view.model
        self.terms = terms(self.model, self.points, self.acting)
        self._stops = self.acting.bounds(self.model)
        self._linked = bool(linkage_columns(self.model))
        down = np.linalg.norm(self.model.gravity)
        self._change = np.zeros(self.model.nv)
        self.weight = float(down) if down > 0.0 else 9.81

    def __call__(self, motion: Motion, t: float, h: float, x: Array) -> Array:
        """The state at t + h from x at t."""
        nq = self.model.nq
        q, v = x[:nq], x[nq:]
        tau = motion.forces(t, q, v)
        middle = v + 0.5 * self._change
        for _ in range(PASSES):
            now = self.terms(q, v, middle, tau, h)
            if not (np.all(np.isfinite(now.matrix)) and np.all(np.isfinite(now.right))):
                raise StepError("the mass matrix or the forces are not finite")
            try:
                free: Array = np.asarray(np.linalg.solve(now.matrix, now.right))
            except np.linalg.LinAlgError:
                raise StepError("the mass matrix is singular: something moves no mass") from None
            made = self._rows(now, q, v, free, h)
            after, impulse, residual = made.solve(now.matrix, v, free, self._warm)
            struck = _larger(now.matrix, after - free, 2.0 * (free - v))
            # an impact comes first in its step, and the motion goes on with the velocity after it
            aim = after + 0.5 * (v - free) if struck else 0.5 * (v + after)
            if not _larger(now.matrix, aim - middle, 0.1 * (aim - v)):
                break
            middle = aim
        self._change = np.zeros_like(v) if struck else after - v
        self._warm = made.known(impulse)
        self._last = made.kept(impulse / h, now.places, residual)
        ahead = self._moved(q, h * after)
        after = self._in_turned_axes(after, h)
        if self._linked:
            mean = self._in_turned_axes(aim, h)
            after = keeping(self.model)(q, middle, ahead, after, mean, np.array([h]))
        return np.concatenate([self._corrected(ahead), after])

    def seen_from(self, view: View) -> TimeStepping:
        """The same in another chart."""
        return replace(self, view=view)

    def record(self) -> None:
        """Keep the forces of the last step."""
        assert self._last is not None
        self._kept.append(self._last)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of links that a callable has given, in the order in which they came."""
        return tuple(dict.fromkeys(pair for kept in self._kept for pair in kept.given))

    @property
    def touched(self) -> tuple[Array, Array]:
        """Mean contact forces (T, k, 3) [N] of the steps kept, and where, in world axes.

        On the points, then on the pairs' links; where there was no contact the place is nan.
        """
        pairs = self.pairs
        number = {pair: len(self.points) + n for n, pair in enumerate(pairs)}
        shape = len(self._kept), len(self.points) + len(pairs), 3
        forces, places = np.zeros(shape), np.full(shape, np.nan)
        for t, kept in enumerate(self._kept):
            forces[t, : len(self.points)] = kept.forces
            places[t, : len(self.points)] = kept.places
            for pair, (force, place) in kept.given.items():
                forces[t, number[pair]], places[t, number[pair]] = force, place
        return forces, places

    @property
    def residual(self) -> Array:
        """What the steps' equations fail by (T,), as a share of the velocities in them."""
        return np.array([kept.residual for kept in self._kept], dtype=float)

    def _moved(self, q: Array, motion: Array) -> Array:
        """q after a constant velocity for unit time, in axes that do not turn; loops closed."""
        moved = q + position_rates(self.model)(q, motion)
        for joint, part, own in groups(self.model):
            turned = joint.integrate(q[part], _spin(joint, motion[own]))
            places = joint.nq - 4 if joint.nq > joint.nv else joint.nq - 1
            moved[part][places:] = turned[places:]
        return settle(self.model, moved)[0]

    def _in_turned_axes(self, v: Array, h: float) -> Array:
        """Velocities in the axes of free and planar joints as they stand after the step."""
        result = v.copy()
        for joint, _, own in groups(self.model):
            if isinstance(joint, Floating):
                turn, speed = v[own][:3], v[own][3:]
                result[own][3:] = Rotation.from_rotvec(-h * turn).apply(speed)
            elif isinstance(joint, Planar):
                x, y, turn = v[own]
                c, s = np.cos(h * turn), np.sin(h * turn)
                result[own] = c * x + s * y, c * y - s * x, turn
        return result

    # ---- the rows of a step

    def _rows(self, now: State, q: Array, v: Array, free: Array, h: float) -> _Active:
        made = _Active(self.model.nv)
        for contact in self._touching(now, q, v):
            jacobian_ = contact.rows
            before, ahead = float(jacobian_[2] @ v), float(jacobian_[2] @ free)
            if contact.gap + h * ahead >= NEAR:
                continue
            bounce = contact.gap + h * ahead < 0.0 and (
                contact.restitution * -before > 2.0 * h * self.weight
            )
            shift = contact.gap / h if contact.gap > TOUCHING * h else 0.0
            if bounce:
                shift = _rebound(contact.restitution, before, ahead)
            made.contact(contact, shift)
        for n, side, bound in self._stops:
            row, gap = side * now.rows[n], side * (now.stops[n] - bound)
            before, ahead = float(row @ v), float(row @ free)
            if gap + h * ahead >= NEAR + h * abs(ahead):
                continue
            bounce = gap + h * ahead < 0.0 and self.restitution * -before > h * abs(ahead - before)
            shift = gap / h if gap > TOUCHING * h else 0.0
            if bounce:
                shift = _rebound(self.restitution, before, ahead)
            made.stop((self.model.joints[self.terms.stops[n]].name, side), row, shift)
        for n, bound in enumerate(self.terms.rubbing):
            made.box(n, now.rubbing[n], h * bound)
        return made

    def _touching(self, now: State, q: Array, v: Array) -> list[_Touch]:
        """Every contact that may be one in this step, with its rows (t1, t2, n)."""
        found: list[_Touch] = []
        if self.ground is not None and self.points:
            gaps, normals = self._gaps(now.places)
            for i in range(len(self.points)):
                rows = self._at_surface(now, i, normals[i])
                axes = basis(normals[i])
                rub, bounce = self.ground.against(self.points[i])
                label = f"'{self.points[i].link}' on the ground"
                found.append(_Touch(i, axes @ rows, float(gaps[i]), rub, bounce, axes, label))
        if self.contacts is not None:
            given = self.contacts(q, self.view.velocities(q, v))
            if not isinstance(given, Iterable):
                raise TypeError(f"contacts gives a list of robomodel.Contact, got {given!r}")
            for n, contact in enumerate(given):
                found.append(_given(self.model, q, contact, n))
        return found

    def _gaps(self, places: Array) -> tuple[Array, Array]:
        """Points' (spheres': surfaces') distances above the ground, and its normals."""
        assert self.ground is not None
        radii = [point.radius for point in self.points]
        return self.ground.surfaces(places, radii, reach=NEAR)

    def _at_surface(self, now: State, i: int, normal: Array) -> Array:
        """The Jacobian, in world axes, of a point; of a sphere that of its lowest point."""
        rows: Array = now.linear[i]
        if i in self.terms.spheres:
            arm = -self.points[i].radius * normal
            rows = rows + np.cross(now.turning[self.terms.spheres.index(i)].T, arm).T
        return rows

    def _corrected(self, q: Array) -> Array:
        """q with penetration taken out, by the least motion in M̂'s norm; twice."""
        if not ((self.ground is not None and self.points) or self.terms.stops):
            return q
        zero = np.zeros(self.model.nv)
        for _ in range(2):
            now = self.terms(q, zero, zero, zero, 0.0)
            rows, gaps = [], []
            if self.ground is not None and self.points:
                depths, normals = self._gaps(now.places)
                for i in np.flatnonzero(depths < SLOP).tolist():
                    rows.append(normals[i] @ self._at_surface(now, i, normals[i]))
                    gaps.append(depths[i])
            for n, side, bound in self._stops:
                gap = side * (now.stops[n] - bound)
                if gap < SLOP:
                    rows.append(side * now.rows[n])
                    gaps.append(gap)
            if not gaps or min(gaps) > -1e-12:
                return q
            r, b = np.array(rows), np.array(gaps)
            try:
                spread = np.linalg.solve(now.matrix, r.T)
            except np.linalg.LinAlgError:
                return q
            problem = Problem(r @ spread, b, Rows(0, len(b)), np.empty(0), np.empty(0))
            y, _ = solve(problem, np.zeros(len(b)))
            q = self._moved(q, spread @ y)
        return q


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a step: forces at the points and their places (k, 3), and at given pairs."""

    forces: Array
    places: Array
    given: Mapping[Pair, tuple[Array, Array]]
    residual: float


@dataclass(frozen=True, slots=True)
class _Touch:
    """A contact with its rows (tangents, normal) and their axes in the world.

    ``pair`` and ``place`` of one that a callable gives.
    """

    name: Any
    rows: Array
    gap: float
    friction: float
    restitution: float
    axes: Array
    label: str
    pair: Pair | None = None
    place: Array | None = None


@dataclass
class _Active:
    """The rows that take part in one step."""

    nv: int
    touches: list[_Touch] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    stops: list[tuple[Any, Array, float]] = field(default_factory=list)
    boxes: list[tuple[Any, Array, float]] = field(default_factory=list)

    def contact(self, touch: _Touch, shift: float) -> None:
        self.touches.append(touch)
        self.shifts.append(shift)

    def stop(self, name: Any, row: Array, shift: float) -> None:
        self.stops.append((name, row, shift))

    def box(self, name: Any, row: Array, bound: float) -> None:
        self.boxes.append((name, row, bound))

    @property
    def rows(self) -> Rows:
        return Rows(len(self.touches), len(self.stops), len(self.boxes))

    def solve(
        self, matrix: Array, v: Array, free: Array, warm: Mapping[Any, Array]
    ) -> tuple[Array, Array, float]:
        """(v⁺, impulses, residual)."""
        if not self.rows.size:
            return free, np.empty(0), 0.0
        r = np.concatenate(
            [
                *(touch.rows for touch in self.touches),
                *(row[None] for _, row, _ in self.stops),
                *(row[None] for _, row, _ in self.boxes),
            ]
        )
        spread: Array = np.linalg.solve(matrix, r.T)
        delassus = r @ spread
        plain = r @ free
        shift = np.zeros(len(r))
        k = len(self.touches)
        shift[2 : 3 * k : 3] = self.shifts
        shift[3 * k : 3 * k + len(self.stops)] = [s for _, _, s in self.stops]
        friction = np.array([touch.friction for touch in self.touches])
        bounds = np.array([bound for _, _, bound in self.boxes])
        start = np.concatenate(
            [
                *(warm.get(("contact", touch.name), np.zeros(3)) for touch in self.touches),
                *(warm.get(("stop", name), np.zeros(1)) for name, _, _ in self.stops),
                *(warm.get(("box", name), np.zeros(1)) for name, _, _ in self.boxes),
            ]
        )
        problem = Problem(delassus, plain + shift, self.rows, friction, bounds)
        x, residual = without_gain(problem, plain, start, TOLERANCE, r @ v)
        if residual > UNSOLVED and np.any(start):
            x, residual = without_gain(problem, plain, np.zeros_like(start), TOLERANCE, r @ v)
        if not residual <= UNSOLVED:
            raise StepError(self._story(problem, x, residual))
        return free + spread @ x, x, residual

    def _story(self, problem: Problem, x: Array, residual: float) -> str:
        """What is told of a step whose rows are not solved for."""
        worst = int(np.argmax(problem.residuals(x)))
        k, stops = len(self.touches), len(self.stops)
        if worst < 3 * k:
            touch = self.touches[worst // 3]
            where = f"the contact of {touch.label} (friction {touch.friction:g})"
        elif worst < 3 * k + stops:
            where = f"the stop of '{self.stops[worst - 3 * k][0][0]}'"
        else:
            where = "a dry friction"
        return (
            f"impulses are solved for to {residual:.1g} of the velocities only, of {k} contacts, "
            f"{stops} stops and {len(self.boxes)} dry frictions; {where} is the worst: fewer "
            "points on one body, less friction, a shorter step, or masses less far apart may help"
        )

    def known(self, x: Array) -> dict[Any, Array]:
        """Impulses by what they belong to."""
        known: dict[Any, Array] = {}
        k = len(self.touches)
        for i, touch in enumerate(self.touches):
            known["contact", touch.name] = x[3 * i : 3 * i + 3]
        for n, (name, _, _) in enumerate(self.stops):
            known["stop", name] = x[3 * k + n : 3 * k + n + 1]
        first = 3 * k + len(self.stops)
        for n, (name, _, _) in enumerate(self.boxes):
            known["box", name] = x[first + n : first + n + 1]
        return known

    def kept(self, x: Array, places: Array, residual: float) -> Kept:
        """Forces x at the ground's points, which are at ``places``, and at pairs; world axes."""
        forces = np.zeros_like(places)
        given: dict[Pair, tuple[Array, Array]] = {}
        for i, touch in enumerate(self.touches):
            force = touch.axes.T @ x[3 * i : 3 * i + 3]
            if touch.pair is None:
                forces[touch.name] = force
            else:
                assert touch.place is not None
                before, _ = given.get(touch.pair, (0.0, touch.place))
                given[touch.pair] = before + force, touch.place
        return Kept(forces, places, given, residual)


def _larger(matrix: Array, change: Array, other: Array) -> bool:
    """Whether a change of velocity has more energy than another, beyond rounding."""
    return bool(change @ matrix @ change > other @ matrix @ other + NEGLIGIBLE)


def _rebound(restitution: float, before: float, ahead: float) -> float:
    """β of a rebound at the step's start, after which what slows it acts over the whole step.

    Without the latter a ball would win m g h |c| of energy at each rebound.
    """
    return restitution * before - min(ahead - before, 0.0)


def _given(model: Model, q: Array, contact: Contact, number: int) -> _Touch:
    """A contact that a callable gives."""
    if not isinstance(contact, Contact):
        raise TypeError(f"contacts gives robomodel.Contact pairs, got {contact!r}")
    normal = as_numbers(contact.normal, "normal")
    point = as_numbers(contact.point, "point")
    if normal.shape != (3,) or not abs(np.linalg.norm(normal) - 1.0) <= 1e-6:
        raise ValueError(f"the normal of a contact on '{contact.link}' is no unit vector: {normal}")
    if point.shape != (3,) or not np.all(np.isfinite([*point, contact.gap])):
        raise ValueError(f"the point or the gap of a contact on '{contact.link}' is off: {contact}")
    if not (0.0 <= contact.friction < np.inf and 0.0 <= contact.restitution <= 1.0):
        raise ValueError(
            f"a contact on '{contact.link}' needs a finite friction from 0 on and a restitution "
            f"from 0 to 1, got {contact.friction!r} and {contact.restitution!r}"
        )
    rows = _moving(model, q, contact.link, point)
    if contact.other is not None:
        rows = rows - _moving(model, q, contact.other, point)
    axes = basis(normal)
    pair = Pair(contact.link, contact.other, number if contact.name is None else contact.name)
    other = "the world" if contact.other is None else f"'{contact.other}'"
    return _Touch(
        ("given", pair.name), axes @ rows, float(contact.gap), contact.friction,
        contact.restitution, axes, f"'{contact.link}' on {other}", pair, point,
    )  # fmt: skip


def _moving(model: Model, q: Array, link: str, point: Array) -> Array:
    """The Jacobian, in world axes, of the link's point that is at ``point`` in the world."""
    pose = frame_pose(model, q, link)
    offset = pose[:3, :3].T @ (point - pose[:3, 3])
    own = jacobian(model, q, link)
    result: Array = pose[:3, :3] @ (own[3:] + np.cross(own[:3].T, offset).T)
    return result


def _spin(joint: JointModel, motion: Array) -> Array:
    """The turning part of a joint's motion alone."""
    spin = motion.copy()
    if isinstance(joint, Floating):
        spin[3:] = 0.0
    elif isinstance(joint, Planar):
        spin[:2] = 0.0
    return spin
