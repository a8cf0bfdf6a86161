"""Two builds side by side on published robots: ``python -m benchmarks.two_builds FOLDER OTHER``.

FOLDER holds repositories as :mod:`benchmarks.real_robots` wants them, OTHER the root of another
checkout of this package. Each robot is loaded, drawn, set and validated by both builds in turn,
each time in a process of its own with one thread and an empty store of kernels. Times are of the
processor, the least of ``--times`` runs. Prints the rows of ``docs/real-robots.md``; ``--json`` all
numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.real_robots import ROBOTS, Robot

HERE = Path(__file__).resolve().parent.parent

WORKER = """
import json, sys, time, warnings
import numpy as np
import robomodel as rm

warnings.simplefilter("ignore")
path, extend, validate = sys.argv[1], sys.argv[2] or None, sys.argv[3] == "1"
rm.robots.load("four_bar")  # what is imported at first use
clock, result = time.process_time, {}

def timed(name, call):
    start = clock()
    value = call()
    result[name] = clock() - start
    return value

model = timed("load", lambda: rm.load(path, extend=extend))
rng = np.random.default_rng(0)
timed("first draw", lambda: model.random_configuration(rng))
count, start = 0, clock()
while count < 20 and clock() - start < 5.0:
    model.random_configuration(rng)
    count += 1
result["draw"] = (clock() - start) / count
try:
    joints = model.joint_positions(model.neutral())
    at = {name: float(x) for name, x in joints.items() if not np.ndim(x)}
    model.configuration(at)
    count, start = 0, clock()
    while count < 50 and clock() - start < 2.0:
        model.configuration(at)
        count += 1
    result["configuration"] = (clock() - start) / count
except ValueError as error:
    result["not set"] = str(error)
if validate:
    timed("validate", lambda: rm.validate(model))
print("RESULT" + json.dumps(result))
"""


def measured(
    root: Path, robot: Robot, folder: Path, limit: float, *, validate: bool
) -> dict[str, float]:
    """Seconds of a robot's steps by the build at a root; nothing where it fails."""
    path = folder / robot.repository / robot.path
    extend = str(folder / robot.repository / robot.extend) if robot.extend else ""
    with tempfile.TemporaryDirectory() as cache:
        surroundings = os.environ | {
            "PYTHONPATH": str(root),
            "ROBOMODEL_CACHE": cache,
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-c", WORKER, str(path), extend, str(int(validate))]
        try:
            done = subprocess.run(
                command, env=surroundings, cwd=cache, capture_output=True, text=True,
                timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        print(f"{robot.name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    result: dict[str, float] = json.loads(lines[0].removeprefix("RESULT"))
    return result


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    """The least of each number."""
    names = {name for run in runs for name, value in run.items() if isinstance(value, float)}
    return {name: min(run[name] for run in runs if name in run) for name in sorted(names)}


def row(name: str, before: dict[str, float], now: dict[str, float]) -> str:
    """A row of the page's table: each number before and now."""

    def seconds(value: float | None) -> str:
        if value is None:
            return "—"
        return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.2g} ms"

    words = [f"{seconds(before.get(key))} → {seconds(now.get(key))}"
             for key in ("load", "first draw", "draw", "configuration", "validate")]  # fmt: skip
    return f"| {name} | {' | '.join(words)} |"


def main() -> None:
    """Measure the robots by both builds and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the repositories are, as OWNER/NAME")
    parser.add_argument("other", type=Path, help="the root of another checkout")
    parser.add_argument("names", nargs="*", help="robots whose names have these words; else all")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a process")
    parser.add_argument("--times", type=int, default=2, help="processes of each build")
    parser.add_argument("--without-validate", action="store_true", help="leave validate out")
    parser.add_argument("--json", type=Path, help="a file for all numbers")
    options = parser.parse_args()
    folder, results = options.folder.resolve(), {}
    for robot in ROBOTS:
        if not (folder / robot.repository / robot.path).exists():
            continue
        if options.names and not any(name in robot.name for name in options.names):
            continue
        runs: tuple[list[dict[str, float]], ...] = ([], [])
        for _ in range(options.times):
            for mine, root in zip(runs, (options.other.resolve(), HERE), strict=True):
                mine.append(measured(
                    root, robot, folder, options.limit, validate=not options.without_validate
                ))  # fmt: skip
        before, now = (least(each) for each in runs)
        results[robot.name] = {"before": before, "now": now}
        print(row(robot.name, before, now), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
