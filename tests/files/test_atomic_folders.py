"""Temporary folders: those of killed processes are removed by the next command, those in use are not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bncli.files.atomic import temporary_folder
from bncli.files.exports.programs import run_program

_HOLD = """
import sys
from pathlib import Path
from bncli.files.atomic import temporary_folder
with temporary_folder() as folder:
    Path(folder, "inner").mkdir()
    Path(folder, "inner", "program.py").write_text("pass")
    print(folder, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX systems only")


@pytest.fixture(autouse=True)
def _folder_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@contextmanager
def _other_process() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield a process that holds a temporary folder, and the folder."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _HOLD], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().rstrip("\n"))
        finally:
            process.kill()


def test_an_export_removes_the_folder_of_a_killed_process(tmp_path: Path) -> None:
    with _other_process() as (process, folder):
        assert (folder / "inner" / "program.py").exists()
        process.kill()
        process.wait()
        assert folder.exists(), "SIGKILL leaves it"
    assert run_program([sys.executable, "{}/p.py"], {"p.py": "print('[1]')"}, []) == [1]
    assert list(tmp_path.iterdir()) == []


def test_folders_in_use_stay(tmp_path: Path) -> None:
    with _other_process() as (_, folder), temporary_folder() as ours, temporary_folder():
        assert (folder / "inner" / "program.py").exists()
        assert Path(ours).is_dir()
    assert not Path(ours).exists()


def test_folders_of_others_and_links_stay(tmp_path: Path) -> None:
    kept = [tmp_path / name for name in ("bncli-mine", "bncli-12-abc", "work-1-abcdefgh", "bncli-x-abcdefgh")]
    for path in kept:
        path.mkdir()
    link = tmp_path / "bncli-1-abcdefgh"
    link.symlink_to(kept[0])
    (tmp_path / "bncli-2-abcdefgh").write_text("a file")
    with temporary_folder():
        pass
    assert sorted(tmp_path.iterdir()) == sorted([*kept, link, tmp_path / "bncli-2-abcdefgh"])


def test_a_folder_taken_before_it_was_locked_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from bncli.files import atomic

    lock, taken = atomic._lock, []

    def lock_late(folder: str, *, wait: bool) -> int | None:
        if not taken:
            taken.append(folder)
            os.rmdir(folder)
        return lock(folder, wait=wait)

    monkeypatch.setattr(atomic, "_lock", lock_late)
    with temporary_folder() as folder:
        assert Path(folder).is_dir()
        assert folder != taken[0]
