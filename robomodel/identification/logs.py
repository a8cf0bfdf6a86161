"""Logs of motions: tables with columns named after a robot's coordinates, and ROS bags."""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import (
    ClosureError,
    DescriptionError,
    MissingPackageError,
    Source,
    UnknownNameError,
    argument,
    as_real,
    check_names,
    did_you_mean,
    few,
)
from robomodel.identification.encoders import followed, following
from robomodel.identification.sensors import TYPED
from robomodel.model import Model
from robomodel.model.elements import position_names
from robomodel.tolerances import SINGULAR

ENDS = ("mx", "my", "mz", "fx", "fy", "fz")
KINDS = {"q": "positions", "v": "velocities", "a": "accelerations", "tau": "forces"}
BAGS = (".mcap", ".bag", ".db3")
STATE, WRENCH = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"


@dataclass(frozen=True, eq=False)
class Log:
    """A measured motion, as input of :func:`robomodel.identify`.

    Attributes:
        q: Positions (T, ·) of all coordinates, or of the ``encoders``' joints.
        v: Velocities of the same.
        a: Accelerations of the same; None if the log has none.
        tau: Forces (T, nv), nan where not measured; None if the log has ``currents``.
        currents: Currents (T, nu) [A].
        encoders: The measured joints, if these are not the coordinates.
        f_ext: Measured wrenches on links (T, 6).
        step: Time between samples [s], nan if it varies, None without times.
        unused: Ignored columns or topics.
        times: Times of the samples (T,) [s], from 0; None without times.
        notes: Changes that were made to the samples, as text.
        uneven: Why samples are not at even times, with file and line; None if they are.
    """

    q: Array
    v: Array
    a: Array | None
    tau: Array | None
    currents: Array | None = None
    encoders: tuple[str, ...] | None = None
    f_ext: Mapping[str, Array] = field(default_factory=dict)
    step: float | None = None
    unused: tuple[str, ...] = ()
    times: Array | None = None
    notes: tuple[str, ...] = ()
    uneven: DescriptionError | None = None

    def even_step(self) -> float:
        """``step``; raises ValueError without times, DescriptionError if they are uneven."""
        if self.uneven is not None:
            raise self.uneven
        if self.step is None or math.isnan(self.step):
            why = "a column 'time'" if self.step is None else "samples at even times"
            raise ValueError(f"without accelerations {why} is needed")
        return self.step

    def __repr__(self) -> str:
        return f"<Log: {len(self.v)} samples>"


@dataclass(frozen=True)
class _Table:
    """Columns by name, the line of each row, and the columns that were used."""

    file: str
    columns: dict[str, Array]
    rows: Sequence[int] | None = None  # lines of the file
    ignored: tuple[str, ...] = ()
    used: set[str] = field(default_factory=lambda: {"time"})

    def has(self, kind: str, names: Sequence[str]) -> bool:
        return all(f"{kind}.{name}" in self.columns for name in names)

    def selected(self, kind: str, names: Sequence[str]) -> Array:
        """These columns (T, ·); raises unless all are present and finite."""
        labels = [f"{kind}.{name}" for name in names]
        if missing := [name for name in labels if name not in self.columns]:
            hint = did_you_mean(missing[0], list(self.columns))
            if kind == "v" and not any(name.startswith("v.") for name in self.columns):
                filtered = argument("velocities", 20.0, of="read_log")
                hint = f"; {filtered} takes them from positions, up to 20 Hz"
            if like := _column_like(missing[0], self.columns):
                hint = f"; {argument('rename', {like: missing[0]})} names '{like}' so"
            raise self.wrong(f"{KINDS[kind]} are missing: {few(missing)}{hint}")
        self.used.update(labels)
        for name in labels:
            if not np.all(fine := np.isfinite(self.columns[name])):
                raise self.wrong(
                    f"{name} is empty or not finite, here and in {np.sum(~fine) - 1} more rows; "
                    "only forces may be: drop such rows where accelerations are given, else "
                    "interpolate",
                    int(np.argmin(fine)),
                )
        return np.stack([self.columns[name] for name in labels], axis=1)

    def wrong(self, message: str, row: int | None = None) -> DescriptionError:
        if row is None:
            return DescriptionError(message, Source(self.file, 1 if self.rows else None))
        if self.rows is None:
            return DescriptionError(message, Source(self.file, None, f"row {row}"))
        return DescriptionError(message, Source(self.file, self.rows[row]))


@dataclass(frozen=True)
class CalibrationReadings:
    """Input of :func:`robomodel.calibrate` from a file: joints, positions, frames.

    ``unused``: names of the other columns.
    """

    sensors: tuple[str, ...]
    measured: Array
    frames: Mapping[str, Array]
    unused: tuple[str, ...]


def read_readings(
    model: Model, source: object, *, rename: Mapping[str, str] | None = None
) -> CalibrationReadings:
    """Read positions of joints and frames from a file or a table; empty cells are not measured.

    Columns: ``q.JOINT`` of joints with one freedom, and ``p.LINK.x .y .z``, the world position of a
    link's origin. Raises DescriptionError for files that have none of these.
    """
    table = _read(source, None, rename)
    joints = tuple(j.name for j in model.joints if j.nv == 1 and f"q.{j.name}" in table.columns)
    links = [f.name for f in model.frames if table.has(f"p.{f.name}", "xyz")]
    if not joints and not links:
        raise table.wrong(
            f"no column q.JOINT or p.LINK.x, .y, .z of '{model.name}'; --rename OLD=NEW names "
            f"others so; it has {few(list(table.columns), 8)}"
        )
    count = len(next(iter(table.columns.values())))
    columns = [table.columns[f"q.{name}"] for name in joints]
    frames = {
        link: np.stack([table.columns[f"p.{link}.{axis}"] for axis in "xyz"], axis=-1)
        for link in links
    }
    used = {"time", *(f"q.{j}" for j in joints), *(f"p.{n}.{x}" for n in links for x in "xyz")}
    return CalibrationReadings(
        joints,
        np.stack(columns, axis=-1) if columns else np.zeros((count, 0)),
        frames,
        tuple(name for name in (*table.columns, *table.ignored) if name not in used),
    )


KIND_WORDS = {
    "q": ("position", "positions", "pos", "angle", "q", "qpos"),
    "v": ("velocity", "velocities", "vel", "speed", "v", "qd", "dq", "qvel"),
    "a": ("acceleration", "accelerations", "acc", "a", "qdd", "ddq"),
    "tau": ("effort", "torque", "force", "tau", "trq"),
}
"""Words for the kinds of columns in other programs."""


def _column_like(label: str, columns: Iterable[str]) -> str:
    """The column in another convention for this kind and joint, such as position_pan; else ""."""
    kind, _, joint = label.partition(".")
    for column in columns:
        rest, match, after = column.partition(joint)
        words = re.split(r"[^a-z]+", f"{rest} {after}".lower())
        if match and column != label and any(word in KIND_WORDS[kind] for word in words):
            return column
    return ""


def read_log(
    model: Model,
    source: object,
    *,
    topic: str | None = None,
    velocities: float | None = None,
    rename: Mapping[str, str] | None = None,
) -> Log:
    """Read a measured motion from a file or a table.

    Columns: ``time`` [s]; ``v.NAME`` by ``model.dof_names``, or of the same number of other joints
    (of rotors, for encoders at motors); ``q.NAME`` of the same joints; ``a.NAME`` of the same, or
    none at all; ``tau.NAME``, also of rotors and other dependent joints, or ``current.ACTUATOR``
    [A]; ``wrench.LINK.mx .my .mz .fx .fy .fz``, in the link's axes about its origin. Forces without
    a column are unknown (nan), those of a floating base zero.

    Files written by :meth:`Trajectory.to_csv`, with ``q:NAME`` for ``q.NAME``, are read as well.

    From bags, ``sensor_msgs/JointState`` gives q, v and tau of its joints, interpolated to even
    times, and ``geometry_msgs/WrenchStamped`` the wrenches on the links that their frames name.

    Args:
        model: The robot.
        source: Path of a CSV file with a header, of Parquet (``.parquet``), or of a ROS 1 or 2 bag
            (``.bag``, ``.mcap``, ``.db3`` or its folder); or columns by name: a dict of arrays or a
            data frame. Parquet and bags need the extra ``logs``.
        topic: The bag's topic of the joints, if there are several.
        velocities: Cut-off frequency [Hz] to compute missing velocities from positions at even
            times, by a filter without lag; about five times the frequency of the motion. Without
            it, logs without velocities are refused.
        rename: New names of columns, as in {"position_pan": "q.pan"}.

    Returns:
        log: The motion.

    Raises:
        DescriptionError: A column is missing or not numeric, with file and line.
        ValueError: ``velocities`` does not fit the sampling rate or the number of samples.
        ClosureError: Loops do not close.
        ImportError: A required package is not installed.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> t = 0.01 * np.arange(50)
        >>> columns = {"time": t}
        >>> columns |= {f"q.{name}": np.sin(t) for name in model.dof_names}
        >>> columns |= {f"v.{name}": np.cos(t) for name in model.dof_names}
        >>> columns |= {f"tau.{name}": np.cos(t) for name in model.dof_names}
        >>> rm.identification.read_log(model, columns).q.shape
        (50, 3)
    """
    table = _read(source, topic, rename)
    notes: list[str] = []
    uneven: DescriptionError | None = None
    accelerated = any(name.startswith("a.") for name in table.columns)
    if "time" in table.columns and not accelerated:
        table, notes, uneven = _evenly(table)
    columns = table.columns
    still = velocities is not None and not any(name.startswith("v.") for name in columns)
    kind, enough = ("q", _needed(model)) if still else ("v", list(model.dof_names))
    encoders = None if table.has(kind, enough) else _encoders(model, table, kind)
    rates = model.dof_names if encoders is None else _labels(model, encoders, model.dof_names)
    if still and uneven is not None:
        raise uneven
    v = np.empty(0) if still else table.selected("v", rates)
    a = table.selected("a", rates) if accelerated else None
    if encoders is None:
        q = _configurations(model, table)
    else:
        q = table.selected("q", _labels(model, encoders, position_names(model)))
    step = _step(table, columns["time"]) if "time" in columns else None
    if velocities is not None and still:
        v = velocities_of(model, q, encoders, step, velocities)
    forces, currents = _forces(model, table)
    tau = None if forces is None else _carried(model, q, encoders, forces)
    f_ext = {}
    for name in dict.fromkeys(n.split(".", 1)[1].rpartition(".")[0] for n in columns
                              if n.startswith("wrench.")):  # fmt: skip
        parts = [f"wrench.{name}.{end}" for end in ENDS]
        if missing := [each for each in parts if each not in columns]:
            raise table.wrong(f"a wrench's parts are missing: {few(missing)}")
        try:
            model.frame(name)
        except KeyError as error:
            raise table.wrong(f"wrench.{name}: {error.args[0]}") from None
        table.used.update(parts)
        f_ext[name] = np.stack([columns[each] for each in parts], axis=1)
    unused = (*(name for name in columns if name not in table.used), *table.ignored)
    names = [f"{kind}.{name}" for kind in ("q", "v", "a", "tau") for name in model.joint_names]
    for name in unused:
        if name in names:
            notes.append(f"column '{name}' is not used: others give the motion")
        elif meant := did_you_mean(name, names):
            notes.append(f"column '{name}' is not used{meant}")
    times = columns["time"] - columns["time"][0] if "time" in columns else None
    return Log(q, v, a, tau, currents, encoders, f_ext, step, unused, times, tuple(notes), uneven)


def read_positions(
    model: Model, source: object, *, topic: str | None = None
) -> tuple[Array, Array]:
    """Read configurations over time, from a log that may have no other columns.

    Args:
        model: The robot.
        source: As in :func:`read_log`, with columns ``time`` and ``q.NAME``, of the coordinates or
            of the same number of other joints.
        topic: As in :func:`read_log`.

    Returns:
        times: Times (T,) [s], from 0 on.
        q: Configurations (T, nq).

    Raises:
        DescriptionError: A column is missing or not numeric, with file and line.
        ClosureError: Loops do not close.
        ImportError: A required package is not installed.
    """
    table = _read(source, topic)
    if "time" not in table.columns:
        raise table.wrong("a column 'time' is needed")
    time = table.columns["time"]
    if _step(table, time) is None:
        raise table.wrong("a motion has two samples or more")
    encoders = None if table.has("q", _needed(model)) else _encoders(model, table, "q")
    if encoders is None:
        q = _configurations(model, table)
    else:
        labels = _labels(model, encoders, position_names(model))
        q = _followed(table, model, encoders, table.selected("q", labels))
    model.check(q, tolerance=TYPED)
    return time - time[0], q


def read_columns(source: object) -> tuple[dict[str, Array], tuple[str, ...]]:
    """The columns of a table by name, and names of those that are no numbers."""
    table = _read(source, None)
    return table.columns, table.ignored


# ---- columns -------------------------------------------------------------------------------------


def _labels(model: Model, joints: Sequence[str], all_names: Sequence[str]) -> list[str]:
    """The column names of these joints: the joint's name, or those that begin with it."""
    result: list[str] = []
    for joint in joints:
        result += [name for name in all_names if name.startswith(f"{joint}.")] or [joint]
    return result


def _needed(model: Model) -> list[str]:
    """Names of positions that determine a configuration: in linkages, of independent joints."""
    loose = {joint.name for joint in model.joints if joint.nq == 1 and not joint.independent}
    return [name for name in position_names(model) if name not in loose]


def _configurations(model: Model, table: _Table) -> Array:
    """Configurations (T, nq) from all positions, or from a sufficient set."""
    every, needed = position_names(model), _needed(model)
    if table.has("q", every):
        return table.selected("q", every)
    owners = dict.fromkeys(n if n in model.joint_names else n.rpartition(".")[0] for n in needed)
    return _followed(table, model, tuple(owners), table.selected("q", needed))


def _encoders(model: Model, table: _Table, kind: str) -> tuple[str, ...] | None:
    """The joints with rates ("v") or positions ("q") in the log that determine all others."""
    all_names = model.dof_names if kind == "v" else position_names(model)
    g = model.constraint_jacobian(model.neutral())
    result: list[str] = []
    seen = np.zeros((0, model.nv))
    for joint, node in zip(model.joints, model.nodes, strict=True):
        if not table.has(kind, _labels(model, [joint.name], all_names)):
            continue
        more = np.vstack([seen, g[list(node.freedoms)]])
        size = np.linalg.svd(more, compute_uv=False)
        if len(more) <= model.nv and size[-1] > SINGULAR * size[0]:
            seen = more
            result.append(joint.name)
    return tuple(result) if len(seen) == model.nv else None


def _forces(model: Model, table: _Table) -> tuple[dict[str, Array] | None, Array | None]:
    """Forces by joint, or currents (T, nu) by actuator."""
    joints = {*model.dof_names, *(joint.name for joint in model.joints if joint.nv == 1)}
    forces = {n: table.columns[f"tau.{n}"] for n in sorted(joints) if f"tau.{n}" in table.columns}
    if forces:
        table.used.update(f"tau.{name}" for name in forces)
        return forces, None
    names = [each.name for each in model.actuators]
    there = [name for name in names if f"current.{name}" in table.columns]
    if not there:
        example = f"tau.{model.dof_names[-1]}" if model.dof_names else "tau"
        amperes = f", or current.{names[0]} [A]" if names else ""
        raise table.wrong(f"no forces: {example} and others{amperes}")
    table.used.update(f"current.{name}" for name in there)
    count = len(next(iter(table.columns.values())))
    unknown = np.full(count, np.nan)
    parts = [table.columns.get(f"current.{name}", unknown) for name in names]
    return None, np.stack(parts, axis=1)


def _carried(
    model: Model,
    q: Array,
    encoders: tuple[str, ...] | None,
    forces: Mapping[str, Array],
) -> Array:
    """Forces (T, nv) on the coordinates; those on dependent joints are mapped by Gᵀ."""
    base = f"{model.floating_base}."
    others = [name for name in forces if name not in model.dof_names]
    tau = np.zeros((len(q), model.nv))
    reached = np.array([name in forces or name.startswith(base) for name in model.dof_names])
    for i, name in enumerate(model.dof_names):
        if name in forces:
            tau[:, i] = forces[name]
    if others:
        at = q if encoders is None else followed(model, encoders, q)
        g = model.constraint_jacobian(at)
        for name in others:
            row = g[:, model.nodes[model.joint_names.index(name)].freedoms[0]]
            moves = np.any(row != 0.0, axis=0)
            tau[:, moves] += row[:, moves] * forces[name][:, None]
            reached |= moves
    tau[:, ~reached] = np.nan
    return tau


def _followed(table: _Table, model: Model, joints: Sequence[str], rows: Array) -> Array:
    """Configurations with these joint positions in the rows, each continuing the previous one."""
    result: list[Array] = []
    try:
        result.extend(following(model, joints, rows))  # keeps those before a failure
    except ClosureError as error:
        raise table.wrong(str(error), len(result)) from None
    return np.array(result)


def _step(table: _Table, time: Array) -> float | None:
    """Time between samples [s]; nan if it varies, None for a single sample."""
    steps = np.diff(time)
    if not len(steps):
        return None
    wrong = ~(steps > 0.0)
    if wrong.any():
        raise table.wrong("time does not increase", int(np.argmax(wrong)) + 1)
    mean = float(np.mean(steps))
    # times are even if their steps are within 1 % of the mean
    return mean if np.all(np.abs(steps - mean) <= 0.01 * mean) else math.nan


def _evenly(table: _Table) -> tuple[_Table, list[str], DescriptionError | None]:
    """The table at even times, as filters need, notes on the change, or why it is uneven.

    Times with jitter are interpolated to even ones. A table is unchanged if a sample is more than
    half a step late or early, as with adaptive steps of a simulation: its motion can be read, and
    functions that need even times raise the error, which names the first such sample.
    """
    time = table.columns["time"]
    if not math.isnan(_step(table, time) or 0.0):
        return table, [], None
    steps = np.diff(time)
    mean = float(np.mean(steps))
    off = np.abs(steps - np.median(steps))
    # steps that are off by less are interpolated to even times
    if np.any(wrong := off > 0.5 * np.median(steps)):
        at = int(np.argmax(wrong))
        uneven = table.wrong(
            f"{1e3 * steps[at]:.4g} ms after the sample before, where others are "
            f"{1e3 * float(np.median(steps)):.4g} ms apart: without accelerations samples at even "
            "times are needed; give a.JOINT, or split the log there",
            at + 1,
        )
        return table, [], uneven
    even = time[0] + mean * np.arange(len(time))
    columns = {name: np.interp(even, time, x) for name, x in table.columns.items()}
    note = (
        f"times jitter by up to {1e3 * float(np.max(np.abs(time - even))):.2g} ms: all columns "
        f"were interpolated at steps of {1e3 * mean:.4g} ms"
    )
    return replace(table, columns=columns | {"time": even}), [note], None


# ---- files and tables ----------------------------------------------------------------------------


def _read(source: object, topic: str | None, rename: Mapping[str, str] | None = None) -> _Table:
    """The table with a log's column names; those of simulated motions are q:NAME and so on."""
    table = _loaded(source, topic)
    renamed = dict(rename or {})
    check_names(renamed, table.columns, "rename: no column ", error=UnknownNameError)
    named = [renamed.get(name, name) for name in table.columns]
    if (twice := _repeated(named)) is not None:
        raise ValueError(f"rename: two columns become '{twice}'")
    table = replace(table, columns=dict(zip(named, table.columns.values(), strict=True)))
    columns = {re.sub(r"^(q|v|tau):", r"\1.", name): x for name, x in table.columns.items()}
    return replace(table, columns=columns)


def _repeated(names: Sequence[str]) -> str | None:
    """The first repeated name."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _loaded(source: object, topic: str | None) -> _Table:
    if not isinstance(source, str | os.PathLike):
        return _of_table(source)
    path = Path(source)
    if path.suffix.lower() in BAGS or path.is_dir():
        return _bag(path, topic)
    if path.suffix.lower() in (".parquet", ".pq"):
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingPackageError("Parquet logs need", "pyarrow", "logs") from None
        try:
            result = parquet.read_table(path)
        except ArrowException as error:
            raise DescriptionError(f"no Parquet file: {error}", Source(str(path))) from None
        return _of_table(result, str(path))
    return _csv(path)


def _of_table(table: Any, file: str = "<table>") -> _Table:
    """The table from a mapping of columns, or from a data frame."""
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if names is None and not isinstance(table, Mapping):
        raise TypeError(
            f"a log is a path, a dict of columns or a data frame, not {type(table).__name__}"
        )
    columns: dict[str, Array] = {}
    ignored: list[str] = []
    for name in list(table if names is None else names):
        try:
            columns[str(name)] = np.asarray(table[name], dtype=float)
        except (TypeError, ValueError):
            ignored.append(str(name))
    lengths = {x.shape for x in columns.values()}
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        raise DescriptionError("columns are not of one length", Source(file))
    if not lengths or lengths == {(0,)}:
        raise DescriptionError("no samples", Source(file))
    return _Table(file, columns, None, tuple(ignored))


def _bag(path: Path, topic: str | None) -> _Table:
    """The table from JointState and WrenchStamped messages of a bag, at even times."""
    messages, _, others = said(path, topic)
    series: dict[str, tuple[list[float], list[float]]] = {}
    for time, message, kind in messages:
        for name, value in _values(message, kind):
            times, values = series.setdefault(name, ([], []))
            times.append(1e-9 * time)
            values.append(value)
    if not series:
        raise DescriptionError("no samples", Source(str(path)))
    return _Table(str(path), _even(series), None, others)


def said(path: Path, topic: str | None) -> tuple[list[tuple[int, Any, str]], str, tuple[str, ...]]:
    """JointState and WrenchStamped messages of a bag, their topic, and names of other topics.

    Each message has its time [ns] and its type. Raises as :func:`read_log` does.
    """
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingPackageError("bags of ROS need", "rosbags", "logs") from None
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    source = Source(str(path))
    messages: list[tuple[int, Any, str]] = []
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            states = sorted({c.topic for c in reader.connections if c.msgtype == STATE})
            if topic is None and len(states) != 1:
                message = f"several topics of joints: {few(states)}; choose one" if states else (
                    f"no topic of {STATE}"
                )  # fmt: skip
                raise DescriptionError(message, source)
            if topic is not None and topic not in states:
                raise DescriptionError(
                    f"no topic of joints '{topic}'{did_you_mean(topic, states)}", source
                )
            joints = topic or states[0]
            chosen = [c for c in reader.connections if c.topic == joints or c.msgtype == WRENCH]
            others = tuple(dict.fromkeys(c.topic for c in reader.connections if c not in chosen))
            for connection, stamp, raw in reader.messages(connections=chosen):
                message = reader.deserialize(raw, connection.msgtype)
                sent = message.header.stamp
                time = 10**9 * sent.sec + sent.nanosec or stamp
                messages.append((time, message, connection.msgtype))
    except AnyReaderError as error:
        raise DescriptionError(f"no bag: {error}", source) from None
    return messages, joints, others


def _values(message: Any, kind: str) -> Iterator[tuple[str, float]]:
    """The columns and values of a message."""
    if kind == WRENCH:
        link, wrench = message.header.frame_id, message.wrench
        for end in ENDS:
            vector = wrench.torque if end[0] == "m" else wrench.force
            yield f"wrench.{link}.{end}", float(getattr(vector, end[1]))
        return
    for label, values in (("q", message.position), ("v", message.velocity),
                          ("tau", message.effort)):  # fmt: skip
        if len(values) == len(message.name):  # otherwise empty
            yield from (
                (f"{label}.{n}", float(x)) for n, x in zip(message.name, values, strict=True)
            )


def _even(series: Mapping[str, tuple[list[float], list[float]]]) -> dict[str, Array]:
    """All series interpolated at the same even times in their common range."""
    clocks = {name: np.array(times) for name, (times, _) in series.items()}
    order = {name: np.argsort(clock, kind="stable") for name, clock in clocks.items()}
    clocks = {name: clock[order[name]] for name, clock in clocks.items()}
    first = max(clock[0] for clock in clocks.values())
    last = min(clock[-1] for clock in clocks.values())
    most = max((clock for n, clock in clocks.items() if n.startswith("q.")), key=len,
               default=next(iter(clocks.values())))  # fmt: skip
    count = int(np.sum((most >= first) & (most <= last)))
    time = np.linspace(first, last, max(count, 1))
    result = {
        name: np.interp(time, clocks[name], np.array(values)[order[name]])
        for name, (_, values) in series.items()
    }
    return {"time": time - first, **result}


def _csv(path: Path) -> _Table:
    """The table from a CSV file; empty cells are nan."""

    def wrong(line: int, message: str) -> DescriptionError:
        return DescriptionError(message, Source(str(path), line))

    rows: list[list[float]] = []
    lines: list[int] = []
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        try:
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise wrong(1, "no header; its columns are time, q.JOINT, v.JOINT, tau.JOINT")
            if len(header) == 1 and (other := re.search(r"[;\t|]", header[0])):
                raise wrong(1, f"columns are separated by {other[0]!r}; write commas")
            if (twice := _repeated(header)) is not None:
                raise wrong(1, f"column '{twice}' is given twice")
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
    table = np.array(rows)
    return _Table(str(path), {n: table[:, i] for i, n in enumerate(header)}, lines)


def _number(text: str) -> float:
    """The number in a cell; nan if it is empty, inf if it is no number."""
    try:
        return float(text) if text.strip() else math.nan
    except ValueError:
        return math.inf


# ---- velocities from positions -------------------------------------------------------------------


def velocities_of(
    model: Model, q: Array, encoders: Sequence[str] | None, step: float | None, cutoff: float
) -> Array:
    """Velocities (T, ·) of all coordinates, or of the joints ``encoders``, from positions q.

    ``step``: time between samples [s], nan if it varies, None without times.
    """
    if step is None or math.isnan(step):
        raise ValueError("velocities from positions need a column 'time', and even times")
    at = q if encoders is None else followed(model, encoders, q)
    v = smooth_velocities(model, at, step, cutoff)
    if encoders is None:
        return v
    rates = model.joint_velocities(at, v)
    return np.concatenate([rates[name].reshape(len(v), -1) for name in encoders], axis=1)


def smooth_velocities(model: Model, q: Array, step: float, cutoff: float) -> Array:
    """Velocities (T, nv) of configurations (T, nq) that are ``step`` apart, without lag.

    A fourth-order Butterworth low-pass filter, forwards and backwards in time, followed by the
    slopes of a cubic spline, as is usual before identification (M. Gautier, *Dynamic identification
    of robots with power model*, ICRA 1997). The amplitude falls by 3e-6 at a fifth of ``cutoff``
    [Hz] and by half at ``cutoff``; the first and last 1 / ``cutoff`` are less precise. Raises
    ValueError unless ``cutoff`` is between zero and half of the sampling rate, and if there are too
    few samples.
    """
    from scipy.interpolate import CubicSpline
    from scipy.signal import butter, sosfiltfilt

    most = 0.5 / step
    if not 0.0 < as_real(cutoff, "velocities") < most:
        raise ValueError(
            f"velocities is a frequency between 0 and {most:g} Hz, half of the samples' rate, got "
            f"{cutoff!r}"
        )
    sections = butter(4, cutoff, fs=1.0 / step, output="sos")  # order 4 in each direction
    fewest = 3 * (2 * len(sections) + 1)
    if len(q) <= fewest:
        raise ValueError(f"velocities from positions need more than {fewest} samples, got {len(q)}")
    ways = np.cumsum(model.difference(q[:-1], q[1:]), axis=0)
    smooth = sosfiltfilt(sections, np.vstack([np.zeros(model.nv), ways]), axis=0)
    times = step * np.arange(len(q))
    result: Array = CubicSpline(times, smooth).derivative()(times)
    return result
