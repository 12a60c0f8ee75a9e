"""Default outputs, and outputs that would destroy an input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bncli.errors import BncliError, UsageError
from bncli.files.paths import check_outputs, path_beside_data, refuse_ending, refuse_overwriting


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x.csv", "x.bnc"),
        ("a/x.csv.gz", "a/x.bnc"),
        ("x.tsv.ZST", "x.bnc"),
        ("my.table.csv", "my.table.bnc"),
        ("x.gz", "x.bnc"),
        ("x", "x.bnc"),
        (".csv", ".csv.bnc"),
        ("a.b/x", "a.b/x.bnc"),
    ],
)
def test_the_output_lies_beside_the_data(path: str, expected: str) -> None:
    assert path_beside_data((path,), ".bnc") == expected


def test_a_folder_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.2024").mkdir()
    monkeypatch.chdir(tmp_path)
    assert path_beside_data(("d.2024/",), ".bnc") == "d.2024.bnc"
    monkeypatch.chdir(tmp_path / "d.2024")
    assert os.path.realpath(path_beside_data((".",), ".bnc")) == str(tmp_path / "d.2024.bnc")


@pytest.mark.parametrize("paths", [("-",), ("a.csv", "b.csv"), ("/dev/null",)])
def test_without_one_name_it_must_be_said(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="needs -o FILE"):
        path_beside_data(paths, ".bnc")


def test_no_input_is_written_over(tmp_path: Path) -> None:
    data, link = tmp_path / "x.csv", tmp_path / "y.csv"
    data.touch()
    link.symlink_to(data)
    for name in (str(data), str(link), f"{tmp_path}/../{tmp_path.name}/x.csv"):
        with pytest.raises(UsageError, match="cannot write"):
            refuse_overwriting([None, name], ["-", str(data), None])


def test_no_output_is_written_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        refuse_overwriting([f"{tmp_path}/a", f"{tmp_path}/./a"], [])
    refuse_overwriting(["/dev/null", "/dev/null", f"{tmp_path}/a"], ["/dev/null", f"{tmp_path}/b"])


def test_where_nothing_can_be_written_is_known_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, fault in (("no/x", "there is no folder"), ("", "a folder"), ("d/", "a folder"), ("file/x", "not a dir")):
        with pytest.raises(BncliError, match=fault):
            check_outputs([None, f"{tmp_path}/{name}"], [])
    check_outputs([None, "-", "/dev/stdout", "/dev/null", f"{tmp_path}/file", f"{tmp_path}/new"], [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_known_beforehand(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BncliError, match="no permission"):
        check_outputs([f"{tmp_path}/x"], [])


@pytest.mark.parametrize("name", ["x.csv.gz", "x.TSV", "x.zst"])
def test_no_file_has_a_false_name(name: str) -> None:
    with pytest.raises(UsageError, match="this is CSV"):
        refuse_ending(name, (".tsv",), "this is CSV")


@pytest.mark.parametrize("name", [None, "-", "x.csv", "x", "x.txt", "/dev/stdout"])
def test_other_names_are_free(name: str | None) -> None:
    refuse_ending(name, (".tsv",), "this is CSV")
