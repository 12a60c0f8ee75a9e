"""What is said of a place where nothing is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bncli.errors import BncliError, ModelError
from bncli.files.atomic import cannot_read, check_data, why_missing, why_unwritable

TILDE = "the shell leaves a '~' in quotes, or behind '=', as it is"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and a folder to stand in with one table in a folder."""
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
        ("file:///data/x.csv", "this is a URL, and only files are read", "name it as /data/x.csv"),
        ("gs://b/x.csv", "this is a URL, and only files are read", "copy it to a folder of this machine first"),
    ],
)  # fmt: skip
def test_why_a_file_is_missing(path: str, what: str, hint: str) -> None:
    assert why_missing(path) == (what, hint)


@pytest.mark.parametrize("scheme", ["http", "https", "HTTPS", "ftp"])
def test_a_web_address_is_told_how_to_be_read(scheme: str) -> None:
    url = f"{scheme}://example.org/x.csv"
    assert why_missing(url, is_data=True)[1] == f"download it first, e.g. curl -L {url} | bncli fit - -o m.bnc"
    assert why_missing(url)[1] == f"download it first, e.g. curl -LO {url}"
    assert why_missing(f"{url}?a=1&b=2")[1].endswith(f" '{url}?a=1&b=2'")


def test_a_bucket_is_told_how_to_be_read() -> None:
    way = "download it first, e.g. aws s3 cp s3://b/x.csv - | bncli fit - -o m.bnc"
    assert why_missing("s3://b/x.csv", is_data=True)[1] == way


def test_a_file_that_looks_like_a_url_is_read(folder: Path) -> None:
    (folder / "http:").mkdir()
    (folder / "http:" / "x.csv").write_text("a,class\n")
    check_data("http://x.csv")
    check_data("-")


def test_places_to_write_to(folder: Path) -> None:
    assert why_unwritable("https://a/m.bnc") == ("cannot write to a URL", "write a file, then copy it there")
    assert why_unwritable("~/m.bnc")[1] == "write /home/someone/m.bnc"
    real = os.path.realpath(folder)
    assert why_unwritable("no/m.bnc") == (f"cannot write: there is no folder '{real}/no'", "create it first")
    assert why_unwritable("data/m.bnc") == (f"cannot write in the folder '{real}/data'", "choose another one")


def test_what_is_there_and_cannot_be_read_is_told_by_the_system(folder: Path) -> None:
    with pytest.raises(BncliError, match=r"^cannot read: not a directory, data/train\.csv/x$"):
        check_data("data/train.csv/x")
    error = cannot_read("m", IsADirectoryError(21, "Is a directory"), ModelError, what=" the model")
    assert (type(error), str(error)) == (ModelError, "cannot read the model: is a directory, m")


@pytest.mark.parametrize("path", ["", "~", "://", "a://", ":", "\n", "/", "x" * 5000, "é/\x1b", "http:/"])
def test_any_name_gives_a_reason(path: str) -> None:
    what, _ = why_missing(path)
    assert what
    assert why_unwritable("x" + path)[0]
