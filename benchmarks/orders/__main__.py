"""Elimination orders: operations and times beside recursions and sparse solvers, and the search.

``python -m benchmarks.orders`` measures forward dynamics of a PUMA 560, a 7-axis arm, Mini Cheetah
and serial chains in every order, and does the experiments of documents 001 and 003 again; tables
go on the screen. ``--json FILE`` keeps the results, ``--from FILE`` takes those of an earlier run.
``--docs`` writes results and tables into docs/. ``--quick`` is a smoke run. GTSAM takes part where
it is installed (``pip install gtsam``), KUKA's arm where ``pybullet_data`` is.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.orders import docs as orders_docs
from benchmarks.orders import experiments
from benchmarks.paper import docs as paper_docs
from benchmarks.paper.__main__ import clock
from benchmarks.shared.machine import processor, versions
from robomodel.papers.elimination_orders import as_order

DOCS = Path(__file__).parents[2] / "docs"


def measure(effort: experiments.Effort) -> dict[str, Any]:
    """All experiments; what goes into the results' file."""
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - start:4.0f} s] {what}", flush=True)

    facts = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "versions": versions() | installed("scipy", "gtsam"),
        "arm": experiments.arm()[1],
        "states": effort.states,
        "singles": effort.singles,
        "rounds": effort.rounds,
        "GHz": [clock()],
        "load": [os.getloadavg()[0]],
    }
    say(f"{facts['processor']}, {facts['GHz'][0]:.2f} GHz, load average {facts['load'][0]:.1f}")
    models = experiments.robots()
    searched, reports = {}, []
    for name, steps in effort.searched:

        def progress(step: int, fewest: int, name: str = name, steps: int = steps) -> None:
            if step % max(1, steps // 5) == 0:
                say(f"search, {name}: {fewest} operations after {step} of {steps} steps")

        searched[name], report = experiments.search(models[name], steps, progress)
        reports.append({"system": name, **report})
    robots: list[experiments.Row] = []
    for name, model in models.items():
        orders = {order: as_order(model, order) for order in experiments.ORDERS}
        orders["searched"] = searched[name]
        robots += experiments.speed(name, 0, model, orders, effort)
        say(f"times, {name}: {len(orders)} orders")
    chains: list[experiments.Row] = []
    for links in effort.links:
        model = experiments.chain(links)
        orders = {order: as_order(model, order) for order in experiments.CHAIN_ORDERS}
        chains += experiments.speed("chain", links, model, orders, effort)
        say(f"times, chain of {links}: {len(orders)} orders")
    serial = [experiments.serial(links) for links in effort.serial]
    say("document 003's chain")
    zero = [experiments.zero_fill(links) for links in effort.zero_fill]
    say("zero-fill permutations")
    graphs = []
    if experiments.gtsam is not None:
        for name in ("PUMA 560", "7-axis arm"):
            rows = experiments.factor_graphs(models[name], effort)
            graphs += [{"system": name, **row} for row in rows]
            say(f"factor graphs, {name}")
    else:
        say("no factor graphs: gtsam is not installed")
    facts["GHz"].append(clock())
    facts["load"].append(os.getloadavg()[0])
    facts["minutes"] = (time.perf_counter() - start) / 60.0
    say("all done")
    return {
        "machine": facts,
        "search": reports,
        "robots": [asdict(row) for row in robots],
        "chains": [asdict(row) for row in chains],
        "serial": serial,
        "zero fill": zero,
        "factor graphs": graphs,
    }


def installed(*names: str) -> dict[str, str]:
    """Versions of those that are."""
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def main(words: Sequence[str] | None = None) -> None:
    """Measure, or take what was measured; write results and tables."""
    parser = argparse.ArgumentParser(description="Elimination orders, counted and timed.")
    parser.add_argument("--quick", action="store_true", help="a smoke run: few states and steps")
    parser.add_argument("--docs", action="store_true", help="write docs/orders.md and its results")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="results of an earlier run, instead of measuring")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results here")
    arguments = parser.parse_args(words)
    if arguments.docs and arguments.quick:
        parser.error("a smoke run's numbers do not belong into the documentation")
    if arguments.source:
        results = json.loads(arguments.source.read_text("utf-8"))
    else:
        results = measure(experiments.QUICK if arguments.quick else experiments.Effort())
    tables = orders_docs.tables(results)
    for name, text in tables.items():
        print(f"\n# {name}\n\n{text}")
    files = [file for file in (arguments.json, DOCS / "orders.json" if arguments.docs else None)
             if file is not None]  # fmt: skip
    for file in files:
        file.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if arguments.docs:
        page = DOCS / "orders.md"
        page.write_text(paper_docs.fill(page.read_text("utf-8"), tables), "utf-8")


if __name__ == "__main__":
    main()
