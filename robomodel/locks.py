"""Locks that a forked process does not find closed by a thread that it does not have."""

from __future__ import annotations

import os
import threading


class Turn:
    """One thread at a time; a child process starts with nobody's turn. Use it in ``with``."""

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
