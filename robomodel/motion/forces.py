"""What acts in a motion besides tau, and which of it needs impulses: springs, friction, stops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robomodel.errors import UnknownNameError, as_names, did_you_mean
from robomodel.model.model import Model


@dataclass(frozen=True)
class Acting:
    """What acts in a step besides tau: springs and dampers, dry friction, stops of some joints."""

    passive: bool = True
    friction: bool = True
    stops: frozenset[str] = frozenset()

    def rubbing(self, model: Model) -> list[float]:
        """The friction of each coordinate that has some, in the order of the rows."""
        if not self.friction:
            return []
        found = [j.friction for j in model.joints for _ in range(j.nv) if j.friction]
        return found + [spring.friction for spring in model.springs if spring.friction]

    def bounds(self, model: Model) -> list[tuple[int, float, float]]:
        """The limits that stop joints: which of the stopped joints, the side, the bound."""
        return [
            (n, side, bound)
            for n, body in enumerate(self.stopped(model))
            for side, bound in ((1.0, model.joints[body].lower), (-1.0, model.joints[body].upper))
            if math.isfinite(bound)
        ]

    def stopped(self, model: Model) -> list[int]:
        """The bodies whose joints have position limits that stop them."""
        return [
            body
            for body, joint in enumerate(model.joints)
            if joint.name in self.stops
            and joint.nv == 1
            and joint.type != "continuous"
            and (math.isfinite(joint.lower) or math.isfinite(joint.upper))
        ]


def named(model: Model, wanted: bool | Iterable[str]) -> frozenset[str]:
    """Names of joints: all of them, none, or those given; UnknownNameError for unknown ones."""
    known = [joint.name for joint in model.joints]
    if isinstance(wanted, bool):
        return frozenset(known if wanted else ())
    names = set(as_names(wanted, "a joint"))
    for name in sorted(names - set(known)):
        raise UnknownNameError(f"no joint '{name}' in '{model.name}'{did_you_mean(name, known)}")
    return frozenset(names)


def method_of(
    model: Model, acting: Acting, ground: object, contacts: object, collisions: object,
    wanted: str | None, methods: Sequence[str],
) -> str | None:  # fmt: skip
    """The method that is wanted; "time_stepping" where something needs impulses.

    ValueError where that is not what is wanted, and for methods that are not known.
    """
    if wanted not in (None, *methods):
        known = ", ".join(f"'{name}'" for name in methods)
        raise ValueError(f"method '{wanted}' is not known; known are {known}")
    rubbing = [each.name for each in model.joints if each.friction]
    rubbing += [each.name for each in model.springs if each.friction]
    first = f"the dry friction of '{next(iter(rubbing), '')}' (which friction=False leaves out)"
    reasons = {
        "a ground": ground is not None,
        "contacts": contacts is not None or collisions is not False,
        "joint stops": bool(acting.stops),
        first: acting.friction and bool(rubbing),
    }
    why = next((what for what, there in reasons.items() if there), None)
    if why is not None and wanted not in (None, "time_stepping"):
        raise ValueError(f"{why} needs method='time_stepping', not '{wanted}'")
    return wanted if why is None else "time_stepping"
