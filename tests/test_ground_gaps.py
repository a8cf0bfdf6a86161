"""What of a robot touches the ground, and how far that is below: against brute force."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from texts import INERTIAL

import robomodel as rm
from robomodel.motion.ground import ContactLaw, GroundPoint

Array = NDArray[np.float64]
RNG = np.random.default_rng(0)


def directions(count: int = 20000) -> Array:
    found = RNG.standard_normal((count, 3))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def body(geometry: str, xyz: Array, rpy: Array, folder: Path | None = None) -> rm.Model:
    text = (
        f'<robot name="r"><link name="a">{INERTIAL}<collision><origin xyz="{xyz[0]} {xyz[1]} '
        f'{xyz[2]}" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/><geometry>{geometry}</geometry></collision>'
        "</link></robot>"
    )
    if folder is None:
        return rm.load(text, floating_base=True)
    (folder / "r.urdf").write_text(text)
    return rm.load(folder / "r.urdf", floating_base=True)


def surface(kind: str) -> Array:
    """Points on the shape, its extreme ones among them."""
    n = directions()
    match kind:
        case "box":
            points = n / np.abs(n).max(axis=1, keepdims=True)
            corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
            return np.concatenate([points, corners]) * [0.1, 0.2, 0.3]
        case "sphere":
            return 0.25 * n
        case "capsule":
            return 0.1 * n + np.where(n[:, 2:] > 0, 0.2, -0.2) * [0, 0, 1]
        case "cylinder":
            turn = np.linspace(0, 2 * math.pi, 20000)
            rim = np.stack([0.15 * np.cos(turn), 0.15 * np.sin(turn), 0 * turn], axis=1)
            up = np.array([0, 0, 0.2])
            return np.concatenate([rim + up, rim - up])
        case _:
            raise AssertionError(kind)


GEOMETRY = {
    "box": '<box size="0.2 0.4 0.6"/>',
    "sphere": '<sphere radius="0.25"/>',
    "capsule": '<capsule radius="0.1" length="0.4"/>',
    "cylinder": '<cylinder radius="0.15" length="0.4"/>',
}


def lowest(model: rm.Model, q: Array) -> float:
    return min(
        float(rm.frame_pose(model, q, (at[0], at[1]))[2, 3]) - (at[2] if len(at) > 2 else 0.0)
        for at in rm.contact_points(model)
    )


@pytest.mark.slow_cases("cylinder")
@pytest.mark.parametrize("kind", GEOMETRY)
def test_the_lowest_point_of_a_shape(kind: str) -> None:
    """Turned and away from its link's origin, on a link that is turned itself."""
    xyz, rpy = RNG.uniform(-0.5, 0.5, (2, 3))
    model = body(GEOMETRY[kind], xyz, rpy)
    points = surface(kind) @ Rotation.from_euler("xyz", rpy).as_matrix().T + xyz
    # eight points on a rim are up to 1 - cos(pi / 8) of its radius too high
    loose = 0.15 * (1 - math.cos(math.pi / 8)) if kind == "cylinder" else 0.0
    for _ in range(10):
        q = model.neutral()
        q[:3], q[3:] = (
            RNG.uniform(-1, 1, 3),
            Rotation.random(random_state=RNG.integers(99)).as_quat(),
        )
        pose = rm.frame_pose(model, q, "a")
        brute = (points @ pose[:3, :3].T + pose[:3, 3])[:, 2].min()
        assert -2e-3 * (kind in ("sphere", "capsule")) - 1e-12 <= lowest(model, q) - brute + 2e-6
        assert lowest(model, q) - brute <= loose + 1e-9


def test_a_cylinder_has_its_rims() -> None:
    model = body(GEOMETRY["cylinder"], np.zeros(3), np.zeros(3))
    points = np.array([at[1] for at in rm.contact_points(model)])
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), 0.15, rtol=1e-12)
    np.testing.assert_allclose(np.abs(points[:, 2]), 0.2, rtol=1e-12)
    assert len(np.unique(points.round(9), axis=0)) == 16


@pytest.mark.slow
def test_a_mesh_has_the_corners_of_its_hull(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    cloud = RNG.standard_normal((60, 3))
    inner = trimesh.creation.box((0.1, 0.1, 0.1))
    mesh = trimesh.util.concatenate([trimesh.convex.convex_hull(cloud), inner])
    mesh.export(tmp_path / "cloud.stl")
    xyz, rpy = RNG.uniform(-0.5, 0.5, (2, 3))
    geometry = '<mesh filename="cloud.stl" scale="0.1 0.2 0.3"/>'
    model = body(geometry, xyz, rpy, tmp_path)
    points = (cloud * [0.1, 0.2, 0.3]) @ Rotation.from_euler("xyz", rpy).as_matrix().T + xyz
    for turn in Rotation.random(10, random_state=3).as_quat():
        q = model.neutral()
        q[3:] = turn
        pose = rm.frame_pose(model, q, "a")
        brute = (points @ pose[:3, :3].T)[:, 2].min()
        assert lowest(model, q) == pytest.approx(brute, abs=1e-6)
    assert len(rm.contact_points(model)) < 60


# ---- heights -------------------------------------------------------------------------------------


def triangles(ground: rm.Ground, beyond: int = 3) -> Array:
    """All triangles (n, 3, 3) of the surface, and of ``beyond`` cells outside of the grid."""
    grid = np.pad(np.asarray(ground.height), beyond, mode="edge")
    found = []
    for i in range(grid.shape[0] - 1):
        for j in range(grid.shape[1] - 1):
            a, b, c, d = (
                (
                    ground.origin[0] + (i + n - beyond) * ground.spacing,
                    ground.origin[1] + (j + m - beyond) * ground.spacing,
                    grid[i + n, j + m],
                )
                for m in (0, 1)
                for n in (0, 1)
            )
            found += [(a, b, d), (a, d, c)]
    return np.array(found)


def nearest(x: Array, corners: Array) -> Array:
    """The nearest of the points of one triangle: by its face, then edge by edge."""
    a, b, c = corners
    sides = np.stack([b - a, c - a], axis=1)
    u, v = np.linalg.lstsq(sides, x - a, rcond=None)[0]
    if u >= 0 and v >= 0 and u + v <= 1:
        return np.asarray(a + sides @ [u, v])
    ends = []
    for p, r in ((a, b), (b, c), (c, a)):
        t = min(max((x - p) @ (r - p) / ((r - p) @ (r - p)), 0.0), 1.0)
        ends.append(p + t * (r - p))
    return np.asarray(min(ends, key=lambda each: np.linalg.norm(x - each)))


def hilly(steep: float = 0.3, seed: int = 0) -> rm.Ground:
    heights = np.random.default_rng(seed).uniform(-steep, steep, (6, 5))
    return rm.Ground(height=heights, spacing=0.5, origin=(-1.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("steep", few([0.3, 2.0], 2.0))
def test_gaps_are_to_the_nearest_of_all_triangles(steep: float) -> None:
    ground, rng = hilly(steep), np.random.default_rng(1)
    faces = triangles(ground)
    points = rng.uniform([-1.5, 0.0, -0.5], [2.0, 3.0, 0.5], (120, 3))
    gaps, normals = ground.surfaces(points)
    for x, gap, normal in zip(points, gaps, normals, strict=True):
        p = min((nearest(x, face) for face in faces), key=lambda p: np.linalg.norm(x - p))
        assert abs(gap) == pytest.approx(np.linalg.norm(x - p), abs=1e-12)
        np.testing.assert_allclose(x - gap * normal, p, atol=1e-12)
        above = is_above(x, faces)
        assert (gap > 0) == above
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, rtol=1e-12)
    assert np.any(gaps < -0.05)
    assert np.any(gaps > 0.05)


def is_above(x: Array, faces: Array) -> bool:
    """Whether a point is above the face that is under or over it."""
    for a, b, c in faces:
        u, v = np.linalg.solve(np.stack([b - a, c - a], axis=1)[:2], (x - a)[:2])
        if u >= 0 and v >= 0 and u + v <= 1:
            return bool(x[2] > a[2] + u * (b - a)[2] + v * (c - a)[2])
    raise AssertionError(x)


def test_spheres_and_batches() -> None:
    """A sphere's gap is that of its centre less its radius, in any number of batches."""
    ground = hilly()
    points = np.random.default_rng(2).uniform([-1, 0.5, -0.2], [1.5, 2.5, 0.8], (4, 3, 5, 3))
    radii = np.array([0.0, 0.1, 0.2, 0.05, 1.0])
    gaps, normals = ground.surfaces(points, radii)
    one, directions = ground.surfaces(points.reshape(-1, 3))
    np.testing.assert_array_equal(gaps, one.reshape(4, 3, 5) - radii)
    np.testing.assert_array_equal(normals, directions.reshape(4, 3, 5, 3))
    level, up = rm.Ground(height=0.3).surfaces(points, radii)
    np.testing.assert_array_equal(level, points[..., 2] - 0.3 - radii)
    np.testing.assert_array_equal(up, np.broadcast_to([0.0, 0.0, 1.0], points.shape))


def test_a_rolling_sphere_sees_no_jumps() -> None:
    """Along any path that is no nearer to the surface than its convex parts allow."""
    ground = hilly()
    t = np.linspace(0, 1, 20001)[:, None]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        start, end = rng.uniform([-1.2, 0.3, 0], [1.7, 2.7, 0.3], (2, 3))
        path = start + t * (end - start)
        gaps, _ = ground.surfaces(path)
        step = np.linalg.norm(end - start) / 20000
        assert np.abs(np.diff(gaps)).max() <= step * (1 + 1e-9)  # a distance changes no faster


def test_a_normal_turns_over_a_ridge() -> None:
    """A sphere over a ridge: its normal is that from the ridge, and turns as the sphere passes."""
    ridge = np.tile([[0.0], [0.5], [0.0]], (1, 3))
    ground = rm.Ground(height=ridge, spacing=1.0, origin=(-1.0, -1.0))
    angle = np.linspace(-0.8, 0.8, 2001)  # the faces' normals are at ±0.4636
    centres = np.stack([np.sin(angle), 0 * angle + 0.3, 0.5 + np.cos(angle)], axis=1)
    gaps, normals = ground.surfaces(centres, 1.0)
    over = np.abs(angle) <= math.atan(0.5)
    np.testing.assert_allclose(gaps[over], 0.0, atol=1e-12)
    assert np.all(gaps[~over] < 0.0)
    np.testing.assert_allclose(normals[over], (centres - [0, 0.3, 0.5])[over], atol=1e-12)
    assert np.abs(np.diff(normals, axis=0)).max() <= np.diff(angle)[0] * (1 + 1e-6)


def test_beyond_reach_gaps_are_lower_bounds() -> None:
    ground = hilly(2.0)
    points = np.random.default_rng(3).uniform([-1.5, 0, -1.5], [2.0, 3.0, 4.0], (400, 3))
    exact, normals = ground.surfaces(points, 0.1)
    gaps, directions = ground.surfaces(points, 0.1, reach=0.2)
    near = exact < 0.2
    np.testing.assert_array_equal(gaps[near], exact[near])
    np.testing.assert_array_equal(directions[near], normals[near])
    assert np.all(gaps[~near] >= 0.2 - 1e-12)
    assert np.all(gaps[~near] <= exact[~near] + 1e-12)
    assert 50 < np.count_nonzero(near) < 350
    each = np.where(np.arange(400) % 2, 0.2, 0.0)
    np.testing.assert_array_equal(ground.surfaces(points, 0.1, reach=each)[0][1::2], gaps[1::2])


def test_one_row_of_heights_and_points_on_edges() -> None:
    """Level across the row; points on corners and edges have a normal of one of their faces."""
    ground = rm.Ground(height=[[0.0, 0.3, 0.0]], spacing=1.0)
    gaps, normals = ground.surfaces([[7.0, 0.5, 0.15], [-3.0, 1.0, 0.3], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(gaps, 0.0, atol=1e-15)
    slope = np.array([0.0, -0.3, 1.0]) / math.hypot(1.0, 0.3)
    np.testing.assert_allclose(normals[0], slope, atol=1e-15)
    for normal in normals:
        assert normal[2] >= slope[2] - 1e-12
        assert np.linalg.norm(normal) == pytest.approx(1.0)
    nothing, _ = ground.surfaces(np.zeros((0, 3)))
    assert nothing.shape == (0,)
    lost, _ = ground.surfaces([[math.nan, 0, 0], [0, 1.0, 1.3]])
    assert math.isnan(lost[0])
    assert lost[1] > 0.9


def test_a_valley_holds_a_sphere_by_two_planes() -> None:
    """A ball in a valley touches both sides; over a ridge and on a plain there is one plane."""
    valley = np.tile([[0.5], [0.0], [0.25]], (1, 3))
    ground = rm.Ground(height=valley, spacing=1.0, origin=(-1.0, -1.0))
    normals = np.array([[0.5, 0, 1] / np.sqrt(1.25), [-0.25, 0, 1] / np.sqrt(1.0625)])
    (x, _, z) = np.linalg.lstsq(normals, [0.3, 0.3], rcond=None)[0]
    gaps, planes = ground.surfaces([[x, 0.2, z], [x + 0.01, 0.2, z]], 0.3, reach=0.1, count=3)
    np.testing.assert_allclose(gaps[0, :2], 0.0, atol=1e-12)
    assert {tuple(n) for n in planes[0, :2].round(12)} == {tuple(n) for n in normals.round(12)}
    np.testing.assert_allclose(planes[1, :2], normals[::-1], atol=1e-12)
    np.testing.assert_allclose(gaps[1, :2], 0.01 * normals[::-1, 0], atol=1e-12)
    assert np.all(gaps[:, 2] == np.inf)
    ridge = rm.Ground(height=-valley, spacing=1.0, origin=(-1.0, -1.0))
    plain = rm.Ground(height=np.zeros((4, 4)), spacing=0.1)
    for each in (ridge, plain, rm.Ground()):
        for place in ([0.0, 0.2, 0.35], [0.11, 0.1, 0.3], [0.13, 0.17, 0.28], [0.1, 0.1, 0.3]):
            gaps, planes = each.surfaces([place], [0.3], reach=0.1, count=3)
            one, plane = each.surfaces([place], [0.3])
            np.testing.assert_allclose(gaps[0], [one[0], np.inf, np.inf], atol=1e-15)
            np.testing.assert_allclose(planes[0, 0], plane[0], atol=1e-12)


def test_planes_hold_the_sphere_out_of_every_triangle() -> None:
    """On hills: points of all planes' nearest places are on the surface, the first the nearest."""
    ground = hilly(0.3)
    centres = np.random.default_rng(5).uniform([-1, 0.5, 0], [1.5, 2.5, 0.6], (200, 3))
    one, normal = ground.surfaces(centres, 0.2)
    gaps, normals = ground.surfaces(centres, 0.2, reach=0.1, count=4)
    near = (one < 0.1) & (one > -0.2)
    np.testing.assert_allclose(gaps[near, 0], one[near], atol=1e-12)
    np.testing.assert_allclose(normals[near, 0], normal[near], atol=1e-9)
    assert np.all(np.diff(np.where(np.isinf(gaps), 1e9, gaps), axis=1) >= 0.0)
    there = np.isfinite(gaps[:, 1]) & near
    assert np.count_nonzero(there) > 10
    touched = centres[there] - (gaps[there, 1, None] + 0.2) * normals[there, 1]
    np.testing.assert_allclose(ground.surfaces(touched)[0], 0.0, atol=1e-12)


@pytest.mark.parametrize("place", [(1.01, 0.97, 1.45), (1.29, 0.81, 1.26)])
def test_places_nearer_than_all_about_them_by_a_search(place: tuple[float, float, float]) -> None:
    """On edges and corners of either triangle of a cell, each once; against a fine grid."""
    heights = [[6, 3, 0, 0], [8, 9, 6, 7], [5, 9, 8, 0], [9, 0, 7, 2]]
    ground = rm.Ground(height=0.1 * np.array(heights, dtype=float), spacing=0.5)
    gaps = ground.surfaces([place], reach=1.0, count=3)[0][0]
    grid = np.linspace(-0.5, 2.0, 501)
    x, y = (each.ravel() for each in np.meshgrid(grid, grid, indexing="ij"))
    z = ground._terrain.heights(np.stack([x, y], axis=1))
    apart = np.linalg.norm(np.stack([x, y, z], axis=1) - place, axis=1).reshape(501, 501)
    inner = apart[1:-1, 1:-1]
    about = [
        apart[1 + i : 500 + i, 1 + j : 500 + j]
        for i, j in itertools.product((-1, 0, 1), repeat=2)
        if i or j
    ]
    least = np.sort(inner[np.all([inner < each for each in about], axis=0) & (inner < 1.0)])
    np.testing.assert_allclose(gaps[np.isfinite(gaps)], least, rtol=0, atol=5e-4)


@pytest.mark.slow
def test_a_ball_over_a_ridge_wins_no_energy() -> None:
    """A frictionless ball that slides over an edge onto a slope, without a jump of its normal."""
    text = (
        f'<robot name="r"><link name="a">{INERTIAL}<collision><geometry><sphere radius="0.25"/>'
        "</geometry></collision></link></robot>"
    )
    model = rm.load(text, floating_base=True)
    heights = np.tile([[0.1], [0.0]], (1, 2))
    ground = rm.Ground(0.0, height=heights, spacing=0.5, origin=(0.1, 0.0))
    q = model.neutral()
    q[:3] = 0.0, 0.2, 0.35
    rises = []
    for step in (1e-3, 2.5e-4):
        motion = rm.simulate(
            model, q, [0, 0, 0, 0.5, 0, 0], duration=0.35, step=step, ground=ground
        )
        gaps, normals = ground.surfaces(motion.q[:, None, :3], [0.25])
        assert normals[-1, 0, 0] > 0.19  # on the slope
        assert gaps.min() > -1e-4 - 1e-12  # less than that is not corrected
        assert gaps[1:].max() < 1e-5
        rises.append(np.ptp(motion.energy) / motion.energy[0])
    assert rises[0] < 4e-3  # of first order in the step, as the stepping
    assert rises[1] < 0.3 * rises[0]


# ---- several grounds, planes that face anywhere --------------------------------------------------

INERTIA = 'ixx="8e-4" iyy="8e-4" izz="8e-4" ixy="0" ixz="0" iyz="0"'
TOUCH = [("a", (0.0, 0.0, 0.0), 0.1)]


def ball() -> rm.Model:
    """A sphere of 2 kg and 0.1 m with a tenth of the inertia of a solid one."""
    link = f'<link name="a"><inertial><mass value="2"/><inertia {INERTIA}/></inertial></link>'
    return rm.load(f'<robot name="ball">{link}</robot>', floating_base=True)


def put(*place: float) -> Array:
    return np.array([*place, *ball().neutral()[3:]])


@pytest.mark.slow_cases("0.8", "0.05")
@pytest.mark.parametrize("friction", [0.05, 0.8])
def test_a_ball_on_a_ramp_slides_or_rolls(friction: float) -> None:
    """Down 30 degrees: a = g (sin - mu cos) while it slides, g sin / (1 + I / m r²) as it rolls."""
    sine, cosine = math.sin(math.radians(30.0)), math.cos(math.radians(30.0))
    ramp = rm.Ground(friction, normal=(2.0 * sine, 0.0, 2.0 * cosine), height=0.2)
    q = put(0.3 * sine, 0.0, 0.3 * cosine)
    motion = rm.simulate(ball(), q, np.zeros(6), duration=0.5, step=1e-3, ground=ramp,
                         contacts=TOUCH)  # fmt: skip
    travelled = (motion.q[-1, :3] - q[:3]) @ [cosine, 0.0, -sine]
    speedup = max(sine / (1.0 + 8e-4 / (2 * 0.01)), sine - friction * cosine)
    assert travelled == pytest.approx(0.125 * 9.81 * speedup, rel=1e-9)
    across = motion.contact_forces[:, 0] @ [sine, 0.0, cosine]
    assert across == pytest.approx(np.full(500, 2 * 9.81 * cosine), rel=1e-9)


@pytest.mark.slow
def test_a_ball_in_a_groove_is_carried_by_both_sides() -> None:
    """Each carries m g / (2 cos 45°), and pushes by its own friction where it moves along."""
    model, root = ball(), math.sqrt(0.5)
    sides = [rm.Ground(0.5, normal=(x, 0.0, 1.0)) for x in (-1.0, 1.0)]
    q = put(0.0, 0.0, 0.1 / root)
    still = rm.simulate(model, q, np.zeros(6), duration=0.1, step=1e-3, ground=sides,
                        contacts=TOUCH)  # fmt: skip
    assert np.abs(still.q[-1] - q).max() < 1e-12
    assert still.contact_forces[-1] == pytest.approx(np.array([[0.0, 0.0, 2 * 9.81]]), abs=1e-9)
    sides = [
        rm.Ground(0.0, normal=(-1.0, 0.0, 1.0)),
        rm.Ground(0.1, normal=(1.0, 0.0, 1.0), velocity=(0.0, 5.0, 0.0)),
    ]
    moved = rm.simulate(model, q, np.zeros(6), duration=0.1, step=1e-3, ground=sides,
                        contacts=TOUCH)  # fmt: skip
    assert moved.q[-1, 1] == pytest.approx(0.5 * 0.1**2 * 0.1 * 9.81 * root, rel=1e-9)
    batch = np.stack([q, put(0.0, 0.3, 0.1 / root)])
    rolled = rm.rollout(model, batch, np.zeros((2, 6)), np.zeros((2, 100, 6)), 1e-3,
                           ground=sides, contacts=TOUCH).q  # fmt: skip
    assert np.abs(rolled[0] - moved.q).max() < 1e-10
    assert np.abs(rolled[1] - rolled[0] - [0.0, 0.3, *[0.0] * 5]).max() < 1e-10


@pytest.mark.slow
def test_a_floor_with_heights_and_a_wall() -> None:
    """A ball slides over a floor into a wall and rebounds there; on a plateau it stays."""
    model, v = ball(), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    wall = rm.Ground(0.0, 1.0, normal=(-2.0, 0.0, 0.0), height=-0.5)
    heights = rm.Ground(0.0, height=[[0.2, 0.2], [0.2, 0.2], [-1.0, -1.0]], spacing=0.5,
                        origin=(-1.5, -0.5))  # fmt: skip
    grounds = [rm.Ground(0.0), heights, wall]
    motion = rm.simulate(model, put(0.0, 0.0, 0.1), v, duration=0.8, step=1e-3, ground=grounds,
                         contacts=TOUCH)  # fmt: skip
    assert motion.v[-1, 3] == pytest.approx(-1.0, abs=(9.81 * 1e-3) ** 2)
    assert 0.4 - 1.1e-3 < motion.q[:, 0].max() <= 0.4  # a step before it would pass the wall
    assert np.abs(motion.q[:, 2] - 0.1).max() < 1e-9
    forces = motion.contact_forces[:, 0]
    assert np.flatnonzero(forces[:, 0] < -1.0) == pytest.approx([399], abs=1)
    assert forces[:, 0].sum() * 1e-3 == pytest.approx(2.0 * (motion.v[-1, 3] - 1.0), rel=1e-9)
    high = rm.simulate(model, put(-1.2, 0.0, 0.3), -v, duration=0.1, step=1e-3, ground=grounds,
                       contacts=TOUCH)  # fmt: skip
    assert np.abs(high.q[:, 2] - 0.3).max() < 1e-9
    with pytest.raises(TypeError, match="a list of them, got"):
        rm.simulate(model, put(0.0, 0.0, 0.1), v, duration=0.1, ground=[wall, "floor"])
    with pytest.raises(ValueError, match="a list of grounds has one at least"):
        rm.rollout(model, put(0.0, 0.0, 0.1), v, np.zeros((2, 6)), 1e-3, ground=[])


# ---- what a ground is ----------------------------------------------------------------------------


def test_what_holds_at_a_contact() -> None:
    """Of two coefficients of friction the smaller counts, of two restitutions the larger.

    Compliant ground rebounds by its stiffness and damping alone.
    """
    point = GroundPoint("a", (0.0, 0.0, 0.0), 0.0, 0.6, 0.4)
    ground = rm.Ground(0.5, static_friction=0.7, stiffness=1e4, damping=30.0)
    law = ground.law(GroundPoint("a", (0.0, 0.0, 0.0)))
    assert law == ContactLaw(0.5, 0.7, 0.0, 1e4, 30.0)
    assert ground.law(point) == ContactLaw(0.5, 0.6, 0.0, 1e4, 30.0)
    law = rm.Ground(0.5, 0.1, static_friction=0.7).law(point)
    assert law == ContactLaw(0.5, 0.6, 0.4, None, 0.0)
    law = rm.Ground(0.5).law(GroundPoint("a", (0.0, 0.0, 0.0), 0.0, 0.2))
    assert law == ContactLaw(0.2, 0.2, 0.0, None, 0.0)
