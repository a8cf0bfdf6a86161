"""The open tree of a robot: one object with its armatures, its errors and what is said of it.

A robot has two trees with the same joints, range and states: links as they are, with reflected
inertia beside them (``fit="lumped"``), and links with inertias with which the tree moves as the
robot does (``fit="range"``). Reports, writers, settings for simulators and methods of the dynamics
are given these.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, combinations
from typing import Any, Literal

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description import Description, JointCoupling, Limits, Mimic
from robomodel.dynamics.actuators.envelopes import efforts_at
from robomodel.dynamics.lumped import (
    Follower,
    Selection,
    approximate,
    joint_inertias,
    select,
    with_tendons,
)
from robomodel.dynamics.tree_map import TreeMap, mapped
from robomodel.errors import DescriptionWarning, argument, as_names, few, warn, warn_at
from robomodel.mechanism.graph import WORLD, path
from robomodel.model.build import build
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.model.parameters import parameters, with_parameters
from robomodel.model.spins import Spin, find_spins
from robomodel.opentree.errors import (
    FAIR,
    GOOD,
    Error,
    Errors,
    Measure,
    exact_states,
    percent,
    worst_joint,
)
from robomodel.opentree.fit import Problem, best
from robomodel.opentree.gears import Relumped, relumped
from robomodel.opentree.motors import (
    ending,
    with_limits,
    with_motors_at_neutral,
    with_motors_of_followers,
)
from robomodel.opentree.passive import with_reflected
from robomodel.opentree.tree_joints import ClusterTree, Following, tree_joints
from robomodel.reach.limb import finalists, without_spins
from robomodel.reach.rotors import rotors
from robomodel.running import uncollected
from robomodel.tolerances import NOTHING, SAME

__all__ = ["approximate_tree"]

ALIKE = 0.9  # of the most that a part displaces: a left and a right leg, at random positions
FEW_JOINTS = 10  # of a robot's one linkage for which trees on other joints are tried
_LISTED_ENTRIES = 4  # entries between joints that a warning names

Fit = Literal["range", "lumped"]
Kind = Literal["open", "exact", "fitted", "lumped"]


def approximate_tree(
    model: Model,
    joints: str | Iterable[str] = (),
    fit: Fit = "range",
    followers: bool = True,
) -> OpenTree:
    """The open tree that stands for a robot in simulators without loops and couplings.

    In each cluster as many joints move as it has freedoms: those that displace the links least
    while the others are locked at :meth:`Model.neutral`, which are the limb's. Joints that constant
    ratios tie to these (mimics, racks, parallelograms) follow them exactly, spins of rods are
    locked, and so are rotors, whose inertia is that of other bodies and armature: exactly behind
    gears, where bodies with such inertias can exist. Only the rest is fitted, over the range of
    motion, and no joint of a fitted tree is worse than with links as they are (or 0.1 %).
    Actuators are the model's; limits, springs, damping and friction act on the joints that move.

    ``write_mjcf(approximate=True)`` writes this tree. It takes the positions and velocities of the
    joints that it shares with the model, q̇ₜ = Gₜ v. Forces tau on the model become forces tauₜ on
    the tree with tau = Gₜᵀ tauₜ. :func:`correction_force` gives the joint forces that it lacks.

    Args:
        model: The robot.
        joints: Names of joints that shall move in the tree; others are chosen as needed.
        fit: "range"; or "lumped", with the links' own inertias and reflected ones at neutral.
        followers: Let joints follow those that move: exactly where ratios are constant; where no
            tree without would do, by a polynomial that brings links nearer to their places.

    Returns:
        tree: A model without loops, whose couplings are those of followers and massless joints.
            ``tree.armature`` has the armature of each joint [kg m² or kg], ``tree.errors`` its
            error (median and worst over the range), ``tree.verdict`` what these say, and
            ``tree.notes`` what is locked and follows, the range, and the verdict.

    Raises:
        UnknownNameError: A name of ``joints`` that is no joint's.
        ValueError: A cluster's freedoms are not those of whole joints, or not of those named.

    Examples:
        >>> tree = rm.approximate_tree(rm.robots.load("belt_leg"))
        >>> tree.nv
        3
        >>> tree.verdict.startswith("will do")
        True
    """
    tree = written_tree(model, TreeOptions(as_names(joints, "joints"), fit, bool(followers)))
    tree.warn()
    return tree


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of :func:`approximate_tree`.

    ``tendons``: use fixed tendons, and couplings of several joints and by polynomials, which only
    MJCF has. Without them followers have one driver and are linear.
    """

    joints: tuple[str, ...] = ()
    fit: Fit = "range"
    followers: bool = True
    tendons: bool = True

    def __post_init__(self) -> None:
        if self.fit not in ("range", "lumped"):
            raise ValueError(f"fit is 'range' or 'lumped', not {self.fit!r}")

    @property
    def following(self) -> Following | None:
        """Which joints may follow others."""
        if not self.followers:
            return None
        return Following() if self.tendons else Following(degree=1, drivers=1)


USUAL = TreeOptions()


@dataclass(frozen=True, eq=False)
class Basis:
    """Parts that both trees of a robot have in common.

    Attributes:
        model: The robot itself.
        view: The robot with spins of rods locked; its selection of joints is the tree's.
        parts: By cluster, the joints that move and follow, their range and what they displace.
        tendons: Whether there are fixed tendons, see :class:`TreeOptions`.
        before: That of a tree with fewer followers, whose states these are over the same range.
    """

    model: Model
    view: Model
    parts: tuple[ClusterTree, ...]
    tendons: bool
    before: Basis | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        parts: Sequence[ClusterTree],
        tendons: bool,
        before: Basis | None = None,
    ) -> Basis:
        """The basis of these parts of the tree."""
        view = replace(without_spins(model))
        moving = frozenset(body for each in parts for body in each.bodies)
        followers = [each for part in parts for each in part.followers]
        view._derived[(select,)] = Selection.of(view, moving, followers)
        return cls(model, view, tuple(parts), tendons, before)

    @property
    def robot(self) -> Model:
        """The view as all trees of the robot have it, which keeps what they have in common."""
        return without_spins(self.model)

    @property
    def spins(self) -> tuple[Spin, ...]:
        """The spins that are locked."""
        return find_spins(self.model)

    def following(self, parts: Sequence[ClusterTree]) -> Basis:
        """The basis of the same robot's tree with other followers."""
        return Basis.of(self.model, parts, self.tendons, self)

    @property
    def followers(self) -> tuple[Follower, ...]:
        """The joints that follow others."""
        return tuple(each for part in self.parts for each in part.followers)

    @property
    def joints(self) -> list[int]:
        """The bodies of joints that move or follow."""
        selection = select(self.view)
        return sorted({*selection.moving, *selection.following})

    @property
    def limiting(self) -> Model:
        """The robot whose motors and linkages give the tree's joints their limits.

        Its rods spin, as in reports: locked, they would end ranges where they are in line with the
        axes that lock them. Joints of the tree that turn with spins need them locked.
        """
        turning = {name for spin in self.spins for name in spin.joints}
        names = {self.view.joints[body].name for body in self.joints}
        return self.robot if turning & names else self.model

    @cached_property
    def limits(self) -> Mapping[str, Limits]:
        """The limits of the tree's joints, as motors and linkages give them there."""
        opened = with_limits(self.limiting, self.view, approximate(self.view))
        names = {self.view.joints[body].name for body in self.joints}
        return {joint.name: joint.limits for joint in opened.joints if joint.name in names}

    @cached_property
    def draft(self) -> Description:
        """The tree with links as they are, without motors, with the file's limits."""
        view = self.view
        tree = with_reflected(view, with_tendons(view) if self.tendons else approximate(view))
        return tree if self.tendons else _mimicking(view, tree)

    @cached_property
    def drafted(self) -> Model:
        """The same as a model."""
        return _built(self.draft)

    @cached_property
    def description(self) -> Description:
        """The same with motors, and with the limits that these and linkages give its joints."""
        tree = _ended(self.robot, self.parts, with_limits(self.limiting, self.view, self.draft))
        if self.tendons:
            return with_motors_at_neutral(self.view, tree)
        return _unmotored(with_motors_of_followers(self.view, tree))

    def on(self, tree: Model) -> TreeMap:
        """A tree with its relation to the robot."""
        return mapped(self.view, tree, "tendons", ())

    @cached_property
    def measure(self) -> Measure:
        """At states to judge by, which no fit has seen.

        Raises LinAlgError where the joints, or the robot's inertia, are singular.
        """
        return self._measure(check=True)

    @cached_property
    def fitted_to(self) -> Measure:
        """The same at states to fit to."""
        return self._measure(check=False)

    def _measure(self, *, check: bool) -> Measure:
        if self.before and all(map(ClusterTree.has_range_of, self.parts, self.before.parts)):
            before = self.before.measure if check else self.before.fitted_to
            return Measure.of(before.states.anew(), self.joints, before.efforts)
        states = exact_states(self.view, self.on(self.drafted), self.parts, check=check)
        return Measure.of(states, self.joints, self.efforts(states.q))

    @cached_property
    def lumped(self) -> OpenTree:
        """The tree with links as they are."""
        return _links_as_they_are(self)

    @cached_property
    def best(self) -> OpenTree:
        """The exact tree, else the fitted one if it is better than that with links as they are."""
        return _best(self)

    def efforts(self, q: Array) -> dict[str, Array]:
        """The efforts (n,) of joints that move at q (n, nq), by name."""
        moving = [body for part in self.parts for body in part.bodies
                  if self.view.nodes[body].joint.nv == 1]  # fmt: skip
        efforts = efforts_at(self.robot, moving, q)
        return {self.view.joints[body].name: each for body, each in efforts.items()}


@dataclass(frozen=True, eq=False)
class OpenTree(Model):
    """An open tree that stands for a robot; it is a model itself.

    Attributes:
        kind: "open": the robot is a tree; "exact": it moves as the robot does; "fitted": some of
            its links have fitted inertias; "lumped": they have their own.
        errors: Of each joint's acceleration the error, median and worst over the range, relative to
            the joint's own motion there or, where that is less, to what its effort gives
            (docs/approximate.md); empty where it could not be computed.
        basis: What it has in common with the other tree of the robot.
        lumped: The tree with links as they are; None if it is this one.
        others: Joints on which a tree would do better, if this one will not do and others have been
            tried: their names, and the worst error's median.
    """

    kind: Kind = field(kw_only=True, metadata={"program": False})
    errors: Errors = field(kw_only=True, metadata={"program": False})
    basis: Basis = field(kw_only=True, metadata={"program": False})
    lumped: OpenTree | None = field(kw_only=True, default=None, metadata={"program": False})
    others: tuple[tuple[str, ...], float] | None = field(
        kw_only=True, default=None, metadata={"program": False}
    )

    @classmethod
    def made(cls, model: Model, **more: Any) -> OpenTree:
        """The open tree that is a model, with its notes."""
        tree = cls(**{each.name: getattr(model, each.name) for each in fields(Model)}, **more)
        return replace(tree, _remarks=tree._notes)

    @cached_property
    def limited(self) -> OpenTree:
        """The same with motors and the limits that these and linkages give its joints."""
        model = _built(self.basis.description)
        if self.kind in ("exact", "fitted"):
            model = with_parameters(model, parameters(self).values)
        lumped = self.lumped and self.lumped.limited
        return OpenTree.made(model, kind=self.kind, errors=self.errors, basis=self.basis,
                             lumped=lumped, others=self.others)  # fmt: skip

    @cached_property
    def armature(self) -> Mapping[str, float]:
        """The armature of each joint [kg m², or kg where it slides], by name."""
        names = set(self.basis.view.joint_names)
        return {
            joint.name: joint.armature
            for joint in self.joints
            if joint.name in names and (joint.nv == 1 or joint.type == "spherical")
        }

    @property
    def limits(self) -> Mapping[str, Limits]:
        """The limits of its joints, as motors and linkages give them there."""
        return self.basis.limits

    @property
    def verdict(self) -> str:
        """If the tree will do: up to 3 % of the worst joint's median, up to 10 % with care."""
        view, left_out = self.basis.view, list[str]()
        if self.basis.spins:
            names = few([view.joints[each.body].name for each in self.basis.spins])
            left_out.append(f"the spin of {names}")
        left_out += [f"{where}, next to a change point"
                     for part in self.basis.parts for where in part.change_points]  # fmt: skip
        excused = f"; not counted: {', '.join(left_out)}" if left_out else ""
        if self.kind == "open":
            return "will do: the robot is a tree"
        if not self.errors:
            return "will do or not: its errors could not be computed"
        name, error = worst_joint(self.errors)
        if self.kind == "exact":
            return f"will do: it moves exactly as the robot does{excused}"
        words = "will do" if error.median <= GOOD else "with care"
        if error.median > FAIR:
            words = "will not do" + (", keep the loops" if view.loops else "")
        if error.median > FAIR and self.others:
            joints, median_ = self.others
            words += f", or let {few(list(joints))} move ({percent(median_)})"
        low, high = error.interval
        close = any(low <= limit < high for limit in (GOOD, FAIR))
        open_ = f"; other states may give {percent(low)} to {percent(high)}" if close else ""
        return (
            f"{words}: accelerations of '{name}' are off by {percent(error.median)} in the median "
            f"over its range ({percent(error.worst)} at worst), all others by less in the median"
            f"{open_}{excused}"
        )

    @property
    def said(self) -> str:
        """The verdict as a sentence on the tree."""
        words = self.verdict
        return f"the tree {'will do ' if words.startswith('with') else ''}{words}"

    @property
    def _notes(self) -> tuple[str, ...]:
        """Sentences on locked joints, on those that follow, on the range, and the verdict."""
        basis = self.basis
        if self.kind == "open":
            return ()
        joints = basis.view.joints
        notes = [f"the spin of '{joints[each.body].name}' is locked" for each in basis.spins]
        notes += [note for each in basis.parts if (note := _locked_words(basis.view, each))]
        notes += _following_words(basis)
        if self.range and self.kind != "exact":
            ends = [f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.range.items()]
            notes.append(f"the tree is for the range {', '.join(ends)}")
        if self.kind == "fitted":
            notes.append("inertias are fitted to the robot's motion; they are not the links' own")
        if lossy := [each.name for each in basis.view.actuators if each.lossy]:
            notes.append(f"losses in the gears of {few(lossy)} are left out")
        if weak := self._weak_words():
            notes.append(weak)
        return (*notes, self.said)

    def _weak_words(self) -> str:
        """That efforts are small, and what that makes of the worst joint's error."""
        if self.kind == "exact" or not self.errors or worst_joint(self.errors)[1].median <= GOOD:
            return ""
        name, error = worst_joint(self.errors)
        weak = self.basis.measure.weak
        if name not in weak:
            return ""
        least = min(median(share) for share in weak.values())
        motion = percent(median(error.each * weak[name]))
        return (
            f"efforts of {few(list(weak))} give as little as {percent(least)} of the accelerations "
            f"of a motion as large as gravity's, and errors are relative to what they give: "
            f"relative to such a motion '{name}' is off by {motion}"
        )

    @property
    def range(self) -> dict[str, tuple[float, float]]:
        """The ends between which the joints of linkages were moved."""
        result = {}
        for each in self.basis.parts:
            links = dict(zip(each.cluster.bodies, each.cluster.geometry.links, strict=True))
            for body in each.bodies:
                if each.cluster.kind == "loops" and links[body].joint.nq == 1:
                    at = each.positions[:, links[body].q]
                    name = self.basis.view.joints[body].name
                    result[name] = float(np.min(at)), float(np.max(at))
        return result

    @property
    def poor(self) -> bool:
        """True if it will not do."""
        return bool(self.errors) and worst_joint(self.errors)[1].median > FAIR

    def warn(self) -> None:
        """Warn of a tree that will not do."""
        if self.poor:
            warn(RuntimeWarning(f"'{self.basis.view.name}': {self.said}"))


# ---- the tree of a robot -------------------------------------------------------------------------


@cached_on_model
def written_tree(model: Model, options: TreeOptions = USUAL) -> OpenTree:
    """The open tree of a robot: exact if it can be, else fitted, else with links as they are."""
    return advised_tree(model, options).limited


@cached_on_model
@uncollected()
def advised_tree(model: Model, options: TreeOptions = USUAL) -> OpenTree:
    """The same without motors, with the file's limits.

    If it will not do, trees are tried on the joints that come next in the robot's one linkage, if
    that has few joints.
    """
    tree = judged_tree(model, options)
    if not tree.poor or options.joints:
        return tree
    robot = tree.basis.robot
    linkages = [each for each in robot.clusters if each.kind == "loops"]
    if len(linkages) != 1 or len(linkages[0].bodies) > FEW_JOINTS:
        return tree
    found = list[tuple[float, tuple[str, ...]]]()
    for bodies in finalists(robot, linkages[0].index, ())[1:]:
        joints = tuple(robot.joints[body].name for body in bodies)
        with suppress(ValueError):
            errors = judged_tree(robot, replace(options, joints=joints)).errors
            found += [(worst_joint(errors)[1].median, joints)] if errors else []
    least, joints = min(found, default=(math.inf, ()))
    if least > FAIR:
        return tree
    return OpenTree.made(tree, kind=tree.kind, errors=tree.errors, basis=tree.basis,
                         lumped=tree.lumped, others=(joints, least))  # fmt: skip


@cached_on_model
@uncollected()
def judged_tree(model: Model, options: TreeOptions = USUAL) -> OpenTree:
    """The tree without motors, with the file's limits: what armatures, errors and verdicts need."""
    if options.fit == "lumped":
        parts = _parts(model, replace(options, fit="range"))
        if not any(each.bent for each in parts):
            return Basis.of(model, parts, options.tendons).lumped
        tree = judged_tree(model, replace(options, fit="range"))
        return tree.lumped or tree
    parts = _parts(model, options)
    tree = Basis.of(model, parts, options.tendons).best
    left = [each for each in parts if tree.poor and each.bent]
    while left and tree.poor:
        # what displaces most follows first; a left and a right leg at once
        most = ALIKE * max(each.displacement for each in left)
        taken = [each for each in left if each.displacement >= most]
        left = [each for each in left if each.displacement < most]
        tree, parts = _led(tree, parts, taken)
    return tree.basis.best


def _led(
    tree: OpenTree, parts: tuple[ClusterTree, ...], taken: Sequence[ClusterTree]
) -> tuple[OpenTree, tuple[ClusterTree, ...]]:
    """The best tree whose taken parts have more followers, and its parts; else this tree.

    They follow over the whole range, and over that in which they are right if the first tree will
    not do.
    """
    before, basis = parts, tree.basis
    bodies = {body for each in taken for body in each.cluster.bodies}
    names = {joint for each in taken for joint in each.cluster.joints}
    for n in range(2):
        poor = frozenset[int]()
        for _ in range(2):  # one that follows poorly may be locked as well
            ways = {id(each): each.led(poor, n) for each in taken}
            if all(len(each) <= n for each in ways.values()):
                break
            bent = tuple([each, *ways.get(id(each), ())][-1] for each in before)
            other = _tried(basis.following(bent), tree, names)
            if other.errors and _better(other.errors, tree.errors, names):
                tree, parts = other, bent
            poor = frozenset(_poor_followers(other)) & bodies
            if not poor:
                break
        if max(e for name, e in tree.errors.items() if name in names).median <= FAIR:
            break
    return tree, parts


def _tried(basis: Basis, tree: OpenTree, names: Collection[str]) -> OpenTree:
    """A tree with other followers than ``tree``, fitted if that may decide between the two.

    It decides nothing where followers themselves make these joints no better, or where they will
    not do and this tree is better with links as they are.
    """
    lumped = basis.lumped
    if not lumped.errors:
        return lumped
    following = basis.measure.of_followers(basis.on(lumped))
    poor = max(e for name, e in following.items() if name in names).median > FAIR
    if not _better(following, tree.errors, names) or (
        poor and _better(lumped.errors, tree.errors, names)
    ):
        return lumped
    return basis.best


def _poor_followers(tree: OpenTree) -> Iterator[int]:
    """The bodies whose joints follow, not exactly, and are off by more than will do."""
    for each in tree.basis.followers:
        error = tree.errors.get(tree.basis.view.joints[each.body].name)
        if error and error.median > FAIR and not each.exact:
            yield each.body


def _better(errors: Errors, others: Errors, names: Collection[str]) -> bool:
    """True if the worst of these joints is better, and the worst of all not worse than by chance.

    The worst joint may be in another leg, which has its own followers, or none.
    """
    here, there = (max(e for n, e in x.items() if n in names) for x in (errors, others))
    return here < there and worst_joint(errors)[1].median <= worst_joint(others)[1].interval[1]


@cached_on_model
def _parts(model: Model, options: TreeOptions) -> tuple[ClusterTree, ...]:
    """The parts of the tree of a robot's clusters, with locked spins."""
    parts = tree_joints(without_spins(model), options.joints, options.following)
    straight = (each.with_followers if each.cluster.kind == "couplings" else None for each in parts)
    parts = [x or each for x, each in zip(straight, parts, strict=True)]
    if any(each.cluster.kind == "loops" and each.followers for each in parts):
        alone = [
            each.without if each.cluster.kind == "loops" and each.without else each
            for each in parts
        ]
        if Basis.of(model, alone, options.tendons).lumped.kind == "exact":
            parts = alone  # as of one parallelogram: its coupler is a point of the crank's end
    return tuple(parts)


def _links_as_they_are(basis: Basis) -> OpenTree:
    """The lumped tree with its errors."""
    model = basis.drafted
    if all(cluster.kind == "joint" for cluster in basis.view.clusters):
        names = (basis.view.joints[body].name for body in basis.joints)
        errors = dict.fromkeys(names, Error(np.zeros(1)))
        return OpenTree.made(model, kind="open", errors=errors, basis=basis)
    try:
        errors = basis.measure.errors(basis.on(model))
    except np.linalg.LinAlgError:
        return OpenTree.made(model, kind="lumped", errors={}, basis=basis)
    kind = "exact" if _exact(errors) else "lumped"
    return OpenTree.made(model, kind=kind, errors=errors, basis=basis)


def _exact(errors: Errors) -> bool:
    return worst_joint(errors)[1].median < SAME


def _best(basis: Basis) -> OpenTree:
    """The exact tree of a robot, else the fitted one if it is better than the lumped one."""
    lumped = basis.lumped
    if lumped.kind != "lumped" or not lumped.errors:
        return lumped
    unseen, view = basis.measure, basis.view
    geared = relumped(view, lumped, existing=True)
    model = with_parameters(lumped, geared.values)
    errors: Errors = unseen.errors(basis.on(model))
    if _exact(errors):
        return OpenTree.made(model, kind="exact", errors=errors, basis=basis, lumped=lumped)
    bodies, joints = _loose(basis, lumped, geared)
    start = relumped(view, lumped, existing=False).values
    try:
        problem = Problem.of(basis.on(model), basis.fitted_to, start, bodies, joints)
        found = None
        if problem.free.any():
            bare = basis.on(lumped)
            found = best(bare, lumped.errors, problem, partial(unseen.errors_of, bare))
    except np.linalg.LinAlgError:
        found = None
    if found is None:
        return lumped
    model, errors = found
    return OpenTree.made(model, kind="fitted", errors=errors, basis=basis, lumped=lumped)


def _loose(basis: Basis, tree: Model, geared: Relumped) -> tuple[set[str], set[str]]:
    """The names of bodies, and of joints, whose inertias and armatures are to be fitted.

    They are those of clusters that are not exact, and of what carries these.
    """
    view, selection = basis.view, select(basis.view)
    kept = {*selection.moving, *selection.following}
    on_world = {body for body, parent in enumerate(view.parents) if parent == WORLD}
    kept_by = {each.name for inertia in joint_inertias(view) for each in inertia.tendons}
    shared = {
        body
        for inertia in joint_inertias(view)
        for name, _, ratios in inertia.rotors
        for body in range(len(view.nodes))
        if view.nodes[body].name == name
        and np.count_nonzero(ratios) > 1
        and not (basis.tendons and name in kept_by)
    }
    turned = {x.name for x in tree.joints if x.armature > 0.0} - {*view.joint_names}
    bodies, joints = set[int](), set[str]()
    for part in basis.parts:
        locked_bodies = set(part.cluster.bodies) - kept
        still = ({b for b in locked_bodies if view.nodes[b].axisymmetric} & on_world) - shared
        if part.cluster.kind == "joint" or (
            part.constant and locked_bodies <= {*geared.placed, *(still if part.geared else ())}
        ):
            continue
        for body in part.cluster.bodies:
            carriers = [b for b in (body, *path(view.parents, body)) if b in kept]
            bodies.update(carriers[:2])
        names = {view.joints[b].name for b in part.cluster.bodies if b in kept}
        joints |= names
        for each in tree.couplings:
            (first, _), *others = each.terms
            if first in turned and names & {name for name, _ in others}:
                joints.add(first)
    return {view.nodes[b].name for b in bodies}, joints


def _built(description: Description) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return build(description)


def _ended(view: Model, parts: Sequence[ClusterTree], tree: Description) -> Description:
    """The tree with the ends, for limits, between which polynomials of followers hold."""
    joints = {joint.name: joint for joint in tree.joints}
    for part in parts:
        for body, ends in chain.from_iterable(part.ends(view, x).items() for x in part.followers):
            name = view.joints[body].name
            limits = joints[name].limits
            low, high = max(limits.lower, ends[0]), min(limits.upper, ends[1])
            joints[name] = ending(joints[name], replace(limits, lower=low, upper=high))
    return replace(tree, joints=tuple(joints.values()))


def _unmotored(tree: Description) -> Description:
    """The tree whose mimics have no motor beside that of the joint that they follow."""
    joints = [
        replace(joint, motor=None, limits=replace(joint.limits, effort=0.0, effort_lower=None))
        if joint.mimic
        else joint
        for joint in tree.joints
    ]
    return replace(tree, joints=tuple(joints))


def _mimicking(view: Model, tree: Description) -> Description:
    """The tree with followers as URDF's mimics."""
    joints = {joint.name: joint for joint in tree.joints}
    followers = select(view).followers
    ties = {each.name(view) for each in followers}
    for each in followers:
        name, driver = view.joints[each.body].name, view.joints[each.drivers[0]].name
        (slope,), (constant,) = each.ratios, each.coefficients
        mimic = Mimic(driver, slope, constant)
        joints[name] = replace(joints[name], mimic=mimic, independent=None)
    couplings = tuple(each for each in tree.couplings if each.name not in ties)
    return replace(tree, joints=tuple(joints.values()), couplings=couplings)


# ---- words ---------------------------------------------------------------------------------------


def _locked_words(view: Model, part: ClusterTree) -> str:
    """Which bodies of a cluster are locked, and how far this displaces links, in words."""
    moving = {*part.bodies, *(each.body for each in part.followers)}
    turning = rotors(view, part.cluster)
    bodies = [b for b in part.cluster.bodies if b not in moving and b not in turning]
    if not bodies:
        return ""
    names, (link, far, turn) = few([view.nodes[b].name for b in bodies]), part.farthest
    return (
        f"{few([view.joints[b].name for b in part.bodies])} move"
        f"{'s' if len(part.bodies) == 1 else ''}; locked to what carries "
        f"{'it' if len(bodies) == 1 else 'them'}: {names}. Therefore links of the tree are "
        f"{1e3 * part.displacement:.2g} mm (mass-weighted rms) off their places in the robot, "
        f"'{link}' by up to {1e3 * far:.2g} mm and {turn:.2g} rad"
    )


def _following_words(basis: Basis) -> list[str]:
    """The joints that follow others, in words."""
    joints, words = basis.view.joints, list[str]()
    exact: dict[tuple[int, ...], list[str]] = {}
    for part in basis.parts:
        for each in part.followers:
            if each.exact:
                exact.setdefault(each.drivers, []).append(joints[each.body].name)
                continue
            of, units = [joints[b].name for b in each.drivers], joints[each.body].units.position
            ends = [f"{low:.3g} to {high:.3g} {joints[body].units.position}"
                    for body, (low, high) in part.ends(basis.robot, each).items()]  # fmt: skip
            kind = "by a line" if each.linear else "by a polynomial"
            kind = "by a line and a polynomial of a sum" if len(of) > 1 else kind
            limits = f" from {', '.join(ends)}, {'its' if len(ends) == 1 else 'their'} limits"
            words.append(
                f"'{joints[each.body].name}' follows {few(of)} {kind}, within "
                f"{1e3 * each.error:.2g} m{units}{limits if ends else ''}"
            )
    for bodies, names in exact.items():
        many = "" if len(names) > 1 else "s"
        words.append(f"{few(names)} follow{many} {few([joints[b].name for b in bodies])} exactly")
    return words


# ---- for writers and methods ---------------------------------------------------------------------


def open_tree_description(model: Model, options: TreeOptions) -> Description:
    """The description of the open tree to write; warns of what the format cannot express.

    Without tendons, joints keep the effort limits that motors give them, and inertia between joints
    is left out with a warning.
    """
    tree = written_tree(model, options)
    tree.warn()
    if not options.tendons:
        _warn_of_tendons(tree.basis.view)
    return tree.description


def tree_notes(model: Model, options: TreeOptions) -> tuple[str, ...]:
    """Notes on its tree for the head of a written file; none for a robot that is a tree."""
    tree = written_tree(model, options)
    if tree.kind == "open":
        return ()
    return (f"An open tree that stands for '{model.name}'.", *tree.notes)


def inertia_between_joints(model: Model) -> dict[tuple[str, str], float]:
    """Off-diagonal inertia [kg m²] that tendons add to the open tree's mass matrix, by joints."""
    tree = with_tendons(model)
    armature = {joint.name: joint.armature for joint in tree.joints}
    between: dict[tuple[str, str], float] = defaultdict(float)
    largest = 0.0
    for each in tree.couplings:
        if not isinstance(each, JointCoupling) or each.terms[0][0] in model.joint_names:
            continue  # a follower
        (rotor, _), *terms = each.terms
        for (one, k), (other, m) in combinations(terms, 2):
            between[one, other] += k * m * armature[rotor]
            largest = max(largest, abs(k * m * armature[rotor]))
    return {pair: x for pair, x in between.items() if abs(x) > NOTHING * largest}


def _warn_of_tendons(model: Model) -> None:
    between = inertia_between_joints(model)
    entries = [f"{x:g} kg m² between {one} and {other}" for (one, other), x in between.items()]
    if entries:
        more = (
            f" and {len(entries) - _LISTED_ENTRIES} more" if len(entries) > _LISTED_ENTRIES else ""
        )
        warn_at(
            "reflected inertia between joints is not written; only MJCF can express it, by the "
            f"armature of a fixed tendon: {'; '.join(entries[:_LISTED_ENTRIES])}{more}",
            model.description.source,
            strict=False,
        )


def tendons_tree(model: Model) -> TreeMap:
    """The tree of the method "tendons": the written one, in the freedoms of the robot."""
    tree = judged_tree(model)
    if tree.nv != model.nv:
        names = few([model.joints[spin.body].name for spin in tree.basis.spins])
        raise ValueError(
            f"the spins of {names} are freedoms of '{model.name}' that no whole joints of it "
            "have, so no open tree stands for them; use an exact method, or "
            + argument("spins", "locked")
        )
    return mapped(model, tree, "tendons", select(tree.basis.view).dropped)


def correction_tree(model: Model) -> TreeMap:
    """The tree that :func:`robomodel.correction_force` is for, where none is given."""
    return mapped(model, judged_tree(model), "tendons", ())
