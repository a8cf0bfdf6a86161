"""A model's parameters, in which its dynamics is linear, and models with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robomodel.description import Inertial, Pose
from robomodel.description import inertias as masses
from robomodel.description.poses import inverse
from robomodel.errors import Issue, UnknownNameError, check_names, warn_of_all
from robomodel.model.arguments import as_numbers
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Frame, Node
from robomodel.model.joints import Array, axisymmetric
from robomodel.model.model import Model
from robomodel.model.springs import tied_links
from robomodel.spatial import RigidInertia, symmetric

INERTIAL = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""Of a body: mass, mass · centre, and the inertia about its link's origin, in its link's axes."""
OF_JOINTS = ("armature", "damping", "friction")
ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""The places of the last six of the ten within the inertia."""
TOLERANCE = 1e-9  # of a pseudo-inertia's largest eigenvalue: a file's rounding


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters by name.

    Attributes:
        names: The names (p).
        values: The values (p,), ``values[i]`` that of ``names[i]``.
    """

    names: tuple[str, ...]
    values: Array

    def __getitem__(self, name: str) -> float:
        check_names([name], self.names, "no parameter ", error=UnknownNameError)
        return float(self.values[self.names.index(name)])

    def __repr__(self) -> str:
        if not self.names:
            return "<Parameters: none>"
        return f"<Parameters: {len(self.names)} of {self.names[0].rpartition('.')[0]!r} and others>"


@cached_on_model
def parameters(model: Model) -> Parameters:
    """The parameters in which inverse dynamics is linear: names and values [SI].

    Ten of each body: ``thigh.mass``, ``thigh.mx .my .mz`` (mass · centre of mass), ``thigh.Ixx .Ixy
    .Ixz .Iyy .Iyz .Izz`` about the link's origin, in the link's axes; links that are fixed to it
    count with it. Then of each joint with one freedom ``knee.armature``, ``knee.damping`` and
    ``knee.friction``, on its velocity, dependent joints and rotors' included; other joints have
    those of them that the file gives. Springs, and the joints of loops, have none.

    Args:
        model: The robot.

    Returns:
        parameters: Names and values.
    """
    values = [x for node in model.nodes for x in _ten(node, model.frame(node.name))]
    names = [f"{body.name}.{each}" for body in model.bodies for each in INERTIAL]
    for index, kind in of_joints(model):
        joint = model.joints[index]
        names.append(f"{joint.name}.{kind}")
        values.append(float(getattr(joint, kind)))
    result = np.array(values, dtype=float)
    result.flags.writeable = False
    return Parameters(tuple(names), result)


def count(model: Model) -> int:
    """How many parameters there are."""
    return len(INERTIAL) * len(model.nodes) + sum(1 for _ in of_joints(model))


def of_joints(model: Model) -> Iterator[tuple[int, str]]:
    """The parameters of joints, in their order: (index of the joint, kind)."""
    for index, joint in enumerate(model.joints):
        for kind in OF_JOINTS:
            if joint.nv == 1 or getattr(joint, kind):
                yield index, kind


def _ten(node: Node, link: Frame) -> tuple[float, ...]:
    """A body's ten parameters, in its link's axes."""
    inertia = masses.moved(node.inertia, inverse(link.placement))
    rows = inertia.inertia
    return (float(inertia.mass), *map(float, inertia.h), *(float(rows[i][j]) for i, j in ENTRIES))


def pseudo_inertia(values: Sequence[float]) -> Array:
    """[Σ h; hᵀ m] (4, 4) of ten parameters: positive semidefinite for every body that can be."""
    m, x, y, z, xx, xy, xz, yy, yz, zz = values
    trace = 0.5 * (xx + yy + zz)
    return np.array(
        [
            [trace - xx, -xy, -xz, x],
            [-xy, trace - yy, -yz, y],
            [-xz, -yz, trace - zz, z],
            [x, y, z, m],
        ]
    )


def with_parameters(model: Model, values: ArrayLike | Mapping[str, float]) -> Model:
    """The model with other parameters.

    Coordinates and their meaning are those of ``model``. Any finite values will do; bodies that
    cannot exist, and negative armature, damping and friction, raise a
    :class:`robomodel.DescriptionWarning`. The model can be written: the whole body's inertia is
    then that of the link of its name, and links that are fixed to it have none.

    Args:
        model: The robot.
        values: All values (p,) in the order of :func:`parameters`, or a mapping of some of their
            names to values; others stay.

    Returns:
        model: The robot with these.

    Raises:
        ValueError: Values of another number, or that are not finite.
        UnknownNameError: A name that is no parameter's.
    """
    before = parameters(model)
    after = _values(before, values)
    issues: list[Issue] = []
    sources = {link.name: link.source for link in model.description.links}
    nodes, bodies, joints = list(model.nodes), list(model.bodies), list(model.joints)
    changed: dict[str, Inertial | None] = {}
    size = len(INERTIAL)
    loaded = {model.frame(link).body for link in tied_links(model.description)}
    loaded |= {node.parent for node in model.nodes}
    for i, (node, body) in enumerate(zip(model.nodes, model.bodies, strict=True)):
        inertial = after[size * i : size * (i + 1)]
        if np.array_equal(inertial, before.values[size * i : size * (i + 1)]):
            continue
        if fault := _fault(inertial):
            issues.append(Issue(f"cannot exist with these parameters: {fault}", sources[body.name]))
        inertia = _inertia(inertial)
        turned = masses.moved(inertia, model.frame(node.name).placement)
        nodes[i] = replace(
            node, inertia=turned, axisymmetric=i not in loaded and axisymmetric(node.joint, turned)
        )
        com, about = masses.centred(inertia)
        bodies[i] = replace(body, mass=float(inertial[0]), com=com, inertia=about)
        changed.update(dict.fromkeys(body.links))
        xx, xy, xz, yy, yz, zz = (float(about[r][c]) for r, c in ENTRIES)
        changed[body.name] = Inertial(
            float(inertial[0]), (xx, xy, xz, yy, yz, zz), Pose(com), sources[body.name]
        )
    described = {joint.name: joint for joint in model.description.joints}
    resisting = [(joint.armature, joint.damping, joint.friction) for joint in joints]
    for at, (i, kind) in enumerate(of_joints(model), size * len(nodes)):
        value = float(after[at])
        if value == before.values[at]:
            continue
        name = joints[i].name
        if value < 0.0:
            issues.append(Issue(f"has a negative {kind} ({value:g})", described[name].source))
        a, d, f = (
            value if each == kind else x for each, x in zip(OF_JOINTS, resisting[i], strict=True)
        )
        resisting[i] = a, d, f
        nodes[i] = replace(nodes[i], armature=a)
        joints[i] = replace(joints[i], armature=a, damping=d, friction=f)
        described[name] = replace(described[name], armature=a, damping=d, friction=f)
    warn_of_all(issues, strict=False)
    links = tuple(
        replace(link, inertial=changed[link.name]) if link.name in changed else link
        for link in model.description.links
    )
    return replace(
        model,
        nodes=tuple(nodes),
        bodies=tuple(bodies),
        joints=tuple(joints),
        description=replace(model.description, links=links, joints=tuple(described.values())),
    )


def _values(before: Parameters, values: ArrayLike | Mapping[str, float]) -> Array:
    """All values, checked; names that a mapping leaves out keep theirs."""
    if isinstance(values, Mapping):
        result = before.values.copy()
        index = {name: i for i, name in enumerate(before.names)}
        check_names(values, before.names, "no parameter ", error=UnknownNameError)
        for name, value in values.items():
            result[index[name]] = _number(name, value)
    else:
        result = as_numbers(values, "values")
        if result.shape != (len(before.names),):
            raise ValueError(f"values needs {len(before.names)} numbers, got shape {result.shape}")
    wrong = np.flatnonzero(~np.isfinite(result))
    if len(wrong):
        raise ValueError(f"'{before.names[wrong[0]]}' is {result[wrong[0]]}, which is not finite")
    return result


def _number(name: str, value: float) -> float:
    number = as_numbers(value, f"'{name}'")
    if number.shape:
        raise ValueError(f"'{name}' needs one number, got shape {number.shape}")
    return float(number)


def _inertia(values: Array) -> RigidInertia:
    m, x, y, z, *inertia = (float(value) for value in values)
    return RigidInertia(m, (x, y, z), symmetric(*inertia))


def _fault(values: Array) -> str:
    """Why there is no body with these ten parameters, if there is none."""
    if values[0] < 0.0:
        return f"its mass is {values[0]:g} kg"
    if values[0] == 0.0 and values[1:4].any():
        return "it has no mass, but a first moment, which no file can say"
    lowest, *_, highest = np.linalg.eigvalsh(pseudo_inertia(values.tolist()))
    if lowest < -TOLERANCE * max(highest, 0.0):
        return f"its pseudo-inertia has the eigenvalue {lowest:.3g}"
    return ""
