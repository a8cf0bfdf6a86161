"""Reference motions with contact, friction and loops: closed forms, and accurate integrations.

Nothing of the package under test is imported. Each function returns a :class:`Motion`: times,
positions and velocities by row, energy. Those that integrate take the number of ``steps``, so that
halving these tells their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from oracle import Oracle
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]
G = 9.81


class Motion(NamedTuple):
    """States at times (n,): positions and velocities (n, ...), energy (n,)."""

    times: Array
    positions: Array
    velocities: Array
    energy: Array


def rk4(
    rate: Callable[[Array], Array], x: Array, duration: float, steps: int
) -> tuple[Array, Array]:
    """Times and states of ẋ = rate(x) by the classical method."""
    h, states = duration / steps, [x]
    for _ in range(steps):
        a = rate(x)
        b = rate(x + 0.5 * h * a)
        c = rate(x + 0.5 * h * b)
        d = rate(x + h * c)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
        states.append(x)
    return np.linspace(0.0, duration, steps + 1), np.array(states)


# ---- (i) a sphere over a ridge -------------------------------------------------------------------


def sphere_over_ridges(
    profile: Sequence[tuple[float, float]],
    radius: float,
    start: float,
    speed: float,
    duration: float,
    *,
    rolls: bool = True,
    steps: int = 4000,
) -> Motion:
    """A homogeneous sphere of 1 kg on a convex profile of straight pieces, without loss.

    Its centre follows the lines at a distance of its radius and arcs about the ridges, with s̈ = -g
    z'(s) / (1 + 2/5), or without 2/5 where it slides without friction. ValueError where it would
    leave the profile.

    Args:
        profile: Points (x, z) from left to right; slopes fall.
        radius: Of the sphere [m].
        start: x of the centre; on the first piece.
        speed: To the right [m/s].
        duration: [s].
        rolls: Without slip, or else without friction.
        steps: Of Runge–Kutta's method, over s.

    Returns:
        motion: Positions (n, 2) of the centre, velocities (n, 2); energy with z from 0.
    """
    slopes = [math.atan2(z2 - z, x2 - x) for (x, z), (x2, z2) in pairwise(profile)]
    if any(b > a for a, b in pairwise(slopes)):
        raise ValueError("slopes fall from left to right")
    pieces: list[tuple[float, Callable[[float], tuple[float, float, float, float]]]] = []
    s = 0.0
    for n, ((x, z), (x2, z2)) in enumerate(pairwise(profile)):
        angle = slopes[n]
        x0, z0 = x - radius * math.sin(angle), z + radius * math.cos(angle)

        def line(
            t: float, x0: float = x0, z0: float = z0, angle: float = angle
        ) -> tuple[float, float, float, float]:
            return x0 + t * math.cos(angle), z0 + t * math.sin(angle), angle, 0.0

        pieces.append((s, line))
        s += math.hypot(x2 - x, z2 - z)
        if n + 1 < len(slopes):

            def arc(
                t: float, x: float = x2, z: float = z2, angle: float = angle
            ) -> tuple[float, float, float, float]:
                now = angle - t / radius
                return x - radius * math.sin(now), z + radius * math.cos(now), now, 1.0 / radius

            pieces.append((s, arc))
            s += radius * (angle - slopes[n + 1])

    def at(s: float) -> tuple[float, float, float, float]:
        first, piece = [each for each in pieces if each[0] <= s or each is pieces[0]][-1]
        return piece(s - first)

    spin = 0.4 if rolls else 0.0
    first = (start - at(0.0)[0]) / math.cos(slopes[0])

    def rate(x: Array) -> Array:
        _, _, angle, curvature = at(float(x[0]))
        if G * math.cos(angle) < x[1] ** 2 * curvature:
            raise ValueError("it leaves the profile")
        return np.array([x[1], -G * math.sin(angle) / (1 + spin)])

    times, states = rk4(rate, np.array([first, speed]), duration, steps)
    places = np.array([at(s) for s in states[:, 0]])
    along = np.stack([np.cos(places[:, 2]), np.sin(places[:, 2])], axis=1)
    energy = 0.5 * (1 + spin) * states[:, 1] ** 2 + G * places[:, 1]
    return Motion(times, places[:, :2], states[:, 1:] * along, energy)


# ---- (ii) a ball that bounces --------------------------------------------------------------------


def bouncing_ball(
    height: float, times: Array, *, restitution: float = 1.0, mass: float = 1.0
) -> Motion:
    """Dropped at rest from ``height`` of its lowest point: closed form, rebound by rebound."""
    places, speeds = np.zeros((2, len(times)))
    begin, position, speed = 0.0, height, 0.0
    end = math.sqrt(2 * height / G)
    while True:
        here = (times >= begin) & (times < end)
        t = times[here] - begin
        places[here] = position + speed * t - 0.5 * G * t * t
        speeds[here] = speed - G * t
        if end > times[-1]:
            break
        speed = restitution * (G * (end - begin) - speed)
        if speed < 1e-9:  # it rests from here on
            break
        begin, position, end = end, 0.0, end + 2 * speed / G
    return Motion(times, places, speeds, mass * (0.5 * speeds**2 + G * places))


# ---- (iii) springs with dry friction -------------------------------------------------------------


def dry_friction_spring(
    times: Array,
    *,
    mass: float = 1.0,
    stiffness: float = 100.0,
    friction: float = 4.0,
    start: float = 0.5,
) -> Motion:
    """A mass on a spring with a constant friction [N], released at rest: half cycle by half cycle.

    The amplitude falls by 2 friction / stiffness in each; it rests where the spring is weaker than
    the friction. With the defaults it rests at 0.0200 m from 6 π / 10 s on.
    """
    rate, offset = math.sqrt(stiffness / mass), friction / stiffness
    places, speeds = np.full(len(times), start), np.zeros(len(times))
    begin, position = 0.0, start
    while abs(position) > offset * (1 + 1e-12) and begin <= times[-1]:
        centre = math.copysign(offset, position)
        here = (times >= begin) & (times < begin + math.pi / rate)
        phase = rate * (times[here] - begin)
        places[here] = centre + (position - centre) * np.cos(phase)
        speeds[here] = -(position - centre) * rate * np.sin(phase)
        begin, position = begin + math.pi / rate, 2 * centre - position
        places[times >= begin] = position
    energy = 0.5 * mass * speeds**2 + 0.5 * stiffness * places**2
    return Motion(times, places, speeds, energy)


# ---- (iv) a leg that collapses -------------------------------------------------------------------


class Leg(NamedTuple):
    """A hip on a vertical rail, a thigh and a shank (homogeneous rods), a point foot."""

    hip: float = 5.0  # kg
    rod: float = 1.0  # kg each
    length: float = 0.3  # m each

    @property
    def text(self) -> str:
        """Its URDF: slider (up), hip and knee (positive: swings towards x).

        The shank's angle from below is hip + knee.
        """
        moment = self.rod * self.length**2 / 12
        rods = "".join(
            f'<link name="{name}"><inertial><origin xyz="0 0 {-self.length / 2}"/><mass '
            f'value="{self.rod}"/><inertia ixx="{moment}" iyy="{moment}" izz="0" ixy="0" ixz="0" '
            'iyz="0"/></inertial></link>'
            for name in ("thigh", "shank")
        )
        joints = "".join(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0 0 {z}"/><axis xyz="{axis}"/>{limit}</joint>'
            for name, kind, parent, child, z, axis, limit in (
                ("slider", "prismatic", "rail", "body", 0, "0 0 1", "<limit/>"),
                ("hip", "continuous", "body", "thigh", 0, "0 -1 0", ""),
                ("knee", "continuous", "thigh", "shank", -self.length, "0 -1 0", ""),
            )
        )
        return (
            f'<robot name="leg"><link name="rail"/><link name="body"><inertial><mass '
            f'value="{self.hip}"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/>'
            f"</inertial></link>{rods}{joints}</robot>"
        )

    @property
    def foot(self) -> tuple[str, tuple[float, float, float]]:
        """The contact point: link and offset."""
        return "shank", (0.0, 0.0, -self.length)


def collapsing_leg(
    leg: Leg, thigh: float, shank: float, duration: float, *, steps: int = 4000
) -> tuple[Motion, Array]:
    """The leg, at rest with its foot on frictionless ground, collapses through its toggle.

    Minimal coordinates are the angles (a, b) of thigh and shank from below, z = l (cos a + cos b)
    the hip's height: the foot slides. ValueError where the foot would lift off.

    Args:
        leg: The robot.
        thigh: Angle of the thigh at the start [rad].
        shank: Angle of the shank.
        duration: [s].
        steps: Of Runge–Kutta's method.

    Returns:
        motion: Positions (n, 3) and velocities: slider, hip and knee, as the URDF has them.
        forces: Of the ground on the foot (n,) [N].
    """
    m, big, size = leg.rod, leg.hip, leg.length
    moment = m * size**2 / 12

    def parts(a: float, b: float) -> tuple[Array, list[Array]]:
        """Jacobians by (ȧ, ḃ) of hip, thigh's and shank's centres, and their changes' gradients."""
        sa, ca, sb, cb = math.sin(a), math.cos(a), math.sin(b), math.cos(b)
        hip = np.array([[0.0, 0.0], [-size * sa, -size * sb]])
        upper = hip + size / 2 * np.array([[ca, 0.0], [sa, 0.0]])
        lower = hip + size * np.array([[ca, 0.5 * cb], [sa, 0.5 * sb]])
        changes = [
            np.array([[0.0, 0.0], [-size * ca, -size * cb]]),
            np.array([[-size / 2 * sa, 0.0], [-size / 2 * ca, -size * cb]]),
            np.array([[-size * sa, -size / 2 * sb], [0.0, -size / 2 * cb]]),
        ]  # times (ȧ², ḃ²)
        return np.array([hip, upper, lower]), changes

    masses = (big, m, m)

    def accelerations(x: Array) -> Array:
        jacobians, changes = parts(*x[:2])
        square, mass, force = x[2:] ** 2, moment * np.eye(2), np.zeros(2)
        for each, jacobian, change in zip(masses, jacobians, changes, strict=True):
            mass += each * jacobian.T @ jacobian
            force -= each * jacobian.T @ (change @ square + [0.0, G])
        return np.linalg.solve(mass, force)

    def push(x: Array) -> float:
        jacobians, changes = parts(*x[:2])
        a, square = accelerations(x), x[2:] ** 2
        return float(
            sum(
                each * (G + (jacobian @ a + change @ square)[1])
                for each, jacobian, change in zip(masses, jacobians, changes, strict=True)
            )
        )

    times, states = rk4(
        lambda x: np.concatenate([x[2:], accelerations(x)]),
        np.array([thigh, shank, 0.0, 0.0]), duration, steps,
    )  # fmt: skip
    forces = np.array([push(x) for x in states])
    if forces.min() < 0.0:
        raise ValueError(f"the foot lifts off at {times[np.argmax(forces < 0.0)]:.4f} s")
    a, b, da, db = states.T
    hip = size * (np.cos(a) + np.cos(b))
    energy = big * G * hip + m * G * (2 * hip - size * (1.5 * np.cos(a) + 0.5 * np.cos(b)))
    for n, x in enumerate(states):
        jacobians, _ = parts(*x[:2])
        energy[n] += 0.5 * moment * (x[2:] @ x[2:])
        energy[n] += sum(
            0.5 * each * np.sum((jacobian @ x[2:]) ** 2)
            for each, jacobian in zip(masses, jacobians, strict=True)
        )
    rise = -size * (np.sin(a) * da + np.sin(b) * db)
    motion = Motion(
        times, np.stack([hip, a, b - a], axis=1), np.stack([rise, da, db - da], axis=1), energy
    )
    return motion, forces


# ---- (v) linkages --------------------------------------------------------------------------------


def linkage_motion(
    text: str | bytes,
    positions: Mapping[str, float],
    independent: Mapping[str, float],
    duration: float,
    *,
    forces: Mapping[str, float] | None = None,
    gravity: Sequence[float] | None = None,
    times: Array | None = None,
    tolerance: float = 1e-12,
) -> Motion:
    """A robot with loops, in all of its joints with multipliers, by DOP853.

    Dead points of the independent joints are nothing special to it; at change points it goes on
    straight. Joints have one freedom each.

    Args:
        text: URDF+.
        positions: Of all joints; loops are closed with the independent ones held.
        independent: Their velocities [rad/s] at the start.
        duration: [s].
        forces: Constant, at joints [N m]; 0 where there is none.
        gravity: Instead of the file's.
        times: Instead of 101 equal ones.
        tolerance: Relative and absolute, of a step.

    Returns:
        motion: Positions and velocities (n, joints) of the moving joints in the file's order.
    """
    robot = Oracle(text, gravity=gravity)
    columns = robot.columns(*independent)
    q = robot.close(robot.state(positions), columns)
    names = list(robot.unstack(np.zeros(robot.nv)))
    start = robot.stack(robot.positions(q))
    tau = robot.stack(dict(forces or {}))
    _, jacobian, _ = robot.constraint(q, np.zeros(robot.nv))
    rest = np.setdiff1d(np.arange(robot.nv), columns)
    speeds = robot.stack(independent)
    speeds[rest] = -np.linalg.lstsq(jacobian[:, rest], jacobian @ speeds, rcond=1e-9)[0]

    def state(x: Array) -> Array:
        return robot.state(dict(zip(names, x.tolist(), strict=True)))

    def rate(_: float, x: Array) -> Array:
        v = x[robot.nv :]
        return np.concatenate([v, robot.forward(state(x[: robot.nv]), v, tau)])

    at = np.linspace(0.0, duration, 101) if times is None else times
    solution = solve_ivp(
        rate, (0.0, float(at[-1])), np.concatenate([start, speeds]), "DOP853", at,
        rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    x, v = solution.y[: robot.nv].T, solution.y[robot.nv :].T
    energy = [sum(robot.energy(state(p), s)) for p, s in zip(x, v, strict=True)]
    return Motion(at, x, v, np.array(energy))


# ---- (vi) friction and compliance ----------------------------------------------------------------


def pulled_block(
    times: Array,
    *,
    mass: float = 2.0,
    rate: float = 10.0,
    static: float = 0.6,
    kinetic: float = 0.4,
) -> Motion:
    """A block at rest that a growing force rate · t [N/s] pulls: it sticks, then slides."""
    begins = static * mass * G / rate
    t = np.maximum(times - begins, 0.0)
    force = static * mass * G - kinetic * mass * G  # what is left when it begins to slide
    speeds = (force * t + 0.5 * rate * t**2) / mass
    places = (0.5 * force * t**2 + rate * t**3 / 6) / mass
    return Motion(times, places, speeds, 0.5 * mass * speeds**2)


def block_on_belt(
    times: Array, *, belt: float = 1.5, speed: float = 0.0, kinetic: float = 0.4, mass: float = 2.0
) -> Motion:
    """A block put on a moving belt with a velocity of its own: slides until it moves with it."""
    a = math.copysign(kinetic * G, belt - speed)
    sticks = abs(belt - speed) / (kinetic * G)
    t = np.minimum(times, sticks)
    places = speed * t + 0.5 * a * t**2 + belt * np.maximum(times - sticks, 0.0)
    speeds = speed + a * t
    return Motion(times, places, speeds, 0.5 * mass * speeds**2)


def stick_slip(
    times: Array,
    *,
    mass: float = 1.0,
    stiffness: float = 100.0,
    belt: float = 0.1,
    static: float = 0.6,
    kinetic: float = 0.4,
) -> Motion:
    """A block on a belt, held by a spring: it rides until the spring tears it off, slips, rides.

    It starts with the belt, at the spring's rest. In each slip it goes through a part of a cycle
    about kinetic m g / k until it has the belt's velocity again.
    """
    rate = math.sqrt(stiffness / mass)
    middle, tear = kinetic * mass * G / stiffness, static * mass * G / stiffness
    places, speeds = np.zeros((2, len(times)))
    begin, position = 0.0, 0.0
    while begin <= times[-1]:
        slip = begin + (tear - position) / belt
        here = (times >= begin) & (times < slip)
        places[here], speeds[here] = position + belt * (times[here] - begin), belt
        # x = middle + A cos φ with A cos φ0 = tear - middle, -A ω sin φ0 = belt
        size = math.hypot(tear - middle, belt / rate)
        phase = math.atan2(-belt / rate, tear - middle)
        # φ0 < 0; the velocity -A ω sin φ is the belt's again at φ = π - φ0
        end = slip + (math.pi - 2 * phase) / rate
        here = (times >= slip) & (times < end)
        turned = phase + rate * (times[here] - slip)
        places[here] = middle + size * np.cos(turned)
        speeds[here] = -size * rate * np.sin(turned)
        begin, position = end, middle - (tear - middle)
    energy = 0.5 * mass * speeds**2 + 0.5 * stiffness * places**2
    return Motion(times, places, speeds, energy)


def compliant_ball(
    height: float,
    duration: float,
    *,
    mass: float = 1.0,
    stiffness: float = 1e4,
    damping: float = 0.0,
    steps: int = 4000,
) -> Motion:
    """Dropped at rest from ``height``: force max(stiffness · p + damping · ṗ, 0) at penetration p.

    Positions are the lowest point's. Without damping the energy (the spring's with it) stays; at
    rest p = m g / stiffness.
    """

    def force(z: float, speed: float) -> float:
        return max(-stiffness * z - damping * speed, 0.0) if z < 0.0 else 0.0

    def meets(_: float, x: Array) -> float:
        return float(x[0])

    def lets_go(_: float, x: Array) -> float:
        return float(stiffness * x[0] + damping * x[1])

    def rate(_: float, x: Array) -> list[float]:
        return [x[1], force(x[0], x[1]) / mass - G]

    times = np.linspace(0.0, duration, steps + 1)
    solution = solve_ivp(
        rate, (0.0, duration), [height, 0.0], "DOP853", times, events=[meets, lets_go],
        rtol=1e-12, atol=1e-14, max_step=duration / steps,
    )  # fmt: skip
    z, v = solution.y
    energy = mass * (0.5 * v**2 + G * z) + 0.5 * stiffness * np.minimum(z, 0.0) ** 2
    return Motion(times, z, v, energy)
