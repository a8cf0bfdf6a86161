"""Robots in simulators beside the exact model: the matrix of docs/simulators.md.

    python -m benchmarks.simulators [--own | --files LIST] [SIMULATOR...]

runs the simulators that are installed (all, or those that are named), each format that they read,
on the shipped robots, or on those of the folder robots beside this file, or on files, one a line of
LIST, keeps what is found in simulators.json beside this file, and writes the matrix into the page.
Simulators may be installed in different environments: each run replaces the rows of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import robomodel as rm
from robomodel.errors import MissingPackageError
from robomodel.reports.comparison.in_simulator import (
    ADAPTERS,
    ENDINGS,
    compare_in,
    import_simulator,
)
from robomodel.simulators import PROGRAMS, Format, Simulator
from robomodel.simulators.beside import percent
from robomodel.writing import write_for

RESULTS = Path(__file__).parent / "simulators.json"
PAGE = Path(__file__).parent.parent / "docs" / "simulators.md"
OWN = Path(__file__).parent / "robots"
OWN_HEAD = "Mechanisms of single kinds, files of `benchmarks/robots`:"
BEGIN, END = "<!-- matrix: python -m benchmarks.simulators -->", "<!-- end of matrix -->"
SAMPLES = 3
Results = dict[str, dict[str, dict[str, Any]]]


def measured(model: rm.Model, simulator: Simulator, form: Format) -> dict[str, Any]:
    """What a simulator makes of a robot in a file of this format that is written for it."""
    import_simulator(simulator)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"robot{ENDINGS[form]}"
        try:
            write_for(model, simulator, form, path)
        except ValueError as error:
            return {"written": str(error).partition("cannot say: ")[2].partition(" (drop")[0][:150]}
        found = compare_in(model, simulator, path, samples=SAMPLES, advised=True, explain=False)
    kinds = {each.quantity: each.error for each in found.differences}
    if "file" in kinds:
        return {"refused": re.sub(r"\S*/\S*", "…", found.verdict)[:150]}
    free = kinds.get("freedoms", 0.0)
    return {
        "version": found.version,
        "error": found.error if math.isfinite(found.error) else None,
        "freedoms": free,
        "same": found.same,
        "causes": sorted({each.concerns for each in found.causes}),
    }


def models(paths: Sequence[str]) -> Iterator[tuple[str, rm.Model]]:
    """Robots by name, shipped ones' or a file's with its folder's."""
    for name in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                shipped = name in rm.robots.names()
                model = rm.robots.load(name) if shipped else rm.load(name)
            except (ValueError, ImportError) as error:
                print(f"{name}: not loaded: {str(error)[:150]}")
                continue
        yield "/".join(Path(name).parts[-2:]).removeprefix("robots/"), model


def run(simulators: Sequence[Simulator], part: str, paths: Sequence[str]) -> None:
    """Measure, and keep the results after each simulator."""
    for simulator in simulators:
        rows: dict[str, dict[str, Any]] = {}
        for name, model in models(paths):
            for form in PROGRAMS[simulator].formats:
                start = time.perf_counter()
                try:
                    cell = measured(model, simulator, form)
                except MissingPackageError as error:
                    print(error)
                    break
                rows.setdefault(name, {})[f"{simulator} {form}"] = cell
                seconds = time.perf_counter() - start
                print(f"{simulator} {form} {name}: {shown(cell)} ({seconds:.1f} s)", flush=True)
        results: Results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        for name, cells in rows.items():
            results.setdefault(part, {}).setdefault(name, {}).update(cells)
        text = json.dumps(results, indent=1, sort_keys=True)
        RESULTS.write_text(text + "\n", "utf-8")


def shown(cell: Mapping[str, Any] | None) -> str:
    """A cell of the matrix."""
    if cell is None:
        return ""
    if "written" in cell:
        return "not written"
    if "refused" in cell:
        return "refused"
    if cell["same"]:
        return "exact"
    size = "no motion" if cell["error"] is None else percent(cell["error"])
    size = size.removesuffix(" themselves")
    if cell["error"] == 0.0 and not cell["freedoms"]:
        return "other limits"
    return f"{size}, {cell['freedoms']:+.0f} freedoms" if cell["freedoms"] else size


def matrix(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The rows as a table in Markdown, a column for each simulator and format."""
    heads = {
        f"{name} {form}": f"{PROGRAMS[name].title} {form.upper()}"
        for name in ADAPTERS
        for form in PROGRAMS[name].formats
        if any(f"{name} {form}" in cells for cells in rows.values())
    }
    lines = [f"| robot | {' | '.join(heads.values())} |", "|---" * (len(heads) + 1) + "|"]
    for name, cells in sorted(rows.items()):
        lines.append(f"| {name} | {' | '.join(shown(cells.get(each)) for each in heads)} |")
    return "\n".join(lines)


def with_matrix(text: str, results: Results) -> str:
    """The page with the matrices between its marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    heads = {"shipped": "", "own": f"{OWN_HEAD}\n\n", "public": "Public files:\n\n"}
    parts = [head + matrix(results[part]) for part, head in heads.items() if part in results]
    return f"{head}{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}{tail}"


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("simulators", nargs="*", default=[], metavar="SIMULATOR")
    parser.add_argument("--files", type=Path, default=None, metavar="LIST")
    parser.add_argument("--own", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.simulators).difference(ADAPTERS):
        parser.error(f"simulators are {', '.join(ADAPTERS)}, not {', '.join(sorted(unknown))}")
    part, paths = "shipped", list(rm.robots.names())
    if options.files is not None:
        part, paths = "public", options.files.read_text("utf-8").split()
    elif options.own:
        part, paths = "own", [str(path) for path in sorted(OWN.glob("*.urdf"))]
    run([each for each in ADAPTERS if each in (options.simulators or ADAPTERS)], part, paths)
    results: Results = json.loads(RESULTS.read_text("utf-8"))
    PAGE.write_text(with_matrix(PAGE.read_text("utf-8"), results), "utf-8")


if __name__ == "__main__":
    main()
