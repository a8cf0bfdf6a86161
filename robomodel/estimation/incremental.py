"""Incremental smoothing: only what changed is linearised again (Kaess et al., iSAM2).

If a chain is eliminated from its first time on, its Bayes tree is a path x_0 given x_1, …, with the
newest time as root. A new time or factor changes only the conditionals from its time to the root.
Times whose estimate has moved far from their linearisation are linearised again, and the
conditionals from there on recomputed. Corrections are propagated back from the root while they are
large enough to cause this, and to the first time when an estimate is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import warn
from robomodel.estimation import elimination
from robomodel.estimation.elimination import Conditional, RemainingRows
from robomodel.estimation.graph import (
    Factor,
    Graph,
    Noise,
    NoiseLike,
    Term,
    Values,
    as_noise,
    linearized,
)
from robomodel.estimation.solve import FixedLagResult, is_small
from robomodel.estimation.spaces import Space

THRESHOLD, PASSED_ON = 1e-2, 0.1
"""Change that requires a new linearisation; fraction of it that is propagated at once."""


@dataclass(frozen=True, eq=False)
class _Placed:
    """A factor at one time, its data (1, m)."""

    factor: Factor
    noise: Noise
    data: Array | None

    @property
    def key(self) -> tuple[int, int, bool]:
        """Factors with equal keys are evaluated together."""
        return id(self.factor), id(self.noise), self.data is None


@dataclass(frozen=True, slots=True)
class Update:
    """Numbers of times that one update linearised again, eliminated, and corrected."""

    relinearized: int
    eliminated: int
    corrected: int


class Incremental:
    """A smoother over all times so far, to which times are appended.

    ``advance`` appends a time, ``add`` adds a factor at any time, ``update`` updates the estimate:
    one Gauss-Newton step of the whole graph, of which only what changed is computed.

    ``threshold``: largest change of a variable from its linearisation, in its tangent space, for
    all or by variable; variables in which all factors are affine (accelerations, forces, biases)
    have none. With zero, everything that moved is linearised again, so that an update is a step of
    the batch solver. ``lag``: times further back are not linearised again, which bounds the time
    of an update; they are still smoothed. Exact factors hold as linearised, so with errors of the
    order of the threshold squared.
    """

    def __init__(
        self,
        spaces: Mapping[str, Space],
        *,
        threshold: float | Mapping[str, float] = THRESHOLD,
        lag: int | None = None,
    ) -> None:
        pair = Graph(spaces, 2)
        self.spaces = pair.spaces
        self.n, self._slices, self._labels = pair.n, pair.slices, pair.labels
        self._thresholds: dict[str, float] = {}
        for name in spaces:
            one = threshold.get(name, THRESHOLD) if isinstance(threshold, Mapping) else threshold
            if not one >= 0.0:
                raise ValueError(f"the threshold of '{name}' is {one}, not zero or more")
            self._thresholds[name] = one
        self._limits = np.full(self.n, np.inf)  # until a factor is not affine
        if lag is not None and lag < 1:
            raise ValueError(f"a lag is one time or more, not {lag}")
        self._lag = lag
        self.count = 0
        self._at = {name: np.empty((16, space.size)) for name, space in spaces.items()}
        self._delta, self._passed = np.zeros((16, self.n)), np.zeros((16, self.n))
        self._placed: list[list[_Placed]] = []
        self._rows: list[RemainingRows] = []
        self._left: list[RemainingRows] = []
        self._conditionals: list[Conditional] = []
        self._stale: set[int] = set()  # times whose factors must be linearised
        self._first = 0  # first time whose conditional must be computed
        self._behind = 0  # corrections of earlier times are out of date
        self._seen: dict[int, tuple[Factor, int]] = {}
        self._noises: dict[tuple[float, int], Noise] = {}

    # ---- growth ----

    def advance(self, start: Mapping[str, ArrayLike]) -> int:
        """Append a time with variables (size,) linearised at ``start``; returns its index."""
        t = self.count
        if t == len(self._delta):
            self._at = {name: np.concatenate([x, x]) for name, x in self._at.items()}
            self._delta = np.concatenate([self._delta, np.zeros_like(self._delta)])
            self._passed = np.concatenate([self._passed, np.zeros_like(self._passed)])
        for name, x in self._at.items():
            if name not in start:
                raise ValueError(f"no start is given for variable '{name}'")
            value = np.asarray(start[name], dtype=float)
            if value.shape not in ((x.shape[1],), (1, x.shape[1])):
                raise ValueError(
                    f"variable '{name}' needs shape ({x.shape[1]},), got {value.shape}"
                )
            x[t] = value
        self._delta[t] = 0.0
        self._placed.append([])
        none = RemainingRows(np.zeros((0, 2 * self.n + 1)), np.zeros((0, 2 * self.n + 1)))
        self._rows.append(none)
        self.count = t + 1
        return t

    def add(
        self,
        factor: Factor,
        noise: NoiseLike,
        data: ArrayLike | None = None,
        *,
        time: int | None = None,
    ) -> None:
        """Add a factor at a time, by default the last one at which it fits; ``data`` (m,).

        ``noise`` as in ``Graph.add``; reusing one ``Noise`` object for many times is faster.
        """
        seen = self._seen.get(id(factor))
        if seen is None:
            seen = self._seen[id(factor)] = (factor, self._reach(factor))
        last = self.count - 1 - seen[1]
        at = last if time is None else time
        if not 0 <= at <= last:
            raise ValueError(f"a factor stands outside the times 0 … {self.count - 1}")
        if isinstance(noise, float | int):  # cached by value
            key = (float(noise), factor.rows)
            if key not in self._noises:
                self._noises[key] = as_noise(noise, factor.rows)
            noise = self._noises[key]
        numbers = None if data is None else np.array(data, dtype=float).reshape(1, -1)
        self._placed[at].append(_Placed(factor, as_noise(noise, factor.rows), numbers))
        self._stale.add(at)

    def _reach(self, factor: Factor) -> int:
        """The reach of a new factor; updates the thresholds of its variables."""
        reach, affine = 0, getattr(factor, "affine", ())
        for name, offset in factor.variables:
            if name not in self.spaces:
                raise ValueError(f"there is no variable '{name}', only {list(self.spaces)}")
            if offset not in (0, 1):
                raise ValueError("a factor reaches from its time to the next, not further")
            reach = max(reach, offset)
            if name not in affine:
                self._limits[self._slices[name]] = self._thresholds[name]
        return reach

    # ---- the estimate ----

    def update(self, *, threshold: float | None = None) -> Update:
        """Perform one step; ``threshold`` replaces the smoother's for this step."""
        if not self.count:
            return Update(0, 0, 0)
        limits = self._limits if threshold is None else np.full(self.n, threshold)
        relinearized = self._relinearize(limits)
        if self._stale:
            self._first = min(self._first, *self._stale)
            self._linearize(sorted(self._stale))
            self._stale.clear()
        first = self._first
        del self._conditionals[first:], self._left[first:]
        for t in range(first, self.count):
            rows, before = self._rows[t], self._left[t - 1] if t > 0 else None
            conditional, left = elimination.eliminate_next(
                before, rows.hard, rows.soft, self._labels, t
            )
            self._conditionals.append(conditional)
            self._left.append(left)
            self._first = t + 1
        stop = 0 if self._lag is None else self.count - 1 - self._lag
        corrected = self._back_substitute(first, max(0, min(first, stop)), PASSED_ON * limits)
        return Update(relinearized, self.count - first, corrected)

    def settle(self, *, tolerance: float = 1e-9, max_iterations: int = 50) -> bool:
        """Perform whole steps of all times until one is small; returns whether they converged.

        A step is small if it is below ``tolerance`` in every variable, relative to 1 + its largest
        value. The result is the minimum that the batch solver computes. Warns (RuntimeWarning) if
        ``max_iterations`` are not enough.
        """
        lag, self._lag = self._lag, None
        try:
            for _ in range(max_iterations):
                self.update(threshold=0.0)
                self._complete()
                at = {name: x[: self.count] for name, x in self._at.items()}
                if is_small(self._slices, at, self._delta[: self.count], tolerance):
                    return True
        finally:
            self._lag = lag
        warn(
            RuntimeWarning(
                f"the smoother did not settle in {max_iterations} iterations: raise max_iterations"
            )
        )
        return False

    def _relinearize(self, limits: Array) -> int:
        """Linearise again at the estimate where it is far from the linearisation."""
        begin = 0 if self._lag is None else max(0, self.count - 1 - self._lag)
        far = np.abs(self._delta[begin : self.count]) > limits
        moved = begin + np.flatnonzero(far.any(axis=1))
        if not len(moved):
            return 0
        for name, x in self._at.items():
            step = self._delta[moved, self._slices[name]]
            x[moved] = self.spaces[name].retract(x[moved], step)
        self._delta[moved] = 0.0
        for t in moved.tolist():
            self._stale.add(t)
            if t > 0:  # the previous conditional is relative to this time's linearisation
                self._stale.add(t - 1)
        return len(moved)

    def _linearize(self, times: Sequence[int]) -> None:
        """Compute the rows of these times; each factor is evaluated once for all of them."""
        n = self.n
        groups: dict[tuple[int, int, bool], list[tuple[int, _Placed]]] = {}
        for t in times:
            for placed in self._placed[t]:
                groups.setdefault(placed.key, []).append((t, placed))
        rows_of: dict[int, tuple[list[Array], list[Array]]] = {t: ([], []) for t in times}
        for members in groups.values():
            one = members[0][1]
            at = np.array([t for t, _ in members])
            data = None
            if one.data is not None:
                data = np.concatenate([p.data for _, p in members if p.data is not None])
            term = Term(one.factor, one.noise, at, data)
            block = linearized(term, self._at, self._slices, n)
            for kind in (0, 1):
                for t, row in term.rows(block, kind):
                    rows_of[t][kind].append(row)
        none = np.zeros((0, 2 * n + 1))
        for t, kinds in rows_of.items():
            hard, soft = (np.concatenate(rows) if rows else none for rows in kinds)
            self._rows[t] = RemainingRows(hard, soft)

    def _back_substitute(self, first: int, stop: int, small: Array) -> int:
        """Propagate corrections back from the newest time to ``first``, and on while not small.

        Small is relative to the values that were last propagated. Ends at ``stop``.
        """
        after, delta, passed = np.zeros(self.n), self._delta, self._passed
        t = self.count
        while t > stop:
            t -= 1
            conditional = self._conditionals[t]
            after = conditional.gain @ after
            after += conditional.offset
            delta[t] = after
            if t <= first and (np.abs(after - passed[t]) <= small).all():
                break
            passed[t] = after
        self._behind = t
        return self.count - t

    def _complete(self) -> None:
        """Propagate corrections to all times."""
        if self._behind > 0:
            self._passed[self._behind] = after = self._delta[self._behind]
            for t in range(self._behind - 1, -1, -1):
                after = self._conditionals[t].gain @ after + self._conditionals[t].offset
                self._delta[t] = self._passed[t] = after
            self._behind = 0

    # ---- estimates ----

    def __getitem__(self, name: str) -> Array:
        """A variable (count, size) at all times."""
        self._complete()
        part, at = self._slices[name], self._at[name][: self.count]
        result: Array = self.spaces[name].retract(at, self._delta[: self.count, part])
        return result

    @property
    def values(self) -> dict[str, Array]:
        """All variables at all times."""
        return {name: self[name] for name in self.spaces}

    @property
    def newest(self) -> dict[str, Array]:
        """The variables (size,) of the newest time."""
        last = slice(self.count - 1, self.count)
        return {
            name: self.spaces[name].retract(x[last], self._delta[last, self._slices[name]])[0]
            for name, x in self._at.items()
        }

    @property
    def newest_covariance(self) -> Array:
        """Σ (n, n) of the newest time's variables, of the graph as linearised."""
        root = self._conditionals[-1].root
        result: Array = root @ root.T
        return result

    @property
    def covariances(self) -> Array:
        """Σ (count, n, n) of each time's variables."""
        return elimination.covariances(self._conditionals)

    def covariance(self, name: str) -> Array:
        """Σ (count, dim, dim) of one variable."""
        part = self._slices[name]
        result: Array = self.covariances[:, part, part]
        return result

    @property
    def graph(self) -> Graph:
        """The whole graph so far, for the batch solver or for a drawing."""
        groups: dict[tuple[tuple[int, int, bool], int], list[tuple[int, _Placed]]] = {}
        for t, placed in enumerate(self._placed):
            keys = [one.key for one in placed]
            for i, (key, one) in enumerate(zip(keys, placed, strict=True)):
                # two equal factors at one time become two terms
                groups.setdefault((key, keys[:i].count(key)), []).append((t, one))
        graph = Graph(self.spaces, self.count)
        for members in groups.values():
            one = members[0][1]
            rows = [p.data for _, p in members if p.data is not None]
            graph = graph.add(
                one.factor,
                one.noise,
                times=[t for t, _ in members],
                data=np.concatenate(rows) if rows else None,
            )
        return graph


def follow(
    graph: Graph,
    start: Values,
    *,
    predict: Callable[[dict[str, Array]], dict[str, Array]] | None = None,
    threshold: float | Mapping[str, float] = THRESHOLD,
    lag: int | None = None,
    covariances: bool = False,
) -> FixedLagResult:
    """Process a graph time by time with one update each; arguments as of ``fixed_lag``.

    ``smoothed``: the estimates after the last time; ``iterations``: numbers of times that each
    update linearised again.
    """
    smoother = Incremental(graph.spaces, threshold=threshold, lag=lag)
    at: list[list[tuple[Factor, Noise, Array | None, int]]] = [[] for _ in range(graph.count)]
    for term in graph.terms:
        reach = term.reach
        for k, t in enumerate(term.times.tolist()):
            data = None if term.data is None else term.data[k]
            at[t + reach].append((term.factor, term.noise, data, t))
    newest = {name: np.empty((graph.count, space.size)) for name, space in graph.spaces.items()}
    sigmas = np.zeros((graph.count, graph.n, graph.n)) if covariances else None
    iterations = np.zeros(graph.count, dtype=int)
    last = {name: x[np.newaxis] for name, x in graph.checked(start, alone=True).items()}
    for t, facts in enumerate(at):
        if t > 0 and predict is not None:
            last = predict(last)
        smoother.advance(last)
        for factor, noise, data, time in facts:
            smoother.add(factor, noise, data, time=time)
        iterations[t] = smoother.update().relinearized
        last = {name: x[np.newaxis] for name, x in smoother.newest.items()}
        for name, x in last.items():
            newest[name][t] = x[0]
        if sigmas is not None:
            sigmas[t] = smoother.newest_covariance
    return FixedLagResult(graph, newest, smoother.values, sigmas, iterations)
