"""What identification reports first, and what of a log it warns of."""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_identify import motion

import robomodel as rm
from robomodel import running
from robomodel.cli import main
from robomodel.identification import Identified

Array = NDArray[np.float64]

LEG = rm.robots.load("belt_leg")
COUNT, SECONDS = 400, 8.0


def columns(**change: float) -> dict[str, Array]:
    """A log with positions within limits, and forces with noise; ``change``: damping by joint."""
    q, v, a = motion(LEG, 3, COUNT, SECONDS)
    values = rm.parameters(LEG).values.copy()
    names = rm.parameters(LEG).names
    for name, x in change.items():
        values[names.index(f"{name}.damping")] = x
    tau = rm.regressor(LEG, q, v, a) @ values
    tau = tau + 1e-3 * np.random.default_rng(0).normal(size=tau.shape)
    place = LEG.joint_positions(q)
    table: dict[str, Array] = {"time": np.linspace(0.0, SECONDS, COUNT)}
    for i, name in enumerate(LEG.dof_names):
        table |= {f"q.{name}": place[name], f"v.{name}": v[:, i], f"a.{name}": a[:, i],
                  f"tau.{name}": tau[:, i]}  # fmt: skip
    return table


def quietly(table: dict[str, Array]) -> Identified:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return rm.identify(LEG, table, free=["damping", "friction"])


def test_sums_are_known_where_their_terms_are_not() -> None:
    joint = LEG.dof_names[-1]
    rotors = [j for j in LEG.joint_names if "rotor" in j and "knee" in j]
    table = columns(**{joint: 0.4, rotors[0]: 0.01})
    fit = quietly(table)
    truth = dict.fromkeys(fit.names, 0.0) | {f"{joint}.damping": 0.4, f"{rotors[0]}.damping": 0.01}
    losses = [g for g in fit.groups if all(".damping" in n for n in g.coefficients)]
    assert any(len(group.coefficients) > 1 for group in losses)
    for group in losses:
        value = sum(c * truth[n] for n, c in group.coefficients.items())
        assert group.unit == "N m s/rad"
        assert abs(group.value - value) < max(5.0 * group.deviation, 1e-3)
    total = next(g for g in losses if f"{rotors[0]}.damping" in g.coefficients)
    assert total.known
    assert len(total.coefficients) == 2
    terms = [c * fit.deviation[fit.names.index(n)] for n, c in total.coefficients.items()]
    assert total.deviation < 0.1 * min(terms)


def test_a_log_that_is_right_gives_no_warning() -> None:
    assert quietly(columns()).suspicions == ()


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ("tau", "of forces seem to be swapped, those of"),
        ("q v a", "of motions seem to be swapped, those of"),
        ("q v a tau", "of motions and forces seem to be swapped, those of"),
        ("q", "of positions or velocities seem to be swapped"),
        ("q v", "of velocities or accelerations seem to be swapped"),
        ("q v tau", "of motions and forces seem to be swapped, those of"),
    ],
)
def test_swapped_columns_are_the_first_suspicion(kinds: str, words: str) -> None:
    """Of two joints; the last log has no accelerations."""
    table = columns()
    names = LEG.dof_names[:2]
    if kinds == "q v tau":
        table = {name: x for name, x in table.items() if not name.startswith("a.")}
        assert quietly(table).suspicions == ()
    right = dict(table)
    for kind in kinds.split():
        for one, other in (names, names[::-1]):
            table[f"{kind}.{one}"] = right[f"{kind}.{other}"]
    first, *others = quietly(table).suspicions
    assert first.startswith(f"columns {words}")
    assert f"'{names[0]} and {names[1]}'" in first
    assert not any("before the motion" in each or "after the motion" in each for each in others)


@pytest.mark.parametrize(
    ("kind", "factor", "words"),
    [
        ("v", 180.0 / np.pi, "velocities seem to be in degrees/s"),
        ("q", 180.0 / np.pi, "positions seem to be in degrees"),
        ("v", -1.0, "velocities have the opposite sign"),
        ("v", 1e-3, "positions change so many times as fast as the velocities say"),
        ("tau", 1e3, "forces are so many times those of the file's parameters"),
        ("tau", -1.0, "forces seem to have the opposite sign"),
        ("tau", 0.0, "forces are zero throughout, where the file's parameters need some"),
    ],
)
def test_units_and_signs(kind: str, factor: float, words: str) -> None:
    table = columns()
    name = LEG.dof_names[1]
    table[f"{kind}.{name}"] = factor * table[f"{kind}.{name}"]
    with warnings.catch_warnings(record=True) as told:  # beside it: that parameters explain little
        warnings.simplefilter("always", RuntimeWarning)
        fit = rm.identify(LEG, table, free=["damping"])
    assert [each for each in told if words in str(each.message)]
    assert [text for text in fit.suspicions if words in text and f"'{name}" in text]


def test_a_log_of_zeros_is_refused() -> None:
    zeros = {name: 0.0 * x if name != "time" else x for name, x in columns().items()}
    with pytest.raises(ValueError, match="zero throughout: nothing was recorded"):
        rm.identify(LEG, zeros)
    q = np.zeros((3, LEG.nq))
    with pytest.raises(ValueError, match="zero throughout: nothing was recorded"):
        rm.identify(LEG, q, q, q, q)


def test_columns_of_unknown_joints() -> None:
    table = columns()
    one = f"tau.{LEG.dof_names[0]}"
    table["tau.hip_ry_link_jiont"] = table.pop(one)
    (note,) = [x for x in rm.identification.read_log(LEG, table).notes if "is not used" in x]
    assert note.endswith("did you mean 'tau.hip_ry_link_joint'?")


def test_damping_is_no_delay() -> None:
    """It leads where the file has none, as late forces do."""
    table = swing(0.9)
    table["tau.swing"] += 5.0 * table["v.swing"]
    assert rm.identify(PENDULUM, table, free=["damping"]).suspicions == ()


def test_delays() -> None:
    table = columns()
    for name in LEG.dof_names:
        table[f"tau.{name}"] = np.roll(table[f"tau.{name}"], 5)
    with pytest.warns(RuntimeWarning, match=r"forces come 100 ms after the motion"):
        rm.identify(LEG, table, free=["damping"])
    knee, time = columns()[f"tau.{LEG.dof_names[1]}"], table["time"]
    table[f"tau.{LEG.dof_names[1]}"] = np.interp(time - 0.008, time, knee)
    with pytest.warns(RuntimeWarning, match=r"'hip_ry_link_joint', 'ankle_link_joint'$"):
        fit = rm.identify(LEG, table, free=["damping"])  # the other's is too small to be suspected
    (note,) = [note for note in fit.notes if "forces come after" in note]
    assert re.search(r": 'knee_link_joint \([78](\.\d+)? ms\)'$", note)


def test_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts fits: also those of blocks, and of friction's forms."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    clock = iter(range(10**9))
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    table = swing(0.9)
    for stream, wanted, shown in (
        (Terminal(), True, True),
        (Terminal(), False, False),
        (io.StringIO(), True, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        rm.identify(PENDULUM, table, free=["damping"], friction="auto", folds=2, progress=wanted)
        assert bool(stream.getvalue()) is shown
        assert ("identify 'pendulum'" in stream.getvalue()) is shown


PENDULUM = rm.load("""
<robot name="pendulum">
  <link name="base"/>
  <link name="arm">
    <inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="swing" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="3" effort="50"/>
    <dynamics damping="0.2" friction="0.1"/>
  </joint>
</robot>""")


def swing(size: float, peak: float = 0.0) -> dict[str, Array]:
    """A pendulum's log; ``peak``: Stribeck's friction at standstill [N m]."""
    time = np.linspace(0.0, 10.0, 1001)
    q, v, a = size * np.array([np.sin(time), np.cos(time), -np.sin(time)])
    tau = rm.regressor(PENDULUM, q[:, None], v[:, None], a[:, None])
    force = tau[:, 0] @ rm.parameters(PENDULUM).values
    force = force + 1e-4 * np.random.default_rng(0).normal(size=len(force))
    force = force + peak * np.sign(v) * np.exp(-((v / 0.05) ** 2))
    return {"time": time, "q.swing": q, "v.swing": v, "a.swing": a, "tau.swing": force}


def test_broken_limits() -> None:
    assert rm.identify(PENDULUM, swing(0.9), free=["damping"]).suspicions == ()
    with pytest.warns(RuntimeWarning, match="positions go beyond the file's limits"):
        fit = rm.identify(PENDULUM, swing(1.5), free=["damping"])
    assert "swing (-1.5 to 1.5)" in fit.suspicions[0]
    with pytest.warns(RuntimeWarning, match="go beyond the file's limits") as told:
        rm.identify(PENDULUM, swing(4.0), free=["damping"])
    assert [str(each.message).split()[0] for each in told] == ["positions", "velocities"]


def test_friction_that_rises_towards_standstill() -> None:
    plain = rm.identify(PENDULUM, swing(0.9), free=["damping", "friction"])
    assert not any("Stribeck" in note for note in plain.notes)
    sticky = rm.identify(PENDULUM, swing(0.9, 0.3), free=["damping", "friction"])
    assert any("Stribeck" in note and "swing (below" in note for note in sticky.notes)


def test_arrays_have_the_notes_of_files() -> None:
    table = swing(0.9, 0.3)
    arrays = (table[f"{kind}.swing"][:, None] for kind in ("q", "v", "a", "tau"))
    fit = rm.identify(PENDULUM, *arrays, free=["damping", "friction"])
    assert any("Stribeck" in note and "swing (below" in note for note in fit.notes)


@pytest.mark.slow
def test_gaps_in_forces_lose_only_themselves() -> None:
    """Without accelerations, wherever a coordinate's force is missing; the equations stay exact."""
    full = columns()
    q = np.array([LEG.configuration({n: full[f"q.{n}"][i] for n in LEG.dof_names})
                  for i in range(COUNT)])  # fmt: skip
    v, a, tau = (np.stack([full[f"{k}.{n}"] for n in LEG.dof_names], -1) for k in ("v", "a", "tau"))
    exact = rm.regressor(LEG, q, v, a) @ rm.parameters(LEG).values
    missing = np.zeros(tau.shape, dtype=bool)
    missing[[0, 7, 8, 200, -1], 1] = True
    missing[100:300, 2] = True
    options = {"step": SECONDS / (COUNT - 1), "cutoff": 5.0}
    rows, whole = rm.identification.filtered_regressor(LEG, q, v, exact, **options)
    gapped, force = rm.identification.filtered_regressor(
        LEG, q, v, np.where(missing, np.nan, exact), **options
    )
    width = round(0.3175 / (5.0 * options["step"]))
    lost = np.array([
        missing[width * k : width * (k + 4) - 1].any(axis=0) for k in range(len(force))
    ])  # fmt: skip
    assert np.array_equal(np.isnan(force), lost)
    assert np.array_equal(gapped, rows)
    assert np.array_equal(force[~lost], whole[~lost])
    values = rm.parameters(LEG).values
    assert np.abs(rows @ values - whole).max() < 1e-3 * np.abs(whole).max()
    batch = np.stack([np.where(missing, np.nan, exact), exact])
    _, forces = rm.identification.filtered_regressor(
        LEG, np.stack([q, q]), np.stack([v, v]), batch, **options
    )
    assert np.array_equal(forces[0], force, equal_nan=True)
    assert np.array_equal(forces[1], whole)
    table = {name: x for name, x in full.items() if not name.startswith("a.")}
    for i, name in enumerate(LEG.dof_names):
        table[f"tau.{name}"] = np.where(missing[:, i], np.nan, full[f"tau.{name}"])
    fit = quietly(table)
    assert np.array_equal(np.isnan(fit.measured), lost)
    (note,) = [each for each in fit.notes if "forces are missing" in each]
    counts = [f"'{LEG.dof_names[i]} ({lost[:, i].sum()})'" for i in (1, 2)]
    assert f"of {len(lost)} windows, which lack a sample: {', '.join(counts)}" in note
    table[f"tau.{LEG.dof_names[0]}"] = np.full(COUNT, np.nan)
    assert note in quietly(table).notes  # a coordinate that was not measured has no gaps


def delayed(late: float, seed: int = 0, peak: float = 0.0, noise: float = 1e-2) -> dict[str, Array]:
    """The pendulum's log over 20 s, forces ``late`` [s]; ``peak``: Stribeck's friction [N m]."""
    rng = np.random.default_rng(seed)
    phase, size, rate = (
        rng.uniform(0, 6, 4),
        rng.uniform(0.1, 0.25, 4),
        np.array([0.9, 1.7, 2.9, 4.1]),
    )
    time = 0.01 * np.arange(2000)

    def state(at: Array) -> Array:
        angle = np.outer(at, rate) + phase
        return np.array([np.sin(angle) @ size, np.cos(angle) @ (size * rate),
                         -np.sin(angle) @ (size * rate**2)])  # fmt: skip

    q, v, a = state(time - late)[..., None]
    force = rm.regressor(PENDULUM, q, v, a)[:, 0] @ rm.parameters(PENDULUM).values
    force = force + peak * np.sign(v[:, 0]) * np.exp(-((v[:, 0] / 0.2) ** 2))
    names = ("q.swing", "v.swing", "a.swing")
    columns = dict(zip(names, state(time), strict=True))
    return {"time": time, **columns, "tau.swing": force + noise * rng.normal(size=len(force))}


@pytest.mark.parametrize("filtered", [False, True])
def test_delays_are_identified_to_a_part_of_a_sample(filtered: bool) -> None:
    free = ["damping", "friction"]
    for late in (-0.03, 0.005, 0.0275, 0.15):
        table = delayed(late)
        if filtered:
            del table["a.swing"]
        fit = rm.identify(PENDULUM, table, free=free, delays=True)
        (delay,) = fit.sensors
        assert (delay.kind, delay.name) == ("delay", "swing")
        assert abs(delay.value - late) < 0.25 * 0.01
        assert not any("after the motion" in x for x in (*fit.notes, *fit.suspicions))
        assert dict(zip(fit.names, fit.values, strict=True))["swing.damping"] == pytest.approx(
            0.2, abs=0.02
        )
    for late, remarks in ((0.0, 0), (0.005, 1)):
        notes = rm.identify(PENDULUM, delayed(late), free=free).notes
        assert sum("delays=True" in note for note in notes) == remarks
    with pytest.warns(RuntimeWarning, match=r"forces come 200 ms or more after .*delays=True"):
        rm.identify(PENDULUM, delayed(0.3), free=free)


@pytest.mark.slow
def test_command_predicts_logs_that_no_fit_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, log = tmp_path / "robot.urdf", tmp_path / "log.csv"
    rm.write_urdf(PENDULUM, file)

    def run(table: dict[str, Array], *arguments: str) -> tuple[object, str, str]:
        rows = np.column_stack(list(table.values()))
        np.savetxt(log, rows, delimiter=",", header=",".join(table), comments="")
        with pytest.raises(SystemExit) as done:
            main(["identify", str(file), str(log), *arguments])
        return done.value.code, *capsys.readouterr()

    status, text, error = run(delayed(0.0), "--predict", "--json")
    (row,) = json.loads(text)["coordinates"]
    assert (status, error) == (0, "")
    assert row["residual"] == pytest.approx(0.01, rel=0.1)  # the noise
    status, text, error = run(delayed(0.05), "--predict")
    assert status == 1
    assert "50 ms after the motion" in error
    assert "--delays" in error
    renamed = {n.replace("q.swing", "position_swing"): x for n, x in delayed(0.0).items()}
    status, text, error = run(renamed)
    assert status == 2
    assert "positions are missing: 'q.swing'; --rename position_swing=q.swing names" in error
    assert run(renamed, "--predict", "--rename", "position_swing=q.swing")[0] == 0
    assert "did you mean 'position_swing'" in run(renamed, "--rename", "position_swin=q.swing")[2]
    assert "write it as OLD=NEW" in run(renamed, "--rename", "position_swing")[2]
    lost = delayed(0.0)
    lost["v.swing"][4:7] = np.nan
    assert ":6: v.swing is empty or not finite, here and in 2 more rows" in run(lost)[2]


def test_delays_need_one_motion_at_even_times() -> None:
    table = delayed(0.0)
    arrays = [table[f"{kind}.swing"][:, None] for kind in ("q", "v", "a", "tau")]
    with pytest.raises(ValueError, match="one motion at even times"):
        rm.identify(PENDULUM, *arrays, delays=True)
    with pytest.raises(ValueError, match="a motion of 1 s or more"):
        rm.identify(PENDULUM, {n: x[:50] for n, x in table.items()}, delays=True)
    with pytest.raises(rm.errors.UnknownNameError, match="did you mean 'swing'"):
        rm.identify(PENDULUM, table, delays="swin")


@pytest.mark.slow
def test_intervals_of_stribeck_friction_hold_the_truth() -> None:
    """Of 20 trials each 95 % interval may miss a few; small peaks are noted."""
    truth = {"static friction": 0.1, "Stribeck velocity": 0.2}
    hits = dict.fromkeys((*truth, "swing.damping", "swing.friction"), 0)
    free = ["damping", "friction", "mass"]
    for seed in range(20):
        fit = rm.identify(PENDULUM, delayed(0.0, seed, 0.1), free=free, stribeck=True)
        for each in fit.sensors:
            hits[each.kind] += abs(each.value - truth[each.kind]) < 1.96 * each.deviation
        for name, value in (("swing.damping", 0.2), ("swing.friction", 0.1)):
            low, high = fit.interval()[fit.names.index(name)]
            hits[name] += low < value < high
    assert min(hits.values()) >= 17  # right intervals hold fewer in 2 % of such counts
    for peak, remarks in ((0.0, 0), (0.05, 1)):
        notes = rm.identify(PENDULUM, delayed(0.0, 0, peak), free=free).notes
        assert sum("stribeck=True" in note for note in notes) == remarks
    with pytest.raises(
        rm.errors.UnknownNameError, match="stribeck: no joint with one freedom 'no'"
    ):
        rm.identify(PENDULUM, swing(0.9), stribeck="no")


def test_times_that_jitter() -> None:
    even = {n: x for n, x in swing(0.9).items() if not n.startswith("a.")}
    rng = np.random.default_rng(1)
    jitter = even["time"] + rng.uniform(-2e-4, 2e-4, len(even["time"]))
    jitter[0] = 0.0
    table = {n: np.interp(jitter, even["time"], x) for n, x in even.items()} | {"time": jitter}
    free = ["damping", "friction"]
    fit, exact = (rm.identify(PENDULUM, each, free=free) for each in (table, even))
    assert any("times jitter by up to 0." in note for note in fit.notes)
    assert not any("jitter" in note for note in exact.notes)
    assert fit.values == pytest.approx(exact.values, rel=1e-2, abs=1e-4)
    table["time"] = jitter + 0.05 * (np.arange(len(jitter)) > 500)
    with pytest.raises(rm.DescriptionError, match=r"row 501: .* ms after the sample before"):
        rm.identify(PENDULUM, table)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Combinations come first; what cannot be is told on standard error, with exit status 1."""
    file, log, page = (tmp_path / name for name in ("robot.urdf", "log.csv", "page.html"))
    rm.write_urdf(PENDULUM, file)

    def run(size: float, *arguments: object) -> tuple[object, str, str]:
        table = swing(size)
        rows = np.column_stack(list(table.values()))
        np.savetxt(log, rows, delimiter=",", header=",".join(table), comments="")
        with pytest.raises(SystemExit) as done:
            main(["identify", *map(str, (file, log, *arguments))])
        return done.value.code, *capsys.readouterr()

    status, text, error = run(0.9, "--html", page)
    assert (status, error) == (0, "")
    assert "Identifiable combinations" in text
    assert "N m s/rad" in text
    html = page.read_text(encoding="utf-8")
    assert "time [s]" in html
    rows = re.findall(r"<tr( class=\"faint\")?><td>([\w.]+)</td>(.*?)</tr>", html)
    assert {bool(faint) for faint, _, _ in rows} == {True, False}
    for faint, _, cells in rows:  # what the motions do not tell is grey
        assert bool(faint) == ("<td>unknown</td>" in cells)
    status, text, error = run(1.5, "--json")
    assert status == 1
    assert "beyond the file's limits" in error
    found = json.loads(text)
    assert found["groups"][0]["unit"]
    assert len(found["suspicions"]) == 1
