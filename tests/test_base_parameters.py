"""What forces can tell of parameters: against other motions' regressors, and by Pinocchio."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pinocchio as pin
import pytest
import texts
from cases import few
from mechanisms import random_mechanism
from oracle import Oracle, parent_joint
from test_quantities import SPATIAL, link, spatial
from texts import screw_leg

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.cli import main
from robomodel.identification import BaseParameters


def joint(
    name: str, kind: str, parent: str, child: str, at: str, axis: str = "0 0 1", more: str = ""
) -> str:
    along = "" if kind == "spherical" else f'<axis xyz="{axis}"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}" rpy="0.3 0 0.2"/>{along}{more}</joint>'
    )


def robot(links: str, joints: str, base: str = '<link name="base"/>') -> str:
    return f'<robot name="r">{base}{"".join(map(link, links))}{joints}</robot>'


def mimic(of: str, multiplier: float) -> str:
    return f'<mimic joint="{of}" multiplier="{multiplier}"/>'


# two geared links on the base; on each of them one of two further geared links
OUTPUTS = robot(
    "abcd",
    joint("ja", "continuous", "base", "a", "0 0 0")
    + joint("jb", "continuous", "base", "b", "0.4 0 0", "0 1 0", mimic("ja", 2))
    + joint("jc", "continuous", "a", "c", "0.2 0 0.1", "1 0 0")
    + joint("jd", "continuous", "b", "d", "0.2 0.1 0", "0 1 0", mimic("jc", -3)),
)
ASSORTED = robot(
    "abcde",
    joint("j0", "continuous", "base", "a", "0 0 0")
    + joint("j1", "continuous", "a", "b", "0.3 0 0")
    + joint("j2", "prismatic", "b", "c", "0.2 0 0.1", "1 0 0")
    + joint("j3", "spherical", "c", "d", "0.2 0 0")
    + joint("j4", "continuous", "d", "e", "0 0.2 0", "0.6 0.8 0"),
)


def geared(ratio: float, axis: str = "0 0 1") -> rm.Model:
    """A floating body with a link and a rotor on parallel, or other, axes."""
    joints = (
        joint("knee", "continuous", "base", "shank", "0.1 0 0")
        + joint("gear", "continuous", "base", "rotor", "0 0.2 0", axis, mimic("knee", ratio))
    )  # fmt: skip
    text = f'<robot name="r">{link("base")}{link("shank")}{link("rotor")}{joints}</robot>'
    return rm.load(text, floating_base=True)


def same_reduction(first: BaseParameters, second: BaseParameters) -> None:
    assert first.rank == second.rank
    size = np.abs(second.matrix).max()
    assert np.abs(first.matrix - second.matrix).max() < 1e-7 * size
    assert first.gap.ratio > 1e4
    assert second.gap.ratio > 1e4


MODELS = {
    "spatial": spatial,
    "spatial on the world": lambda: rm.load(SPATIAL.replace(link("base"), '<link name="base"/>')),
    "outputs": lambda: rm.load(OUTPUTS),
    "assorted": lambda: rm.load(ASSORTED),
    "oblique gravity": lambda: rm.load(ASSORTED, gravity=(1.0, 2.0, -9.0)),
    "no gravity": lambda: rm.load(OUTPUTS, gravity=(0.0, 0.0, 0.0)),
    "geared chain": lambda: chain("geared", 3, rng=np.random.default_rng(1)),
    "belt chain": lambda: chain("belt", 3, rng=np.random.default_rng(2)),
    "geared chain in a plane": lambda: chain("geared", 3),
    "resisting": lambda: rm.load(
        rm.robots.path("four_bar"),
        extend='<robot name="x"><joint name="joint1"><dynamics damping="3" friction="1"/></joint>'
        "</robot>",
    ),
}


LONG = {"spatial", "spatial on the world", "resisting"}


def check(model: rm.Model) -> int:
    """The base parameters are all that other motions from neutral tell; their number.

    The regressor's rank at these motions is theirs, and what they leave open changes no force.
    """
    rng, states = np.random.default_rng(0), max(60, 3 * rm.parameters(model).values.size)
    q = np.tile(model.neutral(), (states, 1))
    step = 0.02 * rng.uniform(-1, 1, (states, model.nv))
    for _ in range(40):
        q = model.integrate(q, step)
    v, a = rng.normal(size=(2, states, model.nv))
    rows = np.vstack(rm.regressor(model, q, v, a, backend="numpy"))
    sizes = np.linalg.norm(rows, axis=0)
    felt = sizes > 1e-7 * sizes.max(initial=0.0)  # next to change points loops close less exactly
    scaled = rows / np.where(felt, sizes, np.inf)
    singular = np.linalg.svd(scaled, compute_uv=False)
    base = rm.base_parameters(model)
    assert base.rank == np.sum(singular > 1e-10 * singular[0])
    assert base.gap.ratio > 1e4
    _, _, right = np.linalg.svd(base.matrix)
    assert np.abs(rows @ right[base.rank :].T).max(initial=0.0) < 1e-7 * np.abs(rows).max()
    return base.rank


@pytest.mark.parametrize("name", few(MODELS, *(MODELS.keys() - LONG)))
def test_other_motions_tell_no_more(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = MODELS[name]()
    assert check(model) > 0


@pytest.mark.slow
def test_a_geared_motor_beside_a_four_bar() -> None:
    """Near motions take the linkage as far as without the motor: forces far away are explained."""
    motor = """<robot name="motor">
      <link name="motor"><inertial><origin xyz="0 0.01 0"/><mass value="0.2"/>
        <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
      <joint name="j_motor" type="continuous"><parent link="base"/><child link="motor"/>
        <axis xyz="0 1 0"/></joint>
      <coupling name="gear"><predecessor link="link1"/><successor link="motor"/>
        <ratio value="100"/></coupling></robot>"""
    model = rm.load(
        rm.robots.path("four_bar"), extend=motor, independent=["j_motor"], floating_base=True
    )
    base, rng = rm.base_parameters(model), np.random.default_rng(0)
    q, rows = model.neutral(), []
    for _ in range(30):
        step = rng.normal(size=model.nv)
        step[-1] *= 10.0  # 0.1 rad of the crank: no dead point on the way
        q = model.integrate(q, step)
        rows.append(rm.regressor(model, q, *rng.normal(size=(2, model.nv))))
    seen = np.vstack(rows)
    error = np.abs(seen - seen[:, list(base.pivots)] @ base.matrix).max()
    assert error < 1e-12 * np.abs(seen).max()
    assert base.gap.kept > 1e-3


@pytest.mark.slow
def test_a_chain_of_four_bars() -> None:
    """What a coupler only just attains must not let it see what does not move at all."""
    assert check(chain("four_bar", 2)) == 32


def on_a_turning_body(linkage: str) -> str:
    """A file's robot whose ground turns on another about an oblique axis."""
    text = rm.robots.path(linkage).read_text(encoding="utf-8")
    root = rm.load(text).description.joints[0].parent
    return text.replace(
        "</robot>",
        f'{link("carrier")}<joint name="turn" type="continuous"><parent link="carrier"/>'
        f'<child link="{root}"/><origin xyz="0.1 0.2 0" rpy="0.4 0.2 0.1"/>'
        '<axis xyz="0 0.6 0.8"/></joint></robot>',
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["six_bar", "crank_rocker", "five_bar"])
def test_linkages_on_what_moves(name: str) -> None:
    assert check(rm.load(on_a_turning_body(name))) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_mechanisms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = random_mechanism(rng, n_joints=int(rng.integers(1, 5)), special=seed % 2 == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(made.text, floating_base=made.floating_base)
    assert check(model) > 0


@pytest.mark.parametrize("upper", [1.676, 1.5])
def test_rounding_beside_change_points_is_no_effect(upper: float) -> None:
    """An antiparallelogram, which passes its flat positions: forces at others tell its rank."""

    def turns(crank: np.ndarray) -> dict[str, np.ndarray]:
        """Where a rod of 0.8 from the crank's end meets the rocker, and is not parallel."""
        a = 2.0 * np.exp(1j * crank)
        away = 0.8 - a
        b = a + 0.8 * away**2 / np.abs(away) ** 2  # the parallelogram's image in the line to a
        return {"crank": crank, "coupler": np.angle((b - a) / a), "rocker": np.angle(b - 0.8)}

    drawn = {name: float(x) for name, x in turns(np.array(1.2)).items()}
    more = {name: f'<initial position="{x!r}"/>' for name, x in drawn.items()}
    more["rocker"] += f'<limit lower="-9" upper="{drawn["rocker"] + upper!r}"/>'
    model = rm.load(
        texts.robot(
            *(texts.link(name) for name in drawn),
            texts.joint("crank", "base", "crank", more=more["crank"]),
            texts.joint("coupler", "crank", "coupler", "2 0 0", more=more["coupler"]),
            texts.joint("rocker", "base", "rocker", "0.8 0 0", kind="revolute",
                        more=more["rocker"]),
            texts.loop("closing", "revolute", "coupler", "rocker", "0.8 0 0", "2 0 0"),
        )
    )  # fmt: skip
    rng, at = np.random.default_rng(0), turns(np.linspace(0.4, 2.7, 60))
    q = np.stack([at[name] for name in model.joint_names], axis=1)
    assert np.abs(model.residual(q)).max() < 1e-12
    y = rm.regressor(model, q, rng.normal(size=(60, 1)), rng.normal(size=(60, 1)))[:, 0]
    y = y[:, np.any(y != 0.0, axis=0)]
    size = np.linalg.svd(y / np.linalg.norm(y, axis=0), compute_uv=False)
    rank = int(np.sum(size > 1e-6))
    assert size[rank:].max(initial=0.0) < 1e-12
    assert rm.base_parameters(model).rank == rank


@pytest.mark.slow
def test_branches() -> None:
    """A parallelogram's bodies keep their orientations; crossed, they do not."""
    model = rm.robots.load("four_bar")
    flat = rm.base_parameters(model)
    joint = model.joints[0].name
    turned = model.configuration({joint: 0.4})
    assert rm.base_parameters(model, near=turned).names == flat.names
    crossed = None
    for seed in range(40):
        q = model.random_configuration(np.random.default_rng(seed), branch="any")
        ratios = model.constraint_jacobian(q)[:, 0]
        if np.abs(np.abs(ratios) - 1.0).max() > 0.05:
            crossed = q
            break
    assert crossed is not None
    assert rm.base_parameters(model, near=crossed).rank > flat.rank
    with pytest.raises(ValueError, match="near is one configuration"):
        rm.base_parameters(model, near=np.stack([crossed, crossed]))
    with pytest.raises(rm.errors.ClosureError):
        rm.base_parameters(model, near=crossed + 0.1)


@pytest.mark.parametrize(
    "name", few(["puma560", "belt_leg", "crank_rocker"], "belt_leg", "crank_rocker")
)
def test_shipped_robots(name: str) -> None:
    assert check(rm.robots.load(name)) > 0


@pytest.mark.parametrize(
    "name", few(["puma560", "six_bar", "belt_leg", "mini_cheetah"], "belt_leg", "mini_cheetah")
)
def test_regressor_and_rank_by_pinocchio(name: str) -> None:
    """Gᵀ times Pinocchio's regressor of the spanning tree, its columns in this package's order."""
    model = rm.robots.load(name)
    oracle = Oracle(rm.robots.path(name).read_text(), names=list(model.joint_names))
    rng, count = np.random.default_rng(0), 3 if name == "mini_cheetah" else 60
    data, rows = oracle.model.createData(), []
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # its inertias are xx xy yy xz yz zz
    frames = [oracle.model.frames[oracle._link_frame(b.name)] for b in model.bodies]
    bodies = [parent_joint(frame) - 1 for frame in frames]
    columns = [10 * b + c for b in bodies for c in order]
    for _ in range(count):
        q = model.random_configuration(rng, near=model.neutral())
        v, a = rng.normal(size=(2, model.nv))
        big = model.constraint_jacobian(q)
        positions = dict(model.joint_positions(q))
        if model.floating_base is not None:
            positions[model.floating_base] = q[:7]
        spanning = big @ a + model.constraint_bias(q, v)
        y = pin.computeJointTorqueRegressor(
            oracle.model, data, oracle.state(positions), oracle._theirs(big @ v),
            oracle._theirs(spanning),
        )  # fmt: skip
        rows.append(big.T @ y[oracle._order][:, columns])
        own = rm.regressor(model, q, v, a, backend="numpy")[:, : len(columns)]
        assert np.abs(own - rows[-1]).max() < 1e-11 * np.abs(own).max()
    if count < 60:
        return
    stacked = np.vstack(rows)
    sizes = np.linalg.norm(stacked, axis=0)
    singular = np.linalg.svd(stacked / np.where(sizes > 1e-9, sizes, np.inf), compute_uv=False)
    base = rm.base_parameters(model)
    inertial = base.matrix[:, : len(columns)]
    scaled = inertial / np.maximum(np.abs(inertial).max(axis=1, keepdims=True), 1e-9)
    expected = np.linalg.matrix_rank(scaled, 1e-9)
    assert np.sum(singular > 1e-8 * singular[0]) == expected
    if name == "puma560":
        assert expected == 36  # as the literature counts (Mayeda, Gautier, Khalil)


@pytest.mark.parametrize(
    ("ratio", "axis", "pair"), [(6.0, "0 0 1", 14), (1.0, "0 0 1", 10), (6.0, "0 1 0", 15)]
)
def test_geared_pairs(ratio: float, axis: str, pair: int) -> None:
    base = rm.base_parameters(geared(ratio, axis))
    losses = sum(name.startswith(("damping", "friction")) for name in base.names)
    assert base.rank - losses == 10 + pair


def test_a_pendulum_and_a_free_body() -> None:
    pendulum = robot("a", '<joint name="j" type="continuous"><parent link="base"/>'
                          '<child link="a"/><axis xyz="0 1 0"/></joint>')  # fmt: skip
    base = rm.base_parameters(rm.load(pendulum))
    assert base.names == (
        "damping of j", "friction of j", "mx of a", "mz of a", "Iyy of a + armature of j",
    )  # fmt: skip
    assert set(base.alone) == {"a.mx", "a.mz", "j.damping", "j.friction"}
    assert set(base.together) == {"a.Iyy", "j.armature"}
    assert len(base.never) == 7
    upright = rm.base_parameters(rm.load(pendulum.replace("0 1 0", "0 0 1")))
    assert "Izz of a + armature of j" in upright.names
    assert upright.rank == 3
    free = rm.base_parameters(rm.load('<robot name="r">' + link("a") + "</robot>",
                                      floating_base=True))  # fmt: skip
    assert free.rank == 10
    assert len(free.alone) == 10
    assert np.array_equal(np.sort(np.abs(free.matrix).sum(axis=1)), np.ones(10))


SLIDER = """<robot name="r"><gravity xyz="0 -9.81 0"/>{links}
<joint name="turn" type="continuous"><parent link="base"/><child link="crank"/>
  <axis xyz="0 0 1"/></joint>
<joint name="elbow" type="continuous"><parent link="crank"/><child link="rod"/>
  <origin xyz="{crank} 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="slide" type="prismatic"><parent link="base"/><child link="piston"/>
  <origin xyz="{far} {aside} 0"/><axis xyz="1 0 0"/><limit lower="-{far}" upper="{far}"/></joint>
<loop name="pin" type="revolute"><predecessor link="rod"><origin xyz="{rod} 0 0"/></predecessor>
  <successor link="piston"/><axis xyz="0 0 1"/></loop></robot>"""


@pytest.mark.parametrize("size", [1e-5, 1e-3, 10.0, 1e3])
def test_groups_are_those_of_robots_of_other_sizes(size: float) -> None:
    """Coefficients are powers of lengths; of slides too, whose damping is told by itself."""

    def slider(size: float) -> BaseParameters:
        lengths = {"crank": 0.2, "rod": 0.5, "far": 0.7, "aside": 0.03}
        links = '<link name="base"/>' + "".join(map(link, ("crank", "rod", "piston")))
        numbers = {name: f"{size * length:.15g}" for name, length in lengths.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)
            return rm.base_parameters(rm.load(SLIDER.format(links=links, **numbers)))

    usual, other = slider(1.0), slider(size)
    assert {"slide.damping", "slide.friction"} <= {*usual.alone}
    slides = {"slide.friction": 1, "slide.damping": 2, "slide.armature": 2}
    kinds = {"mass": 2, "mx": 1, "my": 1, "mz": 1}
    powers = np.array([slides.get(x, kinds.get(x.rpartition(".")[2], 0)) for x in usual.parameters])
    expected = usual.matrix * size ** (powers - powers[[*usual.pivots], None])
    assert other.pivots == usual.pivots
    assert np.allclose(other.matrix, expected, rtol=1e-9, atol=0.0)


@pytest.mark.slow
def test_what_is_not_seen_changes_no_force() -> None:
    for model in (spatial(), rm.robots.load("six_bar")):
        base, p = rm.base_parameters(model), rm.parameters(model)
        rng = np.random.default_rng(0)
        change = rng.normal(size=len(p.names)) * np.maximum(np.abs(p.values), 1e-3)
        change -= np.linalg.lstsq(base.matrix, base.matrix @ change, rcond=None)[0]
        assert np.abs(base.matrix @ change).max() < 1e-9 * np.abs(change).max()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)  # such bodies need not exist
            other = rm.with_parameters(model, p.values + change)
        for _ in range(5):
            q = model.random_configuration(rng, near=model.neutral())
            v, a = rng.normal(size=(2, model.nv))
            tau = rm.regressor(model, q, v, a) @ p.values
            again = rm.regressor(other, q, v, a) @ rm.parameters(other).values
            assert np.abs(again - tau).max() < 1e-8 * max(1.0, np.abs(tau).max())


@pytest.mark.slow
def test_what_is_measured_and_contacts() -> None:
    model = rm.load(rm.robots.path("five_bar"), floating_base=True)
    whole = rm.base_parameters(model)
    joints = [name for name in model.dof_names if "." not in name]
    part = rm.base_parameters(model, measured=joints)
    assert part.rank < whole.rank
    # an unknown wrench on the base takes what is known in its six coordinates
    root = model.bodies[0].name
    held = rm.base_parameters(model, contacts=root)
    same_reduction(part, held)
    point = rm.base_parameters(model, contacts=[(root, (0.1, 0.2, 0.3))])
    assert part.rank <= point.rank <= whole.rank
    # what can be told of less can be told of more
    solved = np.linalg.lstsq(whole.matrix.T, part.matrix.T, rcond=None)[0]
    assert np.abs(whole.matrix.T @ solved - part.matrix.T).max() < 1e-8
    assert rm.base_parameters(model, measured=model.dof_names).rank == whole.rank
    limit = '<limit lower="-3" upper="3" effort="5" velocity="3"/>'
    arm = robot("ab", joint("j0", "revolute", "base", "a", "0 0 0", "0 1 0", limit)
                + joint("j1", "continuous", "a", "b", "0.3 0 0", "0 1 0"))  # fmt: skip
    driven = rm.base_parameters(rm.load(arm), measured="actuators")
    same_reduction(driven, rm.base_parameters(rm.load(arm), measured="j0"))
    assert driven.rank < rm.base_parameters(rm.load(arm)).rank
    loose = rm.load(arm.replace(limit, "").replace("revolute", "continuous"))
    assert rm.base_parameters(loose, measured="actuators").rank == 0


@pytest.mark.slow
def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in (
        (["identify", "four_bar", "--what"], 0),
        (["identify", "four_bar", "--what", "--json"], 0),
        (["identify", "four_bar", "--what", "--measured", "joint1"], 0),
        (["identify", "four_bar", "--what", "--contact", "link9"], 2),
        (["identify", "four_bar"], 2),
    ):
        with pytest.raises(SystemExit) as done:
            main(arguments)
        assert done.value.code == status
        said = capsys.readouterr()
        if status:
            assert said.err.count("\n") == 1
        elif "--json" in arguments:
            document = json.loads(said.out)
            base = rm.base_parameters(rm.robots.load("four_bar"))
            assert document["rank"] == base.rank
            assert [each["name"] for each in document["base"]] == list(base.names)
        else:
            assert "Never: without effect" in said.out
            assert "In combinations: each sum" in said.out
            assert "the neutral configuration's branch" in said.out
            where = "joint1" if "--measured" in arguments else "all coordinates"
            assert f"Forces are known in {where}." in said.out


@pytest.mark.slow
def test_words_of_a_floating_robot_with_rotors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["identify", "belt_leg", "--what", "--floating-base"])
    said = capsys.readouterr().out
    assert done.value.code == 0
    assert "those of the floating base are zero, or the contacts' as measured" in said
    assert "branch" not in said
    combined, never = said.split("In combinations")[1], said.partition("Never")[2]
    assert "friction of knee_link_joint + 12 friction of knee_rotor_joint" in combined
    assert "m of ground + m of hip_ry_link + m of hip_ry_rotor" in combined
    assert never == ""  # a floating base feels all


def test_nothing_moves() -> None:
    still = rm.load('<robot name="r"><link name="a"/></robot>')
    assert rm.base_parameters(still).rank == 0


@pytest.mark.parametrize("leading", ["nut", "stroke", "trunnion"])
def test_base_parameters_do_not_depend_on_which_joints_are_independent(leading: str) -> None:
    """A screw's trunnion turns back within the range: the nut is fast there, others count, too."""
    knee, other = (rm.load(screw_leg("nut", 1.0), independent=[x]) for x in ("knee", leading))
    mine, its = rm.base_parameters(knee), rm.base_parameters(other)
    assert its.pivots == mine.pivots
    np.testing.assert_allclose(its.matrix, mine.matrix, rtol=1e-5, atol=1e-7)
    assert its.gap.kept > 1e-4
    assert its.gap.dropped < 1e-12
