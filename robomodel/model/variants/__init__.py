"""Models of the same robot: in other axes, with other inertial parameters or coordinates."""
