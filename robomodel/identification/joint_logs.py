"""Logs of joint states, completed: CSV, Parquet and bags of ROS 2 in and out."""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array
from robomodel.dynamics import frame_pose
from robomodel.errors import DescriptionError, MissingPackageError, Source, as_names
from robomodel.identification.joint_states import COMPLETE, LACKING, OFF, joint_states
from robomodel.identification.logs import BAGS, STATE, read_columns, said
from robomodel.model import Model

FIELDS = {"q": "position", "v": "velocity", "tau": "effort"}
KINDS = {"q": "positions", "v": "velocities", "tau": "efforts"}
TABLES = (".csv", ".parquet", ".pq")
STORED = {".mcap": "MCAP", ".db3": "SQLITE3", "": "MCAP"}
TOPIC = "/joint_states"
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
TRANSFORMS, WORLD = "tf2_msgs/msg/TFMessage", "world"


@dataclass(frozen=True, eq=False)
class JointLog:
    """Readings of joints over time.

    Attributes:
        stamps: Times (T,) [ns].
        readings: For "q", "v" and "tau" the readings (T,) by joint, not-a-number where missing.
        topic: Of a bag; else that under which a bag is written.
        unused: Columns or topics, and joints that the robot has not, or not with one freedom.
    """

    stamps: NDArray[np.int64]
    readings: Mapping[str, Mapping[str, Array]]
    topic: str
    unused: tuple[str, ...]


@dataclass(frozen=True)
class CompletedLog:
    """How many states a log has, of how many all joints are known, and why of others not."""

    states: int
    complete: int
    lacking: int
    contradicting: int
    joints: tuple[str, ...]
    unused: tuple[str, ...]


def read_joint_log(model: Model, source: Path, topic: str | None = None) -> JointLog:
    """The readings of a log, a row for each line or message; raises as ``read_log`` does."""
    singles = {joint.name for joint in model.joints if joint.nv == 1}
    is_bag = source.suffix.lower() in BAGS or source.is_dir()
    if is_bag:
        messages, found, others = said(source, topic)
        messages = [each for each in messages if each[2] == STATE]
        stamps = np.array([time for time, _, _ in messages], dtype=np.int64)
        columns: dict[str, Array] = {}
        for n, (_, message, _) in enumerate(messages):
            for kind, name in FIELDS.items():
                values = getattr(message, name)
                if len(values) == len(message.name):  # otherwise empty
                    for joint, value in zip(message.name, values, strict=True):
                        column = columns.setdefault(
                            f"{kind}.{joint}", np.full(len(messages), np.nan)
                        )
                        column[n] = value
    else:
        columns, others = read_columns(source)
        found = TOPIC
        if "time" not in columns:
            raise DescriptionError("a column 'time' is needed", Source(str(source)))
        time = columns.pop("time")
        whole = np.floor(time)  # apart, as times since 1970 have more digits than doubles
        stamps = 10**9 * whole.astype(np.int64) + np.round(1e9 * (time - whole)).astype(np.int64)
    readings: dict[str, dict[str, Array]] = {kind: {} for kind in FIELDS}
    unused = list(others)
    for label, column in columns.items():
        kind, _, joint = label.partition(".")
        if kind in readings and joint in singles:
            readings[kind][joint] = column
        else:
            unused.append(label)
    return JointLog(stamps, readings, found, tuple(unused))


def complete_log(
    model: Model, source: str | os.PathLike[str], output: str | os.PathLike[str],
    topic: str | None = None, frames: str | Iterable[str] = (),
) -> CompletedLog:  # fmt: skip
    """Complete a log of some joints' states by those of all others, as ``joint_states`` does.

    Args:
        model: The robot.
        source: CSV or Parquet with columns time [s], q.JOINT, v.JOINT, tau.JOINT, or a bag of ROS
            with sensor_msgs/JointState.
        output: Where the completed log goes; the ending says the form: ``.csv``, ``.parquet``,
            ``.mcap``, ``.db3``, and none for a folder of rosbag2 (with mcap). Rows of tables that
            are not complete have empty cells; bags leave them out.
        topic: The bag's topic, if it has several of joint states.
        frames: Links whose poses in the world are written, too: position x.LINK, y.LINK, z.LINK [m]
            and quaternion qx.LINK to qw.LINK; in bags as tf2_msgs/TFMessage on /tf, from "world". A
            floating base stays where :meth:`Model.neutral` has it.

    Returns:
        completed: What was completed, and what was not.

    Raises:
        UnknownNameError: A name in ``frames`` is no link's.
        DescriptionError: The log cannot be read, or has no positions.
        FileExistsError: The bag to write is there.
        ImportError: A required package is not installed.
        ValueError: The joints of the log do not determine the others; an ending of no known form.
    """
    target, links = Path(output), as_names(frames, "frames")
    for link in links:
        model.frame(link)
    form = target.suffix.lower()
    if form not in (*TABLES, *STORED):
        known = ", ".join((*TABLES, *filter(None, STORED)))
        raise ValueError(f"{target}: the ending '{form}' is of no known form of logs; {known} are")
    log = read_joint_log(model, Path(source), topic)
    if not log.readings["q"]:
        raise DescriptionError("no positions: columns q.JOINT", Source(str(source)))
    states = joint_states(
        model, log.readings["q"], log.readings["v"] or None, log.readings["tau"] or None
    )
    joints = tuple(states["positions"])
    columns = {
        f"{kind}.{joint}": states[what][joint]
        for kind, what in KINDS.items()
        if what in states
        for joint in joints
    }
    poses = {link: _pose(model, states["q"], link) for link in links}
    if form in TABLES:
        columns |= {
            f"{n}.{link}": x
            for link, pose in poses.items()
            for n, x in zip(POSE, pose.T, strict=True)
        }
        time = log.stamps // 10**9 + 1e-9 * (log.stamps % 10**9)
        _write_table(target, {"time": time, **columns})
    else:
        fine = states["status"] == COMPLETE
        columns = {name: x[fine] for name, x in columns.items()}
        _write_bag(target, log, columns, joints, fine, {n: x[fine] for n, x in poses.items()})
    count = {each: int(np.sum(states["status"] == each)) for each in (COMPLETE, LACKING, OFF)}
    return CompletedLog(
        len(log.stamps), count[COMPLETE], count[LACKING], count[OFF], joints, log.unused
    )


def _pose(model: Model, q: Array, link: str) -> Array:
    """Positions and quaternions (T, 7) of a link, not-a-number where q is."""
    from scipy.spatial.transform import Rotation

    matrix, result = frame_pose(model, q, link), np.full((len(q), len(POSE)), np.nan)
    known = np.isfinite(q).all(axis=1)
    if known.any():
        turned = Rotation.from_matrix(matrix[known, :3, :3]).as_quat(canonical=True)
        result[known] = np.hstack([matrix[known, :3, 3], turned])
    return result


# ---- writing -------------------------------------------------------------------------------------


def _write_table(path: Path, columns: Mapping[str, Array]) -> None:
    if path.suffix.lower() == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            for row in np.column_stack(list(columns.values())).tolist():
                writer.writerow("" if math.isnan(x) else repr(x) for x in row)
        return
    try:
        from pyarrow import parquet, table
    except ImportError:
        raise MissingPackageError("Parquet logs need", "pyarrow", "logs") from None
    parquet.write_table(table(dict(columns)), path)


def _write_bag(
    path: Path, log: JointLog, columns: Mapping[str, Array], joints: tuple[str, ...], fine: Array,
    poses: Mapping[str, Array],
) -> None:  # fmt: skip
    """A bag of ROS 2: a folder, or its only file of messages."""
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingPackageError("bags of ROS need", "rosbags", "logs") from None
    if path.exists():
        raise FileExistsError(17, "the bag is there already", str(path))
    store = get_typestore(Stores.LATEST)
    plugin = StoragePlugin[STORED[path.suffix.lower()]]
    with TemporaryDirectory(dir=path.parent) as folder:
        bag = Path(folder) / path.stem
        with Writer(bag, version=9, storage_plugin=plugin) as writer:
            link = writer.add_connection(log.topic, STATE, typestore=store)
            tf = writer.add_connection("/tf", TRANSFORMS, typestore=store) if poses else None
            for n, stamp in enumerate(log.stamps[fine].tolist()):
                message = _message(store.types, stamp, joints, columns, n)
                writer.write(link, stamp, store.serialize_cdr(message, STATE))
                if tf is not None:
                    at = {name: pose[n].tolist() for name, pose in poses.items()}
                    moved = _transforms(store.types, stamp, at)
                    writer.write(tf, stamp, store.serialize_cdr(moved, TRANSFORMS))
        if not path.suffix:
            shutil.move(bag, path)
        else:
            (stored,) = bag.glob(f"*{path.suffix.lower()}")
            shutil.move(stored, path)


def _message(
    types: Mapping[str, Any], stamp: int, joints: tuple[str, ...], columns: Mapping[str, Array],
    n: int,
) -> Any:  # fmt: skip
    fields = {
        name: np.array([columns[f"{kind}.{joint}"][n] for joint in joints])
        if f"{kind}.{joints[0]}" in columns
        else np.zeros(0)
        for kind, name in FIELDS.items()
    }
    return types[STATE](header=_header(types, stamp, ""), name=list(joints), **fields)


def _transforms(types: Mapping[str, Any], stamp: int, poses: Mapping[str, list[float]]) -> Any:
    kind = {
        name: types[f"geometry_msgs/msg/{name}"]
        for name in ("TransformStamped", "Transform", "Vector3", "Quaternion")
    }
    return types[TRANSFORMS](
        transforms=[
            kind["TransformStamped"](
                header=_header(types, stamp, WORLD), child_frame_id=link,
                transform=kind["Transform"](
                    translation=kind["Vector3"](*pose[:3]), rotation=kind["Quaternion"](*pose[3:])
                ),
            )
            for link, pose in poses.items()
        ]
    )  # fmt: skip


def _header(types: Mapping[str, Any], stamp: int, frame: str) -> Any:
    sec, nanosec = divmod(stamp, 10**9)
    time = types["builtin_interfaces/msg/Time"](sec=sec, nanosec=nanosec)
    return types["std_msgs/msg/Header"](stamp=time, frame_id=frame)
