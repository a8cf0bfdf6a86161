"""The robot a command is about: how it is named and loaded."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from robomodel import loading
from robomodel import robots as shipped
from robomodel.cli import complete
from robomodel.cli.common import UserError, blaming
from robomodel.cli.settings import with_settings
from robomodel.description import Rotor
from robomodel.errors import did_you_mean
from robomodel.model import Model


@dataclass(frozen=True, kw_only=True)
class Robot:
    """The options of all commands that load a robot.

    Besides ``file`` each field is an option of the command line and the argument of that name of
    :func:`robomodel.load` (``loop_tolerance``: ``tolerance``, which commands have of their own).

    Options:
        --extend FILE: A further file with rotors, loops, couplings and joint attributes to merge
            into the robot; may be given several times.
        --xacro NAME:=VALUE: An argument of a xacro file, which is then run by the package xacro;
            may be given several times.
        --resources FOLDER: Where packages are that package://, model:// and xacro's $(find) name: a
            folder that is one or holds some, NAME=FOLDER, or ROS_PACKAGE_PATH, AMENT_PREFIX_PATH,
            GZ_SIM_RESOURCE_PATH for what is in these variables; may be given several times.
        --strict: Refuse what is warned of otherwise.
        --inertia-from: Compute the inertials that links lack from these shapes of theirs.
        --density KG/M3: The density of those shapes.
        --name: Which model of an SDF file that holds several; its world's name stands for all.
        --loop-tolerance M: How far loops may stay open, in metres and radians, where they close
            best. [default: what rounding explains]
    """

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A robot file, the name of a shipped robot (see 'robomodel robots'), or - for "
            "standard input.",
            autocompletion=complete.robots,
        ),
    ]
    extend: list[Path] | None = None
    rotors: Annotated[
        list[str] | None,
        typer.Option(
            "--rotor",
            metavar="JOINT:inertia=…,ratio=…",
            autocompletion=complete.joints(":"),
            help="The rotor of a joint, or of all joints that a name with * means; also mass, "
            "transverse, damping, friction, or link=… for a link of the robot that is the rotor; "
            "may be given several times.",
        ),
    ] = None
    xacro: list[str] | None = None
    resources: list[str] | None = None
    floating_base: Annotated[
        bool | None,
        typer.Option(
            "--floating-base/--fixed-base",
            help="Free the root link, or hold a root that floats. [default: as the file says]",
        ),
    ] = None
    strict: bool = False
    inertia_from: Literal["collision", "visual"] | None = None
    density: float = 1000.0  # of water
    name: str | None = None

    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OWNER.PARAMETER=NUMBER",
            help="Another number for what the file says: crank.ratio of a joint's rotor, "
            "shank.mass, knee.damping, knee.upper, gravity.z, …; may be given several times.",
        ),
    ] = None
    loop_tolerance: float | None = None

    def load(self) -> Model:
        """The robot in the file of this path, else the shipped one of this name."""
        names = shipped.names()
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        del options["file"], options["assignments"]
        options["tolerance"] = options.pop("loop_tolerance")
        options["rotors"] = dict(map(_rotor, self.rotors or ()))
        options["xacro"] = None if self.xacro is None else dict(map(_argument, self.xacro))
        options["resources"] = [
            dict([entry.split("=", 1)]) if "=" in entry else entry for entry in self.resources or ()
        ]
        try:
            with blaming(self.file):  # values of options
                model = loading.load(_source(self.file, names), **options)
                return with_settings(model, self.assignments or ())
        except FileNotFoundError as error:
            beside = [
                *map(str, self.extend or ()),
                *(entry.rpartition("=")[2] for entry in self.resources or ()),
            ]
            if error.filename in beside and error.filename != self.file:
                raise
            folder = Path(self.file).parent
            near = [str(x) for x in folder.glob("*") if x.suffix in complete.SUFFIXES]
            raise UserError(
                f"{self.file}: no such file, and no shipped robot of this name"
                f"{did_you_mean(self.file, near + names) or '; they are ' + ', '.join(names)}"
            ) from None


def _argument(text: str) -> tuple[str, str]:
    """The name and the value of ``--xacro``."""
    name, sign, value = text.partition(":=")
    if not sign or not name:
        raise UserError(f"--xacro {text}: write it as NAME:=VALUE")
    return name, value


def _rotor(text: str) -> tuple[str, Rotor]:
    """The joint, or joints, of ``--rotor``, and the rotor."""
    joint, _, assignments = text.rpartition(":")
    words = dict(word.strip().split("=", 1) for word in assignments.split(",") if "=" in word)
    parameters = {field.name for field in fields(Rotor)} - {"source"}
    wrong = [word for word in words if word not in parameters]
    if not joint or not words or len(words) != assignments.count(",") + 1:
        raise UserError(f"--rotor {text}: write it as JOINT:inertia=6e-5,ratio=9")
    if wrong:
        raise UserError(f"--rotor {text}: no '{wrong[0]}'{did_you_mean(wrong[0], parameters)}")
    link = words.pop("link", "")
    numbers: dict[str, Any] = {}
    for word, value in words.items():
        try:
            numbers[word] = float(value)
        except ValueError:
            raise UserError(f"--rotor {text}: '{value}' is not a number") from None
    return joint, Rotor(**numbers, link=link)


def _source(file: str, names: list[str]) -> object:
    if file == "-":
        return sys.stdin.buffer
    path = Path(file)
    return shipped.path(file) if file in names and not path.is_file() else path
