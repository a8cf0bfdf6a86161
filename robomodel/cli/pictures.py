"""``robomodel graph``, ``design``, ``view``: pictures of graphs; the robot in the browser."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from robomodel.cli.common import Result, UserError, blaming
from robomodel.cli.robot import Robot
from robomodel.reports.document import Document


def graph(
    robot: Robot,
    output: Path = Path("graph.svg"),
    over: str | None = None,
) -> Document:
    """Draw a robot's graphs: connectivity, spanning tree, cluster tree, side by side.

    Keys of the JSON document: robot, file, picture, warnings, and over, lower, upper, closed where
    a joint's range is plotted (closed is false where loops do not close over all of it).

    Examples:
        robomodel graph mini_cheetah
        robomodel graph four_bar --over joint1 -o crank.svg

    Options:
        -o, --output, --out OUT: The picture: .svg, .png or .pdf.
        --over JOINT: Plot positions, ratios (G) and inertias over this joint's range.
    """
    from robomodel.views import draw_cluster, draw_graph

    model = robot.load()
    data: dict[str, object] = {"robot": model.name, "picture": str(output)}
    with blaming(robot.file):
        if over is None:
            draw_graph(model, output)
        else:
            sweep = draw_cluster(model, over, output)
            lower, upper = sweep.positions[[0, -1]]
            data |= {"over": over, "lower": lower, "upper": upper, "closed": sweep.closed}
    return Document(f"wrote {output}", "", data=data)


# ---- design --------------------------------------------------------------------------------------


def design(
    robot: Robot,
    output: Path,
    vary: list[str],
    compare: str | None = None,
    joint: str | None = None,
) -> Document:
    """Write a page with sliders for numbers of the robot, beside those of its joints.

    Loops close anew and all curves follow in the page, with designs that are kept beside them. It
    saves the numbers for --extend of all commands, and for rm.with_parameters.

    Keys of the JSON document: robot, file, html, vary (name: lower, upper), compare, warnings.

    Examples:
        robomodel design crank_rocker -o page.html --vary rocker_joint.x=3..5
        robomodel design parallel_ankle -o p.html --vary left_rod.length=0.19..0.21
        robomodel design four_bar -o p.html --vary joint2.x=.8..1 --compare b.urdf

    Options:
        -o, --output OUT.html: The page.
        --vary NAME=LOW..HIGH: A parameter, named as of rm.parameters(model, geometry=True), and how
            far its slider goes; may be repeated.
        --compare OTHER: Another design, a file or the name of a shipped robot, whose curves stand
            beside: one of the same links and joints, by any numbers. All options for loading are
            for both.
        --joint NAME: The independent joint chosen at first.
    """
    from robomodel.views import write_page

    model = robot.load()
    other = None if compare is None else replace(robot, file=compare).load()
    ranges = {}
    for text in vary:
        name, _, ends = text.partition("=")
        try:
            low, high = map(float, ends.split(".."))
        except ValueError as error:
            form = "write NAME=LOW..HIGH, as rod.length=0.2..0.3"
            raise UserError(f"--vary {text}: {form}") from error
        ranges[name] = (low, high)
    with blaming(robot.file):
        write_page(model, output, vary=ranges, compare=other, joint=joint)
    data = {"robot": model.name, "html": str(output), "vary": ranges, "compare": compare}
    return Document(f"wrote {output}", "", data=data)


# ---- view ----------------------------------------------------------------------------------------


def view(
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
    png: Path | None = None,
    fps: float = 30.0,
    topic: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    seconds: float | None = None,
) -> Result:
    """Show a robot in the browser, with a slider for each freedom; or play a motion from a log.

    Loops close as it moves. --html writes a page that does so without a server, and has curves of
    each joint; --png writes a picture.

    Keys of the JSON document, which is there as soon as the page is: robot, file, url (null where
    a file is written), html and png (null, or the file), duration of the motion (null without),
    warnings.

    Examples:
        robomodel view mini_cheetah
        robomodel view four_bar --html four_bar.html
        robomodel view four_bar motion.csv --html motion.html

    Options:
        --html OUT.html: Write the robot, or the motion, as one page that needs nothing besides.
        --png OUT.png: Write a picture of the robot, or of the motion's first instant.
        --fps: Frames a second of motion.
        --topic: A bag's topic of joints, if it has several.
        --host: The address to serve on.
        --port: The port to serve on, or the next free one.
        --seconds: End after so long. [default: when interrupted]
    """
    from robomodel import views

    model = robot.load()
    duration, motion = None, None
    page: views.Viewer | views.Player | None = None
    with blaming(str(log or robot.file)):
        if log is not None:
            motion = views.read_motion(model, log, topic=topic)
            duration = motion.times[-1]
        if png is not None:
            views.write_png(model, png, None if motion is None else motion.q[0])
        if html is not None and motion is not None:
            views.write_html(motion, html, fps)
        elif html is not None:
            views.write_page(model, html)
        elif png is None and motion is not None:
            page = views.play(motion, fps=fps, host=host, port=port)
        elif png is None:
            page = views.view(model, host=host, port=port)

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
        "png": None if png is None else str(png),
        "duration": duration,
    }
    written = " and ".join(str(path) for path in (html, png) if path is not None)
    text = f"wrote {written}" if page is None else f"{model.name} is at {page.url}"
    return Result(document=Document(text, "", data=data), then=stay)
