"""`bncli score --set`, `--flip`, `--next-best`, `--surprise`."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_paired_outcome_is_that_of_a_table_with_the_value(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "-o", "m.bnc").code == 0
    found = rows_of(bncli("score", "m.bnc", "iris.csv", "--set", "petal_width=1.5", "--set", "sepal_width=").out)
    plain = rows_of(bncli("score", "m.bnc", "iris.csv").out)
    rows = [row | {"petal_width": "1.5", "sepal_width": ""} for row in rows_of(Path("iris.csv").read_text())]
    with open("changed.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    changed = rows_of(bncli("score", "m.bnc", "changed.csv").out)
    for row, before, after in zip(found, plain, changed, strict=True):
        assert row == before | {
            name.replace("p_", "p_if_"): value for name, value in after.items() if name[:2] == "p_"
        } | {"prediction_if": after["prediction"]}
    header = list(found[0])
    labels = ("setosa", "versicolor", "virginica")
    assert header == ["prediction", *(f"p_{y}" for y in labels), "prediction_if", *(f"p_if_{y}" for y in labels)]


def test_formats_and_digits(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    words = ("score", "m.bnc", "iris.csv", "--set", "petal_width=9", "--flip", "--surprise")
    rows = rows_of(bncli(*words, "--digits", 3).out)
    assert (rows[0]["p_setosa"], rows[0]["p_if_setosa"]) == ("1.000", "0.750")
    assert all(len(row["surprise"].partition(".")[2]) <= 3 for row in rows)
    objects = [json.loads(line) for line in bncli(*words, "--output-format", "jsonl").out.splitlines()]
    assert isinstance(objects[0]["p_if_setosa"], float)
    assert isinstance(objects[0]["surprise"], float)
    only = rows_of(bncli(*words, "--labels-only").out)
    assert list(only[0]) == ["prediction", "prediction_if", "flip", "surprise"]
    logs = rows_of(bncli(*words, "--log-proba").out)
    assert float(logs[0]["p_if_setosa"]) < 0
    assert bncli(*words, "-o", "s.parquet").code == 0
    assert bncli("score", "m.bnc", "iris.csv", "--surprise", "--monitor", "m.json", "-o", "s.csv").code == 0
    mean = sum(float(row["surprise"]) for row in rows_of(Path("s.csv").read_text())) / 150
    assert json.loads(Path("m.json").read_text())["mean_log_p"] == pytest.approx(-mean)


def test_a_flip_flips(bncli: Bncli) -> None:
    """Every change that is told leads to another label where it is made in the table."""
    assert bncli("fit", "monks1.csv", "--structure", "kdb", "--k", "2", "-o", "m.bnc").code == 0
    table = rows_of(Path("monks1.csv").read_text())
    found = rows_of(bncli("score", "m.bnc", "monks1.csv", "--flip", "--flip-columns", "a1,a2,a5").out)
    assert any(row["flip"].count("=") == 1 for row in found)
    changed = []
    for row, scored in zip(table, found, strict=True):
        assert scored["flip"]
        changes = dict(change.split("=") for change in scored["flip"].split("; "))
        assert set(changes) <= {"a1", "a2", "a5"}
        changed.append(row | changes)
    with open("changed.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(changed)
    after = rows_of(bncli("score", "m.bnc", "changed.csv").out)
    assert all(one["prediction"] != other["prediction"] for one, other in zip(found, after, strict=True))


def test_a_flip_flips_the_decision(bncli: Bncli) -> None:
    """Where the model decides by costs, or an option says a threshold, the decision flips and not the prediction."""
    costs = ("--costs", "benign:malignant=1,malignant:benign=30")
    assert bncli("fit", "tumours.csv", "--param", "map", *costs, "-o", "m.bnc").code == 0
    table = rows_of(Path("tumours.csv").read_text())[:60]
    write_rows("some.csv", table)
    values_of = {}
    for attribute in json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"]:
        cuts = attribute.get("cuts", [])
        middles = [(low + high) / 2 for low, high in itertools.pairwise(cuts)]
        numbers = [cuts[0] - 1, *middles, cuts[-1] + 1] if cuts else []
        values_of[attribute["name"]] = attribute.get("levels", numbers)
    for said in (("--prior", "benign=0.9,malignant=0.1"), ("--threshold", "0.02")):
        found = rows_of(bncli("score", "m.bnc", "some.csv", *said, "--flip", "--flip-changes", "1").out)
        assert any(row["decision"] != row["prediction"] for row in found)
        reached: list[set[str]] = [set() for _ in table]
        for name, values in values_of.items():
            for value in values:
                write_rows("changed.csv", [row | {name: value} for row in table])
                for row, after in zip(reached, rows_of(bncli("score", "m.bnc", "changed.csv", *said).out), strict=True):
                    row.add(after["decision"])
        for row, labels in zip(found, reached, strict=True):
            assert bool(row["flip"]) == (len(labels) > 1)


def write_rows(path: str, rows: Sequence[Mapping[str, object]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_next_best_names_a_missing_column(bncli: Bncli) -> None:
    words = ("--param", "map", "--missing-policy", "marginalize", "-o", "m.bnc")
    assert bncli("fit", "wine_holes.csv", *words).code == 0
    table = rows_of(Path("wine_holes.csv").read_text())
    found = rows_of(bncli("score", "m.bnc", "wine_holes.csv", "--next-best").out)
    assert any(row["next_best"] for row in found)
    for row, scored in zip(table, found, strict=True):
        lacking = {name for name, value in row.items() if value in ("", "?", "NA")}
        assert scored["next_best"] in (lacking or {""})


def test_what_to_ask_next_depends_on_the_prior(bncli: Bncli) -> None:
    """Nothing is worth asking where the class is known beforehand; where it is not, columns differ in their worth."""
    words = ("--param", "map", "--missing-policy", "marginalize", "-o", "m.bnc")
    assert bncli("fit", "wine_holes.csv", *words).code == 0
    score = ("score", "m.bnc", "wine_holes.csv", "--next-best")
    prior = "cultivar_1=1,cultivar_2=1e-30,cultivar_3=1e-30"
    plain, sure = rows_of(bncli(*score).out), rows_of(bncli(*score, "--prior", prior).out)
    assert len(plain) == len(sure) == 178
    assert any(row["next_best"] for row in plain)
    assert not any(row["next_best"] for row in sure)


def test_a_column_that_is_not_there_can_be_asked_for(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "--structure", "nb", "-o", "m.bnc").code == 0
    Path("one.csv").write_text("sepal_length,sepal_width\n5.0,3.1\n")
    done = bncli("score", "m.bnc", "one.csv", "--allow-missing-columns", "--next-best")
    assert rows_of(done.out)[0]["next_best"] in ("petal_length", "petal_width")
    Path("one.csv").write_text("sepal_length,sepal_width,petal_length,petal_width\n5.0,3.1,1.4,0.2\n")
    assert rows_of(bncli("score", "m.bnc", "one.csv", "--next-best").out)[0]["next_best"] == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--set", "a1"), 2, "--set takes COLUMN=VALUE, not 'a1'"),
        (("--set", "a9=1"), 2, "the model has no column 'a9'; did you mean"),
        (("--set", "a1=9"), 2, "'a1' has no value '9'; it has 1, 2, 3"),
        (("--set", "a1=1", "--set", "a1=2"), 2, "the column 'a1' is set twice"),
        (("--set", "class=1"), 2, "'class' is the class"),
        (("--flip-columns", "a1"), 2, "--flip-columns has no effect without --flip"),
        (("--flip-changes", "2"), 2, "--flip-changes has no effect without --flip"),
        (("--flip", "--flip-columns", "shoe"), 2, "the model has no column 'shoe'"),
        (("--next-best",), 3, "the parameters 'weighted' of the model are not the probabilities of a network"),
        (("--surprise",), 3, "the parameters 'weighted' of the model are not the probabilities of a network"),
    ],
)
def test_what_cannot_be_asked(bncli: Bncli, words: tuple[str, ...], code: int, said: str) -> None:
    assert bncli("fit", "monks1.csv", "--penalty", "1", "-o", "m.bnc").code == 0
    done = bncli("score", "m.bnc", "monks1.csv", "-o", "s.csv", *words)
    assert (done.code, done.err.startswith(f"Error: {said}")) == (code, True), done.err
    assert not Path("s.csv").exists()


def test_missing_as_a_value_is_not_asked_for(bncli: Bncli) -> None:
    assert bncli("fit", "wine_holes.csv", "--param", "map", "-o", "m.bnc").code == 0
    done = bncli("score", "m.bnc", "wine_holes.csv", "--next-best")
    assert done.code == 3
    assert "is a value of its own to the model" in done.err
    assert "--missing-policy marginalize" in done.err


def test_kept_columns_of_such_names_are_refused(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    text = Path("iris.csv").read_text().splitlines(keepends=True)
    Path("more.csv").write_text("flip," + text[0] + "".join("x," + line for line in text[1:]))
    done = bncli("score", "m.bnc", "more.csv", "--flip", "--keep", "flip")
    assert (done.code, "has the name of an output column" in done.err) == (2, True)
