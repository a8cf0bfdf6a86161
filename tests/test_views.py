"""Pictures: nothing on top of anything else, what is drawn is what the model says."""

from __future__ import annotations

import json
import math
import shutil
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import texts as write
from cases import few
from hypothesis import given, settings
from hypothesis import strategies as st

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.cli import main
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.views import Viewer, draw_cluster, draw_graph
from robomodel.views.drawings import PLAIN, colours_of, lay_out, sweep, ties
from robomodel.views.solids import ROUND, link_colours, link_solids
from robomodel.views.viewer import FIELD, camera_distance, freedoms

SVG = "{http://www.w3.org/2000/svg}"

trees = st.lists(st.integers(0, 10**6), max_size=40).map(
    lambda numbers: [number % (i + 1) - 1 for i, number in enumerate(numbers)]
)


@settings(max_examples=60, deadline=None)
@given(trees, st.randoms())
def test_boxes_keep_apart(parents: list[int], random: object) -> None:
    texts = [["x" * random.randint(1, 9)] * random.randint(1, 5) for _ in parents]  # type: ignore[attr-defined]
    tree = lay_out("world", texts, parents)
    boxes = [tree.root, *tree.boxes]
    for i, a in enumerate(boxes):
        assert a.left >= 0.0
        assert a.right <= tree.width + 1e-9
        assert a.middle - a.height / 2 >= -1e-9
        assert a.middle + a.height / 2 <= tree.height + 1e-9
        for b in boxes[:i]:
            beside = a.left >= b.right or b.left >= a.right
            assert beside or abs(a.middle - b.middle) >= (a.height + b.height) / 2 - 1e-9
    for box, parent in zip(tree.boxes, parents, strict=True):
        assert box.left > tree.box(parent).right


def texts_of(path: Path) -> list[str]:
    return ["".join(x.itertext()).strip() for x in ET.parse(path).getroot().iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "name", few(["four_bar", "mini_cheetah", "tello"], "four_bar", "mini_cheetah")
)
def test_graph_names_everything(name: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    draw_graph(model, tmp_path / "graph.svg")
    said = texts_of(tmp_path / "graph.svg")
    for body in model.bodies:
        assert said.count(body.name) == 3  # once in each of the three graphs
    for joint in model.joints:
        assert any(text.startswith(joint.name) for text in said)
    for loop in model.loops:
        assert said.count(loop.name) >= 1
    assert {"Connectivity graph", "Spanning tree", "Cluster tree"} <= set(said)
    first = (tmp_path / "graph.svg").read_bytes()
    draw_graph(model, tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_bytes() == first


def test_ties_and_colours() -> None:
    model = rm.robots.load("tello")
    found = list(ties(model))
    assert sum(tie.loop for tie in found) == len(model.loops)
    assert sum(not tie.loop for tie in found) == sum(len(c.terms) - 1 for c in model.couplings)
    of_clusters = colours_of(model)
    assert [colour == PLAIN for colour in of_clusters] == [
        len(cluster.bodies) == 1 for cluster in model.clusters
    ]
    for tie in found:
        clusters = {model.nodes[end].cluster for end in tie.ends}
        assert any(of_clusters[c] != PLAIN for c in clusters)


@pytest.mark.slow
def test_picture_files(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    draw_graph(model, tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    draw_graph(model, tmp_path / "graph.pdf")
    assert (tmp_path / "graph.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match=r"\.svg, \.png, \.pdf, not '\.gif'"):
        draw_graph(model, tmp_path / "graph.gif")
    draw_graph(chain("plain", 60), tmp_path / "long.png")
    assert (tmp_path / "long.png").exists()


# ---- over a range --------------------------------------------------------------------------------


def test_sweeps_stay_on_their_branch() -> None:
    model = rm.robots.load("crank_rocker")
    (name,) = model.dof_names
    found = sweep(model, name, steps=100)
    assert found.closed
    assert np.abs(model.residual(found.q)).max() < 1e-12
    np.testing.assert_allclose(model.joint_positions(found.q)[name], found.positions, atol=1e-12)
    steps = np.diff(found.positions)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)
    assert found.positions[-1] - found.positions[0] == pytest.approx(2 * math.pi)
    others = np.stack(list(model.joint_positions(found.q).values()))
    assert np.abs(np.diff(others)).max() < 0.3  # no jumps
    ratios = model.constraint_jacobian(found.q)[:, :, 0].T
    between = (ratios[:, 2:] + 4 * ratios[:, 1:-1] + ratios[:, :-2]) * steps[0] / 3
    np.testing.assert_allclose(others[:, 2:] - others[:, :-2], between, atol=2e-5)  # Simpson


def test_sweeps_pass_where_branches_cross() -> None:
    model = rm.robots.load("four_bar")  # a parallelogram: folded at 0 and π
    found = sweep(model, "joint1")
    at = model.joint_positions(found.q)
    np.testing.assert_allclose(at["joint3"], found.positions, atol=1e-9)


@pytest.mark.slow
def test_sweeps_end_where_loops_do() -> None:
    text = rm.robots.path("crank_rocker").read_text(encoding="utf-8")
    rocker = "rocker_joint"
    model = rm.load(text, independent=[rocker])
    found = sweep(model, rocker)
    assert not found.closed
    assert np.abs(model.residual(found.q)).max() < 1e-12
    with pytest.raises(KeyError, match="did you mean"):
        sweep(model, rocker + "x")
    other = next(joint.name for joint in model.joints if joint.name != rocker)
    with pytest.raises(ValueError, match="is not independent"):
        sweep(model, other)


@pytest.mark.slow
def test_cluster_plots(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    draw_cluster(model, "joint1", tmp_path / "plot.svg", steps=40)
    said = texts_of(tmp_path / "plot.svg")
    assert {"joint2", "joint3", "joint1 [rad]", "inertia [kg m²]"} <= set(said)
    leg = rm.robots.load("mini_cheetah")
    joint = leg.dof_names[-1]
    draw_cluster(leg, joint, tmp_path / "geared.png", steps=10)
    arm = chain("plain", 2)
    draw_cluster(arm, arm.dof_names[0], tmp_path / "alone.svg", steps=10)
    assert "no other joint moves with it" in texts_of(tmp_path / "alone.svg")


@pytest.mark.slow
def test_cluster_plots_over_dependent_joints(tmp_path: Path) -> None:
    model = rm.robots.load("crank_rocker")
    found = draw_cluster(model, "rocker_joint", tmp_path / "rocker.svg", steps=20)
    assert found.joint == "rocker_joint"
    assert not found.closed  # a rocker turns back
    assert {"crank_joint", "coupler_joint"} <= set(texts_of(tmp_path / "rocker.svg"))
    assert np.abs(model.residual(found.q)).max() < 1e-12
    said = texts_of(tmp_path / "rocker.svg")
    assert (
        said.count("linkage, dead point") == 2
    )  # what ends its range, marked where `actuation` ends it
    rocker = next(each for each in rm.actuation(model).joints if each.joint == "rocker_joint")
    assert found.positions[0] == pytest.approx(rocker.lower, abs=1e-6)
    assert found.positions[-1] == pytest.approx(rocker.upper, abs=1e-6)
    with pytest.raises(KeyError, match="no joint 'rocker'"):
        draw_cluster(model, "rocker", tmp_path / "none.svg")


# ---- solids --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", few(["four_bar", "tello", "mini_cheetah"], "four_bar", "mini_cheetah")
)
def test_bodies_without_shapes_have_volume(name: str) -> None:
    model = rm.robots.load(name)
    drawn = list(link_solids(model))
    frames = {frame.name: frame.body for frame in model.frames}
    moving = {frames[each.link] for each in drawn} - {-1}
    assert moving == set(range(len(model.bodies)))
    for each in drawn:
        a, b, c = (each.corners[each.faces[:, k]] for k in range(3))
        assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0.0  # six times the volume: outward
    if name == "four_bar":
        crank = max(
            (each for each in drawn if each.link == "link1"), key=lambda x: np.ptp(x.corners)
        )
        assert np.ptp(crank.corners, axis=0)[0] == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize(("name", "links"), [("mini_cheetah", "_knee_link"), ("jvrc1", "_ankle_p")])
def test_solids_of_leaves_reach_their_centre_of_mass(name: str, links: str) -> None:
    """Shanks and feet, on which nothing hangs, are drawn as far as their mass goes."""
    model = rm.robots.load(name)
    drawn = list(link_solids(model))
    leaves = [x for x in model.description.links if links in x.name and any(x.inertial.origin.xyz)]
    assert len(leaves) >= 2
    for link in leaves:
        corners = np.concatenate([each.corners for each in drawn if each.link == link.name])
        centre = np.array(link.inertial.origin.xyz)
        along = centre / np.linalg.norm(centre)
        assert np.max(corners @ along) >= np.linalg.norm(centre)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cylinders_are_barrels_from_their_pins_with_rods_in_them(sign: float) -> None:
    """And no boxes on rails; the rod's eye is outside, its other end inside, at both ends."""
    low, high = sorted((sign * 0.6, sign * 0.95))
    limits = f'<limit lower="{low}" upper="{high}"/><initial position="{sign * 0.74}"/>'
    model = rm.load(
        write.robot(
            *(write.link(name) for name in ("boom", "barrel", "rod")),
            write.joint("boom", "base", "boom", axis="0 1 0"),
            write.joint("pin", "base", "barrel", "0.3 0 -0.3", axis="0 1 0"),
            write.joint("stroke", "barrel", "rod", kind="prismatic", axis="1 0 0", more=limits),
            write.loop("eye", "revolute", "rod", "boom", to="1 0 0", more='<axis xyz="0 1 0"/>'),
        ),
        independent="stroke",
    )
    drawn = [each for each in link_solids(model) if not each.hinge]
    (barrel,) = (each.corners for each in drawn if each.link == "barrel")
    (rod,) = (each.corners for each in drawn if each.link == "rod")
    ends = np.sort(sign * barrel[:, 0])[[0, -1]]
    np.testing.assert_allclose(ends, [0.0, 0.9 * 0.6], atol=1e-9)
    assert np.max(np.abs(rod[:, 1:])) < 0.6 * np.max(np.abs(barrel[:, 1:]))
    inner, eye = np.sort(sign * rod[:, 0])[[0, -1]]
    assert eye == pytest.approx(0.0, abs=1e-9)
    for stroke in (0.6, 0.95):
        assert 0.0 < stroke + inner <= 0.9 * 0.6 + 1e-9  # in the barrel
    beside = rm.load(
        write.robot(
            write.link("cart"), write.joint("rail", "base", "cart", kind="prismatic", axis="1 0 0")
        )
    )
    assert len([each for each in link_solids(beside) if each.link == "base"]) == 1  # a rail


def test_every_link_is_drawn_in_a_colour_of_its_own() -> None:
    colours = link_colours(rm.robots.load("puma560"))
    assert len({colours[f"link{n}"] for n in range(1, 7)}) == 6


def test_hinges_in_one_place_have_no_surface_in_common() -> None:
    """Two of one radius about one axis would flicker through each other."""
    model = rm.robots.load("jvrc1")
    poses = link_poses(model, model.neutral())
    rims: dict[tuple[float, ...], list[float]] = {}
    for each in link_solids(model):
        if len(each.corners) == 2 * ROUND:  # a hinge
            axis = np.cross(*(each.corners[[4, 11]] - each.corners[0]))
            place = poses[each.link][:3, 3]
            line = np.abs(poses[each.link][:3, :3] @ axis / np.linalg.norm(axis))
            key = tuple(np.round([*place, *line], 6))
            radius = float(np.max(np.linalg.norm(each.corners, axis=1)))
            rims.setdefault(key, []).append(radius)
    assert any(len(each) > 1 for each in rims.values())
    for each in rims.values():
        assert np.all(np.diff(sorted(each)) > 1e-4)


@pytest.mark.parametrize("aspect", [390 / 800, 1.0, 2.0])
def test_the_robot_fits_into_narrow_windows(aspect: float) -> None:
    distance = camera_distance(0.5, aspect)
    for half_field in (FIELD / 2, math.atan(math.tan(FIELD / 2) * aspect)):
        assert math.asin(0.5 / distance) < half_field


# ---- the page ------------------------------------------------------------------------------------


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ["four_bar", "tello", "mini_cheetah", "puma560"])
def test_links_stand_where_frames_do(name: str) -> None:
    model = rm.robots.load(name)
    q = model.random_configuration(3)
    poses = link_poses(model, q)
    assert set(poses) == {frame.name for frame in model.frames}
    for link, pose in list(poses.items())[:8]:
        expected = rm.frame_pose(model, q, link, backend="numpy")
        np.testing.assert_allclose(pose, expected, atol=1e-13)


@pytest.fixture
def viewers() -> Iterator[list[Viewer]]:
    made: list[Viewer] = []
    yield made
    for viewer in made:
        viewer.stop()


def test_sliders_move_the_robot(viewers: list[Viewer]) -> None:
    model = rm.robots.load("crank_rocker")
    viewer = Viewer(model, port=8231)
    viewers.append(viewer)
    assert b"<html" in urllib.request.urlopen(viewer.url, timeout=20).read().lower()
    (name,) = model.dof_names
    start = float(model.joint_positions(viewer.q)[name])
    viewer.move({name: start + 0.4})
    assert model.joint_positions(viewer.q)[name] == pytest.approx(start + 0.4, abs=1e-9)
    assert np.abs(model.residual(viewer.q)).max() < 1e-12
    pose = json.loads(viewer.pose())
    assert pose["q"] == viewer.q.tolist()
    assert pose["joints"][name] == pytest.approx(start + 0.4, abs=1e-9)
    for dependent in set(pose["joints"]) - {name}:
        assert f"| {dependent} | {pose['joints'][dependent]:.4f} |" in viewer._dependent.content
    poses = link_poses(model, viewer.q)
    for link, handle in viewer._frames.items():
        np.testing.assert_allclose(handle.position, poses[link][:3, 3], atol=1e-12)


@pytest.mark.slow
def test_what_cannot_close_is_said(viewers: list[Viewer]) -> None:
    text = rm.robots.path("crank_rocker").read_text(encoding="utf-8")
    rocker = "rocker_joint"
    model = rm.load(text, independent=[rocker])
    viewer = Viewer(model, port=8231)
    viewers.append(viewer)
    before = viewer.q.copy()
    viewer.move({rocker: float(model.joint_positions(before)[rocker]) + 2.5})
    np.testing.assert_array_equal(viewer.q, before)
    assert "stays where it is" in viewer._status.content


def test_a_floating_base_has_sliders(viewers: list[Viewer]) -> None:
    model = rm.robots.load("mini_cheetah")
    assert len(freedoms(model)) == model.nv
    viewer = Viewer(model, port=8231)
    viewers.append(viewer)
    lift, leg = model.dof_names[5], model.dof_names[6]
    viewer.move({lift: 0.2, leg: 0.1})
    neutral = model.neutral()
    moved = model.difference(neutral, viewer.q)
    assert moved[5] == pytest.approx(0.2)
    assert model.joint_positions(viewer.q)[leg] == pytest.approx(0.1)


@pytest.mark.slow
def test_in_a_browser(viewers: list[Viewer], tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser on this machine")
    from matplotlib.image import imread

    model = rm.robots.load("four_bar")
    viewer = Viewer(model, port=8231)
    viewers.append(viewer)
    with playwright.sync_playwright() as tool:
        opened = tool.chromium.launch(
            executable_path=browser,
            args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )
        page = opened.new_page(viewport={"width": 900, "height": 600})
        page.goto(viewer.url)
        page.get_by_text("joint1").wait_for(timeout=60_000)
        page.wait_for_timeout(3000)
        page.screenshot(path=tmp_path / "before.png", clip=CLIP)
        box = page.locator("input[type=text], input[type=number]").last
        box.fill("2.0")
        box.press("Enter")
        page.wait_for_timeout(1500)
        page.screenshot(path=tmp_path / "after.png", clip=CLIP)
        opened.close()
    assert model.joint_positions(viewer.q)["joint1"] == pytest.approx(2.0, abs=0.02)
    before, after = (imread(tmp_path / f"{name}.png")[..., :3] for name in ("before", "after"))
    blue = before[..., 2] - before[..., 0] > 0.3  # the linkage, a cluster with a colour
    assert blue.sum() > 100
    assert (np.abs(before - after).max(axis=-1) > 0.3).sum() > 100


CLIP = {"x": 250, "y": 150, "width": 380, "height": 450}


# ---- commands ------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as done:
        main([str(x) for x in arguments])
    return int(done.value.code or 0)


@pytest.mark.slow
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "four_bar", "-o", tmp_path / "g.svg") == 0
    assert (tmp_path / "g.svg").exists()
    capsys.readouterr()
    plot = tmp_path / "p.png"
    assert run("graph", "four_bar", "--over", "joint1", "-o", plot, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["closed"] is True
    assert said["upper"] - said["lower"] == pytest.approx(2 * math.pi)
    assert run("graph", "four_bar", "--over", "joint", "-o", plot) == 2
    assert "did you mean" in capsys.readouterr().err
    assert run("graph", "four_bar", "-o", tmp_path / "g.gif") == 2
    assert run("view", "four_bar", "--port", 8231, "--seconds", 0.1) == 0
    assert "http://127.0.0.1:8" in capsys.readouterr().out
