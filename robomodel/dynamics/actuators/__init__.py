"""Motors behind gears and linkages: maps, limits, states from encoders."""
