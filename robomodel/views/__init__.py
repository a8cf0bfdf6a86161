"""Pictures: a robot's graphs, its clusters over a range, the robot itself, and its motions.

They need matplotlib and viser (the extra ``views``), imported at the first picture.
"""

from robomodel.views.animation import Player, play, write_html
from robomodel.views.drawings import draw_cluster, draw_graph, draw_residuals
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
