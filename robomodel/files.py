"""Files that belong to a robot, opened as what comes from anyone: plain, in their folder, bounded.

Whatever a description names goes through :func:`contents`: files that it includes, and its meshes.
A robot's file and its extensions, which the user names, go through :func:`named`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from robomodel.errors import DescriptionError, Source

MAX_MESH_BYTES = 128 * 2**20
"""The largest mesh that is read; public repositories hold files up to 100 MB."""
MAX_ALL_BYTES = 2**30
"""The most that is read of all meshes of a robot together."""
MAX_CLIMB = 4
"""How many folders up from a file's own a path in it may lead: packages write ``../../meshes``."""
MAX_FILES = 10_000
"""The most meshes that are read of a robot, repeated ones counted each time."""

_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # a pipe is told by opening it, not waited for
    _FLAGS |= getattr(os, _name, 0)


@dataclass(slots=True)
class Allowance:
    """How much may still be read of the files that one robot names."""

    bytes: int = MAX_ALL_BYTES
    files: int = MAX_FILES

    def spend(self, size: int, what: str, source: Source) -> None:
        """Take a file of this size off; refuse one too many."""
        self.bytes -= size
        self.files -= 1
        if self.bytes < 0 or self.files < 0:
            raise DescriptionError(
                f"{what} is one too many: at most {MAX_FILES} mesh files are read of a robot, and "
                f"{MAX_ALL_BYTES // 2**20} MiB in all; simplify its meshes",
                source,
            )


def contents(
    path: str, what: str, source: Source, *, most: int, within: Iterable[str] = ()
) -> bytes:
    """All of a plain file; ``what`` and ``source`` are for the errors.

    ``within``: folders of which it must be in one, symbolic links followed; none: anywhere.
    Raises FileNotFoundError if it is not there, else DescriptionError.
    """
    folders = tuple(within)
    try:
        real = os.path.realpath(path)
        if folders and not any(is_within(real, os.path.realpath(folder)) for folder in folders):
            raise DescriptionError(
                f"{what} is not read: it leads out of the folder {folders[0]} by a symbolic link",
                source,
            )
        data = _read(real, most)
    except (FileNotFoundError, DescriptionError):
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DescriptionError(f"{what} cannot be read: {path}: {reason}", source) from error
    if data is None:
        raise DescriptionError(f"{what} is not a plain file", source)
    if len(data) > most:
        raise DescriptionError(f"{what} is larger than {most / 2**20:g} MiB", source)
    return data


def named(path: str, most: int) -> bytes:
    """All of a file that the user names, or one byte more than ``most``; or what is piped into it.

    Raises OSError as open() does, and DescriptionError for what has no end, or no writer.
    """
    data = _read(path, most, pipes=True)
    if data is None and os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if data is None:
        raise DescriptionError(
            "this is neither a plain file nor a pipe that something writes to", Source(path)
        )
    return data


def climb_of(path: str) -> int:
    """How many folders up a relative path leads."""
    return os.path.normpath(path).split(os.sep).count(os.pardir)


def top_folder(folder: str, path: str, most: int = MAX_CLIMB, least: int = 0) -> str:
    """The folder that a path in ``folder`` may not leave: as far above as it climbs.

    That is at least ``least`` and at most ``most`` folders, and never the one that holds all.
    """
    for _ in range(min(max(climb_of(path), least), most)):
        above = os.path.dirname(folder)
        folder = folder if os.path.dirname(above) == above else above
    return folder


def is_within(path: str, folder: str) -> bool:
    """Whether a path is this folder or below it; both without symbolic links."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _read(path: str, most: int, *, pipes: bool = False) -> bytes | None:
    """At most one byte more than ``most``; None for what is not a plain file."""
    descriptor = os.open(path, _FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        first = b""
        if pipes and stat.S_ISFIFO(mode):
            try:
                first = os.read(descriptor, 1)
            except BlockingIOError:
                pass  # there is a writer, which has not written yet
            else:
                if not first:
                    return None
            os.set_blocking(descriptor, True)
        elif not stat.S_ISREG(mode):
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            return first + stream.read(most + 1 - len(first))
    finally:
        os.close(descriptor)


def is_no_file(path: str) -> bool:
    """A terminal or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def replace_file(path: str, text: str) -> None:
    """Write a file as a whole: nobody ever sees half of it, and a failure leaves the old one."""
    if is_no_file(path):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"'{path}' cannot be written: there is no folder '{folder}'")
    beside = os.path.join(folder, f".{os.path.basename(path)}.{os.urandom(4).hex()}")
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
