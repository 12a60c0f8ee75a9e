"""Learning curves: each size has the same metrics whatever the other sizes are."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bncli.engine.data.splits import nested_order
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.learn import learn
from bncli.errors import UsageError
from bncli.files.artifacts.model import write_model
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.evaluate.evaluate import EvaluateOutputs, Samples, evaluate, evaluate_model, evaluate_on
from bncli.steps.evaluate.report import CURVE_COLUMNS, EvaluateReport
from bncli.watch import Event, Note, Progress, Run, Stage
from tests.sweeps import first_few

RECIPE = Recipe.of(structure="nb", param="map")
TREE = Recipe.of(structure="tan", param="discriminative", penalty=1.0)
EVERYTHING = Recipe.of(structure="tan", param="discriminative")
"""Cuts, a tree, a cross-validated penalty and parameters: everything that is learned anew on a sample."""


def table(path: Path, n: int, seed: int) -> Source:
    """Write a number and a word with missing values, an uninformative column, weights, and three labels, one rare."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "word", "noise", "w", "class"])
        for _ in range(n):
            label = int(rng.choice(3, p=[0.5, 0.4, 0.1]))
            word = "" if rng.random() < 0.1 else "abcd"[int(rng.integers(0, 2)) + label % 3]
            noise, weight = f"v{rng.integers(0, 9)}", int(rng.integers(0, 3))
            writer.writerow([round(float(rng.normal()) + 2 * label, 3), word, noise, weight, "xyz"[label]])
    return Source((str(path),))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return table(tmp_path_factory.mktemp("curves") / "data.csv", 100, 0)


@pytest.fixture(scope="module")
def test_table(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return table(tmp_path_factory.mktemp("curves") / "test.csv", 60, 1)


def curve(report: EvaluateReport) -> dict[int, dict[str, Any]]:
    """Return the points of the JSON by their rows, ascending."""
    points = report.as_json()["learning_curve"]
    rows = [point["rows"] for point in points]
    assert rows == sorted(set(rows))
    return {point["rows"]: point for point in points}


def requested(*sizes: int | str) -> EvaluateOutputs:
    return EvaluateOutputs(samples=Samples(sizes))


def figures(report: EvaluateReport) -> dict[str, Any]:
    """Return everything in the JSON but the seconds."""
    values = report.as_json()
    values.pop("learning_curve", None)
    values.pop("seconds")
    for fold in values.get("folds", []):
        fold.pop("seconds")
    return values


@pytest.mark.slow
@pytest.mark.parametrize("recipe", first_few([TREE, RECIPE]))
def test_a_size_has_the_same_metrics_whatever_the_others_and_all_is_the_evaluation(
    source: Source, recipe: Recipe
) -> None:
    protocol = Protocol(4, 2, 3)
    plain = evaluate(source, recipe, protocol)
    whole = evaluate(source, recipe, protocol, outputs=requested(10, 30, 31, "all"))
    assert figures(whole) == figures(plain)
    points = curve(whole)
    assert list(points) == [10, 30, 31, 75]
    assert points[75] == {"rows": 75, **{name: plain.metrics[name] for name in METRICS}, "std": plain.std}
    for sizes in ((30,), (30, 60), (75,)):
        for rows, point in curve(evaluate(source, recipe, protocol, outputs=requested(*sizes))).items():
            assert rows == 60 or point == points[rows]
    assert points[10]["log_loss"] != points[30]["log_loss"] != points[31]["log_loss"]
    again = evaluate(source, recipe, protocol, outputs=requested(30), run=Run(3))
    assert curve(again)[30] == points[30]
    assert curve(evaluate(source, recipe, Protocol(4, 2, 4), outputs=requested(30)))[30] != points[30]


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 76), unique=True, min_size=1, max_size=4).map(sorted),
    folds=st.integers(2, 5),
    seed=st.integers(0, 5),
)
def test_any_sizes_equal_those_requested_one_by_one(source: Source, sizes: list[int], folds: int, seed: int) -> None:
    """Also where folds are uneven: the largest size takes all rows of every fold, as the plain evaluation does."""
    protocol = Protocol(folds, 1, seed)
    most = 100 - 100 // folds
    sizes = [size for size in sizes if size < most]
    together = curve(evaluate(source, RECIPE, protocol, outputs=requested(*sizes, "all")))
    plain = evaluate(source, RECIPE, protocol)
    assert together.pop(most) == {"rows": most, **plain.metrics, "std": plain.std}
    for rows, point in together.items():
        assert curve(evaluate(source, RECIPE, protocol, outputs=requested(rows))) == {rows: point}


def test_a_point_is_the_mean_and_the_spread_of_its_fits(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    report = evaluate(
        source, RECIPE, Protocol(3, 2), outputs=EvaluateOutputs(csv=str(path), samples=Samples((5, 40, "all")))
    )
    lines = list(csv.DictReader(path.read_text().splitlines()))
    assert tuple(lines[0]) == CURVE_COLUMNS
    assert [line["train_rows"] for line in lines] == [size for size in ("5", "40", "67") for _ in range(6)]
    assert [(line["repeat"], line["fold"]) for line in lines[:6]] == [(r, f) for r in "01" for f in "012"]
    assert {line["rows"] for line in lines} == {"33", "34"}
    assert all(float(line["fit_seconds"]) > 0 and float(line["score_seconds"]) > 0 for line in lines)
    for rows, point in curve(report).items():
        for name in METRICS:
            told = [float(line[name]) for line in lines if line["train_rows"] == str(rows) and line[name]]
            assert point[name] == pytest.approx(fmean(told))
            assert point["std"][name] == pytest.approx(stdev(told))
    json.dumps(report.as_json(), allow_nan=False)


def test_weighted_rows_are_sampled_as_rows_and_count_by_their_weight(source: Source) -> None:
    """Rows of weight 0 do not exist; the others are counted one by one."""
    weighted = replace(source, weights="w")
    columns = read_columns(weighted)
    assert columns.n_rows < 100
    most = columns.n_rows - columns.n_rows // 5
    plain = evaluate(weighted, RECIPE)
    points = curve(evaluate(weighted, RECIPE, outputs=requested(20, most)))
    assert points[most]["log_loss"] == plain.metrics["log_loss"]
    assert points[20] != curve(evaluate(source, RECIPE, outputs=requested(20)))[20]


@pytest.mark.parametrize("recipe", [RECIPE, TREE], ids=["map", "tree"])
def test_a_test_table_is_predicted_by_samples_of_the_other(source: Source, test_table: Source, recipe: Recipe) -> None:
    plain = evaluate_on(source, test_table, recipe)
    outputs = EvaluateOutputs(samples=Samples((8, 50, "all"), 2, 7))
    report = evaluate_on(source, test_table, recipe, outputs=outputs)
    assert figures(report) == figures(plain)
    points = curve(report)
    assert points[100] == {"rows": 100, **plain.metrics, "std": {**dict.fromkeys(METRICS, 0.0)}}
    alone = evaluate_on(source, test_table, recipe, outputs=EvaluateOutputs(samples=Samples((50,), 2, 7)))
    assert curve(alone) == {50: points[50]}
    single = evaluate_on(source, test_table, recipe, outputs=EvaluateOutputs(samples=Samples((50,), 1, 7)))
    assert curve(single)[50]["std"] == dict.fromkeys(METRICS)
    (first, second) = alone.learning_curve[0].fits
    assert single.learning_curve[0].fits[0].metrics == first.metrics != second.metrics


@pytest.mark.slow
def test_a_sample_before_a_test_table_is_that_of_a_model_file(
    source: Source, test_table: Source, tmp_path: Path
) -> None:
    columns = read_columns(source)
    assert columns.label is not None
    rows = np.sort(nested_order(columns.label.codes, (7, 0, 1))[:50])
    write_model(str(tmp_path / "m.bnc"), learn(columns.take(rows), EVERYTHING).model)
    expected = evaluate_model(str(tmp_path / "m.bnc"), test_table)
    report = evaluate_on(source, test_table, EVERYTHING, outputs=EvaluateOutputs(samples=Samples((50,), 1, 7)))
    (outcome,) = report.learning_curve[0].fits
    assert outcome.metrics == expected.metrics
    assert outcome.rows == 60


def test_a_table_is_read_once_and_samples_are_reported_as_progress(source: Source, test_table: Source) -> None:
    events: list[Event] = []
    evaluate(source, RECIPE, Protocol(2), outputs=requested(9), run=Run(watch=events.append))
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["read", *["fit", "score", "evaluate", "fit", "score"] * 2, "write"]
    events.clear()
    outputs = EvaluateOutputs(samples=Samples((9, 11), 2))
    evaluate_on(source, test_table, RECIPE, outputs=outputs, run=Run(watch=events.append))
    assert [event.name for event in events if isinstance(event, Stage)] == ["read", "fit", "read", "score", "write"]
    told = [event for event in events if isinstance(event, Progress) and "sample" in event.detail]
    assert told == [Progress(n, 40, f"a sample of {size} rows") for n, size in ((0, 9), (9, 11), (20, 9), (29, 11))]


def test_warnings_say_which_sample_they_are_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{x:.4f},{'xy'[label]}" for x, label in zip(rng.normal(size=80), rng.integers(0, 2, 80), strict=True)]
    (tmp_path / "noise.csv").write_text("\n".join(["a,class", *lines]))
    noise, events = Source((str(tmp_path / "noise.csv"),)), list[Event]()
    evaluate(noise, RECIPE, Protocol(2, 2), outputs=requested(9), run=Run(watch=events.append))
    outputs = EvaluateOutputs(samples=Samples((9,), 2))
    evaluate_on(noise, noise, RECIPE, outputs=outputs, run=Run(watch=events.append))
    unused = "the model does not use the only attribute"
    warned = [event.text for event in events if isinstance(event, Note) and unused in event.text]
    begun = ["in the first fold, ", "in the first fold, learned from 9 rows, ", "", "learned from 9 rows, "]
    assert [text[: text.index(unused)] for text in warned] == begun


def test_a_sample_of_one_row(source: Source) -> None:
    events = list[Event]()
    evaluate_on(source, source, RECIPE, outputs=EvaluateOutputs(samples=Samples((1,), 1)), run=Run(watch=events.append))
    assert "a sample of 1 row" in [event.detail for event in events if isinstance(event, Progress)]
    assert not [event.text for event in events if isinstance(event, Note) and "1 rows" in event.text]


@pytest.mark.parametrize(
    ("n_rows", "options"),
    [
        (1, {"structure": "kikuchi", "param": "kbma"}),
        (2, {"structure": "nb", "param": "em"}),
        pytest.param(2, {}, marks=pytest.mark.slow),
        pytest.param(1, {"structure": "auto", "effort": 1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_fewer_rows_than_labels_can_be_learnt_from(source: Source, n_rows: int, options: dict[str, Any]) -> None:
    policy = {"missing_policy": "marginalize"} if options.get("param") == "em" else {}
    report = evaluate(source, Recipe.of(**options, **policy), Protocol(2), outputs=requested(n_rows))
    point = curve(report)[n_rows]
    assert np.isfinite(point["log_loss"])
    json.dumps(report.as_json(), allow_nan=False)


def test_sizes_that_cannot_be_had(source: Source, test_table: Source) -> None:
    with pytest.raises(UsageError, match=r"81 is more than the 80 rows to learn from in a fold \(100 rows, 5 folds\)"):
        evaluate(source, RECIPE, outputs=requested(5, 81))
    with pytest.raises(UsageError, match="has 80 twice, once as all"):
        evaluate(source, RECIPE, outputs=requested(80, "all"))
    with pytest.raises(UsageError, match="101 is more than the 100 rows to learn from"):
        evaluate_on(source, test_table, RECIPE, outputs=requested(101))


def test_a_curve_that_would_be_written_over_what_is_read(source: Source) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(csv=source.paths[0], samples=Samples((5,))))


def test_the_picture(source: Source, tmp_path: Path) -> None:
    folder = tmp_path / "drawn"
    evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(folder), samples=Samples((5, 20, "all"))))
    assert {path.name for path in folder.iterdir()} == {
        "roc.svg",
        "precision_recall.svg",
        "reliability.svg",
        "learning_curve.svg",
    }
    root = ElementTree.parse(folder / "learning_curve.svg").getroot()
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"↑ error rate", "↑ log-loss (nats per row)", "5", "20", "80"} <= set(texts)
    (folder / "learning_curve.svg").unlink()
    Path(folder / "learning_curve.svg").hardlink_to(source.paths[0])
    with pytest.raises(UsageError, match="cannot write"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(folder), samples=Samples((5,))))
    evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(folder)))
