"""Losses in gears: words of files, the law against closed forms, order, energy, solvers."""

import io
import itertools
import re

import numpy as np
import pytest

import robomodel as rm
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve, solve_each
from robomodel.dynamics.contact.problem import Meshes, RowKinds
from robomodel.dynamics.contact.reversal import Reversal

N = 20.0


def link(name: str, mass: float, inertia: float, centre: str = "0 0 0") -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{centre}"/><mass value="{mass}"/><inertia '
        f'ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
        "</link>"
    )


def gear_text(losses: str = "", rotor: str = 'inertia="2e-4"', more: str = "") -> str:
    return f"""<robot name="gear"><link name="base"/>{link("arm", 1.0, 0.3)}
<joint name="joint" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<rotor ratio="{N}" {rotor} {losses}/></joint>{more}</robot>"""


def pushed(load: float) -> dict[str, list[float]]:
    return {"arm": [0.0, 0.0, -load, 0.0, 0.0, 0.0]}


BOTH = 'efficiency="0.8" backdrive="0.7"'


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["urdf", "sdf", "usd"])
@pytest.mark.parametrize(
    ("losses", "numbers"),
    [(BOTH, (0.8, 0.7)), ('efficiency="0.8"', (0.8, 0.75)), ('backdrive="-0.5"', (1.0, -0.5))],
)
def test_words_are_read_and_written(
    form: str, losses: str, numbers: tuple[float, float], tmp_path
) -> None:
    if form == "usd":
        pytest.importorskip("pxr")
    path = tmp_path / f"robot.{'usda' if form == 'usd' else form}"
    model = rm.load(gear_text(losses))
    getattr(rm, f"write_{form}")(model, path)
    for each in (model, rm.load(path)):
        (actuator,) = each.actuators
        assert (actuator.efficiency, actuator.backdrive) == pytest.approx(numbers, rel=1e-15)
        noted = [note for note in each.notes if "equal friction" in note]
        assert len(noted) == ("backdrive" not in losses)


def test_losses_of_reductions_and_rotors_by_name() -> None:
    transmission = """<transmission name="t"><joint name="joint"/><actuator name="motor">
<mechanicalReduction efficiency="0.8" backdrive="0.7">20</mechanicalReduction></actuator>
</transmission>"""
    bare = re.sub(r"<rotor[^>]*/>", "", gear_text(more=transmission))
    for text in (gear_text(more=transmission), bare):
        (actuator,) = rm.load(text).actuators
        assert (actuator.efficiency, actuator.backdrive) == (0.8, 0.7)
    stream = io.StringIO()
    rm.write_urdf(rm.load(bare), stream)
    assert rm.load(stream.getvalue()).actuators == rm.load(bare).actuators
    rotor = rm.Rotor(inertia=2e-4, ratio=20.0, efficiency=0.8, backdrive=0.7)
    plain = re.sub(r"<rotor[^>]*/>", "", gear_text())
    (actuator,) = rm.load(plain, rotors={"joint": rotor}).actuators
    assert (actuator.efficiency, actuator.backdrive) == (0.8, 0.7)


def test_mjcf_has_no_losses() -> None:
    model, stream = rm.load(gear_text(BOTH)), io.StringIO()
    with pytest.raises(rm.DescriptionError, match="the losses of the coupling 'joint_rotor'"):
        rm.write_mjcf(model, stream)
    rm.write_mjcf(model, stream, drop=True)
    assert "efficiency" not in stream.getvalue()


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ('efficiency="0"', "it is above 0 and at most 1"),
        ('efficiency="1.2"', "it is above 0 and at most 1"),
        ('backdrive="1.1"', "it is at most 1"),
        ('efficiency="0.4"', "below 0.5 equal friction of the teeth is self-locking"),
    ],
)
def test_numbers_out_of_range_name_the_line(losses: str, message: str) -> None:
    with pytest.raises(rm.DescriptionError, match=message) as caught:
        rm.load(gear_text(losses))
    assert caught.value.line in (2, 3)


def test_only_couplings_of_rotors_have_losses() -> None:
    wrist = f"""<robot name="wrist"><link name="base"/>{link("a", 1.0, 0.1, "0 0.1 0")}
{link("b", 1.0, 0.1, "0 0.1 0")}
<joint name="one" type="continuous"><parent link="base"/><child link="a"/></joint>
<joint name="two" type="continuous"><parent link="a"/><child link="b"/></joint>
<coupling name="bevel" efficiency="0.9"><joint name="one"/><joint name="two" ratio="2"/></coupling>
</robot>"""
    with pytest.raises(rm.DescriptionError, match="no motor at its sides") as caught:
        rm.load(wrist)
    assert (caught.value.line, caught.value.element) == (5, "coupling 'bevel'")
    curve = wrist.replace(
        '<joint name="one"/><joint name="two" ratio="2"/></coupling>',
        '<polynomial joint="one" of="two" coefficients="0 1 1"/></coupling>',
    )
    with pytest.raises(rm.DescriptionError, match="it has no losses"):
        rm.load(curve)


def test_what_methods_and_contacts_refuse() -> None:
    model = rm.load(gear_text(BOTH))
    with pytest.raises(ValueError, match="the losses in the gear of 'joint'"):
        rm.simulate(model, [0.0], duration=0.1, method="rk4")
    with pytest.raises(ValueError, match="'joint_rotor' is the rotor of a gear with losses"):
        rm.simulate(model, [0.0], duration=0.1, ground=rm.Ground(), contacts=["joint_rotor"])
    free = rm.simulate(model, [0.0], tau=[1.0], duration=0.1, friction=False)
    assert free.method == "dop853"


# ---- closed forms --------------------------------------------------------------------------------

ACCELERATIONS = [  # sign of the rate, motor's torque, acceleration of the joint
    (1, 0.5, 10.989010989011), (-1, 0.05, -6.206896551724), (-1, -0.5, -32.967032967033),
    (1, 0.0, -10.989010989011), (1, -1.0, -78.620689655172), (0, 0.2, 0.0), (0, 0.14, 0.0),
    (0, 0.25, 0.0), (0, 0.26, 0.439560439560), (0, 0.13, -0.689655172414),
]  # fmt: skip


@pytest.mark.parametrize(("rate", "torque", "expected"), ACCELERATIONS)
def test_a_gear_under_load(rate: int, torque: float, expected: float) -> None:
    """Driven, let down, braked, held, at both ends of the range in which it is held."""
    h = 1e-4
    motion = rm.simulate(
        rm.load(gear_text(BOTH)), [0.0], [float(rate)], tau=[N * torque], f_ext=pushed(4.0),
        duration=h, step=h,
    )  # fmt: skip
    assert (motion.v[-1, 0] - rate) / h == pytest.approx(expected, abs=1e-9)


def screw(mass: float) -> rm.Model:
    ratio = 2.0 * np.pi / 5e-3
    return rm.load(
        f"""<robot name="screw"><link name="base"/>{link("nut", mass, 1.0)}
<joint name="slide" type="prismatic"><parent link="base"/><child link="nut"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="1e5" velocity="9"/>
<rotor inertia="2e-5" ratio="{ratio!r}" efficiency="0.423781357241" backdrive="-0.314112567950"/>
</joint></robot>"""
    )


def test_a_self_locking_screw() -> None:
    """Lead 5 mm, mean diameter 14 mm, friction 0.15: it holds, is lowered, slows by itself."""
    model, ratio, h = screw(20.0), 2.0 * np.pi / 5e-3, 1e-5
    cases = [
        (1.0, 0.6, 3.69407420372), (0.0, 0.0, 0.0), (-1.0, -0.0490427090868, 0.0),
        (-1.0, -0.2, -7.49782241395), (-1.0, 0.0, 2.43587786458),
    ]  # fmt: skip
    for rate, torque, expected in cases:
        motion = rm.simulate(model, [0.0], [rate], tau=[ratio * torque], duration=h, step=h)
        assert (motion.v[-1, 0] - rate) / h == pytest.approx(expected, abs=1e-8)


@pytest.mark.filterwarnings("ignore:.*moves no mass")
def test_validate_takes_massless_links_beside_lossy_gears() -> None:
    """The bound of a gear is that of the robot without them: -0.08/0.3."""
    tip = (
        '<link name="tip"/><joint name="tip" type="continuous"><parent link="arm"/>'
        '<child link="tip"/><axis xyz="1 0 0"/></joint>'
    )
    for more in ("", tip):
        model = rm.load(gear_text('efficiency="0.8" backdrive="-0.5"', more=more))
        (jam,) = [each for each in rm.validate(model).findings if each.check == "mesh-jam"]
        assert "is below -0.267" in jam.message


def test_a_screw_beyond_the_bound_stops_at_once() -> None:
    """Painlevé: no finite acceleration with the motor off; of two solutions the driving one."""
    model, ratio, h = screw(201.092), 2.0 * np.pi / 5e-3, 1e-4
    wedged = rm.simulate(model, [0.0], [-1.0], duration=5 * h, step=h)
    assert np.abs(wedged.v[1:]).max() < 1e-12
    driven = rm.simulate(model, [0.0], [-1.0], tau=[-3.0 * ratio], duration=h, step=h)
    assert driven.v[-1, 0] == pytest.approx(-1.00166468, abs=1e-8)
    findings = {each.check: each for each in rm.validate(model).findings}
    assert findings["self-locking"].severity == "note"
    assert findings["mesh-jam"].severity == "warning"


@pytest.mark.slow_cases("0.1--0.105263157895", "0.6--0.5", "-0.5-0.0")
@pytest.mark.parametrize(("backdrive", "after"), [(0.6, -0.5), (0.1, -0.105263157895), (-0.5, 0.0)])
def test_a_leg_that_lands(backdrive: float, after: float) -> None:
    """The body's velocity after the foot of a lossy leg is stopped by the ground, motor off."""
    model = rm.load(
        f"""<robot name="leg"><link name="world"/>{link("body", 5.0, 1.0)}{link("foot", 0.2, 1.0)}
<joint name="up" type="prismatic"><parent link="world"/><child link="body"/><axis xyz="0 0 1"/>
<limit lower="-9" upper="9" effort="9" velocity="9"/></joint>
<joint name="leg" type="prismatic"><parent link="body"/><child link="foot"/><axis xyz="0 0 -1"/>
<limit lower="-9" upper="9" effort="9" velocity="9"/>
<rotor inertia="1e-4" ratio="300" efficiency="0.9" backdrive="{backdrive}"/></joint></robot>""",
        gravity=(0.0, 0.0, 0.0),
    )
    options = {"ground": rm.Ground(), "contacts": ["foot"], "step": 1e-3}
    motion = rm.rollout(model, [0.5, 0.5], [-2.0, 0.0], np.zeros((2, 2)), **options)
    assert motion.v[-1, 0] == pytest.approx(after, abs=1e-9)
    assert motion.v[-1, 0] == pytest.approx(motion.v[-1, 1], abs=1e-9)  # the foot rests
    data = rm.simulate(
        model, [0.5, 0.5], [-2.0, 0.0], duration=2e-3, step=1e-3,
        contacts=lambda q, v: [
            rm.motion.Contact("foot", (0.0, 0.0, q[0] - q[1]), (0.0, 0.0, 1.0), q[0] - q[1])
        ],
    )  # fmt: skip
    assert np.allclose(data.v, motion.v, rtol=0.0, atol=1e-9)


def mid(f, h: float, duration: float) -> np.ndarray:
    """Forces at the middle of steps."""
    return np.array([f((k + 0.5) * h) for k in range(round(duration / h))])


@pytest.mark.slow
def test_a_sinusoid_that_turns_round_nine_times() -> None:
    """Second order through reversals, a stick phase and turns of the transmitted force."""
    model = rm.load(gear_text('efficiency="0.5" backdrive="0.5"', 'inertia="1e-3"'))
    errors = []
    for h in (4e-3, 1e-3, 2.5e-4):
        forces = mid(lambda t: [N * 0.5 * np.sin(2.0 * np.pi * t)], h, 2.0)
        motion = rm.simulate(
            model, [0.0], tau=lambda t, q, v, f=forces, h=h: f[min(round(t / h), len(f) - 1)],
            f_ext=pushed(2.0), duration=2.0, step=h, hold=True,
        )  # fmt: skip
        errors.append(abs(motion.q[-1, 0] + 2.48995961774))
        assert abs(motion.v[-1, 0] + 5.07158290158) < 3e-4
    assert errors[0] < 1e-4
    assert errors[2] < 1e-6


def test_dry_friction_that_turns_round_is_of_second_order() -> None:
    model = rm.load(re.sub(r"<rotor[^>]*/>", '<dynamics friction="0.3"/>', gear_text()))
    ends = []
    for h in (5e-5, 4e-3, 1e-3):
        forces = mid(lambda t: [np.sin(2.0 * np.pi * t)], h, 2.0)
        ends.append(rm.rollout(model, [0.0], [0.0], forces, step=h).q[-1, 0])
    assert abs(ends[1] - ends[0]) < 1e-5
    assert abs(ends[2] - ends[0]) < 4e-6


# ---- belts, differentials, linkages --------------------------------------------------------------

LEG = f"""<robot name="leg"><link name="base"/>{link("thigh", 2.6, 0.03, "0 0 -0.12")}
{link("shank", 0.8, 0.008, "0 0 -0.15")}
<link name="motor"><inertial><mass value="0"/>
<inertia ixx="3e-4" iyy="5.5e-4" izz="3e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hip" type="continuous"><parent link="base"/><child link="thigh"/><axis xyz="0 1 0"/>
<rotor inertia="5.5e-4" ratio="6" friction="0.02" efficiency="0.85" backdrive="0.75"/></joint>
<joint name="knee" type="continuous"><parent link="thigh"/><child link="shank"/>
<origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/></joint>
<joint name="motor" type="continuous" independent="false"><parent link="base"/>
<child link="motor"/><axis xyz="0 1 0"/><dynamics friction="0.02"/></joint>
<coupling name="belt" efficiency="0.8" backdrive="0.65"><predecessor link="shank"/>
<successor link="motor"/><ratio value="12"/></coupling></robot>"""
B = np.array([[6.0, 12.0], [0.0, 12.0]])


def leg_forces(t: float) -> np.ndarray:
    return B @ [1.1 * np.sin(7.0 * t), 0.25 * np.cos(5.0 * t)]


def test_a_belt_over_a_joint() -> None:
    """Order, losses of power that are never negative, and the energy balance of a leg."""
    model = rm.load(LEG)
    at = [0.4, 0.5]
    ends = {}
    for h in (2.5e-4, 4e-3, 1e-3):
        forces = mid(leg_forces, h, 1.0)
        motion = rm.rollout(model, at, np.zeros(2), forces, step=h)
        assert motion.contact_residual.max() < 1e-11
        ends[h] = motion.q[-1]
        if h == 1e-3:
            mean = 0.5 * (motion.v[1:] + motion.v[:-1])
            energy = np.sum(rm.energy(model, motion.q, motion.v), axis=0)
            lost = h * np.einsum("ti,ti->t", forces, mean) - np.diff(energy)
            assert lost.min() > -1e-6  # of steps that turn round; others lose 1e-3 J
            assert lost.sum() > 1.0
    assert np.abs(ends[4e-3] - ends[2.5e-4]).max() < 7e-4
    assert np.abs(ends[1e-3] - ends[2.5e-4]).max() < 5e-5


@pytest.mark.slow
def test_batches_backends_and_stepping_agree() -> None:
    model = rm.load(LEG)
    forces = mid(leg_forces, 2e-3, 0.2)
    rng = np.random.default_rng(0)
    q, v = 0.5 * rng.standard_normal((3, 2)), rng.standard_normal((3, 2))
    one = rm.rollout(model, q, v, forces, step=2e-3)
    other = rm.rollout(model, q, v, forces, step=2e-3, backend="numpy")
    assert np.allclose(one.q, other.q, rtol=0.0, atol=1e-12)
    alone = rm.rollout(model, q[1], v[1], forces, step=2e-3)
    assert np.allclose(one.q[1], alone.q, rtol=0.0, atol=1e-13)
    single = rm.rollout(model, q, v, forces, step=2e-3, dtype="float32")
    assert np.allclose(one.q, single.q, rtol=0.0, atol=1e-3)
    sim = rm.Simulation(model, 3, step=2e-3)
    sim.reset(q=q, v=v)
    for force in forces:
        sim.step(force)
    assert np.allclose(sim.q, one.q[:, -1], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("method", "near"), [("time_stepping", 1e-3), ("dop853", 1e-9)])
def test_a_differential_with_one_loaded_output(method: str, near: float) -> None:
    """Both motors turn both outputs: only the mesh of which the load asks more holds less."""
    model = rm.load(
        f"""<robot name="wrist"><link name="base"/>{link("a", 1.0, 0.1)}{link("b", 1.0, 0.1)}
<joint name="pitch" type="continuous"><parent link="base"/><child link="a"/>
<axis xyz="0 1 0"/></joint>
<joint name="roll" type="continuous"><parent link="a"/><child link="b"/>
<axis xyz="0 1 0"/></joint>
<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>
<joint name="pitch"><role>joint1</role></joint><joint name="roll"><role>joint2</role></joint>
<actuator name="one"><role>actuator1</role><rotor inertia="1e-4" efficiency="0.8" backdrive="0.7"/>
<mechanicalReduction>10</mechanicalReduction></actuator>
<actuator name="two"><role>actuator2</role><rotor inertia="1e-4" efficiency="0.6" backdrive="0.5"/>
<mechanicalReduction>10</mechanicalReduction></actuator></transmission></robot>"""
    )
    assert [each.lossy for each in model.actuators] == [True, True]
    motors = rm.actuator_map(model, [0.0, 0.0])
    # a load of 4 N m on roll alone is 0.2 and -0.2 N m at the rotors
    load = {"b": [0.0, -4.0, 0.0, 0.0, 0.0, 0.0], "a": [0.0, 4.0, 0.0, 0.0, 0.0, 0.0]}
    need = rm.actuator_forces(model, [0.0, 0.0], [0.0, 4.0])
    assert np.allclose(need, [0.2, -0.2])
    h = 1e-4
    held = [(0.7, 0.5), (1.0 / 0.8, 1.0 / 0.6)]  # shares of the load at which meshes begin to turn
    for end, inside in zip(held, (near, -near), strict=True):
        for share, moves in ((1.0 + inside, False), (1.0 - inside, True)):
            motion = rm.simulate(
                model, [0.0, 0.0], tau=motors @ (need * np.array(end) * share), f_ext=load,
                duration=h, step=h, method=method,
            )  # fmt: skip
            assert (np.abs(motion.v[-1]).max() > 1e-14) == moves


CRANK, COUPLER, ROCKER, GROUND = 0.045, 0.2, 0.06, 0.21
FOUR_BAR = f"""<robot name="bar"><link name="base"/>{link("crank", 0.5, 4e-4)}<link name="coupler"/>
{link("rocker", 1.2, 0.02, "0.14 0 0")}
<joint name="motor" type="continuous" independent="true"><parent link="base"/><child link="crank"/>
<axis xyz="0 0 1"/>
<rotor inertia="3e-4" ratio="8" friction="0.01" efficiency="0.82" backdrive="0.7"/>
</joint>
<joint name="pin" type="continuous"><parent link="crank"/><child link="coupler"/>
<origin xyz="{CRANK} 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="shank" type="continuous"><parent link="base"/><child link="rocker"/>
<origin xyz="{GROUND} 0 0"/><axis xyz="0 0 1"/></joint>
<loop name="loop" type="revolute"><predecessor link="coupler"><origin xyz="{COUPLER} 0 0"/>
</predecessor><successor link="rocker"><origin xyz="{ROCKER} 0 0"/></successor>
<axis xyz="0 0 1"/></loop></robot>"""


def four_bar(gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> rm.Model:
    return rm.load(FOUR_BAR, gravity=gravity)


def angles_at(psi: float) -> dict[str, float]:
    """Positions of the joints with the shank at an angle."""
    x, y = GROUND + ROCKER * np.cos(psi), ROCKER * np.sin(psi)
    apart = np.hypot(x, y)
    open_ = np.arccos((CRANK**2 + apart**2 - COUPLER**2) / (2.0 * CRANK * apart))
    crank = float(np.arctan2(y, x) + open_)
    pin = float(np.arctan2(y - CRANK * np.sin(crank), x - CRANK * np.cos(crank))) - crank
    return {"motor": crank, "pin": pin, "shank": psi}


def at_rocker(model: rm.Model, psi: float) -> np.ndarray:
    return model.configuration(angles_at(psi))


STATIC = [  # angle of the shank; loads that the motor drives, holds, and that turn it when off
    (1.3, 5.494853723, 9.963647155, 0.195365630),
    (1.9, 4.174991778, 7.570382589, 0.148438874),
    (2.5, 4.660528282, 8.450790811, 0.165701781),
]


@pytest.mark.slow_cases("1.3-5.494853723-9.963647155-0.19536563")
@pytest.mark.parametrize(("psi", "drives", "holds", "moves"), STATIC)
def test_a_four_bar_leg_at_its_static_limits(
    psi: float, drives: float, holds: float, moves: float
) -> None:
    """The load at the shank that the motor drives, holds, and that turns it when it is off."""
    model, h = four_bar(), 1e-3
    q = at_rocker(model, psi)
    sense = np.sign(model.joint_velocities(q, [1.0])["shank"])

    def rate(load: float, torque: float) -> float:
        motion = rm.simulate(
            model, q, tau=[8.0 * torque * sense], duration=h, step=h,
            f_ext={"rocker": [0.0, 0.0, -load, 0.0, 0.0, 0.0]},
        )  # fmt: skip
        return motion.v[-1, 0] * sense

    known = 1e-8  # of the tables, of nine digits
    assert rate(drives * (1.0 - known), 0.5) > 1e-12
    assert abs(rate(drives * (1.0 + known), 0.5)) < 1e-12
    assert abs(rate(holds * (1.0 - known), 0.5)) < 1e-12
    assert rate(holds * (1.0 + known), 0.5) < -1e-12
    assert abs(rate(moves * (1.0 - known), 0.0)) < 1e-12
    assert rate(moves * (1.0 + known), 0.0) < -1e-12


@pytest.mark.slow
def test_a_linkage_behind_a_lossy_gear_is_of_second_order() -> None:
    gravity = (9.81 * np.cos(1.9), 9.81 * np.sin(1.9), 0.0)
    model = four_bar(gravity)
    q = at_rocker(model, 1.7)
    ends = {}
    for h in (5e-5, 4e-3, 1e-3):
        forces = mid(lambda t: [8.0 * (0.02 + 0.06 * np.sin(9.0 * t))], h, 1.0)
        ends[h] = rm.rollout(model, q, [0.0], forces, step=h).q[-1, :3]
    assert np.abs(ends[4e-3] - ends[5e-5]).max() < 1e-4
    assert np.abs(ends[1e-3] - ends[5e-5]).max() < 6e-6


@pytest.mark.slow
def test_lossy_gears_at_dead_points_of_the_independent_joint() -> None:
    """Crank and coupler in line: the motion is that in coordinates of the crank."""
    psi = np.arccos(((CRANK + COUPLER) ** 2 - GROUND**2 - ROCKER**2) / (2.0 * GROUND * ROCKER))
    driven = FOUR_BAR.replace('backdrive="0.7"/>', 'backdrive="0.7"/><motor effort="100"/>')
    swapped = driven.replace(' independent="true"', "").replace(
        '<joint name="shank" type="continuous">',
        '<joint name="shank" type="continuous" independent="true">',
    )
    by_crank, by_shank = (rm.load(text, gravity=(0.0, -9.81, 0.0)) for text in (driven, swapped))
    assert by_shank.dof_names == ("shank",)
    ends, load = [], {"crank": [0.0, 0.0, 3.0, 0.0, 0.0, 0.0]}
    for model in (by_crank, by_shank):
        motion = rm.simulate(
            model, at_rocker(model, psi), f_ext=load, duration=0.05, step=1e-3, friction=True
        )
        there = model.joint_positions(motion.q[-1])
        ends.append([float(there[name]) for name in angles_at(psi)])
    assert abs(ends[0][0] - angles_at(psi)["motor"]) > 1e-3
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)


@pytest.mark.slow
def test_a_floating_robot_with_losses_and_contact() -> None:
    """A quadruped that lands: solved, and it rests where its gears lock themselves."""
    text = rm.robots.path("mini_cheetah").read_text(encoding="utf-8")
    text = text.replace("<coupling ", '<coupling efficiency="0.9" backdrive="0.8" ')
    model = rm.load(text)
    assert sum(each.lossy for each in model.actuators) == 12
    feet = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
    q = model.neutral()
    q[2] += 0.02 - min(rm.frame_pose(model, q, foot)[2, 3] for foot in feet)
    motion = rm.simulate(
        model, q, duration=0.1, step=1e-3, ground=rm.Ground(friction=0.8), contacts=feet
    )
    assert motion.contact_residual.max() < 1e-10
    energy = np.sum(rm.energy(model, motion.q, motion.v), axis=0)
    assert np.diff(energy).max() < 1e-5
    findings = rm.validate(rm.load(text.replace('backdrive="0.8"', 'backdrive="-0.1"')))
    locking = [each for each in findings.findings if each.check == "self-locking"]
    assert len(locking) == 12
    assert {each.severity for each in locking} == {"warning"}


# ---- what motors can do --------------------------------------------------------------------------


def test_torques_that_arrive_and_that_motors_hold() -> None:
    text = gear_text(BOTH).replace("</joint>", '<motor effort="0.5"/></joint>')
    model, q = rm.load(text), np.zeros((3, 1))
    for losses, share in ((None, 1.0), ("forward", 0.8), ("back", 1.0 / 0.7)):
        lower, upper = rm.torque_limits(model, q, losses=losses)
        assert np.allclose(upper, 10.0 * share, rtol=1e-14)
        assert np.allclose(lower, -10.0 * share, rtol=1e-14)
        corners = rm.torque_polytope(model, q[0], "joint", losses=losses)
        assert np.allclose(np.sort(corners[:, 0]), [-10.0 * share, 10.0 * share], rtol=1e-14)
    assert rm.actuator_forces(model, q, [4.0], losses="forward") == pytest.approx(0.25)
    assert rm.actuator_forces(model, q, [4.0], losses="back") == pytest.approx(0.14)
    locking = rm.load(text.replace('"0.7"', '"-0.1"'))
    assert np.isinf(rm.torque_limits(locking, q[0], losses="back")[1])
    with pytest.raises(ValueError, match="'joint' has a gear that locks itself"):
        rm.torque_polytope(locking, q[0], "joint", losses="back")
    with pytest.raises(ValueError, match="losses are 'forward' or 'back'"):
        rm.torque_limits(model, q, losses="both")  # type: ignore[arg-type]
    assert "losses in the gears of 'joint' are left out" in rm.approximate_tree(model).notes


@pytest.mark.slow
def test_a_study_has_the_three_torques_of_a_four_bar() -> None:
    text = FOUR_BAR.replace('backdrive="0.7"/>', 'backdrive="0.7"/><motor effort="0.5"/>')
    for name, at in angles_at(1.9).items():  # its assembly mode
        text = re.sub(rf'(<joint name="{name}"[^>]*>)', rf'\1<initial position="{at!r}"/>', text)
    study = rm.actuation(rm.load(text), "shank")
    (row,) = study.losses
    assert row.motors == ("motor",)
    shown = [
        [np.interp(psi, row.positions, values) for values in (row.drives, row.holds, row.turns)]
        for psi, *_ in STATIC
    ]
    assert np.allclose(shown, [each[1:] for each in STATIC], rtol=1e-3)
    names = [plot.name for plot in study.document.plots]
    assert "losses_shank" in names
    assert "Losses in gears" in str(study)
    assert not rm.actuation(rm.robots.load("belt_leg")).losses


# ---- problems of many meshes ---------------------------------------------------------------------


def random_meshes(rng: np.random.Generator, k: int, boxes: int, low: float) -> ArrayProblem:
    """Rotors on joints of a random load, as in a step."""
    n = k + boxes
    joints = n + 1
    root = rng.standard_normal((joints, joints))
    mass = root @ root.T + 0.1 * np.eye(joints)
    rates, inertia = rng.standard_normal((k, joints)), 10.0 ** rng.uniform(-1.0, 1.0, k)
    mass += rates.T @ (inertia[:, None] * rates)
    rows = np.concatenate([rng.standard_normal((boxes, joints)), rates])
    weighted = np.linalg.solve(mass, rows.T)
    slopes = -(inertia[:, None] * rates) @ weighted
    slopes[np.arange(k), boxes + np.arange(k)] += 1.0
    forward = 1.0 / rng.uniform(0.3, 0.95, k) - 1.0
    back = 1.0 - rng.uniform(low, 0.95, k)
    meshes = Meshes(slopes, rng.standard_normal(k), forward, back, 0.1 * rng.random(k))
    return ArrayProblem(
        RowKinds(0, 0, boxes, k), rows @ weighted, rows @ rng.standard_normal(joints),
        np.empty(0), rng.random(boxes), meshes=meshes,
    )  # fmt: skip


def all_solutions(problem: ArrayProblem) -> list[np.ndarray]:
    """Every solution, by trying all pieces of the law."""
    k, n, meshes, found = problem.rows.boxes, problem.rows.size, problem.meshes, []
    kinds = [(1, 0), (-1, 0), (0, 0)]
    for pieces in itertools.product(
        *[kinds] * k, *[[(0, 0), *itertools.product((1, -1), (1, -1))]] * (n - k)
    ):
        a, r = np.empty((n, n)), np.empty(n)
        for i, (s, o) in enumerate(pieces):
            if s == 0:
                a[i], r[i] = problem.matrix[i], -problem.b[i]
            elif i < k:
                a[i], r[i] = np.eye(n)[i], -s * problem.bounds[i]
            else:
                m = i - k
                c = s * o * (meshes.forward[m] if s * o > 0 else meshes.back[m])
                a[i], r[i] = (
                    c * meshes.slopes[m] + np.eye(n)[i],
                    -c * meshes.free[m] - s * meshes.bearing[m],
                )
        x = np.linalg.solve(a, r)
        y, load = problem.y(x), meshes.free + meshes.slopes @ x
        fine = True
        for i, (s, o) in enumerate(pieces):
            if i < k:
                fine &= s * y[i] >= 0.0 if s else abs(x[i]) <= problem.bounds[i] + 1e-10
            elif s:
                fine &= s * y[i] >= 0.0 and o * load[i - k] >= 0.0
            else:
                ends = meshes.bounds(i - k, float(load[i - k]))
                fine &= ends[0] - 1e-10 <= x[i] <= ends[1] + 1e-10
        if fine and not any(np.allclose(x, other, rtol=0.0, atol=1e-8) for other in found):
            found.append(x)
    return found


def test_problems_of_meshes_have_the_one_solution() -> None:
    rng = np.random.default_rng(4)
    for _ in range(15):
        problem = random_meshes(rng, 2, 1, 0.05)
        (only,) = all_solutions(problem)
        x, residual = solve(problem, np.zeros(3))
        assert residual < 1e-10
        assert np.allclose(x, only, rtol=0.0, atol=1e-8)


def test_many_problems_of_meshes_are_solved() -> None:
    """Side by side, by sweeps and Newton's method; with fixed bounds to the same end."""
    rng = np.random.default_rng(5)
    problems = [random_meshes(rng, 4, 2, 0.1) for _ in range(20)]
    together = ArrayProblem(
        problems[0].rows,
        *(np.array([getattr(p, name) for p in problems])
          for name in ("matrix", "b", "friction", "bounds")),
        meshes=Meshes(*(np.array(each) for each in zip(*(
            (p.meshes.slopes, *p.meshes.rest) for p in problems), strict=True))),
    )  # fmt: skip
    x, residuals = solve_each(together, np.zeros((20, 6)), 1e-12)
    assert residuals.max() < 1e-11
    for each, problem in zip(x, problems, strict=True):
        fixed, middles = problem.frozen(each)
        again = middles + solve(fixed, np.zeros(6), 1e-12)[0]
        assert np.allclose(again, each, rtol=0.0, atol=1e-8)


def test_a_step_in_two_parts() -> None:
    """A block of 1 kg with friction 1 N at 0.25 m/s: it stops after a quarter, and stays."""
    problem = ArrayProblem(
        RowKinds(0, 0, 1), np.eye(1), np.array([0.25]), np.empty(0), np.array([1.0])
    ).as_lists()
    first = Reversal.first(problem, [0.25], [-0.25], 0.25)
    assert first.share == pytest.approx(0.25)
    assert first.slide == [-1.0]
    rest = first.rest(problem)
    assert rest.b[0] == pytest.approx(0.0)
    x, early = first.joined([0.0])
    assert x == pytest.approx([-0.25])
    assert early == pytest.approx([0.5 * 0.25 * (-1.0 + 0.25)])
