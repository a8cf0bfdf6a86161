"""Benchmarks of the IFToMM library of computational multibody problems: A01, A02 and A04.

    python -m benchmarks.multibody [N ...]

Rods of 1 m and 1 kg under 9.81 m/s² along -y, stated by the library (González, Dopico, González
and Cuadrado, Multibody System Dynamics 2006; https://www.iftomm-multibody.org/benchmark):

* A01, a pendulum: a point of 1 kg on a massless rod, from rest along x;
* A02, N four-bars side by side, upright, B0 at 1 m/s: each time that it lies flat its N loops lose
  rank all at once, and it might go on in 2^N ways (N is 40, and the time 20 s, in the library);
* A04, Bricard's mechanism: five rods along the edges of a cube and six hinges, from rest: counting
  gives it no freedom, its geometry one.

Printed are the largest change of energy over the largest kinetic energy, the largest gap of loops,
the largest error of the reference point's position, and CPU time of the simulation and of its first
run, which compiles. References are independent of the package's dynamics: the pendulum's equation
in one angle, for A01 and A02 (of which the parallelograms' rods all turn alike); energy, for A04.
The library asks for errors of 1e-1 m (low precision) and 1e-3 m (high).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import robomodel as rm

GRAVITY = 9.81
ROD = (
    '<inertial><origin xyz="{x}"/><mass value="1"/><inertia ixx="{i[0]}" iyy="{i[1]}" '
    'izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial>'
)
TURN = (
    '<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
    '<origin xyz="{at}"/><axis xyz="{axis}"/><initial position="{start!r}"/></joint>'
)
CLOSING = (
    '<loop name="{name}" type="revolute"><predecessor link="{first}"><origin xyz="{at}"/>'
    '</predecessor><successor link="{second}"><origin xyz="{to}"/></successor>'
    '<axis xyz="{axis}"/></loop>'
)


def _robot(name: str, parts: Iterable[str]) -> str:
    return f'<robot name="{name}"><link name="base"/>{"".join(parts)}</robot>'


def _rod(name: str, along: Iterable[float] = (1.0, 0.0, 0.0), width: float = 0.0) -> str:
    """A uniform rod of 1 m and 1 kg from its link's origin, slender or of square section [m]."""
    direction = np.array(list(along))
    inertia = (1.0 - direction**2 + (1.0 + direction**2) * width**2) / 12.0
    middle = " ".join(f"{float(x):.17g}" for x in direction / 2.0)
    numbers = [f"{float(x):.17g}" for x in inertia]
    return f'<link name="{name}">{ROD.format(x=middle, i=numbers)}</link>'


def pendulum() -> str:
    """A01: a point of 1 kg at the end of a massless rod of 1 m."""
    point = ROD.format(x="1 0 0", i=("0", "0", "0"))
    return _robot(
        "pendulum",
        [
            f'<link name="rod">{point}</link>',
            TURN.format(name="turn", parent="base", child="rod", at="0 0 0", axis="0 0 1",
                        start=0.0),
        ],
    )  # fmt: skip


def n_four_bar(n: int) -> str:
    """A02: N + 1 upright rods, ends joined by N couplers."""
    parts = []
    for i in range(n + 1):
        turn = TURN.format(name=f"turn{i}", parent="base", child=f"rod{i}", at=f"{i} 0 0",
                           axis="0 0 1", start=math.pi / 2)  # fmt: skip
        parts += [_rod(f"rod{i}"), turn]
    for i in range(n):
        hinge = TURN.format(name=f"hinge{i}", parent=f"rod{i}", child=f"coupler{i}", at="1 0 0",
                            axis="0 0 1", start=-math.pi / 2)  # fmt: skip
        parts += [_rod(f"coupler{i}"), hinge]
    for i in range(n):
        parts.append(CLOSING.format(name=f"window{i}", first=f"coupler{i}", at="1 0 0",
                                    second=f"rod{i + 1}", to="1 0 0", axis="0 0 1"))  # fmt: skip
    return _robot(f"{n}_four_bars", parts)


def bricard() -> str:
    """A04: rods 0.1 m square along five edges of a cube, hinged square to both that meet."""
    edges = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0)]
    axes = ["0 1 0", "0 0 1", "1 0 0", "0 1 0", "0 0 1"]
    parts, parent, at = [], "base", "0 0 0"
    for i, (edge, axis) in enumerate(zip(edges, axes, strict=True)):
        name = f"rod{i + 1}"
        parts.append(_rod(name, edge, 0.1))
        parts.append(
            TURN.format(name=f"hinge{i + 1}", parent=parent, child=name, at=at, axis=axis,
                        start=0.0)
        )  # fmt: skip
        parent, at = name, " ".join(map(str, edge))
    parts.append(
        CLOSING.format(name="last", first="rod5", at="0 1 0", second="base", to="0 0 1",
                       axis="1 0 0")
    )  # fmt: skip
    return _robot("bricard", parts)


@dataclass(frozen=True)
class Problem:
    """A benchmark: description, velocity at the start, time; and the reference point's way.

    ``way`` (times) → its positions (T, 3), None where only energy is known; ``link`` and ``point``
    say which point that is.
    """

    name: str
    text: str
    v: tuple[float, ...]
    duration: float
    steps: int
    link: str
    point: tuple[float, float, float]
    way: Callable[[Any], Any] | None


def _one_angle(weight: float, inertia: float, start: float, speed: float) -> Callable[[Any], Any]:
    """The end of a rod whose angle φ has φ̈ = -weight g cos φ / inertia."""

    def way(times: Any) -> Any:
        solution = solve_ivp(
            lambda _, y: [y[1], -weight * GRAVITY * math.cos(y[0]) / inertia],
            (0.0, float(times[-1])), [start, speed], t_eval=times, method="DOP853",
            rtol=1e-13, atol=1e-13,
        )  # fmt: skip
        angle = solution.y[0]
        return np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1)

    return way


def problems(sizes: Iterable[int] = (2, 5, 10, 40)) -> list[Problem]:
    """All of them; A02 of these sizes."""
    result = [
        Problem("A01", pendulum(), (0.0,), 10.0, 400, "rod", (1.0, 0.0, 0.0),
                _one_angle(1.0, 1.0, 0.0, 0.0))
    ]  # fmt: skip
    for n in sizes:
        weight, inertia = (n + 1) / 2 + n, (n + 1) / 3 + n
        result.append(
            Problem(f"A02, N = {n}", n_four_bar(n), (-1.0,), 20.0 if n == 40 else 10.0, 400, "rod0",
                    (1.0, 0.0, 0.0), _one_angle(weight, inertia, math.pi / 2, -1.0))
        )  # fmt: skip
    result.append(Problem("A04", bricard(), (0.0,), 10.0, 400, "rod3", (0.0, 0.0, 1.0), None))
    return result


@dataclass(frozen=True)
class Result:
    """``energy``: largest change over largest kinetic energy; ``gap``; ``error`` of the point."""

    motion: rm.motion.Trajectory
    energy: float
    gap: float
    error: float | None


def solved(problem: Problem, rtol: float = 1e-12, atol: float = 1e-13) -> Result:
    """The motion, and how right it is."""
    model = rm.load(problem.text, gravity=(0.0, -GRAVITY, 0.0))
    return judged(problem, motion_of(problem, model, rtol, atol))


def motion_of(problem: Problem, model: rm.Model, rtol: float, atol: float) -> rm.motion.Trajectory:
    """The motion of the model of a problem."""
    return rm.simulate(
        model, model.neutral(), problem.v, duration=problem.duration,
        step=problem.duration / problem.steps, rtol=rtol, atol=atol,
    )  # fmt: skip


def judged(problem: Problem, motion: rm.motion.Trajectory) -> Result:
    """How right it is."""
    change = np.max(np.abs(motion.energy - motion.energy[0])) / np.max(motion.kinetic)
    error = None
    if problem.way is not None:
        pose = rm.frame_pose(motion.model, motion.q, problem.link)
        at = pose[:, :3, 3] + pose[:, :3, :3] @ np.array(problem.point)
        error = float(np.max(np.linalg.norm(at - problem.way(motion.times), axis=-1)))
    return Result(motion, float(change), float(np.max(motion.residual)), error)


def main(sizes: list[int]) -> None:
    """Print a table."""
    print(f"{'':14}{'energy':>10}{'gap':>10}{'error':>10}{'time s':>9}{'first':>8}")
    for problem in problems(sizes or (2, 5, 10, 40)):
        spent = []
        model = rm.load(problem.text, gravity=(0.0, -GRAVITY, 0.0))
        for _ in range(2):
            start = time.process_time()
            motion = motion_of(problem, model, 1e-12, 1e-13)
            spent.append(time.process_time() - start)
        result = judged(problem, motion)
        error = "" if result.error is None else f"{result.error:.1e}"
        print(
            f"{problem.name:14}{result.energy:10.1e}{result.gap:10.1e}{error:>10}{spent[1]:9.2f}"
            f"{spent[0]:8.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", type=int, nargs="*", metavar="N", help="four-bars of A02")
    main(parser.parse_args().sizes)
