"""The SDF document that grows: its models, the names that are taken, and how elements are said."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from lxml import etree

from robomodel.description import Joint, Loop, Pose
from robomodel.parsers.schema import DYNAMICS, add_text, write_contents
from robomodel.parsers.sdf.frames import BETWEEN, WORLD
from robomodel.parsers.shared.springs import has_dynamics
from robomodel.parsers.xml import CUSTOM, DRAKE
from robomodel.text import numbers, rpy_of

VERSION = "1.11"


@dataclass
class Draft:
    """A document. ``links`` and ``joints`` are what links and joints are called in it."""

    lost: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    models: dict[tuple[str, ...], etree._Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nsmap = {"robomodel": CUSTOM, "drake": DRAKE}
        self.root = etree.Element("sdf", {"version": VERSION}, nsmap=nsmap)

    def text(self) -> str:
        """The document."""
        etree.cleanup_namespaces(self.root)
        body = etree.tostring(self.root, pretty_print=True, encoding="unicode")
        return f'<?xml version="1.0"?>\n{body}'

    def model(self, scope: tuple[str, ...]) -> etree._Element:
        """The model of these names, one in the other; made where it is not there yet."""
        if scope not in self.models:
            self.taken[scope[:-1]].add(scope[-1])
            self.models[scope] = etree.SubElement(
                self.model(scope[:-1]), "model", {"name": scope[-1]}
            )
        return self.models[scope]

    def claim(self, name: str, *others: str, more: str = "") -> str:
        """The name that an element gets, in the models that its own name says.

        From there it must reach what it names. A name that SDF does not allow, or that another
        element has, is changed; ``more`` is then tried first as an ending.
        """
        *models, last = name.split(BETWEEN)
        scope = tuple(models)
        nested = all(
            scope[:n] in self.models or scope[n - 1] not in self.taken[scope[: n - 1]]
            for n in range(1, len(scope) + 1)
        )
        reached = all(other == WORLD or other.startswith(prefix(name)) for other in others)
        if not (nested and reached and all(models)):
            scope, last = (), name.replace(BETWEEN, "_")
        if last in ("", WORLD) or (last.startswith("__") and last.endswith("__")):
            last = f"{last.strip('_') or 'unnamed'}_"
        fresh, count = last, 0
        while fresh in self.taken[scope]:
            fresh = f"{last}_{count}" if count or not more else f"{last}_{more}"
            count += 1
        self.model(scope)
        self.taken[scope].add(fresh)
        return BETWEEN.join((*scope, fresh))

    def element(self, tag: str, name: str, said: str, **attributes: str) -> etree._Element:
        """A new element, called ``said`` in the file; a name that is another one is noted in it."""
        *models, last = said.split(BETWEEN)
        element = etree.SubElement(self.model(tuple(models)), tag, {"name": last} | attributes)
        if said != name:
            own(element, "name", name)
        return element

    def reached(self, name: str, other: str) -> str:
        """How the element of one link names another one; empty if it cannot."""
        if other not in self.links or self.links[other] == WORLD:
            return ""
        within, found = prefix(self.links[name]), self.links[other]
        return found[len(within) :] if found.startswith(within) else ""


# --- elements -------------------------------------------------------------------------------------


def prefix(said: str) -> str:
    """What the name of an element begins with: the models in which it stands."""
    return said[: len(said) - len(said.rpartition(BETWEEN)[2])]


def own(element: etree._Element, name: str, value: str) -> None:
    """An attribute of this package's own, which other readers pass over."""
    element.set(f"{{{CUSTOM}}}{name}", value)


def pose(parent: etree._Element, placement: Pose, relative_to: str = "") -> None:
    """``<pose>``, unless it says nothing."""
    angles = rpy_of(placement.rotation)
    if relative_to or any(placement.xyz) or any(angles):
        element = add_text(parent, "pose", numbers((*placement.xyz, *angles)))
        if relative_to:
            element.set("relative_to", relative_to)


def dynamics(axis: etree._Element, record: Joint | Loop, reference: float) -> None:
    """``<dynamics>`` of an axis, unless nothing acts on it; the spring rests at ``reference``."""
    if has_dynamics(record):
        element = etree.SubElement(axis, "dynamics")
        write_contents(element, DYNAMICS, replace(record, reference=reference))
