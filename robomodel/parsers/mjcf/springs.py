"""Springs of MJCF: of joints, of fixed tendons, and of tendons straight between two sites."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from robomodel.description import Anchor, JointSpring, Pose, Spring
from robomodel.errors import DescriptionError, Doubt, Source
from robomodel.parsers.mjcf.elements import Elements, vec
from robomodel.parsers.mjcf.ties import Ties

_SITES = [3, 3]  # mjtWrap: two sites and nothing in between
_LEAST_SCALAR = 2  # mjtJoint: slides and hinges
_BALL = 1


@dataclass(frozen=True, slots=True)
class Springs:
    """What pulls joints and links of a model; what no word says is told of."""

    elements: Elements
    ties: Ties

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.elements.model

    def of_joint(self, number: int) -> tuple[float, float]:
        """Stiffness and reference of a joint: of slides, hinges and balls."""
        model = self.model
        stiffness = float(model.jnt_stiffness[number])
        kind, source = int(model.jnt_type[number]), self.elements.joint_source(number)
        if _any(model, "jnt_stiffnesspoly", number):
            self._untold("of its spring the terms beyond the linear one are", source)
        if not stiffness:
            return 0.0, 0.0
        if kind < _BALL:
            self._untold("the spring of a free joint is", source)
            return 0.0, 0.0
        at = int(model.jnt_qposadr[number])
        return stiffness, float(model.qpos_spring[at]) if kind >= _LEAST_SCALAR else 0.0

    def of_tendons(self) -> Iterator[Spring | JointSpring]:
        """Tendons with stiffness, damping or friction."""
        model = self.model
        for tendon in range(model.ntendon):
            stiffness, damping, friction = (
                float(getattr(model, f"tendon_{name}")[tendon])
                for name in ("stiffness", "damping", "frictionloss")
            )
            compiled = self.elements.name("tendon", tendon)
            name = self.elements.compiled.given(compiled) or f"tendon_{tendon}"
            source = self.elements.compiled.source("tendon", compiled, f"tendon '{name}'")
            for poly in ("tendon_stiffnesspoly", "tendon_dampingpoly"):
                if _any(model, poly, tendon):
                    self._untold("of its forces the terms beyond the linear one are", source)
            if not (stiffness or damping or friction):
                continue
            low, high = (float(x) for x in model.tendon_lengthspring[tendon])
            if stiffness and low != high:
                self._untold(f"its spring, which is slack from {low:g} to {high:g}, is", source)
                stiffness = 0.0
            terms = self.ties.terms(tendon)
            if terms is not None:
                names = tuple(
                    (self.elements.joints[joint], k)
                    for joint, k in terms
                    if joint not in self.ties.locked
                )
                held = sum(
                    k * self.ties.locked[joint] for joint, k in terms if joint in self.ties.locked
                )
                if names:
                    yield JointSpring(name, names, stiffness, low - held, damping, friction, source)
                continue
            yield from self._straight(tendon, name, source, stiffness, low, damping, friction)

    def _straight(
        self,
        tendon: int,
        name: str,
        source: Source,
        stiffness: float,
        length: float,
        damping: float,
        friction: float,
    ) -> Iterator[Spring]:
        """A tendon between two sites."""
        model = self.model
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        if [int(kind) for kind in model.wrap_type[first : first + count]] != _SITES:
            self._untold("a tendon's force that is not straight between two sites is", source)
            return
        if friction:
            self._untold("the dry friction of a spatial tendon is", source)
        if not (stiffness or damping):
            return
        anchors = []
        for wrap in (first, first + 1):
            site = int(model.wrap_objid[wrap])
            body = self.elements.bodies[int(model.site_bodyid[site])]
            anchors.append(Anchor(body, Pose(vec(model.site_pos[site]))))
        if anchors[0].link == anchors[1].link:
            raise DescriptionError(
                f"joins two sites of one body '{anchors[0].link}', so that it never changes its "
                "length; move a site to another body, or take its stiffness and damping out",
                source,
            )
        yield Spring(
            name, anchors[0], anchors[1], stiffness, length if math.isfinite(length) else None,
            damping, source,
        )  # fmt: skip

    def _untold(self, what: str, source: Source) -> None:
        self.elements.doubts.append(
            Doubt(f"{what} not kept, and no function applies it", source, "spring")
        )


def _any(model: Any, name: str, at: int) -> bool:
    """Whether an array that only some releases have is nonzero in a row."""
    import numpy as np

    values = getattr(model, name, None)
    return values is not None and bool(np.any(values[at]))
