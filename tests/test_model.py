"""The model: clusters, redundancy, independent coordinates, and what is refused and how."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mobility import ClusterProblem


def refused(text: str, **options: object) -> rm.DescriptionError:
    with pytest.raises(rm.DescriptionError) as caught:
        rm.load(text, **options)
    return caught.value


# ---- structure -----------------------------------------------------------------------------------


def test_mini_cheetah_is_twelve_geared_joints_on_a_base() -> None:
    model = rm.robots.load("mini_cheetah")
    assert (model.nq, model.nv, len(model.bodies), len(model.clusters)) == (19, 18, 25, 13)
    assert model.mass == pytest.approx(8.912, abs=1e-12)
    assert model.floating_base == "Floating Base_joint"
    assert model.dof_names[:7] == (
        *(f"Floating Base_joint.{c}" for c in ("wx", "wy", "wz", "vx", "vy", "vz")),
        "HR_abad_link_joint",
    )
    assert len(model.joint_names) == 25
    assert model.joint_names[0] == model.floating_base
    g = model.constraint_jacobian(model.neutral())
    rows, columns = list(model.joint_names), list(model.dof_names)
    rotor = rows.index("FL_knee_rotor_joint") + 5
    assert g[rotor, columns.index("FL_knee_link_joint")] == 9.33
    assert np.count_nonzero(g[rotor]) == 1


def test_gears_are_explicit_and_loops_are_not() -> None:
    legs = rm.robots.load("mini_cheetah")
    assert {c.kind for c in legs.clusters} == {"joint", "couplings"}
    assert all(c.explicit and not c.redundant for c in legs.couplings)
    bar = rm.robots.load("four_bar")
    assert [c.kind for c in bar.clusters] == ["loops"]
    assert (bar.nq, bar.nv) == (3, 1)


@pytest.mark.parametrize(
    ("name", "nq", "nv", "clusters"),
    [("four_bar", 3, 1, 1), ("six_bar", 5, 3, 1), ("planar_leg_linkage", 4, 2, 2)],
)
def test_planar_linkages_lose_their_redundant_rows(
    name: str, nq: int, nv: int, clusters: int
) -> None:
    model = rm.robots.load(name)  # no warning: the redundancy of a planar linkage is no fault
    assert (model.nq, model.nv, len(model.clusters)) == (nq, nv, clusters)
    (found,) = model.loops
    assert (found.rows, found.rank, found.redundant) == (5, 2, 3)


def test_loops_within_loops_are_one_cluster_and_chained_ones_are_not() -> None:
    second = four_bar(
        link("lever"),
        link("rod"),
        joint("j_lever", "rocker", "lever", "0.7 0 0"),
        joint("j_rod", "rocker", "rod", "0.2 0.2 0"),
        loop("upper", "revolute", "lever", "rod", "0.4 0 0", "0.5 0 0"),
    )
    # a lever and a rod hang on the rocker alone: a cluster of their own, but a locked one
    assert "mobility 0" in str(refused(second))
    watt = four_bar(
        link("lever"),
        link("rod"),
        joint("j_lever", "coupler", "lever", "0.5 0.2 0"),
        joint("j_rod", "base", "rod", "0.4 1.2 0"),
        loop("upper", "revolute", "lever", "rod", "0.6 0 0", "0.6 0 0"),
    )
    model = rm.load(watt)
    assert [len(c.bodies) for c in model.clusters] == [5]
    assert model.nv == 1
    assert [(x.rank, x.redundant) for x in model.loops] == [(2, 3), (2, 3)]


def test_a_cluster_may_hang_on_two_bodies_of_another() -> None:
    text = four_bar(
        link("left"),
        link("right"),
        joint("j_left", "coupler", "left", "0.3 0 0", axis="1 0 0"),
        joint("j_right", "rocker", "right", "0.3 0 0", axis="0 1 0"),
        coupling("fingers", {"j_left": 1.0, "j_right": -2.0}),
    )
    model = rm.load(text)
    assert [len(c.bodies) for c in model.clusters] == [3, 2]
    assert len(model.clusters[1].outputs) == 2
    assert model.clusters[1].parent == 0


def test_joints_across_branches_bring_what_lies_between() -> None:
    text = robot(
        *(link(n) for n in ("upper_l", "lower_l", "upper_r", "lower_r")),
        joint("a", "base", "upper_l"),
        joint("b", "upper_l", "lower_l"),
        joint("c", "base", "upper_r"),
        joint("d", "upper_r", "lower_r", more='<mimic joint="b"/>'),
    )
    model = rm.load(text)
    (cluster,) = model.clusters
    assert set(cluster.joints) == {"a", "b", "c", "d"}
    assert set(model.dof_names) == {"a", "b", "c"}


# ---- independent coordinates ---------------------------------------------------------------------


def test_the_file_chooses_the_independent_joint() -> None:
    model = rm.load(four_bar(marks=(False, True, False)))
    assert model.dof_names == ("j_coupler",)
    assert model.notes == ()
    # marked true by default: what is not marked false
    assert rm.load(four_bar(marks=(False, False, None))).dof_names == ("j_rocker",)


def test_a_silent_file_is_chosen_for_and_told() -> None:
    model = rm.load(four_bar())
    assert model.dof_names == ("j_crank",)
    (note,) = model.notes
    assert "'j_crank' chosen as independent" in note


def test_the_caller_overrides_the_file() -> None:
    text = four_bar(marks=(True, False, False))
    assert rm.load(text, independent=["j_rocker"]).dof_names == ("j_rocker",)
    assert "did you mean 'j_rocker'" in str(refused(text, independent=["j_roker"]))
    assert "2 are marked independent" in str(refused(text, independent=["j_crank", "j_rocker"]))


def test_couplings_determine_their_successor_and_mimics_themselves() -> None:
    gear = '<coupling name="gear"><predecessor link="link_a"/><successor link="link_b"/></coupling>'
    assert rm.load(fan(gear)).dof_names == ("a", "c")
    model = rm.load(fan(gear), independent=["b"])
    assert model.dof_names == ("b", "c")


def test_three_independents_in_a_one_dof_linkage() -> None:
    error = refused(four_bar(marks=(True, True, True)))
    assert error.element == "loop 'closing'"
    for words in (
        "mobility 1 = 3 joint velocities ('j_crank', 'j_coupler', 'j_rocker')",
        "less 2 independent conditions ('closing')",
        "but 3 are marked independent",
        'mark 2 of them independent="false"',
    ):
        assert words in str(error)


def test_too_many_dependents() -> None:
    text = str(refused(four_bar(marks=(False, False, False))))
    assert "mobility 1" in text
    assert "only 0 may be independent; unmark 1 of them" in text


def test_a_joint_that_cannot_move_is_no_coordinate() -> None:
    """A hinge across the plane of a four-bar is locked by it; its mobility lies elsewhere."""
    text = robot(
        *(link(n) for n in ("crank", "coupler", "tilted", "rocker")),
        joint("j_crank", "base", "crank", mark=False),
        joint("j_coupler", "crank", "coupler", "0.5 0 0", mark=False),
        joint("j_tilt", "coupler", "tilted", "0.5 0 0", axis="0.6 0.8 0", mark=True),
        joint("j_rocker", "base", "rocker", "1.1 0 0", mark=False),
        loop("closing", "revolute", "tilted", "rocker", "0.5 0 0", "0.7 0 0"),
    )
    error = refused(text)
    assert "'j_tilt' cannot be the independent coordinates" in str(error)
    assert "take 'j_crank'" in str(error)
    model = rm.load(text, independent=["j_crank"])
    assert (model.loops[0].rank, model.loops[0].redundant) == (3, 2)
    assert np.abs(model.joint_positions(model.random_configuration(1))["j_tilt"]) < 1e-9


# ---- redundancy and contradiction ----------------------------------------------------------------


def test_a_loop_given_twice_is_named() -> None:
    again = loop("again", "revolute", "rocker", "coupler", "0.7 0 0", "1 0 0")
    with pytest.warns(rm.DescriptionWarning, match=r"loop 'again': adds nothing.*remove it"):
        model = rm.load(four_bar(again))
    assert [(x.rank, x.redundant) for x in model.loops] == [(2, 3), (0, 5)]
    once = rm.load(four_bar())
    q = once.random_configuration(3)
    assert rm.crba(model, q) == pytest.approx(rm.crba(once, q), rel=1e-13)
    assert "adds nothing" in str(refused(four_bar(again), strict=True))


def test_a_loop_that_repeats_the_joint_beside_it() -> None:
    text = robot(link("a"), joint("j", "base", "a"), loop("l", "revolute", "base", "a"))
    with pytest.warns(rm.DescriptionWarning, match="adds nothing"):
        model = rm.load(text)
    plain = rm.load(robot(link("a"), joint("j", "base", "a")))
    q = model.random_configuration(0)
    assert rm.aba(model, q, [1.0], [1.0]) == pytest.approx(rm.aba(plain, q, [1.0], [1.0]))
    assert model.integrate(q, [0.3]) == pytest.approx(q + 0.3)


def test_a_coupling_given_twice_is_marked() -> None:
    text = fan(coupling("one", {"a": 2, "b": -1}), coupling("two", {"a": -4, "b": 2}))
    with pytest.warns(rm.DescriptionWarning, match="coupling 'two': adds nothing"):
        model = rm.load(text)
    assert [c.redundant for c in model.couplings] == [False, True]
    assert model.nv == 2


@pytest.mark.slow
def test_a_loop_that_cannot_close() -> None:
    error = refused(four_bar(closing=loop("far", "revolute", "coupler", "rocker", "0.1 0 0")))
    assert error.element == "loop 'far'"
    assert error.line == 9
    # ground 1.1 against 0.5 + 0.1 at full stretch
    assert "cannot close: the smallest gap found is 0.5 " in str(error)


def test_a_loop_that_closes_only_backwards() -> None:
    """A revolute loop between opposed axes meets every row with the axis the wrong way round."""
    text = robot(
        link("a"),
        link("b"),
        joint("j_a", "base", "a"),
        joint("j_b", "base", "b", rpy="3.141592653589793 0 0"),
        loop("clash", "revolute", "a", "b"),
    )
    assert "only with an axis the wrong way round" in str(refused(text))


def test_a_loop_that_nearly_closes_is_taken_as_exact_and_told() -> None:
    closing = (
        '<loop name="near" type="revolute"><predecessor link="coupler">'
        '<origin xyz="1 0 1e-5" rpy="0 3.7e-6 0"/></predecessor>'
        '<successor link="rocker"><origin xyz="0.7 0 0"/></successor><axis xyz="0 0 1"/></loop>'
    )
    with pytest.warns(rm.DescriptionWarning, match="closes only nearly"):
        model = rm.load(four_bar(closing=closing), mend=False)
    assert model.nv == 1
    with pytest.warns(RuntimeWarning, match="loops 'near' stay open by 1e-05"):
        q = model.random_configuration(0)
    assert np.max(np.abs(model.residual(q))) < 2e-5
    exact = rm.load(four_bar())
    assert rm.crba(model, q) == pytest.approx(rm.crba(exact, q), rel=1e-9)


def test_no_motion_left() -> None:
    closing = loop("weld", "fixed", "crank", "rocker", "1.1 0 0")
    error = refused(four_bar(closing=closing).replace('link="coupler"', 'link="coupler"'))
    assert "leaves no motion: mobility 0 = 2 joint velocities" in str(error)


def test_two_couplings_that_contradict_each_other() -> None:
    apart = refused(
        fan(coupling("one", {"a": 2, "b": -1}), coupling("two", {"a": 2, "b": -1}, 0.1))
    )
    assert apart.element == "coupling 'two'"
    assert "contradicts the couplings before it: it leaves 0 = 0.1" in str(apart)
    locked = refused(fan(coupling("one", {"a": 2, "b": -1}), coupling("two", {"a": 3, "b": -1})))
    assert "mobility 0" in str(locked)
    assert "'one', 'two'" in str(locked)


def test_a_loop_without_a_joint_between_its_ends() -> None:
    text = four_bar(link("plate"), joint("bolt", "base", "plate", kind="fixed"))
    text = text.replace("</robot>", loop("idle", "revolute", "base", "plate") + "</robot>")
    assert "which no moving joint separates" in str(refused(text))


def test_a_coupling_needs_joints_on_both_sides() -> None:
    text = fan('<coupling name="k"><predecessor link="base"/><successor link="link_a"/></coupling>')
    assert "no moving joint stands between 'base'" in str(refused(text))


def test_couplings_are_between_joints_of_one_freedom() -> None:
    text = robot(
        link("a"),
        link("b"),
        joint("ball", "base", "a", kind="planar"),
        joint("hinge", "base", "b"),
        '<coupling name="k"><predecessor link="a"/><successor link="b"/></coupling>',
    )
    assert "cannot relate joint 'ball', which is planar" in str(refused(text))


def test_a_rod_of_no_length() -> None:
    text = four_bar(closing=loop("rod", "rod", "crank", "rocker", "1.1 0 0", more=""))
    assert "its ends coincide at the zero configuration" in str(refused(text))


def test_a_joint_that_moves_no_mass_is_warned_of() -> None:
    text = fan(link("pointer", ""), joint("tip", "link_c", "pointer"))
    with pytest.warns(rm.DescriptionWarning, match="joint 'tip': moves no mass"):
        rm.load(text)


# ---- loop types ----------------------------------------------------------------------------------


@pytest.mark.slow_cases(
    "planar-3",
    "spherical-3",
    "prismatic-5",
    "universal-4",
    "continuous-5",
    "revolute-5",
    "fixed-6",
    "rod-1",
)
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("revolute", 5),
        ("continuous", 5),
        ("prismatic", 5),
        ("planar", 3),
        ("fixed", 6),
        ("spherical", 3),
        ("universal", 4),
        ("rod", 1),
    ],
)
def test_what_each_loop_type_takes(kind: str, rows: int) -> None:
    """Two free bodies, joined: 12 velocities less the type's conditions; K is its derivative."""
    more = '<axis xyz="0.36 -0.48 0.8"/>' if kind not in ("fixed", "spherical", "rod") else ""
    text = robot(
        link("a"),
        link("b"),
        joint("free_a", "base", "a", kind="floating"),
        joint("free_b", "base", "b", kind="floating"),
        loop("l", kind, "a", "b", "0.1 0.2 0.3", "-0.2 0.1 0.4", more),
    )
    model = rm.load(text)
    assert (model.nv, model.loops[0].rank, model.loops[0].redundant) == (12 - rows, rows, 0)
    q = model.random_configuration(5)
    assert np.max(np.abs(model.residual(q))) < 1e-10


@pytest.mark.slow
def test_the_axis_and_its_sign_are_honoured() -> None:
    def turned(axis: str) -> rm.Model:
        return rm.load(
            robot(
                link("a"),
                link("b"),
                joint("j", "base", "a"),
                joint("free", "base", "b", kind="floating"),
                loop("l", "prismatic", "a", "b", more=f'<axis xyz="{axis}"/>'),
            )
        )

    for axis, direction in (("0 1 0", (0, 1, 0)), ("0 -1 0", (0, 1, 0)), ("1 0 0", (1, 0, 0))):
        model = turned(axis)
        q = model.random_configuration(2)
        angle = model.joint_positions(q)["j"]
        offset = rm.frame_pose(model, q, "b")[:3, 3]
        c, s = np.cos(angle), np.sin(angle)
        along = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ direction
        assert np.linalg.norm(np.cross(along, offset)) < 1e-12
        assert np.linalg.norm(offset) > 1e-3


# ---- equal words ---------------------------------------------------------------------------------


def test_mimic_coupling_and_gear_say_the_same() -> None:
    gear = (
        '<coupling name="k"><predecessor link="link_a"/><successor link="link_b"/>'
        '<ratio value="-2.5"/><offset value="0.3"/></coupling>'
    )
    mimic = fan().replace(
        '<child link="link_b"/>',
        '<child link="link_b"/><mimic joint="a" multiplier="-2.5" offset="0.3"/>',
    )
    models = [
        rm.load(fan(gear)),
        rm.load(mimic),
        rm.load(fan(coupling("k", {"b": 1.0, "a": 2.5}, 0.3)), independent=["a"]),
    ]
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 2))
    for model in models:
        assert model.dof_names == ("a", "c")
        assert model.joint_positions(q)["b"] == pytest.approx(-2.5 * q[0] + 0.3, rel=1e-15)
        assert rm.rnea(model, q, v, a) == pytest.approx(rm.rnea(models[0], q, v, a), rel=1e-14)
        assert rm.aba(model, q, v, a) == pytest.approx(rm.aba(models[0], q, v, a), rel=1e-14)


def test_a_planar_joint_is_two_slides_and_a_hinge() -> None:
    planar = rm.load(robot(link("a"), joint("p", "base", "a", kind="planar", axis="0 0 1")))
    chain = rm.load(
        robot(
            link("x", ""),
            link("y", ""),
            link("a"),
            joint("px", "base", "x", kind="prismatic", axis="1 0 0"),
            joint("py", "x", "y", kind="prismatic", axis="0 1 0"),
            joint("rz", "y", "a"),
        )
    )
    rng = np.random.default_rng(1)
    q, qd, tau = rng.standard_normal((3, 3))
    c, s = np.cos(q[2]), np.sin(q[2])
    turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])  # the chain's rates in the child's axes
    assert rm.crba(chain, q) == pytest.approx(turn.T @ rm.crba(planar, q) @ turn, rel=1e-13)
    a = rm.aba(planar, q, turn @ qd, turn @ tau)
    turn_rate = qd[2] * np.array([[-s, c, 0], [-c, -s, 0], [0, 0, 0]])
    assert a == pytest.approx(turn @ rm.aba(chain, q, qd, tau) + turn_rate @ qd, rel=1e-12)


def test_a_screw_is_a_geared_slide() -> None:
    screw = rm.load(
        robot(link("a"), joint("s", "base", "a", kind="screw", more='<pitch value="0.05"/>'))
    )
    chain = rm.load(
        robot(
            link("nut", ""),
            link("a"),
            joint("slide", "base", "nut", kind="prismatic"),
            joint("turn", "nut", "a"),
            coupling("thread", {"slide": 1.0, "turn": -0.05}),
        ),
        independent=["turn"],
    )
    assert rm.aba(screw, [0.4], [2.0], [0.7]) == pytest.approx(
        rm.aba(chain, [0.4], [2.0], [0.7]), rel=1e-13
    )


# ---- whole files ---------------------------------------------------------------------------------


def test_floating_base_follows_the_caller() -> None:
    text = four_bar().replace('<link name="base"/>', link("base"))
    assert rm.load(text).floating_base is None
    free = rm.load(text, floating_base=True)
    assert (free.floating_base, free.nv, free.nq) == ("floating_base", 7, 10)
    assert free.mass == pytest.approx(4.0)
    cheetah = rm.robots.path("mini_cheetah")
    assert rm.load(cheetah, floating_base=True).nv == 18
    fixed = rm.load(cheetah, floating_base=False)
    assert (fixed.floating_base, fixed.nv) == (None, 12)
    assert fixed.mass == pytest.approx(8.912 - 3.3)


@pytest.mark.slow
def test_a_long_chain_loads_and_computes() -> None:
    count = 3000
    parts = [link("l0")]
    for i in range(count):
        parts += [link(f"l{i + 1}"), joint(f"j{i}", f"l{i}", f"l{i + 1}", "0.01 0 0")]
    model = rm.load(robot(*parts, joint("bolt", "base", "l0", kind="fixed")))
    assert model.nv == count
    q = np.zeros(count)
    assert rm.frame_pose(model, q, f"l{count}")[0, 3] == pytest.approx(30.0)
    assert np.isfinite(rm.aba(model, q, q, q)).all()


@pytest.mark.slow
def test_models_pickle() -> None:
    for name in rm.robots.names():
        model = rm.robots.load(name)
        copy = pickle.loads(pickle.dumps(model))
        q = model.random_configuration(0)
        mass = [rm.crba(each, q, backend="numpy") for each in (copy, model)]
        np.testing.assert_array_equal(*mass)
        assert copy.dof_names == model.dof_names


def test_a_file_that_never_moves_loads() -> None:
    model = rm.load(robot(link("a"), joint("bolt", "base", "a", kind="fixed")))
    assert (model.nq, model.nv, model.bodies) == (0, 0, ())
    assert rm.rnea(model, [], [], []).shape == (0,)
    assert "nothing moves" in model.notes[0]


def test_clusters_are_shown_for_people() -> None:
    """The names of what moves, what ties it and what moves it; no pages of numbers."""
    assert repr(rm.robots.load("five_bar").clusters[0]) == (
        "<Cluster 'link1': joints 'J1', 'J3', 'J2', 'J4' tied by 'J5', moved by 'J1', 'J2'>"
    )
    cheetah = rm.robots.load("mini_cheetah")
    assert repr(cheetah.clusters[0]) == "<Cluster 'Floating Base': joints 'Floating Base_joint'>"
    for name in rm.robots.names():
        assert all(len(repr(cluster)) < 500 for cluster in rm.robots.load(name).clusters)


def test_the_package_lists_what_it_offers() -> None:
    assert set(dir(rm)) >= set(rm.__all__)
    assert all(getattr(rm, name) is not None for name in dir(rm))
    assert not {"TYPE_CHECKING", "_MOTION", "annotations"} & set(dir(rm))


@pytest.mark.slow
def test_clusters_that_differ_in_names_only_are_studied_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Left and right legs, and a robot that is loaded again; what is wrong is said by name."""
    from robomodel.mobility import exploration
    from robomodel.mobility.exploration import ClosedConfigurations, Open

    studied: list[str] = []
    sampled = exploration._sampled

    def counting(question: ClusterProblem) -> ClosedConfigurations | Open:
        studied.append(question.name)
        return sampled(question)

    monkeypatch.setattr(exploration, "_sampled", counting)
    exploration._explored.cache_clear()
    model = rm.robots.load("tello")
    linkages = [cluster for cluster in model.clusters if cluster.implicit]
    assert len(studied) == 2 < len(linkages)
    for cluster in linkages:
        assert isinstance(cluster.constraint, LoopConstraint)
        assert cluster.constraint.loops == cluster.geometry.loops  # each with its own names
    assert len({loop.name for c in linkages for loop in c.geometry.loops}) == len(model.loops)
    again = rm.robots.load("tello")
    assert len(studied) == 2
    np.testing.assert_array_equal(again.neutral(), model.neutral())
    text = rm.robots.path("four_bar").read_text(encoding="utf-8")
    far = text.replace(
        '<origin xyz="1 0 0"/>\n    </predecessor>', '<origin xyz="9 0 0"/></predecessor>'
    )
    assert far != text
    for name in ("loop", "shut"):
        error = refused(far.replace('<loop name="loop"', f'<loop name="{name}"'))
        assert f"'{name}'" in str(error)
        assert "cannot close" in str(error)
    assert len(studied) == 3  # also what does not close
