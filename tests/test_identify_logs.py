"""Logs: CSV, Parquet, ROS's bags and tables give the same motion; their reports."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_identify import FIVE_BAR, Array, hidden, motion, noisy

import robomodel as rm
from robomodel.cli import main

LEG = rm.robots.load("belt_leg")
STEP = 0.01


def columns(model: rm.Model, count: int = 40, seconds: float | None = None) -> dict[str, Array]:
    """A log; its times are those of the motion where ``seconds`` says how long that takes."""
    q, v, a = motion(model, 1, count, seconds or 10.0)
    tau = noisy(rm.regressor(model, q, v, a), hidden(model, q, v, a))
    place = model.joint_positions(q)
    found = {"time": np.linspace(0.0, seconds, count) if seconds else STEP * np.arange(count)}
    for i, name in enumerate(model.dof_names):
        found |= {f"q.{name}": place[name]}
        found |= {f"{k}.{name}": x[:, i] for k, x in (("v", v), ("a", a), ("tau", tau))}
    return found


def same_log(first: object, second: object) -> None:
    for name in ("q", "v", "a", "tau", "step"):
        one, other = getattr(first, name), getattr(second, name)
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12, equal_nan=True)


def in_csv(path: Path, table: dict[str, Array]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        file = csv.writer(stream)
        file.writerow(table)
        file.writerows(np.column_stack(list(table.values())).tolist())
    return path


@pytest.mark.slow
def test_tables_and_files_are_alike(tmp_path: Path) -> None:
    table = columns(FIVE_BAR)
    plain = rm.identification.read_log(FIVE_BAR, table)
    assert plain.step == pytest.approx(STEP)
    assert plain.encoders is None
    frame = pd.DataFrame({**table, "note": ["x"] * 40})
    same_log(plain, rm.identification.read_log(FIVE_BAR, frame))
    assert rm.identification.read_log(FIVE_BAR, frame).unused == ("note",)
    same_log(plain, rm.identification.read_log(FIVE_BAR, in_csv(tmp_path / "log.csv", table)))
    frame.to_parquet(tmp_path / "log.parquet")
    same_log(plain, rm.identification.read_log(FIVE_BAR, tmp_path / "log.parquet"))


def test_identify_takes_logs(tmp_path: Path) -> None:
    table = columns(LEG, seconds=4.0)
    plain = rm.identification.read_log(LEG, table)
    by_arrays = rm.identify(LEG, plain.q, plain.v, plain.a, plain.tau, free="mass")
    path = in_csv(tmp_path / "log.csv", table)
    for source in (path, str(path), table, pd.DataFrame(table), plain):
        assert np.allclose(by_arrays.values, rm.identify(LEG, source, free="mass").values)


@pytest.mark.parametrize("rotors", [False, pytest.param(True, marks=pytest.mark.tables)])
def test_velocities_from_positions(rotors: bool) -> None:
    """Without a lag: slopes of measured positions, of coordinates or of encoders at rotors."""
    q, v, _ = motion(LEG, 1, 2001, 4.0)
    place, rates = LEG.joint_positions(q), LEG.joint_velocities(q, v)
    names = [n for n in LEG.joint_names if ("rotor" in n) == rotors]
    noise = 1e-6 * np.random.default_rng(4).normal(size=q.shape)
    table = {"time": 2e-3 * np.arange(len(q))}
    table |= {f"q.{n}": place[n] + noise[:, i] for i, n in enumerate(names)}
    table |= {f"tau.{n}": noise[:, i] for i, n in enumerate(LEG.dof_names)}
    with pytest.raises(rm.DescriptionError, match=r"velocities are missing.*velocities=20"):
        rm.identification.read_log(LEG, table)
    log = rm.identification.read_log(LEG, table, velocities=25.0)
    assert log.encoders == (tuple(names) if rotors else None)
    exact = np.stack([rates[n] for n in names], axis=1)
    scale = np.abs(exact).max()
    assert np.abs(log.v - exact)[100:-100].max() < 1e-4 * scale
    coarse = rm.identification.read_log(
        LEG, {n: x[::10] for n, x in table.items()}, velocities=20.0
    )
    assert np.abs(coarse.v - exact[::10])[10:-10].max() < 5e-3 * scale
    for wrong in (0.0, -5.0, np.nan, 250.0):
        with pytest.raises(ValueError, match="velocities is a frequency between 0 and 250 Hz"):
            rm.identification.read_log(LEG, table, velocities=wrong)
    with pytest.raises(ValueError, match="need more than"):
        rm.identification.read_log(LEG, {n: x[:10] for n, x in table.items()}, velocities=25.0)
    with pytest.raises(ValueError, match="even times"):
        rm.identification.read_log(
            LEG, {n: x for n, x in table.items() if n != "time"}, velocities=25.0
        )


@pytest.mark.slow
def test_encoders_and_forces_of_rotors() -> None:
    table = columns(LEG, seconds=4.0)
    plain = rm.identification.read_log(LEG, table)
    g = LEG.constraint_jacobian(plain.q)
    rotors = [name for name in LEG.joint_names if "rotor" in name]
    rows = [LEG.joint_names.index(name) for name in rotors]
    place = LEG.joint_positions(plain.q)
    force = np.linalg.solve(np.swapaxes(g[:, rows], 1, 2), plain.tau[..., None])[..., 0]
    at_motors = {}
    for i, (name, row) in enumerate(zip(rotors, rows, strict=True)):
        at_motors |= {
            f"q.{name}": place[name],
            f"v.{name}": (g[:, row] * plain.v).sum(1),
            f"a.{name}": (g[:, row] * plain.a).sum(1),
            f"tau.{name}": force[:, i],
        }
    log = rm.identification.read_log(LEG, at_motors)
    assert log.encoders == tuple(rotors)
    assert np.allclose(log.tau, plain.tau, rtol=1e-10, atol=1e-12)
    fit = rm.identify(LEG, log, free="mass")
    assert np.allclose(fit.values, rm.identify(LEG, plain, free="mass").values, atol=1e-9)
    currents = {f"current.{each.name}": f for each, f in zip(LEG.actuators, force.T, strict=True)}
    kept = {n: x for n, x in at_motors.items() if not n.startswith("tau")}
    again = rm.identify(LEG, {**kept, **currents}, constants=1.0, free="mass")
    assert np.allclose(again.values, fit.values, atol=1e-9)
    only = dict(list(currents.items())[:1])  # the others are not known: the knee's forces neither
    part = rm.identification.read_log(LEG, {**kept, **only})
    fit = rm.identify(LEG, part, constants=1.0, free="mass")
    assert np.isfinite(fit.residual).tolist() == [True, False, False]


def test_wrenches() -> None:
    table = columns(LEG)
    ends = ("mx", "my", "mz", "fx", "fy", "fz")
    felt = {f"wrench.ankle_link.{e}": np.full(40, float(i)) for i, e in enumerate(ends)}
    log = rm.identification.read_log(LEG, {**table, **felt})
    assert np.array_equal(log.f_ext["ankle_link"], np.tile(np.arange(6.0), (40, 1)))
    assert log.unused == ()
    del felt["wrench.ankle_link.fz"]
    with pytest.raises(rm.DescriptionError, match=r"missing: 'wrench.ankle_link.fz'"):
        rm.identification.read_log(LEG, {**table, **felt})
    with pytest.raises(rm.DescriptionError, match=r"wrench.foot: .*no link 'foot'"):
        rm.identification.read_log(LEG, {**table, "wrench.foot.mx": np.zeros(40)} | {
            f"wrench.foot.{e}": np.zeros(40) for e in ends
        })  # fmt: skip


def bag(path: Path, table: dict[str, Array], names: tuple[str, ...], topics: list[str]) -> Path:
    """A bag of ROS 2 with messages of joints, and a wrench."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    time, header = kinds["builtin_interfaces/msg/Time"], kinds["std_msgs/msg/Header"]
    state = kinds["sensor_msgs/msg/JointState"]
    vector = kinds["geometry_msgs/msg/Vector3"]
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        links = [
            writer.add_connection(topic, state.__msgtype__, typestore=store) for topic in topics
        ]
        wrench = kinds["geometry_msgs/msg/WrenchStamped"]
        sensor = writer.add_connection("/foot", wrench.__msgtype__, typestore=store)
        for n, at in enumerate(table["time"]):
            now = round(1e9 * (100.0 + at))
            stamp = time(sec=now // 10**9, nanosec=now % 10**9)
            said = state(
                header=header(stamp=stamp, frame_id=""),
                name=list(names),
                **{
                    field: np.array([table[f"{kind}.{name}"][n] for name in names])
                    for field, kind in (("position", "q"), ("velocity", "v"), ("effort", "tau"))
                },
            )
            for link in links:
                writer.write(link, now, store.serialize_cdr(said, state.__msgtype__))
            felt = wrench(
                header=header(stamp=stamp, frame_id="ankle_link"),
                wrench=kinds["geometry_msgs/msg/Wrench"](
                    force=vector(x=1.0, y=2.0, z=3.0), torque=vector(x=4.0, y=5.0, z=6.0)
                ),
            )
            writer.write(sensor, now, store.serialize_cdr(felt, wrench.__msgtype__))
    return path


def test_bags(tmp_path: Path) -> None:
    table = columns(LEG)
    folder = bag(tmp_path / "bag", table, LEG.dof_names, ["/joint_states"])
    (file,) = folder.glob("*.mcap")
    expected = rm.identification.read_log(LEG, {n: x for n, x in table.items() if n[:2] != "a."})
    for path in (folder, file):
        log = rm.identification.read_log(LEG, path)
        assert log.a is None
        for name in ("q", "v", "tau"):
            assert np.allclose(getattr(log, name), getattr(expected, name), atol=1e-6)
        assert log.step == pytest.approx(STEP, rel=1e-6)
        assert np.allclose(log.f_ext["ankle_link"], [4.0, 5.0, 6.0, 1.0, 2.0, 3.0])
    two = bag(tmp_path / "two", table, LEG.dof_names, ["/a", "/b"])
    with pytest.raises(rm.DescriptionError, match="several topics of joints: '/a', '/b'"):
        rm.identification.read_log(LEG, two)
    log = rm.identification.read_log(LEG, two, topic="/b")
    assert log.unused == ("/a",)
    with pytest.raises(rm.DescriptionError, match="no topic of joints '/c'"):
        rm.identification.read_log(LEG, two, topic="/c")
    (tmp_path / "bad.mcap").write_bytes(b"no bag")
    with pytest.raises(rm.DescriptionError, match=r"bad.mcap: no bag"):
        rm.identification.read_log(LEG, tmp_path / "bad.mcap")
    with pytest.raises(FileNotFoundError):
        rm.identification.read_log(LEG, tmp_path / "none.mcap")


def test_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = columns(LEG)
    knee = "v.knee_link_joint"
    for change, message in (
        ({knee: None}, f"<table>: velocities are missing: '{knee}'"),
        ({knee: np.where(np.arange(40) == 7, np.nan, 0.0)}, f"row 7: {knee} is empty"),
        ({knee: np.zeros(39)}, "columns are not of one length"),
        ({n: None for n in table if n.startswith("tau")}, "no forces: tau.ankle_link_joint and"),
        ({"time": table["time"][::-1].copy()}, "row 1: time does not increase"),
    ):
        changed = {n: x for n, x in {**table, **change}.items() if x is not None}
        with pytest.raises(rm.DescriptionError, match=message):
            rm.identification.read_log(LEG, changed)
    with pytest.raises(TypeError, match="not int"):
        rm.identification.read_log(LEG, 3)
    with pytest.raises(ValueError, match="a log, which comes alone: its columns give 'tau', too"):
        rm.identify(LEG, table, tau=np.zeros((40, 3)))
    rates = {n: x for n, x in table.items() if n[:2] != "a."}
    for cutoff in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="cutoff must be positive and finite"):
            rm.identify(LEG, rates, cutoff=cutoff)
    more = {**columns(FIVE_BAR), "q.J3": np.zeros(40)}
    assert rm.identification.read_log(FIVE_BAR, more).notes == (
        "column 'q.J3' is not used: others give the motion",
    )
    timeless = {n: x for n, x in table.items() if n != "time" and n[:2] != "a."}
    with pytest.raises(ValueError, match="a column 'time' is needed"):
        rm.identify(LEG, timeless)
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(rm.DescriptionError, match=r"bad.parquet: no Parquet file"):
        rm.identification.read_log(LEG, tmp_path / "bad.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "rosbags.highlevel", None)
    for name in ("log.parquet", "log.mcap"):
        with pytest.raises(ImportError, match=r"pip install .*(pyarrow|rosbags)"):
            rm.identification.read_log(LEG, tmp_path / name)


@pytest.mark.slow
def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = columns(LEG, 60, 3.0)
    log, page = in_csv(tmp_path / "<log>.csv", table), tmp_path / "report.html"

    def run(*arguments: object) -> tuple[int | str | None, str, str]:
        with pytest.raises(SystemExit) as done:
            main(["identify", "belt_leg", *map(str, arguments)])
        return done.value.code, *capsys.readouterr()

    status, text, _ = run(log, "--html", page, "--folds", 3, "--offsets")
    assert status == 0
    assert "in blocks not seen" in text
    assert "zero of the encoder of" in text
    html = page.read_text(encoding="utf-8").replace("<wbr/>", "")
    for words in ("60 samples of &lt;log&gt;.csv", "Measured and predicted", "What changed most",
                  "Not identifiable", "zero of the encoder of knee_link_joint"):  # fmt: skip
        assert words in html
    assert html.count("<svg") == 3 * LEG.nv  # too few samples for means over velocity and so on
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    picture = tmp_path / "residuals.svg"
    status, text, _ = run(log, "--plot", picture, "--json", "--free", "mass")
    assert status == 0
    assert json.loads(text)["sensors"] == []
    assert picture.stat().st_size > 1000
    for wrong in (
        ["--constant", "x"],
        ["--constant", "a=b"],
        ["--folds", "1"],
        ["--constant", "knee_link_joint=2"],
    ):  # of a log of torques
        status, _, said = run(log, *wrong)
        assert status == 2
        assert said.count("\n") == 1
    currents = {n.replace("tau.", "current."): x for n, x in table.items()}
    amperes = in_csv(tmp_path / "amperes.csv", currents)
    status, _, said = run(amperes)
    assert status == 2
    assert "--constant hip_ry_link_joint=0.1 sets one" in said
    assert "--constant unknown identifies" in said
    status, text, _ = run(amperes, "--constant", "unknown", "--free", "friction", "--json")
    assert status == 0
    assert [x["kind"] for x in json.loads(text)["sensors"]] == ["constant"] * 3
