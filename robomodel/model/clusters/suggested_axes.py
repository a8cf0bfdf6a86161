"""What would have helped where loops leave no motion or do not close: for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from robomodel.description import Loop, Vec3
from robomodel.errors import DescriptionError
from robomodel.model.clusters.loops import mobility_of
from robomodel.model.clusters.open_loops import branch_rotation, common_axis
from robomodel.model.clusters.problem import ClusterProblem, names
from robomodel.model.constraints.loop_joints import loop_frame
from robomodel.model.joints import Array

X: Vec3 = (1.0, 0.0, 0.0)
HINGES = ("revolute", "continuous", "planar")  # loops that have the axis of a planar linkage


def suggest_axes(
    problem: ClusterProblem,
    loops: Sequence[Loop],
    posed: Callable[[Sequence[Loop]], ClusterProblem],
) -> str:
    """The axes that would leave a stuck cluster motion, as words for a message; "" if none is seen.

    ``loops`` are the problem's, and ``posed`` poses it with others. Loops of hinges get the axis
    that the joints between their ends share; if that is no cure, a sliding one each coordinate axis
    of its frame.
    """
    found = []
    for trial in _trials(problem, loops):
        try:
            mobility = mobility_of(posed(trial))
        except DescriptionError:
            continue
        if mobility:
            changed = [
                f"loop '{new.name}' {_element(new.axis)} ({_whose(problem, n, old)})"
                for n, (old, new) in enumerate(zip(loops, trial, strict=True))
                if new is not old
            ]
            found.append(f"{' and '.join(changed)}, which leaves mobility {mobility}")
    return f"give {'; or '.join(found)}" if found else ""


def _element(axis: Vec3) -> str:
    return f'<axis xyz="{" ".join(f"{x:.9g}" for x in axis)}"/>'


def _whose(problem: ClusterProblem, n: int, loop: Loop) -> str:
    """Whose axis a loop is given, and what it has instead."""
    default = ", as where none is written" if loop.axis == X else ""
    has = f"it has {' '.join(f'{x:.6g}' for x in loop.axis)}{default}"
    shared = common_axis(problem, problem.geometry.loops[n])
    of_joints = shared is not None and loop.type in HINGES
    return f"the axis of {names(shared[1])}; {has}" if of_joints and shared else has


def _trials(problem: ClusterProblem, loops: Sequence[Loop]) -> Iterator[list[Loop]]:
    """The loops with other axes, where they differ from what they have."""
    trial = []
    for n, loop in enumerate(loops):
        axis = _shared(problem, n, loop) if loop.type in HINGES else None
        trial.append(loop if axis is None or _along(axis, loop.axis) else replace(loop, axis=axis))
    if any(new is not old for old, new in zip(loops, trial, strict=True)):
        yield trial
        return
    for n, loop in enumerate(loops):
        if loop.type == "prismatic":
            for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
                if not _along(axis, loop.axis):
                    yield [*loops[:n], replace(loop, axis=axis), *loops[n + 1 :]]


def _along(one: Vec3, other: Vec3) -> bool:
    return bool(np.linalg.norm(np.cross(one, other)) < 1e-6 * np.linalg.norm(other))


def _shared(problem: ClusterProblem, n: int, loop: Loop) -> Vec3 | None:
    """The axis that the joints between a loop's ends share, in its frame as it is written."""
    shared = common_axis(problem, problem.geometry.loops[n])
    if shared is None:
        return None
    joint = problem.geometry.loops[n]
    own = (
        np.array(joint.predecessor.axes) @ branch_rotation(problem, joint.branches[0]).T @ shared[0]
    )
    written: Array = np.array(loop_frame(loop.axis, loop.source)) @ own
    largest = written[int(np.argmax(np.abs(written)))]
    x, y, z = (np.round(written * np.sign(largest), 9) + 0.0).tolist()
    return x, y, z
