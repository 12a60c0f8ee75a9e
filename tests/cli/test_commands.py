"""The other commands, each with its default options and as JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Bncli, prepare


def test_discretize_shows_the_cuts(bncli: Bncli) -> None:
    ran = bncli("discretize", "iris.csv")
    assert ran.code == 0
    assert [line.split()[:3] for line in ran.out.splitlines() if "petal" in line] == [
        ["petal_length", "numeric", "3"],
        ["petal_width", "numeric", "3"],
    ]


def test_discretize_writes_a_binned_table(bncli: Bncli, tmp_path: Path) -> None:
    assert bncli("discretize", "wine_holes.csv", "-o", "binned.csv").code == 0
    rows = list(csv.reader((tmp_path / "binned.csv").read_text().splitlines()))
    given = list(csv.reader((tmp_path / "wine_holes.csv").read_text().splitlines()))
    assert rows[0] == given[0]
    assert len(rows) == len(given)
    assert all(
        (a == "") == (b == "") for row, plain in zip(rows, given, strict=True) for a, b in zip(row, plain, strict=True)
    )
    report = json.loads(bncli("evaluate", "binned.csv", "--param", "map", "--json").out)
    assert report["rows"] == len(rows) - 1


def test_discretize_as_json_is_the_cuts_file(bncli: Bncli, tmp_path: Path) -> None:
    report = json.loads(bncli("discretize", "iris.csv", "--cuts-out", "cuts.json", "--json").out)
    document = json.loads((tmp_path / "cuts.json").read_text())
    assert document.items() <= report.items()
    assert (report["rows"], report["cuts"]) == (150, 8)


def test_discretize_knows_that_a_missing_value_is_a_value(bncli: Bncli, tmp_path: Path) -> None:
    rows = ["1,5,x", ",5,y", "1,5,x", ",5,y"] * 5
    (tmp_path / "t.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    shown = bncli("discretize", "t.csv", "--numeric", "a", "--numeric", "b").out
    assert "no cut: present or missing" in shown
    assert "no cut: not used" in shown
    bncli("discretize", "t.csv", "--cuts-out", "cuts.json")
    assert "not used" not in bncli("inspect", "cuts.json").out


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("fit", "iris.csv", "-o", "no/x.bnc"), 1, "there is no folder"),
        (("fit", "iris.csv", "--trace", "."), 1, "a folder"),
        (("learn-structure", "iris.csv", "-o", "no/x.json"), 1, "there is no folder"),
        (("discretize", "iris.csv", "--cuts-out", "no/x.json"), 1, "there is no folder"),
        (("evaluate", "iris.csv", "--predictions", "no/x.csv"), 1, "there is no folder"),
        (("evaluate", "iris.csv", "--predictions", "x.csv.gz"), 2, "not compressed"),
        (("discretize", "iris.csv", "-o", "x.parquet"), 2, "as CSV"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_a_bad_output_is_refused_before_any_work(
    bncli: Bncli, tmp_path: Path, words: tuple[str, ...], code: int, fault: str
) -> None:
    (tmp_path / "iris.csv").write_text("not,even\nread\n")
    ran = bncli(*words)
    assert (ran.code, ran.out) == (code, "")
    assert fault in ran.err


def test_score_waits_for_no_terminal(bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert "give DATA, or pipe it in" in bncli("score", "iris.bnc").err
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True, flush=lambda: None))
    assert "cannot be shown in a terminal" in bncli("score", "iris.bnc", "iris.csv", "--output-format", "arrow").err


def test_learn_structure_prints_the_file(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("learn-structure", "iris.csv")
    assert bncli("learn-structure", "iris.csv", "-o", "tan.json").code == 0
    assert ran.out == (tmp_path / "tan.json").read_text()
    report = json.loads(bncli("learn-structure", "iris.csv", "--json").out)
    assert report["parents"] == json.loads(ran.out)["parents"]
    assert (report["structure"], report["arcs"]) == ("tan", 7)


def test_inspect_shows_each_kind_of_file(bncli: Bncli) -> None:
    bncli("fit", "tumours.csv", "--param", "map")
    bncli("discretize", "tumours.csv", "--cuts-out", "cuts.json")
    bncli("learn-structure", "tumours.csv", "-o", "tan.json")
    for file, word in (("tumours.bnc", "Recipe"), ("cuts.json", "Attributes"), ("tan.json", "Structure")):
        shown = bncli("inspect", file)
        assert (shown.code, shown.err) == (0, "")
        assert word in shown.out
        assert json.loads(bncli("inspect", file, "--json").out)["schema_version"] == 1
    assert "tables" in json.loads(bncli("inspect", "tumours.bnc", "--json", "--tables").out)
    assert "Scores of the class alone" in bncli("inspect", "tumours.bnc", "--tables").out


def test_inspect_names_what_keeps_a_graph_from_being_perfect(bncli: Bncli, tmp_path: Path) -> None:
    parents = {"a": ["class"], "b": ["class"], "c": ["class", "a", "b"]}
    content = {"format": "bncli-structure", "version": 1, "class": "class", "parents": parents}
    (tmp_path / "apart.json").write_text(json.dumps(content))
    assert "Perfect graph: no (no arc joins a and b, both parents of c)" in bncli("inspect", "apart.json").out
    assert json.loads(bncli("inspect", "apart.json", "--json").out)["perfect"] is False


def test_inspect_shows_a_network_that_has_no_class(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "x.dot").write_text("digraph { smoke -> lung; smoke -> bronc; bronc -> dysp; lung -> dysp }")
    assert bncli("inspect", "x.dot").out.splitlines() == [
        "Structure read from dot; no node is marked as the class",
        "",
        "Structure: each attribute depends on the one above it",
        "smoke",
        "├── lung",
        "└── bronc",
        "    └── dysp (and on lung)",
    ]


def test_score_writes_predictions_and_one_line(bncli: Bncli) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    ran = bncli("score", "iris.bnc", "iris.csv", "--keep", "class")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert len(rows) == 150
    assert list(rows[0]) == ["class", "prediction", "p_setosa", "p_versicolor", "p_virginica"]
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("150 rows scored; 0 values never seen in training; 0 values missing")


def test_score_counts_the_unknown(bncli: Bncli, tmp_path: Path) -> None:
    bncli("fit", "tumours.csv", "--param", "map")
    text = (tmp_path / "tumours.csv").read_text().splitlines()
    strange = ["17.99,,0.1184,enormous,jagged,low,2019,malignant", "17.99,,0.1184,large,odd,low,2019,malignant"]
    (tmp_path / "new.csv").write_text("\n".join([text[0], *strange]) + "\n")
    ran = bncli("score", "tumours.bnc", "new.csv", "-o", "out.csv")
    assert ran.err == (
        "2 rows scored; 2 values never seen in training (size 1, outline 1); 2 values missing (texture 2)\n"
    )
    report = json.loads(bncli("score", "tumours.bnc", "new.csv", "-o", "out.csv", "--json").out)
    assert (report["rows"], report["unseen_values"], report["missing"]) == (2, 2, {"texture": 2})
    stopped = bncli("score", "tumours.bnc", "new.csv", "--unseen", "error")
    assert stopped.code == 3
    assert "enormous" in stopped.err


def test_score_without_a_column_names_it(bncli: Bncli) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    ran = bncli("score", "iris.bnc", "tumours.csv")
    assert ran.code == 3
    assert "sepal_length" in ran.err


EVALUATE_KEYS = {
    "schema_version", "rows", "protocol", "accuracy", "error", "log_loss", "rmse", "brier", "auc", "ece", "cll",
    "balanced_accuracy", "mcc", "base", "skill_score", "seconds", "labels", "confusion", "per_class", "curves",
}  # fmt: skip


def test_evaluate_by_folds(bncli: Bncli) -> None:
    command = ("evaluate", "iris.csv", "--param", "map", "--folds", "3", "--repeats", "2")
    report = json.loads(bncli(*command, "--json").out)
    assert set(report) >= EVALUATE_KEYS | {"std", "folds"}
    assert len(report["folds"]) == 6
    assert sum(map(sum, report["confusion"])) == 300
    shown = bncli(*command)
    assert f"{report['accuracy']:.4f}" in shown.out
    assert f"{report['std']['log_loss']:.4f}" in shown.out


def test_evaluate_shows_labels_and_the_baseline_and_draws(bncli: Bncli, tmp_path: Path) -> None:
    report = json.loads(bncli("evaluate", "iris.csv", "--param", "map", "--svg", "drawn", "--json").out)
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == [
        "precision_recall.svg",
        "reliability.svg",
        "roc.svg",
    ]
    lines = [line.split() for line in bncli("evaluate", "iris.csv", "--param", "map").out.splitlines()]
    assert [line[-1] for line in lines if line[:1] == ["log-loss"]] == [f"{report['base']['log_loss']:.4f}"]
    assert [line[-1] for line in lines if line[:1] == ["skill-score"]] == [f"{report['skill_score']:.4f}"]
    without_intervals = [re.sub(r"[\d.]+ - [\d.]+", "", " ".join(line)).split() for line in lines]
    for figures in report["per_class"]:
        told = [f"{figures[key]:.4f}" for key in ("precision", "recall", "f1")]
        assert [figures["label"], *told, f"{figures['support']}"] in without_intervals


def test_evaluate_warns_of_a_model_that_is_no_better_than_the_frequencies(bncli: Bncli, tmp_path: Path) -> None:
    rows = "\n".join(f"v{i},{'yn'[i * i % 7 % 2]}" for i in range(40))
    (tmp_path / "noise.csv").write_text(f"a,class\n{rows}\n")
    ran = bncli("evaluate", "noise.csv", "--param", "map", "--smoothing", "mle", "--categorical", "a")
    assert ran.code == 0
    assert [
        line
        for line in ran.err.splitlines()
        if line.startswith("Warning: the predictions are no better than the class")
    ]


@pytest.mark.parametrize("n_labels", [12, 30])
def test_the_tables_of_evaluate_fit_a_terminal(n_labels: int, bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [f"label of the {i}th kind" for i in range(n_labels)]
    rows = "\n".join(f"{i * i % 11},{labels[i % n_labels]}" for i in range(4 * n_labels))
    Path("many.csv").write_text(f"a,class\n{rows}\n")
    command = ("evaluate", "many.csv", "--structure", "nb", "--param", "map", "--folds", "2", "-q")
    monkeypatch.setenv("COLUMNS", "1000")
    whole = set(bncli(*command).out.split())
    monkeypatch.setenv("COLUMNS", "80")
    lines = bncli(*command).out.splitlines()
    assert max(map(len, lines)) <= 80
    told = {word for line in lines if "seconds" not in line for word in line.split() if set(word) != {"─"}}
    assert told - whole <= {"labels", "further", "label),"}
    assert (n_labels <= 12) == any(line.startswith("Confusion") for line in lines)
    assert (n_labels > 12) == any(line.startswith("... and 18 more labels") for line in lines)


@pytest.mark.parametrize("protocol", [["--test", "iris.csv", "--param", "map"], ["--model", "iris.bnc"]], ids=" ".join)
def test_evaluate_on_a_table(bncli: Bncli, tmp_path: Path, protocol: list[str]) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    report = json.loads(bncli("evaluate", "iris.csv", *protocol, "--predictions", "p.csv", "--json").out)
    assert set(report) >= EVALUATE_KEYS
    assert "std" not in report
    predictions, true_labels = zip(
        *(line.rsplit(",", 1) for line in (tmp_path / "p.csv").read_text().splitlines()), strict=True
    )
    assert list(predictions) == bncli("score", "iris.bnc", "iris.csv").out.splitlines()
    rows = [line.rsplit(",", 1)[1] for line in (tmp_path / "iris.csv").read_text().splitlines()]
    assert list(true_labels) == ["true_label", *rows[1:]]


def test_evaluate_takes_given_cuts_and_structure(bncli: Bncli) -> None:
    bncli("discretize", "iris.csv", "--cuts-out", "cuts.json")
    bncli("learn-structure", "iris.csv", "--cuts", "cuts.json", "-o", "tan.json")
    ran = bncli("evaluate", "iris.csv", "--cuts", "cuts.json", "--structure", "tan.json", "--param", "map", "--json")
    assert json.loads(ran.out)["accuracy"] > 0.9


def test_notes_go_to_the_standard_error(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "monks1.schema.json").unlink()
    ran = bncli("discretize", "monks1.csv", "--json")
    assert ran.err.startswith("Note: ")
    json.loads(ran.out)
    assert bncli("discretize", "monks1.csv", "--json", "--quiet").err == ""


SIX = ["ll", "bic", "aic", "k2", "bdeu", "acll"]


def test_scores_of_the_structure_learnt(bncli: Bncli) -> None:
    ran = bncli("learn-structure", "tumours.csv", "--scores", "--json")
    report = json.loads(ran.out)
    assert list(report["scores"]) == SIX
    assert report["scores"]["ll"] > report["scores"]["aic"] > report["scores"]["bic"]
    assert report["acll_relative_error"] > 0
    assert "scores" not in json.loads(bncli("learn-structure", "tumours.csv", "--json").out)
    told = bncli("learn-structure", "tumours.csv", "--scores", "-o", "s.json").err
    assert f"scores      ll   {report['scores']['ll']:,.4f}" in told
    assert f"relative error {100 * report['acll_relative_error']:.4g} % against the CLL of the same parameters" in told


def test_options_of_acll_hold_for_its_score_whatever_learns(bncli: Bncli) -> None:
    """Rows of one attribute: the tree is the same by every score, so acll is that of `--structure-score acll`."""
    Path("one.csv").write_text("a,class\n" + "x,yes\ny,no\ny,yes\nz,no\n" * 20)
    options = ("--class-pair-prior", "1,1000", "--pseudo-counts", "3", "--scores", "--json")
    learn = ("learn-structure", "one.csv", "--structure", "tan", "--structure-score")
    by = {score: json.loads(bncli(*learn, score, *options).out)["scores"] for score in ("acll", "ll", "cmi")}
    assert by["ll"] == by["cmi"] == by["acll"]
    plain = json.loads(bncli(*learn, "ll", "--scores", "--json").out)["scores"]
    assert plain["acll"] != by["ll"]["acll"]
    assert {**plain, "acll": None} == {**by["ll"], "acll": None}
    drawn = ("--class-pair-prior", "1,1000:5000", "--seed", "3", *options[2:])
    drawn_by = [json.loads(bncli(*learn, score, *drawn).out)["scores"]["acll"] for score in ("acll", "ll")]
    assert drawn_by[0] == drawn_by[1] != by["ll"]["acll"]
    evaluate = ("evaluate", "one.csv", "--structure", "nb", *options)
    folds = [json.loads(bncli(*evaluate, "--param", param).out)["scores"] for param in ("map", "acll")]
    assert folds[0] == folds[1]


def test_scores_of_the_structures_learnt_in_the_folds_are_means(bncli: Bncli) -> None:
    one = json.loads(bncli("learn-structure", "monks1.csv", "--structure", "nb", "--scores", "--json").out)
    evaluate = ("evaluate", "monks1.csv", "--structure", "nb", "--param", "map", "--scores")
    found = json.loads(bncli(*evaluate, "--json").out)
    assert list(found["scores"]) == SIX
    # four fifths of the rows, of nearly the same frequencies
    assert found["scores"]["ll"] == pytest.approx(0.8 * one["scores"]["ll"], rel=0.01)
    assert "scores" not in json.loads(bncli(*evaluate[:-1], "--json").out)
    table = bncli(*evaluate).out
    assert "Scores of the networks on their training rows, in nats: means over the folds" in table
    assert f"{found['scores']['k2']:,.4f}" in table


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("learn-structure monks1.csv --class-pair-prior 1,1000", "--class-pair-prior has no effect with --structure-s"),
        ("learn-structure monks1.csv --scores --pseudo-counts -1", "'-1' is not a finite number above 0"),
        ("learn-structure monks1.csv --scores --class-pair-prior 1", "'1' should be A,B"),
        ("evaluate monks1.csv --scores --structure kikuchi", "--scores has no effect with --structure kikuchi"),
        ("evaluate monks1.csv --scores --structure auto", "--scores has no effect with --structure auto"),
        ("evaluate monks1.csv --scores --structure interactions", "--scores has no effect with --structure inter"),
        ("learn-structure monks1.csv --scores --structure kikuchi", "--scores has no effect with --structure kikuchi"),
        (
            "evaluate monks1.csv --scores --test monks1.csv",
            "--scores needs cross-validation: --test has no folds",
        ),
        ("evaluate monks1.csv --scores --model m.bnc", "--scores needs cross-validation: a model file stores no"),
    ],
)
def test_scores_that_cannot_be(bncli: Bncli, words: str, told: str) -> None:
    ran = bncli(*words.split())
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("inspect -", "a file to inspect"),
        ("verify -", "a model"),
        ("score - iris.csv", "a model"),
        ("explain -", "a model"),
        ("diff - -", "a model"),
        ("edit - --list", "a model"),
        ("calibrate - iris.csv -o calibrated.bnc", "a model"),
        ("monitor -", "a model or monitor"),
        ("report -", "a model"),
        ("export - --to bif", "a model"),
        ("dossier - --data iris.csv -o folder", "a model"),
        ("simulate - --rows 3", "a model"),
        ("evaluate iris.csv --model -", "a model"),
    ],
)
def test_a_model_is_never_read_from_the_standard_input(bncli: Bncli, line: str, what: str) -> None:
    ran = bncli(*line.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"Error: {what} cannot be read from the standard input; give the path of the file\n"
