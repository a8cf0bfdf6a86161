"""Faults seeded into published robots: ``python -m benchmarks.validation FOLDER…``.

The files are not in this package. Each FOLDER is searched for robot files (URDF, SDF, MJCF), of
which those of equal content, scenes and xacro sources are left out. In each robot with limbs that
are mirror images or copies of each other, faults of each kind are seeded into links and joints that
have a counterpart: one at a time, then two at once on one link. A fault counts as named if there is
a new warning or error that stands at its element, or names it as the counterpart. Prints the rows
of docs/validate.md; with ``--warnings`` the warnings of every file as it is, to be judged. With
``--reference`` faults of each kind in the shipped robots and in these files, which are named beside
the robot without the fault; in the shipped robots by themselves, too.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.shared.seeded_faults import AMONG_TWINS, Named, Seeded, Seeds, counterparts, gravest

if TYPE_CHECKING:
    from robomodel.description import Description
    from robomodel.model import Model

SUFFIXES = (".urdf", ".sdf", ".xml")
SLOW = ("check_shapes", "check_meshes", "check_collisions")  # no seeded fault concerns them


def robot_files(folders: list[str]) -> list[str]:
    """Robot files below folders, one of each content."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix.lower() not in SUFFIXES or not path.is_file():
                continue
            text = path.read_bytes()
            opening = re.search(rb"<(mujoco|robot|sdf)\b", text[:5000])
            if opening is None or b"<xacro:" in text or path.name.startswith("scene"):
                continue
            found.setdefault(hashlib.sha256(text).hexdigest(), str(path))
    return sorted(found.values())


@dataclass(frozen=True)
class Outcome:
    """The seeded and the named faults of one file, by kind; at the element itself."""

    seeded: Counter[str]
    named: Counter[str]
    exactly: Counter[str]


def found(description: Description) -> Named:
    """Errors and warnings of a description, without those of linkages' motions and of meshes."""
    from robomodel import DescriptionError
    from robomodel.model import build
    from robomodel.reports.validation import mechanism_checks
    from robomodel.reports.validation.context import CheckContext
    from robomodel.reports.validation.study import CHECKS, _as_findings, _issues, of_error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = build(description)
        except DescriptionError as error:
            return gravest(of_error(error).findings)
        context = CheckContext(model)
        findings = [each for issue in _issues(model) for each in _as_findings(issue.message)]
        for check in CHECKS:
            if check.__module__ != mechanism_checks.__name__ and check.__name__ not in SLOW:
                findings += check(context)
        return gravest(findings)


def is_named(seeded: Seeded, new: Named) -> tuple[bool, bool]:
    """Whether a finding names a fault's element, and whether one stands there."""
    words = [f"'{name}'" for name in seeded[1]]
    there = any(word in element for _, element, _ in new for word in words)
    named = there or any(word in message for _, _, message in new for word in words)
    return named, there


def twice(model: Model, seed: int, among: set[str]) -> Seeded | None:
    """Two faults at once on one link, of mass, centre of mass and inertia."""
    from dataclasses import replace

    from benchmarks.shared.seeded_faults import with_inertial

    seeds = Seeds(model, seed, among=among)
    if (chosen := seeds.pick(seeds.links)) is None:
        return None
    link, inertial = chosen
    kinds = seeds.rng.choice(3, size=2, replace=False)
    factor = float(seeds.rng.uniform(2.0, 5.0))
    changes: dict[str, object] = {}
    if 0 in kinds:
        changes["mass"] = factor * inertial.mass
    if 1 in kinds:
        xyz = seeds.off(inertial.origin.xyz, 0.15, 0.6)
        changes["origin"] = replace(inertial.origin, xyz=xyz)
    if 2 in kinds:
        larger = float(seeds.rng.choice([0.1, 10.0]))
        changes["inertia"] = tuple(larger * x for x in inertial.inertia)
    return with_inertial(seeds.description, link.name, **changes), (link.name,)


def outcome(task: tuple[str, int]) -> tuple[str, Outcome | str]:
    """Seed faults into one file."""
    import robomodel as rm

    path, count = task
    seeded, named, exactly = Counter[str](), Counter[str](), Counter[str]()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = rm.load(path)
            among = counterparts(model)
    except Exception as error:
        return path, f"{type(error).__name__}: {error}"
    if not among:
        return path, "no limbs that correspond"
    before = found(model.description)
    kinds = {kind: (lambda m, s, a, f=fault: f(Seeds(m, s, among=a)))
             for kind, fault in AMONG_TWINS.items()}  # fmt: skip
    for kind, fault in {**kinds, "two at once": twice}.items():
        for number in range(count):
            seed = zlib.crc32(f"{kind} {number} {Path(path).name}".encode())
            result = fault(model, seed, among)
            if result is None or result[0] == model.description:
                continue
            there = is_named(result, found(result[0]) - before)
            seeded[kind] += 1
            named[kind] += there[0]
            exactly[kind] += there[1]
    return path, Outcome(seeded, named, exactly)


def warnings_of(path: str) -> list[str]:
    """The warnings and errors of one file, a line for each check with the first of its kind."""
    import robomodel as rm

    try:
        report = rm.validate(path)
    except Exception as error:
        return [f"{path}\tcrash\t{type(error).__name__}: {error}"]
    grave = [each for each in report.findings if each.severity != "note"]
    return [f"{path}\t{each.check}\t{each.source.element}\t{each.message}" for each in grave]


def rows(outcomes: list[Outcome]) -> Iterator[str]:
    """A row of the table for each kind of fault."""
    total = [sum((getattr(x, name) for x in outcomes), Counter[str]())
             for name in ("seeded", "named", "exactly")]  # fmt: skip
    for kind in [*AMONG_TWINS, "two at once"]:
        if total[0][kind]:
            share = total[1][kind] / total[0][kind]
            yield (
                f"| {kind} | {total[1][kind]} of {total[0][kind]} | {100 * share:.0f} % "
                f"| {total[2][kind]} |"
            )
    seeded, named, exactly = (
        sum(n for kind, n in each.items() if kind != "two at once") for each in total
    )
    if seeded:
        share = 100 * named / seeded
        yield f"| all single ones | {named} of {seeded} | {share:.1f} % | {exactly} |"


Tally = Counter[tuple[str, str, bool]]
"""The number of faults by kind, column of the table, and whether they are named."""


def beside_reference(task: tuple[str, bool, int]) -> Tally:
    """Faults of each kind in one file, named beside the file without them, and alone if wanted."""
    import robomodel as rm
    from benchmarks.shared.seeded_faults import KINDS, against, alone
    from benchmarks.shared.seeded_faults import is_named as is_named_as

    path, by_itself, count = task
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = rm.load(path)
        except rm.DescriptionError:
            return tally
        alike = counterparts(model)
        for kind, fault in KINDS.items():
            before = alone(kind, model.description) if by_itself else set()
            for seed in range(count):
                if (seeded := fault(Seeds(model, seed))) is None:
                    continue
                named = is_named_as(kind, seeded, against(model, seeded[0]))
                tally[kind, "reference", named] += 1
                if by_itself:
                    column = "counterpart" if set(seeded[1]) & alike else "no counterpart"
                    named = is_named_as(kind, seeded, alone(kind, seeded[0]) - before)
                    tally[kind, column, named] += 1
    return tally


def rows_of_reference(tally: Tally) -> Iterator[str]:
    """A row of the table for each kind of fault."""
    for kind in dict.fromkeys(kind for kind, _, _ in tally):
        cells = []
        for column in ("reference", "counterpart", "no counterpart"):
            named, missed = (tally[kind, column, x] for x in (True, False))
            cells.append(f"{named} of {named + missed}" if named + missed else "")
        yield f"| {kind} | {' | '.join(cells)} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--list", help="a file with the paths, one a line")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--warnings", action="store_true")
    parser.add_argument("--reference", action="store_true")
    options = parser.parse_args()
    files = robot_files(options.folders)
    if options.list:
        files += Path(options.list).read_text(encoding="utf-8").splitlines()
    with multiprocessing.Pool(options.jobs, maxtasksperchild=50) as pool:
        if options.warnings:
            for lines in pool.imap(warnings_of, files):
                print("\n".join(lines), flush=True)
            return
        if options.reference:
            from robomodel import robots

            shipped = [(str(robots.path(name)), True, options.seeds) for name in robots.names()]
            tasks = [*shipped, *((file, False, options.seeds) for file in files)]
            tallies = pool.imap_unordered(beside_reference, tasks)
            print("\n".join(rows_of_reference(sum(tallies, Tally()))))
            return
        results = list(pool.imap_unordered(outcome, [(file, options.seeds) for file in files]))
    outcomes = [each for _, each in results if isinstance(each, Outcome)]
    without = Counter(each.partition(":")[0] for _, each in results if isinstance(each, str))
    print(f"{len(files)} files, {len(outcomes)} with counterparts; others: {dict(without)}")
    print("\n".join(rows(outcomes)))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
