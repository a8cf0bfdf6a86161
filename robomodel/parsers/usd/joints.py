"""Joints of a stage: their freedoms, and the joints or the loop that they become."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robomodel.description import (
    AT_ORIGIN,
    LOOP_COORDINATES,
    Anchor,
    Joint,
    JointType,
    Limits,
    Link,
    Loop,
    LoopType,
    Pose,
    Vec3,
)
from robomodel.description.poses import compose, inverse, relative, scaled, turned, vec
from robomodel.errors import Source
from robomodel.parsers.usd.bodies import LinkPrim, Placements
from robomodel.parsers.usd.schema import (
    AXES,
    DEGREE,
    DRIVE,
    FREEDOMS,
    URDF_EFFORT,
    WORDS,
    StageReader,
)
from robomodel.spatial import transpose
from robomodel.tolerances import NO_LIMIT, SAME, WRITTEN
from robomodel.vocabulary.frames import as_limit, is_limited, is_on_joint
from robomodel.vocabulary.schema import Fields

End = tuple[LinkPrim, Pose]
"""A body, or the ground, and the pose of a joint's frame in it."""


@dataclass
class Edge:
    """A joint of a stage between two bodies, which becomes a joint of the tree or a loop.

    ``free`` are its freedoms, ``limits`` their limits. ``length`` is the length of a rod. ``urdf``
    is the URDF+ element that this package's writer attached. ``series``: joints of MuJoCo that act
    one after the other.
    """

    prim: Any
    name: str
    source: Source
    ends: tuple[End, End]
    free: tuple[str, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    excluded: bool = False
    length: float | None = None
    urdf: Any = None
    series: tuple[Edge, ...] = ()
    drives: bool = False


@dataclass
class Edges:
    """Reads the joints of a stage."""

    reader: StageReader
    placements: Placements
    body_of: Callable[[Any], LinkPrim]

    def read(self, prim: Any, name: str) -> Edge | None:
        """Read a joint; None if it has no effect."""
        from pxr import UsdPhysics

        reader = self.reader
        joint = UsdPhysics.Joint(prim)
        off = joint.GetJointEnabledAttr().Get() is False
        if off and reader.written(prim, "newton:mimicEnabled") is False:
            reader.warn(
                prim,
                "physics:jointEnabled is false as newton:mimicEnabled is, as some converters write "
                "a coupling that is off; the joint is kept",
                "coupling off",
            )
        elif off:
            reader.warn(prim, "the joint is switched off, and left out", "joint off")
            return None
        ends = self._end(prim, "0"), self._end(prim, "1")
        if ends[0][0] is ends[1][0] is self.body_of(None):
            reader.warn(prim, "the joint holds nothing that moves, and is left out", "still joint")
            return None
        if ends[0][0] is ends[1][0]:
            raise reader.error(
                prim, "both ends of the joint are on one body; name two bodies by physics:body0 "
                "and physics:body1"
            )  # fmt: skip
        edge = Edge(prim, name, reader.source(prim), ends)
        edge.excluded = joint.GetExcludeFromArticulationAttr().Get() is True
        if prim.IsA(UsdPhysics.DistanceJoint):
            return self._rod(edge)
        edge.free, edge.limits = self._freedoms(prim)
        edge.numbers = {}
        for freedom in edge.free:
            edge.numbers = {**self._numbers(prim, freedom), **edge.numbers}
        self._limit_effort(edge)
        self._refer(edge)
        edge.drives = any(
            prim.HasAPI(UsdPhysics.DriveAPI, each) for each in (*edge.free, "angular", "linear")
        )
        return edge

    def _limit_effort(self, edge: Edge) -> None:
        """Apply what MuJoCo and URDF's converter write beside a drive: the least limit counts."""
        reader, prim, units = self.reader, edge.prim, self.reader.units
        turns = bool(edge.free) and edge.free[0].startswith("rot")
        unit = units.inertia if turns else units.mass * units.length
        low, high = (
            unit * x for x in reader.span(prim, "mjc:actuatorfrcrange", "mjc:actuatorfrclimited")
        )
        most = edge.numbers.get("effort", math.inf)
        if (of_urdf := reader.number(prim, URDF_EFFORT, infinite=True)) is not None:
            most = min(most, of_urdf if of_urdf >= 0.0 else math.inf)
        if edge.free:
            if most > 0.0:
                limits = reader.efforts(prim, max(low, -most), min(high, most))
            else:
                limits = {"effort": most}
            edge.numbers = {**edge.numbers, **limits}

    def _refer(self, edge: Edge) -> None:
        """Count a joint's positions from where the stage shows it, which MuJoCo calls mjc:ref."""
        reader, prim = self.reader, edge.prim
        if any(reader.array(prim, "mjc:springdamper")):
            message = "mjc:springdamper is not read; write mjc:stiffness and mjc:damping"
            reader.warn(prim, message, "springdamper")
        if not (ref := reader.number(prim, "mjc:ref")):
            return
        if len(edge.free) != 1:
            reader.warn(prim, "mjc:ref is read for joints of one freedom, and left out", "mjc:ref")
            return
        (freedom,) = edge.free
        units = reader.units
        ref *= units.angle("mjc:ref") if freedom.startswith("rot") else units.length
        limits = edge.limits.get(freedom, Limits())
        edge.limits = {freedom: Limits(limits.lower - ref, limits.upper - ref)}
        if edge.numbers.get("stiffness"):
            rest = edge.numbers.get("reference", 0.0) - ref
            edge.numbers = {**edge.numbers, "reference": rest}
        reader.warn(
            prim,
            f"mjc:ref is {ref:.6g}: MuJoCo's position of the joint where the stage shows it. Here "
            "it is zero there, and limits and the spring's reference were shifted by as much",
            "mjc:ref",
        )

    def _end(self, prim: Any, which: str) -> End:
        """One end of a joint: a body, and the joint's frame in it."""
        reader = self.reader
        frame = reader.pose(prim, f"physics:localPos{which}", f"physics:localRot{which}")
        targets = prim.GetRelationship(f"physics:body{which}").GetTargets()
        unit = reader.units.length
        if not targets:
            return self.body_of(None), Pose(scaled(frame.xyz, unit), frame.rotation)
        if len(targets) > 1:
            raise reader.error(
                prim, f"physics:body{which} names {len(targets)} bodies; a joint's end is on one"
            )
        target = prim.GetStage().GetPrimAtPath(targets[0])
        if not target:
            raise reader.error(
                prim, f"physics:body{which} is <{targets[0]}>, which is not in the stage"
            )
        pose, scale = self.placements.of(target)
        frame = Pose(
            vec(x * s * unit for x, s in zip(frame.xyz, scale, strict=True)), frame.rotation
        )
        body = self.body_of(target)
        if body.prim == target:
            return body, frame
        return body, compose(relative(body.pose, pose), frame)

    def _rod(self, edge: Edge) -> Edge | None:
        """A distance joint as a rod; None unless it keeps one distance."""
        reader, prim = self.reader, edge.prim
        least, most = (
            reader.number(prim, f"physics:{word}Distance", infinite=True) for word in ("min", "max")
        )
        least = -1.0 if least is None else least
        most = -1.0 if most is None else most
        if least < 0.0 and most < 0.0:
            reader.warn(prim, "the joint keeps no distance, and is left out", "no distance")
            return None
        if most <= 0.0 or abs(most - least) > WRITTEN * most:
            reader.warn(
                prim,
                "a distance that may vary is a limit, which loops do not have; it is left out",
                "limited distance",
            )
            return None
        edge.length = 0.5 * (least + most) * reader.units.length if most != least else (
            most * reader.units.length
        )  # fmt: skip
        return edge

    def _freedoms(self, prim: Any) -> tuple[tuple[str, ...], dict[str, Limits]]:
        """The freedoms of a joint, and their limits."""
        from pxr import UsdPhysics

        reader = self.reader
        if prim.IsA(UsdPhysics.FixedJoint):
            return (), {}
        if prim.IsA(UsdPhysics.SphericalJoint):
            cones = [reader.number(prim, f"physics:coneAngle{n}Limit", infinite=True) for n in "01"]
            if any(each is not None and 0.0 <= each < 180.0 for each in cones):
                reader.warn(prim, "the cone that limits the ball joint is left out", "cone")
            return FREEDOMS[3:], {}
        for kind, start in (
            (UsdPhysics.RevoluteJoint, "rot"),
            (UsdPhysics.PrismaticJoint, "trans"),
        ):
            if prim.IsA(kind):
                axis = str(reader.written(prim, "physics:axis") or "X")
                if axis not in AXES:
                    raise reader.error(prim, f"physics:axis is {axis!r}; it is X, Y or Z")
                ends = [
                    reader.number(prim, f"physics:{word}Limit", infinite=True)
                    for word in ("lower", "upper")
                ]
                limits = self._limits(prim, start + axis, *ends)
                return ((start + axis,), {start + axis: limits}) if limits else ((), {})
        if prim.HasAPI(UsdPhysics.LimitAPI, "distance"):
            reader.warn(prim, "its limit of the distance is left out", "limited distance")
        free, limits_of = [], {}
        for each in FREEDOMS:
            if prim.HasAPI(UsdPhysics.LimitAPI, each):
                ends = [
                    reader.number(prim, f"limit:{each}:physics:{word}", infinite=True)
                    for word in ("low", "high")
                ]
                limits = self._limits(prim, each, *ends)
                if limits is None or limits.lower == limits.upper == 0.0:
                    continue
                limits_of[each] = limits
            free.append(each)
        return tuple(free), limits_of

    def _limits(
        self, prim: Any, freedom: str, low: float | None, high: float | None
    ) -> Limits | None:
        """The limits of a freedom; None if it is locked, as when low is above high."""
        unit = DEGREE if freedom.startswith("rot") else self.reader.units.length
        lower = -math.inf if low is None else as_limit(low, NO_LIMIT) * unit
        upper = math.inf if high is None else as_limit(high, NO_LIMIT) * unit
        if lower > upper:
            return None
        if lower == math.inf or upper == -math.inf:
            raise self.reader.error(prim, "these limits leave no finite position")
        return Limits(lower, upper)

    def _numbers(self, prim: Any, freedom: str) -> dict[str, float]:
        """The numbers that a prim gives for a freedom, by fields of joints."""
        turns = freedom.startswith("rot")
        numbers: dict[str, float] = {}
        for word in (*WORDS, DRIVE):
            for axis in (freedom, "angular" if turns else "linear"):
                name = word.name.replace("{axis}", axis)
                if (
                    word.field in numbers
                    or (value := self.reader.number(prim, name, infinite=True)) is None
                ):
                    continue
                if value < 0.0 and word.field not in ("reference", "effort", "velocity"):
                    raise self.reader.error(prim, f"{name} is {value:g}; it is not negative")
                if abs(value) >= word.most or (
                    value < 0.0 and word.field in ("effort", "velocity")
                ):
                    value = math.inf
                if math.isinf(value) and word.field not in ("effort", "velocity"):
                    raise self.reader.error(prim, f"{name} is not finite")
                if name == "physxJoint:jointFriction" and value:
                    self.reader.warn(
                        prim,
                        f"{name} is a coefficient of the joint's load in some versions of PhysX; "
                        "it is read as a torque (force)",
                        "jointFriction",
                    )
                numbers[word.field] = value * word.factor(self.reader.units, turns=turns)
        return numbers


# --- joints of the tree ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """One of the joints of an edge; ``before``: the pose of its frame after the previous one."""

    name: str
    kind: JointType
    axis: Vec3
    before: Pose
    edge: Edge
    freedom: str = ""


def chain(edge: Edge, parent: str, child: str, *, backward: bool) -> tuple[list[Link], list[Joint]]:
    """The joints from one end of an edge to the other, and the massless links between them."""
    steps, after = _steps(edge)
    if backward:
        placements = [inverse(pose) for pose in (*(s.before for s in steps), after)][::-1]
        steps = [
            _Step(s.name, s.kind, vec(-x for x in s.axis), placements[n], s.edge, s.freedom)
            for n, s in enumerate(reversed(steps))
        ]
        after = placements[-1]
    links: list[Link] = []
    joints: list[Joint] = []
    at = AT_ORIGIN
    for step in steps:
        at = compose(at, step.before)
        last = step is steps[-1] and is_on_joint(step.kind, step.axis, after.xyz, SAME)
        origin, axis = at, step.axis
        end = child
        if last:
            origin, axis = compose(at, after), turned(transpose(after.rotation), axis)
        else:
            end = f"{child}.{step.name}"
            links.append(Link(end, source=edge.source))
        joints.append(_joint(step, parent, end, origin, axis))
        parent, at = end, AT_ORIGIN
    if parent != child:
        joints.append(Joint(f"{edge.name}.end", "fixed", parent, child, after, source=edge.source))
    return links, joints


def _steps(edge: Edge) -> tuple[list[_Step], Pose]:
    """The joints of an edge in order, and the pose of the child in the last one's frame."""
    steps: list[_Step] = []
    back = AT_ORIGIN
    for part in edge.series or (edge,):
        (_, first), (_, second) = part.ends
        before = compose(back, second) if steps else first
        kinds = _kinds(part.free)
        for freedom, kind in kinds:
            name = part.name if len(kinds) == 1 else f"{part.name}.{freedom}"
            axis = AXES[freedom[-1]] if freedom else AXES["X"]
            steps.append(_Step(name, kind, axis, before, part, freedom))
            before = AT_ORIGIN
        back = inverse(second)
    return steps, back


def _kinds(free: Sequence[str]) -> list[tuple[str, JointType]]:
    """Joint types with these freedoms in order, the first one at the parent."""
    slides = [each for each in free if each.startswith("trans")]
    turns = [each for each in free if each.startswith("rot")]
    if not free:
        return [("", "fixed")]
    if len(free) == len(FREEDOMS):
        return [("", "floating")]
    if len(slides) == 2 and len(turns) == 1 and turns[0][-1] not in (s[-1] for s in slides):
        return [(turns[0], "planar")]
    of_slides: list[tuple[str, JointType]] = [(each, "prismatic") for each in slides]
    if len(turns) == 3:
        return [*of_slides, ("", "spherical")]
    return [*of_slides, *((each, "revolute") for each in turns)]


def _joint(step: _Step, parent: str, child: str, origin: Pose, axis: Vec3) -> Joint:
    limits = step.edge.limits.get(step.freedom, Limits())
    numbers: Fields = dict(step.edge.numbers)
    effort, velocity = (numbers.pop(each, math.inf) for each in ("effort", "velocity"))
    weakest = numbers.pop("effort_lower", None)
    kind = step.kind
    if kind == "revolute" and math.isinf(limits.lower) and math.isinf(limits.upper):
        kind = "continuous"
    if kind not in ("revolute", "continuous", "prismatic"):
        numbers.pop("stiffness", None) if kind != "spherical" else None
        numbers.pop("reference", None)
    if kind == "fixed":
        return Joint(step.name, kind, parent, child, origin, source=step.edge.source)
    return Joint(
        step.name,
        kind,
        parent,
        child,
        origin,
        axis,
        Limits(limits.lower, limits.upper, velocity, effort, effort_lower=weakest),
        initial=_shown(step, limits),
        source=step.edge.source,
        **numbers,
    )


def _shown(step: _Step, limits: Limits) -> float | None:
    """The position of a joint of one freedom in the stage; None if it is zero."""
    edge = step.edge
    if len(edge.free) != 1:
        return None
    one, other = (compose(body.pose, frame) for body, frame in edge.ends)
    between, k = relative(one, other), "XYZ".index(step.freedom[-1])
    if step.kind == "prismatic":
        at = between.xyz[k]
    else:
        i, j = (k + 1) % 3, (k + 2) % 3
        r = between.rotation
        at = math.atan2(r[j][i] - r[i][j], r[i][i] + r[j][j])
    return min(max(at, limits.lower), limits.upper) if abs(at) > WRITTEN else None


# --- loops ----------------------------------------------------------------------------------------


def loop(
    reader: StageReader, edge: Edge, *, named: bool = False
) -> tuple[list[Link], list[Joint], Loop]:
    """The loop that an edge closes, with a chain of joints if no type of loop has its freedoms.

    So is a hinge or a slide with a drive or an armature, or that others name (``named``): it has
    what loops do not keep.
    """
    one, other = (Anchor(body.name, frame) for body, frame in edge.ends)
    if edge.length is not None:
        return [], [], Loop(edge.name, "rod", one, other, length=edge.length, source=edge.source)
    kinds = _kinds(edge.free)
    axes = [AXES[each[-1]] for each, _ in kinds if each] or [AXES["X"]]
    axis2 = None
    kind: LoopType
    acts = named or edge.drives or bool(edge.numbers.get("armature"))
    match [each for _, each in kinds]:
        case ["revolute"] if not acts:
            kind = "revolute"
        case [("fixed" | "prismatic" | "planar" | "spherical") as each] if (
            not acts or each != "prismatic"
        ):
            kind = each
        case ["revolute", "revolute"]:
            kind, axis2 = "universal", axes[1]
        case _:
            name = f"{edge.name}.end"
            links, joints = chain(edge, one.link, name, backward=False)
            ends = Anchor(name), Anchor(other.link)
            return [*links, Link(name, source=edge.source)], joints, Loop(
                edge.name, "fixed", *ends, source=edge.source
            )  # fmt: skip
    positions = [x for each in edge.limits.values() for x in (each.lower, each.upper)]
    speed, effort = (edge.numbers.get(word, math.inf) for word in ("velocity", "effort"))
    others = Limits(velocity=speed, effort=effort, effort_lower=edge.numbers.get("effort_lower"))
    if any(map(math.isfinite, positions)) or is_limited(others):
        message = "the joint closes a loop, where limits are not kept; they are left out"
        reader.warn(edge.prim, message, "limits of a loop")
    limits = ("effort", "effort_lower", "velocity")
    numbers = {k: x for k, x in edge.numbers.items() if k not in limits and x}
    words = ("damping", "friction", "stiffness", "reference")
    dynamics: Fields = {k: x for k, x in numbers.items() if k in words and kind in LOOP_COORDINATES}
    if len(dynamics) < len(numbers):
        lost = ", ".join(sorted(numbers.keys() - dynamics.keys()))
        reader.warn(edge.prim, f"the joint closes a loop, which has no {lost}", "loop dynamics")
    return [], [], Loop(edge.name, kind, one, other, axes[0], axis2, source=edge.source, **dynamics)
