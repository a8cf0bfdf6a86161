"""A model's parameters, inertial and of geometry, by name, and models with other values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.description import Inertial, Joint, Pose
from robomodel.description import inertias as masses
from robomodel.description.poses import inverse
from robomodel.errors import (
    NOWHERE,
    ClosureError,
    DescriptionError,
    Issue,
    UnknownNameError,
    as_names,
    check_names,
    few,
    warn,
    warn_of_all,
)
from robomodel.mechanism.blocks import blocks
from robomodel.mechanism.closure import Held, ToNearest, close
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mechanism.couplings import eliminated
from robomodel.model.arguments import as_numbers, common_batch
from robomodel.model.derived import cached_on_model
from robomodel.model.efficiencies import EFFICIENCIES, with_gears
from robomodel.model.elements import Frame, Node, Units, units_of
from robomodel.model.geometry_parameters import SPRINGS, Number, described, numbers_by_name
from robomodel.model.numbers import with_numbers
from robomodel.scalars import Scalar, held, is_number, unstack, value_of
from robomodel.spatial import RigidInertia, symmetric
from robomodel.tolerances import CLOSED, NOTHING, SAME

if TYPE_CHECKING:
    from robomodel.model.model import Model

ParametersLike: TypeAlias = Mapping[str, ArrayLike] | None
PARAMETERS = "p"  # the argument that holds parameters
INERTIAL = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""A body's mass, mass · centre, and inertia about its link's origin, in its link's axes."""
OF_JOINTS = ("armature", "damping", "friction")
ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""The places of the last six of the ten within the inertia."""
_SPRUNG = ("joint", "loop", "spring")
_FORCES = ("gear", "gravity", *_SPRUNG)


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
def parameters(model: Model, *, geometry: bool = False) -> Parameters:
    """The parameters of a robot: names and values [SI].

    Inverse dynamics is linear in ten of each body: ``thigh.mass``, ``thigh.mx .my .mz`` (mass ·
    centre of mass), ``thigh.Ixx .Ixy .Ixz .Iyy .Iyz .Izz`` about the link's origin, in the link's
    axes; links that are fixed to it count with it. Then in those of each joint with one freedom,
    ``knee.armature``, ``knee.damping`` and ``knee.friction``, on its velocity, dependent joints and
    rotors' included; other joints have those of them that the file gives.

    With ``geometry`` there are also, of each joint of the file, ``knee.x .y .z``, its origin in the
    parent link's axes, and ``knee.rx .ry .rz``, zero, a further turn r by which the joint's
    rotation R becomes R exp([r]×) (about the joint's own axis it is an offset of its encoder); of
    each loop ``rod.predecessor.x .y .z``, ``rod.successor.x .y .z``, the anchors in their links'
    axes, and ``rod.length`` of rods; of couplings and mimics ``belt.knee``, the coefficient of a
    joint in Σ coefficient · q = offset, and ``roll.c0 .c1 .c2 …`` of a polynomial; of springs that
    the file gives ``knee.stiffness .reference`` (a joint's), ``spring.stiffness .length .damping``
    (between points), ``cable.stiffness .reference .damping .friction`` (over joints, and of a
    loop's joint), with ``.spring.`` before the last word where a joint has the name; of actuators
    with losses in their gears ``knee.efficiency .backdrive``; and ``gravity.x .y .z``. They are
    independent of each other: what moves with a fixed joint is its link, with its inertia.

    Args:
        model: The robot.
        geometry: Those of geometry, too.

    Returns:
        parameters: Names and values.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> p = rm.parameters(model)
        >>> p.names[:3], p.values.shape
        (('link1.mass', 'link1.mx', 'link1.my'), (39,))
    """
    values = [x for node in model.nodes for x in _ten(node, model.frame(node.name))]
    names = [f"{body.name}.{each}" for body in model.bodies for each in INERTIAL]
    for index, kind in of_joints(model):
        joint = model.joints[index]
        names.append(f"{joint.name}.{kind}")
        values.append(float(getattr(joint, kind)))
    if geometry:
        names += _geometry(model)
        values += [value for _, value in _geometry(model).values()]
    result = np.array(values, dtype=float)
    result.flags.writeable = False
    return Parameters(tuple(names), result)


@cached_on_model
def _geometry(model: Model) -> dict[str, tuple[Number, float]]:
    """The parameters of geometry: the number for which each name stands, and its value."""
    return {name: (number, value) for name, number, value in numbers_by_name(model)}


def unit_of(model: Model, name: str) -> str:
    """The unit of a parameter, such as "N m s/rad" of a hinge's damping.

    It is empty for ratios, coefficients, and springs over several joints, whose sum has no unit.
    """
    owner, _, kind = name.rpartition(".")
    if (found := _geometry(model).get(name)) is not None:
        number, _ = found
        if number.kind == "origin":
            return "m" if number.entry < 3 else "rad"
        if number.kind in ("predecessor", "successor", "length"):
            return "m"
        if number.kind in ("coupling", "gear", "gravity"):
            return "m/s²" if number.kind == "gravity" else ""
        owner, kind = str(number.owner), SPRINGS[number.entry]
        spring = next((each for each in model.springs if each.name == owner), None)
        if number.kind != "joint" and spring is not None:
            if spring.kind == "joints":
                return ""
            return _acting(units_of(spring.kind != "turn"), kind)
    elif kind in INERTIAL:
        return "kg" if kind == "mass" else "kg m" if kind.startswith("m") else "kg m²"
    return _acting(next(joint.units for joint in model.joints if joint.name == owner), kind)


def _acting(units: Units, kind: str) -> str:
    """The unit of a number of a joint or a spring."""
    return {
        "armature": units.inertia,
        "friction": units.force,
        "damping": f"{units.force} s/{units.position}",
        "stiffness": f"{units.force}/{units.position}",
        "reference": units.position,
    }[kind]


def count(model: Model) -> int:
    """The number of inertial parameters and joints' parameters."""
    return len(INERTIAL) * len(model.nodes) + sum(1 for _ in of_joints(model))


def of_joints(model: Model) -> Iterator[tuple[int, str]]:
    """The joints' parameters, in their order: (index of the joint, kind)."""
    for index, joint in enumerate(model.joints):
        for kind in OF_JOINTS:
            if joint.nv == 1 or getattr(joint, kind):
                yield index, kind


def _ten(node: Node, link: Frame) -> tuple[float, ...]:
    """A body's ten parameters, in its link's axes."""
    return inertial_parameters(masses.in_outer_frame(node.inertia, inverse(link.placement)))


def inertial_parameters(inertia: RigidInertia) -> tuple[float, ...]:
    """The ten parameters of an inertia, in its axes."""
    rows = inertia.inertia
    return (
        value_of(inertia.mass),
        *map(value_of, inertia.h),
        *(value_of(rows[i][j]) for i, j in ENTRIES),
    )


def pseudo_inertia(values: Sequence[float]) -> Array:
    """The pseudo-inertia [Σ h; hᵀ m] (4, 4) of ten parameters.

    It is positive semidefinite if and only if a body with these parameters can exist (Wensing, Kim
    and Slotine, 2018).
    """
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
    then that of the link of its name, and links that are fixed to it have none. Of other geometry
    the neutral configuration is closed anew.

    Args:
        model: The robot.
        values: All values (p,) in the order of :func:`parameters`, with or without those of
            geometry, or a mapping of some of their names to values; others stay.

    Returns:
        model: The robot with these.

    Raises:
        ValueError: Values of another number, or that are not finite.
        UnknownNameError: A name that is no parameter's.
        DescriptionError: A rod that is not longer than zero, a coupling that no longer determines
            its joint.
        ClosureError: Loops that do not close by these numbers.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> heavy = rm.with_parameters(model, {"link1.mass": 2.0})
        >>> heavy.bodies[0].mass
        2.0
    """
    changed = _changed(model, values)
    result = closed_anew(parameterized(model, changed), model)
    issues: list[Issue] = []
    links = {link.name: link for link in result.description.links}
    for before, body in zip(model.bodies, result.bodies, strict=True):
        named = [f"{body.name}.{each}" for each in INERTIAL]
        if changed.keys().isdisjoint(named):
            continue
        listed = parameters(model)
        inertial = np.array([changed.get(name, listed[name]) for name in named])
        source = links[body.name].source
        if fault := body_fault(inertial):
            issues.append(Issue(f"cannot exist with these parameters: {fault}", source))
        links |= {name: replace(links[name], inertial=None) for name in before.links}
        xx, xy, xz, yy, yz, zz = (float(body.inertia[r][c]) for r, c in ENTRIES)
        links[body.name] = replace(
            links[body.name],
            inertial=Inertial(body.mass, (xx, xy, xz, yy, yz, zz), Pose(body.com), source),
        )
    sources = {joint.name: joint.source for joint in model.description.joints}
    issues += [
        Issue(f"has a negative {kind} ({value:g})", sources[joint.name])
        for joint in result.joints
        for kind in OF_JOINTS
        if (value := changed.get(f"{joint.name}.{kind}", 0.0)) < 0.0
    ]
    warn_of_all(issues, strict=False)
    described = replace(result.description, links=tuple(links.values()))
    return replace(result, description=described).as_model()


def parameterized(model: Model, values: Mapping[str, Scalar]) -> Model:
    """The model with other values of some parameters, by name: scalars of any kind.

    Decisions are those of ``model``, but for blocks of dependent velocities, which may grow. The
    neutral configuration is not closed anew: see :func:`closed_anew`.
    """
    geometry = _geometry(model)
    listed = parameters(model)
    given: dict[int, RigidInertia] = {}
    for i, body in enumerate(model.bodies):
        names = [f"{body.name}.{each}" for each in INERTIAL]
        if not values.keys().isdisjoint(names):
            ten = [values.get(name, listed[name]) for name in names]
            given[i] = RigidInertia(ten[0], (ten[1], ten[2], ten[3]), symmetric(*ten[4:]))
    named = {name: x for name, x in values.items() if name in geometry}
    gears = losses_among(model, named)
    of_geometry = {geometry[name][0]: x for name, x in named.items() if name not in gears}
    description, offsets = model.description, dict[str, Scalar]()
    if of_geometry:
        model = _solved_together(model, frozenset(named).difference(gears))
        description, offsets = described(model, of_geometry)
    joints = tuple(
        replace(
            _with_law_beside(joint, values),
            armature=held(values.get(f"{joint.name}.armature", joint.armature)),
            damping=held(values.get(f"{joint.name}.damping", joint.damping)),
            friction=held(values.get(f"{joint.name}.friction", joint.friction)),
        )
        for joint in description.joints
    )
    changed = replace(description, joints=joints)
    result = with_numbers(model, changed, offsets, given, moved=bool(of_geometry))
    if gears:
        result = with_gears(result, {gears[name]: values[name] for name in gears})
    constant = all(map(is_number, values.values()))
    return result if constant else replace(result, _nominal=model)


def _with_law_beside(joint: Joint, values: Mapping[str, Scalar]) -> Joint:
    """A joint whose friction at rest and in reverse differs from its other one as before."""

    def moved(kept: float | None, of: str, usual: float) -> float | None:
        new = values.get(f"{joint.name}.{of}")
        if kept is None or new is None or not is_number(new):
            return kept
        return kept + float(new) - usual

    return replace(
        joint,
        damping_reverse=moved(joint.damping_reverse, "damping", joint.damping),
        friction_reverse=moved(joint.friction_reverse, "friction", joint.friction),
        static_friction=moved(joint.static_friction, "friction", joint.friction),
    )


@cached_on_model
def counted(model: Model, names: tuple[str, ...]) -> Model:
    """The model with not-a-number for these parameters, so that none of them counts as absent.

    A damping or armature of zero is left out of the programs of a model. With this one, all that is
    named is kept. Springs' numbers are 1 instead; other parameters of geometry stay as they are,
    since nothing is left out for them.
    """
    if not names:
        return model
    geometry = _geometry(model)
    values = {name: math.nan for name in names if name not in geometry}
    values |= {x: 1.0 for x in names if x in geometry and geometry[x][0].kind in _SPRUNG}
    return parameterized(model, values) if values else model


def of_geometry(model: Model, names: Iterable[str]) -> tuple[str, ...]:
    """The names of parameters of geometry among these, without gravity and springs."""
    every = _geometry(model)
    return tuple(x for x in names if x in every and every[x][0].kind not in _FORCES)


def losses_among(model: Model, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The efficiencies of gears among these parameters: each with its actuator and its kind."""
    every = _geometry(model)
    numbers = {x: every[x][0] for x in names if x in every and every[x][0].kind == "gear"}
    return {x: (str(each.owner), EFFICIENCIES[each.entry]) for x, each in numbers.items()}


@cached_on_model
def _solved_together(model: Model, names: frozenset[str]) -> Model:
    """The model with blocks of dependent velocities that are right for any values of ``names``.

    An entry of K that is zero with the file's numbers need not be zero with others.
    """
    ties = {
        cluster.index: cluster.constraint
        for cluster in model.clusters
        if isinstance(cluster.constraint, LoopConstraint) and len(cluster.constraint.blocks) > 1
    }
    if not ties:
        return model
    rng = np.random.default_rng(7)
    geometry, listed = _geometry(model), parameters(model, geometry=True)
    seen: dict[int, Array] = {}
    for _ in range(8):  # draws at which zeros of conditions are looked for
        other = {geometry[n][0]: listed[n] + rng.uniform(-0.1, 0.1) for n in sorted(names)}
        moved = with_numbers(model, *described(model, other))
        for index in ties:
            constraint = moved.clusters[index].constraint
            assert isinstance(constraint, LoopConstraint)
            shape = moved.clusters[index].geometry
            step = rng.uniform(-2.0, 2.0, shape.nv)
            rows = constraint.rows(unstack(shape.integrate(shape.zero(), step)))[1]
            kept = np.abs(np.array(rows, dtype=float) @ np.array(constraint.expand))
            seen[index] = np.maximum(seen.get(index, 0.0), kept)
    clusters = list(model.clusters)
    for index, constraint in ties.items():
        pattern = seen[index] > NOTHING
        dependent = [i for i in range(pattern.shape[1]) if i not in constraint.independent]
        inside = np.zeros_like(pattern)
        for n, block in enumerate(constraint.blocks):
            before = [c for each in constraint.blocks[: n + 1] for c in each.columns]
            inside[np.ix_(block.rows, [*before, *constraint.independent])] = True
        if np.any(pattern & ~inside):
            changed = replace(constraint, blocks=blocks(pattern, dependent))
            clusters[index] = replace(clusters[index], constraint=changed)
    return replace(model, clusters=tuple(clusters))


def closed_anew(model: Model, before: Model) -> Model:
    """The model with its neutral configuration closed, starting at that of ``before``."""
    clusters = list(model.clusters)
    for cluster, old in zip(model.clusters, before.clusters, strict=True):
        rows = eliminated(cluster.geometry, cluster.pivots).pivots.values()
        if not all(
            math.isfinite(value_of(x)) for row, offset in rows for x in (*row.values(), offset)
        ):
            names = [each.name for each in cluster.geometry.linear]
            sources = {each.name: each.source for each in model.description.couplings}
            raise DescriptionError(
                f"of {few(names, 8)} the coefficients no longer determine the dependent joints; "
                "give those other than zero, and couplings that agree",
                sources.get(names[0], NOWHERE),
            )
        if cluster.implicit and cluster.geometry != old.geometry:
            start = np.array([cluster.start])
            closing = cluster.closing_rows
            q, gap = close(cluster.geometry, start, Held(cluster.columns), rows=closing)
            if not gap[0] <= CLOSED:
                q, gap = close(cluster.geometry, start, ToNearest(), rows=closing)
            if not gap[0] <= CLOSED:
                loops = cluster.geometry.names
                raise ClosureError(
                    f"{few(loops, 8)} does not close by these parameters: gap {gap[0]:.2g}; change "
                    "those of a loop together",
                    float(gap[0]),
                    tuple(loops),
                )
            clusters[cluster.index] = replace(cluster, start=tuple(q[0].tolist()))
    return replace(model, clusters=tuple(clusters))


def _changed(model: Model, values: ArrayLike | Mapping[str, float]) -> dict[str, float]:
    """The values that differ from the model's, by name, checked."""
    before = parameters(model, geometry=True)
    if isinstance(values, Mapping):
        check_parameters(model, values)
        after = {name: _number(name, value) for name, value in values.items()}
    else:
        array = as_numbers(values, "values")
        short = parameters(model)
        if array.shape not in ((len(before.names),), (len(short.names),)):
            raise ValueError(
                f"values needs {len(short.names)} numbers, or {len(before.names)} with those of "
                f"geometry, got shape {array.shape}"
            )
        after = dict(zip(before.names, array.tolist(), strict=False))
    for name, value in after.items():
        if not math.isfinite(value):
            raise ValueError(f"'{name}' is {value}, which is not finite")
    index = {name: i for i, name in enumerate(before.names)}
    return {name: x for name, x in after.items() if x != before.values[index[name]]}


def as_parameters(model: Model, names: str | Iterable[str]) -> tuple[str, ...]:
    """Names of parameters, each once. Raises UnknownNameError, with suggestions, for others."""
    chosen = as_names(names, "parameters")
    check_parameters(model, chosen)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"parameters names one twice: {', '.join(chosen)}")
    return chosen


def as_values(model: Model, parameters: Mapping[str, ArrayLike]) -> tuple[tuple[str, ...], Array]:
    """Names in alphabetical order, and their values (..., p), broadcast against each other."""
    names = tuple(sorted(as_parameters(model, parameters)))
    arrays = [as_numbers(parameters[name], f"'{name}'") for name in names]
    for name, array in zip(names, arrays, strict=True):
        if not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)].flat[0]
            raise ValueError(f"'{name}' is {wrong:g}, which is not finite")
    try:
        return names, np.stack(np.broadcast_arrays(*arrays), axis=-1) if names else np.zeros(0)
    except ValueError:
        shapes = ", ".join(f"'{n}' {x.shape}" for n, x in zip(names, arrays, strict=True))
        raise ValueError(f"parameters do not broadcast: {shapes}") from None


def batch_with(names: Sequence[str], p: Array, **arrays: Array) -> tuple[int, ...]:
    """The batch axes of arguments and of values (..., p) of parameters, which an error names."""
    try:
        return common_batch(**arrays, parameters=p)
    except ValueError:
        shapes = "".join(f"{name} {x.shape}, " for name, x in arrays.items())
        raise ValueError(
            f"batch axes do not broadcast: {shapes}parameters {few(names)} {p.shape[:-1]}"
        ) from None


def warn_of_rows(results: Any, arguments: Sequence[Array]) -> None:
    """Warn of results that are not finite although all arguments are."""
    parts = results if isinstance(results, tuple) else (results,)
    if all(np.all(np.isfinite(x)) for x in parts) or not all(
        np.all(np.isfinite(x)) for x in arguments
    ):
        return
    warn(
        RuntimeWarning(
            "some states have no result by these parameters (a loop at its dead point, a rod or a "
            "coefficient that is zero, bodies without mass, an efficiency that no gear has): they "
            "are not-a-number"
        )
    )


def check_parameters(model: Model, names: Iterable[str]) -> None:
    """Raises UnknownNameError, with suggestions, for names that are no parameters'."""
    listed = parameters(model, geometry=True).names
    for name in names:
        joint = name.removesuffix(".ratio")
        if joint != name and name not in listed:
            ratios = [f"{coupling.name}.{joint}" for coupling in model.couplings]
            ratios = [each for each in ratios if each in listed]
            if ratios:
                raise UnknownNameError(
                    f"no parameter '{name}'; ratios are coefficients of couplings: {few(ratios)}"
                )
        owner, _, kind = name.rpartition(".")
        if kind in EFFICIENCIES and name not in listed:
            driven = {each.name: each.lossy for each in model.actuators}
            if not driven.get(owner, True):
                raise UnknownNameError(
                    f"no parameter '{name}': the gear of '{owner}' loses nothing in the file; give "
                    "it efficiencies there, or by rm.load(…, rotors=…)"
                )
        check_names([name], listed, "no parameter ", error=UnknownNameError)


def _number(name: str, value: float) -> float:
    number = as_numbers(value, f"'{name}'")
    if number.shape:
        raise ValueError(f"'{name}' needs one number, got shape {number.shape}")
    return float(number)


def body_fault(values: Array) -> str:
    """The reason why no body has these ten parameters; "" if one can."""
    if values[0] < 0.0:
        return f"its mass is {values[0]:g} kg"
    if values[0] == 0.0 and values[1:4].any():
        return "it has no mass, but a first moment, which no file can say"
    lowest, *_, highest = np.linalg.eigvalsh(pseudo_inertia(values.tolist()))
    if lowest < -SAME * max(highest, 0.0):
        return f"its pseudo-inertia has the eigenvalue {lowest:.3g}"
    return ""
