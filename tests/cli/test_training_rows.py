"""Tests of what commands say about the training table where rows that the model has not seen are meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.transcripts import ROOT

TUMOURS = (ROOT / "sample_data" / "tumours.csv").read_text().splitlines()


@pytest.fixture(
    params=[
        ("--penalty", "1"),
        ("--penalty", "1", "--class-weights", "balanced"),
        ("--param", "map", "--missing-policy", "marginalize"),
    ]
)
def model(request: pytest.FixtureRequest, bncli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("all.csv").write_text("\n".join(TUMOURS) + "\n")
    Path("shuffled.csv").write_text("\n".join([TUMOURS[0], *reversed(TUMOURS[1:])]) + "\n")
    # one row is replaced by its neighbour
    Path("other.csv").write_text("\n".join([*TUMOURS[:10], TUMOURS[11], *TUMOURS[11:]]) + "\n")
    assert bncli("fit", "all.csv", "--structure", "nb", *request.param, "-o", "m.bnc", "-q").code == 0
    return "m.bnc"


@pytest.mark.parametrize(("data", "expected"), [("shuffled.csv", True), ("other.csv", False)])
def test_every_command_says_whether_rows_are_those_of_training(
    bncli: Any, model: str, data: str, expected: bool
) -> None:
    commands = [
        ("evaluate", data, "--model", model),
        ("calibrate", model, data, "-o", "c.bnc"),
        ("report", model, data, "-o", "r.html"),
        ("monitor", model, data),
    ]
    for command in commands:
        assert json.loads(bncli(*command, "--json", "-q").out)["on_training_rows"] is expected, command
    evaluated = bncli(*commands[0]).out
    assert ("a model on its training rows" in evaluated) is expected
    assert ("Figures on the training rows are too optimistic" in evaluated) is expected
    assert ("95 %: intervals for this model on new rows" in evaluated) is not expected
    page = Path("r.html").read_text()
    assert ("Figures on the training rows, too optimistic" in page) is expected
    assert ("look like the training rows" in bncli(*commands[3]).err) is expected


@pytest.mark.slow
def test_cross_validation_never_does(bncli: Any, model: str) -> None:
    assert "on_training_rows" not in json.loads(bncli("evaluate", "all.csv", "--structure", "nb", "--json", "-q").out)
