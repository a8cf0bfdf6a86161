"""The robots shipped with the package, as URDF+ files beside this one; no robot has code.

A file's first comment says what the robot is, where its parameters come from, and what is peculiar;
``robomodel robots`` lists them.

- Every joint geared: ``mini_cheetah``, ``jvrc1``; with parallel belts besides: ``mit_humanoid``,
  ``mit_humanoid_leg``, ``belt_leg``, ``teleop_arm``.
- Differentials: ``tello``, ``tello_with_arms``.
- Linkages: ``four_bar``, ``crank_rocker``, ``five_bar``, ``six_bar``, ``planar_leg_linkage``,
  ``parallel_ankle``.
- Open chain: ``puma560``.

:func:`chain` makes serial chains of any length. :func:`rotors` has extensions of stock files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from robomodel.errors import did_you_mean

if TYPE_CHECKING:
    import numpy as np

    from robomodel.model import Model
    from robomodel.robots.chains import Kind

__all__ = ["chain", "load", "names", "path", "rotors"]


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


def chain(kind: Kind, n: int, *, rng: np.random.Generator | None = None, **options: Any) -> Model:
    """A serial chain with n degrees of freedom.

    - "plain": n links, n revolute joints.
    - "geared": the same, every joint with its rotor, which stands on the link before (GT).
    - "belt": links in pairs, both rotors of a pair on the link before, with belts to both joints:
      rotor 1 = g b q1, rotor 2 = g' b1 (q1 + b2 q2) (PBT). The last link of an odd number has
      one rotor and one belt.
    - "four_bar": n planar four-bars, the next one on the coupler of the one before.

    Without ``rng`` the chain is planar, with axes z: links of 1 m and 1 kg, centre of mass in the
    middle, izz = 1, rotors without mass, izz = 1e-4; gears 6, belts 3 and 1; gravity is 9.81 along
    x, where the chain hangs at position zero. With it, links, rotors (lighter by 1e4), placements,
    axes (x, y or z) and ratios (1 to 5) are random; four-bars keep their geometry; gravity is along
    -z. The first joints turn on the link ``base``; ``tip`` is the end of the last link. The links
    are link1, link2, … (crank1, coupler1, rocker1, …) on joint1, … (crank_joint1, …), rotors rotor1
    … on motor1 ….

    ``options``: floating_base, independent, gravity and strict, as of :func:`robomodel.load`.
    Raises a ValueError for an unknown kind, and for n < 1.
    """
    from robomodel.model import build
    from robomodel.robots.chains import describe

    return build(describe(kind, n, rng=rng), **options)


def _directory() -> Path:
    # Wheels are unpacked on installation, so the package's resources are files.
    return Path(__file__).parent
