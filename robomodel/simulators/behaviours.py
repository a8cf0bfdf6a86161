"""A table of what simulators do with robot files, for warnings, comparisons and documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from robomodel.description import Description
from robomodel.simulators import readings
from robomodel.simulators.readings import CONCERNS, Reading

Format: TypeAlias = Literal["urdf", "sdf", "mjcf", "usd"]
Simulator: TypeAlias = Literal[
    "mujoco", "mjx", "mujoco_warp", "mjlab", "newton", "isaaclab", "drake", "genesis", "pybullet",
    "gazebo", "pinocchio",
]  # fmt: skip
Quantity: TypeAlias = Literal[
    "file", "freedoms", "couplings", "mass matrix", "gravity", "accelerations", "limits", "motion"
]

MOVED: tuple[Quantity, ...] = ("mass matrix", "accelerations")
FREED: tuple[Quantity, ...] = ("freedoms", "accelerations")
URDF: tuple[Format, ...] = ("urdf",)
ALL: tuple[Format, ...] = ("urdf", "sdf", "mjcf", "usd")


@dataclass(frozen=True, slots=True)
class Program:
    """A simulator: its title, the formats it reads, the best one first, and what to install.

    ``versions``: with which all was seen. ``like``: the program whose behaviours it shares.
    """

    title: str
    formats: tuple[Format, ...]
    package: str = ""
    versions: str = ""
    like: Simulator | None = None


PROGRAMS: dict[Simulator, Program] = {
    "mujoco": Program("MuJoCo", ("mjcf", "urdf"), "mujoco", "4.0.0"),
    "mjx": Program("MJX", ("mjcf",), "mujoco-mjx", "3.17.0", like="mujoco"),
    "mujoco_warp": Program("mujoco-warp", ("mjcf",), "mujoco-warp", "4.0.0", like="mujoco"),
    "mjlab": Program("mjlab", ("mjcf",), "mjlab", "", like="mujoco"),
    "newton": Program("Newton", ("mjcf", "usd", "urdf"), "newton", "1.8.0"),
    "isaaclab": Program("Isaac Lab", ("usd", "urdf"), "isaaclab", "PhysX 5.6, as documented"),
    "drake": Program("Drake", ("urdf", "sdf", "mjcf"), "drake", "1.51.1"),
    "genesis": Program("Genesis", ("mjcf", "urdf"), "genesis-world", "1.4.5"),
    "pybullet": Program("PyBullet", ("urdf",), "pybullet", "3.2.7"),
    "gazebo": Program("Gazebo", ("sdf",), "gz-physics", "7.8.0, as its threads have it"),
    "pinocchio": Program("Pinocchio", ("urdf", "mjcf"), "pin", "4.1.0"),
}
"""The simulators of ``convert --for`` and ``compare --in``."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Something that a simulator does with a robot's file.

    Attributes:
        simulator: Its name in :data:`PROGRAMS`.
        formats: Formats of files in which it does so.
        concerns: What of a robot it is about: a key of :data:`CONCERNS`.
        does: What the simulator does, in words that follow its title.
        versions: The versions in which it was seen.
        seen: How it was seen: a script of findings/, a test, or where in its source.
        affects: The quantities of a comparison that it changes.
        read: The robot that the simulator has instead, where that can be said.
        writer: What the writer for this simulator does about it; "" if it only warns.
        mended: True if nothing of it is left then.
        advice: What its user does about it.
    """

    simulator: Simulator
    formats: tuple[Format, ...]
    concerns: str
    does: str
    versions: str
    seen: str
    affects: tuple[Quantity, ...]
    read: Reading | None = None
    writer: str = ""
    mended: bool = False
    advice: str = ""

    def elements(self, description: Description) -> tuple[str, ...]:
        """Names of the elements of a robot that it touches."""
        return CONCERNS[self.concerns](description)


_TEST, _TRIED = "tests/test_in_simulators.py", "a trial"
_TESTED = {"couplings", "armature", "springs of joints", "damping"}  # of readers of URDF alone
_MIMICS = "writes ratios of two joints as `<mimic>`, chains of them each to the first joint"


def _words_of_urdf(
    simulator: Simulator, *, mimics: bool, damping: bool = True, ties: bool = False
) -> tuple[Behaviour, ...]:
    """Rows of a plain reader of URDF: it passes over elements that only this package has.

    ``mimics``: it reads ``<mimic>``, so that couplings can be written as such; ``ties``: Drake's
    elements, so that armature, other couplings and loops can.
    """
    versions, ways = PROGRAMS[simulator].versions, _MIMICS if mimics else ""
    rows: list[tuple[str, str, tuple[Quantity, ...], Reading, str]] = [
        ("couplings", "passes over `<coupling>` and `<rotor>`: joints of gears and belts are free",
         FREED, readings.without_couplings,
         f"{ways}; of sums of more joints a pair of `<drake:tendon_constraint>`" if ties else ways),
        ("loops", "passes over `<loop>`: linkages are open", FREED, readings.without_loops,
         "writes `<drake:ball_constraint>`, two for a hinge, three for a weld" if ties else ""),
        ("armature", "has no `<armature>` in URDF", MOVED, readings.without_armature,
         "writes `<drake:rotor_inertia>` of a motor" if ties else ""),
        ("springs of joints", "has no springs of joints in URDF", ("accelerations",),
         readings.without_joint_springs, ""),
        ("springs between points, over joints", "has no other springs in URDF", ("accelerations",),
         readings.without_springs, ""),
    ]  # fmt: skip
    if not damping:
        rows.append(("damping", "computes accelerations without damping", ("accelerations",),
                     readings.without_damping, ""))  # fmt: skip

    def seen(concerns: str) -> str:
        return _TEST if PROGRAMS[simulator].formats[0] == "urdf" and concerns in _TESTED else _TRIED

    return tuple(
        Behaviour(simulator, URDF, concerns, does, versions, seen(concerns), affects, read, writer,
                  mended=ties and concerns in ("couplings", "loops", "armature"))
        for concerns, does, affects, read, writer in rows
    )  # fmt: skip


_MUJOCO = (
    *_words_of_urdf("mujoco", mimics=True),
    Behaviour("mujoco", URDF, "mimics",
              "holds `<mimic>` by constraints of default softness: accelerations 0.2 to 240 % off",
              "4.0.0", _TRIED, ("accelerations",), None, ""),
    Behaviour("mujoco", ("mjcf",), "couplings, mimics and loops",
              "holds equality constraints softly, as a spring and damper each",
              "4.0.0", _TEST, ("accelerations",), None,
              "writes stiff constraints: accelerations 2e-6 to 0.3 % off, and much where what is "
              "held has no mass"),
    Behaviour("mujoco", URDF, "equal limits", "has no limits where both are equal",
              "4.0.0", "findings/mujoco_urdf_limits_that_vanish.sh", ("limits",)),
    Behaviour("mujoco", URDF, "inertias that no body has", "refuses inertias that no body has",
              "4.0.0", _TRIED, ("file",), None,
              "lends them moments of what carries them, where that changes nothing"),
    Behaviour("mujoco", ("mjcf",), "inertias that no body has",
              "refuses inertias that no body has", "4.0.0",
              _TRIED, ("file",), None, "lends them moments of what carries them, or refuses",
              mended=True),
    Behaviour("mujoco", ("urdf", "mjcf"), "moving links without mass",
              "refuses links that move without a mass", "4.0.0", _TRIED, ("file",), None,
              "gives them 1e-12 kg in MJCF, 2e-14 kg in URDF", mended=True),
    Behaviour("mujoco", ("mjcf",), "every robot",
              "leaves armature out of `mj_rne` with flg_acc=1, but not out of `mj_inverse`",
              "4.0.0", "findings/mujoco_rne_without_armature.sh", ()),
    Behaviour("mujoco", ("mjcf",), "every robot",
              "has no entries of its mass matrix between branches, so that a tendon's armature "
              "does not couple them", "4.0.0", "docs/mjcf.md#tendons", ()),
)  # fmt: skip

_MJX = (
    Behaviour("mjx", ("mjcf",), "loops",
              "holds loops without J̇ v, the rate of their Jacobian, other than MuJoCo 4.0: "
              "accelerations of linkages 1.6 to 5 % off at 1 rad/s, more as speeds squared",
              "3.17.0", "findings/mujoco_warp_and_mjx_rates_of_constraints.sh",
              ("accelerations",)),
    Behaviour("mjx", ("mjcf",), "every robot",
              "has entries of its mass matrix between branches, other than MuJoCo, so that "
              "armature of tendons couples them", "3.17.0", _TRIED, ()),
    Behaviour("mjx", ("mjcf",), "every robot",
              "leaves out the armature of actuators, which MuJoCo and mujoco-warp count",
              "3.17.0", _TRIED, (), None, "writes armature of joints and tendons", mended=True),
)  # fmt: skip

_WARP = (
    Behaviour("mujoco_warp", ("mjcf",), "couplings, mimics and loops",
              "holds equality constraints as MuJoCo does, in single precision: accelerations 0.01 "
              "to 4 % off by solver Newton, less by CG", "4.0.0", _TEST, ("accelerations",)),
    Behaviour("mujoco_warp", ("mjcf",), "loops",
              "holds loops with the rate of their Jacobian at the last call's velocities: nothing "
              "of it in the first step after `put_data` or a reset", "4.0.0",
              "findings/mujoco_warp_and_mjx_rates_of_constraints.sh", ()),
)  # fmt: skip

_PINOCCHIO = (
    *_words_of_urdf("pinocchio", mimics=False, damping=False),
    Behaviour("pinocchio", URDF, "mimics",
              "leaves joints with `<mimic>` free in `buildModelFromUrdf`; with `mimic=True`, aba "
              "refuses", "4.1.0", "findings/pinocchio_mimic_joints.sh", FREED,
              readings.without_mimics),
    Behaviour("pinocchio", ("mjcf",), "couplings, mimics and loops",
              "leaves equality constraints out of the model of `buildModelFromMJCF`", "4.1.0",
              _TRIED, FREED, readings.without_ties_and_loops),
    Behaviour("pinocchio", ("mjcf",), "springs of joints", "has no springs in MJCF", "4.1.0",
              "findings/pinocchio_mjcf_losses.sh", ("accelerations",),
              readings.without_joint_springs),
    Behaviour("pinocchio", ("mjcf",), "damping", "computes accelerations without damping", "4.1.0",
              _TRIED, ("accelerations",), readings.without_damping),
    Behaviour("pinocchio", ("mjcf",), "links without <inertial>",
              "refuses bodies without `<inertial>` and geoms, fixed ones too", "4.1.0", _TRIED,
              ("file",), None, "gives them 1e-9 kg", mended=True),
    Behaviour("pinocchio", URDF, "balls", "refuses joints of three freedoms in URDF", "4.1.0",
              _TRIED, ("file",)),
    Behaviour("pinocchio", ALL, "every robot",
              "reads `rotorInertia` and `rotorGearRatio` in no algorithm, `armature` in all but "
              "regressors", "4.1.0", "findings/pinocchio_rotor_inertia.sh", ()),
)  # fmt: skip

_DRAKE = (
    *_words_of_urdf("drake", mimics=True, ties=True),
    Behaviour("drake", URDF, "couplings that are curves", "has couplings of joints' sums alone",
              "1.51.1", _TRIED, FREED, readings.without_curves),
    Behaviour("drake", URDF, "loops of rods and slides",
              "has no constraint in URDF but that points meet, and sums of joints", "1.51.1",
              _TRIED, FREED, readings.without_unpinned),
    Behaviour("drake", URDF, "couplings",
              "holds a tendon between limits from the step on that begins outside: one with equal "
              "limits lets go in the first", "1.51.1",
              "findings/drake_tendons_with_equal_limits.sh", (), None,
              "writes two that push against each other", mended=True),
    Behaviour("drake", URDF, "loops",
              "holds loops without J̇ v, the rate of their Jacobian, in the first step; a quarter "
              "of it is missing in the second, half as much in each further one", "1.51.1",
              _TRIED, ()),
    Behaviour("drake", ("urdf",), "armature without effort",
              "gives no motor, and so no armature, to a joint with an effort limit of zero",
              "1.51.1", _TRIED, MOVED, readings.without_idle_armature),
    Behaviour("drake", ("mjcf",), "armature",
              "has the armature of MJCF's joints only where a motor drives the joint", "1.51.1",
              _TRIED, MOVED),
    Behaviour("drake", ("mjcf",), "couplings, mimics and loops",
              "leaves equality constraints out of MJCF", "1.51.1", _TRIED, FREED,
              readings.without_ties_and_loops),
    Behaviour("drake", ("mjcf",), "springs of joints", "has no springs of joints in MJCF",
              "1.51.1", _TRIED, ("accelerations",), readings.without_joint_springs),
    Behaviour("drake", ("urdf", "sdf"), "couplings, mimics and loops",
              "holds constraints in discrete plants with SAP alone, nearly rigidly: accelerations "
              "up to 0.2 % off in the first step", "1.51.1", _TEST, ("accelerations",),
              advice="pass `kSap` to `set_discrete_contact_approximation`"),
    Behaviour("drake", ("sdf",), "mimics", "passes over SDF's `<mimic>`", "1.51.1", _TRIED, FREED,
              readings.without_mimics, "writes `<drake:mimic>` beside it", mended=True),
    Behaviour("drake", ("urdf", "sdf"), "inertias that no body has",
              "replaces inertias that no body has by larger ones", "1.51.1", _TRIED,
              ("mass matrix", "accelerations"), None,
              "lends them moments of what carries them, where that changes nothing"),
    Behaviour("drake", URDF, "balls", "has `<drake:joint>` for balls in URDF, and refuses others",
              "1.51.1", _TRIED, ("file",)),
    Behaviour("drake", ("sdf",), "loops", "refuses files whose joints close loops", "1.51.1",
              _TRIED, ("file",)),
    Behaviour("drake", ("sdf",), "couplings", "refuses joints of type gearbox", "1.51.1", _TRIED,
              ("file",)),
    Behaviour("drake", ("mjcf",), "links without <inertial>",
              "refuses bodies without `<inertial>` and geoms, fixed ones too", "1.51.1", _TRIED,
              ("file",), None, "gives them 1e-9 kg", mended=True),
    Behaviour("drake", ("mjcf",), "every robot",
              "takes a motor's gear for its rotor's ratio only: torques are those at the joint",
              "1.51.1", "findings/drake_mjcf_gear_without_torque.sh", ()),
)  # fmt: skip

_NEWTON = (
    *_words_of_urdf("newton", mimics=True),
    Behaviour("newton", ("urdf", "usd"), "mimics",
              "holds mimics softly in SolverMuJoCo: accelerations 0.2 to 270 % off; what other "
              "solvers do differs", "1.8.0", "findings/newton_mimic_depends_on_the_solver.sh",
              ("accelerations",)),
    Behaviour("newton", ("mjcf",), "couplings, mimics and loops",
              "holds equality constraints in SolverMuJoCo as MuJoCo does", "1.8.0", _TEST,
              ("accelerations",), None, "writes stiff constraints"),
    Behaviour("newton", ("mjcf",), "names with other signs than _",
              "passes over tendons of joints whose names have other signs than letters, digits and "
              "_", "1.8.0", "findings/newton_tendons_of_names_with_dashes.sh", FREED, None,
              "writes _ in names of joints", mended=True),
    Behaviour("newton", ("usd",), "mimics",
              "passes over NewtonMimicAPI, without a word, if `pxr` was used before `newton` was "
              "imported", "1.8.0", "findings/newton_usd_mimics_need_newton_first.sh", FREED,
              advice="import `newton` first"),
    Behaviour("newton", ("usd",), "loops",
              "holds joints that close loops by constraints of default softness in SolverMuJoCo: "
              "accelerations of linkages 0.05 % to 600 times themselves off", "1.8.0", _TRIED,
              ("accelerations",), advice="use MJCF"),
    Behaviour("newton", ("usd",), "loops of rods and slides",
              "leaves rods, which are PhysicsDistanceJoint, open in SolverMuJoCo", "1.8.0", _TRIED,
              FREED, readings.without_unpinned, advice="use MJCF"),
    Behaviour("newton", ("usd",), "couplings that are no ratio of two joints",
              "has couplings of two joints of a kind only", "1.8.0", _TRIED, FREED,
              readings.without_sums_of_joints),
    Behaviour("newton", ("usd",), "mimics of a hinge and a slide",
              "has mimics of two joints of a kind only", "1.8.0", _TRIED, FREED,
              readings.without_mixed),
    Behaviour("newton", ("usd",), "springs of joints", "has no springs of joints in USD", "1.8.0",
              _TRIED, ("accelerations",), readings.without_joint_springs),
    Behaviour("newton", ("usd",), "every robot",
              "reads its own attributes only, PhysX's and MuJoCo's with `schema_resolvers`",
              "1.8.0", "findings/newton_usd_without_resolvers.sh", (), None, "writes all three",
              mended=True),
    Behaviour("newton", ("usd",), "every robot",
              "reads effort limits of drives, not `urdf:limit:effort` of urdf-usd-converter 0.3.4, "
              "nor `mjc:compiler:setTotalMass` and `mjc:springdamper` of mujoco-usd-converter "
              "0.8.0",
              "1.8.0", "findings/newton_usd_of_converters.sh", ("limits",), None,
              "writes drives, and masses as they are", mended=True),
    Behaviour("newton", ("urdf", "usd"), "equal limits",
              "refuses joints whose limits are equal, in SolverMuJoCo", "1.8.0", _TRIED, ("file",)),
    Behaviour("newton", URDF, "balls", "refuses joints of three freedoms in URDF", "1.8.0", _TRIED,
              ("file",)),
    Behaviour("newton", ("mjcf", "usd", "urdf"), "moments of nearly zero",
              "adds 1e-6 kg m² to the moments of links of which one is below 1e-10, or a millionth "
              "of the largest", "1.8.0", _TRIED, MOVED, readings.with_raised_moments,
              "makes what is fixed a part of its carrier, but for a bead"),
    Behaviour("newton", URDF, "links without <inertial>",
              "gives links without `<inertial>` the mass of their collision shapes, of 1000 kg/m³",
              "1.8.0", _TRIED, ("mass matrix", "gravity", "accelerations"), None,
              "gives them 1e-9 kg", mended=True),
    Behaviour("newton", ("mjcf",), "links without <inertial>",
              "refuses bodies without `<inertial>`", "1.8.0", _TRIED, ("file",), None,
              "gives them 1e-9 kg", mended=True),
    Behaviour("newton", ("urdf", "usd"), "moving links without mass",
              "refuses links that move without a mass, in SolverMuJoCo", "1.8.0", _TRIED, ("file",),
              None, "gives them 1e-12 kg in USD, 2e-14 kg in URDF", mended=True),
    Behaviour("newton", ALL, "armature",
              "counts armature in SolverMuJoCo and SolverFeatherstone, not in SolverSemiImplicit "
              "and SolverXPBD", "1.8.0", "findings/newton_losses_depend_on_the_solver.sh", ()),
    Behaviour("newton", ALL, "dry friction", "has dry friction of joints in SolverMuJoCo alone",
              "1.8.0", "findings/newton_losses_depend_on_the_solver.sh", ()),
    Behaviour("newton", ALL, "damping", "has no damping of joints in SolverXPBD", "1.8.0",
              "findings/newton_losses_depend_on_the_solver.sh", ()),
    Behaviour("newton", ("mjcf",), "springs of joints",
              "has springs of joints in all solvers but SolverXPBD; springs of tendons and "
              "`<equality><joint>` of MJCF in SolverMuJoCo alone", "1.8.0",
              "findings/newton_springs_and_couplings_by_solver.sh", ()),
)  # fmt: skip

_PYBULLET = (
    *_words_of_urdf("pybullet", mimics=False),
    Behaviour("pybullet", URDF, "mimics", "leaves joints with `<mimic>` free", "3.2.7", _TEST,
              FREED, readings.without_mimics),
    Behaviour("pybullet", URDF, "links without <inertial>",
              "gives links without `<inertial>` 1 kg and 1 kg m²", "3.2.7", _TEST,
              ("mass matrix", "gravity", "accelerations"), readings.with_heavy_frames,
              "gives them 1e-9 kg", mended=True),
    Behaviour("pybullet", URDF, "balls", "fails in `calculateInverseDynamics` with balls", "3.2.7",
              _TRIED, ("file",)),
    Behaviour("pybullet", URDF, "fast rotors",
              "stops joints at 100 rad/s, whatever their limit, until `changeDynamics("
              "maxJointVelocity=)` is called", "3.2.7", "findings/pybullet_clips_joint_speeds.sh",
              ("motion",), advice="call it with the motor's speed"),
    Behaviour("pybullet", URDF, "every robot",
              "computes inertias from collision shapes without `URDF_USE_INERTIA_FROM_FILE`",
              "3.2.7", "the documentation of loadURDF", (),
              advice="pass `flags=pybullet.URDF_USE_INERTIA_FROM_FILE`"),
)  # fmt: skip

_GENESIS = (
    *_words_of_urdf("genesis", mimics=True),
    Behaviour("genesis", ("urdf", "mjcf"), "joints without armature",
              "gives each joint whose armature is zero 0.1 kg m²", "1.4.5", _TEST, MOVED,
              readings.with_armature(0.1), advice="pass `default_armature=0` to the morph"),
    Behaviour("genesis", ("mjcf",), "reference of springs",
              "takes springs of joints about position zero, whatever `springref` says", "1.4.5",
              _TEST, ("accelerations",), readings.without_references),
    Behaviour("genesis", ("urdf", "mjcf"), "couplings, mimics and loops",
              "holds constraints softly, as MuJoCo does", "1.4.5", _TEST, ("accelerations",)),
    Behaviour("genesis", ("urdf", "mjcf"), "damping",
              "has h D, the damping times the step, in `get_mass_mat` but with `integrator.Euler`; "
              "takes damping at the end of a step with it, too", "1.4.5", _TEST, ()),
    Behaviour("genesis", ("mjcf",), "couplings that are no ratio of two joints",
              "refuses equality constraints of tendons", "1.4.5", _TRIED, ("file",)),
    Behaviour("genesis", URDF, "balls", "refuses joints of three freedoms in URDF", "1.4.5", _TRIED,
              ("file",)),
)  # fmt: skip

_GAZEBO = (
    Behaviour("gazebo", ("sdf",), "mimics",
              "holds `<mimic>` in the engine Bullet Featherstone; DART, its default, leaves joints "
              "with it free", "7.8.0", "the thread gazebosim/gz-physics#432", FREED,
              readings.without_mimics),
    Behaviour("gazebo", ("sdf",), "couplings",
              "passes over `<coupling>` and rotors: SDF has no such words", "7.8.0",
              "the specification of SDF 1.11", FREED, readings.without_couplings,
              "writes ratios of two joints as `<mimic>`"),
)  # fmt: skip

_ISAAC = (
    Behaviour("isaaclab", ("usd",), "mimics",
              "holds PhysxMimicJointAPI of joints that turn, not of those that slide; later PhysX "
              "reads NewtonMimicAPI instead", "5.6", "the documentation of PhysX", FREED, None,
              "writes both"),
    Behaviour("isaaclab", ("usd",), "mimics of a hinge and a slide",
              "has mimics of two joints of a kind only", "5.6", "the documentation of PhysX", FREED,
              readings.without_mixed),
    Behaviour("isaaclab", ("usd",), "loops",
              "refuses joints that close loops unless they are excluded from the articulation",
              "5.1", "the thread isaac-sim/IsaacSim#691", ("file",), None,
              "excludes them", mended=True),
)  # fmt: skip

BEHAVIOURS: tuple[Behaviour, ...] = (
    *_MUJOCO, *_MJX, *_WARP, *_PINOCCHIO, *_DRAKE, *_NEWTON, *_PYBULLET, *_GENESIS, *_GAZEBO,
    *_ISAAC,
)  # fmt: skip
"""The table, by simulator."""


def tried(simulator: Simulator) -> bool:
    """True if this simulator, or the one that it shares behaviours with, has been run."""
    names = {simulator, PROGRAMS[simulator].like}
    return any(each.simulator in names and each.seen[:4] != "the " for each in BEHAVIOURS)


def behaviours(simulator: Simulator, form: Format, description: Description) -> Iterator[Behaviour]:
    """The behaviours of a simulator that touch this robot in a file of this format."""
    names = {simulator, PROGRAMS[simulator].like}
    for each in BEHAVIOURS:
        if each.simulator in names and form in each.formats and each.elements(description):
            yield each
