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
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from robomodel import __version__
from robomodel.cli.common import (
    USAGE,
    Grouped,
    UserError,
    complain,
    in_short,
    print_json,
    runnable,
)
from robomodel.cli.files import code, convert
from robomodel.cli.identification import calibrate, excite, identify
from robomodel.cli.joint_states import joint_states
from robomodel.cli.lint import lint
from robomodel.cli.mcp import mcp
from robomodel.cli.models import info, robots
from robomodel.cli.pictures import design, graph, view
from robomodel.cli.reports import actuation, armature, compare, validate
from robomodel.cli.states import benchmark, dynamics
from robomodel.errors import did_you_mean

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

app = typer.Typer(
    help="Exact dynamics of robots as they are built: gears, belts, four-bars, rods.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS = (
    info,
    dynamics,
    benchmark,
    graph,
    view,
    design,
    robots,
    validate,
    lint,
    armature,
    actuation,
    compare,
    convert,
    code,
    identify,
    calibrate,
    excite,
    joint_states,
    mcp,
)
"""The functions of the commands, by which these are named."""

for _command in COMMANDS:
    app.command(
        _command.__name__.replace("_", "-"),
        cls=Grouped,
        short_help=in_short(_command.__doc__ or ""),
    )(runnable(_command))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (``arguments``: default those of the process) and exit."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # names may hold what the terminal's encoding lacks
    sys.exit(_run(arguments))


INTERRUPTED = 130  # exit status after Ctrl-C, also Typer's


def _run(arguments: Sequence[str] | None) -> int:
    try:
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
