"""The command line: ``robomodel info``, ``robomodel dynamics``, ``robomodel robots``.

Results go to standard output, as text or (``--json``) as one JSON document; warnings and errors go
to standard error, an error in one line. Exit status: 0, 1 for a finding, 2 for a usage or file
error. A command first gathers a report (a dict of plain values, arrays and dataclasses), which is
then either printed as JSON or shown.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robomodel.errors import ClosureError, DescriptionError, DescriptionWarning, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree

    from robomodel.description import Link
    from robomodel.model import Model
    from robomodel.model.model import Cluster, Coupling, Loop

    Array = NDArray[np.float64]

Report = dict[str, Any]

ROUND_TRIP = 1e-6  # relative; forward dynamics of a regular state returns a far better than this
AS_TYPED = 1e-9  # a q that closing moves by less than this is taken as it was typed
DEEPEST = 16  # deeper levels of the tree are drawn at this one
WIDE = 100_000  # columns, where no terminal sets them

app = typer.Typer(
    help="Exact dynamics of robots as they are built: gears, belts, four-bars, rods.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # click's, wherever typer keeps it

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A robot file, the name of a shipped robot (see 'robomodel robots'), or - for "
        "standard input.",
        show_default=False,
    ),
]
FloatingBase = Annotated[
    bool | None,
    typer.Option(
        "--floating-base/--fixed-base",
        help="Free the root link, or hold a root that floats. [default: as the file says]",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse what is warned of otherwise.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def _numbers(what: str) -> Any:
    return typer.Option(metavar="NUMBERS", help=what, show_default=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (``arguments``: default those of the process) and exit."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # names may hold what the terminal's encoding lacks
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = app(args=arguments, prog_name="robomodel", standalone_mode=False)
        sys.stdout.flush()
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        _complain(
            f"{context.command_path if context else 'robomodel'}: "
            f"{getattr(error, 'format_message', error.__str__)()}"
        )
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (typer.Abort, KeyboardInterrupt):
        return 130
    return status if isinstance(status, int) else 0


# ---- commands ------------------------------------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from robomodel import __version__

        typer.echo(f"robomodel {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _robomodel(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@app.command()
def info(
    file: File,
    floating_base: FloatingBase = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Say what a robot is made of, and what was assumed.

    Keys of the JSON document: robot, file, nq, nv, dof_names, mass, gravity, floating_base,
    bodies, joints, clusters, loops, couplings, transmissions, fixed_links, fixed_mass, notes,
    warnings. SI units; null is infinite or undefined.
    """
    with _reporting(file) as caught:
        model = _load(file, floating_base, strict)
        report = _info_report(model, file, floating_base)
        report["warnings"] = _texts(caught)
        if as_json:
            _print_json(report)
        else:
            _show_info(model, report)


@app.command()
def dynamics(
    file: File,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Read the state from a JSON object with any of the keys q, v, a, tau, positions "
            "(joint: position). What --json prints can be read again. Options overrule it.",
            show_default=False,
        ),
    ] = None,
    q: Annotated[str | None, _numbers("Positions, nq of them; closed if they are not.")] = None,
    v: Annotated[str | None, _numbers("Velocities, nv of them.")] = None,
    a: Annotated[str | None, _numbers("Accelerations, nv of them.")] = None,
    tau: Annotated[str | None, _numbers("Forces for forward dynamics, nv of them.")] = None,
    position: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=VALUE",
            help="A joint's position, once for each joint; loops are solved for the rest.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Draw at random what is not given. [default: 0]",
            show_default=False,
        ),
    ] = None,
    floating_base: FloatingBase = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Compute inverse and forward dynamics at a state.

    NUMBERS are separated by commas or spaces; 'robomodel info' gives their order. Inverse dynamics
    gives tau from q, v, a; forward dynamics gives a' from --tau, or from that tau as a check.
    Without q and positions the state is random and closed; with them, v and a are zero unless they
    or --seed are given.

    Keys of the JSON document: robot, file, dof_names, q, v, a, tau (inverse dynamics), round_trip
    (largest difference of a from the forward dynamics of tau), forward (tau: as given, else the
    above; a: its forward dynamics), joint_positions, joint_velocities, joint_accelerations,
    base_pose (null, or x y z qx qy qz qw), kinetic_energy, potential_energy, residual (of loops and
    couplings), notes, finding (null, or why the exit status is 1), warnings. SI units, radians;
    null is not a number.
    """
    with _reporting(file) as caught:
        asked = _asked(state, {"q": q, "v": v, "a": a, "tau": tau}, position or [])
        model = _load(file, floating_base, strict)
        state_ = _state(model, asked, seed)
        report = _dynamics_report(model, file, state_)
        report["warnings"] = _texts(caught)
        if as_json:
            _print_json(report)
        else:
            _show_dynamics(model, report, given=state_.tau is not None)
        if report["finding"]:
            raise _UserError(f"{file}: {report['finding']}", status=1)


@app.command()
def robots(as_json: AsJson = False) -> None:
    """List the robots shipped with the package.

    Keys of the JSON document: robots, a list of objects with name, nv, bodies, clusters, mass,
    about, path.
    """
    from robomodel import robots as shipped

    rows: list[Report] = []
    for name in shipped.names():
        model, path = shipped.load(name), shipped.path(name)
        rows.append(
            {
                "name": name,
                "nv": model.nv,
                "bodies": len(model.bodies),
                "clusters": len(model.clusters),
                "mass": model.mass,
                "about": _about(path),
                "path": str(path),
            }
        )
    if as_json:
        _print_json({"robots": rows})
        return
    table = _table(("robot", ""), ("dof", ">"), ("bodies", ">"), ("clusters", ">"), ("kg", ">"))
    table.add_column("about", overflow="fold")
    for row in rows:
        numbers = (str(row[key]) for key in ("nv", "bodies", "clusters"))
        table.add_row(row["name"], *numbers, _short(row["mass"]), row["about"])
    _console().print(table)


def _about(path: Path) -> str:
    """The first sentence of a robot file's top comment."""
    _, _, comment = path.read_text(encoding="utf-8").partition("<!--")
    words = " ".join(comment.partition("-->")[0].split())
    return words.partition(". ")[0].removesuffix(".")


# ---- reading -------------------------------------------------------------------------------------


class _UserError(Exception):
    """What the user should know: the line to print, and the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def _reporting(file: str) -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings and show them in the end; a user's error ends the command in one line."""
    problem, status = None, 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DescriptionWarning)
        try:
            yield caught
        except _UserError as error:
            problem, status = str(error), error.status
        except DescriptionError as error:
            problem = str(error)
        except ClosureError as error:
            problem = f"{file}: {error}"
        except BrokenPipeError:
            raise
        except OSError as error:
            problem = f"{error.filename or file}: {error.strerror or error}"
        finally:
            for warning in caught:
                _complain(f"warning: {warning.message}")
    if problem is not None:
        _complain(problem)
        raise typer.Exit(status)


def _complain(text: str) -> None:
    typer.echo(" ".join(text.split()), err=True)


def _texts(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    return [str(w.message) for w in caught if issubclass(w.category, DescriptionWarning)]


def _load(file: str, floating_base: bool | None, strict: bool) -> Model:
    from robomodel.loading import load

    return load(_source(file), floating_base=floating_base, strict=strict)


def _source(file: str) -> object:
    """The file of this path, else the shipped robot of this name."""
    from robomodel import robots as shipped

    if file == "-":
        return sys.stdin.buffer
    path, names = Path(file), shipped.names()
    if file in names and not path.is_file():
        return shipped.path(file)
    if not path.exists():
        raise _UserError(
            f"{file}: no such file, and no shipped robot of this name"
            f"{did_you_mean(file, names) or '; they are ' + ', '.join(names)}"
        )
    return path


@dataclass(frozen=True)
class _Given:
    """Numbers that the user gave, and where, for messages."""

    where: str
    numbers: list[float]

    def sized(self, size: int, name: str) -> Array:
        """An array, if there are as many numbers as there shall be."""
        import numpy as np

        if len(self.numbers) != size:
            raise _UserError(
                f"{self.where}: needs {name} = {size} numbers, got {len(self.numbers)}"
            )
        return np.array(self.numbers, dtype=float)


@dataclass(frozen=True)
class _Asked:
    """What the user says of the state: any of q, v, a, tau, and joint positions."""

    vectors: Mapping[str, _Given]
    positions: Mapping[str, _Given]


def _asked(file: Path | None, options: Mapping[str, str | None], positions: list[str]) -> _Asked:
    """The state file's words, with the options' in their place where there are some."""
    vectors, places = ({}, {}) if file is None else _read_state(file)
    if positions or options["q"] is not None:
        vectors.pop("q", None)
    if options["q"] is not None:
        places = {}
    for name, text in options.items():
        if text is not None:
            vectors[name] = _Given(f"--{name}", _split(text, f"--{name}"))
    for text in positions:
        joint, equals, value = text.rpartition("=")
        if not equals:
            raise _UserError(f"--position: '{text}' is not of the form JOINT=VALUE")
        where = f"--position {joint}"
        places[joint] = _Given(where, _split(value, where))
    if "q" in vectors and places:
        raise _UserError(
            f"{vectors['q'].where}: q says all positions; leave out "
            f"{', '.join(given.where for given in places.values())}"
        )
    return _Asked(vectors, places)


def _split(text: str, where: str) -> list[float]:
    """Numbers separated by commas or spaces, in brackets or not."""
    words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    return [_finite(word, f"'{word}'", where) for word in words]


def _finite(value: str | float, shown: str, where: str) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _UserError(f"{where}: {shown} is not a number") from None
    if not math.isfinite(number):
        raise _UserError(f"{where}: {shown} is not finite")
    return number


_STATE_KEYS = ("q", "v", "a", "tau", "positions")
_REPORT_KEYS = (
    "robot", "file", "dof_names", "round_trip", "forward", "joint_positions", "joint_velocities",
    "joint_accelerations", "base_pose", "kinetic_energy", "potential_energy", "residual", "notes",
    "finding", "warnings",
)  # fmt: skip


def _read_state(file: Path) -> tuple[dict[str, _Given], dict[str, _Given]]:
    """Vectors and positions of a state file."""
    try:
        said = json.loads(file.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise _UserError(f"{file}:{error.lineno}: this is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise _UserError(f"{file}: this is not JSON") from None
    if not isinstance(said, dict):
        raise _UserError(f"{file}: a state is a JSON object with any of {', '.join(_STATE_KEYS)}")
    for key in said:
        if key not in (*_STATE_KEYS, *_REPORT_KEYS):
            raise _UserError(
                f"{file}: {key}: no such key{did_you_mean(key, _STATE_KEYS)}; known are "
                f"{', '.join(_STATE_KEYS)}"
            )
    vectors = {
        key: _listed(said[key], f"{file}: {key}")
        for key in _STATE_KEYS[:4]
        if said.get(key) is not None
    }
    positions = said.get("positions") or {}
    if not isinstance(positions, dict):
        raise _UserError(f"{file}: positions: an object is needed, joint: position")
    places = {}
    for joint, value in positions.items():
        where = f"{file}: positions: {joint}"
        places[joint] = _listed(value if isinstance(value, list) else [value], where)
    return vectors, places


def _listed(value: object, where: str) -> _Given:
    if not isinstance(value, list):
        raise _UserError(f"{where}: a list of numbers is needed")
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise _UserError(f"{where}: {json.dumps(item)} is not a number")
    return _Given(where, [_finite(item, str(item), where) for item in value])


@dataclass(frozen=True)
class _State:
    """A state, the forces to apply where some were given, and how it came about."""

    q: Array
    v: Array
    a: Array
    tau: Array | None
    notes: list[str]


def _state(model: Model, asked: _Asked, seed: int | None) -> _State:
    """The state that was asked for, with the rest drawn at random or zero."""
    import numpy as np

    chosen = bool("q" in asked.vectors or asked.positions)
    drawn = seed is not None or not chosen
    rng = np.random.default_rng(seed or 0)
    notes = []
    if chosen:
        q, moved = _configuration(model, asked)
        notes += moved
    else:
        q = model.random_configuration(rng)
    vectors: dict[str, Array] = {}
    for name in ("v", "a"):
        noise = rng.standard_normal(model.nv)
        vectors[name] = noise if drawn else np.zeros(model.nv)
    for name, given in asked.vectors.items():
        if name != "q":
            vectors[name] = given.sized(model.nv, "nv")
    rest = [name for name in ("v", "a") if name not in asked.vectors]
    random = ([] if chosen else ["q"]) + (rest if drawn else [])
    if random:
        closed = "closed, " if not chosen else ""
        notes.append(f"{', '.join(random)}: random, {closed}seed {seed or 0}")
    if rest and not drawn:
        notes.append(f"{', '.join(rest)}: zero, as not given (--seed draws at random)")
    return _State(q, vectors["v"], vectors["a"], vectors.get("tau"), notes)


def _configuration(model: Model, asked: _Asked) -> tuple[Array, list[str]]:
    """The configuration that was asked for, closed, and what had to be done for that."""
    import numpy as np

    if "q" not in asked.vectors:
        return _from_positions(model, asked.positions), []
    typed = asked.vectors["q"].sized(model.nq, "nq")
    try:
        q = model.close(typed)
    except ClosureError:
        raise
    except ValueError as error:
        raise _UserError(f"{asked.vectors['q'].where}: {error}") from None
    way = float(np.max(np.abs(q - typed)))
    if way <= AS_TYPED:
        return typed, []
    return q, [f"q: moved by up to {way:.2g} to close the loops and to normalise quaternions"]


def _from_positions(model: Model, positions: Mapping[str, _Given]) -> Array:
    for joint, given in positions.items():
        if joint not in model.joint_names:
            raise _UserError(
                f"{given.where}: no such joint in '{model.name}'"
                f"{did_you_mean(joint, model.joint_names)}"
            )
    values: dict[str, Any] = {joint: given.numbers for joint, given in positions.items()}
    try:
        return model.configuration(values)
    except ClosureError:
        raise
    except ValueError as error:
        where = ", ".join(given.where for given in positions.values())
        raise _UserError(f"{where}: {error}") from None


# ---- reports -------------------------------------------------------------------------------------


def _info_report(model: Model, file: str, floating_base: bool | None) -> Report:
    fixed = _fixed_links(model)
    transmissions = [
        {"name": each.name, "type": each.type, "joints": each.joints}
        for each in model.description.transmissions
    ]
    return {
        "robot": model.name,
        "file": file,
        "nq": model.nq,
        "nv": model.nv,
        "dof_names": model.dof_names,
        "mass": model.mass,
        "gravity": model.gravity,
        "floating_base": model.floating_base,
        "bodies": model.bodies,
        "joints": model.joints,
        "clusters": [_cluster_report(model, cluster) for cluster in model.clusters],
        "loops": model.loops,
        "couplings": [asdict(each) | {"equation": _equation(model, each)}
                      for each in model.couplings],
        "transmissions": transmissions,
        "fixed_links": [link.name for link in fixed],
        "fixed_mass": sum(_mass(link) for link in fixed),
        "notes": [*model.notes, *_assumptions(model, floating_base)],
    }  # fmt: skip


def _cluster_report(model: Model, cluster: Cluster) -> Report:
    return {
        "name": cluster.name,
        "kind": cluster.kind,
        "parent": "world" if cluster.parent < 0 else model.clusters[cluster.parent].name,
        "bodies": [model.bodies[body].name for body in cluster.bodies],
        "joints": cluster.joints,
        "independent": cluster.independent,
        "nq": cluster.q.stop - cluster.q.start,
        "nv": cluster.nv,
    }


def _fixed_links(model: Model) -> list[Link]:
    """Links that fixed joints hold to the world."""
    held = {frame.name for frame in model.frames if frame.body < 0}
    return [link for link in model.description.links if link.name in held]


def _mass(link: Link) -> float:
    return link.inertial.mass if link.inertial else 0.0


def _assumptions(model: Model, floating_base: bool | None) -> list[str]:
    """What neither the file nor the model's own notes say."""
    x, y, z = model.gravity
    notes = [f"gravity is {x:g} {y:g} {z:g} m/s²"]
    written = {joint.name for joint in model.description.joints}
    children = {joint.child for joint in model.description.joints}
    root = next(link.name for link in model.description.links if link.name not in children)
    if model.floating_base is None:
        hint = "" if floating_base is False else " (--floating-base frees it)"
        notes.append(f"the root link '{root}' is fixed to the world{hint}")
    elif model.floating_base not in written:
        notes.append(f"the joint '{model.floating_base}' was added to free the root link '{root}'")
    return notes


def _equation(model: Model, coupling: Coupling) -> str:
    """The coupling in readable form, solved for a dependent joint where its coefficient is ±1."""
    terms: dict[str, float] = {}
    for joint, k in coupling.terms:
        terms[joint] = terms.get(joint, 0.0) + k
    independent = {joint.name for joint in model.joints if joint.independent}
    units = [joint for joint, k in terms.items() if abs(k) == 1.0]
    if not units:
        return f"{_sum(terms.items())} = {_short(coupling.offset)}"
    left = next((joint for joint in units if joint not in independent), units[0])
    k = terms.pop(left)
    right = _sum((joint, -other / k) for joint, other in terms.items())
    offset = coupling.offset / k
    if offset:
        right += f" {'-' if offset < 0 else '+'} {_short(abs(offset))}"
    return f"q({left}) = {right}"


def _sum(terms: Iterable[tuple[str, float]]) -> str:
    text = ""
    for joint, k in terms:
        sign = ("-" if k < 0 else "") if not text else (" - " if k < 0 else " + ")
        text += f"{sign}{'' if abs(k) == 1.0 else _short(abs(k)) + ' '}q({joint})"
    return text or "0"


def _dynamics_report(model: Model, file: str, state: _State) -> Report:
    import numpy as np

    from robomodel import dynamics as compute

    q, v, a = state.q, state.v, state.a
    tau = compute.rnea(model, q, v, a)
    back = compute.aba(model, q, v, tau)
    forward = {"tau": tau, "a": back}
    if state.tau is not None:
        forward = {"tau": state.tau, "a": compute.aba(model, q, v, state.tau)}
    with np.errstate(all="ignore"):
        round_trip = float(np.max(np.abs(back - a)))
    kinetic, potential = compute.energy(model, q, v)
    return {
        "robot": model.name,
        "file": file,
        "dof_names": model.dof_names,
        "q": q,
        "v": v,
        "a": a,
        "tau": tau,
        "round_trip": round_trip,
        "forward": forward,
        "joint_positions": model.joint_positions(q),
        "joint_velocities": model.joint_velocities(q, v),
        "joint_accelerations": model.joint_accelerations(q, v, a),
        "base_pose": None if model.floating_base is None else q[:7],
        "kinetic_energy": float(kinetic),
        "potential_energy": float(potential),
        "residual": float(np.max(np.abs(model.residual(q)), initial=0.0)),
        "notes": state.notes,
        "finding": _finding(model, state, tau, round_trip, forward["a"]),
    }


def _finding(
    model: Model, state: _State, tau: Array, round_trip: float, forward: Array
) -> str | None:
    """Why these results are of no use, if they are not."""
    import numpy as np

    if not np.all(np.isfinite(tau)):
        if np.all(np.isfinite(model.constraint_jacobian(state.q))):
            return "inverse dynamics is not a number: these velocities or accelerations overflow"
        return "singular state: a loop's independent joints do not say how its other joints move"
    if not (math.isfinite(round_trip) and np.all(np.isfinite(forward))):
        return "forward dynamics is not a number: the mass matrix is singular at this state"
    if round_trip > ROUND_TRIP * max(1.0, float(np.max(np.abs(state.a)))):
        return f"nearly singular state: forward dynamics misses a by {round_trip:.1g}"
    return None


# ---- showing -------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Arrays, dataclasses and tuples as JSON has them; what is not finite becomes None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else value


def _print_json(report: Report) -> None:
    typer.echo(json.dumps(_plain(report), indent=2, allow_nan=False))


def _console() -> Console:
    """Plain text; as wide as it takes where standard output is no terminal."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if terminal else WIDE,
        force_terminal=terminal,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _table(*columns: tuple[str, str]) -> Table:
    """An empty table; ``>`` marks a column of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header, side in columns:
        number = side == ">"
        table.add_column(
            header, justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    return table


def _short(value: float) -> str:
    return f"{value:.6g}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _show_list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(f"\n{title}")
        for line in lines:
            console.print(f"  {line}")


def _show_info(model: Model, report: Report) -> None:
    console = _console()
    console.print(
        f"{model.name}: {_count(len(model.bodies), 'body', 'bodies')}, "
        f"{_count(len(model.joints), 'joint')}, {_count(len(model.clusters), 'cluster')}; "
        f"nq = {model.nq}, nv = {model.nv}; mass {_short(model.mass)} kg\n"
    )
    console.print(_tree(model))
    if any(not joint.independent for joint in model.joints):
        console.print("* independent joint")
    _show_list(
        console,
        f"Degrees of freedom ({model.nv})",
        [f"{i:>{len(str(model.nv - 1))}}  {name}" for i, name in enumerate(model.dof_names)],
    )
    _show_list(console, "Loops", [_loop_line(loop) for loop in model.loops])
    _show_list(
        console, "Couplings", [_coupling_line(model, coupling) for coupling in model.couplings]
    )
    _show_list(
        console,
        "Transmissions, kept but not modelled",
        [
            f"{each['name']}{each['type'] and ' (' + each['type'] + ')'}: "
            f"{', '.join(each['joints'])}"
            for each in report["transmissions"]
        ],
    )
    _show_list(
        console,
        "Damping and friction, kept but not applied",
        [
            f"{joint.name}: damping {_short(joint.damping)}, friction {_short(joint.friction)}"
            for joint in model.joints
            if joint.damping or joint.friction
        ],
    )
    _show_list(
        console,
        "Fixed to the world, not counted in the mass",
        [
            f"{link.name}: {_short(_mass(link)) + ' kg' if _mass(link) else 'no mass'}"
            for link in _fixed_links(model)
        ],
    )
    _show_list(console, "Assumed", report["notes"])


def _tree(model: Model) -> Tree:
    """The clusters, each below the one on which it hangs."""
    from rich.tree import Tree

    root = Tree("world")
    branches: list[tuple[Tree, list[Tree]]] = []  # a cluster's branch, and those above it
    for cluster in model.clusters:
        above = [root] if cluster.parent < 0 else branches[cluster.parent][1]
        branch = above[-1].add(_cluster_label(model, cluster))
        branches.append((branch, above if len(above) > DEEPEST else [*above, branch]))
    return root


def _cluster_label(model: Model, cluster: Cluster) -> str:
    lines = [] if cluster.kind == "joint" else [f"{cluster.name} ({cluster.kind}, nv {cluster.nv})"]
    for at in cluster.bodies:
        joint, body = model.joints[at], model.bodies[at]
        mark = "*" if joint.independent else " "
        others = len(body.links) - 1
        lines.append(
            f"{mark} {joint.name} ({joint.type}): {joint.parent} → {joint.child}, "
            f"{_short(body.mass)} kg" + (f" with {_count(others, 'fixed link')}" if others else "")
        )
    return "\n".join(lines)


def _loop_line(loop: Loop) -> str:
    text = (
        f"{loop.name} ({loop.type}) between {loop.predecessor} and {loop.successor}: "
        f"{_count(loop.rows, 'condition')}, rank {loop.rank}"
    )
    return text + (f"; {loop.redundant} of {loop.rows} are redundant" if loop.redundant else "")


def _coupling_line(model: Model, coupling: Coupling) -> str:
    kind = " (mimic)" if coupling.kind == "mimic" else ""
    redundant = "; redundant" if coupling.redundant else ""
    return f"{coupling.name}{kind}: {_equation(model, coupling)}{redundant}"


def _show_dynamics(model: Model, report: Report, *, given: bool) -> None:
    console = _console()
    console.print(f"{model.name}, SI units and radians")
    for note in report["notes"]:
        console.print(note)
    if report["base_pose"] is not None:
        pose = [_short(x) for x in report["base_pose"]]
        console.print(f"base: position {' '.join(pose[:3])}, quaternion {' '.join(pose[3:])}")
    console.print()
    console.print(_dof_table(report, given=given))
    console.print("\ntau: inverse dynamics of a")
    gap = f"{report['round_trip']:.1e}"
    if given:
        console.print(f"a': forward dynamics of --tau (of tau it differs from a by {gap})")
    else:
        console.print(f"a': forward dynamics of tau; max |a' - a| = {gap}")
    dependent = [j.name for j in model.joints if not j.independent and j.nv == 1]
    if dependent:
        console.print("\nDependent joints")
        console.print(_dependent_table(report, dependent))
    console.print(
        f"\nkinetic energy {_short(report['kinetic_energy'])} J, "
        f"potential energy {_short(report['potential_energy'])} J"
    )
    if model.loops or model.couplings:
        console.print(f"residual of the constraints {report['residual']:.1e}")


def _dof_table(report: Report, *, given: bool) -> Table:
    headers = ["q", "v", "a", "tau", *(["--tau"] if given else []), "a'"]
    table = _table(("dof", ""), *((header, ">") for header in headers))
    positions, forward = report["joint_positions"], report["forward"]
    columns = [report["v"], report["a"], report["tau"]]
    columns += [forward["tau"]] if given else []
    columns += [forward["a"]]
    for i, name in enumerate(report["dof_names"]):
        position = _short(positions[name]) if name in positions else ""
        table.add_row(name, position, *(_short(column[i]) for column in columns))
    return table


def _dependent_table(report: Report, names: Sequence[str]) -> Table:
    table = _table(("joint", ""), ("q", ">"), ("v", ">"), ("a", ">"))
    for name in names:
        motion = (report[f"joint_{key}"] for key in ("positions", "velocities", "accelerations"))
        table.add_row(name, *(_short(values[name]) for values in motion))
    return table
