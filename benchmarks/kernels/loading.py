"""Import and loading times: ``python -m benchmarks.kernels.loading``. Prints the machine and times.

Times are the processor's, the least of several, in fresh processes and in this one. ``first …``:
from after import and load to the first result, its machine code on disk from an earlier process.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time

import numpy

import robomodel as rm
from robomodel import parsers

RUNS = 9
ARGUMENTS = {"aba": ("v", "tau"), "crba": (), "aba_derivatives": ("v", "tau")}
FIRST = (
    ("mini_cheetah", "aba"),
    ("mini_cheetah", "crba"),
    ("mit_humanoid", "aba"),
    ("mit_humanoid", "aba_derivatives"),
    ("jvrc1", "aba"),
)


def fresh(code: str) -> float:
    """Least of what a fresh interpreter says ``code`` took (it prints seconds).

    Its modules are compiled beforehand, as those of installed packages are.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        line = [sys.executable, "-c", code]
        runs = [
            float(subprocess.run(line, capture_output=True, check=True, env=settings).stdout)
            for _ in range(RUNS + 1)
        ]
    return min(runs)


def repeated(action: object) -> float:
    """Least seconds of an action in this process."""
    assert callable(action)
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def chain(count: int) -> str:
    """A serial chain of ``count`` links as a text."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" '
        'ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = (
        f'<link name="l{i}">{inertial}</link><joint name="j{i}" type="continuous">'
        f'<parent link="l{i - 1}"/><child link="l{i}"/><origin xyz="0.1 0 0"/>'
        '<axis xyz="0 0 1"/></joint>'
        for i in range(1, count + 1)
    )
    return f'<robot name="chain"><link name="l0"/>{"".join(links)}</robot>'


def arm(count: int) -> str:
    """A text of ``count`` revolute joints, with every element that files usually have."""
    links = (
        f'<link name="l{i}"><inertial><origin xyz="0.01 0.002 -0.{i}" rpy="0 0 0"/>'
        f'<mass value="1.25"/><inertia ixx="0.0123" ixy="0.0001" ixz="0" iyy="0.0117" iyz="0" '
        f'izz="0.0125"/></inertial></link><joint name="j{i}" type="revolute">'
        f'<parent link="l{i - 1}"/><child link="l{i}"/>'
        f'<origin xyz="0.1 0.02 0.{i}" rpy="0 0 1.5707963267948966"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="10" velocity="3"/></joint>'
        for i in range(1, count + 1)
    )
    return f'<robot name="arm"><link name="l0"/>{"".join(links)}</robot>'


def row(what: str, seconds: float) -> None:
    """One line of the table."""
    print(f"{what:36s} {1e3 * seconds:8.2f} ms")


def main() -> None:
    """Measure and print."""
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, the least of {RUNS}"
    )
    clock = "import time; t = time.process_time(); "
    end = "; print(time.process_time() - t)"
    row("import numpy, fresh process", fresh(f"{clock}import numpy{end}"))
    row("import robomodel, fresh process", fresh(f"{clock}import robomodel{end}"))
    first = f"import robomodel as rm; {clock}rm.robots.load('mini_cheetah'){end}"
    row("first mini_cheetah after import", fresh(first))
    for name, algorithm in FIRST:
        ready = (
            f"import robomodel as rm, numpy as np; m = rm.robots.load('{name}');"
            f" x = [m.neutral(), *[np.ones(m.nv)] * {len(ARGUMENTS[algorithm])}]"
        )
        call = f"rm.{algorithm}(m, *x)"
        row(f"first {algorithm} of {name}", fresh(f"{ready}; {clock}{call}{end}"))
    for name in rm.robots.names():
        row(name, repeated(lambda name=name: rm.robots.load(name)))
    text = arm(40)
    parsers.read(text)
    row("40 joints, text to description", repeated(lambda: parsers.read(text)))
    row("40 joints, text to model", repeated(lambda: rm.load(text)))
    text = chain(5000)
    row("serial chain of 5000 links", repeated(lambda: rm.load(text)))


if __name__ == "__main__":
    main()
