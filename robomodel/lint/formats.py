"""Reports as text, JSON, SARIF 2.1.0, JUnit's XML, and annotations of GitHub."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from robomodel.lint.baseline import fingerprint
from robomodel.lint.checks import CHECKS
from robomodel.lint.runner import LintReport
from robomodel.lint.settings import TextFormat
from robomodel.reports.document import SEVERITIES, Finding, Severity, count, picked, plain
from robomodel.reports.validation.catalogue import Check

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The schema that SARIF files name."""


def written(report: LintReport, form: TextFormat, fail_on: Severity, version: str) -> str:
    """The report in this form, ending in a line break."""
    match form:
        case "text":
            return as_text(report)
        case "json":
            return _json(plain(as_dict(report)))
        case "sarif":
            return _json(as_sarif(report, version))
        case "junit":
            return as_junit(report, fail_on)
        case "github":
            return as_annotations(report)


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def check_of(name: str) -> Check:
    """The check of a finding, without words if it is not known."""
    return CHECKS.get(name) or Check(name, "warning", "", "")


# ---- text ----------------------------------------------------------------------------------------


def line_of(finding: Finding, before: str = "") -> str:
    """A finding as a line: ``file:line: severity [check] element: message; remedy``.

    ``before``: the way to the repository from where the line is read.
    """
    source = finding.source
    file = source.file if os.path.isabs(source.file) else f"{before}{source.file}"
    place = file if source.line is None else f"{file}:{source.line}"
    element = f" {source.element}" if source.element else ""
    return f"{place}: {finding.severity} [{finding.check}]{element}: {_sentence(finding)}"


def _sentence(finding: Finding) -> str:
    return "; ".join(filter(None, (finding.message, finding.remedy)))


def summary(report: LintReport) -> str:
    """A sentence on what was checked and found."""
    found = ", ".join(count(n, severity) for severity, n in report.counts().items() if n)
    hidden = [
        f"{number} {words}"
        for number, words in (
            (report.known, "known from the baseline"),
            (report.ignored, "switched off in the files"),
        )
        if number
    ]
    also = f" ({', '.join(hidden)})" if hidden else ""
    return f"{count(len(report.files), 'robot file')}: {found or 'nothing found'}{also}"


def as_text(report: LintReport) -> str:
    """One finding a line, with paths from the current folder, and a line that sums up."""
    way = os.path.relpath(report.root).replace(os.sep, "/")
    before = "" if way == "." else f"{way}/"
    lines = [line_of(each, before) for each in report.findings]
    return "".join(f"{line}\n" for line in [*lines, summary(report)])


def as_dict(report: LintReport) -> dict[str, Any]:
    """The report as plain dicts, lists, numbers and strings."""
    names = ("severity", "check", "message", "remedy", "value", "unit")
    return {
        "files": list(report.files),
        "counts": report.counts(),
        "baseline": report.known,
        "ignored": report.ignored,
        "findings": [
            picked(each.source, "file", "line", "element")
            | picked(each, *names)
            | {"page": check_of(each.check).page, "fingerprint": fingerprint(each)}
            for each in report.findings
        ],
    }


# ---- SARIF ---------------------------------------------------------------------------------------


def as_sarif(report: LintReport, version: str) -> dict[str, Any]:
    """The report in SARIF 2.1.0, with the rules of all its findings."""
    used = sorted({each.check for each in report.findings})
    rules = [_rule(check_of(name)) for name in used]
    index = {name: n for n, name in enumerate(used)}
    driver = {
        "name": "robomodel",
        "semanticVersion": version,
        "rules": rules,
    }
    seen: Counter[str] = Counter()
    results = []
    for each in report.findings:
        key = fingerprint(each)
        seen[key] += 1
        results.append(_result(each, index[each.check], f"{key}:{seen[key]}"))
    return {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "artifacts": [{"location": _location(file)} for file in report.files],
                "results": results,
            }
        ],
    }


def _rule(check: Check) -> dict[str, Any]:
    help_text = " ".join(filter(None, (check.meaning, check.remedy)))
    return {
        "id": check.id,
        "name": "".join(word.capitalize() for word in check.id.split("-")),
        "shortDescription": {"text": check.meaning or check.id},
        "fullDescription": {"text": help_text or check.id},
        "help": {
            "text": help_text or check.id,
            "markdown": f"{check.meaning}\n\n**Remedy**: {check.remedy}\n\ndocs/{check.page}",
        },
        "defaultConfiguration": {"level": _LEVELS[check.severity]},
    }


def _result(finding: Finding, index: int, key: str) -> dict[str, Any]:
    source = finding.source
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _location(source.file),
            # readers want a region; what belongs to a whole file stands at its first line
            "region": {"startLine": source.line or 1},
        }
    }
    if source.element:
        place["logicalLocations"] = [{"fullyQualifiedName": source.element, "kind": "element"}]
    return {
        "ruleId": finding.check,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _sentence(finding)},
        "locations": [place],
        "partialFingerprints": {"robomodel/v1": key},
    }


def _location(file: str) -> dict[str, Any]:
    if file.startswith("/") or file[1:2] == ":":
        return {"uri": f"file:///{quote(file.lstrip('/'), safe='/:')}"}
    return {"uri": quote(file), "uriBaseId": "%SRCROOT%"}


# ---- JUnit ---------------------------------------------------------------------------------------


def as_junit(report: LintReport, fail_on: Severity) -> str:
    """A test suite for each file, with a case for each finding; a case that passes if none."""
    grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    by_file: dict[str, list[Finding]] = {file: [] for file in report.files}
    for each in report.findings:
        by_file.setdefault(each.source.file, []).append(each)
    failures = sum(each.severity in grave for each in report.findings)
    total = sum(max(len(several), 1) for several in by_file.values())
    root = ET.Element("testsuites", name="robomodel lint", tests=f"{total}", failures=f"{failures}")
    for file, findings in sorted(by_file.items()):
        failed = sum(each.severity in grave for each in findings)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=file,
            tests=f"{max(len(findings), 1)}",
            failures=f"{failed}",
            errors="0",
            skipped="0",
        )
        if not findings:
            ET.SubElement(suite, "testcase", name="nothing found", classname=file)
        for each in findings:
            name = " ".join(filter(None, (f"[{each.check}]", each.source.element)))
            case = ET.SubElement(suite, "testcase", name=_xml(name), classname=file)
            if each.source.line is not None:
                case.set("line", f"{each.source.line}")
            if each.severity in grave:
                part = ET.SubElement(case, "failure", type=each.severity)
                part.set("message", _xml(_sentence(each)))
            else:
                part = ET.SubElement(case, "system-out")
            part.text = _xml(line_of(each))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _xml(text: str) -> str:
    """The text without the characters that XML 1.0 cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


# ---- GitHub --------------------------------------------------------------------------------------


def as_annotations(report: LintReport) -> str:
    """Workflow commands, which GitHub shows beside the lines of the files."""
    lines = [_annotation(each) for each in report.findings]
    return "".join(f"{line}\n" for line in [*lines, summary(report)])


def _annotation(finding: Finding) -> str:
    source = finding.source
    properties = {
        "file": source.file,
        "line": f"{source.line or 1}",
        "title": f"{finding.check}: {source.element}" if source.element else finding.check,
    }
    listed = ",".join(f"{name}={_escaped(text, ':,')}" for name, text in properties.items())
    return f"::{_COMMANDS[finding.severity]} {listed}::{_escaped(_sentence(finding))}"


def _escaped(text: str, more: str = "") -> str:
    """Text in a workflow command: percent signs, line breaks and these characters as codes."""
    return "".join(f"%{ord(x):02X}" if x in "%\r\n" + more else x for x in text)


# ---- checks --------------------------------------------------------------------------------------


def listed(checks: Iterable[Check], form: TextFormat) -> str:
    """The checks with their meaning and remedy, as text or JSON."""
    ordered = sorted(checks, key=lambda check: check.id)
    if form == "json":
        names = ("id", "severity", "meaning", "remedy", "page")
        return _json([picked(check, *names) for check in ordered])
    return "".join(
        f"{check.id} ({check.severity})\n  {check.meaning}\n  {check.remedy}\n" for check in ordered
    )
