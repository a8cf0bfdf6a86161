"""Spanning trees and clusters: small ones by hand, many random ones by brute force."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robomodel.description import Description, Inertial, Joint, Link, Pose, rotation_from_rpy
from robomodel.model.graph import WORLD, Tree, clusters, root_link, spanning_tree
from robomodel.model.options import with_options
from robomodel.poses import compose, inverse

HEAVY = Inertial(1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
SEEDS = st.integers(0, 2**32 - 1)


# ---- helpers -------------------------------------------------------------------------------------


def described(*joints: tuple[str, str, str], massless: tuple[str, ...] = ()) -> Description:
    """Joints as (parent, child, type), named by their child; links in order of appearance."""
    links = dict.fromkeys(name for parent, child, _ in joints for name in (parent, child))
    return Description(
        "robot",
        tuple(Link(name, None if name in massless else HEAVY) for name in links),
        tuple(Joint(f"to_{child}", kind, parent, child) for parent, child, kind in joints),
    )


def freed_tree(description: Description) -> Tree:
    return spanning_tree(with_options(description, floating_base=True))


def moved_links(tree: Tree) -> list[str]:
    return [joint.child for joint in tree.joints]


def matrix(pose: Pose) -> np.ndarray:
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = pose.rotation, pose.xyz
    return result


def random_pose(rng: np.random.Generator) -> Pose:
    x, y, z, *rpy = rng.uniform(-1, 1, 6).tolist()
    return Pose((x, y, z), rotation_from_rpy(*rpy))


def tree_of(parents: list[int]) -> Tree:
    """A tree of bare bodies; parents come before children."""
    depths: list[int] = []
    for parent in parents:
        depths.append(0 if parent == WORLD else depths[parent] + 1)
    joints = tuple(
        Joint(f"j{i}", "revolute", "base" if p == WORLD else f"b{p}", f"b{i}")
        for i, p in enumerate(parents)
    )
    return Tree("base", joints, tuple(parents), tuple(depths), {})


def random_tree(rng: np.random.Generator, n: int) -> Tree:
    """Numbered depth first, as spanning trees are."""
    parents: list[int] = []
    path: list[int] = []
    for body in range(n):
        path = path[: int(rng.integers(max(0, len(path) - 3), len(path) + 1))]
        parents.append(path[-1] if path else WORLD)
        path.append(body)
    return tree_of(parents)


def random_ties(rng: np.random.Generator, n: int) -> list[tuple[int, ...]]:
    return [
        tuple(rng.choice(n, size=min(n, int(rng.integers(1, 4))), replace=False).tolist())
        for _ in range(rng.integers(0, 4))
    ]


def above(tree: Tree, body: int) -> list[int]:
    """The body itself, then what it hangs on, up to the world."""
    result = [body]
    while body != WORLD:
        body = tree.parents[body]
        result.append(body)
    return result


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
    assert tree.depths == (0, 1, 1, 0, 1, 1)
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
    for body, (joint, parent, depth) in enumerate(
        zip(tree.joints, tree.parents, tree.depths, strict=True)
    ):
        said = by_child[joint.child]
        assert parent == tree.places[said.parent].body < body
        assert depth == len(above(tree, body)) - 2
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
    assert (tree.joints, tree.parents, tree.depths) == ((), (), ())
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
    assert tree.depths == (0, 1)
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
    order = sorted(range(len(tree.joints)), key=lambda body: (tree.depths[body], -body))
    other = tree.renumbered(order)
    assert moved_links(other) == [moved_links(tree)[body] for body in order]
    assert other.root == tree.root
    for joint, parent, depth in zip(other.joints, other.parents, other.depths, strict=True):
        body = tree.joints.index(joint)
        assert depth == tree.depths[body]
        before = tree.parents[body]
        assert parent == (WORLD if before == WORLD else order.index(before))
    assert set(other.places) == set(tree.places)
    for name, place in tree.places.items():
        body = WORLD if place.body == WORLD else order.index(place.body)
        assert (other.places[name].body, other.places[name].pose) == (body, place.pose)


# ---- clusters by hand ----------------------------------------------------------------------------


def test_without_ties_every_body_is_a_cluster() -> None:
    tree = tree_of([WORLD, 0, 1, 0, WORLD])
    assert clusters(tree, []) == [[0], [1], [2], [3], [4]]
    assert clusters(tree, [(1,), (3,)]) == [[0], [1], [2], [3], [4]]
    assert clusters(tree_of([]), []) == []


def test_ties_that_share_a_body_merge() -> None:
    #      0 - {1, 2, 3, 4, 5}
    tree = tree_of([WORLD, 0, 0, 0, 0, 0])
    assert clusters(tree, [(1, 2), (4, 5)]) == [[0], [1, 2], [3], [4, 5]]
    assert clusters(tree, [(1, 2), (4, 5), (5, 1)]) == [[0], [1, 2, 4, 5], [3]]
    assert clusters(tree, [(4, 5), (4, 5), (5, 4)]) == [[0], [1], [2], [3], [4, 5]]


def test_a_loop_on_the_world() -> None:
    """A four-bar: two bodies on one side, one on the other; what hangs on it stays apart."""
    tree = tree_of([WORLD, 0, 1, WORLD, 3])
    assert clusters(tree, [(0, 1, 3)]) == [[0, 1, 3], [2], [4]]


def test_a_chain_tied_to_the_world() -> None:
    tree = tree_of([WORLD, 0, 1, 2])
    assert clusters(tree, [(0, 1, 2)]) == [[0, 1, 2], [3]]


def test_siblings_stay_off_their_parent() -> None:
    tree = tree_of([WORLD, 0, 1, 0, 3])
    assert clusters(tree, [(1, 3)]) == [[0], [1, 3], [2], [4]]


def test_bodies_between_are_absorbed() -> None:
    """A belt from the hip to the foot takes in the knee."""
    tree = tree_of([WORLD, 0, 1, 2])
    assert clusters(tree, [(0, 2)]) == [[0, 1, 2], [3]]
    assert clusters(tree, [(1, 3)]) == [[0], [1, 2, 3]]


def test_bodies_between_branches_are_absorbed() -> None:
    """The tips of two branches: both branches come along, their common ancestor does not."""
    #     0 - 1 - 2 - 3 - 4
    #       \ 5 - 6 - 7
    tree = tree_of([WORLD, 0, 1, 2, 3, 0, 5, 6])
    assert clusters(tree, [(3, 6)]) == [[0], [1, 2, 3, 5, 6], [4], [7]]
    # a branch of the branch does not lie between
    tree = tree_of([WORLD, 0, 1, 1, 0, 4, 4])
    assert clusters(tree, [(2, 5)]) == [[0], [1, 2, 4, 5], [3], [6]]


def test_branches_on_the_world_are_absorbed() -> None:
    tree = tree_of([WORLD, 0, WORLD, 2])
    assert clusters(tree, [(1, 3)]) == [[0, 1, 2, 3]]
    assert clusters(tree, [(0, 3)]) == [[0, 2, 3], [1]]


def test_several_output_bodies() -> None:
    """Children of two bodies of one cluster, tied: they hang on that cluster, by two bodies."""
    tree = tree_of([WORLD, 0, 1, 0, 3])
    assert clusters(tree, [(1, 3), (2, 4)]) == [[0], [1, 3], [2, 4]]
    assert clusters(tree, [(2, 4), (1, 3)]) == [[0], [1, 3], [2, 4]]
    # the same on the world, and once more above
    tree = tree_of([WORLD, 0, 1, WORLD, 3, 4])
    assert clusters(tree, [(0, 3), (1, 4), (2, 5)]) == [[0, 3], [1, 4], [2, 5]]
    assert clusters(tree, [(2, 5), (1, 4), (0, 3)]) == [[0, 3], [1, 4], [2, 5]]


def test_below_several_output_bodies() -> None:
    """What lies between ends at the cluster that all hang on, not at a body that they share."""
    tree = tree_of([WORLD, 0, 1, 2, 0, 4, 5])
    assert clusters(tree, [(1, 4), (3, 6)]) == [[0], [1, 4], [2, 3, 5, 6]]
    tree = tree_of([WORLD, 0, 1, WORLD, 3, 4])
    assert clusters(tree, [(2, 5), (0, 3)]) == [[0, 3], [1, 2, 4, 5]]


def test_circles_become_one() -> None:
    """Two clusters, each of which hangs on the other."""
    tree = tree_of([WORLD, 0, WORLD, 2])
    assert clusters(tree, [(0, 3), (1, 2)]) == [[0, 1, 2, 3]]
    tree = tree_of([WORLD, 0, 1, 0, 3, 0])
    assert clusters(tree, [(1, 4), (2, 3)]) == [[0], [1, 2, 3, 4], [5]]


def test_absorbing_part_of_a_cluster_absorbs_all_of_it() -> None:
    #     0 - 1 - 2 - 3     1 and 4 are tied; 3 and 6 take 2 with them
    #     |   4
    #     |   5 - 6
    tree = tree_of([WORLD, 0, 1, 2, 0, 0, 5])
    assert clusters(tree, [(1, 4), (3, 6)]) == [[0], [1, 2, 3, 4, 5, 6]]


def test_order_of_the_cluster_tree() -> None:
    """Parents first, depth first, children by their first body: not simply by their bodies."""
    #     0 - 1 - 2,  3 - 4,  5 - 6: the cluster 1, 5 comes before 3, and 2 and 6 before it too
    tree = tree_of([WORLD, 0, 1, 0, 3, 0, 5])
    assert clusters(tree, [(1, 5)]) == [[0], [1, 5], [2], [6], [3], [4]]


# ---- clusters by brute force ---------------------------------------------------------------------


def check_clusters(tree: Tree, ties: list[tuple[int, ...]]) -> list[list[int]]:
    """All that clusters() promises whatever the tree and the ties; returns the clusters."""
    found = clusters(tree, ties)
    n = len(tree.parents)
    assert sorted(itertools.chain(*found)) == list(range(n))
    assert all(group == sorted(group) for group in found)
    of = {body: index for index, group in enumerate(found) for body in group} | {WORLD: WORLD}
    for tie in ties:
        assert len({of[body] for body in tie}) == 1
    hangs_on = []
    for index, group in enumerate(found):
        outside = {of[tree.parents[body]] for body in group} - {index}
        assert len(outside) == 1
        hangs_on.append(outside.pop())
        assert hangs_on[-1] < index
    assert [index for index, _ in enumerate(found)] == depth_first(found, hangs_on)
    return found


def depth_first(found: list[list[int]], hangs_on: list[int], at: int = WORLD) -> list[int]:
    children = [index for index, above in enumerate(hangs_on) if above == at]
    result = []
    for child in sorted(children, key=lambda index: found[index][0]):
        result += [child, *depth_first(found, hangs_on, child)]
    return result


def eager_closure(tree: Tree, ties: list[tuple[int, ...]]) -> list[set[int]]:
    """Ties, each with all between its bodies and the common ancestor of what they hang on.

    Bodies are merged even where they hang on one cluster already. This is a least fixed point (a
    larger set has a larger closure), so no order of merging leads beyond it.
    """
    groups = [set(tie) for tie in ties]
    while True:
        grown = []
        for group in merged(groups):
            outside = {tree.parents[body] for body in group} - group
            top = set.intersection(*(set(above(tree, body)) for body in outside))
            grown.append(group.union(*(set(above(tree, body)) - top for body in outside)))
        if grown == groups:
            return groups
        groups = grown


def merged(sets: Iterable[Iterable[int]]) -> list[set[int]]:
    """Those that share a body, as one."""
    groups: list[set[int]] = []
    for each in map(set, sets):
        touching = [group for group in groups if group & each]
        groups = [group for group in groups if not group & each] + [each.union(*touching)]
    return groups


def joined(found: Iterable[Iterable[int]]) -> list[list[int]]:
    """The clusters of several bodies, in the order of their first bodies."""
    return sorted(sorted(group) for group in found if len(group) > 1)


def one_parent_each(tree: Tree, groups: list[set[int]]) -> bool:
    """Whether every one of these clusters, other bodies being each its own, hangs on one."""
    of = {body: index for index, group in enumerate(groups) for body in group}
    for group in groups:
        outside = {tree.parents[body] for body in group} - group
        if len({of.get(body, ("single", body)) for body in outside}) != 1:
            return False
    return True


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=300, derandomize=True)
def test_random_ties(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree, ties = random_tree(rng, n), random_ties(rng, n)
    found = check_clusters(tree, ties)
    # nothing joins without a reason
    largest = eager_closure(tree, ties)
    for group in joined(found):
        assert any(set(group) <= closure for closure in largest)
    if one_parent_each(tree, merged(ties)):
        assert joined(found) == joined(merged(ties))
    # neither the order of the ties nor that within them matters
    shuffled = [tuple(rng.permutation(tie).tolist()) for tie in ties]
    rng.shuffle(shuffled)
    assert clusters(tree, shuffled) == found
    # once clusters, nothing is left to be merged
    assert clusters(tree, [tuple(group) for group in found]) == found


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=200, derandomize=True)
def test_one_tie_is_its_closure(seed: int, n: int) -> None:
    """With a single tie there is no choice: the bodies, and all that lies between."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    tie = tuple(rng.choice(n, size=min(n, int(rng.integers(1, 5))), replace=False).tolist())
    (closure,) = eager_closure(tree, [tie])
    found = check_clusters(tree, [tie])
    assert sorted(closure) in found
    assert all(len(group) == 1 for group in found if group != sorted(closure))


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=200, derandomize=True)
def test_loops_tie_their_whole_paths(seed: int, n: int) -> None:
    """Ties that hold all between two bodies and their common ancestor never absorb anything."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    ties = []
    for _ in range(rng.integers(1, 4)):
        a, b = rng.integers(-1, n, size=2).tolist()
        ancestor = tree.common_ancestor([a, b])
        ties.append((*tree.path(a, ancestor), *tree.path(b, ancestor)))
    ties = [tie for tie in ties if tie]
    found = check_clusters(tree, ties)
    assert joined(found) == joined(merged(ties))


@given(SEEDS, st.integers(4, 20))
@settings(max_examples=200, derandomize=True)
def test_nothing_is_absorbed_where_ties_hang_on_one_cluster(seed: int, n: int) -> None:
    """Ties upon ties, each between bodies that hang on one cluster (or on the world)."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    ties: list[tuple[int, ...]] = []
    for _ in range(3 * n):
        tie = tuple(rng.choice(n, size=2, replace=False).tolist())
        if one_parent_each(tree, merged([*ties, tie])):
            ties.append(tie)
    shuffled = [ties[i] for i in rng.permutation(len(ties))]
    assert joined(check_clusters(tree, shuffled)) == joined(merged(ties))


# ---- size ----------------------------------------------------------------------------------------

LONG = 5000


def test_a_long_chain_needs_no_recursion() -> None:
    names = ["base", *(f"l{i}" for i in range(LONG))]
    chain = described(*((a, b, "revolute") for a, b in itertools.pairwise(names)))
    tree = freed_tree(chain)
    assert len(tree.joints) == LONG + 1
    assert tree.depths == tuple(range(LONG + 1))
    assert tree.common_ancestor([LONG, LONG // 2]) == LONG // 2
    assert len(tree.path(LONG, WORLD)) == LONG + 1
    assert clusters(tree, []) == [[body] for body in range(LONG + 1)]
    # the ends are tied, and all between
    assert clusters(tree, [(0, LONG)]) == [list(range(LONG + 1))]
    assert clusters(tree, [(1, LONG - 1)]) == [[0], list(range(1, LONG)), [LONG]]
    # every two neighbours
    pairs = [(body, body + 1) for body in range(0, LONG, 2)]
    assert clusters(tree, pairs) == [*(list(pair) for pair in pairs), [LONG]]


def test_a_long_chain_of_fixed_joints() -> None:
    names = ["base", *(f"l{i}" for i in range(LONG))]
    step = Pose((0.0, 0.0, 1.0))
    description = Description(
        "robot",
        tuple(Link(name, HEAVY) for name in names),
        tuple(Joint(f"to_{b}", "fixed", a, b, step) for a, b in itertools.pairwise(names)),
    )
    tree = spanning_tree(description)
    assert tree.joints == ()
    assert tree.places[names[-1]].pose.xyz == (0.0, 0.0, float(LONG))


def test_a_wide_tree() -> None:
    star = described(*(("base", f"l{i}", "revolute") for i in range(LONG)))
    tree = spanning_tree(star)
    assert tree.parents == (WORLD,) * LONG
    assert clusters(tree, [(0, LONG - 1)])[0] == [0, LONG - 1]


def test_two_long_branches() -> None:
    """Tips of two branches of thousands of bodies: all is absorbed, in one step."""
    half = LONG // 2
    tree = tree_of([WORLD, *range(half - 1), WORLD, *range(half, LONG - 1)])
    assert tree.common_ancestor([half - 1, LONG - 1]) == WORLD
    assert clusters(tree, [(half - 1, LONG - 1)]) == [list(range(LONG))]
    assert len(clusters(tree, [(half - 2, LONG - 2)])) == 3
