"""What MuJoCo's actuators can do: limits of force, DC motors, and what ``<custom>`` adds to them.

Sources: MuJoCo's XML reference, ``actuator``, and its computation of actuator forces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from robomodel.description import Motor
from robomodel.errors import DescriptionError, Source
from robomodel.parsers.mjcf.elements import Section
from robomodel.parsers.mjcf.ties import Terms
from robomodel.parsers.schema import MOTOR
from robomodel.parsers.shared.motors import motor_fault

ACTUATOR_MOTOR, JOINT_MOTOR = "robomodel_actuator_motor:", "robomodel_motor:"
"""What ``<custom>`` texts begin with that say what the motor of an actuator or a joint can do."""

_INTEGRATES = ("mjDYN_INTEGRATOR", "mjDYN_PID", "mjDYN_MUSCLE", "mjDYN_USER")
_TENDON = 3  # mjtTrn


@dataclass
class Motors(Section):
    """The motors of a model's actuators and joints."""

    def noted(self, key: str, source: Source) -> Motor | None:
        """The motor that a ``<custom>`` text of this name says."""
        words = self.elements.compiled.custom.get(key, "").split()
        if not words:
            return None
        try:
            found = {name: float(x) for name, _, x in (word.partition("=") for word in words)}
        except ValueError:
            found = {"": math.nan}
        if not found.keys() <= MOTOR.names:
            raise DescriptionError(
                f"the text '{key}' in <custom> is no list of NAME=NUMBER with the names "
                f"{', '.join(sorted(MOTOR.names))}; correct it or take it out",
                source,
            )
        if fault := motor_fault(found):
            raise DescriptionError(fault, source)
        return Motor(**found, source=source)

    def of_actuator(
        self, number: int, name: str, terms: Terms | None, gear: float, source: Source
    ) -> Motor | None:
        """What an actuator can do before its gear; None where nothing says it, or none is known."""
        if not terms or not gear:
            return None
        noted = self.noted(ACTUATOR_MOTOR + name, source)
        motor = noted or replace(self._dc(number) or Motor(), source=source)
        effort = self._effort(number, source)
        if effort < math.inf:
            effort = min(effort, self._let_through(number, terms) / abs(gear))
        if effort < math.inf:
            motor = replace(motor, effort=min(effort, motor.effort))
        return motor if MOTOR.of(motor) else None

    def _effort(self, number: int, source: Source) -> float:
        """The largest force: of a limited force, or of a limited control with a plain gain."""
        import mujoco

        model = self.model
        most = math.inf
        if model.actuator_forcelimited[number]:
            most = self._largest(model.actuator_forcerange[number], 1.0, "force", source)
        plain = (
            model.actuator_gaintype[number] == mujoco.mjtGain.mjGAIN_FIXED
            and model.actuator_biastype[number] == mujoco.mjtBias.mjBIAS_NONE
        )
        if not plain:
            return most
        dynamics = mujoco.mjtDyn(model.actuator_dyntype[number]).name
        kind = "act" if dynamics in _INTEGRATES else "ctrl"
        if getattr(model, f"actuator_{kind}limited")[number]:
            gain = float(model.actuator_gainprm[number, 0])
            span = getattr(model, f"actuator_{kind}range")[number]
            most = min(most, self._largest(span, gain, "control", source))
        return most if most > 0.0 else math.inf

    def _largest(self, span: Any, gain: float, what: str, source: Source) -> float:
        low, high = (gain * float(x) for x in span)
        if abs(low + high) > 1e-9 * max(abs(low), abs(high)):
            self.elements.suspect(
                f"its range of {what} is not the same both ways; the larger end is its limit of "
                "effort in both",
                source,
                "uneven range",
            )
        return max(abs(low), abs(high))

    def _let_through(self, number: int, terms: Terms) -> float:
        """What a joint or tendon takes of its actuator, where that limits it."""
        if int(self.model.actuator_trntype[number]) == _TENDON:
            kind, row = "tendon", int(self.model.actuator_trnid[number, 0])
        else:
            kind, ((row, _),) = "jnt", terms
        if not self.elements.has(f"{kind}_actfrclimited", row):
            return math.inf
        return float(max(abs(getattr(self.model, f"{kind}_actfrcrange")[row])))

    def _dc(self, number: int) -> Motor | None:
        """A ``<dcmotor>``, of which only some releases know: its constants, and its voltage."""
        import mujoco

        model = self.model
        kind = getattr(mujoco.mjtGain, "mjGAIN_DCMOTOR", None)
        if kind is None or model.actuator_gaintype[number] != kind:
            return None
        resistance, constant = (float(x) for x in model.actuator_gainprm[number, :2])
        voltage = None
        if model.actuator_ctrllimited[number]:
            voltage = float(max(abs(model.actuator_ctrlrange[number])))
        return Motor(torque_constant=constant, resistance=resistance, voltage=voltage)
