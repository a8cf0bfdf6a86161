"""Checks of structure, closing, singularities, independent coordinates and limits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robomodel.description import Loop
from robomodel.mechanism import graph
from robomodel.mechanism.tree_constraints import find_tree_constraints
from robomodel.mobility.analysis import follower_curves
from robomodel.model.elements import Cluster, Joint, units_of
from robomodel.reach.curves import Curve, Singularity
from robomodel.reach.paths import walk
from robomodel.reach.ranges import FreeRanges, JointRange
from robomodel.reports.document import Finding, note, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.linkage import (
    RANDOM_STARTS,
    Choice,
    Coordinates,
    LinkageStudy,
    has_limits,
)
from robomodel.tolerances import CLOSED, PARALLEL, SAME, SINGULAR, WITHIN, WRITTEN

if TYPE_CHECKING:
    from numpy.polynomial import Polynomial

# ---- structure -----------------------------------------------------------------------------------


def check_redundancy(context: CheckContext) -> Iterator[Finding]:
    """Loops with redundant conditions, and the reason."""
    for loop in context.model.loops:
        if not loop.redundant or not loop.rank or context.loops[loop.name].added:
            continue  # building the model warns of loops that add nothing
        cause, harmless = _cause(context, context.loops[loop.name])
        yield Finding(
            "note" if harmless else "warning",
            "redundancy",
            context.loops[loop.name].source,
            f"{loop.redundant} of its {loop.rows} constraints are redundant: {cause}",
            f"nothing is wrong; solvers that keep all {loop.rows} may fail"
            if harmless
            else "check its axes and anchors; if the dimensions are meant, nothing to do",
            loop.redundant,
            "conditions",
        )


def _cause(context: CheckContext, loop: Loop) -> tuple[str, bool]:
    """Why conditions of a loop are redundant, and whether that is usual."""
    model = context.model
    places = {frame.name: frame.body for frame in model.frames}
    paths = []
    for end in (loop.predecessor, loop.successor):
        path, body = [], places[end.link]
        while body >= 0:
            path.append(body)
            body = model.nodes[body].parent
        paths.append(path)
    common = set(paths[0]) & set(paths[1])
    bodies = [body for path in paths for body in path if body not in common]
    turning: list[int] = []
    sliding: list[int] = []
    for body in bodies:
        if model.joints[body].nv != 1:
            return "a joint of several freedoms already allows what they forbid", True
        hinge = any(model.nodes[body].joint.subspace[0].angular)
        (turning if hinge else sliding).append(body)
    axes = [context.axis(body) for body in turning]
    if not axes:
        return "all of its joints slide", True
    first = axes[0]
    parallel = all(float(np.linalg.norm(np.cross(first, axis))) < PARALLEL for axis in axes)
    across = all(abs(float(first @ context.axis(body))) < PARALLEL for body in sliding)
    if parallel and across:
        return "it is planar", True
    if not sliding and _meet(context, turning):
        return "it is spherical: all of its axes meet in one point", True
    others = [other for other in model.loops if other.cluster == _cluster_of(context, loop)]
    if len(others) > 1:
        return "other loops and couplings of its cluster say the same", True
    return (
        "though its axes are neither parallel nor meet in a point, so that it moves thanks to "
        "exact dimensions only"
    ), False


def _cluster_of(context: CheckContext, loop: Loop) -> str:
    return next(each.cluster for each in context.model.loops if each.name == loop.name)


def _meet(context: CheckContext, bodies: Sequence[int]) -> bool:
    """True if the axes of hinges meet in one point at neutral: the nearest point is on all."""
    matrix, right = np.zeros((3, 3)), np.zeros(3)
    for body in bodies:
        axis, place = context.axis(body), context.placements.origins[body]
        across = np.eye(3) - np.outer(axis, axis)
        matrix += across
        right += across @ place
    point = np.linalg.lstsq(matrix, right, rcond=SINGULAR)[0]
    return all(
        float(
            np.linalg.norm(np.cross(context.axis(body), point - context.placements.origins[body]))
        )
        < PARALLEL * context.size
        for body in bodies
    )


def check_clusters(context: CheckContext) -> Iterator[Finding]:
    """Clusters that are larger than the groups of joints that their conditions relate."""
    model = context.model
    for cluster in model.clusters:
        linkage = context.linkages.get(cluster.name)
        if linkage is None or len(linkage.groups) == 1:
            continue
        groups = " and ".join(
            "{" + ", ".join(f"'{joint}'" for joint in group) + "}" for group in linkage.groups
        )
        yield note(
            "cluster-size",
            context.cluster_source(cluster),
            f"cluster '{cluster.name}' has {len(cluster.bodies)} bodies, but its conditions "
            f"relate only {groups}",
            "let its loops end on the bodies nearest to what they relate, and it is smaller "
            "(and cheaper)",
            len(cluster.bodies),
            "bodies",
        )
    yield from _needless(context)


def _needless(context: CheckContext) -> Iterator[Finding]:
    """Redundant loops and couplings without which a cluster would fall apart."""
    model = context.model
    needless = [
        (loop.name, context.loops[loop.name].source)
        for loop in model.loops
        if not loop.rank and not context.loops[loop.name].added
    ]
    needless += [(each.name, context.couplings[each.name]) for each in model.couplings
                 if each.redundant]  # fmt: skip
    if not needless:
        return
    tree = graph.spanning_tree(model.description)
    demands = find_tree_constraints(model.description, tree)
    largest = max(len(group) for group in graph.clusters(tree, [d.bodies for d in demands]))
    for name, source in needless:
        ties = [demand.bodies for demand in demands if demand.name != name]
        without = max(len(group) for group in graph.clusters(tree, ties))
        if without < largest:
            yield warning(
                "cluster-size",
                source,
                f"repeats what others say, and makes a cluster of {largest} bodies of what would "
                f"be one of {without}",
                "remove it",
                largest,
                "bodies",
            )


# ---- closing -------------------------------------------------------------------------------------


def check_closing(context: CheckContext) -> Iterator[Finding]:
    """Loops that are open at the joint positions of the file, or do not close over their ranges."""
    for cluster, linkage in _linkages(context):
        source, start = context.cluster_source(cluster), context.cluster_source(cluster)
        if linkage.start_coupling:
            start = context.couplings[linkage.start_coupling]
        least, most = BOUNDS.five_digits * context.size, BOUNDS.not_closed * context.size
        if least < linkage.start_gap < most and not any(
            context.loops[loop.name].tolerance
            for loop in context.model.loops
            if loop.cluster == cluster.name
        ):
            yield warning(
                "start",
                start,
                f"open by {linkage.start_gap:.3g} where the file puts the joints of cluster "
                f"'{cluster.name}' (initial positions, else zero): nearly closed, but by more than "
                "what rounding leaves",
                f"check its {'offset' if linkage.start_coupling else 'anchors'} and the origins of "
                "its joints, or write <initial> positions and angles with all digits",
                linkage.start_gap,
                "m or sine of an angle",
            )
        elif linkage.start_gap > BOUNDS.rounded_gap * context.size:
            yield note(
                "start",
                start,
                f"open by {linkage.start_gap:.3g} where the file puts the joints of cluster "
                f"'{cluster.name}' (initial positions, else zero); the neutral configuration is "
                "a closed one near that",
                'write <initial position="..."/> on its joints to say which one is meant',
                linkage.start_gap,
                "m or sine of an angle",
            )
        elif linkage.start_condition > BOUNDS.start_condition * linkage.median:
            yield note(
                "start",
                source,
                f"where the file puts the joints of cluster '{cluster.name}' it is "
                + (
                    "singular"
                    if math.isinf(linkage.start_condition)
                    else f"nearly singular (joints move {linkage.start_condition:.3g} times as "
                    f"far as the independent ones, usually {linkage.median:.3g} times)"
                )
                + ", so that the neutral configuration is another one",
                'write <initial position="..."/> on its joints to say which one is meant',
                linkage.start_condition,
                "1/σ",
            )
        if linkage.gap > CLOSED:
            yield warning(
                "closing",
                source,
                f"cluster '{cluster.name}' closes only to {linkage.gap:.2g} in what it reaches "
                f"({linkage.states} states were looked at)",
                "check its anchors, and write angles and lengths with all digits",
                linkage.gap,
                "m or sine of an angle",
            )
        if linkage.outside > WRITTEN:
            yield warning(
                "closing",
                source,
                f"no closed configuration of cluster '{cluster.name}' was found within the joint "
                f"limits; the neutral one is {linkage.outside:.3g} outside of them",
                "check the limits and initial positions of its joints",
                linkage.outside,
                "rad or m",
            )
        if linkage.branches > 1 or linkage.modes > 1 or linkage.continuum:
            at_drawn = "the one nearest to where the file puts its joints"
            if math.isinf(linkage.start_condition):
                at_drawn = "one of those through where the file puts its joints, which is singular"
            yield note(
                "branches",
                source,
                (
                    f"closes in {ways_to_close(linkage)} with the independent joints of cluster "
                    f"'{cluster.name}' at neutral; the neutral configuration is on {at_drawn}"
                    if linkage.branches > 1 or linkage.continuum
                    else f"closes in other ways than that of cluster '{cluster.name}' at neutral"
                )
                + _other_modes(linkage),
                "nothing to do if that is as it was built; else write other initial positions",
                linkage.branches,
                "ways",
            )


def ways_to_close(linkage: LinkageStudy) -> str:
    """How many ways to close were found."""
    number = "one way" if linkage.branches == 1 else f"{linkage.branches} ways that were found"
    return number + " and infinitely many others" * linkage.continuum


def _other_modes(linkage: LinkageStudy) -> str:
    """The ways to close that the robot does not get to, in words."""
    number = ""
    if linkage.modes > 1:
        number = (
            f". From {RANDOM_STARTS} random starts {linkage.modes} assembly modes were found "
            "within limits; there may be more"
        )
    if not linkage.mode:
        others = ", and the robot gets to the nearest others without being taken apart"
        return others * (linkage.branches > 1) + number
    found = (
        "is out of its reach" if linkage.mobility == 1 else "is out of its reach, as far as found"
    )
    return (
        f". Another assembly mode, with {linkage.mode}, {found}: reports and random "
        f"configurations leave it out{number}"
    )


def _linkages(context: CheckContext) -> Iterator[tuple[Cluster, LinkageStudy]]:
    for cluster in context.model.clusters:
        if cluster.name in context.linkages:
            yield cluster, context.linkages[cluster.name]


# ---- singularities -------------------------------------------------------------------------------


def check_singularities(context: CheckContext) -> Iterator[Finding]:
    """Dead points and change points within the limits, or just beyond them."""
    for cluster, linkage in _linkages(context):
        joints = [joint for joint in context.model.joints if joint.cluster == cluster.name]
        limited = any(math.isfinite(joint.lower) or math.isfinite(joint.upper) for joint in joints)
        tied = [each for each in linkage.coordinates if _telling(linkage, each)]
        yield from (_nearest(context, linkage, each, limited=limited) for each in tied)
        for kind in ("dead point", "change point"):
            events = [
                (each, sweep)
                for sweep in linkage.sweeps
                for each in sweep.singularities
                if each.kind == kind
            ]
            reached = [pair for pair in events if pair[0].reached]
            if tied and kind == "dead point":
                continue
            if reached:
                yield _singular(context, linkage, reached, limited=limited)
                continue
            for event, sweep in sorted(events, key=lambda pair: beyond(*pair))[:1]:
                past = beyond(event, sweep)
                if limited and past < BOUNDS.beyond_limits:
                    yield note(
                        "singularity",
                        context.joint_source(sweep.joint),
                        f"a {kind} of cluster '{cluster.name}' is at '{sweep.joint}' = "
                        f"{event.position:.6g}{_held(sweep)}, only {past:.3g} beyond what the "
                        "limits allow",
                        "keep the limits where they are",
                        past,
                        "rad or m",
                    )


def beyond(event: Singularity, sweep: Curve) -> float:
    """Distance of a singularity beyond the limits."""
    low, high = sweep.range
    return max(low - event.position, event.position - high, 0.0)


def _nearest(
    context: CheckContext, linkage: LinkageStudy, of: Coordinates, *, limited: bool
) -> Finding:
    """The dead point of several independent joints that is nearest to neutral."""
    assert of.nearest is not None
    at, names = linkage.single(of.nearest.joints), of.chosen.joints
    telling = _telling(linkage, of)
    where = ", ".join(f"'{name}' = {at[name]:.3g}" for name in telling)
    limb = ", ".join(f"{name} {at[name]:.3g}" for name in linkage.limb if name not in telling)
    limit = f"limit {_names(telling)} so that no dead point is within reach"
    better = of.best.joints != names and math.isfinite(of.best.worst)
    return warning(
        "singularity",
        context.joint_source(telling[0] if telling else names[0]),
        f"{_dead(linkage, names)}: the nearest to neutral that searches found is at {where}"
        f"{limb and f' ({limb})'}, {of.nearest.away:.3g} away in all joints together, "
        f"{_limits(limited)}",
        f"{limit}, or {_instead(of.chosen, of.best)}" if better else limit,
        of.nearest.away,
        "rad or sizes",
    )


def _telling(linkage: LinkageStudy, of: Coordinates) -> list[str]:
    """Independent joints whose positions at the nearest dead point are numbers, none without one.

    Those of sweeps, if there are such.
    """
    if of.nearest is None:
        return []
    at = linkage.single(of.nearest.joints)
    names = [name for name in of.chosen.joints if name in at]
    return [name for name in names if name in linkage.swept] or names


def _dead(linkage: LinkageStudy, joints: Sequence[str]) -> str:
    what, rest = ("dead points", "rest") if len(joints) > 1 else ("a dead point", "rests")
    return (
        f"the cluster '{linkage.cluster}' has {what}, where its other joints move while "
        f"{_names(joints)} {rest}: ratios are infinite there, and motors lose their levers"
    )


def _limits(limited: bool) -> str:
    return "within the limits of its joints" if limited else "and no limits keep it away"


def _singular(
    context: CheckContext,
    linkage: LinkageStudy,
    reached: list[tuple[Singularity, Curve]],
    *,
    limited: bool,
) -> Finding:
    """The singularity on sweeps that is nearest to neutral, and how many more."""
    # of equally near ones, as a symmetric linkage has, the first, whatever rounding says
    event, sweep = min(reached, key=lambda pair: round(pair[0].away, 9))
    what = {
        "dead point": _dead(linkage, linkage.independent),
        "change point": f"the cluster '{linkage.cluster}' has a change point, where it can go on "
        "in two ways",
    }[event.kind]
    position = round(event.position, 9) + 0.0
    positions = sorted({round(each.position, 9) + 0.0 for each, of in reached if of is sweep})
    more = [f"{x:.6g}" for x in positions if abs(x - position) > WRITTEN]
    others = f" (and at {', '.join(more)})" if more else ""
    placed = linkage.placed(event, sweep)
    limb = f" ({placed})" if placed else ""
    below = [f"more than {x:.4g}" for x in positions if x <= sweep.start][-1:]
    above = [f"less than {x:.4g}" for x in positions if x > sweep.start][:1]
    limit = f"limit '{sweep.joint}' to {' and '.join(below + above)}"
    better = [
        _instead(each.chosen, each.best)
        for each in linkage.coordinates
        if not each.searched and each.chosen.worst > each.best.worst * BOUNDS.better_conditioned
    ]
    return warning(
        "singularity",
        context.joint_source(sweep.joint),
        f"{what}: at {position:.6g}{limb}{others}{_held(sweep)}, {event.away:.3g} away from "
        f"neutral, {_limits(limited)}",
        f"{limit}, or {better[0]}" if better and event.kind == "dead point" else limit,
        position,
        "rad or m",
    )


def _held(sweep: Curve) -> str:
    at = ", ".join(f"'{name}' = {value:.4g}" for name, value in sweep.held.items())
    return f" with {at}" if at else ""


def _names(joints: Sequence[str]) -> str:
    return ", ".join(f"'{joint}'" for joint in joints)


# ---- independent coordinates ---------------------------------------------------------------------


def check_coordinates(context: CheckContext) -> Iterator[Finding]:
    """Independent coordinates that are much worse than others over all that the robot reaches."""
    for cluster, linkage in _linkages(context):
        for each in linkage.coordinates:
            chosen, best = each.chosen, each.best
            if best.joints == chosen.joints:
                continue
            worse = chosen.worst / best.worst if math.isfinite(best.worst) else 1.0
            usual = chosen.median / best.median
            least = BOUNDS.better_conditioned
            if not (worse > least and usual > 0.5) and not usual > least:
                continue
            if worse > least and math.isinf(worse):
                how = "other joints move while they rest, at a dead point within the limits; with "
                how += f"{_names(best.joints)} {_as_far(best)}"
            elif worse > least:
                how = f"{_as_far(chosen)}, with {_names(best.joints)} {_as_far(best)}"
            else:
                how = (
                    f"per unit of theirs the whole moves usually more than {least:.0f} times as "
                    f"far as per unit of {_names(best.joints)}"
                )
            rests = "as far as searches found" if each.searched else "on all of its path"
            yield warning(
                "coordinates",
                context.joint_source(chosen.joints[0]),
                f"{_names(chosen.joints)} as independent of cluster '{cluster.name}': {how} "
                f"({rests})",
                _instead(chosen, best),
                max(worse, usual),
                "times",
            )


def _instead(chosen: Choice, best: Choice) -> str:
    """Which joints to mark independent instead of which."""
    new, old = ([name for name in one.joints if name not in other.joints]
                for one, other in ((best, chosen), (chosen, best)))  # fmt: skip
    return f"mark {_names(new)} independent instead of {_names(old)}"


def _as_far(choice: Choice) -> str:
    return f"the whole moves at most {choice.worst:.3g} times as far as they do"


# ---- limits --------------------------------------------------------------------------------------


def check_limits(context: CheckContext) -> Iterator[Finding]:
    """Limits of joints related by couplings that exclude each other, or are never reached."""
    model, excluded = context.model, set[str]()
    for cluster in model.clusters:
        if cluster.kind != "couplings":
            continue
        joints = [model.joints[body] for body in cluster.bodies]
        ranges: dict[str, list[tuple[float, float, str]]] = {}
        curves = follower_curves(cluster.geometry.links, cluster.constraint, len(cluster.start))
        for at, curve_of in zip(cluster.start, curves, strict=True):
            led_by = next((joints[n].name for n in curve_of if joints[n].independent), None)
            if led_by is None:
                continue
            for n, curve in curve_of.items():
                joint = joints[n]
                if joint.type != "continuous" and (ends := _ends(curve, joint, at)):
                    ranges.setdefault(led_by, []).append((*ends, joint.name))
        for leader, intervals in ranges.items():
            low = max(intervals, key=lambda each: each[0])
            high = min(intervals, key=lambda each: each[1])
            if low[0] > high[1]:
                yield warning(
                    "limits",
                    context.joint_source(low[2]),
                    f"the limits of '{low[2]}' and '{high[2]}', which '{leader}' moves, cannot be "
                    f"met together: '{leader}' would be above {low[0]:.4g} and below {high[1]:.4g}",
                    "mend the limits, or the ratio or offset between them",
                    low[0] - high[1],
                    "rad or m",
                )
                excluded.add(cluster.name)
            elif high[1] - low[0] <= WITHIN < min(b - a for a, b, _ in intervals):
                yield warning(
                    "limits",
                    context.joint_source(low[2]),
                    f"the limits of '{low[2]}' and '{high[2]}', which '{leader}' moves, leave "
                    f"'{leader}' no motion: both are met at {low[0]:.4g} alone",
                    "mend the limits, the axes, or the sign of the ratio between them",
                    0.0,
                    "rad or m",
                )
                excluded.add(cluster.name)
    for cluster in model.clusters:
        if cluster.kind == "couplings" and cluster.name not in excluded:
            limited = [model.joints[b].name for b in cluster.bodies if has_limits(model.joints[b])]
            reaches = FreeRanges(model, (), also=limited)
            walk(reaches.halves)
            found = reaches.found()
        else:
            found = [*context.linkages[cluster.name].ranges] if cluster.kind == "loops" else []
        for reach in found:
            yield from _never_reached(context, reach)


def _never_reached(context: CheckContext, reach: JointRange) -> Iterator[Finding]:
    """A note on limits of a joint, before which other joints' limits are met."""
    joint = next(each for each in context.model.joints if each.name == reach.joint)
    told, span = [], joint.upper - joint.lower
    slack = max(WITHIN, BOUNDS.limit_rounded * span) if math.isfinite(span) else WITHIN
    for side, limit, end in (
        ("lower", joint.lower, reach.lower_end),
        ("upper", joint.upper, reach.upper_end),
    ):
        other = end.kind == "limit" and end.by != joint.name and not end.searched
        if other and math.isfinite(limit) and abs(end.position - limit) > slack:
            told.append((side, limit, end))
    if told and has_limits(joint):
        (side, limit, end), *more = told
        nor = "".join(f"; nor is its {s} limit {x:.4g}: '{e.by}' stops it at {e.position:.4g}"
                      for s, x, e in more)  # fmt: skip
        yield note(
            "limits",
            context.joint_source(joint.name),
            f"its {side} limit {limit:.4g} is never reached: '{end.by}', which moves with it, "
            f"stops it at {end.position:.4g}{nor}",
            "nothing to do if that is so; else mend one of the limits",
            end.position,
            units_of(joint.type == "prismatic").position,
        )


def _ends(curve: Polynomial, joint: Joint, at: float) -> tuple[float, float] | None:
    """Positions of its leader between which a joint is within its limits.

    None if there are none. Of a curve that bends, around the position ``at``.
    """
    limits = joint.lower, joint.upper
    if not any(map(math.isfinite, limits)):
        return None
    if curve.degree() == 1:
        low, high = sorted((limit - curve.coef[0]) / curve.coef[1] for limit in limits)
        return low, high
    span = limits[1] - limits[0]
    slack = BOUNDS.limit_rounded * span if math.isfinite(span) else 0.0
    limits = limits[0] - slack, limits[1] + slack
    ends = [-math.inf, math.inf]
    for limit in filter(math.isfinite, limits):
        roots = np.atleast_1d((curve - limit).roots())
        ends += roots[np.abs(roots.imag) <= SAME].real.tolist()
    ends.sort()
    largest = 1.0 + max(map(abs, ends[1:-1]), default=0.0)
    for low, high in itertools.pairwise(ends):
        middle = 0.5 * (max(low, -largest) + min(high, largest))
        if low - SAME <= at <= high + SAME and limits[0] <= float(curve(middle)) <= limits[1]:
            return low, high
    return None
