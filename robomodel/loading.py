"""Loading: from a robot file to a model."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel import parsers
from robomodel.model import Model, build


def load(
    source: object,
    *,
    floating_base: bool | None = None,
    independent: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - the interface's name
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Model:
    """Load a robot: a URDF or URDF+ file, its text or bytes, or an open file.

    ``floating_base``: True adds a free joint above the root link, False fixes a root that floats,
    None follows the file. ``independent``: names of the joints that shall be the independent
    coordinates of their clusters, overriding the file. ``format``: the file's format where its
    root element shall not decide. ``gravity``: acceleration of free fall (default 0 0 -9.81).

    Raises :class:`robomodel.DescriptionError` with file, line, element and remedy; suspicions are
    :class:`robomodel.DescriptionWarning`, refused under ``strict``. Nothing but the named file is
    read.
    """
    description = parsers.read(source, format=format, strict=strict)
    return build(
        description,
        floating_base=floating_base,
        independent=independent,
        gravity=gravity,
        strict=strict,
    )
