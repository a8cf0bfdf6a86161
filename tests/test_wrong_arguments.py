"""What functions refuse: function × bad argument × words, each row a case of one test.

A row is a call, the error that it raises and words of the error's message. What the calls need
beside the bad argument is made when the first of their rows is tried.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import four_bar, joint, link, robot

import robomodel as rm
from robomodel.control import (
    ActuatorTask,
    FrameTask,
    HalfSpace,
    InverseDynamics,
    InverseKinematics,
    JointTask,
    PointTask,
    PostureTask,
)
from robomodel.description import Description, Link
from robomodel.description.shapes import with_inertias
from robomodel.errors import ClosureError, DescriptionError, UnknownNameError
from robomodel.estimation import leg_odometry
from robomodel.motion import Contact
from robomodel.motion.collision import Collider
from robomodel.motion.events import contact_events
from robomodel.papers import clusters

Call = Callable[..., Any]
Row = tuple[Call, type[Exception], str]
ROWS: list[Any] = []


def refused(function: str, given: Callable[[], tuple[Any, ...]], *rows: Row) -> None:
    """Rows of one function, whose calls take what ``given`` makes."""
    for call, error, words in rows:
        ROWS.append(pytest.param(given, call, error, words, id=f"{function}: {words}"))


def changed(
    call: Call, *rows: tuple[dict[str, Any], str], error: type[Exception] = ValueError
) -> Iterable[Row]:
    """Rows of one call that differ by the options that it gets beside the others."""
    return [(partial(call, **options), error, words) for options, words in rows]


# ---- what the calls need -------------------------------------------------------------------------


def nothing() -> tuple[()]:
    return ()


@cache
def shipped(name: str) -> tuple[rm.Model, np.ndarray, np.ndarray]:
    """A shipped robot, its neutral configuration, and no velocities."""
    model = rm.robots.load(name)
    return model, model.neutral(), np.zeros(model.nv)


@cache
def made(text: str, floating_base: bool | None = None) -> tuple[rm.Model, np.ndarray, np.ndarray]:
    """A robot of a text, its neutral configuration, and no velocities."""
    model = rm.load(text, floating_base=floating_base)
    return model, model.neutral(), np.zeros(model.nv)


CRANK = partial(shipped, "crank_rocker")
LINKAGE = partial(shipped, "four_bar")
FIVE_BAR = partial(shipped, "five_bar")
ANKLE = partial(shipped, "parallel_ankle")
BELT = partial(shipped, "belt_leg")
CHEETAH = partial(shipped, "mini_cheetah")
FEET = ["FR_foot_contact", "FL_foot_contact", "HR_foot_contact", "HL_foot_contact"]

MASS = '<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'
BLOCK = partial(made, f'<robot name="b">{link("block", f"{MASS}</inertial>{BOX}")}</robot>', True)
BOTTOM = [("block", (x, y, -0.1)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
BALL = partial(made, robot(link("bob"), joint("hold", "base", "bob", kind="spherical")))
ARM = partial(made, robot(link("a"), joint("j", "base", "a")))
RAIL = joint("rail", "base", "a", kind="prismatic", more='<dynamics friction="1.5"/>')
SLED = partial(made, robot(link("a"), RAIL))
PLAIN = partial(made, four_bar())


# ---- loading -------------------------------------------------------------------------------------

STOCK = rm.robots.path("crank_rocker")
refused("load", nothing,
    (lambda: rm.load(four_bar(), gravity=(0.0, math.nan, 1.0)), ValueError,
     "gravity needs three finite numbers, got (0.0, nan, 1.0)"),
    (lambda: rm.load(STOCK, gravity="down"), ValueError,
     "gravity needs three finite numbers, got 'down'"),
    (lambda: rm.load(STOCK, tolerance="x"), TypeError, "tolerance must be a number"),
    (lambda: rm.load(STOCK, density="x"), TypeError, "density must be a number"),
    (lambda: rm.load(STOCK, floating_base="no"), TypeError, "floating_base is True, False or"),
    (lambda: rm.load(STOCK, extend=[None]), TypeError, "not from NoneType"),
    (lambda: rm.load(STOCK, strict="no"), TypeError, "strict is True or False, not 'no'"),
)  # fmt: skip
refused("Rotor", nothing,
    (lambda: rm.Rotor(inertia="x"), TypeError, "a rotor's inertia must be a number"),
)  # fmt: skip
refused("with_inertias", lambda: (Description("r", (Link("a"),)),),
    (lambda d: with_inertias(d, "mesh"), ValueError, "'collision' or 'visual', got 'mesh'"),
    *changed(lambda d, density: with_inertias(d, "visual", density=density),
        *(({"density": x}, f"density needs a positive number [kg/m³], got {x}")
          for x in (0.0, -1.0, math.nan, math.inf))),
)  # fmt: skip

# ---- writing -------------------------------------------------------------------------------------

for writer in (rm.write_urdf, rm.write_sdf, rm.write_mjcf, rm.write_usd):
    refused(writer.__name__, lambda writer=writer: (writer, PLAIN()[0]),
        (lambda write, m: write("four_bar", "out"), TypeError,
         "a Model is needed, not the text 'four_bar'; load it first: rm.load('four_bar')"),
        (lambda write, m: write(m, "out", aproximate=True), TypeError,
         "unexpected keyword argument 'aproximate'"),
        (lambda write, m: write(m, 3), TypeError, "to a path or an open text file, not to int"),
        (lambda write, m: write(m, "out", meshes="none"), ValueError,
         "meshes is 'copy', 'keep' or 'drop', got 'none'"),
        (lambda write, m: write(m, "none/out"), FileNotFoundError, "there is no folder"),
    )  # fmt: skip

# ---- configurations ------------------------------------------------------------------------------

refused("configuration", PLAIN,
    (lambda m, q, v: m.configuration({"j_cranck": 0.1}), KeyError, "did you mean 'j_crank'"),
    (lambda m, q, v: m.configuration({"j_crank": math.nan}), ValueError,
     "needs 1 finite number(s), got nan"),
    (lambda m, q, v: m.configuration({}, base_pose=[0, 0, 0, 0, 0, 0, 1]), ValueError,
     "no floating base"),
    (lambda m, q, v: m.configuration({3: 1.0}), KeyError, "no joint '3'"),
    (lambda m, q, v: m.configuration([1.0]), TypeError,
     "positions maps joints to positions, not list"),
    (lambda m, q, v: m.configuration("j_crank"), TypeError,
     "positions maps joints to positions, not str"),
    (lambda m, q, v: m.configuration({"j_crank": "a"}), ValueError,
     "needs 1 finite number(s), got 'a'"),
    (lambda m, q, v: m.configuration({"j_crank": 1j}), ValueError,
     "needs 1 finite number(s), got 1j"),
)  # fmt: skip
refused("configuration", CHEETAH,
    (lambda m, q, v: m.configuration({}, base_pose=[0, 0, 0]), ValueError, "seven finite numbers"),
)  # fmt: skip
refused("residual", LINKAGE,
    (lambda m, q, v: m.residual([0.0, 0.0]), ValueError, "q needs nq = 3 numbers"),
)  # fmt: skip
refused("check", CRANK,
    (lambda m, q, v: m.check(q, tolerance=math.nan), ValueError,
     "tolerance must be a number from 0 on, got nan"),
    (lambda m, q, v: m.check(q, tolerance="x"), TypeError, "tolerance must be a number"),
)  # fmt: skip
refused("frame", CRANK, (lambda m, q, v: m.frame(3), KeyError, "names are text"))
THIGH, SHANK = "thigh_joint", "shank_driver_joint"
refused("joint_states", partial(shipped, "planar_leg_linkage"),
    (lambda m, q, v: rm.joint_states(m, {THIGH: 0.0}), ValueError,
     f"positions of '{THIGH}' leave '{SHANK}' open"),
    (lambda m, q, v: rm.joint_states(m, {THIGH: 0.0, SHANK: 0.0}, {THIGH: 0.0}), ValueError,
     f"velocities of '{THIGH}' leave '{SHANK}' open"),
    (lambda m, q, v: rm.joint_states(m, {f"{THIGH}s": 0.0}), ValueError,
     f"is called '{THIGH}s'; did you mean '{THIGH}'"),
    (lambda m, q, v: rm.joint_states(m, {}), ValueError, "positions of no joint are given"),
    (lambda m, q, v: rm.joint_states(m, [0.0, 1.0]), TypeError,
     "positions maps joints to numbers, not list"),
)  # fmt: skip
refused("joint_range", LINKAGE,
    (lambda m, q, v: rm.joint_range(m, "jont1"), UnknownNameError, "did you mean 'joint1'"),
    (lambda m, q, v: rm.joint_range(m, "joint1", np.zeros(2)), ValueError, "nq = 3"),
    (lambda m, q, v: rm.joint_range(m, "joint1", np.tile(q, (3, 1))), ValueError,
     "one configuration"),
    (lambda m, q, v: rm.joint_range("leg.urdf", "knee"), TypeError, "rm.load('leg.urdf')"),
)  # fmt: skip
BODY_ON_A_BALL = partial(
    made, robot(link("a"), joint("b", "base", "a", kind="spherical")), floating_base=True
)
refused("joint_range", BODY_ON_A_BALL,
    (lambda m, q, v: rm.joint_range(m, m.joint_names[0]), ValueError, "6 freedoms and no range"),
    (lambda m, q, v: rm.joint_range(m, m.joint_names[1]), ValueError, "3 freedoms and no range"),
)  # fmt: skip

# ---- orders of other libraries -------------------------------------------------------------------


TURNING = (joint("j", "base", "a"), joint("turning", "a", "b"))
HINGED = joint("k", "b", "c", kind="revolute")
OPEN = partial(made, robot(link("a"), link("b"), link("c"), *TURNING, HINGED))
refused("to_order", OPEN,
    (lambda m, q, v: m.to_order("mujoco", q, joints=m), TypeError,
     "joints is MuJoCo's MjModel of the robot, or names in its order, not Model"),
    (lambda m, q, v: m.to_order("pinocchio", q, joints=[1, 2]), TypeError, "joints is a name"),
    (lambda m, q, v: m.to_order("pinocchio", q[1:]), ValueError, "q needs nq = 3"),
    (lambda m, q, v: m.to_order("pinocchio", q, a=v), ValueError, "give v as well"),
    (lambda m, q, v: m.to_order("pinocchio", np.zeros((2, 3)), np.zeros((3, 3))), ValueError,
     "batch axes do not broadcast"),
)  # fmt: skip
refused("from_order", OPEN,
    (lambda m, q, v: m.from_order("pinocchio", q), ValueError, "q needs Pinocchio's nq = 5"),
)  # fmt: skip

# ---- dynamics ------------------------------------------------------------------------------------

refused("rnea", CHEETAH,
    (lambda m, q, v: rm.rnea(m, [0.0] * 18, v, v), ValueError,
     "q needs nq = 19 numbers on its last axis"),
    (lambda m, q, v: rm.rnea(m, q, v[1:], v), ValueError, "v needs nv = 18"),
    (lambda m, q, v: rm.rnea(m, np.zeros((2, 19)), np.zeros((3, 18)), v), ValueError,
     "batch axes do not broadcast"),
    (lambda m, q, v: rm.rnea(m, [0.0j] * 19, v, v), ValueError, "q must be real numbers"),
    (lambda m, q, v: rm.rnea(m, q, v, v, f_ext={"nothing": np.zeros(6)}), KeyError,
     "no link 'nothing'"),
    (lambda m, q, v: rm.rnea(m, q, v, v, method="fast"), ValueError, "method 'fast' is not known"),
    (lambda m, q, v: rm.rnea(m, q, v, v, passive="no"), TypeError, "passive is True or False"),
)  # fmt: skip
refused("rnea", LINKAGE,
    (lambda m, q, v: rm.rnea(m, q, v, v, method="lagrange"), ValueError,
     "'lagrange' is not known of 'rnea'; known are 'cluster', 'projection', 'approximate', "
     "'tendons', 'unconstrained'"),
)  # fmt: skip
refused("aba", CRANK,
    (lambda m, q, v: rm.aba(m, q, v, v, f_ext={3: np.zeros(6)}), KeyError, "no link '3'"),
    (lambda m, q, v: rm.aba(m, q, v, v, f_ext=["rocker"]), TypeError, "f_ext maps names to"),
    (lambda m, q, v: rm.aba(m, q, v, v, f_ext={"rocker": np.full(6, np.nan)}, check=True),
     ValueError, "f_ext['rocker'] is not finite: 'the moment's x' is nan"),
)  # fmt: skip
refused("aba with parameters", LINKAGE,
    (lambda m, q, v: rm.aba(m, q, v, v, parameters={"link2.mas": 1.0}), UnknownNameError,
     "'link2.mass'"),
    (lambda m, q, v: rm.aba(m, q, v, v, parameters={"link2.mass": np.ones(2),
                                                    "link3.mass": np.ones(3)}),
     ValueError, "do not broadcast"),
    (lambda m, q, v: rm.aba(m, np.tile(q, (3, 1)), v, v, parameters={"link2.mass": np.ones(2)}),
     ValueError, "batch axes do not broadcast"),
    (lambda m, q, v: rm.aba(m, q, v, v, parameters=["link2.mass"]), TypeError,
     "maps names to numbers"),
    (lambda m, q, v: rm.aba(m, q, v, v, parameters={"link2.mass": "heavy"}), ValueError,
     "real numbers"),
    (lambda m, q, v: rm.crba(m, q, parameters={"joint2.x": 0.7}, check=True), ClosureError,
     "is open by"),
)  # fmt: skip
refused("gravity_force", CRANK,
    (lambda m, q, v: rm.gravity_force(m, q, f_ext=np.ones(6)), TypeError, "f_ext maps names to"),
    (lambda m, q, v: rm.gravity_force(m, q, f_ext={"rocker": np.ones(5)}), ValueError,
     "f_ext['rocker'] needs 6 numbers"),
)  # fmt: skip
refused("passive_force", LINKAGE,
    (lambda m, q, v: rm.passive_force(m, [0.0], [0.0]), ValueError, "nq = 3"),
)  # fmt: skip
refused("coriolis", CRANK,
    (lambda m, q, v: rm.coriolis(m, q, np.zeros(2)), ValueError, "v needs nv = 1 numbers"),
    (lambda m, q, v: rm.coriolis(m, q, np.full(1, np.nan), check=True), ValueError,
     "v is not finite"),
)  # fmt: skip
refused("centroidal_map", CRANK,
    (lambda m, q, v: rm.centroidal_map(m, q, backend="fortran"), ValueError,
     "backend 'fortran' is not known"),
)  # fmt: skip
refused("jacobian", CRANK,
    (lambda m, q, v: rm.jacobian(m, q, "rokker"), KeyError, "no link 'rokker'"),
    (lambda m, q, v: rm.jacobian(m, q, "rocker", reference="WORLD"), ValueError,
     "reference 'WORLD' is not known"),
    (lambda m, q, v: rm.jacobian(m, q, "rocker", reference=["world"]), ValueError,
     "is not known; 'local', 'world', 'local_world_aligned' are"),
)  # fmt: skip
refused("jacobian", CHEETAH,
    (lambda m, q, v: rm.jacobian(m, q, "HR_abad_lnik"), KeyError, "did you mean 'HR_abad_link'"),
)  # fmt: skip
refused("frame_pose", CRANK,
    (lambda m, q, v: rm.frame_pose(m, q, "rokker"), KeyError, "no link 'rokker'"),
)  # fmt: skip
refused("efpa", CHEETAH,
    (lambda m, q, v: rm.efpa(m, q, ["FR_foot_contac"]), KeyError,
     "did you mean 'FR_foot_contact'"),
    (lambda m, q, v: rm.efpa(m, q, [("FR_foot_contact", (1, 2))]), ValueError,
     "three finite numbers"),
    (lambda m, q, v: rm.efpa(m, q, FEET, method="fast"), ValueError, "method 'fast' is not known"),
)  # fmt: skip
refused("hybrid", FIVE_BAR,
    (lambda m, q, v: rm.hybrid(m, q, v, tau={"J1": 0.0, "J2": 0.0}, a={"J3": 1.0}), ValueError,
     "'J3' is no independent joint: it depends on others"),
    (lambda m, q, v: rm.hybrid(m, q, v, tau={"J1": 0.0, "J2": 0.0}, a={"J1": 1.0}), ValueError,
     "'J1' is given twice"),
    (lambda m, q, v: rm.hybrid(m, q, v, tau={"J1": 0.0}), ValueError,
     "neither force nor acceleration of 'J2'"),
    (lambda m, q, v: rm.hybrid(m, q, v, tau={"J11": 0.0, "J2": 0.0}), ValueError,
     "did you mean 'J1'"),
)  # fmt: skip
refused("hybrid", CHEETAH,
    (lambda m, q, v: rm.hybrid(m, q, v, tau={"Floating Base_joint": np.zeros(5)}), ValueError,
     "needs 6 numbers"),
)  # fmt: skip
refused("sensitivity", LINKAGE,
    (lambda m, q, v: rm.sensitivity(m, "rnee", (q, v, v), ["link2.mass"]), ValueError,
     "function 'rnee' is not known"),
    (lambda m, q, v: rm.sensitivity(m, "rnea", (q, v), ["link2.mass"]), ValueError,
     "takes q, v, a"),
)  # fmt: skip
refused("armature", LINKAGE,
    (lambda m, q, v: rm.armature(m, kind="sparse"), ValueError, "kind 'sparse' is not known"),
)  # fmt: skip
refused("compile", LINKAGE,
    (lambda m, q, v: rm.compile(m, "aba", dtype=None), ValueError, "dtype None is not known"),
    (lambda m, q, v: rm.compile(m, 3), ValueError, "algorithm '3' is not known"),
    (lambda m, q, v: rm.compile(m, "aba", f_ext=3), TypeError, "f_ext is a name, or several"),
    (lambda m, q, v: rm.compile(m, "hybrid", known=[3]), TypeError, "known is a name, or several"),
    (lambda m, q, v: rm.compile(m, "aba", known=["joint1"]), ValueError, "takes no known joints"),
    (lambda m, q, v: rm.compile(m, "crba", reference="world"), ValueError,
     "'crba' takes no reference"),
    (lambda m, q, v: rm.compile(m, "crba", passive=True), ValueError,
     "'crba' takes no passive forces"),
    (lambda m, q, v: rm.compile(m, "actuator_map"), ValueError,
     "actuator_map of 'four_bar' has no numbers"),
    (lambda m, q, v: rm.compile(m, "aba", method="fast"), ValueError,
     "method 'fast' is not known of 'aba'"),
    (lambda m, q, v: rm.compile(m, "crba", method="projection"), ValueError,
     "method 'projection' is not known of 'crba'"),
    (lambda m, q, v: rm.compile(m, "efpa"), ValueError, "'efpa' needs one or more frames"),
    (lambda m, q, v: rm.compile(m, "jacobian", frames=["link1", "link2"]), ValueError,
     "'jacobian' needs one frame"),
    (lambda m, q, v: rm.compile(m, "aba", frames=["link1"]), ValueError, "'aba' needs no frame"),
    (lambda m, q, v: rm.compile(m, "aba", parameters=["link2.mass"], method="approximate"),
     ValueError, "take no parameters"),
    (lambda m, q, v: rm.compile(m, "aba", parameters=["link2.mass", "link2.mass"]), ValueError,
     "parameters names one twice"),
)  # fmt: skip

# ---- contact at an instant -----------------------------------------------------------------------

NORMALS = [(0.0, 0.0, 1.0)] * 3
refused("contact_aba", BLOCK,
    *changed(lambda m, q, v, **options: rm.contact_aba(m, q, v, v, BOTTOM, **options),
        ({"friction": math.inf}, "finite coefficient"),
        ({"normals": (0.0, 1.0)}, "normals need shape (3,) or (..., 4, 3), got (2,)"),
        ({"normals": (0.0, 0.0, math.inf)}, "need a direction"),
        ({"normals": [*NORMALS, (0.0, 0.0, 0.0)]}, "one is zero"),
        ({"normals": NORMALS}, "normals need shape (3,) or (..., 4, 3), got (3, 3)")),
    *changed(lambda m, q, v, **options: rm.contact_aba(m, q, v, v, BOTTOM, **options),
        *(({"unilateral": x}, f"unilateral is True or False, not {x!r}") for x in (None, "x", 1)),
        error=TypeError),
    (lambda m, q, v: rm.contact_aba(m, q, v, v, ["blok"]), KeyError, "did you mean 'block'"),
    (lambda m, q, v: rm.contact_aba(m, [q, q], v, v, ["block"], friction=np.ones((3, 1))),
     ValueError, "batch axes of the states, normals"),
)  # fmt: skip
refused("impulse", BLOCK,
    (lambda m, q, v: rm.impulse(m, q, v, BOTTOM, unilateral=True, friction=-1.0), ValueError,
     "finite coefficient"),
    *changed(lambda m, q, v, sticking: rm.impulse(m, q, v, BOTTOM, sticking=sticking),
        *(({"sticking": x}, f"sticking is True or False, not {x!r}") for x in (None, "x", 1)),
        error=TypeError),
    *changed(lambda m, q, v, **options: rm.impulse(m, q, v, BOTTOM, **options),
        ({"restitution": 1.5}, "restitution is from 0"),
        ({"restitution": np.nan}, "restitution is from 0"),
        ({"restitution": [0.1, 0.2, 0.3]}, "shape () or (..., 4)"),
        ({"normals": (0, 1)}, "(3,) or (..., 4, 3), got (2,)"),
        ({"normals": np.ones((3, 3))}, "(3,) or (..., 4, 3), got (3, 3)"),
        ({"normals": (0, 0, 0)}, "need a direction")),
    (lambda m, q, v: rm.impulse(m, q, v[:-1], BOTTOM), ValueError, "v needs nv = 6"),
    (lambda m, q, v: rm.impulse(m, q, v, ["blok"]), KeyError, "did you mean 'block'"),
)  # fmt: skip
# ---- motors --------------------------------------------------------------------------------------


def of_two(call: Call) -> Call:
    """The call with three rows where two are given beside."""
    return lambda m, q, v: call(m, np.zeros((2, m.nq)), np.zeros((3, 2)))


refused("torque_polytope", ANKLE,
    (lambda m, q, v: rm.torque_polytope(m, q, ["pich"]), KeyError, "did you mean 'pitch'"),
    (lambda m, q, v: rm.torque_polytope(m, q, ["pitch", "pitch"]), ValueError,
     "one or more coordinates, each once"),
    (of_two(lambda m, q, x: rm.torque_polytope(m, q, "pitch", x)), ValueError,
     "batch axes do not broadcast: q "),
)  # fmt: skip
refused("torque_polytope", BELT,
    (lambda m, q, v: rm.torque_polytope(m, q, ["hip_ry_link_joint"]), ValueError,
     "no effort limit"),
)  # fmt: skip
refused("torque_limits", ANKLE,
    (lambda m, q, v: rm.torque_limits(m, q, backend="x"), ValueError, "backend 'x' is not known"),
    (of_two(rm.torque_limits), ValueError, "batch axes do not broadcast: q "),
)  # fmt: skip
refused("actuator_forces", ANKLE,
    (lambda m, q, v: rm.actuator_forces(m, q, [1.0]), ValueError, "tau needs nv = 2"),
    (of_two(rm.actuator_forces), ValueError, "batch axes do not broadcast: q "),
)  # fmt: skip
refused("saturate", ANKLE,
    (lambda m, q, v: rm.dynamics.saturate(m, q, v, [1.0]), ValueError, "tau needs nv = 2"),
)  # fmt: skip

# ---- ground and events ---------------------------------------------------------------------------

refused("Ground", nothing,
    *changed(rm.Ground,
        ({"friction": math.inf}, "friction needs a finite number from 0 on, got inf"),
        ({"friction": -1.0}, "friction needs a finite number from 0 on, got -1.0"),
        ({"restitution": 1.5}, "restitution is from 0 to 1, got 1.5"),
        ({"restitution": 1.1}, "restitution is from 0 to 1, got 1.1"),
        ({"height": [1.0, 2.0]}, "finite heights (nx, ny), got shape (2,)"),
        ({"height": [[0.0, math.nan]]}, "finite heights (nx, ny), got shape (1, 2)"),
        ({"spacing": 0.0}, "spacing needs a positive number"),
        ({"origin": (math.nan, 0.0)}, "origin is two numbers, x and y [m], got (nan, 0.0)"),
        ({"origin": (0.0,)}, "origin is two numbers, x and y [m], got (0.0,)"),
        ({"velocity": (1.0, 2.0)}, "velocity is three finite numbers [m/s], got (1.0, 2.0)"),
        ({"velocity": (0.0, 0.0, 1.0)}, "moves along itself"),
        ({"velocity": (1.0, 0.0, 0.0), "normal": (1, 0, 1)}, "moves along itself"),
        ({"velocity": (0.0, math.nan, 0.0)}, "velocity is three finite numbers [m/s], got (0.0"),
        ({"normal": (0.0, 0.0, 0.0)}, "normal is three finite numbers, not all zero"),
        ({"normal": (0.0, 1.0)}, "normal is three finite numbers"),
        ({"normal": (1, 0, 1), "height": [[0.0, 1.0]]}, "normal is for planes"),
        ({"static_friction": 0.7}, "at least friction = 0.8, got 0.7"),
        ({"static_friction": math.inf}, "static_friction needs a finite number"),
        ({"stiffness": 0.0}, "stiffness is positive"),
        ({"stiffness": -1.0}, "stiffness needs a finite number from 0 on, or None, got -1.0"),
        ({"damping": 1.0}, "damping needs a stiffness"),
        ({"stiffness": 1e4, "restitution": 0.5}, "rebounds by its stiffness and damping: leave"),
        ({"stiffness": 1.0, "damping": math.nan}, "damping needs a finite number")),
    *changed(rm.Ground,
        *(({name: x}, f"{name} must be a number, got {said}")
          for name in ("friction", "restitution", "spacing")
          for x, said in ((None, "None"), (np.array([0.5]), "array([0.5])"),
                          (np.array([[0.5, 0.6]]), "array([[0.5, 0.6]])"))),
        ({"stiffness": "hard"}, "stiffness must be a number"),
        error=TypeError),
)  # fmt: skip
refused("Ground.surfaces", lambda: (rm.Ground().surfaces,),
    (lambda surfaces: surfaces([0.0, 0.0, 0.0]), ValueError, "centres are points (..., k, 3)"),
    (lambda surfaces: surfaces(np.zeros((4, 3)), [0.1, 0.2]), ValueError,
     "radii are a number or one for each centre"),
    (lambda surfaces: surfaces(np.zeros((2, 3)), count=2), ValueError,
     "several places need count"),
    (lambda surfaces: surfaces(np.zeros((2, 3)), reach=0.1, count=0), ValueError,
     "several places need count"),
    (lambda surfaces: surfaces(np.zeros((2, 3)), [0.1, -0.2]), ValueError,
     "radii are finite numbers from 0 on"),
)  # fmt: skip
refused("Collider", BLOCK,
    (lambda m, q, v: Collider(m, margin=-1.0), ValueError, "margin is a finite number"),
    (lambda m, q, v: Collider(m, friction=math.inf), ValueError,
     "friction needs a finite number"),
    (lambda m, q, v: Collider(m, restitution=2.0), ValueError, "restitution is from 0 to 1"),
)  # fmt: skip


def recorded(**change: Any) -> object:
    """Events of one contact over three steps."""
    forces = np.ones((3, 1, 3))
    given = {"times": 0.1 * np.arange(4), "forces": forces, "velocities": forces, "names": ["foot"]}
    return contact_events(**given | change)


refused("contact_events", nothing,
    *changed(recorded,
        ({"times": [0.0, 1.0]}, "times are 4 increasing numbers, got shape (2,)"),
        ({"times": [0.0, 1.0, 1.0, 2.0]}, "times are 4 increasing numbers, got shape (4,)"),
        ({"forces": np.zeros((3, 1))}, "are (T, k, 3), got shapes (3, 1) and (3, 1, 3)"),
        ({"velocities": np.zeros((2, 1, 3))}, "got shapes (3, 1, 3) and (2, 1, 3)"),
        ({"names": ["a", "b"]}, "one for each of 1 contacts, got 2"),
        ({"normals": [[0.0, 0.0, 1.0]]}, "normals are (3,) or (3, 1, 3)"),
        ({"clearance": 0.0}, "clearance and slip_speed are positive, got 0.0 and 0.001"),
        ({"slip_speed": math.nan}, "clearance and slip_speed are positive, got 0.0001 and nan")),
)  # fmt: skip

# ---- simulation ----------------------------------------------------------------------------------


def simulated(m: rm.Model, q: Any, v: Any, **options: Any) -> object:
    return rm.simulate(m, q, v, **{"duration": 0.1, **options})


refused("simulate", CRANK,
    *changed(simulated,
        ({"method": "euler"}, "method 'euler' is not known"),
        ({"step": -1.0}, "step must be a positive number"),
        ({"duration": -1.0}, "duration must be a number of seconds, got -1.0"),
        ({"duration": None}, "duration must be a number of seconds, got None"),
        ({"tau": [1.0, 2.0]}, "tau needs nv = 1"),
        ({"tau": [math.nan]}, "tau must be finite"),
        ({"tau": np.zeros((2, 2, 1))}, "tau must be (nv,) or"),
        ({"tau": np.zeros((7, 1)), "step": 0.01}, "7 rows of tau"),
        ({"tau": lambda *_: [1.0, 2.0]}, "must give nv = 1 forces"),
        ({"f_ext": {"rocker": np.zeros(5)}}, "f_ext['rocker'] needs 6 numbers"),
        ({"f_ext": {"rocker": np.zeros((2, 3, 6))}}, "wrenches must be"),
        ({"tau": np.zeros((10, 1)), "f_ext": {"rocker": np.zeros((9, 6))}, "step": 0.01},
         "different numbers of rows"),
        ({"f_ext": lambda *_: {"rocker": np.zeros(5)}}, "six numbers, gave 'rocker'"),
        ({"atol": 0.0}, "atol must be a positive number, got 0.0"),
        ({"atol": 0.0, "rtol": 0.0}, "atol must be a positive number"),
        ({"atol": -1e-9}, "atol must be a positive number, got -1e-09"),
        ({"atol": math.nan}, "atol must be a positive number, got nan"),
        ({"rtol": -1e-9}, "rtol must be a number from 0 on, got -1e-09"),
        ({"rtol": math.inf}, "rtol must be a number from 0 on, got inf"),
        ({"step": 1e-300, "method": "rk4"}, "1e-300 s is too short for a duration of 0.1 s"),
        ({"step": 5e-324, "method": "rk4"}, "e-324 s is too short for a duration of 0.1 s")),
    (lambda m, q, v: simulated(m, q[:2], v), ValueError, "q needs nq = 3"),
    (lambda m, q, v: simulated(m, np.tile(q, (2, 1)), v), ValueError, "rollout takes batches"),
    (lambda m, q, v: simulated(m, q + 0.1, v), ValueError, "open at q"),
    (lambda m, q, v: simulated(m, q, [math.nan]), ValueError, "q and v must be finite"),
    (lambda m, q, v: simulated(m, q, v, f_ext={"rocke": np.zeros(6)}), KeyError,
     "did you mean 'rocker'"),
    (lambda m, q, v: simulated(
        m, q, v, f_ext=lambda t, *_: {} if t == 0.0 else {"rocke": np.ones(6)}), KeyError,
     "did you mean 'rocker'"),
    *changed(simulated,
        ({"f_ext": lambda *_: None}, "must give a mapping of links to wrenches, gave None"),
        ({"f_ext": [np.zeros(6)]}, "f_ext maps links to wrenches, not list"),
        ({"duration": "1"}, "duration must be a number"),
        ({"step": "1"}, "step must be a number, got '1'"),
        ({"rtol": None}, "rtol must be a number, got None"),
        ({"stop_at_limits": 3}, "a joint is a name, or several, not 3"),
        ({"friction": 0.8}, "friction is True or False, not 0.8"),
        error=TypeError),
)  # fmt: skip
UP, AT = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
refused("simulate", BLOCK,
    *changed(simulated,
        *(({"ground": x, "contacts": BOTTOM}, f"ground is a robomodel.Ground, such as rm.Ground(), "
           f"or a list of them, got {x!r}") for x in (True, 0.0, rm.Ground)),
        ({"ground": rm.Ground(), "contacts": 5}, "contacts are links or (link, offset), got 5"),
        ({"stops": True, "stop_restitution": None}, "stop_restitution must be a number"),
        ({"contacts": lambda q, v: None}, "list of robomodel.motion.Contact, got None"),
        ({"contacts": lambda q, v: [1]}, "Contact pairs, got 1"),
        ({"contacts": lambda q, v: [Contact("block", AT, UP, 0.0, friction="x")]},
         "friction of a contact on 'block' must be"),
        ({"contacts": lambda q, v: [Contact("block", AT, UP, "x")]},
         "gap of a contact on 'block' must be"),
        error=TypeError),
    *changed(simulated,
        ({"contacts": lambda q, v: [Contact("block", AT, UP, 0.0, friction=-1.0)]},
         "needs a finite friction from 0 on"),
        ({"contacts": lambda q, v: [Contact("block", AT, UP, math.nan)]},
         "the point or the gap of a contact on 'block'"),
        ({"ground": rm.Ground(), "contacts": []}, "contacts names no point"),
        ({"contacts": BOTTOM}, "need a ground: give ground=rm.Ground()"),
        ({"ground": rm.Ground(), "method": "rk4"}, "needs method='time_stepping', not 'rk4'"),
        ({"ground": rm.Ground(), "contacts": [("block", (0, 0))]},
         "a contact on 'block' has an offset of three numbers"),
        ({"stops": True, "stop_restitution": 2.0}, "stop_restitution is from 0 to 1"),
        *(({"ground": rm.Ground(), "contacts": [("block", AT, 0.0, *surface)]}, words)
          for surface, words in (((-1.0,), "friction needs a finite number from 0 on, got -1.0"),
                                 ((0.5, 2.0), "restitution is from 0 to 1, got 2.0"),
                                 (("much",), "a radius, friction and restitution, got")))),
    *changed(simulated,
        ({"ground": rm.Ground(), "contacts": ["blok"]}, "no link 'blok'"),
        ({"stops": ["elbow"]}, "no joint 'elbow'"),
        error=KeyError),
)  # fmt: skip
refused("simulate", SLED,
    (lambda m, q, v: simulated(m, q, v, method="rk4"), ValueError, "dry friction of 'rail'"),
)  # fmt: skip
refused("simulate", ARM,
    (lambda m, q, v: simulated(m, q, v, ground=rm.Ground()), ValueError, "no points"),
)  # fmt: skip
refused("rollout", CRANK,
    *changed(lambda m, q, v, **options: rm.rollout(m, q, v, np.zeros((4, 1)), 1e-3, **options),
        ({"method": "rk5"}, "method 'rk5' is not known"),
        ({"closing": 0}, "closing must be at least one step of Newton's, got 0"),
        ({"closing": 1.5}, "closing must be at least one step of Newton's, got 1.5"),
        ({"backend": "gpu"}, "backend 'gpu' is not known")),
    (lambda m, q, v: rm.rollout(m, q, v, [v, v], math.nan), ValueError,
     "step must be a number of seconds, got nan"),
    (lambda m, q, v: rm.rollout(m, q, v, np.zeros(1), 1e-3), ValueError,
     "tau needs an axis of time"),
    (lambda m, q, v: rm.rollout(m, q, v, np.zeros((4, 2)), 1e-3), ValueError, "tau needs nv = 1"),
    (lambda m, q, v: rm.rollout(m, q + 0.1, v, [v, v], 1e-3), ValueError, "open at q"),
    (lambda m, q, v: rm.rollout(m, np.tile(q, (2, 1)), v, np.zeros((3, 4, 1)), 1e-3), ValueError,
     "do not broadcast"),
    (lambda m, q, v: rm.rollout(m, q, v, [v, v], "1"), TypeError, "step must be a number"),
    (lambda m, q, v: rm.rollout(m, q, v, [v], 0.1, saturate=2), TypeError, "saturate is True or"),
)  # fmt: skip
refused("rollout", BLOCK,
    *changed(lambda m, q, v, **options: rm.rollout(m, q, v, [v, v], 1e-3, **options),
        ({"ground": rm.Ground(), "contacts": lambda q, v: []}, "simulate takes a function"),
        ({"ground": rm.Ground(), "sweeps": 0}, "sweeps must be one or more, a whole number, got 0"),
        ({"ground": rm.Ground(), "sweeps": None}, "one or more, a whole number, got None"),
        ({"ground": rm.Ground(), "method": "rk4"}, "a ground needs method='time_stepping'"),
        ({"contacts": BOTTOM}, "need a ground")),
    *changed(lambda m, q, v, step: rm.rollout(m, q, v, [v, v], step, ground=rm.Ground()),
        ({"step": 0.0}, "step must be positive, got 0.0"),
        ({"step": -1e-3}, "step must be positive, got -0.001")),
    (lambda m, q, v: rm.rollout(m, q, v, [v, v], 1e-3, ground=True), TypeError,
     "ground is a robomodel.Ground"),
    (lambda m, q, v: rm.rollout(m, q, v, [v, v], 1e-3, stops=["elbow"]), KeyError,
     "no joint 'elbow'"),
)  # fmt: skip
refused("rollout with parameters", FIVE_BAR,
    *changed(lambda m, q, v, p: rm.rollout(m, q, v, np.zeros((3, 5, 2)), 1e-3, parameters=p),
        ({"p": {"link2.mass": np.ones(2)}}, "tau (3, 5, 2), parameters 'link2.mass' (2,)"),
        ({"p": {"link2.mass": np.nan}}, "'link2.mass' is nan, which is not finite"),
        ({"p": {"J2.x": 0.1}}, "open at q")),
    *changed(lambda m, q, v, p: rm.rollout(m, q, v, np.zeros((3, 5, 2)), 1e-3, parameters=p),
        ({"p": {"link2.mas": 1.0}}, "did you mean 'link2.mass'"),
        error=UnknownNameError),
    *changed(lambda m, q, v, p: rm.rollout(m, q, v, np.zeros((3, 5, 2)), 1e-3, parameters=p),
        ({"p": ["link2.mass"]}, "maps names to numbers"),
        error=TypeError),
)  # fmt: skip
refused("Simulation with parameters", FIVE_BAR,
    (lambda m, q, v: rm.Simulation(m, 4, parameters={"link2.mass": np.ones(3)}), ValueError,
     "arrays (4,)"),
)  # fmt: skip
refused("Simulation", BALL,
    *changed(lambda m, q, v, n=2, **options: rm.Simulation(m, n, **options),
        ({"n": 0}, "n must be a whole number from 1 on, got 0"),
        ({"n": 2.0}, "n must be a whole number from 1 on, got 2.0"),
        ({"substeps": 0}, "substeps must be a whole number from 1 on"),
        ({"step": -1e-3}, "step must be a positive number of seconds"),
        ({"threads": -1}, "threads must be a whole number from 0 on"),
        ({"method": "dop853"}, "known are 'rk4', 'semi_implicit_euler', 'time_stepping'"),
        ({"pd": (1.0, 2.0)}, "pd is (kp, kd, targets)"),
        ({"pd": (1.0, 2.0, np.zeros(7))}, "targets of pd"),
        ({"pd": (np.ones(3), 2.0, np.zeros(3))}, "no single position"),
        ({"contacts": ["bob"]}, "need a ground")),
    *changed(lambda m, q, v, tau: rm.Simulation(m, 2).step(tau),
        ({"tau": np.zeros(2)}, "tau needs nv = 3"),
        ({"tau": np.zeros((3, 3))}, "tau must be (nv,) or (n, nv) = (2, 3), got (3, 3)"),
        ({"tau": np.zeros((2, 1, 3))}, "tau must be (nv,) or (n, nv) = (2, 3), got (2, 1, 3)")),
    (lambda m, q, v: rm.Simulation("four_bar", 1), TypeError, "load it first"),
)  # fmt: skip


@cache
def animated() -> tuple[Any]:
    model, q, v = BLOCK()
    return (rm.simulate(model, q, v, duration=0.1),)


refused("play", animated,
    (lambda motion: rm.views.play(motion, "x.html", fps=0.0), ValueError,
     "fps must be a positive number"),
    (lambda motion: rm.views.play(motion, "x.html", fps=1e6), ValueError, "give a lower fps"),
)  # fmt: skip


def environment(**options: Any) -> Any:
    """Four-bars as a vector environment, which needs gymnasium."""
    from robomodel.gymnasium import VectorEnv

    given = {
        "max_episode_steps": 5,
        "reward": lambda sim, actions: sim.q[:, 0],
        "start": lambda rng, n: (np.tile(LINKAGE()[1], (n, 1)), np.zeros((n, 1))),
    }
    return VectorEnv(LINKAGE()[0], 4, **given | options)


refused("VectorEnv", nothing,
    (lambda: environment(max_episode_steps=0), ValueError,
     "max_episode_steps is a number from 1 on"),
    (lambda: environment(observation=lambda sim: sim.time), ValueError,
     "observation gives (n = 4, k) numbers"),
    (lambda: environment().step(np.zeros((3, 1))), ValueError,
     "actions are (4, 1), got shape (3, 1)"),
    (lambda: environment(tolerance=1.0), TypeError,
     "unexpected keyword argument 'tolerance'"),
)  # fmt: skip

# ---- control -------------------------------------------------------------------------------------

X = np.eye(4)
refused("InverseKinematics", CHEETAH,
    (lambda m, q, v: InverseKinematics(m, FrameTask("HR_fot_contact")), UnknownNameError,
     "did you mean 'HR_foot_contact'?"),
    (lambda m, q, v: InverseKinematics(m, JointTask("HR_kne_link_joint")), UnknownNameError,
     "did you mean 'HR_knee_link_joint'?"),
    (lambda m, q, v: InverseKinematics(m, ActuatorTask("nothing")), UnknownNameError,
     "actuator 'nothing' of 'mini_cheetah' is not known"),
    (lambda m, q, v: InverseKinematics(m, JointTask("Floating Base_joint")), ValueError,
     "has 6 freedoms"),
    (lambda m, q, v: InverseKinematics(m, [FrameTask("Floating Base"), PointTask("Floating Base")]),
     ValueError, "two tasks are called 'Floating Base': give one a name="),
    (lambda m, q, v: InverseKinematics(m, ["Floating Base"]), TypeError, "tasks are FrameTask"),
    (lambda m, q, v: InverseKinematics("x.urdf", PostureTask()), TypeError, "load it first"),
    (lambda m, q, v: InverseKinematics(m, PostureTask(), limits="positions"), ValueError,
     "did you mean 'position'?"),
    (lambda m, q, v: InverseKinematics(m, PostureTask(), damping=0.0), ValueError,
     "damping is a positive number"),
    (lambda m, q, v: InverseKinematics(m, PostureTask([1.0, 2.0])), ValueError,
     "cost of task 'posture' is one number or 12, got 2"),
)  # fmt: skip
refused("FrameTask", nothing,
    (lambda: FrameTask("a", -1.0), ValueError, "position_cost of task 'a'"),
    (lambda: FrameTask("a", gain=np.nan), ValueError, "gain of task 'a'"),
)  # fmt: skip
refused("HalfSpace", nothing,
    (lambda: HalfSpace("a", (0, 0, 0)), ValueError, "not all zero"),
)  # fmt: skip
refused("inverse_kinematics", CHEETAH,
    (lambda m, q, v: rm.inverse_kinematics(m, {"Floating Base": np.eye(3)[0][:2]}), ValueError,
     "is a pose (..., 4, 4), a point (..., 3)"),
    (lambda m, q, v: rm.inverse_kinematics(m, {"Floatin Base": X}), UnknownNameError,
     "did you mean 'Floating Base'?"),
    (lambda m, q, v: rm.inverse_kinematics(m, X), TypeError, "targets maps frames"),
    (lambda m, q, v: rm.inverse_kinematics(m, {"Floating Base": X}, guess=[0.0]), ValueError,
     "guess needs nq = 19"),
    (lambda m, q, v: rm.inverse_kinematics(m, {"Floating Base": X * np.nan}), ValueError,
     "the target of 'Floating Base' is not finite"),
    (lambda m, q, v: rm.inverse_kinematics(m, {"Floating Base": 2 * X}), ValueError, "is no pose"),
    (lambda m, q, v: rm.inverse_kinematics(m, {}), ValueError, "targets is empty"),
)  # fmt: skip


def following(m: rm.Model, q: Any, v: Any, targets: Any = None, dt: float = 0.1) -> object:
    """Velocities towards a pose of the base."""
    ik = InverseKinematics(m, FrameTask("Floating Base"))
    return ik(q, dt, {"Floating Base": X} if targets is None else targets)


refused("InverseKinematics, called", CHEETAH,
    *changed(following,
        ({"targets": {"Floating Base": np.full((4, 4), np.inf)}}, "is not finite"),
        ({"targets": {"Floating Base": np.diag([1, 1, -1, 1])}}, "is no pose"),
        ({"targets": {"Floating Base": X[:3]}}, "(..., 4, 4), got (3, 4)"),
        ({"targets": {}}, "no target of task 'Floating Base'"),
        ({"dt": -0.1}, "dt is a positive number")),
    *changed(following,
        ({"targets": {"floating Base": X}}, "no task 'floating Base'; "),
        ({"targets": {"Floating Base": X, "foot": X}}, "no task 'foot'"),
        error=UnknownNameError),
    (lambda m, q, v: following(m, q, v, X), TypeError, "targets maps tasks"),
    (lambda m, q, v: following(m, q[1:], v), ValueError, "q needs nq = 19"),
    (lambda m, q, v: following(m, q * [1, 1, 1, np.nan, *[1] * 15], v), ValueError,
     "q is not finite"),
)  # fmt: skip
refused("InverseDynamics", CHEETAH,
    (lambda m, q, v: InverseDynamics(m, FrameTask("Floating Bas")), UnknownNameError,
     "did you mean 'Floating Base'?"),
    (lambda m, q, v: InverseDynamics(m, PostureTask(), contacts=["FR_foot"]), UnknownNameError,
     "did you mean 'FR_foot_contact'?"),
    (lambda m, q, v: InverseDynamics(m, PostureTask(), contacts=FEET, friction=-1.0), ValueError,
     "friction is a number from 0 on"),
    (lambda m, q, v: InverseDynamics(m, PostureTask(), limits="motor"), ValueError,
     "limits 'motor' are not known"),
    (lambda m, q, v: InverseDynamics("x.urdf", PostureTask()), TypeError, "load it first"),
    (lambda m, q, v: InverseDynamics(m, PostureTask(), damping=0.0), ValueError,
     "damping is a positive number"),
    (lambda m, q, v: InverseDynamics(m, PostureTask())(q, v[:3], {}), ValueError,
     "v needs nv = 18"),
    (lambda m, q, v: InverseDynamics(m, PostureTask())(q, v, {}), ValueError,
     "no target of task 'posture'"),
    (lambda m, q, v: InverseDynamics(m, PostureTask())(q, v + np.nan, {"posture": q}), ValueError,
     "v is not finite"),
    (lambda m, q, v: InverseDynamics(m, FrameTask("Floating Base"))(
        q, v, {"Floating Base": np.zeros((4, 4))}), ValueError, "is no pose"),
    (lambda m, q, v: InverseDynamics(m, PostureTask(), contacts=FEET)(
        q, v, {"posture": q}, standing=[True]), ValueError, "standing says of each of 4 contacts"),
)  # fmt: skip


@cache
def crocoddyls() -> tuple[Any, Any]:
    """What bridges to Crocoddyl, and a robot."""
    from robomodel import crocoddyl

    return crocoddyl, ANKLE()[0]


def acting(bridge: Any, m: rm.Model, **options: Any) -> Any:
    return bridge.DifferentialActionModel(bridge.State(m), **options)


refused("crocoddyl.State", crocoddyls,
    (lambda bridge, m: bridge.State("robot.urdf"), TypeError, "load it first"),
)  # fmt: skip
refused("crocoddyl.DifferentialActionModel", crocoddyls,
    (lambda bridge, m: bridge.DifferentialActionModel(m), TypeError, "a robomodel.crocoddyl.State"),
    (lambda bridge, m: acting(bridge, m, contacts=["fot"]), UnknownNameError,
     "did you mean 'foot'?"),
    (lambda bridge, m: acting(bridge, m, tasks={PointTask("foot"): [np.nan] * 3}), ValueError,
     "not finite"),
    (lambda bridge, m: acting(bridge, m, state_cost=-1.0), ValueError,
     "state_cost is a number from 0 on, or 4 of them"),
)  # fmt: skip
refused("crocoddyl.StateResidual", crocoddyls,
    (lambda bridge, m: bridge.StateResidual(bridge.State(m), np.zeros(3), 2), ValueError,
     "reference needs"),
)  # fmt: skip
refused("crocoddyl.IntegratedActionModelEuler", crocoddyls,
    (lambda bridge, m: bridge.IntegratedActionModelEuler(bridge.State(m)), TypeError, "not State"),
    (lambda bridge, m: bridge.IntegratedActionModelEuler(acting(bridge, m), -0.1), ValueError,
     "from 0 on"),
)  # fmt: skip

# ---- identification ------------------------------------------------------------------------------


@cache
def measured() -> tuple[Any, ...]:
    """A leg with belts, and ten samples of q, v, a and tau."""
    model = BELT()[0]
    return model, *(0.3 * np.random.default_rng(1).standard_normal((4, 10, model.nv)))


ROTORS = ("hip_ry_rotor_joint", "knee_rotor_joint", "ankle_rotor_joint")
refused("identify", measured,
    *changed(rm.identify,
        ({"step": 0.1}, "step is for motions without"),
        ({"prior": 0.0}, "prior must be positive"),
        ({"free": []}, "nothing is free"),
        ({"currents": np.zeros((10, 3))}, "either as tau or as currents"),
        ({"constants": 1.0}, "constants are for currents"),
        ({"encoders": ROTORS[:2]}, "encoders have 2 velocities"),
        ({"encoders": (*ROTORS[:2], ROTORS[0])}, "is given twice"),
        ({"encoders": (*ROTORS[:2], "knee_link_joint")}, "contradict their couplings"),
        ({"folds": 1}, "folds is 0 or at least 2"),
        ({"folds": 11}, "10 samples make no 11 blocks")),
    *changed(rm.identify,
        ({"free": "knee_lnk"}, "'knee_lnk'; did you mean 'knee_link'"),
        ({"encoders": (*ROTORS[:2], "ankle_rotor")}, "no joint 'ankle_rotor'; did you mean"),
        ({"offsets": "knee"}, "offsets: no encoder 'knee'"),
        ({"ratios": "knee_gear"}, "ratios: no coupling 'knee_gear'; did you mean 'knee_belt'"),
        ({"f_ext": {"foot": np.zeros(6)}}, "no link 'foot'"),
        error=KeyError),
    *changed(lambda m, q, v, a, tau, **options: rm.identify(m, q, v, a, **options),
        ({}, "either as tau or as currents"),
        ({"currents": np.zeros((10, 3)), "constants": "none"}, "'unknown', not 'none'"),
        ({"currents": np.zeros((10, 3)), "constants": 0.0}, "finite and not zero"),
        ({"currents": np.zeros((10, 2)), "constants": 1.0}, "currents needs nu = 3")),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a, currents=tau, constants={"x": 1.0}), KeyError,
     "no actuator 'x'"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a, tau[:, :2]), ValueError,
     "tau needs nv = 3 numbers"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a, tau[:4]), ValueError,
     "batch axes do not broadcast"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a, tau * np.nan), ValueError,
     "no forces to learn from"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a, tau + np.inf), ValueError,
     "tau is not finite"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, a * np.nan, tau), ValueError, "a is not finite"),
    (lambda m, q, v, a, tau: rm.identify(m, q[:0], v[:0], a[:0], tau[:0]), ValueError,
     "no samples"),
    (lambda m, q, v, a, tau: rm.identify(m, q, v, None, tau), ValueError, "step is needed"),
)  # fmt: skip
refused("identify", FIVE_BAR,
    (lambda m, q, v: rm.identify(m, np.ones((2, 4)), *np.zeros((3, 2, 2))), ClosureError,
     "is open by"),
)  # fmt: skip
refused("calibrate", lambda: (LINKAGE()[0], np.full((5, 3), 0.1)),
    (lambda m, y: rm.calibrate(m, y, ["joint2.xx"]), UnknownNameError, "did you mean 'joint2.x'"),
    (lambda m, y: rm.calibrate(m, y[:, :1], ["joint2.x"], sensors=["joint_1"]), UnknownNameError,
     "did you mean 'joint1'"),
    (lambda m, y: rm.calibrate(m, y[:, :1], ["joint2.x"], sensors=["joint1"]), ValueError,
     "more joints"),
    (lambda m, y: rm.calibrate(m, y[:, :2], ["joint2.x"]), ValueError,
     "measured needs 3 numbers"),
    (lambda m, y: rm.calibrate(m, y, []), ValueError, "names has no parameter"),
    (lambda m, y: rm.calibrate(m, y, ["joint2.x"], noise=-1.0), ValueError,
     "noise is a positive number"),
    (lambda m, y: rm.calibrate(m, y + np.inf, ["joint2.x"]), ValueError,
     "measured is infinite"),
    (lambda m, y: rm.calibrate(m, y[:0], ["joint2.x"]), ValueError,
     "measured has no number"),
    (lambda m, y: rm.calibrate(m, y * np.nan, ["joint2.x"]), ValueError,
     "measured has no number"),
)  # fmt: skip
refused("excitation", CHEETAH,
    (lambda m, q, v: rm.excitation(m), ValueError, "floating_base=False"),
)  # fmt: skip
refused("excitation", FIVE_BAR,
    *changed(lambda m, q, v, **options: rm.excitation(m, **options),
        ({"criterion": "entropy"}, "'condition' and 'information'"),
        ({"torque": -1.0}, "must be positive"),
        ({"harmonics": 1}, "whole number from 2"),
        ({"period": 0.0}, "period must be positive"),
        ({"margin": 1.5}, "at most 1"),
        ({"step": 1.0}, "too few samples"),
        ({"start": np.zeros((2, 4))}, "one configuration"),
        ({"start": np.zeros(4)}, "no configuration")),
    (lambda m, q, v: rm.excitation(m, joints=["J3"]), KeyError, "it follows from others"),
)  # fmt: skip
refused("excitation", BELT,
    (lambda m, q, v: rm.excitation(m, joints=["hip_link"]), KeyError,
     "did you mean 'hip_ry_link_joint'"),
    (lambda m, q, v: rm.excitation(m, velocity={"hip_ry_link": 1.0}), KeyError,
     "velocity: no 'hip_ry_link' with one freedom; did you mean 'hip_ry_link_joint'"),
    (lambda m, q, v: rm.excitation(m, torque=1e-9), ValueError, "at rest already: torque of '"),
)  # fmt: skip
refused("base_parameters", LINKAGE,
    (lambda m, q, v: rm.base_parameters(m, measured=["joint2"]), KeyError,
     "no independent coordinate 'joint2'; did you mean"),
    (lambda m, q, v: rm.base_parameters(m, contacts=["x"]), KeyError, "no link 'x'"),
    (lambda m, q, v: rm.base_parameters(m, measured=3), TypeError,
     "measured is a name, or several"),
)  # fmt: skip
refused("with_parameters", LINKAGE,
    (lambda m, q, v: rm.with_parameters(m, {"link1.Iyx": 1.0}), KeyError,
     "no parameter 'link1.Iyx'; did you mean"),
    (lambda m, q, v: rm.with_parameters(m, [1.0]), ValueError, "values needs 39 numbers"),
    (lambda m, q, v: rm.with_parameters(m, {"link1.mx": np.nan}), ValueError,
     "'link1.mx' is nan, which is not finite"),
    (lambda m, q, v: rm.with_parameters(m, {"link2.mass": np.nan}), ValueError,
     "'link2.mass' is nan, which is not finite"),
    (lambda m, q, v: rm.with_parameters(m, rm.parameters(m).values + 1j), ValueError,
     "values must be real numbers"),
    (lambda m, q, v: rm.with_parameters(m, [[1.0], [2.0, 3.0]]), ValueError,
     "values must be real numbers, got rows"),
    *changed(lambda m, q, v, x: rm.with_parameters(m, {"link1.mx": x}),
        ({"x": None}, "'link1.mx' must be real numbers, got an array of object"),
        ({"x": 1j}, "'link1.mx' must be real numbers, got an array of complex128"),
        ({"x": "1"}, "'link1.mx' must be real numbers, got an array of <U1"),
        ({"x": [1.0, 2.0]}, "'link1.mx' needs one number")),
)  # fmt: skip
refused("with_parameters", BELT,
    (lambda m, q, v: rm.with_parameters(m, {"knee_link_joint.ratio": 3.0}), KeyError,
     "ratios are coefficients of couplings: 'knee_belt.knee_link_joint'"),
)  # fmt: skip
refused("Parameters", lambda: (rm.parameters(LINKAGE()[0]),),
    (lambda p: p["joint9.damping"], KeyError, "no parameter 'joint9.damping'"),
    (lambda p: p.values.__setitem__(0, 1.0), ValueError, "read-only"),
)  # fmt: skip
refused("regressor", LINKAGE,
    (lambda m, q, v: rm.regressor(m, q, v, [1.0, 2.0]), ValueError, "a needs nv = 1"),
)  # fmt: skip


def filtered(m: rm.Model, q: Any, v: Any, tau: Any, step: Any = 0.1) -> object:
    return rm.identification.filtered_regressor(m, q, v, tau, step, cutoff=1.0)


refused("filtered_regressor", LINKAGE,
    (lambda m, q, v: filtered(m, [q], [v], [v], 0.0), ValueError,
     "step and cutoff must be positive, got 0.0"),
    (lambda m, q, v: filtered(m, q, v, v), ValueError, "axis of time"),
    (lambda m, q, v: filtered(m, [q, q], v, [v]), ValueError, "axis of time"),
    (lambda m, q, v: filtered(m, [q, q], v, v), ValueError, "axis of time"),
    (lambda m, q, v: filtered(m, np.zeros((0, 3)), v, np.zeros((0, 1))), ValueError,
     "axis of time"),
    *changed(lambda m, q, v, step: filtered(m, [q], [v], [v], step),
        ({"step": None}, "step must be real numbers, got an array of object"),
        ({"step": "1"}, "step must be real numbers, got an array of <U1"),
        ({"step": np.nan}, "step and cutoff must be positive, got nan"),
        ({"step": np.inf}, "step and cutoff must be positive, got inf"),
        ({"step": [0.1]}, "step and cutoff must be positive, got [0.1]")),
)  # fmt: skip


def walked(m: rm.Model, q: Any, v: Any, **change: Any) -> object:
    """Odometry of three samples."""
    given = {
        "q": q, "imu": "Floating Base", "feet": FEET,
        "gyroscope": np.zeros((3, 3)), "accelerometer": np.zeros((3, 3)),
        "encoders": np.zeros((3, 12)), "standing": np.ones((3, 4), dtype=bool),
    }  # fmt: skip
    return leg_odometry(m, 0.01, **given | change)


refused("leg_odometry", CHEETAH,
    *changed(walked,
        ({"standing": np.ones((4, 4))}, "standing needs shape"),
        ({"encoders": np.zeros((3, 5))}, "encoders needs shape (T, 12)"),
        ({"noise": {"gyroskope": 1.0}}, "no noise 'gyroskope'"),
        ({"noise": {"slip": 0.0}}, "the noise 'slip' must be positive"),
        ({"feet": [], "standing": np.ones((3, 0))}, "one or more")),
    *changed(walked, ({"imu": "head"}, "no link 'head'"), error=KeyError),
)  # fmt: skip

# ---- reports -------------------------------------------------------------------------------------

refused("audit", LINKAGE,
    (lambda m, q, v: rm.audit(m, Path("none.py")), FileNotFoundError, "none.py"),
    (lambda m, q, v: rm.audit(m, "A = (\n"), ValueError, "no Python"),
    (lambda m, q, v: rm.audit(m, "A = 1\nB = 2\n"), ValueError, "no configuration of a robot"),
    (lambda m, q, v: rm.audit("r.urdf", "A = 1\n"), TypeError, "a Model is needed"),
)  # fmt: skip
PENDULUM = robot(link("a"), joint("j", "base", "a"))
refused("compare", nothing,
    (lambda: rm.compare(PENDULUM, PENDULUM, tolerance=0.0), ValueError, "tolerance is positive"),
    (lambda: rm.compare(PENDULUM, '<robot name="r"><link/></robot>'), DescriptionError,
     "the attribute 'name' is missing"),
    (lambda: rm.compare(PENDULUM, 3), TypeError, "not from int"),
)  # fmt: skip

# ---- papers --------------------------------------------------------------------------------------

refused("clusters.operators", LINKAGE,
    (lambda m, q, v: clusters.operators(m, q, v, [1.0, 2.0]), ValueError, "tau needs nv = 1"),
    (lambda m, q, v: clusters.operators(m, q, v)[0].D, ValueError, "call operators with tau"),
)  # fmt: skip
refused("clusters.gauss", LINKAGE,
    (lambda m, q, v: clusters.gauss(m, q[:-1], v, v), ValueError, "q needs nq = 3"),
    (lambda m, q, v: clusters.gauss(m, q, v, v).cost_to_go[0](np.zeros(6)), ValueError,

     "acceleration needs six times the cluster's bodies"),
)  # fmt: skip
refused("clusters.pv_osim", LINKAGE,
    (lambda m, q, v: clusters.pv_osim(m, q, ["nobody"]), ValueError, "no link 'nobody'"),
)  # fmt: skip
refused("clusters.approximate_efpa", CHEETAH,
    (lambda m, q, v: clusters.approximate_efpa(m, q, m.bodies[2].name), ValueError,
     "leaves out the body"),
)  # fmt: skip


@pytest.mark.slow_cases(
    "InverseDynamics: v is not finite",
    "InverseDynamics: is no pose",
    "clusters.approximate_efpa: leaves out the body",
)
@pytest.mark.parametrize(("given", "call", "error", "words"), ROWS)
def test_it_is_refused(
    given: Callable[[], tuple[Any, ...]],
    call: Call,
    error: type[Exception],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no file is written."""
    needed = given()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=re.escape(words)):
        call(*needed)
    assert not list(tmp_path.iterdir())
