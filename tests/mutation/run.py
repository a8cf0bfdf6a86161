"""Mutation testing: small faults put into the package one at a time; does the quick suite notice?

    python tests/mutation/run.py --map lines.json
    python tests/mutation/run.py --lines lines.json --count 60 --seed 1 --out fates.jsonl
    python tests/mutation/run.py --lines lines.json --only dynamics/recursions/aba.py --count 20
    python tests/mutation/run.py --summary fates.jsonl

A mutant is detected when a test of the quick suite fails or runs into ``--limit`` seconds. Every
test file that executes its line is run, quick ones before long ones (``--map`` measures both, with
``coverage`` in processes that tests start too). Survivors are printed, to be judged by a reader: a
test is missing, or the mutant is equivalent (it changes speed, a message, or nothing). Every mutant
has a copy of the package and an empty cache of kernels. The sample is drawn evenly from the
packages.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dynamics", "model", "kernels", "motion", "parsers", "vocabulary", "description")
PYTEST = ("-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider")
QUICK = "not slow and not tables"


@dataclass(frozen=True)
class Coverage:
    """Seconds that each test file takes, and the test files that execute each line of a module."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]

    def files(self, module: str, line: int) -> list[str]:
        """Test files that execute a line of a module, the quickest first."""
        recorded = self.lines.get(module, {})
        first = max((int(n) for n in recorded if int(n) <= line), default=line)  # of its statement
        return sorted(recorded.get(str(first), ()), key=self.seconds.__getitem__)


def modules(only: str | None) -> list[str]:
    """The modules of the packages, or those whose path begins so."""
    package = ROOT / "robomodel"
    names = [
        str(path.relative_to(package))
        for name in PACKAGES
        for path in sorted((package / name).rglob("*.py"))
    ]
    return [name for name in names if only is None or name.startswith(only)]


def sample(only: str | None, count: int, seed: int) -> list[tuple[str, Mutant]]:
    """Mutants with their modules, as many of each package as can be."""
    rng = random.Random(seed)
    piles = []
    for package in PACKAGES:
        pile = [
            (module, mutant)
            for module in modules(only)
            if module.startswith(package)
            for mutant in mutants((ROOT / "robomodel" / module).read_text(encoding="utf-8"))
        ]
        rng.shuffle(pile)
        piles.append(pile)
    drawn: list[tuple[str, Mutant]] = []
    while len(drawn) < count and any(piles):
        drawn += [pile.pop() for pile in piles if pile]
    return drawn[:count]


def measure() -> Coverage:
    """Run every test file by itself under ``coverage``."""
    from coverage import CoverageData

    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        file = str(path.relative_to(ROOT))
        with tempfile.TemporaryDirectory(prefix="coverage-") as place:
            data = Path(place) / "data"
            begin = time.monotonic()
            settings = Path(place) / "settings"
            settings.write_text(
                f"[run]\nparallel=true\npatch=subprocess\ndata_file={data}\n"
                f"source={ROOT / 'robomodel'}\n"
            )
            run = subprocess.run(
                [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", *PYTEST,
                 "-m", QUICK, file],
                cwd=ROOT,
                env={**os.environ, "ROBOMODEL_CACHE": place, "CI": "1"},
                capture_output=True,
                text=True,
                check=False,
            )  # fmt: skip
            seconds[file] = round(time.monotonic() - begin, 1)
            print(f"{seconds[file]:6.1f} s  status {run.returncode}  {file}", flush=True)
            executed: set[tuple[str, int]] = set()
            for part in Path(place).glob("data.*"):
                recorded = CoverageData(str(part))
                recorded.read()
                for source in recorded.measured_files():
                    module = str(Path(source).relative_to(ROOT / "robomodel"))
                    executed |= {(module, line) for line in recorded.lines(source) or ()}
            for module, line in executed:
                lines.setdefault(module, {}).setdefault(str(line), []).append(file)
    return Coverage(seconds, lines)


def trial(
    module: str, source: str, files: Sequence[str], limit: float, marked: str = QUICK
) -> tuple[str, str, float]:
    """Fate of a mutant under test files, the test that detects it, and the seconds it takes."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        place = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "robomodel", place / "robomodel", ignore=ignored)
        for other in ROOT.iterdir():
            if other.name != "robomodel":
                (place / other.name).symlink_to(other)
        (place / "robomodel" / module).write_text(source, encoding="utf-8")
        (place / "cache").mkdir(mode=0o700)
        environment = {
            **os.environ,
            "PYTHONPATH": str(place),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ROBOMODEL_CACHE": str(place / "cache"),
            "CI": "1",  # hypothesis draws the same examples each time
        }
        run = subprocess.Popen(
            [sys.executable, *PYTEST, "-m", marked, *files],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return "detected", "takes too long", time.monotonic() - begin
    seconds = time.monotonic() - begin
    if run.returncode in (0, 5):  # 5: none of the tests is marked so
        return "survived", "", seconds
    by = next((x for x in output.splitlines() if x.startswith(("FAILED", "ERROR"))), "")
    return "detected", by.partition(" - ")[0] or f"status {run.returncode}", seconds


def judge(
    module: str, mutant: Mutant, coverage: Coverage, limit: float, slow: bool
) -> tuple[str, str, float]:
    """Fate of a mutant under the quick suite, and with ``slow`` under the slow tests too."""
    total = 0.0
    files = coverage.files(module, mutant.line)
    if not files:
        return "survived", "no test executes the line", total
    for marked in (QUICK, "slow and not tables") if slow else (QUICK,):
        fate, by, seconds = trial(module, mutant.source, files, limit, marked)
        total += seconds
        if fate == "detected":
            return fate, by, total
    return "survived", "", total


def summary(file: Path) -> None:
    """Print how many of which package and kind were detected, and which survived."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for key in ("package", "kind"):
        total = Counter(row[key] for row in rows)
        detected = Counter(row[key] for row in rows if row["fate"] == "detected")
        for name, count in sorted(total.items()):
            print(f"{name:20} {detected[name]:4} of {count:4} detected")
        print()
    count = sum(row["fate"] == "detected" for row in rows)
    print(f"{count} of {len(rows)} detected: {count / max(1, len(rows)):.1%}\n")
    for row in rows:
        if row["fate"] == "survived":
            print(f"{row['module']}: {row['mutant']}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", type=Path, help="write the lines that test files execute")
    parser.add_argument("--lines", type=Path, help="a file that --map has written")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="modules whose path within the package begins so")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a run of pytest")
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    parser.add_argument("--first", type=int, default=0, help="begin at this one of the sample")
    parser.add_argument("--step", type=int, default=1, help="each how many-th one of the sample")
    parser.add_argument("--slow", action="store_true", help="survivors meet the slow tests, too")
    parser.add_argument("--summary", type=Path, help="of a file that --out has written")
    options = parser.parse_args()
    if options.summary:
        summary(options.summary)
        return
    if options.map:
        coverage = measure()
        options.map.write_text(json.dumps({"seconds": coverage.seconds, "lines": coverage.lines}))
        return
    if not options.lines:
        parser.error("--lines: a file that --map has written")
    coverage = Coverage(**json.loads(options.lines.read_text(encoding="utf-8")))
    drawn = sample(options.only, options.count, options.seed)
    for number, (module, mutant) in list(enumerate(drawn))[options.first :: options.step]:
        fate, by, seconds = judge(module, mutant, coverage, options.limit, options.slow)
        print(f"{number:4} {seconds:6.1f} s  {fate}  {module}: {mutant}  {by}", flush=True)
        if options.out:
            row = {
                "package": module.partition("/")[0], "module": module, "kind": mutant.kind,
                "mutant": str(mutant), "fate": fate, "by": by, "seconds": round(seconds, 1),
            }  # fmt: skip
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
