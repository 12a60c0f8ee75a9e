"""Default outputs, and outputs that would destroy an input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bncli.errors import UsageError
from bncli.files.paths import beside, refuse_overwriting


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
    assert beside((path,), ".bnc") == expected


def test_a_folder_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.2024").mkdir()
    monkeypatch.chdir(tmp_path)
    assert beside(("d.2024/",), ".bnc") == "d.2024.bnc"
    monkeypatch.chdir(tmp_path / "d.2024")
    assert os.path.realpath(beside((".",), ".bnc")) == str(tmp_path / "d.2024.bnc")


@pytest.mark.parametrize("paths", [("-",), ("a.csv", "b.csv"), ("/dev/null",)])
def test_without_one_name_it_must_be_said(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="needs -o FILE"):
        beside(paths, ".bnc")


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
