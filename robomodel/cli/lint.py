"""``robomodel lint``: checks of all robot files of a repository."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from robomodel import __version__
from robomodel.cli.common import Result, UserError, complain
from robomodel.errors import Interrupted, did_you_mean
from robomodel.files import replace_file
from robomodel.lint import baseline as baselines
from robomodel.lint import formats
from robomodel.lint.audit.robots import audited
from robomodel.lint.checks import CHECKS
from robomodel.lint.fixes import fixed_files
from robomodel.lint.runner import LintReport
from robomodel.lint.runner import lint as check
from robomodel.lint.settings import (
    FORMATS,
    Settings,
    SettingsError,
    TextFormat,
    check_ids,
    load_settings,
)
from robomodel.reports.document import Document, Severity


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH…", help="Robot files, and folders that hold some.  [default: .]"
        ),
    ] = None,
    form: Annotated[
        TextFormat | None,
        typer.Option("--format", help="How findings are written.  [default: text]"),
    ] = None,
    output: Path | None = None,
    also: list[str] | None = None,
    select: str = "",
    ignore: str = "",
    fail_on: Severity | None = None,
    baseline: Path | None = None,
    update_baseline: bool = False,
    against: str | None = None,
    fix: bool = False,
    write: bool = False,
    list_checks: bool = False,
    jobs: int | None = None,
) -> Result:
    """Check all robot files of a repository: one finding a line, or as tools read them.

    Folders are searched for robot files by their content; files that others include are checked
    where they are included. Options are also read from [tool.robomodel] of the pyproject.toml above
    the paths. docs/lint.md explains settings, comments that switch checks off, and formats;
    docs/checks.md the checks.

    Exit status: 0 without findings, 1 with findings of the severity of --fail-on or graver, 2 for
    wrong options. A file that cannot be read is a finding, an error.

    Keys of the JSON document: files, counts (error, warning, note), baseline and ignored (numbers
    of findings that are not reported), findings (file, line, element, severity, check, message,
    remedy, value, unit, page, fingerprint), warnings.

    Examples:
        robomodel lint
        robomodel lint robots --format sarif -o robots.sarif
        robomodel lint robots --fix

    Options:
        -o, --output OUT: Write to this file instead of printing.
        --also FORMAT=FILE: Write the report in this format into this file, too; may be repeated.
        --select CHECKS: Report these checks alone; ids with commas between them.
        --ignore CHECKS: Do not report these checks.
        --fail-on: The least severity that gives the exit status 1.  [default: warning]
        --baseline FILE: Do not report findings that this file holds, on whatever lines.
        --update-baseline: Write the findings into the file of --baseline.
        --against CONFIG.py[:NAME]: Compare the robots with this configuration of Isaac Lab, mjlab
            or legged_gym instead; NAME is that of one of several in it.
        --fix: Print what is certain to mend, as a unified diff, in place of the findings.
        --write: With --fix, write the files.
        --list-checks: List all checks.
        --jobs N: Number of processes.  [default: one for each core]
    """
    if list_checks:
        text = formats.listed(CHECKS.values(), form or "text")
        data: Any = {"checks": [{"id": x.id, "severity": x.severity} for x in CHECKS.values()]}
        return Result(document=Document("", "", data=data), text=text[:-1], output=output)
    places = paths or [Path()]
    for path in places:
        if not path.exists():
            near = [str(each) for each in path.parent.glob("*")]
            raise UserError(f"{path}: no such file or folder{did_you_mean(str(path), near)}")
    others = dict(map(_also, also or ()))
    settings = _settings(places, form, select, ignore, fail_on, baseline, jobs)
    if update_baseline and settings.baseline is None:
        raise UserError("--update-baseline needs --baseline FILE, or baseline in [tool.robomodel]")
    if write and not fix:
        raise UserError("--write goes with --fix")
    if against is not None and (fix or update_baseline):
        raise UserError("--against goes without --fix and --update-baseline")
    held = settings.baseline
    if held is not None and not update_baseline and not held.is_file():
        raise UserError(f"{held}: no such file; --update-baseline makes it")
    try:
        given = replace(settings, baseline=None) if update_baseline else settings
        report = check(places, given) if against is None else audited(places, given, against)
    except ValueError as error:
        raise UserError(f"{held}: {error}") from error
    except Interrupted as pressed:
        known: Any = pressed.known
        raise Interrupted(
            pressed.done, replace(_result(known, settings), output=output)
        ) from pressed
    if update_baseline and held is not None:
        replace_file(str(held), baselines.written(report.findings))
        said = f"{held}: {len(report.findings)} findings"
        return Result(document=Document("", said, data={"baseline": str(held)}), output=output)
    if fix:
        return _fixed(report, output, write=write)
    if not report.robots:
        complain("no robot files")
    for file, kind in others.items():
        text = formats.written(report, kind, settings.fail_on, __version__)
        file.write_text(text, encoding="utf-8", newline="\n")
    return replace(
        _result(report, settings),
        output=output,
        status=1 if report.fails(settings.fail_on) else 0,
        complaint=formats.summary(report) if output is not None and sys.stdout.isatty() else "",
    )


def _result(report: LintReport, settings: Settings) -> Result:
    return Result(
        document=Document("", formats.summary(report), data=formats.as_dict(report)),
        text=formats.written(report, settings.format, settings.fail_on, __version__)[:-1],
    )


def _also(text: str) -> tuple[Path, TextFormat]:
    """The file and the format of ``--also``."""
    kind, sign, file = text.partition("=")
    for each in FORMATS:
        if sign and file and each == kind:
            return Path(file), each
    raise UserError(f"--also {text}: write it as FORMAT=FILE; formats are {', '.join(FORMATS)}")


def _settings(
    paths: list[Path],
    form: TextFormat | None,
    select: str,
    ignore: str,
    fail_on: Severity | None,
    baseline: Path | None,
    jobs: int | None,
) -> Settings:
    """The settings of the repository with those of the command line."""
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: at least one process")
    given: dict[str, Any] = {"format": form, "fail_on": fail_on, "baseline": baseline, "jobs": jobs}
    for name, text in (("select", select), ("ignore", ignore)):
        ids = tuple(each.strip() for each in text.split(",") if each.strip())
        given[name] = ids or None
    try:
        check_ids((*(given["select"] or ()), *(given["ignore"] or ())), "lint")
        settings = load_settings(paths)
    except SettingsError as error:
        raise UserError(str(error)) from error
    return replace(settings, **{name: x for name, x in given.items() if x is not None})


def _fixed(report: LintReport, output: Path | None, *, write: bool) -> Result:
    """The fixes of what is certain, as a diff, and written if asked for."""
    fixed = fixed_files(report)
    if write:
        for each in fixed:
            replace_file(str(each.path), each.after.decode("utf-8"))
    diff = "".join(each.diff for each in fixed)
    said = f"{len(fixed)} files {'mended' if write else 'can be mended'}"
    data = {"files": [each.file for each in fixed], "diff": diff, "written": write}
    return Result(
        document=Document("", said, data=data), text=diff.removesuffix("\n"), output=output,
        complaint="" if diff else said,
    )  # fmt: skip
