"""Linting: every robot file is checked, in several processes, and the findings are put in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robomodel.errors import DescriptionError, Interrupted, MissingPackageError, Source
from robomodel.lint import baseline
from robomodel.lint.checks import CHECKS
from robomodel.lint.comments import Ignore, apply, ignores
from robomodel.lint.discovery import RobotFile, find
from robomodel.lint.settings import FileSettings, Settings
from robomodel.lint.texts import check_text
from robomodel.reports.document import SEVERITIES, Finding, Severity, note
from robomodel.reports.validation.study import validate

_UNDEFINED = "Undefined substitution argument"  # what xacro says
MOST_TEXT = 64 * 2**20  # bytes of a file in which comments are looked for


@dataclass(frozen=True, slots=True)
class LintReport:
    """Findings in the files of a repository.

    Attributes:
        findings: The findings that are reported, by file, line, severity, check and element.
        robots: The robot files that were checked.
        root: The folder to which all paths are relative.
        ignored: The number of findings that comments switch off.
        known: The number of findings that the baseline holds.
    """

    findings: tuple[Finding, ...]
    robots: tuple[RobotFile, ...]
    root: Path
    ignored: int = 0
    known: int = 0

    @property
    def files(self) -> list[str]:
        """The robot files that were checked, relative to the root."""
        return sorted(map(self.place, self.robots))

    def place(self, robot: RobotFile) -> str:
        """The path of a robot file relative to the root."""
        return relative(str(robot.path), self.root)

    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        counter = Counter(each.severity for each in self.findings)
        return {severity: counter[severity] for severity in SEVERITIES}

    def fails(self, at: Severity) -> bool:
        """True if there is a finding of this severity, or a graver one."""
        grave = SEVERITIES[: SEVERITIES.index(at) + 1]
        return any(each.severity in grave for each in self.findings)


def lint(paths: Sequence[Path], settings: Settings) -> LintReport:
    """Check the robot files at these paths, which are files or folders.

    The result is the same for any order of the paths and any number of processes.

    Raises:
        Interrupted: After Ctrl-C, with the report on the files that were done.
        OSError: A path or the baseline is not there.
        ValueError: The baseline is none.
    """
    robots = robots_at(paths, settings)
    findings: list[Finding] = []
    done: list[RobotFile] = []
    try:
        for robot, found in _all(robots, settings):
            done.append(robot)
            findings += found
    except KeyboardInterrupt as pressed:
        known = reported(findings, done, settings)
        raise Interrupted(f"{len(done)} of {len(robots)} files", known) from pressed
    return reported(findings, robots, settings)


def robots_at(paths: Sequence[Path], settings: Settings) -> list[RobotFile]:
    """The robot files at these paths that the settings do not skip."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(2, "no such file or folder", str(path))
    found = find(paths, settings.root, settings.exclude)
    return [each for each in found if not settings.of_file(each.path).skip]


def reported(
    found: Iterable[Finding], robots: Sequence[RobotFile], settings: Settings
) -> LintReport:
    """The report on robots with what comments, the settings and the baseline leave of findings."""
    held = settings.baseline
    known = baseline.read(held.read_text(encoding="utf-8")) if held else Counter[baseline.Key]()
    findings = sorted(set(found), key=_order)
    comments = {
        file: _comments(settings.root / file)
        for file in sorted({each.source.file for each in findings} | _relative(robots, settings))
    }
    kept, hidden = apply(findings, {file: several for file, several in comments.items() if several})
    kept = [each for each in sorted(kept, key=_order) if settings.shows(each.check)]
    new = baseline.unknown(kept, known)
    return LintReport(
        tuple(new),
        tuple(robots),
        settings.root,
        len(hidden),
        len(kept) - len(new),
    )


def _relative(robots: Iterable[RobotFile], settings: Settings) -> set[str]:
    return {relative(str(each.path), settings.root) for each in robots}


def relative(path: str, root: Path) -> str:
    """A path relative to the root, with slashes; one outside of it as it is."""
    full = os.path.abspath(path)
    place = os.path.relpath(full, root) if os.path.splitdrive(full)[0] == root.drive else full
    return (full if place.startswith("..") else place).replace(os.sep, "/")


def _order(finding: Finding) -> tuple[object, ...]:
    source = finding.source
    return (
        source.file,
        source.line or 0,
        SEVERITIES.index(finding.severity),
        finding.check,
        source.element,
        finding.message,
        finding.remedy,
        repr(finding.value),
    )


def _comments(path: Path) -> list[Ignore]:
    try:
        with path.open("rb") as stream:
            return ignores(stream.read(MOST_TEXT))
    except OSError:
        return []


# ---- processes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A robot file and the options with which it is loaded."""

    robot: RobotFile
    root: Path
    options: FileSettings
    xacro: tuple[tuple[str, str], ...]
    resources: tuple[str, ...]


def _all(
    robots: Sequence[RobotFile], settings: Settings
) -> Iterator[tuple[RobotFile, list[Finding]]]:
    """Files with their findings as they are done, with paths relative to the root."""
    jobs = [job_of(each, settings) for each in robots]
    processes = min(settings.jobs or os.cpu_count() or 1, len(jobs))
    if processes <= 1:
        for job in jobs:
            yield job.robot, checked(job)
        return
    largest_first = sorted(jobs, key=lambda job: -_size(job.robot.path))
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(
        processes, _context(), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        running = {pool.submit(checked, job): job.robot for job in largest_first}
        try:
            for each in as_completed(running):
                yield running[each], each.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def job_of(robot: RobotFile, settings: Settings) -> Job:
    """A robot file with its settings."""
    options, xacro = settings.of_file(robot.path), tuple(settings.xacro.items())
    return Job(robot, settings.root, options, xacro, settings.resources)


def _context() -> Any:
    """How processes are started: from one that has imported the package, where that can be had."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if hasattr(context, "set_forkserver_preload"):
        context.set_forkserver_preload([__name__])
    return context


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# ---- one file ------------------------------------------------------------------------------------


def checked(job: Job) -> list[Finding]:
    """The findings on a robot file; of those that include it, if it does not load by itself."""
    findings = _checked(job, job.robot)
    if job.robot.fallback and any(each.check == "load" for each in findings):
        findings = [
            finding
            for path in job.robot.fallback
            for finding in _checked(job, replace(job.robot, path=path, fallback=()))
        ]
    return [shortened(each, job.root) for each in findings]


def _checked(job: Job, robot: RobotFile) -> list[Finding]:
    place = Source(str(robot.path))
    try:
        findings = list(validate(str(robot.path), **options_of(job, robot)).findings)
    except (MissingPackageError, OSError) as error:
        message = getattr(error, "message", "") or f"cannot be read: {error}"
        findings = [Finding("error", "load", place, message)]
    except Exception as error:  # one file must not keep the others from being checked
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        findings = [Finding("error", "internal", place, message, CHECKS["internal"].remedy)]
    if robot.xacro:
        common = {name for name, _ in job.xacro if name not in job.options.xacro}
        unasked = tuple(f"it has no argument '{name}'" for name in common)
        findings = [x for x in _of_xacro(robot, findings) if not x.message.startswith(unasked)]
    return [*findings, *check_text(robot)]


def options_of(job: Job, robot: RobotFile) -> dict[str, Any]:
    """Options of ``validate``, of which all but the reference are those of ``load``."""
    options: dict[str, Any] = {}
    entries: list[Any] = [dict(robot.packages)] if robot.packages else []
    entries += [str(job.root / folder) for folder in job.resources]
    if entries:
        options["resources"] = entries
    if job.options.extend:
        options["extend"] = [str(job.root / each) for each in job.options.extend]
    if job.options.reference:
        options["reference"] = str(job.root / job.options.reference)
    if robot.xacro:
        options["xacro"] = {**dict(job.xacro), **job.options.xacro}
    if robot.world:
        options["name"] = robot.world
    return options


def _of_xacro(robot: RobotFile, findings: list[Finding]) -> list[Finding]:
    """Findings on an expanded file: none if it makes no link, a note if it needs arguments."""
    failed = [each for each in findings if each.check == "load"]
    if not failed:
        return findings
    message = failed[0].message
    if _UNDEFINED in message:
        remedy = f'give it in [tool.robomodel.files."{robot.path.name}"] xacro'
        return [note("not-checked", failed[0].source, message, remedy)]
    return [] if _makes_no_link(robot) else findings


def _makes_no_link(robot: RobotFile) -> bool:
    """True if a xacro file expands to nothing that is a robot, as files of macros do."""
    from robomodel.files import Resources
    from robomodel.parsers import open_document

    try:
        document = open_document(
            str(robot.path), xacro={}, resources=Resources.of([dict(robot.packages)])
        )
    except (DescriptionError, ImportError, OSError):
        return False
    return document.root.find("link") is None


def shortened(finding: Finding, root: Path) -> Finding:
    """The finding with paths relative to the root, in its place and its texts."""
    source = finding.source
    file = relative(source.file, root) if os.path.isabs(source.file) else source.file
    here = str(root).rstrip(os.sep) + os.sep
    return replace(
        finding,
        source=replace(source, file=file),
        message=" ".join(finding.message.replace(here, "").split()),
        remedy=" ".join(finding.remedy.replace(here, "").split()),
    )
