"""What a change of the house must not change: ``python -m benchmarks.freeze``.

One table of the public names, of all algorithms' results on all shipped robots at seeded states,
and of their operation counts. It is compared with the committed one, ``benchmarks/freeze.json``, to
1e-12; ``--write`` writes it anew.

    python -m benchmarks.freeze                     # everything
    python -m benchmarks.freeze tello four_bar      # the names, and these robots
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import robomodel as rm
from benchmarks.shared.race import Array
from robomodel.dynamics.algorithm import AlgorithmSpec, Method, traced_algorithm
from robomodel.kernels.program import Program

TABLE = Path(__file__).with_suffix(".json")
TOLERANCE = 1e-12  # of a result's norm, or of 1 where it is smaller
STATES = 2
PACKAGES = (
    "robomodel", "robomodel.control", "robomodel.dynamics", "robomodel.identification",
    "robomodel.motion",
)  # fmt: skip
ALGORITHMS: tuple[str, ...] = (
    "rnea", "aba", "crba", "bias_force", "gravity_force", "coriolis", "mass_inverse", "armature",
    "hybrid", "actuator_map", "reflected", "passive_force", "saturate", "energy", "regressor",
    "reference_regressor", "momentum_regressor", "center_of_mass",
    "center_of_mass_velocity", "center_of_mass_acceleration", "center_of_mass_jacobian",
    "centroidal_map", "centroidal_momentum", "rnea_derivatives", "aba_derivatives",
    "rnea_hessian_product", "jacobian", "frame_pose", "frame_velocity", "frame_acceleration",
    "frame_bias", "gyroscope_derivatives", "accelerometer_derivatives", "efpa", "contact",
    "contact_derivatives",
)  # fmt: skip
METHODS: dict[str, tuple[Method, ...]] = {
    "rnea": ("projection", "approximate", "unconstrained"),
    "aba": ("orthonormal", "projection", "lagrange", "approximate", "unconstrained"),
}
OF_A_FRAME = {
    "jacobian", "frame_pose", "frame_velocity", "frame_acceleration", "frame_bias",
    "gyroscope_derivatives", "accelerometer_derivatives", "efpa", "contact", "contact_derivatives",
}  # fmt: skip
OF_MOTORS = {"actuator_map", "reflected", "saturate"}


def names() -> dict[str, list[str]]:
    """Public names by package, and those of a model."""
    public = {name: sorted(importlib.import_module(name).__all__) for name in PACKAGES}
    public["Model"] = sorted(name for name in dir(rm.Model) if not name.startswith("_"))
    return public


def tasks(model: rm.Model) -> Iterator[tuple[str, AlgorithmSpec]]:
    """Algorithms with their methods and options, by a label."""
    link = model.bodies[-1].name
    for name in ALGORITHMS:
        if name in OF_MOTORS and not model.actuators:
            continue
        frames = ((link, (0.1, -0.2, 0.3)),) if name in OF_A_FRAME else ()
        known = model.dof_names[:1] if name == "hybrid" else ()
        methods: tuple[Method, ...] = ("cluster", *METHODS.get(name, ()))
        for method in methods:
            label = name if method == "cluster" else f"{name}:{method}"
            yield label, AlgorithmSpec(name, frames, method=method, known=known)
    yield "rnea with a wrench", AlgorithmSpec("rnea", f_ext=(link,))
    yield "aba with a wrench", AlgorithmSpec("aba", f_ext=(link,))
    yield "aba with springs", AlgorithmSpec("aba", passive=True)


def digest(result: Array) -> list[float]:
    """The norm of an array, and two sums over its entries with weights that all differ."""
    x = np.ravel(result)
    at = np.arange(x.size)
    return [float(np.linalg.norm(x)), float(x @ np.cos(1 + at)), float(x @ np.sin(2 + at**2))]


def computed(program: Program, inputs: Array) -> Array:
    """Its outputs (states, n) at inputs (states, m)."""
    with np.errstate(all="ignore"):
        outputs = program(list(inputs.T))
    return np.stack([np.broadcast_to(x, len(inputs)) for x in outputs], axis=-1)


def of_robot(robot: str, q: Array | None) -> dict[str, Any]:
    """States, and by algorithm a digest of the results and the number of operations."""
    model = rm.robots.load(robot)
    if q is None:
        rng = np.random.default_rng(1)
        q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(STATES)])
    rng = np.random.default_rng(2)
    x = {name: rng.normal(size=(STATES, model.nv)) for name in ("v", "a", "tau", "reference", "w")}
    x |= {"q": q, "given": x["a"], "forces": rng.normal(size=(STATES, 3))}
    wrench = rng.normal(size=(STATES, 6))
    results: dict[str, list[float]] = {}
    flops: dict[str, int] = {}
    for label, task in tasks(model):
        program = traced_algorithm(model, task).program
        inputs = [x.get(name, wrench) for name in task.sizes(model)]
        results[label] = digest(computed(program, np.concatenate(inputs, axis=-1)))
        flops[label] = program.flops
    moved = model.integrate(q, 0.1 * x["v"])
    near = model.close(q + 1e-3 * np.cos(np.arange(model.nq)))
    for label, array in {
        "neutral": model.neutral(),
        "close": near,
        "integrate": moved,
        "difference": model.difference(q, moved),
        "residual": model.residual(q + 0.01),
        "constraint_jacobian": model.constraint_jacobian(q),
        "constraint_bias": model.constraint_bias(q, x["v"]),
        "joint_positions": _stacked(model.joint_positions(q)),
        "joint_velocities": _stacked(model.joint_velocities(q, x["v"])),
        "joint_accelerations": _stacked(model.joint_accelerations(q, x["v"], x["a"])),
        "limits": np.clip([model.lower, model.upper, model.effort_limit], -1e9, 1e9),
        "parameters": rm.parameters(model).values,
    }.items():
        results[label] = digest(np.asarray(array))
    return {"q": q.tolist(), "results": results, "flops": flops}


def _stacked(joints: dict[str, Any]) -> Array:
    return np.concatenate([np.ravel(x) for x in joints.values()])


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """In what a robot's new entries differ from the committed ones; fewer operations are fine."""
    for kind in ("results", "flops"):
        for label in sorted(before[kind].keys() ^ after[kind].keys()):
            yield f"{label}: only {'before' if label in before[kind] else 'now'}"
    for label in before["results"].keys() & after["results"].keys():
        old, new = np.array(before["results"][label]), np.array(after["results"][label])
        error = np.max(np.abs(new - old)) / max(1.0, abs(old[0]))
        if not error <= TOLERANCE:
            yield f"{label}: results differ by {error:.2g}"
    for label in before["flops"].keys() & after["flops"].keys():
        old, new = before["flops"][label], after["flops"][label]
        if new > old:
            yield f"{label}: {new} operations, were {old} (+{100 * (new / old - 1):.1f} %)"


def _text(table: dict[str, Any]) -> str:
    """JSON with a line for each entry of a robot."""
    lines = [f'{{"names": {json.dumps(table["names"])},', '"robots": {']
    for i, (robot, entries) in enumerate(table["robots"].items()):
        lines.append(f'"{robot}": {{"q": {json.dumps(entries["q"])},')
        lines.append(f' "flops": {json.dumps(entries["flops"])},')
        rows = [f' "{label}": {json.dumps(x)}' for label, x in entries["results"].items()]
        lines += [' "results": {', ",\n".join(rows), "}}" + "," * (i + 1 < len(table["robots"]))]
    return "\n".join([*lines, "}}", ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("robots", nargs="*", default=rm.robots.names())
    parser.add_argument("--write", action="store_true", help="write the table anew")
    options = parser.parse_args(arguments)
    committed = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    failures = 0
    public = names()
    for package, now in public.items():
        if gone := sorted(set(committed.get("names", {}).get(package, ())) - set(now)):
            failures += 1
            print(f"{package}: no longer has {', '.join(gone)}")
    table: dict[str, Any] = {"names": public, "robots": {}}
    for robot in options.robots:
        before = committed.get("robots", {}).get(robot)
        after = of_robot(robot, np.array(before["q"]) if before else None)
        table["robots"][robot] = after
        lines = list(differences(before, after)) if before else ["not in the table"]
        failures += len(lines)
        for line in sorted(lines):
            print(f"{robot}: {line}", flush=True)
    if options.write:
        TABLE.write_text(_text(table), encoding="utf-8")
    print(f"{failures} differences from {TABLE.name}")
    return 0 if options.write or not failures else 1


if __name__ == "__main__":
    sys.exit(main())
