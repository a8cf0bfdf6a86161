"""A robot's functions as compiled externals of CasADi's, with their Jacobians.

C source of the programs (:mod:`robomodel.kernels.c`), and what CasADi calls: its interface for
external functions, in which arguments and results are columns, and a function's Jacobian is another
function of the same file, ``jac_`` before its name.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from robomodel.interop.differentiable import Differentiable
from robomodel.kernels.c import CFunction, preamble

if TYPE_CHECKING:
    import casadi

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
COMPILERS = ("cc", "gcc", "clang")


def compiler() -> str | None:
    """The C compiler here: ``$CC``, or one by its usual names; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", ""), *COMPILERS))), None)


def external(what: Differentiable, names: Sequence[str]) -> casadi.Function:
    """A ``casadi.Function`` of compiled code; ``names`` of the arguments.

    Its Jacobian is what :mod:`robomodel.interop.differentiable` says. RuntimeError without a
    compiler, or where it fails.
    """
    import casadi

    found = compiler()
    if found is None:
        raise RuntimeError(
            "compiled functions for CasADi need a C compiler (set CC); without compiled=True none "
            "is needed"
        )
    with tempfile.TemporaryDirectory() as folder:  # what is loaded stays when its file goes
        source, library = Path(folder, "robot.c"), Path(folder, "robot.so")
        source.write_text(written(what, names), encoding="utf-8")
        command = [found, "-std=c99", "-O2", "-march=native", "-shared", "-fPIC", str(source)]
        said = subprocess.run([*command, "-o", str(library), "-lm"], capture_output=True, text=True,
                              check=False)  # fmt: skip
        if said.returncode:
            raise RuntimeError(f"{found} does not compile '{what.name}': {said.stderr[-500:]}")
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
    name: str, given: Shapes, results: Shapes,
    used: int, called: str, places: Sequence[Sequence[int]], size: int,
) -> list[str]:  # fmt: skip
    """What CasADi calls: arguments and results may be missing; all else is said beside."""
    most = max(math.prod(shape) for shape in given.values())
    lines = [
        f"int {name}(const double **arg, double **res, long long *iw, double *w, int mem)",
        "{",
        f"    static const double zeros[{most}] = {{0}};",
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
    for way, known in (("in", given), ("out", results)):
        shapes = [_sparsity(shape) for shape in known.values()]
        widest = max(map(len, shapes))
        dense = ", ".join("{" + ", ".join(map(str, shape)) + "}" for shape in shapes)
        labels = ", ".join(f'"{label}"' for label in known)
        lines += [
            f"long long {name}_n_{way}(void) {{ return {len(known)}; }}",
            f"const char *{name}_name_{way}(long long i)",
            "{",
            f"    static const char *const names[{len(known)}] = {{{labels}}};",
            "    return names[i];",
            "}",
            f"const long long *{name}_sparsity_{way}(long long i)",
            "{",
            f"    static const long long shapes[{len(known)}][{widest}] = {{{dense}}};",
            "    return shapes[i];",
            "}",
        ]
    return [
        *lines,
        f"int {name}_work(long long *sz_arg, long long *sz_res, long long *sz_iw, long long *sz_w)",
        "{",
        f"    if (sz_arg) *sz_arg = {len(given)};",
        f"    if (sz_res) *sz_res = {len(results)};",
        "    if (sz_iw) *sz_iw = 0;",
        f"    if (sz_w) *sz_w = {size};",
        "    return 0;",
        "}",
    ]
