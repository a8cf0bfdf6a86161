"""A configuration of a simulator against the robot: joints, limits, armatures, gains, orders."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from robomodel.arrays import Array
from robomodel.description import ONE_DOF
from robomodel.description import Joint as FileJoint
from robomodel.dynamics import crba, torque_limits
from robomodel.errors import DescriptionWarning, Source, did_you_mean, few
from robomodel.lint.audit.dialects import (
    Configuration,
    Group,
    Value,
    configurations,
    lists_of_names,
    permutations,
)
from robomodel.lint.audit.texts import Text
from robomodel.model import Model, build
from robomodel.reports.document import (
    SEVERITIES,
    Document,
    Finding,
    Findings,
    HasDocument,
    Section,
    count,
    picked,
)
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext

MOST_BYTES = 2**22
DEFAULT = "<configuration>"


@dataclass(frozen=True)
class Audit(HasDocument):
    """The findings on a configuration.

    Attributes:
        robot: The robot's name.
        configuration: The name of the configuration in its file.
        dialect: The simulator whose dialect it is written in.
        file: The file of the configuration.
        findings: The findings, by line.
    """

    robot: str
    configuration: str
    dialect: str
    file: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if there are at most notes."""
        return all(finding.severity == "note" for finding in self.findings)

    @property
    def document(self) -> Document:
        """The findings as text, JSON and a page."""
        counts = ((sum(x.severity == s for x in self.findings), s) for s in SEVERITIES)
        found = ", ".join(count(n, severity) for n, severity in counts if n) or "nothing found"
        names = ("severity", "check", "message", "remedy", "value", "unit")
        data = picked(self, "robot", "configuration", "dialect", "file", "ok") | {
            "findings": [
                picked(each, *names) | picked(each.source, "element", "file", "line")
                for each in self.findings
            ],
        }
        title = f"{self.robot} as {self.configuration} ({self.dialect})"
        sections = [Section("", [Findings(each) for each in self.findings])]
        return Document(title, found, sections, data, self.file, "audit")


def audit(model: Model, config: str | os.PathLike[str], *, name: str | None = None) -> Audit:
    """Compare a simulator's configuration in Python with the robot.

    The configuration, of Isaac Lab, mjlab or legged_gym, is read as text: nothing of it is run or
    imported. Compared are patterns of joints (those that match nothing, or a joint twice), effort
    and velocity limits, armatures, gains against inertia and the step of the physics, initial
    positions, and lists of joints in an order. What cannot be known without running is a note.

    Args:
        model: The robot.
        config: The path of the configuration, or its text.
        name: Which of several configurations in the file, as ``"UNITREE_GO2_CFG"``; by default the
            one whose patterns fit the robot's joints best.

    Returns:
        audit: The findings, with the lines of the configuration.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no Python, or holds no configuration (of this name), or several fit.

    Examples:
        >>> text = '''
        ... DOG_CFG = ArticulationCfg(actuators={"legs": ImplicitActuatorCfg(
        ...     joint_names_expr=[".*_abad_link_joint", ".*_hip_link_joint", ".*_calf_joint"])})
        ... '''
        >>> audit = rm.audit(rm.robots.load("mini_cheetah"), text)
        >>> [finding.message for finding in audit.findings if finding.severity == "error"]
        ["the pattern '.*_calf_joint' matches no joint"]
    """
    text, file = _opened(config)
    chosen = _chosen(configurations(text), model, name, file)
    findings = [*_Comparison(model, chosen, text, file).findings()]
    ordered = sorted(set(findings), key=lambda x: (x.source.line or 0, x.check, x.message))
    return Audit(model.name, chosen.name, chosen.dialect, file, tuple(ordered))


def _opened(config: str | os.PathLike[str]) -> tuple[Text, str]:
    """The values of a configuration's text, and its name."""
    written = os.fspath(config)
    path = Path(written)
    if "\n" in written:
        source, file, where = written, DEFAULT, None
    else:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{written}: is larger than {MOST_BYTES // 2**20} MiB")
        source, file, where = path.read_text(encoding="utf-8"), written, path
    try:
        return Text(source, where), file
    except SyntaxError as error:
        raise ValueError(f"{file}:{error.lineno}: this is no Python: {error.msg}") from error


def _chosen(
    found: Sequence[Configuration], model: Model, name: str | None, file: str
) -> Configuration:
    """The configuration of this name, or the one that fits the robot best."""
    if not found:
        raise ValueError(
            f"{file}: no configuration of a robot is in this text: ArticulationCfg with actuators "
            "(Isaac Lab), EntityCfg (mjlab), or a class with control and init_state (legged_gym)"
        )
    if name is not None:
        for each in found:
            if each.name == name:
                return each
        names = [each.name for each in found]
        raise ValueError(f"{file}: no configuration '{name}'{did_you_mean(name, names)}")
    joints = driven_joints(model)
    fits = [(_fit(each, joints), each) for each in found]
    best = max(fit for fit, _ in fits)
    chosen = [each for fit, each in fits if fit == best]
    if len(chosen) > 1:
        raise ValueError(
            f"{file}: several configurations fit: {few([x.name for x in chosen], 8)}; name one, as "
            f"{file}:{chosen[0].name}"
        )
    return chosen[0]


def _fit(configuration: Configuration, joints: Sequence[str]) -> float:
    """How well patterns fit: the share of joints that they match, and of patterns that match."""
    patterns = [(pattern, group.matching) for group in configuration.groups
                for pattern, _ in group.patterns]  # fmt: skip
    covered = sum(any(matches(p, joint, how) for p, how in patterns) for joint in joints)
    used = sum(any(matches(p, joint, how) for joint in joints) for p, how in patterns)
    return covered / max(len(joints), 1) + used / max(len(patterns), 1)


def matches(pattern: str, joint: str, how: str) -> bool:
    """True if a pattern means a joint: as a regular expression of the whole name, or a part."""
    if how == "within":
        return pattern in joint
    try:
        return re.fullmatch(pattern, joint) is not None
    except re.error:
        return False


def driven_joints(model: Model) -> list[str]:
    """The joints of the file that move in one freedom, without those of rotors."""
    rotors = {model.joints[rotor.body].name for rotor in CheckContext(model).rotors}
    joints = (joint.name for joint in model.description.joints if joint.type in ONE_DOF)
    return [joint for joint in joints if joint not in rotors]


@dataclass(frozen=True)
class _Comparison:
    """A configuration, the robot, and the findings on them."""

    model: Model
    configuration: Configuration
    text: Text
    file: str

    @cached_property
    def joints(self) -> list[str]:
        return driven_joints(self.model)

    @cached_property
    def of_file(self) -> Mapping[str, FileJoint]:
        return {joint.name: joint for joint in self.model.description.joints}

    @cached_property
    def followers(self) -> frozenset[str]:
        """Joints that follow others, which nothing needs to drive."""
        return frozenset(x.name for x in self.model.joints if not x.independent)

    @cached_property
    def root(self) -> str:
        """The link that no joint carries."""
        children = {joint.child for joint in self.model.description.joints}
        return next(x.name for x in self.model.description.links if x.name not in children)

    def findings(self) -> Iterator[Finding]:
        """All findings."""
        yield from self._patterns()
        yield from self._tables()
        yield from self._positions()
        yield from self._limits()
        yield from self._armatures()
        yield from self._gains()
        yield from self._orders()
        for what, line in self.configuration.unread:
            yield self._finding("note", "config-unread", line, self.configuration.name, what)

    def _finding(
        self, severity: Any, check: str, line: int, element: str, message: str,
        remedy: str = "", value: float | None = None, unit: str = "",
    ) -> Finding:  # fmt: skip
        source = Source(self.file, line or None, element)
        return Finding(severity, check, source, message, remedy, value, unit)

    # ---- patterns

    @cached_property
    def members(self) -> list[list[str]]:
        """The joints of each group."""
        return [
            [j for j in self.joints if any(matches(p, j, g.matching) for p, _ in g.patterns)]
            for g in self.configuration.groups
        ]

    def _patterns(self) -> Iterator[Finding]:
        for group in self.configuration.groups:
            if group.matching == "within":
                idle = [x for x in group.patterns if not self._hits(x[0], group)]
                if idle:
                    yield self._finding(
                        "note", "config-joints", idle[0][1], group.name,
                        f"{few([pattern for pattern, _ in idle], 6)} is part of no joint's name",
                        "nothing to do if another robot has these joints",
                    )  # fmt: skip
                continue
            for pattern, line in group.patterns:
                yield from self._pattern(pattern, group, line)
        owners: dict[str, list[str]] = {}
        for group, joints in zip(self.configuration.groups, self.members, strict=True):
            for joint in joints:
                owners.setdefault(joint, []).append(group.name)
        for joint, names in owners.items():
            if len(names) > 1:
                line = next(g.line for g in self.configuration.groups if g.name == names[-1])
                yield self._finding(
                    "warning", "config-joints", line, names[-1],
                    f"the joint '{joint}' is in {count(len(names), 'group')}: {few(names)}",
                    "let one group have it; which one counts depends on the simulator",
                )  # fmt: skip
        left = [j for j in self.joints if j not in owners and j not in self.followers]
        if left and owners:
            yield self._finding(
                "warning", "config-joints", self.configuration.line, self.configuration.name,
                f"{count(len(left), 'joint')} in no group: {few(left, 6)}; nothing drives "
                f"{'it' if len(left) == 1 else 'them'}",
                "add them to a group, with stiffness and damping 0 if they are meant to be free",
            )  # fmt: skip

    def _hits(self, pattern: str, group: Group) -> list[str]:
        return [joint for joint in self.joints if matches(pattern, joint, group.matching)]

    def _pattern(self, pattern: str, group: Group, line: int) -> Iterator[Finding]:
        """A pattern that is none, or that matches nothing."""
        try:
            re.compile(pattern)
        except re.error as error:
            yield self._finding(
                "error", "config-joints", line, group.name,
                f"the pattern '{pattern}' is no regular expression: {error}",
            )  # fmt: skip
            return
        if not self._hits(pattern, group):
            links = [x.name for x in self.model.description.links
                     if matches(pattern, x.name, group.matching)]  # fmt: skip
            also = f"; it matches the link '{links[0]}'" if links else ""
            yield self._finding(
                "error", "config-joints", line, group.name,
                f"the pattern '{pattern}' matches no joint{also}",
                f"the robot's joints are {few(self.joints, 6)}",
            )  # fmt: skip

    def _tables(self) -> Iterator[Finding]:
        """Patterns of values: those that match nothing of their group, or a joint twice."""
        for group, joints in zip(self.configuration.groups, self.members, strict=True):
            for quantity, value in group.values.items():
                for pattern, _, line in value.table:
                    hit = any(matches(pattern, joint, group.matching) for joint in joints)
                    if not hit and group.matching == "whole":
                        yield self._finding(
                            "error", "config-joints", line, group.name,
                            f"the pattern '{pattern}' of {quantity} matches no joint of the group",
                            f"the group has {few(joints, 6)}" if joints else "",
                        )  # fmt: skip
                yield from self._twice(group, joints, quantity, value)

    def _twice(
        self, group: Group, joints: Sequence[str], quantity: str, value: Value
    ) -> Iterator[Finding]:
        if not value.table:
            return
        without: list[str] = []
        for joint in joints:
            hits = [x for x in value.table if matches(x[0], joint, group.matching)]
            if len(hits) > 1 and (group.matching == "whole" or len({x for _, x, _ in hits}) > 1):
                patterns = few([pattern for pattern, _, _ in hits])
                yield self._finding(
                    "error" if group.matching == "whole" else "warning", "config-joints",
                    hits[-1][2], group.name,
                    f"{quantity} of '{joint}' is given {len(hits)} times, by {patterns}",
                    "write patterns of which one matches each joint",
                )  # fmt: skip
                return
            if not hits:
                without.append(joint)
        if without:
            yield self._finding(
                "warning", "config-joints", value.line, group.name,
                f"{quantity} is given to no pattern that matches {few(without)}: it is 0, or the "
                "file's, there",
                "give it to all joints of the group",
            )  # fmt: skip

    # ---- numbers

    def numbers(self, quantity: str) -> Iterator[tuple[str, float, int, Group]]:
        """The number that each joint gets: its name, the number, the line, the group."""
        for group, joints in zip(self.configuration.groups, self.members, strict=True):
            value = group.values.get(quantity)
            if value is None:
                continue
            for joint in joints:
                if value.number is not None:
                    yield joint, value.number, value.line, group
                for pattern, number, line in reversed(value.table):
                    if matches(pattern, joint, group.matching):
                        yield joint, number, line, group
                        break

    def _positions(self) -> Iterator[Finding]:
        """Initial positions of no joint, and beyond limits."""
        given: set[str] = set()
        idle: list[tuple[str, int]] = []
        for pattern, value, line in self.configuration.positions:
            hits = [j for j in self.joints if self._begins(pattern, j)]
            given |= set(hits)
            if not hits:
                idle.append((pattern, line))
            for joint in hits:
                limits = self.of_file[joint].limits
                if not limits.lower - 1e-6 <= value <= limits.upper + 1e-6:
                    yield self._finding(
                        "warning", "config-pose", line, self.configuration.name,
                        f"'{joint}' begins at {value:.4g}, beyond its limits "
                        f"{limits.lower:.4g} … {limits.upper:.4g}",
                        "begin within the limits, in radians and with the sign of the file's axis",
                        value,
                    )  # fmt: skip
        if idle:
            exact = self.configuration.complete
            yield self._finding(
                "note" if exact else "error", "config-joints", idle[0][1], self.configuration.name,
                f"initial positions of no joint: {few([pattern for pattern, _ in idle], 6)}",
                "nothing to do if another robot has these joints" if exact
                else f"the robot's joints are {few(self.joints, 6)}",
            )  # fmt: skip
        left = [joint for joint in self.joints if joint not in given]
        if self.configuration.complete and left:
            yield self._finding(
                "error", "config-joints", self.configuration.line, self.configuration.name,
                f"no initial position of {few(left, 6)}: the names are looked up, and a missing "
                "one stops the simulation",
                "give a position to every joint",
            )  # fmt: skip

    def _begins(self, pattern: str, joint: str) -> bool:
        """True if an initial position is a joint's: by its name, or by a pattern."""
        return pattern == joint if self.configuration.complete else matches(pattern, joint, "whole")

    @cached_property
    def efforts(self) -> dict[str, float]:
        """The greatest force at each joint that the file allows, through its transmissions."""
        neutral = self.model.neutral()
        _, upper = torque_limits(self.model, neutral)
        through = dict(zip(self.model.dof_names, map(float, upper), strict=True))
        result = {}
        for joint in self.joints:
            own = self.of_file[joint].limits.effort
            result[joint] = own if math.isfinite(own) else through.get(joint, math.inf)
        return result

    def _limits(self) -> Iterator[Finding]:
        for quantity, unit in (("effort", "N m"), ("velocity", "rad/s")):
            off: dict[tuple[int, str, float, float], list[str]] = {}
            for joint, number, line, group in self.numbers(quantity):
                limits = self.of_file[joint].limits
                right = self.efforts[joint] if quantity == "effort" else limits.velocity
                if not (math.isfinite(right) and right > 0.0):
                    continue
                if abs(number - right) > BOUNDS.sheet_limit * right:
                    off.setdefault((line, group.name, number, right), []).append(joint)
            for (line, name, number, right), joints in off.items():
                slides = self.of_file[joints[0]].type == "prismatic"
                in_unit = {"N m": "N", "rad/s": "m/s"}[unit] if slides else unit
                yield self._finding(
                    "warning", f"config-{quantity}", line, name,
                    f"{number:.6g} {in_unit} for {few(joints)}, where the robot's file has "
                    f"{right:.6g}: {number / right:.3g} times",
                    "take the file's, or mend the file; a gear behind one joint only makes its "
                    "limits other than its neighbours'"
                    if quantity == "effort" and number < right
                    else "take the file's, or mend the file",
                    number / right, "ratio",
                )  # fmt: skip
        for group, joints in zip(self.configuration.groups, self.members, strict=True):
            yield from self._saturation(group, joints)

    def _saturation(self, group: Group, joints: Sequence[str]) -> Iterator[Finding]:
        """A stall torque below the effort limit."""
        if group.saturation is None or group.saturation.number is None:
            return
        stall = group.saturation.number
        limits = [(x, n) for x, n, _, g in self.numbers("effort") if g is group and x in joints]
        beyond = [joint for joint, limit in limits if limit > stall * (1.0 + BOUNDS.sheet_limit)]
        if beyond:
            yield self._finding(
                "warning", "config-effort", group.saturation.line, group.name,
                f"the stall torque {stall:.6g} N m is below the effort limit of {few(beyond)}",
                "a motor gives no more than its stall torque",
            )  # fmt: skip

    def _armatures(self) -> Iterator[Finding]:
        bodies = {joint.name: k for k, joint in enumerate(self.model.joints)}
        off: dict[tuple[int, str, float, float], list[str]] = {}
        for joint, number, line, group in self.numbers("armature"):
            if joint not in bodies:
                continue
            right = self.reflected.get(joint, 0.0)
            if right > 0.0 and abs(number - right) > BOUNDS.sheet_armature * right:
                off.setdefault((line, group.name, number, right), []).append(joint)
        for (line, name, number, right), joints in off.items():
            yield self._finding(
                "warning", "config-armature", line, name,
                f"an armature of {number:.4g} for {few(joints)}, whose rotors make "
                f"{right:.4g}: {number / right:.3g} times",
                "armature is the rotor's inertia times the square of the ratio",
                number / right, "ratio",
            )  # fmt: skip

    @cached_property
    def reflected(self) -> dict[str, float]:
        """The inertia that rotors and armatures of the file make at each joint."""
        nodes = zip(self.model.joints, self.model.nodes, strict=True)
        result = {joint.name: float(node.armature) for joint, node in nodes}
        for rotor in CheckContext(self.model).rotors:
            for name, ratio in rotor.ratios.items():
                result[name] = result.get(name, 0.0) + rotor.inertia * ratio**2
        return result

    # ---- gains

    def _gains(self) -> Iterator[Finding]:
        """Gains that the step of the physics cannot hold.

        With forces of the last position, and of the last rate, a step is stable if and only if
        4 M - 2 h D - h² K is positive; with rates of the step itself, as in MuJoCo's implicit
        integrators, if 4 M + 2 h D - h² K is.
        """
        step = self.configuration.step
        explicit = [g for g in self.configuration.groups if g.explicit or g.implicit_damping]
        if not explicit or not any("stiffness" in group.values for group in explicit):
            return
        if step is None:
            if any(group.explicit for group in explicit):
                yield self._finding(
                    "note", "config-unread", self.configuration.line, self.configuration.name,
                    "the step of the physics is not in this text: gains are not compared with it",
                )  # fmt: skip
            return
        model = self.as_simulated
        rows = {x.name: int(n.v) for x, n in zip(model.joints, model.nodes, strict=True)
                if x.name in self.joints}  # fmt: skip
        stiffness, damping, armature = np.zeros((3, sum(x.nv for x in model.joints)))
        lines: dict[str, tuple[int, str]] = {}
        sign = 1.0 if all(group.implicit_damping for group in explicit) else -1.0
        for quantity, into in (("stiffness", stiffness), ("damping", damping)):
            for joint, number, line, group in self.numbers(quantity):
                if joint in rows and (group.explicit or group.implicit_damping):
                    into[rows[joint]] = number
                    lines.setdefault(joint, (line, group.name))
        for joint, number, _, _ in self.numbers("armature"):
            if joint in rows:
                armature[rows[joint]] = number - self.reflected.get(joint, 0.0)
        load = (step**2 * stiffness - sign * 2.0 * step * damping) / 4.0
        value, row = self._beyond(load, armature)
        for joint in [name for name in rows if value > 1.0 and rows[name] == row]:
            line, element = lines.get(joint, (self.configuration.line, self.configuration.name))
            k, d = stiffness[rows[joint]], damping[rows[joint]]
            yield self._finding(
                "warning", "config-gains", line, element,
                f"stiffness {k:.4g} and damping {d:.4g} of '{joint}' are {value:.3g} times what a "
                f"step of {step:.4g} s holds with the inertia there at the initial position",
                "lower the gains or the step, or give the joint the armature of its rotor",
                value, "times",
            )  # fmt: skip

    def _beyond(self, load: Array, armature: Array) -> tuple[float, int]:
        """The largest eigenvalue of M⁻¹ load at neutral and initially, and the row of most of it.

        ``load`` and ``armature`` are of all joints' velocities; from 1 on a step is not stable.
        """
        from scipy.linalg import eigh

        model = self.as_simulated
        worst, row = 0.0, -1
        for q in (model.neutral(), self._initial(model)):
            g = np.asarray(model.constraint_jacobian(q))
            mass = np.asarray(crba(model, q, backend="numpy")) + g.T @ (armature[:, None] * g)
            try:
                values, vectors = eigh(g.T @ (load[:, None] * g), mass)
            except (LinAlgError, ValueError):  # a singular position, or a body without inertia
                continue
            if values[-1] > worst:
                work = load * (g @ vectors[:, -1]) ** 2
                worst, row = float(values[-1]), int(np.argmax(work))
        return worst, row

    @cached_property
    def as_simulated(self) -> Model:
        """The robot with its base free where the configuration says so."""
        floating = any(joint.type == "floating" for joint in self.model.joints)
        if not self.configuration.floats or floating:
            return self.model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            return build(self.model.description, floating_base=True)

    def _initial(self, model: Model) -> Array:
        """The initial configuration; neutral's if its loops do not close."""
        free = {joint.name for joint in model.joints if joint.independent and joint.nv == 1}
        given = {
            joint: value
            for pattern, value, _ in self.configuration.positions
            for joint in self.joints
            if joint in free and self._begins(pattern, joint)
        }
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(model.configuration(given))
        return np.asarray(model.neutral())

    # ---- orders

    def _orders(self) -> Iterator[Finding]:
        """Lists of joints (or of their links): names that are none, or repeated; known orders."""
        by_link = {j.child: j.name for j in self.model.description.joints if j.type in ONE_DOF}
        movable = set(self.joints)
        lists: dict[str, list[str]] = {}
        for each in lists_of_names(self.text):
            names = [by_link.get(name, name) for name in each.names]
            known = [name for name in names if name in movable]
            if len(known) < 3 or len(known) < BOUNDS.joint_names * len(names):
                continue
            odd = [x for x, name in zip(each.names, names, strict=True)
                   if name not in movable and x != self.root]  # fmt: skip
            if odd:
                hint = did_you_mean(odd[0], self.joints)
                yield self._finding(
                    "warning", "config-order", each.line, each.name,
                    f"{few(odd)} in a list of joints: the robot has none of this name{hint}",
                )  # fmt: skip
            twice = sorted({name for name in known if known.count(name) > 1})
            if twice:
                yield self._finding(
                    "warning", "config-order", each.line, each.name,
                    f"{few(twice)} stands twice in a list of joints",
                )  # fmt: skip
            if len(known) == len(movable) and not twice:
                lists[each.name] = known
                yield from self._known_order(each.name, each.line, known)
        yield from self._indices()

    def _known_order(self, name: str, line: int, joints: Sequence[str]) -> Iterator[Finding]:
        """A list that names a simulator, in another order than the simulator's."""
        for word, order, words in (
            ("isaac", self.by_levels, "Isaac Lab's, level by level from the root"),
            ("mujoco", self.by_depth, "MuJoCo's, limb after limb"),
        ):
            others = {"isaac": "mujoco", "mujoco": "isaac"}[word]
            if word in name.lower() and others not in name.lower() and joints != order:
                at = next(n for n, pair in enumerate(zip(joints, order, strict=True))
                          if pair[0] != pair[1])  # fmt: skip
                yield self._finding(
                    "warning", "config-order", line, name,
                    f"the order is not {words}, of the robot's file: at place {at} stands "
                    f"'{joints[at]}', and there '{order[at]}'",
                    "sort the list as the simulator does, or rename it",
                )  # fmt: skip

    def _indices(self) -> Iterator[Finding]:
        """Lists of indices: no permutations, or not the inverse of each other."""
        found = permutations(self.text)
        sizes = {len(self.joints), len(self.joints) + 1}
        for name, (indices, line) in found.items():
            words = [word for word in name.upper().split("_") if word]
            if "TO" not in words or len(indices) not in sizes:
                continue
            if sorted(indices) != list(range(len(indices))):
                yield self._finding(
                    "warning", "config-order", line, name,
                    f"these {len(indices)} indices are no permutation",
                    "each of 0 … n - 1 stands once",
                )  # fmt: skip
                continue
            yield from self._inverse(name, indices, line, found)
            yield from self._from_orders(name, words, indices, line)

    def _inverse(
        self,
        name: str,
        indices: tuple[int, ...],
        line: int,
        found: Mapping[str, tuple[tuple[int, ...], int]],
    ) -> Iterator[Finding]:
        back = re.sub(r"([A-Za-z]+)_(TO|to)_([A-Za-z]+)", r"\3_\2_\1", name)
        other = found.get(back)
        if other is None or back <= name or len(other[0]) != len(indices):
            return
        if any(other[0][k] != n for n, k in enumerate(indices)):
            yield self._finding(
                "warning", "config-order", line, name,
                f"'{back}' is not its inverse",
                "one of the two is wrong",
            )  # fmt: skip

    def _from_orders(
        self, name: str, words: Sequence[str], indices: tuple[int, ...], line: int
    ) -> Iterator[Finding]:
        """Indices from Isaac Lab's order of joints to MuJoCo's, or back, as the file has them."""
        if len(indices) != len(self.joints) or not {"ISAACLAB", "MUJOCO"} <= set(words):
            return
        orders = {"ISAACLAB": self.by_levels, "MUJOCO": self.by_depth}
        at = words.index("TO")
        source, target = orders.get(words[at - 1]), orders.get(words[at + 1])
        if source is None or target is None:
            return
        taken = [source.index(joint) for joint in target]
        put = [target.index(joint) for joint in source]
        if list(indices) not in (taken, put):
            wrong = next(n for n, k in enumerate(indices) if k != taken[n])
            yield self._finding(
                "warning", "config-order", line, name,
                f"place {wrong} takes joint {indices[wrong]}, '{source[indices[wrong]]}', where "
                f"the robot's file has '{target[wrong]}'",
                "compute the indices from the two orders of the file",
            )  # fmt: skip

    @cached_property
    def by_levels(self) -> list[str]:
        """Joints level by level from the root, those of a link in the order of the file."""
        below = self._below
        order: list[str] = []
        queue = deque([self.root])
        while queue:
            for joint in below.get(queue.popleft(), ()):
                if joint.type in ONE_DOF and joint.name in set(self.joints):
                    order.append(joint.name)
                queue.append(joint.child)
        return order

    @cached_property
    def by_depth(self) -> list[str]:
        """Joints limb after limb, those of a link in the order of the file."""
        order: list[str] = []
        stack = [*reversed(self._below.get(self.root, ()))]
        while stack:
            joint = stack.pop()
            if joint.type in ONE_DOF and joint.name in set(self.joints):
                order.append(joint.name)
            stack += reversed(self._below.get(joint.child, ()))
        return order

    @cached_property
    def _below(self) -> dict[str, list[FileJoint]]:
        below: dict[str, list[FileJoint]] = {}
        for joint in self.model.description.joints:
            below.setdefault(joint.parent, []).append(joint)
        return below
