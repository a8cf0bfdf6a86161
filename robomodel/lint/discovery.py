"""Robot files in folders, told by their content, and the packages that they name.

A file that others include is a part, which is checked where it is included: macros of xacro,
MJCF files without bodies or that need what the including file declares, layers of USD. A URDF file
without links is an extension or an SRDF file, and no robot.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from lxml import etree

from robomodel.errors import warn
from robomodel.files import LFS, STAGES, may_be_read

Format = Literal["urdf", "sdf", "mjcf", "usd"]

SUFFIXES = (".urdf", ".sdf", ".world", ".mjcf", ".xacro")
"""Ends of names of robot files; a file of such a name that is no XML is a fault."""
TEMPLATES = (".j2", ".jinja", ".jinja2", ".erb", ".em", ".in", ".tpl", ".template")
"""Ends of names of files that another program turns into robot files."""
SKIPPED = frozenset(
    ("__pycache__", "node_modules", "site-packages", "build", "install", "log", "dist")
)  # what builds leave; ROS 2 installs copies into build and install
MOST_FILES = 200_000  # files whose names are looked at in one run
BEGIN = 4096  # bytes of a file in which its root element begins
MOST_BYTES = 32 * 2**20  # bytes of a file that are searched for what it includes

_ROOT = re.compile(rb"\s*(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z_][\w.:-]*)", re.S)
_XACRO = re.compile(r"\$\([^)]*\)|\$\{[^}]*\}")
_USES = re.compile(rb"(?:package|model)://([\w.-]+)|\$\(find\s+([\w.-]+)\s*\)")
_PHYSICS = re.compile(rb"Physics(?:Articulation|Revolute|Prismatic|Spherical|Fixed|RigidBody)")
_FORMATS: Mapping[str, Format] = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf"}
_PARTS_OF_XACRO = frozenset(("macro", "property", "arg", "include"))
_ADDS_NOTHING = frozenset(
    ("include", "statistic", "visual", "asset", "size", "option", "keyframe", "custom")
)  # children of <mujoco> that change nothing of the robots that the file includes


@dataclass(frozen=True, slots=True)
class RobotFile:
    """A file that describes a robot.

    ``fallback``: files that include it, which are checked in its place if it does not load alone.
    ``world``: the name of an SDF file's world. ``packages``: folders of packages that are named in
    this file or another, by name.
    """

    path: Path
    format: Format
    xacro: bool = False
    fallback: tuple[Path, ...] = ()
    world: str = ""
    packages: Mapping[str, Path] = field(default_factory=dict)


@dataclass(slots=True)
class _Candidate:
    """A file with the root element of a robot's: what it includes, and what it has itself."""

    path: Path
    format: Format
    xacro: bool = False
    includes: list[Path] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)  # ends of included paths that xacro computes
    packages: set[str] = field(default_factory=set)  # packages that the file names
    complete: bool = True
    world: str = ""
    plain: bool = False  # True if it adds nothing to what it includes


def find(paths: Sequence[Path], root: Path, exclude: Sequence[str] = ()) -> tuple[RobotFile, ...]:
    """The robot files at these paths: files themselves, and those in folders.

    A named file that is a part stands for the files below ``root`` that include it, a scene for
    the robots that it includes; a named file that is none of a robot stands for nothing.
    ``exclude``: patterns of paths below ``root``, also of named files.
    """
    folders = [path.resolve() for path in paths if path.is_dir()]
    named = [path.resolve() for path in paths if not path.is_dir()]
    named = [path for path in named if not _excluded(path, root, exclude)]
    known = _candidates(_files(folders, root, exclude))
    robots = {each.path: each for each in _tops(known)}
    if extra := _candidates(named):
        known |= extra
        tops = {each.path: each for each in _tops(known)}
        alone = [path in tops and not (x.includes or x.endings) for path, x in extra.items()]
        if not all(alone) and root not in folders:
            known = {**_candidates(_files([root], root, exclude)), **known}
            tops = {each.path: each for each in _tops(known)}
        for path in extra:
            around = [*_including(path, known), *_included(known[path], known)]
            reached = [path] if path in tops else around
            robots |= {each: tops[each] for each in reached if each in tops}
    used = {name for each in known.values() for name in each.packages}
    packages = _packages(paths, root, exclude) if used else {}
    return tuple(
        replace(robots[path], packages=_packages_near(path, used, packages))
        for path in sorted(robots, key=Path.as_posix)
    )


def _files(folders: Iterable[Path], root: Path, exclude: Sequence[str]) -> Iterator[Path]:
    """All plain files below folders, in the order of their names; hidden ones are left out."""
    count = 0
    for folder in folders:
        for here, below, names in os.walk(folder.resolve()):
            below[:] = sorted(
                name
                for name in below
                if not name.startswith(".")
                and name not in SKIPPED
                and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
                and not _excluded(Path(here, name), root, exclude)
            )
            for name in sorted(names):
                path = Path(here, name)
                count += 1
                if count > MOST_FILES:
                    warn(
                        RuntimeWarning(
                            f"{folder}: more than {MOST_FILES} files, of which the others are not "
                            "looked at: name folders within, or exclude some"
                        )
                    )
                    return
                if not name.startswith(".") and not _excluded(path, root, exclude):
                    yield path


def _excluded(path: Path, root: Path, exclude: Sequence[str]) -> bool:
    if not exclude:
        return False
    place = os.path.relpath(path, root).replace(os.sep, "/")
    return any(
        fnmatch(place, pattern) or fnmatch(place, f"{pattern.rstrip('/')}/*") for pattern in exclude
    )


# ---- what a file is ------------------------------------------------------------------------------


def _candidates(paths: Iterable[Path]) -> dict[Path, _Candidate]:
    result: dict[Path, _Candidate] = {}
    for path in paths:
        if path not in result and (candidate := _candidate(path)) is not None:
            result[path] = candidate
    return result


def _candidate(path: Path) -> _Candidate | None:
    """The file as one of a robot's; None if its content is none of a robot."""
    name = path.name.lower()
    if name.endswith(TEMPLATES) or not path.is_file() or not may_be_read(path):
        return None
    try:
        with path.open("rb") as stream:
            begin = stream.read(BEGIN)
            if name.endswith(STAGES):
                rest = stream.read(MOST_BYTES) if begin.startswith(b"#usda") else b""
                return _stage(path, begin + rest)
            begin = begin.removeprefix(b"\xef\xbb\xbf")
            if not begin.lstrip().startswith(b"<") and b"\0" not in begin[:4]:
                return _unreadable(path, begin)
            data = begin + stream.read(MOST_BYTES)
    except OSError:
        return None
    match = _ROOT.match(data)
    tag = match[1].decode() if match else ""
    if tag not in ("robot", "sdf", "mujoco", "mujocoinclude"):
        return _unreadable(path, begin) if not match else None
    try:
        parser = etree.XMLParser(
            resolve_entities=False, load_dtd=False, no_network=True, huge_tree=True
        )
        tree = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None if tag == "mujocoinclude" else _Candidate(path, _FORMATS[tag])
    candidate = {"robot": _urdf, "sdf": _sdf}.get(tag, _mjcf)(path, tree)
    if candidate is not None:
        candidate.packages = {
            name.decode("utf-8", "replace")
            for found in _USES.findall(data)
            for name in found
            if name
        }
    return candidate


def _unreadable(path: Path, begin: bytes) -> _Candidate | None:
    """A file that is named as a robot's but is no XML: a fault, as a pointer of Git LFS is."""
    if not path.name.lower().endswith(SUFFIXES) and not begin.startswith(LFS):
        return None
    kinds: dict[str, Format] = {".urdf": "urdf", ".xacro": "urdf", ".mjcf": "mjcf"}
    if path.suffix.lower() not in SUFFIXES:
        return None
    return _Candidate(path, kinds.get(path.suffix.lower(), "sdf"))


def _urdf(path: Path, tree: etree._Element) -> _Candidate | None:
    uris = {uri for prefix, uri in tree.nsmap.items() if "xacro" in (prefix or "") + uri}
    uses = [each for each in tree.iter("*") if etree.QName(each).namespace in uris]
    if path.name.lower().endswith(".srdf"):
        return None
    if not uses and not path.name.lower().endswith(".xacro"):
        return _Candidate(path, "urdf") if tree.find("link") is not None else None
    candidate = _Candidate(path, "urdf", xacro=True)
    for each in uses:
        if etree.QName(each).localname == "include" and (file := each.get("filename")):
            if _XACRO.search(file):
                candidate.endings.append(_XACRO.split(file)[-1].lstrip("/"))
            else:
                candidate.includes.append(_resolved(path.parent, file))
    candidate.complete = any(
        etree.QName(each).namespace not in uris
        or etree.QName(each).localname not in _PARTS_OF_XACRO
        for each in tree.iterchildren("*")
    )
    srdf = {"group", "disable_collisions", "virtual_joint", "end_effector"}
    if any(each.tag in srdf for each in tree.iter("*")):
        return None
    return candidate


def _sdf(path: Path, tree: etree._Element) -> _Candidate:
    candidate = _Candidate(path, "sdf")
    own = any(True for _ in tree.iter("model"))
    for include in tree.iter("include"):
        uri = (include.findtext("uri") or "").strip()
        candidate.endings.append(uri.partition("://")[2] or uri)
    worlds = tree.findall("world")
    candidate.world = worlds[0].get("name", "") if len(worlds) == 1 else ""
    candidate.plain = not own and bool(candidate.endings)
    candidate.complete = own or bool(candidate.endings)
    return candidate


def _mjcf(path: Path, tree: etree._Element) -> _Candidate:
    candidate = _Candidate(path, "mjcf")
    for include in tree.iter("include"):
        if file := include.get("file"):
            candidate.includes.append(_resolved(path.parent, file))
    bodies = any(True for _ in tree.iter("body"))
    candidate.complete = tree.tag == "mujoco" and (bodies or bool(candidate.includes))
    candidate.plain = not bodies and all(
        each.tag in _ADDS_NOTHING
        or (
            each.tag == "worldbody"
            and all(x.tag in ("light", "geom", "camera", "site", "include") for x in each)
        )
        for each in tree.iterchildren("*")
    )
    return candidate


def _stage(path: Path, data: bytes) -> _Candidate | None:
    """A USD layer: one of a robot if it, or a layer that it is made of, has joints or bodies."""
    candidate = _Candidate(path, "usd")
    try:
        from pxr import Sdf
    except ImportError:
        found = not data.startswith(b"#usda") or _PHYSICS.search(data) is not None
        return candidate if found else None
    layer = Sdf.Layer.FindOrOpen(str(path))
    if layer is None:
        return None
    candidate.includes = [
        _resolved(path.parent, each) for each in layer.GetCompositionAssetDependencies()
    ]
    candidate.complete = _has_physics(layer)
    return candidate


def _has_physics(layer: Any) -> bool:
    """True if prims of a layer are joints, bodies or articulations."""
    found: list[bool] = []

    def look(place: Any) -> None:
        spec = layer.GetPrimAtPath(place)
        if spec is None or found:
            return
        schemas = spec.GetInfo("apiSchemas") if spec.HasInfo("apiSchemas") else None
        words = [] if schemas is None else list(schemas.GetAddedOrExplicitItems())
        if _PHYSICS.match(f"{spec.typeName}".encode()) or any(
            _PHYSICS.match(str(word).encode()) for word in words
        ):
            found.append(True)

    layer.Traverse("/", look)
    return bool(found)


def _resolved(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name.replace("\\", "/")))


# ---- which of them are robots --------------------------------------------------------------------


def _included(candidate: _Candidate, known: Mapping[Path, _Candidate]) -> list[Path]:
    """The known files that a file includes, those with computed paths by the ends of these."""
    result = [path for path in candidate.includes if path in known]
    for ending in candidate.endings:
        if not ending:
            continue
        result += [
            path
            for path in known
            if path != candidate.path
            and known[path].format == candidate.format
            and (f"/{path.as_posix()}".endswith(f"/{ending}") or path.parent.name == ending)
        ]
    return result


def _tops(known: Mapping[Path, _Candidate]) -> Iterator[RobotFile]:
    """Files that are checked for themselves."""
    by_part: dict[Path, list[Path]] = {}
    for each in known.values():
        for part in _included(each, known):
            by_part.setdefault(part, []).append(each.path)
    for path, each in known.items():
        above = tuple(sorted(by_part.get(path, ())))
        match each.format:
            case "urdf":
                if each.complete and not (each.xacro and above):
                    yield RobotFile(path, "urdf", each.xacro)
            case "sdf":
                if each.complete and not (each.plain and _all_known(each, known)):
                    yield RobotFile(path, "sdf", world=each.world)
            case "mjcf":
                parts = [known[x] for x in _included(each, known)]
                if not each.complete or (each.plain and any(x.complete for x in parts)):
                    continue
                if not above or not each.plain:
                    yield RobotFile(path, "mjcf", fallback=above)
            case "usd":
                if not above and (each.complete or _physical(each, known)):
                    yield RobotFile(path, "usd")


def _all_known(each: _Candidate, known: Mapping[Path, _Candidate]) -> bool:
    """True if everything that a world includes is among the files."""
    return all(
        any(
            path.parent.name == ending.rpartition("/")[2]
            or f"/{path.as_posix()}".endswith(f"/{ending}")
            for path in known
        )
        for ending in each.endings
    )


def _physical(each: _Candidate, known: Mapping[Path, _Candidate]) -> bool:
    """True if one of the layers of which a stage is made has joints or bodies."""
    seen: set[Path] = set()
    stack = [each]
    while stack:
        for path in _included(stack.pop(), known):
            if path not in seen:
                seen.add(path)
                if known[path].complete:
                    return True
                stack.append(known[path])
    return False


def _including(path: Path, known: Mapping[Path, _Candidate]) -> list[Path]:
    """The files that include a file, and those that include these."""
    result: list[Path] = []
    stack = [path]
    while stack:
        part = stack.pop()
        for each in known.values():
            if each.path not in result and part in _included(each, known):
                result.append(each.path)
                stack.append(each.path)
    return result


# ---- packages ------------------------------------------------------------------------------------

_NAME = re.compile(rb"<name>\s*([\w.-]+)\s*</name>")
_MARK = "package.xml"


def _packages(paths: Iterable[Path], root: Path, exclude: Sequence[str]) -> dict[str, Path]:
    """Packages below the root, and in folders outside of it, by the names in their package.xml."""
    folders = [path if path.is_dir() else path.parent for path in (x.resolve() for x in paths)]
    outside = [folder for folder in folders if not folder.is_relative_to(root)]
    packages: dict[str, Path] = {}
    for path in _files([root, *outside], root, exclude):
        if path.name == _MARK:
            packages.setdefault(_package_name(path), path.parent)
    return packages


def _package_name(path: Path) -> str:
    """The name in a package.xml, else that of its folder."""
    try:
        match = _NAME.search(path.read_bytes()[:65536])
    except OSError:
        match = None
    return match[1].decode() if match else path.parent.name


def _packages_near(
    path: Path, used: Iterable[str], packages: Mapping[str, Path]
) -> dict[str, Path]:
    """The packages that are used: those that contain the file, those with a package.xml, folders.

    A folder of this name is a package where it contains the file, or stands beside a folder that
    does.
    """
    result: dict[str, Path] = {}
    above = {_package_name(each / _MARK): each for each in path.parents if (each / _MARK).is_file()}
    for name in sorted(used):
        if name in above or name in packages:
            result[name] = above.get(name) or packages[name]
            continue
        for folder in path.parents:
            if folder.name == name or (folder / name).is_dir():
                result[name] = folder if folder.name == name else folder / name
                break
    return result
