"""1024 Mini Cheetahs, each with its own masses, rotors and friction, stand up and are pushed.

Domain randomisation as learning uses it: parameters are arrays with one number for each robot, in
one compiled program. PD loops at the joints hold a crouch; after a quarter of a second gravity is
tilted by a tenth, as on a slope. How far trunks have sunk and slid is what the randomisation does.

    python examples/randomised.py [robots]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

STEP, SUBSTEPS, CONTROL = 1e-3, 10, 50  # [s], substeps of a step, steps


def parameters_of(model: rm.Model, n: int, rng: np.random.Generator) -> dict[str, NDArray]:
    """Masses of trunk and thighs, armature of knees' rotors and dry friction, about the file's."""
    file = rm.parameters(model)
    base = model.bodies[0].name
    thighs = [body.name for body in model.bodies if "hip_link" in body.name]
    given = {f"{base}.mass": file[f"{base}.mass"] * rng.uniform(0.8, 1.5, n)}
    given |= {f"{name}.mass": file[f"{name}.mass"] * rng.uniform(0.9, 1.1, n) for name in thighs}
    for joint in model.joints:
        if joint.nv == 1 and "knee_rotor" in joint.name:
            given[f"{joint.name}.armature"] = rng.uniform(0.0, 3e-5, n)
        elif joint.nv == 1 and "knee_link" in joint.name:
            given[f"{joint.name}.friction"] = rng.uniform(0.05, 0.6, n)
    given["gravity.x"] = np.zeros(n)
    return given


def stood(n: int = 1024, seed: int = 0) -> tuple[rm.Simulation, NDArray]:
    """The robots after half a second, and where their trunks began (n, 3)."""
    model, rng = rm.robots.load("mini_cheetah"), np.random.default_rng(seed)
    gains = np.r_[np.zeros(6), np.full(model.nv - 6, 60.0)]
    crouch = model.neutral()
    for i, name in enumerate(model.dof_names[6:]):
        crouch[7 + i] += -0.8 if "hip" in name else 1.6 if "knee" in name else 0.0
    target = model.difference(model.neutral(), crouch)
    feet = [(body.name, (0.0, 0.0, -0.2)) for body in model.bodies if "knee_link" in body.name]
    crouch[2] = -min(float(rm.frame_pose(model, crouch, foot)[2, 3]) for foot in feet) + crouch[2]
    sim = rm.Simulation(
        model, n, step=STEP, substeps=SUBSTEPS, ground=rm.Ground(friction=0.7), contacts=feet,
        parameters=parameters_of(model, n, rng), pd=(gains, 0.02 * gains, target, "joints"),
    )  # fmt: skip
    sim.reset(q=crouch)
    start = sim.frame(model.bodies[0].name)[:, :3, 3].copy()
    for k in range(CONTROL):
        if k == CONTROL // 2:
            sim.parameters["gravity.x"][:] = 1.0
        sim.step()
    return sim, start


def main() -> None:
    """Print what robots did, and how long they took."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    before = time.perf_counter()
    sim, start = stood(n)
    seconds = time.perf_counter() - before
    moved = sim.frame(sim.model.bodies[0].name)[:, :3, 3] - start
    mass = sim.parameters[f"{sim.model.bodies[0].name}.mass"]
    print(
        f"{n} robots, {len(sim.parameters)} parameters each, {sim.time[0]:.2f} s: {seconds:.1f} s"
    )
    print(
        f"trunks sank by {-1e3 * moved[:, 2].mean():.1f} ± {1e3 * moved[:, 2].std():.1f} mm, moved "
        f"along the slope by {1e3 * moved[:, 0].mean():.1f} ± {1e3 * moved[:, 0].std():.1f} mm"
    )
    print(
        f"correlation of sinking with the trunk's mass {np.corrcoef(mass, -moved[:, 2])[0, 1]:.2f}"
    )


if __name__ == "__main__":
    main()
