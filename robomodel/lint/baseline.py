"""Baselines: findings that are known and not reported, whatever their lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from robomodel.reports.document import Finding

_NUMBERS = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?!\w)|\(line \d+\)", re.I)
VERSION = 1

Key = tuple[str, str, str, str]


def key(finding: Finding) -> Key:
    """Key of a finding: file, check, element, message without its numbers."""
    source = finding.source
    return (source.file, finding.check, source.element, _NUMBERS.sub("#", finding.message))


def fingerprint(finding: Finding) -> str:
    """The key as a short text, for tools that follow findings over time."""
    return sha256("\0".join(key(finding)).encode()).hexdigest()[:24]


def written(findings: Iterable[Finding]) -> str:
    """The text of a baseline that holds these findings."""
    counts = Counter(map(key, findings))
    entries = [
        {"file": file, "check": check, "element": element, "message": message, "count": count}
        for (file, check, element, message), count in sorted(counts.items())
    ]
    return (
        json.dumps({"version": VERSION, "findings": entries}, indent=1, ensure_ascii=False) + "\n"
    )


def read(text: str) -> Counter[Key]:
    """The findings that a baseline holds; raises ValueError for another file."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError("this is no baseline that --update-baseline wrote")
    counts: Counter[Key] = Counter()
    for entry in data.get("findings", ()):
        counts[entry["file"], entry["check"], entry["element"], entry["message"]] += int(
            entry["count"]
        )
    return counts


def unknown(findings: Iterable[Finding], known: Counter[Key]) -> list[Finding]:
    """The findings beyond those of a baseline, which counts equal ones."""
    left = known.copy()
    result = []
    for each in findings:
        if left[key(each)] > 0:
            left[key(each)] -= 1
        else:
            result.append(each)
    return result
