"""Sensors: no part of dynamics, and of no word in other formats, but noted by name."""

from __future__ import annotations

from collections.abc import Iterator

from robomodel.description import Sensor
from robomodel.parsers.xml import Document, Element


def named_sensors(document: Document, element: Element) -> Iterator[Sensor]:
    """What ``<sensor name type>`` of URDF, Gazebo and SDF say, within an element."""
    for each in element.iter("sensor"):
        name = each.get("name", "")
        label = f"sensor '{name}'" if name else "<sensor>"
        yield Sensor(name, each.get("type", ""), document.source(each, label))
