"""A robot's functions with their derivatives, compiled, for JAX and PyTorch.

Libraries differentiate with respect to the numbers of q: the four of a quaternion, all joints of a
loop. To give this a meaning, these functions first project q to a configuration: quaternions are
normalised, and loops are closed by one Newton step with the independent joints held. A closed
configuration changes by rounding errors only. Derivatives are those of this function: changes of q
along closed motions count in full, changes of a quaternion's length or of dependent joints do not.

Second derivatives are those of the trace, contracted with a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.interop.programs import OF_CONFIGURATIONS, routine, summary, task_of
from robomodel.kernels.cache import canonical
from robomodel.kernels.differentiate import differentiate, gradient
from robomodel.kernels.function import Build, TracedFunction, split
from robomodel.kernels.program import Dtype
from robomodel.kernels.trace import handles
from robomodel.mechanism.joints import Floating, Planar, Spherical
from robomodel.model.configurations.closing import settled
from robomodel.model.derived import cache_key
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.model import Model
from robomodel.model.parameters import PARAMETERS, parameterized
from robomodel.scalars import Scalar, Vector, div, dot, sqrt

OUTRIGHT = {"rnea": "rnea_derivatives", "aba": "aba_derivatives"}
"""Functions whose derivatives are computed by algorithms."""


def partly_independent(model: Model) -> str | None:
    """A joint with velocities in its body's axes of which a loop leaves only some independent.

    Holding these while the others close the loop is not a function of the positions alone. The
    angle of a planar joint is a position, so it can be held.
    """
    for cluster in model.clusters:
        for body, _, along in joint_slices(model, cluster):
            joint, rates = model.nodes[body].joint, independent_rates(cluster, along)
            body_axes = rates[:2] if isinstance(joint, Planar) else rates
            held = None in rates and any(each is not None for each in body_axes)
            if held and isinstance(joint, Floating | Planar | Spherical):
                return model.joints[body].name
    return None


@dataclass(frozen=True)
class Differentiable:
    """A function of one robot, and its derivatives with respect to all arguments' numbers.

    ``options``: see :func:`robomodel.interop.programs.routine`.
    """

    model: Model
    name: str
    options: Mapping[str, Any]
    cache: dict[tuple[str, Dtype], Any] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[Callable[..., Differentiable], tuple[object, ...]]:
        return differentiable, (self.model, self.name, dict(self.options))

    @cached_property
    def routine(self) -> TracedFunction:
        """The function; raises ValueError for unknown names."""
        return routine(self.model, self.name, **self.options)

    @cached_property
    def task(self) -> AlgorithmSpec | None:
        """The algorithm; None if the function is not one."""
        return task_of(self.routine)

    @cached_property
    def sizes(self) -> list[int]:
        """The number of entries of each argument."""
        return list(self.routine.arguments.values())

    @cached_property
    def total(self) -> int:
        """The number of entries of all arguments together."""
        return sum(self.sizes)

    @property
    def size(self) -> int:
        """The number of entries of all results together."""
        return self.routine.size

    def obstacle(self, order: int) -> str | None:
        """Why derivatives of this order do not exist; None if they do."""
        if order and self.task is not None and self.task.algorithm.by_trace:
            return f"'{self.name}' is made of derivatives; there are none of them"
        if order == 2 and self.outright and (joint := partly_independent(self.model)):
            return (
                f"second derivatives of '{self.name}' are not available where the joint '{joint}' "
                "has independent and dependent velocities; choose other independent joints"
            )
        return f"third derivatives of '{self.name}' are not available" if order > 2 else None

    @property
    def outright(self) -> bool:
        """True if its derivatives are computed by an algorithm."""
        task = self.task
        algorithm = task is not None and task.name in OUTRIGHT and not task.f_ext
        return algorithm and self.options.get("method", "cluster") == "cluster"

    # ---- programs

    @cached_property
    def value(self) -> TracedFunction:
        """Program from arguments to all results' numbers."""
        return self._function("value", (self.size,), self._value)

    @cached_property
    def slopes(self) -> TracedFunction:
        """Program from arguments to the Jacobian (size, total)."""
        return self._function("slopes", self.shape(1), self._slopes)

    @cached_property
    def curvature(self) -> TracedFunction:
        """Program from arguments and weights to the weighted results' Hessian (total, total)."""
        return self._function("curvature", self.shape(2)[1:], self._curvature, weights=self.size)

    def shape(self, order: int) -> tuple[int, ...]:
        """The shape of the derivatives of this order with respect to all arguments."""
        return (self.size, *[self.total] * order)

    def derivative(self, order: int) -> TracedFunction:
        """The program of the derivatives of this order; raises NotImplementedError if none exist.

        For order 2, it returns the Hessian of a weighted sum of the results.
        """
        if (obstacle := self.obstacle(order)) is not None:
            raise NotImplementedError(obstacle)
        return (self.value, self.slopes, self.curvature)[order]

    def _function(
        self, what: str, shape: tuple[int, ...], build: Build, **more: int
    ) -> TracedFunction:
        key = canonical(("elsewhere", what, self.name, dict(self.options)))
        return TracedFunction(
            f"{self.name}_{what}", {**self.routine.arguments, **more}, {"y": shape}, build,
            owner=self.model, key=cache_key(self.model, key),
        )  # fmt: skip

    def _named(self, arguments: Sequence[Vector]) -> dict[str, Vector]:
        return dict(zip(self.routine.arguments, arguments, strict=True))

    def _settled(self, inputs: dict[str, Vector], steps: int = 1) -> dict[str, Vector]:
        """The arguments with q projected to a configuration by Newton steps."""
        if "q" not in inputs or self.name in OF_CONFIGURATIONS:  # these project q themselves
            return inputs
        return inputs | {"q": settled(self._by(inputs), inputs["q"], steps)[0]}

    def _by(self, inputs: Mapping[str, Vector]) -> Model:
        """The model with the parameters that are an argument."""
        names = self.task.parameters if self.task is not None else ()
        if not names:
            return self.model
        return parameterized(self.model, dict(zip(names, inputs[PARAMETERS], strict=True)))

    def _value(self, *arguments: Vector) -> Sequence[Scalar]:
        return self.routine.build(*self._settled(self._named(arguments)).values())

    def _slopes(self, *arguments: Vector) -> Sequence[Scalar]:
        inputs = self._named(arguments)
        if self.outright:
            return self._outright(inputs)
        outputs = self.routine.build(*self._settled(inputs).values())
        every = handles([x for argument in arguments for x in argument])
        columns = differentiate(every[0].trace, outputs, [{x: 1.0} for x in every])
        return [x for row in zip(*columns, strict=True) for x in row]

    def _curvature(self, *inputs_and_weights: Vector) -> Sequence[Scalar]:
        *arguments, weights = inputs_and_weights
        inputs = self._named(arguments)
        # derivatives by algorithms need closed loops, so project with several steps
        steps = 2 if self.outright and PARAMETERS not in inputs else 1
        at = self._settled(inputs, steps)
        every = handles([x for argument in arguments for x in argument])
        slopes = gradient(dot(weights, self.routine.build(*at.values())), every)
        rows = differentiate(every[0].trace, slopes, [{x: 1.0} for x in every])
        return [x for row in rows for x in row]

    def _outright(self, inputs: dict[str, Vector]) -> list[Scalar]:
        """∂/∂q along the independent velocities times these by q's numbers; ∂/∂v; ∂ by the last.

        Derivatives by parameters are of the program, in which dependent positions follow them.
        """
        model, at = self.model, self._settled(inputs)
        taken = ("passive", "parameters")
        options = {name: x for name, x in self.options.items() if name in taken}
        flat = routine(model, OUTRIGHT[self.name], **options).build(*at.values())
        p = handles(inputs.get(PARAMETERS, ()))
        outputs = self.routine.build(*at.values()) if p else []
        ways = differentiate(p[0].trace, outputs, [{x: 1.0} for x in p]) if p else []
        n = model.nv
        along_q, by_v, by_x = ([flat[k * n * n + i * n : k * n * n + i * n + n] for i in range(n)]
                               for k in range(3))  # fmt: skip
        tangent = list(zip(*tangents(model, inputs["q"], at["q"]), strict=True))
        rows = []
        for i in range(n):
            by_q = [dot(along_q[i], column) for column in tangent]
            rows.append([*by_q, *by_v[i], *by_x[i], *(way[i] for way in ways)])
        return [x for row in rows for x in row]


class LibraryFunction(ABC):
    """Base of a function of a library's arrays, which compiles kernels on demand.

    Subclasses convert arrays to one type, and create the function of arguments of one batch that
    returns all results' numbers (..., size).
    """

    library = ""

    def __init__(self, what: Differentiable) -> None:
        self._what = what
        self._arguments, self._shapes = dict(what.routine.arguments), what.routine.shapes
        self.__name__ = what.name
        self.__doc__ = summary(what.name)

    def __repr__(self) -> str:
        return f"<{self.library} function {self._what.name} of '{self._what.model.name}'>"

    def __reduce__(self) -> tuple[Callable[..., LibraryFunction], tuple[Differentiable]]:
        return type(self), (self._what,)

    def __call__(self, *arguments: Any) -> Any:
        """The result (..., *shape), or a tuple of several; arguments (..., size) broadcast."""
        names = self._arguments
        if len(arguments) != len(names):
            raise TypeError(
                f"{self.__name__} takes the arguments ({', '.join(names)}), got {len(arguments)}"
            )
        arrays, dtype = self.converted(arguments)
        for x, (name, size) in zip(arrays, names.items(), strict=True):
            if not x.shape or x.shape[-1] != size:
                raise ValueError(f"{name} must have the shape (..., {size}), got {tuple(x.shape)}")
        try:
            batch = self.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        except (ValueError, RuntimeError):
            shapes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in zip(names, arrays, strict=True))
            raise ValueError(f"batch axes do not broadcast: {shapes}") from None
        wide = [self.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]
        return split(self.function(dtype)(*wide), self._shapes)

    @abstractmethod
    def converted(self, arguments: Sequence[Any]) -> tuple[list[Any], Dtype]:
        """The arguments as the library's arrays of one type."""

    @abstractmethod
    def function(self, dtype: Dtype) -> Callable[..., Any]:
        """A function from arguments of one batch to all results' numbers, with derivative rules."""

    broadcast_shapes: Callable[..., tuple[int, ...]]
    broadcast_to: Callable[..., Any]


def tangents(model: Model, q: Vector, closed: Vector) -> list[list[Scalar]]:
    """P (nv, nq): maps rates of q's numbers to independent velocities; see this module.

    ``closed`` is q projected to a configuration.
    """
    result: list[list[Scalar]] = [[0.0] * model.nq for _ in range(model.nv)]
    for cluster in model.clusters:
        for body, part, along in joint_slices(model, cluster):
            joint = model.nodes[body].joint
            at = range(cluster.q.start + part.start, cluster.q.start + part.stop)
            for k, row in enumerate(independent_rates(cluster, along)):
                if row is None:
                    continue
                unit = [1.0 if k == i else 0.0 for i in range(joint.nv)]
                rates = joint.rates([closed[i] for i in at], unit)
                if isinstance(joint, Floating | Spherical) and k < 3:
                    quaternion = [q[i] for i in at][-4:]
                    # q̇ is half the product with ω, so 4 times the transpose maps q̇ to ω
                    share = div(4.0, sqrt(dot(quaternion, quaternion)))
                    rates = [share * x for x in rates]
                for i, x in zip(at, rates, strict=True):
                    result[row][i] = x
    return result


def differentiable(model: Model, name: str, options: Mapping[str, Any]) -> Differentiable:
    """The function, cached with the model; raises ValueError for unavailable names."""
    new = Differentiable(model, name, dict(options))
    key = ("elsewhere", name, new.task, canonical(dict(options)))
    existing = model._derived.get(key)
    if isinstance(existing, Differentiable):
        return existing
    model._derived[key] = new
    return new
