"""The open tree of a robot, as it is written for simulators without loops and couplings.

:mod:`robomodel.dynamics.lumped` gives the tree its masses. Here its joints get the springs,
damping, friction, limits and motors that act on them through rotors, gears and linkages.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from robomodel.arrays import Array
from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Limits,
    Mimic,
    Motor,
    PolynomialCoupling,
    Spring,
    Transmission,
    TransmittedJoint,
)
from robomodel.description import Actuator as ActuatorEnd
from robomodel.description.transmissions import SIMPLE, actuator_terms
from robomodel.dynamics.actuators.envelopes import JointEnvelope, carrying, joint_envelope
from robomodel.dynamics.baselines import TREES
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.lumped import Selection, approximate, select, with_tendons
from robomodel.dynamics.recursions.passive import Element, elements
from robomodel.dynamics.tree_map import TreeMap, mapped
from robomodel.errors import DescriptionWarning, Source, argument, as_names, few, warn, warn_at
from robomodel.mechanism.graph import WORLD, path
from robomodel.model.actuators import Actuator
from robomodel.model.build import build
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.model.parameters import with_parameters
from robomodel.model.spins import Spin, find_spins, locked
from robomodel.opentree.fit import (
    ExactStates,
    TreeErrors,
    exact_states,
    fitted,
    relumped,
    tree_errors,
)
from robomodel.opentree.tree_joints import ClusterTree, Follower, tree_joints
from robomodel.reach.ranges import joint_range
from robomodel.tolerances import NOTHING, SAME

__all__ = ["approximate_tree"]

_LISTED = 4  # entries between joints that a warning names


def approximate_tree(
    model: Model,
    joints: str | Iterable[str] = (),
    fit: Fit = "range",
    followers: bool = True,
) -> Model:
    """The open tree that stands for a robot in simulators without loops and couplings.

    In each cluster as many joints move as it has freedoms: those that displace the links least
    while the others are locked at :meth:`Model.neutral`, which are the limb's. Spins of rods are
    locked. Inertias of bodies, armatures of joints and of rotors that several joints of a chain
    turn (in MJCF the armature of a fixed tendon) make the tree move as the robot does: exactly
    behind gears, where bodies with such inertias can exist, else fitted over the range of motion.
    Actuators are the model's; limits, springs, damping and friction act on the joints that move.
    ``tree.notes`` says what is locked, the range, and how large the errors are.

    ``write_mjcf(approximate=True)`` writes this tree. It takes the positions and velocities of the
    joints that it shares with the model, q̇ₜ = Gₜ v. Forces tau on the model become forces tauₜ on
    the tree with tau = Gₜᵀ tauₜ. :func:`correction_force` gives the joint forces that it lacks.

    Args:
        model: The robot.
        joints: Names of joints that shall move in the tree; others are chosen as needed.
        fit: "range"; or "lumped", with the links' own inertias and reflected ones at neutral.
        followers: Let a locked joint follow one that moves by a polynomial, where this brings links
            nearer to their places and the tree without it would not do.

    Returns:
        tree: A model without loops; its couplings are those of massless joints and followers.

    Raises:
        UnknownNameError: A name of ``joints`` that is no joint's.
        ValueError: A cluster's freedoms are not those of whole joints, or not of those named.

    Examples:
        >>> tree = rm.approximate_tree(rm.robots.load("belt_leg"))
        >>> tree.nv
        3
    """
    options = TreeOptions(as_names(joints, "joints"), fit, bool(followers))
    written = written_tree(model, options)
    written.warn()
    return written.model


Fit = Literal["range", "lumped"]
Kind = Literal["open", "exact", "fitted", "lumped"]


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of :func:`approximate_tree`.

    ``tendons``: use fixed tendons and polynomial couplings, which only MJCF has. Without them
    followers are linear.
    """

    joints: tuple[str, ...] = ()
    fit: Fit = "range"
    followers: bool = True
    tendons: bool = True

    def __post_init__(self) -> None:
        if self.fit not in ("range", "lumped"):
            raise ValueError(f"fit is 'range' or 'lumped', not {self.fit!r}")


@dataclass(frozen=True, eq=False)
class WrittenTree:
    """An open tree, with its choice of moving joints and its errors.

    Attributes:
        model: The tree.
        view: The robot with spins locked; its selection of moving joints is the tree's.
        spins: The spins that are locked.
        clusters: By cluster, the joints that move, their range and what they displace.
        followers: Joints that follow others.
        kind: "open": the robot is a tree; "exact"; "fitted"; or "lumped".
        errors: Errors of the tree over its range; None where they could not be computed.
        lumped: Errors of the lumped tree with the same joints.
    """

    model: Model
    view: Model
    spins: tuple[Spin, ...]
    clusters: tuple[ClusterTree, ...]
    followers: tuple[Follower, ...]
    kind: Kind
    errors: TreeErrors | None
    lumped: TreeErrors | None

    @property
    def verdict(self) -> str:
        """Whether the tree will do, in a sentence."""
        if self.kind in ("open", "exact"):
            return "the tree moves exactly as the robot does"
        if self.errors is None:
            return "how far the tree is from the robot could not be computed"
        error, fall = self.errors.acceleration, self.errors.gravity
        words = "will do" if error.median <= GOOD else "will do with care"
        if error.median > FAIR:
            words = "will not do, keep the loops"
        return (
            f"the tree {words}: accelerations are off by {percent(error.median)} in the median "
            f"over its range ({percent(error.worst)} at worst), gravity by {percent(fall.median)}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is locked, what follows, the range, and the verdict, a sentence each."""
        joints = self.view.joints
        notes = [f"the spin of '{joints[each.body].name}' is locked" for each in self.spins]
        notes += [note for each in self.clusters if (note := self._locked(each))]
        notes += [
            f"'{joints[each.body].name}' follows '{joints[each.driver].name}' by a polynomial, "
            f"within {1e3 * each.error:.2g} m{joints[each.body].units.position}{self._ends(each)}"
            for each in self.followers
        ]
        if self.range and self.kind != "exact":
            ends = [f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.range.items()]
            notes.append(f"the tree is for the range {', '.join(ends)}")
        if self.kind == "fitted":
            notes.append("inertias are fitted to the robot's motion; they are not the links' own")
        return (*notes, self.verdict)

    def _ends(self, follower: Follower) -> str:
        """Where a polynomial that is not exact ends, and with it the range of what it follows."""
        ends = polynomial_ends(self.view, self.clusters, follower)
        unit = self.view.joints[follower.driver].units.position
        return "" if ends is None else f" from {ends[0]:.3g} to {ends[1]:.3g} {unit}, its limits"

    def _locked(self, tree: ClusterTree) -> str:
        """Which bodies of a cluster are locked, and how far this displaces links, in words."""
        view, follows = self.view, {each.body for each in self.followers}
        moving = set(tree.bodies) | follows
        bodies = [
            b for b in tree.cluster.bodies if b not in moving and not view.nodes[b].axisymmetric
        ]
        if not bodies:
            return ""
        names = few([view.nodes[b].name for b in bodies])
        size = tree.displacement
        return (
            f"{few([view.joints[b].name for b in tree.bodies])} move"
            f"{'s' if len(tree.bodies) == 1 else ''}; locked to what carries "
            f"{'it' if len(bodies) == 1 else 'them'}: {names}. Therefore links of the tree are "
            f"{1e3 * size:.2g} mm (mass-weighted rms) off their places in the robot"
        )

    @property
    def range(self) -> dict[str, tuple[float, float]]:
        """The ends between which the joints of linkages were moved."""
        result = {}
        for each in self.clusters:
            links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
            for body in each.bodies:
                if each.cluster.kind == "loops" and links[body].joint.nq == 1:
                    at = each.positions[:, links[body].q]
                    result[self.view.joints[body].name] = float(np.min(at)), float(np.max(at))
        return result

    def warn(self) -> None:
        """Warn of a tree that will not do."""
        if self.errors is not None and self.errors.acceleration.median > FAIR:
            warn(RuntimeWarning(f"'{self.view.name}': {self.verdict}"))


GOOD, FAIR = 0.03, 0.10  # errors of accelerations with which a tree will do, and with care
FALL = 1e-3  # error of gravity below which a fit may be worse than the lumped tree


def percent(error: float) -> str:
    """A relative error in words."""
    return f"{float(f'{100.0 * error:.2g}'):g} %" if math.isfinite(error) else "all bounds"


USUAL = TreeOptions()


@cached_on_model
def written_tree(model: Model, options: TreeOptions = USUAL) -> WrittenTree:
    """The open tree of a robot, the best of the lumped, the exact and the fitted one."""
    spins = find_spins(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        robot = build(locked(model.description, model, spins)) if spins else model
    clusters = tuple(tree_joints(robot, options.joints, 4 if options.tendons else 1))
    view = replace(robot)
    moving = frozenset(body for each in clusters for body in each.bodies)
    view._derived[(select,)] = Selection.of(view, moving)
    lumped = _built(_lumped(view, options.tendons))
    written = WrittenTree(lumped, view, spins, clusters, (), "lumped", None, None)
    if all(cluster.kind == "joint" for cluster in view.clusters):
        return replace(written, kind="open")
    try:
        at = mapped(view, lumped, "tendons", ())
        fits, others = (exact_states(view, at, clusters, check=x) for x in (False, True))
        errors = tree_errors(lumped, others.on(at))
    except np.linalg.LinAlgError:
        return _noted(written)
    written = replace(written, errors=errors, lumped=errors)
    if errors.acceleration.worst < SAME:
        return _noted(replace(written, kind="exact"))
    if options.fit == "lumped":
        return _noted(written)
    values, exist = relumped(view, lumped)
    if exist:
        tree = with_parameters(lumped, values)
        errors = tree_errors(tree, others.on(at))
        if errors.acceleration.worst < SAME:
            return _noted(replace(written, model=tree, kind="exact", errors=errors))
    description = _lumped(view, options.tendons, rotors=True)
    best = _better(written, _fitted(written, description, fits, others))
    trees = tuple(each.with_followers or each for each in clusters)
    followers = tuple(each for cluster in trees for each in cluster.followers)
    loops = all(view.clusters[view.nodes[f.body].cluster].kind == "loops" for f in followers)
    will_do = best.errors is not None and best.errors.acceleration.median <= FAIR
    if not (followers and options.followers) or (loops and will_do):
        return _noted(best)
    fits, others = (exact_states(view, at, trees, check=x) for x in (False, True))
    written = replace(written, clusters=trees, followers=followers,
                      lumped=tree_errors(lumped, others.on(at)))  # fmt: skip
    description = _following(view, description, trees, options.tendons)
    follow = _fitted(written, description, fits, others)
    if follow and not loops:
        return _noted(follow)
    return _noted(_better(best, follow))


def _tendons(model: Model) -> TreeMap:
    """The tree of the method "tendons": the written one, in the freedoms of the robot."""
    written = written_tree(model)
    if written.model.nv != model.nv:
        locked = few([model.joints[spin.body].name for spin in written.spins])
        raise ValueError(
            f"the spins of {locked} are freedoms of '{model.name}' that no whole joints of it "
            "have, so no open tree stands for them; use an exact method, or "
            + argument("spins", "locked")
        )
    return mapped(model, written.model, "tendons", select(written.view).dropped)


def _correction(model: Model) -> TreeMap:
    """The tree that :func:`robomodel.correction_force` is for, where none is given."""
    return mapped(model, written_tree(model).model, "tendons", ())


TREES.update(tendons=_tendons, correction=_correction)


def _fitted(
    written: WrittenTree, description: Description, fits: ExactStates, others: ExactStates
) -> WrittenTree | None:
    """The described tree with fitted inertias; None where the fit is singular."""
    view, tree = written.view, _built(description)
    at = mapped(view, tree, "tendons", ())
    try:
        start = relumped(view, tree)[0]
        tree = fitted(tree, fits.on(at), start, {body.name for body in view.bodies})
        errors = tree_errors(tree, others.on(at))
    except np.linalg.LinAlgError:
        return None
    return replace(written, model=tree, kind="fitted", errors=errors)


def polynomial_ends(
    view: Model, trees: Sequence[ClusterTree], follower: Follower
) -> tuple[float, float] | None:
    """The positions of its driver between which a follower's polynomial holds; None: all."""
    if follower.error <= SAME:
        return None
    tree = next(each for each in trees if follower.driver in each.bodies)
    link = tree.cluster.geometry.links[tree.cluster.bodies.index(follower.driver)]
    at = tree.positions[:, link.q]
    return float(np.min(at)), float(np.max(at))


def _better(one: WrittenTree, other: WrittenTree | None) -> WrittenTree:
    """``other``, unless its accelerations or gravity are worse than the lumped tree's."""
    if other is None or one.errors is None or other.errors is None or other.lumped is None:
        return one
    most = min(one.errors.acceleration.median, other.lumped.acceleration.median)
    falls = other.errors.gravity.median <= max(other.lumped.gravity.median, FALL)
    return other if falls and other.errors.acceleration.median <= most else one


def _built(description: Description) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return build(description)


def _noted(written: WrittenTree) -> WrittenTree:
    return replace(written, model=replace(written.model, notes=written.notes))


def _lumped(view: Model, tendons: bool, *, rotors: bool = False) -> Description:
    """The lumped tree, with inertia between joints and actuators for MJCF."""
    if tendons:
        tree = with_tendons(view, rotors=rotors)
        return _with_motors_at_neutral(view, with_limits(view, with_reflected(view, tree)))
    return with_limits(view, with_reflected(view, approximate(view)))


def _following(
    view: Model, description: Description, trees: Sequence[ClusterTree], tendons: bool
) -> Description:
    """The tree with joints that follow others by polynomials, or as URDF's mimics do.

    What they follow has the limits between which the polynomials hold.
    """
    joints = {joint.name: joint for joint in description.joints}
    filed = {joint.name: joint for joint in view.description.joints}
    at = view.joint_positions(view.neutral())
    couplings = list(description.couplings)
    for each in (follower for tree in trees for follower in tree.followers):
        name, driver = view.joints[each.body].name, view.joints[each.driver].name
        if (ends := polynomial_ends(view, trees, each)) is not None:
            limits = joints[driver].limits
            low, high = max(limits.lower, ends[0]), min(limits.upper, ends[1])
            joints[driver] = _ending(joints[driver], replace(limits, lower=low, upper=high))
        free = replace(
            filed[name], mimic=None, independent=False, armature=0.0, initial=float(at[name]),
            damping=0.0, friction=0.0, stiffness=0.0, deadband=0.0, motor=None, rotor=None,
        )  # fmt: skip
        if not tendons:
            slope = each.coefficients[1] if len(each.coefficients) > 1 else 0.0
            mimic = Mimic(driver, slope, each.coefficients[0])
            free = replace(free, mimic=mimic, independent=None)
        else:
            coupling = PolynomialCoupling(
                f"{name}_follows_{driver}", name, driver, each.coefficients
            )
            couplings.append(coupling)
        joints[name] = free
    return replace(description, joints=tuple(joints.values()), couplings=tuple(couplings))


def open_tree_description(model: Model, options: TreeOptions) -> Description:
    """The description of the open tree to write; warns of what the format cannot express.

    Without tendons, joints keep the effort limits that motors give them, and inertia between joints
    is left out with a warning.
    """
    written = written_tree(model, options)
    written.warn()
    if not options.tendons:
        _warn_of_tendons(written.view)
    return written.model.description


def tree_notes(model: Model, options: TreeOptions) -> tuple[str, ...]:
    """Notes on its tree for the head of a written file; none for a robot that is a tree."""
    written = written_tree(model, options)
    if written.kind == "open":
        return ()
    return (f"An open tree that stands for '{model.name}'.", *written.notes)


def inertia_between_joints(model: Model) -> dict[tuple[str, str], float]:
    """Off-diagonal inertia [kg m²] that tendons add to the open tree's mass matrix, by joints."""
    tree = with_tendons(model)
    armature = {joint.name: joint.armature for joint in tree.joints}
    between: dict[tuple[str, str], float] = defaultdict(float)
    largest = 0.0
    for each in tree.couplings:
        assert isinstance(each, JointCoupling)
        (rotor, _), *terms = each.terms
        for (one, k), (other, m) in combinations(terms, 2):
            between[one, other] += k * m * armature[rotor]
            largest = max(largest, abs(k * m * armature[rotor]))
    return {pair: x for pair, x in between.items() if abs(x) > NOTHING * largest}


def _warn_of_tendons(model: Model) -> None:
    between = inertia_between_joints(model)
    entries = [f"{x:g} kg m² between {one} and {other}" for (one, other), x in between.items()]
    if entries:
        more = f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else ""
        warn_at(
            "reflected inertia between joints is not written; only MJCF can express it, by the "
            f"armature of a fixed tendon: {'; '.join(entries[:_LISTED])}{more}",
            model.description.source,
            strict=False,
        )


# --- springs, dampers and friction ---------------------------------------------------------------

# The tree locks the dependent joints of every cluster, rotors too. What acts there, a coordinate x
# with its row J at the neutral configuration, is linear in the joints that move: damping d JᵀJ,
# friction at most f |J|, and a spring about the position at which x is at rest. For gears that is
# exact; for linkages it is right near neutral, as armature is.


def with_reflected(model: Model, opened: Description) -> Description:
    """The open tree of a model with the passive forces of its locked joints and cut loops.

    A coordinate that one joint moves becomes that joint's damping, friction and spring; one that
    several move, a spring over them. One that a ball, planar or floating joint moves is left out
    with a warning: no format expresses it.
    """
    moving, names, independent_rates = _moving_joints(model)
    neutral = [float(x) for x in model.neutral()]
    spanning = model.spanning_positions(neutral)
    positions = {
        model.joints[body].name: float(spanning[model.nodes[body].q])
        for body in moving
        if model.joints[body].type in ONE_DOF
    }
    joints = {joint.name: joint for joint in opened.joints}
    springs = {spring.name: spring for spring in opened.springs if _remains(model, spring, moving)}
    sources = {joint.name: joint.source for joint in model.description.joints}
    sources |= {each.name: each.source for each in (*model.description.loops,
                                                    *model.description.springs)}  # fmt: skip
    kinds = {spring.name: spring for spring in model.springs}
    for element in elements(Configuration(model, neutral)):
        if element.name in springs or (element.name in names and element.name not in kinds):
            continue
        row = np.zeros(model.nv)
        row[list(element.row)] = [float(x) for x in element.row.values()]
        terms = _terms(row @ independent_rates, names)
        if not terms:
            continue
        if not terms.keys() <= positions.keys():
            warn_at(
                "its spring, damping and friction are not in the open tree: they act on a joint of "
                "several freedoms, which no format can express",
                sources[element.name],
                strict=False,
            )
            continue
        sprung = joints[next(iter(terms))] if len(terms) == 1 else None
        shared = sprung is None or (sprung.stiffness and element.stiffness)
        if shared and (element.deadband or (sprung and sprung.deadband)):
            warn_at(
                "the play of its spring is not in the open tree: it acts on several joints, or "
                "beside another spring of one, which no format can express",
                sources[element.name],
                strict=False,
            )
        if sprung:
            (ratio,) = terms.values()
            joints[sprung.name] = _folded(sprung, element, positions[sprung.name], ratio)
        else:
            name = element.name
            while name in springs or name in kinds:
                name += "_"
            springs[name] = _linear(name, element, terms, positions, sources[element.name])
    return replace(opened, joints=tuple(joints.values()), springs=tuple(springs.values()))


def _moving_joints(model: Model) -> tuple[list[int], list[str], Array]:
    """The bodies whose joints move in the open tree, and each velocity's joint by name.

    Third, the independent velocities (nv, nv) for unit velocities of these joints at neutral.
    """
    moving = sorted(select(model).moving)
    names = [model.joints[body].name for body in moving for _ in model.nodes[body].freedoms]
    rows = [v for body in moving for v in model.nodes[body].freedoms]
    rates = model.constraint_jacobian(model.neutral())[rows]
    return moving, names, np.asarray(np.linalg.inv(rates))


def _terms(row: Array, names: Sequence[str]) -> dict[str, float]:
    """The entries of a row over the joints that move, by joint; without those that are rounding."""
    used = np.abs(row) > NOTHING * np.abs(row).max(initial=0.0)
    return {name: float(x) for name, x, on in zip(names, row, used, strict=True) if on}


def _remains(model: Model, spring: Spring | JointSpring, moving: list[int]) -> bool:
    """Whether a spring acts in the open tree as it does in the robot."""
    if isinstance(spring, JointSpring):
        return True  # over joints that move, or it is none of the open tree's
    bodies = {link: n for n, body in enumerate(model.bodies) for link in body.links}
    ends = (bodies.get(end.link, WORLD) for end in (spring.predecessor, spring.successor))
    one, other = (set(path(model.parents, body)) for body in ends)
    return one ^ other <= set(moving)


def _folded(joint: Joint, element: Element, at: float, ratio: float) -> Joint:
    """The joint with an element added, whose coordinate moves with it by this ratio."""
    element_stiffness = element.stiffness * ratio * ratio
    stiffness = joint.stiffness + element_stiffness
    reference, play = joint.reference, joint.deadband
    if element_stiffness:
        element_reference = at - (float(element.x) - element.reference) / ratio
        moment = joint.stiffness * joint.reference + element_stiffness * element_reference
        reference = moment / stiffness
        play = 0.0 if joint.stiffness else element.deadband / abs(ratio)
    return replace(
        joint,
        damping=joint.damping + element.damping * ratio * ratio,
        friction=joint.friction + element.friction * abs(ratio),
        stiffness=stiffness,
        reference=reference,
        deadband=play,
    )


def _linear(
    name: str,
    element: Element,
    terms: Mapping[str, float],
    positions: Mapping[str, float],
    source: Source,
) -> JointSpring:
    """An element as a spring over several joints."""
    reference = 0.0
    if element.stiffness:
        at_neutral = sum(ratio * positions[joint] for joint, ratio in terms.items())
        reference = at_neutral - (float(element.x) - element.reference)
    return JointSpring(
        name, tuple(terms.items()), element.stiffness, reference, element.damping,
        element.friction, source=source,
    )  # fmt: skip


# --- actuators ------------------------------------------------------------------------------------


def with_actuators(model: Model, description: Description) -> Description:
    """The description with a transmission for each actuator of the model, with its limits.

    Transmissions of the file stay, if it has any. Otherwise an actuator acts where its force does:
    at the rotor's joint if there is a rotor, else at the joint that it drives. Actuators without
    effort are left out.
    """
    actuators = {each.name: each for each in model.actuators}
    if any(each.actuators for each in description.transmissions):
        return replace(
            description,
            transmissions=tuple(
                replace(each, actuators=tuple(_limited_end(each, end, actuators)
                                              for end in each.actuators))
                for each in description.transmissions
            ),
        )  # fmt: skip
    names = {joint.name for joint in description.joints}
    motors = {joint.name: joint.motor for joint in description.joints if joint.motor}
    added = []
    for each in model.actuators:
        if each.joint in names and each.effort_limit > 0.0:
            motor = motors.get(each.name, Motor())
            effort, velocity = each.effort_limit, each.velocity_limit
            motor = replace(motor, effort=effort, velocity=velocity)
            ends = (TransmittedJoint(each.joint),), (ActuatorEnd(each.name, motor=motor),)
            added.append(Transmission(each.name, SIMPLE, *ends))
    return replace(description, transmissions=(*description.transmissions, *added))


def _limited_end(
    transmission: Transmission, end: ActuatorEnd, actuators: Mapping[str, Actuator]
) -> ActuatorEnd:
    """An actuator with the limits that joints behind it give it where the file gives none."""
    first = transmission.joints[0].name if transmission.joints else ""
    if (actuator := actuators.get(end.name or first)) is None:
        return end
    effort, velocity = actuator.effort_limit, actuator.velocity_limit
    motor = replace(end.motor or _motor(actuator), effort=effort, velocity=velocity)
    return end if motor == Motor() else replace(end, motor=motor)


def _with_motors_at_neutral(model: Model, tree: Description) -> Description:
    """The open tree with the model's actuators on the joints that move, by ratios at neutral."""
    _, names, independent_rates = _moving_joints(model)
    rates = model.constraint_jacobian(model.neutral()) @ independent_rates
    scalar = {joint.name for joint in tree.joints if joint.type in ONE_DOF}
    drives: dict[str, list[int]] = {}  # for each joint, the numbers of joints its actuators move
    added = []
    for each in model.actuators:
        terms = _terms(sum((k * rates[v] for v, k in each.rows), np.zeros(model.nv)), names)
        if not terms or not terms.keys() <= scalar:
            warn_at(
                f"the actuator '{each.name}' is not in the open tree: it "
                + ("drives a joint of several freedoms" if terms else "moves none of its joints"),
                model.description.source,
                strict=False,
            )
            continue
        ends = tuple(TransmittedJoint(name, reduction=ratio) for name, ratio in terms.items())
        for name in terms:
            drives.setdefault(name, []).append(len(terms))
        if each.effort_limit > 0.0:
            motor = ActuatorEnd(each.name, motor=_motor(each))
            added.append(Transmission(each.name, "motor", ends, (motor,)))
    added += _motors_of_joints(model, tree, drives)
    file_efforts = {joint.name: joint.limits.effort for joint in model.description.joints}
    joints = tuple(
        replace(
            joint,
            motor=None,
            limits=joint.limits
            if drives[joint.name] == [1]
            else replace(joint.limits, effort=file_efforts[joint.name]),
        )
        if joint.name in drives
        else joint
        for joint in tree.joints
    )
    return replace(tree, joints=joints, transmissions=tuple(added))


def _motors_of_joints(
    model: Model, tree: Description, driven: Collection[str]
) -> Iterator[Transmission]:
    """A motor for each joint with an effort limit that no actuator of the model drives."""
    for each in model.description.transmissions:
        if each.actuators and each.joints and not any(actuator_terms(each)):
            warn_at(
                f"a transmission of the type '{each.type}' is not written; each of its joints with "
                "a limit of its effort has a motor of its own",
                each.source,
                strict=False,
            )
    for joint in tree.joints:
        effort = joint.limits.effort
        if joint.type in ONE_DOF and joint.name not in driven and 0.0 < effort < math.inf:
            ends = (TransmittedJoint(joint.name),), (ActuatorEnd(joint.name),)
            yield Transmission(joint.name, "motor", *ends)


def _motor(actuator: Actuator) -> Motor:
    return Motor(
        effort=actuator.effort_limit,
        velocity=actuator.velocity_limit,
        stall_torque=actuator.stall_torque,
        no_load_speed=actuator.no_load_speed,
        torque_constant=actuator.torque_constant,
        resistance=actuator.resistance,
    )


# --- limits of open trees -------------------------------------------------------------------------


def with_limits(model: Model, tree: Description) -> Description:
    """The open tree with the limits that joints have behind rotors, gears and linkages.

    Effort and velocity limits are what motors give everywhere in the range, which ends at limits
    and dead points of the linkage. Tighter limits of the file stay. A motor's own numbers go with
    its rotor; a torque-speed curve behind a constant ratio is converted to the joint.
    """
    if not any(joint.motor for joint in tree.joints) and not _limits_anything(model):
        looped = {name for cluster in model.clusters if cluster.varies for name in cluster.joints}
        joints = [
            _reaching(model, joint) if joint.name in looped and joint.type in ONE_DOF else joint
            for joint in tree.joints
        ]
        return replace(tree, joints=tuple(joints))
    bodies = {model.joints[body].name: body for body in carrying(model)}
    joints = [
        _limited(model, joint, joint_envelope(model, bodies[joint.name]))
        if joint.name in bodies and joint.type in ONE_DOF
        else joint
        for joint in tree.joints
    ]
    return replace(tree, joints=tuple(joints))


def _limits_anything(model: Model) -> bool:
    """Whether any motor or position has a limit: else dead points alone end ranges."""
    ends = [x for joint in model.joints for x in (joint.lower, joint.upper)]
    for each in model.actuators:
        ends += [each.effort_limit, each.velocity_limit]
        ends += [x for x in (each.stall_torque, each.no_load_speed) if x is not None]
    return any(map(math.isfinite, ends))


def _limited(model: Model, joint: Joint, envelope: JointEnvelope) -> Joint:
    kind_of_cluster = next(c.kind for c in model.clusters if c.name == envelope.cluster)
    motor = joint.motor if kind_of_cluster == "joint" else _motor_at_joint(model, envelope)
    return _ending(replace(joint, motor=motor), envelope.limits)


def _reaching(model: Model, joint: Joint) -> Joint:
    """A joint with the limits of its range."""
    reach = joint_range(model, joint.name)
    return _ending(joint, replace(joint.limits, lower=reach.lower, upper=reach.upper))


def _ending(joint: Joint, limits: Limits) -> Joint:
    """A joint with limits; a continuous joint bounded on one side only stays unbounded."""
    bounded = math.isfinite(limits.lower) and math.isfinite(limits.upper)
    kind = "revolute" if joint.type == "continuous" and bounded else joint.type
    if kind == "continuous":
        limits = replace(limits, lower=joint.limits.lower, upper=joint.limits.upper)
    return replace(joint, type=kind, limits=limits)


def _motor_at_joint(model: Model, envelope: JointEnvelope) -> Motor | None:
    """The torque-speed curve of a joint's motor, at the joint; None if several motors drive it."""
    actuators = [each for each in model.actuators if each.name in envelope.actuators]
    if len(actuators) != 1 or not envelope.constant or not math.isfinite(envelope.effort):
        return None
    (actuator,) = actuators
    if actuator.stall_torque is None or actuator.no_load_speed is None:
        return None
    ratio = envelope.effort / min(actuator.effort_limit, actuator.stall_torque)
    return Motor(
        effort=actuator.effort_limit * ratio,
        velocity=actuator.velocity_limit / ratio,
        stall_torque=actuator.stall_torque * ratio,
        no_load_speed=actuator.no_load_speed / ratio,
    )
