"""What the shell completes: robots, and the names of their joints and links."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Callable

import typer

from robomodel import parsers
from robomodel import robots as shipped
from robomodel.description import Description
from robomodel.description.stages import SUFFIXES as STAGES

SUFFIXES = (".urdf", ".sdf", ".world", ".xml", ".mjcf", ".xacro", *STAGES)


def robots(incomplete: str) -> list[str]:
    """Shipped robots, robot files, and folders where some may be."""
    names = [name for name in shipped.names() if name.startswith(incomplete)]
    paths = sorted(glob.glob(glob.escape(incomplete) + "*"))
    files = [path for path in paths if path.endswith(SUFFIXES)]
    return names + files + [f"{path}{os.sep}" for path in paths if os.path.isdir(path)]


def joints(ending: str = "") -> Callable[[typer.Context, str], list[str]]:
    """Completes joints that move, of the robot that the command line names before."""
    return _names(lambda robot: [j.name for j in robot.joints if j.type != "fixed"], ending)


def links() -> Callable[[typer.Context, str], list[str]]:
    """Completes links of that robot."""
    return _names(lambda robot: [link.name for link in robot.links])


def _second_word() -> str:
    """The word after the command, where an option without its value ends what is parsed.

    The shells' scripts hand over the whole line, in one of these variables.
    """
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = [word for word in line.split()[2:] if not word.startswith("-")]
    return words[0] if words else ""


def _names(
    of: Callable[[Description], list[str]], ending: str = ""
) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        file = ctx.params.get("file") or _second_word()
        path = shipped.path(file) if file in shipped.names() and not os.path.isfile(file) else file
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                candidates = of(parsers.read(path))
        except (OSError, ValueError, ImportError):
            return []  # a shell has no place for errors
        return [f"{name}{ending}" for name in candidates if name.startswith(incomplete)]

    return complete
