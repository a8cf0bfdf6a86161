"""Motor forces of motions with losses: closed forms, forward motions, other languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_targets import COMPILERS, called, library
from node import Job, run
from test_losses import ACCELERATIONS, BOTH, FOUR_BAR, LEG, N, at_rocker, gear_text, link, pushed
from test_losses import screw as screw_of

import robomodel as rm
from robomodel.errors import DescriptionError, UnknownNameError

Array = np.ndarray
NAMES = ("joint.efficiency", "joint.backdrive", "arm.Izz", "joint_rotor.armature")
FLOATING = (
    LEG.replace('<link name="base"/>', f'<link name="world"/>{link("base", 6.0, 0.2)}'
                f'{link("bob", 0.5, 2e-3, "0.1 0 0.05")}')
    .replace("</robot>", """<joint name="float" type="floating"><parent link="world"/>
<child link="base"/></joint><joint name="neck" type="spherical"><parent link="base"/>
<child link="bob"/><origin xyz="0 0 0.2"/></joint></robot>""")
    .replace('friction="0.02"/></joint>', 'friction="0.02" damping="1e-3"/></joint>')
    .replace('<origin xyz="0 0 -0.3"/>', '<origin xyz="0 0 -0.3"/><dynamics friction="0.05"/>')
)  # fmt: skip


def test_a_gear_under_load() -> None:
    """The inverse of the table; at rest the ends of the range in which the mesh holds."""
    model, options = rm.load(gear_text(BOTH)), {"f_ext": pushed(4.0)}
    moving = np.array([each for each in ACCELERATIONS if each[2] or each[0]])
    rate, torque, pull = moving.T[..., None]
    for backend in ("compiled", "numpy"):
        more: Any = {**options, "backend": backend}
        u = rm.dynamics.motor_forces(model, [0.0], rate, pull, **more)
        np.testing.assert_allclose(u, torque, rtol=0.0, atol=1e-13)
    rest = rm.dynamics.motor_forces(model, [0.0], [0.0], [0.0], [[1.0], [-1.0], [0.0]], **options)
    np.testing.assert_allclose(rest[:, 0], [0.25, 0.14, 0.2], rtol=1e-14)


def test_a_self_locking_screw() -> None:
    model = screw_of(20.0)
    for rate, torque, pull in (
        (1.0, 0.6, 3.69407420372), (-1.0, -0.0490427090868, 0.0), (-1.0, -0.2, -7.49782241395),
        (-1.0, 0.0, 2.43587786458),
    ):  # fmt: skip
        u = rm.dynamics.motor_forces(model, [0.0], [rate], [pull])
        assert u[0] == pytest.approx(torque, abs=1e-11)


def accelerations(model: rm.Model, q: Array, v: Array, u: Array) -> Array:
    """Of motions that start with motor forces u: of first order in steps, so extrapolated."""
    tau = (rm.actuator_map(model, q) @ u[..., None])[..., 0]
    found = []
    for h in (2e-5, 1e-5):
        motion = rm.rollout(model, q, v, np.tile(tau[..., None, :], (1, 1, 1)), step=h)
        found.append((motion.v[..., -1, :] - v) / h)
    return np.asarray(2.0 * found[1] - found[0])


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["loop", "floating"])
def test_forces_are_those_that_gave_the_motion(robot: str) -> None:
    """Linkages, belts over joints, a floating base and a ball joint, with friction and damping."""
    rng = np.random.default_rng(3)
    model = rm.load(FLOATING if robot == "floating" else FOUR_BAR)
    if robot == "floating":
        q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(12)])
        sizes = [1.5, 0.3]
    else:
        q = np.array([at_rocker(model, psi) for psi in np.linspace(1.2, 2.6, 12)])
        sizes = [0.4]
    v, u = rng.normal(size=(12, model.nv)), sizes * rng.normal(size=(12, len(sizes)))
    found = rm.dynamics.motor_forces(model, q, v, accelerations(model, q, v, u), passive=True)
    np.testing.assert_allclose(found, u, rtol=0.0, atol=1e-6)
    rates = rm.actuator_velocities(model, q, v)
    at = rm.dynamics.motor_forces(model, q, 0.0 * v, 0.0 * v, v)
    against = rm.dynamics.motor_forces(model, q, 0.0 * v, 0.0 * v, -v)
    assert np.all((at - against) * np.sign(rates) > 0.01)  # at least the bearings' friction


def test_losses_of_power_are_those_of_the_file() -> None:
    """Without inertia of the rotor in a steady motion power goes through by the efficiency."""
    model = rm.load(gear_text(BOTH))
    values = {"joint.efficiency": [0.5, 0.8, 1.2], "joint.backdrive": 0.1}
    options: Any = {"f_ext": pushed(4.0), "parameters": values}
    with pytest.warns(RuntimeWarning, match="an efficiency that no gear has"):
        u = rm.dynamics.motor_forces(model, [0.0], [1.0], [0.0], **options)
    np.testing.assert_allclose(u[:2, 0], [4.0 / N / 0.5, 4.0 / N / 0.8])
    assert np.isnan(u[2, 0])
    with pytest.raises(DescriptionError, match=r"its efficiency is 1.2"):
        rm.dynamics.motor_forces(model, [0.0], [1.0], [0.0], check=True, **options)


def states() -> tuple[rm.Model, list[Array], Array]:
    model, rng = rm.load(gear_text(BOTH)), np.random.default_rng(5)
    p = np.array([rm.parameters(model, geometry=True)[name] for name in NAMES])
    return model, [*rng.normal(size=(3, 6, 1)), np.zeros((6, 1))], p * rng.uniform(0.7, 1.0, (6, 4))


def by_name(p: Array) -> dict[str, Array]:
    return dict(zip(NAMES, np.moveaxis(p, -1, 0), strict=True))


def test_efficiencies_are_parameters() -> None:
    """Derivatives by them are those of u = ρ + λ/η or ρ + η λ, whichever holds."""
    model, arguments, p = states()
    u = rm.dynamics.motor_forces(model, *arguments, parameters=by_name(p))
    slopes = rm.sensitivity(model, "motor_forces", arguments, NAMES[:2], parameters=by_name(p))
    inertia, armature = p[:, 2], p[:, 3] + 2e-4
    load = inertia * arguments[2][:, 0] / N
    drives = load * arguments[1][:, 0] > 0.0
    assert 0 < drives.sum() < 6
    rest = N * armature * arguments[2][:, 0]
    np.testing.assert_allclose(u[:, 0], rest + np.where(drives, load / p[:, 0], p[:, 1] * load))
    np.testing.assert_allclose(slopes[:, 0, 0], np.where(drives, -load / p[:, 0] ** 2, 0.0))
    np.testing.assert_allclose(slopes[:, 0, 1], np.where(drives, 0.0, load))
    other = rm.with_parameters(model, {name: float(x[0]) for name, x in by_name(p).items()})
    assert other.actuators[0].efficiency == p[0, 0]
    again = rm.dynamics.motor_forces(other, *(x[0] for x in arguments))
    np.testing.assert_allclose(again, u[0], rtol=1e-13)


def test_efficiencies_written_by_parameters(tmp_path: Path) -> None:
    model = rm.with_parameters(rm.load(gear_text(BOTH)), {"joint.backdrive": -0.2})
    rm.write_urdf(model, tmp_path / "gear.urdf")
    (actuator,) = rm.load(tmp_path / "gear.urdf").actuators
    assert (actuator.efficiency, actuator.backdrive) == (0.8, -0.2)
    with pytest.raises(DescriptionError, match="at most 1"):
        rm.with_parameters(model, {"joint.efficiency": 1.5})


@pytest.mark.slow
def test_motions_of_robots_with_efficiencies_of_their_own() -> None:
    model = rm.load(gear_text(BOTH))
    values = {"joint.efficiency": np.array([0.9, 0.5]), "joint.backdrive": np.array([0.8, 0.3])}
    tau = np.full((2, 5, 1), 4.0)
    motion = rm.rollout(model, [0.0], [[1.0], [-1.0]], tau, 1e-3, parameters=values)
    for i in range(2):
        one = rm.with_parameters(model, {name: x[i] for name, x in values.items()})
        alone = rm.rollout(one, [0.0], motion.v[i, 0], tau[i], 1e-3)
        np.testing.assert_allclose(motion.v[i], alone.v, rtol=0.0, atol=1e-12)


def test_static_forces_by_parameters() -> None:
    model = rm.load(gear_text(BOTH).replace("</joint>", '<motor effort="0.5"/></joint>'))
    values = {"joint.efficiency": [0.5, 0.8], "joint.backdrive": [-0.1, 0.5]}
    ahead = rm.actuator_forces(model, [0.0], [4.0], losses="forward", parameters=values)
    back = rm.actuator_forces(model, [0.0], [4.0], losses="back", parameters=values)
    np.testing.assert_allclose([ahead[:, 0], back[:, 0]], [[0.4, 0.25], [-0.02, 0.1]])
    _, most = rm.torque_limits(model, [0.0], losses="back", parameters=values)
    np.testing.assert_allclose(most[:, 0], [np.inf, 20.0])


def test_what_has_no_losses_says_so() -> None:
    model = rm.load(gear_text(BOTH))
    for call in (
        lambda **options: rm.aba(model, [0.0], [0.0], [0.0], **options),
        lambda **options: rm.sensitivity(
            model, "aba", ([0.0], [0.0], [0.0]), list(options["parameters"])
        ),
        lambda **options: rm.compile(model, "aba", parameters=list(options["parameters"])),
    ):
        with pytest.raises(ValueError, match="'aba', which is without losses: forward dynamics"):
            call(parameters={"joint.efficiency": 0.5})
    plain = rm.load(gear_text())
    with pytest.raises(UnknownNameError, match="the gear of 'joint' loses nothing in the file"):
        rm.rnea(plain, [0.0], [0.0], [0.0], parameters={"joint.efficiency": 0.5})
    with pytest.raises(ValueError, match="a needs"):
        rm.dynamics.motor_forces(model, [0.0], [0.0], [0.0, 1.0])


# ---- other languages -----------------------------------------------------------------------------


def test_in_javascript_and_c(tmp_path: Path) -> None:
    model, arguments, p = states()
    expected = rm.dynamics.motor_forces(model, *arguments, parameters=by_name(p))
    path = rm.write_js(model, tmp_path / "gear.mjs", ["motor_forces"], NAMES)
    (found,) = run([Job(path, "motor_forces", [*arguments, p], 1)], tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    functions: Any = {"forces": ("motor_forces", {"parameters": NAMES})}
    source, _ = rm.write_c(model, tmp_path / "gear.c", functions=functions)
    for compiler in COMPILERS[:1]:
        made = library(Path(source), compiler)
        found = called(made.gear_forces, [*arguments, p], [1], "float64")
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
def test_in_jax() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import robomodel.jax

    jax.config.update("jax_enable_x64", True)
    model, arguments, p = states()
    f = robomodel.jax.function(model, "motor_forces", parameters=NAMES)
    expected = rm.dynamics.motor_forces(model, *arguments, parameters=by_name(p))
    np.testing.assert_allclose(jax.vmap(f)(*arguments, p), expected, rtol=1e-12)
    slopes = jax.vmap(jax.jacfwd(f, 4))(*arguments, p)
    right = rm.sensitivity(model, "motor_forces", arguments, NAMES, parameters=by_name(p))
    np.testing.assert_allclose(slopes, right, rtol=1e-9, atol=1e-12)


def test_in_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import robomodel.torch

    model, arguments, p = states()
    f = robomodel.torch.function(model, "motor_forces", parameters=NAMES)
    numbers = torch.tensor(p, requires_grad=True)
    (found,) = torch.autograd.grad(f(*map(torch.tensor, arguments), numbers).sum(), numbers)
    right = rm.sensitivity(model, "motor_forces", arguments, NAMES, parameters=by_name(p))
    np.testing.assert_allclose(found.numpy(), right[:, 0], rtol=1e-9, atol=1e-12)
