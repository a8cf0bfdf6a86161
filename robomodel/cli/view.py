"""``robomodel view``: a robot in the browser."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

import typer

from robomodel.cli.robot import (
    Extend,
    File,
    FloatingBase,
    Name,
    Strict,
    UserError,
    load,
    reporting,
)


def command(
    file: File,
    host: Annotated[str, typer.Option(help="The address to serve on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to serve on, or the next free one.")] = 8080,
    seconds: Annotated[
        float | None,
        typer.Option(help="End after so long. [default: when interrupted]", show_default=False),
    ] = None,
    extend: Extend = None,
    floating_base: FloatingBase = None,
    strict: Strict = False,
    name: Name = None,
) -> None:
    """Show a robot in the browser, with a slider for each freedom; loops close as it moves."""
    from robomodel.views import view

    with reporting(file):
        model = load(file, extend, floating_base, strict, name=name)
        try:
            viewer = view(model, host=host, port=port)
        except ImportError as error:
            raise UserError(f"{file}: {error}") from error
    typer.echo(f"{model.name} is at {viewer.url}")
    with contextlib.suppress(KeyboardInterrupt):
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            time.sleep(0.1)
    viewer.stop()
