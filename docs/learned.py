"""What the examples of learning have reached, as pages: motions of their policies, and curves."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

from robomodel.reports.palette import CURVES
from robomodel.views.animation import motion_page

FOLDER = Path(__file__).parent.parent / "examples" / "learning"


def pages() -> dict[str, str]:
    """Each kept policy's motion over ten seconds, and all curves in one picture."""
    sys.path.insert(0, str(FOLDER))
    import walking

    made = {}
    for file in sorted(FOLDER.glob("*.npz")):
        done = walking.walk(walking.ppo.Policy.load(file), walking.Walking(file.stem), 1, 10.0)
        made[f"learning/{file.stem}.html"] = motion_page(done.motion(), 25.0)
    made["learning/curves.svg"] = _curves()
    return made


def _curves() -> str:
    """Mean reward of a step by seconds of processor time."""
    figure = Figure(figsize=(6.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.set_prop_cycle(color=CURVES)
    for file in sorted(FOLDER.glob("*.json")):
        curve = json.loads(file.read_text(encoding="utf-8"))
        axes.plot(curve["seconds"], curve["rewards"], label=file.stem.replace("_", " "))
    axes.set(xlabel="processor time [s]", ylabel="mean reward of an action")
    axes.legend(frameon=False)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
