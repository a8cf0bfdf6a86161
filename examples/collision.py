"""A leg with geared rotors and belts feels what pushes it, without a force sensor.

The momentum observer (De Luca and Mattone 2003) asks for no accelerations: with p = M v,
dp/dt = tau + Cᵀ v - gravity + tau_external, and

    r = K (p - p₀ - ∫ (tau + Cᵀ v - gravity + r) dt)

follows tau_external as a filter of K [1/s]. C is rm.coriolis, for which Ṁ = C + Cᵀ.

    python examples/collision.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
K = 60.0  # [1/s]
LINK = "ankle_link"
PUSH = np.array([0.0, 0.0, 0.0, 20.0, 0.0, 8.0])  # [N m, N] in the link's axes, at its origin
FROM, TO = 1.0, 1.4  # [s]
ALARM = 0.5  # [N m]
BENT = {"hip_ry_link_joint": -0.6, "knee_link_joint": 1.2, "ankle_link_joint": -0.6}  # [rad]
RATES = np.array([4.0, 5.0, 7.0])  # [rad/s]
SIZES = np.array([0.4, 0.5, 0.3])  # [rad]


@dataclass(frozen=True)
class Run:
    """Times (T,), what was felt, and what it was (T, nv); the force (T, 2) in the leg's plane."""

    t: Array
    felt: Array
    pushed: Array
    force: Array


def motion(duration: float = 2.0, step: float = 1e-3) -> rm.motion.Trajectory:
    """The leg swings under PD, and is pushed for a while."""
    model = rm.robots.load("belt_leg")
    start = model.configuration(BENT)
    gains = np.diagonal(rm.crba(model, start))

    def control(t: float, q: Array, v: Array) -> Array:
        error = model.difference(start, q) - SIZES * np.sin(RATES * t)
        off = v - SIZES * RATES * np.cos(RATES * t)
        return rm.gravity_force(model, q) - gains * (400.0 * error + 40.0 * off)

    def push(t: float, q: Array, v: Array) -> dict[str, Array]:
        return {LINK: PUSH} if FROM <= t < TO else {}

    return rm.simulate(
        model, start, SIZES * RATES, tau=control, hold=True, f_ext=push, duration=duration,
        step=step, method="rk4", progress=False,
    )  # fmt: skip


def observed(model: rm.Model, run: rm.motion.Trajectory) -> Array:
    """What pushes (T, nv), from positions, velocities and the motors' forces."""
    q, v, step = run.q, run.v, run.times[1]
    momentum = np.einsum("tij,tj->ti", rm.crba(model, q), v)
    rest = np.einsum("tji,tj->ti", rm.coriolis(model, q, v), v) - rm.gravity_force(model, q)
    driven = step * (run.tau[:-1] + 0.5 * (rest[:-1] + rest[1:]))
    r, integral = np.zeros_like(momentum), np.zeros(model.nv)
    for n in range(len(driven)):
        integral = integral + driven[n] + step * r[n]
        r[n + 1] = K * (momentum[n + 1] - momentum[0] - integral)
    return r


def feel(run: rm.motion.Trajectory) -> Run:
    """What the observer finds beside what there was."""
    model = run.model
    rows = rm.jacobian(model, run.q, LINK)
    on = (run.times >= FROM) & (run.times < TO)
    pushed = np.einsum("tji,j->ti", rows, PUSH) * on[:, None]
    felt = observed(model, run)
    plane = rows[:, [3, 5]]  # along its x and z
    force = np.einsum("tij,tj->ti", np.linalg.pinv(np.swapaxes(plane, 1, 2)), felt)
    return Run(run.times, felt, pushed, force)


def main() -> None:
    """When it is felt, and how well."""
    run = motion()
    estimate = feel(run)
    before = estimate.t < FROM
    alarm = estimate.t[np.argmax(np.abs(estimate.felt).max(axis=1) > ALARM)]
    settled = (estimate.t > FROM + 5.0 / K) & (estimate.t < TO)
    print(f"largest estimate before the push: {np.abs(estimate.felt[before]).max():.1e} N m")
    print(f"pushed at {FROM:.3f} s, detected at {alarm:.3f} s")
    force = estimate.force[settled].mean(axis=0)
    print(f"estimated force {force[0]:.2f}, {force[1]:.2f} N; true {PUSH[3]:.2f}, {PUSH[5]:.2f} N")
    model = run.model
    names = rm.parameters(model).names
    light = rm.with_parameters(model, {n: 0.0 for n in names if "rotor" in n and ".I" in n})
    deaf = observed(light, run)[before]
    print(f"false estimate without the rotors' inertias: {np.abs(deaf).max():.2f} N m")


if __name__ == "__main__":
    main()
