"""Compiled dynamics against Pinocchio, and against the machine: ``python benchmarks/kernels.py``.

One core, all in one run: every round times every competitor once, so that a drift of the clock
meets all alike; medians over the rounds. Results are compared with Pinocchio's and with the NumPy
path before anything is timed. Pinocchio runs in C++ (``pinocchio_bench.cpp``, compiled here from
the headers of the ``pin`` wheel) where a compiler is found, and from Python. It gets the tree
*without rotors*, which is all that it can express; robomodel carries every rotor, exactly.
clang++ goes before the system's compiler: it has been seen to make Pinocchio 1.6 times faster.

``--counts`` prints how many operations the algorithms need, next to the projection method's.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.compiled import trace
from robomodel.dynamics.crba import crba
from robomodel.dynamics.rnea import bias_force
from robomodel.kernels import Program, Trace, lanes
from robomodel.scalars import Factorization, Scalar, add, dot, sub

try:
    import pinocchio as pin
except ImportError:
    pin = None

Array = NDArray[np.float64]
SLICE = 3e-3  # seconds that one competitor runs in one round
LINKAGES = ("four_bar", "six_bar", "planar_leg_linkage")
GEARED = "mini_cheetah"
HUMANOID = "humanoid (synthetic)"
TRIGONOMETRY = 21  # multiplications and additions of a sine and cosine: reduction, two polynomials


# ---- robots --------------------------------------------------------------------------------------


def without_rotors(text: str) -> str:
    """The URDF text of the open tree: couplings, their rotors and the rotors' joints dropped."""
    root = ET.fromstring(text)
    rotors = set()
    for coupling in root.findall("coupling"):
        successor = coupling.find("successor")
        assert successor is not None
        rotors.add(successor.get("link"))
        root.remove(coupling)
    for link in root.findall("link"):
        if link.get("name") in rotors:
            root.remove(link)
    for joint in root.findall("joint"):
        child = joint.find("child")
        assert child is not None
        if child.get("link") in rotors:
            root.remove(joint)
    return ET.tostring(root, encoding="unicode")


def for_pinocchio(text: str) -> str:
    """The same for Pinocchio: no world link or floating joint, revolute for continuous joints.

    (Pinocchio has a free flyer for the base, and would spend a cosine and a sine in q on each
    continuous joint.)
    """
    root = ET.fromstring(without_rotors(text))
    for joint in root.findall("joint"):
        if joint.get("type") == "floating":
            root.remove(joint)
        elif joint.get("type") == "continuous":
            joint.set("type", "revolute")
            ET.SubElement(joint, "limit", lower="-9", upper="9", effort="1", velocity="1")
    for link in root.findall("link"):
        if link.get("name") == "world":
            root.remove(link)
    return ET.tostring(root, encoding="unicode")


def humanoid() -> str:
    """A humanoid: floating base, two legs of five and two arms of four geared joints, 24 freedoms.

    Geometry like a small humanoid's, masses and inertias random (full matrices, offset centres).
    """
    rng = np.random.default_rng(1)

    def body(name: str, mass: float, size: float) -> str:
        x, y, z = rng.uniform(-size / 2, size / 2, 3)
        a, b, c = mass * size**2 * rng.uniform(0.08, 0.12, 3)
        d, e, f = mass * size**2 * rng.uniform(-0.01, 0.01, 3)
        return (
            f'<link name="{name}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/>'
            f'<inertia ixx="{a}" iyy="{b}" izz="{c}" ixy="{d}" ixz="{e}" iyz="{f}"/></inertial>'
            "</link>"
        )

    def joint(parent: str, name: str, axis: str, origin: str) -> str:
        xyz = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}[axis]
        inertia = 'ixy="0" ixz="0" iyz="0" ' + " ".join(
            f'i{k}{k}="{6e-5 if k == axis else 3e-5}"' for k in "xyz"
        )
        driven = (
            f'<link name="{name}_rotor"><inertial><mass value="0.06"/><inertia {inertia}/>'
            f'</inertial></link><joint name="{name}_rotor" type="continuous" independent="false">'
            f'<parent link="{parent}"/><child link="{name}_rotor"/><origin xyz="{origin}"/>'
            f'<axis xyz="{xyz}"/></joint><coupling name="{name}_gear"><predecessor link="{name}"/>'
            f'<successor link="{name}_rotor"/><ratio value="6"/></coupling>'
        )
        return (
            f'<joint name="{name}" type="continuous" independent="true"><parent link="{parent}"/>'
            f'<child link="{name}"/><origin xyz="{origin}"/><axis xyz="{xyz}"/></joint>{driven}'
        )

    parts = [
        '<link name="world"/><joint name="base" type="floating"><parent link="world"/>'
        '<child link="torso"/></joint>',
        body("torso", 8.5, 0.3),
    ]
    leg = (("z", "0 {} -0.2"), ("x", "0 0 -0.06"), ("y", "0 0.02 -0.07"), ("y", "0 0 -0.27"),
           ("y", "0 0 -0.27"))  # fmt: skip
    arm = (("y", "0.01 {} 0.24"), ("x", "0 0 -0.05"), ("z", "0 0 -0.1"), ("y", "0 0 -0.15"))
    for side, sign in (("right", -1), ("left", 1)):
        for limb, joints, y in (("leg", leg, 0.05), ("arm", arm, 0.12)):
            parent = "torso"
            for i, (axis, origin) in enumerate(joints):
                name = f"{side}_{limb}_{i}"
                parts.append(body(name, 1.5 / (i + 1), 0.15))
                parts.append(joint(parent, name, axis, origin.format(sign * y)))
                parent = name
    return f'<robot name="humanoid">{"".join(parts)}</robot>'


def text_of(name: str) -> str:
    """The description of a robot of this benchmark."""
    return humanoid() if name == HUMANOID else rm.robots.path(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class States:
    """Random states: positions, velocities, and a third vector (forces or accelerations)."""

    q: Array
    v: Array
    x: Array

    @classmethod
    def of(cls, model: rm.Model, count: int) -> States:
        """``count`` of them; a few dozen configurations take turns."""
        rng = np.random.default_rng(2)
        some = np.array([model.random_configuration(rng) for _ in range(min(count, 64))])
        v, x = rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))
        return cls(np.resize(some, (count, model.nq)), v, x)


# ---- Pinocchio -----------------------------------------------------------------------------------


class Rival:
    """Pinocchio's model of a robot without rotors, and how its vectors are ordered."""

    def __init__(self, text: str, model: rm.Model) -> None:
        self.model = pin.buildModelFromXML(for_pinocchio(text), pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        names = [name.partition(".")[0] for name in model.dof_names]
        joints = [names.index(name) for name in list(self.model.names)[2:]]
        # the free flyer: linear before angular; the joints in Pinocchio's order
        self.order_v = [3, 4, 5, 0, 1, 2, *joints]
        self.order_q = [*range(7), *(i + 1 for i in joints)]

    def states(self, states: States) -> States:
        """The same states as Pinocchio orders them."""
        return States(*(
            np.ascontiguousarray(x[..., order])
            for x, order in (
                (states.q, self.order_q), (states.v, self.order_v), (states.x, self.order_v)
            )
        ))  # fmt: skip

    def single(self, algorithm: str, states: States) -> Callable[[], object]:
        """One state, from Python."""
        function = {"aba": pin.aba, "rnea": pin.rnea}[algorithm]
        q, v, x = states.q[0], states.v[0], states.x[0]
        return lambda: function(self.model, self.data, q, v, x)

    def results(self, algorithm: str, states: States) -> Array:
        """A batch, from Python."""
        function = {"aba": pin.aba, "rnea": pin.rnea}[algorithm]
        rows = zip(states.q, states.v, states.x, strict=True)
        return np.array([function(self.model, self.data, q, v, x) for q, v, x in rows])


class Library:
    """``pinocchio_bench.cpp``, compiled."""

    VARIANTS = (("aba", "aba, local", 0), ("aba", "aba, world", 1), ("rnea", "rnea", 2))

    def __init__(self, path: Path, label: str) -> None:
        self.label = label
        self._library = ctypes.CDLL(str(path))
        self._library.make.restype = ctypes.c_void_p

    def robot(self, rival: Rival) -> int:
        """The model on the C++ side."""
        model, kinds = rival.model, ["FreeFlyer", "RX", "RY", "RZ"]
        n = model.njoints - 1
        parts = [
            np.array([model.parents[i + 1] for i in range(n)], np.int32),
            np.array(
                [kinds.index(j.shortname().removeprefix("JointModel")) for j in model.joints[1:]],
                np.int32,
            ),
            np.array([m.rotation for m in model.jointPlacements[1:]]),
            np.array([m.translation for m in model.jointPlacements[1:]]),
            np.array([y.mass for y in model.inertias[1:]]),
            np.array([y.lever for y in model.inertias[1:]]),
            np.array([y.inertia for y in model.inertias[1:]]),
        ]
        arrays = [np.ascontiguousarray(x) for x in parts]
        made = self._library.make(n, *(ctypes.c_void_p(x.ctypes.data) for x in arrays))
        assert isinstance(made, int)
        return made

    def batch(self, robot: int, what: int, states: States, out: Array) -> Callable[[], object]:
        """One pass over a batch."""
        run, count, at = self._library.run, ctypes.c_int64(len(states.q)), ctypes.c_void_p(robot)
        arrays = (states.q, states.v, states.x, out)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]

        def action(_alive: object = arrays) -> None:
            run(at, what, count, *pointers)

        return action


def headers() -> list[Path] | None:
    """Include folders of Pinocchio, Boost and Eigen, from the packages that are installed."""
    found: dict[str, Path] = {}
    wanted = ("pinocchio/algorithm/aba.hpp", "boost/variant.hpp", "Eigen/Core")
    for package in importlib.metadata.distributions():
        for file in package.files or ():
            name = file.as_posix()
            for want in wanted:
                if want not in found and name.endswith(f"/{want}") and "unsupported" not in name:
                    found[want] = Path(str(file.locate())).resolve().parents[want.count("/")]
        if len(found) == len(wanted):
            break
    if "Eigen/Core" not in found and (tool := shutil.which("pkg-config")):
        answer = subprocess.run(
            [tool, "--cflags-only-I", "eigen3"], capture_output=True, text=True, check=False
        )
        if folders := shlex.split(answer.stdout):
            found["Eigen/Core"] = Path(folders[0].removeprefix("-I"))
    return list(dict.fromkeys(found.values())) if len(found) == len(wanted) else None


def build(command: str | None, folder: Path) -> Library | str:
    """The C++ side, or why there is none."""
    if pin is None:
        return "pin is not installed"
    names = [command] if command else [os.environ.get("CXX"), "clang++", "c++", "g++"]
    compiler = next((x for x in names if x and shutil.which(shlex.split(x)[0])), None)
    if compiler is None:
        return "no C++ compiler was found"
    folders = headers()
    if folders is None:
        return "the headers of Pinocchio, Boost and Eigen are not all installed"
    target, words = folder / "pinocchio_bench.so", shlex.split(compiler)
    flags = ["-O3", "-march=native", "-DNDEBUG", "-std=c++17", "-fPIC", "-shared", "-w",
             "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
             "-DBOOST_FUSION_INVOKE_MAX_ARITY=12"]  # fmt: skip
    source = Path(__file__).with_name("pinocchio_bench.cpp")
    includes = [f"-I{x}" for x in folders]
    line = [*words, *flags, *includes, str(source), "-o", str(target)]
    start = time.perf_counter()
    made = subprocess.run(line, capture_output=True, text=True, check=False)
    if made.returncode:
        error = next((x for x in made.stderr.splitlines() if "error" in x), "no message")
        return f"{words[0]} failed: {error[:200]}"
    version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    first = version.stdout.splitlines()[0] if version.stdout else words[0]
    seconds = time.perf_counter() - start
    return Library(target, f"{first}, -O3 -march=native, compiled in {seconds:.0f} s")


# ---- the machine ---------------------------------------------------------------------------------


class Machine:
    """The core's limits, measured: fused multiply-adds a second, and cycles a second."""

    FMAS = 12  # independent accumulators
    CHAIN = 16  # dependent one-cycle integer operations in one iteration
    ITERATIONS = 20_000

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        if features.get("avx512f"):
            features["prefer-256-bit"] = False
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=1, jit=True
        )
        self.width = lanes()
        module = llvm.parse_assembly(self._fma_loop() + self._clock_loop())
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
        fma, clock = (kind(self._engine.get_function_address(x)) for x in ("fmas", "clock"))
        n = self.ITERATIONS
        self.run_fma: Callable[[], object] = lambda: fma(n, 0)
        self.run_clock: Callable[[], object] = lambda: clock(n, 12345)

    def _fma_loop(self) -> str:
        w, ks = self.width, range(self.FMAS)
        v = f"<{w} x double>"
        half = "<" + ", ".join(["double 5.000000e-01"] * w) + ">"
        start = [f"<{', '.join([f'double {k + 1}.0'] * w)}>" for k in ks]
        phis = "\n".join(
            f"%a{k} = phi {v} [{start[k]}, %entry], [%b{k}, %loop]" for k in ks
        )  # a ← a/2 + 1/2: stays finite and normal
        steps = "\n".join(
            f"%b{k} = call {v} @llvm.fma.v{w}f64({v} %a{k}, {v} {half}, {v} {half})" for k in ks
        )
        sums = "\n".join(f"store volatile {v} %b{k}, ptr %sink" for k in ks)
        return f"""
declare {v} @llvm.fma.v{w}f64({v}, {v}, {v})
define void @fmas(i64 %n, i64 %unused) {{
entry:
%sink = alloca {v}
br label %loop
loop:
%i = phi i64 [0, %entry], [%j, %loop]
{phis}
{steps}
%j = add i64 %i, 1
%more = icmp slt i64 %j, %n
br i1 %more, label %loop, label %exit
exit:
{sums}
ret void
}}
"""

    def _clock_loop(self) -> str:
        lines = []
        for k in range(self.CHAIN):
            operation = "xor" if k % 2 else "add"
            lines.append(f"%x{k + 1} = {operation} i64 %x{k}, %key")
        body = "\n".join(lines)
        return f"""
define void @clock(i64 %n, i64 %key) {{
entry:
%sink = alloca i64
br label %loop
loop:
%i = phi i64 [0, %entry], [%j, %loop]
%x0 = phi i64 [%key, %entry], [%x{self.CHAIN}, %loop]
{body}
%j = add i64 %i, 1
%more = icmp slt i64 %j, %n
br i1 %more, label %loop, label %exit
exit:
store volatile i64 %x{self.CHAIN}, ptr %sink
ret void
}}
"""

    @property
    def flops(self) -> int:
        """Of one run of the loop of fused multiply-adds."""
        return 2 * self.width * self.FMAS * self.ITERATIONS

    @property
    def cycles(self) -> int:
        """Of one run of the loop of dependent integer operations."""
        return self.CHAIN * self.ITERATIONS


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Of everything that matters here."""
    found = {"Python": platform.python_version(), "robomodel": rm.__version__}
    for name in ("numpy", "llvmlite", "pin"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"LLVM": ".".join(str(x) for x in llvm.llvm_version_info)}


# ---- timing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a unit (a state, a call, a loop): median and minimum over the rounds."""

    median: float
    minimum: float


@dataclass
class Race:
    """Competitors that take turns."""

    rounds: int
    runners: dict[str, tuple[Callable[[], object], int]] = field(default_factory=dict)

    def add(self, name: str, action: Callable[[], object], units: int = 1) -> None:
        """``action`` does ``units`` of what is counted."""
        self.runners[name] = (action, units)

    def run(self) -> dict[str, Timing]:
        """Time them, one after the other, round by round."""
        repeats = {name: self._repeats(action) for name, (action, _) in self.runners.items()}
        times: dict[str, list[float]] = {name: [] for name in self.runners}
        for _ in range(self.rounds):
            for name, (action, units) in self.runners.items():
                turns = range(repeats[name])
                start = time.perf_counter_ns()
                for _turn in turns:
                    action()
                taken = time.perf_counter_ns() - start
                times[name].append(taken / (repeats[name] * units))
        return {name: Timing(statistics.median(x), min(x)) for name, x in times.items()}

    @staticmethod
    def _repeats(action: Callable[[], object]) -> int:
        action()
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
        return max(1, round(SLICE / min(taken)))


def agree(what: str, found: Array, expected: Array, tolerance: float) -> float:
    """The largest difference relative to the largest number of each state; exits if too large."""
    size = np.maximum(1.0, np.abs(expected).max(axis=-1, keepdims=True))
    error = float((np.abs(found - expected) / size).max())
    if not error <= tolerance:
        sys.exit(f"{what}: results differ by {error:.1e}, more than {tolerance:.0e}")
    return error


# ---- the benchmark -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A kernel on its batch."""

    robot: str
    algorithm: str
    kernel: rm.Kernel
    states: States
    first_use: float
    again: float

    @property
    def key(self) -> str:
        """Its name in the race."""
        return f"{self.robot} {self.algorithm}"

    @property
    def operations(self) -> int:
        """Vector operations of a tile: the program's steps, sines and cosines spelt out."""
        counts = self.kernel.program.counts
        steps = sum(n for name, n in counts.items() if name not in ("neg", "sin", "cos"))
        return steps + TRIGONOMETRY * max(counts["sin"], counts["cos"])

    @property
    def ceiling(self) -> float:
        """The share of the FMA peak if every operation took a slot, and nothing else did."""
        return self.kernel.program.flops / (2 * self.operations)


def entry(robot: str, text: str, algorithm: str, count: int) -> Entry:
    """Compile with an empty cache and with a filled one, and compare with the NumPy path."""

    def timed() -> tuple[rm.Kernel, rm.Model, float]:
        model = rm.load(text)
        one = States.of(model, 1)
        start = time.perf_counter()
        kernel = rm.compile(model, algorithm)
        kernel(one.q, one.v, one.x)
        return kernel, model, time.perf_counter() - start

    kernel, model, first = timed()
    _, _, again = timed()
    states = States.of(model, count)
    function = {"aba": rm.aba, "rnea": rm.rnea}[algorithm]
    expected = function(model, states.q, states.v, states.x, backend="numpy")
    result = kernel(states.q, states.v, states.x)
    agree(f"{robot} {algorithm}, compiled and NumPy", result, expected, 1e-10)
    return Entry(robot, algorithm, kernel, states, first, again)


def join_pinocchio(
    race: Race, robot: str, text: str, library: Library | str, count: int
) -> dict[str, object]:
    """Pinocchio's competitors for a robot, once they agree with the NumPy path."""
    open_tree = without_rotors(text)
    model = rm.load(open_tree)
    rival, states = Rival(text, model), States.of(model, count)
    theirs = rival.states(states)
    errors: dict[str, object] = {}
    few = States(*(x[:64] for x in (theirs.q, theirs.v, theirs.x)))
    for algorithm, function in (("aba", rm.aba), ("rnea", rm.rnea)):
        expected = function(model, states.q, states.v, states.x, backend="numpy")
        expected = expected[:, rival.order_v]
        found = rival.results(algorithm, few)
        what = f"{robot} {algorithm}, Pinocchio and NumPy without rotors"
        errors[algorithm] = agree(what, found, expected[:64], 1e-9)
        race.add(f"{robot} {algorithm} pin one", rival.single(algorithm, theirs))
        if isinstance(library, str):
            batch = lambda a=algorithm: rival.results(a, few)  # noqa: E731
            race.add(f"{robot} {algorithm} pin python", batch, 64)
            continue
        handle = library.robot(rival)
        for of, variant, number in Library.VARIANTS:
            if of == algorithm:
                out = np.empty_like(theirs.v)
                action = library.batch(handle, number, theirs, out)
                action()
                agree(f"{what} (C++ {variant})", out, expected, 1e-9)
                race.add(f"{robot} {algorithm} pin C++ {variant}", action, count)
    return errors


def join_kernel(race: Race, item: Entry) -> None:
    """A kernel on its batch, and on one state a call through both interfaces."""
    q, v, x = item.states.q, item.states.v, item.states.x
    kernel, out = item.kernel, np.empty_like(v)
    race.add(item.key, lambda: kernel(q, v, x, out=out), len(q))
    if item.robot in (GEARED, HUMANOID):
        one, model = (q[0].copy(), v[0].copy(), x[0].copy()), kernel.model
        function = {"aba": rm.aba, "rnea": rm.rnea}[item.algorithm]
        race.add(f"{item.key} one", lambda: kernel(*one))
        race.add(f"{item.key} one checked", lambda: function(model, *one))


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """Everything but the counts; prints as it goes."""
    machine, race = Machine(), Race(7 if arguments.quick else 41)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROBOMODEL_CACHE"] = str(Path(folder) / "cache")
        library = build(arguments.cxx, Path(folder)) if not arguments.no_cpp else "not wanted"
        where = {"processor": processor(), "platform": platform.platform(), **versions()}
        pinocchio = library if isinstance(library, str) else library.label
        print(", ".join(f"{name} {value}" for name, value in where.items()))
        print(f"{machine.width} doubles a vector, one core, batches of {arguments.states} states")
        if isinstance(library, str):
            print(
                f"Pinocchio in C++: no ({pinocchio}); batches are compared with calls from Python"
            )
        else:
            print(f"Pinocchio in C++: {pinocchio}")
        entries = []
        for robot in (GEARED, HUMANOID, *LINKAGES):
            text = text_of(robot)
            entries += [entry(robot, text, x, arguments.states) for x in ("aba", "rnea")]
            if robot in (GEARED, HUMANOID):
                bare = without_rotors(text)
                entries.append(entry(f"{robot}, no rotors", bare, "aba", arguments.states))
                if pin is not None:
                    join_pinocchio(race, robot, text, library, arguments.states)
        for item in entries:
            join_kernel(race, item)
        race.add("fma", machine.run_fma)
        race.add("clock", machine.run_clock)
        times = race.run()
    peak = machine.flops / times["fma"].minimum
    clock = machine.cycles / times["clock"].minimum
    print(f"{clock:.2f} GHz, FMA peak {peak:.1f} GFLOP/s", end=" ")
    print(f"({peak / clock / 2 / machine.width:.2f} vector FMA a cycle)\n")
    rows = [report(item, times, peak, clock, machine.width) for item in entries]
    print_tables(entries, rows, times)
    return {
        "machine": where | {"width": machine.width, "GHz": clock, "peak GFLOP/s": peak},
        "pinocchio": pinocchio,
        "states": arguments.states,
        "rounds": race.rounds,
        "kernels": rows,
        "times ns": {name: asdict(timing) for name, timing in times.items()},
    }


def report(
    item: Entry, times: Mapping[str, Timing], peak: float, clock: float, width: int
) -> dict[str, object]:
    """One kernel's numbers."""
    own, flops = times[item.key], item.kernel.program.flops
    robot = item.robot.removesuffix(", no rotors")
    start = f"{robot} {item.algorithm} pin "
    rivals = {n: t for n, t in times.items() if n.startswith(start) and not n.endswith("one")}
    best = min(rivals, key=lambda name: rivals[name].median, default=None)
    row: dict[str, object] = {
        "robot": item.robot,
        "algorithm": item.algorithm,
        "ns": own.median,
        "ns minimum": own.minimum,
        "flops": flops,
        "ps a flop": 1e3 * own.median / flops,
        "share of peak": flops / own.median / peak,
        "ceiling": item.ceiling,
        "operations": item.operations,
        "cycles an operation": own.median * clock * width / item.operations,
        "first use s": item.first_use,
        "cached s": item.again,
    }
    if best is not None:
        row["rival"] = best.removeprefix(start)
        row["rival ns"] = rivals[best].median
        row["ratio"] = rivals[best].median / own.median
    return row


def print_tables(
    entries: Sequence[Entry], rows: Sequence[Mapping[str, object]], times: Mapping[str, Timing]
) -> None:
    """The tables for people."""
    print(f"{'batch, a state':36s}     ns   (min)  Pinocchio  ratio  best of")
    for row in rows:
        name = f"{row['robot']} {row['algorithm']}"
        line = f"{name:36s} {row['ns']:6.1f} {row['ns minimum']:7.1f}"
        if "ratio" in row:
            line += f"  {row['rival ns']:9.0f} {row['ratio']:6.1f}  {row['rival']}"
        print(line)
    print(
        f"\n{'limits':36s}  flops  ps/flop  of peak  ceiling  cycles/op  first use  cached"
        "\n(ceiling: share of the peak, were nothing done but the program's arithmetic and"
        "\ntrigonometry; cycles an operation of that, for all lanes at once)"
    )
    for row in rows:
        name = f"{row['robot']} {row['algorithm']}"
        print(
            f"{name:36s} {row['flops']:6d} {row['ps a flop']:8.1f} {row['share of peak']:8.0%}"
            f" {row['ceiling']:8.0%} {row['cycles an operation']:10.2f} {row['first use s']:8.2f} s"
            f" {row['cached s']:6.3f} s"
        )
    print(f"\n{'one state a call, from Python':36s} kernel  rm.…     pin.…  kernel/pin  rm/pin")
    for item in entries:
        if f"{item.key} one" not in times:
            continue
        own, checked = times[f"{item.key} one"].median, times[f"{item.key} one checked"].median
        line = f"{item.key:36s} {own:6.0f} {checked:6.0f}"
        if f"{item.key} pin one" in times:
            theirs = times[f"{item.key} pin one"].median
            line += f" {theirs:7.0f} ns {own / theirs:10.2f} {checked / theirs:7.2f}"
        print(line)


# ---- operations ----------------------------------------------------------------------------------


def programs(model: rm.Model) -> Iterator[tuple[str, Program, Program]]:
    """Algorithm, program as traced, program after fusion."""
    for algorithm in ("rnea", "aba", "crba", "bias_force"):
        task, traced = Task(algorithm), Trace()
        inputs = {name: traced.inputs(size) for name, size in task.sizes(model).items()}
        program = traced.program(task.run(model, inputs))
        yield algorithm, program, trace(model, task)


def projection(text: str, model: rm.Model) -> Program:
    """Forward dynamics by projection: (GᵀMG) a = tau - Gᵀ(M g + h), M and h of the spanning tree.

    On the same scalars, so that zeros vanish and equal terms are shared here too.
    """
    root = ET.fromstring(text)
    for tag in ("coupling", "loop"):
        for element in root.findall(tag):
            root.remove(element)
    for joint in root.iter("joint"):
        joint.attrib.pop("independent", None)
    tree = rm.load(ET.tostring(root, encoding="unicode"))
    traced = Trace()
    q, v, tau = (traced.inputs(n) for n in (model.nq, model.nv, model.nv))
    positions = model.spanning_positions(q)
    G: list[list[Scalar]] = []
    g: list[Scalar] = []
    for cluster in model.clusters:
        own = positions[cluster.spanning_q]
        rows = cluster.constraint.jacobian(own)
        rates = [dot(row, v[cluster.v]) for row in rows]
        g += cluster.constraint.bias(own, rates) if cluster.implicit else [0.0] * len(rows)
        before, after = [0.0] * cluster.v.start, [0.0] * (model.nv - cluster.v.stop)
        G += [[*before, *row, *after] for row in rows]
    order_q, order_v = (
        [spanning_names(model, n).index(x) for x in spanning_names(tree, n)] for n in (7, 6)
    )
    G, g = [G[i] for i in order_v], [g[i] for i in order_v]
    q_tree, v_tree = [positions[i] for i in order_q], [dot(row, v) for row in G]
    M, h = crba(tree, q_tree), bias_force(tree, q_tree, v_tree)
    columns = [list(column) for column in zip(*G, strict=True)]
    half = [[dot(row, column) for column in columns] for row in M]  # M G
    small: list[list[Scalar]] = [[0.0] * model.nv for _ in columns]
    for j in range(model.nv):
        for i in range(j + 1):
            small[i][j] = small[j][i] = dot(columns[i], [row[j] for row in half])
    force = [add(b, dot(row, g)) for row, b in zip(M, h, strict=True)]
    right = [sub(t, dot(column, force)) for t, column in zip(tau, columns, strict=True)]
    return traced.program(Factorization(small).solve(right))


def spanning_names(model: rm.Model, base: int) -> list[str]:
    """A name for each number of the spanning tree, ``base`` of them for a floating base."""
    names: list[str] = []
    for name in model.joint_names:
        width = base if model.floating_base is not None and not names else 1
        names += [f"{name}.{i}" for i in range(width)]
    return names


def print_counts() -> list[dict[str, object]]:
    """The table of operations."""
    print(f"{'operations':34s}   mul    add   div  trig |   mul    add    fma   div  | flops")
    rows: list[dict[str, object]] = []
    for robot in (GEARED, HUMANOID, *LINKAGES):
        text = text_of(robot)
        model = rm.load(text)
        lines = list(programs(model))
        project = projection(text, model)
        for algorithm, before, after in [*lines, ("projection", project, project.fused())]:
            a, b = counts(before), counts(after)
            left = f"{a['mul']:5d} {a['add']:6d} {a['div']:5d} {a['trig']:5d}"
            print(
                f"{robot + ' ' + algorithm:34s} {left} |"
                f" {b['mul']:5d} {b['add']:6d} {b['fma']:6d} {b['div']:5d}  | {after.flops:5d}"
            )
            rows.append({"robot": robot, "algorithm": algorithm, "before": a, "after": b,
                         "flops": after.flops})  # fmt: skip
    return rows


def counts(program: Program) -> dict[str, int]:
    """Additions and subtractions together, fused ones of all signs together."""
    n = program.counts
    return {
        "mul": n["mul"],
        "add": n["add"] + n["sub"],
        "fma": n["fma"] + n["fms"] + n["fnma"],
        "div": n["div"] + n["sqrt"],
        "trig": n["sin"] + n["cos"],
    }


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description="Compiled dynamics against Pinocchio.")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--counts", action="store_true", help="the table of operations only")
    parser.add_argument("--states", type=int, default=2048, help="states in a batch")
    parser.add_argument("--no-cpp", action="store_true", help="Pinocchio from Python only")
    parser.add_argument("--cxx", help="C++ compiler command, such as clang++")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE")
    arguments = parser.parse_args()
    numbers = {"counts": print_counts()} if arguments.counts else measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
