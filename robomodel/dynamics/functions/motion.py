"""Forward and inverse dynamics, the mass matrix, bias and passive forces, armature, derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import baselines
from robomodel.dynamics.algorithm import (
    ForceOptions,
    Method,
    Options,
    PassiveOptions,
    WrenchOptions,
    algorithm,
    declare,
    documented,
    on_open_trees,
    robot_by_robot,
    run,
    run_one,
)
from robomodel.dynamics.lumped import reflected
from robomodel.dynamics.recursions.aba import aba as aba_recursion
from robomodel.dynamics.recursions.crba import crba as crba_recursion
from robomodel.dynamics.recursions.derivatives import aba_derivatives as aba_slopes
from robomodel.dynamics.recursions.derivatives import rnea_derivatives as rnea_slopes
from robomodel.dynamics.recursions.derivatives import rnea_hessian_product as hessian_product
from robomodel.dynamics.recursions.hybrid import freedoms, prescribed
from robomodel.dynamics.recursions.hybrid import hybrid as hybrid_recursion
from robomodel.dynamics.recursions.orthonormal import orthonormal_aba
from robomodel.dynamics.recursions.passive import (
    aba_derivatives_passive,
    aba_passive,
    hybrid_passive,
    less_passive,
    rnea_derivatives_passive,
)
from robomodel.dynamics.recursions.passive import passive_force as passive_recursion
from robomodel.dynamics.recursions.rnea import bias_force as bias_recursion
from robomodel.dynamics.recursions.rnea import rnea as rnea_recursion
from robomodel.errors import as_real
from robomodel.model.arguments import as_array, as_numbers, by_name, common_batch
from robomodel.model.configurations.states import check_finite
from robomodel.model.model import Model
from robomodel.model.parameters import as_values
from robomodel.scalars import stack, unstack

__all__ = [
    "Accelerations",
    "aba",
    "aba_derivatives",
    "accelerations",
    "armature",
    "bias_force",
    "correction_force",
    "crba",
    "hybrid",
    "passive_force",
    "rnea",
    "rnea_derivatives",
    "rnea_hessian_product",
]


@algorithm(
    rnea_recursion,
    tau=("nv",),
    passive=less_passive,
    methods={"projection": partial(baselines.rnea, "projection"), **on_open_trees(baselines.rnea)},
)
def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    method: Method = "cluster",
    **options: Unpack[ForceOptions],
) -> Array:
    """Inverse dynamics: the forces that produce the accelerations ``a``.

    C-RNEA (Chignoli et al., section V-A).

    Args:
        method: "cluster"; "projection", the same by Gᵀ on the spanning tree; "approximate", on an
            open tree with lumped rotors and armature; "tendons", on the open tree that
            :func:`approximate_tree` makes, with fitted links and inertia between joints;
            "unconstrained", on an open tree without rotors, couplers and other dependent bodies.
            Wrenches cannot act on bodies that an open tree leaves out.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.rnea(model, q, [1.0], [0.5]).round(3)
        array([0.455])
    """


@algorithm(
    aba_recursion,
    a=("nv",),
    passive=aba_passive,
    methods={
        "orthonormal": orthonormal_aba,
        "projection": baselines.projection_aba,
        "lagrange": baselines.lagrange_aba,
        **on_open_trees(baselines.aba),
    },
)
def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    method: Method = "cluster",
    **options: Unpack[ForceOptions],
) -> Array:
    """Forward dynamics: the accelerations under the forces ``tau``.

    States at which a loop is singular give not-a-number in their own rows only. C-ABA (Chignoli et
    al., section V-B).

    Args:
        method: As in :func:`rnea`; "lagrange": the same as "cluster" by multipliers of the loops
            and couplings on the spanning tree; "orthonormal": the same in orthonormal coordinates
            of each cluster, which loses fewer digits near the dead points of linkages.

    Returns:
        a: Accelerations (..., nv) of the independent coordinates.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> tau = rm.rnea(model, q, [1.0], [0.5])
        >>> rm.aba(model, q, [1.0], tau).round(9)
        array([0.5])
    """


@algorithm(crba_recursion, M=("nv", "nv"))
def crba(model: Model, q: ArrayLike, **options: Unpack[Options]) -> Array:
    """Joint-space inertia matrix M, with the reflected inertias of gears and loops.

    Returns:
        M: The matrix (..., nv, nv).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.crba(model, q).round(3)
        array([[0.91]])
    """


@algorithm(bias_recursion, tau=("nv",), passive=less_passive)
def bias_force(model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[ForceOptions]) -> Array:
    """The forces of zero acceleration: Coriolis, centrifugal, gravity, external forces.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> rm.bias_force(model, q, [1.0]).round(3)
        array([0.])
    """


@algorithm(passive_recursion, tau=("nv",))
def passive_force(model: Model, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]) -> Array:
    """Forces of the file's springs and damping on the independent velocities.

    Springs between links, at joints (dependent ones and rotors' included) and at the joints of
    loops, each with -stiffness · (x - reference) - damping · ẋ on its own coordinate x, brought to
    the independent ones by ∂ẋ/∂v. Dry friction is left out: at rest it is a constraint force.
    ``rnea``, ``aba``, ``bias_force``, ``hybrid`` and the derivatives count these forces among what
    acts on the robot with ``passive=True``: ``rnea(…, passive=True)`` = rnea - passive_force.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.passive_force(model, np.zeros(3), np.ones(3))
        array([0., 0., 0.])
    """


declare("correction_force", baselines.correction_force, correction=("nt",),
        passive=baselines.correction_passive, fixed=True)  # fmt: skip


@documented
def correction_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    tree: Model | None = None,
    **options: Unpack[PassiveOptions],
) -> Array:
    """The joint forces that the open tree lacks to accelerate as the robot does.

    With the accelerations a of the robot under tau, q̇ₜ = Gₜ v and tau = Gₜᵀ tauₜ, it is
    IDₜ(qₜ, Gₜ v, Gₜ a + gₜ) - tauₜ, of the inverse dynamics IDₜ of the tree. A simulator of the
    tree that adds it to tauₜ at each step follows the robot, without contact. This is exact in
    MuJoCo, too, where the tree has no inertia between joints of two branches. Where spins of rods
    are locked in the tree, tauₜ is the nearest to tau. MuJoCo holds followers softly: use a tree
    without them (``followers=False``).

    Args:
        tree: A tree of :func:`approximate_tree` with other options; default: with none.

    Returns:
        correction: Forces (..., n) on the joints of the tree, in the order of its v; with
            ``passive`` that tree's springs and damping act on it.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> rm.correction_force(model, np.zeros(3), np.ones(3), np.ones(3)).shape
        (3,)
    """
    given = by_name(options.get("parameters"), "parameters")
    if tree is None or not given:
        robot = model if tree is None else baselines.corrected(model, tree)
        return run_one(robot, "correction_force", {"q": q, "v": v, "tau": tau}, **options)

    def of_one(robot: Model, rows: Sequence[Array]) -> Array:
        at, passive = baselines.corrected(robot, tree), options.get("passive", False)
        numbers = dict(zip(("q", "v", "tau"), rows, strict=True))
        return run_one(at, "correction_force", numbers, "numpy", passive=passive)

    names, p = as_values(model, given)
    result: Array = robot_by_robot(model, names, p, (q, v, tau), [(tree.nv,)], of_one)
    return result


declare("armature", reflected, A=("nv", "nv"))


@documented
def armature(
    model: Model,
    q: ArrayLike | None = None,
    *,
    kind: Literal["diagonal", "dense"] = "diagonal",
    **options: Unpack[Options],
) -> Array:
    """Reflected inertia at the independent joints.

    What an open tree lacks of the robot's inertia: Gᵀ (H' + diag(armature)) G, with the armature
    that the file gives joints. H' is the inertia of a cluster's bodies relative to the body that
    carries them, minus that of the same bodies with the joints locked that the open tree locks: all
    but :func:`limb_joints`. A rotor geared by N adds N² times its inertia. The difference may be
    negative: a parallelogram's coupler does not rotate, but does when it is locked to a moving
    link. :func:`actuation` has reflected inertias of all that a joint moves, which are not
    negative.

    Args:
        q: One configuration, or a batch (..., nq); default :meth:`Model.neutral`. Gears and belts
            do not depend on it.
        kind: "diagonal" or "dense".

    Returns:
        inertia: The diagonal (..., nv), or with "dense" the matrix (..., nv, nv).

    Examples:
        >>> rm.armature(rm.robots.load("belt_leg"), np.zeros(3)).round(4)
        array([0.02  , 0.1041, 0.0243])
    """
    if kind not in ("diagonal", "dense"):
        raise ValueError(f"kind '{kind}' is not known; 'diagonal' and 'dense' are")
    given = options.get("parameters")
    at = q
    if at is None:
        at = model.neutral() if given is None else model.close(model.neutral(), parameters=given)
    dense = run_one(model, "armature", {"q": at}, **options)
    return np.diagonal(dense, axis1=-2, axis2=-1).copy() if kind == "diagonal" else dense


declare("hybrid", hybrid_recursion, passive=hybrid_passive, tau=("nv",), a=("nv",))


@documented
def hybrid(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: Mapping[str, ArrayLike] | None = None,
    a: Mapping[str, ArrayLike] | None = None,
    **options: Unpack[ForceOptions],
) -> tuple[Array, Array]:
    """Hybrid dynamics: all forces and accelerations, from some of each.

    Every set of freedoms with prescribed accelerations is an algorithm of its own, compiled at its
    first call; see :mod:`robomodel.dynamics.recursions.hybrid`.

    Args:
        tau: Independent joint → force (...), or (..., n) for a joint with n degrees of freedom, or
            one of its ``model.dof_names`` → force (...). With ``a`` it names each once; what is not
            named of a floating base is free: nothing pushes it there.
        a: The same of accelerations.

    Returns:
        tau: Forces (..., nv) on the independent coordinates.
        a: Accelerations (..., nv) of the independent coordinates.

    Raises:
        ValueError: A coordinate is named twice or not at all, a name is not known, or arrays do not
            fit.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> tau, a = rm.hybrid(model, q, [1.0], a={"joint1": 0.5})
        >>> tau.round(3), a
        (array([0.455]), array([0.5]))
    """
    forces, accelerations = by_name(tau, "tau"), by_name(a, "a")
    known = prescribed(model, accelerations)
    places = freedoms(model)
    prescribed(model, forces)  # a ValueError with a hint for names that are not known
    columns: dict[int, Array] = {}
    for name, value in (*forces.items(), *accelerations.items()):
        dofs = places[name]
        numbers = as_numbers(value, f"'{name}'")
        if len(dofs) == 1:
            numbers = numbers[..., None]
        if numbers.shape[-1:] != (len(dofs),):
            raise ValueError(f"'{name}' needs {len(dofs)} numbers on its last axis, got shape "
                             f"{numbers.shape}")  # fmt: skip
        for n, dof in enumerate(dofs):
            if dof in columns:
                raise ValueError(
                    f"'{model.dof_names[dof]}' is given twice; give its force or its acceleration"
                )
            columns[dof] = numbers[..., n]
    for dof in places.get(model.floating_base or "", ()):
        columns.setdefault(dof, np.zeros(()))
    missing = [name for i, name in enumerate(model.dof_names) if i not in columns]
    if missing:
        raise ValueError(
            f"neither force nor acceleration of '{missing[0]}' is given"
            + (f" (nor of {len(missing) - 1} others)" if missing[1:] else "")
        )
    try:
        batch = np.broadcast_shapes(*(x.shape for x in columns.values()))
    except ValueError:
        shapes = ", ".join(f"{model.dof_names[i]} {x.shape}" for i, x in columns.items())
        raise ValueError(f"batch axes do not broadcast: {shapes}") from None
    given = np.stack([np.broadcast_to(columns[i], batch) for i in range(model.nv)], axis=-1)
    arguments = {"q": q, "v": v, "given": given}
    torque, acceleration = run(model, "hybrid", arguments, known=known, **options)
    return torque, acceleration


@algorithm(
    rnea_slopes,
    dtau_dq=("nv", "nv"),
    dtau_dv=("nv", "nv"),
    M=("nv", "nv"),
    passive=rnea_derivatives_passive,
    by_trace=True,
)
def rnea_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[ForceOptions]
) -> tuple[Array, Array, Array]:
    """Derivatives of inverse dynamics by positions, velocities and accelerations.

    Positions vary in the tangent space: column j is the change along ``integrate(q, ε e_j)``, with
    loops closed. Wrenches stay as they are in their links' axes.

    Returns:
        dq: ∂tau/∂q (..., nv, nv).
        dv: ∂tau/∂v (..., nv, nv).
        M: ∂tau/∂a (..., nv, nv), the mass matrix.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> dq, dv, M = rm.rnea_derivatives(model, q, [1.0], [0.5])
        >>> bool(np.allclose(M, rm.crba(model, q)))
        True
    """


@algorithm(
    aba_slopes,
    da_dq=("nv", "nv"),
    da_dv=("nv", "nv"),
    Minv=("nv", "nv"),
    passive=aba_derivatives_passive,
    by_trace=True,
)
def aba_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, **options: Unpack[ForceOptions]
) -> tuple[Array, Array, Array]:
    """Derivatives of forward dynamics by positions, velocities and forces.

    q varies as in :func:`rnea_derivatives`. Carpentier and Mansard, RSS 2018: ∂FD = -M⁻¹ ∂ID.

    Returns:
        dq: ∂a/∂q (..., nv, nv).
        dv: ∂a/∂v (..., nv, nv).
        inverse: M⁻¹ (..., nv, nv), which is also ∂a/∂tau.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> dq, dv, inverse = rm.aba_derivatives(model, q, [1.0], [0.2])
        >>> bool(np.allclose(inverse, rm.mass_inverse(model, q)))
        True
    """


@algorithm(
    hessian_product,
    dqdq=("nv", "nv"),
    dvdv=("nv", "nv"),
    dqdv=("nv", "nv"),
    dadq=("nv", "nv"),
    by_trace=True,
)
def rnea_hessian_product(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    **options: Unpack[WrenchOptions],
) -> tuple[Array, Array, Array, Array]:
    """Second derivatives of φ = w · rnea(q, v, a), as solvers with exact Hessians need them.

    φ is linear in a, and ∂²φ/∂a∂v is zero. By q they are those of φ at ``integrate(q, δ)`` by δ,
    with loops closed; wrenches stay as they are in their links' axes.

    Args:
        w: Multipliers (..., nv), or a row of the identity for the second derivatives of one force.

    Returns:
        qq: ∂²φ/∂q∂q (..., nv, nv), the first-named along the rows.
        vv: ∂²φ/∂v∂v (..., nv, nv).
        qv: ∂²φ/∂q∂v (..., nv, nv).
        aq: ∂²φ/∂a∂q (..., nv, nv).

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> [x.shape for x in rm.dynamics.rnea_hessian_product(model, q, [1.0], [0.5], [1.0])]
        [(1, 1), (1, 1), (1, 1), (1, 1)]
    """


# ---- all joints, singular positions included -----------------------------------------------------

# With H and b of the spanning tree and the conditions K a = k on the accelerations of its joints,
#
#     H a + b = τ + Kᵀ λ,  K a = k
#
# has one solution a at any rank of K, and one λ of least norm, if k is in the range of K and H is
# definite on K's kernel. With P = 1 - K⁺ K, g = K⁺ k and any α > 0, a solves
#
#     (P H P + α (1 - P)) a = P (τ - b - H g) + α g,  λ = K⁺ᵀ (H a + b - τ),
#
# which asks nothing of the rank. Velocities are in units of ``Geometry.unit``.


class Accelerations(NamedTuple):
    """Accelerations of all joints, with the rank and the residual of the conditions on them.

    Attributes:
        a: Accelerations (..., n_joint_velocities), in ``joint_names`` order, the base first.
        multipliers: Forces λ (..., n_constraints) of least norm along the rows of
            :meth:`robomodel.Model.constraint_matrix`.
        rank: Of these rows (...): less than elsewhere at a change point.
        residual: The largest entry (...) of K a - k, and of K v where that is larger. Beyond
            rounding, the mechanism cannot move with these velocities.
    """

    a: Array
    multipliers: Array
    rank: Array
    residual: Array


@documented
def accelerations(
    model: Model,
    q: ArrayLike,
    velocities: ArrayLike,
    tau: ArrayLike,
    *,
    tolerance: float = 1e-9,
    **options: Unpack[ForceOptions],
) -> Accelerations:
    """Forward dynamics of all joints from the velocities of all joints, at singular positions too.

    :func:`aba` takes the independent velocities, which do not determine the motion at a dead point
    and are too few at a change point. States that are not finite, and those where a motion without
    mass is free, give not-a-number in their own rows only.

    At a change point a is that of the mechanism with all freedoms that K leaves there, whose
    motions obey the conditions to second order; on a single branch, conditions of third order may
    change it.

    Args:
        velocities: Velocities (..., n_joint_velocities) of every joint of the spanning tree, in
            ``joint_names`` order, the base first.
        tau: Forces (..., n_joint_velocities) on the same.
        tolerance: Singular values of a cluster's conditions below this share of the largest count
            as zero.

    Returns:
        accelerations: Accelerations, multipliers, rank and residual.

    Raises:
        ValueError: Arrays that do not fit, a ``tolerance`` that is not between 0 and 1; with
            ``check``, invalid states.
        UnknownNameError: A link that is not known.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> result = rm.accelerations(model, q, [1.0, -1.0, 1.0], [0.2, 0.0, 0.0])
        >>> result.a.shape, int(result.rank)
        ((3,), 2)
    """
    share = as_real(tolerance, "tolerance")
    if not 0.0 < share < 1.0:
        raise ValueError(f"tolerance must be between 0 and 1, got {tolerance!r}")
    n = model.n_joint_velocities
    names, p = as_values(model, by_name(options.pop("parameters", None), "parameters"))
    if names:
        forces = by_name(options.pop("f_ext", None), "f_ext")

        def of_one(robot: Model, rows: Sequence[Array]) -> Accelerations:
            more: ForceOptions = {**options, "f_ext": dict(zip(forces, rows[3:], strict=True))}
            return accelerations(robot, *rows[:3], tolerance=tolerance, **more)

        given = (q, velocities, tau, *forces.values())
        shapes = ((n,), model.constraint_matrix(model.neutral()).shape[:1], (), ())
        a, multipliers, rank, residual = robot_by_robot(model, names, p, given, shapes, of_one)
        return Accelerations(a, multipliers, np.nan_to_num(rank).astype(int), residual)
    at = as_array(q, model.nq, "q", "nq")
    speed = as_array(velocities, n, "velocities", "n_joint_velocities")
    force = as_array(tau, n, "tau", "n_joint_velocities")
    batch = common_batch(q=at, velocities=speed, tau=force)
    if options.pop("check", False):
        model.check(at)
        for name, x in (("velocities", speed), ("tau", force)):
            check_finite(x, name, tuple(f"{name}[{i}]" for i in range(n)))
    spanning = stack(model.spanning_positions(unstack(at)), at.shape[:-1])
    tree = baselines.spanning_tree(model)
    mass = crba(tree, spanning, backend=options.get("backend", "compiled"))
    unbalanced = force - bias_force(tree, spanning, speed, **options)
    k_matrix, k = model.constraint_matrix(at), model.spanning_matrix_bias(at, speed)
    unit = np.ones(n)
    for cluster, _ in model.condition_rows():
        unit[cluster.spanning_v] = cluster.geometry.unit
    inverse, rank = _pseudoinverse(model, k_matrix * unit, share)
    a = unit * _least_squares(
        mass * unit[:, None] * unit, unit * unbalanced, inverse, k_matrix * unit, k
    )
    unmet = unit * (np.einsum("...ij,...j->...i", mass, a) - unbalanced)
    rows = [row for _, rows in model.condition_rows() for row in rows]
    errors = (
        np.abs(np.einsum("...ij,...j->...i", k_matrix, a) - k)[..., rows],
        np.abs(np.einsum("...ij,...j->...i", k_matrix, speed))[..., rows],
    )
    return Accelerations(
        a=a,
        multipliers=np.einsum("...ij,...i->...j", inverse, unmet),
        rank=np.broadcast_to(rank, batch).copy(),
        residual=np.maximum(*(np.max(error, axis=-1, initial=0.0) for error in errors)),
    )


def _pseudoinverse(model: Model, k_matrix: Array, share: float) -> tuple[Array, Array]:
    """K⁺ (..., n, m), cluster by cluster, and the rank (...) of K; not-a-number where K is."""
    inverse = np.zeros_like(np.swapaxes(k_matrix, -1, -2))
    rank = np.zeros(k_matrix.shape[:-2], dtype=int)
    for cluster, rows in model.condition_rows():
        block = k_matrix[..., rows, cluster.spanning_v]
        finite = np.asarray(np.isfinite(block).all(axis=(-2, -1)))
        left, singular, right = np.linalg.svd(
            np.where(finite[..., None, None], block, 0.0), full_matrices=False
        )
        nonzero = singular > share * singular[..., :1]
        rank += np.sum(nonzero, axis=-1)
        inverted = np.where(nonzero, 1.0 / np.where(nonzero, singular, 1.0), 0.0)
        block = np.einsum("...ki,...k,...jk->...ij", right, inverted, left)
        inverse[..., cluster.spanning_v, rows] = np.where(finite[..., None, None], block, np.nan)
    return inverse, rank


def _least_squares(
    mass: Array, unbalanced: Array, inverse: Array, k_matrix: Array, k: Array
) -> Array:
    """The a of (P H P + α (1 - P)) a = P (τ - b - H g) + α g; not-a-number where it is singular."""
    n = mass.shape[-1]
    g = np.einsum("...ij,...j->...i", inverse, k)
    inner = np.einsum("...ij,...jk->...ik", inverse, k_matrix)
    projector = np.eye(n) - inner
    alpha = np.trace(mass, axis1=-2, axis2=-1)[..., None] / max(n, 1)
    matrix = projector @ mass @ projector + alpha[..., None] * inner
    free = unbalanced - np.einsum("...ij,...j->...i", mass, g)
    right = np.einsum("...ij,...j->...i", projector, free) + alpha * g
    finite = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)) & np.isfinite(right).all(axis=-1))
    matrix = np.where(finite[..., None, None], matrix, 0.0)
    regular = finite & (np.linalg.cond(matrix) < 1e14) if n else finite
    matrix = np.where(regular[..., None, None], matrix, np.eye(n))
    solution = np.linalg.solve(matrix, np.where(regular[..., None], right, 0.0)[..., None])[..., 0]
    return np.where(regular[..., None], solution, np.nan)
