"""MJCF in several files: includes, meshes, attached models, and where files are looked for."""

import os
import re

import mujoco
import numpy as np
import pytest
from mjcf_texts import LINK, VERSION, body, files, joint, world
from mujoco_oracle import MujocoSide, assert_smooth_dynamics

import robomodel as rm
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.parsers import read

# ---- files ---------------------------------------------------------------------------------------

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_includes(tmp_path):
    path = files(
        tmp_path,
        main_xml=world('<include file="parts/a.xml"/>'),
        parts__a_xml=f'<mujocoinclude><body name="a">{LINK}\n<joint name="j"/>'
        '<include file="parts\\b.xml"/></body></mujocoinclude>',
        parts__b_xml=f"<m>\n\n{body('b', joint('k'))}</m>",
    )
    assert_smooth_dynamics(rm.load(path), MujocoSide.of(path))
    b = read(path).links[-1]
    assert (os.path.basename(b.source.file), b.source.line) == ("b.xml", 3)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("/etc/passwd", "relative to the model"),
        ("~/a.xml", "relative to the model"),
        ("C:\\a.xml", "relative to the model"),
        ("http://a/b.xml", "relative to the model"),
        ("../../../../../a.xml", "5 folders up"),
        ("sub/../../../../../../a.xml", "5 folders up"),
        (".hidden/a.xml", "hidden"),
        ("../.ssh/a.xml", "hidden"),
        ("a.txt", "must end in"),
        ("link.xml", "out of the folders"),
        ("folder.xml", "not a plain file"),
        ("pipe.xml", "not a plain file"),
        ("gone.xml", "no file"),
        ("main.xml", "read already"),
        ("a\0.xml", "null|relative|not well-formed"),
    ],
)
def test_files_that_are_not_read(tmp_path, written, message):
    folder = tmp_path / "deep" / "er" / "model"
    folder.mkdir(parents=True)
    (tmp_path / "outside.xml").write_text(world())
    (folder / "link.xml").symlink_to(tmp_path / "outside.xml")
    (folder / "folder.xml").mkdir()
    os.mkfifo(folder / "pipe.xml")
    path = folder / "main.xml"
    path.write_bytes(world(f'<include file="{written}"/>').encode())
    with pytest.raises(DescriptionError, match=message):
        read(path)


def test_a_package_with_folders_beside_the_model(tmp_path):
    path = files(
        tmp_path / "robot" / "mjcf",
        main_xml=world(
            '<body name="a"><joint name="j" axis="1 2 3"/><geom type="mesh" mesh="t"/></body>',
            before='<compiler meshdir="../meshes"/>'
            '<asset><mesh file="t.obj" scale="1 2 3"/></asset>',
        ),
    )
    files(tmp_path / "robot" / "meshes", t_obj=TETRAHEDRON)
    assert_smooth_dynamics(rm.load(path), MujocoSide.of(path))
    (shape, _) = read(path).links[1].shapes
    assert (shape.kind, shape.file, shape.size) == ("mesh", "../meshes/t.obj", (1, 2, 3))
    assert shape.origin.xyz == (0, 0, 0)


def test_text_has_no_folder():
    text = world('<body name="a"><include file="a.xml"/></body>')
    with pytest.raises(DescriptionError, match="no folder"):
        read(text)


MESH = '<asset>\n<mesh name="m" file="{}"/></asset>'


@pytest.mark.parametrize("file", ["gone.stl", "/gone.stl", "gone.dae"])
def test_meshes_are_needed_only_where_inertia_depends_on_them(tmp_path, file):
    geom = '<geom type="mesh" mesh="m" {}/>'
    for inside in (
        LINK + geom.format(""),
        '<geom size="1"/>' + geom.format('mass="0" contype="0" conaffinity="0"'),
        '<geom size="1"/>' + geom.format('density="0"'),
    ):
        path = files(
            tmp_path,
            main_xml=world(
                geom.format(""),
                f'<body name="a"><joint name="j"/>{inside}</body>',
                f'<body name="fixed">{geom.format("")}</body>',
                before=MESH.format(file),
            ),
        )
        with pytest.warns(DescriptionWarning, match="there is no file .*dynamics do not depend"):
            said = read(path)
        assert said.links[0].shapes[0].file == file
        assert said.links[1].inertial is not None
        assert said.links[2].inertial is None
    path = files(
        tmp_path,
        main_xml=world(
            f'<body name="a"><joint/>{geom.format("")}</body>', before=MESH.format(file)
        ),
    )
    with pytest.raises(DescriptionError, match=r"gone\.\w+") as caught:
        read(path)
    assert caught.value.line == 2


def test_a_broken_mesh_is_told_with_its_line(tmp_path):
    path = files(
        tmp_path,
        main_xml=world(
            '<body name="a"><joint/><geom type="mesh" mesh="m"/></body>',
            before=MESH.format("m.stl"),
        ),
        m_stl="solid nonsense",
    )
    with pytest.raises(DescriptionError) as caught:
        read(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("words", ['type="mesh"', 'type="box"', 'type="capsule" mass="2"'])
def test_meshes_and_what_is_fitted_to_them(tmp_path, words):
    path = files(
        tmp_path,
        main_xml=world(
            f'<body name="a"><joint name="j" axis="1 1 0"/><geom {words} mesh="t" pos="1 2 3" '
            'euler="30 20 10"/></body>',
            before='<default><mesh scale="2 1 3"/></default>'
            '<asset><mesh file="parts/t.obj"/></asset>',
        ),
        parts__t_obj=TETRAHEDRON,
    )
    side = MujocoSide.of(path)
    assert_smooth_dynamics(rm.load(path), side)
    shape = read(path).links[1].shapes[0]
    if words == 'type="mesh"':
        assert shape.size == (2, 1, 3)
        np.testing.assert_allclose(shape.origin.xyz, (1, 2, 3), atol=1e-15)
    elif words == 'type="box"':
        np.testing.assert_allclose(shape.size, 2 * side.model.geom_size[0], rtol=1e-15)


@pytest.mark.skipif(VERSION < (3, 4), reason="attached models need a newer version")
def test_attached_models(tmp_path):
    attach = '<attach model="sub" body="a" prefix="{}"/>'
    path = files(
        tmp_path,
        main_xml=world(
            body("a", joint("j"), attach.format("left_"), attach.format("right_")),
            before='<asset><mesh name="t" file="t.obj"/>'
            '<model name="sub" file="sub/sub.xml"/></asset>',
        ),
        t_obj=TETRAHEDRON,
        sub__sub_xml=world(
            '<body name="a"><joint name="j"/><geom type="mesh" mesh="t"/><body name="b">\n<joint '
            'name="k"/><geom size="0.1" pos="0.3 0 0"/></body></body>',
            before='<asset><mesh name="t" file="t.obj" scale="0.5 1 1"/></asset>',
        ),
        sub__t_obj=TETRAHEDRON,
    )
    model = rm.load(path)
    assert model.joint_names == ("j", "left_j", "left_k", "right_j", "right_k")
    assert_smooth_dynamics(model, MujocoSide.of(path))
    link = next(each for each in read(path).links if each.name == "right_b")
    assert (os.path.basename(link.source.file), link.source.line) == ("sub.xml", 1)


WHERE = {  # folders of files that include others: what the main file, sub/ and sub/deep/ hold
    "beside the main file": ("sub/i.xml", "", "t.obj", ["t.obj"]),
    "beside the included one": ("sub/i.xml", "", "t.obj", ["sub/t.obj"]),
    "beside both": ("sub/i.xml", "", "t.obj", ["t.obj", "sub/t.obj"]),
    "in meshdir and beside": ("sub/i.xml", "md", "t.obj", ["md/t.obj", "sub/t.obj"]),
    "not in meshdir": ("sub/i.xml", "md", "t.obj", ["sub/t.obj"]),
    "with a path of its own": ("sub/i.xml", "", "x/t.obj", ["sub/x/t.obj"]),
    "up and down": ("sub/i.xml", "", "../x/t.obj", ["x/t.obj"]),
    "included by the included": ("sub/o.xml", "", "t.obj", ["sub/deep/t.obj"]),
    "not beside the one between": ("sub/o.xml", "", "t.obj", ["sub/t.obj"]),
    "meshdir of the included": ("sub/i.xml", "md", "t.obj", ["sub/md/t.obj"]),
}


@pytest.mark.parametrize("where", WHERE)
def test_files_are_where_mujoco_looks_for_them(tmp_path, where):
    included, meshdir, file, meshes = WHERE[where]
    asset = f'<mujoco><asset><mesh name="t" file="{file}"/></asset></mujoco>'
    path = files(
        tmp_path,
        main_xml=world(
            '<body name="a"><joint axis="1 1 0" name="j"/><geom type="mesh" mesh="t"/></body>',
            before=f'<include file="{included}"/><compiler meshdir="{meshdir}"/>',
        ),
        sub__i_xml=asset,
        sub__o_xml='<mujoco><include file="deep/i.xml"/></mujoco>',
        sub__deep__i_xml=asset,
    )
    for scale, mesh in enumerate(meshes):
        (tmp_path / mesh).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mesh).write_text(TETRAHEDRON.replace("v 0 0 1", f"v 0 0 {1 + scale}"))
    try:
        side = MujocoSide.of(path)
    except ValueError:
        with pytest.raises(DescriptionError, match="no file"):
            read(path)
    else:
        assert_smooth_dynamics(rm.load(path), side)
        assert os.path.normpath(read(path).links[1].shapes[0].file) == meshes[0]


def test_an_include_is_looked_for_beside_the_main_file_first(tmp_path):
    path = files(
        tmp_path,
        main_xml=world('<include file="sub/o.xml"/>'),
        sub__o_xml='<m><include file="i.xml"/></m>',
        sub__i_xml=f"<m>{body('inner', joint('k'))}</m>",
        i_xml=f"<m>{body('outer', joint('k'))}</m>",
    )
    assert read(path).links[1].name == "outer"
    assert_smooth_dynamics(rm.load(path), MujocoSide.of(path))


def test_mujoco_sees_no_path_and_leaves_no_log(tmp_path, monkeypatch):
    """All that is handed over is text and bytes; warnings become issues, not files."""
    seen = []
    real = mujoco.MjModel.from_xml_string

    class Spy:
        @staticmethod
        def from_xml_string(text, assets):
            seen.append((text, assets))
            return real(text, assets)

    path = files(
        tmp_path,
        main_xml=world(
            '<body name="a"><joint name="j"/><geom type="mesh" mesh="t"/></body>',
            before='<asset><mesh file="t.obj"/><texture type="2d" file="x.png" name="x"/>'
            '<hfield file="h.png" name="h" size="1 1 1 1"/><skin file="s.skn"/></asset>'
            '<size memory="1000G"/>',
            rest='<keyframe><key qpos="1 2 3"/></keyframe><sensor><no/></sensor>',
        ),
        t_obj=TETRAHEDRON,
    )
    monkeypatch.setattr(mujoco, "MjModel", Spy)
    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    read(path)
    assert len(seen) == 3
    for text, assets in seen:
        named = re.findall(r'file="([^"]*)"', text)
        assert set(named) == set(assets)
        assert "1000G" not in text
    assert sorted(os.listdir(tmp_path)) == ["main.xml", "t.obj"]
    assert mujoco.get_mju_user_warning() is before
