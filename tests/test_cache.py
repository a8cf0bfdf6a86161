"""The cache of machine code: kept, trusted only where it may be, rebuilt when broken."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robomodel as rm
from robomodel.cli import main
from robomodel.kernels import cache, function
from robomodel.kernels import compile as compiling
from robomodel.kernels.llvm import machine
from robomodel.kernels.llvm.emit import written


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBOMODEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every program that is really compiled."""
    count: list[int] = []

    def counting(*arguments: Any, **options: Any) -> str:
        count.append(1)
        return written(*arguments, **options)

    monkeypatch.setattr(compiling, "written", counting)
    return count


def run(name: str = "four_bar") -> np.ndarray:
    model = rm.robots.load(name)
    one = np.ones(model.nv)
    return rm.aba(model, model.neutral(), one, one)


def test_a_second_model_finds_the_kernel(place: Path, built: list[int]) -> None:
    first = run()
    assert len(built) == 1
    assert len(list(place.iterdir())) == 1
    np.testing.assert_array_equal(run(), first)
    assert len(built) == 1
    run("six_bar")
    assert len(built) == 2


def test_what_is_in_the_cache_is_not_traced(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run()

    def refuse(*arguments: object) -> None:
        raise AssertionError("traced")

    monkeypatch.setattr(function, "Trace", refuse)
    np.testing.assert_array_equal(run(), first)
    text = rm.robots.path("four_bar").read_text(encoding="utf-8")
    model = rm.load("\n" + text)  # elsewhere in the file, the same robot
    np.testing.assert_array_equal(rm.aba(model, model.neutral(), np.ones(1), np.ones(1)), first)
    mass = next(x for x in ('mass value="', "mass value='") if x in text)
    other = rm.load(text.replace(mass, f"{mass}1", 1))
    for model in (other, rm.load(text, gravity=(0, 0, -1.62))):
        with pytest.raises(AssertionError, match="traced"):
            rm.compile(model, "aba")


@pytest.mark.slow
def test_broken_entries_are_rebuilt(place: Path, built: list[int]) -> None:
    first = run()
    (entry,) = place.iterdir()
    whole = entry.read_bytes()
    middle = len(whole) // 2
    broken = [b"", whole[:100], whole[:-1], whole + b"x", b"x" + whole[1:],
              whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]]  # fmt: skip
    for n, content in enumerate(broken):
        entry.write_bytes(content)
        np.testing.assert_array_equal(run(), first)
        assert len(built) == n + 2
        assert entry.read_bytes() == whole


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_others_may_write_is_never_loaded(place: Path, built: list[int]) -> None:
    run()
    (entry,) = place.iterdir()
    for target, mode in ((place, 0o777), (place, 0o770), (place.parent, 0o777)):
        before = target.stat().st_mode & 0o7777
        target.chmod(mode)
        assert cache.directory() is None
        count = len(built)
        run()
        assert len(built) == count + 1
        target.chmod(before)
    entry.chmod(0o666)
    assert cache.load(entry.name) is None
    run()  # rebuilt, and private again
    assert cache.load(entry.name) is not None
    assert entry.stat().st_mode & 0o077 == 0
    entry.rename(place / "elsewhere")
    entry.symlink_to(place / "elsewhere")
    assert cache.load(entry.name) is None


@pytest.mark.parametrize("value", ["off", "0", "", " OFF "])
def test_the_cache_can_be_off(
    value: str, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOMODEL_CACHE", value)
    assert cache.directory() is None
    run()
    run()
    assert len(built) == 2


def test_a_place_that_cannot_be_made_costs_only_time(
    tmp_path: Path, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ROBOMODEL_CACHE", str(tmp_path / "file" / "cache"))
    run()
    run()
    assert len(built) == 2


@pytest.mark.parametrize("value", ["~nobody-of-this-name/cache", "/dev/null/cache", "\ufffd" * 300])
def test_a_place_that_is_none_costs_only_time(
    value: str, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOMODEL_CACHE", value)
    assert cache.directory() is None
    run()
    assert len(built) == 1


def test_without_a_home_nothing_is_written_where_we_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless(path: str) -> str:
        return path

    monkeypatch.delenv("ROBOMODEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", homeless)
    monkeypatch.chdir(tmp_path)
    assert cache.directory() is None
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_what_is_no_file_is_not_waited_for(place: Path, built: list[int]) -> None:
    run()
    (entry,) = place.iterdir()
    for make in (os.mkfifo, os.mkdir):
        entry.unlink()
        make(entry)
        assert cache.load(entry.name) is None
    run()  # a directory cannot be replaced, but costs no more than time
    assert len(built) == 2
    entry.rmdir()
    os.mkfifo(entry)
    run()
    assert entry.is_file()


def test_entries_of_any_size_are_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("large", b"x" * 100)
    assert cache.load("large") is not None
    monkeypatch.setattr(cache, "MAX_BYTES", 99)
    assert cache.load("large") is None


@pytest.mark.skipif(os.name != "posix", reason="owners of POSIX")
def test_what_others_own_is_never_loaded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("ours", b"x")
    assert cache.load("ours") == b"x"
    look = os.fstat

    def another(descriptor: int) -> os.stat_result:
        found = list(look(descriptor))
        found[4] += 1  # the owner
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", another)
    assert cache.load("ours") is None
    monkeypatch.undo()


@pytest.mark.skipif(os.name != "posix", reason="owners of POSIX")
def test_a_directory_of_others_is_never_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.directory() == place
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert cache.directory() is None


def test_other_processors_and_compilers_have_entries_of_their_own(
    place: Path, built: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines with one home directory: code for one of them may not run on another."""
    run()
    told, compiler = machine.processor(), compiling._compiler()
    for changed in (
        (machine, "processor", (*told[:-1], f"{told[-1]} avx1024")),
        (compiling, "_compiler", (f"{compiler[0]}1", *compiler[1:])),
        (compiling, "_compiler", (*compiler[:-1], f"{compiler[-1]}\n")),
    ):
        owner, name, value = changed
        with monkeypatch.context() as here:
            here.setattr(owner, name, lambda value=value: value)
            count = len(built)
            run()
            assert len(built) == count + 1
    run()
    assert len(built) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/cpuinfo")
def test_linux_tells_the_instruction_sets_without_llvm() -> None:
    (text,) = machine.processor()
    flags = next(x for x in text.splitlines() if x.lower().startswith(("flags", "features")))
    assert {"fp", "fpu"} & set(flags.split())
    assert "MHz" not in text  # it changes all the time


def test_elsewhere_llvm_tells_the_instruction_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors of one name may differ in what they can do, or are let do."""
    monkeypatch.setattr(machine, "_described", lambda: None)
    told = machine.processor()
    assert machine.features()[0] in told
    monkeypatch.setattr(machine, "features", lambda: ("+avx1024", 16))
    assert machine.processor() != told


def test_another_choice_of_joints_is_another_program(place: Path, built: list[int]) -> None:
    """What a decision by rank chose is part of the key, though the file does not say it."""
    model = rm.robots.load("five_bar")
    cluster = model.clusters[0]
    rm.compile(model, "crba")
    rm.compile(rm.robots.load("five_bar"), "crba")
    assert len(built) == 1
    constraint = dataclasses.replace(
        cluster.constraint, independent=cluster.constraint.independent[::-1]
    )
    clusters = (dataclasses.replace(cluster, constraint=constraint), *model.clusters[1:])
    rm.compile(dataclasses.replace(model, clusters=clusters), "crba")
    assert len(built) == 2


def test_all_that_a_value_holds_is_in_its_key() -> None:
    """And nothing that says only where it stands, or in which order a set happens to be."""

    @dataclasses.dataclass(frozen=True)
    class Part:
        x: object
        place: int = dataclasses.field(default=0, repr=False)

        def __repr__(self) -> str:
            return "a part"

    values = [Part(1.0), Part(-1.0), Part(0.0), Part(-0.0), Part(float("nan")), Part((1.0,)),
              Part((1.0, Part(2))), Part((1.0, Part(3))), Part(np.float64(1.0)), Part({"a": 1}),
              Part(np.arange(2000.0)), Part(np.arange(2000.0).reshape(2, -1)), Part(frozenset("a")),
              Part(slice(0, 1)), Part(slice(0, 2)), Part("1.0"), Part(None), Part([Part(None)]),
    ]  # fmt: skip
    middle = np.arange(2000.0)
    middle[1000] = 0.5
    texts = [cache.canonical(value) for value in (*values, Part(middle))]
    assert len(set(texts)) == len(texts)
    assert cache.canonical(Part(1.0, place=1)) == cache.canonical(Part(1.0, place=2))
    assert cache.canonical(frozenset("abc")) == cache.canonical(frozenset("cba"))
    with pytest.raises(TypeError, match="a object cannot be part of a key"):
        cache.canonical(Part(object()))


def test_old_entries_make_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 3)
    for n in range(6):
        cache.store(f"{n}", b"x")
        os.utime(place / f"{n}", (n, n))
    assert sorted(entry.name for entry in place.iterdir()) == ["3", "4", "5"]
    assert cache.load("5") == b"x"
    assert cache.load("0") is None


def _race(seed: int) -> float:
    return float(run("planar_leg_linkage")[0] * (seed >= 0))


@pytest.mark.slow
def test_processes_may_write_at_once(place: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        results = pool.map(_race, range(6))
    assert len(set(results)) == 1
    assert not [entry for entry in place.iterdir() if entry.name.startswith(".new")]
    assert results[0] == run("planar_leg_linkage")[0]


@pytest.mark.slow
def test_without_llvm_numpy_serves_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "llvmlite.py").write_text("raise ImportError('no LLVM for this machine')")
    code = (
        "import numpy as np, robomodel as rm\n"
        "model = rm.robots.load('six_bar')\n"
        "for _ in range(3): print(rm.aba(model, model.neutral(), np.ones(3), np.ones(3)))\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(rm.__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "ROBOMODEL_CACHE": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("RuntimeWarning: kernels cannot be compiled here") == 1
    assert "no LLVM for this machine" in done.stderr
    assert len(set(done.stdout.splitlines())) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("six_bar")


@pytest.mark.slow
def test_what_is_on_disk_is_neither_traced_nor_compiled(place: Path) -> None:
    code = (
        "import sys, numpy as np\n"
        "before = 'numpy.ma' in sys.modules\n"
        "import robomodel as rm\n"
        "from robomodel.kernels.llvm import machine\n"
        "from robomodel.kernels.trace import Trace\n"
        "compiled, traced = machine.object_codes, Trace.program\n"
        "count = []\n"
        "machine.object_codes = lambda *a: count.append(1) or compiled(*a)\n"
        "Trace.program = lambda *a: count.append(2) or traced(*a)\n"
        "model = rm.robots.load('mit_humanoid_leg')\n"
        "a = rm.aba(model, model.neutral(), np.ones(5), np.ones(5))\n"
        "print(a, ('numpy.ma' in sys.modules) > before, set(count))\n"
    )
    path = str(Path(rm.__file__).parent.parent)
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert said[0][-3:] == ["False", "{1,", "2}"]
    assert said[1] == [*said[0][:-2], "set()"]


def test_a_kernel_that_cannot_be_had_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "obstacle", lambda: "no reason")
    with pytest.raises(RuntimeError, match=r"cannot be compiled here \(no reason\)"):
        rm.compile(rm.robots.load("four_bar"), "aba")


def test_a_cache_that_is_shipped(
    place: Path, built: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one command compiles, a process elsewhere finds; what it leaves as it was."""
    shipped = tmp_path / "shipped"
    with pytest.raises(SystemExit) as ended:
        main(["code", "four_bar", "--cache", str(shipped), "--functions", "aba,crba"])
    assert ended.value.code == 0
    assert (len(built), len(list(shipped.iterdir()))) == (2, 2)
    assert os.environ["ROBOMODEL_CACHE"] == str(place)
    monkeypatch.setenv("ROBOMODEL_CACHE", str(shipped))
    run()
    assert len(built) == 2
    shipped.chmod(0o777)
    for words in (["--cache", str(shipped)], ["--cache", str(tmp_path), "-o", str(tmp_path)], []):
        with pytest.raises(SystemExit) as ended:
            main(["code", "four_bar", *words])
        assert ended.value.code == 2
    assert len(built) == 2
