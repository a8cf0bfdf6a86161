"""Meshes of a robot that is written to a file: copied beside it, left in place, or left out.

Files are copied unchanged, except those that MuJoCo cannot read and meshes inside USD files: these
are converted, without their materials.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal, Self, get_args

from robomodel.description import Description, Link, Shape
from robomodel.description.shapes import SUFFIXES, in_stage, load_mesh, mesh_bytes, mesh_path
from robomodel.errors import DescriptionError, argument
from robomodel.files import Allowance

How = Literal["copy", "keep", "drop"]

MUJOCO = (".stl", ".obj", ".msh")
"""The mesh files that MuJoCo reads."""
_MOST_FACES = 200_000  # of an STL file, for MuJoCo
_HEADER, _FACE = 84, 50  # bytes of a binary STL file
_FEWEST_FACES = 2  # MuJoCo wants four vertices


@dataclass
class Meshes:
    """Places the meshes of a robot that is written to the path ``output``.

    ``output`` is None for a stream, beside which there is no folder. ``mujoco``: write only formats
    that MuJoCo reads, with plain paths. Copies are made in a temporary folder, which :meth:`commit`
    moves into place. ``lost`` are messages on what was left out; ``originals`` are the shapes
    before the change, by the path that is written.
    """

    how: How
    output: str | None
    mujoco: bool = False
    lost: list[str] = field(default_factory=list)
    originals: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise ValueError(f"meshes is 'copy', 'keep' or 'drop', got {self.how!r}")
        if self.how == "copy" and self.output is None:
            raise ValueError(
                "meshes are copied beside a file; write to a path, or choose "
                + argument("meshes", "keep")
            )
        self._staging: str | None = None
        self._targets: dict[str, str] = {}  # mesh file → name of its copy
        self._names: set[str] = set()
        self._allowance = Allowance()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)

    def placed(self, description: Description) -> Description:
        """The description with the meshes' paths in the written file; appends to ``lost``."""
        links = tuple(
            replace(
                link, shapes=tuple(s for shape in link.shapes for s in self._placed(shape, link))
            )
            for link in description.links
        )
        return replace(description, links=links)

    def _noted(self, shape: Shape, file: str) -> Shape:
        """The shape with another file; records the shape in ``originals``."""
        self.originals[file] = shape
        return replace(shape, file=file)

    def commit(self) -> None:
        """Move the copies to the folder beside the file."""
        if self._staging is None:
            return
        folder = os.path.join(os.path.dirname(self.output or ""), self._folder)
        os.makedirs(folder, exist_ok=True)
        for name in self._targets.values():
            os.replace(os.path.join(self._staging, name), os.path.join(folder, name))

    @property
    def _folder(self) -> str:
        return folder_of(os.path.basename(self.output or ""))

    def _placed(self, shape: Shape, link: Link) -> list[Shape]:
        if shape.kind != "mesh":
            return [shape]
        if self.how == "drop":
            return []
        if self.how == "keep" and not (self.output and in_stage(shape)):
            return [self._noted(shape, self._kept(shape))]
        try:
            return [self._noted(shape, f"{self._folder}/{self._copied(shape)}")]
        except DescriptionError as error:
            self.lost.append(f"{error.message} (of the link '{link.name}')")
            return []

    # ---- left in place

    def _kept(self, shape: Shape) -> str:
        """The path of a mesh relative to the written file; ``package://`` names stay.

        MuJoCo does not resolve packages: for it, the name becomes a path if the mesh exists.
        """
        written = shape.file or ""
        file, origin = written.replace("\\", "/"), os.path.abspath(shape.source.file)
        if self.output is None:
            return written
        here, there = os.path.dirname(os.path.abspath(self.output)), os.path.dirname(origin)
        if ":" not in file and not file.startswith("/"):
            stays = here == there or not os.path.isfile(origin)
            return written if stays else _relative(os.path.join(there, file), here)
        if self.mujoco:
            with suppress(DescriptionError):
                if (path := mesh_path(shape)).is_file():
                    return _relative(str(path), here)
        return written

    # ---- copied

    def _copied(self, shape: Shape) -> str:
        """Copy a mesh and return the name of the copy."""
        if in_stage(shape):  # inside a USD file: no mesh file to copy
            key = shape.file or ""
            if key not in self._targets:
                data, suffix = self._converted(shape)
                self._targets[key] = self._stage(key.rpartition("/")[2], suffix, data)
            return self._targets[key]
        path = mesh_path(shape)
        key = os.path.realpath(path)
        if key not in self._targets:
            data = mesh_bytes(shape, (*SUFFIXES, ".msh"), self._allowance)
            suffix = path.suffix
            if self.mujoco and not _is_read_by_mujoco(suffix.lower(), data):
                data, suffix = self._converted(shape)
            self._targets[key] = self._stage(path.stem, suffix, data)
        return self._targets[key]

    def _converted(self, shape: Shape) -> tuple[bytes, str]:
        """A mesh as STL, or as OBJ if it has too many faces; in metres, not scaled."""
        mesh = load_mesh(replace(shape, size=(1.0, 1.0, 1.0)))
        if len(mesh.faces) < _FEWEST_FACES:
            raise DescriptionError(
                f"the mesh '{shape.file}' has {len(mesh.faces)} triangles, and MuJoCo takes no "
                f"fewer than {_FEWEST_FACES}",
                shape.source,
            )
        kind = "stl" if len(mesh.faces) <= _MOST_FACES else "obj"
        data: bytes | str = mesh.export(file_type=kind)
        return data.encode() if isinstance(data, str) else data, f".{kind}"

    def _stage(self, stem: str, suffix: str, data: bytes) -> str:
        if self._staging is None:
            beside = os.path.dirname(os.path.abspath(self.output or ""))
            self._staging = tempfile.mkdtemp(prefix=f".{self._folder}.", dir=beside)
        name, count = stem + suffix, 1
        while name.lower() in self._names:
            count += 1
            name = f"{stem}_{count}{suffix}"
        self._names.add(name.lower())
        with open(os.path.join(self._staging, name), "xb") as stream:
            stream.write(data)
        return name


def folder_of(file: str) -> str:
    """The name of the folder of copies, made from the file's name."""
    return os.path.splitext(file)[0] + "_meshes"


def _relative(path: str, folder: str) -> str:
    """A path relative to a folder, with slashes; unchanged if on another drive."""
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:
        return path


_FACE_WITHOUT_NORMALS = re.compile(rb"^f [^/\n]*$", re.MULTILINE)
_FACE_WITH_NORMALS = re.compile(rb"^f [^/\n]*/", re.MULTILINE)


def _is_read_by_mujoco(suffix: str, data: bytes) -> bool:
    """True if MuJoCo reads the file.

    It reads binary STL up to a number of triangles, and OBJ unless only some of its faces have
    normals or textures.
    """
    if suffix == ".obj":
        return not (_FACE_WITHOUT_NORMALS.search(data) and _FACE_WITH_NORMALS.search(data))
    if suffix != ".stl":
        return suffix in MUJOCO
    faces = int.from_bytes(data[_HEADER - 4 : _HEADER], "little")
    whole = len(data) == _HEADER + _FACE * faces
    return whole and _FEWEST_FACES <= faces <= _MOST_FACES
