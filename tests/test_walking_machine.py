"""Large linkages: a walking machine of Jansen's legs, against circles that meet in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from texts import joint, link, loop, robot

import robomodel as rm
from robomodel.mobility.parts import parts_of

Array = np.ndarray
LEGS = 2  # of which each has six hinges
MANY = 12
A, B, C, D, E, F, G, J, K, L, M = (
    0.38, 0.415, 0.393, 0.401, 0.558, 0.394, 0.367, 0.5, 0.619, 0.078, 0.15,
)  # fmt: skip


def meet(p: Array, r1: float, q: Array, r2: float, side: int) -> Array:
    """Where circles of these radii about p and q meet."""
    v = q - p
    r = float(np.linalg.norm(v))
    x = (r1 * r1 - r2 * r2 + r * r) / (2.0 * r)
    across = math.sqrt(r1 * r1 - x * x) * np.array([-v[1], v[0]])
    return p + (x * v + side * across) / r


def angle(v: Array) -> float:
    return math.atan2(v[1], v[0])


def leg(i: int, crank: float, legs: int = LEGS) -> dict[str, float]:
    """Positions of the six hinges of a leg; its bell crank is bent by what it is at crank 0."""
    side, phase = (1, -1)[i % 2], 2.0 * math.pi * (i // 2) / (legs // 2)
    pin = M * np.array([math.cos(crank + phase), math.sin(crank + phase)])
    pivot = np.array([-side * A, -L])
    e, f = meet(pin, J, pivot, B, -side), meet(pin, K, pivot, C, side)
    d = meet(pivot, D, e, E, side)
    g = meet(d, F, f, G, side)
    lower, upper = angle(e - pivot), angle(f - pivot)
    return {
        f"j{i}": angle(e - pin) - crank, f"b{i}": lower, f"k{i}": angle(f - pin) - crank,
        f"c{i}": upper, f"f{i}": angle(g - d) - lower, f"g{i}": angle(g - f) - upper,
        f"bend{i}": angle(d - pivot) - lower,
    }  # fmt: skip


def walker(legs: int = LEGS, *, assembled: bool = True) -> str:
    """One crank, and six hinges and three loops a leg, in its place or with all hinges at zero."""

    def at(x: float, y: float = 0.0) -> str:
        return f"{x:.17g} {y:.17g} 0"

    def hinge(name: str, parent: str, xy: str, start: float) -> list[str]:
        more = f'<initial position="{start * assembled:.17g}"/>'
        mark = name == "crank"
        return [link(f"l_{name}"), joint(name, parent, f"l_{name}", xy, mark=mark, more=more)]

    parts = hinge("crank", "base", at(0.0), 0.0)
    for i in range(legs):
        x, phase = leg(i, 0.0, legs), 2.0 * math.pi * (i // 2) / (legs // 2)
        pin, pivot = at(M * math.cos(phase), M * math.sin(phase)), at(-(1, -1)[i % 2] * A, -L)
        corner = at(D * math.cos(x[f"bend{i}"]), D * math.sin(x[f"bend{i}"]))
        for name, parent, xy in (
            ("j", "l_crank", pin), ("b", "base", pivot), ("k", "l_crank", pin),
            ("c", "base", pivot), ("f", f"l_b{i}", corner), ("g", f"l_c{i}", at(C)),
        ):  # fmt: skip
            parts += hinge(f"{name}{i}", parent, xy, x[f"{name}{i}"])
        for one, length, other, width in (("j", J, "b", B), ("k", K, "c", C), ("f", F, "g", G)):
            ends = f"l_{one}{i}", f"l_{other}{i}", at(length), at(width)
            parts.append(loop(f"{one}{other}{i}", "revolute", *ends))
    return robot(*parts)


@pytest.mark.slow
def test_a_walking_machine_is_drawn_all_round_its_crank() -> None:
    model = rm.load(walker())
    assert (len(model.joints), model.nv) == (1 + 6 * LEGS, 1)
    q = np.array([model.random_configuration(seed) for seed in range(40)])
    assert np.max(np.abs(model.residual(q))) < 1e-13
    positions = model.joint_positions(q)
    assert np.max(np.diff(np.sort(positions["crank"]))) < 1.0
    for n in range(len(q)):
        for i in range(LEGS):
            for name, x in leg(i, float(positions["crank"][n])).items():
                if name in positions:
                    off = math.remainder(float(positions[name][n]) - x, 2.0 * math.pi)
                    assert abs(off) < 1e-11, name
    assert model.is_reachable(q[:5]).all()


@pytest.mark.slow
def test_a_walking_machine_drawn_in_pieces_is_put_together() -> None:
    """All legs at once close from next to no random start; each by itself closes from many."""
    model = rm.load(walker(MANY, assembled=False))
    assert (len(model.joints), model.nv) == (1 + 6 * MANY, 1)
    q = model.neutral()
    assert np.max(np.abs(model.residual(q))) < 1e-12
    at = {name: float(x) for name, x in model.joint_positions(q).items()}
    pin, pivot = M * np.array([math.cos(at["crank"]), math.sin(at["crank"])]), np.array([-A, -L])
    for name, length, end in (("b0", B, J), ("c0", C, K)):  # both ends of the rods of leg 0
        tip = pivot + length * np.array([math.cos(at[name]), math.sin(at[name])])
        assert abs(float(np.linalg.norm(tip - pin)) - end) < 1e-12
    G = model.constraint_jacobian(q)
    assert np.all(np.isfinite(G))
    assert np.min(np.abs(G)) > 1e-9  # the crank moves every leg


def test_parts_of_a_linkage_are_what_one_joint_holds_together() -> None:
    geometry = rm.load(walker(4)).clusters[0].geometry
    parts = parts_of(geometry)
    assert len(parts) == 4
    assert sorted(c for part in parts for c in part.columns) == [*range(1, geometry.nv)]
    assert sorted(row for part in parts for row in part.rows) == [*range(geometry.rows)]
    for name in ("four_bar", "six_bar", "five_bar", "tello"):
        for cluster in rm.robots.load(name).clusters:
            assert cluster.geometry is None or parts_of(cluster.geometry) == []
