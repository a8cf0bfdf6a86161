"""xacro: files that are programs which write a robot, run by the ``xacro`` package.

They may read files and environment variables, and compute what they like, so that they are run only
where the user asks for it: by the name of the file, or by giving arguments.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robomodel.description.resources import Resources
from robomodel.errors import (
    DescriptionError,
    Issue,
    MissingPackageError,
    Source,
    did_you_mean,
    warn_of_all,
)
from robomodel.parsers import xml
from robomodel.running import Lock

_TURN = Lock()  # the package keeps what it reads in variables of its modules

Arguments = Mapping[str, object]


class _Arguments(dict[str, str]):
    """The arguments, and which names a file asks for."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__({name: str(value) for name, value in arguments.items()})
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def expanded(
    text: str, file: str, arguments: Arguments, resources: Resources, *, strict: bool = False
) -> str:
    """What a xacro file writes, with these arguments.

    ``$(find NAME)`` is the package's folder in ``resources``, else a folder NAME that holds the
    file. Arguments that the file does not have are warned of, as is what the package warns of.
    Raises :class:`DescriptionError` where the program fails, and
    :class:`~robomodel.errors.MissingPackageError` where the package is not installed.
    """
    xml.parse(text, file)  # refuses what is no XML, and entities, which are not for the package
    try:
        import xacro
        from xacro import substitution_args
    except ImportError as error:
        raise MissingPackageError("xacro files need", "xacro", "xacro", Source(file)) from error

    def find(name: str) -> str:
        if (folder := resources.find(name)) is None:
            folder = next(
                (each for each in Path(os.path.abspath(file)).parents if each.name == name), None
            )
        if folder is None:
            raise LookupError(
                f"the package '{name}' is not known; say where it is, as in "
                f"resources={{'{name}': 'path/to/{name}'}}"
            )
        return str(folder)

    mappings = _Arguments(arguments)
    messages: list[str] = []

    def warn(*words: object, **_: object) -> None:
        messages.append(" ".join(" ".join(map(str, words)).split()))

    with (
        _TURN,
        _replaced(vars(substitution_args), _eval_find=find),
        _replaced(substitution_args._eval_dict, find=find),
        _replaced(vars(xacro), warning=warn),
    ):
        try:
            xacro.init_stacks(file if os.path.isfile(file) else None)
            document = xacro.parse(text, file)
            xacro.process_doc(document, mappings=mappings)
        except Exception as error:  # expressions raise whatever Python does
            inner = (getattr(xacro, "filestack", None) or [None])[-1] or file
            message = " ".join(str(error).split()) or type(error).__name__
            raise DescriptionError(f"xacro cannot expand this: {message}", Source(inner)) from error
        result = document.toxml()
    issues = [
        Issue(f"it has no argument '{name}'{did_you_mean(name, mappings.asked)}", Source(file))
        for name in arguments
        if name not in mappings.asked
    ]
    issues += [Issue(f"xacro says: {line}", Source(file)) for line in messages]
    warn_of_all(issues, strict=strict)
    return str(result)


@contextlib.contextmanager
def _replaced(table: dict[str, Any], **values: Any) -> Iterator[None]:
    """A table with other values for a while."""
    before = {name: table[name] for name in values}
    table.update(values)
    try:
        yield
    finally:
        table.update(before)
