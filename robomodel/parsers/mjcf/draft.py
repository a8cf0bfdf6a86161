"""The MJCF document that grows: its sections, the names that are taken, what it could not say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from lxml import etree

from robomodel.parsers.schema import add
from robomodel.text import Names

_SECTIONS = ("default", "asset", "worldbody", "tendon", "equality", "actuator", "custom")


@dataclass
class Draft:
    """A document. ``bodies`` are the elements of links, ``refs`` joints' initial positions."""

    name: str
    lost: list[str] = field(default_factory=list)
    bodies: dict[str, etree._Element] = field(default_factory=dict)
    refs: dict[str, float] = field(default_factory=dict)
    names: dict[str, Names] = field(default_factory=lambda: defaultdict(Names))

    def __post_init__(self) -> None:
        self.root = etree.Element("mujoco", model=self.name)
        add(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        self.option = add(self.root, "option")
        self.sections = {name: add(self.root, name) for name in _SECTIONS}

    def add(self, section: str, tag: str, **words: str) -> etree._Element:
        """A new element in a section."""
        return add(self.sections[section], tag, **words)

    def unused(self, kind: str, name: str) -> str:
        """The name, with a number if an element of this kind has it already; it is taken then."""
        return self.names[kind].fresh(name)

    def text(self) -> str:
        """The document, without empty sections."""
        for section in self.sections.values():
            if not len(section) and section.tag != "worldbody":
                self.root.remove(section)
        text: str = etree.tostring(self.root, pretty_print=True, encoding="unicode")
        return text
