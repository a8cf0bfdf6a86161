"""Writers of robot files: what a model's description says, in one format or another.

Each format's module has one function, from a description to the file's text and a list of what the
format cannot say of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from robomodel.description import Description, JointSpring
from robomodel.errors import DescriptionError, suspect
from robomodel.model import Model
from robomodel.writers.choice import with_chosen

if TYPE_CHECKING:
    from robomodel.writers.meshes import How

__all__ = ["write_mjcf", "write_sdf", "write_urdf"]


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def write_urdf(
    model: Model,
    path: object,
    *,
    approximate: bool = False,
    drop: bool = False,
    meshes: How | None = None,
) -> tuple[str, ...]:
    """Write a model as URDF, in the words of URDF+ where URDF has none.

    Written is the model as it is: options of :func:`robomodel.load` are part of it. A robot that
    needs none of URDF+ is a file that every reader of URDF reads.

    Args:
        model: The robot.
        path: A path, which is replaced as a whole or not at all, or an open text file.
        approximate: An open tree for readers without loops and couplings, what they lock lumped
            into what moves, rotors as ``armature``; see
            :func:`robomodel.model.approximate.approximate`.
        drop: Write the file without what the format cannot say, instead of refusing.
        meshes: "copy" puts them into a folder beside the file, called NAME_meshes after it; "keep"
            leaves them where they are, and paths lead there from the written file; "drop" writes
            none. By default they are kept.

    Returns:
        dropped: What the format cannot say, in words; only with ``drop`` is there any.

    Raises:
        DescriptionError: What the format cannot say, by name, before anything is written; not with
            ``drop``.
    """
    return _write(model, _URDF, path, approximate, drop, meshes)


def write_sdf(
    model: Model,
    path: object,
    *,
    approximate: bool = False,
    drop: bool = False,
    meshes: How | None = None,
) -> tuple[str, ...]:
    """Write a model as SDF.

    Args:
        model: The robot.
        path: A path, which is replaced as a whole or not at all, or an open text file.
        approximate: An open tree for readers without loops and couplings, what they lock lumped
            into what moves, rotors as ``armature``; see
            :func:`robomodel.model.approximate.approximate`.
        drop: Write the file without what the format cannot say, instead of refusing.
        meshes: "copy" puts them into a folder beside the file, called NAME_meshes after it; "keep"
            leaves them where they are, and paths lead there from the written file; "drop" writes
            none. By default they are kept.

    Returns:
        dropped: What the format cannot say, in words; only with ``drop`` is there any.

    Raises:
        DescriptionError: What the format cannot say, by name, before anything is written; not with
            ``drop``.
    """
    return _write(model, _SDF, path, approximate, drop, meshes)


def write_mjcf(
    model: Model,
    path: object,
    *,
    approximate: bool = False,
    drop: bool = False,
    meshes: How | None = None,
) -> tuple[str, ...]:
    """Write a model as MJCF, for MuJoCo.

    Meshes of kinds that MuJoCo cannot read are converted, for which trimesh is needed. With
    ``approximate`` there is an actuator for each joint that has a transmission or a limit of its
    effort.

    Args:
        model: The robot.
        path: A path, which is replaced as a whole or not at all, or an open text file.
        approximate: An open tree for readers without loops and couplings, what they lock lumped
            into what moves, rotors as ``armature``; see
            :func:`robomodel.model.approximate.approximate`.
        drop: Write the file without what the format cannot say, instead of refusing.
        meshes: "copy" puts them into a folder beside the file, called NAME_meshes after it; "keep"
            leaves them where they are, and paths lead there from the written file; "drop" writes
            none. By default they are copied, where the robot is from a file and written to a path.

    Returns:
        dropped: What the format cannot say, in words; only with ``drop`` is there any.

    Raises:
        DescriptionError: What the format cannot say, by name, before anything is written; not with
            ``drop``.
    """
    return _write(model, _MJCF, path, approximate, drop, meshes)


@dataclass(frozen=True, slots=True)
class _Format:
    """A format, and how its text is made, of an open tree if the flag is set."""

    title: str
    text: Callable[[Description, bool], tuple[str, list[str]]]
    mujoco: bool = False


def _urdf(description: Description, tree: bool) -> tuple[str, list[str]]:
    from robomodel.writers import urdf

    return urdf.to_open_urdf(description) if tree else urdf.to_urdf(description)


def _sdf(description: Description, tree: bool) -> tuple[str, list[str]]:
    from robomodel.writers.sdf import to_sdf

    return to_sdf(description)


def _mjcf(description: Description, tree: bool) -> tuple[str, list[str]]:
    from robomodel.writers.mjcf import to_mjcf
    from robomodel.writers.motors import with_motors

    return to_mjcf(with_motors(description, simple=False) if tree else description)


_URDF, _SDF, _MJCF = (
    _Format("URDF", _urdf),
    _Format("SDF", _sdf),
    _Format("MJCF", _mjcf, mujoco=True),
)


def _said(model: Model, form: _Format, approximate: bool) -> Description:
    """The description to write."""
    if not approximate:
        return model.description if form is _URDF else with_chosen(model)
    from robomodel.dynamics.baselines.locked_joints import with_reflected
    from robomodel.model import approximate as open_trees
    from robomodel.writers.limits import with_limits

    return with_limits(model, with_reflected(model, open_trees.approximate(model)))


def _write(
    model: Model, form: _Format, path: object, approximate: bool, drop: bool, how: How | None
) -> tuple[str, ...]:
    description = _said(model, form, approximate)
    output = None
    if isinstance(path, str | os.PathLike):
        output = os.path.realpath(os.fsdecode(path))
    elif not hasattr(path, "write"):
        raise TypeError(
            f"a robot is written to a path or an open text file, not to {type(path).__name__}"
        )
    beside = None if output is None or _is_no_file(output) else output
    if how is None:
        copies = form.mujoco and beside is not None and os.path.isfile(description.source.file)
        how = "copy" if copies else "keep"
    from robomodel.writers.meshes import Meshes

    with Meshes(how, beside, mujoco=form.mujoco) as meshes:
        text, lost = form.text(meshes.placed(description), approximate)
        lost = meshes.lost + lost
        if lost and not drop:
            raise DescriptionError(_refusal(form.title, lost, meshes.lost), description.source)
        _tell_of_sensors(description)
        if approximate and not form.mujoco:
            _tell_of_sums(description, form.title)
        meshes.commit()
        if output is None:
            cast(_Writable, path).write(text)
        else:
            replace_file(output, text)
    return tuple(lost)


_TOLD = 8  # of what a format cannot say; a robot may have a hundred meshes


def _refusal(title: str, lost: Sequence[str], meshes: Sequence[str]) -> str:
    more = f"; and {len(lost) - _TOLD} more" if len(lost) > _TOLD else ""
    ways = "drop=True writes the file without"
    if meshes:
        ways += ', meshes="drop" without any mesh'
    return f"{title} cannot say: {'; '.join(lost[:_TOLD])}{more} ({ways})"


def _tell_of_sensors(description: Description) -> None:
    """Warn that they are not written."""
    sensors = description.sensors
    named = [f"'{each.name}'" if each.name else f"a {each.type}" for each in sensors[:_TOLD]]
    if named:
        more = f" and {len(sensors) - _TOLD} more" if len(sensors) > _TOLD else ""
        message = f"sensors are not written: {', '.join(named)}{more}"
        suspect(message, sensors[0].source, strict=False)


def _tell_of_sums(description: Description, title: str) -> None:
    """Warn of springs over several joints in an open tree, for which only MJCF has words."""
    sums = [each for each in description.springs if isinstance(each, JointSpring)]
    if sums:
        named = ", ".join(f"'{each.name}'" for each in sums[:_TOLD])
        suspect(
            f"springs, damping and friction over several joints are written in words of "
            f"robomodel's own, which simulators that read {title} pass over: {named}",
            sums[0].source,
            strict=False,
        )


def _is_no_file(path: str) -> bool:
    """A terminal or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def replace_file(path: str, text: str) -> None:
    """Write a file as a whole: nobody ever sees half of it, and a failure leaves the old one."""
    if _is_no_file(path):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"'{path}' cannot be written: there is no folder '{folder}'")
    beside = os.path.join(folder, f".{os.path.basename(path)}.{os.urandom(4).hex()}")
    try:
        with open(beside, "x", encoding="utf-8") as stream:
            stream.write(text)
        if os.path.exists(path):
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise
