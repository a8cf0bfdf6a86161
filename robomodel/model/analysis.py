"""What a cluster's constraints amount to: rank, redundancy, independent coordinates, a start.

Linear couplings are eliminated exactly, by Gauss–Jordan. Loop joints are studied at random closed
configurations: the generic rank of K there gives the mobility, rows that are constant combinations
of others are dropped, and independent coordinates, where the file leaves the choice, are those with
the best conditioned G over the samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robomodel.errors import DescriptionError, Source
from robomodel.model.closure import CLOSED, Geometry, close, unstack
from robomodel.model.constraints import (
    Block,
    Constraint,
    LinearConstraint,
    LoopConstraint,
    Perpendicular,
    evaluate_loops,
)
from robomodel.model.joints import Array, Mask

NOT_EXACT = 1e-4  # a gap or a misalignment up to this is put down to rounding in the file
RANK = 1e-5  # singular values below this share of the largest one count as zero
SAMPLES = 24


@dataclass(frozen=True, slots=True)
class Column:
    """One spanning velocity of a cluster and what the file says of it.

    ``chosen`` True and False are the file's (or the caller's) ``independent``; None leaves it open.
    ``follower``: the joint is the dependent one of a mimic or a coupling, by preference.
    """

    label: str
    joint: str
    link: int
    chosen: bool | None
    follower: bool
    length: bool  # metres rather than radians
    limits: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The question: a cluster's geometry, the names in it and where they stand."""

    name: str
    geometry: Geometry
    columns: tuple[Column, ...]
    loop_sources: tuple[Source, ...]
    linear_sources: tuple[Source, ...]
    start: Array  # spanning positions from which closing starts
    scale: float  # a characteristic length


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer: the constraint, the independent columns, a closed regular configuration."""

    constraint: Constraint
    independent: tuple[int, ...]
    neutral: Array
    loop_ranks: tuple[int, ...]
    redundant_linear: tuple[bool, ...]
    closing_rows: tuple[int, ...]
    notes: tuple[str, ...] = ()
    suspicions: tuple[tuple[str, Source], ...] = field(default=())


def analyse(cluster: Cluster) -> Finding:
    """Find rank, independent coordinates and G's recipe of a cluster with constraints."""
    if cluster.geometry.loops:
        return _analyse_loops(cluster)
    return _analyse_linear(cluster)


def _names(items: Sequence[str]) -> str:
    quoted = [f"'{item}'" for item in items]
    return ", ".join(quoted) if len(quoted) < 9 else ", ".join(quoted[:8]) + f", … ({len(quoted)})"


def _constraint_names(cluster: Cluster) -> str:
    names = [loop.name for loop in cluster.geometry.loops]
    return _names(names + [coupling.name for coupling in cluster.geometry.linear])


def _source(cluster: Cluster) -> Source:
    return (*cluster.loop_sources, *cluster.linear_sources)[0]


# ---- linear couplings ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reduced:
    """Gauss–Jordan form: pivot column → (its row over the other columns, its offset)."""

    pivots: dict[int, tuple[dict[int, float], float]]
    redundant: tuple[bool, ...]


def _eliminate(cluster: Cluster, never: frozenset[int], prefer: Sequence[int]) -> _Reduced:
    """Solve the couplings for as many columns as they determine.

    Pivots avoid ``never`` and come from the lowest class in ``prefer`` (one number a column), then
    by size.
    """
    geometry = cluster.geometry
    rows: list[tuple[dict[int, float], float]] = []
    pivots: list[int] = []
    redundant = []
    for coupling, source in zip(geometry.linear, cluster.linear_sources, strict=True):
        row: dict[int, float] = {}
        for link, coefficient in coupling.terms:
            column = geometry.links[link].v
            row[column] = row.get(column, 0.0) + coefficient
        size = max(abs(x) for x in row.values())
        offset = coupling.offset
        for pivot, (known, value) in zip(pivots, rows, strict=True):
            factor = row.pop(pivot, 0.0)
            if factor:
                for column, x in known.items():
                    row[column] = row.get(column, 0.0) + factor * x
                offset -= factor * value
        row = {c: x for c, x in row.items() if abs(x) > 1e-12 * size}
        if not row:
            if abs(offset) > 1e-9 * max(1.0, abs(coupling.offset)):
                raise DescriptionError(
                    f"contradicts the couplings before it: it leaves 0 = {offset:.6g} "
                    f"(of {_constraint_names(cluster)}); remove one of them or mend its offset",
                    source,
                )
            redundant.append(True)
            continue
        redundant.append(False)
        candidates = [c for c in row if c not in never]
        if not candidates:
            labels = _names([cluster.columns[c].label for c in sorted(row)])
            raise DescriptionError(
                f"relates {labels}, all of which are marked independent; "
                'mark one of them independent="false"',
                source,
            )
        pivot = min(candidates, key=lambda c: (prefer[c], -abs(row[c]), -c))
        factor = row.pop(pivot)
        solved = {c: -x / factor for c, x in row.items()}
        value = offset / factor
        for n, (known, constant) in enumerate(rows):
            share = known.pop(pivot, 0.0)
            if share:
                for c, x in solved.items():
                    known[c] = known.get(c, 0.0) + share * x
                rows[n] = (
                    {c: x for c, x in known.items() if abs(x) > 1e-13},
                    constant + share * value,
                )
        rows.append((solved, value))
        pivots.append(pivot)
    return _Reduced(dict(zip(pivots, rows, strict=True)), tuple(redundant))


def _analyse_linear(cluster: Cluster) -> Finding:
    """Gears, belts, mimic: the constraint stays explicit."""
    columns, geometry = cluster.columns, cluster.geometry
    never = frozenset(i for i, column in enumerate(columns) if column.chosen)
    prefer = [0 if column.chosen is False else 1 if column.follower else 2 for column in columns]
    free = _eliminate(cluster, frozenset(), prefer)
    mobility = len(columns) - len(free.pivots)
    _check_counts(cluster, mobility, len(free.pivots))
    reduced = _eliminate(cluster, never, prefer) if never & set(free.pivots) else free
    left_over = [i for i, c in enumerate(columns) if c.chosen is False and i not in reduced.pivots]
    if left_over:
        raise DescriptionError(
            f"the couplings {_constraint_names(cluster)} cannot determine "
            f'{_names([columns[i].label for i in left_over])}, marked independent="false" '
            f"(mobility {mobility}); mark another joint of the cluster instead",
            _source(cluster),
        )
    independent = tuple(i for i in range(len(columns)) if i not in reduced.pivots)
    matrix, positions, offsets = [], [], []
    nq = 0
    start = {}
    for i in independent:
        link = geometry.links[columns[i].link]
        if link.v == i:
            start[columns[i].link] = nq
            nq += link.joint.nq
    for n, link in enumerate(geometry.links):
        for i in range(link.v, link.v + link.joint.nv):
            known = reduced.pivots[i][0] if i in reduced.pivots else {i: 1.0}
            matrix.append(tuple(known.get(c, 0.0) for c in independent))
        if n in start:
            for j in range(link.joint.nq):
                positions.append(tuple(1.0 if c == start[n] + j else 0.0 for c in range(nq)))
                offsets.append(0.0)
        else:
            known, offset = reduced.pivots[link.v]
            at = {start[columns[c].link]: x for c, x in known.items()}
            positions.append(tuple(at.get(c, 0.0) for c in range(nq)))
            offsets.append(offset)
    constraint = LinearConstraint(tuple(matrix), tuple(positions), tuple(offsets))
    neutral = _explicit_neutral(cluster, constraint, start)
    notes = []
    if not any(column.chosen is not None for column in columns):
        labels = _names([columns[i].label for i in independent])
        notes.append(
            f"cluster '{cluster.name}': {labels} taken as independent, as the file does not say"
        )
    return Finding(constraint, independent, neutral, (), reduced.redundant, (), tuple(notes), ())


def _explicit_neutral(
    cluster: Cluster, constraint: LinearConstraint, start: dict[int, int]
) -> Array:
    """The cluster's q at the start, within the independent and, where one rules, other limits."""
    geometry = cluster.geometry
    q = np.zeros(len(constraint.position_matrix[0]))
    for link, at in start.items():
        joint = geometry.links[link].joint
        q[at : at + joint.nq] = cluster.start[geometry.links[link].q :][: joint.nq]
    at_of = {at: link for link, at in start.items()}
    for at, link in at_of.items():
        if geometry.links[link].joint.nq != 1:
            continue
        low, high = -math.inf, math.inf
        for n, other in enumerate(geometry.links):
            if other.joint.nq != 1:
                continue
            row = constraint.position_matrix[other.q]
            used = [c for c, x in enumerate(row) if x]
            if used != [at]:
                continue
            offset = constraint.offset[other.q]
            ends = [(x - offset) / row[at] for x in cluster.columns[geometry.links[n].v].limits]
            low, high = max(low, min(ends)), min(high, max(ends))
        if low <= high:
            q[at] = min(max(q[at], low), high)
    return q


def _check_counts(cluster: Cluster, mobility: int, rank: int) -> None:
    """Compare the marks of independence with the mobility."""
    columns = cluster.columns
    marked = [c.label for c in columns if c.chosen]
    excluded = [c.label for c in columns if c.chosen is False]
    joints = list(dict.fromkeys(c.joint for c in columns))
    count = (
        f"{len(columns)} joint velocities ({_names(joints)}) less {rank} independent conditions "
        f"({_constraint_names(cluster)})"
    )
    if mobility == 0:
        raise DescriptionError(
            f"leaves no motion: mobility 0 = {count}; free a joint, or remove a loop or coupling",
            _source(cluster),
        )
    if len(marked) > mobility:
        raise DescriptionError(
            f"has mobility {mobility} = {count}, but {len(marked)} are marked independent: "
            f'{_names(marked)}; mark {len(marked) - mobility} of them independent="false"',
            _source(cluster),
        )
    if len(columns) - len(excluded) < mobility:
        raise DescriptionError(
            f"has mobility {mobility} = {count}, but with {_names(excluded)} marked "
            f'independent="false" only {len(columns) - len(excluded)} may be independent; '
            f"unmark {mobility - len(columns) + len(excluded)} of them",
            _source(cluster),
        )


# ---- loops ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Samples:
    """Closed configurations, the conditions' Jacobians there in comparable units, their ranks."""

    q: Array
    jacobian: Array
    ranks: Array
    gap: float


def _unit(cluster: Cluster) -> Array:
    """Column scaling that makes metres and radians comparable."""
    return np.array([cluster.scale if column.length else 1.0 for column in cluster.columns])


def _row_unit(cluster: Cluster) -> Array:
    """Row scaling: gaps in units of the cluster's length (angles' sines as they are)."""
    units = []
    for loop in cluster.geometry.loops:
        for row in loop.rows:
            angular = isinstance(row, Perpendicular)
            units.append(1.0 if angular else 1.0 / cluster.scale)
    units += [1.0 / math.hypot(*(x for _, x in c.terms)) for c in cluster.geometry.linear]
    return np.array(units)


def random_positions(
    geometry: Geometry,
    columns: Sequence[Column],
    rng: np.random.Generator,
    count: int,
    scale: float,
) -> Array:
    """Spanning positions drawn within the joints' limits, anywhere where there are none."""
    q = np.empty((count, geometry.nq))
    for n, link in enumerate(geometry.links):
        own = [column for column in columns if column.link == n]
        drawn = np.empty((count, link.joint.nv))
        for i, column in enumerate(own):
            reach = scale if column.length else math.pi
            low, high = column.limits
            low = max(low, high - 2 * reach if high < math.inf else -reach)
            high = min(high, low + 2 * reach)
            drawn[:, i] = rng.uniform(low, max(low, high), count)
        neutral = np.broadcast_to(np.array(link.joint.neutral()), (count, link.joint.nq))
        if link.joint.nq == link.joint.nv:
            q[:, link.q : link.q + link.joint.nq] = drawn
        else:
            q[:, link.q : link.q + link.joint.nq] = link.joint.integrate(neutral, drawn)
            quaternion = rng.standard_normal((count, 4))
            quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
            q[:, link.q + link.joint.nq - 4 : link.q + link.joint.nq] = quaternion
    return q


def flipped(geometry: Geometry, q: Array) -> Mask:
    """Which configurations hold a loop the wrong way round: axes opposite instead of aligned.

    Perpendicularity of axes cannot tell the two apart; Newton may find either.
    """
    wrong = np.zeros(q.shape[:-1], dtype=bool)
    at = unstack(q)
    for loop in geometry.loops:
        pairs = {(row.i, row.j) for row in loop.rows if isinstance(row, Perpendicular)}
        checks: list[tuple[int, int]] = []
        if {(1, 0), (2, 0)} <= pairs:
            checks.append((0, 0))
        if (1, 2) in pairs:
            checks.append((2, 2))
        if checks:
            probe = replace(loop, rows=tuple(Perpendicular(i, j) for i, j in checks))
            for value in evaluate_loops(geometry.links, [probe], at).values:
                wrong |= np.asarray(value) < 0.0
    return wrong


def _sample(cluster: Cluster) -> _Samples:
    """Closed configurations: near the start, and anywhere."""
    geometry = cluster.geometry
    rng = np.random.default_rng(20240607)
    smallest = math.inf
    found: list[Array] = []
    for attempt in range(6):
        anywhere = random_positions(geometry, cluster.columns, rng, SAMPLES, cluster.scale)
        near = geometry.integrate(
            np.broadcast_to(cluster.start, (SAMPLES, geometry.nq)),
            rng.uniform(-0.6, 0.6, (SAMPLES, geometry.nv)) * _unit(cluster),
        )
        guesses = np.concatenate([cluster.start[None], near, anywhere])
        if attempt == 0:
            guesses = guesses[: SAMPLES + 1 + SAMPLES // 2]
        q, gaps = close(geometry, guesses, iterations=30)
        smallest = min(smallest, float(np.min(gaps / max(1.0, cluster.scale))))
        good = (gaps <= max(CLOSED, 1.001 * smallest) * max(1.0, cluster.scale)) & ~flipped(
            geometry, q
        )
        if smallest > NOT_EXACT * min(1.0, cluster.scale):
            continue
        found.append(q[good])
        if sum(len(batch) for batch in found) >= SAMPLES // 2:
            break
    if not found or not sum(len(batch) for batch in found):
        start_gap = float(geometry.gap(cluster.start))
        best = (
            f"the smallest gap found is {smallest:.3g}"
            if smallest > CLOSED
            else ("it closes only with an axis the wrong way round")
        )
        raise DescriptionError(
            f"cannot close: {best} (at the start it is {start_gap:.3g}; "
            f"conditions {_constraint_names(cluster)}); check the anchors, the lengths and axes",
            _source(cluster),
        )
    q = np.concatenate(found)
    jacobian = geometry.evaluate(q)[1] * _unit(cluster) * _row_unit(cluster)[:, None]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    ranks = np.sum(singular > RANK * singular[:, :1], axis=1)
    return _Samples(q, jacobian, ranks, smallest)


def _analyse_loops(cluster: Cluster) -> Finding:
    """Loop joints: rank at random closed configurations, the best coordinates, the rows to keep."""
    geometry, columns = cluster.geometry, cluster.columns
    n = len(columns)
    samples = _sample(cluster)
    rank = int(np.max(samples.ranks))
    generic = samples.ranks == rank
    q, jacobian = samples.q[generic], samples.jacobian[generic]
    mobility = n - rank
    _check_counts(cluster, mobility, rank)
    _, singular, right = np.linalg.svd(jacobian)
    null = np.swapaxes(right[:, rank:, :], 1, 2)  # (samples, n, mobility), orthonormal
    suspicions: list[tuple[str, Source]] = []
    dropped = singular[:, rank:] / singular[:, :1]
    off = float(np.max(dropped, initial=0.0))
    if samples.gap > CLOSED or off > 1e-9:
        suspicions.append(
            (
                f"closes only nearly (conditions {_constraint_names(cluster)}: gap "
                f"{samples.gap:.2g}, axes off by {off:.2g}); taken as exact, but check the anchors "
                "and write angles with all digits",
                _source(cluster),
            )
        )
    independent, notes = _independent(cluster, null, mobility)
    keep, ranks, duplicates = _rows_to_keep(cluster, jacobian, rank)
    for index, gained in enumerate(ranks):
        if gained == 0:
            suspicions.append(
                (
                    "adds nothing: the loops and couplings before it already say all of it "
                    f"(of {_constraint_names(cluster)}); remove it",
                    cluster.loop_sources[index],
                )
            )
    never = frozenset(independent)
    prefer = [0 if c.chosen is False else 1 if c.follower else 2 for c in columns]
    reduced = _eliminate(cluster, never, prefer)
    z = [i for i in range(n) if i not in reduced.pivots]
    expand = tuple(
        tuple((reduced.pivots[i][0] if i in reduced.pivots else {i: 1.0}).get(c, 0.0) for c in z)
        for i in range(n)
    )
    pairs = [(a, b) for a, loop in enumerate(geometry.loops) for b in range(len(loop.rows))]
    loop_rows = [row for row in keep if row < len(pairs)]
    dependent = [i for i, c in enumerate(z) if c not in never]
    pattern = np.max(np.abs(jacobian[:, loop_rows] @ np.array(expand)), axis=0)
    blocks = _blocks(pattern > 1e-11, dependent)
    constraint = LoopConstraint(
        geometry.links,
        geometry.loops,
        frozenset(pairs[row] for row in loop_rows),
        expand,
        tuple(z.index(i) for i in independent),
        blocks,
    )
    exact = samples.gap <= CLOSED and off <= 1e-9
    closing = tuple(range(geometry.rows)) if exact else tuple(keep)
    neutral = _loop_neutral(cluster, q, null, independent, closing, exact)
    return Finding(
        constraint,
        independent,
        neutral,
        tuple(ranks),
        duplicates,
        closing,
        tuple(notes),
        tuple(suspicions),
    )


def _conditioning(null: Array, columns: Sequence[int]) -> Array:
    """1/‖G‖-like measure of a choice of independent columns, at each sample: σ_min(N_I)."""
    return np.asarray(np.linalg.svd(null[:, list(columns), :], compute_uv=False)[:, -1])


def _independent(cluster: Cluster, null: Array, mobility: int) -> tuple[tuple[int, ...], list[str]]:
    """The independent columns: the file's where it decides, else the best conditioned."""
    columns = cluster.columns
    forced = [i for i, c in enumerate(columns) if c.chosen]
    open_ = [i for i, c in enumerate(columns) if c.chosen is None]
    notes: list[str] = []
    if len(forced) == mobility:
        choice = tuple(forced)
    elif len(forced) + len(open_) == mobility:
        choice = tuple(sorted(forced + open_))
    else:
        choice = _best(
            null, forced, open_, mobility, [columns[i].follower for i in range(len(columns))]
        )
        picked = _names([columns[i].label for i in choice if i in open_])
        notes.append(
            f"cluster '{cluster.name}': {picked} chosen as independent by conditioning, "
            "as the file does not say"
        )
    measure = _conditioning(null, choice)
    if float(np.max(measure)) < 1e-6:
        others = _best(null, [], list(range(len(columns))), mobility, [False] * len(columns))
        raise DescriptionError(
            f"{_names([columns[i].label for i in choice])} cannot be the independent coordinates: "
            "at every configuration tried, motions of the cluster leave them at rest "
            f"(singular value {float(np.max(measure)):.1g}); take "
            f"{_names([columns[i].label for i in others])}",
            _source(cluster),
        )
    return choice, notes


def _best(
    null: Array, forced: list[int], open_: list[int], mobility: int, follower: list[bool]
) -> tuple[int, ...]:
    """The choice of joints nearest the base that is conditioned within twice the best.

    Conditioning is judged over the samples; followers are chosen only if they must be.
    """
    missing = mobility - len(forced)
    pools = [[i for i in open_ if not follower[i]], open_]
    for pool in pools:
        if len(pool) < missing:
            continue
        if math.comb(len(pool), missing) <= 3000:
            best: tuple[float, tuple[int, ...]] = (-1.0, ())
            for extra in itertools.combinations(pool, missing):
                choice = tuple(sorted([*forced, *extra]))
                measure = _conditioning(null, choice)
                score = float(np.quantile(measure, 0.1))
                if score > 2.0 * best[0] + 1e-12:  # of the good ones, the one nearest the base
                    best = (score, choice)
        else:
            best = _greedy(null, forced, pool, mobility)
        if best[0] > 1e-3:
            return best[1]
    return best[1]


def _greedy(
    null: Array, forced: list[int], pool: list[int], mobility: int
) -> tuple[float, tuple[int, ...]]:
    """Pivoted Gram–Schmidt on the rows of the null-space bases, all samples at once."""
    rows = np.swapaxes(null, 1, 2).copy()  # (samples, mobility, n)
    choice: list[int] = []
    for step in range(mobility):
        size = np.quantile(np.linalg.norm(rows, axis=1), 0.25, axis=0)
        options = forced if step < len(forced) else [i for i in pool if i not in choice]
        pick = max((i for i in options if i not in choice), key=lambda i: size[i])
        choice.append(pick)
        direction = rows[:, :, pick]
        direction = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        rows -= direction[:, :, None] * np.einsum("sm,smn->sn", direction, rows)[:, None, :]
    ordered = tuple(sorted(choice))
    return float(np.quantile(_conditioning(null, ordered), 0.25)), ordered


def _rows_to_keep(
    cluster: Cluster, jacobian: Array, rank: int
) -> tuple[list[int], list[int], tuple[bool, ...]]:
    """Rows that are no constant combination of the others; the rank that each loop adds.

    Stacking the samples side by side makes a row that is *always* a fixed combination of others
    linearly dependent; pivoting picks the best conditioned rows among them. What redundancy is left
    varies with the configuration, and is dealt with by least squares.
    """
    geometry = cluster.geometry
    loop_row_count = sum(len(loop.rows) for loop in geometry.loops)
    ranks = []
    at = 0
    linear = list(range(loop_row_count, geometry.rows))

    def generic(rows: list[int]) -> int:
        if not rows:
            return 0
        singular = np.linalg.svd(jacobian[:, rows], compute_uv=False)
        largest = np.linalg.norm(jacobian, axis=(1, 2))
        return int(np.max(np.sum(singular > RANK * largest[:, None], axis=1)))

    seen = list(linear)
    before = generic(seen)
    duplicates = [generic(linear[: n + 1]) == generic(linear[:n]) for n in range(len(linear))]
    useful: list[int] = list(linear)
    for loop in geometry.loops:
        rows = list(range(at, at + len(loop.rows)))
        at += len(loop.rows)
        seen += rows
        after = generic(seen)
        ranks.append(after - before)
        if after > before:
            useful += rows
        before = after
    stacked = np.concatenate(list(jacobian), axis=1)
    reference = float(np.max(np.linalg.norm(stacked, axis=1), initial=0.0))
    chosen = list(linear)
    candidates = [row for row in useful if row < loop_row_count]
    # the couplings are eliminated first: judge loop rows by what those leave, sample by sample
    left = stacked.copy()
    if linear:
        blocks = []
        for sample in jacobian:
            _, s, vt = np.linalg.svd(sample[linear], full_matrices=False)
            v = vt[s > 1e-12 * max(1.0, s[0])]
            blocks.append(sample - sample @ v.T @ v)
        left = np.concatenate(blocks, axis=1)
    while candidates:
        size = {row: float(np.linalg.norm(left[row])) for row in candidates}
        pick = max(candidates, key=lambda row: (round(size[row] / reference, 6), -row))
        if size[pick] <= 3 * RANK * reference:
            break
        chosen.append(pick)
        candidates.remove(pick)
        direction = left[pick] / size[pick]
        left -= np.outer(left @ direction, direction)
    loops = sorted(row for row in chosen if row < loop_row_count)
    return loops + linear, ranks, tuple(duplicates)


def _blocks(pattern: Mask, dependent: list[int]) -> tuple[Block, ...]:
    """Block triangular order of the dependent columns' system, if it is square and sparse."""
    rows = len(pattern)
    whole = (Block(tuple(range(rows)), tuple(dependent)),)
    if rows != len(dependent) or rows <= 2:
        return whole
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    square = pattern[:, dependent]
    match = maximum_bipartite_matching(csr_array(square.astype(np.int8)), perm_type="column")
    if np.any(match < 0):
        return whole
    matched = square[:, match]  # row i determines column match[i]
    count, label = connected_components(
        csr_array(matched.astype(np.int8)), directed=True, connection="strong"
    )
    members = [[i for i in range(rows) if label[i] == c] for c in range(count)]
    needs = [
        {int(label[j]) for i in group for j in range(rows) if matched[i, j]} - {c}
        for c, group in enumerate(members)
    ]
    order: list[int] = []
    while len(order) < count:
        order.append(next(c for c in range(count) if c not in order and needs[c] <= set(order)))
    return tuple(
        Block(tuple(members[c]), tuple(dependent[match[i]] for i in members[c])) for c in order
    )


def _loop_neutral(
    cluster: Cluster,
    samples: Array,
    null: Array,
    independent: tuple[int, ...],
    closing: tuple[int, ...],
    exact: bool,
) -> Array:
    """A closed, regular configuration near the start, within the limits where there is one."""
    geometry, columns = cluster.geometry, cluster.columns
    good = float(np.quantile(_conditioning(null, independent), 0.5))
    low = np.array([column.limits[0] for column in columns])
    high = np.array([column.limits[1] for column in columns])

    def measure(q: Array) -> tuple[Mask, Array, Array]:
        jacobian = geometry.evaluate(q)[1] * _unit(cluster) * _row_unit(cluster)[:, None]
        right = np.linalg.svd(jacobian)[2]
        basis = np.swapaxes(right[:, -len(independent) :, :], 1, 2)
        regular = _conditioning(basis, independent) >= 0.1 * good
        zero = np.broadcast_to(cluster.start, q.shape)
        away = geometry.difference(zero, q)
        at = geometry.difference(np.broadcast_to(_zero(geometry), q.shape), q)
        outside = np.sum(np.maximum(0.0, low - at) + np.maximum(0.0, at - high), axis=1)
        return regular, np.linalg.norm(away / _unit(cluster), axis=1), outside

    first, gap = close(geometry, cluster.start[None], rows=closing)
    candidates = samples
    if float(gap[0]) <= CLOSED * max(1.0, cluster.scale) and not bool(flipped(geometry, first)[0]):
        candidates = np.concatenate([first, samples])
    if not exact:
        candidates = close(geometry, candidates, rows=closing)[0]
    regular, away, outside = measure(candidates)
    order = sorted(
        range(len(candidates)),
        key=lambda i: (bool(outside[i] > 1e-9), not regular[i], float(away[i]), i),
    )
    best: Array = candidates[order[0]]
    return best


def _zero(geometry: Geometry) -> Array:
    return np.concatenate([np.array(link.joint.neutral()) for link in geometry.links])
