"""Elements that URDF and SDF have alike: those of Drake and ros_control, and of this package."""
