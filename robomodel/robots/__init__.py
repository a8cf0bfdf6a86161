"""The robots shipped with the package, as URDF+ files beside this one; no robot has code.

A file's first comment says what the robot is, where its parameters come from, and what is peculiar;
``robomodel robots`` lists them.

- Every joint geared: ``mini_cheetah``, ``jvrc1``; with parallel belts besides: ``mit_humanoid``,
  ``mit_humanoid_leg``, ``belt_leg``, ``teleop_arm``.
- Differentials: ``tello``, ``tello_with_arms``.
- Linkages: ``four_bar``, ``crank_rocker``, ``five_bar``, ``six_bar``, ``planar_leg_linkage``,
  ``parallel_ankle``.
- Open chain: ``puma560``.

:func:`rotors` has extensions of stock files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from robomodel.errors import did_you_mean

if TYPE_CHECKING:
    from robomodel.model import Model

__all__ = ["load", "names", "path", "rotors"]


def names() -> list[str]:
    """The names of the shipped robots, sorted."""
    return sorted(file.stem for file in _directory().glob("*.urdf"))


def path(name: str) -> Path:
    """The file of the shipped robot ``name``; a ValueError that lists them if there is none."""
    shipped = names()
    if name not in shipped:
        raise ValueError(
            f"no shipped robot is called '{name}'{did_you_mean(name, shipped)}"
            f" (shipped: {', '.join(shipped)})"
        )
    return _directory() / f"{name}.urdf"


def load(name: str, **options: Any) -> Model:
    """The model of the shipped robot ``name``; ``options`` are those of :func:`robomodel.load`."""
    from robomodel.loading import load as load_file

    return load_file(path(name), **options)


def rotors(name: str) -> Path:
    """The extension with the rotors of a stock robot: ``rm.load(stock, extend=rotors("go1"))``.

    There are "cassie", "go1", "go2", "mini_cheetah", "solo12" and "talos"; the first comment of
    each file says which stock file it extends, where its numbers come from, and which are unknown.

    Raises:
        ValueError: There is none of that name; the message lists them.
    """
    folder = _directory() / "rotors"
    extended = sorted(file.stem for file in folder.glob("*.urdf"))
    if name not in extended:
        raise ValueError(
            f"there are no rotors of '{name}'{did_you_mean(name, extended)}"
            f" (there are: {', '.join(extended)})"
        )
    return folder / f"{name}.urdf"


def _directory() -> Path:
    # Wheels are unpacked on installation, so the package's resources are files.
    return Path(__file__).parent
