"""C source of a robot's functions: a file of C99, and a header for C and C++."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from numpy.typing import DTypeLike

from robomodel.files import replace_file
from robomodel.interop import source as sources
from robomodel.interop.ros2_control import FUNCTIONS as TRANSMISSION_FUNCTIONS
from robomodel.interop.ros2_control import transmission_header
from robomodel.interop.source import Functions, Routine
from robomodel.kernels.c import LOCALS, TYPES, CFunction, CIterated, literal, loop, preamble
from robomodel.kernels.function import as_dtype
from robomodel.kernels.iterated import IteratedFunction
from robomodel.kernels.program import Dtype
from robomodel.model import Model
from robomodel.model.elements import position_labels, position_names

_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while class delete new this template operator private public protected
    virtual namespace using try catch throw friend bool true false and or not xor
"""
RESERVED = LOCALS.union(_WORDS.split())


def write_c(
    model: Model,
    path: str | os.PathLike[str],
    functions: Functions = ("rnea", "aba"),
    *,
    dtype: DTypeLike = "float64",
    ros2_control: bool = False,
) -> list[Path]:
    """Write functions of a robot as C99 source and a header.

    The stem of ``path`` is the prefix of all names: ``mini_cheetah.c`` contains
    ``void mini_cheetah_aba(const double q[19], …, double a[18])``, with one pointer per argument
    and result, results last, in the order of the Python function; matrices are stored by rows. The
    code allocates no memory, has no state, calls ``sin``, ``cos`` and ``sqrt`` only, and is safe
    to call from several threads. Arguments and results of one state may overlap. For C++, the
    header also has functions of ``std::array``, in a namespace with the stem's name.

    Args:
        model: The robot.
        path: Path of the source file; it ends in ``.c``.
        functions: Names as for :func:`robomodel.compile`, and "close", "integrate",
            "joint_positions", "joint_velocities", "from_actuators" and "joint_states".
            "frame_pose:foot" is the function for the link ``foot`` ("efpa:a+b" for two), named
            ``…_frame_pose_foot``; "joint_states:hip+knee" reads these joints (default: the
            independent ones). Closings return a status: 0, or 1 for the nearest configuration.
            "ik:foot" is a damped step of inverse kinematics without limits; for tasks of
            :mod:`robomodel.control`, give ``("ik", {"tasks": […]})``. A mapping gives other names,
            and options: ``{"knee": ("jacobian", {"frame": ("shank", (0, 0, -0.2))})}``.
        dtype: "float64" or "float32".
        ros2_control: Also write ``mini_cheetah_transmission.hpp``, whose class
            ``mini_cheetah::Transmission`` is a ``transmission_interface::Transmission`` of
            ros2_control between the actuators and the independent joints, and the functions that it
            calls.

    Returns:
        paths: The two paths, and the third with ``ros2_control``.

    Raises:
        ValueError: A function is unknown or has no straight-line program; ``path`` does not end in
            ``.c``; or, with ``ros2_control``, actuators leave a coordinate undetermined or an
            independent joint has several freedoms. Nothing is written then.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.c")
        >>> written = rm.write_c(rm.robots.load("four_bar"), path, functions=["aba"])
        >>> sorted(file.suffix for file in path.parent.iterdir())
        ['.c', '.h']
    """
    source = Path(path)
    if source.suffix != ".c":
        raise ValueError(f"path must end in .c, got '{source}'")
    number = as_dtype(dtype)
    stem = identifier(source.stem)
    if ros2_control and number != "float64":
        raise ValueError("ros2_control has values of float64")
    transmission = transmission_header(model, stem) if ros2_control else ""
    required = sources.chosen(model, TRANSMISSION_FUNCTIONS, identifier) if ros2_control else {}
    chosen = sources.chosen(model, functions, identifier) if functions or not required else {}
    for name, function in required.items():
        if chosen.setdefault(name, function) is not function:
            raise ValueError(f"'{stem}_{name}' is what the header for ros2_control calls")
    texts = [_function(stem, name, function, number) for name, function in chosen.items()]
    header = source.with_suffix(".h")
    header_text = _header(model, stem, header.name, list(chosen.values()), texts, number)
    replace_file(str(source), _source(model, header.name, texts))
    replace_file(str(header), header_text)
    if not transmission:
        return [source, header]
    adapter = source.with_name(f"{source.stem}_transmission.hpp")
    replace_file(str(adapter), transmission)
    return [source, header, adapter]


def identifier(text: str) -> str:
    """A name as an identifier of C and C++."""
    return sources.identifier(text, RESERVED)


def _function(stem: str, name: str, function: Routine, dtype: Dtype) -> CFunction | CIterated:
    results = {identifier(r): math.prod(shape) for r, shape in function.results.items()}
    names = sources.argument_names(function, RESERVED)
    arguments = {names[argument]: size for argument, size in function.arguments.items()}
    if isinstance(function, IteratedFunction):
        shared = f"{stem}_least"
        return CIterated(f"{stem}_{name}", function, arguments, results, shared, dtype)
    return CFunction(f"{stem}_{name}", function.program, arguments, results, dtype)


# ---- the source ----------------------------------------------------------------------------------


def _source(model: Model, header: str, functions: Sequence[CFunction | CIterated]) -> str:
    lines = [
        f"/* {_plain(model.name)}: see {header}. Written by robomodel; each t is used once or more,"
        " and set once. */",
        f'#include "{header}"',
        "",
        *preamble(functions[0].dtype),
    ]
    loops = [f for f in functions if isinstance(f, CIterated) and f.function.stages]
    lines += ["", *loop(loops[0].loop, loops[0].dtype)] if loops else []
    for f in functions:
        lines += ["", *f.definition()]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that is safe in a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")


# ---- the header ----------------------------------------------------------------------------------


def _header(
    model: Model,
    stem: str,
    name: str,
    routines: Sequence[Routine],
    functions: Sequence[CFunction | CIterated],
    dtype: Dtype,
) -> str:
    guard = f"{stem.upper()}_H"
    kind = TYPES[dtype]
    lines = [
        f"/* Dynamics of {_plain(model.name)}, written by robomodel.",
        "",
        "   SI units and radians. Spatial vectors are angular first. Matrices are by rows.",
        f"   Gravity: {', '.join(f'{g:g}' for g in model.gravity)} m/s^2. Nothing is allocated,",
        "   and no state kept: call from as many threads as you like. Arguments and results of one",
        "   state may overlap. Nothing is checked: what is not finite comes out as such.",
        "*/",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
    ]
    lines += _sizes(model, stem, dtype)
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for function, f in zip(routines, functions, strict=True):
        lines += ["", *_comment(function, f), f"{f.declaration};"]
    lines += ["", "#ifdef __cplusplus", '}  /* extern "C" */', ""]
    lines += _for_cpp(stem, functions, kind)
    lines += ["#endif", "", f"#endif  /* {guard} */"]
    return "\n".join(lines) + "\n"


def _sizes(model: Model, stem: str, dtype: Dtype) -> list[str]:
    """Macros of sizes, and of the index of each quantity in an array."""
    upper = stem.upper()
    lines = [
        f"#define {upper}_NQ {model.nq}  /* positions */",
        f"#define {upper}_NV {model.nv}  /* independent velocities */",
        f"#define {upper}_NU {len(model.actuators)}  /* actuators */",
    ]
    base = model.nodes[0].joint.nq if model.floating_base is not None else 0
    joints = [
        label
        for joint, node in zip(model.joints, model.nodes, strict=True)
        for label in position_labels(joint.name, node.joint)
    ][base:]
    neutral = ", ".join(literal(float(x), dtype) for x in model.neutral())
    lines += [
        "",
        "/* Positions to begin with, loops closed: double q[...] = this; */",
        f"#define {upper}_NEUTRAL {{{neutral}}}",
    ]
    for title, macro, names in (
        ("Where each independent velocity stands in v, a and tau:", "V", [*model.dof_names]),
        ("Where each number stands in q:", "Q", [*position_names(model)]),
        ("Where each stands in joint_positions:", "JOINT", joints),
        ("Motors, in the order of the actuator map:", "U", [a.name for a in model.actuators]),
    ):
        if names:
            lines += ["", f"/* {title} */"]
        used: set[str] = set()
        for i, each in enumerate(names):
            suffix = re.sub(r"\W", "_", each, flags=re.ASCII).upper()
            suffix = suffix if suffix not in used else f"{suffix}_{i}"
            used.add(suffix)
            note = "" if suffix.lower() == each.lower() else f"  /* {_plain(each)} */"
            lines.append(f"#define {upper}_{macro}_{suffix} {i}{note}")
    return lines


def _comment(function: Routine, f: CFunction | CIterated) -> list[str]:
    """The comment on a function: its purpose, arguments, results, and use of the stack."""
    first, *others = map(_plain, sources.headlines(function))
    lines = [f"/* {first}", *(f"   {line}" for line in others)]
    for name, original in zip(
        (*f.arguments, *f.results), (*function.arguments, *function.results), strict=True
    ):
        note = sources.described(function, original)
        lines.append(f"   {name}: {note}" if note else f"   {name}")
    if isinstance(f, CIterated):
        lines.append(
            "   Returns 0 if the results are what was asked for, 1 if they are the nearest."
        )
    lines.append(f"   {f.cost} */")
    return lines


def _for_cpp(stem: str, functions: Sequence[CFunction | CIterated], kind: str) -> list[str]:
    """Functions of std::array; several results are returned as a struct."""
    lines = ["#include <array>", "", f"namespace {stem} {{", ""]
    for f in functions:
        name = f.name.removeprefix(f"{stem}_")
        name = f"{name}_" if name in RESERVED else name
        arguments = [f"const std::array<{kind}, {count}> &{x}" for x, count in f.arguments.items()]
        pointers = ", ".join(f"{x}.data()" for x in f.arguments)
        iterated = isinstance(f, CIterated)
        if len(f.results) == 1:
            (count,) = f.results.values()
            result, filled = f"std::array<{kind}, {count}>", "result.data()"
        else:
            result = f"{name}_results"
            lines += [f"struct {result} {{"]
            lines += [f"  std::array<{kind}, {count}> {x};" for x, count in f.results.items()]
            lines += ["  int status;"] if iterated else []
            lines += ["};", ""]
            filled = ", ".join(f"result.{x}.data()" for x in f.results)
        lines += [
            f"inline {result} {name}({', '.join(arguments)}) {{",
            f"  {result} result;",
            f"  {'result.status = ' * iterated}::{f.name}({pointers}, {filled});",
            "  return result;",
            "}",
            "",
        ]
    return [*lines, f"}}  // namespace {stem}"]
