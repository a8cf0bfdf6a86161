"""Mechanisms with springs, and motors behind gears, against solutions that others have published.

The squeezing mechanism: Schiehlen's, Hairer and Wanner's, and the solution at 0.03 s of the Test
Set for IVP Solvers (Mazzia and Magherini). The flyball governor: A05 of IFToMM's benchmark
problems, whose solution is a figure, so that Lagrange's equations by hand stand in for it. Cassie:
the springs of its SDF file in MuJoCo. Go1: the limits in its maker's file.
"""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mujoco
import numpy as np
import pytest
from lxml import etree
from numpy.typing import NDArray
from scipy.integrate import Radau, solve_ivp
from texts import joint, link, robot

import robomodel as rm

Array = NDArray[np.float64]
DATA = Path(__file__).parent / "data"

# ---- the squeezing mechanism ---------------------------------------------------------------------

ANGLES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
AT_30_MS = (
    15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948,
    0.5244099658805304, 0.5347301163226948, 1.048080741042263,
)  # fmt: skip
RATES = (
    1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385,
    0.5735699284790808, -19.29337464421385, 0.3231791658026955,
)  # fmt: skip
CRANK = 0.033  # N m


@pytest.mark.slow
def test_squeezer() -> None:
    """At 0.03 s, and where the crank is where the solution has it, 1e-12 s later."""
    model = rm.load(DATA / "squeezer.urdf")
    assert model.dof_names == ("beta",)
    start = model.neutral()
    motion = rm.simulate(model, start, tau=[CRANK], duration=0.0301, rtol=1e-13, atol=1e-14)

    def angles(t: float) -> tuple[Array, Array]:
        q, v = motion.at(t)
        at, rates = model.joint_positions(q), model.joint_velocities(q, v)
        return np.array([at[a] for a in ANGLES]), np.array([rates[a] for a in ANGLES])

    at, rates = angles(0.03)
    np.testing.assert_allclose(at, AT_30_MS, rtol=0, atol=2e-9)  # 15 rad in 0.03 s
    np.testing.assert_allclose(rates, RATES, rtol=0, atol=1e-6)
    shifted = 0.03 + (AT_30_MS[0] - at[0]) / rates[0]
    assert abs(shifted - 0.03) < 2e-12
    at, rates = angles(shifted)
    np.testing.assert_allclose(at, AT_30_MS, rtol=1e-13)  # the loops of the published solution
    np.testing.assert_allclose(rates, RATES, rtol=0, atol=2e-7)


@pytest.mark.slow
def test_squeezer_energy() -> None:
    """What the crank's motor gives is kinetic energy and the spring's."""
    model = rm.load(DATA / "squeezer.urdf")
    motion = rm.simulate(model, model.neutral(), tau=[CRANK], duration=0.03, rtol=1e-13, atol=1e-14)
    beta = np.array([model.joint_positions(q)["beta"] for q in motion.q])
    given = CRANK * (beta - beta[0])
    np.testing.assert_allclose(
        motion.energy - motion.energy[0], given, rtol=0, atol=1e-9 * given[-1]
    )
    assert np.max(motion.residual) < 1e-14


# ---- the flyball governor ------------------------------------------------------------------------

ROD, BALL, SLIDER, SHAFT, GRAVITY = 0.3, 5.0, 3.0, 0.3, 9.81
STIFFNESS, DAMPING, LENGTH = 8e5, 4e4, 0.5
ALONG, ACROSS = ROD * 2e-4 / 12, ROD * 1.0001 / 12  # of a rod, about its own axes
AXIS = SHAFT * 2e-4 / 12 + SLIDER * 0.02 / 12  # of shaft and slider, about the shaft


def about_shaft(a: float) -> tuple[float, float]:
    """The moment of inertia about the shaft, rods a below the horizontal, and its derivative."""
    across = ACROSS + ROD / 4 + BALL
    moment = AXIS + 2 * (ALONG * math.sin(a) ** 2 + across * math.cos(a) ** 2)
    return moment, 2 * (ALONG - across) * math.sin(2 * a)


def governor(_t: float, y: Array, momentum: float) -> list[float]:
    """The rates of a, s (the slider below the top) and theirs, by Lagrange's equations by hand.

    The shaft's angle is cyclic: its momentum is constant.
    """
    a, s, da, ds = y
    moment, slope = about_shaft(a)
    across, down = (
        0.5 * math.cos(a),
        s - 0.5 * math.sin(a),
    )  # from the middle of a rod to the slider
    length = math.hypot(across, down)
    by_a = (-0.5 * math.sin(a) * across - 0.5 * math.cos(a) * down) / length
    by_s = down / length
    pull = STIFFNESS * (length - LENGTH) + DAMPING * (by_a * da + by_s * ds)
    spin = momentum / moment
    rod = 0.5 * spin**2 * slope + 2 * ((ROD / 2 + BALL) * GRAVITY * math.cos(a) - pull * by_a)
    return [da, ds, rod / (2 * (ACROSS + ROD / 4 + BALL)), GRAVITY - 2 * pull * by_s / SLIDER]


def oracle(times: Array) -> Array:
    """A, s and their rates at these times."""
    momentum = about_shaft(math.pi / 6)[0] * 2 * math.pi
    found = solve_ivp(
        governor, (0.0, times[-1]), [math.pi / 6, 0.5, 0.0, 0.0], method=Radau, t_eval=times,
        rtol=1e-12, atol=1e-13, args=(momentum,),
    )  # fmt: skip
    return np.asarray(found.y.T)


def check_governor(duration: float, method: str | None, tolerance: float, **options: float) -> None:
    model = rm.load(DATA / "flyball_governor.urdf")
    v = np.zeros(4)
    v[model.dof_names.index("turn")] = 2 * math.pi
    motion = rm.simulate(model, model.neutral(), v, duration=duration, method=method, **options)
    wanted = oracle(motion.times)
    names = model.dof_names
    order = [names.index(name) for name in ("swing_1", "slide")]
    found = np.hstack([motion.q[:, order], motion.v[:, order]])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
    other = names.index("swing_2")
    np.testing.assert_allclose(motion.q[:, other], motion.q[:, order[0]], rtol=0, atol=tolerance)


@pytest.mark.slow
def test_flyball_governor() -> None:
    """The dampers of its couplers decay at 8.1e3 1/s."""
    check_governor(0.1, "radau", 1e-9)
    check_governor(0.05, None, 1e-9)


@pytest.mark.tables
def test_flyball_governor_for_ten_seconds() -> None:
    """The benchmark's own time."""
    check_governor(10.0, None, 1e-7, step=0.05)


@pytest.mark.slow_cases("semi_implicit_euler")
@pytest.mark.parametrize("method", ["semi_implicit_euler", "time_stepping"])
def test_flyball_governor_in_long_steps(method: str) -> None:
    """Steps of 16 times what the dampers decay in, at which explicit methods blow up."""
    check_governor(0.2, method, 0.05, step=2e-3)
    with (
        pytest.warns(RuntimeWarning, match="'rk4' is unstable with steps of 0.002 s"),
        pytest.raises(rm.motion.SimulationError),
    ):
        check_governor(0.2, "rk4", 0.05, step=2e-3)


# ---- Cassie --------------------------------------------------------------------------------------


def shared(*parts: str) -> Path:
    """A file of the package example-robot-data."""
    try:
        root = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix")))
    except PackageNotFoundError:
        root = Path("absent")
    path = root.joinpath("share", "example-robot-data", "robots", *parts)
    if not path.is_file():
        pytest.skip("example-robot-data is not installed")
    return path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_springs_of_cassie(tmp_path: Path) -> None:
    """Its leaf springs at knees and heels and its joints' damping: the SDF file's, in MuJoCo.

    MuJoCo's are forces on all joints of the tree; G brings them to the independent ones.
    """
    model = rm.load(shared("cassie_description", "robots", "cassie.sdf"), floating_base=False)
    stiffness = {j.name: j.stiffness for j in model.joints if j.stiffness}
    assert stiffness == {
        f"{side}-{name}": value
        for side in ("left", "right")
        for name, value in (("knee-shin-joint", 1500.0), ("tarsus-spring-joint", 1250.0))
    }
    path = tmp_path / "cassie.xml"
    rm.write_mjcf(model, path, drop=True, meshes="drop")
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(compiled)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        at, rates = model.joint_positions(q), model.joint_velocities(q, v)
        g = model.constraint_jacobian(q)
        tau, row = np.zeros(model.nv), 0
        places = {}
        for each in model.joints:
            places[each.name] = slice(row, row + each.nv)
            row += each.nv
        for n in range(compiled.njnt):
            name = compiled.joint(n).name
            if name not in at:  # nothing moves it
                continue
            value = np.atleast_1d(at[name])
            start, first = compiled.jnt_qposadr[n], compiled.jnt_dofadr[n]
            if len(value) == 4:  # x y z w here, w x y z there
                value = np.roll(value, 1)
            data.qpos[start : start + len(value)] = value
            speed = np.atleast_1d(rates[name])
            data.qvel[first : first + len(speed)] = speed
        mujoco.mj_forward(compiled, data)
        for n in range(compiled.njnt):
            first = compiled.jnt_dofadr[n]
            rows = places.get(compiled.joint(n).name, slice(0, 0))
            force = data.qfrc_passive[first : first + rows.stop - rows.start]
            tau += g[rows].T @ force
        np.testing.assert_allclose(
            rm.passive_force(model, q, v), tau, rtol=1e-10, atol=1e-10 * np.abs(tau).max()
        )


# ---- Go1 -----------------------------------------------------------------------------------------

THIGH, CALF = (23.7, 30.1), (35.55, 20.06)  # N m and rad/s: alike motors, the calf's behind 1.5 : 1


def test_limits_of_the_calf_of_go1() -> None:
    """The motor's limits through the calf's linkage are those that the maker's file gives it."""
    motor = f'<motor effort="{THIGH[0]}" velocity="{THIGH[1]}"/>'
    model = rm.load(
        robot(
            link("thigh"), link("calf"), joint("thigh_joint", "base", "thigh", more=motor),
            joint("calf_joint", "thigh", "calf", "0 0 -0.213",
                  more='<rotor inertia="1.1e-4" ratio="1.5"/>' + motor),
        )
    )  # fmt: skip
    lower, upper = rm.torque_limits(model, model.neutral())
    np.testing.assert_allclose(upper, [THIGH[0], CALF[0]], rtol=1e-12)
    np.testing.assert_allclose(lower, -upper, rtol=1e-12)
    slow = [0.0, 20.06]
    _, upper = rm.torque_limits(model, model.neutral(), slow)
    assert upper[1] == pytest.approx(CALF[0])
    _, upper = rm.torque_limits(model, model.neutral(), [0.0, 20.07])  # 30.1 / 1.5 = 20.0667
    assert upper[1] == 0.0


def test_the_file_of_go1() -> None:
    """Its calves have 3/2 of the torque of thighs and hips, and two thirds of their speed."""
    found: dict[str, tuple[float, float]] = {}
    for element in etree.parse(str(shared("go1_description", "urdf", "go1.urdf"))).iter("joint"):
        limit = element.find("limit")
        if limit is not None and element.get("name", "").endswith("_joint"):
            kind = element.get("name", "").split("_")[1]
            found[kind] = float(limit.get("effort", 0)), float(limit.get("velocity", 0))
    assert found["thigh"] == found["hip"] == THIGH
    assert found["calf"] == CALF
    model = rm.load(shared("go1_description", "urdf", "go1.urdf"))
    _, upper = rm.torque_limits(model, model.neutral())
    assert upper[model.dof_names.index("FL_calf_joint")] == CALF[0]
