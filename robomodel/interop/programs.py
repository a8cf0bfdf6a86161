"""A robot's functions as kernels, and as programs for other languages.

:func:`compile` compiles algorithms as kernels for this CPU or for a GPU. :func:`routine` returns
the traced functions, of algorithms and of functions of the configuration, from which C, CasADi,
JAX and PyTorch are written.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args, overload

from numpy.typing import DTypeLike

from robomodel import dynamics
from robomodel.dynamics.actuators import inverse
from robomodel.dynamics.algorithm import (
    ALGORITHMS,
    AlgorithmOptions,
    AlgorithmSpec,
    as_spec,
    documented,
    traced_algorithm,
)
from robomodel.dynamics.kinematics.frames import link_poses_function
from robomodel.errors import check_names, did_you_mean, few, no_model
from robomodel.kernels.function import CudaKernel, Kernel, TracedFunction, as_dtype
from robomodel.kernels.iterated import IteratedFunction
from robomodel.model.configurations import blockwise, functions
from robomodel.model.configurations.functions import CLOSE_STEPS, INTEGRATE_STEPS
from robomodel.model.model import Model
from robomodel.model.parameters import as_parameters
from robomodel.model.parametric import parametric

if TYPE_CHECKING:
    from robomodel.control import Task

Target: TypeAlias = Literal["cpu", "cuda"]
TARGETS: tuple[Target, ...] = get_args(Target)


@overload
def compile(
    model: Model,
    algorithm: str,
    *,
    dtype: DTypeLike = "float64",
    target: Literal["cpu"] = "cpu",
    **options: Unpack[AlgorithmOptions],
) -> Kernel:
    """For CPUs."""


@overload
def compile(
    model: Model,
    algorithm: str,
    *,
    dtype: DTypeLike = "float64",
    target: Literal["cuda"],
    **options: Unpack[AlgorithmOptions],
) -> CudaKernel:
    """For NVIDIA GPUs."""


@documented
def compile(
    model: Model,
    algorithm: str,
    *,
    dtype: DTypeLike = "float64",
    target: Target = "cpu",
    **options: Unpack[AlgorithmOptions],
) -> Kernel | CudaKernel:
    """Compile an algorithm: "rnea", "aba", "crba", "bias_force", "jacobian" and so on.

    The kernel is the function of that name without checks of arguments: ``kernel(q, v, tau)``.

    Args:
        algorithm: Name of the function.
        frame: The link, or (link, offset), for functions of a frame.
        frames: The frames of "efpa".
        f_ext: The links on which wrenches act; the wrenches are further arguments (..., 6) in this
            order.
        method: As of :func:`robomodel.rnea` and :func:`robomodel.aba`.
        known: For "hybrid", the joints, or freedoms of ``model.dof_names``, with given
            accelerations; ``kernel(q, v, given)`` takes nv numbers, accelerations of these and
            forces of the others, and returns (tau, a).
        passive: Include the file's springs and damping.
        reference: As of :func:`robomodel.jacobian`.
        dtype: "float64", or "float32", with twice as many numbers per vector register (for its
            errors see docs/algorithms/kernels.md; "aba" loses less with method "orthonormal").
        target: "cpu", or "cuda" for NVIDIA GPUs, see
            :class:`~robomodel.kernels.function.CudaKernel`.

    Returns:
        kernel: The compiled algorithm.

    Raises:
        ValueError: The algorithm, an option, the dtype or the target is unknown.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> kernel = rm.compile(model, "aba")
        >>> kernel(q, [1.0], [0.2]).shape
        (1,)
    """
    number = as_dtype(dtype)
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not known; 'cpu' and 'cuda' are")
    function = traced_algorithm(model, as_spec(model, algorithm, **options))
    return function.kernel(number) if target == "cpu" else function.cuda(number)


# ---- programs ------------------------------------------------------------------------------------


def routine(model: Model, name: str, **options: Any) -> TracedFunction:
    """A function by its name, with options as for :func:`robomodel.compile`.

    ``steps``, of "close" and "from_actuators": number of Newton steps. ``tasks`` of "ik", or
    ``frames`` whose poses are targets. Raises ValueError for unknown functions and those without a
    straight-line program, TypeError for a wrong model or name, KeyError for links that the model
    does not have.
    """
    if not isinstance(model, Model):
        raise no_model(model)
    if isinstance(name, list | dict | set):
        raise TypeError(f"one function is asked for, by its name, not {name!r}")
    if name in NO_PROGRAMS:
        raise ValueError(f"'{name}' cannot be had as a program: {NO_PROGRAMS[name]}")
    if name not in OF_CONFIGURATIONS and name not in ALGORITHMS:
        names = (*ALGORITHMS, *OF_CONFIGURATIONS)
        raise ValueError(
            f"function '{name}' is not known{did_you_mean(name, names)}; known are "
            + ", ".join(f"'{each}'" for each in names)
        )
    _check_moves(model, name)
    if name in OF_CONFIGURATIONS:
        parameters = as_parameters(model, options.pop("parameters", ()))
        make, further = OF_CONFIGURATIONS[name](model, **_checked(name, options))
        if not parameters:
            return make(model, *further)
        if name == "from_actuators":
            raise ValueError("'from_actuators' takes no parameters; use rm.with_parameters")
        return parametric(make, model, parameters, *further)
    known_options = tuple(AlgorithmOptions.__annotations__)
    for option in options:
        if option not in known_options:
            raise ValueError(f"'{name}' has no option '{option}'; it may have {known_options}")
    task = as_spec(model, name, **options)
    for link in (*(x if isinstance(x, str) else x[0] for x in task.frames), *task.f_ext):
        model.frame(link)
    results = task.results(model)
    empty = [result for result, shape in results.items() if 0 in shape]
    if empty:
        what = "actuators" if name == "actuator_map" else f"'{empty[0]}'"
        raise ValueError(f"'{name}' has no numbers on '{model.name}', which has no {what}")
    return traced_algorithm(model, task)


def iterated(model: Model, name: str, **options: Any) -> TracedFunction | IteratedFunction:
    """A function for languages with loops: as :func:`routine`, but closings run until they close.

    ``steps``: of "close", "from_actuators" and "joint_states", evaluations of a step at most.
    ``joints`` of "joint_states": those that are read, the independent ones by default.
    """
    if name not in ITERATED:
        return routine(model, name, **options)
    if not isinstance(model, Model):
        raise no_model(model)
    _check_moves(model, name)
    parameters = as_parameters(model, options.pop("parameters", ()))
    _checked(name, options)
    return ITERATED[name](model, **options, **({"parameters": parameters} if parameters else {}))


def _check_moves(model: Model, name: str) -> None:
    """Raises ValueError if a function has no arguments."""
    if not model.nv:
        raise ValueError(f"'{model.name}' has nothing that moves, so '{name}' has no arguments")


def task_of(function: TracedFunction | IteratedFunction) -> AlgorithmSpec | None:
    """The algorithm of a function, with its options; None for functions of configurations."""
    arguments = function.origin[1] if function.origin is not None else ()
    return next((x for x in arguments if isinstance(x, AlgorithmSpec)), None)


def _checked(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    for option, value in options.items():
        if option not in OPTIONS.get(name, ()):
            raise ValueError(f"'{name}' has no option '{option}'")
        if option == "steps" and (not isinstance(value, int) or value < 1):
            raise ValueError(f"steps must be at least one, got {value!r}")
    return options


OPTIONS = {
    "close": ("steps",),
    "from_actuators": ("steps",),
    "ik": ("tasks", "frames"),
    "joint_states": ("steps", "joints"),
}
Made: TypeAlias = tuple[Callable[..., TracedFunction], tuple[Any, ...]]


def _ik(model: Model, tasks: Task | Iterable[Task] = (), frames: Iterable[str] = ()) -> Made:
    from robomodel.control.programme import damped_step
    from robomodel.control.tasks import FrameTask, TaskSet

    every = TaskSet(model, tasks or [FrameTask(frame) for frame in frames])
    if not every.tasks:
        raise ValueError("'ik' is of links, as \"ik:foot\", or has tasks=")
    for task in every.tasks:
        if task.hard:
            raise ValueError(f"task '{task.name}' is hard, which needs a solver of programmes")
    return damped_step, (tuple(every.pieces), tuple(every.weights.tolist()))


def _from_actuators(model: Model, **options: Any) -> IteratedFunction:
    if "parameters" in options:
        raise ValueError("'from_actuators' takes no parameters; use rm.with_parameters")
    readings = tuple(actuator.rows for actuator in model.actuators)
    _refuse_open(f"the actuators of '{model.name}'", model, readings)
    return blockwise.read(model, "from_actuators", readings, **options)


def _joint_states(model: Model, joints: Iterable[str] = (), **options: Any) -> IteratedFunction:
    if "parameters" in options:
        raise ValueError("'joint_states' takes no parameters; use rm.with_parameters")
    singles = {
        joint.name: node.v
        for joint, node in zip(model.joints, model.nodes, strict=True)
        if joint.nv == 1
    }
    names = tuple(joints) or tuple(n for n in model.dof_names if n in singles)
    check_names(names, singles, "joint_states: no joint with one freedom is called ")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"joint_states of joints, each once, not {names}")
    readings = tuple(((singles[name], 1.0),) for name in names)
    _refuse_open(f"positions of {few(names)}", model, readings)
    return blockwise.read(model, "joint_states", readings, joints=True, **options)


def _refuse_open(what: str, model: Model, readings: tuple[blockwise.Reading, ...]) -> None:
    """Raises ValueError if readings leave coordinates open."""
    if names := blockwise.parts_of(model, readings)[1]:
        more = f", and {len(names) - 1} more" if len(names) > 1 else ""
        raise ValueError(f"{what} leave '{names[0]}' open{more}")


ITERATED: Mapping[str, Callable[..., IteratedFunction]] = {
    "close": blockwise.close,
    "from_actuators": _from_actuators,
    "joint_states": _joint_states,
}
"""Functions that languages with loops find by iteration."""

OF_CONFIGURATIONS: Mapping[str, Callable[..., Made]] = {
    "close": lambda model, steps=CLOSE_STEPS: (functions.close, (steps,)),
    "constraint_bias": lambda model: (functions.constraint_bias, ()),
    "constraint_jacobian": lambda model: (functions.constraint_jacobian, ()),
    "from_actuators": lambda model, steps=inverse.NEWTON_INVERSE: (
        inverse.from_actuators,
        (steps,),
    ),
    "ik": _ik,
    "integrate": lambda model: (functions.integrate, (INTEGRATE_STEPS,)),
    "joint_positions": lambda model: (functions.joint_positions, (_first(model, "nq"),)),
    "joint_velocities": lambda model: (functions.joint_velocities, (_first(model, "nv"),)),
    "link_poses": lambda model: (link_poses_function, ()),
}
"""Functions of the configuration and of actuators, besides the algorithms."""


def _first(model: Model, kind: str) -> int:
    """Number of positions ("nq") or velocities ("nv") of the floating base."""
    if model.floating_base is None:
        return 0
    first: int = getattr(model.nodes[0].joint, kind)
    return first


NO_PROGRAMS: Mapping[str, str] = {
    "joint_states": "how many steps it takes depends on the numbers; write_c and write_js have it",
    "configuration": "how far to go depends on the numbers; use 'close'",
    "random_configuration": "it draws numbers",
    "difference": "logarithms of rotations branch on their angle",
    "torque_polytope": "how many vertices there are depends on the numbers; use 'actuator_map'",
    "contact_aba": "contacts are solved by iteration; use 'contact'",
    "impulse": "contacts are solved by iteration; use 'contact'",
    "simulate": "it is a loop over time; use 'aba' and 'integrate'",
    "rollout": "it is a loop over time; use 'aba' and 'integrate'",
}
"""Functions without a straight-line program, and the reasons."""

SUMMARIES: Mapping[str, str] = {
    "close": "Quaternions of unit length, and loops closed by steps of Newton's, independent "
    "joints held; residual: what loops still fail by (root of the sum of squares), which is the "
    "least near q where they cannot close.",
    "integrate": "Configuration after the motion v_dt, loops closed: for steps up to some 0.1 rad "
    "or m; 'close' says what loops fail by.",
    "ik": "A step of inverse kinematics, which 'integrate' takes, towards targets one after the "
    "other (of a link its pose, a homogeneous matrix by rows): least squares of the errors with a "
    "damping, without limits; and the errors, of a link orientation first.",
    "joint_positions": "Positions of all joints of the spanning tree but the floating base, in its "
    "order.",
    "joint_velocities": "Velocities of all joints of the spanning tree but the floating base, in "
    "its order.",
    "constraint_jacobian": "G: velocities of all joints of the spanning tree, the base's first, "
    "are G v.",
    "from_actuators": "The state at which encoders at the motors read this, by steps of Newton's "
    "from guess, the base as in guess and at rest; residual: what loops and encoders fail by (root "
    "of the sum of squares).",
    "joint_states": "The state of all joints at which some read this, near guess: q, v, positions "
    "and velocities of all joints of the spanning tree but the floating base, in its order, and "
    "the forces tau that efforts at these joints are; residual: what loops and readings fail by.",
    "link_poses": "Poses of all links in the world, homogeneous matrices one after the other.",
    "constraint_bias": "g: accelerations of all joints of the spanning tree are G a + g.",
}
"""Descriptions of functions of the configuration, whose results are numbers here."""


def summary(name: str) -> str:
    """A summary of a function: for algorithms, the first sentence of their documentation."""
    if name in SUMMARIES:
        return SUMMARIES[name]
    function = getattr(dynamics, name, None)
    if function is None:
        return name
    first = (inspect.getdoc(function) or name).partition("\n")[0]
    return re.sub(r":\w+:`[.~]*([^`]*)`", r"\1", first)
