"""USD stages, opened as untrusted files, and the meshes in them.

A stage is composed of layers that refer to each other. Before USD composes them, each is checked
alone: it must be a plain file in the folder of the first one (or as far above as paths of packages
lead) of bounded size, and all of them together must give a bounded number of prims.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.errors import DescriptionError, Issue, MissingPackageError, Source
from robomodel.files import (
    LFS,
    LFS_POINTER,
    MAX_MESH_BYTES,
    STAGES,
    Allowance,
    contents,
    top_folder,
)

if TYPE_CHECKING:
    import trimesh

MARKS = ("#usda", "PXR-USDC")
"""How USD files begin: as text, and in binary; USDZ is a zip archive."""
MAX_PRIMS = 200_000
"""Limit of the number of prims of a stage; prims of instances count once for each instance."""
MAX_PRIM_DEPTH = 1_000
"""Limit of the nesting of prims, over which USD recurses until the process crashes."""
MISSING_LAYER = "missing layer"
"""The kind of issues about layers that do not exist."""

_ARCS = ("referenceList", "payloadList", "inheritPathList", "specializesList")
_ITEMS = ("explicitItems", "addedItems", "prependedItems", "appendedItems")
_LINE = re.compile(r"([^']*?):(\d+):\d+: ")


def is_usd(source: object) -> bool:
    """True if a source of a robot is USD, by the name of the file or the beginning of a text."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source[:8]).startswith(tuple(mark.encode() for mark in MARKS))
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(MARKS):
        return True
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    return isinstance(name, str | os.PathLike) and os.fsdecode(name).lower().endswith(STAGES)


def pxr(source: Source | None = None) -> None:
    """Raise unless the package usd-core is installed."""
    try:
        importlib.import_module("pxr.Usd")
    except ImportError as error:
        raise MissingPackageError("USD files need", "usd-core", "usd", source) from error


def open_stage(source: str, file: str, issues: list[Issue], *, text: bool = False) -> Any:
    """The stage of a file at a path, or of a ``text``; ``file`` is how messages call it.

    Raises :class:`DescriptionError` for what is not read, and notes what USD complains of.
    """
    place = Source(file)
    pxr(place)
    from pxr import Sdf, Tf, Usd, UsdUtils

    layers = _Layers(place, issues)
    if text:
        layers.check_text(source)
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        if text:
            layer = Sdf.Layer.CreateAnonymous(".usda")
            is_read = layer.ImportFromString(source.lstrip("\ufeff \t\r\n"))
        else:
            layer = layers.first(source)
            is_read = layer is not None
        if not is_read:
            complaints = [each.commentary for each in delegate.TakeUncoalescedDiagnostics()]
            raise explained(next(iter(complaints), ""), place)
        layers.collect(layer)
        if (count := layers.prims()) > MAX_PRIMS:
            raise DescriptionError(
                f"its layers, with all that they refer to, make {count} prims, and at most "
                f"{MAX_PRIMS} are read; load the robot's own file",
                place,
            )
        return Usd.Stage.Open(layer, Usd.Stage.LoadAll)
    except Tf.ErrorException as error:
        raise explained(error, place) from error
    finally:
        for each in delegate.TakeUncoalescedDiagnostics():
            message = " ".join(each.commentary.split()).partition(" (instantiating stage")[0]
            if not message.startswith("Could not "):  # open a layer, which is noted above
                issues.append(Issue(f"USD says: {message[:300]}", place, "USD"))


def explained(complaint: object, place: Source) -> DescriptionError:
    """The error for USD's complaint about a file that it cannot read, with its line."""
    with suppress(OSError), open(place.file, "rb") as file:
        if file.read(len(LFS)) == LFS:
            return DescriptionError(f"this is {LFS_POINTER}", Source(place.file))
    text = ""
    with suppress(UnicodeDecodeError):  # it quotes the bytes of the file
        text = str(complaint)
    first = next((line for line in text.splitlines() if line.strip()), "it is no USD file")
    message = (first.partition(" : '")[2] or first).strip("' ")
    if line := _LINE.match(message):
        place, message = Source(line[1] or place.file, int(line[2])), message[line.end() :]
    return DescriptionError(f"USD cannot read this: {message[:300]}", place)


@dataclass
class _Layers:
    """The layers of a stage before composition, by their identifiers."""

    place: Source
    issues: list[Issue]
    layers: dict[str, Any] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=Allowance)
    folder: str = ""

    def first(self, path: str) -> Any:
        """The layer of the file that the user gave."""
        from pxr import Sdf

        self.folder = os.path.dirname(os.path.realpath(path))
        data = contents(os.path.realpath(path), "the file", self.place, most=MAX_MESH_BYTES)
        self.allowance.spend(len(data), "the file", self.place)
        self._check(data, path)
        return Sdf.Layer.FindOrOpen(os.path.realpath(path))

    def _check(self, data: bytes, path: str) -> None:
        """Raise for a text that is not UTF-8, or too deep."""
        if data.lstrip()[: len(MARKS[0])] == MARKS[0].encode():
            try:
                data.decode()
            except UnicodeDecodeError as error:
                line = data.count(b"\n", 0, error.start) + 1
                raise DescriptionError(
                    "this is not text in the encoding utf-8; save the file as UTF-8",
                    Source(path, line),
                ) from None
            self.check_depth(data)

    def check_text(self, text: str) -> None:
        """Raise for a text that no file can hold, or too deep."""
        try:
            self.check_depth(text.encode())
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            raise DescriptionError(
                "a character is half of a surrogate pair; save the file as UTF-8",
                Source(self.place.file, line),
            ) from None

    def check_depth(self, data: bytes) -> None:
        """Raise if the braces of a text are nested too deep."""
        braces = np.frombuffer(data, np.uint8)
        steps = np.where(braces == ord("{"), 1, np.where(braces == ord("}"), -1, 0))
        self._refuse_deeper(int(np.max(np.cumsum(steps), initial=0)))

    def _refuse_deeper(self, depth: int) -> None:
        if depth > MAX_PRIM_DEPTH:
            raise DescriptionError(
                f"prims stand {depth} inside each other, and at most {MAX_PRIM_DEPTH} are read",
                self.place,
            )

    def collect(self, layer: Any) -> None:
        """Collect all layers to which this one refers, recursively."""
        waiting = [layer]
        while waiting:
            each = waiting.pop()
            if each.identifier not in self.layers:
                self.layers[each.identifier] = each
                assets = filter(None, each.GetCompositionAssetDependencies())
                named = (self._named(each, asset) for asset in assets)
                waiting += [other for other in named if other is not None]

    def _named(self, layer: Any, asset: str) -> Any:
        """The layer to which another one refers; None, with an issue, if it does not exist."""
        from pxr import Ar, Sdf

        what = f"the layer @{asset[:200]}@"
        if "://" in asset or asset.startswith("`") or Sdf.Layer.IsAnonymousLayerIdentifier(asset):
            raise DescriptionError(
                f"{what} is no path of a file; only files beside this one are read: flatten the "
                "stage (usdcat --flatten) where it was made",
                self.place,
            )
        if not self.folder:
            raise DescriptionError(
                f"{what} is looked for beside the file, and this robot is from none; load it from "
                "a file",
                self.place,
            )
        identifier = layer.ComputeAbsolutePath(asset)
        outer = Ar.SplitPackageRelativePathOuter(identifier)[0] or identifier
        inside = os.path.relpath(os.path.realpath(outer), self.folder)
        top = top_folder(self.folder, inside)
        if os.path.exists(outer) and not os.path.isfile(outer):
            raise DescriptionError(f"{what} is no plain file; name one", self.place)
        if not os.path.isfile(outer):
            message = f"{what} is not there; what it holds is missing"
            self.issues.append(Issue(message, self.place, MISSING_LAYER))
            return None
        data = contents(outer, what, self.place, most=MAX_MESH_BYTES, within=[top])
        self.allowance.spend(len(data), what, self.place)
        if data.startswith(LFS):
            raise DescriptionError(f"{what} is {LFS_POINTER}", self.place)
        self._check(data, outer)
        return Sdf.Layer.FindOrOpen(identifier)

    # ---- how many prims they make

    def prims(self) -> int:
        """The number of prims of the stage; a lower bound, as variants may select others."""
        counts: dict[tuple[str, str], int] = {}
        first = next(iter(self.layers.values()))
        return sum(
            self._prims(layer, each, counts)
            for layer in [first, *self._sublayers(first)]
            for each in layer.rootPrims
        )

    def _sublayers(self, layer: Any) -> list[Any]:
        """The sublayers of a layer, and theirs."""
        below: list[Any] = []
        waiting = [layer]
        while waiting:
            for path in waiting.pop().subLayerPaths:
                each = self.layers.get(layer.ComputeAbsolutePath(path))
                if each is not None and each not in below:
                    below.append(each)
                    waiting.append(each)
        return below

    def _prims(self, layer: Any, prim: Any, counts: dict[tuple[str, str], int]) -> int:
        """The prims that one makes with those below it and those that it refers to.

        Depth first with an explicit stack: hostile files nest deeper than Python recurses.
        """
        start = (layer.identifier, str(prim.path))
        stack: list[tuple[tuple[str, str], Any, Any, list[tuple[Any, Any]] | None]]
        stack = [(start, layer, prim, None)]
        while stack:
            key, layer, prim, parts = stack.pop()
            if parts is None:
                if key in counts:
                    continue
                counts[key] = 0  # a circle ends here, and USD refuses it
                self._refuse_deeper(prim.path.pathElementCount)  # of binary files
                parts = list(self._parts(layer, prim))
                if any("clips" in str(name) for name in prim.ListInfoKeys()):
                    source = Source(self.place.file, element=f"prim <{prim.path}>")
                    raise DescriptionError("value clips are not read; flatten the stage", source)
                stack.append((key, layer, prim, parts))
                stack += [
                    ((inner.identifier, str(each.path)), inner, each, None) for inner, each in parts
                ]
            else:
                below = (counts[inner.identifier, str(each.path)] for inner, each in parts)
                counts[key] = 1 + sum(below)
        return counts[start]

    def _parts(self, layer: Any, prim: Any) -> Iterator[tuple[Any, Any]]:
        """A prim's children, those in its variants, and the targets of its arcs."""
        variants = [v.primSpec for s in prim.variantSets.values() for v in s.variants.values()]
        for each in (prim, *variants):
            for child in each.nameChildren:
                yield layer, child
            for name in _ARCS:
                edits = getattr(each, name)
                for item in {i for part in _ITEMS for i in getattr(edits, part)}:
                    asset = getattr(item, "assetPath", "")
                    path = getattr(item, "primPath", item)
                    there = layer
                    if asset:
                        there = self.layers.get(layer.ComputeAbsolutePath(asset))
                    for inner in [] if there is None else [there, *self._sublayers(there)]:
                        target = path or inner.defaultPrim
                        spec = inner.GetPrimAtPath(target if path else f"/{target}")
                        if spec is not None and target:
                            yield inner, spec


# ---- meshes --------------------------------------------------------------------------------------


def stage_mesh(path: str, prim: str, source: Source) -> trimesh.Trimesh:
    """The mesh of a prim of a file, in the prim's coordinates."""
    import trimesh
    from pxr import UsdGeom

    stage = open_stage(path, source.file, [])  # which its prims need as long as they are used
    geometry = stage.GetPrimAtPath(prim)
    if not geometry or not geometry.IsA(UsdGeom.Mesh):
        raise DescriptionError(f"the file has no mesh <{prim}>", source)
    mesh = UsdGeom.Mesh(geometry)
    points = np.array(mesh.GetPointsAttr().Get() or np.zeros((0, 3)), dtype=float)
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or [], dtype=int)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or [], dtype=int)
    if np.any(counts < 0) or counts.sum() != len(corners):
        raise DescriptionError(f"the faces of the mesh <{prim}> do not add up", source)
    if len(corners) and not 0 <= corners.min() <= corners.max() < len(points):
        raise DescriptionError(f"the faces of the mesh <{prim}> name points it lacks", source)
    starts = np.cumsum(counts) - counts
    fans = [
        np.stack([np.full(k - 2, s), np.arange(s + 1, s + k - 1), np.arange(s + 2, s + k)], axis=1)
        for s, k in zip(starts, counts, strict=True)
        if k > 2
    ]
    faces = corners[np.concatenate(fans)] if fans else np.zeros((0, 3), dtype=int)
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        faces = faces[:, ::-1]
    return trimesh.Trimesh(points, faces, process=True)
