"""The paper's experiments (Chignoli, Adrian, Kim and Wensing): ``python -m benchmarks.paper``.

Tables II to IV, figures 8 to 14, inverse dynamics over dense blocks, the approximate method's
errors and C-EFPA's growth with depth, as ``results.json`` and figures in ``--output`` (default:
paper-results), tables on the screen. ``--docs`` writes figures and results to docs/paper/ and the
tables into docs/paper.md. ``--from`` takes the results of an earlier run. ``--quick`` is a smoke
run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.paper import blocks, experiments
from benchmarks.paper import docs as paper_docs
from benchmarks.paper import figures as paper_figures
from benchmarks.shared.machine import Machine, processor, versions
from benchmarks.shared.race import Race

DOCS = Path(__file__).parents[2] / "docs"


def clock() -> float:
    """GHz of one core at this moment."""
    core, race = Machine(), Race(5)
    core.join(race)
    return core.rates(race.run())["GHz"]


def measure(effort: experiments.Effort) -> dict[str, Any]:
    """All experiments; what goes into ``results.json``."""
    start = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - start:4.0f} s] {what}", flush=True)

    facts = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "states": effort.states,
        "rounds": effort.rounds,
        "processes": effort.processes,
        "GHz": [clock()],
        "load": [os.getloadavg()[0]],
    }
    say(f"{facts['processor']}, {facts['GHz'][0]:.2f} GHz, load average {facts['load'][0]:.1f}")
    found: dict[str, list[experiments.Row]] = {"robots": [], "chains": []}
    systems = [*experiments.robots(), *experiments.chains(effort)]
    total = len(systems)
    for n in range(total):
        system = systems.pop(0)  # with its kernels it is large
        rows = experiments.least_times(system, effort)
        found["chains" if system.links else "robots"] += rows
        name = f"{system.name} {system.links or ''}".strip()
        exact = ", ".join(
            f"{row.algorithm} {row.ns:.0f} ns" for row in rows if row.method == "cluster"
        )
        say(f"speed {n + 1}/{total}: {name}, {len(rows)} programs; by clusters {exact}")
    controls = [experiments.control(system, effort) for system in experiments.robots()]
    for each in controls:
        say(f"equal programs: {each['system']}, {each['percent']:.1f} % apart")
    dense = blocks.measure(effort)
    for line in blocks.lines(dense):
        say(f"blocks: {line}")
    mistakes = []
    for name, model in experiments.approximated():
        mistakes.append(experiments.errors(name, model, effort.configurations))
        torque, acceleration = (mistakes[-1][f"{a} approximate"][0] for a in ("rnea", "aba"))
        say(f"errors: {name}, torques {torque:.2g} %, accelerations {acceleration:.2g} %")
    _, tau, joints = experiments.leg_torques()
    facts["GHz"].append(clock())
    facts["load"].append(os.getloadavg()[0])
    facts["minutes"] = (time.perf_counter() - start) / 60.0
    say("all done")
    return {
        "machine": facts,
        **{name: [asdict(row) for row in rows] for name, rows in found.items()},
        "leg": experiments.leg_table(tau, joints),
        "control": controls,
        "errors": mistakes,
        "blocks": dense,
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure, or take what was measured; write results, figures and tables."""
    parser = argparse.ArgumentParser(description="The paper's tables and figures, measured here.")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run: short chains, few states"
    )
    parser.add_argument("--docs", action="store_true", help="write docs/paper.md and docs/paper/")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE",
                        help="results.json of an earlier run, instead of measuring")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="DIR", default=Path("paper-results"))
    arguments = parser.parse_args(words)
    if arguments.docs and arguments.quick:
        parser.error("a smoke run's numbers do not belong into the documentation")
    folder = DOCS / "paper" if arguments.docs else arguments.output
    if arguments.source:
        results = json.loads(arguments.source.read_text("utf-8"))
    else:
        results = measure(experiments.QUICK if arguments.quick else experiments.Effort())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")

    tables = paper_docs.tables(results)
    for name, text in tables.items():
        print(f"\n# {name}\n\n{text}")
    if arguments.docs:
        page = DOCS / "paper.md"
        page.write_text(paper_docs.fill(page.read_text("utf-8"), tables), "utf-8")
    try:
        rows = {name: [experiments.Row(**row) for row in results[name]]
                for name in ("robots", "chains")}  # fmt: skip
        compared = [row for row in rows["chains"] if row.system in experiments.COMPARED]
        systems = list(experiments.robots())
        paper_figures.draw(rows["robots"], compared, systems, experiments.leg_torques(), folder)
    except ImportError as missing:
        print(f"\nno figures: {missing}", file=sys.stderr)
    print(f"\nresults are in {folder}")


if __name__ == "__main__":
    main()
