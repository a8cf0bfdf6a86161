"""The report on an identification: forces measured and predicted, changes, unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from robomodel.identification import Identified, IdentifiedGroup, parameters
from robomodel.model import Model
from robomodel.model.elements import units_of
from robomodel.model.joints import Array
from robomodel.reports.document import Bullets, Cell, Document, Part, Section, Table
from robomodel.reports.plots import Line, Plot

SHOWN = 600  # samples of a long motion in a picture
BARS = 31  # of a histogram
COORDINATE = ("name", "residual", "before", "forces", "validation")
PARAMETER = ("name", "before", "value", "deviation", "information_gain")
REACH = 4.0  # deviations, of a histogram
UNKNOWN = (
    "The log reduces the assumed variance of these by less than a tenth: they stay near the file's "
    "values."
)


def document(fit: Identified, model: Model, source: str, unused: Sequence[str] = ()) -> Document:
    """The report; ``model`` is that with which the fit began, ``source`` the log's name.

    ``unused``: columns of the log that were not read.
    """
    before = parameters(model).values
    unknown: list[Part] = [UNKNOWN, Bullets(by_owner(fit.unknown))] if fit.unknown else []
    identified = [group for group in fit.groups if group.known]
    sections = [
        Section("Suspicious: look at the log before the results", [Bullets(fit.suspicions)]),
        Section("Notes", [Bullets(fit.notes)]),
        Section("Identifiable combinations of parameters", [_groups(identified)]),
        Section(
            "Root mean squares of forces, and of what is left of them", [_residuals(fit, model)]
        ),
        Section("Measured and predicted forces", list(_plots(fit, model.dof_names))),
        Section(
            "Largest changes, with their uncertainty",
            [_changes(fit, before, fit.changes(before))],
        ),
        Section("Sensors", [_sensors(fit)]),
        Section("Not identifiable from this log", unknown),
        Section("Columns that were not used", [Bullets(unused)]),
        Section("All parameters", [_changes(fit, before, range(len(fit.names)))], on_page=True),
    ]
    data = _data(fit, model, before, unused)
    summary, file = f"{fit.samples} samples of {source}", model.description.source.file
    return Document(model.name, summary, sections, data, file, "identification")


def page(fit: Identified, model: Model, source: str) -> str:
    """The report as one HTML page."""
    return document(fit, model, source).html()


def by_owner(names: Iterable[str]) -> list[str]:
    """One line for each body or joint: "shank: mass, mx, Ixx"."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        owner, _, kind = name.rpartition(".")
        kinds.setdefault(owner, []).append(kind)
    return [f"{owner}: {', '.join(each)}" for owner, each in kinds.items()]


def _groups(groups: Sequence[IdentifiedGroup]) -> Table:
    """Values first: the combinations' names are long."""
    rows: list[list[Cell]] = [
        [each.value, f"± {each.deviation:.2g}", each.unit, f"{100.0 * each.information_gain:.0f} %",
         each.name]
        for each in groups
    ]  # fmt: skip
    return Table(["value", "deviation", "unit", "information gain", "combination"], rows, digits=4)


def _residuals(fit: Identified, model: Model) -> Table:
    """Of each coordinate, in its unit."""
    checked = bool(np.any(np.isfinite(fit.validation)))
    joints = {joint.name: joint for joint in model.joints}
    columns = ["coordinate", "forces", "left by the file", "left by the fit", "unit", "share"]
    rows: list[list[Cell]] = []
    for i, name in enumerate(model.dof_names):
        share = fit.residual[i] / fit.forces[i] if fit.forces[i] > 0.0 else np.nan
        slides = name.rpartition(".")[2] in ("vx", "vy", "vz")
        units = joints[name].units if name in joints else units_of(slides)
        row: list[Cell] = [name, *(float(x[i]) for x in (fit.forces, fit.before, fit.residual)),
                           units.force,
                           f"{100.0 * share:.2g} %" if np.isfinite(share) else ""]  # fmt: skip
        rows.append([*row, float(fit.validation[i])] if checked else row)
    return Table([*columns, "in blocks not seen"] if checked else columns, rows, digits=4)


def _plots(fit: Identified, names: Sequence[str]) -> Iterator[Plot]:
    """Of each coordinate whose force was measured: forces, residuals, and how these spread."""
    for force, left in force_plots(fit, names):
        yield from (force, left)
        i = list(names).index(force.name)
        yield _histogram(names[i], fit.measured[:, i] - fit.predicted[:, i])


def force_plots(fit: Identified, names: Sequence[str]) -> Iterator[tuple[Plot, Plot]]:
    """Of each coordinate whose force was measured: forces, and what is left of them."""
    every = max(1, len(fit.measured) // SHOWN)
    at = np.arange(0, len(fit.measured), every)
    x = at.astype(float) if fit.times is None else fit.times[at]
    along = "sample" if fit.times is None else "time [s]"
    for i, name in enumerate(names):
        measured, predicted, file = (f[at, i] for f in (fit.measured, fit.predicted, fit.file))
        if not np.any(np.isfinite(measured)):
            continue
        lines = [Line("measured", x, measured), Line("predicted", x, predicted),
                 Line("by the file", x, file)]  # fmt: skip
        left = [Line("", x, measured - predicted)]
        left += [Line("", x[[0, -1]], np.full(2, side * fit.residual[i]), 6, True)
                 for side in (2.0, -2.0)]  # fmt: skip
        yield (
            Plot(f"{name}: force", along, "N m or N", lines, name),
            Plot(f"{name}: measured less predicted, two deviations", along, "N m or N", left),
        )


def _histogram(name: str, error: Array) -> Plot:
    """How residuals spread, beside a normal distribution of their deviation."""
    error = error[np.isfinite(error)]
    size = float(np.sqrt(np.mean(error**2))) or 1.0
    edges = np.linspace(-REACH, REACH, BARS + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    counts, _ = np.histogram(error / size, edges)
    density = counts / (len(error) * (edges[1] - edges[0]))
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    lines = [Line("residuals", np.repeat(edges, 2)[1:-1], np.repeat(density, 2)),
             Line("normal", middle, normal)]  # fmt: skip
    return Plot(f"{name}: residuals' density", f"residual / {size:.3g}", "", lines)


def _changes(fit: Identified, before: Array, which: Sequence[int]) -> Table:
    """Parameters beside the file's; those that the motions do not identify are grey."""
    ends, unknown = fit.interval(), set(fit.unknown)
    rows: list[list[Cell]] = [
        [fit.names[i], float(before[i]), float(fit.values[i]),
         "held" if fit.deviation[i] == 0.0 else f"{ends[i, 0]:.4g} to {ends[i, 1]:.4g}",
         f"{100.0 * fit.information_gain[i]:.0f} %", "unknown" if fit.names[i] in unknown else ""]
        for i in which
    ]  # fmt: skip
    columns = ["parameter", "file", "identified", "95 % between", "information gain", ""]
    faint = [n for n, i in enumerate(which) if fit.names[i] in unknown]
    return Table(columns, rows, digits=4, faint=faint)


def _sensors(fit: Identified) -> Table:
    rows: list[list[Cell]] = [
        [each.title, float(each.value), f"± {each.deviation:.2g}"] for each in fit.sensors
    ]
    return Table(["sensor", "value", "deviation"], rows, digits=4)


def _data(fit: Identified, model: Model, before: Array, unused: Sequence[str]) -> dict[str, object]:
    coordinates = zip(
        model.dof_names, fit.residual, fit.before, fit.forces, fit.validation, strict=True
    )
    values = zip(fit.names, before, fit.values, fit.deviation, fit.information_gain, strict=True)
    return {
        "robot": model.name,
        "output": None,
        "samples": fit.samples,
        "coordinates": [dict(zip(COORDINATE, row, strict=True)) for row in coordinates],
        "parameters": [dict(zip(PARAMETER, row, strict=True)) for row in values],
        "groups": fit.groups,
        "sensors": fit.sensors,
        "unknown": fit.unknown,
        "unused": unused,
        "notes": fit.notes,
        "suspicions": fit.suspicions,
    }
