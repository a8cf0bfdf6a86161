"""The same robot where neighbouring hinges are parallel: axes that do not turn with them.

Of hinges about parallel axes that follow each other the bodies' internal axes may all stand as the
first joint stands. Between them transforms are then shifts, without rotation, and no vector, wrench
or composite inertia that is carried over them is turned: each body's own inertia and offsets are,
once, by all their angles (:class:`robomodel.dynamics.kinematics.state.Configuration`).
"""

from __future__ import annotations

from dataclasses import replace

from robomodel.model.graph import WORLD
from robomodel.model.joints import Revolute
from robomodel.model.model import Model


def unturned(model: Model) -> Model:
    """A model of the same robot whose parallel hinges leave axes unturned; itself without any.

    Bodies to which springs are fixed keep axes of their own.
    """
    held = {end.body for spring in model.springs for end in spring.ends or ()}
    found: set[int] = set()
    for body, node in enumerate(model.nodes):
        if node.parent == WORLD or node.spins or not isinstance(node.joint, Revolute):
            continue
        if node.parallel(model.nodes[node.parent]) and held.isdisjoint((body, node.parent)):
            found |= {body, node.parent}
    if not found:
        return model
    return replace(
        model,
        nodes=tuple(
            replace(node, unturned=True) if body in found else node
            for body, node in enumerate(model.nodes)
        ),
    )
