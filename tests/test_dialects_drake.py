"""Loops, mimics and joints as Drake and Gazebo write them."""

from __future__ import annotations

import numpy as np
import pytest
from dialect_texts import NUMPY, SPRUNG, chain, drake, gap, placed, said
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.parsers import read

# ---- Drake ---------------------------------------------------------------------------------------


def points(tag, first="coupler", second="rocker", more=""):
    return (
        f'\n<drake:{tag}><drake:{tag}_body_A name="{first}"/><drake:{tag}_p_AP value="1 0 0"/>'
        f'<drake:{tag}_body_B name="{second}"/><drake:{tag}_p_BQ value="0.7 0 0"/>{more}'
        f"</drake:{tag}>"
    )


class TestDrake:
    def test_ball_constraints(self):
        found = read(drake(points("ball_constraint"), points("ball_constraint")), strict=True)
        assert [each.name for each in found.loops] == ["ball_constraint_1", "ball_constraint_2"]
        expected = loop("l", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", "")
        model = rm.load(drake(points("ball_constraint")))
        assert gap(model, rm.load(four_bar(closing=expected))) == 0.0

    def test_springs(self):
        text = drake(points("linear_spring_damper", more=SPRUNG))
        (spring,) = read(text, strict=True).springs
        assert (spring.stiffness, spring.length, spring.damping) == (30.0, 0.4, 2.0)
        assert spring.predecessor.origin.xyz == (1.0, 0.0, 0.0)

    def test_mimic(self):
        ties = '<drake:mimic joint="j_crank" multiplier="-2" offset="0.5"/>'
        text = drake().replace('child link="rocker"/>', f'child link="rocker"/>{ties}')
        found = read(text, strict=True).joints[2].mimic
        assert (found.joint, found.multiplier, found.offset) == ("j_crank", -2.0, 0.5)

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (points("ball_constraint", "cuopler"), "did you mean 'coupler'"),
            (
                points("ball_constraint").replace("_p_AP", "_p_A"),
                "needs a <drake:ball_constraint_p_AP>",
            ),
            (points("linear_spring_damper", more=SPRUNG.replace("30", "-30")), "is not negative"),
            (
                '\n<drake:joint name="j" type="bal"><parent link="base"/></drake:joint>',
                "mean 'ball'",
            ),
        ],
    )
    def test_refusals(self, element, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(drake(element))
        assert words in str(caught.value)
        assert caught.value.line == drake("@").split("@")[0].count("\n") + 2

    def test_damping_of_a_planar_joint(self):
        """Drake has a number for each velocity; three alike are one here."""
        text = robot(
            link("last"), joint("own", "base", "last", "0.1 0.2 0.3", kind="planar", rpy="0 0 0")
        ).replace("</joint>", '<dynamics damping="{}"/></joint>')
        text = text.replace("joint", "drake:joint")
        text = text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"')
        assert read(text.format("0.1 0.1 0.1")).joints[0].damping == 0.1
        with pytest.raises(rm.DescriptionError, match="needs one number, got 3"):
            read(text.format("0.1 0.1 0.2"))

    @pytest.mark.parametrize("kind", ["ball", "planar", "screw", "universal"])
    def test_joints(self, kind):
        """Against Drake's own mass matrix, where the two have the same coordinates."""
        text = robot(
            link("first"),
            link("last"),
            joint("hinge", "base", "first", axis="0 1 0"),
            joint("own", "first", "last", "0.1 0.2 0.3", kind=kind, rpy="0.3 0.4 0.5").replace(
                "joint", "drake:joint"
            ),
        ).replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"')
        if kind == "screw":
            text = text.replace(
                "</drake:joint>", '<drake:screw_thread_pitch value="0.7"/></drake:joint>'
            )
        model = rm.load(text, strict=True)
        expected = {
            "ball": ["own.0", "own.1", "own.2"],
            "planar": ["own.0", "own.1", "own.2"],
            "screw": ["own"],
            "universal": ["own_x", "own_y"],
        }
        assert list(model.dof_names) == ["hinge", *expected[kind]]
        pytest.importorskip("pydrake")
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        plant = MultibodyPlant(0.0)
        Parser(plant).AddModelsFromString(text, "urdf")
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
        plant.Finalize()
        assert plant.num_velocities() == model.nv
        if kind in ("screw", "universal"):
            context = plant.CreateDefaultContext()
            for seed in range(3):
                q = np.random.default_rng(seed).normal(size=model.nq)
                plant.SetPositions(context, q)
                theirs = plant.CalcMassMatrixViaInverseDynamics(context)
                np.testing.assert_allclose(
                    rm.crba(model, q, **NUMPY), theirs, rtol=1e-12, atol=1e-14
                )


SDF_LINK = (
    '<link name="{}"><pose>{} 0 0 0 0 0</pose><inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>'
    "0.1</iyy><izz>0.1</izz></inertia></inertial></link>"
)

SDF_JOINT = (
    '<joint name="j_{1}" type="revolute"><parent>{0}</parent><child>{1}</child><axis><xyz>0 0 1'
    "</xyz></axis>{2}</joint>"
)


class TestDrakeInSdf:
    def model(self, *more, tie=""):
        links = (SDF_LINK.format(name, x) for name, x in (("a", 0), ("b", 1), ("c", 2.5)))
        joints = (
            SDF_JOINT.format(*ends)
            for ends in (("world", "a", ""), ("a", "b", ""), ("world", "c", tie))
        )
        return "\n".join(
            [
                '<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="m">',
                *(*links, *joints, *more),
                "</model></sdf>",
            ]
        )

    def test_ball_constraints(self):
        part = "<drake:ball_constraint_{}>{}</drake:ball_constraint_{}>"
        said = {"body_A": "b", "p_AP": "1 0 0", "body_B": "c", "p_BQ": "-1.2 0 0"}
        inner = "".join(part.format(tag, text, tag) for tag, text in said.items())
        element = f"<drake:ball_constraint>{inner}</drake:ball_constraint>"
        (found,) = read(self.model(element), strict=True).loops
        assert (found.type, found.name, found.source.line) == ("spherical", "ball_constraint_1", 8)
        assert (found.predecessor.link, found.predecessor.origin.xyz) == ("b", (1.0, 0.0, 0.0))
        assert (found.successor.link, found.successor.origin.xyz) == ("c", (-1.2, 0.0, 0.0))
        assert rm.load(self.model(element), independent="j_a").nv == 1
        with pytest.raises(rm.DescriptionError, match="needs a <drake:ball_constraint_p_BQ>"):
            read(self.model(element.replace("p_BQ", "p_B")))
        with pytest.raises(rm.DescriptionError, match="has no link, joint, frame or model 'z'"):
            read(self.model(element.replace(">c<", ">z<")))

    def test_mimic(self):
        tie = '<drake:mimic joint="j_a" multiplier="-2" offset="0.5"/>'
        found = {each.name: each.mimic for each in read(self.model(tie=tie), strict=True).joints}
        assert (found["j_c"].joint, found["j_c"].multiplier, found["j_c"].offset) == (
            "j_a",
            -2,
            0.5,
        )
        assert rm.load(self.model(tie=tie)).nv == 2


# ---- Gazebo --------------------------------------------------------------------------------------


def closed(
    kind="revolute", inner="", pose="", axis="0 0 1", parent="two", child="three", name="tip"
):
    return (
        f'\n<gazebo><joint name="{name}" type="{kind}"><parent>{parent}</parent>'
        f"<child>{child}</child>{pose}<axis><xyz>{axis}</xyz>{inner}</axis></joint></gazebo>"
    )


def tip(turns):
    """The tip, 0.2 0.4 above the third joint, in both links, and the base's z in them."""
    _, b, c = turns
    there = b.inv().apply([1.0 + 0.2 - 0.5, 0.4 - 0.3, 0.0])
    here = c.inv().apply([0.2, 0.4, 0.0])
    return there, here, b.inv(), c.inv()


def text_of(values):
    return " ".join(repr(float(x)) for x in values)


class TestGazebo:
    @pytest.mark.parametrize("way", ["joint frame", "expressed in", "relative to"])
    def test_joints_close_loops_where_they_stand_at_zero(self, way):
        _, turns = chain()
        there, here, to_b, to_c = tip(turns)
        if way == "relative to":
            pose = '<pose relative_to="base">1.2 0.4 0 0 0 0</pose>'
            element = closed(pose=pose)
        else:
            pose = f"<pose>{text_of(here)} 0 0 0</pose>"
            axis = text_of(to_c.apply([0, 0, 1]))
            element = closed(pose=pose, axis=axis)
            if way == "expressed in":
                element = closed(pose=pose).replace("<xyz>", '<xyz expressed_in="__model__">')
        text, _ = chain(element)
        model = rm.load(text)
        assert model.nv == 1
        # the same in our own words: frames parallel to the base's at position zero
        own = (
            '<loop name="tip" type="revolute"><predecessor link="two">'
            f'<origin xyz="{text_of(there)}" rpy="{placed(to_b)}"/></predecessor><successor '
            f'link="three"><origin xyz="{text_of(here)}" rpy="{placed(to_c)}"/></successor>'
            '<axis xyz="0 0 1"/></loop>'
        )
        expected, _ = chain(own)
        reference = rm.load(expected)
        assert reference.nv == 1
        assert gap(model, reference) < 1e-9
        np.testing.assert_allclose(model.neutral(), np.zeros(3), atol=1e-9)

    def test_dynamics_count_and_limits_are_told(self):
        inner = (
            "<dynamics><damping>0.3</damping><friction>0.1</friction>"
            "<spring_stiffness>4</spring_stiffness><spring_reference>0.2</spring_reference>"
            "</dynamics>"
        )
        limits = "<limit><lower>-1</lower><upper>1</upper></limit>"
        text, turns = chain()
        axis = text_of(turns[2].inv().apply([0, 0, 1]))
        pose = f"<pose>{text_of(tip(turns)[1])} 0 0 0</pose>"
        text, _ = chain(closed(inner=inner + limits, pose=pose, axis=axis))
        with pytest.warns(rm.DescriptionWarning, match="limits are not kept") as caught:
            (found,) = read(text).loops
        assert (found.damping, found.friction) == (0.3, 0.1)
        assert (found.stiffness, found.reference) == (4.0, 0.2)
        assert caught[0].message.source.line == text[: text.index("<gazebo")].count("\n") + 1

    @pytest.mark.parametrize("kind", ["revolute", "universal"])
    def test_springs_are_kept(self, kind):
        """Of what closes a loop by itself, and of what becomes joints."""
        words = (
            "<dynamics><damping>2</damping><spring_stiffness>3</spring_stiffness>"
            "<spring_reference>0.4</spring_reference></dynamics>"
        )
        second = "</axis><axis2><xyz>1 0 0</xyz></axis2>"
        element = closed(kind, inner=words).replace(
            "</axis>", second if kind[0] == "u" else "</axis>"
        )
        found = read(chain(element)[0], strict=True)
        held = next(
            each
            for each in (*found.joints, *found.loops)
            if each.name in ("tip", "tip_1") and each.type == "revolute"
        )
        assert (held.damping, held.stiffness, held.reference) == (2.0, 3.0, 0.4)

    def screwed(self, text):
        return robot(
            link("nut"),
            link("screw"),
            joint("slide", "base", "nut", kind="prismatic", axis="0 0 1"),
            joint("spin", "base", "screw", "0 0 0.5", axis="0 0 1"),
            text,
        )

    @pytest.mark.parametrize(
        "pitch",
        ["<thread_pitch>300</thread_pitch>", "<screw_thread_pitch>0.02</screw_thread_pitch>"],
    )
    def test_screws_between_links(self, pitch):
        """As the same mechanism in SDF; a slide and a spindle, the lift of a PR2."""
        element = closed("screw", parent="nut", child="screw").replace(
            "</joint>", f"{pitch}</joint>"
        )
        weight = (
            "<inertial><pose>0.1 0.02 0 0 0 0</pose><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.02"
            "</iyy><izz>0.025</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
        )
        axis = "<axis><xyz>0 0 1</xyz></axis>"
        sdf = (
            '<sdf version="1.11"><model name="m"><link name="base"/>'
            f'<link name="nut">{weight}</link><link name="screw"><pose>0 0 0.5 0 0 0</pose>'
            f"{weight}</link>"
            '<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>'
            '<joint name="slide" type="prismatic"><parent>base</parent><child>nut</child>'
            f'{axis}</joint><joint name="spin" type="revolute"><parent>base</parent>'
            f"<child>screw</child>{axis}</joint>"
            f'<joint name="tip" type="screw"><parent>nut</parent><child>screw</child>{axis}{pitch}'
            "</joint></model></sdf>"
        )
        reference = rm.load(sdf, independent="slide")
        model = rm.load(self.screwed(element), independent="slide")
        assert model.nv == reference.nv == 1
        ours, theirs = (
            each.joint_positions(each.configuration({"slide": 0.01})) for each in (model, reference)
        )
        assert ours["spin"] == pytest.approx(float(theirs["spin"]), rel=1e-12)
        assert abs(ours["spin"]) > 1.0
        q, p = (each.configuration({"slide": 0.01}) for each in (model, reference))
        np.testing.assert_allclose(
            rm.crba(model, q, **NUMPY), rm.crba(reference, p, **NUMPY), rtol=1e-11
        )

    @pytest.mark.parametrize(
        ("kind", "nv", "loops"),
        [("ball", 1, ["spherical"]), ("fixed", 0, ["fixed"]), ("universal", 0, ["fixed"])],
    )
    def test_other_kinds(self, kind, nv, loops):
        text, turns = chain()
        pose = f"<pose>{text_of(tip(turns)[1])} 0 0 0</pose>"
        more = "<axis2><xyz>0 1 0</xyz></axis2></joint>" if kind == "universal" else "</joint>"
        text, _ = chain(closed(kind, pose=pose, axis="1 0 0").replace("</joint>", more))
        found = read(text)
        assert [each.type for each in found.loops] == loops
        if nv:
            assert rm.load(text).nv == nv
        extra = {each.name for each in found.joints} - {"j_one", "j_two", "j_three"}
        assert extra == ({"tip_1", "tip_2"} if kind == "universal" else set())

    def test_a_joint_to_the_world_holds_the_root(self):
        pose = "<pose>0.1 0.2 0.3 0 0 1.5707963267948966</pose>"
        element = closed("prismatic", pose=pose, axis="1 0 0", parent="world", child="base")
        model = rm.load(four_bar(element))
        assert model.nv == 2
        q = model.configuration({"tip": 0.25})
        moved = rm.frame_pose(model, q, "base")[:3, 3]
        np.testing.assert_allclose(moved, [0.0, 0.25, 0.0], atol=1e-15)
        fixed = closed("fixed", parent="world", child="base").replace(
            "<axis><xyz>0 0 1</xyz></axis>", ""
        )
        assert rm.load(four_bar(fixed)).nv == 1

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (closed(parent="tow"), "the link 'tow' is not in the robot; did you mean 'two'"),
            (closed("gearbox"), "a gearbox joint within <gazebo> is not read"),
            (closed(parent="world"), "is not read: the root of the robot is another link"),
            ("\n<gazebo><link name='x'/></gazebo>", "a <link> within <gazebo> is not read"),
            (
                "\n<gazebo reference='one'><gravity>0</gravity></gazebo>",
                "gravity acts on 'one' too",
            ),
        ],
    )
    def test_what_is_not_read_is_named(self, element, words):
        text, _ = chain(element)
        with pytest.warns(rm.DescriptionWarning) as caught:
            found = read(text)
        assert words in said(caught)
        assert caught[0].message.source.line == text[: text.index("<gazebo")].count("\n") + 1
        assert not found.loops

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (closed(name="j_one"), "another joint of the robot has this name"),
            (closed().replace("<axis>", "<axos>").replace("</axis>", "</axos>"), "needs <axis>"),
            (
                closed(pose='<pose relative_to="no">0 0 0 0 0 0</pose>'),
                "has no link, joint, frame or model 'no'",
            ),
            (
                closed("screw", name="two").replace(
                    "<axis>", "<screw_thread_pitch>1</screw_thread_pitch><axis>"
                ),
                "the robot has a 'two' already",
            ),
            (closed("screw"), "needs <screw_thread_pitch>"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
    def test_refusals(self, element, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(chain(element)[0])
        assert words in str(caught.value)

    def test_springs_of_joints(self):
        more = (
            "\n<gazebo reference='j_one'><springStiffness>4</springStiffness><springReference>0.2"
        )
        found = read(chain(f"{more}</springReference></gazebo>")[0], strict=True).joints[0]
        assert (found.stiffness, found.reference) == (4.0, 0.2)

    def test_decoration_says_nothing(self):
        text = "<gazebo reference='one'><material>Gazebo/Red</material></gazebo><gazebo/>"
        plugin = "<gazebo><plugin name='p' filename='x.so'><joint>no</joint></plugin></gazebo>"
        assert read(chain(text, plugin)[0], strict=True).joints == read(chain()[0]).joints
