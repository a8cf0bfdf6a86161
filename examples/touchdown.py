"""Touchdown of Mini Cheetah after a fall of 5 cm: what its twelve geared rotors do.

The exact robot stands beside the two usual simplifications, on the tree without rotors: their
reflected inertia on the diagonal of the mass matrix (armature), and none at all.

    python examples/touchdown.py
"""

from __future__ import annotations

import math

import numpy as np

import robomodel as rm

METHODS = {"cluster": "exact", "approximate": "armature", "unconstrained": "no rotors"}
STANCE = {"abad": 0.0, "hip": -0.8, "knee": 1.6}  # [rad]
LANDINGS = {"four feet": ("FR", "FL", "HR", "HL"), "a trot's two feet": ("FR", "HL")}
SPEED = math.sqrt(2 * 9.81 * 0.05)  # [m/s]


def touchdown(model: rm.Model, legs: tuple[str, ...]) -> dict[str, list[float]]:
    """Impulses and velocity jumps of one landing: a label → its number by each method."""
    joints = [name for name in model.dof_names if name.split("_")[0] in ("FR", "FL", "HR", "HL")]
    q = model.configuration({name: STANCE[name.split("_")[1]] for name in joints})
    v = np.zeros(model.nv)
    v[model.dof_names.index(f"{model.floating_base}.vz")] = -SPEED
    feet = [f"{leg}_foot_contact" for leg in legs]
    impacts = [  # one state each: not worth a kernel
        rm.impulse(model, q, v, feet, method=method, backend="numpy") for method in METHODS
    ]

    rows = {}
    for n, leg in enumerate(legs):
        for axis, i in (("forward", 0), ("upward", 2)):
            rows[f"{leg} foot, {axis} impulse [N s]"] = [p[n, i] for _, p in impacts]
    shown = [name for name in joints if name.startswith(legs) and "abad" not in name]
    for name in (*shown, f"{model.floating_base}.wy", f"{model.floating_base}.vz"):
        n = model.dof_names.index(name)
        unit = "m/s" if name.endswith(".vz") else "rad/s"
        rows[f"{name}, jump [{unit}]"] = [after[n] - v[n] for after, _ in impacts]
    return rows


def main() -> None:
    """Print the landings."""
    model = rm.robots.load("mini_cheetah")
    for name, legs in LANDINGS.items():
        print(f"{'on ' + name:40}" + "".join(f"{title:>12}" for title in METHODS.values()))
        for label, numbers in touchdown(model, legs).items():
            print(f"{label:40}" + "".join(f"{x:12.4f}" for x in numbers))
        print()


if __name__ == "__main__":
    main()
