"""The front of a digger: what three cylinders are worth at the teeth of the bucket.

Boom, stick and bucket of a crawler excavator of about 20 t, with generic dimensions. A cylinder
pushes with its whole bore and pulls with the annulus that its rod leaves; the pump's flow makes it
slower the way it is stronger. So efforts and speeds have a lower and an upper limit, and the boom's
two cylinders are one of twice the area. The bucket's cylinder acts through a rocker and a link.

Printed are the forces at the teeth that each cylinder gives at the limit of its pressure with the
others locked (the stick's is the crowd force, the bucket's the breakout force), and what is sure of
the torques and speeds of the joints over their ranges.

    python examples/design/digger.py
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
PRESSURE, FLOW = 34e6, 7e-3  # of the relief valves [Pa], of both pumps together [m³/s]
JOINTS = ("boom", "stick", "bucket")
TEETH = (1.5, 0.0, 0.0)  # on the bucket, from its pin [m]
BORES = {  # number, bore and rod [m], least and greatest length between the pins [m]
    "boom_cylinder": (2, 0.12, 0.085, 1.68, 2.66),
    "stick_cylinder": (1, 0.135, 0.095, 2.38, 3.68),
    "bucket_cylinder": (1, 0.115, 0.08, 1.62, 2.66),
}


def areas(name: str) -> tuple[float, float]:
    """Areas of a cylinder's bore, and of the annulus about its rod [m²]."""
    count, bore, rod, *_ = BORES[name]
    return count * pi / 4 * bore**2, count * pi / 4 * (bore**2 - rod**2)


def digger() -> rm.Model:
    """Base, boom, stick and bucket in the x-z plane; angles are positive upwards."""

    def link(name: str, mass: float, x: float, z: float, moment: float) -> str:
        return (
            f'<link name="{name}"><inertial><origin xyz="{x} 0 {z}"/><mass value="{mass}"/>'
            f'<inertia ixx="{moment / 10}" ixy="0" ixz="0" iyy="{moment}" iyz="0" izz="{moment}"/>'
            "</inertial></link>"
        )

    def pin(name: str, parent: str, child: str, x: float, z: float, at: float) -> str:
        return (
            f'<joint name="{name}" type="continuous" independent="false"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="{x} 0 {z}"/><axis xyz="0 -1 0"/>'
            f'<initial position="{at}"/></joint>'
        )

    def cylinder(name: str, base: str, x: float, z: float, at: float, mass: float) -> str:
        """Barrel on a pin of ``base``, and the rod, whose frame is its eye; ``at``: its angle."""
        bore, annulus = areas(name)
        short, long = BORES[name][3:]
        limits = (
            f'lower="{short}" upper="{long}" effort="{PRESSURE * bore}" velocity="{FLOW / bore}" '
            f'effort_lower="{-PRESSURE * annulus}" velocity_lower="{-FLOW / annulus}"'
        )
        return (
            link(f"{name}_barrel", 0.6 * mass, 0.5 * short, 0, 0.05 * mass * short**2)
            + link(f"{name}_rod", 0.4 * mass, -0.5 * short, 0, 0.03 * mass * short**2)
            + pin(f"{name}_pin", base, f"{name}_barrel", x, z, at)
            + f'<joint name="{name}" type="prismatic" independent="true">'
            f'<parent link="{name}_barrel"/><child link="{name}_rod"/><axis xyz="1 0 0"/>'
            f'<limit {limits}/><initial position="{0.5 * (short + long)}"/></joint>'
        )

    def eye(name: str, one: str, other: str, x: float, z: float, length: float = 0.0) -> str:
        return (
            f'<loop name="{name}" type="continuous"><predecessor link="{one}">'
            f'<origin xyz="{length} 0 0"/></predecessor><successor link="{other}">'
            f'<origin xyz="{x} 0 {z}"/></successor><axis xyz="0 -1 0"/></loop>'
        )

    return rm.load(
        '<robot name="digger"><link name="base"/>'
        + link("boom", 1700, 2.6, 0.5, 4500)
        + link("stick", 850, 0.9, 0.1, 750)
        + link("bucket", 900, 0.6, 0.1, 220)
        + link("rocker", 60, 0.31, 0, 2)
        + link("link", 80, 0.31, 0, 3)
        + pin("boom", "base", "boom", 0, 0, 0.3)
        + cylinder("boom_cylinder", "base", 0.5, -0.55, 1.1, 320)
        + eye("boom_eye", "boom_cylinder_rod", "boom", 2.1, 0.75)
        + pin("stick", "boom", "stick", 5.7, 0, -1.7)
        + cylinder("stick_cylinder", "boom", 2.9, 1.0, 0.0, 250)
        + eye("stick_eye", "stick_cylinder_rod", "stick", -0.75, 0.3)
        + pin("bucket", "stick", "bucket", 2.9, 0, -0.8)
        + pin("rocker", "stick", "rocker", 2.45, 0, 1.6)
        + cylinder("bucket_cylinder", "stick", 0.35, 0.55, 0.0, 150)
        + eye("bucket_eye", "bucket_cylinder_rod", "rocker", 0.62, 0)
        + pin("link", "rocker", "link", 0.62, 0, -1.8)
        # the ear of the bucket, 0.45 m from its pin, 1.8 rad before the teeth
        + eye("ear", "link", "bucket", 0.45 * np.cos(1.8), 0.45 * np.sin(1.8), 0.62)
        + "</robot>"
    )


def at_teeth(model: rm.Model, q: Array) -> dict[str, tuple[float, float]]:
    """Greatest forces of each cylinder at the teeth, square to its circle, as it pulls and pushes.

    The others are locked: its force times its rate is that at the teeth times their speed. The
    sign is that of the cylinder's rate.
    """
    least, greatest = rm.torque_limits(model, q)
    rows = rm.jacobian(model, q, ("bucket", TEETH))[3:]
    speeds = np.linalg.norm(rows, axis=0)
    return {
        name: (float(least[i] / speeds[i]), float(greatest[i] / speeds[i]))
        for i, name in enumerate(model.dof_names)
    }


def main() -> dict[str, dict[str, tuple[float, float]]]:
    """Print the forces and return them by pose."""
    model = digger()
    poses = {"reaching": (2.1, 2.6, 1.9), "digging": (1.9, 3.1, 2.1), "curled": (2.2, 3.5, 2.6)}
    found = {}
    print("pull and push of each cylinder at the teeth [kN]")
    print(f"{'':10} {'height':>8}" + "".join(f"{name:>19}" for name in BORES))
    for pose, lengths in poses.items():
        q = model.configuration(dict(zip(BORES, lengths, strict=True)))
        height = rm.frame_pose(model, q, ("bucket", TEETH))[2, 3]
        found[pose] = at_teeth(model, q)
        pairs = (f"{low / 1e3:10.1f} {high / 1e3:8.1f}" for low, high in found[pose].values())
        print(f"{pose:10} {height:6.2f} m{''.join(pairs)}")
    print("joints over their ranges: what is sure of torque [kN m] and speed [rad/s], both ways")
    for joint in rm.actuation(model, JOINTS).joints:
        limits = joint.limits
        print(f"{joint.joint:10} {limits.lower:6.2f} to {limits.upper:5.2f} rad "
              f"{limits.least_effort / 1e3:8.1f} {limits.effort / 1e3:7.1f} "
              f"{limits.least_velocity:8.2f} {limits.velocity:6.2f}")  # fmt: skip
    return found


if __name__ == "__main__":
    main()
