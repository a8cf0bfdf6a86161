"""Results, options, ``--json``, ``--output``, completion, warnings and errors of all commands.

A command is a function that returns its document, or a :class:`Result`. Its parameters are its
options; its docstring is their help, and ends in the sections ``Examples:`` and ``Options:``.
:func:`runnable` makes it a command of the command line.
"""

from __future__ import annotations

import dataclasses
import glob
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TextIO,
    TypeAlias,
    cast,
    get_args,
    get_origin,
)

import typer
from typer.core import TyperArgument, TyperCommand

from robomodel import robots as shipped
from robomodel.errors import (
    NOWHERE,
    ClosureError,
    DescriptionError,
    DescriptionWarning,
    Interrupted,
    MissingPackageError,
    Source,
    arguments_written,
)
from robomodel.files import STAGES
from robomodel.running import collected

if TYPE_CHECKING:
    from robomodel.description import Description
    from robomodel.reports.document import Document

LOADING = "Loading options"
NUMBERS = "NUMBERS"  # stands for the value of options that take several numbers in one word
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?,?", re.IGNORECASE)

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT", help="Write to this file instead of printing."),
]
Html: TypeAlias = Annotated[
    Path | None,
    typer.Option("--html", metavar="OUT.html", help="Also write the report as a page with plots."),
]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a command.

    ``document`` is printed as text or, with ``--json``, as its data; ``text`` replaces its text.
    ``output`` is the file for either, else it is printed. ``status`` is the exit status,
    ``complaint`` why it is not 0; a report on the screen says it itself. ``then`` is called after
    printing.
    """

    document: Document
    text: str | None = None
    output: Path | None = None
    status: int = 0
    complaint: str = ""
    then: Callable[[], None] | None = None


class HasPage(Result):
    """A result whose document can be written as a page (``--html``)."""


# ---- errors --------------------------------------------------------------------------------------


USAGE: type[Exception] = typer.BadParameter.__bases__[0]
"""Errors of usage: click's, wherever typer keeps it."""


class UserError(Exception):
    """An error that the user can correct: the line to print, its source, the exit status."""

    def __init__(self, message: str, status: int = 2, source: Source = NOWHERE) -> None:
        super().__init__(message)
        self.status = status
        self.source = source
        self.warnings: list[str] = []

    @classmethod
    def of(cls, error: Exception, file: str, status: int = 2) -> UserError:
        """An error that the user of ``file`` can correct, from an exception."""
        match error:
            case UserError():
                return error
            case DescriptionError():
                return cls(str(error), status, error.source)
            case MissingPackageError() if error.source is not NOWHERE:
                return cls(str(error), status, error.source)
            case OSError():
                return cls(f"{error.filename or file}: {error.strerror or error}", status)
            case KeyError():
                return cls(f"{file}: {error.args[0]}", status)
            case _:
                return cls(f"{file}: {error}", status)

    def as_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints in place of the command's document."""
        source, message = self.source, str(self)
        located = source is not NOWHERE
        return {
            "error": {
                "message": message.removeprefix(f"{source}: ") if located else message,
                "element": source.element or None,
                "file": source.file if located else None,
                "line": source.line,
            },
            "warnings": self.warnings,
        }


_USER_ERRORS = (UserError, DescriptionError, ClosureError, ImportError, OSError)


@contextmanager
def blaming(where: str, status: int = 2) -> Iterator[None]:
    """Turn errors of values and names into the user's, in this file or option."""
    try:
        yield
    except (ClosureError, DescriptionError):
        raise
    except (KeyError, ValueError) as error:
        raise UserError.of(error, where, status) from error


_OPTIONS = {"tolerance": "loop-tolerance", "constants": "constant", "rotors": "rotor"}
_OFF = {"floating_base": "--fixed-base", "mend": "--no-mend"}


def as_option(name: str, value: object = None, of: str = "") -> str:
    """The option for an argument of Python, as messages write it."""
    if value is False:
        return _OFF[name]
    option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    if value is None or value is True:
        return option
    if isinstance(value, Mapping):
        return " ".join(f"{option} {key}={item}" for key, item in value.items())
    return f"{option} {value:g}" if isinstance(value, float) else f"{option} {value}"


def named_number(option: str, text: str, form: str) -> tuple[str, float]:
    """The name and the number of an option; raises UserError with the form, as "JOINT=NUMBER".

    A form in brackets, "[JOINT=]NUMBER", allows no name; one with a dot has a dot in the name.
    """
    name, _, number = text.rpartition("=")
    with suppress(ValueError):
        if (name or form.startswith("[")) and ("." in name or "." not in form):
            return name.strip(), float(number)
    raise UserError(f"{option} {text}: write it as {form}")


# ---- what the shell completes --------------------------------------------------------------------

SUFFIXES = (".urdf", ".sdf", ".world", ".xml", ".mjcf", ".xacro", *STAGES)


def complete_robots(incomplete: str) -> list[str]:
    """Shipped robots, robot files, and folders."""
    names = [name for name in shipped.names() if name.startswith(incomplete)]
    paths = sorted(glob.glob(glob.escape(incomplete) + "*"))
    files = [path for path in paths if path.endswith(SUFFIXES)]
    return names + files + [f"{path}{os.sep}" for path in paths if os.path.isdir(path)]


def complete_joints(ending: str = "") -> Callable[[typer.Context, str], list[str]]:
    """Completes joints that move, of the robot named on the command line."""
    return _names(lambda robot: [j.name for j in robot.joints if j.type != "fixed"], ending)


def complete_links() -> Callable[[typer.Context, str], list[str]]:
    """Completes links of that robot."""
    return _names(lambda robot: [link.name for link in robot.links])


def _second_word() -> str:
    """The word after the command, where parsing has ended at an option without its value.

    The shells' scripts pass the whole line in one of these variables.
    """
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    words = [word for word in line.split()[2:] if not word.startswith("-")]
    return words[0] if words else ""


def _names(
    of: Callable[[Description], list[str]], ending: str = ""
) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from robomodel import parsers

        file = ctx.params.get("file") or _second_word()
        path = shipped.path(file) if file in shipped.names() and not os.path.isfile(file) else file
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                candidates = of(parsers.read(path))
        except (OSError, ValueError, ImportError):
            return []  # completion cannot report errors
        return [f"{name}{ending}" for name in candidates if name.startswith(incomplete)]

    return complete


# ---- a command of the command line ---------------------------------------------------------------


def take_as_given(parameters: Iterable[Any], words: Mapping[str, type]) -> None:
    """Let options take defaults, texts and paths without typer's converters.

    These import pydantic, which takes a fifth of the time of ``robomodel info``. ``words``: by
    options' names, str or Path where that is what words on the command line are made.
    """
    for each in parameters:
        each.process_value = partial(_taken, each, each.process_value, words.get(each.name))


def _taken(parameter: Any, convert: Any, word: type | None, context: Any, value: Any) -> Any:
    """The value of an option, or ``convert`` of it: as the option's own ``process_value``."""
    source = context.get_parameter_source(parameter.name)
    if source is not None and source.name == "DEFAULT" and not parameter.required:
        if value is None and (parameter.multiple or parameter.nargs == -1):
            value = ()
        elif not (value is None or type(value) in (bool, float, int, str)):
            return convert(context, value)
    elif word is not None and type(value) is str:
        value = word(value)
    elif word is not None and type(value) in (list, tuple) and {*map(type, value)} == {str}:
        value = [word(each) for each in value]
    else:
        return convert(context, value)
    return parameter.callback(context, parameter, value) if parameter.callback else value


def _word(annotation: Any) -> type | None:
    """The type, str or Path, that an option's words are made, also each of a list of them."""
    if annotation is str or annotation is Path:
        return cast(type, annotation)
    inner = () if get_origin(annotation) is Literal else get_args(annotation)
    return next((word for each in inner if (word := _word(each)) is not None), None)


class Grouped(TyperCommand):
    """A command whose ``--help`` lists its own options first, then those of loading."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises UserError if numbers of one option are separate words."""
        lists = {name for each in self.params if each.metavar == NUMBERS for name in each.opts}
        for at, option in enumerate(args):
            if option in lists:
                after = args[at + 1 :]
                count = next(
                    (n for n, x in enumerate(after) if not NUMBER.fullmatch(x)), len(after)
                )
                if count > 1:
                    numbers = ",".join(x.rstrip(",") for x in after[:count])
                    raise UserError(f"{option} takes one word: write {option}={numbers}")
        parameters = inspect.signature(self.callback).parameters if self.callback else {}
        words = {name: _word(each.annotation) for name, each in parameters.items()}
        take_as_given(self.get_params(ctx), {name: x for name, x in words.items() if x})
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, a section for each group."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            if (record := each.get_help_record(ctx)) is not None:
                usual = "Arguments" if isinstance(each, TyperArgument) else "Options"
                title = getattr(each, "rich_help_panel", None) or usual
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def runnable(command: Callable[..., Result | Document]) -> Callable[..., int]:
    """The command as a function for typer.

    A parameter that is a dataclass becomes the options that are its fields, the first one an
    argument; ``**options`` those of functions' parameters, by :func:`options_of`. ``--json`` is
    added, ``--html`` to those that return a :class:`HasPage`, and ``--output`` unless the command
    has one; documents on a robot get its ``file``.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    groups = [each for each in parameters if dataclasses.is_dataclass(each.annotation)]
    alone = (
        each for each in parameters if each not in groups and each.kind is not each.VAR_KEYWORD
    )
    options = list(documented(command, alone))
    for each in parameters:
        if each.kind is each.VAR_KEYWORD:
            options += [option for group in each.annotation.__metadata__ for option in group]
    named = {each.name for each in options}
    common: list[tuple[str, Any, Any]] = [("output", Output, None), ("as_json", AsJson, False)]
    if signature.return_annotation is HasPage:
        common.insert(0, ("html", Html, None))
    options += [_parameter(*each) for each in common if each[0] not in named]
    for group in groups:
        fields = inspect.signature(group.annotation, eval_str=True).parameters.values()
        file, *loading = documented(group.annotation, fields)
        for each in loading:
            for metadata in getattr(each.annotation, "__metadata__", ()):
                metadata.rich_help_panel = LOADING
        options = [file, *options, *loading]

    def run(**arguments: Any) -> int:
        file, json_wanted = arguments.get("file", "robomodel"), arguments.pop("as_json")
        output = None if "output" in named else arguments.pop("output")
        page = None if "html" in named else arguments.pop("html", None)
        for group in groups:
            fields = [field.name for field in dataclasses.fields(group.annotation)]
            arguments[group.name] = group.annotation(**{x: arguments.pop(x) for x in fields})
        with arguments_written(as_option), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DescriptionWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # of other packages, for developers
            try:
                with collected():
                    result = command(**arguments)
                result = result if isinstance(result, Result) else Result(document=result)
                if "robot" in result.document.data:
                    data = {"file": file, **result.document.data}
                    result = replace(result, document=replace(result.document, data=data))
                if page is not None:
                    page.write_text(result.document.html(), encoding="utf-8")
                _print(result, output or result.output, _texts(caught) if json_wanted else None)
            except BrokenPipeError:
                raise
            except Interrupted as pressed:
                known: Any = pressed.known
                known = known if isinstance(known, Result) else Result(document=known.document)
                if page is None and output is None and known.output is None:
                    _print(known, None, _texts(caught) if json_wanted else None)
                    complain(f"incomplete: {pressed.done}")
                raise
            except _USER_ERRORS as error:
                user_error = UserError.of(error, file)
                user_error.warnings = _texts(caught)
                raise user_error from error
            finally:
                for text in _texts(caught):
                    complain(f"warning: {text}")
        on_screen = (output or result.output) is None and sys.stdout.isatty()
        if result.complaint and not (on_screen and isinstance(result, HasPage)):
            complain(result.complaint)
        if result.then is not None:
            with collected():
                result.then()
        return result.status

    sentence, _, rest = (
        (inspect.getdoc(command) or "").partition("\nExamples:\n")[0].partition("\n\n")
    )
    examples = "\n".join(f"  {line}" for line in examples_of(command))
    run.__doc__ = f"{sentence}\n\n\b\nExamples:\n{examples}\n\n{rest}"
    run.__annotations__ = {each.name: each.annotation for each in options}
    named_alone = [each.replace(kind=each.KEYWORD_ONLY) for each in options]
    vars(run)["__signature__"] = signature.replace(parameters=named_alone)
    return run


_ENTRY = re.compile(
    r"^ +((?:--?[\w-]+(?:, )?)+)(?: (\S+))?: (.*(?:\n {5,}(?!--?\w).*)*)", re.MULTILINE
)
_COMPLETED = {
    "JOINT": complete_joints(),
    "JOINT=VALUE": complete_joints("="),
    "LINK": complete_links(),
    "LINK[:X,Y,Z]": complete_links(),
}
"""Functions that complete values in shells, by the word that stands for an option's value."""


def documented(source: Any, parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Parameters with their help, from the docstring's last section ``Options:``.

    An entry is ``-o, --option VALUE: what it is``; it belongs to the parameter of that name. A line
    ``Title:`` begins a group of entries, which ``--help`` lists under this title.
    """
    _, _, section = (inspect.getdoc(source) or "").partition("\nOptions:\n")
    entries = {}
    title, *rest = "", *re.split(r"^(\w.*):$", section, flags=re.MULTILINE)
    for part, following in zip(rest[::2], [*rest[1::2], ""], strict=True):
        for names, value, text in _ENTRY.findall(part):
            for name in names.split(", "):
                key = name.lstrip("-").replace("-", "_")
                entries[key] = (names.split(", "), value, text, title)
        title = following
    for each in parameters:
        if each.name not in entries:
            yield each
            continue
        names, value, text, title = entries[each.name]
        if each.annotation is bool and each.default is True:
            names = [f"{names[0]}/--no-{each.name.replace('_', '-')}"]
        info = typer.Option(
            *names, metavar=value or None, help=" ".join(text.split()),
            autocompletion=_COMPLETED.get(value), rich_help_panel=title or None,
        )  # fmt: skip
        yield each.replace(annotation=Annotated[each.annotation, info])


def options_of(function: Callable[..., Any], names: str) -> list[inspect.Parameter]:
    """Options that are a function's parameters, by name, with their defaults and their help."""
    function = inspect.unwrap(function)
    _, _, arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    helps = dict(re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", arguments, re.MULTILINE))
    options = []
    for name in names.split():
        parameter = inspect.signature(function).parameters[name]
        text = " ".join(helps[name].replace("``", "").split())
        option = f"--{name.replace('_', '-')}"
        info = typer.Option(option, help=text)
        annotation: Any = Annotated[_type(function, parameter), info]
        options.append(_parameter(name, annotation, parameter.default))
    return options


def examples_of(command: Callable[..., Any]) -> list[str]:
    """Lines of the docstring's section ``Examples:``."""
    _, _, section = (inspect.getdoc(command) or "").partition("\nExamples:\n")
    return [line.strip() for line in section.partition("\n\n")[0].splitlines()]


def _type(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type of an option's value: the default's, or the one that the annotation names."""
    annotation: Any = parameter.annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, getattr(function, "__globals__", {}))
    if get_origin(annotation) is Literal or parameter.default is None:
        return annotation
    return type(parameter.default)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


# ---- printing ------------------------------------------------------------------------------------


def _texts(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(warning.message) for warning in caught]


def _print(result: Result, output: Path | None, warned: list[str] | None) -> None:
    """Print or write the result: as JSON with these warnings, or as text if they are None."""
    with (
        nullcontext(sys.stdout)
        if output is None
        else output.open("w", encoding="utf-8", errors="replace") as to
    ):
        if warned is None:
            terminal = to.isatty()
            width = shutil.get_terminal_size().columns if terminal else None
            text = result.text
            typer.echo(result.document.text(width, coloured=terminal) if text is None else text, to)
        else:
            print_json(_with_warnings(result.document.as_dict(), warned), to)


def as_data(file: str, work: Callable[[], Result | Document]) -> dict[str, Any]:
    """The JSON document of a command on a file, or that of its error, without printing it."""
    with arguments_written(as_option), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DescriptionWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            result = work()
        except _USER_ERRORS as error:
            user_error = UserError.of(error, file)
            user_error.warnings = _texts(caught)
            return user_error.as_dict()
    data = (result.document if isinstance(result, Result) else result).as_dict()
    return _with_warnings({**data, "file": file} if "robot" in data else data, _texts(caught))


def _with_warnings(data: Mapping[str, Any], warned: list[str]) -> dict[str, Any]:
    from robomodel.reports.document import plain

    result: dict[str, Any] = plain({**data, "warnings": [*data.get("warnings", []), *warned]})
    return result


def print_json(report: object, to: TextIO | None = None) -> None:
    """Print the report as one JSON document, by default on standard output."""
    from robomodel.reports.document import plain

    typer.echo(json.dumps(plain(report), indent=2, allow_nan=False), file=to)


def complain(text: str) -> None:
    """Print a line on standard error; in a terminal broken between words."""
    line = " ".join(text.split())
    if sys.stderr.isatty():
        # lines of at most 100 columns are easy to read, however wide the terminal is
        width = min(shutil.get_terminal_size().columns, 100)
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    typer.echo(line, err=True)
