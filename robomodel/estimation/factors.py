"""Factors of trajectories: priors, integrators, dynamics, sensors (Blanco-Claraco et al., 6).

All act on a model's independent coordinates: configurations q on their manifold, velocities v,
accelerations a, forces tau. Loops stay closed by how q is updated, so they need no factors.
:mod:`robomodel.papers.natural_coordinates.planar` has those of dependent coordinates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import aba, aba_derivatives, frame_pose, jacobian, rnea, rnea_derivatives
from robomodel.dynamics.algorithm import run
from robomodel.dynamics.kinematics.frames import FrameLike, frame_key
from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.estimation.graph import Noise, gaussian
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import split
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Scalar, Vector

Variables: TypeAlias = tuple[tuple[str, int], ...]
Errors: TypeAlias = tuple[Array, Sequence[Array]]
States: TypeAlias = Mapping[str | tuple[str, int], Space]
"""The spaces of a factor's variables, by name or by (name, offset in time)."""


def subtracted_data(e: Array, data: Array | None) -> Array:
    """The error less data, if there are any."""
    return e if data is None else e - data


def _flat(space: Space, *names: str) -> tuple[str, ...]:
    """The names if the space is a vector space, so that differences are linear; else empty."""
    return names if isinstance(space, Vectors) else ()


@lru_cache(maxsize=256)
def _ones(count: int, dim: int, scale: float = 1.0) -> Array:
    return np.broadcast_to(scale * np.eye(dim), (count, dim, dim))  # read-only


@dataclass(frozen=True)
class FactorBase(ABC):
    """Base of factors, with their variables and rows; see :class:`.graph.Factor`.

    Attributes:
        variables: (name, 0) for a variable at the factor's time, (name, 1) at the next.
        rows: Number of components of the error.
        affine: Variables in which the error is affine while the others stay.
    """

    variables: Variables = field(init=False, repr=False, compare=False)
    rows: int = field(init=False, repr=False, compare=False)
    affine: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def _describe(
        self, variables: Sequence[str | tuple[str, int]], rows: int, affine: Sequence[str] = ()
    ) -> None:
        """Set the attributes; a name alone in ``variables`` is at the factor's time."""
        pairs = tuple((x, 0) if isinstance(x, str) else x for x in variables)
        for name, value in (("variables", pairs), ("rows", rows), ("affine", tuple(affine))):
            object.__setattr__(self, name, value)

    @abstractmethod
    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """See :meth:`.graph.Factor.evaluate`."""


@dataclass(frozen=True, eq=False)
class TracedFactor(FactorBase):
    """A factor whose error is written over scalars; traced with its derivatives and compiled.

    Attributes:
        model: The robot, which caches the program.
        label: Key of the program on this robot; begins with a name.
        states: The spaces of the variables, by name or by (name, offset in time).
        size: Number of components of the error.
        build: The error from the variables, followed by the data if there are any.
        data: Number of data that ``build`` takes; with 0, data are subtracted from the error.
        linear: Variables in which the error is affine while the others stay.
    """

    model: Model
    label: str
    states: States
    size: int
    build: Callable[..., list[Scalar]]
    data: int = 0
    linear: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._describe(list(self.states), self.size, self.linear)

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [(self.rows,), *((self.rows, space.dim) for space in self.states.values())]

    @cached_property
    def _function(self) -> Function:
        """Errors, followed by their derivatives in each variable's directions, by rows."""

        def build(*x: Sequence[Traced]) -> list[Scalar]:
            errors = self.build(*x)
            result: list[Scalar] = [*errors]
            for space, numbers in zip(self.states.values(), x, strict=False):
                columns = differentiate(x[0][0].trace, errors, space.directions(numbers))
                result += [slope for row in zip(*columns, strict=True) for slope in row]
            return result

        sizes = [space.size for space in self.states.values()] + [self.data] * bool(self.data)
        count = sum(math.prod(shape) for shape in self._shapes)
        return function(self.model, self.label, (*sizes, count), build)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; data are required if ``build`` takes them."""
        if not self.data:
            e, *slopes = split(self._function(*x), self._shapes)
            return subtracted_data(e, data), slopes
        assert data is not None
        e, *slopes = split(self._function(*x, data), self._shapes)
        return e, slopes


@dataclass(frozen=True, eq=False)
class Combination(FactorBase):
    """Linear combination ``matrix`` (rows, m) e - ``offset`` of another factor's error e (m,)."""

    factor: FactorBase
    matrix: Array
    offset: Array | float = 0.0

    def __post_init__(self) -> None:
        self._describe(self.factor.variables, len(self.matrix), self.factor.affine)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Data are subtracted."""
        e, slopes = self.factor.evaluate(x, None)
        e = subtracted_data(e @ self.matrix.T - self.offset, data)
        return e, [self.matrix @ slope for slope in slopes]


@dataclass(frozen=True)
class Prior(FactorBase):
    """A variable equals ``data``: e = local(data, x) (Blanco-Claraco et al., 6.1)."""

    name: str
    space: Space

    def __post_init__(self) -> None:
        self._describe((self.name,), self.space.dim, _flat(self.space, self.name))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; without data, x is zero."""
        target = np.zeros_like(x[0]) if data is None else data
        return self.space.local(target, x[0]), [self.space.local_jacobians(target, x[0])[1]]


@dataclass(frozen=True)
class Equal(FactorBase):
    """A variable does not change between times: e = local(x_t, x_t+1)."""

    name: str
    space: Space

    def __post_init__(self) -> None:
        both = ((self.name, 0), (self.name, 1))
        self._describe(both, self.space.dim, _flat(self.space, self.name))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; data, if given, are the change."""
        return subtracted_data(self.space.local(x[0], x[1]), data), self.space.local_jacobians(
            x[0], x[1]
        )


@dataclass(frozen=True)
class _Integrator(FactorBase):
    """Base of integrators from x_t and rates to x_t+1, in the space of x."""

    name: str
    rate: str
    step: float
    space: Space

    def _integrate(self, *rates: tuple[str, int]) -> None:
        affine = (self.rate, *_flat(self.space, self.name))
        self._describe(((self.name, 0), (self.name, 1), *rates), self.space.dim, affine)


@dataclass(frozen=True)
class Euler(_Integrator):
    """Explicit Euler: x_t+1 is x_t moved by ``step`` times its rate at t (Blanco-Claraco, 6.2)."""

    def __post_init__(self) -> None:
        self._integrate((self.rate, 0))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """local(x_t, x_t+1) - h ẋ_t."""
        e = subtracted_data(self.space.local(x[0], x[1]) - self.step * x[2], data)
        moved = self.space.local_jacobians(x[0], x[1])
        return e, [*moved, _ones(len(e), self.rows, -self.step)]


@dataclass(frozen=True)
class Trapezoid(_Integrator):
    """Trapezoidal rule, with the mean of the rates at both times (Blanco-Claraco et al., 6.3)."""

    def __post_init__(self) -> None:
        self._integrate((self.rate, 0), (self.rate, 1))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """local(x_t, x_t+1) - h (ẋ_t + ẋ_t+1) / 2."""
        half = self.step / 2
        e = subtracted_data(self.space.local(x[0], x[1]) - half * (x[2] + x[3]), data)
        slope = _ones(*e.shape, -half)
        return e, [*self.space.local_jacobians(x[0], x[1]), slope, slope]


@dataclass(frozen=True)
class ConstantVelocity(_Integrator):
    """Constant rates disturbed by white accelerations: a Gaussian process prior over motions.

    Exactly sparse in time (Barfoot, Tong and Särkkä 2014; GPMP2, Mukadam et al. 2018). Use with the
    noise of :meth:`noise`. In spaces other than vector spaces, rates are those of local
    coordinates.
    """

    def __post_init__(self) -> None:
        both = [(name, at) for name in (self.name, self.rate) for at in (0, 1)]
        self._describe(both, 2 * self.space.dim, (self.rate, *_flat(self.space, self.name)))

    def noise(self, density: ArrayLike) -> Noise:
        """Covariance of the error: S (h³/3, h²/2; h²/2, h), S = diag(``density``²).

        ``density``: square roots of the accelerations' power spectral densities, one for all
        directions or (dim,) [rad s⁻² Hz⁻½, m s⁻² Hz⁻½].
        """
        h = self.step
        spectrum = np.diag(np.broadcast_to(as_numbers(density, "density"), self.space.dim) ** 2)
        return gaussian(np.kron([[h**3 / 3, h**2 / 2], [h**2 / 2, h]], spectrum))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[local(x_t, x_t+1) - h ẋ_t; ẋ_t+1 - ẋ_t]."""
        first, second, rate, after = x
        e = np.concatenate(
            [self.space.local(first, second) - self.step * rate, after - rate], axis=1
        )
        none, one = np.zeros((len(e), *[self.space.dim] * 2)), _ones(len(e), self.space.dim)
        slopes = [np.concatenate([s, none], axis=1)
                  for s in self.space.local_jacobians(first, second)]  # fmt: skip
        slopes.append(np.concatenate([-self.step * one, -one], axis=1))
        return subtracted_data(e, data), [*slopes, np.concatenate([none, one], axis=1)]

    def between(
        self, share: float, first: Array, second: Array, rate: Array, after: Array
    ) -> tuple[Array, Array]:
        """The mean of x and ẋ at a ``share`` of the step after its first time, given both ends.

        The cubic Hermite polynomial, for any densities.
        """
        s, h = share, self.step
        way = self.space.local(first, second)
        moved = s * s * (3 - 2 * s) * way
        moved = moved + h * s * (s - 1) * ((s - 1) * rate + s * after)
        rates = 6 * s * (1 - s) / h * way + (1 - s) * (1 - 3 * s) * rate + s * (3 * s - 2) * after
        return self.space.retract(first, moved), rates


@dataclass(frozen=True)
class Dynamics(FactorBase):
    """The equations of motion of a model; ``data`` are known forces (nv,).

    ``tau``: the variable of unknown forces, or None. ``form``: "force" for e = rnea(q, v, a) - tau
    [N m, N]; "acceleration" for e = aba(q, v, tau) - a, as in the paper. ``q``, ``v``, ``a``: names
    of the variables. ``passive``: whether springs and damping of the file act.
    """

    model: Model
    tau: str | None = None
    form: str = "force"
    q: str = "q"
    v: str = "v"
    a: str = "a"
    passive: bool = False

    def __post_init__(self) -> None:
        if self.form not in ("force", "acceleration"):
            raise ValueError(f"form '{self.form}' is neither 'force' nor 'acceleration'")
        forces = () if self.tau is None else (self.tau,)
        self._describe((self.q, self.v, self.a, *forces), self.model.nv, (self.a, *forces))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; data are added to the variable tau."""
        model, (q, v, a) = self.model, x[:3]
        tau = np.zeros_like(a) if data is None else data
        if self.tau is not None:
            tau = tau + x[3]
        if self.form == "force":
            e = rnea(model, q, v, a, passive=self.passive) - tau
            by_state = rnea_derivatives(model, q, v, a, passive=self.passive)
            slopes = [*by_state, _ones(len(e), self.rows, -1.0)]
        else:
            e = aba(model, q, v, tau, passive=self.passive) - a
            by_q, by_v, inverse = aba_derivatives(model, q, v, tau, passive=self.passive)
            slopes = [by_q, by_v, _ones(len(e), self.rows, -1.0), inverse]
        return e, slopes[: len(self.variables)]


# ---- observations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading(FactorBase):
    """Measured components of a variable, such as v by a tachometer or tau by a torque sensor."""

    name: str
    indices: tuple[int, ...]
    dim: int

    def __post_init__(self) -> None:
        self._describe((self.name,), len(self.indices), (self.name,))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """x[indices] - data."""
        chosen = np.eye(self.dim)[list(self.indices)]
        slope = np.broadcast_to(chosen, (len(x[0]), *chosen.shape))
        return subtracted_data(x[0][:, list(self.indices)], data), [slope]


def readings(model: Model, name: str, dofs: Sequence[str]) -> Reading:
    """A measurement of v, a or tau at some of ``model.dof_names``."""
    index = {dof: i for i, dof in enumerate(model.dof_names)}
    for dof in dofs:
        if dof not in index:
            raise UnknownNameError(
                f"no freedom '{dof}' in '{model.name}'{did_you_mean(dof, index)}"
            )
    return Reading(name, tuple(index[dof] for dof in dofs), model.nv)


@dataclass(frozen=True)
class Encoders(FactorBase):
    """Measured positions of joints of one freedom, including dependent joints and rotors."""

    model: Model
    joints: tuple[str, ...]
    q: str = "q"
    _positions: TracedFactor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {joint.name: i for i, joint in enumerate(self.model.joints)}
        for name in self.joints:
            if name not in index:
                hint = did_you_mean(name, index)
                raise UnknownNameError(f"no joint '{name}' in '{self.model.name}'{hint}")
            if self.model.joints[index[name]].nv != 1:
                raise ValueError(f"joint '{name}' has several freedoms, so no encoder")
        at = tuple(self.model.nodes[index[name]].q for name in self.joints)

        def build(q: Vector) -> list[Scalar]:
            spanning = self.model.spanning_positions(q)
            return [spanning[i] for i in at]

        space = Configurations(self.model)
        positions = TracedFactor(self.model, f"encoders {at!r}", {self.q: space}, len(at), build)
        object.__setattr__(self, "_positions", positions)
        self._describe((self.q,), len(at))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Positions minus data; angles as they are, not wrapped."""
        return self._positions.evaluate(x, data)


@dataclass(frozen=True)
class _Instrument(FactorBase):
    """Base of instruments with three outputs in a link's axes, plus a bias."""

    model: Model
    frame: FrameLike
    bias: str | None = None
    q: str = "q"
    v: str = "v"

    @property
    def _state(self) -> tuple[str, ...]:
        """The variables of the state on which it depends, in the order of its algorithm."""
        return (self.q, self.v)

    @property
    def _algorithm(self) -> str:
        """The algorithm of the three outputs and of their derivatives by the state."""
        return "gyroscope_derivatives"

    def __post_init__(self) -> None:
        bias = () if self.bias is None else (self.bias,)
        self._describe((*self._state, *bias), 3, (self._state[-1], *bias))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Measured quantity + bias - data."""
        arguments = dict(zip("qva", x[: len(self._state)], strict=False))
        frames = (frame_key(self.frame),)
        result, *slopes = run(self.model, self._algorithm, arguments, "compiled", frames=frames)
        if self.bias is not None:
            result, slopes = result + x[-1], [*slopes, _ones(len(result), 3)]
        return subtracted_data(result, data), slopes


@dataclass(frozen=True)
class Gyroscope(_Instrument):
    """Measured angular velocity of a link, in its axes [rad/s].

    ``bias``: a variable of three numbers that the instrument adds, or None. ``frame``: a link, or
    (link, offset).
    """


@dataclass(frozen=True)
class Accelerometer(_Instrument):
    """Measured acceleration of a point minus gravity, in its link's axes [m/s²].

    ``frame``: a link, or (link, offset) for its position. ``bias``: see :class:`Gyroscope`.
    """

    a: str = "a"

    @property
    def _state(self) -> tuple[str, ...]:
        return (self.q, self.v, self.a)

    @property
    def _algorithm(self) -> str:
        return "accelerometer_derivatives"


@dataclass(frozen=True)
class Marker(FactorBase):
    """Measured world position of a link's origin, or of a point (link, offset) [m]."""

    model: Model
    frame: FrameLike
    q: str = "q"

    def __post_init__(self) -> None:
        self._describe((self.q,), 3)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Position minus data."""
        pose = frame_pose(self.model, x[0], self.frame)
        slope = pose[:, :3, :3] @ jacobian(self.model, x[0], self.frame)[:, 3:]
        return subtracted_data(pose[:, :3, 3], data), [slope]
