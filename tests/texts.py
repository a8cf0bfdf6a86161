"""Small robot texts for tests: pieces of URDF+ and a planar four-bar made of them."""

from __future__ import annotations

INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 0"/><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.025" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name: str, inertial: str = INERTIAL) -> str:
    """A link, with mass unless told otherwise."""
    return f'<link name="{name}">{inertial}</link>\n'


def joint(
    name: str,
    parent: str,
    child: str,
    xyz: str = "0 0 0",
    *,
    kind: str = "continuous",
    axis: str = "0 0 1",
    rpy: str = "0 0 0",
    mark: bool | None = None,
    more: str = "",
) -> str:
    """A joint; ``mark``: its ``independent`` attribute."""
    if kind in ("revolute", "prismatic") and "<limit" not in more:
        more += "<limit/>"  # URDF demands it
    attribute = "" if mark is None else f' independent="{str(mark).lower()}"'
    return (
        f'<joint name="{name}" type="{kind}"{attribute}><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f"{more}</joint>\n"
    )


def loop(
    name: str,
    kind: str,
    predecessor: str,
    successor: str,
    at: str = "0 0 0",
    to: str = "0 0 0",
    more: str = '<axis xyz="0 0 1"/>',
    attributes: str = "",
) -> str:
    """A loop between points ``at`` and ``to`` of two links."""
    return (
        f'<loop name="{name}" type="{kind}" {attributes}>'
        f'<predecessor link="{predecessor}"><origin xyz="{at}"/></predecessor>'
        f'<successor link="{successor}"><origin xyz="{to}"/></successor>{more}</loop>\n'
    )


def coupling(name: str, terms: dict[str, float], offset: float = 0.0) -> str:
    """Σ ratio · q = offset."""
    joints = "".join(f'<joint name="{j}" ratio="{r}"/>' for j, r in terms.items())
    return f'<coupling name="{name}">{joints}<offset value="{offset}"/></coupling>\n'


def robot(*parts: str) -> str:
    """A robot with a massless base link."""
    return '<robot name="test">\n<link name="base"/>\n' + "".join(parts) + "</robot>\n"


CLOSING = loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0")


def four_bar(
    *more: str,
    marks: tuple[bool | None, bool | None, bool | None] = (None, None, None),
    closing: str = CLOSING,
) -> str:
    """A crank-rocker: ground 1.1, crank 0.5, coupler 1, rocker 0.7."""
    return robot(
        link("crank"),
        link("coupler"),
        link("rocker"),
        joint("j_crank", "base", "crank", mark=marks[0]),
        joint("j_coupler", "crank", "coupler", "0.5 0 0", mark=marks[1]),
        joint("j_rocker", "base", "rocker", "1.1 0 0", mark=marks[2]),
        closing,
        *more,
    )


def fan(*more: str, mark: bool | None = None) -> str:
    """Three links side by side on the base, joints a, b and c."""
    names = ("a", "b", "c")
    return robot(
        *(link(f"link_{n}") for n in names),
        *(joint(n, "base", f"link_{n}", mark=mark) for n in names),
        *more,
    )
