"""Places to write to: what happens when they fail."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from bncli.errors import BncliError
from bncli.files import atomic as output_streams
from bncli.files.atomic import AbandonableStream, output_stream, write_faults


def test_a_file_or_the_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr(output_streams, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=pipe)))
    for path in (None, str(tmp_path / "x")):
        with output_stream(path) as file:
            file.write(b"rows")
    assert pipe.getvalue() == (tmp_path / "x").read_bytes() == b"rows"


def test_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_streams, "sys", SimpleNamespace(stdout=None))
    with pytest.raises(BncliError, match="the standard output is closed; name a file with -o"):
        output_stream(None)


def test_faults_in_one_line() -> None:
    with pytest.raises(BncliError, match="cannot write: no space left on device, standard output"), write_faults():
        raise OSError(28, "No space left on device")
    with pytest.raises(BrokenPipeError), write_faults():
        raise BrokenPipeError(32, "Broken pipe")


def test_an_abandoned_stream() -> None:
    file = io.BytesIO()
    stream = AbandonableStream(file)
    assert stream.write(b"seen") == 4
    stream.flush()
    stream.abandoned = True
    assert stream.write(b"lost") == 4
    assert file.getvalue() == b"seen"
