"""Results on disk that take long to compute: private to the user, checked before use.

Most are machine code; the solids of meshes are kept likewise. Entries are named by a digest of all
that they depend on (for code: the program, the compiler, the processor) and hold a digest of their
bytes; an entry that is not as it was written is computed again. Entries are written to a
temporary file and renamed, so that processes may write at once. A directory to which others than
its owner may write is not used.
``ROBOMODEL_CACHE`` names another directory, or is ``off``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"robomodel kernel 2\n"
MAX_ENTRIES = 1000  # beyond it the longest unused tenth is removed
MAX_BYTES = 1 << 28  # of an entry


def joined(parts: Sequence[bytes]) -> bytes:
    """Several byte strings as the content of one entry."""
    sizes = struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))
    return sizes + b"".join(parts)


def parted(content: bytes) -> list[bytes]:
    """The byte strings of an entry made by :func:`joined`."""
    (count,) = struct.unpack_from("<Q", content)
    sizes = struct.unpack_from(f"<{count}Q", content, 8)
    ends = list(itertools.accumulate(sizes, initial=8 * (count + 1)))
    return [content[a:b] for a, b in itertools.pairwise(ends)]


def digest(parts: Iterable[str]) -> str:
    """The name (hexadecimal digest) of an entry that depends on these texts."""
    result = hashlib.sha256()
    for part in parts:
        result.update(part.encode())
        result.update(b"\0")
    return result.hexdigest()


_ATOMS = frozenset((float, int, str, bool, type(None), slice))


def canonical(x: Any) -> str:
    """All that a value of dataclasses and containers holds, as a text for :func:`digest`.

    Unlike ``repr``, which is for people and may omit parts. Fields declared with ``repr=False`` are
    omitted: they hold places in files, which change no program.
    """
    kind = type(x)
    if kind in _ATOMS:
        return repr(x)
    if kind in (tuple, list):
        return repr(x) if _ATOMS.issuperset(map(type, x)) else f"({','.join(map(canonical, x))})"
    if kind is dict:
        return f"{{{','.join(sorted(f'{canonical(k)}:{canonical(v)}' for k, v in x.items()))}}}"
    if kind in (set, frozenset):
        return f"{{{','.join(sorted(map(canonical, x)))}}}"
    if is_dataclass(kind):
        return f"{kind.__qualname__}{canonical(_fields(kind)(x))}"
    if isinstance(x, np.generic | np.ndarray):
        return f"{x.dtype.str}{x.shape}{x.tobytes().hex()}"
    raise TypeError(f"a {kind.__name__} cannot be part of a key")


@functools.cache
def _fields(kind: type) -> Callable[[object], tuple[object, ...]]:
    names = [field.name for field in fields(kind) if field.repr]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple(getattr(x, name) for name in names)


@contextlib.contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Keep entries in this folder meanwhile, as ``ROBOMODEL_CACHE`` does.

    Raises PermissionError if it would not be used, since others may write to it.
    """
    before = os.environ.get("ROBOMODEL_CACHE")
    os.environ["ROBOMODEL_CACHE"] = str(folder)
    try:
        if directory() is None:
            raise PermissionError(13, "others may write to this folder, or nobody", str(folder))
        yield
    finally:
        if before is None:
            del os.environ["ROBOMODEL_CACHE"]
        else:
            os.environ["ROBOMODEL_CACHE"] = before


def directory() -> Path | None:
    """The folder of entries, created if need be; None where it would not be safe."""
    path = os.environ.get("ROBOMODEL_CACHE")
    if path is not None and path.strip().lower() in ("", "0", "off", "no"):
        return None
    try:
        if path is None:
            import platformdirs

            path = platformdirs.user_cache_dir("robomodel", appauthor=False)
        place = Path(path).expanduser()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None
    return place if _is_private(place) else None


def _is_private(place: Path) -> bool:
    """True if the folder is the user's, and no other user can replace one of its parents."""
    if os.name != "posix":
        return True  # per-user application data; permissions are inherited from there
    try:
        if not _is_ours(place.stat()):
            return False
        for parent in place.resolve().parents:
            mode = parent.stat().st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                return False
    except OSError:
        return False
    return True


def _is_ours(status: os.stat_result) -> bool:
    """True if a file or folder is the user's, and no other user may write to it."""
    if os.name != "posix":
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def load(key: str) -> bytes | None:
    """The entry's bytes; None if there is none that is complete and private."""
    place = directory()
    if place is None:
        return None
    flags = os.O_RDONLY
    for flag in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"):
        flags |= getattr(os, flag, 0)  # do not block on a pipe or a device in its place
    try:
        with os.fdopen(os.open(place / key, flags), "rb") as file:
            status = os.fstat(file.fileno())
            usual = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES
            content = file.read(MAX_BYTES) if usual and _is_ours(status) else b""
    except OSError:
        return None
    head, payload = content[: len(MAGIC) + 32], content[len(MAGIC) + 32 :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(place / key)
    return payload


def store(key: str, payload: bytes) -> None:
    """Write an entry, if there is a folder for it."""
    place = directory()
    if place is None:
        return
    import tempfile

    try:
        descriptor, name = tempfile.mkstemp(dir=place, prefix=".new-")  # readable by the user alone
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(name, place / key)
        except BaseException:
            os.unlink(name)
            raise
        _prune(place)
    except OSError:
        return  # with a full or read-only disk code is compiled again


def _prune(place: Path) -> None:
    entries = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
    if len(entries) > MAX_ENTRIES:
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: len(entries) - MAX_ENTRIES + MAX_ENTRIES // 10]:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
