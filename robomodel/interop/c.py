"""C source of a robot's functions: one file of C99 and its header, which C++ may include too."""

from __future__ import annotations

import keyword
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import DTypeLike

from robomodel.files import replace_file
from robomodel.interop.programs import routine, summary, task_of
from robomodel.interop.ros2_control import FUNCTIONS as TRANSMISSION_FUNCTIONS
from robomodel.interop.ros2_control import transmission_header
from robomodel.kernels.c import LOCALS, TYPES, CFunction, literal, preamble
from robomodel.kernels.function import TracedFunction, as_dtype
from robomodel.kernels.program import Dtype
from robomodel.model import Model
from robomodel.model.elements import position_labels, position_names

Functions: TypeAlias = "str | Iterable[str] | Mapping[str, str | tuple[str, Mapping[str, Any]]]"

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
    """Write functions of a robot as C99, and a header beside it.

    The stem of ``path`` begins every name: ``mini_cheetah.c`` has ``void mini_cheetah_aba(const
    double q[19], …, double a[18])``, results last, one pointer each in the order of the Python
    function's, matrices by rows. The code allocates nothing, keeps no state, calls ``sin``, ``cos``
    and ``sqrt`` alone, and may be called from many threads; arguments and results of one state may
    overlap. C++ includes the header, which then has functions of ``std::array`` besides, in a
    namespace of the stem's name.

    Args:
        model: The robot.
        path: Where to write; it ends in ``.c``.
        functions: Names as of :func:`robomodel.compile`, and "close", "integrate",
            "joint_positions", "joint_velocities" and "from_actuators"; "frame_pose:foot" is of the
            link ``foot`` ("efpa:a+b" of two), and called ``…_frame_pose_foot``. A mapping gives
            other names, and options:
            ``{"knee": ("jacobian", {"frame": ("shank", (0, 0, -0.2))})}``.
        dtype: "float64" or "float32".
        ros2_control: Also write ``mini_cheetah_transmission.hpp``, whose class
            ``mini_cheetah::Transmission`` is a ``transmission_interface::Transmission`` of
            ros2_control between the actuators and the independent joints, and the functions that it
            calls.

    Returns:
        paths: The two paths, and the third with ``ros2_control``.

    Raises:
        ValueError: Before anything is written: unknown functions and such as cannot be
            straight-line programs, by name; a ``path`` that does not end in ``.c``; with
            ``ros2_control`` actuators that leave a coordinate open, and independent joints with
            several freedoms.
    """
    source = Path(path)
    if source.suffix != ".c":
        raise ValueError(f"path must end in .c, got '{source}'")
    number = as_dtype(dtype)
    stem = identifier(source.stem)
    if ros2_control and number != "float64":
        raise ValueError("ros2_control has values of float64")
    transmission = transmission_header(model, stem) if ros2_control else ""
    chosen: dict[str, TracedFunction] = {}
    for name, function in _chosen(model, functions):
        if name in chosen:
            raise ValueError(f"two functions would be called '{stem}_{name}'; name them apart")
        chosen[name] = function
    for name in TRANSMISSION_FUNCTIONS if ros2_control else ():
        if chosen.setdefault(name, required := _routine(model, name, {})) is not required:
            raise ValueError(f"'{stem}_{name}' is what the header for ros2_control calls")
    if not chosen:
        raise ValueError("no functions are asked for")
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


def _chosen(model: Model, functions: Functions) -> Iterable[tuple[str, TracedFunction]]:
    """Names in C, without the stem, and what they are of."""
    if isinstance(functions, str):
        functions = (functions,)
    if isinstance(functions, Mapping):
        for alias, what in functions.items():
            match (alias, what):
                case (str(), str(name)):
                    yield identifier(alias), _routine(model, name, {})
                case (str(), (str(name), Mapping() as options)):
                    yield identifier(alias), _routine(model, name, options)
                case _:
                    raise TypeError(
                        "a mapping gives names in C, and of each a function's name, or (name, "
                        f"options), not {alias!r}: {what!r}"
                    )
        return
    if not isinstance(functions, Iterable):
        raise TypeError(f"functions are names, or a mapping of some, not {functions!r}")
    for name in functions:
        if not isinstance(name, str):
            raise TypeError(f"functions are names, not {name!r}; give options by a mapping")
        yield identifier(re.sub(r"[:+]", "_", name)), _routine(model, name, {})


def _routine(model: Model, name: str, options: Mapping[str, Any]) -> TracedFunction:
    """A function, after its name the links that it is about."""
    name, colon, links = name.partition(":")
    about = {"frames": links.split("+")} if colon else {}
    return routine(model, name, **about, **options)


def identifier(text: str) -> str:
    """A name as C takes it: letters, digits and underscores, not a digit first."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = f"_{name}" if name else "robot"
    return f"{name}_" if name in RESERVED or keyword.iskeyword(name) else name


def _function(stem: str, name: str, function: TracedFunction, dtype: Dtype) -> CFunction:
    results = {identifier(r): math.prod(shape) for r, shape in function.results.items()}
    arguments: dict[str, int] = {}
    for argument, size in function.arguments.items():
        link = re.fullmatch(r"f_ext\['(.*)'\]", argument)
        unique = identifier(f"f_ext_{link[1]}" if link else argument)
        while unique in arguments or unique in results:
            unique += "_"
        arguments[unique] = size
    return CFunction(f"{stem}_{name}", function.program, arguments, results, dtype)


# ---- the source ----------------------------------------------------------------------------------


def _source(model: Model, header: str, functions: Sequence[CFunction]) -> str:
    lines = [
        f"/* {_plain(model.name)}: see {header}. Written by robomodel; each t is used once or more,"
        " and set once. */",
        f'#include "{header}"',
        "",
        *preamble(functions[0].dtype),
    ]
    for f in functions:
        lines += ["", *f.definition()]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that ends no comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")


# ---- the header ----------------------------------------------------------------------------------

UNITS = {
    "q": "positions [rad, m, unit quaternions x y z w]",
    "v": "velocities [rad/s, m/s]",
    "a": "accelerations [rad/s^2, m/s^2]",
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
    "guess": "a closed configuration near the result",
    "B": "what each motor's unit force does",
    "kinetic": "energy [J]",
    "potential": "energy [J]",
    "com": "centre of mass [m]",
    "h": "angular [kg m^2/s], linear [kg m/s] momentum",
}


def _header(
    model: Model,
    stem: str,
    name: str,
    routines: Sequence[TracedFunction],
    functions: Sequence[CFunction],
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
    """Macros: how many numbers there are, and at which index what stands."""
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


def _comment(function: TracedFunction, f: CFunction) -> list[str]:
    """The comment on a function: what it does, its arguments and results, its stack."""
    lines, task = [f"/* {_plain(summary(function.name))}"], task_of(function)
    if task is not None and task.frames:
        frames, axes = ", ".join(map(str, task.frames)), task.reference
        lines.append(f"   Frames: {_plain(frames)}; reference: {axes}.")
    if task is not None and task.passive:
        lines.append("   With the springs and the damping of the robot's file.")
    for name, argument in zip(f.arguments, function.arguments, strict=True):
        unit = _unit(function, argument)
        if name.startswith("f_ext"):
            unit = "wrench on that link in its axes: moment [N m], force [N]"
        lines.append(f"   {name}: {unit}" if unit else f"   {name}")
    for name, (result, shape) in zip(f.results, function.results.items(), strict=True):
        size = " by ".join(map(str, shape))
        unit = _unit(function, result)
        by = f"{size}, by rows" if len(shape) > 1 else ""
        note = "; ".join(x for x in (unit, by) if x)
        lines.append(f"   {name}: {note}" if note else f"   {name}")
    stack = f.stack
    what = (
        f"{stack} bytes of arrays"
        if f.in_parts
        else f"at most {stack} bytes of values at a time, part of them in registers"
    )
    lines.append(f"   {f.program.flops} floating-point operations; stack: {what}. */")
    return lines


def _unit(function: TracedFunction, name: str) -> str:
    """What an argument or a result of a function is."""
    place = "the actuators" if "actuator" in function.name else "all joints"
    return UNITS.get(name, "").replace("all joints", place)


def _for_cpp(stem: str, functions: Sequence[CFunction], kind: str) -> list[str]:
    """Functions of std::array; several results are returned as a struct."""
    lines = ["#include <array>", "", f"namespace {stem} {{", ""]
    for f in functions:
        name = f.name.removeprefix(f"{stem}_")
        name = f"{name}_" if name in RESERVED else name
        arguments = [f"const std::array<{kind}, {count}> &{x}" for x, count in f.arguments.items()]
        pointers = ", ".join(f"{x}.data()" for x in f.arguments)
        if len(f.results) == 1:
            (count,) = f.results.values()
            result, filled = f"std::array<{kind}, {count}>", "result.data()"
        else:
            result = f"{name}_results"
            lines += [f"struct {result} {{"]
            lines += [f"  std::array<{kind}, {count}> {x};" for x, count in f.results.items()]
            lines += ["};", ""]
            filled = ", ".join(f"result.{x}.data()" for x in f.results)
        lines += [
            f"inline {result} {name}({', '.join(arguments)}) {{",
            f"  {result} result;",
            f"  ::{f.name}({pointers}, {filled});",
            "  return result;",
            "}",
            "",
        ]
    return [*lines, f"}}  // namespace {stem}"]
