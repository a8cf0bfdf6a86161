"""A pool of threads: pieces of a call go to whichever thread is free, the caller's among them."""

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

TILE = 8  # most states that kernels take at a time (of float64)
MIN_TILES = 64  # least tiles of the last pieces of a large batch


class _Job:
    """The pieces of one call, which threads take in turn until ``stop`` is set."""

    def __init__(self, work: Work, pieces: list[slice], stop: threading.Event) -> None:
        self.work = work
        self.pieces = pieces
        self.stop = stop
        self._numbers = itertools.count()  # next() is atomic
        self._errstate: Any = np.geterr() | {"call": np.geterrcall()}
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

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
        with np.errstate(**self._errstate):
            try:
                while True:
                    self._ended.put(self._do_next())
            except IndexError:
                return

    def finish(self) -> None:
        """Run pieces, wait for those of other threads, and raise the first error."""
        errors: list[BaseException | None] = []
        try:
            while True:
                errors.append(self._do_next())
        except IndexError:
            pass
        left = len(self.pieces) - len(errors)
        while left:
            try:
                errors.append(self._ended.get())
                left -= 1
            except KeyboardInterrupt as pressed:  # others end what they are at
                self.stop.set()
                errors.insert(0, pressed)
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
    work: Work, count: int, threads: int, stop: threading.Event | None = None
) -> None:  # fmt: skip
    """Call ``work`` on slices that cover range(count), on ``threads`` threads; 0: one a processor.

    Slices begin where tiles do. Errors of ``work`` are raised here; floating-point errors follow
    the caller's ``np.errstate``. ``stop`` is set by Ctrl-C, so that long work on other threads may
    end early; KeyboardInterrupt is raised when all have ended.
    """
    if threads < 0:
        raise ValueError(f"threads must be 0 (one a processor) or more, got {threads}")
    tiles = -(-count // TILE)
    workers = min(threads or os.cpu_count() or 1, tiles)
    if workers <= 1:
        work(slice(0, count))
        return
    edges = [min(count, TILE * edge) for edge in _edges(tiles, workers)]
    pieces = [slice(*ends) for ends in itertools.pairwise(edges)]
    job = _Job(work, pieces, stop or threading.Event())
    _POOL.call(job, workers - 1)
    job.finish()


def _edges(tiles: int, threads: int) -> list[int]:
    """Bounds of pieces: one a thread; of large batches more, the last ones small.

    So a thread that starts late, or is held up, takes fewer, and all end at nearly the same time.
    """
    if tiles < 2 * MIN_TILES * threads:
        return [tiles * n // threads for n in range(threads + 1)]
    edges = [0]
    while edges[-1] < tiles:
        size = max(MIN_TILES, (tiles - edges[-1]) // (2 * threads))
        edges.append(min(tiles, edges[-1] + size))
    return edges


def run_ufunc(
    ufunc: Callable[..., Any], arrays: Sequence[NDArray[Any]], result: NDArray[Any], threads: int
) -> None:
    """Run a ufunc on arrays (..., n) into a result; threads share the longest batch axis."""
    batch = result.shape[:-1]
    axis = batch.index(max(batch))
    wide = [
        x if x.shape[:-1] == batch else np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays
    ]

    def part(piece: slice) -> None:
        at = (*[slice(None)] * axis, piece)
        ufunc(*(x[at] for x in wide), out=result[at])

    share(part, batch[axis], threads)
