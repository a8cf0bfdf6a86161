"""A four-bar whose rocker turns as a function of its crank: lengths by gradients.

The rocker shall turn by 90° as log10 x while the crank turns by 60° as x goes from 1 to 2. At three
positions the lengths follow from Freudenstein's equation (1954), in closed form:

    K1 cos ψ - K2 cos φ + K3 = cos(φ - ψ),  K1 = d/a, K2 = d/c, K3 = (a² - b² + c² + d²)/(2 a c)

Exact derivatives through the closure of the loop lead Gauss-Newton there, and over the whole range
to the linkage of least mean square error; a search without derivatives finds the same by many more
evaluations.

    python examples/design/function_generator.py
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, minimize

import robomodel as rm

Array = NDArray[np.float64]
LENGTHS = ("coupler_pivot.x", "pin.predecessor.x", "pin.successor.x")  # a, b, c; d is 1
CRANK, ROCKER = np.radians(60.0), np.radians(90.0)
START = np.radians([45.0, 0.0])  # of crank and rocker
HUGE = 1e3  # [degrees] of a linkage that does not close


def body(name: str) -> str:
    """A link of 0.1 kg."""
    inertia = '<inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/>'
    return f'<link name="{name}"><inertial><mass value="0.1"/>{inertia}</inertial></link>'


def hinge(name: str, parent: str, child: str, x: float, more: str = "") -> str:
    """A joint about z."""
    return (
        f'<joint name="{name}" type="continuous" {more}><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 0 1"/></joint>'
    )


def linkage(d: float = 1.0, a: float = 0.7, b: float = 1.1, c: float = 0.6) -> rm.Model:
    """Ground, crank, coupler and rocker of these lengths [m]."""
    return rm.load(
        '<robot name="generator"><link name="ground"/>'
        + "".join(body(name) for name in ("crank", "coupler", "rocker"))
        + hinge("crank_pivot", "ground", "crank", 0.0, 'independent="true"')
        + hinge("coupler_pivot", "crank", "coupler", a)
        + hinge("rocker_pivot", "ground", "rocker", d)
        + '<loop name="pin" type="revolute"><predecessor link="coupler">'
        f'<origin xyz="{b} 0 0"/></predecessor><successor link="rocker"><origin xyz="{c} 0 0"/>'
        '</successor><axis xyz="0 0 1"/></loop></robot>'
    )


def wanted(x: Array) -> tuple[Array, Array]:
    """Angles of the crank and of the rocker, from where they start."""
    return CRANK * (x - 1.0), ROCKER * np.log10(x) / np.log10(2.0)


def freudenstein(phi: Array, psi: Array, d: float = 1.0) -> Array:
    """a, b, c by three pairs of angles."""
    rows = np.stack([np.cos(psi), -np.cos(phi), np.ones(3)], axis=1)
    k1, k2, k3 = np.linalg.solve(rows, np.cos(phi - psi))
    a, c = d / k1, d / k2
    return np.array([a, np.sqrt(a * a + c * c + d * d - 2.0 * a * c * k3), c])


@dataclass
class Generator:
    """The error of a linkage at crank angles ``phi``, where the rocker shall be at ``psi``."""

    model: rm.Model
    names: tuple[str, ...]
    phi: Array
    psi: Array
    q: Array  # a configuration for each, on the branch
    evaluations: int = 0

    def positions(self, values: Array) -> Array:
        """Closed configurations, the crank where it shall be; nan where there are none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return self.model.close(self.q, parameters=dict(zip(self.names, values, strict=True)))

    def error(self, values: Array) -> Array:
        """The rocker's errors [degrees]; large where the linkage does not close."""
        self.evaluations += 1
        rocker = self.model.joint_names.index("rocker_pivot")
        off = np.degrees(self.positions(values)[:, rocker] - self.psi)
        return np.nan_to_num(off, nan=HUGE)

    def slopes(self, values: Array) -> Array:
        """Their derivatives by the values, through the closure of the loop."""
        given = dict(zip(self.names, values, strict=True))
        rocker = self.model.joint_names.index("rocker_pivot")
        q = self.positions(values)
        by = rm.sensitivity(self.model, "close", q, self.names, parameters=given)
        return np.degrees(by[:, rocker])


def generator(names: tuple[str, ...], x: Array) -> Generator:
    """The problem at these x, on the branch on which the coupler is below the crank."""
    model = linkage()
    phi, psi = (angle + start for angle, start in zip(wanted(x), START, strict=True))
    first = {"crank_pivot": float(phi[0]), "coupler_pivot": -1.2, "rocker_pivot": float(psi[0])}
    guess = model.close(np.array([first[name] for name in model.joint_names]))
    q = []
    for angle in phi:
        guess = model.configuration({"crank_pivot": float(angle)}, guess=guess)
        q.append(guess)
    return Generator(model, names, phi, psi, np.array(q))


def by_gradients(problem: Generator, start: Array) -> Array:
    """The best lengths by Gauss-Newton in a trust region."""
    found = least_squares(problem.error, start, problem.slopes, xtol=1e-8, ftol=1e-10)
    return np.asarray(found.x)


def without_gradients(problem: Generator, start: Array) -> Array:
    """The same by Nelder and Mead's simplex."""
    options = {"maxfev": 5000, "xatol": 1e-8, "fatol": 1e-10}
    found = minimize(
        lambda x: float(np.sum(problem.error(x) ** 2)), start, method="Nelder-Mead", options=options
    )
    return np.asarray(found.x)


def precision_points(count: int = 3) -> Array:
    """Chebyshev's x between 1 and 2."""
    return 1.5 - 0.5 * np.cos(np.pi * (2 * np.arange(count) + 1) / (2 * count))


def main() -> None:
    """Print both problems' answers."""
    problem = generator(LENGTHS, precision_points())
    exact = freudenstein(problem.phi, problem.psi)
    found = by_gradients(problem, np.array([0.7, 1.1, 0.6]))
    print(f"three positions: a, b, c = {found.round(6)}, by Freudenstein {exact.round(6)}")
    print(f"  {problem.evaluations} evaluations")
    for label, solve in (("gradients", by_gradients), ("Nelder-Mead", without_gradients)):
        problem = generator(LENGTHS, np.linspace(1.0, 2.0, 41))
        values = solve(problem, np.array([0.7, 1.1, 0.6]))
        count, rms = problem.evaluations, np.sqrt(np.mean(problem.error(values) ** 2))
        print(f"whole range, {label}: rms error {rms:.4f}°, {count} evaluations, {values.round(6)}")


if __name__ == "__main__":
    main()
