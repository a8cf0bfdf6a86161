"""Programs as PTX, the assembly of NVIDIA's graphics cards."""
