"""Output files that appear complete or not at all, and the standard output."""

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from bncli.errors import BncliError
from bncli.files import atomic
from bncli.files.atomic import AbandonableStream, atomic_writer, name_standard_output, open_output, write_bytes


def test_the_bytes_arrive_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_bytes(str(tmp_path / "a"), b"one")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_a_bare_name_is_a_file_of_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_bytes("a", b"one")
    assert os.listdir(tmp_path) == ["a"]


def test_the_file_is_not_there_before_the_end(tmp_path: Path) -> None:
    with atomic_writer(str(tmp_path / "a")) as file:
        file.write(b"x" * 1_000_000)
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").stat().st_size == 1_000_000


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_any_failure_leaves_the_old_file_and_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def fail_halfway() -> None:
        with atomic_writer(str(tmp_path / "a")) as file:
            file.write(b"new" * 1_000_000)
            raise error

    with pytest.raises(error):
        fail_halfway()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_writer_may_close_the_file_itself(tmp_path: Path) -> None:
    with atomic_writer(str(tmp_path / "a")) as file:
        file.write(b"one")
        file.close()
    assert (tmp_path / "a").read_bytes() == b"one"


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(str(tmp_path / "a"), b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "a").chmod(0o604)
    write_bytes(str(tmp_path / "a"), b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "a")
    if there:
        (tmp_path / "folder" / "a").write_bytes(b"old")
    write_bytes(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "a").read_bytes() == b"new"


def test_a_long_name_leaves_room_for_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)
    write_bytes(str(path), b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("ending", ["", "/", "/new/"])
def test_a_folder_is_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(BncliError, match=r"cannot write to a folder, .*; give a file in it"):
        write_bytes(f"{tmp_path}{ending}", b"")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match=r"there is no folder '.*nowhere'"):
        write_bytes(str(tmp_path / "nowhere" / "a"), b"")


def test_a_folder_that_takes_no_files_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc, where every new name is one that is not there."""

    def refuse(*arguments: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(atomic, "_open_unnamed", refuse)
    with pytest.raises(BncliError, match=r"^cannot create a file in the folder '.*', .*/a; choose another folder$"):
        write_bytes(str(tmp_path / "a"), b"")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_the_folder_of_processes_takes_no_files() -> None:
    with pytest.raises(BncliError, match=r"cannot create a file in the folder '/proc'|permission"):
        write_bytes("/proc/a", b"")


def test_a_file_among_the_folders_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(BncliError, match="cannot write: part of the path is a file, not a folder"):
        write_bytes(str(tmp_path / "a" / "b"), b"")


def test_a_read_only_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(BncliError, match="read-only"):
        write_bytes(str(tmp_path / "a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BncliError, match="cannot write: permission denied"):
        write_bytes(str(tmp_path / "a"), b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_an_error_of_one_line() -> None:
    with pytest.raises(BncliError, match=r"^cannot write: no space left on device, /dev/full; free some space"):
        write_bytes("/dev/full", b"x")
    with pytest.raises(BncliError, match="no space left"):
        write_bytes("/dev/full", b"x" * 1_000_000)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_at_the_very_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, call, fail)
    with pytest.raises(BncliError, match="no space left on device"):
        write_bytes(str(tmp_path / "a"), b"x")
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_written_directly(tmp_path: Path) -> None:
    write_bytes("/dev/null", b"x")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=write_bytes, args=(str(fifo), b"through"))
    writer.start()
    assert fifo.read_bytes() == b"through"
    writer.join()
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_a_descriptor_goes_on_where_it_stands(tmp_path: Path, name: str) -> None:
    with (tmp_path / "a").open("wb", buffering=0) as file:
        file.write(b"before ")
        write_bytes(name.format(file.fileno()), b"and ")
        file.write(b"after")
    assert (tmp_path / "a").read_bytes() == b"before and after"


def test_standard_output_is_a_descriptor(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_bytes("/dev/stdout", b"out")
    write_bytes("/dev/stderr", b"err")
    assert capfdbinary.readouterr() == (b"out", b"err")


def test_a_closed_pipe_stays_a_closed_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(BrokenPipeError):
            write_bytes(f"/dev/fd/{writer}", b"x" * 1_000_000)
    finally:
        os.close(writer)


def test_an_error_of_the_block_is_not_taken_for_one_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_writer(str(tmp_path / "a")):
        (tmp_path / "input").read_bytes()


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without files that have no name."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("old", [None, b"old"])
def test_without_unnamed_files_the_temporary_one_is_hidden_beside_the_target(tmp_path: Path, old: bytes | None) -> None:
    if old is not None:
        (tmp_path / "a").write_bytes(old)
        (tmp_path / "a").chmod(0o604)
    with atomic_writer(str(tmp_path / "a")) as file:
        file.write(b"new")
        (temporary,) = set(os.listdir(tmp_path)) - {"a"}
        assert temporary.startswith(f".a.{os.getpid()}.")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"new"
    assert old is None or stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604


@pytest.mark.usefixtures("named")
def test_what_the_dead_left_is_swept_away_after_a_day(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    marks = {"dead": gone.pid, "alive": os.getpid()}
    names = {who: f".a.{process}.0123456789ab.tmp" for who, process in marks.items()}
    names |= {"young": f".a.{gone.pid}.ba9876543210.tmp", "other": f".b.{gone.pid}.0123456789ab.tmp"}
    for who, name in names.items():
        (tmp_path / name).write_bytes(b"")
        if who != "young":
            os.utime(tmp_path / name, (0, 0))
    write_bytes(str(tmp_path / "a"), b"x")
    assert set(os.listdir(tmp_path)) == {"a", names["alive"], names["young"], names["other"]}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    program = (
        "import sys, time\nfrom bncli.files.atomic import atomic_writer\n"
        "with atomic_writer(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 1_000_000)\n    file.flush()\n    print('written', flush=True)\n    time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EISDIR])
def test_a_file_system_without_unnamed_files_gets_a_named_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    plain = os.open

    def refuse(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(error, os.strerror(error))
        return plain(path, flags, *rest)

    monkeypatch.setattr(atomic.os, "open", refuse)
    write_bytes(str(tmp_path / "a"), b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_or_the_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr(atomic, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=pipe)))
    for path in (None, str(tmp_path / "x")):
        with open_output(path) as file:
            file.write(b"rows")
    assert pipe.getvalue() == (tmp_path / "x").read_bytes() == b"rows"


def test_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "sys", SimpleNamespace(stdout=None))
    with pytest.raises(BncliError, match="the standard output is closed; add -o FILE"):
        open_output(None)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_what_cannot_be_written_to_the_standard_output_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        name_standard_output()
        print("a line")
        with pytest.raises(
            BncliError, match=r"^cannot write: no space left on device, standard output; free some space"
        ):
            sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # the bytes that still wait have to go somewhere


def test_a_closed_pipe_of_the_standard_output_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        name_standard_output()
        print("a line")
        with pytest.raises(BrokenPipeError):
            sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe.fileno())


def test_an_abandoned_stream() -> None:
    file = io.BytesIO()
    stream = AbandonableStream(file)
    assert stream.write(b"seen") == 4
    stream.flush()
    stream.abandoned = True
    assert stream.write(b"lost") == 4
    assert file.getvalue() == b"seen"
