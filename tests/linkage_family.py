"""Random linkages whose mobility is known, as URDF+ texts, their frames rounded by up to ``noise``.

Overconstrained ones (spherical, planar, Bennett, Sarrus, Bricard), a control with balls, and those
that are rigid, or give to first order only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

Array = np.ndarray
Maker = Callable[["Design", np.random.Generator], int]
Z = np.array([0.0, 0.0, 1.0])
INERTIAL = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
)


class Design:
    """Joints and loops where they stand in the world at zero; all is turned and shifted."""

    def __init__(self, rng: np.random.Generator, noise: float) -> None:
        self.rng, self.noise = rng, noise
        self.off = np.random.default_rng(rng.integers(2**31))
        self.turn, self.shift = self._turned(1.0), 0.3 * rng.normal(size=3)
        self.frames: list[tuple[Array, Array]] = []
        self.parts: list[str] = ['<link name="base"/>']

    def _turned(self, size: float) -> Array:
        return Rotation.from_rotvec(size * self.rng.normal(size=3)).as_matrix()

    def _origin(self, body: int, turn: Array, x: Array) -> str:
        """A frame of the world in a body, rounded."""
        r, p = self.frames[body] if body >= 0 else (np.eye(3), np.zeros(3))
        motion = self.noise * self.off.uniform(-1.0, 1.0, 6)
        pose = r.T @ turn @ Rotation.from_rotvec(motion[:3]).as_matrix()
        at = r.T @ (x - p) + r.T @ turn @ motion[3:]
        numbers = (*at, *Rotation.from_matrix(pose).as_euler("xyz"))
        xyz, rpy = (" ".join(repr(float(n)) for n in three) for three in (numbers[:3], numbers[3:]))
        return f'<origin xyz="{xyz}" rpy="{rpy}"/>'

    def joint(self, parent: int, x: Array, axis: Array = Z, kind: str = "continuous") -> int:
        """The body moved by one more joint at x."""
        n, frame = len(self.frames), self._turned(1.0)
        at = self.turn @ x + self.shift
        along = frame.T @ self.turn @ unit(axis)
        words = (
            "" if kind == "spherical" else f'<axis xyz="{" ".join(map(repr, along.tolist()))}"/>'
        )
        self.parts.append(
            f'<link name="b{n}">{INERTIAL}</link><joint name="j{n}" type="{kind}">'
            f'<parent link="{self.name(parent)}"/><child link="b{n}"/>'
            f"{self._origin(parent, frame, at)}{words}</joint>"
        )
        self.frames.append((frame, at))
        return n

    def loop(self, kind: str, one: int, other: int, x: Array, axis: Array = Z) -> None:
        """A loop between two bodies at x."""
        first = self.turn @ unit(axis)
        second = unit(np.cross(first, self.rng.normal(size=3)))
        frame = np.stack([first, second, np.cross(first, second)], axis=1)
        ends = "".join(
            f'<{tag} link="{self.name(body)}">'
            f"{self._origin(body, frame, self.turn @ x + self.shift)}</{tag}>"
            for tag, body in (("predecessor", one), ("successor", other))
        )
        n = sum("<loop" in part for part in self.parts)
        self.parts.append(f'<loop name="l{n}" type="{kind}">{ends}<axis xyz="1 0 0"/></loop>')

    @staticmethod
    def name(body: int) -> str:
        return "base" if body < 0 else f"b{body}"

    def ring(self, points: Sequence[Array], axes: Sequence[Array]) -> None:
        """A closed chain of hinges, of which the loop is the one in the middle."""
        k, left, right = len(points) // 2, -1, -1
        for i in range(k):
            left = self.joint(left, points[i], axes[i])
        for i in range(len(points) - 1, k, -1):
            right = self.joint(right, points[i], axes[i])
        self.loop("revolute", left, right, points[k], axes[k])


def unit(x: Array) -> Array:
    return np.asarray(x, float) / np.linalg.norm(x)


def apart(rng: np.random.Generator, count: int, least: float) -> list[Array]:
    """Directions that are not near to each other."""
    while True:
        axes = [unit(rng.normal(size=3)) for _ in range(count)]
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[:i]]
        if all(np.linalg.norm(np.cross(a, b)) > least for a, b in pairs):
            return axes


def lifted(rng: np.random.Generator, points: Sequence[Array]) -> list[Array]:
    """Hinges along z need not lie in one plane."""
    return [p + 0.2 * rng.normal() * Z for p in points]


def parallelogram_points(rng: np.random.Generator) -> list[Array]:
    u, angle = np.array([rng.uniform(0.6, 1), 0, 0]), rng.uniform(0.5, 2.5)
    v = rng.uniform(0.4, 1) * np.array([np.cos(angle), np.sin(angle), 0])
    return [0 * u, v, u + v, u]


def spherical_four_bar(d: Design, rng: np.random.Generator) -> int:
    axes = apart(rng, 4, 0.6)
    d.ring([a * rng.uniform(0.5, 1) for a in axes], axes)
    return 1


def spherical_platform(d: Design, rng: np.random.Generator, kind: str = "revolute") -> int:
    """Three motors whose axes meet, as in a spherical wrist."""
    turns = [Rotation.from_rotvec((2 * np.pi * k / 3 + 0.1 * rng.normal()) * Z) for k in range(3)]
    a = [t.apply(unit([1, 0, -0.6 + 0.2 * rng.normal()])) for t in turns]
    c = [t.apply(unit([1, 0.2 * rng.normal(), 0.8 + 0.2 * rng.normal()])) for t in turns]
    b = [t.apply(unit([0.3 * rng.normal(), 1, 0.1 + 0.2 * rng.normal()])) for t in turns]
    ends = [d.joint(d.joint(-1, 0.8 * a[k], a[k]), 0.7 * b[k], b[k]) for k in range(3)]
    head = d.joint(ends[0], 0.9 * c[0], c[0])
    for k in (1, 2):
        d.loop(kind, ends[k], head, 0.9 * c[k], c[k])
    return 3


def planar_four_bar(d: Design, rng: np.random.Generator) -> int:
    points = [np.array(p) for p in ([0.0, 0, 0], [0.1, 0.4, 0], [1.1, 0.8, 0], [1.0, 0, 0])]
    d.ring(lifted(rng, [p + 0.1 * rng.normal(size=3) * [1, 1, 0] for p in points]), [Z] * 4)
    return 1


def parallelogram(d: Design, rng: np.random.Generator) -> int:
    d.ring(lifted(rng, parallelogram_points(rng)), [Z] * 4)
    return 1


def welded_parallelogram(d: Design, rng: np.random.Generator) -> int:
    """Each crank carries half of the coupler; the halves are welded, as necks are."""
    a, b, e, c = parallelogram_points(rng)
    one, two = d.joint(-1, a), d.joint(-1, c)
    d.loop("fixed", d.joint(one, b), d.joint(two, e), 0.5 * (b + e), rng.normal(size=3))
    return 1


def flat_parallelogram(d: Design, rng: np.random.Generator) -> int:
    u, v = np.array([rng.uniform(0.7, 1), 0, 0]), np.array([rng.uniform(0.3, 0.5), 0, 0])
    d.ring(lifted(rng, [0 * u, v, u + v, u]), [Z] * 4)
    return 1


def nearly_flat(distance: float) -> Maker:
    """A parallelogram whose cranks lie in the base line but for this angle."""

    def make(d: Design, rng: np.random.Generator) -> int:
        u, r = np.array([rng.uniform(0.7, 1), 0, 0]), rng.uniform(0.3, 0.5)
        angle = distance * rng.choice([-1, 1])
        v = r * np.array([np.cos(angle), np.sin(angle), 0])
        d.ring(lifted(rng, [0 * u, v, u + v, u]), [Z] * 4)
        return 1

    return make


def parallelograms_in_series(d: Design, rng: np.random.Generator) -> int:
    """The arm of a lamp: the coupler of one is the base of the next."""
    a, b, e, c = parallelogram_points(rng)
    one = d.joint(-1, a)
    middle = d.joint(one, b)
    d.loop("revolute", d.joint(-1, c), middle, e)
    v = rng.uniform(0.4, 0.8) * unit([rng.normal(), rng.normal(), 0])
    if abs(np.cross(v, c - a)[2]) < 0.2:
        v = np.array([0.1, 0.6, 0])
    two = d.joint(middle, b)
    top = d.joint(two, b + v)
    d.loop("revolute", d.joint(middle, e), top, e + v)
    return 2


def triple_crank(d: Design, rng: np.random.Generator) -> int:
    """Three equal cranks on one coupler; far away it has rigid assemblies, too."""
    a, b, _, c = parallelogram_points(rng)
    third = a + rng.uniform(0.3, 0.8) * (c - a) + np.array([0, rng.uniform(0.3, 0.6), 0])
    one = d.joint(-1, a)
    head = d.joint(one, b)
    for x in (c, third):
        d.loop("revolute", d.joint(-1, x), head, x + b - a)
    return 1


def bennett(d: Design, rng: np.random.Generator) -> int:
    """Four hinges with sin α / a = sin β / b."""
    a, alpha, beta = rng.uniform(0.5, 1), rng.uniform(0.5, 1.1), rng.uniform(1.3, 1.9)
    b, t1 = a * np.sin(beta) / np.sin(alpha), rng.uniform(0.7, 2.2)
    ratio = np.sin((beta + alpha) / 2) / (np.sin((beta - alpha) / 2) * np.tan(t1 / 2))
    t2 = 2 * np.arctan(ratio)
    turn, at, points, axes = np.eye(3), np.zeros(3), [], []
    for theta, length, twist in ((t1, a, alpha), (t2, b, beta), (-t1, a, alpha), (-t2, b, beta)):
        points.append(at + rng.uniform(-0.3, 0.3) * turn[:, 2])
        axes.append(turn[:, 2])
        turn = turn @ Rotation.from_rotvec(theta * Z).as_matrix()
        at = at + length * turn[:, 0]
        turn = turn @ Rotation.from_rotvec([twist, 0, 0]).as_matrix()
    assert np.abs(at).max() < 1e-9
    d.ring(points, axes)
    return 1


def sarrus(d: Design, rng: np.random.Generator) -> int:
    u, v = apart(rng, 2, 0.7)
    h, sides = unit(np.cross(u, v)), []
    for e in (u, v):
        n = np.cross(e, h)
        p = rng.normal(size=3) * 0.3 + n
        middle = p + rng.uniform(0.4, 0.8) * h + rng.uniform(0.3, 0.6) * n
        sides.append([p, middle, p + rng.uniform(0.9, 1.3) * h])
    d.ring([*sides[0], *sides[1][::-1]], [u, u, u, v, v, v])
    return 1


def bricard(d: Design, rng: np.random.Generator) -> int:
    """Line-symmetric: three hinges, and the same turned by half a turn about a line."""
    axes, points = apart(rng, 3, 0.6), [0.7 * rng.normal(size=3) for _ in range(3)]
    half = np.diag([-1.0, -1.0, 1.0])
    d.ring([*points, *(half @ p for p in points)], [*axes, *(half @ a for a in axes)])
    return 1


def rod_between_balls(d: Design, rng: np.random.Generator) -> int:
    """Two cranks and a rod: a crank's motion, and the rod's spin."""
    a, b = apart(rng, 2, 0.5)
    one, two = d.joint(-1, np.zeros(3), a), d.joint(-1, np.array([1, 0.2, 0]), b)
    rod = d.joint(one, 0.5 * rng.normal(size=3), kind="spherical")
    d.loop("spherical", rod, two, 0.5 * rng.normal(size=3) + np.array([1, 0.5, 0]))
    return 2


def rigid_ring(d: Design, rng: np.random.Generator) -> int:
    n = int(rng.integers(4, 7))
    d.ring(list(0.7 * rng.normal(size=(n, 3))), apart(rng, n, 0.3))
    return 0


def tilted_four_bar(d: Design, rng: np.random.Generator) -> int:
    """A planar four-bar, one axis of which is off by 1 to 10 degrees: no rounding."""
    tilt, turn, axes = rng.uniform(0.02, 0.17), rng.uniform(0, 6.28), [Z] * 4
    axes[int(rng.integers(4))] = np.array(
        [np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)]
    )
    points = [np.array(p, float) for p in ((0, 0, 0), (0, 0.4, 0), (1, 0.8, 0), (1, 0, 0))]
    d.ring(lifted(rng, points), axes)
    return 0


def shaky_ring(d: Design, rng: np.random.Generator) -> int:
    """Six hinges in a linear complex: mobile at first order only."""
    points, axes = list(0.7 * rng.normal(size=(6, 3))), apart(rng, 6, 0.3)
    lines = [np.concatenate([np.cross(p, a), a]) for p, a in zip(points[:5], axes[:5], strict=True)]
    w, a, p = np.linalg.svd(np.array(lines))[2][5], axes[5], points[5]
    g = np.cross(a, w[:3])
    points[5] = p + g * (-(w[3:] @ a) - w[:3] @ np.cross(p, a)) / (g @ g)
    d.ring(points, axes)
    return 0


def three_in_a_line(d: Design, rng: np.random.Generator) -> int:
    """Three parallel hinges, stretched: mobile at first order only."""
    u = unit([rng.normal(), rng.normal(), 0])
    d.ring(lifted(rng, [x * u for x in (0.0, rng.uniform(0.4, 0.6), 1.0)]), [Z] * 3)
    return 0


def shaft_in_bearings(d: Design, rng: np.random.Generator) -> int:
    """Three hinges on one axis: every condition of the loop repeats what the hinges say."""
    d.ring([x * Z for x in (0.0, rng.uniform(0.4, 0.6), 1.0)], [Z] * 3)
    return 2


FAMILY: dict[str, Maker] = {
    "spherical four-bar": spherical_four_bar,
    "spherical platform": spherical_platform,
    "spherical platform with balls": lambda d, rng: spherical_platform(d, rng, "spherical"),
    "planar four-bar": planar_four_bar,
    "parallelogram": parallelogram,
    "welded parallelogram": welded_parallelogram,
    "flat parallelogram": flat_parallelogram,
    "triple crank": triple_crank,
    "Bennett": bennett,
    "Sarrus": sarrus,
    "Bricard": bricard,
    "rod between balls": rod_between_balls,
    "rigid ring": rigid_ring,
    "tilted four-bar": tilted_four_bar,
    "shaky ring": shaky_ring,
    "three in a line": three_in_a_line,
    "shaft in bearings": shaft_in_bearings,
    "parallelograms in series": parallelograms_in_series,
    "parallelogram flat by 1e-2": nearly_flat(1e-2),
    "parallelogram flat by 1e-3": nearly_flat(1e-3),
}


def instance(name: str, seed: int, noise: float) -> tuple[str, int]:
    """A linkage of the family as text, and its mobility."""
    rng = np.random.default_rng([list(FAMILY).index(name), seed])
    design = Design(rng, noise)
    mobility = FAMILY[name](design, rng)
    return f'<robot name="linkage">{"".join(design.parts)}</robot>', mobility
