"""Long-running work: progress bars, and locks that survive a fork.

Python 3.11 has one lock for each ``functools.cached_property``, for all instances: a process that
is forked while another thread computes one would wait for it for ever. The child gets new ones.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

_Item = TypeVar("_Item")


class Progress:
    """A bar on standard error, if that is a terminal. Use it in a ``with`` statement.

    It appears when the work has taken ``after`` seconds and is not done.
    """

    def __init__(self, what: str, total: float, enabled: bool = True, after: float = 1.0) -> None:
        self.what = what
        self.total = total
        self.after = after
        self.enabled = enabled and sys.stderr.isatty()
        self.began = time.monotonic()
        self.shown: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown is not None:
            self.shown[0].stop()

    def at(self, done: float) -> None:
        """Show the progress ``done`` of ``total``."""
        if not self.enabled:
            return
        if self.shown is None:
            if time.monotonic() - self.began < self.after:
                return
            from rich.console import Console
            from rich.progress import Progress as Bar

            bar = Bar(console=Console(stderr=True), transient=True)
            self.shown = bar, bar.add_task(self.what, total=self.total)
            bar.start()
        bar, task = self.shown
        bar.update(task, completed=done)


def track(what: str, items: Iterable[_Item], total: int, enabled: bool = True) -> Iterator[_Item]:
    """The items, with a bar that counts them."""
    with Progress(what, total, enabled) as bar:
        for n, item in enumerate(items):
            bar.at(n)
            yield item


@contextmanager
def uncollected() -> Iterator[None]:
    """Search for no garbage in cycles meanwhile: among a million new objects that all stay, it
    takes a quarter of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collected() -> Iterator[None]:
    """Search again within :func:`uncollected`, but not among what a process has made before.

    That is modules and what they define, which stay: a search of them takes 0.1 s at its exit.
    """
    if gc.isenabled():
        yield
        return
    if not gc.get_freeze_count():
        gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        gc.disable()


class Lock:
    """A lock that is open in a forked child process. Use it in a ``with`` statement."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _renew_properties() -> None:
    """Open the locks of this package's cached properties, in a forked child."""
    package = __name__.partition(".")[0]
    modules = [x for name, x in sys.modules.items() if name.partition(".")[0] == package]
    owners = {
        owner
        for module in modules
        for owner in vars(module).values()
        if isinstance(owner, type) and owner.__module__.partition(".")[0] == package
    }
    for owner in owners:
        for each in vars(owner).values():
            if isinstance(each, cached_property):
                vars(each)["lock"] = threading.RLock()


if sys.version_info < (3, 12) and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_properties)
