"""The report on actuators behind gears and linkages."""
