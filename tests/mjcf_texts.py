"""Pieces of MJCF as text, and files of it."""

import mujoco

VERSION = tuple(int(part) for part in mujoco.__version__.split(".")[:2])

LINK = '<inertial pos="0.1 -0.2 0.3" mass="1.3" fullinertia="0.05 0.06 0.07 0.01 -0.008 0.004"/>'


def world(*bodies, rest="", before=""):
    return f'<mujoco model="test">{before}<worldbody>{"".join(bodies)}</worldbody>{rest}</mujoco>'


def body(name, *inside, at='pos="0.1 0.2 0.3" euler="20 -30 40"'):
    return f'<body name="{name}" {at}>{LINK}{"".join(inside)}</body>'


def joint(name, words=""):
    return f'<joint name="{name}" {words}/>'


def files(folder, **texts):
    """Write files, ``__`` in their names for a slash and a last ``_`` for a dot."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(folder / "main.xml")
