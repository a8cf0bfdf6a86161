"""MJCF to a description: what MuJoCo compiles, without what it softens.

MuJoCo resolves defaults, classes, angles, frames and inertias; :mod:`robomodel.parsers.mjcf_source`
hands it the file. Here its model becomes links and joints whose positions are MuJoCo's. There,
``ref`` is the reading of a joint where the file places its body, so the joint displaces the body by
q - ref; a joint whose ``pos`` is not the body's origin has a link of its own there; the joints of a
body act one after the other. Equality constraints, soft in MuJoCo, become loops and couplings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    Actuator,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    JointType,
    Limits,
    Link,
    Loop,
    LoopType,
    Mimic,
    Pose,
    Rows3,
    Shape,
    ShapeKind,
    Transmission,
    TransmittedJoint,
    Vec3,
)
from robomodel.errors import DescriptionError, Doubt, Source
from robomodel.model.joints import align
from robomodel.parsers.mjcf_source import Compiled, compile_mjcf
from robomodel.parsers.xml import Document
from robomodel.spatial import apply, matmul, minus, plus, transpose

WORLD = "world"
INDEPENDENT = "robomodel_independent:"
"""What a ``<custom>`` text begins with that says whether the joint named after it is independent:
true or false, or a word for each of its freedoms. MJCF has no word for it."""
VELOCITY_LIMIT = "robomodel_velocity_limit:"
"""What a ``<custom>`` number begins with that is the velocity limit of the joint named after it."""
EFFORT_LIMIT = "robomodel_effort_limit:"
"""The same of an effort limit that MuJoCo does not take: 0, or that of several freedoms."""
NO_LIMIT = 1e10  # MuJoCo's own largest number: what is beyond is no limit

_ZERO: Vec3 = (0.0, 0.0, 0.0)
_HIDDEN_GROUP = 3  # MuJoCo's viewer shows the geoms of groups 0, 1 and 2
_GREY = (0.5, 0.5, 0.5, 1.0)  # the colour of a geom that is given none
_ROUNDING = 1e-15
_NEAR = 1e-9
_JOINT_KINDS = ("free", "ball", "slide", "hinge")  # by mjtJoint
_EQUALITY_KINDS = ("connect", "weld", "joint", "tendon")  # by mjtEq
_SHAPES: dict[int, ShapeKind] = {  # by mjtGeom
    0: "plane",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}
_BODY_NUMBERS = ("mass", "inertia", "ipos", "iquat", "pos", "quat")
_NOTHING: tuple[float, ...] = ()  # what older versions of MuJoCo have of newer forces
_WRAP_JOINT, _WRAP_SITE = 1, 3  # mjtWrap
_DRIVES_JOINT, _DRIVES_TENDON = (0, 1), 3  # mjtTrn
_OBJECT_SITE = 6  # mjtObj

_Terms: TypeAlias = tuple[tuple[int, float], ...]  # joints and coefficients


def read_mjcf(document: Document) -> Description:
    """The description of an MJCF document; what is suspicious is added to its doubts.

    Raises :class:`DescriptionError` for what cannot be read, and ImportError without MuJoCo.
    """
    if document.root.tag != "mujoco":
        raise DescriptionError(
            f"this is no MJCF: its root element is <{document.root.tag}>, not <mujoco>",
            document.source(document.root, f"<{document.root.tag}>"),
        )
    reading = _Reading(compile_mjcf(document))
    description = reading.description()
    document.doubts.extend(reading.doubts)
    return description


@dataclass(frozen=True, slots=True)
class _Tie:
    """An equality constraint that ties something: its number, its kind, its name and its place."""

    number: int
    kind: str
    name: str
    source: Source


@dataclass
class _Reading:
    """One compiled model and the steps to its description."""

    compiled: Compiled
    doubts: list[Doubt] = field(default_factory=list)

    @cached_property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.compiled.model

    def description(self) -> Description:
        """Assemble."""
        root = self.compiled.root
        self._check_finite()
        joints: list[Joint] = []
        links: list[Link] = []
        for body in range(self.model.nbody):
            chain, between = self._chain(body)
            joints += chain
            links += between
            links.append(self._link(body))
        loops, couplings, mimics = self._equalities()
        joints = [replace(joint, mimic=mimics.get(joint.name)) for joint in joints]
        more_links, more_joints, more_couplings = self._rotors()
        self._doubt_forces()
        return Description(
            root.attributes.get("model") or "MuJoCo Model",
            (*links, *more_links),
            (*joints, *more_joints),
            tuple(loops),
            (*couplings, *more_couplings),
            tuple(self._transmissions()),
            replace(root.source, element="<mujoco>"),
            self._gravity(),
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
                    self._body_source(body),
                )
        if not all(np.isfinite(each).all() for each in (model.qpos0, model.eq_data[:, :10])):
            raise DescriptionError(
                "positions of joints or constraints overflow: numbers in the file are too large",
                self.compiled.root.source,
            )

    def _disabled(self, *flags: str) -> bool:
        """Whether the file's ``<flag>`` disables one of these."""
        import mujoco

        bits = (getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}").value for flag in flags)
        return any(self.model.opt.disableflags & bit for bit in bits)

    def _gravity(self) -> Vec3:
        return _ZERO if self._disabled("GRAVITY") else _vec(self.model.opt.gravity)

    # ---- names

    def _name(self, kind: str, number: int) -> str:
        """The compiled name; unnamed elements have one that the source file does not."""
        return str(getattr(self.model, kind)(number).name)

    @cached_property
    def bodies(self) -> list[str]:
        """The link of every body; unnamed ones are called ``body_3`` after their number."""
        given = [self.compiled.given(self._name("body", i)) for i in range(self.model.nbody)]
        taken = set(given)
        return [name or _unused(f"body_{i}", taken) for i, name in enumerate(given)]

    @cached_property
    def joints(self) -> list[str]:
        """Every joint's name; unnamed ones are called after body and kind: ``shin_hinge``."""
        given = [self.compiled.given(self._name("joint", i)) for i in range(self.model.njnt)]
        taken = set(given)
        return [
            name or _unused(f"{self.bodies[body]}_{_JOINT_KINDS[kind]}", taken)
            for name, body, kind in zip(
                given, self.model.jnt_bodyid, self.model.jnt_type, strict=True
            )
        ]

    @cached_property
    def taken_links(self) -> set[str]:
        """Names that no further link may have."""
        return set(self.bodies)

    @cached_property
    def taken_joints(self) -> set[str]:
        """Names that no further joint may have."""
        return set(self.joints)

    def _body_source(self, body: int) -> Source:
        name = self.bodies[body]
        if body == 0:
            return replace(self.compiled.root.source, element="<worldbody>")
        return self.compiled.source("body", self._name("body", body), f"body '{name}'")

    def _joint_source(self, joint: int) -> Source:
        label = f"joint '{self.joints[joint]}'"
        return self.compiled.source("joint", self._name("joint", joint), label)

    # ---- links

    def _link(self, body: int) -> Link:
        source, model = self._body_source(body), self.model
        inertial = None
        if body and model.body_mass[body] > 0.0 and body not in self.compiled.unweighed:
            x, y, z = _vec(model.body_inertia[body])
            inertial = Inertial(
                float(model.body_mass[body]),
                (x, 0.0, 0.0, y, 0.0, z),
                _pose(model.body_ipos[body], model.body_iquat[body]),
                source,
            )
        shapes = [shape for geom in self._geoms(body) for shape in self._shapes(geom)]
        return Link(self.bodies[body], inertial, source, tuple(shapes))

    def _geoms(self, body: int) -> range:
        first, count = int(self.model.body_geomadr[body]), int(self.model.body_geomnum[body])
        return range(first, first + count)

    def _shapes(self, geom: int) -> Iterator[Shape]:
        """What is seen and what touches: a geom that does both gives two shapes.

        A geom that touches nothing is only seen; one of a group that the viewer hides is not.
        """
        model, standing = self.model, self.compiled.standing
        name = self._name("geom", geom)
        kind = _SHAPES.get(int(standing.geom_type[geom]))
        if kind is None:
            return
        r, s, t = _vec(model.geom_size[geom])
        origin = _pose(standing.geom_pos[geom], standing.geom_quat[geom])
        size: tuple[float, ...] = {
            "sphere": (r,),
            "capsule": (r, 2 * s),
            "cylinder": (r, 2 * s),
            "ellipsoid": (r, s, t),
            "box": (2 * r, 2 * s, 2 * t),
        }.get(kind, ())
        file = None
        node = self.compiled.node("geom", name)
        if kind == "mesh":
            number = int(standing.geom_dataid[geom])
            origin = _compose(
                origin, _inverse(_pose(standing.mesh_pos[number], standing.mesh_quat[number]))
            )
            mesh = self.compiled.mesh(str(standing.mesh(number).name))
            if mesh is None or mesh.path is None or mesh.moved:
                return
            file, size = mesh.path, mesh.scale
        elif node is not None and "mesh" in node.attributes and model is standing:
            return  # fitted to a mesh that was not read
        material = int(model.geom_matid[geom])
        colour = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        rgba = _four(colour)
        touches = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
        seen = not touches or model.geom_group[geom] < _HIDDEN_GROUP
        given = self.compiled.given(name)
        source = self.compiled.source("geom", name, f"geom '{given}'" if given else "<geom>")
        roles: list[Literal["visual", "collision"]] = []
        roles += ["visual"] if seen else []
        roles += ["collision"] if touches else []
        for role in roles:
            yield Shape(
                role, kind, size, origin, file, given, None if rgba == _GREY else rgba, source
            )

    # ---- joints

    def _chain(self, body: int) -> tuple[list[Joint], list[Link]]:
        """The joints that lead to a body, and the massless links between them.

        The body's frame is carried along: each joint turns it about a point p of it, so a joint's
        own frame stands at p, and what follows starts from there, at -p.
        """
        if body == 0:
            return [], []
        model = self.model
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        source, name = self._body_source(body), self.bodies[body]
        parent = self.bodies[int(model.body_parentid[body])]
        if model.body_mocapid[body] >= 0:
            self.doubts.append(
                Doubt("is moved by hand (mocap); it is read as fixed", source, "mocap")
            )
        placement, at = _pose(model.body_pos[body], model.body_quat[body]), _ZERO
        joints: list[Joint] = []
        links: list[Link] = []
        for number in range(first, first + count):
            kind = _JOINT_KINDS[int(model.jnt_type[number])]
            if kind == "free":
                return [self._joint(number, parent, name, AT_ORIGIN)], []
            point = at if kind == "slide" else _vec(model.jnt_pos[number])
            placement, at = _compose(placement, Pose(minus(point, at))), point
            reference = self._reference(number)
            if number in self.locked:
                moved = self._displacement(number, self.locked[number] - reference)
                placement = _compose(placement, moved)
                continue
            placement = _compose(placement, self._displacement(number, -reference))
            last = number == first + count - 1 and at == _ZERO
            child = name if last else _unused(f"{name}.{self.joints[number]}", self.taken_links)
            joints.append(self._joint(number, parent, child, placement))
            if last:
                return joints, links
            links.append(Link(child, source=self._joint_source(number)))
            parent, placement = child, AT_ORIGIN
        x, y, z = at
        fixed = _unused(f"{name}_fixed", self.taken_joints)
        origin = _compose(placement, Pose((-x, -y, -z)))
        joints.append(Joint(fixed, "fixed", parent, name, origin, source=source))
        return joints, links

    def _reference(self, joint: int) -> float:
        """The position at which the joint leaves its body where the file places it (``ref``)."""
        if _JOINT_KINDS[int(self.model.jnt_type[joint])] == "ball":
            return 0.0
        return float(self.model.qpos0[self.model.jnt_qposadr[joint]])

    def _displacement(self, joint: int, by: float) -> Pose:
        """How a joint displaces by so much; a ball joint is never displaced."""
        axis = _vec(self.model.jnt_axis[joint])
        if not by:
            return AT_ORIGIN
        if _JOINT_KINDS[int(self.model.jnt_type[joint])] == "slide":
            x, y, z = axis
            return Pose((by * x, by * y, by * z))
        s = math.sin(by / 2)
        return Pose(_ZERO, _rotation((math.cos(by / 2), *(s * a for a in axis))))

    def _joint(self, number: int, parent: str, child: str, origin: Pose) -> Joint:
        """The joint with its properties; of its freedoms MJCF has all alike."""
        model, name, source = self.model, self.joints[number], self._joint_source(number)
        kind = _JOINT_KINDS[int(model.jnt_type[number])]
        dof = int(model.jnt_dofadr[number])
        lower, upper = (float(x) for x in model.jnt_range[number])
        effort = self._custom_number(EFFORT_LIMIT + name)
        if model.jnt_actfrclimited[number]:
            effort = float(max(abs(model.jnt_actfrcrange[number])))
        velocity = self._custom_number(VELOCITY_LIMIT + name)
        limits = Limits(velocity=velocity, effort=effort)
        if model.jnt_limited[number]:
            limits = Limits(_limit(lower), _limit(upper), velocity, effort)
        bounded = math.isfinite(limits.lower) or math.isfinite(limits.upper)
        armature = float(model.dof_armature[dof]) + self._actuator_armature.get(number, 0.0)
        initial: float | None = None
        reference = self._reference(number) if kind != "free" else 0.0
        if reference:
            initial = min(max(reference, limits.lower), limits.upper)
        if kind == "free" and armature:
            self.doubts.append(
                Doubt(
                    "the armature of a free joint, an inertia that no body has, is not applied",
                    source,
                    "free armature",
                )
            )
            armature = 0.0
        types: dict[str, JointType] = {
            "free": "floating",
            "ball": "spherical",
            "slide": "prismatic",
            "hinge": "revolute" if bounded else "continuous",
        }
        return Joint(
            name,
            types[kind],
            parent,
            child,
            origin,
            _vec(model.jnt_axis[number]) if kind in ("slide", "hinge") else (1.0, 0.0, 0.0),
            limits,
            independent=self._independent(name, kind),
            damping=float(model.dof_damping[dof]),
            friction=float(model.dof_frictionloss[dof]),
            initial=initial,
            source=source,
            armature=armature,
        )

    def _custom_number(self, key: str) -> float:
        try:
            return float(self.compiled.custom.get(key, "inf"))
        except ValueError:
            return math.inf

    def _independent(self, name: str, kind: str) -> bool | tuple[bool, ...] | None:
        """What the file's ``<custom>`` says, if it speaks of this joint."""
        words = self.compiled.custom.get(INDEPENDENT + name, "").split()
        if not words or not {"true", "false"}.issuperset(words):
            return None
        marks = tuple(word == "true" for word in words)
        freedoms = {"free": 6, "ball": 3}.get(kind, 1)
        return marks[0] if len(marks) == 1 else marks if len(marks) == freedoms else None

    # ---- equality constraints

    @cached_property
    def ties(self) -> list[_Tie]:
        """The equality constraints that are active."""
        if self._disabled("EQUALITY", "CONSTRAINT"):
            return []
        ties, taken = [], set[str]()
        for number in range(self.model.neq):
            if not self.model.eq_active0[number]:
                continue
            compiled = self._name("equality", number)
            kind = int(self.model.eq_type[number])
            tag = _EQUALITY_KINDS[kind] if kind < len(_EQUALITY_KINDS) else "equality"
            name = _unused(self.compiled.given(compiled) or f"{tag}_{number}", taken)
            source = self.compiled.source("equality", compiled, f"{tag} '{name}'")
            if kind >= len(_EQUALITY_KINDS):
                raise DescriptionError("equality constraints of this kind are not read", source)
            ties.append(_Tie(number, tag, name, source))
        return ties

    @cached_property
    def locked(self) -> dict[int, float]:
        """Joints that a constraint of nothing else holds in one position: they are fixed there."""
        held: dict[int, float] = {}
        used: list[int] = []
        for tie in self.ties:
            if tie.kind == "joint":
                first, second = self._ends(tie)
                constant, slope = self._line(tie)
                if second < 0 or not slope:
                    held[first] = self._reference(first) + constant
                    used.append(first)
                else:
                    used += [first, second]
            elif tie.kind == "tendon":
                for tendon in self._ends(tie):
                    used += [joint for joint, _ in self._terms(tendon) or ()] if tendon >= 0 else []
        return {joint: position for joint, position in held.items() if used.count(joint) == 1}

    def _ends(self, tie: _Tie) -> tuple[int, int]:
        return int(self.model.eq_obj1id[tie.number]), int(self.model.eq_obj2id[tie.number])

    def _line(self, tie: _Tie) -> tuple[float, float]:
        """The constant and the slope of ``polycoef``; an error if it is no line."""
        constant, slope, *higher = (float(x) for x in self.model.eq_data[tie.number, :5])
        if any(higher) and self._ends(tie)[1] >= 0:
            raise DescriptionError(
                f"polycoef has the terms {' '.join(f'{x:g}' for x in higher)} beyond the linear "
                "one; only linear couplings are read, so write the line that meets it best, or "
                "deactivate it",
                tie.source,
            )
        return constant, slope

    def _equalities(self) -> tuple[list[Loop], list[JointCoupling], dict[str, Mimic]]:
        """Loops, couplings, and mimics by the name of the joint that follows another."""
        loops: list[Loop] = []
        couplings: list[JointCoupling] = []
        mimics: dict[str, Mimic] = {}
        for tie in self.ties:
            if tie.kind in ("connect", "weld"):
                loops += self._loop(tie)
            elif tie.kind == "tendon":
                for found in self._tendons(tie):
                    if isinstance(found, Loop):
                        loops.append(found)
                    else:
                        couplings.append(found)
            else:
                self._couple(tie, couplings, mimics)
        return _hinged(loops), couplings, mimics

    def _couple(self, tie: _Tie, couplings: list[JointCoupling], mimics: dict[str, Mimic]) -> None:
        """y - y0 = a0 + a1 (x - x0) of two joints: y mimics x, unless it follows another one."""
        first, second = self._ends(tie)
        constant, slope = self._line(tie)
        y = self.joints[first]
        offset = self._reference(first) + constant
        if first in self.locked:
            return
        if second < 0 or not slope:
            couplings.append(JointCoupling(tie.name, ((y, 1.0),), offset, tie.source))
            return
        x = self.joints[second]
        offset -= slope * self._reference(second)
        leader = x
        while leader in mimics:
            leader = mimics[leader].joint
        if y in mimics or leader == y:
            couplings.append(JointCoupling(tie.name, ((y, 1.0), (x, -slope)), offset, tie.source))
        else:
            mimics[y] = Mimic(x, slope, offset)

    def _loop(self, tie: _Tie) -> list[Loop]:
        """``connect`` and ``weld``, between bodies or sites."""
        model, data = self.model, self.model.eq_data[tie.number]
        ends = self._ends(tie)
        kind: LoopType = "spherical" if tie.kind == "connect" else "fixed"
        if tie.kind == "weld" and not data[10]:
            kind = "spherical"  # a torquescale of zero leaves the rotation free
        if int(model.eq_objtype[tie.number]) == _OBJECT_SITE:
            bodies = [int(model.site_bodyid[site]) for site in ends]
            poses = [_pose(model.site_pos[site], model.site_quat[site]) for site in ends]
        elif tie.kind == "connect":
            bodies = list(ends)
            poses = [Pose(_vec(data[:3])), Pose(_vec(data[3:6]))]
        else:
            bodies = list(ends)
            poses = [_pose(data[3:6], data[6:10]), Pose(_vec(data[:3]))]
        return self._between(tie, kind, bodies, poses)

    def _between(
        self,
        tie: _Tie,
        kind: LoopType,
        bodies: Sequence[int],
        poses: Sequence[Pose],
        length: float | None = None,
    ) -> list[Loop]:
        """A loop between two bodies, unless it ties nothing or what is moved by hand."""
        if any(self.model.body_mocapid[body] >= 0 for body in bodies):
            self.doubts.append(
                Doubt(
                    "ties to a body that is moved by hand (mocap); it is left out",
                    tie.source,
                    "tie to mocap",
                )
            )
            return []
        one, other = (int(self.model.body_weldid[body]) for body in bodies)
        if one == other:
            self.doubts.append(
                Doubt("no joint separates its ends, so it ties nothing", tie.source, "no tie")
            )
            return []
        anchors = [
            Anchor(self.bodies[body], pose) for body, pose in zip(bodies, poses, strict=True)
        ]
        return [Loop(tie.name, kind, anchors[0], anchors[1], length=length, source=tie.source)]

    # ---- tendons

    def _wraps(self, tendon: int) -> range:
        first, count = int(self.model.tendon_adr[tendon]), int(self.model.tendon_num[tendon])
        return range(first, first + count)

    def _terms(self, tendon: int) -> _Terms | None:
        """The joints and coefficients (none is 0) of a fixed tendon; None for a spatial one."""
        terms: dict[int, float] = {}
        for wrap in self._wraps(tendon):
            if int(self.model.wrap_type[wrap]) != _WRAP_JOINT:
                return None
            joint = int(self.model.wrap_objid[wrap])
            terms[joint] = terms.get(joint, 0.0) + float(self.model.wrap_prm[wrap])
        return tuple((joint, coefficient) for joint, coefficient in terms.items() if coefficient)

    def _tendons(self, tie: _Tie) -> list[Loop] | list[JointCoupling]:
        """L1 - L1(0) = a0 + a1 (L2 - L2(0)) of fixed tendons, or a constant L1 of two sites."""
        model = self.model
        first, second = self._ends(tie)
        constant, slope = self._line(tie)
        offset = float(model.tendon_length0[first]) + constant
        own = self._terms(first)
        terms = dict(own or ())
        if second >= 0 and slope:
            others = self._terms(second)
            if others is None or own is None:
                raise DescriptionError(
                    "relates a spatial tendon to another one, which is not read; a spatial tendon "
                    "can keep its length (one tendon, straight between two sites), and fixed ones "
                    "can be related",
                    tie.source,
                )
            offset -= slope * float(model.tendon_length0[second])
            for joint, coefficient in others:
                terms[joint] = terms.get(joint, 0.0) - slope * coefficient
        if own is None:
            return self._rod(tie, first, offset)
        relation = tuple((self.joints[joint], k) for joint, k in terms.items() if k)
        if not relation:
            self.doubts.append(
                Doubt("the coefficients of its joints are 0, so it ties nothing", tie.source)
            )
            return []
        return [JointCoupling(tie.name, relation, offset, tie.source)]

    def _rod(self, tie: _Tie, tendon: int, length: float) -> list[Loop]:
        wraps = self._wraps(tendon)
        if [int(self.model.wrap_type[wrap]) for wrap in wraps] != [_WRAP_SITE, _WRAP_SITE]:
            raise DescriptionError(
                "holds the length of a tendon that is not straight between two sites; only those "
                "are read, as rods",
                tie.source,
            )
        if length <= 0.0:
            raise DescriptionError(
                f"holds the length of its tendon at {length:g}; that of a rod is positive, and of "
                "two points that meet <connect> tells",
                tie.source,
            )
        sites = [int(self.model.wrap_objid[wrap]) for wrap in wraps]
        bodies = [int(self.model.site_bodyid[site]) for site in sites]
        poses = [Pose(_vec(self.model.site_pos[site])) for site in sites]
        return self._between(tie, "rod", bodies, poses, length)

    # ---- armature of actuators and tendons

    def _drives(self, actuator: int) -> tuple[_Terms | None, float]:
        """The joints that an actuator moves and their coefficients, and its gear."""
        model = self.model
        kind, driven = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        gear = float(model.actuator_gear[actuator, 0])
        if kind in _DRIVES_JOINT:
            return ((driven, 1.0),), gear
        return self._terms(driven) if kind == _DRIVES_TENDON else None, gear

    def _actuator_name(self, actuator: int) -> tuple[str, Source]:
        compiled = self._name("actuator", actuator)
        node = self.compiled.node("actuator", compiled)
        tag = node.tag if node else "actuator"
        name = self.compiled.given(compiled) or f"{tag}_{actuator}"
        return name, self.compiled.source("actuator", compiled, f"{tag} '{name}'")

    @cached_property
    def _spinning(self) -> list[tuple[str, Source, _Terms, float]]:
        """Inertias that tendons and their actuators have: name, place, joints' terms, inertia."""
        found: list[tuple[str, Source, _Terms | None, float]] = []
        model = self.model
        for tendon, armature in enumerate(getattr(model, "tendon_armature", ())):
            if armature:
                compiled = self._name("tendon", tendon)
                name = self.compiled.given(compiled) or f"tendon_{tendon}"
                source = self.compiled.source("tendon", compiled, f"tendon '{name}'")
                found.append((name, source, self._terms(tendon), float(armature)))
        for actuator, armature in enumerate(getattr(model, "actuator_armature", ())):
            if armature:
                name, source = self._actuator_name(actuator)
                terms, gear = self._drives(actuator)
                found.append((name, source, terms, float(armature) * gear**2))
        usable = []
        for name, source, terms, inertia in found:
            if terms and all(int(model.jnt_type[joint]) >= 2 for joint, _ in terms):
                usable.append((name, source, terms, inertia))
            else:
                self.doubts.append(
                    Doubt(
                        "its armature is not applied: that is done for hinges, slides and fixed "
                        "tendons",
                        source,
                        "armature",
                    )
                )
        return usable

    @cached_property
    def _actuator_armature(self) -> dict[int, float]:
        """What actuators of single joints add to the armature of each."""
        added: dict[int, float] = {}
        for _, _, terms, inertia in self._spinning:
            if len(terms) == 1:
                (joint, coefficient), *_ = terms
                added[joint] = added.get(joint, 0.0) + inertia * coefficient**2
        return added

    def _rotors(self) -> tuple[list[Link], list[Joint], list[JointCoupling]]:
        """The armature of a tendon of several joints: a rotor on the world turns as it moves."""
        links: list[Link] = []
        joints: list[Joint] = []
        couplings: list[JointCoupling] = []
        for tendon, source, terms, inertia in self._spinning:
            if len(terms) == 1:
                continue
            name = _unused(f"{tendon}_rotor", self.taken_links | self.taken_joints)
            self.taken_links.add(name)
            self.taken_joints.add(name)
            links.append(
                Link(name, Inertial(0.0, (inertia, 0.0, 0.0, 0.0, 0.0, 0.0), source=source), source)
            )
            joints.append(Joint(name, "continuous", WORLD, name, independent=False, source=source))
            relation = ((name, 1.0), *((self.joints[joint], -k) for joint, k in terms))
            couplings.append(JointCoupling(name, relation, 0.0, source))
        return links, joints, couplings

    # ---- what is kept only, or not at all

    def _transmissions(self) -> Iterator[Transmission]:
        """Every actuator, with the joints of one freedom that it moves, if it moves such."""
        for number in range(self.model.actuator_trnid.shape[0]):
            name, source = self._actuator_name(number)
            terms, gear = self._drives(number)
            node = self.compiled.node("actuator", self._name("actuator", number))
            driven = [joint for joint, _ in terms or ()]
            if not gear or any(int(self.model.jnt_type[joint]) < 2 for joint in driven):
                terms = None  # of ball joints and sites the gear is a vector
            ends = [
                TransmittedJoint(self.joints[joint], reduction=k)
                for joint, k in terms or ()
                if joint not in self.locked
            ]
            yield Transmission(
                name,
                node.tag if node else "",
                tuple(ends),
                (Actuator(name, reduction=gear if terms else None),),
                source,
            )

    def _doubt_forces(self) -> None:
        """Note forces of the file that no function applies and that are not kept."""
        model = self.model
        for joint in range(model.njnt):
            dof = int(model.jnt_dofadr[joint])
            springs = [model.jnt_stiffness[joint]]
            springs += list(getattr(model, "jnt_stiffnesspoly", _NOTHING)[joint : joint + 1])
            if any(_any(spring) for spring in springs):
                self._unapplied("its spring is", self._joint_source(joint), "joint spring")
            if _any(getattr(model, "dof_dampingpoly", _NOTHING)[dof : dof + 1]):
                self._unapplied(
                    "of its damping the terms beyond the linear one are",
                    self._joint_source(joint),
                    "joint damping",
                )
        for tendon in range(model.ntendon):
            forces = ("stiffness", "damping", "frictionloss", "stiffnesspoly", "dampingpoly")
            if any(
                _any(getattr(model, f"tendon_{name}", _NOTHING)[tendon : tendon + 1])
                for name in forces
            ):
                compiled = self._name("tendon", tendon)
                source = self.compiled.source(
                    "tendon", compiled, f"tendon '{self.compiled.given(compiled) or tendon}'"
                )
                self._unapplied("its stiffness, damping and friction are", source, "tendon force")
        for body in range(model.nbody):
            if model.body_gravcomp[body]:
                self._unapplied(
                    "its gravity compensation is", self._body_source(body), "gravity compensation"
                )
        if model.opt.density or model.opt.viscosity:
            self._unapplied(
                "the fluid's forces are",
                replace(self.compiled.root.source, element="<option>"),
                "fluid",
            )

    def _unapplied(self, what: str, source: Source, kind: str) -> None:
        self.doubts.append(Doubt(f"{what} not kept, and no function applies it", source, kind))


def _any(values: Any) -> bool:
    """Whether a number or an array is nonzero anywhere."""
    import numpy as np

    return bool(np.any(values))


def _unused(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; it is taken then."""
    unused, n = name, 2
    while unused in taken:
        unused, n = f"{name}_{n}", n + 1
    taken.add(unused)
    return unused


def _limit(value: float) -> float:
    return value if abs(value) < NO_LIMIT else math.copysign(math.inf, value)


def _hinged(loops: Sequence[Loop]) -> list[Loop]:
    """The loops, two points at which the same two links meet being told as the hinge they are."""
    found: list[Loop] = []
    for loop in loops:
        links = loop.predecessor.link, loop.successor.link
        for n, other in enumerate(found if loop.type == "spherical" else ()):
            if other.type == "spherical" and links == (
                other.predecessor.link,
                other.successor.link,
            ):
                hinge = _hinge(other, loop)
                if hinge is not None:
                    found[n] = hinge
                    break
        else:
            found.append(loop)
    return found


def _hinge(first: Loop, second: Loop) -> Loop | None:
    """The hinge about the line through the points of two loops; None if they are not so placed."""
    ends = (first.predecessor.origin, first.successor.origin)
    others = (second.predecessor.origin, second.successor.origin)
    arms = [minus(b.xyz, a.xyz) for a, b in zip(ends, others, strict=True)]
    length = math.hypot(*arms[0])
    if length < _NEAR or abs(length - math.hypot(*arms[1])) > _NEAR * length:
        return None
    axes = [
        apply(transpose(end.rotation), (x / length, y / length, z / length))
        for end, (x, y, z) in zip(ends, arms, strict=True)
    ]
    if math.dist(*axes) <= _NEAR:  # an axis of the sites that are there
        axis = _vec(_clean(a) for a in axes[0])
        return replace(first, type="revolute", axis=axis)
    columns = [align(axis) for axis in axes]
    anchors = []
    for end, (k, images), old in zip(
        ends, columns, (first.predecessor, first.successor), strict=True
    ):
        order = [transpose(images)[(k + n) % 3] for n in range(3)]
        turned = transpose((order[0], order[1], order[2]))
        anchors.append(replace(old, origin=Pose(end.xyz, matmul(end.rotation, turned))))
    return replace(first, type="revolute", predecessor=anchors[0], successor=anchors[1])


# ---- poses ---------------------------------------------------------------------------------------


def _vec(values: Any) -> Vec3:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def _four(values: Any) -> tuple[float, float, float, float]:
    a, b, c, d = (round(float(value), 7) for value in values)  # MuJoCo keeps single precision
    return a, b, c, d


def _pose(position: Any, quaternion: Any) -> Pose:
    return Pose(_vec(position), _rotation(tuple(float(x) for x in quaternion)))


def _rotation(quaternion: Sequence[float]) -> Rows3:
    """The rotation (rows) of a quaternion w, x, y, z, rid of what rounding left of 0 and 1."""
    w, x, y, z = quaternion
    if not (x or y or z):
        return IDENTITY
    k = 2.0 / (w * w + x * x + y * y + z * z)
    rows = (
        (1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y)),
        (k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x)),
        (k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y)),
    )
    a, b, c = ((_clean(p), _clean(q), _clean(r)) for p, q, r in rows)
    return a, b, c


def _clean(value: float) -> float:
    nearest = float(round(value))
    return nearest + 0.0 if abs(value - nearest) <= _ROUNDING else value


def _compose(outer: Pose, inner: Pose) -> Pose:
    if inner.rotation == IDENTITY == outer.rotation:
        return Pose(plus(outer.xyz, inner.xyz))
    return Pose(
        plus(apply(outer.rotation, inner.xyz), outer.xyz), matmul(outer.rotation, inner.rotation)
    )


def _inverse(pose: Pose) -> Pose:
    back = transpose(pose.rotation)
    x, y, z = apply(back, pose.xyz)
    return Pose((0.0 - x, 0.0 - y, 0.0 - z), back)
