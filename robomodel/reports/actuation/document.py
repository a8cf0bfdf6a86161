"""The report on actuators, of one design or of two beside each other.

Ratios, torque, speed, range, four-bars, workspace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators.envelopes import JointEnvelope, Quantity
from robomodel.errors import few
from robomodel.model.elements import units_of
from robomodel.reports.document import (
    Bullets,
    Cell,
    Document,
    Section,
    Table,
    count,
    curves,
    picked,
)
from robomodel.reports.plots import Line, Plot, bounded
from robomodel.tolerances import SAME, WRITTEN

if TYPE_CHECKING:
    from robomodel.reports.actuation.cylinders import Cylinder
    from robomodel.reports.actuation.losses import LossyJoint
    from robomodel.reports.actuation.study import (
        Actuation,
        FourBar,
        LimbMap,
        Polygon,
        SpeedTorque,
        Workspace,
    )
    from robomodel.reports.actuation.transmission import Extreme, Transmission

LOW = math.radians(40.0)  # transmission angle below which the bars mostly load their hinges
DEAD_POINTS = {
    "motors rest": "its motors rest there, and can neither hold nor move it",
    "it rests": "it turns back there, while its motors move on",
    "both rest": "it turns back there, and its motors with it, while others move on",
    "not alone": "motors give it no torque there without torque on others of the limb",
}
UNDRIVEN = "it turns back there, while others move on"
SIDES = ("lower", "upper")
_Span: TypeAlias = "tuple[float, float] | None"  # the least and the greatest of values
Designs: TypeAlias = "Sequence[tuple[str, Actuation]]"  # with names; that of a single one is empty


def document(study: Actuation) -> Document:
    """The study in sections; its data hold the points of all curves."""
    sections = _sections([("", study)])
    report = Document(study.robot, summary(study), sections, {}, study.file, "actuation")
    return replace(report, data=_data(study) | {"curves": curves(report.plots)})


def beside(first: Actuation, second: Actuation) -> Document:
    """Two designs joint by joint, with their curves in the same plots.

    Its data are those of the first; those of the second are below ``other``.
    """
    designs = list(zip(_names(first, second), (first, second), strict=True))
    return Document(
        " and ".join(name for name, _ in designs),
        "; ".join(f"{name}: {summary(study)}" for name, study in designs),
        _sections(designs), {**first.document.data, "other": second.document.data},
        f"{first.file} and {second.file}", "actuation",
    )  # fmt: skip


def _names(first: Actuation, second: Actuation) -> tuple[str, str]:
    """Names that distinguish two designs: the robots', else the files'."""
    for one, other in (
        (first.robot, second.robot), (Path(first.file).stem, Path(second.file).stem)
    ):  # fmt: skip
        if one != other:
            return one, other
    return "first", "second"


def _sections(designs: Designs) -> list[Section]:
    """Tables, then plots."""
    if len(designs) == 1:
        title, joints = "what reaches them, and what the file of an open tree should say", _joints
    else:
        title, joints = "range, and torque, speed and reflected inertia over it", _numbers
    shown, folded = _sorted(_plots(designs))
    return [
        Section("What the joints reach up to dead points of limbs", [_lines(designs, _reaches)]),
        Section("Actuators", [_rows(designs, _drives)]),
        Section(
            "Ratios: the motor's rate for unit velocity of a joint, others of its limb at rest",
            [_rows(designs, _ratios, keys=2)],
        ),
        Section(
            f"Joints: {title}",
            [_rows(designs, joints), _lines(designs, _notes), _lines(designs, _balls)],
        ),
        Section("Limbs: joints that motors move together", [_lines(designs, _limb_notes)]),
        Section("Four-bars", [_rows(designs, _four_bars), _lines(designs, _weak)]),
        Section(
            "Transmission angles of other rods",
            [_rows(designs, _rods, keys=3), _lines(designs, _weak_rods)],
        ),
        Section("Cylinders", [_rows(designs, _cylinders, keys=2), _lines(designs, _near_dead)]),
        Section(
            "Losses in gears: what motors drive and hold, and what turns them when they are off",
            [_rows(designs, _losses)],
        ),
        Section("Torques that joints get together", [_rows(designs, _polygons, keys=2)]),
        Section("Workspace", [_lines(designs, _workspaces)]),
        Section("Over the range", shown),
        Section(
            "Over the range: joints whose curves are those of a joint above, or of inertia alone",
            folded, folded=True,
        ),
    ]  # fmt: skip


def _sorted(plots: Iterable[Plot]) -> tuple[list[Plot], list[Plot]]:
    """The plots to look at, and those that add little: repeated curves, and inertia alone."""
    figures: dict[str, list[Plot]] = {}
    for plot in plots:
        figures.setdefault(plot.group or plot.name, []).append(plot)
    driven = any(not plot.name.startswith("inertia_") for each in figures.values() for plot in each)
    shown: list[list[Plot]] = []
    folded: list[list[Plot]] = []
    for figure in figures.values():
        inert = all(plot.name.startswith("inertia_") for plot in figure)
        little = (driven and inert) or any(_alike(figure, other) for other in shown)
        (folded if little else shown).append(figure)
    return [plot for each in shown for plot in each], [plot for each in folded for plot in each]


def _alike(one: Sequence[Plot], other: Sequence[Plot]) -> bool:
    """True if two figures have the same lines, or mirror images, to a hundredth of their span."""
    if len(one) != len(other):
        return False
    return all(
        len(a.lines) == len(b.lines) and a.y_label == b.y_label
        and all(_near(x.x, y.x) and _near(x.y, y.y) for x, y in zip(a.lines, b.lines, strict=True))
        for a, b in zip(one, other, strict=True)
    )  # fmt: skip


def _near(one: Array, other: Array) -> bool:
    if one.shape != other.shape or not np.any(np.isfinite(one)):
        return False
    # curves that differ by a hundredth of the greatest number look the same
    size = 0.01 * float(np.nanmax(np.abs(one)))
    return any(
        np.allclose(one, each, rtol=0.0, atol=size, equal_nan=True)
        for each in (other, -other, -other[::-1])
    )


def summary(study: Actuation) -> str:
    """The study in one line."""
    parts = [count(len(study.drives), "actuator")]
    if study.four_bars:
        parts.append(count(len(study.four_bars), "four-bar"))
    if study.hidden:
        names = ", ".join(each.joint for each in study.hidden[:4])
        parts.append(f"limits behind linkages or gears: {names}")
    return ", ".join(parts)


# ---- tables --------------------------------------------------------------------------------------


def _rows(designs: Designs, table_of: Callable[[Actuation], Table], keys: int = 1) -> Table:
    """A table; for several designs, rows with the same first cells below each other."""
    if len(designs) == 1:
        return table_of(designs[0][1])
    groups: dict[tuple[Cell, ...], list[Sequence[Cell]]] = {}
    for name, study in designs:
        table = table_of(study)
        for row in table.rows:
            groups.setdefault(tuple(row[:keys]), []).append([*row[:keys], name, *row[keys:]])
    return replace(
        table, columns=[*table.columns[:keys], "design", *table.columns[keys:]],
        rows=[row for rows in groups.values() for row in rows],
    )  # fmt: skip


def _lines(designs: Designs, lines_of: Callable[[Actuation], Iterable[str]]) -> Bullets:
    return Bullets([_of(name, line) for name, study in designs for line in lines_of(study)])


def _of(design: str, text: str) -> str:
    """The text with the design's name before it, if there are several."""
    return f"{design}: {text}" if design else text


def _with(value: float | None, unit: str) -> str:
    """A number and its unit."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4g} {unit}" if math.isfinite(value) else "unlimited"


def _both(low: float, high: float, unit: str) -> str:
    """A limit that is the same both ways, or the two."""
    if low == -high:
        return _with(high, unit)
    ends = (f"{x:.4g}" if math.isfinite(x) else "unlimited" for x in (low, high))
    return f"{' to '.join(ends)} {unit}"


def _drives(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.drives:
        _, force, speed, _ = units_of(each.slides)
        rows.append(
            [each.name, each.joint, _both(each.effort_lower, each.effort_limit, force),
             _both(each.velocity_lower, each.velocity_limit, speed),
             _with(each.stall_torque, force), _with(each.no_load_speed, speed)]
        )  # fmt: skip
    columns = ["actuator", "at joint", "effort", "velocity", "stall torque", "no-load speed"]
    return Table(columns, rows)


def _ratios(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for drive in study.drives:
        for ratio in drive.ratios:
            if ratio.constant and not ratio.low:
                continue
            along = [ratio.low, None if _same(ratio.low, ratio.high) else ratio.high]
            wide = not (_same(ratio.low, ratio.least) and _same(ratio.high, ratio.most))
            ends = [*along, *([ratio.least, ratio.most] if wide else [None, None])]
            rows.append([drive.name, ratio.joint, *map(_infinite, ends)])
    columns = ["actuator", "joint", "ratio", "to", "anywhere", "to"]
    return Table(columns, rows, digits=4)


def _same(one: float, other: float) -> bool:
    size = max(abs(one), abs(other))
    return one == other or (math.isfinite(size) and abs(one - other) <= SAME * size)


def _joints(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.joints:
        length, force, speed, inertia = units_of(each.slides)
        limits = each.limits
        rows.append(
            [each.joint, ", ".join(each.rest), *_ends(each, length),
             _limit(each, limits.least_effort, limits.effort, force),
             _spreads(
                 each.span(each.torque_back, "alone, back"), each.span(each.torque, "alone"), force
             ),
             _beyond(each, force),
             _limit(each, limits.least_velocity, limits.velocity, speed),
             _spreads(each.span(each.speed_back, "speed"), each.span(each.speed, "speed"),
                      speed),
             _shown(each.span(each.inertia), inertia, always=True)]
        )  # fmt: skip
    columns = ["joint", "at rest", "lower", "upper", "effort", "over the range",
               "whatever the others take", "velocity", "over the range",
               "reflected inertia"]  # fmt: skip
    return Table(columns, rows)


def _infinite(x: float | None) -> Cell:
    """A number as a cell, infinite ones in words."""
    return f"{'-' if x < 0.0 else ''}infinite" if x is not None and math.isinf(x) else x


def _beyond(joint: JointEnvelope, unit: str) -> str:
    """The torque at a joint whatever others take, as a cell; empty if others change nothing."""
    one, other = (
        x[joint.line]
        for x in (np.minimum(joint.torque, joint.torque_back), joint.torque_any)
    )  # fmt: skip
    both = np.isfinite(one) & np.isfinite(other)
    # torques that differ by less than a thousandth are one
    if joint.passive or not np.any(other[both] > one[both] * (1.0 + 1e-3)):
        return ""
    return _shown(joint.span(joint.torque_any, "whatever others take"), unit, always=True)


def _numbers(study: Actuation) -> Table:
    """The numbers that are compared of the joints of two designs."""
    rows: list[list[Cell]] = []
    for each in study.joints:
        length, force, speed, inertia = units_of(each.slides)
        rows.append(
            [each.joint, *_ends(each, length),
             _reaching(each, each.span(each.torque, "alone"), force),
             _reaching(each, each.span(each.speed, "speed"), speed),
             _shown(each.span(each.inertia), inertia, always=True)]
        )  # fmt: skip
    return Table(["joint", "lower", "upper", "torque", "speed", "reflected inertia"], rows)


def _ends(joint: JointEnvelope, unit: str) -> tuple[str, str]:
    if joint.reach.turns_fully:
        return "turns fully", ""
    return _with(joint.limits.lower, unit), _with(joint.limits.upper, unit)


def _reaching(joint: JointEnvelope, ends: _Span, unit: str) -> str:
    """The least and the greatest value for a joint; empty if no motor drives it."""
    return _shown(ends, unit, always=True) or ("unlimited" if joint.actuators else "")


def _limit(joint: JointEnvelope, low: float, high: float, unit: str) -> str:
    """Limits both ways; empty for a joint without one that no motor drives."""
    limited = math.isfinite(low) or math.isfinite(high)
    return _both(low, high, unit) if joint.actuators or limited else ""


def _spreads(back: _Span, ahead: _Span, unit: str) -> str:
    """The spread of what drives give, both ways where these differ."""
    if back is None or ahead is None or all(map(_same, back, ahead)):
        return _shown(ahead, unit)
    return f"{_shown(back, unit, always=True)} back, {_shown(ahead, unit, always=True)} ahead"


def _spread(values: Array, unit: str) -> str:
    """The least and the greatest value that are finite."""
    return _shown(_range(values), unit, always=True)


def _shown(ends: _Span, unit: str, *, always: bool = False) -> str:
    """The least and the greatest value if they differ; the least if the greatest is infinite."""
    if ends is None:
        return ""
    low, high = ends
    if math.isinf(high):
        return f"{low:.4g} {unit} and up"
    if high - low <= SAME * max(abs(low), abs(high)):
        return f"{low:.4g} {unit}" if always else ""
    if f"{low:.4g}" == f"{high:.4g}":
        return f"{low:.4g} {unit}"
    return f"{low:.4g} to {high:.4g} {unit}"


def _range(values: Array) -> _Span:
    finite = values[np.isfinite(values)]
    return (float(np.min(finite)), float(np.max(finite))) if len(finite) else None


def _reaches(study: Actuation) -> Iterator[str]:
    """How far joints go, up to dead points of limbs' joints, and what ends that."""
    for each in study.joints:
        yield each.reach.words
        low, high = each.at_rest
        length = units_of(each.slides).position
        narrower = low > each.lower + WRITTEN or high < each.upper - WRITTEN
        if each.rest and narrower:
            others = ", ".join(each.rest)
            yield (
                f"{each.joint} alone, with {others} at neutral: {_open(low)} to {_open(high)} "
                f"{length}"
            )


def _open(x: float) -> str:
    return f"{x:.4g}" if math.isfinite(x) else "no end"


def _balls(study: Actuation) -> list[str]:
    return [
        f"{name}: a joint of several freedoms has no row; written as hinges, with links without "
        "mass between them, each has one"
        for name in study.balls
    ]


def _limb_notes(study: Actuation) -> Iterator[str]:
    """Notes on the reach of limbs' joints together, and how well their motors tell them apart."""
    for each in study.limbs:
        names = " and ".join(each.joints)
        share = f"{100.0 * each.share:.0f} %"
        box = "the box of their limits" if each.limited else "the box around neutral"
        yield f"{names} reach {share} of {box} together"
        for corner, by in each.lost:
            at = ", ".join(f"{n} {x:.4g}" for n, x in zip(each.joints, corner, strict=True))
            what = "does not close: the loops go no further" if by == "loop" else (
                f"is not reached: the limit of '{by}' is on the way")  # fmt: skip
            yield f"the corner {at} {what}"
        if len(each.motors) < len(each.joints):
            yield f"{names} have {count(len(each.motors), 'motor')}: some of them are passive"
        elif each.worst >= 10.0:  # condition of the limb's map
            at = ", ".join(f"{n} {x:.4g}" for n, x in zip(each.joints, each.worst_at, strict=True))
            yield (
                f"{names} ask nearly the same of their motors at {at}: condition "
                f"{each.worst:.3g} ({each.condition:.3g} at neutral, 1 is best)"
            )


def _notes(study: Actuation) -> Iterator[str]:
    """Notes on limits that come from other joints, and on limits of the file that do not hold."""
    idle = [each.joint for each in study.joints if not each.actuators
            and each.file_limits.effort == each.file_limits.least_effort == 0.0]  # fmt: skip
    if idle:
        yield f"no motor drives {few(idle)}: a limit of effort of zero tells of none"
    left = [each.joint for each in study.joints if not each.actuators and study.drives
            and each.file_limits.pushes]  # fmt: skip
    if left:
        yield f"no motor drives {few(left)}: the file has motors, and none there"
    for each in study.joints:
        yield from _joint_notes(each)


def _joint_notes(each: JointEnvelope) -> Iterator[str]:
    if not each.actuators and not each.hidden:
        return
    length, force, speed, _ = units_of(each.slides)
    for side, by in zip(SIDES, (each.lower_by, each.upper_by), strict=True):
        if by in ("", each.joint):
            continue
        limit = getattr(each.file_limits, side)
        end = each.reach.lower_end if side == "lower" else each.reach.upper_end
        what = f"a dead point of '{end.by}'" if by == "loop" else f"'{by}'"
        file = f"the file says {_with(limit, length)}" if math.isfinite(limit) else (
            "none in the file")  # fmt: skip
        yield f"{each.joint}: its {side} limit is that of {what} ({file})"
    for kind, effect in DEAD_POINTS.items():
        places = [f"{x.position:.4g}" for x in each.dead_points if x.kind == kind]
        if places:
            others = f", with {', '.join(each.rest)} at neutral" if each.rest else ""
            what = effect if each.actuators else UNDRIVEN
            yield f"{each.joint}: dead points at {', '.join(places)} {length}{others}: {what}"
    if each.passive:
        yield (
            f"{each.joint}: motors are too few to push it alone; its torque is that whatever the "
            "others take"
        )
    filed, own, tied = each.file_limits, each.limits, each.tied
    back, ahead = each.file_efforts
    for word, mine, other, by in (
        ("velocity", min(each.velocity, filed.velocity or math.inf), tied.ahead, tied.ahead_by),
        ("velocity backwards", min(each.velocity_back, -filed.least_velocity or math.inf),
         tied.back, tied.back_by),
    ):  # fmt: skip
        if other < mine * (1.0 - SAME) and (word == "velocity" or tied.back != tied.ahead):
            yield (
                f"{each.joint}: its limit of {word} is that of '{by}', which turns with it: "
                f"{_with(other, speed)}"
            )
    rows = [("effort", each.effort, filed.effort, ahead, force),
            ("velocity", each.velocity, filed.velocity, filed.velocity, speed)]  # fmt: skip
    if {filed.effort_lower, own.effort_lower} != {None}:
        rows.append(("effort backwards", each.effort_back, -filed.least_effort, back, force))
    if {filed.velocity_lower, own.velocity_lower} != {None}:
        least = -filed.least_velocity
        rows.append(("velocity backwards", each.velocity_back, least, least, speed))
    for word, here, promised, most, unit in rows:
        if math.isfinite(promised) and here < promised * (1.0 - SAME):
            yield (
                f"{each.joint}: the file promises {word} {_with(promised, unit)}, the motor gives "
                f"{_with(here, unit)}"
            )
        elif math.isfinite(here) and here * (1.0 - SAME) > promised > 0.0:
            which = "is tighter than what the motor gives,"
            if most > promised:
                which = "bounds motors of its own alone; with those of joints that follow it gets"
            given = _with(min(here, most) if most > promised else here, unit)
            limit = _with(promised, unit)
            yield f"{each.joint}: the file's limit of {word}, {limit}, {which} {given}"


def _four_bars(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.four_bars:
        low, high = math.degrees(each.least.angle), math.degrees(each.most.angle)
        lengths = ", ".join(f"{length:.4g}" for length in each.lengths)
        ends = [f"{low:.1f}° at {each.input} = {each.least.at:.4g} rad", f"{high:.1f}°"]
        rows.append([" - ".join(each.joints), each.kind, lengths, f"{each.margin:.3g}",
                     *(ends if each.input else ["that of the cylinder", ""])])  # fmt: skip
    columns = ["joints", "class", "bars [m]", "Grashof's margin [m]", "transmission angle", "to"]
    return Table(columns, rows)


def _weak(study: Actuation) -> list[str]:
    return [_pushes(each.loop) for each in study.four_bars if each.carried < LOW]


def _weak_rods(study: Actuation) -> list[str]:
    slides = {each.name for each in study.cylinders}
    rods = [each.rod for each in study.transmissions
            if each.least.angle < LOW and each.rod not in slides]  # fmt: skip
    return [_pushes(name) for name in dict.fromkeys(rods)]


def _pushes(name: str) -> str:
    return (
        f"{name}: below {math.degrees(LOW):.0f}° of transmission angle the bars push mostly on "
        "their hinges"
    )


def _rods(study: Actuation) -> Table:
    rows: list[list[Cell]] = [
        [each.rod, each.joint, each.input, *(_placed(end, each) for end in (each.least, each.most))]
        for each in study.transmissions
    ]
    return Table(["rod", "drives at", "moved by", "transmission angle", "to"], rows)


def _placed(end: Extreme, rod: Transmission) -> str:
    at = round(end.at, 9) + 0.0
    return f"{math.degrees(end.angle):.1f}° at {at:.4g} {units_of(rod.slides).position}"


def _cylinders(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.cylinders:
        length, force, _, _ = units_of(each.slides)
        least = each.transmission.least
        dead = ", ".join(f"{x:.4g}" for x in each.dead_points)
        rows.append(
            [each.name, each.joint, _shown(each.span(np.abs(each.levers)), "m", always=True),
             f"{math.degrees(least.angle):.1f}° at {each.joint} = {least.at:.4g} {length}",
             f"{each.joint} = {dead} {length}" if dead else "",
             _shown(each.span(np.abs(each.push)), force, always=True),
             _shown(each.span(np.abs(each.pull)), force, always=True)]
        )  # fmt: skip
    columns = ["cylinder", "moves", "lever", "least transmission angle", "dead point", "push",
               "pull"]  # fmt: skip
    return Table(columns, rows)


def _losses(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.losses:
        force = units_of(each.slides).force
        shown = [_spread(x, force) for x in (each.drives, each.holds, each.turns)]
        if np.all(np.isinf(each.turns)):
            shown[1:] = ["locks itself"] * 2
        rows.append([each.joint, ", ".join(each.motors), *shown])
    return Table(["joint", "motors", "they drive", "they hold", "turns them"], rows)


def _near_dead(study: Actuation) -> Iterator[str]:
    """Cylinders whose range ends near their dead point, or holds it."""
    for each in study.cylinders:
        length = units_of(each.slides).position
        if each.margin == 0.0:
            yield f"{each.name}: its dead point is within the range of {each.joint}"
        # below 15° to the line to its pin its lever is a quarter of that line
        elif math.degrees(each.transmission.least.angle) < 15.0:
            yield (
                f"{each.name}: the range of {each.joint} ends {each.margin:.3g} {length} before "
                "its dead point"
            )


def _polygons(study: Actuation) -> Table:
    rows: list[list[Cell]] = []
    for each in study.polygons:
        for i, name in enumerate(each.joints):
            most = [float(corners[:, i].max()) for corners in each.corners]
            unit = "of motors that give 1" if each.unit else each.force_units[i]
            rows.append([" and ".join(each.joints), name, min(most), max(most), unit,
                         len(each.corners)])  # fmt: skip
    columns = ["joints", "greatest of", "least", "most", "unit", "poses"]
    return Table(columns, rows, digits=4)


def _workspaces(study: Actuation) -> Iterator[str]:
    for each in study.workspaces:
        (a, b), (c, d) = each.extent
        first, second = each.axis_names
        yield (
            f"{each.foot} by {', '.join(each.coordinates)}: {first} from {a:.4g} to {b:.4g} m, "
            f"{second} from {c:.4g} to {d:.4g} m, in the coordinates of the base"
        )
        if len(each.singular):
            yield "singular curves within it: the foot loses a direction there"


# ---- plots ---------------------------------------------------------------------------------------


def _plots(designs: Designs) -> Iterator[Plot]:
    """Plots of all that changes with the pose; quantities of several designs share a plot.

    A plot of one design only has its name.
    """
    kinds: tuple[tuple[str, Sequence[str], Callable[[Mapping[str, Any]], Iterator[Plot]]], ...] = (
        ("joints", ("joint", "slides"), _of_joint),
        ("speed_torque", ("joint", "slides"), _of_speed_torque),
        ("four_bars", ("loop", "input"), _of_bar),
        ("transmissions", ("rod", "joint", "input", "slides"), _of_rod),
        ("cylinders", ("name", "joint", "slides"), _of_cylinder),
        ("losses", ("joint", "slides"), _of_losses),
        ("polygons", ("joints", "unit", "force_units"), _of_polygon),
        ("workspaces", ("foot", "axis_names"), _of_workspace),
    )
    for attribute, keys, drawn in kinds:
        groups: dict[tuple[object, ...], dict[str, Any]] = {}
        for name, study in designs:
            for each in getattr(study, attribute):
                groups.setdefault(tuple(getattr(each, key) for key in keys), {})[name] = each
        for group in groups.values():
            (name, *others) = group
            for plot in drawn(group):
                if others or len(designs) == 1:
                    yield plot
                else:
                    yield replace(
                        plot, title=f"{plot.title} ({name})", name=f"{plot.name}_{name}"
                    )  # fmt: skip


def _of_joint(group: Mapping[str, JointEnvelope]) -> Iterator[Plot]:
    """Plots of a joint's ratios, torque, speed and inertia over its positions, if one varies."""
    places = _places(group)
    joints = {design: group[design] for design in places}
    if not joints:
        return
    first = next(iter(joints.values()))
    length, force, speed, inertia = units_of(first.slides)
    for word, attribute, title, label in (
        ("ratio", "ratios", "motor's rate for unit velocity", "ratio"),
        ("torque", "torque", "torque that reaches it", f"torque [{force}]"),
        ("speed", "speed", "speed that reaches it", f"speed [{speed}]"),
        ("inertia", "inertia", "reflected inertia", f"inertia [{inertia}]"),
    ):
        lines = [
            line
            for design, each in joints.items()
            for line in _along(each, getattr(each, attribute), places[design], design, word)
        ]
        several = [np.concatenate([line.y for line in lines])] if lines and len(joints) > 1 else []
        if any(map(_varies, several or [line.y for line in lines])):
            yield Plot(
                f"{first.joint}: {title}", f"{first.joint} [{length}]", label, lines,
                f"{word}_{first.joint}", group=first.joint,
            )  # fmt: skip


def _places(group: Mapping[str, JointEnvelope]) -> dict[str, Array]:
    """Positions (n,) of a joint in each design that has a curve, in order.

    For a design whose numbers are constant they are the ends of its range, or of the other's.
    """
    places = {design: np.sort(each.positions[each.line]) for design, each in group.items()
              if len(each.line) > 1}  # fmt: skip
    constant = {design: (each.limits.lower, each.limits.upper) for design, each in group.items()
                if not each.varies and len(group) > 1}  # fmt: skip
    known = np.concatenate([*places.values(), *map(np.array, constant.values()), np.zeros(0)])
    known = known[np.isfinite(known)]
    if len(known) and np.ptp(known) > 0.0:
        widest = (float(np.min(known)), float(np.max(known)))
        for design, ends in constant.items():
            places[design] = np.array(
                [x if math.isfinite(x) else y for x, y in zip(ends, widest, strict=True)]
            )
    return {design: places[design] for design in group if design in places}


def _along(
    each: JointEnvelope, values: Array, places: Array, design: str, word: str
) -> Iterator[Line]:
    """Lines over a joint's positions; of its ratios one for each motor."""
    line = each.line if each.varies else np.repeat(each.line, len(places))
    order = line[np.argsort(each.positions[line], kind="stable")]
    columns = values[order].reshape(len(order), len(each.actuators) if word == "ratio" else 1)
    labels = each.actuators if word == "ratio" else (word,)
    for label, column in zip(labels, columns.T, strict=True):
        shown = bounded(column)
        if np.any(np.isfinite(shown)):
            yield Line(_of(design, label), places, shown)


def _varies(values: Array) -> bool:
    finite = values[np.isfinite(values)]
    return bool(np.ptp(finite) > SAME * np.max(np.abs(finite)))


def _of_speed_torque(group: Mapping[str, SpeedTorque]) -> Iterator[Plot]:
    first = next(iter(group.values()))
    length, force, speed, _ = units_of(first.slides)
    lines = [
        Line(_of(design, f"at {round(position, 12) + 0.0:.4g} {length}"), x, y)
        for design, each in group.items()
        for position, x, y in zip(each.positions, each.speeds, each.torques, strict=True)
    ]
    yield Plot(
        f"{first.joint}: torque over speed", f"speed [{speed}]", f"torque [{force}]", lines,
        f"torque_speed_{first.joint}", group=first.joint,
    )  # fmt: skip


def _of_bar(group: Mapping[str, FourBar]) -> Iterator[Plot]:
    group = {design: each for design, each in group.items() if each.input}
    if not group:
        return
    first, kinds = next(iter(group.values())), dict.fromkeys(each.kind for each in group.values())
    title = f"{first.loop}: transmission angle of a {' and a '.join(kinds)}"
    yield from _angles(group, title, f"{first.input} [rad]", first.loop)


def _of_rod(group: Mapping[str, Transmission]) -> Iterator[Plot]:
    first = next(iter(group.values()))
    yield from _angles(
        group, f"{first.rod}: transmission angle at {first.joint}",
        f"{first.input} [{units_of(first.slides).position}]", f"{first.rod}_{first.input}",
    )  # fmt: skip


def _angles(
    group: Mapping[str, FourBar] | Mapping[str, Transmission], title: str, label: str, name: str
) -> Iterator[Plot]:
    """Transmission angles over an input's positions, and the angle that counts as low."""
    lines = [
        Line(_of(design, "transmission angle"), each.positions, np.degrees(each.angles))
        for design, each in group.items()
        if len(each.positions) > 1
    ]
    if lines:
        places, low = np.concatenate([line.x for line in lines]), math.degrees(LOW)
        ends = np.array([np.min(places), np.max(places)])
        lines.append(Line(f"{low:.0f}°", ends, np.array([low, low])))
        yield Plot(title, label, "angle [°]", lines, f"transmission_angle_{name}")


def _of_cylinder(group: Mapping[str, Cylinder]) -> Iterator[Plot]:
    first = next(iter(group.values()))
    lines = [Line(_of(design, "lever"), each.positions, each.levers)
             for design, each in group.items() if len(each.positions) > 1]  # fmt: skip
    if lines:
        yield Plot(
            f"{first.name}: its lever on {first.joint}",
            f"{first.joint} [{units_of(first.slides).position}]", "lever [m]", lines,
            f"lever_{first.name}_{first.joint}",
        )  # fmt: skip


def _of_losses(group: Mapping[str, LossyJoint]) -> Iterator[Plot]:
    """The three torques over the joint's positions, where one varies."""
    first = next(iter(group.values()))
    lines = [
        Line(_of(design, label), each.positions, bounded(values))
        for design, each in group.items()
        for label, values in (
            ("motors drive", each.drives), ("motors hold", each.holds), ("turns them", each.turns)
        )
        if len(each.positions) > 1 and np.any(np.isfinite(values))
    ]  # fmt: skip
    if any(_varies(line.y) for line in lines):
        units = units_of(first.slides)
        yield Plot(
            f"{first.joint}: loads that motors drive, hold, and that turn them",
            f"{first.joint} [{units.position}]", f"torque [{units.force}]", lines,
            f"losses_{first.joint}", group=first.joint,
        )  # fmt: skip


def _of_polygon(group: Mapping[str, Polygon]) -> Iterator[Plot]:
    polygon = next(iter(group.values()))
    one, two = polygon.joints
    first_label, second_label = (
        f"{name}{', of motors that give 1' if polygon.unit else f' [{unit}]'}"
        for name, unit in zip(polygon.joints, polygon.force_units, strict=True)
    )
    lines = [
        Line(_of(design, f"at {first:.2f}, {second:.2f}"), *np.concatenate([at, at[:1]]).T)
        for design, each in group.items()
        for (first, second), at in zip(each.positions, each.corners, strict=True)
        if len(at)
    ]
    yield Plot(
        f"{one} and {two}: what they get together", first_label, second_label, lines,
        f"polygon_{one}_{two}", equal=True,
    )  # fmt: skip


def _of_workspace(group: Mapping[str, Workspace]) -> Iterator[Plot]:
    lines = []
    for design, each in group.items():
        points = each.points
        rows = [points] if points.ndim == 2 else [*points, *np.swapaxes(points, 0, 1)]
        lines.append(_broken(_of(design, "reached"), rows))
        if len(each.singular):
            lines.append(_broken(_of(design, "singular"), list(each.singular)))
    workspace = next(iter(group.values()))
    first, second = workspace.axis_names
    by = dict.fromkeys(" and ".join(each.coordinates) for each in group.values())
    yield Plot(
        f"{workspace.foot} by {', '.join(by)}", f"{first} of the base [m]", f"{second} [m]",
        lines, f"workspace_{workspace.foot}", equal=True,
    )  # fmt: skip


def _broken(label: str, parts: list[Array]) -> Line:
    """Several lines as one, with gaps."""
    gap = np.full((1, 2), np.nan)
    x, y = np.concatenate([piece for part in parts for piece in (part, gap)]).T
    return Line(label, x, y)


# ---- data ----------------------------------------------------------------------------------------


def _data(study: Actuation) -> dict[str, Any]:
    return picked(study, "robot", "file") | {
        "actuators": [
            asdict(each) | {"ratios": [asdict(x) | {"constant": x.constant} for x in each.ratios]}
            for each in study.drives
        ],
        "joints": [_joint_data(each) for each in study.joints],
        "balls": list(study.balls),
        "limbs": [_limb_data(each) for each in study.limbs],
        "four_bars": [_bar_data(each) for each in study.four_bars],
        "transmissions": [
            picked(each, "rod", "joint", "input") | {"transmission_angle": _angle_data(each)}
            for each in study.transmissions
        ],
        "cylinders": [
            picked(each, "joint", "rest", "dead_points", cylinder="name")
            | {"margin": each.margin, "lever": each.span(np.abs(each.levers))}
            | {"push": each.span(each.push), "pull": each.span(each.pull)}
            | {"angle": _angle_data(each.transmission)}
            for each in study.cylinders
        ],
        "losses": [
            picked(each, "joint", "motors")
            | {name: _range(getattr(each, name)) for name in ("drives", "holds", "turns")}
            for each in study.losses
        ],
        "polygons": [
            picked(each, "joints", "unit")
            | {
                "poses": [
                    {"positions": at, "corners": corners}
                    for at, corners in zip(each.positions, each.corners, strict=True)
                ]
            }
            for each in study.polygons
        ],
        "workspaces": [
            picked(each, "foot", "origin", "axes", "extent", "singular", joints="coordinates")
            for each in study.workspaces
        ],
    }


def _bar_data(each: FourBar) -> dict[str, Any]:
    names = ("joints", "loop", "lengths", "frame", "kind", "margin", "input", "carried")
    return picked(each, *names) | {"transmission_angle": _angle_data(each)}


def _angle_data(each: FourBar | Transmission) -> dict[str, Any]:
    angles = picked(each.least, least="angle", least_at="at")
    return angles | picked(each.most, most="angle", most_at="at")


def _limb_data(each: LimbMap) -> dict[str, Any]:
    return picked(each, "joints", "motors", "ratios", "condition", "share", "limited") | {
        "worst": {"condition": each.worst, "positions": each.worst_at},
        "lost_corners": [{"positions": at, "by": by} for at, by in each.lost],
    }


def _joint_data(each: JointEnvelope) -> dict[str, Any]:
    limits = ("lower", "upper", "effort", "velocity")
    back = {"effort_lower": "least_effort", "velocity_lower": "least_velocity"}
    values: dict[str, tuple[Array, Quantity]] = {
        "torque": (each.torque, "alone"),
        "torque_back": (each.torque_back, "alone, back"),
        "torque_whatever_others_take": (each.torque_any, "whatever others take"),
        "speed": (each.speed, "speed"),
        "speed_back": (each.speed_back, "speed"),
        "reflected_inertia": (each.inertia, ""),
    }

    def spans(*, anywhere: bool) -> dict[str, _Span]:
        return {name: each.span(*x, anywhere=anywhere) for name, x in values.items()}

    return (
        picked(each, "joint", "actuators", "tree", "hidden", "passive")
        | {
            "at_rest": each.rest,
            "range_at_rest": [x if math.isfinite(x) else None for x in each.at_rest],
            "dead_points": [x.position for x in each.dead_points],
            "dead_point_kinds": [x.kind for x in each.dead_points],
            "turns_fully": each.reach.turns_fully,
        }
        | picked(each.limits, *limits, **back)
        | {"lower_by": each.lower_by or None, "upper_by": each.upper_by or None}
        | spans(anywhere=False)
        | {"anywhere": spans(anywhere=True)}
        | {"condition": _range(each.condition), "file": picked(each.file_limits, *limits, **back)}
    )
