"""Writers of robot files: what a model's description says, in one format or another.

Each format's module has one function, from a description to the file's text and a list of what the
format cannot say of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from robomodel.description import Description
from robomodel.errors import DescriptionError
from robomodel.model import Model

__all__ = ["write_mjcf", "write_sdf", "write_urdf"]


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def write_urdf(
    model: Model, path: object, *, approximate: bool = False, drop: bool = False
) -> tuple[str, ...]:
    """Write a model as URDF, in the words of URDF+ where URDF has none.

    ``path``: a path, which is replaced as a whole or not at all, or an open text file. Written is
    the model as it is: options of :func:`robomodel.load` are part of it. A robot that needs none of
    URDF+ is a file that every reader of URDF reads. ``approximate``: an open tree for readers
    without loops and couplings, what they lock lumped into what moves, rotors as ``armature``; see
    :func:`robomodel.model.approximate.approximate`.

    Raises :class:`robomodel.DescriptionError` naming what the format cannot say, before anything is
    written; with ``drop`` the file is written without, and the list is returned.
    """
    return _write("URDF", "urdf", _said(model, approximate), path, drop)


def write_sdf(
    model: Model, path: object, *, approximate: bool = False, drop: bool = False
) -> tuple[str, ...]:
    """Write a model as SDF; arguments, result and errors as of :func:`write_urdf`."""
    return _write("SDF", "sdf", _said(model, approximate), path, drop)


def write_mjcf(
    model: Model, path: object, *, approximate: bool = False, drop: bool = False
) -> tuple[str, ...]:
    """Write a model as MJCF, for MuJoCo; arguments, result and errors as of :func:`write_urdf`."""
    return _write("MJCF", "mjcf", _said(model, approximate), path, drop)


def _said(model: Model, approximate: bool) -> Description:
    """The description to write."""
    if not approximate:
        return model.description
    from robomodel.model import approximate as open_trees

    return open_trees.approximate(model)


def _write(
    title: str, name: str, description: Description, path: object, drop: bool
) -> tuple[str, ...]:
    module = import_module(f"robomodel.writers.{name}")
    to_text = cast(Callable[[Description], tuple[str, list[str]]], getattr(module, f"to_{name}"))
    text, lost = to_text(description)
    if lost and not drop:
        raise DescriptionError(
            f"{title} cannot say: {'; '.join(lost)} (drop=True writes the file without)",
            description.source,
        )
    if hasattr(path, "write"):
        cast(_Writable, path).write(text)
    elif isinstance(path, str | os.PathLike):
        _replace(os.path.realpath(os.fsdecode(path)), text)
    else:
        raise TypeError(
            f"a robot is written to a path or an open text file, not to {type(path).__name__}"
        )
    return tuple(lost)


def _replace(path: str, text: str) -> None:
    """Write a file as a whole: nobody ever sees half of it, and a failure leaves the old one."""
    if os.path.exists(path) and not os.path.isfile(path):  # a terminal or a pipe
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    beside = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.urandom(4).hex()}")
    try:
        with open(beside, "x", encoding="utf-8") as stream:
            stream.write(text)
        if os.path.exists(path):
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise
