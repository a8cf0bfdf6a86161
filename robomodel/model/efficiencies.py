"""Efficiencies of gears by actuator: the file's numbers, and models with other ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from robomodel.description import Description, PolynomialCoupling
from robomodel.description.transmissions import loss_fault
from robomodel.errors import DescriptionError
from robomodel.model.actuators import Actuator
from robomodel.scalars import Scalar, held, is_number, is_zero, select

if TYPE_CHECKING:
    from robomodel.model.model import Model

EFFICIENCIES = ("efficiency", "backdrive")


def with_gears(model: Model, values: Mapping[tuple[str, str], Scalar]) -> Model:
    """The model with other efficiencies, by the actuator's name and the kind.

    Numbers out of range raise DescriptionError; traced ones become not-a-number.
    """
    found: dict[str, tuple[float, float]] = {}
    for each in model.actuators:
        forward, back = (values.get((each.name, x), getattr(each, x)) for x in EFFICIENCIES)
        if {(each.name, x) for x in EFFICIENCIES}.isdisjoint(values):
            continue
        if is_number(forward) and is_number(back):
            if fault := loss_fault(forward, back):
                raise DescriptionError(f"gear of '{each.name}': {fault}")
        else:
            within: Scalar = select(1.0 - forward, math.nan, select(1.0 - back, math.nan, 0.0))
            within = select(-forward, within, math.nan)
            forward, back = forward + within, back + within
        found[each.name] = held(forward), held(back)
    return with_efficiencies(model, found)


def with_efficiencies(model: Model, found: Mapping[str, tuple[float, float]]) -> Model:
    """The model whose gears of these actuators have efficiencies forward and back.

    They stand at the coupling of the actuator's rotor, or at its reduction; ValueError where there
    is neither.
    """
    description, turned = model.description, set[str]()
    for actuator in model.actuators:
        if actuator.name in found:
            description, turns = _written(model, description, actuator, found[actuator.name])
            turned |= {actuator.name} if turns else set()
    actuators = tuple(
        replace(
            each, efficiency=found[each.name][0], backdrive=found[each.name][1],
            turns_rotor=each.name in turned,
        )
        if each.name in found else each
        for each in model.actuators
    )  # fmt: skip
    return replace(model, description=description, actuators=actuators)


def can_lose(model: Model, actuator: Actuator) -> bool:
    """True if the file has a gear of this actuator that could lose power."""
    try:
        with_efficiencies(model, {actuator.name: (1.0, 1.0)})
    except ValueError:
        return False
    return True


def _written(
    model: Model, description: Description, actuator: Actuator, efficiencies: tuple[float, float]
) -> tuple[Description, bool]:
    """The description with an actuator's efficiencies; True if they are its rotor's coupling's."""
    forward, back = efficiencies
    ties = [each for each in model.couplings if each.kind != "mimic"]
    for n, (element, tie) in enumerate(zip(description.couplings, ties, strict=True)):
        if isinstance(element, PolynomialCoupling) or len(actuator.rows) != 1:
            continue
        turned = {name for name, ratio in tie.terms if not is_zero(ratio)}
        body = model.joint_names.index(actuator.joint)
        if actuator.joint in turned and body not in model.parents:
            new = replace(element, efficiency=forward, backdrive=back)
            couplings = (*description.couplings[:n], new, *description.couplings[n + 1 :])
            return replace(description, couplings=couplings), True
    if not any(end.name == actuator.name for each in description.transmissions
               for end in each.actuators):  # fmt: skip
        raise ValueError(
            f"losses: the file has no gear of '{actuator.name}' that could lose power, neither a "
            "coupling of its rotor nor a reduction of its own"
        )
    transmissions = tuple(
        replace(each, actuators=tuple(
            replace(end, efficiency=forward, backdrive=back) if end.name == actuator.name else end
            for end in each.actuators
        ))
        for each in description.transmissions
    )  # fmt: skip
    return replace(description, transmissions=transmissions), False
