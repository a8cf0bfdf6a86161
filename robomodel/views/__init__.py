"""Pictures and pages: graphs of a robot, clusters over a range, the robot, its motions.

Graphs and plots need matplotlib, the viewer viser (the extra ``views``), imported when used. Pages,
motions as HTML and stills need neither.
"""

from robomodel.views.animation import Player, play, write_html
from robomodel.views.drawings import draw_cluster, draw_graph, draw_residuals
from robomodel.views.pages import page, write_page
from robomodel.views.recorded import read_motion
from robomodel.views.still import png, write_png
from robomodel.views.viewer import Viewer, view

__all__ = [
    "Player",
    "Viewer",
    "draw_cluster",
    "draw_graph",
    "draw_residuals",
    "page",
    "play",
    "png",
    "read_motion",
    "view",
    "write_html",
    "write_page",
    "write_png",
]
