"""`bncli score`: what-if questions (`--set`, `--flip`, `--next-best`, `--surprise`), `--monitor`, `--fail-on-drift`."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bncli as package
from bncli.errors import ModelError
from bncli.files.artifacts.model import read_training_log_p, training_log_p_json
from bncli.files.json_documents import parse_json
from bncli.watch import silent
from tests.cli.conftest import Bncli


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_paired_outcome_is_that_of_a_table_with_the_value(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
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
    assert bncli("fit", "monks1.csv", "--structure", "kdb", "--k", "2", "--penalty", "1", "-o", "m.bnc").code == 0
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
    table = rows_of(Path("tumours.csv").read_text())[:40]
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
        (("--set", "a1"), 2, "--set must be COLUMN=VALUE, not 'a1'"),
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
    assert "counts as one more value in this model" in done.err
    assert "--missing-policy marginalize" in done.err


def test_kept_columns_of_such_names_are_refused(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    text = Path("iris.csv").read_text().splitlines(keepends=True)
    Path("more.csv").write_text("flip," + text[0] + "".join("x," + line for line in text[1:]))
    done = bncli("score", "m.bnc", "more.csv", "--flip", "--keep", "flip")
    assert (done.code, "has the name of an output column" in done.err) == (2, True)


def monitor_of(bncli: Bncli, data: str, *words: str, model: str = "m.bnc") -> dict[str, Any]:
    done = bncli("score", model, data, "-o", "scores.csv", "--monitor", "monitor.json", "-q", *words)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(Path("monitor.json").read_text())
    return found


def rows_in_file(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path: str, rows: list[dict[str, str]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_figures_against_counting_by_hand(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    rows = rows_in_file("iris.csv")[30:110]
    write("new.csv", rows)
    found = monitor_of(bncli, "new.csv")
    scores = rows_in_file("scores.csv")
    cuts = {a["name"]: a["cuts"] for a in json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"]}
    for attribute in found["attributes"]:
        bounds = cuts[attribute["name"]]
        new, old = (
            np.bincount([sum(float(row[attribute["name"]]) > cut for cut in bounds) for row in some], minlength=3)
            for some in (rows, rows_in_file("iris.csv"))
        )
        a, e = new / new.sum(), old / old.sum()
        a[a == 0] = 0.5 / new.sum()
        assert attribute["psi"] == pytest.approx(((a - e) * np.log(a / e)).sum())
        assert attribute["p"] == pytest.approx(stats.chi2_contingency(np.stack([new, old]), correction=False).pvalue)
        assert attribute["missing"] == attribute["unseen"] == 0
    predicted = [row["prediction"] for row in scores]
    assert found["predictions"] == {y: predicted.count(y) / 80 for y in ("setosa", "versicolor", "virginica")}
    p = [[float(row[f"p_{y}"]) for y in found["predictions"]] for row in scores]
    assert found["mean_confidence"] == pytest.approx(np.mean(np.max(p, axis=1)))
    losses = [-math.log(float(score[f"p_{row['class']}"])) for score, row in zip(scores, rows, strict=True)]
    assert found["log_loss"] == pytest.approx(np.mean(losses))
    assert found["labelled_rows"] == found["rows"] == 80
    assert found["mean_log_p"] < 0
    assert found["log_p_quantiles"]["0.05"] <= found["mean_log_p"] <= found["log_p_quantiles"]["0.95"]


def test_training_rows_do_not_drift(bncli: Bncli) -> None:
    assert bncli("fit", "tumours.csv", "--structure", "nb", "-o", "m.bnc").code == 0
    done = bncli("score", "m.bnc", "tumours.csv", "-o", "s.csv", "--monitor", "m.json", "--fail-on-drift")
    assert done.code == 0
    assert "no drift in " in done.err
    assert "Note: ln P(x) is not available: the parameters 'weighted' of the model" in done.err
    found = json.loads(Path("m.json").read_text())
    assert (found["drift"], found["drifted"], found["mean_log_p"]) == (False, [], None)
    assert all(attribute["psi"] == pytest.approx(0.0, abs=1e-12) for attribute in found["attributes"])


def test_drift_ends_with_code_4_after_all_is_written(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    write("new.csv", rows_in_file("iris.csv")[:60])
    words = ("score", "m.bnc", "new.csv", "-o", "s.csv", "--monitor", "m.json")
    assert bncli(*words).code == 0
    done = bncli(*words, "--fail-on-drift", "--json")
    assert done.code == 4
    assert done.err.startswith("Error: drift in 4 of 4 attributes: petal_width (PSI ")
    assert done.err.count("\n") == 1
    assert len(rows_in_file("s.csv")) == 60
    summary = json.loads(done.out)["monitor"]
    assert summary.pop("expected") == json.loads(Path("m.json").read_text())["expected"]
    assert summary == {
        "file": "m.json",
        "drift": True,
        "drifted": ["petal_width", "petal_length", "sepal_length", "sepal_width"],
    }
    assert json.loads(Path("m.json").read_text())["drift"] is True


@pytest.mark.parametrize("policy", ["level", "marginalize"])
def test_missing_values_count_where_training_had_some(bncli: Bncli, policy: str) -> None:
    done = bncli("fit", "wine_holes.csv", "--param", "map", "--missing-policy", policy, "-o", "m.bnc")
    assert done.code == 0, done.err
    found = monitor_of(bncli, "wine_holes.csv")
    rows = rows_in_file("wine_holes.csv")
    assert not found["drift"]
    for attribute in found["attributes"]:
        share = sum(row[attribute["name"]] in ("", "?", "NA") for row in rows) / len(rows)
        assert attribute["missing"] == pytest.approx(share)
        assert attribute["psi"] == pytest.approx(0.0, abs=1e-12)
    name = next(a["name"] for a in found["attributes"] if a["missing"] > 0)
    write("gaps.csv", [row | {name: ""} if t % 2 else row for t, row in enumerate(rows)])
    assert monitor_of(bncli, "gaps.csv")["drifted"] == [name]


def test_values_never_seen_are_drift_and_not_in_psi(bncli: Bncli) -> None:
    assert bncli("fit", "monks1.csv", "--param", "map", "--structure", "nb", "-o", "m.bnc").code == 0
    rows = rows_in_file("monks1.csv")
    name = next(key for key in rows[0] if key != "class")
    write("new.csv", [row | {name: "new!"} if t % 4 == 0 else row for t, row in enumerate(rows)])
    found = monitor_of(bncli, "new.csv")
    one = next(attribute for attribute in found["attributes"] if attribute["name"] == name)
    assert one["unseen"] == pytest.approx(sum(t % 4 == 0 for t in range(len(rows))) / len(rows))
    assert found["drifted"] == [name]
    assert one["psi"] < 0.05


def test_no_rows_and_no_class(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    header, *lines = Path("iris.csv").read_text().splitlines(keepends=True)
    Path("none.csv").write_text(header)
    found = monitor_of(bncli, "none.csv", "--fail-on-drift")
    assert (found["rows"], found["drift"], found["mean_log_p"], found["log_loss"]) == (0, False, None, None)
    Path("bare.csv").write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in (header, *lines)))
    found = monitor_of(bncli, "bare.csv")
    assert (found["rows"], found["log_loss"], found["class_shares"]) == (150, None, None)
    rows = rows_in_file("iris.csv")
    write("some.csv", [row | {"class": "?" if t % 2 else row["class"]} for t, row in enumerate(rows)])
    assert monitor_of(bncli, "some.csv")["labelled_rows"] == 75
    write("others.csv", [row | {"class": "rose"} for row in rows])
    assert monitor_of(bncli, "others.csv")["labelled_rows"] == 0


def test_scores_are_the_same_bytes_with_a_monitor(bncli: Bncli) -> None:
    assert bncli("fit", "wine_holes.csv", "--param", "map", "-o", "m.bnc").code == 0
    plain = bncli("score", "m.bnc", "wine_holes.csv", "--keep-all")
    assert bncli("score", "m.bnc", "wine_holes.csv", "--keep-all", "--monitor", "x.json").out == plain.out


def test_codes_and_counts_make_models_that_are_watched_alike(bncli: Bncli) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "--structure", "nb", "-o", "m.bnc").code == 0
    assert bncli("encode", "iris.csv", "-o", "iris.codes").code == 0
    assert bncli("fit", "iris.codes", "--param", "map", "--structure", "nb", "-o", "codes.bnc").code == 0
    assert monitor_of(bncli, "iris.csv") == monitor_of(bncli, "iris.csv", model="codes.bnc")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-on-drift",), "--fail-on-drift has no effect without --monitor"),
        (("--labels-only", "--digits", "0"), "--digits has no effect with --labels-only"),
        (("--monitor", "-"), "--monitor needs a file"),
        (("--monitor", "iris.csv"), "cannot write 'iris.csv': the input"),
        (("--monitor", "s.csv"), "cannot write 's.csv': the output"),
    ],
)
def test_what_does_not_go_together(bncli: Bncli, words: tuple[str, ...], said: str) -> None:
    assert bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc").code == 0
    done = bncli("score", "m.bnc", "iris.csv", "-o", "s.csv", *words)
    assert done.code == 2
    assert done.err.startswith(f"Error: {said}")
    assert not Path("s.csv").exists()


@pytest.mark.parametrize("words", [("--param", "map"), ("--penalty", "1")], ids=["map", "weighted"])
def test_class_weights_are_no_drift(bncli: Bncli, words: tuple[str, ...]) -> None:
    """Drift is told against the rows as they were, so that the very rows learned from have a PSI of 0."""
    assert bncli("fit", "tumours.csv", *words, "--class-weights", "malignant=20", "-o", "m.bnc").code == 0
    ran = bncli("score", "m.bnc", "tumours.csv", "-o", "s.csv", "--monitor", "m.json", "--fail-on-drift")
    assert ran.code == 0
    found = json.loads(Path("m.json").read_text())
    assert [one["psi"] for one in found["attributes"]] == pytest.approx([0.0] * len(found["attributes"]), abs=1e-12)
    assert bncli("verify", "m.bnc").code == 0
    table = Path("tumours.csv").read_text().splitlines()
    Path("some.csv").write_text("\n".join([table[0], *[row for row in table if row.endswith("malignant")]]))
    assert bncli("score", "m.bnc", "some.csv", "-o", "s.csv", "--monitor", "m.json", "--fail-on-drift").code == 4


def test_class_weights_and_missing_values_are_no_drift(bncli: Bncli) -> None:
    words = ("--param", "map", "--class-weights", "cultivar_1=20", "-o", "m.bnc")
    for policy in ("level", "marginalize"):
        assert bncli("fit", "wine_holes.csv", *words, "--missing-policy", policy).code == 0
        assert bncli("score", "m.bnc", "wine_holes.csv", "-o", "s.csv", "--monitor", "m.json").code == 0
        found = json.loads(Path("m.json").read_text())
        assert any(one["missing"] for one in found["attributes"])
        assert [one["psi"] for one in found["attributes"]] == pytest.approx([0.0] * len(found["attributes"]), abs=1e-12)


def test_quantiles_of_training_are_kept_where_they_are_asked_for(bncli: Bncli) -> None:
    """`score --surprise` of the training rows has these very quantiles; without the flag a model is as it was."""
    words = ("fit", "iris.csv", "--structure", "tan", "--param", "map", "-q")
    assert bncli(*words, "-o", "plain.bnc").code == bncli(*words, "--log-p-quantiles", "-o", "m.bnc").code == 0
    said = json.loads(bncli("inspect", "m.bnc", "--json").out)
    kept = said["training_log_p"]
    ran = bncli("score", "m.bnc", "iris.csv", "--surprise", "-o", "s.csv")
    surprises = -np.array([float(row["surprise"]) for row in rows_in_file("s.csv")])
    assert kept["rows"] == 150
    assert kept["mean"] == pytest.approx(surprises.mean())
    for share, value in kept["quantiles"].items():
        assert value == pytest.approx(np.quantile(surprises, float(share), method="inverted_cdf"))
    lowest = kept["quantiles"]["0.01"]
    assert f"Note: surprise of the training rows in nats: 1 % above {-lowest:.4g}" in ran.err
    assert f"1 % quantile {lowest:.4g}" in " ".join(bncli("inspect", "m.bnc").out.split())
    plain = json.loads(bncli("inspect", "plain.bnc", "--json").out)
    assert {key: value for key, value in said.items() if key not in ("training_log_p",)} == plain
    assert package.fit("iris.csv", structure="tan", param="map", progress=silent)._model.log_p is None
    package.fit("iris.csv", structure="tan", param="map", log_p_quantiles=True, progress=silent).save("p.bnc")
    assert Path("p.bnc").read_bytes() == Path("m.bnc").read_bytes()


def test_a_monitor_tells_of_rows_that_are_less_probable_than_those_of_training(bncli: Bncli) -> None:
    words = ("--structure", "nb", "--param", "map", "--log-p-quantiles", "-q")
    assert bncli("fit", "iris.csv", *words, "-o", "m.bnc").code == 0
    rows = rows_in_file("iris.csv")
    for row, other in zip(rows[:60], rows[::-1], strict=False):
        row["petal_length"], row["sepal_width"] = other["petal_length"], "9.9"
    write("new.csv", rows)
    found = monitor_of(bncli, "new.csv")
    lowest = found["model"]["training_log_p"]["quantiles"]["0.01"]
    bncli("score", "m.bnc", "new.csv", "--surprise", "-o", "s.csv")
    exact = np.mean([-float(row["surprise"]) < lowest for row in rows_in_file("s.csv")])
    assert exact > 0.1
    assert found["below_training"] == pytest.approx(exact, abs=0.05)
    ran = bncli("score", "m.bnc", "new.csv", "-o", "s.csv", "--monitor", "monitor.json")
    share = 100 * found["below_training"]
    assert f"; {share:.3g} % of the rows below the 1 % quantile of ln P(x) in training" in ran.err
    Path("again.json").write_bytes(Path("monitor.json").read_bytes())
    joined = json.loads(bncli("monitor", "monitor.json", "again.json", "--json").out)
    assert joined["below_training"] == found["below_training"]
    assert joined["monitors"][1]["below_training"] == found["below_training"]
    assert bncli("calibrate", "m.bnc", "new.csv", "-o", "c.bnc", "-q").code == 0
    assert "training_log_p" not in json.loads(bncli("inspect", "c.bnc", "--json").out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("iris.csv",), "has no effect with --param weighted: only a network with probabilities has P(x)"),
        (("iris.csv", "--param", "map", "--calibrate", "temperature"), "has no effect with --calibrate"),
        (("--from-counts", "x.counts", "--param", "map", "--structure", "nb"), "with --from-counts, which has no rows"),
    ],
)
def test_where_there_are_no_quantiles_of_training(bncli: Bncli, words: tuple[str, ...], message: str) -> None:
    ran = bncli("fit", *words, "--log-p-quantiles", "-o", "m.bnc")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


SHARES = ("0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": 0}, "out of range"),
        ({"mean": "low"}, "expected a number"),
        ({"quantiles": {"0.01": 1.0}}, "the key '0.05' is missing"),
        ({"quantiles": {share: -float(share) for share in SHARES}}, "quantiles must not decrease"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_damaged_quantiles_are_told(change: dict[str, Any], said: str) -> None:
    quantiles = {share: float(share) - 9 for share in SHARES}
    content = {"rows": 5, "mean": -6.0, "quantiles": quantiles}
    good = parse_json(json.dumps(content).encode(), "a file", ModelError)
    assert training_log_p_json(read_training_log_p(good)) == content
    with pytest.raises(ModelError, match=said):
        read_training_log_p(parse_json(json.dumps(content | change).encode(), "a file", ModelError))
