"""The tables of docs/orders.md, written between its marks from the results of ``orders.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.orders.experiments import SCALAR, Row
from benchmarks.paper.docs import table
from benchmarks.paper.experiments import growth

ROBOTS = {"puma": "PUMA 560", "arm": "7-axis arm", "cheetah": "Mini Cheetah"}
GROWING = 8  # links from which growth is fitted


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """All tables as Markdown, by the names of their marks."""
    robots = [Row(**row) for row in results["robots"]]
    chains = [Row(**row) for row in results["chains"]]
    texts = {mark: robot([r for r in robots if r.system == name]) for mark, name in ROBOTS.items()}
    return texts | {
        "machine": machine(results["machine"], [*robots, *chains]),
        "operations": by_links(chains, "operations"),
        "times": by_links(chains, "ns"),
        "errors": by_links(chains, "error"),
        "search": search(results["search"]),
        "found": found(results["search"]),
        "serial": serial(results["serial"]),
        "zero": zero(results["zero fill"]),
        "graphs": graphs(results["factor graphs"]),
        "goals": goals([row for row in robots if row.system == ROBOTS["puma"]]),
    }


def machine(facts: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Where and how it was measured, and how steady that machine was."""
    spread = sorted(row.median / row.ns for row in rows if row.ns and row.median)
    software = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    loads = " and ".join(f"{x:.1f}" for x in facts["load"])
    clocks = " and ".join(f"{x:.2f}" for x in facts["GHz"])
    worst = max(row.error for row in rows if row.error is not None)
    return (
        f"{facts['processor']}, {facts['cores']} cores, one of them used; {clocks} GHz before"
        f" and after the run, load average {loads}. {software}. The 7-axis arm is {facts['arm']}.\n"
        f"Programs run on batches of {facts['states']} states, matrix solvers on batches of"
        f" {facts['singles']}. Times are the minimum of {facts['rounds']} rounds in which all"
        f" programs of one robot alternate; medians are typically"
        f" {100 * (spread[len(spread) // 2] - 1):.0f} % higher."
        f" The run took {facts['minutes']:.1f} minutes.\nNo acceleration has a backward error above"
        f" {worst:.0e}."
    )


def robot(rows: Sequence[Row]) -> str:
    """One robot: operations and times."""
    head = ["algorithm", "×", "+", "÷", "operations", "sin, cos", "ns per state",
            "backward error"]  # fmt: skip
    return table(head, [
        [
            row.name,
            *("" if x is None else str(x)
              for x in (row.mul, row.add, row.div, row.operations, row.trig)),
            number(row.ns),
            "" if row.error is None else f"{row.error:.0e}",
        ]
        for row in rows
    ])  # fmt: skip


def number(x: float | None) -> str:
    """Nanoseconds with three digits."""
    return "" if x is None else f"{float(f'{x:.3g}'):,.0f}" if x >= 100 else f"{x:.3g}"


def by_links(rows: Sequence[Row], quantity: str) -> str:
    """A quantity of every program by the number of links, and its growth."""
    shown = {"operations": str, "ns": number, "error": lambda x: f"{x:.0e}"}[quantity]
    links = sorted({row.links for row in rows})
    lines = []
    for name in dict.fromkeys(row.name for row in rows):
        by_size = {row.links: row for row in rows if row.name == name}
        values = [getattr(by_size[n], quantity) if n in by_size else None for n in links]
        if all(x is None for x in values):
            continue
        line = [name, *("" if x is None else shown(x) for x in values)]
        if quantity != "error":
            fit = growth(list(by_size.values()), quantity, GROWING)
            line.append("" if fit is None else f"{fit[0]:.2f}")
        lines.append(line)
    growing = [] if quantity == "error" else [f"growth exponent from {GROWING} links"]
    return table(["links", *map(str, links), *growing], lines)


def search(rows: Sequence[Mapping[str, Any]]) -> str:
    """How annealing went."""
    head = [
        "robot",
        "ABA",
        "CRBA + LDLᵀ",
        "cheapest named order",
        "found by the search",
        "relative to the cheaper recursion",
        "found at step",
        "of steps",
        "seconds",
    ]
    return table(head, [
        [
            row["system"],
            str(row["core"]["ABA"]),
            str(row["core"]["CRBA + LDLᵀ"]),
            f"{row['named']} ({row['best named']})",
            f"**{row['found']}**",
            f"{100 * (row['found'] / cheaper(row) - 1):+.1f} %",
            str(row["at"]),
            str(row["steps"]),
            f"{row['seconds']:.0f}",
        ]
        for row in rows
    ])  # fmt: skip


def cheaper(row: Mapping[str, Any]) -> int:
    """Operations of the core's cheaper recursion."""
    return min(row["core"][name] for name in ("ABA", "CRBA + LDLᵀ"))


def found(rows: Sequence[Mapping[str, Any]]) -> str:
    """The orders found, the arms' written out."""
    parts = []
    for row in rows:
        if len(row["variables"]) > 30:
            continue
        how = f'split "{row["split"]}"{", bias first" if row["bias_first"] else ""}'
        parts.append(f"{row['system']} ({how}):\n`{' '.join(row['variables'])}`")
    return "\n\n".join(parts)


def serial(rows: Sequence[Mapping[str, Any]]) -> str:
    """Document 003's figure 1, counted elementwise as published, and correctly."""
    head = [
        "links",
        "ABA, closed form",
        "permuted LU, counted elementwise",
        "÷ ABA",
        "permuted LU, counted correctly",
        "÷ ABA",
        "without net forces",
        "without net forces, traced",
        "ABA of this package",
        "CRBA + LDLᵀ of this package",
    ]
    return table(head, [
        [
            str(r["links"]),
            str(r["closed form"]),
            str(r["elementwise"]),
            f"{r['elementwise'] / r['closed form']:.2f}",
            str(r["counted"]),
            f"**{r['counted'] / r['closed form']:.2f}**",
            *(str(r[k]) for k in ("without", "traced", "ABA", "CRBA + LDLᵀ")),
        ]
        for r in rows
    ])  # fmt: skip


def zero(rows: Sequence[Mapping[str, Any]]) -> str:
    """Zero-fill permutations of inverse dynamics."""
    head = ["links", "unknowns", "entries of D", "fill", "operations of the solution",
            "RNEA of this package"]  # fmt: skip
    keys = ("links", "unknowns", "entries", "fill", "counted", "RNEA")
    return table(head, [[str(row[key]) for key in keys] for row in rows])


def graphs(rows: Sequence[Mapping[str, Any]]) -> str:
    """Document 001's tables I and II, the paper's times and GTSAM's of today, in µs."""
    if not rows:
        return "GTSAM is not installed (`pip install gtsam`)."
    columns = list(dict.fromkeys((row["system"], row["noise"]) for row in rows))
    head = ["problem, order", "published, µs"]
    for system, noise in columns:
        head += [f"{system}, {noise}, µs", "error"]
    by_case = {(r["problem"], r["order"], r["system"], r["noise"]): r for r in rows}
    paper = {(row["problem"], row["order"]): row["paper"] for row in rows}
    lines = []
    for (problem, order), theirs in paper.items():
        line = [f"{problem}, {order}", f"{theirs:g}"]
        for column in columns:
            row = by_case[problem, order, *column]
            line += [f"{row['ns'] / 1e3:.1f}", f"{row['error']:.0e}"]
        lines.append(line)
    for problem, slow in (("inverse", "rnea"), ("forward", "aba")):
        line = [f"{problem}, {slow} ÷ COLAMD",
                f"{paper[problem, slow] / paper[problem, 'COLAMD']:.1f}"]  # fmt: skip
        for column in columns:
            ratio = (
                by_case[problem, slow, *column]["ns"] / by_case[problem, "COLAMD", *column]["ns"]
            )
            line += [f"**{ratio:.2f}**", ""]
        lines.append(line)
    return table(head, lines)


def goals(rows: Sequence[Row]) -> str:
    """The counts of an earlier study at scalar level, and these."""
    operations = {row.name: row.operations for row in rows}
    goal = {"ABA": 808, "CRBA + LDLᵀ": 698, SCALAR: 1197, "searched": 661}
    return table(["PUMA 560, operations", "scalar prototype", "this package"],
                 [[name, str(x), str(operations[name])] for name, x in goal.items()])  # fmt: skip
