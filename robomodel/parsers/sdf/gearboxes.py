"""Gearbox joints of an SDF file: couplings of angles in a reference body."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from robomodel.description import ONE_DOF, Joint, JointCoupling, LinkCoupling, Vec3
from robomodel.parsers.sdf.axes import read_axis
from robomodel.parsers.sdf.frames import Frame, Frames
from robomodel.parsers.sdf.joints import JOINT, JOINT_IRRELEVANT, Carriers, direction, is_world
from robomodel.parsers.sdf.tree import Step
from robomodel.poses import branches, cosine, sine, turned

_ALONG = 1e-5  # sine of the angle by which a gearbox's axis may miss those of its joints: 1.5708
_NEARLY_ALONG = 2e-3  # and of one that is warned of: 1.57, 3.14
_MOST_GEARED = 100  # joints that one gearbox may add up


@dataclass(frozen=True, slots=True)
class Gearboxes:
    """Reads gearboxes once the tree stands.

    ``above`` are joints by the link that each moves; ``axes`` and ``steps`` are by the names of
    joints, the axes with the frame that each is in.
    """

    frames: Frames
    carriers: Carriers
    above: Mapping[str, Joint]
    axes: Mapping[str, tuple[Frame, Vec3]]
    steps: Mapping[str, Step]

    def read(self, frame: Frame) -> LinkCoupling | JointCoupling:
        """θ₂ = −gearbox_ratio θ₁, of the angles of child and parent in the reference body."""
        document, element = frame.document, frame.element
        document.parts(element, JOINT, JOINT_IRRELEVANT)
        source = document.source(element, f"joint '{frame.name}'")
        parent, child = self.carriers.end(frame, "parent"), self.carriers.end(frame, "child")
        name = document.required(element, "gearbox_reference_body")
        reference = self.frames.world
        if not is_world(frame, name):
            reference = self.carriers.carrier(frame, name, element)
        ratio = document.value(element, "gearbox_ratio", 1.0)
        terms: list[dict[str, float]] = []
        for end, tag in ((parent, "axis"), (child, "axis2")):
            part = element.find(tag)
            if part is None:
                raise document.error(element, f"a gearbox joint needs <{tag}>")
            axis = direction(self.frames, frame, read_axis(document, part, bounded=False))
            terms.append(self._angle(reference, end, self._upright(frame, axis), frame, tag))
        first, second = terms
        offset = sum(k * self.steps[q].standing for q, k in second.items())
        offset += ratio * sum(k * self.steps[q].standing for q, k in first.items())
        offset += 0.0
        signs = [set(each.values()) for each in terms]
        if (
            all(len(sign) == 1 for sign in signs)
            and first.keys().isdisjoint(second)
            and all(map(self._turns_only, (reference, reference), (parent, child), terms))
        ):
            (s1,), (s2,) = signs
            return LinkCoupling(
                frame.name, parent.name, child.name, 0.0 - ratio * s1 * s2, s2 * offset, source
            )
        total = dict(second)
        for joint, k in first.items():
            total[joint] = total.get(joint, 0.0) + ratio * k
        return JointCoupling(frame.name, tuple(total.items()), offset, source)

    def _angle(
        self, reference: Frame, end: Frame, direction: Vec3, gearbox: Frame, tag: str
    ) -> dict[str, float]:
        """By how much each joint turns ``end`` about the direction, as seen from the reference."""
        document = gearbox.document
        up, down = branches(self.above, reference.name, end.name)
        if len(up) + len(down) > _MOST_GEARED:
            raise document.error(
                gearbox.element,
                f"{len(up) + len(down)} joints lie between the reference body '{reference.name}' "
                f"and '{end.name}'; more than {_MOST_GEARED} are not read",
            )
        terms = {}
        for joint, way in (*((j, -1.0) for j in reversed(up)), *((j, 1.0) for j in down)):
            if joint.type in ("fixed", "prismatic"):
                continue
            sign = miss = 0.0
            if joint.type in ONE_DOF:
                sign, miss = _alignment(self._upright(*self.axes[joint.name]), direction)
            if not sign:
                raise document.error(
                    gearbox.element,
                    f"the joint '{joint.name}', between the reference body '{reference.name}' and "
                    f"'{end.name}', does not turn about <{tag}>, so there is no angle to gear",
                )
            if miss > _ALONG:
                document.suspect(
                    gearbox.element,
                    f"<{tag}> misses the axis of the joint '{joint.name}' by {miss:.2g} rad; the "
                    "two are taken as one",
                )
            terms[joint.name] = way * sign
        if not terms:
            raise document.error(
                gearbox.element,
                f"nothing turns '{end.name}' in the reference body '{reference.name}'",
            )
        return terms

    def _upright(self, frame: Frame, axis: Vec3) -> Vec3:
        """An axis of a frame in the world."""
        return turned(self.frames.in_world(frame).rotation, axis)

    def _turns_only(self, reference: Frame, end: Frame, terms: dict[str, float]) -> bool:
        """Whether these joints are all that moves ``end``, which hangs on the reference body."""
        up, down = branches(self.above, reference.name, end.name)
        return all(joint.type == "fixed" for joint in up) and all(
            joint.type == "fixed" or joint.name in terms for joint in down
        )


def _alignment(one: Vec3, other: Vec3) -> tuple[float, float]:
    """1 for nearly the same direction, -1 for nearly the opposite one, and the sine between them.

    0 for none of the two.
    """
    apart = sine(one, other)
    return (math.copysign(1.0, cosine(one, other)) if apart <= _NEARLY_ALONG else 0.0), apart
