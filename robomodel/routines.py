"""What can run elsewhere: algorithms, and functions of the configuration, as programs.

One description serves C, JAX and PyTorch: a name, arguments, results, and how it is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.compiled import as_task
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.table import TABLE
from robomodel.errors import did_you_mean, no_model
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace, Traced
from robomodel.model.configurations.traced import CLOSE_STEPS, integrated, left_open, settled
from robomodel.model.model import Model
from robomodel.scalars import Scalar, neg, select, sqrt

Inputs = Mapping[str, Sequence[Traced]]


@dataclass(frozen=True)
class Routine:
    """A function of one robot: its arguments' sizes, its results' shapes, and how it is traced.

    ``said``: one line on what it does. ``task``: of algorithms, which one.
    """

    model: Model
    name: str
    arguments: Mapping[str, int]
    results: Mapping[str, tuple[int, ...]]
    build: Callable[[Inputs], Sequence[Scalar]]
    said: str
    task: Task | None = None

    @cached_property
    def program(self) -> Program:
        """The program; inputs are the arguments one after the other, outputs the results."""
        trace = Trace()
        inputs = {name: trace.inputs(size) for name, size in self.arguments.items()}
        return trace.program(self.build(inputs)).fused()


def routine(model: Model, name: str, **options: Any) -> Routine:
    """A function by its name, with options as :func:`robomodel.compile` has them.

    ``steps``, of "close": how many steps of Newton's. ValueError for what is not known, or cannot
    be a straight-line program; TypeError for what is no model or no name, KeyError for links that
    are none of the model's.
    """
    if not isinstance(model, Model):
        raise no_model(model)
    if isinstance(name, list | dict | set):
        raise TypeError(f"one function is asked for, by its name, not {name!r}")
    if name in ELSEWHERE:
        raise ValueError(f"'{name}' cannot be had as a program: {ELSEWHERE[name]}")
    if name not in OWN and name not in TABLE:
        known = (*TABLE, *OWN)
        raise ValueError(
            f"function '{name}' is not known{did_you_mean(name, known)}; known are "
            + ", ".join(f"'{each}'" for each in known)
        )
    if not model.nv:
        raise ValueError(f"'{model.name}' has nothing that moves, so '{name}' has no arguments")
    if name in OWN:
        return OWN[name](model, **_checked(name, options))
    known_options = ("frame", "frames", "f_ext", "method", "known", "passive", "reference")
    for option in options:
        if option not in known_options:
            raise ValueError(f"'{name}' has no option '{option}'; it may have {known_options}")
    task = as_task(model, name, **options)  # type: ignore[arg-type]
    for link in (*(x if isinstance(x, str) else x[0] for x in task.frames), *task.f_ext):
        model.frame(link)
    results = task.results(model)
    empty = [result for result, shape in results.items() if 0 in shape]
    if empty:
        what = "actuators" if name == "actuator_map" else f"'{empty[0]}'"
        raise ValueError(f"'{name}' has no numbers on '{model.name}', which has no {what}")

    def build(inputs: Inputs) -> Sequence[Scalar]:
        return task.run(task.tree(model), inputs)

    return Routine(model, name, task.sizes(model), results, build, SAID.get(name, ""), task)


def _checked(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    for option, value in options.items():
        if (name, option) != ("close", "steps"):
            raise ValueError(f"'{name}' has no option '{option}'")
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"steps must be at least one, got {value!r}")
    return options


# ---- functions of the configuration --------------------------------------------------------------


def _close(model: Model, steps: int = CLOSE_STEPS) -> Routine:
    def build(x: Inputs) -> list[Scalar]:
        q, _, _ = settled(model, x["q"], steps)
        return [*q, _root(left_open(model, q))]

    said = (
        f"Quaternions of unit length, and loops closed by {steps} steps of Newton's, independent "
        "joints held; residual: what loops still fail by (root of the sum of squares)."
    )
    results = {"closed": (model.nq,), "residual": ()}
    return Routine(model, "close", {"q": model.nq}, results, build, said)


def _root(x: Scalar) -> Scalar:
    """√x, whose derivatives are zero where x is zero with its slope, as those of a norm may be."""
    below = neg(x)
    return select(below, sqrt(select(below, x, 1.0)), x)


def _integrate(model: Model) -> Routine:
    sizes = {"q": model.nq, "v_dt": model.nv}
    said = (
        "Configuration after the motion v_dt, loops closed: for steps up to some 0.1 rad or m; "
        "'close' says what loops fail by."
    )
    return Routine(
        model, "integrate", sizes, {"next": (model.nq,)},
        lambda x: integrated(model, x["q"], x["v_dt"]), said,
    )  # fmt: skip


def _first(model: Model, kind: str) -> int:
    """Of all joints' positions ("nq") or velocities ("nv"), how many are the floating base's."""
    if model.floating_base is None:
        return 0
    first: int = getattr(model.nodes[0].joint, kind)
    return first


def _joint_positions(model: Model) -> Routine:
    first = _first(model, "nq")
    count = sum(node.joint.nq for node in model.nodes) - first
    said = "Positions of all joints of the spanning tree but the floating base, in its order."
    return Routine(
        model, "joint_positions", {"q": model.nq}, {"positions": (count,)},
        lambda x: model.spanning_positions(x["q"])[first:], said,
    )  # fmt: skip


def _joint_velocities(model: Model) -> Routine:
    first, count = _first(model, "nv"), model.n_joint_velocities
    said = "Velocities of all joints of the spanning tree but the floating base, in its order."
    return Routine(
        model, "joint_velocities", {"q": model.nq, "v": model.nv}, {"velocities": (count - first,)},
        lambda x: State(model, x["q"], v=x["v"]).velocities[first:], said,
    )  # fmt: skip


def _constraint_jacobian(model: Model) -> Routine:
    def build(x: Inputs) -> list[Scalar]:
        result: list[Scalar] = [0.0] * (model.n_joint_velocities * model.nv)
        rows = State(model, x["q"]).rows
        for cluster in model.clusters:
            for r in range(cluster.spanning_v.start, cluster.spanning_v.stop):
                at = r * model.nv
                result[at + cluster.v.start : at + cluster.v.stop] = rows[r]
        return result

    said = "G: velocities of all joints of the spanning tree, the base's first, are G v."
    shape = (model.n_joint_velocities, model.nv)
    return Routine(model, "constraint_jacobian", {"q": model.nq}, {"G": shape}, build, said)


def _constraint_bias(model: Model) -> Routine:
    said = "g: accelerations of all joints of the spanning tree are G a + g."
    return Routine(
        model, "constraint_bias", {"q": model.nq, "v": model.nv},
        {"g": (model.n_joint_velocities,)}, lambda x: State(model, x["q"], v=x["v"]).bias, said,
    )  # fmt: skip


OWN: Mapping[str, Callable[..., Routine]] = {
    "close": _close,
    "constraint_bias": _constraint_bias,
    "constraint_jacobian": _constraint_jacobian,
    "integrate": _integrate,
    "joint_positions": _joint_positions,
    "joint_velocities": _joint_velocities,
}
"""Functions of the configuration, besides the algorithms."""

ELSEWHERE: Mapping[str, str] = {
    "configuration": "how far to go depends on the numbers; use 'close'",
    "random_configuration": "it draws numbers",
    "difference": "logarithms of rotations branch on their angle",
    "torque_limits": "it sorts; use 'actuator_map'",
    "torque_polytope": "how many vertices there are depends on the numbers; use 'actuator_map'",
    "actuator_forces": "it needs singular values; use 'actuator_map'",
    "contact_aba": "contacts are solved by iteration; use 'contact'",
    "impulse": "contacts are solved by iteration; use 'contact'",
    "simulate": "it is a loop over time; use 'aba' and 'integrate'",
    "rollout": "it is a loop over time; use 'aba' and 'integrate'",
}
"""What users may ask for, and why it is no straight-line program."""

SAID: Mapping[str, str] = {
    "rnea": "Inverse dynamics: forces tau that give the accelerations a.",
    "aba": "Forward dynamics: accelerations a under the forces tau.",
    "crba": "Joint-space inertia matrix M.",
    "bias_force": "Forces that hold the accelerations at zero: velocity products and gravity.",
    "jacobian": "Jacobian of a frame: its velocity, angular first, is J v.",
    "frame_pose": "Pose of a frame in the world: rotation and origin, 4 by 4.",
    "frame_velocity": "Velocity of a frame, angular first.",
    "frame_acceleration": "Acceleration of a frame, angular first, of its origin as a point.",
    "frame_bias": "Acceleration of a frame at zero accelerations of the joints.",
    "gravity_force": "Forces that hold gravity.",
    "coriolis": "C with C v + gravity_force = bias_force, and dM/dt = C + C^T.",
    "mass_inverse": "Inverse of the joint-space inertia matrix.",
    "efpa": "Inverse operational-space inertia of frames.",
    "actuator_map": "Forces of the motors: tau = B u, and their rates are B^T v.",
    "passive_force": "Forces of springs and dampers on the independent velocities.",
    "energy": "Kinetic and potential energy.",
    "center_of_mass": "Centre of mass in the world.",
    "centroidal_momentum": "Momentum about the centre of mass, angular first, in world axes.",
    "rnea_derivatives": "Derivatives of inverse dynamics by q (along integrate), v and a.",
    "aba_derivatives": "Derivatives of forward dynamics by q (along integrate), v and tau.",
    "armature": "What rotors add to the inertia matrix of the tree without them.",
    "hybrid": "Forces where accelerations are given, and accelerations elsewhere.",
}
