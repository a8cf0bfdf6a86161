"""Losses of gears, and dry friction in their place, on a leg that lands and on one that is pushed.

A body of 5 kg on a rail, thigh and shank of 0.25 m, rotors behind gears of 9 with efficiencies 0.8
(driving) and 0.7 (driven back). MuJoCo has no losses that follow the load; ``frictionloss`` is put
at each joint with what the gear loses there at the torque of standing, once as soft as MuJoCo has
it and once as stiff as it stays stable. Landing: the leg falls 0.15 m with PD loops. Pushed: motors
keep the torque of standing, and the least vertical force is looked for that moves the body by 2 mm
in a quarter of a second.

    python examples/losses_beside_mujoco.py
"""

from __future__ import annotations

import io

import mujoco
import numpy as np
from numpy.typing import NDArray

import robomodel as rm

Array = NDArray[np.float64]
RATIO, LENGTH, HIP = 9.0, 0.25, 0.6  # gears, links [m], and half the angle of the bent leg [rad]
NAMES = ("rail", "hip", "knee")
BENT = np.array([2.0 * LENGTH * np.cos(HIP), HIP, -2.0 * HIP])
LOSSES = 'efficiency="0.8" backdrive="0.7"'
LOST = 0.3  # share of the standing torque that the gears lose as the leg gives way
KP, KD = 60.0, 1.5
STIFF = {"solref_friction": [0.001, 1.0], "solimp_friction": [0.999, 0.9999, 0.001, 0.5, 2.0]}
HARD = {"solref": [0.002, 1.0], "solimp": [0.99, 0.999, 0.001, 0.5, 2.0], "condim": 3,
        "friction": [1.0, 0.005, 1e-4]}  # fmt: skip


def leg(body: float = 5.0, losses: str = "") -> rm.Model:
    """A leg in the x-z plane, with a body of this mass."""

    def link(name: str, mass: float, z: float, moment: float) -> str:
        return (
            f'<link name="{name}"><inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/><inertia '
            f'ixx="{moment}" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
            "</link>"
        )

    rotor = f'<axis xyz="0 1 0"/><rotor inertia="1e-4" ratio="{RATIO}" {losses}/></joint>'
    return rm.load(
        f'<robot name="leg"><link name="ground"/>{link("body", body, 0, 0.05)}'
        f"{link('thigh', 0.6, -0.12, 0.004)}{link('shank', 0.2, -0.12, 0.002)}"
        '<joint name="rail" type="prismatic"><parent link="ground"/><child link="body"/>'
        '<axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="0" velocity="100"/></joint>'
        f'<joint name="hip" type="continuous"><parent link="body"/><child link="thigh"/>{rotor}'
        '<joint name="knee" type="continuous"><parent link="thigh"/><child link="shank"/>'
        f'<origin xyz="0 0 {-LENGTH}"/>{rotor}</robot>'
    )


def standing(model: rm.Model) -> Array:
    """Torques that hold the body, the foot below the hip."""
    gravity = rm.rnea(model, BENT, np.zeros(3), np.zeros(3))
    lift = np.array([1.0, 0.0, -LENGTH * np.sin(HIP)])  # the foot's vertical rate
    torque: Array = gravity - lift * gravity[0]
    return torque


def in_mujoco(model: rm.Model, friction: Array, *, stiff: bool) -> mujoco.MjModel:
    """The leg in MuJoCo, with a foot, hard ground and dry friction at hip and knee."""
    text = io.StringIO()
    rm.write_mjcf(model, text)
    spec = mujoco.MjSpec.from_string(text.getvalue())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], **HARD)
    spec.body("shank").add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.005, 0, 0], pos=[0, 0, 0.005 - LENGTH], **HARD
    )
    spec.option.timestep, spec.option.impratio = 2.5e-4, 10.0
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    for name, force in zip(NAMES[1:], friction, strict=True):
        joint = spec.joint(name)
        joint.frictionloss = force
        for word, numbers in STIFF.items() if stiff else ():
            setattr(joint, word, numbers)
    return spec.compile()


def tau(q: Array, v: Array, hold: Array, gains: float) -> Array:
    """Torques of standing, with loops to the bent leg."""
    loops = gains * (KP * (BENT - q) - KD * v)
    return np.array([0.0, *(hold + loops)[1:]])


def moved(
    model: rm.Model, friction: Array | None, duration: float, *, height: float = 0.0,
    push: float = 0.0, gains: float = 0.0, stiff: bool = False,
) -> tuple[Array, float]:  # fmt: skip
    """Heights of the body, the knee's greatest torque; ``friction`` in MuJoCo, or losses here."""
    start, hold = BENT + np.array([height, 0.0, 0.0]), standing(model)
    if friction is None:
        motion = rm.simulate(
            model, start, tau=lambda _, q, v: tau(q, v, hold, gains), duration=duration, step=5e-4,
            f_ext={"body": [0, 0, 0, 0, 0, push]}, ground=rm.Ground(friction=1.0),
            contacts=[("shank", (0.0, 0.0, -LENGTH))],
        )  # fmt: skip
        q, v = motion.q, motion.v
    else:
        there = in_mujoco(model, friction, stiff=stiff)
        data = mujoco.MjData(there)
        at = [there.joint(name).qposadr[0] for name in NAMES]
        dofs = [there.joint(name).dofadr[0] for name in NAMES]
        data.qpos[at] = start
        for name, x in zip(NAMES[1:], start[1:], strict=True):
            data.qpos[there.joint(f"{name}_rotor").qposadr[0]] = RATIO * x
        states = []
        while data.time < duration - 1e-9:
            states.append((data.qpos[at], data.qvel[dofs]))
            data.qfrc_applied[dofs] = tau(*states[-1], hold, gains)
            data.qfrc_applied[dofs[0]] += push
            mujoco.mj_step(there, data)
        q, v = np.swapaxes(states, 0, 1)
    torque = [tau(a, b, hold, gains)[2] for a, b in zip(q, v, strict=True)]
    return q[:, 0], float(np.max(np.abs(torque)))


def least_push(model: rm.Model, friction: Array | None, sign: float, *, stiff: bool) -> float:
    """The least force on the body that moves it, by bisection up to 128 N."""
    low, high = 0.0, 128.0
    while high - low > 0.25:
        middle = 0.5 * (low + high)
        heights, _ = moved(model, friction, 0.25, push=sign * middle, stiff=stiff)
        low, high = (low, middle) if abs(heights[-1] - BENT[0]) > 2e-3 else (middle, high)
    return 0.5 * (low + high)


def main() -> dict[str, tuple[float, ...]]:
    """Print and return what the leg does, by model."""
    still = np.abs(standing(leg())[1:])
    cases: dict[str, tuple[str, Array | None, bool]] = {
        "no losses": ("", None, False),
        "no losses, MuJoCo": ("", 0.0 * still, False),
        "losses": (LOSSES, None, False),
        "frictionloss, MuJoCo": ("", LOST * still, False),
        "stiff frictionloss": ("", LOST * still, True),
    }
    found: dict[str, tuple[float, ...]] = {}
    print(f"{'':22} gives way  knee's torque   pushed down / up [N] with 5 kg    with 15 kg")
    for name, (losses, friction, stiff) in cases.items():
        heights, torque = moved(
            leg(5.0, losses), friction, 0.6, height=0.15, gains=1.0, stiff=stiff
        )  # fmt: skip
        pushes = [
            least_push(leg(body, losses), friction, sign, stiff=stiff)
            for body in (5.0, 15.0) for sign in (-1.0, 1.0) if "no" not in name
        ]  # fmt: skip
        found[name] = 1e3 * (BENT[0] - float(np.min(heights))), torque, *pushes
        words = [f"{x:10.1f}" for x in found[name]]
        print(f"{name:22} {words[0]} mm {words[1]} N m {''.join(words[2:])}", flush=True)
    return found


if __name__ == "__main__":
    main()
