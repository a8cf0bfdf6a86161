"""Folders in which packages are looked for: what ``package://NAME`` and ``model://NAME`` mean.

Packages are looked for only where the user asks for it: in folders, or in those of ROS's and
Gazebo's environment variables if these are named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from robomodel.description import Description, Shape

VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH")
"""The environment variables that may be named, each a list of folders."""

SCHEMES = ("package", "model")

_URI = re.compile(rf"(?:{'|'.join(SCHEMES)})://([^/]+)/*(.*)", re.DOTALL)
_MARKS = ("package.xml", "model.config")  # what makes a folder a package
_DEPTH = 5
_MOST = 20_000  # folders that are looked at for one package

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
        """The folder of a package, if there is one."""
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
    """The folders of an environment variable that are there."""
    if (value := os.environ.get(name)) is None:
        raise ValueError(f"resources: the environment has no {name}; source ROS's setup, or name")
    entries = (Path(os.path.abspath(entry)) for entry in value.split(os.pathsep) if entry)
    return [entry for entry in entries if entry.is_dir()]


def _below(folder: Path, name: str) -> Iterable[Path]:
    """Packages of this name further down, as in the sources of a workspace."""
    looked, level = 0, [folder]
    for _ in range(_DEPTH):
        deeper: list[Path] = []
        for each in level:
            looked += 1
            if looked > _MOST:
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


def split(uri: str) -> tuple[str, str] | None:
    """The package and the path in it that a URI names; None for other names."""
    match = _URI.fullmatch(uri)
    return (match[1], match[2]) if match else None


def with_packages(description: Description, resources: Resources) -> Description:
    """The description with its meshes' packages, as far as these are found."""

    def of(shape: Shape) -> Shape:
        names = split(shape.file or "")
        folder = resources.find(names[0]) if names else None
        return shape if folder is None else replace(shape, package=str(folder))

    if not resources.packages and not resources.folders:
        return description
    links = (replace(link, shapes=tuple(map(of, link.shapes))) for link in description.links)
    return replace(description, links=tuple(links))
