"""Safe XML: what is refused before anything is parsed, and what broken files are told."""

import os
import sys
import time
from pathlib import Path

import pytest

import robomodel as rm
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.parsers import open_document, read
from robomodel.vocabulary import xml

WHOLE = """<?xml version="1.0"?>
<robot name="é">
 <!-- a comment -->
 <link name="base"/>
 <joint name="knee" type="fixed">
  <parent link="base"/> &amp; <![CDATA[x]]>
 </joint>
</robot>
"""


def refused(source):
    with pytest.raises(DescriptionError) as caught:
        open_document(source)
    return caught.value


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE robot [\n<!ENTITY a0 "ha">\n'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">\n' for i in range(1, 12))
    + ']>\n<robot name="&a11;"/>'
)


class TestSafety:
    def test_an_entity_bomb_is_refused_at_once(self):
        start = time.perf_counter()
        error = refused(BOMB)
        assert time.perf_counter() - start < 0.1
        assert error.line == 3
        assert "entities" in error.message
        assert "DOCTYPE" in error.message

    @pytest.mark.parametrize(
        "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "utf-8-sig"]
    )
    def test_a_bomb_in_another_encoding_is_refused_likewise(self, encoding):
        error = refused(BOMB.encode(encoding))
        assert error.line == 3
        assert "entities" in error.message

    def test_an_external_entity_is_refused_and_not_read(self, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text("the secret")
        error = refused(
            f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{secret.as_uri()}">]><robot name="a">&x;</robot>'
        )
        assert "entities" in error.message
        assert "the secret" not in str(error)

    def test_parameter_entities_are_refused(self):
        error = refused('<!DOCTYPE r [<!ENTITY % x SYSTEM "http://localhost:1/x"> %x;]><robot/>')
        assert "entities" in error.message

    def test_default_attributes_are_refused(self):
        # one default of a megabyte, for a million elements, is the same bomb
        error = refused(
            '<!DOCTYPE robot [\n<!ATTLIST link name CDATA "x">\n]><robot><link/></robot>'
        )
        assert error.line == 2
        assert "attribute defaults" in error.message

    @pytest.mark.parametrize("place", ['<link name="b&foo;"/>', "<link/>&foo;"])
    def test_entities_of_an_external_dtd_are_refused(self, place):
        error = refused(f'<!DOCTYPE robot SYSTEM "x.dtd">\n<robot name="a">{place}</robot>')
        assert error.line == 2
        assert "entit" in error.message

    def test_an_external_dtd_is_not_loaded(self, tmp_path):
        dtd = tmp_path / "robot.dtd"
        dtd.write_text('<!ATTLIST robot name CDATA "from the DTD">')
        document = open_document(f'<!DOCTYPE robot SYSTEM "{dtd.as_uri()}">\n<robot/>')
        assert document.root.attrib == {}

    @pytest.mark.parametrize("quiet", [True, False])
    def test_an_external_dtd_is_not_even_opened(self, tmp_path, quiet):
        """What stands there is no DTD: it would be complained of, or nothing would ever come."""
        dtd = tmp_path / "robot.dtd"
        if quiet:
            os.mkfifo(dtd)
        else:
            dtd.write_text("root:x:0:0:root:/root:/bin/bash\n")
        for body in ("<robot/>", "<robot><link name='a'/><link name='b'></robot>"):
            text = f'<!DOCTYPE robot SYSTEM "{dtd.as_uri()}">\n{body}'
            if body == "<robot/>":
                assert open_document(text).root.tag == "robot"
            else:
                assert "<link> opened in line 2 is not closed" in refused(text).message

    @pytest.mark.parametrize(
        "doctype", ["", "<!DOCTYPE robot>", '<!DOCTYPE robot SYSTEM "http://localhost:1/x.dtd">']
    )
    @pytest.mark.parametrize("body", ['<robot name="&foo;"/>', "<robot>\n&foo;</robot>"])
    def test_references_to_entities_that_nobody_defined(self, doctype, body):
        error = refused(f"{doctype}{body}")
        assert error.line == (2 if "\n" in body else 1)
        assert "entit" in error.message.lower()
        assert "not read" in error.message

    def test_the_size_is_bounded(self, monkeypatch):
        monkeypatch.setattr(xml, "MAX_BYTES", 2**20)
        text = "<robot>" + " " * 2**20 + "</robot>"
        assert "larger than 1 MiB" in refused(text).message
        assert "larger than 1 MiB" in refused(text.encode()).message

    def test_an_endless_file_is_not_read_to_its_end(self, monkeypatch):
        monkeypatch.setattr(xml, "MAX_BYTES", 2**20)

        class Endless:
            total = 0

            def read(self, size):
                self.total += size
                return b"<" * size

        source = Endless()
        assert "larger than 1 MiB" in refused(source).message
        assert source.total <= 2**20 + 1

    def test_the_depth_is_bounded(self):
        assert "nested too deep" in refused("<a>" * 1000 + "</a>" * 1000).message


class TestTruncation:
    def test_the_innermost_open_element_is_named(self):
        error = refused(
            '<robot name="r">\n <link name="base"/>\n <joint name="knee"\n type="fixed">\n  <pa'
        )
        assert error.line == 5
        assert "the file ends inside <joint name='knee'>" in error.message
        assert "truncated" in error.message

    def test_every_prefix_of_a_file_is_called_truncated(self):
        for length in range(1, len(WHOLE.rstrip())):
            error = refused(WHOLE[:length])
            assert "the file ends" in error.message, WHOLE[:length]
            assert error.line == WHOLE[:length].rstrip().count("\n") + 1

    def test_the_whole_file_is_not(self):
        assert open_document(WHOLE).root.get("name") == "é"

    def test_an_unclosed_element_within_is_another_matter(self):
        error = refused("<robot>\n<link>\n<joint></joint>\n</robot>")
        assert error.line == 4
        assert error.message == (
            "<link> opened in line 2 is not closed: the next closing tag is </robot>"
        )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (b"", None, "the file is empty"),
        (b" \n ", None, "the file is empty"),
        (b'{"robot": 1}', 1, "not XML: it begins with '{\"robot\": 1}'"),
        ("<robot>\n<link name=base/></robot>", 2, "must stand in quotes"),
        ("<robot>\n<link name='a' name='b'/></robot>", 2, "given twice"),
        ("<robot>\n<link name='base>\n<link name='b'/></robot>", 3, "closing quote missing"),
        ("<robot>\n<link name='a' <joint name='b'/></robot>", 2, "is a '>' missing"),
        ("<robot>\n<link name/></robot>", 2, "attribute"),
        ("<robot/>\n<robot/>", 2, "one robot"),
        ("<robot>\nnuts & bolts and more</robot>", 2, "&amp;"),
        ("<robot>\n\x01</robot>", 2, "not well-formed XML"),
        ("<robot>\n<xacro:macro/></robot>", 2, "xacro robot.urdf.xacro > robot.urdf"),
        (b"<robot name='a'>\n<link name='\xe9'/></robot>", 2, "save the file as UTF-8"),
        (b"<?xml version='1.0' encoding='utf-7'?><robot/>", 1, "'utf-7' is not read"),
        (b"<?xml version='1.0' encoding='no-such'?><robot/>", 1, "'no-such' is not read"),
        ("<robot name='\ud800'/>", 1, "save the file as UTF-8"),
    ],
)
def test_broken_files_are_told_where_and_what(text, line, words):
    error = refused(text)
    assert error.line == line
    assert words in error.message
    assert error.file == "<text>"


WARNED = [
    ("<robot name='r'>\n<!-- a -- b\n--><link name='a'/></robot>", 2, "comment holds '--'", 3),
    ("<robot name='r'>\n<!----->\n<link name='a'/></robot>", 2, "comment holds '--'", 3),
    (
        "<!-- -- --><robot name='r'><gazebo>\n<sensor:camera g:x='1'/></gazebo>\n"
        "<link name='a'/></robot>",
        2,
        "the prefixes 'g:', 'sensor:' are not declared",
        3,
    ),
    (
        "<robot name='r'><link name='a'/></robot>\n<!-- -->\n<gazebo/>",
        3,
        "<gazebo> after the end of the root element <robot> is ignored",
        1,
    ),
    ("<robot name='r'>\n<link name='a'/></robot>\nthe end", 3, "text after the end", 2),
]


class TestWhatOtherReadersTake:
    @pytest.mark.parametrize(("text", "line", "words", "at"), WARNED)
    def test_plain_meanings_are_read_with_a_warning(self, text, line, words, at):
        with pytest.warns(DescriptionWarning) as caught:
            description = read(text)
        assert words in str(caught[-1].message)
        assert caught[-1].message.source.line == line
        assert [link.source.line for link in description.links] == [at]

    @pytest.mark.parametrize(("text", "line", "words", "at"), WARNED)
    def test_strict_refuses_them(self, text, line, words, at):
        with pytest.raises(DescriptionError) as caught:
            read(text, strict=True)
        assert caught.value.file == "<text>"
        assert caught.value.line == (1 if text.startswith("<!-- -- ") else line)

    def test_what_stands_in_cdata_stays(self):
        text = "<robot><!-- -- --><a><![CDATA[<!-- x -- y -->]]></a><!-- z --></robot>"
        document = open_document(text)
        assert document.root.findtext("a") == "<!-- x -- y -->"
        assert len(document.issues) == 1

    def test_padding_at_the_end_is_nothing(self):
        for padding in ("\0", "\0\0\n", "\x1a", "\r\n\0"):
            assert len(read(f"<robot name='r'><link name='a'/></robot>{padding}").links) == 1

    @pytest.mark.parametrize("end", ["<robot/>", "<robot name='b'><link/></robot>", "<!--"])
    def test_a_second_robot_and_a_half_comment_have_no_plain_meaning(self, end):
        refused(f"<robot name='r'><link name='a'/></robot>\n{end}")

    def test_files_of_simulators_and_what_they_include(self, tmp_path):
        pytest.importorskip("mujoco")
        (tmp_path / "arm.xml").write_text(
            "<mujocoinclude>\n<!-- an -- arm --><body><joint/><geom size='1'/></body>"
            "</mujocoinclude>"
        )
        path = tmp_path / "robot.xml"
        path.write_text(
            "<mujoco><worldbody><include file='arm.xml'/></worldbody></mujoco>\n<mujoco/>"
        )
        with pytest.warns(DescriptionWarning) as caught:
            assert len(read(path).joints) == 1
        sources = [each.message.source for each in caught]
        places = {(Path(source.file).name, source.line) for source in sources}
        assert places == {("robot.xml", 2), ("arm.xml", 2)}

    def test_undeclared_prefixes_of_attributes(self):
        document = open_document("<robot>\n<link gz:name='a' name='b'/></robot>")
        assert document.root[0].get("name") == "b"
        assert "'gz:' is not declared" in document.issues[0].message

    def test_many_half_comments_take_no_time(self):
        start = time.perf_counter()
        refused("<robot><!-- -- -->" + "<!--" * 300_000)
        assert time.perf_counter() - start < 2.0


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
    def test_unicode_is_recognised(self, encoding):
        assert open_document("<robot name='é'/>".encode(encoding)).root.get("name") == "é"

    @pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "gb2312", "utf-16"])
    def test_the_declaration_is_followed(self, encoding):
        text = f"<?xml version='1.0' encoding='{encoding}'?><robot name='è'/>"
        assert open_document(text.encode(encoding)).root.get("name") == "è"

    def test_a_declaration_that_cannot_be_true_is_not(self):
        # programs that write a string to a file as UTF-8 leave the string's own declaration
        data = "<?xml version='1.0' encoding='utf-16'?><robot name='é'/>".encode()
        assert open_document(data).root.get("name") == "é"

    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
    def test_the_declaration_of_a_text_means_nothing(self, encoding):
        text = f"<?xml version='1.0' encoding='{encoding}'?><robot name='é'/>"
        assert open_document(text).root.get("name") == "é"

    def test_a_text_may_begin_with_a_line_break(self):
        document = open_document("\n\n<?xml version='1.0'?>\n<robot name='a'/>")
        assert document.source(document.root, "robot").line == 4


class TestLines:
    @pytest.mark.slow
    def test_lines_are_exact_beyond_libxml2s_count(self):
        text = "<robot name='r'>\n" + "<link name='a'/><axis/>\n" * 70_000 + "</robot>"
        document = open_document(text)
        link, axis = document.root[-2:]
        assert document.source(link, "").line == 70_001
        assert document.source(axis, "").line == 70_001

    def test_comments_do_not_shift_them(self):
        text = "<robot name='r'>\n<!-- a\n\nb -->\n<?x y?>\n<link name='a'/></robot>"
        assert read(text).links[0].source.line == 6


def test_a_default_namespace_says_nothing():
    # as old Drake files have it
    text = '<robot xmlns="http://drake.mit.edu" name="r"><link name="a"/></robot>'
    assert [link.name for link in read(text, strict=True).links] == ["a"]


def test_the_parsers_need_no_deep_stack():
    limit = sys.getrecursionlimit()
    links = "".join(f'<link name="l{i}"/>' for i in range(3000))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(2999)
    )
    assert limit < 3000
    assert len(read(f'<robot name="r">{joints}{links}</robot>').links) == 3000


@pytest.mark.parametrize(
    "name", ["robot.urdf", "robot.xml", "robot.sdf", "robot.usda", "robot.usdc"]
)
def test_pointers_of_git_lfs_are_named(name: str, tmp_path) -> None:
    path = tmp_path / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
    with pytest.raises(rm.DescriptionError, match=r"Git LFS.*git lfs pull") as caught:
        rm.load(path)
    assert caught.value.file == str(path)


def test_a_mesh_that_is_a_pointer_of_git_lfs_is_named(tmp_path) -> None:
    (tmp_path / "part.stl").write_text("version https://git-lfs.github.com/spec/v1\n")
    path = tmp_path / "robot.urdf"
    mesh = '<collision><geometry><mesh filename="part.stl"/></geometry></collision>'
    path.write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    with pytest.raises(rm.DescriptionError, match=r"part.stl.*Git LFS"):
        rm.load(path, inertia_from="collision")
