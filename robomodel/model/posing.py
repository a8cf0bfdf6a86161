"""From what a file says of a constrained cluster to the question it poses, and the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.description import Loop, Rows3
from robomodel.errors import DescriptionError
from robomodel.model.advice import better_axes
from robomodel.model.closure import Geometry, Linear
from robomodel.model.constraints import Link
from robomodel.model.couplings import analyse_couplings
from robomodel.model.demands import Demand, loop_joint
from robomodel.model.graph import WORLD, Tree
from robomodel.model.joints import Array
from robomodel.model.loops import analyse_loops
from robomodel.model.options import labels
from robomodel.model.question import Column, Exactness, Finding, Question, StuckError


@dataclass(frozen=True, slots=True)
class Tied:
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

    def question(self, demands: Sequence[Demand]) -> Question:
        """What analysis needs to know of the cluster under these demands."""
        local = {body: i for i, body in enumerate(self.bodies)}
        loops = [
            loop_joint(demand.loop, self.tree, self.axes, local)
            for demand in demands
            if demand.loop
        ]
        couplings = [demand for demand in demands if not demand.loop]
        linear = []
        for demand in couplings:
            merged: dict[int, float] = {}
            for body, coefficient in demand.terms:
                merged[local[body]] = merged.get(local[body], 0.0) + coefficient
            terms = tuple((at, k) for at, k in merged.items() if k)
            if not terms:
                raise DescriptionError(
                    "its terms cancel, so it relates nothing; remove it", demand.source
                )
            linear.append(Linear(demand.name, terms, demand.offset))
        geometry = Geometry(self.links, tuple(loops), tuple(linear))
        tolerances = [demand.loop.tolerance for demand in demands if demand.loop]
        return Question(
            self.tree.joints[self.bodies.start].child,
            geometry,
            self._columns({demand.follower for demand in couplings}),
            tuple(demand.source for demand in demands if demand.loop),
            tuple(demand.source for demand in couplings),
            self.start(clamp=bool(loops)),
            Exactness.of(tolerances, geometry.scale),
        )

    def finding(self, question: Question, demands: Sequence[Demand], *, advise: bool) -> Finding:
        """What analysis finds; to ``advise``, a stuck cluster is told which axes would free it."""
        if not question.geometry.loops:
            return analyse_couplings(question)
        try:
            return analyse_loops(question)
        except StuckError as error:
            if not advise:
                raise
            loops = [demand.loop for demand in demands if demand.loop]

            def posed(others: Sequence[Loop]) -> Question:
                of_loops, rest = demands[: len(loops)], demands[len(loops) :]
                pairs = zip(of_loops, others, strict=True)
                return self.question([*(replace(each, loop=x) for each, x in pairs), *rest])

            advice = better_axes(question, loops, posed)
            if not advice:
                raise
            raise DescriptionError(f"{error.story}; {advice}", error.source) from None

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
