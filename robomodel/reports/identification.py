"""The report on an identification: measured and predicted forces, changes, unknown parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from robomodel.arrays import Array
from robomodel.identification import Identified, IdentifiedGroup, parameters
from robomodel.identification.identified import GroupChange
from robomodel.identification.sensors import FRICTION
from robomodel.model import Model
from robomodel.model.efficiencies import EFFICIENCIES
from robomodel.model.elements import units_of
from robomodel.model.parameters import unit_of
from robomodel.reports.document import Bullets, Cell, Document, Part, Section, Table
from robomodel.reports.plots import Line, Plot

COORDINATE = ("name", "residual", "before", "forces", "validation", "effective")
PARAMETER = ("name", "before", "value", "deviation", "information_gain")
BINS, BINNED = 16, 4  # intervals over which residuals are averaged; least samples in each
HISTOGRAM_REACH = 4.0  # half width of a histogram, in standard deviations
DEVIATION = (
    "± is one standard deviation: the value lies within it with a probability of 68 %, and within "
    "twice of it with 95 %, if the forces' errors are normal, however long they are alike, and the "
    "file and friction's form are about right."
)
UNKNOWN = (
    "The log reduces the assumed variance of these by less than a tenth: they stay near the file's "
    "values."
)


EFFECTIVE = (
    "'samples count as': as many samples with independent errors would tell as much; errors are "
    "alike for some time, which all deviations take into account."
)
SENSORS = ("offset", "ratio", "constant")
TITLES = {
    "bias": "bias (half the difference both ways)",
    "damping difference": "half the difference of damping both ways",
    "static friction": "static friction above Coulomb's",
    "Stribeck velocity": "Stribeck velocity",
}


def document(fit: Identified, model: Model, source: str, unused: Sequence[str] = ()) -> Document:
    """The report; ``model`` is the one from which the fit started, ``source`` the log's name.

    ``unused``: columns of the log that were not read.
    """
    before = parameters(model).values
    unknown: list[Part] = [UNKNOWN, Bullets(by_owner(fit.unknown))] if fit.unknown else []
    identified = [group for group in fit.groups if group.known]
    changes = fit.changes(before) if fit.fitted else ()
    left = "Root mean squares of forces, and of what is left of them"
    sections = [
        Section("Suspicious: look at the log before the results", [Bullets(fit.suspicions)]),
        Section("Notes", [Bullets(fit.notes)]),
        Section("What changed most, by the forces that it makes", [_changes(changes)]),
        Section(left if fit.fitted else "Forces, and what the file's parameters leave of them",
                [_residuals(fit, model), *([EFFECTIVE] if fit.fitted else [])]),
        Section("Friction beside Coulomb's and viscous friction", [_friction(fit)]),
        Section("Forms of friction, by prediction of blocks not seen", [_forms(fit)]),
        Section("Losses of gears", [_losses(fit)]),
        Section("Delays of forces behind the motion", [_delays(fit)]),
        Section("Sensors", [_sensors(fit)]),
        Section("Measured and predicted forces", list(_plots(fit, model))),
        Section(
            "Identifiable combinations of parameters",
            [_groups(identified, dict(zip(fit.names, before.tolist(), strict=True))), DEVIATION]
            if identified else [],
        ),
        Section("Not identifiable from this log", unknown),
        Section("Columns that were not used", [Bullets(unused)]),
        Section(
            "All parameters", [_parameters(fit, before)],
            on_page=True, folded=True,
        ),
    ]  # fmt: skip
    data = _data(fit, model, before, changes, unused)
    summary, file = _summary(fit, source), model.description.source.file
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


def _summary(fit: Identified, source: str) -> str:
    """Number of samples, and the share of the forces that file and fit leave unexplained."""
    measured = np.isfinite(fit.forces) & np.isfinite(fit.before)
    size = float(np.sum(fit.forces[measured] ** 2))
    summary = f"{fit.samples} samples of {source}"
    if size <= 0.0:
        return summary
    file, left = (
        100.0 * np.sqrt(np.sum(x[measured] ** 2) / size) for x in (fit.before, fit.residual)
    )
    if not fit.fitted:
        return f"{summary}: {file:.2g} % of the forces are left by the file's parameters"
    return f"{summary}: {left:.2g} % of the forces are left, by the file's parameters {file:.2g} %"


def _changes(changes: Sequence[GroupChange]) -> Table:
    """Combinations whose change makes the largest forces."""
    rows: list[list[Cell]] = [
        [each.group.name, each.before, each.group.value, f"± {each.group.deviation:.2g}",
         each.group.unit, f"{100.0 * each.share:.2g} % of {each.coordinate}'s"]
        for each in changes
    ]  # fmt: skip
    columns = ["combination", "file", "identified", "deviation", "unit", "makes forces"]
    return Table(columns, rows, digits=4)


def _groups(groups: Sequence[IdentifiedGroup], before: Mapping[str, float]) -> Table:
    """Identified combinations of parameters, beside the file's values."""
    rows: list[list[Cell]] = [
        [each.name, sum(x * before[name] for name, x in each.coefficients.items()),
         each.value, f"± {each.deviation:.2g}", each.unit, f"{100.0 * each.information_gain:.0f} %"]
        for each in groups
    ]  # fmt: skip
    columns = ["combination", "file", "identified", "deviation", "unit", "information gain"]
    return Table(columns, rows, digits=4)


def _residuals(fit: Identified, model: Model) -> Table:
    """Residuals of each coordinate, in its unit."""
    columns = ["coordinate", "forces", "left by the file"]
    shown = [fit.forces, fit.before]
    if fit.fitted:
        columns, shown = [*columns, "left by the fit"], [*shown, fit.residual]
    columns += ["unit", "share"]
    if bool(np.any(np.isfinite(fit.validation))):
        columns.append("in blocks not seen")
    if fit.fitted:
        columns.append("samples count as")
    rows: list[list[Cell]] = []
    for i, name in enumerate(model.dof_names):
        share = fit.residual[i] / fit.forces[i] if fit.forces[i] > 0.0 else np.nan
        row: list[Cell] = [name, *(float(x[i]) for x in shown), _force_unit(model, name),
                           f"{100.0 * share:.2g} %" if np.isfinite(share) else ""]  # fmt: skip
        if "in blocks not seen" in columns:
            row.append(float(fit.validation[i]))
        if fit.fitted:
            row.append(f"{fit.effective[i]:.0f}" if np.isfinite(fit.residual[i]) else "")
        rows.append(row)
    return Table(columns, rows, digits=4)


def _force_unit(model: Model, coordinate: str) -> str:
    """N for sliding joints, and for a base along its axes; else N m."""
    joint = next((each for each in model.joints if each.name == coordinate), None)
    units = units_of(coordinate.endswith((".vx", ".vy", ".vz"))) if joint is None else joint.units
    return units.force


def _plots(fit: Identified, model: Model) -> Iterator[Plot]:
    """For each coordinate with measured forces: forces, residuals, and their distribution."""
    for force, left in force_plots(fit, model):
        yield from (force, left)
        i = model.dof_names.index(force.name)
        error = fit.measured[:, i] - fit.predicted[:, i]
        yield _histogram(force.name, error)
        yield from _against(fit, model, i, error)


def force_plots(fit: Identified, model: Model) -> Iterator[tuple[Plot, Plot]]:
    """For each coordinate with measured forces: the forces, and the residuals."""
    every = max(1, len(fit.measured) // 600)  # at most 1200 samples in a picture
    at = np.arange(0, len(fit.measured), every)
    x = at.astype(float) if fit.times is None else fit.times[at]
    along = "sample" if fit.times is None else "time [s]"
    for i, name in enumerate(model.dof_names):
        unit = f"[{_force_unit(model, name)}]"
        measured, predicted, file = (f[at, i] for f in (fit.measured, fit.predicted, fit.file))
        if not np.any(np.isfinite(measured)):
            continue
        lines = [Line("measured", x, measured), Line("predicted", x, predicted),
                 Line("by the file", x, file)]  # fmt: skip
        left = [Line("", x, measured - predicted)]
        left += [Line("", x[[0, -1]], np.full(2, side * fit.residual[i]), 6, True)
                 for side in (2.0, -2.0)]  # fmt: skip
        yield (
            Plot(f"{name}: force", along, f"force {unit}", lines, name, group=name),
            Plot(f"{name}: measured less predicted, two deviations", along, f"force {unit}", left,
                 group=name),
        )  # fmt: skip


def _against(fit: Identified, model: Model, i: int, error: Array) -> Iterator[Plot]:
    """Means of residuals over velocity, position and load, with two deviations of each mean.

    What is not zero there says what is missing: friction's form over velocity, ripple or springs
    over position, losses of gears over load.
    """
    name = model.dof_names[i]
    joint = next((each for each in model.joints if each.name == name), None)
    if joint is None:
        return
    units = joint.units
    for what, x, unit in (
        ("velocity", fit.velocities[:, i], units.velocity),
        ("position", fit.positions[:, i], units.position),
        ("load", fit.predicted[:, i], units.force),
    ):
        there = np.isfinite(error) & np.isfinite(x)
        if np.count_nonzero(there) < BINNED * BINS or np.ptp(x[there]) == 0.0:
            continue
        order = np.argsort(x[there], kind="stable")
        parts = np.array_split(order, BINS)
        place = np.array([np.mean(x[there][part]) for part in parts])
        mean = np.array([np.mean(error[there][part]) for part in parts])
        count = np.array([len(part) for part in parts])
        share = min(fit.effective[i] / np.count_nonzero(there), 1.0) if fit.fitted else 1.0
        spread = 2.0 * float(np.std(error[there])) / np.sqrt(np.maximum(share * count, 1.0))
        lines = [Line("", place, mean), Line("", place, spread, 6, True),
                 Line("", place, -spread, 6, True)]  # fmt: skip
        yield Plot(
            f"{name}: mean residual over {what}, two deviations", f"{what} [{unit}]",
            f"force [{units.force}]", lines, group=name,
        )  # fmt: skip


def _histogram(name: str, error: Array) -> Plot:
    """The distribution of residuals, beside a normal one with their deviation."""
    error = error[np.isfinite(error)]
    size = float(np.sqrt(np.mean(error**2))) or 1.0
    edges = np.linspace(-HISTOGRAM_REACH, HISTOGRAM_REACH, 32)  # 31 bars
    middle = 0.5 * (edges[1:] + edges[:-1])
    counts, _ = np.histogram(error / size, edges)
    density = counts / (len(error) * (edges[1] - edges[0]))
    normal = np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    lines = [Line("residuals", np.repeat(edges, 2)[1:-1], np.repeat(density, 2)),
             Line("normal", middle, normal)]  # fmt: skip
    return Plot(
        f"{name}: residuals' density", f"residual / {size:.3g}", "", lines, group=name
    )  # fmt: skip


def _parameters(fit: Identified, before: Array) -> Table:
    """Parameters beside the file's; those that the motions do not identify are grey."""
    ends, unknown = fit.interval(), set(fit.unknown)
    rows: list[list[Cell]] = [
        [fit.names[i], float(before[i]), float(fit.values[i]),
         "held" if fit.deviation[i] == 0.0 else f"{ends[i, 0]:.4g} to {ends[i, 1]:.4g}",
         unit_of(fit.model, fit.names[i]),
         f"{100.0 * fit.information_gain[i]:.0f} %", "unknown" if fit.names[i] in unknown else ""]
        for i in range(len(fit.names))
    ]  # fmt: skip
    columns = ["parameter", "file", "identified", "95 % between", "unit", "information gain",
               ""]  # fmt: skip
    faint = [i for i, name in enumerate(fit.names) if name in unknown]
    return Table(columns, rows, digits=4, faint=faint)


def _delays(fit: Identified) -> Table:
    """Delays by coordinate."""
    rows: list[list[Cell]] = [
        [each.name, float(each.value), f"± {each.deviation:.2g}"]
        for each in fit.sensors if each.kind == "delay"
    ]  # fmt: skip
    return Table(["coordinate", "delay [s]", "deviation"], rows, digits=4)


def _losses(fit: Identified) -> Table:
    """Efficiencies by actuator."""
    found = {(x.name, x.kind): f"{x.value:.4g} ± {x.deviation:.2g}" for x in fit.sensors}
    names = [each.name for each in fit.sensors if each.kind == EFFICIENCIES[0]]
    rows: list[list[Cell]] = [[name, *(found[name, kind] for kind in EFFICIENCIES)]
                              for name in names]  # fmt: skip
    return Table(["motor", "efficiency while it drives", "while it is driven"], rows)


def _sensors(fit: Identified) -> Table:
    """Other quantities of sensors."""
    rows: list[list[Cell]] = [
        [each.title, float(each.value), f"± {each.deviation:.2g}"]
        for each in fit.sensors if each.kind in SENSORS
    ]  # fmt: skip
    return Table(["sensor", "value", "deviation"], rows, digits=4)


def _friction(fit: Identified) -> Table:
    """Laws of friction by joint."""
    names = dict.fromkeys(each.name for each in fit.sensors if each.kind in FRICTION)
    found = {(x.name, x.kind): f"{x.value:.4g} ± {x.deviation:.2g}" for x in fit.sensors}
    kinds = [kind for kind in FRICTION if any((name, kind) in found for name in names)]
    rows: list[list[Cell]] = [
        [name, *(found.get((name, kind), "") for kind in kinds)] for name in names
    ]  # fmt: skip
    return Table(["joint", *(TITLES[kind] for kind in kinds)], rows)


def _forms(fit: Identified) -> Table:
    """Forms of friction that were compared."""
    rows: list[list[Cell]] = [
        [each.form, f"{100.0 * each.share:.3g} %", *(
            ", ".join(names) if each.chosen else "" for names in (each.joints, each.gears)),
         "chosen" if each.chosen else ""]
        for each in fit.forms
    ]  # fmt: skip
    return Table(["friction", "of forces left", "static friction of", "losses of", ""], rows)


def _data(
    fit: Identified, model: Model, before: Array, changes: Sequence[GroupChange],
    unused: Sequence[str],
) -> dict[str, object]:  # fmt: skip
    coordinates = zip(
        model.dof_names,
        fit.residual,
        fit.before,
        fit.forces,
        fit.validation,
        fit.effective,
        strict=True,
    )
    values = zip(fit.names, before, fit.values, fit.deviation, fit.information_gain, strict=True)
    return {
        "robot": model.name,
        "output": None,
        "samples": fit.samples,
        "coordinates": [dict(zip(COORDINATE, row, strict=True)) for row in coordinates],
        "parameters": [dict(zip(PARAMETER, row, strict=True)) for row in values],
        "groups": fit.groups,
        "changes": list(changes),
        "sensors": fit.sensors,
        "forms": fit.forms,
        "unknown": fit.unknown,
        "unused": unused,
        "notes": fit.notes,
        "suspicions": fit.suspicions,
    }
