"""Bodies that touch each other: a stack of boxes that fall onto each other and a floor.

``Collider`` finds where the links' collision shapes are near, a function for ``contacts=`` of
``rm.simulate``. Boxes, cylinders and meshes need coal (``pip install '.[collision]'``).

    python examples/bodies.py stack.html
"""

from __future__ import annotations

import sys

import numpy as np

import robomodel as rm
from robomodel.motion.collision import Collider

SIDES = (0.3, 0.24, 0.18)  # [m]


def stack() -> rm.Model:
    """Boxes, each free to move, above a floor that is fixed."""
    text = (
        '<robot name="stack"><link name="floor"><collision><origin xyz="0 0 -0.5"/><geometry>'
        '<box size="10 10 1"/></geometry></collision></link>'
    )
    for n, side in enumerate(SIDES):
        mass = 500.0 * side**3
        moment = mass * side**2 / 6
        box = f'<geometry><box size="{side} {side} {side}"/></geometry>'
        text += (
            f'<link name="box{n}"><inertial><mass value="{mass}"/><inertia ixx="{moment}" '
            f'iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
            f"<visual>{box}</visual><collision>{box}</collision></link>"
            f'<joint name="free{n}" type="floating"><parent link="floor"/>'
            f'<child link="box{n}"/></joint>'
        )
    return rm.load(text + "</robot>")


def settling(duration: float = 0.6, step: float = 2e-3) -> rm.motion.Trajectory:
    """The boxes fall onto each other from a centimetre apart, the lowest with a push."""
    model = stack()
    q, height = model.neutral(), 0.0
    for n, side in enumerate(SIDES):
        height += 0.01
        q[7 * n + 2] = height + side / 2
        height += side
    v = np.zeros(model.nv)
    v[3] = 0.3
    return rm.simulate(
        model, q, v, duration=duration, step=step, contacts=Collider(model, friction=0.6)
    )


def main() -> None:
    """Let them fall, and tell of it."""
    motion = settling()
    assert motion.contact_residual is not None
    heights = motion.q[-1, 2::7] - np.cumsum(SIDES) + np.array(SIDES) / 2
    print("height errors of the boxes:", ", ".join(f"{1e3 * h:+.3f} mm" for h in heights))
    print(f"largest velocity at the end {np.abs(motion.v[-1]).max():.1e}, contacts solved to "
          f"{motion.contact_residual.max():.0e}")  # fmt: skip
    if len(sys.argv) > 1:
        rm.views.play(motion, sys.argv[1])


if __name__ == "__main__":
    main()
