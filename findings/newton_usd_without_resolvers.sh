#!/usr/bin/env bash
# Newton 1.8.0: add_usd without schema_resolvers takes neither PhysX's armature and velocity limit (as Isaac
# Sim's stages have them) nor MuJoCo's actuatorfrcrange (as mujoco-usd-converter writes it); nothing is said.
# With SchemaResolverPhysx and SchemaResolverMjc it takes these, but not physxJoint:jointFriction.
# Seen: armature 0 for 0.3, velocity limit 1e6 for 3.14 rad/s, effort limit 1e6 for 2 N m, friction 0 for 0.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet newton==1.8.0 mujoco==4.0.0 mujoco-warp==4.0.0 usd-core==26.11 newton-usd-schemas==0.6.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import warnings

import newton
import newton.usd
import warp as wp
from pxr import Usd

wp.config.quiet = True
STAGE = """#usda 1.0
(
    defaultPrim = "r"
    metersPerUnit = 1
    kilogramsPerUnit = 1
    upAxis = "Z"
)
def Xform "r" (
    prepend apiSchemas = ["PhysicsArticulationRootAPI"]
)
{
    def Xform "l" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
    )
    {
        float physics:mass = 2
        float3 physics:diagonalInertia = (0.02, 0.02, 0.02)
    }
    def PhysicsRevoluteJoint "j" (
        prepend apiSchemas = ["PhysxJointAPI", "MjcJointAPI"]
    )
    {
        rel physics:body1 = </r/l>
        uniform token physics:axis = "Y"
        float physics:lowerLimit = -90
        float physics:upperLimit = 90
        float physxJoint:armature = 0.3
        float physxJoint:jointFriction = 0.2
        float physxJoint:maxJointVelocity = 180
        uniform double mjc:actuatorfrcrange:min = -2
        uniform double mjc:actuatorfrcrange:max = 2
    }
}
"""
stage = Usd.Stage.CreateInMemory()
stage.GetRootLayer().ImportFromString(STAGE)


def read(**options):
    builder = newton.ModelBuilder()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        builder.add_usd(stage, **options)
    model = builder.finalize(device="cpu")
    names = ("armature", "friction", "velocity_limit", "effort_limit")
    found = {name: float(getattr(model, f"joint_{name}").numpy()[0]) for name in names}
    print(found, [str(each.message) for each in said])
    return found, said


print("newton", newton.__version__)
bare, said = read()
full, _ = read(schema_resolvers=[newton.usd.SchemaResolverNewton(), newton.usd.SchemaResolverPhysx(),
                                 newton.usd.SchemaResolverMjc()])
assert bare["armature"] == 0 and bare["velocity_limit"] == bare["effort_limit"] == 1e6 and not said
assert abs(full["armature"] - 0.3) < 1e-6 and abs(full["velocity_limit"] - 3.14159) < 1e-4 and full["effort_limit"] == 2
assert bare["friction"] == full["friction"] == 0
PY
