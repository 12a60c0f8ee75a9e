"""Paths that users type: default outputs, outputs that would replace an input, and errors about missing files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.paths import (
    cannot_read,
    cannot_write,
    check_data,
    check_outputs,
    default_output_path,
    explain_missing,
    is_special,
    refuse_ending,
)


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
    assert default_output_path((path,), ".bnc") == expected


def test_a_folder_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.2024").mkdir()
    monkeypatch.chdir(tmp_path)
    assert default_output_path(("d.2024/",), ".bnc") == "d.2024.bnc"
    monkeypatch.chdir(tmp_path / "d.2024")
    assert os.path.realpath(default_output_path((".",), ".bnc")) == str(tmp_path / "d.2024.bnc")


@pytest.mark.parametrize("paths", [("-",), ("a.csv", "b.csv"), ("/dev/null",)])
def test_without_one_name_it_must_be_said(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="need -o FILE"):
        default_output_path(paths, ".bnc")


def test_no_input_is_written_over(tmp_path: Path) -> None:
    data, link = tmp_path / "x.csv", tmp_path / "y.csv"
    data.touch()
    link.symlink_to(data)
    for name in (str(data), str(link), f"{tmp_path}/../{tmp_path.name}/x.csv"):
        with pytest.raises(UsageError, match="cannot write"):
            check_outputs([None, name], ["-", str(data), None])


def test_no_output_is_written_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        check_outputs([f"{tmp_path}/a", f"{tmp_path}/./a"], [])
    check_outputs(["/dev/null", "/dev/null", f"{tmp_path}/a"], ["/dev/null", f"{tmp_path}/b"])


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no memory file system")
def test_a_file_in_memory_is_not_written_over_its_input() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as data:
        with pytest.raises(UsageError, match="is the same file"):
            check_outputs([data.name], [data.name])
        assert not is_special(data.name)


def test_where_nothing_can_be_written_is_known_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, fault in (
        ("no/x", "there is no folder"),
        ("", "a folder"),
        ("d/", "a folder"),
        ("file/x", "a file, not a folder"),
    ):
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


TILDE = "the shell does not expand '~' in quotes or after '='"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and a working folder that holds data/train.csv."""
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("a,class\n")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "what", "hint"),
    [
        ("data/trian.csv", "no such file", "did you mean data/train.csv?"),
        ("nothing", "no such file", ""),
        ("dta/train.csv", "there is no folder 'dta'", "did you mean data?"),
        ("dta/2024/may/train.csv", "there is no folder 'dta'", "did you mean data?"),
        ("data/2024/may/train.csv", "there is no folder 'data/2024'", ""),
        ("/nowhere/at/all.csv", "there is no folder '/nowhere'", ""),
        ("~/x.csv", f"no such file: {TILDE}", "write /home/someone/x.csv"),
        ("~nobody-of-that-name/x.csv", "there is no folder '~nobody-of-that-name'", ""),
        ("file:///data/x.csv", "this is a URL, but only files can be read", "name it as /data/x.csv"),
        ("gs://b/x.csv", "this is a URL, but only files can be read", "copy the file to this machine first"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_why_a_file_is_missing(path: str, what: str, hint: str) -> None:
    assert explain_missing(path) == (what, hint)


@pytest.mark.parametrize("scheme", ["http", "https", "HTTPS", "ftp"])
def test_a_web_address_is_told_how_to_be_read(scheme: str) -> None:
    url = f"{scheme}://example.org/x.csv"
    assert explain_missing(url, is_data=True)[1] == f"download it first, e.g. curl -L {url} | bncli fit - -o m.bnc"
    assert explain_missing(url)[1] == f"download it first, e.g. curl -LO {url}"
    assert explain_missing(f"{url}?a=1&b=2")[1].endswith(f" '{url}?a=1&b=2'")


def test_a_bucket_is_told_how_to_be_read() -> None:
    way = "download it first, e.g. aws s3 cp s3://b/x.csv - | bncli fit - -o m.bnc"
    assert explain_missing("s3://b/x.csv", is_data=True)[1] == way


def test_a_file_that_looks_like_a_url_is_read(folder: Path) -> None:
    (folder / "http:").mkdir()
    (folder / "http:" / "x.csv").write_text("a,class\n")
    check_data("http://x.csv")
    check_data("-")


@pytest.mark.parametrize(
    ("path", "what", "hint"),
    [
        ("https://a/m.bnc", "cannot write to a URL", "write a file, then copy it there"),
        ("~/m.bnc", f"cannot write: {TILDE}", "write /home/someone/m.bnc"),
        ("no/m.bnc", "cannot write: there is no folder '{here}/no'", "create it first"),
        ("data/m.bnc", "cannot create a file in the folder '{here}/data'", "choose another folder"),
    ],
)
def test_why_a_file_cannot_be_written(folder: Path, path: str, what: str, hint: str) -> None:
    error = cannot_write(path, FileNotFoundError())
    assert (error.what, error.hint) == (what.format(here=os.path.realpath(folder)), hint)


def test_what_is_there_and_cannot_be_read_is_told_by_the_system(folder: Path) -> None:
    with pytest.raises(BncliError, match=r"^cannot read: part of the path is a file, not a folder, data/train\.csv/x$"):
        check_data("data/train.csv/x")
    error = cannot_read("m", IsADirectoryError(21, "Is a directory"), ModelError, what=" the model")
    assert (type(error), str(error)) == (
        ModelError,
        "cannot read the model: this is a folder, m; give the path of a file",
    )


@pytest.mark.parametrize("path", ["", "~", "://", "a://", ":", "\n", "/", "x" * 5000, "é/\x1b", "http:/"])
def test_any_name_gives_a_reason(path: str) -> None:
    what, _ = explain_missing(path)
    assert what
    assert cannot_write("x" + path, FileNotFoundError()).what
