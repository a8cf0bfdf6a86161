"""Open trees that approximate robots with loops and couplings, for simulators without these.

In each constrained cluster as many joints move as it has freedoms. Joints may follow these; the
others are locked at the neutral configuration. The inertia that locked bodies have by their motion
is added as armature to the joints that move (:func:`approximate`), or left out with the bodies,
followers too (:func:`unconstrained`). These trees are the paper's
baselines, and where the fit of :mod:`robomodel.opentree.fit` starts. docs/approximate.md gives the
reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.description import (
    CouplingElement,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    PolynomialCoupling,
    Spring,
)
from robomodel.description.transmissions import rotor_name
from robomodel.dynamics.kinematics.state import neutral_jacobian
from robomodel.mechanism import graph
from robomodel.mechanism.constraints import LinearConstraint
from robomodel.model.derived import cached_on_model, nominal
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.options import fixed
from robomodel.reach.limb import limb_bodies, select_in
from robomodel.reach.rotors import rotors
from robomodel.scalars import Scalar, Vector, value_of
from robomodel.spatial import Motion
from robomodel.tolerances import NOTHING, SAME


def approximate(model: Model, *, lump: bool = True) -> Description:
    """The robot as an open tree with armature of joints, its links as they are.

    Locked bodies are fixed to the bodies that carry them, which then have their mass and inertia.
    ``lump=False`` removes them instead, and followers, except those that carry other bodies. The
    armature of each joint is its diagonal entry of :func:`reflected` at the neutral configuration,
    in the velocities of the joints that move, or 0 if that is negative. A ball joint, whose
    armature is one number, has the mean of three entries; planar and floating joints have none.

    Raises ValueError if no set of whole joints determines a cluster.
    """
    armatures: dict[str, float] = {}
    for each in joint_inertias(model, followers=lump):
        armatures |= each.armatures(each.matrix)
    return _open_tree(model, armatures, lump=lump)


def with_tendons(model: Model) -> Description:
    """The tree of :func:`approximate` with the inertia of rotors that several joints turn.

    A tendon is an inertia I on Σ kᵢ q̇ᵢ (in MJCF the armature of a fixed tendon). Here it is a
    massless link whose joint has the armature I and turns by Σ kᵢ qᵢ. Joints on two branches share
    none, as MuJoCo's mass matrix has no entries there.
    """
    armatures: dict[str, float] = {}
    tendons: list[Tendon] = []
    for each in joint_inertias(model):
        tendons += each.tendons
        armatures |= each.armatures(each.without_tendons(each.matrix))
    tree = _open_tree(model, armatures, lump=True)
    for tendon in tendons:
        tree, _ = _with_rotor(tree, tendon)
    return tree


def unconstrained(model: Model) -> Description:
    """The independent tree: without the locked bodies, except those that carry others.

    Joints keep the armature that the file gives them. What ``method="unconstrained"`` computes.
    Raises ValueError as :func:`approximate`.
    """
    armatures = {joint.name: joint.armature for joint in model.joints}
    return _open_tree(model, armatures, lump=False)


# ---- which joints move ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Follower:
    """A joint that follows joints that move, by its body and theirs.

    q = Σ ratiosᵢ q(driverᵢ) + Σ coefficientsⱼ uʲ with u = Σ alongᵢ q(driverᵢ): what two fixed
    tendons of MuJoCo can be tied by. ``error`` [rad or m]: the largest over the range.
    """

    body: int
    drivers: tuple[int, ...]
    ratios: tuple[float, ...]
    coefficients: tuple[float, ...]
    along: tuple[float, ...] = ()
    error: float = 0.0

    @property
    def exact(self) -> bool:
        """True if it moves as in the robot."""
        return self.error <= SAME

    @property
    def linear(self) -> bool:
        """True if its ratios are constant."""
        return len(self.coefficients) == 1

    def at(self, x: Array) -> Array:
        """Its positions (n,) where the drivers are at x (n, drivers)."""
        u = np.zeros(len(x)) if self.linear else x @ np.array(self.along)
        bent = np.polynomial.polynomial.polyval(u, self.coefficients)
        return np.asarray(x @ np.array(self.ratios) + bent)

    def slopes(self, x: Array) -> Array:
        """Its rates (n, drivers) by those of the drivers, which are at x (n, drivers)."""
        if self.linear:
            return np.tile(self.ratios, (len(x), 1))
        along, rates = np.array(self.along), np.polynomial.polynomial.polyder(self.coefficients)
        bent = np.polynomial.polynomial.polyval(x @ along, rates)
        return np.asarray(self.ratios + bent[:, None] * along)

    def name(self, model: Model) -> str:
        """The name of the coupling that ties it."""
        name, *of = (model.joints[body].name for body in (self.body, *self.drivers))
        return f"{name}_follows_{'_'.join(of)}"

    def tied(self, model: Model, tree: Description) -> Description:
        """A tree with what ties it: a coupling, of several joints by a curve one of two sums."""
        joint, *of = (model.joints[body].name for body in (self.body, *self.drivers))
        name, (constant, *more) = self.name(model), self.coefficients
        tie: CouplingElement
        beside = ((joint, 1.0), *((x, -k) for x, k in zip(of, self.ratios, strict=True)))
        if self.linear:
            tie = JointCoupling(name, beside, constant)
        elif len(of) == 1:
            (ratio,), (k,) = self.ratios, self.along
            powers = [c * k**n for n, c in enumerate(more, 1)]
            tie = PolynomialCoupling(name, joint, of[0], (constant, ratio + powers[0], *powers[1:]))
        else:
            tree, left = _with_rotor(tree, Tendon(name, 0.0, beside))
            along = tuple(zip(of, self.along, strict=True))
            tree, right = _with_rotor(tree, Tendon(f"{name}_along", 0.0, along))
            tie = PolynomialCoupling(name, left, right, self.coefficients)
        return replace(tree, couplings=(*tree.couplings, tie))


@dataclass(frozen=True, slots=True)
class Selection:
    """Bodies whose joints move in the open tree, those that follow, and ``dropped`` ones.

    Dropped ones carry none of the others. Bodies in none of these sets are locked, but carry one.
    """

    moving: frozenset[int]
    followers: tuple[Follower, ...]
    dropped: frozenset[int]

    @staticmethod
    def of(model: Model, moving: frozenset[int], followers: Sequence[Follower] = ()) -> Selection:
        """The selection in which these bodies' joints move, and these follow."""
        needed = {*moving, *(each.body for each in followers)}
        for body in tuple(needed):
            needed.update(graph.path(model.parents, body))
        dropped = frozenset(range(len(model.nodes))) - needed
        return Selection(moving, tuple(followers), dropped)

    @property
    def following(self) -> frozenset[int]:
        """The bodies of followers."""
        return frozenset(each.body for each in self.followers)

    def alone(self, model: Model) -> Selection:
        """The same without followers."""
        return Selection.of(model, self.moving)


@cached_on_model
def select(model: Model) -> Selection:
    """The joints of the open tree: in each cluster, whole joints whose velocities determine it.

    They are those of the limb (:func:`robomodel.limb_joints`), and those of spins of rods if whole
    joints have them. None follows; the views of :mod:`robomodel.opentree` have selections of their
    own. The file's numbers decide, so that changed parameters change no joints.
    """
    model = nominal(model)
    g = neutral_jacobian(model)
    moving = frozenset(
        body
        for cluster, limb in zip(model.clusters, limb_bodies(model), strict=True)
        for body in select_in(model, cluster, g[cluster.spanning_v, cluster.v], limb)
    )
    return Selection.of(model, moving)


def geared_followers(model: Model, cluster: Cluster, moving: Collection[int]) -> Iterator[Follower]:
    """The joints of a cluster without loops that constant ratios tie to those that move."""
    if cluster.kind == "joint" or not isinstance(cluster.constraint, LinearConstraint):
        return
    positions = [value_of(x) for x in model.spanning_positions(model.neutral().tolist())]
    g = neutral_jacobian(model)[:, cluster.v]
    drivers = [body for body in cluster.bodies if body in moving]
    if any(model.nodes[body].joint.nv != 1 for body in drivers):
        return
    rates = g @ np.linalg.inv(g[[model.nodes[body].v for body in drivers]])
    turning = rotors(model, cluster)
    for body in cluster.bodies:
        node = model.nodes[body]
        if body in moving or body in turning or node.joint.nv != 1:
            continue
        row = rates[node.v]
        on = np.flatnonzero(np.abs(row) > NOTHING * np.abs(row).max(initial=0.0)).tolist()
        of, ratios = [drivers[i] for i in on], [float(row[i]) for i in on]
        at = (k * positions[model.nodes[d].q] for k, d in zip(ratios, of, strict=True))
        if of:
            constant = positions[node.q] - sum(at)
            yield Follower(body, tuple(of), tuple(ratios), (constant,))


# ---- reflected inertia ---------------------------------------------------------------------------


def reflected(model: Model, q: Vector) -> list[list[Scalar]]:
    """Reflected inertia (nv by nv), block diagonal by clusters, at q; scalars of any kind.

    A cluster's inertia Gᵀ (H + diag(armature)) G, with the bodies that carry it at rest, minus that
    of the same bodies with the joints locked that the open tree locks; followers are not locked. A
    rotor with ratio N on a body of another cluster adds N² times its inertia. The difference may be
    negative: a parallelogram's coupler does not rotate, but does when it is locked to a moving
    link.
    """
    return _reflected(model, q, select(model))


def _reflected(model: Model, q: Vector, selection: Selection) -> list[list[Scalar]]:
    """The reflected inertia of the tree of a selection."""
    positions = model.spanning_positions(q)
    result: list[list[Scalar]] = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in model.clusters:
        g = cluster.constraint.jacobian(positions[cluster.spanning_q])
        first, start = cluster.v.start, cluster.spanning_v.start
        for (r, s), inertia in _inertias(model, cluster, positions, selection).items():
            for i in range(cluster.nv):
                for j in range(cluster.nv):
                    # the product of ratios first: 6² · I is exact to the last digit
                    term = g[r - start][i] * g[s - start][j] * inertia
                    result[first + i][first + j] = result[first + i][first + j] + term
    return result


def _inertias(
    model: Model, cluster: Cluster, positions: Vector, selection: Selection
) -> dict[tuple[int, int], Scalar]:
    """Entries of H + diag(armature) of a cluster for pairs of velocities of which one is locked.

    With armatures on the diagonal, also of joints that move, but for followers.
    """
    following = selection.following
    entries: dict[tuple[int, int], Scalar] = {}
    motions: dict[int, dict[int, Motion]] = {}  # of each body, by spanning velocity
    free: set[int] = set()
    for body in cluster.bodies:
        node = model.nodes[body]
        for r in node.freedoms:
            entries[r, r] = 0.0 if body in following else node.armature
        if body in selection.moving or body in following:
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
    """A sum Σ coefficient · q(joint) over joints of one freedom; an inertia [kg m²] turns by it."""

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

    @property
    def tendons(self) -> list[Tendon]:
        """The inertias of rotors that several joints of one chain turn."""
        single = np.array([alone for _, alone in self.joints])
        tendons = []
        for name, inertia, ratios in self.rotors:
            on = np.flatnonzero(np.abs(ratios) > NOTHING * np.abs(ratios).max(initial=0.0))
            along = bool(single[on].all() and self.chained[np.ix_(on, on)].all())
            if inertia > 0.0 and len(on) > 1 and along:
                terms = tuple((self.joints[i][0], float(ratios[i])) for i in on)
                tendons.append(Tendon(name, inertia, terms))
        return tendons

    def without_tendons(self, matrix: Array) -> Array:
        """An inertia (..., n, n) of these velocities without those of the tendons."""
        rest = matrix
        for each in self.tendons:
            row = np.array([dict(each.terms).get(label, 0.0) for label, _ in self.joints])
            rest = rest - each.inertia * np.outer(row, row)
        return rest


@cached_on_model
def joint_inertias(model: Model, *, followers: bool = True) -> tuple[JointInertia, ...]:
    """The reflected inertia of each cluster, in their order; without followers they are locked."""
    q, result = model.neutral(), list[JointInertia]()
    selection = select(model) if followers else select(model).alone(model)
    matrix = np.array(_reflected(model, [float(x) for x in q], selection), dtype=float)
    g = neutral_jacobian(model)
    carrying = {node.parent for node in model.nodes}
    for cluster in model.clusters:
        moving = [body for body in cluster.bodies if body in selection.moving]
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
            locked = body not in moving and body not in selection.following
            if locked and body not in carrying and node.joint.nv == 1:
                (motion,) = node.joint.subspace
                about = value_of((node.inertia * motion).dot(motion)) + node.armature
                rotors.append((node.name, about, turned[node.v]))
        owners = [body for body in moving for _ in range(model.joints[body].nv)]
        labels = tuple((model.joints[b].name, model.joints[b].nv == 1) for b in owners)
        paths = {body: set(graph.path(model.parents, body)) for body in moving}
        chained = np.array([[i in paths[j] or j in paths[i] for j in owners] for i in owners])
        shape = (len(owners), len(owners))
        chained = chained.reshape(shape).astype(bool)
        result.append(JointInertia(cluster.name, labels, inertia, tuple(rotors), chained))
    return tuple(result)


# ---- the description -----------------------------------------------------------------------------


def _open_tree(model: Model, armature: Mapping[str, float], *, lump: bool) -> Description:
    """The open tree with these armatures.

    Without ``lump``, locked bodies that carry no moving one are removed, and nothing follows.
    """
    described = model.description
    selection = select(model) if lump else select(model).alone(model)
    moving, following = selection.moving, selection.following
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
        if body is None:
            joints.append(joint)
        elif body in following:
            at = float(positions[model.nodes[body].q])
            joints.append(_free(joint, at))
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
    opened = replace(
        described,
        links=tuple(link for link in described.links if link.name not in gone),
        joints=tuple(joints),
        loops=(),
        couplings=(),
        transmissions=tuple(
            each for each in described.transmissions if all(j.name in names for j in each.joints)
        ),
        gravity=model.gravity,
        springs=(),
    )
    for each in selection.followers:
        opened = each.tied(model, opened)
    places = graph.spanning_tree(opened).places
    return replace(
        opened, springs=tuple(each for each in described.springs if _acts(each, names, places))
    )


def _free(joint: Joint, initial: float) -> Joint:
    """A joint that follows; what acts on it acts on what it follows."""
    return replace(
        joint, mimic=None, independent=False, initial=initial, damping=0.0, friction=0.0,
        stiffness=0.0, deadband=0.0, motor=None, rotor=None,
    )  # fmt: skip


def _with_rotor(tree: Description, tendon: Tendon) -> tuple[Description, str]:
    """The tree with a tendon as a rotor without mass; the rotor's name."""
    above = {joint.child: joint.parent for joint in tree.joints}
    parent = {joint.name: joint.parent for joint in tree.joints}
    name = rotor_name(tendon.name)
    while name in parent or any(link.name == name for link in tree.links):
        name += "_"
    carriers = [_upwards(above, parent[joint]) for joint, _ in tendon.terms]
    common = next(link for link in carriers[0] if all(link in path for path in carriers))
    rotor = Joint(name, "continuous", common, name, independent=False, armature=tendon.inertia)
    terms = ((name, 1.0), *((joint, -ratio) for joint, ratio in tendon.terms))
    turned = replace(
        tree, links=(*tree.links, Link(name)), joints=(*tree.joints, rotor),
        couplings=(*tree.couplings, JointCoupling(name, terms)),
    )  # fmt: skip
    return turned, name


def _upwards(above: Mapping[str, str], link: str) -> list[str]:
    """The link and all that carry it, the nearest first."""
    links = [link]
    while links[-1] in above:
        links.append(above[links[-1]])
    return links


def _acts(spring: Spring | JointSpring, moving: set[str], places: dict[str, graph.Place]) -> bool:
    """True if a spring's coordinate is one of the open tree too."""
    if isinstance(spring, JointSpring):
        return all(joint in moving for joint, _ in spring.terms)
    ends = [places.get(end.link) for end in (spring.predecessor, spring.successor)]
    return None not in ends and len({end.body for end in ends if end}) == 2
