"""Mutation testing: small faults put into the package one at a time; does a test notice?

    python tests/mutation/run.py --count 60 --seed 1 --out found.jsonl
    python tests/mutation/run.py --only dynamics/recursions/aba.py --count 20
    python tests/mutation/run.py --summary found.jsonl

A mutant is killed when one of the quick test files that belong to its module fails, or when they
take longer than ``--limit`` seconds; survivors are printed, to be judged by a reader: a test is
missing, or the mutant is equivalent (it changes speed, a message, or nothing). Every mutant has a
copy of the package and an empty cache of kernels. The sample is drawn evenly from the packages.
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
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dynamics", "model", "kernels", "motion", "parsers", "description")
BESIDE = ("tests", "docs", "examples", "benchmarks", "pyproject.toml", "README.md")

# Test files by module, the most telling first; a folder's entry serves modules without their own.
TESTS: dict[str, str] = {
    "dynamics": "dynamics oracle",
    "dynamics/functions/motion.py": "options dynamics hybrid impulse efpa",
    "dynamics/actuators/maps.py": "actuation saturation",
    "dynamics/algorithm.py": "passive trees hybrid impulse frames dynamics efpa",
    "dynamics/declaration.py": "options docstrings arguments traced dynamics",
    "dynamics/recursions/articulated.py": "dynamics efpa impulse",
    "interop/programs.py": "cache rollout kernels",
    "dynamics/contact/instant.py": "touch contact complementarity contact_oracles",
    "dynamics/contact/interior_point.py": "complementarity",
    "dynamics/contact/complementarity.py": "complementarity contact touch",
    "dynamics/contact/gauss_seidel.py": "complementarity contact touch rollout",
    "dynamics/recursions/efpa.py": "efpa impulse",
    "dynamics/kinematics/frames.py": "frames efpa",
    "dynamics/recursions/hybrid_dynamics.py": "hybrid",
    "dynamics/baselines.py": "baselines open_trees armature dynamics approximation_errors",
    "dynamics/recursions/passive.py": "passive simulate hybrid derivatives",
    "dynamics/actuators/envelopes.py": "actuation_study",
    "dynamics/contact/points.py": "touch contact",
    "dynamics/recursions/derivatives.py": "variations derivatives hessian",
    "estimation": "trajectory trajectory_problems incremental graph planning",
    "estimation/gauss.py": "elimination equations solver",
    "estimation/instant.py": "elimination equations solver",
    "estimation/compiled.py": "solver",
    "kernels": "trace kernels",
    "kernels/cache.py": "cache",
    "kernels/compile.py": "cache kernels",
    "kernels/differentiate.py": "trace symbolic hessian derivatives",
    "kernels/llvm/machine.py": "cache kernels side_by_side",
    "kernels/plan.py": "schedule slices tiles kernels",
    "kernels/llvm/processes.py": "side_by_side kernels",
    "kernels/program.py": "trace kernels tiles single_precision",
    "kernels/ptx.py": "ptx targets cuda_calls",
    "kernels/slices.py": "slices",
    "kernels/threads.py": "kernels rollout",
    "kernels/llvm/tiles.py": "tiles kernels",
    "kernels/trace.py": "trace scalars kernels",
    "description": "frames shapes",
    "description/inertias.py": "shapes masses mjcf_writer",
    "description/poses.py": "urdf sdf_writer mjcf_writer constraints sdf",
    "description/shapes.py": "shapes meshes",
    "description/transmissions.py": "transmissions rotors mjcf_writer",
    "parsers": "urdf urdf_errors loading",
    "parsers/checks.py": "urdf_structure urdf_errors plausibility springs_files",
    "parsers/markup.py": "approximation_errors cli",
    "parsers/meshes.py": "written_meshes",
    "parsers/mjcf": "mjcf mjcf_files springs_files armature actuation",
    "parsers/mjcf/writer.py": "mjcf_writer writers written_files springs_files",
    "parsers/sources.py": "objects resources urdf_errors xml loading",
    "parsers/schema.py": "schema urdf",
    "parsers/sdf": "sdf sdf_errors sdf_models sdf_writer",
    "parsers/sdf/writer.py": "sdf_writer writers",
    "parsers/shared": "urdf transmissions sdf",
    "parsers/shared/inertias.py": "mjcf_writer writers sdf_writer",
    "parsers/shared/motors.py": "motors_files transmissions writers schema",
    "parsers/shared/rotors.py": "rotors transmissions",
    "parsers/shared/springs.py": "springs_files dialects_drake writers",
    "parsers/text.py": "writers urdf sdf_writer",
    "parsers/urdf": "urdf urdf_errors urdf_structure surfaces writers closing",
    "parsers/urdf/dialects.py": "dialects dialects_drake",
    "parsers/urdf/gazebo.py": "dialects urdf surfaces springs_files",
    "parsers/xml.py": "xml urdf_errors",
    "model": "model graph",
    "model/actuators.py": "actuation",
    "model/approximate.py": "baselines writers mjcf_writer armature",
    "model/arguments.py": "arguments",
    "model/build.py": "model masses rotors armature closing",
    "model/closure.py": "constraints configuration closing choice model",
    "model/mobility/exploration.py": "closing choice configuration simulate validate",
    "model/mobility/analysis.py": "closing model rigid choice constraints",
    "model/mobility/__init__.py": "model closing choice rigid",
    "model/configurations": "configuration states model",
    "model/configurations/states.py": "states",
    "model/constraints.py": "constraints model closing graph",
    "model/tree_constraints.py": "constraints model closing graph",
    "model/orders.py": "conventions",
    "model/elements.py": "model",
    "model/graph.py": "graph model",
    "model/joints.py": "joints model configuration",
    "model/model.py": "model configuration states frames constraints singular conventions",
    "model/options.py": "options graph model closing rigid",
    "model/springs.py": "passive",
    "motion": "simulate simulate_inputs rollout singular",
    "motion/adaptive.py": "simulate simulate_inputs singular multibody",
    "motion/capsules.py": "collision",
    "motion/change_points.py": "singular",
    "motion/collision.py": "collision",
    "motion/events.py": "events",
    "motion/forces.py": "contact simulate",
    "motion/ground.py": "ground surfaces contact contact_rollouts",
    "motion/rollout.py": "rollout contact_rollouts singular",
    "motion/stepping.py": "energy_of_motion contact_checks contact singular",
    "motion/steps.py": "rollout singular energy_of_motion contact_rollouts",
    "motion/tangent.py": "singular rollout energy_of_motion contact",
    "motion/time_stepping.py": "energy_of_motion contact_checks contact singular",
    "motion/variational.py": "simulate singular trajectory",
}


def tests_of(module: str) -> list[str]:
    """The test files of a module, as paths from the root; those of its folder if it has none."""
    at = module
    while at not in TESTS:
        at = str(Path(at).parent)
    files = [f"tests/test_{name}.py" for name in TESTS[at].split()]
    missing = [file for file in files if not (ROOT / file).exists()]
    if missing:
        raise SystemExit(f"no such test files: {missing}")
    return files


def modules(only: str | None) -> list[str]:
    """The modules of the packages, or those whose path begins so."""
    package = ROOT / "robomodel"
    found = [
        str(path.relative_to(package))
        for name in PACKAGES
        for path in sorted((package / name).rglob("*.py"))
    ]
    return [name for name in found if only is None or name.startswith(only)]


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


def trial(
    module: str, source: str | None, limit: float, marked: str = "not slow"
) -> tuple[str, str, float]:
    """What became of a mutant (None: the package as it is), by which test, and in how long."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        place = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "robomodel", place / "robomodel", ignore=ignored)
        for other in BESIDE:
            (place / other).symlink_to(ROOT / other)
        if source is not None:
            (place / "robomodel" / module).write_text(source, encoding="utf-8")
        (place / "cache").mkdir(mode=0o700)
        environment = {
            **os.environ,
            "PYTHONPATH": str(place),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ROBOMODEL_CACHE": str(place / "cache"),
            "CI": "1",  # hypothesis draws the same examples each time
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider",
                   "-m", marked]  # fmt: skip
        run = subprocess.Popen(
            [*command, *tests_of(module)],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return "killed", "takes too long", time.monotonic() - begin
    took = time.monotonic() - begin
    if run.returncode in (0, 5):  # 5: none of the tests is marked so
        return "survived", "", took
    by = next((x for x in said.splitlines() if x.startswith(("FAILED", "ERROR"))), "")
    return "killed", by.partition(" - ")[0] or f"status {run.returncode}", took


def summary(file: Path) -> None:
    """Print how many of which package and kind were killed, and who survived."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for key in ("package", "kind"):
        total = Counter(row[key] for row in rows)
        killed = Counter(row[key] for row in rows if row["fate"] == "killed")
        for name, count in sorted(total.items()):
            print(f"{name:20} {killed[name]:4} of {count:4} killed")
        print()
    killed_rows = sum(row["fate"] == "killed" for row in rows)
    print(f"{killed_rows} of {len(rows)} killed: {killed_rows / max(1, len(rows)):.1%}\n")
    for row in rows:
        if row["fate"] == "survived":
            print(f"{row['module']}: {row['mutant']}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="modules whose path within the package begins so")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a mutant's tests")
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    parser.add_argument("--first", type=int, default=0, help="begin at this one of the sample")
    parser.add_argument("--slow", action="store_true", help="survivors meet the slow tests, too")
    parser.add_argument("--baseline", action="store_true", help="time the tests without mutants")
    parser.add_argument("--summary", type=Path, help="of a file that --out has written")
    options = parser.parse_args()
    if options.summary:
        summary(options.summary)
        return
    if options.baseline:
        for module in modules(options.only):
            fate, by, took = trial(module, None, options.limit)
            print(f"{took:6.1f} s  {'passes' if fate == 'survived' else by}  {module}", flush=True)
        return
    drawn = sample(options.only, options.count, options.seed)
    for number, (module, mutant) in enumerate(drawn):
        if number < options.first:
            continue
        fate, by, took = trial(module, mutant.source, options.limit)
        if options.slow and fate == "survived":
            fate, by, more = trial(module, mutant.source, options.limit, "slow")
            took += more
        print(f"{number:4} {took:6.1f} s  {fate}  {module}: {mutant}  {by}", flush=True)
        if options.out:
            row = {
                "package": module.partition("/")[0], "module": module, "kind": mutant.kind,
                "mutant": str(mutant), "fate": fate, "by": by, "seconds": round(took, 1),
            }  # fmt: skip
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
