"""What all commands share: options in groups, ``--json``, ``--output``, warnings and errors.

A command is a function that returns an :class:`Answer`. :func:`framed` makes it one of the command
line, so that each takes the same options for the same things, and ends in the same ways.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from robomodel.cli.output import complain, console, print_json
from robomodel.errors import (
    NOWHERE,
    ClosureError,
    DescriptionError,
    DescriptionWarning,
    MissingPackageError,
    Source,
)

if TYPE_CHECKING:
    from rich.console import Console

FITS = 64  # characters beside the names of commands, in 80 columns

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT", help="Write to this file what else is printed."),
]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command has to say.

    ``document`` is for ``--json``, and ``show`` shows it as text; ``output`` is the file for
    either, else they are printed. ``status`` is the exit status, ``complaint`` why it is not 0.
    ``then`` is what goes on when all is said.
    """

    document: Mapping[str, Any]
    show: Callable[[Console], None]
    output: Path | None = None
    status: int = 0
    complaint: str = ""
    then: Callable[[], None] | None = None


class UserError(Exception):
    """What the user should know: the line to print, what it is about, and the exit status."""

    def __init__(self, message: str, status: int = 2, source: Source = NOWHERE) -> None:
        super().__init__(message)
        self.status = status
        self.source = source
        self.warnings: list[str] = []

    @classmethod
    def of(cls, error: Exception, file: str) -> UserError:
        """Of an error that the user of ``file`` can mend."""
        match error:
            case UserError():
                return error
            case DescriptionError():
                return cls(str(error), source=error.source)
            case MissingPackageError() if error.source is not NOWHERE:
                return cls(str(error), source=error.source)
            case OSError():
                return cls(f"{error.filename or file}: {error.strerror or error}")
            case _:
                return cls(f"{file}: {error}")

    def as_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints in place of the command's own."""
        source, message = self.source, str(self)
        found = source is not NOWHERE
        return {
            "error": {
                "message": message.removeprefix(f"{source}: ") if found else message,
                "element": source.element or None,
                "file": source.file if found else None,
                "line": source.line,
            },
            "warnings": self.warnings,
        }


_MENDABLE = (UserError, DescriptionError, ClosureError, ImportError, OSError)


def framed(command: Callable[..., Answer]) -> Callable[..., int]:
    """The command as a function for typer.

    A parameter that is a dataclass becomes the options that are its fields. ``--json`` is added,
    and ``--output`` unless the command has one of its own.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        each.name: each.annotation
        for each in signature.parameters.values()
        if isinstance(each.annotation, type) and dataclasses.is_dataclass(each.annotation)
    }
    options = [each for each in signature.parameters.values() if each.name not in groups]
    for group in groups.values():
        options += inspect.signature(group, eval_str=True).parameters.values()
    options.sort(
        key=lambda each: not (_is_argument(each) and each.name not in signature.parameters)
    )
    own = {each.name for each in options}
    for name, kind, default in (("output", Output, None), ("as_json", AsJson, False)):
        if name not in own:
            options.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
                )
            )

    def run(**given: Any) -> int:
        file, json = given.get("file", "robomodel"), given.pop("as_json")
        output = None if "output" in own else given.pop("output")
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            given[name] = group(**{field: given.pop(field) for field in fields})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DescriptionWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # other packages', for developers
            try:
                answer = command(**given)
                _tell(answer, output or answer.output, _texts(caught) if json else None)
            except BrokenPipeError:
                raise
            except _MENDABLE as error:
                mended = UserError.of(error, file)
                mended.warnings = _texts(caught)
                raise mended from error
            finally:
                for text in _texts(caught):
                    complain(f"warning: {text}")
        if answer.complaint:
            complain(answer.complaint)
        if answer.then is not None:
            answer.then()
        return answer.status

    run.__doc__ = command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in options}
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options]
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    return run


def in_short(text: str) -> str:
    """Of a command's first sentence what fits a line of the list of commands."""
    said = text.partition("\n\n")[0].strip().rstrip(".")
    while len(said) > FITS and (cut := max(said.rfind(mark) for mark in ":;,")) > 0:
        said = said[:cut]
    return said


def _is_argument(parameter: inspect.Parameter) -> bool:
    """Whether it goes without a name; those of groups, as the robot's file, come first."""
    said = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(each, typer.models.ArgumentInfo) for each in said)


def _texts(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(warning.message) for warning in caught]


def _tell(answer: Answer, output: Path | None, warned: list[str] | None) -> None:
    """Print or write the answer: as JSON with these warnings, or as text if they are None."""
    with (
        nullcontext(sys.stdout)
        if output is None
        else output.open("w", encoding="utf-8", errors="replace") as to
    ):
        if warned is None:
            answer.show(console(to))
        else:
            before = answer.document.get("warnings", [])
            print_json({**answer.document, "warnings": [*before, *warned]}, to)
