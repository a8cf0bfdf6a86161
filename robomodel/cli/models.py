"""``robomodel info``, ``robots``: a robot's bodies, joints and clusters; the shipped robots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from robomodel import robots as shipped
from robomodel.cli.robot import Robot
from robomodel.description import ONE_DOF, Link, Transmission
from robomodel.mechanism.springs import Spring
from robomodel.model import Model
from robomodel.model.elements import Cluster, Coupling, Joint, Loop
from robomodel.reports.document import (
    Bullets,
    Cell,
    Document,
    Section,
    Table,
    Verbatim,
    count,
    picked,
)
from robomodel.reports.validation.context import CheckContext


def info(robot: Robot) -> Document:
    """Print a robot's bodies, joints, clusters and limits, and what was assumed.

    Keys of the JSON document: robot, file, nq, nv, dof_names, mass, gravity, floating_base,
    bodies, joints, rotors (name, inertia, ratios by joint), clusters, loops, couplings,
    transmissions, fixed_links, fixed_mass, notes, warnings. SI units; null is infinite or
    undefined.

    Examples:
        robomodel info mini_cheetah
        robomodel info four_bar --json
        robomodel info mini_cheetah --floating-base
    """
    model = robot.load()
    notes = [*model.notes, *_assumptions(model, robot.floating_base)]
    summary = (
        f"{count(len(model.bodies), 'body', 'bodies')}, {count(len(model.joints), 'joint')}, "
        f"{count(len(model.clusters), 'cluster')}; nq = {model.nq}, nv = {model.nv}; "
        f"mass {model.mass:.6g} kg; {count(len(model.actuators), 'motor')}, "
        f"{count(model.nv, 'freedom')}"
    )
    data = {**_data(model), "notes": notes}
    return Document(model.name, summary, list(_sections(model, notes)), data)


# ---- data ---------------------------------------------------------------------


def _data(model: Model) -> dict[str, Any]:
    fixed = _fixed_links(model)
    names = "nq nv dof_names mass gravity floating_base bodies joints loops"
    return picked(model, *names.split(), robot="name") | {
        "rotors": [
            picked(each, "inertia", "ratios") | {"name": model.bodies[each.body].name}
            for each in CheckContext(model).rotors
        ],
        "clusters": [_cluster(model, each) for each in model.clusters],
        "couplings": [
            {**asdict(each), "equation": _equation(model, each)} for each in model.couplings
        ],
        "transmissions": [_transmission(each) for each in model.description.transmissions],
        "fixed_links": [link.name for link in fixed],
        "fixed_mass": sum(_mass(link) for link in fixed),
    }


def _cluster(model: Model, cluster: Cluster) -> dict[str, Any]:
    return picked(cluster, "name", "kind", "joints", "independent", "nv") | {
        "parent": "world" if cluster.parent < 0 else model.clusters[cluster.parent].name,
        "bodies": [model.bodies[body].name for body in cluster.bodies],
        "nq": cluster.q.stop - cluster.q.start,
    }


def _transmission(transmission: Transmission) -> dict[str, Any]:
    actuators = [picked(each, "name", "role", "reduction") for each in transmission.actuators]
    return picked(transmission, "name", "type", "joints") | {"actuators": actuators}


def _fixed_links(model: Model) -> list[Link]:
    """Links that fixed joints connect to the world."""
    held = {frame.name for frame in model.frames if frame.body < 0}
    return [link for link in model.description.links if link.name in held]


def _mass(link: Link) -> float:
    return link.inertial.mass if link.inertial else 0.0


def _assumptions(model: Model, floating_base: bool | None) -> list[str]:
    """Assumptions that neither the file nor the notes of the model state."""
    x, y, z = model.gravity
    notes = [f"gravity is {x:g} {y:g} {z:g} m/s²"]
    links, joints = model.description.links, model.description.joints
    children = {joint.child for joint in joints}
    root = next(link.name for link in links if link.name not in children)
    if model.floating_base is None:
        hint = "" if floating_base is False else " (--floating-base frees it)"
        notes.append(f"the root link '{root}' is fixed to the world{hint}")
    return notes


def _equation(model: Model, coupling: Coupling) -> str:
    """The coupling in readable form, solved for a dependent joint where its coefficient is ±1."""
    if coupling.coefficients:
        joint, of = (name for name, _ in coupling.terms)
        powers = [
            f"{c:.6g}" + (f" q({of})" if n else "") + (f"^{n}" if n > 1 else "")
            for n, c in enumerate(coupling.coefficients)
            if c
        ]
        return f"q({joint}) = {' + '.join(powers).replace('+ -', '- ')}"
    terms = dict(coupling.terms)
    units = [joint for joint, k in terms.items() if abs(k) == 1.0]
    if not units:
        return f"{_sum(terms.items())} = {coupling.offset:.6g}"
    independent = {joint.name for joint in model.joints if joint.independent}
    left = next((joint for joint in units if joint not in independent), units[0])
    k = terms.pop(left)
    right = _sum((joint, -other / k) for joint, other in terms.items())
    offset = coupling.offset / k
    if offset:
        right += f" {'-' if offset < 0 else '+'} {abs(offset):.6g}"
    return f"q({left}) = {right}"


def _sum(terms: Iterable[tuple[str, float]]) -> str:
    text = ""
    for joint, k in terms:
        sign = ("-" if k < 0 else "") if not text else (" - " if k < 0 else " + ")
        text += f"{sign}{'' if abs(k) == 1.0 else f'{abs(k):.6g} '}q({joint})"
    return text or "0"


# ---- text ----------------------------------------------------------------------------------------


def _sections(model: Model, notes: list[str]) -> Iterator[Section]:
    sprung: list[Joint | Spring] = [*model.joints, *model.springs]
    tree = ["", *_tree(model)]
    if any(not joint.independent for joint in model.joints):
        tree.append("* independent joint")
    yield Section("", [Verbatim(tree)])
    width = len(str(model.nv - 1))
    lists = {
        f"Degrees of freedom ({model.nv})": [
            f"{i:>{width}}  {name}" for i, name in enumerate(model.dof_names)
        ],
        "Loops": [_loop_line(loop) for loop in model.loops],
        "Couplings": [_coupling_line(model, coupling) for coupling in model.couplings],
        "Transmissions (a rotor given an inertia is a body above)": [
            _transmission_line(each) for each in model.description.transmissions
        ],
        "Springs, damping and friction": [
            _passive_line(each)
            for each in sprung
            if each.damping
            or each.friction
            or each.stiffness
            or (isinstance(each, Joint) and each.law)
        ],
        "Fixed to the world, not counted in the mass": [
            f"{link.name}: {f'{_mass(link):.6g} kg' if _mass(link) else 'no mass'}"
            for link in _fixed_links(model)
        ],
        "Assumed": notes,
    }
    for title, lines in lists.items():
        yield Section(title, [Bullets(lines)])
        if title.startswith("Degrees"):
            yield Section("Joints: axis in the child link, and limits", [_joints(model)])
            yield Section("Rotors", [_rotors(model)])


def _joints(model: Model) -> Table:
    """The joints of the file that move, but for those of rotors."""
    rotors = {model.joints[each.body].name for each in CheckContext(model).rotors}
    rows = [
        [each.name, each.type, " ".join(f"{x:g}" for x in each.axis),
         *(x if math.isfinite(x) else None
           for x in (each.limits.lower, each.limits.upper, each.limits.effort,
                     each.limits.velocity)),
         "m, N" if each.type == "prismatic" else "rad, N m"]
        for each in model.description.joints
        if each.type in ONE_DOF and each.name not in rotors
    ]  # fmt: skip
    return Table(["joint", "type", "axis", "lower", "upper", "effort", "velocity", "units"], rows)


def _rotors(model: Model) -> Table:
    at = {joint.name: n for n, joint in enumerate(model.joints)}
    rows: list[list[Cell]] = [
        [model.bodies[each.body].name, joint, ratio, each.inertia, ratio**2 * each.inertia,
         model.joints[at[joint]].units.inertia]
        for each in CheckContext(model).rotors
        for joint, ratio in each.ratios.items()
    ]  # fmt: skip
    return Table(["rotor", "joint", "ratio", "inertia [kg m²]", "reflected", "unit"], rows)


def _tree(model: Model) -> list[str]:
    """The clusters, each below its parent; those below the deepest level at that level."""
    children: dict[int, list[int]] = {}
    hooks: list[tuple[int, int]] = []  # for each cluster: where its children are drawn, and depth
    for n, cluster in enumerate(model.clusters):
        above, depth = (-1, 0) if cluster.parent < 0 else hooks[cluster.parent]
        children.setdefault(above, []).append(n)
        # deeper levels of the tree are not indented more, so that lines stay readable
        hooks.append((n, depth + 1) if depth < 16 else (above, depth))

    def drawn(parent: int, before: str) -> Iterator[str]:
        below = children.get(parent, [])
        for n in below:
            last = n == below[-1]
            first, *others = _cluster_label(model, model.clusters[n])
            yield f"{before}{'└── ' if last else '├── '}{first}"
            inner = before + ("    " if last else "│   ")
            yield from (inner + line for line in others)
            yield from drawn(n, inner)

    return ["world", *drawn(-1, "")]


def _cluster_label(model: Model, cluster: Cluster) -> list[str]:
    lines = [] if cluster.kind == "joint" else [f"{cluster.name} ({cluster.kind}, nv {cluster.nv})"]
    for at in cluster.bodies:
        joint, body = model.joints[at], model.bodies[at]
        mark = "*" if joint.independent else " "
        others = len(body.links) - 1
        lines.append(
            f"{mark} {joint.name} ({joint.type}): {joint.parent} → {joint.child}, "
            f"{body.mass:.6g} kg" + (f" with {count(others, 'fixed link')}" if others else "")
        )
    return lines


def _loop_line(loop: Loop) -> str:
    redundant = f"; {loop.redundant} of {loop.rows} are redundant" if loop.redundant else ""
    return (
        f"{loop.name} ({loop.type}) between {loop.predecessor} and {loop.successor}: "
        f"{count(loop.rows, 'condition')}, rank {loop.rank}{redundant}"
    )


def _passive_line(each: Joint | Spring) -> str:
    spring = f", stiffness {each.stiffness:.6g} about {each.reference:.6g}"
    spring += f" with a play of {each.deadband:.6g}" if each.deadband else ""
    law = ""
    if isinstance(each, Joint):
        more = {
            "more damping in reverse": each.law.damping,
            "more friction in reverse": each.law.friction,
            "more friction at rest": each.law.excess,
            "Stribeck velocity": each.law.velocity,
            "bias": each.law.bias,
        }
        law = "".join(f", {what} {value:.6g}" for what, value in more.items() if value)
    return (
        f"{each.name}: damping {each.damping:.6g}, friction {each.friction:.6g}"
        f"{law}{spring if each.stiffness else ''}"
    )


def _transmission_line(transmission: Transmission) -> str:
    kind = transmission.type and f" ({transmission.type})"
    actuators = ", ".join(f"{a.name}{_reduced(a.reduction)}" for a in transmission.actuators)
    joints = ", ".join(f"{j.name}{_reduced(j.reduction)}" for j in transmission.joints)
    return f"{transmission.name}{kind}: {actuators and f'{actuators} → '}{joints}"


def _reduced(reduction: float | None) -> str:
    return "" if reduction is None else f" (reduction {reduction:.6g})"


def _coupling_line(model: Model, coupling: Coupling) -> str:
    kind = "" if coupling.kind == "coupling" else f" ({coupling.kind})"
    redundant = "; redundant" if coupling.redundant else ""
    return f"{coupling.name}{kind}: {_equation(model, coupling)}{redundant}"


# ---- robots --------------------------------------------------------------------------------------


def robots() -> Document:
    """List the robots shipped with the package.

    Keys of the JSON document: robots (a list: name, nv, bodies, clusters, mass, about, source,
    path), warnings.

    Examples:
        robomodel robots
        robomodel robots --json
    """
    rows = [_row(name) for name in shipped.names()]
    keys = ("name", "nv", "bodies", "clusters", "mass", "about")
    listing = Table(
        ["robot", "dof", "bodies", "clusters", "kg", "about"],
        [[row[k] for k in keys] for row in rows],
    )
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row["source"]:
            sources.setdefault(row["source"], []).append(row["name"])
    lines = [f"{', '.join(names)}: {text}" for text, names in sources.items()]
    sections = [Section("", [listing]), Section("sources", [Bullets(lines)])]
    return Document("", "", sections, {"robots": rows})


def _row(name: str) -> dict[str, Any]:
    model, path = shipped.load(name), shipped.path(name)
    about, source = _comment(path)
    return {
        "name": name,
        "nv": model.nv,
        "bodies": len(model.bodies),
        "clusters": len(model.clusters),
        "mass": model.mass,
        "about": about,
        "source": source,
        "path": str(path),
    }


def _comment(path: Path) -> tuple[str, str]:
    """The first sentence of a robot file's top comment, and the one after "Source:", if any."""
    _, _, comment = path.read_text(encoding="utf-8").partition("<!--")
    words = " ".join(comment.partition("-->")[0].split())
    sentences = words, words.partition("Source: ")[2]
    about, source = (text.partition(". ")[0].removesuffix(".") for text in sentences)
    return about, source
