"""Springs of MJCF: of joints, of fixed tendons, and of tendons straight between two sites."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from robomodel.description import Anchor, JointSpring, Spring
from robomodel.errors import DescriptionError
from robomodel.parsers.mjcf.elements import Section
from robomodel.parsers.mjcf.ties import Ties

_BALL = 1  # mjtJoint
_KIND = "spring"  # of what is suspicious


@dataclass
class Springs(Section):
    """What pulls joints and links of a model; what no word says is told of."""

    ties: Ties

    def of_joint(self, number: int) -> tuple[float, float]:
        """Stiffness and reference of a joint: of slides, hinges and balls."""
        model, elements = self.model, self.elements
        stiffness, source = float(model.jnt_stiffness[number]), elements.joint_source(number)
        if elements.has("jnt_stiffnesspoly", number):
            elements.unapplied("of its spring the terms beyond the linear one are", source, _KIND)
        if not stiffness:
            return 0.0, 0.0
        if int(model.jnt_type[number]) < _BALL:
            elements.unapplied("the spring of a free joint is", source, _KIND)
            return 0.0, 0.0
        at = int(model.jnt_qposadr[number])
        return stiffness, float(model.qpos_spring[at]) if elements.is_scalar(number) else 0.0

    def of_tendons(self) -> Iterator[Spring | JointSpring]:
        """Tendons with stiffness, damping or friction."""
        model, elements, locked = self.model, self.elements, self.ties.locked
        for tendon in range(model.ntendon):
            stiffness, damping, friction = (
                float(getattr(model, f"tendon_{name}")[tendon])
                for name in ("stiffness", "damping", "frictionloss")
            )
            name, source = elements.called("tendon", tendon)
            for poly in ("tendon_stiffnesspoly", "tendon_dampingpoly"):
                if elements.has(poly, tendon):
                    what = "of its forces the terms beyond the linear one are"
                    elements.unapplied(what, source, _KIND)
            if not (stiffness or damping or friction):
                continue
            low, high = (float(x) for x in model.tendon_lengthspring[tendon])
            if stiffness and low != high:
                what = f"its spring, which is slack from {low:g} to {high:g}, is"
                elements.unapplied(what, source, _KIND)
                stiffness = 0.0
            if (terms := self.ties.terms(tendon)) is not None:
                names = tuple((elements.joints[q], k) for q, k in terms if q not in locked)
                rest = low - sum(k * locked[q] for q, k in terms if q in locked)
                if names:
                    yield JointSpring(name, names, stiffness, rest, damping, friction, source)
                continue
            if (ends := self.ties.straight(tendon)) is None:
                what = "a tendon's force that is not straight between two sites is"
                elements.unapplied(what, source, _KIND)
                continue
            if friction:
                elements.unapplied("the dry friction of a spatial tendon is", source, _KIND)
            if not (stiffness or damping):
                continue
            one, other = (Anchor(elements.bodies[body], pose) for body, pose in ends)
            if one.link == other.link:
                raise DescriptionError(
                    f"joins two sites of one body '{one.link}', so that it never changes its "
                    "length; move a site to another body, or take its stiffness and damping out",
                    source,
                )
            length = low if math.isfinite(low) else None
            yield Spring(name, one, other, stiffness, length, damping, source)
