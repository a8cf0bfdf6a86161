"""Files that belong to a robot, opened as untrusted: plain files, in their folder, of bounded size.

Files to which a description refers, included files and meshes, are read by :func:`contents`. A
robot's file and its extensions, which the user names, are read by :func:`named`. The folders of
``package://NAME`` and ``model://NAME`` are resolved only as the user asks (:class:`Resources`): in
folders, or in those of ROS's and Gazebo's environment variables.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from robomodel.errors import DescriptionError, Source

STAGES = (".usd", ".usda", ".usdc", ".usdz")
"""Suffixes of USD files."""
BETWEEN = "#"
"""Separates a USD file and the path of a prim in it, in names of meshes."""
LFS = b"version https://git-lfs.github.com/spec"
"""First bytes of a Git LFS pointer, which a checkout contains for a file not fetched."""
LFS_POINTER = "a pointer of Git LFS instead of the file; fetch it by 'git lfs pull'"
MAX_MESH_BYTES = 128 * 2**20
"""Limit of the size of a mesh; public repositories contain files up to 100 MB."""
MAX_ALL_BYTES = 2**30
"""Limit of the total size of the meshes of a robot."""
MAX_CLIMB = 4
"""Number of folders that a path may lead up: packages write ``../../meshes``."""
MAX_FILES = 10_000
"""Limit of the number of meshes of a robot, repeated ones counted each time."""

_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # a pipe is told by opening it, not waited for
    _FLAGS |= getattr(os, _name, 0)


_CONFINED: ContextVar[tuple[str, ...]] = ContextVar("folders that may be read", default=())


@contextmanager
def confined(*folders: str) -> Iterator[None]:
    """Let no file be read but those in these folders, symbolic links followed."""
    token = _CONFINED.set(tuple(map(os.path.realpath, folders)))
    try:
        yield
    finally:
        _CONFINED.reset(token)


def is_confined() -> bool:
    """True if files may be read in some folders only."""
    return bool(_CONFINED.get())


def may_be_read(path: str | os.PathLike[str]) -> bool:
    """True unless files are :func:`confined` to other folders."""
    real, folders = os.path.realpath(path), _CONFINED.get()
    return not folders or any(is_within(real, folder) for folder in folders)


@dataclass(slots=True)
class Allowance:
    """The number and size of files that may still be read for one robot."""

    bytes: int = MAX_ALL_BYTES
    files: int = MAX_FILES

    def spend(self, size: int, what: str, source: Source) -> None:
        """Subtract a file of this size; raises if the limits are exceeded."""
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
    """The content of a plain file; ``what`` and ``source`` are for the errors.

    ``within``: folders of which one must contain it, symbolic links followed; empty: anywhere.
    Raises FileNotFoundError if it does not exist, else DescriptionError.
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
    """The content of a file or pipe that the user names, or one byte more than ``most``.

    Raises OSError as open() does, and DescriptionError for endless files or pipes without a writer.
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
    """The number of folders that a relative path leads up."""
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
    """True if a path is this folder or below it; both without symbolic links."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _read(path: str, most: int, *, pipes: bool = False) -> bytes | None:
    """At most one byte more than ``most``; None for what is not a plain file."""
    if not may_be_read(path):
        raise DescriptionError("this is not in the folder that may be read", Source(path))
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
    """True if a path is a terminal or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def folder_of(path: str) -> str:
    """The folder in which a file is to be written, which must exist."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"'{path}' cannot be written: there is no folder '{folder}'")
    return folder


def replace_file(path: str, text: str) -> None:
    """Write a file atomically: readers see the old or the new file, also after a failure."""
    if is_no_file(path):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    beside = os.path.join(folder_of(path), f".{os.path.basename(path)}.{os.urandom(4).hex()}")
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


# ---- packages ------------------------------------------------------------------------------------


VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH")
"""Environment variables that may be named, each a list of folders."""

SCHEMES = ("package", "model")

_URI = re.compile(rf"(?:{'|'.join(SCHEMES)})://([^/]+)/*(.*)", re.DOTALL)
_MARKS = ("package.xml", "model.config")  # what makes a folder a package

Folder = str | os.PathLike[str]
Entry = Folder | Mapping[str, Folder]
Entries = Entry | Iterable[Entry]


@dataclass(frozen=True, slots=True)
class Resources:
    """Packages by name, and folders that hold packages."""

    packages: Mapping[str, Path] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    cache: dict[str, Path | None] = field(default_factory=dict)

    @staticmethod
    def of(entries: Entries | None) -> Resources:
        """From what a user gives: folders by package name, or folders and names of variables.

        A folder is a package, or holds packages, as do the folders of ``VARIABLES``. Raises
        FileNotFoundError for a folder that is not there, ValueError for a variable that is not set.
        """
        if entries is None:
            return Resources()
        if isinstance(entries, str | os.PathLike | Mapping):
            entries = [entries]
        packages: dict[str, Path] = {}
        folders: list[Path] = []
        for entry in entries:
            if isinstance(entry, Mapping):
                packages |= {name: _folder(path) for name, path in entry.items()}
            elif entry in VARIABLES:
                folders += _variable(str(entry))
            else:
                folders.append(_folder(entry))
        return Resources(packages, tuple(folders))

    def find(self, name: str) -> Path | None:
        """The folder of a package; None if it is not found."""
        if name in ("", ".", "..") or "\0" in name or os.sep in name:
            return None
        if name in self.packages:
            return self.packages[name]
        if name not in self.cache:
            self.cache[name] = self._search(name)
        return self.cache[name]

    def _search(self, name: str) -> Path | None:
        for folder in self.folders:
            for path in (folder / name, folder / "share" / name):  # ROS 2 installs into share
                if path.is_dir():
                    return path
            if folder.name == name:
                return folder
        return next((path for folder in self.folders for path in _below(folder, name)), None)


def _folder(path: Folder) -> Path:
    folder = Path(os.path.abspath(os.fspath(path)))
    if not folder.is_dir():
        raise FileNotFoundError(2, "resources: no such folder", os.fspath(path))
    return folder


def _variable(name: str) -> list[Path]:
    """The existing folders of an environment variable."""
    if (value := os.environ.get(name)) is None:
        raise ValueError(f"resources: the environment has no {name}; source ROS's setup, or name")
    entries = (Path(os.path.abspath(entry)) for entry in value.split(os.pathsep) if entry)
    return [entry for entry in entries if entry.is_dir()]


def _below(folder: Path, name: str) -> Iterable[Path]:
    """Packages of this name further down, as in the sources of a workspace."""
    looked, level = 0, [folder]
    for _ in range(5):  # levels of folders
        deeper: list[Path] = []
        for each in level:
            looked += 1
            if looked > 20_000:  # folders that are looked at for one package
                return
            if each.name == name and any((each / mark).is_file() for mark in _MARKS):
                yield each
            try:
                with os.scandir(each) as entries:
                    deeper += sorted(
                        Path(entry)
                        for entry in entries
                        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
                    )
            except OSError:
                continue  # a folder that may not be read holds nothing for us
        level = deeper


def package_path(uri: str) -> tuple[str, str] | None:
    """The package and the path in it of a URI; None for other names."""
    match = _URI.fullmatch(uri)
    return (match[1], match[2]) if match else None
