"""The tables of ``kernels.py``: on the screen, and as Markdown between the marks of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.kernels.verdict import Row, goals, name_of
from benchmarks.paper import docs as paper_docs
from benchmarks.shared.rivals import VARIANTS

ALGORITHMS = tuple(VARIANTS)
fill = paper_docs.fill


def line(row: Row) -> str:
    """A kernel beside Pinocchio."""
    text = f"{name_of(row):42s} {row['ns']:8.1f} {row['ns median']:8.1f}"
    if "ratio" in row:
        text += f"  {row['rival ns']:9.0f} {row['ratio']:6.1f}  {row['rival']}"
    return text


def print_tables(found: Sequence[Row]) -> None:
    """All but the verdict."""
    print(f"{'batch, a state':42s}       ns (median)  Pinocchio  ratio  its best")
    for row in found:
        print(line(row))
    print(
        "\nLimits, in cycles a tile (all lanes), and the assembly's vector instructions; what they"
        f" mean stands in limits.py\n{'':42s}  flops  of peak ceiling | measured   rows   fill"
        " unhindered multiplier divider   path | instructions spilled fetched"
    )
    for row in (x for x in found if "bounds" in x):
        b, a = row["bounds"], row.get("assembly")
        easy = f"{'':10s}" if b["unhindered"] is None else f"{b['unhindered']:10.0f}"
        text = f" | {a['instructions']:12d} {a['spilled']:7d} {a['fetched']:7d}" if a else ""
        print(
            f"{name_of(row):42s} {row['flops']:6d} {row['share of peak']:8.0%}"
            f" {row['ceiling']:7.0%} | {b['measured']:8.0f} {b['rows']:6.0f} {b['fill']:6.0f}"
            f" {easy} {b['multiplier']:10.0f} {b['divider']:7.0f} {b['path']:6.0f}{text}"
            f"\n{'':10s}{row['limit']}"
        )
    print(
        f"\n{'large batches, a state':42s}  states  bytes       ns  rows alone  memory alone"
        "\n(memory: so many bytes at the bandwidth of np.add over arrays of 64 MB)"
    )
    for row in (x for x in found if "large" in x):
        numbers = row["large"]
        print(
            f"{name_of(row):42s} {numbers['states']:7.0f} {numbers['bytes']:6.0f}"
            f" {numbers['ns']:8.1f} {numbers['rows ns']:11.1f} {numbers['memory ns']:13.1f}"
        )
    print(f"\n{'an operation (divisions weighed)':42s} operations      ps")
    for row in found:
        if row["algorithm"] in ("aba", "rnea"):
            print(f"{name_of(row):42s} {row['operations']:10.0f} {row['ps an operation']:7.1f}")
    print(f"\n{'one state a call, from Python, ns':42s} kernel    out=    rm.…     pin.…  rm/pin")
    for row in (x for x in found if "one ns" in x):
        single, checked = row["one ns"], row["one checked ns"]
        text = f"{name_of(row):42s} {single:6.0f} {row['one out ns']:7.0f} {checked:7.0f}"
        if "pin one ns" in row:
            text += f" {row['pin one ns']:9.0f} {checked / row['pin one ns']:7.2f}"
        print(text)
    print(f"\n{'making a kernel, s':42s} first use  from the cache")
    for row in found:
        print(f"{name_of(row):42s} {row['first use s']:9.2f} {row['cached s']:15.3f}")


# ---- Markdown ------------------------------------------------------------------------------------


def markdown(numbers: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/benchmarks.md, by the names of their marks."""
    rows: Sequence[Row] = numbers["kernels"]
    by_name = {name_of(row): row for row in rows}
    return {
        "machine": _machine(numbers),
        "kernels": _beside(rows),
        "limits": _limits(rows),
        "calls": _calls(rows),
        "goals": _goals(by_name),
    }


def _machine(numbers: Mapping[str, Any]) -> str:
    at = numbers["machine"]
    software = ", ".join(
        f"{n} {at[n]}"
        for n in ("robomodel", "Python", "numpy", "llvmlite", "LLVM", "pin")
        if n in at
    )
    spread = sorted(row["ns median"] / row["ns"] for row in numbers["kernels"])
    built = "; ".join(x.replace(", kept from an earlier run", "") for x in numbers["pinocchio"])
    return (
        f"{at['processor']}, {at['GHz']:.2f} GHz, {at['width']} doubles a vector,"
        f" {at['GFLOP/s']:.0f} GFLOP/s; {software}. Pinocchio: {built}."
        f" Batches of {numbers['states']} states, minimum of {numbers['rounds']} rounds"
        f" in {numbers.get('processes', 1)} process{'es' * (numbers.get('processes', 1) > 1)}"
        f" (a kernel's median is typically {100 * (spread[len(spread) // 2] - 1):.0f} % higher)."
    )


def _beside(rows: Sequence[Row]) -> str:
    """ns, and how many times longer Pinocchio takes by each compiler, its faster way."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        if row["robot"] not in lines:
            mechanism, tree = row["bodies"]
            lines[row["robot"]] = [
                f"{row['robot']} ({mechanism} / {tree})",
                *[""] * len(ALGORITHMS),
            ]
        cell = f"{row['ns']:.0f}"
        by: dict[str, float] = {}
        for name, ns in row.get("rivals ns", {}).items():
            compiler = "clang" if "clang" in name else "GCC"
            by[compiler] = min(ns, by.get(compiler, ns))
        if by:
            ratios = [f"{by[x] / row['ns']:.1f}" for x in ("clang", "GCC") if x in by]
            cell += " ({})".format(",\u00a0".join(ratios))  # no line break within
        lines[row["robot"]][1 + ALGORITHMS.index(row["algorithm"])] = cell
    head = ["robot (bodies here / in Pinocchio)", *(f"`{x}`" for x in ALGORITHMS)]
    return paper_docs.table(head, list(lines.values()))


def _limits(rows: Sequence[Row]) -> str:
    """What takes the time, as shares of it."""
    head = ["robot, function", "operations", "ns per state", "of peak", "copying rows", "`fill`",
            "multiplier alone", "same operations, independent",
            "spilled / reloaded / all vector instructions"]  # fmt: skip
    lines = []
    for row in rows:
        b, a = row.get("bounds"), row.get("assembly")
        if not (b and a):
            continue
        shares = [b["rows"], b["fill"], b["multiplier"], b["unhindered"]]
        lines.append([
            f"{row['robot']} `{row['algorithm']}`", str(row["flops"]), f"{row['ns']:.0f}",
            f"{row['share of peak']:.0%}",
            *("" if x is None else f"{x / b['measured']:.0%}" for x in shares),
            f"{a['spilled']} / {a['fetched']} / {a['instructions']}",
        ])  # fmt: skip
    return paper_docs.table(head, lines)


def _calls(rows: Sequence[Row]) -> str:
    """One state a call, in µs."""
    head = ["robot, function", "kernel", "kernel with `out=`", "`rm.…`", "`pin.…`", "`rm` / `pin`"]
    lines = []
    for row in (x for x in rows if "pin one ns" in x):
        names = ("one ns", "one out ns", "one checked ns", "pin one ns")
        ratio = row["one checked ns"] / row["pin one ns"]
        cells = [*(f"{row[x] / 1e3:.2f}" for x in names), f"{ratio:.2f}"]
        lines.append([f"{row['robot']} `{row['algorithm']}`", *cells])
    return paper_docs.table(head, lines)


def _goals(found: Mapping[str, Row]) -> str:
    """Those that this run can tell of; how long one waits depends on who else computes."""
    lines = [
        [goal.what, goal.bound, goal.measured, "met" if goal.met else goal.because]
        for goal in goals(found)
        if "first use" not in goal.what
    ]
    return paper_docs.table(["quantity", "goal", "measured", "if missed: what limits it"], lines)
