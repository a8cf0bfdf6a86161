"""A geared leg and a four-bar leg are identified from noisy logs of motions made for it.

The robots that are there differ from their files in every body and rotor, and have losses of which
the files say nothing. Forces are known to 1 % of their size.

    python examples/identifying.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
NOISE = 0.01  # of each coordinate's forces
LEGS = {"belt_leg": (0.0, 0.0, -9.81), "planar_leg_linkage": (1.0, -9.0, -3.0)}  # as they hang


@dataclass(frozen=True)
class Found:
    """A fit, and errors of forces on a fresh motion (nv,), before and after, as shares; ``rotors``:
    errors of inertias about their axes, of those that the motion tells.
    """

    fit: rm.identification.Identified
    motion: rm.identification.Excitation
    before: Array
    after: Array
    rotors: dict[str, float]


def hidden(model: rm.Model, rng: np.random.Generator) -> dict[str, float]:
    """Parameters of a robot that can exist: scaled bodies with a lump on each, other rotors."""
    p = rm.parameters(model)
    values = dict(zip(p.names, p.values, strict=True))
    for body in model.bodies:
        share = rng.uniform(0.6, 1.4) if "rotor" in body.name else rng.uniform(0.85, 1.15)
        for name in p.names:
            if name.startswith(f"{body.name}."):
                values[name] *= share
        if "rotor" in body.name:
            continue
        lump, (x, y, _) = 0.1 * body.mass, rng.uniform(-0.05, 0.05, 3)
        added = (lump, lump * x, lump * y, 0.0, lump * y * y, -lump * x * y, 0.0, lump * x * x, 0.0,
                 lump * (x * x + y * y))  # fmt: skip
        for kind, more in zip(("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
                              added, strict=True):  # fmt: skip
            values[f"{body.name}.{kind}"] += more
    return values


def identified(name: str, seed: int = 0) -> Found:
    """From the file to the robot."""
    rng = np.random.default_rng(seed)
    model = rm.robots.load(name, gravity=LEGS[name])
    motion = rm.excitation(model, seed=seed)
    y = rm.regressor(model, motion.q, motion.v, motion.a)
    values = hidden(model, rng)
    weight = np.sqrt(np.mean(motion.tau**2, axis=0)).max()
    for i, label in enumerate(rm.parameters(model).names):
        size = np.sqrt(np.mean(y[..., i] ** 2))
        if label.endswith((".damping", ".friction")) and size > 0.0:
            values[label] = 0.03 * weight / size * rng.uniform(0.5, 1.5)
    robot = np.array(list(values.values()))

    clean = y @ robot
    noise = NOISE * np.sqrt(np.mean(clean**2, axis=0)) * rng.normal(size=clean.shape)
    fit = rm.identify(model, motion.q, motion.v, motion.a, clean + noise)

    fresh = rm.excitation(model, seed=seed + 1, tries=1, steps=1)
    y = rm.regressor(model, fresh.q, fresh.v, fresh.a)
    size = np.sqrt(np.mean((y @ robot) ** 2, axis=0))
    before, after = (
        np.sqrt(np.mean((y @ (pi - robot)) ** 2, axis=0)) / size
        for pi in (rm.parameters(model).values, fit.values)
    )
    rotors = {}
    for joint in model.joints:
        if "rotor" not in joint.child:
            continue
        axis = "xyz"[int(np.argmax(np.abs(joint.axis)))]
        i = fit.names.index(f"{joint.child}.I{axis}{axis}")
        if fit.information_gain[i] > 0.9:
            rotors[joint.child] = abs(fit.values[i] / robot[i] - 1.0)
    return Found(fit, motion, before, after, rotors)


def main() -> None:
    """A table for each leg."""
    for name in LEGS:
        result = identified(name)
        print(f"{result.motion.model.name}: {len(result.motion.t)} samples, condition "
              f"{result.motion.condition:.1f} of {result.motion.rank} parameters")  # fmt: skip
        print(f"  {'force of':24} {'file':>8} {'found':>8}   on another motion")
        for joint, old, new in zip(
            result.motion.model.dof_names, result.before, result.after, strict=True
        ):
            print(f"  {joint:24} {100 * old:7.1f}% {100 * new:7.2f}%")
        for rotor, error in result.rotors.items():
            print(f"  {rotor:24} inertia off by {100 * error:.1f}%")


if __name__ == "__main__":
    main()
