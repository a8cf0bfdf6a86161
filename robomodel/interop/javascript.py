"""JavaScript of a robot's functions: one ES module without dependencies, for pages and Node."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from robomodel.files import replace_file
from robomodel.interop import source
from robomodel.interop.source import Functions, Routine
from robomodel.kernels.iterated import IteratedFunction
from robomodel.kernels.javascript import (
    LEAST,
    LOCALS,
    PREAMBLE,
    JavaScriptFunction,
    JavaScriptIterated,
)
from robomodel.model import Model
from robomodel.model.elements import position_names
from robomodel.model.parameters import as_parameters
from robomodel.model.parameters import parameters as listed_parameters

_WORDS = """
    arguments await break case catch class const continue debugger default delete do else enum eval
    export extends false finally for function if implements import in instanceof interface let
    model new null package private protected public return static super switch this throw true try
    typeof undefined var void while with yield
"""
RESERVED = LOCALS.union(_WORDS.split())

FRAME_POSE = """\
/**
 * The pose of a link, by its name, in the world.
 * @param {ArrayLike<number>} q positions
 * @param {string} link one of model.link_names
 * @param {Float64Array} pose homogeneous matrix, by rows
 */
export function NAME(qPARAMETERS, link, pose = new Float64Array(16)) {
  const at = model.link_names.indexOf(link);
  if (at < 0) throw new RangeError(`no link '${link}'`);
  pose.set(link_poses(qPARAMETERS).subarray(16 * at, 16 * at + 16));
  return pose;
}
"""


def write_js(
    model: Model,
    path: str | os.PathLike[str],
    functions: Functions = ("aba", "close", "frame_pose"),
    parameters: str | Iterable[str] = (),
) -> Path:
    """Write functions of a robot as an ES module of JavaScript, without dependencies.

    ``aba(q, v, tau)`` takes arrays of numbers and returns a ``Float64Array``, or an object of
    arrays if there are several results: ``const { closed, residual } = close(q)``. Closings also
    have ``status``: 1 for the nearest configuration where loops do not close. An optional last
    argument is filled and returned instead of new arrays. Matrices are stored by rows; units, signs
    and orders of coordinates are those of Python. An array of wrong length throws a RangeError.
    ``model`` contains names (``model.dof_names``, ``model.link_names`` and so on) and
    ``model.neutral``.

    Args:
        model: The robot.
        path: Path of the file; it ends in ``.js`` or ``.mjs``.
        functions: As for :func:`robomodel.write_c`. "frame_pose" without a link becomes
            ``frame_pose(q, link)`` for any link, and "link_poses" gives all poses.
        parameters: Names as of :func:`robomodel.parameters`, those of geometry included, whose
            values every function takes as its last argument ``p``; ``model.parameter_names`` and
            ``model.parameters`` are the names and the file's values. Configurations must be closed
            for the values; "close" does so.

    Returns:
        path: The file.

    Raises:
        ValueError: A function is unknown or has no straight-line program, or ``path`` has another
            ending. Nothing is written then.
        UnknownNameError: A link or parameter does not exist.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.mjs")
        >>> written = rm.write_js(rm.robots.load("four_bar"), path, functions=["aba"])
        >>> "export function aba" in path.read_text()
        True
    """
    file = Path(path)
    if file.suffix not in (".js", ".mjs"):
        raise ValueError(f"path must end in .js or .mjs, got '{file}'")
    replace_file(str(file), _module(model, functions, as_parameters(model, parameters)))
    return file


def _module(model: Model, functions: Functions, parameters: tuple[str, ...]) -> str:
    given = {"parameters": parameters} if parameters else {}
    wanted: dict[str, tuple[str, Mapping[str, object]]] = {}
    of_any: list[str] = []
    for name, function, options in source.named(functions):
        if name in wanted or name in of_any:
            raise ValueError(f"two functions would be called '{name}'; name them apart")
        if function == "frame_pose" and not options:
            of_any.append(name)
        else:
            wanted[name] = function, {**given, **options}
    poses: tuple[str, Mapping[str, object]] = "link_poses", given
    if of_any and wanted.setdefault("link_poses", poses) != poses:
        raise ValueError(f"'link_poses' is what '{of_any[0]}' calls; name the other function apart")
    written = module(model, source.chosen(model, wanted, identifier), parameters)
    pose = FRAME_POSE.replace("PARAMETERS", ", p" if parameters else "")
    return "\n".join([written, *(pose.replace("NAME", identifier(n)) for n in of_any)])


def module(model: Model, functions: Mapping[str, Routine], parameters: Sequence[str] = ()) -> str:
    """The text of a module that exports these functions by name, and ``model``."""
    lines = [
        f"// {model.name}: written by robomodel. SI units and radians; spatial vectors are angular",
        "// first, matrices by rows, quaternions x y z w. Arguments are arrays of numbers.",
        "",
        "export const model = {",
        *(f"  {key}: {json.dumps(x, ensure_ascii=False)}," for key, x in _names(model).items()),
        "};",
        f"model.neutral = Float64Array.from({json.dumps(model.neutral().tolist())});",
        *_values(model, parameters),
        "",
        PREAMBLE,
        *([LEAST] if any(isinstance(f, IteratedFunction) for f in functions.values()) else []),
    ]
    for name, function in functions.items():
        lines += [*_comment(function), *_written(name, function).definition(), ""]
    return "\n".join(lines)


def identifier(text: str) -> str:
    """A name as an identifier of JavaScript."""
    return source.identifier(text, RESERVED)


def _written(name: str, function: Routine) -> JavaScriptFunction | JavaScriptIterated:
    names = source.argument_names(function, RESERVED)
    arguments = {names[argument]: size for argument, size in function.arguments.items()}
    results = {identifier(r): math.prod(shape) for r, shape in function.results.items()}
    if isinstance(function, IteratedFunction):
        return JavaScriptIterated(name, function, arguments, results)
    return JavaScriptFunction(name, function.program, arguments, results)


def _names(model: Model) -> dict[str, object]:
    """Sizes, and names of the entries of arrays."""
    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "nu": len(model.actuators),
        "gravity": list(model.gravity),
        "position_names": list(position_names(model)),
        "dof_names": list(model.dof_names),
        "joint_names": list(model.joint_names),
        "actuator_names": [actuator.name for actuator in model.actuators],
        "link_names": [frame.name for frame in model.frames],
    }


def _values(model: Model, names: Sequence[str]) -> list[str]:
    """The names and the file's values of parameters."""
    if not names:
        return []
    listed = listed_parameters(model, geometry=True)
    values = json.dumps([listed[name] for name in names])
    return [
        f"model.parameter_names = {json.dumps(list(names), ensure_ascii=False)};",
        f"model.parameters = Float64Array.from({values});",
    ]


def _comment(function: Routine) -> list[str]:
    lines = [line.replace("*/", "* /") for line in source.headlines(function)]
    names = source.argument_names(function, RESERVED)
    for argument, name in names.items():
        lines.append(f"@param {{ArrayLike<number>}} {name} {source.described(function, argument)}")
    notes = {identifier(r): source.described(function, r) for r in function.results}
    if len(notes) == 1:
        ((name, note),) = notes.items()
        lines.append(f"@param {{Float64Array}} [{name}] {note}")
    else:
        fields = ", ".join(f"{name}: Float64Array" for name in notes)
        if isinstance(function, IteratedFunction):
            fields += ", status: number"
            notes["status"] = "0 if the results are what was asked for, 1 if they are the nearest"
        about = "; ".join(f"{name}: {note}" for name, note in notes.items() if note)
        lines.append(f"@param {{{{{fields}}}}} [out] {about}")
    return ["/**", *(f" * {line}".rstrip() for line in lines), " */"]
