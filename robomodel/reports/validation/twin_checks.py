"""Checks of twins: numbers in which limbs differ from their mirror images or copies.

A number is a fault if it differs from those of all of its counterparts, though their limbs agree in
most of their numbers, and by more than numbers of its kind differ there anyway. If several
counterparts agree with each other, the odd one is wrong; of two, the one that is odd by itself; if
neither is, both are told.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description import ONE_DOF, PolynomialCoupling
from robomodel.model.actuators import Actuator
from robomodel.reports.document import Finding, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.twin_readings import (
    Reading,
    limits_tell,
    read_heads,
    read_loops,
    read_twins,
)
from robomodel.reports.validation.twins import (
    ROOT,
    Segment,
    Skeleton,
    Twins,
    close_twins,
    find_twins,
    sign_of,
)
from robomodel.tolerances import SAME, SINGULAR


def check_twins(context: CheckContext) -> Iterator[Finding]:
    """Numbers of limbs that differ from those of their mirror images and copies."""
    twins, symmetries = find_symmetries(context)
    followers = _followers(context)
    readings = [list(read_twins(each, followers)) for each in twins]
    readings.append(list(read_heads(twins)))
    readings += [
        [*each.rotors(), *each.loops(), *each.ratios(), *each.actuators()] for each in symmetries
    ]
    told: set[tuple[str, str]] = set()
    for finding in _judged(readings):
        told.add((finding.check, finding.source.element))
        yield finding
    for finding in _senses(twins, followers | _motors(context)):
        if (finding.check, finding.source.element) not in told:
            yield finding


def find_symmetries(context: CheckContext) -> tuple[list[Twins], list[Symmetry]]:
    """Limbs that are twins, and the symmetries of bodies that take several limbs to others."""
    skeleton = Skeleton.of(context.model.description)
    satellites = _satellites(context, skeleton)
    twins = close_twins(find_twins(skeleton, frozenset(skeleton.numbers[x] for x in satellites)))
    return twins, [Symmetry.of(context, skeleton, group, satellites) for group in _groups(twins)]


def _followers(context: CheckContext) -> set[str]:
    """Joints that mimic others, by a mimic or by a polynomial."""
    description = context.model.description
    mimics = {joint.name for joint in description.joints if joint.mimic is not None}
    return mimics | {x.joint for x in description.couplings if isinstance(x, PolynomialCoupling)}


def _motors(context: CheckContext) -> set[str]:
    """Joints that couplings relate to others, and whose links carry nothing."""
    description = context.model.description
    carrying = {joint.parent for joint in description.joints if joint.type != "fixed"}
    carrying |= {end.link for x in description.loops for end in (x.predecessor, x.successor)}
    coupled = {name for coupling in context.model.couplings for name, _ in coupling.terms}
    return {x.name for x in description.joints if x.child not in carrying and x.name in coupled}


# ---- judgement -----------------------------------------------------------------------------------


def _judged(groups: Sequence[Sequence[Reading]]) -> Iterator[Finding]:
    """Findings on readings that differ, once for each element and quantity."""
    everywhere: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        for reading in group:
            everywhere[reading.quantity].append(reading.amount)
    votes: dict[tuple[str, str], list[tuple[str, bool, Reading, int]]] = defaultdict(list)
    for group in groups:
        here: dict[str, list[float]] = defaultdict(list)
        for reading in group:
            here[reading.quantity].append(reading.amount)
        for reading in group:
            amounts = here[reading.quantity]
            if len(amounts) < BOUNDS.axes_voting:
                amounts = everywhere[reading.quantity]
            least = reading.least
            if not reading.exact:
                least = max(least, BOUNDS.scatter * _others_median(amounts, reading.amount))
            differs = reading.amount > least
            for side in (0, 1):
                key = reading.quantity, reading.elements[side]
                votes[key].append((reading.elements[1 - side], differs, reading, side))
    right = {key for key, each in votes.items() if not all(differs for _, differs, _, _ in each)}
    done: set[tuple[str, str]] = set()
    for key, each in votes.items():
        if key in right or key in done:
            continue
        done.add(key)
        witnesses = [vote for vote in each if (key[0], vote[0]) in right]
        _, _, reading, side = (witnesses or each)[0]
        if not witnesses and len({vote[0] for vote in each}) == 1:
            mine, others = reading.doubts[side], reading.doubts[1 - side]
            if others - mine > BOUNDS.doubt_margin:
                continue
        finding = reading.tell(side)
        certain = witnesses or reading.doubts[side] - reading.doubts[1 - side] > BOUNDS.doubt_margin
        yield finding if certain else replace(finding, corrections=())


def _others_median(amounts: Sequence[float], one: float) -> float:
    """The median of the amounts but one of them."""
    others = list(amounts)
    others.remove(one)
    return median(others) if others else 0.0


# ---- symmetries ----------------------------------------------------------------------------------


def _satellites(context: CheckContext, skeleton: Skeleton) -> dict[str, frozenset[str]]:
    """Rotors by their joints, with the joints that turn them: these, not places, pair them."""
    names = context.model.joint_names
    rotors = {names[rotor.body]: frozenset(rotor.ratios) for rotor in context.rotors}
    return {name: joints for name, joints in rotors.items() if name in skeleton.numbers}


def _groups(twins: Sequence[Twins]) -> list[list[Twins]]:
    """Twins of one body under one map, which takes each limb to one other at most."""
    groups: list[list[Twins]] = []
    for each in sorted(twins, key=lambda twins: -twins.share):
        for group in groups:
            if (
                group[0].parent == each.parent
                and group[0].placed == each.placed
                and each.placed
                and np.allclose(group[0].map, each.map, atol=1e-6)
                and not {each.pairs[0][0]} & {x.pairs[0][0] for x in group}
                and not {each.pairs[0][1]} & {x.pairs[0][1] for x in group}
            ):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


@dataclass(frozen=True, eq=False)
class Symmetry:
    """An isometry of a body that takes limbs to others, with their rotors.

    Attributes:
        twins: The pairs of limbs.
        images: Joints and their counterparts' names.
        signs: How a joint's position goes over to its counterpart's; 0 for other axes.
        unlike: Joints whose counterparts have another number of rotors, with both numbers.
    """

    context: CheckContext
    twins: tuple[Twins, ...]
    images: dict[str, str]
    signs: dict[str, float]
    satellites: dict[str, frozenset[str]]
    rotor_pairs: tuple[tuple[int, int], ...]
    unlike: tuple[tuple[str, str, int, int], ...]

    @classmethod
    def of(
        cls,
        context: CheckContext,
        skeleton: Skeleton,
        twins: Sequence[Twins],
        satellites: dict[str, frozenset[str]],
    ) -> Symmetry:
        """The images of joints, and of the rotors that turn with them."""
        segments = skeleton.segments
        first = twins[0]
        by = first.map
        joints: dict[str, str] = {}
        signs: dict[str, float] = {}
        there_and_back = first.placed and np.allclose(by @ by, np.eye(3), atol=1e-6)
        for each in twins:
            for number, pair in enumerate(each.pairs):
                a, b = (segments[n].joint.name for n in pair)
                for one, other in ((a, b), (b, a)) if there_and_back else ((a, b),):
                    joints[one], signs[one] = other, each.sign(number)
        rotors_of: dict[frozenset[str], list[int]] = defaultdict(list)
        for name, turned_by in satellites.items():
            rotors_of[turned_by].append(skeleton.numbers[name])
        rotor_pairs: list[tuple[int, int]] = []
        unlike: list[tuple[str, str, int, int]] = []
        for turned_by, here in rotors_of.items():
            if not turned_by or not turned_by <= joints.keys():
                continue
            images = frozenset(joints[name] for name in turned_by)
            if images != turned_by and _follow(context, turned_by, images):
                continue  # one pinion moves both jaws: it is on both sides
            there = rotors_of.get(images, [])
            if len(here) != len(there):
                name = min(turned_by)
                unlike.append((name, joints[name], len(here), len(there)))
            rotor_pairs += _nearest(skeleton, by, here, there)
        for rotor, image in rotor_pairs:
            joints[segments[rotor].joint.name] = segments[image].joint.name
            signs[segments[rotor].joint.name] = sign_of(by, segments[rotor], segments[image])
        return cls(
            context, tuple(twins), joints, signs, satellites, tuple(rotor_pairs), tuple(unlike)
        )

    @property
    def skeleton(self) -> Skeleton:
        """The robot's segments."""
        return self.twins[0].skeleton

    def rotors(self) -> Iterator[Reading]:
        """Mass properties of rotors, and joints with another number of them than counterparts."""
        if self.rotor_pairs:
            first = self.twins[0]
            for pair in self.rotor_pairs:
                alone = Twins(self.skeleton, ROOT, (pair,), first.map[None], 1.0, placed=False)
                yield from read_twins(alone, frozenset())
        for one, other, here, there in self.unlike:
            tell = partial(_tell_rotors, self.context, (one, other), (here, there))
            doubts = (BOUNDS.sure * (here < there), BOUNDS.sure * (there < here))
            yield Reading("rotors", (one, other), 1.0, 0.5, tell, doubts, exact=True)

    def loops(self) -> Iterator[Reading]:
        """Ends of loops."""
        numbers = self.skeleton.numbers
        images = {numbers[a]: numbers[b] for a, b in self.images.items()}
        for each in self.twins:
            yield from read_loops(self.context, each, images)

    def ratios(self) -> Iterator[Reading]:
        """Couplings, by the motions that they allow."""
        for joints in _coupled(self.context):
            names = [name for name in joints if name in self.images]
            if names:
                yield from self._ratios(names)

    def _ratios(self, names: list[str]) -> Iterator[Reading]:
        """The motions of joints that couplings relate, carried over to their counterparts."""
        here = _motions(self.context, names)
        there = _motions(self.context, [self.images[name] for name in names])
        ranks = [int(np.linalg.matrix_rank(each, tol=SINGULAR)) for each in (here, there)]
        if ranks[0] != ranks[1] or not 0 < ranks[0] < len(names):
            return
        given = np.array([self.signs[name] for name in names])
        free = [n for n, name in enumerate(names) if self._turns_freely(name)][:MOST_FREE]
        order = sorted(range(len(names)), key=lambda n: (names[n] in self.satellites, n))
        best: tuple[int, list[int], Array, Array, Array] | None = None
        for chosen in itertools.islice(itertools.combinations(order, ranks[0]), MOST_CHOICES):
            rows = list(chosen)
            if min(_least_singular(here[rows]), _least_singular(there[rows])) < 1e-6:
                continue
            one = here @ np.linalg.pinv(here[rows])
            other = there @ np.linalg.pinv(there[rows])
            for turned in itertools.product((1.0, -1.0), repeat=len(free)):
                signs = given.copy()
                signs[free] *= turned
                both = signs[:, None] * signs[rows][None]
                differing = int(np.sum(~_same(both * one, other, both).all(axis=1)))
                if best is None or differing < best[0]:
                    best = (differing, rows, one, other, both)
            if best is not None and not best[0]:
                break
        if best is None:
            return
        _, rows, one, other, both = best
        same = _same(both * one, other, both)
        for n, name in enumerate(names):
            if n in rows:
                continue
            amount = 0.0 if same[n].all() else 1.0
            k = int(np.argmax(~same[n]))
            x, y = float(one[n, k]), float(other[n, k])
            lead = names[rows[k]]
            pair = (name, lead), (self.images[name], self.images[lead])
            factor = both[n, k]
            tell = partial(self._tell_ratio, pair, (x, y), factor)
            doubts = [abs(math.log(abs(v) or SAME)) for v in (x, y)]
            if abs(abs(x) - abs(y)) <= BOUNDS.twin_ratio * max(abs(x), abs(y)):
                twice = 2.0 * BOUNDS.doubt_margin
                doubts = [twice * self._follows(each) for each in (name, self.images[name])]
            yield Reading(
                "ratio", (name, self.images[name]), amount, 0.5, tell,
                doubts, exact=True,
            )  # fmt: skip

    def _turns_freely(self, name: str) -> bool:
        """True if a joint is a motor's that may turn either way.

        Motors are the same parts on both sides. One that drives a single joint, about an axis that
        is parallel to it, turns with it by the sign of its gear; others as they are wired.
        """
        segments, numbers = self.skeleton.segments, self.skeleton.numbers
        segment = segments[numbers[name]]
        if segment.children or self.context.is_mimic(name):
            return False
        model = self.context.model
        if any(name in x.joints and x.nv > 1 and x.kind == "loops" for x in model.clusters):
            return True
        for coupling in model.couplings:
            others = [x for x, ratio in coupling.terms if ratio and x != name and x in numbers]
            if name in dict(coupling.terms) and coupling.kind == "coupling" and others:
                along = float(segments[numbers[others[0]]].axis @ segment.axis)
                return len(others) > 1 or abs(along) < BOUNDS.aligned
        return False

    def _follows(self, name: str) -> bool:
        """True if a joint of one limb mimics one of the other, which is the reference."""
        mimic = self.context.file_joints[name].mimic if name in self.context.file_joints else None
        if mimic is None:
            return False
        segments = self.skeleton.segments
        sides = [{segments[pair[side]].joint.name for each in self.twins for pair in each.pairs}
                 for side in (0, 1)]  # fmt: skip
        return any(name in sides[k] and mimic.joint in sides[1 - k] for k in (0, 1))

    def _tell_ratio(
        self,
        pairs: tuple[tuple[str, str], tuple[str, str]],
        ratios: tuple[float, float],
        factor: float,
        side: int,
    ) -> Finding:
        (name, lead), (other_name, other_lead) = pairs[side], pairs[1 - side]
        y, x = ratios[side], ratios[1 - side]
        same = abs(abs(x) - abs(y)) <= BOUNDS.twin_ratio * max(abs(x), abs(y))
        what = (
            "the opposite sign of"
            if same
            else f"{abs(y / x):.4g} times" if x else "a ratio beside"
        )  # fmt: skip
        source = self.context.joint_source(name)
        for coupling in self.context.model.couplings:
            terms = dict(coupling.terms)
            if terms.get(name) and any(terms.get(n) for n in terms if n != name):
                source = self.context.couplings[coupling.name]
        sign = ", by the motions that they give" if factor < 0.0 else ""
        return warning(
            "ratio",
            source,
            f"'{name}' moves {y:.4g} times as far as '{lead}', {what} the ratio of '{other_name}' "
            f"to '{other_lead}', its counterpart ({x:.4g}{sign})",
            "check the ratios of both",
            y,
            "ratio",
        )

    def actuators(self) -> Iterator[Reading]:
        """Gears and limits of motors."""
        by_joints: dict[frozenset[str], list[Actuator]] = defaultdict(list)
        for actuator in self.context.model.actuators:
            driven = frozenset(name for name, ratio in actuator.terms if ratio)
            by_joints[driven].append(actuator)
        found: list[tuple[Actuator, Actuator, str, float, float]] = []
        for driven, here in by_joints.items():
            if not driven or not driven <= self.images.keys():
                continue
            there = by_joints.get(frozenset(self.images[name] for name in driven), [])
            if len(here) != 1 or len(there) != 1 or here[0] is there[0]:
                continue
            one, other = here[0], there[0]
            terms, others = dict(one.terms), dict(other.terms)
            found += [(one, other, name, terms[name], others[self.images[name]])
                      for name in sorted(driven)]  # fmt: skip
        against = [x * y < 0.0 for _, _, _, x, y in found]
        odd = 2 * sum(against) <= len(found) and not all(against)
        for (one, other, name, x, y), opposite in zip(found, against, strict=True):
            amount = abs(abs(x) - abs(y)) / max(abs(x), abs(y))
            single = len(one.terms) == 1
            if odd and opposite and single:
                amount = 1.0
            tell = partial(
                _tell_gear, self.context, (one, other), (name, self.images[name]), (x, y)
            )
            doubts = [float(each < 0.0) * 0.5 * BOUNDS.doubt_margin for each in (x, y)]
            yield Reading("gear", (one.name, other.name), amount, BOUNDS.twin_ratio, tell,
                          doubts, exact=True)  # fmt: skip
        for one, other in dict.fromkeys((one, other) for one, other, *_ in found):
            for quantity in ("effort_limit", "velocity_limit", "stall_torque", "no_load_speed"):
                a, b = (_greatest(each, quantity) for each in (one, other))
                if a is None or b is None or any(one.carried) or any(other.carried):
                    continue
                amount = (
                    0.0
                    if a == b
                    else 1.0
                    if math.isinf(a + b)
                    else abs(a - b) / max(abs(a), abs(b))
                )
                tell = partial(_tell_motor, self.context, (one, other), quantity)
                yield Reading(
                    f"motor {quantity}", (one.name, other.name), amount, BOUNDS.different, tell
                )


MOST_CHOICES = 300  # of joints to which others are referred
MOST_FREE = 5  # motors whose signs are tried


def _nearest(
    skeleton: Skeleton, by: Array, here: Sequence[int], there: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Pairs of rotors of a joint and of its counterpart, nearest in place and inertia."""
    left = list(there)
    for a in here:
        if not left:
            return
        one = skeleton.segments[a]

        def far(b: int, one: Segment = one) -> float:
            other = skeleton.segments[b]
            heavy = max(one.mass, other.mass) or 1.0
            return float(
                np.linalg.norm(by @ one.place - other.place) / skeleton.size
                + abs(one.mass - other.mass) / heavy
            )

        b = min(left, key=far)
        left.remove(b)
        yield a, b


def _coupled(context: CheckContext) -> list[list[str]]:
    """Joints that linear couplings relate, in groups."""
    groups: list[set[str]] = []
    for coupling in context.model.couplings:
        names = {name for name, ratio in coupling.terms if ratio}
        joined = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names]
        groups.append(names.union(*joined))
    order = {name: n for n, name in enumerate(context.model.joint_names)}
    return [sorted((x for x in group if x in order), key=order.__getitem__) for group in groups]


def _motions(context: CheckContext, names: Sequence[str]) -> Array:
    """A basis of the motions that couplings allow, at the joints of these names: (names, basis)."""
    wanted = set(names)
    columns = sorted(
        {x for group in _coupled(context) if wanted & set(group) for x in group} | wanted
    )
    at = {name: n for n, name in enumerate(columns)}
    rows = [
        [dict(coupling.terms).get(name, 0.0) for name in columns]
        for coupling in context.model.couplings
        if {name for name, ratio in coupling.terms if ratio} <= at.keys()
    ]
    if not rows:
        basis = np.eye(len(columns))
    else:
        _, sizes, rotation = np.linalg.svd(np.array(rows))
        rank = int(np.sum(sizes > SINGULAR * sizes[0]))
        basis = rotation[rank:].T
    return np.asarray(basis[[at[name] for name in names]])


def _follow(context: CheckContext, leading: Collection[str], others: Collection[str]) -> bool:
    """True if couplings give the motion of other joints by that of the leading ones."""
    motions = _motions(context, [*leading, *others])
    ahead = motions[: len(leading)]
    ranks = [np.linalg.matrix_rank(each, tol=SINGULAR) for each in (ahead, motions)]
    return bool(ranks[0] == ranks[1])


def _least_singular(matrix: Array) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False)[-1])


def _same(one: Array, other: Array, signs: Array) -> Array:
    """True if ratios agree, by size alone where no signs are known."""
    unsigned = signs == 0.0
    one, other = np.where(unsigned, np.abs(one), one), np.where(unsigned, np.abs(other), other)
    return np.asarray(
        np.abs(one - other)
        <= np.maximum(BOUNDS.twin_ratio * np.maximum(np.abs(one), np.abs(other)), 1e-6)
    )


def _tell_rotors(
    context: CheckContext, names: tuple[str, str], numbers: tuple[int, int], side: int
) -> Finding:
    name, other = names[side], names[1 - side]
    return warning(
        "rotor-missing",
        context.joint_source(name),
        f"{numbers[side]} couplings (rotors, mimics) move with it, and {numbers[1 - side]} with "
        f"'{other}', its counterpart",
        "check the rotors and couplings of both",
        numbers[side],
        "couplings",
    )


def _tell_gear(
    context: CheckContext,
    actuators: tuple[Actuator, Actuator],
    joints: tuple[str, str],
    ratios: tuple[float, float],
    side: int,
) -> Finding:
    y, x = ratios[side], ratios[1 - side]
    same = abs(abs(x) - abs(y)) <= BOUNDS.twin_ratio * max(abs(x), abs(y))
    what = "the opposite sign of" if same else f"{abs(y / x):.4g} times"
    sources = {
        end.name: each.source
        for each in context.model.description.transmissions
        for end in each.actuators
    }
    wrong = actuators[side].name
    return warning(
        "ratio",
        sources.get(wrong, context.joint_source(joints[side])),
        f"drives '{joints[side]}' by {what} the gear ratio with which '{actuators[1 - side].name}' "
        f"drives '{joints[1 - side]}', its counterpart ({y:.4g} and {x:.4g})",
        "check the gear ratios of both",
        y,
        "ratio",
    )


def _greatest(actuator: Actuator, quantity: str) -> float | None:
    """A limit of a motor, the larger of both ways; None if the file gives none."""
    value: float | None = getattr(actuator, quantity)
    back = {"effort_limit": actuator.least_effort, "velocity_limit": actuator.least_velocity}
    return max(value, -back[quantity]) if value is not None and quantity in back else value


def _tell_motor(
    context: CheckContext, actuators: tuple[Actuator, Actuator], quantity: str, side: int
) -> Finding:
    wrong, right = actuators[side], actuators[1 - side]
    sources = {
        end.name: each.source
        for each in context.model.description.transmissions
        for end in each.actuators
    }
    return warning(
        "asymmetry",
        sources.get(wrong.name, context.joint_source(wrong.joint)),
        f"its {quantity.replace('_', ' ')} is {_greatest(wrong, quantity):.6g}, that of "
        f"'{right.name}', its counterpart, {_greatest(right, quantity):.6g}",
        f"check the {quantity.replace('_', ' ')} of both",
    )


# ---- signs of axes -------------------------------------------------------------------------------


def _senses(twins: Iterable[Twins], driven: Collection[str]) -> Iterator[Finding]:
    """Joints that alone turn against their counterparts' images, or alone with them.

    Left and right axes are written as images of each other or as parallel; a file does one of both.
    Limits that are not even tell by themselves, and axes that are both need no explanation.
    Wheels may turn forward by equal signs, whatever the legs' convention is.
    """
    senses: dict[tuple[object, ...], list[tuple[Twins, int, int, float, bool]]] = defaultdict(list)
    for each in twins:
        if not each.placed:
            continue
        for number, (one, other) in enumerate(each.pairs):
            a, b = each.skeleton.segments[one], each.skeleton.segments[other]
            along = float(a.axis @ b.axis)
            sense = each.sign(number)
            coupled = not {a.joint.name, b.joint.name}.isdisjoint(driven)
            if a.joint.type not in ONE_DOF or abs(along) < BOUNDS.aligned or not sense or coupled:
                continue
            span = a.joint.limits.upper - a.joint.limits.lower
            wheel = not a.children and not math.isfinite(span) and along > 0.0
            if limits_tell(a.joint, b.joint, sense):
                continue
            kind = (each.map.round(3).tobytes(), sense * along > 0.0, a.slides)
            senses[kind].append((each, one, other, sense, wheel))
    reported: set[str] = set()
    for (_, same, _), voters in senses.items():
        for sense in (1.0, -1.0):
            odd = [voter for voter in voters if voter[3] == sense]
            if len(odd) != 1 or len(voters) < BOUNDS.axes_voting + (not same):
                continue
            if (same and sense > 0.0) or odd[0][4]:  # or a wheel: either sign may be meant
                continue
            each, one, other, *_ = odd[0]
            joints = [each.skeleton.segments[n].joint for n in (one, other)]
            if {joint.name for joint in joints} & reported:
                continue
            reported |= {joint.name for joint in joints}
            yield warning(
                "axis",
                joints[1].source,
                f"its axis has the opposite sign of that of '{joints[0].name}', its counterpart, "
                f"by the rule that {len(voters) - 1} other pairs of joints follow",
                "check the axes of both",
            )
