"""Threads that stay: a call's pieces go to whoever is free, the caller among them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Work: TypeAlias = Callable[[slice], object]

TILE = 8  # states that kernels take at a time, at most (of float64)
MIN_TILES = 64  # of the last pieces of a large batch


class _Job:
    """One call's pieces, which threads do in turn."""

    def __init__(self, work: Work, pieces: list[slice]) -> None:
        self.work = work
        self.pieces = pieces
        self._numbers = itertools.count()  # drawn by one thread at a time
        self._errstate: Any = np.geterr() | {"call": np.geterrcall()}
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def _do_next(self) -> BaseException | None:
        """Do the next piece; the error it raised. IndexError where none remain."""
        piece = self.pieces[next(self._numbers)]
        try:
            self.work(piece)
        except BaseException as error:
            return error
        return None

    def help(self) -> None:
        """Do pieces on another thread than the caller's, under the caller's ``np.errstate``."""
        with np.errstate(**self._errstate):
            try:
                while True:
                    self._ended.put(self._do_next())
            except IndexError:
                return

    def finish(self) -> None:
        """Do pieces, wait for those of others, and raise the first error."""
        errors: list[BaseException | None] = []
        try:
            while True:
                errors.append(self._do_next())
        except IndexError:
            pass
        while len(errors) < len(self.pieces):
            errors.append(self._ended.get())
        for error in errors:
            if error is not None:
                raise error


class _Pool:
    """Threads that wait for jobs: as many as ever were needed at once; a fork starts with none."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._starting = threading.Lock()
        self._started = 0

    def call(self, job: _Job, helpers: int) -> None:
        """Have so many threads take part in the job."""
        with self._starting:
            while self._started < helpers:
                threading.Thread(target=_serve, args=(self._jobs,), daemon=True).start()
                self._started += 1
        for _ in range(helpers):
            self._jobs.put(job)


def _serve(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().help()


_POOL = _Pool()


def share(work: Work, count: int, threads: int) -> None:
    """Call ``work`` on slices that cover range(count), on so many threads; 0: one a processor.

    Slices begin where tiles do. What ``work`` raises is raised here; floating-point errors are
    treated as the caller's ``np.errstate`` says.
    """
    if threads < 0:
        raise ValueError(f"threads must be 0 (one a processor) or more, got {threads}")
    tiles = -(-count // TILE)
    workers = min(threads or os.cpu_count() or 1, tiles)
    if workers <= 1:
        work(slice(0, count))
        return
    edges = [min(count, TILE * edge) for edge in _edges(tiles, workers)]
    job = _Job(work, [slice(*ends) for ends in itertools.pairwise(edges)])
    _POOL.call(job, workers - 1)
    job.finish()


def _edges(tiles: int, threads: int) -> list[int]:
    """Where pieces begin and end: as many as threads; of large batches more, the last ones small.

    So threads that begin late, or are held up, take fewer, and all end at nearly the same time.
    """
    if tiles < 2 * MIN_TILES * threads:
        return [tiles * n // threads for n in range(threads + 1)]
    edges = [0]
    while edges[-1] < tiles:
        size = max(MIN_TILES, (tiles - edges[-1]) // (2 * threads))
        edges.append(min(tiles, edges[-1] + size))
    return edges


def run_ufunc(
    ufunc: np.ufunc, arrays: Sequence[NDArray[Any]], result: NDArray[Any], threads: int
) -> None:
    """A ufunc on arrays (..., n) onto a result with the batch's axes, shared along the longest."""
    batch = result.shape[:-1]
    axis = batch.index(max(batch))
    wide = [
        x if x.shape[:-1] == batch else np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays
    ]

    def part(piece: slice) -> None:
        at = (*[slice(None)] * axis, piece)
        ufunc(*(x[at] for x in wide), out=result[at])

    share(part, batch[axis], threads)
