"""Natural coordinates: constraints against differentiation, robots against the recursions."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from agreement import close
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import random_mechanism
from numpy.typing import NDArray
from test_armature import armed
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.estimation.factors import Euler, FactorBase, Prior, Reading, Trapezoid
from robomodel.estimation.graph import Graph
from robomodel.estimation.solve import solve
from robomodel.estimation.spaces import Vectors
from robomodel.model import build
from robomodel.papers.natural_coordinates import (
    Angle,
    Body,
    Coincide,
    Constraint,
    Distance,
    Driven,
    FixedAngle,
    Linear,
    Mechanism,
    Slider,
    Travel,
    body_mass_matrix,
    branches,
    compare_branches,
    natural,
    planar,
)

pytestmark = pytest.mark.slow  # the papers' own

Array = NDArray[np.float64]
AGREE = 1e-10


near = partial(close, tolerance=AGREE)


# ---- the library of constraints ------------------------------------------------------------------

ABCD = {"A": None, "B": None, "C": None, "D": None, "O": (0.3, -0.2), "P": (1.1, 0.4)}
LIBRARY: dict[str, tuple[Constraint, ...]] = {
    "distance": (Distance("A", "B", 0.7),),
    "distance to the ground": (Distance("A", "O", 0.7),),
    "coincide": (Coincide("A", "B"), Coincide("C", "P")),
    "fixed slider": (Slider("A", "O", "P"),),
    "mobile slider": (Slider("A", "B", "C"),),
    "absolute angle": (Angle("t", ("A", "B"), 0.7),),
    "relative angle": (Angle("t", ("A", "B"), 0.7, ("C", "D"), 1.3, -1.0, 0.4),),
    "angle to the ground": (Angle("t", ("A", "B"), 0.7, ("O", "P"), 1.0, 2.0, 0.1),),
    "fixed angle": (FixedAngle(("A", "B"), ("C", "D"), 0.6), FixedAngle(("A", "B"), None, 0.6)),
    "travel": (Travel("A", "B", "C", 0.8, 0.3, 0.2, "s"), Travel("A", "O", "P", 0.8, 0.3, 0.2)),
    "gear": (
        Angle("t", ("A", "B"), 0.7),
        Angle("u", ("C", "D"), 0.9, ("A", "B"), 0.7),
        Linear("gear", (("t", 3.0), ("u", -1.0)), 0.2),
    ),
}


def derivative(function: Callable[[Array], Array], q: Array) -> Array:
    """By complex steps, exact to rounding: the last axis is the derivative's."""
    h = 1e-30
    columns = [np.imag(function(q + 1j * h * unit)) / h for unit in np.eye(q.shape[-1])]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", LIBRARY)
def test_every_jacobian_against_differentiation(name: str) -> None:
    """Φ_q, Φ_qq, Φ̇_q, (Φ̇_q)_q and c; angles on all sides, so that both of their forms serve."""
    of = Mechanism(ABCD, (), LIBRARY[name])
    rows = of.conditions
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-3, 3, (2, 40, of.n))
    near(of.jacobian(q), derivative(rows.residual, q), tolerance=1e-13)
    hessian = derivative(rows.jacobian, q)
    near(of.hessian(q), hessian, least=1.0, tolerance=1e-13)
    rate = np.einsum("...ijk,...k->...ij", hessian, v)
    near(of.jacobian_rate(q, v), rate, least=1.0, tolerance=1e-13)
    near(
        of.jacobian_rate(q, v),
        derivative(lambda x: np.einsum("...ij,...j->...i", rows.jacobian(x), v), q),
        least=1.0,
        tolerance=1e-13,
    )
    third = derivative(lambda x: rows.jacobian_rate(x, v + 0j), q)
    near(of.hessian_rate(q, v), third, least=1.0, tolerance=1e-13)
    near(of.bias(q, v), -np.einsum("...ij,...j->...i", rate, v), least=1.0, tolerance=1e-13)
    if "t" in of.coordinates:
        assert np.max(np.abs(third)) > 0.1
        turning = np.sin(q[:, of.coordinates.index("t")])
        assert 0 < np.sum(np.abs(turning) > math.sqrt(0.5)) < 40


def test_constraints_as_printed() -> None:
    """Appendix III, by hand."""
    q = np.array([0.1, 0.2, 1.3, 0.9, -0.4, 0.5, 0.0, 0.0])
    (xa, ya, xb, yb, xc, yc) = q[:6]

    def row(*constraints: Constraint) -> tuple[Array, Array]:
        of = Mechanism(ABCD, (), constraints)
        extra = np.full(of.n - 8, 1.2)
        return of.residual(np.append(q, extra)), of.jacobian(np.append(q, extra))

    value, jacobian = row(Distance("A", "B", 0.7))
    near(value, np.array([(xb - xa) ** 2 + (yb - ya) ** 2 - 0.49]))
    expected = [2 * (xa - xb), 2 * (ya - yb), 2 * (xb - xa), 2 * (yb - ya), 0, 0, 0, 0]
    near(jacobian, np.array([expected]))
    value, jacobian = row(Slider("C", "A", "B"))
    near(value, np.array([(xb - xa) * (yc - ya) - (yb - ya) * (xc - xa)]))
    expected = [yb - yc, xc - xb, yc - ya, xa - xc, ya - yb, xb - xa, 0, 0]
    near(jacobian, np.array([expected]))
    value, jacobian = row(Angle("t", ("A", "B"), 0.7))  # |sin 1.2| > 1/√2
    near(value, np.array([xb - xa - 0.7 * math.cos(1.2)]))
    near(jacobian, np.array([[-1, 0, 1, 0, 0, 0, 0, 0, 0.7 * math.sin(1.2)]]))
    value, jacobian = row(Angle("t", ("A", "B"), 0.7, phase=-0.7))
    near(value, np.array([yb - ya - 0.7 * math.sin(0.5)]))
    near(jacobian, np.array([[0, -1, 0, 1, 0, 0, 0, 0, -0.7 * math.cos(0.5)]]))


# ---- bodies, by hand -----------------------------------------------------------------------------


def test_the_mass_matrix_of_a_body() -> None:
    """Kinetic energy of many particles that move as the body does."""
    rng = np.random.default_rng(2)
    places, masses = rng.uniform(-1, 1, (30, 2)), rng.uniform(0.1, 1, 30)
    total = masses.sum()
    com = masses @ places / total
    about = float(masses @ np.sum((places - com) ** 2, axis=1))
    body = Body("b", "i", "j", 0.8, total, (com[0], com[1]), about)
    angle, turn = 0.7, 1.9
    e = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-e[1], e[0]])
    start = rng.standard_normal(2)
    rates = np.concatenate([start, start + 0.8 * turn * across])
    moving = start + turn * (places[:, :1] * across - places[:, 1:] * e)
    kinetic = 0.5 * masses @ np.sum(moving**2, axis=1)
    near(np.array([0.5 * rates @ body_mass_matrix(body) @ rates]), np.array([kinetic]))


def paper(constraints: tuple[Constraint, ...] = (), **bodies: Body) -> Mechanism:
    """The paper's four-bar: crank 1, coupler 2, rocker √13, masses 1, 2 and 4, rods (section 7)."""
    root = math.sqrt(13)

    def rod(name: str, first: str, second: str, length: float, mass: float) -> Body:
        inertia = mass * length**2 / 12
        return Body(name, first, second, length, mass, (length / 2, 0.0), inertia)

    rods = {
        "crank": rod("crank", "A", "P1", 1.0, 1.0),
        "coupler": rod("coupler", "P1", "P2", 2.0, 2.0),
        "rocker": rod("rocker", "D", "P2", root, 4.0),
    }
    return Mechanism(
        {"A": (0.0, 0.0), "D": (4.0, 0.0), "P1": None, "P2": None},
        tuple((rods | bodies).values()),
        constraints,
        gravity=(0.0, -9.8),
    )


START = np.array([1.0, 0.0, 1.0, 2.0])


def test_the_papers_four_bar() -> None:
    """Four coordinates, three conditions; its motion against a model from a URDF text."""
    of = paper((Angle("theta", ("A", "P1"), 1.0),))
    assert of.coordinates == ("P1.x", "P1.y", "P2.x", "P2.y", "theta")
    q = np.append(START, 0.0)
    near(of.residual(q), np.zeros(4), least=1e-3)

    def rod(name: str, length: float, mass: float) -> str:
        about = mass * length**2 / 12
        return link(
            name,
            f'<inertial><origin xyz="{length / 2!r} 0 0"/><mass value="{mass}"/>'
            f'<inertia ixx="1e-3" iyy="{about!r}" izz="{about!r}" ixy="0" ixz="0" iyz="0"/>'
            "</inertial>",
        )

    root = math.sqrt(13)
    model = rm.load(
        robot(
            '<gravity xyz="0 -9.8 0"/>',
            rod("crank", 1.0, 1.0),
            rod("coupler", 2.0, 2.0),
            rod("rocker", root, 4.0),
            joint("theta", "base", "crank", mark=True),
            joint("j2", "crank", "coupler", "1 0 0", mark=False),
            joint("j3", "base", "rocker", "4 0 0", mark=False),
            loop("P2", "revolute", "coupler", "rocker", "2 0 0", f"{root!r} 0 0"),
        )
    )
    own = natural(model)
    guess = model.configuration({"theta": 0.0, "j2": math.pi / 2})
    v = np.array([[0.0], [1.7]])
    expected = rm.aba(model, guess, v, np.array([0.3]), backend="numpy")
    near(own.forward_dynamics(guess, v, np.array([0.3])), expected)
    s, r = of.split(q, ("theta",))
    assert s.shape == (5, 4)
    rates = v * r[:, 0]
    near(np.einsum("...ij,...j->...i", of.jacobian(q), rates), np.zeros((2, 4)), least=1e-3)
    torque = np.zeros(5)
    torque[4] = 0.3
    qdd, multipliers = of.accelerations(q, rates, torque)
    near(qdd[:, 4:], expected)
    near(of.independent_accelerations(q, rates, torque, ("theta",)), expected)
    near(of.independent_forces(q, rates, expected, ("theta",)), np.full((2, 1), 0.3), least=10.0)
    reaction = qdd @ of.mass_matrix + multipliers @ of.jacobian(q)
    near(reaction, np.broadcast_to(torque + of.weight, (2, 5)))
    # a couple at the crank's two points is the same torque, with and without the angle
    plain = paper()
    couple = plain.torque("crank", 0.3, START)
    near(plain.accelerations(START, rates[:, :4], couple)[0], qdd[:, :4])
    near(of.accelerations(q, rates, of.torque("crank", 0.3, q))[0], qdd)
    # a batch of configurations is each of them, whatever says which motion is independent
    both = np.stack([q, q + 1e-3])
    given = np.zeros((2, 1, 5))
    given[:, 0, 4] = 1.0, 2.0
    for chosen in (("theta",), given):
        one_by_one = [
            of.split(each, chosen if isinstance(chosen, tuple) else chosen[n])
            for n, each in enumerate(both)
        ]
        for found, wanted in zip(
            of.split(both, chosen), zip(*one_by_one, strict=True), strict=True
        ):
            near(found, np.stack(wanted))
    # and any coordinate that moves will do for independent
    near(plain.independent_accelerations(START, rates[:, :4], couple, ("P1.y",)), qdd[:, 1:2])


class Printed:
    """The paper's four-bar as its sections 2, 6 and 7 write it, for complex numbers too.

    With the crank's angle (n = 5) or without (n = 4): Φ with its rates, uniform rods, gravity.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.mass = np.zeros((n, n))
        for mass, first, second in ((1.0, None, 0), (2.0, 0, 2), (4.0, None, 2)):  # by points' x
            for i in (first, second):
                for j in (first, second):
                    if i is not None and j is not None:
                        size = mass / (3 if i == j else 6)
                        self.mass[i : i + 2, j : j + 2] += size * np.eye(2)
        self.force = np.zeros(n)
        self.force[[1, 3]] = -9.8 * np.array([0.5 + 1.0, 1.0 + 2.0])

    def rates(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Φ, Φ_q q̇ and Φ_q q̈ + Φ̇_q q̇: (43), (46), (47)."""
        ends = ((q[:2], v[:2], a[:2], 1.0), (q[2:4] - q[:2], v[2:4] - v[:2], a[2:4] - a[:2], 4.0),
                (q[2:4] - [4, 0], v[2:4], a[2:4], 13.0))  # fmt: skip
        rows = [(d @ d - length, 2 * d @ rate, 2 * (d @ second + rate @ rate))
                for d, rate, second, length in ends]  # fmt: skip
        if self.n == 5:
            t, td, tdd = q[4], v[4], a[4]
            if abs(np.sin(t.real)) > math.sqrt(0.5):
                rows.append((q[0] - np.cos(t), v[0] + np.sin(t) * td,
                             a[0] + np.sin(t) * tdd + np.cos(t) * td**2))  # fmt: skip
            else:
                rows.append((q[1] - np.sin(t), v[1] - np.cos(t) * td,
                             a[1] - np.cos(t) * tdd + np.sin(t) * td**2))  # fmt: skip
        phi, velocity, acceleration = np.array(rows).T
        return phi, velocity, acceleration

    def jacobian(self, q: Array) -> Array:
        still = np.zeros(self.n)
        return np.stack([self.rates(q, unit, still)[1] for unit in np.eye(self.n)], axis=1)

    def accelerations(self, q: Array, v: Array, push: Array) -> Array:
        """(6) with (7) where M can be inverted, else (5)."""
        phi, load = self.jacobian(q), self.force + push
        c = -self.rates(q, v, np.zeros(self.n))[2]
        if self.n == 4:
            inverse = np.linalg.inv(self.mass)
            gamma = np.linalg.inv(phi @ inverse @ phi.T)
            held = inverse @ phi.T @ gamma
            return (inverse - held @ phi @ inverse) @ load + held @ c
        system = np.block([[self.mass, phi.T], [phi, np.zeros((len(phi), len(phi)))]])
        return np.linalg.solve(system, np.append(load, c))[: self.n]

    def independent(self, q: Array, v: Array, push: Array) -> Array:
        """(9)-(15), with B the row that picks the last coordinate."""
        b = np.eye(self.n)[-1:]
        both = np.linalg.inv(np.vstack([self.jacobian(q), b]))
        s, r = both[:, :-1], both[:, -1:]
        drift = s @ -self.rates(q, v, np.zeros(self.n))[2]
        return np.linalg.solve(r.T @ self.mass @ r, r.T @ (self.force + push - self.mass @ drift))


def test_a_driven_crank() -> None:
    """(1)-(3) with Φ_t: the drive's force is that of inverse dynamics, motions are prescribed."""
    free = paper((Angle("theta", ("A", "P1"), 1.0),))
    turn = Driven("theta", lambda t: (1 + np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    of = replace(free, constraints=(*free.constraints, turn))
    t, h, zero = 0.3, 1e-4, np.zeros(5)
    start = of.close(np.array([0.5, 0.8, 1.0, 2.0, 1.0]))
    assert start[4] == pytest.approx(1.0, abs=1e-12)
    q = of.close(start, t=t)
    assert q[4] == pytest.approx(1 + np.sin(0.9), abs=1e-12)
    v = np.linalg.solve(of.jacobian(q), of.driven_rates(t))
    a, multipliers = of.accelerations(q, v, zero, t)
    before, after = of.close(q, t=t - h), of.close(q, t=t + h)
    near((after - before) / (2 * h), v, tolerance=1e-6)
    near((after - 2 * q + before) / h**2, a, tolerance=1e-4)
    near(-multipliers[-1:], free.independent_forces(q, v, a[4:], ["theta"]))
    assert of.independent_accelerations(q, v, zero, [], t=t).shape == (0,)

    count, step = 41, 2.5e-3
    at = step * np.arange(count)
    motion = np.array([of.close(start, t=x) for x in at])
    rates = np.linalg.solve(of.jacobian(motion), of.driven_rates(at)[..., None])[..., 0]
    graph = planar.forward(of, count, step, q=motion[0], v=rates[0])
    solution = solve(graph, {"q": motion + 0.01, "v": rates + 0.1, "a": np.zeros((count, 5))})
    assert solution.converged
    near(solution.values["q"], motion)
    at_t = [part[np.newaxis] for part in (q, v, a)]
    for factor, x, data in (
        (planar.PositionConstraints(of), at_t[:1], [[t]]),
        (planar.VelocityConstraints(of), at_t[:2], [[t]]),
        (planar.AccelerationConstraints(of), at_t, [[t]]),
        (planar.PlanarDynamics(of), at_t, [[*zero, t]]),
    ):
        assert np.abs(factor.evaluate(x, np.array(data))[0]).max() < 1e-10
    with pytest.raises(ValueError, match="theta"):
        replace(of, constraints=(*of.constraints, Driven("thet", turn.motion)))


@pytest.mark.parametrize("angle", [False, True])
def test_factors_as_printed(angle: bool) -> None:
    """(21)-(32): errors by the paper's formulas, Jacobians by complex steps through them."""
    of = paper((Angle("theta", ("A", "P1"), 1.0),) if angle else ())
    own, n, h, z = Printed(of.n), of.n, 0.02, ("theta",) if angle else ()
    last = slice(n - 1, n)
    near(of.mass_matrix, own.mass)
    near(of.weight, own.force)
    vectors = Vectors(n)
    rng = np.random.default_rng(6)
    zero = np.zeros(n)
    printed: list[tuple[FactorBase, Callable[..., Array]]] = [
        (Prior("q", vectors), lambda q: q),
        (Euler("q", "v", h, vectors), lambda q, then, v: then - q - h * v),
        (Trapezoid("q", "v", h, vectors), lambda q, then, v, w: then - q - h / 2 * (v + w)),
        (planar.PositionConstraints(of), lambda q: own.rates(q, zero, zero)[0]),
        (planar.VelocityConstraints(of), lambda q, v: own.rates(q, v, zero)[1]),
        (planar.PlanarDynamics(of), lambda q, v, a: own.accelerations(q, v, zero) - a),
        (planar.PlanarDynamics(of, forces="Q"),
         lambda q, v, a, push: own.accelerations(q, v, push) - a),
    ]  # fmt: skip
    if angle:
        printed += [
            (planar.PositionConstraints(of, z),
             lambda q, x: np.append(own.rates(q, zero, zero)[0], q[last] - x)),
            (planar.VelocityConstraints(of, z),
             lambda q, v, x: np.append(own.rates(q, v, zero)[1], v[last] - x)),
            (planar.AccelerationConstraints(of, z),
             lambda q, v, a, x: np.append(own.rates(q, v, a)[2], a[last] - x)),
            (planar.PlanarDynamics(of, z), lambda q, v, x: own.independent(q, v, zero) - x),
            (planar.PlanarDynamics(of, z, forces="Q"),
             lambda q, v, x, push: own.independent(q, v, push) - x),
        ]  # fmt: skip
    for factor, formula in printed:
        names = [name for name, _ in factor.variables]
        values = [rng.uniform(-2, 2, 1 if name in ("z", "zd", "zdd") else n) for name in names]
        e, slopes = factor.evaluate([x[np.newaxis] for x in values], None)
        near(e[0], formula(*values), least=1.0)
        for i, slope in enumerate(slopes):

            def by_one(x: Array, i: int = i, of: Callable[..., Array] = formula,
                       at: tuple[Array, ...] = tuple(values)) -> Array:  # fmt: skip
                return of(*at[:i], x, *at[i + 1 :])

            rows = derivative(by_one, values[i])
            near(np.broadcast_to(slope, (1, *rows.shape))[0], rows, least=1.0)
    q, v = values[0], values[1]
    if angle:  # (8)-(15)
        s, r = of.split(q, z)
        stacked = np.vstack([own.jacobian(q), np.eye(n)[-1:]])
        near(stacked @ np.column_stack([s, r]), np.eye(n))
        near(of.independent_accelerations(q, v, zero, z), own.independent(q, v, zero))
    else:  # (4)-(7), (33)
        near(of.accelerations(q, v, zero)[0], own.accelerations(q, v, zero))


def test_data_tell_the_branch() -> None:
    """Evidences beside dense linear algebra, with a null space by SVD; mirrored branches alike."""
    of = paper((Angle("theta", ("A", "P1"), 1.0),))
    q = of.close(np.array([1.0, 0.0, 1.0, 2.0, 0.0]), held=("theta",))
    both = branches(of, q, ("theta",))
    assert len(both) == 2
    near(both[0], q)
    near(both[1], q * [1, 1, 1, -1, 1])  # the crank lies along the ground
    graph = Graph({"q": Vectors(5)}, 1).add(planar.PositionConstraints(of), 0.0)
    graph = graph.add(Reading("q", (4,), 5), 0.02, data=[0.0])
    starts = [{"q": x[np.newaxis]} for x in both]
    near(compare_branches(graph, starts).probabilities, np.array([0.5, 0.5]))
    near(compare_branches(graph, starts, prior=[1, 3]).probabilities, np.array([0.25, 0.75]))
    graph = graph.add(planar.PlanarMarker(of, "P2"), [2.0, 3.0], data=[2.6, 1.4])
    estimate = compare_branches(graph, starts)
    logs = []
    for solution in estimate.solutions:
        at = solution["q"]
        conditions = of.jacobian(at)[0]
        blocks = [np.eye(5)[4:] / 0.02, of.point_jacobian("P2") / [[2.0], [3.0]]]
        errors = [at[0, 4:] / 0.02, (of.point("P2", at)[0] - [2.6, 1.4]) / [2.0, 3.0]]
        free = np.linalg.svd(conditions)[2][4:].T
        half = np.concatenate(blocks) @ free
        logs.append(-0.5 * float(np.sum(np.concatenate(errors) ** 2))
                    - 0.5 * np.linalg.slogdet(conditions @ conditions.T)[1]
                    - 0.5 * np.linalg.slogdet(half.T @ half)[1])  # fmt: skip
        assert solution.log_evidence == pytest.approx(logs[-1], abs=1e-10)
    ratio = math.exp(logs[1] - logs[0])
    near(estimate.probabilities, np.array([1, ratio]) / (1 + ratio))
    assert 0.1 < ratio < 0.9
    assert estimate.best is estimate.solutions[0]
    twice = graph.add(planar.PositionConstraints(of), 0.0)
    with pytest.raises(ValueError, match="repeat each other"):
        _ = solve(twice, starts[0]).log_evidence
    with pytest.raises(ValueError, match="hold every freedom"):
        branches(of, q, ())


def test_both_branches_close() -> None:
    of = paper((Angle("theta", ("A", "P1"), 1.0),))
    found = []
    for side in (2.0, -2.0):
        q = of.close(np.array([1.0, 0.0, 1.0, side, 0.5]), held=("theta",))
        near(of.residual(q), np.zeros(4), least=1e-2)
        assert q[4] == 0.5
        found.append(float(q[3]))
    assert found[0] > 0 > found[1]
    with pytest.raises(rm.errors.ClosureError, match="does not close") as error:
        paper((Distance("P1", "P2", 3.0),)).close(START)
    assert error.value.residual > 0.1
    assert error.value.loops


def test_motion_keeps_its_energy() -> None:
    """Runge and Kutta's steps on the KKT accelerations, where only the integrator errs."""
    of = paper()

    def rate(state: Array) -> Array:
        return np.concatenate([state[4:], of.accelerations(state[:4], state[4:], np.zeros(4))[0]])

    state, h = np.concatenate([START, np.zeros(4)]), 1e-3
    before = sum(of.energy(state[:4], state[4:]))
    for _ in range(200):
        k1 = rate(state)
        k2 = rate(state + h / 2 * k1)
        k3 = rate(state + h / 2 * k2)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(state + h * k3))
    kinetic, potential = of.energy(state[:4], state[4:])
    assert kinetic > 0.5
    assert abs(kinetic + potential - before) < 1e-10
    assert np.max(np.abs(of.residual(state[:4]))) < 1e-11


# ---- several points on a body --------------------------------------------------------------------


def test_a_further_point_in_three_ways() -> None:
    """Where the body has it; as coordinates of its own, tied; as coordinates at two distances."""
    e = (0.8, 0.6)
    coupler = replace(paper().bodies[1], points={"E": e})
    derived = paper(coupler=coupler)
    tied = replace(derived, points={**derived.points, "E": None})
    far = math.dist(e, (2.0, 0.0))
    rods = (Distance("P1", "E", 1.0), Distance("P2", "E", far))
    apart = Mechanism(tied.points, paper().bodies, rods, gravity=(0.0, -9.8))
    assert (derived.n, tied.n, apart.n) == (4, 6, 6)
    here = derived.point("E", START)
    near(here, np.array([1.0 - 0.6, 0.8]))  # the coupler points upwards
    q = np.append(START, here)
    near(tied.residual(q), np.zeros(5), least=1e-3)
    near(apart.residual(q), np.zeros(5), least=1e-3)
    rates = derived.split(START, ("P1.y",))[1][:, 0] * 0.9
    v = np.append(rates, derived.point_jacobian("E") @ rates)
    push = np.array([3.0, -1.0])
    expected = derived.accelerations(START, rates, derived.force("E", push))[0]
    moved = derived.point_jacobian("E") @ expected  # no other part: E is affine in q
    for of in (tied, apart):
        found = of.accelerations(q, v, of.force("E", push))[0]
        near(found, np.append(expected, moved))


def test_bodies_share_points_that_neither_has_as_its_basis() -> None:
    """Two ternary links pinned at third points: tied once, in any order of the bodies."""
    left = Body("left", "A", "B", 1.0, 1.0, (0.5, 0.1), 0.1, {"E": (0.6, 0.5)})
    right = Body("right", "D", "C", 1.0, 2.0, (0.4, -0.1), 0.2, {"E": (0.5, -0.6)})
    points = {"A": (0.0, 0.0), "D": (1.2, 0.0), "B": None, "C": None}
    for bodies in ((left, right), (right, left)):
        of = Mechanism(points, bodies)
        assert len(of.conditions.rows) == 4  # two lengths, and two that tie
        q = of.close(np.array([1.0, 0.1, 0.3, -0.2]))
        there = [
            of.point(b.first, q) + (x * along + y * np.array([-along[1], along[0]]))
            for b in bodies
            for along in [of.point(b.second, q) - of.point(b.first, q)]
            for x, y in [b.points["E"]]
        ]
        near(there[0], there[1])


def test_sliders() -> None:
    """A slider-crank, its guide the ground's and then a moving body's, against the same robot."""
    crank = Body("crank", "O", "B", 0.5, 1.0, (0.25, 0.0), 0.02)
    rod = Body("rod", "B", "C", 1.2, 2.0, (0.6, 0.1), 0.2)
    fixed = Mechanism(
        {"O": (0.0, 0.0), "X": (1.0, 0.1), "W": (3.0, 0.1), "B": None, "C": None},
        (crank, rod),
        (Slider("C", "X", "W"), Angle("theta", ("O", "B"), 0.5)),
    )
    guide = Body("guide", "H", "K", 2.0, 3.0, (1.0, 0.0), 0.5)
    mobile = Mechanism(
        {"O": (0.0, 0.0), "H": (1.0, 0.1), "K": None, "B": None, "C": None},
        (crank, rod, guide),
        (
            Slider("C", "H", "K"),
            Angle("theta", ("O", "B"), 0.5),
            FixedAngle(("H", "K"), None, 0.0),
        ),
    )
    q = fixed.close(np.array([0.4, 0.3, 1.5, 0.1, 0.6]), held=("theta",))
    held = np.concatenate([[3.0, 0.1], q])
    near(mobile.residual(held), np.zeros(6), least=1e-2)
    v = 1.3 * fixed.split(q, ("theta",))[1][:, 0]
    moved = np.concatenate([[0.0, 0.0], v])
    force = np.zeros(5)
    force[4] = 0.7
    expected = fixed.accelerations(q, v, force)[0]
    found = mobile.accelerations(held, moved, np.concatenate([[0.0, 0.0], force]))[0]
    near(found[2:], expected)
    near(found[:2], np.zeros(2), least=1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paper((Distance("P1", "P9", 1.0),)), "no point 'P9'"),
        (lambda: paper(last=Body("last", "P1", "Q", 1.0)), "no point 'Q'"),
        (lambda: paper(last=Body("last", "P1", "P2", 0.0)), "body 'last' needs two points"),
        (lambda: replace(paper(), inertias={"theta": 1.0}), "no coordinate 'theta'"),
        (
            lambda: Mechanism(
                {"A": None},
                (
                    Body("b", "A", "E", 1.0, points={"F": (1.0, 0.0)}),
                    Body("c", "A", "F", 1.0, points={"E": (1.0, 0.0)}),
                ),
            ),
            "bodies carry each other: point 'E' depends on itself",
        ),
        (lambda: paper().split(START, ("theta",)), "no coordinate 'theta'"),
        (lambda: paper().split(START, ("P1.x", "P1.y")), "leave 1 independent ones, not 2"),
        (lambda: paper().residual(np.zeros(3)), "q needs 4 numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# ---- robots --------------------------------------------------------------------------------------


def check(model: rm.Model, seed: int = 1, count: int = 4) -> None:
    """Every function against the cluster recursions, at random states."""
    own, rng = natural(model), np.random.default_rng(seed)
    of = own.mechanism
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a = rng.standard_normal((2, count, model.nv))
    at, rates = own.coordinates(q), own.rates(q, v)
    assert of.n - len(of.conditions.rows) == model.nv
    near(of.residual(at), np.zeros((count, of.n - model.nv)), least=1.0)
    kept = np.einsum("...ij,...j->...i", of.jacobian(at), rates)
    near(kept, np.zeros(kept.shape), least=1.0 + float(np.max(np.abs(rates))))
    mass = rm.crba(model, q, backend="numpy")
    near(own.mass_matrix(q), mass)
    tau = rm.rnea(model, q, v, a, backend="numpy")
    size = float(np.max(np.abs(mass))) + float(np.max(np.abs(tau)))
    near(own.inverse_dynamics(q, v, a), tau, least=size)
    expected = rm.aba(model, q, v, tau, backend="numpy")
    condition = max(1.0, 1e-3 * float(np.max(np.linalg.cond(mass))))
    near(own.forward_dynamics(q, v, tau), expected, least=condition)
    near(own.null_space_dynamics(q, v, tau), expected, least=condition)
    kinetic, potential = of.energy(at, rates)
    exact = rm.energy(model, q, v, backend="numpy")
    near(kinetic, exact[0])
    near(potential - potential[0], exact[1] - exact[1][0], least=1.0)


@pytest.mark.parametrize(
    "name",
    ["four_bar", "six_bar", "five_bar", "crank_rocker", "planar_leg_linkage", "belt_leg"],
)
def test_robots(name: str) -> None:
    check(rm.robots.load(name))


@pytest.mark.parametrize("name", ["planar_leg_linkage", "belt_leg", "six_bar"])
def test_armatures(name: str) -> None:
    check(build(armed(rm.robots.load(name).description)))


@pytest.mark.parametrize("kind", ["four_bar", "rod_four_bar", "six_bar", "planar_chain"])
def test_random_linkages(kind: str) -> None:
    check(loaded([kind], 0))


@pytest.mark.tables
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["four_bar", "rod_four_bar", "six_bar", "planar_chain"])
def test_more_random_linkages(kind: str) -> None:
    for seed in range(1, 6):
        check(loaded([kind], seed))


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 12))]
)
def test_random_linkages_with_sliders(seed: int) -> None:
    check(loaded(["slider_crank"], seed))


def loaded(kinds: list[str], seed: int) -> rm.Model:
    made = random_mechanism(
        np.random.default_rng([seed, 7]), kinds, n_joints=0, floating_base=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        return rm.load(made.text)


def planar_tree(rng: np.random.Generator) -> str:
    """Revolute, prismatic and planar joints, some coupled, on a plane that stands anyhow."""
    parts = [
        link("ground", ""),
        joint("stand", "base", "ground", _three(rng), kind="fixed", rpy=_three(rng)),
    ]
    names, plain = ["ground"], []
    for i in range(int(rng.integers(1, 7))):
        kind = str(rng.choice(["continuous", "prismatic", "planar"], p=[0.5, 0.3, 0.2]))
        angle = rng.uniform(-3, 3)
        axis = {
            "continuous": f"0 0 {rng.choice([-1, 1])}",
            "prismatic": f"{math.cos(angle)!r} {math.sin(angle)!r} 0",
            "planar": f"0 0 {rng.choice([-1, 1])}",
        }[kind]
        more = ""
        if kind != "planar" and plain and rng.random() < 0.3:
            more = f'<mimic joint="{rng.choice(plain)}" multiplier="{rng.uniform(-2, 2)}"/>'
        x, y, z, turn = rng.uniform(-1, 1, 4).tolist()
        parts.append(link(f"l{i}"))
        parts.append(
            joint(f"j{i}", str(rng.choice(names)), f"l{i}", f"{x} {y} {z}", kind=kind, axis=axis,
                  rpy=f"0 0 {3 * turn}", more=more)
        )  # fmt: skip
        names.append(f"l{i}")
        if kind != "planar" and not more:
            plain.append(f"j{i}")
    return robot(*parts)


def _three(rng: np.random.Generator) -> str:
    return " ".join(str(x) for x in rng.uniform(-1, 1, 3))


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_random_trees(seed: int) -> None:
    check(rm.load(planar_tree(np.random.default_rng(seed))), count=2)


CHAIN = (
    *(link(f"l{i}") for i in range(4)),
    joint("a", "base", "l0"),
    joint("b", "l0", "l1", "0.5 0 0"),
    joint("c", "l1", "l2", "0.6 0.1 0"),
)
FOURTH = joint("d", "l2", "l3", "0.4 0 0")
X, XY = '<axis xyz="1 0 0"/>', '<axis xyz="1 0 0"/><axis2 xyz="0 1 0"/>'
LOOPS = {
    "a planar loop across the plane": (
        *CHAIN, FOURTH, loop("guide", "planar", "base", "l3", "0.9 0 0", more=X)
    ),
    "one between links": (*CHAIN, FOURTH, loop("guide", "planar", "l0", "l3", "0.4 0 0", more=X)),
    "a planar loop in the plane": (*CHAIN, FOURTH, loop("idle", "planar", "base", "l3")),
    "a universal loop that locks": (
        *CHAIN, FOURTH, loop("pin", "universal", "base", "l3", "0.8 0.2 0", more=XY)
    ),
    "a prismatic loop on the ground": (
        *CHAIN, FOURTH, loop("way", "prismatic", "base", "l3", "0 0.7 0", more=X)
    ),
    "a prismatic loop to the ground": (
        *CHAIN, FOURTH, loop("way", "prismatic", "l3", "base", "0 0.1 0", "0.2 0.7 0", more=X)
    ),
    "a rod to the ground": (
        *CHAIN, FOURTH, loop("rod", "rod", "base", "l3", "0.9 0 0.3", more='<length value="0.8"/>')
    ),
    "a coupled loop": (four_bar()[: -len("</robot>\n")].split("\n", 2)[2], link("w"),
        joint("j_w", "base", "w", "0 0.3 0"), coupling("gear", {"j_w": 1.0, "j_crank": 2.5}, 0.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_loops_of_every_type(name: str) -> None:
    check(rm.load(robot(*LOOPS[name])))


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_conditions_that_repeat_others_are_dropped() -> None:
    """A parallelogram with a third bar, which only moves because its lengths are what they are."""
    bars = [
        part
        for n in "uvw"
        for part in (link(n), joint(f"j_{n}", "base", n, f"0 {'uvw'.index(n)} 0"))
    ]
    text = robot(
        *bars,
        link("plate"),
        joint("j_plate", "u", "plate", "0.5 0 0"),
        loop("first", "revolute", "plate", "v", "0 1 0", "0.5 0 0"),
        loop("second", "revolute", "plate", "w", "0 2 0", "0.5 0 0"),
    )
    model = rm.load(text)
    assert model.nv == 1
    own = natural(model)
    assert len(own.mechanism.dropped) == 1
    check(model)


def test_planes_are_named_as_they_lie() -> None:
    for name, axes in (("four_bar", [[1, 0, 0], [0, 1, 0]]), ("belt_leg", [[1, 0, 0], [0, 0, 1]])):
        np.testing.assert_allclose(natural(rm.robots.load(name)).axes, axes, atol=1e-15)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((joint("out", "l0", "l1", axis="0 1 0"),), r"joint 'out' \(continuous\) leaves the plane"),
        ((joint("up", "l0", "l1", kind="prismatic"),), r"joint 'up' \(prismatic\) leaves"),
        ((joint("ball", "l0", "l1", kind="spherical"),), r"joint 'ball' \(spherical\) leaves"),
        ((joint("wide", "l0", "l1", kind="planar", axis="1 0 0"),), r"joint 'wide' \(planar\)"),
        ((joint("thread", "l0", "l1", kind="screw", more='<pitch value="0.1"/>'),), "'thread'"),
    ],
)  # fmt: skip
def test_robots_that_leave_the_plane_are_refused(parts: tuple[str, ...], message: str) -> None:
    model = rm.load(robot(link("l0"), link("l1"), joint("a", "base", "l0"), *parts))
    with pytest.raises(rm.DescriptionError, match=message) as error:
        natural(model)
    assert error.value.line is not None


def test_other_robots_are_refused_by_name() -> None:
    with pytest.raises(rm.DescriptionError, match="natural coordinates are for planar robots"):
        natural(rm.robots.load("mini_cheetah"))
    spatial = robot(
        *CHAIN, FOURTH, loop("odd", "universal", "base", "l3", "0.8 0.2 0",
                             more='<axis xyz="1 0 1"/><axis2 xyz="0 1 0"/>')
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(spatial)
        with pytest.raises(rm.DescriptionError, match=r"loop 'odd' \(universal\) does not lie"):
            natural(model)


def test_the_documentation_runs() -> None:
    text = (Path(__file__).parents[2] / "docs/papers/natural-coordinates.md").read_text()
    names: dict[str, object] = {}
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "natural.md", "exec"), names)
