"""LLVM's work: assembly to object code. Also run as a script, by processes that share a program.

A process of its own reads modules from standard input and writes their object code to standard
output, each headed by a line of JSON. It needs llvmlite and nothing of this package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any


def initialized() -> Any:
    """LLVM's bindings, told about this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def target(llvm: Any, settings: Mapping[str, Any]) -> Any:
    """The machine that code is for; ``settings`` are its triple and those of llvmlite's."""
    options = {name: value for name, value in settings.items() if name != "triple"}
    return llvm.Target.from_triple(settings["triple"]).create_target_machine(**options)


def object_code(llvm: Any, settings: Mapping[str, Any], text: str) -> bytes:
    """A module's object code."""
    machine = target(llvm, settings)
    code: bytes = machine.emit_object(_module(llvm, machine, text))
    return code


def assembly(llvm: Any, settings: Mapping[str, Any], text: str) -> str:
    """A module's assembly."""
    machine = target(llvm, settings)
    made: str = machine.emit_assembly(_module(llvm, machine, text))
    return made


def _module(llvm: Any, machine: Any, text: str) -> Any:
    """A module for this machine; in a context of its own, which nobody else looks into."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


def send(stream: IO[bytes], content: bytes, **others: Any) -> None:
    """Write a message: its content, and what else is to be said."""
    stream.write(json.dumps({"size": len(content), **others}).encode() + b"\n" + content)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, dict[str, Any]]:
    """The next message; EOFError where there is none, or not the whole of it."""
    head = stream.readline()
    if not head:
        raise EOFError("no message")
    others = json.loads(head)
    content = stream.read(size := int(others.pop("size")))
    if len(content) < size:
        raise EOFError("half a message")
    return content, others


def serve(given: IO[bytes], made: IO[bytes]) -> None:
    """Compile one module after the other until there are no more."""
    llvm = initialized()
    with suppress(EOFError):
        while True:
            text, said = receive(given)
            send(made, object_code(llvm, said["settings"], text.decode()))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])  # where llvmlite is
    serve(sys.stdin.buffer, sys.stdout.buffer)
