#!/usr/bin/env bash
# Newton 1.8.0: if a stage of USD was opened before newton is imported, add_usd passes over NewtonMimicAPI
# without a word: its schemas are registered with USD too late. Two hinges, the second follows the first.
# Seen: joint_mimic_joint names the leader if newton is imported first, and is -1 for all joints if pxr is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet newton==1.8.0 mujoco==4.0.0 mujoco-warp==4.0.0 usd-core==26.11 newton-usd-schemas==0.6.0 numpy==2.4.6
cd "$work"
cat > robot.py <<'PY'
"""A stage with two hinges, of which the second follows the first twice as fast."""
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

stage = Usd.Stage.CreateNew("robot.usda")
UsdGeom.SetStageUpAxis(stage, "Z")
UsdGeom.SetStageMetersPerUnit(stage, 1.0)
root = UsdGeom.Xform.Define(stage, "/r")
stage.SetDefaultPrim(root.GetPrim())
UsdPhysics.ArticulationRootAPI.Apply(root.GetPrim())
for name in ("base", "a", "b"):
    prim = UsdGeom.Xform.Define(stage, f"/r/{name}").GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(prim)
    mass = UsdPhysics.MassAPI.Apply(prim)
    mass.CreateMassAttr(1.0)
    mass.CreateDiagonalInertiaAttr(Gf.Vec3f(0.1, 0.1, 0.1))
fixed = UsdPhysics.FixedJoint.Define(stage, "/r/fixed")
fixed.CreateBody1Rel().SetTargets(["/r/base"])
for name, parent, child in (("j", "base", "a"), ("k", "a", "b")):
    joint = UsdPhysics.RevoluteJoint.Define(stage, f"/r/{name}")
    joint.CreateAxisAttr("Z")
    joint.CreateBody0Rel().SetTargets([f"/r/{parent}"])
    joint.CreateBody1Rel().SetTargets([f"/r/{child}"])
prim = joint.GetPrim()
prim.AddAppliedSchema("NewtonMimicAPI")
prim.CreateRelationship("newton:mimicJoint", False).SetTargets(["/r/j"])
prim.CreateAttribute("newton:mimicCoef1", Sdf.ValueTypeNames.Float, False).Set(2.0)
stage.Save()
PY
cat > read.py <<'PY'
import sys

if sys.argv[1] == "pxr":
    from pxr import Usd

    stage = Usd.Stage.Open("robot.usda")
    stage.GetPrimAtPath("/r/k").GetAppliedSchemas()
    [prim.HasAPI("PhysicsRigidBodyAPI") for prim in stage.Traverse()]
import newton
import warp as wp

wp.config.quiet = True
builder = newton.ModelBuilder()
builder.add_usd("robot.usda")
leaders = builder.finalize(device="cpu").joint_mimic_joint.numpy().tolist()
print("newton", newton.__version__, sys.argv[1], "first:", leaders)
assert (max(leaders) >= 0) == (sys.argv[1] == "newton")
PY
"$work/venv/bin/python" robot.py
"$work/venv/bin/python" read.py newton
"$work/venv/bin/python" read.py pxr
