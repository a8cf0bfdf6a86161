"""A parallel ankle for a wanted polygon of torques: cranks, rods and anchors, by gradients.

The shipped ``parallel_ankle``: two motors in the shank turn pitch and roll of a foot through two
rods. Over the whole range of poses the motors shall give every torque of a polygon of pitch and
roll, which they do exactly if they give its corners; sought is the least peak of the share of their
torque that this takes (at most 1 where the motors suffice). Free are, alike on both sides, the
radius of the cranks, the place of the rods' anchors on the foot and by how much the rods are longer
than their motors are high. Limits are the cranks' range, the motors' speed at wanted rates of the
foot, 40° of transmission angle at both ends of rods, and the rods' clearance from the shank.

SLSQP with exact derivatives through the closure of the loops (:func:`robomodel.sensitivity`) stands
beside differential evolution.

    python examples/design/ankle.py
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution, minimize

import robomodel as rm

Array = NDArray[np.float64]
TORQUES = np.array([[52.0, 0.0], [18.0, 16.0], [-30.0, 0.0], [18.0, -16.0]])  # (pitch, roll) [N m]
RATES = np.array([[12.0, 4.0], [12.0, -4.0]])  # of the foot, and their opposites [rad/s]
MOTOR, FASTEST = 2.5, 250.0  # [N m], [rad/s]
REACH = 1.2  # of cranks [rad]
TRANSMISSION = np.sin(np.radians(40.0))
CLEAR = 0.045  # of the middle of rods from the shank's axis [m]
SHARES = np.linspace(0.0, 1.0, 5)  # the points of a rod that are looked at
SIDES = {"left": (1.0, 0.20), "right": (-1.0, 0.28)}  # sign of y, height of the motor [m]
HUB, WIDTH = 0.035, 0.04  # y of the motors and of the cranks' tips [m]
FREE = ("crank", "anchor x", "anchor y", "anchor z", "slack")  # [m]
START = np.array([0.05, -0.05, 0.04, 0.0, 0.0])  # the file's
BOUNDS = np.array([(0.025, 0.07), (-0.07, -0.03), (0.025, 0.06), (-0.03, 0.03), (-0.02, 0.02)])
SIZE = 0.01  # what changes alike [m]
BROKEN = 1e3  # the cost of rods that do not reach


def by_free() -> tuple[tuple[str, ...], Array]:
    """Names of the file's parameters, and their derivatives by the free numbers."""
    names, rows = [], []
    for side, (sign, _) in SIDES.items():
        for name, column, slope in (
            ("predecessor.x", 0, -1.0), ("successor.x", 1, 1.0), ("successor.y", 2, sign),
            ("successor.z", 3, 1.0), ("length", 4, 1.0),
        ):  # fmt: skip
            names.append(f"{side}_rod.{name}")
            rows.append(slope * np.eye(len(FREE))[column])
    return tuple(names), np.array(rows)


NAMES, SLOPES = by_free()


def turned(angle: Array) -> tuple[Array, Array]:
    """Rotations about y (n, 3, 3), and their derivatives by the angle."""
    c, s, o = np.cos(angle), np.sin(angle), np.zeros_like(angle)
    rows = np.array([[c, o, s], [o, o + 1.0, o], [-s, o, c]])
    slopes = np.array([[-s, o, c], [o, o, o], [-c, o, -s]])
    return np.moveaxis(rows, -1, 0), np.moveaxis(slopes, -1, 0)


def along(r: Array, by_r: Array, t: Array, by_t: Array) -> tuple[Array, Array]:
    """How far unit vectors agree (n,), of r and of t made one, and the derivatives (n, k)."""
    size = np.linalg.norm(t, axis=-1, keepdims=True)
    unit = t / size
    inner = np.sum(r * unit, axis=-1)
    across = (r - inner[:, None] * unit) / size
    return inner, np.einsum("ni,nik->nk", unit, by_r) + np.einsum("ni,nik->nk", across, by_t)


@dataclass
class Ankle:
    """Shares of the motors' torque over the poses, and the limits, by the numbers x."""

    model: rm.Model
    q: Array
    evaluations: int = 0
    seen: tuple[bytes, tuple[Array, ...]] | None = field(default=None, repr=False)

    def results(self, x: Array, slopes: bool) -> tuple[Array, ...]:
        """Shares (m,) and limits (l,), which shall not be negative, and their derivatives by x."""
        key = x.tobytes() + bytes([slopes])
        if self.seen is not None and self.seen[0] == key:
            return self.seen[1]
        self.evaluations += 1
        listed = rm.parameters(self.model, geometry=True)
        file = np.array([listed[name] for name in NAMES])
        given = dict(zip(NAMES, file + SLOPES @ (x - START), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            q = self.model.close(self.q, parameters=given)
            B = rm.actuator_map(self.model, q, parameters=given)
            B = np.where(np.isfinite(B), B, np.eye(2))
            if slopes:
                by_B, by_q = (
                    rm.sensitivity(self.model, name, q, NAMES, parameters=given) @ SLOPES
                    for name in ("actuator_map", "joint_positions")
                )
            else:  # the limits' derivatives are then of no use
                by_B, by_q = np.zeros((*B.shape, len(x))), np.zeros((*q.shape, len(x)))
        inverse = np.linalg.inv(B)
        share = np.einsum("nij,cj->nci", inverse, TORQUES) / MOTOR
        by_share = -np.einsum("nij,njlk,ncl->ncik", inverse, by_B, share)
        speed = np.einsum("nji,cj->nci", B, RATES) / FASTEST
        by_speed = np.einsum("njik,cj->ncik", by_B, RATES) / FASTEST
        speed, by_speed = speed.reshape(-1), by_speed.reshape(-1, len(x))
        parts = [(1.0 - speed, -by_speed), (1.0 + speed, by_speed)]
        for side in SIDES:
            parts += self.linkage(side, x, q, by_q)
        limits, by_limits = (np.concatenate(part) for part in zip(*parts, strict=True))
        broken = np.isnan(q).any(axis=-1)
        share[broken] = BROKEN
        result = share.reshape(-1), limits, by_share.reshape(-1, len(x)), by_limits
        self.seen = key, tuple(np.nan_to_num(each) for each in result)
        return self.seen[1]

    def linkage(self, side: str, x: Array, q: Array, by_q: Array) -> list[tuple[Array, Array]]:
        """Limits of a crank's range, of a rod's transmission angles and clearance."""
        sign, height = SIDES[side]
        column = self.model.joint_names.index(f"{side}_motor")
        angle, by_angle = q[:, column], by_q[:, column]
        turn, by_turn = turned(angle)
        arm, by_arm = np.array([-x[0], sign * (WIDTH - HUB), 0.0]), np.zeros((3, len(x)))
        by_arm[0, 0] = -1.0
        lever = turn @ arm
        by_lever = turn @ by_arm + (by_turn @ arm)[:, :, None] * by_angle[:, None]
        tip = lever + np.array([0.0, sign * HUB, height])
        foot, by_foot = np.array([x[1], sign * x[2], x[3]]), np.zeros((3, len(x)))
        by_foot[[0, 1, 2], [1, 2, 3]] = 1.0, sign, 1.0
        pose = rm.frame_pose(self.model, self.q, "foot")[:, :3, :3]  # about the origin
        end, by_end = pose @ foot, pose @ by_foot
        length = np.linalg.norm(end - tip, axis=-1)
        rod = (end - tip) / length[:, None]
        by_rod = by_end - by_lever
        by_rod -= rod[:, :, None] * np.einsum("ni,nik->nk", rod, by_rod)[:, None]
        by_rod /= length[:, None, None]
        swing = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])  # y ×
        parts = [(1.0 - angle / REACH, -by_angle / REACH), (1.0 + angle / REACH, by_angle / REACH)]
        for point, by_point in ((lever, by_lever), (end, by_end)):
            agree, by_agree = along(rod, by_rod, point @ swing.T, swing @ by_point)
            way = np.sign(agree)
            parts.append((way * agree - TRANSMISSION, way[:, None] * by_agree))
        for s in SHARES:
            at, by_at = (1.0 - s) * tip + s * end, (1.0 - s) * by_lever + s * by_end
            far = np.linalg.norm(at[:, :2], axis=-1)
            by_far = np.einsum("ni,nik->nk", at[:, :2] / far[:, None], by_at[:, :2])
            parts.append((far / CLEAR - 1.0, by_far / CLEAR))
        return parts


def problem() -> Ankle:
    """The shipped ankle at poses over its range."""
    model = rm.robots.load("parallel_ankle")
    poses = [(p, r) for p in np.linspace(-0.6, 0.4, 5) for r in (-0.25, 0.0, 0.25)]
    q = [model.configuration({"pitch": float(p), "roll": r}) for p, r in poses]
    return Ankle(model, np.array(q))


def by_gradients(one: Ankle) -> Array:
    """SLSQP of a bound t on all shares, which is minimised."""
    k = len(FREE)

    def limits(z: Array) -> Array:
        share, others, *_ = one.results(z[:k] * SIZE, True)
        return np.concatenate([z[k] - share, z[k] + share, others])

    def by_limits(z: Array) -> Array:
        _, _, share, others = (each * SIZE for each in one.results(z[:k] * SIZE, True))
        ones = np.concatenate([np.ones(2 * len(share)), np.zeros(len(others))])
        return np.column_stack([np.concatenate([-share, share, others]), ones])

    start = np.append(START / SIZE, np.max(np.abs(one.results(START, True)[0])))
    found = minimize(
        lambda z: float(z[k]), start, jac=lambda z: np.eye(k + 1)[k], method="SLSQP",
        bounds=[*map(tuple, BOUNDS / SIZE), (0.0, None)],
        constraints={"type": "ineq", "fun": limits, "jac": by_limits},
        options={"maxiter": 100, "ftol": 1e-8},
    )  # fmt: skip
    return np.asarray(found.x[:k] * SIZE)


def penalised(one: Ankle, x: Array) -> float:
    """The peak share with ten times what is beyond the limits."""
    share, limits, *_ = one.results(np.asarray(x), False)
    return float(np.max(np.abs(share)) + 10.0 * max(0.0, -np.min(limits)))


def without_gradients(one: Ankle, seed: int = 0) -> Array:
    """The same by differential evolution."""
    found = differential_evolution(
        lambda x: penalised(one, x), [*map(tuple, BOUNDS)], seed=seed, tol=1e-6, polish=False,
        maxiter=150, popsize=10,
    )  # fmt: skip
    return np.asarray(found.x)


def main() -> None:
    """Print the answers."""
    one = problem()
    print(f"{'':12}peak share   least limit   evaluations   {', '.join(FREE)} [mm]")
    for label, solve in (
        ("as drawn", lambda _: START),
        ("SLSQP", by_gradients),
        ("evolution", without_gradients),
    ):
        one.evaluations = 0
        x = solve(one)
        count, (share, limits, *_) = one.evaluations, one.results(x, False)
        print(
            f"{label:12}{np.max(np.abs(share)):10.5f}   {np.min(limits):11.1e}   {count:11}   "
            f"{np.array2string(1e3 * x, precision=3, suppress_small=True)}"
        )


if __name__ == "__main__":
    main()
