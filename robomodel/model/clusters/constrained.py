"""From what a file says of a constrained cluster to its problem, and the solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.description import Loop, Rows3
from robomodel.errors import DescriptionError
from robomodel.model.closure import Geometry, Linear
from robomodel.model.clusters.couplings import analyse_couplings
from robomodel.model.clusters.loops import analyse_loops
from robomodel.model.clusters.problem import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    ClusterSolution,
    Column,
)
from robomodel.model.clusters.suggested_axes import suggest_axes
from robomodel.model.constraints.links import Link
from robomodel.model.constraints.loop_joints import loop_joint
from robomodel.model.constraints.tree import TreeConstraint
from robomodel.model.graph import WORLD, Tree
from robomodel.model.joints import Array
from robomodel.model.options import labels


@dataclass(frozen=True, slots=True)
class ConstrainedCluster:
    """The bodies of a cluster and their joints, as their constraint sees them.

    ``axes`` (internal axes) and ``heavy`` (has a mass or an inertia) are of all bodies of the tree.
    """

    tree: Tree
    axes: Sequence[Rows3]
    heavy: Sequence[bool]
    bodies: range
    links: tuple[Link, ...]

    def start(self, *, clamp: bool) -> Array:
        """Spanning positions from which the neutral configuration is sought."""
        start: list[float] = []
        for body, link in zip(self.bodies, self.links, strict=True):
            joint, values = self.tree.joints[body], link.joint.neutral()
            if link.joint.nq == 1:
                value = values[0] if joint.initial is None else joint.initial
                if clamp and joint.type != "continuous":
                    value = min(max(value, joint.limits.lower), joint.limits.upper)
                values = (value,)
            start.extend(values)
        return np.array(start)

    def problem(self, constraints: Sequence[TreeConstraint]) -> ClusterProblem:
        """What analysis needs to know of the cluster under these constraints."""
        local = {body: i for i, body in enumerate(self.bodies)}
        loops = [
            loop_joint(constraint.loop, self.tree, self.axes, local)
            for constraint in constraints
            if constraint.loop
        ]
        couplings = [constraint for constraint in constraints if not constraint.loop]
        linear = []
        for constraint in couplings:
            merged: dict[int, float] = {}
            for body, coefficient in constraint.terms:
                merged[local[body]] = merged.get(local[body], 0.0) + coefficient
            terms = tuple((at, k) for at, k in merged.items() if k)
            if not terms:
                raise DescriptionError(
                    "its terms cancel, so it relates nothing; remove it", constraint.source
                )
            linear.append(Linear(constraint.name, terms, constraint.offset))
        geometry = Geometry(self.links, tuple(loops), tuple(linear))
        tolerances = [constraint.loop.tolerance for constraint in constraints if constraint.loop]
        return ClusterProblem(
            self.tree.joints[self.bodies.start].child,
            geometry,
            self._columns({constraint.follower for constraint in couplings}),
            tuple(constraint.source for constraint in constraints if constraint.loop),
            tuple(constraint.source for constraint in couplings),
            self.start(clamp=bool(loops)),
            ClosureTolerance.of(tolerances, geometry.scale),
        )

    def solution(
        self, problem: ClusterProblem, constraints: Sequence[TreeConstraint], *, advise: bool
    ) -> ClusterSolution:
        """What analysis finds; to ``advise``, a stuck cluster is told which axes would free it."""
        if not problem.geometry.loops:
            return analyse_couplings(problem)
        try:
            return analyse_loops(problem)
        except ClusterError as error:
            if not advise:
                raise
            loops = [constraint.loop for constraint in constraints if constraint.loop]

            def posed(others: Sequence[Loop]) -> ClusterProblem:
                of_loops, rest = constraints[: len(loops)], constraints[len(loops) :]
                pairs = zip(of_loops, others, strict=True)
                return self.problem([*(replace(each, loop=x) for each, x in pairs), *rest])

            advice = suggest_axes(problem, loops, posed)
            if not advice:
                raise
            raise DescriptionError(f"{error.summary}; {advice}", error.source) from None

    def _columns(self, followers: set[int | None]) -> tuple[Column, ...]:
        """What is known of each spanning velocity."""
        columns = []
        for i, (body, link) in enumerate(zip(self.bodies, self.links, strict=True)):
            joint = self.tree.joints[body]
            bounded = joint.type != "continuous" and link.joint.nv == 1
            limits = (joint.limits.lower, joint.limits.upper) if bounded else (-math.inf, math.inf)
            ends = [end for end in (body, self.tree.parents[body]) if end != WORLD]
            part = link.joint.nv > 1 or not all(self.heavy[end] for end in ends)
            mark = joint.independent
            marks = mark if isinstance(mark, tuple) else (mark,) * link.joint.nv
            for motion, label, mark in zip(link.joint.subspace, labels(joint), marks, strict=True):
                length = any(motion.linear) and not any(motion.angular)
                columns.append(
                    Column(label, joint.name, i, mark, body in followers, part, length, limits)
                )
        return tuple(columns)
