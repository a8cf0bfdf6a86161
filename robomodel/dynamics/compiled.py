"""Kernels: an algorithm traced on one robot and compiled for this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from robomodel.dynamics.algorithms import Method, Task, traced_algorithm
from robomodel.dynamics.kinematics.frames import FrameLike, Reference, frame_keys
from robomodel.dynamics.table import Name
from robomodel.errors import as_names
from robomodel.kernels.function import Kernel
from robomodel.kernels.precision import Dtype
from robomodel.model.model import Model


def kernel(model: Model, task: Task, dtype: Dtype = "float64") -> Kernel:
    """The kernel of a task, compiled once a model."""
    return traced_algorithm(model, task).kernel(dtype)


def as_task(
    model: Model,
    algorithm: Name,
    *,
    frame: FrameLike | None = None,
    frames: FrameLike | Sequence[FrameLike] = (),
    f_ext: str | Iterable[str] = (),
    method: Method = "cluster",
    known: str | Iterable[str] = (),
    passive: bool = False,
    reference: Reference = "local",
) -> Task:
    """The task that :func:`robomodel.compile` makes a kernel of, by the same options."""
    keys = frame_keys(frames if frame is None else frame)
    links, known = as_names(f_ext, "f_ext"), as_names(known, "known")
    task = Task(algorithm, keys, links, method, known, passive=passive, reference=reference)
    if task.known:
        from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

        task = replace(task, known=prescribed(model, task.known))
    return task
