"""Elimination orders of the classical algorithms, by the names of a problem's variables.

RNEA and CRBA are one order for different unknowns: torques, wrenches from the base outwards,
accelerations from the tips inwards, joint accelerations. ABA goes body by body from the tips. An
order contains the variables that a problem leaves unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from robomodel.errors import check_names, did_you_mean
from robomodel.instants.equations import pieces, polynomial_name
from robomodel.model.model import Model

CLASSICAL = ("rnea", "crba", "aba")
OWN_FRAME_STEP = 1000  # of a body's own frame, after the frames that lead to it


def checked_order(sizes: Mapping[str, int], order: Sequence[str]) -> tuple[str, ...]:
    """The order; raises unless it contains every variable once."""
    check_names(order, sizes, "no variable ")
    named = set(order)
    missing = [name for name in sizes if name not in named]
    if missing or len(order) != len(sizes):
        what = f"leaves out '{missing[0]}'" if missing else "repeats a variable"
        raise ValueError(f"the order {what}; it names each of {len(sizes)} variables once")
    return tuple(order)


def classical(variables: Iterable[str], model: Model, name: str) -> tuple[str, ...]:
    """The order of RNEA, CRBA or ABA over the unknown variables, for any robot.

    Multipliers of loops and couplings follow the joint accelerations of their cluster (ABA) or of
    all (CRBA, RNEA). Other variables, such as external wrenches, come first. Raises ValueError for
    other names.
    """
    if name not in CLASSICAL:
        raise ValueError(
            f"order '{name}' is not known{did_you_mean(name, CLASSICAL)}; known are "
            f"{', '.join(CLASSICAL)}, or list the variables (robomodel.papers.elimination_orders "
            "has further orders)"
        )
    body_of = {node.name: body for body, node in enumerate(model.nodes)}
    bodies: dict[str, list[tuple[int, int, str]]] = {}  # kind → (body, step, name)
    joints: dict[str, dict[int, list[str]]] = {"tau": {}, "qdd": {}}
    lambdas: dict[int, list[str]] = {}
    first: list[str] = []
    clusters = {loop.name: loop.cluster for loop in model.loops}
    clusters |= {polynomial_name(each.name): each.cluster for each in model.couplings}
    cluster_at = {cluster.name: cluster.index for cluster in model.clusters}
    joint_at = {joint.name: body for body, joint in enumerate(model.joints)}
    for variable in variables:
        kind, _, owner = variable.rstrip("]").partition("[")
        if kind in ("a", "f"):
            link, colon, step = owner.rpartition(":")
            if owner in body_of or not colon:
                bodies.setdefault(kind, []).append((body_of[owner], OWN_FRAME_STEP, variable))
            else:
                bodies.setdefault(kind, []).append((body_of[link], int(step), variable))
        elif kind in joints:
            body = joint_at[owner] if owner in joint_at else joint_at[owner.rpartition(".")[0]]
            joints[kind].setdefault(body, []).append(variable)
        elif kind == "lambda":
            of = clusters.get(owner, owner if owner in cluster_at else owner[: -len(" loops")])
            lambdas.setdefault(cluster_at[of], []).append(variable)
        else:
            first.append(variable)

    def outward(kind: str) -> list[str]:
        return [name for _, _, name in sorted(bodies.get(kind, []))]

    def inward(kind: str) -> list[str]:
        return outward(kind)[::-1]

    def joint(kind: str) -> list[str]:
        return [n for body in sorted(joints[kind], reverse=True) for n in joints[kind][body]]

    multipliers = [name for c in sorted(lambdas, reverse=True) for name in lambdas[c]]
    if name in ("rnea", "crba"):  # the same order; they differ in the known variables
        return (*joint("tau"), *first, *outward("f"), *inward("a"), *joint("qdd"), *multipliers)
    result = [*joint("tau"), *first]
    for cluster in reversed(model.clusters):
        late: list[str] = []
        alone = len(cluster.bodies) == 1
        for body in reversed(cluster.bodies):
            numbers = sorted({at for _, at, _ in _of(bodies, body)}, reverse=True)
            for number in numbers:
                result += [variable for _, at, variable in _of(bodies, body) if at == number]
                if number == OWN_FRAME_STEP and alone:
                    result += joints["qdd"].get(body, [])
            if not alone:
                late += joints["qdd"].get(body, [])
        result += [*late, *lambdas.get(cluster.index, [])]
    return tuple(result)


def _of(bodies: dict[str, list[tuple[int, int, str]]], body: int) -> list[tuple[int, int, str]]:
    """A body's wrenches, then its accelerations."""
    return [entry for kind in ("f", "a") for entry in bodies.get(kind, []) if entry[0] == body]


def tips(variables: Iterable[str], model: Model) -> tuple[str, ...]:
    """An order for estimation: torques, bodies from the tips, then what measurements determine.

    Multipliers and dependent joints precede independent joints; then a floating base, and external
    wrenches last.
    """
    kinds: dict[str, list[str]] = {}
    bodies: list[str] = []
    passive = [p.name for p in pieces(model) if not p.dofs]
    for name in classical(variables, model, "aba"):
        kind, _, owner = name.partition("[")
        if kind in ("a", "f"):
            bodies.append(name)
            continue
        if kind == "qdd":
            joint = owner[:-1]
            kind = "base" if joint == model.floating_base else kind
            kind = "dependent" if joint in passive else kind
        kinds.setdefault(kind, []).append(name)
    late = ("dependent", "lambda", "base", "qdd", "fx")
    first = [n for kind in kinds if kind not in late for n in kinds[kind]]
    return (*first, *bodies, *(n for kind in late for n in kinds.get(kind, [])))
