"""Parameters that are hidden in noisy motions are found again, and every body can exist."""

from __future__ import annotations

import csv
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray

import robomodel as rm
import robomodel.identification.fit as fits
from robomodel.cli import main
from robomodel.identification import Identified
from robomodel.model.parameters import pseudo_inertia

Array = NDArray[np.float64]


FIVE_BAR = rm.robots.load("five_bar", gravity=(1.0, -9.0, 0.0))


@cache
def motion(model: rm.Model, seed: int, count: int, seconds: float = 10.0) -> tuple[Array, ...]:
    """q, v, a of sums of sines about the neutral configuration."""
    rng = np.random.default_rng(seed)
    order = np.arange(1, 5)
    size = rng.normal(size=(4, model.nv)) * 0.6 / order[:, None]
    shift = rng.uniform(0.0, 2.0 * np.pi, (4, model.nv))
    time = np.linspace(0.0, seconds, count)
    rate = 2.0 * np.pi * 0.4 * order[:, None]
    phase = time[:, None, None] * rate + shift
    x = (size * np.sin(phase)).sum(1)
    v = (size * rate * np.cos(phase)).sum(1)
    a = -(size * rate**2 * np.sin(phase)).sum(1)
    now, q = model.neutral(), []
    for step in np.diff(x, axis=0, prepend=0.0 * x[:1]):
        now = model.integrate(now, step)
        q.append(now)
    return np.array(q), v, a


def hidden(model: rm.Model, q: Array, v: Array, a: Array, seed: int = 0) -> Array:
    """Values of other bodies that exist, rotors' inertias off by up to 40 %, and losses."""
    rng = np.random.default_rng(seed)
    known = rm.parameters(model)
    values = known.values.copy()
    for i, body in enumerate(model.bodies):
        own = values[10 * i : 10 * i + 10]
        if "rotor" in body.name:
            own *= rng.uniform(0.6, 1.4)
            continue
        turn = np.eye(4)
        turn[:3] += 0.1 * rng.normal(size=(3, 4)) * [1.0, 1.0, 1.0, 0.2]
        if own[0] == 0.0:
            continue
        if np.linalg.eigvalsh(pseudo_inertia(own.tolist()))[0] <= 0.0:  # flat
            turn[2], turn[:, 2] = np.eye(4)[2], np.eye(4)[:, 2]
        j = rng.uniform(0.8, 1.2) * turn @ pseudo_inertia(own.tolist()) @ turn.T
        inertia = np.trace(j[:3, :3]) * np.eye(3) - j[:3, :3]
        own[:] = [j[3, 3], *j[:3, 3], *inertia[np.triu_indices(3)]]
    y = rm.regressor(model, q, v, a)
    level = np.sqrt(np.mean((y @ values) ** 2))
    for i, name in enumerate(known.names):
        if name.endswith(("damping", "friction")) and (size := np.sqrt(np.mean(y[..., i] ** 2))):
            values[i] = 0.02 * level / size * rng.uniform(0.3, 2.0)
    return values


def noisy(y: Array, values: Array, seed: int = 5) -> Array:
    """Forces with 1 % of noise."""
    clean = y @ values
    noise = np.random.default_rng(seed).normal(size=clean.shape)
    return np.asarray(clean + 0.01 * np.sqrt(np.mean(clean**2, axis=0)) * noise)


def exists(fit: Identified) -> None:
    """Every body of it, and losses that take."""
    count = len(fit.model.bodies)
    for i in range(count):
        size = np.linalg.eigvalsh(pseudo_inertia(fit.values[10 * i : 10 * i + 10].tolist()))
        assert size[0] >= -1e-12 * size[-1]
    assert np.all(fit.values[10 * count :] >= 0.0)
    assert rm.parameters(fit.model).values == pytest.approx(fit.values, rel=1e-12, abs=1e-15)


def missed(model: rm.Model, found: Array, values: Array) -> Array:
    """Error of forces on a fresh motion, relative, by coordinate."""
    q, v, a = motion(model, 99, 100)
    y = rm.regressor(model, q, v, a)
    clean = y @ values
    error = y @ found - clean
    return np.asarray(np.sqrt(np.mean(error**2, 0)) / np.sqrt(np.mean(clean**2, 0)))


def found_again(model: rm.Model, samples: int) -> tuple[Identified, Array]:
    q, v, a = motion(model, 1, samples)
    values = hidden(model, q, v, a)
    y = rm.regressor(model, q, v, a)
    fit = rm.identify(model, q, v, a, noisy(y, values))
    exists(fit)
    assert missed(model, rm.parameters(model).values, values).max() > 0.15
    assert missed(model, fit.values, values).max() < 0.02
    noise = 0.01 * np.sqrt(np.mean((y @ values) ** 2, axis=0))
    assert np.abs(fit.residual / noise - 1.0).max() < 0.15
    assert np.all(fit.before > 2.0 * fit.residual)
    return fit, values


def about_axes(model: rm.Model, fit: Identified, values: Array) -> dict[str, tuple[float, float]]:
    """Of each rotor, its inertia about its axis: relative error, and relative deviation."""
    result = {}
    for i, (node, body) in enumerate(zip(model.nodes, model.bodies, strict=True)):
        if "rotor" not in body.name:
            continue
        axis = np.array(model.frame(body.name).pose.matrix())[node.joint.k]
        weights = (np.outer(axis, axis) * (2.0 - np.eye(3)))[np.triu_indices(3)]
        at = slice(10 * i + 4, 10 * i + 10)
        true = weights @ values[at]
        deviation = np.sqrt(weights @ fit.covariance[at, at] @ weights)
        result[body.name] = (weights @ fit.values[at] / true - 1.0, deviation / true)
    return result


def test_a_geared_leg() -> None:
    model = rm.robots.load("belt_leg")
    fit, values = found_again(model, 400)
    rotors = about_axes(model, fit, values)
    for name in ("knee_rotor", "ankle_rotor"):  # the hip's is seen with its link's
        assert abs(rotors[name][0]) < 0.05
        assert rotors[name][1] < 0.05
    assert rotors["hip_ry_rotor"][1] > 0.3
    held = [n for n, c in zip(fit.names, np.diag(fit.covariance), strict=True) if c == 0.0]
    uneven = [n for n in fit.names if re.search(r"_rotor\.(mx|mz|Ixy|Ixz|Iyz)$", n)]
    assert held == uneven + [n for n in fit.names if n.endswith("armature")]


@pytest.mark.slow
def test_a_leg_of_a_humanoid() -> None:
    model = rm.robots.load("mit_humanoid_leg")
    fit, values = found_again(model, 2000)
    rotors = about_axes(model, fit, values)
    known = [name for name, (_, deviation) in rotors.items() if deviation < 0.02]
    assert known == ["hip_ry_rotor", "knee_rotor", "ankle_rotor"]
    assert all(abs(rotors[name][0]) < 0.05 for name in known)


@pytest.mark.slow_cases("planar_leg_linkage")
@pytest.mark.parametrize("name", few(["five_bar", "planar_leg_linkage"], "planar_leg_linkage"))
def test_a_linkage(name: str) -> None:
    plain = name == "five_bar"
    model = FIVE_BAR if plain else rm.robots.load(name, gravity=(1.0, -9.0, 0.0))
    fit, _ = found_again(model, 150)
    flat = name == "planar_leg_linkage"
    assert any("that no body has" in note for note in fit.notes) == flat


@pytest.mark.slow
def test_a_floating_base_and_batches() -> None:
    model = rm.load(rm.robots.path("belt_leg"), floating_base=True)
    q, v, a = motion(model, 3, 300)
    values = hidden(model, q, v, a)
    tau = noisy(rm.regressor(model, q, v, a), values)
    fit = rm.identify(model, q, v, a, tau, balanced=True)
    exists(fit)
    assert missed(model, fit.values, values).max() < 0.02
    spins = [node.axisymmetric for node in model.nodes]
    assert [node.axisymmetric for node in fit.model.nodes] == spins
    assert sum(spins) == 3
    parts = [x.reshape(3, 100, -1) for x in (q, v, a, tau)]
    again = rm.identify(model, *parts, balanced=True)
    assert np.allclose(again.values, fit.values, rtol=1e-6, atol=1e-9)
    unknown = tau.copy()
    unknown[:, :6] = np.nan
    part = rm.identify(model, q, v, a, unknown)
    assert np.all(np.isnan(part.residual[:6]))
    assert missed(model, part.values, values)[6:].max() < 0.02


@pytest.mark.slow
def test_without_accelerations() -> None:
    model = rm.robots.load("belt_leg")
    q, v, a = motion(model, 1, 800)
    values = hidden(model, q, v, a)
    tau = noisy(rm.regressor(model, q, v, a), values)
    fit = rm.identify(model, q, v, None, tau, step=10.0 / 799, cutoff=5.0)
    exists(fit)
    assert missed(model, fit.values, values).max() < 0.02


@pytest.mark.slow
def test_outliers() -> None:
    model = FIVE_BAR
    q, v, a = motion(model, 1, 150)
    values = hidden(model, q, v, a)
    tau = noisy(rm.regressor(model, q, v, a), values)
    tau[::15] += 5.0 * np.sqrt(np.mean(tau**2))
    plain = rm.identify(model, q, v, a, tau)
    fit = rm.identify(model, q, v, a, tau, robust=True)
    exists(fit)
    error = missed(model, fit.values, values).max()
    assert error < 0.02
    assert missed(model, plain.values, values).max() > 3.0 * error


def test_exact_forces_change_nothing() -> None:
    model = rm.robots.load("belt_leg")
    q, v, a = motion(model, 1, 100)
    tau = rm.rnea(model, q, v, a)
    fit = rm.identify(model, q, v, a, tau, free="inertial")
    assert np.abs(fit.values - rm.parameters(model).values).max() < 1e-9
    assert np.all(fit.residual < 1e-9)


@pytest.mark.slow
def test_springs_are_the_models() -> None:
    text = rm.robots.path("belt_leg").read_text(encoding="utf-8")
    model = rm.load(text)
    q, v, a = motion(model, 1, 100)
    sprung = rm.load(text, extend=(
        '<robot name="belt_leg"><joint name="knee_link_joint">'
        '<dynamics spring_stiffness="20" damping="0.5"/></joint></robot>'
    ))  # fmt: skip
    tau = rm.rnea(sprung, q, v, a, passive=True)
    assert np.abs(tau - rm.rnea(model, q, v, a)).max() > 1.0
    fit = rm.identify(sprung, q, v, a, tau, free=("mass", "knee_link_joint.damping"))
    assert np.allclose(fit.values, rm.parameters(sprung).values, rtol=1e-3, atol=1e-3)
    assert fit.residual.max() < 1e-3


@pytest.mark.filterwarnings("error:.*did not settle")
def test_what_is_free() -> None:
    model = rm.robots.load("belt_leg")
    q, v, a = motion(model, 1, 60)
    tau = noisy(rm.regressor(model, q, v, a), hidden(model, q, v, a))
    for free, expected in (
        ("mass", lambda n: n.endswith(".mass")),
        (["knee_rotor_joint.armature"], lambda n: n == "knee_rotor_joint.armature"),
        (["knee_link"], lambda n: n.startswith("knee_link.")),
        (["knee_rotor.I*", "friction"], lambda n: "knee_rotor.I" in n or "friction" in n),
    ):
        fit = rm.identify(model, q, v, a, tau, free=free)
        may = np.array([expected(n) for n in fit.names])
        changed = fit.values != rm.parameters(model).values
        assert np.all(changed <= may)
        assert changed.any()
        exists(fit)


SETTLING = [
    ("belt_leg", "inertial", 2),
    ("belt_leg", "knee_link", 1),
    ("five_bar", "link4", 15),
    ("five_bar", "inertial", 16),
    ("planar_leg_linkage", "inertial", 13),
]


@pytest.mark.filterwarnings("error:.*did not settle")
@pytest.mark.parametrize(("name", "free", "seed"), few(SETTLING, SETTLING[0], SETTLING[2]))
def test_fits_that_cannot_fit_settle(
    name: str, free: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 20 passes, and where passes without Newton's steps end after hundreds."""
    model = rm.robots.load(name)
    q, v, a = motion(model, seed, 60 + 10 * seed)
    tau = noisy(rm.regressor(model, q, v, a), hidden(model, q, v, a), seed)
    rm.identify(model, q, v, a, tau, free=free)
    monkeypatch.setattr(fits, "WEIGHTS_SETTLED", 1e-6)
    monkeypatch.setattr(fits, "MOST_PASSES", 500)
    found = rm.identify(model, q, v, a, tau, free=free)
    monkeypatch.setattr(fits, "_ahead", lambda passes, *_: passes[-1][1])
    wanted = rm.identify(model, q, v, a, tau, free=free)
    told = wanted.deviation > 0.0
    far = (found.values - wanted.values)[told] / wanted.deviation[told]
    assert np.abs(far).max() < 1e-4
    np.testing.assert_allclose(found.deviation[told], wanted.deviation[told], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge", "ignore:divide by zero")
def test_priors_of_no_weight() -> None:
    """Combinations that forces leave open are found at the data's values, or it is said."""
    q, v, a = motion(FIVE_BAR, 1, 30)
    tau = rm.rnea(FIVE_BAR, q, v, a)
    noisy = tau + 0.01 * np.random.default_rng(0).standard_normal(tau.shape)
    fit = rm.identify(FIVE_BAR, q, v, a, noisy, prior=100.0)
    assert np.all(fit.residual < 0.012)
    with pytest.raises(ValueError, match=r"prior=1e\+07 weighs nothing .* give a smaller one"):
        rm.identify(FIVE_BAR, q, v, a, noisy, prior=1e7)


def written(path: Path, names: list[str], columns: list[Array]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        file = csv.writer(stream)
        file.writerow(names)
        file.writerows(np.column_stack(columns).tolist())
    return path


def test_a_written_fit_has_the_motors_of_the_file(tmp_path: Path) -> None:
    """Rotors stay symmetric, by which files know them, where nothing tells their other moments."""
    model = rm.robots.load("belt_leg")
    q, v, a = motion(model, 1, 120)
    tau = rm.regressor(model, q, v, a) @ hidden(model, q, v, a)
    tau += 0.01 * np.std(tau, axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    rm.write_urdf(rm.identify(model, q, v, a, tau).model, tmp_path / "fit.urdf")
    again = rm.load(tmp_path / "fit.urdf")
    assert [x.joint for x in again.actuators] == [x.joint for x in model.actuators]
    assert [x.terms for x in again.actuators] == [x.terms for x in model.actuators]


@pytest.mark.slow
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = FIVE_BAR
    q, v, a = (x[::6] for x in motion(model, 1, 150))
    values = hidden(model, q, v, a)
    tau = noisy(rm.regressor(model, q, v, a), values)
    joints = model.dof_names
    place = np.array([[x[model.joint_names.index(j)] for j in joints] for x in q])
    kinds = ("q", "v", "a", "tau")
    names = ["time", *(f"{kind}.{joint}" for kind in kinds for joint in joints), "heat"]
    time = np.linspace(0.0, 10.0, 25)
    log = written(tmp_path / "log.csv", names, [time, place, v, a, tau, time])
    out = tmp_path / "found.urdf"

    plain = tmp_path / "five_bar.urdf"
    rm.write_urdf(model, plain)

    def run(*arguments: object) -> tuple[int | str | None, str, str]:
        with pytest.raises(SystemExit) as done:
            main(["identify", *map(str, arguments)])
        return done.value.code, *capsys.readouterr()

    status, text, error = run(plain, log, "-o", out, "--json")
    assert (status, error) == (0, "")
    document = json.loads(text)
    fit = rm.identify(model, q, v, a, tau)
    assert [x["value"] for x in document["parameters"]] == pytest.approx(fit.values, rel=1e-5)
    assert document["unused"] == ["heat"]
    assert missed(rm.load(out), rm.parameters(rm.load(out)).values, values).max() < 0.02
    # dependent positions in the log, which are then not solved for; no time is needed
    labels = [*(f"q.{joint}" for joint in model.joint_names), *names[3:9]]
    full = written(tmp_path / "full.csv", labels, [q, v, a, tau])
    status, text, _ = run(plain, full)
    assert status == 0
    assert "What changed most, " in text
    assert "reduces the assumed variance of these by less than a tenth" in text

    lines = log.read_text(encoding="utf-8").splitlines()
    header, *samples = lines
    for wrong, message in (
        ([header.replace("v.J2", "v.J5"), *samples], "bad.csv:1: velocities are missing: 'v.J2'"),
        ([header, samples[0], samples[1].replace(",", ",x", 1)], "bad.csv:3: q.J1: 'x"),
        ([header, samples[0], "1,2"], "bad.csv:3: 2 cells, where the header has 10"),
        ([header, samples[1], samples[0]], "bad.csv:3: time does not increase"),
        ([header, samples[0], "1" + "," * 9], "bad.csv:3: v.J1 is empty"),
        ([header], "bad.csv:1: no samples"),
        ([header.replace("tau.", "t.")], "no samples"),
        ([], "bad.csv:1: no header"),
    ):
        bad = tmp_path / "bad.csv"
        bad.write_text("\n".join(wrong), encoding="utf-8")
        status, _, said = run(plain, bad)
        assert status == 2
        assert message in said
        assert said.count("\n") == 1
    assert run(plain, log, "-o", tmp_path / "x.txt")[0] == 2
    assert run(plain, tmp_path / "none.csv")[0] == 2
    assert run(plain, full, "--free", "nothing")[0] == 2
    assert run(plain, log, "--what")[0] == 2
