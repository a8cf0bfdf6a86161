"""Loading: from a robot file to a model."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel import parsers
from robomodel.model import Model, build


def load(
    source: object,
    *,
    extend: object = None,
    floating_base: bool | None = None,
    independent: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - the interface's name
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Model:
    """Load a robot: a URDF or URDF+ file, its text or bytes, or an open file.

    ``extend``: one further source, or a list of them, whose rotors, loops, couplings and joint
    attributes are merged into the robot, so that a stock file stays untouched: new links, joints,
    loops and couplings are added; a ``<joint>`` of a known name takes the limits, mimic, dynamics,
    initial position and independence given, a ``<link>`` of a known name the inertial.
    ``floating_base``: True adds a free joint above the root link, False fixes a root that floats,
    None follows the file. ``independent``: names of the joints that shall be the independent
    coordinates of their clusters, overriding the file. ``format``: the file's format where its
    root element shall not decide. ``gravity``: acceleration of free fall (default 0 0 -9.81).

    Raises :class:`robomodel.DescriptionError` with file, line, element and remedy; suspicions are
    :class:`robomodel.DescriptionWarning`, refused under ``strict``. Nothing but the named files
    is read.
    """
    description = parsers.read(source, extend=extend, format=format, strict=strict)
    return build(
        description,
        floating_base=floating_base,
        independent=independent,
        gravity=gravity,
        strict=strict,
    )
