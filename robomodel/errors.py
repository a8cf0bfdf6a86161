"""Errors and warnings: the location in the file, the fault, and the remedy."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat, TypeVar

if TYPE_CHECKING:
    from robomodel.description import Description

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """The location of an element of a description: file (or ``<text>``), line and name."""

    file: str = "<description>"
    line: int | None = None
    element: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.element}" if self.element else place


NOWHERE = Source()


class DescriptionError(ValueError):
    """A robot description that cannot be read, or that describes no mechanism.

    ``str(error)`` is one line, ``file:line: element: what is wrong and what to do``.

    Attributes:
        message: What is wrong and what to do.
        file: The file, or ``<text>`` for a description without a file.
        line: The line of the element, counted from 1; None if it has none.
        element: The element, as in ``joint 'knee'``.
        description: What :func:`robomodel.load` has read, if that can be read but not built.
    """

    def __init__(self, message: str, source: Source | None = None) -> None:
        self.source = source or NOWHERE
        self.message = message
        self.description: Description | None = None
        super().__init__(f"{self.source}: {message}")

    def __reduce__(self) -> tuple[type[DescriptionError], tuple[str, Source]]:
        return type(self), (self.message, self.source)

    @property
    def file(self) -> str:
        """The file, or ``<text>`` for a description without a file."""
        return self.source.file

    @property
    def line(self) -> int | None:
        """The line of the element, counted from 1; None if it has none."""
        return self.source.line

    @property
    def element(self) -> str:
        """The element, as in ``joint 'knee'``."""
        return self.source.element


class DescriptionWarning(UserWarning):
    """Something suspicious in a description; refused under ``rm.load(..., strict=True)``.

    ``str(warning)`` is one line.

    Attributes:
        source: File, line and element.
        message: What is suspicious.
        issues: What is suspicious at each of several places, if the warning is of several.
    """

    def __init__(
        self, message: str, source: Source | None = None, issues: Sequence[Issue] = ()
    ) -> None:
        self.source = source or NOWHERE
        self.message = message
        self.issues = tuple(issues) or (Issue(message, self.source),)
        super().__init__(message if source is None else f"{source}: {message}")


class ClosureError(ValueError):
    """Loops of a cluster do not close.

    Attributes:
        residual: The gap that remains.
        loops: Their names.
    """

    def __init__(self, message: str, residual: float, loops: tuple[str, ...] = ()) -> None:
        self.residual = residual
        self.loops = loops
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ClosureError], tuple[str, float, tuple[str, ...]]]:
        return type(self), (str(self), self.residual, self.loops)


class UnknownNameError(KeyError, ValueError):
    """A name of a link, joint, parameter or the like that the model does not have.

    It is a ValueError, as other wrong arguments are, and a KeyError, as a missing name is.

    Attributes:
        message: The unknown name, and the nearest of the model's where there is one.
    """

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        """The unknown name, and the nearest of the model's where there is one."""
        return str(self.args[0])


def check_names(
    names: Iterable[str],
    valid: Collection[str],
    before: str = "",
    after: str = "",
    *,
    error: type[ValueError] = ValueError,
) -> None:
    """Raise for the first name that is not valid, with text before and after it."""
    for name in names:
        if name not in valid:
            raise error(f"{before}'{name}'{after}{did_you_mean(name, valid)}")


def as_names(names: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Names as a tuple; a single one need not be in a list. Raises TypeError for other types."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise TypeError(f"{what} is a name, or several, not {names!r}")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str):
            raise TypeError(f"{what} is a name, or several, not {name!r}")
    return result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C amid work that has parts.

    Attributes:
        done: How far it was, "7 of 16 checks".
        known: The results so far.
    """

    def __init__(self, done: str, known: object) -> None:
        super().__init__(done)
        self.done = done
        self.known = known


class MissingPackageError(ImportError):
    """An optional package that is not installed: ``str(error)`` says for what, and how to get it.

    ``purpose``: as in "pictures need"; ``package`` is installed with this ``extra`` of robomodel.
    ``source``: the element of the description that asks for it, if one does.
    """

    def __init__(
        self, purpose: str, package: str, extra: str, source: Source | None = None
    ) -> None:
        self.source = source or NOWHERE
        self.message = f"{purpose} {package}: {_install(package, extra)}"
        super().__init__(self.message if source is None else f"{source}: {self.message}")


def _install(package: str, extra: str) -> str:
    """The command that installs what an extra has, wherever robomodel itself came from."""
    from importlib import metadata

    try:
        lines = metadata.requires("robomodel") or []
    except metadata.PackageNotFoundError:
        lines = []
    marked = [re.fullmatch(r"([^;]+?)\s*;.*extra == ['\"]([\w-]+)['\"].*", line) for line in lines]
    needs: dict[str, list[str]] = {}
    for match in filter(None, marked):
        needs.setdefault(match[2], []).append(match[1])
    needed = [
        each
        for need in needs.get(extra, [])
        for each in (needs.get(need[len("robomodel[") : -1], []) if "[" in need else [need])
    ]
    quoted = (f"'{each}'" if re.search("[^\\w.-]", each) else each for each in needed or [package])
    return f"pip install {' '.join(dict.fromkeys(quoted))}"


_SYNONYMS = {  # what other formats and catalogues call it
    "gear": "ratio",
    "gear_ratio": "ratio",
    "gearing": "ratio",
    "reduction": "ratio",
    "mechanicalreduction": "ratio",
    "mechanical_reduction": "ratio",
    "rotor_inertia": "inertia",
    "motorinertia": "inertia",
}


def as_real(value: SupportsFloat, what: str) -> float:
    """A number as a float, finite or not; raises TypeError for anything else."""
    several = getattr(value, "shape", ()) != ()
    if several or not isinstance(value, SupportsFloat) or isinstance(value, str):
        raise TypeError(f"{what} must be a number, got {value!r}")
    return float(value)


def as_flag(value: object, what: str) -> bool:
    """True or False; raises TypeError for anything else."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, bool) or (kind == "b" and getattr(value, "shape", None) == ()):
        return bool(value)
    raise TypeError(f"{what} is True or False, not {value!r}")


def no_model(value: object) -> TypeError:
    """The error to raise if an argument should be a model and is not."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        text = repr(path[:60])
        return TypeError(f"a Model is needed, not the text {text}; load it first: rm.load({text})")
    kind = "None" if value is None else f"an object of {type(value).__name__}"
    return TypeError(f"a Model is needed, not {kind}; rm.load(path) loads one")


def check_positional(name: str, signature: inspect.Signature, arguments: Sequence[object]) -> None:
    """Raise a TypeError that names the keywords, if there are too many arguments by position."""
    parameters = signature.parameters.values()
    places = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(arguments) > len(places) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        keywords = [f"{p.name}=" for p in parameters if p.kind is p.KEYWORD_ONLY]
        more = ", …" if len(keywords) > 4 else ""
        follow = f"; name those that follow: {', '.join(keywords[:4])}{more}" if keywords else ""
        raise TypeError(
            f"{name}() takes {len(places)} positional arguments but {len(arguments)} were given, "
            f"({', '.join(places)}) by position"
            f"{follow}"
        )


class Named(dict[str, T]):
    """Values by name; a missing name raises an UnknownNameError with the nearest one.

    ``what``: the kind of names, such as "joint".
    """

    def __init__(self, values: Mapping[str, T], what: str) -> None:
        super().__init__(values)
        self.what = what

    def __reduce__(self) -> tuple[type[Named[T]], tuple[dict[str, T], str]]:
        return type(self), (dict(self), self.what)

    def __missing__(self, name: object) -> T:
        raise UnknownNameError(f"no {self.what} '{name}'{did_you_mean(name, self)}")


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest valid one, or nothing."""
    if not isinstance(name, str):
        return "; names are text"
    import difflib

    valid = list(valid)
    if (meant := _SYNONYMS.get(name.lower())) in valid:
        return f"; did you mean '{meant}'?"
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def few(names: Sequence[str], most: int = 4) -> str:
    """The first few names of many, and the number of the others."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def argument(name: str, value: object = None, of: str = "") -> str:
    """An argument in a message: ``tolerance=0.002`` in Python, an option on the command line.

    Without a value, the argument's name alone: ``tolerance=``. ``of`` is the function that takes
    it, where the message does not say so.
    """
    return _WRITTEN.get()(name, value, of)


@contextmanager
def arguments_written(by: Callable[[str, object, str], str]) -> Iterator[None]:
    """Within the context, messages write their arguments by this function of name, value and of."""
    token = _WRITTEN.set(by)
    try:
        yield
    finally:
        _WRITTEN.reset(token)


def _in_python(name: str, value: object, of: str) -> str:
    given = "" if value is None else f"{value:g}" if isinstance(value, float) else repr(value)
    return f"{of}(…, {name}={given})" if of else f"{name}={given}"


_WRITTEN: ContextVar[Callable[[str, object, str], str]] = ContextVar("written", default=_in_python)


@dataclass(frozen=True, slots=True)
class Issue:
    """Something suspicious at ``source``, as a file often has it in forty places at once.

    Issues of one ``kind`` (by default, of one message) give one warning.
    """

    message: str
    source: Source
    kind: str = ""


def warn_of_all(issues: Iterable[Issue], *, strict: bool) -> list[Issue]:
    """Warn once of each kind of issue: the first in full, where the next few are, how many more.

    Returns the issues.
    """
    given: list[Issue] = []
    kinds: dict[str, list[Issue]] = {}
    for issue in issues:
        kinds.setdefault(issue.kind or issue.message, []).append(issue)
    for first, *others in kinds.values():
        likewise = ", ".join(_beside(issue.source, first.source) for issue in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        message = f"{first.message}; likewise {likewise}{more}" if others else first.message
        given += warn_at(message, first.source, strict=strict, issues=(first, *others))
    return given


_NAMED = 4


def _beside(source: Source, first: Source) -> str:
    """A location in as few words as needed beside another one."""
    if source.line is None:
        return source.element
    line = f"line {source.line}" if source.file == first.file else f"{source.file}:{source.line}"
    return f"{source.element} ({line})"


def warn_at(
    message: str, source: Source, *, strict: bool, issues: Sequence[Issue] = ()
) -> tuple[Issue, ...]:
    """Warn of something suspicious at ``source``; raise it if ``strict``. Returns the issues.

    ``issues``: what is suspicious at each place, if the message is of several.
    """
    if strict:
        raise DescriptionError(message, source)
    warning = DescriptionWarning(message, source, issues)
    warn(warning)
    return warning.issues


def warn(warning: Warning) -> None:
    """Warn with the location of the line that called robomodel.

    Python's warning filters and tracebacks then name the user's code.
    """
    level = 1
    frame = sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
        level += 1
    warnings.warn(warning, stacklevel=level)
