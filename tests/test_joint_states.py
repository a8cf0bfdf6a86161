"""Joint states completed from some joints: against the motion, its derivatives and its power."""

from __future__ import annotations

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import texts
from cases import few
from scipy.spatial.transform import Rotation
from texts import link, loop, robot

import robomodel as rm
from robomodel.identification import complete_log
from robomodel.identification.joint_logs import TOPIC, read_joint_log
from robomodel.model.spins import find_spins

ROOT = Path(__file__).parent.parent
LEG = rm.robots.load("planar_leg_linkage")


def motion(model: rm.Model, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Configurations and velocities (count, ·) near neutral, one after the other."""
    rng = np.random.default_rng(2)
    base = 0 if model.floating_base is None else 6
    v = rng.standard_normal((count, model.nv))
    v[:, :base] = 0.0
    q = [model.neutral()]
    for n in range(count - 1):
        q.append(model.integrate(q[-1], 0.02 * v[n]))
    return np.array(q), v


def ends(model: rm.Model) -> list[str]:
    """Joints that determine the others, dependent ones where they can."""
    g = model.constraint_jacobian(model.neutral())[:, 0 if model.floating_base is None else 6 :]
    chosen: list[int] = []
    for n in range(len(g))[::-1]:
        if np.linalg.matrix_rank(g[[*chosen, n]], rtol=1e-6) > len(chosen):
            chosen.append(n)
    names = {node.freedoms[0]: x.name for x, node in zip(model.joints, model.nodes, strict=True)}
    return [names[n] for n in chosen if n in names]


@pytest.mark.parametrize(
    "name", few(["belt_leg", "mini_cheetah", "planar_leg_linkage", "six_bar", "tello"], "six_bar")
)
def test_all_joints_follow_from_some(name: str) -> None:
    """Positions and rates are those of the motion; efforts do the same work."""
    model = rm.robots.load(name)
    q, v = motion(model)
    place, rate = model.joint_positions(q), model.joint_velocities(q, v)
    given = ends(model)
    assert any(not model.joints[model.joint_names.index(each)].independent for each in given)
    force = np.random.default_rng(3).standard_normal((len(given), len(q)))
    states = rm.joint_states(
        model,
        {each: place[each] for each in given},
        {each: rate[each] for each in given},
        dict(zip(given, force, strict=True)),
    )
    assert not np.any(states["status"])
    np.testing.assert_allclose(states["q"], q, atol=1e-8)
    np.testing.assert_allclose(states["v"], v, atol=1e-6)
    for each, x in states["positions"].items():
        np.testing.assert_allclose(x, place[each], atol=1e-8, err_msg=each)
        np.testing.assert_allclose(states["velocities"][each], rate[each], atol=1e-6)
    independent = [n for n in model.dof_names if n in states["efforts"]]
    power = sum(np.nan_to_num(states["efforts"][n]) * rate[n] for n in independent)
    expected = sum(f * rate[n] for n, f in zip(given, force, strict=True))
    np.testing.assert_allclose(power, expected, atol=1e-6)
    for joint in model.joints:
        if joint.nv == 1 and not joint.independent:
            assert np.isnan(states["efforts"][joint.name]).all()


def test_a_single_state_and_batches() -> None:
    q, v = motion(LEG)
    names = list(LEG.dof_names)
    place, rate = LEG.joint_positions(q[5]), LEG.joint_velocities(q[5], v[5])
    one = rm.joint_states(
        LEG, {n: float(place[n]) for n in names}, {n: float(rate[n]) for n in names}, guess=q[4]
    )
    assert one["status"].shape == ()
    assert one["q"] == pytest.approx(q[5], abs=1e-10)
    assert {n: float(x) for n, x in one["velocities"].items()} == pytest.approx(
        {n: float(x) for n, x in rate.items()}
    )
    many = rm.joint_states(LEG, {n: np.tile(place[n], (2, 3)) for n in names})
    assert many["q"].shape == (2, 3, LEG.nq)
    assert "v" not in many
    assert "efforts" not in many
    none = rm.joint_states(LEG, {n: np.zeros(0) for n in names}, {n: np.zeros(0) for n in names})
    assert none["q"].shape == (0, LEG.nq)
    assert none["v"].shape == (0, LEG.nv)


@pytest.mark.slow
def test_states_that_lack_joints_or_contradict_themselves() -> None:
    q, _ = motion(LEG)
    place = {n: np.array(x) for n, x in LEG.joint_positions(q).items()}
    first = LEG.dof_names[0]
    dependent = next(x.name for x in LEG.joints if not x.independent)
    place[dependent][3] += 0.1
    place[dependent][4] += 0.001  # within what encoders are apart by
    del place[next(x.name for x in LEG.joints if not x.independent and x.name != dependent)]
    place[first][7] = place[dependent][7] = np.nan
    with pytest.warns(RuntimeWarning, match=r"2 of 12 states \(1 lack joints, 1 contradict"):
        states = rm.joint_states(LEG, place)
    assert states["status"].tolist() == [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]
    bad = np.isnan(states["q"]).all(axis=1)
    assert bad.tolist() == (states["status"] > 0).tolist()
    np.testing.assert_allclose(states["q"][~bad], q[~bad], atol=1e-8)
    rocker = rm.robots.load("crank_rocker")
    with pytest.warns(RuntimeWarning, match="1 contradict themselves or do not close"):
        status = rm.joint_states(rocker, {"rocker_joint": [2.5, 3.5, 2.5]})["status"]
    assert status.tolist() == [0, 2, 0]


@pytest.mark.parametrize("ending", few([".csv", ".parquet", ".mcap", ".db3", ""], ".csv", ".db3"))
def test_logs_are_completed(ending: str, tmp_path: Path, run: Any) -> None:
    """A log of two motors through every form, and what it gives is a log again."""
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    if ending in (".mcap", ".db3", ""):
        pytest.importorskip("rosbags")
    q, v = motion(LEG)
    place, rate = LEG.joint_positions(q), LEG.joint_velocities(q, v)
    names = list(LEG.dof_names)
    columns = {"time": 1e9 + 0.125 * np.arange(len(q)), "note": np.zeros(len(q))}
    columns |= {f"{kind}.{n}": x[n] for kind, x in (("q", place), ("v", rate)) for n in names}
    columns |= {f"tau.{names[0]}": np.ones(len(q)), f"tau.{names[1]}": np.full(len(q), np.nan)}
    log, out, again = tmp_path / "log.csv", tmp_path / f"all{ending}", tmp_path / "again.csv"
    numbers = np.column_stack(list(columns.values())).tolist()
    rows = [",".join("" if np.isnan(x) else repr(x) for x in row) for row in numbers]
    rows.insert(0, ",".join(columns))
    rows[5] = f"{float(columns['time'][4])!r}" + "," * (len(columns) - 1)  # an empty one
    log.write_text("\n".join(rows), encoding="utf-8")
    code, text, said = run("joint-states", "planar_leg_linkage", str(log), "-o", str(out))
    assert (code, said) == (1, "")
    assert f"{out}: 11 of 12 states, 4 joints; 1 lack joints\nnot used: 'note'" in text
    code, text, _ = run("joint-states", "planar_leg_linkage", str(out), "-o", str(again), "--json")
    told = json.loads(text)
    kept = np.arange(12) != 4
    bag = ending in (".mcap", ".db3", "")
    assert (told["states"], told["complete"]) == (11 if bag else 12, 11)
    assert code == (0 if bag else 1)
    read = read_joint_log(LEG, again)
    fine = np.isfinite(next(iter(read.readings["q"].values())))
    assert read.topic == TOPIC
    stamps = 10**18 + 125 * 10**6 * np.arange(len(q))
    assert read.stamps[fine].tolist() == stamps[kept].tolist()
    for kind, truth in (("q", place), ("v", rate)):
        for joint, x in read.readings[kind].items():
            np.testing.assert_allclose(x[fine], truth[joint][kept], atol=1e-8, err_msg=joint)
    np.testing.assert_allclose(read.readings["tau"][names[0]][fine], 1.0)


@pytest.mark.parametrize("ending", few([".csv", ".mcap"], ".csv"))
def test_poses_of_links(ending: str, tmp_path: Path, run: Any) -> None:
    """In tables and as transforms; a state that lacks joints has none."""
    q, _ = motion(LEG)
    place, link = LEG.joint_positions(q), LEG.bodies[-1].name
    log, out = tmp_path / "log.csv", tmp_path / f"all{ending}"
    names = list(LEG.dof_names)
    rows = [f"{0.125 * n}," + ",".join(repr(float(place[x][n])) for x in names) for n in range(12)]
    rows[3] = "0.375" + "," * len(names)
    log.write_text("\n".join(["time," + ",".join(f"q.{x}" for x in names), *rows]), "utf-8")
    code, _, said = run(
        "joint-states", "planar_leg_linkage", str(log), "-o", str(out), "--frames", link
    )
    assert (code, said) == (1, "")
    pose, kept = rm.frame_pose(LEG, q, link), np.arange(12) != 3
    if ending == ".csv":
        table = np.genfromtxt(out, delimiter=",", names=True, deletechars="")
        at = np.column_stack(
            [table[f"{n}.{link}"] for n in ("x", "y", "z", "qx", "qy", "qz", "qw")]
        )
        assert np.isnan(at[3]).all()
        at = at[kept]
    else:
        rosbags = pytest.importorskip("rosbags.highlevel")
        with rosbags.AnyReader([out]) as bag:
            (tf,) = (each for each in bag.connections if each.topic == "/tf")
            sent = [bag.deserialize(x, tf.msgtype) for _, _, x in bag.messages([tf])]
        (first, *_), numbers = sent[0].transforms, []
        assert (first.header.frame_id, first.child_frame_id) == ("world", link)
        for message in sent:
            move, turn = (getattr(message.transforms[0].transform, x)
                          for x in ("translation", "rotation"))  # fmt: skip
            numbers.append([move.x, move.y, move.z, turn.x, turn.y, turn.z, turn.w])
        at = np.array(numbers)
    np.testing.assert_allclose(at[:, :3], pose[kept, :3, 3], atol=1e-8)
    turned = Rotation.from_quat(at[:, 3:]).as_matrix()
    np.testing.assert_allclose(turned, pose[kept, :3, :3], atol=1e-8)
    code, _, said = run(
        "joint-states", "planar_leg_linkage", str(log), "-o", str(out), "--frames", "knee?"
    )
    assert code != 0
    assert "knee?" in said


def test_logs_that_are_none(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("time,tau.x\n0,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"the ending '.txt' is of no known form"):
        complete_log(LEG, log, tmp_path / "out.txt")
    with pytest.raises(rm.DescriptionError, match=r"log.csv: no positions: columns q\.JOINT"):
        complete_log(LEG, log, tmp_path / "out.csv")
    log.write_text("q.x\n1\n", encoding="utf-8")
    with pytest.raises(rm.DescriptionError, match="a column 'time' is needed"):
        complete_log(LEG, log, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_the_node_of_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ROS's own message classes, as rosbags has them."""
    store = pytest.importorskip("rosbags.typesys")
    types = store.get_typestore(store.Stores.ROS2_JAZZY).types
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "ros2"))
    monkeypatch.delitem(sys.modules, "robomodel_joint_states", raising=False)
    from robomodel_joint_states.node import Completion

    model = rm.robots.load("tello")
    q, v = motion(model, 4)
    motors = [name for name in model.joint_names if "rotor" in name]
    completion = Completion(model)
    for at, moves in zip(q, v, strict=True):
        place, rate = model.joint_positions(at), model.joint_velocities(at, moves)
        stamp = types["builtin_interfaces/msg/Time"](sec=7, nanosec=8)
        message = types["sensor_msgs/msg/JointState"](
            header=types["std_msgs/msg/Header"](stamp=stamp, frame_id=""),
            name=["wheel", *motors],
            position=np.array([0.0, *(place[n] for n in motors)]),
            velocity=np.array([0.0, *(rate[n] for n in motors)]),
            effort=np.zeros(0),
        )
        result = SimpleNamespace()
        assert completion.fill(message, result)
        assert result.header.stamp.sec == 7
        found = dict(zip(result.name, result.position, strict=True))
        assert found == pytest.approx({n: float(place[n]) for n in found}, abs=1e-8)
        speeds = dict(zip(result.name, result.velocity, strict=True))
        assert speeds == pytest.approx({n: float(rate[n]) for n in speeds}, abs=1e-6)
        assert result.effort == []
    message.name, message.position = motors[:3], message.position[1:4]
    message.velocity = np.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not completion.fill(message, SimpleNamespace())
    assert completion.lost == 1


def test_spins_of_rods_may_be_left_open() -> None:
    """A crank pulls a rocker by a rod between two balls: by the rod's length, and at least rates.

    The rod's turn about its line is known to nobody: its rate is what makes the ball's least.
    """
    rod = 0.5
    model = rm.load(
        robot(
            link("crank"), link("rod"), link("rocker"),
            texts.joint("crank", "base", "crank"),
            texts.joint("ball", "crank", "rod", "0 0.1 0", kind="spherical"),
            texts.joint("rocker", "base", "rocker", "0.5 0.02 0.1", axis="0 0.6 0.8"),
            loop("end", "spherical", "rod", "rocker", f"{rod} 0 0", "0 0.12 0", more=""),
        )
    )  # fmt: skip
    assert len(find_spins(model)) == 1
    at = model.joint_positions(model.neutral())
    t = np.linspace(0.0, 1.0, 400)
    swing = 0.4 * np.sin(3.0 * t)
    states = rm.joint_states(model, {"crank": at["crank"] + swing},
                             {"crank": 1.2 * np.cos(3.0 * t)})  # fmt: skip
    assert not np.any(states["status"])
    q, v = states["q"], states["v"]
    ends = [rm.frame_pose(model, q, (name, x))[:, :3, 3]
            for name, x in (("crank", (0.0, 0.1, 0.0)), ("rocker", (0.0, 0.12, 0.0)))]  # fmt: skip
    np.testing.assert_allclose(np.linalg.norm(ends[0] - ends[1], axis=1), rod, rtol=1e-10)
    g = model.constraint_jacobian(q)
    spin = np.linalg.svd(g[:, [0, 4]])[2][:, -1]  # neither crank nor rocker moves
    rates = np.einsum("nij,nj->ni", g, v)
    across = np.einsum("nij,nj->ni", g, spin)
    np.testing.assert_allclose(np.einsum("ni,ni->n", rates, across), 0.0, atol=1e-9)
    steps = np.array([model.difference(one, other) for one, other in pairwise(q)])
    means = 0.5 * (v[1:] + v[:-1]) * (t[1] - t[0])
    np.testing.assert_allclose(steps, means, atol=2e-5)
