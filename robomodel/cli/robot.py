"""A command's robot: how it is named and loaded, and ``--set`` of its parameters."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.main import get_command

from robomodel import loading
from robomodel import robots as shipped
from robomodel.cli.common import (
    SUFFIXES,
    USAGE,
    UserError,
    blaming,
    complete_joints,
    complete_robots,
    named_number,
    runnable,
)
from robomodel.description import Description, Inertial, JointCoupling, Rotor
from robomodel.errors import did_you_mean
from robomodel.model import Model, build
from robomodel.reports.document import Document


@dataclass(frozen=True, kw_only=True)
class Robot:
    """The options of all commands that load a robot.

    Besides ``file`` each field is an option of the command line and the argument of that name of
    :func:`robomodel.load` (``loop_tolerance``: ``tolerance``, another option of some commands).

    Options:
        --extend FILE: A further file with rotors, loops, couplings and joint attributes to merge
            into the robot; may be repeated.
        --xacro NAME:=VALUE: An argument of a xacro file, which is then run by the package xacro;
            may be repeated.
        --resources FOLDER: Where packages are that package://, model:// and xacro's $(find) name: a
            folder that is one or holds some, NAME=FOLDER, or ROS_PACKAGE_PATH, AMENT_PREFIX_PATH,
            GZ_SIM_RESOURCE_PATH for what is in these variables; may be repeated.
        --strict: Refuse what is warned of otherwise.
        --inertia-from: Compute the inertials that links lack from these shapes of theirs.
        --density KG/M3: The density of those shapes.
        --name: Which model of an SDF file that holds several; its world's name stands for all.
        --loop-tolerance M: How far loops may stay open, in metres and radians, where they close
            best. [default: what rounding explains]
        --spins: Whether rods between two balls may turn about themselves.
    """

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A robot file, the name of a shipped robot (see 'robomodel robots'), or - for "
            "standard input.",
            autocompletion=complete_robots,
        ),
    ]
    extend: list[Path] | None = None
    rotors: Annotated[
        list[str] | None,
        typer.Option(
            "--rotor",
            metavar="JOINT:inertia=…,ratio=…",
            autocompletion=complete_joints(":"),
            help="The rotor of a joint, or of all joints that a name with * means; also mass, "
            "transverse, damping, friction, or link=… for a link of the robot that is the rotor; "
            "may be repeated.",
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
            "shank.mass, knee.damping, knee.upper, gravity.z, …; may be repeated.",
        ),
    ] = None
    loop_tolerance: float | None = None
    mend: Annotated[
        bool,
        typer.Option(
            "--mend/--no-mend",
            help="Move the frames of overconstrained loops that the file rounds to those of the "
            "nearest exact mechanism, or keep them.",
        ),
    ] = True
    spins: Literal["free", "locked"] = "free"

    def with_options(self, option: str, text: str) -> Robot:
        """The robot with further loading options, as the value of ``option`` has them.

        Those that may be repeated are added, others replaced. Raises UserError for other options.
        """
        alone = typer.Typer()
        alone.command()(runnable(_loaded))
        command = get_command(alone)
        try:
            context = command.make_context(option, [self.file, *shlex.split(text)])
        except ValueError as error:  # quotes that do not end
            raise UserError(f"{option} '{text}': {error}") from None
        except USAGE as error:
            message = getattr(error, "format_message", error.__str__)()
            raise UserError(f"{option} '{text}': {message}") from None
        changes: dict[str, Any] = {}
        names = {field.name for field in fields(self)} - {"file"}
        for name, value in context.params.items():
            source = context.get_parameter_source(name)
            if source is None or source.name != "COMMANDLINE" or name == "file":
                continue
            if name not in names:
                raise UserError(f"{option} '{text}': only options for loading have a place there")
            before = getattr(self, name)
            changes[name] = [*(before or []), *value] if isinstance(value, list) else value
        return replace(self, **changes)

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
            extensions = list(map(str, self.extend or ()))
            folders = [entry.rpartition("=")[2] for entry in self.resources or ()]
            if error.filename in (*extensions, *folders) and error.filename != self.file:
                near = [str(x) for x in Path(error.filename).parent.glob("*")]
                if error.filename in extensions and (hint := did_you_mean(error.filename, near)):
                    raise UserError(f"{error.filename}: no such file{hint}") from None
                raise
            folder = Path(self.file).parent
            near = [str(x) for x in folder.glob("*") if x.suffix in SUFFIXES]
            raise UserError(
                f"{self.file}: no such file, and no shipped robot of this name"
                f"{did_you_mean(self.file, near + names) or '; they are ' + ', '.join(names)}"
            ) from None


def _loaded(robot: Robot) -> Document:
    """A command that loads a robot: it has the options for loading and no others."""
    return Document(robot.load().name, "")


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


# ---- --set ---------------------------------------------------------------------------------------


MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def with_settings(model: Model, assignments: Iterable[str]) -> Model:
    """The model with these ``OWNER.PARAMETER=NUMBER`` in the place of what its file has."""
    description = model.description
    form = "OWNER.PARAMETER=NUMBER"
    for name, value in dict(named_number("--set", text, form) for text in assignments).items():
        owner, _, parameter = name.rpartition(".")
        description = _set(model, description, owner, parameter, value)
    return model if description is model.description else build(description)


def _set(
    model: Model, description: Description, owner: str, parameter: str, value: float
) -> Description:
    """The description with one number of it changed."""
    what = f"--set {owner}.{parameter}"
    if owner == "gravity" and parameter in tuple("xyz"):
        x, y, z = (value if k == parameter else g for k, g in
                   zip("xyz", description.gravity or model.gravity, strict=True))  # fmt: skip
        return replace(description, gravity=(x, y, z))
    if parameter == "ratio" and owner in model.joint_names:
        return _with_ratio(model, description, owner, value)
    parameters = ["ratio"] if owner in model.joint_names else []
    for group in ("joints", "links", "loops", "couplings", "springs"):
        elements = getattr(description, group)
        for n, element in enumerate(elements):
            if element.name != owner:
                continue
            setters = dict(_numbers(element))
            parameters += setters
            if parameter in setters:
                changed = (*elements[:n], setters[parameter](value), *elements[n + 1 :])
                changes: dict[str, Any] = {group: changed}
                return replace(description, **changes)
    if parameters:
        hint = (
            did_you_mean(parameter, parameters)
            or f"; it has {', '.join(dict.fromkeys(parameters))}"
        )
        raise UserError(f"{what}: '{owner}' has no such parameter{hint}")
    owners = [each.name for group in ("joints", "links", "loops", "couplings", "springs")
              for each in getattr(description, group)]  # fmt: skip
    raise UserError(f"{what}: '{model.name}' has no '{owner}'{did_you_mean(owner, owners)}")


def _numbers(element: Any) -> Iterable[tuple[str, Callable[[float], Any]]]:
    """Numbers of an element and of its parts by name, and functions that set them."""
    if isinstance(element, JointCoupling):
        for n, (joint, _) in enumerate(element.terms):
            yield joint, partial(_with_term, element, n)
    if isinstance(element, Inertial):
        for n, name in enumerate(MOMENTS):
            yield name, partial(_with_item, element, "inertia", n)
    if hasattr(element, "origin"):
        for n, name in enumerate("xyz"):
            move = partial(_with_item, element.origin, "xyz", n)
            yield name, partial(_with_part, element, "origin", move)
    for field in fields(element):
        value = getattr(element, field.name)
        if is_dataclass(value) and field.name not in ("source", "origin"):
            for name, change in _numbers(value):
                yield name, partial(_with_part, element, field.name, change)
        elif (isinstance(value, float) or value is None) and "float" in str(field.type):
            yield field.name, partial(_with_part, element, field.name, float)


def _with_part(element: Any, name: str, change: Callable[[float], object], value: float) -> object:
    return replace(element, **{name: change(value)})


def _with_item(element: Any, name: str, place: int, value: object) -> object:
    values = getattr(element, name)
    return replace(element, **{name: (*values[:place], value, *values[place + 1 :])})


def _with_term(coupling: JointCoupling, place: int, value: float) -> object:
    return _with_item(coupling, "terms", place, (coupling.terms[place][0], value))


def _with_ratio(model: Model, description: Description, joint: str, value: float) -> Description:
    """The ratio of its rotor, whichever element of the file couples the two."""
    from robomodel.identification.gears import with_ratios
    from robomodel.reports.validation.context import CheckContext

    rotors = [each for each in CheckContext(model).rotors if joint in each.ratios]
    if len(rotors) == 1:
        rotor, factor = model.joints[rotors[0].body], value / rotors[0].ratios[joint]
        several = {each.name for each in description.couplings
                   if isinstance(each, JointCoupling) and len(each.terms) > 2}  # fmt: skip
        for each in model.couplings:
            tied = {rotor.name, joint} <= dict(each.terms).keys()
            if tied and each.name not in several and not each.coefficients:
                scale = 1.0 / factor if rotor.independent else factor
                return with_ratios(
                    replace(model, description=description), {each.name: scale}
                ).description
    count = f"{len(rotors) or 'no'} rotor{'s' if len(rotors) > 1 else ''}"
    remedy = "name the coupling instead" if rotors else (
        f"give it one by --rotor {joint}:inertia=…,ratio={value:g}"
    )  # fmt: skip
    raise UserError(f"--set {joint}.ratio: '{joint}' has {count}; {remedy}")
