"""Steps in time on the configuration manifold, for one state under any inputs.

A state x is q and v, one after the other. Explicit methods advance it as plain numbers and then
bring q back to the manifold (projection methods: Hairer, Lubich and Wanner, Geometric numerical
integration, IV.4); since every stage's q̇ is tangent to it, their order is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from robomodel.dynamics import passive_force
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array, JointModel
from robomodel.model.model import Model
from robomodel.motion.change_points import Care, StepError, settle
from robomodel.motion.charts import View
from robomodel.motion.groups import adjoint, inverse_jacobian
from robomodel.motion.integrator_functions import (
    flow,
    lagrangian,
    momentum_slopes,
    position_rates,
    wrench_forces,
)

Signal = Callable[[float, Array, Array], Array]  # (t, q, v) → numbers
Pushes = Callable[[float, Array, Array], Mapping[str, Array]]  # (t, q, v) → wrenches on links
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Motion:
    """The equations of motion under inputs: ``tau``, and ``pushes``, wrenches on links.

    ``view``: the chart of x = (q, v); the inputs see and act on the model's own coordinates.
    ``passive``: with the file's springs and damping. ``care``: at the stages of a step that may
    come near to a change point.
    The links may become more from one time to the next, and come in the order of the first time.
    """

    view: View
    tau: Signal
    pushes: Pushes
    passive: bool = False
    care: Care | None = None

    @cached_property
    def model(self) -> Model:
        """The model in the chart's independent joints."""
        return self.view.model

    def rate(self, t: float, x: Array) -> Array:
        """ẋ."""
        q, v = x[: self.model.nq], x[self.model.nq :]
        if self.care is not None:
            q = self.care.settled(q)
        own = self.view.velocities(q, v)
        pushes = self.pushes(t, q, own)
        rates: Array = flow(self.model, tuple(pushes), passive=self.passive)(
            q, v, self.view.forces(q, self.tau(t, q, own)), *_stacked(pushes)
        )
        return rates

    def forces_and_wrenches(
        self, t: float, q: Array, v: Array
    ) -> tuple[Array, Mapping[str, Array]]:
        """Forces on the model's own joints, and wrenches on links."""
        return self.tau(t, q, v), self.pushes(t, q, v)

    def forces(self, t: float, q: Array, v: Array) -> Array:
        """Tau with what the wrenches, springs and dampers do to the chart's joints."""
        seen = self.view.velocities(q, v)
        pushes, own = self.pushes(t, q, seen), self.view.forces(q, self.tau(t, q, seen))
        if self.passive:
            own = own + passive_force(self.model, q, v)
        if not pushes:
            return own
        of_wrenches: Array = wrench_forces(self.model, tuple(pushes))(q, *_stacked(pushes))
        return own + of_wrenches

    def settled(self, x: Array) -> Array:
        """X with its q on the manifold."""
        nq = self.model.nq
        q = settle(self.model, x[:nq])[0] if self.care is None else self.care.settled(x[:nq])
        return np.concatenate([q, x[nq:]])


def _stacked(pushes: Mapping[str, Array]) -> list[Array]:
    """The wrenches as one argument, or as none."""
    return [np.concatenate(list(pushes.values()))] if pushes else []


class Step(Protocol):
    """One step of a method with steps of given length."""

    def __call__(self, motion: Motion, t: float, h: float, x: Array) -> Array:
        """The state at t + h from x at t."""


# ---- a variational method ------------------------------------------------------------------------


def variational(motion: Motion, t: float, h: float, x: Array) -> Array:
    """A step of discrete mechanics: second order, implicit, symplectic, symmetric in time.

    With w the constant velocity that leads from q₀ to q₁ in the time h, the action of a step is
    h/2 (L(q₀, w) + L(q₁, w)) (Marsden and West, Acta Numerica 2001); q₁ and the momenta p = M v at
    both ends make it stationary. On SO(3), SE(2) and SE(3) variations of w are those of q₀ and q₁
    by the inverse of the exponential's derivative (Bou-Rabee and Marsden, 2009):

    p₀ = dexp⁻ᵀ(h w) (M₀ + M₁) w / 2 - h/2 (∂L(q₀, w) + τ₀),
    p₁ = dexp⁻ᵀ(-h w) (M₀ + M₁) w / 2 + h/2 (∂L(q₁, w) + τ₁).
    """
    model = motion.model
    nq, nv = model.nq, model.nv
    chart = chart_of(model)
    at = lagrangian(model)
    q0, v0 = x[:nq], x[nq:]

    def evaluate(q: Array, v: Array) -> tuple[Array, Array]:
        found = at(q, v)
        return found[: nv * nv].reshape(nv, nv), found[nv * nv :]

    mass0 = evaluate(q0, v0)[0]
    if not np.all(np.isfinite(mass0)):
        raise StepError("the mass matrix is not finite")
    known = mass0 @ v0 + h / 2 * motion.forces(t, q0, v0)
    w = v0 + h / 2 * motion.rate(t, x)[nq:]
    near = q0 + h * position_rates(model)(q0, w)

    def reached(w: Array) -> Array:
        nonlocal near  # closing goes on from where it came to for the w before
        near = settle(model, chart.moved(q0, h * w, near))[0]
        return near

    def momentum_left(w: Array) -> Array:
        mass1 = evaluate(reached(w), w)[0]
        pulled = chart.pull(h * w) @ ((mass0 + mass1) @ w / 2)
        left: Array = pulled - h / 2 * evaluate(q0, w)[1] - known
        return left

    def its_slope(w: Array) -> Array:
        """The derivative of that."""
        q1 = reached(w)
        mean = (mass0 + evaluate(q1, w)[0]) / 2
        along0, along1 = momentum_slopes(model, np.array([q0, q1]), w)
        pull = chart.pull(h * w)
        moving = h / 2 * pull @ along1 @ chart.tangent(h * w)
        turning = h * chart.pull_slope(h * w, mean @ w)
        slope: Array = pull @ mean + moving + turning - h / 2 * along0.T
        return slope

    w = _root(momentum_left, its_slope, np.asarray(np.linalg.inv(mass0)), w)
    q1 = reached(w)
    mass1, slope1 = evaluate(q1, w)
    momentum = chart.pull(-h * w) @ ((mass0 + mass1) @ w / 2) + h / 2 * slope1

    def force_left(v: Array) -> Array:
        left: Array = mass1 @ v - momentum - h / 2 * motion.forces(t + h, q1, v)
        return left

    def force_slope(v: Array) -> Array:
        """By differences: whoever gives the forces says no derivatives."""
        here, eps = motion.forces(t + h, q1, v), 1e-7 * max(1.0, float(np.max(np.abs(v))))
        ahead = [motion.forces(t + h, q1, v + eps * e) for e in np.eye(nv)]
        slope: Array = mass1 - h / 2 * (np.array(ahead) - here).T / eps
        return slope

    v1 = _root(force_left, force_slope, np.asarray(np.linalg.inv(mass1)), w)
    return np.concatenate([q1, v1])


SLOW = 0.25  # a chord's steps that shrink by less are not worth going on with
ENOUGH, ROUNDED = 1e-12, 1e-15  # steps, beside the numbers, at which it may, and must, end
IMAGINARY = 1e-30j


def _root(
    left: Callable[[Array], Array], slope: Callable[[Array], Array], inverse: Array, x: Array
) -> Array:
    """x at which nothing is left: by chords with this inverse, where they are slow by Newton's.

    It ends where steps no longer become smaller. Raises :class:`StepError`.
    """
    before = math.inf
    for _ in range(60):
        rest = left(x)
        change = inverse @ rest
        size = float(np.max(np.abs(change), initial=0.0))
        scale = float(np.max(np.abs(x), initial=1e-3))
        if size >= before and before <= ENOUGH * scale:
            return x
        if size > max(SLOW * before, ENOUGH * scale):
            tangent = slope(x)
            if not np.all(np.isfinite(tangent)):
                break
            inverse = np.asarray(np.linalg.pinv(tangent))
            change = inverse @ rest
            size = float(np.max(np.abs(change), initial=0.0))
        if not math.isfinite(size):
            break
        x, before = x - change, size
        if size <= ROUNDED * scale:
            return x
    if before <= ENOUGH * float(np.max(np.abs(x), initial=1e-3)):
        return x
    raise StepError("its equations do not converge; take shorter ones")


STEPS: dict[str, Step] = {"variational": variational}


@dataclass(frozen=True, slots=True)
class Chart:
    """Configurations near q₀ by the motion of the independent joints, exponentials on groups.

    ``plain`` joints' positions are numbers: their places in q and in v. ``groups``: joint, part of
    q, part of v.
    """

    plain: tuple[Places, Places]
    groups: tuple[tuple[JointModel, slice, slice], ...]

    def moved(self, q: Array, motion: Array, guess: Array) -> Array:
        """``guess`` with the independent joints where ``motion`` leads them from q."""
        result = guess.copy()
        at, along = self.plain
        result[at] = q[at] + motion[along]
        for joint, part, v in self.groups:
            result[part] = joint.integrate(q[part], motion[v])
        return result

    def pull(self, motion: Array) -> Array:
        """dexp⁻ᵀ(motion) as a matrix: it takes momenta back to where the motion began."""
        result = np.eye(len(motion))
        for joint, _, v in self.groups:
            result[v, v] = inverse_jacobian(adjoint(joint, -motion[v])).T
        return result

    def pull_slope(self, motion: Array, momentum: Array) -> Array:
        """The derivative of dexp⁻ᵀ(motion) momentum by the motion."""
        result = np.zeros((len(motion), len(motion)))
        for joint, _, v in self.groups:
            for k in range(joint.nv):  # polynomials, differentiated exactly in the complex plane
                ahead = motion[v] + IMAGINARY * np.eye(joint.nv)[k]
                pull = inverse_jacobian(adjoint(joint, -ahead)).imag.T / IMAGINARY.imag
                result[v, v.start + k] = pull @ momentum[v]
        return result

    def tangent(self, motion: Array) -> Array:
        """How the end of a motion moves, in its own axes, with the motion."""
        result = np.eye(len(motion))
        for joint, _, v in self.groups:
            result[v, v] = np.linalg.inv(inverse_jacobian(adjoint(joint, motion[v])))
        return result


@cached_on_model
def chart_of(model: Model) -> Chart:
    """The chart of a model; ValueError where independent velocities are not those of joints."""
    plain: list[tuple[int, int]] = []
    groups: list[tuple[JointModel, slice, slice]] = []
    for cluster in model.clusters:
        column = {c: cluster.v.start + n for n, c in enumerate(cluster.columns)}
        at = first = 0
        for body in cluster.bodies:
            joint = model.nodes[body].joint
            if cluster.implicit:
                own = [column.get(c) for c in range(first, first + joint.nv)]
                first += joint.nv
            else:
                own = [None]
                if model.joints[body].independent:
                    own = list(range(cluster.v.start + first, cluster.v.start + first + joint.nv))
                    first += joint.nv
                else:
                    continue
            part = slice(cluster.q.start + at, cluster.q.start + at + joint.nq)
            at += joint.nq
            taken = [v for v in own if v is not None]
            if not taken:
                continue
            if joint.nv == 1:
                plain.append((part.start, taken[0]))
            elif taken == list(range(taken[0], taken[0] + joint.nv)):
                groups.append((joint, part, slice(taken[0], taken[0] + joint.nv)))
            else:
                raise ValueError(
                    f"method 'variational' needs all velocities of joint "
                    f"'{model.joints[body].name}' independent, or none; use 'dop853'"
                )
    places: Places = np.array(plain, dtype=np.intp).reshape(-1, 2)
    return Chart((places[:, 0], places[:, 1]), tuple(groups))
