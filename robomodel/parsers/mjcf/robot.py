"""MJCF to a description: what MuJoCo compiles, without what it softens.

MuJoCo resolves defaults, classes, angles, frames and inertias; :mod:`robomodel.parsers.mjcf.source`
hands it the file. Its model becomes links and joints (:mod:`robomodel.parsers.mjcf.bodies`), loops
and couplings (:mod:`robomodel.parsers.mjcf.ties`) and transmissions
(:mod:`robomodel.parsers.mjcf.actuators`). docs/mjcf.md tells what becomes of each element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robomodel.description import Description, Joint, Link, Vec3
from robomodel.errors import DescriptionError, Doubt, Source
from robomodel.parsers.mjcf.actuators import Actuators
from robomodel.parsers.mjcf.bodies import Bodies
from robomodel.parsers.mjcf.elements import Elements, vec
from robomodel.parsers.mjcf.prepared import UNNAMED
from robomodel.parsers.mjcf.source import compile_mjcf
from robomodel.parsers.mjcf.springs import Springs
from robomodel.parsers.mjcf.ties import Ties
from robomodel.parsers.xml import Document

_ZERO: Vec3 = (0.0, 0.0, 0.0)
_BODY_NUMBERS = ("mass", "inertia", "ipos", "iquat", "pos", "quat")
_NOTHING: tuple[float, ...] = ()  # what older versions of MuJoCo have of newer forces


def read_mjcf(document: Document) -> Description:
    """The description of an MJCF document; what is suspicious is added to its doubts.

    Raises :class:`DescriptionError` for what cannot be read, and ImportError without MuJoCo.
    """
    if document.root.tag != "mujoco":
        raise DescriptionError(
            f"this is no MJCF: its root element is <{document.root.tag}>, not <mujoco>",
            document.source(document.root, f"<{document.root.tag}>"),
        )
    elements = Elements(compile_mjcf(document))
    description = _Reading(elements).description()
    document.doubts.extend(elements.doubts)
    return description


@dataclass
class _Reading:
    """The steps from a compiled model to its description."""

    elements: Elements

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.elements.model

    def description(self) -> Description:
        """Assemble."""
        root = self.elements.compiled.root
        self._check_finite()
        joints: list[Joint] = []
        links: list[Link] = []
        ties = Ties(self.elements)
        actuators = Actuators(self.elements, ties)
        springs = Springs(self.elements, ties)
        bodies = Bodies(self.elements, ties, actuators, springs)
        for body in range(self.model.nbody):
            chain, between = bodies.chain(body)
            joints += chain
            links += between
            links.append(bodies.link(body))
        loops, couplings, mimics = ties.read()
        joints = [replace(joint, mimic=mimics.get(joint.name)) for joint in joints]
        more_links, more_joints, more_couplings = actuators.rotors()
        self._doubt_forces()
        return Description(
            root.attributes.get("model") or UNNAMED,
            (*links, *more_links),
            (*joints, *more_joints),
            tuple(loops),
            (*couplings, *more_couplings),
            tuple(actuators.transmissions()),
            replace(root.source, element="<mujoco>"),
            self._gravity(),
            simulated=True,
            springs=(*springs.of_tendons(), *actuators.dampers()),
            sensors=self.elements.compiled.sensors,
        )

    def _check_finite(self) -> None:
        """Refuse numbers so large that MuJoCo's own arithmetic overflowed."""
        import numpy as np

        model = self.model
        for body in range(model.nbody):
            joints = slice(
                model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]
            )
            values = [getattr(model, f"body_{part}")[body] for part in _BODY_NUMBERS]
            values += [model.jnt_pos[joints], model.jnt_axis[joints]] if body else []
            if not all(np.isfinite(value).all() for value in values):
                raise DescriptionError(
                    "its mass, inertia or place overflows: numbers in the file are too large",
                    self.elements.body_source(body),
                )
        if not all(np.isfinite(each).all() for each in (model.qpos0, model.eq_data[:, :10])):
            raise DescriptionError(
                "positions of joints or constraints overflow: numbers in the file are too large",
                self.elements.compiled.root.source,
            )

    def _gravity(self) -> Vec3:
        return _ZERO if self.elements.disabled("GRAVITY") else vec(self.model.opt.gravity)

    def _doubt_forces(self) -> None:
        """Note forces of the file that no function applies and that are not kept."""
        model = self.model
        for joint in range(model.njnt):
            dof = int(model.jnt_dofadr[joint])
            if _any(getattr(model, "dof_dampingpoly", _NOTHING)[dof : dof + 1]):
                self._unapplied(
                    "of its damping the terms beyond the linear one are",
                    self.elements.joint_source(joint),
                    "joint damping",
                )
        for body in range(model.nbody):
            if model.body_gravcomp[body]:
                self._unapplied(
                    "its gravity compensation is",
                    self.elements.body_source(body),
                    "gravity compensation",
                )
        if model.opt.density or model.opt.viscosity:
            self._unapplied(
                "the fluid's forces are",
                replace(self.elements.compiled.root.source, element="<option>"),
                "fluid",
            )

    def _unapplied(self, what: str, source: Source, kind: str) -> None:
        self.elements.doubts.append(
            Doubt(f"{what} not kept, and no function applies it", source, kind)
        )


def _any(values: Any) -> bool:
    """Whether a number or an array is nonzero anywhere."""
    import numpy as np

    return bool(np.any(values))
