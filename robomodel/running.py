"""Long-running work: progress bars, and locks that survive a fork."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
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
