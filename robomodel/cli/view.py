"""``robomodel view``: a robot in the browser."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

import typer

from robomodel.cli.frame import Answer
from robomodel.cli.robot import Robot

EXAMPLES = (
    "robomodel view mini_cheetah",
    "robomodel view four_bar --port 8090 --seconds 60",
)


def command(
    robot: Robot,
    host: Annotated[str, typer.Option(help="The address to serve on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to serve on, or the next free one.")] = 8080,
    seconds: Annotated[
        float | None,
        typer.Option(help="End after so long. [default: when interrupted]", show_default=False),
    ] = None,
) -> Answer:
    """Show a robot in the browser, with a slider for each freedom; loops close as it moves.

    Keys of the JSON document, which is there as soon as the page is: robot, file, url, warnings.
    """
    from robomodel.views import view

    model = robot.load()
    viewer = view(model, host=host, port=port)

    def stay() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            end = None if seconds is None else time.monotonic() + seconds
            while end is None or time.monotonic() < end:
                time.sleep(0.1)
        viewer.stop()

    return Answer(
        document={"robot": model.name, "file": robot.file, "url": viewer.url},
        show=lambda to: to.print(f"{model.name} is at {viewer.url}"),
        then=stay,
    )
