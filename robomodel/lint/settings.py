"""Settings of ``lint``: the command line's over those of ``[tool.robomodel]`` in pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal, get_args

from robomodel.errors import as_flag, did_you_mean
from robomodel.lint.checks import CHECKS
from robomodel.reports.document import SEVERITIES, Severity

TextFormat = Literal["text", "json", "sarif", "junit", "github"]
FORMATS: tuple[TextFormat, ...] = get_args(TextFormat)

_LISTS = ("select", "ignore", "exclude", "resources")
_OF_FILES = ("extend", "reference", "xacro", "skip")


class SettingsError(ValueError):
    """A setting that is not known, or has another type."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings for files whose path matches a pattern: arguments of :func:`robomodel.load`."""

    pattern: str
    extend: tuple[str, ...] = ()
    reference: str = ""
    xacro: Mapping[str, str] = field(default_factory=dict)
    skip: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings: which files and checks, and how findings are reported.

    Attributes:
        root: The repository's folder, to which paths are relative.
        select: Ids of the only checks to report; all if empty.
        ignore: Ids of checks that are not reported.
        exclude: Patterns of paths below the root that are not looked at.
        resources: Folders of packages, or that hold some.
        fail_on: The least severity of findings that fail.
        format: The form of the report.
        baseline: A file with known findings.
        jobs: Number of processes; 0 is one for each core.
        xacro: Arguments of all xacro files that declare them.
        files: Settings of single files.
    """

    root: Path
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    fail_on: Severity = "warning"
    format: TextFormat = "text"
    baseline: Path | None = None
    jobs: int = 0
    xacro: Mapping[str, str] = field(default_factory=dict)
    files: tuple[FileSettings, ...] = ()

    def shows(self, check: str) -> bool:
        """True if findings of a check are reported."""
        return (not self.select or check in self.select) and check not in self.ignore

    def of_file(self, path: Path) -> FileSettings:
        """The settings of a file: of the last pattern that its path below the root matches."""
        place = os.path.relpath(path, self.root).replace(os.sep, "/")
        matching = [each for each in self.files if fnmatch(place, each.pattern)]
        return matching[-1] if matching else FileSettings("")


def load_settings(paths: Sequence[Path]) -> Settings:
    """The settings that hold for these paths: of the nearest pyproject.toml above all of them."""
    resolved = [str(path.resolve()) for path in paths] or [os.getcwd()]
    above = Path(os.path.commonpath(resolved))
    start = above if above.is_dir() else above.parent
    repository: Path | None = None
    for folder in (start, *start.parents):
        if (found := _table(folder / "pyproject.toml")) is not None:
            return _settings(folder, found)
        if (folder / ".git").exists():
            repository = folder
            break
    here = Path.cwd()
    return Settings(repository or (here if start.is_relative_to(here) else start))


def _table(path: Path) -> Mapping[str, Any] | None:
    """The table ``[tool.robomodel]`` of a file; None if it has none."""
    if not path.is_file():
        return None
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error
    table = data.get("tool", {}).get("robomodel")
    if table is not None and not isinstance(table, Mapping):
        raise SettingsError(f"{path}: [tool.robomodel] is a table")
    return table


def _settings(root: Path, table: Mapping[str, Any]) -> Settings:
    where = f"{root / 'pyproject.toml'}: [tool.robomodel]"
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = name.replace("-", "_")
        match key:
            case "select" | "ignore" | "exclude" | "resources":
                values[key] = _texts(value, f"{where} {name}")
            case "fail_on":
                values[key] = _one_of(value, SEVERITIES, f"{where} {name}")
            case "format":
                values[key] = _one_of(value, FORMATS, f"{where} {name}")
            case "baseline":
                values[key] = root / _text(value, f"{where} {name}")
            case "jobs":
                if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                    raise SettingsError(f"{where} {name} is a whole number, not {value!r}")
                values[key] = value
            case "xacro":
                values[key] = _arguments(value, f"{where} {name}")
            case "files":
                if not isinstance(value, Mapping):
                    raise SettingsError(f"{where} {name} is a table of patterns")
                values[key] = tuple(
                    _of_file(pattern, each, f"{where} files.'{pattern}'")
                    for pattern, each in value.items()
                )
            case _:
                known = [*_LISTS, "fail-on", "format", "baseline", "jobs", "xacro", "files"]
                raise SettingsError(f"{where} has no '{name}'{did_you_mean(name, known)}")
    check_ids((*values.get("select", ()), *values.get("ignore", ())), where)
    return Settings(root, **values)


def check_ids(ids: Iterable[str], where: str) -> None:
    """Raise SettingsError for the first id that no check has."""
    for each in ids:
        if each not in CHECKS:
            raise SettingsError(f"{where}: there is no check '{each}'{did_you_mean(each, CHECKS)}")


def _of_file(pattern: str, table: object, where: str) -> FileSettings:
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is a table")
    values: dict[str, Any] = {}
    for name, value in table.items():
        match name:
            case "extend":
                values[name] = _texts([value] if isinstance(value, str) else value, where)
            case "reference":
                values[name] = _text(value, f"{where} {name}")
            case "xacro":
                values[name] = _arguments(value, f"{where} {name}")
            case "skip":
                try:
                    values[name] = as_flag(value, name)
                except TypeError as error:
                    raise SettingsError(f"{where} {error}") from None
            case _:
                raise SettingsError(f"{where} has no '{name}'{did_you_mean(name, _OF_FILES)}")
    return FileSettings(pattern, **values)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{where} is a text, not {value!r}")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{where} is a list of texts, not {value!r}")
    return tuple(value)


def _arguments(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where} is a table of arguments")
    return {
        str(name): str(each).lower() if isinstance(each, bool) else str(each)
        for name, each in value.items()
    }


def _one_of(value: object, valid: Sequence[str], where: str) -> str:
    if value not in valid:
        raise SettingsError(f"{where} is one of {', '.join(valid)}, not {value!r}")
    return str(value)
