"""Motions as one HTML file, and on the viewer's page."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_contact import at_rest, block
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.model.elements import position_names
from robomodel.views import read_motion

SHAPES = "".join(
    f'<visual><origin xyz="0 0.1 0.2" rpy="0.3 0 0.5"/><geometry>{each}</geometry></visual>'
    for each in (
        '<box size="0.1 0.2 0.3"/>',
        '<sphere radius="0.1"/>',
        '<cylinder radius="0.1" length="0.4"/>',
        '<capsule radius="0.1" length="0.4"/>',
        '<ellipsoid a="0.1" b="0.2" c="0.3"/>',
        '<mesh filename="missing.stl"/>',
    )
)


def told(path: Path) -> dict[str, Any]:
    """What the file has to draw."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|<link|@import|%[A-Z]+%", text)
    found = re.search(r"^const data = (.*);$", text, re.MULTILINE)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    for name in ("poses", "forces", "ends"):
        data[name] = np.frombuffer(base64.b64decode(data[name]), "<f4")
    return data


@pytest.mark.slow
def test_a_landing(tmp_path: Path) -> None:
    model = block()
    motion = rm.simulate(model, at_rest(model, 0.15), duration=0.3, ground=rm.Ground())
    assert rm.views.play(motion, tmp_path / "block.html", fps=50) is None
    data = told(tmp_path / "block.html")
    np.testing.assert_allclose(data["times"], np.arange(16) / 50)
    (solid,) = data["solids"]
    assert len(solid["at"]) == 8
    assert len(solid["faces"]) == 12
    for i, j, k in solid["faces"]:  # outward
        a, b, c = (np.array(solid["at"][n]) for n in (i, j, k))
        assert np.cross(b - a, c - a) @ a > 0.0
    poses = data["poses"].reshape(16, 1, 3, 4)
    np.testing.assert_allclose(poses[:, 0, 2, 3], motion.q[::20, 2], atol=1e-6)
    forces = data["forces"].reshape(16, 8, 6)
    assert len(motion.contact_points) == 8
    np.testing.assert_allclose(
        forces[3, :, 3:], motion.contact_forces[40:60].mean(axis=0), rtol=1e-5, atol=1e-3
    )
    np.testing.assert_allclose(forces[-1, :, 5].sum(), 2.0 * 9.81, rtol=1e-5)
    np.testing.assert_allclose(np.sort(forces[-1, :, 2])[:4], 0.0, atol=1e-6)
    assert data["ground"] == pytest.approx(0.0, abs=1e-6)


def test_shapes_and_what_is_drawn_without(tmp_path: Path) -> None:
    model = rm.load(robot(link("a", INERTIAL + SHAPES), joint("j", "base", "a")))
    with pytest.warns(rm.DescriptionWarning, match=r"not drawn: .*missing\.stl"):
        rm.views.play(rm.simulate(model, [0.1], duration=0.1), tmp_path / "a.html")
    data = told(tmp_path / "a.html")
    assert len(data["solids"]) == 5
    turn = np.array(model.description.links[-1].shapes[0].origin.rotation)
    for solid, bound in zip(
        data["solids"], ((0.05, 0.1, 0.15), 0.1, (0.1, 0.1, 0.2), (0.1, 0.1, 0.3), (0.1, 0.2, 0.3)),
        strict=True,
    ):  # fmt: skip
        own = (np.array(solid["at"]) - [0, 0.1, 0.2]) @ turn
        np.testing.assert_allclose(np.abs(own).max(axis=0), bound, rtol=3e-2)
    bare = rm.robots.load("four_bar")
    rm.views.play(rm.simulate(bare, bare.neutral(), duration=0.1), str(tmp_path / "b.html"))
    data = told(tmp_path / "b.html")
    assert len(data["solids"]) == 7  # three bars with their hinges, and the base


@pytest.mark.slow
def test_names_and_rods(tmp_path: Path) -> None:
    text = rm.robots.path("tello").read_text().replace('robot name="tello"', 'robot name="&lt;b>"')
    model = rm.load(text)
    rods = [loop for loop in model.description.loops if loop.type == "rod"]
    motion = rm.simulate(model, model.neutral(), duration=0.02)
    rm.views.play(motion, tmp_path / "t.html", fps=100)
    data = told(tmp_path / "t.html")
    assert "<title>&lt;b&gt;</title>" in (tmp_path / "t.html").read_text()
    assert data["rods"] == len(rods) > 0
    ends = data["ends"].reshape(3, len(rods), 2, 3)
    for loop, (a, _) in zip(rods, ends[-1], strict=True):
        want = rm.frame_pose(
            model, motion.q[-1], (loop.predecessor.link, loop.predecessor.origin.xyz)
        )
        np.testing.assert_allclose(a, want[:3, 3], atol=1e-6)
    lengths = np.linalg.norm(ends[:, :, 0] - ends[:, :, 1], axis=2)
    np.testing.assert_allclose(lengths - lengths[0], 0.0, atol=1e-6)


def test_links_without_shapes_are_drawn_beside_those_with(tmp_path: Path) -> None:
    """And shapes have the file's colour; the page follows the system's light or dark colours."""
    red = "<material name='red'><color rgba='1 0 0 1'/></material></visual>"
    shapes = INERTIAL + SHAPES.replace("</visual>", red)
    parts = [link("a", shapes), joint("j", "base", "a"), link("shank", INERTIAL)]
    model = rm.load(robot(*parts, joint("k", "a", "shank", "0 0 -0.2")))
    with pytest.warns(rm.DescriptionWarning, match="not drawn"):
        rm.views.play(rm.simulate(model, [0.1, 0.0], duration=0.1), tmp_path / "a.html")
    solids = told(tmp_path / "a.html")["solids"]
    assert {each["link"] for each in solids} == {0, 1}
    assert "#ff0000" in {each["colour"] for each in solids}
    assert "prefers-color-scheme: dark" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_former_method_plays_with_a_warning(tmp_path: Path) -> None:
    motion = rm.simulate(block(), at_rest(block(), 1.0), duration=0.02)
    with pytest.warns(DeprecationWarning, match=r"rm\.views\.play\(motion, path\)"):
        motion.animate(tmp_path / "former.html", fps=50)
    rm.views.play(motion, tmp_path / "now.html", fps=50)
    assert (tmp_path / "former.html").read_text() == (tmp_path / "now.html").read_text()


@pytest.mark.slow
def test_on_the_page() -> None:
    pytest.importorskip("viser")
    model = block()
    motion = rm.simulate(model, at_rest(model, 0.12), duration=0.2, ground=rm.Ground())
    player = rm.views.play(motion, port=8190)
    try:
        assert player.url.startswith("http://127.0.0.1:")
        player._runs.value = False
        player.show(0.1)
        np.testing.assert_array_equal(player.viewer.q, motion.q[100])
        arrows = np.asarray(player._arrows.points)
        assert arrows.shape == (8, 2, 3)
        assert (arrows[:, 1, 2] - arrows[:, 0, 2]).max() > 1e-3
    finally:
        player.stop()


@pytest.mark.slow
def test_a_plot_has_forces() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    model = block()
    motion = rm.simulate(model, at_rest(model, 0.11), duration=0.1, ground=rm.Ground())
    figure = motion.plot()
    assert [axes.get_ylabel() for axes in figure.axes[-2:]] == [
        "contact, upward [N]",
        "residual of contacts",
    ]
    assert len(figure.axes[4].lines) == 8
    pyplot.close(figure)


@pytest.mark.slow
def test_forces_between_links_are_kept_and_drawn(tmp_path: Path) -> None:
    """A ball falls on a plate on a spring-less rail: the pair counts while it is near."""
    model = rm.load(
        robot(
            link("plate"), link("ball"),
            joint("rail", "base", "plate", kind="fixed"),
            joint("fall", "plate", "ball", kind="prismatic", axis="0 0 1"),
        )
    )  # fmt: skip

    def near(q: Any, v: Any) -> list[rm.motion.Contact]:
        gap = float(q[0]) - 0.01
        at = (0.0, 0.0, 0.01)
        return (
            [rm.motion.Contact("ball", at, (0, 0, 1), gap, other="plate", name="b")]
            if gap < 0.1
            else []
        )

    motion = rm.simulate(model, [0.2], duration=0.3, contacts=near)
    (pair,) = motion.contact_pairs
    assert (pair.link, pair.other, pair.name, str(pair)) == ("ball", "plate", "b", "ball on plate")
    assert motion.contact_forces.shape == motion.contact_places.shape == (300, 1, 3)
    assert np.isnan(motion.contact_places[0]).all()
    np.testing.assert_allclose(motion.contact_places[-1], [[0, 0, 0.01]])
    np.testing.assert_allclose(motion.contact_forces[-1], [[0, 0, 9.81]], rtol=1e-9)
    assert np.all(motion.contact_forces[0] == 0.0)
    rm.views.play(motion, tmp_path / "pair.html", fps=50)
    forces = told(tmp_path / "pair.html")["forces"].reshape(-1, 1, 6)
    np.testing.assert_allclose(forces[-1, 0], [0, 0, 0.01, 0, 0, 9.81], atol=1e-6)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    figure = motion.plot()
    assert figure.axes[4].get_ylabel() == "contact [N]"
    (line,) = figure.axes[4].lines
    np.testing.assert_allclose(line.get_ydata()[-1], 9.81)
    assert figure.axes[4].get_legend().get_texts()[0].get_text() == "ball on plate"
    pyplot.close(figure)


# ---- recorded motions ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "belt_leg"])
def test_what_a_simulation_wrote_is_read_again(name: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    motion = rm.simulate(model, model.neutral(), duration=0.05)
    motion.to_csv(tmp_path / "motion.csv")
    again = read_motion(model, tmp_path / "motion.csv")
    np.testing.assert_array_equal(again.times, motion.times)
    np.testing.assert_array_equal(again.q, motion.q)
    assert np.isnan(again.v).all()
    np.testing.assert_allclose(again.at(motion.times)[0], motion.q, atol=1e-12)
    middle = again.at((motion.times[1:] + motion.times[:-1]) / 2)[0]
    there = model.difference(motion.q[:-1], middle)
    onward = model.difference(motion.q[:-1], motion.q[1:])
    np.testing.assert_allclose(there, onward / 2, atol=1e-12)
    assert np.abs(model.residual(middle)).max() < 1e-12
    log = rm.identification.read_log(model, tmp_path / "motion.csv")
    np.testing.assert_array_equal(log.v, motion.v)
    np.testing.assert_array_equal(log.tau, motion.tau)
    assert log.unused == ("kinetic", "potential", "residual")


def test_positions_of_other_joints_are_enough() -> None:
    model = rm.robots.load("belt_leg")
    rng = np.random.default_rng(0)
    q = model.integrate(model.neutral(), 0.3 * rng.standard_normal((5, model.nv)))
    every = model.joint_positions(q)
    motors = {n: x for n, x in every.items() if n not in model.dof_names}
    log = {"time": 3.0 + 0.1 * np.arange(5), **{f"q.{n}": x for n, x in motors.items()}}
    motion = read_motion(model, log)
    np.testing.assert_allclose(motion.q, q, atol=1e-12)
    np.testing.assert_allclose(motion.times, 0.1 * np.arange(5), atol=1e-15)
    first = next(n for n in log if n != "time")
    for change, message in (
        ({"time": None}, "a column 'time' is needed"),
        ({"time": np.zeros(5)}, "row 1: time does not increase"),
        ({first: None}, "positions are missing"),
        ({first: np.array([0.0, 0.0, np.nan, 0.0, 0.0])}, f"row 2: {first} is empty"),
    ):
        changed = {n: x for n, x in {**log, **change}.items() if x is not None}
        with pytest.raises(rm.DescriptionError, match=message):
            read_motion(model, changed)
    with pytest.raises(rm.DescriptionError, match="two samples or more"):
        read_motion(model, {n: x[:1] for n, x in log.items()})


@pytest.mark.slow
def test_samples_between_which_loops_do_not_close_are_shown_as_they_are() -> None:
    model = rm.robots.load("five_bar")
    ends = [model.random_configuration(seed, branch="any") for seed in (48, 49)]
    with pytest.raises(rm.errors.ClosureError):
        model.integrate(ends[0], 0.8 * model.difference(*ends))
    names = [f"q.{name}" for name in position_names(model)]
    log = {"time": np.arange(2.0), **dict(zip(names, np.array(ends).T, strict=True))}
    np.testing.assert_array_equal(read_motion(model, log).at(0.8)[0], ends[1])


@pytest.mark.slow
def test_the_command_line_plays_logs(run: Any, tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    motion = rm.simulate(model, model.neutral(), duration=0.05)
    log, page = tmp_path / "motion.csv", tmp_path / "motion.html"
    motion.to_csv(log)
    code, out, err = run("view", "four_bar", log, "--html", page, "--fps", 100, "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["url"], said["html"], said["duration"]) == (None, str(page), motion.times[-1])
    np.testing.assert_allclose(told(page)["times"], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    assert run("view", "four_bar", log, "--html", page) == (0, f"wrote {page}\n", "")
    code, _, err = run("view", "four_bar", log, "--html", page, "--fps", 1e9)
    assert (code, err.startswith(f"{log}: 0.05 s at 1e+09 frames")) == (2, True)
    log.write_text("time,v.joint1\n0,0\n")
    code, _, err = run("view", "four_bar", log)
    assert (code, err) == (2, f"{log}:1: a motion has two samples or more\n")
    pytest.importorskip("viser")
    motion.to_csv(log)
    code, out, err = run("view", "four_bar", log, "--port", 8192, "--seconds", 0, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["url"].startswith("http://127.0.0.1:")
