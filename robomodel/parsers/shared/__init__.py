"""Elements that URDF and SDF share: those of Drake, of ros_control, and of this package."""
