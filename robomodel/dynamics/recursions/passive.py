"""Springs, damping, and the coordinates on which they and dry friction act. Scalars of any kind.

Every such *element* has a coordinate x(q) of the mechanism (a joint's position, a distance, the
angle at a cut joint) and the row J = ∂ẋ/∂v over the independent velocities. Its force on x is
-k s - d ẋ, where s is the part of x - x₀ that is beyond half the dead band on either side, d may
differ by direction, and a joint's law of friction may add a constant force. So tau =
Σ Jᵀ (-k s - d J v), and J, by G, brings forces at dependent joints and rotors to the independent
velocities. These forces p are added outside of the algorithms: inverse dynamics gives tau - p,
forward dynamics takes tau + p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from robomodel.dynamics.contact.dry_friction import DryFriction
from robomodel.dynamics.kinematics.state import Configuration, position_directions
from robomodel.dynamics.recursions.hybrid import prescribed
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.trace import Traced, handles
from robomodel.mechanism.constraints import BodyAnchor
from robomodel.mechanism.graph import common_ancestor, path
from robomodel.mechanism.joints import Spherical
from robomodel.mechanism.springs import Spring
from robomodel.model.elements import NO_LAW, FrictionLaw
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    added,
    div,
    dot,
    is_number,
    maximum,
    minimum,
    select,
    sqrt,
    subtracted,
    transposed,
)
from robomodel.spatial import ZERO, Vec, Wrench, cross, inner, minus, plus, scale


@dataclass(frozen=True, slots=True)
class Element:
    """A coordinate x with its row J (independent velocity → ∂ẋ/∂v), and what acts on it."""

    name: str
    x: Scalar
    row: dict[int, Scalar]
    stiffness: float
    reference: float
    damping: float
    friction: float
    deadband: float = 0.0
    of_joint: bool = False
    law: FrictionLaw = NO_LAW

    @property
    def dry(self) -> DryFriction:
        """Its dry friction."""
        return DryFriction(self.friction, self.law)

    @property
    def drags(self) -> bool:
        """True if it has a damper."""
        return not (is_absent(self.damping) and is_absent(self.law.damping))

    def drag(self, rate: Scalar) -> Scalar:
        """d at a velocity: that of its direction."""
        if is_absent(self.law.damping):
            return self.damping
        return select(rate, self.damping + self.law.damping, self.damping)

    @property
    def stretch(self) -> Scalar:
        """x - x₀."""
        return self.x - self.reference

    def rate(self, v: Vector) -> Scalar:
        """J v."""
        return dot(self.row.values(), [v[i] for i in self.row])

    def force(self, v: Vector) -> Scalar:
        """-k s - d J v - b; dry friction is not in it."""
        pull = 0.0 if is_absent(self.stiffness) else self.stiffness * self.beyond(self.stretch)
        drag: Scalar = 0.0
        if self.drags:
            rate = self.rate(v)
            drag = self.drag(rate) * rate
        rest = pull + drag
        return -(rest if is_absent(self.law.bias) else rest + self.law.bias)

    def beyond(self, stretch: Scalar) -> Scalar:
        """The stretch beyond the play: s, of which the spring's energy is ½ k s²."""
        return stretch - self.within(stretch) if self.deadband else stretch

    def within(self, stretch: Scalar) -> Scalar:
        """The part of a stretch within the play."""
        half = 0.5 * self.deadband
        return minimum(maximum(stretch, -half), half)


def elements(state: Configuration) -> Iterator[Element]:
    """All elements of a model that act: those of joints in their order, then its springs."""
    model = state.model
    for cluster in model.clusters:
        for body in cluster.bodies:
            joint = model.joints[body]
            passive = joint.stiffness, joint.damping, joint.friction
            if all(map(is_absent, passive)) and not joint.law:
                continue
            values = _positions(state, body)
            for i, r in enumerate(model.nodes[body].freedoms):
                row = dict(enumerate(state.rows[r], cluster.v.start))
                yield Element(
                    joint.name, values[i], row, joint.stiffness, joint.reference,
                    joint.damping, joint.friction, joint.deadband, of_joint=True, law=joint.law,
                )  # fmt: skip
    for spring in model.springs:
        x, row = measure(state, spring)
        yield Element(
            spring.name, x, row, spring.stiffness, spring.reference, spring.damping,
            spring.friction, spring.deadband,
        )  # fmt: skip


def is_absent(x: Scalar) -> bool:
    """True if it is the number zero; other scalars are present."""
    return is_number(x) and x == 0.0


def _positions(state: Configuration, body: int) -> list[Scalar]:
    """A joint's coordinates, one for each velocity: of a ball joint those of its rotation vector.

    The spring of a ball joint has the energy k |φ|²/2 with φ the rotation vector, and φ is along
    the axis of the rotation, so that its derivative with respect to the turning is φ itself.
    Planar and floating joints have no springs.
    """
    node = state.model.nodes[body]
    if isinstance(node.joint, Spherical):
        return rotation_vector(state.positions[node.q : node.q + 4])
    return list(state.positions[node.q : node.q + node.joint.nv])


def passive_force(model: Model, q: Vector, v: Vector) -> list[Scalar]:
    """Generalised forces (nv) of springs, damping and biases, without dry friction."""
    tau: list[Scalar] = [0.0] * model.nv
    for element in elements(Configuration(model, q)):
        if is_absent(element.stiffness) and not (element.drags or element.law.steady):
            continue
        force = element.force(v)
        for i, j in element.row.items():
            tau[i] = tau[i] + j * force
    return tau


def spring_energy(state: Configuration) -> Scalar:
    """Σ ½ k s²."""
    energy: Scalar = 0.0
    for element in elements(state):
        if not is_absent(element.stiffness):
            s = element.beyond(element.stretch)
            energy = energy + 0.5 * element.stiffness * (s * s)
    return energy


def passive_derivatives(
    model: Model, q: Sequence[Traced], v: Sequence[Traced]
) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
    """(∂passive/∂q, ∂passive/∂v), nv by nv, q in the tangent space, from the trace."""
    directions = position_directions(model, q) + [{x: 1.0} for x in v]
    if not q:
        return [], []
    columns = differentiate(q[0].trace, passive_force(model, q, v), directions)
    dq, dv = columns[: model.nv], columns[model.nv :]
    return transposed(dq), transposed(dv)


# ---- algorithms with springs and damping --------------------------------------------------------

Arguments = Mapping[str, Vector]
Inner = Callable[[Arguments], Sequence[Scalar]]


def gravity_less_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """Gravity forces less those of springs."""
    return subtracted(run(x), passive_force(m, x["q"], [0.0] * m.nv))


def less_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """Inverse dynamics less passive forces."""
    return subtracted(run(x), passive_force(m, x["q"], x["v"]))


def aba_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """Forward dynamics with passive forces added to tau."""
    return run({**x, "tau": added(x["tau"], passive_force(m, x["q"], x["v"]))})


def hybrid_passive(m: Model, x: Arguments, known: Sequence[str], run: Inner) -> Sequence[Scalar]:
    """Passive forces added to prescribed forces, and subtracted from computed ones."""
    passive = passive_force(m, x["q"], x["v"])
    names = prescribed(m, known)
    free = [0.0 if name in names else p for name, p in zip(m.dof_names, passive, strict=True)]
    out = run({**x, "given": added(x["given"], free)})
    tau = [
        t - p if name in names else g
        for name, t, p, g in zip(m.dof_names, out[: m.nv], passive, x["given"], strict=True)
    ]
    return [*tau, *out[m.nv :]]


def rnea_derivatives_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """∂tau less the derivatives of passive forces."""
    out = run(x)
    matrices = passive_derivatives(m, handles(x["q"]), handles(x["v"]))
    changes = [x for matrix in matrices for row in matrix for x in row]
    count = len(changes)
    return [*subtracted(out[:count], changes), *out[count:]]


def aba_derivatives_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """∂a = M⁻¹ (∂passive - ∂ID), at the a of tau + p."""
    out, n = aba_passive(m, x, _, run), m.nv
    matrices = passive_derivatives(m, handles(x["q"]), handles(x["v"]))
    blocks = [out[i * n * n : (i + 1) * n * n] for i in range(3)]
    inverse = [blocks[2][i * n : (i + 1) * n] for i in range(n)]
    dq, dv = (
        added(block, [dot(row, c) for row in inverse for c in zip(*changes, strict=True)])
        for block, changes in zip(blocks[:2], matrices, strict=True)
    )
    return [*dq, *dv, *blocks[2]]


# ---- springs' coordinates ------------------------------------------------------------------------


def measure(state: Configuration, spring: Spring) -> tuple[Scalar, dict[int, Scalar]]:
    """A spring's x and its row."""
    if spring.ends is None:
        return _sum_of_joints(state, spring)
    first, second = spring.ends
    above = common_ancestor(state.model.parents, first.body, second.body)
    start, *axes = _carried(state, first, above)
    end, *others = _carried(state, second, above)
    apart = minus(end, start)
    arm: Vec = ZERO
    moment: Vec = ZERO
    match spring.kind:
        case "points":
            x = sqrt(inner(apart, apart))
            force = scale(div(1.0, x), apart)
        case "slide":  # the force passes through the successor's point, on the axis where it closes
            x, force = inner(apart, axes[0]), axes[0]
            arm = cross(apart, force)
        case _:
            x, force = angle(inner(others[1], axes[2]), inner(others[1], axes[1])), ZERO
            moment = axes[0]
    row: dict[int, Scalar] = {}
    _project(state, second, above, force, moment, row)
    _project(state, first, above, minus(ZERO, force), minus(ZERO, plus(moment, arm)), row)
    return x, row


def _sum_of_joints(state: Configuration, spring: Spring) -> tuple[Scalar, dict[int, Scalar]]:
    model = state.model
    x: Scalar = 0.0
    row: dict[int, Scalar] = {}
    for body, (_, ratio) in zip(spring.bodies, spring.terms, strict=True):
        node = model.nodes[body]
        x = x + ratio * state.positions[node.q]
        for i, g in enumerate(state.rows[node.v], model.clusters[node.cluster].v.start):
            row[i] = row.get(i, 0.0) + ratio * g
    return x, row


def _carried(state: Configuration, end: BodyAnchor, above: int) -> tuple[Vec, Vec, Vec, Vec]:
    """An end's point and three axes in the axes of a body above it."""
    point: Vec = end.point
    x, y, z = end.axes
    for body in path(state.model.parents, end.body, above):
        at = state.transforms[body]
        point, x, y, z = at.point(point), at.rotate(x), at.rotate(y), at.rotate(z)
    return point, x, y, z


def _project(
    state: Configuration,
    end: BodyAnchor,
    above: int,
    force: Vec,
    moment: Vec,
    row: dict[int, Scalar],
) -> None:
    """Add to a row the generalised forces, below ``above``, of a force at an end and a moment.

    Both are in the axes of ``above``. Above the common ancestor the wrenches of the two ends
    cancel.
    """
    model = state.model
    bodies = path(model.parents, end.body, above)
    for body in reversed(bodies):
        force, moment = (state.transforms[body].unrotate(a) for a in (force, moment))
    wrench = Wrench(plus(moment, cross(end.point, force)), force)
    for body in bodies:
        first = model.clusters[model.nodes[body].cluster].v.start
        for i, motion in enumerate(state.subspace(body), first):
            row[i] = row.get(i, 0.0) + wrench.dot(motion)
        wrench = state.transforms[body].to_parent(wrench)


# ---- angles --------------------------------------------------------------------------------------


def angle(sine: Scalar, cosine: Scalar) -> Scalar:
    """The angle in (-π, π] of a sine and a cosine, which need not be exactly of unit length.

    tan(θ/2) = s / (r + |c|) is halved four times more, so that a short series gives the arctangent,
    and no function but the square root is needed. The angle counts from ±π if c is negative.
    """
    size = sqrt(sine * sine + cosine * cosine)
    tangent = div(sine, size + select(cosine, -cosine, cosine))
    acute = 2.0 * (tangent * _arctangent_ratio(tangent * tangent))
    return select(cosine, select(sine, -math.pi, math.pi) - acute, acute)


def rotation_vector(q: Vector) -> list[Scalar]:
    """The rotation vector [rad] of a unit quaternion x, y, z, w, the shorter way round.

    φ = 4 arctan(|u|/(1 + |w|)) u/|u| with u the vector part of the quaternion that has w > 0; at
    half a turn, w = 0, where both ways are equally long, of the quaternion itself.
    """
    size, sign = select(q[3], -q[3], q[3]), select(q[3], -1.0, 1.0)
    whole = div(1.0, 1.0 + size)
    square = inner((q[0], q[1], q[2]), (q[0], q[1], q[2])) * (whole * whole)
    factor = 4.0 * (whole * sign * _arctangent_ratio(square))
    return [factor * x for x in q[:3]]


def _arctangent_ratio(square: Scalar) -> Scalar:
    """arctan(t)/t as a function of t², for any t.

    Four halvings, arctan t = 2 arctan(t/(1 + √(1 + t²))), then the series. Computing the ratio to t
    avoids a division by a t that may be zero.
    """
    scale_: Scalar = 1.0
    for _ in range(4):
        inverse = div(1.0, 1.0 + sqrt(1.0 + square))
        scale_ = scale_ * (2.0 * inverse)
        square = square * (inverse * inverse)
    total: Scalar = 0.0
    # the arctangent's series to x^15: what is left is 1e-18 for |x| <= tan(π/32)
    for n in reversed(range(1, 17, 2)):
        total = (-1.0) ** (n // 2) / n + square * total
    return scale_ * total
