"""Unequal classes: weights in learning, priors in scoring, through the command line and from Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import bncli as package
from bncli.files.artifacts.model import read_model
from tests.cli.conftest import Bncli, prepare

LEARNERS = ("--structure nb --param map", "--structure tan", "--structure auto --effort 1", "--structure interactions")


def table(path: str) -> list[list[str]]:
    return list(csv.reader(Path(path).read_text().splitlines()))


def write(path: str, rows: list[list[str]]) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def scored(text: str) -> np.ndarray:
    rows = list(csv.reader(io.StringIO(text)))[1:]
    return np.array([[float(x) for x in row[1:]] for row in rows])


@pytest.mark.parametrize("learner", ["--structure nb --param map", "--structure tan --param weighted --penalty 1"])
def test_whole_weights_are_rows_so_many_times(bncli: Bncli, learner: str) -> None:
    heading, *rows = table("tumours.csv")
    write("twice.csv", [heading, *(row for row in rows for _ in range(3 if row[-1] == "malignant" else 2))])
    assert (
        bncli("fit", "tumours.csv", *learner.split(), "--class-weights", "malignant=3,benign=2", "-o", "w.bnc").code
        == 0
    )
    assert bncli("fit", "twice.csv", *learner.split(), "-o", "t.bnc").code == 0
    weighted, repeated = read_model("w.bnc"), read_model("t.bnc")
    assert weighted.schema == repeated.schema
    assert weighted.class_weights == (2.0, 3.0)
    assert repeated.class_weights is None
    one, other = (scored(bncli("score", name, "tumours.csv", "-q").out) for name in ("w.bnc", "t.bnc"))
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_balanced_classes_and_the_way_back(bncli: Bncli, learner: str) -> None:
    assert bncli("fit", "tumours.csv", *learner.split(), "--class-weights", "balanced", "-o", "w.bnc", "-q").code == 0
    model = read_model("w.bnc")
    counts = np.array([357.0, 212.0])
    assert model.class_weights == pytest.approx(569 / (2 * counts))
    assert model.schema.label_frequencies == pytest.approx((284.5, 284.5))
    plain = bncli("score", "w.bnc", "tumours.csv")
    assert "--prior training corrects them for the class frequencies" in plain.err
    back = bncli("score", "w.bnc", "tumours.csv", "--prior", "training")
    assert "--prior" not in back.err
    p = scored(plain.out) * counts
    np.testing.assert_allclose(scored(back.out), p / p.sum(axis=1, keepdims=True), rtol=1e-9)
    typed = ",".join(f"{label}={n / 569!r}" for label, n in zip(("benign", "malignant"), counts.tolist(), strict=True))
    np.testing.assert_allclose(
        scored(bncli("score", "w.bnc", "tumours.csv", "--prior", typed).out), scored(back.out), rtol=1e-9
    )


def test_a_prior_is_that_of_naive_bayes_learnt_under_it(bncli: Bncli) -> None:
    """Without smoothing P(x | y) is the same whatever classes weigh, and only the prior differs."""
    learner = ["--structure", "nb", "--param", "map", "--smoothing", "mle", "--cuts", "cuts.json"]
    bncli("discretize", "tumours.csv", "--cuts-out", "cuts.json", "-q")
    bncli("fit", "tumours.csv", *learner, "-o", "plain.bnc")
    bncli("fit", "tumours.csv", *learner, "--class-weights", "balanced", "-o", "even.bnc")
    Path("prior.json").write_text('{"malignant": 0.5, "benign": 0.5}')
    found = scored(bncli("score", "plain.bnc", "tumours.csv", "--prior", "prior.json").out)
    np.testing.assert_allclose(
        found, scored(bncli("score", "even.bnc", "tumours.csv", "-q").out), rtol=1e-9, atol=1e-290
    )


def test_the_prior_of_an_explanation_is_part_of_the_base(bncli: Bncli) -> None:
    for structure, param in (("tan", "map"), ("kikuchi", "kmap")):
        bncli("fit", "tumours.csv", "--structure", structure, "--param", param, "-o", "m.bnc")
        prior = ("--prior", "benign=0.1,malignant=0.9")
        rows = list(csv.DictReader(io.StringIO(bncli("score", "m.bnc", "tumours.csv", *prior, "--explain", "2").out)))
        for row in rows[:50]:
            parts = [float(row["base"]), float(row["rest"])]
            parts += [float(row[f"explain_{i}"].rpartition(":")[2]) for i in (1, 2) if row[f"explain_{i}"]]
            other = "benign" if row["prediction"] == "malignant" else "malignant"
            assert float(row["log_odds"]) == pytest.approx(sum(parts), abs=1e-6)
            odds = float(row[f"p_{row['prediction']}"]) / max(float(row[f"p_{other}"]), 1e-300)
            assert np.log(odds) == pytest.approx(float(row["log_odds"]), abs=1e-3)


def test_row_weights_are_heeded(bncli: Bncli) -> None:
    heading, *rows = table("tumours.csv")
    write("w.csv", [[*heading[:-1], "w", heading[-1]], *([*r[:-1], str(1 + i % 3), r[-1]] for i, r in enumerate(rows))])
    fit = ("fit", "w.csv", "--structure", "nb", "--param", "map", "--weights", "w")
    ran = bncli(*fit, "--class-weights", "balanced", "-o", "w.bnc", "--json")
    masses = {label: sum(1 + i % 3 for i, r in enumerate(rows) if r[-1] == label) for label in ("benign", "malignant")}
    total = sum(masses.values())
    assert json.loads(ran.out)["class_weights"] == pytest.approx({k: total / (2 * n) for k, n in masses.items()})
    assert read_model("w.bnc").schema.label_frequencies == pytest.approx((total / 2, total / 2))


def test_codes_and_evaluation_and_comparison_weigh_too(bncli: Bncli) -> None:
    weights = ("--class-weights", "malignant=9")
    learner = ("--structure", "nb", "--param", "map")
    bncli("encode", "tumours.csv", "-o", "t.codes", "-q")
    assert bncli("fit", "t.codes", *learner, *weights, "-o", "c.bnc", "-q").code == 0
    assert read_model("c.bnc").schema.label_frequencies == (357.0, 9 * 212.0)
    plain, weighted = (
        json.loads(bncli("evaluate", "tumours.csv", *learner, *more, "--json", "-q").out) for more in ((), weights)
    )
    assert weighted["rows"] == plain["rows"]  # test rows weigh as ever
    assert np.sum(weighted["confusion"]) == np.sum(plain["confusion"]) == 569
    recall = [report["per_class"][1]["recall"] for report in (plain, weighted)]
    assert recall[1] > recall[0]
    Path("w.csv").write_text("label,weight\nmalignant,9\n")
    compared = bncli("compare", "tumours.csv", "--folds", "2", "--json", "-q", "--jobs", "1",
                     "--learner", "a=--structure nb --param map --class-weights malignant=9",
                     "--learner", "b=--structure nb --param map --class-weights w.csv")  # fmt: skip
    assert compared.code == 0, compared.err
    assert "learners" in json.loads(compared.out)


def test_a_label_that_does_not_exist_is_wrong_usage(bncli: Bncli) -> None:
    assert bncli("fit", "tumours.csv", "--class-weights", "bengn=2", "-o", "m.bnc").code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "fit tumours.csv --class-weights bengn=2",
            "names 'bengn', which is not a label of the class 'diagnosis'",
        ),
        ("fit tumours.csv --class-weights benign=0", "the number for label 'benign' must be finite and above 0"),
        ("fit tumours.csv --class-weights benign=-1", "the number for label 'benign' must be finite and above 0"),
        ("fit tumours.csv --class-weights even", "'even' is not of the form label=NUMBER, nor balanced"),
        ("fit --from-counts x.counts --param map --class-weights balanced", "--class-weights has no effect"),
        ("score m.bnc tumours.csv --prior benign=1", "no probability for the label 'malignant'"),
        ("score m.bnc tumours.csv --prior benign=1,malignant=1", "sum to 2"),
        ("score m.bnc tumours.csv --prior benign=1,malignant=x", "'malignant=x' is not of the form label=NUMBER"),
    ],
)
def test_bad_input_is_named(bncli: Bncli, words: str, message: str) -> None:
    prepare(
        bncli,
        "fit tumours.csv --structure nb --param map -o m.bnc",
        "discretize tumours.csv --cuts-out c.json -q",
        "count tumours.csv --cuts c.json --structure pairs -o x.counts -q",
    )
    ran = bncli(*words.split())
    assert ran.code in (1, 2)
    assert message in " ".join(ran.err.split()), ran.err


def test_from_python(bncli: Bncli) -> None:
    options = {"structure": "nb", "param": "map", "progress": lambda event: None}
    model = package.fit("tumours.csv", class_weights={"malignant": 3, "benign": 2}, **options)
    assert bncli("fit", "tumours.csv", "--structure", "nb", "--param", "map", "--class-weights", "malignant=3,benign=2",
                 "-o", "c.bnc", "-q").code == 0  # fmt: skip
    model.save("p.bnc")
    assert Path("p.bnc").read_bytes() == Path("c.bnc").read_bytes()
    found = model.predict_proba("tumours.csv", prior="training")
    np.testing.assert_allclose(found, scored(bncli("score", "c.bnc", "tumours.csv", "--prior", "training").out))
    even = model.predict_proba("tumours.csv", prior={"malignant": 0.5, "benign": 0.5})
    assert even.shape == found.shape
    assert (even[:, 1] >= found[:, 1]).all()
