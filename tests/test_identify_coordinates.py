"""What a fit finds does not depend on which joints are independent."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from test_identify import hidden, motion, noisy

import robomodel as rm
from robomodel.identification import Identified
from robomodel.identification.coordinates import Coordinates
from robomodel.identification.excitations import FourierMotion, RegressorScale
from robomodel.identification.logs import Log
from robomodel.identification.sensors import sensors

Array = NDArray[np.float64]
MOTORS = {"tello": [
    f"{side}-{name}" for side in ("left", "right")
    for name in ("hip-clamp-to-hip-rotor-1", "hip-clamp-to-hip-rotor-2",
                 "thigh-to-knee-ankle-rotor-1", "thigh-to-knee-ankle-rotor-2")
]}  # fmt: skip
"""Motors that files infer from their independent joints, so that choices would change them."""

TELLO = [
    (),
    ("left-thigh-to-shin", "left-shin-to-foot", "right-thigh-to-shin", "right-shin-to-foot"),
    ("left-hip-clamp-to-gimbal", "left-gimbal-to-thigh"),
    ("left-thigh-to-knee-ankle-rotor-1", "left-thigh-to-shin"),
]


def robot(name: str, joints: tuple[str, ...] = ()) -> rm.Model:
    """A shipped robot with these independent joints, and its motors in any case."""
    said = "".join(f'<joint name="{n}"><motor effort="1"/></joint>' for n in MOTORS.get(name, ()))
    return rm.load(
        rm.robots.path(name), extend=f'<robot name="x">{said}</robot>', independent=joints or None
    )


@cache
def recorded(name: str, samples: int) -> tuple[rm.Model, Array, Array, Array, Array]:
    """A robot, and q, v, a and noisy forces of a motion of it."""
    model = robot(name)
    q, v, a = motion(model, 1, samples)
    values = hidden(model, q, v, a)
    return model, q, v, a, noisy(rm.regressor(model, q, v, a), values)


def of_others(name: str, samples: int, joints: tuple[str, ...]) -> tuple[rm.Model, Log] | None:
    """The same with other independent joints; None if these are regular nowhere, or no choice."""
    filed, q, v, a, tau = recorded(name, samples)
    try:
        model = robot(name, joints)
    except ValueError:
        return None
    moved = [actuator.rows for actuator in model.actuators]
    if moved != [actuator.rows for actuator in filed.actuators]:  # inferred from the choice
        return None
    places = [i for node in model.nodes for i in node.freedoms]
    labels = [x for c in model.clusters for x in np.array(places)[c.spanning_v][list(c.columns)]]
    g = filed.constraint_jacobian(q)
    rates = np.einsum("tij,tj->ti", g, v)[:, labels]
    pulls = (np.einsum("tij,tj->ti", g, a) + filed.constraint_bias(q, v))[:, labels]
    matrix = g[:, labels]
    if np.linalg.cond(matrix).max() > 1e3:
        return None
    forces = np.linalg.solve(np.swapaxes(matrix, 1, 2), tau[..., None])[..., 0]
    at = q
    if any(cluster.kind == "couplings" for cluster in model.clusters):
        read = filed.joint_positions(q)
        if model.floating_base is None:
            at = np.array([
                model.configuration({n: float(read[n][t]) for n in model.dof_names})
                for t in range(len(q))
            ])  # fmt: skip
    return model, Log(at, rates, pulls, forces)


def alike(one: Identified, other: Identified, tolerance: float) -> None:
    """Values, deviations and combinations are the same, relative to the deviations."""
    scale = np.where(one.deviation > 0.0, one.deviation, np.inf)
    assert np.max(np.abs(one.values - other.values) / scale) < tolerance
    np.testing.assert_allclose(other.deviation, one.deviation, rtol=tolerance, atol=1e-300)
    assert [group.name for group in one.groups] == [group.name for group in other.groups]
    for mine, its in zip(one.groups, other.groups, strict=True):
        assert abs(mine.value - its.value) < tolerance * mine.deviation
        assert its.deviation == pytest.approx(mine.deviation, rel=tolerance)


def compared(name: str, samples: int, choices: list[tuple[str, ...]], filtered: bool) -> int:
    """Fits with these independent joints; the number of those that are choices."""
    fits = []
    for joints in choices:
        if (both := of_others(name, samples, joints)) is not None:
            model, log = both
            given = (log.q, log.v, None if filtered else log.a, log.tau)
            options = {"step": 10.0 / (samples - 1)} if filtered else {}
            fits.append(rm.identify(model, *given, progress=False, **options))
    for each in fits[1:]:
        alike(fits[0], each, 1e-6)
    return len(fits)


def sets(name: str) -> list[tuple[str, ...]]:
    """All sets of as many joints as the robot has freedoms."""
    model = rm.robots.load(name)
    return list(combinations(model.joint_names, model.nv))


def test_one_freedom() -> None:
    assert compared("crank_rocker", 300, sets("crank_rocker"), False) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize(
    ("name", "count"),
    [("crank_rocker", 2), ("five_bar", 4), ("belt_leg", 4), ("parallel_ankle", 13)],
)
def test_every_choice_finds_the_same(name: str, count: int, filtered: bool) -> None:
    """Motors with gears and belts, linkages without motors; with accelerations, and in windows."""
    assert compared(name, 1001 if filtered else 400, sets(name), filtered) >= count


@pytest.mark.slow
def test_a_floating_base_with_differentials() -> None:
    assert compared("tello", 200, TELLO, False) == 4


@pytest.mark.parametrize("filtered", few([False, True], True))
def test_forces_are_compared_motor_by_motor(filtered: bool) -> None:
    """The equations of an ankle are those of its motors' torques, of which tau was made."""
    model = rm.robots.load("parallel_ankle")
    q, v, a = motion(model, 1, 2001)
    tau = rm.regressor(model, q, v, a) @ rm.parameters(model).values
    torques = rm.actuator_forces(model, q, tau)
    log = Log(q, v, None if filtered else a, tau)
    readings = sensors(model, log, step=10.0 / 2000 if filtered else None)
    rows, forces, _ = readings.at(np.zeros(0), compared=True)
    windows = readings.windows
    wanted = torques if windows is None else windows.mean(torques)
    scale = np.sum(forces * wanted, axis=0) / np.sum(wanted**2, axis=0)
    np.testing.assert_allclose(forces, scale * wanted, atol=1e-9 * np.abs(forces).max())
    left = rows @ rm.parameters(model).values - forces
    assert np.abs(left).max() < (3e-3 if filtered else 1e-12) * np.abs(forces).max()


def test_no_state_is_singular_for_a_linkage_without_motors() -> None:
    """Forces are per unit of all joints' rates, also where the limb's joint rests."""
    model = rm.robots.load("crank_rocker")
    angles = np.linspace(0.0, 2.0 * np.pi, 200)[:, None]
    q = model.integrate(np.tile(model.neutral(), (200, 1)), angles)
    g = model.constraint_jacobian(q)
    assert np.min(np.abs(g[:, 2, 0])) < 0.02  # the rocker nearly rests
    (matrix,) = Coordinates.of(model, q).at(q).matrices
    np.testing.assert_allclose(np.abs(matrix[:, 0, 0]), 1.0 / np.linalg.norm(g[..., 0], axis=1))
    assert np.all(np.sign(matrix) == np.sign(matrix[0]))


@pytest.mark.slow
def test_a_motion_has_one_condition() -> None:
    """Scaled by motions that are the same, it is the same for all independent joints."""
    found = []
    for joints in sets("five_bar"):
        if (both := of_others("five_bar", 300, joints)) is not None:
            model, log = both
            rows = rm.regressor(model, log.q, log.v, log.a)
            tau = rows @ rm.parameters(model).values
            none = np.zeros((1, *log.q.shape[:-1], 1))
            each = FourierMotion(none, *(x[None] for x in (log.q, log.v, log.a, rows, tau)), none)
            scale = RegressorScale.of(model, each)
            found.append(scale.singular(each.q, each.rows)[0])
    assert len(found) >= 4
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-8)
