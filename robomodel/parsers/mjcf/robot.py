"""MJCF to a description: MuJoCo's compiled model with its soft constraints read as exact ones.

MuJoCo resolves defaults, classes, angles, frames and inertias of the file that
:mod:`robomodel.parsers.mjcf.source` prepares. Bodies and joints become links and joints with
MuJoCo's positions, the rest becomes loops and couplings (:mod:`robomodel.parsers.mjcf.constraints`)
and transmissions (:mod:`robomodel.parsers.mjcf.actuators`). docs/mjcf.md lists every element.

In MuJoCo, ``ref`` is the position of a joint where the file places its body, so that the joint
displaces the body by q - ref. A joint whose ``pos`` is not the body's origin gets a link of its own
there. The joints of a body act one after the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from robomodel.description import (
    AT_ORIGIN,
    Description,
    Inertial,
    Joint,
    JointType,
    Limits,
    Link,
    Loop,
    Pose,
    Shape,
    ShapeKind,
    Stepping,
)
from robomodel.description.poses import ORIGIN, branches, compose, displacement, inverse, tidy, vec
from robomodel.description.transmissions import both_ways
from robomodel.errors import DescriptionError
from robomodel.parsers.mjcf.actuators import JOINT_MOTOR, Actuators
from robomodel.parsers.mjcf.compiled import JOINT_KINDS, CompiledElements, CompiledSection, pose
from robomodel.parsers.mjcf.constraints import EqualityConstraints, Springs
from robomodel.parsers.mjcf.source import UNNAMED, compile_mjcf
from robomodel.spatial import minus
from robomodel.tolerances import NO_LIMIT
from robomodel.vocabulary.frames import as_limit, marks_of
from robomodel.vocabulary.schema import ARMATURE, DYNAMICS, SIZES, read_arrays
from robomodel.vocabulary.xml import Document

_BODY_NUMBERS = ("mass", "inertia", "ipos", "iquat", "pos", "quat")
INDEPENDENT = "robomodel_independent:"
"""Prefix of a ``<custom>`` text with the flag ``independent`` of the joint named after it:
true or false, or one word for each freedom. MJCF has no such attribute."""
VELOCITY_LIMIT = "robomodel_velocity_limit:"
"""Prefix of a ``<custom>`` number with the velocity limit of the joint named after it."""
EFFORT_LIMIT = "robomodel_effort_limit:"
"""The same for an effort limit that MuJoCo does not accept: 0, or of several freedoms."""

ENDS = (".predecessor", ".successor")  # of names of sites at the ends of loops and springs
_HIDDEN_GROUP = 3  # MuJoCo's viewer shows the geoms of groups 0, 1 and 2
_RUBBING = 1.0  # default sliding friction of a geom
_GREY = (0.5, 0.5, 0.5, 1.0)  # default colour of a geom
_JOINTS: dict[str, JointType] = {  # of MuJoCo's types; hinges depend on their limits
    "free": "floating",
    "ball": "spherical",
    "slide": "prismatic",
    "hinge": "continuous",
}
_FREEDOMS = {"free": 6, "ball": 3}
_SHAPES: dict[int, ShapeKind] = {  # by mjtGeom
    0: "plane",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}


@dataclass
class _Bodies(CompiledSection):
    """The bodies of a model and their joints, except joints that a constraint locks."""

    ties: EqualityConstraints
    actuators: Actuators
    springs: Springs

    # ---- links

    def link(self, body: int) -> Link:
        """The link of a body."""
        source, model = self.elements.body_source(body), self.model
        inertial = None
        if body and model.body_mass[body] > 0.0 and body not in self.elements.compiled.unweighed:
            x, y, z = vec(model.body_inertia[body])
            inertial = Inertial(
                float(model.body_mass[body]),
                (x, 0.0, 0.0, y, 0.0, z),
                pose(model.body_ipos[body], model.body_iquat[body]),
                source,
            )
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        shapes = [each for geom in range(first, first + count) for each in self._shapes(geom)]
        return Link(self.elements.bodies[body], inertial, source, tuple(shapes))

    def _shapes(self, geom: int) -> Iterator[Shape]:
        """Visual and collision shapes of a geom, which may be both.

        A geom without contacts is a visual, unless it is in a group that the viewer hides.
        """
        model, standing = self.model, self.elements.compiled.standing
        name = self.elements.name("geom", geom)
        kind = _SHAPES.get(int(standing.geom_type[geom]))
        if kind is None:
            return
        origin = pose(standing.geom_pos[geom], standing.geom_quat[geom])
        halves = SIZES[kind].mjcf if kind in SIZES else ()
        size = tuple(float(x) / k for x, k in zip(model.geom_size[geom], halves, strict=False))
        file = None
        node = self.elements.node("geom", geom)
        if kind == "mesh":
            number = int(standing.geom_dataid[geom])
            origin = compose(
                origin, inverse(pose(standing.mesh_pos[number], standing.mesh_quat[number]))
            )
            mesh = self.elements.compiled.mesh(str(standing.mesh(number).name))
            if mesh is None or mesh.path is None or mesh.moved:
                return
            file, size = self._from_here(mesh.path, geom), mesh.scale
        elif node is not None and "mesh" in node.attributes and model is standing:
            return  # fitted to a mesh that cannot be read
        material = int(model.geom_matid[geom])
        colour = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        a, b, c, d = (round(float(value), 7) for value in colour)  # MuJoCo has single precision
        rgba = None if (a, b, c, d) == _GREY else (a, b, c, d)
        touches = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
        seen = not touches or model.geom_group[geom] < _HIDDEN_GROUP
        written = self.elements.compiled.written(name)
        source = self.elements.source("geom", geom, f"geom '{written}'" if written else "<geom>")
        rubbing: float | None = float(model.geom_friction[geom][0])
        if rubbing == _RUBBING and (node is None or "friction" not in node.attributes):
            rubbing = None  # MuJoCo's default is not stated in the file
        roles: tuple[tuple[Literal["visual", "collision"], bool], ...]
        roles = ("visual", seen), ("collision", touches)
        for role in (role for role, is_one in roles if is_one):
            friction = rubbing if role == "collision" else None
            yield Shape(role, kind, size, origin, file, written, rgba, source, friction=friction)

    def _from_here(self, path: str, geom: int) -> str:
        """A path relative to the main file's folder, made relative to a geom's file's folder."""
        main = os.path.dirname(self.elements.compiled.root.source.file)
        here = os.path.dirname(self.elements.source("geom", geom, "").file)
        if os.path.isabs(path) or main == here:
            return path
        return os.path.relpath(os.path.join(main, path), here).replace(os.sep, "/")

    def frames(self) -> Iterator[tuple[Link, Joint]]:
        """Named sites and cameras as massless links fixed to their bodies' links.

        A camera looks along -z of its frame. Sites at ends of loops and springs that this package's
        writer adds are left out.
        """
        model = self.model
        for kind, bodies, xyz, turns in (
            ("site", model.site_bodyid, model.site_pos, model.site_quat),
            ("camera", model.cam_bodyid, model.cam_pos, model.cam_quat),
        ):
            for n, body in enumerate(bodies):
                name = self.elements.compiled.written(self.elements.name(kind, n))
                if not name or name.endswith(ENDS):
                    continue
                source = self.elements.source(kind, n, f"{kind} '{name}'")
                link, carrier = self.elements.link_names.fresh(name), self.elements.bodies[body]
                joint, origin = (
                    self.elements.joint_names.fresh(f"{link}_fixed"),
                    pose(xyz[n], turns[n]),
                )
                yield (
                    Link(link, source=source),
                    Joint(joint, "fixed", carrier, link, origin, source=source),
                )

    # ---- joints

    def chain(self, body: int) -> tuple[list[Joint], list[Link]]:
        """The joints that lead to a body, and the massless links between them.

        Each joint turns the body about a point p in the body's frame, so the joint's own frame is
        at p, and what follows is at -p from there. If the last one is held, the fixed joint has its
        name.
        """
        if body == 0:
            return [], []
        model = self.model
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        source, name = self.elements.body_source(body), self.elements.bodies[body]
        parent = self.elements.bodies[int(model.body_parentid[body])]
        if model.body_mocapid[body] >= 0:
            self.elements.warn_at("is moved by hand (mocap); it is read as fixed", source, "mocap")
        placement, at = pose(model.body_pos[body], model.body_quat[body]), ORIGIN
        joints: list[Joint] = []
        links: list[Link] = []
        for number in range(first, first + count):
            kind = JOINT_KINDS[int(model.jnt_type[number])]
            if kind == "free":
                free = self._joint(number, parent, name, AT_ORIGIN)
                return [replace(free, initial_pose=placement)], []
            point = at if kind == "slide" else vec(model.jnt_pos[number])
            placement, at = compose(placement, Pose(minus(point, at))), point
            reference = self.elements.reference(number)
            if number in self.ties.locked:
                moved = self._displacement(number, self.ties.locked[number] - reference)
                placement = compose(placement, moved)
                continue
            placement = compose(placement, self._displacement(number, -reference))
            last, child = number == first + count - 1 and at == ORIGIN, name
            if not last:
                child = self.elements.link_names.fresh(f"{name}.{self.elements.joints[number]}")
            joints.append(self._joint(number, parent, child, placement))
            if last:
                return joints, links
            links.append(Link(child, source=self.elements.joint_source(number)))
            parent, placement = child, AT_ORIGIN
        x, y, z = at
        if first + count - 1 in self.ties.locked:
            fixed = self.elements.joints[first + count - 1]
        else:
            fixed = self.elements.joint_names.fresh(f"{name}_fixed")
        origin = compose(placement, Pose((-x, -y, -z)))
        joints.append(Joint(fixed, "fixed", parent, name, origin, source=source))
        return joints, links

    def _displacement(self, joint: int, by: float) -> Pose:
        """The displacement of a joint at a position; the identity for a ball joint."""
        if not by:
            return AT_ORIGIN
        kind = _JOINTS[JOINT_KINDS[int(self.model.jnt_type[joint])]]
        return tidy(displacement(kind, vec(self.model.jnt_axis[joint]), (by,)))

    def _joint(self, number: int, parent: str, child: str, origin: Pose) -> Joint:
        """The joint with its properties; MJCF gives one value for all freedoms of a joint."""
        model, name = self.model, self.elements.joints[number]
        source = self.elements.joint_source(number)
        kind = JOINT_KINDS[int(model.jnt_type[number])]
        dof = int(model.jnt_dofadr[number])
        lower, upper = (float(x) for x in model.jnt_range[number])
        effort, *lower_effort = self.elements.custom_numbers(EFFORT_LIMIT + name) or [math.inf]
        weakest = lower_effort[0] if lower_effort else None
        if model.jnt_actfrclimited[number]:
            weakest, effort = both_ways(*map(float, model.jnt_actfrcrange[number]))
        velocity = self.elements.custom_number(VELOCITY_LIMIT + name)
        limits = Limits(velocity=velocity, effort=effort, effort_lower=weakest)
        if model.jnt_limited[number]:
            lower, upper = as_limit(lower, NO_LIMIT), as_limit(upper, NO_LIMIT)
            limits = replace(limits, lower=lower, upper=upper)
        elif lower >= upper and (lower or upper):
            message = (
                f"its range is {lower:.6g} to {upper:.6g}, which MuJoCo takes for none: the "
                "joint is unlimited; write the lower end first"
            )
            self.elements.warn_at(message, source, "range")
        bounded = math.isfinite(limits.lower) or math.isfinite(limits.upper)
        acting = read_arrays(model, "dof", dof, DYNAMICS)
        acting |= read_arrays(model, "dof", dof, ARMATURE)
        for quantity, added in self.actuators.added.items():
            acting[quantity] += added.get(number, 0.0)
        initial: float | None = None
        reference = self.elements.reference(number) if kind != "free" else 0.0
        if reference:
            initial = min(max(reference, limits.lower), limits.upper)
        if kind == "free" and acting["armature"]:
            message = "the armature of a free joint, an inertia that no body has, is not applied"
            self.elements.warn_at(message, source, "free armature")
            acting["armature"] = 0.0
        stiffness, rest = self.springs.of_joint(number)
        return Joint(
            name,
            "revolute" if kind == "hinge" and bounded else _JOINTS[kind],
            parent,
            child,
            origin,
            vec(model.jnt_axis[number]) if kind in ("slide", "hinge") else (1.0, 0.0, 0.0),
            limits,
            independent=marks_of(
                self.elements.compiled.custom.get(INDEPENDENT + name, "").split(),
                _FREEDOMS.get(kind, 1),
            ),
            initial=initial,
            source=source,
            stiffness=stiffness,
            reference=rest,
            motor=self.actuators.motors.noted(JOINT_MOTOR + name, source),
            **acting,
        )


# ---- the whole -----------------------------------------------------------------------------------


def read_mjcf(document: Document) -> Description:
    """Read an MJCF document; warnings are added to its issues.

    Raises :class:`DescriptionError` for what cannot be read, and ImportError without MuJoCo.
    """
    if document.root.tag != "mujoco":
        raise DescriptionError(
            f"this is no MJCF: its root element is <{document.root.tag}>, not <mujoco>",
            document.source(document.root, f"<{document.root.tag}>"),
        )
    elements = CompiledElements(compile_mjcf(document))
    description = _description(elements)
    document.issues.extend(elements.issues)
    return description


def _description(elements: CompiledElements) -> Description:
    model, root = elements.model, elements.compiled.root
    _check_finite(elements)
    joints: list[Joint] = []
    links: list[Link] = []
    ties = EqualityConstraints(elements)
    actuators = Actuators(elements, ties)
    springs = Springs(elements, ties)
    bodies = _Bodies(elements, ties, actuators, springs)
    for body in range(model.nbody):
        chain, between = bodies.chain(body)
        joints += chain
        links += between
        links.append(bodies.link(body))
    for frame, joint in bodies.frames():
        links.append(frame)
        joints.append(joint)
    ties.read()
    joints = [replace(joint, mimic=ties.mimics.get(joint.name)) for joint in joints]
    joints = _begun(joints, ties.loops)
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
        stepping=_stepping(elements),
    )


def _begun(joints: Sequence[Joint], loops: Sequence[Loop]) -> list[Joint]:
    """The joints with initial poses of those alone that loops move."""
    above, tied = {joint.child: joint for joint in joints}, set[str]()
    for loop in loops:
        for side in branches(above, loop.predecessor.link, loop.successor.link):
            tied |= {joint.name for joint in side}
    return [
        joint if joint.name in tied else replace(joint, initial_pose=AT_ORIGIN) for joint in joints
    ]


def _stepping(elements: CompiledElements) -> Stepping:
    """The time step, and whether the integrator is one of the implicit ones."""
    options = elements.compiled.options
    try:
        step = float(options.get("timestep", "0.002"))
    except ValueError:
        step = math.nan  # MuJoCo does not see it here, and refuses it
    implicit = options.get("integrator", "Euler").startswith("implicit")
    return Stepping(step, implicit)


def _check_finite(elements: CompiledElements) -> None:
    """Raise if numbers are so large that MuJoCo's arithmetic overflowed."""
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


def _warn_of_forces(elements: CompiledElements) -> None:
    """Warn of forces in the file that are neither kept nor applied."""
    model = elements.model
    for joint in range(model.njnt):
        if elements.has("dof_dampingpoly", int(model.jnt_dofadr[joint])):
            what = "of its damping the terms beyond the linear one are"
            elements.unapplied(what, elements.joint_source(joint), "joint damping")
    for tendon in range(model.ntendon):
        if model.tendon_limited[tendon]:
            low, high = model.tendon_range[tendon]
            _, source = elements.called("tendon", tendon)
            message = (
                f"the limits of its length, {low:.6g} to {high:.6g}, are not kept, and no function "
                "applies them; for joints that a gear or a belt ties, write an <equality> of the "
                "tendon in their place"
            )
            elements.warn_at(message, source, "limits of a tendon")
    for body in range(model.nbody):
        if model.body_gravcomp[body]:
            source = elements.body_source(body)
            elements.unapplied("its gravity compensation is", source, "gravity compensation")
    if model.opt.density or model.opt.viscosity:
        option = replace(elements.compiled.root.source, element="<option>")
        elements.unapplied("the fluid's forces are", option, "fluid")
