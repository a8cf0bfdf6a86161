"""Factor graphs over time.

Each variable exists at every time of the trajectory. A factor is a function of variables at one
time or at two neighbouring ones, and can be used at any number of times. It is evaluated at all
its times in one call, so time is the first axis of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array, Mask
from robomodel.estimation.spaces import Space
from robomodel.model.arguments import as_numbers
from robomodel.tolerances import NOTHING

NoiseLike: TypeAlias = "Noise | ArrayLike"


@dataclass(frozen=True, eq=False)
class Noise:
    """Standard deviations (rows,), zero for exact rows; or ``root``, L of Σ = L Lᵀ."""

    sigmas: Array
    root: Array | None = None

    @cached_property
    def hard(self) -> Mask:
        """A mask (rows,) of exact rows."""
        result: Mask = self.sigmas == 0.0
        return result

    @cached_property
    def parts(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The indices of the exact rows, and of the weighted ones."""
        return np.flatnonzero(self.hard), np.flatnonzero(~self.hard)

    @cached_property
    def _weights(self) -> Array:
        """Weights (rows, 1): reciprocal standard deviations, 1 for exact rows."""
        weights: Array = 1.0 / np.where(self.hard, 1.0, self.sigmas)[:, np.newaxis]
        return weights

    def whiten(self, x: Array) -> Array:
        """L⁻¹ x (unit covariance) of x (..., rows, m); exact rows are unchanged."""
        if self.root is not None:
            solved: Array = np.linalg.solve(self.root, x).astype(float, copy=False)
            return solved
        return x * self._weights

    @property
    def covariance(self) -> Array:
        """Σ (rows, rows)."""
        return np.diag(self.sigmas**2) if self.root is None else self.root @ self.root.T

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Random errors (count, rows)."""
        white = rng.standard_normal((count, len(self.sigmas)))
        return white * self.sigmas if self.root is None else white @ self.root.T


def exact(rows: int) -> Noise:
    """A noise by which all rows hold exactly."""
    return Noise(np.zeros(rows))


def diagonal(sigmas: ArrayLike) -> Noise:
    """Independent rows with these standard deviations; zero makes a row exact."""
    sigmas = as_numbers(sigmas, "sigmas")
    if sigmas.ndim != 1 or not np.all(np.isfinite(sigmas)) or np.any(sigmas < 0.0):
        raise ValueError("standard deviations are a vector of finite numbers from zero up")
    return Noise(sigmas)


def gaussian(covariance: ArrayLike) -> Noise:
    """A full covariance (rows, rows), symmetric and positive definite."""
    sigma = as_numbers(covariance, "covariance")
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1]:
        raise ValueError(f"a covariance is a square matrix, not of shape {sigma.shape}")
    if not np.allclose(sigma, sigma.T, rtol=NOTHING, atol=0.0):
        raise ValueError("a covariance is symmetric")
    try:
        root = np.asarray(np.linalg.cholesky(sigma), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError(
            "a covariance is positive definite; exact components are zeros of diagonal()"
        ) from None
    return Noise(np.sqrt(np.diag(sigma)), root)


def as_noise(noise: NoiseLike, rows: int) -> Noise:
    """A noise of ``rows`` rows from a noise, or from one standard deviation for all or for each."""
    if not isinstance(noise, Noise):
        noise = diagonal(np.broadcast_to(np.asarray(noise, dtype=float), (rows,)))
    if len(noise.sigmas) != rows:
        raise ValueError(f"the factor has {rows} rows, its noise {len(noise.sigmas)}")
    return noise


# ---- graphs --------------------------------------------------------------------------------------


Values: TypeAlias = Mapping[str, Array]
"""Variable → (count, size), time first."""
Times: TypeAlias = NDArray[np.intp]


class Factor(Protocol):
    """An error e of some variables, with its Jacobians.

    An optional attribute ``affine`` names variables in which e is affine while the others stay, so
    that their changes require no new linearisation.
    """

    @property
    def variables(self) -> tuple[tuple[str, int], ...]:
        """(name, 0) for a variable at the factor's time, (name, 1) at the next."""
        ...

    @property
    def rows(self) -> int:
        """Number of components of e."""
        ...

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        """E (K, rows) and its Jacobian (K, rows, dim) by each variable, at K times.

        ``x``: the variables' values (K, size) in the order of ``variables``; ``data`` (K, m):
        measurements or targets at these times.
        """
        ...


@dataclass(frozen=True, eq=False)
class Term:
    """A factor with its noise, its times (K,) in ascending order, and its data (K, m)."""

    factor: Factor
    noise: Noise
    times: Times
    data: Array | None

    @property
    def reach(self) -> int:
        """The largest offset in time of its variables: 0 or 1."""
        return max(offset for _, offset in self.factor.variables)

    def errors(self, values: Values) -> tuple[Array, Sequence[Array]]:
        """Errors (K, rows), not whitened, and Jacobians, at these values."""
        x = [values[name][self.times + offset] for name, offset in self.factor.variables]
        return self.factor.evaluate(x, self.data)

    def rows(self, block: Array, kind: int) -> Iterator[tuple[int, Array]]:
        """Pairs of time and exact (``kind`` 0) or weighted (1) rows of a block (K, rows, ·)."""
        chosen = self.noise.parts[kind]
        if len(chosen):
            some = block if len(chosen) == block.shape[1] else block[:, chosen]
            yield from zip(self.times.tolist(), some, strict=True)


def beside_next(x: Array) -> Array:
    """x (count, n) of each time and of the next one as (count, 2n), zero after the last."""
    return np.hstack([x, np.vstack([x[1:], np.zeros_like(x[:1])])])


def linearized(term: Term, values: Values, slices: Mapping[str, slice], n: int) -> Array:
    """A term's whitened rows [A B b] (K, rows, 2n + 1) at these values."""
    e, jacobians = term.errors(values)
    block = np.zeros((len(term.times), term.factor.rows, 2 * n + 1))
    for (name, offset), jacobian in zip(term.factor.variables, jacobians, strict=True):
        part = slices[name]
        block[..., part.start + offset * n : part.stop + offset * n] += jacobian
    block[..., -1] = -e
    return term.noise.whiten(block)


@dataclass(frozen=True, eq=False)
class Linear:
    """A linearised graph: rows A_t x_t + B_t x_t+1 = b, whitened.

    ``blocks``: the rows [A B b] (K, rows, 2n + 1) of each term. ``hard[t]`` and ``soft[t]``: exact
    and weighted rows of time t. ``labels``: names of the n unknowns of a time.
    """

    labels: tuple[str, ...]
    count: int
    blocks: tuple[tuple[Term, Array], ...]

    @property
    def n(self) -> int:
        """Number of unknowns of one time."""
        return len(self.labels)

    @cached_property
    def hard(self) -> list[Array]:
        """Exact rows (h, 2n + 1) of each time."""
        return self._rows(0)

    @cached_property
    def soft(self) -> list[Array]:
        """Whitened rows (s, 2n + 1) of each time."""
        return self._rows(1)

    def _rows(self, kind: int) -> list[Array]:
        result: list[list[Array]] = [[] for _ in range(self.count)]
        for term, block in self.blocks:
            for t, row in term.rows(block, kind):
                result[t].append(row)
        none = np.zeros((0, 2 * self.n + 1))
        return [np.concatenate(rows) if rows else none for rows in result]

    def residuals(self, step: Array | None = None) -> tuple[float, float]:
        """(½ ‖soft errors‖², ‖hard errors‖), predicted after a step (count, n)."""
        hard, soft = 0.0, 0.0
        both = np.zeros((self.count, 2 * self.n + 1, 1))
        both[:, -1] = -1.0
        if step is not None:
            both[:, :-1, 0] = beside_next(step)
        for term, block in self.blocks:
            e = (block @ both[term.times])[..., 0]
            exact, weighted = term.noise.parts
            hard += float(np.vdot(e[:, exact], e[:, exact]))
            soft += float(np.vdot(e[:, weighted], e[:, weighted]))
        return 0.5 * soft, math.sqrt(hard)

    def corrected(self, step: Array, there: Linear) -> Linear:
        """Rows A x = A step - e, with the errors e of the graph ``there``, to which ``step`` leads.

        The second-order correction of sequential quadratic programming (Nocedal and Wright, 18.3),
        for exact and weighted rows.
        """
        both = beside_next(step)
        blocks = []
        for (term, block), (_, after) in zip(self.blocks, there.blocks, strict=True):
            right = block.copy()
            ahead = np.einsum("kij,kj->ki", block[..., :-1], both[term.times])
            right[..., -1] = ahead + after[..., -1]
            blocks.append((term, right))
        return Linear(self.labels, self.count, tuple(blocks))

    @cached_property
    def scales(self) -> Array:
        """Norm (count, n) of each unknown's column, 1 for empty columns."""
        squares = np.zeros((self.count + 1, self.n))
        for term, block in self.blocks:
            columns = np.sum(block[..., :-1] ** 2, axis=1)
            np.add.at(squares, term.times, columns[:, : self.n])
            np.add.at(squares, term.times + 1, columns[:, self.n :])
        scales: Array = np.sqrt(squares[:-1])
        return np.where(scales > 0.0, scales, 1.0)


@dataclass(frozen=True, eq=False)
class Graph:
    """Variables by name with their spaces, the number ``count`` of times, and terms."""

    spaces: Mapping[str, Space]
    count: int
    terms: tuple[Term, ...] = ()

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The range of each variable in the n directions of one time."""
        stops = np.cumsum([space.dim for space in self.spaces.values()]).tolist()
        return {
            name: slice(stop - space.dim, stop)
            for (name, space), stop in zip(self.spaces.items(), stops, strict=True)
        }

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each direction of one time's variables."""
        return tuple(f"{name}[{i}]" for name, s in self.spaces.items() for i in range(s.dim))

    @property
    def n(self) -> int:
        """Number of directions of all variables at one time."""
        return len(self.labels)

    def add(
        self,
        factor: Factor,
        noise: NoiseLike,
        *,
        times: ArrayLike | None = None,
        data: ArrayLike | None = None,
    ) -> Graph:
        """The graph with one more factor at some times (default: all at which it fits).

        ``noise``: a :class:`Noise`, or standard deviations, one for all rows or one for each; zero
        makes rows exact. ``data``: (m,) for all times, or (K, m).
        """
        reach = max(offset for _, offset in factor.variables)
        for name, offset in factor.variables:
            if name not in self.spaces:
                raise ValueError(f"the graph has no variable '{name}', only {list(self.spaces)}")
            if offset not in (0, 1):
                raise ValueError("a factor reaches from its time to the next, not further")
        at = np.arange(self.count - reach) if times is None else np.atleast_1d(np.asarray(times))
        if at.dtype.kind not in "iu" or at.ndim != 1 or np.any(np.diff(at) <= 0):
            raise ValueError("times are indices, ascending")
        if len(at) and (at[0] < 0 or at[-1] + reach >= self.count):
            raise ValueError(f"a factor stands outside the times 0 … {self.count - 1}")
        numbers = None
        if data is not None:
            numbers = np.array(data, dtype=float)  # the caller may change data
            numbers = np.broadcast_to(numbers, (len(at), numbers.shape[-1]))
        term = Term(factor, as_noise(noise, factor.rows), at.astype(np.intp), numbers)
        return replace(self, terms=(*self.terms, term))

    def window(self, first: int, stop: int) -> Graph:
        """The times from ``first`` to ``stop`` - 1 with the factors inside, renumbered from 0."""
        terms = []
        for term in self.terms:
            a, b = np.searchsorted(term.times, (first, stop - term.reach)).tolist()
            if a < b:
                data = None if term.data is None else term.data[a:b]
                terms.append(Term(term.factor, term.noise, term.times[a:b] - first, data))
        return replace(self, count=stop - first, terms=tuple(terms))

    def linearize(self, values: Values) -> Linear:
        """Linearise all terms at these values."""
        blocks = ((term, linearized(term, values, self.slices, self.n)) for term in self.terms)
        return Linear(self.labels, self.count, tuple(blocks))

    def retract(self, values: Values, step: Array) -> dict[str, Array]:
        """The values moved by a step (count, n)."""
        return {
            name: space.retract(values[name], step[:, self.slices[name]])
            for name, space in self.spaces.items()
        }

    def checked(self, values: Values, *, alone: bool = False) -> dict[str, Array]:
        """Values as arrays; raises a ValueError for wrong names or shapes.

        ``alone``: values (size,) of one time.
        """
        result = {}
        for name, space in self.spaces.items():
            if name not in values:
                raise ValueError(f"no start is given for variable '{name}'")
            x = np.asarray(values[name], dtype=float)
            shape = (space.size,) if alone else (self.count, space.size)
            if x.shape != shape:
                raise ValueError(f"variable '{name}' needs shape {shape}, got {x.shape}")
            result[name] = x
        return result
