"""A description as USD: rigid bodies, joints and shapes, each prim with its URDF+ element.

Links are prims below the robot's prim, joints and loops prims in one scope each. Poses are of a
closed configuration; positions of joints count from their frames. What a prim's own attributes
cannot express, or only in single precision, is in its URDF+ element
(:mod:`robomodel.parsers.usd.schema`).
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lxml import etree

from robomodel.description import (
    AT_ORIGIN,
    GRAVITY,
    ONE_DOF,
    Anchor,
    CouplingElement,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Link,
    Loop,
    PolynomialCoupling,
    Pose,
    Rows3,
    Shape,
    Vec3,
)
from robomodel.description.poses import (
    Positions,
    align,
    compose,
    link_poses,
    relative,
    rows3,
    second_axis,
    unit,
)
from robomodel.description.shapes import load_mesh
from robomodel.errors import DescriptionError, Issue, MissingPackageError, warn_of_all
from robomodel.parsers.urdf.joints import add_coupling, add_joint, add_loop
from robomodel.parsers.urdf.links import add_link
from robomodel.parsers.usd.schema import (
    DEGREE,
    DIGEST,
    DRIVE,
    ELEMENT,
    FREEDOMS,
    GROUND,
    JOINT,
    JOINTS,
    LINKS,
    MESH,
    NAME,
    SCALE,
    WORDS,
    StageUnits,
    digest,
    quaternion,
)
from robomodel.parsers.usd.stages import pxr
from robomodel.spatial import matmul, transpose
from robomodel.vocabulary.frames import path_terms
from robomodel.vocabulary.inertias import NEARLY_NOTHING, physical_inertias, principal
from robomodel.vocabulary.motors import add_transmission
from robomodel.vocabulary.schema import Names, add, numbers
from robomodel.vocabulary.springs import add_spring, evened, lost_law, rest_length
from robomodel.vocabulary.xml import Element

_LOCKED = (1.0, -1.0)  # limits of a locked freedom: low above high
_TURNING = ("revolute", "continuous")


def to_usd(
    description: Description, positions: Positions, originals: Mapping[str, Shape]
) -> tuple[str, list[str]]:
    """The text of a USD file of the description, and messages on what is left out.

    ``positions`` are nonzero positions of joints in the configuration that the file shows;
    ``originals`` are the shapes before their meshes were placed, by the path that is written.
    """
    pxr(description.source)
    writer = _Writer(description, positions, originals)
    writer.write()
    warn_of_all(writer.issues, strict=False)
    return str(writer.stage.GetRootLayer().ExportToString()), writer.lost


def save(text: str, path: str) -> None:
    """Write the text of a USD file to a path, in binary unless it ends in ``.usda``.

    Raises OSError as open() does if the file cannot be written.
    """
    from pxr import Sdf, Tf, UsdUtils

    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{os.urandom(4).hex()}.{name}")
    inner = os.path.splitext(beside)[0] + ".usdc"
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text)
    with open(beside, "xb"):
        pass  # Python's error, if one, names the reason, and USD's the lines of its source
    try:
        if name.lower().endswith(".usdz"):
            layer.Export(inner)
            UsdUtils.CreateNewUsdzPackage(inner, beside)
        else:
            layer.Export(beside)
        os.replace(beside, path)
    except Tf.ErrorException as error:
        raise OSError(errno.EIO, "USD cannot write this", path) from error
    finally:
        for each in (beside, inner):
            if os.path.exists(each):
                os.remove(each)


@dataclass
class _Writer:
    """Writes a stage; keeps the prims of links and joints by name."""

    description: Description
    positions: Positions
    originals: Mapping[str, Shape]
    lost: list[str] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    links: dict[str, Any] = field(default_factory=dict)
    joints: dict[str, Any] = field(default_factory=dict)
    names: dict[str, Names] = field(default_factory=dict)
    materials: dict[tuple[float | None, float | None], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.names["/"] = Names(("PhysicsScene",))
        self.root = self.define("/", self.description.name, "Xform")
        self.stage.SetDefaultPrim(self.root)
        self.poses = link_poses(self.description, self.positions)
        self.moved_by = {joint.child: joint for joint in self.description.joints}
        self.moved_as = {joint.name: joint for joint in self.description.joints}

    def write(self) -> None:
        """Write all."""
        from pxr import Sdf, UsdPhysics

        description = self.description
        UsdPhysics.ArticulationRootAPI.Apply(self.root)
        self.set_element(self.root, _element("robot", name=description.name))
        for name, records in ((LINKS, description.links), (JOINTS, description.joints)):
            kind = Sdf.ValueTypeNames.StringArray
            self.root.CreateAttribute(name, kind).Set([each.name for each in records])
        self._gravity()
        physical = {link.name: link for link in physical_inertias(description).links}
        links = {link.name: link for link in description.links}
        waiting = [link.name for link in description.links if link.name not in self.moved_by]
        scopes = [self.define(str(self.root.GetPath()), name, "Scope") for name in _SCOPES]
        self._link(links[waiting[0]], physical[waiting[0]])
        below: dict[str, list[Joint]] = {}
        for joint in description.joints:
            below.setdefault(joint.parent, []).append(joint)
        for name in waiting:
            for joint in below.get(name, ()):
                self._link(links[joint.child], physical[joint.child])
                waiting.append(joint.child)
        for joint in description.joints:
            self._joint(joint, scopes[0])
        for joint in description.joints:
            if (mimic := joint.mimic) is not None and joint.type in ONE_DOF:
                self._mimic(joint, self.moved_as[mimic.joint], mimic.multiplier, mimic.offset)
        for loop in description.loops:
            self._loop(loop, scopes[1])
        for coupling in description.couplings:
            self._mimic(*_pair(coupling, self.moved_by, self.moved_as))
        others = [
            *((coupling.name, add_coupling, coupling) for coupling in description.couplings),
            *((spring.name, add_spring, spring) for spring in description.springs),
        ]
        for name, write, record in others:
            self.set_element(
                self.define(str(scopes[2].GetPath()), name, ""), _written(write, record)
            )
        for transmission in description.transmissions:
            prim = self.define(str(scopes[2].GetPath()), transmission.name, "")
            self.set_element(prim, _written(add_transmission, transmission, self.lost))
        for prim in (*self.joints.values(), *self.links.values()):
            self.sign(prim)

    # ---- prims

    def define(self, parent: str, name: str, kind: str) -> Any:
        """Define a prim; its name is made valid for USD, with the original as display name."""
        from pxr import Tf

        label = Tf.MakeValidIdentifier(name) if name else "unnamed"
        label = self.names.setdefault(parent, Names()).fresh(label)
        prim = self.stage.DefinePrim(f"{parent.rstrip('/')}/{label}", kind)
        if name and label != name:
            prim.SetMetadata("displayName", name)
        return prim

    def set_element(self, prim: Any, element: Element, name: str = ELEMENT) -> None:
        """Attach the URDF+ element to a prim."""
        from pxr import Sdf

        etree.cleanup_namespaces(element)
        text = etree.tostring(element, encoding="unicode")
        prim.CreateAttribute(name, Sdf.ValueTypeNames.String).Set(text)
        self.sign(prim)

    def sign(self, prim: Any) -> None:
        """Store a digest of a prim's attributes beside its element."""
        from pxr import Sdf

        if prim.GetAttribute(ELEMENT):
            prim.CreateAttribute(DIGEST, Sdf.ValueTypeNames.String).Set(digest(prim))

    def _place(self, prim: Any, pose: Pose, scale: Vec3 | None = None) -> None:
        """Set the pose of a prim in its parent."""
        from pxr import Gf, UsdGeom

        form, double = UsdGeom.Xformable(prim), UsdGeom.XformOp.PrecisionDouble
        form.AddTranslateOp(double).Set(Gf.Vec3d(*pose.xyz))
        form.AddOrientOp(double).Set(quaternion(pose, Gf.Quatd))
        if scale is not None:
            form.AddScaleOp(double).Set(Gf.Vec3d(*scale))

    def _gravity(self) -> None:
        from pxr import Gf, UsdPhysics

        gravity = self.description.gravity or GRAVITY
        scene = UsdPhysics.Scene.Define(self.stage, "/PhysicsScene")
        size = math.hypot(*gravity)
        direction = Gf.Vec3f(*(x / size for x in gravity)) if size else Gf.Vec3f(0, 0, -1)
        scene.CreateGravityDirectionAttr(direction)
        scene.CreateGravityMagnitudeAttr(size)
        self.set_element(scene.GetPrim(), _element("gravity", xyz=numbers(gravity)))

    # ---- links

    def _link(self, link: Link, physical: Link) -> None:
        """Write a rigid body; a massless link that is fixed or carries free ones has none."""
        from pxr import UsdPhysics

        joint = self.moved_by.get(link.name)
        kinds = {each.type for each in self.description.joints if each.parent == link.name}
        still = "floating" in kinds if joint is None else joint.type == "fixed"
        bare = link.inertial is None and still
        holder, pose = self.root, self.poses[link.name]
        if bare and joint is not None:
            holder = self.links[joint.parent]
            pose = relative(self.poses[joint.parent], pose)
        prim = self.define(str(holder.GetPath()), link.name, "Xform")
        self.links[link.name] = prim
        self._place(prim, pose)
        if not bare:
            UsdPhysics.RigidBodyAPI.Apply(prim)
            self._mass(UsdPhysics.MassAPI.Apply(prim), physical.inertial)
        self.set_element(prim, _written(add_link, replace(link, shapes=()), {}))
        for shape in link.shapes:
            self._shape(prim, shape)
        if joint is None and not bare:
            scope = str(self.root.GetPath().AppendChild(_SCOPES[0]))
            hold = UsdPhysics.FixedJoint(
                self.define(scope, f"{link.name}_to_world", "PhysicsFixedJoint")
            )
            hold.CreateBody1Rel().SetTargets([prim.GetPath()])
            from pxr import Sdf

            hold.GetPrim().CreateAttribute(GROUND, Sdf.ValueTypeNames.Bool).Set(True)

    def _mass(self, api: Any, inertial: Inertial | None) -> None:
        """Write the mass of a body; no number may be zero, as USD would compute it."""
        from pxr import Gf

        if inertial is None:
            inertial = Inertial(NEARLY_NOTHING, (0.0,) * 6)
        moments, axes = principal(inertial)
        turn: Rows3 = matmul(inertial.origin.rotation, rows3(axes.tolist()))
        xx, xy, xz, yy, yz, zz = inertial.inertia
        if not (xy or xz or yz):
            moments, turn = (xx, yy, zz), inertial.origin.rotation
        api.CreateMassAttr(max(inertial.mass, NEARLY_NOTHING))
        api.CreateCenterOfMassAttr(Gf.Vec3f(*inertial.origin.xyz))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(*(max(x, NEARLY_NOTHING) for x in moments)))
        api.CreatePrincipalAxesAttr(quaternion(Pose(rotation=turn), Gf.Quatf))

    # ---- shapes

    def _shape(self, link: Any, shape: Shape) -> None:
        """Write a shape of a link as USD's type of it."""
        from pxr import Sdf, UsdGeom, UsdPhysics

        kind = {"box": "Cube", "ellipsoid": "Sphere"}.get(shape.kind, shape.kind.title())
        name = shape.name or shape.role
        prim = self.define(str(link.GetPath()), name, kind)
        if shape.name:
            prim.CreateAttribute(NAME, Sdf.ValueTypeNames.String).Set(shape.name)
        scale: Vec3 | None = None
        match shape.kind:
            case "box" | "ellipsoid":
                x, y, z = (max(each, NEARLY_NOTHING) for each in shape.size)  # also if it is flat
                scale = x, y, z
                prim.GetAttribute("size" if shape.kind == "box" else "radius").Set(1.0)
            case "sphere":
                prim.GetAttribute("radius").Set(shape.size[0])
            case "cylinder" | "capsule":
                prim.GetAttribute("radius").Set(shape.size[0])
                prim.GetAttribute("height").Set(shape.size[1])
            case "plane":
                prim.GetAttribute("axis").Set("Z")
            case "mesh":
                x, y, z = shape.size or (1.0, 1.0, 1.0)
                scale = x, y, z
                self._mesh(prim, shape, scale)
        self._place(prim, shape.origin, scale)
        if shape.rgba is not None and shape.kind:
            form = UsdGeom.Gprim(prim)
            form.CreateDisplayColorAttr([shape.rgba[:3]])
            form.CreateDisplayOpacityAttr([shape.rgba[3]])
        if shape.role == "collision":
            UsdPhysics.CollisionAPI.Apply(prim)
            UsdGeom.Imageable(prim).CreatePurposeAttr(UsdGeom.Tokens.guide)
            if shape.kind == "mesh":
                api = UsdPhysics.MeshCollisionAPI.Apply(prim)
                api.CreateApproximationAttr(UsdPhysics.Tokens.convexHull)
            self._surface(prim, shape)

    def _mesh(self, prim: Any, shape: Shape, scale: Vec3) -> None:
        """Write the points and faces of a mesh, and the name of its file."""
        from pxr import Sdf, UsdGeom, Vt

        prim.CreateAttribute(MESH, Sdf.ValueTypeNames.String).Set(shape.file or "")
        prim.CreateAttribute(SCALE, Sdf.ValueTypeNames.Double3).Set(scale)
        original = self.originals.get(shape.file or "", shape)
        try:
            mesh = load_mesh(replace(original, size=(1.0, 1.0, 1.0)))
        except (DescriptionError, MissingPackageError) as error:
            self.issues.append(
                Issue(
                    f"other readers of the written file see nothing of a mesh: {error.message}",
                    shape.source,
                    "mesh not written",
                )
            )
            return
        form = UsdGeom.Mesh(prim)
        points = Vt.Vec3fArray.FromNumpy(mesh.vertices.astype("float32"))
        form.CreatePointsAttr(points)
        form.CreateFaceVertexIndicesAttr(
            Vt.IntArray.FromNumpy(mesh.faces.reshape(-1).astype("int32"))
        )
        form.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(mesh.faces)))
        form.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        form.CreateExtentAttr(UsdGeom.PointBased.ComputeExtent(points))

    def _surface(self, prim: Any, shape: Shape) -> None:
        """Write the material of a collider: one for each pair of friction and restitution."""
        from pxr import UsdPhysics, UsdShade

        key = shape.friction, shape.restitution
        if key == (None, None):
            return
        if key not in self.materials:
            scope = str(self.root.GetPath().AppendChild(_SCOPES[3]))
            material = self.define(scope, "material_1", "Material")
            api = UsdPhysics.MaterialAPI.Apply(material)
            if shape.friction is not None:
                api.CreateDynamicFrictionAttr(shape.friction)
                api.CreateStaticFrictionAttr(shape.friction)
            if shape.restitution is not None:
                api.CreateRestitutionAttr(shape.restitution)
            self.materials[key] = UsdShade.Material(material)
        binding = UsdShade.MaterialBindingAPI.Apply(prim)
        strength = UsdShade.Tokens.weakerThanDescendants
        binding.Bind(self.materials[key], strength, "physics")

    # ---- joints

    def _joint(self, joint: Joint, scope: Any) -> None:
        """Write a joint of the tree; floating roots and holders of massless links have no prim."""
        from pxr import UsdPhysics

        child, element = self.links[joint.child], _written(add_joint, joint)
        fixed = joint.type == "fixed" and not child.HasAPI(UsdPhysics.RigidBodyAPI)
        free = joint.type == "floating" and not self._is_held(joint.parent)
        if fixed or not (joint.type != "floating" or free):
            self.set_element(child, element, JOINT)
            return
        k, axes = (
            align(unit(joint.axis))
            if joint.type in (*ONE_DOF, "planar")
            else (0, AT_ORIGIN.rotation)
        )
        ends = Anchor(joint.parent, joint.origin), Anchor(joint.child)
        prim = self._connect(scope, joint.name, joint.type, ends, (axes, axes), k)
        self.joints[joint.name] = prim
        self.set_element(prim, element)
        if joint.type in _TURNING or joint.type == "prismatic":
            unit_ = DEGREE if joint.type in _TURNING else 1.0
            for name, value in (("lower", joint.limits.lower), ("upper", joint.limits.upper)):
                if math.isfinite(value):
                    prim.GetAttribute(f"physics:{name}Limit").Set(value / unit_)
        self._numbers(prim, joint, "rot" if joint.type != "prismatic" else "trans", "XYZ"[k])

    def _is_held(self, link: str) -> bool:
        """True if a link is fixed to the world."""
        while (joint := self.moved_by.get(link)) is not None:
            if joint.type != "fixed":
                return False
            link = joint.parent
        return True

    def _connect(
        self,
        scope: Any,
        name: str,
        kind: str,
        ends: tuple[Anchor, Anchor],
        turns: tuple[Rows3, Rows3],
        k: int,
    ) -> Any:
        """Write a joint between two links; ``turns``: rotations of its frames, with axis ``k``."""
        from pxr import Gf, Sdf, UsdPhysics

        title = _TYPES.get(kind, "PhysicsJoint")
        prim = self.define(str(scope.GetPath()), name, title)
        joint = UsdPhysics.Joint(prim)
        for n, (end, turn) in enumerate(zip(ends, turns, strict=True)):
            frame = compose(end.origin, Pose(rotation=turn))
            prim.CreateRelationship(f"physics:body{n}", False).SetTargets(
                [self.links[end.link].GetPath()]
            )
            prim.CreateAttribute(f"physics:localPos{n}", Sdf.ValueTypeNames.Point3f, False).Set(
                Gf.Vec3f(*frame.xyz)
            )
            prim.CreateAttribute(f"physics:localRot{n}", Sdf.ValueTypeNames.Quatf, False).Set(
                quaternion(frame, Gf.Quatf)
            )
        if title in ("PhysicsRevoluteJoint", "PhysicsPrismaticJoint"):
            prim.GetAttribute("physics:axis").Set("XYZ"[k])
        free = _freedoms(kind, k)
        for each in FREEDOMS if title == "PhysicsJoint" else ():
            if each not in free:
                limit = UsdPhysics.LimitAPI.Apply(joint.GetPrim(), each)
                limit.CreateLowAttr(_LOCKED[0])
                limit.CreateHighAttr(_LOCKED[1])
        return prim

    def _numbers(self, prim: Any, joint: Joint, kind: str, axis: str) -> None:
        """Write armature, damping and the like of a joint, in the schemas that have them."""
        from pxr import Sdf, UsdPhysics

        turns, limits = kind == "rot", joint.limits
        self.lost += lost_law(joint)
        joint = evened(joint)
        values = {"velocity": limits.velocity, "effort": limits.effort}
        for word in (*WORDS, DRIVE) if joint.type != "fixed" else ():
            value = values.get(word.field, getattr(joint, word.field, 0.0))
            if (not value and word.field != "effort") or math.isinf(value):
                continue
            name, exact = word.name, word.schema.startswith("Mjc")
            if word is DRIVE:
                instance = (
                    ("angular" if turns else "linear") if joint.type in ONE_DOF else kind + axis
                )
                UsdPhysics.DriveAPI.Apply(prim, instance)
                name = name.replace("{axis}", instance)
            elif word.schema:
                prim.AddAppliedSchema(word.schema)
            else:
                continue
            type_ = Sdf.ValueTypeNames.Double if exact else Sdf.ValueTypeNames.Float
            attribute = prim.CreateAttribute(name, type_, False)
            attribute.Set(value / word.factor(StageUnits(), turns=turns))

    def _mimic(
        self, follower: Joint | None, leader: Joint | None, factor: float, offset: float
    ) -> None:
        """Write Newton's attributes of a joint that follows another one of its kind, and PhysX's.

        PhysX's q + g q' + o = 0 has instances for rotations alone, and holds no others.
        """
        from pxr import Sdf, UsdPhysics

        if follower is None or leader is None:
            return
        prim = self.joints[follower.name]
        turns = follower.type in _TURNING
        if turns != (leader.type in _TURNING) or prim.GetRelationship("newton:mimicJoint"):
            return
        prim.AddAppliedSchema("NewtonMimicAPI")
        leaders = [self.joints[leader.name].GetPath()]
        prim.CreateRelationship("newton:mimicJoint", False).SetTargets(leaders)
        for name, value in (("0", offset / (DEGREE if turns else 1.0)), ("1", factor)):
            kind = Sdf.ValueTypeNames.Float
            prim.CreateAttribute(f"newton:mimicCoef{name}", kind, False).Set(value)
        if not turns:
            return
        own, other = (
            f"rot{UsdPhysics.RevoluteJoint(self.joints[each.name]).GetAxisAttr().Get()}"
            for each in (follower, leader)
        )
        prim.AddAppliedSchema(f"PhysxMimicJointAPI:{own}")
        word = f"physxMimicJoint:{own}:"
        prim.CreateRelationship(f"{word}referenceJoint", False).SetTargets(leaders)
        prim.CreateAttribute(
            f"{word}referenceJointAxis", Sdf.ValueTypeNames.Token, False, Sdf.VariabilityUniform
        ).Set(other)
        for name, value in (("gearing", -factor), ("offset", -offset / DEGREE)):
            prim.CreateAttribute(word + name, Sdf.ValueTypeNames.Float, False).Set(value)

    # ---- loops

    def _loop(self, loop: Loop, scope: Any) -> None:
        """Write a loop as a joint excluded from the articulation."""
        from pxr import UsdPhysics

        ends, kind = (loop.predecessor, loop.successor), loop.type
        k, axes = align(unit(loop.axis))
        turns = axes, axes
        if kind == "universal":
            k, turns = 0, (_frame(0, loop.axis), _frame(1, second_axis(loop)))
        elif kind in ("fixed", "spherical", "rod"):
            k, turns = 0, (AT_ORIGIN.rotation, AT_ORIGIN.rotation)
        prim = self._connect(scope, loop.name, kind, ends, turns, k)
        UsdPhysics.Joint(prim).CreateExcludeFromArticulationAttr(True)
        if kind == "rod":
            length = rest_length(loop, link_poses(self.description))
            rod = UsdPhysics.DistanceJoint(prim)
            rod.CreateMinDistanceAttr(length)
            rod.CreateMaxDistanceAttr(length)
        like = Joint(
            loop.name, "prismatic" if kind == "prismatic" else "revolute", "", "",
            damping=loop.damping, friction=loop.friction, stiffness=loop.stiffness,
            reference=loop.reference,
        )  # fmt: skip
        self._numbers(prim, like, "trans" if kind == "prismatic" else "rot", "XYZ"[k])
        self.set_element(prim, _written(add_loop, loop))


_SCOPES = ("joints", "loops", "elements", "materials")
_TYPES = {
    **dict.fromkeys(_TURNING, "PhysicsRevoluteJoint"),
    "prismatic": "PhysicsPrismaticJoint",
    "spherical": "PhysicsSphericalJoint",
    "fixed": "PhysicsFixedJoint",
    "rod": "PhysicsDistanceJoint",
}
"""By types of joints and loops; other types lock the freedoms of a generic joint."""


def _freedoms(kind: str, k: int) -> tuple[str, ...]:
    """The freedoms of a generic joint, about (along) its axis ``k``."""
    i, j, axis = "XYZ"[(k + 1) % 3], "XYZ"[(k + 2) % 3], "XYZ"[k]
    match kind:
        case "floating":
            return FREEDOMS
        case "planar":
            return f"trans{i}", f"trans{j}", f"rot{axis}"
        case "universal":
            return "rotX", "rotY"
        case "screw":
            return f"trans{axis}", f"rot{axis}"
    return ()


def _frame(k: int, axis: Vec3) -> Rows3:
    """A rotation that turns the coordinate axis ``k`` to ``axis``."""
    nearest, columns = align(unit(axis))
    images = transpose(columns)
    a, b, c = (images[(nearest + n - k) % 3] for n in range(3))
    return transpose((a, b, c))


def _element(tag: str, **words: str) -> Element:
    return etree.Element(tag, words)


def _written(write: Any, record: Any, *more: Any) -> Element:
    """The element that a URDF+ writer appends for a record."""
    root = add(etree.Element("all"), "robot")
    write(root, record, *more)
    return root[0]


def _pair(
    coupling: CouplingElement,
    moved_by: Mapping[str, Joint],
    joints: Mapping[str, Joint],
) -> tuple[Joint | None, Joint | None, float, float]:
    """The follower, leader, factor and offset of a coupling with one ratio."""
    if isinstance(coupling, PolynomialCoupling):
        if any(coupling.coefficients[2:]):
            return None, None, 0.0, 0.0
        follower, leader = joints[coupling.joint], joints[coupling.of]
        return follower, leader, sum(coupling.coefficients[1:2]), coupling.offset
    if isinstance(coupling, JointCoupling):
        terms = [(joints[name], k) for name, k in coupling.terms if k]
    else:
        terms = path_terms(coupling, moved_by)
    if len(terms) != 2:
        return None, None, 0.0, 0.0
    (leader, k), (follower, divisor) = terms
    if isinstance(coupling, JointCoupling) and leader.independent is False:
        (leader, k), (follower, divisor) = (follower, divisor), (leader, k)
    return follower, leader, -k / divisor, coupling.offset / divisor
