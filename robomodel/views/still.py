"""A picture of a robot, as PNG: its solids, shaded, drawn here with a depth buffer."""

from __future__ import annotations

import math
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.model import Model
from robomodel.reports.palette import GREY, rgb
from robomodel.views.solids import coloured_solids, rods, view_angles

Pixels = NDArray[np.uint8]
FINE = 3  # samples a pixel, either way
LIGHT = np.array([0.4, -0.5, 0.77])


def write_png(
    model: Model,
    path: str | os.PathLike[str],
    q: ArrayLike | None = None,
    *,
    size: tuple[int, int] = (800, 600),
) -> None:
    """Write a picture of the robot on transparent ground; needs no other package.

    Args:
        model: The robot.
        path: Where to write; it ends in ``.png``.
        q: The configuration (nq,); default :meth:`Model.neutral`.
        size: Width and height in pixels.

    Raises:
        ValueError: A path of another ending, a q of another shape, a size below a pixel.
    """
    if Path(path).suffix.lower() != ".png":
        raise ValueError(f"path must end in .png, got '{path}'")
    Path(path).write_bytes(png(model, q, size=size))


def png(model: Model, q: ArrayLike | None = None, *, size: tuple[int, int] = (800, 600)) -> bytes:
    """The picture that :func:`write_png` writes."""
    positions = model.neutral() if q is None else np.asarray(q, dtype=float)
    if positions.shape != (model.nq,):
        raise ValueError(f"q has the shape {positions.shape}, not ({model.nq},)")
    width, height = size
    if min(width, height) < 1:
        raise ValueError(f"size must be at least one pixel, got {size}")
    return _encoded(still(model, positions, width, height))


def still(model: Model, q: Array, width: int, height: int) -> Pixels:
    """The picture (height, width, 4): red, green, blue and opacity."""
    poses = link_poses(model, q)
    triangles, colours = [], []
    for colour, solid in [*coloured_solids(model), *((GREY, rod) for rod in rods(model, poses))]:
        pose = poses[solid.link] if solid.link else np.eye(4)
        corners = solid.corners @ pose[:3, :3].T + pose[:3, 3]
        triangles.append(corners[solid.faces])
        colours.append(np.tile(rgb(colour), (len(solid.faces), 1)))
    if not triangles:
        return np.zeros((height, width, 4), np.uint8)
    corners, faces = np.concatenate(triangles), np.concatenate(colours).astype(float)
    turn, tilt = view_angles(model, q)
    eye = np.array(
        [math.cos(tilt) * math.cos(turn), math.cos(tilt) * math.sin(turn), math.sin(tilt)]
    )
    right = np.array([-math.sin(turn), math.cos(turn), 0.0])
    axes = np.stack([right, np.cross(eye, right), eye])
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    bright = 0.62 + 0.2 * normals @ LIGHT + 0.18 * np.abs(normals @ eye)
    seen = corners @ axes.T
    low, high = seen.reshape(-1, 3).min(axis=0), seen.reshape(-1, 3).max(axis=0)
    # the robot fills 0.9 of the picture
    scale = 0.9 * FINE * min(width / (high[0] - low[0]), height / (high[1] - low[1]))
    x = (seen[..., 0] - (low[0] + high[0]) / 2) * scale + FINE * width / 2
    y = FINE * height / 2 - (seen[..., 1] - (low[1] + high[1]) / 2) * scale
    picture = np.zeros((FINE * height, FINE * width, 4))
    depth = np.full(picture.shape[:2], -np.inf)
    shaded = np.clip(faces * bright[:, None], 0.0, 255.0)
    front = normals @ eye > 0.0
    for at in np.flatnonzero(front):
        _fill(picture, depth, np.stack([x[at], y[at], seen[at, :, 2]]), shaded[at])
    means = picture.reshape(height, FINE, width, FINE, 4).mean(axis=(1, 3))
    opacity = means[..., 3:]
    means[..., :3] /= np.maximum(opacity, 1e-9)
    means[..., 3:] = 255.0 * opacity
    pixels: Pixels = np.round(means).astype(np.uint8)
    return pixels


def _fill(picture: Array, depth: Array, corners: Array, colour: Array) -> None:
    """Fill a triangle (3, 3) of corners with x, y and nearness, but where something is nearer."""
    (xs, ys, zs), (height, width) = corners, depth.shape
    left, right = max(math.ceil(xs.min() - 0.5), 0), min(math.floor(xs.max() - 0.5) + 1, width)
    top, bottom = max(math.ceil(ys.min() - 0.5), 0), min(math.floor(ys.max() - 0.5) + 1, height)
    area = (xs[1] - xs[0]) * (ys[2] - ys[0]) - (ys[1] - ys[0]) * (xs[2] - xs[0])
    if left >= right or top >= bottom or abs(area) < 1e-12:
        return
    px, py = np.arange(left, right) + 0.5 - xs[0], np.arange(top, bottom)[:, None] + 0.5 - ys[0]
    u = (px * (ys[2] - ys[0]) - py * (xs[2] - xs[0])) / area
    v = (py * (xs[1] - xs[0]) - px * (ys[1] - ys[0])) / area
    z = zs[0] + u * (zs[1] - zs[0]) + v * (zs[2] - zs[0])
    window = slice(top, bottom), slice(left, right)
    nearer = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (z > depth[window])
    depth[window][nearer] = z[nearer]
    picture[window][nearer] = [*colour, 1.0]


def _encoded(pixels: Pixels) -> bytes:
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            chunk(b"IEND", b""),
        )
    )
