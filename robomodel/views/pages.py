"""A robot as one HTML file that computes: sliders, loops closed in the page, curves of a joint.

The page has the robot's functions as JavaScript, written from the programs of its machine code, so
it is exact and needs no server.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.actuators.efforts import driving
from robomodel.dynamics.actuators.reflection import reflected, reflected_inertia
from robomodel.dynamics.kinematics.frames import (
    FrameKey,
    FrameLike,
    frame_keys,
    link_poses,
    place,
    placements,
    pose,
)
from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.files import replace_file
from robomodel.interop.javascript import module
from robomodel.interop.programs import iterated, routine
from robomodel.interop.source import Routine
from robomodel.kernels.function import TracedFunction
from robomodel.model import Model
from robomodel.model.elements import Cluster, Frame, Joint, position_names
from robomodel.model.parameters import (
    PARAMETERS,
    as_parameters,
    closed_anew,
    parameterized,
    parameters,
    unit_of,
)
from robomodel.reach.limb import limb_joints
from robomodel.reach.paths import RangeEnd
from robomodel.reach.ranges import joint_range
from robomodel.reports.actuation.study import FourBar, four_bars
from robomodel.reports.document import count, framed
from robomodel.reports.palette import CURVES, GREY, SCENE, coloured
from robomodel.reports.plots import CUT_OFF
from robomodel.scalars import Scalar, Vector, div, sqrt, value_of
from robomodel.spatial import Vec, apply, cross, inner, minus, plus
from robomodel.views.extension import differences, extension
from robomodel.views.solids import (
    Solid,
    code_of,
    coloured_solids,
    link_colours,
    link_solids,
    size_of,
    tips,
    view_angles,
)
from robomodel.views.viewer import freedoms

Segment: TypeAlias = "tuple[str, float, str | tuple[str, str], str | tuple[str, str]]"
"""A bar: colour, radius, and its ends: links' origins, or anchors (loop, "" or ".successor")."""


class Page(str):
    """The text of a page, which notebooks show."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return framed(self)


def page(
    model: Model,
    *,
    q: ArrayLike | None = None,
    joint: str | None = None,
    loads: FrameLike | Sequence[FrameLike] | None = None,
    vary: Mapping[str, tuple[float, float]] | None = None,
    compare: Model | None = None,
    compact: bool = False,
) -> Page:
    """A page that shows the robot and computes in the browser, as HTML without dependencies.

    It has a slider for each freedom; loops close to rounding, by the robot's own functions. Bodies
    can be dragged. Beside it are curves over the range of the chosen joint, all others at their
    present positions: velocities of the joints of its cluster (G), the force that holds it under
    gravity and a load, its inertia and the part reflected by rotors and linkages, and transmission
    angles of four-bars. The address keeps the pose.

    Args:
        model: The robot.
        q: The pose at the start (nq,); default :meth:`Model.neutral`.
        joint: The independent joint chosen at the start; default one that moves a linkage.
        loads: Links, or (link, offset), that may carry a load; default ends of the tree.
        vary: Names of parameters (:func:`robomodel.parameters`, those of geometry too) with the
            least and the greatest value of their sliders: loops close anew and all curves follow,
            beside those of designs that are kept. Links are then drawn as bars between their
            joints. The page saves an extension for :func:`robomodel.load`.
        compare: Another design, whose curves are drawn with broken lines: a robot of the same
            links and joints, whose parameters (:func:`robomodel.parameters`) may differ.
        compact: Show the figure and its sliders only; it moves until it is touched, unless the
            reader has asked for less motion.

    Returns:
        html: The text of the page, which notebooks display.

    Raises:
        ValueError: ``q`` is not a closed configuration; nothing moves; values of ``vary`` that are
            no range; ``compare`` differs in more than parameters.
        UnknownNameError: No such link or parameter, or no independent joint of one freedom with
            this name.
    """
    if not model.nv:
        raise ValueError(f"'{model.name}' has nothing that moves: write_png draws it")
    start = model.neutral() if q is None else np.asarray(q, dtype=float)
    if start.shape != (model.nq,):
        raise ValueError(f"q has the shape {start.shape}, not ({model.nq},)")
    model.check(start)
    carried = _loads(model) if loads is None else frame_keys(loads)
    ranges = _ranges(model, vary or {})
    varied = tuple(ranges)
    others = {} if compare is None else differences(model, compare)
    names = (*varied, *(name for name in others if name not in ranges))
    everything = coloured_solids(model)
    segments, solids = _segments(model) if names else ((), everything)
    links = _drawn(model, [solid for _, solid in solids], carried)
    bars = [
        bar
        for cluster in model.clusters
        if cluster.implicit
        for bar in four_bars(model, cluster, start[None])
        if bar.input
    ]
    shows_reflected = not names and _has_reflected(model)
    data = _data(model, start, solids, links, carried) | _camera(model, start, everything)
    data |= {"compact": compact, "reflected": shows_reflected, "bars": _told(bars)}
    data |= {
        "parameters": [
            {
                "name": name,
                "unit": unit_of(model, name),
                "lower": low,
                "upper": high,
                "value": value,
            }
            for name, (low, high, value) in ranges.items()
        ],
        "segments": [[colour, radius] for colour, radius, _, _ in segments],
        "motors": _motors(model),
        "kept": [] if compare is None else [_beside(model, compare, names, others)],
    }
    if names:
        data["rods"] = []
    if joint is not None:
        joints = [f["name"] if f["q"] >= 0 else "" for f in data["freedoms"]]
        if joint not in joints:
            known = [name for name in joints if name]
            raise UnknownNameError(
                f"no independent joint '{joint}' in '{model.name}'{did_you_mean(joint, known)}"
            )
        data["chosen"] = joints.index(joint)
    given = {"parameters": names} if names else {}
    functions: dict[str, Routine] = {
        "link_poses": _drawn_poses(model, [link.name for link in links], names),
        "quantities": _quantities(model, shows_reflected, bars, carried, names),
    }
    for each in ("integrate", "close", "joint_positions"):
        functions[each] = iterated(model, each, **given)
    if names:
        functions["points"] = _points(model, segments, names)
    if varied:
        written = extension(model, varied, names)
        functions["written"] = written.numbers
        data |= {"pieces": written.pieces, "unsaid": written.unsaid}
    return Page(filled("page.html", model.name, data, module(model, functions, names)))


def write_page(model: Model, path: str | os.PathLike[str], **options: Any) -> None:
    """Write :func:`page` to a file, with its options."""
    replace_file(str(path), page(model, **options))


def filled(template: str, title: str, data: object, code: str = "") -> str:
    """A page of this package, filled with its data, the drawing of solids and a module's code."""
    folder = files("robomodel.views")
    text = coloured(folder.joinpath(template).read_text(encoding="utf-8"), SCENE)
    numbers = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    for name, part in (
        ("MODULE", code.replace("</", "<\\/")),
        ("SCENE", folder.joinpath("scene.js").read_text(encoding="utf-8")),
        ("GREY", GREY),
        ("MOTION", folder.joinpath("motion.js").read_text(encoding="utf-8")),
        ("TITLE", escape(title)),
        ("DATA", numbers.replace("<", "\\u003c")),
    ):
        text = text.replace(f"%{name}%", part)
    return text


# ---- data that the page draws --------------------------------------------------------------------


def _ranges(
    model: Model, vary: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float, float]]:
    """The ends of each parameter's range, and the file's value, which is between them."""
    names = as_parameters(model, tuple(vary))
    if not names:
        return {}
    listed, result = parameters(model, geometry=True), {}
    for name in names:
        low, high = (float(x) for x in vary[name])
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"vary: '{name}' from {low:g} to {high:g} is no range of numbers")
        value = float(listed[name])
        result[name] = (min(low, value), max(high, value), value)
    return result


def _beside(
    model: Model, compare: Model, names: Sequence[str], others: Mapping[str, float]
) -> dict[str, Any]:
    """Another design in the page's data: its name, numbers, a closed pose and its motors."""
    listed = parameters(model, geometry=True)
    at = closed_anew(parameterized(model, others), model)
    return {
        "name": compare.name if compare.name != model.name else "the other design",
        "numbers": [others.get(name, listed[name]) for name in names],
        "q": at.neutral().tolist(),
        "motors": _motors(compare),
    }


def _segments(model: Model) -> tuple[list[Segment], list[tuple[str, Solid]]]:
    """Links as bars from their origin to the bodies on them; solids of hinges and rotors only."""
    size, colours = size_of(model), link_colours(model)
    segments: list[Segment] = []
    for link in model.description.links:
        colour = code_of(colours[link.name])
        ends: list[str | tuple[str, str]] = [
            joint.child for joint in model.description.joints if joint.parent == link.name
        ]
        for loop in model.description.loops:
            for side, end in (("", loop.predecessor), (".successor", loop.successor)):
                if end.link == link.name:
                    ends.append((loop.name, side))
        segments += [(colour, 0.014 * size, link.name, end) for end in ends]
    for loop in model.description.loops:
        if loop.type == "rod":
            rod = (loop.name, ""), (loop.name, ".successor")
            segments.append((GREY, 0.006 * size, *rod))
    stay = [each for each in link_solids(model) if each.hinge]
    stay += [tip for link in model.description.links for tip in tips(model, link)]
    return segments, [(code_of(colours[each.link]), each) for each in stay]


def _drawn(model: Model, solids: Sequence[Solid], carried: Sequence[FrameKey]) -> list[Frame]:
    """Links with solids, and those at which rods end and loads act."""
    names = {solid.link for solid in solids}
    names |= {key if isinstance(key, str) else key[0] for key in carried}
    for loop in model.description.loops:
        if loop.type == "rod":
            names |= {loop.predecessor.link, loop.successor.link}
    return sorted((model.frame(name) for name in names), key=lambda f: model.frame_index[f.name])


def _data(
    model: Model,
    start: Array,
    solids: Sequence[tuple[str, Solid]],
    links: Sequence[Frame],
    carried: Sequence[FrameKey],
) -> dict[str, Any]:
    number = {link.name: n for n, link in enumerate(links)}
    carriers = [key if isinstance(key, str) else key[0] for key in carried]
    shown = _freedoms(model)
    loops = len(model.loops)
    about = [count(model.nv, "freedom"), *([count(loops, "loop")] if loops else [])]
    return {
        "about": ", ".join(about),
        "loopCount": count(loops, "loop") if loops else "",
        "solids": [
            {
                "link": number[solid.link],
                "colour": colour,
                "at": np.round(solid.corners, 5).tolist(),
                "faces": solid.faces.tolist(),
            }
            for colour, solid in solids
        ],
        "rods": [
            [number[a.link], list(a.origin.xyz), number[b.link], list(b.origin.xyz)]
            for loop in model.description.loops
            if loop.type == "rod"
            for a, b in [(loop.predecessor, loop.successor)]
        ],
        "start": start.tolist(),
        "loops": [
            cluster.implicit for cluster in model.clusters for _ in range(*cluster.q.indices(9999))
        ],
        "freedoms": shown,
        "chosen": next(
            (n for n, f in enumerate(shown) if f["q"] >= 0 and f["looped"]),
            next((n for n, f in enumerate(shown) if f["q"] >= 0), -1),
        ),
        "dependent": _dependent(model),
        "loads": [
            {"name": name, "link": number[name], "at": [0, 0, 0] if key == name else list(key[1])}
            for name, key in zip(carriers, carried, strict=True)
        ],
        "weight": any(model.gravity),
        "colours": CURVES,
        "steepest": CUT_OFF,
    }


def _camera(model: Model, start: Array, solids: Sequence[tuple[str, Solid]]) -> dict[str, Any]:
    """The camera's position, from which these solids fill the picture, and the ground."""
    poses = link_poses(model, start)
    corners = [
        solid.corners @ poses[solid.link][:3, :3].T + poses[solid.link][:3, 3]
        for _, solid in solids
    ]
    points = np.concatenate(corners) if corners else np.zeros((1, 3))
    low, high = points.min(axis=0), points.max(axis=0)
    centre, size = (low + high) / 2, float(max(np.ptp(points, axis=0).max(), 0.05))
    turn, tilt = view_angles(model, start)
    return {
        "size": size,
        "centre": np.round(centre, 5).tolist(),
        "ground": round(float(low[2]), 5),
        "turn": turn,
        "tilt": tilt,
        "far": 2.9 * float(np.linalg.norm(points - centre, axis=1).max(initial=0.05)),
    }


def _told(bars: Sequence[FourBar]) -> list[dict[str, Any]]:
    """The indices at which the page reads transmission angles."""
    return [
        {"joint": each.joints[2], "cluster": each.cluster, "at": n} for n, each in enumerate(bars)
    ]


def _freedoms(model: Model) -> list[dict[str, Any]]:
    """Freedoms that sliders move, their ends and the causes of these, joints that follow."""
    joints = {joint.name: joint for joint in model.joints}
    places = {name: n for n, name in enumerate(position_names(model))}
    result, at = [], 0
    for freedom in freedoms(model):
        joint = joints[freedom.joint]
        cluster = next(c for c in model.clusters if joint.name in c.joints)
        place = places.get(freedom.name, -1) if freedom.alone else -1
        lower, upper, by = freedom.lower, freedom.upper, ("", "")
        if place >= 0:
            ends = joint_range(model, joint.name)
            lower = ends.lower if math.isfinite(ends.lower) else lower
            upper = ends.upper if math.isfinite(ends.upper) else upper
            by = (_ended(ends.lower_end, joint.name), _ended(ends.upper_end, joint.name))
        others = [
            {"name": name, "at": at + n, "q": places.get(name, -1), "output": output}
            for n, body in enumerate(_followers(model, freedom.index))
            for name in [model.joints[body].name]
            for output in [_is_output(model, cluster, body, joint)]
        ]
        at += len(others)
        units = joint.units
        linear = not freedom.alone and freedom.name.rpartition(".")[2] in ("vx", "vy", "vz")
        result.append(
            {
                "name": freedom.name,
                "index": freedom.index,
                "q": place,
                "lower": lower,
                "upper": upper,
                "lowerBy": by[0],
                "upperBy": by[1],
                "unit": "m" if linear else units.position,
                "effort": units.force,
                "inertia": units.inertia,
                "base": joint.name == model.floating_base,
                "cluster": cluster.name,
                "looped": cluster.implicit,
                "others": others,
            }
        )
    return result


def _ended(end: RangeEnd, joint: str) -> str:
    """The cause of the end of a range, in the page's words."""
    return "its limit" if end.by == joint else str(end) if end.by else ""


def _is_output(model: Model, cluster: Cluster, body: int, joint: Joint) -> bool:
    """True if motors' forces reach a joint through the only freedom of its linkage."""
    alike = model.joints[body].units == joint.units
    return cluster.nv == 1 and alike and not model.nodes[body].axisymmetric


def _followers(model: Model, index: int) -> list[int]:
    """Bodies whose joints, of one freedom, move with an independent velocity; not its own."""
    cluster = next(c for c in model.clusters if c.v.start <= index < c.v.stop)
    bodies = [body for body in cluster.bodies if model.joints[body].nv == 1]
    return [body for body in bodies if model.joints[body].name != model.dof_names[index]]


def _dependent(model: Model) -> list[dict[str, Any]]:
    """Joints without a slider, their indices among the positions of all, which carry limbs."""
    moved, limbs, at, result = {*model.dof_names}, limb_joints(model), 0, list[dict[str, Any]]()
    for joint in model.joints:
        if joint.name == model.floating_base:
            continue
        if joint.nq == 1 and joint.name not in moved:
            said = {"name": joint.name, "at": at, "unit": joint.units.position}
            result.append(said | {"limb": joint.name in limbs})
        at += joint.nq
    return result


def _loads(model: Model) -> tuple[FrameKey, ...]:
    """Ends of the tree: frames at feet and hands, else centres of mass of last links."""
    parents = {joint.parent for joint in model.description.joints}
    loads: list[tuple[int, FrameKey]] = []
    for link in model.description.links:
        body = model.frame(link.name).body
        if link.name in parents or body < 0 or model.nodes[body].axisymmetric:
            continue
        centre = (0.0, 0.0, 0.0) if link.inertial is None else link.inertial.origin.xyz
        depth, above = 0, body
        while above >= 0:
            depth, above = depth + 1, model.nodes[above].parent
        loads.append((depth, (link.name, centre) if any(centre) else link.name))
    # most links that may carry a load, unless some are named
    return tuple(key for _, key in sorted(loads, key=lambda each: -each[0])[:8])


# ---- functions of the page -----------------------------------------------------------------------


def _changed(model: Model, names: Sequence[str], given: Sequence[Vector]) -> Model:
    """The model with the values of its parameters that functions take last."""
    return parameterized(model, dict(zip(names, given[0], strict=True))) if names else model


def _arguments(model: Model, names: Sequence[str]) -> dict[str, int]:
    return {"q": model.nq} | ({PARAMETERS: len(names)} if names else {})


def _drawn_poses(model: Model, links: Sequence[str], names: Sequence[str]) -> TracedFunction:
    """Rotation and origin of the links that are drawn, three rows of four each."""

    def build(q: Vector, *given: Vector) -> list[Scalar]:
        at = _changed(model, names, given)
        placed = placements(at, q, [at.frame(name) for name in links])
        rows = [row for turn, at in placed for row in zip(turn, at, strict=True)]
        return [x for row, origin in rows for x in (*row, origin)]

    results = {"poses": (len(links), 3, 4)}
    return TracedFunction("link_poses", _arguments(model, names), results, build)


def _points(model: Model, segments: Sequence[Segment], names: Sequence[str]) -> TracedFunction:
    """Both ends of the bars, in the world."""

    def build(q: Vector, *given: Vector) -> list[Scalar]:
        at = _changed(model, names, given)
        placed = dict(zip(at.frame_index, placements(at, q, at.frames), strict=True))
        anchors = {
            (loop.name, side): end
            for loop in at.description.loops
            for side, end in (("", loop.predecessor), (".successor", loop.successor))
        }
        ends: list[Scalar] = []
        for _, _, *pair in segments:
            for what in pair:
                if isinstance(what, str):
                    ends += placed[what][1]
                else:
                    anchor = anchors[what]
                    turn, origin = placed[anchor.link]
                    ends += plus(origin, apply(turn, anchor.origin.xyz))
        return ends

    results = {"ends": (len(segments), 6)}
    return TracedFunction("points", _arguments(model, names), results, build)


def _bodies(model: Model) -> dict[int, int]:
    """The body that each freedom moves, for joints with one freedom."""
    joints = {joint.name: body for body, joint in enumerate(model.joints)}
    return {i: joints[name] for i, name in enumerate(model.dof_names) if name in joints}


def _quantities(
    model: Model,
    shows_reflected: bool,
    bars: Sequence[FourBar],
    carried: Sequence[FrameKey],
    names: Sequence[str],
) -> TracedFunction:
    """The plotted quantities of all freedoms at once."""
    nv, options = model.nv, {"parameters": names} if names else {}
    places = [(i, body) for i in range(nv) for body in _followers(model, i)]
    crba = routine(model, "crba", **options)
    bodies = _bodies(model) if shows_reflected else {}
    gravity = routine(model, "gravity_force", **options)
    ratios = routine(model, "constraint_jacobian", **options)
    motors = [routine(model, "actuator_map", **options)] if _motors(model) else []
    jacobians = [
        routine(model, "jacobian", frame=key, reference="local_world_aligned", **options)
        for key in carried
    ]

    def build(q: Vector, *given: Vector) -> list[Scalar]:
        G = ratios.build(q, *given)
        result = [G[model.nodes[body].v * nv + i] for i, body in places]
        result += gravity.build(q, *given)
        result += crba.build(q, *given)[:: nv + 1]
        if bodies:
            positions = model.spanning_positions(q)
            of = [reflected(model, positions, G[i::nv], body) for i, body in bodies.items()]
            result += [dict(zip(bodies, of, strict=True)).get(i, 0.0) for i in range(nv)]
        for each in motors:
            result += each.build(q, *given)
        at = _changed(model, names, given)
        for jacobian in jacobians:
            J = jacobian.build(q, *given)
            rows = [J[r * nv : (r + 1) * nv] for r in (3, 4, 5)]
            result += [-inner((x, y, z), at.gravity) for x, y, z in zip(*rows, strict=True)]
        return [*result, *(_cosine(at, q, bar) for bar in bars)]

    results = {
        "ratios": (len(places),),
        "gravity": (nv,),
        "inertia": (nv,),
        **({"reflected": (nv,)} if bodies else {}),
        **({"motors": (nv, len(model.actuators))} if motors else {}),
        "loads": (len(jacobians), nv),
        "angles": (len(bars),),
    }
    return TracedFunction("quantities", _arguments(model, names), results, build)


def _motors(model: Model) -> list[dict[str, float]]:
    """Effort at rest and greatest speed of each actuator, both ways, if all have both."""
    motors = [
        {
            "effort": min(value_of(driving(way, 0.0)) for way in (each, each.backwards)),
            "velocity": min(
                each.velocity_limit, -each.least_velocity, each.no_load_speed or math.inf
            ),
        }
        for each in model.actuators
    ]
    limited = all(math.isfinite(x) for motor in motors for x in motor.values())
    return motors if limited else []


def _has_reflected(model: Model) -> bool:
    """True if rotors or linkages add inertia to a joint."""
    q = model.neutral()[None]
    return any(
        np.any(reflected_inertia(model, q, body, np.eye(model.nv)[None, i]) > 0.0)
        for i, body in _bodies(model).items()
    )


def _cosine(model: Model, q: Vector, bar: FourBar) -> Scalar:
    """The cosine of a four-bar's transmission angle, at the joint opposite the input."""
    joints = {joint.name: joint for joint in model.description.joints}
    anchors = {loop.name: loop.predecessor for loop in model.description.loops}

    def point(name: str) -> Vec:
        if name in joints:
            return pose(model, q, place(model, joints[name].child))[1]
        anchor = anchors[name]
        return pose(model, q, place(model, (anchor.link, anchor.origin.xyz)))[1]

    before, at, after = (point(name) for name in bar.joints[1:])
    hinge = next(name for name in bar.joints if name in joints)
    rotation, _ = pose(model, q, place(model, joints[hinge].child))
    size = math.sqrt(sum(x * x for x in joints[hinge].axis))
    axis = [x / size for x in joints[hinge].axis]
    normal = apply(rotation, (axis[0], axis[1], axis[2]))
    a, b = (cross(minus(end, at), normal) for end in (before, after))
    return div(inner(a, b), sqrt(inner(a, a) * inner(b, b)))
