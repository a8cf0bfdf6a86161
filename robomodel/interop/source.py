"""Shared by the writers of source code: functions by name, identifiers, units."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from robomodel.interop.programs import iterated, summary, task_of
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.iterated import IteratedFunction
from robomodel.model import Model

Routine: TypeAlias = TracedFunction | IteratedFunction
Functions: TypeAlias = "str | Iterable[str] | Mapping[str, str | tuple[str, Mapping[str, Any]]]"


def chosen(model: Model, functions: Functions, name_of: Callable[[str], str]) -> dict[str, Routine]:
    """Functions by their names in a language; "frame_pose:foot" is for the link ``foot``.

    Raises the errors of :func:`~robomodel.interop.programs.iterated`, ValueError for repeated names
    or without functions, TypeError if ``functions`` is of another type.
    """
    result: dict[str, Routine] = {}
    for alias, function, options in named(functions):
        name = name_of(re.sub(r"[:+]", "_", alias))
        if name in result:
            raise ValueError(f"two functions would be called '{name}'; name them apart")
        base, colon, links = function.partition(":")
        kind = "joints" if base == "joint_states" else "frames"
        about = {kind: links.split("+")} if colon else {}
        result[name] = iterated(model, base, **about, **options)
    if not result:
        raise ValueError("no functions are asked for")
    return result


def named(functions: Functions) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The name in the language, the name and the options of each function."""
    if isinstance(functions, str):
        functions = (functions,)
    if isinstance(functions, Mapping):
        for alias, what in functions.items():
            match (alias, what):
                case (str(), str(name)):
                    yield alias, name, {}
                case (str(), (str(name), Mapping() as options)):
                    yield alias, name, options
                case _:
                    raise TypeError(
                        "a mapping gives names, and of each a function's name, or (name, "
                        f"options), not {alias!r}: {what!r}"
                    )
        return
    if not isinstance(functions, Iterable):
        raise TypeError(f"functions are names, or a mapping of some, not {functions!r}")
    for name in functions:
        if not isinstance(name, str):
            raise TypeError(f"functions are names, not {name!r}; give options by a mapping")
        yield name, name, {}


def identifier(text: str, reserved: Container[str]) -> str:
    """A name of letters, digits and underscores, not beginning with a digit, not ``reserved``."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = f"_{name}" if name else "robot"
    return f"{name}_" if name in reserved or keyword.iskeyword(name) else name


def argument_names(function: Routine, reserved: Container[str]) -> dict[str, str]:
    """Argument names → identifiers, unique also among the results'."""
    names: dict[str, str] = {}
    taken = {identifier(result, reserved) for result in function.results}
    for argument in function.arguments:
        link = re.fullmatch(r"f_ext\['(.*)'\]", argument)
        unique = identifier(f"f_ext_{link[1]}" if link else argument, reserved)
        while unique in taken:
            unique += "_"
        taken.add(unique)
        names[argument] = unique
    return names


UNITS = {
    "q": "positions [rad, m, unit quaternions x y z w]",
    "v": "velocities [rad/s, m/s]",
    "a": "accelerations [rad/s^2, m/s^2]",
    "direction": "velocities whose signs count at rest",
    "tau": "forces on the independent velocities [N m, N]",
    "given": "accelerations of the known joints, forces of the others",
    "v_dt": "a velocity times a time [rad, m]",
    "w": "weights of the forces",
    "u": "forces of the motors",
    "M": "inertia [kg m^2, kg m, kg]",
    "closed": "positions, loops closed",
    "next": "positions after the motion",
    "residual": "what loops fail by [m, sine of an angle]",
    "positions": "of all joints [rad, m]",
    "velocities": "of all joints [rad/s, m/s]",
    "pose": "rotation and origin [m]",
    "velocity": "angular [rad/s], linear [m/s]",
    "J": "Jacobian",
    "rates": "of the actuators [rad/s, m/s]",
    "kp": "gains at the motors [N m/rad, N/m]",
    "kd": "gains at the motors [N m s/rad, N s/m]",
    "targets": "one after the other; matrices by rows",
    "damping": "of the step, as a square of costs",
    "step": "a velocity times a time [rad, m]",
    "error": "of the tasks [rad, m]",
    "guess": "a closed configuration near the result",
    "efforts": "forces at the joints that are read [N m, N]",
    "joint_positions": "of all joints [rad, m]",
    "joint_velocities": "of all joints [rad/s, m/s]",
    "least": "forces [N m, N], minus infinity without a limit",
    "most": "forces [N m, N], infinity without a limit",
    "doubt": "1 where motors are redundant, or the state is singular: limits are not told; else 0",
    "B": "what each motor's unit force does",
    "kinetic": "energy [J]",
    "potential": "energy [J]",
    "com": "centre of mass [m]",
    "poses": "rotations and origins [m]",
    "p": "parameters",
    "h": "angular [kg m^2/s], linear [kg m/s] momentum",
}


def headlines(function: Routine) -> list[str]:
    """The purpose of a function, and its options."""
    lines, task = [summary(function.name)], task_of(function)
    if task is not None and task.frames:
        frames = ", ".join(map(str, task.frames))
        lines.append(f"Frames: {frames}; reference: {task.reference}.")
    if task is not None and task.passive:
        lines.append("With the springs and the damping of the robot's file.")
    return lines


def described(function: Routine, name: str) -> str:
    """The unit of an argument or a result of a function, and the shape of a matrix."""
    if name.startswith("f_ext"):
        return "wrench on that link in its axes: moment [N m], force [N]"
    place = "the actuators" if "actuator" in function.name else "all joints"
    if function.name == "joint_states" and not name.startswith("joint_"):
        place = "the joints that are read"
    text = UNITS.get(name, "").replace("all joints", place)
    shape = function.results.get(name, ())
    by_rows = f"{' by '.join(map(str, shape))}, by rows" if len(shape) > 1 else ""
    return "; ".join(x for x in (text, by_rows) if x)
