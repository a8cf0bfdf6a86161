"""Rotors of many joints at once, and links of the robot that are rotors."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.parsers import read
from robomodel.vocabulary.rotors import filled, matching, with_rotor_words

ROTOR = (
    '<inertial><mass value="0.3"/><inertia ixx="2e-5" iyy="3e-5" izz="4e-5" ixy="1e-6" ixz="0" '
    'iyz="0"/></inertial>'
)
NAMES = ("FL_hip", "FL_knee", "FR_hip", "FR_knee")
PARENTS = {"FL_hip": "base", "FL_knee": "FL_hip", "FR_hip": "base", "FR_knee": "FR_hip"}


def leg(*more: str) -> str:
    """Two legs of two joints, each with a link beside it that is fixed to the joint's parent."""
    parts = []
    for name in NAMES:
        parts += [link(name), link(f"{name}_rotor", ROTOR)]
        parts += [joint(f"{name}_joint", PARENTS[name], name, "0.1 0.2 0.3", axis="0 1 0")]
        held = joint(f"{name}_mount", PARENTS[name], f"{name}_rotor", "0 0.1 0", kind="fixed")
        parts += [held]
    return robot(*parts, *more)


def extension(*parts: str) -> str:
    return f'<robot name="more">\n{"".join(parts)}</robot>'


class TestWildcards:
    @pytest.mark.parametrize(
        ("pattern", "name", "stands"),
        [
            ("*", "", [""]),
            ("*_hip", "FL_hip", ["FL"]),
            ("*_*_joint", "a_b_c_joint", ["a", "b_c"]),
            ("a*", "a", [""]),
            ("a*a", "a", None),
            ("a*b*c", "abbc", ["", "b"]),
            ("a*b", "acbc", None),
            ("a.b", "axb", None),
            ("**", "ab", ["", "ab"]),
        ],
    )
    def test_what_matches(self, pattern, name, stands):
        assert matching(pattern, [name]) == ({} if stands is None else {name: stands})

    @given(st.lists(st.text("ab_", max_size=3), min_size=2, max_size=5), st.text("ab_", max_size=6))
    @settings(max_examples=200, deadline=None)
    def test_what_they_stand_for_gives_the_name(self, pieces, name):
        pattern = "*".join(pieces)
        for found, stands in matching(pattern, [name, "x".join(pieces)]).items():
            assert filled(pattern, stands) == found
            assert len(stands) == pattern.count("*")

    def test_what_has_fewer_stays(self):
        assert filled("*_*", ["a"]) == "a_*"


class TestManyAtOnce:
    def test_a_wildcard_is_each_joint_by_name(self):
        rotor = rm.Rotor(inertia=6e-5, ratio=9.0, mass=0.1, transverse=3e-5)
        wild = rm.load(leg(), rotors={"*_hip_joint": rotor}, floating_base=True)
        named = {"FL_hip_joint": rotor, "FR_hip_joint": rotor}
        one_by_one = rm.load(leg(), rotors=named, floating_base=True)
        written = extension(
            '<joint name="*_hip_joint">'
            '<rotor inertia="6e-5" ratio="9" mass="0.1" transverse="3e-5"/></joint>'
        )
        extended = rm.load(leg(), extend=written, floating_base=True)
        plain = rm.load(leg(), floating_base=True)
        q = np.stack([wild.random_configuration(seed) for seed in range(3)])
        M = rm.crba(wild, q)
        np.testing.assert_array_equal(rm.crba(one_by_one, q), M)
        np.testing.assert_array_equal(rm.crba(extended, q), M)
        more = np.diagonal(M - rm.crba(plain, q), axis1=-2, axis2=-1)[:, 6:]
        hips = [name.endswith("hip_joint") for name in wild.dof_names[6:]]
        np.testing.assert_allclose(more[:, hips], 81 * 6e-5, rtol=1e-9)
        assert len(wild.couplings) == 2

    def test_all_that_can_have_one(self):
        text = leg(link("puck"), joint("slab", "base", "puck", kind="planar"))
        assert len(rm.load(text, rotors={"*": rm.Rotor(1e-4, 3.0)}).couplings) == 4

    def test_later_ones_count(self):
        rotors = {"*": rm.Rotor(1e-4, 3.0), "*_knee_joint": rm.Rotor(1e-4, 5.0)}
        found = {each.name: each.ratio for each in read(leg(), rotors=rotors).couplings}
        expected = {"hip": 3.0, "knee": 5.0}
        assert found == {f"{name}_joint_rotor": expected[name[3:]] for name in NAMES}

    def test_extensions_change_what_wildcards_mean(self):
        text = extension('<joint name="FL_*"><dynamics damping="0.5"/></joint>')
        damping = {each.name: each.damping for each in read(leg(), extend=text).joints}
        assert {name for name, each in damping.items() if each} == {"FL_hip_joint", "FL_knee_joint"}

    def test_other_formats(self):
        rotor = rm.Rotor(1e-4, 3.0)
        sdf = (
            '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"><inertial><mass>1'
            "</mass></inertial></link><joint name='w' type='fixed'><parent>world</parent><child>a"
            "</child></joint><joint name='elbow' type='revolute'><parent>a</parent><child>b</child>"
            "<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
        )
        with pytest.warns(rm.DescriptionWarning):
            model = rm.load(sdf, rotors={"el*": rotor})
        assert [each.name for each in model.couplings] == ["elbow_rotor"]


class TestLinksThatAreRotors:
    @pytest.mark.parametrize("way", ["keyword", "extension"])
    def test_fixed_links_turn(self, way):
        rotors = {"*_joint": rm.Rotor(link="*_rotor", ratio=7.0, damping=0.1)}
        text = extension(
            '<joint name="*_joint"><rotor link="*_rotor" ratio="7" damping="0.1"/></joint>'
        )
        options = {"rotors": rotors} if way == "keyword" else {"extend": text}
        found = read(leg(), **options)
        assert [each.name for each in found.links] == [each.name for each in read(leg()).links]
        mounts = {each.name: each for each in found.joints if each.name.endswith("_mount")}
        assert len(mounts) == 4
        for each in mounts.values():
            assert (each.type, each.axis, each.independent) == (
                "continuous",
                (0.0, 1.0, 0.0),
                False,
            )
            assert each.damping == 0.1
        ends = {
            each.name: (each.predecessor, each.successor, each.ratio) for each in found.couplings
        }
        assert ends == {f"{name}_joint_rotor": (name, f"{name}_rotor", 7.0) for name in NAMES}

    @pytest.mark.slow
    @given(st.integers(0, 10**6))
    @settings(max_examples=15, deadline=None)
    def test_the_axis_is_the_driven_joints_wherever_the_link_stands(self, seed):
        """Against the same robot with the rotor's joint written out."""
        rng = np.random.default_rng(seed)
        turns = Rotation.random(4, random_state=seed)
        rpy = [" ".join(map(repr, map(float, turn.as_euler("xyz")))) for turn in turns]
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        # the driven joint on base → plate, the rotor on base → bracket
        there, here = turns[0] * turns[1], turns[2] * turns[3]
        seen = here.inv().apply(there.apply(axis))
        text, about = (" ".join(map(repr, map(float, each))) for each in (axis, seen))
        carriers = [
            link("body", INERTIAL),
            joint("turn", "base", "body"),
            link("plate", ""),
            joint("to_plate", "body", "plate", "1 2 3", kind="fixed", rpy=rpy[0]),
            link("bracket", ""),
            joint("to_bracket", "body", "bracket", "3 2 1", kind="fixed", rpy=rpy[2]),
            link("arm"),
            joint("drive", "plate", "arm", "0.1 0 0", rpy=rpy[1], axis=text),
            link("spinner", ROTOR),
        ]
        held = joint("mount", "bracket", "spinner", "0.2 0 0", kind="fixed", rpy=rpy[3])
        free = joint("mount", "bracket", "spinner", "0.2 0 0", rpy=rpy[3], axis=about)
        gear = (
            '<coupling name="gear"><predecessor link="arm"/><successor link="spinner"/>'
            '<ratio value="-11"/></coupling>'
        )
        rotors = {"drive": rm.Rotor(link="spinner", ratio=-11.0)}
        declared = rm.load(robot(*carriers, held), rotors=rotors, floating_base=True)
        written = rm.load(robot(*carriers, free, gear), floating_base=True)
        plain = {"backend": "numpy"}
        q, v = declared.random_configuration(rng), rng.normal(size=declared.nv)
        for ours, theirs in zip(
            (rm.crba(declared, q, **plain), rm.bias_force(declared, q, v, **plain)),
            (rm.crba(written, q, **plain), rm.bias_force(written, q, v, **plain)),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)

    def test_of_a_transmission(self):
        text = leg(
            '<transmission name="t"><joint name="FL_hip_joint"/><actuator name="m">'
            '<mechanicalReduction>4</mechanicalReduction><rotor link="FL_hip_rotor"/></actuator>'
            "</transmission>"
        )
        (coupling,) = read(text).couplings
        assert (coupling.name, coupling.successor, coupling.ratio) == ("m_rotor", "FL_hip_rotor", 4)

    def test_a_transmission_without_a_joint_drives_nothing(self):
        text = leg(
            '<transmission name="t"><type>SimpleTransmission</type><actuator name="m">'
            '<rotor link="FL_hip_rotor"/></actuator></transmission>'
        )
        with pytest.raises(rm.DescriptionError, match="needs 1 <joint>, got 0"):
            read(text)

    def test_of_a_differential(self):
        ends = "".join(f'<joint name="{name}_joint"/>' for name in ("FL_hip", "FL_knee"))
        motors = "".join(
            f'<actuator name="m{i}"><mechanicalReduction>4</mechanicalReduction>{rotor}</actuator>'
            for i, rotor in enumerate(('<rotor link="FL_hip_rotor"/>', '<rotor inertia="1e-4"/>'))
        )
        kind = "<type>transmission_interface/DifferentialTransmission</type>"
        text = leg(f'<transmission name="t">{kind}{ends}{motors}</transmission>')
        first, second = read(text).couplings
        assert dict(first.terms) == {
            "FL_hip_mount": 1.0,
            "FL_hip_joint": -4.0,
            "FL_knee_joint": -4.0,
        }
        assert second.terms[0] == ("m1_rotor", 1.0)


REFUSED = [
    ({"FR_hip_jiont": rm.Rotor(1e-4, 9.0)}, "no such joint in the robot", "mean 'FR_hip_joint'"),
    ({"*_hop_joint": rm.Rotor(1e-4, 9.0)}, "no such joints of one degree of freedom", "did you"),
    ({"FL_hip_mount": rm.Rotor(1e-4, 9.0)}, "is fixed, and a rotor drives"),
    ({"FL_hip_joint": rm.Rotor(-1e-4, 9.0)}, "inertia -0.0001 is not positive"),
    ({"FL_hip_joint": rm.Rotor(ratio=9.0)}, "inertia 0 is not positive"),
    ({"FL_hip_joint": rm.Rotor(1e-4, float("nan"))}, "not finite"),
    ({"FL_hip_joint": rm.Rotor(1e-4, 0.0)}, "ratio of <rotor> is 0"),
    ({"FL_hip_joint": rm.Rotor(1e-4)}, 'needs ratio="..."'),
    ({"FL_hip_joint": rm.Rotor(1e-4, 2.0, link="FL_hip_rotor")}, "leave inertia, mass and"),
    ({"FL_hip_joint": rm.Rotor(ratio=2.0, link="FL_hip_rotr")}, "did you mean 'FL_hip_rotor'"),
    ({"FL_hip_joint": rm.Rotor(ratio=2.0, link="FL_knee")}, "moves already"),
    ({"FL_knee_joint": rm.Rotor(ratio=2.0, link="FL_hip_rotor")}, "is held by 'base'"),
    ({"FL_*_joint": rm.Rotor(ratio=2.0, link="FL_hip_rotor")}, "is held by 'base'"),
    ({"*_hip_joint": rm.Rotor(ratio=2.0, link="FL_hip_rotor")}, "is the rotor of joint 'FL_hip"),
]


class TestRefusals:
    @pytest.mark.parametrize(("rotors", *("words", "more")), [(*each, "")[:3] for each in REFUSED])
    def test_what_is_no_rotor(self, rotors, words, more):
        with pytest.raises(rm.DescriptionError) as caught:
            rm.load(leg(), rotors=rotors)
        assert words in str(caught.value)
        assert more in str(caught.value)

    def test_links_that_carry_others_or_have_no_inertial(self):
        carried = leg(link("tip"), joint("end", "FL_hip_rotor", "tip", kind="fixed"))
        rotors = {"FL_hip_joint": rm.Rotor(ratio=2.0, link="FL_hip_rotor")}
        with pytest.raises(rm.DescriptionError, match="carries other links"):
            rm.load(carried, rotors=rotors)
        with pytest.raises(rm.DescriptionError, match="has no <inertial>"):
            rm.load(leg().replace(ROTOR, ""), rotors=rotors)

    def test_other_types(self):
        with pytest.raises(TypeError, match=r"rotors\['FL_hip_joint'\] is a Rotor, got float"):
            rm.load(leg(), rotors={"FL_hip_joint": 1e-4})

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            ('<joint name="FL_hip_jiont"><limit effort="1"/></joint>', "mean 'FL_hip_joint'"),
            ('<joint name="*_hipp_joint"><limit effort="1"/></joint>', "no such joints of one"),
            ('<joint name="*_joint"><rotor inertia="1" gear="9"/></joint>', "mean 'ratio'"),
            ('<joint name="*_joint"><rotor inertia="1" ratoi="9"/></joint>', "mean 'ratio'"),
            ('<joint name="*_joint"><rotor gear_ratio="9" link="x"/></joint>', "mean 'ratio'"),
            (f'<link name="FL_hp">{INERTIAL}</link>', "did you mean 'FL_hip'?"),
        ],
    )
    def test_slips_in_extensions(self, element, words):
        with pytest.raises(rm.DescriptionError) as caught:
            rm.load(leg(), extend=extension(element))
        assert words in str(caught.value)
        assert (caught.value.file, caught.value.line) == ("<text>", 2)

    def test_a_second_word_for_the_ratio_is_only_warned_of(self):
        text = extension(
            '<joint name="FL_hip_joint"><rotor inertia="1" ratio="9" gear="9"/></joint>'
        )
        with pytest.warns(rm.DescriptionWarning, match="'gear' of <rotor> is not known"):
            rm.load(leg(), extend=text)


def test_rotors_of_a_description_do_not_change_it():
    """Rotors are given to the model that is loaded, not to the text."""
    rotor = rm.Rotor(1e-4, 3.0)
    assert replace(rotor, ratio=4.0).ratio == 4.0
    first, second = (read(leg(), rotors={"*_hip_joint": rotor}) for _ in range(2))
    assert first == second
    assert all(one.name != other.name for one, other in pairwise(first.couplings))


def test_words_stay_words() -> None:
    """Of joints and actuators, about any axis; ratios can be changed in the file."""
    ends = '<joint name="j"><role>joint1</role></joint><joint name="k"><role>joint2</role></joint>'
    motors = "".join(
        f'<actuator name="m{i}"><role>actuator{i}</role><rotor inertia="2e-5" mass="0.01"/>'
        "<mechanicalReduction>5</mechanicalReduction></actuator>"
        for i in (1, 2)
    )
    text = robot(
        link("a"), link("b"), link("c"),
        joint("i", "base", "a", axis="0.36 0.48 -0.8",
              more='<rotor inertia="6.3e-5" ratio="-6" transverse="3e-5" damping="1e-4"/>'),
        joint("j", "a", "b", "0.3 0 0"), joint("k", "b", "c", axis="1 0 0"),
        f'<transmission name="d"><type>DifferentialTransmission</type>{ends}{motors}'
        "</transmission>",
    )  # fmt: skip
    model = rm.load(text)
    stream = io.StringIO()
    rm.write_urdf(model, stream)
    written = stream.getvalue()
    assert written.count("<rotor ") == 3
    assert "_rotor" not in written
    again = rm.load(written)
    assert again.joint_names == model.joint_names
    assert [each.terms for each in again.couplings] == [each.terms for each in model.couplings]
    q = model.random_configuration(0)
    np.testing.assert_array_equal(
        rm.crba(again, q, backend="numpy"), rm.crba(model, q, backend="numpy")
    )
    other = rm.load(written.replace('ratio="-6"', 'ratio="-7"'))
    assert rm.armature(other, backend="numpy")[0] == pytest.approx(49 * 6.3e-5, rel=1e-12)
    changed = replace(model.description, couplings=model.description.couplings[::-1])
    assert with_rotor_words(changed) is changed
