"""A robot's functions with their derivatives, compiled, for JAX and PyTorch.

Libraries differentiate by q as plain numbers: a quaternion's four, all joints of a loop.
So that this means something, these functions first bring q to where configurations are: quaternions
of unit length, loops closed by one step of Newton's with the independent joints held. A closed
configuration stays what it is, to rounding, and derivatives are those of this function: changes of
q along closed motions count in full, the length of a quaternion and the dependent joints of loops
do not.

Second derivatives of inverse and forward dynamics are by these plain numbers, too, contracted with
a vector. Along motions of the joints they are those of
:func:`.recursions.derivatives.rnea_hessian_product`. Those of a = aba(q, v, τ) follow, as rnea(q,
v, a) = τ stays what it is: with λ = M⁻¹ w and Z = ∂(q, v, a)/∂(q, v, τ), w · ∂²a = -Zᵀ (λ · ∂²rnea)
Z. By q's numbers they are Pᵀ H P, where P are the velocities that changes of q's numbers are, and
what comes of changes of P: the logarithm of a motion of several freedoms, ball joints' and
others', is not linear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.recursions.derivatives import rnea_hessian_product, slopes_along
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.interop.programs import OF_CONFIGURATIONS, routine, summary, task_of
from robomodel.kernels.cache import canonical
from robomodel.kernels.differentiate import differentiate, gradient
from robomodel.kernels.function import Build, TracedFunction, split
from robomodel.kernels.program import Dtype
from robomodel.kernels.trace import Traced
from robomodel.model.configurations.closing import settled
from robomodel.model.derived import cache_key
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.joints import Floating, Planar, Spherical
from robomodel.model.model import Model
from robomodel.model.parameters import PARAMETERS, parameterized
from robomodel.scalars import Scalar, Vector, div, dot, sqrt

Matrix: TypeAlias = list[list[Scalar]]
Inputs: TypeAlias = Mapping[str, Sequence[Traced]]


def curvature(model: Model, name: str, at: Inputs, w: Vector, plain_q: Vector, p: Matrix) -> Matrix:
    """∂²(w · f) by all arguments' numbers, f "rnea" or "aba"; by rows.

    ``at`` are the arguments with q where configurations are; ``plain_q`` is q before that, and
    ``p`` (nv, nq) the velocities that its changes are.
    """
    n, q, v = model.nv, at["q"], at["v"]
    if name == "rnea":
        z: list[Matrix] | None = None
        a, weights, sign = list[Any](at["a"]), list[Any](w), 1.0
        slopes = list(slopes_along(model, q, dot(w, rnea(model, q, v, a))))
    else:
        flat = routine(model, "aba_derivatives").build(*at.values())
        blocks = [[list(flat[k + i * n : k + i * n + n]) for i in range(n)]
                  for k in (0, n * n, 2 * n * n)]  # fmt: skip
        # to derivatives they are constant, though they depend on q
        a = _held(q, routine(model, "aba").build(*at.values()))
        weights = _held(q, [dot(column, w) for column in zip(*blocks[2], strict=True)])
        z, sign = blocks, -1.0
        slopes = [dot(column, w) for column in zip(*blocks[0], strict=True)]
    qq, vv, qv, aq = rnea_hessian_product(model, q, v, a, weights)
    zero = [[0.0] * n for _ in range(n)]
    whole = _blocks([[qq, qv, _turned(aq)], [_turned(qv), vv, zero], [aq, zero, zero]])
    if z is not None:
        unit = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        change = _blocks([[unit, zero, zero], [zero, unit, zero], z])
        whole = [[sign * x for x in row] for row in _product(_turned(change), whole, change)]
    _bend(model, whole, slopes)
    others = range(2 * n)
    wide = [[*row, *[0.0] * (2 * n)] for row in p]
    wide += [[0.0] * model.nq + [1.0 if i == j else 0.0 for j in others] for i in others]
    hessian = _product(_turned(wide), whole, wide)
    by_q = [dot(column, slopes) for column in zip(*p, strict=True)]
    _lengths(model, hessian, by_q, plain_q)
    return hessian


def _held(q: Sequence[Traced], x: Sequence[Scalar]) -> list[Any]:
    return [q[0].trace.stop_gradient(y) for y in x]


def _turned(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _blocks(rows: Sequence[Sequence[Matrix]]) -> Matrix:
    return [[x for block in row for x in block[i]] for row in rows for i in range(len(row[0]))]


def _product(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """A b c; zeros are structural."""
    columns = _turned(c)
    half = [[dot(row, column) for column in columns] for row in b]
    across = _turned(half)
    return [[dot(row, column) for column in across] for row in a]


def _bend(model: Model, whole: Matrix, slopes: Vector) -> None:
    """What the logarithm of a motion that turns and slides adds: - (ω × v' + ω' × v) / 2."""
    for cluster in model.clusters:
        for body, _, along in joint_slices(model, cluster):
            at, *others = independent_rates(cluster, along)
            if at is None or None in others:
                continue
            match model.nodes[body].joint:
                case Floating():
                    terms = [(at + i, at + 3 + j, at + 3 + k, x) for i, j, k, x in CROSS]
                case Planar():
                    terms = [(at + 2, at, at + 1, 1.0), (at + 2, at + 1, at, -1.0)]
                case _:
                    continue
            for turn, slide, k, sign in terms:
                x = -0.5 * sign * slopes[k]
                whole[turn][slide] = whole[turn][slide] + x
                whole[slide][turn] = whole[slide][turn] + x


CROSS = [(i, (i + 1) % 3, (i + 2) % 3, 1.0) for i in range(3)]
CROSS += [(i, (i + 2) % 3, (i + 1) % 3, -1.0) for i in range(3)]
"""(a × b)ₖ is the sum of sign aᵢ bⱼ over these (i, j, k, sign)."""


def _lengths(model: Model, hessian: Matrix, slopes: Vector, q: Vector) -> None:
    """What quaternions' lengths add, by which they are divided: - (g xᵀ + x gᵀ) / |x|²."""
    for cluster in model.clusters:
        for body, part, _ in joint_slices(model, cluster):
            if not isinstance(model.nodes[body].joint, Floating | Spherical):
                continue
            at = range(cluster.q.start + part.stop - 4, cluster.q.start + part.stop)
            square = dot([q[i] for i in at], [q[i] for i in at])
            for i in at:
                for j in at:
                    both = slopes[i] * q[j] + q[i] * slopes[j]
                    hessian[i][j] = hessian[i][j] - div(both, square)


OUTRIGHT = {"rnea": "rnea_derivatives", "aba": "aba_derivatives"}
"""Functions whose derivatives are algorithms."""


def partly_independent(model: Model) -> str | None:
    """A joint with velocities in its body's axes of which a loop leaves some independent.

    To hold these while the others close the loop is no function of the positions alone. The angle
    of a planar joint is a position, which may be held.
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
    """A function of one robot, and its derivatives by all arguments' numbers.

    ``options``: as of :func:`robomodel.interop.programs.routine`.
    """

    model: Model
    name: str
    options: Mapping[str, Any]
    cache: dict[tuple[str, Dtype], Any] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[Callable[..., Differentiable], tuple[object, ...]]:
        return differentiable, (self.model, self.name, dict(self.options))

    @cached_property
    def routine(self) -> TracedFunction:
        """The function; ValueError for unknown names."""
        return routine(self.model, self.name, **self.options)

    @cached_property
    def task(self) -> AlgorithmSpec | None:
        """Of algorithms, which one."""
        return task_of(self.routine)

    @cached_property
    def sizes(self) -> list[int]:
        """Of the arguments."""
        return list(self.routine.arguments.values())

    @cached_property
    def total(self) -> int:
        """Of all arguments' numbers."""
        return sum(self.sizes)

    @property
    def size(self) -> int:
        """Of all results' numbers."""
        return self.routine.size

    def obstacle(self, order: int) -> str | None:
        """Why there are no derivatives of this order; None where there are."""
        if order and self.task is not None and self.task.algorithm.by_trace:
            return f"'{self.name}' is made of derivatives; there are none of them"
        if order == 2 and self.outright and self.options.get("passive"):
            return f"second derivatives of '{self.name}' are not available with passive=True"
        if order == 2 and self.outright and (joint := partly_independent(self.model)):
            return (
                f"second derivatives of '{self.name}' are not available where the joint '{joint}' "
                "has independent and dependent velocities; choose others with independent="
            )
        return f"third derivatives of '{self.name}' are not available" if order > 2 else None

    @property
    def outright(self) -> bool:
        """Whether its derivatives are those of an algorithm."""
        task = self.task
        algorithm = task is not None and task.name in OUTRIGHT and not task.f_ext
        return algorithm and self.options.get("method", "cluster") == "cluster"

    # ---- programs

    @cached_property
    def value(self) -> TracedFunction:
        """Arguments → all results' numbers."""
        return self._function("value", (self.size,), self._value)

    @cached_property
    def slopes(self) -> TracedFunction:
        """Arguments → the Jacobian (size, total)."""
        return self._function("slopes", self.shape(1), self._slopes)

    @cached_property
    def curvature(self) -> TracedFunction:
        """Arguments, and weights of the results → the weighted sum's Hessian (total, total)."""
        return self._function("curvature", self.shape(2)[1:], self._curvature, weights=self.size)

    def shape(self, order: int) -> tuple[int, ...]:
        """Of all results' derivatives of this order by all arguments' numbers."""
        return (self.size, *[self.total] * order)

    def derivative(self, order: int) -> TracedFunction:
        """The program of the derivatives of this order; NotImplementedError where there is none.

        Of the second order it is contracted with weights of the results: one Hessian each.
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

    def _settled(self, inputs: dict[str, Vector]) -> dict[str, Vector]:
        """The arguments with q where configurations are."""
        if "q" not in inputs or self.name in OF_CONFIGURATIONS:  # which see to it, each in its way
            return inputs
        return inputs | {"q": settled(self._by(inputs), inputs["q"], 1)[0]}

    def _by(self, inputs: Mapping[str, Vector]) -> Model:
        """The model by the parameters that are an argument."""
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
        every: list[Traced] = [x for argument in arguments for x in argument]
        columns = differentiate(every[0].trace, outputs, [{x: 1.0} for x in every])
        return [x for row in zip(*columns, strict=True) for x in row]

    def _curvature(self, *inputs_and_weights: Vector) -> Sequence[Scalar]:
        *arguments, weights = inputs_and_weights
        inputs = self._named(arguments)
        at = self._settled(inputs)
        if not self.outright or PARAMETERS in inputs:
            every: list[Traced] = [x for argument in arguments for x in argument]
            slopes = gradient(dot(weights, self.routine.build(*at.values())), every)
            rows = differentiate(every[0].trace, slopes, [{x: 1.0} for x in every])
            return [x for row in rows for x in row]
        p = tangents(self.model, inputs["q"], at["q"])
        rows = curvature(self.model, self.name, at, weights, inputs["q"], p)
        return [x for row in rows for x in row]

    def _outright(self, inputs: dict[str, Vector]) -> list[Scalar]:
        """∂/∂q along the independent velocities, these by q's numbers; then ∂/∂v and the last.

        Those by parameters are of the program, in which dependent positions follow them.
        """
        model, at = self.model, self._settled(inputs)
        taken = ("passive", "parameters")
        options = {name: x for name, x in self.options.items() if name in taken}
        flat = routine(model, OUTRIGHT[self.name], **options).build(*at.values())
        p: Sequence[Traced] = inputs.get(PARAMETERS, ())
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
    """A function of a library's arrays, which compiles kernels as they are needed.

    Libraries say how arrays are converted to one type, and how a function of arguments of one batch
    is created that returns all results' numbers (..., size).
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
        """Arguments of one batch → all results' numbers, with rules for derivatives."""

    broadcast_shapes: Callable[..., tuple[int, ...]]
    broadcast_to: Callable[..., Any]


def tangents(model: Model, q: Vector, closed: Vector) -> Matrix:
    """P (nv, nq): the independent velocities that changes of q's numbers are; see this module.

    ``closed`` is q where configurations are.
    """
    result: Matrix = [[0.0] * model.nq for _ in range(model.nv)]
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
                    # q̇ is half of what turns: four times the transpose undoes it
                    share = div(4.0, sqrt(dot(quaternion, quaternion)))
                    rates = [share * x for x in rates]
                for i, x in zip(at, rates, strict=True):
                    result[row][i] = x
    return result


def differentiable(model: Model, name: str, options: Mapping[str, Any]) -> Differentiable:
    """The function, cached with the model; ValueError for names that cannot be had."""
    new = Differentiable(model, name, dict(options))
    key = ("elsewhere", name, new.task, canonical(dict(options)))
    existing = model.derived.get(key)
    if isinstance(existing, Differentiable):
        return existing
    model.derived[key] = new
    return new
