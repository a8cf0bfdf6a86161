"""Other validators beside ``robomodel lint``: ``python -m benchmarks.validators --bin DIR FILE…``.

DIR holds the commands of simcheck, truerig, isaaclab-robot-doctor, urdf-validator and mjcf-doctor;
those that are not there are left out. Into each URDF file faults are planted one at a time: those
of :mod:`benchmarks.shared.seeded_faults` in links and joints that have a counterpart, and the
defects of ``simcheck mutate``. A validator finds a fault if it says something new at the level of a
warning or above. Prints how many each finds, and how many warnings it has of the file as it is.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import robomodel as rm
from benchmarks.shared.seeded_faults import AMONG_TWINS, Seeds, counterparts
from robomodel.description import Description
from robomodel.model import build

Said = Counter[str]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 300  # that a command may take
SEED = 5


@dataclass(frozen=True)
class Validator:
    """A command that checks a file: what it says, of warnings and errors, a line each."""

    name: str
    command: tuple[str, ...]
    said: Callable[[str], list[str]]

    def run(self, path: Path) -> tuple[Said, float]:
        """What it says of a file, and the seconds that it takes."""
        start = time.perf_counter()
        try:
            done = subprocess.run([*self.command, str(path)], capture_output=True, text=True,
                                  timeout=SECONDS, check=False)  # fmt: skip
            text = COLOURS.sub("", done.stdout)
        except subprocess.TimeoutExpired:
            text = ""
        try:
            said = Counter(self.said(text))
        except ValueError:  # no JSON: it failed on the file
            said = Counter([text.strip()[-200:]])
        return said, time.perf_counter() - start


def lines(pattern: str) -> Callable[[str], list[str]]:
    """Lines of a text that match."""
    number = re.compile(r":\d+: ")  # of a line: a fault moves those below it
    return lambda text: [number.sub(": ", line.strip()) for line in text.splitlines()
                         if re.search(pattern, line)]  # fmt: skip


def entries(text: str) -> list[str]:
    """Findings of JSON documents, wherever they stand in these, that are no notes."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            level = str(value.get("severity") or value.get("level") or "").lower()
            if level in ("warning", "warn", "error") or "load_error" in value:
                yield json.dumps(value, sort_keys=True)
            else:
                for each in value.values():
                    yield from walk(each)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)

    return list(walk(json.loads(text[min(text.find(x) for x in "{[" if x in text) :])))


def validators(folder: Path) -> list[Validator]:
    """All that are installed, this package first."""
    lint = (sys.executable, "-m", "robomodel", "lint", "--format", "text")
    found = [Validator("robomodel", lint, lines(r": (warning|error) \["))]
    others = {
        "simcheck": (("check", "--fail-on", "never", "-v"), lines(r"^\s*(WARN|ERRO)")),
        "truerig": (("validate", "--report", "json"), entries),
        "isaaclab-robot-doctor": (("check", "--no-info", "--json"), entries),
        "urdf_validate": (("--output-dir", str(folder)), lines(r"\[(WARN|FAIL|ERROR)\]")),
        "mjcf-doctor": (("check", "--json"), entries),
    }
    for name, (arguments, said) in others.items():
        if (folder / name).exists():
            found.append(Validator(name, (str(folder / name), *arguments), said))
    return found


def seeded(model: rm.Model, path: Path, folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Faults in links that have a counterpart: kind, the sound file and the file with the fault."""
    among = counterparts(model)
    sound = written(model.description, folder / "sound.urdf")
    for number, (kind, fault) in enumerate(AMONG_TWINS.items()):
        result = fault(Seeds(model, SEED + number, among=among))
        if result is not None and result[0] != model.description:
            try:
                yield kind, sound, written(result[0], folder / f"fault{number}.urdf")
            except rm.DescriptionError as error:
                print(f"  {path.name}: {kind} is not planted: {error}", file=sys.stderr)


def written(description: Description, path: Path) -> Path:
    """A file with this description."""
    rm.write_urdf(build(description), path)
    return path


def planted(path: Path, folder: Path, simcheck: Path) -> Iterator[tuple[str, Path, Path]]:
    """Defects of ``simcheck mutate``: kind, the file and the file with the defect."""
    listed = subprocess.run(
        [simcheck, "mutate", "--list"], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        name = line.split()[0]
        out = folder / name  # a folder with the file and its meshes
        command = [str(simcheck), "mutate", "--defect", name, "-o", str(out), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        made = sorted(out.glob("*.urdf"))
        if done.returncode == 0 and made:
            yield f"simcheck: {name}", path, made[0]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--bin", type=Path, required=True, help="where the validators are")
    parser.add_argument("--only", help="the name of one validator")
    options = parser.parse_args()
    tools = [x for x in validators(options.bin) if options.only in (None, x.name)]
    found: Counter[tuple[str, bool]] = Counter()
    kinds: Counter[bool] = Counter()
    seconds = dict.fromkeys((x.name for x in tools), 0.0)
    runs = 0
    for path in options.files:
        before: dict[Path, dict[str, Said]] = {}
        own = seeded(rm.load(path), path, path.parent)
        theirs = planted(path, path.parent, options.bin / "simcheck")
        for kind, sound, wrong in itertools.chain(own, theirs):
            for each in (sound, wrong):
                if each not in before:
                    before[each] = {}
                    runs += 1
                    for tool in tools:
                        before[each][tool.name], took = tool.run(each)
                        seconds[tool.name] += took
            catalogue = kind.startswith("simcheck: ")
            kinds[catalogue] += 1
            new = {x.name: before[wrong][x.name] - renamed(before[sound][x.name], sound, wrong)
                   for x in tools}  # fmt: skip
            for name, said in new.items():
                found[name, catalogue] += bool(said)
            print(path.name, kind, ", ".join(name for name, said in new.items() if said), sep="\t",
                  flush=True)  # fmt: skip
        for tool in tools:
            print(path.name, "as it is", tool.name, sum(before[path][tool.name].values()), sep="\t")
    for tool in tools:
        rates = " | ".join(f"{found[tool.name, x]} of {kinds[x]}" for x in (False, True))
        print(f"| {tool.name} | {rates} | {seconds[tool.name] / runs:.1f} s |")


def renamed(said: Said, sound: Path, wrong: Path) -> Said:
    """What is said of one file as it would be of the other."""
    pairs = ((sound, wrong), (sound.parent, wrong.parent))
    words = [(f"{a}", f"{b}") for a, b in pairs] + [(sound.name, wrong.name)]
    return Counter({reduce(lambda text, pair: text.replace(*pair), words, k): n
                    for k, n in said.items()})  # fmt: skip


if __name__ == "__main__":
    main()
