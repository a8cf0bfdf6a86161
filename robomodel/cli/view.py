"""``robomodel view``: a robot in the browser, at rest or as it moved."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Annotated

import typer

from robomodel.cli.common import Result, UserError, blaming
from robomodel.cli.robot import Robot
from robomodel.reports.document import Document

EXAMPLES = (
    "robomodel view mini_cheetah",
    "robomodel excite four_bar -o motion.csv",
    "robomodel view four_bar motion.csv --html motion.html",
)


def command(
    robot: Robot,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG",
            help="A motion to play: CSV, Parquet or a bag of ROS, with time and q.JOINT as of "
            "robomodel identify, or what Trajectory.to_csv wrote.",
        ),
    ] = None,
    html: Path | None = None,
    fps: float = 30.0,
    topic: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    seconds: float | None = None,
) -> Result:
    """Show a robot in the browser, with a slider for each freedom; or play a motion from a log.

    Loops close as it moves.

    Keys of the JSON document, which is there as soon as the page is: robot, file, url (null with
    --html), html (null, or the file), duration of the motion (null without), warnings.

    Options:
        --html OUT.html: Write the motion as one page that needs nothing besides, and serve none.
        --fps: Frames a second of motion.
        --topic: A bag's topic of joints, if it has several.
        --host: The address to serve on.
        --port: The port to serve on, or the next free one.
        --seconds: End after so long. [default: when interrupted]
    """
    from robomodel import views

    if html is not None and log is None:
        raise UserError("--html is of a motion: give its log")
    model = robot.load()
    duration = None
    page: views.Viewer | views.Player | None = None
    with blaming(str(log or robot.file)):
        if log is None:
            page = views.view(model, host=host, port=port)
        else:
            motion = views.read_motion(model, log, topic=topic)
            duration = motion.times[-1]
            if html is None:
                page = views.play(motion, fps, host=host, port=port)
            else:
                views.write_html(motion, html, fps)

    def stay() -> None:
        if page is None:
            return
        with contextlib.suppress(KeyboardInterrupt):
            end = None if seconds is None else time.monotonic() + seconds
            while end is None or time.monotonic() < end:
                time.sleep(0.1)
        page.stop()

    data = {
        "robot": model.name,
        "url": None if page is None else page.url,
        "html": None if html is None else str(html),
        "duration": duration,
    }
    text = f"wrote {html}" if page is None else f"{model.name} is at {page.url}"
    return Result(document=Document(text, "", data=data), then=stay)
