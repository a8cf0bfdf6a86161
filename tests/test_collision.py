"""Body against body: pairs of links, closed forms, coal, and motions."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from texts import INERTIAL, joint, link

import robomodel as rm
from robomodel.description import Shape
from robomodel.dynamics.kinematics import frames
from robomodel.motion import collision
from robomodel.motion.collision import (
    Collider,
    Round,
    collision_pairs,
    convex,
    round_contacts,
    round_pairs,
    shape_contacts,
)
from robomodel.motion.integrator_functions import function

Array = NDArray[np.float64]
HERE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0)


def robot(*elements: str) -> str:
    return f'<robot name="r">{"".join(elements)}</robot>'


def solid(name: str, geometry: str, law: str = "") -> str:
    return (
        f'<link name="{name}">{INERTIAL}<collision><geometry>{geometry}</geometry>{law}</collision>'
        "</link>"
    )


BALL = '<sphere radius="0.1"/>'
BOX = '<box size="0.2 0.2 0.2"/>'
CENTRED = (
    '<inertial><mass value="3"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)
needs_coal = pytest.mark.skipif(find_spec("coal") is None, reason="coal is not installed")
ROD = '<capsule radius="0.05" length="0.4"/>'


def free(name: str) -> str:
    return joint(f"free_{name}", "world", name, kind="floating")


def bodies(**geometries: str) -> rm.Model:
    """Links that float freely."""
    links = [solid(name, geometry) for name, geometry in geometries.items()]
    return rm.load(
        robot('<link name="world"/>', *links, *(free(name) for name in geometries)).encode()
    )


def placed(model: rm.Model, **poses: tuple[Any, ...]) -> Array:
    """Places of the links, and rotation vectors after them."""
    q = model.neutral()
    for n, pose in enumerate(poses.values()):
        q[7 * n : 7 * n + 3] = pose[:3]
        q[7 * n + 3 : 7 * n + 7] = Rotation.from_rotvec(pose[3:] or (0, 0, 0)).as_quat()
    return q


# ---- pairs ---------------------------------------------------------------------------------------


def chain() -> rm.Model:
    """Three links in a row, a fixed one with a shape, a wheel without, a loop from end to end."""
    return rm.load(
        robot(
            solid("base", BOX),
            solid("a", BALL),
            solid("b", BALL),
            solid("c", BALL),
            solid("pad", BALL),
            link("wheel"),
            joint("j1", "base", "a", "0 0 1"),
            joint("j2", "a", "b", "1 0 0"),
            joint("j3", "b", "c", "0 0 -1"),
            joint("j4", "c", "pad", "0 0 0", kind="fixed", mark=False),
            joint("j5", "a", "wheel", "0 1 0"),
        ).encode()
    )


def test_links_that_a_joint_ties_do_not_collide() -> None:
    model = chain()
    tied = {("base", "a"), ("a", "b"), ("b", "c"), ("b", "pad"), ("c", "pad")}
    pairs = collision_pairs(model, True)
    assert set(pairs) == {("base", "b"), ("base", "c"), ("base", "pad"), ("a", "c"), ("a", "pad")}
    assert not set(pairs) & tied
    assert collision_pairs(model, False) == collision_pairs(model, None) == ()
    assert set(collision_pairs(bodies(a=BALL, b=BOX, c=ROD), True)) == {
        ("a", "b"), ("a", "c"), ("b", "c"),
    }  # fmt: skip


def test_loops_tie_their_links() -> None:
    text = rm.robots.path("four_bar").read_text()
    shape = "<collision><geometry><sphere radius='0.01'/></geometry></collision></link>"
    model = rm.load(text.replace("</link>", shape))
    assert model.loops
    for loop in model.loops:
        assert not {
            (loop.predecessor, loop.successor), (loop.successor, loop.predecessor),
        } & set(collision_pairs(model, True))  # fmt: skip


def test_named_pairs_collide_tied_or_not() -> None:
    model = chain()
    assert collision_pairs(model, [("a", "b"), ("b", "a"), ("base", "c")]) == (
        ("a", "b"), ("base", "c"),
    )  # fmt: skip
    assert collision_pairs(model, ("a", "b")) == (("a", "b"),)
    assert collision_pairs(model, []) == ()


@pytest.mark.parametrize(
    ("collisions", "error", "text"),
    [
        ([("a", "bb")], rm.errors.UnknownNameError, "no link 'bb' in 'r'; did you mean 'b'"),
        ([("a", "a")], ValueError, "fixed to each other"),
        ([("c", "pad")], ValueError, "fixed to each other"),
        ([("b", "wheel")], ValueError, "'wheel' has no collision shape that could touch 'b'"),
        ([("a", "b", "c")], ValueError, "two links' names"),
        (["ab"], ValueError, "two links' names"),
        ([3], ValueError, "two links' names"),
        ("a", TypeError, "a bool or pairs of links"),
        (3, TypeError, "a bool or pairs of links"),
    ],
)
def test_pairs_that_are_none(collisions: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        collision_pairs(chain(), collisions)


# ---- spheres and capsules ------------------------------------------------------------------------


def rod(*ends: Any, radius: float = 0.1) -> Round:
    return Round("a", tuple(tuple(map(float, end)) for end in ends), radius)


def nearest_by_search(a: Array, b: Array) -> float:
    """The distance of two segments by a bounded minimisation from several starts."""

    def square(x: Array) -> float:
        apart = a[0] + x[0] * (a[1] - a[0]) - b[0] - x[1] * (b[1] - b[0])
        return float(apart @ apart)

    starts = [(0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5)]
    best = min(
        minimize(square, s, bounds=[(0, 1)] * 2, tol=1e-14).fun for s in map(np.array, starts)
    )
    return math.sqrt(best)


@pytest.mark.slow
def test_capsules_against_a_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = rng.uniform(-1, 1, (2, 2, 3))
        gap, normal, point = round_contacts(rod(*a), rod(*b, radius=0.2), HERE, HERE)[0]
        assert gap == pytest.approx(nearest_by_search(a, b) - 0.3, abs=1e-7)
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        # midway: as far from both surfaces
        for ends, radius, side in ((a, 0.1, 1.0), (b, 0.2, -1.0)):
            on_surface = np.array(point) + side * gap / 2 * np.array(normal)
            centre = on_surface + side * radius * np.array(normal)
            along = ends[1] - ends[0]
            t = (centre - ends[0]) @ along / (along @ along)
            assert -1e-9 <= t <= 1 + 1e-9
            np.testing.assert_allclose(ends[0] + t * along, centre, atol=1e-9)


def test_spheres_and_capsules() -> None:
    gap, normal, point = round_contacts(rod([0, 0, 1]), rod([0, 0, 0.5]), HERE, HERE)[0]
    assert gap == pytest.approx(0.3)
    np.testing.assert_allclose([*normal, *point], [0, 0, 1, 0, 0, 0.75], atol=1e-15)
    (made,) = round_contacts(rod([0.2, 0, 0.3]), rod([-1, 0, 0], [1, 0, 0]), HERE, HERE)
    expected = [0.1, 0, 0, 1, 0.2, 0, 0.15]
    np.testing.assert_allclose([made[0], *made[1], *made[2]], expected, atol=1e-15)
    (made,) = round_contacts(rod([-1, 0, 0], [1, 0, 0]), rod([1.4, 0, 0.3]), HERE, HERE)
    np.testing.assert_allclose([made[0], *made[1]], [0.3, -0.8, 0, -0.6], atol=1e-15)


@pytest.mark.parametrize(
    ("a", "b", "ends"),
    [
        ([(-1, 0, 1), (1, 0, 1)], [(-2, 0, 0), (0.5, 0, 0)], (-1, 0.5)),
        ([(-1, 0, 1), (1, 0, 1)], [(0.2, 0, 0), (-0.1, 0, 0)], (-0.1, 0.2)),
        ([(0, 0, 1), (0.1, 0, 1)], [(-2, 0, 0), (2, 0, 0)], (0, 0.1)),
    ],
)
def test_parallel_capsules_touch_along_what_they_share(
    a: list[Any], b: list[Any], ends: tuple[float, float]
) -> None:
    for turn in (np.eye(3), Rotation.from_rotvec([0.3, -0.7, 1.1]).as_matrix()):
        pose = tuple(map(tuple, turn.tolist())), (0.0, 0.0, 0.0)
        made = round_contacts(rod(*a), rod(*b), pose, pose)
        np.testing.assert_allclose([gap for gap, _, _ in made], 0.8, atol=1e-12)
        places = np.array([point for _, _, point in made]) @ turn
        np.testing.assert_allclose(places[0], [sum(ends) / 2, 0, 0.5], atol=1e-12)
        np.testing.assert_allclose(sorted(places[1:, 0]), ends, atol=1e-12)
        for _, normal, _ in made:
            np.testing.assert_allclose(normal @ turn, [0, 0, 1], atol=1e-12)


def test_parallel_capsules_one_behind_the_other() -> None:
    a, b = rod([0, 0, 0], [1, 0, 0]), rod([3, 0, 0], [2, 0, 0])
    for gap, normal, point in round_contacts(a, b, HERE, HERE)[:1]:
        assert gap == pytest.approx(0.8)
        np.testing.assert_allclose([*normal, *point], [-1, 0, 0, 1.5, 0, 0], atol=1e-12)


def test_centres_that_meet_have_a_normal_all_the_same() -> None:
    gap, normal, _ = round_contacts(rod([1, 2, 3]), rod([1, 2, 3]), HERE, HERE)[0]
    assert (gap, normal) == (-0.2, (0.0, 0.0, 1.0))
    for other in ([(0, -1, 0), (0.3, 1, 0)], [(-2, 0, 0), (3, 0, 0)], [(-1, 0, 0), (1, 0, 0)]):
        gap, normal, _ = round_contacts(rod([-1, 0, 0], [1, 0, 0]), rod(*other), HERE, HERE)[0]
        assert gap == pytest.approx(-0.2)
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        assert abs(normal[0]) < 1e-12
        assert abs(np.dot(normal, np.subtract(*other))) < 1e-12
    for axis in np.eye(3):
        _, normal, _ = round_contacts(rod(-axis, axis), rod([0, 0, 0]), HERE, HERE)[0]
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        assert abs(normal @ axis) < 1e-12
    first, second = np.array([0.3, -0.5, 0.8]), np.array([-0.9, 0.2, 0.4])
    _, normal, _ = round_contacts(rod(-first, first), rod(-second, second), HERE, HERE)[0]
    across = np.cross(first, second) / np.linalg.norm(np.cross(first, second))
    assert abs(normal @ across) == pytest.approx(1.0, abs=1e-12)


def test_the_same_for_a_batch() -> None:
    """Over arrays: every lane as alone, those in parallel and concentric too."""
    rng = np.random.default_rng(1)
    origins = rng.uniform(-0.5, 0.5, (50, 3))
    turns = Rotation.random(50, random_state=2).as_matrix()
    origins[0], turns[0] = 0.0, np.eye(3)  # coincides
    turns[1] = np.eye(3)  # parallel
    a, b = rod([-1, 0, 0], [1, 0, 0]), rod([-0.5, 0, 0], [1, 0, 0], radius=0.3)
    pose = (
        tuple(tuple(turns[:, i, j] for j in range(3)) for i in range(3)),
        tuple(origins[:, i] for i in range(3)),
    )
    batch = round_contacts(a, b, pose, HERE)
    for n in range(50):
        one = tuple(map(tuple, turns[n].tolist())), tuple(origins[n].tolist())
        for (gap, normal, point), (g, m, p) in zip(
            batch, round_contacts(a, b, one, HERE), strict=True
        ):
            each = [np.broadcast_to(x, 50)[n] for x in (gap, *normal, *point)]
            np.testing.assert_allclose(each, [g, *m, *p], atol=1e-12)


def test_a_kernel_of_capsules_on_floating_bases() -> None:
    """Compiled from traces, for a batch: what a collider finds at each configuration."""
    model = bodies(a=ROD, b=ROD, c=BALL)
    pairs = round_pairs(model)

    def build(q: list[Any]) -> list[Any]:
        made = []
        for pair in pairs:
            poses = [
                frames.pose(model, q, frames.place(model, each.link))
                for each in (pair.first, pair.second)
            ]
            for gap, normal, point in round_contacts(pair.first, pair.second, *poses):
                made += [gap, *normal, *point]
        return made

    kernel = function(model, "capsules", (model.nq, 7 * 5), build)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    q[:, 0:3], q[:, 7:10], q[:, 14:17] = rng.uniform(-0.3, 0.3, (3, 20, 3))
    q[0, 10:14] = q[0, 3:7]  # parallel
    results = np.asarray(kernel(q)).reshape(20, 5, 7)
    collider = Collider(model, margin=10.0)
    for made, at in zip(results, q, strict=True):
        found = [[each.gap, *each.normal, *each.point] for each in collider(at)]
        np.testing.assert_allclose(made, found, atol=1e-9)


def test_pairs_for_kernels() -> None:
    text = robot(
        '<link name="world"/>',
        solid("a", BALL, '<surface friction="0.3" restitution="0.5"/>'),
        solid("b", ROD),
        solid("c", BOX),
        *map(free, "abc"),
    )
    model = rm.load(text.encode())
    (pair,) = round_pairs(model, [("a", "b")], friction=0.7)
    assert pair.first == Round("a", ((0.0, 0.0, 0.0),), 0.1)
    assert pair.second == Round("b", ((0.0, 0.0, -0.2), (0.0, 0.0, 0.2)), 0.05)
    assert (pair.friction, pair.restitution) == (0.3, 0.5)
    with pytest.raises(ValueError, match="not with the box of 'c'; simulate has"):
        round_pairs(model, True)


# ---- other shapes --------------------------------------------------------------------------------

SHAPES = {
    "box": Shape("collision", "box", (0.2, 0.3, 0.4)),
    "sphere": Shape("collision", "sphere", (0.15,)),
    "capsule": Shape("collision", "capsule", (0.1, 0.3)),
    "cylinder": Shape("collision", "cylinder", (0.12, 0.3)),
}


def at(shape: Shape, xyz: Any, turn: Any = (0.0, 0.0, 0.0)) -> collision.Convex:
    rotation = Rotation.from_rotvec(turn).as_matrix()
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, xyz
    return convex("a", shape).placed(pose)


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", SHAPES)
def test_the_deepest_contact_has_coals_distance(first: str, second: str) -> None:
    """At random places; no contact is nearer, and normals lead out of the second one."""
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(3)
    overlapping = 0
    for _ in range(40):
        turns = Rotation.random(2, random_state=rng.integers(10**6)).as_rotvec()
        a, b = (
            at(SHAPES[first], rng.uniform(-0.3, 0.3, 3), turns[0]),
            at(SHAPES[second], (0, 0, 0), turns[1]),
        )
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        places = [coal.Transform3s(each.axes, each.centre) for each in (a, b)]
        gap = coal.distance(a.coal, places[0], b.coal, places[1], request, result)
        made = shape_contacts(a, b, 0.5)
        deep = gap < -0.05  # by how much they overlap depends on the direction that is found
        overlapping += gap < 0
        nearest = min(made, key=lambda each: each[0])
        if not deep:
            assert nearest[0] == pytest.approx(gap, abs=2e-5)
            if abs(gap) > 1e-3:
                assert nearest[1] @ -result.normal > 1 - 1e-4
        assert np.linalg.norm(nearest[1]) == pytest.approx(1.0)
        limit = 3 if {first, second} == {"capsule"} else 4
        assert len(made) <= (1 if "sphere" in (first, second) else limit)
        assert shape_contacts(a, b, gap - 1e-3) == []
    assert 5 < overlapping < 40


@needs_coal
def test_a_box_on_a_box_has_four_corners() -> None:
    """Of what the faces share, with gaps of their own where the upper one is tilted."""
    low = at(SHAPES["box"], (0, 0, 0))
    made = shape_contacts(at(SHAPES["box"], (0.05, 0.1, 0.402)), low, 0.01)
    np.testing.assert_allclose([gap for gap, *_ in made], 0.002, atol=1e-12)
    places = sorted(tuple(point.round(9)) for _, _, point, _ in made)
    assert places == [
        (-0.05, -0.05, 0.201),
        (-0.05, 0.15, 0.201),
        (0.1, -0.05, 0.201),
        (0.1, 0.15, 0.201),
    ]
    tilt = 0.01
    for overlap in (0.0, 0.003):
        top = at(SHAPES["box"], (0, 0, 0.402 - overlap), (tilt, 0, 0))
        made = shape_contacts(top, low, 0.01)
        assert len(made) == 4
        for gap, normal, point, _ in made:
            np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-12)
            y = point[1]
            height = 0.402 - overlap - 0.2 / math.cos(tilt) + y * math.tan(tilt) - 0.2
            assert gap == pytest.approx(height, abs=3e-5)
    # turned by 45 degrees the common part is an octagon, of which four corners stay
    top = at(Shape("collision", "box", (0.2, 0.2, 0.2)), (0, 0, 0.3), (0, 0, math.pi / 4))
    low = at(Shape("collision", "box", (0.2, 0.2, 0.4)), (0, 0, 0))
    made = shape_contacts(top, low, 0.01)
    assert len(made) == 4
    points = np.array([point for _, _, point, _ in made])
    np.testing.assert_allclose(points[:, 2], 0.2, atol=1e-9)
    np.testing.assert_allclose(
        points[:, :2].max(axis=0) - points[:, :2].min(axis=0), 0.2, atol=0.06
    )


@needs_coal
def test_beams_that_cross_and_bodies_on_edges() -> None:
    """Corners of one over the face of the other there are none: edges cross."""
    beam = Shape("collision", "box", (1.0, 0.1, 0.1))
    made = shape_contacts(at(beam, (0, 0, 0.1), (0, 0, math.pi / 2)), at(beam, (0, 0, 0)), 0.01)
    assert sorted(tuple(point.round(9) + 0.0) for _, _, point, _ in made) == [
        (x, y, 0.05) for x in (-0.05, 0.05) for y in (-0.05, 0.05)
    ]
    # on its edge: the edge's two ends over the face
    box = Shape("collision", "box", (0.2, 0.2, 0.2))
    top = at(box, (0, 0, 0.1 + 0.1 * math.sqrt(2)), (math.pi / 4, 0, 0))
    made = shape_contacts(top, at(Shape("collision", "box", (0.4, 0.4, 0.2)), (0, 0, 0)), 0.01)
    assert sorted(tuple(point.round(6) + 0.0) for _, _, point, _ in made) == [
        (-0.1, 0, 0.1),
        (0.1, 0, 0.1),
    ]
    # edge across edge: one point
    low = at(Shape("collision", "box", (1.0, 0.2, 0.2)), (0, 0, 0), (math.pi / 4, 0, 0))
    top = at(
        Shape("collision", "box", (0.2, 1.0, 0.2)),
        (0, 0, 0.2 * math.sqrt(2) + 0.001),
        (0, math.pi / 4, 0),
    )
    ((gap, normal, point, _),) = shape_contacts(top, low, 0.005)
    assert gap == pytest.approx(0.001, abs=1e-9)
    np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(point, [0, 0, 0.1 * math.sqrt(2) + 0.0005], atol=1e-6)


@needs_coal
def test_cylinders_and_capsules_on_a_box() -> None:
    """Lying: two points; standing: four on the rim, or the corners of a box that is smaller."""
    box = at(Shape("collision", "box", (1.0, 1.0, 0.2)), (0, 0, 0))
    for name, radius, half in (("capsule", 0.1, 0.15), ("cylinder", 0.12, 0.15)):
        lying = at(SHAPES[name], (0, 0, 0.1 + radius + 0.001), (0, math.pi / 2, 0))
        made = shape_contacts(lying, box, 0.005)
        np.testing.assert_allclose([gap for gap, *_ in made], 0.001, atol=1e-9)
        assert sorted(round(point[0], 9) for _, _, point, _ in made) == [-half, half]
    standing = at(SHAPES["cylinder"], (0, 0, 0.25))
    made = shape_contacts(standing, box, 0.005)
    assert len(made) == 4
    points = np.array([point for _, _, point, _ in made])
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), 0.12, rtol=1e-6)
    np.testing.assert_allclose(points.mean(axis=0), [0, 0, 0.1], atol=0.05)
    small = at(Shape("collision", "box", (0.1, 0.1, 0.1)), (0, 0, 0.45))
    points = np.array([point for _, _, point, _ in shape_contacts(small, standing, 0.005)])
    np.testing.assert_allclose(np.abs(points[:, :2]), 0.05, atol=1e-9)
    assert len(points) == 4


@needs_coal
def test_shapes_that_just_touch_face_to_face_at_equal_size() -> None:
    """Corner over corner, up to rounding: four contacts, at any orientation."""
    box = Shape("collision", "box", (0.2, 0.2, 0.2))
    for seed in range(20):
        turn = Rotation.random(random_state=seed)
        apart = turn.apply([0, 0, 0.2])
        made = shape_contacts(
            at(box, apart, turn.as_rotvec()), at(box, (0, 0, 0), turn.as_rotvec()), 0.01
        )
        assert len(made) == 4
        np.testing.assert_allclose([gap for gap, *_ in made], 0.0, atol=1e-9)
        points = turn.inv().apply([point for _, _, point, _ in made])
        np.testing.assert_allclose(np.abs(points), 0.1, atol=2e-6)


@needs_coal
def test_a_mesh_is_its_convex_hull(tmp_path: Any) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((0.2, 0.3, 0.4)).export(tmp_path / "box.stl")
    source = '<robot name="r"><link name="world"/>' + "".join(
        solid(name, '<mesh filename="box.stl"/>') for name in "ab"
    )
    (tmp_path / "r.urdf").write_text(source + free("a") + free("b") + "</robot>")
    model = rm.load(tmp_path / "r.urdf")
    q = placed(model, a=(0, 0, 0), b=(0.02, 0.03, 0.402))
    made = Collider(model)(q)
    same = Collider(bodies(a='<box size="0.2 0.3 0.4"/>', b='<box size="0.2 0.3 0.4"/>'))(q)
    assert len(made) == len(same) == 4
    for one in made:
        other = min(same, key=lambda each: float(np.linalg.norm(each.point - one.point)))
        np.testing.assert_allclose(one.point, other.point, atol=1e-7)
        np.testing.assert_allclose(one.normal, other.normal, atol=1e-7)
        assert one.gap == pytest.approx(0.002, abs=1e-7)


# ---- a collider ----------------------------------------------------------------------------------


def test_contacts_of_a_model() -> None:
    text = robot(
        '<link name="world"/>',
        solid("a", BALL, '<surface friction="0.3"/>'),
        solid("b", BALL, '<surface restitution="0.4"/>'),
        solid("c", ROD),
        *map(free, "abc"),
    )
    model = rm.load(text.encode())
    collider = Collider(model, True, friction=0.6, restitution=0.1)
    assert collider.pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    assert collider.slots == 3
    q = placed(model, a=(0, 0, 1), b=(0, 0.205, 1), c=(0, 5, 0))
    (contact,) = collider(q)
    assert (contact.link, contact.other) == ("a", "b")
    assert (contact.friction, contact.restitution) == (0.3, 0.4)
    assert contact.gap == pytest.approx(0.005)
    np.testing.assert_allclose(contact.normal, [0, -1, 0], atol=1e-12)
    np.testing.assert_allclose(contact.point, [0, 0.1025, 1], atol=1e-12)
    q[8] += 1e-3  # the name stays
    (later,) = collider(q)
    assert later.name == contact.name
    assert Collider(model, [("a", "b")], margin=1e-3)(q) == []
    assert Collider(model, [])(q) == []


def test_boxes_need_coal_and_round_shapes_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collision, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="contact between 'a' and 'b' needs coal: pip install"):
        Collider(bodies(a=BOX, b=BALL))
    Collider(bodies(a=ROD, b=BALL))  # closed forms


def test_shapes_that_are_left_out() -> None:
    text = robot(
        '<link name="world"/>',
        solid("a", BALL),
        solid("b", BALL),
        free("a"),
        free("b"),
    )
    model = rm.load(text.encode())
    (sphere,) = model.description.links[2].shapes
    shapes = (sphere, Shape("collision", "plane"))
    links = (*model.description.links[:2], replace(model.description.links[2], shapes=shapes))
    model = replace(model, description=replace(model.description, links=links))
    with pytest.warns(rm.DescriptionWarning, match="plane touches no other link"):
        Collider(model)


# ---- motions -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_balls_exchange_their_velocities() -> None:
    """Head on with restitution 1, without gravity and friction."""
    balls = [solid(name, BALL).replace(INERTIAL, CENTRED) for name in "ab"]
    text = robot('<link name="world"/>', *balls, free("a"), free("b"))
    model = rm.load(text.encode(), gravity=(0, 0, 0))
    q = placed(model, a=(0, 0, 0), b=(0.5, 0, 0))
    v = np.zeros(12)
    v[3] = 2.0
    motion = rm.simulate(
        model, q, v, duration=0.3, step=1e-3,
        contacts=Collider(model, True, friction=0.0, restitution=1.0),
    )  # fmt: skip
    np.testing.assert_allclose(motion.v[-1], np.roll(v, 6), atol=1e-9)
    late = 2.0 * 1e-3 + 1e-12  # they meet where a step ends: by rounding in the next one
    assert motion.q[-1, 0] == pytest.approx(0.3, abs=late)
    assert motion.q[-1, 7] == pytest.approx(0.5 + 2.0 * 0.15, abs=late)


def fall(model: rm.Model, q: Array, steps: int, **options: Any) -> rm.motion.Trajectory:
    """A motion from rest whose rollouts, of two at once, are the same."""
    motion = rm.simulate(model, q, duration=1e-3 * steps, collisions=True, **options)
    made = rm.rollout(
        model, np.stack([q, q]), np.zeros(model.nv), np.zeros((steps, model.nv)), 1e-3,
        collisions=True, **options,
    )  # fmt: skip
    np.testing.assert_allclose(made.q[1], motion.q, rtol=0, atol=1e-10)
    assert motion.contact_residual.max() <= 1e-10
    assert made.contact_forces.shape[1:] == motion.contact_forces.shape
    np.testing.assert_allclose(made.contact_forces[0], motion.contact_forces, rtol=0, atol=1e-3)
    return motion


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.0, np.zeros((2, 2))])
def test_a_ball_lands_on_another_one(height: Any) -> None:
    """On a rail: the time, and at rest the weights, on a plane and on heights."""
    rails = [
        f'<joint name="of_{name}" type="prismatic"><parent link="world"/><child link="{name}"/>'
        '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="1" velocity="9"/></joint>'
        for name in "ab"
    ]
    balls = [solid(name, BALL).replace(INERTIAL, CENTRED) for name in "ab"]
    model = rm.load(robot('<link name="world"/>', *balls, *rails).encode())
    motion = fall(model, np.array([0.1, 0.5]), 400, ground=rm.Ground(height=height))
    weight = 3.0 * 9.81
    np.testing.assert_allclose(
        motion.contact_forces[-1, :, 2], [2 * weight, 0.0, -weight], rtol=0, atol=1e-8
    )
    assert [(pair.link, pair.other) for pair in motion.contact_pairs] == [("a", "b")]
    np.testing.assert_allclose(motion.contact_places[-1, 2], [0.0, 0.0, 0.2], atol=1e-6)
    assert [event[1:] for event in motion.events] == [
        ("touch-down", "a"), ("touch-down", ("a", "b"))
    ]  # fmt: skip
    assert motion.events[1].time == pytest.approx(math.sqrt(2 * 0.2 / 9.81), abs=1e-3)


@pytest.mark.slow
def test_a_heap_falls_together() -> None:
    """A ball and a capsule: momentum changes by weight and the ground's forces, energy falls."""
    names = {"a": BALL, "b": ROD}
    solids = [solid(name, shape).replace(INERTIAL, CENTRED) for name, shape in names.items()]
    model = rm.load(robot('<link name="world"/>', *solids, *map(free, names)).encode())
    q = placed(model, a=(0, 0, 0.2), b=(0.05, 0.03, 0.4, 0, math.pi / 2, 0))
    motion = fall(model, q, 400, ground=rm.Ground(friction=0.5))
    assert {"a", "b", ("a", "b")} <= {event.link for event in motion.events}
    momentum = rm.dynamics.centroidal_momentum(model, motion.q, motion.v)[:, 3:]
    points = len(motion.contact_points)
    pushes = motion.contact_forces[:, :points].sum(axis=1) - [0, 0, 6 * 9.81]
    np.testing.assert_allclose(np.diff(momentum, axis=0), 1e-3 * pushes, rtol=0, atol=1e-12)
    rise = motion.energy - np.minimum.accumulate(motion.energy)
    assert rise.max() <= 1e-6 * motion.energy[0]


@pytest.mark.slow
@pytest.mark.parametrize(("tilts", "slides"), [(1.0, 0.0), (0.3, 0.3)])
def test_capsules_lie_on_each_other(tilts: float, slides: float) -> None:
    """One along another one, which is fixed, rocks and comes to rest: no energy is won.

    The nearest points jump from end to end, which is no turn of the contact.
    """
    elements = solid("world", ROD), solid("b", ROD), free("b")
    model = rm.load(robot(*elements).encode(), gravity=(-9.81, 0.0, 0.0))
    q, v = placed(model, b=(0.11, 0.0, 0.01)), np.array([0.0, tilts, 0.0, 0.0, slides, 0.0])
    motion = rm.simulate(model, q, v, duration=0.2, collisions=True)
    assert len(motion.contact_pairs) == 3
    assert motion.energy[-1] < motion.energy[0] - 0.05
    assert np.diff(motion.energy).max() <= 1e-3 * (motion.energy[0] - motion.energy[-1])


def test_collisions_that_rollouts_refuse() -> None:
    model = bodies(**dict.fromkeys("abcdef", ROD))
    tau, still = np.zeros((1, model.nv)), np.zeros(model.nv)
    with pytest.raises(ValueError, match="these are 45: name the pairs"):
        rm.rollout(model, model.neutral(), still, tau, 1e-3, collisions=True)
    boxes = bodies(a=BOX, b=BALL)
    with pytest.raises(ValueError, match="not with the box of 'a'; simulate has"):
        rm.rollout(boxes, boxes.neutral(), np.zeros(12), tau[:, :12], 1e-3, collisions=("a", "b"))


@pytest.mark.slow
@pytest.mark.parametrize("count", few([3, 8], 3))
def test_a_stack_of_boxes_stands(count: int) -> None:
    """Four contacts each: boxes rest without rocking, and bear each other's weight.

    Some edges and corners agree, so that rounding might choose between these: it does not.
    """
    pytest.importorskip("coal")
    names, side = [f"box{n}" for n in range(count)], 0.2
    inertial = (
        '<inertial><mass value="3"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    text = (
        '<robot name="r">'
        + solid("world", '<box size="2 2 0.2"/>')
        + "".join(solid(name, BOX).replace(INERTIAL, inertial) + free(name) for name in names)
        + "</robot>"
    )
    model = rm.load(text)
    q = placed(
        model,
        **{name: (0.02 * (n % 3), 0, 0.1 + side * (n + 0.5)) for n, name in enumerate(names)},
    )
    collider = Collider(model, True)
    assert ("world", "box0") in collider.pairs
    motion = rm.simulate(model, q, duration=0.05, step=2e-3, contacts=collider)
    assert len(motion.contact_pairs) == 4 * len(names)
    np.testing.assert_allclose(motion.q[-1], q, atol=1e-6)
    np.testing.assert_allclose(motion.v[-1], 0.0, atol=1e-6)
    by_pair: dict[Any, float] = {}
    for n, pair in enumerate(motion.contact_pairs):
        key = pair.link, pair.other
        by_pair[key] = by_pair.get(key, 0.0) + motion.contact_forces[-1, n, 2]
    assert by_pair["world", "box0"] == pytest.approx(-3 * count * 9.81, rel=1e-5)
    assert by_pair[names[-2], names[-1]] == pytest.approx(-3 * 9.81, rel=1e-5)
