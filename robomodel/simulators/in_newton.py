"""Newton: URDF, MJCF and USD as its ModelBuilder reads them, and what SolverMuJoCo makes of it.

With ``use_mujoco_cpu`` that solver holds a model of MuJoCo's, whose numbers are in double
precision: they show what has been read, without the rounding of a GPU's.
"""

from __future__ import annotations

from robomodel.simulators.in_mujoco import MujocoModel
from robomodel.simulators.loaded import Source

PRECISION = 1e-5  # of single precision, in which the builder's model holds all numbers


def load(source: Source) -> MujocoModel:
    """The robot of a URDF, MJCF or USD file, in SolverMuJoCo on the CPU."""
    import newton
    import warp

    warp.config.quiet = True
    builder = newton.ModelBuilder(gravity=source.gravity)
    if source.format == "urdf":
        builder.add_urdf(source.path, floating=source.floating)
    elif source.format == "mjcf":
        builder.add_mjcf(source.path)
    else:
        builder.add_usd(source.path)
    model = builder.finalize(device="cpu")
    solver = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True)
    theirs = solver.mj_model
    names = {each.replace("/", "_"): each.rsplit("/", 1)[-1] for each in model.joint_label}
    loaded = MujocoModel(theirs, names)
    loaded.version = newton.__version__
    loaded.precision = PRECISION
    return loaded
