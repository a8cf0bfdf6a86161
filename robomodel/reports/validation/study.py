"""Validation: every check on a model, the warnings of reading its file, and the report."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robomodel.arrays import Array, quantile
from robomodel.description.transmissions import rotor_name
from robomodel.errors import DescriptionError, DescriptionWarning, Interrupted, Source, few
from robomodel.loading import load
from robomodel.model import Model, build
from robomodel.reach.curves import Curve
from robomodel.reports.document import (
    NAMED,
    SEVERITIES,
    Document,
    Finding,
    Findings,
    HasDocument,
    Later,
    Part,
    Section,
    Severity,
    Table,
    count,
    picked,
)
from robomodel.reports.drawings import Drawings
from robomodel.reports.plots import Line, Plot
from robomodel.reports.validation import file_checks as files
from robomodel.reports.validation import loss_checks as losses
from robomodel.reports.validation import mechanism_checks as mechanics
from robomodel.reports.validation import number_checks as numbers
from robomodel.reports.validation import twin_checks as twins
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.linkage import Choice, LinkageStudy
from robomodel.running import uncollected
from robomodel.tolerances import CLOSED
from robomodel.vocabulary.checks import check_plausible

CHECKS: tuple[Callable[[CheckContext], Iterator[Finding]], ...] = (
    mechanics.check_redundancy,
    mechanics.check_clusters,
    mechanics.check_closing,
    mechanics.check_singularities,
    mechanics.check_coordinates,
    mechanics.check_limits,
    numbers.check_inertias,
    numbers.check_centres,
    twins.check_twins,
    numbers.check_shapes,
    numbers.check_rotors,
    losses.check_losses,
    numbers.check_units,
    files.check_meshes,
    files.check_zero_limits,
    files.check_gains,
    files.check_collisions,
)
"""All checks; docs/validate.md explains them by the ids of their findings."""


def validate(model: object, *, reference: object = None, **options: Any) -> Report:
    """Check a robot's file for faults and oddities.

    Checked are structure, closing of loops, singularities within the joint limits, the choice of
    independent coordinates, transmissions, inertias, limits and units; docs/validate.md lists the
    checks. Findings are errors, warnings or notes, each with its place in the file, its number and
    a remedy.

    Args:
        model: A :class:`~robomodel.model.Model`, or its file, which is loaded; its warnings are
            findings, and a file that does not load gives a report of that one error.
        reference: A model or file of the same robot that is right: last year's, the stock file.
            Differences from it, as :func:`robomodel.compare` lists them, are findings: warnings if
            the numbers show the cause, a moving element is missing, a mass is zero or a ratio
            differs, else notes. Links and joints of a file whose loops make no mechanism are
            compared, too.
        **options: Options of :func:`robomodel.load`, for a file.

    Returns:
        report: The findings.

    Raises:
        DescriptionError: The reference cannot be loaded.
        Interrupted: After Ctrl-C, with the findings so far.
        TypeError: Options with a model, which is loaded already.

    Examples:
        >>> report = rm.validate(rm.robots.load("crank_rocker"))
        >>> report.ok, report.summary
        (True, '2 notes')
    """
    right = reference if reference is None or isinstance(reference, Model) else load(reference)
    if isinstance(model, Model):
        if options:
            raise TypeError("options are for loading, and a model is loaded already")
        return of_model(model, _issues(model), right)
    try:
        with _recorded() as caught:
            loaded = load(model, **options)
    except DescriptionError as error:
        return of_error(error, right)
    return of_model(loaded, [each.message for each in caught], right)


@uncollected()
def of_model(
    model: Model,
    issues: Iterable[Warning | str] = (),
    reference: Model | None = None,
) -> Report:
    """The report on a model, with the warnings of its reading and differences from another."""
    context = CheckContext(model)
    findings = [finding for issue in issues for finding in _as_findings(issue)]

    def report(linkages: Iterable[LinkageStudy]) -> Report:
        return Report(
            model.name,
            model.description.source.file,
            tuple(sorted(dict.fromkeys(findings), key=_gravest_first)),
            tuple(linkages),
        )

    done = 0
    try:
        for check in CHECKS:
            findings += check(context)
            done += 1
        if reference is not None:
            from robomodel.reports.validation.reference import from_reference

            findings += from_reference(reference, model)
    except KeyboardInterrupt as pressed:
        raise Interrupted(f"{done} of {len(CHECKS)} checks", report(())) from pressed
    return report(context.linkages.values())


def of_error(error: DescriptionError, reference: Model | None = None) -> Report:
    """The report on a file that does not load, with differences from a reference, if readable.

    A file whose loops make no mechanism is compared with its loops open.
    """
    findings = [Finding("error", "load", error.source, error.message)]
    if reference is not None and error.description is not None:
        from robomodel.reports.validation.reference import from_reference

        findings += from_reference(reference, error.description)
    return Report("", error.file, tuple(findings))


def _gravest_first(finding: Finding) -> tuple[int, float, str, str]:
    """Order of findings: by severity, then by place in the file."""
    line = math.inf if finding.source.line is None else finding.source.line
    return SEVERITIES.index(finding.severity), line, finding.check, finding.source.element


def _recorded() -> warnings.catch_warnings[list[warnings.WarningMessage]]:
    return warnings.catch_warnings(record=True, action="always", category=DescriptionWarning)


def _issues(model: Model) -> list[Warning | str]:
    """The warnings of checking and building the model's description again."""
    known = model._issues is not None and model._issues[0] is model.description
    with _recorded() as caught:
        check_plausible(model.description)
        if not known:
            build(model.description)
    issues = model._issues[1] if model._issues is not None and known else ()
    again = [DescriptionWarning(each.message, each.source, (each,)) for each in issues]
    return [*(each.message for each in caught), *again]


LIMITATIONS = frozenset(
    ("dynamics of a loop", "fluid", "gravity compensation", "joint damping", "limits of a loop",
     "limits of a tendon", "mocap", "plugin", "spring")
)  # fmt: skip
"""Kinds of issues that are limits of this package: the file is as it should be."""
OF_CHECKS = frozenset(("beyond limits",))
"""Kinds of issues that a check of the model finds again, with a number."""


def _as_findings(message: Warning | str) -> list[Finding]:
    """The warning as a finding at each of its places; a note where nothing is wrong in the file."""
    if isinstance(message, DescriptionWarning):
        return [
            Finding("note" if each.kind in LIMITATIONS else "warning", "file", each.source,
                    each.message)
            for each in message.issues if each.kind not in OF_CHECKS
        ]  # fmt: skip
    return [Finding("warning", "file", Source(), str(message))]


# ---- the report ----------------------------------------------------------------------------------


RATES_CUT_OFF = 1.5  # times the rates' usual size: plots of G are cut off there
RATES_USUAL = 0.9  # share of the points that defines this size
NUMBERS = frozenset(
    ("triangle", "inertia-size", "point-mass", "centre-of-mass", "ratio", "rotor-mass",
     "rotor-inertia", "rotor-twice", "armature", "millimetres", "grams", "degrees")
)  # fmt: skip
"""Checks of single numbers, which files often have wrong in many places."""
CONDITION_LABEL = "motion per unit of the inputs, 1/σ"
NAMES_AND_NUMBERS = re.compile(r"(?<!\w)'[^']*'|-?\d[\d.e+-]*")
KEY = "Dashed: the other way to close. Red: singular positions. Grey: beyond the limits. "
CONDITION = (
    "Motion per unit of the inputs: how far all joints of the linkage together move when its "
    "independent joints move by one unit (1/σ, with σ the least singular value of their rows). "
    "Where it is large, near a dead point, the independent joints hardly move while others do, and "
    "their torque holds nothing."
)


@dataclass(frozen=True)
class Report(HasDocument):
    """The findings on a robot, and the study of each cluster with loops.

    Attributes:
        robot: The robot's name.
        file: Its file.
        findings: The findings, the gravest first.
        linkages: The study of each cluster with loops.
    """

    robot: str
    file: str
    findings: tuple[Finding, ...]
    linkages: tuple[LinkageStudy, ...] = ()

    @cached_property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        counter = Counter(finding.severity for finding in self.findings)
        return {severity: counter[severity] for severity in SEVERITIES}

    @property
    def ok(self) -> bool:
        """True if there are at most notes."""
        return all(finding.severity == "note" for finding in self.findings)

    @cached_property
    def alike(self) -> list[Findings]:
        """The findings, grouped if they differ only in place and amount."""
        groups: dict[tuple[object, ...], list[Finding]] = {}
        numbers = NUMBERS
        if sum(each.check == "limits" for each in self.findings) > NAMED:
            numbers |= {"limits"}
        for each in self.findings:
            text = (each.message, each.remedy)
            if each.check in numbers:
                text = (NAMES_AND_NUMBERS.sub("", each.message), "")
            groups.setdefault((each.severity, each.check, *text), []).append(each)
        return [Findings(first, others) for first, *others in groups.values()]

    @property
    def summary(self) -> str:
        """The counts, in words."""
        if not self.findings:
            return "nothing found"
        return ", ".join(count(n, severity) for severity, n in self.counts.items() if n)

    @cached_property
    def document(self) -> Document:
        """The report as text, JSON and a page."""
        sections = [Section("", self.alike)]
        sections += [part for linkage in self.linkages for part in _sections(linkage)]
        return Document(
            self.robot or self.file, self.summary, sections, self._data(), self.file, "validation"
        )

    def _data(self) -> dict[str, Any]:
        names = ("severity", "check", "message", "remedy", "value", "unit")
        return picked(self, "robot", "file", "ok", "counts") | {
            "findings": [
                picked(each, *names) | picked(each.source, "element", "file", "line")
                for each in self.findings
            ],
            "linkages": [linkage.as_dict() for linkage in self.linkages],
            "warnings": [
                f"{each.source}: {each.message}" for each in self.findings if each.check == "file"
            ],
        }


def _sections(linkage: LinkageStudy) -> Iterator[Section]:
    """The measurements of a linkage as text, tables, drawings and plots."""
    parts: list[Part] = [_summary(linkage), _numbers(linkage), _ranges(linkage)]
    yield Section(f"Cluster {linkage.cluster}", parts)
    yield Section("", Later(lambda: _pictures(linkage)), on_page=True)


def _pictures(linkage: LinkageStudy) -> list[Part]:
    """Drawings and plots of a linkage."""
    caption = (KEY if linkage.other_sweeps else "") + CONDITION
    figures: list[Part] = [Drawings(linkage.sketches, linkage.ghosts, caption)]
    for number, sweep in enumerate(linkage.drawn):
        turned = not np.all(sweep.ahead)  # it has met the other way itself
        others = () if turned else linkage.other_sweeps[number : number + 1]
        here, there = linkage.conditions
        conditions = [here[number], *there[number : number + len(others)]]
        figures += (
            replace(plot, group=_title(sweep))
            for plot in _plots(linkage, sweep, others, conditions)
        )
    return figures


def _summary(linkage: LinkageStudy) -> str:
    """Sentences on what the linkage is and does."""
    independent, n = linkage.independent, linkage.mobility
    others = [name for name in linkage.joints if name not in independent]
    moved = few(others)
    sentences = [
        *(f"{each}." for each in linkage.reaches),
        f"{count(n, 'freedom')}: {few(independent)} "
        f"move{'s' if len(independent) == 1 else ''} {moved}.",
        f"The loops close to {linkage.gap:.0e} m (or as the sine of an angle) in all of "
        f"{linkage.states} states that were looked at."
        if linkage.gap < CLOSED
        else f"The loops do not close everywhere: they stay open by {linkage.gap:.2g}.",
    ]
    if linkage.branches > 1 or linkage.continuum:
        sentences.append(
            "With the independent joints at neutral it can be put together in "
            f"{mechanics.ways_to_close(linkage)}; the first drawing is the one that the model "
            "uses" + (", and the robot does not get to all others." if linkage.mode else ".")
        )
    sentences += _singularities(linkage)
    if not linkage.modes:
        sentences.append(
            "Assembly modes within limits were not counted, as more than two freedoms are tied."
        )
    return " ".join(sentences)


def _singularities(linkage: LinkageStudy) -> Iterator[str]:
    """Sentences on singular positions, and what they rest on."""
    met = [each for sweep in linkage.sweeps for each in sweep.singularities]
    within = sum(each.reached for each in met)
    if linkage.mobility == 1:
        if within:
            yield (
                f"{count(within, 'singular position')} within the limits, where the "
                "linkage can go on in two ways, or motors lose their levers."
            )
        elif met:
            yield "Its singular positions are all beyond the limits, as its path shows."
        else:
            yield "It has no singular positions, as its path shows."
        return
    paths = count(len(linkage.sweeps), "path")
    yield (
        f"{count(within, 'singular position') if within else 'No singular positions'} within the "
        f"limits on {paths} of one joint at a time from neutral."
    )
    for each in linkage.coordinates:
        if each.searched:
            found = "Dead points" if each.nearest else "No dead points"
            found += f" of {few(each.chosen.joints)} were found"
            if each.searched == each.known:
                yield f"{found} on a grid of {each.known} states over all that its paths reach."
                continue
            yield (
                f"{found} by searches from {each.searched} of {each.known} states that random "
                f"walks reach{'' if each.nearest else '; elsewhere there may be some'}."
            )


def _numbers(linkage: LinkageStudy) -> Table:
    rows = [
        ["joint velocities, conditions, freedoms",
         f"{linkage.velocities} - {linkage.rank} = {linkage.mobility} ({linkage.rows} rows)"],
    ]  # fmt: skip
    for each in linkage.coordinates:
        of = "the independent joints" if len(linkage.coordinates) == 1 else few(each.chosen.joints)
        rows.append(
            [f"motion per unit of {of} (1/σ)", _condition(each.chosen, searched=each.searched > 0)]
        )
        if each.best.joints != each.chosen.joints:
            best = _condition(each.best, searched=each.searched > 0)
            best = f"{few(each.best.joints)}: {best}"
            rows.append(["with other independent joints", best])
    return Table(["", ""], rows)


def _condition(choice: Choice, *, searched: bool) -> str:
    """The motion per unit of independent joints, and what its largest value rests on."""
    worst = f"{'most found' if searched else 'at most'} {choice.worst:.3g}"
    worst = "infinite at a dead point" if math.isinf(choice.worst) else worst
    return f"median {choice.median:.3g}, {worst}"


def _ranges(linkage: LinkageStudy) -> Table:
    """How far joints go by themselves, and singular positions on the way."""
    units = linkage.units
    rows: list[list[str | float]] = []
    for sweep in linkage.sweeps:
        points = ", ".join(
            f"{each.kind} at {round(each.position, 9) + 0.0:.4g}"
            + (f" ({at})" if (at := linkage.placed(each, sweep)) else "")
            + ("" if each.reached else " (out of reach)")
            for each in sweep.singularities
        )
        ends = ["turns fully", ""] if math.isinf(np.ptp(sweep.range)) else [*sweep.range]
        rows.append([sweep.joint, *ends, units[sweep.joint], sweep.others, points or "none"])
    columns = ["joint", "reaches from", "to", "", "with", "singular positions"]
    return Table(columns, rows, digits=4)


def _title(sweep: Curve) -> str:
    low, high = sweep.range
    reach = "turns fully" if math.isinf(high - low) else f"from {low:.4g} to {high:.4g}"
    return f"{sweep.joint} {reach}" + (f", with {sweep.others}" if sweep.others else "")


def _plots(
    linkage: LinkageStudy, sweep: Curve, others: Sequence[Curve], conditions: Sequence[Array]
) -> Iterator[Plot]:
    """Positions and ratios of the other joints, and the condition, along a sweep."""
    unit = linkage.units
    along = f"{sweep.joint} [{unit[sweep.joint]}]"
    # joints of other freedoms are at rest, and rotors turn in proportion to their joints
    rotors = {rotor_name(name) for name in linkage.labels}
    rest = {sweep.joint, *sweep.held, *rotors}
    moving = [c for c, name in enumerate(linkage.labels) if name not in rest]
    marks = [(each.position, each.kind) for each in sweep.singularities]
    marks = [mark for mark in marks if _shown(mark[0], sweep)]
    for kind in ("rad", "m"):
        shown = [c for c in moving if unit[linkage.labels[c]] == kind]
        if not shown:
            continue
        yield Plot(
            "other joints: position",
            along,
            f"position [{kind}]",
            _lines(linkage, shown, sweep, others, "positions"),
            marks=marks,
            reached=_reached(sweep),
        )
        yield Plot(
            "other joints: ratio",
            along,
            f"ratio [{kind}/{unit[sweep.joint]}]",
            _lines(linkage, shown, sweep, others, "rates"),
            marks=marks,
            reached=_reached(sweep),
            limits=_steepest(sweep.rates[:, shown]),
        )
    yield Plot(
        "motion per unit of the inputs",
        along,
        CONDITION_LABEL,
        [
            Line("motion per unit", each.position, condition, 0, dashed=each is not sweep)
            for each, condition in zip((sweep, *others), conditions, strict=True)
        ],
        marks=marks,
        reached=sweep.range,
        log=True,
    )


def _lines(
    linkage: LinkageStudy, columns: Sequence[int], sweep: Curve, others: Sequence[Curve], what: str
) -> list[Line]:
    """The columns of ``what`` along a sweep, and dashed on the other way to close."""
    lines = []
    for each in (sweep, *others):
        ahead = each.ahead if each is sweep else np.zeros(len(each.position), dtype=bool)
        for dashed, part in ((False, ahead), (True, ~ahead)):
            if np.any(part):
                lines += [
                    Line(linkage.labels[c], each.position,
                         np.where(part, getattr(each, what)[:, c], np.nan), n, dashed)
                    for n, c in enumerate(columns)
                ]  # fmt: skip
    return lines


def _reached(sweep: Curve) -> tuple[float, float]:
    """The least and the greatest point of a sweep within its range."""
    low, high = float(np.min(sweep.position)), float(np.max(sweep.position))
    return max(low, sweep.range[0]), min(high, sweep.range[1])


def _steepest(rates: Array) -> tuple[float, float]:
    """Bounds at which plots of ratios that go to infinity are cut off."""
    finite = rates[np.isfinite(rates)]
    if not len(finite):
        return (-1.0, 1.0)
    size = RATES_CUT_OFF * max(float(quantile(np.abs(finite), RATES_USUAL)), 1e-3)
    return max(-size, float(finite.min())), min(size, float(finite.max()))


def _shown(position: float, sweep: Curve) -> bool:
    low, high = float(np.min(sweep.position)), float(np.max(sweep.position))
    return low - 0.1 <= position <= high + 0.1
