"""The robots shipped with the package, as URDF+ files beside this one.

- ``mini_cheetah``: MIT Mini Cheetah, floating base, twelve joints each with its geared rotor, 18
  degrees of freedom. Parameters as published with generalized_rbda 2.1.0.
- ``planar_leg_linkage``: thigh and a parallelogram that carries the foot, 2 degrees of freedom.
  Parameters as published with generalized_rbda 2.1.0.
- ``four_bar``: a planar parallelogram four-bar, 1 degree of freedom.
- ``six_bar``: two planar chains of three and of two links, joined at their ends, 3 degrees of
  freedom.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robomodel.errors import did_you_mean

if TYPE_CHECKING:
    from robomodel.model import Model

__all__ = ["load", "names", "path"]


def names() -> list[str]:
    """The names of the shipped robots, sorted."""
    return sorted(file.stem for file in _directory().glob("*.urdf"))


def path(name: str) -> Path:
    """The file of the shipped robot ``name``; a ValueError that lists them if there is none."""
    known = names()
    if name not in known:
        raise ValueError(
            f"no shipped robot is called '{name}'{did_you_mean(name, known)}"
            f" (shipped: {', '.join(known)})"
        )
    return _directory() / f"{name}.urdf"


def load(name: str, **options: Any) -> Model:
    """The model of the shipped robot ``name``; ``options`` are those of :func:`robomodel.load`."""
    from robomodel.loading import load as load_file

    return load_file(path(name), **options)


def _directory() -> Path:
    # Wheels are unpacked on installation, so the package's resources are files.
    return Path(str(files(__name__)))
