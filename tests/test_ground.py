"""What of a robot touches the ground, and how far that is below: against brute force."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial.transform import Rotation
from texts import INERTIAL

import robomodel as rm

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


def test_heights_on_a_grid() -> None:
    """Bilinear inside, level outside; gaps are to the tangent plane, normals by differences."""
    heights = RNG.uniform(-0.3, 0.3, (6, 5))
    ground = rm.Ground(height=heights, spacing=0.5, origin=(-1.0, 0.5))
    axes = -1.0 + 0.5 * np.arange(6), 0.5 + 0.5 * np.arange(5)
    brute = RegularGridInterpolator(axes, heights)

    def height(x: Array) -> Array:
        return np.asarray(
            brute(np.stack([np.clip(x[:, n], axes[n][0], axes[n][-1]) for n in (0, 1)], 1))
        )

    points = np.stack(
        [RNG.uniform(-1.5, 2, 300), RNG.uniform(0, 3, 300), RNG.uniform(-1, 1, 300)], 1
    )
    gaps, normals = ground.below(points)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(gaps, (points[:, 2] - height(points)) * normals[:, 2], atol=1e-12)
    h = 1e-6
    slopes = [(height(points + h * e) - height(points - h * e)) / (2 * h) for e in np.eye(3)[:2]]
    expected = np.stack([-slopes[0], -slopes[1], np.ones(300)], 1)
    np.testing.assert_allclose(normals / normals[:, 2:], expected, atol=1e-6)
