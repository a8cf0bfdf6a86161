"""``robomodel lint --against``: a configuration of a simulator against robot files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from robomodel.errors import DescriptionError, DescriptionWarning, Source
from robomodel.lint.audit.study import audit
from robomodel.lint.runner import (
    LintReport,
    job_of,
    options_of,
    reported,
    robots_at,
    shortened,
)
from robomodel.lint.settings import Settings
from robomodel.loading import load
from robomodel.reports.document import Finding


def audited(paths: Sequence[Path], settings: Settings, against: str) -> LintReport:
    """The findings on a configuration, ``CONFIG.py`` or ``CONFIG.py:NAME``, for these robots.

    Raises:
        OSError: A path or the configuration cannot be read.
        ValueError: The configuration is none, or several fit a robot.
    """
    robots = robots_at(paths, settings)
    file, colon, name = against.rpartition(":")
    if not colon or not file.endswith(".py"):
        file, name = against, ""
    place = str(Path(file).absolute())

    def findings() -> Iterator[Finding]:
        for robot in robots:
            options = options_of(job_of(robot, settings), robot)
            options.pop("reference", None)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DescriptionWarning)
                    model = load(str(robot.path), **options)
            except (DescriptionError, ImportError) as error:
                source = getattr(error, "source", Source(str(robot.path)))
                message = getattr(error, "message", str(error))
                yield shortened(Finding("error", "load", source, message), settings.root)
                continue
            also = f" ({robot.path.name})" if len(robots) > 1 else ""
            for each in audit(model, place, name=name or None).findings:
                yield shortened(replace(each, message=f"{each.message}{also}"), settings.root)

    return reported(findings(), robots, settings)
