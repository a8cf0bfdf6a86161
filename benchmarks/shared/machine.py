"""The machine: its name, the versions, and what one core can do, measured by loops of machine code.

Every loop runs a handful of independent chains of one operation each, or one chain, whose steps
wait for each other: the first gives the time that an operation takes up, the second its latency.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

import robomodel as rm
from benchmarks.shared.race import Race, Timing
from robomodel.kernels.llvm import machine as compiler

ITERATIONS = 4_000
CHAINS = 12  # more than any core needs to keep its pipes full
KEPT_APART = 16  # integer operations of the clock's chain in one iteration
STEPS = {  # one step of a chain: x stays finite and normal
    "fma": "call {v} @llvm.fma.v{w}f64({v} {x}, {v} {half}, {v} {half})",
    "add": "fadd {v} {x}, {half}",
    "div": "fdiv {v} {half}, {x}",
}


class Machine:
    """Loops that show the core's limits; :meth:`join` has them timed, :meth:`rates` reads them."""

    def __init__(self) -> None:
        features, self.width = compiler.features()  # as kernels are compiled
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True
        )
        many, mixed = ["fma"] * CHAINS, ["fma", "add"] * (CHAINS // 2)
        loops = {
            "fma": (many, 1),
            "fma and add": (mixed, 1),
            "div": (["div"] * CHAINS, 1),
            "fma latency": (["fma"], CHAINS),
            "div latency": (["div"], CHAINS),
        }
        v = f"<{self.width} x double>"
        text = [f"declare {v} @llvm.fma.v{self.width}f64({v}, {v}, {v})", self._clock()]
        text += [self._loop(n.replace(" ", "_"), *loop) for n, loop in loops.items()]
        module = llvm.parse_assembly("\n".join(text))
        module.triple, module.data_layout = target.triple, str(target.target_data)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()
        self.operations = {n: len(chains) * times for n, (chains, times) in loops.items()}
        self.operations["clock"] = KEPT_APART

    def join(self, race: Race) -> None:
        """Let the loops take part; they are counted in operations."""
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
        for name, count in self.operations.items():
            function = kind(self._engine.get_function_address(name.replace(" ", "_")))
            race.add(f"machine {name}", lambda f=function: f(ITERATIONS, 12345), ITERATIONS * count)

    def rates(self, times: dict[str, Timing]) -> dict[str, float]:
        """Clock in GHz, peak in GFLOP/s, and cycles a vector operation of each kind."""
        best = {n: times[f"machine {n}"].minimum for n in self.operations}
        clock = 1.0 / best["clock"]  # of operations that take one cycle each
        cycles = {n: x * clock for n, x in best.items() if n != "clock"}
        return {"GHz": clock, "GFLOP/s": 2 * self.width / best["fma"], **cycles}

    def _loop(self, name: str, chains: Sequence[str], times: int) -> str:
        """A loop of one step, or several, of each chain."""
        w, ks = self.width, range(len(chains))
        v = f"<{w} x double>"
        half = "<" + ", ".join(["double 5.000000e-01"] * w) + ">"
        start = [f"<{', '.join([f'double {k + 1}.0'] * w)}>" for k in ks]
        now, steps = [f"%a{k}" for k in ks], []
        for turn in range(times):
            for k, operation in enumerate(chains):
                step = STEPS[operation].format(v=v, w=w, x=now[k], half=half)
                now[k] = f"%b{k}.{turn}"
                steps.append(f"{now[k]} = {step}")
        return "\n".join(
            [
                f"define void @{name}(i64 %n, i64 %unused) {{",
                f"entry:\n%sink = alloca {v}\nbr label %loop\nloop:",
                "%i = phi i64 [0, %entry], [%j, %loop]",
                *(f"%a{k} = phi {v} [{start[k]}, %entry], [{now[k]}, %loop]" for k in ks),
                *steps,
                "%j = add i64 %i, 1\n%more = icmp slt i64 %j, %n",
                "br i1 %more, label %loop, label %exit\nexit:",
                *(f"store volatile {v} {x}, ptr %sink" for x in now),
                "ret void\n}",
            ]
        )

    @staticmethod
    def _clock() -> str:
        """A chain of integer operations, one cycle each."""
        kinds = ("add", "xor")
        steps = (f"%x{k + 1} = {kinds[k % 2]} i64 %x{k}, %key" for k in range(KEPT_APART))
        return "\n".join(
            [
                "define void @clock(i64 %n, i64 %key) {",
                "entry:\n%sink = alloca i64\nbr label %loop\nloop:",
                "%i = phi i64 [0, %entry], [%j, %loop]",
                f"%x0 = phi i64 [%key, %entry], [%x{KEPT_APART}, %loop]",
                *steps,
                "%j = add i64 %i, 1\n%more = icmp slt i64 %j, %n",
                "br i1 %more, label %loop, label %exit\nexit:",
                f"store volatile i64 %x{KEPT_APART}, ptr %sink",
                "ret void\n}",
            ]
        )


def join_memory(race: Race, megabytes: int = 64) -> None:
    """Let a sum of two large arrays into a third take part, counted in bytes read and written."""
    a, b, c = (np.ones(megabytes << 17) for _ in range(3))
    race.add("machine memory", lambda: np.add(a, b, out=c), 3 * a.nbytes)


def restrict_to_avx2() -> None:
    """Have kernels compiled as on a processor without AVX-512, for the rest of this process."""
    features, _ = compiler.features()
    words = [x for x in features.split(",") if not x.startswith(("+avx512", "-avx512"))]
    words += ["-avx512f", "-evex512", "-prefer-256-bit"]
    compiler.features = lambda: (",".join(words), 4)


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
    releases = {"Python": platform.python_version(), "robomodel": rm.__version__}
    for name in ("numpy", "llvmlite", "pin"):
        try:
            releases[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return releases | {"LLVM": ".".join(str(x) for x in llvm.llvm_version_info)}
