"""A robot in a simulator beside the exact model: what the simulator itself computes of a file."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import cast

import numpy as np

from robomodel.description import Description
from robomodel.errors import DescriptionError, DescriptionWarning, MissingPackageError
from robomodel.model import Model
from robomodel.model.build import build
from robomodel.reports.document import Bullets, Cell, Document, HasDocument, Section, Table, picked
from robomodel.simulators import PROGRAMS, Behaviour, Format, Simulator, behaviours
from robomodel.simulators.beside import SAMPLES, SimulatorDifference, differences, percent
from robomodel.simulators.loaded import Loaded, Source
from robomodel.simulators.written import written_for
from robomodel.writing import write_for

ADAPTERS: tuple[Simulator, ...] = (
    "mujoco", "mjx", "mujoco_warp", "pinocchio", "drake", "newton", "pybullet", "genesis",
)  # fmt: skip
GRAVITY = (0.0, 0.0, -9.81)
SUFFIXES: Mapping[str, Format] = {
    ".urdf": "urdf", ".sdf": "sdf", ".xml": "mjcf", ".mjcf": "mjcf", ".usda": "usd", ".usd": "usd",
    ".usdc": "usd",
}  # fmt: skip
ENDINGS: Mapping[Format, str] = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml", "usd": ".usda"}


@dataclass(frozen=True)
class InSimulator(HasDocument):
    """A robot in a simulator, beside the exact model.

    Attributes:
        robot: The robot's name.
        simulator: The simulator's title.
        version: Its version.
        file: The file that it read.
        differences: What it has otherwise.
        precision: Relative errors below this are rounding of its numbers or the length of its step.
        causes: Behaviours of the simulator that touch this robot.
        explained: True if the robot as these behaviours read it is what the simulator computes.
    """

    robot: str
    simulator: str
    version: str
    file: str
    differences: tuple[SimulatorDifference, ...]
    precision: float
    causes: tuple[Behaviour, ...]
    explained: bool = False

    @property
    def same(self) -> bool:
        """True if nothing differs beyond the precision."""
        return not self.differences

    @property
    def error(self) -> float:
        """The relative error of accelerations, median over the states; NaN if it was refused."""
        if any(each.quantity == "file" for each in self.differences):
            return math.nan
        found = [each.error for each in self.differences if each.quantity == "accelerations"]
        return found[0] if found else 0.0

    @property
    def verdict(self) -> str:
        """A sentence."""
        if self.same:
            return f"as the exact model, to {self.precision:.0e}"
        first = self.differences[0]
        if first.quantity == "file":
            return f"refused: {first.detail}"
        kinds = ", ".join(each.quantity for each in self.differences)
        size = f"; accelerations {percent(self.error)} off" if self.error else ""
        return f"other {kinds}{size}"

    @cached_property
    def document(self) -> Document:
        """The comparison as text, JSON and a page."""
        rows: list[list[Cell]] = [
            [each.quantity, each.error, each.worst, each.detail] for each in self.differences
        ]
        lines = [f"{self.simulator} {each.does} ({each.concerns})" for each in self.causes]
        title = "What its table says of this robot"
        if self.explained:
            title = "Why: the robot that these leave is what it computes"
        data = picked(self, "robot", "simulator", "version", "file", "same", "precision",
                      "explained", "differences", "verdict")  # fmt: skip
        data["causes"] = [f"{each.simulator}: {each.does}" for each in self.causes]
        return Document(
            self.robot,
            f"in {self.simulator} {self.version}: {self.verdict}",
            [
                Section("", [Table(["quantity", "median", "worst", ""], rows, 3)]),
                Section(title, [Bullets(lines)]),
            ],
            data,
            kind="comparison",
        )


def compare_in(
    model: Model,
    simulator: str,
    path: object = None,
    *,
    advised: bool = False,
    explain: bool = True,
    samples: int = SAMPLES,
    seed: int = 0,
) -> InSimulator:
    """A robot as a simulator reads it, beside the exact model.

    The simulator itself loads the file, and computes at random states of the joints, the base at
    rest: mass matrix, gravity, accelerations with springs and damping, without dry friction, stops
    and contacts. All is compared by joint name, in the robot's independent velocities. Differences
    name what is known of this simulator; if the robot as it reads it gives its numbers, they are
    explained by that.

    Args:
        model: The robot.
        simulator: "mujoco", "mjx", "mujoco_warp", "pinocchio", "drake", "newton", "pybullet" or
            "genesis", which must be installed.
        path: A file of this robot; by default one is written for the simulator.
        advised: The file at ``path`` was written for the simulator, and is loaded as a user does
            who follows the warnings; by default as one who does not.
        explain: See whether the rows of the table that touch the robot account for what differs.
        samples: Number of states.
        seed: Their seed.

    Returns:
        comparison: The differences; an error of the simulator's while it reads is one of them.

    Raises:
        ValueError: Another simulator.
        MissingPackageError: The simulator is not installed.

    Examples:
        >>> rm.compare_in(rm.robots.load("puma560"), "pinocchio").same
        True
    """
    if simulator not in ADAPTERS:
        raise ValueError(f"simulators are {', '.join(ADAPTERS)}, not {simulator!r}")
    if path is not None:
        return _compared(
            model, simulator, str(path), samples, seed, advised=advised, explain=explain
        )
    import_simulator(simulator)
    form = PROGRAMS[simulator].formats[0]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, model.name.replace(os.sep, "_") + ENDINGS[form])
        try:
            write_for(model, simulator, form, file)
        except DescriptionError as error:
            return _refused(model, simulator, "", f"not written: {error}", ())
        return _compared(model, simulator, file, samples, seed, advised=True, explain=explain)


def import_simulator(simulator: Simulator) -> None:
    """Import the simulator. Raises MissingPackageError where it is not installed.

    Before a file is written: Newton passes over its own schemas where USD was used before.
    """
    module = {"drake": "pydrake", "mjx": "mujoco.mjx"}.get(simulator, simulator)
    try:
        import_module(module)
    except ImportError as error:
        title, package = PROGRAMS[simulator].title, PROGRAMS[simulator].package
        raise MissingPackageError(f"a comparison in {title} needs", package, package) from error


def _load(simulator: Simulator, source: Source) -> Loaded:
    """The adapter's robot."""
    adapter = import_module(f"robomodel.simulators.in_{simulator}")
    return cast("Loaded", adapter.load(source))


def _compared(
    model: Model,
    simulator: Simulator,
    file: str,
    samples: int,
    seed: int,
    *,
    advised: bool,
    explain: bool,
) -> InSimulator:
    """A file in a simulator; ``advised``: of one that is written for it."""
    import_simulator(simulator)
    form = SUFFIXES.get(Path(file).suffix.lower())
    if form is None or form not in PROGRAMS[simulator].formats:
        reads = ", ".join(PROGRAMS[simulator].formats)
        raise ValueError(f"{PROGRAMS[simulator].title} reads {reads}, not {Path(file).name}")
    gravity = model.description.gravity or GRAVITY
    source = Source(file, form, model.floating_base is not None, gravity, advised)
    description = model.description
    if advised:
        description = written_for(description, simulator, form)
    known = tuple(
        each
        for each in behaviours(simulator, form, description)
        if not (advised and (each.mended or each.advice))
    )
    try:
        loaded = _load(simulator, source)
    except Exception as error:
        return _refused(model, simulator, file, _said(error), known)
    try:
        found = tuple(differences(model, loaded, samples, seed))
    except Exception as error:
        return _refused(model, simulator, file, _said(error), known, loaded.version)
    other = {each.quantity for each in found}
    result = InSimulator(
        model.name, PROGRAMS[simulator].title, loaded.version, file, found, loaded.precision,
        tuple(each for each in known if other & {*each.affects}),
    )  # fmt: skip
    if result.same or not explain:
        return result
    return replace(result, explained=_explained(result, description, loaded))


def _said(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"


def _refused(
    model: Model, simulator: Simulator, file: str, said: str, known: Sequence[Behaviour],
    version: str = "",
) -> InSimulator:  # fmt: skip
    nan = math.nan
    only = (SimulatorDifference("file", nan, nan, said),)
    causes = tuple(each for each in known if "file" in each.affects)
    title, seen = PROGRAMS[simulator].title, version or PROGRAMS[simulator].versions
    return InSimulator(model.name, title, seen, file, only, nan, causes)


def _explained(found: InSimulator, description: Description, loaded: Loaded) -> bool:
    """True if the robot as the causes read it has the simulator's numbers."""
    readings = [each.read for each in found.causes if each.read]
    if not readings:
        return False
    for read in readings:
        description = read(description)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            other = build(description)
        left = differences(other, loaded, 3, 1)
    except (ValueError, np.linalg.LinAlgError):
        return False
    return all(each.quantity == "limits" for each in left)
