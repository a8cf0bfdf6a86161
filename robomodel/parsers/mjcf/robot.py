"""MJCF to a description: what MuJoCo compiles, without what it softens.

MuJoCo resolves defaults, classes, angles, frames and inertias; :mod:`robomodel.parsers.mjcf.source`
hands it the file. Its model becomes links and joints (:mod:`robomodel.parsers.mjcf.bodies`), loops
and couplings (:mod:`robomodel.parsers.mjcf.constraints`) and transmissions
(:mod:`robomodel.parsers.mjcf.actuators`). docs/mjcf.md lists every element.
"""

from __future__ import annotations

from dataclasses import replace

from robomodel.description import Description, Joint, Link
from robomodel.description.poses import ORIGIN, vec
from robomodel.errors import DescriptionError
from robomodel.parsers.mjcf.actuators import Actuators
from robomodel.parsers.mjcf.bodies import Bodies
from robomodel.parsers.mjcf.constraints import Springs, Ties
from robomodel.parsers.mjcf.elements import Elements
from robomodel.parsers.mjcf.source import UNNAMED, compile_mjcf
from robomodel.parsers.xml import Document

_BODY_NUMBERS = ("mass", "inertia", "ipos", "iquat", "pos", "quat")


def read_mjcf(document: Document) -> Description:
    """The description of an MJCF document; what is suspicious is added to its issues.

    Raises :class:`DescriptionError` for what cannot be read, and ImportError without MuJoCo.
    """
    if document.root.tag != "mujoco":
        raise DescriptionError(
            f"this is no MJCF: its root element is <{document.root.tag}>, not <mujoco>",
            document.source(document.root, f"<{document.root.tag}>"),
        )
    elements = Elements(compile_mjcf(document))
    description = _description(elements)
    document.issues.extend(elements.issues)
    return description


def _description(elements: Elements) -> Description:
    model, root = elements.model, elements.compiled.root
    _check_finite(elements)
    joints: list[Joint] = []
    links: list[Link] = []
    ties = Ties(elements)
    actuators = Actuators(elements, ties)
    springs = Springs(elements, ties)
    bodies = Bodies(elements, ties, actuators, springs)
    for body in range(model.nbody):
        chain, between = bodies.chain(body)
        joints += chain
        links += between
        links.append(bodies.link(body))
    ties.read()
    joints = [replace(joint, mimic=ties.mimics.get(joint.name)) for joint in joints]
    more_links, more_joints, more_couplings = actuators.rotors()
    _warn_of_forces(elements)
    return Description(
        root.attributes.get("model") or UNNAMED,
        (*links, *more_links),
        (*joints, *more_joints),
        tuple(ties.loops),
        (*ties.couplings, *more_couplings),
        tuple(actuators.transmissions()),
        replace(root.source, element="<mujoco>"),
        ORIGIN if elements.disabled("GRAVITY") else vec(model.opt.gravity),
        format="mjcf",
        springs=(*springs.of_tendons(), *actuators.dampers()),
        sensors=elements.compiled.sensors,
    )


def _check_finite(elements: Elements) -> None:
    """Refuse numbers so large that MuJoCo's own arithmetic overflowed."""
    import numpy as np

    model = elements.model
    for body in range(model.nbody):
        joints = slice(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        values = [getattr(model, f"body_{part}")[body] for part in _BODY_NUMBERS]
        values += [model.jnt_pos[joints], model.jnt_axis[joints]] if body else []
        if not all(np.isfinite(value).all() for value in values):
            raise DescriptionError(
                "its mass, inertia or place overflows: numbers in the file are too large",
                elements.body_source(body),
            )
    if not all(np.isfinite(each).all() for each in (model.qpos0, model.eq_data[:, :10])):
        raise DescriptionError(
            "positions of joints or constraints overflow: numbers in the file are too large",
            elements.compiled.root.source,
        )


def _warn_of_forces(elements: Elements) -> None:
    """Note forces of the file that no function applies and that are not kept."""
    model = elements.model
    for joint in range(model.njnt):
        if elements.has("dof_dampingpoly", int(model.jnt_dofadr[joint])):
            what = "of its damping the terms beyond the linear one are"
            elements.unapplied(what, elements.joint_source(joint), "joint damping")
    for body in range(model.nbody):
        if model.body_gravcomp[body]:
            source = elements.body_source(body)
            elements.unapplied("its gravity compensation is", source, "gravity compensation")
    if model.opt.density or model.opt.viscosity:
        option = replace(elements.compiled.root.source, element="<option>")
        elements.unapplied("the fluid's forces are", option, "fluid")
