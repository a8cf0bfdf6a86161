"""A pool of threads: pieces of a call go to whichever thread is free, the caller's among them."""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Work: TypeAlias = Callable[[slice], object]

TILE = 8  # most states that kernels take at a time (of float64)
MIN_TILES = 64  # least tiles of the last pieces of a large batch
LONGEST_PIECE = 4096  # most states that a piece of a batch has: Python hears Ctrl-C between pieces


class _Job:
    """The pieces of one call, which threads take in turn until ``stop`` is set."""

    def __init__(self, work: Work, pieces: list[slice], stop: threading.Event) -> None:
        self.work = work
        self.pieces = pieces
        self.stop = stop
        self._numbers = itertools.count()  # next() is atomic
        self._errstate: Any = np.geterr() | {"call": np.geterrcall()}
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._running: set[int] = set()  # threads of the pool

    def _do_next(self) -> BaseException | None:
        """Run the next piece; returns the error it raised. Raises IndexError if none remain."""
        piece = self.pieces[next(self._numbers)]
        if self.stop.is_set():
            return None
        try:
            self.work(piece)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.stop.set()
            return error
        return None

    def help(self) -> None:
        """Run pieces on a thread of the pool, with the caller's ``np.errstate``."""
        self._running.add(threading.get_ident())
        try:
            with np.errstate(**self._errstate), suppress(IndexError):
                while True:
                    self._ended.put(self._do_next())
        finally:
            self._running.discard(threading.get_ident())

    def finish(self) -> None:
        """Run pieces, wait for those of other threads, and raise the first error.

        Raises KeyboardInterrupt when all threads have ended what they were at.
        """
        errors: list[BaseException | None] = []
        try:
            with suppress(IndexError):
                while True:
                    errors.append(self._do_next())
            errors += [self._ended.get() for _ in range(len(self.pieces) - len(errors))]
        except KeyboardInterrupt:
            self.stop.set()
            while self._running:
                time.sleep(1e-3)
            raise
        for error in errors:
            if error is not None:
                raise error


class _Pool:
    """Threads that wait for jobs, as many as were ever needed at once; a fork starts with none."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._starting = threading.Lock()
        self._started = 0

    def call(self, job: _Job, helpers: int) -> None:
        """Have ``helpers`` threads take part in the job."""
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


def share(
    work: Work,
    count: int,
    threads: int,
    stop: threading.Event | None = None,
    most: int | None = None,
) -> None:
    """Call ``work`` on slices that cover range(count), on ``threads`` threads; 0: one a processor.

    Slices begin where tiles do. Errors of ``work`` are raised here; floating-point errors follow
    the caller's ``np.errstate``. ``stop`` is set by Ctrl-C, so that long work on other threads may
    end early; KeyboardInterrupt is raised when all have ended.
    """
    if threads < 0:
        raise ValueError(f"threads must be 0 (one a processor) or more, got {threads}")
    tiles = max(1, -(-count // TILE))
    workers = min(threads or os.cpu_count() or 1, tiles)
    longest = tiles if most is None else max(1, most // TILE)
    edges = [min(count, TILE * edge) for edge in _edges(tiles, workers, longest)]
    pieces = [slice(*ends) for ends in itertools.pairwise(edges)]
    if workers <= 1:
        for piece in pieces:
            work(piece)
        return
    job = _Job(work, pieces, stop or threading.Event())
    _POOL.call(job, workers - 1)
    job.finish()


def _edges(tiles: int, threads: int, longest: int) -> list[int]:
    """Bounds of pieces: one a thread; of large batches more, the last ones small.

    So a thread that starts late, or is held up, takes fewer, and all end at nearly the same time.
    No piece has more than ``longest`` tiles.
    """
    edges = [0]
    for n in range(1, threads + 1) if tiles < 2 * MIN_TILES * threads else ():
        edges += range(edges[-1] + longest, tiles * n // threads, longest)
        edges.append(tiles * n // threads)
    while edges[-1] < tiles:
        size = max(MIN_TILES, (tiles - edges[-1]) // (2 * threads)) if threads > 1 else tiles
        edges.append(min(tiles, edges[-1] + min(size, longest)))
    return edges


def run_ufunc(
    ufunc: Callable[..., Any], arrays: Sequence[NDArray[Any]], result: NDArray[Any], threads: int
) -> None:
    """Run a ufunc on arrays (..., n) into a result; threads share the longest batch axis.

    In pieces of at most about ``LONGEST_PIECE`` states, between which Python hears Ctrl-C.
    """
    batch = result.shape[:-1]
    axis = batch.index(max(batch))
    most = max(1, LONGEST_PIECE * batch[axis] // max(1, math.prod(batch)))
    wide = [
        x if x.shape[:-1] == batch else np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays
    ]

    def part(piece: slice) -> None:
        at = (*[slice(None)] * axis, piece)
        ufunc(*(x[at] for x in wide), out=result[at])

    share(part, batch[axis], threads, most=most)
