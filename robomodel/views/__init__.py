"""Pictures: the graphs of a robot, what its clusters do over a range, the robot itself,
and its motions.

They need matplotlib and viser (the extra ``views``), imported when asked for one.
"""

from robomodel.views.animation import Player, play, write_html
from robomodel.views.graph import draw_graph
from robomodel.views.plots import draw_cluster, draw_residuals
from robomodel.views.recorded import read_motion
from robomodel.views.viewer import Viewer, view

__all__ = [
    "Player",
    "Viewer",
    "draw_cluster",
    "draw_graph",
    "draw_residuals",
    "play",
    "read_motion",
    "view",
    "write_html",
]
