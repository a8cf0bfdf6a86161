"""Parameters from what sensors say: encoders at motors, currents, wrenches, and their faults."""

from __future__ import annotations

import numpy as np
import pytest
from test_identify import FIVE_BAR, Array, exists, hidden, missed, motion, noisy

import robomodel as rm
from robomodel.dynamics import physical
from robomodel.identification import Identified
from robomodel.identification import fit as fit_module
from robomodel.model.configurations import following

LEG = rm.robots.load("belt_leg")
ROTORS = ("hip_ry_rotor_joint", "knee_rotor_joint", "ankle_rotor_joint")


def at_motors(model: rm.Model, q: Array, v: Array, a: Array, names: tuple[str, ...]) -> list[Array]:
    """What encoders at these joints say."""
    rows = [model.joint_names.index(name) for name in names]
    g = model.constraint_jacobian(q)
    place = model.joint_positions(q)
    bias = model.constraint_bias(q, v)
    return [
        np.stack([place[name] for name in names], axis=-1),
        (g @ v[..., None])[..., rows, 0],
        ((g @ a[..., None])[..., 0] + bias)[..., rows],
    ]


def of(fit: Identified, kind: str) -> dict[str, float]:
    return {x.name: x.value for x in fit.sensors if x.kind == kind}


def deviations(fit: Identified) -> dict[str, float]:
    return {x.name: x.deviation for x in fit.sensors}


def made(model: rm.Model, count: int = 120) -> tuple[Array, ...]:
    q, v, a = motion(model, 1, count)
    values = hidden(model, q, v, a)
    return q, v, a, values, noisy(rm.regressor(model, q, v, a), values)


@pytest.mark.slow
def test_encoders_at_motors() -> None:
    q, v, a, _, tau = made(LEG)
    plain = rm.identify(LEG, q, v, a, tau)
    fit = rm.identify(LEG, *at_motors(LEG, q, v, a, ROTORS), tau, encoders=ROTORS)
    assert np.allclose(fit.values, plain.values, rtol=1e-6, atol=1e-8)
    assert fit.sensors == ()


@pytest.mark.slow
def test_encoders_at_other_joints_of_a_linkage() -> None:
    q, v, a, _, tau = made(FIVE_BAR)
    names = ("J3", "J4")
    plain = rm.identify(FIVE_BAR, q, v, a, tau)
    fit = rm.identify(FIVE_BAR, *at_motors(FIVE_BAR, q, v, a, names), tau, encoders=names)
    assert np.allclose(fit.values, plain.values, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_fits_that_do_not_converge_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, Newton's method for bodies that exist, and configurations at encoders."""
    q, v, a, _, tau = made(FIVE_BAR, 20)
    said = at_motors(FIVE_BAR, q, v, a, ("J3", "J4"))
    for name, at, words in (
        ("MOST_PASSES", fit_module, "did not settle in 1 passes"),
        ("MOST_NEWTON", physical, "did not converge in 1 steps of Newton"),
        ("READINGS", following, "at the encoders' readings are .* off"),
    ):
        wrong = {"encoders": ("J3", "J4")} if name == "READINGS" else {}
        states = said if wrong else (q, v, a)
        with monkeypatch.context() as patched:
            patched.setattr(at, name, 1)
            with pytest.warns(RuntimeWarning, match=words):
                rm.identify(FIVE_BAR, *states, tau, offsets=bool(wrong), **wrong)


@pytest.mark.slow
@pytest.mark.parametrize("motors", [False, True])
def test_encoders_zeros(motors: bool) -> None:
    q, v, a, values, tau = made(LEG)
    names = ROTORS if motors else LEG.dof_names
    off = np.array([0.3, -0.2, 0.25]) if motors else np.array([0.05, -0.04, 0.06])
    said = at_motors(LEG, q, v, a, names)
    wrong = {"encoders": names} if motors else {}
    plain = rm.identify(LEG, said[0] - off, *said[1:], tau, **wrong)
    fit = rm.identify(LEG, said[0] - off, *said[1:], tau, offsets=True, **wrong)
    exists(fit)
    found = of(fit, "offset")
    known = deviations(fit)
    assert all(abs(found[n] - x) < 3.0 * known[n] for n, x in zip(names, off, strict=True))
    assert known[names[0]] < 0.1 * off[0]  # those of the others are seen with masses' places
    assert np.all(fit.residual[:2] < 0.8 * plain.residual[:2])
    assert missed(LEG, fit.values, values).max() < 0.02


@pytest.mark.slow
def test_an_encoder_in_a_loop() -> None:
    q, v, a, values, tau = made(FIVE_BAR)
    names = ("J3", "J4")
    off = np.array([0.04, -0.03])
    said = at_motors(FIVE_BAR, q, v, a, names)
    fit = rm.identify(FIVE_BAR, said[0] - off, *said[1:], tau, encoders=names, offsets="J3")
    assert set(of(fit, "offset")) == {"J3"}
    fit = rm.identify(FIVE_BAR, said[0] - off, *said[1:], tau, encoders=names, offsets=True)
    for each, x in zip(fit.sensors, off, strict=True):
        assert abs(each.value - x) < 3.0 * each.deviation < abs(x)
    assert missed(FIVE_BAR, fit.values, values).max() < 0.02


@pytest.mark.slow
def test_currents() -> None:
    q, v, a, _, tau = made(LEG)
    matrix = rm.actuator_map(LEG, q)
    force = np.linalg.solve(matrix, tau[..., None])[..., 0]
    plain = rm.identify(LEG, q, v, a, tau)
    constants = np.array([0.5, 0.1, 0.2])
    fit = rm.identify(LEG, q, v, a, currents=force / constants, constants=constants)
    assert np.allclose(fit.values, plain.values, rtol=1e-8, atol=1e-10)
    named = dict(zip((x.name for x in LEG.actuators), constants, strict=True))
    fit = rm.identify(LEG, q, v, a, currents=force / constants, constants=named)
    assert np.allclose(fit.values, plain.values, rtol=1e-8, atol=1e-10)
    fit = rm.identify(LEG, q, v, a, currents=force, constants=1.0)
    assert np.allclose(fit.values, plain.values, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="no torque constant of 'hip_ry"):
        rm.identify(LEG, q, v, a, currents=force)


@pytest.mark.slow
def test_torque_constants_are_found_where_masses_are_known() -> None:
    q, v, a = motion(LEG, 1, 120)
    known = rm.parameters(LEG)
    tau = noisy(rm.regressor(LEG, q, v, a), known.values)
    force = np.linalg.solve(rm.actuator_map(LEG, q), tau[..., None])[..., 0]
    constants = np.array([0.5, 0.1, 0.2])
    fit = rm.identify(
        LEG, q, v, a, currents=force / constants, constants="unknown", free=["damping", "friction"]
    )
    found = of(fit, "constant")
    assert list(found) == [each.name for each in LEG.actuators]
    assert np.allclose(list(found.values()), constants, rtol=0.01)
    half = dict(zip(found, [*constants[:2], np.nan], strict=True))
    fit = rm.identify(
        LEG, q, v, a, currents=force / constants, constants=half, free=["damping", "friction"]
    )
    assert of(fit, "constant") == {
        LEG.actuators[2].name: pytest.approx(0.2, rel=0.01),
    }
    # where all is free, their common scale is known from the masses alone, and that is said
    fit = rm.identify(LEG, q, v, a, currents=force / constants, constants="unknown", prior=0.3)
    found = of(fit, "constant")
    assert np.allclose(list(found.values()), constants, rtol=0.35)
    assert all(x.deviation > 0.02 * x.value for x in fit.sensors)


@pytest.mark.tables
def test_a_ratio_of_a_gear() -> None:
    """Encoders at motors: with another ratio the joints are elsewhere."""
    q, v, a, values, tau = made(LEG)
    said = at_motors(LEG, q, v, a, ROTORS)
    said = [x * np.array([1.0, 1.03, 1.0]) for x in said]
    fit = rm.identify(LEG, *said, tau, encoders=ROTORS, ratios="knee_belt")
    assert of(fit, "ratio") == {"knee_belt": pytest.approx(12.0 * 1.03, rel=6e-3)}
    (coupling,) = (c for c in fit.model.couplings if c.name == "knee_belt")
    assert dict(coupling.terms)["knee_link_joint"] == -of(fit, "ratio")["knee_belt"]
    assert missed(LEG, fit.values, values).max() < 0.1
    fit = rm.identify(LEG, q, v, a, tau, ratios=True)
    assert set(of(fit, "ratio")) == {"hip_ry_gear", "knee_belt", "ankle_belt"}


@pytest.mark.slow
def test_a_ratio_of_a_gear_in_a_loop() -> None:
    model = rm.robots.load("tello")
    q, v, a = motion(model, 3, 20)
    values = rm.parameters(model).values
    tau = rm.regressor(model, q, v, a, backend="numpy") @ values
    (name,) = (c.name for c in model.couplings if c.name == "left-hip-gear-1")
    fit = rm.identify(model, q, v, a, tau, ratios=name, free="damping")
    assert of(fit, "ratio") == {name: pytest.approx(1.0 / 6.0, rel=1e-4)}


@pytest.mark.slow
def test_measured_wrenches() -> None:
    model = rm.load(rm.robots.path("belt_leg"), floating_base=True)
    q, v, a = motion(model, 3, 300)
    values = hidden(model, q, v, a)
    clean = rm.regressor(model, q, v, a) @ values
    rng = np.random.default_rng(0)
    link = model.bodies[-1].name
    wrench = 20.0 * rng.normal(size=(300, 6))
    still = np.zeros(model.nv)
    pushed = rm.rnea(model, q, still, still, f_ext={link: wrench}) - rm.rnea(model, q, still, still)
    tau = clean + pushed
    tau += 0.01 * np.std(clean, axis=0) * rng.normal(size=tau.shape)
    fit = rm.identify(model, q, v, a, tau, f_ext={link: wrench})
    exists(fit)
    assert missed(model, fit.values, values).max() < 0.02
    blind = rm.identify(model, q, v, a, tau)
    assert np.all(blind.residual[:6] > 5.0 * fit.residual[:6])


@pytest.mark.slow
def test_intervals_and_cross_validation() -> None:
    q, v, a, values, tau = made(FIVE_BAR)
    fit = rm.identify(FIVE_BAR, q, v, a, tau, folds=4)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    assert np.all(fit.validation > fit.residual)
    assert np.all(fit.validation < 1.5 * noise)
    assert np.all(np.isnan(rm.identify(FIVE_BAR, q, v, a, tau).validation))
    ends = fit.interval(0.95)
    assert np.all(ends[:, 0] <= fit.values)
    assert np.all(ends[:, 1] >= fit.values)
    wide = fit.interval(0.99)
    assert np.all(wide[:, 1] >= ends[:, 1])
    with pytest.raises(ValueError, match="level is a probability"):
        fit.interval(1.5)
    told = fit.information_gain > 0.95
    inside = (ends[told, 0] <= values[told]) & (values[told] <= ends[told, 1])
    assert told.sum() > 5
    assert inside.mean() > 0.7
    assert np.allclose(fit.measured, tau)
    assert np.allclose(np.sqrt(np.mean((fit.measured - fit.predicted) ** 2, 0)), fit.residual)
    assert np.allclose(np.sqrt(np.mean((fit.measured - fit.file) ** 2, 0)), fit.before)
