"""Random connectivity graphs."""

import numpy as np
from hypothesis import strategies as st

from robomodel.description import Description, Inertial, Joint, Link
from robomodel.mechanism.graph import WORLD, SpanningTree, spanning_tree
from robomodel.model.options import with_options

HEAVY = Inertial(1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))

SEEDS = st.integers(0, 2**32 - 1)


def described(*joints: tuple[str, str, str], massless: tuple[str, ...] = ()) -> Description:
    """Joints as (parent, child, type), named by their child; links in order of appearance."""
    links = dict.fromkeys(name for parent, child, _ in joints for name in (parent, child))
    return Description(
        "robot",
        tuple(Link(name, None if name in massless else HEAVY) for name in links),
        tuple(Joint(f"to_{child}", kind, parent, child) for parent, child, kind in joints),
    )


def freed_tree(description: Description) -> SpanningTree:
    return spanning_tree(with_options(description, floating_base=True))


def tree_of(parents: list[int]) -> SpanningTree:
    """A tree of bare bodies; parents come before children."""
    joints = tuple(
        Joint(f"j{i}", "revolute", "base" if p == WORLD else f"b{p}", f"b{i}")
        for i, p in enumerate(parents)
    )
    return SpanningTree("base", joints, tuple(parents), {})


def random_tree(rng: np.random.Generator, n: int) -> SpanningTree:
    """Numbered depth first, as spanning trees are."""
    parents: list[int] = []
    path: list[int] = []
    for body in range(n):
        path = path[: int(rng.integers(max(0, len(path) - 3), len(path) + 1))]
        parents.append(path[-1] if path else WORLD)
        path.append(body)
    return tree_of(parents)


def above(tree: SpanningTree, body: int) -> list[int]:
    """The body itself, then what it hangs on, up to the world."""
    result = [body]
    while body != WORLD:
        body = tree.parents[body]
        result.append(body)
    return result
