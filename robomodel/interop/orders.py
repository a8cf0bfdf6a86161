"""States in the order and conventions of other libraries: Pinocchio, MuJoCo and Drake.

Joints are matched by name. The places of a joint's numbers come from the library's model of the
robot, from names in its order, or from the order in which it reads the same file: children sorted
by joint name in Pinocchio, in the file's order in the others. The libraries are not imported.

Positions differ in form (:data:`Form`): the order of a quaternion, an angle as cosine and sine, the
frame from which a free body is counted. Some velocities are in the parent's axes instead of the
child's (:data:`Turned`), which is a rotation of v, so that forces change as velocities do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Joint, LinkCoupling
from robomodel.errors import as_names, did_you_mean, few
from robomodel.mechanism import graph
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Floating, Planar, Screw, Spherical, relative_motion
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Joint as ModelJoint
from robomodel.model.elements import Node, joint_slices
from robomodel.scalars import Vector, stack, unstack, value_of
from robomodel.spatial import (
    ZERO,
    Motion,
    Transform,
    Vec,
    cross,
    from_quaternion,
    inner,
    minus,
    plus,
)

if TYPE_CHECKING:
    from robomodel.model.model import Model


Library: TypeAlias = Literal["Pinocchio", "MuJoCo", "Drake"]
Form: TypeAlias = Literal["same", "circle", "rpy", "placed"]
Turned: TypeAlias = Literal["", "linear", "angular", "both"]
State: TypeAlias = Array | tuple[Array, ...]
Runs: TypeAlias = tuple[tuple[slice, slice], ...]
Pieces: TypeAlias = dict[str, tuple[int, int]]  # their joint's name → its positions, velocities

_UNIVERSE, _ROOT = "universe", "root_joint"  # Pinocchio's names of the world and of a root joint
_KINDS = ("free", "ball", "slide", "hinge")  # MuJoCo's
_SIZES = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}


@dataclass(frozen=True, slots=True)
class Slot:
    """The places of the positions and velocities of a joint of the other library.

    ``q`` and ``v`` are its first ones. ``child``: the body that it moves, or ""; ``kind``: the
    library's name of the joint's type, or "".
    """

    name: str
    q: int
    nq: int
    v: int
    nv: int
    child: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class JointOrder:
    """A joint of ours in the other library's state.

    ``q`` and ``v`` are the places of its positions and velocities there, in our order. ``form``:
    the form of the position there. ``turned``: the velocities that are in the parent's axes there.
    ``advance``: for a screw, which MuJoCo has as hinge and slide, the slide's places of position
    and velocity, and the pitch.
    """

    node: int
    q: tuple[int, ...]
    v: tuple[int, ...]
    form: Form = "same"
    turned: Turned = ""
    advance: tuple[int, int, float] | None = None

    @property
    def plain(self) -> bool:
        """True if the numbers are the same in another place."""
        return self.form == "same" and not self.turned and self.advance is None


@dataclass(frozen=True, slots=True)
class LibraryLayout:
    """The sizes of the other library's q and v, and our joints in them.

    ``same_q`` and ``same_v`` are those whose numbers are the same there: runs of our places,
    and of those there. ``parts`` are the others.
    """

    library: Library
    nq: int
    nv: int
    nodes: frozenset[int]
    same_q: Runs
    same_v: Runs
    parts: tuple[JointOrder, ...]


def find_layout(model: Model, library: Library, joints: object) -> LibraryLayout:
    """The places of the model's joints in the library; ``joints`` as of :meth:`Model.to_order`."""
    if joints is None or isinstance(joints, Iterable):
        return _by_names(model, library, None if joints is None else as_names(joints, "joints"))
    return _laid_out(model, library, tuple(_renamed(model, library, _read(library, joints))))


@cached_on_model
def _by_names(model: Model, library: Library, names: tuple[str, ...] | None) -> LibraryLayout:
    """The layout for names in the library's order; None: the order in which it reads the file."""
    order = _file_order(model, library) if names is None else names
    return _laid_out(model, library, tuple(_counted(model, library, order)))


@cached_on_model
def _laid_out(model: Model, library: Library, slots: tuple[Slot, ...]) -> LibraryLayout:
    by_name = {slot.name: slot for slot in slots}
    parts, used = [], set()
    for body in range(len(model.joints)):
        names = [name for name in _pieces(model, library, body, by_name) if name in by_name]
        if names:
            parts.append(_part(model, library, body, by_name))
            used.update(names)
    for name in by_name:
        if name not in used:
            raise ValueError(_unknown(model, library, name, model.joint_names))
    nq = max((slot.q + slot.nq for slot in slots), default=0)
    nv = max((slot.v + slot.nv for slot in slots), default=0)
    same_q, same_v = list[tuple[int, int]](), list[tuple[int, int]]()
    for part in parts:
        if part.plain:
            node = model.nodes[part.node]
            same_q += zip(_range(node.positions), part.q, strict=True)
            same_v += zip(node.freedoms, part.v, strict=True)
    return LibraryLayout(
        library, nq, nv, frozenset(part.node for part in parts), _runs(same_q), _runs(same_v),
        tuple(part for part in parts if not part.plain),
    )  # fmt: skip


def _runs(pairs: Iterable[tuple[int, int]]) -> Runs:
    """Places that follow each other on both sides, together: copies of slices are fast."""
    runs = list[tuple[slice, slice]]()
    for one, other in pairs:
        if runs and (runs[-1][0].stop, runs[-1][1].stop) == (one, other):
            first, second = runs.pop()
            runs.append((slice(first.start, one + 1), slice(second.start, other + 1)))
        else:
            runs.append((slice(one, one + 1), slice(other, other + 1)))
    return tuple(runs)


# ---- a joint of ours in the other library --------------------------------------------------------


def _pieces(model: Model, library: Library, body: int, names: Iterable[str]) -> Pieces:
    """The library's joints for one of ours, and their sizes; ``names``: those that it has."""
    name, joint = model.joints[body].name, model.nodes[body].joint
    sizes = joint.nq, joint.nv
    if library == "Pinocchio":
        if isinstance(joint, Planar):
            sizes = 4, 3
        elif model.joints[body].type == "continuous":
            sizes = 2, 1
    elif library == "Drake":
        sizes = (3, 3) if isinstance(joint, Spherical) else sizes
    elif isinstance(joint, Planar):
        return {f"{name}.x": (1, 1), f"{name}.y": (1, 1), name: (1, 1)}
    elif isinstance(joint, Screw):
        return {f"{name}.advance": (1, 1), name: (1, 1)}
    elif isinstance(joint, Floating) and (
        model.nodes[body].parent != WORLD or f"{name}.x" in names
    ):
        return {f"{name}.x": (1, 1), f"{name}.y": (1, 1), f"{name}.z": (1, 1), name: (4, 3)}
    return {name: sizes}


def _part(model: Model, library: Library, body: int, slots: dict[str, Slot]) -> JointOrder:
    """A joint's places in the library. Raises ValueError if the joint there is another kind."""
    name, node = model.joints[body].name, model.nodes[body]
    joint = node.joint
    pieces = _pieces(model, library, body, slots)
    for piece, sizes in pieces.items():
        slot = slots.get(piece)
        if slot is None:
            raise ValueError(
                f"{library}'s order has no joint '{piece}', which with '{name}' stands for the "
                f"{model.joints[body].type} joint '{name}'"
            )
        allowed = {sizes, (1, 1), (2, 1)} if library == "Pinocchio" and joint.nv == 1 else {sizes}
        if (slot.nq, slot.nv) not in allowed or not _same_kind(model.joints[body], slot):
            raise ValueError(
                f"{library}'s joint '{piece}' has {slot.nq} positions and {slot.nv} velocities"
                f"{f' ({slot.kind})' if slot.kind else ''}, which are not those of the "
                f"{model.joints[body].type} joint '{name}'"
            )
    parts = [slots[piece] for piece in pieces]
    q = tuple(i for slot in parts for i in range(slot.q, slot.q + slot.nq))
    v = tuple(i for slot in parts for i in range(slot.v, slot.v + slot.nv))
    if isinstance(joint, Planar):
        if library != "MuJoCo":
            _check_axis(model, library, name)
        form: Form = "circle" if library == "Pinocchio" else "same"
        return JointOrder(body, q, v, form, "" if library == "Pinocchio" else "linear")
    if isinstance(joint, Spherical):
        if library == "Drake":
            return JointOrder(body, q, v, "rpy", "angular")
        return JointOrder(body, _xyzw(q) if library == "MuJoCo" else q, v)
    if isinstance(joint, Floating):
        if library == "Pinocchio":
            return JointOrder(body, q, (*v[3:], *v[:3]))
        if library == "MuJoCo":
            form = "placed" if len(pieces) == 1 else "same"
            return JointOrder(body, (*q[:3], *_xyzw(q[3:])), (*v[3:], *v[:3]), form, "linear")
        if node.parent != WORLD:
            raise ValueError(
                f"the floating joint '{name}' stands on '{model.joints[body].parent}', and Drake "
                "counts free bodies from the world: their positions belong to no joint here"
            )
        return JointOrder(body, (*q[4:], *_xyzw(q[:4])), v, "placed", "both")
    if isinstance(joint, Screw) and library == "MuJoCo":
        return JointOrder(body, q[1:], v[1:], advance=(q[0], v[0], joint.pitch))
    return JointOrder(body, q, v, "circle" if len(q) > 1 else "same")


def _xyzw(q: Sequence[int]) -> tuple[int, ...]:
    """The places of x, y, z and w of a quaternion with w first."""
    return (*q[1:], q[0])


def _same_kind(joint: ModelJoint, slot: Slot) -> bool:
    """True if both slide or both turn, if ``kind`` is known; other types differ in size."""
    if not slot.kind or slot.name != joint.name or joint.nv != 1:
        return True
    slides = slot.kind in ("slide", "prismatic") or slot.kind.startswith("JointModelP")
    return slides == (joint.type == "prismatic")


def _check_axis(model: Model, library: Library, name: str) -> None:
    joint = next(joint for joint in model.description.joints if joint.name == name)
    x, y, z = joint.axis
    if x or y or z <= 0.0:
        raise ValueError(
            f"the planar joint '{name}' moves normal to {x:g} {y:g} {z:g}; axes in that plane are "
            f"chosen otherwise by {library}: only a joint normal to 0 0 1 is converted"
        )


# ---- orders --------------------------------------------------------------------------------------


def _file_order(model: Model, library: Library) -> list[str]:
    """The library's joints in the order in which it reads the same file: depth first.

    MuJoCo's file is what ``write_mjcf`` writes. The others do not have rotors of ``<rotor>``,
    ``<transmission>`` or ``rotors=``, which are no joints of the file.
    """
    if library == "MuJoCo":
        for loop in model.description.loops:
            if loop.type in ("prismatic", "planar"):
                raise ValueError(
                    f"MuJoCo has no {loop.type} loops, so that '{loop.name}' is written as a joint "
                    "of its own, whose positions no joint of ours has"
                )
    unknown = set() if library == "MuJoCo" else set(_rotor_joints(model))
    below: dict[str, list[Joint]] = {}
    for joint in model.description.joints:
        if joint.name not in unknown:
            below.setdefault(joint.parent, []).append(joint)
    if library == "Pinocchio":
        for joints in below.values():
            joints.sort(key=lambda joint: joint.name)
    bodies = {joint.name: body for body, joint in enumerate(model.joints)}
    names: list[str] = []
    stack = below.get(graph.root_link(model.description).name, [])[::-1]
    while stack:
        joint = stack.pop()
        if joint.name in bodies:
            names.extend(_pieces(model, library, bodies[joint.name], ()))
        stack.extend(below.get(joint.child, [])[::-1])
    return names


def _rotor_joints(model: Model) -> Iterator[str]:
    """The joints of rotors for which the file has no joint, but ``<rotor>`` or the like."""
    moved_by = {joint.child: joint.name for joint in model.description.joints}
    for coupling in model.description.couplings:
        if coupling.source.element.startswith("rotor of "):
            if isinstance(coupling, LinkCoupling):
                yield moved_by[coupling.successor]
            else:
                yield coupling.terms[0][0]


def _counted(model: Model, library: Library, names: Sequence[str]) -> list[Slot]:
    """Joints of these names one after the other, with the sizes that ours have there.

    A floating base that is not named comes first, as in all libraries.
    """
    base = model.floating_base
    names = [name for name in names if (library, name) != ("Pinocchio", _UNIVERSE)]
    if base is not None and base not in names:
        aliases = {_ROOT, "", model.joints[0].child}
        first = names[1:] if names and names[0] in aliases else names
        names = [base, *first]
    sizes: Pieces = {}
    for body in range(len(model.joints)):
        sizes |= _pieces(model, library, body, names)
    slots: list[Slot] = []
    q = v = 0
    for name in names:
        if name not in sizes:
            raise ValueError(_unknown(model, library, name, sizes))
        if any(slot.name == name for slot in slots):
            raise ValueError(f"joints names '{name}' twice")
        nq, nv = sizes[name]
        slots.append(Slot(name, q, nq, v, nv))
        q, v = q + nq, v + nv
    return slots


def _unknown(model: Model, library: Library, name: str, known: Iterable[str]) -> str:
    """The message about a joint of the library that does not move here, or that is none here."""
    if any(joint.name == name for joint in model.description.joints):
        return (
            f"{library}'s joint '{name}' is fixed in '{model.name}', and its position is no part "
            "of q; give joints= as names without it for a state of the others"
        )
    return f"{library}'s joint '{name}' is no joint of '{model.name}'{did_you_mean(name, known)}"


def _renamed(model: Model, library: Library, slots: Sequence[Slot]) -> list[Slot]:
    """The library's joints with our names; a free joint may go by the body that it moves."""
    floating = {
        joint.child: joint.name
        for joint, node in zip(model.joints, model.nodes, strict=True)
        if isinstance(node.joint, Floating)
    }
    renamed: list[Slot] = []
    for slot in slots:
        name = slot.name
        if slot.nv == 6 and name not in floating.values():
            name = floating.get(slot.child, model.floating_base or name)
        if any(other.name == name for other in renamed):
            raise ValueError(f"{library}'s model has several joints '{name}'; take one robot's")
        renamed.append(replace(slot, name=name))
    return renamed


# ---- models of the libraries ---------------------------------------------------------------------


def _read(library: Library, model: Any) -> list[Slot]:
    """The joints that move in the library's model of a robot."""
    marks = {"Pinocchio": "idx_qs", "MuJoCo": "jnt_qposadr", "Drake": "GetJointIndices"}
    if not hasattr(model, marks[library]):
        kind = {"Pinocchio": "Model", "MuJoCo": "MjModel", "Drake": "MultibodyPlant"}[library]
        raise TypeError(
            f"joints is {library}'s {kind} of the robot, or names in its order, not "
            f"{type(model).__name__}"
        )
    if library == "Pinocchio":
        return [
            Slot(name, int(model.idx_qs[i]), int(model.nqs[i]), int(model.idx_vs[i]),
                 int(model.nvs[i]), "", model.joints[i].shortname())
            for i, name in enumerate(model.names) if i and model.nvs[i]
        ]  # fmt: skip
    return list(_of_mujoco(model) if library == "MuJoCo" else _of_drake(model))


def _of_mujoco(model: Any) -> Iterator[Slot]:
    names = {model.joint(i).name for i in range(model.njnt)}
    for i in range(model.njnt):
        body = int(model.jnt_bodyid[i])
        child, kind = model.body(body).name or f"body_{body}", _KINDS[int(model.jnt_type[i])]
        name, n = model.joint(i).name, 1
        while not name or (n > 1 and name in names):  # the names that the parser gives
            name, n = f"{child}_{kind}" + (f"_{n}" if n > 1 else ""), n + 1
        names.add(name)
        nq, nv = _SIZES[kind]
        at, dof = int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i])
        yield Slot(name, at, nq, dof, nv, child, kind)


def _of_drake(plant: Any) -> Iterator[Slot]:
    if not plant.is_finalized():
        raise ValueError("Drake's plant has an order once it is finalized: call plant.Finalize()")
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_velocities():
            yield Slot(
                joint.name(), joint.position_start(), joint.num_positions(),
                joint.velocity_start(), joint.num_velocities(), joint.child_body().name(),
                joint.type_name(),
            )  # fmt: skip


# ---- states --------------------------------------------------------------------------------------


def library_of(name: str) -> Library:
    """The library of this name. Raises ValueError for others."""
    for library in get_args(Library):
        if name == library.lower():
            return cast("Library", library)
    raise ValueError(f"library {name!r} is not known; 'pinocchio', 'mujoco' and 'drake' are")


def to_order(model: Model, library: str, joints: object, state: Mapping[str, Any]) -> State:
    """Our state in the other library's order: q alone, or a tuple with v, a, tau."""
    known = library_of(library)
    layout = find_layout(model, known, joints)
    bodies, independent = _independent(model)
    _check_complete(model, layout, bodies)
    state = _arrays(model.nq, model.nv, "nq", "nv", state)
    batch = common_batch(**state)
    positions = model._spanning(state["q"])
    result = {"q": np.zeros((*batch, layout.nq))}
    spanning: dict[str, Array] = {}
    if "v" in state:
        spanning["v"] = model._rates(state["q"], state["v"])
        if "a" in state:
            linear = model._rates(state["q"], state["a"])
            spanning["a"] = linear + model.constraint_bias(state["q"], state["v"])
    if "tau" in state:
        spanning["tau"] = np.zeros((*state["tau"].shape[:-1], model.n_joint_velocities))
        for ours, column in independent:
            spanning["tau"][..., column] = state["tau"][..., ours]
    result |= {name: np.zeros((*batch, layout.nv)) for name in spanning}
    for ours, theirs in layout.same_q:
        result["q"][..., theirs] = positions[..., ours]
    for ours, theirs in layout.same_v:
        for name, x in spanning.items():
            result[name][..., theirs] = x[..., ours]
    for part in layout.parts:
        node = model.nodes[part.node]
        position = positions[..., node.positions]
        result["q"][..., part.q] = _written(node, part.form, position)
        rates = {name: x[..., node.velocities] for name, x in spanning.items()}
        turn = _turn(node, part, position)
        for name, rate in rates.items():
            bias = _turning_bias(node, part, rates["v"]) if name == "a" else None
            result[name][..., part.v] = turn(rate, bias)
        if part.advance is not None:
            at, dof, pitch = part.advance
            result["q"][..., at] = pitch * position[..., 0]
            for name in rates.keys() & {"v", "a"}:
                result[name][..., dof] = pitch * rates[name][..., 0]
    return _returned(result)


def from_order(model: Model, library: str, joints: object, state: Mapping[str, Any]) -> State:
    """The other library's state in our order: q alone, or a tuple with v, a, tau."""
    known = library_of(library)
    layout = find_layout(model, known, joints)
    in_q, stored = _stored(model)
    bodies, independent = _independent(model)
    followers = _followers(model, in_q - layout.nodes)
    _check_complete(model, layout, (in_q - followers.keys()) | bodies)
    sizes = f"{known}'s nq", f"{known}'s nv"
    state = _arrays(layout.nq, layout.nv, *sizes, state)
    batch = common_batch(**state)
    positions = np.zeros((*batch, model.n_joint_positions))
    spanning = {n: np.zeros((*batch, model.n_joint_velocities)) for n in state if n != "q"}
    for ours, theirs in layout.same_q:
        positions[..., ours] = state["q"][..., theirs]
    for ours, theirs in layout.same_v:
        for name, x in spanning.items():
            x[..., ours] = state[name][..., theirs]
    for part in layout.parts:
        node = model.nodes[part.node]
        position = _as_ours(node, part.form, state["q"][..., part.q])
        positions[..., node.positions] = position
        back = _turn(node, part, position, back=True)
        rates = {name: state[name][..., part.v] for name in spanning}
        if part.advance is not None and "tau" in rates:
            _, dof, pitch = part.advance
            rates["tau"] = rates["tau"] + pitch * state["tau"][..., [dof]]
        for name, rate in rates.items():
            bias = _turning_bias(node, part, back(rates["v"], None)) if name == "a" else None
            spanning[name][..., node.velocities] = back(rate, bias)
    for body, (row, offset) in followers.items():
        positions[..., model.nodes[body].q] = positions @ row + offset
    result = {"q": np.zeros((*batch, model.nq))}
    for ours, theirs in stored:
        result["q"][..., ours] = positions[..., theirs]
    for name, x in spanning.items():
        if name == "tau":  # all joints' forces, as they push what is independent
            G = model.constraint_jacobian(result["q"])
            result[name] = np.einsum("...ij,...i->...j", G, x)
        else:
            result[name] = np.zeros((*batch, model.nv))
            for ours, column in independent:
                result[name][..., ours] = x[..., column]
    return _returned(result)


def _arrays(
    nq: int, nv: int, nq_name: str, nv_name: str, state: Mapping[str, Any]
) -> dict[str, Array]:
    if state["a"] is not None and state["v"] is None:
        raise ValueError("accelerations are converted at a velocity: give v as well")
    return {
        name: as_array(values, *((nq, name, nq_name) if name == "q" else (nv, name, nv_name)))
        for name, values in state.items()
        if values is not None or name == "q"
    }


def _returned(result: dict[str, Array]) -> State:
    return result["q"] if len(result) == 1 else tuple(result.values())


@cached_on_model
def _independent(model: Model) -> tuple[frozenset[int], Runs]:
    """The bodies of our independent velocities, and the places of these among all velocities."""
    body_of = {column: n for n, node in enumerate(model.nodes) for column in node.freedoms}
    columns = [c.spanning_v.start + index for c in model.clusters for index in c.columns]
    return frozenset(body_of[column] for column in columns), _runs(enumerate(columns))


@cached_on_model
def _stored(model: Model) -> tuple[frozenset[int], Runs]:
    """The bodies whose joints' positions are in q, and the places of q among all positions."""
    bodies = [body for c in model.clusters for body, _, _ in joint_slices(model, c)]
    places = [i for body in bodies for i in _range(model.nodes[body].positions)]
    return frozenset(bodies), _runs(enumerate(places))


@cached_on_model
def _followers(model: Model, missing: frozenset[int]) -> dict[int, tuple[Array, float]]:
    """The missing bodies that linear couplings turn with others, as rotors of linkages.

    The position of each is the row times the positions of all joints, plus the offset.
    """
    found: dict[int, tuple[Array, float]] = {}
    for cluster in model.clusters:
        gone = [n for n, body in enumerate(cluster.bodies) if body in missing]
        couplings = cluster.geometry.linear
        matrix = np.zeros((len(couplings), len(cluster.bodies)))
        for weights, coupling in zip(matrix, couplings, strict=True):
            for n, k in coupling.terms:
                weights[n] = value_of(k)
        if not gone or np.linalg.matrix_rank(matrix[:, gone]) < len(gone):
            continue
        solved = np.linalg.pinv(matrix[:, gone])
        offsets = solved @ [value_of(coupling.offset) for coupling in couplings]
        matrix[:, gone] = 0.0
        for n, weights, offset in zip(gone, -solved @ matrix, offsets, strict=True):
            row = np.zeros(model.n_joint_positions)
            row[[model.nodes[body].q for body in cluster.bodies]] = weights
            found[cluster.bodies[n]] = row, float(offset)
    return found


def _range(places: slice) -> range:
    return range(places.start, places.stop)


def _check_complete(model: Model, layout: LibraryLayout, needed: frozenset[int]) -> None:
    missing = [model.joints[body].name for body in sorted(needed - layout.nodes)]
    if missing:
        raise ValueError(
            f"{layout.library}'s order has no joint {few(missing)}, which q or v of "
            f"'{model.name}' {'needs' if len(missing) == 1 else 'need'}"
        )


# ---- one joint's numbers -------------------------------------------------------------------------


def _left(node: Node) -> Array:
    """L with L q = p q, for p the quaternion of the joint's frame in the world."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(Transform(node.rotations, ZERO).matrix()).as_quat()
    return np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])


def _written(node: Node, form: Form, position: Array) -> Array:
    """A position of ours in the library's form, in our order."""
    if form == "circle":
        angle = position[..., -1:]
        return np.concatenate([position[..., :-1], np.cos(angle), np.sin(angle)], axis=-1)
    if form == "rpy":
        R: Any = from_quaternion(*unstack(position)).rows
        roll = np.arctan2(R[2][1], R[2][2])
        pitch = np.arctan2(-R[2][0], np.hypot(R[0][0], R[1][0]))
        return stack([roll, pitch, np.arctan2(R[1][0], R[0][0])], position.shape[:-1])
    if form == "placed" and (node.rotations or node.offset != ZERO):
        point = Transform(node.rotations, node.offset).point(_vec(position[..., :3]))
        turned = np.einsum("ij,...j->...i", _left(node), position[..., 3:])
        return np.concatenate([stack(point, position.shape[:-1]), turned], axis=-1)
    return position


def _as_ours(node: Node, form: Form, written: Array) -> Array:
    """A position in the library's form as ours: the inverse of :func:`_written`."""
    if form == "circle":
        angle = np.arctan2(written[..., -1:], written[..., -2:-1])
        return np.concatenate([written[..., :-2], angle], axis=-1)
    if form == "rpy":
        (cr, cp, cy), (sr, sp, sy) = (
            np.moveaxis(f(0.5 * written), -1, 0) for f in (np.cos, np.sin)
        )
        quaternion = (
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        )
        return np.stack(quaternion, axis=-1)
    if form == "placed" and (node.rotations or node.offset != ZERO):
        moved = minus(_vec(written[..., :3]), node.offset)
        point = Transform(node.rotations, ZERO).unrotate(moved)
        turned = np.einsum("ji,...j->...i", _left(node), written[..., 3:])
        return np.concatenate([stack(point, written.shape[:-1]), turned], axis=-1)
    return written


def _vec(values: Array) -> Vec:
    x, y, z = unstack(values)
    return x, y, z


def _turn(
    node: Node, part: JointOrder, position: Array, *, back: bool = False
) -> Callable[[Array, Array | None], Array]:
    """The function that turns a joint's velocities to the other library's axes, or ``back``.

    Its second argument, a bias (..., 3), is added to the linear velocity in the child's axes, or
    subtracted on the way back.
    """
    if not part.turned:
        return lambda rate, bias: rate
    above = node.rotations if part.form == "placed" else ()
    turns = Transform((*node.joint.placement(unstack(position))[0], *above), ZERO)
    turn = turns.unrotate if back else turns.rotate

    def turned(rate: Array, bias: Array | None) -> Array:
        if isinstance(node.joint, Floating):  # its entries are these, without sums of zeros
            angular, linear = _vec(rate[..., :3]), _vec(rate[..., 3:])
        else:
            motion = relative_motion(node.joint, unstack(rate))
            angular, linear = motion.angular, motion.linear
        if bias is not None and not back:
            linear = plus(linear, _vec(bias))
        if part.turned != "linear":
            angular = turn(angular)
        if part.turned != "angular":
            linear = turn(linear)
        if bias is not None and back:
            linear = minus(linear, _vec(bias))
        return _entries(node, Motion(angular, linear), rate, position)

    return turned


def _entries(node: Node, motion: Motion, *like: Array) -> Array:
    """The joint's velocities in a relative motion, with the batch axes of ``like``."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in like))
    if isinstance(node.joint, Floating):
        return stack([*motion.angular, *motion.linear], batch)
    entries: Vector = [
        inner(s.angular, motion.angular) if s.angular != ZERO else inner(s.linear, motion.linear)
        for s in node.joint.subspace
    ]
    return stack(entries, batch)


def _turning_bias(node: Node, part: JointOrder, rate: Array) -> Array | None:
    """ω × v, the difference of v̇ in the parent's and the child's axes; None where both agree."""
    if part.turned in ("", "angular"):
        return None
    motion = relative_motion(node.joint, unstack(rate))
    return stack(cross(motion.angular, motion.linear), rate.shape[:-1])
