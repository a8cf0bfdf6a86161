"""The catalogue of checks: for each id of a finding its meaning and remedy, in a sentence each.

Messages of findings have the numbers; the page docs/checks.md has a section for each id, which
begins with these sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.reports.document import Severity


@dataclass(frozen=True, slots=True)
class Check:
    """A check by the id of its findings: what is wrong (``meaning``), and what to do (``remedy``).

    ``severity`` is the gravest that its findings have.
    """

    id: str
    severity: Severity
    meaning: str
    remedy: str

    @property
    def page(self) -> str:
        """The section of the documentation."""
        return f"checks.md#{self.id}"


_CHECKS = (
    # ---- files
    Check(
        "load", "error",
        "The file cannot be read, or describes no mechanism that can move.",
        "Mend what the message names; until then nothing else of the file is checked.",
    ),
    Check(
        "file", "warning",
        "The file says something that is ignored, contradicts itself, or is read otherwise than "
        "it seems.",
        "Write what is meant in words of the format, or remove what has no effect.",
    ),
    Check(
        "difference", "warning",
        "A number differs from the one in the reference file.",
        "Check which of the two is right.",
    ),
    # ---- loops
    Check(
        "redundancy", "warning",
        "A loop moves only because its dimensions are exact: conditions repeat each other.",
        "Give a loop only the conditions that its joints need, as point instead of weld.",
    ),
    Check(
        "cluster-size", "warning",
        "A coupling or loop ties mechanisms together that would be separate without it.",
        "Remove the coupling that repeats others, or split it.",
    ),
    Check(
        "start", "warning",
        "The loops are slightly open where the file puts the joints.",
        "Write anchors and origins with all digits, or mend the anchor that is off.",
    ),
    Check(
        "closing", "warning",
        "A loop cannot be closed within the limits of its joints.",
        "Mend lengths or anchors, or the limits.",
    ),
    Check(
        "open-loop", "warning",
        "An end of a loop is elsewhere than in the reference, so that the loop is open.",
        "Move the anchor to where the pin is.",
    ),
    Check(
        "branches", "note",
        "The loops can be put together in several ways at the same positions of the motors. It is "
        "said whether the robot gets to the others, or where its joints are in one of them.",
        "Nothing to do; configurations stay on the branch of the file.",
    ),
    Check(
        "singularity", "warning",
        "The mechanism passes a dead point or change point within its limits: there a motor "
        "holds nothing, or the linkage can fold over.",
        "Narrow the limits, unless the robot as built passes there.",
    ),
    Check(
        "coordinates", "warning",
        "The joints chosen as independent hardly move where others move far.",
        "Mark other joints as independent; the message names them.",
    ),
    Check(
        "limits", "warning",
        "Limits of joints that move together cannot be reached, or contradict each other.",
        "Write the limits that the linkage allows.",
    ),
    # ---- inertias
    Check(
        "triangle", "warning",
        "No body has these moments of inertia: one is larger than the sum of the other two.",
        "Export the inertia again, about the centre of mass and in the link's axes.",
    ),
    Check(
        "inertia-size", "warning",
        "The inertia belongs to a much larger or much smaller body than this link.",
        "Check units (kg m²) and whether the exporter wrote a placeholder.",
    ),
    Check(
        "point-mass", "note",
        "A link that turns has a mass but no moments of inertia.",
        "Write its moments of inertia, unless they do not matter.",
    ),
    Check(
        "centre-of-mass", "warning",
        "The centre of mass lies far outside the link.",
        "Check its units (m) and the frame in which it is written.",
    ),
    Check(
        "inertia-shape", "warning",
        "The inertia does not fit the link's shapes as those of the other links fit theirs.",
        "Export the inertia again from the solid, with its material.",
    ),
    Check(
        "asymmetry", "warning",
        "A number differs from that of the link's mirror image or copy.",
        "Write the same on both sides, unless the robot is built so.",
    ),
    Check(
        "unit", "warning",
        "A number is in another unit: grams, millimetres, g mm², …",
        "Write it in SI units.",
    ),
    Check(
        "composite", "warning",
        "The inertia is about another point than the centre of mass.",
        "Write it about the centre of mass.",
    ),
    Check(
        "override", "warning",
        "The mass was changed without its inertia, or the inertia without its mass.",
        "Scale both; an inertia grows with its mass.",
    ),
    Check(
        "mirrored", "warning",
        "Signs are not those of the mirror image: numbers of one side were copied to the other.",
        "Turn the signs that the mirror plane turns.",
    ),
    Check(
        "axes", "warning",
        "The principal moments of inertia are right, but about other axes.",
        "Write the inertia in the link's axes.",
    ),
    Check(
        "axis", "warning",
        "A joint's axis points elsewhere than that of its counterpart.",
        "Write the axis of the counterpart, mirrored or turned as the limb is.",
    ),
    Check(
        "anchor", "warning",
        "A joint or loop sits elsewhere than its counterpart on the other side.",
        "Move it to the mirrored place.",
    ),
    # ---- motors
    Check(
        "ratio", "warning",
        "A gear's ratio, or its sign, does not fit the joint, its transmission or its counterpart.",
        "Write how far the rotor turns for one turn of the joint.",
    ),
    Check(
        "rotor-missing", "warning",
        "A joint has no rotor, and its counterpart has one.",
        "Give both sides a rotor.",
    ),
    Check(
        "rotor-mass", "warning",
        "The rotor is as heavy as the link that carries it.",
        "Give the rotor the mass of the spinning part alone.",
    ),
    Check(
        "rotor-inertia", "warning",
        "The rotor's inertia is no rotor's, or makes the joint far too heavy or light.",
        "Write the inertia at the rotor's own shaft, in kg m².",
    ),
    Check(
        "rotor-twice", "warning",
        "The motor's inertia counts twice.",
        "Keep either the rotor or the armature.",
    ),
    Check(
        "armature", "warning",
        "The armature is out of proportion to what the joint carries, or to its counterpart's.",
        "Write the rotor's inertia times the square of the ratio.",
    ),
    Check(
        "self-locking", "warning",
        "A drive locks itself: no load on the limb moves its motor.",
        "Nothing if it is meant; a leg that lands needs a spring behind such a drive.",
    ),
    Check(
        "mesh-jam", "warning",
        "A drive stops at once when its motor brakes: its gear wedges.",
        "Give the rotor more inertia or the gear less friction, or take it as it is.",
    ),
    # ---- units
    Check(
        "millimetres", "warning",
        "Lengths are in millimetres.",
        "Divide them by 1000.",
    ),
    Check(
        "grams", "warning",
        "Masses are in grams.",
        "Divide them by 1000.",
    ),
    Check(
        "degrees", "warning",
        "Angles are in degrees where the format has radians.",
        "Multiply them by π/180.",
    ),
    # ---- for other programs
    Check(
        "mesh-missing", "warning",
        "A mesh file is not there, without which most simulators refuse the robot.",
        "Put the file there, or mend its path.",
    ),
    Check(
        "zero-limit", "warning",
        "A limit of velocity or effort is zero, as exporters of CAD programs write it.",
        "Write the limits that the joint has, or leave them out.",
    ),
    Check(
        "gain", "warning",
        "A servo's gain is too large for the file's time step: the joint explodes.",
        "Lower the gain or the step, or give the joint its motor's armature.",
    ),
    Check(
        "collision", "warning",
        "A link has no collision shape, or one at another place, where its counterpart has.",
        "Give both links their shapes.",
    ),
)  # fmt: skip

CATALOGUE = {check.id: check for check in _CHECKS}
"""All checks of ``validate`` by their ids."""
