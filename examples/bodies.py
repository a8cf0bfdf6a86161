"""Bodies that touch each other: a stack of boxes, with the contacts that the package coal finds.

``rm.simulate`` takes a function of q and v that gives the pairs of links that are near: two links,
a point, a normal, a gap. This one asks coal (``pip install coal``, or what Pinocchio brings along)
for the pairs' patches of contact, for any boxes, spheres, cylinders and capsules of a file.

    python examples/bodies.py stack.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

try:
    import coal
except ImportError:
    sys.exit("this example needs coal: pip install '.[collision]'")

Array = NDArray[np.float64]
NEAR = 0.01  # [m]: pairs that are farther apart are left out
SIDES = (0.3, 0.24, 0.18)  # [m]


def stack() -> rm.Model:
    """Boxes, each free to move."""
    text = '<robot name="stack"><link name="world"/>'
    for n, side in enumerate(SIDES):
        mass = 500.0 * side**3
        moment = mass * side**2 / 6
        box = f'<geometry><box size="{side} {side} {side}"/></geometry>'
        text += (
            f'<link name="box{n}"><inertial><mass value="{mass}"/><inertia ixx="{moment}" '
            f'iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
            f"<visual>{box}</visual><collision>{box}</collision></link>"
            f'<joint name="free{n}" type="floating"><parent link="world"/>'
            f'<child link="box{n}"/></joint>'
        )
    return rm.load(text + "</robot>")


def geometry(shape: object) -> coal.ShapeBase:
    """coal's word for a shape of the description."""
    match shape.kind:
        case "box":
            return coal.Box(*shape.size)
        case "sphere":
            return coal.Sphere(*shape.size)
        case "cylinder":
            return coal.Cylinder(*shape.size)
        case "capsule":
            return coal.Capsule(*shape.size)
        case other:
            raise ValueError(f"a {other} is not for this example")


def finder(model: rm.Model, friction: float) -> Callable[[Array, Array], list[rm.Contact]]:
    """The function for ``contacts=``: pairs of the links' shapes, and the shapes on the floor."""
    shapes = [
        (link.name, shape, geometry(shape))
        for link in model.description.links
        for shape in link.shapes
        if shape.role == "collision"
    ]
    floor = coal.Box(10.0, 10.0, 1.0)
    request = coal.CollisionRequest()
    request.security_margin = NEAR
    patches = coal.ContactPatchRequest()

    def place(q: Array, link: str, shape: object) -> coal.Transform3s:
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = shape.origin.rotation, shape.origin.xyz
        pose = rm.frame_pose(model, q, link) @ own
        return coal.Transform3s(pose[:3, :3], pose[:3, 3])

    def contacts(q: Array, v: Array) -> list[rm.Contact]:
        under = ("world", floor, coal.Transform3s(np.eye(3), np.array([0.0, 0.0, -0.5])))
        placed = [under, *((link, own, place(q, link, shape)) for link, shape, own in shapes)]
        found = []
        for (other, below, at), (link, above, here) in combinations(placed, 2):
            result = coal.CollisionResult()
            if other == link or not coal.collide(below, at, above, here, request, result):
                continue
            gap = result.getContact(0).penetration_depth
            surfaces = coal.ContactPatchResult()
            coal.computeContactPatch(below, at, above, here, result, patches, surfaces)
            for n in range(surfaces.numContactPatches()):
                patch = surfaces.getContactPatch(n)
                normal, said = patch.getNormal(), None if other == "world" else other
                found += [
                    rm.Contact(
                        link, patch.getPoint(k), normal, gap, said, friction, 0.0, (other, link, k)
                    )
                    for k in range(patch.size())
                ]
        return found

    return contacts


def settling(duration: float = 0.6, step: float = 2e-3) -> rm.Trajectory:
    """The boxes fall onto each other from a centimetre apart, the lowest with a push."""
    model = stack()
    q, height = model.neutral(), 0.0
    for n, side in enumerate(SIDES):
        height += 0.01
        q[7 * n + 2] = height + side / 2
        height += side
    v = np.zeros(model.nv)
    v[3] = 0.3
    return rm.simulate(model, q, v, duration=duration, step=step, contacts=finder(model, 0.6))


def main() -> None:
    """Let them fall, and tell of it."""
    motion = settling()
    assert motion.contact_residual is not None
    heights = motion.q[-1, 2::7] - np.cumsum(SIDES) + np.array(SIDES) / 2
    print("height errors of the boxes:", ", ".join(f"{1e3 * h:+.3f} mm" for h in heights))
    print(f"largest velocity at the end {np.abs(motion.v[-1]).max():.1e}, contacts solved to "
          f"{motion.contact_residual.max():.0e}")  # fmt: skip
    if len(sys.argv) > 1:
        motion.animate(sys.argv[1])


if __name__ == "__main__":
    main()
