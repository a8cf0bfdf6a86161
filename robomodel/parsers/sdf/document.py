"""SDF documents: values, poses, included files, and the document that is written.

SDF writes values as texts of elements where URDF has attributes. Poses of frames are resolved in
:mod:`robomodel.parsers.sdf.frames`.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections import defaultdict
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePosixPath

from lxml import etree

from robomodel.description import AT_ORIGIN, Joint, Loop, Pose, Vec3
from robomodel.errors import DescriptionError, Source, argument
from robomodel.files import SCHEMES, Resources, contents, is_within
from robomodel.vocabulary import xml
from robomodel.vocabulary.frames import WORLD, read_rotation
from robomodel.vocabulary.motors import GEAR_RATIO, ROTOR_INERTIA
from robomodel.vocabulary.schema import DYNAMICS, add_text, numbers, rpy_of, write_contents
from robomodel.vocabulary.springs import has_dynamics
from robomodel.vocabulary.xml import CUSTOM, DRAKE, Document, Element, shown, spelled

NEWEST = (1, 12)
MODEL = "__model__"
BETWEEN = "::"
"""Separator of the names of nested models."""

_OWNERS = frozenset(("link", "joint", "frame", "model", "include", "world"))


@dataclass(frozen=True, slots=True)
class SdfDocument(Document):
    """A parsed SDF file, and its version."""

    version: tuple[int, int] = NEWEST

    @staticmethod
    def of(document: Document, version: tuple[int, int] = NEWEST) -> SdfDocument:
        """A parsed document as an SDF document."""
        values = {each.name: getattr(document, each.name) for each in fields(Document)}
        return SdfDocument(**values, version=version)

    def place(self, element: Element) -> Source:
        """The location of ``element``, under the name of the link, joint, ... it belongs to."""
        owner: Element | None = element
        while owner is not None and (owner.tag not in _OWNERS or not owner.get("name")):
            owner = owner.getparent()
        label = f"<{shown(element)}>" if owner is None else f"{shown(owner)} '{owner.get('name')}'"
        return self.source(element, label)

    def parts(
        self, element: Element, tags: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; those with a foreign prefix are ignored.

        Drake's elements have mechanics, so unknown ones are warned of.
        """
        prefixed = [(child.tag, shown(child)) for child in element if child.tag.startswith("{")]
        foreign = {tag for tag, name in prefixed if not name.startswith("drake:") or name in _DRAKE}
        return Document.parts(self, element, tags, irrelevant | foreign)

    # ---- values

    def word(self, parent: Element, tag: str) -> str | None:
        """The text of the child ``tag``; None if there is no such child."""
        child = parent.find(tag)
        return None if child is None else (child.text or "").strip()

    def required(self, parent: Element, tag: str) -> str:
        """The text of the child ``tag``; raises if it is missing."""
        text = self.word(parent, tag)
        if not text:
            raise self.error(parent, f"<{shown(parent)}> needs a <{tag}>")
        return text

    def truth(self, parent: Element, tag: str, default: bool) -> bool:
        """The truth value in the child ``tag``."""
        child = parent.find(tag)
        return default if child is None else self.as_truth(child, child.text or "")

    def truth_of(self, element: Element, name: str, default: bool) -> bool:
        """The truth value in the attribute ``name``."""
        text = element.get(name)
        return default if text is None else self.flag(element, text, name)

    def as_truth(self, element: Element, text: str) -> bool:
        """The truth value in an element's text."""
        return self.flag(element, text, f"<{shown(element)}>")

    def value(self, parent: Element, tag: str, default: float = 0.0) -> float:
        """The number in the child ``tag``."""
        child = parent.find(tag)
        return default if child is None else self.content(child)

    def size(self, parent: Element, tag: str, count: int) -> tuple[float, ...]:
        """The ``count`` nonnegative numbers in the child ``tag``; by default 1 each, as in SDF."""
        child = parent.find(tag)
        if child is None:
            message = f"<{shown(parent)}> has no <{tag}>; SDF takes {' '.join('1' * count)} m then"
            self.warn_at(parent, message, "no size")
            return (1.0,) * count
        sizes = self.contents(child, count)
        if min(sizes) < 0.0:
            raise self.error(child, f"the <{tag}> of the <{shown(parent)}> is negative")
        return sizes

    def three(self, element: Element) -> Vec3:
        """Three numbers."""
        x, y, z = self.contents(element, 3)
        return x, y, z


_DRAKE = (ROTOR_INERTIA, GEAR_RATIO, "drake:mimic")  # read separately


# --- poses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelativePose:
    """A pose as written, and the name of the frame that it is relative to ("" for the default)."""

    pose: Pose = AT_ORIGIN
    relative_to: str = ""


_POSE = frozenset(("relative_to", "frame", "degrees", "rotation_format"))


def read_placed(document: SdfDocument, parent: Element) -> RelativePose:
    """Read the ``<pose>`` of an element."""
    element = parent.find("pose")
    if element is None:
        return RelativePose()
    document.expect(element, _POSE)
    name = element.get("relative_to") or ""
    if not name and (old := element.get("frame")):
        if document.version < (1, 7):
            name = old
        else:
            document.warn_at(
                element, "'frame' of <pose> means nothing from SDF 1.7 on; write relative_to"
            )
    return RelativePose(_pose(document, element), name)


def _pose(document: SdfDocument, element: Element) -> Pose:
    if not (element.text or "").strip():
        return Pose()
    form = element.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        x, y, z, *quaternion = document.contents(element, 7)
        return Pose((x, y, z), read_rotation(document, element, quaternion, "the quaternion"))
    if form != "euler_rpy":
        raise document.error(
            element, f"the rotation_format is {spelled(form)}; known are euler_rpy and quat_xyzw"
        )
    x, y, z, *angles = document.contents(element, 6)
    if document.truth_of(element, "degrees", False):
        angles = [math.radians(angle) for angle in angles]
    return Pose.from_rpy((x, y, z), (angles[0], angles[1], angles[2]))


# --- the files of a robot: the document itself, and what its <include> elements name -------------
#
# What is read is bounded: files within the folder of the file that names them, and model://NAME in
# that folder or beside it, where model folders stand. No absolute path, no network, no way out
# through '..' or a symbolic link.

MAX_INCLUDES = 1000
"""Limit of the number of includes; those of included files are counted every time."""
MAX_INCLUDE_DEPTH = 16
"""Limit of the nesting of includes."""

_OLDEST = (1, 2)
_VERSION = re.compile(r"\s*(\d{1,3})\.(\d{1,3})(\.\d+)?\s*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def opened(document: Document) -> SdfDocument:
    """The document as an SDF document, with its version."""
    root = document.root
    sdf = SdfDocument.of(document, _version(document))
    if root.get("version") is None:
        sdf.warn_at(root, f"<sdf> has no version; it is read as {_shown(NEWEST)}")
    elif sdf.version > NEWEST:
        sdf.warn_at(
            root,
            f"SDF {_shown(sdf.version)} is not known yet; it is read as {_shown(NEWEST)}",
        )
    return sdf


def _version(document: Document) -> tuple[int, int]:
    root = document.root
    if root.tag != "sdf":
        raise DescriptionError(
            f"SDF has the root element <sdf>, not <{shown(root)}>",
            document.source(root, f"<{shown(root)}>"),
        )
    text = root.get("version")
    if text is None:
        return NEWEST
    if not (match := _VERSION.fullmatch(text)):
        raise DescriptionError(
            f'the version is {spelled(text)}; write it as in version="{_shown(NEWEST)}"',
            document.source(root, "<sdf>"),
        )
    version = int(match[1]), int(match[2])
    if version < _OLDEST:
        raise DescriptionError(
            f"SDF {text.strip()} is from before {_shown(_OLDEST)}, and is not read; "
            "convert it with 'gz sdf -p'",
            document.source(root, "<sdf>"),
        )
    return version


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


class Library:
    """The files that a document includes, each parsed once."""

    def __init__(self, main: SdfDocument, resources: Resources) -> None:
        self._resources = resources
        self._strict = main.strict
        self._issues = main.issues
        self._documents: dict[str, SdfDocument] = {}
        self._count = 0
        self._bytes = 0
        self._sizes: dict[str, int] = {}
        # a name that is no file stands for a text or a stream
        place = os.path.realpath(main.file) if _is_file(main.file) else None
        self._places = {main.file: place}
        self.start = (place,) if place else ()
        """The open files at the top level: the main document."""
        self._folder, self._real_folder = os.path.dirname(main.file), os.path.dirname(place or "")

    def included(self, document: SdfDocument, include: Element, open_files: tuple[str, ...]) -> str:
        """The path of the file that an ``<include>`` of ``document`` names; counts the includes.

        ``open_files`` are the files that contain the include, the outermost first.
        """
        uri = document.required(include, "uri")
        path = self._resolved(document, include, uri)
        if path in open_files:
            raise document.error(include, f"{spelled(uri)} includes itself")
        if len(open_files) > MAX_INCLUDE_DEPTH:
            raise document.error(include, f"includes are nested more than {MAX_INCLUDE_DEPTH} deep")
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise document.error(include, f"the robot has more than {MAX_INCLUDES} includes")
        return path

    def read(self, path: str, document: SdfDocument, include: Element) -> SdfDocument:
        """The document at a path that :meth:`included` returned."""
        if path not in self._documents:
            text, self._sizes[path] = _text(path, document, include)
            name = os.path.join(self._folder, os.path.relpath(path, self._real_folder))
            name = os.path.normpath(name)  # as the user would write it
            parsed = xml.parse(text, name, strict=self._strict, issues=self._issues)
            self._documents[path] = opened(parsed)
            self._places[name] = path
        self._bytes += self._sizes[path]
        if self._bytes > xml.MAX_BYTES:
            raise document.error(
                include, f"the included files are larger than {xml.MAX_BYTES // 2**20} MiB"
            )
        return self._documents[path]

    def has(self, document: SdfDocument, uri: str) -> bool:
        """True if ``model://NAME`` exists in the folder of the document, or beside it."""
        place = self._places[document.file]
        name = uri.removeprefix("model://")
        if self._resources.find(name.partition("/")[0]) is not None:
            return True
        folders = (os.path.dirname(place), os.path.dirname(os.path.dirname(place))) if place else ()
        return any(os.path.exists(os.path.join(folder, name)) for folder in folders)

    # ---- which file

    def _resolved(self, document: SdfDocument, include: Element, uri: str) -> str:
        def refused(message: str) -> DescriptionError:
            return document.error(include, f"{spelled(uri)} {message}")

        place = self._places[document.file]
        scheme, rest = "", uri
        if match := _SCHEME.fullmatch(uri):
            scheme, rest = match[1].lower(), match[2]
        parts = PurePosixPath(rest).parts
        package = self._resources.find(parts[0]) if scheme in SCHEMES and parts else None
        if package is None and scheme not in ("", "file", "model"):
            raise refused(
                "is not read: includes are files within the folder of the file that names them, "
                "and model://NAME beside it; copy the model there, or name its folder by "
                + argument("resources")
            )
        if package is None and place is None:
            raise refused(
                "cannot be included, as a text has no folder; save it as a file, beside what it "
                "includes, and load that"
            )
        if not parts or "\0" in rest or "\\" in rest or rest.startswith("/") or ".." in parts:
            raise refused(
                "is not read: includes stay within the folder of the file that names them, so "
                "write no absolute path and no '..'"
            )
        homes: dict[str, str] = {}  # folder to search → folder that must not be left
        if package is not None:
            top = os.path.realpath(package)
            homes[top], parts = top, parts[1:]
        elif place is not None:
            folder = os.path.dirname(place)
            homes[folder] = folder
            if scheme == "model":
                above = os.path.dirname(folder)
                homes.setdefault(above, os.path.join(above, parts[0]))
        for home, limit in homes.items():
            target = os.path.join(home, *parts)
            if not os.path.exists(target):
                continue
            path = os.path.realpath(target)
            if os.path.isdir(path) and is_within(path, limit):
                path = os.path.realpath(self._model_file(path, document, include, uri))
            if not is_within(path, limit):
                raise refused("leads out of the folder by a symbolic link, and is not read")
            if not _is_file(path):
                raise refused("is no file")
            return path
        where = "the folder of this file" if package is None else f"the folder {package}"
        another = f" or beside it; name another by {argument('resources')}"
        beside = another if scheme == "model" else ""
        raise document.error(
            include, f"there is no {spelled(uri)} in {where}{'' if package else beside}"
        )

    def _model_file(self, folder: str, document: SdfDocument, include: Element, uri: str) -> str:
        """The newest file that a model folder's model.config lists, else model.sdf."""
        config = os.path.join(folder, "model.config")
        if not _is_file(config) or os.path.realpath(config) != config:
            return os.path.join(folder, "model.sdf")
        text, _ = _text(config, document, include)
        listed = xml.parse(text, config).root.findall("sdf")
        newest, name = (0, 0), ""
        for entry in listed:
            match = _VERSION.fullmatch(entry.get("version", "1.0"))
            version = (int(match[1]), int(match[2])) if match else (0, 0)
            if newest <= version <= NEWEST:
                newest, name = version, (entry.text or "").strip()
        if not name or name != os.path.basename(name) or name in (".", ".."):
            raise document.error(
                include, f"model.config of {spelled(uri)} names no SDF file of its folder"
            )
        return os.path.join(folder, name)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _text(path: str, document: SdfDocument, include: Element) -> tuple[str, int]:
    """The text of a file, and its size [bytes]."""
    what = spelled(os.path.basename(path))
    data = contents(path, what, document.place(include), most=xml.MAX_BYTES)
    return xml.decode(data, path), len(data)


# --- writing -------------------------------------------------------------------------------------

VERSION = "1.11"


@dataclass
class SdfDraft:
    """A document. ``links`` and ``joints`` map names of the description to those in it.

    ``untied`` are the joints, loops and couplings that ``lost`` tells of.
    """

    lost: list[str] = field(default_factory=list)
    untied: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    used: dict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    models: dict[tuple[str, ...], etree._Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nsmap = {"robomodel": CUSTOM, "drake": DRAKE}
        self.root = etree.Element("sdf", {"version": VERSION}, nsmap=nsmap)

    def model(self, scope: tuple[str, ...]) -> etree._Element:
        """The model element of nested models' names; created if it does not exist."""
        if scope not in self.models:
            self.used[scope[:-1]].add(scope[-1])
            self.models[scope] = etree.SubElement(
                self.model(scope[:-1]), "model", {"name": scope[-1]}
            )
        return self.models[scope]

    def claim(self, name: str, *others: str, more: str = "") -> str:
        """A unique name for an element, with the models of its full name.

        From there, the element must reach the elements ``others`` that it names. A name that SDF
        does not allow, or that is in use, is changed; the ending ``more`` is tried first.
        """
        *models, last = name.split(BETWEEN)
        scope = tuple(models)
        nested = all(
            scope[:n] in self.models or scope[n - 1] not in self.used[scope[: n - 1]]
            for n in range(1, len(scope) + 1)
        )
        reached = all(other == WORLD or other.startswith(prefix(name)) for other in others)
        if not (nested and reached and all(models)):
            scope, last = (), name.replace(BETWEEN, "_")
        if last in ("", WORLD) or (last.startswith("__") and last.endswith("__")):
            last = f"{last.strip('_') or 'unnamed'}_"
        fresh, count = last, 0
        while fresh in self.used[scope]:
            fresh = f"{last}_{count}" if count or not more else f"{last}_{more}"
            count += 1
        self.model(scope)
        self.used[scope].add(fresh)
        return BETWEEN.join((*scope, fresh))

    def element(self, tag: str, name: str, full_name: str, **attributes: str) -> etree._Element:
        """Append an element under ``full_name``; keeps the original ``name`` if it differs."""
        *models, last = full_name.split(BETWEEN)
        element = etree.SubElement(self.model(tuple(models)), tag, {"name": last} | attributes)
        if full_name != name:
            set_custom(element, "name", name)
        return element

    def reached(self, name: str, other: str) -> str:
        """The name by which the element of one link refers to another; empty if it cannot."""
        if other not in self.links or self.links[other] == WORLD:
            return ""
        within, target = prefix(self.links[name]), self.links[other]
        return target[len(within) :] if target.startswith(within) else ""


# --- elements -------------------------------------------------------------------------------------


def prefix(full_name: str) -> str:
    """The names of the models that contain an element, as prefix of its name."""
    return full_name[: len(full_name) - len(full_name.rpartition(BETWEEN)[2])]


def set_custom(element: etree._Element, name: str, value: str) -> None:
    """Set an attribute in this package's namespace, which other readers ignore."""
    element.set(f"{{{CUSTOM}}}{name}", value)


def pose(parent: etree._Element, placement: Pose, relative_to: str = "") -> None:
    """Append ``<pose>``, unless it is the identity."""
    angles = rpy_of(placement.rotation)
    if relative_to or any(placement.xyz) or any(angles):
        element = add_text(parent, "pose", numbers((*placement.xyz, *angles)))
        if relative_to:
            element.set("relative_to", relative_to)


def dynamics(axis: etree._Element, record: Joint | Loop, reference: float) -> None:
    """Append ``<dynamics>`` of an axis, if anything acts on it; ``reference``: rest position."""
    if has_dynamics(record):
        element = etree.SubElement(axis, "dynamics")
        write_contents(element, DYNAMICS, replace(record, reference=reference))
