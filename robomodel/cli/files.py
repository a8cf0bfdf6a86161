"""``robomodel convert``, ``code``: robots in other formats, exactly or as open trees; C source."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import robomodel as rm
from robomodel.cli.common import UserError, blaming
from robomodel.cli.robot import Robot
from robomodel.files import STAGES
from robomodel.kernels.cache import kept_in
from robomodel.kernels.program import Dtype
from robomodel.model import Model
from robomodel.opentree.tree import OpenTree, TreeOptions, written_tree
from robomodel.parsers.meshes import How, folder_of
from robomodel.reports.approximation import SoftConstraintErrors, soft_constraint_errors
from robomodel.reports.document import Bullets, Document, Section, count
from robomodel.reports.simulators import tree_data
from robomodel.simulators import PROGRAMS, Simulator, tried
from robomodel.writing import Rods, write_mjcf, write_sdf, write_urdf, write_usd

Format = Literal["urdf", "sdf", "mjcf", "usd"]

WRITERS = {"urdf": write_urdf, "sdf": write_sdf, "mjcf": write_mjcf, "usd": write_usd}
SUFFIXES: dict[str, Format] = {
    ".urdf": "urdf",
    ".sdf": "sdf",
    ".world": "sdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    **dict.fromkeys(STAGES, "usd"),
}


def convert(
    robot: Robot,
    output: Path,
    to: Format | None = None,
    approximate: bool = False,
    joints: str = "",
    drop: bool = False,
    meshes: How | None = None,
    rods: Rods = "balls",
    check: bool = True,
    simulator: Annotated[
        Simulator | None,
        typer.Option(
            "--for", metavar="SIM", help="Write so that this simulator reads what it can, as drake."
        ),
    ] = None,
) -> Document:
    """Write a robot in another format: exactly, or as an open tree for simulators.

    Keys of the JSON document: robot, file, output, format, approximate, simulator, meshes (null,
    or the folder they were copied to), lost (what the format cannot say, with --drop), softness
    (null, or samples, median and worst relative error of MuJoCo's accelerations), tree (null, or of
    the open tree kind, verdict, errors by joint, armature, range, notes, and lumped: verdict,
    errors and armature with links as they are), verdict (a sentence), warnings.

    Examples:
        robomodel convert four_bar -o four_bar.sdf
        robomodel convert mini_cheetah -o cheetah.urdf --approximate --no-check
        robomodel convert mini_cheetah -o cheetah.urdf --for drake

    Options:
        -o, --output OUT: The file to write; its ending says the format: .urdf, .sdf, .world, .xml,
            .mjcf, .usd, .usda, .usdc, .usdz.
        --to: The format, where the ending does not say it.
        --approximate: Write an open tree with armature, for simulators without loops and couplings.
        --joints A,B,…: Joints that move in the open tree; the others are those that carry the limb.
        --drop: Leave out what the format cannot say, and list it.
        --meshes: Copy meshes into a folder beside OUT, keep them where they are, or drop them.
            [default: copied for MJCF, converted where MuJoCo cannot read them; else left in place]
        --rods: Balls of rods between two balls, in MJCF and USD: as they are, or as two hinges, for
            simulators without ball joints; the rods' spins are no freedoms then.
        --check: Measure how far MuJoCo's soft constraints are from the mechanism, where MuJoCo is
            installed.
    """
    form = to or form_of(output, "; --to names one")
    model = robot.load()
    names = tuple(each.strip() for each in joints.split(",") if each.strip())
    if names and not approximate:
        raise UserError("--joints are those of an open tree: add --approximate")
    if rods == "hinges" and form not in ("mjcf", "usd"):
        raise UserError("--rods hinges is for MJCF and USD")
    if simulator is not None and form not in PROGRAMS[simulator].formats:
        reads = ", ".join(PROGRAMS[simulator].formats)
        raise UserError(f"{PROGRAMS[simulator].title} reads {reads}, not {form}")
    written: dict[str, Any] = {"rods": rods} if rods == "hinges" else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the verdict says it
            lost = WRITERS[form](
                model,
                output,
                approximate=approximate,
                joints=names,
                drop=drop,
                meshes=meshes,
                simulator=simulator,
                **written,
            )
    except ValueError as error:  # among them DescriptionError: what cannot be said or lumped
        raise UserError(str(error)) from error
    copied = meshes == "copy" or (meshes is None and form == "mjcf")
    folder = output.with_name(folder_of(output.name))
    tied = bool(model.loops or model.couplings)
    measured: SoftConstraintErrors | None = None
    if not approximate and check and tied and form == "mjcf" and rods == "balls":
        measured = soft_constraint_errors(model, str(output))
    tree = None
    if approximate and tied:
        tree = written_tree(model, TreeOptions(names, tendons=form == "mjcf"))
    verdict = _verdict(form, tree, tied, lost, measured)
    if simulator is not None and not tried(simulator):
        verdict += (
            f". What {PROGRAMS[simulator].title} leaves out of such files was not tried, but for "
            "what is documented"
        )
    beside = str(folder) if copied and folder.is_dir() else None

    how = ", as an open tree" if approximate else ""
    meshes_at = f", its meshes in {beside}" if beside else ""
    sections = [
        Section("Left out, as the format cannot say it", [Bullets(lost)]),
        Section("The open tree", [Bullets(tree.notes[:-1] if tree else [])]),
        Section("", ["", verdict]),
    ]
    data = {
        "robot": model.name,
        "output": str(output),
        "format": form,
        "approximate": approximate,
        "simulator": simulator,
        "meshes": beside,
        "lost": lost,
        "softness": measured,
        "tree": tree and tree_data(tree),
        "verdict": verdict,
    }
    summary = f"{output} written ({form}{how}){meshes_at}"
    return Document(model.name, summary, sections, data)


def form_of(output: Path, remedy: str = "") -> Format:
    """The format that a file's ending says."""
    if output.suffix.lower() not in SUFFIXES:
        endings = ", ".join(SUFFIXES)
        raise UserError(f"{output}: '{output.suffix}' says no format; known are {endings}{remedy}")
    return SUFFIXES[output.suffix.lower()]


def _verdict(
    form: Format,
    tree: OpenTree | None,
    tied: bool,
    lost: Sequence[str],
    measured: SoftConstraintErrors | None,
) -> str:
    """One sentence: what the file is of the robot."""
    without = f", but for the {count(len(lost), 'thing')} above" if lost else ""
    if tree is not None:
        return f"{tree.said}{without}"
    if measured is not None:
        return (
            f"MuJoCo holds loops and couplings softly: at closed states its accelerations miss "
            f"those of the mechanism by {measured.median:.2g} (median of {measured.samples} "
            f"random states; worst {measured.worst:.2g}), relative to their norm{without}"
        )
    if tied and form == "mjcf":
        return (
            "MuJoCo holds loops and couplings softly, so that its motion differs from the "
            f"mechanism's; by how much was not measured{without}"
        )
    return f"The file says all of the robot's dynamics, and nothing of it is approximated{without}"


# ---- code ----------------------------------------------------------------------------------------


def code(
    robot: Robot,
    output: Path | None = None,
    functions: str = "rnea,aba",
    language: Literal["c", "js"] = "c",
    parameters: str = "",
    dtype: Literal["float64", "float32"] = "float64",
    stem: str | None = None,
    ros2_control: bool = False,
    cache: Path | None = None,
) -> Document:
    """Write functions of a robot as C99, which C++ includes too, or as a module of JavaScript.

    Neither needs a library. Keys of the JSON document: robot, file, source, header (of C),
    functions, dtype, warnings, transmission with --ros2-control, and with --cache in place of
    source and header: cache, entries (the number of new ones).

    Examples:
        robomodel code four_bar -o generated
        robomodel code four_bar -o web --language js --functions aba,close
        robomodel code parallel_ankle -o generated --ros2-control

    Options:
        -o, --output DIR: The folder for NAME.c and NAME.h, or NAME.js, created where missing.
        --functions A,B,…: Which: names as of rm.compile, and close, integrate, joint_positions,
            joint_velocities, link_poses, from_actuators, joint_states; after a colon the link that
            one is about, as frame_pose:foot, or ik:foot, a damped step of inverse kinematics, or
            the joints that are read, as joint_states:hip+knee.
        --language: C, or JavaScript.
        --parameters A,B,…: Numbers of the robot that are a last argument of each function: names
            as of rm.parameters, those of geometry too.
        --dtype: The type of all numbers in C; JavaScript has float64.
        --stem NAME: What names of C, and files, begin with. [default: the robot's]
        --ros2-control: Also write NAME_transmission.hpp, a Transmission of ros2_control between
            actuators and independent joints, and the functions that it calls.
        --cache DIR: Write no source: compile the functions for this machine into a folder which
            ROBOMODEL_CACHE then names, as in a container whose first calls shall be quick.
    """
    from robomodel.interop.c import identifier, write_c
    from robomodel.interop.javascript import write_js

    if language == "js" and (ros2_control or dtype != "float64"):
        raise UserError("--ros2-control and --dtype float32 are of --language c")
    if (output is None) == (cache is None):
        raise UserError("name --output DIR for source, or --cache DIR for machine code")
    model = robot.load()
    names, changing = (
        [each.strip() for each in text.split(",") if each.strip()]
        for text in (functions, parameters)
    )
    if output is None:
        assert cache is not None
        with blaming(robot.file):
            return _compiled(model, names, changing, dtype, cache)
    file = output / f"{identifier(stem or model.name)}.{language}"
    options = {"parameters": changing} if changing else {}
    wanted = {each.replace(":", "_").replace("+", "_"): (each, options) for each in names}
    with blaming(robot.file):
        output.mkdir(parents=True, exist_ok=True)
        paths = (
            [write_js(model, file, names, changing)]
            if language == "js"
            else write_c(model, file, wanted, dtype=dtype, ros2_control=ros2_control)
        )
    keys = ("source", "header", "transmission")
    written = {key: str(path) for key, path in zip(keys, paths, strict=False)}
    *others, last = written.values()
    listed = f"{', '.join(others)} and {last}" if others else last
    data = {"robot": model.name, **written, "functions": names, "dtype": dtype}
    return Document(f"wrote {listed}", "", data=data)


def _compiled(
    model: Model, names: Sequence[str], parameters: Sequence[str], dtype: Dtype, folder: Path
) -> Document:
    """Machine code of functions, in a folder that ROBOMODEL_CACHE names."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = {*folder.iterdir()}
    given: Any = {"parameters": parameters} if parameters else {}
    with kept_in(folder):
        for name in names:
            rm.compile(model, name, dtype=dtype, **given)
    entries = len({*folder.iterdir()} - before)
    data = {"robot": model.name, "cache": str(folder), "entries": entries}
    text = f"{folder}: {count(entries, 'new entry', 'new entries')}"
    return Document(text, "", data={**data, "functions": names, "dtype": dtype})
