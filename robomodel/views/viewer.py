"""The robot in a browser: its shapes, or solids by its joints; sliders that close its loops.

The page is served by viser on this machine alone, unless another host is specified.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description import ONE_DOF, Shape, Vec3
from robomodel.description.shapes import load_mesh
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.errors import ClosureError, DescriptionError, MissingPackageError, few
from robomodel.files import Allowance
from robomodel.model import Model
from robomodel.model.configurations.moving import solve
from robomodel.reach.ranges import joint_range
from robomodel.reports.document import count
from robomodel.reports.palette import GREY, rgb
from robomodel.views.solids import (
    THICKEST,
    bytes_of,
    hull,
    link_colours,
    link_solids,
    shape_points,
    size_of,
)

if TYPE_CHECKING:
    from viser import ClientHandle

FREE_ANGLE, FREE_LENGTH = math.pi, 0.5  # sliders of joints without limits reach so far
FIELD = 0.7  # of view [rad]


@dataclass(frozen=True)
class Freedom:
    """A velocity coordinate that a slider moves, and how far."""

    name: str
    index: int
    joint: str
    lower: float
    upper: float
    alone: bool  # the joint's only one: then the slider is its position


class Viewer:
    """A robot on a page. ``q`` is what is shown; sliders and :meth:`show` change it.

    Raises ImportError without viser. ``url`` is the page's address; :meth:`stop` ends it.
    """

    def __init__(self, model: Model, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        try:
            import viser
        except ImportError as error:
            raise MissingPackageError("the viewer needs", "viser", "views") from error
        self.model = model
        self._missing: dict[str, str] = {}  # meshes that were not read, and why
        self.q: Array = model.neutral()
        self.freedoms = freedoms(model)
        self._busy = threading.RLock()
        with _silent():
            self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._colours = link_colours(model)
        self._frames: dict[str, Any] = {}
        self._shapes: list[Any] = []
        self._solids: list[Any] = []  # of links that have shapes, too
        self._bare: list[Any] = []  # of links without, always shown
        self._names: list[Any] = []
        self._rods: dict[str, Any] = {}
        self._allowance = Allowance()
        self._dependent: Any = None
        self._draw_scene()
        self.sliders: dict[str, Any] = {}
        self._draw_controls()
        self.show(self.q)

    def show(self, q: Array) -> None:
        """Show this configuration (nq,)."""
        with self._busy:
            self.q = np.asarray(q, dtype=float)
            poses = link_poses(self.model, self.q)
            with self.server.atomic():
                for name, handle in self._frames.items():
                    handle.wxyz, handle.position = _quaternion(poses[name]), poses[name][:3, 3]
                for loop in self.model.description.loops:
                    if loop.name in self._rods:
                        ends = [_point(poses, a.link, a.origin.xyz)
                                for a in (loop.predecessor, loop.successor)]  # fmt: skip
                        self._rods[loop.name].points = np.array([ends])
            self._show_status()

    def move(self, values: Mapping[str, float]) -> None:
        """Put freedoms, by name, where sliders would; the page shows what cannot close."""
        for name, value in values.items():
            self.sliders[name].value = value
        self._follow()

    @property
    def notes(self) -> str:
        """Which meshes are not drawn, in a line, and why the first one is not."""
        names, reason = list(self._missing), next(iter(self._missing.values()), "")
        return f"{count(len(names), 'mesh', 'meshes')} not drawn ({few(names)}): {reason}"

    def stop(self) -> None:
        """End the page."""
        with _silent():
            self.server.stop()

    # ---- the scene

    def _draw_scene(self) -> None:
        scene, size = self.server.scene, size_of(self.model)
        scene.set_up_direction("+z")
        shaped: set[str] = set()
        for loop in self.model.description.loops:
            if loop.type == "rod":
                self._rods[loop.name] = scene.add_line_segments(
                    f"/rods/{loop.name}", np.zeros((1, 2, 3)), rgb(GREY),
                    thickness=6.0, thickness_units="screen",
                )  # fmt: skip
        for link in self.model.description.links:
            path = f"/links/{link.name}"
            self._frames[link.name] = scene.add_frame(
                path, show_axes=False, axes_length=0.12 * size, axes_radius=0.004 * size
            )
            shapes = [x for x in link.shapes if x.role == "visual"] or list(link.shapes)
            for k, shape in enumerate(shapes):
                handle = self._draw_shape(f"{path}/shape{k}", shape, self._colours[link.name])
                if handle is not None:
                    self._shapes.append(handle)
                    shaped.add(link.name)
            self._names.append(scene.add_label(f"{path}/name", link.name, visible=False))
        poses, corners = link_poses(self.model, self.q), []
        for number, each in enumerate(link_solids(self.model)):
            pose = poses[each.link]
            corners.append(each.corners @ pose[:3, :3].T + pose[:3, 3])
            handle = scene.add_mesh_simple(
                f"/links/{each.link}/solid{number}", each.corners, each.faces,
                color=self._colours[each.link], flat_shading=True,
            )  # fmt: skip
            (self._solids if each.link in shaped else self._bare).append(handle)
        for loop in self.model.description.loops:
            for end in (loop.predecessor, loop.successor):
                self._solids.append(
                    scene.add_icosphere(
                        f"/links/{end.link}/{loop.name}", radius=1.2 * THICKEST * size / 2,
                        color=rgb(GREY), position=end.origin.xyz, subdivisions=2,
                    )
                )  # fmt: skip
        self._choose("shapes" if self._shapes else "solids")
        self._look(np.concatenate(corners) if corners else np.zeros((1, 3)), size)

    def _look(self, points: Array, size: float) -> None:
        """The grid below the robot, and a camera from where all of it fills the window."""
        scene, camera = self.server.scene, self.server.initial_camera
        low, high = points.min(axis=0), points.max(axis=0)
        middle = (low + high) / 2
        cell = 10.0 ** math.floor(math.log10(size))
        scene.add_grid(
            "/grid", width=4 * size, height=4 * size, cell_size=cell / 10, section_size=cell,
            position=(middle[0], middle[1], low[2]),
        )  # fmt: skip
        scene.configure_default_lights()
        radius = float(np.linalg.norm(points - middle, axis=1).max(initial=0.05))
        away = _view_direction(points - middle)
        camera.fov = FIELD
        camera.position = tuple(middle + camera_distance(radius) * away)
        camera.look_at = tuple(middle)

        def fit(client: ClientHandle) -> None:
            distance = camera_distance(radius, client.camera.aspect)
            client.camera.position = tuple(middle + distance * away)
            client.camera.look_at = tuple(middle)  # a new position moves it

        self.server.on_client_connect(fit)

    def _draw_shape(self, path: str, shape: Shape, colour: tuple[int, int, int]) -> Any:
        if shape.kind == "mesh":
            try:
                mesh = load_mesh(shape, self._allowance)
            except (DescriptionError, ImportError) as error:
                self._missing.setdefault(os.path.basename(shape.file or ""), str(error))
                return None
            corners, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
        else:
            points = shape_points(shape, 32)  # half as many points as a circle has
            if points is None:
                return None
            corners, faces = hull(points)
        return self.server.scene.add_mesh_simple(
            path,
            corners,
            faces,
            flat_shading=shape.kind in ("box", "cylinder"),
            color=colour if shape.rgba is None else bytes_of(shape.rgba),
            wxyz=_quaternion(np.array(shape.origin.rotation)),
            position=shape.origin.xyz,
        )

    # ---- the controls

    def _draw_controls(self) -> None:
        gui = self.server.gui
        gui.set_panel_label(self.model.name)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(260)  # pixels
        self._status = gui.add_markdown("")
        gui.add_button("Neutral").on_click(lambda _: self._jump(self.model.neutral()))
        gui.add_button("Random").on_click(lambda _: self._jump(self.model.random_configuration()))
        gui.add_button("Save this pose").on_click(self._save)
        with gui.add_folder("Draw", expand_by_default=False):
            if self._shapes:
                choice = gui.add_dropdown("Bodies", ("shapes", "solids", "both"))
                choice.on_update(lambda _: self._choose(choice.value))
            frames, names = gui.add_checkbox("Frames", False), gui.add_checkbox("Names", False)
            frames.on_update(lambda _: self._set(self._frames.values(), "show_axes", frames.value))
            names.on_update(lambda _: self._set(self._names, "visible", names.value))
        joints = gui.add_panel()  # a separate section: shut at first on narrow screens
        joints.dock_below(gui.main_panel)
        with joints.add_tab("Joints"):
            for freedom in self.freedoms:
                self._draw_slider(freedom)
            if len(self.model.joints) > len(self.freedoms):
                with gui.add_folder("Dependent joints"):
                    self._dependent = gui.add_markdown("")

    def _set(self, handles: Iterable[Any], what: str, value: bool) -> None:
        with self.server.atomic():
            for handle in handles:
                setattr(handle, what, value)

    def _save(self, event: Any) -> None:
        """Download the pose: positions by joint, as ``Model.configuration`` takes them."""
        if event.client is not None:
            event.client.send_file_download(f"{self.model.name}_pose.json", self.pose().encode())

    def pose(self) -> str:
        """The configuration shown, as JSON: ``q``, and the positions of joints by their names."""
        positions = self.model.joint_positions(self.q)
        joints = {name: np.asarray(value).tolist() for name, value in positions.items()}
        return json.dumps({"q": self.q.tolist(), "joints": joints}, indent=1)

    def _draw_slider(self, freedom: Freedom) -> None:
        slider = self.server.gui.add_slider(
            freedom.name,
            min=freedom.lower,
            max=freedom.upper,
            step=(freedom.upper - freedom.lower) / 400,
            initial_value=self._value(freedom),
        )
        self.sliders[freedom.name] = slider
        slider.on_update(lambda _: self._follow())

    def _choose(self, what: str) -> None:
        for handle in self._shapes:
            handle.visible = what != "solids"
        for handle in self._solids:
            handle.visible = what != "shapes"

    def _value(self, freedom: Freedom) -> float:
        """Where the slider of a freedom stands at q."""
        if freedom.alone:
            value = float(self.model.joint_positions(self.q)[freedom.joint])
            if not freedom.lower <= value <= freedom.upper:
                value = math.remainder(value, 2 * math.pi)
        else:
            value = float(self.model.difference(self.model.neutral(), self.q)[freedom.index])
        return min(max(value, freedom.lower), freedom.upper)

    def _jump(self, q: Array) -> None:
        with self._busy:
            self.show(q)
            for freedom in self.freedoms:
                self.sliders[freedom.name].value = self._value(freedom)
            self.show(q)

    def _follow(self) -> None:
        """Move to the sliders' positions, loops on their branch; stay where they cannot close."""
        with self._busy:
            positions, step = {}, np.zeros(self.model.nv)
            for freedom in self.freedoms:
                value = float(self.sliders[freedom.name].value)
                if freedom.alone:
                    positions[freedom.joint] = value
                else:
                    step[freedom.index] = value
            try:
                at = self._guess(step)
                self.show(solve(self.model, positions, at, None, other_modes=False))
            except ClosureError as error:
                self._show_status(f"**stays where it is:** {error}")

    def _guess(self, step: Array) -> Array:
        """q with its joints of several freedoms moved by ``step`` from where they are neutral."""
        moved = self.model.integrate(self.model.neutral(), step)
        guess = self.q.copy()
        alone = {freedom.joint for freedom in self.freedoms if freedom.alone}
        for cluster in self.model.clusters:
            if not alone.intersection(cluster.joints):
                guess[cluster.q] = moved[cluster.q]
        return guess

    def _show_status(self, what: str = "") -> None:
        if not hasattr(self, "_status"):
            return
        residual = self.model.residual(self.q)
        worst = float(np.abs(residual).max()) if residual.size else 0.0
        loops, clusters = len(self.model.loops), len(self.model.clusters)
        lines = [f"{count(self.model.nv, 'freedom')}, {count(clusters, 'cluster')}"]
        if loops:
            lines.append(f"{count(loops, 'loop')}, closed to {worst:.0e}")
        lines += [what] if what else []
        lines += [self.notes] if self._missing else []
        self._status.content = "\n\n".join(lines)
        if self._dependent is not None:
            self._dependent.content = self._table()

    def _table(self) -> str:
        """Positions of the joints that have no slider."""
        moved = {freedom.joint for freedom in self.freedoms}
        rows = ["| joint | rad, m |", "|---|---:|"]
        for name, value in self.model.joint_positions(self.q).items():
            if name not in moved and np.ndim(value) == 0:
                rows.append(f"| {name} | {float(value):.4f} |")
        return "\n".join(rows)


def view(model: Model, *, host: str = "127.0.0.1", port: int = 8080) -> Viewer:
    """Show a robot in the browser.

    Args:
        model: The robot.
        host: Where the page is served.
        port: Its port.

    Returns:
        viewer: The page is at its ``url`` while the process lives.

    Raises:
        ImportError: Viser is not installed.
    """
    return Viewer(model, host=host, port=port)


def freedoms(model: Model) -> tuple[Freedom, ...]:
    """Coordinates that sliders move: every independent velocity."""
    joints = {joint.name: joint for joint in model.joints}
    result = []
    for index, label in enumerate(model.dof_names):
        joint = joints.get(label) or joints[label.rpartition(".")[0]]
        alone = joint.type in ONE_DOF
        reach = joint_range(model, joint.name) if alone else None
        lower, upper = (joint.lower, joint.upper) if reach is None else (reach.lower, reach.upper)
        linear = joint.type == "prismatic" or label.rpartition(".")[2] in ("vx", "vy", "vz")
        free = FREE_LENGTH if linear else FREE_ANGLE
        if not (alone and math.isfinite(lower) and lower < upper):
            lower = -free if not math.isfinite(lower) or not alone else lower
        if not (alone and math.isfinite(upper) and lower < upper):
            upper = lower + 2 * free
        result.append(Freedom(label, index, joint.name, lower, upper, alone))
    return tuple(result)


def camera_distance(radius: float, aspect: float = 1.0) -> float:
    """From where a ball fits into a window of this width per height [m]."""
    half = math.atan(math.tan(FIELD / 2) * min(aspect, 1.0))
    return 1.15 * radius / math.sin(half)


def _view_direction(points: Array) -> Array:
    """Where to look from: across what is flat, from above and aside; else from a corner."""
    _, spread, axes = np.linalg.svd(points, full_matrices=False)
    corner = np.array([1.3, -1.5, 0.9])
    # what is thinner than 0.35 of its width is looked at from its side
    if len(spread) == 3 and spread[2] < 0.35 * spread[1]:
        normal = axes[2] if axes[2] @ corner > 0.0 else -axes[2]
        corner = normal + 0.25 * np.array([0.0, 0.0, 1.0]) + 0.2 * np.cross([0.0, 0.0, 1.0], normal)
    away: Array = corner / np.linalg.norm(corner)
    return away


def _silent() -> contextlib.redirect_stdout[io.StringIO]:
    """Silences viser, which prints its address."""
    return contextlib.redirect_stdout(io.StringIO())


def _point(poses: Mapping[str, Array], link: str, at: Vec3) -> Array:
    pose = poses[link]
    point: Array = pose[:3, :3] @ np.array(at) + pose[:3, 3]
    return point


def _quaternion(pose: Array) -> Array:
    """w, x, y, z, as viser has it."""
    from scipy.spatial.transform import Rotation

    quaternion: Array = Rotation.from_matrix(pose[:3, :3]).as_quat()[[3, 0, 1, 2]]
    return quaternion
