"""The goals of the kernels, met or missed, and what limits where they are missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

GEARED, HUMANOID, LARGER = "mini_cheetah", "mit_humanoid", "jvrc1"
RANDOM = "12 geared joints, random axes"
ROBOTS = (GEARED, HUMANOID, LARGER, RANDOM)
FASTER: Mapping[str, tuple[float, ...]] = {
    "aba": (25.0, 18.0, 18.0, 18.0),
    "rnea": (25.0, 16.0, 16.0, 16.0),
    "crba": (8.0, 8.0, 8.0, 8.0),
    "jacobian": (8.0, 8.0, 8.0, 8.0),
    "aba_derivatives": (10.0, 6.0, 6.0, 4.0),
    "rnea_derivatives": (10.0, 6.0, 6.0, 4.0),
}
"""Times as fast as the best Pinocchio: of the robots in turn."""
FROM_PYTHON = "from Python"  # the rival where Pinocchio in C++ cannot be built
FIRST_USE = {GEARED: 1.0, HUMANOID: 1.0, LARGER: 4.0}
"""Seconds."""


@dataclass(frozen=True)
class Goal:
    """What was to be reached, what was measured, and why not where it was not."""

    what: str
    bound: str
    measured: str
    met: bool
    because: str


def goals(rows: Mapping[str, Row]) -> Iterator[Goal]:
    """All goals of which this run can tell."""
    for algorithm, bounds in FASTER.items():
        for robot, least in zip(ROBOTS, bounds, strict=True):
            row = rows.get(f"{robot} {algorithm}", {})
            if "ratio" in row and row["rival"] != FROM_PYTHON:
                yield _faster(row, least)
    for name, row in rows.items():
        if "pin one ns" in row and name.startswith(GEARED):
            yield from _single(row)
    for own, geared in (
        ("12 four-bar joints aba", "12 geared joints aba"),
        ("tello aba", f"{GEARED} aba"),
    ):
        if own in rows and geared in rows:
            yield _operation(rows[own], rows[geared])
    for robot, most in FIRST_USE.items():
        used = [rows[f"{robot} {x}"] for x in FASTER if f"{robot} {x}" in rows]
        if used:
            yield _first_use(max(used, key=lambda row: float(row["first use s"])), most)


def name_of(row: Row) -> str:
    """Robot and algorithm."""
    return f"{row['robot']} {row['algorithm']}"


def _faster(row: Row, least: float) -> Goal:
    return Goal(
        f"{row['robot']} `{row['algorithm']}`: times as fast as Pinocchio",
        f"≥ {least:g}",
        f"{row['ratio']:.1f}",
        round(row["ratio"], 1) >= least,
        row.get("limit", ""),
    )


def _single(row: Row) -> Iterator[Goal]:
    name, ratio = row["algorithm"], row["one checked ns"] / row["pin one ns"]
    most = {"aba": 0.65, "crba": 1.2}.get(name)
    if most is not None:
        yield Goal(
            f"{row['robot']}, one state: `rm.{name}` / `pin.{name}`",
            f"≤ {most:g}",
            f"{ratio:.2f}",
            ratio <= most,
            f"of {row['one checked ns']:.0f} ns the kernel takes {row['one ns']:.0f}",
        )
    ratio = row["one out ns"] / row["one ns"]
    yield Goal(
        f"{row['robot']} `{name}`, one state: kernel with `out=` / without",
        "≤ 1",
        f"{ratio:.2f}",
        round(ratio, 2) <= 1.0,
        f"{row['one out ns']:.0f} ns of {row['one ns']:.0f}",
    )


def _operation(row: Row, geared: Row) -> Goal:
    ratio = row["ps an operation"] / geared["ps an operation"]
    return Goal(
        f"{row['robot']} `{row['algorithm']}`: time an operation / that of {geared['robot']}",
        "≤ 1",
        f"{ratio:.2f}",
        round(ratio, 2) <= 1.0,
        "; ".join(x["limit"] for x in (row, geared) if "limit" in x),
    )


def _first_use(row: Row, most: float) -> Goal:
    first, cached = row["first use s"], row["cached s"]
    return Goal(
        f"{row['robot']}: first use, the longest (`{row['algorithm']}`)",
        f"≤ {most:g} s",
        f"{first:.2f} s",
        first <= most,
        f"LLVM takes {first - cached:.2f} s over a program of {row['steps']} steps",
    )


def print_verdict(rows: Mapping[str, Row]) -> None:
    """One line a goal, and a second where it is missed."""
    if all(row.get("rival", FROM_PYTHON) == FROM_PYTHON for row in rows.values()):
        print(
            "\nPinocchio was not built in C++ (no compiler, or its headers are missing): how many "
            "times as fast kernels are is not judged."
        )
    print(f"\n{'goal':74s} {'':9s} measured")
    for goal in goals(rows):
        result = "met" if goal.met else "missed"
        print(f"{goal.what:74s} {goal.bound:9s} {result}: {goal.measured}")
        if not goal.met:
            print(f"{'':10s}because: {goal.because}")
