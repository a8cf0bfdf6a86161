"""Speed of generated C beside Pinocchio's C++: ``python -m benchmarks.kernels.c_code``.

One state a call, called from compiled loops on 64 random states in turns, by every C compiler that
is found at ``-O3 -march=native``. Thread CPU time, medians of interleaved
rounds, in nanoseconds a state. Pinocchio (``rivals.py`` builds it) gets the open tree without
rotors, on which the generated code is timed too; its faster variant and compiler count.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import robomodel as rm
from benchmarks.shared.rivals import VARIANTS, Rival, build, without_rotors
from benchmarks.shared.states import States

ALGORITHMS = ("rnea", "aba")
COUNT = 1024


def generated(model: rm.Model, compiler: str, folder: Path) -> ctypes.CDLL:
    """The robot's code with a loop over states, as a library."""
    source, _ = rm.write_c(model, folder / "robot.c", ALGORITHMS)
    loops = [
        f"void loop_{name}(size_t n, const double *q, const double *v, const double *x, double *y)"
        " { for (size_t i = 0; i < n; ++i)"
        f" robot_{name}(q + ROBOT_NQ * i, v + ROBOT_NV * i, x + ROBOT_NV * i, y + ROBOT_NV * i);"
        " }"
        for name in ALGORITHMS
    ]
    (folder / "loops.c").write_text("\n".join(['#include "robot.h"', *loops, ""]))
    library = folder / f"{compiler}.so"
    line = [compiler, "-O3", "-march=native", "-shared", "-fPIC", source, folder / "loops.c"]
    subprocess.run([*map(str, line), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def called(function: Callable[..., None], states: States) -> Callable[[], object]:
    """One pass over the states."""
    out = np.zeros_like(states.v)
    arrays = (states.q, states.v, states.x, out)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    count = ctypes.c_size_t(len(states.q))

    def action(_alive: object = arrays) -> None:
        function(count, *pointers)

    return action


def main() -> None:
    """Time all, in turns, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--robot", default="mini_cheetah")
    options.add_argument("--rounds", type=int, default=200)
    arguments = options.parse_args()
    exact = rm.robots.load(arguments.robot)
    tree = without_rotors(exact)
    actions: dict[tuple[str, str], Callable[[], object]] = {}
    with tempfile.TemporaryDirectory() as name:
        for what, model in (("exact", exact), ("without rotors", tree)):
            states = States.of(model, COUNT)
            for compiler in [x for x in ("gcc", "clang") if shutil.which(x)]:
                folder = Path(name) / f"{what} {compiler}"
                folder.mkdir()
                library = generated(model, compiler, folder)
                for algorithm in ALGORITHMS:
                    function = getattr(library, f"loop_{algorithm}")
                    actions[f"{what}, {compiler}", algorithm] = called(function, states)
        rival = Rival(tree)
        theirs = rival.states(States.of(tree, COUNT))
        for library in build([])[0]:
            robot = library.robot(rival)
            for algorithm in ALGORITHMS:
                for variant, what in VARIANTS[algorithm].items():
                    out = np.zeros_like(theirs.v)
                    label = f"Pinocchio, {library.name} {variant}"
                    actions[label, algorithm] = library.batch(robot, what, theirs, out)
        taken: dict[tuple[str, str], list[float]] = {key: [] for key in actions}
        for _ in range(arguments.rounds):
            for key, action in actions.items():
                begin = time.thread_time()
                action()
                taken[key].append(time.thread_time() - begin)
    for (label, algorithm), times in taken.items():
        print(f"{algorithm:5} {1e9 * statistics.median(times) / COUNT:8.0f} ns  {label}")


if __name__ == "__main__":
    main()
