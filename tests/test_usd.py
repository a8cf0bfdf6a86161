"""USD: written and read back, made by hand against URDF, and looked at by USD's own readers."""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import re
import sys
import warnings
from dataclasses import fields

import numpy as np
import pytest
from agreement import same_robot

import robomodel as rm
from robomodel import DescriptionError, DescriptionWarning
from robomodel.description import Description
from robomodel.errors import NOWHERE, MissingPackageError, Source
from robomodel.parsers import read
from tests.cases import few
from tests.mechanisms import random_mechanism

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdValidation

# --- helpers --------------------------------------------------------------------------------------

BOX = """physics:mass = 2; float3 physics:diagonalInertia = (0.1, 0.2, 0.3);
point3f physics:centerOfMass = (0.1, 0.2, -0.4)"""


def stage(*joints: str, links: str = "ab", meta: str = "metersPerUnit = 1; upAxis = \"Z\"",
          body: str = BOX, more: str = "") -> str:  # fmt: skip
    """A stage with rigid bodies, and joints in the shorthand of :func:`joint`."""
    bodies = "\n".join(
        f'def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) '
        f"{{ float {body}\n }}"
        for name in links
    )
    return (
        f'#usda 1.0\n(defaultPrim = "r"; {meta})\ndef Xform "r" {{\n{bodies}\n'
        + "\n".join(joints)
        + f"\n}}\n{more}"
    )


def joint(kind: str, name: str, ends: str, *words: str, apis: str = "", frames: str = "") -> str:
    """A joint between two bodies; ``-`` is the world."""
    rels = "\n".join(
        f"rel physics:body{n} = </r/{end}>" for n, end in enumerate(ends) if end != "-"
    )
    api = f"(prepend apiSchemas = [{apis}])" if apis else ""
    return (
        f'def Physics{kind}Joint "{name}" {api} {{\n{rels}\n{frames}\n' + "\n".join(words) + "\n}"
    )


def urdf(*joints: str, links: str = "ab", inertia: str = "") -> str:
    """The same links as of :func:`stage`, on a root called world."""
    inertia = inertia or (
        '<inertial><origin xyz="0.1 0.2 -0.4"/><mass value="2"/><inertia ixx="0.1" ixy="0" '
        'ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial>'
    )
    bodies = "".join(f'<link name="{name}">{inertia}</link>' for name in links)
    return f'<robot name="r"><link name="world"/>{bodies}{"".join(joints)}</robot>'


def urdf_joint(kind: str, name: str, ends: str, inner: str = "", at: str = "") -> str:
    parent, child = ("world" if end == "-" else end for end in ends)
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{at}{inner}</joint>"
    )


def said(description: Description) -> object:
    """A description without places in files, its numbers to twelve digits."""

    def plain(thing: object) -> object:
        if isinstance(thing, float):
            return float(f"{thing:.12g}") + 0.0 if abs(thing) > 1e-14 else 0.0
        if isinstance(thing, tuple | list):
            return [plain(each) for each in thing]
        if isinstance(thing, Source):
            return NOWHERE
        if hasattr(thing, "__dataclass_fields__"):
            return {
                f.name: plain(getattr(thing, f.name))
                for f in fields(thing)
                if f.name not in ("source", "format", "gravity", "package")
            }
        return thing

    return plain(description)


def stripped(path, out):
    """The file without attributes of our own."""
    layer, paths = Sdf.Layer.OpenAsAnonymous(str(path)), []
    layer.Traverse("/", paths.append)
    for each in paths:
        if each.IsPropertyPath() and each.name.startswith("robomodel:"):
            prim = layer.GetPrimAtPath(each.GetPrimPath())
            prim.RemoveProperty(prim.properties[each.name])
    layer.Export(str(out))
    return out


# --- round trips ----------------------------------------------------------------------------------


def ends_apart(path) -> float:
    """The largest distance between the ends of joints of a stage [m], rods less their length."""
    stage, worst = Usd.Stage.Open(str(path)), 0.0
    cache = UsdGeom.XformCache()
    for prim in filter(lambda each: each.IsA(UsdPhysics.Joint), stage.Traverse()):
        if prim.GetTypeName() in ("PhysicsPrismaticJoint", "PhysicsJoint"):
            continue
        ends = []
        for n in "01":
            targets = prim.GetRelationship(f"physics:body{n}").GetTargets()
            local = Gf.Vec3d(prim.GetAttribute(f"physics:localPos{n}").Get())
            body = stage.GetPrimAtPath(targets[0]) if targets else stage.GetPseudoRoot()
            matrix = cache.GetLocalToWorldTransform(body)
            ends.append(np.array(matrix.Transform(local)))
        rod = prim.GetAttribute("physics:minDistance").Get() or 0.0
        worst = max(worst, abs(math.dist(*ends) - rod))
    return worst


@pytest.mark.parametrize("name", ["tello", "five_bar", "crank_rocker"])
def test_stages_stand_closed(name, tmp_path):
    """Rods of Tello's hips are 12 mm too long at zero."""
    path = tmp_path / f"{name}.usda"
    rm.write_usd(rm.robots.load(name), path)
    assert ends_apart(path) < 1e-7  # numbers of joints are in single precision


def test_stages_stand_where_couplings_hold(tmp_path):
    text = urdf(
        FIX_URDF, urdf_joint("continuous", "k", "ab", '<axis xyz="0 0 1"/>'),
        urdf_joint("continuous", "j", "ac", '<axis xyz="0 0 1"/>'
                   '<mimic joint="k" multiplier="2" offset="0.5"/>'), links="abc",
    )  # fmt: skip
    path = tmp_path / "mimic.usda"
    rm.write_usd(rm.load(text), path)
    bare = rm.load(stripped(path, tmp_path / "bare.usda"))
    (follower,) = (each for each in bare.description.joints if each.mimic)
    assert follower.initial == pytest.approx(0.5, abs=1e-6)


@pytest.mark.slow_cases("usda-mini_cheetah", "usdz-mini_cheetah", "usda-six_bar")
@pytest.mark.parametrize("name", few(rm.robots.names(), "mini_cheetah", "six_bar"))
@pytest.mark.parametrize("ending", ["usda", "usdz"])
def test_shipped_robots_are_read_back_exactly(name, ending, tmp_path):
    model = rm.robots.load(name)
    path = tmp_path / f"{name}.{ending}"
    assert rm.write_usd(model, path) == ()
    back = rm.load(path)
    assert said(back.description) == said(model.description)
    same_robot(model, back)
    comparison = rm.compare(model, back)
    assert comparison.same, str(comparison)


SUFFICING = ("crank_rocker", "five_bar", "four_bar", "jvrc1", "mini_cheetah", "planar_leg_linkage",
             "puma560", "six_bar")  # fmt: skip


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", few(SUFFICING, "mini_cheetah"))
def test_words_of_usd_suffice_for_loops_and_gears(name, tmp_path):
    """Without attributes of ours, masses and constraints are there to single precision."""
    model = rm.robots.load(name)
    rm.write_usd(model, tmp_path / "a.usda")
    names = [each for each in model.dof_names if "." not in each]
    text = stripped(tmp_path / "a.usda", tmp_path / "b.usda")
    back = rm.load(text, independent=names, tolerance=1e-6)
    assert back.nv == model.nv
    order = [
        back.dof_names.index(each if each in back.dof_names else f"floating_base.{each[-2:]}")
        for each in model.dof_names
    ]
    q = model.random_configuration(np.random.default_rng(1))
    positions = {k: float(x) for k, x in model.joint_positions(q).items() if np.ndim(x) == 0}
    if model.loops:
        assert back.joint_names == model.joint_names
        other = back.close(q)
    else:
        other = back.configuration({k: positions[k] for k in back.joint_names if k in positions})
    M = rm.crba(model, model.configuration(positions), backend="numpy")
    there = rm.crba(back, other, backend="numpy")[np.ix_(order, order)]
    np.testing.assert_allclose(there, M, rtol=1e-6, atol=1e-6 * np.abs(M).max())


@pytest.mark.parametrize("seed", few(range(20), 6))
def test_random_mechanisms_are_read_back(seed, tmp_path):
    """Every type of joint, loop and coupling."""
    text = random_mechanism(np.random.default_rng(seed)).text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        model = rm.load(text)
        rm.write_usd(model, tmp_path / "a.usdc")
        back = rm.load(tmp_path / "a.usdc")
    assert said(back.description) == said(model.description)
    q = model.neutral()
    M = rm.crba(model, q, backend="numpy")
    np.testing.assert_allclose(rm.crba(back, q, backend="numpy"), M, rtol=1e-9, atol=1e-11)


EVERYTHING = """<robot name="all words">
  <gravity xyz="0.1 0.2 -3.7"/>
  <link name="1 base"><visual name="see"><geometry><box size="1 2 3"/></geometry>
    <material name="red"><color rgba="0.8 0.1 0.1 0.5"/></material></visual></link>
  <link name="arm"><inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="1.25"/>
    <inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial>
    <collision><origin xyz="0 0 0.1" rpy="1 0 0"/><geometry><cylinder radius="0.1" length="0.3"/>
    </geometry><surface friction="0.7" restitution="0.1"/></collision>
    <collision><geometry><sphere radius="0.2"/></geometry></collision></link>
  <link name="tool"/>
  <link name="nut"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <link name="ball"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="shoulder" type="revolute" independent="true"><parent link="1 base"/>
    <child link="arm"/><axis xyz="0.6 0 -0.8"/><limit lower="-1" upper="2" effort="3" velocity="4"/>
    <dynamics damping="0.1" friction="0.2" spring_stiffness="7" spring_reference="0.3"
      spring_deadband="0.1"/>
    <armature value="0.05"/><initial position="0.2"/>
    <rotor inertia="1e-5" ratio="-20" mass="0.1"/>
    <motor effort="0.3" stall_torque="0.5" no_load_speed="300"/></joint>
  <joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0.3 0 0" rpy="0 0 1"/></joint>
  <joint name="thread" type="screw"><parent link="tool"/><child link="nut"/><pitch value="0.002"/>
    </joint>
  <joint name="socket" type="spherical"><parent link="tool"/><child link="ball"/>
    <dynamics damping="0.3" friction="0" spring_stiffness="2"/></joint>
  <loop name="strut" type="rod" length="0.4"><predecessor link="arm"/>
    <successor link="ball"><origin xyz="0 0 0.1"/></successor></loop>
  <coupling name="nut and arm"><joint name="thread" ratio="1"/><joint name="shoulder" ratio="-3"/>
    </coupling>
  <spring name="band" stiffness="5" damping="0.1"><predecessor link="arm"/>
    <successor link="ball"/></spring>
  <spring name="cable" stiffness="5" reference="0.2"><joint name="shoulder" ratio="1"/>
    <joint name="thread" ratio="2"/></spring>
  <transmission name="drive"><type>SimpleTransmission</type><joint name="shoulder"/>
    <actuator name="motor"/></transmission>
</robot>"""


@pytest.mark.slow
def test_what_usd_has_no_word_for_is_read_back(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # an armature beside a rotor
        description = read(EVERYTHING)
        model = rm.load(EVERYTHING)
        rm.write_usd(model, tmp_path / "all.usda")
        back = rm.load(tmp_path / "all.usda")
    assert said(back.description) == said(description)
    assert back.gravity == pytest.approx(model.gravity, abs=0)
    opened = Usd.Stage.Open(str(tmp_path / "all.usda"))
    base = opened.GetPrimAtPath("/all_words/__base")
    assert base.GetMetadata("displayName") == "1 base"
    scene = UsdPhysics.Scene.Get(opened, "/PhysicsScene")
    assert scene.GetGravityMagnitudeAttr().Get() == pytest.approx(math.hypot(0.1, 0.2, 3.7))
    # words that other readers have for some of it
    hinge = opened.GetPrimAtPath("/all_words/joints/shoulder")
    per_degree = math.pi / 180
    for name, value in {
        "newton:armature": 0.05, "physxJoint:armature": 0.05, "newton:damping": 0.1 * per_degree,
        "newton:friction": 0.2, "newton:velocityLimit": 4 / per_degree, "mjc:stiffness": 7.0,
        "physxJoint:maxJointVelocity": 4 / per_degree, "mjc:springref": 0.3 / per_degree,
        "drive:angular:physics:maxForce": 3.0, "physics:lowerLimit": -1 / per_degree,
    }.items():  # fmt: skip
        assert hinge.GetAttribute(name).Get() == pytest.approx(value, rel=1e-6), name


def test_changed_words_count(tmp_path):
    """A stage that was edited since is read by USD's words, and says so."""
    model = rm.robots.load("puma560")
    rm.write_usd(model, tmp_path / "a.usda")
    layer = Sdf.Layer.FindOrOpen(str(tmp_path / "a.usda"))
    mass = layer.GetAttributeAtPath(f"/puma560/{model.bodies[2].name}.physics:mass")
    mass.default = 5.5
    layer.Save()
    with pytest.warns(DescriptionWarning, match=f"{model.bodies[2].name}>: was changed since"):
        back = rm.load(tmp_path / "a.usda")
    masses = [each.inertial.mass for each in back.description.links if each.inertial]
    before = [each.inertial.mass for each in model.description.links if each.inertial]
    (changed,) = {*masses} - {*before}
    assert changed == 5.5
    with pytest.raises(DescriptionError, match="was changed"):
        rm.load(tmp_path / "a.usda", strict=True)


# --- what others see ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(rm.robots.names(), "five_bar", "tello"))
def test_other_readers_see_the_robot(name, tmp_path):
    """USD's own reader of physics, and its validators."""
    model = rm.robots.load(name)
    rm.write_usd(model, tmp_path / "a.usda")
    opened = Usd.Stage.Open(str(tmp_path / "a.usda"))
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    errors = UsdValidation.ValidationContext(validators).Validate(opened)
    assert [f"{each.GetName()}: {each.GetMessage()}" for each in errors] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = UsdPhysics.LoadUsdPhysicsFromRange(opened, ["/"])
    by_type = {str(kind).split(".")[-1]: both for kind, both in found.items()}
    assert len(by_type["Articulation"][0]) == 1
    heavy = [each for each in model.description.links if each.inertial and each.inertial.mass]
    assert len(by_type["RigidBody"][0]) >= len(heavy)
    joints = [each for kind, (_, all_) in by_type.items() if "Joint" in kind for each in all_]
    assert all(each.isValid for each in joints)
    loops = [each for each in joints if each.excludeFromArticulation]
    assert len(loops) == len(model.description.loops)
    # at the pose that is shown, both frames of each joint of the tree are where the joint is
    cache = UsdGeom.XformCache()
    for each in joints:
        ends = []
        for body, position in (
            (each.body0, each.localPose0Position), (each.body1, each.localPose1Position),
        ):  # fmt: skip
            matrix = Gf.Matrix4d(1.0)
            if body != Sdf.Path.emptyPath:
                matrix = cache.GetLocalToWorldTransform(opened.GetPrimAtPath(body))
            ends.append(np.array(matrix.Transform(Gf.Vec3d(position))))
        if "Distance" not in str(each.type) and "Prismatic" not in str(each.type):
            np.testing.assert_allclose(*ends, atol=2e-6)


def test_masses_are_those_of_usd():
    """Explicit, from densities of bodies, colliders and materials, and scaled."""
    shapes = """
      def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"]) {
        double size = 0.4; double3 xformOp:translate = (0.1, 0, 0.2);
        quatd xformOp:orient = (0.9, 0.1, 0.4, 0.1); float3 xformOp:scale = (1, 2, 0.5);
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"];
        float physics:density = 800; }
      def Cylinder "d" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        double radius = 0.1; double height = 0.6; uniform token axis = "X"; }
      def Sphere "e" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"]) {
        double radius = 0.2; float physics:mass = 3; }
      def Capsule "f" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {
        double radius = 0.1; double height = 0.3
        rel material:binding:physics = </m>
      }"""
    material = """def Material "m" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {
      float physics:density = 2500; float physics:dynamicFriction = 0.6; }"""
    for words, unit in (
        ("physics:density = 1200", 1.0), ("physics:mass = 7", 1.0), ("physics:mass = 0", 1.0),
        ("physics:mass = 7; point3f physics:centerOfMass = (0.1, 0.2, 0.3)", 1.0),
        ("physics:mass = 7", 0.01),
    ):  # fmt: skip
        meta = f'metersPerUnit = {unit}; kilogramsPerUnit = 1; upAxis = "Z"'
        text = stage(links="a", body=f"{words}; {shapes}", meta=meta, more=material)
        opened = Usd.Stage.CreateInMemory()
        opened.GetRootLayer().ImportFromString(text)
        mass, inertia, com, axes = _computed(opened, "/r/a")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)  # sqrt: the sphere's density
            (link,) = (x for x in read(text).links if x.name == "a")
        own = link.inertial
        assert own is not None
        assert own.mass == pytest.approx(mass, rel=1e-5)
        np.testing.assert_allclose(
            own.origin.xyz, np.array(com) * unit, rtol=1e-4, atol=1e-6 * unit
        )
        xx, xy, xz, yy, yz, zz = own.inertia
        mine = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        turn = np.array(Gf.Matrix3d(Gf.Quatd(axes))).T
        theirs = turn @ np.diag(inertia) @ turn.T * unit**2
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())


def _computed(opened, path):
    """Mass properties by USD's own rule, from the volumes of the shapes."""

    def information(prim):
        shape = str(prim.GetTypeName())
        result = UsdPhysics.RigidBodyAPI.MassInformation()
        get = {x: prim.GetAttribute(x).Get() for x in ("radius", "height", "size")}
        r, h, x = get["radius"], get["height"], get["size"]
        scale = Gf.Transform(UsdGeom.Xformable(prim).GetLocalTransformation())
        if shape == "Cube":
            a, b, c = (x * s for s in scale.GetScale())
            volume, moments = a * b * c, (b * b + c * c, a * a + c * c, a * a + b * b)
            moments = [m / 12 * volume for m in moments]
        elif shape == "Sphere":
            volume = 4 / 3 * math.pi * r**3
            moments = [0.4 * volume * r * r] * 3
        else:
            volume = math.pi * r * r * h
            along, across = volume * r * r / 2, volume * (3 * r * r + h * h) / 12
            if shape == "Capsule":
                ball = 4 / 3 * math.pi * r**3
                along += 0.4 * ball * r * r
                across += ball * (0.4 * r * r + h * h / 4 + 3 / 8 * h * r)
                volume += ball
            axis = "XYZ".index(prim.GetAttribute("axis").Get())
            moments = [along if k == axis else across for k in range(3)]
        result.volume = volume
        result.inertia = Gf.Matrix3f(Gf.Matrix3d(Gf.Vec3d(*moments)))
        result.centerOfMass = Gf.Vec3f(0)
        result.localPos = Gf.Vec3f(scale.GetTranslation())
        result.localRot = Gf.Quatf(scale.GetRotation().GetQuat())
        return result

    return UsdPhysics.RigidBodyAPI(opened.GetPrimAtPath(path)).ComputeMassProperties(information)


# --- made by hand, against URDF -------------------------------------------------------------------

AT = '<origin xyz="0.1 0 -0.5" rpy="0 1.5707963267948966 0"/>'
"""Of joint frames whose axis x is the link's -z."""
FRAMES = """point3f physics:localPos0 = (0.1, 0, -0.5)
quatf physics:localRot0 = (0.70710677, 0, 0.70710677, 0)"""
FIX = joint("Fixed", "f", "-a")
FIX_URDF = urdf_joint("fixed", "f", "-a")
LIMITS = "float physics:lowerLimit = -45", "float physics:upperLimit = 90"
NEWTON = '"NewtonJointAPI"'

JOINTS = {
    "revolute": (
        joint("Revolute", "j", "ab", 'token physics:axis = "Y"', *LIMITS, frames=FRAMES),
        urdf_joint("revolute", "j", "ab", f'<axis xyz="0 1 0"/><limit lower="{-math.pi / 4}" '
                   f'upper="{math.pi / 2}" effort="inf" velocity="inf"/>', AT),
    ),
    "continuous, turned and armed": (
        joint("Revolute", "j", "ab", "float newton:armature = 0.3", "float newton:damping = 0.5",
              "float newton:velocityLimit = 180", "float drive:angular:physics:maxForce = 7",
              apis=f'{NEWTON}, "PhysicsDriveAPI:angular"', frames=FRAMES),
        urdf_joint("continuous", "j", "ab", '<axis xyz="1 0 0"/><armature value="0.3"/>'
                   f'<dynamics damping="{math.degrees(0.5)}" friction="0"/>'
                   f'<limit effort="7" velocity="{math.pi}"/>', AT),
    ),
    "PhysX's words": (
        joint("Revolute", "j", "ab", "float physxJoint:armature = 9",
              "float physxJointAxis:rotX:armature = 0.3", "float physxJoint:maxJointVelocity = 1e6",
              "float physxJointAxis:angular:maxJointVelocity = 90"),
        urdf_joint("continuous", "j", "ab", '<axis xyz="1 0 0"/><armature value="0.3"/>'
                   f'<limit effort="inf" velocity="{math.pi / 2}"/>'),
    ),
    "prismatic": (
        joint("Prismatic", "j", "ab", 'token physics:axis = "Z"', "float physics:lowerLimit = -1",
              "float physics:upperLimit = 2", "float mjc:armature = 0.5", frames=FRAMES),
        urdf_joint("prismatic", "j", "ab", '<axis xyz="0 0 1"/><limit lower="-1" upper="2" '
                   'effort="inf" velocity="inf"/><armature value="0.5"/>', AT),
    ),
    "spherical": (joint("Spherical", "j", "ab", frames=FRAMES),
                  urdf_joint("spherical", "j", "ab", at=AT)),
    "fixed": (joint("Fixed", "j", "ab", frames=FRAMES), urdf_joint("fixed", "j", "ab", at=AT)),
    "locked by low above high": (
        joint("Revolute", "j", "ab", "float physics:lowerLimit = 1", "float physics:upperLimit = 0",
              frames=FRAMES), urdf_joint("fixed", "j", "ab", at=AT)),
    "backward": (
        joint("Revolute", "j", "ba", 'token physics:axis = "Z"',
              "point3f physics:localPos1 = (0.1, 0, -0.5)"),
        urdf_joint("continuous", "j", "ab", '<axis xyz="0 0 -1"/>',
                   '<origin xyz="0.1 0 -0.5"/>'),
    ),
}  # fmt: skip


def locked(*free: str) -> dict[str, str]:
    """Of a joint without a type: limits that lock all but some freedoms."""
    names = [
        f"{kind}{axis}" for kind in ("trans", "rot") for axis in "XYZ" if kind + axis not in free
    ]
    words = [f"float limit:{x}:physics:{w}" for x in names for w in ("low = 1", "high = -1")]
    return {"words": "\n".join(words), "apis": ", ".join(f'"PhysicsLimitAPI:{x}"' for x in names)}


def free(name: str, ends: str, *freedoms: str, frames: str = FRAMES, more: str = "") -> str:
    words = locked(*freedoms)
    return joint("", name, ends, words["words"], more, apis=words["apis"], frames=frames)


def three(kinds: str, *axes: str) -> str:
    """URDF's joints one after the other."""
    names, links = ["a", *(f"b.j.{x}" for x in axes[:-1]), "b"], []
    for n, (kind, axis) in enumerate(zip(kinds.split(), axes, strict=True)):
        xyz = " ".join(str(int(axis[-1] == each)) for each in "XYZ")
        name = f"j.{axis}" if len(axes) > 1 else "j"
        links.append(
            f'<joint name="{name}" type="{kind}"><parent link="{names[n]}"/><child '
            f'link="{names[n + 1]}"/>{AT if n == 0 else ""}<axis xyz="{xyz}"/>'
            '<limit lower="-inf" upper="inf" effort="inf" velocity="inf"/></joint>'
        )
    return "".join([*(f'<link name="{x}"/>' for x in names[1:-1]), *links])


JOINTS |= {
    "hinge of six": (free("j", "ab", "rotY"), three("continuous", "rotY")),
    "universal of six": (free("j", "ab", "rotX", "rotZ"), three("continuous continuous", "rotX",
                         "rotZ")),
    "cylinder of six": (free("j", "ab", "transZ", "rotZ"), three("prismatic continuous", "transZ",
                        "rotZ")),
    "plane of six": (free("j", "ab", "transX", "transY", "rotZ"),
                     urdf_joint("planar", "j", "ab", '<axis xyz="0 0 1"/>', AT)),
    "ball of six": (free("j", "ab", "rotX", "rotY", "rotZ"), JOINTS["spherical"][1]),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINTS)
def test_joints_are_those_of_urdf(name):
    text, same = JOINTS[name]
    same_robot(rm.load(stage(FIX, text)), rm.load(urdf(FIX_URDF, same)), tolerance=1e-9)


def test_limits_of_zero_lock_nothing():
    hinge = joint(
        "Revolute", "j", "ab", *(f"float physics:{x}Limit = 0" for x in ("lower", "upper"))
    )
    with pytest.warns(rm.DescriptionWarning, match="both limits are 0"):
        model = rm.load(stage(FIX, hinge))
    assert (model.nv, model.lower[0], model.upper[0]) == (1, 0.0, 0.0)


def test_units_scale_and_axes():
    """In centimetres and grams, on scaled bodies, and with another axis up."""
    body = """physics:mass = 2000; float3 physics:diagonalInertia = (1000000, 2000000, 3000000);
      point3f physics:centerOfMass = (1, 20, -40); float3 xformOp:scale = (10, 1, 1);
      uniform token[] xformOpOrder = ["xformOp:scale"]"""
    frames = "point3f physics:localPos0 = (1, 0, -50)"
    slide = joint(
        "Prismatic", "s", "bc", 'token physics:axis = "Z"', "float physics:lowerLimit = -100",
        "float physics:upperLimit = 200", "float newton:armature = 500",
        "float drive:linear:physics:maxForce = 700", frames=frames,
        apis=f'{NEWTON}, "PhysicsDriveAPI:linear"',
    )  # fmt: skip
    hinge = joint("Revolute", "j", "ab", 'token physics:axis = "Y"', "float newton:armature = 1e6",
                  frames=frames, apis=NEWTON)  # fmt: skip
    meta = 'metersPerUnit = 0.01; kilogramsPerUnit = 0.001; upAxis = "Y"'
    model = rm.load(stage(FIX, hinge, slide, links="abc", meta=meta, body=body))
    at = '<origin xyz="0.1 0 -0.5"/>'
    text = urdf(
        FIX_URDF,
        urdf_joint("continuous", "j", "ab", '<axis xyz="0 1 0"/><armature value="0.1"/>', at),
        urdf_joint("prismatic", "s", "bc", '<axis xyz="0 0 1"/><armature value="0.5"/>'
                   '<limit lower="-1" upper="2" effort="0.007" velocity="inf"/>', at),
        links="abc",
    ).replace('name="r">', 'name="r"><gravity xyz="0 -9.81 0"/>')  # fmt: skip
    same_robot(model, rm.load(text), tolerance=1e-6)
    scene = 'def PhysicsScene "s" {{ {} }}'
    for words, gravity in {
        "": (0, -9.81, 0), "float physics:gravityMagnitude = 500;": (0, -5, 0),
        "vector3f physics:gravityDirection = (0, 0, -2);": (0, 0, -9.81),
        "bool newton:gravityEnabled = 0;": (0, 0, 0),
    }.items():  # fmt: skip
        model = rm.load(stage(FIX, links="a", meta=meta, more=scene.format(words)))
        np.testing.assert_allclose(model.gravity, gravity, atol=1e-12)


def test_mimics_of_newton_and_physx():
    """q = c0 + c1 q', and q + g q' + o = 0; angles in degrees."""
    leader = joint("Revolute", "k", "ab", 'token physics:axis = "Z"')
    slide = joint("Prismatic", "s", "ac")
    newton = joint(
        "Revolute", "j", "ac", 'token physics:axis = "Y"', "rel newton:mimicJoint = </r/k>",
        "float newton:mimicCoef0 = 90", "float newton:mimicCoef1 = -2", apis='"NewtonMimicAPI"',
    )  # fmt: skip
    physx = joint(
        "Revolute", "j", "ac", 'token physics:axis = "Y"',
        "rel physxMimicJoint:rotX:referenceJoint = </r/k>",
        "float physxMimicJoint:rotX:offset = -90", "float physxMimicJoint:rotX:gearing = 2",
        apis='"PhysxMimicJointAPI:rotX"',
    )  # fmt: skip
    hinges = urdf_joint("continuous", "k", "ab", '<axis xyz="0 0 1"/>') + urdf_joint(
        "continuous", "j", "ac", '<axis xyz="0 1 0"/>'
        f'<mimic joint="k" multiplier="-2" offset="{math.pi / 2}"/>')  # fmt: skip
    same = rm.load(urdf(FIX_URDF, hinges, links="abc"))
    for text in (newton, physx):
        same_robot(rm.load(stage(FIX, leader, text, links="abc")), same)
    off = newton.replace("rel newton", "bool newton:mimicEnabled = 0\nrel newton")
    assert rm.load(stage(FIX, leader, off, links="abc")).nv == 2
    curved = newton.replace("rel newton", "double mjc:coef2 = 3\nrel newton")
    (coupling,) = rm.load(stage(FIX, leader, curved, links="abc")).description.couplings
    assert coupling.coefficients == pytest.approx((math.pi / 2, -2.0, 3.0, 0.0, 0.0), rel=1e-15)
    # between a slide and a hinge: PhysX's gear is in degrees for each length
    rack = physx.replace("</r/k>", "</r/s>").replace('"ac"', '"ab"').replace("/r/c>", "/r/b>")
    model = rm.load(stage(FIX, slide, rack, links="abc"))
    (mimic,) = (x.mimic for x in model.description.joints if x.mimic)
    assert mimic.multiplier == pytest.approx(math.radians(-2), rel=1e-12)


ENDS = "point3f physics:localPos0 = (0, 0, 1)\npoint3f physics:localPos1 = (0.5, 0, -0.2)"
LOOPS = {
    "excluded": (
        joint("Revolute", "l", "dc", 'token physics:axis = "Y"',
              "bool physics:excludeFromArticulation = 1", frames=ENDS), "revolute", 1),
    "rod": (joint("Distance", "l", "dc", "float physics:minDistance = 1",
                  "float physics:maxDistance = 1", frames=ENDS), "rod", 2),
    "six": (free("l", "dc", "rotY", frames=ENDS), "revolute", 1),
    "no type of loop": (free("l", "dc", "transX", "rotY", frames=ENDS), "", 2),
}  # fmt: skip


@pytest.mark.slow_cases("excluded", "six", "rod")
@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_those_of_urdf(name):
    """By exclusion, as rods, and where a stage without an articulation has a joint too many."""
    text, kind, nv = LOOPS[name]
    base = 'token physics:axis = "Y"'
    hinges = [
        joint("Revolute", "h", "ab", base),
        joint("Revolute", "k", "ac", base, frames="point3f physics:localPos0 = (0, 0, 1.2)"),
        joint("Revolute", "m", "bd", base, frames="point3f physics:localPos0 = (0.5, 0, 0)"),
    ]
    independent = ("h", "k")[:nv]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # loops in a plane: conditions repeat
        model = rm.load(stage(FIX, *hinges, text, links="abcd"), independent=independent)
    assert model.nv == nv
    if not kind:
        return
    axis = '<axis xyz="0 1 0"/>'
    hinges = [
        urdf_joint("continuous", *words, axis, f'<origin xyz="{at}"/>')
        for words, at in (
            (("h", "ab"), "0 0 0"),
            (("k", "ac"), "0 0 1.2"),
            (("m", "bd"), "0.5 0 0"),
        )
    ]
    more = ("", ' length="1"')[kind == "rod"]
    same = urdf(
        FIX_URDF, *hinges, f'<loop name="l" type="{kind}"{more}><predecessor link="d"><origin '
        'xyz="0 0 1"/></predecessor><successor link="c"><origin xyz="0.5 0 -0.2"/></successor>'
        f"{axis if kind != 'rod' else ''}</loop>", links="abcd",
    )  # fmt: skip
    same_robot(model, rm.load(same, independent=independent), tolerance=1e-9)


ACTS = {
    "armature": ("float newton:armature = 0.3", NEWTON, '<armature value="0.3"/>'),
    "drive": ("float drive:angular:physics:maxForce = 5", '"PhysicsDriveAPI:angular"',
              '<limit effort="5"/>'),
    "leader": ("", "", ""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_joints_that_act_keep_it_where_they_close_loops(name):
    """They are joints to a link without mass, which a fixed loop holds on the child."""
    words, api, element = ACTS[name]
    base, axis = 'token physics:axis = "Y"', '<axis xyz="0 1 0"/>'
    hinges, same = [], []
    places = (("h", "ab", "0 0 0"), ("k", "ac", "0 0 1.2"), ("m", "bd", "0.5 0 0"))
    for n, ends, at in places:
        frame = f"point3f physics:localPos0 = ({at.replace(' ', ', ')})"
        hinges.append(joint("Revolute", n, ends, base, frames=frame))
        same.append(urdf_joint("continuous", n, ends, axis, f'<origin xyz="{at}"/>'))
    hinges.append(
        joint("Revolute", "l", "dc", base, words, "bool physics:excludeFromArticulation = 1",
              frames=ENDS, apis=api)
    )  # fmt: skip
    same.append(urdf_joint("continuous", "l", "de", axis + element, '<origin xyz="0 0 1"/>'))
    same.append(
        '<link name="e"/><loop name="l" type="fixed"><predecessor link="e"/><successor link="c">'
        '<origin xyz="0.5 0 -0.2"/></successor></loop>'
    )
    if name == "leader":
        follows = "rel newton:mimicJoint = </r/l>\nfloat newton:mimicCoef1 = -2"
        hinges.append(joint("Revolute", "n", "ax", base, follows, apis='"NewtonMimicAPI"'))
        mimic = '<mimic joint="l" multiplier="-2"/>'
        same.append(urdf_joint("continuous", "n", "ax", axis + mimic))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # loops in a plane: conditions repeat
        links = "abcdx" if name == "leader" else "abcd"
        model = rm.load(stage(FIX, *hinges, links=links))
        other = rm.load(urdf(FIX_URDF, *same, links=links))
    same_robot(model, other, tolerance=1e-9)
    drives = [(each.joint, each.effort_limit) for each in model.actuators]
    assert drives == ([("l", 5.0)] if name == "drive" else [])


def test_free_bodies_and_roots():
    """Without a joint to the world a body floats: an articulation's root, where it has one."""
    hinge = joint("Revolute", "j", "ab", frames=FRAMES)
    text = stage(hinge)
    assert rm.load(text).dof_names[:1] == ("floating_base.wx",)
    assert rm.load(text).description.joints[0].child == "a"
    second = text.replace('"b" (prepend apiSchemas = [', '"b" (prepend apiSchemas = '
                          '["PhysicsArticulationRootAPI", ')  # fmt: skip
    model = rm.load(second)
    assert model.description.joints[0].child == "b"
    same = rm.load(urdf(urdf_joint("floating", "floating_base", "-a"), urdf_joint(
        "continuous", "j", "ab", '<axis xyz="1 0 0"/>', AT)))  # fmt: skip
    same_robot(rm.load(text), same)


# --- layers, references, instances ----------------------------------------------------------------


def test_layers_references_and_instances(tmp_path):
    """What is composed of several files is the same robot; nothing from elsewhere is opened."""
    hinge = joint("Revolute", "j", "ab", frames=FRAMES)
    flat = rm.load(stage(FIX, hinge))
    (tmp_path / "parts").mkdir()
    inner = f"""def Xform "body" (
      prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{ float {BOX}
        def Scope "shapes" (instanceable = true; references = </shape>) {{}}
      }}
      def Scope "shape" {{
        def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{ double radius = 0.1; }}
      }}"""
    (tmp_path / "parts/body.usda").write_text(f'#usda 1.0\n(defaultPrim = "body")\n{inner}')
    (tmp_path / "joints.usda").write_text(f'#usda 1.0\nover "r" {{ {FIX}\n{hinge}\n }}')
    top = (
        '#usda 1.0\n(defaultPrim = "r"; metersPerUnit = 1; upAxis = "Z"{})\ndef Xform "r" {{ {}\n}}'
    )
    bodies = 'def "a" (references = @parts/body.usda@) {}\ndef "b" (payload = @parts/body.usda@) {}'
    path = tmp_path / "robot.usda"
    path.write_text(top.format("; subLayers = [@joints.usda@]", bodies))
    model = rm.load(path)
    same_robot(model, flat)
    shapes = [shape for link in model.description.links for shape in link.shapes]
    assert [(x.kind, x.size) for x in shapes] == [("sphere", (0.1,))] * 4  # seen, and touching
    (tmp_path / "sub").mkdir()
    for layers, words in {
        "; subLayers = [@https://example.org/a.usda@]": "no path of a file",
        "; subLayers = [@/etc/hostname@]": "leads out of the folder",
        "; subLayers = [@../../../../../../../etc/hostname@]": "leads out of the folder",
    }.items():
        (tmp_path / "sub/bad.usda").write_text(top.format(layers, ""))
        with pytest.raises(DescriptionError, match=words):
            rm.load(tmp_path / "sub/bad.usda")
    with pytest.raises(DescriptionError, match="this robot is from none"):
        rm.load(top.format("", bodies))
    path.write_text(top.format("; subLayers = [@joints.usda@, @gone.usda@]", bodies))
    with pytest.warns(DescriptionWarning, match="gone.usda@ is not there"):
        same_robot(rm.load(path), flat)
    path.write_text(top.format("; subLayers = [@gone.usda@]", ""))
    with (
        pytest.warns(DescriptionWarning, match="gone.usda@ is not there"),
        pytest.raises(DescriptionError, match=r"no rigid body.*gone.usda@ is not there"),
    ):
        rm.load(path)
    os.mkfifo(tmp_path / "pipe.usda")
    path.write_text(top.format("; subLayers = [@pipe.usda@]", ""))
    with pytest.raises(DescriptionError, match=r"pipe.usda@ is no plain file"):
        rm.load(path)


def test_what_a_file_may_make_is_bounded():
    """References to references, each twice, make more prims than any robot has."""
    text = "\n".join(
        f'def "p{n}" {{ def "x" (references = </p{n + 1}>) {{}}\n'
        f'def "y" (references = </p{n + 1}>) {{}}\n }}'
        for n in range(40)
    )
    with pytest.raises(DescriptionError, match="at most 200000 are read"):
        rm.load(f'#usda 1.0\n{text}\ndef "p40" {{}}')
    deep = "".join(f'def "p{n}" {{\n' for n in range(20_000)) + "}\n" * 20_000
    with pytest.raises(DescriptionError, match="20000 inside each other"):
        rm.load(f"#usda 1.0\n{deep}")
    circle = '#usda 1.0\ndef "a" (references = </b>) {}\ndef "b" (references = </a>) {}'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        with pytest.raises(DescriptionError):
            rm.load(circle)


# --- what is wrong --------------------------------------------------------------------------------

WRONG = {
    "Y = Z": ("line", stage(FIX, "Y = Z", links="a")),
    "no rigid body": ("export the robot with physics", stage(links="")),
    "negative mass": ("</r/a>: physics:mass is negative", stage(FIX, body="physics:mass = -1")),
    "not a number": ("physics:centerOfMass has|is nan", stage(FIX, links="a",
                     body="physics:mass = 1; point3f physics:centerOfMass = (nan, 0, 0)")),
    "no such body": ("</r/f>: physics:body1 is </r/x>", stage(joint("Fixed", "f", "-x"))),
    "one body": ("both ends of the joint are on one body", stage(joint("Fixed", "f", "aa"))),
    "axis": ("physics:axis is 'W'", stage(joint("Revolute", "f", "-a",
             'token physics:axis = "W"'))),
    "rotation": ("localRot0 is zero", stage(joint("Fixed", "f", "-a",
                 frames="quatf physics:localRot0 = (0, 0, 0, 0)"))),
    "two bodies": ("physics:body1 names 2 bodies", stage(joint("Fixed", "f", "-a")
                   .replace("</r/a>", "[</r/a>, </r/b>]"))),
    "up": ("upAxis is X", stage(FIX, links="a", meta='upAxis = "X"')),
    "units": ("metersPerUnit is 0", stage(FIX, meta="metersPerUnit = 0")),
    "mimic": ("</r/j>: the joint </r/x> that it mimics", stage(FIX, joint("Revolute", "j", "ab",
              "rel newton:mimicJoint = </r/x>"))),
    "scale": ("its scale is zero", stage(FIX, links="a", body="physics:mass = 1; float3 "
              'xformOp:scale = (0, 1, 1); uniform token[] xformOpOrder = ["xformOp:scale"]')),
    "type": ("physics:mass is '", stage(FIX, links="a").replace("float physics:mass = 2",
             'string physics:mass = "much"')),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_and_prim(name):
    words, text = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        with pytest.raises(DescriptionError) as caught:
            rm.load(text)
    if name == "Y = Z":
        assert caught.value.line
    else:
        assert re.search(words, str(caught.value)), str(caught.value)


SUSPICIOUS = {
    "no mass, and no colliders": stage(FIX, body="physics:density = 0", links="a"),
    "neither moments of inertia": stage(FIX, body="physics:mass = 1", links="a"),
    "the joint is switched off": stage(FIX, joint("Fixed", "j", "ab",
                                       "bool physics:jointEnabled = 0")),
    "cone": stage(FIX, joint("Spherical", "j", "ab", "float physics:coneAngle0Limit = 30",
                  "float physics:coneAngle1Limit = 30")),
    "a distance that may vary": stage(FIX, joint("Fixed", "j", "ab"), joint(
        "Distance", "d", "-b", "float physics:minDistance = 1", "float physics:maxDistance = 2")),
    "a PhysxPhysicsGearJoint is not read": stage(FIX, 'def PhysxPhysicsGearJoint "g" {}',
                                                 links="a"),
    "a PhysicsWeirdJoint is not read": stage(FIX, 'def PhysicsWeirdJoint "g" {}', links="a"),
    "a coefficient of the joint's load": stage(FIX, joint(
        "Revolute", "j", "ab", "float physxJoint:jointFriction = 0.1")),
    "fixed to each other; it is left out": stage(FIX, joint("Fixed", "j", "ab"), joint(
        "Spherical", "k", "ab", "bool physics:excludeFromArticulation = 1")),
    "is one of 2 parts": stage(),
    "kinematic": stage(FIX, joint("Fixed", "j", "ab")).replace(
        f'"b" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{ float {BOX}',
        '"b" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) { bool physics:kinematicEnabled = 1'),
}  # fmt: skip


@pytest.mark.parametrize("words", SUSPICIOUS)
def test_nothing_is_left_out_in_silence(words):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(DescriptionError):
            rm.load(SUSPICIOUS[words])
    assert any(words in str(each.message) for each in caught), [str(x.message) for x in caught]
    assert all("prim <" in str(each.message) for each in caught)


def mutants(text: str, count: int, seed: int):
    """The text with pieces left out, put twice, or with other numbers and words."""
    rng = random.Random(seed)
    words = ["nan", "inf", "-1", "0", "1e300", "None", "</r/a>", '"X"', "[]", "true", "", "(0, 0)"]
    for _ in range(count):
        pieces = re.split(r"(\s+|[(){}=\[\]])", text)
        for _ in range(rng.randint(1, 3)):
            n = rng.randrange(len(pieces))
            match rng.randrange(4):
                case 0:
                    pieces[n] = rng.choice(words)
                case 1:
                    del pieces[n : n + rng.randint(1, 6)]
                case 2:
                    pieces[n:n] = pieces[n : n + rng.randint(1, 40)]
                case 3:
                    m = rng.randrange(len(pieces))
                    pieces[n], pieces[m] = pieces[m], pieces[n]
        yield "#usda 1.0\n" + "".join(pieces)


@pytest.mark.parametrize("count", [40, pytest.param(3000, marks=pytest.mark.tables)])
def test_mutants_give_models_or_description_errors(count, tmp_path):
    rm.write_usd(rm.robots.load("four_bar"), tmp_path / "a.usda")
    ours = (tmp_path / "a.usda").read_text().removeprefix("#usda 1.0\n")
    by_hand = stage(FIX, *(JOINTS[x][0].replace(' "j" ', f' "j{n}" ').replace("/r/b>", f"/r/{c}>")
                    for n, (x, c) in enumerate(zip(JOINTS, "bcdeghi", strict=False))),
                    links="abcdeghi").removeprefix("#usda 1.0\n")  # fmt: skip
    for text in (by_hand, ours):
        read("#usda 1.0\n" + text)
        for mutant in mutants(text, count // 2, 5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DescriptionWarning)
                with contextlib.suppress(DescriptionError):
                    read(mutant)


# --- meshes, commands, the package ----------------------------------------------------------------


def test_meshes_stand_in_the_file(tmp_path):
    """Points and faces for other readers, the path of the file for this one; foreign ones too."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.stl")
    text = urdf(FIX_URDF, links="a").replace("</inertial>", '</inertial><collision><geometry><mesh '
        'filename="box.stl" scale="1 2 1"/></geometry></collision>')  # fmt: skip
    (tmp_path / "robot.urdf").write_text(text)
    model = rm.load(tmp_path / "robot.urdf")
    rm.write_usd(model, tmp_path / "robot.usda")
    back = rm.load(tmp_path / "robot.usda")
    points = {tuple(np.round(p, 6)) for _, p in rm.contact_points(model)}
    assert {tuple(np.round(p, 6)) for _, p in rm.contact_points(back)} == points
    (shape,) = back.description.links[1].shapes
    assert (shape.file, shape.size) == ("box.stl", (1.0, 2.0, 1.0))
    foreign = rm.load(stripped(tmp_path / "robot.usda", tmp_path / "other.usda"))
    (shape,) = next(x for x in foreign.description.links if x.name == "a").shapes
    assert shape.file == "other.usda#/r/a/collision"
    assert {tuple(np.round(p, 6)) for _, p in rm.contact_points(foreign)} == points
    rm.write_urdf(foreign, tmp_path / "again.urdf")  # a mesh without a file gets one
    assert (tmp_path / "again_meshes/collision.stl").is_file()
    again = rm.load(tmp_path / "again.urdf")
    assert {tuple(np.round(p, 6)) for _, p in rm.contact_points(again)} == points
    (tmp_path / "box.stl").unlink()
    with pytest.warns(DescriptionWarning, match="other readers of the written file see nothing"):
        rm.write_usd(model, tmp_path / "robot.usda")


@pytest.mark.slow
def test_convert_and_compare(tmp_path, run):
    path = tmp_path / "bar.usdc"
    status, out, _ = run("convert", "four_bar", "-o", path)
    assert status == 0
    assert "written (usd)" in out
    assert run("compare", rm.robots.path("four_bar"), path)[0] == 0
    model = rm.robots.load("mini_cheetah")
    rm.write_usd(model, tmp_path / "tree.usda", approximate=True, fit="lumped")
    tree = rm.load(stripped(tmp_path / "tree.usda", tmp_path / "other.usda"))
    armature = {x.name: x.armature for x in tree.description.joints if x.armature}
    of_rotors = dict(zip(model.dof_names, rm.armature(model), strict=True))
    assert armature == pytest.approx({k: x for k, x in of_rotors.items() if x}, rel=1e-6)


def test_the_package_is_named_where_it_is_missing(monkeypatch, tmp_path):
    for name in [each for each in sys.modules if each.split(".")[0] == "pxr"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(MissingPackageError, match="USD files need usd-core: pip install"):
        rm.load(stage(FIX, links="a"))
    with pytest.raises(MissingPackageError, match="usd-core"):
        rm.write_usd(rm.robots.load("four_bar"), tmp_path / "a.usda")


def test_arguments():
    model = rm.robots.load("four_bar")
    with pytest.raises(TypeError, match="not to int"):
        rm.write_usd(model, 3)
    with pytest.raises(FileNotFoundError):
        rm.load("nowhere.usda")
    with pytest.raises(DescriptionError, match="binary USD"):
        rm.load(b"PXR-USDC\xff\xff")
    text = io.StringIO()
    rm.write_usd(model, text)
    assert rm.load(text.getvalue()).nv == rm.load(text.getvalue().encode()).nv == 1


def test_flat_boxes_are_read_back():
    """An extent of zero is next to nothing in USD, which has no scale of zero."""
    flat = '<visual><geometry><box size="0.2 0.1 0"/></geometry></visual>'
    robot = urdf(urdf_joint("revolute", "f", "-a", '<axis xyz="0 0 1"/><limit effort="1" velocity='
                            '"1" lower="-1" upper="1"/>'), links="a").replace(
        "</inertial></link>", f"</inertial>{flat}</link>")  # fmt: skip
    written = io.StringIO()
    rm.write_usd(rm.load(robot), written)
    (shape,) = next(x for x in read(written.getvalue()).links if x.name == "a").shapes
    assert shape.size == pytest.approx((0.2, 0.1, 0.0), abs=1e-9)


def test_transforms_that_hold_nothing_and_cameras_are_frames(tmp_path):
    body = 'def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {'
    inner = """def Xform "foot" { double3 xformOp:translate = (0.1, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Camera "eye" {}
        def Scope "group" {}
        """
    text = stage(FIX, joint("Revolute", "j", "ab", 'token physics:axis = "X"'))
    model = rm.load(text.replace(body, body + inner))
    assert {"foot", "eye"} < {frame.name for frame in model.frames}
    assert "group" not in {frame.name for frame in model.frames}
    q = np.array([0.3])
    pose = rm.frame_pose(model, q, ("b", (0.1, 0.0, 0.0)))
    np.testing.assert_allclose(rm.frame_pose(model, q, "foot"), pose, atol=1e-15)
    rm.write_usd(model, tmp_path / "a.usda")
    again = rm.load(tmp_path / "a.usda")
    np.testing.assert_allclose(rm.frame_pose(again, q, "foot"), pose, atol=1e-12)


def test_prototypes_of_point_instancers_are_no_parts():
    """The robot is that of the stage without them; a prototype was a body that floats."""
    fixed, hinge = joint("Fixed", "f", "-a"), joint("Revolute", "j", "ab")
    more = """def PointInstancer "many" {
        point3f[] positions = [(0, 0, 1), (1, 0, 1)]
        int[] protoIndices = [0, 0]
        rel prototypes = </r/many/ball>
        def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
            float physics:mass = 2
        }
    }"""
    own = rm.load(stage(fixed, hinge))
    with pytest.warns(DescriptionWarning, match="PointInstancer is not read"):
        model = rm.load(stage(fixed, hinge, more))
    assert model.dof_names == own.dof_names == ("j",)
    np.testing.assert_array_equal(rm.crba(model, [0.3]), rm.crba(own, [0.3]))
