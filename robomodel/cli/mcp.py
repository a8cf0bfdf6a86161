"""``robomodel mcp``: commands as tools for agents, by the Model Context Protocol.

A tool takes and gives JSON: the document that its command prints with ``--json``, or ``error``.
Tools see one folder. A path is resolved, symbolic links included, and refused if it leads out;
what robot files refer to (meshes, included files, layers) is read there alone
(:func:`robomodel.files.confined`), and files of xacro, which open others by themselves, not at all.
Each call of a client is a process of its own (``python -m robomodel.cli.mcp``), which ends when its
time is up.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from robomodel import __version__, files
from robomodel import robots as shipped
from robomodel.cli import files as conversion
from robomodel.cli.actuation import actuation
from robomodel.cli.common import Result, UserError, as_data, blaming
from robomodel.cli.models import info
from robomodel.cli.robot import Robot
from robomodel.cli.validation import validate
from robomodel.errors import MissingPackageError
from robomodel.lint import formats
from robomodel.lint.fixes import fixed_files
from robomodel.lint.runner import LintReport
from robomodel.lint.runner import lint as check
from robomodel.lint.settings import Settings, check_ids
from robomodel.parsers.meshes import folder_of
from robomodel.reports.document import Document
from robomodel.simulators import Simulator

if TYPE_CHECKING:
    from mcp.server import MCPServer

MOBILITY = ("robot", "file", "nq", "nv", "dof_names", "clusters", "loops", "couplings", "notes",
            "warnings", "error")  # fmt: skip
INSTRUCTIONS = """\
Robot files (URDF, SDF, MJCF, USD) of one folder: what they say, what is wrong in them, what their
linkages and motors do. Paths are relative to the folder. Names of shipped robots, such as four_bar,
are files, too. Units are SI and radians; null is infinite or not specified. A result with "error"
says what to mend, with file and line."""

Json: TypeAlias = dict[str, Any]


def mcp(folder: Path, write: bool = False, seconds: float = 60.0) -> Result:
    """Serve tools for agents on standard input and output (Model Context Protocol).

    The tools are load, mobility, validate, lint, fix, convert, actuation and picture. They read
    robot files, and what these refer to, in FOLDER alone. docs/agents.md explains them.

    Standard output is the protocol's, so there is no document.

    Examples:
        robomodel mcp robots
        robomodel mcp robots --write

    Options:
        --write: Let convert and fix write files, in FOLDER alone.
        --seconds: The time that a call may take.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    server(folder, write=write, seconds=seconds).run("stdio")
    return Result(document=Document("", ""), output=Path(os.devnull))


def server(
    folder: str | os.PathLike[str], *, write: bool = False, seconds: float = 60.0
) -> MCPServer[Any]:
    """The server of the tools on a folder; the caller runs it.

    Raises MissingPackageError without the package mcp, and ValueError unless ``seconds``, the time
    of a call, are positive.
    """
    if not seconds > 0.0:
        raise ValueError(f"seconds must be positive, got {seconds!r}")
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Image
    except ImportError as error:
        raise MissingPackageError("tools for agents need", "mcp", "mcp") from error

    tools = Tools(os.path.realpath(folder), write)
    result: MCPServer[Any] = MCPServer(
        "robomodel", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for name in ("load", "mobility", "validate", "lint", "fix", "convert", "actuation"):
        result.tool()(_timed(tools, name, seconds))
    drawn = _timed(tools, "picture", seconds)

    def picture(file: str, positions: dict[str, float] | None = None) -> Any:
        found = drawn(file, positions)
        return Image(data=b64decode(found["png"]), format="png") if "png" in found else found

    result.tool(description=Tools.picture.__doc__, structured_output=False)(picture)
    return result


def _timed(tools: Tools, name: str, seconds: float) -> Callable[..., Json]:
    """A tool in a process of its own, which may take so long."""
    tool: Callable[..., Json] = getattr(tools, name)
    signature = inspect.signature(tool)

    @wraps(tool)
    def run(*arguments: Any, **options: Any) -> Json:
        call = [tools.folder, tools.write, name, signature.bind(*arguments, **options).arguments]
        try:
            process = subprocess.run(
                [sys.executable, "-m", __name__], input=json.dumps(call), encoding="utf-8",
                stdout=subprocess.PIPE, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return _error(f"it was not done in {seconds:g} s: --seconds gives more time")
        if process.returncode:
            return _error(f"the process ended with {process.returncode}, see the server's output")
        result: Json = json.loads(process.stdout)
        return result

    return run


def _error(message: str) -> Json:
    return UserError(message).as_dict()


@dataclass(frozen=True)
class Tools:
    """The tools on a folder, whose path is without symbolic links; docstrings are for agents."""

    folder: str
    write: bool = False
    _one: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def load(self, file: str) -> Json:
        """Read a robot file: bodies, joints, clusters of loops, motors, limits, masses, and
        what was assumed.
        """
        return self._done(file, lambda: info(self._robot(file)))

    def mobility(self, file: str) -> Json:
        """Degrees of freedom of a robot and of each cluster of loops, and notes on redundant or
        rounded loops, change points and spins of rods.
        """
        found = self.load(file)
        return {name: found[name] for name in MOBILITY if name in found}

    def validate(self, file: str, reference: str | None = None) -> Json:
        """Look for what is wrong or odd in a robot file: findings with severity, file,
        line and remedy.

        reference: a file of the same robot that is right; differences from it are findings, too.
        """

        def validated() -> Result:
            right = None if reference is None else self._robot(reference).file
            return validate(self._robot(file), right)

        return self._done(file, validated)

    def lint(self, path: str = ".", select: str = "", ignore: str = "") -> Json:
        """Findings on all robot files in a folder and below, or on one file.

        select, ignore: ids of checks with commas between: only these, or all but these.
        """

        def linted() -> Document:
            return Document("", "", data=formats.as_dict(self._report(path, select, ignore)))

        return self._done(path, linted)

    def fix(self, path: str = ".", write: bool = False) -> Json:
        """Mend what is certain in the robot files of a folder, or in one file: a unified diff.

        write: also write the files.
        """

        def fixed() -> Document:
            mended = fixed_files(self._report(path))
            for each in mended if write else ():
                files.replace_file(self._to(str(each.path), True), each.after.decode("utf-8"))
            diff = "".join(each.diff for each in mended)
            found = {"files": [each.file for each in mended], "diff": diff, "written": write}
            return Document("", "", data=found)

        return self._done(path, fixed)

    def convert(
        self,
        file: str,
        output: str,
        approximate: bool = False,
        drop: bool = False,
        simulator: Simulator | None = None,
        overwrite: bool = False,
    ) -> Json:
        """Write a robot in another format, which the ending of output says: .urdf, .sdf, .xml
        (MJCF) or .usda.

        approximate: an open tree with armature, for simulators without loops. drop: leave out what
        the format cannot say, and list it. simulator: write so that this one reads what it can.
        overwrite: replace a file that is there.
        """

        def converted() -> Document:
            target = self._to(output, overwrite)
            self._to(folder_of(output), True)  # where meshes are copied to
            return conversion.convert(
                self._robot(file), Path(target), approximate=approximate, drop=drop, check=False,
                simulator=simulator,
            )  # fmt: skip

        return self._done(file, converted)

    def actuation(self, file: str, rows: str | None = None) -> Json:
        """Study what motors do through gears and linkages: ratios, torque, speed and range of
        joints, transmission angles, dead points.

        rows: the joints to report, with commas between; default those of limbs.
        """
        return self._done(file, lambda: actuation(self._robot(file), rows=rows))

    def picture(self, file: str, positions: dict[str, float] | None = None) -> Json:
        """A picture (PNG) of a robot with its loops closed.

        positions: of joints by name, in radians or metres; default those of the file.
        """

        def drawn() -> Document:
            from robomodel import views

            model = self._robot(file).load()
            with blaming(file):
                q = model.configuration(positions) if positions else None
            return Document("", "", data={"png": b64encode(views.png(model, q)).decode()})

        return self._done(file, drawn)

    # ---- the folder

    def _done(self, file: str, work: Callable[[], Result | Document]) -> Json:
        """The document of a command that reads files in the folder alone, with paths in it."""
        own = shipped.path(shipped.names()[0]).parent
        with self._one, files.confined(self.folder, str(own)), redirect_stdout(sys.stderr):
            found: Json = self._named(as_data(file, work))
        return found

    def _named(self, x: Any) -> Any:
        """The same with paths relative to the folder."""
        if isinstance(x, str):
            return x.replace(self.folder + os.sep, "")
        if isinstance(x, dict):
            return {key: self._named(value) for key, value in x.items()}
        return [self._named(value) for value in x] if isinstance(x, list) else x

    def _robot(self, file: str) -> Robot:
        known = file in shipped.names() and not os.path.exists(os.path.join(self.folder, file))
        return Robot(file=str(shipped.path(file)) if known else self._path(file))

    def _path(self, path: str) -> str:
        """A path in the folder, resolved."""
        real = os.path.realpath(os.path.join(self.folder, path.replace("\0", "")))
        if not files.is_within(real, self.folder):
            raise UserError(f"{path}: this is not in the folder that is served")
        return real

    def _to(self, path: str, again: bool) -> str:
        """A path in the folder to which a file may be written."""
        if not self.write:
            raise UserError("nothing is written: the folder is served without --write")
        place, name = os.path.split(os.path.join(self.folder, path))
        target = os.path.join(self._path(place), name)
        if os.path.islink(target):
            raise UserError(f"{path}: this is a symbolic link")
        if os.path.exists(target) and not again:
            raise UserError(f"{path}: this is there already; overwrite=true replaces it")
        return target

    def _report(self, path: str, select: str = "", ignore: str = "") -> LintReport:
        only, without = (
            tuple(each.strip() for each in text.split(",") if each.strip())
            for text in (select, ignore)
        )
        real = Path(self._path(path))
        with blaming(path):
            check_ids((*only, *without), "lint")
            return check([real], Settings(Path(self.folder), only, without, jobs=1))


if __name__ == "__main__":
    _folder, _write, _tool, _arguments = json.load(sys.stdin)
    json.dump(getattr(Tools(_folder, _write), _tool)(**_arguments), sys.stdout)
