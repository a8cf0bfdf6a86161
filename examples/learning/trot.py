"""Mini Cheetah with its twelve rotors learns to walk forwards: an evolution strategy in NumPy.

    python examples/learning/trot.py [--generations 40] [--robots 256] [--seed 0]

A gait is eight numbers: frequency, amplitudes, phase and rest of sines that move the targets of PD
loops at hips and knees, diagonal legs together. Every generation tries one gait on each robot for
two seconds, in one simulation: exact gears and rigid contact, motors' efforts limited. The reward
is the way forwards, less what sideways motion and falls cost. The mean of the search follows the
best eighth (cross-entropy method), which needs no gradients.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
LEGS = ("FR", "FL", "HR", "HL")
FEET = [(f"{leg}_foot_contact", (0.0, 0.0, 0.0), 0.02) for leg in LEGS]
DURATION, CALL = 2.0, 0.02  # [s]
START = np.array([2.0, 0.0, 0.3, 0.4, 0.0, 0.8, -0.8, 1.6])  # Hz, rad
SPREAD = np.array([0.7, 0.1, 0.2, 0.3, 1.0, 1.0, 0.2, 0.3])


def robots(n: int, *, approximate: bool = False) -> tuple[rm.Simulation, Array]:
    """N robots that stand on their feet, and where they start."""
    model = rm.robots.load("mini_cheetah")
    if approximate:  # rotors as armature of the joints, as most simulators have them
        model = rm.approximate_tree(model)
    angles = {"hip": -0.8, "knee": 1.6}
    bent = {f"{leg}_{joint}_link_joint": angle for leg in LEGS for joint, angle in angles.items()}
    q = model.configuration(bent)
    q[2] += 0.02 - min(rm.frame_pose(model, q, foot)[2, 3] for foot, _, _ in FEET)
    gains = np.where(np.arange(model.nv) < 6, 0.0, 60.0)
    sim = rm.Simulation(
        model, n, step=1e-3, substeps=round(CALL / 1e-3), ground=rm.Ground(0.7), contacts=FEET,
        pd=(gains, gains / 30.0, np.zeros(model.nv)), saturate=True,
    )  # fmt: skip
    return sim, q


def targets(model: rm.Model, gaits: Array, t: float) -> Array:
    """Positions (n, nv) that the loops pull to: sines at hips and knees."""
    frequency, side, hip, knee, phase, lift, hip_rest, knee_rest = gaits.T
    result = np.zeros((len(gaits), model.nv))
    for i, name in enumerate(model.dof_names):
        leg, _, rest = name.partition("_")
        if leg not in LEGS:
            continue
        angle = 2.0 * np.pi * frequency * t + (np.pi if leg in ("FR", "HL") else 0.0)
        if rest.startswith("hip"):
            result[:, i] = hip_rest + hip * np.sin(angle)
        elif rest.startswith("knee"):
            bend = np.maximum(np.sin(angle + 0.5 * np.pi + phase), 0.0)
            result[:, i] = knee_rest + knee * lift * bend
        else:
            result[:, i] = side * (1.0 if leg.endswith("L") else -1.0)
    return result


def rewards(sim: rm.Simulation, start: Array, gaits: Array) -> Array:
    """The way forwards [m] within the time, less sideways motion and falls."""
    sim.reset(q=start)
    upright = np.ones(sim.n, bool)
    for k in range(round(DURATION / CALL)):
        ramp = min(1.0, k * CALL / 0.3)
        wanted = targets(sim.model, gaits, k * CALL)
        rest = np.zeros(sim.model.nv)
        rest[6:] = start[7:]
        sim.targets[:] = (1.0 - ramp) * rest + ramp * wanted
        sim.step()
        up = 1.0 - 2.0 * (sim.q[:, 3] ** 2 + sim.q[:, 4] ** 2)  # of the base's z axis
        upright &= (up > 0.7) & np.isfinite(sim.q).all(axis=1)
    way = np.nan_to_num(sim.q[:, 0] - start[0]) - 0.5 * np.abs(np.nan_to_num(sim.q[:, 1]))
    return np.where(upright, way, np.minimum(way, 0.0) - 0.5)


def learn(generations: int, n: int, seed: int) -> tuple[Array, list[float]]:
    """The mean gait at the end, and the reward of the mean in each generation."""
    rng = np.random.default_rng(seed)
    sim, start = robots(n)
    mean, spread, curve = START.copy(), SPREAD.copy(), []
    for _ in range(generations):
        gaits = mean + spread * rng.standard_normal((n, len(mean)))
        gaits[0] = mean
        gaits[:, 0] = np.clip(gaits[:, 0], 0.5, 4.0)
        reward = rewards(sim, start, gaits)
        curve.append(float(reward[0]))
        best = gaits[np.argsort(-reward)[: n // 8]]
        mean = best.mean(axis=0)
        spread = 0.9 * best.std(axis=0) + 0.1 * spread * 0.5
    return mean, curve


def main() -> None:
    """Learn, and say what it reaches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--robots", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.process_time()
    mean, curve = learn(options.generations, options.robots, options.seed)
    steps = options.generations * options.robots * round(DURATION / 1e-3)
    spent = time.process_time() - begin
    some = curve[:: max(1, len(curve) // 10)]
    print(f"way in {DURATION:g} s by generation:", *(f"{x:.2f}" for x in some))
    print(f"gait: {np.round(mean, 2).tolist()}")
    print(f"{steps / 1e6:.1f} million steps in {spent:.0f} s of processor time")
    for name, approximate in (("exact rotors", False), ("armature instead", True)):
        way = float(rewards(*robots(1, approximate=approximate), mean[None])[0])
        print(f"{name}: {way:.3f} m, {way / DURATION:.2f} m/s")


if __name__ == "__main__":
    main()
