"""Motions on the viewer's page, and as one HTML file without dependencies.

In the file every shape is a convex polyhedron: boxes, spheres and cylinders approximately, meshes
by their hulls. Robots without shapes are drawn as solids from joints and inertias.
"""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.errors import warn
from robomodel.model import Model
from robomodel.reports.document import framed
from robomodel.views.pages import filled
from robomodel.views.solids import Solid, coloured_solids
from robomodel.views.viewer import Viewer

if TYPE_CHECKING:
    from robomodel.motion import Trajectory

MOST_FRAMES = 6000
WEIGHT_ARROW = 1.0  # length of the arrow of the robot's weight, divided by the robot's size


@dataclass(frozen=True)
class AnimationFrames:
    """Data drawn over time: configurations, poses, forces [N] and their points."""

    times: Array
    q: Array
    poses: dict[str, Array]
    forces: Array
    at: Array


def frames(trajectory: Trajectory, rate: float) -> AnimationFrames:
    """States at ``rate`` per second of motion; forces are means over the time between them."""
    if not rate > 0.0:
        raise ValueError(f"fps must be a positive number, got {rate!r}")
    times = trajectory.times
    grid = np.arange(0.0, times[-1] + 0.5 / rate, 1.0 / rate)
    if len(grid) > MOST_FRAMES:
        raise ValueError(
            f"{times[-1]:g} s at {rate:g} frames a second are more than {MOST_FRAMES} frames: give "
            "a lower fps"
        )
    indices = np.unique(np.clip(np.searchsorted(times, grid - 1e-9), 0, len(times) - 1))
    if trajectory.dense is not None:  # states at the method's steps are few and uneven
        shown = grid[grid <= times[-1]]
        q, indices = trajectory.at(shown)[0], np.zeros(len(shown), dtype=int)
    else:
        shown, q = times[indices], trajectory.q[indices]
    poses = link_poses(trajectory.model, q)
    points, contact_forces = trajectory.contact_points, trajectory.contact_forces
    pairs = slice(len(points), len(points) + len(trajectory.contact_pairs))
    forces, at = np.zeros((2, len(shown), pairs.stop, 3))
    for k, point in enumerate(points):
        pose = poses[point.link]
        at[:, k] = pose[:, :3, 3] + pose[:, :3, :3] @ np.array(point.offset)
        at[:, k, 2] -= point.radius
    places = trajectory.contact_places
    if contact_forces is not None and places is not None and pairs.stop:
        for n, i in enumerate(indices):
            since = indices[n - 1] if n else 0
            if i > since:
                forces[n] = contact_forces[since:i].mean(axis=0)
                for k in range(pairs.start, pairs.stop):
                    met = np.flatnonzero(np.isfinite(places[since:i, k, 0]))
                    at[n, k] = places[since + met[-1], k] if len(met) else 0.0
    return AnimationFrames(shown, q, poses, forces, at)


# ---- one file ------------------------------------------------------------------------------------


def write_html(trajectory: Trajectory, path: str | os.PathLike[str], rate: float = 30.0) -> None:
    """Write an HTML file that plays the motion: a slider for time; drag to turn, wheel to zoom."""
    text = motion_page(trajectory, rate)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def motion_in_notebooks(trajectory: Trajectory) -> str:
    """The page of a motion as an element; a long one with as many frames as fit."""
    duration = float(trajectory.times[-1])
    return framed(motion_page(trajectory, min(30.0, 0.99 * MOST_FRAMES / max(duration, 1e-9))))


def motion_page(trajectory: Trajectory, rate: float) -> str:
    """The text of a page that plays the motion."""
    model = trajectory.model
    shown = frames(trajectory, rate)
    solids = coloured_solids(model)
    names = sorted({solid.link for _, solid in solids})
    number = {name: n for n, name in enumerate(names)}
    poses = np.array([shown.poses[name][:, :3] for name in names])
    poses = poses.transpose(1, 0, 2, 3) if names else np.zeros((len(shown.times), 0, 3, 4))
    rods = [
        np.stack([shown.poses[a.link][:, :3, :3] @ a.origin.xyz + shown.poses[a.link][:, :3, 3]
                  for a in (loop.predecessor, loop.successor)], axis=1)
        for loop in model.description.loops if loop.type == "rod"
    ]  # fmt: skip
    corners = _corners_of(shown, [solid for _, solid in solids])
    size = float(max(np.ptp(corners[0], axis=0).max(), 0.05))
    pushing = shown.forces.any(axis=2)
    low = shown.at[pushing][:, 2] if pushing.any() else corners[..., 2]
    data = {
        "times": [round(float(t), 6) for t in shown.times],
        "links": len(names),
        "points": shown.forces.shape[1],
        "rods": len(rods),
        "solids": [
            {
                "link": number[solid.link],
                "colour": colour,
                "at": _rounded(solid.corners),
                "faces": solid.faces.tolist(),
            }
            for colour, solid in solids
        ],
        "poses": _packed(poses),
        "forces": _packed(np.concatenate([shown.at, shown.forces], axis=2)),
        "ends": _packed(np.array(rods).swapaxes(0, 1) if rods else np.zeros(0)),
        "size": size,
        "ground": float(np.min(low)),
        "centre": _rounded((corners[0].min(axis=0) + corners[0].max(axis=0)) / 2),
        "arrow": _arrow(model, size),
    }
    return filled("animation.html", model.name, data)


def _arrow(model: Model, size: float) -> float:
    """Length of arrows per newton, in a picture of this size."""
    return WEIGHT_ARROW * size / (model.mass * float(np.linalg.norm(model.gravity)) or 1.0)


def _packed(values: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()


def _rounded(values: Array) -> Any:
    return np.round(values, 5).tolist()


def _corners_of(shown: AnimationFrames, solids: list[Solid]) -> Array:
    """Corners of all solids and origins of all links (frames, n, 3)."""
    corners = []
    for solid in solids:
        pose = shown.poses[solid.link]
        corners.append(solid.corners @ np.swapaxes(pose[:, :3, :3], 1, 2) + pose[:, None, :3, 3])
    corners.append(np.array([pose[:, :3, 3] for pose in shown.poses.values()]).swapaxes(0, 1))
    return np.concatenate(corners, axis=1)


# ---- the viewer's page ---------------------------------------------------------------------------


class Player:
    """A motion on the viewer's page: a slider for its time, and a box to run it.

    ``viewer`` is the page, ``url`` its address; :meth:`show` sets the time, :meth:`stop` ends it.
    """

    def __init__(
        self, trajectory: Trajectory, rate: float, *, host: str = "127.0.0.1", port: int = 8080
    ) -> None:
        self._shown = frames(trajectory, rate)
        self.viewer = Viewer(trajectory.model, host=host, port=port)
        self.url = self.viewer.url
        end = float(max(self._shown.times[-1], 1e-3))
        gui, scene = self.viewer.server.gui, self.viewer.server.scene
        with gui.add_folder("motion", order=-1.0):
            self._runs = gui.add_checkbox("Run", True)
            self._time = gui.add_slider("Time [s]", 0.0, end, end / 1000.0, 0.0)
        self._time.on_update(lambda _: self.show(float(self._time.value)))
        model, count = trajectory.model, self._shown.forces.shape[1]
        size = np.ptp([pose[0, :3, 3] for pose in self._shown.poses.values()], axis=0).max()
        self._scale = _arrow(model, max(float(size), 0.05))
        self._arrows = None
        if count:
            self._arrows = scene.add_line_segments(
                "/forces", np.zeros((count, 2, 3)), (200, 30, 30), thickness=4.0,
                thickness_units="screen",
            )  # fmt: skip
        self._end = threading.Event()
        self.show(0.0)
        threading.Thread(target=self._run, daemon=True).start()

    def show(self, t: float) -> None:
        """Show the state of this time."""
        n = int(np.clip(np.searchsorted(self._shown.times, t), 0, len(self._shown.times) - 1))
        self.viewer.show(self._shown.q[n])
        if self._arrows is not None:
            at, force = self._shown.at[n], self._shown.forces[n]
            self._arrows.points = np.stack([at, at + self._scale * force], axis=1)

    def stop(self) -> None:
        """End the page."""
        self._end.set()
        self.viewer.stop()

    def _run(self) -> None:
        times = self._shown.times
        pause = float(np.diff(times).mean()) if len(times) > 1 else 0.1
        while not self._end.wait(pause):
            if self._runs.value:
                ahead = float(self._time.value) + pause
                self._time.value = 0.0 if ahead > times[-1] else ahead


def play(
    trajectory: Trajectory,
    path: str | os.PathLike[str] | None = None,
    *,
    fps: float = 30.0,
    host: str = "127.0.0.1",
    port: int = 8080,
) -> Player | None:
    """Play a motion on the viewer's page, or write it as one HTML file without dependencies.

    Contact forces are arrows; the robot's weight would be as long as the robot.

    Args:
        trajectory: The motion, from :func:`robomodel.simulate` or :func:`read_motion`.
        path: A file for any browser. Without it the page of :func:`view`, with a slider for time
            (needs viser).
        fps: Frames a second of motion.
        host: Where the page is served.
        port: The page's port.

    Returns:
        player: Without ``path``: the page is at its ``url`` until its ``stop()``.

    Raises:
        ValueError: More frames than a page can hold, or ``fps`` is not positive.
    """
    if path is None:
        return Player(trajectory, fps, host=host, port=port)
    write_html(trajectory, path, fps)
    return None


def animate_motion(
    trajectory: Trajectory, path: str | os.PathLike[str] | None = None, **options: Any
) -> Player | None:
    """:func:`play`, with the warning of ``Trajectory.animate``."""
    warn(
        DeprecationWarning(
            "Trajectory.animate goes in 0.5: rm.views.play(motion, path) takes its place"
        )
    )
    return play(trajectory, path, **options)
