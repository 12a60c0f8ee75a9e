"""What-if questions, surprise and monitors of a model in Python give the answers of the command."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bncli
from bncli.cli.main import run
from bncli.errors import ModelError, UsageError
from tests.transcripts import ROOT

IRIS = str(ROOT / "sample_data" / "iris.csv")
HOLES = str(ROOT / "sample_data" / "wine_holes.csv")


def scores(model: bncli.Model, data: str, folder: Path, *words: str) -> list[dict[str, str]]:
    model.save(folder / "m.bnc")
    assert run(["score", str(folder / "m.bnc"), data, "-o", str(folder / "s.csv"), "-q", *words]) == 0
    with open(folder / "s.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_same_as_the_command(tmp_path: Path) -> None:
    model = bncli.fit(IRIS, param="map")
    words = ("--set", "petal_width=1.5", "--flip", "--flip-columns", "petal_width,petal_length", "--surprise")
    rows = scores(model, IRIS, tmp_path, *words, "--monitor", str(tmp_path / "m.json"))
    p_if = [[float(row[f"p_if_{label}"]) for label in model.classes_] for row in rows]
    assert np.allclose(model.what_if(IRIS, {"petal_width": 1.5}), p_if, atol=1e-12)
    assert model.flip(IRIS, ["petal_width", "petal_length"]) == [row["flip"] for row in rows]
    assert np.allclose(model.surprise(IRIS), [float(row["surprise"]) for row in rows])
    assert json.loads((tmp_path / "m.json").read_text()) == model.monitor(IRIS)


def test_what_fixes_the_decision(tmp_path: Path) -> None:
    model = bncli.fit(IRIS, param="map")
    rows = scores(model, IRIS, tmp_path, "--because")
    reasons = model.because(IRIS)
    texts = ["|".join(f"{name}={value}" for name, value in one.values.items()) for one in reasons]
    assert texts == [row["because"] for row in rows]
    assert [one.exact for one in reasons] == [row["because_exact"] == "true" for row in rows]
    assert all(reasons[0].values)
    with pytest.raises(UsageError, match="seconds is 0"):
        model.because(IRIS, 0)


def test_properties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = bncli.fit(IRIS, structure="nb", param="map")
    model.save(tmp_path / "m.bnc")
    texts = ["sepal_width never decides alone", "the probability of setosa is never above 0.5"]
    assert run(["verify", str(tmp_path / "m.bnc"), "--json", "--property", texts[0], "--property", texts[1]]) == 3
    found = model.verify(texts)
    assert found == json.loads(capsys.readouterr().out)["properties"]
    assert [one["holds"] for one in found] == [True, False]
    assert model.verify(texts[1])[0]["p"]["setosa"] > 0.5
    with pytest.raises(UsageError, match="did you mean 'petal_width'"):
        model.verify("petal_widht never decides alone")


def test_what_to_ask_next(tmp_path: Path) -> None:
    model = bncli.fit(HOLES, param="map", missing_policy="marginalize")
    assert model.next_best(HOLES) == [row["next_best"] for row in scores(model, HOLES, tmp_path, "--next-best")]


def test_what_cannot_be_asked() -> None:
    model = bncli.fit(IRIS, structure="tan")
    with pytest.raises(ModelError, match="not the probabilities of a network"):
        model.next_best(IRIS)
    with pytest.raises(UsageError, match="did you mean 'petal_width'"):
        model.what_if(IRIS, {"petal_widht": 1})
    assert np.allclose(model.what_if(IRIS, {"petal_width": None}).sum(axis=1), 1)


def test_a_model_names_five_labels_and_explains_three_contributions() -> None:
    rows = {name: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] * 9 for name in "uvwz"} | {"class": [*"abcdef"] * 9}
    model = bncli.fit(rows, structure="nb", param="map", progress=lambda event: None)
    assert "class (a, b, c, d, e): nb map, 54 rows" in repr(model)
    assert [len(row.contributions) for row in model.explain({name: [1.0] for name in "uvwz"})] == [3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: bncli.simulate(model, 0), "rows is 0; it should be a whole number of at least 1"),
        (lambda model: bncli.simulate(model, 3, seed=-1), "seed is -1; it should be a whole number of at least 0"),
        (lambda model: bncli.simulate(model, 3, seed="x"), "seed is 'x'; it should be a whole number of at least 0"),
        (lambda model: bncli.simulate(model, 3, missing=2), "missing is 2; it should be a number between 0 and 1"),
        (lambda model: bncli.evaluate(IRIS, folds=1), "folds is 1; it should be a whole number of at least 2"),
        (lambda model: bncli.evaluate(IRIS, folds=2.5), "folds is 2.5; it should be a whole number of at least 2"),
        (lambda model: bncli.evaluate(IRIS, repeats=0), "repeats is 0; it should be a whole number of at least 1"),
        (lambda model: bncli.compare([IRIS], {}, folds="3"), "folds is '3'; it should be a whole number of at least 2"),
        (lambda model: model.flip(IRIS, changes=7), "changes is 7; it should be a whole number from 1 to 6"),
        (lambda model: model.flip(IRIS, "width"), "the model has no column 'width'"),
        (lambda model: model.because(IRIS, seconds="x"), "seconds is 'x'; it should be a number above 0"),
        (lambda model: model.because(IRIS, seconds=0), "seconds is 0; it should be a number above 0"),
        (lambda model: model.explain(IRIS, n=True), "n is True; it should be a whole number of at least 1"),
        (
            lambda model: model.predict_interval(IRIS, level="0.9"),
            "level is '0.9'; it should be a number between 0 and 1",
        ),
        (lambda model: model.decide(IRIS, abstain_wider="x"), "abstain_wider is 'x'; it should be a number between 0"),
    ],
)
def test_numbers_are_checked_as_on_the_command_line(call: Callable[[bncli.Model], object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        call(bncli.fit(IRIS, structure="nb", param="map"))


def test_calibrating_on_the_training_rows_is_warned_of() -> None:
    model = bncli.fit(IRIS, structure="nb", param="map")
    with pytest.warns(UserWarning, match="look like the training rows"):
        model.calibrate(IRIS)


def test_a_column_is_no_single_value() -> None:
    for value in ("ab", 3.5):
        with pytest.raises(UsageError, match="it should be a list or an array"):
            bncli.fit({"a": value, "class": ["x", "y"]})


def test_values_never_seen_are_an_error_only_where_that_was_asked_for() -> None:
    rows = {"a": [*"uuvv"] * 9, "class": [*"xxyy"] * 9}
    model = bncli.fit(rows, structure="nb", param="map")
    assert np.isfinite(model.predict_proba({"a": ["new", "u"]})).all()
    with pytest.raises(ModelError, match="not seen in training"):
        model.predict_proba({"a": ["new", "u"]}, unseen="error")
