"""States as Pinocchio, MuJoCo and Drake order and write them."""
