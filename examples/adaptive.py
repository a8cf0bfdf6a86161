"""A five-bar follows a motion with parameters it learns on the way (Slotine, Li 1987).

    tau = Y(q, v, a_r, v_r) π̂ - K s,  v_r = v_d - Λ e,  s = v - v_r,  dπ̂/dt = -Γ Yᵀ s

With Y π = M a_r + C v_r + gravity + damping of v_r, and Ṁ - 2C skew, loop included,
V = sᵀ M s / 2 + (π̂ - π)ᵀ Γ⁻¹ (π̂ - π) / 2 falls by sᵀ (K + D) s, whatever π̂ is at first.

    python examples/adaptive.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import robomodel as rm

Array = NDArray[np.float64]
LAMBDA = 4.0  # [1/s]
GAIN = 0.8  # [N m s/rad]
LEARNING = 6.0  # times the square of what a parameter may be
DAMPING = 0.2  # [N m s/rad], which the file does not know of
RATES = np.array([2.0, 3.1])  # [rad/s]
SIZES = np.array([0.4, 0.3])  # [rad]


@dataclass(frozen=True)
class Run:
    """A run (T, …): errors of positions, V, what K and the damping took, estimates of π."""

    t: Array
    error: Array
    energy: Array
    taken: Array
    estimates: Array
    residual: float


def robots() -> tuple[rm.Model, rm.Model]:
    """The robot of the file, and the one that is there: heavier by half, and damped."""
    model = rm.robots.load("five_bar")
    p = rm.parameters(model)
    there = {name: 1.5 * value for name, value in zip(p.names, p.values, strict=True)}
    there |= {f"{joint}.damping": DAMPING for joint in model.dof_names}
    return model, rm.with_parameters(model, there)


def follow(duration: float = 8.0, learning: bool = True) -> Run:
    """Follow sines, beginning with the file's parameters; without ``learning``, ending so."""
    model, robot = robots()
    n, start = model.nv, model.neutral()
    truth, guess = rm.parameters(robot).values, rm.parameters(model).values
    kinds = np.array([name.rpartition(".")[2] for name in rm.parameters(model).names])
    may = np.array([np.abs(guess[kinds == kind]).max() for kind in kinds])  # as others of its kind
    may[kinds == "damping"] = DAMPING
    gamma = LEARNING * may**2
    near = start

    def desired(t: float) -> tuple[Array, Array, Array]:
        x, v = SIZES * np.sin(RATES * t), SIZES * RATES * np.cos(RATES * t)
        return x, v, -SIZES * RATES**2 * np.sin(RATES * t)

    def closed(x: Array) -> Array:
        nonlocal near
        near = model.integrate(near, x - model.difference(start, near))
        return near

    def at(t: float, state: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
        q, v, pi = closed(state[:n]), state[n : 2 * n], state[2 * n : -1]
        x, speed, pull = desired(t)
        error, off = state[:n] - x, v - speed
        reference = speed - LAMBDA * error
        pull = pull - LAMBDA * off
        y = rm.regressor(model, q, v, pull, reference=reference)
        return q, v, pi, v - reference, error, y

    def rates(t: float, state: Array) -> Array:
        q, v, pi, s, _, y = at(t, state)
        a = rm.aba(robot, q, v, y @ pi - GAIN * s, passive=True)
        return np.concatenate([v, a, -learning * gamma * (y.T @ s), [s @ s * (GAIN + DAMPING)]])

    begin = np.concatenate([np.zeros(n), SIZES * RATES, guess, [0.0]])
    t = np.linspace(0.0, duration, 201)
    solution = solve_ivp(rates, (0.0, duration), begin, "DOP853", t, rtol=1e-8, atol=1e-10)
    errors, energies, gaps = [], [], []
    for time, state in zip(t, solution.y.T, strict=True):
        q, _, pi, s, error, _ = at(time, state)
        lacks = (pi - truth)[gamma > 0.0]
        energies.append(0.5 * s @ rm.crba(robot, q) @ s + 0.5 * lacks**2 @ (1 / gamma[gamma > 0.0]))
        errors.append(error)
        gaps.append(np.abs(model.residual(q)).max())
    return Run(t, np.array(errors), np.array(energies), solution.y[-1], solution.y[2 * n : -1].T,
               float(max(gaps)))  # fmt: skip


def main() -> None:
    """With and without learning."""
    model, robot = robots()
    for title, learning in (("file's parameters", False), ("adaptive", True)):
        run = follow(learning=learning)
        first, last = (
            np.sqrt(np.mean(run.error[part] ** 2)) for part in (run.t < 2.0, run.t > run.t[-1] - 2)
        )
        print(f"{title}: error {1e3 * first:.2f} mrad at the start, {1e3 * last:.3f} at the end")
    off = np.abs((run.energy + run.taken) / run.energy[0] - 1.0).max()
    print(f"V falls from {run.energy[0]:.4f} to {run.energy[-1]:.4f}, balance to {off:.0e}")
    print(f"loop closed to {run.residual:.0e}")
    base, truth = rm.base_parameters(model).matrix, rm.parameters(robot).values
    felt = np.abs(base @ truth) > 0.0
    off = [np.abs((base @ (pi - truth))[felt]) for pi in run.estimates[[0, -1]]]
    print(f"error at least halved: {np.sum(off[1] < 0.5 * off[0])} of {felt.sum()} base parameters")


if __name__ == "__main__":
    main()
