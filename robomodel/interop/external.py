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
    """C source of the function and, where it has one, of its Jacobian."""
    arguments = dict(zip((f"x{k}" for k in range(len(names))), what.sizes, strict=True))
    results = what.routine.results
    total = sum(what.sizes)
    value = CFunction("robot_value", what.value.program, arguments, {"y": what.size})
    files = [*preamble("float64"), "", *value.definition(), ""]
    shapes: Shapes = {name: (*shape, 1, 1)[:2] for name, shape in results.items()}
    given: Shapes = {name: (size, 1) for name, size in zip(names, what.sizes, strict=True)}
    at, places = 0, []
    for rows, columns in shapes.values():  # by rows there, by columns here
        places.append([at + i * columns + j for j in range(columns) for i in range(rows)])
        at += rows * columns
    files += _function(what.name, given, shapes, len(given), "robot_value", places, what.size)
    if what.obstacle is None:
        slopes = CFunction("robot_slopes", what.slopes.program, arguments,
                           {"y": what.size * total})  # fmt: skip
        files += ["", *slopes.definition(), ""]
        blocks: dict[str, tuple[int, ...]] = {}
        own = []
        for (result, shape), entries in zip(shapes.items(), places, strict=True):
            first = 0
            for name, (size, _) in given.items():
                blocks[f"jac_{result}_{name}"] = (math.prod(shape), size)
                own.append([i * total + first + j for j in range(size) for i in entries])
                first += size
        nominal = {**given, **{f"out_{name}": shape for name, shape in shapes.items()}}
        files += _function(f"jac_{what.name}", nominal, blocks, len(given), "robot_slopes", own,
                           what.size * total)  # fmt: skip
        if what.second_obstacle is None:
            files += _curved(what, arguments, given, nominal, blocks, own)
    return "\n".join(files) + "\n"


def _curved(
    what: Differentiable, arguments: Mapping[str, int], given: Shapes, nominal: Shapes,
    blocks: Shapes, own: Sequence[Sequence[int]],
) -> list[str]:  # fmt: skip
    """The Jacobian's Jacobian: each result's Hessian, one after the other."""
    total, size = sum(what.sizes), what.size
    weighted = CFunction("robot_curvature", what.curvature.program, {**arguments, "e": size},
                         {"y": total**2})  # fmt: skip
    passed = ", ".join(arguments)
    lines = [
        *weighted.definition(),
        f"static void robot_bent({', '.join(f'const double *{x}' for x in arguments)}, double *w)",
        "{",
        f"    for (int i = 0; i < {size}; ++i) {{",
        f"        double e[{size}] = {{0}};",
        "        e[i] = 1.0;",
        f"        robot_curvature({passed}, e, w + {total**2} * i);",
        "    }",
        "}",
    ]
    shapes: dict[str, tuple[int, ...]] = {}
    places: list[list[int]] = []
    for (block, shape), entries in zip(blocks.items(), own, strict=True):
        first = 0
        for name, (rows, columns) in nominal.items():
            label = f"jac_{block}_{name}"
            if name in given:
                shapes[label] = (math.prod(shape), rows)
                places.append([total * x + first + j for j in range(rows) for x in entries])
                first += rows
            else:  # on which it does not depend
                shapes[label] = (math.prod(shape), rows * columns, 0)
                places.append([])
    outer = {**nominal, **{f"out_{block}": shape for block, shape in blocks.items()}}
    lines += _function(f"jac_jac_{what.name}", outer, shapes, len(given), "robot_bent", places,
                       size * total**2)  # fmt: skip
    return ["", *lines]


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
