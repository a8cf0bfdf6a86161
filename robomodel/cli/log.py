"""Logs of motions: CSV files whose columns are named after a robot's coordinates."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robomodel.cli.frame import UserError
from robomodel.errors import ClosureError, Source, did_you_mean, few
from robomodel.model import Model
from robomodel.model.joints import Array
from robomodel.model.states import position_names

EVEN = 0.01  # of the time between samples: how far it may differ
ROUNDED = 1e-3  # by how much a log's positions may leave loops open

KINDS = {"q": "positions", "v": "velocities", "a": "accelerations", "tau": "forces"}


@dataclass(frozen=True)
class Log:
    """A motion: ``q`` (T, nq), ``v``, ``tau`` (T, nv), ``a`` too or None; ``step`` [s] if known.

    ``unused``: columns that mean nothing here.
    """

    q: Array
    v: Array
    a: Array | None
    tau: Array
    step: float | None
    unused: tuple[str, ...]


def read_log(path: Path, model: Model) -> Log:
    """The log in a CSV file with a header; errors name the file and the line.

    Columns: ``time`` [s]; ``q.NAME`` of each position, or of each independent joint, from which
    loops are closed; ``v.NAME``, ``a.NAME`` and ``tau.NAME`` by ``model.dof_names``. Forces that
    the log does not have are unknown (nan), on a floating base zero. Without any ``a.`` there are
    no accelerations.
    """
    header, lines, table = _table(path)
    columns = {name: table[:, i] for i, name in enumerate(header)}
    used: set[str] = set()

    def taken(kind: str, names: Sequence[str]) -> dict[str, Array]:
        found = {n: columns[f"{kind}.{n}"] for n in names if f"{kind}.{n}" in columns}
        used.update(f"{kind}.{n}" for n in found)
        return found

    def complete(kind: str, names: Sequence[str]) -> Array:
        found = taken(kind, names)
        if missing := [f"{kind}.{n}" for n in names if n not in found]:
            hint = did_you_mean(missing[0], header)
            source = Source(str(path), 1)
            raise UserError(
                f"{source}: {KINDS[kind]} are missing: {few(missing)}{hint}", source=source
            )
        for name, column in found.items():
            if not np.all(np.isfinite(column)):
                source = Source(str(path), lines[int(np.argmin(np.isfinite(column)))])
                raise UserError(f"{source}: {kind}.{name} is empty or not finite", source=source)
        return np.stack([found[n] for n in names], axis=1)

    v = complete("v", model.dof_names)
    has = any(name.startswith("a.") for name in header)
    a = complete("a", model.dof_names) if has else None
    forces = taken("tau", model.dof_names)
    if not forces:
        source = Source(str(path), 1)
        raise UserError(f"{source}: no forces: tau.{model.dof_names[-1]} and others", source=source)
    base = f"{model.floating_base}."
    zero, unknown = np.zeros(len(table)), np.full(len(table), np.nan)
    tau = np.stack(
        [forces.get(n, zero if n.startswith(base) else unknown) for n in model.dof_names], axis=1
    )
    positions = position_names(model)
    if all(f"q.{name}" in columns for name in positions):
        q = complete("q", positions)
    else:  # of clusters with loops, the independent joints' positions are enough
        loose = {joint.name for joint in model.joints if joint.nq == 1 and not joint.independent}
        needed = [name for name in positions if name not in loose]
        q = _closed(path, lines, model, needed, complete("q", needed))
    step = _step(path, lines, columns["time"]) if "time" in columns else None
    used.add("time")
    return Log(q, v, a, tau, step, tuple(name for name in header if name not in used))


def _closed(
    path: Path, lines: list[int], model: Model, names: Sequence[str], given: Array
) -> Array:
    """Configurations from independent positions, each from the one before."""
    q = model.neutral()
    rows = []
    joints: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        owner = name if name in model.joint_names else name.rpartition(".")[0]
        joints.setdefault(owner, []).append(i)
    for line, row in zip(lines, given, strict=True):
        try:
            q = model.configuration({n: list(row[at]) for n, at in joints.items()}, guess=q)
        except ClosureError as error:
            source = Source(str(path), line)
            raise UserError(f"{source}: {error}", source=source) from None
        rows.append(q)
    return np.array(rows)


def _step(path: Path, lines: list[int], time: Array) -> float | None:
    """Seconds between samples; nan where they are not even, None of a single one."""
    steps = np.diff(time)
    if not len(steps):
        return None
    wrong = ~(steps > 0.0)
    if wrong.any():
        source = Source(str(path), lines[int(np.argmax(wrong)) + 1])
        raise UserError(f"{source}: time does not increase", source=source)
    mean = float(np.mean(steps))
    return mean if np.all(np.abs(steps - mean) <= EVEN * mean) else math.nan


def _table(path: Path) -> tuple[list[str], list[int], Array]:
    """Header, the rows' lines and their numbers; empty cells are nan."""

    def wrong(line: int, message: str) -> UserError:
        source = Source(str(path), line)
        return UserError(f"{source}: {message}", source=source)

    rows: list[list[float]] = []
    lines: list[int] = []
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        try:
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise wrong(1, "no header; its columns are time, q.JOINT, v.JOINT, tau.JOINT")
            if twice := [n for i, n in enumerate(header) if n in header[:i]]:
                raise wrong(1, f"column '{twice[0]}' stands twice")
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise wrong(
                        reader.line_num, f"{len(row)} cells, where the header has {len(header)}"
                    )
                lines.append(reader.line_num)
                rows.append([_number(x) for x in row])
                if math.inf in map(abs, rows[-1]):
                    at = [abs(x) == math.inf for x in rows[-1]].index(True)
                    raise wrong(reader.line_num, f"{header[at]}: '{row[at]}' is not a number")
        except UnicodeDecodeError:
            raise wrong(1, "this is not text") from None
        except csv.Error as error:
            raise wrong(reader.line_num, str(error)) from None
    if not rows:
        raise wrong(1, "no samples")
    return header, lines, np.array(rows)


def _number(text: str) -> float:
    """A cell; nan if it is empty, inf if it is no number."""
    try:
        return float(text) if text.strip() else math.nan
    except ValueError:
        return math.inf
