"""From a description to a model: numbering, axes, inertias, clusters and their constraints.

:func:`build` applies the options, then builds: :class:`_Builder` numbers the bodies cluster by
cluster, decides on each cluster (:class:`ConstrainedCluster`) and assembles the model. It builds
twice where the loops of a rounded file agree only with their frames moved, and where the spins of
rods are locked, which are loops more.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from robomodel.arrays import Array
from robomodel.description import GRAVITY, ONE_DOF, Description
from robomodel.description import Loop as LoopElement
from robomodel.description.angles import in_words, with_right_angles
from robomodel.description.poses import floating_position
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    Issue,
    argument,
    as_flag,
    warn_at,
    warn_of_all,
)
from robomodel.mechanism import graph
from robomodel.mechanism.constraints import (
    Constraint,
    Link,
    LoopConstraint,
    Unconstrained,
)
from robomodel.mechanism.graph import WORLD, SpanningTree
from robomodel.mechanism.internal_frames import internal_frames, rounding
from robomodel.mechanism.springs import check_passive, find_springs, tied_links
from robomodel.mechanism.tree_constraints import (
    TreeConstraint,
    find_tree_constraints,
    loop_rows,
    unmarked,
)
from robomodel.mobility import (
    ClosureTolerance,
    ClusterError,
    ClusterProblem,
    ClusterSolution,
    SpanningColumn,
    first_source,
)
from robomodel.mobility.analysis import (
    Analysed,
    agrees,
    analyse_couplings,
    analyse_loops,
    decided,
    suggest_axes,
)
from robomodel.model.actuators import find_actuators, loss_notes
from robomodel.model.derived import neutral_positions
from robomodel.model.elements import Cluster, Coupling, Loop, Structure
from robomodel.model.model import Model
from robomodel.model.numbers import Numbers, joint_model
from robomodel.model.options import labels, with_options
from robomodel.model.spins import (
    Spin,
    bracing_notes,
    find_spins,
    joints_of_balls,
    locked,
    spin_note,
    without_inertia,
    without_spins,
)

if TYPE_CHECKING:
    from robomodel.mobility.decision import Decision


def build(
    description: Description,
    *,
    floating_base: bool | None = None,
    independent: str | Iterable[str] | None = None,
    gravity: Sequence[float] | None = None,
    strict: bool = False,
    tolerance: float | None = None,
    mend: bool = True,
    spins: Literal["free", "locked"] = "free",
) -> Model:
    """The model of a description. Arguments and errors as of :func:`robomodel.load`."""
    mend = as_flag(mend, "mend")
    if spins not in ("free", "locked"):
        raise ValueError(f"spins is 'free' or 'locked', not {spins!r}")
    described = with_options(
        description, floating_base=floating_base, gravity=gravity, tolerance=tolerance
    )
    model = _with_spins(described, independent, strict, mend, spins)
    if len(described.links) > len(description.links):
        free = model.joints[0]
        note = f"the joint '{free.name}' was added to free the root link '{free.child}'"
        model = _noted(model, note)
    return model


def _with_spins(
    description: Description,
    independent: str | Iterable[str] | None,
    strict: bool,
    mend: bool,
    spins: Literal["free", "locked"],
) -> Model:
    """The model; spins of rods are locked on request, or where ``independent`` names all others."""
    chosen = with_options(description, independent=independent)
    try:
        model = _built(chosen, strict, mend)
    except DescriptionError:
        if independent is None:
            raise
        # the names may be too few only because rods spin: with locked spins they may be enough
        unchosen = _built(description, strict, mend)
        turning = find_spins(unchosen)
        if not turning:
            raise
        held = with_options(
            locked(unchosen.description, unchosen, turning), independent=independent
        )
        start = neutral_positions(unchosen)
        others = f"locked, as {argument('independent')} names the others"
        note = spin_note(unchosen, turning, others)
        held_model = _built(held, strict, mend, start)
        return _noted(replace(held_model, _balls=joints_of_balls(unchosen)), note)
    turning = find_spins(model)
    notes = bracing_notes(model, turning)
    if not turning:
        return _noted(model, *notes)
    if spins == "free":
        issues = list[Issue]()
        for joint in without_inertia(model, turning):
            message = (
                "turns a rod that spins between two balls, and has no inertia about its line: the "
                "mass matrix is singular and forward dynamics undefined; give it an inertial, or "
                f"lock the spins ({argument('spins', 'locked')})"
            )
            issues += warn_at(message, joint.source, strict=strict)
        if model._issues is not None:
            known, before = model._issues
            model = replace(model, _issues=(known, (*before, *issues)))
        model = without_spins(model, turning)
        free = f"free; {argument('spins', 'locked')} locks them"
        return _noted(model, spin_note(model, turning, free), *notes)
    held = locked(model.description, model, turning)
    held_model = _built(held, strict, mend, neutral_positions(model))
    held_model = replace(held_model, _balls=joints_of_balls(model))
    return _noted(held_model, spin_note(model, turning, "locked"), *notes)


def with_spins_locked(model: Model, spins: Sequence[Spin]) -> Model:
    """The robot with spins of rods locked where they are at its neutral configuration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # given when the robot was built
        names = {model.joints[spin.body].name for spin in spins}
        described = unmarked(locked(model.description, model, spins), names)
        held = _built(described, strict=False, mend=True, start=neutral_positions(model))
        return replace(held, _balls=joints_of_balls(model))


def _noted(model: Model, *notes: str) -> Model:
    return replace(model, _remarks=(*notes, *model._remarks)) if notes else model


def _built(
    description: Description, strict: bool, mend: bool, start: Mapping[str, Any] | None = None
) -> Model:
    """The model of a description to which the options have been applied.

    ``start``: positions of all joints at the neutral configuration, where these are known.
    """
    builder = _Builder.of(description, strict, {}, start)
    decisions = builder.decisions(mend=mend)
    if decisions and mend:
        builder, decisions = builder.with_right_angles(decisions)
        description = builder.description
    if decisions:
        for name, decision in decisions.items():
            description = builder.mended(description, name, decision)
        builder = _Builder.of(description, strict, decisions, start)
    model = builder.model()
    if notes := builder.notes:
        model = replace(model, _remarks=(*notes, *model._remarks))
    return model if decisions else replace(model, _issues=(description, tuple(builder.warned)))


@dataclass(frozen=True)
class _Builder:
    """A description with its tree numbered cluster by cluster, and the steps to its model.

    ``sizes`` are the numbers of bodies of the clusters, which follow each other in the tree.
    ``analysed``: what was found of clusters, for their copies.
    """

    description: Description
    tree: SpanningTree
    sizes: list[int]
    strict: bool
    decided: Mapping[str, Decision]  # by clusters' names
    start: Mapping[str, Any] | None = None  # the joints' positions at neutral, if known
    warned: list[Issue] = field(default_factory=list)
    analysed: Analysed = field(default_factory=Analysed)

    @staticmethod
    def of(
        description: Description,
        strict: bool,
        decided: Mapping[str, Decision],
        start: Mapping[str, Any] | None = None,
    ) -> _Builder:
        """The builder of a description, its bodies numbered cluster by cluster."""
        tree = graph.spanning_tree(description)
        ties = [each.bodies for each in find_tree_constraints(description, tree)]
        groups = graph.clusters(tree, ties)
        tree = tree.renumbered([body for group in groups for body in group])
        sizes = [len(group) for group in groups]
        return _Builder(description, tree, sizes, strict, decided, start)

    def decisions(self, *, mend: bool) -> dict[str, Decision]:
        """The decisions on clusters whose rank is in doubt, by the clusters' names."""
        result: dict[str, Decision] = {}
        for bodies in self.groups:
            constraints = self.tree_constraints_on.get(bodies.start, [])
            if any(each.loop for each in constraints):
                problem = self._constrained(bodies).problem(constraints)
                if (decision := decided(problem, self.analysed, mend=mend)) is not None:
                    result[problem.name] = decision
        return result

    def with_right_angles(
        self, decisions: dict[str, Decision]
    ) -> tuple[_Builder, dict[str, Decision]]:
        """The builder with coarse right angles exact in clusters that these make exact; warns.

        Also the decisions that are left.
        """
        description, builder, analysed = self.description, self, Analysed()
        for bodies in self.groups:
            constraints = self.tree_constraints_on.get(bodies.start, [])
            if self.tree.joints[bodies.start].child not in decisions or not constraints:
                continue
            links = [n for n, place in self.tree.places.items() if place.body in bodies]
            changed, meant = with_right_angles(description, links)
            if not meant:
                continue
            trial = _Builder.of(changed, self.strict, {}, self.start)
            exact = trial.tree_constraints_on[bodies.start]
            if not agrees(trial._constrained(bodies).problem(exact), analysed):
                continue
            problem = self._constrained(bodies).problem(constraints)
            text = (
                f"is rounded: in cluster '{problem.name}' {in_words(meant)}. Taken as exact, its "
                f"conditions agree; {argument('mend', False)} keeps the numbers"
            )
            warn_at(text, first_source(problem), strict=self.strict)
            description, builder, decisions = changed, trial, trial.decisions(mend=True)
        return builder, decisions

    @property
    def notes(self) -> list[str]:
        """The decisions in words."""
        notes = []
        for bodies in self.groups:
            name = self.tree.joints[bodies.start].child
            if (decision := self.decided.get(name)) is not None:
                constraints = self.tree_constraints_on[bodies.start]
                problem = self._constrained(bodies).problem(constraints)
                from robomodel.mobility.mending import words

                if text := words(problem, decision):
                    notes.append(f"cluster '{name}' {text}")
        return notes

    def mended(self, description: Description, name: str, decision: Decision) -> Description:
        """The description with a cluster's frames moved so that its conditions agree; warns."""
        from robomodel.mobility.mending import MovedFrames, words

        bodies = next(x for x in self.groups if self.tree.joints[x.start].child == name)
        constraints = self.tree_constraints_on[bodies.start]
        problem = self._constrained(bodies).problem(constraints)
        doubtful = decision.frames is not None or decision.letter is not None
        if doubtful and not problem.tolerance.stated:
            warn_at(words(problem, decision), first_source(problem), strict=self.strict)
        if decision.frames is None:
            return description
        loops = [each.loop for each in constraints if each.loop]
        ends = {loop.name: (loop.predecessor, loop.successor) for loop in loops}
        numbers = self.numbers
        frames = MovedFrames.of(
            problem, decision, numbers.internal, numbers.structure.frames, bodies, ends
        )
        return frames.applied(description)

    @property
    def groups(self) -> list[range]:
        """The bodies of each cluster."""
        starts = [0, *itertools.accumulate(self.sizes)]
        return [range(a, b) for a, b in itertools.pairwise(starts)]

    def model(self) -> Model:
        """The model, with all its clusters analysed."""
        self._check_joints()
        clusters: list[Cluster] = []
        solutions: list[ClusterSolution | None] = []
        for bodies in self.groups:
            cluster, solution = self._cluster(bodies, clusters)
            clusters.append(cluster)
            solutions.append(solution)
        self._warn_massless(clusters)
        independent = {label for cluster in clusters for label in cluster.independent}
        notes = [note for solution in solutions if solution for note in solution.notes]
        if not clusters:
            notes.append("nothing moves: every joint is fixed")
        notes += loss_notes(self.description)
        placed = [(body, cluster) for cluster in clusters for body in cluster.bodies]
        numbers = self.numbers
        joints = tuple(numbers.joint(*each, independent) for each in placed)
        nodes = tuple(numbers.node(*each) for each in placed)
        loops, couplings = self._loops_and_couplings(clusters, solutions)
        return Model(
            name=self.description.name,
            gravity=self.description.gravity or GRAVITY,
            bodies=tuple(numbers.body(*each) for each in placed),
            joints=joints,
            loops=loops,
            couplings=couplings,
            clusters=tuple(clusters),
            frames=numbers.frames,
            nodes=nodes,
            _remarks=tuple(notes),
            description=self.description,
            springs=find_springs(self.description, numbers.internal),
            actuators=find_actuators(
                self.description,
                joints,
                nodes,
                couplings,
                numbers.structure.loaded,
                {each.name: each.nv for each in clusters},
            ),
            _structure=numbers.structure,
        )

    # ---- bodies

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the model and of its clusters' problems, in internal frames chosen here.

        Bodies in loops, and those that carry them, keep the origins of their links.
        """
        fixed, first = set[int](), 0
        for size in self.sizes:
            if any(each.loop for each in self.tree_constraints_on.get(first, ())):
                fixed.update(range(first, first + size), self.tree.parents[first : first + size])
            first += size
        moves = [joint_model(joint) for joint in self.tree.joints]
        frames = tuple(internal_frames(self.tree, moves, fixed))
        ends = {self.tree.places[link].body for link in tied_links(self.description)}
        loaded = frozenset(ends | set(self.tree.parents))
        structure = Structure(frames, rounding(self.tree), loaded)
        return Numbers(self.description, self.tree, structure)

    @cached_property
    def heavy(self) -> list[bool]:
        """True for each body that has a mass or an inertia."""
        inertias = self.numbers.inertias
        return [bool(each.mass) or any(map(any, each.inertia)) for each in inertias]

    # ---- clusters

    @cached_property
    def tree_constraints(self) -> list[TreeConstraint]:
        """The constraints of the file's loops, couplings and mimics on this tree."""
        return find_tree_constraints(self.description, self.tree)

    @cached_property
    def tree_constraints_on(self) -> dict[int, list[TreeConstraint]]:
        """The tree constraints on each cluster, by the cluster's first body."""
        first_of: list[int] = []
        for size in self.sizes:
            first_of += [len(first_of)] * size
        result: dict[int, list[TreeConstraint]] = {}
        for each in self.tree_constraints:
            result.setdefault(first_of[each.bodies[0]], []).append(each)
        return result

    @cached_property
    def _cluster_of(self) -> list[int]:
        return [index for index, size in enumerate(self.sizes) for _ in range(size)]

    def _constrained(self, bodies: range) -> ConstrainedCluster:
        """A cluster's bodies, from which its problem is posed."""
        return ConstrainedCluster(self.numbers, self.heavy, bodies, self.start)

    def _cluster(
        self, bodies: range, before: Sequence[Cluster]
    ) -> tuple[Cluster, ClusterSolution | None]:
        """The cluster of these bodies, placed after ``before``; its analysis if constrained."""
        tree_constraints = self.tree_constraints_on.get(bodies.start, [])
        constrained = self._constrained(bodies)
        solution: ClusterSolution | None = None
        decision: Decision | None = None
        geometry = self.numbers.geometry(bodies, ())
        nq, nv = geometry.nq, geometry.nv
        constraint: Constraint = Unconstrained(nv)
        columns, kind, slack, rounding_ = tuple(range(nv)), "joint", 0.0, 0.0
        if tree_constraints:
            problem = constrained.problem(tree_constraints)
            decision = self.decided.get(problem.name)
            if decision is not None:
                problem = problem.with_decision(
                    decision.rank, decision.gap, decision.frames is not None
                )
            geometry = problem.geometry
            solution = constrained.solution(
                problem,
                tree_constraints,
                self.analysed,
                advise=not self.description.simulated,
            )
            for each in solution.suspicions:
                given = warn_at(each.message, each.source, strict=self.strict, issues=(each,))
                self.warned.extend(given)
            constraint, columns, start = solution.constraint, solution.independent, solution.neutral
            kind = "loops" if isinstance(constraint, LoopConstraint) else "couplings"
            slack = decision.slack(geometry.scale) if decision else solution.slack
            rounding_ = decision.rounding if decision else 0.0
        else:
            start = constrained.start(clamp=True)
        freedoms = [label for body in bodies for label in labels(self.tree.joints[body])]
        above = [p for p in (self.tree.parents[body] for body in bodies) if p not in bodies]
        parent = WORLD if above[0] == WORLD else self._cluster_of[above[0]]
        last = before[-1] if before else None
        return (
            Cluster(
                name=self.tree.joints[bodies.start].child,
                index=len(before),
                parent=parent,
                bodies=tuple(bodies),
                joints=tuple(self.tree.joints[body].name for body in bodies),
                outputs=tuple(dict.fromkeys(above)),
                independent=tuple(freedoms[column] for column in columns),
                kind=kind,
                q=_after(last.q if last else None, len(start)),
                v=_after(last.v if last else None, len(columns)),
                spanning_q=_after(last.spanning_q if last else None, nq),
                spanning_v=_after(last.spanning_v if last else None, nv),
                constraint=constraint,
                geometry=geometry,
                columns=columns,
                closing_rows=solution.closing_rows if solution else (),
                pivots=solution.pivots if solution else (),
                start=tuple(float(x) for x in start),
                slack=slack,
                rounding=rounding_,
            ),
            solution,
        )

    # ---- loops and couplings

    def _loops_and_couplings(
        self, clusters: Sequence[Cluster], solutions: Sequence[ClusterSolution | None]
    ) -> tuple[tuple[Loop, ...], tuple[Coupling, ...]]:
        """The public records: loops with the ranks that they add; couplings, then mimics."""
        ranks = [iter(each.loop_ranks if each else ()) for each in solutions]
        redundant = [iter(each.redundant_linear if each else ()) for each in solutions]
        loops, couplings = list[Loop](), list[Coupling]()
        for each in self.tree_constraints:
            cluster, loop = clusters[self._cluster_of[each.bodies[0]]], each.loop
            repeats = redundant[cluster.index]
            if loop is None:
                couplings.append(
                    Coupling(
                        name=each.name,
                        kind=each.kind,
                        terms=tuple((self.tree.joints[body].name, k) for body, k in each.terms),
                        offset=each.offset,
                        cluster=cluster.name,
                        explicit=not cluster.implicit,
                        redundant=not next(ranks[cluster.index])
                        if each.coefficients
                        else next(repeats),
                        coefficients=each.coefficients,
                    )
                )
                continue
            rank, count = next(ranks[cluster.index]), len(loop_rows(loop, self.tree))
            loops.append(
                Loop(
                    name=loop.name,
                    type=loop.type,
                    predecessor=loop.predecessor.link,
                    successor=loop.successor.link,
                    cluster=cluster.name,
                    rows=count,
                    rank=rank,
                    redundant=count - rank,
                )
            )
        return tuple(loops), tuple(couplings)

    def _check_joints(self) -> None:
        """Raises DescriptionError for passive elements or armatures that joints cannot have."""
        for joint in self.description.joints:
            check_passive(joint.source, damping=joint.damping, friction=joint.friction,
                          stiffness=joint.stiffness, reference=joint.reference,
                          deadband=joint.deadband)  # fmt: skip
            one_dof, ball = joint.type in ONE_DOF, joint.type == "spherical"
            refusals = (
                (joint.deadband and not one_dof, f"cannot have play, being {joint.type}; a spring "
                 "of a joint with one freedom can"),
                (joint.stiffness and not (one_dof or ball or joint.type == "fixed"),
                 f"cannot have a spring of its own, being {joint.type}; give it a <spring> between "
                 "two points"),
                (joint.stiffness and ball and joint.reference, "a ball joint's spring pulls to no "
                 "rotation; leave its reference out"),
                (not 0.0 <= joint.armature < math.inf, f"its armature is {joint.armature:g}; give "
                 "it a finite inertia, not negative"),
                (joint.armature and not (one_dof or ball or joint.type == "fixed"),
                 f"cannot have an armature, being {joint.type}: one number is no inertia for "
                 "lengths and angles alike; give the link more inertia instead"),
            )  # fmt: skip
            for wrong, message in refusals:
                if wrong:
                    raise DescriptionError(message, joint.source)
            effectless = (
                (joint.deadband and not joint.stiffness, "its play has no effect without a spring; "
                 "give it a spring_stiffness"),
                (joint.armature and joint.type == "fixed", "its armature has no effect, as a fixed "
                 "joint does not move; remove it"),
            )  # fmt: skip
            for applies, message in effectless:
                if applies:
                    self.warned.extend(warn_at(message, joint.source, strict=self.strict))

    def _warn_massless(self, clusters: Sequence[Cluster]) -> None:
        """Warn of clusters that move no mass, and of bodies with shapes that have no mass."""
        heavy = [any(self.heavy[body] for body in cluster.bodies) for cluster in clusters]
        for cluster in reversed(clusters):
            if heavy[cluster.index] and cluster.parent != WORLD:
                heavy[cluster.parent] = True
        shaped = {link.name: link for link in self.description.links if link.shapes}
        numbers = self.numbers
        shapes = argument("inertia_from", "collision")
        remedy = f"give the links an inertial ({shapes} finds one from shapes)"
        issues = []
        for cluster in clusters:
            armed = any(self.tree.joints[body].armature for body in cluster.bodies)
            if not heavy[cluster.index] and not armed:
                issues.append(
                    Issue(
                        "moves no mass: the mass matrix is singular and forward dynamics is not a "
                        f"number; {remedy}, or fix the joint",
                        self.tree.joints[cluster.bodies[0]].source,
                    )
                )
                continue
            for body in cluster.bodies:
                visible = [shaped[link] for link in numbers.links_of[body] if link in shaped]
                if visible and not self.heavy[body]:
                    message = f"has shapes and moves, but weighs nothing; {remedy}"
                    issues.append(Issue(message, visible[0].source))
        self.warned.extend(warn_of_all(issues, strict=self.strict))


def _after(before: slice | None, size: int) -> slice:
    start = before.stop if before else 0
    return slice(start, start + size)


# ---- constrained clusters -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConstrainedCluster:
    """The bodies of a cluster, and the problem that constraints on them pose.

    ``heavy`` says of each body of the model whether it has a mass or an inertia. ``known``: the
    joints' positions at neutral, by names.
    """

    numbers: Numbers
    heavy: Sequence[bool]
    bodies: range
    known: Mapping[str, Any] | None = None

    @property
    def tree(self) -> SpanningTree:
        """The tree in internal frames."""
        return self.numbers.internal

    @property
    def links(self) -> tuple[Link, ...]:
        """The bodies and their joints."""
        return self.numbers.links(self.bodies)

    def start(self, *, clamp: bool) -> Array:
        """Spanning positions from which closing starts: those known, else the file's, or zero.

        With ``clamp``, those of the file within the joints' limits.
        """
        start: list[float] = []
        for body, link in zip(self.bodies, self.links, strict=True):
            joint, values = self.tree.joints[body], link.joint.neutral()
            if self.known is not None and joint.name in self.known:
                values = np.atleast_1d(self.known[joint.name]).tolist()
            elif link.joint.nq == 1:
                value = values[0] if joint.initial is None else joint.initial
                if clamp and joint.type != "continuous":
                    value = min(max(value, joint.limits.lower), joint.limits.upper)
                values = (value,)
            elif joint.type == "floating":
                values = floating_position(joint.initial_pose)
            start.extend(values)
        return np.array(start)

    def problem(self, constraints: Sequence[TreeConstraint]) -> ClusterProblem:
        """The cluster's problem under these constraints."""
        geometry = self.numbers.geometry(self.bodies, constraints)
        tied = [constraint for constraint in constraints if not constraint.loop]
        polynomials = [constraint for constraint in tied if constraint.coefficients]
        couplings = [constraint for constraint in tied if not constraint.coefficients]
        tolerances = [constraint.loop.tolerance for constraint in constraints if constraint.loop]
        return ClusterProblem(
            self.tree.joints[self.bodies.start].child,
            geometry,
            self._columns({constraint.follower for constraint in tied}),
            tuple(
                constraint.source
                for constraint in (*(each for each in constraints if each.loop), *polynomials)
            ),
            tuple(constraint.source for constraint in couplings),
            self.start(clamp=bool(geometry.loop_joints)),
            ClosureTolerance.of(tolerances, geometry.scale),
            closed=self.known is not None,
        )

    def solution(
        self,
        problem: ClusterProblem,
        constraints: Sequence[TreeConstraint],
        before: Analysed,
        *,
        advise: bool,
    ) -> ClusterSolution:
        """The cluster's analysis; with ``advise``, errors of immobile clusters suggest axes."""
        if not problem.geometry.loop_joints and (explicit := analyse_couplings(problem)):
            return explicit
        try:
            return analyse_loops(problem, before)
        except ClusterError as error:
            if not advise:
                raise
            loops = [constraint.loop for constraint in constraints if constraint.loop]

            def posed(others: Sequence[LoopElement]) -> ClusterProblem:
                pairs = zip(constraints, others, strict=False)  # the loops come first
                changed = [replace(each, loop=loop) for each, loop in pairs]
                return self.problem([*changed, *constraints[len(loops) :]])

            advice = suggest_axes(problem, loops, posed)
            if not advice:
                raise
            raise DescriptionError(f"{error.summary}; {advice}", error.source) from None

    def _columns(self, followers: set[int | None]) -> tuple[SpanningColumn, ...]:
        """The spanning velocities, with what the file says of each."""
        columns = []
        for i, (body, link) in enumerate(zip(self.bodies, self.links, strict=True)):
            joint = self.tree.joints[body]
            bounded = joint.type != "continuous" and link.joint.nv == 1
            limits = (joint.limits.lower, joint.limits.upper) if bounded else (-math.inf, math.inf)
            ends = [end for end in (body, self.tree.parents[body]) if end != WORLD]
            part = link.joint.nv > 1 or not all(self.heavy[end] for end in ends)
            mark = joint.independent
            marks = mark if isinstance(mark, tuple) else (mark,) * link.joint.nv
            placed = joint.initial is not None
            for motion, label, mark in zip(link.joint.subspace, labels(joint), marks, strict=True):
                length = any(motion.linear) and not any(motion.angular)
                columns.append(
                    SpanningColumn(
                        label, joint.name, i, mark, body in followers, part, length, limits, placed
                    )
                )
        return tuple(columns)
