"""Pinocchio beside us: robots as it can express them, its C++ side built here, and its results.

It gets the open tree without rotors. The C++ side (``pinocchio_bench.cpp``) is compiled from the
headers of the ``pin`` wheel with every kind of compiler that is found, because clang has been seen
to make it 1.7 times faster than GCC; whatever is faster counts. ``pip install ziglang`` brings a
clang where the system has none. Builds are kept in the user's cache directory.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import platformdirs

import robomodel as rm
from benchmarks.shared.machine import processor
from benchmarks.shared.race import Array
from benchmarks.shared.states import States
from robomodel.dynamics.lumped import unconstrained
from robomodel.model.build import build as build_model

try:
    import pinocchio as pin
except ImportError:
    pin = None

FLAGS = (
    "-O3", "-march=native", "-DNDEBUG", "-std=c++17", "-fPIC", "-shared", "-w", "-g0",
    "-fno-sanitize=all", "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)  # fmt: skip
SOURCE = Path(__file__).with_name("pinocchio_bench.cpp")
VARIANTS = {
    "aba": {"local": 0, "world": 1},
    "rnea": {"": 2},
    "aba_derivatives": {"": 3},
    "rnea_derivatives": {"": 4},
    "crba": {"local": 5, "world": 6},
    "jacobian": {"": 7},
}
"""The ways in which Pinocchio runs each algorithm, with their numbers in the C++ side."""


def without_rotors(model: rm.Model) -> rm.Model:
    """The open tree of the robot's independent joints: all that Pinocchio can express."""
    return build_model(unconstrained(model))


def for_pinocchio(tree: rm.Model) -> str:
    """The tree as URDF for Pinocchio: no world link or floating joint, no continuous joints.

    (Pinocchio has a free flyer for the base, and would spend a cosine and a sine in q on each
    continuous joint.)
    """
    text = io.StringIO()
    rm.write_urdf(tree, text)
    root = ET.fromstring(text.getvalue())
    for joint in root.findall("joint"):
        if joint.get("type") == "floating":
            root.remove(joint)
        elif joint.get("type") == "continuous":
            joint.set("type", "revolute")
            ET.SubElement(joint, "limit", lower="-9", upper="9", effort="1", velocity="1")
    for link in root.findall("link"):
        if link.get("name") == "world" and tree.floating_base:
            root.remove(link)
    return ET.tostring(root, encoding="unicode")


class Rival:
    """Pinocchio's model of an open tree, and how its vectors are ordered."""

    def __init__(self, tree: rm.Model) -> None:
        base = [pin.JointModelFreeFlyer()] if tree.floating_base else []
        self.model = pin.buildModelFromXML(for_pinocchio(tree), *base)
        self.model.gravity.linear = np.array(tree.gravity)
        self.data = self.model.createData()
        names = [name.partition(".")[0] for name in tree.dof_names]
        joints = [names.index(name) for name in list(self.model.names)[1 + len(base) :]]
        # the free flyer: linear before angular; the joints in Pinocchio's order
        self.order_v = [3, 4, 5, 0, 1, 2, *joints] if base else joints
        self.order_q = [*range(7), *(i + 1 for i in joints)] if base else joints
        self.frame = tree.bodies[-1].name
        """The link of which Jacobians are taken."""
        self.joint = self.model.frames[self.model.getFrameId(self.frame)].parentJoint

    def states(self, states: States) -> States:
        """The same states as Pinocchio orders them."""
        return States(*(
            np.ascontiguousarray(x[..., order])
            for x, order in (
                (states.q, self.order_q), (states.v, self.order_v), (states.x, self.order_v)
            )
        ))  # fmt: skip

    def ordered(self, algorithm: str, results: Array) -> Array:
        """Our flat results as Pinocchio orders them."""
        nv = self.model.nv
        if results.shape[-1] == nv and algorithm in ("aba", "rnea"):
            return results[..., self.order_v]
        if algorithm == "jacobian":  # by columns, linear before angular
            rows = results.reshape(-1, 6, nv)[:, [3, 4, 5, 0, 1, 2]][..., self.order_v]
            return rows.transpose(0, 2, 1).reshape(len(results), -1)
        matrices = results.reshape(len(results), -1, nv, nv)
        matrices = matrices[..., self.order_v, :][..., self.order_v]
        return matrices.reshape(len(results), -1)

    def single(self, algorithm: str, states: States) -> Callable[[], object]:
        """One state, from Python."""
        q, v, x = states.q[0], states.v[0], states.x[0]
        return lambda: self._call(algorithm, q, v, x)

    def _call(self, algorithm: str, q: Array, v: Array, x: Array) -> object:
        if algorithm == "crba":
            return pin.crba(self.model, self.data, q)
        if algorithm == "jacobian":
            return pin.computeJointJacobian(self.model, self.data, q, self.joint)
        function = {
            "aba": pin.aba,
            "rnea": pin.rnea,
            "aba_derivatives": pin.computeABADerivatives,
            "rnea_derivatives": pin.computeRNEADerivatives,
        }[algorithm]
        return function(self.model, self.data, q, v, x)

    def results(self, algorithm: str, states: States) -> Array:
        """A batch, from Python; flat."""
        rows = []
        for q, v, x in zip(states.q, states.v, states.x, strict=True):
            parts = self._call(algorithm, q, v, x)
            parts = [parts] if isinstance(parts, np.ndarray) else parts
            order = "F" if algorithm == "jacobian" else "C"
            rows.append(np.concatenate([np.ravel(y, order) for y in parts]))
        return np.array(rows)


class Library:
    """``pinocchio_bench.cpp``, compiled."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._library = ctypes.CDLL(str(path))
        self._library.make.restype = ctypes.c_void_p

    def robot(self, rival: Rival) -> int:
        """The model on the C++ side."""
        model, kinds = rival.model, ["FreeFlyer", "RX", "RY", "RZ", "RevoluteUnaligned"]
        n = model.njoints - 1
        parts = [
            np.array(model.gravity.linear),
            np.array([model.parents[i + 1] for i in range(n)], np.int32),
            np.array(
                [kinds.index(j.shortname().removeprefix("JointModel")) for j in model.joints[1:]],
                np.int32,
            ),
            np.array([getattr(j.extract(), "axis", (0.0, 0.0, 1.0)) for j in model.joints[1:]]),
            np.array([m.rotation for m in model.jointPlacements[1:]]),
            np.array([m.translation for m in model.jointPlacements[1:]]),
            np.array([y.mass for y in model.inertias[1:]]),
            np.array([y.lever for y in model.inertias[1:]]),
            np.array([y.inertia for y in model.inertias[1:]]),
        ]
        arrays = [np.ascontiguousarray(x) for x in parts]
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in arrays)
        handle = self._library.make(n, rival.joint, *pointers)
        assert isinstance(handle, int)
        return handle

    def batch(self, robot: int, what: int, states: States, out: Array) -> Callable[[], object]:
        """One pass over a batch; ``out`` (n, numbers of a result) holds zeros before."""
        run, count, at = self._library.run, ctypes.c_int64(len(states.q)), ctypes.c_void_p(robot)
        arrays = (states.q, states.v, states.x, out)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]

        def action(_alive: object = arrays) -> None:
            run(at, what, count, *pointers)

        return action


# ---- compilers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiler:
    """A command and what it calls itself."""

    words: tuple[str, ...]
    version: str

    @property
    def release(self) -> tuple[int, ...]:
        """Its version's numbers."""
        match = re.search(r"\d+(\.\d+)+", self.version)
        return tuple(int(x) for x in match[0].split(".")) if match else ()

    @classmethod
    def find(cls, command: str) -> Compiler | None:
        """None where the command does not run."""
        words = tuple(shlex.split(command))
        try:
            output = subprocess.run(
                [*words, "--version"], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return cls(words, output.stdout.splitlines()[0] if output.stdout else command)


def compilers(commands: Sequence[str]) -> list[Compiler]:
    """Those wished for; otherwise $CXX, or one clang and the system's compiler."""
    wish = list(commands) or [x for x in [os.environ.get("CXX")] if x]
    if wish:
        return [chosen for x in wish if (chosen := Compiler.find(x))]
    places = os.environ.get("PATH", "").split(os.pathsep)
    clangs = {x.name for place in places for x in Path(place).glob("clang++*")}
    clangs = {x for x in clangs if re.fullmatch(r"clang\+\+(-\d+)?", x)}
    installed = [compiler for x in clangs if (compiler := Compiler.find(x))]
    names = [max(installed, key=lambda x: x.release).words[0]] if installed else []
    if not names and importlib.util.find_spec("ziglang"):
        names = [f"{shlex.quote(sys.executable)} -m ziglang c++"]
    names += [x for x in ("g++", "c++") if shutil.which(x)][:1]
    chosen = [compiler for x in names if (compiler := Compiler.find(x))]
    return list({compiler.version: compiler for compiler in chosen}.values())


def headers() -> list[Path] | None:
    """Include folders of Pinocchio, Boost and Eigen, from the packages that are installed."""
    folder_of: dict[str, Path] = {}
    needed = ("pinocchio/algorithm/aba.hpp", "boost/variant.hpp", "Eigen/Core")
    for package in importlib.metadata.distributions():
        for file in package.files or ():
            name = file.as_posix()
            for want in needed:
                if (
                    want not in folder_of
                    and name.endswith(f"/{want}")
                    and "unsupported" not in name
                ):
                    folder_of[want] = Path(str(file.locate())).resolve().parents[want.count("/")]
        if len(folder_of) == len(needed):
            break
    if "Eigen/Core" not in folder_of and (tool := shutil.which("pkg-config")):
        answer = subprocess.run(
            [tool, "--cflags-only-I", "eigen3"], capture_output=True, text=True, check=False
        )
        if folders := shlex.split(answer.stdout):
            folder_of["Eigen/Core"] = Path(folders[0].removeprefix("-I"))
    return list(dict.fromkeys(folder_of.values())) if len(folder_of) == len(needed) else None


def build(commands: Sequence[str]) -> tuple[list[Library], list[str]]:
    """Pinocchio compiled by each compiler, and notes: how it was compiled, or why not."""
    if pin is None:
        return [], ["pin is not installed"]
    libraries, notes = built(SOURCE, commands)
    return [Library(*x) for x in libraries], notes


def built(source: Path, commands: Sequence[str] = ()) -> tuple[list[tuple[Path, str]], list[str]]:
    """Libraries of a C++ file and their compilers' names, and what to say about each."""
    chosen, folders = compilers(commands), headers()
    if not chosen:
        return [], ["no C++ compiler was found"]
    if folders is None:
        return [], ["the headers of Pinocchio, Boost and Eigen are not all installed"]
    place = platformdirs.user_cache_path("robomodel-benchmarks", appauthor=False)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    packages = pin.__version__ if pin is not None else ""

    def one(compiler: Compiler) -> tuple[tuple[Path, str] | None, str]:
        text = source.read_text("utf-8")
        key = (compiler.version, *FLAGS, processor(), packages, text)
        target = place / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.so"
        status = "kept from an earlier run"
        if not target.exists():
            start, fresh = time.perf_counter(), target.with_suffix(f".{os.getpid()}")
            line = [*compiler.words, *FLAGS, *(f"-I{x}" for x in folders), str(source)]
            run = subprocess.run(
                [*line, "-o", str(fresh)], capture_output=True, text=True, check=False
            )
            if run.returncode:
                error = next((x for x in run.stderr.splitlines() if "error" in x), "no message")
                return None, f"{compiler.version}: failed: {error[:200]}"
            fresh.replace(target)
            status = f"compiled in {time.perf_counter() - start:.0f} s"
        name = re.sub(r"\s*\([^()]*\)|-\S*", "", compiler.version).replace(" version", "")
        return (target, name), f"{compiler.version}, -O3 -march=native, {status}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        key = list(pool.map(one, chosen))
    return [library for library, _ in key if library], [status for _, status in key]
