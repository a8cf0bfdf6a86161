"""Inverse dynamics with tasks: accelerations, motor forces and contact forces (whole-body control).

The unknowns x of the quadratic programme are the forces u of the actuators and the contact forces,
divided by the actuators' limits, the larger of both ways, and by the robot's weight. Accelerations
follow from them, a = M⁻¹ (B u + Σ Jᵀ f - h), so the equations of motion hold by construction and
are no rows. One traced function computes the whole programme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Indices, Mask
from robomodel.control import quadratic
from robomodel.control.controller import MISFIT, UNDETERMINED_GROWTH, Controller
from robomodel.control.limits import ControlLimits, LimitLike, Quantity, as_limits, limits_of
from robomodel.control.quadratic import (
    UNBOUNDED,
    IncompatibleBoundsError,
    InfeasibleError,
    QuadraticProgram,
)
from robomodel.control.tasks import Instant, Task, TaskPiece, product, unfit
from robomodel.dynamics.actuators import efforts, maps
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.state import Matrix
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.errors import as_flag, warn
from robomodel.kernels.function import TracedFunction, split
from robomodel.model.arguments import as_array, as_numbers, common_batch
from robomodel.model.derived import traced
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.motion.ground import Ground, Point, as_points, touching_points
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    dot,
    gram,
    minimum,
    select,
    sqrt,
    subtracted,
    transposed,
)
from robomodel.spatial import Vec, cross

KINDS = ("actuator", "position", "velocity")
RATE = 20.0  # ω of the barriers [1/s]
MOST_FRICTION = 1e6  # replaces larger coefficients of friction
Result: TypeAlias = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True)
class DynamicLayout:
    """The parts of a programme; ``tangents``: see :class:`~.programme.ProgrammeLayout`.

    ``points`` (link, offset, radius) may touch; ``scales`` are those of the unknowns: the
    actuators' forces, and last the contact forces [N].
    """

    pieces: tuple[TaskPiece, ...]
    limits: ControlLimits
    points: tuple[tuple[str, tuple[float, float, float], float], ...]
    scales: tuple[float, ...]
    bounded: bool
    passive: bool
    tangents: bool = False

    @property
    def equalities(self) -> int:
        """Rows of standing points and of hard tasks."""
        hard = sum(len(piece.kept) for piece in self.pieces if piece.task.hard)
        return 3 * len(self.points) + hard

    @property
    def unknowns(self) -> int:
        """Number of forces of actuators and of contacts."""
        return len(self.scales) - 1 + 3 * len(self.points)

    def pooled(self, model: Model) -> tuple[efforts.Pooled, ...]:
        """Limits of what actuators give together."""
        return efforts.pooled(model) if self.bounded else ()

    def sizes(self, model: Model) -> dict[str, int]:
        """Lengths of the arguments of its traced function."""
        numbers = max((p.weights + 2 + len(p.kept) for p in self.pieces), default=0)
        targets = max((p.first + p.size for p in self.pieces), default=0)
        sizes = {"q": model.nq, "v": model.nv, "targets": targets, "weights": numbers}
        sizes |= {"damping": 1, "friction": len(self.points), "normals": 3 * len(self.points)}
        sizes = {name: size for name, size in sizes.items() if size}
        if self.tangents:
            sizes["bases"] = tangent.numbers(model)
        return sizes

    def results(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Shapes of the results of its traced function."""
        n, k = self.unknowns, len(self.points)
        m = len(self.limits.slots) + len(self.pooled(model)) + 4 * k + self.equalities
        shapes: dict[str, tuple[int, ...]] = {
            "H": (n, n), "c": (n,), "A": (m, n), "lower": (n + m,), "upper": (n + m,),
            "ends": (2 * len(self.limits.quantities),), "a0": (model.nv,), "P": (model.nv, n),
            "axes": (k, 3, 3), "checks": (2,),
        }  # fmt: skip
        return shapes


@traced
def id_program(model: Model, layout: DynamicLayout) -> TracedFunction:
    """(q, v, targets, …) → the quadratic programme of scaled forces x, and a = a0 + P x.

    Rows are those of limits, friction, standing points and hard tasks. ``axes``: of each contact's
    unknowns, the normal last. ``checks``: Σ G² of linkages, and the squared error of poses.
    """
    sizes = layout.sizes(model)

    def build(*arguments: Vector) -> list[Scalar]:
        x: dict[str, Vector] = dict(zip(sizes, arguments, strict=True))
        here = tangent.in_tangents(model, x["bases"]) if layout.tangents else model
        return _Programme(here, layout, x).numbers()

    return TracedFunction("id", sizes, layout.results(model), build)


class _Programme:
    """The terms of a programme, over scalars of any kind."""

    def __init__(self, model: Model, layout: DynamicLayout, x: Mapping[str, Vector]) -> None:
        self.layout, self.x = layout, x
        self.at = Instant(model, x["q"], x["v"])
        self.axes = [
            contact_axes(x["normals"][3 * i : 3 * i + 3]) for i in range(len(layout.points))
        ]
        self._respond()

    def _respond(self) -> None:
        """Compute a = a0 + P x, and the rows and accelerations J̇ v of points in their axes."""
        at, layout = self.at, self.layout
        model, q, v = at.model, at.q, at.v
        mass = crba(model if layout.tangents else reduced(model, "crba"), q)
        bias = bias_force(model if layout.tangents else reduced(model, "bias_force"), q, v)
        if layout.passive:
            bias = subtracted(bias, passive_force(model, q, v))
        factors = Factorization(mass)
        self.map = maps.actuator_map(model, q)
        columns = [
            [scale * entry for entry in column]
            for scale, column in zip(layout.scales, transposed(self.map), strict=False)
        ]
        self.point_rows: Matrix = []
        self.point_bias: list[Scalar] = []
        for point, axes in zip(layout.points, self.axes, strict=True):
            rows, drift = _point(at, point, axes[2])
            self.point_rows += product(axes, rows)
            self.point_bias += [dot(axis, drift) for axis in axes]
        columns += [[layout.scales[-1] * entry for entry in row] for row in self.point_rows]
        self.a0 = factors.solve([-h for h in bias])
        self.columns = [factors.solve(column) for column in columns]

    def over_forces(self, row: Vector) -> list[Scalar]:
        """A row over x, from one over accelerations."""
        return [dot(row, column) for column in self.columns]

    def numbers(self) -> list[Scalar]:
        """All results, one after the other."""
        layout, at, x = self.layout, self.at, self.x
        n = layout.unknowns
        rows: Matrix = []
        pulls: list[Scalar] = []
        equal = [self.over_forces(row) for row in self.point_rows]
        right = [
            -(dot(row, self.a0) + bias)
            for row, bias in zip(self.point_rows, self.point_bias, strict=True)
        ]
        damping: Scalar = x["damping"][0]
        for piece in layout.pieces:
            of = piece.rows(at, x["targets"])
            gain, lm_damping, costs = piece.numbers(x["weights"])
            rate = 2.0 * sqrt(gain)
            wanted = [
                gain * e - rate * dot(row, at.v) - bias - dot(row, self.a0)
                for e, row, bias in zip(of.error, of.jacobian, of.bias, strict=True)
            ]
            over = [self.over_forces(row) for row in of.jacobian]
            if piece.task.hard:
                equal, right = equal + over, right + wanted
                continue
            error = [w * gain * e for w, e in zip(costs, of.error, strict=True)]
            damping = damping + lm_damping * dot(error, error)
            rows += [[w * entry for entry in row] for w, row in zip(costs, over, strict=True)]
            pulls += [w * a for w, a in zip(costs, wanted, strict=True)]
        columns = transposed(rows) if rows else [[] for _ in range(n)]
        hessian = gram(columns, columns)
        for i in range(n):
            hessian[i][i] = hessian[i][i] + damping
        gradient = [-dot(column, pulls) for column in columns]
        between = [*self._actuators(), *self._forces()]
        matrix, more, ends = self._limits()
        together, sums = self._shared()
        cones, fans = self._cones()
        lower, upper = (
            [*part, *right] for part in transposed([*between, *more, *sums, *fans]) or ([], [])
        )
        a0, p = self._independent()
        return [
            *(e for row in hessian for e in row), *gradient,
            *(e for row in (*matrix, *together, *cones, *equal) for e in row),
            *lower, *upper, *ends,
            *a0, *(e for row in p for e in row),
            *(e for axes in self.axes for axis in axes for e in axis), at.growth,
            unfit(layout.pieces, x.get("targets", ())),
        ]  # fmt: skip

    def _actuators(self) -> list[tuple[Scalar, Scalar]]:
        """Bounds of the actuators' scaled forces at their rates."""
        at, layout = self.at, self.layout
        actuators = at.model.actuators
        if not layout.bounded:
            return [(-UNBOUNDED, UNBOUNDED)] * len(actuators)
        rates = maps.velocities(at.model, at.q, at.v)
        result = []
        for actuator, rate, scale in zip(actuators, rates, layout.scales, strict=False):
            ends = [efforts.driving(actuator.backwards, -rate), efforts.driving(actuator, rate)]
            low, high = (
                UNBOUNDED if efforts.unlimited(x) else minimum(1.0 / scale * x, UNBOUNDED)
                for x in ends
            )
            result.append((-low, high))
        return result

    def _forces(self) -> list[tuple[Scalar, Scalar]]:
        free = -UNBOUNDED, UNBOUNDED
        return [free, free, (0.0, UNBOUNDED)] * len(self.layout.points)

    def _limits(self) -> tuple[Matrix, list[tuple[Scalar, Scalar]], list[Scalar]]:
        """Barriers: rows over x, their bounds, and the bounds of each quantity alone."""
        at, limits = self.at, self.layout.limits
        rows = {slot: limits.row(at, slot) for slot in limits.slots}

        def interval(quantity: Quantity) -> tuple[Scalar, Scalar]:
            rate = quantity.factor * dot(rows[quantity.slot][0], at.v)
            if quantity.kind == "acceleration":
                return quantity.lower, quantity.upper
            if quantity.kind == "velocity":
                return RATE * (quantity.lower - rate), RATE * (quantity.upper - rate)
            x = limits.value(at, quantity)

            def barrier(end: float) -> Scalar:
                if not math.isfinite(end):
                    return math.copysign(UNBOUNDED, end)
                return RATE**2 * (end - x) - 2.0 * RATE * rate

            return barrier(quantity.lower), barrier(quantity.upper)

        bounds, ends = limits.bounds(at, interval)
        matrix, between = [], []
        for slot, (row, bias) in rows.items():
            start = dot(row, self.a0) + bias
            low, high = bounds[slot]
            matrix.append(self.over_forces(row))
            between.append((low - start, high - start))
        return matrix, between, ends

    def _shared(self) -> tuple[Matrix, list[tuple[Scalar, Scalar]]]:
        """Rows over x of what actuators give their joint together, and its limits."""
        layout = self.layout
        rows: Matrix = []
        pooled = layout.pooled(self.at.model)
        for each in pooled:
            row: list[Scalar] = [0.0] * layout.unknowns
            for n in each.motors:
                gear = self.at.model.actuators[n].terms[0][1]
                gives = gear if each.coordinate is None else self.map[each.coordinate][n]
                row[n] = layout.scales[n] * gives
            rows.append(row)
        return rows, [(each.least, each.most) for each in pooled]

    def _cones(self) -> tuple[Matrix, list[tuple[Scalar, Scalar]]]:
        """Friction as an inscribed pyramid: |t| <= μ/√2 n along each of two directions."""
        layout = self.layout
        first = len(layout.scales) - 1
        rows: Matrix = []
        between: list[tuple[Scalar, Scalar]] = []
        for i in range(len(layout.points)):
            friction = self.x["friction"][i]
            most = select(friction - MOST_FRICTION, 0.0, UNBOUNDED)
            for j in range(2):
                for sign in (1.0, -1.0):
                    row: list[Scalar] = [0.0] * layout.unknowns
                    row[first + 3 * i + j] = sign
                    row[first + 3 * i + 2] = -math.sqrt(0.5) * friction
                    rows.append(row)
                    between.append((-UNBOUNDED, most))
        return rows, between

    def _independent(self) -> tuple[list[Scalar], Matrix]:
        """a0 and P over the model's v, from those over its coordinates here."""
        a0, columns, at = list(self.a0), [list(column) for column in self.columns], self.at
        if self.layout.tangents:
            for each in tangent.linkages(at.model):
                cluster = at.model.clusters[each.index]
                for i, c in zip(
                    range(cluster.v.start, cluster.v.stop), cluster.columns, strict=True
                ):
                    r = cluster.spanning_v.start + c
                    row = at.jacobian[r]
                    a0[i] = dot(row, self.a0) + at.bias(r)
                    for column, over in zip(columns, self.columns, strict=True):
                        column[i] = dot(row, over)
        return a0, transposed(columns) or [[] for _ in a0]


def _point(
    at: Instant, point: tuple[str, tuple[float, float, float], float], normal: Vec
) -> tuple[Matrix, list[Scalar]]:
    """J and J̇ v of a contact: a point, or the lowest one of a rolling sphere."""
    link, offset, radius = point
    place = frames.place(at.model, (link, offset), "local_world_aligned")
    rows = frames.jacobian(at.model, at.q, place)
    drift = list(frames.acceleration(at.model, at.q, at.v, at.still, place))
    if not radius:
        return rows[3:], drift[3:]
    arm = (-radius * normal[0], -radius * normal[1], -radius * normal[2])

    def lowest(motion: Vector) -> list[Scalar]:
        return added(motion[3:], cross((motion[0], motion[1], motion[2]), arm))

    return transposed([lowest(column) for column in transposed(rows)]), lowest(drift)


def contact_axes(normal: Vector) -> tuple[Vec, Vec, Vec]:
    """Two directions across a unit normal, and the normal; the world's x and y for one upwards.

    Duff et al., *Building an orthonormal basis, revisited*, 2017.
    """
    x, y, z = normal
    sign = select(z, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return (1.0 + sign * x * x * a, sign * b, -sign * x), (b, sign + y * y * a, -y), (x, y, z)


class InverseDynamics(Controller):
    """Accelerations, motor forces and contact forces that follow tasks within limits.

    Each task demands ẍ = gain e - 2 √gain ẋ, at frames' origins as points; minimised is
    Σ ½ |W (J a + J̇ v - ẍ)|² plus ½ (damping + Σ lm |gain W e|²) times the squared scaled forces.
    Hard tasks hold exactly. Points that stand do not accelerate; several on a link that turns do so
    as little as possible. Their forces push, within the four-sided pyramid in the cone of friction,
    two of whose sides face along x of the world. Positions and velocities of joints, also of
    dependent joints and rotors, are limited by barriers, ẍ <= ω² (upper - x) - 2 ω ẋ and
    ẍ <= ω (limit - ẋ), with ω = 20/s; forces of actuators by their torque-speed curves.

    Args:
        contacts: Points that may stand: links, (link, offset), or (link, offset, radius) of
            spheres.
        friction: Coulomb's coefficient, one or one for each of them; inf for unlimited friction.
        limits: Kinds of limits, "actuator", "position" and "velocity", and :class:`HalfSpace` and
            :class:`AccelerationLimit`.
        passive: Count the file's springs and damping among the forces.
        ground: The ground of the points, with its friction and normals; points within 1 mm of it
            stand by default. Without ``contacts`` the points are those of the collision shapes.
        damping: Damping of all forces, in addition to that of the tasks.
    """

    def __init__(
        self,
        model: Model,
        tasks: Task | Iterable[Task],
        *,
        contacts: Point | Sequence[Point] = (),
        friction: ArrayLike = 0.7,
        limits: LimitLike | Iterable[LimitLike] = KINDS,
        passive: bool = True,
        ground: Ground | None = None,
        damping: float = 1e-8,
        solver: str = "daqp",
    ) -> None:
        limits = as_limits(limits)
        super().__init__(
            model, tasks, damping, solver,
            contacts=contacts, friction=friction, limits=limits, passive=passive, ground=ground,
        )  # fmt: skip
        self.ground = ground
        if ground is not None and not contacts:
            self.contacts = tuple(touching_points(model, (ground,), None))
        else:
            self.contacts = tuple(as_points(model, cast("Sequence[Point]", contacts)))
        self._friction = self._coefficients(friction)
        bounded = "actuator" in limits
        others = [each for each in limits if each != "actuator"]
        weight = model.mass * (float(np.linalg.norm(model.gravity)) or 9.81) or 1.0
        limited = ((x.effort_limit, -x.least_effort) for x in model.actuators)
        scales = [max((x for x in ends if 0.0 < x < math.inf), default=weight) for ends in limited]
        points = tuple((each.link, each.offset, each.radius) for each in self.contacts)

        def layout(*, tangents: bool) -> DynamicLayout:
            within = limits_of(model, others, KINDS, tangent=tangents)
            return DynamicLayout(
                tuple(self._tasks.pieces), within, points, (*scales, weight), bounded,
                as_flag(passive, "passive"), tangents,
            )  # fmt: skip

        self._layout = layout(tangents=False)
        self._in_tangents = layout(tangents=True)
        self._scales = np.array([*scales, *[weight] * (3 * len(points))])
        self._function = id_program(model, self._layout)
        self._shapes = self._layout.results(model)
        self._damping = np.array([self.damping])
        k = len(points)
        self._upright = np.ones(k, dtype=bool), np.tile([0.0, 0.0, 1.0], (k, 1))
        self._selections: dict[bytes, tuple[Indices, Indices]] = {}

    def _coefficients(self, friction: ArrayLike) -> Array:
        if self.ground is not None:
            given = [self.ground.law(point).friction for point in self.contacts]
        else:
            numbers = as_numbers(friction, "friction")
            if numbers.shape not in ((), (len(self.contacts),)) or not np.all(numbers >= 0.0):
                raise ValueError(
                    f"friction is a number from 0 on, or one for each contact, got {friction!r}"
                )
            given = np.broadcast_to(numbers, (len(self.contacts),)).tolist()
            own = [math.inf if c.friction is None else c.friction for c in self.contacts]
            given = [min(pair) for pair in zip(given, own, strict=True)]
        return np.array([min(x, MOST_FRICTION) for x in given])

    def _functions(self) -> list[TracedFunction]:
        every = [self._function]
        if tangent.numbers(self.model):
            every.append(id_program(self.model, self._in_tangents))
        return every

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        targets: Mapping[Task | str, ArrayLike],
        *,
        standing: ArrayLike | None = None,
    ) -> Result:
        """Accelerations (..., nv), forces (..., nu) of the actuators, contact forces (..., k, 3).

        Args:
            q: Configuration (..., nq), closed.
            v: Velocities (..., nv).
            targets: Task, or its name, → its target, see the task's class; batch axes broadcast.
            standing: Whether each contact stands (k,); default all, or with a ground those on it.
                The others have no force.

        Returns:
            a: Accelerations of the independent coordinates.
            u: Forces of the actuators, before their reductions.
            forces: Forces on the robot [N], in world axes, in the order of ``contacts``.

        Raises:
            InfeasibleError: Limits, contacts and hard tasks contradict each other; its message
                names them. In a batch that row is not-a-number, with a RuntimeWarning.
            ValueError: Arrays that do not fit, or are not finite; targets that are missing, or are
                no poses.
        """
        model = self.model
        at = as_array(q, model.nq, "q", "nq")
        speed = as_array(v, model.nv, "v", "nv")
        numbers = self._tasks.numbers(targets)
        batch = common_batch(q=at, v=speed, targets=numbers)
        if not batch:
            return self._one(at, speed, numbers, self._standing(at, standing))
        at, speed, numbers = (
            np.broadcast_to(x, (*batch, x.shape[-1])) for x in (at, speed, numbers)
        )
        k = len(self.contacts)
        results = [np.full((*batch, model.nv), np.nan),
                   np.full((*batch, len(model.actuators)), np.nan),
                   np.full((*batch, k, 3), np.nan)]  # fmt: skip
        failures = []
        for row in np.ndindex(*batch):
            try:
                one = self._one(
                    at[row], speed[row], numbers[row], self._standing(at[row], standing)
                )
            except InfeasibleError as error:
                failures.append(error)
                continue
            for result, part in zip(results, one, strict=True):
                result[row] = part
        if failures:
            warn(RuntimeWarning(f"{len(failures)} of {math.prod(batch)} states: {failures[0]}"))
        return results[0], results[1], results[2]

    def _standing(self, q: Array, standing: ArrayLike | None) -> tuple[Mask, Array]:
        """True for each contact that stands, and the normals (k, 3)."""
        k = len(self.contacts)
        touching, normals = self._upright
        if self.ground is not None and k:
            from robomodel.dynamics import frame_pose

            poses = [frame_pose(self.model, q, (c.link, c.offset)) for c in self.contacts]
            radii = [c.radius for c in self.contacts]
            gaps, normals = self.ground.surfaces([pose[:3, 3] for pose in poses], radii)
            # a point up to 1 mm above the ground stands on it
            touching = gaps <= 1e-3
        if standing is not None:
            touching = np.asarray(standing)
            if touching.shape != (k,) or touching.dtype.kind not in "bi":
                raise ValueError(
                    f"standing says of each of {k} contacts whether it stands, got {standing!r}"
                )
            touching = touching.astype(bool)
        return touching, normals

    def _one(self, q: Array, v: Array, targets: Array, contacts: tuple[Mask, Array]) -> Result:
        standing, normals = contacts
        layout, function = self._layout, self._function
        fixed = self._tasks.weights, self._damping, self._friction, normals.ravel()
        given = [x for x in (q, v, targets, *fixed) if x.size]
        numbers = np.empty(function.size)
        function(*given, out=numbers)
        growth, misfit = numbers[-2:].tolist()
        if not (growth < UNDETERMINED_GROWTH and misfit < MISFIT and np.isfinite(numbers).all()):
            self._refuse(q, targets, v)
            if tangent.numbers(self.model):
                layout = self._in_tangents
                function, start = id_program(self.model, layout), tangent.start(self.model, q, v)
                numbers = np.empty(function.size)
                function(q, start.z, *given[2:], start.bases, out=numbers)
            if not np.isfinite(numbers).all():
                return self._undetermined()
        parts = dict(zip(self._shapes, split(numbers, tuple(self._shapes.values())), strict=True))
        x = self._solved(parts, standing)
        a = parts["a0"] + parts["P"] @ x
        forces = x * self._scales
        nu = len(self.model.actuators)
        pushed = np.einsum("kij,ki->kj", parts["axes"], forces[nu:].reshape(-1, 3))
        return a, forces[:nu], pushed

    def _undetermined(self) -> Result:
        """Not-a-number with a RuntimeWarning, at a change point of a linkage."""
        warn(
            RuntimeWarning(
                f"inverse dynamics of '{self.model.name}' is not-a-number: a linkage is at a "
                "change point, where its loops do not determine how it accelerates"
            )
        )
        nu, k = len(self.model.actuators), len(self.contacts)
        return np.full(self.model.nv, np.nan), np.full(nu, np.nan), np.full((k, 3), np.nan)

    def _solved(self, parts: Mapping[str, Array], standing: Mask) -> Array:
        """The solution x of the programme with the standing contacts."""
        columns, bounds = self._selection(standing)
        n, x = len(columns), np.zeros(len(self._scales))
        if not n:
            return x
        h, c, a, lower, upper = (parts[name] for name in ("H", "c", "A", "lower", "upper"))
        if not standing.all():
            rows = bounds[n:] - len(x)
            h, a = h[np.ix_(columns, columns)], a[np.ix_(rows, columns)]
            c, lower, upper = c[columns], lower[bounds], upper[bounds]
        equalities = self._layout.equalities - 3 * int(np.sum(~standing))
        programme = QuadraticProgram(h, c, a, lower, upper, equalities)
        try:
            x[columns] = self._minimum(programme, 3 * int(np.sum(standing)))
        except IncompatibleBoundsError as error:
            labels = self._labels(bounds[error.rows], parts)
            raise InfeasibleError(
                f"no motion of '{self.model.name}' meets all limits, contacts and hard tasks: "
                f"{', '.join(labels) or 'they'} contradict each other",
                labels,
            ) from None
        return x

    def _minimum(self, programme: QuadraticProgram, held: int) -> Array:
        """Its minimum; several points of a link that turns accelerate as little as possible."""
        try:
            return quadratic.solve(programme, self._solver)
        except IncompatibleBoundsError:
            if held < 6:
                raise
            first = len(programme.rows) - programme.equalities
            still = slice(first, first + held)
            right = programme.lower[len(programme.gradient) :][still]
            equal, right = quadratic.independent(programme.rows[still], right)
            if len(equal) == held:
                raise
            return quadratic.solve(_with_rows(programme, still, equal, right), self._solver)

    def _selection(self, standing: Mask) -> tuple[Indices, Indices]:
        """The unknowns and the bounds of a programme with these contacts."""
        key = standing.tobytes()
        if key not in self._selections:
            n, nu = len(self._scales), len(self.model.actuators)
            pooled = self._layout.pooled(self.model)
            limits = np.ones(len(self._layout.limits.slots) + len(pooled), dtype=bool)
            hard = np.ones(self._layout.equalities - 3 * len(standing), dtype=bool)
            columns = np.concatenate([np.ones(nu, dtype=bool), np.repeat(standing, 3)])
            rows = np.concatenate([limits, np.repeat(standing, 4), np.repeat(standing, 3), hard])
            kept = np.flatnonzero(columns)
            self._selections[key] = kept, np.concatenate([kept, n + np.flatnonzero(rows)])
        return self._selections[key]

    def _labels(self, bounds: Indices, parts: Mapping[str, Array]) -> tuple[str, ...]:
        """Names of the bounds, for messages."""
        layout, limits = self._layout, self._layout.limits
        links = [point[0] for point in layout.points]
        names = [f"force of actuator '{each.name}'" for each in self.model.actuators]
        names += [f"contact of '{link}'" for link in links for _ in range(3)]
        first = len(names)
        names += ["" for _ in limits.slots]
        names += [f"effort of '{each.joint}'" for each in layout.pooled(self.model)]
        names += [f"friction of '{link}'" for link in links for _ in range(4)]
        names += [f"contact of '{link}'" for link in links for _ in range(3)]
        for task, piece in zip(self.tasks, layout.pieces, strict=True):
            names += [f"hard task '{task.name}'"] * (len(piece.kept) if task.hard else 0)
        result: list[str] = []
        for bound in bounds.tolist():
            at = bound - first
            if 0 <= at < len(limits.slots):
                slot = limits.slots[at]
                ends = parts["ends"].reshape(-1, 2)
                same = [i for i, q in enumerate(limits.quantities) if q.slot == slot]
                tightest = float(ends[same, 0].max()), float(ends[same, 1].min())
                result += limits.responsible(slot, parts["ends"], tightest)
            else:
                result.append(names[bound])
        return tuple(dict.fromkeys(result))


def _with_rows(
    programme: QuadraticProgram, rows: slice, equal: Array, right: Array
) -> QuadraticProgram:
    """The programme with other equalities in place of some of its rows."""
    n = len(programme.gradient)
    lower, upper = (
        np.concatenate([x[: n + rows.start], right, x[n + rows.stop :]])
        for x in (programme.lower, programme.upper)
    )
    matrix = [programme.rows[: rows.start], equal, programme.rows[rows.stop :]]
    return QuadraticProgram(
        programme.hessian, programme.gradient, np.concatenate(matrix), lower, upper,
        programme.equalities - (rows.stop - rows.start) + len(equal),
    )  # fmt: skip
