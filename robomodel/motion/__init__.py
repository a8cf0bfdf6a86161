"""Motion over time: simulation, rollouts, contact with the ground and between links."""
