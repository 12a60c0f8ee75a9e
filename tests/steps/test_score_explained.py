"""Files through a model with the reasons for every prediction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bncli.engine.model import Model
from bncli.errors import UsageError
from bncli.files.artifacts.model import write_model
from bncli.files.reading.source import Source
from bncli.steps import row_scoring
from bncli.steps.score import ScoreOutput, score
from tests.steps.test_score import DATA, Place, _random_rows
from tests.strategies import models


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_reasons(place: Place) -> None:
    """Colour: -1 and +1 at 3 to 1, so that the mean of yes is .5; size: .5, -.5 and 2 at 2 to 1 to 1."""
    place.score(explain=1, digits=2)
    header, *rows = place.rows()
    assert header == ["prediction", "p_no", "p_yes", "log_odds", "base", "explain_1", "rest"]
    assert rows[0] == ["yes", "0.18", "0.82", "1.5", "1.12", "colour=blue:+0.5", "-0.12"]
    assert rows[1][3:] == ["1.5", "-1.12", "colour=red:+1.5", "1.12"]
    assert rows[2][5] == "size=missing:+1.38"
    assert rows[4][5].startswith("colour=unknown:-0.5")


def test_without_attributes_known(place: Place) -> None:
    place.score("id\n1\n", explain=3, allow_missing_columns=True)
    _, row = place.rows()
    assert [text.split(":")[0] for text in row[5:8]] == ["size=unknown", "colour=unknown", ""]


def test_header_in_header_out(place: Place) -> None:
    place.score("size,colour\n", explain=2, labels_only=True)
    assert place.rows() == [["prediction", "log_odds", "base", "explain_1", "explain_2", "rest"]]


def test_kept_columns_that_collide(place: Place) -> None:
    with pytest.raises(UsageError, match="'rest'"):
        place.score("size,colour,rest\n1,red,x\n", keep="all", explain=1)


@pytest.mark.parametrize("parts", [1, 7])
def test_blocks_do_not_show(place: Place, monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    data = "size,colour\n" + "".join(f"{i % 4},{('red', 'blue', 'x')[i % 3]}\n" for i in range(100))
    place.score(data, explain=2)
    expected = place.output.read_bytes()
    monkeypatch.setattr(row_scoring, "NUMBERS_PER_BLOCK", 100)
    place.score(data, parts=parts, explain=2)
    assert place.output.read_bytes() == expected


def test_predictions_stay_as_they_are(place: Place) -> None:
    place.score(DATA)
    plain = place.rows()
    place.score(DATA, explain=2)
    assert [row[:3] for row in place.rows()] == plain


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(models(), st.integers(0, 99), st.integers(1, 4), st.sampled_from([None, 0, 3, 14]))
def test_what_is_written_adds_up(tmp_path: Path, model: Model, seed: int, most: int, digits: int | None) -> None:
    _, texts = _random_rows(model.schema, 6, np.random.default_rng(seed))
    write_model(str(tmp_path / "m.bnc"), model)
    names = [*(a.name for a in model.schema.attributes), "row"]
    lines = [",".join(names), *(",".join([*row, str(t)]) for t, row in enumerate(texts))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    output = tmp_path / "out.jsonl"
    source = Source((str(tmp_path / "data.csv"),))
    score(
        str(tmp_path / "m.bnc"),
        source,
        output=ScoreOutput(path=str(output), explain=most, digits=digits, log_proba=True),
    )
    for line in output.read_text().splitlines():
        row = json.loads(line)
        reasons = [row[f"explain_{k}"] for k in range(1, most + 1)]
        total = row["base"] + row["rest"] + sum(r["contribution"] for r in reasons if r is not None)
        assert total == pytest.approx(row["log_odds"], abs=1e-9, rel=1e-12)
        if digits is None:
            logs = {label: row[f"p_{label}"] for label in model.schema.labels}
            own = logs.pop(row["prediction"])
            assert row["log_odds"] == pytest.approx(own - sum(logs.values()) / len(logs), abs=1e-9, rel=1e-12)
