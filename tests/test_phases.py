"""Dry friction and losses by adaptive methods: closed forms, located events, energy balance."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from test_losses import (
    ACCELERATIONS,
    BOTH,
    LEG,
    STATIC,
    N,
    at_rocker,
    four_bar,
    gear_text,
    leg_forces,
    link,
    mid,
    pushed,
    screw,
)

import robomodel as rm
from robomodel.motion.limits import Acting
from robomodel.motion.phases import Rubbing
from robomodel.motion.trajectory import Trajectory

Array = NDArray[np.float64]
Force = Callable[[float], list[float]]


# ---- closed forms --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_a_gear_under_load(method: str) -> None:
    """Driven, let down, overhauling, braked, held, at both ends of the range in which it is."""
    for rate, torque, expected in ACCELERATIONS:
        motion = rm.simulate(
            rm.load(gear_text(BOTH)), [0.0], [float(rate)], tau=[N * torque], f_ext=pushed(4.0),
            duration=1e-3, method=method,
        )  # fmt: skip
        assert (motion.v[-1, 0] - rate) / 1e-3 == pytest.approx(expected, abs=1e-11)


def test_a_sinusoid_that_turns_round() -> None:
    """Events of the closed form: rests, breaks loose, λ turns, rests and goes on backwards …"""
    model = rm.load(gear_text('efficiency="0.5" backdrive="0.5"', 'inertia="1e-3"'))
    motion = rm.simulate(
        model, [0.0], tau=lambda t, q, v: [N * 0.5 * np.sin(2.0 * np.pi * t)],
        f_ext=pushed(2.0), duration=2.0, method="dop853", rtol=1e-12, atol=1e-14,
    )  # fmt: skip
    assert motion.q[-1, 0] == pytest.approx(-2.48995961774, abs=2e-11)
    assert motion.v[-1, 0] == pytest.approx(-5.07158290158, abs=2e-11)
    events = [
        0.031938022, 0.065494940, 0.542961139, 0.637578415, 0.957038861, 1.355465298, 1.508056869,
        1.542961139, 1.957038861,
    ]  # fmt: skip
    away = np.abs(motion.times - np.array(events)[:, None]).min(axis=1)
    assert away.max() < 1e-9  # the digits of the table
    assert np.all(motion.at([0.04, 0.05, 0.06])[1] == pytest.approx(0.0, abs=1e-15))


def test_a_self_locking_screw() -> None:
    """It is raised, holds, is lowered; with the motor off it comes to rest and stays."""
    model, ratio = screw(20.0), 2.0 * np.pi / 5e-3
    cases = [
        (1.0, 0.6, 3.69407420372), (0.0, 0.0, 0.0), (-1.0, -0.0490427090868, 0.0),
        (-1.0, -0.2, -7.49782241395),
    ]  # fmt: skip
    options = {"duration": 1e-3, "method": "dop853"}
    for rate, torque, expected in cases:
        motion = rm.simulate(model, [0.0], [rate], tau=[ratio * torque], **options)
        assert (motion.v[-1, 0] - rate) / 1e-3 == pytest.approx(expected, abs=1e-10)
    slowing = 2.43587786458
    motion = rm.simulate(model, [0.0], [-1.0], duration=1.0, method="dop853")
    assert np.abs(motion.times - 1.0 / slowing).min() < 1e-11
    assert motion.q[-1, 0] == pytest.approx(-0.5 / slowing, abs=1e-11)
    assert motion.v[-1, 0] == 0.0


def test_a_screw_beyond_the_bound_stops_at_once() -> None:
    """Painlevé: no finite acceleration with the motor off; of two solutions the driving one."""
    model, ratio = screw(201.092), 2.0 * np.pi / 5e-3
    wedged = rm.simulate(model, [0.0], [-1.0], duration=1e-3, method="dop853")
    assert np.abs(wedged.v[1:]).max() < 1e-15
    driven = rm.simulate(model, [0.0], [-1.0], tau=[-3.0 * ratio], duration=1e-4, method="dop853")
    assert driven.v[-1, 0] == pytest.approx(-1.00166468, abs=1e-8)


def test_four_bar_legs_at_their_static_limits() -> None:
    """The load at the shank that the motor drives, holds, and that turns it when it is off."""
    model = four_bar()
    for psi, drives, holds, moves in STATIC:
        q = at_rocker(model, psi)
        sense = float(np.sign(model.joint_velocities(q, [1.0])["shank"]))
        loads = [(drives, 0.5, 1.0), (holds, 0.5, -1.0), (moves, 0.0, -1.0)]
        for load, torque, way in loads:
            for share in (1.0 - 1e-8, 1.0 + 1e-8):  # the tables have nine digits
                wrench = {"rocker": [0.0, 0.0, -load * share, 0.0, 0.0, 0.0]}
                motion = rm.simulate(
                    model, q, tau=[8.0 * torque * sense], f_ext=wrench, duration=1e-3,
                    method="dop853",
                )  # fmt: skip
                rate, moving = sense * way * motion.v[-1, 0], (way < 0.0) == (share > 1.0)
                assert rate > 1e-12 if moving else abs(rate) < 1e-15


# ---- energy --------------------------------------------------------------------------------------


def differential(friction: str = "", bearing: str = "") -> rm.Model:
    """Two rotors that both turn two joints."""
    rotor = '<joint name="{0}" type="continuous" independent="false"><parent link="base"/>'
    rotor += '<child link="{0}"/><axis xyz="0 1 0"/>' + bearing + "</joint>"
    coupling = '<coupling name="of_{0}" efficiency="0.8" backdrive="0.6"><joint name="{0}"/>'
    coupling += '<joint name="pitch" ratio="10"/><joint name="roll" ratio="{1}"/></coupling>'
    return rm.load(
        f"""<robot name="wrist"><link name="base"/>{link("a", 1.0, 0.1, "0.1 0 0")}
{link("b", 1.0, 0.1, "0 0 0.1")}{link("one", 0.1, 1e-4)}{link("two", 0.1, 1e-4)}
<joint name="pitch" type="continuous"><parent link="base"/><child link="a"/>
<axis xyz="0 1 0"/>{friction}</joint>
<joint name="roll" type="continuous"><parent link="a"/><child link="b"/>
<axis xyz="1 0 0"/>{friction}</joint>{rotor.format("one")}{rotor.format("two")}
{coupling.format("one", 10)}{coupling.format("two", -10)}</robot>"""
    )


def lost_and_done(motion: Trajectory, force: Force, acting: Acting) -> tuple[float, float, float]:
    """Work of friction and dampers, of motors, and the sum of the latter's magnitudes.

    Friction is what the law has for the state at each time, whatever the phase of the motion.
    """
    model, (places, weights) = motion.model, np.polynomial.legendre.leggauss(12)
    rubbing = Rubbing.of(model, acting)
    assert rubbing is not None
    lost, done, size = 0.0, 0.0, 0.0
    for first, last, piece in zip(
        motion.dense.ts[:-1], motion.dense.ts[1:], motion.dense.interpolants, strict=True
    ):
        for place, weight in zip(places, weights, strict=True):
            t, share = first + 0.5 * (1.0 + place) * (last - first), 0.5 * weight * (last - first)
            row = piece.at(t)[: model.nq + model.nv]
            q, v = motion.at(t)
            at = rubbing.at(piece.coordinates.row(row), np.array(force(t)), {})
            still = np.abs(at.speeds) < 1e-10
            kept = np.zeros(len(at.load), dtype=bool)
            phase, jammed = at.next(np.sign(at.speeds), np.ones(len(at.load)), still, kept)
            assert not np.any(jammed)
            power = at.forces(phase) * at.speeds
            assert power.max(initial=0.0) < 1e-12
            shifts = sum(
                0.5 * joint.law.friction * model.joint_velocities(q, v)[joint.name]
                for joint in model.joints if joint.law and joint.law.friction
            )  # fmt: skip
            lost += share * float(power.sum() + rm.passive_force(model, q, v) @ v + shifts)
            motors = float(np.array(force(t)) @ v)
            done, size = done + share * motors, size + share * abs(motors)
    return lost, done, size


FRICTION = '<dynamics friction="0.2" damping="0.1"/>'
STRIBECK = (
    '<dynamics friction="0.3" friction_reverse="0.2" static_friction="0.4" '
    'stribeck_velocity="0.5" damping="0.05" damping_reverse="0.1"/>'
)
GEAR = gear_text('efficiency="0.7" backdrive="0.6" friction="0.003"', 'inertia="1e-3"')
BARE = re.sub(r"<rotor[^>]*/>", "<friction/>", gear_text())
TILTED = (9.81 * np.cos(1.9), 9.81 * np.sin(1.9), 0.0)


def swings(size: float, rate: float, mean: float = 0.0) -> Force:
    return lambda t: [mean + size * np.sin(rate * t)]


CASES: dict[str, tuple[Callable[[], rm.Model], list[float], Force, float]] = {
    "belt over a joint": (lambda: rm.load(LEG), [0.4, 0.5], lambda t: list(leg_forces(t)), 1.0),
    "gear with friction on both sides": (
        lambda: rm.load(GEAR.replace("<rotor", FRICTION + "<rotor")), [0.0], swings(10.0, 6.3), 2.0,
    ),
    "static friction": (
        lambda: rm.load(BARE.replace("<friction/>", STRIBECK)), [0.0], swings(1.0, 6.3), 2.0,
    ),
    "static friction that ends at once": (
        lambda: rm.load(BARE.replace("<friction/>", re.sub(' stri[^ ]*"', "", STRIBECK))), [0.0],
        swings(1.0, 6.3), 2.0,
    ),
    "differential": (
        lambda: differential(FRICTION, '<dynamics friction="0.02"/>'), [0.1, 0.2],
        lambda t: [2.0 * np.sin(3.0 * t), np.cos(4.0 * t)], 3.0,
    ),
}  # fmt: skip


def balance(motion: Trajectory, force: Force) -> float:
    """The energy that is missing, as a share of the work."""
    lost, done, size = lost_and_done(motion, force, Acting())
    return abs(float(motion.energy[-1] - motion.energy[0]) - done - lost) / size


@pytest.mark.slow_cases(*(name for name in CASES if name != "belt over a joint"))
@pytest.mark.parametrize("name", CASES)
def test_energy_of_motors_is_energy_and_losses(name: str) -> None:
    """To 1e-10 of the work with the usual tolerances, through rests, reversals, turns of λ."""
    load, q, force, duration = CASES[name]
    motion = rm.simulate(
        load(), q, tau=lambda t, q, v: force(t), duration=duration, method="dop853"
    )
    assert balance(motion, force) < 1e-10
    off = []
    for count in (1000, 4000):  # time stepping comes nearer
        forces, h = mid(force, duration / count, duration), duration / count
        stepped = rm.rollout(load(), q, np.zeros(len(q)), forces, step=h)
        off.append(float(np.abs(stepped.q[-1] - motion.q[-1]).max()))
    assert off[1] < min(0.5 * off[0], 5e-4)


@pytest.mark.slow
def test_energy_behind_a_four_bar() -> None:
    model, force = four_bar(TILTED), swings(0.48, 9.0, 0.16)
    q = at_rocker(model, 1.7)
    motion = rm.simulate(model, q, tau=lambda t, q, v: force(t), duration=1.0, method="dop853")
    assert balance(motion, force) < 1e-10
    assert motion.residual.max() < 1e-12


@pytest.mark.slow
def test_energy_of_a_quadruped_in_the_air() -> None:
    """Twelve lossy gears, dry friction of twelve joints and of their rotors."""
    text = rm.robots.path("mini_cheetah").read_text(encoding="utf-8")
    model = rm.load(text.replace("<coupling ", '<coupling efficiency="0.9" backdrive="0.8" '))
    names = [n for n in rm.parameters(model).names if n.endswith(".friction")]
    model = rm.with_parameters(model, dict.fromkeys(names, 0.05))
    rng = np.random.default_rng(0)
    size, rate, phase = rng.uniform(1.0, 3.0, 12), rng.uniform(5.0, 15.0, 12), rng.random(12)

    def force(t: float) -> list[float]:
        return [*([0.0] * 6), *(size * np.sin(rate * t + 6.0 * phase))]

    motion = rm.simulate(
        model, model.neutral(), tau=lambda t, q, v: force(t), duration=0.2, method="dop853"
    )
    assert balance(motion, force) < 1e-9


def test_the_law_holds_in_motion() -> None:
    """Inverse dynamics with losses gives the motors' forces that have made the motion."""
    model = rm.load(LEG)
    motion = rm.simulate(
        model, [0.4, 0.5], tau=lambda t, q, v: leg_forces(t), duration=0.3, method="dop853",
        rtol=1e-12, atol=1e-14,
    )  # fmt: skip
    for t in np.linspace(0.05, 0.29, 25):
        h = 1e-5
        (early, late), (q, v) = motion.at([t - h, t + h])[1], motion.at(t)
        a = (late - early) / (2.0 * h)
        u = rm.dynamics.motor_forces(model, q, v, a)
        if np.all(np.abs(rm.actuator_velocities(model, q, v)) > 0.1):
            assert np.allclose(rm.actuator_map(model, q) @ u, leg_forces(t), rtol=0.0, atol=1e-5)


# ---- starts, inputs, refusals --------------------------------------------------------------------


def test_starts_without_a_load() -> None:
    """At rest without any force a mesh holds nothing, so that the least torque moves it."""
    model = rm.load(gear_text('efficiency="0.8" backdrive="-0.2"'))
    still, moving = (
        rm.simulate(model, [0.0], [v], duration=1.0, method="dop853") for v in (0.0, 1.0)
    )
    assert still.v[-1, 0] == 0.0
    assert moving.v[-1, 0] == 1.0
    for sign in (1.0, -1.0):
        motion = rm.simulate(
            model, [0.0], tau=lambda t, q, v, s=sign: [s * t], duration=1.0, method="dop853"
        )
        exact = sign * 0.8 * 0.5 / N / (0.8 * 2e-4 + 0.3 / N**2) / N
        assert motion.v[-1, 0] == pytest.approx(exact, rel=1e-9)


def test_held_inputs_and_limits() -> None:
    """Forces that jump from step to step; a limit that ends a motion."""
    model = rm.load(LEG)
    rows = np.array([leg_forces(0.02 * k) for k in range(10)])
    motion = rm.simulate(model, [0.4, 0.5], tau=rows, step=0.02, method="dop853")
    fine = rm.simulate(model, [0.4, 0.5], tau=np.repeat(rows, 200, 0), step=1e-4)
    assert np.allclose(motion.q[-1], fine.q[-1], rtol=0.0, atol=1e-6)
    limited = (
        gear_text(BOTH)
        .replace("continuous", "revolute")
        .replace("<rotor", '<limit lower="-1" upper="0.5" effort="9" velocity="9"/><rotor')
    )
    met = rm.simulate(
        rm.load(limited), [0.0], tau=[N * 0.5], f_ext=pushed(4.0), duration=1.0, method="dop853",
        stop_at_limits=True,
    )  # fmt: skip
    assert met.stop is not None
    assert met.stop.time == pytest.approx(np.sqrt(1.0 / ACCELERATIONS[0][2]), abs=1e-9)


def test_friction_at_the_cut_joint_of_a_loop() -> None:
    """Its row turns with the linkage."""
    text = rm.robots.path("four_bar").read_text(encoding="utf-8")
    model = rm.load(text.replace("</loop>", '<dynamics friction="0.05"/></loop>'))
    q, force = model.configuration({"joint1": 0.8}), swings(2.0, 3.0)
    motion = rm.simulate(model, q, tau=lambda t, q, v: force(t), duration=1.2, method="dop853")
    assert balance(motion, force) < 1e-9


def test_what_collides_is_refused() -> None:
    model = rm.load(gear_text(BOTH))
    for more in ({"stops": True}, {"ground": rm.Ground(), "contacts": ["arm"]}):
        with pytest.raises(ValueError, match="needs method='time_stepping', not 'dop853'"):
            rm.simulate(model, [0.0], duration=0.1, method="dop853", **more)
    with pytest.raises(ValueError, match="one that locates events"):
        rm.simulate(model, [0.0], duration=0.1, method="rk4")
    assert rm.simulate(model, [0.0], duration=0.1).method == "time_stepping"
    phased = Rubbing.of(model, replace(Acting(), friction=False))
    assert phased is None
