"""Small robot texts for tests: pieces of URDF+ and a planar four-bar made of them."""

from __future__ import annotations

import math

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


TRUNNION, EYE, KNEE, LEAD = (0.1, 0.07), (0.42, 0.06), (0.4, 0.0), 0.005


def screw_leg(drive: str, upper: float, leading: str = "", *, size: float = 1.0) -> str:
    """A knee with a screw between thigh (the base) and shank; ``leading``: the independent joint.

    A motor of 2.5 N m and 400 rad/s turns it: a rotor of 3e-5 kg m² of the slide (``rotor``), of a
    transmission, or a nut; or the slide has the force, speed and armature of these (``slide``).
    ``size``: times all lengths, the screw's lead among them.
    """
    (foot, knee, eye), lead = ([[size * x for x in each] for each in (TRUNNION, KNEE, EYE)],
                               size * LEAD)  # fmt: skip
    ratio, motor = math.tau / lead, '<motor effort="2.5" velocity="400"/>'
    way = eye[0] - foot[0], eye[1] - foot[1]
    x, y = (each / math.hypot(*way) for each in way)
    turns, inertia = f'ratio="{ratio!r}"', 'inertia="3e-5"'
    more = {
        "rotor": f"<rotor {inertia} {turns}/>{motor}",
        "slide": f'<armature value="{3e-5 * ratio**2!r}"/>'
        f'<motor effort="{2.5 * ratio!r}" velocity="{400.0 / ratio!r}"/>',
    }
    beside = {
        "nut": link("nut", '<inertial><mass value="1e-6"/><inertia ixx="3e-5" iyy="3e-5" izz="3e-5"'
                    ' ixy="0" ixz="0" iyz="0"/></inertial>')
        + joint("nut", "carrier", "nut", axis=f"{x!r} {y!r} 0", more=motor,
                mark=leading == "nut" or None)
        + coupling("thread", {"nut": 1.0, "stroke": -ratio}),
        "transmission": '<transmission name="t"><joint name="stroke"/><actuator name="motor">'
        f"<rotor {inertia} {turns}/>{motor}</actuator></transmission>",
    }  # fmt: skip
    return robot(
        link("shank"), link("carrier"), link("screw"),
        joint("knee", "base", "shank", f"{knee[0]!r} {knee[1]!r} 0", kind="revolute",
              more=f'<limit lower="-0.1" upper="{upper}"/>', mark=leading == "knee" or None),
        joint("trunnion", "base", "carrier", f"{foot[0]!r} {foot[1]!r} 0"),
        joint("stroke", "carrier", "screw", f"{way[0]!r} {way[1]!r} 0", kind="prismatic",
              axis=f"{x!r} {y!r} 0", more=more.get(drive, ""),
              mark=leading == "stroke" or None),
        loop("eye", "revolute", "screw", "shank", "0 0 0",
             f"{eye[0] - knee[0]!r} {eye[1] - knee[1]!r} 0"),
        beside.get(drive, ""),
    )  # fmt: skip


def fan(*more: str, mark: bool | None = None) -> str:
    """Three links side by side on the base, joints a, b and c."""
    names = ("a", "b", "c")
    return robot(
        *(link(f"link_{n}") for n in names),
        *(joint(n, "base", f"link_{n}", mark=mark) for n in names),
        *more,
    )


def wrist(kind: str, more: str = "") -> str:
    """Pitch and roll behind a differential, its motors geared down three times.

    ``kind`` and ``more`` are of the pitch.
    """
    return robot(
        *(link(name) for name in ("carrier", "hand", "a", "b")),
        joint("pitch", "base", "carrier", axis="0 1 0", kind=kind, more=more),
        joint("roll", "carrier", "hand", axis="1 0 0"),
        joint("left", "base", "a", axis="0 1 0"),
        joint("right", "base", "b", axis="0 1 0"),
        coupling("one", {"left": 1.0, "pitch": -3.0, "roll": -3.0}),
        coupling("other", {"right": 1.0, "pitch": -3.0, "roll": 3.0}),
    )
