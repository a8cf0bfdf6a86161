"""Writing: from a model to a robot file.

Each format's writer, in its folder of :mod:`robomodel.parsers`, maps a description to the file's
text and a list of what the format cannot express. Steps that need the model are in this module.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
)

from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    LinkCoupling,
    Loop,
    Pose,
    Shape,
    Vec3,
)
from robomodel.description.poses import (
    cosine,
    distance,
    link_poses,
    off_axis,
    placed,
    relative,
    scaled,
    second_axis,
    unit,
)
from robomodel.dynamics.algorithm import CommonDocumentation, documented
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    argument,
    as_names,
    few,
    no_model,
    warn_at,
)
from robomodel.files import folder_of, is_no_file, replace_file
from robomodel.model import Cluster, Model
from robomodel.model.build import build
from robomodel.model.options import labels
from robomodel.model.spins import hinged
from robomodel.opentree.motors import with_actuators
from robomodel.opentree.tree import Fit, TreeOptions, open_tree_description, tree_notes
from robomodel.simulators import PROGRAMS, Format, Simulator, behaviours
from robomodel.simulators.beside import loss
from robomodel.simulators.written import written_for
from robomodel.spatial import apply, inner, minus
from robomodel.tolerances import SAME
from robomodel.vocabulary.schema import difference

if TYPE_CHECKING:
    from robomodel.parsers.meshes import How

__all__ = ["write_mjcf", "write_sdf", "write_urdf", "write_usd"]

P = ParamSpec("P")
R = TypeVar("R")


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


class WriteOptions(TypedDict, total=False):
    """Keyword arguments of the writers; :data:`_WRITERS` documents each."""

    approximate: bool
    joints: str | Iterable[str]
    fit: Fit
    followers: bool
    drop: bool
    meshes: How | None
    simulator: Simulator | None


_WRITERS = CommonDocumentation(
    {
        "approximate": False,
        "joints": (),
        "fit": "range",
        "followers": True,
        "drop": False,
        "meshes": None,
        "simulator": None,
    },
    """
    model: The robot.
    path: A path, which is replaced as a whole or not at all, or an open text file.
    approximate: An open tree for readers without loops and couplings: that of
        :func:`robomodel.approximate_tree`; a warning says where it will not do.
    joints: With ``approximate``, joints that move in the tree before all others.
    fit: With ``approximate``, "range" or "lumped", as of :func:`robomodel.approximate_tree`.
    followers: With ``approximate``, whether locked joints may follow others, in MJCF by a
        polynomial, else as a linear mimic.
    drop: Write the file without what the format cannot say, instead of refusing.
    meshes: "copy" puts them into a folder beside the file, called NAME_meshes after it; "keep"
        leaves them where they are, and paths lead there from the written file; "drop" writes
        none. By default MJCF copies them, where the robot is from a file and written to a path;
        the other formats keep them.
    simulator: Written so that this simulator reads what it can, as "drake", "newton" or "genesis"
        (:data:`robomodel.simulators.PROGRAMS`); a warning names each thing that it leaves out, with
        the error of accelerations.
""",
    """Returns:
    dropped: What the format cannot say, in words; only with ``drop`` is there any.

""",
    """Raises:
    DescriptionError: What the format cannot say, by name, before anything is written; not with
        ``drop``.
""",
)


def _writer(function: Callable[P, R]) -> Callable[P, R]:
    """Give a writer the options of :class:`WriteOptions`, and their documentation."""
    return documented(function, _WRITERS)


@_writer
def write_urdf(model: Model, path: object, **options: Unpack[WriteOptions]) -> tuple[str, ...]:
    """Write a model as URDF, with elements of URDF+ where URDF has none.

    The model is written as it is, including the options of :func:`robomodel.load`. A robot without
    elements of URDF+ gives a file for every reader of URDF.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.urdf")
        >>> rm.write_urdf(rm.robots.load("four_bar"), path)
        ()
        >>> rm.compare(path, rm.robots.load("four_bar")).same
        True
    """
    return _write(model, _URDF, path, **options)


@_writer
def write_sdf(model: Model, path: object, **options: Unpack[WriteOptions]) -> tuple[str, ...]:
    """Write a model as SDF.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.sdf")
        >>> rm.write_sdf(rm.robots.load("four_bar"), path)
        ()
        >>> rm.compare(path, rm.robots.load("four_bar")).same
        True
    """
    return _write(model, _SDF, path, **options)


Rods: TypeAlias = Literal["balls", "hinges"]


def _with_rods(model: Model, rods: Rods) -> Model:
    """The model with balls of rods unchanged, or as two hinges."""
    if not isinstance(model, Model):
        raise no_model(model)
    if rods not in get_args(Rods):
        raise ValueError(f"rods is 'balls' or 'hinges', not {rods!r}")
    if rods == "balls":
        return model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # which loading has given
        return build(hinged(model))


@_writer
def write_mjcf(
    model: Model, path: object, *, rods: Rods = "balls", **options: Unpack[WriteOptions]
) -> tuple[str, ...]:
    """Write a model as MJCF, for MuJoCo.

    Meshes of kinds that MuJoCo cannot read are converted, for which trimesh is needed. The model's
    actuators are motors, at the rotors' joints where there are rotors. With ``approximate``, what
    one rotor reflects on several joints is the armature of a fixed tendon, on which its motor acts.

    Args:
        rods: "hinges": the ball by which a rod between two balls hangs in the tree is written as
            two hinges, ``NAME.x`` and ``NAME.y``, at right angles to each other and to the rod: for
            simulators without ball joints. The rod's spin is no freedom of that file.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.xml")
        >>> rm.write_mjcf(rm.robots.load("four_bar"), path)
        ()
        >>> rm.compare(path, rm.robots.load("four_bar")).same
        True
    """
    return _write(_with_rods(model, rods), _MJCF, path, **options)


@_writer
def write_usd(
    model: Model, path: object, *, rods: Rods = "balls", **options: Unpack[WriteOptions]
) -> tuple[str, ...]:
    """Write a model as USD with UsdPhysics, as text to ``.usda``, else in binary.

    Meshes are written into the file, for which trimesh is needed, with the path of the file that
    each is from. What USD cannot express is in attributes that :func:`robomodel.load` reads.

    Args:
        rods: "hinges" writes balls of rods as two hinges, as :func:`write_mjcf` does.

    Raises:
        DescriptionError: What the format cannot say, by name, before anything is written; not with
            ``drop``.
        MissingPackageError: usd-core is not installed.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "four_bar.usda")
        >>> rm.write_usd(rm.robots.load("four_bar"), path)
        ()
        >>> rm.compare(path, rm.robots.load("four_bar")).same
        True
    """
    return _write(_with_rods(model, rods), _USD, path, **options)


@dataclass(frozen=True, slots=True)
class _Format:
    """A format, and the function that makes its text, of an open tree if the flag is set.

    The last argument has the shapes before their meshes were placed, by the path that is written.
    """

    title: str
    text: Callable[[Description, bool, Mapping[str, Shape]], tuple[str, list[str]]]
    mujoco: bool = False

    @property
    def name(self) -> Format:
        """The format's name."""
        return cast("Format", self.title.lower())


def _urdf(description: Description, tree: bool, _: object) -> tuple[str, list[str]]:
    from robomodel.parsers import urdf

    return urdf.to_open_urdf(description) if tree else urdf.to_urdf(description)


def _sdf(description: Description, tree: bool, _: object) -> tuple[str, list[str]]:
    from robomodel.parsers.sdf.writer import to_sdf

    return to_sdf(description, shown_positions(description))


def _mjcf(description: Description, tree: bool, _: object) -> tuple[str, list[str]]:
    from robomodel.parsers.mjcf.writer import to_mjcf

    return to_mjcf(description)


def _usd(
    description: Description, tree: bool, originals: Mapping[str, Shape]
) -> tuple[str, list[str]]:
    from robomodel.parsers.usd.writer import to_usd

    return to_usd(description, shown_positions(description, whole=True), originals)


_URDF, _SDF, _MJCF, _USD = (
    _Format("URDF", _urdf),
    _Format("SDF", _sdf),
    _Format("MJCF", _mjcf, mujoco=True),
    _Format("USD", _usd),
)


def write_for(model: Model, simulator: Simulator, form: Format, path: object) -> None:
    """Write a robot without meshes for a simulator, which then shows itself what it leaves out.

    Raises:
        DescriptionError: What the format cannot say.
    """
    formats = {each.name: each for each in (_URDF, _SDF, _MJCF, _USD)}
    _write(model, formats[form], path, meshes="drop", simulator=simulator, tell=False)


def _description(model: Model, form: _Format, tree: TreeOptions | None) -> Description:
    """The description to write."""
    if tree is None:
        if form in (_URDF, _USD):
            return model.description
        description = with_chosen(model)
        return with_actuators(model, description) if form is _MJCF else description
    return open_tree_description(model, tree)


def _write(
    model: Model,
    form: _Format,
    path: object,
    *,
    approximate: bool = False,
    joints: str | Iterable[str] = (),
    fit: Fit = "range",
    followers: bool = True,
    drop: bool = False,
    meshes: How | None = None,
    simulator: Simulator | None = None,
    tell: bool = True,
) -> tuple[str, ...]:
    _check_simulator(simulator, form)
    tree = TreeOptions(as_names(joints, "joints"), fit, bool(followers), form is _MJCF)
    description = _description(model, form, tree if approximate else None)
    if simulator is not None:
        description = written_for(description, simulator, form.name)
    output = None
    if isinstance(path, str | os.PathLike):
        output = os.path.realpath(os.fsdecode(path))
    elif not hasattr(path, "write"):
        raise TypeError(
            f"a robot is written to a path or an open text file, not to {type(path).__name__}"
        )
    beside = None if output is None or is_no_file(output) else output
    if beside is not None:
        folder_of(beside)  # before meshes are copied
    if meshes is None:
        copies = form.mujoco and beside is not None and os.path.isfile(description.source.file)
        meshes = "copy" if copies else "keep"
    from robomodel.parsers.meshes import Meshes

    with Meshes(meshes, beside, mujoco=form.mujoco) as files:
        plain = approximate or simulator is not None
        text, lost = form.text(files.placed(description), plain, files.originals)
        if approximate:
            text = _with_notes(text, tree_notes(model, tree))
        lost = files.lost + lost
        if lost and not drop:
            raise DescriptionError(_refusal(form.title, lost, files.lost), description.source)
        _warn_of_sensors(description)
        if approximate and not form.mujoco:
            _warn_of_sums(description, form.title)
        if form is not _MJCF:
            _warn_of_free_bodies(description, form.title)
        if simulator is not None and tell:
            _warn_of_simulator(description, simulator, form.name)
        files.commit()
        if output is None:
            cast(_Writable, path).write(text)
        elif form is _USD and beside is not None and not output.lower().endswith(".usda"):
            from robomodel.parsers.usd.writer import save

            save(text, output)
        else:
            replace_file(output, text)
    return tuple(lost)


def _check_simulator(simulator: Simulator | None, form: _Format) -> None:
    """Raise ValueError for an unknown simulator, or one that does not read the format."""
    if simulator is None:
        return
    if simulator not in PROGRAMS:
        raise ValueError(f"simulators are {', '.join(PROGRAMS)}, not {simulator!r}")
    program = PROGRAMS[simulator]
    if form.name not in program.formats:
        reads = " and ".join(each.upper() for each in program.formats)
        raise ValueError(f"{program.title} reads {reads}, not {form.title}")


def _warn_of_simulator(description: Description, simulator: Simulator, form: Format) -> None:
    """Warn of what a simulator leaves out of the file, with the error of accelerations."""
    known = [
        each
        for each in behaviours(simulator, form, description)
        if each.concerns != "every robot" and not each.mended
    ]
    if not known:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        model = build(description)
    for each in known:
        parts = [f"{PROGRAMS[simulator].title} {each.does}: {few(each.elements(description))}"]
        if each.read:
            parts.append(loss(model, each.read))
        if each.advice:
            parts.append(each.advice)
        warn_at("; ".join(parts), description.source, strict=False)


def _with_notes(text: str, notes: Sequence[str]) -> str:
    """The text with a comment before the root element, or after the first line of USD."""
    if not notes:
        return text
    if text.startswith("#"):
        first, rest = text.split("\n", 1)
        return "\n".join([first, *(f"# {note}" for note in notes), rest])
    root = re.search(r"<(?![?!])", text)
    assert root is not None
    comment = "\n     ".join(notes).replace("--", "- -")
    return f"{text[: root.start()]}<!-- {comment} -->\n{text[root.start() :]}"


_LISTED_MESSAGES = 8  # messages on what a format cannot express; a robot may have a hundred meshes


def _refusal(title: str, lost: Sequence[str], meshes: Sequence[str]) -> str:
    alike: dict[str, list[str]] = {}  # messages that differ only in names of meshes and links
    for each in lost:
        alike.setdefault(re.sub(r"(?<!\w)'[^']*'", "", each), []).append(each)
    messages = [
        first + (f", and {len(others)} more like it" if others else "")
        for first, *others in alike.values()
    ]
    more = (
        f"; and {len(messages) - _LISTED_MESSAGES} more" if len(messages) > _LISTED_MESSAGES else ""
    )
    ways = f"{argument('drop', True)} writes the file without"
    if meshes:
        ways += f", {argument('meshes', 'drop')} without any mesh"
    return f"{title} cannot say: {'; '.join(messages[:_LISTED_MESSAGES])}{more} ({ways})"


def _warn_of_sensors(description: Description) -> None:
    """Warn of sensors, which are not written."""
    sensors = description.sensors
    named = [
        f"'{each.name}'" if each.name else f"a {each.type}" for each in sensors[:_LISTED_MESSAGES]
    ]
    if named:
        more = (
            f" and {len(sensors) - _LISTED_MESSAGES} more"
            if len(sensors) > _LISTED_MESSAGES
            else ""
        )
        message = f"sensors are not written: {', '.join(named)}{more}"
        warn_at(message, sensors[0].source, strict=False)


def _warn_of_sums(description: Description, title: str) -> None:
    """Warn of springs over several joints in an open tree, which only MJCF can express."""
    sums = [each for each in description.springs if isinstance(each, JointSpring)]
    if sums:
        named = ", ".join(f"'{each.name}'" for each in sums[:_LISTED_MESSAGES])
        warn_at(
            f"springs, damping and friction over several joints are written in words of "
            f"robomodel's own, which simulators that read {title} pass over: {named}",
            sums[0].source,
            strict=False,
        )


def _warn_of_free_bodies(description: Description, title: str) -> None:
    """Warn of free bodies in loops, whose places to close from only MJCF has."""
    free = [joint for joint in description.joints if joint.initial_pose != AT_ORIGIN]
    if free:
        named = few([joint.name for joint in free], _LISTED_MESSAGES)
        warn_at(
            f"{title} has no place from which loops of free bodies close: those of {named} close "
            "from the origin when the file is read, perhaps in another way",
            free[0].source,
            strict=False,
        )


# --- the model's choice of independent joints -----------------------------------------------------

_COMPOSED = ("screw", "planar", "floating")  # written as several of MuJoCo's joints


def with_chosen(model: Model) -> Description:
    """The description, with the model's choice of independent joints where the file made none.

    For clusters whose choice a reader could make differently: with loops, with a joint that is
    written as several, with couplings of joints (in which none follows), or with several freedoms.
    A planar joint, or one that floats on a moving link, of which only some freedoms are independent
    cannot be expressed; its cluster is left to the reader.
    """
    description = model.description
    joints = {joint.name: joint for joint in description.joints}
    held = {joint.child for joint in description.joints}
    root = next(link.name for link in description.links if link.name not in held)
    ties = (tie for tie in description.couplings if isinstance(tie, JointCoupling))
    summed = {name for tie in ties for name, _ in tie.terms}
    marks: dict[str, bool | tuple[bool, ...]] = {}
    for cluster in model.clusters:
        members = [joints[name] for name in cluster.joints if name in joints]
        if (
            cluster.kind == "loops"
            or len(cluster.independent) > 1
            or any(joint.type in _COMPOSED or joint.name in summed for joint in members)
        ):
            marks |= _marks(cluster, members, root)
    if not marks:
        return description
    chosen = (replace(j, independent=marks.get(j.name, j.independent)) for j in description.joints)
    return replace(description, joints=tuple(chosen))


def _marks(cluster: Cluster, joints: list[Joint], root: str) -> dict[str, bool | tuple[bool, ...]]:
    """Flags ``independent`` to write for a cluster's joints; empty if the file has them."""
    if cluster.kind == "joint" or any(joint.independent is not None for joint in joints):
        return {}
    marks: dict[str, bool | tuple[bool, ...]] = {}
    for joint in joints:
        each = tuple(label in cluster.independent for label in labels(joint))
        if len(set(each)) == 1:
            marks[joint.name] = each[0]
        elif joint.type == "spherical" or (joint.type == "floating" and joint.parent == root):
            marks[joint.name] = each
        else:
            return {}
    return marks


# --- the configuration that SDF shows -------------------------------------------------------------


def shown_positions(
    description: Description, *, whole: bool = False
) -> dict[str, tuple[float, ...]]:
    """The neutral positions of the joints of clusters that are not closed at position zero.

    Loops count that SDF can express, and offsets of gears; with ``whole`` all loops and couplings,
    and clusters whose joints have initial positions: at a change point these say which branch.
    """
    offset = {
        each.name
        for each in description.couplings
        if each.offset and (whole or isinstance(each, LinkCoupling))
    }
    if whole:
        offset |= {each.name for each in description.joints if each.mimic and each.mimic.offset}
    if not description.loops and not offset:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        model = build(description)
    at_zero = link_poses(description)
    loops = {loop.name: loop for loop in description.loops}
    open_clusters = {
        each.cluster
        for each in model.loops
        if not _is_closed(loops[each.name], at_zero, whole=whole)
    }
    open_clusters |= {each.cluster for each in model.couplings if each.name in offset}
    if whole:
        begun = {each.name for each in description.joints if each.initial}
        open_clusters |= {each.name for each in model.clusters if begun.intersection(each.joints)}
    joints = {joint.name: joint for joint in description.joints}
    neutral = model.neutral()
    q = model.joint_positions(neutral)
    if model.joints and model.joints[0].type == "floating":
        q[model.joints[0].name] = neutral[:7]
    return {
        name: tuple(float(x) for x in q[name].reshape(-1))
        for cluster in model.clusters
        if cluster.name in open_clusters
        for name in cluster.joints
        if joints[name].type in ("spherical", "floating", *ONE_DOF)
    }


def _is_closed(loop: Loop, poses: Mapping[str, Pose], *, whole: bool) -> bool:
    """True if a loop is closed at these poses of links; ``whole``: also one that SDF has not."""
    from robomodel.parsers.sdf.writer import LOOPS

    if loop.type not in LOOPS and not whole:
        return True
    if loop.type == "rod":
        between_ends = distance(loop.predecessor, loop.successor, poses)
        return loop.length is None or abs(between_ends - loop.length) <= SAME
    between = relative(placed(loop.predecessor, poses), placed(loop.successor, poses))
    turn = difference(between.rotation, IDENTITY)
    if loop.type == "prismatic":
        return off_axis(between.xyz, loop.axis) <= SAME and turn <= SAME
    apart: Vec3 = between.xyz
    if loop.type == "planar":
        apart = scaled(unit(loop.axis), inner(between.xyz, unit(loop.axis)))
    if math.hypot(*apart) > SAME:
        return False
    if loop.type == "fixed":
        return turn <= SAME
    if loop.type == "universal":
        second = apply(between.rotation, unit(second_axis(loop)))
        return abs(cosine(loop.axis, second)) <= SAME
    if loop.type in ("revolute", "continuous", "planar"):
        x, y, z = minus(apply(between.rotation, loop.axis), loop.axis)
        return math.hypot(x, y, z) <= SAME * math.hypot(*loop.axis)
    return True
