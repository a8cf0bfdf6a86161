"""Clusters of graphs, by hand and by brute force."""

import itertools
from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import HEAVY, SEEDS, above, described, freed_tree, random_tree, tree_of

from robomodel.description import Description, Joint, Link, Pose
from robomodel.mechanism.graph import WORLD, SpanningTree, clusters, spanning_tree

# ---- helpers -------------------------------------------------------------------------------------


def random_ties(rng: np.random.Generator, n: int) -> list[tuple[int, ...]]:
    return [
        tuple(rng.choice(n, size=min(n, int(rng.integers(1, 4))), replace=False).tolist())
        for _ in range(rng.integers(0, 4))
    ]


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


def check_clusters(tree: SpanningTree, ties: list[tuple[int, ...]]) -> list[list[int]]:
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


def eager_closure(tree: SpanningTree, ties: list[tuple[int, ...]]) -> list[set[int]]:
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


def one_parent_each(tree: SpanningTree, groups: list[set[int]]) -> bool:
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
