"""``--set``: a parameter of the robot's file, by its owner's name, as crank.ratio=12."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

from robomodel.cli.common import UserError, named_number
from robomodel.description import Description, Inertial, JointCoupling
from robomodel.errors import did_you_mean
from robomodel.identification.sensors import scaled_couplings
from robomodel.model import Model, build
from robomodel.reports.validation.context import CheckContext

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def with_settings(model: Model, assignments: Iterable[str]) -> Model:
    """The model with these ``OWNER.PARAMETER=NUMBER`` in the place of what its file has."""
    description = model.description
    form = "OWNER.PARAMETER=NUMBER"
    for name, value in dict(named_number("--set", text, form) for text in assignments).items():
        owner, _, parameter = name.rpartition(".")
        description = _set(model, description, owner, parameter, value)
    return model if description is model.description else build(description)


def _set(
    model: Model, description: Description, owner: str, parameter: str, value: float
) -> Description:
    """The description with one number of it changed."""
    what = f"--set {owner}.{parameter}"
    if owner == "gravity" and parameter in tuple("xyz"):
        x, y, z = (value if k == parameter else g for k, g in
                   zip("xyz", description.gravity or model.gravity, strict=True))  # fmt: skip
        return replace(description, gravity=(x, y, z))
    if parameter == "ratio" and owner in model.joint_names:
        return _with_ratio(model, description, owner, value)
    parameters = ["ratio"] if owner in model.joint_names else []
    for group in ("joints", "links", "loops", "couplings", "springs"):
        elements = getattr(description, group)
        for n, element in enumerate(elements):
            if element.name != owner:
                continue
            setters = dict(_numbers(element))
            parameters += setters
            if parameter in setters:
                changed = (*elements[:n], setters[parameter](value), *elements[n + 1 :])
                changes: dict[str, Any] = {group: changed}
                return replace(description, **changes)
    if parameters:
        hint = (
            did_you_mean(parameter, parameters)
            or f"; it has {', '.join(dict.fromkeys(parameters))}"
        )
        raise UserError(f"{what}: '{owner}' has no such parameter{hint}")
    owners = [each.name for group in ("joints", "links", "loops", "couplings", "springs")
              for each in getattr(description, group)]  # fmt: skip
    raise UserError(f"{what}: '{model.name}' has no '{owner}'{did_you_mean(owner, owners)}")


def _numbers(element: Any) -> Iterable[tuple[str, Callable[[float], Any]]]:
    """What of an element may be set, and what that makes of it; parts' numbers by their names."""
    if isinstance(element, JointCoupling):
        for n, (joint, _) in enumerate(element.terms):
            yield joint, partial(_with_term, element, n)
    if isinstance(element, Inertial):
        for n, name in enumerate(MOMENTS):
            yield name, partial(_with_item, element, "inertia", n)
    if hasattr(element, "origin"):
        for n, name in enumerate("xyz"):
            move = partial(_with_item, element.origin, "xyz", n)
            yield name, partial(_with_part, element, "origin", move)
    for field in fields(element):
        value = getattr(element, field.name)
        if is_dataclass(value) and field.name not in ("source", "origin"):
            for name, change in _numbers(value):
                yield name, partial(_with_part, element, field.name, change)
        elif (isinstance(value, float) or value is None) and "float" in str(field.type):
            yield field.name, partial(_with_part, element, field.name, float)


def _with_part(element: Any, name: str, change: Callable[[float], object], value: float) -> object:
    return replace(element, **{name: change(value)})


def _with_item(element: Any, name: str, place: int, value: float) -> object:
    values = getattr(element, name)
    return replace(element, **{name: (*values[:place], value, *values[place + 1 :])})


def _with_term(coupling: JointCoupling, place: int, value: float) -> JointCoupling:
    terms = coupling.terms
    term = (terms[place][0], value)
    return replace(coupling, terms=(*terms[:place], term, *terms[place + 1 :]))


def _with_ratio(model: Model, description: Description, joint: str, value: float) -> Description:
    """Its rotor turns so many times as far, whichever element of the file ties the two."""
    rotors = [each for each in CheckContext(model).rotors if joint in each.ratios]
    if len(rotors) == 1:
        rotor, factor = model.joints[rotors[0].body], value / rotors[0].ratios[joint]
        several = {each.name for each in description.couplings
                   if isinstance(each, JointCoupling) and len(each.terms) > 2}  # fmt: skip
        for each in model.couplings:
            tied = {rotor.name, joint} <= dict(each.terms).keys()
            if tied and each.name not in several and not each.coefficients:
                factors = {each.name: 1.0 / factor if rotor.independent else factor}
                return scaled_couplings(model, description, factors)
    count = f"{len(rotors) or 'no'} rotor{'s' if len(rotors) > 1 else ''}"
    raise UserError(f"--set {joint}.ratio: '{joint}' has {count}; name the coupling instead")
