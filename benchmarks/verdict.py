"""The goals of the kernels, met or missed, and what limits where they are missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

GEARED, HUMANOID = "mini_cheetah", "mit_humanoid"


@dataclass(frozen=True)
class Goal:
    """What was to be reached, what was measured, and why not where it was not."""

    what: str
    bound: str
    measured: str
    met: bool
    because: str


def goals(rows: Mapping[str, Row], width: int) -> Iterator[Goal]:
    """All goals of which this run can tell."""
    aba = {8: 25.0, 4: 12.0}.get(width)
    for robot, algorithm, least in (
        (GEARED, "aba", aba),
        (HUMANOID, "aba", 20.0),
        (GEARED, "rnea", 20.0),
        (HUMANOID, "rnea", 20.0),
        (GEARED, "aba_derivatives", 6.0),
        (HUMANOID, "aba_derivatives", 6.0),
    ):
        row = rows[f"{robot} {algorithm}"]
        if least is not None and "ratio" in row:
            yield _faster(row, least)
    for robot in (GEARED, HUMANOID):
        for algorithm in ("aba", "rnea"):
            yield _share(rows[f"{robot} {algorithm}"])
    for robot in (GEARED, HUMANOID):
        row = rows[f"{robot} aba"]
        if "pin one ns" in row:
            yield from _single(row)
    for own, geared in (
        ("12 four-bar joints aba", "12 geared joints aba"),
        ("tello aba", f"{GEARED} aba"),
    ):
        yield _operation(rows[own], rows[geared])
    for algorithm in ("aba", "rnea", "aba_derivatives", "rnea_derivatives"):
        yield from _first_use(rows[f"{HUMANOID} {algorithm}"])


def _name(row: Row) -> str:
    return f"{row['robot']} {row['algorithm']}"


def _faster(row: Row, least: float) -> Goal:
    others = ", ".join(f"{x / row['ns']:.1f} against {n}" for n, x in row["rivals ns"].items())
    return Goal(
        f"{_name(row)}: times faster than the best Pinocchio",
        f"≥ {least:g}",
        f"{row['ratio']:.1f} ({row['rival']})",
        row["ratio"] >= least,
        f"{row['limit']}; {others}",
    )


def _share(row: Row) -> Goal:
    ceiling = f"the program's own mixture allows {row['ceiling']:.0%}"
    return Goal(
        f"{_name(row)}: share of the FMA peak",
        "≥ 55 %",
        f"{row['share of peak']:.0%}",
        row["share of peak"] >= 0.55,
        f"{ceiling}; {row['limit']}",
    )


def _single(row: Row) -> Iterator[Goal]:
    alone = row["one rows ns"]
    for name, what in (("one", "kernel"), ("one checked", "rm.aba")):
        taken = row[f"{name} ns"]
        ratio = taken / row["pin one ns"]
        yield Goal(
            f"{_name(row)}: one state by {what}, over pin.aba",
            "≤ 0.6",
            f"{ratio:.2f}",
            ratio <= 0.6,
            f"of {taken:.0f} ns, a call that only copies takes {alone:.0f}, checks"
            f" {row['one checked ns'] - row['one ns']:.0f} where they are made",
        )


def _operation(row: Row, geared: Row) -> Goal:
    ratio = row["ps an operation"] / geared["ps an operation"]
    return Goal(
        f"{_name(row)}: time an operation over {_name(geared)}",
        "≤ 1",
        f"{ratio:.2f}",
        round(ratio, 2) <= 1.0,
        f"{row['limit']}; geared: {geared['limit']}",
    )


def _first_use(row: Row) -> Iterator[Goal]:
    first, cached = row["first use s"], row["cached s"]
    yield Goal(
        f"{_name(row)}: first use",
        "≤ 1 s",
        f"{first:.2f} s",
        first <= 1.0,
        f"LLVM takes {first - cached:.2f} s over a program of {row['steps']} steps",
    )
    yield Goal(
        f"{_name(row)}: from the cache",
        "≤ 0.15 s",
        f"{cached:.3f} s",
        cached <= 0.15,
        f"the algorithm is traced to {row['steps']} steps before the cache is asked for them",
    )


def print_verdict(rows: Mapping[str, Row], width: int) -> None:
    """One line a goal, and a second where it is missed."""
    print(f"\n{'goal':66s} {'':9s} measured")
    for goal in goals(rows, width):
        result = "met" if goal.met else "missed"
        print(f"{goal.what:66s} {goal.bound:9s} {result}: {goal.measured}")
        if not goal.met:
            print(f"{'':10s}because: {goal.because}")
