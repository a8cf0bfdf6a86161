"""The variational method: a step of discrete mechanics, symplectic, for one state.

With w the constant velocity of all joints that leads from q₀ to q₁ in the time h, the action of a
step is h/2 (L(q₀, w) + L(q₁, w)), L that of the spanning tree (Marsden and West, Acta Numerica
2001); q₁ on closed loops and the momenta p at both ends make it stationary under all variations
that keep the loops closed (SHAKE and RATTLE, of which no coordinates of the linkages are part). On
SO(3), SE(2) and SE(3) variations of w are those of q₀ and q₁ by the inverse of the exponential's
derivative (Bou-Rabee and Marsden, 2009). With G₀, G₁ the motions of the loops at both ends,

    G₀ᵀ H₀ G₀ z₀ = G₀ᵀ (dexp⁻ᵀ(h w) (H₀ + H₁) w / 2 - h/2 (∂L(q₀, w) + τ₀)),
    G₁ᵀ H₁ G₁ z₁ = G₁ᵀ (dexp⁻ᵀ(-h w) (H₀ + H₁) w / 2 + h/2 (∂L(q₁, w) + τ₁)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import factorial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.dynamics.baselines import spanning_tree
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import joint_slices
from robomodel.model.joints import Array, Floating, JointModel, Planar
from robomodel.model.model import Model
from robomodel.motion.inputs import Signals, stacked
from robomodel.motion.integrator_functions import (
    Coordinates,
    lagrangian,
    momentum_slopes,
)
from robomodel.motion.steps import FixedStep, acting_forces, flow
from robomodel.motion.tangent import StepError
from robomodel.scalars import unstack

Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class VariationalStep:
    """A step under signals from time t; x are q, z and bases of tangent coordinates."""

    step: FixedStep
    signals: Signals
    t: float
    h: float

    @property
    def model(self) -> Model:
        """The robot."""
        return self.step.model

    def result(self, state: Array) -> Array:
        """The state after it and the checks of linkages; :class:`StepError` where there is none."""
        model, h = self.model, self.h
        nq, nv = model.nq, model.nv
        tree = Tree.of(model)
        row = self.step.tangent_row(state)
        x0, z0 = row[: nq + nv], row[nq : nq + nv]
        start = Coordinates(model, row[nq + nv :])
        at0 = tree.at(x0[:nq])
        g0 = start.jacobian(x0)
        mass0, _ = tree.lagrangian(at0, g0 @ z0)
        if not np.all(np.isfinite(mass0)):
            raise StepError("the mass matrix is not finite")
        metric = g0.T @ mass0 @ g0
        closed = tree.closed
        rounded = 1.0 / h if closed.any() else 0.0  # of w, which positions tell
        impulse = metric @ z0 + h / 2 * self._forces(self.t, row)

        def reached(c: Array) -> tuple[Array, Array, Array]:
            """q₁ and its mean velocity c along the motions at q₀; its tree positions, and w."""
            moved = tree.back(tree.moved(at0, h * (g0 @ c)))
            x, _ = start.settled(np.append(moved, c))
            at, w = tree.at(x[:nq]), g0 @ c
            if closed.any():
                w[closed] = tree.between(at0, at)[closed] / h
            return x, at, w

        def momentum_left(c: Array) -> Array:
            _, at, w = reached(c)
            mean = (mass0 + tree.lagrangian(at, w)[0]) @ w / 2
            momentum = tree.pull(h * w) @ mean - h / 2 * tree.lagrangian(at0, w)[1]
            return np.asarray(g0.T @ momentum - impulse)

        def its_slope(c: Array) -> Array:
            x, at, w = reached(c)
            mean = (mass0 + tree.lagrangian(at, w)[0]) / 2
            along0, along1 = momentum_slopes(tree.model, np.array([at0, at]), w)
            pull = tree.pull(h * w)
            slope = pull @ mean + h / 2 * pull @ along1 @ tree.tangent(h * w) - h / 2 * along0.T
            slope = slope + h * tree.pull_slope(h * w, mean @ w)
            return np.asarray(g0.T @ slope @ start.jacobian(x))

        guess = z0 + h / 2 * self._accelerations(row)
        c = _root(momentum_left, its_slope, np.asarray(np.linalg.inv(metric)), guess, rounded)
        x1, at1, w = reached(c)
        end, x1, checks = start.renewed(x1)
        g1 = end.jacobian(x1)
        mass1, slope1 = tree.lagrangian(at1, w)
        mean = (mass0 + mass1) @ w / 2
        momentum = g1.T @ (tree.pull(-h * w) @ mean + h / 2 * slope1)
        metric = g1.T @ mass1 @ g1

        def force_left(z: Array) -> Array:
            at = end.row(np.append(x1[:nq], z))
            return np.asarray(metric @ z - momentum - h / 2 * self._forces(self.t + h, at))

        def force_slope(z: Array) -> Array:
            """By differences: whoever gives the forces says no derivatives."""
            here, eps = force_left(z), 1e-7 * max(1.0, float(np.max(np.abs(z))))
            return np.array([(force_left(z + eps * e) - here) / eps for e in np.eye(nv)]).T

        z1 = _root(force_left, force_slope, np.asarray(np.linalg.inv(metric)), x1[nq:])
        return np.concatenate([self.step.row(end.row(np.append(x1[:nq], z1))), checks])

    def _acting(self, t: float, x: Array) -> tuple[tuple[str, ...], list[Array]]:
        """Links that are pushed, and arguments of functions of what acts."""
        tau, pushes = self.signals.at(t, *self.step.independent(x))
        return tuple(pushes), [x, tau, *stacked(pushes)]

    def _forces(self, t: float, x: Array) -> Array:
        links, arguments = self._acting(t, x)
        traced = acting_forces(self.model, links, passive=self.step.passive)
        return np.asarray(traced(*arguments))

    def _accelerations(self, x: Array) -> Array:
        links, arguments = self._acting(self.t, x)
        traced = flow(self.model, links, passive=self.step.passive)
        return np.asarray(traced(*arguments))[self.model.nq :]


@dataclass(frozen=True)
class Tree:
    """The spanning tree of a robot: its Lagrangian, and motions of all joints over a step.

    ``places``: where the numbers of the robot's q stand among the tree's. ``closed``: which
    velocities are those of linkages and polynomials. ``plain`` joints' positions are numbers: their
    places in q and in v. ``groups``, which move by exponentials: joint, part of q, part of v.
    """

    robot: Model
    model: Model
    places: Places
    closed: NDArray[np.bool_]
    plain: tuple[Places, Places]
    groups: tuple[tuple[JointModel, slice, slice], ...]

    @staticmethod
    def of(model: Model) -> Tree:
        """Of a robot, made once."""
        return _tree(model)

    def at(self, q: Array) -> Array:
        """The tree's positions where the robot's are q."""
        return np.array(self.robot.spanning_positions(unstack(q)), dtype=float)

    def back(self, q: Array) -> Array:
        """The robot's positions."""
        return np.asarray(q[self.places])

    def lagrangian(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The mass matrix, and how the Lagrangian changes along each velocity."""
        nv = self.model.nv
        numbers = np.asarray(lagrangian(self.model)(q, v))
        return numbers[: nv * nv].reshape(nv, nv), numbers[nv * nv :]

    def moved(self, q: Array, motion: Array) -> Array:
        """Where ``motion`` leads from q."""
        result = q.copy()
        at, along = self.plain
        result[at] += motion[along]
        for joint, part, v in self.groups:
            result[part] = joint.integrate(q[part], motion[v])
        return result

    def between(self, q0: Array, q1: Array) -> Array:
        """The motion that leads from one to the other."""
        at, along = self.plain
        motion = np.empty(len(along) + sum(joint.nv for joint, _, _ in self.groups))
        motion[along] = q1[at] - q0[at]
        for joint, part, v in self.groups:
            motion[v] = joint.difference(q0[part], q1[part])
        return motion

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
def _tree(robot: Model) -> Tree:
    tree = spanning_tree(robot)
    plain: list[tuple[int, int]] = []
    groups: list[tuple[JointModel, slice, slice]] = []
    for node in tree.nodes:
        if node.joint.nv == 1:
            plain.append((node.q, node.v))
        elif node.joint.nv:
            q, v = slice(node.q, node.q + node.joint.nq), slice(node.v, node.v + node.joint.nv)
            groups.append((node.joint, q, v))
    places = np.zeros(robot.nq, dtype=np.intp)
    for cluster in robot.clusters:
        for body, part, _ in joint_slices(robot, cluster):
            first, node = cluster.q.start + part.start, robot.nodes[body]
            places[first : cluster.q.start + part.stop] = range(node.q, node.q + node.joint.nq)
    pairs: Places = np.array(plain, dtype=np.intp).reshape(-1, 2)
    closed = np.zeros(robot.n_joint_velocities, dtype=bool)
    for cluster in robot.clusters:
        closed[cluster.spanning_v] = cluster.varies
    return Tree(robot, tree, places, closed, (pairs[:, 0], pairs[:, 1]), tuple(groups))


SLOW = 0.25  # a chord's steps that shrink by less are not worth going on with
ENOUGH, ROUNDED = 1e-12, 1e-15  # steps, beside the numbers, at which it may, and must, end
IMAGINARY = 1e-30j


def _root(
    left: Callable[[Array], Array], slope: Callable[[Array], Array], inverse: Array, x: Array,
    unit: float = 0.0,
) -> Array:  # fmt: skip
    """x at which nothing is left: by chords with this inverse, where they are slow by Newton's.

    ``unit``: of what x is known to rounding only. It ends where steps no longer become smaller.
    Raises :class:`StepError`.
    """
    before = math.inf
    for _ in range(60):
        rest = left(x)
        change = inverse @ rest
        size = float(np.max(np.abs(change), initial=0.0))
        scale = float(np.max(np.abs(x), initial=max(unit, 1e-3)))
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
    if before <= ENOUGH * float(np.max(np.abs(x), initial=max(unit, 1e-3))):
        return x
    raise StepError("its equations do not converge; take shorter ones")


# ---- groups of rotations and motions ----


def adjoint(joint: JointModel, x: Array) -> Array:
    """ad of a joint's velocity x (..., nv): the Lie bracket with it, as a matrix."""
    if isinstance(joint, Planar):
        result = np.zeros((*x.shape[:-1], 3, 3), x.dtype)
        result[..., 0, 1], result[..., 1, 0] = -x[..., 2], x[..., 2]
        result[..., 0, 2], result[..., 1, 2] = x[..., 1], -x[..., 0]
        return result
    turn = _skew(x[..., :3])
    if not isinstance(joint, Floating):
        return turn
    result = np.zeros((*x.shape[:-1], 6, 6), x.dtype)
    result[..., :3, :3] = result[..., 3:, 3:] = turn
    result[..., 3:, :3] = _skew(x[..., 3:])
    return result


def _skew(w: Array) -> Array:
    """[w]x (..., 3, 3)."""
    result = np.zeros((*w.shape[:-1], 3, 3), w.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        result[..., i, j], result[..., j, i] = -w[..., k], w[..., k]
    return result


@cache
def _even_coefficients(count: int) -> tuple[float, ...]:
    """Those of (z/2) coth(z/2) in z²: Bernoulli numbers over factorials."""
    cosh = [Fraction(1, 4**k * factorial(2 * k)) for k in range(count)]
    sinhc = [Fraction(1, 4**k * factorial(2 * k + 1)) for k in range(count)]
    coefficients: list[Fraction] = []
    for k in range(count):
        coefficients.append(cosh[k] - sum(coefficients[j] * sinhc[k - j] for j in range(k)))
    return tuple(float(c) for c in coefficients)


def inverse_jacobian(ad: Array) -> Array:
    """Jr⁻¹ = ad/2 + (ad/2) coth(ad/2) of a Lie group from ad (..., n, n) of its logarithm.

    Log(Exp(x) Exp(δ)) = x + Jr⁻¹ δ; Jl⁻¹ is the same of -ad. A power series in ad, good to rounding
    for turns up to π, which is as far as logarithms go.
    """
    one, square = np.eye(ad.shape[-1]), ad @ ad
    turn = float(np.max(np.abs(ad), initial=0.0))
    coefficients = _even_coefficients(28 if turn > 0.3 else 10)
    result: Array = np.broadcast_to(coefficients[-1] * one, ad.shape)
    for c in reversed(coefficients[:-1]):
        result = c * one + square @ result
    return result + ad / 2
