"""Spanning trees and clusters: small ones by hand, many random ones by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import HEAVY, SEEDS, above, described, freed_tree, random_tree, tree_of

from robomodel.description import Description, Joint, Link, Pose, rotation_from_rpy
from robomodel.description.poses import compose, inverse
from robomodel.mechanism.graph import WORLD, SpanningTree, root_link, spanning_tree
from robomodel.model.options import with_options

# ---- helpers -------------------------------------------------------------------------------------


def moved_links(tree: SpanningTree) -> list[str]:
    return [joint.child for joint in tree.joints]


def matrix(pose: Pose) -> np.ndarray:
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = pose.rotation, pose.xyz
    return result


def random_pose(rng: np.random.Generator) -> Pose:
    x, y, z, *rpy = rng.uniform(-1, 1, 6).tolist()
    return Pose((x, y, z), rotation_from_rpy(*rpy))


# ---- poses ---------------------------------------------------------------------------------------


@given(SEEDS)
@settings(max_examples=25, derandomize=True)
def test_compose_and_inverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    outer, inner = random_pose(rng), random_pose(rng)
    np.testing.assert_allclose(
        matrix(compose(outer, inner)), matrix(outer) @ matrix(inner), atol=1e-15
    )
    np.testing.assert_allclose(matrix(inverse(outer)), np.linalg.inv(matrix(outer)), atol=1e-14)


def test_compose_with_the_identity_is_exact() -> None:
    pose = random_pose(np.random.default_rng(1))
    assert compose(Pose(), pose) == pose
    assert compose(pose, Pose()) == pose


# ---- spanning tree: order ------------------------------------------------------------------------


def test_depth_first_in_the_files_order() -> None:
    """Children in the order of their joints in the file, wherever the others stand."""
    tree = spanning_tree(
        described(
            ("c", "e", "revolute"),
            ("base", "c", "prismatic"),
            ("a", "d", "continuous"),
            ("base", "a", "revolute"),
            ("a", "b", "screw"),
            ("c", "f", "planar"),
        ),
    )
    assert tree.root == "base"
    assert moved_links(tree) == ["c", "e", "f", "a", "d", "b"]
    assert tree.parents == (WORLD, 0, 0, WORLD, 3, 3)
    assert tree.places["base"].body == WORLD
    assert [tree.places[name].body for name in moved_links(tree)] == list(range(6))


@st.composite
def descriptions(draw) -> Description:
    """A random tree of links, its joints in any order in the file; fixed joints among them."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(1, 12))
    joints = []
    for child in range(1, n + 1):
        parent = int(rng.integers(0, child))
        kind = str(rng.choice(["fixed", "fixed", "revolute", "prismatic", "spherical", "floating"]))
        joints.append(
            Joint(f"j{child}", kind, f"l{parent}", f"l{child}", random_pose(rng), damping=child)
        )
    order = rng.permutation(n)
    links = [Link(f"l{i}", HEAVY) for i in rng.permutation(n + 1)]
    return Description("robot", tuple(links), tuple(joints[i] for i in order))


def recursive_order(description: Description, link: str) -> list[str]:
    """Depth-first preorder of all links below one."""
    result = []
    for joint in description.joints:
        if joint.parent == link:
            result += [joint.child, *recursive_order(description, joint.child)]
    return result


@given(descriptions())
@settings(max_examples=100, derandomize=True)
def test_random_spanning_trees(description: Description) -> None:
    tree = spanning_tree(description)
    by_child = {joint.child: joint for joint in description.joints}
    order = recursive_order(description, "l0")
    moving = [name for name in order if by_child[name].type != "fixed"]
    assert tree.root == "l0"
    assert moved_links(tree) == moving
    assert set(tree.places) == {link.name for link in description.links}

    # the parent body is that of the nearest moving link on the way to the root
    for name, place in tree.places.items():
        link, rigid = name, np.eye(4)
        while link != "l0" and by_child[link].type == "fixed":
            rigid = matrix(by_child[link].origin) @ rigid
            link = by_child[link].parent
        body = WORLD if link == "l0" else moving.index(link)
        assert place.body == body
        np.testing.assert_allclose(matrix(place.pose), rigid, atol=1e-13)
    for body, (joint, parent) in enumerate(zip(tree.joints, tree.parents, strict=True)):
        said = by_child[joint.child]
        assert parent == tree.places[said.parent].body < body
        rigid = matrix(tree.places[said.parent].pose) @ matrix(said.origin)
        np.testing.assert_allclose(matrix(joint.origin), rigid, atol=1e-13)
        # all else is as the file says it
        assert (joint.name, joint.type, joint.parent, joint.damping) == (
            said.name,
            said.type,
            said.parent,
            said.damping,
        )


def test_lumped_poses_by_hand() -> None:
    """A bracket turned by a quarter, and a hinge mounted on its far end."""
    quarter = rotation_from_rpy(0.0, 0.0, np.pi / 2)
    description = Description(
        "robot",
        (Link("base"), Link("bracket"), Link("arm"), Link("tool")),
        (
            Joint("mount", "fixed", "base", "bracket", Pose((1.0, 0.0, 0.0), quarter)),
            Joint("hinge", "revolute", "bracket", "arm", Pose((2.0, 0.0, 0.0), quarter)),
            Joint("grip", "fixed", "arm", "tool", Pose((0.0, 0.0, 3.0), quarter)),
        ),
    )
    tree = spanning_tree(description)
    assert tree.places["bracket"].body == WORLD
    assert tree.places["bracket"].pose == Pose((1.0, 0.0, 0.0), quarter)
    (hinge,) = tree.joints
    assert hinge.origin == Pose((1.0, 2.0, 0.0), ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), UNIT_Z))
    assert tree.places["arm"].pose == Pose()
    assert tree.places["tool"].body == 0
    assert tree.places["tool"].pose == Pose((0.0, 0.0, 3.0), quarter)


UNIT_Z = (0.0, 0.0, 1.0)


def test_a_single_link() -> None:
    description = Description("robot", (Link("base", HEAVY),))
    tree = spanning_tree(description)
    assert (tree.joints, tree.parents) == ((), ())
    assert tree.places["base"].body == WORLD
    free = freed_tree(description)
    assert moved_links(free) == ["base"]
    assert free.joints[0].type == "floating"


# ---- spanning tree: floating bases ---------------------------------------------------------------


def test_floating_base_none_follows_the_file() -> None:
    arm = described(("base", "arm", "revolute"))
    assert [j.name for j in spanning_tree(arm).joints] == ["to_arm"]
    flying = described(("world", "body", "floating"), massless=("world",))
    assert [j.name for j in spanning_tree(flying).joints] == ["to_body"]


def test_floating_base_true_frees_the_root() -> None:
    arm = described(("base", "plate", "fixed"), ("plate", "arm", "revolute"))
    tree = freed_tree(arm)
    free = tree.joints[0]
    assert (free.name, free.type, free.child, free.origin) == (
        "floating_base",
        "floating",
        "base",
        Pose(),
    )
    assert moved_links(tree) == ["base", "arm"]
    assert tree.parents == (WORLD, 0)
    assert {name: place.body for name, place in tree.places.items()} == {
        "world": WORLD,
        "base": 0,
        "plate": 0,
        "arm": 1,
    }


def test_floating_base_true_adds_nothing_where_the_file_floats() -> None:
    flying = described(
        ("world", "body", "floating"), ("body", "arm", "revolute"), massless=("world",)
    )
    assert freed_tree(flying) == spanning_tree(flying)


@pytest.mark.parametrize(
    "description",
    [
        # a root with mass is a body, though its one joint floats
        described(("base", "moon", "floating")),
        # one joint floats, another does not
        described(("world", "body", "floating"), ("world", "arm", "revolute"), massless=("world",)),
        described(("world", "body", "floating"), ("world", "camera", "fixed"), massless=("world",)),
        # two float
        described(("world", "one", "floating"), ("world", "two", "floating"), massless=("world",)),
        # one joint, which does not float
        described(("world", "arm", "revolute"), massless=("world",)),
    ],
)
def test_floating_base_true_above_other_roots(description: Description) -> None:
    tree = freed_tree(description)
    file_order = moved_links(spanning_tree(description))
    assert moved_links(tree) == [root_link(description).name, *file_order]
    assert tree.joints[0].name == "floating_base"


def test_the_free_joint_takes_a_name_of_its_own() -> None:
    names = ["floating_base", "floating_base_0", "floating_base_1"]
    for taken in range(4):
        joints = [Joint(name, "revolute", "base", f"x{name}") for name in names[:taken]]
        links = [Link("base", HEAVY), *(Link(joint.child, HEAVY) for joint in joints)]
        tree = freed_tree(Description("r", tuple(links), tuple(joints)))
        found = [joint.name for joint in tree.joints]
        assert found[1:] == names[:taken]
        assert len(set(found)) == taken + 1
        assert found[0].startswith("floating_base")


def test_floating_base_false_fixes_a_root_that_floats() -> None:
    pose = random_pose(np.random.default_rng(2))
    description = Description(
        "robot",
        (Link("world"), Link("body", HEAVY), Link("arm", HEAVY), Link("ball", HEAVY)),
        (
            Joint("free", "floating", "world", "body", pose),
            Joint("hinge", "revolute", "body", "arm", pose),
            Joint("tether", "floating", "arm", "ball", pose),
        ),
    )
    tree = spanning_tree(with_options(description, floating_base=False))
    assert tree.places["body"].body == WORLD
    assert tree.places["body"].pose == compose(Pose(), pose)
    # what floats elsewhere goes on floating
    assert [(joint.name, joint.type) for joint in tree.joints] == [
        ("hinge", "revolute"),
        ("tether", "floating"),
    ]
    np.testing.assert_allclose(matrix(tree.joints[0].origin), matrix(pose) @ matrix(pose))


def test_floating_base_false_leaves_a_fixed_root() -> None:
    arm = described(("base", "arm", "revolute"), ("arm", "hand", "planar"))
    assert spanning_tree(with_options(arm, floating_base=False)) == spanning_tree(arm)


# ---- paths and common ancestors ------------------------------------------------------------------


def test_path_by_hand() -> None:
    tree = tree_of([WORLD, 0, 1, 0, 3])
    assert tree.path(2, WORLD) == (0, 1, 2)
    assert tree.path(2, 0) == (1, 2)
    assert tree.path(4, 3) == (4,)
    assert tree.path(3, 3) == ()
    assert tree.path(WORLD, WORLD) == ()


@given(SEEDS, st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=100, derandomize=True)
def test_common_ancestor(seed: int, n: int, count: int) -> None:
    """The deepest of what is above all of them; a body is above itself."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    bodies = rng.integers(-1, n, size=count).tolist()
    shared = set.intersection(*(set(above(tree, body)) for body in bodies))
    expected = max(shared, key=lambda body: len(above(tree, body)))
    assert tree.common_ancestor(bodies) == expected
    assert tree.common_ancestor(iter(bodies[::-1])) == expected
    for body in bodies:
        way = above(tree, body)
        assert tree.path(body, expected) == tuple(reversed(way[: way.index(expected)]))


@given(descriptions())
@settings(max_examples=50, derandomize=True)
def test_renumbered(description: Description) -> None:
    """The same links hang on the same links, under other numbers."""
    tree = spanning_tree(description)
    order = sorted(range(len(tree.joints)), key=lambda body: (len(tree.path(body, WORLD)), -body))
    other = tree.renumbered(order)
    assert moved_links(other) == [moved_links(tree)[body] for body in order]
    assert other.root == tree.root
    for joint, parent in zip(other.joints, other.parents, strict=True):
        body = tree.joints.index(joint)
        before = tree.parents[body]
        assert parent == (WORLD if before == WORLD else order.index(before))
    assert set(other.places) == set(tree.places)
    for name, place in tree.places.items():
        body = WORLD if place.body == WORLD else order.index(place.body)
        assert (other.places[name].body, other.places[name].pose) == (body, place.pose)
