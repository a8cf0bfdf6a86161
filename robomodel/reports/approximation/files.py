"""Armature written into files of others: MJCF's attribute, and Drake's tags in URDF.

Text in, text out: only what is said of armature changes; all else stays to the last blank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from robomodel.model import Model
from robomodel.parsers.markup import Markup, Tag
from robomodel.parsers.text import number
from robomodel.reports.validation.context import CheckContext

DRAKE = "http://drake.mit.edu"
_SIMPLE = "transmission_interface/SimpleTransmission"
_AGREES = 1e-9  # relative: an armature that is that of one rotor through one gear


@dataclass(frozen=True, slots=True)
class Motor:
    """A rotor's inertia about its axis, and how far it turns for its joint."""

    inertia: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Annotated:
    """A file's new text, the joints that it has, and those that it lacks."""

    text: str
    written: tuple[str, ...]
    missing: tuple[str, ...]


def annotate_mjcf(text: str, file: str, armature: Mapping[str, float]) -> Annotated:
    """An MJCF file with ``armature=`` on its joints of these names."""
    markup = Markup(text, file, "mujoco")
    written = []
    for tag in markup.root.walk():
        name = tag.attributes.get("name", "")
        if tag.name == "joint" and name in armature and _in_a_body(tag):
            markup.set(tag, "armature", number(armature[name]))
            written.append(name)
    return _annotated(markup, written, armature)


def _in_a_body(tag: Tag) -> bool:
    """Joints of defaults, equalities and sensors are references or templates."""
    return tag.parent is not None and tag.parent.name in ("body", "frame", "replicate")


def annotate_drake(text: str, file: str, motors: Mapping[str, Motor]) -> Annotated:
    """A URDF file with Drake's rotor_inertia and gear_ratio in the actuators of these joints.

    Joints without a simple transmission get one.
    """
    markup = Markup(text, file, "robot")
    root = markup.root
    joints = {joint.attributes.get("name") for joint in root.all("joint")}
    taken = {each.attributes.get("name") for each in root.all("transmission")}
    written = [joint for joint in motors if joint in joints]
    if written and "xmlns:drake" not in root.attributes:
        markup.set(root, "xmlns:drake", DRAKE)
    for joint in written:
        motor = motors[joint]
        words = {"rotor_inertia": number(motor.inertia), "gear_ratio": number(abs(motor.ratio))}
        actuator = _actuator(root, joint)
        if actuator is None:
            markup.append(root, _transmission(joint, words, taken))
            continue
        missing = []
        for tag, value in words.items():
            tags = actuator.all(f"drake:{tag}")
            if tags:
                markup.set(tags[0], "value", value)
            else:
                missing.append(f'<drake:{tag} value="{value}"/>')
        if missing:
            markup.append(actuator, *missing)
    return _annotated(markup, written, motors)


def _actuator(root: Tag, joint: str) -> Tag | None:
    """The actuator of the joint's simple transmission, if there is one."""
    for transmission in root.all("transmission"):
        ends, actuators = transmission.all("joint"), transmission.all("actuator")
        kinds = [each.text for each in transmission.all("type")]
        kind = (kinds[0] if kinds else transmission.attributes.get("type", _SIMPLE)).strip()
        simple = kind.endswith("SimpleTransmission") and len(actuators) == 1
        if simple and [end.attributes.get("name") for end in ends] == [joint]:
            return actuators[0]
    return None


def _transmission(joint: str, words: Mapping[str, str], taken: set[str | None]) -> str:
    """A simple transmission that a joint is given."""
    name = f"{joint}_transmission"
    while name in taken:
        name += "_"
    taken.add(name)
    parts = "".join(f'\n    <drake:{tag} value="{value}"/>' for tag, value in words.items())
    return (
        f"<transmission name={quoteattr(name)}>\n"
        f"  <type>{_SIMPLE}</type>\n"
        f"  <joint name={quoteattr(joint)}>\n"
        "    <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>\n"
        "  </joint>\n"
        f"  <actuator name={quoteattr(f'{joint}_actuator')}>{parts}\n"
        "  </actuator>\n"
        "</transmission>"
    )


def motors(model: Model, armature: Mapping[str, float]) -> dict[str, Motor]:
    """The rotor and gear that make these armatures; one of ratio 1 where there is no such one."""
    of_joint: dict[str, list[Motor]] = {}
    for rotor in CheckContext(model).rotors:
        for joint, ratio in rotor.ratios.items():
            of_joint.setdefault(joint, []).append(Motor(rotor.inertia, ratio))
    result = {}
    for joint, value in armature.items():
        rotors = of_joint.get(joint, [])
        geared = len(rotors) == 1 and math.isclose(
            rotors[0].ratio ** 2 * rotors[0].inertia, value, rel_tol=_AGREES
        )
        result[joint] = rotors[0] if geared else Motor(value, 1.0)
    return result


def _annotated(markup: Markup, written: list[str], names: Mapping[str, object]) -> Annotated:
    missing = tuple(name for name in names if name not in written)
    return Annotated(markup.text(), tuple(written), missing)
