"""The cluster paper's inverse dynamics over blocks: ``python -m benchmarks.paper.blocks``.

The paper finds projection 22 to 38 % slower than the cluster algorithm, which needs exactly as many
operations where zeros and ones are left out. Here both run over dense blocks whose sizes are known
at run time (``blocks.cpp``, over Eigen), by one recursion whose nodes are clusters or bodies: what
they differ by is how much is multiplied by zero and how often something is called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import robomodel as rm
from benchmarks.paper import experiments
from benchmarks.shared.machine import processor
from benchmarks.shared.race import Array, Race, agree, in_fresh_processes
from benchmarks.shared.rivals import built
from robomodel.mechanism.constraints import LinearConstraint, Unconstrained
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Floating, Revolute

SOURCE = Path(__file__).with_name("blocks.cpp")
WHERE = {"clusters": 0, "bodies, G dense": 1, "bodies, G sparse": 2}
"""What the nodes are, and where G stands."""


def linear(model: rm.Model) -> bool:
    """Whether G is constant, as ``blocks.cpp`` wants it."""
    return all(isinstance(c.constraint, LinearConstraint | Unconstrained) for c in model.clusters)


def tables(model: rm.Model, clustered: bool) -> list[Array]:
    """What ``make`` takes: of bodies, of nodes, and of the robot."""
    joints = [slice(n.v, n.v + n.joint.nv) for n in model.nodes]
    node_of = [n.cluster if clustered else body for body, n in enumerate(model.nodes)]
    within = [node_of[:body].count(node) for body, node in enumerate(node_of)]
    bodies, placements, inertias = [], [], []
    for body, n in enumerate(model.nodes):
        kind = 0 if isinstance(n.joint, Floating) else 1 + n.joint.k
        assert isinstance(n.joint, Floating | Revolute)
        same = n.parent != WORLD and node_of[n.parent] == node_of[body]
        outside = -1 if same or n.parent == WORLD else within[n.parent]
        if same:  # the last ancestor that is not in the node
            at = n.parent
            while at != WORLD and node_of[at] == node_of[body]:
                at = model.nodes[at].parent
            outside = -1 if at == WORLD else within[at]
        inside = within[n.parent] if same else -1
        bodies.append([node_of[body], inside, outside, kind, n.q, n.v])
        still = n.transform(np.zeros(model.n_joint_positions) if kind else floating(n.joint))
        placements.append([*np.ravel(still.matrix()), *still.offset])
        mass, h, about = n.inertia.mass, np.array(n.inertia.h, float), np.array(n.inertia.inertia)
        hx = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
        about = about + 0.0
        inertias.append(np.block([[about, hx], [-hx, mass * np.eye(3)]]))
    nodes = []
    if clustered:
        for c in model.clusters:
            size = c.spanning_v.stop - c.spanning_v.start
            nodes.append([c.parent, c.v.start, c.nv, c.spanning_v.start, size])
    else:
        for n, constraint in zip(model.nodes, joints, strict=True):
            size = constraint.stop - constraint.start
            nodes.append([n.parent, constraint.start, size, constraint.start, size])
    matrix = np.zeros((model.n_joint_positions, model.nq))
    g = np.zeros((model.n_joint_velocities, model.nv))
    for c in model.clusters:
        constraint = c.constraint
        free = isinstance(constraint, Unconstrained)
        g[c.spanning_v, c.v] = np.eye(c.nv) if free else constraint.matrix
        matrix[c.spanning_q, c.q] = (
            np.eye(c.q.stop - c.q.start) if free else constraint.position_matrix
        )
    return [
        np.array(bodies, np.int32), np.array(placements, float), np.array(inertias, float),
        np.array(nodes, np.int32), matrix, g, np.array(model.gravity, float),
    ]  # fmt: skip


def floating(joint: Floating) -> Array:
    """The neutral position."""
    return np.array(joint.neutral())


class Blocks:
    """``blocks.cpp``, compiled."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.make.restype = ctypes.c_void_p

    def batch(
        self, model: rm.Model, where: int, states: tuple[Array, ...], out: Array
    ) -> Callable[[], object]:
        """Inverse dynamics of all states."""
        body, placement, inertia, node, matrix, g, gravity = tables(model, where == 0)
        at = self._library.make(
            len(body), *map(_pointer, (body, placement, inertia)), len(node), _pointer(node),
            model.nq, model.nv, *(len(matrix), len(g)), *map(_pointer, (matrix, g, gravity)), where,
        )  # fmt: skip
        pointers = [_pointer(x) for x in (*states, out)]
        given = ctypes.c_void_p(at), ctypes.c_int64(len(out)), *pointers

        def action(_alive: object = (states, out)) -> None:
            self._library.rnea(*given)

        return action


def _pointer(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def measure(effort: experiments.Effort) -> list[dict[str, Any]]:
    """Nanoseconds a state on the paper's robots whose G is constant; empty without a compiler.

    The least of each of several fresh processes.
    """
    runs = in_fresh_processes(effort.processes, _in_one_process, effort)
    return [
        several[0] | {"ns": {name: min(row["ns"][name] for row in several) for name in WHERE}}
        for several in zip(*runs, strict=True)
    ]


def _in_one_process(effort: experiments.Effort) -> list[dict[str, Any]]:
    libraries, _ = built(SOURCE)
    rows: list[dict[str, Any]] = []
    for system in experiments.robots() if libraries else ():
        model = system.model
        if not linear(model):
            continue
        states = experiments.random_states(model, effort.states, effort.poses)
        expected = rm.compile(model, "rnea")(*states)
        race = Race(effort.rounds)
        for library, compiler in libraries:
            blocks = Blocks(library)
            for name, where in WHERE.items():
                out = np.zeros_like(expected)
                action = blocks.batch(model, where, states, out)
                action()
                agree(f"{system.name}, {name}", out, expected, 1e-10)
                race.add(f"{compiler}: {name}", action, effort.states)
        times = race.run()
        for _, compiler in libraries:
            ns = {name: times[f"{compiler}: {name}"].minimum for name in WHERE}
            rows.append({"system": system.name, "compiler": compiler, "ns": ns})
    return rows


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """What was measured, a line a robot and compiler."""
    texts = []
    for row in rows:
        ns = row["ns"]
        share = [f"{name} {x:.0f} ({100 * (x / ns['clusters'] - 1):+.0f} %)"
                 for name, x in ns.items()]  # fmt: skip
        texts.append(f"{row['system']}, {row['compiler']}: {', '.join(share)} ns a state")
    return texts


if __name__ == "__main__":
    print(processor())
    print("\n".join(lines(measure(experiments.Effort(states=256)))))
