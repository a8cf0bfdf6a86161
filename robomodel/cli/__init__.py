"""The command line: ``robomodel info``, ``dynamics``, ``validate`` and others.

Results go to standard output, as text or (``--json``) as one JSON document, or to the file of
``--output``; warnings and errors go to standard error, an error in one line, and under ``--json``
to standard output as well: ``error`` (message, element, file, line) and ``warnings``. Exit status:
0, 1 for a finding, 2 for a usage or file error. Each command is a function that returns a document;
:mod:`robomodel.cli.common` prints it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from robomodel import __version__
from robomodel.cli.common import (
    USAGE,
    Grouped,
    Result,
    UserError,
    complain,
    print_json,
    runnable,
    take_as_given,
)
from robomodel.errors import did_you_mean
from robomodel.running import uncollected

if TYPE_CHECKING:
    from robomodel.reports.document import Document

__all__ = ["app", "main"]

FIRST_STEPS = """\
Usage: robomodel COMMAND [ROBOT] [OPTIONS]

The exact dynamics of robots as they are built. Three steps to begin with:

  robomodel robots                what is shipped, to try things on
  robomodel info mini_cheetah     bodies, joints, clusters; or: info yours.urdf
  robomodel validate crank_rocker what is wrong or odd in it, and what to do

robomodel --help lists the commands; robomodel COMMAND --help has examples.
robomodel --install-completion: the shell completes robots, joints and links.
"""

COMMANDS = {
    "info": ("models", "Print a robot's bodies, joints, clusters and limits, …"),
    "dynamics": ("states", "Compute inverse and forward dynamics at a state"),
    "benchmark": ("states", "Time the dynamics of a robot: a batch, a single call, …"),
    "graph": ("pictures", "Draw a robot's graphs: connectivity, spanning tree, …"),
    "view": ("pictures", "Show a robot in the browser, with a slider for each freedom, …"),
    "design": ("pictures", "Write a page with sliders for numbers of the robot, …"),
    "robots": ("models", "List the robots shipped with the package"),
    "validate": ("validation", "Look for what is wrong or odd: structure, loops, …"),
    "lint": ("lint", "Check all robot files of a repository: one finding a line, …"),
    "armature": ("armature", "Tabulate reflected inertia, its range, …"),
    "actuation": ("actuation", "Print what motors do through gears and linkages: ratios, …"),
    "compare": ("comparison", "List what differs between two files of one robot, …"),
    "convert": ("files", "Write a robot in another format: exactly, …"),
    "code": ("files", "Write functions of a robot as C99, which C++ includes too, …"),
    "identify": ("identification", "Identify a robot's parameters from a log of its motion, …"),
    "calibrate": ("identification", "Calibrate lengths, anchors, …"),
    "excite": ("identification", "Plan a motion that identifies a robot's parameters well, …"),
    "joint-states": ("joint_states", "Complete a log of some joints' states, as of motors, …"),
    "mcp": ("mcp", "Serve tools for agents on standard input and output (Model Context Protocol)"),
}
"""Commands by name: the module in which each is a function, and what it does, for ``--help``."""


class Commands(TyperGroup):
    """The commands; the module of one is imported when it runs, or when its own help is shown."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        take_as_given(self.get_params(ctx), {})
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, and those after it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and command_of(found.name or ""), rest


def command_of(name: str) -> Any:
    """The command of this name, with its options."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=Grouped)(runnable(function_of(name)))
    return get_command(alone)


def function_of(name: str) -> Callable[..., Result | Document]:
    """The function of a command."""
    module = import_module(f"{__name__}.{COMMANDS[name][0]}")
    function: Callable[..., Result | Document] = getattr(module, name.replace("-", "_"))
    return function


def _in_place() -> None:
    """Stands for a command in the list of them."""


app = typer.Typer(
    cls=Commands,
    help="Exact dynamics of robots as they are built: gears, belts, four-bars, rods.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, short_help=_summary)(_in_place)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (``arguments``: default those of the process) and exit."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # names may hold what the terminal's encoding lacks
    sys.exit(_run(arguments))


INTERRUPTED = 130  # exit status after Ctrl-C, also Typer's


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with uncollected():  # but while the command runs
            status = app(args=arguments, prog_name="robomodel", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _failed(error, arguments)
    except USAGE as error:
        context = getattr(error, "ctx", None)
        return _failed(
            UserError(
                f"{context.command_path if context else 'robomodel'}: "
                f"{_hinted(getattr(error, 'format_message', error.__str__)())}"
            ),
            arguments,
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    if status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return status if isinstance(status, int) else 0


_CHOICE = re.compile(r"'([^']*)' is not one of (('[^']*'(, )?)+)\.?$")
_GAZEBO = "; Gazebo has no armature: its file is that of 'robomodel convert FILE -o OUT.sdf'"


def _hinted(message: str) -> str:
    """A message on wrong usage without words of the parser's, and with the value that was meant."""
    message = message.replace("Value error, ", "")
    if (choice := _CHOICE.search(message)) is None:
        return message
    value, valid = choice[1], re.findall("'([^']*)'", choice[2])
    gazebo = value.lower() in ("gazebo", "gz", "ignition")
    return message.rstrip(".") + (_GAZEBO if gazebo else did_you_mean(value.lower(), valid))


def _failed(error: UserError, arguments: Sequence[str] | None) -> int:
    if "--json" in (sys.argv[1:] if arguments is None else arguments):
        print_json(error.as_dict())
    complain(str(error))
    return error.status


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"robomodel {__version__}")
        raise typer.Exit


def _cmake(requested: bool) -> None:
    if requested:
        typer.echo(Path(__file__).parent.parent / "cmake")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _robomodel(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option(
            "--cmake-dir",
            callback=_cmake,
            is_eager=True,
            help="Print the folder of robomodel-config.cmake, for -Drobomodel_DIR.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS, err=True)
        raise typer.Exit(2)
