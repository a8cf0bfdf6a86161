"""Robots for the validation, and what a report finds."""

from __future__ import annotations

from texts import four_bar, joint, link

from robomodel.reports.document import Finding
from robomodel.reports.validation.study import Report


def kinds(report: Report) -> list[tuple[str, str, str]]:
    return sorted((each.severity, each.check, each.source.element) for each in report.findings)


def gravest(report: Report) -> list[tuple[str, str, str]]:
    return [each for each in kinds(report) if each[0] != "note"]


def only(report: Report, check: str) -> Finding:
    (finding,) = [each for each in report.findings if each.check == check]
    return finding


def rocker_driven(limits: str = "") -> str:
    """The four-bar of ``texts`` with its rocker as independent joint."""
    text = four_bar(marks=(False, False, True))
    if limits:
        text = text.replace(
            '<joint name="j_rocker" type="continuous"', '<joint name="j_rocker" type="revolute"'
        ).replace('<origin xyz="1.1 0 0" rpy="0 0 0"/>', f'<origin xyz="1.1 0 0"/>{limits}')
    return text


ROTOR = (
    '<inertial><mass value="{mass}"/><inertia ixx="{t}" iyy="{t}" izz="{axial}" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)

DOG = "".join(
    link(f"{leg}_hip", ROTOR.format(mass=0.7, t=1e-3, axial=6e-4))
    + joint(f"{leg}_hip_joint", "trunk", f"{leg}_hip", f"{x} {y} 0", axis="1 0 0")
    + link(f"{leg}_thigh", ROTOR.format(mass=1.0, t=5e-3, axial=1e-3).replace(
        "<inertial>", '<inertial><origin xyz="0 0 -0.03"/>'))
    + joint(f"{leg}_thigh_joint", f"{leg}_hip", f"{leg}_thigh", "0 0.08 0", axis="0 1 0")
    + link(f"{leg}_calf", ROTOR.format(mass=0.2, t=3e-3, axial=5e-5).replace(
        "<inertial>", '<inertial><origin xyz="0 0 -0.1"/>'))
    + joint(f"{leg}_calf_joint", f"{leg}_thigh", f"{leg}_calf", "0 0 -0.2", axis="0 1 0")
    for leg, x, y in (("FR", 0.18, -0.05), ("FL", 0.18, 0.05), ("RR", -0.18, -0.05),
                      ("RL", -0.18, 0.05))
) + link("trunk", ROTOR.format(mass=4.7, t=0.04, axial=0.06)) + (
    '<joint name="free" type="floating"><parent link="base"/><child link="trunk"/></joint>'
)  # fmt: skip
