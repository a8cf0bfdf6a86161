"""The robot a command is about: how it is named and loaded, and what is said when that fails."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from robomodel import loading
from robomodel import robots as shipped
from robomodel.cli.output import complain
from robomodel.errors import ClosureError, DescriptionError, DescriptionWarning, did_you_mean
from robomodel.model import Model

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A robot file, the name of a shipped robot (see 'robomodel robots'), or - for "
        "standard input.",
        show_default=False,
        autocompletion=lambda incomplete: [x for x in shipped.names() if x.startswith(incomplete)],
    ),
]
Extend = Annotated[
    list[Path] | None,
    typer.Option(
        "--extend",
        metavar="FILE",
        help="A further file with rotors, loops, couplings and joint attributes to merge into the "
        "robot; may be given several times.",
        show_default=False,
    ),
]
FloatingBase = Annotated[
    bool | None,
    typer.Option(
        "--floating-base/--fixed-base",
        help="Free the root link, or hold a root that floats. [default: as the file says]",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse what is warned of otherwise.")]


DENSITY = 1000.0  # kg/m³, of water
InertiaFrom = Annotated[
    Literal["collision", "visual"] | None,
    typer.Option(
        "--inertia-from",
        help="Compute the inertials that links lack from these shapes of theirs.",
        show_default=False,
    ),
]
Density = Annotated[
    float,
    typer.Option("--density", metavar="KG/M3", help="The density of those shapes.", min=1e-9),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="Which model of an SDF file that holds several; its world's name stands for all.",
        show_default=False,
    ),
]


class UserError(Exception):
    """What the user should know: the line to print, and the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def reporting(file: str) -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings and show them in the end; what the user can mend becomes a UserError."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DescriptionWarning)
        try:
            yield caught
        except DescriptionError as error:
            raise UserError(str(error)) from error
        except ClosureError as error:
            raise UserError(f"{file}: {error}") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UserError(f"{error.filename or file}: {error.strerror or error}") from error
        finally:
            for warning in caught:
                complain(f"warning: {warning.message}")


def load(
    file: str,
    extend: list[Path] | None,
    floating_base: bool | None,
    strict: bool,
    inertia_from: Literal["collision", "visual"] | None = None,
    density: float = DENSITY,
    name: str | None = None,
) -> Model:
    """The robot in the file of this path, else the shipped one of this name."""
    names = shipped.names()
    source = _source(file, names)
    try:
        return loading.load(
            source,
            extend=extend,
            floating_base=floating_base,
            inertia_from=inertia_from,
            density=density,
            name=name,
            strict=strict,
        )
    except FileNotFoundError as error:
        if extend and error.filename in [str(path) for path in extend]:
            raise
        raise UserError(
            f"{file}: no such file, and no shipped robot of this name"
            f"{did_you_mean(file, names) or '; they are ' + ', '.join(names)}"
        ) from None


def _source(file: str, names: list[str]) -> object:
    if file == "-":
        return sys.stdin.buffer
    path = Path(file)
    return shipped.path(file) if file in names and not path.is_file() else path
