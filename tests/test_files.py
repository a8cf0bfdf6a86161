"""Files from anyone: plain, in their folder, of bounded size; what a user names may be a pipe."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from texts import four_bar

import robomodel as rm
from robomodel import files
from robomodel.errors import DescriptionError, Source

SOURCE = Source("robot.urdf", 7, "link 'a'")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and links as POSIX has them")


def contents(path: Path, most: int = 100, within: tuple[Path, ...] = ()) -> bytes:
    folders = [str(folder) for folder in within]
    return files.contents(str(path), "the file 'x'", SOURCE, most=most, within=folders)


def refused(path: Path, message: str, most: int = 100, within: tuple[Path, ...] = ()) -> None:
    with pytest.raises(DescriptionError, match=message) as caught:
        contents(path, most, within)
    assert caught.value.source == SOURCE
    assert caught.value.message.startswith("the file 'x' ")


def test_a_plain_file_of_bounded_size(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert contents(file) == b"x" * 100
    refused(file, "larger than", most=99)
    with pytest.raises(FileNotFoundError):
        contents(tmp_path / "none")
    refused(tmp_path / ("x" * 5000), "cannot be read: .*too long")
    refused(Path("a\0b"), "cannot be read: .*null")


def test_a_sparse_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(2**40)
    refused(tmp_path / "sparse", "larger than 1 MiB", most=2**20)


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "zero", Path("/dev/null")):
        refused(path, "is not a plain file")


def test_links_stay_in_the_folders(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "in2"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_bytes(b"found")
    (inside / "near").symlink_to(inside / "file")
    (inside / "far").symlink_to(outside / "file")
    (inside / "up").symlink_to(tmp_path)
    (tmp_path / "alias").symlink_to(inside)
    assert contents(inside / "near", within=(inside,)) == b"found"
    assert contents(tmp_path / "alias" / "near", within=(tmp_path / "alias",)) == b"found"
    assert contents(inside / "far", within=(inside, outside)) == b"found"
    for path in (inside / "far", inside / "up" / "in2" / "file", outside / "file"):
        refused(path, "leads out of the folder", within=(inside,))


def test_so_much_and_no_more() -> None:
    allowance = files.Allowance(bytes=10, files=3)
    allowance.spend(10, "the file 'x'", SOURCE)
    with pytest.raises(DescriptionError, match="one too many"):
        allowance.spend(1, "the file 'y'", SOURCE)
    allowance = files.Allowance(files=1)
    allowance.spend(0, "the file 'x'", SOURCE)
    with pytest.raises(DescriptionError, match="the file 'y' is one too many"):
        allowance.spend(0, "the file 'y'", SOURCE)


# ---- what a user names ---------------------------------------------------------------------------


def test_robots_and_extensions_are_plain_files_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "robot.urdf").write_text(four_bar())
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(DescriptionError, match="neither a plain file nor a pipe") as caught:
            rm.load(path)
        assert caught.value.file == str(path)
        with pytest.raises(DescriptionError, match="neither a plain file nor a pipe"):
            rm.load(tmp_path / "robot.urdf", extend=path)
    with pytest.raises(IsADirectoryError):
        rm.load(tmp_path)


@pytest.mark.parametrize("late", [False, True])
def test_a_pipe_with_a_writer_is_read(late: bool, tmp_path: Path) -> None:
    """As a shell makes one of a command: robomodel info <(xacro ...)."""
    reader, writer = os.pipe()
    text = four_bar().encode() + b" " * 200_000  # more than a pipe holds

    def write() -> None:
        with open(writer, "wb") as stream:
            stream.write(text)

    thread = threading.Timer(0.05 if late else 0.0, write)
    thread.start()
    try:
        assert rm.load(f"/dev/fd/{reader}").nv == 1
    finally:
        thread.join()
        os.close(reader)
