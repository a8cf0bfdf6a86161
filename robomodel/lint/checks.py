"""Ids of findings: those of ``validate``, and those of ``lint`` itself."""

from __future__ import annotations

from robomodel.reports.validation.catalogue import CATALOGUE, Check

_OWN = (
    Check(
        "internal", "error",
        "robomodel failed on this file; that is a fault of robomodel.",
        "Report it with the file.",
    ),
    Check(
        "not-checked", "note",
        "The file was not checked: a package or an argument that it needs is not there.",
        "Install the package, or give the argument in [tool.robomodel].",
    ),
    Check(
        "ignore", "warning",
        "A comment switches off a check that is not known, or that finds nothing there.",
        "Remove the comment, or write the id of the check.",
    ),
    Check(
        "rounded-angle", "note",
        "An angle is a rounded right angle, as 1.57, so that what it turns is askew.",
        "Write π/2 with all digits.",
    ),
    Check(
        "config-joints", "error",
        "A configuration's pattern matches no joint, or a joint twice, or a joint has none.",
        "Write the names that the robot's file has.",
    ),
    Check(
        "config-effort", "warning",
        "A configuration lets a joint give another force than the robot's file.",
        "Take the limit of the file, or mend the file.",
    ),
    Check(
        "config-velocity", "warning",
        "A configuration lets a joint turn faster, or not as fast, as the robot's file.",
        "Take the limit of the file, or mend the file.",
    ),
    Check(
        "config-armature", "warning",
        "A configuration's armature is not what the rotors of the robot's file make.",
        "Write the rotor's inertia times the square of its ratio.",
    ),
    Check(
        "config-gains", "warning",
        "Gains of a configuration are too high for the joint's inertia and the simulator's step.",
        "Lower gains or step, or give the joint the armature of its rotor.",
    ),
    Check(
        "config-pose", "warning",
        "A joint begins beyond its limits.",
        "Begin within them.",
    ),
    Check(
        "config-order", "warning",
        "A list of joints, or of indices between two orders, is not that of the robot's file.",
        "Write the names and the order of the file.",
    ),
    Check(
        "config-unread", "note",
        "Something in a configuration cannot be known without running it, and was not compared.",
        "Check it by hand, or write it as a number.",
    ),
)  # fmt: skip

CHECKS = {**CATALOGUE, **{check.id: check for check in _OWN}}
"""All checks by their ids."""
