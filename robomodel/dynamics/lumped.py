"""Open trees that approximate robots with loops and couplings, for simulators without these.

In each constrained cluster as many joints move as it has freedoms. The others are locked at the
neutral configuration. The inertia that they have by their motion is added as armature to the joints
that move (:func:`approximate`), or left out with the bodies (:func:`unconstrained`). These trees
are the paper's baselines, and where the fit of :mod:`robomodel.opentree.fit` starts; which
joints a fitted tree has is decided in :mod:`.tree_joints`. docs/approximate.md gives the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.description import Description, Joint, JointCoupling, JointSpring, Link, Spring
from robomodel.description.transmissions import rotor_name
from robomodel.mechanism import graph
from robomodel.model.derived import cached_on_model, nominal
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.options import fixed
from robomodel.reach.limb import select_in
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import Motion
from robomodel.tolerances import NOTHING


def approximate(model: Model, *, lump: bool = True) -> Description:
    """The robot as an open tree with armature: what ``method="approximate"`` computes.

    Locked bodies are fixed to the bodies that carry them, which then have their mass and inertia.
    ``lump=False`` removes them instead, except those that carry other bodies. The armature of each
    joint is its diagonal entry of :func:`reflected` at the neutral configuration, in the velocities
    of the joints that move, or 0 if that is negative. A ball joint, whose armature is one number,
    has the mean of three entries; planar and floating joints have no armature.

    Raises ValueError if no set of whole joints determines a cluster.
    """
    armatures: dict[str, float] = {}
    for each in joint_inertias(model):
        armatures |= each.armatures(each.matrix)
    return _open_tree(model, armatures, lump=lump)


def with_tendons(model: Model, *, rotors: bool = False) -> Description:
    """The tree of :func:`approximate` with reflected inertia between joints of a chain, as tendons.

    A tendon is an inertia I on Σ kᵢ q̇ᵢ (in MJCF the armature of a fixed tendon). Here it is a
    massless link whose joint has the armature I and turns by Σ kᵢ qᵢ. Each locked rotor that
    several joints turn becomes one. The rest of :func:`reflected` between joints, which linkages
    have, becomes tendons by its Cholesky factor, after projection to a positive semidefinite matrix
    if need be. Joints on two branches share none, as MuJoCo's mass matrix has no entries there.

    With ``rotors`` there are only the tendons of rotors, for a fit of their inertias.
    """
    armatures: dict[str, float] = {}
    tendons: list[Tendon] = []
    for each in joint_inertias(model):
        shared, diagonal = each.tendons()
        tendons += each.of_rotors() if rotors else shared
        armatures |= each.armatures(diagonal)
    return _with_rotors(_open_tree(model, armatures, lump=True), tendons)


def approximate_one(model: Model, cluster: Cluster) -> Description:
    """The robot with this one cluster replaced by its part of :func:`approximate`'s tree."""
    armatures = {joint.name: joint.armature for joint in model.joints}
    for each in joint_inertias(model):
        if each.cluster == cluster.name:
            armatures |= each.armatures(each.matrix)
    return _open_tree(model, armatures, lump=True, only=cluster)


def unconstrained(model: Model) -> Description:
    """The independent tree: without the locked bodies, except those that carry others.

    Joints keep the armature that the file gives them. What ``method="unconstrained"`` computes.
    Raises ValueError as :func:`approximate`.
    """
    armatures = {joint.name: joint.armature for joint in model.joints}
    return _open_tree(model, armatures, lump=False)


# ---- which joints move ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """Bodies whose joints move in the open tree, and ``dropped`` ones, which carry none of them.

    Bodies in neither set are locked, but carry a moving one.
    """

    moving: frozenset[int]
    dropped: frozenset[int]

    @staticmethod
    def of(model: Model, moving: frozenset[int]) -> Selection:
        """The selection in which these bodies' joints move."""
        needed = set(moving)
        for body in moving:
            needed.update(graph.path(model.parents, body))
        return Selection(moving, frozenset(range(len(model.nodes))) - needed)


@cached_on_model
def select(model: Model) -> Selection:
    """The joints of the open tree: in each cluster, whole joints whose velocities determine it.

    Joints are taken in this order: those that carry other clusters; those of bodies that are no
    symmetric rotors; independent ones; those that carry more mass.
    """
    g = model.constraint_jacobian(model.neutral())
    moving = frozenset(
        body for c in model.clusters for body in select_in(model, c, g[c.spanning_v, c.v])
    )
    return Selection.of(model, moving)


# ---- reflected inertia ---------------------------------------------------------------------------


def reflected(model: Model, q: Vector) -> list[list[Scalar]]:
    """Reflected inertia (nv by nv), block diagonal by clusters, at q; scalars of any kind.

    A cluster's inertia Gᵀ (H + diag(armature)) G, with the bodies that carry it at rest, minus that
    of the same bodies with the joints locked that the open tree locks. A rotor with ratio N on a
    body of another cluster adds N² times its inertia. The difference may be negative: a
    parallelogram's coupler does not rotate, but does when it is locked to a moving link.
    """
    moving = select(nominal(model)).moving
    positions = model.spanning_positions(q)
    result: list[list[Scalar]] = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in model.clusters:
        g = cluster.constraint.jacobian(positions[cluster.spanning_q])
        first, start = cluster.v.start, cluster.spanning_v.start
        for (r, s), inertia in _inertias(model, cluster, positions, moving).items():
            for i in range(cluster.nv):
                for j in range(cluster.nv):
                    # the product of ratios first: 6² · I is exact to the last digit
                    term = g[r - start][i] * g[s - start][j] * inertia
                    result[first + i][first + j] = result[first + i][first + j] + term
    return result


def _inertias(
    model: Model, cluster: Cluster, positions: Vector, moving: frozenset[int]
) -> dict[tuple[int, int], Scalar]:
    """Entries of H + diag(armature) of a cluster for pairs of velocities of which one is locked.

    With armatures on the diagonal, also of joints that move.
    """
    entries: dict[tuple[int, int], Scalar] = {}
    motions: dict[int, dict[int, Motion]] = {}  # of each body, by spanning velocity
    free: set[int] = set()
    for body in cluster.bodies:
        node = model.nodes[body]
        for r in node.freedoms:
            entries[r, r] = node.armature
        if body in moving:
            free.update(node.freedoms)
        above = motions.get(node.parent, {})
        x = node.transform(positions)
        motions[body] = {r: x.to_child(motion) for r, motion in above.items()}
        motions[body] |= zip(node.freedoms, node.joint.subspace, strict=True)
        for r, one in motions[body].items():
            wrench = node.inertia * one
            for s, other in motions[body].items():
                if r not in free or s not in free:
                    entries[r, s] = entries.get((r, s), 0.0) + wrench.dot(other)
    return entries


# ---- in the joints that move ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tendon:
    """An inertia [kg m²] on the rate Σ coefficient · q̇(joint), over joints of one freedom."""

    name: str
    inertia: float
    terms: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class JointInertia:
    """The reflected inertia of a cluster at neutral, in the velocities of its joints that move.

    ``joints`` has the joint of each velocity. ``rotors`` are locked bodies that carry nothing:
    name, inertia about their joint, and ratios to the velocities. ``chained`` (n, n): whether one
    of the two velocities' joints carries the other.
    """

    cluster: str
    joints: tuple[tuple[str, bool], ...]  # a name and whether it has one freedom, by velocity
    matrix: Array
    rotors: tuple[tuple[str, float, Array], ...]
    chained: Mask

    def armatures(self, matrix: Array) -> dict[str, float]:
        """Armatures by joint: the diagonal, a ball's mean; 0 for planar and floating joints."""
        names = [name for name, _ in self.joints]
        result = {}
        for name in dict.fromkeys(names):
            values = np.diag(matrix)[[i for i, each in enumerate(names) if each == name]]
            value = float(np.mean(values)) if len(values) in (1, 3) else 0.0
            size = float(np.max(np.abs(np.diag(self.matrix))))  # of what other parts are taken off
            result[name] = value if value > NOTHING * size else 0.0
        return result

    def of_rotors(self) -> list[Tendon]:
        """The tendons of rotors that several joints of one chain turn."""
        single = np.array([alone for _, alone in self.joints])
        tendons = []
        for name, inertia, ratios in self.rotors:
            on = np.flatnonzero(np.abs(ratios) > NOTHING * np.abs(ratios).max(initial=0.0))
            along = bool(single[on].all() and self.chained[np.ix_(on, on)].all())
            if inertia > 0.0 and len(on) > 1 and along:
                tendons.append(self._tendon(name, inertia, ratios))
        return tendons

    def _tendon(self, name: str, inertia: float, ratios: Array) -> Tendon:
        on = np.flatnonzero(np.abs(ratios) > NOTHING * np.abs(ratios).max(initial=0.0))
        terms = tuple((self.joints[i][0], float(ratios[i])) for i in on)
        return Tendon(name, inertia, terms)

    def tendons(self) -> tuple[list[Tendon], Array]:
        """Tendons for all entries between joints of a chain, and the remaining diagonal matrix."""
        single = np.array([alone for _, alone in self.joints])
        between = single & single[:, None] & self.chained
        whole = np.where(between, self.matrix, np.diag(np.diag(self.matrix)))
        size = np.sqrt(np.abs(np.diag(whole)))
        scale = np.where(size > 0.0, size, 1.0)
        labels = [label for label, _ in self.joints]
        shared, remainder = self.of_rotors(), whole
        for each in shared:
            row = np.array([dict(each.terms).get(label, 0.0) for label in labels])
            remainder = remainder - each.inertia * np.outer(row, row)
        if np.linalg.eigvalsh(remainder / np.outer(scale, scale))[0] < -NOTHING:
            shared, remainder = [], whole
        diagonal, factors = _factored(remainder / np.outer(scale, scale), self.chained)
        named = [
            self._tendon(f"{self.cluster}_{n}", 1.0, row * scale) for n, row in enumerate(factors)
        ]
        return [*shared, *named], diagonal * np.outer(scale, scale)


def _factored(matrix: Array, chained: Mask | None = None) -> tuple[Array, list[Array]]:
    """A diagonal D and rows b with D + Σ bᵀ b = matrix, or near it if it is indefinite.

    The rows are columns of the Cholesky factor, from the last joint on: so joints on two branches,
    which are not ``chained``, are in no row together. Columns with a single entry go to D.
    """
    off = np.abs(matrix - np.diag(np.diag(matrix)))
    if off.max(initial=0.0) <= NOTHING:
        return np.diag(np.diag(matrix)), []
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < 0.0:
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        if chained is not None and not chained.all():
            matrix = np.where(chained, matrix, 0.0)
            lacking = max(0.0, -float(np.linalg.eigvalsh(matrix)[0]))
            matrix = matrix + lacking * np.eye(len(matrix))
    diagonal, rows = np.zeros_like(matrix), []
    for i in reversed(range(len(matrix))):
        row = np.where(np.abs(matrix[i]) > NOTHING, matrix[i], 0.0)
        if not row[i]:
            continue
        if np.count_nonzero(row) == 1:
            diagonal[i, i] = row[i]
        else:
            rows.append(row / np.sqrt(row[i]))
        matrix = matrix - np.outer(matrix[i], matrix[i]) / matrix[i, i]
    return diagonal, rows


def joint_inertias(model: Model) -> Iterator[JointInertia]:
    """The reflected inertia of each cluster, in their order."""
    q = model.neutral()
    matrix = np.array(reflected(model, [float(x) for x in q]), dtype=float)
    g = model.constraint_jacobian(q)
    carrying = {node.parent for node in model.nodes}
    for cluster in model.clusters:
        moving = [body for body in cluster.bodies if body in select(model).moving]
        rows = [v for body in moving for v in model.nodes[body].freedoms]
        of_moving = g[rows, cluster.v]
        turned = g[:, cluster.v]
        inertia = matrix[cluster.v, cluster.v]
        if not np.array_equal(of_moving, np.eye(len(rows))):
            inverse = np.linalg.inv(of_moving)
            inertia = inverse.T @ inertia @ inverse
            turned = turned @ inverse
        rotors = []
        for body in cluster.bodies:
            node = model.nodes[body]
            if body not in moving and body not in carrying and node.joint.nv == 1:
                (motion,) = node.joint.subspace
                about = float((node.inertia * motion).dot(motion)) + node.armature
                rotors.append((node.name, about, turned[node.v]))
        owners = [body for body in moving for _ in range(model.joints[body].nv)]
        labels = tuple((model.joints[b].name, model.joints[b].nv == 1) for b in owners)
        paths = {body: set(graph.path(model.parents, body)) for body in moving}
        chained = np.array([[i in paths[j] or j in paths[i] for j in owners] for i in owners])
        shape = (len(owners), len(owners))
        yield JointInertia(
            cluster.name, labels, inertia, tuple(rotors), chained.reshape(shape).astype(bool)
        )


# ---- the description -----------------------------------------------------------------------------


def _open_tree(
    model: Model, armature: Mapping[str, float], *, lump: bool, only: Cluster | None = None
) -> Description:
    """The open tree with these armatures; with ``only``, other clusters keep their loops.

    Without ``lump``, locked bodies that carry no moving one are removed.
    """
    described, selection = model.description, select(model)
    unchanged = {cluster.name for cluster in model.clusters if only and cluster is not only}
    moving = {
        body
        for body, joint in enumerate(model.joints)
        if body in selection.moving or joint.cluster in unchanged
    }
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    gone: set[str] = set()
    if not lump:
        gone = {link for body in selection.dropped for link in model.bodies[body].links}
    positions = np.array(model.spanning_positions(model.neutral().tolist()), dtype=float).tolist()
    joints = []
    for joint in described.joints:
        body = body_of.get(joint.name)
        if joint.child in gone:
            continue
        if body is None or model.joints[body].cluster in unchanged:
            joints.append(joint)
        elif body in moving:
            node = model.nodes[body]
            tied = model.clusters[node.cluster].kind != "joint" and node.joint.nq == 1
            joints.append(
                replace(
                    joint,
                    mimic=None,
                    independent=None,
                    armature=armature[joint.name],
                    initial=float(positions[node.q]) if tied else joint.initial,
                )
            )
        else:
            node = model.nodes[body]
            joints.append(fixed(joint, positions[node.positions]))
    names = {model.joints[body].name for body in moving}
    ties = {loop.name for loop in model.loops if loop.cluster in unchanged}
    ties |= {coupling.name for coupling in model.couplings if coupling.cluster in unchanged}
    opened = replace(
        described,
        links=tuple(link for link in described.links if link.name not in gone),
        joints=tuple(joints),
        loops=tuple(each for each in described.loops if each.name in ties),
        couplings=tuple(each for each in described.couplings if each.name in ties),
        transmissions=tuple(
            each for each in described.transmissions if all(j.name in names for j in each.joints)
        ),
        gravity=model.gravity,
        springs=(),
    )
    places = graph.spanning_tree(opened).places
    return replace(
        opened, springs=tuple(each for each in described.springs if _acts(each, names, places))
    )


def _with_rotors(tree: Description, tendons: Sequence[Tendon]) -> Description:
    """The tree with each tendon as a rotor without mass."""
    above = {joint.child: joint.parent for joint in tree.joints}
    parent = {joint.name: joint.parent for joint in tree.joints}
    links, joints, couplings = list(tree.links), list(tree.joints), []
    names = {link.name for link in links} | parent.keys()
    for each in tendons:
        name = rotor_name(each.name)
        while name in names:
            name += "_"
        names.add(name)
        carriers = [_upwards(above, parent[joint]) for joint, _ in each.terms]
        common = next(link for link in carriers[0] if all(link in path for path in carriers))
        links.append(Link(name))
        joints.append(
            Joint(name, "continuous", common, name, independent=False, armature=each.inertia)
        )
        terms = ((name, 1.0), *((joint, -ratio) for joint, ratio in each.terms))
        couplings.append(JointCoupling(name, terms))
    return replace(tree, links=tuple(links), joints=tuple(joints), couplings=tuple(couplings))


def _upwards(above: Mapping[str, str], link: str) -> list[str]:
    """The link and all that carry it, the nearest first."""
    links = [link]
    while links[-1] in above:
        links.append(above[links[-1]])
    return links


def _acts(spring: Spring | JointSpring, moving: set[str], places: dict[str, graph.Place]) -> bool:
    """Whether a spring's coordinate is one of the open tree too."""
    if isinstance(spring, JointSpring):
        return all(joint in moving for joint, _ in spring.terms)
    ends = [places.get(end.link) for end in (spring.predecessor, spring.successor)]
    return None not in ends and len({end.body for end in ends if end}) == 2
