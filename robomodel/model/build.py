"""From a description to a model: axes, inertias, clusters, constraints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel import description as said
from robomodel.description import Description, Inertial, LinkCoupling, Pose, Rows3, Vec3
from robomodel.errors import DescriptionError, Source, did_you_mean, suspect
from robomodel.model import analysis, graph
from robomodel.model.closure import Geometry, Linear
from robomodel.model.constraints import (
    ROWS,
    Anchor,
    Constraint,
    Distance,
    Link,
    LoopJoint,
    Unconstrained,
)
from robomodel.model.graph import WORLD, Tree
from robomodel.model.joints import (
    Floating,
    JointModel,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    align,
)
from robomodel.model.model import Body, Cluster, Coupling, Frame, Joint, Loop, Model, Node
from robomodel.spatial import (
    NO_INERTIA,
    UNIT,
    RigidInertia,
    Transform,
    apply,
    factor,
    matmul,
    minus,
    plus,
    transpose,
)

GRAVITY = (0.0, 0.0, -9.81)
FREEDOM_NAMES = {
    6: (".wx", ".wy", ".wz", ".vx", ".vy", ".vz"),
    3: (".0", ".1", ".2"),
    1: ("",),
}


def build(
    description: Description,
    *,
    floating_base: bool | None = None,
    independent: Sequence[str] | None = None,
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Model:
    """The model of a description. Arguments and errors as of :func:`robomodel.load`."""
    tree = graph.spanning_tree(description, floating_base=floating_base)
    if not tree.joints:
        raise DescriptionError(
            "nothing moves: every joint is fixed; give it a moving joint or load it with "
            "floating_base=True",
            description.source,
        )
    moves = [_joint_model(joint) for joint in tree.joints]
    demands = _demands(description, tree, moves)
    groups = graph.clusters(tree, [demand.bodies for demand in demands])
    order = [body for group in groups for body in group]
    return _Builder(description, tree, moves, demands, groups, order, independent, strict).model(
        _gravity(gravity)
    )


def _gravity(gravity: Sequence[float] | None) -> Vec3:
    if gravity is None:
        return GRAVITY
    values = tuple(float(x) for x in gravity)
    if len(values) != 3 or not all(math.isfinite(x) for x in values):
        raise ValueError(f"gravity needs three finite numbers, got {gravity!r}")
    return values[0], values[1], values[2]


# ---- joints and inertias -------------------------------------------------------------------------


def _unit(axis: Vec3, source: Source) -> Vec3:
    size = math.hypot(*axis)
    if size == 0.0 or not math.isfinite(size):
        raise DescriptionError(f"axis {axis} has no direction; give it a nonzero axis", source)
    x, y, z = (a / size for a in axis)
    return x, y, z


def _joint_model(joint: said.Joint) -> tuple[JointModel, Rows3]:
    """The joint's model and its body's internal axes (rows: internal to link coordinates)."""
    if joint.type == "floating":
        return Floating(), UNIT
    if joint.type == "spherical":
        return Spherical(), UNIT
    k, axes = align(_unit(joint.axis, joint.source))
    if joint.type == "prismatic":
        return Prismatic(k), axes
    if joint.type == "planar":
        return Planar(k), axes
    if joint.type == "screw":
        return Screw(k, joint.pitch), axes
    return Revolute(k), axes


def _rigid(inertial: Inertial, pose: Pose) -> RigidInertia:
    """A link's inertia about the origin and in the axes of the body that holds it at ``pose``."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    placed = graph.compose(pose, inertial.origin)
    about_com = RigidInertia(
        inertial.mass, (0.0, 0.0, 0.0), ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    )
    return about_com.in_parent(Transform(factor(placed.rotation), placed.xyz))


def _turned(inertia: RigidInertia, axes: Rows3) -> RigidInertia:
    """The same inertia in internal axes."""
    return inertia.in_parent(Transform(factor(transpose(axes)), (0.0, 0.0, 0.0)))


def _centred(inertia: RigidInertia) -> tuple[Vec3, Rows3]:
    """Centre of mass and inertia about it."""
    if inertia.mass == 0.0:
        return (0.0, 0.0, 0.0), inertia.inertia
    x, y, z = (h / inertia.mass for h in inertia.h)
    h, c = inertia.h, (x, y, z)
    rows = [
        [
            inertia.inertia[i][j]
            - ((sum(a * b for a, b in zip(h, c, strict=True)) if i == j else 0.0) - h[i] * c[j])
            for j in range(3)
        ]
        for i in range(3)
    ]
    return c, (
        (rows[0][0], rows[0][1], rows[0][2]),
        (rows[1][0], rows[1][1], rows[1][2]),
        (rows[2][0], rows[2][1], rows[2][2]),
    )


def _spins(inertia: RigidInertia, k: int) -> bool:
    """Whether turning about axis k leaves the inertia as it is."""
    i, j = (k + 1) % 3, (k + 2) % 3
    m, h = inertia.inertia, inertia.h
    size = abs(m[0][0]) + abs(m[1][1]) + abs(m[2][2])
    off = max(abs(m[i][i] - m[j][j]), abs(m[i][j]), abs(m[i][k]), abs(m[j][k]))
    return bool(off <= 1e-14 * size and max(abs(h[i]), abs(h[j])) <= 1e-14 * inertia.mass)


# ---- what loops and couplings demand -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Demand:
    """A constraint on the tree: the bodies whose joints it relates, and what it says of them."""

    name: str
    source: Source
    bodies: tuple[int, ...]
    loop: said.Loop | None = None
    terms: tuple[tuple[int, float], ...] = ()
    offset: float = 0.0
    follower: int | None = None
    kind: str = "loop"


def _demands(
    description: Description, tree: Tree, moves: Sequence[tuple[JointModel, Rows3]]
) -> list[_Demand]:
    """Loops, couplings and mimics, in this order, each in the file's order."""
    demands = [_loop_demand(loop, tree) for loop in description.loops]
    moved_by = {joint.name: body for body, joint in enumerate(tree.joints)}

    def one_dof(body: int, name: str, source: Source) -> int:
        if moves[body][0].nv != 1:
            raise DescriptionError(
                f"cannot relate joint '{name}', which has {moves[body][0].nv} degrees of freedom; "
                "couplings are between revolute, continuous, prismatic and screw joints",
                source,
            )
        return body

    def find(name: str, source: Source) -> int:
        if name not in moved_by:
            raise DescriptionError(
                f"there is no moving joint '{name}'{did_you_mean(name, moved_by)}", source
            )
        return one_dof(moved_by[name], name, source)

    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            demands.append(_link_coupling(coupling, tree, one_dof))
            continue
        terms = tuple((find(name, coupling.source), k) for name, k in coupling.terms)
        terms = tuple((body, k) for body, k in terms if k)
        if not terms:
            raise DescriptionError("relates no joint; give it joints and ratios", coupling.source)
        bodies = tuple(body for body, _ in terms)
        demands.append(
            _Demand(
                coupling.name,
                coupling.source,
                bodies,
                None,
                terms,
                coupling.offset,
                None,
                "coupling",
            )
        )
    for body, joint in enumerate(tree.joints):
        if joint.mimic is None:
            continue
        one_dof(body, joint.name, joint.source)
        leader = find(joint.mimic.joint, joint.source)
        terms = ((body, 1.0), (leader, -joint.mimic.multiplier))
        demands.append(
            _Demand(
                joint.name,
                joint.source,
                (body, leader),
                None,
                terms,
                joint.mimic.offset,
                body,
                "mimic",
            )
        )
    return demands


def _loop_demand(loop: said.Loop, tree: Tree) -> _Demand:
    ends = [tree.places[loop.predecessor.link].body, tree.places[loop.successor.link].body]
    ancestor = tree.common_ancestor(ends)
    bodies = (*tree.path(ends[0], ancestor), *tree.path(ends[1], ancestor))
    if not bodies:
        raise DescriptionError(
            f"joins '{loop.predecessor.link}' and '{loop.successor.link}', which no moving joint "
            "separates; remove it, or free a joint between them",
            loop.source,
        )
    return _Demand(loop.name, loop.source, bodies, loop)


def _link_coupling(coupling: LinkCoupling, tree: Tree, one_dof: object) -> _Demand:
    assert callable(one_dof)
    ends = [tree.places[coupling.predecessor].body, tree.places[coupling.successor].body]
    ancestor = tree.common_ancestor(ends)
    paths = [tree.path(end, ancestor) for end in ends]
    for path, link in zip(paths, (coupling.predecessor, coupling.successor), strict=True):
        for body in path:
            one_dof(body, tree.joints[body].name, coupling.source)
        if not path:
            raise DescriptionError(
                f"no moving joint stands between '{link}' and the common ancestor of "
                f"'{coupling.predecessor}' and '{coupling.successor}', so there is nothing to "
                "couple; name links on two branches",
                coupling.source,
            )
    terms = (
        *((body, 1.0) for body in paths[1]),
        *((body, -coupling.ratio) for body in paths[0]),
    )
    return _Demand(
        coupling.name,
        coupling.source,
        (*paths[0], *paths[1]),
        None,
        terms,
        coupling.offset,
        paths[1][-1],
        "coupling",
    )


# ---- the model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Builder:
    """Everything found so far, and the steps from there to a model.

    Bodies are numbered by the tree in ``tree`` and by the model (clusters in order) elsewhere;
    ``order[i]`` is the tree's number of the model's body i.
    """

    description: Description
    tree: Tree
    moves: list[tuple[JointModel, Rows3]]
    demands: list[_Demand]
    groups: list[list[int]]
    order: list[int]
    chosen: Sequence[str] | None
    strict: bool

    def model(self, gravity: Vec3) -> Model:
        """Assemble."""
        tree, order = self.tree, self.order
        number = {body: i for i, body in enumerate(order)}
        joints = [tree.joints[body] for body in order]
        parents = [WORLD if (p := tree.parents[b]) == WORLD else number[p] for b in order]
        models = [self.moves[body][0] for body in order]
        axes = [self.moves[body][1] for body in order]
        inertias, held = self._inertias(number)
        placements = [
            self._placement(joints[i], axes[i], UNIT if parents[i] == WORLD else axes[parents[i]])
            for i in range(len(order))
        ]
        anchored = {
            self.tree.places[anchor.link].body
            for loop in self.description.loops
            for anchor in (loop.predecessor, loop.successor)
        }
        has_children = set(parents)
        nodes: list[Node] = []
        clusters: list[Cluster] = []
        infos: list[Joint] = []
        loops: dict[str, Loop] = {}
        couplings: dict[tuple[str, str], Coupling] = {}
        notes: list[str] = []
        chosen = self._chosen(joints, models)
        by_group = self._demands_by_group()
        cluster_of: dict[int, int] = {}
        q_at = v_at = sq = sv = 0
        for index, group in enumerate(self.groups):
            bodies = [number[body] for body in group]
            first = bodies[0]
            local = {body: i for i, body in enumerate(bodies)}
            links, lq, lv = [], 0, 0
            for body in bodies:
                inside = local.get(parents[body])
                rotations, offset = placements[body]
                links.append(Link(models[body], rotations, offset, inside, lq, lv))
                lq, lv = lq + models[body].nq, lv + models[body].nv
            demands = by_group.get(index, [])
            name = joints[first].child
            if demands:
                question = self._question(
                    name, bodies, links, demands, axes, number, chosen, joints
                )
                try:
                    finding = analysis.analyse(question)
                except DescriptionError as error:
                    raise error from None
                for text, source in finding.suspicions:
                    suspect(text, source, strict=self.strict)
                notes.extend(finding.notes)
                constraint: Constraint = finding.constraint
                independent = finding.independent
                neutral = finding.neutral
                self._report(finding, question, demands, name, loops, couplings)
                geometry: Geometry | None = question.geometry
                closing = finding.closing_rows
            else:
                constraint = Unconstrained(lv)
                independent = tuple(range(lv))
                neutral = np.array(self._start(links, [joints[first]], clamp=True))
                geometry, closing = None, ()
            labels = [
                joints[body].name + suffix
                for body in bodies
                for suffix in FREEDOM_NAMES[models[body].nv]
            ]
            implicit = bool(geometry and geometry.loops)
            above = [p for p in (parents[body] for body in bodies) if p not in local]
            cluster = Cluster(
                name=name,
                index=index,
                parent=WORLD if above[0] == WORLD else cluster_of[above[0]],
                bodies=tuple(bodies),
                joints=tuple(joints[body].name for body in bodies),
                outputs=tuple(dict.fromkeys(above)),
                independent=tuple(labels[i] for i in independent),
                kind="loops" if implicit else "couplings" if demands else "joint",
                q=slice(q_at, q_at + len(neutral)),
                v=slice(v_at, v_at + len(independent)),
                spanning_q=slice(sq, sq + lq),
                spanning_v=slice(sv, sv + lv),
                constraint=constraint,
                geometry=geometry,
                columns=independent,
                closing_rows=closing,
                start=tuple(float(x) for x in neutral),
            )
            clusters.append(cluster)
            for body, link in zip(bodies, links, strict=True):
                cluster_of[body] = index
                joint = joints[body]
                columns = range(link.v, link.v + link.joint.nv)
                free = not (body in has_children or order[body] in anchored)
                spins = (
                    isinstance(link.joint, Revolute)
                    and free
                    and _spins(inertias[body], link.joint.k)
                )
                nodes.append(
                    Node(
                        name=joint.child,
                        parent=parents[body],
                        cluster=index,
                        joint=link.joint,
                        rotations=link.rotations,
                        offset=link.offset,
                        axes=axes[body],
                        inertia=inertias[body],
                        spins=bool(spins),
                        q=sq + link.q,
                        v=sv + link.v,
                    )
                )
                infos.append(
                    Joint(
                        name=joint.name,
                        type=joint.type,
                        parent=joint.parent or "world",
                        child=joint.child,
                        axis=joint.axis,
                        lower=joint.limits.lower,
                        upper=joint.limits.upper,
                        velocity_limit=joint.limits.velocity,
                        effort_limit=joint.limits.effort,
                        damping=joint.damping,
                        friction=joint.friction,
                        independent=all(c in independent for c in columns),
                        nq=link.joint.nq,
                        nv=link.joint.nv,
                        cluster=name,
                    )
                )
            q_at, v_at, sq, sv = q_at + len(neutral), v_at + len(independent), sq + lq, sv + lv
        frames = self._frames(number, axes)
        self._warn_massless(nodes, clusters)
        bodies_info = []
        for body, node in enumerate(nodes):
            in_link = _turned(node.inertia, transpose(node.axes))
            com, about = _centred(in_link)
            bodies_info.append(
                Body(
                    name=node.name,
                    parent="world" if node.parent == WORLD else nodes[node.parent].name,
                    joint=infos[body].name,
                    cluster=clusters[node.cluster].name,
                    mass=float(in_link.mass),
                    com=com,
                    inertia=about,
                    links=tuple(held[body]),
                )
            )
        return Model(
            name=self.description.name,
            gravity=gravity,
            bodies=tuple(bodies_info),
            joints=tuple(infos),
            loops=tuple(loops[loop.name] for loop in self.description.loops),
            couplings=tuple(couplings[d.kind, d.name] for d in self.demands if d.loop is None),
            clusters=tuple(clusters),
            frames=frames,
            nodes=tuple(nodes),
            notes=tuple(notes),
            description=self.description,
        )

    def _inertias(self, number: dict[int, int]) -> tuple[list[RigidInertia], list[list[str]]]:
        """Each body's inertia in its internal axes, and the links lumped into it."""
        inertias = [NO_INERTIA] * len(number)
        held: list[list[str]] = [[] for _ in number]
        for link in self.description.links:
            place = self.tree.places[link.name]
            if place.body == WORLD:
                continue
            body = number[place.body]
            held[body].append(link.name)
            if link.inertial is not None:
                inertias[body] = inertias[body] + _rigid(link.inertial, place.pose)
        turned = [
            inertia if inertia is NO_INERTIA else _turned(inertia, self.moves[self.order[body]][1])
            for body, inertia in enumerate(inertias)
        ]
        return turned, held

    @staticmethod
    def _placement(joint: said.Joint, axes: Rows3, parent_axes: Rows3) -> tuple[tuple, Vec3]:  # type: ignore[type-arg]
        back = transpose(parent_axes)
        rotation = matmul(matmul(back, joint.origin.rotation), axes)
        return factor(rotation), apply(back, joint.origin.xyz)

    def _chosen(
        self, joints: Sequence[said.Joint], models: Sequence[JointModel]
    ) -> frozenset[str] | None:
        """The caller's independent joints (or single freedoms), checked."""
        if self.chosen is None:
            return None
        known = {
            joint.name + suffix
            for joint, model in zip(joints, models, strict=True)
            for suffix in FREEDOM_NAMES[model.nv]
        } | {joint.name for joint in joints}
        for name in self.chosen:
            if name not in known:
                raise DescriptionError(
                    f"independent: there is no moving joint '{name}'{did_you_mean(name, known)}",
                    self.description.source,
                )
        return frozenset(self.chosen)

    def _demands_by_group(self) -> dict[int, list[_Demand]]:
        group_of = {body: i for i, group in enumerate(self.groups) for body in group}
        result: dict[int, list[_Demand]] = {}
        for demand in self.demands:
            result.setdefault(group_of[demand.bodies[0]], []).append(demand)
        return result

    def _question(
        self,
        name: str,
        bodies: list[int],
        links: list[Link],
        demands: list[_Demand],
        axes: list[Rows3],
        number: dict[int, int],
        chosen: frozenset[str] | None,
        joints: list[said.Joint],
    ) -> analysis.Cluster:
        """The cluster as analysis wants it."""
        local = {body: i for i, body in enumerate(bodies)}
        loops, linear, loop_sources, linear_sources = [], [], [], []
        followers = set()
        for demand in demands:
            if demand.loop is not None:
                loops.append(self._loop_joint(demand.loop, local, number, axes))
                loop_sources.append(demand.source)
                continue
            merged: dict[int, float] = {}
            for body, coefficient in demand.terms:
                at = local[number[body]]
                merged[at] = merged.get(at, 0.0) + coefficient
            terms = tuple((at, k) for at, k in merged.items() if k)
            if not terms:
                raise DescriptionError(
                    "its terms cancel, so it relates nothing; remove it", demand.source
                )
            linear.append(Linear(demand.name, terms, demand.offset))
            linear_sources.append(demand.source)
            if demand.follower is not None:
                followers.add(local[number[demand.follower]])
        columns = []
        named = chosen is not None and any(
            joints[body].name in chosen
            or any(joints[body].name + s in chosen for s in FREEDOM_NAMES[link.joint.nv])
            for body, link in zip(bodies, links, strict=True)
        )
        for i, (body, link) in enumerate(zip(bodies, links, strict=True)):
            joint = joints[body]
            for c, suffix in enumerate(FREEDOM_NAMES[link.joint.nv]):
                label = joint.name + suffix
                mark = joint.independent
                if named and chosen is not None:
                    mark = joint.name in chosen or label in chosen
                limits = (joint.limits.lower, joint.limits.upper)
                length = any(bool(x) for x in link.joint.subspace[c].linear)
                if joint.type == "screw":
                    length = False
                if joint.type == "continuous" or link.joint.nv > 1:
                    limits = (-math.inf, math.inf)
                columns.append(
                    analysis.Column(label, joint.name, i, mark, i in followers, length, limits)
                )
        lengths = [math.hypot(*link.offset) for link in links if link.parent is not None] + [
            math.hypot(*anchor.point)
            for loop in loops
            for anchor in (loop.predecessor, loop.successor)
        ]
        start = self._start(links, [joints[body] for body in bodies], clamp=bool(loops))
        return analysis.Cluster(
            name,
            Geometry(tuple(links), tuple(loops), tuple(linear)),
            tuple(columns),
            tuple(loop_sources),
            tuple(linear_sources),
            np.array(start),
            max(lengths, default=0.0) or 1.0,
        )

    @staticmethod
    def _start(links: Sequence[Link], joints: Sequence[said.Joint], *, clamp: bool) -> list[float]:
        """Spanning positions from which the neutral configuration is sought."""
        start: list[float] = []
        for link, joint in zip(links, joints, strict=True):
            values = list(link.joint.neutral())
            if link.joint.nq == 1:
                value = joint.initial if joint.initial is not None else values[0]
                if clamp and joint.type != "continuous":
                    value = min(max(value, joint.limits.lower), joint.limits.upper)
                values = [value]
            start.extend(values)
        return start

    def _loop_joint(
        self, loop: said.Loop, local: dict[int, int], number: dict[int, int], axes: list[Rows3]
    ) -> LoopJoint:
        """A loop joint's rows and anchors, in internal axes."""
        places = [self.tree.places[end.link] for end in (loop.predecessor, loop.successor)]
        ancestor = self.tree.common_ancestor([place.body for place in places])
        frames = [_loop_frame(loop.axis, loop.source)] * 2
        if loop.type == "universal":
            frames = [
                _loop_frame(loop.axis, loop.source),
                _universal_frame(loop),
            ]
        anchors, branches = [], []
        for place, end, frame in zip(
            places, (loop.predecessor, loop.successor), frames, strict=True
        ):
            standing = graph.compose(place.pose, end.origin)
            back = UNIT if place.body == WORLD else transpose(axes[number[place.body]])
            turned = matmul(matmul(back, standing.rotation), frame)
            inside = place.body != ancestor
            anchors.append(
                Anchor(
                    local[number[place.body]] if inside else None,
                    apply(back, standing.xyz),
                    transpose(turned),
                )
            )
            branches.append(
                tuple(local[number[body]] for body in self.tree.path(place.body, ancestor))
            )
        if loop.type == "rod":
            rows: tuple = (Distance(self._rod_length(loop)),)  # type: ignore[type-arg]
        else:
            rows = ROWS["revolute" if loop.type == "continuous" else loop.type]
        return LoopJoint(loop.name, rows, anchors[0], anchors[1], (branches[0], branches[1]))

    def _rod_length(self, loop: said.Loop) -> float:
        """The rod's length: given, or the distance of its ends at the zero configuration."""
        if loop.length is not None:
            return loop.length
        ends = []
        for end in (loop.predecessor, loop.successor):
            place = self.tree.places[end.link]
            point = graph.compose(place.pose, end.origin).xyz
            body = place.body
            while body != WORLD:
                origin = self.tree.joints[body].origin
                point = plus(apply(origin.rotation, point), origin.xyz)
                body = self.tree.parents[body]
            ends.append(point)
        length = math.hypot(*minus(ends[1], ends[0]))
        if length <= 1e-12:
            raise DescriptionError(
                "its ends coincide at the zero configuration, so its length would be zero; give "
                'length="…", or make it a spherical loop',
                loop.source,
            )
        return length

    def _report(
        self,
        finding: analysis.Finding,
        question: analysis.Cluster,
        demands: list[_Demand],
        cluster: str,
        loops: dict[str, Loop],
        couplings: dict[tuple[str, str], Coupling],
    ) -> None:
        """What became of each loop and coupling."""
        ranks = iter(finding.loop_ranks)
        duplicates = iter(finding.redundant_linear)
        explicit = not question.geometry.loops
        for demand in demands:
            if demand.loop is not None:
                loop, rank = demand.loop, next(ranks)
                count = (
                    1
                    if loop.type == "rod"
                    else len(ROWS["revolute" if loop.type == "continuous" else loop.type])
                )
                loops[loop.name] = Loop(
                    name=loop.name,
                    type=loop.type,
                    predecessor=loop.predecessor.link,
                    successor=loop.successor.link,
                    cluster=cluster,
                    rows=count,
                    rank=rank,
                    redundant=count - rank,
                )
            else:
                couplings[demand.kind, demand.name] = Coupling(
                    name=demand.name,
                    kind=demand.kind,
                    terms=tuple((self.tree.joints[body].name, k) for body, k in demand.terms),
                    offset=demand.offset,
                    cluster=cluster,
                    explicit=explicit,
                    redundant=next(duplicates),
                )

    def _frames(self, number: dict[int, int], axes: list[Rows3]) -> tuple[Frame, ...]:
        """Every link of the file, where it is on its body (internal axes)."""
        frames = []
        for link in self.description.links:
            place = self.tree.places[link.name]
            body = WORLD if place.body == WORLD else number[place.body]
            back = UNIT if body == WORLD else transpose(axes[body])
            frames.append(
                Frame(
                    link.name,
                    body,
                    Transform(
                        factor(matmul(back, place.pose.rotation)), apply(back, place.pose.xyz)
                    ),
                )
            )
        return tuple(frames)

    def _warn_massless(self, nodes: list[Node], clusters: list[Cluster]) -> None:
        """A cluster that moves no mass makes the mass matrix singular."""
        heavy = [False] * len(clusters)
        for node in nodes:
            if node.inertia.mass or any(x for row in node.inertia.inertia for x in row):
                heavy[node.cluster] = True
        for cluster in reversed(clusters):
            if heavy[cluster.index] and cluster.parent != WORLD:
                heavy[cluster.parent] = True
        sources = {joint.name: joint.source for joint in self.description.joints}
        for cluster in clusters:
            if not heavy[cluster.index]:
                name = cluster.joints[0]
                suspect(
                    "moves no mass: the mass matrix is singular and forward dynamics is not a "
                    "number; give the links an inertial, or fix the joint",
                    sources.get(name, self.description.source),
                    strict=self.strict,
                )


def _loop_frame(axis: Vec3, source: Source) -> Rows3:
    """Constraint axes as columns: the loop's axis, then two that complete a right-handed frame."""
    k, aligned = align(_unit(axis, source))
    columns = transpose(aligned)  # the images of the coordinate axes; the k-th is the axis
    return transpose((columns[k], columns[(k + 1) % 3], columns[(k + 2) % 3]))


def _universal_frame(loop: said.Loop) -> Rows3:
    """The successor's axes of a universal loop, as columns: axis 1 is the second axis.

    By default that is the coordinate axis after the first's largest component, made perpendicular
    to the first; a given one is taken as it is, since the two frames may be turned at closure.
    """
    if loop.axis2 is not None:
        second = loop.axis2
    else:
        first = _unit(loop.axis, loop.source)
        k = max(range(3), key=lambda n: (abs(first[n]), -n))
        x, y, z = (
            w - first[(k + 1) % 3] * a for w, a in zip(UNIT[(k + 1) % 3], first, strict=True)
        )
        second = (x, y, z)
    columns = transpose(_loop_frame(second, loop.source))
    return transpose((columns[2], columns[0], columns[1]))
