"""The tables of docs/paper.md, written between its marks from the results of ``paper.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from benchmarks.paper.experiments import CHAINS, LEG_METHODS, METHODS, Row, growth
from benchmarks.paper.published import EXPONENTS, NANOSECONDS, PERCENT, SYSTEMS, TABLES

MARK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SAME = 5.0  # percent, up to which equal programs are seen to differ


def fill(text: str, tables: Mapping[str, str]) -> str:
    """The text with every table in its place; ValueError unless each has exactly one."""
    places = [name for _, name, _ in MARK.findall(text)]
    if sorted(places) != sorted(tables):
        raise ValueError(f"tables {sorted(tables)} do not fit the marks {sorted(places)}")
    return MARK.sub(lambda m: f"{m[1]}\n{tables[m[2]]}\n\n{m[3]}", text)


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """All tables as Markdown, by the names of their marks."""
    robots = [Row(**row) for row in results["robots"]]
    chains = [Row(**row) for row in results["chains"]]
    texts = {algorithm: against_paper(robots, algorithm) for algorithm in TABLES}
    return texts | {
        "results": summary(robots, results["leg"]),
        "machine": machine(results["machine"], [*robots, *chains]),
        "growth": exponents(chains),
        "lengths": lengths(chains),
        "depth": depth(chains),
        "blocks": blocks(results["blocks"], robots),
        "leg": leg(results["leg"]),
        "errors": errors(results["errors"]),
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> str:
    """A Markdown table, words to the left and numbers to the right; ``words``: of words alone."""
    lines = [head, ["---", *["---" if words else "---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary(rows: Sequence[Row], torques: Sequence[Mapping[str, Any]]) -> str:
    """What the paper finds and what is found here, in a line each."""
    ns = {(row.algorithm, row.method, row.system): row.ns for row in rows}

    def here(algorithm: str, method: str) -> list[float]:
        return [percent(ns[algorithm, method, x], ns[algorithm, "cluster", x]) for x in SYSTEMS]

    inverse = "inverse dynamics (table II): projection compared with clusters"
    why = "the paper's difference is overhead of small matrices"
    lines = [[inverse, span(PERCENT["rnea", "projection"]),
              f"same operations; {why} ([measured](#overhead-of-small-matrices))"]]  # fmt: skip
    for what, algorithm, method in (
        ("forward dynamics (table III): projection compared with clusters", "aba", "projection"),
        ("forward dynamics: Lagrange multipliers compared with clusters", "aba", "lagrange"),
        ("inverse operational-space inertia (table IV): projection compared with clusters",
         "efpa", "projection"),
        ("forward dynamics: approximation by armature compared with clusters", "aba",
         "approximate"),
    ):  # fmt: skip
        lines.append([what, span(PERCENT[algorithm, method]), span(here(algorithm, method))])
    worst = [max(row[name] / row["peak"] for row in torques) for name in LEG_METHODS[:2]]
    lines += [
        ["growth with the number of links (figures 11, 13)", "clusters linear",
         "clusters linear; projection and multipliers approach cubic"],
        ["errors of torques without rotors, one leg (figure 14)", "amplitudes not published",
         f"up to {100 * worst[0]:.0f} % of a joint's largest torque without rotors, up to"
         f" {100 * worst[1]:.0f} % with armature"],
    ]  # fmt: skip
    return table(["experiment", "in the paper", "here"], lines, words=True)


def span(percents: Sequence[float]) -> str:
    """From the least to the largest."""
    least, most = round(min(percents)), round(max(percents))
    if least >= 0:
        return f"{least} to {most} % slower"
    if most <= 0:
        return f"{-most} to {-least} % faster"
    return f"from {-least} % faster to {most} % slower"


def machine(facts: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Where and how it was measured, and how steady that machine was."""
    spread = sorted(row.median / row.ns for row in rows if row.ns and row.median)
    software = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    loads = " and ".join(f"{x:.1f}" for x in facts["load"])
    clocks = " and ".join(f"{x:.2f}" for x in facts["GHz"])
    worst = max(row.difference or 0.0 for row in rows)
    noise = 100.0 * (spread[len(spread) // 2] - 1.0)
    return (
        f"{facts['processor']}, {facts['cores']} cores, one of them used; {clocks} GHz before"
        f" and after the run, load average {loads} (this run counts as one). {software}.\n"
        f"Batches of {facts['states']} states, minimum of {facts['rounds']} rounds in which all"
        f" methods on one system alternate, in {processes(facts)};"
        f" a method's median is typically {noise:.0f} % above its minimum."
        f" The run took {facts['minutes']:.0f} minutes.\n"
        f"Results of the exact methods differ from the cluster algorithm's by {worst:.0e} at most,"
        " relative to the largest number of a state."
    )


def processes(facts: Mapping[str, Any]) -> str:
    """In how many processes it was measured."""
    count = facts.get("processes", 0)
    return f"each of {count} fresh processes" if count else "one process"


# ---- tables II to IV -----------------------------------------------------------------------------


def against_paper(rows: Sequence[Row], algorithm: str) -> str:
    """One of the paper's tables: percent relative to the cluster algorithm; and what differs."""
    by_method = {(row.system, row.method): row for row in rows if row.algorithm == algorithm}
    exact = [by_method[name, "cluster"] for name in SYSTEMS]
    lines = [
        ["cluster, ns per state", *(f"{row.ns:.0f}" for row in exact)],
        ["cluster, authors' C++, ns per state", *(f"{x:.0f}" for x in NANOSECONDS[algorithm])],
        ["cluster, operations", *(str(row.flops) for row in exact)],
    ]
    for method in (m for m in METHODS[algorithm] if m != "cluster"):
        measured = [by_method[name, method] for name in SYSTEMS]
        times = [percent(a.ns, b.ns) for a, b in zip(measured, exact, strict=True)]
        flops = [percent(a.flops, b.flops) for a, b in zip(measured, exact, strict=True)]
        lines.append([f"**{method}**, time", *(f"**{x:+.0f} %**" for x in times)])
        lines.append([f"{method}, operations", *(f"{x:+.0f} %" for x in flops)])
        published = PERCENT.get((algorithm, method))
        if published:
            lines.append([f"{method}, time in the paper", *(f"{x:+.0f} %" for x in published)])
    differing = [f"- {line}" for line in differences(by_method, algorithm)]
    return "\n".join(
        [
            table(["method, quantity", *SYSTEMS], lines),
            "",
            *(differing or ["Signs and order agree."]),
        ]
    )


def percent(x: float | None, y: float | None) -> float:
    """How much more x is than y."""
    assert x is not None
    assert y is not None
    return 100.0 * (x / y - 1.0)


def differences(found: Mapping[tuple[str, str], Row], algorithm: str) -> Iterator[str]:
    """Where the paper has another sign or another order of the methods."""
    for (of, method), published in PERCENT.items():
        if of != algorithm:
            continue
        other, none = [], []
        for name, theirs in zip(SYSTEMS, published, strict=True):
            ours = percent(found[name, method].ns, found[name, "cluster"].ns)
            if abs(ours) <= SAME:
                none.append(name)
            elif ours * theirs < 0.0:
                other.append(f"{name} ({ours:+.0f} %)")
        slower = "slower" if published[0] > 0.0 else "faster"
        if none:
            yield (
                f"{method} is {slower} in the paper; here the difference is at most {SAME:g} % on"
                f" {', '.join(none)}."
            )
        if other:
            yield f"{method} is {slower} in the paper, and the opposite here: {', '.join(other)}."
    methods = [m for m in ("approximate", "cluster", "projection", "lagrange")
               if (SYSTEMS[0], m) in found]  # fmt: skip
    orders: dict[str, list[str]] = {}
    for name in SYSTEMS:
        times = {m: found[name, m].ns for m in methods}
        if all(percent(times[b], times[a]) >= -SAME for a, b in combinations(methods, 2)):
            continue  # the paper's
        here = sorted(methods, key=lambda m: times[m] or 0.0)
        text = here[0]
        for a, b in pairwise(here):
            text += f" {'≈' if percent(times[b], times[a]) <= SAME else '<'} {b}"
        orders.setdefault(text, []).append(name)
    for text, names in orders.items():
        yield f"order of times on {', '.join(names)}: {text}."


def blocks(rows: Sequence[Mapping[str, Any]], robots: Sequence[Row]) -> str:
    """Inverse dynamics over dense blocks, by compilers; ours beside it."""
    by_system = {
        row.system: row for row in robots if (row.algorithm, row.method) == ("rnea", "cluster")
    }
    names = list(rows[0]["ns"]) if rows else []
    lines = []
    for row in rows:
        first = row["ns"][names[0]]
        shares = [f"{row['ns'][x]:.0f} ({percent(row['ns'][x], first):+.0f} %)" for x in names[1:]]
        lines.append([f"{row['system']}, {row['compiler']}", f"{first:.0f}", *shares,
                      f"{by_system[row['system']].ns:.0f}"])  # fmt: skip
    return table(["ns per state", *names, "kernel of this package"], lines)


# ---- chains --------------------------------------------------------------------------------------


def exponents(rows: Sequence[Row]) -> str:
    """Growth with the number of links: of our times and operations, and of the authors' times."""
    head = [
        "chain, algorithm, method",
        "time, 12 to 24 links",
        "authors' time, 12 to 24 links",
        "operations, 12 to 24 links",
        "operations, from 24 links",
        "time, from 24 links",
    ]
    lines = []
    for (algorithm, kind, method), authors in EXPONENTS.items():
        chosen = [r for r in rows if (r.algorithm, r.system, r.method) == (algorithm, kind, method)]
        ranges = [growth(chosen, "ns", 12, 24), (authors, 0, 0), growth(chosen, "flops", 12, 24),
                  growth(chosen, "flops", 24), growth(chosen, "ns", 24)]  # fmt: skip
        cells = ["" if fit is None else f"{fit[0]:.2f}" for fit in ranges]
        for n in (3, 4):
            if (fit := ranges[n]) is not None:
                cells[n] += f" (to {fit[2]})"
        lines.append([f"{CHAINS[kind]}, {algorithm}, {method}", *cells])
    return table(head, lines)


def lengths(rows: Sequence[Row]) -> str:
    """Times of the exact methods relative to the cluster algorithm, by the number of links."""
    links = sorted({row.links for row in rows if row.system == "geared"})
    lines = []
    for kind in ("geared", "belt"):
        for algorithm in ("aba", "efpa"):
            by_method = {(r.links, r.method): r for r in rows
                     if (r.system, r.algorithm) == (kind, algorithm)}  # fmt: skip
            name = f"{CHAINS[kind]}, {algorithm}"
            cluster = [by_method[n, "cluster"] for n in links]
            lines.append([f"{name}, cluster, µs", *(f"{r.ns / 1e3:.3g}" for r in cluster if r.ns)])
            for method in METHODS[algorithm]:
                if method not in ("projection", "lagrange"):
                    continue
                for quantity in ("ns", "flops"):
                    cells = []
                    for n, exact in zip(links, cluster, strict=True):
                        row = by_method.get((n, method))
                        value = None if row is None else getattr(row, quantity)
                        cells.append("" if value is None else
                                     f"{value / getattr(exact, quantity):.2f}")  # fmt: skip
                    what = {"ns": "time", "flops": "operations"}[quantity]
                    lines.append([f"{name}, {method}, {what}", *cells])
    return table(["links", *(str(n) for n in links)], lines)


def depth(rows: Sequence[Row]) -> str:
    """C-EFPA of one frame at the tip, by depth: operations and time, and the growth of both."""
    chosen = [row for row in rows if (row.algorithm, row.method) == ("efpa", "cluster")]
    links = sorted({row.links for row in chosen if row.system == "plain"})
    lines = []
    for kind in CHAINS:
        by = {row.links: row for row in chosen if row.system == kind}
        for quantity, name in (("flops", "operations"), ("ns", "ns")):
            cells = [f"{getattr(by[n], quantity):.0f}" for n in links]
            fit = growth(list(by.values()), quantity, links[0])
            lines.append(
                [f"{CHAINS[kind]}, {name}", *cells, "" if fit is None else f"{fit[0]:.2f}"]
            )
    return table(["links", *(str(n) for n in links), "exponent"], lines)


# ---- errors --------------------------------------------------------------------------------------


def leg(rows: Sequence[Mapping[str, Any]]) -> str:
    """Figure 14's errors: root mean square, and as a share of the joint's largest torque."""
    names = ("unconstrained", "approximate", "approximate, rotors' mass dropped")
    lines = [
        [
            f"`{row['joint']}`",
            f"{row['peak']:.2f}",
            *(f"{row[m]:.3f} ({100 * row[m] / row['peak']:.1f} %)" for m in LEG_METHODS),
        ]
        for row in rows
    ]
    return table(["joint", "largest torque, N m", *(f"error, {name}" for name in names)], lines)


def errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Errors of the open trees, median and largest of all states, in percent."""
    head = ["robot", *(f"{what}, {method}" for what in ("torques", "accelerations")
                  for method in ("approximate", "unconstrained"))]  # fmt: skip
    lines = [
        [
            row["system"],
            *(
                " / ".join(shown(x) for x in row[f"{algorithm} {method}"])
                for algorithm in ("rnea", "aba")
                for method in ("approximate", "unconstrained")
            ),
        ]
        for row in rows
    ]
    return table(head, lines)


def shown(x: float) -> str:
    """Percent, two digits; what is rounding is called so."""
    if x < 1e-8:
        return "rounding" if x else "0"
    if 1e2 <= x < 1e4:
        return f"{float(f'{x:.2g}'):.0f} %"
    return f"{x:.2g} %" if 1e-3 <= x < 1e2 else f"{x:.0e} %"
