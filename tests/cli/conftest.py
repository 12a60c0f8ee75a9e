"""The command line in this process: words in, exit code and both outputs out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bncli.cli.main import run

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Bncli = Callable[..., Ran]


@pytest.fixture
def bncli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Bncli:
    """Runs a command in an empty folder that holds some of the sample data."""
    monkeypatch.chdir(tmp_path)
    for name in ("iris.csv", "tumours.csv", "monks1.csv", "monks1.schema.json", "wine_holes.csv"):
        shutil.copy(SAMPLE_DATA / name, tmp_path / name)

    def ran(*words: object) -> Ran:
        capfdbinary.readouterr()
        code = run([str(word) for word in words])
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode(), err.decode())

    return ran


WRITTEN: dict[tuple[str, ...], dict[str, bytes]] = {}


def prepare(bncli: Bncli, *commands: str) -> None:
    """Run commands that set the scene; tests that want the same again get copies of the files written.

    They may read the sample data and what they wrote before, so that they write the same in every test.
    """
    if commands not in WRITTEN:
        before = {path.name for path in Path().iterdir()}
        for command in commands:
            ran = bncli(*command.split())
            assert ran.code == 0, ran.err
        WRITTEN[commands] = {path.name: path.read_bytes() for path in Path().iterdir() if path.name not in before}
    for name, content in WRITTEN[commands].items():
        Path(name).write_bytes(content)
