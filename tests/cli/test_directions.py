"""--increasing, --decreasing, --towards through the command line and from Python."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli as package
from bncli.errors import BncliError
from bncli.files.artifacts.model import dump_model, read_model
from tests.cli.conftest import Bncli
from tests.sweeps import first_few

FIT = ("fit", "iris.csv", "--structure", "nb", "--penalty", "1", "-q")
RISING = ("--increasing", "sepal_width", "--decreasing", "petal_length")


def described(path: str) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = json.loads(archive.read("model.json"))
    return found


def test_the_label_is_kept_in_the_model_and_shown(bncli: Bncli) -> None:
    assert bncli(*FIT, *RISING, "--towards", "virginica", "-o", "m.bnc").code == 0
    assert described("m.bnc")["schema"]["towards"] == "virginica"
    assert described("m.bnc")["recipe"]["towards"] == "virginica"
    assert dump_model(read_model("m.bnc")) == Path("m.bnc").read_bytes()
    shown = " ".join(bncli("inspect", "m.bnc").out.split())
    assert "directions of the log-odds of virginica" in shown
    assert "petal_length numeric, decreasing" in shown
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["towards"] == "virginica"


def test_of_two_labels_none_has_to_be_named_and_files_do_not_speak_of_it(bncli: Bncli) -> None:
    fit = ("fit", "tumours.csv", "--structure", "nb", "--penalty", "1", "-q", "--decreasing", "radius")
    assert bncli(*fit, "-o", "plain.bnc").code == 0
    assert "towards" not in {*described("plain.bnc")["schema"], *described("plain.bnc")["recipe"]}
    assert bncli(*fit, "--towards", "malignant", "-o", "second.bnc").code == 0
    assert bncli(*fit, "--towards", "benign", "-o", "first.bnc").code == 0
    plain, second, first = (
        np.array([[float(p) for p in row[1:]] for row in list(csv.reader(io.StringIO(ran.out)))[1:]])
        for ran in (bncli("score", f"{name}.bnc", "tumours.csv", "-q") for name in ("plain", "second", "first"))
    )
    assert np.array_equal(plain, second)
    assert np.abs(first - second).max() > 0.1


def scored_line(bncli: Bncli, model: str, column: str, values: list[float]) -> np.ndarray:
    """P(virginica) of the rows of iris.csv with each of these values in a column, (values, rows)."""
    heading, *rows = csv.reader(Path("iris.csv").read_text().splitlines())
    i, found = heading.index(column), []
    for value in values:
        with Path("x.csv").open("w", newline="") as file:
            csv.writer(file).writerows([heading, *([*row[:i], value, *row[i + 1 :]] for row in rows)])
        lines = csv.DictReader(io.StringIO(bncli("score", model, "x.csv", "-q").out))
        found.append([float(line["p_virginica"]) for line in lines])
    return np.array(found)


@pytest.mark.parametrize("learner", first_few(["--structure interactions --penalty 1", "--structure auto --effort 1"]))
def test_scores_rise_and_fall_as_was_said(bncli: Bncli, learner: str) -> None:
    fit = ("fit", "iris.csv", *learner.split(), "-q")
    assert bncli(*fit, *RISING, "--towards", "virginica", "-o", "m.bnc").code == 0
    assert bncli(*fit, "-o", "free.bnc").code == 0
    widths, lengths = np.linspace(1.5, 5, 15).tolist(), np.linspace(0.5, 8, 16).tolist()
    for name, sign in (("m.bnc", 1), ("free.bnc", -1)):
        rise = np.diff(scored_line(bncli, name, "sepal_width", widths), axis=0).min()
        fall = -np.diff(scored_line(bncli, name, "petal_length", lengths), axis=0).max()
        assert (min(rise, fall) > -1e-9) == (sign == 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--increasing petal_length",
            "--increasing refers to one label, but 'class' has 3 labels; choose it, as in --towards",
        ),
        (
            "--increasing petal_length --towards rosa",
            "names 'rosa', which is not a label of the class 'class'; its ",
        ),
        ("--increasing petal_length --towards petal_length", "its labels are setosa, versicolor, virginica"),
        ("--increasing petal_length --towards 1", "names '1', which"),
        ("--towards setosa", "--towards has no effect without --increasing or --decreasing; add --increasing COLUMN"),
        ("--towards setosa --param map --increasing petal_length", "has no effect with --param map"),
        (
            "--increasing petal_length --towards setosa --towards virginica",
            "Invalid value for '--towards': it was given 2 times, with 'setosa' and 'virginica'",
        ),
        (
            "--increasing petal_length --towards setosa --towards setosa",
            "Invalid value for '--towards': it was given 2 times, with 'setosa' and 'setosa'",
        ),
        (
            "--increasing petal_length --towards setosa --calibrate per-class",
            "per-class calibration fits a map for each of 3 labels, which may violate monotone directions",
        ),
    ],
)
def test_bad_input_is_named(bncli: Bncli, words: str, message: str) -> None:
    ran = bncli("fit", "iris.csv", *words.split(), "-o", "m.bnc")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert message in ran.err
    assert not Path("m.bnc").exists()


def test_an_empty_label_is_none(bncli: Bncli) -> None:
    ran = bncli(*FIT, *RISING, "--towards", " ", "-o", "m.bnc")
    assert (ran.code, ran.err) == (2, "Error: Invalid value for '--towards': ' ' is not a label: labels are strings\n")


def test_maps_a_label_undo_directions_and_a_temperature_does_not(bncli: Bncli) -> None:
    assert bncli(*FIT, *RISING, "--towards", "setosa", "-o", "m.bnc").code == 0
    for method in ("isotonic", "per-class"):
        ran = bncli("calibrate", "m.bnc", "iris.csv", "--method", method, "-o", "c.bnc")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "use --method temperature, which keeps them" in ran.err
    assert bncli("calibrate", "m.bnc", "iris.csv", "--method", "temperature", "-o", "c.bnc").code == 0
    assert read_model("c.bnc").schema.towards == "setosa"


def test_labels_that_are_numbers(bncli: Bncli) -> None:
    """They are named as the table writes them, or by whole numbers of Python."""
    lines = Path("iris.csv").read_text().replace("setosa", "10").replace("versicolor", "9").replace("virginica", "2")
    Path("n.csv").write_text(lines)
    fit = ("fit", "n.csv", "--structure", "nb", "--penalty", "1", "-q", *RISING)
    assert bncli(*fit, "--towards", "10", "-o", "m.bnc").code == 0
    assert bncli(*fit, "--towards", "10.0", "-o", "x.bnc").err.endswith("its labels are 2, 9, 10\n")
    options: dict[str, Any] = {"increasing": "sepal_width", "decreasing": ["petal_length"], "structure": "nb"}
    model = package.fit("n.csv", **options, penalty=1, towards=10)
    model.save("p.bnc")
    assert Path("p.bnc").read_bytes() == Path("m.bnc").read_bytes()
    for wrong in (10.0, True, ["10"], ""):
        with pytest.raises(BncliError, match="is not a label: labels are strings"):
            package.fit("n.csv", **options, towards=wrong)


def test_a_setting_is_a_label_too(bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Path("iris.csv").read_text().replace("setosa", '"wild, and old"')
    Path("n.csv").write_text(lines)
    monkeypatch.setenv("BNCLI_TOWARDS", "wild, and old")
    fit = ("fit", "n.csv", "--structure", "nb", "--penalty", "1", "-q")
    assert bncli(*fit, *RISING, "-o", "m.bnc").code == 0
    assert read_model("m.bnc").schema.towards == "wild, and old"
    assert "BNCLI_TOWARDS is ignored: --towards has no effect" in bncli(*fit[:-1], "-o", "m.bnc").err
    monkeypatch.delenv("BNCLI_TOWARDS")
    Path("c.toml").write_text('towards = ["virginica", "setosa"]\n')
    ran = bncli(*fit, *RISING, "--config", "c.toml", "-o", "m.bnc")
    assert (ran.code, ran.err) == (2, "Error: towards takes one value, not a list, towards in c.toml\n")


@pytest.mark.slow
def test_evaluation_and_comparison_heed_it(bncli: Bncli) -> None:
    words = ("iris.csv", "--structure", "nb", "--penalty", "1", "--folds", "2", "--json", "-q")
    free, towards, other = (
        json.loads(bncli("evaluate", *words, *more).out)["log_loss"]
        for more in ((), (*RISING, "--towards", "virginica"), (*RISING, "--towards", "setosa"))
    )
    assert other < free < towards  # setosa has wide sepals and short petals
    learner = "--structure nb --penalty 1"
    ran = bncli("compare", "iris.csv", "--json", "-q", "--jobs", "1", "--folds", "2", "--learner", f"free={learner}",
                "--learner", f"towards={learner} {' '.join(RISING)} --towards virginica")  # fmt: skip
    assert ran.code == 0, ran.err
    ran = bncli("compare", "iris.csv", "-q", "--learner", f"{learner} --increasing petal_length --towards rosa")
    assert "names 'rosa'" in ran.err
