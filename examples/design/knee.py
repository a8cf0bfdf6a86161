"""A knee driven through a rod: gear, linkage and rotor for a squat and a jump, by gradients.

A leg of two links of 0.3 m under a trunk of 12 kg squats slowly and jumps. The knee's motor sits in
the thigh: a gear turns a crank, and a rod leads to the shank. Free are the ratio of the gear, the
radius of the crank, the rod's length, its attachment to the shank and the rotor's inertia.
Motors of one length have torque and mass as the square root of their rotor's inertia (both go with
the square of the radius, inertia with its fourth power), so that a larger motor has more torque to
give, and more to turn and to carry. Sought is the least peak, or root mean square, of the share of
its torque that the motor must give, with limits of its speed and of the linkage's ratio.

SLSQP with exact derivatives through the closure of the loop (:func:`robomodel.sensitivity`) stands
beside differential evolution.

    python examples/design/knee.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution, minimize

import robomodel as rm

Array = NDArray[np.float64]
LENGTH, MID = 0.3, 1.15  # of the links [m], and the knee at which crank and arm stand alike [rad]
INERTIA, TORQUE, MASS = 2e-4, 6.0, 0.6  # of the file's motor [kg m², N m, kg]
FASTEST = 400.0  # of motors [rad/s]
LEAST, MOST = 0.4, 2.5  # of the linkage's ratio, |crank / knee|
NAMES = ("gear.crank", "rod.predecessor.x", "rod.successor.x", "rod.successor.z", "rod.length",
         "rotor.Iyy")  # fmt: skip
BOUNDS = np.array([(-25.0, -4.0), (-0.06, -0.03), (-0.05, -0.01), (-0.06, -0.03), (0.24, 0.26),
                   (5e-5, 1e-2)])  # fmt: skip
SIZES = np.array([10.0, 0.03, 0.03, 0.03, 0.03, 5e-4])  # what changes alike
BROKEN = 1e3  # the cost of a linkage that does not reach


def knee(radius: float = 0.05, ratio: float = 9.0) -> rm.Model:
    """Trunk on a vertical rail, thigh, shank, crank and rotor."""

    def link(name: str, mass: float, z: float, inertia: float) -> str:
        return (
            f'<link name="{name}"><inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/><inertia '
            f'ixx="{inertia}" ixy="0" ixz="0" iyy="{inertia}" iyz="0" izz="{inertia}"/>'
            "</inertial></link>"
        )

    def joint(name: str, kind: str, parent: str, child: str, z: float, more: str = "") -> str:
        axis = "0 0 1" if kind == "prismatic" else "0 1 0"
        return (
            f'<joint name="{name}" type="{kind}" {more}><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="0 0 {z}"/><axis xyz="{axis}"/>'
            + ('<limit lower="-1" upper="1"/>' if kind == "prismatic" else "")
            + ('<motor effort="6" velocity="400"/>' if name == "rotor" else "")
            + "</joint>"
        )

    arm = -radius * np.cos(MID), -radius * np.sin(MID)
    return rm.load(
        '<robot name="knee"><link name="rail"/>'
        + link("trunk", 12.0, 0.0, 0.05) + link("thigh", 1.2, -0.12, 0.01)
        + link("shank", 0.5, -0.13, 0.005) + link("crank", 0.05, 0.0, 2e-5)
        + link("rotor", MASS, 0.0, INERTIA)
        + joint("height", "prismatic", "rail", "trunk", 0.0)
        + joint("hip", "continuous", "trunk", "thigh", 0.0)
        + joint("knee", "continuous", "thigh", "shank", -LENGTH, 'independent="true"')
        + joint("crank", "continuous", "thigh", "crank", -0.05, 'independent="false"')
        + joint("rotor", "continuous", "thigh", "rotor", -0.05, 'independent="false"')
        + '<coupling name="gear"><predecessor link="crank"/><successor link="rotor"/>'
        f'<ratio value="{ratio}"/></coupling>'
        '<loop name="rod" type="rod" length="0.25">'
        f'<predecessor link="crank"><origin xyz="{-radius} 0 0"/></predecessor>'
        f'<successor link="shank"><origin xyz="{arm[0]} 0 {arm[1]}"/></successor></loop></robot>'
    )  # fmt: skip


def smooth(start: float, end: float, duration: float, count: int = 15) -> tuple[Array, ...]:
    """A knee's angle, rate and acceleration from rest to rest, without jumps of acceleration."""
    s = np.linspace(0.0, 1.0, count)
    size = end - start
    at = start + size * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = size / duration * 30.0 * s**2 * (1.0 - s) ** 2
    pull = size / duration**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
    return at, rate, pull


def motions() -> tuple[Array, Array, Array]:
    """The knee's angle, rate and acceleration: down and up in a second each, then a jump."""
    parts = [smooth(0.4, 2.0, 1.0), smooth(2.0, 0.4, 1.0), smooth(1.9, 0.5, 0.2)]
    angle, rate, pull = (np.concatenate(x) for x in zip(*parts, strict=True))
    return angle, rate, pull


@dataclass
class Knee:
    """Shares of the motor's torque over the motions, and the other limits, by the numbers x."""

    model: rm.Model
    q: Array
    v: Array
    a: Array
    evaluations: int = 0
    seen: tuple[bytes, tuple[Array, ...]] | None = field(default=None, repr=False)

    @property
    def start(self) -> Array:
        """The file's values."""
        listed = rm.parameters(self.model, geometry=True)
        return np.array([listed[name] for name in NAMES])

    def results(self, x: Array, slopes: bool) -> tuple[Array, ...]:
        """Shares, speeds and ratios (n,), and their derivatives (n, k); nan where out of reach."""
        key = x.tobytes() + bytes([slopes])
        if self.seen is not None and self.seen[0] == key:
            return self.seen[1]
        self.evaluations += 1
        mass = MASS * np.sqrt(x[-1] / INERTIA)
        given = dict(zip((*NAMES, "rotor.mass"), (*x, mass), strict=True))
        model, knee, height = self.model, *map(self.model.dof_names.index, ("knee", "height"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            q = model.close(self.q, parameters=given)
            foot = ("shank", (0.0, 0.0, -LENGTH))
            lift = rm.jacobian(model, q, foot, reference="local_world_aligned", parameters=given)
            arm = lift[:, 5, knee]  # of the ground's vertical force, which holds the trunk
            force = rm.rnea(model, q, self.v, self.a, parameters=given)
            torque = force[:, knee] - arm * force[:, height]
            rate = rm.actuator_map(model, q, parameters=given)[:, knee, -1]
            most = TORQUE * np.sqrt(x[-1] / INERTIA)
            share, speed = torque / rate / most, rate * self.v[:, knee]
            ratio = np.abs(rate / x[0])
            result: tuple[Array, ...] = share, speed, ratio
            if slopes:
                of_force, of_map = (
                    rm.sensitivity(model, name, arguments, [*given], parameters=given)
                    for name, arguments in (
                        ("rnea", (q, self.v, self.a)),
                        ("actuator_map", (q,)),
                    )
                )
                by = of_force[:, knee] - arm[:, None] * of_force[:, height]
                by[:, -2] += 0.5 * mass / x[-1] * by[:, -1]
                by, turn = by[:, :-1], of_map[:, knee, -1, :-1]
                by_share = (by - (torque / rate)[:, None] * turn) / (rate * most)[:, None]
                by_share[:, -1] -= 0.5 * share / x[-1]
                by_ratio = np.sign(rate / x[0])[:, None] * turn / x[0]
                by_ratio[:, 0] -= ratio / x[0]
                result += by_share, turn * self.v[:, knee, None], by_ratio
        self.seen = key, result
        return result


def problem() -> Knee:
    """The knee with its motions."""
    model = knee()
    angle, rate, pull = motions()
    half, nv = 0.5 * angle, model.nv
    v, a = np.zeros((2, len(angle), nv))
    names = model.dof_names
    height = 2.0 * LENGTH * np.cos(half)  # above the foot, which stands
    first, second = -LENGTH * np.sin(half), -0.5 * LENGTH * np.cos(half)
    for rows, (h, k) in (
        (v, (first * rate, rate)),
        (a, (first * pull + second * rate**2, pull)),
    ):
        rows[:, names.index("height")], rows[:, names.index("knee")] = h, k
        rows[:, names.index("hip")] = -0.5 * k
    guess, q = model.configuration({"knee": float(angle[0]), "hip": float(-half[0])}), []
    for k, h in zip(angle, height, strict=True):
        at = {"knee": float(k), "hip": float(-0.5 * k), "height": float(h)}
        guess = model.configuration(at, guess=guess)
        q.append(guess)
    return Knee(model, np.array(q), v, a)


Cost = Callable[[Array], float]


def cost_of(kind: str) -> Cost:
    """The peak of shares, or their root mean square."""
    if kind == "peak":
        return lambda share: float(np.max(np.abs(share)))
    return lambda share: float(np.sqrt(np.mean(share**2)))


def by_gradients(one: Knee, kind: str) -> Array:
    """SLSQP; of the peak by a bound t on all shares, which is minimised."""
    k = len(NAMES)

    def of(z: Array) -> tuple[Array, ...]:
        return tuple(np.nan_to_num(x, nan=BROKEN) for x in one.results(z[:k] * SIZES, True))

    def limits(z: Array) -> Array:
        share, speed, ratio, *_ = of(z)
        bound = [] if kind == "rms" else [z[k] - share, z[k] + share]
        return np.concatenate(
            [*bound, 1.0 - speed / FASTEST, 1.0 + speed / FASTEST, ratio - LEAST, MOST - ratio]
        )

    def by_limits(z: Array) -> Array:
        *_, share, speed, ratio = (x * SIZES for x in of(z)[3:])
        speed = speed / FASTEST
        if kind == "rms":
            return np.concatenate([-speed, speed, ratio, -ratio])
        rows = np.concatenate([-share, share, -speed, speed, ratio, -ratio])
        ones = np.concatenate([np.ones(2 * len(share)), np.zeros(4 * len(share))])
        return np.column_stack([rows, ones])

    def cost(z: Array) -> float:
        return float(z[k]) if kind == "peak" else cost_of(kind)(of(z)[0])

    def by_cost(z: Array) -> Array:
        if kind == "peak":
            return np.eye(k + 1)[k]
        share, _, _, slope, *_ = of(z)
        return np.asarray(share @ (slope * SIZES) / (len(share) * cost(z)))

    start = one.start / SIZES
    bounds = [tuple(b) for b in BOUNDS / SIZES[:, None]]
    if kind == "peak":
        start = np.append(start, cost_of(kind)(one.results(one.start, True)[0]))
        bounds.append((0.0, None))
    found = minimize(
        cost, start, jac=by_cost, bounds=bounds, method="SLSQP",
        constraints={"type": "ineq", "fun": limits, "jac": by_limits},
        options={"maxiter": 200, "ftol": 1e-6},
    )  # fmt: skip
    return np.asarray(found.x[:k] * SIZES)


def penalised(one: Knee, kind: str, x: Array) -> float:
    """The cost with ten times what is beyond the limits."""
    share, speed, ratio = one.results(np.asarray(x), False)
    if not np.all(np.isfinite(share)):
        return BROKEN
    beyond = np.concatenate([np.abs(speed) / FASTEST - 1.0, LEAST - ratio, ratio - MOST])
    return cost_of(kind)(share) + 10.0 * max(0.0, float(np.max(beyond)))


def without_gradients(one: Knee, kind: str, seed: int = 0) -> Array:
    """The same by differential evolution."""
    found = differential_evolution(
        lambda x: penalised(one, kind, x), [tuple(b) for b in BOUNDS], seed=seed, tol=1e-5,
        polish=False, maxiter=120, popsize=8,
    )  # fmt: skip
    return np.asarray(found.x)


def main() -> None:
    """Print both problems' answers."""
    one = problem()
    file = one.results(one.start, False)[0]
    print(f"{'':24}peak    rms   evaluations   " + "  ".join(NAMES))
    print(f"{'as drawn':24}{cost_of('peak')(file):.3f}  {cost_of('rms')(file):.3f}")
    for kind in ("peak", "rms"):
        for label, solve in (("SLSQP", by_gradients), ("evolution", without_gradients)):
            one.evaluations = 0
            x = solve(one, kind)
            count, share = one.evaluations, one.results(x, False)[0]
            print(
                f"{'least ' + kind + ', ' + label:24}{cost_of('peak')(share):.3f}  "
                f"{cost_of('rms')(share):.3f} {count:8}      {np.array2string(x, precision=5)}"
            )


if __name__ == "__main__":
    main()
