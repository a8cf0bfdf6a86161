"""The algorithms as CasADi functions: the very same programs, run on SX scalars or compiled.

Compiled ones are C source of the programs (:mod:`robomodel.kernels.c`), and what CasADi calls: its
interface for external functions, in which arguments and results are columns, and a function's
Jacobian is another function of the same file, ``jac_`` before its name.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from robomodel.errors import MissingPackageError
from robomodel.interop.differentiable import Differentiable, differentiable
from robomodel.interop.programs import routine
from robomodel.kernels.c import CFunction, preamble
from robomodel.kernels.program import COS, DIV, MEANING, SELECT, SIN, SQRT
from robomodel.model import Model

if TYPE_CHECKING:
    import casadi

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
COMPILERS = ("cc", "gcc", "clang")


def to_casadi(
    model: Model, algorithm: str, *, compiled: bool = False, **options: Any
) -> casadi.Function:
    """A ``casadi.Function`` of an algorithm, for differentiation, optimisation or C code.

    Inputs and outputs are columns (or matrices) with the names of the function's arguments and
    results (an argument's ends in "_" where a result has it too, as CasADi wants them apart);
    wrenches of ``f_ext`` are further inputs, in their order. Jacobians that CasADi makes are by the
    plain numbers of q, "rnea_derivatives" and "aba_derivatives" are along integrate(q, ·). Needs
    the extra ``robomodel[casadi]``.

    Args:
        model: The robot.
        algorithm: Any that :func:`robomodel.compile` takes ("rnea", "aba", "crba", "jacobian",
            "hybrid", "rnea_derivatives" …), or a function of the configuration: "integrate" (q,
            v_dt), "close" (q; ``steps`` of Newton's), "joint_positions", "joint_velocities",
            "constraint_jacobian", "constraint_bias".
        compiled: An external function of machine code, by the C compiler here, with its Jacobian:
            faster, for MX expressions, once differentiable, and with first derivatives as of
            :func:`robomodel.jax.function`: q is first brought to unit quaternions and closed loops.
        **options: Those of :func:`robomodel.compile`: ``frame``, ``frames``, ``f_ext``, ``method``,
            ``known``, ``passive``, ``reference``.

    Returns:
        function: The function of CasADi.

    Raises:
        ImportError: CasADi is not installed.
        RuntimeError: With ``compiled``, there is no compiler.
    """
    try:
        import casadi
    except ImportError as error:
        raise MissingPackageError("to_casadi needs", "casadi", "casadi") from error
    function = routine(model, algorithm, **options)
    names = [f"f_ext_{i}" if "[" in name else name for i, name in enumerate(function.arguments)]
    inputs = [f"{name}_" if name in function.results else name for name in names]
    if compiled:
        return external(differentiable(model, algorithm, options), inputs)
    symbols = {name: casadi.SX.sym(name, size) for name, size in function.arguments.items()}
    scalars = [x[i] for x in symbols.values() for i in range(x.numel())]
    meaning: dict[str, Callable[..., Any]] = {
        **MEANING,
        DIV: lambda x, y: casadi.SX(x) / y,
        SQRT: casadi.sqrt,
        SIN: casadi.sin,
        COS: casadi.cos,
        SELECT: lambda x, a, b: casadi.if_else(x < 0.0, a, b),
    }
    numbers = iter(function.program(scalars, meaning))
    results = {}
    for name, shape in function.results.items():
        rows, columns = (*shape, 1, 1)[:2]
        matrix = casadi.SX(rows, columns)
        for entry in range(math.prod(shape)):
            matrix[entry // columns, entry % columns] = next(numbers)
        results[name] = matrix
    return casadi.Function(
        algorithm, list(symbols.values()), list(results.values()), inputs, list(results)
    )


# ---- compiled functions -------------------------------------------------------------------------


def compiler() -> str | None:
    """The C compiler here: ``$CC``, or one by its usual names; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", ""), *COMPILERS))), None)


def external(what: Differentiable, names: Sequence[str]) -> casadi.Function:
    """A ``casadi.Function`` of compiled code; ``names`` of the arguments.

    Its Jacobian is what :mod:`robomodel.interop.differentiable` says. RuntimeError without a
    compiler, or where it fails.
    """
    import casadi

    path = compiler()
    if path is None:
        raise RuntimeError(
            "compiled functions for CasADi need a C compiler (set CC); without compiled=True none "
            "is needed"
        )
    with tempfile.TemporaryDirectory() as folder:  # what is loaded stays when its file goes
        source, library = Path(folder, "robot.c"), Path(folder, "robot.so")
        source.write_text(written(what, names), encoding="utf-8")
        flags = ["-std=c99", "-O2", "-march=native", "-shared", "-fPIC"]
        command = [path, *flags, str(source), "-o", str(library), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"{path} does not compile '{what.name}': {result.stderr[-500:]}")
        return casadi.external(what.name, str(library))


def written(what: Differentiable, names: Sequence[str]) -> str:
    """C source of the function and, where it has them, of its derivatives of two orders."""
    arguments = dict(zip((f"x{k}" for k in range(len(names))), what.sizes, strict=True))
    inputs: Shapes = {name: (size, 1) for name, size in zip(names, what.sizes, strict=True)}
    results: Shapes = {name: (*x, 1, 1)[:2] for name, x in what.routine.results.items()}
    at, places = 0, []
    for rows, columns in results.values():  # by rows there, by columns here
        places.append([at + i * columns + j for j in range(columns) for i in range(rows)])
        at += rows * columns
    lines, prefix, order = preamble("float64"), "", 0
    nominal = inputs
    while what.obstacle(order) is None:
        lines += ["", *_program(what, order, arguments), ""]
        lines += _function(f"{prefix}{what.name}", nominal, results, len(names), f"robot_{order}",
                           places, math.prod(what.shape(order)))  # fmt: skip
        blocks: dict[str, tuple[int, ...]] = {}
        entries: list[list[int]] = []
        for (result, shape), of_result in zip(results.items(), places, strict=True):
            first = 0
            for name, (rows, columns) in nominal.items():
                by = f"jac_{result}_{name}"
                if name in inputs:
                    blocks[by] = (math.prod(shape), rows)
                    entries.append([x * what.total + first + j for j in range(rows)
                                    for x in of_result])  # fmt: skip
                    first += rows
                else:  # on which it does not depend
                    blocks[by] = (math.prod(shape), rows * columns, 0)
                    entries.append([])
        nominal = {**nominal, **{f"out_{name}": shape for name, shape in results.items()}}
        results, places = blocks, entries
        prefix, order = f"jac_{prefix}", order + 1
    return "\n".join(lines) + "\n"


def _program(what: Differentiable, order: int, arguments: Mapping[str, int]) -> list[str]:
    """``robot_0``, its Jacobian ``robot_1``, and ``robot_2``, each result's Hessian in turn."""
    program, size = what.derivative(order).program, what.size
    if order < 2:
        count = math.prod(what.shape(order))
        return CFunction(f"robot_{order}", program, arguments, {"y": count}).definition()
    count = what.total**2
    weighted = CFunction("robot_weighted", program, {**arguments, "e": size}, {"y": count})
    return [
        *weighted.definition(),
        f"static void robot_2({', '.join(f'const double *{x}' for x in arguments)}, double *w)",
        "{",
        f"    for (int i = 0; i < {size}; ++i) {{",
        f"        double e[{size}] = {{0}};",
        "        e[i] = 1.0;",
        f"        robot_weighted({', '.join(arguments)}, e, w + {count} * i);",
        "    }",
        "}",
    ]


def _sparsity(shape: Sequence[int]) -> list[int]:
    """As CasADi reads it: rows, columns, 1 where all entries are there; no entries by a third 0."""
    rows, columns, *empty = shape
    return [rows, columns, *[0] * (columns + 1)] if empty else [rows, columns, 1]


def _function(
    name: str, inputs: Shapes, results: Shapes,
    used: int, called: str, places: Sequence[Sequence[int]], size: int,
) -> list[str]:  # fmt: skip
    """A function as CasADi calls it, with names and sparsity; pointers of arrays may be null."""
    longest = max(math.prod(shape) for shape in inputs.values())
    lines = [
        f"int {name}(const double **arg, double **res, long long *iw, double *w, int mem)",
        "{",
        f"    static const double zeros[{longest}] = {{0}};",
        "    (void)iw; (void)mem;",
        f"    {called}({', '.join(f'arg[{k}] ? arg[{k}] : zeros' for k in range(used))}, w);",
    ]
    for k, entries in enumerate(places):
        if not entries:
            continue
        table = f"{name}_{k}"
        numbers = ", ".join(map(str, entries))
        lines.insert(0, f"static const int {table}[{len(entries)}] = {{{numbers}}};")
        lines.append(f"    if (res[{k}]) for (int i = 0; i < {len(entries)}; ++i) "
                     f"res[{k}][i] = w[{table}[i]];")  # fmt: skip
    lines += ["    return 0;", "}"]
    for way, names in (("in", inputs), ("out", results)):
        shapes = [_sparsity(shape) for shape in names.values()]
        widest = max(map(len, shapes))
        dense = ", ".join("{" + ", ".join(map(str, shape)) + "}" for shape in shapes)
        labels = ", ".join(f'"{label}"' for label in names)
        lines += [
            f"long long {name}_n_{way}(void) {{ return {len(names)}; }}",
            f"const char *{name}_name_{way}(long long i)",
            "{",
            f"    static const char *const names[{len(names)}] = {{{labels}}};",
            "    return names[i];",
            "}",
            f"const long long *{name}_sparsity_{way}(long long i)",
            "{",
            f"    static const long long shapes[{len(names)}][{widest}] = {{{dense}}};",
            "    return shapes[i];",
            "}",
        ]
    return [
        *lines,
        f"int {name}_work(long long *sz_arg, long long *sz_res, long long *sz_iw, long long *sz_w)",
        "{",
        f"    if (sz_arg) *sz_arg = {len(inputs)};",
        f"    if (sz_res) *sz_res = {len(results)};",
        "    if (sz_iw) *sz_iw = 0;",
        f"    if (sz_w) *sz_w = {size};",
        "    return 0;",
        "}",
    ]
